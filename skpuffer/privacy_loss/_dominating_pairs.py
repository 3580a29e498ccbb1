"""Dominating pairs of one step of a release.

:class:`skpuffer.privacy_loss.PrivacyLossCurve` composes them. Those here need only the
exact trade-off of the noise, whatever its family: they hold the curve of the noise
against the step's shift, with `delta(epsilon)`, and ask it for multiples of that shift
by `times(k)`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skpuffer.kernel.numbers import Floats, Integers
from skpuffer.utils._plain import Plain

from ._participation import (
    log_mixed,
    participation,
    participation_of_subset,
    rare_participation,
)
from ._protocols import HasDelta, NoiseCurve
from ._quadrature import mixture_costs
from ._renyi import renyi_of_pair

__all__ = [
    "DominatingPair",
    "MixturePair",
    "MovedPair",
    "PoissonPair",
    "ReplacePoissonPair",
    "ShiftPair",
    "SubsetGroupPair",
    "SubsetPair",
]


@dataclass(frozen=True)
class DominatingPair(Plain):
    """Base of dominating pairs: of a step whose sum moves by at most a shift.

    No two tables that differ as the scenario says make the step's outputs more unlike
    each other than the pair's two distributions are. A subclass is a frozen dataclass
    with a method `delta`; where the divergences are not the same in both directions it
    says ``symmetric = False`` and has a method `reverse` of its own.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.

    Examples
    --------
    A pair of one's own says what its divergences are at arrays of epsilon:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import DominatingPair
    >>> @dataclass(frozen=True)
    ... class TwiceShifted(DominatingPair):
    ...     def delta(self, epsilon):
    ...         return self.curve.times(2).delta(epsilon)
    >>> pair = TwiceShifted(GaussianNoise(scale=2.0).curve(1.0))
    >>> round(float(pair.delta(np.array(1.0))), 4)
    0.1269
    >>> bool(pair.reverse(np.array(1.0)) == pair.delta(np.array(1.0)))
    True
    """

    curve: NoiseCurve

    symmetric = True
    #: Whether some gradients attain it, so that no smaller pair dominates.
    tight = False
    #: Whether the divergences are those of a pair, and no bounds on them that need not
    #: be convex in exp(epsilon).
    convex = True

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
    """Dominating pair of a step that every record takes part in.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.

    Examples
    --------
    >>> from skpuffer.noise import LaplaceNoise
    >>> from skpuffer.privacy_loss import PrivacyLossCurve, ShiftPair
    >>> pair = ShiftPair(LaplaceNoise(scale=10.0).curve(1.0))
    >>> pair.renyi_costs((float("inf"),))
    [0.1]
    >>> round(PrivacyLossCurve(((pair, 20),)).epsilon(delta=1e-5), 2)
    1.59
    """

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

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PoissonPair
    >>> pair = PoissonPair(GaussianNoise().curve(1.0), rate=0.5)
    >>> at = np.array([0.0, 0.5, 1.0])
    >>> pair.delta(at).round(4).tolist()
    [0.1915, 0.0799, 0.0289]
    >>> pair.reverse(at).round(4).tolist()  # no loss is above log(2) in this direction
    [0.1915, 0.0092, 0.0]
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
        out = math.log1p(-q) if q < 1 else -math.inf  # how likely it is left out
        inside = epsilon < -out
        epsilon = epsilon[inside]
        # 1 - (1 - q) exp(epsilon), without its cancellation
        left = -np.expm1(epsilon + out)
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

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import ShiftPair, SubsetPair
    >>> replaced = GaussianNoise(scale=2.0).curve(2.0)
    >>> pair = SubsetPair(replaced, rate=0.1)
    >>> round(float(pair.delta(np.array(0.5))), 6)
    0.002033
    >>> round(float(ShiftPair(replaced).delta(np.array(0.5))), 6)  # if all are drawn
    0.238422
    """

    # `delta` is that of the Poisson pair: q delta(e') by advanced joint convexity.
    symmetric = True
    tight = False

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the second from the first."""
        return self.delta(epsilon)


@dataclass(frozen=True)
class _MixedPair(DominatingPair):
    """Base of pairs of a step in which records take part at random, several times.

    With weight w_j the sum moves by j times the shift, and with w_0 not at all. For
    Q = 1 - w_0, delta(log(1 + Q (exp(e) - 1))) = sum over j >= 1 of w_j delta_j(e).
    """

    @property
    def _share(self) -> float:
        """Q, the probability that any of them takes part; one if batches are seen."""
        raise NotImplementedError

    def _times(self) -> tuple[Integers, Floats]:
        """Numbers of times from one, and their weights: upper bounds, tails lumped."""
        raise NotImplementedError

    def _rare(self) -> tuple[Integers, Floats]:
        """Numbers of times that :meth:`_times` lumps, and logs of their weights."""
        return np.arange(0), np.zeros(0)

    def delta(self, epsilon: Floats) -> Floats:
        """Return the hockey-stick divergence of the first from the second."""
        at = log_mixed(epsilon, 1 / self._share)
        # advanced joint convexity about the shared component w_0 N, and convexity over
        # the numbers of times j
        parts = zip(*(part.tolist() for part in self._times()), strict=True)
        total: Floats = sum(weight * self._one(at, j) for j, weight in parts)
        return total

    def renyi_costs(self, orders: tuple[float, ...]) -> Sequence[float]:
        """Return bounds on the Rényi costs at many orders, in nats."""
        mu = self.curve.gaussian_mu
        # of other noise no density is known here, only the trade-off
        if mu is None:
            return renyi_of_pair(self, orders).tolist()  # type: ignore[no-any-return]
        times, weights = self._times()
        rare, log_weights = self._rare()
        if len(rare):
            times, weights = times[:-1], weights[:-1]
        return mixture_costs(
            np.asarray(orders, float),
            self._share,
            mu * times,
            np.log(weights),
            mu * rare,
            log_weights,
        )


@dataclass(frozen=True)
class MixturePair(_MixedPair, kind="mixture_pair"):
    """Dominating pair of a step in which records take part at random, several times.

    With weight w_j the sum moves by j times the shift, and with w_0 not at all. For
    Q = 1 - w_0, delta(log(1 + Q (exp(e) - 1))) = sum over j >= 1 of w_j delta_j(e).
    For draws with replacement, j is how often a record of the group was drawn; for
    Poisson batches, how many of the group are in the batch.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum.
    trials : int
    chance : float
        The number of times is Binomial(trials, chance).

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorems 2 and 10. A group takes part like one
    record: in each draw that hits it an unchanged record may be drawn instead.

    Examples
    --------
    Each step draws 100 times, with replacement, from 1000 records:

    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import MixturePair, PrivacyLossCurve
    >>> replaced = GaussianNoise(scale=4.0).curve(2.0)
    >>> pair = MixturePair(replaced, trials=100, chance=0.001)
    >>> round(PrivacyLossCurve(((pair, 50),)).epsilon(delta=1e-5), 2)
    3.35
    """

    trials: int
    chance: float

    @property
    def _share(self) -> float:
        # 1 - (1 - chance)^trials
        return -math.expm1(self.trials * math.log1p(-self.chance))

    def _times(self) -> tuple[Integers, Floats]:
        return participation(self.trials, self.chance)

    def _rare(self) -> tuple[Integers, Floats]:
        return rare_participation(self.trials, self.chance)


@dataclass(frozen=True)
class SubsetGroupPair(_MixedPair, kind="subset_group_pair"):
    """Dominating pair of a random subset of fixed size, a group being replaced.

    As many of the group as are drawn move the sum. Where there are enough other
    records, those drawn may be exchanged for some of these, so that a batch without any
    of the group is shared by both tables. Where there are not, the bound is that of
    batches that are seen.

    Parameters
    ----------
    curve : ShiftCurve
        Of the noise against the move of a step's sum by one replaced record.
    n_records : int
    batch_size : int
    count : int
        Of the group, at most `n_records`.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Theorem 2.

    Examples
    --------
    A household of four among a thousand records, of which 100 are drawn at each step:

    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PrivacyLossCurve, SubsetGroupPair
    >>> replaced = GaussianNoise(scale=8.0).curve(2.0)
    >>> pair = SubsetGroupPair(replaced, n_records=1000, batch_size=100, count=4)
    >>> round(PrivacyLossCurve(((pair, 50),)).epsilon(delta=1e-5), 2)
    3.93
    """

    n_records: int
    batch_size: int
    count: int

    @property
    def _share(self) -> float:
        if self.batch_size > self.n_records - self.count:
            return 1.0
        return min(1.0, float(self._times()[1].sum()))

    def _times(self) -> tuple[Integers, Floats]:
        return participation_of_subset(self.n_records, self.count, self.batch_size)


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

    Examples
    --------
    Another secret moves a record's gradient by a tenth of the clip norm only, or to
    any other gradient:

    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import MovedPair
    >>> joined = GaussianNoise(scale=2.0).curve(1.0)
    >>> for move in (0.1, 2.0):
    ...     moved = GaussianNoise(scale=2.0).curve(move)
    ...     pair = MovedPair(moved, joined, trials=1, chance=0.1)
    ...     print(round(float(pair.delta(np.array(0.1))), 6))
    4.5e-05
    0.011041
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

    Examples
    --------
    A record that is replaced costs more than one that is added or removed:

    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy_loss import PoissonPair, ReplacePoissonPair
    >>> from skpuffer.privacy_loss import PrivacyLossCurve
    >>> one = GaussianNoise(scale=2.0).curve(1.0)
    >>> for kind in (PoissonPair, ReplacePoissonPair):
    ...     steps = PrivacyLossCurve(((kind(one, rate=0.1), 50),))
    ...     print(kind.__name__, round(steps.epsilon(delta=1e-5), 2))
    PoissonPair 1.65
    ReplacePoissonPair 3.91
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
