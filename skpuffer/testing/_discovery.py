"""Discovery of all public estimators, each with an instance ready to be checked."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

# Imported by name when asked for: importing this module should not import them all.
_PACKAGES = (
    "additive",
    "cluster",
    "compose",
    "covariance",
    "decomposition",
    "ensemble",
    "linear_model",
    "model_selection",
    "naive_bayes",
    "neural_network",
    "preprocessing",
    "summary",
    "svm",
    "synthesis",
)


#: What releases nothing but by others, which are listed.
_MADE_OF_OTHERS = {"PrivatePipeline", "PrivateScore"}


class EstimatorEntry(NamedTuple):
    """One public estimator.

    Parameters
    ----------
    name : str
        Name of the class.
    estimator_class : type
    instance : estimator
        An instance whose `fit` works on small numeric data.

    Examples
    --------
    >>> from skpuffer.testing import all_estimators
    >>> (entry,) = [each for each in all_estimators() if each.name == "PrivateMean"]
    >>> entry.estimator_class is type(entry.instance)
    True
    >>> entry.instance.fit([[0.0], [1.0]]).certificate_.epsilon
    1.0
    """

    name: str
    estimator_class: type[Any]
    instance: object


def _composed() -> dict[str, Callable[[], Any]]:
    """Makers of instances whose parameters cannot be guessed, by class name."""
    # imported here, for the same reason
    from sklearn.linear_model import LogisticRegression

    accountants = importlib.import_module("skpuffer.accountants")
    cluster = importlib.import_module("skpuffer.cluster")
    compose = importlib.import_module("skpuffer.compose")
    ensemble = importlib.import_module("skpuffer.ensemble")
    linear_model = importlib.import_module("skpuffer.linear_model")
    model_selection = importlib.import_module("skpuffer.model_selection")
    preprocessing = importlib.import_module("skpuffer.preprocessing")
    summary = importlib.import_module("skpuffer.summary")
    return {
        "OutputPerturbation": lambda: compose.OutputPerturbation(
            LogisticRegression(C=0.1), query=["coef_", "intercept_"], sensitivity=0.2
        ),
        # as many answers as a check may ask for, from teachers that are fitted quickly
        "PATEClassifier": lambda: ensemble.PATEClassifier(
            LogisticRegression(), n_teachers=3, n_queries=1000
        ),
        # few clusters and little noise: else all centres of small tables are one mean
        "PrivateKMeans": lambda: cluster.PrivateKMeans(
            n_clusters=2,
            bounds=(-10.0, 10.0),
            accountant=accountants.PrivacyLoss(50.0, 1e-5),
        ),
        # as few trials as there can be, as checks fit it often
        "PrivateGridSearchCV": lambda: model_selection.PrivateGridSearchCV(
            linear_model.PrivateLogisticRegression(), {"C": [0.5, 1.0]}, n_trials=1.5
        ),
        "PrivateRandomizedSearchCV": lambda: model_selection.PrivateRandomizedSearchCV(
            linear_model.PrivateRidge(target_bounds=(-1.0, 1.0)),
            {"alpha": [0.5, 1.0]},
            n_iter=2,
            n_trials=1.5,
        ),
        "PrivateStatistic": lambda: summary.PrivateStatistic(sensitivity=0.2),
        # seeded within, because scikit-learn's checks seed the outermost estimator only
        "PublicPreprocessing": lambda: compose.PublicPreprocessing(
            preprocessing.RowNormClipper(),
            linear_model.PrivateLogisticRegression(random_state=0),
        ),
    }


def _instance(name: str, estimator_class: type[Any]) -> Any:
    """Instance that can be fitted: bounds are public and cannot be guessed."""
    # wide enough for the data that scikit-learn's checks make up
    examples = _composed()
    if name in examples:
        return examples[name]()
    parameters = inspect.signature(estimator_class).parameters
    wide = {"bounds": (-10.0, 10.0), "target_bounds": (-1.0, 1.0)}
    public: dict[str, Any] = {
        name: held for name, held in wide.items() if name in parameters
    }
    if "n_rounds" in parameters:  # few, as checks fit it often
        public["n_rounds"] = 10
    return estimator_class(**public)


def all_estimators() -> list[EstimatorEntry]:
    """List every public estimator class with a ready-to-check instance.

    Returns
    -------
    entries : list of EstimatorEntry
        Sorted by name, without :class:`~skpuffer.compose.PrivatePipeline` and
        :class:`~skpuffer.model_selection.PrivateScore`.

    Examples
    --------
    >>> from skpuffer.testing import all_estimators
    >>> [entry.name for entry in all_estimators()][-1]
    'RowNormClipper'
    """
    found = {}
    for package in _PACKAGES:
        module = importlib.import_module(f"skpuffer.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if name in _MADE_OF_OTHERS:
                continue
            if inspect.isclass(thing) and hasattr(thing, "fit"):
                found[name] = thing
    return [EstimatorEntry(n, found[n], _instance(n, found[n])) for n in sorted(found)]
