"""Code book of a public table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import check_count
from skpuffer.utils._reading import column_names, object_cells, to_pandas

from ._columns import Category, Column, Date, Number

if TYPE_CHECKING:
    from skpuffer.utils._types import Table


def columns_of(
    table: Table, read: Callable[..., Column], amounts: Sequence[Hashable]
) -> dict[Hashable, Column]:
    """Return an entry for each column of a public data frame."""
    if column_names(table) is None:
        raise type_error(
            "schema.public_table_not_frame", table_type=type(table).__name__
        )
    frame = to_pandas(table)
    unknown = [name for name in amounts if name not in frame.columns]
    if unknown:
        raise value_error(
            "schema.amounts_unknown_columns",
            unknown=unknown,
            columns=frame.columns.tolist(),
        )
    return {
        name: read(name, frame[name], amount=name in amounts) for name in frame.columns
    }


def public_column(
    name: Hashable,
    values: pd.Series,
    *,
    amount: bool,
    max_levels: int,
    missing: tuple[Any, ...],
) -> Column:
    """Return the entry of one column of a public table."""
    check_count(max_levels=max_levels)
    held = values
    if isinstance(values.dtype, pd.CategoricalDtype):
        held = values.cat.categories
    # what has parts of its own, or no order, is no level and no number
    if held.dtype.kind not in "biufmM" and not all(map(_is_plain, held)):
        raise value_error("schema.public_column_not_scalar", name=name)
    known = values[~(values.isna() | values.isin(missing))]
    codes = tuple(code for code in missing if values.eq(code).any())
    if known.empty:
        raise value_error("schema.public_column_empty", name=name)
    has_gaps = len(known) < len(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = [v for v in values.cat.categories.tolist() if v not in missing]
        ordered = bool(values.cat.ordered)
        return Category(
            tuple(levels),
            ordered=ordered,
            missing=codes,
            shares=tuple(float(known.eq(level).mean()) for level in levels),
        )
    number = pd.to_numeric(known, errors="coerce")
    if pd.api.types.is_numeric_dtype(number.dtype):
        # types of other libraries lack some of the arithmetic
        number = number.astype(float)
    numeric = not number.isna().any() and not pd.api.types.is_datetime64_any_dtype(
        values
    )
    distinct = known.drop_duplicates()
    if not numeric or (len(distinct) <= 2 and not amount):
        if len(distinct) > max_levels:
            raise value_error(
                "schema.public_column_many_levels",
                name=name,
                n_distinct=len(distinct),
                max_levels=max_levels,
            )
        levels = sorted(distinct.tolist(), key=_order)
        shares = tuple(float(known.eq(level).mean()) for level in levels)
        return Category(tuple(levels), missing=codes, shares=shares)
    column = Number(
        float(number.min()),
        float(number.max()),
        integer=bool(np.all(number % 1 == 0)),
        amount=amount,
        missing=(codes or True) if has_gaps else False,
    )
    scaled = column.scale(number.to_numpy(dtype=float))
    return replace(column, centre=float(scaled.mean()), spread=float(scaled.std()))


def _is_plain(value: Any) -> bool:
    parts = bytes | complex | np.complexfloating
    return bool(pd.api.types.is_scalar(value)) and not isinstance(value, parts)


def _order(level: Any) -> tuple[str, Any]:
    # of one type in its own order, of several by type
    kind = "" if isinstance(level, int | float) else type(level).__name__
    return kind, level


def drawn_rows(columns: Mapping[Hashable, Column], n: int, rng: Any) -> pd.DataFrame:
    """Return rows whose cells are drawn evenly from what columns may hold."""
    rows: dict[Hashable, Any] = {}
    for name, column in columns.items():
        if isinstance(column, Number):
            values = rng.uniform(column.low, column.high, n)
            values = np.round(values) if column.integer else values
            rows[name] = column.present(values) if isinstance(column, Date) else values
        else:
            rows[name] = rng.choice(object_cells(column.levels), n)
    return pd.DataFrame(rows)
