"""Every estimator with a code book reads raw tables by it, in fit and afterwards."""

import inspect
import pickle
from decimal import Decimal
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skpuffer.accountants import GroupPrivacy, OverlapAmplification
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import ScenarioError
from skpuffer.inspection._utility import baselines_of
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
)
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.preprocessing import PublicBinner
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BoundedOdds,
    DeclaredOdds,
)
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import (
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import NUMBER, TEXT, listen, reachable, sings
from skpuffer.training import Training
from tests.refused import refused, says

COLUMNS = {
    "age": Number(17, 90, integer=True, missing_level=True),
    "sex": ["F", "M"],
    "gain": Number(0, 1e5, amount=True, missing=["?"]),
    "race": ["A", "B"],
}
CLASSES = Schema({**COLUMNS, "y": ["no", "yes"]}, target="y")
NUMBERS = Schema({**COLUMNS, "t": (-2, 2)}, target="t")

ENTRIES = [
    entry
    for entry in all_estimators()
    if "schema" in inspect.signature(entry.estimator_class).parameters
    and issubclass(entry.estimator_class, PrivateEstimatorMixin)
]
every = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)

N = 60


def table(n=N, seed=0):
    """Texts and gaps, values outside of the code book, and a column it lacks."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "gain": rng.exponential(1e4, n).astype(object),
            "other": TEXT,
            "age": rng.integers(10, 99, n).astype(object),
            "race": rng.choice(["A", "B"], n),
            "sex": rng.choice(["F", "M", "X", None], n),
        }
    )
    frame.loc[3, ["age", "gain", "sex"]] = TEXT
    frame.loc[5, ["age", "gain"]] = [None, "?"]
    return frame


def labels(n=N):
    found = np.random.default_rng(1).choice(["no", "yes", None, "maybe"], n)
    found[7] = TEXT
    return pd.Series(found, name="y")


def targets(n=N):
    found = np.random.default_rng(1).normal(size=n).astype(object)
    found[7], found[8], found[9] = TEXT, None, 1e9
    return pd.Series(found, name="t")


def model_of(entry, **parameters):
    """Return the estimator with nothing but a code book, and its target."""
    model = clone(entry.instance)
    own = {"bounds": None, "target_bounds": None, "random_state": 0}
    known = model.get_params(deep=False)
    model.set_params(**{k: v for k, v in own.items() if k in known})
    if is_regressor(model):
        return model.set_params(schema=NUMBERS, **parameters), targets()
    if not is_classifier(model):
        # a target is a column of a table like any other where nothing is predicted
        return model.set_params(schema=Schema(COLUMNS), **parameters), None
    return model.set_params(schema=CLASSES, **parameters), labels()


def answers(model, X):
    """What is asked of a fitted model, whatever it can be asked."""
    for name in ("predict_proba", "predict", "transform"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    return None


# -- the contract ----------------------------------------------------------------------


def test_all_of_them_are_here():
    names = {entry.name for entry in ENTRIES}
    others = {"PublicPreprocessing", "RowNormClipper"}
    private = {e.name for e in all_estimators() if not e.name.startswith("Public")}
    # what reads a table by the estimator inside
    others |= {name for name in private if name.endswith("SearchCV")}
    assert names == private - others - {"PATEAggregator"}


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_raw_tables_are_read_in_fit_and_afterwards(entry):
    model, y = model_of(entry)
    X = table()
    model.fit(X, y)
    tags = get_tags(model).input_tags
    assert tags.allow_nan and tags.string and tags.categorical and not tags.sparse
    # of the raw columns, in the order of the code book
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert model.feature_map_.schema.names == tuple(COLUMNS)
    assumptions = model.certificate_.assumptions
    assert says(assumptions, "assume.schema_fixed_beforehand")
    if y is not None:
        missing = (
            "assume.missing_target_counts_nothing",
            "assume.missing_target_in_histograms_only",
            "assume.unknown_label_counts_nothing",
            "assume.unknown_label_read_first",
        )
        assert says(assumptions, missing)
    # the order of columns and those that are not read do not matter, nor does the table
    expected = answers(model, X)
    if expected is None:
        return
    assert np.all(np.isfinite(expected)) if expected.dtype.kind == "f" else True
    raw = X[list(COLUMNS)]
    for other in (raw, raw.to_numpy(), raw.to_numpy().tolist(), X.assign(new=1)):
        np.testing.assert_array_equal(answers(model, other), expected)
    new = raw[:2].copy()
    new.loc[0] = [1e9, "never seen", None, np.nan]
    assert len(answers(model, new)) == 2


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_what_is_not_read_changes_nothing(entry):
    model, y = model_of(entry)
    X = table()
    first = reachable(model.fit(X, y))
    # other values outside of the code book, read as the same public ones
    other = X.assign(other=np.arange(N))
    other.loc[3, ["age", "gain", "sex"]] = ["-", pd.NA, "Y"]
    again = clone(model).fit(other, y)
    for name in ("coef_", "mean_", "result_", "coefs_", "value_"):
        if hasattr(model, name):
            mine = reachable(getattr(model, name))
            for path, value in reachable(getattr(again, name)).items():
                np.testing.assert_array_equal(mine[path], value)
    assert not any(sings(str(value)) for value in first.values())


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_nothing_private_is_said(entry):
    model, y = model_of(entry)
    X = table()
    X["age"] = X["age"].astype(object)
    X.loc[4, "age"] = NUMBER
    with listen() as said:
        model.fit(X, y)
    assert said.error is None and not said.songs


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("seen", [True, False])
def test_the_secret_is_no_feature(entry, seen):
    secret = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    accountant = OverlapAmplification(epsilon=0.3, delta=1e-5, if_belief_suffices="cap")
    model, y = model_of(entry, scenario=secret, accountant=accountant)
    if isinstance(model, PATEClassifier | PrivateQuantile):
        pytest.skip("votes and choices are not accounted for by overlap")
    X = table() if seen else table().drop(columns="race")
    model.fit(X, y)
    assert model.feature_names_in_.tolist() == ["age", "sex", "gain"]
    assert says(
        model.certificate_.assumptions,
        "assume.no_listed_column_holds_secret",
        columns=["age", "sex", "gain"],
    )
    if answers(model, X) is not None:
        expected = answers(model, X.drop(columns="race", errors="ignore"))
        for other in (X, X.assign(race="B")):
            np.testing.assert_array_equal(answers(model, other), expected)


@pytest.mark.parametrize("named", [True, False])
def test_the_secret_is_not_the_target_of_the_code_book(named):
    secret = AttributeScenario("y", level="record", prior=BoundedOdds(50.0))
    y = labels() if named else labels().to_numpy()
    with refused(ScenarioError, "attribute.secret_is_target", column="y"):
        PrivateCategoricalNB(secret, schema=CLASSES).fit(table(), y)


@pytest.mark.parametrize(
    "strange", [1j, 2 + 0j, 10**5000, [1], Decimal("sNaN")], ids=type
)
def test_no_label_that_is_held_is_refused(strange):
    y = labels().astype(object)
    y[0] = "no"
    other = y.copy()
    other.iat[0] = strange
    model = PrivateCategoricalNB(schema=CLASSES, random_state=0)
    moved = model.fit(table(), other).certificate_
    assert moved == model.fit(table(), y).certificate_


@every
def test_refusals_come_before_any_row(entry):
    model, y = model_of(entry)

    class Untouchable(pd.DataFrame):
        def __getattribute__(self, name):
            raise AssertionError(f"a row was read, by {name}")

    cases = [({"schema": {"age": (0, 1)}}, "schema", y)]
    if y is not None:
        named = pd.Series(y.to_numpy(), name="age")
        cases.append(({}, "'age' is among the features", named))
    if is_classifier(model):
        cases.append(({"schema": NUMBERS}, "a classifier needs a list", y))
    if is_regressor(model):
        cases.append(({"schema": CLASSES}, "a regressor needs a number", y))
    known = model.get_params(deep=False)
    for name, given in (
        ("bounds", {"age": (0, 100)}),
        ("bounds", {"nobody": (0, 100)}),
        ("bounds", {"sex": (0, 1)}),
        ("bounds", "empirical"),
        ("bounds", (0, 1)),
        ("categories", {"sex": ["F"]}),
        ("categories", {"age": [1]}),
        ("classes", ["no", "maybe"]),
        ("target_bounds", (0, 1)),
    ):
        if name in known and not (name == "classes" and not is_classifier(model)):
            cases.append(({name: given}, f"'{name}'", y))
    for changes, match, target in cases:
        broken = clone(model).set_params(**changes)
        with pytest.raises((ValueError, TypeError), match=match):
            broken.fit(Untouchable(), target)
        assert not hasattr(broken, "certificate_")


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_the_same_said_twice_is_fine(entry):
    model, y = model_of(entry)
    known = model.get_params(deep=False)
    bounds = {"age": (17, 90), "gain": (0, 1e5)}
    same = {
        "bounds": bounds,
        "categories": {"sex": ["F", "M", None]},
        "target_bounds": (-2, 2),
    }
    if is_classifier(model):
        same["classes"] = ["yes", "no"]
    twice = clone(model).set_params(**{k: v for k, v in same.items() if k in known})
    X = table()
    a, b = model.fit(X, y), twice.fit(X, y)
    if answers(a, X) is not None:
        np.testing.assert_array_equal(answers(a, X), answers(b, X))


@every
def test_public_preprocessing_stands_before_no_code_book(entry):
    model, y = model_of(entry)
    outer = PublicPreprocessing(StandardScaler(), model, reference=np.zeros((3, 4)))
    with refused(ValueError, "schema.behind_public_preprocessing"):
        outer.fit(table(), y)


# -- what each makes of it -------------------------------------------------------------


def test_polars_tables():
    X, y = table().drop(columns="other"), labels()
    columns = {name: list(map(str, X[name])) for name in X}
    fits = [
        PrivateSGDClassifier(schema=CLASSES, random_state=0).fit(frame, y)
        for frame in (pl.DataFrame(columns), pd.DataFrame(columns))
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_means_are_in_units_of_the_table():
    X = table(4000).drop(columns="race")
    quiet = GroupPrivacy(epsilon=1e8, alpha=2.0)
    schema = CLASSES.without("race")
    model = PrivateMean(accountant=quiet, schema=schema).fit(X)
    marks = model.feature_map_.marks.values()
    names = np.delete(model.feature_map_.names, list(marks))
    found = dict(zip(names, model.mean_, strict=True))
    assert found["sex_F"] == pytest.approx((X["sex"] == "F").mean(), abs=1e-3)
    # its middle stands for a missing age
    ages = pd.to_numeric(X["age"], errors="coerce").clip(17, 90).fillna(53)
    assert found["age"] == pytest.approx(ages.mean(), abs=1e-2)
    scaler = PrivateStandardScaler(accountant=quiet, schema=schema).fit(X)
    scaled = scaler.set_output(transform="pandas").transform(X)
    assert list(scaled) == list(model.feature_map_.names)
    np.testing.assert_allclose(scaled.std(), 1, atol=0.05)
    back = scaler.inverse_transform(scaled.to_numpy())
    np.testing.assert_allclose(back, model.feature_map_(X), atol=1e-6)


def test_a_summary_by_the_code_book():
    X = table(400).assign(y=labels(400))
    quiet = GroupPrivacy(epsilon=1e8, alpha=2.0)
    model = PrivateSummary(
        accountant=quiet, schema=CLASSES, statistics=["rate", "count"], columns=["age"]
    )
    by = clone(model).set_params(by=["sex", "y"], statistics=["size"]).fit(X).result_
    # the target is a level like the others, and what is missing has one
    assert by.shape[0] == 3 * 3
    known = X["sex"].isin(["F", "M"])
    strange = (~known & ~X["y"].isin(["no", "yes"])).sum()
    assert by.iloc[-1].item() == pytest.approx(strange, abs=1e-2)
    assert by.iloc[:, 0].sum() == pytest.approx(400, abs=1e-2)
    plain = PrivateSummary(accountant=quiet, schema=CLASSES, statistics=["rate"])
    rates = plain.fit(X).result_["sex"]
    assert rates["count"] == pytest.approx(known.sum(), abs=1e-2)
    share = (X["sex"][known] == "F").mean()
    assert rates["rate[F]"] == pytest.approx(share, abs=1e-4)


def test_grids_of_a_summary_are_those_of_the_code_book():
    book = Schema(
        {
            "a": Number(0, 90, bins=(0, 30, 90)),
            "b": Number(0, 999, amount=True),
            "c": (0, 10),
        }
    )
    X = pd.DataFrame({"a": [1.0, 40], "b": [3.0, 500], "c": [1.0, 9]})
    quiet = GroupPrivacy(epsilon=1e8, alpha=2.0)
    model = PrivateSummary(accountant=quiet, statistics=["histogram"], schema=book)
    edges = {
        name: [str(label) for label in found.dropna().index]
        for name, found in model.set_params(bins=3).fit(X).result_.items()
    }
    assert edges["a"] == ["histogram[0, 30)", "histogram[30, 90]"]
    assert edges["b"] == ["histogram[0, 9)", "histogram[9, 99)", "histogram[99, 999]"]
    assert len(edges["c"]) == 3
    # what is said by name goes first
    named = model.set_params(bins={"a": [0, 50, 60, 90], "b": 2}).fit(X).result_
    assert named["a"].notna().sum() == 3 and named["b"].notna().sum() == 2
    assert named["c"].notna().sum() == 20
    everywhere = model.set_params(bins=[0, 5, 10]).fit(X).result_
    assert everywhere["b"].notna().sum() == everywhere["c"].notna().sum() == 2


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"columns": ["height"]}, "summary.columns_not_in_schema"),
        ({"by": ["height"]}, "summary.columns_not_in_schema"),
        ({"by": "age"}, "summary.by_is_number"),
        ({"statistics": {"height": ["mean"]}}, "summary.columns_not_in_schema"),
        ({"bins": {"height": 3}}, "summary.columns_not_in_schema"),
        ({"statistics": {"sex": ["mean"]}}, "summary.statistic_impossible_for_column"),
    ],
    ids=str,
)
def test_columns_that_the_code_book_lacks(parameters, match):
    with refused(ValueError, match):
        PrivateSummary(schema=CLASSES, **parameters).fit(table())


def test_public_rows_of_a_student_are_read_alike():
    public = table(40, seed=5)
    model = PATEClassifier(
        DecisionTreeClassifier(max_depth=2),
        n_teachers=4,
        n_queries=20,
        unlabeled=public,
        schema=CLASSES,
        random_state=0,
    )
    with pytest.warns():
        model.fit(table(), labels())
    assert set(model.predict(public)) <= {"no", "yes"}
    secret = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    with pytest.warns():
        hidden = clone(model).set_params(scenario=secret).fit(table(), labels())
    assert hidden.n_features_in_ == 3


def test_a_foreign_estimator_reads_the_unit_ball():
    seen = []

    class Peeping(LogisticRegression):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

    model = OutputPerturbation(
        Peeping(), ["coef_", "intercept_"], sensitivity=0.1, schema=CLASSES
    )
    model.fit(table(), labels())
    ((X, y),) = seen
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-9
    # of the first class where there is none: as many records as there are
    assert len(y) == N and set(y) == {"no", "yes"}
    assert np.mean(y == "no") == np.mean(labels() != "yes")


def test_a_start_of_another_code_book_is_refused():
    X, y = table(), labels()
    with pytest.warns():
        start = PrivateLogisticRegression(schema=CLASSES, random_state=0).fit(X, y)
    other = Schema({**COLUMNS, "age": Number(0, 99, missing_level=True)})
    model = PrivateLogisticRegression(
        schema=other,
        classes=["no", "yes"],
        training=Training(init=(start.coef_, start.intercept_)),
    )
    model.fit(X, y)
    with refused(ValueError, "linear.init_schema_differs"):
        model.set_params(training__init=start).fit(X, y)


# -- beliefs ---------------------------------------------------------------------------

BELIEVED = Schema(
    {
        "age": Number(17, 90, bins=(17, 30, 50, 90), missing_level=True),
        "job": Category(["x", "y", "z"], missing=["-"]),
        "race": ["A", "B"],
        "hours": (0, 80),
        "pay": ["lo", "hi"],
    },
    target="pay",
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(10, 99, n).astype(object),
            "job": rng.choice(["x", "y", "z", "-", "new"], n),
            "race": rng.choice(["A", "B"], n),
            "hours": rng.uniform(0, 80, n),
            "pay": rng.choice(["lo", "hi"], n).astype(object),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = None
    return frame


PUBLIC = people(2000, 0)


def attribute(rows=("age", "job", "race"), rest=2.0, **options):
    prior = BinnedLaw(
        PUBLIC[list(rows)], bins=BELIEVED, rest=BoundedOdds(rest), **options
    )
    return AttributeScenario("race", level="record", prior=prior)


def test_one_code_book_serves_belief_and_model():
    private = people(300, 1)
    scenario = attribute()
    model = PrivateRidge(
        scenario,
        OverlapAmplification(epsilon=0.3, delta=1e-5),
        schema=BELIEVED.with_target(None).without("pay", "race"),
        target_bounds=(0, 1),
        random_state=0,
    )
    y = np.random.default_rng(0).uniform(size=300)
    X = private.drop(columns="pay")
    with pytest.warns():
        first = clone(model).fit(X, y)
    # whatever differs within a cell of the belief does not reach the model
    moved = X.assign(age=[15 if a is not None and a < 30 else a for a in X["age"]])
    moved["job"] = moved["job"].replace({"new": "-"})
    with pytest.warns():
        again = clone(model).fit(moved, y)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not moved.equals(X) and first.certificate_.gain > 1


def test_cells_of_a_belief_are_those_of_the_code_book():
    scenario = attribute()
    read = scenario.coded(people(500, 2).drop(columns=["pay", "race"]))
    assert set(read["age"].dropna()) <= {23.5, 40.0, 70.0} and read["age"].isna().any()
    assert set(read["job"].dropna()) == {"x", "y", "z"} and read["job"].isna().any()
    # what was read is read as itself
    pd.testing.assert_frame_equal(scenario.coded(read), read)
    with refused(ValueError, "prior.bins_lack_columns"):
        AttributeScenario(
            "race",
            level="record",
            prior=BinnedLaw(PUBLIC.assign(shoe=1), bins=BELIEVED),
        ).check()


@pytest.mark.parametrize(
    "name, entry, match",
    [
        ("job", ["X", "Y", "Z"], "schema.belief_bins_disagree"),
        ("job", (0, 9), "schema.belief_bins_disagree"),
        ("age", (0.17, 0.9), "schema.belief_bins_disagree"),
        ("pay", ["low", "high"], "schema.belief_bins_disagree"),
    ],
)
def test_code_books_of_belief_and_model_that_disagree(name, entry, match):
    # the belief's levels would all be read as missing ones, without a word
    columns = {n: BELIEVED[n] for n in (*BELIEVED.names, "pay")} | {name: entry}
    model = PrivateLogisticRegression(
        attribute(),
        OverlapAmplification(epsilon=0.3, delta=1e-5),
        schema=Schema(columns, target="pay"),
    )
    private = people(100, 1)
    with refused(ValueError, match):
        model.fit(private, private["pay"])
    assert not [held for held in vars(model) if held.endswith("_")]


def test_records_without_a_target_are_ones_that_the_belief_speaks_of():
    scenario = attribute(("age", "job", "race", "pay"))
    private = people(200, 3).drop(columns="race")
    private.loc[:20, "pay"] = None
    private.loc[21:40, "pay"] = "much"
    X, y = scenario.coded_records(
        scenario.coded(private.drop(columns="pay")),
        private["pay"],
        "pay",
        fill_rows=True,
        fill_targets=True,
    )
    assert set(y) == {"lo", "hi"}
    atoms = scenario.prior.atoms(scenario)
    known, read = (
        set(map(str, frame.astype(object).to_numpy().tolist()))
        for frame in (atoms, X[["age", "job"]].assign(pay=y))
    )
    assert read <= known


def test_missing_values_do_not_leave_the_belief():
    # bins of a dict have no level for what is missing
    rows = PUBLIC[["age", "job", "race"]].dropna()
    rows["age"] = rows["age"].astype(float)
    prior = BinnedLaw(rows, {"age": [30, 50]}, rest=BoundedOdds(2.0))
    scenario = AttributeScenario("race", level="record", prior=prior)
    X = people(100, 4)[["age", "job"]]
    X["age"] = X["age"].astype(float)
    kept, _ = scenario.coded_records(scenario.coded(X), None, None)
    filled, _ = scenario.coded_records(scenario.coded(X), None, None, fill_rows=True)
    assert kept["age"].isna().any() and not filled["age"].isna().any()


def test_declared_odds_name_the_columns_of_the_code_book():
    private = people(200, 5)
    rows = PUBLIC[["age", "job"]].dropna()
    odds = DeclaredOdds(np.full(len(rows), 0.5), rows, rest=BoundedOdds(2.0))
    scenario = AttributeScenario("race", level="record", prior=odds)
    model = PrivateLogisticRegression(
        scenario,
        OverlapAmplification(epsilon=0.3, delta=1e-5),
        schema=BELIEVED.select(["age", "job"]),
    )
    model.fit(private.drop(columns="pay"), private["pay"])
    assert says(
        model.certificate_.assumptions,
        "assume.no_listed_column_holds_secret",
        columns=["age", "job"],
    )


def test_searches_and_scores_of_raw_tables():
    X, y = table(), np.tile(["no", "yes"], N // 2)
    model = PrivateLogisticRegression(schema=CLASSES)
    search = GridSearchCV(model, {"schema": [CLASSES, CLASSES.without("gain")]}, cv=2)
    assert search.fit(X, y).best_estimator_.schema in (CLASSES, CLASSES.without("gain"))
    assert len(cross_val_score(model, X, y, cv=2)) == 2


def test_a_twin_under_differential_privacy_reads_the_same_table():
    secret = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    model = PrivateLogisticRegression(
        secret, OverlapAmplification(epsilon=0.3, delta=1e-5), schema=CLASSES
    )
    X = table()
    baselines, without = baselines_of("dp", model, "accountant__epsilon", X)
    assert "race" not in without
    for twin in baselines.values():
        assert twin.schema.names == ("age", "sex", "gain")
        assert twin.fit(without, labels()).n_features_in_ == 3


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_empty_tables_and_single_rows(entry):
    model, y = model_of(entry)
    X = table()
    with pytest.raises(ValueError, match="0 sample|0 records"):
        model.fit(X[:0], None if y is None else y[:0])
    assert not hasattr(model, "certificate_")
    # of one record: fitted, or refused by its number
    with listen() as said:
        model.fit(X[:1], None if y is None else y[:1])
    if said.error is not None:
        assert "n_samples" in str(said.error) or "'n_" in str(said.error)


@every
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_fitted_models_are_pickled_with_their_code_book(entry):
    model, y = model_of(entry)
    X = table()
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert again.feature_map_ == model.feature_map_
    if answers(model, X[:3]) is not None:
        np.testing.assert_array_equal(answers(again, X[:3]), answers(model, X[:3]))


def test_regression_needs_bounds_from_somewhere():
    with refused(ValueError, "target.bounds_missing"):
        PrivateRidge(schema=NUMBERS.without("t")).fit(table(), targets())
    model = PrivateRidge(schema=NUMBERS.without("t"), target_bounds=(-2, 2))
    # without a target in the code book, targets are numbers as elsewhere
    with refused(ValueError, "target.subject_parameter_y"):
        model.fit(table(), targets())
    assert model.fit(table(), np.zeros(N)).n_features_in_ == 4


@pytest.mark.parametrize("by", ["schema", "step", "cells"])
def test_no_step_before_the_model_takes_a_record_out_of_the_belief(by):
    """Missing values have a column or cell of their own, which no public row is in."""
    rows = PUBLIC[["age", "race"]].dropna().astype({"age": float})
    prior = BinnedLaw(rows, {"age": [30, 60]}, rest=BoundedOdds(2.0))
    scenario = AttributeScenario("race", level="record", prior=prior)
    options = {"accountant": OverlapAmplification(epsilon=0.3, delta=1e-5)}
    options |= {"target_bounds": (0, 1)}
    book = Schema({"age": Number(0, 99, missing_level=True)})
    model = PrivateRidge(scenario, schema=book, **options)
    if by == "step":
        binner = PublicBinner({"age": [0, 99]}, encode="onehot")
        model = PublicPreprocessing(binner, model.set_params(schema=None))
    if by == "cells":
        del options["target_bounds"]
        model = PrivateCategoricalNB(
            scenario, bounds={"age": (0, 99)}, classes=[0, 1], **options
        )
    X = rows[["age"]][:50].copy()
    X.iloc[::7] = np.nan
    seen = []
    kind = PrivateCategoricalNB if by == "cells" else PrivateRidge
    execute = kind._execute

    def recording(self, task, *others):
        seen.append(task.X)
        return execute(self, task, *others)

    with mock.patch.object(kind, "_execute", recording):
        model.fit(X, np.arange(50) % 2)
    ((encoded),) = seen
    if by == "cells":
        assert not pd.isna(np.asarray(encoded)).any()
    else:
        assert encoded.shape == (50, 2) and not encoded[:, 1].any()
