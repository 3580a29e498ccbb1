"""How a ledger shows itself: as data frames, as text and as HTML."""

import html
import math
from collections.abc import Mapping, Sequence

import pandas as pd

from skpuffer.privacy import Certificate

from ._ceilings import Ceiling
from ._store import Entry

#: How many of the last releases are shown.
_SHOWN = 20

#: Columns of the entries that a person needs first.
_SHORT = ("time", "estimator", "release", "notion", "promise", "table")

#: What of a certificate stands in a report.
_OF_CERTIFICATE = (
    "release",
    "notion",
    "epsilon",
    "alpha",
    "delta",
    "mutual_information",
    "table",
    "n_records",
    "coupling_id",
    "scenario",
    "accountant",
)


def entries_frame(
    entries: Sequence[Entry], certificates: Mapping[int, Certificate]
) -> pd.DataFrame:
    """Return one row for each release."""
    rows = [
        {
            "time": pd.Timestamp(entry.time),
            "estimator": entry.estimator,
            **{
                name: _cell(getattr(certificates[entry.kind], name))
                for name in _OF_CERTIFICATE
            },
            "process": entry.process,
        }
        for entry in entries
    ]
    columns = ["time", "estimator", *_OF_CERTIFICATE, "process"]
    numbers = pd.Index([entry.number for entry in entries], name="entry", dtype="int64")
    return pd.DataFrame(rows, columns=columns, index=numbers)


def totals_frame(
    rows: Sequence[tuple[Ceiling, str | None, int, int, Certificate | None]],
) -> pd.DataFrame:
    """Return one row for each ceiling and table."""
    return pd.DataFrame(
        [
            {
                "notion": str(ceiling.notion),
                "table": table,
                "ceiling": ceiling.most,
                "at": ceiling.parameter,
                "spent": ceiling.spent(total),
                "remaining": max(0.0, ceiling.most - ceiling.spent(total)),
                "releases": counted,
                "not_counted": others,
                "confidence": 1.0 if total is None else total.confidence,
            }
            for ceiling, table, counted, others, total in rows
        ]
    )


def ledger_text(path: str, totals: pd.DataFrame, entries: pd.DataFrame) -> str:
    """Return what is spent and the last releases, as text."""
    lines = [f"Privacy ledger {path}", "", _text(_shown_totals(totals)), ""]
    lines.append(_heading(entries))
    if len(entries):
        lines.append(_text(_shown_entries(entries)))
    return "\n".join(lines)


def ledger_html(path: str, totals: pd.DataFrame, entries: pd.DataFrame) -> str:
    """Return the same as two HTML tables."""
    parts = [f"<b>Privacy ledger {html.escape(path)}</b>"]
    # what a file says of itself is text, and never markup
    parts.append(_shown_totals(totals).to_html(index=False, escape=True))
    parts.append(html.escape(_heading(entries)))
    if len(entries):
        parts.append(_shown_entries(entries).to_html(escape=True))
    return f"<div class='skpuffer-ledger'>{''.join(parts)}</div>"


def _heading(entries: pd.DataFrame) -> str:
    count = len(entries)
    if not count:
        return "No release."
    said = "1 release" if count == 1 else f"{count} releases"
    return f"{said}, the last {_SHOWN}:" if count > _SHOWN else f"{said}:"


def _shown_totals(totals: pd.DataFrame) -> pd.DataFrame:
    shown = totals.assign(table=totals["table"].map(_table))
    for name in ("ceiling", "at", "spent", "remaining"):
        shown[name] = shown[name].map(_number)
    # what is the same in all says nothing
    for name, default in (("not_counted", 0), ("confidence", 1.0)):
        if (shown[name] == default).all():
            shown = shown.drop(columns=name)
    return shown


def _shown_entries(entries: pd.DataFrame) -> pd.DataFrame:
    last = entries.tail(_SHOWN)
    return last.assign(
        time=last["time"].dt.strftime("%Y-%m-%d %H:%M:%S"),
        promise=[_promise(row) for _, row in last.iterrows()],
        table=last["table"].map(_table),
    )[list(_SHORT)]


def _promise(row: "pd.Series[object]") -> str:
    names = {"epsilon": "ε", "alpha": "α", "delta": "δ", "mutual_information": "nats"}
    return ", ".join(
        f"{said} = {_number(row[name])}"
        for name, said in names.items()
        if not pd.isna(row[name]) and not (name == "delta" and row[name] == 0)
    )


def _text(frame: pd.DataFrame) -> str:
    return str(frame.to_string(index=frame.index.name is not None))


def _table(name: object) -> str:
    return "any" if name is None or pd.isna(name) else str(name)


def _number(value: object) -> str:
    if value is None or pd.isna(value):
        return ""
    number = float(value)  # type: ignore[arg-type] # a cell of a column of numbers
    return "∞" if math.isinf(number) else f"{number:.6g}"


def _cell(value: object) -> object:
    return value if isinstance(value, int | float | None) else str(value)
