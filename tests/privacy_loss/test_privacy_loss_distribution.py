"""Privacy losses added on a grid: against closed forms, never below the truth."""

import json
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from skpuffer.kernel import loss_grid
from skpuffer.kernel.composed_curves import SymmetricPair
from skpuffer.kernel.distribution import TOLERANCE
from skpuffer.kernel.loss_grid import (
    GridTooLargeError,
    Sum,
    excess,
    on_grid,
    tail_quantile,
)
from skpuffer.kernel.pairs import PoissonPair, ShiftPair, renyi_of_pair
from skpuffer.noise import (
    GaussianNoise,
    GeneralizedCauchyNoise,
    LaplaceNoise,
    Shift,
)
from skpuffer.noise._generalized_gaussian_loss import log_deltas
from skpuffer.privacy_loss import (
    GaussianCurve,
    PrivacyLossCurve,
    RenyiCurve,
    compose_curves,
    renyi_divergence,
)
from skpuffer.privacy_loss._lower_bounds import account, lower_grid
from tests.refused import refused


@dataclass(frozen=True)
class Coin:
    """Randomised response: the truth with odds exp(bias)."""

    bias: float
    symmetric = True

    @property
    def truth(self):
        return 1 / (1 + math.exp(-self.bias))

    def delta(self, epsilon):
        lie = math.exp(-self.bias) * self.truth
        return np.maximum(0.0, self.truth - np.exp(np.minimum(epsilon, 700)) * lie)

    reverse = delta

    def to_dict(self):
        return {"bias": self.bias}

    def composed(self, n, epsilon):
        """Exact trade-off of n coins: binomially many truths."""
        k = np.arange(n + 1)
        loss = (2 * k - n) * self.bias
        gain = -np.expm1(np.minimum(0.0, epsilon - loss))
        return float(binom.pmf(k, n, self.truth) @ gain)


@dataclass(frozen=True)
class Table:
    """Any pair of laws on finitely many outcomes."""

    first: tuple
    second: tuple
    symmetric = False

    def delta(self, epsilon):
        return _hockey_stick(self.first, self.second, epsilon)

    def reverse(self, epsilon):
        return _hockey_stick(self.second, self.first, epsilon)

    def to_dict(self):
        return {"first": list(self.first), "second": list(self.second)}


def _hockey_stick(p, q, epsilon):
    gap = np.asarray(p) - np.exp(np.minimum(epsilon, 700))[..., None] * np.asarray(q)
    return np.maximum(0.0, gap).sum(axis=-1)


def gaussian(mu):
    return SymmetricPair(GaussianCurve(mu))


@st.composite
def tables(draw):
    n = draw(st.integers(2, 5))
    laws = []
    for _ in range(2):
        weights = [draw(st.floats(0.05, 1.0)) for _ in range(n)]
        laws.append(tuple(w / sum(weights) for w in weights))
    return Table(*laws)


# -- one step on a grid -------------------------------------------------------------


# so large a tail that a mass at infinity which is lost shows
@pytest.mark.parametrize("tail", [1e-12, 1e-2])
@pytest.mark.parametrize("step", [0.1, 0.013])
@pytest.mark.parametrize(
    "pair", [gaussian(0.3), gaussian(2.0), Coin(0.77), Table((0.7, 0.3), (0.1, 0.9))]
)
def test_connected_dots_are_never_below_and_meet_the_trade_off(pair, step, tail):
    grid = on_grid(pair, step, tail, 1e7)
    assert grid.masses.min() > -1e-12
    assert grid.masses.sum() + grid.infinity == pytest.approx(1, abs=1e-12)
    for on_points, epsilon in (
        (True, step * np.arange(-60, 61)),
        (False, np.linspace(-3, 3, 401)),
    ):
        gain = -np.expm1(np.minimum(0.0, epsilon[:, None] - grid.losses))
        held = gain @ grid.masses + grid.infinity
        exact = excess(pair, epsilon) + np.maximum(0, -np.expm1(epsilon))
        assert np.all(held >= exact - 1e-12)
        if on_points:
            inside = np.abs(epsilon - np.clip(epsilon, *grid.losses[[0, -1]])) < 1e-9
            np.testing.assert_allclose(held[inside], exact[inside], atol=2e-12)


