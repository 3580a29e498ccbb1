"""Template of private fits: the order of steps that keeps the promise."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    clone,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_consistent_length

from skpuffer._affine import AffineReleaseMixin, deviation_name
from skpuffer._code_book import CodeBookMixin
from skpuffer._lazy_tables import LazyTable, SummedColumns
from skpuffer._preview import PreviewMixin, UnreadRows, refuse_unread
from skpuffer._targets import counted, rows_and_labels
from skpuffer.accountants import Accountant, Calibration, PrivacyLoss
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    NoGainWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    UnsupportedError,
    WeakPromiseWarning,
)
from skpuffer.noise._on_grid import (
    add_noise,
    draws_exactly,
    noise_grid,
    with_room_for_grid,
)
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    PublicContext,
    QueryRelease,
    VoteRelease,
)
from skpuffer.scenarios import BoundScenario, RecordScenario, Scenario
from skpuffer.schema import Schema
from skpuffer.utils._checks import noise_generator
from skpuffer.utils._doc_links import DocLinkMixin
from skpuffer.utils._elsewhere import TableElsewhere
from skpuffer.utils._entropy import spawned
from skpuffer.utils._listeners import carried, tell
from skpuffer.utils._reading import (
    COLLECT,
    as_table,
    column_names,
    drop_position,
    is_frame,
    is_lazy,
    matching_names,
    read_groups,
    read_secret,
    to_pandas,
    validate_labels,
    validate_rows,
)
from skpuffer.utils._sklearn import SETTINGS, fit_context
from skpuffer.utils._steps import unnoised_steps
from skpuffer.utils._warn import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Floats, Indices, Table

__all__ = [
    "DEFAULT_DELTA",
    "DEFAULT_EPSILON",
    "FLOATING_POINT",
    "SEEDED",
    "UNNOISED_STEP",
    "UNTOUCHED_ROWS",
    "PrivateEstimatorMixin",
    "Task",
]

#: Epsilon of an estimator that was told nothing.
DEFAULT_EPSILON = 1.0

#: Delta of an estimator that was told nothing.
DEFAULT_DELTA = 1e-5

# Made anew at each call, since a default value in a signature must be None. Under
# differential privacy one accountant is the best for every release; elsewhere it
# depends on what the scenario offers.
_OF_RECORDS = functools.partial(
    PrivacyLoss, epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA
)


def _of_secrets() -> Accountant:
    # it brings accountants with it that plain differential privacy has no use for
    from skpuffer.accountants import Best

    return Best(epsilon=DEFAULT_EPSILON, delta=DEFAULT_DELTA)


#: A gain over differential privacy up to here is none: noise is found to about so many
#: digits.
_NO_GAIN = 1 + 1e-3

#: What a certificate says of noise that can be drawn again.
SEEDED = "the noise was drawn from a seed: whoever knows it can remove the noise"

#: What a certificate says of any noise, which theorems take for a real number.
FLOATING_POINT = (
    "the noise is drawn in floating point: the last digits of what is released may "
    "tell more than the promise allows"
)

#: What a certificate says of noise that is drawn exactly, in whole steps of a grid.
ON_GRID = (
    "what is released is rounded to a public grid, and the noise is drawn from its "
    "exact distribution there, of bits that a stream cipher (ChaCha20) makes of the "
    "operating system's: the last digits tell no more than the rest"
)

#: The same of sums of gradients, of which there are too many for exact draws.
SUMS_ON_GRID = (
    "sums of gradients and their noise are rounded to a public grid; the noise is "
    "drawn in floating point, of bits that a stream cipher (ChaCha20) makes of the "
    "operating system's, and is off its distribution by rounding, far below a step"
)

#: What the grid rests on, where noise pays for it.
ROUNDED_SUMS = (
    "rounding errors of the exact value are taken to be below half of a step of the "
    "grid, and the noise covers them"
)

#: The same where what it would cost is not known.
NO_ROOM = (
    "the exact value is rounded to it as well, by less than a thousandth of the noise, "
    "which is not counted"
)

#: What a certificate says of a table that was summed up by the engine that holds it.
SUMMED_ELSEWHERE = (
    "each row of the lazy data frame is made of one record alone, and the engine that "
    "holds it clips, counts and sums up as it is asked to; numbers of a record "
    "are rounded to 2**-31 of their bounds there, and sums of them are exact"
)

#: The same where noise does not cover how far a record is rounded.
ROUNDED_ELSEWHERE = (
    "how numbers of a record are rounded by the engine that holds the table is not "
    "counted"
)

#: What a certificate cannot say of it.
PRIOR_UNSEEN = (
    "no prior of the scenario was made of rows of this table, which is not looked for "
    "where the table lies elsewhere"
)

#: What a certificate says of labels that no public class names.
NO_LABEL = (
    "a record whose label is missing, or none of the declared classes, counts as "
    "nothing"
)

#: What an estimator cannot see of the steps before it.
UNTOUCHED_ROWS = (
    "no record reaches the estimator changed by the others: no step before it, such as "
    "a scaler, was fitted on the same rows without noise of its own"
)

#: What is said of a step that makes the sentence above false.
UNNOISED_STEP = (
    "the step {} before it was fitted on the same rows without noise, so that rows "
    "reach it changed by the others; compose.audit_pipeline() names such steps, and "
    "compose.PublicPreprocessing fits them on public rows"
)

#: Attributes that hold the parameters an earlier fit released, for a warm start.
RELEASED = ("_released",)

#: Parameters of a model of which a certificate says that rounding is covered.
_MANY_PARAMETERS = 2**20

# By the very type: another kind of release is executed in its own way.
_EXECUTED_ON_GRID: dict[type, str] = {
    AdaptiveRelease: ON_GRID,
    GradientRelease: SUMS_ON_GRID,
    QueryRelease: ON_GRID,
    VoteRelease: ON_GRID,
}

#: Above this an epsilon is hardly a promise by itself.
_LARGE_EPSILON = 10.0

#: More whole numbers than this are rather a count or an amount than names of classes.
_MANY_CLASSES = 50

# What was said in which fit of an outermost estimator. Few of them run at a time.
_SAID: OrderedDict[Any, None] = OrderedDict()
_MOST_SAID = 1000

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of one fit, checked and validated: all that its hooks are told.

    Parameters
    ----------
    scenario : Scenario
        For public bounds it declares; nothing else of it concerns an estimator.
    accountant : Accountant
    context : PublicContext
    X, y : validated private data
        For ``'empirical'`` parameters only, until the release is run.
    reading : object
        Public: how the table was read, as `_validate` says.
    start : ndarray or None
        Parameters that are public or were released before, where this fit goes on from
        them.
    start_assumption : str or None
        What the certificate takes for granted of them.

    Examples
    --------
    What the hooks of an estimator are told:

    >>> import pandas as pd
    >>> from skpuffer.summary import PrivateMean
    >>> class Told(PrivateMean):
    ...     def _release(self, task):
    ...         print(task.context.n_records, task.context.feature_names, task.scenario)
    ...         return super()._release(task)
    >>> mean = Told(bounds=(0, 1)).fit(pd.DataFrame({"x": [0.1, 0.7, 0.3]}))
    3 ('x',) RecordScenario()
    """

    scenario: Scenario
    accountant: Accountant
    context: PublicContext
    X: Any
    y: Any = None
    reading: Any = None
    start: Any = None
    start_assumption: str | None = None


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Parameters of one fit, checked before any row is read.

    Parameters
    ----------
    scenario : Scenario
    accountant : Accountant
        A copy that belongs to the fit.
    rng : numpy.random.Generator
    seeded : bool
    leaks : tuple of str
        What parameters take from private rows, in sentences.
    """

    scenario: Scenario
    accountant: Accountant
    rng: np.random.Generator
    seeded: bool
    leaks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TableRead:
    """A table as a fit has read it, and what is public of it.

    Parameters
    ----------
    X, y, secret : validated private data
        In a preview :class:`UnreadRows`.
    empirical : tuple or None
        The rows as they came, where the scenario takes them as its prior.
    n_given : int
        Number of rows.
    groups : tuple of int or None
    names : tuple of str or None
        Of the raw columns.
    target_name : str or None
    has_target : bool
    n_targets : int
    feature_map, schema_map : object or None
        Public preprocessing, and the code book where that is what it is.
    reading : object or None
        As :meth:`PrivateEstimatorMixin._validate` says.
    of_no_target : str or None
        What a certificate says of records without a target.
    """

    X: Any
    y: Any
    secret: Any
    empirical: Any
    n_given: int
    groups: tuple[int, ...] | None
    names: Any
    target_name: Any
    has_target: bool
    n_targets: int
    feature_map: Any
    schema_map: Any
    reading: Any
    of_no_target: str | None


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """What a fit is going to release, with which noise and which promise.

    Parameters
    ----------
    task : Task
    release : QueryRelease, GradientRelease, VoteRelease or SelectionRelease
    bound : BoundScenario
    calibration : Calibration
    certificate : Certificate
        Of this release.
    whole : Certificate
        With what the fit starts from.
    leaks : tuple of str
    """

    task: Task
    release: Any
    bound: BoundScenario
    calibration: Calibration
    certificate: Certificate
    whole: Certificate
    leaks: tuple[str, ...]


def forget(estimator: BaseEstimator, keep: Iterable[str] = ()) -> None:
    """Remove every attribute that a fit has set.

    That is what has an underscore before or after its name, unless it is a parameter or
    a setting of scikit-learn's. So nobody has to list what fits set.

    Parameters
    ----------
    estimator : estimator
    keep : iterable of str, default=()
        Names that stay.
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

    What an earlier fit has set is removed first, except what it released, in
    `RELEASED`. A fit that raises, by an interrupt too, leaves nothing fitted. The
    decorator goes around all that calls callbacks, which may raise when the fit is
    done.

    Parameters
    ----------
    fit : method

    Returns
    -------
    method
    """

    @functools.wraps(fit)
    def fit_or_forget(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        estimator = args[0]
        try:
            # before the first check: a call that is refused must not leave the
            # certificate of an earlier one beside parameters it was not made for
            forget(estimator, keep=RELEASED)
            return fit(*args, **kwargs)
        # an interrupt as well: some attributes may be set by then, and the others not
        except BaseException:
            forget(estimator)
            raise

    return fit_or_forget


class PrivateEstimatorMixin(
    PreviewMixin,
    DocLinkMixin,
    CodeBookMixin,
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # scikit-learn is untyped
):
    """Template of a private fit: validate, bind, calibrate, announce, run, publish.

    A subclass has the parameters `scenario`, `accountant` and `random_state` and
    writes two methods, ``_release`` and ``_publish``. It contains no formula
    of privacy. What one hook finds and another needs is passed on, in the
    :class:`Task` or in the release; nothing waits for it on the estimator.

    Attributes
    ----------
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the data had names that are all strings.

    Examples
    --------
    A subclass says what is about to leave and what it makes of the noisy value. All
    else, from reading the table to the certificate, is done here:

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
    }

    #: Formats of sparse tables that are read, as scikit-learn's `accept_sparse`.
    _accept_sparse: str | bool = False

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
            Private records. A column the scenario names as the secret is dropped.
            A lazy data frame, where what is released is a sum over records, is summed
            up by the engine that holds it.
        y : array-like of shape (n_records,), default=None
            Private target, where the estimator has one. Of a lazy data frame, the name
            of its column.
        secret : array-like of shape (n_records,), default=None
            Values of the secret, needed only under ``prior='empirical'`` when they
            are not a column of `X`.
        groups : array-like of shape (n_records,), default=None
            Public ids of what the records belong to, such as households: the blocks of
            a :class:`~skpuffer.scenarios.BlocksScenario` without sizes, and what
            :class:`~skpuffer.ensemble.PATEClassifier` deals whole to one teacher. Ids
            that repeat are refused where the secret is that of single records.
        **refused : dict
            Nothing else is taken, a `sample_weight` least of all: a record that weighs
            more would move the result further than its noise hides.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data is not as it must be. Whatever is raised, by a
            callback or an interrupt too, nothing is fitted then.
        TypeError
            On any other argument.
        UnsupportedError
            If the accountant cannot work from what the scenario offers.
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
    ) -> Self:
        fitted: Self = self._fit_private(X, y, secret, groups)
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
    ) -> Self:
        """`fit`, with public preprocessing between the raw columns and the model.

        `approve` is told of what is going to be released before anybody else is, and
        may raise.
        """
        self._fit_steps(X, y, secret, groups, feature_map, approve)
        return self

    def _fit_steps(
        self,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
        approve: Callable[[FitPlan], None] | None,
    ) -> None:
        opening = self._opening(y)
        rng = opening.rng
        # already released and paid for: going on from it is post-processing
        released = vars(self).pop("_released", None)  # type: ignore[attr-defined]
        # listeners may end the fit here, when nothing has been read yet
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        # what scikit-learn tells of the steps before this one
        unnoised = map(UNNOISED_STEP.format, unnoised_steps(callback))
        opening = replace(opening, leaks=(*opening.leaks, *unnoised))

        if is_lazy(X):
            table = self._read_elsewhere(opening, X, y, secret, groups, feature_map)
        else:
            table = self._read_table(
                opening.scenario, X, y, secret, groups, feature_map
            )
        plan = self._plan_fit(opening, table, released)
        if approve is not None:
            approve(plan)
        task, release, calibration = plan.task, plan.release, plan.calibration
        exact = calibration.noise.is_zero
        # before a ledger hears of it: where warnings are errors, nothing is spent
        announce_weakness(self, plan.certificate, callback.root_uuid)
        announce(self, plan.certificate, opening.seeded, exact, plan.leaks)
        announce_gain(self, calibration, opening.accountant, release, plan.bound)
        # A ledger that listens may refuse here, before any noise is drawn. It hears of
        # this release alone: what it started from was told of before.
        ledger = callback.subcontext(task_name="release")
        metadata = {"certificate": plan.certificate}
        ledger.call_on_fit_task_begin(estimator=self, metadata=metadata)
        tell(self, metadata, ledger)
        if plan.bound.realises:
            # by a generator of its own: the noise tells nothing of what was drawn
            X, y = plan.bound.realise(task.X, task.y, *spawned(rng, 1))
            task = replace(task, X=X, y=y)
        value = self._execute(task, release, calibration.noise, rng)
        # attributes are set only after this, and from noisy values and public facts
        # alone
        self._check_released(value)
        self.certificate_ = plan.whole
        self.noise_ = calibration.noise
        self.accountant_ = opening.accountant
        self._publish(value, release)
        if isinstance(self, AffineReleaseMixin):
            for name, found in self._deviations(calibration.noise, release).items():
                setattr(self, deviation_name(name), found)
        if table.schema_map is not None:
            self._publish_schema(table.schema_map)
        ledger.call_on_fit_task_end(estimator=self, metadata=metadata)
        callback.call_on_fit_task_end(estimator=self, metadata=metadata)

    def _opening(self, y: Any) -> Opening:
        """Check the parameters, as plain code can.

        What is refused here is refused before any row is read, so that the refusal
        tells nothing of the data.
        """
        scenario, accountant = scenario_and_accountant(self)
        rng, seeded = noise_generator(self.random_state)
        if self.schema is not None:
            self._check_schema(_target_name(y))
        self._check_parameters(scenario)
        return Opening(
            scenario=scenario,
            accountant=accountant,
            rng=rng,
            seeded=seeded,
            # what a parameter such as bounds='empirical' takes from the rows, in words
            leaks=self._leaks(),
        )

    def _read_table(
        self,
        scenario: Scenario,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
    ) -> TableRead:
        """Read a table, and what is public of it."""
        # The secret is no feature: it is out before preprocessing or a query could read
        # it. Names are those of the raw columns, by which a prior knows them.
        # Public preprocessing has left it out already.
        if feature_map is None:
            X, secret = self._split_secret(scenario, X, secret)
        schema_map = None
        if self.schema is not None:
            # nothing but the columns of the code book is read, whatever else there is
            schema_map = feature_map = self._schema_map(scenario, feature_map)
            X = schema_map.schema.frame(X)
        target_name = _target_name(y)
        if target_name is None and y is not None and self.schema is not None:
            # so that a secret is found out there too, and a prior knows its column
            target_name = self.schema.target
        if scenario.is_coded:
            # what nothing refuses later must be a record that the belief speaks of; a
            # step before the model may take missing values as well
            fills = {
                "fill_rows": feature_map is not None or self._reads_missing(),
                "fill_targets": self._of_no_target() is not None,
            }
            X, y = scenario.coded_records(X, y, target_name, **fills)
        raw, names = X, matching_names(X)
        if feature_map is not None:
            X = feature_map(X)
        # kept as given: validation turns class labels into codes, a prior knows the
        # labels
        raw_y = y
        of_no_target = self._of_no_target()
        X, y, reading = self._validate(X, y)
        if secret is not None:
            secret = read_secret(secret)
            check_consistent_length(X, secret)
            scenario.check_secret(secret)
        return TableRead(
            X=X,
            y=y,
            secret=secret,
            # rows only where the scenario asks for the private data as its prior
            empirical=self._empirical(raw, raw_y, secret, y)
            if scenario.needs_empirical
            else None,
            n_given=X.shape[0],
            groups=_public_groups(scenario, groups, X.shape[0]),
            names=names,
            target_name=target_name,
            has_target=y is not None,
            n_targets=y.shape[1] if getattr(y, "ndim", 1) > 1 else 1,
            feature_map=feature_map,
            schema_map=schema_map,
            reading=reading,
            of_no_target=of_no_target,
        )

    def _read_elsewhere(
        self,
        opening: Opening,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
    ) -> TableRead:
        """Read names and types of a lazy data frame, whose rows stay where they are."""
        scenario, name = opening.scenario, type(self).__name__
        if not hasattr(self, "_lazy_columns"):
            raise TypeError(
                f"{name} reads rows, and the parameter 'X' is a lazy data frame, whose "
                f"rows lie elsewhere. {COLLECT}"
            )
        if feature_map is not None:
            raise TypeError(
                "Public preprocessing reads rows, and the parameter 'X' is a lazy data "
                f"frame, whose rows lie elsewhere. {COLLECT}"
            )
        self._refuse_rows_elsewhere(opening, secret=secret, groups=groups)
        table = LazyTable(X)
        position = scenario.secret_position(table.names, len(table.names))
        if position is not None:
            table = table.without(table.names[position])
        schema_map = None
        if self.schema is not None:
            schema_map = self._schema_map(scenario, None)
            table.check_names(schema_map.schema.names)
        columns, reading, names = self._lazy_columns(table, y, schema_map)
        if schema_map is None:
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.n_features_in_ = len(columns) - (y is not None)
        if table.n_records < 2:
            raise ValueError(
                f"Found a table with {table.n_records} records; {name} needs 2 at "
                "least: nothing of one record is hidden among others."
            )
        return TableRead(
            X=SummedColumns(table, columns, name),
            y=None,
            secret=None,
            empirical=None,
            n_given=table.n_records,
            groups=None,
            names=tuple(names),
            target_name=y,
            has_target=y is not None,
            n_targets=1,
            feature_map=schema_map,
            schema_map=schema_map,
            reading=reading,
            of_no_target=None,
        )

    def _refuse_rows_elsewhere(self, opening: Opening, **given: Any) -> None:
        """Refuse what reads rows, or their order, before an engine is asked."""
        scenario, name = opening.scenario, type(self).__name__
        for parameter, value in given.items():
            if value is not None:
                raise UnsupportedError(
                    f"The parameter {parameter!r} has an entry for each row, and rows "
                    f"of a lazy data frame have no order. {COLLECT}"
                )
        reads = scenario.needs_empirical or scenario.draws_from_pool
        if reads or scenario.is_coded:
            raise UnsupportedError(
                f"The parameter 'scenario' of {name}, {type(scenario).__name__}, reads "
                "the rows of the table as its prior, its pool or by its code book, and "
                f"those of a lazy data frame lie elsewhere. {COLLECT}"
            )
        for leak in self._leaks():
            raise UnsupportedError(
                f"{name} would read a lazy data frame for a parameter: {leak}. Give it "
                f"a public value. Or else: {COLLECT}"
            )

    def _sum_elsewhere(
        self, table: TableElsewhere, release: Any, bound: BoundScenario
    ) -> None:
        """Have the sums made that a release asks for; refuse what is no sum."""
        name = type(self).__name__
        if not getattr(release, "is_sum", False):
            way = (
                " Give solver='moments'."
                if hasattr(self, "solver")
                else " PrivateSummary and PrivateCDF count a grid there."
            )
            raise UnsupportedError(
                f"The parameter 'X' of {name} is a lazy data frame, and the release "
                f"{release.name!r} is no sum over its rows.{way} Or else: {COLLECT}"
            )
        kind = type(bound)
        reads_rows = kind.realises or any(
            getattr(kind, method) is not getattr(BoundScenario, method)
            for method in ("check_rows", "check_table")
        )
        if reads_rows:
            raise UnsupportedError(
                f"{type(bound.scenario).__name__} looks at each row, and those of a "
                f"lazy data frame lie elsewhere. {COLLECT}"
            )
        # What cannot be read is refused here, before a ledger is told of a release.
        # The sums are of one state of the table, and kept until they are released.
        table.sum(release.contribution)

    def _plan_fit(self, opening: Opening, table: TableRead, released: Any) -> FitPlan:
        """Return what a fit is going to release, with which noise and which promise.

        All of it follows from parameters and public facts, which is why a preview is
        this very function, told of a table that nobody has read. Rows are looked at
        only to be refused, or by an empirical parameter that voids the promise.

        Parameters
        ----------
        opening : Opening
        table : TableRead
        released : ndarray or None
            Parameters that an earlier fit released.
        """
        scenario, accountant = opening.scenario, opening.accountant
        # All that a scenario may know of this table. The number of records and the
        # classes are public by assumption, and the certificate says so.
        context = PublicContext(
            # of a pool, what the query is run on is smaller
            n_records=scenario.table_size(table.n_given)
            if scenario.draws_from_pool
            else table.n_given,
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
            feature_map=table.feature_map,
            empirical=table.empirical,
            pool=(table.X, table.y) if scenario.draws_from_pool else None,
        )
        start = None
        if released is not None or getattr(self, "init", None) is not None:
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
        )
        # complete here: what is accounted for below is executed from this same object
        release = self._release(task)
        # bound to the release's context, where the estimator may have added its bounds
        bound = scenario.bind(release.context)
        leaks = opening.leaks
        assumed: list[str | None] = []
        if isinstance(table.X, TableElsewhere):
            self._sum_elsewhere(table.X, release, bound)
            assumed.append(SUMMED_ELSEWHERE)
            if type(bound).leaks is not BoundScenario.leaks:
                assumed.append(PRIOR_UNSEEN)
        elif not isinstance(table.X, UnreadRows):
            # rows that the scenario rules out are refused before anything is
            # calibrated: no promise would hold for them
            rows = bound.check_rows(table.X)
            bound.check_table(rows, table.y)
            leaks = (*leaks, *bound.leaks(rows, table.secret))
            if rows is not table.X:
                task = replace(task, X=_cells_as_cells(rows, table.X))
        # from facts about the release: only an empirical prior puts rows among them
        calibration = accountant.calibrate(release, bound, opening.rng)
        rounding = None
        if isinstance(table.X, TableElsewhere):
            rounding = table.X.rounding(release.contribution)
        calibration, digits = on_grid(
            calibration, release, opening.rng, rounding, scenario.any_records
        )
        if table.has_target:
            assumed += [bound.target_assumption, table.of_no_target]
        assumed += [UNTOUCHED_ROWS, digits]
        if table.feature_map is not None:
            assumed.append(table.feature_map.assumption)
            leaks = (*leaks, *table.feature_map.leaks)
        assumed.append(SEEDED if opening.seeded else None)

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
        opening = self._opening(y)
        refuse_unread(self, opening.scenario, opening.leaks)
        table = self._read_table(opening.scenario, X, y, None, None, feature_map)
        unread = UnreadRows(type(self).__name__)
        table = replace(
            table,
            X=unread,
            y=unread if table.has_target else None,
            n_given=n_records,
            groups=_public_groups(opening.scenario, groups, n_records),
        )
        plan: FitPlan = self._plan_fit(opening, table, released)
        announce_weakness(self, plan.certificate)
        return plan

    def _empirical(self, raw: Any, raw_y: Any, secret: Any, y: Any) -> Any:
        """Return the private rows as a prior: those that count."""
        if y is None or self._of_no_target() is None:
            return raw, raw_y, secret
        # labels as they were read, which a prior's are compared with
        labels = self.classes_[y] if hasattr(self, "classes_") else y
        mask = counted(y)
        if mask is None:
            return raw, labels, secret
        kept = to_pandas(raw)[mask] if is_frame(raw) else raw[mask]
        return kept, labels[mask], None if secret is None else secret[mask]

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        """Execute the release as accounted for, with the calibrated noise.

        Parameters
        ----------
        task : Task
        release : the object that :meth:`_release` made and the accountant saw
        noise : Noise
        rng : numpy.random.Generator

        Returns
        -------
        value : ndarray of shape (dim,)
            All that leaves.
        """
        # exact, and seen by nobody outside of this method
        exact = release.run(task.X, task.y)
        if not np.all(np.isfinite(exact)):
            raise ValueError(
                f"The release {release.name!r} is NaN or infinite on this table, which "
                "no noise hides: look for records that the query cannot take."
            )
        return add_noise(
            exact,
            noise,
            rng,
            n_records=release.n_records,
            integer=release.is_integer,
        )

    def _check_released(self, value: Any) -> None:
        """Refuse to publish what is not finite.

        By then noise has been drawn, and where the release is a run of many steps it
        cannot be known before. The refusal is made of the noisy vector alone, so it
        tells no more than the certificate allows; a ledger that was told of the release
        keeps it.
        """
        if not np.all(np.isfinite(value)):
            raise ValueError(
                f"{type(self).__name__} came to NaN or infinity and publishes nothing; "
                "the budget of this release is spent. Bring bounds, norms and rates of "
                "the parameters nearer to the units of the data."
            )

    @abstractmethod
    def _release(self, task: Task) -> Any:
        """Return the release, complete: it is accounted for and executed as it is.

        Parameters
        ----------
        task : Task

        Returns
        -------
        QueryRelease, GradientRelease or VoteRelease
        """

    @abstractmethod
    def _publish(self, value: Any, release: Any) -> None:
        """Set the fitted attributes from the noisy vector alone.

        Parameters
        ----------
        value : ndarray of shape (dim,)
            As :meth:`_execute` returned it.
        release : the object that :meth:`_release` made
        """

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Validate the private data.

        Returns
        -------
        X, y : the data, as the query reads it
        reading : object or None
            What else :meth:`_release` should know of how the table was read; public.
        """
        return validate_rows(self, X, dtype=np.float64), None, None

    # -- its parts ----------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        """Check the parameters that a subclass's privacy rests on, by plain code."""

    def _split_secret(self, scenario: Scenario, X: Any, secret: Any) -> tuple[Any, Any]:
        """Drop the secret column from the data, if it is there; read what is left."""
        table = as_table(X)
        # not a table: validation refuses it later, and in scikit-learn's words
        if len(table.shape) != 2:
            return X, secret
        names = matching_names(table)
        position = scenario.secret_position(names, table.shape[1])
        if names is None and hasattr(table, "columns"):
            scenario.check_numbers(column_names(table), position)
        if position is not None:
            X, column = drop_position(table, position)
            # values given apart win over the column
            secret = column if secret is None else secret
        return scenario.coded(X) if scenario.is_coded else X, secret

    def _of_no_target(self) -> str | None:
        """Return what a certificate says of records without a target, or None."""
        return None

    def _without_secret(self, X: Any, width: int | None = None) -> Any:
        """Drop the secret column from data to predict for, if it is there.

        A table with a code book is read by it as well.
        """
        width = self.n_features_in_ if width is None else width
        scenario = RecordScenario() if self.scenario is None else self.scenario
        if hasattr(self, "feature_map_"):
            X = as_table(X)
            if matching_names(X) is not None or X.shape[1:] != (width,):
                X = self._split_secret(scenario, X, None)[0]
            elif scenario.is_coded:
                X = scenario.coded(X)
            return self.feature_map_(X)
        if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
            if hasattr(X, "columns"):
                scenario.check_numbers(column_names(X), None)
            return X  # as wide as what was fitted once the secret was left out
        return self._split_secret(scenario, X, None)[0]

    def _names_without_secret(self, names: Any) -> Any:
        """Leave the secret column's name out of a list of names."""
        scenario = RecordScenario() if self.scenario is None else self.scenario
        position = scenario.secret_position(tuple(names), len(names))
        return names if position is None else np.delete(names, position)

    def _start(self, released: Any) -> Any:
        """Return where a run starts: None where it always begins at the same point."""
        return None

    def _leaks(self) -> tuple[str, ...]:
        """Leaks, in sentences: what is read off private data outside any promise."""
        return ()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        # a ledger that hears of all fits here hears of one in a worker process as well
        callbacks = carried(state.get("_skl_callbacks", []))
        return {**state, "_skl_callbacks": callbacks} if callbacks else state

    def __sklearn_is_fitted__(self) -> bool:
        # a fit sets all or nothing, so one of its attributes stands for the others
        return hasattr(self, "certificate_")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the default scenario and accountant.

        ``accountant__epsilon`` on an estimator whose accountant is None is read as a
        parameter of the default accountant, so that a default estimator can be
        searched as it is.

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
            "accountant": _OF_RECORDS if plain else _of_secrets,
            "scenario": RecordScenario,
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


