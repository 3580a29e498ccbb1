"""Jointly Gaussian records."""

import json
import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
)
from skpuffer.distributions._distributions import largest_distance
from skpuffer.exceptions import ScenarioError, Statement, UnsupportedError
from skpuffer.noise import GaussianNoise, GeneralizedCauchyNoise, LaplaceNoise
from skpuffer.privacy import Notion, compose
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    DependenceScenario,
    GaussianScenario,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.scenarios._gaussian._bound import BoundGaussian, operator_norm
from tests.attack import SHARE, assert_tight
from tests.refused import refused, says

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_scenarios.json").read_text()
)["gaussian"]
SIGMA = np.array(ORACLES["covariance"])
TIMES = np.arange(20)
SERIES = 0.5 ** np.abs(TIMES[:, None] - TIMES)


class Clipped:
    """Values clipped to [-1, 1], which says how far it moves with its record."""

    def __call__(self, X, y=None):
        return np.clip(X, -1.0, 1.0)

    def move(self, gaps, norm):
        return np.linalg.norm(np.minimum(gaps, 2.0), norm, axis=1)


def columns_of_every_record(columns, n=4):
    """A release of some of three columns, as they are."""
    picked = np.eye(3)[columns]
    matrix = np.kron(np.eye(n), picked)
    return linear(matrix, n)


def linear(matrix, n, **options):
    return QueryRelease(
        query=lambda X, y: matrix @ np.asarray(X).ravel(),
        linear=matrix,
        n_records=n,
        dim=len(matrix),
        **options,
    )


def average(n, d=1, **options):
    return linear(np.tile(np.eye(d) / n, n), n, **options)


def shift(release, scenario, norm=2):
    noise = {1: "laplace", 2: "gaussian"}[norm]
    found = GeneralWasserstein(noise=noise).calibrate(release, scenario).certificate
    assert found.notion is Notion.RENYI_PUFFERFISH
    return found.sensitivity


# -- known values ---------------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["rows"])
def test_known_shifts_of_independent_records(row):
    scenario = GaussianScenario(
        covariance=SIGMA,
        secret=row["secret"],
        domain=row["domain"],
        shape=row["shape"],
    )
    found = shift(columns_of_every_record(row["release"]), scenario, row["norm"])
    assert found == pytest.approx(row["shift"], abs=1e-9)


def test_known_slopes():
    scenario = GaussianScenario(covariance=SIGMA, secret=[1, 2], domain=(0, 1))
    release = columns_of_every_record([0], n=1)
    u, v = (
        scenario.bind(release.context)
        .fact(OutputDistributions, release)
        .distributions[0][:2]
    )
    assert abs(v.mean - u.mean) == pytest.approx(sum(ORACLES["slopes"]), abs=1e-9)
    (slope, _), row = ORACLES["slopes"], SIGMA[0, 1:] @ np.linalg.inv(SIGMA[1:, 1:])
    assert row[0] == pytest.approx(slope, abs=1e-9)


def test_known_average_of_a_table():
    oracle = ORACLES["dataset"]
    n = oracle["n_records"]
    release = linear(np.tile([1 / n, 0, 0], n)[None], n)
    scenario = GaussianScenario(
        covariance=SIGMA, secret=1, domain=(0, 1), level="dataset"
    )
    assert shift(release, scenario) == pytest.approx(oracle["slope"])
    fact = scenario.bind(release.context).fact(OutputDistributions, release)
    assert fact.distributions[0][0].covariance[0, 0] == pytest.approx(
        oracle["variance"]
    )


@pytest.mark.parametrize("row", ORACLES["series"])
def test_known_shifts_of_a_series(row):
    scenario = GaussianScenario(
        covariance=SERIES,
        covariance_of="records",
        domain=(0, 1),
        protected=[row["record"]],
    )
    assert shift(average(20), scenario) == pytest.approx(row["shift"], abs=1e-10)


