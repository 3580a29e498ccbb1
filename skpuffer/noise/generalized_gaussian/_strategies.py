"""Bounding strategies for the costs of a shift under generalised Gaussian noise.

Which one applies follows from the shape and from the norm that bounds the shift. Each
offers the costs of unit noise as functions of one magnitude u.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.noise._base import Evidence, MagnitudeNoise
from skpuffer.privacy_loss._envelopes import Hull, hull
from skpuffer.utils._solve import largest_argument, root_below
from skpuffer.utils._types import Floats, Numbers

from . import _loss as loss
from ._renyi import renyi
from ._splits import euclidean_trade_off, split_renyi, split_trade_off

__all__ = ["Euclidean", "OneCoordinate", "Splits", "Twin"]

#: Largest ratio of beta-norm and l2 norm of a displacement at which equal splits are
#: computed. Beyond, the bound by the l2 norm alone serves.
_LENGTHENED = 1.5

_FOUND = Statement("assume.worst_direction_numerical")


@dataclass(frozen=True)
class Twin:
    """Costs of the Laplace or Gaussian noise that this noise is, for beta = 1 and 2.

    Parameters
    ----------
    noise : MagnitudeNoise
        Of scale one.
    factor : float
        Ratio of the scale here to its scale: u is so much larger in its units.
    """

    noise: MagnitudeNoise
    factor: float

    _evidence: ClassVar[Evidence] = ((), ())

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        return self.noise._renyi(alpha, self.factor * np.asarray(u, float))

    def _delta(self, epsilon: Numbers, u: Numbers) -> Numbers:
        """Return the hockey-stick divergence; arrays broadcast."""
        return self.noise._delta(epsilon, self.factor * np.asarray(u, float))

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        return self.noise._epsilon(delta, self.factor * u)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        """Return the largest u that costs at most epsilon, rounded down."""
        return self.noise._u_for(alpha, epsilon) / self.factor

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Return the largest u that obeys (epsilon, delta), rounded down."""
        return self.noise._u_for_delta(epsilon, delta) / self.factor


@dataclass(frozen=True)
class OneCoordinate:
    """Exact costs of one coordinate that moves by u, or of several by u in the l1 norm.

    For a log-concave density the trade-off of a shift by a composed with that of
    a shift by b is that of a shift by a + b, and two coordinates can be moved one after
    the other: no split of an l1 norm costs more than one coordinate.
    """

    beta: float

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return (), ()

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        return renyi(alpha, u, self.beta)

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Return the hockey-stick divergence; arrays broadcast."""
        return loss.hockey_stick(epsilon, u, self.beta)

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        return loss.hockey_stick_epsilon(delta, u, self.beta)

    def _u_for(self, alpha: float, epsilon: float) -> float:
        """Return the largest u that costs at most epsilon, rounded down."""
        if math.isinf(alpha):
            raise ValueError(Statement("shaped.beta_no_pure_epsilon", beta=self.beta))
        return largest_argument(
            lambda u: float(self._renyi(alpha, u)), epsilon, start=1.0
        )

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Return the largest u that obeys (epsilon, delta), rounded down."""
        return largest_argument(
            lambda u: float(self._delta(epsilon, u)), delta, start=1.0
        )


@dataclass(frozen=True)
class _Tabulated(OneCoordinate):
    """Bounding strategy whose trade-off is a hull, computed for each u."""

    def _table(self, u: float) -> Hull:
        raise NotImplementedError

    def _delta(self, epsilon: Numbers, u: Numbers) -> Floats:
        """Return the hockey-stick divergence at epsilons of any shape."""
        # nothing moves, or nothing is hidden: no table is needed
        if u == 0 or math.isinf(u):
            return super()._delta(epsilon, u)
        return self._table(float(u)).delta(epsilon)

    def _epsilon(self, delta: float, u: float) -> float:
        """Return the smallest epsilon at one delta, rounded up."""
        if u == 0 or math.isinf(u):
            return super()._epsilon(delta, u)
        return self._table(float(u)).epsilon(delta)

    def _u_for_delta(self, epsilon: float, delta: float) -> float:
        """Return the largest u that obeys (epsilon, delta), rounded down."""
        # displacements of one coordinate are among those bounded
        most = OneCoordinate(self.beta)._u_for_delta(epsilon, delta)
        return root_below(lambda u: float(self._delta(epsilon, u)), delta, most)


@dataclass(frozen=True)
class Splits(_Tabulated):
    """Costs of a shift by u in the beta-norm (beta < 2) or the l2 norm (beta > 2).

    Trade-offs are the envelope of those of equal splits. Rényi costs are bounded with
    proof for beta < 2; for beta > 2 they are those of one coordinate, as the ratio
    D(v) / v^2 grew with v wherever it was computed.
    """

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return (() if self.beta < 2 else (_FOUND,), (_FOUND,))

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        # all in one coordinate: computed to be the worst, not proved
        if self.beta > 2:
            return renyi(alpha, u, self.beta)
        # number by number: each is a search, and cached
        each = np.vectorize(partial(split_renyi, beta=self.beta), otypes=[float])
        costs: Floats = each(alpha, u)
        return costs

    def _table(self, u: float) -> Hull:
        return split_trade_off(u, self.beta)


@dataclass(frozen=True)
class Euclidean(_Tabulated):
    """Costs of a shift by u in the l2 norm, for 1 < beta < 2.

    Parameters
    ----------
    beta : float
    lengthened : float
        Largest ratio of its beta-norm to its l2 norm; infinity if unknown.
    """

    lengthened: float = math.inf

    @property
    def _evidence(self) -> Evidence:
        """What is not proved, of Rényi costs and of trade-offs."""
        return ((), (_FOUND,) if self.lengthened <= _LENGTHENED else ())

    def _renyi(self, alpha: Numbers, u: Numbers) -> Floats:
        """Return the Rényi cost; arrays broadcast."""
        alpha, u = np.asarray(alpha, float), np.asarray(u, float)
        with np.errstate(over="ignore", invalid="ignore"):
            # D(v) <= alpha I v² / 2 in each coordinate, and the squares add up to u²
            cost = alpha * loss.fisher_information(self.beta) / 2 * u**2
        # its beta-norm is at most `lengthened` times u: another bound
        if self.lengthened <= _LENGTHENED:
            split = Splits(self.beta)._renyi(alpha, self.lengthened * u)
            cost = np.minimum(cost, split)
        return np.where(u == 0, 0.0, cost)

    def _table(self, u: float) -> Hull:
        table = euclidean_trade_off(u, self.beta)
        if self.lengthened > _LENGTHENED:
            return table
        # both bound the trade-off, so the smaller does at each epsilon
        return _smaller(table, split_trade_off(self.lengthened * u, self.beta))


@lru_cache(maxsize=64)
def _smaller(first: Hull, second: Hull) -> Hull:
    """Hull of the smaller of two bounds on one trade-off."""
    # An upper bound at the corners of both; between them the hull of a minimum is as
    # valid, since the trade-off itself is convex.
    marks = np.union1d(first.epsilons, second.epsilons)
    return hull(marks, np.minimum(first.log_delta(marks), second.log_delta(marks)))