class PrivateClassifierMixin(ClassifierMixin):  # type: ignore[misc] # scikit-learn is untyped
    """Mixin of private classifiers: public class labels, encoded for the query."""

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        return *validate_classes(self, X, y), None

    def _of_no_target(self) -> str | None:
        return NO_LABEL if _declares_classes(self) else None

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())


def validate_classes(estimator: Any, X: Any, y: Any) -> tuple[Any, Indices]:
    """Validate, set `classes_`, and encode the target as class indices.

    By declared classes a label that is none of them is -1. Without, the labels of the
    table are taken as public, which the certificate says.
    """
    if not _declares_classes(estimator):
        return validate_labels(estimator, X, y)
    return rows_and_labels(estimator, X, y)


def _declares_classes(estimator: Any) -> bool:
    """Whether public labels are known without those of the table."""
    schema = estimator.schema
    of_schema = schema is not None and schema.classes is not None
    return estimator.classes is not None or of_schema


def _cells_as_cells(rows: Any, X: Any) -> Any:
    """Return rows as a scenario lists them; where those are cells, in their type."""
    cells = isinstance(X, np.ndarray) and X.dtype.kind == "u"
    # of other numbers a cell is only known to be equal up to rounding
    if not cells or not np.array_equal(rows, np.trunc(rows)):
        return rows
    return rows.astype(X.dtype)


