"""Facts on every trade-off, that of a noise as of a certificate."""

import numpy as np

from skpuffer.kernel.numbers import Floats, Numbers


def mirrored(epsilon: Floats, delta: Floats) -> Floats:
    """Hockey-stick divergence of a symmetric pair, at epsilons of any sign.

    Parameters
    ----------
    epsilon : ndarray
        In nats, of any sign.
    delta : ndarray
        The divergence at ``exp(abs(epsilon))``.

    Returns
    -------
    delta : ndarray
        At ``exp(epsilon)``: delta(-e) = 1 - exp(-e) (1 - delta(e)).
    """
    # Where epsilon is negative, 1 - exp(epsilon) (1 - delta(-epsilon)). Exchanging the
    # two distributions gives that identity for any pair; a symmetric one is its own
    # exchange. Elsewhere it leaves delta as it is.
    below = np.minimum(epsilon, 0.0)
    return np.exp(below) * delta - np.expm1(below)


def log_delta_of_orders(alphas: Floats, costs: Floats, epsilons: Numbers) -> Floats:
    """Log of the least delta that Rényi costs imply at each epsilon.

    Parameters
    ----------
    alphas, costs : ndarray of shape (n_orders,)
        Orders above one and the cost at each, in nats. Where either is infinite, it
        implies nothing here.
    epsilons : float or ndarray
        In nats.

    Returns
    -------
    log_deltas : ndarray of the shape of `epsilons`
        At most zero.

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy,
    Proposition 12.
    """
    known = np.isfinite(alphas) & np.isfinite(costs)
    alphas, costs = alphas[known], costs[known]
    # Proposition 12, in logarithms:
    # delta <= exp((alpha - 1) (cost - epsilon)) (1 - 1 / alpha)^(alpha - 1) / alpha
    gaps = costs - np.asarray(epsilons, float)[..., np.newaxis]
    found = (alphas - 1) * (gaps + np.log1p(-1 / alphas)) - np.log(alphas)
    best: Floats = found.min(axis=-1, initial=0.0)
    return best
