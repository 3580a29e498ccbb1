"""Estimators trained by noisy gradients: what is accounted is what runs."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, scale

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.exceptions import CompositionError, UnsupportedError
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import compose
from skpuffer.releases import (
    SAMPLING_SCHEMES,
    FullBatchSampling,
    GradientRelease,
    Optimiser,
    PoissonSampling,
    WithReplacementSampling,
)
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import OptimiserRun, Training
from tests.refused import refused

CLASSIFIERS = [
    PrivateLogisticRegression(),
    PrivateSGDClassifier(),
    PrivateSGDClassifier(loss="hinge"),
    PrivateSGDClassifier(loss="huber_hinge"),
    PrivateLinearSVC(),
    PrivateMLPClassifier(),
    PrivateMLPClassifier(clip_by="layer", activation="relu"),
]


REGRESSORS = [PrivateSGDRegressor, PrivateRidge]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return Normalizer().fit_transform(scale(X)), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return Normalizer().fit_transform(X - 8), y


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_classifiers_learn_two_classes_and_ten(model, cancer, digits):
    for (X, y), least in ((cancer, 0.9), (digits, 0.6)):
        fitted = clone(model).set_params(random_state=0).fit(X, y)
        assert fitted.score(X, y) > least
        shape = (len(X),) if len(fitted.classes_) == 2 else (len(X), 10)
        assert fitted.decision_function(X).shape == shape


@pytest.mark.parametrize("kind", [PrivateSGDClassifier, PrivateSGDRegressor])
def test_weights_are_shares_of_their_bound_whatever_others_weigh(kind):
    """One step from zero is the sum of weighted gradients."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)) / 3, np.arange(200) % 2
    of_target = {} if kind is PrivateSGDClassifier else {"target_bounds": (0, 1)}
    model = kind(
        accountant=PrivacyLoss(1e6, 1e-9),
        weight_bounds=(0, 8),
        training=Training(n_steps=1, sampling="full_batch", learning_rate=1.0),
        random_state=0,
        **of_target,
    )
    found = [clone(model).fit(X, y, sample_weight=np.full(200, w)) for w in (2, 4, 8)]
    one, two, four = (each.coef_ for each in found)
    np.testing.assert_allclose(two, 2 * one, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(four, 4 * one, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("sampling", SAMPLING_SCHEMES)
def test_the_accounted_release_is_the_one_that_runs(sampling, cancer):
    X, y = cancer
    records = []

    class Recording(PrivateSGDClassifier):
        def _execute(self, task, release, noise, rng):
            self.executed = release
            return super()._execute(task, release, noise, rng, record=records)

    model = Recording(
        accountant=PrivacyLoss(epsilon=2.0, delta=1e-5),
        training=Training(
            sampling=sampling,
            batch_size=None if sampling == "full_batch" else 57,
            n_steps=12,
        ),
        random_state=3,
    ).fit(X, y)
    release = model.release_
    assert release == model.executed
    assert len(records) == release.n_steps == 12
    # the noise that was drawn is the noise that is certified, for this very release
    again = PrivacyLoss(epsilon=2.0, delta=1e-5).certify(
        model.noise_, release, RecordScenario()
    )
    assert again.epsilon <= model.certificate_.epsilon
    assert again.epsilon == pytest.approx(model.certificate_.epsilon, rel=1e-3)
    draws = np.array([step.noise for step in records])
    assert draws.std() == pytest.approx(model.noise_.scale, rel=0.2)
    # batches: the scheme's own law, replayed from the seed
    _, batch_rng, noise_rng = np.random.default_rng(3).spawn(3)
    replayed = list(release.sampling.batches(release, batch_rng))
    for step, index in zip(records, replayed, strict=True):
        if sampling == "full_batch":
            assert step.index is None
        else:
            np.testing.assert_array_equal(step.index, index)
        size = len(X) if step.index is None else len(step.index)
        longest = release.total_clip_norm * size
        assert np.linalg.norm(step.clipped_sum) <= longest * (1 + 1e-9)
        np.testing.assert_array_equal(
            step.noise, model.noise_.sample(draws.shape[1], noise_rng)
        )
    # and the parameters are what the optimiser makes of those sums and no more
    optimiser = release.optimiser
    run = OptimiserRun(optimiser, np.zeros(draws.shape[1]), 12, np.arange(31) < 30)
    for step in records:
        run.step((step.clipped_sum + step.noise) / release.divisor)
    coef = run.result()
    np.testing.assert_allclose(model.coef_.ravel(), coef[:30])
    np.testing.assert_allclose(model.intercept_, 0.5 * coef[30:])


def test_the_optimiser_is_the_one_asked_for(cancer):
    model = PrivateSGDClassifier(
        training=Training(learning_rate=0.5, momentum=0.3, average=True),
        alpha=0.1,
        random_state=0,
    ).fit(*cancer)
    asked = Optimiser(learning_rate=0.5, momentum=0.3, average=1.0, l2=0.1)
    assert model.release_.optimiser == asked


def test_epochs_and_steps(cancer):
    X, y = cancer
    model = PrivateSGDClassifier(
        training=Training(batch_size=100), max_iter=3, random_state=0
    ).fit(X, y)
    assert model.release_.sampling.name == "fresh_bins"
    assert model.n_steps_ == 3 * 6
    assert model.n_iter_ == 3
    model.set_params(training__n_steps=4).fit(X, y)
    # of less than an epoch bins are not for sure the cheaper
    assert model.release_.sampling.name == "poisson"
    assert model.n_steps_ == 4


def test_a_seed_repeats_the_run(cancer):
    one, two = (
        PrivateSGDClassifier(training=Training(batch_size=50), random_state=1)
        .fit(*cancer)
        .coef_
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_agree(cancer, dtype):
    X, y = cancer
    X = X.astype(dtype)
    dense = PrivateSGDClassifier(random_state=0).fit(X, y)
    sparse_ = PrivateSGDClassifier(random_state=0).fit(sparse.csr_matrix(X), y)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(dense.coef_, sparse_.coef_, rtol=tolerance, atol=1e-4)
    np.testing.assert_array_equal(dense.predict(X), dense.predict(sparse.csr_matrix(X)))


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(
    "model",
    [
        PrivateSGDClassifier(random_state=0),
        PrivateLogisticRegression(random_state=0, training=Training(batch_size=30)),
        PrivateLinearSVC(random_state=0),
        PrivateRidge(random_state=0, target_bounds=(0, 1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_entries_in_any_order_and_in_parts_are_the_same_table(model, copies):
    """Such as scikit-learn takes: sorted and added up, in a copy."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.4, rng.normal(size=(200, 6)), 0.0)
    y = (X[:, 0] > 0).astype(int)
    at = np.tile(np.argwhere(X), (copies, 1))
    order = np.lexsort([rng.random(len(at)), at[:, 0]])  # any within a row
    (rows, columns), ends = at[order].T, np.cumsum(np.bincount(at[:, 0], minlength=200))
    parts = sparse.csr_array(
        (X[rows, columns] / copies, columns, np.append(0, ends)), shape=X.shape
    )
    assert not parts.has_canonical_format
    before = parts.data.copy(), parts.indices.copy()
    expected = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(parts, y).coef_, expected, atol=1e-12)
    np.testing.assert_allclose(model.predict(parts), model.predict(X), atol=1e-12)
    np.testing.assert_array_equal(parts.data, before[0])
    np.testing.assert_array_equal(parts.indices, before[1])


def test_the_unit_of_the_data_does_not_matter(cancer):
    X, y = cancer
    one = PrivateSGDClassifier(random_state=0).fit(X, y)
    other = PrivateSGDClassifier(data_norm=100.0, random_state=0).fit(100 * X, y)
    np.testing.assert_allclose(other.coef_ * 100, one.coef_)
    assert other.noise_ == one.noise_


def test_warm_start_goes_on_and_says_so(cancer):
    X, y = cancer
    cold = PrivateSGDClassifier(training=Training(n_steps=3), random_state=0)
    warm = clone(cold).set_params(training__warm_start=True)
    first = cold.fit(X, y).coef_.copy()
    np.testing.assert_array_equal(warm.fit(X, y).coef_, first)
    warm = clone(warm).set_params(random_state=None).fit(X, y)
    assert not any("released before" in str(a) for a in warm.certificate_.assumptions)
    one = warm.certificate_
    assert np.any(warm.fit(X, y).coef_ != first)
    assert any("released before" in str(a) for a in warm.certificate_.assumptions)
    # what is published shows both runs, and so it is of both: then of all three
    two = warm.certificate_
    assert two.n_releases == 2
    assert 1 < two.to_approximate(1e-5).epsilon < 2
    assert two.epsilon == compose([one, one]).epsilon
    assert warm.fit(X, y).certificate_.epsilon == compose([one] * 3).epsilon
    # however little the last of them spends
    warm.set_params(accountant=PrivacyLoss(0.01)).fit(X, y)
    assert warm.certificate_.n_releases == 4
    assert warm.certificate_.epsilon > two.epsilon
    with refused(
        CompositionError, "linear.start_certificate_not_addable", name="warm_start"
    ):
        warm.set_params(scenario=RecordScenario(relation="relabel")).fit(X, y)
    assert not hasattr(warm, "certificate_")
    warm.set_params(scenario=None).fit(X, y)
    np.testing.assert_array_equal(cold.fit(X, y).coef_, first)
    with refused(ValueError, "linear.warm_start_shape_mismatch"):
        warm.fit(X[:, :5], y)


def test_partial_fit_is_refused_with_the_reason(cancer):
    model = PrivateSGDClassifier()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as raised:
        model.partial_fit(*cancer)
    assert "set before" in str(raised.value.__cause__)


def test_probabilities_only_of_a_likelihood(cancer):
    X, y = cancer
    model = PrivateSGDClassifier(random_state=0).fit(X, y)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert not hasattr(PrivateSGDClassifier(loss="hinge"), "predict_proba")


def test_verbose_shows_progress(cancer, capsys):
    PrivateSGDClassifier(training=Training(n_steps=3, verbose=1), random_state=0).fit(
        *cancer
    )
    assert "3/3" in capsys.readouterr().err


@pytest.mark.parametrize(
    "X",
    [
        np.vstack([np.full((3, 2), 1e200), np.zeros((2, 2)), -np.full((3, 2), 1e200)]),
        np.column_stack([np.ones(8), np.arange(8.0)]),
        np.arange(80.0).reshape(8, 10),
    ],
    ids=["huge and zero rows", "a constant column", "more features than records"],
)
@pytest.mark.parametrize(
    "model",
    [*CLASSIFIERS, *(make(target_bounds=(-1, 1)) for make in REGRESSORS)],
    ids=repr,
)
def test_awkward_tables_stay_finite(X, model):
    y = np.array([0, 1] * 4)
    fitted = clone(model).set_params(random_state=0).fit(X, y)
    assert np.all(np.isfinite(fitted.predict(X)))
    if isinstance(fitted, PrivateMLPClassifier):
        parameters = [*fitted.coefs_, *fitted.intercepts_]
    else:
        parameters = [fitted.coef_, fitted.intercept_]
    for released in parameters:
        assert np.all(np.isfinite(released))


def test_a_batch_larger_than_the_table_and_absent_classes():
    X, y = np.eye(4), np.array([0, 0, 0, 0])
    model = PrivateSGDClassifier(
        training=Training(batch_size=100), classes=[0, 1, 2], random_state=0
    ).fit(X, y)
    assert model.release_.batch_size == 4
    assert model.coef_.shape == (3, 4)
    empty = sparse.csr_matrix((6, 3))
    assert PrivateSGDClassifier(random_state=0, classes=[0, 1]).fit(
        empty, [0, 1] * 3
    ).coef_.shape == (1, 3)


def test_in_a_grid_over_budgets(cancer):
    grid = GridSearchCV(
        make_pipeline(Normalizer(), PrivateSGDClassifier(random_state=0)),
        {"privatesgdclassifier__accountant__epsilon": [0.1, 10.0]},
        error_score="raise",
        cv=3,
    ).fit(*cancer)
    assert grid.best_params_["privatesgdclassifier__accountant__epsilon"] == 10.0


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"training__clip_norm": 0.0}, "clip_norm"),
        ({"training__clip_norm": np.inf}, "clip_norm"),
        ({"training__batch_size": 0}, "batch_size"),
        ({"training__n_steps": 0}, "n_steps"),
        ({"training__sampling": "cyclic"}, "sampling"),
        ({"training__sampling": "full_batch", "training__batch_size": 0}, "batch_size"),
        ({"training__learning_rate": 0.0}, "learning_rate"),
        ({"training__momentum": 1.0}, "momentum"),
        ({"training__schedule": "annealed"}, "schedule"),
        ({"training__schedule": 1}, "schedule"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"alpha": -1.0}, "alpha"),
    ],
)
def test_bad_parameters_are_named(changes, match, cancer):
    model = PrivateSGDClassifier().set_params(**changes)
    with pytest.raises(ValueError, match=match):
        model.fit(*cancer)
    assert not vars(model).keys() & {"coef_", "certificate_", "release_"}


def test_one_clip_norm_is_all_a_linear_model_takes(cancer):
    model = PrivateSGDClassifier(training=Training(clip_norm=(0.3, 0.4)))
    with refused(TypeError, "parameter.not_real_number", name="clip_norm"):
        model.fit(*cancer)


@pytest.mark.parametrize(
    "scheme, asked, taken",
    [
        (FullBatchSampling(), None, 569),
        (FullBatchSampling(), 57, 569),
        (PoissonSampling(), None, 56),
        (PoissonSampling(), 57, 57),
        (PoissonSampling(), 1000, 569),
        (WithReplacementSampling(), None, 56),
        # draws with replacement may exceed the table
        (WithReplacementSampling(), 1000, 1000),
    ],
    ids=str,
)
def test_a_scheme_is_the_same_by_its_name(scheme, asked, taken, cancer):
    by_name, by_itself = (
        PrivateSGDClassifier(
            training=Training(sampling=sampling, batch_size=asked, n_steps=3),
            random_state=0,
        ).fit(*cancer)
        for sampling in (scheme.name, scheme)
    )
    assert by_itself.release_ == by_name.release_
    assert by_itself.release_.batch_size == taken
    np.testing.assert_array_equal(by_itself.coef_, by_name.coef_)


def test_a_batch_of_a_small_table_has_a_record_at_least():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    model = PrivateSGDClassifier(
        training=Training(sampling="fixed_size", n_steps=2), random_state=0
    )
    assert model.fit(X, y).release_.batch_size == 1


def test_a_scheme_without_a_dominating_pair_is_refused(cancer):
    class Cyclic(PoissonSampling):
        name = "cyclic"

    model = PrivateSGDClassifier(training=Training(sampling=Cyclic(), n_steps=3))
    with refused(UnsupportedError, "sampling.scheme_unknown", scheme_type="Cyclic"):
        model.fit(*cancer)
    assert not hasattr(model, "certificate_")


def test_accountants_of_single_vectors_are_refused(cancer):
    with refused(UnsupportedError, "accountant.remedy_other_accountants"):
        PrivateSGDClassifier(accountant=GroupPrivacy()).fit(*cancer)


def test_logistic_regression_takes_the_solver_that_fits(cancer):
    X, y = cancer
    assert hasattr(PrivateLogisticRegression().fit(X, y), "release_")
    output = PrivateLogisticRegression(accountant=GroupPrivacy(delta=1e-5)).fit(X, y)
    assert not hasattr(output, "release_")
    output = PrivateLogisticRegression(solver="output").fit(X, y)
    assert not hasattr(output, "release_")
    assert output.certificate_.epsilon == 1.0
    with refused(UnsupportedError, "accountant.a_kind", name="GradientRelease"):
        PrivateLogisticRegression(accountant=GroupPrivacy(), solver="gradient").fit(
            X, y
        )
    with refused(ValueError, "linear.data_norm_empirical_with_gradient"):
        PrivateLogisticRegression(data_norm="empirical", solver="gradient").fit(X, y)


def test_an_attribute_of_one_record_may_be_hidden_by_gradients():
    table = load_diabetes(as_frame=True, scaled=False).data
    public, table = table.iloc[::2], table.iloc[1::2]
    scenario = AttributeScenario("sex", level="record", prior=public, prior_as="law")
    X = table.drop(columns="sex")
    y = (table["bmi"] > 26).to_numpy()
    model = PrivateSGDClassifier(scenario, data_norm=300.0, random_state=0).fit(X, y)
    replaced = PrivateSGDClassifier(
        RecordScenario(relation="replace"), data_norm=300.0, random_state=0
    ).fit(X, y)
    assert model.noise_.scale == pytest.approx(replaced.noise_.scale)
    auto = PrivateLogisticRegression(scenario, GeneralWasserstein(), data_norm=300.0)
    assert not hasattr(auto.fit(X, y), "release_")


def test_regressors_follow_the_target():
    X, y = load_diabetes(return_X_y=True)
    for model in (
        PrivateRidge(data_norm=0.15, target_bounds=(25, 350), random_state=0),
        PrivateSGDRegressor(data_norm=0.15, target_bounds=(25, 350), random_state=0),
    ):
        model.set_params(accountant=PrivacyLoss(epsilon=8.0))
        assert model.fit(X, y).score(X, y) > 0.2
        with refused(ValueError, "target.bounds_not_ordered_finite"):
            clone(model).set_params(target_bounds=(1, 1)).fit(X, y)


@pytest.mark.parametrize("make", REGRESSORS)
@pytest.mark.parametrize("skip", [False, True])
def test_the_range_of_the_target_must_be_given(make, skip):
    unread = np.array([["no number"]])
    with (
        config_context(skip_parameter_validation=skip),
        refused(ValueError, "target.bounds_missing"),
    ):
        make().fit(unread, unread)


def test_classical_accounting_is_one_line():
    run = GradientRelease(n_records=60_000, batch_size=600, n_steps=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = PrivacyLoss(delta=1e-5).certify(
            GaussianNoise(scale=1.0), run, RecordScenario(relation="add_remove")
        )
    assert certificate.epsilon == pytest.approx(1.82824, abs=2e-4)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(C=1e-4),
        PrivateLinearSVC(C=1e-4),
        PrivateSGDClassifier(alpha=100.0),
        PrivateMLPClassifier(alpha=100.0),
    ],
    ids=repr,
)
def test_no_penalty_is_too_strong(model, cancer):
    fitted = clone(model).set_params(random_state=0).fit(*cancer)
    weights = fitted.coefs_ if hasattr(fitted, "coefs_") else [fitted.coef_]
    assert max(np.max(np.abs(w)) for w in weights) < 0.5


def test_warm_start_takes_nothing_from_another_solver(cancer):
    model = PrivateLogisticRegression(training=Training(warm_start=True)).fit(*cancer)
    model.set_params(solver="output").fit(*cancer).fit(*cancer)
    model.set_params(solver="gradient").fit(*cancer)
    assert not any("released before" in str(a) for a in model.certificate_.assumptions)
