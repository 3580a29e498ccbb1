"""What choices by noisy scores cost, by the noise on the scores."""

import math
from collections.abc import Callable

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.curves import DescribedPair
from skpuffer.noise import ExponentialNoise, GumbelNoise, Noise, Shift
from skpuffer.privacy_loss import BoundedRangePair, PrivacyLossCurve, PurePair
from skpuffer.releases import SelectionRelease

__all__ = ["SELECTION_FIELDS", "selection_curve", "selection_noises"]

#: What is read of a selection.
SELECTION_FIELDS: frozenset[str] = frozenset(
    {"assumptions", "context", "n_records", "name", "scores"}
)

#: Mechanism, and what dominates a round of range r at scale one.
_MECHANISMS: dict[type[Noise], tuple[Statement, Callable[[float], DescribedPair]]] = {
    GumbelNoise: (
        Statement("source.exponential_mechanism_range"),
        BoundedRangePair,
    ),
    ExponentialNoise: (
        Statement("source.permute_and_flip"),
        PurePair,
    ),
}


def selection_noises(
    noise: Noise, release: SelectionRelease
) -> tuple[type[Noise], ...]:
    """Return the families that may choose, the one that errs least at a scale first.

    Parameters
    ----------
    noise : Noise
        What was asked for: its family, if it is one of scores; any other stands for
        all of them.
    release : SelectionRelease

    Returns
    -------
    tuple of type
    """
    if type(noise) in _MECHANISMS:
        return (type(noise),)
    return (ExponentialNoise, GumbelNoise) if release.is_finite else (GumbelNoise,)


def selection_curve(
    noise: Noise,
    release: SelectionRelease,
    relation: str,
    count: int,
    max_memory: float = 500.0,
) -> tuple[PrivacyLossCurve, Shift, Statement, Statement]:
    """Return what the choices of a release cost under a noise on their scores.

    With c the reciprocal of the scale, the privacy loss of a candidate under Gumbel
    noise is c times the move of its score, plus a constant that all candidates share:
    so losses lie in an interval of c times the range of these moves. If k records
    differ, moves add up one record after the other, and so do their ranges. Choices of
    one round depend on earlier rounds alone, so that given these their losses, and the
    intervals in which they lie, add up. Under exponential noise the largest losses do,
    either way.

    Parameters
    ----------
    noise : Noise
    release : SelectionRelease
    relation : {'add_remove', 'replace'}
    count : int
        How many records differ at most.
    max_memory : float, default=500
        In MiB, for the grid of the curve.

    Returns
    -------
    curve : PrivacyLossCurve
    shift : Shift
        The largest range of a round.
    source : Statement
        Where the cost of a round is proved.
    statement : Statement

    Raises
    ------
    UnsupportedError
        If the noise is none of scores, of one scale, or candidates that are not
        finitely many meet exponential noise.
    """
    # by exact type, as a subclass may draw otherwise
    if type(noise) not in _MECHANISMS or noise.dim is not None:
        raise UnsupportedError(
            Statement(
                "selection.noise_not_gumbel_exponential", name=release.name, noise=noise
            )
        )
    if type(noise) is ExponentialNoise and not release.is_finite:
        raise UnsupportedError(
            Statement("selection.exponential_candidates_not_finite", name=release.name)
        )
    source, pair = _MECHANISMS[type(noise)]
    ranges = [count * one for one in release.ranges(relation)]
    scale = float(np.max(noise.scale))  # of one scale
    curve = PrivacyLossCurve(
        tuple((pair(r / scale), 1) for r in ranges), float(max_memory)
    )
    largest = Shift(max(ranges), norm=math.inf, dim=None, structure="scalar")
    statement = Statement(
        "selection.choices_in_rounds_stated",
        dim=release.dim,
        n_rounds=len(ranges),
        largest=max(ranges),
    )
    return curve, largest, source, statement
