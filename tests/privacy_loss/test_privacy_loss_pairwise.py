"""Amplification by overlap, pair by pair."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from skpuffer.kernel.plain import to_plain
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._overlap import (
    FiniteOverlap,
    OverlapCurve,
    PairwiseOverlap,
    PairwiseOverlapCurve,
    amplified_budgets,
    largest_pairwise_mu,
    pairwise_overlap,
)
from skpuffer.privacy_loss._overlap._pair_splitting import GAP, PairSplitting
from tests.refused import refused

#: What a bound may exceed the least one by.
ABOVE = 1 / (1 - GAP) + 1e-9


def on_a_line(records):
    records = np.asarray(records, float)
    return np.abs(records[:, None] - records)


def curve_of(laws, costs, mu=1.0, odds=1.0, **options):
    overlaps = [FiniteOverlap(tuple(p), tuple(q), odds) for p, q in laws]
    return PairwiseOverlapCurve(
        GaussianCurve(mu), pairwise_overlap(overlaps, costs, **options)
    )


def theorem_i(curve):
    return OverlapCurve(curve.curve, curve.overlap)


def truth(p, q, records, noise, epsilon):
    """Hockey-stick divergence of noisy records, the larger of both orders."""
    x = np.linspace(min(records) - 10 * noise, max(records) + 10 * noise, 20_001)
    densities = stats.norm.pdf(x, np.asarray(records)[:, None], noise)
    first, second = p @ densities, q @ densities
    return max(
        np.trapezoid(np.maximum(u - math.exp(epsilon) * v, 0), x)
        for u, v in ((first, second), (second, first))
    )


def random_case(seed, n=24, dim=6):
    """Records in the unit ball, with costs as shares, and two of their laws."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim))
    rows *= rng.uniform(size=(n, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    costs = np.linalg.norm(rows[:, None] - rows, axis=2) / 2
    p = rng.dirichlet(np.ones(n))
    q = p * np.exp(rng.normal(scale=0.7, size=n))
    return (p, q / q.sum()), costs


# -- numbers that were computed apart -------------------------------

THREE = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
FOUR = (0.4, 0.3, 0.1, 0.2), (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize(
    "law, records, epsilon, exact",
    [
        (THREE, (0, 0.5, 1), 0.0, 0.1148774768),
        (THREE, (0, 0.5, 1), 0.3, 0.0228305037),
        (THREE, (0, 0.5, 1), 0.6, 0.0005952156),
        (((0.6, 0.4), (0.4, 0.6)), (0, 1), 0.1, 0.0372266214),
        (((0.6, 0.4), (0.4, 0.6)), (0, 1), 0.3, 0.0014915799),
        (FOUR, (0, 0.6, 0.8, 1), 0.3, 0.0336865748),
    ],
)
def test_least_bounds_of_pairs(law, records, epsilon, exact):
    curve = curve_of([law], on_a_line(records))
    found = curve.delta(epsilon)
    assert exact - 6e-11 <= found <= exact * ABOVE + 6e-11
    assert found <= theorem_i(curve).delta(epsilon)


# -- never below the truth -------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_no_noisy_record_diverges_more(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 7)
    p, q = rng.dirichlet(np.full(n, 0.7), size=2)
    records = np.append(rng.uniform(size=n - 1), 0.0)
    noise = 10 ** rng.uniform(-1, 0.7)
    curve = curve_of([(p, q)], on_a_line(records), 1 / noise)
    for epsilon in (-0.4, 0.2, 1.0):
        exact = truth(p, q, records, noise, epsilon)
        found = curve.delta(epsilon)
        assert exact <= found + 2e-8
        assert found <= theorem_i(curve).delta(epsilon) <= curve.curve.delta(epsilon)


def test_every_round_bounds_and_the_first_ones_are_no_guess():
    (p, q), costs = random_case(0)
    first = np.maximum(p - math.exp(0.1) * q, 0)
    second = np.maximum(math.exp(0.1) * q - p, 0)
    found = [
        PairSplitting(costs).bound(first, second, 0.5, rounds=rounds)
        for rounds in (*range(8), 60)
    ]
    assert np.all(np.diff(found) <= 0)
    assert found[-1] < 0.5 * found[0]
    # the least one: a test that the costs allow attains it
    assert found[-1] <= attained(first, second, 0.5 * costs) * ABOVE


def attained(plus, minus, mu):
    """Most of a difference that local search finds, from its own parametrisation."""
    from scipy.optimize import LinearConstraint, minimize

    rows, columns = np.flatnonzero(plus), np.flatnonzero(minus)
    up, down = plus[rows], minus[columns]
    n, m = len(up), len(down)
    table = np.zeros((n * m, n + m))
    pairs = np.indices((n, m)).reshape(2, -1)
    every = np.arange(n * m)
    table[every, pairs[0]], table[every, n + pairs[1]] = 1, -1
    limits = mu[np.ix_(rows, columns)].ravel()
    scale = 1e-4

    def value(t):
        low, high = t[n:], t[:n]
        gains = np.concatenate([up * stats.norm.pdf(high), -down * stats.norm.pdf(low)])
        found = up @ stats.norm.cdf(high) - down @ stats.norm.cdf(low)
        return -found / scale, -gains / scale

    start = min(
        (np.full(n + m, level) for level in np.linspace(-4, 0, 9)),
        key=lambda t: value(t)[0],
    )
    found = minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        constraints=LinearConstraint(table, -np.inf, limits),
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert np.all(table @ found.x <= limits + 1e-8)
    return -found.fun * scale


# -- what must not matter, and what must -------------------------------


def test_order_of_the_values_does_not_matter():
    (p, q), costs = random_case(1, n=20)
    turned = np.random.default_rng(0).permutation(len(p))
    one = curve_of([(p, q)], costs, 0.4)
    other = curve_of([(p[turned], q[turned])], costs[np.ix_(turned, turned)], 0.4)
    swapped = curve_of([(q, p)], costs, 0.4)
    for curve in (other, swapped):
        assert curve.delta(0.1) == pytest.approx(one.delta(0.1), rel=2 * GAP)


def test_bounds_fall_with_epsilon_and_rise_with_mu():
    (p, q), costs = random_case(2, n=12)
    found = np.array(
        [
            [curve_of([(p, q)], costs, mu).delta(e) for e in (0.0, 0.1, 0.4)]
            for mu in (0.4, 1.5)
        ]
    )
    assert np.all(np.diff(found, axis=0) >= -GAP * found[1:])
    assert np.all(np.diff(found, axis=1) <= GAP * found[:, :-1])


def test_less_cost_is_less_delta_and_shorter_chains_count():
    (p, q), costs = random_case(3, n=20)
    least = curve_of([(p, q)], costs, 0.8).delta(0.2)
    # costs of all pairs that chains of pairs undercut say nothing more
    loose = costs.copy()
    loose[3, 7] = loose[7, 3] = 1.0
    assert costs[3, 7] < 0.9
    chained = np.minimum(loose, np.min(loose[3, :] + loose[:, 7]))
    overlap = curve_of([(p, q)], loose, 0.8).overlap
    assert overlap.metric[3, 7] <= chained[3, 7] < 1
    assert least <= curve_of([(p, q)], np.sqrt(costs), 0.8).delta(0.2)
    # where all values are as far apart as any it is the bound without pairs
    equal = 1.0 - np.eye(20)
    curve = curve_of([(p, q)], equal, 0.8)
    assert curve.delta(0.2) == pytest.approx(theorem_i(curve).delta(0.2), rel=GAP)


def test_values_that_are_read_alike_are_one():
    p, q = (0.3, 0.3, 0.4), (0.1, 0.5, 0.4)
    costs = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0.0]])
    curve = curve_of([(p, q)], costs)
    assert theorem_i(curve).delta(0.1) > 0.01
    assert curve.delta(0.1) == pytest.approx(0, abs=1e-14)


