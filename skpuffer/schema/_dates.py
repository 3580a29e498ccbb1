"""Parts of dates as public levels: years, months, weekdays, hours."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer.exceptions import value_error

from ._columns import Date, Time

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

    from ._schema import Schema


#: Parts that follow each other as long as there are months: months of each, and how
#: pandas calls such a period.
_MONTHS = {"month": (1, "M"), "quarter": (3, "Q"), "year": (12, "Y")}

_WEEKDAYS = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip

#: All parts of a date.
PARTS = (*_MONTHS, "day", "month_of_year", "weekday", "hour")

_DAY, _HOUR = 86_400.0, 3600.0


@dataclass(frozen=True)
class DatePart:
    """Part of a column of dates, or of times of the day, as a column of levels.

    Years, quarters, months and days are all those between the bounds, in order; months
    of the year, weekdays and hours come again. A date outside is in the nearest level,
    a missing one at None or the `fill`, or at none.

    Parameters
    ----------
    label : str
        Name of the column of levels.
    name : str or int
        Name of the column of dates.
    entry : Date
        Its entry in the code book.
    part : str
        One of `PARTS`.
    """

    label: str
    name: Hashable
    entry: Date
    part: str

    @property
    def levels(self) -> tuple[Any, ...]:
        """Public levels: periods of pandas, names or numbers; None is the last."""
        return (*self._known, *(None,) * self.entry.has_gaps)

    @property
    def _known(self) -> tuple[Any, ...]:
        if self.part == "weekday":
            return _WEEKDAYS
        if self.part == "month_of_year":
            return tuple(range(1, 13))
        if self.part == "hour":
            first, last = self._ends(_HOUR)
            own = isinstance(self.entry, Time)
            return tuple(range(first, last + 1)) if own else tuple(range(24))
        if self.part == "day":
            first, last = self._ends(_DAY)
            return tuple(pd.Period(ordinal=i, freq="D") for i in range(first, last + 1))
        _, freq = _MONTHS[self.part]
        if self.part == "year":
            return tuple(1970 + i for i in self._periods)
        return tuple(pd.Period(ordinal=i, freq=freq) for i in self._periods)

    def _ends(self, length: float) -> tuple[int, int]:
        """First and last whole number of lengths within the bounds."""
        low, high = (
            int(bound * self.entry.seconds // length)
            for bound in (self.entry.low, self.entry.high)
        )
        return low, high

    @property
    def _periods(self) -> range:
        """Numbers of the years, quarters or months within the bounds, since 1970."""
        months, _ = _MONTHS[self.part if self.part in _MONTHS else "month"]
        ends = np.array([self.entry.low, self.entry.high]) * self.entry.seconds
        first, last = ends.astype("M8[s]").astype("M8[M]").astype(int) // months
        return range(int(first), int(last) + 1)

    @property
    def _starts(self) -> Floats:
        """Where all periods but the first begin, in units of the column."""
        months, _ = _MONTHS[self.part if self.part in _MONTHS else "month"]
        starts = (np.array(self._periods[1:]) * months).astype("M8[M]")
        return starts.astype("M8[s]").astype(float) / self.entry.seconds

    def codes(self, values: Any, missing: Any) -> Any:
        """Return the position of each value's level; negative where it has none."""
        found = self._codes(values)
        if self.entry.fill is not None and not self.entry.has_gaps:
            return found
        other = len(self._known) if self.entry.has_gaps else -1
        if isinstance(values, nw.Expr):
            return nw.when(missing).then(nw.lit(float(other))).otherwise(found)
        return np.where(missing, other, found)

    def _codes(self, values: Any) -> Any:
        seconds = values * float(self.entry.seconds)
        if self.part == "weekday":
            # the first day of 1970 was a Thursday
            return _cyclic(_floor(seconds / _DAY) + 3.0, 7.0)
        if self.part == "day":
            return _floor(seconds / _DAY) - float(self._ends(_DAY)[0])
        if self.part == "hour":
            hours = _floor(seconds / _HOUR)
            if isinstance(self.entry, Time):
                return hours - float(self._ends(_HOUR)[0])
            return _cyclic(hours, 24.0)
        places: list[float] = [float(i) for i in range(len(self._periods))]
        if self.part == "month_of_year":
            places = [float(i % 12) for i in self._periods]
        return _reached(values, self._starts.tolist(), places)


def _floor(values: Any) -> Any:
    return values.floor() if isinstance(values, nw.Expr) else np.floor(values)


def _cyclic(values: Any, length: float) -> Any:
    # engines differ in the rest of a negative number
    return values - length * _floor(values / length)


def _reached(values: Any, starts: list[float], places: list[float]) -> Any:
    """Place of each value among increasing starts: by halves, as engines ask."""
    if not isinstance(values, nw.Expr):
        return np.asarray(places)[np.searchsorted(starts, values, side="right")]
    if not starts:
        # of each row: an expression of no column would have one alone
        return nw.when(values.is_null()).then(places[0]).otherwise(places[0])
    half = len(starts) // 2
    lower = _reached(values, starts[:half], places[: half + 1])
    upper = _reached(values, starts[half + 1 :], places[half + 1 :])
    return nw.when(values >= starts[half]).then(upper).otherwise(lower)


def date_part(schema: Schema, label: Any) -> DatePart | None:
    """Return the part of a column of dates that a label names, or None.

    ``'month'``, where one column alone has months, or ``'day.month'``. A column of that
    very name goes first.
    """
    if not isinstance(label, str) or label in schema:
        return None
    name, dot, part = label.rpartition(".")
    held = dict.fromkeys((*schema.names, schema.target))
    columns = {n: schema[n] for n in held if n is not None}
    dates: dict[Any, Date] = {n: c for n, c in columns.items() if isinstance(c, Date)}
    if part not in PARTS or not dates:
        return None
    able = {n: c for n, c in dates.items() if part in _parts(c)}
    if not able:
        raise value_error("schema.date_part_of_none", label=label, part=part)
    found = [n for n in able if not dot or str(n) == name]
    if len(found) != 1:
        raise value_error(
            "schema.date_part_of_no_column", label=label, part=part, names=list(able)
        )
    return DatePart(label, found[0], able[found[0]], part)


def _parts(entry: Date) -> tuple[str, ...]:
    """Parts that a column of dates has."""
    if isinstance(entry, Time):
        return ("hour",)
    return PARTS if entry.unit != "day" else PARTS[:-1]
