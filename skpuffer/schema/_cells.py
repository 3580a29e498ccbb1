"""How a cell is read: by what was written, whatever type its column has.

Each cell has a key, the same for all ways in which a reader of files may return what
was written: 1, 1.0, "1" and "01" are one key.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer.exceptions import type_error, value_error
from skpuffer.utils._reading import (
    cells_of,
    held_as_codes,
    is_frame,
    object_cells,
    object_rows,
    read_table,
)

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.utils._types import Array

    from ._columns import Category, Number


#: Places of a cell that is missing, and of one that is no level.
MISSING, UNLISTED = -1, -2

#: Texts that a reader of files takes for a missing value; NaN is told by itself.
GAPS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None",
    }
)  # fmt: skip

#: Texts that a reader of files takes for a truth value, in any case.
TRUTH = {"true": 1.0, "t": 1.0, "yes": 1.0, "false": 0.0, "f": 0.0, "no": 0.0}

#: Types of which two cells are equal only if they hold the same.
_COMPARED = {type(None), str, bytes, bool, int, float, np.float64, datetime.date}

#: Number as engines are told to know it.
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = re.compile("0(x[0-9a-f]+|b[01]+)", re.IGNORECASE)

#: Date, with or without a time of the day and a zone.
DATE = re.compile(
    r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2})(?::([0-9]{2}))?(?::([0-9]{2})(\.[0-9]+)?)?"
    r" ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]+)?)?")

#: Date whose day some readers find by the dates of other rows.
_DOUBTFUL = re.compile(r"[0-9]{1,4}([-/. ])[0-9]{1,2}\1[0-9]{1,4}([T ].*)?")

#: Moment that some readers cut, and a time that some take for the next day's.
_UNSTABLE = re.compile(r"(.*[ T])?(24:[0-9:.]+|[0-9]+:[0-9:]+\.[0-9]{7,})")


def cell_key(value: Any) -> float | str | None:
    """Return what a cell holds, whatever type it has; nothing raises.

    A number, with truth values as 1 and 0 and whole numbers from 2**53 on as text; else
    a text without the space around it, with dates written in one way. None if it is
    missing.
    """
    try:
        return _key(value)
    # of a whole number of more digits than Python writes, or of a foreign object
    except Exception:
        return None


def _key(value: Any) -> float | str | None:
    if isinstance(value, str):
        return _text_key(value.strip())
    if isinstance(value, bytes):
        return _text_key(value.decode("utf-8", errors="replace").strip())
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _instant_key(value)
    if isinstance(value, complex) and value.imag == 0:
        # a single complex number makes such of all numbers of a column
        value = value.real
    if isinstance(value, Integral | Decimal):
        return _whole_key(value)
    if isinstance(value, Real | np.bool_):
        return _float(value)
    if is_missing(value):
        return None
    if isinstance(value, datetime.timedelta):
        return str(pd.Timedelta(value))
    if isinstance(value, datetime.date | datetime.time):
        return _text_key(value.isoformat())
    return _text_key(str(value).strip())


#: From here on whole numbers are not all floats.
EXACT = 2**53

#: Whole number as it is written in digits, and the key of one that is not exact.
_DIGITS = re.compile(r"[+-]?[0-9]{16,309}")


def _whole_key(value: Any) -> float | str | None:
    """Key of a number that may be whole and of more digits than a float has."""
    number = _float(value)
    if number is None or not EXACT <= abs(number) < math.inf or value % 1 != 0:
        return number
    return str(int(value))


def _level_key(level: Any) -> float | str | None:
    """Key of a public level: a whole number that is written as a float is whole too."""
    key = cell_key(level)
    if isinstance(key, float) and EXACT <= abs(key) < math.inf:
        return str(int(key))
    return key


def _as_float(key: float | str) -> float | None:
    """Float that a cell of the number of a key may have been rounded to, if any."""
    if isinstance(key, float):
        return key
    return _float(int(key)) if _DIGITS.fullmatch(key) else None


def _float(value: Any) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return math.copysign(math.inf, 1 if value > 0 else -1)
    return None if math.isnan(number) else number


def _instant_key(value: Any) -> float | str | None:
    if np.isnat(value):
        return None
    if isinstance(value, np.timedelta64):
        return str(pd.Timedelta(value))
    if np.datetime_data(value.dtype)[0] in "YMWDhm":
        value = value.astype("M8[s]")
    return _text_key(str(value))


def _text_key(text: str) -> float | str | None:
    """Key of a text without space around it."""
    if text in GAPS:
        return None
    # Python reads more as numbers than readers of files do
    if not text.isascii() or "_" in text:
        return text
    if _DIGITS.fullmatch(text):
        return _whole_key(int(text))
    try:
        return _float(text)
    except ValueError:
        pass
    if (word := text.lower()) in TRUTH:
        return TRUTH[word]
    if text[0].isdigit():
        if _WHOLE.fullmatch(text):
            return _whole_key(int(text, 0))
        if found := DATE.fullmatch(text):
            return _date_key(text, *found.group(1, 3, 4, 5, 6, 7, 8, 9))
        if found := _TIME.fullmatch(text):
            return _time(*found.groups())
    return text


def _time(hour: str, minute: str | None, second: str | None, part: str | None) -> str:
    rest = (part or "").rstrip("0").rstrip(".")
    return f"{hour:0>2}:{minute or '00'}:{second or '00'}{rest}"


def _date_key(
    text: str, year: str, month: str, day: str, hour: str | None, *rest: str | None
) -> str:
    minute, second, part, zone = rest
    date = f"{year}-{month:0>2}-{day:0>2}"
    if hour is None:
        return date
    time = _time(hour, minute, second, part)
    if zone and zone != "Z":
        sign, hours, minutes = zone[0], zone[1:3], zone[-2:] if zone[3:] else "00"
        try:
            there = datetime.datetime.fromisoformat(f"{date}T{time[:8]}")
            away = datetime.timedelta(hours=int(hours), minutes=int(minutes))
            there += away if sign == "-" else -away
        except (ValueError, OverflowError):  # no such day or hour
            return text
        date, time = there.date().isoformat(), f"{there.time().isoformat()}{time[8:]}"
    return date if time == "00:00:00" else f"{date} {time}"


def is_missing(value: Any) -> bool:
    """Whether one value is None, NaN, NaT or NA."""
    if isinstance(value, Decimal):
        return value.is_nan()  # one that signals is refused by any comparison
    if value is None or isinstance(value, str):
        return value is None
    # a list in a cell is no missing value, whatever it holds
    return not hasattr(value, "__len__") and bool(pd.isna(value))


def refuse_ambiguous(levels: Sequence[Any], parameter: str = "levels") -> None:
    """Refuse public levels that a reader of files does not keep apart."""
    known: dict[Any, Any] = {}
    for level in levels:
        key = _level_key(level)
        if key is None:
            raise value_error(
                "schema.level_reads_as_missing", parameter=parameter, level=level
            )
        unstable = isinstance(key, str) and _UNSTABLE.fullmatch(key)
        if unstable or key in (math.inf, -math.inf):
            raise value_error(
                "schema.level_reads_as_other", parameter=parameter, level=level
            )
        doubtful = isinstance(key, str) and _DOUBTFUL.fullmatch(key)
        if doubtful and not DATE.fullmatch(str(key)):
            raise value_error(
                "schema.level_date_ambiguous", parameter=parameter, level=level
            )
        if key in known:
            raise value_error(
                "schema.levels_read_alike",
                parameter=parameter,
                known=known[key],
                level=level,
            )
        known[key] = level


# -- columns ---------------------------------------------------------------------------


def level_places(levels: Sequence[Any], values: Any) -> Indices:
    """Return the place of each cell among public levels, `MISSING` or `UNLISTED`.

    A column of floats to which two levels round is refused: its type is public.
    """
    known = level_table(levels)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        if values.dtype.kind == "f" and round_alike(levels, values.dtype):
            raise value_error("schema.levels_round_alike", type=str(values.dtype))
        places = _number_places(known, _widened(values))
        if values.dtype.kind in "iu" and any(map(is_digits, known)):
            large = (values >= EXACT) | (values <= -EXACT)
            places[large] = level_places(levels, values[large].astype(object))
        return places
    places, keys = distinct_keys(values)
    found = [MISSING if k is None else known.get(k, UNLISTED) for k in keys]
    return np.array([*found, MISSING], dtype=np.intp)[places]


def round_alike(levels: Sequence[Any], kind: Any) -> bool:
    """Whether two levels are one number in a type of floats."""
    numbers = [_as_float(key) for level in levels if (key := _level_key(level))]
    with np.errstate(over="ignore"):
        held = np.array([n for n in numbers if n is not None], dtype=kind)
    return len(np.unique(held)) < len(held)


def is_digits(key: float | str | None) -> bool:
    """Whether a key is that of a whole number which may not be a float."""
    return isinstance(key, str) and _DIGITS.fullmatch(key) is not None


def level_table(levels: Sequence[Any]) -> dict[float | str, int]:
    """Return the place of each key that is a level's, rounded to floats too.

    In double and in single precision, where the float is that of one level only: one
    that two round to is of neither.
    """
    known = {
        key: place
        for place, level in enumerate(levels)
        if (key := _level_key(level)) is not None
    }
    rounded: dict[float, set[int]] = {}
    for key, place in known.items():
        number = _as_float(key)
        if number is not None:
            with np.errstate(over="ignore"):
                for held in {number, float(np.float32(number))}:
                    rounded.setdefault(held, set()).add(place)
    alone = {key: place for key, (place, *others) in rounded.items() if not others}
    return alone | known


def _number_places(known: dict[Any, int], values: Floats) -> Indices:
    numbers = sorted(key for key in known if isinstance(key, float))
    missing = np.where(np.isnan(values), MISSING, UNLISTED)
    if not numbers:
        return missing
    held = np.array(numbers)
    codes = np.array([known[key] for key in numbers], dtype=np.intp)
    places = np.minimum(np.searchsorted(held, values), len(held) - 1)
    return np.where(held[places] == values, codes[places], missing)


def distinct_keys(values: Any) -> tuple[Indices, list[float | str | None]]:
    """Place of each cell among distinct ones, -1 if missing; and the keys of these."""
    if isinstance(values, pd.Categorical):
        places, cells = values.codes, values.categories
    elif isinstance(values, np.ndarray) and values.dtype.kind in "SU":
        return distinct_keys(values.astype(object))
    else:
        places, cells = pd.factorize(_comparable(values))
    # dates as such: as objects the finest would be whole numbers
    dates = isinstance(cells, np.ndarray) and cells.dtype.kind in "mM"
    held = list(cells) if dates else np.asarray(cells, dtype=object).tolist()
    return places, [cell_key(cell) for cell in held]


def cell_codes(values: Any) -> Indices:
    """Number the cells of a column, equal ones alike; missing ones are negative."""
    places, keys = distinct_keys(values)
    numbers: dict[Any, int] = {None: -1}
    codes = [numbers.setdefault(key, len(numbers)) for key in keys]
    found: Indices = np.array([*codes, -1], dtype=np.intp)[places]
    return found


def _comparable(values: Any) -> Any:
    """Cells of which equal ones hold the same: keys in place of all others.

    An object may be equal to any other, and be so in the eyes of all rows.
    """
    if values.dtype.type is not np.object_:
        try:
            pd.factorize(values[:1])
            return values
        except Exception:  # of lists, or structures, in Arrow
            values = object_cells(values)
    values = np.asarray(values)
    types = set(map(type, values))
    if not types <= _COMPARED or (int in types and any(map(_is_large, values))):
        # a whole number may equal a float that it is not the only one to round to
        odd = [
            i
            for i, cell in enumerate(values)
            if type(cell) not in _COMPARED or _is_large(cell)
        ]
        values = values.copy()
        values[odd] = object_cells(cell_key(cell) for cell in values[odd])
    return values


def missing_keys(values: Any) -> Booleans:
    """Tell which cells hold nothing, texts that mean a gap among them."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return np.isnan(_widened(values))
    places, keys = distinct_keys(values)
    return np.array([*(key is None for key in keys), True])[places]


