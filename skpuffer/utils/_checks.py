"""Checks of privacy parameters, each named by its keyword.

Hand-written rather than left to scikit-learn's ``_parameter_constraints``: those can
be switched off by configuration and are skipped inside ``fit``, and a privacy
parameter must be checked at every calibration.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skpuffer.exceptions import Statement

from ._entropy import secret_generator
from ._reading import floats, refuse_mask
from ._types import Floats, Numbers

#: Range of workable sizes: their squares, and the quotients of those, neither overflow
#: nor vanish. Sensitivities may be smaller (`_LEAST_EXTENT`): of these the square alone
#: must not vanish.
_LEAST_SIZE, _LEAST_EXTENT, _LARGEST_SIZE = 1e-70, 1e-150, 1e70

#: Smallest probability that, and whose parts, floats hold to full precision.
_LEAST_PROBABILITY = 1e-300

#: Largest integer up to which every integer is a float.
_LARGEST_COUNT = 2**53


def _one(named: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = named.items()
    return name, value


def check_real(**named: Any) -> float:
    """Return the one named value as a float, or raise.

    Parameters
    ----------
    **named : one keyword argument
        The name of the parameter and its value.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If the value is not a real number.
    ValueError
        If the value is NaN, or a number beyond the range of floats.
    """
    name, value = _one(named)
    # most of them are, and to look up what is a number takes longer than the rest
    if type(value) is float and value == value:
        return value
    # for mypy no boolean is a real number
    # True is an integer to Python, and a mistake as a budget
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):  # type: ignore[unreachable]
        raise TypeError(
            Statement(
                "parameter.not_real_number",
                name=name,
                value=value,
                value_type=type(value).__name__,
            )
        )
    try:
        number = float(value)
    except OverflowError:
        # refused outside of `except`, so that no second error is chained to it
        number = None
    if number is None:
        raise ValueError(Statement("parameter.beyond_floats", name=name))
    # it would pass every comparison by which ranges are checked
    if math.isnan(number):
        raise ValueError(Statement("parameter.is_nan", name=name))
    return number


def check_positive(*, finite: bool = True, **named: Any) -> float:
    """Return the one named value as a float in (0, inf), (0, inf] if not `finite`.

    Noise, bounds and budgets are multiplied, squared and divided by each other: what is
    too small or, if `finite`, too large for that is refused. NaN, infinite noise or a
    loss of zero would come of it.
    """
    name, raw = _one(named)
    value = check_real(**named)
    if value <= 0 or (finite and math.isinf(value)):
        end = ")" if finite else "]"
        raise ValueError(
            Statement("parameter.not_positive", name=name, end=end, raw=raw)
        )
    # in the user's own words, `raw`, also where a float has rounded them
    return _workable(name, value, raw, _LEAST_SIZE, finite)


def check_all_positive(**named: Any) -> tuple[float, ...]:
    """Return the entries of the one named sequence as by :func:`check_positive`."""
    name, raw = _one(named)
    values = tuple(raw)
    # It accepts an interval, so the extremes (NaN if there is one) stand for the rest:
    # one call for each of thousands of units takes longer than what they are for.
    plain = bool(values) and set(map(type, values)) == {float}
    ends = np.array(values) if plain else None
    for value in values if ends is None else (float(ends.min()), float(ends.max())):
        check_positive(**{name: value})
    return values if plain else tuple(map(float, values))


def check_extent(**named: Any) -> float:
    """Return the one named sensitivity or scale: zero, infinity, or a workable size."""
    name, raw = _one(named)
    value = check_non_negative(**named)
    # each with a meaning of its own: no move at all, and no bound on it
    if value == 0 or math.isinf(value):
        return value
    return _workable(name, value, raw, _LEAST_EXTENT, finite=True)


def check_finite(**named: Any) -> Floats:
    """Return the one named value as an array of finite numbers, of any shape.

    Parameters
    ----------
    **named : one keyword argument
        The name of the parameter and its value.

    Returns
    -------
    ndarray of float

    Raises
    ------
    ValueError
        If it holds what is no number, NaN, infinity, a number beyond the range of
        floats, masked values, or rows of different lengths.
    """
    name, raw = _one(named)
    refuse_mask(raw, name)
    array = floats(raw)
    if array is None or not np.all(np.isfinite(array)):
        raise ValueError(Statement("parameter.array_not_finite", name=name))
    return array


def check_sizes(**named: Any) -> Floats:
    """Return the one named value as an array of numbers that are zero or workable.

    Of values, points and bounds, whose distances noise has to cover. Zero is a value
    like any other; a number whose square vanishes would be taken for zero, and its
    distance to zero would be left without noise.
    """
    name, _ = _one(named)
    array = check_finite(**named)
    sizes = np.abs(array[array != 0])
    # the extremes stand for the rest
    for size in (sizes.min(), sizes.max()) if sizes.size else ():
        _workable(name, float(size), float(size), _LEAST_SIZE, finite=True)
    return array


def check_interval(low: Numbers, high: Numbers, name: str) -> None:
    """Refuse intervals whose ends or half lengths are not of workable size.

    Half of the length is a unit of the noise.

    Parameters
    ----------
    low, high : float or ndarray
        Finite, ``low < high``.
    name : str
        Of the parameter, for the message.
    """
    # an end may be zero, half a length may not
    for end in np.unique(np.abs([*np.ravel(low), *np.ravel(high)])):
        check_extent(**{name: float(end)})
    for half in np.unique(high / 2 - low / 2):
        check_positive(**{name: float(half)})  # type: ignore[arg-type] # not `finite`


def _workable(
    name: str, value: float, raw: object, least: float, finite: bool
) -> float:
    # beyond these, squares or their quotients overflow or vanish, and noise with them
    if value < least or (finite and value > _LARGEST_SIZE):
        raise ValueError(
            Statement(
                "parameter.size_not_workable",
                name=name,
                least=least,
                largest_size=_LARGEST_SIZE,
                raw=raw,
            )
        )
    return value


def check_non_negative(*, finite: bool = False, **named: Any) -> float:
    """Return the one named value as a float in [0, inf], [0, inf) if `finite`."""
    name, raw = _one(named)
    value = check_real(**named)
    if value < 0 or (finite and math.isinf(value)):
        end = ")" if finite else "]"
        raise ValueError(
            Statement("parameter.is_negative", name=name, end=end, raw=raw)
        )
    return value


def check_order(**named: Any) -> float:
    """Return the one named value as a Rényi order in (1, inf]."""
    name, raw = _one(named)
    value = check_real(**named)
    # the Rényi divergence of order one is a limit with other formulas
    if value <= 1:
        raise ValueError(
            Statement("parameter.renyi_order_out_of_range", name=name, raw=raw)
        )
    return value


def check_probability(**named: Any) -> float:
    """Return the one named value as a float in the open interval (0, 1)."""
    name, raw = _one(named)
    value = check_real(**named)
    # zero is a pure promise, asked for in other ways; at one nothing is promised
    if not 0 < value < 1:
        raise ValueError(
            Statement("parameter.probability_out_of_range", name=name, raw=raw)
        )
    if value < _LEAST_PROBABILITY:
        raise ValueError(
            Statement(
                "parameter.probability_too_small",
                name=name,
                least_probability=_LEAST_PROBABILITY,
                raw=raw,
            )
        )
    return value


def check_at_least_one(**named: Any) -> float:
    """Return the one named value as a float in [1, inf], such as a norm's order."""
    name, raw = _one(named)
    value = check_real(**named)
    if value < 1:
        raise ValueError(Statement("parameter.below_one", name=name, raw=raw))
    return value


