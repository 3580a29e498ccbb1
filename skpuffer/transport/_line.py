"""Wasserstein distances on the line, exact for atoms of any masses."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.stats import rv_continuous

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import (
    Floats,
    Integers,
    check_at_least_one,
    check_probability,
)
from skpuffer.utils._checks import check_share

from ._buckets import gap_by_buckets
from ._masses import MeantMasses, in_one_unit, match, read_masses

_BLOCK = 16384  # atoms handled at once: the temporaries stay in cache
_STRETCH = 256  # atoms whose gaps are bounded together before they are computed


def wasserstein_distance(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    p: float = np.inf,
) -> float:
    r"""Return the Wasserstein distance of order `p` between discrete laws on the line.

    .. math:: W_p = \Big(\int_0^1 |F^{-1}(t) - G^{-1}(t)|^p\,dt\Big)^{1/p}, \qquad
              W_\infty = \sup_t |F^{-1}(t) - G^{-1}(t)|.

    Parameters
    ----------
    u_values, v_values : array-like of shape (n,) and (m,)
        Atoms of the two distributions, in any order.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses. None gives every atom the same mass. Integers are counts.
        `fractions.Fraction` objects and floats must sum to one.
    p : float, default=numpy.inf
        Order, in [1, inf].

    Returns
    -------
    distance : float
        In the unit of the values.

    See Also
    --------
    bottleneck_distance : W_inf between distributions on more than one coordinate.

    Notes
    -----
    Masses are compared in integer arithmetic: no weights, counts and fractions are
    exact. Float weights are read as fractions with a common denominator of at most
    10**7 where that reproduces them to round-off, and at their exact binary values
    otherwise. In the latter case W_inf may exceed, but never fall below, that of the
    masses meant. Pass counts or fractions to avoid it.

    References
    ----------
    Villani (2003), Topics in Optimal Transportation, Theorem 2.18. Pierquin et al.
    (2024), Rényi Pufferfish Privacy, Definition 3.2.

    Examples
    --------
    >>> from skpuffer.transport import wasserstein_distance
    >>> wasserstein_distance([0, 1, 5], [0, 2, 4], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2])
    3.0
    """
    order = check_at_least_one(p=p)
    x = _values(u_values=u_values)
    y = _values(v_values=v_values)
    a = read_masses(len(x), u_weights=u_weights)
    b = read_masses(len(y), v_weights=v_weights)
    if math.isinf(order):
        largest = gap_by_buckets(x, a, y, b)
        if largest is not None:
            return largest
    mass = None
    # Without weights, by far the most frequent case, no masses need be made.
    if u_weights is None and v_weights is None:
        x, y = (np.sort(values).astype(float, copy=False) for values in (x, y))
        _check_ends(x, y)
        largest = _largest_gap(x, y)
        if math.isinf(order) or largest == 0:
            return largest
        # equally many atoms of equal masses meet one to one
        if len(x) == len(y):
            gaps = np.abs(x - y)
        else:
            i, j, mass = match(*in_one_unit(a, b))
            gaps = np.abs(x[i] - y[j])
    else:
        x, masses_u, y, masses_v = _sorted(x, a, y, b)
        i, j, mass = match(masses_u, masses_v)
        gaps = np.abs(x[i] - y[j])
        largest = float(gaps.max())
        if math.isinf(order) or largest == 0:
            return largest
    # gaps in units of the largest: no overflow of their powers at any order
    powers = (gaps / largest) ** order
    mean = powers.mean() if mass is None else powers @ _shares(mass)
    return float(largest * mean ** (1 / order))


def quantile_coupling(
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return the monotone coupling of two discrete distributions on the line.

    It is optimal for every convex increasing cost of the distance and so for every W_p.
    It is not for the mass moved further than a given distance.

    Parameters
    ----------
    u_values, v_values : array-like of shape (n,) and (m,)
        Atoms, in any order. Equal atoms are merged.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `wasserstein_distance`.

    Returns
    -------
    x, y : ndarray of shape (k,)
        Atoms that meet, both non-decreasing, ``k < n + m``.
    mass : ndarray of shape (k,)
        Masses above zero that sum to one.

    References
    ----------
    Villani (2003), Topics in Optimal Transportation, Section 2.2.

    Examples
    --------
    >>> from skpuffer.transport import quantile_coupling
    >>> x, y, mass = quantile_coupling([0, 1], [0, 1, 2], [3, 1], [1, 2, 1])
    >>> x.tolist(), y.tolist(), mass.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 2.0], [0.25, 0.5, 0.25])
    """
    x = _values(u_values=u_values)
    y = _values(v_values=v_values)
    # merged first, so that no two pairs of atoms are the same
    x, a, y, b = _atoms(x, u_weights, y, v_weights)
    x, a = _merge(x, a)
    y, b = _merge(y, b)
    i, j, mass = match(a, b)
    return x[i], y[j], _shares(mass)


