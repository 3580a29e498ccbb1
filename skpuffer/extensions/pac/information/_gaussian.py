r"""Gaussian noise that keeps mutual information within a budget, whatever the output.

Each rule bounds `log_det`, the information if the output were Gaussian itself.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import brentq

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import MARGIN
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_finite,
    check_positive,
    check_probability,
)
from skpuffer.utils._checks import check_covariance

#: Added to every variance, as a share of the largest and for each coordinate: more than
#: what eigenvalues are off by, so that no direction that varies is taken for one that
#: does not.
_ROUND_OFF = 1e-14

#: Above this an inverse hyperbolic sine is a logarithm, to the last digit.
_LARGE = 20.0


def log_det(covariance: ArrayLike, noise_covariance: ArrayLike) -> float:
    r"""Bound the mutual information by that of a Gaussian output.

    Parameters
    ----------
    covariance, noise_covariance : array-like of shape (d, d)
        Covariances of the output and of the Gaussian noise.

    Returns
    -------
    bound : float
        :math:`\tfrac12 \log\det(I + C N^{-1})` in nats. Infinite where a direction may
        vary without noise; coordinates that neither vary nor get noise add nothing.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy, Theorem 3.

    Examples
    --------
    >>> from skpuffer.information import log_det
    >>> round(log_det([[4, 0], [0, 1]], [[6, 0], [0, 3]]), 6)
    0.399254
    """
    output = check_covariance(covariance=covariance)
    noise = check_covariance(noise_covariance=noise_covariance)
    if output.shape != noise.shape:
        raise value_error(
            "gaussian.covariance_shapes_differ",
            output_shape=output.shape,
            noise_shape=noise.shape,
        )
    # a coordinate that neither varies nor is noisy is a public constant
    free = (np.diag(output) > 0) | (np.diag(noise) > 0)
    output, noise = output[np.ix_(free, free)], noise[np.ix_(free, free)]
    if not output.any():
        return 0.0
    if not noise.any():
        return math.inf
    # either in its own unit, so that neither product overflows
    units = np.abs(output).max(), np.abs(noise).max()
    try:
        factor = cholesky(noise / units[1], lower=True)
    except np.linalg.LinAlgError:
        return math.inf
    half = solve_triangular(factor, output / units[0], lower=True)
    ratios = np.linalg.eigvalsh(solve_triangular(factor, half.T, lower=True))
    return float(np.log1p(np.maximum(ratios, 0) * (units[0] / units[1])).sum() / 2)


def waterfill(covariance: ArrayLike, budget: float) -> Floats:
    r"""Return the Gaussian noise of least power with ``log_det`` equal to the budget.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of the output.
    budget : float
        In nats.

    Returns
    -------
    noise_covariance : ndarray of shape (d, d)
        With the eigenvectors of `covariance`. Constant coordinates get no noise; every
        other direction gets some.

    Raises
    ------
    ValueError
        If `budget` is not positive, or so large that the noise vanishes.

    Notes
    -----
    The covariance must be that of the output under the whole prior. Raise that of a
    sample by `inflated_covariance` first: what did not vary in a sample may vary.

    With variances :math:`\lambda_i` and noise :math:`\ell_i = \lambda_i / (e^{2 u_i} -
    1)` the budget is :math:`\sum_i u_i`, and the power is least at :math:`\sinh u_i = t
    \sqrt{\lambda_i}`.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Proposition 2.

    Examples
    --------
    >>> from skpuffer.information import waterfill
    >>> waterfill([[4, 0], [0, 1]], 0.5).round(6)
    array([[4.246942, 0.      ],
           [0.      , 2.501011]])
    """
    return _rotated(covariance, budget, _waterfilled)


def closed_form(covariance: ArrayLike, budget: float) -> Floats:
    r"""Return Gaussian noise by the first-order rule, never less than ``waterfill``.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of the output.
    budget : float
        In nats. The noise spends less, and all of it only in the limit of zero.

    Returns
    -------
    noise_covariance : ndarray of shape (d, d)
        Variances :math:`\sqrt{\lambda_i} \sum_j \sqrt{\lambda_j} / (2 \beta)` along the
        eigenvectors of `covariance`.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy, Theorem 3.

    Examples
    --------
    >>> from skpuffer.information import closed_form
    >>> closed_form([[4, 0], [0, 1]], 0.5)
    array([[6., 0.],
           [0., 3.]])
    """
    return _rotated(covariance, budget, _linearised)


def proportional(covariance: ArrayLike, budget: float) -> Floats:
    r"""Return Gaussian noise with the shape of the output's own covariance.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of the output.
    budget : float
        In nats.

    Returns
    -------
    noise_covariance : ndarray of shape (d, d)
        :math:`C / (e^{2 \beta / d} - 1)`, `d` the number of coordinates that vary.
        Never less power than ``waterfill``.

    Examples
    --------
    >>> from skpuffer.information import proportional
    >>> proportional([[4, 0], [0, 1]], 0.5).round(6)
    array([[6.165976, 0.      ],
           [0.      , 1.541494]])
    """
    return _rotated(covariance, budget, _shaped)


def efficient(
    covariance: ArrayLike, budget: float, basis: ArrayLike | None = None
) -> Floats:
    r"""Return Gaussian noise from the variances along a given basis alone.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of the output. Only its diagonal in the basis is read.
    budget : float
        In nats.
    basis : array-like of shape (d, d), default=None
        Orthonormal columns; None is the standard basis. The eigenvectors of
        `covariance` give ``closed_form``.

    Returns
    -------
    noise_covariance : ndarray of shape (d, d)
        In the coordinates of the output, not in those of the basis.

    Notes
    -----
    The covariance must be that of the output under the whole prior. The published rule
    reads the variances off a sample until they settle, which bounds nothing.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Theorem 6.

    Examples
    --------
    >>> from skpuffer.information import efficient
    >>> efficient([[2, 1], [1, 2]], 0.25)
    array([[8., 0.],
           [0., 8.]])
    """
    matrix = check_covariance(covariance=covariance)
    budget = check_positive(budget=budget)
    if basis is None:
        spread = np.sqrt(np.diag(matrix).clip(0))
        # as a product of deviations: a constant coordinate gets exactly no noise
        return np.diag(spread * (spread.sum() / (2 * budget)))
    axes = check_basis(basis)
    if len(axes) != len(matrix):
        raise value_error(
            "gaussian.basis_shape_wrong",
            shape=matrix.shape,
            dim=len(matrix),
            basis_shape=axes.shape,
        )
    unit = np.diag(matrix).max()
    if not unit > 0:
        return np.zeros_like(matrix)
    variances = ((axes.T @ (matrix / unit)) * axes.T).sum(axis=1)
    noise = unit * _linearised(_raised(variances), budget)
    return _symmetric((axes * noise) @ axes.T)


def check_basis(basis: ArrayLike) -> Floats:
    """Return a basis as an array, and refuse what is no orthonormal one."""
    axes = check_finite(basis=basis)
    square = axes.ndim == 2 and axes.shape[0] == axes.shape[1]
    if not square or not np.allclose(axes.T @ axes, np.eye(len(axes)), atol=1e-9):
        raise value_error("gaussian.basis_not_orthonormal", shape=axes.shape)
    return axes


def algorithm1(
    covariance: ArrayLike, *, v: float, beta_prime: float, c: float, radius: float
) -> Floats:
    r"""Return noise by the published rule, whose confidence nobody has stated.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Covariance of sampled outputs, divided by their number.
    v, beta_prime : float
        The two parts of the budget ``v + beta_prime`` in nats.
    c, radius : float
        Security parameter, in the unit of the variances, and bound of the norm of
        outputs.

    Returns
    -------
    noise_covariance : ndarray of shape (d, d)
        Where the eigenvalues above `c` are further apart than
        ``radius * sqrt(d * c) + 2 * c``, variances
        :math:`\sqrt{\lambda_j + t} \sum_k \sqrt{\lambda_k + t} / (2 v)` along the
        eigenvectors with ``t = 10 * c * v / beta_prime``; else, and where no eigenvalue
        is above `c`, :math:`(\sum_j \lambda_j + d c) / (2 v)` in every direction.

    Notes
    -----
    **This certifies nothing.** The publication does not relate `c` and the number of
    samples to the probability of failure. :func:`inflated_covariance` has a proof.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy, Algorithm 1.

    Examples
    --------
    >>> from skpuffer.information import algorithm1
    >>> algorithm1([[9, 0], [0, 1]], v=0.4, beta_prime=0.1, c=1e-4, radius=5).round(6)
    array([[15.013327,  0.      ],
           [ 0.      ,  5.013327]])
    """
    matrix = check_covariance(covariance=covariance)
    v, beta_prime = check_positive(v=v), check_positive(beta_prime=beta_prime)
    c, radius = check_positive(c=c), check_positive(radius=radius)
    values, vectors = np.linalg.eigh(matrix)
    values, d = values.clip(0), len(values)
    gaps = np.abs(values[:, None] - values)
    np.fill_diagonal(gaps, np.inf)
    leading = gaps[values > c]
    if leading.size and leading.min() > radius * math.sqrt(d * c) + 2 * c:
        noise = _linearised(values + 10 * c * v / beta_prime, v)
        return _symmetric((vectors * noise) @ vectors.T)
    return np.eye(d) * ((values.sum() + d * c) / (2 * v))


def inflated_covariance(
    second_moment: ArrayLike, n_draws: int, *, radius: float, gamma: float
) -> tuple[Floats, float]:
    r"""Return an upper confidence bound of the covariance of bounded outputs.

    Parameters
    ----------
    second_moment : array-like of shape (d, d)
        Mean of :math:`w w^\top` over the draws, `w` the output less a fixed centre.
    n_draws : int
        Number of independent draws in the mean.
    radius : float
        Bound of the Euclidean norm of `w`, enforced on every draw and on the release.
    gamma : float
        Probability with which the bound may fail, in (0, 1).

    Returns
    -------
    covariance : ndarray of shape (d, d)
        ``second_moment + inflation * identity``. The covariance of the output is not
        above it, in the order of matrices, with probability at least ``1 - gamma``.
    inflation : float

    Raises
    ------
    ValueError
        If `second_moment` is not a second moment of vectors within `radius`.

    Notes
    -----
    The matrix Bernstein inequality, with the variance bounded by ``radius**2`` times
    the largest eigenvalue of the estimate plus the inflation itself.

    References
    ----------
    Tropp (2012), User-friendly tail bounds for sums of random matrices, Theorem 6.1.

    Examples
    --------
    >>> from skpuffer.information import inflated_covariance, waterfill
    >>> covariance, inflation = inflated_covariance(
    ...     [[1.0, 0], [0, 0.25]], 10_000, radius=3.0, gamma=0.05
    ... )
    >>> round(inflation, 6)
    0.086033
    >>> noise_covariance = waterfill(covariance, 0.5)
    """
    moment = check_covariance(second_moment=second_moment)
    n_draws = check_count(n_draws=n_draws)
    radius, gamma = check_positive(radius=radius), check_probability(gamma=gamma)
    if np.trace(moment) > radius**2 * (1 + 1e-9):
        raise value_error("gaussian.radius_below_second_moment")
    values = np.linalg.eigvalsh(moment).astype(float)
    largest = float(_raised(values)[-1])
    # n t² / 2 = log(d / gamma) radius² (largest + 4 t / 3), solved for t
    rate = math.log(len(moment) / gamma) * radius**2 / n_draws
    inflation = 4 / 3 * rate + math.sqrt((4 / 3 * rate) ** 2 + 2 * rate * largest)
    return moment + inflation * np.eye(len(moment)), inflation


def _rotated(
    covariance: ArrayLike, budget: float, rule: Callable[[Floats, float], Floats]
) -> Floats:
    """Apply a rule for variances along the eigenvectors of a covariance."""
    matrix = check_covariance(covariance=covariance)
    budget = check_positive(budget=budget)
    # exactly constant coordinates need no noise; a direction that only seems constant
    # does
    free = np.diag(matrix) > 0
    noise = np.zeros_like(matrix)
    if free.any():
        block = matrix[np.ix_(free, free)]
        unit = np.diag(block).max()
        values, vectors = np.linalg.eigh(block / unit)
        variances = rule(_raised(values), budget)
        if not np.all(variances > 0):
            raise value_error("gaussian.budget_noise_vanishes", budget=budget)
        noise[np.ix_(free, free)] = unit * _symmetric((vectors * variances) @ vectors.T)
    return noise


def _raised(variances: Floats) -> Floats:
    """Variances, none of them less than it may be behind the round-off."""
    share = _ROUND_OFF * (10 + len(variances))
    return variances.clip(0) + share * variances.max()


def _linearised(variances: Floats, budget: float) -> Floats:
    spread = np.sqrt(variances)
    return spread * (spread.sum() / (2 * budget))


def _shaped(variances: Floats, budget: float) -> Floats:
    return _ratio(variances, np.full(len(variances), budget / len(variances)))


def _waterfilled(variances: Floats, budget: float) -> Floats:
    """Noise variances by the rule of ``waterfill``."""
    spread = np.sqrt(variances)
    logs = np.log(spread)

    def shares(log_t: float) -> Floats:
        # arcsinh(t * spread), which for large arguments is their logarithm plus log 2
        a = log_t + logs
        return np.where(
            a > _LARGE, a + math.log(2), np.arcsinh(np.exp(np.minimum(a, _LARGE)))
        )

    # arcsinh(x) <= x, so the sum is within the budget at the lower end; at the upper
    # one the largest term alone exceeds it
    low = math.log(budget / spread.sum())
    log_sinh = budget + math.log(-math.expm1(-2 * budget) / 2)
    high = log_sinh - float(logs.max())
    root = brentq(
        lambda log_t: float(shares(log_t).sum()) / budget - 1,
        low - 1e-9,
        high + 1e-9,
        xtol=1e-15,
    )
    return _ratio(variances, shares(root))


def _ratio(variances: Floats, shares: Floats) -> Floats:
    """Noise at which each variance tells its share, ``log1p(variance / noise) / 2``."""
    # rounded up, so that the budget holds as it is evaluated; as exponentials of
    # negative numbers, which do not overflow
    shrink: Floats = np.exp(-2 * shares) / -np.expm1(-2 * shares)
    return variances * shrink * (1 + MARGIN)


def _symmetric(matrix: Floats) -> Floats:
    # a product of three matrices is symmetric up to round-off only
    return (matrix + matrix.T) / 2