def check_share(**named: Any) -> float:
    """Return the one named value as a float in [0, 1)."""
    name, raw = _one(named)
    value = check_real(**named)
    if not 0 <= value < 1:
        raise ValueError(Statement("parameter.share_out_of_range", name=name, raw=raw))
    return value


def check_each(check: Callable[..., float], **named: Any) -> Any:
    """Apply a check of one number to a number, or to each entry of an array.

    Every check of ours accepts an interval, so the extremes (NaN if there is one) stand
    for the rest. Returns a float or an array, as was given.
    """
    ((name, value),) = named.items()
    if isinstance(value, Real) or not hasattr(value, "__len__"):
        return check(**named)
    array = np.asarray(value)
    # text would be read as numbers by the cast below, and booleans as zeros and ones
    if array.dtype.kind not in "iuf":
        raise TypeError(Statement("parameter.entries_not_real", name=name, value=value))
    array = array.astype(float)
    if array.ndim == 0:
        return check(**{name: float(array)})
    if array.size:
        check(**{name: float(array.min())})
        check(**{name: float(array.max())})
    return array


def check_count(*, least: int = 1, most: int | None = None, **named: Any) -> int:
    """Return the one named value as an int from `least` on, up to `most`."""
    name, raw = _one(named)
    value = check_real(**named)
    # a float such as 10.0 counts as well, as read from a file
    if math.isinf(value) or value != math.floor(value) or value < least:
        raise ValueError(
            Statement("parameter.count_too_small", name=name, least=least, raw=raw)
        )
    if value > _LARGEST_COUNT:
        raise ValueError(Statement("parameter.count_beyond_floats", name=name))
    if most is not None and value > most:
        raise ValueError(
            Statement("parameter.count_too_large", name=name, most=most, raw=raw)
        )
    return int(value)


