import logging
import math
import pickle
import sys
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.accountants import (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
)
from skpuffer.compose import OutputPerturbation
from skpuffer.distributions import Discrete
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    InfiniteDistanceError,
    PrivacyWarning,
    ScenarioError,
    SeededNoiseWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.preprocessing import RowNormClipper
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.schema import Schema
from tests.refused import refused, warned

BOTH = ["coef_", "intercept_"]
CHEAP = GroupPrivacy(epsilon=1e6, alpha=2.0)


#: What is warned of where the rows are taken as their own prior.
ESTIMATED = ("attribute.empirical_prior_leaks", "scenario.samples_only_estimate")


def binary(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.2 * rng.normal(size=n) > 0, "yes", "no")


def private_logistic(query=BOTH, **params):
    params = {"sensitivity": 0.1} | params
    return OutputPerturbation(LogisticRegression(C=0.1), query, **params)


# -- what is released ---------------------------------------------------------------


def test_noise_is_that_of_the_sensitivity_around_the_exact_vector(n_trials):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:50], (y[:50] - 150) / 100
    exact = Ridge().fit(X, y)
    exact = np.r_[exact.coef_, exact.intercept_]
    model = OutputPerturbation(
        Ridge(), BOTH, None, GroupPrivacy(2.0, alpha=4.0), sensitivity=0.3
    )
    drawn = []
    for _ in range(n_trials(150)):
        value = model.fit(X, y).value_
        drawn.append(np.r_[value["coef_"], value["intercept_"]] - exact)
    # Gaussian: a move of 0.3 costs alpha 0.3^2 / (2 sigma^2) = 2
    sigma = 0.3 * math.sqrt(4.0 / (2 * 2.0))
    assert model.noise_.scale == pytest.approx(sigma)
    drawn = np.array(drawn) / sigma
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 1e-6
    worst = np.abs(np.corrcoef(drawn.T) - np.eye(drawn.shape[1])).max()
    assert worst < 6 / math.sqrt(len(drawn))


@pytest.mark.parametrize(
    "query, shape",
    [
        ("coef_", (1, 3)),
        ("intercept_", (1,)),
        (lambda fitted: fitted.coef_[0, :2], (2,)),
        (lambda fitted: np.outer(fitted.coef_, fitted.coef_), (3, 3)),
    ],
)
def test_value_has_the_shape_of_the_query(query, shape):
    assert private_logistic(query).fit(*binary()).value_.shape == shape


@pytest.mark.parametrize("query", [BOTH, tuple(BOTH)])
def test_value_of_a_list_is_a_dict(query):
    value = private_logistic(query).fit(*binary()).value_
    assert {name: array.shape for name, array in value.items()} == {
        "coef_": (1, 3),
        "intercept_": (1,),
    }


def test_scalars_are_floats():
    X, _ = binary()
    model = OutputPerturbation(Ridge(), BOTH, sensitivity=0.1).fit(X, X[:, 0])
    assert isinstance(model.value_["intercept_"], float)
    assert isinstance(model.estimator_.intercept_, float)


def test_with_next_to_no_noise_it_is_the_estimator():
    X, y = load_iris(return_X_y=True)
    inner = LogisticRegression(C=0.1, max_iter=1000)
    model = OutputPerturbation(inner, BOTH, None, CHEAP, sensitivity=1e-6).fit(X, y)
    exact = clone(inner).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_allclose(
            getattr(model, method)(X), getattr(exact, method)(X), atol=1e-4
        )
    assert model.score(X, y) == exact.score(X, y)
    weights = np.linspace(0, 1, len(y))
    assert model.score(X, y, weights) == exact.score(X, y, weights)


def test_predictions_are_made_by_the_noisy_attributes():
    X, y = binary()
    model = private_logistic(sensitivity=5.0).fit(X, y)
    scores = X @ model.value_["coef_"][0] + model.value_["intercept_"]
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


# -- nothing else of the fit survives -----------------------------------------------


