"""What fitting says and refuses, whatever the estimator."""

import inspect
import math
import subprocess
import sys
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skpuffer import base
from skpuffer._template import _reading
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.additive import PrivateAdditiveRegressor
from skpuffer.base import FLOATING_POINT, _cells_as_cells
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import (
    OutputPerturbation,
    PublicPreprocessing,
    make_private_pipeline,
)
from skpuffer.compose._feature_map import FeatureMap
from skpuffer.ensemble import PATEAggregator
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    NoGainWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    ScenarioError,
    SeededNoiseWarning,
    Statement,
    WeakPromiseWarning,
    stated,
)
from skpuffer.kernel.run import (
    CHOSEN_ON_GRID,
    ON_GRID,
    ROUNDED_SUMS,
    SUMS_ON_GRID,
    noise_grid,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import LaplaceNoise
from skpuffer.preprocessing import (
    PublicBinner,
    PublicImputer,
    PublicMinMaxScaler,
    PublicOneHotEncoder,
    RowNormClipper,
)
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.scenarios._base import _BoundRecord
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateMean
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.testing import all_estimators
from skpuffer.testing._estimator_checks import _arguments
from skpuffer.training import Training
from tests.refused import refused, says

PUBLIC = (
    PublicBinner,
    PublicImputer,
    PublicMinMaxScaler,
    PublicOneHotEncoder,
    RowNormClipper,
)
PRIVATE = [e.instance for e in all_estimators() if not isinstance(e.instance, PUBLIC)]

X = np.random.default_rng(0).uniform(-1, 1, size=(40, 3))
y = (X[:, 0] > 0).astype(int)
#: Next to none: what is released is what was computed.
NO_NOISE = GroupPrivacy(1e12, alpha=math.inf, noise="laplace")


#: Those that read cells have one for missing values, or a public number.
READING = [e for e in PRIVATE if get_tags(e).input_tags.allow_nan]
REFUSING = [e for e in PRIVATE if e not in READING]


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("estimator", REFUSING, ids=lambda e: type(e).__name__)
def test_missing_values_are_not_to_be_imputed_from_private_rows(estimator):
    holed = X.copy()
    holed[3, 1] = np.nan
    # a switch of scikit-learn must not let one record make the release NaN
    for assume_finite in (False, True):
        with (
            config_context(assume_finite=assume_finite),
            refused(
                ValueError,
                (
                    "preprocessing.rows_not_finite",
                    "summary.column_missing_values",
                    "table.not_finite",
                ),
            ) as error,
        ):
            clone(estimator).fit(holed, y)
    assert "imputer transformer in a pipeline" not in str(error.value)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("estimator", READING, ids=lambda e: type(e).__name__)
def test_missing_values_are_read_as_the_code_book_says(estimator):
    holed = X.copy()
    holed[3, 1] = np.nan
    assert clone(estimator).fit(holed, y).certificate_.certified


def test_the_remedy_for_missing_values_is_public():
    holed = X.copy()
    holed[3, 1] = np.inf
    for model in (PrivateLogisticRegression(), PrivateMean(bounds=(-1, 1))):
        with refused(ValueError, "table.not_finite"):
            model.fit(holed, y)
    fitted = PrivateLogisticRegression().fit(X, y)
    with refused(ValueError, "table.not_finite"):
        fitted.predict(holed)
    holed[3, 1] = np.nan
    imputed = PublicPreprocessing(
        SimpleImputer(), PrivateLogisticRegression(), reference=X[:10]
    )
    assert imputed.fit(holed, y).certificate_.certified


@pytest.mark.parametrize("estimator", PRIVATE, ids=lambda e: type(e).__name__)
def test_weights_are_refused_with_the_reason(estimator):
    # scikit-learn's ensembles give weights to whatever has the parameter
    assert not has_fit_parameter(estimator, "sample_weight")
    if "weight_bounds" in estimator.get_params():
        bounded = clone(estimator).set_params(weight_bounds=(0, 1))
        assert has_fit_parameter(bounded, "sample_weight")
    fresh = clone(estimator)
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=rf"{name}.fit\(\).*sample_weight"):
        fresh.fit(X, y, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match=rf"{name}.fit\(\).*'weights'"):
        fresh.fit(X, y, weights=np.ones(len(X)))


