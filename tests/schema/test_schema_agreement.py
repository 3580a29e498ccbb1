"""What two accounts of one table may differ in, and what they may not."""

import math
from dataclasses import replace

import pytest

from skpuffer.schema import Category, Number, Schema
from skpuffer.schema._agreement import check_agreement, check_same_book
from tests.refused import refused

BOOK = Schema(
    {
        "age": Number(17, 90, unit="years"),
        "gain": Number(0, 1e5, amount=True),
        "sex": ["F", "M"],
        "job": Category(["x", "y"], missing_level=False),
        "y": ["no", "yes"],
    },
    target="y",
)
OF_NUMBERS = Schema({"age": (17, 90), "pay": (0, 10)}, target="pay")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        dict.fromkeys(["amounts", "bounds", "categories", "classes", "target_bounds"]),
        {"amounts": ["gain"]},
        {"amounts": []},
        {"bounds": {"age": (17, 90)}},
        {"bounds": ([17, 0], [90, 1e5])},
        {"categories": {"sex": ["F", "M"]}},
        # a level of missing values, which the code book has
        {"categories": {"sex": ["F", "M", None], "y": ["no", "yes", math.nan]}},
        {"categories": {"job": ["x", "y"]}},
        {"classes": ["yes", "no"]},
        # the target is no number
        {"target_bounds": (0, 1)},
    ],
    ids=str,
)
def test_what_agrees(parameters):
    check_agreement(BOOK, parameters)


@pytest.mark.parametrize(
    "book, parameters, code, stated",
    [
        (
            BOOK,
            {"amounts": ["age"]},
            "schema.parameter_unknown_columns",
            {"parameter": "amounts", "unknown": ["age"]},
        ),
        (
            BOOK,
            {"amounts": ["gain", "sex"]},
            "schema.parameter_unknown_columns",
            {"parameter": "amounts", "unknown": ["sex"]},
        ),
        (
            BOOK,
            {"bounds": "empirical"},
            "schema.bounds_given_twice",
            {"given": "empirical"},
        ),
        (BOOK, {"bounds": (90, 17)}, "bounds.low_not_below_high", {}),
        (BOOK, {"bounds": {"age": (17, math.inf)}}, "bounds.not_finite", {}),
        (
            BOOK,
            {"bounds": {"sex": (0, 1)}},
            "schema.parameter_unknown_columns",
            {"parameter": "bounds", "unknown": ["sex"]},
        ),
        (
            BOOK,
            {"bounds": {"age": (17, 91)}},
            "schema.parameter_disagrees_at_column",
            {"column": "age", "parameter": "bounds"},
        ),
        (
            BOOK,
            {"bounds": (17, 90)},
            "schema.parameter_disagrees_at_column",
            {"column": "gain", "parameter": "bounds"},
        ),
        (
            BOOK,
            {"bounds": ([17, 0, 0], [90, 1, 1])},
            "schema.bounds_count_differs",
            {"size": 3, "n_numbers": 2},
        ),
        (
            BOOK,
            {"categories": {"age": [1]}},
            "schema.parameter_unknown_columns",
            {"parameter": "categories", "unknown": ["age"]},
        ),
        (
            BOOK,
            {"categories": {"sex": ["M", "F"]}},
            "schema.parameter_disagrees_at_column",
            {"column": "sex", "parameter": "categories"},
        ),
        (
            BOOK,
            {"categories": {"sex": ["F"]}},
            "schema.parameter_disagrees_at_column",
            {"column": "sex", "parameter": "categories"},
        ),
        (
            BOOK,
            {"categories": {"y": ["no"]}},
            "schema.parameter_disagrees_at_column",
            {"column": "y", "parameter": "categories"},
        ),
        (
            BOOK,
            {"categories": {"job": ["x", "y", None]}},
            "schema.parameter_disagrees_at_column",
            {"column": "job", "parameter": "categories"},
        ),
        (
            BOOK,
            {"classes": ["no"]},
            "schema.parameter_disagrees",
            {"parameter": "classes"},
        ),
        (
            BOOK,
            {"classes": ["no", "yes", "maybe"]},
            "schema.parameter_disagrees",
            {"parameter": "classes"},
        ),
        (
            OF_NUMBERS,
            {"target_bounds": (0, 9)},
            "schema.parameter_disagrees",
            {"parameter": "target_bounds"},
        ),
        (
            OF_NUMBERS,
            {"target_bounds": (0, 10), "bounds": (17, 91)},
            "schema.parameter_disagrees_at_column",
            {"parameter": "bounds"},
        ),
    ],
    ids=str,
)
def test_what_disagrees(book, parameters, code, stated):
    with refused(ValueError, code, **stated):
        check_agreement(book, parameters)


def changed(**columns):
    held = {name: BOOK[name] for name in (*BOOK.names, "y")} | columns
    return Schema(held, target="y")


AGE = BOOK["age"]


@pytest.mark.parametrize(
    "believed",
    [
        BOOK,
        BOOK.without("age", "y"),
        changed(other=(0, 1)),
        # bounds that overlap, finer and fewer levels, no word of a unit
        changed(age=replace(AGE, low=89.0, high=200.0)),
        changed(age=replace(AGE, low=-5.0, high=18.0)),
        changed(age=replace(AGE, unit=None)),
        changed(sex=["F"], job=Category(["y "])),
        changed(gain=replace(BOOK["gain"], unit="euro")),
    ],
    ids=str,
)
def test_beliefs_of_the_same_table(believed):
    check_same_book(BOOK, believed)


@pytest.mark.parametrize(
    "columns, match",
    [
        ({"age": replace(AGE, unit="months")}, "schema.belief_bins_disagree"),
        ({"age": replace(AGE, low=90.0, high=99.0)}, "schema.belief_bins_disagree"),
        ({"age": replace(AGE, low=0.0, high=17.0)}, "schema.belief_bins_disagree"),
        ({"age": replace(AGE, low=0.17, high=0.9)}, "schema.belief_bins_disagree"),
        ({"age": ["17"]}, "schema.belief_bins_disagree"),
        ({"sex": (0, 1)}, "schema.belief_bins_disagree"),
        ({"sex": ["F", "m"]}, "schema.belief_bins_disagree"),
        # of the target as well
        ({"y": ["no", "maybe"]}, "schema.belief_bins_disagree"),
        ({"y": (0, 1)}, "schema.belief_bins_disagree"),
    ],
    ids=str,
)
def test_beliefs_of_another_table(columns, match):
    with refused(ValueError, match):
        check_same_book(BOOK, changed(**columns))
