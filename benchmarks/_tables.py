"""The data sets of the accuracy benchmark, and how every model sees them."""

import os
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skpuffer.datasets import fetch_adult

DATA_DIRECTORY = "SKPUFFER_TEST_DATA"


@dataclass(frozen=True)
class Split:
    """Arrays of one seed, the same for every model."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def _gaussian_clusters():
    return make_classification(
        100_000,
        100,
        n_informative=20,
        n_redundant=20,
        class_sep=1.0,
        random_state=0,
    )


def encoded_adult(X, y):
    """Complete rows, categories one-hot, numbers as they are."""
    complete = X.notna().all(axis=1)
    encoded = pd.get_dummies(X[complete], dtype=float)
    return encoded.to_numpy(), y[complete].cat.codes.to_numpy()


def _adult():
    """The whole training part."""
    directory = os.environ.get(DATA_DIRECTORY)
    if not directory:
        raise OSError(f"{DATA_DIRECTORY} names no folder of the published files")
    options = {"data_home": directory, "download_if_missing": False}
    return encoded_adult(*fetch_adult(**options, return_X_y=True))


LOADERS = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "make_classification": _gaussian_clusters,
    "adult": _adult,
}


def _to_unit_ball(X):
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def split(X, y, seed):
    """Hold a quarter out; z-score by the other rows; then scale rows to norm <= 1."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X_train)
    return Split(
        _to_unit_ball(scaler.transform(X_train)),
        y_train,
        _to_unit_ball(scaler.transform(X_test)),
        y_test,
    )
