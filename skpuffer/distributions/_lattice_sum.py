"""Distributions of lattice sums, their masses known to an error, and their W_inf.

W_inf is a maximum over a support, set by the far tails, so masses are either exact
integers or floats whose relative error is bounded mass by mass.
"""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Integers, lengths_of

from ._distributions import Discrete, Distribution, _distance

__all__ = ["LatticeSum", "lattice_of", "mass_error", "step_gap"]

#: Floats, or Python integers.
Masses = NDArray[Any]

#: Atoms, and cumulative masses from one end.
Half = tuple[Integers, Masses]

#: The halves from the lower and from the upper end, and how many atoms there are.
Halves = tuple[Half, Half, int]

_EPS = float(np.finfo(float).eps)
# Cumulative mass to which atoms are kept: the median with room for errors.
_PAST_MEDIAN = 0.5 * (1 + 1e-6)
# Share of their range by which values may be off a lattice.
_OFF_LATTICE = 1e-12


class LatticeSum(Discrete):
    """A distribution on an arithmetic progression, its masses known to an error.

    Parameters
    ----------
    steps : ndarray of int of shape (n_atoms,)
        Increasing multiples of `direction`.
    masses : ndarray of shape (n_atoms,)
        Masses above zero: floats that sum to one, or Python integers (dtype object),
        which are exact up to their sum.
    origin, direction : ndarray of shape (dim,)
        Atom `j` lies at ``origin + steps[j] * direction``.
    error : float, default=0.0
        Bound on the relative error of float masses.
    """

    def __init__(
        self,
        steps: Integers,
        masses: Masses,
        origin: Floats,
        direction: Floats,
        error: float = 0.0,
    ) -> None:
        weights = masses
        if masses.dtype == object:
            # As fractions the masses stay exact in transport against other
            # distributions.
            total = sum(masses)
            weights = np.empty(len(masses), dtype=object)
            weights[:] = [Fraction(mass, total) for mass in masses]
        # declared here and set below, as the dataclass is frozen
        self.steps: Integers
        self.known: Masses
        self.origin: Floats
        self.direction: Floats
        self.error: float
        super().__init__(origin + np.multiply.outer(steps, direction), weights)
        for name, value in (
            ("steps", steps),
            ("known", masses),
            ("origin", origin),
            ("direction", direction),
            ("error", error),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def halves(self) -> Halves:
        """Atoms and cumulative masses from either end; see :func:`_halves`."""
        return _halves(self.steps, self.known)

    def step_length(self, norm: float, units: Any = None) -> float:
        """Return the length of a step: of k steps it is k times that, in any norm."""
        return float(
            lengths_of(self.direction / (1.0 if units is None else units), norm)
        )

    @cached_property
    def level_error(self) -> float:
        """Relative error of float masses read off as differences of their halves."""
        (_, low), (_, high), _ = self.halves
        read = np.zeros(len(self.known))
        read[: len(low)] += np.diff(np.minimum(low, 0.5), prepend=0.0)
        read[::-1][: len(high)] += np.diff(np.minimum(high, 0.5), prepend=0.0)
        return float(np.abs(read / self.known - 1).max())


def _same(one: Floats, other: Floats) -> bool:
    # the sums of one chain share theirs
    return one is other or np.array_equal(one, other)


def step_gap(u: LatticeSum, v: LatticeSum) -> int | None:
    """W_inf of two lattice sums in steps, rounded up; None unless they share steps.

    Only atoms of one progression differ by whole steps.

    Parameters
    ----------
    u, v : LatticeSum

    Returns
    -------
    steps : int or None
    """
    if not (_same(u.direction, v.direction) and _same(u.origin, v.origin)):
        return None
    if u.known.dtype == object or v.known.dtype == object:
        return _farthest_of_integers(u, v)
    return _farthest(u.halves, v.halves, max(u.error, v.error))


@_distance.register
def _(
    u: LatticeSum, v: Distribution, norm: float, units: Floats, ceiling: float
) -> float:
    # Other pairs are compared as discrete distributions of any kind.
    gap = step_gap(u, v) if isinstance(v, LatticeSum) else None
    if gap is None:
        return _distance.dispatch(Discrete)(u, v, norm, units, ceiling)
    return gap * u.step_length(norm, units)


def _farthest_of_integers(u: LatticeSum, v: LatticeSum) -> int:
    """W_inf in steps, of integer masses whose sums may differ.

    On the line W_inf is the largest difference of quantiles. It is attained at the end
    of some atom of either distribution, where quantiles of the other are looked up.
    """
    u_levels, v_levels = np.cumsum(u.known), np.cumsum(v.known)
    # Cumulative masses over one denominator, the product of both totals: the comparison
    # of levels is exact.
    u_levels, v_levels = u_levels * v_levels[-1], v_levels * u_levels[-1]
    # The first atom whose cumulative mass is not below a level is its quantile.
    return max(
        int(np.max(u.steps[np.searchsorted(u_levels, v_levels)] - v.steps)),
        int(np.max(v.steps[np.searchsorted(v_levels, u_levels)] - u.steps)),
    )


def _halves(steps: Integers, masses: Masses) -> Halves:
    """Atoms and cumulative masses from either end to a little past the median."""

    def half(atoms: Integers, levels: Masses) -> Half:
        last = int(np.searchsorted(levels, _PAST_MEDIAN)) + 1
        return atoms[:last], levels[:last]

    return (
        half(steps, np.cumsum(masses)),
        half(-steps[::-1], np.cumsum(masses[::-1])),
        len(steps),
    )


def _farthest(u: Halves, v: Halves, error: float) -> int:
    """W_inf in steps of two distributions given by their halves, rounded up.

    No less than that of any two within the error of the masses, and equal to it unless
    cumulative masses agree to within the error. Quantiles are compared from the lower
    end up to the median and from the upper end down to it, so that the cumulative
    masses compared are sums of small numbers and keep their relative error.
    """
    # Adding up n positive floats one by one has a relative error of at most n eps / 2;
    # eight times that of both distributions is allowed for.
    rounding = 4 * _EPS * (u[2] + v[2])
    # A true level is at most 1 / (1 - error) times the computed one, and what is truly
    # below a level t is computed to be below (1 + error) t: no atom of one distribution
    # that lies below its true quantile reaches the computed level of the other times
    # the margin.
    margin = (1 + error) / (1 - error) * (1 + rounding)
    # `_excess` looks up levels of at most margin / 2, and halves end at _PAST_MEDIAN.
    if margin >= 2 * _PAST_MEDIAN:
        raise ValueError(Statement("distribution.mass_error_too_large"))
    # Both signs of the gap at the lower end, then both at the upper end.
    return max(
        _excess(*u[0], *v[0], margin),
        _excess(*v[0], *u[0], margin),
        _excess(*u[1], *v[1], margin),
        _excess(*v[1], *u[1], margin),
    )


def _excess(
    u_steps: Integers,
    u_levels: Masses,
    v_steps: Integers,
    v_levels: Masses,
    margin: float,
) -> int:
    """Largest excess of a quantile of `u` over that of `v`, up to the median."""
    # Over the levels of one atom of v its quantile is constant while that of u grows,
    # so the excess is largest where the atom ends, or at 0.5 if it holds the median. A
    # level raised by the margin finds a quantile of u that is not below the true one.
    at = np.searchsorted(u_levels, np.minimum(v_levels, 0.5) * margin)
    return int((u_steps[at] - v_steps).max())


def mass_error(n_steps: int, n_states: int, n_atoms: int) -> float:
    """Bound on the relative error of masses after `n_steps` of the forward recursion.

    Every operation adds or multiplies positive numbers, so relative errors add up: at
    each step one product and a sum over states, in the end a sum over the atoms, and
    the round-off of the transition probabilities themselves. Doubled.
    """
    operations = n_steps * (n_states + 3) + 2 * n_atoms + n_states**2 + 16
    return 2 * operations * _EPS


def lattice_of(values: Floats) -> tuple[Floats, Floats, Integers] | None:
    """Lattice of the states' contributions: whole multiples of one vector.

    Parameters
    ----------
    values : ndarray of shape (n_states, dim)

    Returns
    -------
    tuple of (ndarray of shape (dim,), ndarray of shape (dim,), ndarray of int) or None
        Origin, direction and multiples from zero up, such that a contribution is
        ``origin + multiple * direction`` and equal multiples mean equal contributions;
        None if there is no such lattice with at most 1000 multiples, or if round-off
        of the contributions hides it.
    """
    origin = values[0]
    gaps = values - origin
    extent = float(np.abs(gaps).max())
    if extent == 0:
        return origin, gaps[0], np.zeros(len(values), dtype=int)
    # numbers whose own digits are coarser than that are on no known lattice
    if not _EPS * np.abs(values).max() <= _OFF_LATTICE * extent < math.inf:
        return None
    # Relative to the extent, so that one tolerance suits contributions of any unit.
    gaps = gaps / extent
    span = gaps[np.argmax(np.abs(gaps).sum(axis=1))]
    # If all gaps are on one line, each is a share of the longest: its projection.
    shares = gaps @ span / float(span @ span)
    if np.abs(gaps - np.multiply.outer(shares, span)).max() > _OFF_LATTICE:
        return None
    # shares of the largest gap as fractions: their common denominator is the lattice
    exact = [Fraction(share).limit_denominator(1000) for share in shares.tolist()]
    parts = math.lcm(*(share.denominator for share in exact))
    off = np.abs(shares - np.array(exact, float)).max()
    if parts > 1000 or off > _OFF_LATTICE:
        return None
    # Multiples of the longest gap over `parts`, exact integers from here on.
    weights = np.array([int(share * parts) for share in exact])
    _, first, state = np.unique(weights, return_index=True, return_inverse=True)
    if not np.array_equal(values[first[state]], values):
        return None  # a move, however small, is not none
    direction = span * extent / parts
    # Multiples are counted from the least, and in the coarsest steps that reach all.
    least = int(weights.min())
    weights = weights - least
    origin = origin + least * direction
    common = int(np.gcd.reduce(weights))
    return origin, direction * common, weights // common
