"""Types of arrays, lengths of moves, and checks of numbers, each named by its keyword.

Hand-written, as those of scikit-learn can be switched off and are skipped inside `fit`.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from skpuffer.exceptions import type_error, value_error

Booleans = NDArray[np.bool_]


Complexes = NDArray[np.complex128]


Floats = NDArray[np.float64]


Indices = NDArray[np.integer[Any]]


#: int64, or Python integers where those would overflow.
Integers = NDArray[Any]


#: One number, or an array of them.
Numbers = float | Floats


#: The same of functions that answer a number with a number, and an array with an array.
Number = TypeVar("Number", float, Floats, Numbers)


#: What a parameter may be.
Option = TypeVar("Option")


#: Range of workable sizes: their squares, and the quotients of those, neither overflow
#: nor vanish. Sensitivities may be smaller (`_LEAST_EXTENT`): of these the square alone
#: must not vanish.
_LEAST_SIZE, _LEAST_EXTENT, _LARGEST_SIZE = 1e-70, 1e-150, 1e70


#: Smallest probability that, and whose parts, floats hold to full precision.
_LEAST_PROBABILITY = 1e-300


#: Largest integer up to which every integer is a float.
_LARGEST_COUNT = 2**53


def _one(named: Mapping[str, Option]) -> tuple[str, Option]:
    ((name, value),) = named.items()
    return name, value


def check_real(**named: object) -> float:
    """Return the one named value as a float, or raise.

    Parameters
    ----------
    **named : one keyword argument
        The name of the parameter and its value.
    """
    name, value = _one(named)
    # most of them are, and to look up what is a number takes longer than the rest
    if type(value) is float and value == value:
        return value
    # True is an integer to Python, and a mistake as a budget
    if type(value) is bool or not isinstance(value, Real):
        raise type_error(
            "parameter.not_real_number",
            name=name,
            value=value,
            value_type=type(value).__name__,
        )
    try:
        number = float(value)
    except OverflowError:
        # refused outside of `except`, so that no second error is chained to it
        number = None
    if number is None:
        raise value_error("parameter.beyond_floats", name=name)
    # it would pass every comparison by which ranges are checked
    if math.isnan(number):
        raise value_error("parameter.is_nan", name=name)
    return number


def check_positive(*, finite: bool = True, **named: object) -> float:
    """Return the one named value as a float in (0, inf), (0, inf] if not `finite`.

    Noise, bounds and budgets are multiplied, squared and divided by each other: what is
    too small or, if `finite`, too large for that is refused. NaN, infinite noise or a
    loss of zero would come of it.
    """
    name, raw = _one(named)
    value = check_real(**named)
    if value <= 0 or (finite and math.isinf(value)):
        end = ")" if finite else "]"
        raise value_error("parameter.not_positive", name=name, end=end, raw=raw)
    # in the user's own words, `raw`, also where a float has rounded them
    return _workable(name, value, raw, _LEAST_SIZE, finite)


def check_all_positive(**named: Iterable[float]) -> tuple[float, ...]:
    """Return the entries of the one named sequence as by :func:`check_positive`."""
    name, raw = _one(named)
    values = tuple(raw)
    # It accepts an interval, so the extremes (NaN if there is one) stand for the rest:
    # one call for each of thousands of units takes longer than what they are for.
    plain = bool(values) and set(map(type, values)) == {float}
    ends = np.array(values) if plain else None
    for value in values if ends is None else (float(ends.min()), float(ends.max())):
        check_positive(finite=True, **{name: value})
    return values if plain else tuple(map(float, values))


def check_extent(**named: object) -> float:
    """Return the one named sensitivity or scale: zero, infinity, or a workable size."""
    name, raw = _one(named)
    value = check_non_negative(finite=False, **named)
    # each with a meaning of its own: no move at all, and no bound on it
    if value == 0 or math.isinf(value):
        return value
    return _workable(name, value, raw, _LEAST_EXTENT, finite=True)


def _workable(
    name: str, value: float, raw: object, least: float, finite: bool
) -> float:
    # beyond these, squares or their quotients overflow or vanish, and noise with them
    if value < least or (finite and value > _LARGEST_SIZE):
        raise value_error(
            "parameter.size_not_workable",
            name=name,
            least=least,
            largest_size=_LARGEST_SIZE,
            raw=raw,
        )
    return value


def check_non_negative(*, finite: bool = False, **named: object) -> float:
    """Return the one named value as a float in [0, inf], [0, inf) if `finite`."""
    name, raw = _one(named)
    value = check_real(**named)
    if value < 0 or (finite and math.isinf(value)):
        end = ")" if finite else "]"
        raise value_error("parameter.is_negative", name=name, end=end, raw=raw)
    return value


def check_order(**named: object) -> float:
    """Return the one named value as a Rényi order in (1, inf]."""
    name, raw = _one(named)
    value = check_real(**named)
    # the Rényi divergence of order one is a limit with other formulas
    if value <= 1:
        raise value_error("parameter.renyi_order_out_of_range", name=name, raw=raw)
    return value


def check_probability(**named: object) -> float:
    """Return the one named value as a float in the open interval (0, 1)."""
    name, raw = _one(named)
    value = check_real(**named)
    # zero is a pure promise, asked for in other ways; at one nothing is promised
    if not 0 < value < 1:
        raise value_error("parameter.probability_out_of_range", name=name, raw=raw)
    if value < _LEAST_PROBABILITY:
        raise value_error(
            "parameter.probability_too_small",
            name=name,
            least_probability=_LEAST_PROBABILITY,
            raw=raw,
        )
    return value


def check_at_least_one(**named: object) -> float:
    """Return the one named value as a float in [1, inf], such as a norm's order."""
    name, raw = _one(named)
    value = check_real(**named)
    if value < 1:
        raise value_error("parameter.below_one", name=name, raw=raw)
    return value


