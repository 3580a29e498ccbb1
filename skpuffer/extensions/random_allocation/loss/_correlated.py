"""Dominating pair of one record in bins that are kept, under correlated noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import cast

import numpy as np

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import Pair, log_delta_of_orders
from skpuffer.kernel.distribution import Reversed
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.kernel.numbers import Floats, check_probability
from skpuffer.kernel.pairs import DominatingPair
from skpuffer.privacy_loss.allocation._lattice import least_epsilon

from ..strategies._base import NoiseStrategy
from ._bins import Bins
from ._blocks import block_delta
from ._chain import by_marks, chain_delta, chain_replaced_delta
from ._conditional import conditional_delta, conditional_epsilon
from ._renyi import ORDERS, closed_add_delta, renyi_allocation, unamplified_delta

#: Clip norms in units of the noise beyond which it is as good as none.
_SILENT = 1e8

_ORDERS = np.array(ORDERS, float)

#: Orders whose sums are products of matrices, and take no time: the best ones of large
#: epsilons, where chains of bins with much in common are loose.
_FEW_ORDERS = np.array([2.0, 3.0, 4.0])

#: Largest Rényi order at which counts are summed over for a cost.
_MOST_ORDER = 64

#: A chain's bound beyond which others than closed ones are not looked at.
_ROUNDED = 1e-7

#: Bounds by their names.
METHODS = ("best", "chain", "blocks", "closed", "renyi", "conditional", "unamplified")

#: Part of a target that pays for pasts on which conditional composition fails.
_SHARE = 0.5

#: Numbers of bins up to which blocks of them take part in the least of all bounds: of
#: more, chains have always been less.
_FEW_BINS = 50

#: Bounds that take no time.
_QUICK = ("closed", "unamplified")


@lru_cache(maxsize=256)
def _costs(bins: Bins, variance: float, few: bool) -> Floats:
    orders = _FEW_ORDERS if few else _ORDERS
    return renyi_allocation(bins.gram / variance, orders).remove


def _by_renyi(
    bins: Bins, variance: float, epsilon: Floats, few: bool = False
) -> Floats:
    """Bound by the Rényi divergences, in the direction in which a record is removed."""
    orders, costs = _FEW_ORDERS if few else _ORDERS, _costs(bins, variance, few)
    found = log_delta_of_orders(orders, costs, epsilon)
    return np.minimum(np.exp(found), 1.0)


# a promise is looked at once more after it was searched for
@lru_cache(maxsize=256)
def _by_conditions(
    bins: Bins, variance: float, epsilon: float, target: float, adding: bool
) -> float:
    """Bound by conditional composition, at one epsilon and in one direction."""
    if bins.stand_out(variance):
        return 1.0
    direction, noise = "add" if adding else "remove", math.sqrt(variance)
    return conditional_delta(bins.means, noise, epsilon, target, direction, _SHARE)


@dataclass(frozen=True)
class CorrelatedAllocationPair(DominatingPair, kind="correlated_allocation_pair"):
    """Dominating pair of a record in bins kept for a run, under correlated noise.

    The record is in bin i of b with probability 1 / b. With it ``C @ sums + Z`` is
    dominated by the mixture of N(m_i, sigma² I), where m_i is the most that the record
    adds to its rows. Without it N(0, sigma² I) dominates. The results are upper bounds.

    Parameters
    ----------
    curve : ShiftCurve
        Curve of Gaussian noise Z against the sum of a step's move by one record.
    strategy : NoiseStrategy
        How the noise of the steps is correlated.
    n_batches : int
        Number of bins b: a record of bin i takes part in the steps i, i + b, ...
    n_steps : int
        Any number: the last epoch may be cut short.
    replaced : bool, default=False
        Whether one record is replaced by another, else added or removed.
    method : str, default='best'
        The bound by name; 'best' is the least of all. See
        :class:`~skpuffer.accountants.RandomAllocation`. Directions without a bound of
        the method take 'unamplified'.
    target : float, default=None
        Delta for which 'conditional' is made. Half of it is paid in any case, so no
        divergence is less than that.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemma 2.8. Kahane (1985), Sur le chaos
    multiplicatif (adaptive gradients of any dimension, and raised covariances).

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.noise.strategies import banded_square_root
    >>> from skpuffer.privacy_loss.allocation import CorrelatedAllocationPair
    >>> curve, strategy = GaussianNoise(scale=2.0).curve(1.0), banded_square_root(4)
    >>> pair = CorrelatedAllocationPair(
    ...     curve, strategy, n_batches=20, n_steps=40, method="closed"
    ... )
    >>> round(float(pair.reverse(np.array(0.5))), 4)
    0.0663
    """

    strategy: NoiseStrategy
    n_batches: int
    n_steps: int
    replaced: bool = False
    method: str = "best"
    target: float | None = None

    tight = False
    # the least of several bounds
    convex = False

    def __post_init__(self) -> None:
        if self.curve.gaussian_mu is None:
            raise value_error("allocation.curve_not_gaussian")
        if self.method not in METHODS:
            raise value_error(
                "allocation.method_unknown", methods=METHODS, method=self.method
            )
        if self.method != "conditional":
            return
        if self.replaced:
            raise value_error("allocation.conditional_with_replaced")
        if self.target is None:
            raise value_error("allocation.conditional_target_missing")
        check_probability(target=self.target)

    @property
    def symmetric(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether both directions have the same divergences."""
        return self.replaced or self.n_batches == 1

    def delta(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output with the record from that without."""
        return self._least(epsilon, adding=False)[0]

    def reverse(self, epsilon: Floats) -> Floats:
        """Return the divergence of the output without the record from that with."""
        return self._least(epsilon, adding=not self.symmetric)[0]

    def quick_reverse(self, epsilon: Floats) -> Floats:
        """Return a bound of `reverse` that takes no time, which may be one."""
        return self._least(epsilon, adding=not self.symmetric, quick=True)[0]

    def winner(self, epsilon: float) -> dict[str, str]:
        """Return the least bounds' names by direction: 'remove', 'add' or 'replace'."""
        if self.replaced:
            return {"replace": self._winner(epsilon, adding=False)}
        return {
            "remove": self._winner(epsilon, adding=False),
            "add": self._winner(epsilon, adding=True),
        }

    def _winner(self, epsilon: float, adding: bool) -> str:
        bounds = self._bounds(adding)
        if self._is_mixed and len(bounds) == 1:
            return next(iter(bounds))
        return self._least(np.array([float(epsilon)]), adding)[1]

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return bounds on the Rényi costs at many orders in nats."""
        return self._directed_costs(orders, adding=False)

    def _directed_costs(self, orders: tuple[float, ...], adding: bool) -> list[float]:
        alpha, gram = np.asarray(orders, float), self.scaled_gram
        # The divergence's exponential is jointly convex: with the bin known it is no
        # less, and the longest mean is the worst
        most = float(gram.diagonal().max())
        costs = alpha * most * (4 if self.replaced else 1) / 2
        known = alpha <= _MOST_ORDER
        if not self.symmetric and 0 < most < math.inf and known.any():
            found = renyi_allocation(gram, alpha[known])
            some = found.add if adding else found.remove
            costs[known] = np.minimum(costs[known], some)
        return costs.tolist()

    @property
    def directions(self) -> tuple[Pair, ...]:
        """The pair in each of its directions."""
        return (self,) if self.symmetric else (self, _Added(self))

    @property
    def is_rough(self) -> bool:
        """Whether its bounds take long and are far above the truth."""
        return self.method == "conditional"

    @property
    def scaled_gram(self) -> Floats:
        """Gram matrix of the bins' means, in units of the noise's variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._bins.gram / self._variance

    def least_epsilon(self, delta: float) -> float:
        """Return the least epsilon found to go with a delta, in both directions."""
        if self.method == "conditional" and self.n_batches > 1 and self._is_mixed:
            return self._conditional_epsilon(delta)
        return least_epsilon(self, delta)

    # -- bounds -------------------------------------------------------------------

    @property
    def _bins(self) -> Bins:
        return Bins(self.strategy, self.n_batches, self.n_steps)

    @property
    def _variance(self) -> float:
        mu = self.curve.gaussian_mu
        return math.inf if not mu else float(mu) ** -2

    @property
    def _moves(self) -> bool:
        """Whether a record moves anything at all."""
        return bool(self.curve.gaussian_mu) and bool(self._bins.gram.any())

    @property
    def _is_mixed(self) -> bool:
        """Whether a record moves something, and there is noise to hide it."""
        return self._moves and float(self.curve.gaussian_mu or 0.0) <= _SILENT

    def _least(
        self, epsilon: Floats, adding: bool, quick: bool = False
    ) -> tuple[Floats, str]:
        """Least bounds, and the name of the one that is least at the first epsilon."""
        epsilon = np.asarray(epsilon, float)
        if not self._is_mixed:
            moved = math.inf if self._moves else 0.0
            return np.asarray(gaussian_delta(epsilon, moved)), "unamplified"
        bounds: dict[str, Floats] = {"none": np.ones(epsilon.shape)} if quick else {}
        for name, bound in self._bounds(adding).items():
            if quick and name not in _QUICK:
                continue
            # sums over counts of high orders take longest, and are less only where a
            # chain's rounding is all that is left of its bound
            if name == "renyi" and bounds and bounds["chain"].min() > _ROUNDED:
                bound = partial(bound, few=True)
            bounds[name] = bound(epsilon=epsilon)
        names, values = list(bounds), np.array(list(bounds.values()))
        least = values.min(axis=0)
        return least, names[int(values.reshape(len(names), -1)[:, 0].argmin())]

    def _bounds(self, adding: bool) -> dict[str, Callable[..., Floats]]:
        """Bounds of a direction, by their names."""
        bins, variance = self._bins, self._variance
        gram = bins.gram / variance
        # what replaces a record moves each bin by twice its mean at most
        known = 4 * gram if self.replaced else gram
        cap: dict[str, Callable[..., Floats]] = {
            "unamplified": partial(unamplified_delta, known)
        }
        if self.n_batches == 1:
            return cap
        found: dict[str, Callable[..., Floats]] = {}
        if self.method == "conditional":
            return {"conditional": partial(self._conditional_delta, adding=adding)}
        if self.replaced:
            found["chain"] = partial(chain_replaced_delta, bins, variance)
        else:
            found["chain"] = partial(chain_delta, bins, variance, adding=adding)
        if adding:
            found["closed"] = partial(closed_add_delta, gram)
        elif not self.replaced:
            found["renyi"] = partial(_by_renyi, bins, variance)
        asked = self.method == "blocks" or self.n_batches <= _FEW_BINS
        if asked and not self.replaced:
            found["blocks"] = partial(block_delta, bins, variance, adding=adding)
        if self.method == "best":
            return found | cap
        # of a record that is added, sums over counts say less than the closed form
        name = "closed" if adding and self.method == "renyi" else self.method
        return {name: found[name]} if name in found else cap

    def _conditional_delta(self, epsilon: Floats, adding: bool) -> Floats:
        target = float(cast(float, self.target))

        def delta_at(epsilon: float) -> float:
            return _by_conditions(self._bins, self._variance, epsilon, target, adding)

        # what is left beside the price of failures is soon nothing
        return by_marks(delta_at, epsilon, 1.001 * _SHARE * target)

    def _conditional_epsilon(self, delta: float) -> float:
        share = _SHARE * float(cast(float, self.target)) / delta
        if share >= 1 or self._bins.stand_out(self._variance):
            return math.inf
        noise = math.sqrt(self._variance)
        return conditional_epsilon(self._bins.means, noise, delta, share=share)


@dataclass(frozen=True)
class _Added(Reversed):
    """The pair without the record first."""

    pair: CorrelatedAllocationPair

    def renyi_costs(self, orders: tuple[float, ...]) -> list[float]:
        """Return bounds on the Rényi costs at many orders in nats."""
        return self.pair._directed_costs(orders, adding=True)
