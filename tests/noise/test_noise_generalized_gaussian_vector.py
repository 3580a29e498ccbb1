"""Generalised Gaussian noise when many coordinates move."""

import math

import numpy as np
import pytest
from scipy.stats import norm as gauss

from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.exceptions import Statement
from skpuffer.kernel.loss_grid import Sum, on_grid
from skpuffer.kernel.pairs import ShiftPair
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, Shift
from skpuffer.noise._generalized_gaussian_loss import log_deltas
from skpuffer.noise.generalized_gaussian import Euclidean, Splits
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.privacy_loss._divergences import hull
from tests.refused import refused as is_refused

SHAPES = (1.05, 1.25, 1.5, 1.75, 3.0, 4.0)


def noise(beta, scale=1.0):
    return GeneralizedGaussianNoise(scale, beta=beta)


def composed(unit, parts):
    """The exact curve of one displacement: coordinates are composed."""
    pairs = tuple((ShiftPair(unit.curve(Shift(v, dim=1))), 1) for v in parts)
    return PrivacyLossCurve(pairs)


def random_parts(rng, beta, u):
    """A displacement of that length in the norm in which the noise measures it."""
    share = rng.dirichlet(np.full(rng.integers(2, 7), rng.choice([0.3, 1.0, 5.0])))
    # tiny parts only make for large grids, and it costs less without them
    return (u * share[share > 1e-2] ** (1 / min(beta, 2))).tolist()


@pytest.mark.parametrize("beta", SHAPES)
def test_no_random_split_costs_more(beta):
    rng = np.random.default_rng(int(100 * beta))
    unit = noise(beta)
    for u in (0.3, 1.0):
        shift = Shift(u, norm=unit.norm, dim=None)
        split = composed(unit, random_parts(rng, beta, u))
        for delta in (0.05, 1e-5, 1e-9):
            # the composition may add its own tolerance
            bound = unit.epsilon(delta, shift) * (1 + 6e-5) + 1e-6
            assert split.epsilon(delta) <= bound
        for alpha in (1.1, 2.0, 8.0, 64.0):
            bound = unit.renyi(alpha, shift) * (1 + 1e-9)
            splits = [random_parts(rng, beta, u) for _ in range(20)]
            costs = unit.renyi(alpha, np.concatenate(splits))
            starts = np.cumsum([0, *map(len, splits[:-1])])
            assert np.all(np.add.reduceat(costs, starts) <= bound)


@pytest.mark.parametrize("beta", [1.05, 1.5, 3.0])
@pytest.mark.parametrize("norm", ["best", 2])
def test_trade_off_is_convex_symmetric_and_above_one_coordinate(beta, norm):
    unit = noise(beta)
    shift = Shift(1.3, norm=unit.norm if norm == "best" else norm, dim=None)
    epsilons = np.linspace(-30, 30, 4001)
    delta = unit.delta(epsilons, shift)
    assert np.all(delta >= unit.delta(epsilons, 1.3) * (1 - 1e-12))
    # further down the divergence is too close to one
    usual = epsilons > -5
    widths = np.diff(np.exp(epsilons[usual]))
    slopes = np.diff(delta[usual]) / widths
    rounding = 1e-15 * delta[usual][:-2] / widths[:-1]
    assert np.all(np.diff(slopes) >= -1e-9 * np.abs(slopes[1:]) - rounding)
    image = -np.expm1(-epsilons) + np.exp(-epsilons) * delta
    positive = epsilons > 0
    np.testing.assert_allclose(delta[~positive][::-1][1:], image[positive], rtol=1e-9)
    # down to where only orders speak, and on to nothing
    assert unit.delta(1e3, shift) < 1e-290
    assert unit.delta(math.inf, shift) == 0.0
    assert unit.delta(-math.inf, shift) == 1.0


@pytest.mark.parametrize("beta", [1.25, 1.75])
def test_costs_of_an_l2_shift_have_a_proved_bound(beta):
    unit, shift = noise(beta), Shift(0.6, norm=2, dim=None)
    assert unit.renyi(7.0, shift) == pytest.approx(
        7.0 * unit.fisher_information / 2 * 0.36
    )
    # the Gaussian law that spread shifts tend to, which is below
    limit = GaussianNoise(1 / math.sqrt(unit.fisher_information))
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        assert unit.delta(epsilon, shift) >= limit.delta(epsilon, 0.6)
    many = PrivacyLossCurve(((ShiftPair(unit.curve(Shift(0.06, dim=1))), 100),))
    assert many.epsilon(1e-5) <= unit.epsilon(1e-5, shift)


@pytest.mark.parametrize("u, delta", [(0.3, 1e-100), (35.0, 1e-8)])
def test_the_far_tail_is_the_one_that_is_proved(u, delta):
    """That of rho-zero-concentrated privacy, which holds for any split."""
    unit = noise(1.5)
    rho = unit.fisher_information * u**2 / 2
    proved = rho + 2 * math.sqrt(rho * -math.log(delta))
    found = unit.epsilon(delta, Shift(u, norm=1.5, dim=None))
    assert found == pytest.approx(proved, rel=0.02)


