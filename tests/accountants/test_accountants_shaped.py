"""Shaped noise: the programme, the numbers it must meet, and what it refuses."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skpuffer.accountants import (
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    ShapedWasserstein,
)
from skpuffer.accountants._shaped._moves import FixedMoves
from skpuffer.accountants._shaped._programme import (
    least_shape,
    longest_within,
    span_of,
    with_room,
)
from skpuffer.distributions import (
    Discrete,
    Gaussian,
    PointMass,
    Samples,
    Support,
)
from skpuffer.exceptions import (
    InfiniteDistanceError,
    PrivacyWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Certificate, Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, LawsScenario, SimulatorScenario
from skpuffer.summary import PrivateMean
from tests.refused import refused, warned

BARE = {"floor": 0.0, "allow_degenerate": True}
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
pytestmark = quiet

FIVE = [(0, 0, 0), (3, 0, 0), (0, 4, 0), (0, 0, 1), (1, 1, 1)]


def output(dim, **options):
    return QueryRelease(
        query=lambda X, y: X.sum(axis=0), n_records=50, dim=dim, **options
    )


def all_pairs(laws):
    return LawsScenario(
        [(laws[i], laws[j]) for i in range(len(laws)) for j in range(i)]
    )


def points(*rows):
    return all_pairs([PointMass(row) for row in rows])


def total(found, release):
    """Total variance in units of the release, for a move of length one."""
    variance = found.noise.variance(release.dim) / np.square(release.unit_array)
    return float(np.sum(variance)) * found.certificate.curve.mu**2


def shaped(scenario, release=None, **options):
    """Total variance of the shape itself, and the calibration."""
    release = output(scenario.laws[0][0].dim) if release is None else release
    found = ShapedWasserstein(1.0, 4.0, **options).calibrate(release, scenario)
    return total(found, release), found


def said(found, words):
    return any(words in str(text) for text in found.certificate.assumptions)


# -- the programme ---------------------------------------------------------------------


def test_one_move():
    trace, found = shaped(points((0, 0), (-1, -4.5)), **BARE)
    assert float(found.noise.variance(2).sum()) == pytest.approx(42.5, rel=1e-9)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(
        output(2), points((0, 0), (-1, -4.5))
    )
    assert float(np.sum(wide.noise.variance(2))) == pytest.approx(85.0)
    assert trace == pytest.approx(21.25, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 3, 9])
def test_two_points_in_any_dimension(dim):
    move = np.arange(1.0, dim + 1)
    trace, _ = shaped(points(np.zeros(dim), move), **BARE)
    assert trace == pytest.approx(float(move @ move), rel=1e-9)


def test_orthogonal_moves():
    least = least_shape(np.array([[3.0, 0.0], [0.0, 4.0]]))
    assert least.trace == pytest.approx(25, rel=1e-9)
    np.testing.assert_allclose(least.weights, [0.36, 0.64], rtol=1e-6)


def test_a_triangle():
    least = least_shape(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]), gap=1e-12)
    assert least.trace == pytest.approx(8 / 3, rel=1e-10)
    values, axes = np.linalg.eigh(least.matrix)
    np.testing.assert_allclose(values, [2 / 3, 2], rtol=1e-5)
    assert abs(axes[:, 0] @ [1, 1]) == pytest.approx(math.sqrt(2))
    np.testing.assert_allclose(least.weights, [1 / 6, 1 / 6, 2 / 3], rtol=1e-5)
    trace, _ = shaped(points((0, 0), (1, 0), (0, 1)), **BARE)
    assert trace == pytest.approx(8 / 3, rel=1e-6)


def test_a_simplex():
    trace, found = shaped(points(*np.eye(4)), **BARE)
    assert trace == pytest.approx(6, rel=1e-6)
    assert isinstance(found.noise, DegenerateGaussianNoise)  # all sum to zero
    rows = np.array(
        [u - v for u in np.eye(4) for v in np.eye(4) if tuple(u) < tuple(v)]
    )
    np.testing.assert_allclose(least_shape(rows).weights, 1 / 6)


def test_five_secrets():
    moves = np.array([np.subtract(a, b) for i, a in enumerate(FIVE) for b in FIVE[:i]])
    least = least_shape(moves, gap=1e-11)
    assert least.trace == pytest.approx(37.4046712775, abs=1e-9)
    assert least.dual == pytest.approx(37.4046712775, abs=1e-9)
    _, found = shaped(points(*FIVE), **BARE)
    variance = float(found.noise.variance(3).sum())
    assert variance == pytest.approx(74.809342555, rel=1e-7)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(
        output(3), points(*FIVE)
    )
    assert float(np.sum(wide.noise.variance(3))) == pytest.approx(150)


@pytest.mark.parametrize("power, rounds", [(1.0, 2424), (2.0, 1209)])
def test_rounds_of_the_multiplicative_update(power, rounds):
    moves = np.array([np.subtract(a, b) for i, a in enumerate(FIVE) for b in FIVE[:i]])
    options = {"gap": 1e-10, "enough": 10_000, "power": power}
    least = least_shape(moves, newton=False, **options)
    assert abs(least.rounds - rounds) <= 2
    assert least_shape(moves, **options).rounds < 100


rows = st.integers(1, 6).flatmap(
    lambda d: st.lists(
        st.lists(st.integers(-5, 5), min_size=d, max_size=d).filter(any),
        min_size=1,
        max_size=7,
    ).map(lambda v: np.array(v, dtype=float))
)


@given(rows, st.booleans())
def test_the_gap_is_certified(moves, diagonal):
    least = least_shape(moves, diagonal=diagonal)
    assert least.gap <= 1e-6
    assert least.trace >= least.dual * (1 - 1e-12)
    assert least.weights.sum() == pytest.approx(1)
    # S covers v v' for each move: no move is longer than one
    room = least.matrix + 1e-9 * least.trace * np.eye(moves.shape[1])
    for move in moves:
        assert move @ np.linalg.solve(room, move) <= 1 + 1e-9
    if diagonal:
        assert np.all(least.matrix == np.diag(np.diag(least.matrix)))
        assert least.trace >= least_shape(moves).dual * (1 - 1e-9)


@given(rows, st.floats(0.1, 10))
def test_the_shape_follows_its_moves(moves, factor):
    trace = least_shape(moves).trace
    assert least_shape(factor * moves).trace == pytest.approx(
        factor**2 * trace, rel=1e-5
    )
    # no rotation, reversal or repetition changes it, and no move makes it less
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=2 * moves.shape[1:]))[0]
    turned = least_shape(moves @ turn.T)
    assert turned.trace == pytest.approx(trace, rel=1e-5)
    assert least_shape(np.vstack([moves, -moves])).trace == pytest.approx(
        trace, rel=1e-5
    )
    more = least_shape(np.vstack([moves, np.ones((1, moves.shape[1]))]))
    assert more.trace >= trace * (1 - 2e-6)
    # between the longest move and a ball around all in their span
    longest = float(np.linalg.norm(moves, axis=1).max()) ** 2
    rank = span_of(moves).shape[1]
    assert longest * (1 - 1e-9) <= trace <= rank * longest * (1 + 1e-6)


@given(rows)
def test_the_dual_never_falls(moves):
    """Of the update without steps of second order, at any power up to two."""
    for power in (1.0, 2.0):
        duals = []
        for gap in (1.0, 1e-1, 1e-2, 1e-3):
            options = {"gap": gap, "power": power, "newton": False}
            duals.append(least_shape(moves, **options).dual)
        assert all(b >= a * (1 - 1e-9) for a, b in zip(duals, duals[1:], strict=False))


def test_short_moves_are_not_cut_off():
    moves = np.array([[1.0, 0.0], [0.0, 1e-8]])
    assert span_of(moves).shape == (2, 2)
    assert least_shape(moves).matrix[1, 1] >= 1e-16 * (1 - 1e-9)
    with refused(UnsupportedError, "shaped.covariance_ill_conditioned"):
        shaped(LawsScenario([(PointMass([0, 0]), PointMass(v)) for v in moves]), **BARE)
    # noise along the long one alone does not hide the short one
    noise = DegenerateGaussianNoise(factor=[[1.0], [0.0]])
    scenario = LawsScenario([(PointMass([0, 0]), PointMass([0, 1e-8]))])
    found = ShapedWasserstein(1.0, 4.0).certify(noise, output(2), scenario)
    assert found.epsilon == math.inf
    _, floored = shaped(
        LawsScenario([(PointMass([0, 0]), PointMass(v)) for v in moves])
    )
    assert floored.certificate.epsilon == 1


def test_many_moves_are_few_rounds():
    rng = np.random.default_rng(0)
    moves = rng.normal(size=(800, 9)) * np.exp(rng.normal(size=9))
    least = least_shape(moves)
    assert least.gap <= 1e-6 and least.rounds < 200


# -- couplings -------------------------------------------------------------------------

CROSS = Discrete([[0, 0], [1, 1]]), Discrete([[0, 1], [1, 0]])
BENT = Discrete([[0, 0], [0.8, -0.2]]), Discrete([[1, 0], [0.8, 0.8]])


def test_two_optima_of_which_the_mean_is_none():
    trace, found = shaped(LawsScenario([CROSS]), **BARE)
    assert trace == pytest.approx(1, rel=1e-9)
    assert isinstance(found.noise, DegenerateGaussianNoise)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(
        output(2), LawsScenario([CROSS])
    )
    assert total_of_round(wide) == pytest.approx(2)
    half = CorrelatedGaussianNoise(covariance=np.eye(2) / 2)
    curve = ShapedWasserstein().certify(half, output(2), LawsScenario([CROSS])).curve
    assert curve.mu**2 == pytest.approx(2)


def total_of_round(found):
    return (
        float(np.sum(found.noise.variance(2))) * found.certificate.curve.gaussian_mu**2
    )


def test_the_round_start_is_not_the_only_one():
    trace, found = shaped(LawsScenario([BENT]), **BARE)
    assert trace == pytest.approx(1.28, rel=1e-6)
    assert found.certificate.sensitivity == pytest.approx(1.1313708, rel=1e-6)
    assert said(found, "partial optimum") and not said(found, "it is the least")


laws = st.integers(2, 3).flatmap(
    lambda d: st.lists(
        st.lists(
            st.lists(st.integers(-3, 3), min_size=d, max_size=d),
            min_size=1,
            max_size=4,
        ).map(lambda v: Discrete(np.array(v, dtype=float))),
        min_size=2,
        max_size=3,
    )
)


@given(laws, st.sampled_from([{}, BARE, {"floor": 1e-3}]))
def test_it_is_between_the_means_and_round_noise(some, options):
    scenario, release = all_pairs(some), output(some[0].dim)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(release, scenario)
    if wide.certificate.sensitivity == 0:
        return
    try:
        trace, found = shaped(scenario, **options)
    except UnsupportedError:  # the shape may be too thin
        assert options is BARE
        return
    assert trace <= release.dim * wide.certificate.sensitivity**2 * (1 + 1e-9)
    means = np.array([u.mean - v.mean for u, v in scenario.laws])
    if np.any(np.abs(means) > 1e-9):
        assert trace >= least_shape(means).dual * (1 - 1e-9)
    # no slice moves further than the noise along it
    covariance = found.noise.covariance_matrix(release.dim)
    mu = found.certificate.curve.mu
    for direction in np.eye(release.dim):
        along = [Discrete(each.points @ direction, each.weights) for each in some]
        far = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(
            output(1), all_pairs(along)
        )
        reach = far.certificate.sensitivity
        assert reach**2 <= direction @ covariance @ direction * mu**2 * (1 + 1e-9)
    # what is spent is read off the noise, and never above what was asked
    again = ShapedWasserstein(1.0, 4.0).certify(found.noise, release, scenario)
    assert again.epsilon <= 1 + 1e-9
    assert 4 * mu**2 / 2 <= 1 + 1e-9


def test_a_rectangle_is_coupled_by_mass():
    """Three atoms to two: a matching would leave one of them out."""
    u, v = Discrete([[0, 0], [0, 0.1], [5, 5]]), Discrete([[0, 0], [0.1, 0]])
    _, found = shaped(LawsScenario([(u, v)]))
    noise = found.noise.with_scale(1.0)
    lengths = np.linalg.norm(noise.whitened(np.array([[5.0, 5.0], [4.9, 5.0]])), axis=1)
    mu = ShapedWasserstein().certify(noise, output(2), LawsScenario([(u, v)])).curve.mu
    assert mu >= lengths.min() * (1 - 1e-9)


def test_units_are_those_of_the_release():
    units = (36.5, 0.5, 7.0)
    scenario = points(*FIVE)
    trace, found = shaped(scenario, output(3, units=units))
    scaled = points(*(np.divide(row, units) for row in FIVE))
    assert shaped(scaled)[0] == pytest.approx(trace, rel=1e-6)
    raw = found.noise.covariance_matrix(3) / np.outer(units, units)
    assert np.trace(raw) * found.certificate.curve.mu**2 == pytest.approx(trace)


def test_one_coordinate_has_no_shape():
    u, v = Discrete([0.0, 1.0], [1, 3]), Discrete([2.0, 3.0])
    release, scenario = output(1), LawsScenario([(u, v)])
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(release, scenario)
    found = ShapedWasserstein(1.0, 4.0).calibrate(release, scenario)
    assert float(found.noise.variance(1)[0]) == pytest.approx(wide.noise.scale**2)
    best = Best(1.0, 4.0).calibrate(release, scenario)
    assert not str(best.certificate.choice).startswith("Shaped")


def test_gaussians_of_one_covariance_move_their_means():
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    pair = Gaussian([0, 0], covariance), Gaussian([3, 4], covariance)
    trace, found = shaped(LawsScenario([pair]), **BARE)
    assert trace == pytest.approx(25, rel=1e-9)
    assert not said(found, "it is the least")
    with refused(InfiniteDistanceError, "transport.distance_infinite"):
        shaped(LawsScenario([(pair[0], Gaussian([3, 4], [[2.0, 0], [0, 1.0]]))]))


def test_supports_are_coupled_in_every_way():
    u, v = Support([[0, 0], [1, 0]]), Support([[0, 0], [0, 2]])
    _, found = shaped(LawsScenario([(u, v)]))
    moves = np.array([[0, 0], [0, -2], [1, 0], [1, -2]], dtype=float)
    lengths = np.linalg.norm(found.noise.whitened(moves), axis=1)
    assert lengths.max() == pytest.approx(found.certificate.curve.mu, rel=1e-9)


def test_laws_of_very_many_atoms_are_a_ball(monkeypatch):
    monkeypatch.setattr("skpuffer.accountants._shaped._moves._CELLS", 3)
    found = ShapedWasserstein(1.0, 4.0).calibrate(output(2), LawsScenario([BENT]))
    np.testing.assert_allclose(found.noise.variance(2), 2.0)


# -- room for wrong priors -------------------------------------------------------------


def test_room_by_hand():
    move = np.array([3.0, 4.0])
    shape = with_room(np.outer(move, move), 1.0)
    assert np.trace(shape) == pytest.approx(41.1421356237)
    assert move @ np.linalg.solve(shape, move) == pytest.approx(0.6829369247)
    (worst,) = longest_within(move[None, :], shape, 1.0)
    assert worst == pytest.approx(1, rel=1e-9)
    angle = np.linspace(0, 2 * np.pi, 100_001)
    ring = move + np.column_stack([np.cos(angle), np.sin(angle)])
    lengths = np.einsum("ij,ij->i", ring, np.linalg.solve(shape, ring.T).T)
    assert lengths.max() == pytest.approx(1, rel=1e-9)
    at = (ring - move)[lengths.argmax()] @ move
    assert at == pytest.approx(5 / math.sqrt(2), rel=1e-3)
    trace, found = shaped(points((0, 0), (3, 4)), slack=1.0)
    assert trace == pytest.approx(41.1421356237, rel=1e-9)
    assert said(found, "slack 1")


@given(rows, st.floats(0.01, 3), st.integers(0, 99))
def test_nothing_within_the_room_is_longer(moves, room, seed):
    rng = np.random.default_rng(seed)
    dim = moves.shape[1]
    shape = with_room(least_shape(moves).matrix, room)
    bounds = longest_within(moves, shape, room)
    assert np.all(bounds <= 1 + 1e-6)
    for _ in range(20):
        off = rng.normal(size=moves.shape)
        off *= room / np.linalg.norm(off, axis=1, keepdims=True)
        moved = moves + off
        lengths = np.einsum("ij,ij->i", moved, np.linalg.solve(shape, moved.T).T)
        assert np.all(np.sqrt(lengths) <= bounds * (1 + 1e-9))
    assert np.trace(shape) == pytest.approx(
        (math.sqrt(least_shape(moves).trace) + room * math.sqrt(dim)) ** 2, rel=1e-5
    )


@given(laws, st.floats(0.05, 1), st.integers(0, 9))
def test_a_prior_within_the_slack_keeps_the_budget(some, slack, seed):
    rng = np.random.default_rng(seed)
    scenario, release = all_pairs(some), output(some[0].dim)
    if GeneralWasserstein().certify(GaussianNoise(), release, scenario).epsilon == 0:
        return
    _, found = shaped(scenario, slack=slack)
    moved = []
    for each in some:
        off = rng.normal(size=each.points.shape)
        off *= slack / 2 / np.linalg.norm(off, axis=1, keepdims=True)
        moved.append(Discrete(each.points + off))
    other = ShapedWasserstein(1.0, 4.0).certify(found.noise, release, all_pairs(moved))
    assert other.epsilon <= 1 + 1e-6
    # as the certificate itself says of it
    assert found.certificate.under_prior_shift(slack / 2).epsilon <= 1 + 1e-9
    assert found.certificate.under_prior_shift(slack).epsilon > 1


def test_the_robust_radius_is_what_a_shift_of_the_prior_costs():
    _, found = shaped(points((0, 0), (3, 4)))
    certificate = found.certificate
    least = np.linalg.eigvalsh(found.noise.covariance_matrix(2))[0]
    for off in (0.01, 0.3):
        expected = (1 + 2 * off * math.sqrt(4 / (2 * least))) ** 2
        assert certificate.under_prior_shift(off).epsilon == pytest.approx(expected)
    assert said(found, "which no slack was asked for")


def test_the_tolerance_of_an_optimiser_is_room():
    release = output(2, slack=0.5)
    _, found = shaped(points((0, 0), (3, 4)), release)
    off = np.array([[3.0, 4.0]]) + 0.5 * np.array([[0.6, 0.8], [-0.8, 0.6]])
    lengths = np.linalg.norm(found.noise.whitened(off), axis=1)
    assert np.all(lengths <= found.certificate.curve.mu * (1 + 1e-9))
    bare = ShapedWasserstein(1.0, 4.0, **BARE).calibrate(
        release, points((0, 0), (3, 4))
    )
    assert isinstance(bare.noise, CorrelatedGaussianNoise)


# -- promises --------------------------------------------------------------------------


def test_a_delta_is_met_by_the_trade_off():
    release, scenario = output(2), points((0, 0), (3, 4))
    found = ShapedWasserstein(0.7, delta=1e-5, **BARE).calibrate(release, scenario)
    wide = GeneralWasserstein(0.7, delta=1e-5, noise="gaussian").calibrate(
        release, scenario
    )
    ratio = np.sum(found.noise.variance(2)) / np.sum(wide.noise.variance(2))
    assert ratio == pytest.approx(0.5, rel=1e-6)
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.certificate.curve.delta(0.7) <= 1e-5 * (1 + 1e-6)


def test_a_mass_may_be_left_out():
    far = Discrete([[0, 0], [1, 0], [9, 9]], [49, 50, 1])
    near = Discrete([[0, 1], [1, 1]])
    scenario, release = LawsScenario([(far, near)]), output(2)
    whole = ShapedWasserstein(1.0, 4.0).calibrate(release, scenario)
    part = ShapedWasserstein(1.0, 4.0, event_delta=0.02).calibrate(release, scenario)
    assert np.sum(part.noise.variance(2)) < 0.2 * np.sum(whole.noise.variance(2))
    assert part.certificate.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert part.certificate.event_delta == part.certificate.delta == 0.02
    assert part.certificate.rpp_epsilon == math.inf
    assert said(part, "is left out")
    joint = ShapedWasserstein(1.0, delta=0.03, event_delta=0.02).calibrate(
        release, scenario
    )
    assert joint.certificate.delta == 0.03 and joint.certificate.event_delta == 0.02
    assert joint.certificate.curve.delta(1.0) <= 0.01 * (1 + 1e-6)


@pytest.mark.parametrize("units", [None, (2.0, 0.5)])
def test_a_mean_over_moves_takes_the_shape(units):
    """Distribution-aware noise of a found shape: never more of it, here less."""
    rng = np.random.default_rng(0)
    pair = Discrete(rng.normal(size=(20, 2))), Discrete(rng.normal(size=(20, 2)) + 1)
    scenario, release = LawsScenario([pair]), output(2, units=units)
    found = ShapedWasserstein(1.0, 4.0).calibrate(release, scenario)
    # a covariance that is given is one in the units
    sizes = 1.0 if units is None else np.outer(units, units)
    shape = found.noise.covariance_matrix(2) / sizes
    aware = DistributionAwareWasserstein(
        1.0, 4.0, noise=CorrelatedGaussianNoise(covariance=shape)
    )
    mean = aware.calibrate(release, scenario)
    assert mean.certificate.epsilon <= 1 + 1e-9
    ratio = mean.noise.covariance_matrix(2) / found.noise.covariance_matrix(2)
    np.testing.assert_allclose(ratio, ratio[0, 0])
    assert ratio[0, 0] < 1


def test_no_more_than_the_event_is_left_out_of_given_moves():
    pair = FixedMoves(np.arange(10.0)[:, None], np.full(10, 0.1))
    for event, kept in ((0.0, 10), (0.05, 10), (0.1, 9), (0.1999, 9), (0.2, 8)):
        left = pair.kept(lambda moves: moves, event)
        assert kept <= len(left) <= kept + 1
        assert len(left) >= (1 - event) * 10 - 1e-9


def test_samples_are_an_estimate():
    pair = Samples([[0, 0], [1, 1]]), Samples([[2, 2], [1, 4]])
    _, found = shaped(LawsScenario([pair]))
    assert found.certificate.notion is Notion.ESTIMATED
    assert found.certificate.rpp_epsilon == math.inf


def simulated(**options):
    def draw_pair(a, b, rng):
        noise = rng.normal(size=(5, 2))
        return noise + [a, 0.1 * a], noise + [b, 0.1 * b]

    return SimulatorScenario(
        draw=lambda secret, rng: rng.normal(size=(5, 2)) + [secret, 0.1 * secret],
        draw_pair=draw_pair,
        secrets=[0.0, 1.0],
        n_draws=200,
        random_state=0,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"confidence": 0.9}])
def test_a_shape_fitted_to_draws_is_not_certified_by_them(options):
    """What the largest of n draws bounds, it bounds of a fixed shape alone."""
    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=2)
    scenario = simulated(**options)
    found = ShapedWasserstein(1.0, 4.0).calibrate(release, scenario)
    assert found.certificate.notion is Notion.ESTIMATED
    again = ShapedWasserstein(1.0, 4.0).certify(found.noise, release, scenario)
    assert again.notion is Notion.ESTIMATED
    assert said(found, "fitted to the very draws") is bool(options)


def test_certificates_say_what_they_do_not_promise():
    trace, found = shaped(points(*FIVE), **BARE)
    certified = "assume.least_variance_certified"
    (least,) = [a for a in found.certificate.assumptions if a.code == certified]
    assert least.parameters["gap"] <= 1e-6
    assert said(found, "more than two secrets")
    assert said(found, "the best diagonal shape 0.683977")
    assert said(found, f"{trace / 75:.6g} of that of the general")
    assert said(found, "least noise")
    _, two = shaped(points((0, 0), (3, 4)), **BARE)
    assert said(two, "1 of 2 directions are without noise")
    assert said(two, "void it") and not said(two, "more than two secrets")
    _, floored = shaped(points((0, 0), (3, 4)))
    assert said(floored, "the least total variance without a floor is")
    assert not floored.certificate.composable
    assert floored.certificate.rpp_epsilon == 1


def test_directions_of_one_noise_are_named_by_the_others():
    _, found = shaped(points((0, 0, 0), (0, 3, 0)))
    assert said(found, "along each direction at right angles to +1.00 coordinate 1")
    _, found = shaped(points((0, 0), (3, 0), (0, 3), (3, 3)))
    assert said(found, "least noise, as standard deviation in the units of the release")
    five = np.vstack([np.zeros(6), 3 * np.eye(6)[:4]])
    _, found = shaped(points(*five))
    assert said(found, "along each direction of a space of 2 of 6 dimensions")
    _, found = shaped(points((0, 0), (3, 4)), release=output(2))
    assert said(found, "along +0.80 coordinate 0 -0.60 coordinate 1")
    _, found = shaped(points((0,), (3,)))
    assert said(found, "along +1.00 coordinate 0")


def test_certificates_are_read_back():
    for options in (BARE, {}, {"slack": 0.5}):
        certificate = shaped(points((0, 0), (3, 4)), **options)[1].certificate
        text = json.dumps(certificate.to_dict(), allow_nan=False)
        back = Certificate.from_dict(json.loads(text))
        assert back.curve == certificate.curve
        assert back.to_approximate(1e-5) == certificate.to_approximate(1e-5)


def test_group_privacy_by_the_least_variance():
    by_norm = {1: 2.0, 2: 1.0}
    known = Sensitivity(add_remove=by_norm, replace=by_norm)
    release = output(2, sensitivity=known)
    _, found = shaped(points((0, 0), (30, 40)), release)
    least = np.linalg.eigvalsh(found.noise.covariance_matrix(2))[0]
    count = math.floor(math.sqrt(least) * found.certificate.curve.mu)
    assert count >= 2 and said(found, f"group privacy of {count} replaced records")
    assert found.certificate.gain == pytest.approx(
        1 / found.certificate.curve.mu / math.sqrt(np.mean(found.noise.variance(2))),
        rel=1e-6,
    )


def test_any_gaussian_noise_is_certified():
    release, scenario = output(2), LawsScenario([BENT])
    accountant = ShapedWasserstein(1.0, 4.0)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian")
    one = accountant.certify(GaussianNoise(2.0), release, scenario)
    assert one.epsilon == pytest.approx(
        wide.certify(GaussianNoise(2.0), release, scenario).epsilon, rel=1e-9
    )
    two = accountant.certify(GaussianNoise((2.0, 3.0)), release, scenario)
    same = CorrelatedGaussianNoise(covariance=np.diag([4.0, 9.0]))
    assert two.epsilon == pytest.approx(
        accountant.certify(same, release, scenario).epsilon, rel=1e-9
    )
    assert two.epsilon <= one.epsilon
    assert accountant.certify(GaussianNoise(0.0), release, scenario).epsilon == math.inf
    assert (
        accountant.certify(GaussianNoise((0.0, 1.0)), release, scenario).epsilon
        == math.inf
    )
    with refused(UnsupportedError, "shaped.noise_not_gaussian"):
        accountant.certify(LaplaceNoise(1.0), release, scenario)
    with refused(ValueError, "shaped.noise_dimension_mismatch", dim=2):
        accountant.certify(
            CorrelatedGaussianNoise(covariance=np.eye(3)), release, scenario
        )


@pytest.mark.parametrize("known", [0.5, 50.0])
def test_what_any_record_moves_bounds_the_ball(known):
    """A certain bound that is below the distributions' distance is taken."""
    by_norm = {1: 2 * known, 2: known}
    release = output(2, sensitivity=Sensitivity(add_remove=by_norm, replace=by_norm))
    fact = LawsScenario([BENT]).bind(release.context)

    class Common(type(fact)):
        def fact(self, kind, release, norm=2):
            return replace(super().fact(kind, release, norm), common_part_removed=True)

    bound = Common(fact.scenario, fact.context)
    wide = GeneralWasserstein(1.0, 4.0, noise="gaussian").calibrate(release, bound)
    found = ShapedWasserstein(1.0, 4.0).calibrate(release, bound)
    ratio = np.sum(found.noise.variance(2)) / np.sum(wide.noise.variance(2))
    assert ratio == pytest.approx(1) if known < 1 else ratio < 0.8