def _is_large(cell: Any) -> bool:
    return type(cell) is int and abs(cell) >= EXACT


def _widened(values: Array) -> Floats:
    with np.errstate(over="ignore"):  # of more than double precision
        return values.astype(float, copy=False)


#: Seconds of the units of dates and times.
SECONDS = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}

#: Seconds of all moments and times that are written in one way: four digits of a year.
RANGES = {"date": (-62_135_596_800, 253_402_300_800), "time": (0, 86_400)}


def cell_numbers(values: Any) -> Floats:
    """Return the numbers that cells hold, NaN where there is none."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _widened(values)
    places, keys = distinct_keys(values)
    found = [_number(key) for key in keys]
    return np.array([*found, math.nan])[places]


def _number(key: float | str | None) -> float:
    if isinstance(key, float):
        return key
    digits = key is not None and _DIGITS.fullmatch(key)
    return float(int(str(key))) if digits else math.nan


def cell_seconds(values: Any, reads: str) -> Floats:
    """Return the whole seconds since 1970, or since midnight; NaN without a moment."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "biuf":
        return np.full(len(values), np.nan)
    # what a column of dates nearly always is, in one reading
    if kind == {"date": "M", "time": "m"}[reads]:
        unit, gap = f"{kind}8[s]", np.array("NaT", f"{kind}8[s]")[()]
        moments = pd.Series(values, copy=False).to_numpy(unit, na_value=gap)
        seconds = np.where(np.isnat(moments), np.nan, moments.astype(float))
    else:
        places, keys = distinct_keys(values)
        found = [_seconds(key, reads) for key in keys]
        seconds = np.array([*found, math.nan])[places]
    # whichever type a malformed cell elsewhere has given to the column
    first, end = RANGES[reads]
    return np.where((seconds >= first) & (seconds < end), seconds, np.nan)


