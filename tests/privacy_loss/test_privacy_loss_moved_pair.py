"""Random batches in which a record's gradient moves a little."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from skpuffer.kernel.plain import to_plain
from skpuffer.noise import GaussianNoise
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import MovedPair, ReplacePoissonPair

GRID = np.linspace(-10, 10, 6001)
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])


def curve(shift):
    return GaussianNoise(1.0).curve(shift)


def divergences(weights, moves):
    """Hockey-stick divergence of two mixtures of normals, by quadrature."""
    first, second = (
        sum(w * norm.pdf(GRID, j * move) for j, w in enumerate(weights))
        for move in moves
    )
    step = GRID[1] - GRID[0]
    return np.array(
        [np.maximum(first - np.exp(e) * second, 0).sum() * step for e in EPSILONS]
    )


@pytest.mark.parametrize("trials, chance", [(1, 0.05), (1, 0.6), (3, 0.2)])
@pytest.mark.parametrize("moved", [0.1, 1.0])
def test_no_mixture_of_batches_exceeds_the_pair(trials, chance, moved):
    weights = binom.pmf(np.arange(trials + 1), trials, chance)
    bound = MovedPair(curve(moved), curve(1.5), trials, chance).delta(EPSILONS)
    worst = np.zeros_like(EPSILONS)
    for first in np.linspace(-1.5, 1.5 - moved, 5):
        for moves in ((first, first + moved), (first + moved, first)):
            found = divergences(weights, moves)
            assert np.all(found <= bound * (1 + 1e-5) + 1e-9)
            worst = np.maximum(worst, found)
    # at zero, total variation, it is attained by those that go on opposite ways
    assert worst[0] >= 0.9 * bound[0]


def test_a_smaller_move_costs_less_and_none_nothing():
    bounds = [
        MovedPair(curve(s), curve(1.0), 1, 0.1).delta(EPSILONS)
        for s in (1e-9, 0.1, 0.5, 1.0, 2.0)
    ]
    assert np.all(np.diff(bounds, axis=0) >= 0)
    assert np.all(bounds[0] < 1e-9)
    # at twice the length it is no more than what holds for any other record
    plain = ReplacePoissonPair(curve(1.0), 0.1).delta(EPSILONS)
    assert np.all(bounds[-1] <= plain * (1 + 1e-12))


def test_it_is_written_and_read_back():
    pair = MovedPair(curve(0.1), curve(1.0), 2, 0.1)
    assert from_plain(to_plain(pair)) == pair