# -- attacks ---------------------------------------------------------------------------


def accuracy(rows, noise, n_draws, seed):
    """Share of equally likely point masses guessed by the nearest in noise's norm."""
    rng = np.random.default_rng(seed)
    centres = np.asarray(rows, dtype=float)
    truth = rng.integers(len(centres), size=n_draws)
    seen = centres[truth] + noise.sample((n_draws, centres.shape[1]), rng)
    precision = np.linalg.pinv(noise.covariance_matrix(centres.shape[1]))
    gaps = seen[:, None] - centres
    guess = np.einsum("nki,ij,nkj->nk", gaps, precision, gaps).argmin(axis=1)
    return float(np.mean(guess == truth))


@pytest.mark.parametrize("options", [BARE, {}, {"slack": 1.0}])
def test_two_points_are_told_apart_as_allowed(options):
    _, found = shaped(points((0, 0), (3, 4)), **options)
    allowed = norm.cdf(math.sqrt(1 / 8))
    assert allowed == pytest.approx(0.6381631951)
    n_draws, rows = 40_000, ((0, 0), (3, 4))
    error = 5 * math.sqrt(0.25 / n_draws)
    assert accuracy(rows, found.noise, n_draws, 0) <= allowed + error
    if options.get("slack") is None:
        assert accuracy(rows, found.noise, n_draws, 0) >= allowed - error
        less = found.noise.with_scale(0.7 * float(found.noise.scale))
        assert accuracy(rows, less, n_draws, 0) > allowed + error


