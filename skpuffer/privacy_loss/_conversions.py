"""Conversion of Rényi promises into (epsilon, delta) ones, and back.

Every statement holds for any pair of distributions, hence for Pufferfish privacy as for
differential privacy.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_option, check_probability

from ._tradeoff import log_delta_of_orders

__all__ = ["approximate_renyi_to_approximate", "renyi_to_approximate", "renyi_to_delta"]

#: Orders over which a curve known at every order is minimised.
DEFAULT_ORDERS = np.unique(
    np.concatenate([1 + 10 ** np.linspace(-3, 5, 161), np.arange(2.0, 257.0)])
)


def _orders_and_costs(alpha: ArrayLike, epsilon: ArrayLike) -> tuple[Floats, Floats]:
    alpha, epsilon = np.broadcast_arrays(
        np.asarray(alpha, float), np.asarray(epsilon, float)
    )
    if alpha.size == 0 or np.any(~(alpha > 1)) or np.any(~(epsilon >= 0)):
        raise ValueError(
            Statement("curve.orders_costs_out_of_range", alpha=alpha, epsilon=epsilon)
        )
    return alpha, epsilon


def renyi_to_approximate(
    alpha: ArrayLike, epsilon: ArrayLike, delta: float, conversion: str = "tight"
) -> float:
    """Turn (alpha, epsilon) Rényi promises into the best (epsilon', delta) one.

    Parameters
    ----------
    alpha : float or array-like of shape (n_orders,)
        Orders in (1, inf]; at infinity the promise is a pure one and passes through.
    epsilon : float or array-like of shape (n_orders,)
        Cost at each order, in nats.
    delta : float
        In (0, 1).
    conversion : {'tight', 'basic'}, default='tight'
        'basic' is ``epsilon + log(1/delta)/(alpha-1)``; 'tight' is never worse.

    Returns
    -------
    epsilon : float
        The smallest over the orders, in nats.

    References
    ----------
    'basic': Pierquin et al. (2024), Proposition 2.2. 'tight': Canonne, Kamath and
    Steinke (2020), The discrete Gaussian for differential privacy, Proposition 12.

    Examples
    --------
    >>> from skpuffer.privacy_loss import renyi_to_approximate
    >>> round(renyi_to_approximate(10, 0.3, 1e-5), 6)
    1.218011
    """
    orders, costs = _orders_and_costs(alpha, epsilon)
    delta = check_probability(delta=delta)
    check_option(("tight", "basic"), conversion=conversion)
    # Markov's inequality for exp((alpha - 1) loss) under the first distribution
    if conversion == "basic":
        value = costs + math.log(1 / delta) / (orders - 1)
    else:
        value = costs + conversion_terms(orders, delta)
    # Each order proves its own epsilon, so the smallest holds; a negative one is a
    # promise at zero.
    return max(0.0, float(np.min(value)))


def conversion_terms(orders: Floats, delta: float) -> Floats:
    """Return what the tight conversion adds to the Rényi cost at each order.

    Parameters
    ----------
    orders : ndarray of shape (n_orders,)
    delta : float

    Returns
    -------
    ndarray of shape (n_orders,)
        In nats; negative where the cost is more than is needed.
    """
    # Proposition 12, with delta = exp((alpha - 1) (cost - epsilon)) b for
    # b = (1 - 1/alpha)^(alpha - 1) / alpha, solved for epsilon
    with np.errstate(invalid="ignore"):
        terms = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (
            orders - 1
        )
    # a bounded loss: (epsilon, 0), whatever delta
    return np.where(np.isinf(orders), 0.0, terms)


def renyi_to_delta(alpha: ArrayLike, epsilon_renyi: ArrayLike, epsilon: float) -> float:
    """Smallest delta at which Rényi costs imply (epsilon, delta).

    The inverse of :func:`renyi_to_approximate` with ``conversion='tight'``.

    Parameters
    ----------
    alpha, epsilon_renyi : float or array-like of shape (n_orders,)
        Orders in (1, inf] and the cost at each, in nats.
    epsilon : float
        In nats.

    Returns
    -------
    delta : float
        In [0, 1].
    """
    orders, costs = _orders_and_costs(alpha, epsilon_renyi)
    # at order infinity the cost bounds every loss: none exceeds epsilon
    if np.any(costs[np.isinf(orders)] <= epsilon):
        return 0.0
    return float(np.exp(log_delta_of_orders(orders, costs, epsilon)))


def approximate_renyi_to_approximate(
    alpha: float,
    epsilon: float,
    delta_event: float,
    delta_conversion: float | None = None,
    conversion: str = "tight",
) -> tuple[float, float]:
    """Turn an approximate Rényi promise into an (epsilon, delta) one.

    Parameters
    ----------
    alpha, epsilon : float
        Order, and Rényi cost on the events where the promise holds.
    delta_event : float
        Mass outside of these events, for each pair of secrets.
    delta_conversion : float, default=None
        Delta of the conversion itself; None takes `delta_event` once more.
    conversion : {'tight', 'basic'}, default='tight'
        As in :func:`renyi_to_approximate`.

    Returns
    -------
    epsilon : float
    delta : float
        ``delta_event + (1 - delta_event) * delta_conversion``, or ``2 * delta_event``
        in the printed form (``conversion='basic'`` with `delta_conversion` None).

    References
    ----------
    Pierquin et al. (2024), Proposition 4.1.
    """
    delta_event = check_probability(delta_event=delta_event)
    if delta_conversion is None:
        epsilon = renyi_to_approximate(alpha, epsilon, delta_event, conversion)
        return epsilon, min(1.0, 2 * delta_event)
    # anything may happen outside the events, and inside them the conversion may fail
    delta_conversion = check_probability(delta_conversion=delta_conversion)
    epsilon = renyi_to_approximate(alpha, epsilon, delta_conversion, conversion)
    return epsilon, delta_event + (1 - delta_event) * delta_conversion