def test_ensembles_understand_the_refusal():
    vote = VotingClassifier([("a", PrivateLogisticRegression())])
    with pytest.raises(TypeError, match="does not support sample weights"):
        vote.fit(X, y, sample_weight=np.ones(len(X)))


def test_what_is_drawn_is_added(monkeypatch):
    noise = np.array([10.0, 0.0, -20.0])
    monkeypatch.setattr(LaplaceNoise, "sample", lambda self, shape, rng: noise)
    accountant = GroupPrivacy(alpha=math.inf, noise="laplace")
    model = PrivateMean(accountant=accountant, bounds=(-1, 1), random_state=0).fit(X)
    assert model.mean_ == pytest.approx(X.mean(axis=0) + noise)


#: What is said of last digits that noise covers.
DIGITS = (CHOSEN_ON_GRID, ON_GRID, SUMS_ON_GRID, ROUNDED_SUMS)


def of_grid(certificate):
    return [said for said in certificate.assumptions if said in DIGITS]


@pytest.mark.parametrize("kind", [PrivateMean, PrivateLogisticRegression])
def test_what_is_released_without_a_seed_is_on_a_grid(kind):
    """Certificates say so, and of a seed that nothing is known of the last digits."""
    options = {"bounds": (-1, 1)} if kind is PrivateMean else {"data_norm": 2.0}
    exact = kind(**options).fit(X, y)
    on = ON_GRID if kind is PrivateMean else SUMS_ON_GRID
    assert of_grid(exact.certificate_) == [on, ROUNDED_SUMS]
    assert FLOATING_POINT not in exact.certificate_.assumptions
    seeded = kind(**options, random_state=0).fit(X, y)
    assert not of_grid(seeded.certificate_)
    assert FLOATING_POINT in seeded.certificate_.assumptions
    # the room for the grid is next to nothing
    ratio = np.divide(exact.noise_.scale, seeded.noise_.scale)
    assert np.all((ratio >= 1) & (ratio < 1 + 1e-6))


def test_noise_that_has_no_exact_draws_says_so():
    noise = PrivacyLoss(noise="generalized_gaussian", beta=1.5)
    model = PrivateMean(accountant=noise, bounds=(-1, 1)).fit(X)
    assert FLOATING_POINT in model.certificate_.assumptions


def test_means_are_multiples_of_a_public_power_of_two():
    """Released around public centres, here zero."""
    fits = [PrivateMean(bounds=(-1, 1)).fit(X) for _ in range(20)]
    grid = noise_grid(fits[0].noise_, len(X))
    released = np.array([model.mean_ for model in fits])
    np.testing.assert_array_equal(np.rint(released / grid) * grid, released)
    assert len(np.unique(released)) == released.size


def test_sums_in_turn_are_on_a_grid_that_their_noise_pays_for():
    """In units of the stages, of which the noise is as well."""
    model = PrivateKMeans(2, bounds=(-1, 1)).fit(X)
    assert of_grid(model.certificate_) == [ON_GRID, ROUNDED_SUMS]
    seeded = PrivateKMeans(2, bounds=(-1, 1), random_state=0).fit(X)
    assert FLOATING_POINT in seeded.certificate_.assumptions
    assert 1 < model.noise_.scale / seeded.noise_.scale < 1 + 1e-6


