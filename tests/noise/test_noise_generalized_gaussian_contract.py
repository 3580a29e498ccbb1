"""Generalised Gaussian noise keeps what every noise family promises."""

from scipy import stats

from skpuffer.noise import GeneralizedGaussianNoise

from .contract import NoiseContract


class _Contract(NoiseContract):
    family = GeneralizedGaussianNoise
    pure = False
    beta = 2.0

    def make(self, scale=1.0):
        return GeneralizedGaussianNoise(scale, beta=self.beta)


class TestBetween(_Contract):
    beta = 1.5
    unit = stats.gennorm(1.5)
    attained_norms = (1,)
    norms = (1.5, 2, 3)
    weights = ((0.5, 2.0),)
    scales = ((1.0, 3.0),)


class TestBeyond(_Contract):
    beta = 3.0
    unit = stats.gennorm(3.0)
    attained_norms = (1, 1.5, 2)
    # larger orders and shifts have their peak where the plain quadrature overflows
    orders = (1.1, 2.0, 4.5)
    shifts = (0.05, 1.0)
    # larger norms are refused
    norms = (1.5, 2)
    weights = ((0.5, 2.0),)
    scales = ((1.0, 3.0),)
