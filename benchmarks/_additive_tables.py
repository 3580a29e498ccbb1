"""Tables of the benchmark of additive models, each with its public code book.

Code books of Adult, German credit and Heart are those of their publishers. Elsewhere
bounds are the ranges of the whole table, rounded outwards to two digits: taken as known
beforehand by every model alike.
"""

import os
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.model_selection import train_test_split

from skpuffer.datasets import (
    fetch_adult,
    fetch_german_credit,
    fetch_heart,
    fetch_household_power,
    fetch_rice,
    fetch_student,
)
from skpuffer.schema import Category, Number, Schema

DATA_DIRECTORY = "SKPUFFER_TEST_DATA"


@dataclass(frozen=True)
class Table:
    """A table with its code book.

    Parameters
    ----------
    X : DataFrame
    y : ndarray
        Class indices, or numbers.
    schema : Schema
        Of the features. Its numbers are declared complete, unless it says otherwise.
    target : list of int, or (float, float)
        Classes, or bounds.
    test : DataFrame and ndarray, or None
        Test rows of its own; None holds a quarter out.
    """

    X: pd.DataFrame
    y: np.ndarray
    schema: Schema
    target: object
    test: object = None

    def __post_init__(self):
        book = self.schema
        columns = {
            name: replace(column, missing=False)
            if isinstance(column, Number) and column.missing_level is None
            else column
            for name, column in ((name, book[name]) for name in book.names)
        }
        object.__setattr__(self, "schema", Schema(columns))

    @property
    def is_regression(self):
        """Whether the target is a number."""
        return isinstance(self.target, tuple)

    def split(self, seed):
        """Return rows and targets to train and to test on."""
        if self.test is not None:
            return self.X, self.test[0], self.y, self.test[1]
        return train_test_split(
            self.X,
            self.y,
            test_size=0.25,
            random_state=seed,
            stratify=None if self.is_regression else self.y,
        )


def _published(fetch, **options):
    directory = os.environ.get(DATA_DIRECTORY)
    if not directory:
        raise OSError(f"{DATA_DIRECTORY} names no folder of the published files")
    return fetch(
        data_home=directory, download_if_missing=False, return_X_y=True, **options
    )


def rounded(values):
    """Range of values, rounded outwards to two digits."""
    low, high = float(np.min(values)), float(np.max(values))
    unit = 10.0 ** np.floor(np.log10(high - low) - 1)
    return np.floor(low / unit) * unit, np.ceil(high / unit) * unit


def _numeric(X, y, target):
    X = pd.DataFrame(X).rename(columns=str)
    columns = {
        name: Number(
            *rounded(X[name]), integer=bool(np.all(X[name].to_numpy() % 1 == 0))
        )
        for name in X
    }
    return Table(X, np.asarray(y), Schema(columns), target)


def adult():
    """Census income, with the publisher's test rows."""
    entries = {
        "age": Number(17, 90, integer=True),
        "education-num": Number(1, 16, integer=True),
        "capital-gain": Number(0, 99_999, amount=True),
        "capital-loss": Number(0, 4356, amount=True),
        "hours-per-week": Number(1, 99, integer=True),
    }
    X, y = _published(fetch_adult)
    test = _published(fetch_adult, subset="test")
    names = [name for name in X if name not in ("fnlwgt", "education")]
    columns = {
        name: entries.get(name) or Category(tuple(X[name].cat.categories))
        for name in names
    }
    codes = [y.cat.codes.to_numpy(), test[1].cat.codes.to_numpy()]
    return Table(
        X[names], codes[0], Schema(columns), [0, 1], (test[0][names], codes[1])
    )


