"""Masses as integers on one common total, so that couplings are exact.

W_inf is discontinuous in the masses: it asks which atoms meet with mass above zero.
Cumulative sums of floats lose or invent slivers of 1e-16, and a lost one under-states
the distance. Every mass is therefore turned into an integer once, here, and whatever
compares masses afterwards compares integers.
"""

import math
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpuffer.utils._checks import check_masses
from skpuffer.utils._types import Floats, Indices, Integers

# Common denominators looked for in float weights. Far below 2**26, above which some
# fraction lies within round-off of every float and the search would mean nothing.
_LARGEST_DENOMINATOR = 10**7
# Sums of int64 masses stay clear of overflow below this total; above, Python integers.
_INT64_TOTAL = 2**62


def common_masses(
    n: int, u_weights: ArrayLike | None, m: int, v_weights: ArrayLike | None
) -> tuple[Integers, Integers]:
    """Return the masses of two distributions as integers that add up to the same total.

    Parameters
    ----------
    n, m : int
        Numbers of atoms.
    u_weights, v_weights : array-like of shape (n,) and (m,), or None
        None means a count of one for each atom; integers are counts; fractions
        (objects of `fractions.Fraction`) must sum to one exactly; floats must sum to
        one to 1e-9.

    Returns
    -------
    a, b : ndarray of shape (n,) and (m,), of int64 or of Python integers
        ``a / a.sum()`` and ``b / b.sum()`` are the masses, and the two sums are equal.
        Python integers (dtype object) where int64 could overflow.

    Raises
    ------
    ValueError
        If weights are negative, not finite, all zero, of the wrong shape or do not sum
        to one.

    Notes
    -----
    Floats are read as the fractions they were rounded from when one denominator of at
    most 10**7 reproduces all of them to 4 units of relative round-off (counts divided
    by their sum, decimals such as 0.1). Otherwise each float is taken at its exact
    binary value and both distributions are normalised exactly: two cumulative sums that
    were meant to agree and differ by round-off then leave a sliver of mass, which can
    only enlarge W_inf.
    """
    a, total_a = integer_masses(n, u_weights=u_weights)
    b, total_b = integer_masses(m, v_weights=v_weights)
    total = math.lcm(total_a, total_b)
    return rescale(a, total_a, total), rescale(b, total_b, total)


def rescale(masses: Integers, old_total: int, total: int) -> Integers:
    kind = np.int64 if total < _INT64_TOTAL else object
    return masses.astype(kind) * (total // old_total)


def integer_masses(n: int, **named: ArrayLike | None) -> tuple[Integers, int]:
    """Return the one named weights as integers without common factor, and their sum."""
    ((name, raw),) = named.items()
    if raw is None:
        return np.ones(n, dtype=np.int64), n
    values = np.asarray(raw)
    if values.dtype == object and all(isinstance(w, Rational) for w in values.flat):
        masses = _from_rationals(n, values, name)
    else:
        check_masses(n, **named)  # type: ignore[arg-type] # neither `tol` nor `counts`
        if np.issubdtype(values.dtype, np.integer):
            small = values.sum(dtype=float) < _INT64_TOTAL
            masses = values.astype(np.int64 if small else object)
        else:
            values = values.astype(float)
            counts = _from_denominator(values)
            masses = _from_binary(values) if counts is None else counts
    # In lowest terms, as the common total of two distributions is a multiple of both.
    masses = masses // np.gcd.reduce(masses)
    return masses, int(masses.sum())


def _from_rationals(n: int, values: NDArray[np.object_], name: str) -> Integers:
    if values.shape != (n,):
        raise ValueError(
            f"The parameter {name!r} must have one entry for each of the {n} points. "
            f"Got shape {values.shape}."
        )
    if min(values) < 0 or not any(values):
        raise ValueError(
            f"The parameter {name!r} must hold finite non-negative masses that are "
            "not all zero."
        )
    denominator = math.lcm(*(int(w.denominator) for w in values))
    # A sum of fractions is exact: no tolerance. Over a denominator of one they are
    # counts, as integers are.
    if denominator > 1 and sum(values) != 1:
        raise ValueError(
            f"The parameter {name!r} must sum to 1 (integers are taken as counts). "
            f"Got a sum of {sum(values)}."
        )
    masses = np.empty(n, dtype=object)
    masses[:] = [int(w * denominator) for w in values]
    return masses


def _from_denominator(values: Floats) -> Indices | None:
    """Return counts with ``counts / counts.sum() == values`` to round-off, or None."""
    denominator = 1
    while True:
        # Each weight within 4 units of round-off of a multiple of 1 / denominator?
        counts = np.rint(values * denominator)
        off = np.abs(values * denominator - counts) > 4 * np.finfo(float).eps * counts
        if not off.any():
            break
        # The first weight that is off says by which factor to refine.
        stray = Fraction(values[off.argmax()]).limit_denominator(_LARGEST_DENOMINATOR)
        finer = math.lcm(denominator, stray.denominator)
        if finer == denominator or finer > _LARGEST_DENOMINATOR:
            return None
        denominator = finer
    counts = counts.astype(np.int64)
    # no such reading for weights whose counts would not make a distribution
    return counts if counts.sum() == denominator else None


def _from_binary(values: Floats) -> Integers:
    """Return the exact binary values of floats, over their common power of two."""
    # value = (mantissa * 2^53) * 2^(exponent - 53), the first factor an integer.
    mantissa, exponent = np.frexp(values)
    # Zero has any exponent: one that does not enlarge the common denominator.
    exponent[values == 0] = exponent.max()
    mantissa = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    integers: Integers = mantissa << (exponent - exponent.min()).astype(object)
    return integers
