"""Dominating pairs of one step of a release.

:class:`skpuffer.privacy_loss.PrivacyLossCurve` composes them. Those here need only the
exact trade-off of the noise, whatever its family: they hold the curve of the noise
against the step's shift, with `delta(epsilon)`, and ask it for multiples of that shift
by `times(k)`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import binom

from skpuffer.utils._plain import Plain
from skpuffer.utils._types import Floats, Integers

from ._protocols import HasDelta, NoiseCurve

__all__ = [
    "DominatingPair",
    "MixturePair",
    "MovedPair",
    "PoissonPair",
    "ReplacePoissonPair",
    "ShiftPair",
    "SubsetPair",
    "log_mixed",
    "participation",
]

#: Mass of a binomial tail that is not worth a term of its own.
_RARE = 1e-30


@lru_cache(maxsize=16)
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
    # Double until the tail beyond is rare. SciPy's `isf` would look up 1 - _RARE, which
    # is one in floating point.
    while last < trials and distribution.sf(last) > _RARE:
        last *= 2
    last = min(last, trials)
    times = np.arange(1, last + 1)
    weights = distribution.pmf(times)
    # The tail is put where divergences are largest: at all trials. Upper bounds stay
    # upper bounds.
    if last < trials:
        times, weights = (
            np.append(times, trials),
            np.append(weights, distribution.sf(last)),
        )
    times, weights = times[weights > 0], weights[weights > 0]
    for shared in (times, weights):
        shared.flags.writeable = False
    return times, weights


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
    # log(1 + q (exp(loss) - 1)), and for large losses, with exp(loss) taken out,
    # loss + log(q) + log(1 + (1 / q - 1) exp(-loss))
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
        costs: list[float] = self.curve.renyi(np.asarray(orders, dtype=float)).tolist()
        return costs


@dataclass(frozen=True)
class PoissonPair(DominatingPair, kind="poisson_pair"):
    """Dominating pair of a Poisson batch, adjacent by adding or removing a record.

    With P and Q the noise at distance one shift, the pair is (1 - q) Q + q P, the
    output with the record in the table, and Q, the output without it.

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
        """Return the divergence of the output with the record from that without."""
        # q P + (1 - q) Q - e^ε Q = q (P - e^ε' Q) for e^ε = 1 + q (e^ε' - 1)
        return self.rate * self._one(log_mixed(epsilon, 1 / self.rate))

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output without the record from that with."""
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
    """Dominating pair of a random subset of fixed size, adjacent by replacement.

    With either content of the record the output is a mixture, of the same weights, of
    a component in which the record is not drawn and one in which it is. The two
    components in which it is drawn are a shift away from the one they share, and from
    each other. That bounds both directions by the same curve. To compose the two
    directions of :class:`PoissonPair` apart would be false here (Lebeda, Regehr,
    Kamath and Steinke, 2024).

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

    # `delta` is that of the Poisson pair: q delta(e') by advanced joint convexity.
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
        # advanced joint convexity about the shared component w_0 N, and convexity over
        # the numbers of times j
        times, weights = participation(self.trials, self.chance)
        parts = zip(times.tolist(), weights, strict=True)
        total: Floats = sum(weight * self._one(at, j) for j, weight in parts)
        return total


#: Shares of the batches without the record by which a bound is looked for.
_SHARES = (0.0, 1e-3, 0.01, 0.05, 0.2, 1.0)


@dataclass(frozen=True)
class MovedPair(DominatingPair, kind="moved_pair"):
    """Dominating pair of random batches in which a record's gradient moves a little.

    With weight w_j a batch holds the record j times (or j records of a group); against
    the batches of weight w_0 without it the sum moves by j times one shift, and against
    those with its other content by j times another. For Q = 1 - w_0, any e between e'
    and ``log(1 + (exp(e') - 1) / Q)`` and b = exp(e' - e), delta(e') is at most the sum
    over j >= 1 of ``w_j ((1 - b) delta_j(e) + b moved_j(e))``; the least is taken.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move from one content of the record to the other.
    joined : ShiftCurve
        Of the noise against the move of a step's sum by a record that joins.
    trials : int
    chance : float
        The number of times is Binomial(trials, chance).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2. At the largest e it is applied to the
    whole mixture; at a smaller one to a share of its part without the record, as what
    is left of that is in both mixtures, and its divergence is none.
    """

    joined: NoiseCurve
    trials: int
    chance: float

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        epsilon = np.asarray(epsilon, float)
        rate = -math.expm1(self.trials * math.log1p(-self.chance))
        furthest = log_mixed(epsilon, 1 / rate)
        times, weights = participation(self.trials, self.chance)
        least = np.full_like(epsilon, math.inf)
        for share in _SHARES:
            at = epsilon + share * (furthest - epsilon)
            both = np.exp(epsilon - at)
            total = np.zeros_like(epsilon)
            for weight, j in zip(weights, times.tolist(), strict=True):
                joined = self.joined if j == 1 else self.joined.times(j)
                total += weight * (
                    (1 - both) * joined.delta(at) + both * self._one(at, j)
                )
            least = np.minimum(least, total)
        return least


@dataclass(frozen=True)
class ReplacePoissonPair(DominatingPair, kind="replace_poisson_pair"):
    """Dominating pair of a Poisson batch, adjacent by replacement.

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
        # e' is `epsilon`, e is `at`, and b is `both`: the weight, in what is compared
        # with, of the batch that holds the record's other content
        at = log_mixed(epsilon, 1 / self.rate)
        both = np.exp(epsilon - at)
        mean = (1 - both) * self._one(at) + both * self._one(at, 2)
        return self.rate * mean