def fitted_names(estimator):
    return {name for name in vars(estimator) if name not in estimator.get_params()}


def test_only_what_was_released_is_on_the_inner_estimator():
    X, y = binary()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    inner = private_logistic().fit(frame, y).estimator_
    # n_iter_ is the one that fit sets besides
    assert hasattr(LogisticRegression().fit(X, y), "n_iter_")
    public = {"classes_", "n_features_in_", "feature_names_in_"}
    assert fitted_names(inner) == {"coef_", "intercept_"} | public
    assert fitted_names(private_logistic("coef_").fit(frame, y).estimator_) == (
        {"coef_"} | public
    )


@pytest.mark.parametrize(
    "model",
    [
        private_logistic(),
        private_logistic("coef_"),
        OutputPerturbation(StandardScaler(), "mean_", sensitivity=0.1),
        OutputPerturbation(GaussianNB(), "theta_", sensitivity=0.1),
        OutputPerturbation(KMeans(3), "cluster_centers_", sensitivity=0.1),
        OutputPerturbation(
            RandomForestClassifier(3), "feature_importances_", sensitivity=0.1
        ),
    ],
    ids=lambda model: f"{type(model.estimator).__name__}-{model.query}",
)
def test_no_exact_number_is_anywhere_in_the_fitted_object(model):
    X, y = binary()
    seeds = {k: 0 for k in model.estimator.get_params() if k == "random_state"}
    exact = clone(model.estimator).set_params(**seeds).fit(X, y)
    stored = pickle.dumps(model.fit(X, y))
    found = {
        name: np.asarray(value)
        for name, value in vars(exact).items()
        if name.endswith("_") and name not in ("classes_", "n_features_in_")
    }
    asked = [model.query] if isinstance(model.query, str) else model.query
    found |= {"X": X} | {name: np.asarray(getattr(exact, name)) for name in asked}
    checked = 0
    for name, array in found.items():
        if array.dtype.kind == "f":
            for number in array.ravel():
                assert number in (0.0, 1.0) or number.tobytes() not in stored, name
            checked += array.size
    assert checked > X.size


def test_the_counts_of_a_fit_do_not_survive():
    X, _ = binary()
    model = OutputPerturbation(StandardScaler(), ["mean_", "scale_"], sensitivity=0.1)
    inner = model.fit(X).estimator_
    assert fitted_names(inner) == {"mean_", "scale_", "n_features_in_"}
    assert not hasattr(inner, "var_")


def test_a_failed_fit_leaves_nothing():
    X, y = binary()
    model = private_logistic().fit(X, y)
    before = set(vars(clone(model)))
    model.set_params(query="no_such_")
    with refused(ValueError, "query.attribute_missing_after_fit"):
        model.fit(X, y)
    assert set(vars(model)) == before


# -- what is fitted carries no noise, so it says nothing ----------------------------


class Listener:
    """A callback that counts what it hears."""

    def __init__(self):
        self.heard = 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.heard += 1


def first_coef(fitted):
    """The coefficients of the last estimator inside."""
    while not hasattr(fitted, "coef_"):
        if isinstance(fitted, Pipeline):
            fitted = fitted[-1]
        elif isinstance(fitted, OneVsRestClassifier):
            fitted = fitted.estimators_[0]
        else:
            fitted = fitted.best_estimator_
    return fitted.coef_


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        lambda inner: make_pipeline(StandardScaler(), inner),
        OneVsRestClassifier,
        lambda inner: make_pipeline(StandardScaler(), OneVsRestClassifier(inner)),
        lambda inner: GridSearchCV(inner, {"C": [1.0]}, cv=2),
        lambda inner: GridSearchCV(
            Pipeline([("last", LogisticRegression())]), {"last": [inner]}, cv=2
        ),
    ],
    ids=["alone", "pipeline", "one-vs-rest", "nested", "search", "searched over"],
)
def test_callbacks_of_the_estimators_inside_hear_nothing(around):
    X, y = binary()
    y = np.unique(y, return_inverse=True)[1]  # a search over Ridge takes no text
    listener = Listener()
    inner = around(LogisticRegression().set_callbacks(listener))
    clone(inner).fit(X, y)
    assert listener.heard > 0
    listener.heard = 0
    OutputPerturbation(inner, first_coef, sensitivity=0.1).fit(X, y)
    assert listener.heard == 0
    clone(inner).fit(X, y)
    assert listener.heard > 0  # whose they are, they stay


