"""Tables in two worlds, models and accountants of the sliced-learning benchmark."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.datasets import load_digits

from skpuffer.accountants import HistoryUniformCap, RenyiDP
from skpuffer.datasets import load_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import PrevalenceScenario, RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training

#: Records by which the two worlds differ.
DIFFER = 10
ALPHA = 8.0
#: Records of a batch, and steps.
BATCH, STEPS = 200, 200

#: Columns of the Adult table that are read.
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
NAMES = ["workclass", "education", "marital-status", "occupation", "relationship"]
NAMES += ["race", "sex"]


@dataclass(frozen=True)
class Task:
    """A table in either world, and rows to test on.

    Parameters
    ----------
    name : str
    scenario : PrevalenceScenario
    worlds : tuple of (X, y)
        First as it is less common.
    X, y : ndarray
        Public rows, which test and probe.
    data_norm : float
    """

    name: str
    scenario: PrevalenceScenario
    worlds: tuple[tuple[Any, Any], tuple[Any, Any]]
    X: Any
    y: Any
    data_norm: float

    @property
    def classes(self):
        return np.unique(self.y).tolist()


def _encoded(frame, public):
    """Numbers in public units and one-hot names, as an array."""
    numbers = frame[NUMBERS].astype(float)
    spread = public[NUMBERS].std()
    numbers = ((numbers - public[NUMBERS].mean()) / spread).clip(-2, 2)
    names = pd.get_dummies(frame[NAMES], dtype=float)
    return pd.concat([numbers / np.sqrt(4 * len(NUMBERS)), names], axis=1).to_numpy()


@lru_cache
def _adult():
    return load_adult(subset="train"), load_adult(subset="test")


def race_task():
    """Whether ten more people of 4000 are black."""
    private, public = _adult()
    held = int((private.frame["race"] == "Black").sum())
    scenario = PrevalenceScenario("race", held, held + DIFFER, value="Black")
    y, y_public = ((b.target == ">50K").to_numpy(int) for b in (private, public))
    worlds = tuple(
        (_encoded(X, public.frame), labels)
        for X, labels in scenario.worlds(private.frame, y, random_state=0)
    )
    X_public = _encoded(public.frame, public.frame)
    return Task("Adult, race", scenario, worlds, X_public, y_public, 3.0)


def income_task():
    """Whether ten more people of 4000 earn more than 50,000 dollars."""
    private, public = _adult()
    y, y_public = ((b.target == ">50K").to_numpy(int) for b in (private, public))
    held = int(y.sum())
    scenario = PrevalenceScenario(None, held, held + DIFFER, relation="relabel")
    X, X_public = (_encoded(b.frame, public.frame) for b in (private, public))
    worlds = scenario.worlds(X, y, random_state=0)
    return Task("Adult, income", scenario, worlds, X_public, y_public, 3.0)


def digits_task():
    """Whether ten more images of 1347 are labelled as an eight."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    private, public = slice(450, None), slice(450)
    held = int((y[private] == 8).sum())
    scenario = PrevalenceScenario(
        None, held, held + DIFFER, relation="relabel", value=8
    )
    worlds = scenario.worlds(X[private], y[private], random_state=0)
    # no image is longer than this, of public ones
    return Task("digits, eights", scenario, worlds, X[public], y[public], 4.5)


def logistic_table(n=4000, dim=10, seed=0):
    """Rows, and labels by a logistic model of them."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=dim)
    X = rng.normal(size=(n, dim))
    y = (rng.random(n) < expit(X @ weights)).astype(int)
    return X, y


TASKS = {
    "Adult, race": race_task,
    "Adult, income": income_task,
    "digits, eights": digits_task,
}


def models(task):
    """Return the models of a task, by name, without scenario and accountant."""
    run = Training(batch_size=BATCH, n_steps=STEPS, clip_norm=1.0)
    shared = {"classes": task.classes, "data_norm": task.data_norm, "training": run}
    return {
        "logistic regression": PrivateLogisticRegression(solver="gradient", **shared),
        "linear SVM": PrivateLinearSVC(**shared),
        "MLP": PrivateMLPClassifier(hidden_size=16, **shared),
    }


#: Sampling of each way of accounting, and whether it is of the two worlds.
WORST, LOG, SQUARE = "worst case", "log-moment", "mean square (sa-)"
HIDDEN, RECORD = "hidden batches", "one record (DP)"
WAYS = {
    WORST: "fixed_size",
    LOG: "fixed_size",
    SQUARE: "fixed_size",
    HIDDEN: "poisson",
    RECORD: "poisson",
}
_CAPS = {WORST: "worst_case", LOG: "log_moment", SQUARE: "mean_square"}


def accountant_of(way, epsilon, alpha=ALPHA):
    """Return the accountant of a way of accounting at a budget of Rényi order alpha."""
    if way in _CAPS:
        return HistoryUniformCap(float(epsilon), float(alpha), _CAPS[way])
    return RenyiDP(float(epsilon), alpha=float(alpha), delta=None)


def scenario_of(way, scenario):
    """Return the scenario that a way of accounting speaks of."""
    return RecordScenario(1, "replace") if way == RECORD else scenario


def accounted(model, way, epsilon, scenario):
    """Return a model that is fitted at a budget by a way of accounting."""
    return model.set_params(
        scenario=scenario_of(way, scenario),
        accountant=accountant_of(way, epsilon),
        training__sampling=WAYS[way],
    )