def test_each_pair_of_five_points_is_told_apart_as_allowed():
    _, found = shaped(points(*FIVE), floor=0.01)
    less = found.noise.with_scale(0.7 * float(found.noise.scale))
    allowed, n_draws = norm.cdf(math.sqrt(1 / 8)), 20_000
    error = 5 * math.sqrt(0.25 / n_draws)
    beaten = 0
    for i, a in enumerate(FIVE):
        for b in FIVE[:i]:
            assert accuracy((a, b), found.noise, n_draws, i) <= allowed + error
            beaten += accuracy((a, b), less, n_draws, i) > allowed + error
    assert beaten >= 4
    # of five at once, more are right than under round noise
    wide = (
        GeneralWasserstein(1.0, 4.0, noise="gaussian")
        .calibrate(output(3), points(*FIVE))
        .noise
    )
    round_noise = GaussianNoise(wide.scale)
    assert accuracy(FIVE, found.noise, 60_000, 1) > accuracy(
        FIVE, round_noise, 60_000, 1
    )


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"slack": 0.0}, ValueError, Statement("parameter.not_positive", name="slack")),
        (
            {"slack": -1.0},
            ValueError,
            Statement("parameter.not_positive", name="slack"),
        ),
        (
            {"slack": math.inf},
            ValueError,
            Statement("parameter.not_positive", name="slack"),
        ),
        (
            {"slack": "wide"},
            TypeError,
            Statement("parameter.not_real_number", name="slack"),
        ),
        (
            {"floor": -0.1},
            ValueError,
            Statement("parameter.is_negative", name="floor", end=")"),
        ),
        (
            {"floor": math.inf},
            ValueError,
            Statement("parameter.is_negative", name="floor", end=")"),
        ),
        ({"floor": math.nan}, ValueError, Statement("parameter.is_nan", name="floor")),
        (
            {"floor": 0.0},
            ValueError,
            Statement("shaped.directions_without_noise_refused"),
        ),
        (
            {"rounds": 0},
            ValueError,
            Statement("parameter.count_too_small", name="rounds"),
        ),
        (
            {"rounds": 1.5},
            (TypeError, ValueError),
            Statement("parameter.count_too_small", name="rounds"),
        ),
        (
            {"allow_degenerate": 1},
            TypeError,
            Statement("parameter.not_bool"),
        ),
        ({"alpha": math.inf}, ValueError, Statement("noise.family_not_pure")),
        (
            {"alpha": 1.0},
            ValueError,
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
        (
            {"alpha": 2.0, "delta": 1e-5},
            ValueError,
            Statement("parameter.alpha_and_delta_both"),
        ),
        (
            {"event_delta": 0.0},
            ValueError,
            Statement("parameter.probability_out_of_range", name="event_delta"),
        ),
        (
            {"delta": 1e-5, "event_delta": 1e-5},
            ValueError,
            Statement("shaped.event_delta_not_below_delta"),
        ),
    ],
)
def test_parameters_out_of_range(options, error, said):
    with refused(error, said.code, **said.parameters):
        ShapedWasserstein(**options).calibrate(output(2), points((0, 0), (1, 1)))