# a large part shows whether what is outside of the window is added, a tiny one errors
@pytest.mark.parametrize("outside", [1e-20, 1e-9, 1e-4, 0.1])
@pytest.mark.parametrize("tilt", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(
    "pair", [gaussian(0.5), Coin(0.4), PoissonPair(GaussianNoise(1.0).curve(1.0), 0.1)]
)
def test_no_tail_is_below_its_sum_wherever_it_is_asked(
    pair, tilt, outside, monkeypatch
):
    """By direct convolution, whose sums of positive numbers keep their digits."""
    monkeypatch.setattr(loss_grid, "_OUTSIDE", outside)
    grid, count = on_grid(pair, 0.05, 1e-9, 1e6), 8
    total = Sum([(grid, count)])
    masses = np.ones(1)
    for _ in range(count):
        masses = np.convolve(masses, np.maximum(grid.masses, 0.0))
    losses = grid.step * (count * grid.first + np.arange(len(masses)))
    tail = total.tail(tilt, 1e6)
    last = tail.low + len(tail._height)
    epsilon = grid.step * np.arange(tail.low, last + 20)
    short = -np.expm1(np.minimum(0.0, epsilon[:, None] - losses))
    exact = short @ masses + total.infinity
    found = np.array([tail.delta(each) for each in epsilon.tolist()])
    assert np.all(found >= exact * (1 - 1e-12))
    np.testing.assert_allclose(log_deltas(tail, epsilon), np.log(found), atol=1e-9)
    # rounded down it is never above, where the finite losses are most of it
    for at in np.flatnonzero(exact > 2 * total.infinity)[::10]:
        assert tail.lower(float(exact[at])) <= epsilon[at] * (1 + 1e-9) + 1e-12


def test_reach_is_where_the_tail_begins():
    pair = gaussian(1.0)
    for tail in (0.3, 1e-3, 1e-12, 1e-30):
        end = tail_quantile(pair.delta, tail)
        assert pair.delta(np.array([end])) <= tail
        assert pair.delta(np.array([0.9 * end])) > tail
    assert tail_quantile(pair.delta, 0.9) == 0
    assert tail_quantile(Coin(2.0).delta, 0.0) == pytest.approx(2, rel=0.05)
    assert tail_quantile(lambda e: np.full_like(e, 0.5), 0.1) == math.inf


def test_a_grid_too_large_is_refused():
    with pytest.raises(GridTooLargeError):
        on_grid(gaussian(1.0), 1e-6, 1e-12, 1e5)


NORMAL = GaussianNoise(1.0).curve(1.0)


def trade_off(grid, epsilon):
    """Trade-off of a loss on a grid."""
    short = -np.expm1(np.minimum(0.0, epsilon[:, np.newaxis] - grid.losses))
    return short @ grid.masses + grid.infinity


@given(
    st.one_of(
        st.floats(0.01, 3).map(lambda mu: gaussian(mu)),
        st.floats(0.05, 2).map(Coin),
        st.floats(0.3, 5).map(lambda b: ShiftPair(LaplaceNoise(b).curve(1.0))),
        st.floats(0.01, 0.5).map(
            lambda q: PoissonPair(GaussianNoise(1.0).curve(1.0), q)
        ),
        tables(),
    ),
    st.floats(0.003, 0.3),
)
def test_a_grid_may_be_below_a_trade_off(pair, step):
    """Nowhere above it, also between points, and by the square of the step at most."""
    tail = 1e-9
    grid = lower_grid(pair, step, tail, 1e6)
    ends = step * (abs(grid.first) + 3)
    epsilon = np.linspace(0, max(ends, 1.0), 2000)
    most = pair.delta(epsilon) + 2 * tail + 1e-12
    assert np.all(trade_off(grid, epsilon) <= most)
    assert grid.infinity == 0


def test_losses_too_large_for_a_grid_below_leave_the_bound_above():
    """Such as those of hardly any noise: nothing is known from below, and said so."""
    curve = PrivacyLossCurve(((gaussian(40.0), 2),))
    found = account(curve, 1e-5)
    truth = GaussianCurve(40.0 * math.sqrt(2)).epsilon(1e-5)
    assert truth <= found.epsilon <= truth * (1 + 4 * TOLERANCE)
    assert found.lower == 0


def test_a_grid_below_is_near():
    """To second order in its step, where losses are spread."""
    pair, epsilon = gaussian(1.0), np.linspace(0, 4, 500)
    off = [
        np.max(
            pair.delta(epsilon) - trade_off(lower_grid(pair, step, 1e-12, 1e6), epsilon)
        )
        for step in (0.1, 0.05)
    ]
    assert 3 < off[0] / off[1] < 5
    assert off[1] < 1e-3


# -- many steps ---------------------------------------------------------------------


@given(
    st.floats(0.003, 1.5),
    st.sampled_from([2, 3, 17, 400, 30_000]),
    st.sampled_from([1e-2, 1e-5, 1e-9, 1e-15]),
)
def test_gaussian_steps_cost_what_one_gaussian_does(mu, n_steps, delta):
    exact = GaussianCurve(mu * math.sqrt(n_steps)).epsilon(delta)
    found = account(PrivacyLossCurve(((gaussian(mu), n_steps),)), delta)
    assert found.engine == "grid"
    assert exact * (1 - 1e-9) <= found.epsilon <= exact * (1 + 4 * TOLERANCE) + 1e-9
    assert found.lower <= exact
    if exact > 0.1:
        assert found.lower > 0.995 * exact


@given(
    st.floats(0.01, 3), st.integers(2, 60), st.sampled_from([0.1, 1e-2, 1e-5, 1e-12])
)
def test_coins_cost_what_the_binomial_law_says(bias, n_steps, delta):
    coin = Coin(bias)
    found = account(PrivacyLossCurve(((coin, n_steps),)), delta)
    assert coin.composed(n_steps, found.epsilon) <= delta * (1 + 1e-9)
    if found.epsilon > 0 and found.engine == "grid":
        assert coin.composed(n_steps, found.epsilon * (1 - 1e-3) - 1e-9) > delta
    if found.lower > 0:
        assert coin.composed(n_steps, found.lower) >= delta * (1 - 1e-9)


@settings(max_examples=15)
@given(tables(), tables(), st.sampled_from([0.1, 1e-2, 1e-4]))
def test_two_tables_cost_what_their_product_does(one, other, delta):
    curve = PrivacyLossCurve(((one, 1), (other, 1)))
    found = account(curve, delta)
    product = Table(
        tuple(np.outer(one.first, other.first).ravel()),
        tuple(np.outer(one.second, other.second).ravel()),
    )
    exact = account(PrivacyLossCurve(((product, 1),)), delta)
    assert exact.engine == "exact"
    assert found.epsilon >= exact.epsilon * (1 - 1e-9)
    assert found.lower <= exact.epsilon + 1e-12
    # masses between the points of a grid go to both neighbours
    assert found.epsilon <= exact.epsilon + 5e-2


def test_a_loss_below_the_step_that_memory_allows_is_met_by_a_point():
    one, other = ((coin.truth, 1 - coin.truth) for coin in (Coin(0.02), Coin(3.0)))
    joint = np.outer(one, other).ravel()
    product = PrivacyLossCurve(((Table(tuple(joint), tuple(joint[::-1])), 1),))
    curve = PrivacyLossCurve(((Coin(0.02), 1), (Coin(3.0), 1)), max_memory=0.1)
    found = account(curve, 0.01)
    assert found.engine == "grid"
    assert found.epsilon == pytest.approx(product.epsilon(0.01), rel=1e-6)


def test_both_directions_are_kept_apart():
    # the first law leaks through a rare outcome, the second does not
    pair = Table((0.9, 0.1), (0.99, 0.01))
    turned = Table(pair.second, pair.first)
    for delta in (1e-1, 1e-3):
        there = PrivacyLossCurve(((pair, 20),)).epsilon(delta)
        back = PrivacyLossCurve(((turned, 20),)).epsilon(delta)
        assert there == pytest.approx(back, rel=1e-9)
    assert tail_quantile(pair.delta, 1e-3) > 2 * tail_quantile(pair.reverse, 1e-3)


@pytest.mark.parametrize("pair", [gaussian(0.1), Coin(0.2)])
def test_delta_and_epsilon_agree(pair):
    curve = PrivacyLossCurve(((pair, 50),))
    for delta in (1e-2, 1e-6, 1e-11):
        epsilon = curve.epsilon(delta)
        assert curve.delta(epsilon) == pytest.approx(delta, rel=5e-3, abs=0)
        assert curve.delta(1.01 * epsilon) < delta
    deltas = [curve.delta(e) for e in (-2.0, -0.5, 0.0, 0.5, 2.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] >= -math.expm1(-2.0) - 1e-9


def test_delta_of_gaussian_steps():
    curve = PrivacyLossCurve(((gaussian(0.2), 25),))
    for epsilon in (-1.0, 0.0, 0.7, 3.0, 6.0):
        exact = GaussianCurve(1.0).delta(epsilon)
        assert exact <= curve.delta(epsilon) <= exact * (1 + 1e-3)


def test_more_steps_cost_more_and_parts_add_up():
    pair = Table((0.6, 0.4), (0.5, 0.5))
    costs = [PrivacyLossCurve(((pair, n),)).epsilon(1e-5) for n in (1, 2, 5, 30)]
    assert costs == sorted(costs)
    split = PrivacyLossCurve(((pair, 10), (pair, 20)))
    assert split == PrivacyLossCurve(((pair, 30),))


def test_one_step_is_exact():
    found = account(PrivacyLossCurve(((gaussian(1.3), 1),)), 1e-5)
    assert found.engine == "exact"
    assert found.epsilon == pytest.approx(GaussianCurve(1.3).epsilon(1e-5), rel=1e-10)
    assert PrivacyLossCurve(((gaussian(1.3), 1),)).delta(1.0) == pytest.approx(
        GaussianCurve(1.3).delta(1.0)
    )


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_the_worse_direction_counts(count, turned):
    """Of laws of which the first leaks through a rare outcome, and the second not."""
    pair = Table((0.9, 0.1), (0.99, 0.01))
    pair = Table(pair.second, pair.first) if turned else pair
    curve = PrivacyLossCurve(((pair, count),))
    p, q = (np.array(law) for law in (pair.first, pair.second))
    for _ in range(count - 1):
        p, q = np.outer(p, pair.first).ravel(), np.outer(q, pair.second).ravel()

    def known(epsilon):
        return max(
            np.maximum(a - math.exp(epsilon) * b, 0.0).sum()
            for a, b in ((p, q), (q, p))
        )

    for epsilon in (-1.0, -0.05, 0.0, 0.05, 1.0, 2.2):
        found = curve.delta(epsilon)
        assert known(epsilon) * (1 - 1e-9) <= found <= 1
        # below zero the grid of several steps is a bound that is not attained
        if count == 1 or epsilon >= 0:
            assert found <= known(epsilon) * 1.01 + 1e-9
    for epsilon in (0.05, 1.0, 2.2):
        accounted = account(curve, known(epsilon))
        assert epsilon * (1 - 1e-6) <= accounted.epsilon <= epsilon * 1.01
        assert 0 < accounted.lower <= epsilon * (1 + 1e-6)
        assert accounted.epsilon == curve.epsilon(known(epsilon))
    for alpha in (1.5, 4.0):
        costs = [
            math.log(np.sum(a**alpha * b ** (1 - alpha))) / (alpha - 1)
            for a, b in ((p, q), (q, p))
        ]
        assert curve.renyi(alpha) == pytest.approx(max(costs), rel=1e-3)
        assert curve.renyi(alpha) >= max(costs) * (1 - 1e-9)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_beside_a_symmetric_step_either_direction_counts(turned, is_first):
    pair, coin = Table((0.9, 0.1), (0.99, 0.01)), Coin(0.3)
    pair = Table(pair.second, pair.first) if turned else pair
    steps = ((pair, 1), (coin, 1)) if is_first else ((coin, 1), (pair, 1))
    curve = PrivacyLossCurve(steps)
    answers = np.array([coin.truth, 1 - coin.truth])
    p = np.outer(pair.first, answers).ravel()
    q = np.outer(pair.second, answers[::-1]).ravel()
    for epsilon in (0.1, 1.0, 2.2):
        known = max(
            np.maximum(a - math.exp(epsilon) * b, 0.0).sum()
            for a, b in ((p, q), (q, p))
        )
        assert known * (1 - 1e-9) <= curve.delta(epsilon) <= known * 1.01
        assert epsilon * (1 - 1e-6) <= curve.epsilon(known) <= epsilon * 1.01


def test_no_noise_costs_everything():
    curve = PrivacyLossCurve(((gaussian(math.inf), 3),))
    assert curve.epsilon(1e-5) == math.inf
    assert curve.renyi(2) == math.inf
    # whatever else is released, however little
    assert PrivacyLossCurve(((Coin(0.1), 1), *curve.steps)).epsilon(1e-5) == math.inf


# -- Rényi --------------------------------------------------------------------------

ORDERS = (1.1, 1.5, 2.0, 4.0, 8.0, 32.0)


@dataclass(frozen=True)
class Hidden:
    """A pair that does not tell its Rényi divergence."""

    pair: object
    symmetric = False

    def delta(self, epsilon):
        return self.pair.delta(epsilon)

    def reverse(self, epsilon):
        return self.pair.reverse(epsilon)

    def to_dict(self):
        return {}


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0])
def test_renyi_divergence_of_gaussians(mu):
    found = renyi_of_pair(gaussian(mu), ORDERS)
    exact = np.array([GaussianCurve(mu).renyi(a) for a in ORDERS])
    assert np.all(found >= exact * (1 - 1e-9))
    # further out the trade-off is too small for a float
    told = mu * np.array(ORDERS) < 36
    np.testing.assert_allclose(found[told], exact[told], rtol=3e-3)
    assert np.all(np.isinf(found[~told]))