def check_jobs(**named: Any) -> int | None:
    """Return the one named value if joblib can count so many workers, or it is None."""
    name, value = _one(named)
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    # more than that joblib cannot count
    if value is not None and (not integer or not 0 < abs(value) < 2**31):
        raise ValueError(Statement("parameter.jobs_invalid", name=name, value=value))
    return None if value is None else int(value)


def check_option(options: Iterable[object], **named: Any) -> Any:
    """Return the one named value if it is among `options`, or raise."""
    name, value = _one(named)
    # by type too: True equals 1, and an array has no single truth value; a grid that is
    # an array has its own type of texts
    kind = str if isinstance(value, str) else type(value)
    if not any(kind is type(o) and value == o for o in options):
        listed = ", ".join(repr(o) for o in options)
        raise ValueError(
            Statement("parameter.option_unknown", name=name, listed=listed, value=value)
        )
    return value


def check_name(**named: Any) -> str | None:
    """Return the one named value if it is a text that names something, or None."""
    name, value = _one(named)
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise ValueError(Statement("parameter.name_not_text", name=name, value=value))
    return value


def check_masses(
    n: int, *, tol: float = 1e-9, counts: bool = True, **named: Any
) -> Floats:
    """Return the one named weights as a float array of shape (n,) that sums to one.

    None means equal masses. Integer weights are counts and are normalised unless
    `counts` is False; other weights must sum to one already, to `tol`.

    Raises
    ------
    ValueError
        If the shape is wrong, or a weight is negative, not finite, or the sum is
        neither one nor that of counts.
    """
    name, raw = _one(named)
    if raw is None:
        return np.full(n, 1.0 / n)
    refuse_mask(raw, name)
    values = floats(raw)
    if values is not None and values.shape != (n,):
        raise ValueError(
            Statement(
                "transport.masses_count_differs", name=name, n=n, shape=values.shape
            )
        )
    if (
        values is None
        or not np.all(np.isfinite(values))
        or np.any(values < 0)
        or (total := float(values.sum())) <= 0
    ):
        raise ValueError(Statement("transport.masses_invalid", name=name))
    # counts sum to any number, masses to one: a sum that is neither is a mistake
    read_as_counts = counts and np.issubdtype(np.asarray(raw).dtype, np.integer)
    if not read_as_counts and abs(total - 1.0) > tol:
        raise ValueError(
            Statement(
                "parameter.masses_not_sum_one",
                name=name,
                counts=Statement("parameter.integers_are_counts") if counts else "",
                total=total,
            )
        )
    # again, as a sum within the tolerance is not yet one
    return values / total


