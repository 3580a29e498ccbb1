"""W_inf and near radii of continuous distributions on the line, bounded from above."""

import math
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import rv_continuous

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_probability, check_share

__all__ = ["continuous_near_radius", "continuous_wasserstein"]

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
    """W_inf between two continuous distributions on the line, or an upper bound of it.

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
        In the unit of the distributions. Exact for two distributions of one named
        family of SciPy's that differ in location and scale only; infinite for those of
        unequal scale on an unbounded support. For other distributions an upper bound;
        infinite if either support is unbounded.

    Raises
    ------
    TypeError
        If a distribution is not a frozen continuous distribution of SciPy's.
    ValueError
        If `rtol` is out of range.

    See Also
    --------
    continuous_near_radius : A finite bound except for a little mass, on any support.
    wasserstein_distance : Distributions of finitely many atoms.

    Notes
    -----
    W_inf is the largest gap of the quantile functions. On an interval of levels from a
    to b, monotone as they are, the gap is at most
    ``max(F(b) - G(a), G(b) - F(a))``, and the bound is the largest over a grid of
    intervals, which are split where it matters. The gap at the levels of a grid is
    below the distance, and no bound.

    References
    ----------
    Villani (2003), Topics in Optimal Transportation, Remark 2.19.

    Examples
    --------
    >>> from scipy import stats
    >>> from skpuffer.transport import continuous_wasserstein
    >>> continuous_wasserstein(stats.expon(0, 2), stats.expon(0.5, 2))
    0.5
    >>> continuous_wasserstein(stats.norm(0, 1), stats.norm(0, 1.1))
    inf
    >>> continuous_wasserstein(stats.uniform(0, 1), stats.beta(2, 2)) < 0.0968
    True
    """
    return _radius(u, v, 0.0, rtol)


def continuous_near_radius(
    u: Any, v: Any, delta: float, *, rtol: float = 1e-3
) -> float:
    """Upper bound of the (z, delta)-near radius of two continuous distributions.

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
        In the unit of the distributions: a bound from above, for the monotone coupling,
        which need not be the best.

    Raises
    ------
    TypeError, ValueError
        As `continuous_wasserstein`, and if `delta` is out of range.

    Notes
    -----
    The intervals of levels with the largest bounds are left out, as long as their
    lengths add up to at most `delta`; among them both tails, where a support is
    unbounded.

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
            raise TypeError(
                Statement("transport.not_frozen_continuous", name=name, frozen=frozen)
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
    """Whether shapes, location and scale alone identify a distribution in its family.

    A histogram or a class of somebody's own may hold more, its shapes being equal.
    """
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