def _public_groups(
    scenario: Scenario, groups: Any, n_records: int
) -> tuple[int, ...] | None:
    """Public groups of a table, one number for each of its records."""
    if groups is None:
        return None
    groups = read_groups(groups)
    check_consistent_length(range(n_records), groups)
    scenario.check_groups(groups)
    return tuple(groups.tolist())


def _target_name(y: Any) -> Any:
    """Name of a target, where it has one."""
    name = getattr(y, "name", None)
    # of a frame of one column, unless it was numbered
    if name is None and len(named := matching_names(y) or ()) == 1:
        (name,) = named
    return name


def mark_noisy(tags: Tags) -> Tags:
    """Say in the tags of an estimator that it scores poorly, at the default budget."""
    for kind in (tags.classifier_tags, tags.regressor_tags):
        # scikit-learn's own checks would else ask for scores that the noise rules out
        # on the small tables they fit
        if kind is not None:
            kind.poor_score = True
    return tags


def scenario_and_accountant(estimator: Any) -> tuple[Scenario, Accountant]:
    """Return the scenario and a private copy of the accountant, both checked."""
    found: list[Any] = []
    for name, kind in (("scenario", Scenario), ("accountant", Accountant)):
        held = getattr(estimator, name)
        if held is None:
            default: Any = RecordScenario
            if found:
                plain = isinstance(found[0], RecordScenario)
                default = _OF_RECORDS if plain else _of_secrets
            held = default()
        if not isinstance(held, kind):
            raise TypeError(
                f"The parameter {name!r} must be an instance of {kind.__name__} or "
                f"None. Got {held!r}."
            )
        # by plain code: scikit-learn's validation of parameters can be switched off
        held.check()
        found.append(held)
    scenario, accountant = found
    # a copy: changing the parameter after the fit must not change `accountant_`
    return scenario, clone(accountant)


