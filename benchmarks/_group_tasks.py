"""Tables with a group of which something is released, and what is, for sliced queries.

A task holds a table, the groups of its records and how common each is. Its queries are
read of the rows of one group and return a vector in public units; which group they were
is the secret. The tables are those of Zhang and Vorobeychik: Adult by race, Cleveland
heart patients by sex, pupils by sex and by quintile of the final grade; each as it is
and with as many records of each group.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skpuffer.datasets import fetch_adult, load_adult, load_heart, load_student
from skpuffer.distributions import Discrete, PointMass
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario

#: Readings of what a prior is: the query's value on the rows of a group, or its values
#: on rows drawn from them with replacement.
POINTS, BOOTSTRAP = "points", "bootstrap"
READINGS = (POINTS, BOOTSTRAP)

#: Columns of a table: three numbers and three flags that are summed up, and nine
#: features in [0, 1] of a classifier.
_SUMMED, _FLAGS, _FEATURES = slice(0, 3), slice(3, 6), slice(6, 15)


@dataclass(frozen=True, eq=False)
class Task:
    """A table, and the groups of its records.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n_records, 15)
        Three numbers, three flags and nine features.
    y : ndarray of shape (n_records,)
        What a classifier is to tell.
    group : ndarray of shape (n_records,)
        The secret, as numbers from 0.
    secrets : tuple of str
    units : ndarray of shape (3,)
        Of the three numbers, public: half of their range.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    secrets: tuple[str, ...]
    units: np.ndarray

    @property
    def sizes(self):
        """How many records each group has."""
        return np.bincount(self.group, minlength=len(self.secrets))

    @property
    def prior(self):
        """How common each group is."""
        return self.sizes / len(self.group)

    def part(self, rows):
        """Return the task of some of its records."""
        return Task(
            self.name,
            self.X[rows],
            self.y[rows],
            self.group[rows],
            self.secrets,
            self.units,
        )


# -- what is released ------------------------------------------------------------------


def summary(task, X, y):
    """Mean and deviation of three numbers, and three rates, in public units."""
    spread = [X[:, _SUMMED].mean(axis=0), X[:, _SUMMED].std(axis=0)]
    numbers = np.array(spread) / task.units
    return np.append(numbers.T, X[:, _FLAGS].mean(axis=0) / 0.5)


def _coefficients(model, X, y):
    if len(np.unique(y)) < 2:
        return np.zeros(10)
    model.fit(X[:, _FEATURES], y)
    return np.append(model.coef_, model.intercept_)


def logistic(task, X, y):
    """Coefficients and intercept of a logistic regression."""
    return _coefficients(LogisticRegression(max_iter=1000), X, y)


def svm(task, X, y):
    """Coefficients and intercept of a linear support vector machine."""
    # its solver draws at random, which is no part of the query
    return _coefficients(LinearSVC(dual=False, random_state=0), X, y)


def forest(task, X, y):
    """Importances of the features to a random forest."""
    rows = min(len(X), 1000)
    model = RandomForestClassifier(20, max_depth=6, max_samples=rows, random_state=0)
    return model.fit(X[:, _FEATURES], y).feature_importances_


#: Queries by name, with how many numbers they return.
QUERIES: dict[str, tuple[Callable, int]] = {
    "summary": (summary, 9),
    "logistic regression": (logistic, 10),
    "linear SVM": (svm, 10),
    "random forest": (forest, 9),
}

#: Squared lengths of all there is in units: of a mean or a rate 2, of a deviation 1.
_SUMMARY_DIAMETER = np.sqrt(6 * 4 + 3 * 1)


def diameter(query, n_differ=None, n_records=None):
    """How far apart a query's values may be if some of its records are any others.

    Parameters
    ----------
    query : str
    n_differ, n_records : int, default=None
        How many of how many; all of them if None.

    Returns
    -------
    float
        In units; infinite of coefficients, which nothing bounds but the penalty.
    """
    share = 1.0 if n_differ is None else min(1.0, n_differ / n_records)
    if query == "summary":
        # A deviation is a seminorm: it moves by the root mean square of the moves.
        means, spreads = 2 * share, min(1.0, 2 * np.sqrt(share))
        return float(np.sqrt(6 * means**2 + 3 * spreads**2))
    # two corners of the simplex; one record may change any tree
    return float(np.sqrt(2)) if query == "random forest" else np.inf


# -- laws of it ------------------------------------------------------------------------


def values(task, query, n_worlds=None, seed=0):
    """Return the values of a query on the rows of each group.

    Parameters
    ----------
    task : Task
    query : str
    n_worlds : int, default=None
        So many times on as many rows, drawn from them with replacement; once on the
        rows themselves if None.
    seed : int, default=0

    Returns
    -------
    list of ndarray of shape (n_worlds, dim)
        One for each secret.
    """
    run, _ = QUERIES[query]
    found = []
    for secret in range(len(task.secrets)):
        rows = np.flatnonzero(task.group == secret)
        rng = np.random.default_rng([seed, secret])
        draws = (
            [rows]
            if n_worlds is None
            else [rng.choice(rows, len(rows)) for _ in range(n_worlds)]
        )
        found.append(np.array([run(task, task.X[at], task.y[at]) for at in draws]))
    return found


