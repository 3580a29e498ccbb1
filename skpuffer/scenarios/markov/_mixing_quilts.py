"""Markov quilts of a chain, with influences bounded by its mixing time."""

import math
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.scenarios.quilts._influences import (
    RenyiInfluence,
    measure_of,
    relative_error,
)
from skpuffer.scenarios.quilts._sides import SideQuilts
from skpuffer.utils._types import Floats, Numbers

from ._chains import irreducible_stationary

__all__ = ["MixingQuilts", "mixing"]


class MixingQuilts(SideQuilts):
    """Markov quilts of one chain, with max-influences bounded by its mixing time.

    Two numbers of the chain suffice: its least stationary mass pi_min, and the gap g
    of its multiplicative reversibilisation. After t steps each mass is within a factor
    1 -+ exp(-g t / 2) / pi_min of the stationary one, wherever the chain began.

    Parameters
    ----------
    chain : ChainQuilts

    References
    ----------
    Song, Wang and Chaudhuri (2017), section 4.4.2. For finite orders and for total
    variation, what follows from a max-divergence: that of randomised response.
    """

    def __init__(self, chain: Any) -> None:
        super().__init__(chain.n_records, chain._protected_records())
        self._chain = chain
        self.least_mass, self.gap = mixing(chain.transition)

    def _measure(self, order):
        return _PureBound(measure_of(order))

    # one bound for all pairs of values
    def _compared(self):
        return np.ones((1, 1, 1), dtype=bool)

    @property
    def _settled(self):
        return 0

    def _bound(self, steps):
        # masses within 1 -+ r of the stationary ones: a log-ratio of at most
        # log((1 + r) / (1 - r)) = 2 artanh(r)
        off = np.exp(-self.gap * np.asarray(steps, float) / 2) / self.least_mass
        with np.errstate(invalid="ignore"):
            value = 2 * np.arctanh(np.where(off < 1, off, 0.0))
        return np.where(off < 1, value, math.inf)[:, None, None]

    def _after(self, measure, max_lag):
        return self._bound(np.arange(1, max_lag + 1))

    # By Bayes' rule an earlier record x given a later one z has, relative to its
    # marginal, the density P^t(x, z) / P(X_i = z): a ratio of two numbers that are each
    # within 1 -+ r of the stationary mass of z. Two such densities differ by twice the
    # log-ratio.
    def _before(self, measure, i, max_lag):
        return 2 * self._bound(np.arange(1, max_lag + 1))

    def _before_each(self, measure, a):
        return 2 * self._bound([a])

    def _error(self, measure, i, steps):
        return measure.error(1, 1)

    def approximate(self) -> "MixingQuilts":
        """Return itself."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": "mixing_markov_chain",
            "least_mass": self.least_mass,
            "gap": self.gap,
            "n_records": self.n_records,
        }


class _PureBound:
    """Bound of an influence in another measure from one of the max-divergence."""

    def __init__(self, measure: Any):
        self.measure = measure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PureBound) and self.measure == other.measure

    def __hash__(self) -> int:
        return hash((_PureBound, self.measure))

    def one(self, bound: Numbers) -> Numbers:
        """Return the bound in the measure wanted."""
        if not isinstance(self.measure, RenyiInfluence):
            # randomised response with this max-divergence has the most total variation
            return np.tanh(bound / 2)
        alpha = self.measure.alpha
        if math.isinf(alpha):
            return bound
        # Rényi divergence of randomised response, the largest for a max-divergence e:
        # log((e^(alpha e) + e^((1 - alpha) e)) / (1 + e^e)) / (alpha - 1)
        e = np.minimum(bound, 1e6)
        value = np.logaddexp(alpha * e, (1 - alpha) * e) - np.logaddexp(0, e)
        return np.where(bound < 1e6, np.minimum(value / (alpha - 1), bound), bound)

    def joint(self, first: Numbers, second: Numbers) -> Numbers:
        """Return the bound of two independent parts in the measure wanted."""
        return self.one(first + second)

    def error(self, n_states: int, steps: float) -> float:
        """Bound of the round-off of a value."""
        return self.measure.error(n_states, steps)


def mixing(transition: Floats) -> tuple[float, float]:
    """Least stationary mass, and spectral gap of the multiplicative reversibilisation.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        Row-stochastic.

    Returns
    -------
    least_mass, gap : float
        The gap is one less the second eigenvalue of P P*, with P* the chain in
        reversed time.

    Raises
    ------
    UnsupportedError
        If the chain is reducible or the gap is zero: it need not mix at all.
    """
    stationary = irreducible_stationary(transition)
    gap = 0.0
    if stationary is not None:
        root = np.sqrt(stationary)
        # the singular values of D^(1/2) P D^(-1/2) squared are the eigenvalues of P P*
        values = np.linalg.svd(root[:, None] * transition / root, compute_uv=False)
        second = values[1] if len(values) > 1 else 0.0
        gap = 1.0 - second**2 - relative_error(len(stationary), len(stationary))
    if gap <= 1e-9:
        raise UnsupportedError(Statement("markov.no_spectral_gap"))
    return float(stationary.min()), float(gap)
