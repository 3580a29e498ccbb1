"""Template of private fits: the order of steps that keeps the promise."""

from __future__ import annotations

import functools
import os
import sys
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from types import FrameType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import get_tags

from skpuffer._template import RELEASING, _frames, _preview, _reading
from skpuffer._template._classes import declares_classes
from skpuffer._template._elsewhere import TableElsewhere
from skpuffer._template._foreign_code import VectorQuery
from skpuffer._template._plan import FitPlan, Opening, TableRead, Task
from skpuffer._template._preview import UnreadRows, refuse_unread
from skpuffer._template._reading import (
    PRIOR_UNSEEN,
    SUMMED_ELSEWHERE,
    check_schema,
    counted,
    name_of_target,
    public_groups,
    publish_schema,
    read_elsewhere,
    read_table,
    sum_elsewhere,
)
from skpuffer._template._units import by_units, kept_rows, with_sizes
from skpuffer._template._weights import (
    Weighting,
    check_weight_bounds,
    read_weights,
    with_weights,
)
from skpuffer.accountants import Accountant, PrivacyLoss
from skpuffer.accountants._base import check_values
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    NoGainWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    Statement,
    UncertifiedError,
    WeakPromiseWarning,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel import run as kernel_run
from skpuffer.kernel.draws import noise_generator, spawned
from skpuffer.kernel.gradients import GradientRelease
from skpuffer.kernel.partitions import PartitionRelease
from skpuffer.kernel.queries import QueryRelease
from skpuffer.kernel.run import on_grid, without_room
from skpuffer.releases import PublicContext
from skpuffer.scenarios import RecordScenario, Scenario
from skpuffer.scenarios._base import check_size_said
from skpuffer.schema import Schema
from skpuffer.utils._listeners import carries_listeners, tell
from skpuffer.utils._reading import COLLECT, is_lazy, read_groups
from skpuffer.utils._silence import warn
from skpuffer.utils._sklearn import SETTINGS, fit_context, linked_to_docs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Calibration
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate
    from skpuffer.scenarios import BoundScenario
    from skpuffer.utils._types import Table

__all__ = ["DEFAULT_DELTA", "DEFAULT_EPSILON", "PrivateEstimatorMixin", "Task"]


# -- A fit begins from nothing, and leaves nothing where it fails ----------------------


#: Attributes that hold the parameters an earlier fit released, for a warm start.
RELEASED = ("_released",)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def forget(estimator: BaseEstimator, keep: Iterable[str] = ()) -> None:
    """Remove every attribute that a fit has set.

    That is what has an underscore before or after its name, unless it is a parameter or
    a setting of scikit-learn's, or in `keep`.
    """
    # parameters are the user's, and settings such as callbacks outlive any one fit
    keep = {*keep, *SETTINGS, *estimator.get_params(deep=False)}
    for name in list(vars(estimator)):
        if (name.startswith("_") or name.endswith("_")) and name not in keep:
            del vars(estimator)[name]


