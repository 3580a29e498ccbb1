"""What a split of masses into pairs is worth, at one scale and at the largest."""

import math

import numpy as np
from scipy.optimize import brentq

from skpuffer.privacy_loss._gaussian import gaussian_delta
from skpuffer.utils._types import Floats

__all__ = ["Split", "largest_scale", "worth"]

#: Masses of pairs, of the one member and of the other.
Split = tuple[Floats, Floats]


def worth(split: Split, mu: Floats) -> float:
    """Sum of the divergences of the pairs of a split."""
    x, y = split
    used = x > 0
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.log(y[used] / x[used])
    return float(x[used] @ gaussian_delta(ratio, mu[used]))


def largest_scale(
    split: Split, metric: Floats, target: float, scale: float, most: float
) -> float:
    """Largest scale up to `most` at which a split is worth no more than a target."""
    used = split[0] > 0
    split, metric = (split[0][used], split[1][used]), metric[used]
    if worth(split, scale * metric) > target:
        return scale
    if worth(split, most * metric) <= target:
        return most
    # from what a pair as far apart as any would allow, in decades
    low, high = scale, scale or 1e-6
    while worth(split, high * metric) <= target:
        low, high = high, min(most, 2 * high)
    if low == 0:
        return low
    found: float = brentq(
        lambda s: math.log(max(worth(split, s * metric), 1e-300) / target),
        low,
        high,
        xtol=1e-7 * low,
        rtol=1e-7,
    )
    return max(low, found * (1 - 1e-6))
