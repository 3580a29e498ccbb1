"""Accuracy at the defaults: what the rule reached on its tables, less a margin."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_friedman1
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.datasets import fetch_adult
from skpuffer.schema import Category, Number, Schema

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
)


def _accuracy(load, seeds=3, **options):
    X, y = load(return_X_y=True)
    found = []
    for seed in range(seeds):
        parts = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
        model = PrivateAdditiveClassifier(
            # of the whole table, taken as known beforehand
            bounds=(X.min(axis=0), X.max(axis=0)),
            classes=np.unique(y),
            random_state=seed,
            **options,
        ).fit(parts[0], parts[2])
        found.append(model.score(parts[1], parts[3]))
    return np.mean(found)


def test_small_tables():
    assert _accuracy(load_breast_cancer) > 0.92
    assert _accuracy(load_wine) > 0.83


@pytest.mark.parametrize("interactions, least", [(None, 0.86), ("all", 0.91)])
def test_friedman(interactions, least):
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    model = PrivateAdditiveRegressor(
        bounds=(0, 1), target_bounds=(0, 30), interactions=interactions, random_state=0
    ).fit(X[:15_000], y[:15_000])
    assert model.score(X[15_000:], y[15_000:]) > least


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon, accuracy, auc, loss",
    [(0.1, 0.848, 0.898, 0.34), (0.3, 0.857, 0.908, 0.32), (1.0, 0.864, 0.915, 0.298)],
)
def test_adult(epsilon, accuracy, auc, loss, data_dir):
    options = {"data_home": data_dir, "download_if_missing": False}
    (X, y), (X_test, y_test) = (
        fetch_adult(subset=subset, return_X_y=True, **options)
        for subset in ("train", "test")
    )
    numbers = {
        "age": Number(17, 90, integer=True),
        "education-num": Number(1, 16, integer=True),
        "capital-gain": Number(0, 99_999, amount=True),
        "capital-loss": Number(0, 4356, amount=True),
        "hours-per-week": Number(1, 99, integer=True),
    }
    columns = {
        name: numbers.get(name) or Category(tuple(X[name].cat.categories))
        for name in X
        if name not in ("fnlwgt", "education")
    }
    scores = []
    for seed in range(3):
        model = PrivateAdditiveClassifier(
            accountant=PrivacyLoss(epsilon, 1e-5),
            schema=Schema(columns),
            classes=["<=50K", ">50K"],
            random_state=seed,
        ).fit(X, y)
        p = model.predict_proba(X_test)
        rich = (y_test == ">50K").to_numpy()
        scores.append(
            (
                model.score(X_test, y_test),
                roc_auc_score(rich, p[:, 1]),
                log_loss(rich, p[:, 1]),
            )
        )
    mean = np.mean(scores, axis=0)
    assert mean[0] >= accuracy
    assert mean[1] >= auc
    assert mean[2] <= loss
