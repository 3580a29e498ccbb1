"""Smooth, whitened bases of shape functions, from noisy histograms alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from skpuffer.exceptions import value_error
from skpuffer.utils._checks import project_on_simplex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpuffer.kernel.numbers import Floats, Indices


#: Frequencies of a smooth kernel, at most.
_FREQUENCIES = 256
#: How fast the kernel's amplitudes fall with the frequency.
_DECAY = 1.5
#: Largest share of the uniform law that is mixed into the masses of cells.
_MOST_UNIFORM = 0.2
#: Ridge of the whitening, in units of sqrt(n_features) / (n * mu).
_RIDGE = 16.0
#: Directions of less variance than this share of a block's largest are dropped.
_LEAST_VARIANCE = 1e-3
#: What rounding may leave of a variance of zero, as a share of the largest.
_ROUNDING = 1e-10
#: Weight of an interaction beside one feature.
_INTERACTION_WEIGHT = 0.03


def cell_masses(noisy: Floats, deviation: float, n_records: float) -> Floats:
    """Masses of a feature's cells, positive with sum one, from its noisy histogram.

    `n_records` is public, or a noisy sum of weights. Counts are shrunk towards equal
    ones (James and Stein), projected on what is possible, and mixed with the uniform
    law, the more the noisier, so that no cell is taken for empty because of noise.
    """
    noisy = np.asarray(noisy, dtype=np.float64)
    n_cells, uniform = noisy.size, n_records / noisy.size
    if n_cells == 1:
        return np.ones(1)
    spread = float(np.sum((noisy - noisy.mean()) ** 2))
    expected = (n_cells - 1) * deviation**2
    keep = max(0.0, 1 - expected / spread) if spread > 0 else 0.0
    counts = uniform + keep * (noisy - noisy.mean())
    masses = project_on_simplex(counts / n_records)
    share = min(_MOST_UNIFORM, 0.5 * deviation * math.sqrt(n_cells) / n_records)
    mixed: Floats = (1 - share) * masses + share / n_cells
    return mixed


def kernel(masses: Floats, kind: str, has_missing: bool = False) -> Floats:
    """Covariance, before any data, of a feature's shape function over its cells.

    It has mean variance one under `masses`. Levels are independent. Ordered cells are
    smooth along t, the mean of a cell's rank among the records and its number: cosines
    of frequency m with amplitude m^(-1.5), as of a function with 1 + derivatives.
    Amounts are half smooth and half independent, as round numbers stand out. The last
    cell may be missing values, which are no neighbours.
    """
    n_cells = masses.size
    found: Floats
    if kind == "levels" or n_cells <= 2:
        return np.eye(n_cells)
    if has_missing:
        found = np.eye(n_cells)
        inner = masses[:-1] / np.sum(masses[:-1]) if np.any(masses[:-1]) else None
        if inner is not None:
            found[:-1, :-1] = kernel(inner, kind)
        return found
    middle = np.cumsum(masses) - masses / 2
    t = 0.5 * middle + 0.5 * (np.arange(n_cells) + 0.5) / n_cells
    m = np.arange(1, min(2 * n_cells, _FREQUENCIES))
    cosines = np.cos(math.pi * np.outer(t, m)) * m**-_DECAY
    smooth: Floats = cosines @ cosines.T
    smooth /= masses @ np.diag(smooth)
    if kind == "amount":
        smooth = 0.5 * smooth + 0.5 * np.eye(n_cells)
    return smooth


@dataclass(frozen=True)
class Basis:
    """Blocks of a basis, one for each feature or pair of features.

    Parameters
    ----------
    tables : tuple of ndarray of shape (n_cells, width)
        Row of each cell. A record's row is the rows of its cells side by side; its
        mean squared norm is one under the masses.
    masses : tuple of ndarray of shape (n_cells,)
        Masses under which the columns are centred.
    steepest : float
        Sum of the blocks' largest variances, as a share of all variance.
    """

    tables: tuple[Floats, ...]
    masses: tuple[Floats, ...]
    steepest: float

    @property
    def dim(self) -> int:
        """Number of columns of all blocks."""
        return sum(table.shape[1] for table in self.tables)

    def split(self, parameters: Floats) -> list[Floats]:
        """Split an array along its first axis by block."""
        ends = np.cumsum([table.shape[1] for table in self.tables]).tolist()
        pairs = zip([0, *ends[:-1]], ends, strict=True)
        return [parameters[start:end] for start, end in pairs]

    def functions(self, parameters: Floats) -> list[Floats]:
        """Value of each block's function in each of its cells."""
        parts = self.split(parameters)
        return [t @ part for t, part in zip(self.tables, parts, strict=True)]

    def project(self, sums: Sequence[Floats]) -> Floats:
        """Sums over records of their rows, from sums over the records of each cell."""
        pairs = zip(self.tables, sums, strict=True)
        return np.concatenate([table.T @ total for table, total in pairs])


