r"""How far a release is from Gaussian, by which its Gaussian bound is too large.

Only **lower** bounds of that divergence may be subtracted from `log_det`.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtr, ndtri
from sklearn.utils import gen_batches

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_finite,
    check_non_negative,
    check_option,
    check_positive,
    check_probability,
)
from skpuffer.utils._checks import check_covariance, check_masses, check_sizes

from ._dp_mean import mean_lower_bound, mean_upper_bound

#: Nodes of a Gauss-Hermite rule around each atom.
_NODES = 64

#: Least eigenvalue of a covariance that is divided by, as a share of the largest.
_LEAST = 1e-12

#: Rows of a table of draws by atoms that are computed at once.
_CHUNK = 2**20


def sliced_gap(
    atoms: ArrayLike,
    noise_covariance: ArrayLike,
    weights: ArrayLike | None = None,
    bases: Sequence[ArrayLike] | None = None,
) -> float:
    r"""Return a lower bound of how far a release with Gaussian noise is from Gaussian.

    Parameters
    ----------
    atoms : array-like of shape (n_atoms, d)
        **All** outputs of the prior: a sample of them would bound another prior.
    noise_covariance : array-like of shape (d, d)
        Positive definite.
    weights : array-like of shape (n_atoms,), default=None
        Masses of the atoms; None is equal ones.
    bases : sequence of array-like of shape (d, d), default=None
        Orthonormal columns along which the whitened release is projected. None is the
        coordinates and the principal axes of the outputs.

    Returns
    -------
    gap : float
        In nats: :math:`\tfrac12 \sum_k W_2^2` between the projections of the whitened
        release along a basis and the standard normal, the largest over the bases.
        ``log_det`` less the gap bounds the mutual information.

    Notes
    -----
    By Talagrand's inequality after whitening. The squared distance of laws is at least
    the sum of those of their projections along orthogonal axes.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Theorem 4.

    Examples
    --------
    >>> from skpuffer.information import sliced_gap, waterfill
    >>> round(sliced_gap([[-1.0], [1.0]], waterfill([[1.0]], 1.0)), 6)
    0.04455
    """
    table, masses, noise = _channel(atoms, noise_covariance, weights)
    d = table.shape[1]
    table = table - masses @ table
    spread = (table * masses[:, None]).T @ table
    values, vectors = np.linalg.eigh(spread + noise)
    # symmetric, so that axes of the output remain what they are where they can
    whiten = (vectors / np.sqrt(values)) @ vectors.T
    if bases is None:
        principal = np.linalg.eigh(whiten @ spread @ whiten)[1]
        axes = [np.eye(d), principal]
    else:
        axes = [_orthonormal(basis, d) for basis in bases]
    projected = [(whiten @ table.T, whiten @ noise @ whiten, basis) for basis in axes]
    return max(
        sum(
            _squared_distance(v @ points, masses, math.sqrt(v @ kernel @ v))
            for v in basis.T
        )
        / 2
        for points, kernel, basis in projected
    )


def slice_statistic(
    releases: ArrayLike,
    *,
    rng: np.random.Generator,
    n_directions: int = 50,
    level: float = 0.05,
    n_null: int = 200,
) -> float:
    """Return the sliced distance of sampled releases from Gaussian, less chance.

    Parameters
    ----------
    releases : array-like of shape (n, d)
        Independent draws of the release, ``n > d``.
    rng : numpy.random.Generator
        Directions and Gaussian samples are drawn from it.
    level : float, default=0.05
        Probability with which Gaussian releases show more, in (0, 1).
    n_directions, n_null : int
        Number of random directions, 50 by default, and of Gaussian samples, 200 by
        default.

    Returns
    -------
    statistic : float
        In nats, at least zero. **A diagnostic**, not a bound: nothing may be subtracted
        by it.

    Notes
    -----
    Unlike the published statistic, it compares with the exact quantiles of the normal
    and subtracts what Gaussian releases show.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Algorithm 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import slice_statistic
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.choice([-1.0, 1.0], size=(2000, 1))
    >>> round(slice_statistic(signs + 0.5 * rng.normal(size=(2000, 1)), rng=rng), 2)
    0.03
    """
    draws = check_sizes(releases=releases)
    if draws.ndim != 2 or len(draws) <= draws.shape[1] + 1:
        raise value_error("sliced.statistic_too_few_draws", shape=draws.shape)
    n_directions = check_count(n_directions=n_directions)
    level, n_null = check_probability(level=level), check_count(n_null=n_null)
    directions = rng.normal(size=(draws.shape[1], n_directions))
    directions /= np.linalg.norm(directions, axis=0)
    null = [_slices(rng.normal(size=draws.shape), directions) for _ in range(n_null)]
    excess = _slices(draws, directions) - np.quantile(null, 1 - level)
    return max(0.0, float(excess))


def donsker_varadhan_gap(
    releases: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    gamma: float,
    rng: np.random.Generator,
    features: str = "bumps",
    n_surrogates: int = 10,
    clip: float = 1.0,
    penalty: float = 1e-6,
) -> float:
    r"""Return a lower confidence bound of the divergence of a release from a Gaussian.

    Parameters
    ----------
    releases : array-like of shape (n, d)
        Independent draws of the release. One half fits a function, the other bounds.
    mean, covariance : array-like of shape (d,) and (d, d)
        Moments of the Gaussian, fixed before the releases were drawn.
    gamma : float
        Probability with which the bound may fail, in (0, 1).
    rng : numpy.random.Generator
        Draws of the Gaussian are made from it.
    features : {'bumps', 'moments'}, default='bumps'
        Features of each whitened coordinate: 21 Gaussian bumps, or tanh², square and
        clipped fourth power.
    n_surrogates : int, default=10
        Draws of the Gaussian for each release.
    clip, penalty : float
        Largest size of the function, 1 by default, and weight of the squared
        coefficients, 1e-6 by default.

    Returns
    -------
    gap : float
        In nats, at least zero.

    See Also
    --------
    surrogate_terms : Terms from which the gap may be subtracted.

    Notes
    -----
    For every function :math:`E_P f - \log E_Q e^f` is at most the divergence.

    It may be subtracted from ``log_det`` only if mean and covariance **are** those of
    the release. The divergence from any other Gaussian is larger.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Algorithm 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import donsker_varadhan_gap
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.choice([-1.0, 1.0], size=(5000, 1))
    >>> releases = signs + 0.5 * rng.normal(size=(5000, 1))
    >>> gap = donsker_varadhan_gap(releases, [0.0], [[1.25]], gamma=0.05, rng=rng)
    >>> 0.1 < gap < 0.17
    True
    """
    draws, centre = check_sizes(releases=releases), check_sizes(mean=mean)
    spread = check_covariance(least=_LEAST, covariance=covariance)
    d = len(spread)
    if draws.ndim != 2 or draws.shape[1] != d or centre.shape != (d,) or len(draws) < 4:
        raise value_error(
            "pac.donsker_varadhan_shapes_wrong",
            draws_shape=draws.shape,
            centre_shape=centre.shape,
            covariance_shape=spread.shape,
        )
    gamma, clip = check_probability(gamma=gamma), check_positive(clip=clip)
    penalty = check_positive(penalty=penalty)
    functions = _FEATURES[check_option(_FEATURES, features=features)]
    factor = cholesky(spread, lower=True)
    white: Floats = solve_triangular(factor, (draws - centre).T, lower=True).T
    half = len(white) // 2
    n_normal = check_count(n_surrogates=n_surrogates) * half

    def normal() -> Floats:
        return rng.normal(size=(n_normal, d))

    critic = _fitted(functions, white[:half], normal(), penalty, clip)
    seen, compared = critic(white[half:]), np.exp(critic(normal()))
    # either mean at half of the probability
    lower = mean_lower_bound(seen, -clip, clip, gamma / 2)
    upper = mean_upper_bound(compared, math.exp(-clip), math.exp(clip), gamma / 2)
    return max(0.0, lower - math.log(upper))


def surrogate_terms(
    outputs: ArrayLike,
    noise_covariance: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
) -> Floats:
    r"""Return terms whose mean is the information plus a divergence from a Gaussian.

    Parameters
    ----------
    outputs : array-like of shape (n, d)
        Outputs without noise: draws of the prior, or all of its atoms.
    noise_covariance : array-like of shape (d, d)
        Covariance of the Gaussian noise, positive definite.
    mean, covariance : array-like of shape (d,) and (d, d)
        Moments of **any** Gaussian, estimated on other draws or not; positive definite.

    Returns
    -------
    terms : ndarray of shape (n,)
        In nats. Their mean over the prior bounds the mutual information, also less a
        lower bound of the divergence of the release from the same Gaussian.

    Notes
    -----
    :math:`I = E[-\log q(Z)] - h(B) - \mathrm{KL}(P_Z \| q)` for every Gaussian `q` of
    covariance `S`, and the mean over the noise `B` is taken in closed form:
    :math:`\tfrac12 \log\det(S N^{-1}) + \tfrac12 \mathrm{tr}(S^{-1} N) - \tfrac d2 +
    \tfrac12 (M - m)^\top S^{-1} (M - m)`. On a sample of bounded outputs their mean is
    bounded by `mean_upper_bound`.

    Examples
    --------
    >>> from skpuffer.information import surrogate_terms
    >>> surrogate_terms([[-1.0], [1.0]], [[1.0]], [0.0], [[2.0]]).round(6)
    array([0.346574, 0.346574])
    """
    points, centre = check_sizes(outputs=outputs), check_sizes(mean=mean)
    noise = check_covariance(least=_LEAST, noise_covariance=noise_covariance)
    spread = check_covariance(least=_LEAST, covariance=covariance)
    d = len(noise)
    if (
        points.ndim != 2
        or points.shape[1] != d
        or centre.shape != (d,)
        or spread.shape != noise.shape
    ):
        raise value_error(
            "pac.surrogate_dimensions_differ",
            points_shape=points.shape,
            centre_shape=centre.shape,
            covariance_shape=spread.shape,
            noise_shape=noise.shape,
        )
    factor = cholesky(spread, lower=True)
    white = solve_triangular(factor, (points - centre).T, lower=True)
    share = solve_triangular(factor, cholesky(noise, lower=True), lower=True)
    log_ratio = np.linalg.slogdet(spread)[1] - np.linalg.slogdet(noise)[1]
    constant = log_ratio + (share**2).sum() - d
    return (constant + (white**2).sum(axis=0)) / 2


def decoder_deviation(
    n_samples: int, bound: float, gamma: float, rademacher: float = 0.0
) -> float:
    r"""Return the published deviation of a decoder's loss from its class's best.

    Parameters
    ----------
    n_samples : int
        Samples the loss is averaged over.
    bound : float
        Largest loss in nats.
    gamma : float
        Either of the two probabilities with which it may fail, in (0, 1).
    rademacher : float, default=0.0
        Expected Rademacher complexity of the losses of the class; not an empirical one.

    Returns
    -------
    deviation : float
        :math:`4 R + 2 B \sqrt{2 \log(1 / \gamma) / m}`.

    Notes
    -----
    **It certifies no privacy**: an attacker is not bound to the class of decoders.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Lemma 1.

    Examples
    --------
    >>> from skpuffer.information import decoder_deviation
    >>> round(decoder_deviation(10_000, 5.0, 0.05), 6)
    0.244775
    """
    n_samples, bound = check_count(n_samples=n_samples), check_positive(bound=bound)
    gamma = check_probability(gamma=gamma)
    complexity = check_non_negative(finite=True, rademacher=rademacher)
    root = math.sqrt(2 * math.log(1 / gamma) / n_samples)
    return 4 * complexity + 2 * bound * root


def _channel(
    atoms: ArrayLike, noise_covariance: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    table = check_sizes(atoms=atoms)
    noise = check_covariance(least=_LEAST, noise_covariance=noise_covariance)
    if table.ndim != 2 or not table.size or table.shape[1] != len(noise):
        raise value_error(
            "pac.atoms_columns_mismatch_covariance",
            table_shape=table.shape,
            noise_shape=noise.shape,
        )
    return table, check_masses(len(table), weights=weights), noise


def _orthonormal(basis: ArrayLike, d: int) -> Floats:
    axes = check_finite(bases=basis)
    if axes.shape != (d, d) or not np.allclose(axes.T @ axes, np.eye(d), atol=1e-9):
        raise value_error("sliced.bases_not_orthonormal", dim=d)
    return axes


def _squared_distance(means: Floats, masses: Floats, deviation: float) -> float:
    """W2² between the standard normal and a Gaussian mixture of mean 0, variance 1."""
    nodes, rule = np.polynomial.hermite_e.hermegauss(_NODES)
    points = (means[:, None] + deviation * nodes).ravel()
    measure = (masses[:, None] * (rule / rule.sum())).ravel()
    total = 0.0
    size = max(1, _CHUNK // len(means))
    for part in gen_batches(len(points), size):
        away = (points[part, None] - means) / deviation
        low, high = ndtr(away) @ masses, ndtr(-away) @ masses
        # from whichever tail is the smaller, which has the digits
        image = np.where(low < high, 1, -1) * ndtri(np.minimum(low, high))
        total += float(measure[part] @ (points[part] - image) ** 2)
    return total


def _slices(draws: Floats, directions: Floats) -> float:
    """Half of the average squared distance of whitened projections from normal."""
    n = len(draws)
    centred = draws - draws.mean(axis=0)
    factor = np.linalg.cholesky(np.atleast_2d(np.cov(centred, rowvar=False)))
    white = solve_triangular(factor, centred.T, lower=True)
    quantiles = ndtri((np.arange(n) + 0.5) / n)
    sorted_draws = np.sort(directions.T @ white, axis=1)
    return float(((sorted_draws - quantiles) ** 2).mean()) / 2


def _bumps(white: Floats) -> Floats:
    centres = np.linspace(-4, 4, 21)
    bumps = np.exp(-((white[:, :, None] - centres) ** 2) / (2 * 0.4**2))
    return bumps.reshape(len(white), -1)


def _moments(white: Floats) -> Floats:
    parts = [np.tanh(white) ** 2, white**2, np.minimum(white**4, 81.0)]
    return np.concatenate(parts, axis=1)


_FEATURES = {"bumps": _bumps, "moments": _moments}


def _fitted(
    functions: Callable[[Floats], Floats],
    releases: Floats,
    normal: Floats,
    penalty: float,
    clip: float,
) -> Callable[[Floats], Floats]:
    """Function that tells releases from normal draws best, centred and clipped."""
    seen, compared = functions(releases).mean(axis=0), functions(normal)
    log_n = math.log(len(compared))

    def loss(theta: Floats) -> tuple[float, Floats]:
        logits = compared @ theta
        log_mean = float(logsumexp(logits)) - log_n
        shares = np.exp(logits - log_mean - log_n)
        value = log_mean - float(seen @ theta) + penalty * float(theta @ theta)
        return value, shares @ compared - seen + 2 * penalty * theta

    # any function bounds: the last digits of the best one are worth no steps
    theta = minimize(
        loss, np.zeros(len(seen)), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    ).x
    # an additive constant changes nothing but what the clipping cuts
    offset = float(logsumexp(compared @ theta)) - log_n

    def critic(white: Floats) -> Floats:
        values: Floats = functions(white) @ theta - offset
        return np.clip(values, -clip, clip)

    return critic