def test_a_floor_of_zero_is_fine_beside_a_slack():
    ShapedWasserstein(floor=0.0, slack=0.1).check()


def test_what_does_not_move_has_no_shape():
    still = points((1, 2), (1, 2))
    with refused(UnsupportedError, "shaped.secret_does_not_move"):
        shaped(still)


def test_too_many_coordinates():
    with refused(UnsupportedError, "shaped.too_many_coordinates", largest_dim=2000):
        shaped(points(np.zeros(2001), np.ones(2001)))


def test_point_masses_warn_unless_there_is_slack(recwarn):
    with warned(PrivacyWarning, "shaped.brittle_without_slack"):
        shaped(points((0, 0), (3, 4)))
    recwarn.clear()
    shaped(points((0, 0), (3, 4)), slack=0.1)
    shaped(LawsScenario([BENT]))
    assert not [w for w in recwarn if issubclass(w.category, PrivacyWarning)]


def test_best_takes_it_for_points_if_it_is_named():
    release, scenario = output(3), points(*FIVE)
    named = Best(1.0, 4.0, candidates=[ShapedWasserstein(), GeneralWasserstein()])
    with warned(PrivacyWarning, "shaped.brittle_without_slack"):
        found = named.calibrate(release, scenario)
    assert str(found.certificate.choice).startswith("ShapedWasserstein")
    assert any("which no slack" in str(text) for text in found.certificate.assumptions)
    back = named.certify(found.noise, release, scenario)
    assert back.epsilon <= 1 + 1e-9


