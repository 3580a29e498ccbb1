"""What a secret value tells about other records: divergences between rows of tables.

A table of laws has one row for each value of the protected record: the law, given that
value, of the records one looks at. How much these tell is a matrix over pairs of rows.
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["TOTAL_VARIATION", "RenyiInfluence", "VariationInfluence", "measure_of"]

#: Asks for total variation in place of a Rényi order.
TOTAL_VARIATION = "total_variation"

#: Masses below it count as zero in denominators: their digits are not to be trusted.
_TINY = 1e-280

#: Entries of an intermediate array held at once.
_BLOCK = 2**20

_ULP = 2.0**-52


def measure_of(order):
    """Return how influence is measured.

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
    """Rényi divergence between rows; independent parts add up.

    Parameters
    ----------
    alpha : float
        In (1, inf].
    """

    alpha: float

    def table(self, laws, possible):
        """Return what later questions need of a table: its divergences.

        Parameters
        ----------
        laws : ndarray of shape (..., k, v)
            Each row a law.
        possible : bool ndarray of shape (..., k, v)
            Where a law has mass, however little: masses underflow, this does not.

        Returns
        -------
        ndarray of shape (..., k, k)
            Of row z from row y at [..., z, y]; infinite where z has mass and y none.
        """
        shape = laws.shape[:-2]
        laws = laws.reshape(-1, *laws.shape[-2:])
        possible = np.broadcast_to(possible, (*shape, *laws.shape[1:]))
        possible = possible.reshape(laws.shape)
        _, k, v = laws.shape
        step = max(1, _BLOCK // (k * k * v))
        parts = [
            self._block(laws[at : at + step], possible[at : at + step])
            for at in range(0, len(laws), step)
        ]
        found = np.concatenate(parts) if parts else np.zeros((0, k, k))
        return found.reshape(*shape, k, k)

    def _block(self, laws, possible):
        low = laws < _TINY
        log = np.log(np.where(low, _TINY, laws))
        log_p = np.where(possible, log, -math.inf)[:, :, None, :]
        log_q = log[:, None, :, :]
        if math.isinf(self.alpha):
            value = (log_p - log_q).max(axis=-1)
        else:
            rest = self.alpha - 1
            terms = self.alpha * log_p - rest * log_q
            top = terms.max(axis=-1)
            top = np.where(np.isfinite(top), top, 0.0)  # a value that never occurs
            total = np.exp(terms - top[..., None]).sum(axis=-1)
            with np.errstate(divide="ignore"):
                value = (np.log(total) + top) / rest
        never = (possible[:, :, None, :] & low[:, None, :, :]).any(axis=-1)
        return np.where(never, math.inf, np.maximum(value, 0.0))

    def one(self, table):
        """Return the matrix over pairs of rows, of shape (..., k, k)."""
        return table

    def joint(self, first, second):
        """Return it for two parts that are independent given the protected record."""
        return first + second

    def error(self, n_states, steps, drift=0.0):
        """Bound what is wrong with a value: rounding in `steps` products, and drift.

        Parameters
        ----------
        n_states : int
            Length of the sums.
        steps : int or ndarray
        drift : float, default=0.0
            Relative error of masses beyond rounding.
        """
        amplified = 2.0
        if not math.isinf(self.alpha):
            amplified = (2 * self.alpha - 1) / (self.alpha - 1)
        return amplified * (relative_error(n_states, steps) + drift)


@dataclass(frozen=True)
class VariationInfluence:
    """Total variation between rows; of two independent parts exactly, by products."""

    def table(self, laws, possible):
        """Return what later questions need of a table: the table."""
        return laws

    def one(self, table):
        """Return the matrix over pairs of rows, of shape (..., k, k)."""
        shape, (k, v) = table.shape[:-2], table.shape[-2:]
        table = table.reshape(-1, k, v)
        step = max(1, _BLOCK // (k * k * v))
        parts = [
            np.abs(block[:, :, None, :] - block[:, None, :, :]).sum(axis=-1) / 2
            for block in (table[at : at + step] for at in range(0, len(table), step))
        ]
        found = np.concatenate(parts) if parts else np.zeros((0, k, k))
        return found.reshape(*shape, k, k)

    def joint(self, first, second):
        """Return it for two parts that are independent given the protected record."""
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

    def error(self, n_states, steps, drift=0.0):
        """Bound what is wrong with a value; as for Rényi divergences."""
        return 2 * (relative_error(n_states, steps) + drift)


def relative_error(n_terms, steps):
    """Bound the relative error of `steps` sums of products of non-negative numbers."""
    return (n_terms + 2) * (np.asarray(steps) + 4.0) * _ULP