def _shares(mass: Integers) -> Floats:
    # divided first: a float may not hold what a Python integer does
    shares: Floats = (mass / mass.sum()).astype(float)
    return shares


def _values(**named: ArrayLike) -> Floats:
    ((name, raw),) = named.items()
    values = np.asarray(raw)
    # those of single precision stay so until few are left, or all are sorted
    if values.dtype != np.float32:
        values = values.astype(float, copy=False)
    if values.ndim != 1 or len(values) == 0:
        raise value_error(
            "transport.values_not_one_dimensional", name=name, shape=values.shape
        )
    return values


def _check_ends(x: Floats, y: Floats) -> None:
    """Raise on values that are not finite: a sort leaves those at the ends."""
    for name, values in (("u_values", x), ("v_values", y)):
        if not math.isfinite(values[0]) or not math.isfinite(values[-1]):
            raise value_error("transport.values_not_finite", name=name)


def _atoms(
    x: Floats, u_weights: ArrayLike | None, y: Floats, v_weights: ArrayLike | None
) -> tuple[Floats, Integers, Floats, Integers]:
    """Return sorted atoms and their integer masses, without the atoms of mass zero."""
    a = read_masses(len(x), u_weights=u_weights)
    b = read_masses(len(y), v_weights=v_weights)
    return _sorted(x, a, y, b)


def _sorted(
    x: Floats, u_masses: MeantMasses, y: Floats, v_masses: MeantMasses
) -> tuple[Floats, Integers, Floats, Integers]:
    a, b = in_one_unit(u_masses, v_masses)
    first, second = np.argsort(x), np.argsort(y)
    x, y = (values.astype(float, copy=False) for values in (x[first], y[second]))
    a, b = a[first], b[second]
    _check_ends(x, y)
    return x[a > 0], a[a > 0], y[b > 0], b[b > 0]


def _merge(x: Floats, a: Integers) -> tuple[Floats, Integers]:
    # runs of equal sorted values start where the difference to the last is not zero
    starts = np.flatnonzero(np.diff(x, prepend=-np.inf))
    return x[starts], np.add.reduceat(a, starts)


