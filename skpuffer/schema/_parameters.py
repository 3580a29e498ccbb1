"""Code book from the parameters of an estimator that was given none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from skpuffer.exceptions import Statement
from skpuffer.utils._bounds import check_bounds, resolve_bounds

from ._columns import Category, Column, Number

__all__ = ["entries"]


def entries(
    names: list[Hashable],
    bounds: Any,
    categories: Mapping[Hashable, Sequence[Any]] | None,
    amounts: Sequence[Hashable],
) -> dict[Hashable, Column]:
    """Return an entry for each column; see `Schema.from_parameters`."""
    categories = dict(categories or {})
    named = {
        "categories": categories,
        "amounts": amounts,
        "bounds": bounds if isinstance(bounds, dict) else (),
    }
    for parameter, given in named.items():
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                Statement(
                    "schema.columns_not_in_table",
                    parameter=parameter,
                    unknown=unknown,
                    names=names,
                )
            )
    both = [name for name in categories if name in {*named["bounds"], *amounts}]
    if both:
        raise ValueError(Statement("schema.category_and_number", both=both))
    check_bounds(bounds)
    numbers = [name for name in names if name not in categories]
    if isinstance(bounds, dict):
        pairs = {name: bounds[name] for name in numbers if name in bounds}
    elif bounds is None or isinstance(bounds, str):
        pairs = {}
    else:
        found = resolve_bounds(bounds, len(numbers))
        assert found is not None  # given outright
        pairs = dict(zip(numbers, zip(found.low, found.high, strict=True), strict=True))
    lacking = [name for name in numbers if name not in pairs]
    if lacking:
        raise ValueError(Statement("schema.columns_without_bounds", lacking=lacking))
    return {
        name: Category(tuple(categories[name]))
        if name in categories
        else Number(pairs[name][0], pairs[name][1], amount=name in amounts)
        for name in names
    }
