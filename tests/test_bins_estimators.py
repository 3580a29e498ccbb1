"""Every trained estimator on batches that records draw."""

import numpy as np
import pytest

from skpuffer.accountants import HistoryUniformCap, IterationAmplification, PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC

MODELS = [
    PrivateLogisticRegression,
    PrivateLinearSVC,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
    PrivateMLPClassifier,
]


@pytest.mark.parametrize("sampling", ["fresh_bins", "balls_in_bins"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators_train_in_bins(model, sampling):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    bounds = {"target_bounds": (0, 1)} if model is PrivateSGDRegressor else {}
    found = model(
        accountant=PrivacyLoss(4.0, 1e-5),
        batch_size=20,
        sampling=sampling,
        random_state=0,
        **bounds,
    )
    found.fit(X, y)
    assert found.predict(X).shape == (60,)
    assert found.certificate_.epsilon <= 4.0


@pytest.mark.parametrize("sampling", ["fresh_bins", "balls_in_bins"])
@pytest.mark.parametrize("accountant", [HistoryUniformCap, IterationAmplification])
def test_other_accountants_refuse_with_a_remedy(accountant, sampling):
    release = GradientRelease(
        n_records=60, batch_size=20, n_steps=9, sampling=sampling, dim=3
    )
    with pytest.raises(UnsupportedError, match="use .*PrivacyLoss"):
        accountant(1.0).calibrate(release, RecordScenario())
