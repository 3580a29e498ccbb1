"""Columns of thousands of levels take memory by their number, not by its square."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.synthesis import PrivateTableSynthesizer

LEVELS = tuple(f"l{i}" for i in range(8000))
TABLE = pd.DataFrame({"k": LEVELS[:50], "x": np.linspace(0, 1, 50)})
Y = np.arange(50) % 2


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        PrivateMean(),
        PrivateStandardScaler(),
        PrivateGaussianNB(),
        PrivateCategoricalNB(),
        PrivateLogisticRegression(),
        PrivateAdditiveClassifier(n_rounds=5, random_state=0),
        PrivateAdditiveRegressor(n_rounds=5, target_bounds=(0, 1), random_state=0),
        PrivateTableSynthesizer(max_cells=400_000),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_no_matrix_has_the_square_of_the_levels(estimator, ordered):
    book = Schema({"k": Category(LEVELS, ordered=ordered), "x": Number(0, 1)})
    square = 8 * len(LEVELS) ** 2
    tracemalloc.start()
    try:
        estimator.set_params(schema=book).fit(TABLE, Y)
        if hasattr(estimator, "predict"):
            assert len(estimator.predict(TABLE)) == 50
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * square


def test_a_level_that_stands_with_others_has_a_score_of_its_own():
    book = Schema({"k": Category(LEVELS), "x": Number(0, 1)})
    model = PrivateAdditiveRegressor(schema=book, target_bounds=(0, 1), n_rounds=5).fit(
        TABLE, Y
    )
    assert model.shape_functions_["k"].scores.shape == (len(LEVELS) + 1,)
    assert len(np.unique(model.shape_functions_["k"].scores)) <= 1024
