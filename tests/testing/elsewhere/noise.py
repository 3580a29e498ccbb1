"""A noise family: the sum of two exponential draws of opposite sign."""

from dataclasses import dataclass

import numpy as np
from scipy.special import hyp1f1

from skpuffer.exceptions import Statement
from skpuffer.noise import MagnitudeNoise
from skpuffer.words import add_words

add_words("elsewhere", {"formula_by_hand": "the cost of {family} noise is not proved"})


def exp_remainder(x):
    """``exp(x) - 1 - x``, to all digits."""
    return x * x / 2 * hyp1f1(1, 3, x)


@dataclass(frozen=True)
class TwoSidedNoise(MagnitudeNoise):
    """Independent noise with density ``exp(-|x| / scale) / (2 scale)``."""

    family = "two_sided"
    norm = 1.0  # in l1 no displacement costs more than in one coordinate
    unit_variance = 2.0
    _evidence = ((), (Statement("elsewhere.formula_by_hand", family="two_sided"),))

    def _sample_unit(self, shape, rng):
        return rng.exponential(size=shape) - rng.exponential(size=shape)

    def _renyi(self, alpha, u):
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        pure = np.isinf(alpha) | np.isinf(u)
        alpha = np.minimum(alpha, 1e300)
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = alpha / (2 * alpha - 1), (alpha - 1) / (2 * alpha - 1)
            # where the growing factor does no harm
            grown, fallen = np.minimum((alpha - 1) * u, 1), np.minimum(alpha * u, 1e3)
            small = a * exp_remainder(grown) + b * exp_remainder(-fallen)
            large = u + np.log(a + b * np.exp((1 - 2 * alpha) * u)) / (alpha - 1)
            near = (alpha - 1) * u <= 1
            cost = np.where(near, np.log1p(small) / (alpha - 1), large)
        return np.where(pure, u, np.minimum(cost, u))

    def _delta(self, epsilon, u):
        epsilon, u = np.asarray(epsilon, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = -np.expm1((epsilon - u) / 2)
            value = np.where(epsilon <= -u, -np.expm1(epsilon), inside)
        value = np.where(epsilon >= u, 0.0, value)
        return np.where(np.isinf(u), 1.0, value)
