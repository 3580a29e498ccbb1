"""The parameter `noise` of accountants: a family by name, or a noise."""

import math
from typing import Protocol

import numpy as np

from skpuffer.noise import (
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
    Noise,
)
from skpuffer.utils._checks import check_option

__all__ = ["FAMILIES", "check_pure", "chosen_noise"]

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


class _NamesNoise(Protocol):
    """What has the parameter `noise`, and maybe `beta`."""

    noise: str | Noise


def chosen_noise(accountant: _NamesNoise) -> Noise:
    """Return the noise of an accountant at scale one.

    Parameters
    ----------
    accountant : Accountant
        With the parameter `noise`, and `beta` where it lets the shape be chosen.

    Returns
    -------
    Noise
        To be used as ``noise.with_scale(scale)``.

    Raises
    ------
    TypeError
        If `beta` is not a number.
    ValueError
        If the name is unknown, the noise has a scale for each coordinate, or `beta` is
        given to a family without that shape or is missing where one is needed.
    """
    noise, beta = accountant.noise, getattr(accountant, "beta", None)
    if isinstance(noise, Noise):
        if beta is not None:
            raise ValueError(
                "The parameter 'beta' goes with noise='generalized_gaussian'; a noise "
                f"that is given as one has its own shape. Got {beta!r}; omit it."
            )
        if np.ndim(noise.scale):
            raise ValueError(
                "The parameter 'noise' must have a single scale, which calibration "
                f"replaces. Got {noise!r}."
            )
        return noise.with_scale(1.0)
    check_option(tuple(FAMILIES), noise=noise)
    family = FAMILIES[noise]
    if family is not GeneralizedGaussianNoise:
        if beta is not None:
            raise ValueError(
                "The parameter 'beta' goes with noise='generalized_gaussian'. "
                f"Got noise={noise!r} and beta={beta!r}."
            )
        return family(1.0)
    if beta is None:
        raise ValueError(
            "The parameter 'beta', the shape of generalised Gaussian noise, is needed: "
            "at least 1 (Laplace noise); 2 is Gaussian noise."
        )
    return family(1.0, beta=beta)


def check_pure(noise: Noise) -> None:
    """Refuse a noise of unbounded privacy loss, which can keep no pure promise.

    Parameters
    ----------
    noise : Noise

    Raises
    ------
    ValueError
        If no scale of the noise has a finite pure-epsilon cost.
    """
    if math.isinf(noise.pure_epsilon(1.0)):
        raise ValueError(
            "The parameter 'alpha' is infinite (a pure promise), which "
            f"{noise.family} noise cannot keep. Use noise='laplace', a finite 'alpha', "
            "or 'delta'."
        )
