"""Conditions under which the steps of a training run bring no two runs apart."""

import math

from skpuffer.exceptions import UnsupportedError
from skpuffer.releases import GradientRelease, Optimiser

__all__ = ["check_contracts", "check_hidden", "longest_step"]


def check_hidden(release: GradientRelease) -> None:
    """Refuse runs of which more than the last iterate leaves.

    Parameters
    ----------
    release : GradientRelease

    Raises
    ------
    UnsupportedError
        With a clause that names the setting that would do.
    """
    if release.published != "result":
        raise UnsupportedError(
            "all that the run makes may be seen of it, and it answers for the last "
            "iterate alone; use published='result' where nothing else leaves, or "
            "PrivacyLoss"
        )
    optimiser = release.optimiser
    # by exact type: a subclass may take other steps than the ones that are read here
    if type(optimiser) is not Optimiser:
        raise UnsupportedError(
            "the steps of the run are not stated; use "
            "optimiser=skpuffer.releases.Optimiser(...)"
        )
    if optimiser.momentum or optimiser.nesterov:
        raise UnsupportedError(
            "momentum carries more than the iterate from step to step; use momentum=0 "
            "and nesterov=False"
        )
    if optimiser.restart or optimiser.recalibration is not None:
        raise UnsupportedError(
            "its steps are not of one gradient alone; use restart=False and "
            "recalibration=None"
        )
    if optimiser.average:
        raise UnsupportedError(
            "a mean of iterates leaves, which tells of more than the last one; use "
            "average=0"
        )


def check_contracts(release: GradientRelease, largest_batch: int) -> None:
    """Refuse runs whose steps may bring two iterates further apart.

    Parameters
    ----------
    release : GradientRelease
        Of which `check_hidden` holds.
    largest_batch : int
        How many records a batch may hold at most.

    Raises
    ------
    UnsupportedError
        With a clause that names the setting that would do.
    """
    if release.clip_order != 2:
        raise UnsupportedError(
            f"gradients are clipped in the norm of order {release.clip_order:g}, "
            "which is no projection, so that steps may bring two runs apart; use "
            "clip_order=2"
        )
    if release.blocks is not None:
        raise UnsupportedError(
            "parts of a gradient that are clipped apart are together the gradient of "
            "no convex loss, so that steps may bring two runs apart; use blocks=None, "
            "one clip norm for all parameters"
        )
    record = release.record
    if not hasattr(record, "step_obstacle"):
        raise UnsupportedError(
            "it is not stated whose gradients these are, and those of a network or of "
            "another loss that is not convex may bring two runs apart; use a linear "
            "model, whose release has record=skpuffer.training.RecordGradient(...)"
        )
    obstacle = record.step_obstacle(release.clip_norm)
    if obstacle is not None:
        raise UnsupportedError(
            f"its steps may bring two runs apart: {obstacle}; or use PrivacyLoss"
        )
    longest = longest_step(release, largest_batch)
    step = max(release.optimiser.step_sizes(release.n_steps))  # type: ignore[union-attr] # checked
    if step > longest:
        beyond, remedy = "", f"use learning_rate={_rounded_down(longest)} or less"
        if largest_batch > math.ceil(release.divisor):
            beyond = (
                f", as a batch may hold all {largest_batch} records, beyond the "
                f"divisor of {release.divisor:g} by which its sum is divided"
            )
            remedy = f"use sampling='fixed_size' or 'full_batch', or {remedy[4:]}"
        raise UnsupportedError(
            f"its largest step of {step:.4g} is longer than {longest:.4g}, two over "
            "the curvature of its mean loss, beyond which steps may bring two runs "
            f"apart{beyond}; {remedy}"
        )


def longest_step(release: GradientRelease, largest_batch: int) -> float:
    """Step beyond which two runs on the same batches may come further apart.

    Parameters
    ----------
    release : GradientRelease
        With a `record`.
    largest_batch : int

    Returns
    -------
    float

    References
    ----------
    Baillon and Haddad (1977): the gradient of a convex b-smooth function is
    1/b-cocoercive, so that a step of at most 2/b is 1-Lipschitz.
    """
    # of a sum of convex functions, each clipped gradient being that of one
    curvature = release.record.curvature * largest_batch / release.divisor
    return float(2 / curvature)


def _rounded_down(number: float) -> float:
    """Round to four digits, never up: a remedy that is not refused again."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 3)
    return float(f"{math.floor(number / unit) * unit:.4g}")