def test_the_worst_pair_of_distributions_counts():
    (p, q), costs = random_case(4, n=10)
    (r, s), _ = random_case(5, n=10)
    alone = [curve_of([law], costs, 0.5).delta(0.1) for law in ((p, q), (r, s))]
    both = curve_of([(p, q), (r, s)], costs, 0.5).delta(0.1)
    assert both == pytest.approx(max(alone), rel=2 * GAP)


# -- what is left open, and what is merged -------------------------------


def split(p, q, w, rng):
    """Masses of the values with one of two rests, whose odds range by w."""
    share = rng.uniform(0.02, 0.98, len(q))
    spread = w ** rng.uniform(0.5, 1, len(q))
    other = spread * share / (1 + (spread - 1) * share)
    return np.concatenate([p * other, p * (1 - other)]), np.concatenate(
        [q * share, q * (1 - share)]
    )


@pytest.mark.parametrize("seed", range(2))
def test_no_rest_within_its_odds_diverges_more(seed):
    rng = np.random.default_rng(seed)
    n, w = 6, 2.0
    p, q = rng.dirichlet(np.ones(n), size=2)
    # a label as the rest: the record is at x, or at -x
    places = rng.uniform(0.1, 0.5, n)
    both = np.concatenate([places, -places])
    full = on_a_line(both)
    parts = full.reshape(2, n, 2, n)
    curve = curve_of([(p, q)], parts.max(axis=(0, 2)), 1.5, odds=w)
    for epsilon in (0.2,):
        bound = curve.delta(epsilon)
        assert bound <= theorem_i(curve).delta(epsilon)
        for _ in range(3):
            first, second = split(p, q, w, rng)
            exact = truth(first, second, both, 1 / 1.5, epsilon)
            assert exact <= bound + 2e-8
            pairs = curve_of([(first, second)], full, 1.5).delta(epsilon)
            assert pairs <= bound * ABOVE


