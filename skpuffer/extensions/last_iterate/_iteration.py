"""Privacy amplification by iteration: the Rényi cost of the last iterate alone.

Nothing of this holds for an attacker who sees the iterates on the way.
"""

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from skpuffer.exceptions import PrivacyWarning, Statement, value_error
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_non_negative,
    check_option,
    check_order,
    check_positive,
    check_real,
)
from skpuffer.utils._checks import check_covariance

#: Steps whose shift contracts by more than this until the last are given nothing to
#: cover. Its square is a weight, and must not underflow.
_FADED = 1e-125
#: Number of restarts tried at a time; between the best one's neighbours once more.
_RESTARTS = 256

#: Rényi divergence at an order, for shifts and scales of each step.
_Price = Callable[[float, Floats, Floats], float]


def allocate_shifts(
    shifts: ArrayLike, scales: ArrayLike = 1.0, *, contraction: ArrayLike = 1.0
) -> Floats:
    """Allocate the shifts of an iteration to the noise of its steps.

    The shift not covered at a step is carried to the next, shrunk by `contraction`:
    ``z[t] = contraction * z[t-1] + shifts[t] - a[t]``, which must never be negative and
    must be zero at the end. Among all such ``a`` the one returned has the smallest
    ``sum(a**2 / scales**2)``, the cost of Gaussian noise.

    Parameters
    ----------
    shifts : array-like of shape (n_steps,)
        Sensitivity of each step: the largest move of the iterate when the secret
        changes, in the unit of the iterate; non-negative and finite.
    scales : float or array-like of shape (n_steps,), default=1.0
        Scale of each step's noise, in the same unit; positive.
    contraction : float or array-like of shape (n_steps,), default=1.0
        Lipschitz constant of every step in the iterate, or of each one; in [0, 1].

    Returns
    -------
    ndarray of shape (n_steps,)
        The part of the shift that each step's noise covers; non-negative.

    Notes
    -----
    This is an isotonic regression of shifts over variances, both seen from the last
    step, with the variances as weights. With equal scales and no contraction the result
    is the best for every cost that is convex in the shift. A shift that shrinks to zero
    in floating-point numbers is carried forward, so the constraints hold all the same.

    References
    ----------
    Feldman, Mironov, Talwar and Thakurta (2018), Privacy amplification by iteration,
    Theorem 22; Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 5.2.

    Examples
    --------
    >>> from skpuffer.privacy import allocate_shifts
    >>> allocate_shifts([0, 0, 3, 0, 0, 0]).round(6).tolist()
    [0.0, 0.0, 0.75, 0.75, 0.75, 0.75]
    """
    given, noise = _check_steps(shifts, scales)
    return _allocated(given, noise, _check_contraction(contraction, given))