@given(tables())
# as near as floats are: intervals narrower than the last digit of one
@example(Table((0.5, 0.5), (0.5, 0.5000000000000001)))
@example(Table((0.5, 0.5), (0.4999999999999999, 0.5000000000000001)))
def test_renyi_divergence_of_tables(pair):
    found = renyi_of_pair(pair, ORDERS)
    exact = np.array(
        [
            renyi_divergence(np.array(pair.first), np.array(pair.second), a)
            for a in ORDERS
        ]
    )
    assert np.all(found >= exact * (1 - 1e-6) - 1e-12)
    np.testing.assert_allclose(found, exact, rtol=2e-2, atol=1e-6)
    assert np.all(np.diff(found) >= -1e-9 * found[1:])


def test_both_directions_bound_the_renyi_cost():
    pair = Hidden(Table((0.9, 0.1), (0.99, 0.01)))
    curve = PrivacyLossCurve(((pair, 7),))
    turned = Hidden(Table((0.99, 0.01), (0.9, 0.1)))
    assert curve.renyi(3) == PrivacyLossCurve(((turned, 7),)).renyi(3)
    one = max(renyi_of_pair(p.pair, [3.0])[0] for p in (pair, turned))
    assert curve.renyi(3) == pytest.approx(7 * one)
    assert curve.renyi(math.inf) == math.inf


