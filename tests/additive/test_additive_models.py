"""Additive models as estimators: raw tables, shapes, constraints, scenarios."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import Best, OverlapAmplification, PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BoundedInference,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.schema import Category, Number, Schema
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
)

LOOSE = PrivacyLoss(50.0, 1e-5)
#: Rounds, where it does not matter what is learned.
FEW = {"n_rounds": 5}
COLUMNS = {
    "age": Number(0, 100, missing_level=True),
    "job": ["none", "part", "full"],
    "gain": Number(0, 1e5, amount=True),
}
SCHEMA = Schema({**COLUMNS, "rich": ["no", "yes"]}, target="rich")


def people(n=2000, seed=0):
    """Raw rows, with gaps and texts, and a target that age and job decide."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "job": rng.choice(["none", "part", "full"], n),
            "gain": rng.lognormal(3, 2, n),
        }
    )
    score = 0.1 * (frame["age"] - 50) + 2.0 * (frame["job"] == "full")
    rich = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    frame.loc[::10, "age"] = np.nan
    return frame, rich


@pytest.fixture(scope="module")
def fitted():
    X, y = people()
    return PrivateAdditiveClassifier(accountant=LOOSE, schema=SCHEMA).fit(X, y)


def test_raw_tables_are_read_in_fit_and_predict(fitted):
    X, y = people(seed=1)
    assert fitted.score(X, y) > 0.8
    odd = X.head(3).assign(
        age=[np.nan, 1e9, -5], job=[None, "never heard of", "full"], other="ignored"
    )
    assert np.all(np.isfinite(fitted.predict_proba(odd)))
    np.testing.assert_array_equal(fitted.classes_, ["no", "yes"])
    assert fitted.n_features_in_ == 3
    assert list(fitted.feature_names_in_) == ["age", "job", "gain"]


def test_probabilities_sum_to_one_and_agree_with_labels(fitted):
    X, _ = people(seed=2)
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(p), fitted.predict_log_proba(X))
    labels = fitted.classes_[p.argmax(axis=1)]
    np.testing.assert_array_equal(labels, fitted.predict(X))
    assert np.array_equal(fitted.decision_function(X) > 0, labels == "yes")


def test_shape_functions_add_up_to_the_score(fitted):
    X, _ = people(seed=3)
    codes = fitted.binning_(X)
    score = np.full(len(X), fitted.intercept_)
    for k, name in enumerate(fitted.binning_.names):
        one = fitted.shape_functions_[name]
        assert one.features == (name,)
        n_cells = fitted.binning_.n_cells[k]
        assert len(one.cells[0]) == one.scores.size == n_cells
        assert one.standard_errors.shape == one.scores.shape
        assert fitted.histograms_[name].shape == (n_cells,)
        # centred under the noisy shares
        assert one.masses @ one.scores == pytest.approx(0, abs=1e-9)
        score += one.scores[codes[:, k]]
    np.testing.assert_allclose(score, fitted.decision_function(X))
    age = fitted.shape_functions_["age"]
    assert age.cells[0][-1] == "missing"
    assert age.scores[25] > age.scores[5]


def test_histograms_are_published_with_their_noise(fitted):
    X, _ = people()
    exact = np.bincount(fitted.binning_(X)[:, 1], minlength=4)
    noisy = fitted.histograms_["job"]
    assert fitted.histogram_noise_ == pytest.approx(
        fitted.release_.deviation(0, fitted.noise_)
    )
    assert not np.any(noisy == exact)
    assert np.all(np.abs(noisy - exact) < 6 * fitted.histogram_noise_)


def test_the_release_is_one_mechanism_of_two_stages(fitted):
    histograms, sums = fitted.release_.stages
    assert histograms.share == 0.05
    assert sums.share == 0.95
    assert histograms.sensitivity.value("add_remove", 2, None) == np.sqrt(3)
    assert histograms.sensitivity.value("replace", 2, None) == np.sqrt(6)
    assert sums.sensitivity.value("add_remove", 2, None) == 1
    assert sums.sensitivity.value("replace", 2, None) == 2
    assert sums.times == fitted.n_rounds_ == 100
    assert fitted.release_.sensitivity.value("add_remove", 2, None) == pytest.approx(1)
    # what a fitted object holds of the context is the number of records
    assert fitted.release_.context.feature_map is None


