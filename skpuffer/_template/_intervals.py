"""How far noise may move what is released: standard errors and intervals."""

import math
from functools import singledispatch

import numpy as np
from scipy.special import ndtri

from skpuffer.exceptions import unsupported_error
from skpuffer.kernel.laplace import DiscreteLaplaceNoise, LaplaceNoise
from skpuffer.kernel.noise import GaussianNoise, Noise
from skpuffer.kernel.numbers import Floats, check_probability
from skpuffer.kernel.releases import Release
from skpuffer.releases import AdaptiveRelease, SelectionRelease

__all__ = ["interval_width", "noise_error"]


def interval_width(noise: Noise, level: float) -> float:
    """Return half the width of a central interval, in standard deviations.

    Each coordinate lies within so many of its deviations with at least `level`.
    """
    level = check_probability(level=level)
    return 0.0 if noise.is_zero else _width(noise, level)


@singledispatch
def _width(noise: Noise, level: float) -> float:
    """Half the width of an interval, of noise that is some."""
    raise unsupported_error("noise.quantiles_unknown", owner=type(noise).__name__)


@_width.register
def _(noise: GaussianNoise, level: float) -> float:
    # each coordinate is Gaussian, also of correlated noise
    return float(ndtri((1 + level) / 2))


@_width.register
def _(noise: LaplaceNoise, level: float) -> float:
    # P(|x| > t) = exp(-t) at scale one, of variance 2
    return -math.log1p(-level) / math.sqrt(2)


@_width.register
def _(noise: DiscreteLaplaceNoise, level: float) -> float:
    # P(|x| > k) = 2 t^(k+1) / (1 + t), at whole numbers k alone
    t = math.exp(-1 / noise.scale)
    tail = math.log((1 - level) * (1 + t) / 2) * -noise.scale
    whole = max(0, math.ceil(tail * (1 - 1e-12)) - 1)
    # of a tiny scale the variance is no float
    return whole / math.sqrt(noise._variance()) if whole else 0.0


@singledispatch
def noise_error(release: Release, noise: Noise) -> Floats | None:
    """Return the root mean square error by noise of each coordinate noised, or None.

    A single number is for all coordinates; it is infinite without a variance.
    """
    return np.atleast_1d(noise.std(getattr(release, "dim", None)))


@noise_error.register
def _(release: AdaptiveRelease, noise: Noise) -> Floats:
    # in a row, each in its own units
    return np.repeat(
        [release.deviation(i, noise) for i in range(len(release.stages))],
        [stage.dim * stage.times for stage in release.stages],
    )


@noise_error.register
def _(release: SelectionRelease, noise: Noise) -> None:
    # how far off a choice is depends on the rows
    return None