# -- fallback, composition, plain data ----------------------------------------------


def test_beyond_the_memory_renyi_costs_are_added():
    steps = ((gaussian(0.05), 1000),)
    full, small = PrivacyLossCurve(steps), PrivacyLossCurve(steps, max_memory=1e-3)
    found = account(small, 1e-5)
    assert found.engine == "renyi"
    assert full.epsilon(1e-5) < found.epsilon < 1.2 * full.epsilon(1e-5)
    assert small.delta(3.0) > full.delta(3.0)
    # enough for the grid of one step, not for that of their sum
    assert account(PrivacyLossCurve(steps, max_memory=0.03), 1e-5) == found


def test_composing_keeps_all_steps():
    coins = PrivacyLossCurve(((Coin(0.1), 30),))
    both = compose_curves([coins, GaussianCurve(0.3), coins, GaussianCurve(0.4)])
    assert both.n_steps == 61
    assert both.epsilon(1e-5) > compose_curves([coins, coins]).epsilon(1e-5)
    costs = [c.renyi(4) for c in (coins, coins, GaussianCurve(0.5))]
    assert both.renyi(4) == pytest.approx(sum(costs))
    table = RenyiCurve((2.0, 8.0), (0.1, 0.4))
    mixed = compose_curves([coins, table])
    assert isinstance(mixed, RenyiCurve)
    assert mixed.renyi(8) == pytest.approx(coins.renyi(8) + 0.4)