def test_edited_shapes_are_those_that_predict(fitted):
    X, _ = people(seed=4)
    model = clone(fitted).set_params(random_state=0).fit(*people())
    old = model.shape_functions_["job"]
    before = model.decision_function(X)
    assert model.edit("job", np.zeros(4)) is model
    codes = model.binning_(X)[:, 1]
    change = model.decision_function(X) - before
    np.testing.assert_allclose(change, -old.scores[codes])
    # the earlier one is as it was
    assert np.any(old.scores)
    with refused(ValueError, "additive.edit_features_unknown"):
        model.edit("jobs", np.zeros(4))
    with refused(ValueError, "additive.edit_scores_wrong_shape"):
        model.edit("job", np.zeros(3))
    with refused(ValueError, "parameter.array_not_finite", name="scores"):
        model.edit("job", [0, np.nan, 0, 0])


@pytest.mark.parametrize("direction", [-1, 1])
def test_monotone_shapes(direction):
    X, y = people()
    model = PrivateAdditiveClassifier(
        accountant=PrivacyLoss(1.0, 1e-5),
        schema=SCHEMA,
        monotone_constraints={"age": direction, "gain": 0},
    ).fit(X, y)
    one = model.shape_functions_["age"]
    # the cell of missing values has no place in the order
    assert np.all(direction * np.diff(one.scores[:-1]) >= -1e-12)
    assert one.masses @ one.scores == pytest.approx(0, abs=1e-6)
    assert np.any(np.diff(model.shape_functions_["gain"].scores) > 0)
    assert np.any(np.diff(model.shape_functions_["gain"].scores) < 0)


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (3000, 2))
    y = np.digitize(X[:, 0], [0.3, 0.6])
    model = PrivateAdditiveClassifier(
        accountant=LOOSE, bounds=(0, 1), classes=[0, 1, 2]
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.intercept_.shape == (3,)
    assert model.shape_functions_[0].scores.shape == (32, 3)
    assert model.predict_proba(X).shape == (3000, 3)
    np.testing.assert_array_equal(
        model.predict_proba(X).argmax(axis=1), model.decision_function(X).argmax(axis=1)
    )
    with refused(ValueError, "additive.monotone_with_many_classes"):
        clone(model).set_params(monotone_constraints={0: 1}).fit(X, y)


def test_numbers_and_pairs():
    X, y = make_friedman1(3000, n_features=5, noise=1.0, random_state=0)
    options = {"accountant": LOOSE, "bounds": (0, 1), "target_bounds": (0, 30)}
    plain = PrivateAdditiveRegressor(**options).fit(X, y).score(X, y)
    assert plain > 0.8
    pairs = PrivateAdditiveRegressor(interactions=[(1, 0)], **options).fit(X, y)
    # the table's sine is of the product of the first two
    assert pairs.score(X, y) > plain + 0.03
    pair = pairs.shape_functions_[(0, 1)]
    assert pair.scores.shape == pair.masses.shape == (8, 8)
    np.testing.assert_allclose(pair.masses @ np.ones(8) @ np.ones(8), 1)
    np.testing.assert_allclose(
        (pair.masses * pair.scores).sum(axis=1),
        0,
        atol=1e-8 * np.abs(pair.scores).max(),
    )
    every = PrivateAdditiveRegressor(interactions="all", n_rounds=5, **options)
    assert len(every.fit(X, y).shape_functions_) == 5 + 10


def test_scores_are_in_units_of_the_target():
    X, y = make_friedman1(3000, n_features=5, random_state=0)
    options = {"accountant": LOOSE, "bounds": (0, 1), "random_state": 0}
    one = PrivateAdditiveRegressor(target_bounds=(0, 30), **options).fit(X, y)
    other = PrivateAdditiveRegressor(target_bounds=(1, 301), **options)
    other.fit(X, 10 * y + 1)
    np.testing.assert_allclose(other.predict(X), 10 * one.predict(X) + 1)
    np.testing.assert_allclose(
        other.shape_functions_[0].standard_errors,
        10 * one.shape_functions_[0].standard_errors,
    )


def test_standard_errors_are_the_spread_over_fits():
    X, y = make_friedman1(2000, n_features=5, random_state=0)
    y = np.clip(y, 0, 30)
    model = PrivateAdditiveRegressor(
        accountant=PrivacyLoss(1.0, 1e-5),
        bounds=(0, 1),
        target_bounds=(0, 30),
        n_bins=8,
        n_rounds=30,
    )
    # A spread over 16 fits is known to 1 / sqrt(2 * 15), about 18 %; the mean of those
    # of five features with noise of their own to 8 %, a third of the tolerance.
    fits = [
        clone(model).set_params(random_state=seed).fit(X, y).shape_functions_
        for seed in range(16)
    ]
    scores, errors = (
        [[getattr(shapes[k], name) for k in range(5)] for shapes in fits]
        for name in ("scores", "standard_errors")
    )
    spread = np.std(scores, axis=0, ddof=1).mean()
    assert 0.8 < np.mean(errors) / spread < 1.25


def test_a_target_outside_of_its_classes_counts_as_nothing():
    X, y = people(400)
    strange = y.astype(object)
    strange[:50] = "neither"
    strange[50] = None
    options = {"accountant": LOOSE, "schema": SCHEMA, "random_state": 0, **FEW}
    model = PrivateAdditiveClassifier(**options).fit(X, strange)
    assert model.release_.n_records == 400
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    # their features count in the histograms all the same
    assert "counts as nothing but in the histograms" in model.certificate_.details()
    plain = PrivateAdditiveClassifier(**options).fit(X, y)
    for name in SCHEMA.names:
        np.testing.assert_array_equal(model.histograms_[name], plain.histograms_[name])
    target = Schema({**COLUMNS, "height": (100, 200)}, target="height")
    heights = np.full(400, 150.0)
    heights[:3] = np.nan, np.inf, 1e9
    regressor = PrivateAdditiveRegressor(accountant=LOOSE, schema=target, **FEW)
    assert np.all(np.isfinite(regressor.fit(X, heights).predict(X)))


def test_order_of_records_does_not_matter():
    X, y = people(500)
    order = np.random.default_rng(0).permutation(500)
    options = {"schema": SCHEMA, "random_state": 0, **FEW}
    one = PrivateAdditiveClassifier(**options).fit(X, y)
    other = PrivateAdditiveClassifier(**options).fit(X.iloc[order], y[order])
    for name in SCHEMA.names:
        np.testing.assert_array_equal(
            one.shape_functions_[name].scores, other.shape_functions_[name].scores
        )


def test_labels_of_the_target_are_public_only_where_the_certificate_says_so():
    X, y = people(400)
    columns = SCHEMA.with_target(None).without("rich")
    found = PrivateAdditiveClassifier(schema=columns, **FEW).fit(X, y)
    assert any("give 'classes'" in str(said) for said in found.certificate_.assumptions)
    given = clone(found).set_params(classes=["no", "yes"]).fit(X, y)
    assert not any(
        "give 'classes'" in str(said) for said in given.certificate_.assumptions
    )


SECRET = pd.DataFrame({"s": np.tile(["a", "b"], 1000)})


@pytest.mark.parametrize(
    "scenario, accountant",
    [
        (RecordScenario(relation="replace"), None),
        (RecordScenario(k=3), Best(1.0, delta=1e-5)),
        (
            AttributeScenario("s", level="record", prior=BoundedOdds(2.0)),
            OverlapAmplification(0.3, delta=1e-5),
        ),
        (AttributeScenario("s", level="record", prior=BoundedInference(0.8)), None),
    ],
    ids=["replace", "households", "odds", "inference"],
)
def test_scenarios(scenario, accountant):
    X, y = people()
    table = pd.concat([SECRET, X], axis=1)
    rows = table if isinstance(scenario, AttributeScenario) else X
    model = PrivateAdditiveClassifier(scenario, accountant, schema=SCHEMA, **FEW)
    model.fit(rows, y)
    assert model.certificate_.epsilon <= 1.0
    # predict drops the secret if it is there
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    assert model.n_features_in_ == 3


def test_a_chain_of_records():
    """A scenario that lists all records there may be returns them, as floats."""
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(300) < 0.2) % 2
    scenario = MarkovChainScenario([[0.8, 0.2], [0.2, 0.8]])
    model = PrivateAdditiveRegressor(
        scenario, bounds=(0, 1), target_bounds=(0, 1), n_bins=2
    ).fit(states[:, None], rng.random(300))
    assert model.certificate_.certified