def early_stopping():
    return SGDClassifier(early_stopping=True, verbose=2, max_iter=3, tol=None)


class Outspoken(Ridge):
    """Tells everybody, whatever it is asked for."""

    def fit(self, X, y):
        super().fit(X, y)
        told = f"exactly {self.coef_}"
        print(told)
        print(told, file=sys.stderr)
        warnings.warn(told, RuntimeWarning, stacklevel=2)
        logging.getLogger("outspoken").error(told)
        return self


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "inner",
    [
        Pipeline(
            [("scale", StandardScaler()), ("sgd", early_stopping())], verbose=True
        ),
        OneVsRestClassifier(early_stopping(), verbose=1),
        make_pipeline(StandardScaler(), OneVsRestClassifier(early_stopping())),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, verbose=3),
        Outspoken(),
        MLPClassifier((), max_iter=2, verbose=True, early_stopping=True),
    ],
    ids=["pipeline", "one-vs-rest", "nested", "search", "outspoken", "perceptron"],
)
def test_estimators_inside_print_and_warn_of_nothing(inner, capfd, caplog):
    X, y = binary()
    y = (y == "yes").astype(int)

    def query(fitted):
        return np.zeros(2) if hasattr(fitted, "coefs_") else first_coef(fitted)

    before = repr(inner.get_params())
    with warnings.catch_warnings(record=True) as caught:
        clone(inner).fit(X, y)
        out, err = capfd.readouterr()
        assert out or err or caught
        del caught[:]
        caplog.clear()
        OutputPerturbation(inner, query, sensitivity=0.1).fit(X, y)
    assert capfd.readouterr() == ("", "")
    assert not caught and not caplog.records
    assert repr(inner.get_params()) == before
    print("heard")  # and all is as it was before
    logging.getLogger("outspoken").error("heard")
    assert capfd.readouterr().out == "heard\n"
    assert len(caplog.records) == 1


# -- predictions that need what was not asked for -----------------------------------


def test_an_attribute_that_was_not_released_is_named_with_its_remedy():
    X, y = binary()
    model = private_logistic("coef_").fit(X, y)
    match = "query.attribute_not_released"
    for method in ("predict", "predict_proba", "score"):
        with refused(AttributeError, match):
            getattr(model, method)(X, *([y] if method == "score" else []))


def test_an_attribute_that_cannot_be_released():
    X, y = binary()
    model = OutputPerturbation(
        MLPClassifier((), max_iter=5, solver="lbfgs"),
        lambda fitted: fitted.coefs_[0],
        sensitivity=0.1,
    )
    model.fit(X, y)
    assert model.value_.shape == (3, 1)
    assert not hasattr(model, "predict")
    match = "query.part_not_array"
    two = MLPClassifier((2,), max_iter=5, solver="lbfgs")
    with refused(ValueError, match):
        OutputPerturbation(two, "coefs_", sensitivity=0.1).fit(X, y)


def test_without_an_intercept_the_coefficients_suffice():
    X, y = binary()
    for inner, target in [
        (LogisticRegression(fit_intercept=False), y),
        (Ridge(fit_intercept=False), X[:, 0]),
    ]:
        model = OutputPerturbation(inner, sensitivity=0.1).fit(X, target)
        scores = X @ np.ravel(model.value_)
        read = model.decision_function if is_classifier(model) else model.predict
        np.testing.assert_allclose(read(X), scores)


