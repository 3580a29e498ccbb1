"""Privacy curves and what converts them, for any pair of distributions."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import value_error
from skpuffer.kernel.noise import gaussian_delta, gaussian_epsilon
from skpuffer.kernel.numbers import (
    Floats,
    Number,
    Numbers,
    check_non_negative,
    check_option,
    check_order,
    check_probability,
    check_real,
)
from skpuffer.kernel.plain import Plain


class PrivacyCurve(Protocol):
    """Privacy curve of one mechanism: its cost in every form of a promise."""

    @property
    def gaussian_mu(self) -> float | None:
        """The mu of mu-Gaussian privacy where that is the exact curve, else None."""

    def renyi(self, alpha: float) -> float:
        """Rényi cost at order `alpha`, in nats."""

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, rounded up."""

    def epsilon(self, delta: float) -> float:
        """Epsilon at `delta`, rounded up."""

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""


class BeliefCurve(ABC):
    """Base of curves under a declared belief."""

    @abstractmethod
    def without_belief(self) -> PrivacyCurve:
        """Return the curve of differential privacy, whatever is believed."""


class NoiseCurve(Protocol):
    """The exact curve of additive symmetric noise against one shift."""

    @property
    def gaussian_mu(self) -> float | None:
        """The shift in standard deviations where the noise is Gaussian, else None."""

    def renyi(self, alpha: Number) -> Number:
        """Rényi cost at one order or an array of orders."""

    def delta(self, epsilon: Number) -> Number:
        """Hockey-stick divergence at one epsilon or an array of them."""

    def times(self, factor: float) -> "NoiseCurve":
        """Return the curve of the same noise against a multiple of the shift."""

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""


class HasDelta(Protocol):
    """One direction of a pair of distributions."""

    def delta(self, epsilon: Floats) -> Floats:
        """Hockey-stick divergence of the first distribution from the second."""


class TradeOffs(HasDelta, Protocol):
    """Both trade-offs of a pair of distributions, at arrays of ``epsilon >= 0``."""

    def reverse(self, epsilon: Floats) -> Floats:
        """Hockey-stick divergence of the second distribution from the first."""


class Pair(TradeOffs, Protocol):
    """A dominating pair in one direction.

    It may have an exact `renyi(alpha)`, or `renyi_costs(orders)` for many at once.
    """

    def __hash__(self) -> int:
        """Equal pairs are accounted once."""

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the distributions have the same trade-off."""


class DescribedPair(Pair, Protocol):
    """A dominating pair that a certificate can list."""

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""


class PairFamily(Protocol):
    """Dominating pairs, one of which, not known which, dominates all steps."""

    def __hash__(self) -> int:
        """Equal families are accounted once."""

    @property
    def directions(self) -> tuple[Pair, ...]:
        """The pairs, each in both directions."""

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""


#: What a step of a composition is dominated by.
ComposedPair = DescribedPair | PairFamily

#: Dominating pairs, and how many releases or steps each one dominates.
Events = tuple[tuple[ComposedPair, int], ...]


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


#: Orders over which a curve known at every order is minimised.
DEFAULT_ORDERS = np.unique(
    np.concatenate([1 + 10 ** np.linspace(-3, 5, 161), np.arange(2.0, 257.0)])
)


def _orders_and_costs(alpha: ArrayLike, epsilon: ArrayLike) -> tuple[Floats, Floats]:
    alpha, epsilon = np.broadcast_arrays(
        np.asarray(alpha, float), np.asarray(epsilon, float)
    )
    if alpha.size == 0 or np.any(~(alpha > 1)) or np.any(~(epsilon >= 0)):
        raise value_error(
            "curve.orders_costs_out_of_range", alpha=alpha, epsilon=epsilon
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


@dataclass(frozen=True)
class GaussianCurve(Plain, kind="gaussian"):
    """The exact curve of two unit Gaussians at distance `mu` (mu-Gaussian privacy).

    Parameters
    ----------
    mu : float
        Distance of the means in standard deviations.

    Examples
    --------
    >>> from skpuffer.privacy_loss import GaussianCurve, compose_curves
    >>> curve = GaussianCurve(mu=0.3)
    >>> round(curve.epsilon(delta=1e-5), 3), round(curve.renyi(4.0), 3)
    (1.132, 0.18)
    >>> compose_curves([curve, GaussianCurve(mu=0.4)])
    GaussianCurve(mu=0.5)
    """

    # one number for the whole curve: composed steps are again Gaussian (Dong et al.
    # 2022)
    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_non_negative(mu=self.mu))

    @property
    def gaussian_mu(self) -> float:
        """The distance `mu`, whose squares add up under composition."""
        return self.mu

    def renyi(self, alpha: float) -> float:
        """Rényi cost at order `alpha`, in nats."""
        alpha = check_order(alpha=alpha)
        # else 0 * inf at the order inf
        return 0.0 if self.mu == 0 else alpha * self.mu**2 / 2

    def delta(self, epsilon: float) -> float:
        """Exact delta at `epsilon`."""
        return gaussian_delta(check_real(epsilon=epsilon), self.mu)

    def epsilon(self, delta: float) -> float:
        """Exact epsilon at `delta`, rounded up."""
        return gaussian_epsilon(check_probability(delta=delta), self.mu)