def test_a_belief_takes_less_noise_than_a_replaced_record():
    X, y = people()
    table = pd.concat([SECRET, X], axis=1)
    belief = AttributeScenario("s", level="record", prior=BoundedOdds(1.5))
    scales = [
        PrivateAdditiveClassifier(scenario, accountant, schema=SCHEMA, **FEW)
        .fit(table, y)
        .noise_.std(1)
        for scenario, accountant in (
            (belief, OverlapAmplification(0.3, delta=1e-5)),
            (RecordScenario(relation="replace"), PrivacyLoss(0.3, 1e-5)),
        )
    ]
    assert scales[0] < scales[1]


@pytest.mark.parametrize("declared", [False, True], ids=["bins", "schema"])
def test_a_binned_law_of_a_few_coarse_columns(declared):
    rng = np.random.default_rng(0)
    parts = []
    for n in (2000, 3000):
        frame, _ = people(n, seed=n)
        frame = frame[["age", "job"]].fillna({"age": 50.0})
        frame.insert(0, "s", rng.choice(["a", "b"], n))
        parts.append((frame, (frame["age"] > 50).astype(int).to_numpy()))
    (public, _), (private, y) = parts
    book = {"age": Number(0, 100, bins=4), "job": ["none", "part", "full"]}
    bins = Schema(book) if declared else {"age": [25, 50, 75]}
    prior = BinnedLaw(public, bins, rest=BoundedOdds(2.0))
    model = PrivateAdditiveClassifier(
        AttributeScenario("s", level="record", prior=prior),
        OverlapAmplification(0.3, delta=1e-5),
        schema=Schema({**book, "age": (0, 100)}),
        classes=[0, 1],
    ).fit(private, y)
    assert model.certificate_.gain > 1
    # rows to predict for are read through the same coding
    assert model.score(private, y) > 0.85
    assert model.score(private.drop(columns="s"), y) > 0.85


