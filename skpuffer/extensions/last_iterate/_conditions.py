"""Conditions under which the steps of a training run bring no two runs apart."""

import math

from skpuffer.exceptions import Statement, UnsupportedError
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
        raise UnsupportedError(Statement("iteration.iterates_may_be_seen"))
    optimiser = release.optimiser
    # by exact type: a subclass may take other steps than the ones that are read here
    if type(optimiser) is not Optimiser:
        raise UnsupportedError(Statement("iteration.optimiser_not_stated"))
    if optimiser.momentum or optimiser.nesterov:
        raise UnsupportedError(Statement("iteration.momentum_carried"))
    if optimiser.restart or optimiser.recalibration is not None:
        raise UnsupportedError(Statement("iteration.restart_or_recalibration"))
    if optimiser.average:
        raise UnsupportedError(Statement("iteration.mean_of_iterates_released"))


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
            Statement("iteration.clip_order_not_two", clip_order=release.clip_order)
        )
    if release.blocks is not None:
        raise UnsupportedError(Statement("iteration.blocks_clipped_apart"))
    record = release.record
    if not hasattr(record, "step_obstacle"):
        raise UnsupportedError(Statement("iteration.loss_not_stated_convex"))
    obstacle = record.step_obstacle(release.clip_norm)
    if obstacle is not None:
        raise UnsupportedError(Statement("iteration.steps_expand", obstacle=obstacle))
    longest = longest_step(release, largest_batch)
    step = max(release.optimiser.step_sizes(release.n_steps))  # type: ignore[union-attr] # checked
    if step > longest:
        rate = _rounded_down(longest)
        beyond: Statement | str = ""
        remedy = Statement("iteration.remedy_smaller_learning_rate", rate=rate)
        if largest_batch > math.ceil(release.divisor):
            beyond = Statement(
                "iteration.batch_beyond_divisor",
                largest_batch=largest_batch,
                divisor=release.divisor,
            )
            remedy = Statement("iteration.remedy_other_sampling", rate=rate)
        raise UnsupportedError(
            Statement(
                "iteration.step_too_long",
                step=step,
                longest=longest,
                beyond=beyond,
                remedy=remedy,
            )
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