def test_it_is_plain_data():
    curve = PrivacyLossCurve(((Coin(0.1), 30), (gaussian(0.2), 2)))
    assert pickle.loads(pickle.dumps(curve)) == curve
    assert hash(curve) == hash(PrivacyLossCurve(curve.steps))
    assert json.loads(json.dumps(curve.to_dict()))["steps"][0][1] == 30
    assert curve.gaussian_mu is None


@pytest.mark.parametrize("delta", [0, 1, -1])
def test_delta_must_be_a_probability(delta):
    with refused(ValueError, "parameter.probability_out_of_range", name="delta"):
        PrivacyLossCurve(((Coin(0.1), 3),)).epsilon(delta)


class Bumpy:
    """A bound on the trade-off of `Coin` that is not convex in exp(epsilon)."""

    symmetric = True

    def delta(self, epsilon):
        exact = np.maximum(0.0, 0.5 - 0.25 * np.exp(np.minimum(epsilon, 9.0)))
        return exact + 0.05 * np.exp(-((epsilon - 0.3) ** 2) / 0.005) * (exact > 0)

    def reverse(self, epsilon):
        return self.delta(epsilon)


def test_a_bound_that_is_not_convex_becomes_the_largest_convex_one_below():
    step = 0.01
    grid = on_grid(Bumpy(), step, 1e-12, 1e6)
    assert grid.masses.min() >= -1e-12
    assert grid.masses.sum() + grid.infinity == pytest.approx(1, abs=1e-12)
    # its trade-off, read off again
    at = np.arange(0, 0.7, step)
    gain = -np.expm1(np.minimum(at[:, None] - grid.losses, 0.0))
    found = gain @ grid.masses + grid.infinity
    exact = np.maximum(0.0, 0.5 - 0.25 * np.exp(at))
    assert np.all(found <= Bumpy().delta(at) + 1e-12)
    assert np.all(found >= exact - 1e-12)
    slopes = np.diff(found) / np.diff(np.exp(at))
    assert np.all(np.diff(slopes) >= -1e-9)
    # where the bump is over it is what it was
    assert found[-5:] == pytest.approx(Bumpy().delta(at)[-5:], abs=1e-9)


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_bounds_from_renyi_costs_are_composed_as_trade_offs(scale):
    shift = Shift(1.0, norm=2, dim=None)
    pair = ShiftPair(GeneralizedCauchyNoise(scale).curve(shift))
    assert on_grid(pair, 0.02, 1e-10, 1e6).masses.min() >= -1e-12
