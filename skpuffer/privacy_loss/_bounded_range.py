"""What a mechanism of bounded range costs: the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.kernel.numbers import check_positive
from skpuffer.utils._plain import Plain

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats

__all__ = ["BoundedRangePair"]

# What rounding may take off a cost, in units of the range.
_DIGITS = 1e-14


@dataclass(frozen=True)
class BoundedRangePair(Plain, kind="bounded_range_pair"):
    """Dominating pair of a mechanism whose privacy loss lies in a bounded range.

    Between any two neighbouring tables the losses of all outputs lie in an interval of
    length `eta`, which may lie anywhere. That is so of the exponential mechanism where
    the scores of all candidates move by amounts of a range of `eta` in units of the
    scale. It is eta-differentially private, and costs less than that in any other form.

    Parameters
    ----------
    eta : float
        Length of the interval, in nats.

    Notes
    -----
    A loss L in [t - eta, t] has a mean of exp(L) of one under the second distribution,
    and divergences are means of convex functions of exp(L): they are largest where L
    takes the two ends only. At exp(e) the mean is ``(1 - exp(t - eta)) (1 - exp(e - t))
    / (1 - exp(-eta))``, which is largest at t = (eta + e) / 2. At the order a it is
    largest where exp(t) is ``(a - 1) (exp(eta) - exp(-(a - 1) eta)) / (a (1 - exp(-(a -
    1) eta)))``. The largest of convex functions is one, so some pair has these
    divergences and dominates; the interval may lie the other way round as well.

    References
    ----------
    Durfee and Rogers (2019), Practical differentially private top-k selection with
    pay-what-you-get composition; Dong, Durfee and Rogers (2020), Optimal differential
    privacy composition for exponential mechanisms, Lemma 3.2.

    Examples
    --------
    >>> from skpuffer.privacy_loss import BoundedRangePair
    >>> pair = BoundedRangePair(1.0)
    >>> float(pair.delta(1.0)), round(float(pair.delta(0.0)), 6)
    (0.0, 0.244919)
    """

    eta: float

    symmetric = True
    #: Some mechanism of such a range attains each divergence, but no one attains all.
    tight = False
    convex = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", check_positive(eta=self.eta))

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence at ``epsilon >= 0``."""
        left = np.minimum(np.asarray(epsilon, dtype=float) - self.eta, 0.0)
        value: Floats = np.expm1(left / 2) ** 2 / -np.expm1(-self.eta)
        return value

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost at an order, in nats."""
        return self.renyi_costs((alpha,))[0]

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, in nats."""
        eta, alpha = self.eta, np.asarray(orders, dtype=float)
        pure = np.isinf(alpha)
        rest = np.where(pure, 1.0, alpha) - 1 + pure  # any order will do there
        end = np.log(rest / (rest + 1)) + eta
        end += np.log(np.expm1(-(rest + 1) * eta) / np.expm1(-rest * eta))
        end = np.clip(end, 0.0, eta)
        # the mass at the lower end: (exp(t) - 1) / (exp(eta) - 1)
        low = np.exp(end - eta) * np.expm1(-end) / np.expm1(-eta)
        with np.errstate(divide="ignore"):
            cost = end + np.log1p(low * np.expm1(-rest * eta)) / rest
        cost = np.where(pure, eta, np.minimum(cost + _DIGITS * eta, eta))
        # a range of eta costs no more than alpha eta**2 / 8 (Hoeffding's lemma)
        least = np.minimum(cost, np.where(pure, np.inf, alpha * eta**2 / 8))
        costs: list[float] = least.tolist()
        return costs
