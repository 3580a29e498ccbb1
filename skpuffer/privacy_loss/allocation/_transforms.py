"""Powers of the Fourier transforms of lattice laws, and their rounding errors."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.fft import irfft, rfft

from skpuffer.utils._types import Array, Floats

__all__ = ["sum_of_terms"]

#: Unit of rounding of a transform, of which log2(length) are charged: Higham (2002),
#: Accuracy and stability of numerical algorithms, Theorem 24.2.
_ROUNDED = 6 * 2.0**-53


def sum_of_terms(
    parts: Sequence[tuple[Floats, int]], length: int
) -> tuple[Floats, float]:
    """Return the law of a sum of independent terms on a cycle.

    Parameters
    ----------
    parts : sequence of (ndarray of shape (length,), int)
        Laws of terms, of mass one, and their numbers.
    length : int

    Returns
    -------
    masses : ndarray of shape (length,)
    error : float
        Bound of the root of the sum of squares of the rounding errors.
    """
    transforms = [(rfft(law), count) for law, count in parts]
    # An error of one of several equal factors changes their product by as much times
    # the rest, and the masses' root of the sum of squares is that of the transforms
    # over the root of the length, by Parseval.
    powers = [_power(each, count - 1) for each, count in transforms]
    whole = math.prod(
        rest * each for rest, (each, _) in zip(powers, transforms, strict=True)
    )
    change = np.abs(whole)
    for i, (_, count) in enumerate(transforms):
        others = (_power(*other) for j, other in enumerate(transforms) if j != i)
        change = change + count * np.abs(math.prod(others, start=powers[i]))
    spread = math.sqrt(2 * float(change @ change) / length)
    return irfft(whole, length), _ROUNDED * math.log2(length) * spread


def _power(transform: Array, count: int) -> Array:
    """Power by repeated squaring: many times as fast as by logarithms."""
    power = np.ones_like(transform)
    while count:
        if count % 2:
            power = power * transform
        count //= 2
        if count:
            transform = transform * transform
    return power
