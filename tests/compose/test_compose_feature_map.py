import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import (
    ColumnTransformer,
    make_column_selector,
    make_column_transformer,
)
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skpuffer.compose._feature_map import FeatureMap, is_fixed
from skpuffer.compose._public_preprocessing import is_same, rows_like
from skpuffer.exceptions import ScenarioError
from skpuffer.preprocessing import PublicOneHotEncoder, RowNormClipper
from skpuffer.scenarios import ReferenceTable
from skpuffer.utils._reading import LARGEST
from tests.refused import refused as is_refused

TABLE = pd.DataFrame({"age": [30.0, 40.0, 53.0], "race": ["White", "Black", "White"]})


def build(table=TABLE, why="because"):
    transformer = make_column_transformer(
        (StandardScaler(), ["age"]),
        (PublicOneHotEncoder({"race": ["White", "Black"]}, missing="zero"), ["race"]),
    )
    return FeatureMap(transformer.fit(table), tuple(table.columns), why)


EXPECTED = np.c_[
    StandardScaler().fit_transform(TABLE[["age"]]), [[1, 0], [0, 1], [1, 0]]
]


def test_equal_by_content():
    one, other, changed = build(), build(), build(TABLE.assign(age=[30.0, 40.0, 54.0]))
    assert one == other and hash(one) == hash(other)
    assert one != changed
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != "map" and one.assumption == "because"


def test_other_columns_are_another_map():
    """Of a transformer that keeps no names, as what is remembered goes by the map."""
    maps = [
        FeatureMap(RowNormClipper(), columns, "")
        for columns in (None, ("age",), ("race",), ("age", "race"), ("race", "age"))
    ]
    for one, other in itertools.combinations(maps, 2):
        assert one != other


def test_one_that_cannot_be_hashed_equals_its_copies_only():
    maps = [FeatureMap(FunctionTransformer(lambda X: X), None, "") for _ in range(2)]
    assert maps[0] == maps[0] and maps[0] != maps[1]


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE[["race", "age"]].assign(more=1),
        pl.DataFrame({"race": TABLE["race"].tolist(), "age": TABLE["age"].to_numpy()}),
    ],
    ids=["pandas", "reordered", "polars"],
)
def test_columns_go_by_name(table):
    np.testing.assert_allclose(build()(table), EXPECTED)


def test_sparse_and_framed_results_become_arrays():
    for transformer in (
        OneHotEncoder(),
        OneHotEncoder(sparse_output=False).set_output(transform="pandas"),
        OneHotEncoder(sparse_output=False).set_output(transform="polars"),
    ):
        mapped = FeatureMap(transformer.fit(TABLE[["race"]]), ("race",), "")(TABLE)
        assert isinstance(mapped, np.ndarray) and mapped.dtype == float
        np.testing.assert_array_equal(mapped, [[0, 1], [1, 0], [0, 1]])


def test_what_cannot_be_read():
    with is_refused(ValueError, "preprocessing.columns_missing"):
        build()(TABLE[["age"]])
    with is_refused(ValueError, "preprocessing.columns_need_data_frame"):
        build()(TABLE.to_numpy())
    text = FeatureMap(FunctionTransformer().fit(TABLE), ("race",), "")
    with is_refused(ValueError, "preprocessing.columns_not_numeric"):
        text(TABLE)
    fewer = FeatureMap(FunctionTransformer(lambda X: X[1:]), None, "")
    with is_refused(ValueError, "preprocessing.rows_not_per_record"):
        fewer(np.eye(3))


def test_records_must_not_be_mixed():
    build().check_by_record(TABLE)
    X = np.random.default_rng(0).normal(size=(20, 2))
    for mixing in (
        lambda X: X - X.mean(axis=0),
        lambda X: X / np.abs(X).max(),
        lambda X: np.roll(X, 1, axis=0),
        lambda X: X + len(X),
    ):
        with is_refused(ValueError, "preprocessing.mixes_records"):
            FeatureMap(FunctionTransformer(mixing), None, "").check_by_record(X)