@overload
def check_each(check: Callable[..., float], **named: Number) -> Number: ...


@overload
def check_each(check: Callable[..., float], **named: object) -> Numbers: ...


def check_each(check: Callable[..., float], **named: object) -> object:
    """Apply a check of one number to a number, or to each entry of an array.

    Every check of ours accepts an interval, so the extremes (NaN if there is one) stand
    for the rest. Returns a float or an array, as was given.
    """
    return _each(check, *_one(named))


def _each(check: Callable[..., float], name: str, value: Any) -> object:
    if isinstance(value, Real) or not hasattr(value, "__len__"):
        return check(**{name: value})
    array = np.asarray(value)
    # text would be read as numbers by the cast below, and booleans as zeros and ones
    if array.dtype.kind not in "iuf":
        raise type_error("parameter.entries_not_real", name=name, value=value)
    array = array.astype(float)
    if array.ndim == 0:
        return check(**{name: float(array)})
    if array.size:
        check(**{name: float(array.min())})
        check(**{name: float(array.max())})
    return array


def check_count(*, least: int = 1, most: int | None = None, **named: object) -> int:
    """Return the one named value as an int from `least` on, up to `most`."""
    name, raw = _one(named)
    value = check_real(**named)
    # a float such as 10.0 counts as well, as read from a file
    if math.isinf(value) or value != math.floor(value) or value < least:
        raise value_error("parameter.count_too_small", name=name, least=least, raw=raw)
    if value > _LARGEST_COUNT:
        raise value_error("parameter.count_beyond_floats", name=name)
    if most is not None and value > most:
        raise value_error("parameter.count_too_large", name=name, most=most, raw=raw)
    return int(value)


def check_option(options: Iterable[Option], **named: object) -> Option:
    """Return the one named value if it is among `options`, or raise."""
    name, value = _one(named)
    known = tuple(options)
    # by type too: True equals 1, and an array has no single truth value; a grid that is
    # an array has its own type of texts
    kind = str if isinstance(value, str) else type(value)
    for option in known:
        if kind is type(option) and value == option:
            return option
    listed = ", ".join(map(repr, known))
    raise value_error("parameter.option_unknown", name=name, listed=listed, value=value)


def unit_near(numbers: Floats) -> float:
    """Power of two near the largest absolute number.

    Division by it is exact, and leaves numbers whose powers neither vanish nor
    overflow, except where they are nothing beside the largest.
    """
    return float(np.ldexp(1.0, np.frexp(np.abs(numbers).max(initial=0.0))[1] - 1))


def lengths_of(moves: Floats, norm: float) -> Floats:
    """Norms along the last axis, of which the largest is zero for no moves only.

    Parameters
    ----------
    moves : ndarray of shape (..., dim)
    norm : float
        Order, in [1, inf].

    Returns
    -------
    ndarray of shape (...)
    """
    # a length that vanished would be a move that no noise covers
    unit = unit_near(moves)
    return np.asarray(unit * np.linalg.norm(moves / unit, ord=norm, axis=-1))


def floats(values: object) -> Floats | None:
    """Return values as an array of floats, or None if they are not."""
    try:
        array = np.asarray(values)
        # complex numbers and dates can be cast, and must not be
        return None if array.dtype.kind in "cmM" else array.astype(float)
    except (TypeError, ValueError, ArithmeticError):
        return None


def check_finite(**named: object) -> Floats:
    """Return the one named value as an array of finite numbers, of any shape.

    Parameters
    ----------
    **named : one keyword argument
        The name of the parameter and its value.
    """
    name, raw = _one(named)
    # `asarray` drops the mask, and what was hidden would be computed with
    if np.ma.is_masked(raw):
        raise value_error("table.masked_array", name=name)
    array = floats(raw)
    if array is None or not np.all(np.isfinite(array)):
        raise value_error("parameter.array_not_finite", name=name)
    return array