def all_or_nothing(
    fit: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Decorate a method that fits to begin from nothing, and leave nothing on failure.

    Attributes of an earlier fit are removed first, except `RELEASED`. A fit that
    raises, or that a forked process goes on with, leaves nothing fitted.
    """

    @functools.wraps(fit)
    def fit_or_forget(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        estimator, process = args[0], os.getpid()
        try:
            # before the first check: a call that is refused must not leave the
            # certificate of an earlier one beside parameters it was not made for
            forget(estimator, keep=RELEASED)
            fitted = fit(*args, **kwargs)
            # one entry of a ledger, and one stream of noise, are for one release
            if os.getpid() != process:
                raise RuntimeError(Statement("release.process_forked_during_fit"))
            return fitted
        # an interrupt as well: some attributes may be set by then, and the others not
        except BaseException:
            forget(estimator)
            raise

    return fit_or_forget


# -- template of private fits: the order of steps that keeps the promise ---------------


# Assigned here once more: the reference takes what it says of a name from where that
# is assigned.

#: What a certificate says of any noise, which theorems take for a real number.
FLOATING_POINT = kernel_run.FLOATING_POINT

#: What an estimator cannot see of the steps before it.
UNTOUCHED_ROWS = Statement("assume.rows_untouched_by_others")

#: Records of a table whose number is private, at most: their sums are rounded as
#: those of so many.
MOST_RECORDS = 2**30

#: Releases that read units of several rows as one record each.
OF_UNITS = (GradientRelease, PartitionRelease)

#: What an error tells, where a table without a code book is refused.
REFUSES_MISSING = Statement("assume.refusal_of_missing_uncovered")


@carries_listeners
@linked_to_docs
class PrivateEstimatorMixin(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # scikit-learn is untyped
):
    """Template of a private fit: validate, bind, calibrate, announce, run, publish.

    A subclass has the parameters `scenario`, `accountant` and `random_state` and writes
    two methods, ``_release`` and ``_publish``. It contains no formula of privacy.
    Results of one hook that another needs are in the :class:`Task` or in the release.

    Attributes
    ----------
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the data had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.base import PrivateEstimatorMixin
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> class PrivateCount(PrivateEstimatorMixin):
    ...     def __init__(self, scenario=None, accountant=None, *, random_state=None):
    ...         self.scenario = scenario
    ...         self.accountant = accountant
    ...         self.random_state = random_state
    ...
    ...     def _release(self, task):
    ...         return QueryRelease(
    ...             query=lambda X, y: [(X > 0).sum()],
    ...             n_records=task.context.n_records,
    ...             dim=1,
    ...             sensitivity=Sensitivity(add_remove={1: 1.0}),
    ...             context=task.context,
    ...         )
    ...
    ...     def _publish(self, value, release):
    ...         self.count_ = float(value[0])
    >>> model = PrivateCount().fit(np.arange(-50, 50).reshape(-1, 1))
    >>> model.certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    >>> abs(model.count_ - 49) < 50
    True
    """

    _parameter_constraints: dict[str, Any] = {
        "scenario": [Scenario, None],
        "accountant": [Accountant, None],
        "random_state": ["random_state", np.random.Generator],
        "schema": [Schema, None],
        "weight_bounds": ["array-like", None],
    }

    #: Formats of sparse tables that are read, as scikit-learn's `accept_sparse`.
    _accept_sparse: str | bool = False

    #: Public code book of the table: a parameter of the estimators that read by it.
    schema: Schema | None = None

    #: How numbers of a code book reach the estimator; see :class:`Encoding`.
    _schema_scale: str = "unit_ball"

    #: What stands for parameters that are None and whose own parameters are set.
    _default_parts: dict[str, Callable[[], Any]] = {}

    #: Parameters that are tables of public rows.
    _public_parameters: tuple[str, ...] = ()

    #: Whether nothing but what is released with noise need depend on the number of
    #: records: it may be private, or another one declared.
    _takes_any_size: bool = False

    #: Attributes that are affine in the released vector; see :meth:`_linear_parts`.
    _affine_attributes: tuple[str, ...] = ()

    # how a table is read where a subclass says nothing else
    _validate = _reading.validate_features
    _of_no_target = _reading.of_no_target
    preview = _preview.preview
    _made_up = _preview.made_up
    # others have tables of their own, by other parameters
    to_frame: Any = _frames.to_frame

    # -- the template -------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        *,
        secret: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **refused: Any,
    ) -> Self:
        """Fit under the scenario, adding the noise its accountant calibrates.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Private records. The secret column is dropped. Lazy data frames are summed
            up by the engine that holds them. See :meth:`Schema.check
            <skpuffer.schema.Schema.check>` for how cells are read.
        y : array-like of shape (n_records,), default=None
            Private target, where the estimator has one; of a lazy data frame, its
            column.
        secret : array-like of shape (n_records,), default=None
            Values of the secret, for ``prior='empirical'`` if they are no column of
            `X`.
        groups : array-like of shape (n_records,), default=None
            Public ids of what the records belong to, such as the blocks of a
            :class:`~skpuffer.scenarios.BlocksScenario`. Ids that repeat are refused
            where the secret is that of single records.
        **refused : dict
            Nothing else is taken, no `sample_weight` either.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the data is not as it must be. After any exception nothing
            is fitted.
        UnsupportedError
            If the accountant does not support the scenario.
        """
        refuse_arguments(self, refused)
        fitted: Self = self._fit_validated(X, y, secret, groups)
        return fitted

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _fit_validated(
        self,
        X: Table,
        y: ArrayLike | None,
        secret: ArrayLike | None,
        groups: ArrayLike | None,
        weights: ArrayLike | None = None,
    ) -> Self:
        fitted: Self = self._fit_private(X, y, secret, groups, weights=weights)
        return fitted

    @all_or_nothing
    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit_private(
        self,
        X: Table,
        y: ArrayLike | None,
        secret: ArrayLike | None,
        groups: ArrayLike | None,
        feature_map: Any = None,
        approve: Callable[[FitPlan], None] | None = None,
        given: Any = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """`fit`, with public preprocessing between the raw columns and the model.

        `approve` is told of what is going to be released before anybody else is, and
        may raise. `given` is the table as it came, if `X` is a part of it.
        """
        self._fit_steps(X, y, secret, groups, feature_map, approve, given, weights)
        return self

    def _fit_steps(
        self,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
        approve: Callable[[FitPlan], None] | None,
        given: Any,
        weights: Any = None,
    ) -> None:
        if self._finder is not None:
            self._finder._fit_within(
                self, X, y, secret, groups, feature_map, approve, given, weights
            )
            return
        opening = self._opening(y)
        rng = opening.rng
        # already released and paid for: going on from it is post-processing
        released = vars(self).pop("_released", None)  # type: ignore[attr-defined]
        # listeners may end the fit here, when nothing has been read yet
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        # steps of a pipeline around this fit that learnt from the same rows
        opening = replace(opening, leaks=(*opening.leaks, *unnoised_steps()))

        if is_lazy(X):
            if self._weight_bounds is not None:
                raise unsupported_error(
                    "lazy.parameter_per_row",
                    parameter="weight_bounds",
                    collect=COLLECT,
                )
            table = read_elsewhere(self, opening, X, y, secret, groups, feature_map)
        else:
            scenario, given = opening.scenario, X if given is None else given
            if scenario.reads_sizes:
                scenario = with_sizes(scenario, given, groups)
                opening = replace(opening, scenario=scenario)
            limited = scenario.max_rows is not None
            units = None
            if limited:
                X, y, secret, groups, weights, units = kept_rows(
                    scenario, X, y, secret, groups, rng, weights, given
                )
            table = read_table(self, scenario, X, y, secret, groups, feature_map, given)
            if limited:
                table = by_units(self, scenario, table, units)
            if self._weight_bounds is not None or table.by_units:
                table = read_weights(
                    weights, table, self._weighting(table.by_units), self._weight_bounds
                )
        plan = self._plan_fit(opening, table, released)
        if opening.seeded:
            plan = plan.seeded()
        if approve is not None:
            approve(plan)
        task, release, calibration = plan.task, plan.release, plan.calibration
        exact = not np.any(calibration.noise.scale)
        # before a ledger hears of it: where warnings are errors, nothing is spent
        announce_weakness(self, plan.certificate, callback.root_uuid)
        announce(self, plan.certificate, opening.seeded, exact, plan.leaks)
        announce_gain(self, calibration, opening.accountant, release, plan.bound)
        # of public noise, which may forbid what was asked for
        if hasattr(self, "_announce_noise"):
            self._announce_noise(release, calibration.noise)
        # A ledger that listens may refuse here, before any noise is drawn. It hears of
        # this release alone: what it started from was told of before.
        ledger = callback.subcontext(task_name="release")
        metadata = {"certificate": plan.certificate}
        ledger.call_on_fit_task_begin(estimator=self, metadata=metadata)

        execute = partial(self._execute, task, release)
        if plan.bound.realises:
            execute = partial(self._execute_realised, plan)
        noise, pay = calibration.noise, partial(tell, self, metadata, ledger)
        value = kernel_run.run(plan.certificate, noise, release, execute, rng, pay)
        # attributes are set only after this, and from noisy values and public facts
        # alone
        self._check_released(value)
        self.certificate_ = plan.whole
        self.noise_ = calibration.noise
        self.accountant_ = opening.accountant
        self._publish(value, release)
        for name, found in self._deviations(calibration.noise, release, value).items():
            setattr(self, f"{name}std_", found)
        self.certificate_ = replace(self.certificate_, errors=_noise_errors(self))
        if table.schema_map is not None:
            publish_schema(self, table.schema_map)
        ledger.call_on_fit_task_end(estimator=self, metadata=metadata)
        callback.call_on_fit_task_end(estimator=self, metadata=metadata)

    def _opening(self, y: Any) -> Opening:
        """Check the parameters, as plain code can.

        What is refused here is refused before any row is read, so that the refusal
        tells nothing of the data.
        """
        if self._finder is not None:
            # of what else plans a fit, such as a search
            raise unsupported_error("bounds.finder_of_part", owner=type(self).__name__)
        scenario, accountant = scenario_and_accountant(self)
        rng, seeded = noise_generator(self.random_state)
        if self.schema is not None:
            check_schema(self, name_of_target(y))
        self._check_parameters(scenario)
        # what a parameter such as bounds='empirical' takes from the rows, in words
        leaks = self._leaks()
        if self._weight_bounds is not None:
            check_weight_bounds(self._weight_bounds, scenario)
        return Opening(
            scenario=scenario,
            accountant=accountant,
            rng=rng,
            seeded=seeded,
            leaks=leaks,
            size=self._stated_size(scenario),
        )

    def _stated_size(self, scenario: Scenario | None) -> int | str:
        """Return what is said of the number of records; see :class:`Opening`.

        By the scenario or the code book, of an estimator that can do without it.
        """
        # by exact type: a subclass may take the number for a fact
        records = scenario is None or type(scenario) is RecordScenario
        sizes: list[Any] = [
            getattr(told, "size", None)
            for told in (scenario if records else None, self.schema)
        ]
        size, *others = [size for size in sizes if size is not None] or ["public"]
        if others and others != [size]:
            raise value_error("size.scenario_and_schema_differ", sizes=sizes)
        if size == "public":
            return "public"
        if not self._takes_any_size:
            raise unsupported_error(
                "size.estimator_without", estimator_type=type(self).__name__, size=size
            )
        if not records:
            name = type(scenario).__name__
            raise unsupported_error("size.scenario_without", scenario_type=name)
        check_size_said(size, getattr(scenario, "relation", "add_remove"))
        return size if isinstance(size, str) else int(size)

    def _plan_fit(self, opening: Opening, table: TableRead, released: Any) -> FitPlan:
        """Return what a fit is going to release, with which noise and which promise.

        It reads public facts only, so that a preview is this very function.
        """
        scenario, accountant = opening.scenario, opening.accountant
        n_records, size = table.n_given, "public"
        if opening.size == "private":
            n_records, size = MOST_RECORDS, "private"
        elif opening.size != "public":
            n_records, size = int(opening.size), "declared"
        elif scenario.draws_from_pool:
            # what the query is run on is smaller
            n_records = scenario.table_size(n_records)
        # All that a scenario may know of this table. The classes and, unless somebody
        # said otherwise, the number of records are public by assumption, and the
        # certificate says so.
        context = PublicContext(
            n_records=n_records,
            size=size,
            feature_names=table.names,
            n_features=self.n_features_in_,
            target_name=table.target_name,
            has_target=table.has_target,
            n_targets=table.n_targets,
            classes=None
            # known to classifiers alone, from the parameter or from the labels in `y`
            if not hasattr(self, "classes_")
            else tuple(np.asarray(self.classes_).tolist()),
            groups=table.groups,
            of_units=table.by_units,
            feature_map=table.feature_map,
            empirical=table.empirical,
            pool=(table.X, table.y) if scenario.draws_from_pool else None,
        )
        start = self._start(released)
        task = Task(
            scenario=scenario,
            accountant=accountant,
            context=context,
            X=table.X,
            y=table.y,
            reading=table.reading,
            start=None if start is None else start.parameters,
            start_assumption=None if start is None else start.assumption,
            units=table.units,
            weighting=table.weighting,
            weights=table.weights,
        )
        # complete here: what is accounted for below is executed from this same object
        release = self._release(task)
        if context.of_units or table.weighting is not None:
            self._check_weighted(task, release)
        # bound to the release's context, where the estimator may have added its bounds
        bound = scenario.bind(release.context)
        leaks = opening.leaks
        assumed: list[Statement | None] = []
        if isinstance(table.X, TableElsewhere):
            sum_elsewhere(self, table.X, release, bound)
            assumed.append(SUMMED_ELSEWHERE)
            if scenario.max_rows is not None:
                most = int(scenario.max_rows)
                assumed.append(Statement("assume.units_weighed_elsewhere", most=most))
            if scenario.public_rows():
                assumed.append(PRIOR_UNSEEN)
        elif not isinstance(table.X, UnreadRows):
            # rows that the scenario rules out are refused before anything is
            # calibrated: no promise would hold for them
            rows = bound.check_rows(table.X)
            bound.check_table(rows, table.y)
            if table.secret is not None:
                bound.check_secrets(table.secret)
            if table.of_no_target is not None and table.has_target:
                mask = counted(np.asarray(table.y))
                if mask is not None and not mask.any():
                    raise value_error("target.no_record_has_one")
            leaks = (*leaks, *table.leaks())
            if rows is not table.X:
                task = replace(task, X=_cells_as_cells(rows, table.X))
        rounding = None
        if isinstance(table.X, TableElsewhere):
            rounding = table.X.rounding(release.contribution)
        # from facts about the release: only an empirical prior puts rows among them
        calibration = proved(
            accountant,
            release,
            bound,
            opening.rng,
            rounding,
            any_records=rounding is not None and scenario.any_records,
        )
        if table.has_target:
            assumed += [bound.target_assumption, table.of_no_target]
        assumed.append(UNTOUCHED_ROWS)
        if task.weighting is not None:
            assumed += task.weighting.assumptions
        if table.schema_map is not None:
            assumed += table.schema_map.schema.of_gaps
        elif self._refuses_missing():
            assumed.append(REFUSES_MISSING)
        if table.feature_map is not None:
            assumed.append(table.feature_map.assumption)
            leaks = (*leaks, *table.feature_map.leaks)

        certificate = calibration.certificate.assuming(*filter(None, assumed))
        # one value read off the rows outside of the promise is enough to void it
        for leak in leaks:
            certificate = certificate.as_estimate(leak)
        return FitPlan(
            task=task,
            release=release,
            bound=bound,
            calibration=calibration,
            certificate=certificate,
            # refused here, before a ledger is told, where the two do not add up
            whole=certificate if start is None else start.covering(certificate),
            leaks=leaks,
        )

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _plan_unread(
        self,
        X: Any,
        y: Any,
        *,
        n_records: int,
        groups: Any = None,
        released: Any = None,
        feature_map: Any = None,
    ) -> FitPlan:
        """Return the plan of a fit to a table of which this is a made-up excerpt.

        Of an estimator made for it: attributes are set, as reading a table does.
        """
        if self._finder is not None:
            plan: FitPlan = self._finder._plan_within(
                self, X, y, n_records=n_records, groups=groups, feature_map=feature_map
            )
            return plan
        opening = self._opening(y)
        if opening.scenario.reads_sizes and groups is not None:
            # of the ids beside the table, whose column is made up
            _, sizes = np.unique(read_groups(groups), return_counts=True)
            scenario = opening.scenario.of_sizes(int(sizes.max()))
            opening, groups = replace(opening, scenario=scenario), None
        refuse_unread(self, opening.scenario, opening.leaks)
        table = read_table(self, opening.scenario, X, y, None, None, feature_map)
        unread = UnreadRows(type(self).__name__)
        of_units = by_units(self, opening.scenario, table).by_units
        table = replace(
            table,
            X=unread,
            y=unread if table.has_target else None,
            by_units=of_units,
            weighting=self._weighting(of_units)
            if of_units or self._weight_bounds is not None
            else None,
            n_given=n_records,
            groups=public_groups(opening.scenario, groups, n_records),
        )
        plan = self._plan_fit(opening, table, released)
        if opening.seeded:
            plan = plan.seeded()
        announce_weakness(self, plan.certificate)
        return plan

    def _execute_realised(
        self, plan: FitPlan, noise: Noise, rng: np.random.Generator
    ) -> Any:
        """Execute the release on a table that the scenario draws."""
        task = plan.task
        # by a generator of its own: the noise tells nothing of what was drawn
        X, y = plan.bound.realise(task.X, task.y, *spawned(rng, 1))
        return self._execute(replace(task, X=X, y=y), plan.release, noise, rng)

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        """Execute the release as accounted for, with the calibrated noise."""
        X = task.X
        if task.weights is not None and not isinstance(release, OF_UNITS):
            X = with_weights(X, task.weights)
        return kernel_run.noisy_value(release, X, task.y, noise, rng)

    def _check_released(self, value: Any) -> None:
        """Refuse to publish what is not finite."""
        if not np.all(np.isfinite(value)):
            raise value_error("release.result_not_finite", owner=type(self).__name__)

    @abstractmethod
    def _release(self, task: Task) -> Any:
        """Return the release, complete: it is accounted for and executed as it is."""

    @abstractmethod
    def _publish(self, value: Any, release: Any) -> None:
        """Set the fitted attributes from the noisy vector alone."""

    # -- its parts ----------------------------------------------------------------

    def _weighting(self, by_units: bool) -> Weighting:
        """Return what is public of the weights of records."""
        if self._weight_bounds is None:
            return Weighting(of_units=by_units)
        low, high = map(float, self._weight_bounds)
        return Weighting(low / high, high, by_units)

    def _check_weighted(self, task: Task, release: Any) -> None:
        """Refuse a release of rows that are not weighted as the task says."""
        # what reads units by itself
        if isinstance(release, OF_UNITS):
            return
        held = getattr(release.contribution, "weighting", None)
        if held is not None and held == task.weighting:
            return
        if task.context.of_units:
            # rows would be summed up as if each was a unit
            raise unsupported_error("units.release_of_rows", name=release.name)
        raise unsupported_error("weights.release_without", name=release.name)

    def _check_parameters(self, scenario: Scenario) -> None:
        """Check the parameters that a subclass's privacy rests on, by plain code."""

    def _start(self, released: Any) -> Any:
        """Return where a run starts: None where it always begins at the same point."""
        return None

    def _reads_missing(self) -> bool:
        """Whether missing values are read, and not refused."""
        return bool(get_tags(self).input_tags.allow_nan)

    def _refuses_missing(self) -> bool:
        """Whether a missing value ends a fit that has no code book."""
        return not self._reads_missing()

    def _read_by(self, schema: Schema) -> Any:
        """Return how a table is read by its code book, without the secret."""
        return schema.encoding(self._schema_scale)

    def _linear_parts(self, vector: Floats, release: Any) -> dict[str, Any]:
        """Return `_affine_attributes` of a vector, without their public offsets.

        Each entry is one coordinate times a positive public number. So of the standard
        deviations of the noise these are the deviations of the attributes.
        """
        return {}

    def _offsets(self, release: Any) -> dict[str, Any]:
        """Return what is added to some linear parts: public numbers."""
        return {}

    def _read_off(self, value: Floats, release: Any) -> dict[str, Any]:
        """Return `_affine_attributes` of the noisy vector, of shape (dim,), by name."""
        found = self._linear_parts(value, release)
        offsets = self._offsets(release).items()
        return found | {name: found[name] + offset for name, offset in offsets}

    def _deviations(
        self, noise: Noise, release: Any, value: Floats | None = None
    ) -> dict[str, Any]:
        """Return standard deviations of `_affine_attributes` by noise, by name."""
        # noise of steps has gone through all later ones
        if not self._affine_attributes or not isinstance(release, QueryRelease):
            return {}
        # code of others gives arrays whose shape is known once it has run
        query = release.query
        size = query.size if isinstance(query, VectorQuery) else release.dim
        if size is None:
            return {}
        widths: Any = noise.std(size)
        # some families have no variance, in all coordinates
        if not np.isfinite(widths).all():
            return {}
        return self._linear_parts(widths, release)

    def _foreseen(
        self, noise: Noise, release: Any, n_records: int | None
    ) -> dict[str, Any]:
        """Return deviations as :meth:`_deviations`, before anything is released."""
        return self._deviations(noise, release)

    def _leaks(self) -> tuple[Statement, ...]:
        """Leaks, in sentences: what is read off private data outside any promise."""
        return ()

    @property
    def _weight_bounds(self) -> tuple[float, float] | None:
        """Public bounds of weights, where the estimator takes any."""
        return getattr(self, "weight_bounds", None)

    @property
    def _finder(self) -> Any:
        """Private estimator that releases the bounds first, where `bounds` is one."""
        given = getattr(self, "bounds", None)
        return given if isinstance(given, PrivateEstimatorMixin) else None

    def _validate_params(self) -> None:
        """Check the parameters by their constraints; see :attr:`_finder`."""
        if self._finder is None:
            super()._validate_params()
            return
        if not hasattr(self._finder, "_fit_within"):
            raise value_error(
                "bounds.not_pair_or_dict", name="bounds", bounds=self.bounds
            )
        self._finder._validate_params()
        plain = type(self)(**{**self.get_params(deep=False), "bounds": None})
        plain._validate_params()

    def _reads_units(self) -> bool:
        """Whether a unit of several rows is one record of the release."""
        return False

    def __sklearn_is_fitted__(self) -> bool:
        # a fit sets all or nothing, so one of its attributes stands for the others
        return hasattr(self, "certificate_")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the default scenario and accountant.

        ``accountant__epsilon`` where the accountant is None is that of the default
        accountant.

        Parameters
        ----------
        **params : dict
            As in scikit-learn.

        Returns
        -------
        self : object
        """
        scenario = params.get("scenario", self.scenario)
        plain = scenario is None or isinstance(scenario, RecordScenario)
        defaults: dict[str, Callable[[], Any]] = {
            "accountant": OF_RECORDS if plain else of_secrets,
            "scenario": RecordScenario,
            **self._default_parts,
        }
        for name, make in defaults.items():
            # a nested name is the wish for the default object, unless another one is
            # given in the same call
            nested = any(key.startswith(f"{name}__") for key in params)
            if nested and getattr(self, name) is None and params.get(name) is None:
                params[name] = make()
        changed: Self = super().set_params(**params)
        return changed

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        if self.schema is not None:
            # a code book reads texts and gaps, and no sparse codes
            tags.input_tags.sparse = False
            tags.input_tags.allow_nan = True
            tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _cells_as_cells(rows: Any, X: Any) -> Any:
    """Return rows as a scenario lists them; where those are cells, in their type."""
    cells = isinstance(X, np.ndarray) and X.dtype.kind == "u"
    # of other numbers a cell is only known to be equal up to rounding
    if not cells or not np.array_equal(rows, np.trunc(rows)):
        return rows
    return rows.astype(X.dtype)


def refuse_arguments(estimator: Any, arguments: Iterable[str]) -> None:
    """Refuse keyword arguments that `fit` does not take, and weights with the reason.

    They are not in the signature, by which scikit-learn finds out what `fit` takes.
    """
    remedies = getattr(estimator, "_remedies", {})
    for name in arguments:
        why: Statement | str = "."
        if name in remedies:
            why = Statement(remedies[name])
        elif name == "sample_weight":
            why = Statement("weights.record_weighs_more")
            if "weight_bounds" in estimator.get_params(deep=False):
                why = Statement("weights.bounds_missing")
        # scikit-learn's ensembles read these words
        raise type_error(
            "parameter.fit_argument_unexpected",
            estimator_type=type(estimator).__name__,
            name=name,
            why=why,
        )


@all_or_nothing
def weighted_fit(
    self: Any,
    X: Table,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    secret: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **refused: Any,
) -> Any:
    """Fit under the scenario, adding the noise its accountant calibrates.

    Parameters
    ----------
    X : {array-like, data frame} of shape (n_records, n_features)
        Private records. The secret column is dropped. Lazy data frames are summed up by
        the engine that holds them.
    y : array-like of shape (n_records,), default=None
        Private target, where the estimator has one; of a lazy data frame, its column.
    sample_weight : array-like of shape (n_records,), default=None
        Private weights, clipped to the public `weight_bounds`, which are needed; the
        lower one if no number. None is one for all.
    secret : array-like of shape (n_records,), default=None
        Values of the secret, for ``prior='empirical'`` if they are no column of `X`.
    groups : array-like of shape (n_records,), default=None
        Public ids of what the records belong to, such as the blocks of a
        :class:`~skpuffer.scenarios.BlocksScenario`. Ids that repeat are refused where
        the secret is that of single records.
    **refused : dict
        Nothing else is taken.

    Returns
    -------
    self : object

    Raises
    ------
    ValueError
        If a parameter or the data is not as it must be. After any exception nothing is
        fitted.
    TypeError
        On weights without `weight_bounds`.
    UnsupportedError
        If the accountant does not support the scenario, or weights are given under a
        secret that is not any record.
    """
    refuse_arguments(self, refused)
    return self._fit_validated(X, y, secret, groups, sample_weight)


class WeightedFit:
    """`fit` of a class whose objects take weights where they have `weight_bounds`.

    scikit-learn's ensembles give weights to each object whose `fit` has them.
    """

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return weighted_fit
        bounded = getattr(estimator, "weight_bounds", None) is not None
        return MethodType(
            weighted_fit if bounded else PrivateEstimatorMixin.fit, estimator
        )


RELEASING.append(PrivateEstimatorMixin)


#: Methods in which a pipeline or wrapper of scikit-learn fits what is in it.
_FITS = ("fit", "fit_transform", "fit_predict", "partial_fit", "_fit")


def unnoised_steps() -> tuple[Statement, ...]:
    """State each step before the fit that calls this, unless it is known to be safe.

    scikit-learn tells an estimator nothing of pipelines and wrappers around it, so they
    are found on the stack of calls. A step is safe if it maps each row by itself, is
    private, or was fitted on public rows.
    """
    callers: dict[int, tuple[Any, int | None, bool]] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _FITS:
            node, place = map(frame.f_locals.get, ("self", "step_idx"))
            if isinstance(node, BaseEstimator) and not isinstance(
                node, tuple(RELEASING)
            ):
                # the last of a stack reads what those below it answer
                of_answers = "X_meta" in frame.f_locals
                callers.setdefault(id(node), (node, place, of_answers))
        frame = frame.f_back
    if not callers:
        return ()
    # it knows many estimators, which a fit outside of pipelines has no need to load
    from skpuffer._template._steps import leaks_before

    return tuple(
        Statement(
            "pipeline.unnoised_step_before", step=step.estimator, reason=step.reason
        )
        for caller in callers.values()
        for step in leaks_before(*caller)
    )


# -- scenario and accountant of a fit, and what stands for none ------------------------


#: Epsilon of an estimator that was told nothing.
DEFAULT_EPSILON = 1.0

#: Delta of an estimator that was told nothing.
DEFAULT_DELTA = 1e-5

# Made anew at each call, since a default value in a signature must be None. Under
# differential privacy one accountant is the best for every release; elsewhere it
# depends on what the scenario offers.
OF_RECORDS = functools.partial(
    PrivacyLoss, epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA
)


def of_secrets() -> Accountant:
    # it brings accountants with it that plain differential privacy has no use for
    from skpuffer.accountants import Best

    return Best(epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA)


def scenario_and_accountant(estimator: Any) -> tuple[Scenario, Accountant]:
    """Return the scenario and a private copy of the accountant, both checked."""
    found: list[Any] = []
    for name, kind in (("scenario", Scenario), ("accountant", Accountant)):
        held = getattr(estimator, name)
        if held is None:
            default: Any = RecordScenario
            if found:
                plain = isinstance(found[0], RecordScenario)
                default = OF_RECORDS if plain else of_secrets
            held = default()
        if not isinstance(held, kind):
            raise type_error(
                "parameter.not_instance_or_none",
                name=name,
                kind=kind.__name__,
                held=held,
            )
        # by plain code: scikit-learn's validation of parameters can be switched off
        held.check()
        found.append(held)
    scenario, accountant = found
    # a copy: changing the parameter after the fit must not change `accountant_`
    return scenario, clone(accountant)


# -- the noise of a fit: found by a search, and certified as it will be drawn ----------
# Nothing of a search is believed before a release.


def proved(
    accountant: Accountant,
    release: Any,
    bound: BoundScenario,
    rng: np.random.Generator,
    rounding: Floats | None = None,
    any_records: bool = False,
) -> Calibration:
    """Search for noise, and certify the noise that will be drawn.

    The certificate follows from the final noise, the release and the bound scenario. It
    keeps what the search says of other noises: the choice and the gain. Noise that is
    not certified to keep the budget raises an UncertifiedError.
    """
    searched = accountant.calibrate(release, bound, rng)
    check_values(searched.noise, release, joint=True)
    length, dim = None, getattr(release, "dim", None)
    if searched.noise.joint or np.ndim(searched.noise.scale):
        length = searched.noise.dim
    if length is not None and dim is not None and length != dim:
        raise UncertifiedError(
            Statement(
                "release.noise_dimension_mismatch",
                accountant_type=type(accountant).__name__,
                length=length,
                name=release.name,
                dim=dim,
            )
        )
    in_proportion = accountant._by_sensitivity(searched, release, bound)
    drawn, digits = on_grid(
        searched.noise,
        searched.certificate,
        release,
        rng,
        rounding,
        any_records,
        in_proportion,
    )
    bare, certificate = drawn, searched.certificate
    for _ in range(2):
        told = certificate
        if drawn is not searched.noise:
            bare = without_room(drawn, told, release, rounding, any_records)
        certificate = accountant._certified_again(
            replace(searched, noise=bare), release, bound
        )
        if told.sensitivity == certificate.sensitivity:
            break
    stated = replace(searched, noise=bare, certificate=certificate)
    if certificate.record_sensitivity is not None:
        # not at import, as most fits hide any record and compare with nothing
        from skpuffer.accountants._gain import stating_gain

        stated = stating_gain(stated, accountant.epsilon, release, bound)
    return replace(
        stated, noise=drawn, certificate=stated.certificate.assuming(*digits)
    )


# -- what a fit warns of before anything leaves ----------------------------------------


#: A gain over differential privacy up to here is none: noise is found to about so many
#: digits.
_NO_GAIN = 1 + 1e-3

#: Above this an epsilon is hardly a promise by itself.
_LARGE_EPSILON = 10.0

#: More whole numbers than this are rather a count or an amount than names of classes.
_MANY_CLASSES = 50

# What was said in which fit of an outermost estimator. Few of them run at a time.
_SAID: OrderedDict[Any, None] = OrderedDict()
_MOST_SAID = 1000


def announce_gain(
    estimator: Any,
    calibration: Calibration,
    accountant: Accountant,
    release: Any,
    bound: BoundScenario,
) -> None:
    """Warn where differential privacy promises more for the same noise."""
    scenario = bound.scenario
    # it is differential privacy itself, if not of targets alone
    if isinstance(scenario, RecordScenario) and scenario.relation != "relabel":
        return
    # a mutual information is no promise at the epsilon of any other
    if calibration.certificate.epsilon is None:
        return
    # not at import, as most fits end above
    from skpuffer.accountants._gain import gain_over_records

    compared = gain_over_records(calibration, accountant.epsilon, release, bound)
    if compared is None or compared[0] > _NO_GAIN:
        return
    gain, count = compared
    warn(
        Statement(
            "scenario.gains_nothing_over_dp",
            estimator_type=type(estimator).__name__,
            count=count,
            gain=gain,
        ),
        NoGainWarning,
    )


def announce(
    estimator: Any,
    certificate: Certificate,
    seeded: bool,
    exact: bool,
    leaks: Iterable[Statement] = (),
) -> None:
    """Warn of what weakens a promise, before anything leaves."""
    name = type(estimator).__name__
    if seeded:
        warn(
            Statement("noise.drawn_from_seed", name=name),
            SeededNoiseWarning,
        )
    # where a mutual information allows for it, its accountant has warned already
    if exact and not certificate.mutual_information:
        why = Statement("scenario.no_pair_moves_release")
        # no noise, yet a cost: the output's own spread under the prior hides the secret
        if certificate.epsilon:
            why = Statement("scenario.promise_rests_on_prior_variance")
        warn(
            Statement("release.exact_without_noise", name=name, why=why),
            PrivacyWarning,
        )
    for leak in leaks:
        warn(Statement("pipeline.leak", name=name, leak=leak), PrivacyLeakWarning)
    # a leak is the better reason, and has just been given
    if not certificate.notion.certified and not leaks:
        warn(
            Statement("scenario.samples_only_estimate", name=name),
            EstimatedGuaranteeWarning,
        )


def announce_weakness(
    estimator: Any, certificate: Certificate, fit: Any = None
) -> None:
    """Warn of a weak promise, once in a search or pipeline (and worker process)."""
    for kind, text in _weaknesses(estimator, certificate):
        # the numbers may differ from fold to fold, and the advice does not
        key = (fit, type(estimator).__name__, kind)
        if fit is not None and key in _SAID:
            continue
        warn(
            Statement("plain.subject", subject=type(estimator).__name__, text=text),
            WeakPromiseWarning,
        )
        # only now: where warnings are errors, every fit is stopped by it
        _SAID[key] = None
        while len(_SAID) > _MOST_SAID:
            _SAID.popitem(last=False)


def _weaknesses(estimator: Any, c: Certificate) -> Iterator[tuple[str, Statement]]:
    """Kind and text of each weakness, from public facts."""
    n = c.n_records
    if n is not None and c.delta * n >= 1:
        yield (
            "delta",
            Statement("parameter.delta_above_inverse_records", delta=c.delta, n=n),
        )
    if c.epsilon is not None and c.epsilon > _LARGE_EPSILON:
        yield (
            "epsilon",
            Statement(
                "parameter.epsilon_large",
                epsilon=c.epsilon,
                most=_LARGE_EPSILON,
                factor=np.exp(min(c.epsilon, 700.0)),
            ),
        )
    classes = getattr(estimator, "classes_", None)
    if classes is None or not declares_classes(estimator):
        return
    if _are_many_numbers(classes):
        yield (
            "classes",
            Statement("target.classes_are_whole_numbers", n_classes=len(classes)),
        )


def _are_many_numbers(classes: Any) -> bool:
    """Whether class labels look like the values of a number."""
    if len(classes) <= _MANY_CLASSES or classes.dtype.kind not in "iuf":
        return False
    return bool(np.all(classes == np.trunc(classes)))


def _noise_errors(fitted: Any) -> tuple[tuple[str, float, float], ...]:
    """Return the least and the largest deviation of what was released, by name."""
    found = []
    for name in dict.fromkeys((*fitted._affine_attributes, "coef_")):
        held = getattr(fitted, f"{name}std_", None)
        values = np.concatenate([np.empty(0), *_leaves(held)])
        known = values[np.isfinite(values) & (values > 0)]
        if known.size:
            found.append((name.rstrip("_"), float(known.min()), float(known.max())))
    return tuple(found)


def _leaves(held: Any) -> list[Floats]:
    """Return the numbers in deviations of any kind, without lengths of time."""
    if isinstance(held, dict):
        return [leaf for value in held.values() for leaf in _leaves(value)]
    if hasattr(held, "columns"):
        return [leaf for _, column in held.items() for leaf in _leaves(column)]
    values = np.ravel(np.asarray(held))
    return [values.astype(float)] if values.dtype.kind in "fiu" else []
