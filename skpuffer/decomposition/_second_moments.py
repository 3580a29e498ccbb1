"""First and second moments of rows in a ball: contributions, and reading back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.releases import Sensitivity, convert_norm
from skpuffer.schema import Number
from skpuffer.utils._bounds import Bounds
from skpuffer.utils._clipping import clip_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.schema import Schema

__all__ = ["MEAN_WEIGHT", "SecondMoments", "schema_norm", "usual_norm"]

#: Weight of the mean beside the second moments.
MEAN_WEIGHT = 0.5


@dataclass(frozen=True)
class SecondMoments:
    """Contribution of a record: its row, and its products less those of a sphere.

    With ``z = (x - centre) / radius``, scaled down to the unit ball where it is longer,
    a record adds ``w z`` and the upper triangle of ``z z' - I / d``, whose entries off
    the diagonal are multiplied by sqrt(2), so that its l2 norm is the Frobenius norm.

    Parameters
    ----------
    centre : tuple of float
        Public.
    radius : float
        Public, in the unit of the features.
    weight : float
        Weight w of the mean, at most sqrt(2); zero leaves it out.
    bounds : Bounds or None
        To which features are clipped first.
    """

    centre: tuple[float, ...]
    radius: float
    weight: float = MEAN_WEIGHT
    bounds: Bounds | None = None

    @property
    def n_features(self) -> int:
        """Number d of features."""
        return len(self.centre)

    @property
    def dim(self) -> int:
        """Number of coordinates: the mean, the diagonal, the rest by rows."""
        d = self.n_features
        return d * bool(self.weight) + d * (d + 1) // 2

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :class:`Sensitivity`.

        Let q be the squared length of a row, at most one. That of its contribution is
        ``w**2 q + q**2 - 2 q / d + 1 / d``, convex in q and so largest at an end. Two
        rows at an angle of cosine c are ``2 w**2 (1 - c) + 2 (1 - c**2)`` apart, the
        square of ``(2 + w**2) / sqrt(2)`` at ``c = -w**2 / 2``; shorter rows are no
        further apart, see :meth:`move`. In l1 each of both blocks is at most the root
        of its dimension times its l2 norm.
        """
        d, w = self.n_features, self.weight
        alone = max(1 - 1 / d, 1 / d)
        root, triangle = math.sqrt(d), math.sqrt(d * (d + 1) / 2)
        return Sensitivity(
            add_remove={
                1.0: w * root + triangle * math.sqrt(alone),
                2.0: math.sqrt(max(w**2 + 1 - 1 / d, 1 / d)),
            },
            replace={
                1.0: 2 * w * root + triangle * math.sqrt(2),
                2.0: (2 + w**2) / math.sqrt(2),
            },
        )

    def rows(self, X: Floats) -> Floats:
        """Rows in the unit ball, of shape (n, n_features)."""
        X = np.asarray(X, dtype=float)
        if self.bounds is not None:
            X = np.clip(X, self.bounds.low, self.bounds.high)
        clipped: Floats = clip_rows((X - np.asarray(self.centre)) / self.radius, 1.0)
        return clipped

    def __call__(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        z, d = self.rows(X), self.n_features
        first, second = np.triu_indices(d, 1)
        blocks = [z**2 - 1 / d, math.sqrt(2) * z[:, first] * z[:, second]]
        if self.weight:
            blocks.insert(0, self.weight * z)
        return np.hstack(blocks)

    def total(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Sum of the contributions by one product, of shape (dim,)."""
        z, d = self.rows(X), self.n_features
        products = z.T @ z
        blocks = [
            np.diag(products) - len(z) / d,
            math.sqrt(2) * products[np.triu_indices(d, 1)],
        ]
        if self.weight:
            blocks.insert(0, self.weight * z.sum(axis=0))
        return np.concatenate(blocks)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of each contribution to moves of its record's features.

        Clipping moves no two rows apart, so both are in the ball and t apart at most.
        With p their middle and e their difference the products move by ``p e' + e p'``,
        whose squared length ``2 (|p|**2 t**2 + (p e)**2)`` is largest where both are as
        long as can be, or where one is and they lie on a line: ``t**2 (2 - t**2 / 2)``
        or ``t**2 (2 - t)**2``.

        Parameters
        ----------
        gaps : ndarray of shape (n, n_features)
            Largest move of each feature.
        norm : float

        Returns
        -------
        ndarray of shape (n,)
        """
        if self.bounds is not None:
            gaps = np.minimum(gaps, 2 * self.bounds.half)
        w = self.weight
        # up to there both grow with t; further apart no two rows move it further
        furthest = min(2.0, math.sqrt(2 + w**2))
        t = np.minimum(np.linalg.norm(gaps, axis=1) / self.radius, furthest)
        square = t**2 * (w**2 + np.maximum(2 - t**2 / 2, (2 - t) ** 2))
        factor = convert_norm(1.0, 2.0, norm, self.dim)
        moves: Floats = factor * np.sqrt(square)
        return moves

    def moments(self, value: Floats, n_records: int) -> tuple[Floats, Floats]:
        """Mean of the rows and of their products, from a sum of contributions.

        Parameters
        ----------
        value : ndarray of shape (dim,)
        n_records : int

        Returns
        -------
        mean : ndarray of shape (n_features,)
            Zeros where it was left out.
        products : ndarray of shape (n_features, n_features)
            Symmetric.
        """
        d = self.n_features
        mean = np.zeros(d)
        if self.weight:
            mean, value = value[:d] / (self.weight * n_records), value[d:]
        products = np.zeros((d, d))
        products[np.triu_indices(d, 1)] = value[d:] / (math.sqrt(2) * n_records)
        products += products.T
        products[np.diag_indices(d)] = value[:d] / n_records + 1 / d
        return mean, products


def usual_norm(half: Floats, levels: int = 0) -> float:
    """Length that few rows exceed, by the bounds of their numbers alone.

    Two standard deviations above the mean square of the length of independent numbers
    that are uniform within their bounds: ``h**2 / 3`` each, with the variance
    ``4 h**4 / 45``. One number alone is never longer than its bounds.

    Parameters
    ----------
    half : ndarray of shape (n_numbers,)
        Half the range of each.
    levels : int, default=0
        Number of columns that are a one among zeros, of length one.

    Returns
    -------
    float
        Below the distance from the middle of the bounds to their corner.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.decomposition._second_moments import usual_norm
    >>> round(usual_norm(np.ones(100)) / 10, 2)
    0.63
    """
    largest = float(np.max(half, initial=0.0)) or 1.0
    squares = np.square(half / largest)  # which could overflow
    usual = squares.sum() / 3 + 2 * math.sqrt(4 * np.square(squares).sum() / 45)
    return math.hypot(math.sqrt(usual) * largest, math.sqrt(levels))


def schema_norm(schema: Schema) -> float:
    """Length that few rows of a schema exceed, its numbers scaled to [-1, 1]."""
    numbers = sum(isinstance(schema[name], Number) for name in schema.names)
    return usual_norm(np.ones(numbers), levels=len(schema) - numbers)