def refuse_arguments(estimator: Any, arguments: Iterable[str]) -> None:
    """Refuse keyword arguments that `fit` does not take, and weights with the reason.

    They are not in the signature, by which scikit-learn finds out what `fit` takes.
    """
    for name in arguments:
        why = "."
        if name == "sample_weight":
            why = (
                ": a record that weighs more would move the result further than its "
                "noise hides. Fit without weights."
            )
        # scikit-learn's ensembles read these words
        raise TypeError(
            f"{type(estimator).__name__}.fit() got an unexpected keyword argument "
            f"{name!r}{why}"
        )


def on_grid(
    calibration: Calibration,
    release: Any,
    rng: np.random.Generator,
    rounding: Floats | None = None,
    any_records: bool = False,
) -> tuple[Calibration, str]:
    """Make room for the grid that a release is rounded to, where that can be shown.

    Parameters
    ----------
    calibration : Calibration
    release : QueryRelease, GradientRelease, VoteRelease or SelectionRelease
    rng : numpy.random.Generator
        Of the noise.
    rounding : ndarray of shape (dim,), default=None
        How far each coordinate of one record's contribution was rounded.
    any_records : bool, default=False
        Whether the sensitivity is that of records that become any others.

    Returns
    -------
    calibration : Calibration
        With noise that is larger by next to nothing.
    statement : str
        What the last digits of what is released tell.
    """
    noise, certificate = calibration.noise, calibration.certificate
    statement = _EXECUTED_ON_GRID.get(type(release))
    uncovered = ""
    if rounding is not None and np.any(rounding):
        uncovered = f"; {ROUNDED_ELSEWHERE}"
    if statement is None or not draws_exactly(noise, rng):
        return calibration, FLOATING_POINT + uncovered
    # of updates, what the noise is added to is made of the table and of the iterate
    if getattr(release, "noise_position", None) == "update":
        return calibration, FLOATING_POINT
    if noise_grid(noise, release.n_records, integer=release.is_integer) is None:
        return calibration, FLOATING_POINT + uncovered
    # integers are on the grid already
    if release.is_integer:
        return calibration, statement
    # The engine makes the room in a run, as it knows how many parameters there are.
    trained = type(release) is GradientRelease
    dim = _MANY_PARAMETERS if trained else release.dim
    larger = None
    if calibration.by_sensitivity and dim and certificate.sensitivity:
        larger = with_room_for_grid(
            noise,
            release.n_records,
            certificate.sensitivity,
            noise.norm if certificate.norm is None else certificate.norm,
            dim,
            release.unit_array,
            0.0
            if rounding is None
            else _rounded_share(
                release, certificate, noise.norm, rounding, any_records
            ),
        )
    if larger is None:
        return calibration, f"{statement}; {NO_ROOM}{uncovered}"
    if not trained:
        calibration = replace(calibration, noise=larger)
    return calibration, f"{statement}; {ROUNDED_SUMS}"


