"""Estimators that are asked for correlated noise: which run they plan and execute."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise.strategies import (
    Restarted,
    banded_square_root,
    identity,
    prefix_sum_tree,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from skpuffer.training._engine import NOISE_CORRELATIONS
from tests.refused import refused

TRAINED = [
    PrivateLogisticRegression,
    PrivateLinearSVC,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
    PrivateMLPClassifier,
]

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) / 3
y = (X[:, 0] > 0).astype(int)


class Blind(PrivacyLoss):
    """Takes any noise, and promises nothing: what is planned and run is looked at."""

    recommended = False

    def calibrate(self, release, scenario, random_state=None):
        return super().calibrate(_plain(release), scenario, random_state)

    def certify(self, noise, release, scenario):
        return super().certify(noise, _plain(release), scenario)


def _plain(release):
    return replace(release, noise_correlation=None, sampling="poisson")


def made(kind, **params):
    fixed = {"n_steps": 20, "clip_norm": 0.5, "batch_size": 10}
    model = kind(accountant=Blind(1.0), random_state=0)
    if kind is PrivateSGDRegressor:
        model.target_bounds = (0, 1)
    return model.set_params(training=Training(**fixed | params))


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.__name__)
def test_a_strategy_is_in_the_release_that_is_run(kind):
    strategy = banded_square_root(3)
    model = made(kind, noise_correlation=strategy).fit(X, y)
    assert model.release_.noise_correlation == strategy
    # the same batches in every epoch, unless others are asked for
    assert model.release_.sampling.name == "balls_in_bins"
    other = made(kind, noise_correlation=strategy, sampling="poisson").fit(X, y)
    assert other.release_.sampling.name == "poisson"
    plain = made(kind, sampling="balls_in_bins").fit(X, y)
    assert plain.release_.noise_correlation is None
    assert np.any(flat(plain) != flat(model))
    # nothing of the noise is kept
    assert model.release_.noise_correlation == pickle.loads(pickle.dumps(strategy))


def flat(model):
    return np.ravel(model._released.parameters)


@pytest.mark.parametrize("name", NOISE_CORRELATIONS)
def test_a_name_is_a_strategy_for_the_run(name):
    model = made(PrivateSGDClassifier, noise_correlation=name).fit(X, y)
    strategy = model.release_.noise_correlation
    # 60 records in batches of ten: six of an epoch
    assert strategy == NOISE_CORRELATIONS[name](20, 6, 4)
    strategy.check_run(20)


def test_a_name_has_no_more_diagonals_than_an_epoch_has_steps():
    model = made(
        PrivateSGDClassifier, noise_correlation="banded_square_root", batch_size=30
    )
    assert model.fit(X, y).release_.noise_correlation.bandwidth == 2


def test_a_name_begins_anew_where_bins_are_dealt_anew():
    model = made(
        PrivateSGDClassifier, noise_correlation="prefix_sum_tree", sampling="fresh_bins"
    )
    strategy = model.fit(X, y).release_.noise_correlation
    assert strategy == Restarted(prefix_sum_tree(6), every=6)


def test_full_batches_gain_nothing():
    model = made(
        PrivateSGDClassifier, noise_correlation="banded_square_root", batch_size=None
    ).fit(X, y)
    assert model.release_.sampling.name == "full_batch"
    assert model.release_.noise_correlation is None
    model = made(PrivateSGDClassifier, noise_correlation=identity()).fit(X, y)
    assert model.release_.noise_correlation is None


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("asked", ["banded", 3])
def test_what_is_no_strategy_is_refused_by_plain_code_as_well(kind, checked, asked):
    model = made(kind, noise_correlation=asked)
    with (
        config_context(skip_parameter_validation=not checked),
        pytest.raises((ValueError, TypeError), match="'noise_correlation'"),
    ):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


def test_a_strategy_for_another_run_is_refused():
    model = made(PrivateSGDClassifier, noise_correlation=prefix_sum_tree(19))
    with refused(ValueError, "strategy.tree_steps_mismatch", tree_steps=19, n_steps=20):
        model.fit(X, y)


def test_parameters_are_those_of_scikit_learn():
    strategy = banded_square_root(3)
    model = made(PrivateSGDClassifier, noise_correlation=strategy)
    assert clone(model).training.noise_correlation == strategy
    model.set_params(training__noise_correlation="prefix_sum_tree")
    assert model.get_params()["training__noise_correlation"] == "prefix_sum_tree"
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert fitted.release_ == model.release_


@pytest.mark.filterwarnings("ignore")
def test_strategies_are_searched():
    search = GridSearchCV(
        made(PrivateSGDClassifier),
        {"training__noise_correlation": [None, strategy_of_three(), "prefix_sum_tree"]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 3


def strategy_of_three():
    return banded_square_root(3)


@pytest.mark.parametrize(
    "kind",
    [PrivateLogisticRegression, PrivateLinearSVC],
    ids=lambda kind: kind.__name__,
)
def test_the_output_has_noise_once(kind):
    loss = {"loss": "huber_hinge"} if kind is PrivateLinearSVC else {}
    model = made(kind, noise_correlation="prefix_sum_tree")
    model.set_params(solver="output", **loss)
    with refused(ValueError, "linear.minimiser_noised_once"):
        model.fit(X, y)


def test_correlated_noise_asks_for_gradients():
    model = made(PrivateLogisticRegression, noise_correlation="banded_square_root")
    assert model.fit(X, y).release_.noise_correlation == banded_square_root(4)
