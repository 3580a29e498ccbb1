"""Covariances and correlations from one noisy release of second moments."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._elsewhere import Part
from skpuffer._template._intervals import interval_width
from skpuffer._template._lazy_tables import clipped
from skpuffer._template._weights import Weighting, without_weights
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.decomposition._pca import SecondMoments
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.numbers import check_option, check_probability
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario
from skpuffer.summary._errors import Errors
from skpuffer.summary._gaps import count_weight, gap_weight, with_count, with_gaps
from skpuffer.summary._mean import (
    BoundedColumnsMixin,
    check_independent,
    divisor_of,
    marks_of,
    relation_of,
)
from skpuffer.summary._private_statistic import usable_counts
from skpuffer.utils._bounds import Bounds
from skpuffer.utils._checks import noise_deviation
from skpuffer.utils._reading import validate_rows
from skpuffer.utils._sklearn import StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState


class PrivateCovariance(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Estimate covariance and correlation matrices, with means, in one release.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features, as of :class:`~skpuffer.summary.PrivateMean`.
        Values outside are clipped. None takes the scenario's range. 'empirical' reads
        the private data and warns. A :class:`~skpuffer.summary.PrivateBounds` spends a
        part of the budget.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. A level becomes a column of zeros and ones. Records that lack any
        number count as nothing.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_columns, n_columns)
        Noisy covariances of the sample, in the units of the columns. With much noise
        not positive semi-definite.
    correlation_ : ndarray of shape (n_columns, n_columns)
        Correlations, clipped to [-1, 1]. NaN where a variance is below twice the
        standard deviation of its noise.
    covariance_std_ : ndarray of shape (n_columns, n_columns)
        Standard deviation of the noise of `covariance_`, to the first order.
    mean_ : ndarray of shape (n_columns,)
        Noisy means.
    n_complete_ : float
        Noisy number of records that lack no number, or the sum of their weights; exact
        if public.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the sums of moments, in half-ranges.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read; only with a `schema`.
    columns_ : ndarray of shape (n_columns,)
        Names of rows and columns of the matrices, where they are known; else positions.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    *The release* is that of :class:`~skpuffer.decomposition.PrivatePCA` for rows in the
    ball of radius ``sqrt(d)``, with each of d columns in [-1, 1], none of which is
    shortened. The noise of a covariance, in half-ranges, grows like d, so leave out
    columns. The number of records that lack a number is released beside it, at no cost:
    a record adds moments or one to this number, never both.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.covariance import PrivateCovariance
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=100_000)
    >>> X = np.column_stack([x, 10 - x, rng.uniform(0, 1, size=x.size)])
    >>> found = PrivateCovariance(bounds=([0, 0, 0], [10, 10, 1])).fit(X)
    >>> (found.correlation_.round(1) + 0.0).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
    }

    fit = WeightedFit()

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        weight_bounds: tuple[float, float] | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.weight_bounds = weight_bounds
        self.schema = schema
        self.random_state = random_state

    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_stacked_moments")

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        X = validate_rows(self, X, dtype=np.float64)
        # of a number that is not read nothing is said
        if len(X) < 2 and self._stated_size(self.scenario) == "public":
            raise value_error("decomposition.too_few_records", n=len(X))
        return X, None, None

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context  # of a fit, which knows the number of features
        bounds = self._public_bounds(task)
        if bounds is None:
            raise scenario_error("decomposition.scenario_without_bounds")
        marks = tuple(marks_of(context).values())
        positions = tuple(i for i in range(len(bounds.low)) if i not in marks)
        moments = CrossMoments(
            positions,
            bounds.select(list(positions)),
            marks,
            weighting=task.weighting,
        )
        norm, alone = task.accountant.unit_order, moments.present.sensitivity
        if context.size == "private":
            weight = count_weight(alone, norm)
            moments = replace(moments, weight=weight, counts_present=True)
        elif moments.counts:
            relation, orders = relation_of(task.scenario), task.accountant.unit_orders
            weight = gap_weight(alone, relation, orders, moments.least)
            moments = replace(moments, weight=weight)
        return QueryRelease(
            query=moments.total,
            contribution=moments,
            is_sum=True,
            dim=moments.dim,
            sensitivity=moments.sensitivity,
            n_records=context.n_records,
            name="second moments",
            context=context,
            assumptions=(Statement("assume.values_clipped"),),
        )

    def _publish(self, value: Floats, release: Any) -> None:
        held, n = release.contribution, float(divisor_of(release.context))
        found = held.read(value, noise_deviation(self.noise_, value.size), n)
        weighting = held.weighting
        varies = weighting is not None and weighting.varies
        # as pandas has it, of the sample; weights need not count records
        sample = 1.0 if varies else found.size / (found.size - 1)
        covariance, widths = sample * found.covariance, sample * found.deviations
        variances = np.diag(covariance)
        seen = variances >= np.maximum(2 * np.diag(widths), 1e-12)
        deviations = np.sqrt(np.where(seen, variances, np.nan))
        correlation = np.clip(covariance / np.outer(deviations, deviations), -1, 1)
        correlation[np.diag_indices_from(correlation)] = np.where(seen, 1.0, np.nan)
        half = held.bounds.half
        unit = 1.0 if weighting is None else weighting.largest
        self.n_complete_ = unit * found.n_complete
        self.mean_ = held.bounds.middle + half * found.mean
        self.covariance_ = np.outer(half, half) * covariance
        self.covariance_std_ = np.outer(half, half) * widths
        self.correlation_ = correlation
        self.columns_ = self._column_names(release.context)[list(held.positions)]
        self._errors = {
            "mean_": found.of_mean.moved(held.bounds.middle, half),
            "covariance_": found.of_covariance.times(
                (sample * np.outer(half, half)).ravel()
            ),
            "correlation_": found.of_correlation,
        }

    def confidence_interval(
        self, level: float = 0.95, *, of: str = "population"
    ) -> dict[str, tuple[Floats, Floats]]:
        """Return intervals around means, covariances, correlations; no budget is spent.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each entry by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            Whether an interval is for the population of independent records, or for
            this very table without noise. The former bounds fourth moments by the
            bounds.

        Returns
        -------
        dict of {str: (low, high)}
            For `mean_`, `covariance_` and `correlation_`; the latter are between -1 and
            1 where a variance is below five deviations of its noise.

        Raises
        ------
        UnsupportedError
            If records have weights, are rows of units or depend on each other
            ('population'); or if quantiles of the noise are not known.
        """
        check_is_fitted(self)
        check_option(("population", "table"), of=of)
        level = check_probability(level=level)
        if of == "population":
            check_independent(self)
        width = interval_width(self.noise_, level)
        found = {}
        for name, errors in self._errors.items():
            ends = errors.interval(level, of, width)
            shape = getattr(self, name).shape
            found[name] = tuple(end.reshape(shape) for end in ends)
        return found

    def to_frame(self, level: float = 0.95, *, of: str = "population") -> pd.DataFrame:
        """Return means, covariances and correlations as a tidy table, with errors.

        Parameters
        ----------
        level, of : float and str
            As in :meth:`confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            With the columns 'column', 'other', 'statistic', 'estimate', 'std_error',
            'low', 'high', 'n' and 'wide' (a bound stands for moments that were not
            released).
        """
        ends = self.confidence_interval(level, of=of)
        first, last = np.triu_indices(len(self.columns_))
        off, each = first != last, np.arange(len(self.columns_))
        parts = []
        for statistic, (name, at) in {
            "mean": ("mean_", (each,)),
            "covariance": ("covariance_", (first, last)),
            "correlation": ("correlation_", (first[off], last[off])),
        }.items():
            shape, errors = getattr(self, name).shape, self._errors[name]
            found = {
                "estimate": getattr(self, name),
                "std_error": errors.std_error(of).reshape(shape),
                "low": ends[name][0],
                "high": ends[name][1],
                "wide": errors.wide(of).reshape(shape),
            }
            rows = {"column": self.columns_[at[0]], "other": self.columns_[at[-1]]}
            rows |= {"statistic": statistic, "n": self.n_complete_}
            parts.append(
                pd.DataFrame(rows | {key: part[at] for key, part in found.items()})
            )
        order = ["column", "other", "statistic", "estimate", "std_error", "low", "high"]
        return pd.concat(parts, ignore_index=True)[[*order, "n", "wide"]]


#: Deviations of its noise from which a variance is known well enough to divide by.
_SEEN = 5.0


class Read(NamedTuple):
    """Noisy moments of rows in [-1, 1].

    Parameters
    ----------
    n_complete, size : float
        Number of rows that lack no number, and the same if it is fit to divide by.
    mean : ndarray of shape (d,)
    covariance, deviations : ndarray of shape (d, d)
        And its standard deviations by the noise, to the first order (delta method).
    of_mean, of_covariance, of_correlation : Errors
        Errors of the entries in a row.
    """

    n_complete: float
    size: float
    mean: Floats
    covariance: Floats
    deviations: Floats
    of_mean: Errors
    of_covariance: Errors
    of_correlation: Errors


@dataclass(frozen=True)
class CrossMoments:
    """Contribution of a record: moments of its row, or that it lacks a number.

    Parameters
    ----------
    positions : tuple of int
        Columns whose moments are taken.
    bounds : Bounds
        Bounds of these.
    marks : tuple of int, default=()
        Columns that are one where a number is missing.
    weight : float, default=1.0
        Contribution of a record that lacks a number.
    counts_present : bool, default=False
        Whether a record that lacks none adds it instead.
    weighting : Weighting, default=None
        Public facts about weights, the last two columns. A record of the weight s adds
        s times what it adds otherwise, and the rest is counted as lacking.
    """

    positions: tuple[int, ...]
    bounds: Bounds
    marks: tuple[int, ...] = ()
    weight: float = 1.0
    counts_present: bool = False
    weighting: Weighting | None = None

    @property
    def counts(self) -> bool:
        """Whether records are counted, those with gaps or those without."""
        return self.counts_present or self.least < 1

    @property
    def least(self) -> float:
        """Smallest share of what a record adds that it may have."""
        if self.marks:
            return 0.0
        return 1.0 if self.weighting is None else self.weighting.least

    @property
    def present(self) -> SecondMoments:
        """Contribution of a row whose numbers are in [-1, 1]."""
        d = len(self.positions)
        return SecondMoments((0.0,) * d, math.sqrt(d))

    @property
    def dim(self) -> int:
        """Number of coordinates: the moments, and one of what is missing, or not."""
        return self.present.dim + self.counts

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :func:`skpuffer.summary._gaps.with_gaps`."""
        present = self.present.sensitivity
        if self.counts_present:
            return with_count(present, self.weight, self.least < 1)
        if not self.counts:
            return present
        return with_gaps(present, self.weight, self.least)

    def _rows(self, X: Floats) -> tuple[Floats, Floats]:
        """Rows of numbers in [-1, 1], and their weights: zero where one is lacking."""
        X, shares = np.asarray(X, dtype=float), np.ones(len(X))
        if self.weighting is not None:
            X, shares = without_weights(X)
        inside = np.clip(X[:, list(self.positions)], self.bounds.low, self.bounds.high)
        missing = np.any(X[:, list(self.marks)] > 0, axis=1)
        units = np.clip((inside - self.bounds.middle) / self.bounds.half, -1.0, 1.0)
        return units, np.where(missing, 0.0, shares)

    def __call__(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        rows, shares = self._rows(X)
        found = self.present(rows) * shares[:, np.newaxis]
        if not self.counts:
            return found
        counted = shares if self.counts_present else 1 - shares
        return np.column_stack([found, self.weight * counted])

    def total(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Sum of the contributions by one product, of shape (dim,)."""
        rows, shares = self._rows(X)
        if not self.counts:
            return self.present.total(rows)
        found = self.present.total(rows, weights=shares)
        counted = shares if self.counts_present else 1 - shares
        return np.append(found, self.weight * counted.sum())

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Numbers whose sums are asked of an engine; see `Moments.parts`.

        Each u, then each product of two, then whether a number is missing.
        """
        bounds = zip(self.bounds.middle, self.bounds.half, strict=True)
        u = [
            clipped(columns[at] - float(middle), -half, half) / float(half)
            for at, (middle, half) in zip(self.positions, bounds, strict=True)
        ]
        lacking = [columns[at] > 0 for at in self.marks]
        if self.marks:
            present = functools.reduce(
                operator.mul, (1.0 - columns[at] for at in self.marks)
            )
            u = [value * present for value in u]
            lacking = [functools.reduce(operator.or_, lacking)]
        pairs = zip(*np.triu_indices(len(u)), strict=True)
        products = [Part(u[i] * u[j]) for i, j in pairs]
        counted = [Part(truths, is_count=True) for truths in lacking]
        return [*map(Part, u), *products, *counted]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sums of contributions from those of parts; see `Moments.from_parts`."""
        d = len(self.positions)
        first, last = np.triu_indices(d)
        missing = sums[:, -1:] if self.marks else np.zeros((len(sums), 1))
        products = sums[:, d : d + len(first)] / d
        blocks = [
            self.present.weight * sums[:, :d] / math.sqrt(d),
            products[:, first == last] - (counts - missing) / d,
            math.sqrt(2) * products[:, first != last],
        ]
        counted = counts - missing if self.counts_present else missing
        return np.hstack([*blocks, *[self.weight * counted] * self.counts])

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of each contribution to moves of its record's features."""
        moves = np.minimum(gaps[:, list(self.positions)] / self.bounds.half, 2.0)
        found = self.present.move(moves, norm)
        # one that may gain or lose a number moves by all there is
        appears = np.any(gaps[:, list(self.marks)] > 0, axis=1)
        most = self.sensitivity.value("replace", norm, self.dim)
        return np.where(appears, most, found)

    def read(self, value: Floats, noise: float, n_records: float) -> Read:
        """Return the moments off the noisy sum of contributions."""
        d, n_complete, gap_std = len(self.positions), n_records, 0.0
        if self.counts:
            gap_std, counted = noise / self.weight, value[-1] / self.weight
            n_complete = counted if self.counts_present else n_records - counted
            value = value[:-1]
        size = float(usable_counts(n_complete, gap_std))
        mean, products = self.present.moments(value, size)
        covariance = products - np.outer(mean, mean)
        # a noisy mean times itself is too large by the variance of its noise
        off = noise / (self.present.weight * size)
        covariance[np.diag_indices(d)] += off**2
        # of the products, those on the diagonal without the factor sqrt(2)
        of_products = np.full((d, d), noise / (math.sqrt(2) * size))
        of_products[np.diag_indices(d)] *= math.sqrt(2)
        squares = np.add.outer(mean**2, mean**2) * (1 + np.eye(d))
        # of the number of rows, by which both are divided
        slopes = products - np.eye(d) / d - 2 * np.outer(mean, mean)
        deviations = np.sqrt(
            of_products**2 + off**2 * squares + (slopes * gap_std / size) ** 2
        )
        # rows are in the ball of radius sqrt(d)
        variances = np.diag(covariance)
        of_mean = math.sqrt(d) * np.hypot(off, mean * gap_std / size)
        largest = np.full(d, np.inf)
        seen = variances >= _SEEN * np.diag(deviations)
        largest[seen] = 1 / math.sqrt(d) + np.abs(mean[seen])
        largest[seen] /= np.sqrt(variances[seen])
        spread = np.sqrt(np.maximum(variances, np.diag(deviations)))
        sample = np.minimum.outer(largest, largest) * np.outer(spread, spread)
        # no product of two numbers in [-1, 1] about their means is beyond these
        sample = np.minimum(sample, np.outer(*[1 / math.sqrt(d) + np.abs(mean)] * 2))
        errors = Errors(
            (d * covariance).ravel(),
            (d * deviations).ravel(),
            (d * sample / math.sqrt(size)).ravel(),
            low=-1.0,
            high=1.0,
            is_wide=True,
        )
        mean, spread = math.sqrt(d) * mean, math.sqrt(d) * spread
        return Read(
            n_complete=float(n_complete),
            size=size,
            mean=mean,
            covariance=d * covariance,
            deviations=d * deviations,
            of_mean=Errors(mean, of_mean, spread / math.sqrt(size), -1.0, 1.0),
            of_covariance=errors,
            of_correlation=_of_correlation(
                covariance,
                mean / math.sqrt(d),
                of_products,
                off,
                slopes * gap_std / size,
                np.where(seen, largest, np.nan),
                size,
            ),
        )


def _of_correlation(
    covariance: Floats,
    mean: Floats,
    of_products: Floats,
    off: float,
    of_size: Floats,
    largest: Floats,
    size: float,
) -> Errors:
    """Return errors of correlations, to the first order in noise and sampling."""
    known = ~np.isnan(largest)
    variances = np.where(known, np.diag(covariance), np.nan)
    scale = np.sqrt(np.outer(variances, variances))
    r = np.clip(covariance / scale, -1.0, 1.0)
    half = r / 2
    of_squares = (np.diag(of_products) / variances) ** 2
    parts = (of_products / scale) ** 2 + half**2 * np.add.outer(of_squares, of_squares)
    # of the two means, each of which moves a product and a square
    of_mean = off * (r * (mean / variances)[:, None] - mean / scale)
    parts += of_mean**2 + of_mean.T**2
    shares = np.diag(of_size) / variances
    parts = parts + (of_size / scale - half * np.add.outer(shares, shares)) ** 2
    noise = np.sqrt(parts)
    sample = np.minimum.outer(largest, largest)
    sample = sample + np.abs(half) * np.add.outer(largest, largest)
    sample = sample / math.sqrt(size)
    for matrix, value in ((r, 1.0), (noise, 0.0), (sample, 0.0)):
        matrix[np.diag_indices(len(r))] = np.where(known, value, np.nan)
    return Errors(r.ravel(), noise.ravel(), sample.ravel(), -1.0, 1.0, is_wide=True)
