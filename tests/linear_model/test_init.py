"""Where training starts: a public model, or one that was released and paid for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import Normalizer, scale

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import CompositionError, EstimatedGuaranteeWarning
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.linear_model._base_sgd import Start
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.privacy import Notion, compose
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from tests.refused import refused, says, warned

#: A run that ends where it starts, whatever the noise.
STILL = {
    "training__n_steps": 1,
    "training__learning_rate": 1e-12,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return Normalizer().fit_transform(scale(X)), y


@pytest.fixture(scope="module")
def public(cancer):
    """A model of a few rows that are public, labels included."""
    X, y = cancer
    return LogisticRegression(C=10.0).fit(X[:60], y[:60])


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(data_norm=2.0),
        PrivateSGDClassifier(data_norm=0.5, intercept_scaling=0.3),
        PrivateLinearSVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_run_starts_at_coefficients_in_raw_units(model, cancer, public):
    pair = public.coef_, public.intercept_
    for init in (public, FrozenEstimator(public), pair):
        fitted = clone(model).set_params(**STILL)
        fitted.training.init = init  # as given: a clone would be unfitted
        fitted.fit(*cancer)
        np.testing.assert_allclose(fitted.coef_, public.coef_, rtol=1e-6)
        np.testing.assert_allclose(fitted.intercept_, public.intercept_, rtol=1e-6)
        assert says(_assumed(fitted), "assume.init_fitted_without_rows")


def test_more_classes_start_in_the_shape_of_all_scores(cancer):
    X, _ = cancer
    y = np.arange(len(X)) % 3
    public = LogisticRegression().fit(X[:60], y[:60])
    model = PrivateSGDClassifier(training=Training(init=public))
    model.set_params(**STILL).fit(X, y)
    np.testing.assert_allclose(model.coef_, public.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, public.intercept_, atol=1e-9)


def test_a_regressor_starts_in_units_of_its_target():
    X, y = load_diabetes(return_X_y=True)
    public = Ridge(alpha=1.0).fit(X[:60], y[:60])
    model = (
        PrivateSGDRegressor(
            data_norm=0.15, target_bounds=(25, 350), training=Training(init=public)
        )
        .set_params(**STILL)
        .fit(X, y)
    )
    np.testing.assert_allclose(model.coef_, public.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, [public.intercept_], rtol=1e-6)


def test_a_network_starts_at_the_weights_of_another(cancer):
    X, y = cancer
    public = MLPClassifier(4, activation="tanh", max_iter=20, random_state=0)
    with pytest.warns(UserWarning, match="converged"):
        public.fit(X[:60], y[:60])
    model = PrivateMLPClassifier(
        hidden_size=4, data_norm=2.0, training=Training(init=public)
    ).set_params(**STILL)
    model.fit(X, y)
    for ours, theirs in zip(
        [*model.coefs_, *model.intercepts_],
        [*public.coefs_, *public.intercepts_],
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    with refused(ValueError, "network.init_activation_differs", theirs="tanh"):
        clone(model).set_params(
            activation="relu", training__init=FrozenEstimator(public)
        ).fit(X, y)
    with refused(ValueError, "linear.init_array_shape_wrong", name="coefs_"):
        clone(model).set_params(
            hidden_size=5, training__init=FrozenEstimator(public)
        ).fit(X, y)


def _assumed(model):
    return model.certificate_.assumptions


def test_a_start_with_a_certificate_is_paid_for(cancer):
    X, y = cancer
    first = PrivateSGDClassifier(training=Training(n_steps=3)).fit(X[:300], y[:300])
    alone = PrivateSGDClassifier(training=Training(n_steps=3)).fit(X[300:], y[300:])
    model = PrivateSGDClassifier(training=Training(n_steps=3, init=first))
    model.fit(X[300:], y[300:])
    both = compose([first.certificate_, alone.certificate_])
    assert model.certificate_.epsilon == pytest.approx(both.epsilon, rel=1e-9)
    assert 1 < model.certificate_.epsilon < 2 and model.certificate_.n_releases == 2
    assert not says(_assumed(model), "assume.init_fitted_without_rows")
    assert model.noise_ == alone.noise_


def test_a_start_whose_certificate_does_not_add_up_is_refused(cancer):
    X, y = cancer
    swap = RecordScenario(relation="replace")
    other = PrivateSGDClassifier(swap, training=Training(n_steps=3)).fit(X, y)
    model = PrivateSGDClassifier(training=Training(n_steps=3, init=other))
    with refused(CompositionError, "linear.start_certificate_not_addable", name="init"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")
    # of other rows, which whoever gives the bare coefficients says
    model.set_params(training__init=(other.coef_, other.intercept_)).fit(X, y)
    assert model.certificate_.epsilon == 1
    assert says(_assumed(model), "assume.init_fitted_without_rows")


def test_an_estimate_as_the_start_makes_an_estimate(cancer):
    X, y = cancer
    first = PrivateSGDClassifier(training=Training(n_steps=3)).fit(X, y)
    sampled = clone(first).fit(X, y)
    sampled.certificate_ = sampled.certificate_.as_estimate("known from a sample")
    model = PrivateSGDClassifier(training=Training(n_steps=3, init=sampled))
    with warned(
        EstimatedGuaranteeWarning, "linear.start_makes_fit_estimate", name="init"
    ):
        model.fit(X, y)
    assert model.certificate_.notion is Notion.ESTIMATED
    assert not model.certificate_.composable
    assert says(_assumed(model), "assume.init_certificate_weak")
    with pytest.raises(CompositionError):
        compose([model.certificate_, first.certificate_])
    # so does noise from a seed, which another run may have drawn as well
    seeded = PrivateSGDClassifier(training=Training(n_steps=3), random_state=0).fit(
        X, y
    )
    with pytest.warns(EstimatedGuaranteeWarning, match="'init'.*seed"):
        again = PrivateSGDClassifier(training=Training(n_steps=3, init=seeded)).fit(
            X, y
        )
    assert not again.certificate_.certified
    # a promise as the start of an estimate helps nothing
    guessed = model.certificate_
    start = Start(
        parameters=np.zeros(31), assumption="", certificate=first.certificate_
    )
    assert start.covering(guessed).notion is Notion.ESTIMATED
    assert repr(first.certificate_) in str(start.covering(guessed).assumptions[-1])


def test_a_start_outside_of_the_ball_is_refused(cancer, public):
    X, y = cancer
    length = np.hypot(np.linalg.norm(public.coef_), public.intercept_[0] / 0.5)
    pair = public.coef_, public.intercept_
    model = PrivateSGDClassifier(
        training=Training(init=pair, radius=0.9 * length)
    ).set_params(**STILL)
    with refused(ValueError, "linear.init_outside_ball"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")
    model.set_params(training__radius=1.01 * length).fit(X, y)
    np.testing.assert_allclose(model.coef_, public.coef_, rtol=1e-6)
    # at the edge, where a run may have ended: rounded, it may be beyond it
    model.set_params(training__radius=length * (1 - 1e-12)).fit(X, y)


def test_a_warm_start_goes_on_from_its_own_fit(cancer, public):
    still = STILL | {"random_state": None}
    model = (
        PrivateSGDClassifier(training=Training(init=public, warm_start=True))
        .set_params(**still)
        .fit(*cancer)
    )
    first = model.coef_.copy()
    model.training.init = (public.coef_ + 1, public.intercept_)
    np.testing.assert_allclose(model.fit(*cancer).coef_, first, rtol=1e-6)
    assert says(_assumed(model), "assume.warm_start_released_before")


def test_a_public_start_helps_where_the_budget_is_small(cancer, public):
    """Seen on this table: .56 without it, .95 with it, which itself has .96."""
    X, y = cancer[0][60:], cancer[1][60:]
    helped, alone = (
        np.mean(
            [
                PrivateLogisticRegression(
                    accountant=PrivacyLoss(0.01),
                    training=Training(init=init),
                    random_state=seed,
                )
                .fit(X[:250], y[:250])
                .score(X[250:], y[250:])
                for seed in range(8)
            ]
        )
        for init in (public, None)
    )
    assert helped > alone + 0.2
    assert helped > public.score(X[250:], y[250:]) - 0.02


def test_a_search_needs_a_start_that_stays_fitted(cancer, public):
    grid = {"accountant__epsilon": [0.1, 1.0]}
    for init, works in ((FrozenEstimator(public), True), (public, False)):
        model = PrivateSGDClassifier(
            training=Training(init=init, n_steps=3), random_state=0
        )
        search = GridSearchCV(model, grid, cv=2, error_score="raise")
        if works:
            search.fit(*cancer)
            continue
        with refused(ValueError, "linear.init_not_fitted"):
            search.fit(*cancer)


@pytest.mark.parametrize(
    "init, words",
    [
        (LogisticRegression(), "must be fitted.*FrozenEstimator"),
        ((np.zeros((1, 30)),), "a pair"),
        ((np.zeros((1, 30)), np.zeros(1), 0), "a pair"),
        ((np.zeros((1, 29)), np.zeros(1)), r"coef_ of shape \(1, 30\)"),
        ((np.zeros((2, 30)), np.zeros(1)), r"coef_ of shape \(1, 30\)"),
        ((np.zeros((1, 30)), np.zeros(2)), r"intercept_ of shape \(1,\)"),
        ((np.full((1, 30), np.nan), np.zeros(1)), "finite"),
        (("coef", "intercept"), "coef_ of shape"),
        (np.zeros(31), "'init'"),
    ],
)
def test_bad_starts(init, words, cancer):
    model = PrivateSGDClassifier(training=Training(init=init))
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(*cancer)
    assert not hasattr(model, "certificate_")


def test_starts_of_other_classes_columns_or_without_a_place(cancer, public):
    X, y = cancer
    for model, labels, words in (
        (PrivateSGDClassifier(training=Training(init=public)), 1 + y, "of the classes"),
        (
            PrivateSGDClassifier(training=Training(init=public), fit_intercept=False),
            y,
            "intercept",
        ),
        (
            PrivateLogisticRegression(training=Training(init=public), solver="output"),
            y,
            "for gradients",
        ),
    ):
        with pytest.raises(ValueError, match=f"'init'.*{words}"):
            model.fit(X, labels)
    names = [f"x{i}" for i in range(X.shape[1])]
    named = LogisticRegression().fit(pd.DataFrame(X, columns=names), y)
    with refused(ValueError, "linear.init_columns_differ"):
        PrivateSGDClassifier(training=Training(init=named)).fit(
            pd.DataFrame(X, columns=names[::-1]), y
        )
