"""Divergences between two known distributions."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import mirrored
from skpuffer.kernel.noise import raise_until
from skpuffer.kernel.numbers import Floats, Numbers, check_real
from skpuffer.utils._checks import check_masses


def _pmf_pair(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.asarray(p), np.asarray(q)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise value_error(
            "curve.masses_shape_mismatch",
            first_shape=first.shape,
            second_shape=second.shape,
        )
    return check_masses(first.size, p=first), check_masses(second.size, q=second)


def renyi_divergence(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """Return the Rényi divergence D_alpha(p || q) of two distributions on a finite set.

    Parameters
    ----------
    p, q : array-like of shape (n_points,)
        Masses. Integers are taken as counts.
    alpha : float
        Order, at least 1. At 1 it is the Kullback-Leibler divergence, at infinity the
        logarithm of the largest ratio.

    Returns
    -------
    divergence : float
        In nats; infinite if `p` has mass where `q` has none.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Definition A.1.

    Examples
    --------
    >>> from skpuffer.privacy_loss import renyi_divergence
    >>> round(renyi_divergence([0.5, 0.5], [0.25, 0.75], alpha=2), 6)
    0.287682
    """
    p, q = _pmf_pair(p, q)
    alpha = check_real(alpha=alpha)
    if alpha < 1:
        raise value_error("curve.order_below_one", alpha=alpha)
    # points without mass under p add nothing, at no order
    on = p > 0
    p, q = p[on], q[on]
    if np.any(q == 0):
        return math.inf
    log_p, log_q = np.log(p), np.log(q)
    if alpha == 1:
        value = np.sum(p * (log_p - log_q))
    elif math.isinf(alpha):
        value = np.max(log_p - log_q)
    else:
        # log of sum p^alpha q^(1 - alpha), whose terms may under- or overflow
        value = logsumexp(alpha * log_p + (1 - alpha) * log_q) / (alpha - 1)
    # a divergence is not negative, its rounding may be
    return max(0.0, float(value))


def gaussian_renyi_divergence(
    mean_p: ArrayLike,
    covariance_p: ArrayLike,
    mean_q: ArrayLike,
    covariance_q: ArrayLike,
    alpha: float,
) -> float:
    """Return the Rényi divergence of two Gaussian distributions.

    `covariance_p`, `covariance_q` (n_dims, n_dims): positive definite. `alpha`: order,
    greater than 1 and finite.

    Gil, Alajaji and Linder (2013), Rényi divergence measures.

    Returns
    -------
    divergence : float
        In nats; infinite unless ``alpha * covariance_q + (1 - alpha) * covariance_p``
        is positive definite.
    """
    alpha = check_real(alpha=alpha)
    if alpha <= 1 or math.isinf(alpha):
        raise value_error("curve.gaussian_order_out_of_range", alpha=alpha)
    mean_p, mean_q = (np.atleast_1d(np.asarray(m, float)) for m in (mean_p, mean_q))
    cov_p, cov_q = (
        np.atleast_2d(np.asarray(c, float)) for c in (covariance_p, covariance_q)
    )
    # p^alpha q^(1 - alpha) can be integrated only if this matrix is positive definite,
    # which the Cholesky factorisation tells
    mixed = alpha * cov_q + (1 - alpha) * cov_p
    try:
        factor = np.linalg.cholesky(mixed)
        log_dets = [
            2 * np.sum(np.log(np.diag(np.linalg.cholesky(c)))) for c in (cov_p, cov_q)
        ]
    except np.linalg.LinAlgError:
        return math.inf
    # with the mixed covariance M: alpha/2 |M^(-1/2) (mean_p - mean_q)|² less
    # log(|M| / (|cov_p|^(1 - alpha) |cov_q|^alpha)) / (2 (alpha - 1))
    z = np.linalg.solve(factor, mean_p - mean_q)
    log_det = 2 * np.sum(np.log(np.diag(factor)))
    spread = log_det - (1 - alpha) * log_dets[0] - alpha * log_dets[1]
    return float(alpha / 2 * (z @ z) - spread / (2 * (alpha - 1)))


def hockey_stick_divergence(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """Return the largest ``P(S) - exp(epsilon) * Q(S)`` over subsets S of a finite set.

    Parameters
    ----------
    p, q : array-like of shape (n_points,)
        Masses. Integers are taken as counts.
    epsilon : float
        In nats.

    Returns
    -------
    delta : float
        In [0, 1]: the smallest delta of an (epsilon, delta) promise in this direction.

    Examples
    --------
    >>> from skpuffer.privacy_loss import hockey_stick_divergence
    >>> hockey_stick_divergence([0.5, 0.5], [0.25, 0.75], epsilon=0.0)
    0.25
    """
    p, q = _pmf_pair(p, q)
    epsilon = check_real(epsilon=epsilon)
    # The best S holds the points where p > exp(epsilon) q: delta is the sum of the
    # positive parts of p - exp(epsilon) q. First those that q cannot produce.
    alone = p[(p > 0) & (q == 0)].sum()
    shared = (p > 0) & (q > 0)
    p, q = p[shared], q[shared]
    # in logarithms: exp(epsilon) may overflow where its product with q does not
    log_ratio = np.minimum(epsilon + np.log(q) - np.log(p), 0.0)
    return float(alone + np.sum(p * -np.expm1(log_ratio)))


# -- envelope of a trade-off: the convex hull of upper bounds on it at points ----------


@dataclass(frozen=True, eq=False)
class Hull:
    """A hockey-stick divergence that is piecewise linear and convex in exp(epsilon).

    Corners have increasing epsilons >= 0 and decreasing log_deltas (n,). Beyond the
    last the last value holds; before the first the line that is its own image under
    symmetry.
    """

    epsilons: Floats
    log_deltas: Floats

    def delta(self, epsilon: Numbers) -> Floats:
        """Return the divergence at exp(epsilon), for an epsilon of any sign."""
        epsilon = np.asarray(epsilon, float)
        return mirrored(epsilon, self._above(np.abs(epsilon)))

    @cached_property
    def _heights(self) -> Floats:
        return np.exp(self.log_deltas)

    @cached_property
    def _log_slope(self) -> float:
        """Return the log of minus the slope of the line before the first corner.

        As a function of exp(epsilon): it goes through the point (-1, 1), see `hull`.
        """
        # slope (1 + exp(e)) = 1 - delta at the first corner (e, delta)
        fall = -math.expm1(self.log_deltas[0])
        grown = float(np.logaddexp(0.0, self.epsilons[0]))
        return math.log(fall) - grown if fall > 0 else -math.inf

    def _above(self, epsilon: Floats) -> Floats:
        corners, heights = self.epsilons, self._heights
        # level beyond the last corner
        at = np.minimum(epsilon, corners[-1])
        i = np.searchsorted(corners, at, side="right") - 1
        i = np.clip(i, 0, len(corners) - 2)
        # (exp(e) - exp(c)) / (exp(d) - exp(c)) between corners c <= e <= d, by
        # differences of logarithms: neither overflow nor cancellation
        after, before = np.maximum(at - corners[i], 0.0), at - corners[i + 1]
        part = np.exp(before) * np.expm1(-after) / np.expm1(corners[i] - corners[i + 1])
        # the ends themselves, not a rounding error beside them
        value = heights[i] * (1 - part) + heights[i + 1] * part
        # before the first corner, 1 - slope (1 + exp(e))
        start = np.logaddexp(0.0, np.minimum(at, corners[0]))
        value = np.where(at < corners[0], -np.expm1(self._log_slope + start), value)
        return np.where(np.isinf(epsilon), 0.0, value)

    def log_delta(self, epsilon: Numbers) -> Floats:
        """Return the logarithm of the divergence, for an epsilon >= 0."""
        with np.errstate(divide="ignore"):
            return np.log(self._above(np.asarray(epsilon, float)))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with the divergence at most delta > 0.

        Rounded up.
        """
        if float(self.delta(0.0)) <= delta:
            return 0.0
        above = np.flatnonzero(self._heights > delta)
        if not len(above):
            grown = math.log1p(-delta) - self._log_slope
            # (exp(root) + 1) slope = 1 - delta
            root = grown + math.log1p(-math.exp(-grown))
        elif above[-1] + 1 == len(self._heights):
            return math.inf
        else:
            left, right = self._heights[above[-1] :][:2]
            at, end = self.epsilons[above[-1] :][:2]
            # exp(root) = (1 - part) exp(at) + part exp(end)
            part = (left - delta) / (left - right)
            if end - at < 1:
                root = at + math.log1p(part * math.expm1(end - at))
            else:
                root = at + math.log((1 - part) * math.exp(at - end) + part) + end - at
        # raised until the divergence itself, as it rounds, is small enough
        return raise_until(lambda e: float(self.delta(e)) <= delta, float(root))