def as_moments(seconds: Floats, unit: str = "M8[s]") -> Array:
    """Return whole seconds as moments, or as lengths of time, of NumPy."""
    moments: Array = np.array(seconds, dtype=float).round()
    missing = np.isnan(moments)
    moments = np.where(missing, 0.0, moments).astype(np.int64).astype(unit)
    moments[missing] = "NaT"
    return moments


def _seconds(key: float | str | None, reads: str) -> float:
    if isinstance(key, str) and reads == "time":
        # of a length of time, as pandas writes it
        key = key.removeprefix("0 days ")
        if not _TIME.fullmatch(key):
            return math.nan
        hour, minute, second = (float(part) for part in key.split(":"))
        is_time = hour < 24 and minute < 60 and second < 60
        return 3600 * hour + 60 * minute + second // 1 if is_time else math.nan
    if isinstance(key, str) and reads == "date":
        found = DATE.fullmatch(key)
        # a zone is left where there is no such moment in UTC
        if found is None or found.group(9):
            return math.nan
        try:
            return float((np.datetime64(key[:19], "s") - _BEGINNING).astype(int))
        except (ValueError, OverflowError):  # no such day
            return math.nan
    return math.nan


_BEGINNING = np.datetime64("1970-01-01", "s")


# -- values of a column as its code book reads them ------------------------------------
# Values of a column as its code book reads them: whatever is held, nothing raises.
#
# What a table holds is private, so what it may not hold is no error: it is read as the
# nearest public value, or as missing. Each value is read by itself.