def test_methods_are_there_only_where_they_can_work():
    assert hasattr(private_logistic(), "predict_proba")
    assert not hasattr(private_logistic(), "transform")
    assert not hasattr(private_logistic(), "set_output")
    ridge = OutputPerturbation(Ridge(), BOTH)
    assert hasattr(ridge, "predict") and not hasattr(ridge, "predict_proba")
    for query in ("feature_importances_", lambda fitted: fitted.n_outputs_):
        forest = OutputPerturbation(RandomForestClassifier(), query, sensitivity=0.1)
        assert not hasattr(forest, "predict") and not hasattr(forest, "score")


def test_read_only_attributes_give_a_value_only():
    X, y = binary()
    model = OutputPerturbation(
        RandomForestClassifier(5), "feature_importances_", None, CHEAP, sensitivity=1e-6
    ).fit(X, y)
    assert not hasattr(model, "estimator_")
    exact = RandomForestClassifier(5, random_state=0).fit(X, y).feature_importances_
    np.testing.assert_allclose(model.value_, exact, atol=1e-5)
    chosen = SelectFromModel(model, importance_getter="value_", max_features=1).fit(
        X, y
    )
    assert chosen.get_support().tolist() == [True, False, False]


# -- how far it moves: sensitivities ------------------------------------------------


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_number_holds_under_either_relation(relation):
    model = private_logistic(
        scenario=RecordScenario(relation=relation),
        accountant=GroupPrivacy(epsilon=0.5, alpha=2.0),
    ).fit(*binary())
    assert model.certificate_.sensitivity == pytest.approx(0.1)
    assert model.noise_.scale == pytest.approx(0.1 * math.sqrt(2.0))


def test_a_sensitivity_tells_relations_apart():
    sensitivity = Sensitivity(add_remove={2: 0.1}, replace={2: 0.15})
    for relation, k, expected in [
        ("add_remove", 1, 0.1),
        ("replace", 1, 0.15),
        ("replace", 3, 0.45),
    ]:
        model = private_logistic(
            scenario=RecordScenario(k=k, relation=relation), sensitivity=sensitivity
        ).fit(*binary())
        assert model.certificate_.sensitivity == pytest.approx(expected)


def test_the_certificate_says_whose_claim_the_sensitivity_is():
    assumptions = private_logistic().fit(*binary()).certificate_.assumptions
    assert Statement("assume.stated_sensitivity_holds", sensitivity=0.1) in assumptions
    assert Statement("assume.shapes_and_labels_public") in assumptions


def test_laplace_noise_needs_the_length_of_the_vector():
    laplace = GroupPrivacy(0.5, alpha=math.inf, noise="laplace")
    model = private_logistic(accountant=laplace)
    with refused(InfiniteDistanceError, "release.vector_length_unknown"):
        model.fit(*binary())
    assert not hasattr(model, "value_")
    model.set_params(n_outputs=4).fit(*binary())
    # an l2 move of 0.1 in four dimensions is an l1 move of 0.2
    assert model.noise_.scale == pytest.approx(0.2 / 0.5)
    with refused(ValueError, "query.length_not_announced", size=4, dim=3):
        model.set_params(n_outputs=3).fit(*binary())
    l1 = private_logistic(
        accountant=laplace, sensitivity=Sensitivity(add_remove={1: 0.1})
    ).fit(*binary())
    assert l1.noise_.scale == pytest.approx(0.1 / 0.5)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_sensitivity(bad):
    with refused(ValueError, ("parameter.is_nan", "parameter.not_positive")):
        private_logistic(sensitivity=bad).fit(*binary())


@pytest.mark.parametrize("query", [[], [3], ""])
def test_bad_query(query):
    with refused(
        ValueError, ("query.attribute_missing_after_fit", "query.no_attribute_named")
    ):
        private_logistic(query).fit(*binary())


def test_estimator_must_be_one():
    with pytest.raises(ValueError, match="'estimator'"):
        OutputPerturbation(BaseEstimator(), sensitivity=0.1).fit(*binary())


# -- how far it moves: scenarios ----------------------------------------------------


