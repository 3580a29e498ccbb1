"""Parameters of a run, which the trained models share in one object."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
)

MODELS = {
    "logistic": PrivateLogisticRegression(),
    "SGD": PrivateSGDClassifier(),
    "SGD, amounts": PrivateSGDRegressor(target_bounds=(0, 1)),
    "SVC": PrivateLinearSVC(),
    "perceptron": PrivateMLPClassifier(hidden_size=3),
}

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3)) / 3
y = (X[:, 0] > 0).astype(int)


@pytest.fixture(params=MODELS.values(), ids=list(MODELS))
def model(request):
    return clone(request.param).set_params(random_state=0)


def parameters(model):
    return np.ravel(model._released.parameters)


def test_none_is_a_run_by_the_rule(model):
    plain = parameters(clone(model).fit(X, y))
    told = clone(model).set_params(training=Training()).fit(X, y)
    np.testing.assert_array_equal(parameters(told), plain)
    # a nested name is the wish for one
    short = clone(model).set_params(training__n_steps=2).fit(X, y)
    assert short.n_steps_ == 2 and short.training.batch_size is None


def test_a_fit_changes_no_parameter_and_keeps_them(model):
    training = Training(n_steps=3, batch_size=20, momentum=0.5)
    model.set_params(training=training).fit(X, y)
    assert model.training is training
    copies = clone(model), pickle.loads(pickle.dumps(model))
    for copy in copies:
        assert copy.training is not training
        assert copy.training.get_params() == training.get_params()
        assert copy.get_params()["training__batch_size"] == 20
    shown = "".join(repr(model).split())
    assert "training=Training(batch_size=20,momentum=0.5,n_steps=3)" in shown
    assert "batch_size" in model._repr_html_()


def test_a_preview_is_of_the_same_run(model):
    labels = {} if isinstance(model, PrivateSGDRegressor) else {"classes": [0, 1]}
    model.set_params(training=Training(n_steps=3, batch_size=20))
    plan = model.preview(80, n_features=3, **labels)
    assert plan.noise.scale == pytest.approx(model.fit(X, y).noise_.scale)


@pytest.mark.parametrize("search", [GridSearchCV, PrivateGridSearchCV])
def test_runs_are_searched(search):
    model = PrivateSGDClassifier(classes=[0, 1])
    grid = {"training__n_steps": [2, 3], "training__momentum": [0.0]}
    options = {"cv": 2, "error_score": "raise"} if search is GridSearchCV else {}
    if search is PrivateGridSearchCV:
        options = {"accountant": PrivacyLoss(8.0, 1e-5)}
    found = search(model, grid, **options).fit(X, y)
    assert found.best_params_["training__n_steps"] in (2, 3)
    assert found.best_estimator_.n_steps_ == found.best_params_["training__n_steps"]


def test_runs_in_a_pipeline_are_set_by_their_long_name():
    pipeline = make_pipeline(Normalizer(), PrivateSGDClassifier(classes=[0, 1]))
    pipeline.set_params(privatesgdclassifier__training__n_steps=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pipeline.fit(X, y)[-1].n_steps_ == 4


@pytest.mark.parametrize("given", [{"n_steps": 3}, "fast", Training])
def test_other_objects_are_refused_by_plain_code_as_well(model, given):
    with (
        config_context(skip_parameter_validation=True),
        refused(TypeError, "parameter.not_instance_or_none", name="training"),
    ):
        model.set_params(training=given).fit(X, y)
    with pytest.raises(ValueError, match="'training'"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


def test_wrong_values_name_their_owner(model):
    model.set_params(training__batch_size=0.5)
    with pytest.raises(ValueError, match="'batch_size' parameter of Training"):
        model.fit(X, y)


def test_least_squares_by_moments_has_no_run():
    with pytest.raises(ValueError, match="training"):
        PrivateRidge().set_params(training__n_steps=3)