def _rounded_share(
    release: Any,
    certificate: Certificate,
    noise_norm: float,
    rounding: Floats,
    any_records: bool,
) -> float:
    """How much further rounded records move a sum, as a share of its sensitivity."""
    norm = noise_norm if certificate.norm is None else certificate.norm
    # a record that is replaced was rounded once before and once after
    moved: float = 2 * abs(release.factor)
    moved *= max(float(np.linalg.norm(rounding, p)) for p in (norm, noise_norm))
    if not any_records:
        # it is not known how many records are moved a little: as if all were
        n_records: int = release.n_records
        return moved * n_records / float(certificate.sensitivity or 0.0)
    # of each record that changes the sensitivity has a share as large as this
    least: float = min(
        release.sensitivity.value(relation, norm, release.dim)
        for relation in ("add_remove", "replace")
    )
    return moved / least if least > 0 else float("inf")


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
        f"{type(estimator).__name__} gains nothing by its scenario: "
        f"RecordScenario(k={count}, relation='replace') would need {gain:.3g} times "
        "the noise used here, by its best accountant, and promises more for it, "
        "whatever is believed of the records.",
        NoGainWarning,
    )


def announce(
    estimator: Any,
    certificate: Certificate,
    seeded: bool,
    exact: bool,
    leaks: Iterable[str] = (),
) -> None:
    """Warn of what weakens a promise, before anything leaves."""
    name = type(estimator).__name__
    if seeded:
        warn(
            f"{name} drew its noise from a seed. Use random_state=None for anything "
            "that is released.",
            SeededNoiseWarning,
        )
    # where a mutual information allows for it, its accountant has warned already
    if exact and not certificate.mutual_information:
        why = "under the scenario no pair of secrets moves it"
        # no noise, yet a cost: the output's own spread under the prior hides the secret
        if certificate.epsilon:
            why = "the promise rests on what it varies by under the prior"
        warn(
            f"{name} is released exactly, without any noise: {why}. See that this is "
            "what you meant.",
            PrivacyWarning,
        )
    for leak in leaks:
        warn(f"{name}: {leak}.", PrivacyLeakWarning)
    # a leak is the better reason, and has just been given
    if not certificate.notion.certified and not leaks:
        warn(
            f"{name} set its noise from distributions that are only known through "
            "samples: the certificate is an estimate, no guarantee. Say what is known "
            "of the prior (prior_as=...) for a promise.",
            EstimatedGuaranteeWarning,
        )