def test_nothing_known_names_both_remedies():
    for scenario in (None, RecordScenario(k=2)):
        with refused(UnsupportedError, "parameter.sensitivity_missing"):
            private_logistic(scenario=scenario, sensitivity=None).fit(*binary())


def shifted(secret, other, rng):
    base = rng.normal(size=(40, 3))
    return base + secret, base + other


def test_simulated_worlds():
    scenario = SimulatorScenario(
        lambda secret, rng: rng.normal(secret, size=(40, 3)),
        draw_pair=shifted,
        secrets=[0.0, 0.5],
        n_draws=3,
        confidence=0.9,
    )
    model = OutputPerturbation(
        StandardScaler(), "mean_", scenario, GeneralWasserstein(1.0, alpha=2.0)
    ).fit(binary(40)[0])
    # each of three means moves by 0.5, whatever the worlds
    move = 0.5 * math.sqrt(3)
    assert model.certificate_.sensitivity == pytest.approx(move)
    assert model.noise_.scale == pytest.approx(move * math.sqrt(2.0 / 2.0))


def test_simulated_worlds_have_the_labels_of_the_data():
    def worlds(secret, other, rng):
        X = rng.normal(size=(40, 2))
        return [(X + s, np.where(X[:, 0] > 0, "yes", "no")) for s in (secret, other)]

    X, y = binary(40)
    scenario = SimulatorScenario(
        print, draw_pair=worlds, secrets=[0.0, 1.0], n_draws=2, confidence=0.9
    )
    model = private_logistic(
        scenario=scenario, accountant=GeneralWasserstein(1.0), sensitivity=None
    ).fit(X[:, :2], y)
    expected = 0.0
    rng = np.random.default_rng(0)
    for _ in range(2):
        u, v = (
            LogisticRegression(C=0.1).fit(*world) for world in worlds(0.0, 1.0, rng)
        )
        move = np.r_[(u.coef_ - v.coef_).ravel(), u.intercept_ - v.intercept_]
        expected = max(expected, float(np.linalg.norm(move)))
    assert expected > 0.1
    assert model.certificate_.sensitivity == pytest.approx(expected)


def test_a_shape_that_depends_on_the_records_is_refused():
    scenario = SimulatorScenario(
        print, draw_pair=shifted, secrets=[0.0, 0.5], n_draws=2, confidence=0.9
    )
    model = OutputPerturbation(
        StandardScaler(),
        lambda fitted: fitted.mean_[fitted.mean_ > 0],
        scenario,
        GeneralWasserstein(),
    )
    with refused(ValueError, "query.shape_depends_on_records", parameter="query"):
        model.fit(binary(40)[0])


def test_laws_given_outright():
    X, _ = binary()
    laws = [(Discrete([[0.0] * 3], [1]), Discrete([[0.3, 0.0, 0.4]], [1]))]
    model = OutputPerturbation(
        StandardScaler(), "mean_", LawsScenario(laws), GeneralWasserstein(1.0)
    ).fit(X)
    assert model.noise_.scale == pytest.approx(0.5)
    assert model.certificate_.certified
    with refused(ValueError, "query.length_not_announced", size=2, dim=3):
        model.fit(X[:, :2])