def hull(epsilons: Floats, log_deltas: Floats) -> Hull:
    """Return the largest `Hull` below some upper bounds on a symmetric trade-off.

    A trade-off is convex in exp(epsilon), so it is below every chord of its upper
    bounds, and below their lower convex hull. That of symmetric noise obeys delta(-e) =
    1 - exp(-e) (1 - delta(e)), which maps only lines through the point (exp(epsilon),
    delta) = (-1, 1) to themselves. So the hull of all points and their images is that
    of the points at epsilon >= 0 and this one.
    """
    # a trade-off is at most one and decreases: bounds hold at all larger epsilons
    log_deltas = np.minimum.accumulate(np.minimum(log_deltas, 0.0))
    # Logarithms of the slopes downwards; those of a convex function decrease. First
    # those from (-1, 1): (1 - delta) / (1 + exp(epsilon)).
    with np.errstate(divide="ignore"):
        first = np.log(-np.expm1(log_deltas)) - np.logaddexp(0.0, epsilons)
    e, d, start = epsilons.tolist(), log_deltas.tolist(), first.tolist()

    def slope(i: int, j: int) -> float:
        """Log of minus the slope between two points, in exp(epsilon)."""
        if d[i] == d[j]:
            return -math.inf
        # exp(d_i) (1 - exp(d_j - d_i)) / (exp(e_i) (exp(e_j - e_i) - 1))
        width, fall = e[j] - e[i], d[j] - d[i]
        grown = math.log(math.expm1(width)) if width < 700 else width
        return float(d[i] + math.log(-math.expm1(fall)) - e[i] - grown)

    kept: list[int] = []
    slopes: list[float] = []
    # Andrew's monotone chain: a point above the chord of its neighbours goes
    for j in range(len(e)):
        while kept:
            new = slope(kept[-1], j)
            if new < slopes[-1]:
                break
            kept.pop()
            slopes.pop()
        slopes.append(new if kept else start[j])
        kept.append(j)
    # a second corner after the last, of the same height: level from there on
    return Hull(
        np.append(epsilons[kept], epsilons[-1] + 1.0),
        np.append(log_deltas[kept], log_deltas[-1]),
    )
