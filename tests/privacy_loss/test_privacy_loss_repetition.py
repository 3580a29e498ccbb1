"""The best of a random number of runs: enumerated, and against what papers state.

Whatever a curve promises of the best run is compared with the divergence of its exact
distribution, which for finitely many outputs and for Gaussian ones can be computed.
"""

import json
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import geom, logser, nbinom, norm, poisson

from skpuffer.kernel.composed_curves import WorstCurve
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import (
    BestRunCurve,
    GaussianCurve,
    PrivacyLossCurve,
    PurePair,
    RandomRuns,
    RenyiCurve,
    compose_curves,
)
from skpuffer.privacy_loss._overlap import OverlapCurve
from skpuffer.privacy_loss._overlap._kinds import finite_overlap
from skpuffer.privacy_loss._repetition import _largest, _least_of_lines
from tests.refused import refused

SHAPES = [0.0, 0.2, 0.5, 1.0, 4.0, math.inf]


# -- exact distributions, by code that shares nothing with the library -----------------


def masses_of(runs):
    """Probabilities of 1, 2, ... runs, by SciPy's distributions."""
    counts = np.arange(1, 40_000)
    if runs.is_poisson:
        found = poisson.pmf(counts, runs.rate)
    elif runs.shape == 0:
        return counts, logser.pmf(counts, 1 - runs.stop)
    else:
        found = nbinom.pmf(counts, runs.shape, runs.stop)
    return counts, found / found.sum()


def best_of(masses, counts, chances):
    """Distribution of the best of K draws: outputs are listed from worst to best."""
    below = np.concatenate([[0.0], np.cumsum(chances)])
    return np.diff(masses @ below[np.newaxis, :] ** counts[:, np.newaxis])


def hockey_stick(first, second, epsilon):
    one = np.sum(np.maximum(first - math.exp(epsilon) * second, 0))
    other = np.sum(np.maximum(second - math.exp(epsilon) * first, 0))
    return max(one, other)


def renyi(first, second, alpha):
    loss = np.log(first) - np.log(second)
    if math.isinf(alpha):
        return np.max(np.abs(loss))
    with np.errstate(over="ignore"):
        one = np.log(np.sum(first * np.exp((alpha - 1) * loss)))
        other = np.log(np.sum(second * np.exp(-(alpha - 1) * loss)))
    return max(one, other) / (alpha - 1)


class FiniteCurve:
    """The exact curve of a pair of finite distributions."""

    gaussian_mu = None

    def __init__(self, first, second):
        self.pair = first, second

    def renyi(self, alpha):
        return renyi(*self.pair, alpha)

    def delta(self, epsilon):
        return hockey_stick(*self.pair, epsilon)

    def epsilon(self, delta):
        low, high = 0.0, 100.0
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def worst_answers(epsilon):
    """Two answers to which a pure promise is as weak as can be, once repeated.

    The best answer is likelier on the second table, so that others are chosen less
    often there, and a rare one in the middle is likelier on the first table.
    """
    likely, rare = 0.99 / (1 + math.exp(epsilon)), 1e-3
    first = np.array([0.0, rare * math.exp(epsilon), likely])
    second = np.array([0.0, rare, likely * math.exp(epsilon)])
    first[0], second[0] = 1 - first.sum(), 1 - second.sum()
    return np.array([first, second])


def assert_bounds(curve, first, second):
    # of what is hardly there, rounding leaves no ratio
    orders = (1.1, 2.0, 5.0, 30.0, math.inf)
    for alpha in orders if min(first.min(), second.min()) > 1e-9 else ():
        assert renyi(first, second, alpha) <= curve.renyi(alpha) + 1e-9
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        assert hockey_stick(first, second, epsilon) <= curve.delta(epsilon) + 1e-12
    for delta in (0.1, 1e-2, 1e-5):
        assert hockey_stick(first, second, curve.epsilon(delta)) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.3, 4.0, 25.0])
