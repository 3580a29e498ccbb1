"""Noise of scores: what is said of its size is that of its draws."""

import numpy as np
import pytest

from skpuffer.noise import ExponentialNoise, GumbelNoise


@pytest.mark.parametrize("kind", [ExponentialNoise, GumbelNoise])
def test_the_standard_deviation_is_that_of_the_draws(kind):
    noise = kind(scale=2.0)
    draws = noise.sample((100_000, 1), np.random.default_rng(0))
    assert np.std(draws) == pytest.approx(float(noise.std()), rel=0.02)
