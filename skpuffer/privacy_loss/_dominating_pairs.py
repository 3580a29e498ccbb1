"""Dominating pairs of one step of a release.

A pair is what :class:`skpuffer.privacy_loss.PrivacyLossCurve` composes. Those here are
made from the exact trade-off of the noise alone, whatever its family: they hold the
curve of the noise against the step's shift, with `delta(epsilon)`, and ask it for
multiples of that shift by `times(k)`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from skpuffer.utils._plain import Plain
from skpuffer.utils._types import Floats, Integers

from ._protocols import HasDelta, NoiseCurve

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


def participation(trials: int, chance: float) -> tuple[Integers, Floats]:
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
    distribution, last = binom(trials, chance), 8
    # `isf` goes by 1 - _RARE, which is one
    while last < trials and distribution.sf(last) > _RARE:
        last *= 2
    last = min(last, trials)
    times = np.arange(1, last + 1)
    weights = distribution.pmf(times)
    if last < trials:
        times, weights = (
            np.append(times, trials),
            np.append(weights, distribution.sf(last)),
        )
    return times[weights > 0], weights[weights > 0]


#: Below, the exponential of a loss is no float to fear for.
_LARGE = 300.0


def log_mixed(loss: Floats, q: float) -> Floats:
    """Log of 1 + q (exp(loss) - 1): the loss of a mixture with weight q.

    With 1 / q for q it is the inverse: the loss of what is mixed, given the mixture's.

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
class DominatingPair(Plain):
    """Dominating pair of a step whose sum moves by at most a shift.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    """

    curve: NoiseCurve

    symmetric = True
    #: Whether some gradients attain it, so that no smaller pair dominates.
    tight = False

    def _one(self, epsilon: Floats, times: int = 1) -> Floats:
        """Hockey-stick divergence of the noise from itself, `times` the shift away."""
        curve = self.curve if times == 1 else self.curve.times(times)
        return curve.delta(epsilon)

    # of the pairs that are symmetric; the others have their own
    def reverse(self: HasDelta, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class ShiftPair(DominatingPair, kind="shift_pair"):
    """Dominating pair of a step that every record takes part in."""

    tight = True

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        return self._one(epsilon)

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return the Rényi costs at many orders, in nats."""
        return self.curve.renyi(np.asarray(orders, dtype=float)).tolist()


@dataclass(frozen=True)
class PoissonPair(DominatingPair, kind="poisson_pair"):
    """Dominating pair of a Poisson batch, of adding or removing a record.

    With P and Q the noise at distance one shift, the pair is (1 - q) Q + q P, the world
    with the record, and Q, the world without.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    rate : float
        Probability q that a record is in the batch.

    References
    ----------
    Li, Qardaji and Su (2012); Balle, Barthe and Gaboardi (2018), Theorem 8; Zhu, Dong
    and Wang (2022), Proposition 30 (both directions).
    """

    rate: float

    symmetric = False
    tight = True

    def delta(self, epsilon: Floats) -> Floats:
        """Return the divergence of the world with the record from that without."""
        # q P + (1 - q) Q - e^ε Q = q (P - e^ε' Q) for e^ε = 1 + q (e^ε' - 1)
        return self.rate * self._one(log_mixed(epsilon, 1 / self.rate))

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the divergence of the world without the record from that with."""
        # Q - e^ε (q P + (1 - q) Q) = l (Q - e^ε' P) for l = 1 - (1 - q) e^ε and
        # e^ε' = q e^ε / l; nothing is left where l <= 0
        q = self.rate
        epsilon = np.asarray(epsilon, float)
        value = np.zeros_like(epsilon)
        inside = epsilon < -math.log1p(-q)
        epsilon = epsilon[inside]
        # 1 - (1 - q) exp(epsilon), without its cancellation
        left = -np.expm1(epsilon + math.log1p(-q))
        value[inside] = left * self._one(math.log(q) + epsilon - np.log(left))
        return value


@dataclass(frozen=True)
class SubsetPair(PoissonPair, kind="subset_pair"):
    """Dominating pair of a random subset of fixed size, of replacing a record.

    The world of either content is a mixture, with the same weight, of one in which the
    record does not take part and one in which it does; each of the latter is a shift
    away from the former, and from each other. That bounds both directions by the
    same curve. To compose the two directions of :class:`PoissonPair` apart would
    be false here (Lebeda, Regehr, Kamath and Steinke, 2024).

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    rate : float
        Probability that a record is in the batch.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 9; Zhu, Dong and Wang (2022),
    Section 4.2.
    """

    symmetric = True
    tight = False

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class MixturePair(DominatingPair, kind="mixture_pair"):
    """Dominating pair of a step in which records take part at random, several times.

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
        The number of times is Binomial(trials, chance).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 10.
    """

    trials: int
    chance: float

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        # Q = 1 - (1 - chance)^trials, the probability of any participation
        rate = -math.expm1(self.trials * math.log1p(-self.chance))
        at = log_mixed(epsilon, 1 / rate)
        times, weights = participation(self.trials, self.chance)
        parts = zip(times.tolist(), weights, strict=True)
        return sum(weight * self._one(at, j) for j, weight in parts)


@dataclass(frozen=True)
class ReplacePoissonPair(DominatingPair, kind="replace_poisson_pair"):
    """Dominating pair of a Poisson batch, of replacing a record.

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

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        at = log_mixed(epsilon, 1 / self.rate)
        both = np.exp(epsilon - at)
        mean = (1 - both) * self._one(at) + both * self._one(at, 2)
        return self.rate * mean