def test_votes_are_counted_on_a_grid():
    """Which integers are on already, so that nothing is paid for."""
    options = {"n_teachers": 20, "n_classes": 2, "n_queries": 3}
    exact = PATEAggregator(**options).calibrate()
    assert of_grid(exact.certificate_) == [ON_GRID]
    seeded = PATEAggregator(**options, random_state=0).calibrate()
    assert FLOATING_POINT in seeded.certificate_.assumptions
    assert exact.noise_ == seeded.noise_


def test_targets_are_assumed_of_where_a_scenario_speaks_of_rows_alone():
    states = np.arange(20)[:, None] % 2
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    said = [
        says(fitted.certificate_.assumptions, "assume.targets_not_stated")
        for fitted in (
            PrivateMean(chain, GroupPrivacy(), bounds=(0, 1)).fit(states),
            PrivateLogisticRegression(chain, GroupPrivacy()).fit(states, states[:, 0]),
            PrivateLogisticRegression(RecordScenario(), GroupPrivacy()).fit(X, y),
        )
    ]
    assert said == [False, True, False]


def test_only_cells_are_made_cells_again():
    """Other numbers of a scenario's states stay in the type that they were given."""
    states = np.array([[0.0], [3.0]])
    for given in (np.array([[0], [3]]), pd.DataFrame({"a": [0.0, 3.0]})):
        assert _cells_as_cells(states, given) is states
    cells = _cells_as_cells(states, np.array([[0], [3]], dtype=np.uint8))
    assert cells.dtype == np.uint8


@pytest.mark.parametrize("with_schema", [False, True])
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_cells_of_listed_states_are_counted(with_schema):
    """What a scenario lists is read by the same map as the private rows, as cells."""
    states = np.random.default_rng(0).integers(0, 2, 100)
    # the whole series may differ with the secret, so that a promise is a loose one
    chain = MarkovChainScenario([[0.6, 0.4], [0.4, 0.6]])
    rows, common = pd.DataFrame({"s": 1.0 * states}), (chain, PrivacyLoss(1e5, 1e-5))
    options = {"bounds": {"s": (0, 1)}, "n_bins": 4, "random_state": 0}
    if with_schema:
        options.pop("bounds")
        options["schema"] = Schema({"s": Number(0, 1, missing=False)})
    additive = PrivateAdditiveRegressor(*common, target_bounds=(0, 1), **options)
    synthesizer = PrivateTableSynthesizer(*common, **options).fit(rows)
    exact = np.bincount(states)
    for counts in (
        additive.fit(rows, states).histograms_["s"],
        synthesizer.marginal("s").to_numpy(),
    ):
        np.testing.assert_allclose(counts, [exact[0], 0, 0, exact[1]], atol=10)


@pytest.mark.parametrize("as_preview", [False, True])
def test_groups_are_one_for_each_record_and_not_shared_where_records_are_single(
    as_preview,
):
    def call(scenario, groups):
        pure = GroupPrivacy(1.0, alpha=math.inf, noise="laplace")
        model = PrivateMean(scenario, pure, bounds=(-1, 1))
        if as_preview:
            return model.preview(40, n_features=3, groups=groups).noise
        return model.fit(X, groups=groups).noise_

    pairs = np.repeat(np.arange(20), 2)
    for single in (None, RecordScenario(k=2)):
        with refused(ValueError, "scenario.group_ids_repeat"):
            call(single, pairs)
        assert call(single, np.arange(40)) == call(single, None)
    blocks = BlocksScenario(RecordScenario(k=2))
    for groups in (pairs[:-1], np.append(pairs, 20)):
        with pytest.raises(ValueError, match=str(len(groups))):
            call(blocks, groups)
    # a secret is that of one block, by whatever name
    assert (
        call(blocks, pairs)
        == call(RecordScenario(k=2), None)
        == call(blocks, 7 - pairs)
    )


