"""What a mechanism of bounded privacy loss costs: a pure promise, and no more known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.kernel.numbers import check_positive
from skpuffer.utils._plain import Plain

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["PurePair"]

# What rounding may take off a cost, in units of epsilon.
_DIGITS = 1e-14


@dataclass(frozen=True)
class PurePair(Plain, kind="pure_pair"):
    """Dominating pair of a mechanism of which a pure promise is known: two answers.

    Whatever is epsilon-differentially private is post-processing of randomised
    response with the truth told at odds of exp(epsilon), for each pair of tables.

    Parameters
    ----------
    epsilon : float
        Largest privacy loss, either way, in nats.

    See Also
    --------
    BoundedRangePair : Costs less, where losses lie in an interval of that length.

    References
    ----------
    Kairouz, Oh and Viswanath (2015), The composition theorem for differential privacy,
    Theorem 2.5.

    Examples
    --------
    >>> from skpuffer.privacy_loss import PurePair
    >>> pair = PurePair(1.0)
    >>> float(pair.delta(1.0)), round(float(pair.delta(0.0)), 6)
    (0.0, 0.462117)
    """

    epsilon: float

    symmetric = True
    #: Randomised response attains it, but it is not what is run.
    tight = False
    convex = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(epsilon=self.epsilon))

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence at ``epsilon >= 0``."""
        # (exp(e0) - exp(e)) / (1 + exp(e0)), by its smaller exponents
        left = np.minimum(np.asarray(epsilon, dtype=float) - self.epsilon, 0.0)
        value: Floats = -np.expm1(left) / (1 + np.exp(-self.epsilon))
        return value

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order, in nats."""
        return self.renyi_costs((alpha,))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders.

        Parameters
        ----------
        orders : tuple of float
            In (1, inf].

        Returns
        -------
        costs : list of float
            In nats: ``log(cosh((alpha - 1/2) e) / cosh(e / 2)) / (alpha - 1)``, with e
            for epsilon.
        """
        e, alpha = self.epsilon, np.asarray(orders, dtype=float)
        pure = np.isinf(alpha)
        alpha = np.where(pure, 2.0, alpha)  # any order will do there
        with np.errstate(over="ignore"):
            # as a product of sines, which keeps the digits of small costs
            excess = 2 * np.sinh(alpha * e / 2) * np.sinh((alpha - 1) * e / 2)
            small = np.log1p(excess / np.cosh(e / 2))
        large = np.logaddexp(alpha * e, (1 - alpha) * e) - np.logaddexp(0, e)
        cost = np.where(alpha * e < 1, small, large) / (alpha - 1)
        costs: list[float] = np.where(
            pure, e, np.minimum(cost + _DIGITS * e, e)
        ).tolist()
        return costs