def test_parameters_are_searched():
    X, y = people(600)
    search = GridSearchCV(
        PrivateAdditiveClassifier(schema=SCHEMA, n_rounds=10),
        {"accountant__epsilon": [0.01, 20.0]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"accountant__epsilon": 20.0}


def test_without_a_schema_parameters_are_the_code_book():
    X, y = people()
    options = {
        "bounds": {"age": (0, 100), "gain": (0, 1e5)},
        "categories": {"job": ["none", "part", "full"]},
        "amounts": ["gain"],
        "classes": ["no", "yes"],
    }
    model = PrivateAdditiveClassifier(accountant=LOOSE, **options).fit(X, y)
    assert model.binning_.kinds == ("ordered", "levels", "amount")
    assert model.score(X, y) > 0.8
    assert model.predict(X.assign(job="new")).shape == (2000,)
    # the secret column has no place in the book, even where the book names it
    named = {**options, "categories": {**options["categories"], "s": ["a", "b"]}}
    scenario = AttributeScenario("s", level="record", prior=BoundedOdds(2.0))
    secret = PrivateAdditiveClassifier(scenario, **named, **FEW)
    secret.fit(pd.concat([SECRET, X], axis=1), y)
    assert secret.binning_.names == ("age", "job", "gain")


def test_ordered_levels_are_smooth_and_may_be_monotone():
    levels = Category(tuple("abcdefgh"), ordered=True, missing_level=False)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 3000)
    X = pd.DataFrame({"grade": np.array([*"abcdefgh"])[codes]})
    model = PrivateAdditiveRegressor(
        schema=Schema({"grade": levels}),
        target_bounds=(0, 8),
        monotone_constraints={"grade": 1},
    ).fit(X, codes + rng.normal(size=3000))
    scores = model.shape_functions_["grade"].scores
    assert np.all(np.diff(scores) >= 0)
    assert scores[-1] > scores[0] + 3


