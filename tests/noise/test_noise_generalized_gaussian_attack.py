"""Attackers on generalised Gaussian noise, with the best rule there is.

They see noise, or noise that moved by a displacement they know, and call what has the
larger privacy loss "moved". No promise may allow them less than they achieve.
"""

import math

import numpy as np
import pytest

from skpuffer.noise import GeneralizedGaussianNoise, Shift

from ..attack import clopper_pearson

EPSILONS = (0.0, 0.3, 1.0, 2.0, 3.0)


def achieved(beta, displacement, epsilon, n_draws, rng, failure=1e-4):
    """Lower bound of ``TPR - e^epsilon FPR``; the loss above epsilon is best."""
    noise, moves = GeneralizedGaussianNoise(1.0, beta=beta), np.asarray(displacement)

    def losses(at):
        x = at + noise.sample((n_draws, len(moves)), rng)
        return (np.abs(x) ** beta - np.abs(x - moves) ** beta).sum(axis=1)

    # a hair above, where losses are single numbers
    hits = int((losses(moves) > epsilon + 1e-9).sum())
    false = int((losses(0.0) > epsilon + 1e-9).sum())
    low, _ = clopper_pearson(hits, n_draws, failure)
    _, high = clopper_pearson(false, n_draws, failure)
    return low - math.exp(epsilon) * high


def displacements(beta):
    """Shifts, and displacements that they contain."""
    order = min(beta, 2)
    for u in (0.3, 1.0, 2.0):
        yield Shift(u, dim=1), [u]
        yield Shift(u, norm=1, dim=3), [u / 3] * 3
        for parts in (2, 5, 40):
            spread = [u / parts ** (1 / order)] * parts
            yield Shift(u, norm=order, dim=None), spread
    yield Shift(1.0, norm=2, dim=7), [math.sqrt(1 / 7)] * 7


@pytest.mark.slow
@pytest.mark.parametrize("beta", [1.0, 1.25, 1.5, 2.0, 3.0, 4.0])
def test_no_attacker_beats_the_trade_off(beta, n_trials):
    rng, n_draws = np.random.default_rng(int(beta * 100)), n_trials(40_000, least=4000)
    noise = GeneralizedGaussianNoise(1.0, beta=beta)
    for shift, displacement in displacements(beta):
        allowed = noise.delta(np.array(EPSILONS), shift)
        for epsilon, most in zip(EPSILONS, allowed, strict=True):
            assert achieved(beta, displacement, epsilon, n_draws, rng) <= most


@pytest.mark.parametrize("beta", [1.25, 3.0])
def test_the_attacker_comes_close(beta):
    rng = np.random.default_rng(4)
    noise = GeneralizedGaussianNoise(1.0, beta=beta)
    for epsilon in (0.0, 0.3):
        found = achieved(beta, [1.0], epsilon, 50_000, rng)
        assert 0.95 * noise.delta(epsilon, 1.0) <= found <= noise.delta(epsilon, 1.0)


def test_the_attacker_breaks_what_one_coordinate_would_promise():
    # the published claim: in its own norm the dimension does not matter
    rng, m, u = np.random.default_rng(5), 100, 0.5
    spread = [u / m ** (1 / 3)] * m
    noise = GeneralizedGaussianNoise(1.0, beta=3.0)
    found = achieved(3.0, spread, 0.5, 20_000, rng)
    assert found > 1.5 * noise.delta(0.5, u)
    # with the l2 radius of the same displacement all is well
    assert found <= noise.delta(0.5, Shift(float(np.linalg.norm(spread)), dim=None))