def announce_weakness(
    estimator: Any, certificate: Certificate, fit: Any = None
) -> None:
    """Warn of a weak promise, once in a search or pipeline (and worker process).

    Parameters
    ----------
    estimator : private estimator
    certificate : Certificate
        What is about to be promised.
    fit : hashable or None, default=None
        Names the fit of the outermost estimator, such as a search, that this one is
        part of. None warns in any case.
    """
    for kind, text in _weaknesses(estimator, certificate):
        # the numbers may differ from fold to fold, and the advice does not
        key = (fit, type(estimator).__name__, kind)
        if fit is not None and key in _SAID:
            continue
        warn(f"{type(estimator).__name__}: {text}", WeakPromiseWarning)
        # only now: where warnings are errors, every fit is stopped by it
        _SAID[key] = None
        while len(_SAID) > _MOST_SAID:
            _SAID.popitem(last=False)


def _weaknesses(estimator: Any, c: Certificate) -> Iterator[tuple[str, str]]:
    """Kind and text of each weakness, from public facts."""
    n = c.n_records
    if n is not None and c.delta * n >= 1:
        yield (
            "delta",
            f"delta={c.delta:g} is not below one over the number of records "
            f"({n}): releasing the record of one person drawn at random would be "
            f"within it. Take a smaller delta, 1 / {n}**1.5, say.",
        )
    if c.epsilon is not None and c.epsilon > _LARGE_EPSILON:
        yield (
            "epsilon",
            f"epsilon={c.epsilon:g} is above {_LARGE_EPSILON:g}, where the promise "
            "says little by itself: odds may change by a factor of "
            f"{np.exp(min(c.epsilon, 700.0)):.2g}. See what an attacker gets by "
            "skpuffer.audit, or take a smaller one.",
        )
    classes = getattr(estimator, "classes_", None)
    if classes is None or not _declares_classes(estimator):
        return
    if _are_many_numbers(classes):
        yield (
            "classes",
            f"its {len(classes)} declared classes are whole numbers. Is the target a "
            "number? Then a regressor with 'target_bounds' needs far less noise.",
        )


def _are_many_numbers(classes: Any) -> bool:
    """Whether class labels look like the values of a number."""
    if len(classes) <= _MANY_CLASSES or classes.dtype.kind not in "iuf":
        return False
    return bool(np.all(classes == np.trunc(classes)))
