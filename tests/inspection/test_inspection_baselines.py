"""Plain differential privacy in the same figure, and the fallback beside it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, OverlapAmplification, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.summary import PrivateMean
from skpuffer.training import Training
from tests.refused import refused, warned

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    X["sex"] = rng.integers(0, 2, 400)
    return X, (X["a"] + 0.3 * rng.normal(size=400) > 0).astype(int)


def test_the_baselines_are_the_same_model_without_the_scenario(table):
    X, y = table
    public = X.assign(a=X["a"] + 1)
    scenario = AttributeScenario("sex", level="record", prior=BoundedOdds(4.0))
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(scenario, OverlapAmplification(1.0, delta=1e-4)),
        reference=public,
    )
    with warned(UserWarning, "noise.scores_from_seed"):
        display = PrivacyUtilityDisplay.from_estimator(
            model, X, y, epsilons=[0.1, 1.0], baseline="dp", cv=2, random_state=0
        )
    names = list(display.baselines)
    assert ["replaced" in names[0], "added or removed" in names[1]] == [True, True]
    # by hand, with the seeds of the display: without the secret, at the same budgets
    replace = model.get_params()["estimator"].set_params(
        scenario=RecordScenario(relation="replace"), accountant=PrivacyLoss(1.0, 1e-4)
    )
    with warned(UserWarning, "noise.scores_from_seed"):
        alone = PrivacyUtilityDisplay.from_estimator(
            PublicPreprocessing(StandardScaler(), replace, reference=public),
            X[["a", "b"]],
            y,
            epsilons=[0.1, 1.0],
            cv=2,
            random_state=0,
        )
    assert np.array_equal(display.baselines[names[0]], alone.scores)
    # what holds whatever is believed is above each budget, and written beside it
    assert np.all(display.fallbacks > [0.1, 1.0]) and alone.fallbacks is None
    written = [text.get_text() for text in display.fallback_texts_]
    assert written == [f"{fallback:.2g}" for fallback in display.fallbacks]
    drawn = [line.get_label() for line in display.ax_.get_lines()]
    assert set(names) <= set(drawn) and any("whatever" in label for label in drawn)
    assert [len(line.get_xdata()) for line in display.baseline_lines_] == [2, 2]
    assert alone.baseline_lines_ == alone.fallback_texts_ == []


def test_preprocessing_keeps_the_rows_of_the_prior(table):
    X, _ = table
    scenario = AttributeScenario("sex", level="record", prior=X[::2], prior_as="law")
    mean = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=2), bounds=(-3, 3))
    model = PublicPreprocessing(StandardScaler(), mean)
    display = PrivacyUtilityDisplay.from_estimator(
        model,
        X[1::2],
        epsilons=[1.0],
        baseline="dp",
        cv=2,
        scoring=lambda fitted, X, y=None: -abs(fitted.estimator_.mean_[0]),
    )
    # of the notion asked for, where that has an order instead of a delta
    assert [np.shape(s) for s in display.baselines.values()] == [(1, 2)] * 2


def test_any_private_estimator_may_be_the_baseline(table):
    X, y = table
    model = PrivateLogisticRegression()
    other = PrivateLogisticRegression(training=Training(clip_norm=0.1))
    display = PrivacyUtilityDisplay.from_estimator(
        model, X, y, epsilons=[1.0], baseline=other, cv=2
    )
    assert list(display.baselines) == ["Baseline: PrivateLogisticRegression"]
    for wrong in ("plain", PrivateLogisticRegression):
        with refused(ValueError, "inspection.baseline_invalid"):
            PrivacyUtilityDisplay.from_estimator(model, X, y, baseline=wrong)