#: Values that are read at once.
AT_ONCE = 2**17


def column_arrays(X: Any, names: Sequence[Hashable]) -> list[Array]:
    """Return the columns of a table that a schema names, or by position."""
    X = object_rows(X)
    # an array of objects may hold anything: what it holds is read, and never refused
    if type(X) is not np.ndarray or X.dtype != object or X.ndim != 2:
        X = read_table(X)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        held = list(frame.columns)
        # numbered columns of pandas, where the code book has names, go by position
        if not set(names) <= set(held) and held == list(range(len(names))):
            return [_array(X, frame, name) for name in held]
        lacking = [name for name in names if name not in held]
        if lacking:
            raise value_error("schema.table_lacks_columns", lacking=lacking, held=held)
        return [_array(X, frame, name) for name in names]
    if not hasattr(X, "dtype") or hasattr(X, "tocsr"):
        raise type_error("schema.table_sparse")
    if X.shape[1] != len(names):
        raise value_error(
            "schema.array_column_count_differs",
            n_columns=X.shape[1],
            n_names=len(names),
            names=list(names),
        )
    return list(np.asarray(X).T)


def _array(X: Any, frame: Any, name: Hashable) -> Array:
    if isinstance(X, pd.DataFrame):
        cells = X[name]
        if isinstance(cells.dtype, pd.DatetimeTZDtype):
            # in UTC, as pandas refuses some objects with a zone
            cells = cells.dt.tz_convert(None)
        if isinstance(cells.dtype, pd.ArrowDtype):
            series = nw.from_native(cells, series_only=True)
            if series.dtype.is_temporal():
                # as Arrow has them: pandas makes objects, or refuses to
                arrow = cells.array.__arrow_array__()
                return cells_of(nw.from_native(arrow, series_only=True))
        held = held_as_codes(cells)
        values: Array = cells.to_numpy() if held is None else held
        return values
    column = frame.get_column(name)
    held = held_as_codes(column)
    if held is not None:
        found: Array = held
        return found
    return cells_of(column)