def test_numbers_of_runs_have_the_distribution_that_is_named(shape, mean):
    runs = RandomRuns(mean, shape)
    counts, expected = masses_of(runs)
    found = runs.masses(1 - 1e-9)
    np.testing.assert_allclose(found, expected[: len(found)], rtol=1e-6, atol=1e-12)
    # as many as it takes, and no more
    assert found.sum() - found[-1] < 1 - 1e-9 <= found.sum()
    assert np.sum(counts * expected) == pytest.approx(mean, rel=1e-4)
    # the slope of the generating function, whatever the quantile
    p = np.linspace(0, 1, 7)
    slope = (counts * expected) @ (1 - p) ** (counts[:, np.newaxis] - 1)
    np.testing.assert_allclose(np.exp(runs.log_slope(p)), slope, rtol=1e-3)
    assert runs.chance_of_missing(0.2) == pytest.approx(
        np.sum(expected * 0.8**counts), rel=1e-6
    )
    assert runs.chance_of_missing(0.0) == pytest.approx(1.0)
    assert runs.chance_of_missing(1.0) == pytest.approx(0.0, abs=1e-12)


def test_a_geometric_number_is_scipys():
    counts = np.arange(1, 30)
    found = RandomRuns(5.0, 1.0).masses(0.99)
    np.testing.assert_allclose(found, geom.pmf(counts, 0.2)[: len(found)])


@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_numbers_have_that_distribution(shape, n_trials):
    runs, n = RandomRuns(3.0, shape), n_trials(20_000)
    rng = np.random.default_rng(0)
    drawn = np.bincount([runs.draw(rng) for _ in range(n)], minlength=8)[:8]
    expected = np.concatenate([[0.0], masses_of(runs)[1][:7]])
    assert drawn[0] == 0
    np.testing.assert_allclose(
        drawn / n, expected, atol=5 * math.sqrt(0.25 / n), rtol=0
    )


@pytest.mark.parametrize("shape", [0.0, 100.0, math.inf])
def test_large_numbers_are_drawn_as_well(shape, n_trials):
    """The first masses of a Poisson number of thousands are less than a float holds."""
    runs, n = RandomRuns(3000.0, shape), n_trials(150)
    rng = np.random.default_rng(0)
    drawn = [runs.draw(rng) for _ in range(n)]
    counts, masses = masses_of(runs)
    deviation = math.sqrt(np.sum(masses * (counts - 3000.0) ** 2))
    assert abs(np.mean(drawn) - 3000.0) < 5 * deviation / math.sqrt(n)
    assert np.std(drawn) > 0.7 * deviation
    assert len(set(drawn)) > n / 20


# -- the promise against the truth -----------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_it_bounds_randomised_response_enumerated(shape):
    """Two answers, the truth told at odds of e: the best of all runs."""
    for epsilon in (0.2, 1.0, 2.5):
        truth = 1 / (1 + math.exp(-epsilon))
        first, second = np.array([1 - truth, truth]), np.array([truth, 1 - truth])
        pure = PrivacyLossCurve(((PurePair(epsilon), 1),))
        for mean in (1.5, 5.0, 40.0):
            runs = RandomRuns(mean, shape)
            counts, masses = masses_of(runs)
            best = [best_of(masses, counts, each) for each in (first, second)]
            assert_bounds(BestRunCurve(pure, runs), *best)


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6),
    st.floats(1.05, 60.0),
    st.sampled_from(SHAPES),
)
def test_it_bounds_any_finite_mechanism(weights, losses, mean, shape):
    first = np.array(weights) / np.sum(weights)
    second = first * np.exp(losses[: len(first)])
    second /= second.sum()
    runs = RandomRuns(mean, shape)
    counts, masses = masses_of(runs)
    best = [best_of(masses, counts, each) for each in (first, second)]
    assert_bounds(BestRunCurve(FiniteCurve(first, second), runs), *best)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_bounds_gaussian_scores_and_nearly_attains_them(shape):
    """A score that is all of the output: the record raises it, or lowers it."""
    x, width = np.linspace(-13, 14, 60_001, retstep=True)
    largest = 0.0
    for mean in (2.0, 20.0):
        runs = RandomRuns(mean, shape)
        for mu in (0.1, 0.7):
            first, second = (
                norm.pdf(x, at) * np.exp(runs.log_slope(norm.sf(x, at))) * width
                for at in (0.0, mu)
            )
            curve = BestRunCurve(GaussianCurve(mu), runs)
            for alpha in (1.5, 4.0, 12.0):
                true = renyi(first, second, alpha)
                assert true <= curve.renyi(alpha) + 1e-6
                largest = max(largest, true / curve.renyi(alpha))
            for epsilon in (0.0, 0.5, 1.5):
                true = hockey_stick(first, second, epsilon)
                assert true <= curve.delta(epsilon) + 1e-6
    # a bound that is off by much would pass the above as well
    assert largest > 0.6


