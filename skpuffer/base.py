"""Template of private fits: the order of steps that keeps the promise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import get_tags

from skpuffer._template import _preview, _reading
from skpuffer._template._affine import deviations
from skpuffer._template._all_or_nothing import all_or_nothing
from skpuffer._template._announce import announce, announce_gain, announce_weakness
from skpuffer._template._parameters import (
    DEFAULT_DELTA,
    DEFAULT_EPSILON,
    OF_RECORDS,
    of_secrets,
    scenario_and_accountant,
)
from skpuffer._template._plan import FitPlan, Opening, TableRead, Task
from skpuffer._template._preview import UnreadRows, refuse_unread
from skpuffer._template._proved import proved
from skpuffer._template._reading import (
    PRIOR_UNSEEN,
    SUMMED_ELSEWHERE,
    check_schema,
    name_of_target,
    public_groups,
    publish_schema,
    read_elsewhere,
    read_table,
    sum_elsewhere,
)
from skpuffer.accountants import Accountant
from skpuffer.exceptions import Statement
from skpuffer.kernel import certificates as certificates
from skpuffer.kernel import rounding
from skpuffer.kernel import run as kernel_run
from skpuffer.kernel.draws import noise_generator, spawned
from skpuffer.kernel.releases import TableElsewhere
from skpuffer.releases import PublicContext
from skpuffer.scenarios import RecordScenario, Scenario
from skpuffer.schema import Schema
from skpuffer.utils._doc_links import linked_to_docs
from skpuffer.utils._listeners import carries_listeners, tell
from skpuffer.utils._reading import is_lazy
from skpuffer.utils._sklearn import fit_context

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.utils._types import Table

__all__ = [
    "DEFAULT_DELTA",
    "DEFAULT_EPSILON",
    "FLOATING_POINT",
    "SEEDED",
    "UNTOUCHED_ROWS",
    "PrivateEstimatorMixin",
    "Task",
]

# Assigned here once more: the reference takes what it says of a name from where that
# is assigned.

#: What a certificate says of any noise, which theorems take for a real number.
FLOATING_POINT = rounding.FLOATING_POINT

#: What a certificate says of noise that can be drawn again.
SEEDED = certificates.SEEDED

#: What an estimator cannot see of the steps before it.
UNTOUCHED_ROWS = Statement("assume.rows_untouched_by_others")


@carries_listeners
@linked_to_docs
class PrivateEstimatorMixin(
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

    #: Public code book of the table: a parameter of the estimators that read by it.
    schema: Schema | None = None

    #: How numbers of a code book reach the estimator; see :class:`Encoding`.
    _schema_scale: str = "unit_ball"

    #: What stands for parameters that are None and whose own parameters are set.
    _default_parts: dict[str, Callable[[], Any]] = {}

    #: Parameters that are tables of public rows.
    _public_parameters: tuple[str, ...] = ()

    #: Attributes that are affine in the released vector; see :meth:`_linear_parts`.
    _affine_attributes: tuple[str, ...] = ()

    # how a table is read where a subclass says nothing else
    _validate = _reading.validate_features
    _of_no_target = _reading.of_no_target
    preview = _preview.preview
    _made_up = _preview.made_up

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
        given: Any = None,
    ) -> Self:
        """`fit`, with public preprocessing between the raw columns and the model.

        `approve` is told of what is going to be released before anybody else is, and
        may raise. `given` is the table as it came, if `X` is a part of it.
        """
        self._fit_steps(X, y, secret, groups, feature_map, approve, given)
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
    ) -> None:
        opening = self._opening(y)
        rng = opening.rng
        # already released and paid for: going on from it is post-processing
        released = vars(self).pop("_released", None)  # type: ignore[attr-defined]
        # listeners may end the fit here, when nothing has been read yet
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        # what scikit-learn tells of the steps before this one
        opening = replace(opening, leaks=(*opening.leaks, *unnoised_steps(callback)))

        if is_lazy(X):
            table = read_elsewhere(self, opening, X, y, secret, groups, feature_map)
        else:
            table = read_table(
                self, opening.scenario, X, y, secret, groups, feature_map, given
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
        for name, found in deviations(self, calibration.noise, release).items():
            setattr(self, f"{name}std_", found)
        if table.schema_map is not None:
            publish_schema(self, table.schema_map)
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
            check_schema(self, name_of_target(y))
        self._check_parameters(scenario)
        return Opening(
            scenario=scenario,
            accountant=accountant,
            rng=rng,
            seeded=seeded,
            # what a parameter such as bounds='empirical' takes from the rows, in words
            leaks=self._leaks(),
        )

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
        assumed: list[Statement | None] = []
        if isinstance(table.X, TableElsewhere):
            sum_elsewhere(self, table.X, release, bound)
            assumed.append(SUMMED_ELSEWHERE)
            if scenario.public_rows():
                assumed.append(PRIOR_UNSEEN)
        elif not isinstance(table.X, UnreadRows):
            # rows that the scenario rules out are refused before anything is
            # calibrated: no promise would hold for them
            rows = bound.check_rows(table.X)
            bound.check_table(rows, table.y)
            if table.secret is not None:
                bound.check_secrets(table.secret)
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
        opening = self._opening(y)
        refuse_unread(self, opening.scenario, opening.leaks)
        table = read_table(self, opening.scenario, X, y, None, None, feature_map)
        unread = UnreadRows(type(self).__name__)
        table = replace(
            table,
            X=unread,
            y=unread if table.has_target else None,
            n_given=n_records,
            groups=public_groups(opening.scenario, groups, n_records),
        )
        plan: FitPlan = self._plan_fit(opening, table, released)
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
        return kernel_run.noisy_value(release, task.X, task.y, noise, rng)

    def _check_released(self, value: Any) -> None:
        """Refuse to publish what is not finite.

        By then noise has been drawn, and where the release is a run of many steps it
        cannot be known before. The refusal is made of the noisy vector alone, so it
        tells no more than the certificate allows; a ledger that was told of the release
        keeps it.
        """
        if not np.all(np.isfinite(value)):
            raise ValueError(
                Statement("release.result_not_finite", owner=type(self).__name__)
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

    # -- its parts ----------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        """Check the parameters that a subclass's privacy rests on, by plain code."""

    def _start(self, released: Any) -> Any:
        """Return where a run starts: None where it always begins at the same point."""
        return None

    def _reads_missing(self) -> bool:
        """Whether missing values are read, and not refused."""
        return bool(get_tags(self).input_tags.allow_nan)

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

    def _leaks(self) -> tuple[Statement, ...]:
        """Leaks, in sentences: what is read off private data outside any promise."""
        return ()

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
    for name in arguments:
        why: Statement | str = "."
        if name == "sample_weight":
            why = Statement("weights.record_weighs_more")
        # scikit-learn's ensembles read these words
        raise TypeError(
            Statement(
                "parameter.fit_argument_unexpected",
                estimator_type=type(estimator).__name__,
                name=name,
                why=why,
            )
        )


#: Names of the tasks in which a pipeline fits its steps.
_STEP = ("fit-transform-", "fit-final-", "fit-predict-final-")


def unnoised_steps(task: CallbackContext) -> tuple[Statement, ...]:
    """State each step before an estimator that was fitted without noise.

    Parameters
    ----------
    task : CallbackContext
        Of the fit of the estimator.

    Returns
    -------
    tuple of Statement
        Those that are known: steps that support callbacks name themselves, as
        `StandardScaler` does, and others do not.
    """
    found: list[str] = []
    while task.parent is not None:
        if str(task.source_task_name).startswith(_STEP):
            for other in task.parent:
                if other.parent is task.parent and other.task_id < task.task_id:
                    found += _fitted_alone(other)
        task = task.parent
    return tuple(
        Statement("pipeline.unnoised_step_before", step=step)
        for step in dict.fromkeys(found)
    )


def _fitted_alone(step: CallbackContext) -> Iterator[str]:
    """Classes of what was fitted in a step, and is no part of a release."""
    parents = {id(task.parent) for task in step}
    for task in step:
        # the root task of an estimator in that of its pipeline, without any of its own
        if task.source_task_name is not None and id(task) not in parents:
            yield task.estimator_name