def iteration_cost(
    shifts: ArrayLike,
    scales: ArrayLike,
    alpha: float,
    *,
    coupling: str,
    contraction: ArrayLike = 1.0,
    diameter: float | None = None,
    noise_cost: Callable[[float, float, float], float] | None = None,
) -> float:
    """Bound the Rényi divergence of the last iterate between neighbouring tables.

    For iterations ``w[t] = psi[t](w[t-1], data) + noise[t]`` that start from the same
    point, whose steps are Lipschitz in the iterate with a constant of at most one, and
    whose noise is drawn afresh at each step. Only the last iterate may leave. For
    training runs use :class:`~skpuffer.accountants.IterationAmplification`.

    Parameters
    ----------
    shifts : array-like of shape (n_steps,)
        Sensitivity of each step: the largest distance between ``psi[t](w, data)`` of
        the two tables, over all iterates w, in the norm of the noise (l2 if Gaussian).
    scales : float or array-like of shape (n_steps,)
        Scale of each step's noise as it is added to the iterate, per coordinate.
    alpha : float
        Order, greater than 1.
    coupling : {"joint", "independent"}
        Whether the shifts hold at once under one coupling of the tables ("joint"), or
        each is a W∞ distance of its step alone. "independent" is sound **only if** the
        data of each step is independent of that of all other steps given the secret.
    contraction : float or array-like of shape (n_steps,), default=1.0
        Lipschitz constant of every step in the iterate, or of each one; in [0, 1]. A
        gradient step h with curvature between m and b has
        ``max(abs(1 - h * m), abs(1 - h * b))``.
    diameter : float or None, default=None
        Diameter of a convex set onto which every noisy iterate is projected. None for
        no projection.
    noise_cost : callable or None, default=None
        ``noise_cost(alpha, shift, scale)``, the largest Rényi divergence between the
        noise and itself moved by at most `shift`; non-decreasing in `shift`. None for
        Gaussian noise.

    Returns
    -------
    float
        In nats, rounded up. For one pair of secrets: the promise is the largest over
        all of them, and over which record is secret.

    Warns
    -----
    PrivacyWarning
        With ``coupling="independent"``.

    Notes
    -----
    Under a joint coupling the divergence is at most that of the worst pair of fixed
    data (joint quasi-convexity). If steps are independent given the secret, the product
    of their couplings is a joint one.

    With a `diameter`, all that came before a step may be replaced by a shift of the
    diameter there. The best restart is found for the same shifts and Gaussian noise at
    each step; otherwise restarts are tried at up to 256 steps and at many beyond. Other
    noise is paid for at the shifts that are best for Gaussian noise, which is sound.

    References
    ----------
    Feldman et al. (2018), Privacy amplification by iteration; Pierquin et al. (2024),
    Rényi Pufferfish privacy, Theorem 5.2 (for independent steps) and Proposition 6.4;
    Altschuler and Talwar (2022), Privacy of noisy stochastic gradient descent.

    Examples
    --------
    >>> from skpuffer.privacy import iteration_cost
    >>> first, always = [1.0] + [0.0] * 99, [0.5] * 100
    >>> round(iteration_cost(first, 0.5, alpha=2, coupling="joint"), 6)
    0.04
    >>> round(iteration_cost(always, 1.0, alpha=2, coupling="joint", diameter=2), 6)
    4.0
    """
    given, noise = _check_steps(shifts, scales)
    alpha = check_order(alpha=alpha)
    factors = _check_contraction(contraction, given)
    check_option(("joint", "independent"), coupling=coupling)
    if diameter is not None:
        diameter = check_positive(diameter=diameter)
    if coupling == "independent":
        warnings.warn(
            PrivacyWarning(Statement("iteration.independent_coupling_of_steps")),
            stacklevel=2,
        )
    if noise_cost is None:
        squares = _least_squares(given, noise, factors, diameter)
        # what costs nothing does so at any order, infinity too
        return alpha / 2 * squares if squares else 0.0
    price = _by_step(noise_cost)

    def cost(shifts: Floats, scales: Floats, contraction: Floats) -> float:
        return price(alpha, _rounded_up(shifts, scales, contraction), scales)

    best = cost(given, noise, factors)
    if diameter is None:
        return best
    restarted = _restarts(cost, given, noise, factors, diameter)
    return min(best, _least(restarted, given.size))


def last_iterate_mu(
    shifts: ArrayLike,
    scales: ArrayLike,
    *,
    contraction: ArrayLike = 1.0,
    diameter: float | None = None,
) -> float:
    """Return the distance of two unit Gaussians no harder to tell apart than last
    iterates.

    For iterations as for :func:`iteration_cost`, with Gaussian noise and shifts under a
    joint coupling: the last iterate is mu-Gaussian private, rounded up, which implies
    the Rényi costs ``alpha * mu**2 / 2``.

    Notes
    -----
    *For two fixed tables.* Let ``w`` and ``w'`` be their iterations, and put between
    them one that shares its noise with w: it starts as w', and its next iterate is the
    projection of ``b psi(w) + (1 - b) psi'(v) + noise`` at its own iterate v. With b
    the share a / (c z + s) of the distance there that is paid for, it stays within z of
    w, so that it ends as w where z ends at zero. Given v, it differs from a step of w'
    from v by at most a before the noise: by adaptive composition the trade-off of v and
    w' is at least that with one more Gaussian of distance a / scale. The squares add
    up. A restart begins the iteration between as w' at a later step, where it is within
    the diameter of w. One of the two tables' steps has to be Lipschitz.

    *For coupled tables* and batches drawn without a look at them the last iterates are
    mixtures of those of fixed ones with equal weights. Divergences are jointly convex.

    Bok, Su and Altschuler (2024), Shifted interpolation for differential privacy; Dong,
    Roth and Su (2022), Gaussian differential privacy, for the composition.
    """
    given, noise = _check_steps(shifts, scales)
    factors = _check_contraction(contraction, given)
    if diameter is not None:
        diameter = check_positive(diameter=diameter)
    squares = _least_squares(given, noise, factors, diameter)
    return math.sqrt(squares) * (1 + 2 * np.finfo(float).eps)