def test_a_rest_of_equal_odds_is_no_rest():
    (p, q), costs = random_case(6, n=12)
    inside = costs + np.diag(np.full(12, 0.5))
    open_ended = curve_of([(p, q)], inside, 0.6, odds=1.0).delta(0.1)
    assert open_ended == pytest.approx(curve_of([(p, q)], costs, 0.6).delta(0.1))
    assert open_ended < curve_of([(p, q)], inside, 0.6, odds=1.5).delta(0.1)
    # where nothing that is left open is read, its odds do not count
    assert curve_of([(p, q)], costs, 0.6, odds=4.0).delta(0.1) == pytest.approx(
        open_ended, rel=2 * GAP
    )


def test_merged_values_bound_and_gain():
    (p, q), costs = random_case(7, n=30, dim=2)
    least = curve_of([(p, q)], costs, 0.6)
    found = least.delta(0.1)
    for most in (20, 8):
        merged = curve_of([(p, q)], costs, 0.6, most_groups=most)
        assert len(merged.overlap.costs) <= most
        assert merged.overlap._etas(0.1) == least.overlap._etas(0.1)
        found, last = merged.delta(0.1), found
        assert last * (1 - GAP) <= found < theorem_i(least).delta(0.1)


def test_merging_never_goes_below_the_truth():
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet(np.ones(10), size=2)
    records = rng.uniform(size=10)
    curve = curve_of([(p, q)], on_a_line(records), 2.0, most_groups=4)
    assert truth(p, q, records, 0.5, 0.3) <= curve.delta(0.3) + 2e-8


# -- searches -------------------------------


