"""Private logistic regression: its sensitivity, its solver, its place in a pipeline."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    HistoryUniformCap,
    IterationAmplification,
)
from skpuffer.base import Task
from skpuffer.exceptions import (
    CompositionError,
    EmpiricalPriorWarning,
    PrivacyLeakWarning,
    ScenarioError,
    UnsupportedError,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.linear_model import _base_output as _minimiser
from skpuffer.linear_model._base_linear import LabelledRecord, ModelRows
from skpuffer.linear_model._base_output import Objective, minimise
from skpuffer.linear_model._minimiser_constants import (
    LogisticConstants,
    MultinomialConstants,
)
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion, compose
from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, PrevalenceScenario, RecordScenario
from skpuffer.summary import PrivateStandardScaler
from skpuffer.training import Logistic, Multinomial
from tests.refused import refused, warned

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)


def constants_of(n_records, n_classes, radius, C):
    known = {"n_records": n_records, "radius": radius, "C": C}
    if n_classes == 2:
        return LogisticConstants(loss=Logistic(), **known)
    return MultinomialConstants(loss=Multinomial(), n_classes=n_classes, **known)


def fitted_release(estimator, X, y):
    """The release an estimator would make of a table, and the model rows it reads."""
    estimator = clone(estimator)
    X, codes, _ = estimator._validate(X, y)
    context = PublicContext(
        n_records=len(X),
        n_features=X.shape[1],
        classes=tuple(estimator.classes_.tolist()),
    )
    task = Task(scenario=RecordScenario(), accountant=NO_NOISE, context=context, X=X)
    return estimator._output_release(task), X, codes


def table(rng, n, d, n_classes):
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 3)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@given(seed=st.integers(0, 2**32 - 1), C=st.floats(0.01, 30), intercept=st.booleans())
def test_no_replaced_record_moves_the_minimiser_further(n_classes, seed, C, intercept):
    rng = np.random.default_rng(seed)
    X, y = table(rng, 12, 2, n_classes)
    model = PrivateLogisticRegression(C=C, data_norm=1.5, fit_intercept=intercept)
    release, X, y = fitted_release(model, X, y)
    bound = release.record_move(np.inf, 2, "replace") + release.total_slack(2)
    one = release.run(X, y)
    X2, y2 = X.copy(), y.copy()
    X2[-1], y2[-1] = rng.normal(size=2) * 3, rng.integers(n_classes)
    assert np.linalg.norm(one - release.run(X2, y2)) <= bound
    removed = release.record_move(np.inf, 2, "add_remove") + release.total_slack(2)
    assert np.linalg.norm(one - release.run(X[:-1], y[:-1])) <= removed


def test_the_sensitivity_is_not_loose_by_a_factor_of_two():
    # one steep record on its own: the move is nearly C times the gradient bound
    X = np.array([[1.0], [1.0]])
    model = PrivateLogisticRegression(C=1e-3, fit_intercept=False, tol=1e-9)
    release, X, _ = fitted_release(model, X, np.array([0, 1]))
    moved = np.abs(release.run(X, np.array([1, 1])) - release.run(X, np.array([0, 0])))
    bound = 2 * release.record_move(np.inf, 2, "replace")
    # at w near 0 the loss has half its largest slope
    assert 0.49 < moved[0] / bound <= 0.5001


@given(
    seed=st.integers(0, 2**32 - 1), b=st.floats(1e-3, 0.5), n_classes=st.integers(2, 3)
)
def test_a_record_that_moves_little_moves_the_minimiser_little(seed, b, n_classes):
    rng = np.random.default_rng(seed)
    X, y = table(rng, 10, 3, n_classes)
    model = PrivateLogisticRegression(C=0.5, data_norm=1.0)
    release, X, y = fitted_release(model, X, y)
    X2 = X.copy()
    step = rng.normal(size=3)
    X2[0] = X[0] + b * step / np.linalg.norm(step)
    shift = np.linalg.norm(
        release.contribution(X[:1], y[:1]) - release.contribution(X2[:1], y[:1])
    )
    allowed = release.record_move(shift, 2, "replace") + release.total_slack(2)
    assert np.linalg.norm(release.run(X, y) - release.run(X2, y)) <= allowed


def test_constants_in_closed_form():
    constants = constants_of(n_records=50, n_classes=2, radius=2.0, C=0.1)
    assert constants.lipschitz == 2.0
    assert constants.weight_norm == pytest.approx(np.sqrt(2 * np.log(2) * 5.0))
    score = 2.0 * constants.weight_norm
    steep = constants.gradient_lipschitz
    assert steep == pytest.approx((1 + score) ** 2 / (4 * score))
    assert steep < 1 + score / 4
    assert constants_of(1, 2, 0.5, 1e-3).gradient_lipschitz == 1.0  # a score below 1
    # by how far it moves, then the longer of two gradients, then their difference
    moves = {0.0: 0.0, 0.1: 0.1 * steep, 1.9: 2.0, 3.0: 3.0, 4.0: 4.0, np.inf: 4.0}
    for shift, expected in moves.items():
        assert constants.move(shift) == pytest.approx(0.1 * expected)
    # beyond, distances take longer to find than they gain
    assert constants.shift_ceiling == 3.0
    several = constants_of(n_records=1000, n_classes=3, radius=2.0, C=0.1)
    steep = np.sqrt(2) + several.largest_score / 2
    assert steep == pytest.approx(np.sqrt(2) + np.sqrt(2 * np.log(3) * 100))
    moves = {0.1: 0.1 * steep, 1.0: 4 + np.sqrt(2), 2.0: np.sqrt(32)}
    for shift, expected in moves.items():
        assert several.move(shift) == pytest.approx(0.1 * expected)
    assert several.shift_ceiling == pytest.approx(4 - 2 * np.sqrt(2))


@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.floats(1e-3, 1.0),
    n_classes=st.sampled_from([2, 3]),
)
def test_no_gradient_moves_further(seed, C, n_classes):
    """At any coefficients that a minimiser may be, between any two records."""
    rng = np.random.default_rng(seed)
    constants = constants_of(20, n_classes, 1.0, C)
    rows = rng.normal(size=(40, 2))
    rows *= rng.uniform(size=(40, 1)) ** 0.3 / np.linalg.norm(rows, axis=1)[:, None]
    rows[20:] = rows[:20] + rng.choice([0.03, 0.3, 3.0]) * rows[20:]
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    size = 2 * constants.n_outputs
    w = rng.normal(size=size)
    w *= constants.weight_norm / np.linalg.norm(w)
    y = np.tile(rng.integers(n_classes, size=20), 2)
    gradients = np.array(
        [
            Objective(x[None], k[None], constants.loss, C, constants.n_outputs)(w)[1]
            for x, k in zip(rows, y, strict=True)
        ]
    )
    moved = np.linalg.norm(gradients[:20] - gradients[20:], axis=1)
    shifts = np.linalg.norm(rows[:20] - rows[20:], axis=1)
    allowed = [constants.move(b) for b in shifts]
    assert np.all(moved <= np.multiply(allowed, 1 + 1e-9))


def test_the_minimiser_stays_within_its_norm_bound():
    rng = np.random.default_rng(0)
    for n_classes in (2, 4):
        X, y = table(rng, 40, 3, n_classes)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        constants = constants_of(40, n_classes, 1.0, 5.0)
        w = minimise(X, y, constants, 1e-8, 500)
        assert np.linalg.norm(w) <= constants.weight_norm


def test_records_of_different_labels_are_beyond_the_ceiling():
    constants = constants_of(30, 3, 1.0, 1.0)
    record = LabelledRecord(ModelRows(1.0, 0.0), 3, constants.shift_ceiling)
    X = np.zeros((3, 2))
    z = record(X, np.arange(3))
    gaps = np.linalg.norm(z[:, None] - z[None], axis=2)[np.triu_indices(3, 1)]
    assert np.all(gaps >= constants.shift_ceiling * (1 - 1e-12))


@pytest.mark.parametrize("loader", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_without_noise_it_is_scikit_learns(loader, C):
    X, y = loader(return_X_y=True)
    X = scale(X)
    model = PrivateLogisticRegression(
        accountant=NO_NOISE, C=C, data_norm=1e3, tol=1e-6
    ).fit(X, y)
    augmented = np.hstack([X, np.ones((len(X), 1))])
    twin = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
    twin.fit(augmented, y)
    np.testing.assert_allclose(model.coef_, twin.coef_[:, :-1], atol=2e-4)
    np.testing.assert_allclose(model.intercept_, twin.coef_[:, -1], atol=2e-4)
    np.testing.assert_allclose(
        model.predict_proba(X), twin.predict_proba(augmented), atol=1e-3
    )
    assert np.all(model.predict(X) == twin.predict(augmented))


def test_sparse_rows_are_dense_rows():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.where(np.abs(scale(X)) > 0.7, scale(X), 0.0)
    fits = [
        PrivateLogisticRegression(random_state=0, data_norm=2.0).fit(rows, y)
        for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X))
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(fits[0].coef_, other.coef_, atol=1e-5)
    np.testing.assert_array_equal(
        fits[0].predict(X), fits[0].predict(sparse.csr_matrix(X))
    )


def test_a_public_class_may_be_absent_from_the_data():
    X, y = load_iris(return_X_y=True)
    keep = y < 2
    model = PrivateLogisticRegression(classes=[0, 1, 2], accountant=NO_NOISE, C=1.0)
    model.fit(X[keep], y[keep])
    assert model.coef_.shape == (3, 4)
    assert set(model.predict(X[keep])) <= {0, 1, 2}


def test_labels_that_no_class_names_count_as_nothing():
    X, y = load_iris(return_X_y=True)
    keep = y < 2
    model = PrivateLogisticRegression(
        classes=[0, 1], solver="output", accountant=NO_NOISE, C=1.0
    )
    among, alone = (model.fit(*table).coef_ for table in ((X, y), (X[keep], y[keep])))
    np.testing.assert_allclose(among, alone, atol=1e-3)


@pytest.mark.parametrize("max_iter", [1, 1000])
def test_the_tolerance_is_met_however_few_the_iterations(max_iter):
    """Failing for some tables and not for others would tell them apart."""
    X, y = load_breast_cancer(return_X_y=True)
    model = PrivateLogisticRegression(
        solver="output", max_iter=max_iter, tol=1e-9, C=10.0, accountant=NO_NOISE
    ).fit(scale(X), y)
    release, rows, codes = fitted_release(model, scale(X), y)
    w = release.run(rows, codes)
    gradient = Objective(ModelRows(1.0, 1.0)(rows), codes, Logistic(), 10.0)(w)[1]
    assert np.linalg.norm(gradient) <= 1e-9 * 10.0 * np.sqrt(2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_descent_alone_meets_the_tolerance(n_classes, monkeypatch):
    """Where the quick stages find nothing at all, in as many steps as are allowed."""
    monkeypatch.setattr(_minimiser, "_newton", lambda w, *_: np.full_like(w, 1e3))
    rng = np.random.default_rng(0)
    constants = constants_of(200, n_classes, 3.0, 5.0)
    for scale_of_rows in (1.0, 1e-3):
        X, y = table(rng, 200, 4, n_classes)
        X *= 3 * scale_of_rows / np.linalg.norm(X, axis=1, keepdims=True)
        w = minimise(X, y, constants, 1e-6, 10)
        objective = Objective(X, y, constants.loss, 5.0, constants.n_outputs)
        gradient = objective.gradient(w)
        assert np.linalg.norm(gradient) <= 1e-6 * 5.0 * constants.lipschitz


@pytest.mark.parametrize("times", [0.5, 1.5, 10.0, 1e4])
def test_what_stops_a_little_above_the_tolerance_goes_on(times, monkeypatch):
    X, y = table(np.random.default_rng(0), 200, 4, 2)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    constants = constants_of(200, 2, 1.0, 5.0)
    tol, exact = 1e-4 * 5.0 * constants.lipschitz, minimise(X, y, constants, 1e-9, 99)
    objective = Objective(X, y, constants.loss, 5.0, constants.n_outputs)
    gradient = objective.gradient(exact + 1e-6)
    stopped = exact + 1e-6 * times * tol / np.linalg.norm(gradient)
    monkeypatch.setattr(_minimiser, "_newton", lambda w, *_: stopped)
    near = np.linalg.norm(objective.gradient(stopped))
    assert near == pytest.approx(times * tol, rel=0.5)
    found = objective.gradient(minimise(X, y, constants, 1e-4, 10))
    assert np.linalg.norm(found) <= tol


def test_a_tolerance_below_rounding_is_refused():
    X, y = load_breast_cancer(return_X_y=True)
    model = PrivateLogisticRegression(solver="output", tol=1e-10)
    with refused(ValueError, "linear.tol_below_exactness"):
        model.fit(scale(X), y)
    assert not hasattr(model, "n_features_in_")


def test_data_norm_read_from_the_data_warns_and_is_an_estimate():
    X, y = load_iris(return_X_y=True)
    model = PrivateLogisticRegression(data_norm="empirical")
    with warned(PrivacyLeakWarning, "linear.data_norm_read_from_data"):
        model.fit(X, y)
    assert model.certificate_.notion is Notion.ESTIMATED
    assert model.data_norm == "empirical"
    model.predict(X)


# -- under an attribute scenario ------------------------------------------------------


def secret_table(n=240, seed=0, spread=0.02):
    """Rows that hardly depend on the secret, and so are cheap to hide it in."""
    rng = np.random.default_rng(seed)
    base = rng.choice([-0.6, 0.0, 0.6], size=(n, 2))
    secret = rng.integers(2, size=n)
    frame = pd.DataFrame(base, columns=["a", "b"])
    frame["a"] += spread * secret
    frame["secret"] = np.where(secret == 1, "yes", "no")
    frame["target"] = (base[:, 0] > 0).astype(int)
    return frame


def support_table(spread=0.02):
    """A prior under which the secret moves a record by exactly `spread`."""
    rows = [
        (a + spread * s, b, "yes" if s else "no", int(a > 0))
        for a in (-0.6, 0.0, 0.6)
        for b in (-0.6, 0.0, 0.6)
        for s in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["a", "b", "secret", "target"])


def scenario_of(prior, **options):
    options = {"level": "record", "prior_as": "law", "target": "target"} | options
    return AttributeScenario("secret", prior=prior, **options)


def test_a_secret_that_moves_a_record_little_costs_little():
    frame = secret_table()
    X, y = frame.drop(columns=["target"]), frame["target"]
    accountant = GroupPrivacy(epsilon=1.0, alpha=4.0)
    model = PrivateLogisticRegression(scenario_of(support_table()), accountant, C=0.1)
    model.fit(X, y)
    certificate = model.certificate_
    constants = constants_of(len(X), 2, float(np.hypot(1, 1)), 0.1)
    slack = 2 * 1e-3 * constants.C * constants.lipschitz
    assert certificate.sensitivity == pytest.approx(constants.move(0.02) + slack)
    assert certificate.gain > 5
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    # a secret that takes the label with it gains the little that a coupling of x with
    # -x does: z moves by two along the intercept alone
    told = support_table(spread=0.0)
    told["target"] = (told["secret"] == "yes").astype(int)
    flipped = PrivateLogisticRegression(scenario_of(told), accountant, C=0.1).fit(X, y)
    assert flipped.certificate_.gain == pytest.approx(np.sqrt(2), rel=1e-3)
    # nothing where z cannot move further, and the certificate says so
    far = told.assign(a=np.where(told["secret"] == "yes", 0.9, -0.9) * 9, b=0.0)
    far["target"] = 1
    narrow = PrivateLogisticRegression(
        scenario_of(far), accountant, C=0.1, fit_intercept=False
    ).fit(X, y)
    assert narrow.certificate_.gain == pytest.approx(1.0)
    assert "none" in str(narrow.certificate_)


def test_the_secret_column_changes_nothing_but_is_dropped():
    frame = secret_table()
    X, y = frame.drop(columns=["target"]), frame["target"]
    make = PrivateLogisticRegression(
        scenario_of(support_table()),
        GeneralWasserstein(1.0, alpha=4.0),
        random_state=0,
    )
    one, other = clone(make).fit(X, y), clone(make).fit(X[["a", "b"]], y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert list(one.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(one.predict(X), one.predict(X[["a", "b"]]))
    frames = pl.DataFrame({c: X[c].to_numpy() for c in X})
    third = clone(make).fit(frames, y.to_numpy())
    np.testing.assert_array_equal(one.coef_, third.coef_)
    with refused(ScenarioError, "attribute.values_not_in_prior"):
        clone(make).fit(X.assign(secret="maybe"), y)


def test_a_prior_without_target_is_the_worst_case():
    frame = secret_table()
    X, y = frame[["a", "b"]], frame["target"].rename("unheard of")
    prior = support_table().drop(columns="target")
    model = PrivateLogisticRegression(
        scenario_of(prior, target=None), GroupPrivacy(1.0, alpha=2.0)
    ).fit(X, y)
    assert model.certificate_.gain == pytest.approx(1.0)
    assert any("no target" in str(text) for text in model.certificate_.assumptions)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.EstimatedGuaranteeWarning")
def test_empirical_prior_by_metadata_routing():
    frame = secret_table()
    X, y = frame[["a", "b"]].to_numpy(), frame["target"].to_numpy()
    secret = frame["secret"].to_numpy()
    model = PrivateLogisticRegression(
        AttributeScenario("secret", level="record", prior="empirical"),
        GeneralWasserstein(1.0, alpha=2.0),
    )
    with refused(
        ScenarioError, "attribute.empirical_secret_not_passed", column="secret"
    ):
        clone(model).fit(X, y)
    with pytest.warns(EmpiricalPriorWarning):
        fitted = clone(model).fit(X, y, secret=secret)
    assert fitted.certificate_.notion is Notion.ESTIMATED or (
        fitted.certificate_.gain == pytest.approx(1.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with config_context(enable_metadata_routing=True):
            routed = clone(model).set_fit_request(secret=True)
            search = GridSearchCV(
                routed, {"accountant__epsilon": [1.0, 2.0]}, error_score="raise", cv=2
            )
            search.fit(X, y, secret=secret)
            piped = make_pipeline(clone(routed))
            piped.fit(X, y, secret=secret)
        off = GridSearchCV(
            model, {"accountant__epsilon": [1.0]}, error_score="raise", cv=2
        )
        off.fit(X, y, secret=secret)
    assert hasattr(search.best_estimator_, "certificate_")


# -- in scikit-learn ------------------------------------------------------------------


def test_budget_search_on_a_default_estimator_in_two_processes():
    X, y = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(
        PrivateLogisticRegression(data_norm=3.0),
        {"accountant__epsilon": [0.01, 10.0]},
        n_jobs=2,
        cv=3,
        error_score="raise",
    ).fit(scale(X), y)
    low, high = search.cv_results_["mean_test_score"]
    assert high > 0.9
    assert high > low
    assert search.best_estimator_.certificate_.epsilon == 10.0


def test_scaler_and_model_compose_where_the_rules_allow():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    bounds = (np.zeros(4), np.array([30.0, 40.0, 200.0, 2600.0]))

    def pipeline(scenario, accountant):
        return make_pipeline(
            PrivateStandardScaler(scenario, accountant, bounds=bounds),
            PrivateLogisticRegression(scenario, accountant, data_norm=2.0),
        ).fit(X, y)

    record = pipeline(RecordScenario(), GroupPrivacy(epsilon=0.5, alpha=4.0))
    parts = [step.certificate_ for _, step in record.steps]
    total = compose(parts)
    assert total.epsilon == pytest.approx(1.0)
    assert total.alpha == 4.0
    assert total.notion is Notion.RENYI_DP
    assert total.n_releases == 2
    assert isinstance(record[0].noise_, GaussianNoise)
    # exactly one Gaussian of the summed squares
    mu = np.hypot(*[c.curve.gaussian_mu for c in parts])
    assert total.curve.gaussian_mu == pytest.approx(mu)
    assert total.to_approximate(1e-5).epsilon < sum(
        c.to_approximate(5e-6).epsilon for c in parts
    )
    wasserstein = pipeline(RecordScenario(), GeneralWasserstein(0.5, alpha=4.0))
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose(step.certificate_ for _, step in wasserstein.steps)
    # what is promised to two records is promised to one, and no more
    two = pipeline(RecordScenario(k=2), GroupPrivacy(epsilon=0.5, alpha=4.0))
    mixed = compose([parts[0], two[1].certificate_])
    assert mixed.coupling_id == parts[0].coupling_id
    other = pipeline(
        RecordScenario(relation="replace"), GroupPrivacy(epsilon=0.5, alpha=4.0)
    )
    with refused(CompositionError, "compose.couplings_differ"):
        compose([parts[0], other[1].certificate_])


def test_cross_validate_returns_certificates():
    X, y = load_iris(return_X_y=True)
    result = cross_validate(
        PrivateLogisticRegression(), X, y, cv=3, return_estimator=True
    )
    assert {e.certificate_.epsilon for e in result["estimator"]} == {1.0}


@pytest.mark.parametrize(
    "accountant, reason",
    [
        (HistoryUniformCap(alpha=4.0), "history.count_uncertain_at_order"),
        (IterationAmplification(alpha=4.0), "event.count_uncertain_at_order"),
    ],
)
def test_who_reads_gradients_alone_says_why_it_refuses_them(accountant, reason):
    """And not that coefficients are a query, of which it knows nothing."""
    scenario = PrevalenceScenario(None, 0.3, 0.35, law="binomial")
    X, y = np.eye(40, 2), np.arange(40) % 2
    with refused(UnsupportedError, reason):
        PrivateLogisticRegression(scenario, accountant).fit(X, y)
