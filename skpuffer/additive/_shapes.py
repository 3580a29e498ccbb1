"""Shape functions: what an additive model says of one feature, or of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import isotonic_regression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpuffer.kernel.numbers import Floats, Indices

__all__ = ["ShapeFunction", "additive_scores", "cell_labels", "monotone"]


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """Score that an additive model adds for the cells of a feature, or of a pair.

    Parameters
    ----------
    features : tuple of str or int
        One feature, or two that interact.
    cells : tuple of list of str
        Labels of the cells of each.
    scores : ndarray of shape (n_cells,) or (n_cells, n_classes)
        What is added; of two features of shape (n_cells, n_other_cells, ...).
    standard_errors : ndarray of the shape of `scores`
        What the noise that was added leaves unknown of them, to first order. Neither
        the sample's chance nor the smoothing is in it.
    masses : ndarray of shape (n_cells,)
        Noisy shares of the records by cell, of a pair those of both features.
    merged : tuple of ndarray of int, default=None
        Of a pair, the coarse cell of each cell of the code book.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.additive import PrivateAdditiveRegressor
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> model = PrivateAdditiveRegressor(
    ...     bounds=(0, 1), target_bounds=(0, 2), n_bins=4
    ... ).fit(X, X[:, 0] + X[:, 1])
    >>> model.shape_functions_[0].cells
    (['[0, 0.25)', '[0.25, 0.5)', '[0.5, 0.75)', '[0.75, 1]'],)
    """

    features: tuple[Any, ...]
    cells: tuple[list[str], ...]
    scores: Floats
    standard_errors: Floats
    masses: Floats
    merged: tuple[Indices, ...] | None = None

    def values(self, codes: NDArray[Any], positions: Sequence[int]) -> Floats:
        """Scores of rows.

        Parameters
        ----------
        codes : ndarray of int of shape (n, n_features)
        positions : sequence of int
            Columns of the features.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
        """
        columns = [codes[:, k] for k in positions]
        if self.merged is not None:
            pairs = zip(self.merged, columns, strict=True)
            columns = [merged[cells] for merged, cells in pairs]
        found: Floats = self.scores[tuple(columns)]
        return found


def additive_scores(
    codes: NDArray[Any],
    names: Sequence[Any],
    functions: Iterable[ShapeFunction],
    intercept: Any,
) -> Floats:
    """Sum of the intercept and all shape functions, row by row.

    Parameters
    ----------
    codes : ndarray of int of shape (n, n_features)
    names : sequence
        Of the features.
    functions : iterable of ShapeFunction
    intercept : float or ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n,) or (n, n_classes)
    """
    position = {name: k for k, name in enumerate(names)}
    scores = np.zeros((len(codes), *np.shape(intercept))) + intercept
    for function in functions:
        scores += function.values(codes, [position[name] for name in function.features])
    found: Floats = scores
    return found


def cell_labels(labels: Sequence[str], merged: Indices) -> list[str]:
    """Labels of coarse cells, from those of the cells that are merged."""
    found = []
    for cell in range(int(merged.max()) + 1):
        inside = [labels[i] for i in np.flatnonzero(merged == cell).tolist()]
        # the ends of a run of intervals
        first, last = inside[0], inside[-1]
        if len(inside) == 1:
            found.append(first)
        elif first.startswith("[") and "," in last:
            found.append(f"{first.split(',')[0]},{last.split(',')[1]}")
        else:
            found.append(f"{first} ... {last}")
    return found


def monotone(
    scores: Floats, masses: Floats, direction: int, has_missing: bool
) -> Floats:
    """Nearest scores that never fall, or never rise, from cell to cell.

    Parameters
    ----------
    scores, masses : ndarray of shape (n_cells,)
    direction : {-1, 1}
    has_missing : bool
        Whether the last cell is of missing values, which has no place in the order.

    Returns
    -------
    ndarray of shape (n_cells,)
        With the same mean under the masses.
    """
    n = scores.size - has_missing
    if n < 2:
        return scores
    found = scores.copy()
    # a mass of zero has no say, but is no weight
    weights = np.maximum(masses[:n], 1e-12)
    found[:n] = isotonic_regression(
        scores[:n], sample_weight=weights, increasing=direction > 0
    )
    return found
