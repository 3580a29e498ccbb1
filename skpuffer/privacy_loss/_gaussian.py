"""The trade-off of two unit Gaussians at distance mu, in one place.

Noise families and certificates both need it, so it stands below either.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np
from scipy.special import log_ndtr

from skpuffer.kernel.numbers import (
    Floats,
    Numbers,
    check_non_negative,
    check_order,
    check_probability,
    check_real,
)
from skpuffer.utils._plain import Plain
from skpuffer.utils._solve import largest_argument, root_above


@overload
def gaussian_delta(epsilon: float, mu: float) -> float: ...


@overload
def gaussian_delta(epsilon: Floats, mu: Numbers) -> Floats: ...


@overload
def gaussian_delta(epsilon: Numbers, mu: Floats) -> Floats: ...


def gaussian_delta(epsilon: Numbers, mu: Numbers) -> Numbers:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1) at exp(epsilon).

    Parameters
    ----------
    epsilon : float or ndarray
        In nats; negative values are meaningful.
    mu : float or ndarray
        Distance of the means in standard deviations, in [0, inf]. Arrays broadcast.

    Returns
    -------
    delta : float or ndarray
        In [0, 1].

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism, Theorem 8.
    """
    if isinstance(epsilon, float) and isinstance(mu, float):
        # solvers ask for single numbers by the thousand: spare them the arrays
        if mu == 0:
            return max(0.0, -math.expm1(epsilon)) if epsilon < 700 else 0.0
        if math.isinf(mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0 if epsilon > 0 else 1.0
        return float(_difference(epsilon, mu))
    epsilon, mu = np.asarray(epsilon, float), np.asarray(mu, float)
    # limits are put in afterwards: where mu or epsilon is infinite or zero, NaN comes
    # out
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = _difference(epsilon, mu)
        value = np.where(np.isinf(epsilon), np.where(epsilon > 0, 0.0, 1.0), value)
        value = np.where(mu == 0, np.maximum(0.0, -np.expm1(epsilon)), value)
        value = np.where(np.isinf(mu), 1.0, value)
    return float(value) if value.ndim == 0 else value


def _difference(epsilon: Numbers, mu: Numbers) -> Floats:
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)."""
    # Theorem 8 of Balle and Wang with mu the sensitivity over the standard deviation.
    first = log_ndtr(mu / 2 - epsilon / mu)
    # exp(epsilon) * Phi(...) in logarithms: the product is tame, its factors are not
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    # as exp(first) (1 - exp(second - first)), without the cancellation of two small
    # terms
    difference: Floats = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    return difference


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon >= 0 with ``gaussian_delta(epsilon, mu) <= delta``.

    Rounded up: the value returned never promises more than holds.
    """
    # no epsilon is needed where delta covers the total variation already
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    # the loss is N(mu²/2, mu²), so that P(loss > epsilon) <= delta at this upper end
    upper = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    if mu > 1e8:  # it is as good as exact, and the curve has lost its digits
        return upper * (1 + 1e-12)
    # bracketed by a point that misses delta and one that meets it
    return root_above(partial(gaussian_delta, mu=mu), delta, 0.0, upper)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu with ``gaussian_delta(epsilon, mu) <= delta``, rounded down."""
    mu = largest_argument(partial(gaussian_delta, epsilon), delta, 1.0)
    # evaluated once more, as it is by whoever asks the curve: down is the safe side
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-12
    return mu


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
