"""Covariances and correlations from one noisy release of second moments."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpuffer._template._lazy_tables import clipped
from skpuffer._template._weights import Weighting, without_weights
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.decomposition._pca import SecondMoments
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.releases import Part
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario
from skpuffer.summary._gaps import count_weight, gap_weight, with_count, with_gaps
from skpuffer.summary._mean import (
    BoundedColumnsMixin,
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
    """Covariance and correlation matrices, with means, in one release.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features, as of :class:`~skpuffer.summary.PrivateMean`.
        What lies outside is clipped. None takes the range the scenario declares.
        ``'empirical'`` reads the range off the private data, warns, and leaves an
        estimate for a certificate.
        A :class:`~skpuffer.summary.PrivateBounds` releases bounds first, with a part of
        the budget; they are then in ``found_bounds_``.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, with which `fit` takes a
        `sample_weight`. Weights are clipped to them, and noise covers a record of the
        largest. Means and covariances are then those of weighted records, divided by
        the noisy sum of all weights.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `bounds` are its own. A level becomes a column of zeros and ones.
        Records that lack the number of any column count as nothing. Of dates, units of
        covariances are those of the column, days say.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_columns, n_columns)
        Noisy covariances of the sample, in the units of the columns. It is symmetric,
        and with much noise not positive semi-definite.
    correlation_ : ndarray of shape (n_columns, n_columns)
        The same over the deviations, clipped to [-1, 1]. NaN in the row and the column
        of a variance that is below twice the standard deviation of its noise.
    covariance_std_ : ndarray of shape (n_columns, n_columns)
        Standard deviation that the noise gives `covariance_`, to the first order in
        the noise (delta method).
    mean_ : ndarray of shape (n_columns,)
        Noisy means.
    n_complete_ : float
        Noisy number of records that lack no number, or the noisy sum of their weights;
        the public number of records where none may be missing, it is not private and
        weights do not differ.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to the sums of moments, in half-ranges.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read; only with a `schema`.
    columns_ : ndarray of shape (n_columns,)
        Names of rows and columns of the matrices, where they are known; else positions.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    skpuffer.decomposition.PrivatePCA : Components, with less noise.
    skpuffer.summary.PrivateSummary : Many statistics of a mixed table, also by group.

    Notes
    -----
    *What is released.* With each of d columns mapped to [-1, 1] by its bounds, a row is
    in the ball of radius ``sqrt(d)``: what leaves is what
    :class:`~skpuffer.decomposition.PrivatePCA` releases of rows in a ball, none of
    which is shortened. The noise of a covariance, in half-ranges, grows like d, so
    leave out columns that are not needed. Where numbers may be missing, the number of
    records that lack one is released beside it, which costs nothing: a record adds
    moments or one to this number, never both.

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


class Read(NamedTuple):
    """Noisy moments of rows in [-1, 1].

    Parameters
    ----------
    n_complete, size : float
        Number of rows that lack no number, and the same if it is fit to divide by.
    mean : ndarray of shape (d,)
    covariance, deviations : ndarray of shape (d, d)
        And its standard deviations by the noise, to the first order (delta method).
    """

    n_complete: float
    size: float
    mean: Floats
    covariance: Floats
    deviations: Floats


@dataclass(frozen=True)
class CrossMoments:
    """Contribution of a record: moments of its row, or that it lacks a number.

    Parameters
    ----------
    positions : tuple of int
        Columns whose moments are taken.
    bounds : Bounds
        Of these.
    marks : tuple of int, default=()
        Columns that are one where a number is missing.
    weight : float, default=1.0
        What a record adds that lacks a number; see
        :func:`skpuffer.summary._gaps.gap_weight`.
    counts_present : bool, default=False
        Whether a record that lacks none adds it instead, as where the number of records
        is private; see :func:`skpuffer.summary._gaps.count_weight`.
    weighting : Weighting, default=None
        What is public of the weights of records, whose columns are then the last two of
        a table. A record of the weight s adds s times what it adds otherwise, and the
        rest of it is counted as lacking.
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
        """Sensitivity of each contribution to moves of its record's features.

        Parameters
        ----------
        gaps : ndarray of shape (n, n_features)
            Largest move of each feature.

        Returns
        -------
        ndarray of shape (n,)
        """
        moves = np.minimum(gaps[:, list(self.positions)] / self.bounds.half, 2.0)
        found = self.present.move(moves, norm)
        # one that may gain or lose a number moves by all there is
        appears = np.any(gaps[:, list(self.marks)] > 0, axis=1)
        most = self.sensitivity.value("replace", norm, self.dim)
        return np.where(appears, most, found)

    def read(self, value: Floats, noise: float, n_records: float) -> Read:
        """Return the moments off the noisy sum of contributions.

        Parameters
        ----------
        value : ndarray of shape (dim,)
        noise : float
            Standard deviation of the noise of each coordinate.
        """
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
        mean = math.sqrt(d) * mean
        return Read(float(n_complete), size, mean, d * covariance, d * deviations)