def test_a_secret_of_another_length_is_refused():
    scenario = AttributeScenario("s", level="record", prior="empirical")
    model = PrivateMean(scenario, GeneralWasserstein(), bounds=(-1, 1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, secret=y[:-1])


@pytest.mark.parametrize("apart", [False, True])
def test_a_secret_that_no_prior_speaks_of_is_refused(apart, monkeypatch):
    """As a column or given apart, before anything is computed; and is not quoted."""

    def refuse(*_):
        raise AssertionError("something was computed of the rows")

    monkeypatch.setattr(PrivateMean, "_execute", refuse)
    scenario = moved(0.0, 1.0)
    table = FRAME.assign(secret=np.tile([0, 4711], 20))
    model = PrivateMean(scenario, GeneralWasserstein(), bounds=(0, 1))
    given = {"X": FRAME, "secret": table["secret"]} if apart else {"X": table}
    with refused(ScenarioError, "attribute.values_not_in_prior") as caught:
        model.fit(**given)
    assert "4711" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_an_empirical_prior_is_of_the_records_that_count():
    """Whether the secret is a column or given apart."""
    table = pd.DataFrame({"a": X[:, 0] / 2, "s": np.arange(40) % 2})
    table["a"] += 0.4 * table["s"] * y
    labels = y.astype(object)
    counts = np.ones(40, dtype=bool)
    counts[[3, 10, 20, 25]] = False
    labels[[3, 10, 20]], labels[25] = None, 7
    # far away, were it to count
    table.loc[~counts, "a"] = np.tile([-1.0, 1.0], 2)
    scenario = AttributeScenario("s", level="record", prior="empirical")
    model = PrivateLogisticRegression(
        scenario, GeneralWasserstein(), solver="output", classes=[0, 1]
    )
    found = [
        clone(model).fit(rows, labels, secret=secret).certificate_.sensitivity
        for rows, secret in (
            (table, None),
            (table[["a"]], table["s"]),
            (table[["a"]].to_numpy(), table["s"].to_numpy()),
        )
    ]
    known = table.assign(t=y)[counts]
    law = AttributeScenario(
        "s", level="record", prior=known, prior_as="law", target="t"
    )
    model.set_params(scenario=law)
    public = model.fit(table, labels).certificate_.sensitivity
    assert found == pytest.approx([public] * 3)


def line():
    """Number of the line it is called on."""
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.parametrize(
    "model",
    [
        PrivateMean(bounds=(-1, 1), random_state=0),
        PrivateLogisticRegression(random_state=0),
        PublicPreprocessing(
            FunctionTransformer(), PrivateLogisticRegression(random_state=0)
        ),
        make_pipeline(RowNormClipper(), PrivateLogisticRegression(random_state=0)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_warnings_point_at_the_call(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = line() + 1
        model.fit(X, y)
    assert [(w.category, w.filename, w.lineno) for w in caught] == [
        (SeededNoiseWarning, __file__, expected)
    ]


def test_warnings_of_a_search_and_of_votes_point_at_the_call():
    model = PrivateLogisticRegression(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = line() + 1
        cross_val_score(model, X, y, cv=2)
        PATEAggregator(random_state=0).calibrate()
    caught = [w for w in caught if issubclass(w.category, PrivacyWarning)]
    assert {w.filename for w in caught} == {__file__}
    assert [w.lineno for w in caught] == [expected, expected, expected + 1]


def moved(low, high):
    """A secret that moves a number from one value to another."""
    prior = pd.DataFrame({"secret": [0, 1], "x": [low, high]})
    return AttributeScenario("secret", level="record", prior=prior, prior_as="law")


SIMULATED = SimulatorScenario(
    lambda secret, rng: rng.normal(secret, size=(40, 3)), secrets=[0.0, 0.5], n_draws=20
)
FRAME = pd.DataFrame({"x": np.full(40, 0.45)})


@pytest.mark.parametrize(
    "model, table, warned",
    [
        (PrivateMean(bounds=(-1, 1), random_state=0), X, SeededNoiseWarning),
        (PrivateMean(bounds="empirical"), X, PrivacyLeakWarning),
        (PrivateMean(moved(0.4, 0.4), bounds=(0, 1)), FRAME, PrivacyWarning),
        (PrivateMean(moved(0.0, 1.0), bounds=(0, 1)), FRAME, NoGainWarning),
        (PrivateMean(SIMULATED, GeneralWasserstein()), X, EstimatedGuaranteeWarning),
        (
            PrivateMean(bounds=(-1, 1), accountant=PrivacyLoss(11.0)),
            X,
            WeakPromiseWarning,
        ),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
@pytest.mark.parametrize("how", [lambda m: m, lambda m: make_private_pipeline(m)])
def test_a_warning_that_is_an_error_stops_a_fit_before_a_ledger_hears(
    model, table, warned, how, monkeypatch
):
    def refuse(*_):
        raise AssertionError("something was computed of the rows")

    monkeypatch.setattr(PrivateMean, "_execute", refuse)
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    model = how(clone(model))
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", warned)
        with pytest.raises(warned):
            model.fit(table)
    assert len(ledger.report()) == 0
    assert not hasattr(model, "certificate_")


class Told(OutputPerturbation):
    """Notes what its hooks are told."""

    def _release(self, task):
        type(self).task = task
        return super()._release(task)


TWO = np.column_stack([X[:, 0], X[:, 1] ** 2])
BLOCKS = np.repeat(np.arange(20), 2)


@pytest.mark.parametrize(
    "model, fit, context",
    [
        (
            Told(LinearRegression(), sensitivity=0.1),
            {"X": X, "y": TWO},
            {"n_features": 3, "has_target": True, "n_targets": 2},
        ),
        (
            Told(LinearRegression(), sensitivity=0.1),
            {
                "X": pd.DataFrame(X, columns=list("abc")),
                "y": pd.Series(X[:, 0], name="t"),
            },
            {
                "n_features": 3,
                "feature_names": ("a", "b", "c"),
                "has_target": True,
                "target_name": "t",
            },
        ),
        (
            Told(LogisticRegression(), sensitivity=0.1),
            {"X": X, "y": np.array(["no", "yes"])[y]},
            {"n_features": 3, "has_target": True, "classes": ("no", "yes")},
        ),
        (
            Told(
                KMeans(2),
                "cluster_centers_",
                BlocksScenario(RecordScenario(k=40)),
                sensitivity=0.1,
            ),
            {"X": X, "groups": BLOCKS},
            {"n_features": 3, "groups": tuple(BLOCKS.tolist())},
        ),
        (
            Told(
                KMeans(2),
                "cluster_centers_",
                AttributeScenario("s", level="record", prior=BoundedOdds(2.0)),
                sensitivity=0.1,
            ),
            {"X": pd.DataFrame(X, columns=["a", "s", "b"])},
            # the secret is no feature
            {"n_features": 2, "feature_names": ("a", "b")},
        ),
    ],
    ids=["targets", "names", "labels", "groups", "secret"],
)
def test_hooks_and_scenarios_are_told_public_facts_and_nothing_else(
    model, fit, context
):
    model.fit(**fit)
    told = Told.task.context
    expected = PublicContext(n_records=40, **context)
    for fact in fields(PublicContext):
        found = getattr(told, fact.name)
        assert found == getattr(expected, fact.name), fact.name
    assert Told.task.start is None and Told.task.start_assumption is None


def test_a_fit_that_fails_leaves_no_state_of_an_earlier_one():
    """Nor what a warm start would begin at, which is no attribute of a fit."""
    model = PrivateLogisticRegression(
        training=Training(warm_start=True), classes=[0, 1], max_iter=3, random_state=0
    )
    fresh = set(vars(model))
    model.fit(X, y)
    assert {"_released", "certificate_", "coef_"} <= set(vars(model)) - fresh
    holed = X.copy()
    holed[3, 1] = np.nan
    with refused(ValueError, "table.not_finite"):
        model.fit(holed, y)
    assert set(vars(model)) == fresh
    # and where it fails before it begins
    model.fit(X, y)
    with pytest.raises(ValueError, match="'C'"):
        model.set_params(C=-1.0).fit(X, y)
    assert set(vars(model)) == fresh
    model.set_params(C=1.0)
    # what somebody noted on it is theirs
    model.note = "mine"
    assert model.fit(X, y).note == "mine"


def test_every_leak_of_a_fit_is_told_and_voids_the_promise():
    """Of a parameter, of a prior and of preprocessing, each beside the others."""
    rows = np.random.default_rng(1).normal(size=(60, 2))
    table = pd.DataFrame(rows, columns=["a", "b"]).assign(s=np.arange(60) % 2)
    prior = AttributeScenario("s", level="record", prior=table, prior_as="law")
    leaks = {
        "the bounds were read from the private data": {"bounds": "empirical"},
        "the prior holds the private records": {"scenario": prior},
        "the reference table holds the private records": {},
    }
    for without in (None, *leaks):
        given = {"bounds": (-9, 9)}
        for said, options in leaks.items():
            given |= options if said != without else {}
        inner = PrivateMean(given.get("scenario"), bounds=given["bounds"])
        public = table[["a", "b"]]
        if without == "the reference table holds the private records":
            public = public + 1.0
        model = PublicPreprocessing(StandardScaler(), inner, reference=public)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(table if "scenario" in given else table[["a", "b"]])
        texts = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
        told = {said for said in leaks if any(said in text for text in texts)}
        assert told == {*leaks} - {without}
        assert len(texts) == len(told)
        assert not model.certificate_.certified


def test_callbacks_are_told_the_certificate_of_what_is_released():
    heard = []

    class Listener:
        def setup(self, estimator, context): ...

        teardown = setup

        def on_fit_task_begin(self, estimator, context, *, metadata=None, **_):
            heard.append(("begin", context.task_name, type(estimator), metadata))

        def on_fit_task_end(self, estimator, context, *, metadata=None, **_):
            heard.append(("end", context.task_name, type(estimator), metadata))

    model = PrivateMean(bounds=(-1, 1)).set_callbacks(Listener()).fit(X)
    promised = {"certificate": model.certificate_}
    assert [(when, of) for when, name, of, told in heard] == [
        (when, PrivateMean) for when in ("begin", "begin", "end", "end")
    ]
    assert [name for _, name, _, _ in heard][1:3] == ["release", "release"]
    assert [told for *_, told in heard] == [None, promised, promised, promised]


SECRET = np.arange(len(X)) % 2


class OtherRecord(RecordScenario):
    """A scenario of somebody else, which may have public rows."""


class Watched(PrivateMean):
    """A mean that says where its template stands; what it tells, tests decide."""

    said = ()

    def _leaks(self):
        return self.said


def test_rows_are_looked_at_and_each_leak_is_said(monkeypatch):
    """By the scenario: what it rules out, and what its parameters and maps tell."""
    seen = []
    listed = X[:, :2] / 2

    def check_rows(self, rows):
        seen.append(("rows", rows))
        return listed

    def check_table(self, rows, y):
        seen.append(("table", rows, y))

    def check_secrets(self, secret):
        seen.append(("secrets", secret))

    def prior_leaks(*table):
        seen.append(("leaks", *table))
        return ("of the scenario",)

    for look in (check_rows, check_table, check_secrets):
        monkeypatch.setattr(_BoundRecord, look.__name__, look)
    monkeypatch.setattr(_reading, "prior_leaks", prior_leaks)
    monkeypatch.setattr(Watched, "said", ("of the parameter",))
    features = FeatureMap(
        FunctionTransformer(), None, "mapped by hand", leaks=("of the map",)
    )
    model = Watched(OtherRecord(), NO_NOISE, bounds=(-1, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model._fit_private(X[:, :2], None, SECRET, None, feature_map=features)
    told = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
    assert len(told) == 3
    for part in ("parameter", "scenario", "map"):
        assert any(f"of the {part}" in text for text in told)
    assert not model.certificate_.certified
    assert stated("mapped by hand") in model.certificate_.assumptions
    assert [of for of, *_ in seen] == ["rows", "table", "secrets", "leaks"]
    np.testing.assert_array_equal(seen[0][1], X[:, :2])
    assert seen[1][1] is listed and seen[1][2] is None
    np.testing.assert_array_equal(seen[2][1], SECRET)
    # raw rows, as they came
    np.testing.assert_array_equal(seen[3][2], X[:, :2])
    # and what it lists is what is released of
    assert model.mean_ == pytest.approx(listed.mean(axis=0), abs=1e-6)


UNNOISED = Statement(
    "pipeline.unnoised_step_before",
    step="scaler",
    reason=Statement("plain.text", text="sees all rows"),
)


def test_steps_without_noise_before_an_estimator_void_its_promise(monkeypatch):
    """Besides whatever its own parameters take from the rows."""
    monkeypatch.setattr(base, "unnoised_steps", lambda: (UNNOISED,))
    monkeypatch.setattr(Watched, "said", ("of a parameter",))
    model = Watched(accountant=NO_NOISE, bounds=(-1, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    told = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
    assert told == [
        "Watched: of a parameter.",
        f"Watched: {UNNOISED}.",
    ]
    assert not model.certificate_.certified


@pytest.mark.parametrize("stage", ["check_rows", "check_table"])
def test_what_a_scenario_rules_out_is_refused_before_anything_is_calibrated(
    stage, monkeypatch
):
    def refuse(self, *_):
        raise ScenarioError("no such records")

    monkeypatch.setattr(_BoundRecord, stage, refuse)
    monkeypatch.setattr(GroupPrivacy, "calibrate", None)
    with pytest.raises(ScenarioError, match="no such records"):
        PrivateMean(accountant=NO_NOISE, bounds=(-1, 1)).fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("before", [True, False])
def test_what_is_not_finite_is_not_published(bad, before, monkeypatch):
    """Before noise is drawn it is no release at all; behind it the budget is spent."""
    drawn = []
    if before:
        monkeypatch.setattr(
            QueryRelease, "run", lambda self, X, y: np.array([0.0, bad, 0.0])
        )
        monkeypatch.setattr(
            "skpuffer.kernel.run.add_noise", lambda *_, **__: drawn.append(1)
        )
    else:
        monkeypatch.setattr(
            Watched, "_execute", lambda *_: np.array([0.0, bad, 0.0]), raising=False
        )
    model = Watched(accountant=NO_NOISE, bounds=(-1, 1))
    said = "release.value_not_finite" if before else "release.result_not_finite"
    with refused(ValueError, said):
        model.fit(X)
    assert not drawn and not hasattr(model, "mean_")


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_what_a_scenario_draws_of_a_pool_is_what_is_released_of(monkeypatch):
    """By a generator that is not that of the noise."""
    told = []

    def realise(self, rows, y, rng):
        told.append((rows, y, rng))
        return rows[:20] / 2, y

    monkeypatch.setattr(_BoundRecord, "realises", True)
    monkeypatch.setattr(_BoundRecord, "realise", realise, raising=False)
    generator = np.random.default_rng(0)
    model = PrivateMean(accountant=NO_NOISE, bounds=(-1, 1), random_state=generator)
    model.fit(X)
    # the number of records, by which sums are divided, is that of the table
    assert model.mean_ == pytest.approx(X[:20].sum(axis=0) / 2 / 40, abs=1e-6)
    ((rows, y, rng),) = told
    np.testing.assert_array_equal(rows, X)
    assert y is None and rng is not generator


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_each_fit_draws_its_own_subset_of_a_pool(monkeypatch):
    """From the system's entropy, or from the seed of the fit."""
    told = []

    def realise(self, rows, y, rng):
        told.append(rng.random())
        return rows, y

    monkeypatch.setattr(_BoundRecord, "realises", True)
    monkeypatch.setattr(_BoundRecord, "realise", realise, raising=False)
    for seed in (None, None, 0, 1, 1):
        model = PrivateMean(accountant=NO_NOISE, bounds=(-1, 1), random_state=seed)
        model.fit(X)
    assert len(set(told)) == 4 and told[-1] == told[-2]


@pytest.mark.parametrize("name", ["scenario", "accountant"])
def test_parameters_are_of_their_kind_and_checked_whatever_the_switches(name):
    """And before any table is looked at."""
    bad, said = {
        "scenario": (RecordScenario(relation="other"), "'relation'"),
        "accountant": (PrivacyLoss(epsilon=-1.0), "'epsilon'"),
    }[name]
    kinds = (bad, ValueError, said), (object(), TypeError, f"'{name}' must be")
    for held, kind, match in kinds:
        model = PrivateMean(bounds=(-1, 1), **{name: held})
        with (
            config_context(skip_parameter_validation=True),
            pytest.raises(kind, match=match),
        ):
            model.fit("no table")
    own = PrivacyLoss()
    fitted = PrivateMean(bounds=(-1, 1), accountant=own).fit(X)
    own.set_params(epsilon=9.0)
    assert fitted.accountant_.epsilon == 1.0


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_who_approves_of_a_release_is_told_first_and_may_stop_it(monkeypatch):
    """Before a warning, a ledger or a draw."""
    told = []

    def approve(plan):
        told.append(plan)
        raise KeyError("not as planned")

    def refuse(*_):
        raise AssertionError("something was computed of the rows")

    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    model = PrivateMean(bounds=(-1, 1), random_state=0)
    promised = model.fit(X).certificate_
    monkeypatch.setattr(PrivateMean, "_execute", refuse)
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("error")
        with pytest.raises(KeyError, match="not as planned"):
            model._fit_private(X, None, None, None, approve=approve)
    assert len(ledger.report()) == 0 and not hasattr(model, "certificate_")
    (plan,) = told
    assert plan.certificate == plan.whole == promised


STEPS = StandardScaler(), PrivateLogisticRegression()


def test_steps_are_drawn_one_after_the_other():
    model = PublicPreprocessing(*STEPS)
    for shown in (model, clone(model).set_params(reference=X / 2).fit(X, y)):
        _, html = shown._repr_html_().split("</style>", 1)
        assert "sk-parallel-item" not in html
        steps = [html.index(f"<div>{type(step).__name__}</div>") for step in STEPS]
        assert steps == sorted(steps)


def test_looking_for_estimators_imports_them_only_when_asked():
    code = "import sys, skpuffer.utils; print('sklearn.linear_model' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "estimator",
    [e for e in PRIVATE if hasattr(e, "_publish")],
    ids=lambda e: type(e).__name__,
)
def test_nothing_waits_on_the_estimator_between_hooks(estimator):
    kind, left = type(estimator), set()

    def watched(name):
        hook = getattr(kind, name)

        def call(self, *given):
            before = set(vars(self))
            found = hook(self, *given)
            left.update((name, new) for new in set(vars(self)) - before)
            return found

        return call

    hooks = {name: watched(name) for name in ("_validate", "_release", "_execute")}
    model = type(kind.__name__, (kind,), hooks)(**clone(estimator).get_params(False))
    model.fit(*_arguments(estimator, seed=0))
    # what validation learns of a table is public, and stays
    public = {("_validate", new) for _, new in left if not new.startswith("_")}
    assert left <= public
    assert left >= {("_validate", "n_features_in_")}