def attribute(informative, n_draws=3, level="dataset"):
    """A prior whose features depend on the secret, or not at all."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(30, 2))
    table = np.r_[np.c_[np.zeros(30), rows], np.c_[np.ones(30), rows + informative]]
    table = pd.DataFrame(table, columns=["sex", "a", "b"])
    table["target"] = np.r_[rows[:, 0] > 0, rows[:, 0] > 0]
    return AttributeScenario(
        "sex", level=level, prior=table, target="target", n_draws=n_draws
    )


def test_attribute_scenario_simulates_and_every_world_has_the_same_seed():
    X, y = binary()
    X = pd.DataFrame(X[:, :2], columns=["a", "b"])
    model = OutputPerturbation(
        RandomForestRegressor(3), "feature_importances_", None, GeneralWasserstein()
    )
    # the same rows under either secret: only a seed could tell the worlds apart, and a
    # shift of zero that is read off samples does not release anything exactly
    model.set_params(scenario=attribute(0.0))
    with refused(UnsupportedError, "noise.samples_do_not_move"):
        model.fit(X, y == "yes")
    assert not hasattr(model, "value_")
    shift = OutputPerturbation(StandardScaler(), "mean_", attribute(1.0, 4))
    shift.set_params(accountant=GeneralWasserstein())
    with pytest.warns(EstimatedGuaranteeWarning):
        shift.fit(X)
    assert shift.certificate_.sensitivity == pytest.approx(math.sqrt(2))
    assert not shift.certificate_.certified


def test_numpys_global_state_is_not_touched():
    X, y = binary()
    model = OutputPerturbation(
        RandomForestClassifier(3), "feature_importances_", sensitivity=0.1
    )
    before = np.random.get_state()[1:3]  # noqa: NPY002
    model.fit(X, y)
    np.testing.assert_equal(np.random.get_state()[1:3], before)  # noqa: NPY002


# -- one table after another --------------------------------------------------------


class _SeenError(Exception):
    """Ends a fit before its release."""


def starting_warm():
    """Kinds of scikit-learn that may go on from their last fit, by name."""
    kinds = {}
    for kind in ("classifier", "regressor"):
        for name, make in all_estimators(kind):
            # not those of others, nor of several targets
            own = make.__module__.startswith("sklearn.") and "Multi" not in name
            if own and "warm_start" in signature(make).parameters:
                kinds[name] = make
    return kinds


WARM = starting_warm()


def said(model):
    """Of some fixed rows."""
    rows = np.eye(3)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    ask = model.decision_function if is_classifier(model) else model.predict
    return ask(rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WARM)
def test_no_table_is_answered_by_what_was_fitted_to_another(name):
    few = {"n_estimators": 3, "max_iter": 5}
    few = {key: n for key, n in few.items() if key in signature(WARM[name]).parameters}
    inner = WARM[name](warm_start=True, **few)
    (X, y), (other, labels) = binary(), binary(seed=1)
    if is_regressor(inner):
        # of counts and of costs too
        y, labels = 1.0 + (y == "yes"), 5.0 + (labels == "yes")
    releases = []

    def seen(plan):
        releases.append(plan.release)
        raise _SeenError

    for _ in range(2):
        model = OutputPerturbation(clone(inner), said, sensitivity=0.1)
        with pytest.raises(_SeenError):
            model._fit_private(X, y, None, None, approve=seen)
    if is_classifier(inner):
        y, labels = (np.unique(y, return_inverse=True)[1] for y in (y, labels))
    warm, cold = releases
    warm.run(other, labels)
    np.testing.assert_array_equal(warm.run(X, y), cold.run(X, y))


# -- labels, columns, and the rest of scikit-learn ----------------------------------


def test_a_class_without_records_is_refused():
    X, y = binary()
    model = private_logistic(classes=["no", "perhaps", "yes"])
    with refused(ValueError, "query.table_lacks_a_class", n_seen=2):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_targets_of_an_estimator_without_one_are_ignored():
    X, y = binary()
    model = OutputPerturbation(KMeans(2), "cluster_centers_", sensitivity=0.1)
    assert model.fit(X, y).predict(X).shape == y.shape


def test_several_targets():
    X, _ = binary()
    model = OutputPerturbation(Ridge(), BOTH, sensitivity=0.1).fit(X, X[:, :2])
    assert model.predict(X).shape == (len(X), 2)


def test_sparse_rows():
    X, y = binary()
    model = private_logistic().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X)), model.predict(X))
    with pytest.raises(TypeError, match="[Ss]parse"):
        OutputPerturbation(
            GaussianNB(), ["theta_", "var_", "class_prior_"], sensitivity=0.1
        ).fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_and_the_secret_column(make):
    X, y = binary()
    features = dict(zip(["a", "b"], X[:, :2].T, strict=True))
    said = attribute(1.0, level="record")
    model = OutputPerturbation(Ridge(), BOTH, said, sensitivity=0.1, random_state=0)
    without = model.fit(make(features), (y == "yes").astype(float)).value_
    secret = {"sex": (X[:, 2] > 0).astype(float)}
    model.fit(make(features | secret), (y == "yes").astype(float))
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.value_["coef_"], without["coef_"])
    np.testing.assert_array_equal(
        model.predict(make(features | secret)), model.predict(make(features))
    )
    np.testing.assert_array_equal(
        model.predict(make(features | {"sex": 1 - secret["sex"]})),
        model.predict(make(features)),
    )


def test_transformers():
    X, _ = binary()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = OutputPerturbation(StandardScaler(), ["mean_", "scale_"], sensitivity=0.1)
    model.set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert out.columns.tolist() == ["a", "b", "c"]
    expected = (X - model.value_["mean_"]) / model.value_["scale_"]
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(model.inverse_transform(out), X)
    assert model.get_feature_names_out().tolist() == ["a", "b", "c"]


def test_parameters_can_be_searched():
    X, y = binary()
    grid = {"accountant__epsilon": [1.0, 4.0], "estimator__C": [0.01, 0.1]}
    search = GridSearchCV(private_logistic(), grid, cv=2, error_score="raise", n_jobs=2)
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_
    assert best.certificate_.epsilon == search.best_params_["accountant__epsilon"]
    assert search.best_params_["estimator__C"] == best.estimator_.C


def test_in_a_pipeline():
    X, y = binary()
    pipeline = make_pipeline(RowNormClipper(), private_logistic()).fit(X, y)
    assert pipeline.predict(X).shape == y.shape
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


def test_the_secret_can_be_routed():
    X, y = binary()
    scenario = AttributeScenario("sex", level="record", prior="empirical", n_draws=2)
    model = OutputPerturbation(
        StandardScaler(), "mean_", scenario, GeneralWasserstein()
    )
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(secret=True)
        pipeline = make_pipeline(RowNormClipper(), model)
        with warned(PrivacyWarning, ESTIMATED):
            pipeline.fit(X, secret=(y == "yes").astype(int))
    assert not pipeline[-1].certificate_.certified


def test_tags_are_those_of_the_estimator_inside():
    assert is_classifier(private_logistic())
    assert is_regressor(OutputPerturbation(Ridge()))
    assert not is_classifier(OutputPerturbation(KMeans()))


def test_a_seed_warns():
    with pytest.warns(SeededNoiseWarning):
        private_logistic(random_state=0).fit(*binary())


def test_a_vector_that_is_not_finite_is_refused():
    model = private_logistic(lambda fitted: fitted.coef_ / 0)
    with (
        np.errstate(divide="ignore"),
        refused(ValueError, "query.value_not_finite"),
    ):
        model.fit(*binary())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        private_logistic(),
        OutputPerturbation(Ridge(), BOTH, sensitivity=0.1),
        OutputPerturbation(StandardScaler(), ["mean_", "scale_"], sensitivity=0.1),
        OutputPerturbation(KMeans(2), "cluster_centers_", sensitivity=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- what would have left without noise, or under a wrong name ------------------------


def test_targets_of_another_length_are_refused():
    book = Schema({"a": (-1, 1), "b": (-1, 1), "y": (0, 1)}, target="y")
    table = pd.DataFrame(np.zeros((20, 2)), columns=["a", "b"])
    for schema in (book, None):
        model = OutputPerturbation(Ridge(), sensitivity=0.1, schema=schema)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(table, np.zeros(19))


class _Seen(Ridge):
    """Remembers the targets that it was fitted on."""

    targets = []

    def fit(self, X, y):
        self.targets.append(np.array(y))
        return super().fit(X, y)


def test_a_target_that_is_missing_is_the_middle_of_the_declared_ones():
    book = Schema({"a": (-1, 1), "y": (10, 30)}, target="y")
    table = pd.DataFrame({"a": np.linspace(-1, 1, 5)})
    _Seen.targets.clear()
    model = OutputPerturbation(_Seen(), "coef_", sensitivity=0.1, schema=book)
    model.fit(table, [12.0, np.nan, 20.0, 45.0, 3.0])
    # and what is outside of the bounds is at the nearest of them
    for seen in _Seen.targets:
        assert seen.tolist() == [12.0, 20.0, 20.0, 30.0, 10.0]
    assert _Seen.targets


@pytest.mark.parametrize(
    "stated, ceiling",
    [
        (0.3, 0.3),
        (Sensitivity(add_remove={1: 0.5}, replace={1: 0.6}), 0.6),
        (Sensitivity(add_remove={math.inf: 0.5}, replace={math.inf: 0.6}), 1.2),
        (None, math.inf),
    ],
)
def test_a_record_moves_the_vector_no_further_than_is_stated_in_l2(stated, ceiling):
    model = OutputPerturbation(Ridge(), sensitivity=stated, n_outputs=4)
    moves = model._record_moves("numbers", 0.5)
    assert moves["shift_ceiling"] == pytest.approx(2 * ceiling)
    assert moves["modulus"](3.0) == 1.5


def test_a_frozen_estimator_is_refused():
    fitted = FrozenEstimator(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))
    model = OutputPerturbation(fitted, "coef_", sensitivity=0.1)
    with refused(ValueError, "query.estimator_frozen"):
        model.fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_search_over_regressors_gets_its_target():
    rng = np.random.default_rng(0)
    table, target = rng.normal(size=(60, 2)), rng.normal(size=60)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 10.0]}, cv=2)
    model = OutputPerturbation(
        search, lambda fitted: fitted.best_estimator_.coef_, sensitivity=0.1
    )
    assert model.fit(table, target).value_.shape == (2,)


@pytest.mark.parametrize("kind", [ApproximateWasserstein, DistributionAwareWasserstein])
def test_the_length_is_asked_for_where_records_move_a_little(kind):
    X = pd.DataFrame({"a": np.linspace(0, 0.5, 20), "b": 0.1})
    y = pd.Series(np.arange(20) % 2, name="label")
    moved = X.assign(a=X["a"] + 0.02)
    prior = pd.concat([X.assign(label=y, s=0), moved.assign(label=y, s=1)])
    model = OutputPerturbation(
        LogisticRegression(C=0.01, fit_intercept=False),
        "coef_",
        AttributeScenario("s", level="record", prior=prior, prior_as="law"),
        kind(delta=1e-5, noise="laplace"),
        sensitivity=0.02,
        lipschitz=0.01,
        classes=[0, 1],
    )
    with refused(InfiniteDistanceError, "release.vector_length_unknown"):
        model.fit(X + 0.005, y)
    model.set_params(n_outputs=2).fit(X + 0.005, y)
    # a label comes with the record: no more than any record does, in l1
    assert 0 < model.certificate_.sensitivity <= 0.02 * np.sqrt(2) * (1 + 1e-9)


def test_laplace_noise_asks_for_the_length_or_another_norm():
    rng = np.random.default_rng(0)
    table, target = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = OutputPerturbation(
        Ridge(),
        "coef_",
        accountant=GroupPrivacy(1.0, alpha=2.0, noise="laplace"),
        sensitivity=0.1,
    )
    with refused(ValueError, "release.vector_length_unknown"):
        model.fit(table, target)
    model.set_params(n_outputs=3).fit(table, target)
    assert model.certificate_.sensitivity == pytest.approx(0.1 * np.sqrt(3))


def test_simulated_tables_without_a_target_are_told_apart():
    prior = pd.DataFrame({"s": [0, 1] * 10, "x": np.linspace(0, 1, 20)})
    scenario = AttributeScenario("s", level="record", prior=prior, n_draws=2)
    model = OutputPerturbation(
        Ridge(), "coef_", scenario, GeneralWasserstein(1.0, alpha=2.0)
    )
    with refused(ScenarioError, "query.target_lacking_in_draws"):
        model.fit(prior[["x"]], np.arange(20.0))
