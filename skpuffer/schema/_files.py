"""Texts and files of a code book."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_option

from ._cells import as_moments, cell_numbers, cell_seconds
from ._columns import Category, Column, Date, Number

if TYPE_CHECKING:
    from ._schema import Schema


_HEAD = ("column", "kind", "values", "missing")
#: Levels that are printed, of those there are.
_SHOWN = 6


def read_json(source: str | PathLike[str]) -> Any:
    """Read a JSON text, or a file of that name."""
    return json.loads(_text(source))


def unambiguous(data: Any) -> Any:
    """Refuse entries of a file that may be bounds or levels: two numbers.

    In Python a tuple is a pair of bounds and a list is one of levels; a file has lists.
    """
    columns = data.get("columns") if isinstance(data, dict) else None
    for name, entry in (columns or {}).items():
        numbers = isinstance(entry, list) and all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in entry
        )
        if numbers and len(entry) == 2:
            raise value_error("schema.entry_bounds_or_levels", name=name, entry=entry)
    return data


def json_text(data: dict[str, Any]) -> str:
    """Write plain data as JSON."""
    names = data["columns"]
    if not all(isinstance(name, str) for name in names):
        raise value_error(
            "schema.names_not_texts",
            names=[name for name in names if not isinstance(name, str)],
        )
    return json.dumps(data, indent=2, ensure_ascii=False)


def read_yaml(source: str | PathLike[str]) -> Any:
    """Read a YAML text, or a file of that name."""
    yaml = _yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined, misc] # imported here
        """Reads levels such as yes, no, on and off as the texts they are."""

    bools = "tag:yaml.org,2002:bool"
    Loader.yaml_implicit_resolvers = {
        first: [(tag, found) for tag, found in known if tag != bools]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    words = re.compile("^(?:true|True|TRUE|false|False|FALSE)$")
    Loader.add_implicit_resolver(bools, words, list("tTfF"))
    return yaml.load(_text(source), Loader=Loader)


def yaml_text(data: dict[str, Any]) -> str:
    """Write plain data as YAML."""
    # through JSON, which refuses what a file cannot hold
    plain = json.loads(json_text(data))
    text: str = _yaml().safe_dump(plain, sort_keys=False, allow_unicode=True)
    return text


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError(Statement("dependency.yaml_missing")) from None
    return yaml


def _text(source: str | PathLike[str]) -> str:
    # a text of a schema has braces, colons or lines, a path of a file ends in its name
    if isinstance(source, str) and ("\n" in source or source.lstrip()[:1] == "{"):
        return source
    return Path(source).read_text(encoding="utf-8")


def write(text: str, path: str | PathLike[str] | None) -> str:
    """Return a text, written to a file too if there is a path."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


# -- for people ----------------------------------------------------------------------


def told(column: Column) -> tuple[str, str, str]:
    """Kind, values and missing values of a column, in words."""
    if isinstance(column, Category):
        kind = "ordered levels" if column.ordered else "levels"
        values = ", ".join(map(str, column.levels[:_SHOWN]))
        more = len(column.levels) - _SHOWN
        values += f", and {more} more" if more > 0 else ""
        filled: Any = column.levels[column.filling]
    else:
        kind = "integer" if column.integer else "number"
        kind = f"amount, {kind}" if column.amount else kind
        if column.reads != "number":
            kind = f"{column.reads}, whole {column.unit}s"
        values = f"{column.text(column.low)} to {column.text(column.high)}"
        filled = column.text(column.filling)
    if column.unit and not isinstance(column, Date):
        values += f" {column.unit}"
    told = "a level" if isinstance(column, Category) else "no answer"
    missing = told if column.has_gaps else f"as {filled}"
    if column.missing_codes:
        missing += f" ({', '.join(map(str, column.missing_codes))})"
    return kind, values, missing


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows as text."""
    lines = [_HEAD, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def table_html(rows: Iterable[Sequence[str]]) -> str:
    """Lay out rows as HTML."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(_HEAD, 'th')}</thead><tbody>{body}</tbody></table>"


# -- tables of files, of which no cell gives a column its type -------------------------


def read_csv(
    schema: Schema, source: str | PathLike[str], engine: str, options: dict[str, Any]
) -> Any:
    """Read a CSV file; see :meth:`Schema.read_csv`."""
    check_option(("pandas", "polars"), engine=engine)
    if engine == "pandas":
        texts = {"dtype": str, "keep_default_na": False, "na_values": [""]}
        frame = pd.read_csv(source, **texts | options)
        return _assigned(schema, frame)
    polars = _polars()
    frame = polars.read_csv(source, **{"infer_schema_length": 0} | options)
    return frame.with_columns(
        polars.Series(name, _read(schema[name], frame[name].to_numpy()))
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
    return _assigned(schema, frame)


def _assigned(schema: Schema, frame: pd.DataFrame) -> pd.DataFrame:
    numbers = _numbers(schema, frame)
    return frame.assign(**{n: _read(schema[n], frame[n].array) for n in numbers})


def _read(column: Any, values: Any) -> Any:
    """Cells of a column as numbers, dates or times of the day."""
    if column.reads == "number":
        return cell_numbers(values)
    kind = "M8" if column.reads == "date" else "m8"
    # Polars does not know seconds
    moments = as_moments(cell_seconds(values, column.reads), f"{kind}[s]")
    return moments.astype(f"{kind}[ms]")


def _numbers(schema: Schema, frame: Any) -> list[str]:
    """Columns of a table that hold numbers by the schema."""
    return [n for n in frame.columns if n in schema and isinstance(schema[n], Number)]


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise ImportError(Statement("dependency.polars_missing")) from None
    return polars
