"""Entries of a code book, and the code book as a value."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from skpuffer.schema import Category, Number, Schema
from tests.refused import refused

ENTRIES = {
    "age": (17, 90),
    "sex": ["F", "M"],
    "gain": Number(0, 1e5, amount=True, unit="dollars", missing=["?"]),
    "grade": Category(["low", "mid", "high"], ordered=True, fill="mid", missing=[-1]),
    "y": [0, 1],
}


@pytest.fixture
def schema():
    return Schema(ENTRIES, target="y")


# -- entries ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry, expected",
    [
        ((17, 90), Number(17, 90)),
        ([17, 90], Category((17, 90))),
        (("a", "b"), Category(("a", "b"))),
        ((True, False), Category((True, False))),
        (np.array(["a", "b"]), Category(("a", "b"))),
        (range(3), Category((0, 1, 2))),
        ({"bounds": [0, 9], "integer": True}, Number(0, 9, integer=True)),
        ({"low": 0, "high": 9, "unit": "h"}, Number(0, 9, unit="h")),
        ({"levels": ["a"], "missing": "?"}, Category(("a",), missing=("?",))),
    ],
    ids=str,
)
def test_what_an_entry_may_be_written_as(entry, expected):
    assert Schema({"x": entry})["x"] == expected


@pytest.mark.parametrize(
    "entry, match",
    [
        ((9, 0), "low < high"),
        (Number, "write it as"),
        ("abc", "write it as"),
        (5, "write it as"),
        ({"bounds": [0, math.inf]}, "finite number"),
        ({"bounds": [0, 1, 2]}, "must be a pair"),
        ({"bounds": [0, 1], "low": 0}, "must be a pair"),
        ({"unit": "h"}, "needs 'bounds'"),
        ({"bounds": [0, 1], "levels": [1]}, "no fields of a Category"),
        ({"bounds": [0, 1], "colour": 1}, "'colour'.* no fields of a Number"),
        ({"bounds": [0, 1], "fill": 7}, "'fill' must lie within"),
        ({"bounds": [0, 1], "bins": [1, 0]}, "increasing edges"),
        ({"bounds": [0, 1], "bins": 0}, "'bins'"),
        ({"bounds": [0, 1], "integer": "yes"}, "'integer'"),
        ([], "at least one level"),
        (["a", "a"], "each once"),
        (["1", 1], "each once"),
        (["a", "a "], "each once"),
        ([1.0, 1], "each once"),
        (["a", None], "lists a missing value"),
        ({"levels": "abc"}, "list of public levels"),
        ({"levels": ["a"], "fill": "b"}, "'fill' must be one of the levels"),
        ({"levels": ["a"], "missing": ["a"]}, "'missing' names levels"),
        ((1, 0), "low < high"),
        ({"bounds": [0, 0]}, "low < high"),
        ({"bounds": [0, math.nan]}, "finite number"),
        ({"bounds": [-1.7e308, 1.7e308]}, "low, high"),
        ({"bounds": [True, 2]}, "'low' must be a finite number"),
        ({"bounds": [0, 1], "fill": -0.1}, "'fill' must lie within"),
        ({"bounds": [0, 1], "fill": math.nan}, "'fill' must be a finite number"),
        ({"bounds": [0, 1], "bins": 2**20 + 1}, "'bins'"),
        ({"bounds": [0, 1], "bins": 2.5}, "'bins'"),
        ({"bounds": [0, 1], "bins": [0]}, "increasing edges"),
        ({"bounds": [0, 1], "bins": [0, 0.5, 0.5]}, "increasing edges"),
        ({"bounds": [0, 1], "bins": [0, math.inf]}, "increasing edges"),
        ({"bounds": [0, 1], "bins": [[0, 1]]}, "increasing edges"),
        ({"bounds": [0, 1], "amount": 1.5}, "'amount'"),
        ({"bounds": [0, 1], "missing_level": "no"}, "'missing_level'"),
        ({"bounds": [0, 1], "centre": 0.5}, "'centre' and 'spread' go together"),
        ({"bounds": [0, 1], "spread": 0.5}, "'centre' and 'spread' go together"),
        ({"bounds": [0, 1], "centre": 0.5, "spread": 0.0}, "'spread'"),
        ({"bounds": [0, 1], "centre": 0.5, "spread": -1.0}, "'spread'"),
        ({"bounds": [0, 1], "centre": math.nan, "spread": 1.0}, "'centre'"),
        ({"levels": ["a"], "ordered": "yes"}, "'ordered'"),
        ({"levels": ["a"], "missing_level": "no"}, "'missing_level'"),
        ({"levels": ["a", "b"], "shares": [1.0]}, "'shares' must be a share for each"),
        ({"levels": ["a", "b"], "shares": [1.1, -0.1]}, "'shares'.*not negative"),
        ({"levels": ["a", "b"], "shares": [0.6, 0.6]}, "'shares'.*sum one at most"),
        ({"levels": ["a"], "shares": [math.nan]}, "'shares' must be a finite"),
    ],
    ids=str,
)
def test_bad_entries_name_the_column(entry, match):
    with pytest.raises(ValueError, match=f"'x'.*{match}"):
        Schema({"x": entry})


def test_bad_code_books():
    for columns in ({}, [], None):
        with refused(ValueError, "schema.columns_not_a_dict"):
            Schema(columns)
    with refused(ValueError, "schema.target_not_a_column"):
        Schema({"x": (0, 1)}, target="y")


def test_maps_of_it_are_of_known_kinds(schema):
    for scale in ("ball", "", None):
        with refused(ValueError, "parameter.option_unknown", name="scale"):
            schema.encoding(scale)
    for name in ("n_bins", "n_amount_bins"):
        for bad in (0, -1, 1.5, 2**20 + 1):
            with pytest.raises((ValueError, TypeError), match=f"'{name}'"):
                schema.binning(**{name: bad})


# -- what it says ----------------------------------------------------------------------


def test_features_and_target(schema):
    assert schema.names == ("age", "sex", "gain", "grade") and len(schema) == 4
    assert schema.target == "y" and schema.classes == (0, 1)
    assert schema.target_bounds is None
    assert "y" in schema and "z" not in schema and list(schema) == list(schema.names)
    plain = schema.with_target(None)
    assert plain.names == (*schema.names, "y") and plain.classes is None
    assert Schema({"t": (0, 5), "x": (0, 1)}, target="t").target_bounds == (0.0, 5.0)
    with pytest.raises(KeyError, match="no column 'z'"):
        schema["z"]


def test_parts_of_it(schema):
    assert schema.select(["sex"]).names == ("sex",)
    assert schema.select(["sex"]).target == "y"
    assert schema.without("sex", "nobody").names == ("age", "gain", "grade")
    assert schema.without("y").target is None
    with refused(ValueError, "schema.select_unknown_features"):
        schema.select(["sex", "nobody"])
    with refused(ValueError, "schema.select_names_target", target="y"):
        schema.select(["sex", "y"])


def test_units_are_compared(schema):
    schema.check_units({"gain": "dollars"})
    for units, code, parameters in (
        (
            {"gain": "euros"},
            "schema.units_differ",
            {"name": "gain", "unit": "euros", "schema_unit": "dollars"},
        ),
        (
            {"age": "years"},
            "schema.units_differ",
            {"name": "age", "schema_unit": None},
        ),
        ({"nobody": "years"}, "schema.units_unknown_column", {"name": "nobody"}),
    ):
        with refused(ValueError, code, **parameters):
            schema.check_units(units)


@pytest.mark.parametrize(
    "column, value",
    [
        (Number(0, 10), 5.0),
        (Number(0, 9, integer=True), 4.0),
        (Number(0, 9, fill=2), 2.0),
        (Number(1, 100, amount=True), 10.0),
        (Number(0, 99, amount=True), 9.0),
    ],
    ids=str,
)
def test_what_stands_for_a_missing_number(column, value):
    assert column.filling == pytest.approx(value)


@pytest.mark.parametrize(
    "said, has_gaps",
    [
        ({}, True),
        ({"missing": True}, True),
        ({"missing": ()}, True),
        ({"missing": (-9,)}, True),
        ({"missing": 0}, True),
        ({"missing": False}, False),
        ({"fill": 2}, False),
        ({"fill": 2, "missing": (-9,)}, False),
        ({"fill": 2, "missing_level": True}, True),
        ({"missing_level": False}, False),
    ],
    ids=str,
)
def test_a_number_may_be_missing_unless_it_is_said(said, has_gaps):
    book = Schema({"x": Number(0, 9, **said)})
    assert book["x"].has_gaps is has_gaps
    assert Schema.from_json(book.to_json()) == book
    assert book.encoding("raw").names.tolist() == ["x", "x_missing"][: 1 + has_gaps]
    assert book.binning(4).n_cells == (4 + has_gaps,)


def test_a_level_of_what_is_never_missing():
    with refused(ValueError, "schema.level_of_none_missing"):
        Number(0, 1, missing=False, missing_level=True)


# -- a value ---------------------------------------------------------------------------


def test_equality_hash_pickle_and_clone(schema):
    again = Schema(dict(ENTRIES), target="y")
    assert schema == again and hash(schema) == hash(again)
    assert schema != schema.without("y") and schema != Schema({"age": (17, 91)})
    # columns of an array go by position, so their order counts
    assert Schema({0: (0, 1), 1: (0, 2)}) != Schema({1: (0, 2), 0: (0, 1)})
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert clone(schema) is schema
    assert hash(schema.binning(4)) == hash(again.binning(4))
    assert schema.binning(4) == again.binning(4) != again.binning(5)


def test_it_prints_all_that_is_public_of_a_column(schema):
    text = str(schema)
    lines = text.splitlines()
    assert lines[0].split() == ["column", "kind", "values", "missing"]
    assert len(lines) == 6
    assert "0 to 100000 dollars" in text and "amount" in text
    assert "a level (-1)" in text
    assert "y (target)" in text and "counts as nothing" in text
    assert schema._repr_html_().count("<tr>") == 6
    assert "<b>" not in Schema({"<b>": ["<i>"]})._repr_html_()
    assert repr(schema) == "Schema(4 columns, target='y')"
    many = str(Schema({"x": list("abcdefghij")}))
    assert "and 4 more" in many


# -- files -----------------------------------------------------------------------------


def test_files_come_back_as_they_were(schema, tmp_path):
    assert Schema.from_dict(schema.to_dict()) == schema
    for write, read, name in (
        (schema.to_json, Schema.from_json, "book.json"),
        (schema.to_yaml, Schema.from_yaml, "book.yaml"),
    ):
        text = write(tmp_path / name)
        assert read(text) == schema
        assert read(tmp_path / name) == schema
        assert read(str(tmp_path / name)) == schema
    types = Schema({"b": [False, True], "n": [1, 2.5], "w": ["yes", "no", "on", "2"]})
    assert Schema.from_yaml(types.to_yaml()) == types
    assert Schema.from_json(types.to_json()) == types


def test_words_of_yaml_are_levels():
    book = Schema.from_yaml(
        "columns:\n  a: [yes, no, on]\n  b: {levels: [true, false]}"
    )
    assert book["a"].levels == ("yes", "no", "on")
    assert book["b"].levels == (True, False)


def test_bad_files():
    for given, match in (
        ({"age": [1, 2]}, "schema.dict_form_invalid"),
        ([1], "schema.dict_form_invalid"),
        ({"columns": {"age": [17, 90]}}, "schema.entry_bounds_or_levels"),
    ):
        with refused(ValueError, match):
            Schema.from_json(json.dumps(given) if isinstance(given, dict) else "\n[1]")
    with refused(ValueError, "schema.names_not_texts"):
        Schema({0: (0, 1)}).to_json()
    # three are levels, and so are texts and truth values
    book = Schema.from_json('{"columns": {"a": [1, 2, 3], "b": ["x", "y"]}}')
    assert book["a"].levels == (1, 2, 3)


# -- public tables ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_from_a_public_table(make):
    table = make(
        {
            "n": [1, 5, 3, 9],
            "x": [0.5, None, 2.0, 1.0],
            "s": ["b", "a", None, "b"],
            "flag": [0, 1, 1, 0],
            "gap": [1, -9, 3, 4],
        }
    )
    book = Schema.from_public(table, target="flag", missing=[-9], amounts=["n"])
    # an amount that is positive has the scale of the logarithm
    n, x, gap = np.log([1, 5, 3, 9]), np.array([0.5, 2, 1]), np.array([1, 3, 4])
    where = {"integer": True, "centre": n.mean(), "spread": n.std(), "missing": False}
    assert book["n"] == Number(1, 9, amount=True, **where)
    where = {"centre": x.mean(), "spread": x.std()}
    assert book["x"] == Number(0.5, 2.0, **where)
    assert book["s"] == Category(("a", "b"), shares=(1 / 3, 2 / 3))
    assert book.classes == (0, 1)
    where = {"centre": gap.mean(), "spread": gap.std()}
    assert book["gap"] == Number(1, 4, integer=True, missing=(-9,), **where)


@pytest.mark.parametrize(
    "table, options, code, parameters",
    [
        ({"x": [None, None]}, {}, "schema.public_column_empty", {"name": "x"}),
        (
            {"x": list("abcdef")},
            {"max_levels": 3},
            "schema.public_column_many_levels",
            {"name": "x", "n_distinct": 6},
        ),
        ({"x": [1.0, 2.0]}, {"amounts": ["z"]}, "schema.amounts_unknown_columns", {}),
        ({"x": [1.0, 2.0]}, {"target": "z"}, "schema.target_not_a_column", {}),
        ({"x": [1.0, math.inf, 2.0]}, {}, "schema.number_not_finite", {"name": "high"}),
        (
            {"x": list("ab")},
            {"max_levels": 0},
            "parameter.count_too_small",
            {"name": "max_levels"},
        ),
        (
            {"x": list("ab")},
            {"max_levels": 1.5},
            "parameter.count_too_small",
            {"name": "max_levels"},
        ),
    ],
    ids=str,
)
def test_bad_public_tables(table, options, code, parameters):
    with refused(ValueError, code, **parameters):
        Schema.from_public(pd.DataFrame(table), **options)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_types_of_a_public_table_change_nothing(backend):
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {"n": [1, 5, 3, 9], "x": [0.5, 2.5, 2.0, 1.0], "s": ["b", "a", None, "b"]}
    )
    held = table.convert_dtypes(dtype_backend=backend)
    assert Schema.from_public(held) == Schema.from_public(table)


def test_from_an_array_is_refused():
    with refused(TypeError, "schema.public_table_not_frame"):
        Schema.from_public(np.zeros((3, 2)))


def test_from_parameters():
    book = Schema.from_parameters(
        ["a", "b"], bounds={"a": (0, 1)}, categories={"b": [1]}
    )
    complete = Number(0, 1, missing=False)
    assert book == Schema({"a": complete, "b": [1]})
    assert Schema.from_parameters([0, 1], bounds=(0, 1)) == Schema(
        {0: complete, 1: complete}
    )
    for options, match in (
        ({"bounds": {"z": (0, 1)}}, "'bounds' names"),
        ({"bounds": {"a": (0, 1)}}, "no public bounds or levels"),
        ({"bounds": (0, 1), "categories": {"z": [1]}}, "'categories' names"),
        ({"bounds": {"a": (0, 1)}, "categories": {"a": [1]}}, "category or a number"),
        ({"amounts": ["a"], "categories": {"a": [1]}}, "category or a number"),
        ({"bounds": (0, 1), "amounts": ["z"]}, "'amounts' names"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"bounds": "empirical"}, "no public bounds or levels"),
    ):
        with pytest.raises(ValueError, match=match):
            Schema.from_parameters(["a", "b"], **options)


@pytest.mark.parametrize(
    "values",
    [
        [[1], [1, 2], [1]],
        [{"a": 1}, {}, {"a": 1}],
        [{1}, set(), {2}],
        [(1, 2), (1, 2), (3,)],
        [b"u", b"v", b"u"],
        [1 + 2j, 3j, 1 + 0j],
        ["a", ["b"], None],
        [np.zeros(2), np.ones(2), np.zeros(1)],
        pd.Categorical([b"u", b"v", b"u"]),
    ],
    ids=repr,
)
def test_a_public_column_of_what_is_no_value_is_refused_by_name(values):
    table = pd.DataFrame({"n": [1, 2, 3], "tags": pd.Series(values)})
    with refused(ValueError, "schema.public_column_not_scalar", name="tags"):
        Schema.from_public(table)
    if isinstance(values[0], list | dict) and isinstance(values[1], list | dict):
        with refused(ValueError, "schema.public_column_not_scalar", name="tags"):
            Schema.from_public(pl.DataFrame({"tags": values}, strict=False))