def _largest_gap(x: Floats, y: Floats) -> float:
    """Return W_inf between sorted atoms of equal masses, by branch and bound.

    With n <= m, atom i meets atoms ``floor(i m / n)`` to ``ceil((i + 1) m / n) - 1``.
    """
    if len(x) > len(y):
        x, y = y, x
    n, m = len(x), len(y)
    # Bound of each stretch of atoms: the lowest against the highest that is met, and
    # the highest against the lowest. The last met before `stop` is ceil(stop m / n) -
    # 1.
    starts = np.arange(0, n, _STRETCH)
    stops = np.append(starts[1:], n)
    low, high = y[starts * m // n], y[(stops * m - 1) // n]
    bounds = np.maximum(high - x[starts], x[stops - 1] - low)
    # Blocks, by the largest bound of their stretches, are looked into in falling order,
    # until no bound exceeds the largest gap found.
    bounds = np.maximum.reduceat(bounds, np.arange(0, len(starts), _BLOCK // _STRETCH))
    largest = 0.0
    for block in np.argsort(-bounds):
        if bounds[block] <= largest:
            break
        start = int(block) * _BLOCK
        largest = max(largest, _gap_within(x, y, start, min(start + _BLOCK, n)))
    return largest


def _gap_within(x: Floats, y: Floats, start: int, stop: int) -> float:
    """Largest gap of coupled atoms, `start` to `stop` of the smaller distribution."""
    n, m = len(x), len(y)
    part = x[start:stop]
    if n == m:
        gaps = part - y[start:stop]
        return max(float(gaps.max()), -float(gaps.min()))
    # entry k is the last atom that atom start + k - 1 of the smaller distribution meets
    met = y[(np.arange(start, stop + 1) * m - 1) // n]
    above = float((met[1:] - part).max())
    # The first atom met by i is floor(i m / n): the last met by i - 1, which it shares,
    # unless i m / n is whole. At those cuts, common to both, it is the next one.
    shared = math.gcd(n, m)
    every, step = n // shared, m // shared
    first, last = -(-start // every), -(-stop // every)
    met[first * every - start : -1 : every] = y[first * step : last * step : step]
    return max(above, float((part - met[:-1]).max()))


# -- continuous ------------------------------------------------------------------------
# W_inf and near radii of continuous distributions on the line, bounded from above.


# Relative error of SciPy's quantile functions, rounded up.
_QUANTILE_ERROR = 1e-9
# First grid of levels: 2^-2 to 2^-39 in each tail, even steps in the middle.
_HALVINGS = 40
_EVEN = 256
# Refinement ends after so many rounds, or with so many levels; any grid is a bound.
_ROUNDS = 40
_LARGEST_GRID = 2**17
# Not location-scale families: on the circle, or with two parametrisations.
_NOT_BY_LOCATION = frozenset({"levy_stable", "vonmises", "wrapcauchy"})


def continuous_wasserstein(u: Any, v: Any, *, rtol: float = 1e-3) -> float:
    """Return W_inf between two continuous distributions on the line, or an upper bound.

    Parameters
    ----------
    u, v : frozen distribution
        Continuous distributions as SciPy freezes them, such as
        ``scipy.stats.norm(0, 1)``.
    rtol : float, default=1e-3
        Relative accuracy at which a bound need not be improved, in (0, 1).

    Returns
    -------
    distance : float
        In the unit of the distributions. Exact for one named family of SciPy's if only
        location and scale differ, and infinite for unequal scales on an unbounded
        support. For others an upper bound; infinite if either support is unbounded.

    Raises
    ------
    TypeError
        If a distribution is not a frozen continuous distribution of SciPy's.

    See Also
    --------
    continuous_near_radius : A finite bound except for a little mass, on any support.

    Notes
    -----
    W_inf is the largest gap of the quantile functions. Between the levels a and b the
    gap is at most ``max(F(b) - G(a), G(b) - F(a))``. The bound is the largest over a
    grid of intervals, which are split where it matters.

    References
    ----------
    Villani (2003), Topics in Optimal Transportation, Remark 2.19.

    Examples
    --------
    >>> from scipy import stats
    >>> from skpuffer.transport import continuous_wasserstein
    >>> continuous_wasserstein(stats.expon(0, 2), stats.expon(0.5, 2))
    0.5
    >>> continuous_wasserstein(stats.uniform(0, 1), stats.beta(2, 2)) < 0.0968
    True
    """
    return _radius(u, v, 0.0, rtol)


def continuous_near_radius(
    u: Any, v: Any, delta: float, *, rtol: float = 1e-3
) -> float:
    """Return an upper bound of the near radius of two continuous distributions.

    Parameters
    ----------
    u, v : frozen distribution
        Continuous distributions as SciPy freezes them.
    delta : float
        Mass that may travel any distance, in [0, 1). At zero this is
        `continuous_wasserstein`.
    rtol : float, default=1e-3
        Relative accuracy at which a bound need not be improved, in (0, 1).

    Returns
    -------
    radius : float
        In the unit of the distributions: a bound for the monotone coupling.

    Notes
    -----
    The intervals of levels with the largest bounds are left out, as long as their
    lengths add up to at most `delta`.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Definition 4.2.

    Examples
    --------
    >>> from scipy import stats
    >>> from skpuffer.transport import continuous_near_radius
    >>> radius = continuous_near_radius(stats.norm(0, 1), stats.norm(1, 1.3), 1e-3)
    >>> 1.92706 < radius < 1.930
    True
    """
    delta = check_share(delta=delta)
    return _radius(u, v, delta, rtol)


def _radius(u: Any, v: Any, delta: float, rtol: float) -> float:
    rtol = check_probability(rtol=rtol)
    for name, frozen in (("u", u), ("v", v)):
        if not isinstance(getattr(frozen, "dist", None), rv_continuous):
            raise type_error(
                "transport.not_frozen_continuous", name=name, frozen=frozen
            )
    # W_inf where it is known in closed form.
    whole = _within_family(u, v)
    # The outermost intervals of levels have a finite bound on bounded supports only.
    if delta == 0 and whole is None:
        ends = (*u.support(), *v.support())
        whole = None if all(map(math.isfinite, ends)) else math.inf
    if delta == 0 and whole is not None:
        return whole
    # W_inf itself bounds a near radius, which may leave mass out but need not.
    return min(_by_levels(u, v, delta, rtol), math.inf if whole is None else whole)


def _within_family(u: Any, v: Any) -> float | None:
    """W_inf within a location-scale family; None for any other two distributions."""
    if u.dist.name != v.dist.name or not (_is_named(u) and _is_named(v)):
        return None
    (shapes_u, at_u, scale_u), (shapes_v, at_v, scale_v) = map(_parameters, (u, v))
    if shapes_u != shapes_v:
        return None
    shift, stretch = at_u - at_v, scale_u - scale_v
    if stretch == 0:
        return abs(shift)
    # With quantiles location + scale * q(t) the gap is shift + stretch * q(t), linear
    # in q(t), so that its absolute value is largest at an end of the standard support.
    ends = u.dist.support(*shapes_u)
    return max(abs(shift + stretch * float(end)) for end in ends)


def _is_named(frozen: Any) -> bool:
    """Whether shapes, location and scale identify a distribution in its family."""
    name = frozen.dist.name
    named: Any = getattr(stats, name, None)
    return (
        name not in _NOT_BY_LOCATION
        and type(named) is type(frozen.dist)
        and (named.a, named.b) == (frozen.dist.a, frozen.dist.b)
    )


def _parameters(frozen: Any) -> tuple[tuple[float, ...], float, float]:
    """Shapes, location and scale of a frozen distribution."""
    shapes, at, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    return tuple(map(float, shapes)), float(at), float(scale)


def _by_levels(u: Any, v: Any, delta: float, rtol: float) -> float:
    """Upper bound of the quantile gap, except for levels of total length delta."""
    tail = 0.5 ** np.arange(2, _HALVINGS)
    levels = np.unique(np.r_[0, tail, 1 - tail, np.linspace(0, 1, _EVEN + 1)])
    best = math.inf
    for _ in range(_ROUNDS):
        first, second = _quantiles(u, levels), _quantiles(v, levels)
        with np.errstate(invalid="ignore"):  # inf - inf: no bound at either end
            # F⁻¹ and G⁻¹ are monotone, so for levels t in [a, b]
            # |F⁻¹(t) - G⁻¹(t)| <= max(F⁻¹(b) - G⁻¹(a), G⁻¹(b) - F⁻¹(a))
            bounds = np.maximum(first[1:] - second[:-1], second[1:] - first[:-1])
            gaps = np.abs(first - second)
        bounds, gaps = (np.where(np.isnan(x), math.inf, x) for x in (bounds, gaps))
        lengths = np.diff(levels)
        radius = _largest_except(bounds, lengths, delta)
        best = min(best, radius)
        # How far a finer grid may lower the bound: to the gaps themselves, of which the
        # smaller at the two ends of an interval stands for it. An estimate that steers
        # the refinement, and never the result.
        least = np.minimum(gaps[1:], gaps[:-1])
        hoped = _largest_except(least, lengths, delta)
        # Split where the bound is loose, where a split may lower the radius (an
        # interval whose gap reaches it stays), and where levels can still be told
        # apart.
        split = (bounds > hoped * (1 + rtol)) & (least < radius) & (lengths > 1e-15)
        if (
            radius <= hoped * (1 + rtol)
            or not split.any()
            or len(levels) > _LARGEST_GRID
        ):
            break
        middles = (levels[1:] + levels[:-1])[split] / 2
        levels = np.unique(np.concatenate([levels, middles]))
    return best * (1 + _QUANTILE_ERROR)


def _largest_except(heights: Floats, lengths: Floats, delta: float) -> float:
    """Largest height after the highest intervals of total length delta are left out."""
    order = np.argsort(-heights, kind="stable")
    # Whole intervals only, and of slightly less than delta in total, so that round-off
    # of the lengths leaves out no more mass than is allowed.
    left_out = np.cumsum(lengths[order]) <= delta * (1 - 1e-12)
    return float(heights[order[left_out.sum()]])


def _quantiles(frozen: Any, levels: Floats) -> Floats:
    # Levels above 1/2 by the survival function: floats near one are 1e-16 apart, and
    # the upper tail would end there.
    values: Floats = np.where(levels <= 0.5, frozen.ppf(levels), frozen.isf(1 - levels))
    return values