def test_a_known_dimension_helps():
    unit = noise(1.5)
    unknown, two, many = (Shift(1.0, norm=2, dim=dim) for dim in (None, 2, 10**6))
    assert unit.renyi(8, two) < unit.renyi(8, unknown) == unit.renyi(8, many)
    assert unit.epsilon(1e-5, two) < unit.epsilon(1e-5, unknown)
    assert unit.epsilon(1e-5, many) == unit.epsilon(1e-5, unknown)
    worst = composed(unit, [math.sqrt(0.5)] * 2).epsilon(1e-5)
    assert worst <= unit.epsilon(1e-5, two)
    # larger norms by Hölder's inequality
    cube = Shift(1.0, norm=math.inf, dim=2)
    assert unit.delta(1.0, cube) >= composed(unit, [1.0, 1.0]).delta(1.0) * (1 - 1e-3)


def test_spreading_over_many_coordinates_is_covered_beyond_gauss():
    unit = noise(3.0)
    many = PrivacyLossCurve(((ShiftPair(unit.curve(Shift(0.05, dim=1))), 100),))
    for delta in (0.1, 1e-5):
        assert many.epsilon(delta) <= unit.epsilon(delta, Shift(0.5, dim=None)) * 1.0001


@pytest.mark.parametrize("dim", [2, 4034, None])
def test_beyond_gauss_a_large_norm_is_refused(dim):
    shift = Shift(1.0, norm=3, dim=dim)
    with is_refused(ValueError, "shaped.shift_norm_unbounded") as refused:
        noise(3.0).delta(1.0, shift)
    for call in (
        lambda: noise(3.0).renyi(2, shift),
        lambda: noise(3.0).epsilon(1e-5, shift),
        lambda: scale_for(noise(3.0), 2, 1.0, shift),
        lambda: scale_for_delta(noise(3.0), 1.0, 1e-5, shift),
        lambda: noise(3.0).evidence(shift),
    ):
        with is_refused(
            ValueError,
            ("shaped.remedy_l2_radius_covers", "shaped.remedy_state_l2_bound"),
        ):
            call()
    if dim is not None:
        radius = dim ** (1 / 2 - 1 / 3)
        assert f"radius {radius:g} covers" in str(refused.value)
        assert noise(3.0).renyi(2, Shift(radius, norm=2, dim=dim)) > 0
    # what needs no norm stays answered
    assert noise(3.0).delta(1.0, Shift(1.0, norm=3, dim=1)) == noise(3.0).delta(
        1.0, 1.0
    )
    assert noise(3.0).renyi(2, Shift(0.0, norm=3, dim=dim)) == 0.0


def test_one_thousand_coordinates_cost_ever_more_in_their_own_norm():
    # why: the same 3-norm, spread out
    unit, u = noise(3.0), 0.5
    costs = [
        PrivacyLossCurve(
            ((ShiftPair(unit.curve(Shift(u / m ** (1 / 3), dim=1))), m),)
        ).epsilon(1e-5)
        for m in (1, 100, 1000)
    ]
    assert costs[0] < 0.8 * costs[1] < 0.6 * costs[2]


@pytest.mark.parametrize("beta", [1.5, 3.0])
def test_calibration_of_a_vector(beta):
    unit = noise(beta, (1.0, 2.0))
    shift = Shift(0.7, norm=unit.norm, dim=2)
    scale = scale_for_delta(unit, 1.0, 1e-5, shift)
    assert scale[1] == pytest.approx(2 * scale[0])
    assert unit.with_scale(scale).delta(1.0, shift) <= 1e-5
    assert unit.with_scale(scale * (1 - 1e-5)).delta(1.0, shift) > 1e-5
    scale = scale_for(unit, 8.0, 0.5, shift)
    assert 0.5 * (1 - 1e-5) <= unit.with_scale(scale).renyi(8.0, shift) <= 0.5
    with is_refused(ValueError, "shaped.beta_no_pure_epsilon"):
        scale_for(unit, math.inf, 1.0, shift)


def test_evidence_tells_what_is_not_proved():
    l2, unknown = Shift(1.0, norm=2, dim=None), Shift(1.0, norm=1.5, dim=None)
    (found,) = noise(1.5).evidence(unknown)
    assert found == Statement("assume.worst_direction_numerical")
    assert noise(1.5).evidence(unknown, renyi=True) == ()
    assert noise(1.5).evidence(l2) == noise(1.5).evidence(l2, renyi=True) == ()
    assert noise(1.5).evidence(Shift(1.0, norm=2, dim=2)) == (found,)
    assert noise(3.0).evidence(l2) == noise(3.0).evidence(l2, renyi=True) == (found,)
    assert GaussianNoise().evidence(l2) == ()