@pytest.mark.parametrize("private", [True, False])
def test_noise_shaped_by_private_rows_is_no_group_privacy(private):
    """Its scale is read off the rows, which differential privacy forbids."""
    rng = np.random.default_rng(0)
    rows, public = (
        pd.DataFrame(rng.uniform(size=(40, 2)), columns=["a", "b"]).assign(
            s=np.arange(40) % 2
        )
        for _ in range(2)
    )
    scenario = AttributeScenario(
        "s", level="record", prior="empirical" if private else public
    )
    # so wide that it covers several records, whatever they are
    wide = ShapedWasserstein(1.0, 4.0, slack=1.0)
    found = PrivateMean(scenario, wide, bounds=(0, 1)).fit(rows).certificate_
    assert not found.certified
    assert any("group privacy" in str(text) for text in found.assumptions) != private


def test_a_shift_beyond_the_distance_is_told_from_it():
    """Of two couplings the one of longer moves is cheaper where noise is large."""
    u, v = Discrete([[0.0, 0.0], [3.0, 2.5]]), Discrete([[3.0, 0.0], [0.0, 2.5]])
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=2)
    scenario = LawsScenario([(u, v)])
    said = "longest l2 move, 3, .* W_inf in l2 gives 2.5"
    for variance, sensitivity in ((100.0, 3.0), (1.0, 2.5)):
        noise = CorrelatedGaussianNoise(covariance=np.diag([variance, 1.0]))
        found = ShapedWasserstein(alpha=4).certify(noise, release, scenario)
        assert found.sensitivity == pytest.approx(sensitivity)
        told = any(re.search(said, str(sentence)) for sentence in found.assumptions)
        assert told == (sensitivity > 2.5)
        # the promise is that of the norm of the noise either way
        assert found.epsilon == pytest.approx(2 * sensitivity**2 / variance)
