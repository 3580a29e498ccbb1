"""Partition selection: which of the keys that units hold leave, and what that costs."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import Statement, unsupported_error, value_error
from skpuffer.kernel.distribution import PrivacyLossCurve
from skpuffer.kernel.laplace import DiscreteLaplaceNoise
from skpuffer.kernel.noise import Noise, Shift
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    Indices,
    check_count,
    check_probability,
)
from skpuffer.kernel.pairs import PurePair
from skpuffer.kernel.releases import PublicContext, Release
from skpuffer.kernel.steps import Accounting, StepsOfRelease

#: A larger epsilon is read as this one: it would release hardly any more keys, and
#: probabilities of a float, times its exponential, would be wrong by more than below.
MOST_EPSILON = 8.0

#: Part of delta for the rounding of probabilities, and of the number that decides.
_ROUNDED = 2.0**-36


def keep_probability(counts: Indices, epsilon: float, delta: float) -> Floats:
    """Return how likely a key is released that so many units hold.

    The largest probabilities of which those of n and of n + 1 units are (epsilon,
    delta)-indistinguishable, either way, and that of none is zero: ``p(n + 1) =
    min(exp(e) p(n) + d, 1 - exp(-e) (1 - p(n) - d), 1)``, in closed form.

    Parameters
    ----------
    epsilon, delta : float
        Positive.

    Returns
    -------
    ndarray of float
        Non-decreasing in the counts.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam (2022), Differentially private partition
    selection, Theorem 1.
    """
    n = np.asarray(counts, dtype=float)
    odds = math.expm1(epsilon)
    # up to here the first bound is the least
    turn = math.log((odds + 2 * delta) / ((odds + 2) * delta)) / epsilon
    first = 1 + max(0, math.floor(turn))
    grown = delta * np.expm1(np.minimum(n, first) * epsilon) / odds
    rest = np.maximum(n - first, 0) * epsilon
    # what is not released shrinks, and more is taken off it than is left in the end
    kept = grown - np.expm1(-rest) * (1 - grown + delta / odds)
    return np.where(n > 0, np.clip(kept, 0.0, 1.0), 0.0)


@dataclass(frozen=True, kw_only=True)
class PartitionRelease(Release):
    """Partition release: keys that enough units hold, and nothing of the others.

    Parameters
    ----------
    n_records : int
        Number of units.
    delta : float
        Delta of one key whose count moves by `max_units`.
    max_keys : int, default=1
        How many keys a unit holds at most.
    max_units : int, default=1
        How many units differ at most.
    name : str, default='keys'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        Facts taken as public or true, in sentences; written in the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.kernel.partitions import keep_probability
    >>> from skpuffer.releases import PartitionRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = PartitionRelease(n_records=1000, delta=0.9e-5)
    >>> found = PrivacyLoss(1.0, 1e-5).calibrate(release, RecordScenario())
    >>> round(found.noise.scale, 2), found.certificate.delta
    (1.0, 1e-05)
    >>> keep_probability(np.array([1, 10, 20]), 1.0, 0.9e-5).round(3).tolist()
    [0.0, 0.115, 1.0]
    """

    #: What a certificate says of its last digits.
    last_digits: ClassVar[str] = "assume.keys_told_by_name"

    n_records: int
    delta: float
    max_keys: int = 1
    max_units: int = 1
    name: str = "keys"
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[Statement, ...] = field(default=(), compare=False)

    is_bounded = True
    is_integer = True
    dim: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        check_count(max_keys=self.max_keys)
        check_count(max_units=self.max_units)
        if check_probability(delta=self.delta) <= 2 * _ROUNDED:
            raise value_error("partition.delta_too_small", delta=self.delta)
        self._meet_context()

    def moves(self, relation: str) -> int:
        """Return how many keys one unit changes the count of, by one each."""
        return self.max_keys * (1 if relation == "add_remove" else 2)


class _OfCoins(float):
    """Mass of an event of coins, and not of tables."""


@dataclass(frozen=True)
class PartitionSteps(StepsOfRelease, kind=PartitionRelease):
    """The keys that units hold, each decided by itself; see the base class.

    Whether a key is released is (m e, d m / k)-differentially private if its count
    moves by m of at most k units. So it is post-processing of randomised response of
    ``m e``, but with probability ``d m / k`` it may tell all (Kairouz, Oh and Viswanath
    2015). All moves together are at most ``k * moves``. As ``-log(1 - d x)`` is convex,
    some key tells all with probability ``1 - (1 - d)**moves`` at most: the event.

    Beside it pure pairs compose. Keys whose moves add up to k are together randomised
    response of ``k e`` or less. The moves of one direction fill fewer than twice as
    many such bins as a unit has keys: of any two bins, the moves exceed k.
    """

    release: PartitionRelease

    #: The event is of coins of the mechanism.
    event_of_tables: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # one of the tables stays, and is refused
        if self.event == 0:
            moves = self.release.moves(self.relation)
            own = -math.expm1(moves * math.log1p(-self.release.delta))
            object.__setattr__(self, "event", _OfCoins(own))

    def check(self) -> None:
        """Refuse more units than counts are said to move by."""
        if self.count > self.release.max_units or type(self.event) is not _OfCoins:
            raise unsupported_error(
                "partition.several_records_differ",
                count=self.count,
                max_units=self.release.max_units,
            )

    def scaled(self, unit: Noise, scale: float) -> Noise:
        """Return discrete Laplace noise, cut off where delta allows."""
        return DiscreteLaplaceNoise(scale)

    def under(self, noise: Noise, max_memory: float) -> Accounting:
        """Compose the pairs of all keys that are moved."""
        if type(noise) is not DiscreteLaplaceNoise or noise.is_zero:
            raise unsupported_error("partition.other_noise", noise=noise)
        moves, units = self.release.moves(self.relation), self.release.max_units
        bins = moves
        if units > 1:
            bins = (2 * self.release.max_keys - 1) * moves // self.release.max_keys
        pair = PurePair(units / noise.scale)
        curve = PrivacyLossCurve(((pair, bins),), float(max_memory))
        shift = Shift(1.0, norm=math.inf, dim=None, structure="scalar")
        statement = Statement(
            "assume.keys_of_units_limited",
            max_keys=self.release.max_keys,
            max_units=units,
            moves=moves,
        )
        source = Statement("source.optimal_partition_selection")
        return Accounting(curve, shift, source, False, ((), ()), (statement,))


def kept_keys(
    release: PartitionRelease, counts: Indices, noise: Noise, rng: np.random.Generator
) -> Booleans:
    """Draw which keys are released.

    Parameters
    ----------
    counts : ndarray of int of shape (n_keys,)
        Units that hold each key.
    noise : DiscreteLaplaceNoise
        As certified.

    Returns
    -------
    ndarray of bool of shape (n_keys,)
    """
    units = release.max_units
    epsilon = min(1 / float(np.max(noise.scale)), MOST_EPSILON / units)
    # what one unit may cost, where so many together cost delta
    share = math.expm1(epsilon) / math.expm1(units * epsilon)
    delta = (release.delta - _ROUNDED) * share
    chance = keep_probability(counts, epsilon, delta)
    kept: Booleans = rng.random(len(counts)) < chance
    return kept