@pytest.mark.parametrize("epsilon, odds", [(0.1, 1.0), (0.3, 2.0)])
def test_the_largest_mu_keeps_the_budget_and_no_larger_one(epsilon, odds):
    (p, q), costs = random_case(9, n=8)
    costs = costs + (odds > 1) * np.diag(np.full(8, 0.3))
    overlap = pairwise_overlap([FiniteOverlap(tuple(p), tuple(q), odds)], costs)
    mu = largest_pairwise_mu(overlap, epsilon, 1e-5)
    curve = PairwiseOverlapCurve(GaussianCurve(mu), overlap)
    assert curve.delta(epsilon) <= 1e-5
    # at any epsilon it is found again, and never above what was asked for
    assert epsilon * (1 - 5e-3) <= curve.epsilon(1e-5) <= epsilon
    more = PairwiseOverlapCurve(GaussianCurve(1.01 * mu), overlap)
    assert more.delta(epsilon) > 1e-5
    # more than without pairs, and no more than is asked for
    for budget in amplified_budgets(overlap, epsilon, 1e-5):
        assert GaussianCurve(mu / 1.2).delta(budget[0]) > budget[1]
    assert largest_pairwise_mu(overlap, epsilon, 1e-5, most=mu / 2) == mu / 2


def test_a_belief_that_is_within_the_budget_asks_for_nothing():
    overlap = pairwise_overlap([FiniteOverlap((0.5, 0.5), (0.5, 0.5))], 1 - np.eye(2))
    assert largest_pairwise_mu(overlap, 0.1, 1e-5, most=3.0) == 3.0
    assert PairwiseOverlapCurve(GaussianCurve(3.0), overlap).epsilon(1e-5) == 0


def test_limits():
    (p, q), costs = random_case(10, n=8)
    overlap = curve_of([(p, q)], costs).overlap
    for mu in (0.0, 1e-9, 1e3, math.inf):
        curve = PairwiseOverlapCurve(GaussianCurve(mu), overlap)
        assert curve.delta(0.1) <= max(overlap.etas(0.1)) + 1e-11
        assert curve.delta(1e4) == pytest.approx(0, abs=1e-9)
        assert 0 <= curve.delta(-3.0) <= 1
    assert PairwiseOverlapCurve(GaussianCurve(0.0), overlap).epsilon(1e-5) == 0
    curve = PairwiseOverlapCurve(GaussianCurve(1.0), overlap)
    assert curve.renyi(3.0) == GaussianCurve(1.0).renyi(3.0)
    assert curve.gaussian_mu is None


def test_a_curve_is_read_back():
    (p, q), costs = random_case(11, n=12)
    for most in (12, 5):
        curve = curve_of([(p, q)], costs, odds=1.5, most_groups=most)
        read = from_plain(json.loads(json.dumps(to_plain(curve))))
        assert read == curve
        assert read.delta(0.3) == curve.delta(0.3)


# -- bad input -------------------------------

COIN = (FiniteOverlap((0.6, 0.4), (0.4, 0.6)),)


@pytest.mark.parametrize(
    "overlaps, costs, groups, code",
    [
        (COIN, ((0.0, 1.0),), None, "belief.costs_not_square"),
        (COIN, ((0.0, 1.5), (1.5, 0.0)), None, "belief.costs_out_of_range"),
        (COIN, ((0.0, math.nan), (math.nan, 0.0)), None, "belief.costs_out_of_range"),
        (COIN, ((0.0, -0.5), (-0.5, 0.0)), None, "belief.costs_out_of_range"),
        (COIN, ((0.0, 0.5), (0.4, 0.0)), None, "belief.costs_not_symmetric"),
        (COIN, ((0.0,),), None, "belief.overlaps_values_mismatch"),
        (COIN, ((0.0,),), (0, 1), "belief.overlaps_values_mismatch"),
        ((), ((0.0,),), None, "belief.overlaps_values_mismatch"),
        (
            (FiniteOverlap((1.0,), (0.5, 0.5)),),
            ((0.0,),),
            None,
            "belief.overlaps_values_mismatch",
        ),
    ],
)
def test_refused(overlaps, costs, groups, code):
    with refused(ValueError, code):
        PairwiseOverlap(overlaps, costs, groups)


def test_only_gaussian_runs_are_compared_by_pairs():
    overlap = PairwiseOverlap(COIN, ((0.0, 1.0), (1.0, 0.0)))
    with refused(ValueError, "belief.curve_not_gaussian"):
        PairwiseOverlapCurve(LaplaceNoise(1.0).curve(1.0), overlap)
