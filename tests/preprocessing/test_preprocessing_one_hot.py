import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.preprocessing import PublicOneHotEncoder
from skpuffer.schema import Schema
from tests.refused import refused

RACES = ["White", "Black", "Other"]
NAMES = ["age", "race_White", "race_Black", "race_Other", "race_missing", "hours"]
EXPECTED = [
    [30, 1, 0, 0, 0, 40],
    [41, 0, 0, 1, 0, 38],
    [52, 0, 0, 0, 1, 20],
    [63, 0, 0, 0, 0, 10],
]
TABLE = {
    "age": [30, 41, 52, 63],
    "race": ["White", "Other", None, "Martian"],
    "hours": [40.0, 38.0, 20.0, 10.0],
}


def object_array():
    return pd.DataFrame(TABLE).astype(object).to_numpy()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(make):
    encoder = PublicOneHotEncoder({"race": RACES}).fit(make(TABLE))
    np.testing.assert_array_equal(encoder.transform(make(TABLE)), EXPECTED)
    assert encoder.get_feature_names_out().tolist() == NAMES


@pytest.mark.parametrize("as_list", [False, True])
def test_object_arrays_and_lists_go_by_position(as_list):
    X = object_array().tolist() if as_list else object_array()
    encoder = PublicOneHotEncoder({1: RACES}).fit(X)
    np.testing.assert_array_equal(encoder.transform(X), EXPECTED)
    assert encoder.get_feature_names_out().tolist() == [
        "x0", "x1_White", "x1_Black", "x1_Other", "x1_missing", "x2",
    ]  # fmt: skip
    renamed = encoder.get_feature_names_out(["age", "race", "hours"])
    assert renamed.tolist() == NAMES


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["White", None], dtype="str"),
        pd.Series(["White", None], dtype=object),
        pd.Series(["White", np.nan], dtype=object),
        pd.Series(["White", pd.NA], dtype="string"),
        pd.Categorical(["White", None]),
        pl.Series(["White", None]),
        pl.Series(["White", None], dtype=pl.Categorical),
    ],
    ids=lambda c: f"{type(c).__module__.partition('.')[0]}-{c.dtype}",
)
def test_every_kind_of_missing(column):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    frame = make({"race": column})
    out = PublicOneHotEncoder({"race": RACES}).fit_transform(frame)
    np.testing.assert_array_equal(out, [[1, 0, 0, 0], [0, 0, 0, 1]])


def test_nothing_is_learnt_from_data():
    """The columns are those of the categories, whatever occurs in the data."""
    one = pd.DataFrame({"race": ["White"]})
    other = pd.DataFrame({"race": ["Martian", None, "Black"]})
    encoders = [PublicOneHotEncoder({"race": RACES}).fit(X) for X in (one, other)]
    states = [
        {k: v for k, v in vars(e).items() if k not in vars(clone(e))} for e in encoders
    ]
    assert set(states[0]) == {"n_features_in_", "feature_names_in_"}
    np.testing.assert_equal(states[0], states[1])
    assert not get_tags(encoders[0]).requires_fit
    np.testing.assert_array_equal(
        encoders[0].transform(other), encoders[1].transform(other)
    )
    never_fitted = PublicOneHotEncoder({0: RACES}).transform(other.to_numpy())
    np.testing.assert_array_equal(never_fitted, encoders[1].transform(other))


@pytest.mark.parametrize("missing", ["category", "zero"])
@pytest.mark.parametrize("unknown", ["zero", "error"])
def test_rules(missing, unknown):
    known = pd.DataFrame({"race": ["Black", None]})
    encoder = PublicOneHotEncoder({"race": RACES}, missing=missing, unknown=unknown)
    out = encoder.fit_transform(known)
    assert out.shape[1] == (4 if missing == "category" else 3)
    np.testing.assert_array_equal(out[:, :3], [[0, 1, 0], [0, 0, 0]])
    alien = pd.DataFrame({"race": ["Martian"]})
    if unknown == "error":
        with refused(
            ValueError, "preprocessing.column_has_unknown_values", name="race"
        ):
            encoder.transform(alien)
    else:
        assert not encoder.transform(alien).any()


def test_missing_as_an_error():
    encoder = PublicOneHotEncoder({"race": RACES}, missing="error")
    ok = pd.DataFrame({"race": ["Black"]})
    assert encoder.fit_transform(ok).tolist() == [[0, 1, 0]]
    with refused(ValueError, "preprocessing.column_has_missing_values", name="race"):
        encoder.transform(pd.DataFrame({"race": [None]}))


def test_numeric_categories_keep_their_order():
    X = np.array([[3.0, 7.0], [1.0, 8.0], [math.nan, 9.0]])
    encoder = PublicOneHotEncoder({0: [3, 1]}).fit(X)
    np.testing.assert_array_equal(
        encoder.transform(X), [[1, 0, 0, 7], [0, 1, 0, 8], [0, 0, 1, 9]]
    )
    names = encoder.get_feature_names_out().tolist()
    assert names == ["x0_3", "x0_1", "x0_missing", "x1"]


@given(
    st.lists(st.sampled_from([*RACES, None, "Martian"]), min_size=1, max_size=8),
    st.booleans(),
)
def test_sparse_is_the_same_and_rows_sum_to_one_where_known(values, category):
    missing = "category" if category else "zero"
    frame = pd.DataFrame({"race": pd.Series(values, dtype=object)})
    params = dict(categories={"race": RACES}, missing=missing)
    dense = PublicOneHotEncoder(**params).fit_transform(frame)
    thin = PublicOneHotEncoder(**params, sparse_output=True).fit_transform(frame)
    assert thin.format == "csr"
    np.testing.assert_array_equal(thin.toarray(), dense)
    known = [v in RACES or (v is None and category) for v in values]
    np.testing.assert_array_equal(dense.sum(axis=1), known)