def test_a_cost_that_forgot_the_repetitions_is_caught():
    """The positive control: what a single run promises is too little for the best."""
    runs = RandomRuns(30.0, 1.0)
    counts, masses = masses_of(runs)
    best = [best_of(masses, counts, each) for each in worst_answers(1.0)]
    assert_bounds(BestRunCurve(PrivacyLossCurve(((PurePair(1.0), 1),)), runs), *best)
    with pytest.raises(AssertionError):
        assert_bounds(PrivacyLossCurve(((PurePair(1.0), 1),)), *best)
    # nor does it hold at 0.7 of what one run may cost
    with pytest.raises(AssertionError):
        assert_bounds(
            BestRunCurve(PrivacyLossCurve(((PurePair(0.7), 1),)), runs), *best
        )


# -- what papers state -----------------------------------------------------------------


@pytest.mark.parametrize("shape, times", [(0.0, 2.0), (1.0, 3.0), (0.5, 2.5)])
def test_a_pure_promise_costs_up_to_two_plus_shape_times(shape, times):
    """Liu and Talwar for geometric numbers; Papernot and Steinke for the others."""
    pure = PrivacyLossCurve(((PurePair(0.1), 1),))
    for mean in (5.0, 50.0, 1e5):
        cost = BestRunCurve(pure, RandomRuns(mean, shape)).renyi(math.inf)
        assert cost <= times * 0.1 * (1 + 1e-6)
    # attained where there are many runs
    assert cost == pytest.approx(times * 0.1, rel=1e-3)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("mean", [2.0, 10.0, 100.0])
def test_it_never_costs_more_than_the_theorems_in_closed_form(shape, mean):
    """Theorems 2 and 6 of Papernot and Steinke, as dp-accounting computes them."""
    for mu in (0.05, 0.3, 1.0):
        accountant = RdpAccountant()
        accountant.compose(
            dp_event.RepeatAndSelectDpEvent(
                dp_event.GaussianDpEvent(1 / mu), mean, shape
            )
        )
        theirs = accountant.get_epsilon(1e-5)
        ours = BestRunCurve(GaussianCurve(mu), RandomRuns(mean, shape)).epsilon(1e-5)
        assert 0.4 * theirs < ours <= theirs


def test_it_meets_the_closed_form_of_theorem_2():
    """By hand: the two costs of a Gaussian run at an order, and the mean."""
    runs, mu, alpha = RandomRuns(10.0, 1.0), 0.3, 8.0
    cost = BestRunCurve(GaussianCurve(mu), runs).renyi(alpha)
    bounds = [
        alpha * mu**2 / 2
        + 2 * (1 - 1 / other) * other * mu**2 / 2
        + 2 * math.log(1 / runs.stop) / other
        + math.log(10.0) / (alpha - 1)
        for other in np.linspace(1.0001, 200, 20_000)
    ]
    assert 0.5 * min(bounds) < cost <= min(bounds)


def test_it_meets_the_closed_form_of_theorem_6():
    runs, mu, alpha = RandomRuns(10.0, math.inf), 0.3, 8.0
    cost = BestRunCurve(GaussianCurve(mu), runs).renyi(alpha)
    one = alpha * mu**2 / 2
    spent = GaussianCurve(mu).delta(math.log(1 + 1 / (alpha - 1)))
    bound = one + (runs.rate * spent * (alpha - 1) + math.log(10.0)) / (alpha - 1)
    # of a trade-off known at a few points, never below the bound of all of them
    assert cost == pytest.approx(bound, rel=5e-3)


