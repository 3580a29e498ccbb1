"""Rényi costs of a record in one of several bins, its own bin being visited k times."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from skpuffer.utils._types import Floats

from ._lattice import Group

__all__ = ["MAX_ORDER", "remove_cumulants"]

#: Largest order of which the exact cost is found.
MAX_ORDER = 128


@lru_cache(maxsize=256)
def remove_cumulants(groups: tuple[Group, ...], n_orders: int) -> Floats:
    """Log of the mean of S^order for the orders 0, 1, ..., `n_orders`.

    S is the likelihood ratio of the record's presence. Its powers are the coefficients
    of a product of power series, one for each bin.

    Parameters
    ----------
    groups : tuple of Group
    n_orders : int

    Returns
    -------
    ndarray of shape (n_orders + 1,)
        Rounded up.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemma 3.2.
    """
    t = np.arange(n_orders + 1.0)
    total = np.where(t == 0, 0.0, -math.inf)
    for count, shift in groups:
        series = shift**2 * t * (t - 1) / 2 - gammaln(t + 1)
        total = _times(total, _power(series, count))
    n = sum(group.count for group in groups)
    found: Floats = total + gammaln(t + 1) - t * math.log(n)
    # rounding of each product of two series, of which there are 2 log2(count) at most
    return np.maximum(found, 0.0) + 1e-13 * (1 + t)


def _times(a: Floats, b: Floats) -> Floats:
    """Logs of the coefficients of the product of two power series, by theirs."""
    n = len(a)
    index = np.arange(n)[:, np.newaxis] - np.arange(n)
    terms = np.where(index >= 0, a + b[np.maximum(index, 0)], -math.inf)
    product: Floats = logsumexp(terms, axis=1)
    return product


def _power(series: Floats, count: int) -> Floats:
    power = np.where(np.arange(len(series)) == 0, 0.0, -math.inf)
    while count:
        if count % 2:
            power = _times(power, series)
        count //= 2
        if count:
            series = _times(series, series)
    return power
