"""(z, delta)-near radii of Gaussian distributions, in closed form or bounded."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_at_least_one,
    check_option,
    check_real,
    lengths_of,
)
from skpuffer.utils._checks import check_covariance, check_share

# Two covariances are one when their entries agree to this fraction of the standard
# deviations involved: room for the round-off of conditioning, and for nothing else,
# because unequal covariances mean an infinite distance.
_SAME = 1e-12


def gaussian_wasserstein(
    mean_u: ArrayLike,
    cov_u: ArrayLike,
    mean_v: ArrayLike,
    cov_v: ArrayLike,
    p: float = np.inf,
    *,
    ord: float = 2,
) -> float:
    r"""Return the Wasserstein distance between two Gaussian distributions.

    .. math:: W_\infty &= \|m_u - m_v\| \text{ if } \Sigma_u = \Sigma_v,
              \ \infty \text{ otherwise} \\
              W_2^2 &= \|m_u - m_v\|_2^2 + \mathrm{tr}\big(\Sigma_u + \Sigma_v
              - 2 (\Sigma_u^{1/2} \Sigma_v \Sigma_u^{1/2})^{1/2}\big)

    Parameters
    ----------
    mean_u, mean_v : float or array-like of shape (d,)
        Means.
    cov_u, cov_v : float or array-like of shape (d, d)
        Variances (not standard deviations) or positive semi-definite covariances.
    p : {2, numpy.inf}, default=numpy.inf
        Order.
    ord : float, default=2
        Norm of the difference of the means for ``p=inf``, in [1, inf].

    Returns
    -------
    distance : float
        In the unit of the means. Infinite for ``p=inf`` when the covariances differ.

    Notes
    -----
    Covariances count as equal when ``|cov_u - cov_v|`` is at most 1e-12 times the
    product of the standard deviations of the two coordinates, entry by entry.

    References
    ----------
    Dowson and Landau (1982), The Fréchet distance between multivariate normal
    distributions. Pierquin et al. (2024), Rényi Pufferfish Privacy, Proposition 6.2.

    Examples
    --------
    >>> from skpuffer.transport import gaussian_wasserstein
    >>> gaussian_wasserstein([0, 0], [[2, 1], [1, 2]], [3, 4], [[2, 1], [1, 2]])
    5.0
    >>> gaussian_wasserstein(0.0, 1.0, 0.0, 4.0, p=2)
    1.0
    """
    order, norm = check_real(p=p), check_at_least_one(ord=ord)
    if order not in (2.0, math.inf):
        raise value_error("transport.gaussian_order_unsupported", p=p)
    if order == 2 and norm != 2:
        raise value_error("transport.gaussian_norm_not_two", order=ord)
    mean_u, cov_u = _mean_and_covariance("u", mean_u, cov_u)
    mean_v, cov_v = _mean_and_covariance("v", mean_v, cov_v)
    if mean_u.shape != mean_v.shape:
        raise value_error(
            "transport.gaussian_mean_lengths_differ",
            n_mean_u=len(mean_u),
            n_mean_v=len(mean_v),
        )
    shift = float(lengths_of(mean_u - mean_v, norm))
    if order == 2:
        # W_2² is the squared distance of the means plus the squared Bures distance
        return math.hypot(shift, _bures(cov_u, cov_v))
    # Whether the covariances are one, entry by entry in units of the standard
    # deviations. Unequal variances along a direction make the quantile gap grow without
    # bound, and W_inf infinite.
    deviations = np.sqrt(np.maximum(np.diag(cov_u), np.diag(cov_v)))
    same = np.abs(cov_u - cov_v) <= _SAME * np.outer(deviations, deviations)
    return shift if same.all() else math.inf


def _mean_and_covariance(
    side: str, mean: ArrayLike, cov: ArrayLike
) -> tuple[Floats, Floats]:
    mean = np.atleast_1d(np.asarray(mean, dtype=float))
    cov = np.asarray(cov, dtype=float)
    cov = cov.reshape(1, 1) if cov.ndim == 0 else cov
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise value_error(
            "transport.gaussian_mean_invalid", side=side, shape=mean.shape
        )
    if cov.shape != (len(mean), len(mean)):
        raise value_error(
            "transport.gaussian_covariance_shape_differs",
            side=side,
            n_mean=len(mean),
            shape=cov.shape,
        )
    return mean, check_covariance(**{f"cov_{side}": cov})  # type: ignore[arg-type] # not `least`


def _bures(cov_u: Floats, cov_v: Floats) -> float:
    """Return the Bures distance of two covariances.

    The Frobenius distance of their square roots after the best rotation, which does not
    cancel near zero.
    """
    root_u, root_v = _square_root(cov_u), _square_root(cov_v)
    rotation, _ = orthogonal_procrustes(root_v, root_u)
    return float(np.linalg.norm(root_v @ rotation - root_u))


def _square_root(cov: Floats) -> Floats:
    """Return R of shape (d, d) with ``R @ R.T == cov``."""
    values, vectors = np.linalg.eigh(cov)
    # round-off may leave eigenvalues of a singular matrix slightly below zero
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


# Relative margin by which radii are rounded up: roots are found to 1e-14, normal tails
# evaluated to some 1e-15.
_MARGIN = 1e-12
# Radii are solved for a mass smaller by this share than the one asked for: differences
# of tails have fewer digits than the tails.
_SHARE = 1e-9


def gaussian_near_radius(
    mean_u: ArrayLike,
    cov_u: ArrayLike,
    mean_v: ArrayLike,
    cov_v: ArrayLike,
    delta: float,
    *,
    ord: float = 2,
    coupling: str = "optimal",
) -> float:
    r"""Return the near radius of two Gaussian distributions.

    It is W_inf except for a mass delta.

    Parameters
    ----------
    mean_u, mean_v : float or array-like of shape (d,)
        Means.
    cov_u, cov_v : float or array-like of shape (d, d)
        Variances (not standard deviations) or positive semi-definite covariances.
    delta : float
        Mass that may travel any distance, in [0, 1). At zero this is W_inf.
    ord : float, default=2
        Norm of the displacement, in [1, inf].
    coupling : {"optimal", "monotone"}, default="optimal"
        "monotone" is the coupling of W_2, which keeps quantiles together on the line;
        its radius is larger.

    Returns
    -------
    radius : float
        In the unit of the means, rounded up. By optimal coupling the smallest there is
        on the line, and an upper bound of it in more dimensions.

    Notes
    -----
    Monotone coupling on the line moves mass by ``m + d Z`` for a standard normal Z,
    with m the distance of the means and d that of the standard deviations. The radius
    is the smallest z with :math:`\Phi(-(z - m) / d) + \Phi(-(z + m) / d) \le \delta`.

    By Strassen's theorem, the least mass that a coupling moves beyond z is the largest
    excess of a set's mass over that of its z-neighbourhood under the other law. The
    worst set consists of the two tails of the wider distribution. They end where its
    density moved inwards by z meets that of the narrower. For equal standard deviations
    s the radius is :math:`m - 2 s \Phi^{-1}((1 + \delta) / 2)`.

    In more dimensions, distributions of one covariance are moved along the line of
    their means. For unequal covariances the coupling is that of W_2, whose displacement
    is Gaussian with mean m and covariance S. The radius is the smaller of two bounds on
    its Euclidean norm. One is ``||m||`` plus a chi quantile times the root of the
    largest eigenvalue of S. The other uses the exponential moment of the squared norm.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish Privacy, Definition 4.2. Strassen (1965),
    The existence of probability measures with given marginals.

    Examples
    --------
    >>> from skpuffer.transport import gaussian_near_radius
    >>> gaussian_near_radius(0.0, 1.0, 1.0, 1.3**2, 1e-3, coupling="monotone")
    1.92706...
    >>> gaussian_near_radius(0.0, 1.0, 1.0, 1.3**2, 1e-3)
    1.7...
    """
    delta = check_share(delta=delta)
    check_option(("optimal", "monotone"), coupling=coupling)
    shift = gaussian_wasserstein(mean_u, cov_u, mean_v, cov_v, ord=ord)
    if delta == 0:
        return shift
    mean_u, cov_u = _mean_and_covariance("u", mean_u, cov_u)
    mean_v, cov_v = _mean_and_covariance("v", mean_v, cov_v)
    mean, best = mean_u - mean_v, coupling == "optimal"
    if math.isfinite(shift):  # of one covariance
        radius = _moved_together(mean, cov_u, delta, shift) if best else shift
    elif len(mean) == 1:
        narrow, wide = sorted(math.sqrt(max(c.item(), 0.0)) for c in (cov_u, cov_v))
        radius = _on_the_line(abs(mean.item()), narrow, wide, delta, best)
    else:
        # ||x||_p <= d^(1/p - 1/2) ||x||_2 for p < 2, and ||x||_p <= ||x||_2 above
        factor = max(1.0, len(mean) ** (1 / float(ord) - 1 / 2))
        radius = factor * _euclidean_radius(mean, cov_u, cov_v, delta)
    return radius if radius == shift else radius * (1 + _MARGIN)


def _moved_together(mean: Floats, cov: Floats, delta: float, shift: float) -> float:
    """Near radius for one covariance: translate until all but delta overlaps."""
    values, vectors = np.linalg.eigh(cov)
    parts = vectors.T @ mean
    # along what does not vary nothing ever overlaps
    varies = values > 1e-12 * max(values[-1], 0.0)
    if shift == 0 or np.abs(parts[~varies]).max(initial=0.0) > 1e-12 * shift:
        return shift
    # Mahalanobis distance m of the means: after a translation by a share t of the way
    # the overlap is 2 Phi(-(1 - t) m / 2), and the radius is t times the shift
    deviations = math.sqrt((parts[varies] ** 2 / values[varies]).sum())
    overlap: float = 2 * ndtri((1 + delta * (1 - _SHARE)) / 2)
    return shift * max(0.0, 1 - overlap / deviations)


def _on_the_line(
    m: float, narrow: float, wide: float, delta: float, best: bool
) -> float:
    """Near radius for unequal standard deviations, means a distance m apart."""
    d = wide - narrow
    # `_moved_beyond` falls in z, and at m + 40 d it is at most 2 Phi(-40), which is
    # zero in floating point: the root lies below
    high: float = m + 40 * d
    if _moved_beyond(high, m, d) > delta:
        return math.inf
    high = brentq(lambda z: _moved_beyond(z, m, d) - delta, 0.0, high, rtol=1e-14)
    if not best or narrow == 0:  # a point mass has one coupling only
        return high
    # The optimal coupling loses no more than the monotone one, whose radius is
    # therefore the upper end of the search.
    target = delta * (1 - _SHARE)
    if _lost(0.0, m, narrow, wide) <= target:
        return 0.0
    radius: float = brentq(
        lambda z: _lost(z, m, narrow, wide) - target, 0.0, high, rtol=1e-14
    )
    return radius


def _moved_beyond(z: float, m: float, d: float) -> float:
    """Mass that the monotone coupling moves further than z."""
    mass: float = ndtr(-(z - m) / d) + ndtr(-(z + m) / d)
    return mass


def _lost(z: float, m: float, narrow: float, wide: float) -> float:
    """Mass of N(m, wide²) and N(0, narrow²) that no coupling keeps within z."""
    # Strassen's theorem: the largest excess of a set over its z-neighbourhood
    lost = 0.0
    for centre in (m + z, z - m):  # either tail, as the left one
        x = _left_crossing(centre, narrow, wide)
        lost += ndtr((x - centre) / wide) - ndtr(x / narrow)
    return lost


def _left_crossing(centre: float, narrow: float, wide: float) -> float:
    """Lower crossing of the densities of N(0, narrow²) and N(centre, wide²)."""
    gap = (wide - narrow) * (wide + narrow)
    b = narrow**2 * centre
    c = narrow**2 * (centre**2 + 2 * wide**2 * math.log(wide / narrow))
    root = math.sqrt(b**2 + gap * c)
    # the form in which nothing cancels
    return -(b + root) / gap if b >= 0 else c / (b - root)


def _euclidean_radius(
    mean: Floats, cov_u: Floats, cov_v: Floats, delta: float
) -> float:
    """Upper bound of the norm's (1 - delta)-quantile under the coupling of W_2."""
    root_u, root_v = _square_root(cov_u), _square_root(cov_v)
    left, _, right = np.linalg.svd(root_v.T @ root_u)
    # x = R_u z meets y = R_v O z: a coupling for every rotation O, optimal for this one
    root = root_u - root_v @ left @ right
    values, vectors = np.linalg.eigh(root @ root.T)
    values = np.maximum(values, 0.0)
    largest, length = values[-1], float(np.linalg.norm(mean))
    by_chi = length + math.sqrt(largest * chi2.isf(delta, len(mean)))
    squares = (vectors.T @ mean) ** 2

    def bound(share: float) -> float:
        """Chernoff bound on the squared radius, its tilt a share of the largest one."""
        # E exp(tilt |x|^2) of a Gaussian is finite for tilt < 1 / (2 largest); by
        # Markov's inequality P(|x|^2 > r) <= E exp(tilt (|x|^2 - r)), set to delta
        tilt = share / (2 * largest)
        rest = 1 - 2 * tilt * values
        moment = tilt * (squares / rest).sum() - np.log(rest).sum() / 2
        squared: float = (moment - math.log(delta)) / tilt
        return squared

    best = minimize_scalar(bound, bounds=(1e-6, 1 - 1e-6), method="bounded")
    return min(by_chi, math.sqrt(best.fun))