N = 40
COMPANIES = {
    "alone": lambda ids: len(ids) == 1,
    "the eighth alone": lambda ids: ids == [7],
    "every other": lambda ids: ids == list(range(0, N, 2)),
    "the others": lambda ids: ids == list(range(1, N, 2)),
    "backwards": lambda ids: ids == list(range(N))[::-1],
    "any half": lambda ids: len(ids) not in (1, N // 2, N),
}


@pytest.mark.parametrize("company", COMPANIES)
@pytest.mark.parametrize(
    "change", [lambda X: X + 1e-3, lambda X: X[1:], lambda X: X[:, :1]], ids=range(3)
)
def test_a_record_is_looked_at_in_company_of_each_kind(company, change):
    X = np.column_stack([np.arange(N), np.linspace(-1, 1, N)])

    def mixing(X):
        return change(X) if COMPANIES[company](X[:, 0].astype(int).tolist()) else X

    with is_refused(
        ValueError, ("preprocessing.mixes_records", "preprocessing.rows_not_per_record")
    ):
        FeatureMap(FunctionTransformer(mixing), None, "").check_by_record(X)


def test_no_company_is_left_out():
    """All together, the first alone, two halves, backwards, and halves by chance."""

    def seen(n, **options):
        tables = set()

        def note(X):
            tables.add(tuple(X[:, 0].astype(int).tolist()))
            return X

        rows = np.column_stack([np.arange(n), np.ones(n)])
        step = FeatureMap(FunctionTransformer(note), None, "")
        step.check_by_record(rows, **options)
        return tables

    ids = tuple(range(N))
    chosen = {ids, ids[::2], ids[1::2], ids[::-1]}
    alone = {one for one in seen(N) if len(one) == 1}
    assert alone == {(i,) for i in range(8)}
    by_chance = seen(N) - chosen - alone
    assert chosen <= seen(N) and len(by_chance) == 4
    assert all(N / 4 < len(half) < 3 * N / 4 for half in by_chance)
    # the same for each fit: nothing is told by which are looked at
    assert seen(N) == seen(N)
    # fewer than eight are all looked at alone, or as many as are asked for
    assert {one for one in seen(3) if len(one) == 1} == {(0,), (1,), (2,)}
    assert {one for one in seen(N, n_rows=2) if len(one) == 1} == {(0,), (1,)}


@pytest.mark.parametrize(
    "noise, refused", [(1e-12, False), (1e-7, False), (1e-4, True), (np.nan, True)]
)
def test_rounding_is_no_mixing(noise, refused):
    X = 1 + np.random.default_rng(0).random((20, 2))
    step = FeatureMap(
        FunctionTransformer(lambda X: X + (noise if len(X) == 1 else 0.0)), None, ""
    )
    if refused:
        with is_refused(ValueError, "preprocessing.mixes_records"):
            step.check_by_record(X)
    else:
        step.check_by_record(X)
    # what is missing in any company is no mixing either
    gaps = FeatureMap(
        FunctionTransformer(lambda X: np.where(X > 1.5, np.nan, X)), None, ""
    )
    gaps.check_by_record(X)


CLIP, FROZEN = RowNormClipper(), FrozenEstimator(StandardScaler().fit(np.eye(2)))


@pytest.mark.parametrize(
    "transformer, fixed",
    [
        (CLIP, True),
        (FROZEN, True),
        (FunctionTransformer(), True),
        (StandardScaler(), False),
        # fitted, but a clone would not be
        (StandardScaler().fit(np.eye(2)), False),
        (make_pipeline(CLIP, FROZEN), True),
        (make_pipeline(CLIP, "passthrough", StandardScaler()), False),
        (make_union(CLIP, FROZEN), True),
        (make_union(CLIP, StandardScaler()), False),
        (make_column_transformer((CLIP, [0]), ("drop", [1])), True),
        (make_column_transformer((CLIP, [0]), remainder=StandardScaler()), False),
        (make_column_transformer((CLIP, [0]), remainder="passthrough"), True),
        (make_column_transformer((make_pipeline(StandardScaler()), [0])), False),
    ],
)
def test_what_has_nothing_left_to_learn(transformer, fixed):
    assert is_fixed(transformer) is fixed


@pytest.mark.parametrize("wrap", [lambda t: t, ReferenceTable, pl.from_dataframe])
def test_rows_like_matches_by_name(wrap):
    public = TABLE.assign(secret=1)[["secret", "race", "age"]]
    if wrap is pl.from_dataframe:
        public = pl.DataFrame({c: public[c].tolist() for c in public})
    else:
        public = wrap(public)
    out = rows_like(public, TABLE, "It")
    assert out.columns.tolist() == ["age", "race"]
    np.testing.assert_array_equal(out.to_numpy(), TABLE.to_numpy())


def test_rows_like_matches_by_position_where_one_has_no_names():
    rows = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(rows_like(rows, np.eye(2), "It"), rows)
    named = rows_like(rows, TABLE, "It")
    assert named.columns.tolist() == ["age", "race"]
    frame = pd.DataFrame(rows, columns=["a", "b"])
    np.testing.assert_array_equal(rows_like(frame, np.eye(2), "It"), rows)


def test_rows_like_refuses():
    with is_refused(ScenarioError, "preprocessing.public_columns_missing", owner="It"):
        rows_like(TABLE[["age"]], TABLE, "It")
    with is_refused(
        ScenarioError,
        "preprocessing.public_column_count_differs",
        owner="It",
        n_public=3,
        n_columns=2,
    ):
        rows_like(np.eye(3), TABLE, "It")
    with is_refused(ScenarioError, "preprocessing.public_table_empty", owner="It"):
        rows_like(TABLE[:0], TABLE, "It")


CELLS = np.arange(12.0).reshape(6, 2)
CELLS_BY_NAME = pd.DataFrame(CELLS, columns=["a", "b"])
IN_POLARS = pl.DataFrame({"a": [1.0, 2.0]})


@pytest.mark.parametrize(
    "public, private, same",
    [
        (CELLS, CELLS, True),
        (CELLS[:1], CELLS, True),
        (CELLS[:, ::-1], CELLS[::-1], True),
        (CELLS[:, :1], CELLS[:, 1:], False),
        (CELLS.copy(), CELLS, False),
        (CELLS_BY_NAME, CELLS_BY_NAME, True),
        (CELLS_BY_NAME.iloc[:, 1:], CELLS_BY_NAME, True),
        (CELLS_BY_NAME[["a"]].rename(columns={"a": "b"}), CELLS_BY_NAME, False),
        (CELLS_BY_NAME.copy(), CELLS_BY_NAME, False),
        (IN_POLARS, IN_POLARS, True),
        (IN_POLARS, CELLS, False),
        (CELLS_BY_NAME, CELLS, False),
    ],
)
def test_the_same_cells_are_no_public_ones(public, private, same):
    """Who passes views of the private table as public rows is told, of either kind."""
    assert is_same(public, private) is same


def test_columns_are_fixed_only_where_they_are_chosen_by_name():
    def without_gaps(frame):
        return [name for name in frame.columns if frame[name].notna().all()]

    clipper = RowNormClipper()
    assert not is_fixed(ColumnTransformer([("a", clipper, without_gaps)]))
    by_kind = make_column_selector(dtype_include=float)
    assert not is_fixed(ColumnTransformer([("a", clipper, by_kind)]))
    by_name = make_column_selector("a|b")
    assert is_fixed(ColumnTransformer([("a", clipper, by_name)]))


def test_cells_that_are_no_numbers_at_all_are_a_clear_error():
    table = pd.DataFrame({"a": [{}, {}]})
    plain = FunctionTransformer()
    with is_refused(ValueError, "preprocessing.columns_not_numeric"):
        FeatureMap(plain, ("a",), "fixed")(table)


@pytest.mark.parametrize("cell", [1e308, -1e308, -1.0])
@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(), PCA(2)],
        [PolynomialFeatures(3)],
        [FunctionTransformer(np.log)],
        [FunctionTransformer(np.exp)],
    ],
    ids=str,
)
def test_no_record_is_mapped_to_what_ends_a_fit(cell, steps):
    rng = np.random.default_rng(0)
    public = rng.uniform(0.1, 1, (50, 3)) * 1e-3
    transformer = make_pipeline(*(clone(step) for step in steps)).fit(public)
    fixed = FeatureMap(transformer, None, "public")
    rows = rng.uniform(0.1, 1, (20, 3))
    with np.errstate(all="ignore"):
        before = fixed(rows)
        rows[3] = cell, -cell, cell
        after = fixed(rows)
    # squares and sums of what is mapped are finite as well
    assert np.all(np.abs(after) <= LARGEST)
    np.testing.assert_allclose(np.delete(after, 3, 0), np.delete(before, 3, 0))