def german_credit():
    """Good and bad credit."""
    X, y = _published(fetch_german_credit)
    entries = {
        "duration": Number(4, 72, integer=True),
        "credit_amount": Number(250, 20_000, amount=True),
        "installment_rate": Number(1, 4, integer=True),
        "residence_since": Number(1, 4, integer=True),
        "age": Number(19, 75, integer=True),
        "existing_credits": Number(1, 4, integer=True),
        "num_dependents": Number(1, 2, integer=True),
    }
    columns = {
        name: entries.get(name) or Category(tuple(X[name].cat.categories)) for name in X
    }
    return Table(X, (np.asarray(y) == 2).astype(int), Schema(columns), [0, 1])


def heart():
    """Heart disease, present or absent."""
    X, y = _published(fetch_heart)
    columns = {
        "age": (20, 80),
        "sex": [0, 1],
        "cp": [1, 2, 3, 4],
        "trestbps": (90, 200),
        "chol": (120, 570),
        "fbs": [0, 1],
        "restecg": [0, 1, 2],
        "thalach": (70, 210),
        "exang": [0, 1],
        "oldpeak": (0, 6.5),
        "slope": [1, 2, 3],
        "ca": Number(0, 3, integer=True, missing_level=True),
        "thal": [3, 6, 7],
    }
    return Table(X, (np.asarray(y) > 0).astype(int), Schema(columns), [0, 1])


def rice():
    """Two varieties of rice."""
    X, y = _published(fetch_rice)
    return _numeric(X, (np.asarray(y) == "Cammeo").astype(int), [0, 1])


def power():
    """Active power of a house by the hour, from the calendar and two readings."""
    X, y = _published(fetch_household_power)
    whole = (X["has_missing_minutes"] == 0).to_numpy()
    hours = pd.date_range("2006-12-16 17:00", periods=len(X), freq="h")
    frame = pd.DataFrame(
        {
            "hour": hours.hour,
            "weekday": hours.dayofweek,
            "month": hours.month,
            "Voltage": X["Voltage"].to_numpy() / 60,
            "Global_reactive_power": X["Global_reactive_power"].to_numpy() / 60,
        }
    )[whole]
    columns = {
        "hour": Number(0, 23, integer=True),
        "weekday": Category(tuple(range(7)), missing_level=False),
        "month": Number(1, 12, integer=True),
        "Voltage": (223, 254),
        "Global_reactive_power": (0, 1.0),
    }
    target = y.to_numpy()[whole] / 60
    return Table(frame, target, Schema(columns), (0.0, 7.0))


def _clusters():
    X, y = make_classification(
        100_000, 20, n_informative=10, n_redundant=5, random_state=0
    )
    return _numeric(X, y, [0, 1])


def _friedman():
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    columns = {str(k): (0, 1) for k in range(10)}
    return Table(pd.DataFrame(X).rename(columns=str), y, Schema(columns), (0.0, 30.0))


def _of_classes(load):
    X, y = load(return_X_y=True)
    return _numeric(X, y, sorted({*y.tolist()}))


def student():
    """Pass or fail in Portuguese, without the earlier grades."""
    X, y = _published(fetch_student, subject="portuguese")
    X = X.drop(columns=["G1", "G2"])
    columns = {
        name: Category(tuple(X[name].cat.categories))
        if isinstance(X[name].dtype, pd.CategoricalDtype)
        else Number(*rounded(X[name]), integer=True)
        for name in X
    }
    return Table(X, (np.asarray(y) >= 12).astype(int), Schema(columns), [0, 1])


LOADERS = {
    "adult": adult,
    "german_credit": german_credit,
    "breast_cancer": lambda: _of_classes(load_breast_cancer),
    "digits": lambda: _digits(),
    "make_classification": _clusters,
    "friedman": _friedman,
    "heart": heart,
    "rice": rice,
    "wine": lambda: _of_classes(load_wine),
    "diabetes": lambda: _numeric(*load_diabetes(return_X_y=True), (25.0, 350.0)),
    "power": power,
}


def _digits():
    X, y = load_digits(return_X_y=True)
    X = pd.DataFrame(X).rename(columns=str)
    columns = {name: Number(0, 16, integer=True) for name in X}
    return Table(X, y, Schema(columns), list(range(10)))
