"""Whole curves: between the orders they hold, and composed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import Statement
from skpuffer.kernel.composed_curves import (
    CountLawCurve,
    RepeatedCurve,
    SymmetricPair,
    WorstCurve,
    costs_at,
)
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy_loss import (
    BoundedRangePair,
    GaussianCurve,
    PrivacyLossCurve,
    PurePair,
    RenyiCurve,
    compose_curves,
)
from skpuffer.privacy_loss._lower_bounds import account
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import PrevalenceScenario
from tests.refused import refused

mus = st.floats(0.01, 5)


@given(mus, st.lists(st.floats(1.001, 100), min_size=1, max_size=8, unique=True))
def test_between_orders_the_next_one_holds(mu, orders):
    exact = GaussianCurve(mu)
    orders = tuple(sorted(orders))
    held = RenyiCurve(orders, tuple(exact.renyi(a) for a in orders))
    for alpha in np.linspace(1.0001, orders[-1], 17):
        assert held.renyi(alpha) >= exact.renyi(alpha) * (1 - 1e-12)
    for alpha, cost in zip(orders, held.epsilons, strict=True):
        assert held.renyi(alpha) == cost
    assert held.renyi(orders[-1] * 1.01) == math.inf


@given(st.lists(mus, min_size=1, max_size=6), st.floats(1.01, 64))
def test_gaussian_curves_compose_exactly(parts, alpha):
    composed = compose_curves([GaussianCurve(mu) for mu in parts])
    total = math.sqrt(sum(mu**2 for mu in parts))
    assert composed.gaussian_mu == pytest.approx(total, rel=1e-12)
    assert composed.renyi(alpha) == pytest.approx(
        sum(GaussianCurve(mu).renyi(alpha) for mu in parts), rel=1e-9
    )
    known = GaussianCurve(total).delta(1.0)
    assert composed.delta(1.0) == pytest.approx(known, rel=1e-6, abs=0)


def test_two_equal_gaussians_cost_the_root_of_two():
    curve = GaussianNoise(3.0).curve(1.5)
    composed = compose_curves([curve, curve])
    assert composed.gaussian_mu == pytest.approx(0.5 * math.sqrt(2), rel=1e-12)


def test_laplace_curves_add_order_by_order():
    parts = [LaplaceNoise(1.0).curve(0.5), LaplaceNoise(2.0).curve(0.5)]
    composed = compose_curves(parts)
    assert composed.renyi(math.inf) == pytest.approx(0.75)
    assert composed.renyi(2.0) == pytest.approx(sum(c.renyi(2.0) for c in parts))
    # the pure cost of the sum is one the tabulated curve knows as well
    assert composed.epsilon(1e-12) <= 0.75 + 1e-9
    assert composed.delta(0.75) == 0.0


def test_mixed_families_never_promise_more_than_their_sum():
    parts = [LaplaceNoise(1.0).curve(0.5), GaussianNoise(1.0).curve(0.5)]
    composed = compose_curves(parts)
    assert composed.gaussian_mu is None
    for alpha in (1.3, 2.0, 7.7, 31.0):
        exact = sum(float(c.renyi(alpha)) for c in parts)
        assert exact <= composed.renyi(alpha) <= exact * 1.2
    # composing again with a tabulated curve adds a third part
    again = compose_curves([composed, parts[0]])
    assert again.renyi(2.0) == pytest.approx(
        composed.renyi(2.0) + parts[0].renyi(2.0), rel=1e-12
    )


def test_one_curve_is_itself():
    curve = GaussianCurve(0.3)
    assert compose_curves([curve]) is curve


def test_no_shift_costs_nothing():
    curve = GaussianCurve(0.0)
    assert curve.renyi(math.inf) == 0.0
    assert curve.delta(0.0) == 0.0
    assert curve.epsilon(0.5) == 0.0


def test_plain_data():
    for curve in (
        GaussianCurve(0.5),
        RenyiCurve((2, 4), (0.1, 0.2)),
        GaussianNoise(1.0).curve(Shift(1.0, dim=2)),
    ):
        assert json.loads(json.dumps(curve.to_dict())) == curve.to_dict()


@pytest.mark.parametrize(
    "orders, epsilons, said",
    [
        ((2, 3), (0.1,), Statement("curve.orders_epsilons_lengths_differ")),
        ((), (), Statement("curve.orders_epsilons_lengths_differ")),
        ((3, 2), (0.1, 0.2), Statement("curve.orders_not_increasing")),
        ((2, 2), (0.1, 0.2), Statement("curve.orders_not_increasing")),
        (
            (1, 2),
            (0.1, 0.2),
            Statement("parameter.renyi_order_out_of_range", name="orders"),
        ),
        ((2, 3), (-0.1, 0.2), Statement("curve.epsilons_negative")),
        ((2, 3), (math.nan, 0.2), Statement("parameter.is_nan", name="epsilons")),
    ],
)
def test_bad_renyi_curve(orders, epsilons, said):
    with refused(ValueError, said.code, **said.parameters):
        RenyiCurve(orders, epsilons)


@pytest.mark.parametrize("mu", [-0.1, math.nan])
def test_bad_gaussian_curve(mu):
    with refused(ValueError, ("parameter.is_nan", "parameter.is_negative")):
        GaussianCurve(mu)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, True, "1", None])
@pytest.mark.parametrize("kind", [PurePair, BoundedRangePair])
def test_a_pure_step_costs_a_positive_number(kind, value):
    with refused(
        (ValueError, TypeError),
        ("parameter.is_nan", "parameter.not_positive", "parameter.not_real_number"),
    ):
        kind(value)


@pytest.mark.parametrize(
    "curve",
    [
        GaussianCurve(0.5),
        RenyiCurve((2, 4), (0.1, 0.2)),
        PrivacyLossCurve(((PurePair(0.3), 2),)),
        WorstCurve((GaussianCurve(0.5), RenyiCurve((2, 4), (0.1, 0.2)))),
        CountLawCurve((GaussianCurve(0.5),), (1.0,), 0.0),
        RepeatedCurve(GaussianCurve(0.5), 3),
    ],
)
@pytest.mark.parametrize(
    "method, value, said",
    [
        ("renyi", 1.0, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ("renyi", math.nan, Statement("parameter.is_nan", name="alpha")),
        ("delta", math.nan, Statement("parameter.is_nan", name="epsilon")),
        ("renyi", 0.5, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        (
            "epsilon",
            -0.1,
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        ("epsilon", 0.0, Statement("parameter.probability_out_of_range", name="delta")),
        ("epsilon", 1.0, Statement("parameter.probability_out_of_range", name="delta")),
        ("epsilon", math.nan, Statement("parameter.is_nan", name="delta")),
    ],
)
def test_a_curve_is_asked_for_numbers_in_range(curve, method, value, said):
    with refused(ValueError, said.code, **said.parameters):
        getattr(curve, method)(value)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_an_account_is_asked_at_a_probability(delta):
    for count in (1, 3):
        curve = PrivacyLossCurve(((PurePair(0.3), count),))
        with refused(
            ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
        ):
            account(curve, delta)
    with refused(TypeError, "parameter.not_real_number", name="delta"):
        account(curve, "0.1")


# -- curves of several curves ----------------------------------------------------------

ONE, TWO = GaussianCurve(0.5), GaussianCurve(1.0)
TABLE = RenyiCurve((2.0, 8.0), (0.1, 9.0))


@pytest.mark.parametrize("curves", [(ONE, TWO, TABLE), (TABLE, TWO, ONE)])
def test_the_worst_of_curves_is_the_largest_in_each_form(curves):
    worst = WorstCurve(curves)
    assert worst.gaussian_mu is None
    for alpha in (1.5, 2.0, 4.0, 8.0):
        known = max(alpha / 2, 0.1 if alpha <= 2 else 9.0)
        assert worst.renyi(alpha) == pytest.approx(known)
        assert worst.renyi_costs((alpha, 1.2)) == pytest.approx((known, 0.6))
    for epsilon in (0.0, 1.0, 3.0):
        assert worst.delta(epsilon) == max(c.delta(epsilon) for c in curves)
    for delta in (0.1, 1e-4):
        assert worst.epsilon(delta) == max(c.epsilon(delta) for c in curves)


def test_costs_at_many_orders_are_those_at_each():
    orders = (1.5, 2.0, 8.0)
    for curve in (ONE, TABLE, WorstCurve((ONE, TABLE))):
        assert costs_at(curve, orders) == tuple(curve.renyi(a) for a in orders)


def test_a_law_of_counts_is_the_mean_of_its_curves():
    law = CountLawCurve((ONE, TWO), (0.7, 0.3), 0.0)
    for alpha in (1.5, 4.0):
        moments = [math.exp((alpha - 1) * alpha * mu**2 / 2) for mu in (0.5, 1.0)]
        known = math.log(0.7 * moments[0] + 0.3 * moments[1]) / (alpha - 1)
        assert law.renyi(alpha) == pytest.approx(known)
    for epsilon in (0.0, 0.5, 2.0):
        known = 0.7 * ONE.delta(epsilon) + 0.3 * TWO.delta(epsilon)
        assert law.delta(epsilon) == pytest.approx(known)
        if epsilon:
            assert law.epsilon(known) == pytest.approx(epsilon, rel=1e-9)
            assert law.delta(law.epsilon(known)) <= known
    assert law.epsilon(0.999 * law.delta(0.0)) > 0
    assert law.epsilon(1.001 * law.delta(0.0)) == 0
    beyond = CountLawCurve((ONE, TWO), (0.6, 0.3), 0.1)
    assert beyond.renyi(2.0) == math.inf
    known = 0.1 + 0.6 * ONE.delta(1.0) + 0.3 * TWO.delta(1.0)
    assert beyond.delta(1.0) == pytest.approx(known)
    assert beyond.epsilon(known) == pytest.approx(1.0, rel=1e-9)
    for delta in (0.05, 0.1):
        assert beyond.epsilon(delta) == math.inf
    assert CountLawCurve((ONE,), (0.5,), 0.95).delta(0.0) == 1.0
    with refused(ValueError, "parameter.renyi_order_out_of_range", name="alpha"):
        law.renyi(1.0)
    for delta in (0.0, 1.0, math.nan):
        with refused(
            ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
        ):
            law.epsilon(delta)


@pytest.mark.parametrize("sampling", ["full_batch", "poisson"])
def test_a_law_of_counts_leaves_out_no_number_of_records(sampling):
    """Numbers without a curve count as lost: all masses add up to one."""
    size = None if sampling == "full_batch" else 30
    release = GradientRelease(
        n_records=60, n_steps=2, sampling=sampling, batch_size=size
    )
    scenario = PrevalenceScenario(None, 0.3, 0.35, law="binomial")
    found = PrivacyLoss(3.0, 1e-4).certify(GaussianNoise(8.0), release, scenario)
    assert isinstance(found.curve, CountLawCurve) and found.curve.beyond > 0
    assert sum(found.curve.weights) + found.curve.beyond == pytest.approx(1, abs=1e-12)


def test_of_one_number_the_share_of_its_curve_is_asked_for():
    law = CountLawCurve((TWO,), (0.4,), 0.01)
    assert law.epsilon(0.05) == pytest.approx(TWO.epsilon(0.1), rel=1e-9)
    assert law.epsilon(0.5) == 0.0
    assert law.epsilon(0.01) == math.inf


@pytest.mark.parametrize("times", [2, 7])
def test_a_curve_that_is_repeated_is_composed_with_itself(times):
    runs = RepeatedCurve(ONE, times)
    together = GaussianCurve(0.5 * math.sqrt(times))
    assert runs.gaussian_mu == pytest.approx(together.mu)
    for asked, value in (("renyi", 3.0), ("delta", 1.0), ("epsilon", 1e-4)):
        known = getattr(together, asked)(value)
        assert getattr(runs, asked)(value) == pytest.approx(known, rel=1e-9)
    assert RepeatedCurve(TABLE, times).gaussian_mu is None
    assert RepeatedCurve(TABLE, times).renyi(2.0) == pytest.approx(0.1 * times)
    table = compose_curves([RepeatedCurve(TABLE, times), ONE])
    assert table.orders == (2.0, 8.0)
    assert table.epsilons == pytest.approx((0.1 * times + 0.25, 9.0 * times + 1.0))
    once = compose_curves([RepeatedCurve(TABLE, 1)])
    assert once is TABLE
    noises = compose_curves([RepeatedCurve(ONE, times), TWO])
    assert isinstance(noises, GaussianCurve)
    assert noises.mu == pytest.approx(math.sqrt(0.25 * times + 1.0), rel=1e-12)


def test_steps_of_all_curves_are_kept_with_how_often_each_is_taken():
    pure, laplace = PurePair(0.3), LaplaceNoise(1.0).curve(0.5)
    steps = PrivacyLossCurve(((pure, 2),), 50.0)
    more = PrivacyLossCurve(((PurePair(0.1), 1),), 20.0)
    made = compose_curves(
        [RepeatedCurve(steps, 3), RepeatedCurve(ONE, 4), laplace, more, TWO]
    )
    kept = dict(made.steps)
    assert kept.pop(pure) == 6
    assert kept.pop(PurePair(0.1)) == 1
    assert kept.pop(SymmetricPair(laplace)) == 1
    # all that is Gaussian as one: four halves and one whole
    ((together, count),) = kept.items()
    assert together.curve.mu == pytest.approx(math.sqrt(2.0), rel=1e-12) and count == 1
    # in the memory that each of them was allowed
    assert made.max_memory == 20.0
    both = compose_curves([RepeatedCurve(laplace, 3), ONE])
    assert dict(both.steps) == {SymmetricPair(laplace): 3, SymmetricPair(ONE): 1}


@pytest.mark.parametrize("pure", [1e-4, 0.3, 2.0, 50.0, 900.0])
def test_a_pure_step_costs_what_two_answers_do(pure):
    pair = PurePair(pure)
    likely = 1 / (1 + math.exp(-pure))
    at = pure * np.array([0.0, 0.2, 0.999, 1.0, 1.5])
    # the likelier answer less exp(e) times the other
    known = [likely * -math.expm1(min(0.0, e - pure)) for e in at]
    for ask in (pair.delta, pair.reverse):
        np.testing.assert_allclose(ask(at), known, rtol=1e-12)
    likely, rare = -np.logaddexp(0, -pure), -np.logaddexp(0, pure)
    for alpha in (1.01, 2.0, 7.0, 64.0):
        terms = alpha * likely + (1 - alpha) * rare, alpha * rare + (1 - alpha) * likely
        cost = float(np.logaddexp(*terms)) / (alpha - 1)
        if alpha * pure < 1e-2:
            # of small losses half the order times their square
            cost = alpha * pure**2 / 2
        found = pair.renyi(alpha)
        assert found == pytest.approx(cost, rel=1e-6 if pure > 1e-2 else 1e-3)
        assert found <= pure
    assert pair.renyi(math.inf) == pure
    assert pair.renyi_costs((2.0, math.inf)) == [pair.renyi(2.0), pure]


@pytest.mark.parametrize("mu", [0.0, 1e-8, 0.7, 4.0])
def test_a_gaussian_curve_is_the_same_from_the_other_side(mu):
    """E_g(P, Q) = 1 - g + g E_1/g(Q, P), at epsilons below zero as well."""
    curve = GaussianCurve(mu)
    for epsilon in (-700.5, -3.0, -0.2, 0.0):
        known = -math.expm1(epsilon) + math.exp(epsilon) * curve.delta(-epsilon)
        assert curve.delta(epsilon) == pytest.approx(known, rel=1e-12, abs=1e-15)
    assert curve.delta(701.0) == 0.0
    assert curve.delta(0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-9)


def test_curves_that_are_no_trade_off_of_noise_are_added_by_their_costs():
    """A worst curve is attained by no pair of laws, which steps would be."""
    worst = WorstCurve((ONE, LaplaceNoise(1.0).curve(0.5)))
    made = compose_curves([worst, TWO])
    assert isinstance(made, RenyiCurve)
    for alpha, cost in zip(made.orders, made.epsilons, strict=True):
        assert cost == pytest.approx(worst.renyi(alpha) + TWO.renyi(alpha))
    assert len(made.orders) > 10


def test_without_noise_no_epsilon_is_known():
    curve = GaussianCurve(math.inf)
    assert curve.epsilon(0.5) == curve.renyi(2.0) == math.inf
    assert curve.delta(10.0) == 1.0


@pytest.mark.parametrize(
    "mu, known",
    [(0.0, [0.0, 1.0, 0.0, 1.0]), (0.5, [0.0, 1.0, 0.0, 1.0]), (math.inf, [1.0] * 4)],
)
def test_a_gaussian_curve_far_out(mu, known):
    """One by one, and of many pairs at once."""
    far = [math.inf, -math.inf, 800.0, -800.0]
    assert [GaussianCurve(mu).delta(epsilon) for epsilon in far] == known
    assert gaussian_delta(np.array(far), mu).tolist() == known
    between = np.array([-0.5, 0.0, 1.0])
    each = [GaussianCurve(mu).delta(epsilon) for epsilon in between]
    np.testing.assert_allclose(gaussian_delta(between, mu), each, rtol=1e-12)