# -- what the laws are ----------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([1, 2]))
def test_laws_are_conditional_laws(seed, n_columns, norm):
    """Against conditioning by hand on the stacked vector."""
    rng = np.random.default_rng(seed)
    n, size = 3, 3 * n_columns
    root = rng.normal(size=(size, size))
    covariance, mean = root @ root.T, rng.normal(size=size)
    matrix = rng.normal(size=(2, size))
    scenario = GaussianScenario(
        mean, covariance, covariance_of="records", domain=(-1, 2), protected=[1]
    )
    release = linear(matrix, n)
    fact = scenario.bind(release.context).fact(OutputDistributions, release, norm)
    inner = n_columns + np.arange(n_columns)
    slopes = covariance[:, inner] @ np.linalg.inv(covariance[np.ix_(inner, inner)])
    left = matrix @ (covariance - slopes @ covariance[inner]) @ matrix.T
    worst = 0.0
    for *_, u, v in fact.pairs_of_distributions():
        assert np.abs(u.covariance - left).max() <= 1e-8
        middle = matrix @ (mean + slopes @ (0.5 - mean[inner]))
        assert np.abs((u.mean + v.mean) / 2 - middle).max() <= 1e-8
        worst = max(worst, np.linalg.norm(u.mean - v.mean, norm))
    for _ in range(20):
        a, b = rng.uniform(-1, 2, size=(2, n_columns))
        assert np.linalg.norm(matrix @ slopes @ (a - b), norm) <= worst + 1e-9


@pytest.mark.parametrize("mean", [0.0, 1e6, 1e17, -1e40])
@pytest.mark.parametrize("width", [1.0, 1e-7, 1e-60])
def test_a_large_mean_swallows_no_move(mean, width):
    matrix = np.tile([0.0, 0.25], 4)[None]
    scenario = GaussianScenario(
        [0.0, mean], [[1.0, 0.5], [0.5, 1.0]], secret=0, domain=(0, width)
    )
    release = linear(matrix, 4)
    certificate = GeneralWasserstein().calibrate(release, scenario).certificate
    assert certificate.sensitivity == pytest.approx(0.125 * width, rel=1e-8, abs=0)


NORMS = [1, 1.5, 2, 3, math.inf]


@given(st.integers(0, 10**6), st.sampled_from(NORMS))
def test_a_ball_is_as_far_as_its_furthest_points(seed, norm):
    rng = np.random.default_rng(seed)
    release = linear(rng.normal(size=(3, 6)), 2, units=tuple(rng.uniform(1, 9, 3)))

    def radius(kind, **options):
        scenario = GaussianScenario(covariance=SIGMA, secret=[1, 2], **options)
        fact = scenario.bind(release.context).fact(kind, release, norm)
        if kind is OutputSensitivity:
            return fact.radius
        return largest_distance(
            [(u, v) for *_, u, v in fact.pairs_of_distributions()], norm, release.units
        )[0]

    ball = radius(OutputSensitivity, domain=1.0, shape="ball")
    if norm in (1, 2, math.inf):
        assert ball <= radius(OutputDistributions, domain=(-1, 1)) + 1e-12
    angles = rng.uniform(0, 2 * math.pi, size=12)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    assert radius(OutputDistributions, domain=points, shape="points") <= ball + 1e-12


def test_a_ball_of_secrets_is_said_to_be_one():
    scenario = GaussianScenario(
        covariance=SIGMA, secret=[1, 2], domain=1.0, shape="ball"
    )
    release = average(4, d=3)
    fact = scenario.bind(release.context).fact(OutputSensitivity, release)
    assert says(fact.assumptions[0], "assume.gaussian_domain_ball")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [1, 3, 15])
def test_gains(norm, dim):
    rng = np.random.default_rng(dim)
    matrix = rng.normal(size=(dim, 2)) * rng.uniform(0.01, 5, size=(dim, 1))
    angles = np.linspace(0, math.pi, 1001)
    images = matrix @ np.array([np.cos(angles), np.sin(angles)])
    seen = np.linalg.norm(images, norm, axis=0).max()
    found = operator_norm(matrix, norm)
    assert found >= seen * (1 - 1e-12)
    if norm in (2, math.inf) or dim == 1 or (norm == 1 and dim <= 12):
        assert found == pytest.approx(seen, rel=1e-5)


def governed(slopes, variances, **options):
    """Outputs of one record that a few secret columns govern."""
    slopes = np.asarray(slopes, dtype=float)
    d, k = slopes.shape
    covariance = np.eye(d + k)
    covariance[:d, d:], covariance[d:, :d] = slopes, slopes.T
    covariance[:d, :d] = slopes @ slopes.T + np.diag(variances)
    scenario = GaussianScenario(
        covariance=covariance, secret=list(range(d, d + k)), **options
    )
    context = PublicContext(n_records=1, n_features=d)
    return scenario, linear(np.eye(d), 1, context=context)