def gaussian_prior_shifts(
    covariance: ArrayLike,
    gap: float,
    *,
    step_size: float = 1.0,
    smoothness: float = 1.0,
    lipschitz: float = math.inf,
) -> Floats:
    """Return shifts of gradient steps, one record each, for jointly Gaussian records.

    If the value of one record changes, all others move with it by a known amount and
    vary as before, so the shifts are those of a joint coupling.

    Parameters
    ----------
    covariance : array-like of shape (n_steps, n_steps)
        Covariance of the records, one number each, in the order of the steps.
    gap : float
        Largest distance between two values of the record that is secret.
    step_size : float, default=1.0
        Factor of the gradient in a step.
    smoothness : float, default=1.0
        Lipschitz constant of the gradient in the record, at every such iterate.
    lipschitz : float, default=inf
        Largest norm of a gradient at such an iterate, for any value of the record.

    Returns
    -------
    ndarray of shape (n_steps, n_steps)
        In row i, those if record i is secret; for `iteration_cost` with
        ``coupling="joint"``.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition 6.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.privacy import gaussian_prior_shifts
    >>> t = np.arange(10)
    >>> covariance = 0.5 ** abs(t[:, None] - t)
    >>> shifts = gaussian_prior_shifts(covariance, gap=2.0, step_size=0.1)
    >>> shifts[1, :4].round(6).tolist()
    [0.1, 0.2, 0.1, 0.05]
    """
    known = _check_covariance(covariance)
    gap = check_non_negative(gap=gap)
    step_size = check_positive(step_size=step_size)
    smoothness = check_positive(smoothness=smoothness)
    lipschitz = check_positive(lipschitz=lipschitz, finite=False)
    if math.isinf(gap) and math.isinf(lipschitz):
        raise value_error("iteration.gap_infinite")
    # Regression on the secret record i: given its value the others have means linear in
    # it, of slope cov(x[i], x[j]) / var(x[i]), and a covariance that does not depend on
    # it. So moving them by slope times gap couples the two conditional distributions.
    slopes = np.abs(known) / np.diag(known)[:, None]
    moves = np.zeros_like(slopes)
    # an infinite gap does not move what is uncorrelated
    np.multiply(slopes, smoothness * gap, where=slopes > 0, out=moves)
    # A gradient moves by the smoothness times the record's move, and by no more than
    # from one end of the ball of gradients to the other.
    return step_size * np.minimum(2 * lipschitz, moves)


# -- the allocation ------------------------------------------------------------------


def _fading(contraction: Floats) -> Floats:
    """Factors by which what is left at each step contracts until the last."""
    n, c = contraction.size, float(contraction[0])
    if (contraction == c).all():
        # one power is off by an ulp, a long product by many; those that are lost in any
        # case are not computed, as numbers near the smallest one are slow
        seen = n if c in (0, 1) else min(n, int(2 * math.log(_FADED) / math.log(c)) + 1)
        fade = np.zeros(n)
        fade[n - seen :] = c ** np.arange(seen - 1.0, -1.0, -1.0)
        return fade
    fade = np.ones(n)
    np.cumprod(contraction[:0:-1], out=fade[-2::-1])
    return fade


