"""Public pools that are given as a table, and tables drawn of them."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr, gammaln

from skpuffer.exceptions import ScenarioError, scenario_error
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import Rows
from skpuffer.scenarios._priors._tables import ReferenceTable, bound_arrays
from skpuffer.utils._reading import is_frame, refuse_mask, row_count


def _dimensions(values: Any) -> int:
    """Dimensions of an array, -1 of rows of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return -1


def pool_rows(pool: Any) -> tuple[Any, Any]:
    """Return rows and targets of a pool that is given, as they are."""
    return pool if isinstance(pool, tuple) else (pool, None)


def check_pool(pool: Any) -> None:
    """Refuse what is no pool."""
    if isinstance(pool, str):
        if pool != "known":
            raise scenario_error("subsample.pool_not_known_or_table", pool=pool)
        return
    if isinstance(pool, tuple) and len(pool) != 2:
        raise scenario_error("subsample.pool_tuple_not_pair", n_pool=len(pool))
    X, y = pool_rows(pool)
    refuse_mask(X, "pool")
    refuse_mask(y, "pool")
    if sparse.issparse(X):
        raise scenario_error("subsample.pool_sparse")
    if not is_frame(X) and _dimensions(X) != 2:
        raise scenario_error("subsample.pool_not_a_table", x_type=type(X).__name__)
    if y is not None and row_count(y) != row_count(X):
        raise scenario_error(
            "subsample.pool_target_count_differs",
            n_records=row_count(X),
            n_targets=row_count(y),
        )


def pool_digest(pool: Any) -> str:
    """Return a hash of the content of a public pool, as it was given."""
    X, y = pool_rows(pool)
    targets = None if y is None else ReferenceTable(np.asarray(y).reshape(len(y), -1))
    digests = [ReferenceTable(X).digest, None if targets is None else targets.digest]
    return str(joblib.hash(digests))


def check_classes(y: Any) -> None:
    """Refuse to stratify by what is no column of classes."""
    if y is None or _dimensions(y) != 1:
        raise scenario_error("subsample.stratify_without_target")


def pool_arrays(pool: Any, context: PublicContext) -> tuple[Any, Any]:
    """Return a public pool as the query reads it."""
    X, y = pool_rows(pool)
    if context.has_target and y is None:
        raise scenario_error("subsample.pool_without_targets")
    try:
        return bound_arrays(context, X, y)
    except ScenarioError as error:
        raise scenario_error("subsample.pool_differs_from_table", error=error) from None


def taken_of(
    table: tuple[Rows, Any], pool: tuple[Any, Any], rng: np.random.Generator | None
) -> NDArray[np.bool_]:
    """Return which records of a pool a table has, and refuse one that has others."""
    both = np.concatenate([_dense(pool[0]), _dense(table[0])])
    if table[1] is not None and pool[1] is not None:
        targets = [np.asarray(y, dtype=float) for y in (pool[1], table[1])]
        columns = np.concatenate([y.reshape(len(y), -1) for y in targets])
        both = np.column_stack([both, columns])
    n_pool = row_count(pool[0])
    # both were read in one way, so a record is equal to itself; zeros have one sign
    _, which = np.unique(both + 0.0, axis=0, return_inverse=True)
    which = which.reshape(-1)
    times = np.bincount(which[n_pool:], minlength=int(which.max()) + 1)
    # the pool's records of one kind in a chance order, of which the first are taken
    order = np.arange(n_pool) if rng is None else rng.permutation(n_pool)
    order = order[np.argsort(which[order], kind="stable")]
    kinds = which[order]
    rank = np.arange(n_pool) - np.searchsorted(kinds, kinds)
    mask = np.zeros(n_pool, dtype=bool)
    mask[order] = rank < times[kinds]
    if mask.sum() != len(both) - n_pool:
        raise scenario_error("subsample.records_not_in_pool")
    return mask


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=float)


# -- laws of a random subset of a pool -------------------------------------------------


#: Subsets, one a row: whether each record of the pool is in it.
Masks = NDArray[np.bool_]


@dataclass(frozen=True)
class UniformSubset:
    """So many records of each stratum, every choice of them as likely."""

    strata: tuple[tuple[Indices, int], ...] = field(repr=False)
    n_pool: int

    @property
    def log_count(self) -> float:
        """Logarithm of the number of subsets there are."""
        return math.fsum(
            float(gammaln(len(at) + 1) - gammaln(n + 1) - gammaln(len(at) - n + 1))
            for at, n in self.strata
        )

    @property
    def entropy(self) -> float:
        """Shannon entropy of the subset, in nats."""
        return self.log_count

    def draw(self, n: int, rng: np.random.Generator) -> Masks:
        """Return `n` subsets, drawn one after the other."""
        masks: Masks = np.zeros((n, self.n_pool), dtype=bool)
        for mask in masks:
            for at, size in self.strata:
                mask[rng.choice(at, size, replace=False, shuffle=False)] = True
        return masks

    def all(self) -> tuple[Masks, Floats]:
        """Return all subsets, and the probability of each."""
        choices = itertools.product(
            *(itertools.combinations(at.tolist(), size) for at, size in self.strata)
        )
        count = math.prod(math.comb(len(at), n) for at, n in self.strata)
        masks: Masks = np.zeros((count, self.n_pool), dtype=bool)
        for mask, chosen in zip(masks, choices, strict=True):
            mask[list(itertools.chain(*chosen))] = True
        return masks, np.full(len(masks), 1 / len(masks))


@dataclass(frozen=True)
class IndependentRecords:
    """Each record by itself, with one probability."""

    rate: float
    n_pool: int

    @property
    def log_count(self) -> float:
        """Logarithm of the number of subsets, the empty one and the pool among them."""
        return self.n_pool * math.log(2)

    @property
    def entropy(self) -> float:
        """Shannon entropy of the subset, in nats."""
        return self.n_pool * float(entr(self.rate) + entr(1 - self.rate))

    def draw(self, n: int, rng: np.random.Generator) -> Masks:
        """Return `n` subsets, drawn one after the other."""
        masks: Masks = np.empty((n, self.n_pool), dtype=bool)
        for mask in masks:
            mask[:] = rng.random(self.n_pool) < self.rate
        return masks

    def all(self) -> tuple[Masks, Floats]:
        """Return all subsets, and the probability of each."""
        bits = np.arange(2**self.n_pool)[:, None] >> np.arange(self.n_pool)
        masks: Masks = (bits & 1).astype(bool)
        sizes = masks.sum(axis=1)
        weights = self.rate**sizes * (1 - self.rate) ** (self.n_pool - sizes)
        return masks, weights / weights.sum()


SubsetLaw = UniformSubset | IndependentRecords


def shares(sizes: Indices, n: int) -> Indices:
    """Return how many of `n` fall to each class, in the shares that classes have."""
    # in integers: remainders of floats are off by a rounding
    counts, left = np.divmod(sizes.astype(np.int64) * n, int(sizes.sum()))
    largest = np.argsort(-left, kind="stable")[: n - int(counts.sum())]
    counts[largest] += 1
    return counts