def test_the_longest_direction_of_a_ball_is_not_the_most_telling():
    """A shorter move may meet less noise, or less variance of the prior."""
    slopes = np.diag([1.0, 0.9])
    scenario, release = governed(slopes, [100.0, 1e-4], domain=0.5, shape="ball")
    assert OutputDistributions not in scenario.bind(release.context).provides(release)
    aware = DistributionAwareWasserstein(1.0, alpha=2, noise="gaussian")
    found = aware.certify(GaussianNoise((10.0, 1.0)), release, scenario)
    assert found.epsilon >= 0.9**2 / (1 + 1e-4)
    with refused(UnsupportedError, "accountant.facts_not_offered"):
        AttributeGaussian(use_prior_variance=True).calibrate(release, scenario)
    partial = ApproximateWasserstein(1.0, alpha=2, event_delta=0.2)
    assert partial.calibrate(release, scenario).noise.scale >= 0.9
    # of one output, or one secret column, there is one direction only
    for slopes in ([[1.0, 0.9]], [[1.0], [0.9]]):
        segment, one = governed(slopes, [1.0] * len(slopes), domain=0.5, shape="ball")
        (*_, u, v), *rest = (
            segment.bind(one.context)
            .fact(OutputDistributions, one)
            .pairs_of_distributions()
        )
        assert not rest
        assert np.linalg.norm(u.mean - v.mean) == pytest.approx(math.hypot(1, 0.9))


@pytest.mark.parametrize("noise", [GeneralizedCauchyNoise(0.3, 3), LaplaceNoise(1.0)])
def test_corners_of_a_box_stand_for_what_is_convex_only(noise):
    """Far moves of one coordinate each cost a heavy tail less than half of both."""
    far = 1000.0
    slopes = far / 2 * np.array([[1.0, 1.0], [1.0, -1.0]])
    scenario, release = governed(slopes, [1e-6, 1e-6], domain=(0, 1))
    laws = scenario.bind(release.context).fact(OutputDistributions, release)
    assert laws.corners
    aware = DistributionAwareWasserstein(1.0, alpha=2, noise=noise)
    promised = aware.certify(noise, release, scenario).epsilon
    steps = slopes @ np.random.default_rng(0).uniform(-1, 1, size=(2, 200))
    steps = np.column_stack([steps, slopes @ [1.0, 0.0]])
    costs = noise.renyi(2.0, np.abs(steps).ravel()).reshape(steps.shape).sum(axis=0)
    assert costs.max() <= promised * (1 + 1e-9)


def test_signs_are_kept():
    """Moves may cancel in a linear query and never do record by record."""
    covariance = np.array([[1.0, -1.0 / 2], [-1.0 / 2, 1.0]])
    scenario = GaussianScenario(
        covariance=covariance, covariance_of="records", domain=(0, 1)
    )
    total = linear(np.ones((1, 2)), 2)
    assert shift(total, scenario) == pytest.approx(0.5)
    clipped = QueryRelease(contribution=Clipped(), is_sum=True, n_records=2, dim=1)
    assert shift(clipped, scenario) == pytest.approx(1.5)


def test_unequal_covariances_are_what_other_records_values_have():
    """Why only values of one record are kept apart, and why lambda is infinite."""
    given_first = np.delete(SERIES - np.outer(SERIES[0], SERIES[0]), 0, 0)
    given_last = np.delete(SERIES - np.outer(SERIES[9], SERIES[9]), 0, 0)
    assert not np.allclose(given_first, given_last)
    with refused(ScenarioError, "dependence.distance_infinite"):
        DependenceScenario(distance=math.inf).check()


@pytest.mark.parametrize("deviation", [1.0, 1e3, 1e8])
def test_round_off_is_no_variance(deviation):
    """The value itself is released: given it, nothing is left to hide it."""
    rng = np.random.default_rng(0)
    times = np.arange(5)
    for _ in range(20):
        root = rng.uniform(0.5, 0.99)
        variance = deviation**2 * rng.uniform(0.5, 2)
        covariance = variance * root ** np.abs(times[:, None] - times)
        record = int(rng.integers(5))
        matrix = np.zeros((1, 5))
        matrix[0, record] = rng.uniform(0.5, 2)
        scenario = GaussianScenario(
            covariance=covariance,
            covariance_of="records",
            domain=(0, 1),
            protected=[record],
        )
        accountant = AttributeGaussian(1.0, alpha=2, use_prior_variance=True)
        found = accountant.calibrate(linear(matrix, 5), scenario)
        assert found.noise.scale == pytest.approx(matrix[0, record], rel=1e-12)


