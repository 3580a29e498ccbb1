"""First and second moments of bounded columns: what a record adds, and reading back."""

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.utils._bounds import Bounds

from ._reach import Reach, stacked_reach

__all__ = [
    "MINIMAL_VARIANCE",
    "Moments",
    "bounded_variance",
    "column_means",
    "column_moments",
]

#: Smallest share of the squared half-range that a positive variance is given.
MINIMAL_VARIANCE = 1e-6

# One column, u in [-1, 1]. Alone, the squared l2 norm of (u, u^2 - 1/2) is u^4 + 1/4
# and its l1 norm |u| + |u^2 - 1/2|, both largest at |u| = 1. Apart, with d = |u - v|
# and s = |u + v| <= 2 - d: the squared l2 norm is d^2 (1 + s^2) <= d^2 (1 + (2 - d)^2),
# largest at d = 2, and the l1 norm d (1 + s) <= d (3 - d), largest at d = 3/2.
_REACH = {
    1: Reach(
        alone={1.0: 1.0, 2.0: 1.0, math.inf: 1.0},
        apart={1.0: 2.0, 2.0: 2.0, math.inf: 2.0},
    ),
    2: Reach(
        alone={1.0: 1.5, 2.0: math.sqrt(1.25), math.inf: 1.0},
        apart={1.0: 2.25, 2.0: 2.0, math.inf: 2.0},
    ),
}


@dataclass(frozen=True)
class Moments:
    """A record's part in the first moments of columns, or the first and the second.

    With ``u = (clip(x) - middle) / half`` in [-1, 1], a record adds u, and
    ``u**2 - 1/2`` for second moments: centred, because a smaller range takes less
    noise and the constant is public.

    Parameters
    ----------
    positions : tuple of int
        Columns of the encoded table.
    bounds : Bounds
        Of these columns.
    order : {1, 2}
        Up to which moment.
    """

    positions: tuple[int, ...]
    bounds: Bounds
    order: int = 1

    @property
    def dim(self):
        """Number of coordinates: all first moments, then all second ones."""
        return self.order * len(self.positions)

    @property
    def units(self):
        """Units of the coordinates: half-ranges, then their squares."""
        half = self.bounds.half
        return tuple(
            np.concatenate([half**k for k in range(1, self.order + 1)]).tolist()
        )

    @property
    def reach(self):
        """See :class:`Reach`."""
        return stacked_reach([_REACH[self.order]] * len(self.positions))

    def __call__(self, X, y=None):
        """Contributions, of shape (n, dim)."""
        u = self.bounds.normalise(np.asarray(X)[:, list(self.positions)])
        return u if self.order == 1 else np.hstack([u, u**2 - 0.5])

    def means(self, first):
        """Means in data units from first moments, of shape (..., n_columns)."""
        return self.bounds.middle + self.bounds.half * first

    def variances(self, first, second, least=0.0):
        """Variances in data units from moments; see :func:`bounded_variance`."""
        share = bounded_variance(first, second, least)
        return self.bounds.half**2 * share


def bounded_variance(first, second, least=0.0):
    """Variance of u in [-1, 1] from noisy moments, projected to what is possible.

    Parameters
    ----------
    first : ndarray
        Mean of u.
    second : ndarray
        Mean of ``u**2 - 1/2``.
    least : float or ndarray, default=0.0
        Public lower limit, in [0, 1].

    Returns
    -------
    variance : ndarray
        In [least, 1]; NaN stays NaN.

    Examples
    --------
    >>> from skpuffer.summary._moments import bounded_variance
    >>> float(bounded_variance(0.5, 0.0))
    0.25
    """
    return np.clip(second + 0.5 - np.square(first), np.minimum(least, 1.0), 1.0)


def column_means(X, y=None):
    """Exact means: a query without bounds."""
    return np.asarray(X, dtype=float).mean(axis=0)


def column_moments(X, y=None):
    """Exact means, then exact standard deviations: a query without bounds."""
    X = np.asarray(X, dtype=float)
    return np.concatenate([X.mean(axis=0), X.std(axis=0)])
