"""The trade-off of two unit Gaussians at distance mu, in one place.

Noise families and certificates both need it, so it stands below either.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr


def gaussian_delta(epsilon, mu):
    """Hockey-stick divergence of N(mu, 1) from N(0, 1) at exp(epsilon).

    Parameters
    ----------
    epsilon : float
        In nats; negative values are meaningful.
    mu : float
        Distance of the means in standard deviations, in [0, inf].

    Returns
    -------
    delta : float
        In [0, 1].

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.
    """
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    if math.isinf(mu):
        return 1.0
    if math.isinf(epsilon):
        return 0.0 if epsilon > 0 else 1.0
    first = log_ndtr(mu / 2 - epsilon / mu)
    # exp(epsilon) * Phi(...) in logarithms: the product is tame, its factors are not
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    if second >= first:
        return 0.0
    return float(np.exp(first) * -np.expm1(second - first))


def gaussian_epsilon(delta, mu):
    """Smallest epsilon >= 0 with ``gaussian_delta(epsilon, mu) <= delta``.

    Rounded up: the value returned never promises more than holds.
    """
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    # a plain tail bound: P(loss > epsilon) <= delta at this upper end
    upper = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    root = brentq(
        lambda e: gaussian_delta(e, mu) - delta, 0.0, upper, xtol=1e-13, rtol=1e-14
    )
    root *= 1 + 1e-13
    while gaussian_delta(root, mu) > delta:
        root = root * (1 + 1e-12) + 1e-15
    return root


def gaussian_mu(epsilon, delta):
    """Largest mu with ``gaussian_delta(epsilon, mu) <= delta``, rounded down."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2 * high
    mu = brentq(
        lambda m: gaussian_delta(epsilon, m) - delta,
        low,
        high,
        xtol=1e-300,
        rtol=1e-14,
    )
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-12
    return mu