def test_round_off_is_no_variance_where_the_secret_leaves_a_trace_only():
    """A weighted sum of columns that would be constant without the secret."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        weights, common = rng.uniform(-1, 1, size=(2, 3))
        common -= weights * (weights @ common) / (weights @ weights)
        root = np.zeros((4, 2))
        root[0, 0], root[1, 0], root[1:, 1] = 1.0, 1e-9, common
        scenario = GaussianScenario(covariance=root @ root.T, secret=[0], domain=(0, 1))
        context = PublicContext(n_records=1, n_features=3)
        accountant = AttributeGaussian(1.0, alpha=2, use_prior_variance=True)
        found = accountant.calibrate(
            linear(weights[None], 1, context=context), scenario
        )
        least = 1e-9 * abs(weights[0])
        assert found.noise.scale == pytest.approx(least, rel=1e-6, abs=0)


def test_round_off_has_the_units_of_its_columns():
    """Variance is relied on whatever the unit of the secret."""
    release = columns_of_every_record([0])
    found = []
    for unit in (1.0, 1e-9, 1e9):
        units = np.array([1.0, unit, 1.0])
        scenario = GaussianScenario(
            covariance=SIGMA * np.outer(units, units), secret=1, domain=(0, unit)
        )
        fact = scenario.bind(release.context).fact(OutputDistributions, release)
        found.append(fact.distributions[0][0].covariance)
    for covariance in found:
        assert covariance == pytest.approx(found[0], rel=1e-9)
    assert np.all(np.diag(found[0]) > 0)


@given(st.integers(0, 10**6), st.floats(0, 12), st.integers(1, 2))
def test_variance_relied_on_is_there(seed, digits, n_secret):
    """Nearly singular covariances, against conditioning in exact fractions."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 4))
    root += 10**-digits * rng.normal(size=(4, 4))
    covariance = root @ root.T + 1e-14 * np.eye(4)
    covariance = (covariance + covariance.T) / 2
    secret = list(range(n_secret))
    matrix = rng.integers(-2, 3, size=(2, 4)).astype(float)
    scenario = GaussianScenario(covariance=covariance, secret=secret, domain=(0, 1))
    release = linear(matrix, 1, context=PublicContext(n_records=1, n_features=4))
    try:
        facts = scenario.bind(release.context).fact(OutputDistributions, release)
    except ScenarioError:
        return  # the secrets determine each other
    fractions = np.vectorize(Fraction, otypes=[object])
    left, exact = fractions(covariance), fractions(matrix)
    for at in secret:
        left = left - np.outer(left[:, at], left[at]) / left[at, at]
    left = exact @ left @ exact.T
    for law in facts.distributions[0]:  # no more than it, in any direction
        missing = left - fractions(law.covariance)
        assert missing[0, 0] >= 0
        assert missing[0, 0] * missing[1, 1] >= missing[0, 1] ** 2


# -- other queries --------------------------------------------------------------------


def test_records_move_together():
    release = QueryRelease(
        contribution=Clipped(), is_sum=True, factor=1 / 20, n_records=20, dim=1
    )
    scenario = GaussianScenario(
        covariance=SERIES, covariance_of="records", domain=(0, 1)
    )
    fact = scenario.bind(release.context).fact(Adjacency, release)
    assert (fact.count, fact.move) == (20, 1.0)
    assert fact.moves == pytest.approx(np.sort(SERIES[9])[::-1])
    # all moves have one sign, so clipping loses nothing here
    assert shift(release, scenario) == pytest.approx(shift(average(20), scenario))
    assert fact.coupling_id is None  # whose records these are is not known by name


def test_certificates_of_one_named_series_add_up():
    context = PublicContext(n_records=20, feature_names=("load",), n_features=1)
    release = QueryRelease(
        contribution=Clipped(), is_sum=True, n_records=20, dim=1, context=context
    )
    scenario = GaussianScenario(
        covariance=SERIES,
        covariance_of="records",
        domain=(0, 1),
        columns=["load"],
        table="loads",
    )
    found = GroupPrivacy().calibrate(release, scenario).certificate
    assert found.composable
    assert compose([found, found]).epsilon == pytest.approx(2 * found.epsilon)
    nameless = clone(scenario).set_params(table=None)
    alone = GroupPrivacy().calibrate(release, nameless).certificate
    assert alone.epsilon == found.epsilon and not alone.composable


