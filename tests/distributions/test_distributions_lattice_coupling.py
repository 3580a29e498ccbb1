"""Distances of lattice sums, and couplings of many pairs against each alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.distributions import Discrete, distribution_distance
from skpuffer.distributions._lattice_sum import (
    LatticeSum,
    largest_near_gap,
    monotone_gaps,
    on_one_lattice,
)
from skpuffer.transport import near_radius, quantile_coupling, wasserstein_distance
from tests.distributions.lattices import steps_apart
from tests.refused import refused

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


# -- two laws -------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=8).filter(any),
    st.lists(st.integers(0, 5), min_size=2, max_size=8).filter(any),
)
def test_a_lattice_distance_is_w_inf(u, v):
    atoms = [np.flatnonzero(counts) for counts in (u, v)]
    counts = [np.array(c, dtype=object)[a] for c, a in zip((u, v), atoms, strict=True)]
    truth = wasserstein_distance(*atoms, *(c.astype(int) for c in counts))
    assert steps_apart(*zip(atoms, counts, strict=True)) == truth
    masses = [c.astype(float) / sum(c) for c in counts]
    rough = steps_apart(*zip(atoms, masses, strict=True), 1e-9)
    assert rough >= truth


def test_equal_masses_may_cost_floats_one_step_and_integers_none():
    steps = np.arange(3)
    u, v = np.array([1, 1, 1], dtype=object), np.array([1, 1, 1], dtype=object)
    assert steps_apart((steps, u), (steps + 1, v)) == 1
    thirds = np.full(3, 1 / 3)
    assert steps_apart((steps, thirds), (steps + 1, thirds), 1e-12) == 2


@pytest.mark.parametrize("masses", [[0.3, 0.7], [0.7, 0.3]], ids=["lower", "upper"])
@pytest.mark.parametrize("errors", [(1e-8, 1e-8), (1e-8, 0.0), (0.0, 1e-8)])
def test_laws_within_the_error_are_no_further_apart(masses, errors):
    """As the masses are every atom moves a step; as they may be a sliver moves two."""
    steps, place = np.array([0, 5]), (np.zeros(1), np.ones(1))
    tilt = np.array([1, -1]) * 1e-10
    found, true = masses + tilt, masses - tilt
    assert wasserstein_distance(steps, steps + 5, masses, found) == 5
    assert wasserstein_distance(steps, steps + 5, masses, true) == 10
    u = LatticeSum(steps, np.array(masses), *place, errors[0])
    v = LatticeSum(steps + 5, found, *place, errors[1])
    assert distribution_distance(u, v) == distribution_distance(v, u) == 10


def test_a_mass_that_a_sum_of_floats_loses_is_not_lost():
    steps, place = np.array([0, 5, 10]), (np.zeros(1), np.ones(1))
    u = LatticeSum(steps, np.array([0.4, 1e-17, 0.6]), *place)
    v = LatticeSum(steps[[0, 2]], np.array([0.4, 0.6]), *place)
    sliver, share = Fraction(1e-17), Fraction(2, 5)
    truth = wasserstein_distance(
        steps, [0, 10], [share, sliver, 1 - share - sliver], [share, 1 - share]
    )
    assert distribution_distance(u, v) >= truth == 5


def test_masses_known_too_roughly_are_not_compared():
    steps, place = np.arange(3), (np.zeros(1), np.ones(1))
    u, v = (
        LatticeSum(steps, np.array(masses), *place, 1e-3)
        for masses in ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
    )
    with refused(ValueError, "distribution.mass_error_too_large"):
        distribution_distance(u, v)


# -- many pairs -----------------------------------------------------------------------


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
