"""Scores: each record is worth from zero to one, and moves a sum by no more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    mean_absolute_error,
    mean_squared_error,
)

from skpuffer.exceptions import UnsupportedError
from skpuffer.model_selection._accounting import _largest_within
from skpuffer.model_selection._scores import score_of
from skpuffer.releases import PublicContext
from tests.refused import refused

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
LABELS = np.array(["no", "yes"])
y = (X[:, 0] + 0.3 * rng.normal(size=80) > 0).astype(int)
MODEL = LogisticRegression().fit(X, LABELS[y])
THREE = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.4, 0.4]))
TARGET = np.clip(X @ [1.0, -0.5, 0.2], -1, 1)
LINE = LinearRegression().fit(X, TARGET)


def scored(name, model, y, classes=None, bounds=None):
    score = score_of(name, model, classes, bounds)
    total = score.total(model, X, y)
    assert total.shape == (1,)
    assert 0 <= total[0] <= len(y)
    return score.of_total(float(total[0]), len(y))


def test_they_are_scikit_learns():
    assert scored("accuracy", MODEL, y, LABELS) == pytest.approx(
        accuracy_score(LABELS[y], MODEL.predict(X))
    )
    assert scored(None, MODEL, y, LABELS) == scored("accuracy", MODEL, y, LABELS)
    assert scored("neg_brier_score", MODEL, y, LABELS) == pytest.approx(
        -brier_score_loss(y, MODEL.predict_proba(X)[:, 1])
    )
    three = np.digitize(X[:, 0], [-0.4, 0.4])
    assert scored("neg_brier_score", THREE, three, THREE.classes_) == pytest.approx(
        -brier_score_loss(three, THREE.predict_proba(X))
    )
    predicted = np.clip(LINE.predict(X), -1, 1)
    bounds = (-1.0, 1.0)
    assert scored("neg_mean_squared_error", LINE, TARGET, bounds=bounds) == (
        pytest.approx(-mean_squared_error(TARGET, predicted))
    )
    assert scored("neg_mean_absolute_error", LINE, TARGET, bounds=bounds) == (
        pytest.approx(-mean_absolute_error(TARGET, predicted))
    )


@given(
    st.integers(0, 79),
    st.lists(st.floats(-100, 100), min_size=3, max_size=3),
    st.sampled_from([-1, 0, 1]),
    st.one_of(st.floats(-50, 50), st.just(np.nan)),
)
def test_a_record_moves_a_sum_by_at_most_one(at, row, label, target):
    for name, model, truth, new, more in (
        ("accuracy", MODEL, y, label, {"classes": LABELS}),
        ("neg_brier_score", MODEL, y, label, {"classes": LABELS}),
        ("neg_mean_squared_error", LINE, TARGET, target, {"bounds": (-1.0, 1.0)}),
        ("neg_mean_absolute_error", LINE, TARGET, target, {"bounds": (-1.0, 1.0)}),
    ):
        score = score_of(name, model, more.get("classes"), more.get("bounds"))
        changed, others = truth.copy(), X.copy()
        changed[at], others[at] = new, row
        whole, moved = score.total(model, X, truth), score.total(model, others, changed)
        without = score.total(model, np.delete(X, at, axis=0), np.delete(truth, at))
        release = score.release(PublicContext(n_records=80))
        one = release.sensitivity.value("add_remove", 1, 1)
        assert abs(whole - moved) <= release.sensitivity.value("replace", 1, 1) + 1e-9
        assert abs(whole - without) <= one + 1e-9


@pytest.mark.parametrize("wild", [-1e9, -3.0, 7.0, 1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "name, kind, known",
    [
        ("accuracy", LogisticRegression, {"classes": LABELS}),
        ("neg_brier_score", LogisticRegression, {"classes": LABELS}),
        ("neg_mean_squared_error", LinearRegression, {"bounds": (-1.0, 1.0)}),
        ("neg_mean_absolute_error", LinearRegression, {"bounds": (-1.0, 1.0)}),
    ],
)
def test_whatever_a_model_says_a_record_is_worth_from_zero_to_one(
    name, kind, known, wild
):
    class Wild(kind):
        classes_ = LABELS

        def predict(self, X):
            return np.full(len(X), wild)

        def predict_proba(self, X):
            return np.full((len(X), 2), wild)

    score = score_of(name, Wild(), known.get("classes"), known.get("bounds"))
    truth = TARGET if "bounds" in known else y
    with np.errstate(over="ignore", invalid="ignore"):
        for n in (1, 2, 80):
            assert 0 <= score.total(Wild(), X[:n], truth[:n])[0] <= n


def test_a_record_without_a_label_or_a_target_is_worth_nothing():
    score = score_of("accuracy", MODEL, LABELS, None)
    assert score.total(MODEL, X, np.full(80, -1)) == 0
    score = score_of(None, LINE, None, (-1.0, 1.0))
    assert score.total(LINE, X, np.full(80, np.nan)) == 0


def test_whole_counts_are_released_as_integers_and_others_are_not():
    context = PublicContext(n_records=80)
    assert score_of("accuracy", MODEL, LABELS, None).release(context).is_integer
    assert (
        not score_of("neg_brier_score", MODEL, LABELS, None).release(context).is_integer
    )


@pytest.mark.parametrize(
    "name", ["f1", "roc_auc", "balanced_accuracy", "neg_log_loss", "precision", len, 3]
)
def test_others_are_refused_by_name(name):
    with refused(ValueError, "search.scoring_sensitivity_unknown") as raised:
        score_of(name, MODEL, LABELS, None)
    assert repr(name) in str(raised.value)
    with refused(ValueError, "search.scoring_sensitivity_unknown"):
        score_of("r2", LINE, None, (-1.0, 1.0))


def test_what_a_model_lacks_is_named():
    with refused(ValueError, "search.scoring_method_missing", method="predict_proba"):
        score_of("neg_brier_score", RidgeClassifier(), LABELS, None)
    with refused(ValueError, "search.scoring_needs_target_bounds"):
        score_of(None, LINE, None, None)
    with refused(ValueError, "search.estimator_has_no_score"):
        score_of(None, KMeans(), None, None)


def test_whoever_simulates_tables_is_refused():
    release = score_of(None, MODEL, LABELS, None).release(PublicContext(n_records=80))
    with refused(UnsupportedError, "search.score_needs_fitted_model"):
        release.run(X, y)


def test_an_epsilon_that_breaks_the_budget_is_never_taken():
    """Whatever is spent at each: one that does not grow with it, or jumps."""
    for spent in (lambda epsilon: 5.0, lambda epsilon: 1.1 + epsilon):
        with refused(UnsupportedError, "search.no_noise_for_budget"):
            _largest_within(spent, 1.0)
    found = _largest_within(lambda epsilon: 3.0 * epsilon + 0.5 * (epsilon > 0.1), 1.0)
    assert 3.0 * found + 0.5 * (found > 0.1) <= 1.0
