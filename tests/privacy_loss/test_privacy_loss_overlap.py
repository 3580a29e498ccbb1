"""Amplification by overlap: divergences of one record, and curves for who believes."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtri

from skpuffer.kernel.plain import to_plain
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._overlap import (
    FiniteOverlap,
    NearOverlap,
    NormalOverlap,
    OddsOverlap,
    Overlap,
    OverlapCurve,
    WorstOverlap,
    amplified_budgets,
    amplified_target,
)

COIN = FiniteOverlap((0.6, 0.4), (0.4, 0.6))
THREE = FiniteOverlap((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))
MODULE = Overlap.__module__
#: Unit noise on records that are one apart.
ONE = GaussianCurve(1.0)

epsilons = st.floats(0.0, 6.0)
masses = st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4).map(
    lambda raw: tuple((np.array(raw) / np.sum(raw)).tolist())
)


def of(auc, odds=1.0):
    return NormalOverlap(math.sqrt(2) * ndtri(auc), odds)


# -- numbers that were computed apart -------------------------------------------------


@pytest.mark.parametrize(
    "overlap, epsilon, eta, target",
    [
        (THREE, 0.0, 0.3, 0.0),
        (THREE, 0.3, 0.2300282385, 0.9246312590),
        (THREE, 0.6, 0.1355762399, 1.9549952594),
        (COIN, 0.1, 0.1579316328, None),
        (COIN, 0.3, 0.0600564770, None),
        (OddsOverlap(2.0), 0.1, 0.1317272336, 0.5868969),
        (OddsOverlap(2.0), 0.3, 0.0636953210, 1.8706773),
        (OddsOverlap(4.0), 0.1, 0.3000288442, 0.3005016),
        (OddsOverlap(4.0), 0.3, 0.2341739456, 0.9138929),
        (OddsOverlap(4.0), 1.0, 0.0411322486, 3.7559437),
        (OddsOverlap(10.0), 1.0, 0.2545392160, 2.0477649),
        (FiniteOverlap(COIN.first, COIN.second, 1.5), 0.1, 0.1610861032, None),
        (FiniteOverlap(COIN.first, COIN.second, 2.0), 0.1, 0.1918029958, None),
        (FiniteOverlap(COIN.first, COIN.second, 1.5), 0.3, 0.0914848635, None),
        (FiniteOverlap(COIN.first, COIN.second, 2.0), 0.3, 0.1300587723, None),
        (of(0.66), 0.1, 0.1923677923, None),
        (of(0.66), 0.3, 0.1282545073, None),
        (of(0.66), 1.0, 0.0164471965, None),
        (of(0.75), 0.1, 0.3352451416, None),
        (of(0.9), 1.0, 0.4416170815, None),
        (of(0.72), 0.1, 0.2863203789, None),
        (of(0.72), 0.3, 0.2237967651, None),
        (of(0.72), 1.0, 0.0700701929, None),
        (of(0.66, 2.0), 0.1, 0.2426507095, None),
        (of(0.66, 2.0), 0.3, 0.1783878687, None),
        (of(0.66, 2.0), 1.0, 0.0384911063, None),
    ],
)
def test_divergences_of_one_record(overlap, epsilon, eta, target):
    found = overlap.etas(epsilon)
    assert found == pytest.approx((eta, eta), abs=6e-11)
    if target is not None:
        assert amplified_target(epsilon, found[0]) == pytest.approx(target, abs=6e-8)


@pytest.mark.parametrize(
    "overlap, epsilon, delta",
    [
        (THREE, 0.0, 0.1148774768),
        (THREE, 0.3, 0.0324588130),
        (THREE, 0.6, 0.0031284218),
        (COIN, 0.1, 0.0372266214),
        (COIN, 0.3, 0.0014915799),
        (FiniteOverlap((0.4, 0.3, 0.1, 0.2), (0.1, 0.2, 0.3, 0.4)), 0.3, 0.0503237660),
    ],
)
def test_curves_for_who_believes(overlap, epsilon, delta):
    found = OverlapCurve(ONE, overlap).delta(epsilon)
    assert found == pytest.approx(delta, abs=6e-11)


@pytest.mark.parametrize(
    "eta, epsilon, target, mu, plain_mu",
    [
        (0.37, 0.1, 0.250172, 0.081377, 0.032521),
        (0.35, 0.3, 0.692945, 0.205829, 0.088983),
        (0.21, 0.3, 0.980577, 0.291778, 0.088983),
    ],
)
def test_gaussian_budgets(eta, epsilon, target, mu, plain_mu):
    assert amplified_target(epsilon, eta) == pytest.approx(target, abs=6e-7)
    # at that mu the curve holds as much as is left of the budget, and hardly more
    for at, budget, delta in ((mu, target, 1e-5 / eta), (plain_mu, epsilon, 1e-5)):
        assert GaussianCurve(at - 1e-6).delta(budget) < delta
        assert GaussianCurve(at + 1e-6).delta(budget) > delta


def test_budgets_of_either_order():
    lop = FiniteOverlap((0.9, 0.1), (0.5, 0.5))
    first, second = lop.etas(0.2)
    assert amplified_budgets(lop, 0.2, 1e-3) == (
        (amplified_target(0.2, first), 1e-3 / first),
        (amplified_target(0.2, second), 1e-3 / second),
    )
    # one budget where both orders ask for the same
    assert len(amplified_budgets(COIN, 0.2, 1e-3)) == 1
    # what is within the budget asks for nothing, and a delta of one for hardly more
    assert amplified_budgets(lop, 0.2, max(first, second)) == ()
    assert amplified_budgets(lop, 0.2, (first + second) / 2) == (
        (
            amplified_target(0.2, max(first, second)),
            (first + second) / 2 / max(first, second),
        ),
    )
    ((_, delta),) = amplified_budgets(COIN, 0.2, COIN.etas(0.2)[0] * (1 - 1e-16))
    assert delta < 1


# -- by definition ---------------------------------------------------------------------


@given(masses, masses, epsilons)
def test_finite_divergences_are_sums(first, second, epsilon):
    p, q = np.array(first), np.array(second)
    exact = [
        np.maximum(u - math.exp(epsilon) * v, 0).sum() for u, v in ((p, q), (q, p))
    ]
    found = FiniteOverlap(first, second).etas(epsilon)
    for one, other in zip(found, exact, strict=True):
        assert other <= one <= other + 1e-12


@given(st.floats(1.0 + 1e-9, 50.0), epsilons)
def test_no_coin_within_the_odds_diverges_more(w, epsilon):
    bound, grown = OddsOverlap(w).etas(epsilon)[0], math.exp(epsilon)
    q = np.linspace(0, 1, 2001)
    # all coins whose odds differ by the whole range
    p = w * q / (1 + (w - 1) * q)
    for u, v in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        assert (u - grown * v).max() <= bound + 1e-15
    # and that of the root of it attains the bound
    u = math.sqrt(w) / (1 + math.sqrt(w))
    tight = 1 / (w - 1) * max(0.0, math.sqrt(w) - math.exp(epsilon / 2)) ** 2
    assert bound <= tight * (1 + 1e-6) + 1e-9
    assert u - grown * (1 - u) <= bound + 1e-15


@pytest.mark.parametrize("odds", [1.0, 1.3, 2.0, 30.0])
@pytest.mark.parametrize("mu", [0.05, 0.6, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 5.0])
def test_normals_with_odds_are_integrals_of_coins(mu, odds, epsilon):
    grown = math.exp(epsilon)

    def height(x):
        u, v = stats.norm.pdf(x, mu), grown * stats.norm.pdf(x)
        q = np.linspace(0, 1, 20_001)
        return np.max(u * odds * q / (1 + (odds - 1) * q) - v * q, initial=0.0)

    kinks = [(epsilon + s * math.log(odds)) / mu + mu / 2 for s in (-1, 0, 1)]
    inside = [x for x in kinks if -9 < x < 9 + mu]
    exact, _ = quad(height, -9, 9 + mu, points=inside or None, limit=200)
    assert NormalOverlap(mu, odds).etas(epsilon)[0] == pytest.approx(
        exact, abs=2e-7, rel=1e-5
    )


@given(masses, masses, st.floats(1.0, 20.0), epsilons)
@example((0.25,) * 4, (0.4, 0.4, 0.1, 0.1), 1.0000009536743164, 0.0)
def test_more_odds_never_diverge_less(first, second, odds, epsilon):
    narrow = FiniteOverlap(first, second, odds).etas(epsilon)
    wide = FiniteOverlap(first, second, 1.5 * odds).etas(epsilon)
    alone = FiniteOverlap(first, second).etas(epsilon)
    for one, other, least in zip(narrow, wide, alone, strict=True):
        # near odds of one divergences are raised by what rounding may take, 1.5e-8
        assert least - 1e-12 <= one <= other + 2e-8


@pytest.mark.parametrize(
    "overlap",
    [COIN, THREE, FiniteOverlap((0.7, 0.3), (0.1, 0.9), 3.0), OddsOverlap(5.0, 0.1)]
    + [of(0.7), of(0.7, 1.5), WorstOverlap((THREE, OddsOverlap(2.0), of(0.6)))],
    ids=repr,
)
def test_divergences_fall_and_are_those_of_distributions(overlap):
    grid = np.linspace(-4, 4, 81)
    first, second = np.array([overlap.etas(float(e)) for e in grid]).T
    for etas in (first, second):
        assert np.all(np.diff(etas) <= 1e-12)
        assert np.all(etas >= np.maximum(0, -np.expm1(grid)) - 1e-15)
    # η_PQ(-ε) = 1 - e^-ε + e^-ε η_QP(ε)
    np.testing.assert_allclose(
        first[::-1], -np.expm1(-grid) + np.exp(-grid) * second, atol=1e-12
    )


def test_the_worst_is_taken_in_each_order():
    lop = FiniteOverlap((0.9, 0.1), (0.5, 0.5))
    other = FiniteOverlap(lop.second, lop.first)
    assert lop.etas(0.5)[0] != pytest.approx(lop.etas(0.5)[1])
    worst = WorstOverlap((lop, other)).etas(0.5)
    assert worst == pytest.approx((max(lop.etas(0.5)),) * 2)


def test_far_out_nothing_overflows():
    for overlap in (COIN, of(0.9, 3.0), OddsOverlap(4.0)):
        assert overlap.etas(1e4) == pytest.approx((0, 0), abs=1e-9)
        curve = OverlapCurve(ONE, overlap)
        assert 0 <= curve.delta(1e4) <= 1e-9
        assert 0 <= curve.delta(-1e4) <= 1
    assert amplified_target(800.0, 0.5) == pytest.approx(800 + math.log(2))


# -- pairs of distributions that each kind stands for ---------------------------------


def coins(odds):
    """Biased coins, of which either side shifts the odds of the two by as stated."""
    share = np.linspace(0.02, 0.98, 49) if odds > 1 else np.ones(1)
    grown = odds * share / (1 - share + odds * share)
    for one, other in zip(grown, share, strict=True):
        yield np.array([one, 1 - one]), np.array([other, 1 - other])


def with_coins(p, q, odds):
    for first, second in coins(odds):
        yield np.outer(p, first).ravel(), np.outer(q, second).ravel()


def of_normals(overlap):
    edges = np.concatenate([[-np.inf], np.linspace(-6, 9, 301), [np.inf]])
    p, q = (np.diff(stats.norm.cdf(edges, at)) for at in (overlap.mu, 0.0))
    yield from with_coins(p, q, overlap.odds)


def of_odds(overlap):
    rest, one, other = 1 - overlap.share, [overlap.share, 0.0], [0.0, overlap.share]
    for p, q in coins(overlap.odds):
        yield np.append(rest * p, one), np.append(rest * q, other)


def of_near(overlap):
    """Either moves all it may, from where the other weighs most, to what is its own."""
    for pair in members(overlap.part):
        moved = []
        for own, other in (pair, pair[::-1]):
            order = np.argsort(own / np.maximum(other, 1e-300))
            left, up_to = np.empty(len(own)), np.cumsum(own[order])
            left[order] = np.clip(up_to - overlap.variation, 0, own[order])
            moved.append(left)
        more = overlap.variation
        yield np.append(moved[0], [more, 0.0]), np.append(moved[1], [0.0, more])


MEMBERS = {
    FiniteOverlap: lambda o: with_coins(o.first, o.second, o.odds),
    NearOverlap: of_near,
    NormalOverlap: of_normals,
    OddsOverlap: of_odds,
    WorstOverlap: lambda o: (pair for part in o.parts for pair in members(part)),
}


def members(overlap):
    return MEMBERS[type(overlap)](overlap)


@pytest.mark.parametrize(
    "overlap",
    [COIN, FiniteOverlap(THREE.first, THREE.second, 2.0), of(0.7), of(0.7, 1.5)]
    + [OddsOverlap(4.0), OddsOverlap(4.0, 0.1), WorstOverlap((COIN, of(0.6)))]
    + [NearOverlap(part, 0.02) for part in (COIN, THREE, OddsOverlap(4.0), of(0.7))],
    ids=repr,
)
def test_no_pair_that_it_stands_for_diverges_more(overlap):
    for epsilon in (-1.0, 0.0, 0.2, 0.3, 2.0):
        grown = math.exp(epsilon)
        found = [
            [np.maximum(u - grown * v, 0).sum() for u, v in ((p, q), (q, p))]
            for p, q in members(overlap)
        ]
        most = np.max(found, axis=0)
        etas = np.array(overlap.etas(epsilon))
        assert np.all(most <= etas + 1e-12)
        # further out some of it is a bound that no pair comes near to
        assert not 0 <= epsilon <= 1 or np.all(most >= 0.97 * etas)


def test_each_kind_is_held_to_what_it_stands_for():
    kinds = {kind for kind in Overlap.__subclasses__() if kind.__module__ == MODULE}
    assert kinds == MEMBERS.keys()


# -- curves ----------------------------------------------------------------------------


def joint_delta(overlap, records, noise, epsilon):
    """Hockey-stick divergence of noisy records drawn by either distribution."""
    x = np.linspace(-12 * noise, 1 + 12 * noise, 200_001)
    first, second = (
        sum(
            mass * stats.norm.pdf(x, at, noise)
            for mass, at in zip(of_record, records, strict=True)
        )
        for of_record in (overlap.first, overlap.second)
    )
    return max(
        np.trapezoid(np.maximum(u - math.exp(epsilon) * v, 0), x)
        for u, v in ((first, second), (second, first))
    )


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.1, 0.6, 1.5])
def test_no_noisy_record_diverges_more(noise, epsilon):
    curve = GaussianCurve(1 / noise)
    for overlap, records in (
        (COIN, (0.0, 1.0)),
        (THREE, (0.0, 0.5, 1.0)),
        (FiniteOverlap((0.1, 0.9), (0.3, 0.7)), (0.0, 1.0)),
    ):
        exact = joint_delta(overlap, records, noise, epsilon)
        found = OverlapCurve(curve, overlap).delta(epsilon)
        assert exact <= found + 1e-9
        assert found <= curve.delta(epsilon)
        if len(records) == 2 and epsilon >= 0:
            # one bit loses nothing by the bound, as the two ends are all there is
            assert found == pytest.approx(exact, abs=1e-7)


@given(st.floats(0.05, 4.0), st.floats(1.1, 30.0), st.floats(1e-9, 0.3))
def test_epsilon_and_delta_agree(mu, w, delta):
    curve = OverlapCurve(GaussianCurve(mu), OddsOverlap(w))
    epsilon = curve.epsilon(delta)
    assert curve.delta(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-9:
        assert curve.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-3)
    assert epsilon <= min(curve.curve.epsilon(delta), math.log(w) + 1e-9)


def test_what_holds_of_costs_holds_whatever_is_believed():
    curve = OverlapCurve(ONE, COIN)
    assert curve.renyi(3.0) == ONE.renyi(3.0)
    assert curve.gaussian_mu is None
    # at a delta of zero there is nothing to search for
    for family in (GaussianNoise(1.0), LaplaceNoise(1.0)):
        plain = family.curve(1.0)
        assert OverlapCurve(plain, COIN).epsilon(0.0) == plain.epsilon(0.0)


@pytest.mark.parametrize(
    "overlap", [COIN, of(0.7, 2.0), WorstOverlap((OddsOverlap(3.0, 0.01), THREE))]
)
def test_a_curve_is_read_back(overlap):
    curve = OverlapCurve(ONE, overlap)
    read = from_plain(json.loads(json.dumps(to_plain(curve))))
    assert read == curve
    assert read.delta(0.4) == curve.delta(0.4)
