"""Agreement of a code book with what an estimator's own parameters say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement, value_error
from skpuffer.utils._bounds import check_bounds

from ._cells import cell_key, is_missing
from ._columns import Category, Number

if TYPE_CHECKING:
    from ._schema import Schema


def check_agreement(schema: Schema, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that say of a table what its code book does not."""
    checks = {
        "amounts": _check_amounts,
        "bounds": _check_bounds,
        "categories": _check_categories,
        "classes": _check_classes,
        "target_bounds": _check_target_bounds,
    }
    for name, check in checks.items():
        if parameters.get(name) is not None:
            check(schema, parameters[name])


def check_same_book(schema: Schema, believed: Schema) -> None:
    """Refuse a belief whose code book is that of another table."""
    for name in (*schema.names, schema.target):
        if name is None or name not in believed:
            continue
        own, other = schema[name], believed[name]
        wrong = None
        if type(own) is not type(other):
            wrong = Statement("schema.number_and_category_disagree")
        elif None not in (own.unit, other.unit) and own.unit != other.unit:
            wrong = Statement(
                "schema.units_disagree", unit=own.unit, other_unit=other.unit
            )
        elif isinstance(own, Category) and isinstance(other, Category):
            known = set(map(cell_key, own.levels))
            strange = [v for v in other.levels if cell_key(v) not in known]
            if strange:
                wrong = Statement("schema.levels_disagree", strange=strange)
        elif (
            isinstance(own, Number)
            and isinstance(other, Number)
            and (own.high <= other.low or other.high <= own.low)
        ):
            wrong = Statement("schema.bounds_disjoint")
        if wrong is not None:
            raise value_error("schema.belief_bins_disagree", name=name, wrong=wrong)


def _check_amounts(schema: Schema, given: Any) -> None:
    amounts = [
        name
        for name in schema.names
        if isinstance(column := schema[name], Number) and column.amount
    ]
    _check_names("amounts", given, amounts, Statement("schema.not_amounts"))


def _check_bounds(schema: Schema, given: Any) -> None:
    check_bounds(given)
    numbers = {
        name: (column.low, column.high)
        for name in schema.names
        if isinstance(column := schema[name], Number)
    }
    if isinstance(given, str):
        raise value_error("schema.bounds_given_twice", given=given)
    if isinstance(given, Mapping):
        _check_names("bounds", given, numbers, Statement("schema.not_numbers"))
        said = {name: tuple(map(float, pair)) for name, pair in given.items()}
    else:
        low, high = (np.asarray(side, dtype=float) for side in given)
        if max(low.size, high.size) not in (1, len(numbers)):
            raise value_error(
                "schema.bounds_count_differs",
                size=max(low.size, high.size),
                n_numbers=len(numbers),
            )
        lows, highs = (np.broadcast_to(s, len(numbers)).tolist() for s in (low, high))
        said = dict(zip(numbers, zip(lows, highs, strict=True), strict=True))
    for name, pair in said.items():
        if pair != numbers[name]:
            raise _disagreement("bounds", pair, numbers[name], name)


def _check_categories(schema: Schema, given: Mapping[Any, Any]) -> None:
    levels = {
        name: column.levels
        for name in (*schema.names, schema.target)
        if name in schema and isinstance(column := schema[name], Category)
    }
    _check_names("categories", given, levels, Statement("schema.not_categories"))
    for name, listed in given.items():
        # None among them is the level of missing values, which the schema has as such
        said = tuple(level for level in listed if not is_missing(level))
        lacking = len(said) < len(list(listed)) and not schema[name].has_gaps
        same = list(map(cell_key, said)) == list(map(cell_key, levels[name]))
        if not same or lacking:
            raise _disagreement("categories", listed, levels[name], name)


def _check_classes(schema: Schema, given: Any) -> None:
    if schema.classes is None:
        return
    if set(map(cell_key, given)) != set(map(cell_key, schema.classes)):
        raise _disagreement("classes", given, schema.classes)


def _check_target_bounds(schema: Schema, given: Any) -> None:
    if schema.target_bounds is None:
        return
    if tuple(given) != schema.target_bounds:
        raise _disagreement("target_bounds", given, schema.target_bounds)


def _check_names(parameter: str, given: Any, known: Any, what: Statement) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise value_error(
            "schema.parameter_unknown_columns",
            parameter=parameter,
            unknown=unknown,
            what=what,
            known=list(known),
        )


def _disagreement(
    parameter: str, given: Any, held: Any, column: Any = None
) -> ValueError:
    facts = {"parameter": parameter, "given": given, "held": held}
    if column is not None:
        return ValueError(
            Statement("schema.parameter_disagrees_at_column", column=column, **facts)
        )
    return ValueError(Statement("schema.parameter_disagrees", **facts))
