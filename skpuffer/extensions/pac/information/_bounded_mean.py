"""Confidence bounds of the mean of bounded draws, one-sided."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import norm

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import (
    Floats,
    check_finite,
    check_option,
    check_probability,
    check_real,
)

__all__ = ["mean_lower_bound", "mean_upper_bound"]

#: Largest bet, as a share of what would lose everything on the worst draw.
_BOLDEST = 0.75


def mean_lower_bound(
    values: ArrayLike,
    low: float,
    high: float,
    gamma: float,
    method: str = "betting",
) -> float:
    r"""Lower confidence bound of a mean from independent draws within bounds.

    Parameters
    ----------
    values : array-like of shape (n,)
        Independent draws of one law, in the order in which they were drawn.
    low, high : float
        Proved bounds of every draw, ``low < high``; not the extremes seen.
    gamma : float
        Probability with which the bound may fail, in (0, 1).
    method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
        'betting' and 'bernstein' hold at every number of draws; the first is the
        sharper. 'asymptotic' is the normal approximation, which holds in the limit only
        and certifies nothing.

    Returns
    -------
    bound : float
        At least `low`.

    Raises
    ------
    ValueError
        If there are fewer than two draws, one is out of the bounds, or a parameter is
        out of its range.

    See Also
    --------
    mean_upper_bound : The other side.

    Notes
    -----
    Betting: whoever stakes the share :math:`\lambda_t` on draws above `m`, chosen
    before each draw, owns :math:`\prod_t (1 + \lambda_t (x_t - m))` in the end. Were
    `m` the mean, the game would be fair, and the wealth at least :math:`1 / \gamma`
    with probability :math:`\gamma` at most. The bound is the smallest `m` that did not
    make the player that rich.

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
    >>> round(mean_lower_bound(draws, 0.0, 1.0, 0.05, method="bernstein"), 4)
    0.4838
    """
    gamma = check_probability(gamma=gamma)
    bound = _BOUNDS[check_option(_BOUNDS, method=method)]
    low, high = check_real(low=low), check_real(high=high)
    if not -math.inf < low < high < math.inf:
        raise ValueError(Statement("pac.bounds_not_ordered_finite", low=low, high=high))
    draws = check_finite(values=values)
    if draws.ndim != 1 or len(draws) < 2:
        raise ValueError(Statement("pac.values_too_few_draws", shape=draws.shape))
    # in units of the range; round-off of a logarithm is not a draw out of bounds
    shares = (draws - low) / (high - low)
    if shares.min() < -1e-9 or shares.max() > 1 + 1e-9:
        raise ValueError(Statement("pac.values_outside_bounds"))
    found = bound(shares.clip(0, 1), gamma)
    return low + (high - low) * min(1.0, max(0.0, found))


def mean_upper_bound(
    values: ArrayLike,
    low: float,
    high: float,
    gamma: float,
    method: str = "betting",
) -> float:
    """Upper confidence bound of a mean from independent draws within bounds.

    Parameters
    ----------
    values : array-like of shape (n,)
        Independent draws of one law, in the order in which they were drawn.
    low, high : float
        Proved bounds of every draw, ``low < high``; not the extremes seen.
    gamma : float
        Probability with which the bound may fail, in (0, 1).
    method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
        As for `mean_lower_bound`.

    Returns
    -------
    bound : float
        At most `high`.

    Raises
    ------
    ValueError
        If there are fewer than two draws, one is out of the bounds, or a parameter is
        out of its range.

    See Also
    --------
    mean_lower_bound : The other side, with the reasons.

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


_BOUNDS = {
    "betting": _betting,
    "bernstein": _bernstein,
    "asymptotic": _asymptotic,
}
