"""Schedules, momentum, penalties and balls: of every trained model, at no cost."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from skpuffer.training._engine import SCHEDULES
from tests.refused import refused

#: Trained models, with what makes them a penalty.
TRAINED = {
    PrivateLogisticRegression: {"C": 0.1},
    PrivateLinearSVC: {"C": 0.1},
    PrivateSGDClassifier: {"alpha": 0.1},
    PrivateSGDRegressor: {"alpha": 0.1},
    PrivateMLPClassifier: {"alpha": 0.1},
}

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) / 3
y = (X[:, 0] > 0).astype(int)


def made(kind, **params):
    run = Training(n_steps=20, clip_norm=0.5)
    model = kind(accountant=PrivacyLoss(1.0), training=run, random_state=0)
    if kind is PrivateSGDRegressor:
        model.target_bounds = (0, 1)
    return model.set_params(**params)


def parameters(model):
    return np.ravel(model._released.parameters)


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.__name__)
def test_what_is_made_of_noisy_sums_costs_nothing(kind):
    plain = made(kind, training__momentum=0.0).fit(X, y)
    options = {
        "schedule": [{"training__schedule": name} for name in sorted(SCHEDULES)],
        "momentum": [{"training__momentum": 0.9}],
        "average": [{"training__average": 0.5}],
        "radius": [{"training__radius": 0.3}],
        "penalty": [TRAINED[kind]],
    }
    for changes in sum(options.values(), []):
        model = made(kind, **{"training__momentum": 0.0, **changes}).fit(X, y)
        # whatever the scenario: nothing here says how far a record moves
        assert model.certificate_ == plain.certificate_, changes
        assert model.noise_ == plain.noise_
        different = np.any(parameters(model) != parameters(plain))
        # None is 'constant'
        assert different == (changes != {"training__schedule": "constant"}), changes


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.__name__)
def test_a_schedule_is_in_the_release_that_is_run(kind):
    model = made(
        kind, training__schedule="warmup_cosine", training__learning_rate=0.5
    ).fit(X, y)
    optimiser = model.release_.optimiser
    # a rate that was given is the longest step's, and is left as it is
    assert (optimiser.schedule, optimiser.learning_rate) == ("warmup_cosine", 0.5)
    assert clone(model).training.schedule == "warmup_cosine"
    assert made(kind).fit(X, y).release_.optimiser.schedule == "constant"


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("checked", [True, False])
def test_a_schedule_that_is_none_is_refused_by_plain_code_as_well(kind, checked):
    model = made(kind, training__schedule="annealed")
    with (
        config_context(skip_parameter_validation=not checked),
        pytest.raises(ValueError, match="'schedule'"),
    ):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    "changes", [{"noise_by": "row"}, {"training__clip_norm": (1.0, -1.0)}]
)
def test_layers_are_checked_by_plain_code_as_well(changes):
    model = made(PrivateMLPClassifier, **{"clip_by": "layer", **changes})
    with (
        config_context(skip_parameter_validation=True),
        refused(ValueError, ("parameter.not_positive", "parameter.option_unknown")),
    ):
        model.fit(X, y)


def test_a_schedule_asks_for_gradients():
    chosen = PrivateLogisticRegression(
        training=Training(schedule="cosine"), random_state=0
    ).fit(X, y)
    assert chosen.release_.optimiser.schedule == "cosine"
    assert chosen.release_.optimiser.learning_rate > 0
