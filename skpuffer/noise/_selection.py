"""Noise on scores of which only the place of the largest leaves."""

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import Floats

from ._base import Noise, Shift

__all__ = ["ExponentialNoise", "GumbelNoise"]


class _SelectionNoise(Noise):
    """Base of noise on scores: it is no noise of numbers, and hides no vector."""

    family = "selection"
    norm = float("inf")

    @property
    def has_bounded_loss(self) -> bool:
        """Whether a large enough scale keeps a pure promise: about choices, it does."""
        return True

    def _resolved(self, shift: Shift | Floats) -> NoReturn:
        raise UnsupportedError(
            Statement(
                "noise.selection_hides_no_vector", family=self.family.capitalize()
            )
        )


@dataclass(frozen=True)
class GumbelNoise(_SelectionNoise):
    """Independent noise of scores of which only the place of the largest leaves.

    To add it to the scores of candidates and take the largest is the exponential
    mechanism: each candidate is taken with probability proportional to
    ``exp(score / scale)``. It is no noise of numbers: added to a vector that leaves it
    hides nothing that is accounted for here, and what a shift of a vector costs is
    refused.

    Parameters
    ----------
    scale : float, default=1.0
        In the unit of the scores.

    See Also
    --------
    skpuffer.privacy_loss.BoundedRangePair : What one selection costs.

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy.

    Examples
    --------
    >>> from skpuffer.noise import GumbelNoise
    >>> round(float(GumbelNoise(scale=2.0).std()), 6)
    2.5651
    """

    family = "gumbel"
    unit_variance: ClassVar[float] = np.pi**2 / 6

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.gumbel(size=shape)


@dataclass(frozen=True)
class ExponentialNoise(_SelectionNoise):
    """Independent one-sided noise of scores of which only the largest's place leaves.

    To add it to the scores of finitely many candidates and take the largest is
    permute-and-flip: candidates are asked in random order, and each is taken with
    probability ``exp((score - best score) / scale)``. At the same scale no number of
    ranks is exceeded more often than by the exponential mechanism (Gumbel noise), and
    the fewer candidates come into question, the more it gains, up to a factor of two.
    Like that, it is no noise of numbers.

    Parameters
    ----------
    scale : float, default=1.0
        In the unit of the scores.

    See Also
    --------
    skpuffer.privacy_loss.PurePair : What one selection costs.

    Notes
    -----
    Given the noise of all others, a candidate is the largest if its own exceeds some
    level, which has probability ``exp(-max(level, 0) / scale)``. If scores move by
    amounts of a range of r, the level moves by r at most, and the probability by a
    factor of ``exp(r / scale)`` at most. That a loss is at most ``r / scale`` is all
    that is proved; unlike that of the exponential mechanism it may be as low as minus
    that, too.

    References
    ----------
    McKenna and Sheldon (2020), Permute-and-flip: a new mechanism for differentially
    private selection; Ding et al. (2021), The permute-and-flip mechanism is identical
    to report-noisy-max with exponential noise.

    Examples
    --------
    >>> from skpuffer.noise import ExponentialNoise
    >>> float(ExponentialNoise(scale=2.0).std())
    2.0
    """

    family = "exponential"
    unit_variance: ClassVar[float] = 1.0

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.exponential(size=shape)