def numbers(
    column: Number, values: Array, exact: bool = False
) -> tuple[Floats, Booleans]:
    """Read a numeric column within its bounds, and whether each value is missing.

    If `exact`, dates and times keep the part of a unit, to the second.
    """
    found = plain_numbers(column, values, exact)
    missing = np.isnan(found)
    low, high = column.ends if exact else (column.low, column.high)
    inside = np.clip(found, low, high)
    return np.where(missing, column.filling, inside), missing


def plain_numbers(column: Number, values: Array, exact: bool = False) -> Floats:
    """Read a numeric column unclipped, NaN for what is missing or no number."""
    codes = object_cells(column.missing_codes)
    if column.reads != "number":
        unit = SECONDS[str(column.unit)]
        seconds = cell_seconds(values, column.reads)
        whole = seconds // unit
        found = seconds / unit if exact else whole
        codes = cell_seconds(codes, column.reads) // unit
    else:
        found = whole = cell_numbers(values)
        codes = cell_numbers(codes)
    # a code that is no number is missing anyhow
    for code in codes:
        found = np.where(whole == code, np.nan, found)
    return found


def other_code(column: Category, counted: bool = False) -> int:
    """Return the code of what is missing or not listed.

    If records are `counted` by level and neither a `fill` nor a level of missing values
    is given, it is -1 rather than the first level.
    """
    if column.has_gaps:
        return len(column.levels)
    return -1 if counted and column.fill is None else column.filling


def level_codes(column: Category, values: Array, counted: bool = False) -> Indices:
    """Return positions in `levels`, or :func:`other_code`."""
    other = other_code(column, counted)
    if isinstance(values, pd.api.extensions.ExtensionArray):
        places = level_places(column.levels, values)
        return np.where(places < 0, other, places)
    codes = np.empty(len(values), dtype=np.intp)
    # some at a time: what is made on the way stays small
    for start in range(0, len(values), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        places = level_places(column.levels, values[part])
        codes[part] = np.where(places < 0, other, places)
    return codes