def _allocated(shifts: Floats, scales: Floats, contraction: Floats) -> Floats:
    """Solve the isotonic regression; see :func:`allocate_shifts`."""
    # Seen from the last step, with S = fade * shifts and A = fade * a, what is carried
    # forward at t is the sum of S up to t less that of A: never negative, and zero at
    # the end. With weights w = (scales * fade)² the cost is the sum of A²/w, or of w x²
    # for A = w x. The x with the least such sum is the isotonic regression of S/w with
    # weights w: the partial sums of w x are the greatest convex minorant of those of S,
    # so never above them, and equal at the end.
    top = shifts.max()
    if top == 0:
        return np.zeros_like(shifts)
    shifts, scales = shifts / top, scales / scales.max()
    fade = _fading(contraction)
    start = int(np.argmax(fade > _FADED))
    left = shifts[start:].copy()
    if start:
        # steps before `start` leave their whole shift to it
        powers = _fading(contraction[: start + 1])[:-1]
        # a floor, so that no positive shift is rounded to zero, unless it is forgotten
        forgets = np.flatnonzero(contraction[1 : start + 1] == 0)
        since = int(forgets[-1]) + 1 if forgets.size else 0
        powers[since:] = np.maximum(powers[since:], _FADED)
        left[0] += powers @ shifts[:start]
    fade = fade[start:]
    # any positive weights respect the constraints; the floor is against underflow
    weights = np.maximum((scales[start:] * fade) ** 2, _FADED**2)
    level = isotonic_regression(left * fade / weights, weights=weights).x
    spent = np.zeros_like(shifts)
    spent[start:] = np.maximum(level, 0.0) * weights / fade
    return top * spent


def _rounded_up(shifts: Floats, scales: Floats, contraction: Floats) -> Floats:
    """Return what each step pays for, rounded up."""
    spent = _allocated(shifts, scales, contraction)
    # sums, products and means of non-negative numbers are off by an ulp a step at most
    return spent * (1 + 8 * (spent.size + 8) * np.finfo(float).eps)


def _restarts(
    cost: Callable[[Floats, Floats, Floats], float],
    shifts: Floats,
    scales: Floats,
    contraction: Floats,
    diameter: float,
) -> Callable[[int], float]:
    """Return the cost of a run as a function of how many last steps are looked at."""

    def restarted(n_last: int) -> float:
        # Altschuler and Talwar (2022): two iterates of a set are at most its diameter
        # apart, whatever came before, and a step contracts that
        rest = shifts[-n_last:].copy()
        rest[0] += contraction[-n_last] * diameter
        return cost(rest, scales[-n_last:], contraction[-n_last:])

    return restarted


def _least(
    cost: Callable[[int], float],
    n_steps: int,
    floors: Floats | None = None,
    best: float = math.inf,
) -> float:
    """Return the smallest cost over the numbers of last steps that are tried.

    Those whose lower bound in `floors` is above the best known are not.
    """

    def tried(counts: Indices) -> list[tuple[float, int]]:
        worth = counts if floors is None else counts[floors[counts - 1] < best]
        return [(cost(int(n)), int(n)) for n in worth]

    # all if they are few; else a geometric grid, and evenly between the neighbours of
    # the best
    few = min(n_steps, _RESTARTS)
    grid = np.unique(np.geomspace(1, n_steps, few).astype(int))
    if n_steps <= _RESTARTS:
        grid = np.arange(1, n_steps + 1)
    costs = tried(grid)
    if not costs:
        return best
    least, at = min(costs)
    place = int(np.searchsorted(grid, at))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, grid.size - 1)]
    best = min(best, least)
    finer = np.unique(np.linspace(low, high, few).astype(int))
    finer = np.setdiff1d(finer, grid)
    return min([best, *(found for found, _ in tried(finer))])


# -- what a shift costs --------------------------------------------------------------


def _squares(shifts: Floats, scales: Floats, contraction: Floats) -> float:
    """Least sum of squared ratios of what is paid for to the noise."""
    spent = _rounded_up(shifts, scales, contraction)
    if not spent.any():
        return 0.0
    with np.errstate(over="ignore"):
        ratios = spent / scales
        squares = float(ratios @ ratios)
    # a sum of squares that underflows is not zero
    return max(squares, np.finfo(float).tiny)