@pytest.mark.parametrize("mu", [0.05, 0.3])
def test_it_meets_the_trade_off_of_poisson_numbers_by_hand(mu):
    """The largest log ratio is the rate times the distance in total variation."""
    one, runs = GaussianCurve(mu), RandomRuns(2.0, math.inf)
    best, largest = BestRunCurve(one, runs), runs.rate * one.delta(0.0)
    for delta in (1e-2, 1e-5):
        expected = one.epsilon(delta / 2.0) + largest
        assert best.epsilon(delta) == pytest.approx(expected, rel=1e-7)
        assert best.epsilon(delta) >= expected
    for rest in (0.1, 0.5):
        expected = 2.0 * one.delta(rest)
        assert best.delta(largest + rest) == pytest.approx(expected, rel=1e-6)
        assert best.delta(largest + rest) >= expected
    # nearer than that by Rényi costs alone, or not at all
    assert best.delta(-1.0) == 1.0
    assert 0 < best.delta(0.0) <= 1.0


@pytest.mark.parametrize("shape", [0.0, 1.0, 1000.0, math.inf])
def test_means_and_shapes_may_be_as_large_as_is_said(shape):
    for mean in (1 + 1e-6, 1_000_000):
        runs = RandomRuns(mean, shape)
        assert (runs.mean, runs.shape) == (mean, shape)
        # the slope at one is the mean, and below it the largest
        assert math.exp(float(runs.log_slope(np.array(0.0)))) == pytest.approx(mean)


def largest_of(runs, p, bound):
    """The larger part of a cost by order, with the slope from chances of numbers."""
    counts, masses = masses_of(runs)
    counts, masses = (each[counts * masses > 1e-15] for each in (counts, masses))

    def slope(at):
        powers = np.exp(np.outer(np.log1p(-np.minimum(at, 1 - 1e-15)), counts - 1))
        return np.log(powers @ (counts * masses))

    here, there = slope(p), slope(bound)

    def largest(order):
        first = 1.0 if math.isinf(order) else order / (order - 1)
        return max(0.0, np.max(first * here - there))

    return largest


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.2, 12.0])
def test_of_a_pure_run_it_costs_exactly_what_its_events_say(shape, mean):
    """An event of p is one of at most exp(e) p, and so is its complement."""
    e, runs = 0.7, RandomRuns(mean, shape)
    one = PrivacyLossCurve(((PurePair(e), 1),))
    best = BestRunCurve(one, runs)
    p = np.unique([*np.geomspace(1e-6, 1, 80), 1 / (1 + math.exp(e)), 0.0])
    bound = np.minimum(math.exp(e) * p, 1 - math.exp(-e) * (1 - p))
    largest = largest_of(runs, p, bound)
    for order in (1.3, 2.0, 6.0, 40.0, math.inf):
        known = one.renyi(order) + largest(order)
        # between points of the grid there may be a little more
        assert known * (1 - 1e-6) <= best.renyi(order) <= known * (1 + 1e-3) + 1e-8
    ratio = largest(math.inf)
    # beyond the largest loss there is none, and just below it next to none
    assert best.renyi(math.inf) == pytest.approx(e + ratio, rel=1e-3)
    assert best.epsilon(1e-12) == pytest.approx(e + ratio, rel=1e-3)
    for rest in (0.95 * e, 0.99 * e):
        known = mean * one.delta(rest)
        if known < 0.02:
            found = best.delta(ratio + rest)
            assert found <= known * (1 + 1e-2)


@pytest.mark.parametrize("shape", [0.0, 1.0, 4.0, math.inf])
def test_of_gaussian_runs_it_costs_hardly_more_than_all_of_its_events_say(shape):
    """Of a trade-off that is read at some points, never less than by all of them."""
    mu, runs = 0.4, RandomRuns(8.0, shape)
    best = BestRunCurve(GaussianCurve(mu), runs)
    p = np.concatenate(
        [np.geomspace(1e-8, 1 - 1e-9, 80), 1 - np.geomspace(1e-6, 0.5, 9)]
    )
    bound = norm.cdf(norm.ppf(p) + mu)
    largest = largest_of(runs, p, bound)
    for order in (1.5, 4.0, 16.0):
        known = order * mu**2 / 2 + largest(order)
        assert known <= best.renyi(order) <= known * 1.02
    # one run at what the ratio leaves, as often as there are runs
    ratio = largest(math.inf)
    for delta in (1e-3, 1e-6):
        known = GaussianCurve(mu).epsilon(delta / 8.0) + ratio
        assert best.epsilon(delta) <= known * 1.02