def make_basis(
    masses: Sequence[Floats],
    kinds: Sequence[str],
    has_missing: Sequence[bool] = (),
    *,
    pairs: Sequence[tuple[int, int]] = (),
    merged: Sequence[Indices] = (),
    n_records: float,
    mu: float,
) -> Basis:
    """Basis in which unit steps of gradient descent suit all directions.

    The columns of a block span the functions that its kernel holds for likely, centred
    and orthogonal under the masses. The variance of a column is v / (v + ridge), v that
    of the kernel's principal direction, so directions that noise would drown are short.
    `mu` is the largest shift, in deviations of the noise, that one record gives to the
    rounds' sums. The kernel of two features that interact is the product of theirs,
    centred, on coarse cells (`merged`).
    """
    ridge = _RIDGE * math.sqrt(len(masses)) / (n_records * mu)
    gaps = list(has_missing) or [False] * len(masses)
    # cells of a feature with very many stand for several, as no matrix has so many rows
    few = [
        merged_cells(*about, n_merged=_MOST_CELLS)
        for about in zip(masses, kinds, gaps, strict=True)
    ]
    blocks = []
    for cells, own, kind, gap in zip(few, masses, kinds, gaps, strict=True):
        q = np.bincount(cells, weights=own).astype(np.float64)
        blocks.append((_centred(kernel(q, kind, gap), q), q))
    coarse = {}
    for k in sorted({k for pair in pairs for k in pair}):
        q = np.bincount(merged[k], weights=masses[k]).astype(np.float64)
        kind = "levels" if kinds[k] == "levels" else "ordered"
        coarse[k] = (_centred(kernel(q, kind, gaps[k]), q), q)
    for i, j in pairs:
        (c_i, q_i), (c_j, q_j) = coarse[i], coarse[j]
        product = (_INTERACTION_WEIGHT * np.kron(c_i, c_j)).astype(np.float64)
        blocks.append((product, np.kron(q_i, q_j).astype(np.float64)))
    tables, variances = zip(*(_whitened(c, q, ridge) for c, q in blocks), strict=True)
    tables = (*(t[c] for t, c in zip(tables, few, strict=False)), *tables[len(few) :])
    all_masses = (*masses, *(q for _, q in blocks[len(few) :]))
    total = sum(float(np.sum(v)) for v in variances)
    if total == 0:  # features of one cell each
        return Basis(tables, all_masses, 1.0)
    scale = 1 / math.sqrt(total)
    return Basis(
        tuple(scale * table for table in tables),
        all_masses,
        sum(float(np.max(v, initial=0.0)) for v in variances) / total,
    )


def _centred(covariance: Floats, masses: Floats) -> Floats:
    """Covariance of a function less its mean under the masses."""
    # (I - 1 q') C (I - q 1'), written out: C q is the covariance with the mean
    with_mean = covariance @ masses
    of_mean = masses @ with_mean
    centred: Floats = covariance - with_mean[:, None] - with_mean + of_mean
    return centred


def _whitened(
    covariance: Floats, masses: Floats, ridge: float
) -> tuple[Floats, Floats]:
    """Columns S V / sqrt(v + ridge) and their variances, S the root of the covariance.

    V and v are of S diag(q) S. With W and v of the matrix diag(q)^½ C diag(q)^½, which
    has the same v, S V = C diag(q)^½ W / sqrt(v): no root has to be taken.
    """
    root = np.sqrt(masses)
    v, w = np.linalg.eigh(root[:, None] * covariance * root)
    # without noise there is no ridge, and what rounding leaves of zero would count
    real = v > _ROUNDING * np.max(v, initial=0.0)
    v, w = v[real], w[:, real]
    variances = v / (v + ridge)
    kept = variances > _LEAST_VARIANCE * np.max(variances, initial=0.0)
    v, w, variances = v[kept], w[:, kept], variances[kept]
    table = covariance @ (root[:, None] * w) / np.sqrt(v * (v + ridge))
    return table, variances


