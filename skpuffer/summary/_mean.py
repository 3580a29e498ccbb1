"""Private means, and the mixin of estimators of moments: public bounds of features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skpuffer._template import _affine
from skpuffer._template._lazy_tables import encoded, number
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import ScenarioError, Statement, UnsupportedError
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.utils._bounds import BOUNDS_LEAK, check_bounds, resolve_bounds
from skpuffer.utils._sklearn import StrOptions

from ._moments import Averages, Moments, column_means

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer._template._lazy_tables import LazyColumn, LazyTable
    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import BoundsLike, RandomState

__all__ = ["BoundedColumnsMixin", "PrivateMean"]

#: What is taken for granted of values beyond the bounds.
CLIPPED = Statement("assume.values_clipped")


class BoundedColumnsMixin:
    """Mixin for estimators with the parameter `bounds` that release moments."""

    bounds: BoundsLike
    schema: Schema | None

    # in the units of the data, in which means are read
    _schema_scale = "raw"

    def _check_parameters(self, scenario: Scenario) -> None:
        # as far as parameters go: how many columns there are is not known yet
        check_bounds(self.bounds)
        # before the data is read, as nothing in it could help
        known = self.bounds is not None or self.schema is not None
        if not known and scenario.any_records:
            raise UnsupportedError(
                Statement("bounds.features_without_bounds", owner=type(self).__name__)
            )

    def _leaks(self) -> tuple[Statement, ...]:
        # only 'empirical' is a text: the range of a column is its two outermost records
        return (BOUNDS_LEAK,) if isinstance(self.bounds, str) else ()

    def _public_bounds(self, task: Task) -> Bounds | None:
        """Bounds of the features: given, of the code book, or declared, if any are."""
        context: Any = task.context
        given = self.bounds
        if self.schema is not None:
            # of the columns that it makes, levels among them
            given = context.feature_map.low, context.feature_map.high
        # the data is passed for 'empirical' alone, which voids the promise: see
        # `_leaks`
        return resolve_bounds(
            given,
            context.n_features,
            scenario=task.scenario,
            context=context,
            X=task.X,
        )

    def _lazy_columns(
        self, table: LazyTable, y: Any, encoding: Any
    ) -> tuple[list[LazyColumn], None, tuple[str, ...]]:
        """Return the columns of a lazy data frame as they are read, and their names."""
        if y is not None:
            raise ValueError(
                Statement("summary.lazy_target_given", owner=type(self).__name__)
            )
        if encoding is not None:
            return encoded(table, encoding), None, encoding.schema.names
        return [number(table, name) for name in table.names], None, table.names

    def _moment_release(
        self, task: Task, *, order: int, name: str, query: Callable[..., Any]
    ) -> QueryRelease:
        """The release of the moments up to an order: a sum, where bounds are known.

        Without bounds it is the query itself, whose output distributions the scenario
        has to know.
        """
        context: Any  # of a fit, which knows the number of features
        scenario, context = task.scenario, task.context
        d, n = context.n_features, context.n_records
        bounds = self._public_bounds(task)
        # what publishes the vector has no data, so the bounds travel with the release
        context = replace(context, bounds=bounds)
        # distributions that a user states are of one output, and this would be another
        if bounds is not None and order > 1 and isinstance(scenario, LawsScenario):
            raise ScenarioError(Statement("summary.laws_with_bounds"))
        # Nothing bounds a record: only the distributions of the output can set noise.
        # The matrix lets a Gaussian prior find them.
        if bounds is None:
            return QueryRelease(
                query=query,
                linear=Averages(n, d) if order == 1 else None,  # type: ignore[arg-type] # an array when asked
                n_records=n,
                dim=order * d,
                name=name,
                context=context,
            )
        moments = Moments(tuple(range(d)), bounds, order)
        return QueryRelease(
            contribution=moments,
            is_sum=True,
            # the number of records is public, so the mean is a sum times a constant
            factor=1 / n,
            dim=moments.dim,
            # noise in proportion to each column's range, so that no wide column drowns
            # others
            units=moments.units,
            # in these units every column is a number in [-1, 1]
            sensitivity=moments.sensitivity.times(1 / n),
            n_records=n,
            name=name,
            context=context,
            assumptions=(CLIPPED,),
        )


class PrivateMean(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Mean of each feature.

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
        Public bounds of the features: numbers, or arrays of shape (n_features,), all
        lows before all highs; in a dict by name for a data frame, else by position,
        where keys that are no columns are passed over. (Of two features a list of
        pairs could be either, and is refused.) What lies outside is clipped. The noise
        of a feature is in proportion to its range. None takes the range the scenario
        declares (that of its public prior), as a dict does for columns it lacks;
        without one the means are released as they are, which only a scenario that
        knows the output's distributions can account for. ``'empirical'`` reads the
        range off the private data, warns, and leaves an estimate for a certificate.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `bounds` are its own. A level becomes a column, whose mean is its
        rate; ``feature_map_.names`` says which. See :class:`~skpuffer.schema.Schema`.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy means. Unbiased for the clipped data, so with much noise they may lie
        outside the bounds.
    mean_std_ : ndarray of shape (n_features,)
        Standard deviation that the noise gives `mean_`, exactly.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to the means, in the units of the data.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read, whose names are
        ``feature_map_.names``; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateSummary : Many statistics of a mixed table, also by group.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateMean
    >>> X = np.random.default_rng(0).uniform(0, 10, size=(10_000, 2))
    >>> summary = PrivateMean(bounds=(0, 10)).fit(X)
    >>> summary.mean_.shape
    (2,)
    >>> round(summary.certificate_.sensitivity, 6)  # in l1, in half-ranges
    0.0002
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.schema = schema
        self.random_state = random_state

    def _release(self, task: Task) -> QueryRelease:
        return self._moment_release(task, order=1, name="mean", query=column_means)

    _affine_attributes = ("mean_",)
    confidence_interval = _affine.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        return {"mean_": vector}

    def _offsets(self, release: Any) -> dict[str, Any]:
        # released about the middles of the bounds, which are public and added back
        bounds = release.context.bounds
        return {} if bounds is None else {"mean_": bounds.middle}

    def _publish(self, value: Any, release: Any) -> None:
        self.mean_ = _affine.read_off(self, value, release)["mean_"]
