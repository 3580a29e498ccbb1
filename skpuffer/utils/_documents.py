"""Headings, sentences and tables as text, HTML or Markdown."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

#: A part of a document: a sentence, a table, or a heading with its level.
Part = Any


def written(parts: Iterable[Part], form: str) -> str:
    """Return a document in a format."""
    heading, text, table = _WRITERS[form]

    def one(part: Part) -> str:
        if isinstance(part, tuple):
            return str(heading(*part))
        return str(text(part) if isinstance(part, str) else table(part))

    whole = "\n\n".join(filter(None, map(one, parts))) + "\n"
    page = "<!DOCTYPE html><html><meta charset='utf-8'><body>\n{}</body></html>\n"
    return page.format(whole) if form == "html" else whole


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    """Texts of a table, its columns first; numbers have five digits."""
    rows = [
        [f"{cell:.5g}" if isinstance(cell, float | int) else str(cell) for cell in row]
        for row in frame.to_numpy(object)
    ]
    return [[*map(str, frame.columns)], *rows]


def _text_table(frame: pd.DataFrame) -> str:
    if frame.empty:
        return ""
    rows = _cells(frame)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _html_table(frame: pd.DataFrame) -> str:
    kinds = ["h", *"d" * len(frame)]
    lines = [
        "".join(f"<t{kind}>{html.escape(cell)}</t{kind}>" for cell in row)
        for row, kind in zip(_cells(frame), kinds, strict=True)
    ]
    return f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"


def _markdown_table(frame: pd.DataFrame) -> str:
    head, *rows = ([*map(_escaped, row)] for row in _cells(frame))
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    marked = "".join(f"\\{c}" if c in "\\`*_|<[" else c for c in text)
    return " ".join(marked.split())


#: How headings, sentences and tables are written.
_WRITERS: dict[str, Any] = {
    "text": (
        lambda text, level: f"{text}\n{'=-'[level - 1] * len(text)}",
        str,
        _text_table,
    ),
    "html": (
        lambda text, level: f"<h{level}>{html.escape(text)}</h{level}>",
        lambda text: f"<p>{html.escape(text)}</p>",
        _html_table,
    ),
    "markdown": (
        lambda text, level: f"{'#' * level} {_escaped(text)}",
        _escaped,
        _markdown_table,
    ),
}
