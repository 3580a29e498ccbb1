"""Standard scaler whose means and variances are released with noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skpuffer._template import _plan
from skpuffer._template._reading import (
    names_without_secret,
    without_secret,
)
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import value_error
from skpuffer.utils._reading import read_numbers, validate_rows
from skpuffer.utils._sklearn import StrOptions

from ._mean import (
    MINIMAL_VARIANCE,
    BoundedColumnsMixin,
    bounded_variance,
    column_means,
    column_moments,
    divisor_of,
    has_ratios,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import QueryRelease
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import Array, BoundsLike, RandomState, Table


class ColumnwiseMixin(
    OneToOneFeatureMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    BoundedColumnsMixin,
):
    """Mixin for transformers that map each column by itself, by what was released."""

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the columns that `transform` makes."""
        if hasattr(self, "feature_map_"):
            made: Array = self.feature_map_.names.copy()
            return made
        # a pipeline passes on the names of all columns, the secret one too
        if input_features is not None:
            input_features = names_without_secret(self, input_features)
        names: Array = super().get_feature_names_out(input_features)
        return names

    def _read(self, X: Table) -> Floats:
        check_is_fitted(self)
        X = without_secret(self, X)
        rows: Floats = validate_rows(self, X, dtype=np.float64, copy=True, reset=False)
        return rows

    def _read_mapped(self, X: Table, n_features: int) -> Floats:
        """Return a copy of rows that `transform` made."""
        rows = np.array(read_numbers(X), dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise value_error(
                "summary.scaler_shape_differs", n_features=n_features, shape=rows.shape
            )
        return rows


class PrivateStandardScaler(ColumnwiseMixin, PrivateEstimatorMixin):
    """Centre and scale features by private means and variances.

    It does what scikit-learn's :class:`~sklearn.preprocessing.StandardScaler` does,
    from one noisy release of first and second moments. Transforming is post-processing.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped in `fit`, not in `transform`.
        None takes the scenario's range; without one only a scenario that knows the
        distributions of all means, then all deviations, can account. 'empirical' reads
        the private data and warns.
    with_mean : bool, default=True
        Whether to centre.
    with_std : bool, default=True
        Whether to scale. If not, second moments are not released.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. A level becomes a column, whose mean is its rate, and so do the
        marks of missing numbers; see ``feature_map_.names``.
    clip : bool, default=False
        Whether means are clipped to the bounds: closer to the exact ones, but biased.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights; see :class:`PrivateMean`.
    weight : {'row', 'unit'}, default='row'
        Whether each row or each unit counts once; see :class:`PrivateMean`. Variances
        of units are those of a random row of a unit.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy means.
    size_, size_std_ : float
        Noisy number of records and its standard deviation; where it is private.
    weight_sum_ : float
        Noisy sum of the weights; only with `weight_bounds` that differ.
    mean_std_ : ndarray of shape (n_features,)
        Standard deviation of the noise of `mean_` before `clip`; of ratios to the first
        order (delta method).
    var_ : ndarray of shape (n_features,) or None
        Noisy variances, between the floor below and the squared half-range, or None.
    scale_ : ndarray of shape (n_features,) or None
        Square roots of `var_`: positive.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise of the means in the units of the data, then of the second moments in
        their squares. With missing values it is that of sums.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    Variances are floored at the standard deviation of their own noise, and at 1e-6 of
    the squared half-range. Both are public.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateStandardScaler
    >>> X = np.random.default_rng(0).normal([5, 50], [1, 10], size=(50_000, 2))
    >>> scaler = PrivateStandardScaler(bounds=([0, 0], [10, 100]))
    >>> bool(np.all(np.abs(scaler.fit_transform(X).std(axis=0) - 1) < 0.1))
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "clip": ["boolean"],
        "weight": [StrOptions({"row", "unit"})],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        with_mean: bool = True,
        with_std: bool = True,
        schema: Schema | None = None,
        clip: bool = False,
        weight_bounds: tuple[float, float] | None = None,
        weight: str = "row",
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.with_mean = with_mean
        self.with_std = with_std
        self.schema = schema
        self.clip = clip
        self.weight_bounds = weight_bounds
        self.weight = weight
        self.random_state = random_state

    fit = WeightedFit()

    _takes_any_size = True

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if not self.with_mean and not self.with_std:
            raise value_error("summary.scaler_nothing_to_fit")

    def _release(self, task: Task) -> QueryRelease:
        # what is not released is not paid for
        if not self.with_std:
            return self._moment_release(task, order=1, name="means", query=column_means)
        return self._moment_release(task, order=2, name="moments", query=column_moments)

    _affine_attributes = ("mean_",)
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        if has_ratios(release):
            return {}
        return {"mean_": np.split(vector, 2)[0] if self.with_std else vector}

    def _offsets(self, release: Any) -> dict[str, Any]:
        bounds = release.context.bounds
        return {} if bounds is None else {"mean_": bounds.middle}

    def _publish(self, value: Any, release: Any) -> None:
        # Moments of bounded columns are those of x less the middle of its bounds;
        # without bounds the query released means and deviations as they are.
        bounds = release.context.bounds
        self._publish_means(value, release)
        if has_ratios(release):
            # a column of hardly any value is scaled by its bounds
            self.mean_ = np.where(np.isnan(self.mean_), bounds.middle, self.mean_)
        if not self.with_std:
            self.var_: Any = None
            self.scale_: Any = None
            return
        # the floor is the noise's own public deviation, and reads no data
        noise = self.noise_.std(value.size)
        if has_ratios(release):
            n = divisor_of(release.context)
            read = release.contribution.read(value, noise, n)
            least = np.maximum(MINIMAL_VARIANCE, read.second_std)
            share = bounded_variance(read.first, read.second, least)
            self.var_ = bounds.half**2 * np.where(np.isnan(share), 1.0, share)
            self.scale_ = np.sqrt(self.var_)
            return
        first, second = np.split(value, 2)
        floor = np.split(noise, 2)[1]  # a variance below its own noise says nothing
        if bounds is None:
            # here the second half are standard deviations, not second moments
            deviation = np.maximum(second, floor)
            # without noise a constant column has no deviation: leave it as it is
            self.var_ = np.where(deviation > 0, deviation, 1.0) ** 2
        else:
            # in units of the half-range, so that x lies in [-1, 1] and its variance in
            # [0, 1]
            unit = bounds.half**2
            least = np.maximum(MINIMAL_VARIANCE, floor / unit)
            variance = bounded_variance(first / bounds.half, second / unit, least)
            self.var_ = unit * variance
        self.scale_ = np.sqrt(self.var_)

    # -- post-processing ----------------------------------------------------------

    def transform(self, X: Table) -> Floats:
        """Centre and scale.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is dropped.

        Returns
        -------
        ndarray of shape (n_records, n_features)
        """
        X = self._read(X)
        if self.with_mean:
            X -= self.mean_
        if self.with_std:
            X /= self.scale_
        return X

    def inverse_transform(self, X: Table) -> Floats:
        """Undo :meth:`transform`.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)

        Returns
        -------
        ndarray of shape (n_records, n_features)
        """
        check_is_fitted(self)
        # a copy, as it is scaled in place
        X = self._read_mapped(X, len(self.mean_))
        if self.with_std:
            X *= self.scale_
        if self.with_mean:
            X += self.mean_
        return X