def test_memory_beside_the_table_is_that_of_codes_and_three_vectors():
    n = 400_000
    rng = np.random.default_rng(0)
    X, y = np.asfortranarray(rng.random((n, 6))), rng.integers(0, 2, n)
    columns = {str(k): (0, 1) for k in range(6)}
    model = PrivateAdditiveClassifier(schema=Schema(columns), classes=[0, 1])
    model.set_params(n_rounds=2)
    model.fit(X[:1000], y[:1000])  # what is kept from fit to fit is not counted
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # six codes of a byte, two joint codes of two, and what a part of the rows takes
    assert peak < n * (6 + 2 * 2 + 3 * 8) + 6e6


@pytest.mark.parametrize(
    "constraints, interactions",
    [({"a": 1}, [("a", "b"), ("g", "a")]), ({"a": 1, "b": -1, "g": 1}, "all")],
)
def test_predictions_follow_constraints_whatever_interacts(constraints, interactions):
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "a": rng.uniform(size=n),
            "b": rng.uniform(size=n),
            "g": rng.integers(0, 4, size=n),
        }
    )
    table.loc[::9, "a"] = np.nan
    schema = Schema(
        {
            "a": Number(0, 1, missing_level=True),
            "b": (0, 1),
            "g": Category((0, 1, 2, 3), ordered=True),
        }
    )
    y = -2 * table["a"].fillna(0.0) * (1 - 2 * table["b"]) - table["g"] * table["a"].gt(
        0.5
    )
    model = PrivateAdditiveRegressor(
        schema=schema,
        target_bounds=(-5, 2),
        monotone_constraints=constraints,
        interactions=interactions,
        n_rounds=20,
    ).fit(table, y)
    grids = {"a": np.linspace(-0.2, 1.2, 60), "b": np.linspace(0, 1, 60), "g": range(4)}
    for name, direction in constraints.items():
        for _ in range(6):
            row = {other: rng.choice(grid) for other, grid in grids.items()}
            made = pd.DataFrame({**row, name: grids[name]})[["a", "b", "g"]]
            assert np.all(direction * np.diff(model.predict(made)) >= -1e-9)


@pytest.mark.parametrize("kind", [PrivateAdditiveClassifier, PrivateAdditiveRegressor])
def test_three_records_of_a_third_of_the_largest_weight_are_planned_as_one(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = (X[:, 0] > 0).astype(int if kind is PrivateAdditiveClassifier else float)
    of_target = {"classes": [0, 1]} if y.dtype == int else {"target_bounds": (0, 1)}
    model = kind(accountant=LOOSE, bounds=(-1, 1), n_bins=4, n_rounds=20, **of_target)
    one = clone(model).fit(X, y)
    model.set_params(weight_bounds=(0, 3))
    three = model.fit(
        np.tile(X, (3, 1)), np.tile(y, 3), sample_weight=np.ones(3 * len(y))
    )
    for name, shape in one.shape_functions_.items():
        np.testing.assert_allclose(
            three.shape_functions_[name].standard_errors,
            shape.standard_errors,
            rtol=0.2,
            err_msg=name,
        )
