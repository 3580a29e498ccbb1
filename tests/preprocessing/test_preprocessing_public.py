"""Transformers by public facts of columns: bounds, fills and edges."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skpuffer.compose import PublicPreprocessing
from skpuffer.exceptions import Statement
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import (
    PublicBinner,
    PublicImputer,
    PublicMinMaxScaler,
    PublicOneHotEncoder,
)
from skpuffer.schema import Category, Number, Schema
from tests.refused import refused

SCHEMA = Schema(
    {
        "age": Number(0, 100, missing=["?"], fill=40),
        "gain": Number(0, 999, amount=True, missing_level=True),
        "job": Category(["x", "y"], fill="y"),
        "pay": ["lo", "hi"],
    },
    target="pay",
)
TABLE = pd.DataFrame(
    {
        "age": [50, 250, None, "?"],
        "gain": [0.0, 999.0, np.nan, 9.0],
        "job": ["x", "new", None, "y"],
        "hours": [1.0, 2.0, 3.0, 4.0],
    }
)
CASES = {
    "scaler": (PublicMinMaxScaler({"age": (0, 100)}), ["age", "hours"]),
    "scaler of all": (PublicMinMaxScaler((0, 10)), ["gain", "hours"]),
    "scaler by a schema": (PublicMinMaxScaler(schema=SCHEMA), ["age", "gain", "hours"]),
    "imputer": (PublicImputer({"age": 7, "job": "y"}), ["age", "job", "hours"]),
    "imputer by a schema": (PublicImputer(schema=SCHEMA), list(TABLE)),
    "binner": (PublicBinner({"age": [0, 30, 100]}), ["age", "hours"]),
    "binner by a schema": (PublicBinner(schema=SCHEMA, n_bins=4), list(TABLE)),
    "one-hot cells": (PublicBinner(schema=SCHEMA, encode="onehot"), list(TABLE)),
}
each = pytest.mark.parametrize("name", CASES)


@each
def test_they_learn_nothing_and_read_rows_one_by_one(name):
    transformer, columns = CASES[name]
    X = TABLE[columns]
    fitted = clone(transformer).fit(X)
    expected = fitted.transform(X)
    assert set(vars(fitted)) - set(transformer.get_params()) == {
        "n_features_in_",
        "feature_names_in_",
    }
    alone = [fitted.transform(X.iloc[[i]]) for i in range(4)]
    np.testing.assert_array_equal(np.vstack(alone), expected)
    other = clone(transformer).fit(X.iloc[::-1].reset_index(drop=True))
    np.testing.assert_array_equal(other.transform(X), expected)
    assert get_tags(transformer).requires_fit is False
    assert expected.shape == (4, len(fitted.get_feature_names_out()))


@each
def test_frames_of_any_library_and_arrays(name):
    transformer, columns = CASES[name]
    X = TABLE[columns]
    expected = clone(transformer).fit_transform(X)
    columns = {c: [None if pd.isna(v) else v for v in X[c]] for c in X}
    if "age" in columns:
        columns["age"] = [None if v is None else str(v) for v in columns["age"]]
    found = clone(transformer).fit_transform(pl.DataFrame(columns))
    np.testing.assert_array_equal(found, expected)
    out = clone(transformer).set_output(transform="pandas").fit_transform(X)
    assert list(out) == list(clone(transformer).fit(X).get_feature_names_out())


@pytest.mark.parametrize(
    "kind", [PublicMinMaxScaler, PublicImputer, PublicBinner], ids=lambda k: k.__name__
)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20))
def test_nothing_that_a_column_holds_is_refused(kind, seed):
    strange = [
        None, np.nan, "x", b"x", 1, True, Decimal("sNaN"), 10**400, 1j, [1], {}, "",
        datetime.date(2020, 1, 1), float("inf"), "7", "?",
    ]  # fmt: skip
    rng = np.random.default_rng(seed)
    held = np.empty((5, 2), dtype=object)
    for i in np.ndindex(held.shape):
        held[i] = strange[rng.integers(len(strange))]
    frame = pd.DataFrame(dict(zip(["age", "gain"], held.T, strict=True)), dtype=object)
    own = {
        PublicMinMaxScaler: {"bounds": {"age": (0, 1), "gain": (0, 1)}},
        PublicImputer: {"fill": {"age": 3, "gain": "none"}},
        PublicBinner: {"bins": {"age": [0, 1], "gain": [0, 1, 2]}},
    }[kind]
    for transformer in (kind(**own), kind(schema=SCHEMA)):
        together = transformer.fit(frame).transform(frame)
        alone = [transformer.transform(frame.iloc[[i]]) for i in range(5)]
        # nor by what comes next, which takes finite numbers and gaps
        assert not np.any(np.isinf(together[:, 0].astype(float)))
        assert str(np.vstack(alone).tolist()) == str(together.tolist())


# -- what each makes of it -------------------------------------------------------------


def test_scaling():
    scaler = PublicMinMaxScaler({"age": (0, 100)}, feature_range=(-1, 1))
    found = scaler.fit_transform(TABLE[["age", "hours"]])
    np.testing.assert_array_equal(found[:, 0], [0, 1, np.nan, np.nan])
    assert found[:, 1].tolist() == [1, 2, 3, 4]
    # the code book fills, and takes amounts by their logarithm
    found = PublicMinMaxScaler(schema=SCHEMA).fit_transform(TABLE[["age", "gain"]])
    np.testing.assert_allclose(found[:, 0], [0.5, 1, 0.4, 0.4])
    np.testing.assert_allclose(found[:, 1], [0, 1, 0.5, 1 / 3], atol=1e-9)
    both = PublicMinMaxScaler(([0, 0], [10, 20])).fit_transform([[5, 5], [99, -1]])
    assert both.tolist() == [[0.5, 0.25], [1, 0]]


def test_imputing():
    imputer = PublicImputer({"age": 7, "job": "z"}, missing=["?", "new"])
    found = imputer.fit_transform(TABLE[["age", "job"]])
    assert found.tolist() == [[50, "x"], [250, "z"], [7, "z"], [7, "y"]]
    found = PublicImputer(schema=SCHEMA).fit_transform(TABLE[["age", "gain", "job"]])
    assert found[:, 0].tolist() == [50, 100, 40, 40]
    assert found[2, 1] == pytest.approx(np.sqrt(1000) - 1)
    assert found[:, 2].tolist() == ["x", "y", "y", "y"]
    # by the level that the code book names, whichever it is
    for fill in ("x", "y", "z"):
        book = Schema({"job": Category(["x", "y", "z"], fill=fill)})
        found = PublicImputer(schema=book).fit_transform(TABLE[["job"]])
        assert found.ravel().tolist() == ["x", fill, fill, "y"]
    # codes of what is missing may be numbers
    coded = PublicImputer({0: 7.5}, missing=[-9, "99"])
    for column in ([-9, 3, 99], [-9.0, 3.0, 99.0], ["-9", "3", "99"]):
        found = coded.fit_transform([[cell] for cell in column])
        assert found.ravel().tolist() == [7.5, 3, 7.5]
    # truth values are no numbers
    assert PublicImputer({0: True}).fit_transform([[None], [False]]).tolist() == [
        [True],
        [False],
    ]


def test_binning():
    binner = PublicBinner(schema=SCHEMA, n_bins=2)
    found = binner.fit_transform(TABLE[["age", "job"]])
    assert found.tolist() == [[1, 0], [1, 2], [0, 2], [0, 1]]
    cells = clone(binner).set_params(encode="onehot").fit(TABLE[["age", "job"]])
    assert cells.get_feature_names_out().tolist() == [
        "age_[0, 50)", "age_[50, 100]", "job_x", "job_y", "job_missing",
    ]  # fmt: skip
    rows = cells.transform(TABLE[["age", "job"]])
    np.testing.assert_array_equal(rows.sum(axis=1), 2)


def test_steps_of_a_pipeline():
    steps = make_pipeline(
        make_column_transformer(
            (PublicMinMaxScaler(schema=SCHEMA), ["age", "gain"]),
            (PublicOneHotEncoder({"job": ["x", "y"]}), ["job"]),
            verbose_feature_names_out=False,
        ),
    )
    model = PublicPreprocessing(steps, PrivateLogisticRegression(data_norm=2.0))
    X, y = pd.concat([TABLE] * 10, ignore_index=True), [0, 1] * 20
    fixed = Statement("assume.preprocessing_fixed_beforehand")
    assert fixed in model.fit(X, y).certificate_.assumptions
    assert len(model.predict(X)) == 40


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformer, code, parameters",
    [
        (
            PublicMinMaxScaler({"height": (0, 1)}),
            "preprocessing.columns_unknown",
            {"parameter": "bounds"},
        ),
        (PublicMinMaxScaler({"age": (1, 0)}), "bounds.low_not_below_high", {}),
        (PublicMinMaxScaler("empirical"), "preprocessing.bounds_not_public_form", {}),
        (
            PublicMinMaxScaler((0, 1), feature_range=(1, 0)),
            "preprocessing.feature_range_not_ordered",
            {},
        ),
        (
            PublicMinMaxScaler((0, 1), feature_range=3),
            "preprocessing.feature_range_not_ordered",
            {},
        ),
        (
            PublicMinMaxScaler((0, 1), schema=SCHEMA),
            "preprocessing.columns_and_schema_both_given",
            {"parameter": "bounds"},
        ),
        (PublicMinMaxScaler(schema={"age": (0, 1)}), "schema.not_a_schema", {}),
        (
            PublicMinMaxScaler(schema=SCHEMA),
            "preprocessing.columns_are_categories",
            {"levels": ["job"]},
        ),
        (PublicMinMaxScaler(), "preprocessing.column_not_numeric", {"name": "age"}),
        (
            PublicImputer({"height": 1}),
            "preprocessing.columns_unknown",
            {"parameter": "fill"},
        ),
        (
            PublicImputer({"age": None}),
            "preprocessing.fill_value_missing",
            {"column": "age"},
        ),
        (
            PublicImputer({"age": np.inf}),
            "preprocessing.fill_value_missing",
            {"column": "age"},
        ),
        (PublicImputer([1]), "preprocessing.fill_not_dict", {}),
        (
            PublicImputer({"age": 1}, missing="?"),
            "preprocessing.missing_codes_not_list",
            {},
        ),
        (
            PublicImputer({"age": 1}, schema=SCHEMA),
            "preprocessing.columns_and_schema_both_given",
            {"parameter": "fill"},
        ),
        (
            PublicImputer({"job": "x"}),
            "preprocessing.column_not_numeric",
            {"name": "age"},
        ),
        (
            PublicImputer(schema=Schema({"job": ["x", "y"]})),
            "preprocessing.column_not_numeric",
            {"name": "age"},
        ),
        (
            PublicBinner({"height": [0, 1]}),
            "preprocessing.columns_unknown",
            {"parameter": "bins"},
        ),
        (
            PublicBinner({"age": [1, 0]}),
            "preprocessing.bins_column_invalid",
            {"name": "age"},
        ),
        (PublicBinner({"age": 5}), "preprocessing.bins_too_few_edges", {"name": "age"}),
        (PublicBinner([0, 1]), "preprocessing.bins_not_dict", {}),
        (
            PublicBinner({"age": [0, 1]}, encode="sparse"),
            "parameter.option_unknown",
            {"name": "encode"},
        ),
        (
            PublicBinner({"age": [0, 1]}, n_bins=0),
            "parameter.count_too_small",
            {"name": "n_bins"},
        ),
        (
            PublicBinner({"age": [0, 1]}, schema=SCHEMA),
            "preprocessing.columns_and_schema_both_given",
            {"parameter": "bins"},
        ),
    ],
    ids=str,
)
def test_bad_parameters(transformer, code, parameters):
    with refused((ValueError, TypeError), code, **parameters):
        transformer.fit(TABLE)
    assert not hasattr(transformer, "n_features_in_")
