"""The private support vector classifier: what is minimised, accounted and drawn."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import optimize, sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training

from ..attack import assert_tight, many_runs, with_share_of_noise

NO_NOISE = RenyiDP(epsilon=1e24, delta=0.1)
#: Plain gradient descent on gradients that no clipping shortens.
PLAIN = {"clip_norm": 2.0, "momentum": 0.0, "average": False}


class Recording(PrivateLinearSVC):
    """Keeps what it must not: each step's exact sum and noise."""

    def _execute(self, task, release, noise, rng):
        self.steps, self.task = [], task
        return super()._execute(task, release, noise, rng, record=self.steps)


def table(n_classes=2, seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ rng.normal(size=(3, n_classes)) + 0.2 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


# -- the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_noise_the_hinge_is_scikit_learns(n_classes):
    X, y = table(n_classes)
    model = PrivateLinearSVC(
        accountant=NO_NOISE,
        loss="hinge",
        C=0.5,
        fit_intercept=False,
        # an average, of subgradients that jump at the corner
        training=Training(learning_rate=0.3, n_steps=3000, **PLAIN | {"average": 0.5}),
    ).fit(X, y)
    twin = LinearSVC(
        loss="hinge",
        multi_class="ovr" if n_classes == 2 else "crammer_singer",
        C=0.5,
        fit_intercept=False,
        tol=1e-8,
        max_iter=10**6,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=0.02)
    np.testing.assert_allclose(
        model.decision_function(X), twin.decision_function(X), atol=0.02
    )
    assert np.abs(twin.coef_).max() > 0.5


@pytest.mark.parametrize("scaling", [None, 0.5, 1.0])
@pytest.mark.parametrize("unit", [1.0, 20.0])
def test_without_noise_the_huber_hinge_is_its_minimiser(scaling, unit):
    X, y = table()
    column = np.full((len(X), 1), scaling or 0.0)
    rows, sign = np.hstack([X, column]), 2 * y - 1

    def objective(w):
        # quadratic for margins in [0.5, 1.5]; the intercept is not penalised
        margin = sign * (rows @ w)
        near = (1.5 - margin) ** 2 / 2
        losses = np.where(margin < 0.5, 1 - margin, np.where(margin < 1.5, near, 0))
        return 0.5 * losses.sum() + w[:3] @ w[:3] / 2

    best = optimize.minimize(objective, np.zeros(4), tol=1e-10).x
    model = PrivateLinearSVC(
        accountant=NO_NOISE,
        C=0.5,
        data_norm=unit,
        fit_intercept=scaling is not None,
        intercept_scaling=scaling or 0.5,
        training=Training(learning_rate=1.0, n_steps=1500, **PLAIN),
    ).fit(unit * X, y)
    # what clipping leaves of rounding is a part in two thousand of nothing here
    np.testing.assert_allclose(unit * model.coef_[0], best[:3], atol=1e-4)
    assert model.intercept_[0] == pytest.approx((scaling or 0.0) * best[3], abs=1e-4)


def test_longer_rows_are_scaled_down_in_training_and_after():
    X, y = table()
    long = np.linalg.norm(X, axis=1) > 0.2
    X, y = X[long], y[long]
    make = PrivateLinearSVC(data_norm=0.1, random_state=0)
    one, other = clone(make).fit(X, y), clone(make).fit(1e3 * X, y)
    assert one.score(X, y) > 0.6
    np.testing.assert_allclose(one.coef_, other.coef_)
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(1e3 * X)
    )


# -- what is accounted ----------------------------------------------------------------


@pytest.mark.parametrize("sampling, size", [("full_batch", None), ("poisson", 30)])
def test_the_certificate_is_what_the_release_accounts_for(sampling, size):
    X, y = table()
    accountant = PrivacyLoss(epsilon=2.0, delta=1e-5)
    model = PrivateLinearSVC(
        accountant=accountant,
        training=Training(sampling=sampling, batch_size=size, n_steps=20),
    ).fit(X, y)
    release = model.release_
    assert (release.n_steps, release.sampling.name) == (20, sampling)
    again = accountant.certify(model.noise_, release, RecordScenario())
    assert again.epsilon == pytest.approx(2.0, rel=1e-3)
    assert model.certificate_.epsilon == 2.0
    if sampling == "full_batch":
        # 20 Gaussians make one: Balle and Wang (2018), Theorem 8
        mu = np.sqrt(20) * release.clip_norm / model.noise_.scale
        delta = stats.norm.cdf(mu / 2 - 2 / mu)
        delta -= np.exp(2) * stats.norm.cdf(-mu / 2 - 2 / mu)
        assert delta == pytest.approx(1e-5, rel=1e-2)