def test_smooth_queries_take_each_records_own_move():
    release = QueryRelease(
        query=lambda X, y: X,
        contribution=Clipped(),
        modulus=lambda b: min(0.3, b),
        n_records=20,
        dim=1,
    )
    scenario = GaussianScenario(
        covariance=SERIES, covariance_of="records", domain=(0, 1), protected=[0]
    )
    assert shift(release, scenario) == pytest.approx(np.minimum(SERIES[0], 0.3).sum())


def test_without_a_move_each_record_may_become_any_other():
    known = Sensitivity(add_remove={1: 0.5}, replace={1: 1.0})
    release = QueryRelease(
        query=lambda X, y: np.median(X), n_records=20, dim=1, sensitivity=known
    )
    series = GaussianScenario(covariance=SERIES, covariance_of="records", domain=(0, 1))
    table = GaussianScenario(covariance=[[1, 0.5], [0.5, 1]], secret=0, domain=(0, 1))
    group = GroupPrivacy()
    assert group.calibrate(release, series).certificate.sensitivity == 20
    assert group.calibrate(release, table).certificate.sensitivity == 1
    unknown = QueryRelease(query=lambda X, y: np.median(X), n_records=20, dim=1)
    with pytest.raises(UnsupportedError):
        group.calibrate(unknown, table)


# -- columns --------------------------------------------------------------------------


def test_columns_are_found_by_name():
    names = ["grade", "age", "hours"]
    frame = pd.DataFrame(SIGMA, index=names, columns=names)
    scenario = GaussianScenario(covariance=frame, secret="age", domain=(0, 3))
    context = PublicContext(n_records=4, feature_names=("hours", "grade"), n_features=2)
    release = linear(np.eye(8), 4, context=context)
    assert shift(release, scenario) == pytest.approx(2.0124611797, abs=1e-9)
    with refused(ScenarioError, "gaussian.columns_missing_in_covariance"):
        scenario.bind(PublicContext(n_records=4, feature_names=("x",), n_features=1))


def test_columns_are_counted_without_the_secret():
    scenario = GaussianScenario(covariance=SIGMA, secret=1, domain=(0, 3))
    for n_features, expected in ((3, math.hypot(1.8, 3.0, 0.9)), (2, 2.0124611797)):
        context = PublicContext(n_records=4, n_features=n_features)
        release = linear(np.eye(4 * n_features), 4, context=context)
        assert shift(release, scenario) == pytest.approx(expected, abs=1e-9)
    with refused(ScenarioError, "gaussian.column_count_differs", n_features=1):
        scenario.bind(PublicContext(n_records=4, n_features=1))


def test_parameters():
    scenario = GaussianScenario(covariance=SIGMA, secret="b", domain=(0, 1))
    assert clone(scenario).secret == "b"
    assert repr(scenario) == (
        "GaussianScenario(covariance=<3 x 3, of columns>, secret='b', domain=(0, 1), "
        "shape='box', level='record')"
    )