# -- shape functions: what an additive model says of one feature, or of a pair ---------


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """Hold the scores that an additive model adds for cells of a feature or a pair.

    Parameters
    ----------
    features : tuple of str or int
        One feature, or two that interact.
    cells : tuple of list of str
        Labels of the cells of each.
    scores : ndarray of shape (n_cells,) or (n_cells, n_classes)
        Values to add; of two features of shape (n_cells, n_other_cells, ...).
    standard_errors : ndarray of the shape of `scores`
        Uncertainty from the noise, to first order; without sampling and smoothing.
    masses : ndarray of shape (n_cells,)
        Noisy shares of the records by cell.
    merged : tuple of ndarray of int, default=None
        For a pair, the coarse cell of each cell.

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
        """Scores of rows."""
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
    """Sum of the intercept and all shape functions, row by row."""
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
    scores: Floats, masses: Floats, direction: int, has_missing: bool, axis: int = 0
) -> Floats:
    """Nearest scores that never fall, or never rise, from cell to cell of a feature.

    Scores of a feature keep the same mean under the masses. For a pair each row or
    column is weighed by the masses of the feature alone: weights that all share, so
    that a function that never falls along the other axis does not after it either. The
    last cell may be missing values, which have no place in the order.
    """
    found: Floats = np.moveaxis(scores.copy(), axis, 0)
    n = len(found) - has_missing
    if n < 2:
        return scores
    weights = np.moveaxis(masses, axis, 0).reshape(len(found), -1).sum(axis=1)
    # a mass of zero has no say, but is no weight
    found[:n] = np.apply_along_axis(
        isotonic_regression,
        0,
        found[:n],
        sample_weight=np.maximum(weights[:n], 1e-12),
        increasing=direction > 0,
    )
    return np.moveaxis(found, 0, axis)


# -- pairs of features that interact, and their coarse cells ---------------------------


#: Coarse cells of a feature that interacts, at most, and cells of any that are told
#: apart: of more the largest levels are, or runs of cells of about equal mass.
_COARSE, _MOST_CELLS = 8, 1024


def pairs_of(interactions: Any, names: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the positions of features that interact."""
    if interactions is None:
        return ()
    n = len(names)
    if isinstance(interactions, str):
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))
    found = []
    for pair in interactions:
        unknown = [name for name in pair if name not in names]
        if unknown:
            raise value_error(
                "additive.interactions_unknown_feature",
                unknown=unknown,
                names=list(names),
            )
        i, j = sorted(list(names).index(name) for name in pair)
        if i == j or (i, j) in found:
            raise value_error("additive.interactions_not_distinct_pairs", pair=pair)
        found.append((i, j))
    return tuple(found)


def merged_cells(
    masses: Floats, kind: str, has_missing: bool = False, n_merged: int = _COARSE
) -> Indices:
    """Coarse cell, from 0, of each cell of a feature.

    Neighbours of about equal mass are together; of levels the largest are alone and the
    others together; missing values stay alone.
    """
    n_cells = masses.size
    if n_cells <= n_merged:
        return np.arange(n_cells)
    if kind == "levels":
        ranks = np.empty(n_cells, dtype=np.intp)
        ranks[np.argsort(-masses, kind="stable")] = np.arange(n_cells)
        return np.minimum(ranks, n_merged - 1)
    if has_missing:
        inner = merged_cells(masses[:-1], kind, n_merged=n_merged - 1)
        return np.append(inner, inner.max() + 1)
    # by rank among the records and by number alike, as empty cells are cells too
    masses = masses / masses.sum()
    middle = np.cumsum(masses) - masses / 2
    parts = np.minimum((middle * n_merged).astype(np.intp), n_merged - 1)
    # without gaps, where one cell is as large as several parts
    merged: Indices = np.unique(parts, return_inverse=True)[1]
    return merged