@pytest.mark.parametrize("loss", ["hinge", "huber_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_record_moves_a_sum_further_than_the_clip_norm(loss, n_classes):
    X, y = table(n_classes, n=6)
    model = PrivateLinearSVC(loss=loss, training=Training(clip_norm=0.4)).fit(X, y)
    release = model.release_
    rng = np.random.default_rng(0)
    moved = []
    for _ in range(100):
        X2, y2 = X.copy(), y.copy()
        X2[-1] = rng.choice([0.1, 1.0, 100.0]) * rng.normal(size=3)
        y2[-1] = rng.integers(n_classes)
        gradients = model._gradients(X2, y2)
        parameters = rng.choice([0.0, 0.3, 30.0]) * rng.normal(size=gradients.dim)
        whole = gradients.clipped_sum(parameters, None, release)
        rest = gradients.clipped_sum(parameters, np.arange(5), release)
        moved.append(np.linalg.norm(whole - rest))
    bound = release.total_clip_norm
    assert bound == 0.4
    assert 0.99 * bound < max(moved) <= bound


def test_more_budget_is_less_noise_and_a_better_fit():
    X, y = table(n=600)
    scales, scores = [], []
    for epsilon in (0.03, 0.3, 3.0):
        model = PrivateLinearSVC(
            accountant=PrivacyLoss(epsilon=epsilon),
            training=Training(n_steps=10),
            random_state=0,
        ).set_params(training__clip_norm=0.5)
        scores.append(model.fit(X, y).score(X, y))
        scales.append(model.noise_.scale)
    assert scales[0] > 5 * scales[1] > 25 * scales[2]
    assert scores[0] < scores[2]
    assert scores[2] > 0.85


def test_more_steps_ask_for_more_noise_each():
    X, y = table()
    scales = [
        PrivateLinearSVC(training=Training(n_steps=n, clip_norm=0.5))
        .fit(X, y)
        .noise_.scale
        for n in (1, 4, 100)
    ]
    np.testing.assert_allclose(np.divide(scales, scales[0]), [1, 2, 10], rtol=1e-3)


# -- noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["full_batch", "poisson"])
def test_the_noise_drawn_is_the_noise_named(sampling):
    model = Recording(
        training=Training(
            n_steps=300,
            sampling=sampling,
            batch_size=None if sampling[0] == "f" else 20,
        ),
    ).fit(*table())
    draws = np.array([step.noise for step in model.steps]) / model.noise_.scale
    assert draws.shape == (300, 4)
    assert stats.kstest(draws.ravel(), stats.norm.cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(draws.T)[np.triu_indices(4, 1)]).max() < 0.3
    assert np.abs(np.corrcoef(draws[1:].ravel(), draws[:-1].ravel())[0, 1]) < 0.15


def test_the_parameters_are_made_of_noisy_sums_alone():
    X, y = table()
    model = Recording(
        training=Training(n_steps=7, learning_rate=0.5, **PLAIN), random_state=1
    ).fit(X, y)
    w = np.zeros(4)
    gradients = model._gradients(model.task.X, model.task.y)
    for step in model.steps:
        exact = gradients.clipped_sum(w, None, model.release_)
        np.testing.assert_allclose(step.clipped_sum, exact)
        w -= 0.5 * (exact + step.noise) / len(X)
    np.testing.assert_allclose(model.coef_[0], w[:3])
    assert model.intercept_[0] == pytest.approx(0.5 * w[3])


def test_no_canary_beats_the_certificate():
    # without an intercept a row of zeros is as good as absent
    X, y = np.zeros((2, 6, 2)), np.array([0, 1] * 3)
    X[0, -1] = [0.0, 1e3]
    model = Recording(
        accountant=PrivacyLoss(epsilon=8.0, delta=1e-5),
        fit_intercept=False,
        training=Training(clip_norm=0.7, learning_rate=1e-9, n_steps=2),
        # the gradients stay as they are at first
    ).fit(X[0], y)
    release, noise = model.release_, model.noise_

    n_draws, rng = 1000, np.random.default_rng(0)
    runs = [
        many_runs(
            model,
            release,
            dataclasses.replace(model.task, X=rows, y=y),
            noise,
            n_draws,
            rng,
        )
        for rows in X
    ]
    assert_tight(
        model.certificate_,
        noise,
        with_share_of_noise(runs, noise),
        score=lambda noise: lambda sums: -sums[:, 1],  # it pulls its own coordinate up
        seed=0,
        n_draws=n_draws,
    )


# -- in scikit-learn ------------------------------------------------------------------


def test_forms_of_a_table_are_one_table():
    X, y = table(3)
    names = ["a", "b", "c"]
    make = PrivateLinearSVC(random_state=0, training=Training(n_steps=10))
    dense = clone(make).fit(X, y)
    frame = pd.DataFrame(X, columns=names)
    labels = np.array(["no", "perhaps", "yes"])
    forms = [sparse.csr_matrix(X), sparse.csr_array(X), frame, pl.from_pandas(frame)]
    for form in forms:
        other = clone(make).fit(form, labels[y])
        np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-7)
        np.testing.assert_allclose(other.intercept_, dense.intercept_, rtol=1e-7)
        np.testing.assert_array_equal(other.predict(form), labels[dense.predict(X)])
    assert list(other.feature_names_in_) == names


def test_a_seed_repeats_the_run_and_none_does_not():
    X, y = table()
    make = PrivateLinearSVC(training=Training(n_steps=5, batch_size=30))
    seeded = [clone(make).set_params(random_state=5).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(seeded[0].coef_, seeded[1].coef_)
    free = [clone(make).fit(X, y) for _ in range(2)]
    assert np.all(free[0].coef_ != free[1].coef_)


def test_clones_and_pickles():
    X, y = table()
    model = PrivateLinearSVC(C=2.0, loss="hinge", training=Training(n_steps=5)).fit(
        X, y
    )
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert (fresh.C, fresh.loss) == (2.0, "hinge")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_
    assert again.release_ == model.release_


def test_in_a_grid_over_budgets():
    X, y = table(n=400)
    grid = GridSearchCV(
        make_pipeline(
            Normalizer(),
            PrivateLinearSVC(training=Training(n_steps=10), random_state=0),
        ),
        {"privatelinearsvc__accountant__epsilon": [0.01, 10.0]},
        error_score="raise",
        cv=3,
    ).fit(X, y)
    assert grid.best_params_ == {"privatelinearsvc__accountant__epsilon": 10.0}
    assert grid.best_estimator_[-1].certificate_.epsilon == 10.0


def test_the_release_holds_no_data():
    X, y = table()
    model = PrivateLinearSVC(training=Training(n_steps=3, clip_norm=0.5)).fit(X, y)
    assert model.release_ == GradientRelease(
        n_records=120,
        n_steps=3,
        sampling="full_batch",
        clip_norm=0.5,
        published="result",
        name=model.release_.name,
        optimiser=model.release_.optimiser,
    )
    held = dataclasses.asdict(model.release_.context)
    assert {k for k, v in held.items() if v} == {"n_records", "n_targets", "size"}


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"loss": "log_loss"}, "loss"),
        ({"C": 0.0}, "C"),
        ({"C": np.nan}, "C"),
        ({"data_norm": -1.0}, "data_norm"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
        ({"training__clip_norm": np.inf}, "clip_norm"),
        ({"training__n_steps": 0}, "n_steps"),
        ({"training__n_steps": 2.5}, "n_steps"),
        ({"training__batch_size": -3}, "batch_size"),
        ({"training__sampling": "all"}, "sampling"),
        ({"classes": [0, np.nan]}, "classes"),
        ({"accountant": PrivacyLoss(delta=2.0)}, "delta"),
    ],
)
def test_bad_parameters_are_named(changes, match):
    model = PrivateLinearSVC().set_params(**changes)
    with pytest.raises(ValueError, match=f"'{match}'"):
        model.fit(*table())
    assert not vars(model).keys() & {"coef_", "certificate_", "release_"}
