"""Noise of a differentially private mean, to hold budgets of information against."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import binom, norm

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_finite,
    check_option,
    check_positive,
    check_probability,
    check_real,
)

#: How far a record may move a sum of clipped rows, in clipping norms.
_MOVES = {"add_remove": 1.0, "replace": 2.0}


def dp_mean_power(
    epsilon: float,
    delta: float,
    *,
    clip_norm: float,
    dim: int,
    denominator: float,
    relation: str = "add_remove",
) -> float:
    """Return the noise power of a private mean with a public denominator.

    Parameters
    ----------
    epsilon, delta : float
        The promise; `delta` in (0, 1).
    clip_norm, dim : float, int
        Euclidean norm to which rows are clipped, and number of columns.
    denominator : float
        Divisor of the noisy sum. It must be public, such as the size of the table.
    relation : {'add_remove', 'replace'}, default='add_remove'
        Whether a record is added or removed, or replaced.

    Returns
    -------
    power : float
        Expected squared norm of the noise of the mean.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.

    Examples
    --------
    >>> from skpuffer.information import dp_mean_power
    >>> round(dp_mean_power(1.0, 1e-6, clip_norm=1.0, dim=4, denominator=15), 6)
    0.317296
    """
    move = _MOVES[check_option(_MOVES, relation=relation)]
    move *= check_positive(clip_norm=clip_norm)
    epsilon, delta = check_positive(epsilon=epsilon), check_probability(delta=delta)
    # the deviation of the noise of the sum
    deviation = move / gaussian_mu(epsilon, delta)
    dim = check_count(dim=dim)
    return dim * (deviation / check_positive(denominator=denominator)) ** 2


def published_dp_mean_power(
    epsilon: float,
    delta: float,
    *,
    clip_norm: float,
    dim: int,
    n_records: int,
    rate: float = 0.5,
) -> float:
    r"""Return the noise power of the published baseline, whose count is not paid for.

    Parameters
    ----------
    epsilon, delta : float
        Promise of the noise of the sum; `delta` in (0, 1).
    clip_norm, dim : float, int
        Euclidean norm to which rows are clipped, and number of columns.
    n_records : int
        Records of the pool.
    rate : float, default=0.5
        Probability with which each record is a member, in (0, 1).

    Returns
    -------
    power : float
        :math:`d \sigma^2 C^2 E[1 / S^2]` with the number `S` of members, at least one.

    Notes
    -----
    **This does not keep the promise**; `dp_mean_power` does. The release is divided by
    the secret number of members. It is here to repeat what was published.

    Examples
    --------
    >>> from skpuffer.information import published_dp_mean_power
    >>> round(published_dp_mean_power(2.983, 1e-6, clip_norm=1, dim=4, n_records=30), 4)
    0.048
    """
    n_records, rate = check_count(n_records=n_records), check_probability(rate=rate)
    counts = range(n_records + 1)
    masses = binom.pmf(counts, n_records, rate)
    inverse_square = sum(
        mass / max(count, 1) ** 2 for count, mass in zip(counts, masses, strict=True)
    )
    power = dp_mean_power(epsilon, delta, clip_norm=clip_norm, dim=dim, denominator=1.0)
    return power * float(inverse_square)


# -- confidence bounds of the mean of bounded draws, one-sided -------------------------


#: Largest bet, as a share of what would lose everything on the worst draw.
_BOLDEST = 0.75


def mean_lower_bound(
    values: ArrayLike, low: float, high: float, gamma: float, method: str = "betting"
) -> float:
    r"""Return a lower confidence bound of a mean from independent bounded draws.

    Parameters
    ----------
    values : array-like of shape (n,)
        Independent draws of one law, in the order in which they were drawn.
    low, high : float
        Proved bounds of every draw, ``low < high``; not the extremes seen.
    gamma : float
        Probability with which the bound may fail, in (0, 1).
    method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
        'betting' and 'bernstein' hold at every number of draws; the first is sharper.
        'asymptotic' is the normal approximation, and certifies nothing.

    Returns
    -------
    bound : float
        At least `low`.

    Raises
    ------
    ValueError
        If there are fewer than two draws, or one is out of the bounds.

    Notes
    -----
    Betting: stakes :math:`\lambda_t` on draws above `m`, each chosen before its draw,
    give the wealth :math:`\prod_t (1 + \lambda_t (x_t - m))`. If `m` is the mean, it
    reaches :math:`1 / \gamma` with probability at most :math:`\gamma`. The bound is the
    smallest `m` at which it does not.

    References
    ----------
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by
    betting, Theorem 3 with the stakes of equation (26). Maurer and Pontil (2009),
    Empirical Bernstein bounds, Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import mean_lower_bound
    >>> draws = np.random.default_rng(0).uniform(size=1000)
    >>> round(mean_lower_bound(draws, 0.0, 1.0, 0.05), 4)
    0.4945
    """
    gamma = check_probability(gamma=gamma)
    bound = _BOUNDS[check_option(_BOUNDS, method=method)]
    low, high = check_real(low=low), check_real(high=high)
    if not -math.inf < low < high < math.inf:
        raise value_error("pac.bounds_not_ordered_finite", low=low, high=high)
    draws = check_finite(values=values)
    if draws.ndim != 1 or len(draws) < 2:
        raise value_error("pac.values_too_few_draws", shape=draws.shape)
    # in units of the range; round-off of a logarithm is not a draw out of bounds
    shares = (draws - low) / (high - low)
    if shares.min() < -1e-9 or shares.max() > 1 + 1e-9:
        raise value_error("pac.values_outside_bounds")
    found = bound(shares.clip(0, 1), gamma)
    return low + (high - low) * min(1.0, max(0.0, found))


def mean_upper_bound(
    values: ArrayLike, low: float, high: float, gamma: float, method: str = "betting"
) -> float:
    """Return an upper confidence bound of a mean; see `mean_lower_bound`.

    Parameters
    ----------
    values : array-like of shape (n,)
        Independent draws of one law, in the order in which they were drawn.
    low, high, gamma, method : float, float, float, str
        See `mean_lower_bound`.

    Returns
    -------
    bound : float
        At most `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import mean_upper_bound
    >>> draws = np.random.default_rng(0).uniform(size=1000)
    >>> round(mean_upper_bound(draws, 0.0, 1.0, 0.05), 4)
    0.5386
    """
    low, high = check_real(low=low), check_real(high=high)
    # mirrored, so that there is one proof and one place for each formula
    mirrored = -check_finite(values=values)
    return -mean_lower_bound(mirrored, -high, -low, gamma, method)


def _betting(shares: Floats, gamma: float) -> float:
    n = len(shares)
    steps = np.arange(1, n + 1)
    # what is known before each draw, begun with half a draw in the middle
    means = (0.5 + np.cumsum(shares)) / (steps + 1)
    spreads = (0.25 + np.cumsum((shares - means) ** 2)) / (steps + 1)
    spreads = np.concatenate([[0.25], spreads[:-1]])
    stakes = np.sqrt(2 * math.log(1 / gamma) / (n * spreads))

    def log_wealth(mean: float) -> float:
        # decreases in the mean: nobody gets rich on what lies below it
        bets = np.minimum(stakes, _BOLDEST / mean) if mean > 0 else stakes
        return float(np.log1p(bets * (shares - mean)).sum())

    target = math.log(1 / gamma)
    if log_wealth(0.0) < target:
        return 0.0
    root: float = brentq(lambda m: log_wealth(m) - target, 0.0, 1.0, xtol=1e-13)
    return root - 1e-12


def _bernstein(shares: Floats, gamma: float) -> float:
    n, log_term = len(shares), math.log(2 / gamma)
    slack = math.sqrt(2 * shares.var(ddof=1) * log_term / n)
    return float(shares.mean()) - slack - 7 * log_term / (3 * (n - 1))


def _asymptotic(shares: Floats, gamma: float) -> float:
    error = math.sqrt(shares.var(ddof=1) / len(shares))
    return float(shares.mean() + norm.ppf(gamma) * error)


_BOUNDS = {"betting": _betting, "bernstein": _bernstein, "asymptotic": _asymptotic}
