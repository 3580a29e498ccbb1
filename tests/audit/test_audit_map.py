"""Guesses of a secret: the best there are, their intervals, and what is allowed."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from skpuffer.accountants import GeneralWasserstein
from skpuffer.audit import (
    allowed_roc,
    clopper_pearson,
    distinguishing_attack,
    largest_accuracy,
    map_attack,
)
from skpuffer.distributions import Continuous, Discrete, Gaussian, PointMass, Support
from skpuffer.exceptions import UncertifiedError, UnsupportedError
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Certificate
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    LawsScenario,
    OutputDistributions,
    OutputSamples,
    SimulatorScenario,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "sliced_audit.json").read_text()
)
SHARE = 0.7


def gaussian_promise(mu):
    return Certificate(
        notion="approximate_pufferfish",
        epsilon=GaussianCurve(mu).epsilon(1e-5),
        delta=1e-5,
        curve=GaussianCurve(mu),
    )


def calibrated(laws, epsilon=1.0, alpha=4.0):
    """Noise for each two of these distributions of an output, and its certificate."""
    pairs = [(u, v) for i, u in enumerate(laws) for v in laws[:i]]
    release = QueryRelease(query=lambda X, y: X, n_records=9, dim=laws[0].dim)
    return GeneralWasserstein(epsilon, alpha, noise="gaussian").calibrate(
        release, LawsScenario(pairs)
    )


# -- two points: closed form -----------------------------------------------------------


@pytest.mark.parametrize("case", ORACLES["map_accuracy"])
def test_two_points_in_closed_form(case):
    outputs = [[0.0], [case["distance"]]]
    attack = map_attack(outputs, GaussianNoise(case["scale"]), prior=case["prior"])
    assert_allclose(attack.accuracy, case["accuracy"], rtol=1e-9)
    assert attack.n_draws is None
    assert attack.accuracy_interval() == (attack.accuracy, attack.accuracy)
    assert_allclose(attack.advantage, attack.accuracy - max(case["prior"]))
    assert_allclose(attack.confusion.sum(axis=1), case["prior"])


@pytest.mark.parametrize("dim", [1, 2, 9, 10, 100])
def test_an_averaged_promise_is_guessed_better_the_more_coordinates(dim):
    expected = ORACLES["sliced_map_accuracy"]
    move = np.zeros((2, dim))
    move[1] = 3 / math.sqrt(dim)
    averaged = GaussianNoise(math.sqrt(4 * 9 / (2 * dim)))
    joint = GaussianNoise(math.sqrt(4 * 9 / 2))
    assert_allclose(
        map_attack(move, averaged).accuracy, expected["averaged"][str(dim)], rtol=1e-9
    )
    attack = map_attack(move, joint)
    assert_allclose(attack.accuracy, expected["joint_closed"], rtol=1e-9)


def test_simulation_agrees_with_the_closed_form():
    # a third secret of no mass, so that it is simulated
    outputs = [[0.0, 0.0], [1.0, 2.0], [9.0, 9.0]]
    noise = CorrelatedGaussianNoise(covariance=[[2.0, 0.5], [0.5, 1.0]])
    exact = map_attack(outputs[:2], noise, prior=[0.6, 0.4])
    drawn = map_attack(outputs, noise, prior=[0.6, 0.4, 0.0], confidence=1 - 1e-6)
    low, high = drawn.accuracy_interval()
    assert low <= exact.accuracy <= high and high - low < 0.02
    assert drawn.confusion[2].sum() == drawn.confusion[:, 2].sum() == 0
    hits = round(np.trace(drawn.confusion))
    interval = binomtest(hits, drawn.n_draws).proportion_ci(1 - 1e-6, "exact")
    assert_allclose((low, high), (interval.low, interval.high))
    assert_allclose(drawn.advantage_interval(), np.subtract((low, high), 0.6))


def test_a_prior_that_settles_it_and_outputs_that_are_equal():
    same = map_attack([[1.0], [1.0]], GaussianNoise(1.0), prior=[0.3, 0.7])
    assert same.accuracy == 0.7 and same.advantage == 0
    sure = map_attack([[1.0], [2.0]], GaussianNoise(1.0), prior=[1.0, 0.0])
    assert sure.accuracy == 1.0


def test_gaussian_distributions_add_their_own_spread():
    laws = [Gaussian(0.0, 3.0), Gaussian(1.0, 3.0)]
    attack = map_attack(laws, GaussianNoise(1.0))
    assert_allclose(attack.accuracy, norm.cdf(0.25))
    assert attack.n_draws is None
    # of two variances the larger one is told by far outputs: nothing in closed form
    laws = [Gaussian(0.0, 0.0), Gaussian(0.0, 99.0)]
    attack = map_attack(laws, GaussianNoise(1.0), confidence=1 - 1e-6)
    # |y| beyond the point where both densities are equal
    at = math.sqrt(math.log(100) / 0.99)
    expected = (2 * norm.cdf(at) - 1) / 2 + norm.sf(at / 10)
    assert attack.accuracy_interval()[0] < expected < attack.accuracy_interval()[1]


def test_mixtures_are_guessed_by_their_density():
    # +-1 against 0 : the likelihoods are cosh(y) exp(-1/2) and 1
    laws = [Discrete([-3.0, 3.0]), PointMass(0.0)]
    attack = map_attack(laws, GaussianNoise(1.0), confidence=1 - 1e-6)
    at = np.arccosh(np.exp(4.5)) / 3
    first = norm.sf(at - 3) + norm.cdf(-at - 3)
    expected = (first + 1 - 2 * norm.sf(at)) / 2
    low, high = attack.accuracy_interval()
    assert low < expected < high


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.floats(0.2, 3),
    st.floats(0.05, 0.95),
)
def test_accuracy_falls_with_noise_and_is_never_below_the_prior(points, scale, mass):
    outputs, prior = np.array(points)[:, None], [mass, 1 - mass]
    here, more = (
        map_attack(outputs, GaussianNoise(s), prior=prior) for s in (scale, 2 * scale)
    )
    assert max(prior) - 1e-12 <= more.accuracy <= here.accuracy + 1e-12
    moved = map_attack(7 * outputs + 2, GaussianNoise(7 * scale), prior=prior)
    assert_allclose(moved.accuracy, here.accuracy, rtol=1e-9)


# -- what is allowed -------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7])
def test_pure_promises_allow_what_randomised_response_reaches(k):
    promise = Certificate(notion="pure_pufferfish", epsilon=1.0)
    allowed = largest_accuracy(promise, np.full(k, 1 / k))
    assert_allclose(allowed, math.e / (math.e + k - 1), rtol=1e-9)


@given(
    st.floats(0.1, 3), st.lists(st.floats(0.05, 1), min_size=2, max_size=5), st.data()
)
def test_no_randomised_response_is_guessed_better_than_allowed(epsilon, masses, data):
    masses = np.array(masses) / sum(masses)
    k = len(masses)
    promise = Certificate(notion="pure_pufferfish", epsilon=epsilon)
    # any channel whose rows are within the ratio
    weights = data.draw(
        st.lists(
            st.lists(st.floats(0, 1), min_size=k, max_size=k), min_size=k, max_size=k
        )
    )
    channel = np.exp(np.array(weights) * epsilon / 2)
    channel /= channel.sum(axis=1, keepdims=True)
    reached = (masses[:, None] * channel).max(axis=0).sum()
    allowed = largest_accuracy(promise, masses)
    assert reached <= allowed * (1 + 1e-9)
    assert allowed >= masses.max() * (1 - 1e-12)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.7, 0.3]])
def test_of_two_points_all_that_is_allowed_is_guessed(prior):
    attack = map_attack([[0.0], [1.2]], GaussianNoise(1.0), prior=prior)
    allowed = attack.allowed(gaussian_promise(1.2))
    assert attack.accuracy <= allowed <= attack.accuracy + 2e-4
    assert not attack.exceeds(gaussian_promise(1.2))
    assert attack.exceeds(gaussian_promise(1.2 * SHARE))


@pytest.mark.parametrize("mu", [0.1, 1.0, 6.0, 20.0])
def test_equal_secrets_by_one_equation(mu):
    promise, k = gaussian_promise(mu), 4
    fpr, tpr = allowed_roc(promise)

    def beyond(accuracy):
        return accuracy + (k - 1) * np.interp(accuracy, tpr, fpr) - 1

    expected = brentq(beyond, 1 / k, 1.0)
    assert_allclose(largest_accuracy(promise, [1 / k] * k), expected, rtol=1e-6)


def test_two_of_many_pairs_say_less_than_all():
    promise = Certificate(notion="pure_pufferfish", epsilon=0.5)
    prior = [0.25] * 4
    every = largest_accuracy(promise, prior)
    ring = largest_accuracy(promise, prior, pairs=[(0, 1), (1, 2), (2, 3)])
    assert every < ring <= 1
    alone = largest_accuracy(promise, prior, pairs=[(0, 1)])
    # the two that nothing is said of are always found
    assert alone == pytest.approx(0.5 + 0.5 * largest_accuracy(promise), abs=0.3)
    assert alone > ring
    assert largest_accuracy(promise, [0.5, 0.5], pairs=[]) == pytest.approx(1.0)


def test_what_bounds_no_attack_allows_no_accuracy():
    estimate = Certificate(notion="estimated", epsilon=1.0, alpha=4.0)
    with pytest.raises(UncertifiedError):
        largest_accuracy(estimate)
    for notion in ("averaged", "joint"):
        sliced = f"sa_{notion}_sliced_renyi_pufferfish"
        with pytest.raises(UncertifiedError):
            largest_accuracy(Certificate(notion=sliced, epsilon=1.0, alpha=4.0))
    promise = Certificate(notion="pure_pufferfish", epsilon=1.0)
    with refused(ValueError, "audit.prior_below_two_secrets"):
        largest_accuracy(promise, [1.0])
    with refused(ValueError, "parameter.masses_not_sum_one", name="prior"):
        largest_accuracy(promise, [0.5, 0.6])
    with refused(UnsupportedError, "audit.too_many_secrets", most=200):
        largest_accuracy(promise, np.full(201, 1 / 201))
    for pairs in ([(0, 0)], [(0, 2)], [(0, 1, 1)]):
        with refused(ValueError, "audit.pairs_not_valid_positions"):
            largest_accuracy(promise, pairs=pairs)


# -- promises are kept, and too little noise is found ----------------------------------


def test_three_secrets_keep_their_promise():
    laws = [PointMass(p) for p in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0])]
    calibration = calibrated(laws, epsilon=2.0)
    options = {"n_draws": 200_000, "confidence": 1 - 1e-6}
    attack = map_attack(laws, calibration, **options)
    assert not attack.exceeds(calibration.certificate)
    # the furthest two, by themselves, reach all that is allowed
    pair = map_attack(laws[1:], calibration)
    assert not pair.exceeds(calibration.certificate)
    less = calibration.noise.with_scale(SHARE * calibration.noise.scale)
    assert map_attack(laws[1:], less).exceeds(calibration.certificate)


def kept_and_broken(laws, epsilon, **options):
    """The attack on calibrated noise, and that on too little of it."""
    calibration = calibrated(laws, epsilon)
    options = {"n_draws": 100_000, "confidence": 1 - 1e-6} | options
    less = calibration.noise.with_scale(SHARE * calibration.noise.scale)
    promise = calibration.certificate
    for noise in (calibration.noise, less):
        yield map_attack(laws, noise, **options).exceeds(promise)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 20.0])
def test_three_secrets_are_found_through_too_little_noise(epsilon):
    """All pairs are as far apart as the promise allows."""
    laws = [PointMass(corner) for corner in np.eye(3)]
    assert [*kept_and_broken(laws, epsilon)] == [False, True]
    # and where one of them is rare
    assert [*kept_and_broken(laws, 2.0, prior=[0.4, 0.4, 0.2])] == [False, True]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("n_secrets", [2, 3])
def test_mixtures_are_found_through_too_little_noise(n_secrets, epsilon):
    """Clusters that all move alike, and overlap at the smaller budget."""
    clusters = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 3.0]])
    weights = [0.5, 0.3, 0.2]
    laws = [Discrete(clusters + at, weights=weights) for at in np.eye(3)[:n_secrets]]
    assert [*kept_and_broken(laws, epsilon)] == [False, True]


def test_spread_distributions_keep_their_promise():
    rng = np.random.default_rng(0)
    laws = [Discrete(rng.normal(size=(30, 2)) + shift) for shift in (0.0, [1.0, 0.0])]
    calibration = calibrated(laws)
    attack = map_attack(laws, calibration, confidence=1 - 1e-6)
    assert attack.n_draws == 100_000
    assert not attack.exceeds(calibration.certificate)


def test_facts_of_scenarios_are_attacked():
    scenario = SimulatorScenario(
        lambda secret, rng: rng.normal(secret, 1, size=(20, 1)),
        secrets=[0.0, 1.0, 2.0],
        pairs=[(0.0, 1.0), (1.0, 2.0)],
        n_draws=50,
    )
    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=20, dim=1)
    bound = scenario.bind(release.context)
    noise = GaussianNoise(0.5)
    laws = bound.fact(OutputDistributions, release, 2.0)
    samples = bound.fact(OutputSamples, release, 2.0)
    of_laws, of_samples = (
        map_attack(fact, noise, confidence=1 - 1e-6) for fact in (laws, samples)
    )
    assert of_laws.secrets == (0.0, 1.0, 2.0)
    assert set(map(frozenset, of_laws.pairs)) == {frozenset((0, 1)), frozenset((1, 2))}
    assert_allclose(of_samples.prior, 1 / 3)
    assert abs(of_laws.accuracy - of_samples.accuracy) < 0.05
    assert of_laws.accuracy > 0.6


def test_noise_on_a_subspace_is_attacked_there():
    noise = DegenerateGaussianNoise(factor=[[3.0], [4.0]])
    points = [[1.0, 1.0], [7.0, 9.0]]
    assert_allclose(map_attack(points, noise).accuracy, norm.cdf(1.0))
    # of three outputs two are as far apart as before, on one line
    attack = map_attack([*points, [1.0, 1.0]], noise, prior=[0.5, 0.5, 0.0])
    assert abs(attack.accuracy - norm.cdf(1.0)) < 0.01
    with refused(ValueError, "audit.direction_without_noise"):
        map_attack([[1.0, 1.0], [7.0, 9.1]], noise)


def test_secrets_without_mass_are_left_out():
    fact = OutputDistributions(
        distributions=((PointMass(0.0), None, PointMass(1.0)),),
        secrets=("a", "b", "c"),
        pairs=((0, 1), (0, 2), (1, 2)),
        probabilities=((0.2, 0.0, 0.6),),
        scale=2.0,
    )
    attack = map_attack(fact, GaussianNoise(2.0))
    assert attack.secrets == ("a", "c") and attack.pairs == ((0, 1),)
    assert_allclose(attack.prior, [0.25, 0.75])
    expected = map_attack([[0.0], [1.0]], GaussianNoise(1.0), prior=[0.25, 0.75])
    assert_allclose(attack.accuracy, expected.accuracy)


# -- refusals --------------------------------------------------------------------------


def fact_of(*laws, **fields):
    return OutputDistributions(
        distributions=(laws,),
        secrets=tuple(range(len(laws))),
        pairs=((0, 1),),
        **fields,
    )


def test_a_common_part_removed_is_refused():
    fact = fact_of(PointMass(0.0), PointMass(1.0), common_part_removed=True)
    with refused(UnsupportedError, "audit.distributions_of_contribution_only"):
        map_attack(fact, GaussianNoise(1.0))


def test_several_priors_are_refused():
    laws = (PointMass(0.0), PointMass(1.0))
    fact = OutputDistributions(
        distributions=(laws, laws), secrets=(0, 1), pairs=((0, 1),)
    )
    with refused(UnsupportedError, "audit.several_priors"):
        map_attack(fact, GaussianNoise(1.0))


@pytest.mark.parametrize(
    "outputs, code, parameters",
    [
        ([PointMass(0.0)], "audit.outputs_below_two_secrets", {}),
        (
            [PointMass(0.0), PointMass([0.0, 1.0])],
            "audit.released_outputs_lengths_mixed",
            {},
        ),
        (
            [PointMass(0.0), Continuous(norm(0, 1))],
            "audit.mixture_not_computed",
            {"law_type": "Continuous"},
        ),
        ([PointMass(0.0), Support([0.0, 1.0])], "audit.support_without_masses", {}),
        ([PointMass(0.0), 1.0], "audit.mixture_not_computed", {"law_type": "float"}),
        (np.zeros((2, 2, 2)), "audit.released_outputs_wrong_shape", {}),
        ([[0.0], [np.nan]], "parameter.array_not_finite", {"name": "outputs"}),
    ],
)
def test_outputs_that_are_none(outputs, code, parameters):
    with refused((ValueError, UnsupportedError), code, **parameters):
        map_attack(outputs, GaussianNoise(1.0))


@pytest.mark.parametrize(
    "noise, error, code, parameters",
    [
        (
            LaplaceNoise(1.0),
            UnsupportedError,
            "audit.noise_not_gaussian",
            {"family": "laplace"},
        ),
        (1.0, TypeError, "audit.noise_not_a_noise", {}),
        (GaussianNoise(0.0), ValueError, "audit.direction_without_noise", {}),
        (GaussianNoise((1.0, 0.0)), ValueError, "audit.direction_without_noise", {}),
        (
            GaussianNoise((1.0, 1.0, 1.0)),
            ValueError,
            "noise.variance_dimension_mismatch",
            {"noise_dim": 3},
        ),
    ],
)
def test_noise_that_is_none(noise, error, code, parameters):
    with refused(error, code, **parameters):
        map_attack([[0.0, 0.0], [1.0, 0.0]], noise)


@pytest.mark.parametrize(
    "options",
    [
        {"prior": [1.0]},
        {"prior": [0.5, 0.2]},
        {"prior": [0.2, 0.3, 0.5]},
        {"n_draws": 0},
        {"confidence": 1.0},
        {"random_state": -1},
    ],
)
def test_parameters_out_of_range(options):
    with pytest.raises(ValueError, match=f"'?{next(iter(options))}'?"):
        map_attack([[0.0], [1.0]], GaussianNoise(1.0), **options)


# -- hockey-stick bounds ---------------------------------------------------------------


def drawn(mu, n=40_000, seed=0):
    rng = np.random.default_rng(seed)
    return distinguishing_attack(
        rng.normal(mu, 1, n), rng.normal(0, 1, n), confidence=0.999
    )


def test_hockey_stick_bounds_are_below_the_curve_and_near_it():
    attack, curve = drawn(1.0), GaussianCurve(1.0)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        found = attack.delta_at(epsilon)
        assert found <= curve.delta(epsilon)
        assert found > curve.delta(epsilon) - 0.03
        # less noise than the curve's is found out
        assert drawn(1 / SHARE).delta_at(epsilon) > curve.delta(epsilon)
    for delta in (0.01, 0.1, 0.3):
        found = attack.epsilon_at(delta)
        assert 0.5 * curve.epsilon(delta) < found <= curve.epsilon(delta)
        assert drawn(1 / SHARE).epsilon_at(delta) > curve.epsilon(delta)


def test_hockey_stick_bounds_of_nothing():
    attack = drawn(0.0, n=1000)
    assert attack.delta_at(0.0) < 0.05
    assert attack.epsilon_at(0.5) == 0.0
    with refused(ValueError, "audit.delta_out_of_range"):
        attack.epsilon_at(1.0)
    with refused(ValueError, "parameter.is_negative", name="epsilon"):
        attack.delta_at(-1.0)


def test_bounds_are_by_clopper_and_pearson():
    # 100 measured outputs in each world, all of which the event tells
    first, second = np.ones(125), np.zeros(125)
    attack = distinguishing_attack(first, second, share=0.2, confidence=0.96)
    low, _ = clopper_pearson(100, 100, 0.01)
    _, high = clopper_pearson(0, 100, 0.01)
    assert_allclose(attack.delta_at(0.0), low - high)
    assert_allclose(attack.epsilon_at(0.0), math.log(low / high))


# -- summaries of a real table ---------------------------------------------------------


def race_summaries(data_dir):
    table = pd.read_csv(data_dir / "adult_train.csv.gz", skipinitialspace=True)
    table = table[~(table == "?").any(axis=1)]
    amounts = table[["age", "education-num", "hours-per-week"]].to_numpy(float)
    rates = np.column_stack(
        [
            table["capital-gain"] > 0,
            table["capital-loss"] > 0,
            table["income"].str.contains(">50K"),
        ]
    )
    units = np.array([36.5, 36.5, 7.5, 7.5, 49, 49, 0.5, 0.5, 0.5])
    found = []
    for race in np.unique(table["race"]):
        rows = (table["race"] == race).to_numpy()
        spread = np.ravel(
            np.column_stack([amounts[rows].mean(0), amounts[rows].std(0)])
        )
        found.append(np.concatenate([spread, rates[rows].mean(0)]) / units)
    return np.array(found)


def quintile_summaries(data_dir):
    table = pd.read_csv(data_dir / "student_mat.csv", sep=";")
    grades = table[["G1", "G2", "G3"]].to_numpy(float)
    rates = np.column_stack(
        [table["studytime"] >= 3, table["failures"] > 0, table["absences"] > 10]
    )
    units = np.array([10.0] * 6 + [0.5] * 3)
    fifths = pd.qcut(table["G3"], 5, labels=False).to_numpy()
    found = []
    for fifth in range(5):
        rows = fifths == fifth
        spread = np.ravel(np.column_stack([grades[rows].mean(0), grades[rows].std(0)]))
        found.append(np.concatenate([spread, rates[rows].mean(0)]) / units)
    return np.array(found)


def shape_of(moves, floor):
    """Least total variance for moves, with a floor, scaled to hold them all."""
    p = np.full(len(moves), 1 / len(moves))
    for _ in range(500):
        values, vectors = np.linalg.eigh(moves.T @ (p[:, None] * moves))
        roots = np.sqrt(np.maximum(values, 0))
        kept = roots > 1e-9 * roots.max()
        q = ((moves @ vectors[:, kept]) ** 2 / roots[kept]).sum(axis=1)
        p = p * q**2
        p /= p.sum()
    d = moves.shape[1]
    shape = q.max() * (vectors * roots) @ vectors.T
    shape += floor * np.trace(shape) / d * np.eye(d)
    worst = np.einsum("ij,ij->i", moves @ np.linalg.inv(shape), moves).max()
    return shape * worst


@pytest.mark.parametrize(
    "table, summaries",
    [("race", race_summaries), ("quintile", quintile_summaries)],
    ids=["race", "quintile"],
)
def test_five_secrets_of_a_real_table(data_dir, table, summaries):
    expected = ORACLES["summary_map_accuracy"]
    means = summaries(data_dir)
    moves = np.array([u - v for i, u in enumerate(means) for v in means[:i]])
    shape, longest = shape_of(moves, 0.01), (moves**2).sum(axis=1).max()
    for epsilon in (1.0, 8.0):
        factor = 4 / (2 * epsilon)
        noises = {
            "round": GaussianNoise(math.sqrt(factor * longest)),
            "shaped": CorrelatedGaussianNoise(covariance=factor * shape),
        }
        # both keep one and the same promise
        promise = gaussian_promise(math.sqrt(2 * epsilon / 4) * (1 + 1e-9))
        for name, noise in noises.items():
            attack = map_attack(means, noise)
            assert_allclose(
                attack.accuracy,
                expected[table][name][f"{epsilon:g}"],
                atol=expected["tolerance"],
            )
            assert attack.majority == 0.2
            assert not attack.exceeds(promise)