def _least_squares(
    shifts: Floats, scales: Floats, contraction: Floats, diameter: float | None
) -> float:
    """Return the least of the sums over the whole run and over its restarts."""
    if diameter is None:
        return _squares(shifts, scales, contraction)
    n_steps = shifts.size
    # Cauchy-Schwarz: to cover a sum of S in all costs its square over the sum of the
    # weights, at least, and no more where every step can pay its share.
    fade = _fading(contraction)
    known = fade > _FADED
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mass = np.cumsum((fade * shifts)[::-1])
        weight = np.cumsum(((fade * scales) ** 2)[::-1])
        edge = (fade * contraction)[::-1] * diameter
        floors = (mass + edge) ** 2 / weight
        whole = mass[-1] ** 2 / weight[-1]
    # what was before a step that has faded makes no difference: no restart is tried
    # there, and one where a floor is not known is
    floors = np.where(np.isnan(floors), 0.0, floors) * (1 - 1e-9)
    floors[~known[::-1]] = math.inf
    restarted = _restarts(_squares, shifts, scales, contraction, diameter)
    likely = int(np.argmin(floors))
    both = [(whole * (1 - 1e-9), 0), (float(floors[likely]), likely + 1)]
    best = math.inf
    # the likelier one first, which may save the other
    for floor, n_last in sorted(both):
        if not floor >= best:
            found = (
                restarted(n_last) if n_last else _squares(shifts, scales, contraction)
            )
            best = min(best, found)
    # nothing is left to find, up to rounding, if no floor is below
    if best * (1 - 1e-7) <= floors.min():
        return best
    return _least(restarted, n_steps, floors, best)


def _by_step(noise_cost: Callable[[float, float, float], float]) -> _Price:
    """Return the sum of a noise's Rényi costs, asked once for equal steps."""

    def price(alpha: float, shifts: Floats, scales: Floats) -> float:
        # a step without a shift costs nothing
        steps = np.column_stack([shifts, scales])[shifts > 0]
        pairs, counts = np.unique(steps, axis=0, return_counts=True)
        costs = [
            check_non_negative(noise_cost=float(noise_cost(alpha, *pair)))
            for pair in pairs.tolist()
        ]
        return (
            math.fsum(counts * np.array(costs)) * (1 + 4 * np.finfo(float).eps)
            if costs
            else 0.0
        )

    return price


# -- checks --------------------------------------------------------------------------


def _check_steps(shifts: ArrayLike, scales: ArrayLike) -> tuple[Floats, Floats]:
    shifts, scales = np.asarray(shifts, dtype=float), np.asarray(scales, dtype=float)
    if shifts.ndim != 1 or not shifts.size:
        raise value_error("iteration.shifts_shape_wrong", shape=shifts.shape)
    if not np.all((shifts >= 0) & (shifts < math.inf)):
        raise value_error("iteration.shifts_negative_or_infinite", shifts=shifts)
    if scales.shape not in ((), shifts.shape):
        raise value_error(
            "iteration.scales_shape_wrong", shape=shifts.shape, shape2=scales.shape
        )
    if not np.all((scales > 0) & (scales < math.inf)):
        raise value_error("iteration.scales_not_positive", scales=scales)
    return shifts, np.broadcast_to(scales, shifts.shape)


def _check_contraction(contraction: ArrayLike, shifts: Floats) -> Floats:
    """Return the Lipschitz constant of each step."""
    if np.ndim(contraction) == 0:
        check_real(contraction=contraction)
    factors = np.asarray(contraction, dtype=float)
    if factors.shape not in ((), shifts.shape):
        raise value_error(
            "iteration.contraction_shape_wrong",
            shape=shifts.shape,
            shape2=factors.shape,
        )
    if not np.all((factors >= 0) & (factors <= 1)):
        raise value_error("iteration.contraction_out_of_range", contraction=contraction)
    return np.broadcast_to(factors, shifts.shape)


def _check_covariance(covariance: ArrayLike) -> Floats:
    checked: Floats = check_covariance(least=-1e-9, covariance=covariance)
    spreads = np.sqrt(np.maximum(np.diag(checked), 0))
    if not np.all(spreads > 0):
        raise value_error("iteration.variance_not_positive")
    # once more as correlations: the unit of one record must not hide that of another
    correlations = checked / spreads / spreads[:, None]
    check_covariance(least=-1e-9, covariance=correlations)
    return checked
