"""Dominating pairs of one step of a release.

A pair is what :class:`skpuffer.privacy_loss.PrivacyLossCurve` composes. Those here are
made from the exact trade-off of the noise alone, whatever its family: they hold the
curve of the noise against the step's shift, with `delta(epsilon)`, and ask it for
multiples of that shift by `times(k)`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

__all__ = [
    "DominatingPair",
    "MixturePair",
    "PoissonPair",
    "ReplacePoissonPair",
    "ShiftPair",
    "SubsetPair",
    "log_mixed",
    "participation",
]

#: Mass of a binomial tail that is not worth a term of its own.
_RARE = 1e-30


def participation(trials, chance):
    """Support and weights of Binomial(trials, chance), the tail lumped at `trials`.

    Parameters
    ----------
    trials : int
    chance : float
        Of each trial.

    Returns
    -------
    times : ndarray of int
        From one. The last stands for all further ones as well, and is the largest
        possible, which is the worst.
    weights : ndarray of float
        Positive.
    """
    law, last = binom(trials, chance), 8
    # `isf` goes by 1 - _RARE, which is one
    while last < trials and law.sf(last) > _RARE:
        last *= 2
    last = min(last, trials)
    times = np.arange(1, last + 1)
    weights = law.pmf(times)
    if last < trials:
        times, weights = np.append(times, trials), np.append(weights, law.sf(last))
    return times[weights > 0], weights[weights > 0]


#: Below, the exponential of a loss is no float to fear for.
_LARGE = 300.0


def log_mixed(loss, q):
    """Log of 1 + q (exp(loss) - 1): of a mixture, and for 1 / q amplification undone.

    Parameters
    ----------
    loss : ndarray
        Not negative if q is above one.
    q : float
        Positive.
    """
    near = np.log1p(q * np.expm1(np.minimum(loss, _LARGE)))
    large = np.maximum(loss, _LARGE)
    far = large + np.log1p((1 / q - 1) * np.exp(-large)) + math.log(q)
    return np.where(loss < _LARGE, near, far)


@dataclass(frozen=True)
class DominatingPair:
    """A step whose sum moves by at most a shift when its batch holds the record.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    """

    curve: Any

    symmetric = True
    #: Whether some gradients attain it, so that no better bound is possible.
    tight = False

    def _one(self, epsilon, times=1):
        """Hockey-stick divergence of the noise moved by so many times the shift."""
        curve = self.curve if times == 1 else self.curve.times(times)
        return curve.delta(epsilon)

    def reverse(self, epsilon):
        """Return the hockey-stick divergence of the second law from the first."""
        return self.delta(epsilon)

    def to_dict(self):
        """Return plain data."""
        return {"pair": type(self).__name__, **self.curve.to_dict()}


@dataclass(frozen=True)
class ShiftPair(DominatingPair):
    """A step that every record takes part in."""

    tight = True

    def delta(self, epsilon):
        """Return the hockey-stick divergence of the first law from the second."""
        return self._one(epsilon)

    def renyi_costs(self, orders):
        """Return the Rényi costs at many orders, in nats."""
        return self.curve.renyi(np.asarray(orders, dtype=float)).tolist()


@dataclass(frozen=True)
class PoissonPair(DominatingPair):
    """A step in which the record takes part with a probability.

    The first law is that of the world with the record: (1 - q) Q + q P against Q.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    rate : float
        The probability q.

    References
    ----------
    Li, Qardaji and Su (2012); Balle, Barthe and Gaboardi (2018), Theorem 8; Zhu, Dong
    and Wang (2022), Proposition 30 (both directions).
    """

    rate: float

    symmetric = False
    tight = True

    def delta(self, epsilon):
        """Return the hockey-stick divergence of the world with the record."""
        return self.rate * self._one(log_mixed(epsilon, 1 / self.rate))

    def reverse(self, epsilon):
        """Return the hockey-stick divergence of the world without the record."""
        q = self.rate
        epsilon = np.asarray(epsilon, float)
        value = np.zeros_like(epsilon)
        inside = epsilon < -math.log1p(-q)
        epsilon = epsilon[inside]
        # 1 - (1 - q) exp(epsilon), without its cancellation
        left = -np.expm1(epsilon + math.log1p(-q))
        value[inside] = left * self._one(math.log(q) + epsilon - np.log(left))
        return value

    def to_dict(self):
        """Return plain data."""
        return {**super().to_dict(), "rate": self.rate}


@dataclass(frozen=True)
class SubsetPair(PoissonPair):
    """A step on a random subset, where the record takes another's place in it.

    The world of either content is a mixture, with the same weight, of one in which the
    record does not take part and one in which it does; each of the latter is a shift
    away from the former, and from each other. That bounds both directions by the
    same curve. To compose the two directions of :class:`PoissonPair` apart would
    be false here (Lebeda, Regehr, Kamath and Steinke, 2024).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 9; Zhu, Dong and Wang (2022),
    Section 4.2.
    """

    symmetric = True
    tight = False

    def reverse(self, epsilon):
        """Return the hockey-stick divergence of the second law from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class MixturePair(DominatingPair):
    """A step in which records of a group take part several times, or none.

    With weight w_j the sum moves by j times the shift, and with w_0 not at all. For
    Q = 1 - w_0, delta(log(1 + Q (exp(e) - 1))) = sum over j >= 1 of w_j delta_j(e).
    For draws with replacement, j is how often the record was drawn; for Poisson
    batches and groups, how many of the group are in the batch.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    trials : int
    chance : float
        The number of times is binomial with these two.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 10.
    """

    trials: int
    chance: float

    def delta(self, epsilon):
        """Return the hockey-stick divergence of the first law from the second."""
        rate = -math.expm1(self.trials * math.log1p(-self.chance))
        at = log_mixed(epsilon, 1 / rate)
        parts = zip(*participation(self.trials, self.chance), strict=True)
        return sum(weight * self._one(at, int(times)) for times, weight in parts)

    def to_dict(self):
        """Return plain data."""
        return {**super().to_dict(), "trials": self.trials, "chance": self.chance}


@dataclass(frozen=True)
class ReplacePoissonPair(DominatingPair):
    """A step of a Poisson batch, one record of which may be another.

    With b = exp(e' - e), where e' = log(1 + q (exp(e) - 1)), advanced joint convexity
    gives delta(e') = q ((1 - b) delta_1(e) + b delta_2(e)), where delta_2 is for twice
    the shift: from one content to the other.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum by one record.
    rate : float

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2.
    """

    rate: float

    def delta(self, epsilon):
        """Return the hockey-stick divergence of the first law from the second."""
        at = log_mixed(epsilon, 1 / self.rate)
        both = np.exp(epsilon - at)
        mean = (1 - both) * self._one(at) + both * self._one(at, 2)
        return self.rate * mean

    def to_dict(self):
        """Return plain data."""
        return {**super().to_dict(), "rate": self.rate}
