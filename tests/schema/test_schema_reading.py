"""How tables are read by a code book: cells, numbers, and whatever they hold."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from skpuffer.schema import Category, Number, Schema
from skpuffer.schema._cells import cell_codes, cell_key
from tests.refused import refused

BOOK = Schema(
    {
        "n": Number(0, 9, integer=True, missing_level=True),
        "x": Number(-1, 3, fill=0, missing=[-99]),
        "s": Category(["a", "b", 7], missing=["?"]),
        "t": Category([False, True], missing_level=False),
    }
)

#: What a cell of a table may hold.
STRANGE = [
    None, np.nan, pd.NA, pd.NaT, "", "a", " b ", b"a", "7", 7, 7.0, "7.0", True, False,
    "True", 3, "3", " 3 ", 2.5, Decimal("2.5"), Decimal("sNaN"), 10**400, -(10**400),
    float("inf"), "inf", 1e300, "x", "?", -99, "-99", datetime.date(2020, 1, 1),
    pd.Timestamp("2020"), np.datetime64("2020-01-01"), 1 + 2j, [1, 2], [[1], [2, 3]],
    {}, np.float32(3), np.int8(7), object, "1e5", "1_0", "0x1", "nan", np.bool_(True),
    10**5000, 3 + 0j, np.timedelta64(3, "s"), np.timedelta64("NaT", "s"), 2**64,
    datetime.timedelta(1), datetime.time(1), datetime.datetime(2020, 1, 1),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), "NA", "2020-01-01",
]  # fmt: skip


def objects(values):
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return held


def read(book, values):
    """Cells and numbers of one column."""
    column = objects(values)[:, None]
    return book.binning()(column)[:, 0].tolist(), book.encoding("raw")(column).tolist()


# -- values by type --------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1, 2.5, "3", " 4 ", b"2"], [1, 2.5, 3, 3, 2]),
        ([True, Decimal("1.5"), np.float32(2)], [1, 1.5, 2]),
        # the fill, 0
        ([None, np.nan, pd.NA, "x", -99, "-99", -99.0], [0] * 7),
        ([1j, [1], {}, datetime.time(1), datetime.date(1970, 1, 3)], [0] * 5),
        # the nearest bound
        ([10**400, -(10**400), "inf", -np.inf, 5, -7], [3, -1, 3, -1, 3, -1]),
    ],
    ids=str,
)
def test_numbers(values, expected):
    book = Schema({"x": BOOK["x"]})
    assert book.encoding("raw")(objects(values)[:, None])[:, 0].tolist() == expected


@pytest.mark.parametrize(
    "levels, values, expected",
    [
        (["a", "b"], ["b", " b", b"b", "B", None, np.nan, 1], [1, 1, 1, 2, 2, 2, 2]),
        (["0", "1"], [1, 1.0, "1", True, Decimal("1.0"), "1.0"], [1] * 6),
        ([0, 1], [1, 1.0, "1", True, " 1 ", "1.0", 0.5], [1, 1, 1, 1, 1, 1, 2]),
        (["01", "10"], [1, "01", "1.0", 10.0, "1e1", "0x1"], [0, 0, 0, 1, 1, 0]),
        ([0.1, 0.2], [np.float32(0.1), 0.2, "0.20", 0.1000001], [0, 1, 1, 2]),
        ([2, 1], [1, 2], [1, 0]),
        (
            [False, True],
            [True, "True", 0, "1", "yes", "TRUE", "1.0"],
            [1, 1, 0, 1, 1, 1, 1],
        ),
        (["no", "yes"], ["yes", True, "No", 0, "y"], [1, 1, 0, 0, 2]),
    ],
    ids=str,
)
def test_levels(levels, values, expected):
    assert read(Schema({"s": levels}), values)[0] == expected


#: Ways to write one cell, of which a table may hold any.
ALIKE = [1, 1.0, "1", " 01", "1.0", True, "a", " a", b"a", "2020-1-2", None, "NA"]


@given(st.lists(st.sampled_from([*ALIKE, *STRANGE]), min_size=1, max_size=12))
def test_cells_have_one_number_if_they_hold_the_same(cells):
    """By which rows are told to be of one unit."""
    codes, keys = cell_codes(objects(cells)), [cell_key(cell) for cell in cells]
    assert [code < 0 for code in codes] == [key is None for key in keys]
    for code, key in zip(codes, keys, strict=True):
        assert [other == code for other in codes] == [other == key for other in keys]


@pytest.mark.parametrize(
    "column, expected",
    [
        (pd.Series(["a", None, "c"], dtype="category"), [0, 2, 2]),
        (pd.Series(["a", None, "b"], dtype="string"), [0, 2, 1]),
        (pd.Series(["a", None, "b"], dtype="str"), [0, 2, 1]),
        (pl.Series(["a", None, "b"]), [0, 2, 1]),
        (pl.Series(["a", None, "b"], dtype=pl.Categorical), [0, 2, 1]),
        (pd.to_datetime(pd.Series(["2020", None, "2021"])), [2, 2, 2]),
    ],
    ids=lambda x: str(getattr(x, "dtype", "")),
)
def test_columns_of_text(column, expected):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    frame = make({"s": column, "other": [1, 2, 3]})
    assert Schema({"s": ["a", "b"]}).binning()(frame)[:, 0].tolist() == expected


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None, 12], dtype="Int64"),
        pd.Series([1, None, 12], dtype=float),
        pd.Series([1, None, 12], dtype=object),
        pd.Series(["1", None, "12"], dtype=object),
        pd.Series(["1", None, "12"], dtype="category"),
        pd.Series(["1", "-", "12"], dtype="string"),
        pd.Series([Decimal(1), None, Decimal(12)]),
        pl.Series([1, None, 12]),
        pl.Series(["1", None, "12"]),
        pl.Series([Decimal(1), None, Decimal(12)]),
    ],
    ids=lambda x: str(x.dtype),
)
def test_columns_of_numbers(column):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    book = Schema({"n": Number(0, 10, missing_level=True)})
    encoded = book.encoding("raw")(make({"n": column}))
    np.testing.assert_array_equal(encoded, [[1, 0], [5, 1], [10, 0]])


def test_truth_values():
    book = Schema({"t": [False, True]})
    for column in (
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, None, False], dtype=object),
        pl.Series([True, None, False]),
        pd.Series(["True", None, "False"]),
    ):
        make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
        assert book.binning()(make({"t": column}))[:, 0].tolist() == [1, 2, 0]
    assert book.binning()(np.array([[True], [False]]))[:, 0].tolist() == [1, 0]


@given(
    rows=st.lists(
        st.tuples(*[st.sampled_from(range(len(STRANGE)))] * 4), min_size=1, max_size=8
    ),
    order=st.randoms(use_true_random=False),
)
def test_rows_are_read_one_by_one_and_nothing_raises(rows, order):
    table = objects([STRANGE[i] for row in rows for i in row]).reshape(len(rows), 4)
    frame = pd.DataFrame(dict(zip(BOOK.names, table.T, strict=True)), dtype=object)
    maps = (BOOK.binning(n_bins=4), BOOK.encoding("raw"), BOOK.encoding())
    shuffled = list(range(len(rows)))
    order.shuffle(shuffled)
    for mapped in maps:
        together = mapped(table)
        np.testing.assert_array_equal(mapped(frame), together)
        alone = np.vstack([mapped(table[i : i + 1]) for i in range(len(rows))])
        np.testing.assert_array_equal(alone, together)
        np.testing.assert_array_equal(mapped(table[shuffled]), together[shuffled])
        assert np.all(np.isfinite(together))


#: Types of pandas that code equal cells, by name, and what such a column may hold.
TEXTS = [None, "", "a", " b ", "b", "?", "7", "7.0", " 7 ", "3", "True", "1e5", "nan"]
CODED = {
    "str": TEXTS,
    "string[python]": TEXTS,
    "string[pyarrow]": TEXTS,
    "large_string[pyarrow]": TEXTS,
    # equal ones are one category, whichever of them it is
    "category": [v for v in STRANGE if v.__hash__ and type(v) is not Decimal],
}


@pytest.mark.parametrize("kind", CODED)
@given(data=st.data())
def test_coded_columns_are_read_as_their_cells(kind, data):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    # places, for some integers are too large to be printed
    places = st.sampled_from(range(len(CODED[kind])))
    cells = [CODED[kind][i] for i in data.draw(st.lists(places, max_size=8))]
    try:
        column = pd.Series(objects(cells), dtype=kind)
    except OverflowError:  # pandas sorts categories
        reject()
    for entry in (*map(BOOK.__getitem__, BOOK.names), Category([7, 3], fill=3)):
        book = Schema({"c": entry})
        coded = column.to_frame("c")
        plain = pd.DataFrame({"c": np.asarray(column, dtype=object)}, dtype=object)
        for mapped in (book.binning(n_bins=4), book.encoding("raw")):
            np.testing.assert_array_equal(mapped(coded), mapped(plain))
        pd.testing.assert_frame_equal(book.frame(coded), book.frame(plain))


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum])
@given(cells=st.lists(st.sampled_from(TEXTS), max_size=8))
def test_texts_of_polars_are_read_as_their_cells(kind, cells):
    kind = kind(sorted({*TEXTS} - {None})) if kind is pl.Enum else kind
    coded = pl.DataFrame({"c": pl.Series(cells, dtype=kind)})
    plain = pd.DataFrame({"c": objects(cells)}, dtype=object)
    for entry in (*map(BOOK.__getitem__, BOOK.names), Category([7, 3], fill=3)):
        book = Schema({"c": entry})
        for mapped in (book.binning(n_bins=4), book.encoding("raw")):
            np.testing.assert_array_equal(mapped(coded), mapped(plain))


def rows_of(values):
    return [[value] for value in values]


def pandas_frame(values):
    return pd.DataFrame({"c": values})


def polars_frame(values):
    try:
        column = pl.Series(values, strict=False)
    except OverflowError:  # an older polars has no type of such whole numbers
        column = pl.Series(values, dtype=pl.Object)
    return pl.DataFrame({"c": column})


NUMBER = Number(0, 9, missing_level=True)


@pytest.mark.parametrize(
    "make, entry, value, other",
    [
        (pandas_frame, NUMBER, 3, 1 + 2j),
        (pandas_frame, ["1", "2"], 1.0, 1 + 2j),
        (pandas_frame, NUMBER, 3, 2**65),
        (pandas_frame, ["3"], 3, None),
        # as texts, which pandas makes objects of
        (pandas_frame, ["2020-01-01 00:00:00"], pd.Timestamp("2020"), "unknown"),
        (pandas_frame, ["1 days 00:00:00"], pd.Timedelta("1 days"), "unknown"),
        (polars_frame, NUMBER, 3, 2**65),
        (polars_frame, ["3"], 3, None),
        (rows_of, ["True", "False"], True, 2.5),
        (rows_of, ["True", "False"], True, math.nan),
        (rows_of, ["3"], 3, 2.5),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_one_value_gives_a_column_another_type_and_no_other_value(
    make, entry, value, other
):
    cells = Schema({"c": entry}).binning()
    alone = cells(make([value]))[0, 0]
    assert cells(make([value, other]))[0, 0] == alone
    assert cells(make([value, value])).ravel().tolist() == [alone] * 2


def test_dates_are_read_alike_however_fine():
    book = Schema({"c": ["2020-01-01 00:00:00", "unknown"]})
    for unit in ("s", "us", "ns"):
        dates = pd.Series(pd.to_datetime(["2020-01-01", None])).astype(f"M8[{unit}]")
        for column in (dates, pd.concat([dates, pd.Series(["unknown"])])):
            codes = book.binning()(column.to_frame("c"))[:, 0].tolist()
            assert codes == [0, 2, 1][: len(column)]


# -- tables ----------------------------------------------------------------------------


def test_columns_by_name_or_by_position():
    entry = Number(0, 10, missing=False)
    book = Schema({"a": entry, "b": entry})
    frame = pd.DataFrame({"z": ["?"], "b": [2], "a": [1]})
    expected = [[1.0, 2.0]]
    raw = book.encoding("raw")
    assert (
        raw(frame).tolist()
        == raw(pl.DataFrame(frame.to_dict("list"))).tolist()
        == expected
    )
    assert raw([[1, 2]]).tolist() == raw(np.array([[1, 2]])).tolist() == expected
    # columns that pandas numbered
    assert raw(pd.DataFrame([[1, 2]])).tolist() == expected
    assert list(book.frame(frame)) == ["a", "b"]


def test_tables_that_are_none_of_it():
    from scipy import sparse

    raw = Schema({"a": (0, 10), "b": (0, 10)}).encoding("raw")
    with refused(ValueError, "schema.table_lacks_columns"):
        raw(pd.DataFrame({"a": [1]}))
    with refused(
        ValueError, "schema.array_column_count_differs", n_columns=3, n_names=2
    ):
        raw([[1, 2, 3]])
    with refused(TypeError, "schema.table_sparse"):
        raw(sparse.csr_matrix((2, 2)))
    with refused(ValueError, "table.not_two_dimensional"):
        raw([1, 2])
    with refused(ValueError, "table.masked_array"):
        raw(np.ma.masked_equal([[1, 2]], 1))


# -- cells -----------------------------------------------------------------------------


def test_edges_of_cells():
    binning = Schema({"x": Number(0, 4, bins=4, missing_level=True)}).binning()
    assert binning.edges[0].tolist() == [0, 1, 2, 3, 4]
    values = objects([-9, 0, 0.99, 1, 3, 4, 99, None])[:, None]
    # closed below and open above, the last one closed
    assert binning(values)[:, 0].tolist() == [0, 0, 0, 1, 3, 3, 3, 4]
    assert binning.n_cells == (5,) and binning.values[0] == [0.5, 1.5, 2.5, 3.5, None]
    assert binning.labels(0) == ["[0, 1)", "[1, 2)", "[2, 3)", "[3, 4]", "missing"]
    given = Schema({"x": Number(0, 10, bins=(0, 1, 10))}).binning()
    assert given([[0.5], [1.0], [-3], [12]])[:, 0].tolist() == [0, 1, 0, 1]


def test_whole_numbers_are_cells_as_they_are():
    book = Schema({"n": Number(1, 5, integer=True), "m": Number(0, 99, integer=True)})
    binning = book.binning(n_bins=10)
    assert binning.n_cells == (6, 11)
    assert binning.values[0] == [1, 2, 3, 4, 5, None] and binning.labels(0)[0] == "1"
    assert binning([[1, 0], [5, 99], [9, 10], [2.4, 9]]).tolist() == [
        [0, 0], [4, 9], [4, 1], [1, 0],
    ]  # fmt: skip


def test_amounts_have_cells_of_the_logarithm():
    book = Schema(
        {"x": Number(0, 10**6 - 1, amount=True), "y": Number(1, 16, amount=True)}
    )
    binning = book.binning(n_amount_bins=6)
    assert binning.kinds == ("amount", "amount")
    np.testing.assert_allclose(binning.edges[0] + 1, 10.0 ** np.arange(7))
    four = book.binning(n_amount_bins=4)
    np.testing.assert_allclose(four.edges[1], [1, 2, 4, 8, 16])


@given(
    low=st.integers(-1000, 1000),
    width=st.floats(0.5, 1e6),
    n=st.integers(1, 300),
    amount=st.booleans(),
    integer=st.booleans(),
)
def test_representatives_are_in_their_cell(low, width, n, amount, integer):
    column = Number(low, low + width, amount=amount, integer=integer)
    binning = Schema({0: column}).binning(n_bins=n, n_amount_bins=n)
    codes = binning(np.array(binning.values[0])[:, None])
    assert codes[:, 0].tolist() == list(range(binning.n_cells[0]))
    assert codes.dtype == (np.uint8 if binning.n_cells[0] <= 256 else np.uint16)
    assert codes.flags.f_contiguous


# -- encodings -------------------------------------------------------------------------


@given(
    rows=st.lists(
        st.tuples(*[st.sampled_from(range(len(STRANGE)))] * 4), min_size=1, max_size=5
    )
)
def test_encodings_stay_within_their_bounds(rows):
    table = objects([STRANGE[i] for row in rows for i in row]).reshape(len(rows), 4)
    for scale in ("unit_ball", "box", "raw"):
        encoding = BOOK.encoding(scale)
        encoded = encoding(table)
        assert np.all((encoding.low <= encoded) & (encoded <= encoding.high))
        assert np.all(np.linalg.norm(encoded, axis=1) <= encoding.norm * (1 + 1e-12))
        assert encoded.shape[1] == len(encoding.names)
    assert BOOK.encoding().norm == 1 and BOOK.encoding("box").norm == 2


def test_the_unit_ball_is_reached():
    encoded = BOOK.encoding()(objects([9, 3, "a", True])[None, :])
    assert np.linalg.norm(encoded) == pytest.approx(1)


def test_encoded_columns_have_names():
    assert BOOK.encoding().names.tolist() == [
        "n", "n_missing", "x", "s_a", "s_b", "s_7", "s_missing", "t_False", "t_True",
    ]  # fmt: skip


def test_scales():
    complete = {"missing": False}
    book = Schema(
        {"x": Number(0, 10, **complete), "g": Number(1, 100, amount=True, **complete)}
    )
    table = [[5, 10], [10, 100], [0, 1]]
    np.testing.assert_allclose(book.encoding("raw")(table), table)
    box = book.encoding("box")(table)
    np.testing.assert_allclose(box, [[0, 0], [1, 1], [-1, -1]], atol=1e-12)
    np.testing.assert_allclose(book.encoding()(table), box / np.sqrt(2))
    with refused(ValueError, "parameter.option_unknown", name="scale"):
        book.encoding("standard")


# -- targets ---------------------------------------------------------------------------


def test_targets_that_are_none():
    book = Schema(
        {"x": (0, 1), "y": Category(["no", "yes"], missing=["-"])}, target="y"
    )
    codes = book.class_codes(["yes", "no", None, "maybe", "-", " yes"])
    assert codes.tolist() == [1, 0, -1, -1, -1, 1]
    book = Schema({"x": (0, 1), "t": (0, 5)}, target="t")
    found = book.target_numbers(objects([2, "3", 9, -1, None, "x"]))
    np.testing.assert_array_equal(found, [2, 3, 5, 0, np.nan, np.nan])
    with refused(ValueError, "schema.target_wrong_kind", kind="Category"):
        book.class_codes([1])