# -- properties ------------------------------------------------------------------------


@given(st.floats(0.01, 2.0), st.floats(1.1, 50.0), st.sampled_from(SHAPES))
def test_it_costs_more_than_one_run_and_more_with_more(mu, mean, shape):
    one = GaussianCurve(mu)
    best = BestRunCurve(one, RandomRuns(mean, shape))
    more = BestRunCurve(one, RandomRuns(2 * mean, shape))
    wider = BestRunCurve(GaussianCurve(1.2 * mu), RandomRuns(mean, shape))
    for delta in (1e-2, 1e-6):
        assert one.epsilon(delta) <= best.epsilon(delta) * (1 + 1e-6)
        assert best.epsilon(delta) <= more.epsilon(delta) * (1 + 1e-3)
        assert best.epsilon(delta) <= wider.epsilon(delta) * (1 + 1e-3)
        # the two ways to read it agree: epsilon at a delta is met there
        assert best.delta(best.epsilon(delta)) <= delta * (1 + 1e-6)
    assert best.epsilon(1e-2) <= best.epsilon(1e-6)
    assert one.renyi(3.0) <= best.renyi(3.0)


@pytest.mark.parametrize("shape", [0.0, 1.0])
def test_delta_and_epsilon_are_of_one_curve(shape):
    """Also where the trade-off promises more than Rényi orders do."""
    best = BestRunCurve(GaussianCurve(1.0), RandomRuns(20.0, shape))
    for epsilon in np.linspace(0.5, 9.0, 12):
        delta = best.delta(float(epsilon))
        if delta < 1:
            assert best.epsilon(delta) <= epsilon * (1 + 1e-6)


@given(st.floats(0.05, 3.0), st.floats(1.1, 50.0), st.sampled_from([0.0, 1.0, 4.0]))
def test_the_largest_ratio_is_that_of_a_fine_grid(epsilon, mean, shape):
    """It may be between two corners of what is known of an event's probabilities."""
    runs = RandomRuns(mean, shape)
    corner = 1 / (1 + math.exp(epsilon))
    corners = np.array([0.0, corner, 1.0])
    bound = np.array([0.0, 1 - corner, 1.0])
    orders = np.array([1.05, 1.5, 2.0, 8.0, math.inf])
    found = _largest(runs, corners, bound, orders)
    p = np.unique(np.concatenate([np.geomspace(1e-9, 1, 3000), corners]))
    other = np.interp(p, corners, bound)
    for order, largest in zip(orders, found, strict=True):
        first = 1.0 if math.isinf(order) else order / (order - 1)
        fine = np.max(first * runs.log_slope(p) - runs.log_slope(other))
        assert fine <= largest + 1e-9
        assert largest <= max(fine, 0.0) + 1e-3 * (1 + abs(fine))


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 1)), min_size=1))
def test_what_is_known_of_an_event_is_the_least_of_all_lines(lines):
    """Between corners that are not all of them it would be less, and no bound."""
    slopes, heights = np.array([*lines, (0.0, 1.0)]).T
    # none is below the diagonal, as no event is likelier than itself
    heights = np.maximum(heights, 1 - slopes)
    corners, bound = _least_of_lines(slopes, heights)
    p = np.unique(np.concatenate([np.linspace(0, 1, 200), corners]))
    least = np.min(np.outer(p, slopes) + heights, axis=1)
    np.testing.assert_allclose(np.interp(p, corners, bound), least, atol=1e-9)


@pytest.mark.parametrize("shape", [0.0, 1.0, 4.0])
def test_a_loss_that_an_event_may_have_is_never_rounded_down(shape):
    """Of a pure promise: the best of many against an event as likely as can be."""
    runs = RandomRuns(50.0, shape)
    p = 1 / (1 + math.exp(3.0))
    loss = 3.0 + np.subtract(*runs.log_slope(np.array([p, 1 - p])))
    best = BestRunCurve(PrivacyLossCurve(((PurePair(3.0), 1),)), runs)
    assert best.renyi(math.inf) >= loss
    # at a delta next to none
    assert best.epsilon(1e-13) >= loss * (1 - 1e-12)


