"""The two shapes that are families of their own keep every promise, too."""

import math

from scipy import stats

from skpuffer.noise import GeneralizedGaussianNoise

from .contract import NoiseContract


class _Contract(NoiseContract):
    family = GeneralizedGaussianNoise
    pure = False
    beta = 2.0

    def make(self, scale=1.0):
        return GeneralizedGaussianNoise(scale, beta=self.beta)


class TestShapeOfLaplace(_Contract):
    beta = 1.0
    unit = stats.laplace()
    pure = True
    attained_norms = (1,)


class TestShapeOfGauss(_Contract):
    unit = stats.norm(scale=math.sqrt(0.5))
    attained_norms = (1, 1.5, 2)
