"""Couplings of many pairs of lattice sums, against those of each pair alone."""

from fractions import Fraction

import numpy as np
import pytest

from skpuffer.distributions import Discrete
from skpuffer.distributions._lattice_sum import (
    LatticeSum,
    largest_near_gap,
    monotone_gaps,
    on_one_lattice,
)
from skpuffer.transport import near_radius, quantile_coupling, wasserstein_distance

PLACE = np.zeros(1), np.ones(1)


def _random_pairs(rng, n_pairs):
    """Bumps of different widths on different parts of one lattice."""

    def one():
        steps = np.arange(*np.sort(rng.choice(60, 2, replace=False)) + [0, 1])
        masses = np.exp(-(((steps - rng.uniform(15, 45)) / rng.uniform(3, 9)) ** 2))
        return LatticeSum(steps, masses / masses.sum(), *PLACE)

    return [(one(), one()) for _ in range(n_pairs)]


def _alone(function, u, v, *args):
    return function(u.points[:, 0], v.points[:, 0], *args, u.weights, v.weights)


@pytest.mark.parametrize("spare", [1e-9, 1e-4, 0.1, 0.6])
def test_near_gap_is_the_largest_of_the_near_radii(spare):
    pairs = _random_pairs(np.random.default_rng(7), 12)
    radii = [_alone(near_radius, u, v, spare) for u, v in pairs]
    most = max(_alone(wasserstein_distance, u, v) for u, v in pairs)
    gap, at = largest_near_gap(pairs, spare, int(most))
    assert gap == max(radii) == radii[at]
    # nothing is gained where nothing but the whole mass may be kept
    assert largest_near_gap(pairs, 1e-30, int(most))[0] == most


def test_near_gap_leaves_out_no_more_than_is_spare():
    # a mass of 1e-3 beyond reach: just too much, and just enough
    u = LatticeSum(np.array([0]), np.ones(1), *PLACE)
    v = LatticeSum(np.array([0, 5]), np.array([0.999, 0.001]), *PLACE)
    assert largest_near_gap([(u, v)], 0.00099, 5)[0] == 5
    assert largest_near_gap([(u, v)], 0.00101, 5)[0] == 0


def test_monotone_gaps_are_those_of_the_quantile_coupling():
    pairs = _random_pairs(np.random.default_rng(3), 20)
    masses, error = monotone_gaps(pairs)
    assert 0 < error < 1e-12
    for row, (u, v) in zip(masses, pairs, strict=True):
        x, y, mass = _alone(quantile_coupling, u, v)
        alone = np.bincount(np.abs(x - y).astype(int), mass, minlength=len(row))
        # to their last digits, however small
        np.testing.assert_allclose(row, alone, rtol=1e-11, atol=0)


def test_masses_that_levels_do_not_tell_are_left_to_each_pair():
    steps = np.arange(4)
    masses = np.array([0.3, 1e-12, 0.1, 0.6 - 1e-12])
    uneven = LatticeSum(steps, masses, *PLACE)
    even = LatticeSum(steps, np.full(4, 0.25), *PLACE)
    assert monotone_gaps([(even, even)]) is not None
    assert monotone_gaps([(even, uneven)]) is None


def test_other_lattices_and_exact_masses_are_not_taken_together():
    steps, masses = np.arange(2), np.full(2, 0.5)
    u = LatticeSum(steps, masses, *PLACE)
    assert on_one_lattice([(u, u)])
    for other in (
        LatticeSum(steps, masses, np.ones(1), np.ones(1)),
        LatticeSum(steps, masses, np.zeros(1), np.full(1, 2.0)),
        LatticeSum(steps, np.array([1, 1], dtype=object), *PLACE),
        Discrete([0, 1], [Fraction(1, 2), Fraction(1, 2)]),
    ):
        assert not on_one_lattice([(u, other)])