def check_covariance(*, least: float = -1e-10, **named: Any) -> Floats:
    """Return the one named value as a float matrix of shape (d, d), symmetric exactly.

    Parameters
    ----------
    least : float, default=-1e-10
        What the smallest eigenvalue must be, as a share of the largest: positive
        definite where it is above zero, else semi-definite up to round-off.
    **named : one keyword argument
        The name of the parameter and its value.

    Returns
    -------
    ndarray of shape (d, d)

    Raises
    ------
    ValueError
        If the value is no square matrix of finite numbers, or is not symmetric (to
        1e-9 of a correlation, or 1e-12 of its largest entry) or not positive
        (semi-)definite.
    """
    name, _ = _one(named)
    array = check_finite(**named)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(
            Statement("parameter.covariance_not_square", name=name, shape=array.shape)
        )
    # by standard deviations, so that large units of one coordinate excuse nothing
    # elsewhere
    spreads = np.sqrt(np.maximum(np.diag(array), 0))
    slack = 1e-9 * np.outer(spreads, spreads) + 1e-12 * np.abs(array).max()
    if np.any(np.abs(array - array.T) > slack):
        raise ValueError(Statement("parameter.covariance_not_symmetric", name=name))
    # exactly symmetric from here on: factorisations read one half only
    array = np.where(array == array.T, array, (array + array.T) / 2)
    low, high = _extreme_eigenvalues(array)
    # relative to the largest, as the matrix may be in any unit
    if low < least * high or (least > 0 and low <= least * high):
        kind: Statement | str = "semi-definite"
        if least > 0:
            kind = Statement("parameter.covariance_condition_number", most=1 / least)
        raise ValueError(
            Statement(
                "parameter.covariance_not_positive_definite",
                name=name,
                kind=kind,
                low=low,
                high=high,
            )
        )
    return array


#: Extreme eigenvalues by a digest of the matrix, which is not kept itself.
_EXTREMES: dict[tuple[int, bytes], tuple[float, float]] = {}


def _extreme_eigenvalues(array: Floats) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric matrix.

    Remembered, as one matrix is checked at every calibration: a digest takes a tenth of
    the time.
    """
    key = len(array), hashlib.sha256(array.tobytes()).digest()
    found = _EXTREMES.get(key)
    if found is None:
        low, high = np.linalg.eigvalsh(array)[[0, -1]].tolist()
        found = low, high
        if len(_EXTREMES) >= 256:
            _EXTREMES.clear()
        _EXTREMES[key] = found
    return found


def noise_generator(
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> tuple[np.random.Generator, bool]:
    """Return a generator for noise.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        None draws from a stream cipher under a key of the operating system, which
        nobody can predict or recover. NumPy's global state is never used, as
        scikit-learn's `check_random_state` would: a call to ``np.random.seed`` anywhere
        in the process would make the noise predictable.

    Returns
    -------
    rng : numpy.random.Generator
    seeded : bool
        Whether the noise can be reproduced by whoever knows the seed.
    """
    if random_state is None:
        return secret_generator(), False
    # whoever made it may know its state, so noise from it counts as seeded
    if isinstance(random_state, np.random.Generator):
        return random_state, True
    if isinstance(random_state, np.random.RandomState):
        # drawn from the state, so that a second fit differs, as users expect
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4)), True
    check_random_state(random_state)  # scikit-learn's message for what is not a seed
    return np.random.default_rng(random_state), True
