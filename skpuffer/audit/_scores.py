"""How well a model does on each record: what tells members from others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special, stats
from sklearn.base import is_classifier, is_regressor

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import floats

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array


#: What a probability that is zero in floats is taken for.
_TINY = 1e-30


def kind_of(model: Any) -> str:
    """Return what a model predicts: 'probability', 'margin' or 'number'."""
    if is_regressor(model):
        return "number"
    # which a pipeline or a search has if its last step does
    if is_classifier(model) or hasattr(model, "classes_"):
        if hasattr(model, "predict_proba"):
            return "probability"
        if hasattr(model, "decision_function"):
            return "margin"
    raise type_error("audit.model_of_unknown_kind", model_type=type(model).__name__)


def classes_of(model: Any) -> Array:
    """Labels that a classifier knows, in the order of its outputs."""
    return np.asarray(model.classes_)


def refuse_unknown(model: Any, y: Array, name: str) -> None:
    """Refuse labels that a classifier does not know."""
    if np.any(_positions(model, y) < 0):
        raise value_error(
            "audit.labels_unknown_to_model", name=name, n_classes=len(classes_of(model))
        )


def losses(model: Any, X: Any, y: Array) -> Floats:
    """Return minus the loss of each record.

    Log of the probability of the label; the margin by which its decision exceeds the
    largest other one, where there are no probabilities; minus a squared error.
    """
    kind = kind_of(model)
    if kind == "number":
        return -_squared_errors(model, X, y)
    if kind == "margin":
        return _margins(model, X, y)
    mine, rest = _chances(model, X, y)
    # log(p / (p + rest)): a probability rounds to one long before its rest is zero
    logs: Floats = -np.log1p(rest / mine)
    return logs


def likelihoods(model: Any, X: Any, y: Array) -> Floats:
    """Return how sure a model is of each record, on a nearly normal scale.

    The logit of the label's probability; its margin; minus the absolute error of a
    number (Carlini et al., 2022, section IV-C).
    """
    kind = kind_of(model)
    if kind == "number":
        return -np.sqrt(_squared_errors(model, X, y))
    if kind == "margin":
        return _margins(model, X, y)
    mine, rest = _chances(model, X, y)
    logit: Floats = np.log(mine) - np.log(np.maximum(rest, _TINY))
    return logit


def _positions(model: Any, y: Array) -> Array:
    """Position of each label among those the model knows, or -1."""
    classes = classes_of(model)
    order = np.argsort(classes)
    try:
        at = np.searchsorted(classes, y, sorter=order)
        at = order[np.minimum(at, len(classes) - 1)]
        return np.where(classes[at] == y, at, -1)
    except TypeError:  # texts and numbers have no order, and are not equal either
        return np.full(len(y), -1)


def _chances(model: Any, X: Any, y: Array) -> tuple[Floats, Floats]:
    """Probability of each record's label, above zero, and of all others together."""
    proba = _by_class(model, _numbers(model.predict_proba(X)))
    at = _positions(model, y)
    own = np.arange(proba.shape[1]) == at[:, np.newaxis]
    # a label that is not known has none
    mine: Floats = np.where(own, proba, 0.0).sum(axis=1)
    rest: Floats = np.where(own, 0.0, proba).sum(axis=1)
    return np.maximum(mine, _TINY), rest


def _by_class(model: Any, found: Floats) -> Floats:
    n_classes = len(classes_of(model))
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise value_error(
            "audit.predictions_not_per_class", shape=found.shape, n_classes=n_classes
        )
    return found


def _margins(model: Any, X: Any, y: Array) -> Floats:
    decided, at = _numbers(model.decision_function(X)), _positions(model, y)
    if decided.ndim == 1:
        decided = np.column_stack([-decided, decided]) / 2
    decided = _by_class(model, decided)
    own = np.arange(decided.shape[1]) == at[:, np.newaxis]
    others = np.where(own, -np.inf, decided).max(axis=1)
    # a label that is not known loses by the most that there is
    mine = decided[np.arange(len(at)), np.maximum(at, 0)]
    margins: Floats = np.where(at < 0, decided.min(axis=1), mine) - others
    return margins


def _squared_errors(model: Any, X: Any, y: Array) -> Floats:
    predicted = _numbers(model.predict(X))
    errors = (predicted.reshape(len(y), -1) - y.reshape(len(y), -1)) ** 2
    total: Floats = errors.sum(axis=1)
    return total


def _numbers(predicted: Any) -> Floats:
    found = floats(predicted)
    if found is None:
        raise value_error("audit.predictions_not_numeric")
    return found


# -- confidence intervals of rates and of areas under ROC curves -----------------------


def clopper_pearson(successes: int, trials: int, failure: float) -> tuple[float, float]:
    """Lower and upper bound of a rate, each wrong with probability `failure` at most.

    Clopper and Pearson (1934), The use of confidence or fiducial limits.

    Examples
    --------
    >>> from skpuffer.audit import clopper_pearson
    >>> low, high = clopper_pearson(0, 1000, failure=0.05)
    >>> low, round(high, 6)  # the rule of three
    (0.0, 0.002991)
    """
    low, high = 0.0, 1.0
    if successes > 0:
        low = special.betaincinv(successes, trials - successes + 1, failure)
    if successes < trials:
        high = special.betainccinv(successes + 1, trials - successes, failure)
    return float(low), float(high)


def _placements(scores: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Share of the other kind that each score beats, equal ones half."""
    n, m = len(scores), len(others)
    ranks = stats.rankdata(np.concatenate([scores, others]))
    of_scores = (ranks[:n] - stats.rankdata(scores)) / m
    of_others = 1 - (ranks[n:] - stats.rankdata(others)) / n
    return of_scores, of_others


def area(scores: Floats, others: Floats) -> float:
    """Area under the ROC curve: probability that a score exceeds one of the others."""
    return float(_placements(scores, others)[0].mean())


def area_interval(
    scores: Floats, others: Floats, confidence: float, method: str = "delong"
) -> tuple[float, float]:
    """Two-sided interval of the area under the ROC curve.

    'delong' is asymptotic (DeLong, DeLong and Clarke-Pearson, 1988; on the scale of the
    logit, Qin and Hotilovac, 2008). 'pairs' holds at every size: each score meets
    another that no other score meets, and what is left is a binomial rate. It is taken
    where the variance of the first is zero or unknown.
    """
    failure = (1 - confidence) / 2
    if method == "delong" and min(len(scores), len(others)) > 1:
        mine, theirs = _placements(scores, others)
        value = float(mine.mean())
        variance = mine.var(ddof=1) / len(mine) + theirs.var(ddof=1) / len(theirs)
        if variance > 0 and 0 < value < 1:
            # the delta rule: d logit(a) = da / (a (1 - a))
            spread = math.sqrt(variance) / (value * (1 - value))
            reach = float(special.ndtri(1 - failure)) * spread
            low, high = special.expit(special.logit(value) + np.array([-reach, reach]))
            return float(low), float(high)
    # who meets whom, and who wins where they are equal, must not follow the scores: a
    # seed of its own, so that an interval is the same whenever it is asked for
    rng = np.random.default_rng(0)
    n = min(len(scores), len(others))
    mine, theirs = rng.permutation(scores)[:n], rng.permutation(others)[:n]
    wins = (mine > theirs) | ((mine == theirs) & (rng.random(n) < 0.5))
    return clopper_pearson(int(wins.sum()), n, failure)