@pytest.mark.parametrize(
    "options, said",
    [
        ({"covariance": None}, Statement("gaussian.covariance_missing")),
        (
            {"covariance": [[1, 2], [2, 1]]},
            Statement(
                "parameter.covariance_not_positive_definite", kind="semi-definite"
            ),
        ),
        (
            {"covariance": [[1, 2], [0, 1]]},
            Statement("parameter.covariance_not_symmetric"),
        ),
        ({"covariance": [[1, 2]]}, Statement("parameter.covariance_not_square")),
        ({"covariance": [[math.nan]]}, Statement("parameter.array_not_finite")),
        (
            {"covariance": np.ones((2, 2)), "secret": [0, 1]},
            Statement("gaussian.secret_covariance_singular"),
        ),
        (
            {"covariance": np.diag([0.0, 1.0])},
            Statement("gaussian.secret_covariance_singular"),
        ),
        ({"mean": [0.0]}, Statement("gaussian.mean_invalid")),
        ({"secret": None}, Statement("gaussian.secret_missing")),
        ({"secret": 7}, Statement("gaussian.secret_unknown", name=7)),
        ({"secret": [0, 0]}, Statement("gaussian.secret_repeated")),
        (
            {"secret": "x", "columns": ["a", "b", "c"]},
            Statement("gaussian.secret_unknown", name="x"),
        ),
        (
            {"secret": "a", "columns": ["a", "b"]},
            Statement("gaussian.column_names_count_differs", n_names=2, n_columns=3),
        ),
        ({"domain": None}, Statement("gaussian.domain_missing")),
        ({"domain": (1, 0)}, Statement("gaussian.box_bounds_invalid")),
        ({"domain": (0, math.inf)}, Statement("gaussian.domain_unreadable_for_shape")),
        ({"domain": 3.0}, Statement("gaussian.domain_unreadable_for_shape")),
        (
            {"domain": 0.0, "shape": "ball"},
            Statement("gaussian.ball_radius_not_positive"),
        ),
        (
            {"domain": math.inf, "shape": "ball"},
            Statement("gaussian.domain_unreadable_for_shape"),
        ),
        (
            {"domain": math.nan, "shape": "ball"},
            Statement("gaussian.domain_unreadable_for_shape"),
        ),
        (
            {"domain": [1.0], "shape": "points"},
            Statement("gaussian.points_fewer_than_two"),
        ),
        (
            {"domain": [[1.0, 2.0]], "shape": "points"},
            Statement("gaussian.points_invalid"),
        ),
        ({"shape": "cube"}, Statement("parameter.option_unknown", name="shape")),
        ({"level": "table"}, Statement("parameter.option_unknown", name="level")),
        (
            {"covariance_of": "both"},
            Statement("parameter.option_unknown", name="covariance_of"),
        ),
        ({"protected": [0]}, Statement("gaussian.protected_needs_record_covariance")),
        (
            {"covariance_of": "records", "level": "dataset"},
            Statement("gaussian.dataset_level_needs_column_covariance"),
        ),
        (
            {"covariance_of": "records"},
            Statement("gaussian.covariance_not_whole_columns"),
        ),
        (
            {"covariance_of": "records", "covariance": np.eye(4), "protected": [9]},
            Statement("scenario.protected_out_of_range"),
        ),
    ],
)
def test_bad_parameters_are_named(options, said):
    given = {"covariance": SIGMA, "secret": 0, "domain": (0, 1), **options}
    with refused(ValueError, said.code, **said.parameters):
        GaussianScenario(**given).bind(PublicContext(n_records=4))


def test_a_matrix_of_another_table_is_refused():
    scenario = GaussianScenario(covariance=SIGMA, secret=0, domain=(0, 1))
    with refused(ScenarioError, "gaussian.release_matrix_shape_differs"):
        shift(average(4), scenario)


# -- an attacker ----------------------------------------------------------------------


# what varies given the secret blurs; with the last correlation next to nothing does
@pytest.mark.parametrize("correlation, share", [(0.5, 0.4), (1 - 1e-6, SHARE)])
def test_an_attacker_who_knows_the_covariance(correlation, share):
    covariance = correlation ** np.abs(TIMES[:, None] - TIMES)
    scenario = GaussianScenario(
        covariance=covariance, covariance_of="records", domain=(-3, 3), protected=[9]
    )
    found = GeneralWasserstein(epsilon=1.0, alpha=2.0).calibrate(average(20), scenario)
    slopes = covariance[:, 9]
    rest = covariance - np.outer(slopes, slopes)
    root = np.linalg.cholesky(rest + 1e-12 * np.eye(20))

    def world(value, noise):
        def draw(size, rng):
            series = value * slopes + rng.normal(size=(size, 20)) @ root.T
            return series.mean(axis=1) + noise.sample((size,), rng)

        return draw

    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: [world(value, noise) for value in (3.0, -3.0)],
        share=share,
        seed=2,
        n_draws=20_000,
    )


def test_the_largest_moves_of_coordinates_over_a_ball_and_a_box():
    slopes = np.array([[3.0, 4.0], [0.0, -2.0]])

    def largest(moves):
        return BoundGaussian._largest_moves(SimpleNamespace(moves=moves), slopes)

    assert largest(0.5) == pytest.approx([2.5, 1.0])
    corners = np.array([[1.0, 1.0], [1.0, -1.0]])
    assert largest(corners) == pytest.approx([7.0, 2.0])


def test_what_is_made_of_the_records_is_not_linear_in_them():
    scenario = GaussianScenario(
        covariance=SERIES[:4, :4], covariance_of="records", domain=(0, 1)
    )
    for mapped in (None, np.tanh):
        context = PublicContext(n_records=4, n_features=1, feature_map=mapped)
        provided = scenario.bind(context).provides(average(4, context=context))
        assert (OutputDistributions in provided) is (mapped is None)