@pytest.mark.parametrize(
    "beta, u",
    [
        # the longest shift at every other shape, and the shorter ones at the others
        pytest.param(beta, u, marks=[] if (i + (u < 1)) % 2 else pytest.mark.slow)
        for i, beta in enumerate([1.0001, 1.5, 1.99, 2.2, 8.0, 40.0])
        for u in (1e-6, 1e-2, 30.0)
    ],
)
def test_extremes_are_numbers_and_above_one_coordinate(beta, u):
    unit, shift = noise(beta), Shift(u, norm=min(beta, 2), dim=None)
    epsilon = unit.epsilon(1e-8, shift)
    assert unit.epsilon(1e-8, u) * (1 - 1e-9) <= epsilon
    assert unit.delta(epsilon, shift) <= 1e-8
    assert unit.renyi(3.0, shift) >= unit.renyi(3.0, u) * (1 - 1e-9)


def test_a_sum_of_losses_is_read_off_at_many_epsilons():
    pair = ShiftPair(GaussianNoise().curve(Shift(0.5, dim=1)))
    grid = on_grid(pair, 0.01, 1e-30, math.inf)
    assert grid._moments(grid.tilted(0.0))[0] == pytest.approx(0.125, rel=1e-3)
    tail = Sum([(grid, 4)]).tail(4.0, math.inf)
    epsilons = np.linspace(-3, 30, 777)
    read = np.exp(log_deltas(tail, epsilons))
    expected = np.array([tail.delta(e) for e in epsilons])
    np.testing.assert_allclose(read, expected, rtol=1e-12)
    exact = GaussianNoise().delta(epsilons, 1.0)
    assert np.all(read >= exact * (1 - 1e-12))
    near = np.abs(epsilons - 4) < 1
    np.testing.assert_allclose(read[near], exact[near], rtol=2e-3)


def test_hull_of_a_known_curve():
    epsilons = np.linspace(0, 12, 400)
    curve = GaussianNoise().curve(1.5)
    exact = curve.delta(epsilons)
    wavy = exact * (1 + 0.3 * np.sin(40 * epsilons) ** 2)
    found = hull(epsilons, np.log(wavy))
    marks = np.linspace(-11.9, 11.9, 1001)
    assert np.all(found.delta(marks) >= curve.delta(marks) * (1 - 1e-12))
    assert np.all(found.delta(epsilons) <= wavy * (1 + 1e-12))
    assert found.epsilon(0.9) == 0.0
    for delta in (0.5, 1e-3, 1e-10):
        epsilon = found.epsilon(delta)
        assert found.delta(epsilon) <= delta
        assert curve.epsilon(delta) <= epsilon
    assert found.epsilon(1e-200) == math.inf
    assert gauss.cdf(0.75) * 2 - 1 == pytest.approx(exact[0])


@pytest.mark.parametrize("beta", [1.5, 3.0])
def test_no_move_costs_nothing_and_an_endless_one_all(beta):
    for strategy in (Splits(beta), Euclidean(beta)):
        assert strategy._epsilon(1e-5, 0.0) == 0
        assert strategy._epsilon(1e-5, math.inf) == math.inf
        assert strategy._delta(1.0, 0.0) == 0
        assert strategy._delta(-1.0, 0.0) == pytest.approx(-math.expm1(-1.0))
        assert strategy._delta(1.0, math.inf) == 1


@pytest.mark.parametrize("u", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [1.5, 4.0, 30.0])
def test_an_l2_shift_costs_the_lesser_of_two_bounds(alpha, u):
    """By the Fisher information, and by splits of the longest move in their norm."""
    made = noise(1.5)
    informed = alpha * made.fisher_information * u**2 / 2
    for dim in (2, 3, 11):
        longest = dim ** (1 / 1.5 - 1 / 2) * u
        split = made.renyi(alpha, Shift(longest, norm=1.5, dim=dim))
        cost = made.renyi(alpha, Shift(u, norm=2, dim=dim))
        assert cost == pytest.approx(min(informed, split), rel=1e-9)
        # no equal split costs more
        assert dim * made.renyi(alpha, u / math.sqrt(dim)) <= cost * (1 + 1e-9)
    # of more coordinates, or of any number, the information alone
    for dim in (12, None):
        cost = made.renyi(alpha, Shift(u, norm=2, dim=dim))
        assert cost == pytest.approx(informed, rel=1e-12)


def test_which_bound_is_the_lesser_depends_on_the_move():
    made, shift = noise(1.5), Shift(4.0, norm=2, dim=2)
    assert made.renyi(30.0, shift) < 30 * made.fisher_information * 16 / 2 * 0.9


@pytest.mark.parametrize("beta", [1.25, 1.5, 1.75])
@pytest.mark.parametrize("norm", [2.5, 3, math.inf])
def test_a_shift_in_a_larger_norm_costs_what_its_l2_norm_does(norm, beta):
    made, alpha, dim = noise(beta), 4.0, 10**6
    longest = dim ** (1 / 2 - 1 / norm) * 1e-3
    expected = alpha * made.fisher_information * longest**2 / 2
    cost = made.renyi(alpha, Shift(1e-3, norm=norm, dim=dim))
    assert cost == pytest.approx(expected, rel=1e-12)
    # and as much as an l2 shift of that length
    assert cost == pytest.approx(made.renyi(alpha, Shift(longest, 2, dim)), rel=1e-12)
