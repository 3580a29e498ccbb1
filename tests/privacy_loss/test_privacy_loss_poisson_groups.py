"""Groups in Poisson batches under Gaussian noise: exact pairs, and nothing worse."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.kernel.pairs import MixturePair, PoissonPair, renyi_of_pair
from skpuffer.kernel.poisson_groups import (
    GaussianPoissonGroup,
    GaussianPoissonPair,
    _mixture,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy import compose
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

UNIT = Shift(1.0, norm=2, dim=None)
EPSILONS = np.array([0.0, 1e-3, 0.1, 0.7, 2.0, 6.0])
SIZES = [(1, 1), (2, 0), (0, 2), (2, 1), (1, 3), (5, 0), (4, 4)]


def pair(scale, rate, first, second):
    return GaussianPoissonPair(GaussianNoise(scale).curve(UNIT), rate, first, second)


def density(x, count, rate, scale, side):
    weights = binom.pmf(np.arange(count + 1), count, rate)
    return sum(w * norm.pdf(x, side * j, scale) for j, w in enumerate(weights))


@pytest.mark.parametrize("first, second", SIZES)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0])
def test_pairs_are_the_mixtures(first, second, rate, scale):
    found = pair(scale, rate, first, second)
    reach = 6 + 9 * scale
    x = np.linspace(-reach, reach, 100_001)
    p = density(x, first, rate, scale, 1)
    q = density(x, second, rate, scale, -1)
    for epsilon, there, back in zip(
        EPSILONS, found.delta(EPSILONS), found.reverse(EPSILONS), strict=True
    ):
        ahead = np.trapezoid(np.maximum(0, p - math.exp(epsilon) * q), x)
        behind = np.trapezoid(np.maximum(0, q - math.exp(epsilon) * p), x)
        assert there == pytest.approx(ahead, abs=1e-8)
        assert back == pytest.approx(behind, abs=1e-8)


def test_one_record_is_the_pair_known_in_closed_form():
    epsilon = np.concatenate([[0.0], np.geomspace(1e-8, 300, 400)])
    for scale, rate in itertools.product((0.2, 1.0, 30.0), (1e-6, 0.01, 0.5, 0.999)):
        known = PoissonPair(GaussianNoise(scale).curve(UNIT), rate)
        found = pair(scale, rate, 1, 0)
        for a, b in ((known.delta, found.delta), (known.reverse, found.reverse)):
            # next to the largest loss either form loses half its digits
            np.testing.assert_allclose(b(epsilon), a(epsilon), rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 30.0])
@pytest.mark.parametrize("first, second", [(3, 0), (2, 2)])
def test_far_tails_keep_their_digits(epsilon, first, second):
    mp = mpmath.mp.clone()
    mp.dps = 60
    a, rate = mp.mpf(1) / 2, mp.mpf("0.01")

    def mixture(count, tail):
        return mp.fsum(
            mp.binomial(count, j) * rate**j * (1 - rate) ** (count - j) * tail(j * a)
            for j in range(count + 1)
        )

    def loss(x):
        return mp.log(mixture(first, lambda m: mp.npdf(x - m))) - mp.log(
            mixture(second, lambda m: mp.npdf(x + m))
        )

    x = mp.findroot(lambda x: loss(x) - epsilon, (0, 200), solver="anderson")
    exact = mixture(first, lambda m: mp.ncdf(m - x)) - mp.exp(epsilon) * mixture(
        second, lambda m: mp.ncdf(-m - x)
    )
    found = pair(2.0, 0.01, first, second).delta(np.array([epsilon]))[0]
    assert found == pytest.approx(float(exact), rel=1e-10, abs=0)


def test_oracles_of_sampled_groups():
    # quadrature of Binomial(10, 0.2) units, noise of deviation 5, at order 8
    for first, exact in ((10, 1.4878352305), (0, 0.4396007396)):
        found = renyi_of_pair(pair(5.0, 0.2, first, 10 - first), [8.0])[0]
        assert exact <= found == pytest.approx(exact, rel=1e-4)


def test_composed_groups_as_dp_accounting_has_them():
    k = 4
    library = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    scale, rate, steps = 2.0, 0.1, 50
    law = library.from_mixture_gaussian_mechanism(
        standard_deviation=scale,
        sensitivities=list(range(k + 1)),
        sampling_probs=list(binom.pmf(range(k + 1), k, rate)),
        value_discretization_interval=4e-3,
    )
    known = law.self_compose(steps).get_epsilon_for_delta(1e-5)
    curve = PrivacyLossCurve(
        ((GaussianPoissonGroup(GaussianNoise(scale).curve(UNIT), rate, k), steps),)
    )
    assert curve.epsilon(1e-5) == pytest.approx(known, rel=2e-3)


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 3), st.floats(0.02, 0.9))
def test_no_gradients_are_worse(seed, scale, rate):
    """Any vectors of a group of three, some of which come and some of which go."""
    rng = np.random.default_rng(seed)
    sides = rng.integers(0, 2, size=3)
    vectors = rng.normal(size=(3, 2))
    vectors /= np.maximum(1, np.linalg.norm(vectors, axis=1))[:, None]
    line = np.linspace(-3 - 6 * scale, 3 + 6 * scale, 400)

    def law(side):
        mine = vectors[sides == side]
        total = 0
        for chosen in itertools.product((0, 1), repeat=len(mine)):
            weight = math.prod(rate if c else 1 - rate for c in chosen)
            mean = np.array(chosen) @ mine if len(mine) else np.zeros(2)
            total = total + weight * np.outer(*norm.pdf(line - mean[:, None], 0, scale))
        return total

    p, q = law(0), law(1)
    cell = (line[1] - line[0]) ** 2
    bound = pair(scale, rate, int(np.sum(sides == 0)), int(np.sum(sides == 1)))
    for epsilon, most in zip(EPSILONS, bound.delta(EPSILONS), strict=True):
        real = cell * np.maximum(0, p - math.exp(epsilon) * q).sum()
        assert real <= most * (1 + 1e-6) + 1e-7


@given(
    st.floats(0.1, 50),
    st.floats(1e-6, 0.9999),
    st.integers(0, 12),
    st.integers(0, 12),
)
@example(1.0, 0.9999, 0, 5)  # the whole group is missing with probability 1e-20
def test_pairs_are_trade_offs_and_no_looser_than_what_holds_for_all(
    scale, rate, first, second
):
    if first + second == 0:
        second = 1
    found = pair(scale, rate, first, second)
    epsilon = np.concatenate([np.linspace(0, 20, 200), [1e3, 1e9]])
    any_noise = MixturePair(GaussianNoise(scale).curve(UNIT), first + second, rate)
    for curve in (found.delta, found.reverse):
        value = curve(epsilon)
        assert np.all((value >= 0) & (value <= 1))
        assert np.all(np.diff(value) <= 1e-15)
        assert np.all(value <= any_noise.delta(epsilon) * (1 + 1e-9) + 1e-15)


@pytest.mark.parametrize("rate", [0.3, 0.99, 0.9999])
def test_a_mixture_far_from_its_records_is_the_batch_without_them(rate):
    value, slope = _mixture(5, rate, 1.0).over_normal(np.array([[-60.0]]))
    np.testing.assert_allclose(value, [[5 * math.log1p(-rate)]], rtol=1e-12)
    assert 0 <= slope <= 1e-6


def test_without_noise_only_batches_with_none_of_the_group_tell_nothing():
    exact = pair(0.0, 0.25, 2, 1)
    at = np.array([0.0, 0.2, 1.0])
    np.testing.assert_allclose(
        exact.delta(at), 1 - 0.75**2 + np.maximum(0, 0.75**2 - np.exp(at) * 0.75)
    )
    np.testing.assert_allclose(
        exact.reverse(at), 1 - 0.75 + np.maximum(0, 0.75 - np.exp(at) * 0.75**2)
    )


def run(**options):
    return GradientRelease(
        **{"n_records": 10_000, "batch_size": 100, "n_steps": 500} | options
    )


def cost(k, relation="add_remove", scale=2.0, accountant=None, **options):
    accountant = accountant or PrivacyLoss(delta=1e-5)
    scenario = RecordScenario(k, relation)
    return accountant.certify(GaussianNoise(scale), run(**options), scenario)


def test_a_group_of_two_covers_a_record_that_another_replaces():
    assert cost(2).epsilon >= cost(1, "replace").epsilon
    assert cost(4).epsilon >= cost(2, "replace").epsilon


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_larger_groups_cost_more_and_some_data_attain_it(relation):
    found = [cost(k, relation) for k in (1, 2, 3, 8)]
    epsilons = [certificate.epsilon for certificate in found]
    assert epsilons == sorted(set(epsilons))
    for certificate in found:
        lower, upper = certificate.epsilon_lower, certificate.epsilon
        assert 0.95 * upper <= lower <= upper


def test_a_run_of_a_household_costs_less_than_by_splitting_the_loss():
    """What it saves over a bound that holds for any noise."""
    k, what = 4, run()
    exact = cost(k).epsilon
    step = MixturePair(GaussianNoise(2.0).curve(UNIT), k, what.sampling_rate)
    any_noise = PrivacyLossCurve(((step, what.n_steps),)).epsilon(1e-5)
    assert exact < 0.95 * any_noise
    assert exact > cost(1).epsilon * k * 0.9


def test_very_large_groups_are_bounded_too():
    few, many = cost(16, scale=30.0), cost(17, scale=30.0)
    assert few.epsilon_lower is not None
    assert many.epsilon_lower is None
    assert few.epsilon < many.epsilon


def test_calibration_and_renyi_orders():
    accountant = PrivacyLoss(epsilon=2.0, delta=1e-5)
    noise = accountant.calibrate(run(), RecordScenario(3)).noise
    assert cost(3, scale=noise.scale).epsilon <= 2.0
    assert cost(3, scale=noise.scale * 0.999).epsilon > 2.0
    orders = RenyiDP(delta=1e-5)
    loose = orders.certify(noise, run(), RecordScenario(3))
    assert 2.0 <= loose.epsilon <= 2.6


def test_certificates_of_groups_compose():
    one = cost(3, n_steps=200)
    two = cost(3, n_steps=300)
    both = compose([one, two])
    assert both.epsilon == pytest.approx(cost(3, n_steps=500).epsilon, rel=1e-3)
    plain = cost(3, sampling="full_batch", batch_size=None, n_steps=2, scale=40.0)
    mixed = compose([one, plain])
    assert one.epsilon < mixed.epsilon < one.epsilon + plain.epsilon
    laplace = PrivacyLoss(delta=1e-5, noise="laplace").certify(
        LaplaceNoise(10.0), run(clip_order=1, n_steps=10), RecordScenario(3)
    )
    assert compose([one, laplace]).epsilon > one.epsilon


@pytest.mark.parametrize("rate", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("first, second", [(1, 1), (3, 0), (0, 2)])
def test_rare_records_that_hardly_move_anything_are_not_lost(rate, first, second):
    """Where 1 + a little would be rounded to 1."""
    found = pair(1000.0, rate, first, second).delta(np.array([0.0]))[0]
    # to first order each record adds its rate times the trade-off of one
    one = norm.cdf(0.0005) - norm.cdf(-0.0005)
    known = (first + second) * rate * one
    assert found == pytest.approx(known, rel=2e-3, abs=0)


def test_no_epsilon_within_reach_is_no_error():
    one_way = pair(1.0, 0.01, 0, 3)
    beyond = np.array([1.0, 5.0])
    np.testing.assert_array_equal(one_way.delta(beyond), [0.0, 0.0])


def test_who_is_in_every_batch_is_told_as_without_batches():
    pair = PoissonPair(GaussianNoise().curve(1.5), 1.0)
    at = np.array([-2.0, 0.0, 0.5, 3.0])
    known = GaussianNoise().delta(at, Shift(1.5))
    np.testing.assert_allclose(pair.delta(at), known, rtol=1e-12)
    np.testing.assert_allclose(pair.reverse(at), known, rtol=1e-12)
