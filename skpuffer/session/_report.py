"""What a session released, as tables and as a report."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from skpuffer._template._frames import to_frame
from skpuffer.exceptions import Statement
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._documents import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skpuffer.privacy import Certificate

#: How many rows of a table are kept.
_MOST = 1000

#: Columns of a tidy table that are no names.
_NUMBERS = ("estimate", "std_error", "low", "high", "p_value", "n")

#: Columns of the table of costs.
_COSTS = ["release", "share of budget", "epsilon alone", "time (UTC)"]

#: What two tables differ in, by the relation of records.
_DIFFER = {
    "add_remove": "session.differ_in_presence",
    "replace": "session.differ_in_values",
    "relabel": "session.differ_in_target",
}

#: What is said of intervals, and what they are for.
_INTERVALS = {
    "session.interval_of_population": "population",
    "session.interval_of_table": "table",
    "session.no_interval": None,
}


def released_table(model: Any, level: float) -> dict[str, Any]:
    """Return what a fitted model released, with intervals where it has any."""
    find = getattr(model, "to_frame", partial(to_frame, model))
    for code, of in _INTERVALS.items():
        # where intervals of the population are not known, those of the table may be
        with suppress(ValueError):
            frame, said = find(level, of=of), _said(code, level=level)
            break
    frame = frame.drop(columns="wide", errors="ignore").dropna(subset="estimate")
    frame = frame.dropna(axis="columns", how="all").astype(object)
    # a level without a name is that of missing values
    named = [name for name in frame if name not in _NUMBERS]
    frame[named] = frame[named].where(frame[named].notna(), _said("session.missing"))
    rows = frame[:_MOST].to_numpy().tolist()
    return {"columns": [*frame], "rows": rows, "said": said}


# -- the report ------------------------------------------------------------------------


def report_parts(
    released: Sequence[dict[str, Any]],
    entries: pd.DataFrame,
    total: Certificate | None,
    budget: dict[str, float],
    scenario: Any,
) -> Iterator[Part]:
    """Yield the parts of a report of what was released and paid for."""
    spent = 0.0 if total is None else float(total.epsilon or 0.0)
    yield _said("session.report_title"), 1
    yield _said("session.promise_heading"), 2
    yield from _promise(scenario, spent, budget["delta"])
    yield _said("session.costs_heading"), 2
    # what has no note was paid for by a process that did not end, or by other means
    known = {
        entry: (f"{number}. {note['title']}", "" if i else f"{note['share']:.1%}")
        for number, note in enumerate(released, 1)
        for i, entry in enumerate(note["entries"])
    }
    rows = [
        [
            *known.get(at, (_said("session.no_result", by=entry["estimator"]), "")),
            f"{entry['epsilon']:.4g}",
            f"{entry['time']:%Y-%m-%d %H:%M}",
        ]
        for at, entry in entries.iterrows()
    ]
    yield pd.DataFrame(rows, columns=_COSTS)
    yield _said("session.costs_together", spent=spent, **budget)
    for number, note in enumerate(released, 1):
        yield f"{number}. {note['title']}", 2
        yield pd.DataFrame(note["table"]["rows"], columns=note["table"]["columns"])
        yield note["table"]["said"]
    if total is not None:
        yield _said("session.assumptions_heading"), 2
        yield from (f"{assumed}." for assumed in total.assumptions)


def _promise(scenario: Any, spent: float, delta: float) -> list[str]:
    """What was promised, in plain words."""
    if not spent:
        return [_said("session.promise_of_nothing")]
    code, attacker = "session.differ_in_secret", "session.attacker"
    if type(scenario) is RecordScenario:
        attacker = "session.attacker_of_records"
        code = _DIFFER[scenario.relation]
        code = code if scenario.unit is None else "session.differ_in_unit"
    count = "one" if (k := getattr(scenario, "k", 1)) == 1 else str(k)
    who = _said(code, scenario=str(scenario), count=count, unit=scenario.unit)
    factor = math.exp(spent)
    # of a test between two equally likely tables
    chance = min(1.0, (factor + delta) / (1 + factor))
    words = _said("session.promise_in_words", who=who, factor=factor, delta=delta)
    return [words, _said(attacker, chance=chance)]


def _said(code: str, **parameters: Any) -> str:
    return str(Statement(code, **parameters))
