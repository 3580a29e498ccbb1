"""Noise families by name, and the one of least expected error for a query."""

import math
from collections.abc import Sequence

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.noise import (
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
    Noise,
)

__all__ = [
    "AUTO",
    "FAMILIES",
    "TRIED",
    "compared",
    "least_error",
    "mean_square",
    "told_choice",
]

#: Name by which an accountant chooses the family itself.
AUTO = "auto"

#: Noise families by the name a user gives.
FAMILIES: dict[str, type[Noise]] = {
    family.family: family
    for family in (
        GaussianNoise,
        LaplaceNoise,
        GeneralizedGaussianNoise,
        GeneralizedCauchyNoise,
        DiscreteLaplaceNoise,
    )
}

#: Families that are tried: those without a shape that would have to be searched for,
#: and with a finite variance.
TRIED = ("gaussian", "laplace", "discrete_laplace")

#: Errors that differ by no more than this share count as equal: rounding.
_EQUAL = 1e-9


def mean_square(noise: Noise, dim: int | None) -> float:
    """Return the mean square of a noise, summed over the coordinates of the output.

    Parameters
    ----------
    noise : Noise
    dim : int or None
        Number of coordinates. Where it is not known, what is returned is that of one.

    Returns
    -------
    float
        The trace of the noise's covariance, in squared units of the output; infinite
        without a second moment.
    """
    return float(np.sum(noise.variance(dim)))


def least_error(errors: Sequence[float]) -> int:
    """Return where the least error is; of those about equal, the first.

    Parameters
    ----------
    errors : sequence of float

    Returns
    -------
    int
    """
    near = min(errors) * (1 + _EQUAL)
    return next(i for i, error in enumerate(errors) if error <= near)


def compared(name: str, error: float, least: float) -> Statement:
    """Say how many times the least the error of some noise is."""
    if error == least:
        return Statement("noise.same_error", name=name)
    if least == 0 or math.isinf(error):
        return Statement("noise.error_infinitely_larger", name=name)
    return Statement("noise.error_larger", name=name, ratio=error / least)


def told_choice(
    families: Sequence[str], errors: Sequence[float], best: int
) -> Statement:
    """Say which family was chosen, and against which others.

    Parameters
    ----------
    families : sequence of str
        Those that keep the promise.
    errors : sequence of float
        Of their noise, in squared units.
    best : int
        Position of the one that was chosen.

    Returns
    -------
    Statement
        For a certificate.

    Examples
    --------
    >>> from skpuffer.accountants._families import told_choice
    >>> print(told_choice(["gaussian", "laplace"], [13.9, 2.0], 1))
    laplace noise, of the least mean square error; against it gaussian (6.95 ×)
    """
    names = [family.replace("_", " ") for family in families]
    if len(names) == 1:
        return Statement("noise.only_family_keeping_promise", family=names[0])
    others = sorted(
        (error, name)
        for i, (error, name) in enumerate(zip(errors, names, strict=True))
        if i != best
    )
    against = tuple(compared(name, error, errors[best]) for error, name in others)
    return Statement("noise.family_of_least_error", family=names[best], against=against)
