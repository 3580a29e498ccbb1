"""Generalised Gaussian noise keeps what every noise family promises."""

import pytest
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

    @pytest.mark.parametrize("norm", [1.5, 2, 3])
    @pytest.mark.parametrize("weights", [(0.5, 2.0)])
    @pytest.mark.parametrize("scale", [(1.0, 3.0)])
    def test_no_displacement_costs_more(self, norm, weights, scale):
        super().test_no_displacement_costs_more(norm, weights, scale)


class TestBeyond(_Contract):
    beta = 3.0
    unit = stats.gennorm(3.0)
    attained_norms = (1, 1.5, 2)

    # larger orders and shifts have their peak where the plain quadrature overflows
    @pytest.mark.parametrize("alpha", [1.1, 2.0, 4.5])
    @pytest.mark.parametrize("z", [0.05, 1.0])
    def test_cost_is_the_divergence_of_the_densities(self, alpha, z):
        super().test_cost_is_the_divergence_of_the_densities(alpha, z)

    # larger norms are refused
    @pytest.mark.parametrize("norm", [1.5, 2])
    @pytest.mark.parametrize("weights", [(0.5, 2.0)])
    @pytest.mark.parametrize("scale", [(1.0, 3.0)])
    def test_no_displacement_costs_more(self, norm, weights, scale):
        super().test_no_displacement_costs_more(norm, weights, scale)