def release_of(query, n_records=2, **options):
    """Return the release of a query, whose values are in units already."""
    _, dim = QUERIES[query]
    return QueryRelease(
        query=_unread, n_records=n_records, dim=dim, name=query, **options
    )


def _unread(X, y):
    raise AssertionError("calibration reads no rows")


def scenario_of(points):
    """Return the scenario of all pairs of groups, and the distributions of each.

    Parameters
    ----------
    points : list of ndarray of shape (n_worlds, dim)

    Returns
    -------
    scenario : LawsScenario
    laws : list of PointMass or of Discrete
    """
    laws = [PointMass(each[0]) if len(each) == 1 else Discrete(each) for each in points]
    return LawsScenario(list(combinations(laws, 2))), laws


# -- the tables ------------------------------------------------------------------------


def _table(name, frame, secret, numbers, ranges, flags, features, label):
    lows, highs = np.array(ranges, dtype=float).T
    X = np.column_stack([frame[list(numbers)], *flags, *features]).astype(float)
    names, group = np.unique(np.asarray(secret, dtype=str), return_inverse=True)
    y = np.asarray(label, dtype=int)
    return Task(name, X, y, group, tuple(names), (highs - lows) / 2)


def _balanced(task):
    """As many records of each group: of a larger one some, drawn once."""
    rng = np.random.default_rng(0)
    least = task.sizes.min()
    rows = [
        rng.choice(np.flatnonzero(task.group == secret), least, replace=False)
        for secret in range(len(task.secrets))
    ]
    return task.part(np.sort(np.concatenate(rows)))


@lru_cache
def adult_race():
    """Adult by race: incomes above 50,000 dollars."""
    directory = os.environ.get("SKPUFFER_TEST_DATA")
    if directory:
        bunch = fetch_adult(data_home=directory, download_if_missing=False)
    else:
        bunch = load_adult()
    frame = bunch.frame.dropna()
    gain, loss = (frame[f"capital-{what}"] > 0 for what in ("gain", "loss"))
    rich = frame["income"] == ">50K"
    age, education, hours = (
        (frame[name] - low) / (high - low)
        for name, low, high in (
            ("age", 17, 90),
            ("education-num", 1, 16),
            ("hours-per-week", 1, 99),
        )
    )
    features = [age, education, hours, gain, loss, frame["sex"] == "Male"]
    features.append(frame["marital-status"].str.startswith("Married"))
    features.append(frame["workclass"].str.startswith("Self"))
    features.append(frame["native-country"] == "United-States")
    return _table(
        "Adult, race",
        frame,
        frame["race"],
        ("age", "education-num", "hours-per-week"),
        ((17, 90), (1, 16), (1, 99)),
        (gain, loss, rich),
        features,
        rich,
    )


@lru_cache
def heart_sex():
    """Cleveland heart patients by sex: who is ill."""
    bunch = load_heart()
    frame = bunch.frame.dropna()
    ranges = {
        "age": (29, 77),
        "trestbps": (94, 200),
        "chol": (126, 564),
        "thalach": (71, 202),
        "oldpeak": (0, 6.2),
        "cp": (1, 4),
        "exang": (0, 1),
        "slope": (1, 3),
        "ca": (0, 3),
    }
    features = [(frame[k] - low) / (high - low) for k, (low, high) in ranges.items()]
    ill = frame["num"] > 0
    numbers = ("age", "trestbps", "chol")
    return _table(
        "Heart, sex",
        frame,
        frame["sex"].map({0: "female", 1: "male"}),
        numbers,
        [ranges[name] for name in numbers],
        (frame["chol"] >= 240, frame["trestbps"] >= 140, ill),
        features,
        ill,
    )


def _student(name, secret):
    frame = load_student().frame
    ranges = {
        "age": (15, 22),
        "Medu": (0, 4),
        "Fedu": (0, 4),
        "traveltime": (1, 4),
        "studytime": (1, 4),
        "failures": (0, 4),
        "goout": (1, 5),
        "Walc": (1, 5),
        "health": (1, 5),
    }
    return _table(
        name,
        frame,
        secret(frame),
        ("G1", "G2", "G3"),
        ((0, 20),) * 3,
        (frame["studytime"] >= 3, frame["failures"] > 0, frame["absences"] > 10),
        [(frame[k] - low) / (high - low) for k, (low, high) in ranges.items()],
        # a quintile of the grade would tell a grade
        frame["absences"] > 4,
    )


@lru_cache
def student_sex():
    """Pupils by sex: who is absent often."""
    return _student("Student, sex", lambda frame: frame["sex"])


@lru_cache
def student_quintile():
    """Pupils by quintile of the final grade: who is absent often."""
    return _student(
        "Student, quintile",
        lambda frame: pd.qcut(frame["G3"], 5, labels=list("12345")),
    )


TABLES = {
    "Adult, race": adult_race,
    "Heart, sex": heart_sex,
    "Student, sex": student_sex,
    "Student, quintile": student_quintile,
}

#: Tasks by name: each table as it is, and with as many records of each group.
TASKS = {
    f"{name}, {how}": (make, how == "balanced")
    for name, make in TABLES.items()
    for how in ("natural", "balanced")
}


def task_of(name):
    """Return the task of that name."""
    make, balanced = TASKS[name]
    return _balanced(make()) if balanced else make()
