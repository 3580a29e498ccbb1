"""Small and large tables of numbers, with bounds that are taken as public."""

import os
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from benchmarks._tables import DATA_DIRECTORY
from skpuffer.datasets import fetch_adult, fetch_rice

__all__ = ["TABLES", "Bounded", "adult"]


@dataclass(frozen=True)
class Bounded:
    """Arrays of one split, and the public bounds of the columns."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _options():
    directory = os.environ.get(DATA_DIRECTORY)
    if not directory:
        raise OSError(f"{DATA_DIRECTORY} names no folder of the published files")
    return {"data_home": directory, "download_if_missing": False, "return_X_y": True}


def adult(subset="train"):
    """Adult without its survey weights."""
    X, y = fetch_adult(subset=subset, **_options())
    return X.drop(columns="fnlwgt"), y


def _adult_numbers():
    X, y = adult()
    return X.select_dtypes("number").to_numpy(float), y.cat.codes.to_numpy()


def _rice():
    X, y = fetch_rice(**_options())
    return np.asarray(X, dtype=float), np.unique(y, return_inverse=True)[1]


def _sklearn(load):
    def loaded():
        X, y = load(return_X_y=True)
        # a pixel that is never dark is no column
        return X[:, np.ptp(X, axis=0) > 0], y

    return loaded


TABLES = {
    "iris": _sklearn(load_iris),
    "wine": _sklearn(load_wine),
    "breast cancer": _sklearn(load_breast_cancer),
    "digits": _sklearn(load_digits),
    "rice": _rice,
    "Adult, 5 numbers": _adult_numbers,
}