@pytest.mark.parametrize("mean", [2.0, 1e6])
def test_what_rounding_may_take_off_is_added(mean):
    """A part of a billion, and as much again: of a cost that is known exactly."""
    e, runs = 3.0, RandomRuns(mean, math.inf)
    best = BestRunCurve(PrivacyLossCurve(((PurePair(e), 1),)), runs)
    ratio = runs.rate * math.tanh(e / 2)
    room = 1e-9 * (1 + ratio)
    assert 0.9 * room < best.renyi(math.inf) - (e + ratio) < 1.1 * room
    gaussian = BestRunCurve(GaussianCurve(0.5), runs)
    ratio = runs.rate * GaussianCurve(0.5).delta(0.0)
    if mean < 10:
        # one run at a delta that is no larger than its share
        known = GaussianCurve(0.5).epsilon(1e-3 / mean) + ratio
        assert 0.9e-9 < gaussian.epsilon(1e-3) - known < 1e-7
    assert gaussian.renyi(2.0) > 2.0 * 0.5**2 / 2
    nothing = BestRunCurve(GaussianCurve(0.0), RandomRuns(1 + 1e-6, math.inf))
    assert 0.9e-9 < nothing.renyi(math.inf) < 1e-8
    assert 0.9e-9 < nothing.renyi(4.0) < 1e-6


class AskedCurve(FiniteCurve):
    """A curve that keeps what it was asked."""

    def epsilon(self, delta):
        self.asked = delta
        return super().epsilon(delta)


@pytest.mark.parametrize("delta", [0.3, 1e-6])
def test_one_run_is_asked_for_no_more_than_its_share_of_delta(delta):
    one = AskedCurve(np.array([0.6, 0.4]), np.array([0.3, 0.7]))
    BestRunCurve(one, RandomRuns(7.0, 1.0)).epsilon(delta)
    assert delta / 7.0 * (1 - 2e-9) < one.asked < delta / 7.0


def test_of_hardly_more_than_one_run_it_costs_what_one_does():
    one = GaussianCurve(0.3)
    best = BestRunCurve(one, RandomRuns(1 + 1e-6, 1.0))
    assert best.epsilon(1e-5) == pytest.approx(one.epsilon(1e-5), rel=1e-3)
    assert best.renyi(4.0) == pytest.approx(one.renyi(4.0), rel=1e-3)


def test_curves_of_every_kind_may_be_repeated():
    runs = RandomRuns(6.0, 1.0)
    laplace = PrivacyLossCurve(((PurePair(0.4), 3),))
    orders = tuple(1 + np.geomspace(0.1, 200, 40))
    table = RenyiCurve(orders, tuple(GaussianCurve(0.3).renyi(a) for a in orders))
    worst = WorstCurve((GaussianCurve(0.3), laplace))
    for curve in (laplace, table, worst):
        best = BestRunCurve(curve, runs)
        assert curve.epsilon(1e-5) < best.epsilon(1e-5) < 4 * curve.epsilon(1e-5)
    # the worst of two is at least each of them
    assert BestRunCurve(worst, runs).epsilon(1e-5) >= BestRunCurve(
        laplace, runs
    ).epsilon(1e-5)
    # what is known at some orders alone proves less than all that is known
    exact = BestRunCurve(GaussianCurve(0.3), runs)
    assert BestRunCurve(table, runs).epsilon(1e-5) >= exact.epsilon(1e-5)


def test_it_composes_by_its_costs_and_is_plain_data():
    best = BestRunCurve(GaussianCurve(0.2), RandomRuns(6.0, math.inf))
    both = compose_curves([best, GaussianCurve(0.5)])
    assert both.renyi(2.0) == pytest.approx(
        best.renyi(2.0) + GaussianCurve(0.5).renyi(2.0)
    )
    assert both.epsilon(1e-5) > best.epsilon(1e-5)
    again = from_plain(json.loads(json.dumps(best.to_dict())))
    assert again == best
    assert again.epsilon(1e-6) == best.epsilon(1e-6)


