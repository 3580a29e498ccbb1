"""Gumbel noise on scores: the exponential mechanism, by a maximum."""

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from skpuffer.exceptions import UnsupportedError
from skpuffer.utils._types import Floats

from ._base import Noise, Shift


@dataclass(frozen=True)
class GumbelNoise(Noise):
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
    norm = float("inf")
    unit_variance: ClassVar[float] = np.pi**2 / 6

    def _sample_unit(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.gumbel(size=shape)

    def _resolved(self, shift: Shift | Floats) -> NoReturn:
        raise UnsupportedError(
            "Gumbel noise is for the scores of a selection, and hides no vector: use "
            "another noise, such as 'gaussian' or 'laplace'."
        )
