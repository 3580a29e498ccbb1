"""Weights of records and of units: what they mean, and what noise covers of them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, special
from sklearn import config_context
from sklearn.base import ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.validation import has_fit_parameter

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.compose import PrivatePipeline
from skpuffer.covariance import PrivateCovariance
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GumbelNoise
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
    _quantile,
)
from skpuffer.summary._quantile import RankScores
from skpuffer.training import LinearGradients, Logistic, Training
from tests.refused import refused, says

RNG = np.random.default_rng(0)
N = 900
TABLE = pd.DataFrame(
    {
        "x": RNG.normal(5, 2, N).clip(0, 10),
        "z": 3 * RNG.random(N),
        "g": RNG.choice(["a", "b"], N),
    }
)
TIMES = RNG.choice([0, 1, 2], N)
REPEATED = TABLE.loc[np.repeat(TABLE.index, TIMES)]
UNITS = RNG.integers(0, 200, N)
BOUNDS = {"x": (0, 10), "z": (0, 3)}
#: Next to no noise: what is released is what was computed.
EXACT = PrivacyLoss(1e6, 1e-9)
ASKED = {
    "statistics": [
        *("count", "size", "mean", "sum", "std", "rate"),
        *("median", "mode", "n_unique", "histogram"),
    ],
    "bounds": BOUNDS,
    "categories": {"g": ["a", "b"]},
    "bins": 4,
}


def two_columns(kind, **parameters):
    return kind(accountant=EXACT, bounds=BOUNDS, **parameters)


# -- what weights mean -----------------------------------------------------------------


@pytest.mark.parametrize("largest", [1, 2, 50])
def test_a_record_of_weight_one_is_seen_beside_any_largest(largest):
    table = pd.DataFrame({"k": ["b", "b", "c"]})
    model = PrivateSummary(
        accountant=PrivacyLoss(1e8, 1e-9),
        statistics=["mode", "n_unique"],
        categories={"k": ["a", "b", "c"]},
        weight_bounds=(0, largest),
    ).fit(table, sample_weight=np.ones(3))
    assert model.result_["k"].tolist() == ["b", 2.0]


@pytest.mark.parametrize("kind", [PrivateMean, PrivateStandardScaler])
def test_weighted_means_are_those_of_repeated_rows(kind):
    model = two_columns(kind, weight_bounds=(0, 2))
    model.fit(TABLE[["x", "z"]], sample_weight=TIMES)
    other = two_columns(kind).fit(REPEATED[["x", "z"]])
    np.testing.assert_allclose(model.mean_, other.mean_, rtol=1e-5)
    assert model.weight_sum_ == pytest.approx(TIMES.sum(), rel=1e-5)
    if kind is PrivateStandardScaler:
        np.testing.assert_allclose(model.scale_, other.scale_, rtol=1e-5)


@pytest.mark.parametrize("by", [None, "g"])
def test_weighted_summaries_are_those_of_repeated_rows(by):
    model = PrivateSummary(accountant=EXACT, weight_bounds=(0, 2), by=by, **ASKED)
    found = model.fit(TABLE, sample_weight=TIMES).result_
    expected = PrivateSummary(accountant=EXACT, by=by, **ASKED).fit(REPEATED).result_
    pd.testing.assert_frame_equal(found, expected, rtol=1e-4)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("clip", [False, True])
def test_weighted_statistics_of_columns_with_gaps(by, clip):
    schema = Schema({"x": Number(0, 10, missing=True), "z": (0, 3), "g": ["a", "b"]})
    table = TABLE.assign(x=TABLE.x.where(RNG.random(N) < 0.7))
    weights = RNG.uniform(0.5, 4.0, N)
    model = PrivateSummary(
        accountant=EXACT,
        schema=schema,
        statistics={"x": ["count", "mean", "std"], "z": ["mean"]},
        weight_bounds=(0.5, 4),
        by=by,
        clip=clip,
        nonnegative=clip,
    )
    found = model.fit(table, sample_weight=weights).result_
    groups = {None: slice(None)}
    if by:
        groups = {g: (table.g == g).to_numpy() for g in "ab"}
    for group, rows in groups.items():
        part, w = table[rows], weights[rows]
        there = part.x.notna().to_numpy()
        x, w_x = part.x[there], w[there]
        mean = np.average(x, weights=w_x)
        expected = {
            ("x", "count"): w_x.sum(),
            ("x", "mean"): mean,
            ("x", "std"): np.sqrt(np.average((x - mean) ** 2, weights=w_x)),
            ("z", "mean"): np.average(part.z, weights=w),
        }
        for (column, name), value in expected.items():
            held = found.loc[group, (column, name)] if by else found.loc[name, column]
            assert held == pytest.approx(value, rel=1e-4)


def test_means_of_columns_with_gaps_are_weighted():
    table = pd.DataFrame({"x": TABLE.x.where(RNG.random(N) < 0.7), "z": TABLE.z})
    schema = Schema({"x": Number(0, 10, missing=True), "z": (0, 3)})
    model = PrivateMean(accountant=EXACT, schema=schema, weight_bounds=(0, 2))
    model.fit(table, sample_weight=TIMES)
    repeated = table.loc[np.repeat(table.index, TIMES)]
    other = PrivateMean(accountant=EXACT, schema=schema).fit(repeated)
    np.testing.assert_allclose(model.mean_, other.mean_, rtol=1e-5, atol=1e-6)


def test_distributions_of_weighted_records_are_those_of_repeated_ones():
    X, again = TABLE[["x", "z"]], REPEATED[["x", "z"]]
    model = two_columns(PrivateCDF, bins=50, weight_bounds=(0, 2))
    model.fit(X, sample_weight=TIMES)
    other = two_columns(PrivateCDF, bins=50).fit(again)
    np.testing.assert_allclose(model.levels_, other.levels_, atol=1e-4)
    np.testing.assert_allclose(model.n_answers_, len(again), rtol=1e-4)
    # errors of the noise alone are in the units of the columns
    frame, plain = (m.to_frame(of="table") for m in (model, other))
    np.testing.assert_allclose(frame.estimate, plain.estimate, rtol=1e-3)
    with refused(UnsupportedError, "summary.no_population_of_such_records"):
        model.to_frame()


@pytest.mark.parametrize("resolution", [None, 0.5])
@pytest.mark.parametrize("quantiles", [0.5, [0.1, 0.5, 0.8]])
def test_weighted_quantiles_are_those_of_repeated_rows(quantiles, resolution):
    asked = {"quantiles": quantiles, "resolution": resolution}
    model = two_columns(PrivateQuantile, weight_bounds=(0, 2), **asked)
    model.fit(TABLE[["x", "z"]], sample_weight=TIMES)
    other = two_columns(PrivateQuantile, **asked).fit(REPEATED[["x", "z"]])
    # within the records next to it
    near = 0.1 if resolution is None else resolution
    np.testing.assert_allclose(model.quantiles_, other.quantiles_, atol=near)
    assert says(model.certificate_.assumptions, "assume.weights_clipped", high=2.0)


def test_covariances_of_weighted_records_are_those_of_repeated_ones():
    schema = Schema({"x": Number(0, 10, missing=True), "z": (0, 3)})
    table = TABLE[["x", "z"]].assign(x=TABLE.x.where(RNG.random(N) < 0.7))
    model = PrivateCovariance(accountant=EXACT, schema=schema, weight_bounds=(0, 2))
    model.fit(table, sample_weight=TIMES)
    again = table.loc[np.repeat(table.index, TIMES)].dropna()
    assert model.n_complete_ == pytest.approx(len(again), rel=1e-4)
    np.testing.assert_allclose(model.mean_, again.mean(), rtol=1e-3)
    # weights need not count records, so that nothing is taken off for the mean
    np.testing.assert_allclose(model.covariance_, again.cov(ddof=0), atol=1e-3)


def test_weights_that_are_none_are_read_as_the_least():
    weights = [1.5, -3.0, np.nan, np.inf, None, "2", "many", 9.0, 10**400, pd.NA]
    read = [1.5, 0.5, 0.5, 2.0, 0.5, 2.0, 0.5, 2.0, None, 0.5]
    X = np.arange(10.0)[:, np.newaxis]
    model = PrivateMean(accountant=EXACT, bounds=(0, 10), weight_bounds=(0.5, 2))
    # a number that no float holds is either
    with_least = [0.5 if w is None else w for w in read]
    with_most = [2.0 if w is None else w for w in read]
    found = model.fit(X, sample_weight=weights).mean_[0]
    assert found in [
        pytest.approx(np.average(X[:, 0], weights=w), rel=1e-5)
        for w in (with_least, with_most)
    ]
    # without weights each is one
    assert model.fit(X).mean_[0] == pytest.approx(4.5, rel=1e-5)


def test_equal_weights_cost_nothing_and_change_nothing():
    X = TABLE[["x", "z"]]
    plain = two_columns(PrivateMean).fit(X)
    model = two_columns(PrivateMean, weight_bounds=(3, 3))
    model.fit(X, sample_weight=np.full(N, 3.0))
    np.testing.assert_allclose(model.mean_, plain.mean_, rtol=1e-6)
    np.testing.assert_allclose(model.mean_std_, plain.mean_std_, rtol=1e-6)


def test_weights_are_routed():
    pipeline = make_pipeline("passthrough", PrivateMean(bounds=(0, 10)))
    mean = pipeline[-1].set_params(weight_bounds=(0, 2), accountant=EXACT)
    X = TABLE[["x"]]
    pipeline.fit(X, privatemean__sample_weight=TIMES)
    expected = np.average(TABLE.x, weights=TIMES)
    assert mean.mean_[0] == pytest.approx(expected, rel=1e-5)
    with config_context(enable_metadata_routing=True):
        mean.set_fit_request(sample_weight=True)
        pipeline.fit(X, sample_weight=TIMES)
    assert mean.mean_[0] == pytest.approx(expected, rel=1e-5)
    assert has_fit_parameter(mean, "sample_weight")


@pytest.mark.parametrize(
    "model",
    [
        PrivateMean(bounds=(-10, 10)),
        PrivateQuantile(bounds=(-10, 10)),
        PrivateCDF(bounds=(-10, 10)),
        PrivateCovariance(bounds=(-10, 10)),
        PrivateSGDRegressor(target_bounds=(-10, 10)),
        PrivateHuberRegressor(target_bounds=(-10, 10)),
        PrivateLinearRegression(bounds=(-10, 10), target_bounds=(-10, 10)),
        PrivateAdditiveClassifier(bounds=(-10, 10), n_rounds=2),
        PrivateAdditiveRegressor(bounds=(-10, 10), target_bounds=(-10, 10), n_rounds=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_sample_weights_pandas_series,
        estimator_checks.check_sample_weights_not_an_array,
        estimator_checks.check_sample_weights_list,
        estimator_checks.check_sample_weights_shape,
        estimator_checks.check_sample_weights_not_overwritten,
    ],
)
def test_weights_are_read_as_scikit_learn_has_them(model, check):
    """All but an error where all are zero, which would tell of them."""
    check(type(model).__name__, clone(model).set_params(weight_bounds=(0, 5)))


# -- units that count once -------------------------------------------------------------


@pytest.mark.parametrize("kind", [PrivateMean, PrivateStandardScaler])
def test_a_mean_of_units_is_one_of_their_means(kind):
    X = TABLE[["x", "z"]]
    scenario = RecordScenario(max_rows=100)
    model = two_columns(kind, scenario=scenario, weight="unit").fit(X, groups=UNITS)
    means = X.groupby(UNITS).mean()
    np.testing.assert_allclose(model.mean_, means.mean(), rtol=1e-5)
    assert says(model.certificate_.assumptions, "assume.units_weigh_the_same")
    if kind is PrivateStandardScaler:
        squares = (X**2).groupby(UNITS).mean().mean()
        np.testing.assert_allclose(model.var_, squares - means.mean() ** 2, rtol=1e-4)


def test_a_summary_of_units_counts_units():
    scenario = RecordScenario(max_rows=100)
    model = PrivateSummary(scenario, EXACT, weight="unit", by="g", **ASKED)
    found = model.fit(TABLE, groups=UNITS).result_
    share = 1 / np.bincount(UNITS)[UNITS]
    for group in "ab":
        rows = (TABLE.g == group).to_numpy()
        w = share[rows]
        assert found.loc[group, ("x", "size")] == pytest.approx(w.sum(), rel=1e-4)
        mean = np.average(TABLE.x[rows], weights=w)
        assert found.loc[group, ("x", "mean")] == pytest.approx(mean, rel=1e-4)


def test_weights_of_rows_within_units():
    X = TABLE[["x"]]
    scenario = RecordScenario(max_rows=100)
    model = PrivateMean(
        scenario, EXACT, bounds=(0, 10), weight="unit", weight_bounds=(0, 2)
    ).fit(X, groups=UNITS, sample_weight=TIMES)
    share = TIMES / np.bincount(UNITS)[UNITS]
    expected = np.average(TABLE.x, weights=share)
    assert model.mean_[0] == pytest.approx(expected, rel=1e-5)
    assert model.weight_sum_ == pytest.approx(share.sum(), rel=1e-5)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_of_units_is_that_of_as_many_records(noise):
    accountant = PrivacyLoss(1.0, 1e-5, noise=noise)
    X = TABLE[["x", "z"]].to_numpy()
    first = np.unique(UNITS, return_index=True)[1]
    single = PrivateMean(accountant=accountant, bounds=(0, 10)).fit(X[first])
    for most in (2, 20):
        people = PrivateMean(
            RecordScenario(max_rows=most), accountant, bounds=(0, 10), weight="unit"
        ).fit(X, groups=UNITS)
        np.testing.assert_allclose(people.mean_std_, single.mean_std_, rtol=1e-6)


def test_statistics_that_count_rows_pay_for_all_of_a_unit():
    model = PrivateCDF(RecordScenario(max_rows=3), bounds=(0, 10))
    found = model.fit(TABLE[["x"]], groups=UNITS).certificate_
    assert found.n_records == np.minimum(np.bincount(UNITS), 3).sum()


# -- what noise covers -----------------------------------------------------------------


class _Told:
    """Keeps the release, whose contributions are looked at."""

    def _publish(self, value, release):
        self.told = release
        super()._publish(value, release)


class ToldMean(_Told, PrivateMean):
    pass


class ToldScaler(_Told, PrivateStandardScaler):
    pass


class ToldSummary(_Told, PrivateSummary):
    pass


class ToldCDF(_Told, PrivateCDF):
    pass


GAPS = Schema({"x": Number(0, 1, missing=True), "z": (0, 1)})
CASES = [
    (ToldMean, {"bounds": (0, 1)}),
    (ToldMean, {"schema": GAPS}),
    (ToldScaler, {"bounds": (0, 1)}),
    (ToldScaler, {"schema": GAPS}),
    (ToldCDF, {"bins": [0, 0.3, 0.5, 1]}),
    (ToldCDF, {"schema": GAPS, "bins": 20}),
    (ToldSummary, {"statistics": ["mean", "std", "rate"], "bounds": (0, 1)}),
    (ToldSummary, {"statistics": ["median"], "bounds": (0, 1), "bins": [0, 0.5, 1]}),
    (ToldSummary, {"statistics": ["mean", "count"], "schema": GAPS}),
    (
        ToldSummary,
        {
            "statistics": {"x": ["mean", "histogram"]},
            "bounds": (0, 1),
            "bins": 2,
            "by": "z",
            "categories": {"z": [0.0, 1.0]},
        },
    ),
]


def moves(contributions, p):
    """Largest norms of a record, and between two."""
    alone = np.linalg.norm(contributions, p, axis=1).max()
    apart = contributions[:, np.newaxis] - contributions[np.newaxis]
    return alone, np.linalg.norm(apart, p, axis=2).max()


@pytest.mark.parametrize("least", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_record_and_its_weight_are_within_the_sensitivity(case, relation, least):
    """By brute force, over records and weights at both ends and between."""
    kind, parameters = case
    ends = [0.0, 0.25, 1.0]
    rows = np.array(list(itertools.product(ends, repeat=2)))
    if "schema" in parameters:
        ends = [0.0, 0.25, 1.0, np.nan]
        rows = np.array(list(itertools.product(ends, repeat=2)))
    table = pd.DataFrame(rows, columns=["x", "z"])
    noise = {1: "laplace", 2: "gaussian"}
    for p in noise:
        accountant = PrivacyLoss(1.0, 1e-5, noise=noise[p])
        model = kind(
            RecordScenario(relation=relation),
            accountant,
            weight_bounds=(2 * least, 2),
            **parameters,
        ).fit(table, sample_weight=2 * np.ones(len(table)))
        contribution, factor = model.told.contribution, model.told.factor
        X = rows
        if hasattr(model, "feature_map_"):
            X = np.asarray(model.feature_map_(table))
        weights = np.array([least, (1 + least) / 2, 1.0])
        each = np.vstack(
            [
                np.column_stack([X, np.full(len(X), w), np.full(len(X), 1 - w)])
                for w in weights
            ]
        )
        added = contribution(each)
        np.testing.assert_allclose(
            contribution.sums(each), added.sum(axis=0), atol=1e-12
        )
        alone, apart = moves(added, p)
        found = alone if relation == "add_remove" else apart
        stated = model.certificate_.sensitivity / factor
        assert found <= stated * (1 + 1e-9)
        # and no more is paid than for a record of the largest weight
        whole = contribution.block.sensitivity.value(relation, p, None)
        assert stated == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("least", [0.2, 1.0])
def test_all_rows_of_a_unit_are_within_the_sensitivity(relation, least):
    """By brute force, over units of one and of two rows and weights of each."""
    bounds = None if least == 1 else (least, 1.0)
    model = ToldScaler(
        RecordScenario(relation=relation, max_rows=2),
        PrivacyLoss(1.0, 1e-5, noise="gaussian"),
        bounds=(-1, 1),
        weight="unit",
        weight_bounds=bounds,
    ).fit(np.linspace(-1, 1, 8)[:, np.newaxis], groups=np.arange(8) // 2)
    rows = list(itertools.product([-1.0, -0.5, 0.3, 1.0], {least, 1.0}))
    units = [(row,) for row in rows] + list(itertools.product(rows, rows))
    added = []
    for unit in units:
        x, w = np.array(unit).T
        # what is summed, of rows that are each a part of the unit
        table = np.column_stack([x, w / len(x), (1 - w) / len(x)])
        added.append(model.told.contribution.sums(table))
    alone, apart = moves(np.array(added), 2)
    found = alone if relation == "add_remove" else apart
    stated = model.certificate_.sensitivity / model.told.factor
    assert found <= stated * (1 + 1e-9)
    # a unit of one row moves as far
    assert stated <= found * (1 + 1e-3)


WEIGHED = [(x, w) for x in (0.0, 1.0, 2.0) for w in (0.0, 0.4, 1.0)]


def scores_of(records, q, monkeypatch):
    """Scores of 0, 1 and 2 as a quantile of weighted records, without noise."""
    held = []
    monkeypatch.setattr(
        _quantile, "noisy_scores", lambda scores, *rest: held.append(scores) or scores
    )
    x, w = np.array(records, dtype=float).T
    scores = RankScores(0, (q,), 0.0, 2.0, 1.0, weighted=True)
    scores.choose(np.column_stack([x, w, 1 - w]), GumbelNoise(1.0), RNG)
    return held[0]


@pytest.mark.parametrize("q", [0.25, 0.5])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_weight_moves_scores_out_of_their_range(relation, q, monkeypatch):
    """All neighbours of small tables; at 0.7 of the noise some tell more."""
    stated = RankScores(0, (q,), 0.0, 2.0, 1.0).ranges(relation)[0]
    times = itertools.product((0, 1, 12), repeat=3)
    tables = [sum(([(x, 1.0)] * k for x, k in enumerate(t)), []) for t in times]
    tables += itertools.combinations_with_replacement(WEIGHED, 2)
    most, loss = 0.0, {1.0: 0.0, 0.7: 0.0}
    for table in tables[1:]:
        found = [scores_of([*table, r], q, monkeypatch) for r in WEIGHED]
        others = found if relation == "replace" else [scores_of(table, q, monkeypatch)]
        for one, other in itertools.product(found, others):
            most = max(most, np.ptp(one - other))
            for part in loss:
                laws = [special.log_softmax(s / (part * stated)) for s in (one, other)]
                loss[part] = max(loss[part], np.abs(laws[0] - laws[1]).max())
    assert most == pytest.approx(stated)
    assert loss[1.0] <= 1.0
    # tables of three values tell the most where medians are asked for
    assert q != 0.5 or loss[0.7] > 1.0


@pytest.mark.parametrize("levels", [(0.5,), (0.2, 0.5, 0.9)])
def test_weights_of_one_leave_choices_as_they_are(levels):
    x = np.random.default_rng(1).uniform(0, 10, 60)
    plain = RankScores(0, levels, 0.0, 10.0)
    heavy = RankScores(0, levels, 0.0, 10.0, weighted=True)
    rows = np.column_stack([x, np.ones(60), np.zeros(60)])
    for seed in range(5):
        found, expected = (
            scores.choose(X, GumbelNoise(2.0), np.random.default_rng(seed))
            for scores, X in ((heavy, rows), (plain, x[:, None]))
        )
        np.testing.assert_array_equal(found, expected)


def test_an_attack_on_a_record_of_the_largest_weight():
    """The noise keeps the promise of a record and its weight; 0.7 of it does not."""
    accountant = PrivacyLoss(1.0, 1e-9, noise="laplace")
    model = ToldMean(None, accountant, bounds=(0, 1), weight_bounds=(0, 3))
    model.fit(np.full((20, 1), 0.5), sample_weight=np.full(20, 1.0))
    drawn = model.noise_.sample((200_000, 2), np.random.default_rng(0))
    rows = np.array([[1.0, 1.0, 0.0], [0.3, 0.0, 1.0]])
    shifts = model.told.contribution(rows) * model.told.factor
    units = model.told.unit_array

    def largest_odds(share, shift):
        # along the coordinate that moves
        at = int(np.argmax(np.abs(shift)))
        size = abs(shift[at]) * units[at]
        here, there = share * drawn[:, at] + size > size, share * drawn[:, at] > size
        return math.log(here.mean() / there.mean())

    for shift in shifts:
        assert largest_odds(1.0, shift) <= 1.0 + 0.05
        assert largest_odds(0.7, shift) > 1.2


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(1, 0), (-1, 1), (0, 0), (0, np.inf), (0, 1, 2)])
def test_bounds_of_weights_are_checked(bounds):
    model = PrivateMean(bounds=(0, 1), weight_bounds=bounds)
    with refused(ValueError, "weights.bounds_invalid"):
        model.fit(TABLE[["x"]], sample_weight=TIMES)


def test_weights_are_read_where_any_record_is_secret():
    prior = AttributeScenario("g", level="record", prior=BoundedOdds(4.0))
    model = PrivateMean(prior, bounds=(0, 10), weight_bounds=(0, 1))
    with refused(UnsupportedError, "weights.scenario_without"):
        model.fit(TABLE, sample_weight=TIMES)
    relabelled = RecordScenario(relation="relabel")
    model = PrivateMean(relabelled, bounds=(0, 10), weight_bounds=(0, 1))
    with refused(UnsupportedError, "weights.scenario_without"):
        model.fit(TABLE[["x"]], sample_weight=TIMES)


def test_weights_without_bounds_are_refused_with_the_remedy():
    with refused(TypeError, "weights.bounds_missing"):
        PrivateMean(bounds=(0, 10)).fit(TABLE[["x"]], sample_weight=TIMES)


def test_certificates_say_within_which_bounds_weights_lie():
    model = PrivateMean(bounds=(0, 10), weight_bounds=(0.5, 2))
    found = model.fit(TABLE[["x"]], sample_weight=TIMES).certificate_
    assert says(found.assumptions, "assume.weights_clipped", low=0.5, high=2.0)


# -- naive Bayes -----------------------------------------------------------------------


def test_weighted_classes_are_those_of_repeated_records():
    X, y, w = labelled(600, PrivateGaussianNB)
    parameters = {"accountant": EXACT, "bounds": (-2, 2), "classes": [0, 1]}
    model = PrivateGaussianNB(weight_bounds=(0, 2), **parameters)
    model.fit(X, y, sample_weight=w)
    times = np.repeat(np.arange(600), w.astype(int))
    other = PrivateGaussianNB(**parameters).fit(X[times], y[times])
    for name in ("class_count_", "theta_", "var_", "class_prior_"):
        found, expected = getattr(model, name), getattr(other, name)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("book", ["bounds", "schema"])
def test_weighted_cells_are_those_of_repeated_records(book):
    X, y, w = labelled(600, PrivateCategoricalNB)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    bounds = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}
    given = {"bounds": bounds} if book == "bounds" else {"schema": Schema(bounds)}
    parameters = {"accountant": EXACT, "n_bins": 6, "classes": [0, 1], **given}
    model = PrivateCategoricalNB(weight_bounds=(0, 2), **parameters)
    model.fit(table, y, sample_weight=w)
    times = np.repeat(np.arange(600), w.astype(int))
    other = PrivateCategoricalNB(**parameters).fit(table.iloc[times], y[times])
    np.testing.assert_allclose(model.class_count_, other.class_count_, rtol=1e-4)
    for found, expected in zip(
        model.feature_log_prob_, other.feature_log_prob_, strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    # a record is in a cell of each column, whatever its weight is
    found = model.certificate_
    assert found.sensitivity == pytest.approx(3 ** (1 / found.norm), rel=1e-3)


class ToldNB(_Told, PrivateGaussianNB):
    pass


@pytest.mark.parametrize("least", [0.0, 0.4])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_record_of_a_class_is_within_the_sensitivity(relation, least):
    ends = [-1.0, 0.5, 1.0]
    rows = np.array(list(itertools.product(ends, ends)))
    labels = np.arange(9) % 2
    model = ToldNB(
        RecordScenario(relation=relation),
        PrivacyLoss(1.0, 1e-5, noise="gaussian"),
        bounds=(-1, 1),
        classes=[0, 1],
        weight_bounds=(2 * least, 2),
    ).fit(rows, labels, sample_weight=np.ones(9))
    each, of_class = [], []
    for w, label in itertools.product([least, (1 + least) / 2, 1.0], [-1, 0, 1]):
        each.append(np.column_stack([rows, np.full(9, w), np.full(9, 1 - w)]))
        of_class.append(np.full(9, label))
    each, of_class = np.vstack(each), np.concatenate(of_class)
    release = model.told
    added = release.contribution(each, of_class)
    np.testing.assert_allclose(
        release.contribution.of_targets(each, of_class), added.sum(axis=0), atol=1e-12
    )
    alone, apart = moves(added, 2)
    stated = model.certificate_.sensitivity
    assert (alone if relation == "add_remove" else apart) <= stated * (1 + 1e-9)
    whole = release.contribution.block.sensitivity.value(relation, 2, None)
    assert stated == pytest.approx(whole, rel=1e-4)


# -- additive models -------------------------------------------------------------------

ADDITIVE = [
    (PrivateAdditiveClassifier, {"classes": [0, 1]}),
    (PrivateAdditiveRegressor, {"target_bounds": (-1, 1)}),
]


def shapes(model):
    """All that is learnt, as one vector."""
    functions = [f.scores.ravel() for f in model.shape_functions_.values()]
    return np.concatenate([*functions, np.atleast_1d(model.intercept_)])


@pytest.mark.parametrize("kind, parameters", ADDITIVE)
def test_weighted_shapes_are_those_of_repeated_records(kind, parameters):
    X, y, w = labelled(600, kind)
    # the basis is smoothed by the number of records, until there is no noise at all
    exact = {"accountant": PrivacyLoss(1e10, 1e-9), "n_rounds": 40, "n_bins": 6}
    parameters = parameters | exact | {"bounds": (-1, 1)}
    model = kind(weight_bounds=(0, 2), **parameters).fit(X, y, sample_weight=w)
    times = np.repeat(np.arange(600), w.astype(int))
    other = kind(**parameters).fit(X[times], y[times])
    for name, counts in other.histograms_.items():
        np.testing.assert_allclose(model.histograms_[name], counts, atol=1e-3)
    np.testing.assert_allclose(shapes(model), shapes(other), rtol=1e-3, atol=1e-3)
    # weights that are none are read as the least
    gaps = np.where(w == 0, np.nan, w)
    model.fit(X, y, sample_weight=gaps)
    np.testing.assert_allclose(shapes(model), shapes(other), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind, parameters", ADDITIVE)
def test_a_record_is_two_of_half_its_weight(kind, parameters):
    X, y, w = labelled(600, kind)
    common = {"accountant": EXACT, "n_rounds": 20, "n_bins": 6, "bounds": (-1, 1)}
    model = kind(weight_bounds=(0, 2), interactions="all", **common, **parameters)
    twice = np.repeat(np.arange(600), 2)
    halves = clone(model).fit(X[twice], y[twice], sample_weight=w[twice] / 2)
    model.fit(X, y, sample_weight=w)
    found, expected = model.predict(X), halves.predict(X)
    if kind is PrivateAdditiveClassifier:
        found, expected = (one.predict_proba(X)[:, 1] for one in (model, halves))
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("kind, parameters", ADDITIVE)
def test_noise_of_additive_models_is_that_of_records_of_the_largest_weight(
    kind, parameters, relation
):
    X, y, w = labelled(200, kind)
    accountant = PrivacyLoss(1.0)
    common = {"bounds": (-1, 1), "n_rounds": 3, **parameters}
    scenario = RecordScenario(relation=relation)
    model = kind(scenario, accountant, weight_bounds=(0.5, 2), **common)
    model.fit(X, y, sample_weight=w)
    plain = kind(scenario, accountant, **common).fit(X, y)
    assert model.noise_ == plain.noise_
    # counts are in the unit of the weights
    assert model.histogram_noise_ == 2 * plain.histogram_noise_
    told = {"low": 0.5, "high": 2.0}
    assert says(model.certificate_.assumptions, "assume.weights_clipped", **told)
    planned = model.preview(200, n_features=3)
    assert planned.noise == model.noise_
    assert planned.certificate.assumptions == model.certificate_.assumptions


@pytest.mark.parametrize("kind, parameters", ADDITIVE)
def test_weights_of_rows_of_units_in_additive_models(kind, parameters):
    """Rows are the records of it, and noise covers all that are kept of a unit."""
    X, y, w = labelled(300, kind)
    units, w = np.arange(300) // 3, w + 0.5
    common = {"accountant": EXACT, "bounds": (-1, 1), "n_rounds": 5, **parameters}
    model = kind(RecordScenario(max_rows=3), weight_bounds=(0, 4), **common)
    model.fit(X, y, groups=units, sample_weight=w)
    plain = kind(weight_bounds=(0, 4), **common).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=0.1)
    tight = clone(model).set_params(accountant=PrivacyLoss(1.0))
    other = clone(plain).set_params(accountant=PrivacyLoss(1.0))
    tight.fit(X, y, groups=units, sample_weight=w)
    other.fit(X, y, sample_weight=w)
    ratio = tight.histogram_noise_ / other.histogram_noise_
    assert ratio == pytest.approx(3, rel=1e-6)


# -- a minimiser with noise ------------------------------------------------------------


class ToldHuber(_Told, PrivateHuberRegressor):
    pass


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_weighted_minimisers_are_those_of_repeated_records(form):
    X, y, w = labelled(300, PrivateHuberRegressor)
    exact = {"accountant": EXACT, "target_bounds": (-1, 1), "alpha": 3.0}
    model = PrivateHuberRegressor(weight_bounds=(0, 2), tol=1e-6, **exact)
    model.fit(form(X), y, sample_weight=w)
    times = np.repeat(np.arange(300), w.astype(int))
    other = PrivateHuberRegressor(tol=1e-6, **exact).fit(form(X[times]), y[times])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-4)
    assert says(model.certificate_.assumptions, "assume.weights_clipped", high=2.0)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_weight_moves_a_minimiser_further(relation):
    """By brute force, over records at both ends and weights of any size."""
    X, y, w = labelled(30, PrivateHuberRegressor)
    model = ToldHuber(
        RecordScenario(relation=relation),
        PrivacyLoss(1.0),
        target_bounds=(-1, 1),
        alpha=0.5,
        sigma=0.05,
        tol=1e-6,
        fit_intercept=False,
        weight_bounds=(0, 2),
    ).fit(X, y, sample_weight=w)
    release, others = model.told, np.column_stack([w / 2, 1 - w / 2])[1:]

    def minimiser(row, target, weight):
        rows = np.vstack([[*row, weight, 1 - weight], np.hstack([X[1:], others])])
        return release.run(rows, np.append(target, y[1:]))

    ends = [*np.eye(3), *-np.eye(3)]
    found = np.array(
        [
            minimiser(row, target, weight)
            for row in ends
            for target in (-1.0, 1.0)
            for weight in (0.0, 0.5, 1.0)
        ]
    )
    # one without a weight is as if it was not there
    nothing = minimiser(ends[0], 0.0, 0.0)
    alone = np.linalg.norm(found - nothing, axis=1).max()
    apart = np.linalg.norm(found[:, np.newaxis] - found, axis=2).max()
    moved = alone if relation == "add_remove" else apart
    stated = model.certificate_.sensitivity
    assert 0.1 * stated < moved <= stated
    plain = clone(model).set_params(weight_bounds=None, alpha=0.25).fit(X, y)
    assert stated == pytest.approx(plain.certificate_.sensitivity)


# -- models trained by gradients -------------------------------------------------------

TRAINED = [
    (PrivateLogisticRegression, {"C": 0.01}),
    (PrivateSGDClassifier, {}),
    (PrivateRidge, {"target_bounds": (-1, 1), "solver": "gradient"}),
    (PrivateSGDRegressor, {"target_bounds": (-1, 1)}),
]


def labelled(n, kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) / 3
    y = X @ [1.0, -0.5, 0.2] + 0.2 * rng.normal(size=n)
    if issubclass(kind, ClassifierMixin):
        y = (y > 0).astype(int)
    return X, y, rng.choice([0.0, 1.0, 2.0], n)


@pytest.mark.parametrize("kind, parameters", TRAINED)
def test_weighted_losses_are_those_of_repeated_records(kind, parameters):
    X, y, w = labelled(400, kind)
    training = Training(n_steps=300, sampling="full_batch", clip_norm=10.0)
    if kind is not PrivateRidge:
        parameters = parameters | {"training": training}
    model = kind(accountant=EXACT, weight_bounds=(0, 2), **parameters)
    model.fit(X, y, sample_weight=w)
    # each row as often, in as many records: who weighs nothing has no loss
    half = kind(accountant=EXACT, weight_bounds=(0, 1), **parameters)
    twice = np.repeat(np.arange(400), 2)
    given = np.column_stack([w >= 1, w == 2]).ravel().astype(float)
    half.fit(X[twice], y[twice], sample_weight=given)
    # means over n and over 2 n records, whose penalty is as large
    np.testing.assert_allclose(model.coef_, half.coef_, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("units", [False, True])
def test_no_weight_moves_a_sum_of_gradients_further(units):
    X, y, w = labelled(40, PrivateLogisticRegression)
    rows = LinearGradients(Logistic(), X, y).weighted(w / 2)
    if units:
        rows = rows.of_units(np.arange(40) // 4)
    release = GradientRelease(
        n_records=rows.n_records, n_steps=1, sampling="full_batch", clip_norm=0.1
    )
    at = np.array([3.0, -2.0, 0.5, 0.1])
    each = [rows.clipped_sum(at, np.array([i]), release) for i in range(rows.n_records)]
    assert np.linalg.norm(each, axis=1).max() <= 0.1
    plain = LinearGradients(Logistic(), X, y)
    alone = np.array([plain.clipped_sum(at, np.array([i]), release) for i in range(40)])
    expected = alone * (w / 2)[:, np.newaxis]
    if units:
        expected = expected.reshape(10, 4, -1).mean(axis=1)
    np.testing.assert_allclose(each, expected, atol=1e-6)


@pytest.mark.parametrize("kind, parameters", [*TRAINED, (PrivateMLPClassifier, {})])
def test_noise_of_training_is_that_of_records_of_the_largest_weight(kind, parameters):
    X, y, w = labelled(200, kind)
    if kind is not PrivateRidge:
        training = Training(n_steps=5, sampling="full_batch")
        parameters = parameters | {"training": training}
    accountant = PrivacyLoss(1.0)
    model = kind(accountant=accountant, weight_bounds=(0, 2), **parameters)
    model.fit(X, y, sample_weight=w)
    plain = kind(accountant=accountant, **parameters).fit(X, y)
    found, held = model.release_, plain.release_
    assert found.n_steps == held.n_steps
    assert model.noise_.std(held.dim) == pytest.approx(plain.noise_.std(held.dim))
    assert says(model.certificate_.assumptions, "assume.weights_clipped", high=2.0)


def test_weights_of_rows_within_units_in_training():
    X, y, w = labelled(200, PrivateLogisticRegression)
    scenario, units = RecordScenario(max_rows=9), np.arange(200) // 4
    training = Training(n_steps=20, sampling="full_batch", clip_norm=1.0)
    common = {"accountant": EXACT, "training": training, "random_state": 0}
    model = PrivateLogisticRegression(scenario, weight_bounds=(0, 2), C=1.0, **common)
    model.fit(X, y, groups=units, sample_weight=w)
    assert model.release_.n_records == 50
    # twice the largest weight is clipped to it
    equal = PrivateLogisticRegression(scenario, weight_bounds=(0, 2), C=0.5, **common)
    equal.fit(X, y, groups=units, sample_weight=np.full(200, 4.0))
    plain = PrivateLogisticRegression(scenario, C=1.0, **common)
    plain.fit(X, y, groups=units)
    np.testing.assert_allclose(equal.coef_, plain.coef_, atol=1e-4)
    assert np.abs(model.coef_ - plain.coef_).max() > 1e-3


@pytest.mark.parametrize(
    "parameters", [{"weight_bounds": (0, 2)}, {"weight": "unit"}], ids=str
)
def test_groups_that_nobody_listed_have_no_weights(parameters):
    scenario = RecordScenario(max_rows=2)
    model = PrivateSummary(
        scenario, statistics=["mean"], by="g", bounds=BOUNDS, **parameters
    )
    with refused(UnsupportedError, "weights.groups_unlisted"):
        model.fit(TABLE, groups=UNITS)


def test_solvers_that_weigh_records_alike_refuse_weights():
    X, y, w = labelled(100, PrivateLogisticRegression)
    for model in (
        PrivateLogisticRegression(solver="output", weight_bounds=(0, 2)),
        PrivateRidge(solver="moments", target_bounds=(0, 1), weight_bounds=(0, 2)),
    ):
        with refused(UnsupportedError, "weights.release_without"):
            model.fit(X, y, sample_weight=w)


def test_pipelines_and_searches_refuse_weights_by_name():
    X, y, w = labelled(100, PrivateLogisticRegression)
    model = PrivateLogisticRegression(weight_bounds=(0, 2))
    whole = PrivatePipeline([("model", model)], accountant=PrivacyLoss(1.0))
    search = PrivateGridSearchCV(model, {"C": [0.1, 1]}, accountant=PrivacyLoss(1.0))
    for one, why in (
        (whole, "pipeline.weights_refused"),
        (search, "search.weights_refused"),
    ):
        asked = {"name": "sample_weight", "why": Statement(why)}
        with refused(TypeError, "parameter.fit_argument_unexpected", **asked):
            one.fit(X, y, sample_weight=w)
