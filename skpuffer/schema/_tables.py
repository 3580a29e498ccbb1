"""Tables of files, of which no cell gives a column its type."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_option

from ._cells import cell_numbers
from ._columns import Number

if TYPE_CHECKING:
    from ._schema import Schema

__all__ = ["read_csv", "read_parquet", "scan_csv"]


def read_csv(
    schema: Schema, source: str | PathLike[str], engine: str, options: dict[str, Any]
) -> Any:
    """Read a CSV file; see :meth:`Schema.read_csv`."""
    check_option(("pandas", "polars"), engine=engine)
    if engine == "pandas":
        texts = {"dtype": str, "keep_default_na": False, "na_values": [""]}
        frame = pd.read_csv(source, **texts | options)
        return frame.assign(
            **{n: cell_numbers(frame[n].array) for n in _numbers(schema, frame)}
        )
    polars = _polars()
    frame = polars.read_csv(source, **{"infer_schema_length": 0} | options)
    return frame.with_columns(
        polars.Series(name, cell_numbers(frame[name].to_numpy()))
        for name in _numbers(schema, frame)
    )


def scan_csv(source: str | PathLike[str], options: dict[str, Any]) -> Any:
    """Return a CSV file as a lazy frame; see :meth:`Schema.scan_csv`."""
    return _polars().scan_csv(source, **{"infer_schema_length": 0} | options)


def read_parquet(
    schema: Schema, source: str | PathLike[str], options: dict[str, Any]
) -> pd.DataFrame:
    """Read a Parquet file; see :meth:`Schema.read_parquet`."""
    frame = pd.read_parquet(source, **options)
    return frame.assign(
        **{n: cell_numbers(frame[n].array) for n in _numbers(schema, frame)}
    )


def _numbers(schema: Schema, frame: Any) -> list[str]:
    """Columns of a table that hold numbers by the schema."""
    return [n for n in frame.columns if n in schema and isinstance(schema[n], Number)]


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise ImportError(Statement("dependency.polars_missing")) from None
    return polars