@pytest.mark.parametrize(
    "make, kind", [(pd.DataFrame, "pandas"), (pl.DataFrame, "polars")]
)
def test_set_output(make, kind):
    encoder = PublicOneHotEncoder({"race": RACES}).set_output(transform=kind)
    out = encoder.fit_transform(make(TABLE))
    assert type(out) is make
    assert list(out.columns) == NAMES
    np.testing.assert_array_equal(out.to_numpy(), EXPECTED)


def test_inside_a_column_transformer():
    transformer = make_column_transformer(
        (PublicOneHotEncoder({"race": RACES}), ["race"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    out = transformer.fit_transform(pd.DataFrame(TABLE))
    assert out.columns.tolist() == [*NAMES[1:5], "age", "hours"]


def test_dtype():
    encoder = PublicOneHotEncoder({"race": RACES}, dtype=np.float32)
    assert encoder.fit_transform(pd.DataFrame(TABLE)).dtype == np.float32


@pytest.mark.parametrize(
    "column",
    [
        ["White", "Black"],
        ["1", "2"],
        pd.Categorical([1, 2]),
        [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)],
        [1, "2"],
    ],
    ids=["text", "digits", "category", "date", "mixed"],
)
def test_an_unlisted_column_must_be_numeric(column):
    frame = pd.DataFrame({"age": [1, 2], "work": column})
    with refused(ValueError, "preprocessing.column_not_numeric", name="work"):
        PublicOneHotEncoder().fit(frame)
    encoder = PublicOneHotEncoder().fit(frame.assign(work=0))
    with refused(ValueError, "preprocessing.column_not_numeric", name="work"):
        encoder.transform(frame)


def test_the_error_does_not_print_a_value():
    with refused(
        ValueError, "preprocessing.remedy_give_categories", name="race"
    ) as error:
        PublicOneHotEncoder().fit(pd.DataFrame({"race": ["Martian"]}))
    assert "Martian" not in str(error.value)


def test_other_numbers_pass():
    frame = pd.DataFrame(
        {"flag": [True, False], "n": pd.array([1, None], dtype="Int64")}
    )
    out = PublicOneHotEncoder().fit_transform(frame)
    np.testing.assert_array_equal(out, [[1, 1], [0, math.nan]])


@pytest.mark.parametrize(
    "params, code, parameters",
    [
        (
            {"categories": {"sex": ["F"]}},
            "preprocessing.columns_unknown",
            {"parameter": "categories", "unknown": ["sex"]},
        ),
        ({"categories": {1: ["F"]}}, "preprocessing.columns_unknown", {}),
        (
            {"categories": {"race": "White"}},
            "preprocessing.categories_not_list",
            {"column": "race"},
        ),
        ({"categories": {"race": []}}, "preprocessing.categories_empty", {}),
        ({"categories": {"race": ["a", "a"]}}, "schema.levels_read_alike", {}),
        (
            {"categories": {"race": ["a", None]}},
            "preprocessing.categories_name_missing_value",
            {},
        ),
        (
            {"categories": {"race": ["a", "missing"]}},
            "preprocessing.categories_missing_name_clash",
            {},
        ),
        ({"missing": "drop"}, "parameter.option_unknown", {"name": "missing"}),
        ({"unknown": "ignore"}, "parameter.option_unknown", {"name": "unknown"}),
    ],
)
def test_bad_parameters(params, code, parameters):
    with refused(ValueError, code, **parameters):
        PublicOneHotEncoder(**params).fit(pd.DataFrame(TABLE))


def test_categories_must_be_a_dict():
    with refused(TypeError, "preprocessing.categories_not_dict"):
        PublicOneHotEncoder([RACES]).fit(pd.DataFrame(TABLE))


def test_the_category_missing_is_allowed_under_another_rule():
    encoder = PublicOneHotEncoder({"race": ["missing"]}, missing="zero")
    out = encoder.fit_transform(pd.DataFrame({"race": ["missing", None]}))
    assert out.tolist() == [[1], [0]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        PublicOneHotEncoder({0: [0, 1, 2]}),
        PublicOneHotEncoder({0: [0, 1]}, missing="zero", sparse_output=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize(
    "levels",
    [
        {"a": ["b_c", "x"], "a_b": ["c", "y"]},
        {"a": ["b", "b_2"], "a_b": ["c"]},
        {"a": ["b_c", "b_missing"], "a_b": ["c", "d"]},
    ],
)
def test_names_made_of_others_differ(levels, output):
    table = pd.DataFrame({"a_b": ["c"], "a": ["b"], "a_b_c": [1.0], "a_b_c_2": 2.0})
    encoder = PublicOneHotEncoder(levels).set_output(transform=output)
    made = encoder.fit_transform(table)
    names = list(encoder.get_feature_names_out())
    assert list(made.columns) == names and len(set(names)) == len(names)
    book = Schema({**levels, "a_b_c": (0, 1), "a_b_c_2": (0, 9)})
    named = list(book.encoding("raw").names)
    assert len(set(named)) == len(named)
    # columns that are not encoded, and names that none collides with, are as ever
    assert {"a_b_c", "a_b_c_2"} <= set(names) and "a_missing" in named
    # and each is of the values that it names
    assert made["a_b_c"].to_list() == [1.0] and made["a_b_c_2"].to_list() == [2.0]
