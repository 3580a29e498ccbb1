"""Categorical naive Bayes from one noisy release of counts by class and cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer._template._raw_tables import column_keys, mapped_context, read_raw
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_count, check_non_negative
from skpuffer.releases import QueryRelease
from skpuffer.schema import Schema
from skpuffer.summary._cells import Levels
from skpuffer.summary._gaps import Stacked
from skpuffer.summary._mean import weighting_in
from skpuffer.utils._bounds import check_bounds
from skpuffer.utils._checks import noise_deviation, project_on_simplex
from skpuffer.utils._sklearn import Interval

from ._base import ByClass, PrivateNaiveBayes, labelled, without_lack

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Binning
    from skpuffer.utils._types import BoundsLike, RandomState


#: Part of the noise's deviation that is added to each cell of a class of mean size.
_PSEUDO_COUNT = 0.2


@dataclass(frozen=True)
class CellCounts(ByClass):
    """Contribution of a record: a one at its cell of each column, for its class.

    Parameters
    ----------
    block : Stacked
        Stacked `Levels`, one for each column.
    binning : Binning or None
        Which makes cells of raw rows; None where rows are cells already.
    """

    binning: Binning | None = None

    def _codes(self, X: Any) -> Indices:
        codes: Indices = np.asarray(X) if self.binning is None else self.binning(X)
        return codes

    def _blocks(self, X: Any) -> Floats:
        return super()._blocks(self._codes(X))  # type: ignore[arg-type] # cells are numbers

    def total(self, X: Any, y: ArrayLike, weights: Floats | None = None) -> Floats:
        """Sum of the contributions, of shape (dim,), by counting."""
        codes, y = self._codes(X), np.asarray(y).astype(np.intp)
        known = y >= 0
        if not known.all():
            codes, y = codes[known], y[known]
            weights = None if weights is None else weights[known]
        tables = []
        for column, levels in zip(codes.T, self.block.blocks, strict=True):
            joint = y * levels.dim + column.astype(np.intp, copy=False)
            counts = np.bincount(joint, weights, self.n_classes * levels.dim)
            tables.append(counts.reshape(self.n_classes, levels.dim))
        return np.hstack(tables).astype(float).ravel()


def cell_counts(
    n_cells: Sequence[int], n_classes: int, binning: Binning | None = None
) -> CellCounts:
    """Contribution of a record to the counts of each class and cell of d columns.

    A record that is added moves the sum by sqrt(d) in l2 and by d in l1, one that is
    replaced by sqrt(2 d) and 2 d, whether or not it changes class.
    """
    levels = tuple(Levels(k, int(size)) for k, size in enumerate(n_cells))
    return CellCounts(Stacked(levels), n_classes, binning)


def class_tables(
    value: Floats,
    n_cells: Sequence[int],
    n_records: float | None,
    n_classes: int,
    deviation: float = math.inf,
) -> tuple[Floats, list[Floats]]:
    """Sizes of the classes, and counts of cells that agree with them.

    Post-processing of noisy counts. Each column's cells sum to the size of a class: the
    inverse-variance mean of these is projected on the sizes that sum to n, and each row
    of counts on those that sum to the size of its class. An `n_records` of None, or one
    that noise of a `deviation` does not explain, is as many as were counted.
    """
    cells = np.asarray(n_cells, dtype=float)
    parts = np.split(value.reshape(n_classes, -1), np.cumsum(n_cells)[:-1], axis=1)
    # the variance of a sum is that of a cell times the number of cells
    sums = np.column_stack([part.sum(axis=1) for part in parts])
    sizes = (sums / cells).sum(axis=1) / (1 / cells).sum()
    if n_records is None:
        n_records = max(float(sizes.sum()), 1.0)
    of_sum = deviation * math.sqrt(n_classes / (1 / cells).sum())
    n_records = labelled(sizes.sum(), of_sum, n_records)
    sizes = n_records * project_on_simplex(sizes / n_records)
    # A class without mass has no distribution: all cells are as likely. The divisor is
    # one there, and the result zero.
    divisor = np.where(sizes > 0, sizes, 1.0)[:, None]
    tables = [sizes[:, None] * project_on_simplex(part / divisor) for part in parts]
    return sizes, tables


def smoothed(tables: list[Floats], alpha: float, deviation: float) -> list[Floats]:
    """Probabilities of cells given the class, from the counts of :func:`class_tables`.

    Besides `alpha`, a part of the noise's deviation is added to each cell, in
    proportion to the size of the class: what is unknown of a cell speaks for no class.
    """
    found = []
    for table in tables:
        sizes = table.sum(axis=1, keepdims=True)
        mean = sizes.mean()  # positive, as the sizes sum to n
        held = table + alpha + _PSEUDO_COUNT * deviation * sizes / mean
        total = held.sum(axis=1, keepdims=True)
        # of no mass at all, as of a class without records where alpha is zero
        equal = np.full_like(held, 1 / table.shape[1])
        found.append(np.divide(held, total, out=equal, where=total > 0))
    return found


class PrivateCategoricalNB(PrivateNaiveBayes):
    """Fit naive Bayes on the cells of any table, from one noisy release of counts.

    As scikit-learn's :class:`~sklearn.naive_bayes.CategoricalNB`, with numbers in
    public bins, and missing values and new levels in a cell of their own.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise. Discrete
        noise will do, and pure epsilon (``GroupPrivacy(epsilon, noise='laplace')``).
    alpha : float, default=1.0
        Additive smoothing of the noisy counts, beside a fifth of the noise's deviation.
    n_bins : int, default=32
        Equal cells of a number for which the schema does not say how many.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds`, `categories` and, if it has a target, `classes`.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds of the numeric columns: numbers, arrays with one for each, or by
        name or position. Values outside are read as the nearest cell.
    categories : dict of {column: list}, default=None
        Public levels of the categorical columns. Other values share a cell.
    classes : array-like, default=None
        Public class labels; others count as nothing. None takes those of the schema's
        target or, without one, those of `y` as public.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    category_count_ : list of ndarray of shape (n_classes, n_cells)
        Noisy counts of each column's cells in each class, with the sums `class_count_`.
    feature_log_prob_ : list of ndarray of shape (n_classes, n_cells)
        Smoothed log-probabilities of the cells given the class.
    class_count_ : ndarray of shape (n_classes,)
        Noisy sizes of the classes. They sum to the number of records, less those
        without a class where noise does not explain the difference.
    class_prior_ : ndarray of shape (n_classes,)
        Smoothed probabilities of the classes.
    n_categories_ : ndarray of shape (n_features,)
        Number of cells of each column.
    binning_ : Binning
        Public map from raw rows to cells.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the counts.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    *The release* is the counts of all cells of all d columns in each class. Adding or
    removing a record moves it by ``sqrt(d)`` in l2 and by d in l1, replacing one by
    ``sqrt(2 d)`` and ``2 d``. Where a secret moves some columns only, d is their
    number. Counts are then projected on those that agree and are not negative.

    Examples
    --------
    >>> from skpuffer.datasets import load_adult
    >>> from skpuffer.naive_bayes import PrivateCategoricalNB
    >>> X, y = load_adult(return_X_y=True)
    >>> model = PrivateCategoricalNB(
    ...     bounds={"age": (17, 90), "hours-per-week": (1, 99)},
    ...     categories={"sex": ["Female", "Male"]},
    ...     classes=["<=50K", ">50K"],
    ... )
    >>> table = X[["age", "sex", "hours-per-week"]]
    >>> model.fit(table, y).n_categories_
    array([32,  3, 32])
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateNaiveBayes._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "bounds": ["array-like", dict, None],
        "categories": [dict, None],
        "classes": ["array-like", None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        alpha: float = 1.0,
        n_bins: int = 32,
        schema: Schema | None = None,
        bounds: BoundsLike = None,
        categories: Mapping[Hashable, Sequence[Any]] | None = None,
        classes: ArrayLike | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.alpha = alpha
        self.n_bins = n_bins
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    # what is released is counts, whose sum is the number of records
    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_non_negative(alpha=self.alpha)
        check_count(n_bins=self.n_bins)
        if isinstance(self.bounds, str):
            raise value_error("bayes.bounds_not_public_form", bounds=self.bounds)
        check_bounds(self.bounds)
        if self.schema is None and self.bounds is None and not self.categories:
            raise value_error("bayes.code_book_missing", owner=type(self).__name__)

    def _read_by(self, schema: Schema) -> Binning:
        return schema.binning(self.n_bins)

    def _read_rows(self, X: Any) -> tuple[Any, Any]:
        X = read_raw(self, X, reset=True)
        if self.schema is not None:
            return X, None  # cells already
        schema = Schema.from_parameters(
            column_keys(X),
            bounds=self.bounds,
            categories=self.categories,
        )
        binning = self._read_by(schema)
        if self.categories:
            return binning(X), binning
        # numbers stay in their units, so that scenarios may say how far they move
        return schema.encoding("raw")(X), binning

    def _release(self, task: Task) -> QueryRelease:
        context, binning = task.context, task.reading
        classes: Any = context.classes
        if binning is None:
            binning, raw = context.feature_map, False
        else:
            raw = not self.categories
            if not raw:
                context = mapped_context(context, binning, len(binning.n_cells))
        counts = cell_counts(
            binning.n_cells, len(classes), binning=binning if raw else None
        )
        counts, query = self._weighted(task, counts)
        return QueryRelease(
            query=query,
            contribution=counts,
            is_sum=True,
            is_integer=task.weighting is None,
            dim=counts.dim,
            sensitivity=counts.sensitivity,
            n_records=context.n_records,
            name="counts by class and cell",
            context=context,
            assumptions=(self._public_facts(task),),
        )

    def _publish(self, value: Floats, release: Any) -> None:
        counts = release.contribution
        # of records with weights
        counts = getattr(counts, "block", counts) if weighting_in(release) else counts
        binning = counts.binning or release.context.feature_map
        self.binning_ = getattr(binning, "then", binning)
        n_cells, n_classes = self.binning_.n_cells, len(self.classes_)
        deviation = noise_deviation(self.noise_, value.size)
        value, n, unit = without_lack(value, release)
        known = None if release.context.size == "private" else n
        sizes, tables = class_tables(value, n_cells, known, n_classes, deviation)
        # what is smoothed by records is in weights, where there are any
        sizes, tables = unit * sizes, [unit * table for table in tables]
        deviation = unit * deviation
        self.n_categories_ = np.array(n_cells)
        self.class_count_ = sizes
        self.category_count_ = tables
        [shares] = smoothed([sizes[None]], self.alpha, 0.0)
        self.class_prior_ = shares[0]
        with np.errstate(divide="ignore"):  # of cells without mass, where alpha is zero
            self.feature_log_prob_ = [
                np.log(shares) for shares in smoothed(tables, self.alpha, deviation)
            ]

    # -- post-processing ----------------------------------------------------------

    def _log_likelihood(self, X: Any) -> Floats:
        if self.schema is None:
            X = self.binning_(read_raw(self, X, reset=False))
        likelihood = np.zeros((len(X), len(self.classes_)))
        for codes, logarithms in zip(X.T, self.feature_log_prob_, strict=True):
            likelihood += logarithms.T[codes]
        return likelihood

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