@pytest.mark.parametrize("mean", [1.0, 1 + 1e-9, 0.5, -2, math.inf, math.nan, 1e9])
def test_bad_means_are_refused(mean):
    with refused(ValueError, ("parameter.is_nan", "search.runs_mean_out_of_range")):
        RandomRuns(mean, 1.0)


@pytest.mark.parametrize("shape", [-1.0, -0.5, 1e4, math.nan])
def test_bad_shapes_are_refused(shape):
    with refused(ValueError, "search.runs_shape_out_of_range"):
        RandomRuns(5.0, shape)


@pytest.mark.parametrize(
    "ask, name, values",
    [
        ("renyi", "alpha", [1.0, 0.5, -2.0]),
        ("epsilon", "delta", [0.0, 1.0, -0.1, 2.0, 1e-310]),
        ("delta", "epsilon", []),
    ],
)
def test_orders_and_budgets_that_are_none_are_refused(ask, name, values):
    best = BestRunCurve(GaussianCurve(0.3), RandomRuns(5.0, 1.0))
    for value in (*values, math.nan):
        with pytest.raises(ValueError, match=f"'{name}'"):
            getattr(best, ask)(value)
    for value in (True, "1", None, np.array([0.5])):
        with pytest.raises(TypeError, match=f"'{name}'"):
            getattr(best, ask)(value)


def test_each_family_has_its_own_parameter():
    for mean in (1.5, 20.0, 1e5):
        geometric, poisson_runs = RandomRuns(mean, 1.0), RandomRuns(mean, math.inf)
        assert geometric.stop == pytest.approx(1 / mean, rel=1e-12)
        assert (geometric.rate, poisson_runs.stop) == (math.inf, 0.0)
        rate = poisson_runs.rate
        assert rate / -math.expm1(-rate) == pytest.approx(mean, rel=1e-12)
        stop = RandomRuns(mean, 0.0).stop
        assert (1 / stop - 1) / -math.log(stop) == pytest.approx(mean, rel=1e-10)


def test_a_number_whose_first_masses_vanish_is_drawn():
    assert 2500 < RandomRuns(3000.0, math.inf).draw(np.random.default_rng(0)) < 3500


@pytest.mark.parametrize("value", [True, "5", None, [5.0]])
def test_a_mean_that_is_no_number_is_refused(value):
    with refused(TypeError, "parameter.not_real_number", name="mean"):
        RandomRuns(value, 1.0)


# -- amplification by a belief comes last ----------------------------------------------


@pytest.mark.parametrize("shape", [0.0, 1.0, 4.0])
def test_amplified_last_it_holds_and_amplified_first_it_does_not(shape):
    """A bit is in the record with probability 0.2, and each run reads the record.

    Given the record runs are independent; given the bit alone they are not, as all of
    them read one and the same record.
    """
    epsilon, share = 1.0, 0.2
    runs = RandomRuns(30.0, shape)
    counts, masses = masses_of(runs)
    answers = worst_answers(epsilon)
    # the bit decides between two records in a fifth of all tables
    records = np.array([[share, 1 - share], [0.0, 1.0]])
    # the best run of each record, mixed over records
    best = np.array([best_of(masses, counts, row) for row in answers])
    first, second = records @ best

    overlap = finite_overlap(*records)
    one = PrivacyLossCurve(((PurePair(epsilon), 1),))
    last = OverlapCurve(BestRunCurve(one, runs), overlap)
    for at in (0.0, 0.2, 0.5, 1.0, 1.5):
        assert hockey_stick(first, second, at) <= last.delta(at) + 1e-12
    # and it promises more than differential privacy does of the same runs
    assert last.delta(0.5) < 0.5 * last.curve.delta(0.5)

    # Runs are not independent draws of what a run tells of the bit, though this is all
    # that is known of any single one: to amplify each of them first promises too much.
    mixed = records @ answers
    amplified_first = BestRunCurve(FiniteCurve(*mixed), runs)
    assert renyi(first, second, math.inf) > 1.2 * amplified_first.renyi(math.inf)
