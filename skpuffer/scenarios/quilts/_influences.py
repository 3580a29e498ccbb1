"""Max-influence: divergences between the rows of conditional distributions.

A table of distributions has one row for each value of the protected record: the
distribution of the records of a quilt given that value. The influence of the record on
them is a matrix over pairs of rows, and the max-influence its largest entry.
"""

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.kernel.numbers import Booleans, Floats, Indices

__all__ = ["TOTAL_VARIATION", "RenyiInfluence", "VariationInfluence", "measure_of"]

#: Asks for total variation in place of a Rényi order.
TOTAL_VARIATION = "total_variation"

#: Masses below it count as zero in denominators: their digits are not to be trusted.
_TINY = 1e-280

#: Entries of an intermediate array held at once.
_BLOCK = 2**20

_ULP = 2.0**-52


def measure_of(order: float | str) -> "RenyiInfluence | VariationInfluence":
    """Return the measure of influence: a Rényi divergence or total variation.

    Parameters
    ----------
    order : float or 'total_variation'
        A Rényi order in (1, inf], checked by the caller.
    """
    if order == TOTAL_VARIATION:
        return VariationInfluence()
    return RenyiInfluence(float(order))


@dataclass(frozen=True)
class RenyiInfluence:
    """Rényi divergence between rows; it adds up over independent parts.

    Parameters
    ----------
    alpha : float
        In (1, inf].
    """

    alpha: float

    def table(self, distributions: Floats, possible: Booleans) -> Floats:
        """Return the divergences of all pairs of rows of a table.

        Parameters
        ----------
        distributions : ndarray of shape (..., k, v)
            Each row a distribution.
        possible : bool ndarray of shape (..., k, v)
            Where a distribution has mass, however little: masses underflow, this does
            not.

        Returns
        -------
        ndarray of shape (..., k, k)
            Of row z from row y at [..., z, y]; infinite where z has mass and y none.
        """
        shape = distributions.shape[:-2]
        distributions = distributions.reshape(-1, *distributions.shape[-2:])
        possible = np.broadcast_to(possible, (*shape, *distributions.shape[1:]))
        possible = possible.reshape(distributions.shape)
        _, k, v = distributions.shape
        step = max(1, _BLOCK // (k * k * v))
        parts = [
            self._block(distributions[at : at + step], possible[at : at + step])
            for at in range(0, len(distributions), step)
        ]
        found = np.concatenate(parts) if parts else np.zeros((0, k, k))
        return found.reshape(*shape, k, k)

    def _block(self, distributions: Floats, possible: Booleans) -> Floats:
        # A mass that underflowed is taken at _TINY as a numerator, which rounds up, and
        # makes the divergence infinite as a denominator where the other has mass.
        low = distributions < _TINY
        log = np.log(np.where(low, _TINY, distributions))
        log_p = np.where(possible, log, -math.inf)[:, :, None, :]
        log_q = log[:, None, :, :]
        # axes: ..., z (numerator), y (denominator), outcome
        if math.isinf(self.alpha):
            value = (log_p - log_q).max(axis=-1)
        else:
            rest = self.alpha - 1
            # log of the sum of p^alpha q^(1 - alpha), by its largest term
            terms = self.alpha * log_p - rest * log_q
            top = terms.max(axis=-1)
            top = np.where(np.isfinite(top), top, 0.0)  # a value that never occurs
            total = np.exp(terms - top[..., None]).sum(axis=-1)
            with np.errstate(divide="ignore"):
                value = (np.log(total) + top) / rest
        never = (possible[:, :, None, :] & low[:, None, :, :]).any(axis=-1)
        return np.where(never, math.inf, np.maximum(value, 0.0))

    def one(self, table: Floats) -> Floats:
        """Return the matrix of divergences over pairs of rows, of shape (..., k, k)."""
        return table

    def joint(self, first: Floats, second: Floats) -> Floats:
        """Return the divergences of two parts that are independent given the record."""
        return first + second

    def error(
        self, n_states: int, steps: int | Indices, drift: float = 0.0
    ) -> float | Floats:
        """Bound of the numerical error of a divergence: round-off and drift.

        Parameters
        ----------
        n_states : int
            Length of the sums.
        steps : int or ndarray
        drift : float, default=0.0
            Relative error of masses beyond rounding.
        """
        # a relative error r of p and q moves log(p / q) by 2 r at most, and
        # log(sum p^alpha q^(1 - alpha)) / (alpha - 1) by (2 alpha - 1) / (alpha - 1) r
        amplified = 2.0
        if not math.isinf(self.alpha):
            amplified = (2 * self.alpha - 1) / (self.alpha - 1)
        return amplified * (relative_error(n_states, steps) + drift)


@dataclass(frozen=True)
class VariationInfluence:
    """Total variation between rows; of independent parts between their products."""

    def table(self, distributions: Floats, possible: Booleans) -> Floats:
        """Return the table itself: independent parts need all of it."""
        return distributions

    def one(self, table: Floats) -> Floats:
        """Return the matrix of total variations over pairs of rows, (..., k, k)."""
        shape, (k, v) = table.shape[:-2], table.shape[-2:]
        table = table.reshape(-1, k, v)
        step = max(1, 2 * _BLOCK // (k * k * v))
        found = np.zeros((len(table), k, k))
        # of two rows once, as it is symmetric
        first, second = np.triu_indices(k, 1)
        for at in range(0, len(table), step):
            block = table[at : at + step]
            gaps = block[:, first] - block[:, second]
            np.abs(gaps, out=gaps)
            found[at : at + step, first, second] = gaps.sum(axis=-1) / 2
        return (found + np.swapaxes(found, 1, 2)).reshape(*shape, k, k)

    def joint(self, first: Floats, second: Floats) -> Floats:
        """Return total variations of two parts, independent given the record."""
        # rows of the joint table are outer products of the parts' rows
        first, second = np.broadcast_arrays(first, second)
        shape, k = first.shape[:-2], first.shape[-2]
        first, second = first.reshape(-1, k, k), second.reshape(-1, k, k)
        step = max(1, _BLOCK // k**4)
        parts = [
            self.one(
                (
                    first[at : at + step, :, :, None]
                    * second[at : at + step, :, None, :]
                ).reshape(-1, k, k * k)
            )
            for at in range(0, len(first), step)
        ]
        found = np.concatenate(parts) if parts else np.zeros((0, k, k))
        return found.reshape(*shape, k, k)

    def error(
        self, n_states: int, steps: int | Indices, drift: float = 0.0
    ) -> float | Floats:
        """Bound of the numerical error of a total variation."""
        # masses are off by r p and r q, so half of the sum of |p - q| by r; twice that
        return 2 * (relative_error(n_states, steps) + drift)


def relative_error(n_terms: int, steps: int | Indices) -> float | Floats:
    """Relative round-off of `steps` sums of products of non-negative numbers."""
    return (n_terms + 2) * (np.asarray(steps) + 4.0) * _ULP
