import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
from skpuffer.exceptions import (
    PrivacyLeakWarning,
    PrivacyWarning,
    ScenarioError,
    stated,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import PublicOneHotEncoder, RowNormClipper
from skpuffer.scenarios import AttributeScenario
from skpuffer.schema import Schema
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.testing import privacy_checks
from tests.refused import refused, says, warned

WORK = ["Private", "State", "Self"]
FEATURES = ["age", "work", "hours"]


#: What is warned of where the rows are taken as their own prior.
ESTIMATED = ("attribute.empirical_prior_leaks", "scenario.samples_only_estimate")


def census(n=120, seed=0):
    """A table whose columns give the race away."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["A", "B"], size=n)
    work = np.where(race == "A", rng.choice(WORK, size=n), rng.choice(WORK[:2], size=n))
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, size=n) + 3.0 * (race == "A"),
            "work": work,
            "hours": rng.integers(10, 50, size=n).astype(float),
            "race": race,
        }
    )
    rich = table["age"] + 10 * (work == "Self") + rng.normal(0, 3, n) > 42
    return table.assign(income=np.where(rich, "high", "low"))


PUBLIC, PRIVATE = census(seed=1), census(seed=2)
X, Y = PRIVATE[FEATURES], PRIVATE["income"]


def scenario(**params):
    params = {"level": "record", "prior": PUBLIC, "prior_as": "law"} | params
    return AttributeScenario("race", target="income", **params)


def columns():
    return make_column_transformer(
        (PublicOneHotEncoder({"work": WORK}, missing="zero"), ["work"]),
        (StandardScaler(), ["age", "hours"]),
    )


def private_logistic(said=None, **params):
    said = scenario() if said is None else said
    return PrivateLogisticRegression(
        said, GeneralWasserstein(1.0, 4), data_norm=3.0, **params
    )


# -- the same map for data and prior ------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        private_logistic,
        lambda said, **params: PrivateMean(
            said, GeneralWasserstein(1.0, 4), bounds=(-3.0, 3.0), **params
        ),
        lambda said, **params: PrivateStandardScaler(
            said, GeneralWasserstein(1.0, 4), bounds=(-3.0, 3.0), **params
        ),
        lambda said, **params: PrivateSummary(
            said,
            GeneralWasserstein(1.0, 4),
            statistics=["mean"],
            bounds=(-3.0, 3.0),
            **params,
        ),
    ],
    ids=["logistic", "mean", "scaler", "summary"],
)
def test_as_if_data_and_prior_had_been_mapped_by_hand(make):
    model = PublicPreprocessing(columns(), make(scenario(), random_state=0))
    model.fit(PRIVATE.drop(columns="income"), Y)

    mapping = columns().set_output(transform="pandas").fit(PUBLIC[FEATURES])
    prior = mapping.transform(PUBLIC[FEATURES])
    prior[["race", "income"]] = PUBLIC[["race", "income"]]
    by_hand = make(scenario(prior=prior), random_state=0)
    by_hand.fit(mapping.transform(X), Y)

    assert model.noise_ == by_hand.noise_
    assert model.certificate_.sensitivity == by_hand.certificate_.sensitivity > 0
    (name,) = {"coef_", "mean_", "result_"} & set(vars(by_hand))
    np.testing.assert_allclose(
        getattr(model.estimator_, name), getattr(by_hand, name), rtol=1e-4
    )


def test_the_prior_would_not_do_unmapped():
    """The shift covered is that of the mapped columns, not of the raw ones."""
    numbers = ["age", "hours"]
    raw = PrivateMean(scenario(), GeneralWasserstein(), bounds=(0.0, 100.0))
    covered = raw.fit(X[numbers]).certificate_.sensitivity
    tenth = FunctionTransformer(_tenth)
    mapped = PublicPreprocessing(tenth, clone(raw)).fit(X[numbers])
    assert mapped.certificate_.sensitivity == pytest.approx(covered / 10)


def _tenth(X):
    return X / 10


def test_predictions_go_through_the_map():
    model = PublicPreprocessing(columns(), private_logistic()).fit(X, Y)
    assert is_classifier(model)
    mapped = columns().fit(PUBLIC[FEATURES]).transform(X)
    inner = model.estimator_
    for method in (
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
    ):
        np.testing.assert_allclose(
            getattr(model, method)(X) == getattr(inner, method)(mapped), True
        )
    assert model.score(X, Y) == inner.score(mapped, Y)
    assert model.classes_.tolist() == ["high", "low"]
    assert not hasattr(model, "transform")


# -- nothing is learnt from private rows --------------------------------------------


def learnt(transformer):
    return {
        f"{type(part).__name__}.{name}": value
        for part in [transformer, *transformer.named_transformers_.values()]
        for name, value in vars(part).items()
        if name.endswith("_") and isinstance(value, bool | float | np.ndarray)
    }


@pytest.mark.parametrize("reference", [None, PUBLIC])
def test_transformer_and_noise_do_not_depend_on_the_private_table(reference):
    other = X.assign(age=3 * X["age"], hours=0.0, work="State")
    model = PublicPreprocessing(columns(), private_logistic(), reference=reference)
    one = clone(model).fit(X, Y)
    two = clone(model).fit(other, Y)
    np.testing.assert_equal(learnt(one.transformer_), learnt(two.transformer_))
    assert any(name.endswith("mean_") for name in learnt(one.transformer_))
    assert one.feature_map_ == two.feature_map_
    assert one.noise_ == two.noise_
    assert one.certificate_ == two.certificate_


def test_not_even_how_many_zeros_there_are():
    fixed = make_column_transformer(
        (
            PublicOneHotEncoder({"work": WORK[:2]}, missing="zero", sparse_output=True),
            ["work"],
        ),
    )
    model = PublicPreprocessing(fixed, PrivateLogisticRegression())
    thin = X.assign(work="Self")
    told = [clone(fixed).fit(rows).sparse_output_ for rows in (X, thin)]
    assert told == [False, True]
    fits = [clone(model).fit(rows, Y) for rows in (X, thin)]
    assert [fit.transformer_.sparse_output_ for fit in fits] == [False, False]


def test_a_transformer_that_mixes_records_is_refused():
    model = PublicPreprocessing(
        FunctionTransformer(lambda X: X - X.mean()), PrivateLogisticRegression()
    )
    with refused(ValueError, "preprocessing.mixes_records"):
        model.fit(X[["age", "hours"]], Y)
    assert not hasattr(model, "transformer_")


# -- where public rows come from ----------------------------------------------------


def test_no_public_rows_names_both_remedies():
    model = PublicPreprocessing(columns(), PrivateLogisticRegression(data_norm=3.0))
    with refused(ScenarioError, "preprocessing.public_rows_missing"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    frozen = FrozenEstimator(columns().fit(PUBLIC[FEATURES]))
    given = clone(model).set_params(reference=PUBLIC).fit(X, Y)
    fixed = clone(model).set_params(transformer=frozen).fit(X, Y)
    np.testing.assert_array_equal(given.feature_map_(X), fixed.feature_map_(X))
    assert says(
        given.certificate_.assumptions, "assume.preprocessing_fitted_on_reference"
    )
    assert says(fixed.certificate_.assumptions, "assume.preprocessing_fixed_beforehand")


def test_an_empirical_prior_is_not_public():
    said = AttributeScenario("race", level="record", prior="empirical")
    model = PublicPreprocessing(columns(), private_logistic(said))
    with refused(ScenarioError, "preprocessing.public_rows_missing"):
        model.fit(PRIVATE[[*FEATURES, "race"]], Y)
    model.set_params(reference=PUBLIC)
    with warned(PrivacyWarning, ESTIMATED):
        model.fit(PRIVATE[[*FEATURES, "race"]], Y)
    assert not model.certificate_.certified


def test_the_reference_goes_before_the_prior():
    shifted = PUBLIC.assign(age=PUBLIC["age"] + 100)
    model = PublicPreprocessing(
        columns(), private_logistic(), reference=shifted[FEATURES]
    ).fit(X, Y)
    scaler = model.transformer_.named_transformers_["standardscaler"]
    assert scaler.mean_[0] == pytest.approx(shifted["age"].mean())


def test_a_fixed_transformer_needs_no_rows():
    fixed = make_pipeline(PublicOneHotEncoder({"work": WORK}), RowNormClipper(50.0))
    model = PublicPreprocessing(fixed, PrivateLogisticRegression()).fit(X, Y)
    assert model.estimator_.n_features_in_ == 6
    assert model.predict(X).shape == Y.shape


def test_a_transformer_tells_nothing_of_private_rows(capfd):
    coded = make_column_transformer((OneHotEncoder(handle_unknown="warn"), ["work"]))
    known = PUBLIC[PUBLIC["work"] != "Self"]
    assert "Self" in set(X["work"])
    model = PublicPreprocessing(coded, PrivateLogisticRegression(), reference=known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of categories the public rows lack
        assert model.fit(X, Y).estimator_.n_features_in_ == 2
    heard = []

    class Listener:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, *, X=None):
            heard.append(X)

        def on_fit_task_end(self, estimator, context): ...

    steps = PublicOneHotEncoder({"work": WORK}), RowNormClipper(50.0)
    fixed = make_pipeline(*steps, verbose=True).set_callbacks(Listener())
    clone(fixed).fit(X)
    assert heard and capfd.readouterr().out
    del heard[:]
    PublicPreprocessing(fixed, PrivateLogisticRegression()).fit(X, Y)
    assert not heard and capfd.readouterr() == ("", "")


def test_public_rows_must_have_the_columns():
    model = PublicPreprocessing(
        columns(), PrivateLogisticRegression(), reference=PUBLIC.drop(columns="age")
    )
    with refused(ScenarioError, "preprocessing.public_columns_missing"):
        model.fit(X, Y)


def test_a_frozen_transformer_must_be_fitted():
    model = PublicPreprocessing(
        FrozenEstimator(StandardScaler()), PrivateLogisticRegression()
    )
    with pytest.raises(NotFittedError):
        model.fit(X[["age", "hours"]], Y)


@pytest.mark.parametrize("estimator", [LogisticRegression(), Ridge()])
def test_the_estimator_must_be_private(estimator):
    with refused(TypeError, "preprocessing.estimator_not_private"):
        PublicPreprocessing(columns(), estimator).fit(X, Y)


@pytest.mark.parametrize(
    "estimator, said",
    [
        (PrivateMean(bounds=(1, -1)), "'bounds'"),
        (PrivateLogisticRegression(C=-1.0), "'C'"),
        (PrivateMean(bounds=(0, 1), accountant=PrivacyLoss(-1.0)), "'epsilon'"),
        (PrivateMean(schema=Schema({"age": (0, 99)})), "'schema'"),
    ],
)
def test_parameters_are_checked_before_any_row_is_mapped(estimator, said):
    """Else foreign code would see rows, which its errors might be about."""

    def unseen(rows):
        raise AssertionError("a row was mapped")

    model = PublicPreprocessing(FunctionTransformer(unseen), estimator)
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)


# -- the secret column --------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_secret_column_changes_nothing(make):
    def table(names):
        return make({name: PRIVATE[name].tolist() for name in names})

    with_it, without = table(["race", *FEATURES]), table(FEATURES)
    model = PublicPreprocessing(columns(), private_logistic(random_state=0))
    one = clone(model).fit(with_it, Y)
    two = clone(model).fit(without, Y)
    assert one.n_features_in_ == 3
    assert one.feature_names_in_.tolist() == FEATURES
    np.testing.assert_array_equal(one.estimator_.coef_, two.estimator_.coef_)
    np.testing.assert_array_equal(one.predict(with_it), one.predict(without))


@pytest.mark.parametrize("as_list", [False, True])
def test_arrays_go_by_position(as_list):
    names = ["race", "work", "age"]
    prior = PUBLIC[[*names, "income"]].to_numpy()
    said = AttributeScenario(0, level="record", prior=prior, prior_as="law", target=3)
    transformer = make_column_transformer(
        (PublicOneHotEncoder({0: ["Private", "State"]}, missing="zero"), [0]),
        (StandardScaler(), [1]),
    )
    rows = PRIVATE[names].to_numpy()
    given = rows.tolist() if as_list else rows
    model = PublicPreprocessing(transformer, private_logistic(said)).fit(given, Y)
    # the secret among three raw columns; and three columns reach the model
    assert model.n_features_in_ == 2
    assert model.estimator_.n_features_in_ == 3
    expected = model.feature_map_(rows[:, 1:])
    np.testing.assert_array_equal(
        model.decision_function(given), model.estimator_.decision_function(expected)
    )
    np.testing.assert_array_equal(
        model.decision_function(rows[:, 1:]), model.decision_function(given)
    )


def test_a_secret_unseen_by_the_prior():
    table = PRIVATE[["race", *FEATURES]].assign(race="C")
    with refused(ScenarioError, "attribute.values_not_in_prior", column="race"):
        PublicPreprocessing(columns(), private_logistic()).fit(table, Y)


# -- in scikit-learn's hands --------------------------------------------------------


def test_the_story_in_a_grid_search():
    model = PublicPreprocessing(columns(), private_logistic())
    grid = {
        "estimator__accountant__epsilon": [0.5, 8.0],
        "transformer__standardscaler__with_mean": [True, False],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise", n_jobs=2)
    search.fit(PRIVATE.drop(columns="income"), Y)
    best = search.best_estimator_
    budget = search.best_params_["estimator__accountant__epsilon"]
    assert best.certificate_.epsilon == budget
    assert best.accountant_.epsilon == budget
    assert np.all(search.cv_results_["mean_test_score"] > 0.2)


def test_a_default_estimator_can_be_searched():
    model = PublicPreprocessing(RowNormClipper(), PrivateLogisticRegression())
    model.set_params(estimator__accountant__epsilon=3.0)
    assert model.fit(X[["age", "hours"]], Y).certificate_.epsilon == 3.0


def test_more_budget_less_noise():
    scales = [
        PublicPreprocessing(columns(), private_logistic())
        .set_params(estimator__accountant__epsilon=epsilon)
        .fit(X, Y)
        .noise_.scale
        for epsilon in (1.0, 4.0)
    ]
    assert scales[0] == pytest.approx(2 * scales[1])


def test_pickled_and_refitted():
    model = PublicPreprocessing(columns(), private_logistic()).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.feature_map_ == model.feature_map_
    with refused(ValueError, "table.not_finite"):
        model.fit(X.assign(age=np.nan), Y)
    again.set_params(transformer=LogisticRegression())  # has no transform
    with pytest.raises(ValueError, match="'transformer'"):
        again.fit(X, Y)
    with pytest.raises(NotFittedError):
        again.predict(X)
    with pytest.raises(NotFittedError):
        model.predict(X)
    left = [name for name in vars(model) if name.endswith("_")]
    assert left == []


def test_wrong_columns_in_prediction():
    model = PublicPreprocessing(columns(), private_logistic()).fit(X, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["age", "work"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["work", "age", "hours"]])


def test_the_secret_can_be_routed():
    said = AttributeScenario("race", level="record", prior="empirical")
    model = PublicPreprocessing(columns(), private_logistic(said), reference=PUBLIC)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(secret=True)
        search = GridSearchCV(
            model, {"estimator__accountant__epsilon": [1.0]}, cv=2, error_score="raise"
        )
        with pytest.warns(PrivacyWarning):
            search.fit(X, Y, secret=PRIVATE["race"])
    assert search.best_estimator_.certificate_.sensitivity > 0


def test_around_a_private_transformer():
    inner = PrivateStandardScaler(bounds=(0.0, 100.0))
    encoder = PublicOneHotEncoder({"work": WORK}, missing="zero")
    model = PublicPreprocessing(encoder, inner).set_output(transform="pandas")
    rows = X.set_index(X.index + 7)
    out = model.fit_transform(rows)
    names = ["age", "work_Private", "work_State", "work_Self", "hours"]
    assert out.columns.tolist() == model.get_feature_names_out().tolist() == names
    assert out.index.tolist() == rows.index.tolist()
    mapped = model.feature_map_(rows)
    inner.set_output(transform="default")
    np.testing.assert_allclose(
        out, (mapped - model.estimator_.mean_) / model.estimator_.scale_
    )
    back = model.inverse_transform(out.to_numpy())
    np.testing.assert_allclose(back, mapped, atol=1e-9)
    as_polars = model.set_output(transform="polars").transform(rows)
    assert isinstance(as_polars, pl.DataFrame) and as_polars.columns == names


def test_around_output_perturbation():
    inner = OutputPerturbation(
        LogisticRegression(C=0.1), ["coef_", "intercept_"], sensitivity=0.1
    )
    model = PublicPreprocessing(columns(), inner, reference=PUBLIC).fit(X, Y)
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_under_a_global_output_format(kind):
    with config_context(transform_output=kind):
        model = PublicPreprocessing(columns(), private_logistic()).fit(X, Y)
        assert model.predict(X).shape == Y.shape


# -- a ledger hears of the release --------------------------------------------------


def ledger(path, refuse=False):
    """A callback that writes what it hears to a file, from any process."""

    class Ledger:
        max_propagation_depth = None

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, *, metadata=None):
            if metadata and "certificate" in metadata:
                heard = metadata["certificate"].to_dict()
                heard["task"] = context.task_name
                heard["by"] = type(estimator).__name__
                heard["fitted"] = hasattr(estimator, "coef_")
                del heard["curve"]
                with open(path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(heard) + "\n")
                if refuse:
                    raise RuntimeError("the budget is spent")

        def on_fit_task_end(self, estimator, context, *, metadata=None): ...

    return Ledger()


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_ledger_hears_of_the_inner_release(tmp_path):
    path = tmp_path / "ledger"
    model = PublicPreprocessing(columns(), private_logistic())
    model.set_callbacks(ledger(path)).fit(X, Y)
    (heard,) = read(path)
    assert heard["task"] == "release" and heard["by"] == "PrivateLogisticRegression"
    assert heard["epsilon"] == 1.0 and not heard["fitted"]
    assumed = list(map(stated, heard["assumptions"]))
    assert says(assumed, "assume.preprocessing_fitted_on_prior")
    assert assumed == list(model.certificate_.assumptions)
    # it stays with the outer one
    assert not hasattr(model.estimator_, "_skl_callbacks")
    assert not [name for name in vars(model.estimator_) if "callback" in name]


def test_a_ledger_can_refuse(tmp_path):
    model = PublicPreprocessing(columns(), private_logistic()).fit(X, Y)
    model.set_callbacks(ledger(tmp_path / "ledger", refuse=True))
    with pytest.raises(RuntimeError, match="the budget is spent"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_ledger_on_a_search_hears_of_every_release(tmp_path, n_jobs):
    path = tmp_path / "ledger"
    search = GridSearchCV(
        PublicPreprocessing(columns(), private_logistic()),
        {"estimator__accountant__epsilon": [0.5, 2.0]},
        cv=2,
        n_jobs=n_jobs,
        error_score="raise",
    )
    search.set_callbacks(ledger(path)).fit(X, Y)
    heard = sorted(entry["epsilon"] for entry in read(path))
    best = search.best_params_["estimator__accountant__epsilon"]
    assert heard == sorted([0.5, 0.5, 2.0, 2.0, best])


def test_a_ledger_in_a_pipeline(tmp_path):
    path = tmp_path / "ledger"
    pipeline = make_pipeline(
        "passthrough",
        PublicPreprocessing(columns(), private_logistic()),
    )
    pipeline.set_callbacks(ledger(path)).fit(X, Y)
    assert len(read(path)) == 1


# -- conformance --------------------------------------------------------------------


def checked():
    # scikit-learn's checks seed the outermost estimator only
    return [
        PublicPreprocessing(
            RowNormClipper(), PrivateLogisticRegression(random_state=0)
        ),
        PublicPreprocessing(
            make_column_transformer((RowNormClipper(), [0]), remainder="passthrough"),
            PrivateStandardScaler(bounds=(-5.0, 5.0), random_state=0),
        ),
        PublicPreprocessing(
            RowNormClipper(),
            OutputPerturbation(
                Ridge(), ["coef_", "intercept_"], sensitivity=0.1, random_state=0
            ),
        ),
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(checked())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("at", range(3))
def test_privacy_checks(at):
    """Run each check on one of the three: all checks run in the generic tests."""
    for _, check in privacy_checks(checked()[at])[at::3]:
        check()


@pytest.mark.parametrize("shift, shares", [(0.0, True), (9.0, False)])
def test_a_reference_of_the_private_rows_leaves_an_estimate(shift, shares):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = PublicPreprocessing(
        StandardScaler(), PrivateMean(bounds=(-3, 3)), reference=X[::-1] + shift
    )
    if not shares:
        assert model.fit(X).certificate_.certified
        return
    with pytest.warns(PrivacyLeakWarning):
        model.fit(X)
    assert not model.certificate_.certified
    # a preview has no rows to compare with
    assert model.preview(40).certificate.certified
