"""Pipelines that are private as a whole: one budget, one certificate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Bunch
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer._template._preview import _labels, _made_up_target
from skpuffer._template._reading import declared_classes
from skpuffer._template._steps import StepAudit, audited
from skpuffer._template._units import kept_rows, with_sizes
from skpuffer.accountants import Accountant
from skpuffer.base import (
    all_or_nothing,
    announce_weakness,
    refuse_arguments,
    scenario_and_accountant,
)
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count, check_positive
from skpuffer.scenarios import Scenario
from skpuffer.utils._listeners import carries_listeners
from skpuffer.utils._reading import (
    as_table,
    bounded,
    is_frame,
    read_labels,
    read_table,
    row_count,
    to_pandas,
)
from skpuffer.utils._sklearn import (
    BaseComposition,
    VisualBlock,
    fit_context,
    linked_to_docs,
)

from ._delegation import delegates, offered
from ._pipeline_plan import (
    Budget,
    PipelinePlan,
    PipelinePreview,
    Unit,
    as_planned,
    call_last,
    check_names,
    flat_steps,
    names_out,
    offers,
    plan_steps,
    private_steps,
    split_step_secrets,
    step_or_slice,
    tags_of_steps,
    visual_block,
    without_step_secrets,
)
from ._public_preprocessing import is_same, rows_like, share_records
from ._settled_steps import (
    Flow,
    chosen_rows,
    declared_steps,
    refuse_steps,
    settle_all,
    step_kinds,
    under,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Array, RandomState, Table


#: How many rows stand for a table, of which a plan reads what columns there are.
_EXCERPT = 16

_OWNER = Statement("pipeline.subject_parameter_reference")
_SAME = Statement("pipeline.reference_holds_private_records", owner=_OWNER)


@dataclass(frozen=True, kw_only=True)
class _Opening:
    """Parameters of a pipeline, checked before any row is read."""

    steps: list[tuple[str, Any]]
    units: dict[str, Unit]
    budget: Budget

    @property
    def is_bounded_part(self) -> bool:
        """Whether a budget is given, and steps have budgets of their own."""
        fixed = any(unit.is_fixed for unit in self.units.values())
        return fixed and self.budget.accountant is not None

    @property
    def estimators(self) -> list[Any]:
        return [unit.estimator for unit in self.units.values()]


@delegates
@carries_listeners
@linked_to_docs
class PrivatePipeline(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseComposition,  # type: ignore[misc] # scikit-learn is untyped
):
    """Run a pipeline that is private as a whole: one budget and one certificate.

    Each step is *private* (it releases what it learns with noise), *public* (fitted on
    the rows of `reference`, or frozen) or *row-wise* (it changes each row by itself).
    Anything else is refused before any row is read.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in :class:`~sklearn.pipeline.Pipeline`. Pipelines, feature unions and column
        transformers of allowed parts are allowed. A :class:`~skpuffer.schema.Schema` is
        a parameter of a first private step. The steps are copied, and the copies
        fitted.
    accountant : Accountant, default=None
        Budget of all private steps together. Steps whose own `accountant` is None get a
        part of the epsilon; others spend what theirs says. None is (1,
        1e-5)-differential privacy.
    scenario : Scenario, default=None
        The secret, for each private step whose own `scenario` is None.
    shares : dict of {str: float}, default=None
        Proportions of the epsilons of private steps, by name (nested names are joined
        by two underscores). None makes the sum of squared relative errors least.
    reference : table, default=None
        Public rows to fit public steps on, with the columns of the data.
    row_wise : collection of str, default=()
        Names of steps that are declared to change each row by itself, such as
        :class:`~sklearn.preprocessing.FunctionTransformer`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seeds private steps whose own is None. None draws noise from the operating
        system's entropy. A seed warns.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        The fitted steps, those of nested pipelines among them.
    named_steps_ : Bunch
        The same, by name.
    certificate_ : Certificate
        Promise of all private steps together, by :func:`~skpuffer.privacy.compose`.
    certificates_ : dict of {str: Certificate}
        Certificate of each private step.
    epsilons_ : dict of {str: float}
        Budget spent by each private step, where it is an epsilon.
    noises_ : dict of {str: Noise}
        The noise of each private step.
    n_features_in_ : int
        Number of raw columns without a secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the raw columns, if all are strings.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, if the last step is a classifier.

    See Also
    --------
    audit_pipeline : What each step of any pipeline does with private rows.

    Notes
    -----
    Later steps are mechanisms on the same records given what earlier ones released, so
    certificates add up as those of any adaptive sequence. Rows are clipped to the
    bounds and norms of a later step, in the units of the rows that reach it.

    Epsilons are scaled up together until the composition of the certificates costs what
    the accountant allows. Each step is planned from public facts, and stopped if the
    fit would release anything else. If a later step fails, the earlier ones have been
    paid for, and nothing is fitted.

    With ``noise='auto'`` each step takes the family of least error, or all that share
    the budget take Gaussian noise, if the sum of their squared errors is less. Steps
    with a `memory` are refused: a fit from a cache is a release that no ledger records.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.compose import PrivatePipeline
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> from skpuffer.summary import PrivateStandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrivatePipeline(
    ...     [
    ...         ("scaler", PrivateStandardScaler(bounds=(0, 5000))),
    ...         ("classifier", PrivateLogisticRegression(data_norm=5.0)),
    ...     ],
    ...     accountant=PrivacyLoss(epsilon=2.0, delta=1e-5),
    ...     shares={"scaler": 1, "classifier": 3},
    ... ).fit(X, y)
    >>> round(model.certificate_.epsilon, 2), model.certificate_.delta
    (2.0, 1e-05)
    >>> {name: round(epsilon, 1) for name, epsilon in model.epsilons_.items()}
    {'scaler': 0.6, 'classifier': 1.9}
    """

    _parameter_constraints: dict[str, Any] = {
        "steps": [list, tuple],
        "accountant": [Accountant, None],
        "scenario": [Scenario, None],
        "shares": [dict, None],
        "row_wise": ["array-like", set, frozenset],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        steps: Sequence[tuple[str, Any]],
        *,
        accountant: Accountant | None = None,
        scenario: Scenario | None = None,
        shares: Mapping[str, float] | None = None,
        reference: Table | None = None,
        row_wise: Collection[str] = (),
        random_state: RandomState = None,
    ):
        self.steps = steps
        self.accountant = accountant
        self.scenario = scenario
        self.shares = shares
        self.reference = reference
        self.row_wise = row_wise
        self.random_state = random_state

    #: What to do instead of passing an argument that `fit` does not take.
    _remedies = {"sample_weight": "pipeline.weights_refused"}

    # -- fitting -------------------------------------------------------------------

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
        """Fit each step in the way of its kind, and add up what they promise.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
            Private records. A secret column is dropped.
        y : array-like of shape (n_records,), default=None
            Private target, where the last step has one.
        secret, groups : array-like of shape (n_records,), default=None
            As in the `fit` of a private step.
        **refused : dict
            Nothing else is taken.

        Returns
        -------
        self : object
        """
        refuse_arguments(self, refused)
        fitted: Self = self._fit_validated(X, y, secret, groups)
        return fitted

    @with_callbacks  # type: ignore[untyped-decorator]
    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _fit_validated(
        self,
        X: Table,
        y: ArrayLike | None,
        secret: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> Self:
        opening = self._opening()
        callback = self._init_callback_context(max_subtasks=len(opening.units))
        callback.call_on_fit_task_begin(estimator=self)
        given = as_table(X)
        rng, _ = noise_generator(self.random_state)
        n_units = None
        for step in opening.estimators:
            if step.scenario is not None:
                step.scenario = with_sizes(step.scenario, given, groups)
            # once for all of them: their plan counts the rows that are kept
            given, y, secret, groups, _, ids = kept_rows(
                step.scenario, given, y, secret, groups, rng
            )
            if ids is not None:
                n_units = len(np.unique(ids))
        flow, secret = self._flow(opening, given, secret)
        plan = self._plan_fit(opening, flow, y, groups, callback.root_uuid, n_units)
        fitted: dict[str, Any] = {}

        def release(name: str, node: Any, flow: Flow) -> Any:
            step = self._unit(opening, plan, name)
            features = flow.feature_map()
            # before anything leaves: what mixes records would defeat the accounting.
            # Behind a release it was looked at with the plan.
            if features is not None and not flow.released:
                features.check_by_record(flow.base)
            task = callback.subcontext(task_name=f"fit-step-{name}")
            with task.propagate_callback_context(step):
                # the step's own root task and this one are one and the same
                task.call_on_fit_task_begin(estimator=self)
                step._fit_private(
                    flow.base,
                    y,
                    secret,
                    groups,
                    feature_map=features,
                    approve=as_planned(name, plan),
                    given=given,
                )
                task.call_on_fit_task_end(estimator=self)
            fitted[name] = step
            return step

        try:
            steps, _ = settle_all(opening.steps, flow, release)
        except BaseException as error:
            if fitted:
                error.add_note(
                    str(
                        Statement(
                            "pipeline.steps_released_before_failure",
                            steps=list(fitted),
                        )
                    )
                )
            raise
        if set(fitted) != set(opening.units):
            # else a release would be promised that is none, or none for one that is
            raise RuntimeError(Statement("pipeline.steps_other_than_planned"))
        self.steps_ = steps
        self.named_steps_ = Bunch(**dict(steps))
        self.certificates_ = {n: step.certificate_ for n, step in fitted.items()}
        self.noises_ = {name: step.noise_ for name, step in fitted.items()}
        self.epsilons_ = {
            name: float(step.accountant_.epsilon)
            for name, step in fitted.items()
            if hasattr(step.accountant_, "epsilon")
        }
        found = list(self.certificates_.values())
        self.certificate_ = (
            found[0] if len(found) == 1 else opening.budget.composed(found)
        )
        callback.call_on_fit_task_end(estimator=self)
        return self

    def _opening(self) -> _Opening:
        """Check steps and parameters by plain code, before any row is read."""
        check_names(self)
        steps = list(flat_steps(self.steps))
        kinds = list(self._kinds())
        refuse_steps(kinds, declared_steps(self.row_wise))
        rng, seeded = noise_generator(self.random_state)
        units: dict[str, Unit] = {}
        for name, node in private_steps(steps):
            step = clone(node)
            if step.scenario is None and self.scenario is not None:
                step.scenario = clone(self.scenario)
            if seeded and getattr(step, "random_state", 0) is None:
                step.random_state = int(rng.integers(2**31))
            # whatever scikit-learn's switches for validation say
            step._validate_params()
            scenario, _ = scenario_and_accountant(step)
            step._check_parameters(scenario)
            units[name] = Unit(step, is_fixed=node.accountant is not None)
        return _Opening(steps=steps, units=units, budget=self._budget(units))

    def _budget(self, units: Mapping[str, Unit]) -> Budget:
        """What all private steps may cost, and in which proportions."""
        free = [name for name, unit in units.items() if not unit.is_fixed]
        if self.shares is not None:
            if set(self.shares) != set(free):
                raise value_error(
                    "pipeline.shares_name_wrong_steps",
                    free=free,
                    given=sorted(map(str, self.shares)),
                )
            for share in self.shares.values():
                check_positive(shares=share)
        accountant: Any = None
        if free or self.accountant is not None:
            # by the scenario of those that share it: differential privacy, or not
            stated = [units[name].estimator for name in free] or [self]
            by = next((s for s in stated if not _of_records(s)), stated[0])
            default = Bunch(scenario=by.scenario, accountant=self.accountant)
            _, accountant = scenario_and_accountant(default)
            if not hasattr(accountant, "epsilon") and len(units) > 1:
                raise unsupported_error(
                    "pipeline.accountant_without_epsilon",
                    accountant_type=type(accountant).__name__,
                    units=list(units),
                )
        return Budget(accountant, None if self.shares is None else dict(self.shares))

    def _kinds(self) -> Iterator[StepAudit]:
        flat = list(flat_steps(self.steps))
        return step_kinds(
            flat, declared_steps(self.row_wise), self.reference is not None
        )

    def _flow(
        self, opening: _Opening, X: Any, secret: Any
    ) -> tuple[Flow, ArrayLike | None]:
        """Raw rows without the secret, and the public ones beside them."""
        if self.reference is not None and is_same(self.reference, X):
            raise ValueError(_SAME)
        given = X
        X, secret = split_step_secrets(opening.estimators, X, secret)
        base = self._validate(X, reset=True)
        public = None
        if self.reference is not None:
            public = self._public(opening, base)
            if share_records(given, self.reference, base, public):
                raise ValueError(_SAME)
        cut = _is_cut(given, base)
        return Flow(base=base, rows=bounded(base), public=public, is_cut=cut), secret

    def _public(self, opening: _Opening, base: Any) -> Any:
        """Public rows with the columns of the data."""
        public = without_step_secrets(
            opening.estimators, as_table(self.reference), self.n_features_in_
        )
        return rows_like(public, base, _OWNER)

    def _plan_fit(
        self,
        opening: _Opening,
        flow: Flow,
        y: Any,
        groups: Any,
        root: Any,
        n_units: int | None,
    ) -> PipelinePlan | None:
        """Plan all private steps, before one of them spends anything.

        One alone needs no plan: nothing is split, and nothing added up.
        """
        if len(opening.units) == 1 and not opening.is_bounded_part:
            return None
        n_records = row_count(flow.base)
        places = np.arange(min(_EXCERPT, n_records))
        if y is not None:
            check_consistent_length(flow.base, y)
            if self._needs_labels():
                _, first = np.unique(read_labels(y), return_index=True)
                places = np.unique([*places, *first])
            y = _some_targets(y, places)
        rows = chosen_rows(flow.base, places)
        part = replace(flow, base=rows, rows=rows)
        plan = plan_steps(
            opening.steps,
            opening.units,
            opening.budget,
            part,
            y,
            n_records,
            groups,
            n_units,
        )
        # before the first release: where warnings are errors, nothing is spent
        for name, step in plan.copies.items():
            announce_weakness(step, plan.plans[name].certificate, root)
        return plan

    def _needs_labels(self) -> bool:
        """Whether public labels are read off the table."""
        return any(
            isinstance(step, PrivateClassifierMixin) and declared_classes(step) is None
            for _, step in private_steps(flat_steps(self.steps))
        )

    def _unit(self, opening: _Opening, plan: PipelinePlan | None, name: str) -> Any:
        """A private step with its budget."""
        if plan is not None:
            return plan.estimators[name]
        accountant = opening.budget.accountant
        whole = getattr(accountant, "epsilon", None)
        unit = opening.units[name]
        if unit.is_fixed or whole is not None:
            return unit.with_budget(accountant, whole)
        step = clone(unit.estimator)
        step.accountant = clone(accountant)
        return step

    # -- a preview -----------------------------------------------------------------

    @property
    def _previewed(self) -> Any:
        """The step that reads the target."""
        steps = list(private_steps(flat_steps(self.steps)))
        if not steps:
            refuse_steps(list(self._kinds()), declared_steps(self.row_wise))
        return steps[-1][1]

    def preview(
        self,
        n_records: int,
        *,
        n_features: int | None = None,
        feature_names: Sequence[str] | None = None,
        example: Table | None = None,
        classes: ArrayLike | None = None,
        target_name: str | None = None,
        groups: ArrayLike | None = None,
    ) -> PipelinePreview:
        """Return noise and certificates of a fit, step by step, before any is made.

        No row is read, no noise drawn and no budget spent. Facts that only rows can
        tell are not foreseen.

        Parameters
        ----------
        n_records : int
            Number of records of the table.
        n_features : int, default=None
            Number of its columns, with a secret one. One of `n_features`,
            `feature_names` and `example` is needed, except where `reference` or a
            `schema` knows the columns.
        feature_names : sequence of str, default=None
            Names of its columns.
        example : {array-like, data frame} of shape (n, n_columns), default=None
            Public or made-up rows with the columns and types of the table.
        classes : array-like, default=None
            Class labels of a classifier, where none are declared.
        target_name : str, default=None
            Name of the target, where a scenario needs it.
        groups : array-like of shape (n_records,), default=None
            As in `fit`.

        Returns
        -------
        PipelinePreview

        Raises
        ------
        ValueError
            As `fit`, or if a public fact is missing.
        UnsupportedError
            If the noise depends on the rows, or an accountant does not support a
            scenario.
        """
        n_records = check_count(n_records=n_records)
        copy = clone(self)
        copy._validate_params()
        opening = copy._opening()
        model = copy._previewed
        labels = _labels(model, classes)
        n_rows = min(n_records, max(2, 0 if labels is None else len(labels)))
        # public rows are of the right types
        if self.reference is not None and n_features is None and example is None:
            rows = as_table(self.reference)
            if feature_names is None:
                example = rows
            elif is_frame(rows) and {*feature_names} <= {*rows.columns}:
                example, feature_names = rows[list(feature_names)], None
        X = as_table(
            opening.estimators[0]._made_up(
                n_rows,
                n_features,
                feature_names,
                None if example is None else as_table(example),
            )
        )
        y = _made_up_target(model, n_rows, labels, target_name)
        given = X
        X, _ = split_step_secrets(opening.estimators, X)
        base = copy._validate(X, reset=True)
        public = None if self.reference is None else copy._public(opening, base)
        plan = plan_steps(
            opening.steps,
            opening.units,
            opening.budget,
            Flow(
                base=base,
                rows=bounded(base),
                public=public,
                is_cut=_is_cut(given, base),
            ),
            y,
            n_records,
            groups,
        )
        for name, step in plan.copies.items():
            announce_weakness(step, plan.plans[name].certificate)
        return PipelinePreview(
            steps=plan.previews, epsilons=plan.epsilons, certificate=plan.certificate
        )

    # -- prediction: post-processing ------------------------------------------------

    def _validate(self, X: Any, reset: bool) -> Any:
        """Check the names and the number of raw columns, whatever they hold."""
        # of any type: text and missing values are what a transformer is there for
        X = read_table(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return to_pandas(X)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _offers(self, name: str) -> bool:
        return offers(self, name)

    def _call(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        return call_last(self, name, X, *args, **kwargs)

    @offered("set_output")
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what `transform` of the last step returns."""
        # the one that is copied by the next fit, and the fitted one if there is one
        for steps in (self.steps, getattr(self, "steps_", ())):
            if steps and hasattr(steps[-1][1], "set_output"):
                steps[-1][1].set_output(transform=transform)
        return self

    @offered("transform")
    def fit_transform(
        self,
        X: Table,
        y: ArrayLike | None = None,
        *,
        secret: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Fit, then transform the same table. The result is not private."""
        fitted: Any = self.fit(X, y, secret=secret, groups=groups)
        return fitted.transform(X)

    @offered("fit_predict")
    def fit_predict(
        self,
        X: Table,
        y: ArrayLike | None = None,
        *,
        secret: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Fit, then predict the same table. The result is not private."""
        fitted: Any = self.fit(X, y, secret=secret, groups=groups)
        return fitted.predict(X)

    @property
    def classes_(self) -> Array:
        """Public class labels of the last step."""
        check_is_fitted(self)
        classes: Array = self.steps_[-1][1].classes_
        return classes

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of what `transform` returns, or the last step reads."""
        return names_out(self, input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    # -- a list of steps -------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters, those of the steps among them."""
        params: dict[str, Any] = self._get_params("steps", deep=deep)
        return params

    @property
    def named_steps(self) -> Bunch:
        """The steps as they were given, by name; `named_steps_` are the fitted ones."""
        return Bunch(**dict(self.steps))

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, which: Any) -> Any:
        """Return a step, or a pipeline of some of them.

        A slice of a fitted pipeline is a :class:`~sklearn.pipeline.Pipeline` of frozen
        steps.
        """
        return step_or_slice(self, which)

    def _sk_visual_block_(self) -> VisualBlock:
        return visual_block(self)

    def __sklearn_tags__(self) -> Tags:
        return tags_of_steps(super().__sklearn_tags__(), self.steps)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the steps and steps themselves among them."""
        nested = any(key.startswith("accountant__") for key in params)
        if nested and self.accountant is None and params.get("accountant") is None:
            scenario = params.get("scenario", self.scenario)
            default = Bunch(scenario=scenario, accountant=None)
            params["accountant"] = scenario_and_accountant(default)[1]
        changed: Self = self._set_params("steps", **params)
        return changed


def make_private_pipeline(*steps: Any, **params: Any) -> PrivatePipeline:
    """Return a :class:`PrivatePipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimators
    **params : dict
        Parameters of the pipeline, such as `accountant`.

    Returns
    -------
    PrivatePipeline

    Examples
    --------
    >>> from skpuffer.compose import make_private_pipeline
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> from skpuffer.preprocessing import RowNormClipper
    >>> model = make_private_pipeline(RowNormClipper(), PrivateLogisticRegression())
    >>> [name for name, step in model.steps]
    ['rownormclipper', 'privatelogisticregression']
    """
    from sklearn.pipeline import make_pipeline

    # scikit-learn numbers classes that come twice
    return PrivatePipeline(make_pipeline(*steps).steps, **params)


@audited.register
def _(node: PrivatePipeline, name: str) -> Iterator[StepAudit]:
    check_names(node)
    for step in node._kinds():
        yield StepAudit(under(name, step.name), step.estimator, step.kind, step.reason)


def _some_targets(y: Any, places: Any) -> Any:
    """Targets of some records; what is no list of targets stays, to be refused."""
    if hasattr(y, "iloc"):
        return y.iloc[places]
    listed = np.asarray(y)
    return listed[places] if listed.ndim else y


def _is_cut(given: Any, base: Any) -> bool:
    """Whether a column without a name was left out of a table."""
    return not is_frame(base) and given.shape != base.shape


def _of_records(step: Any) -> bool:
    return step.scenario is None or bool(step.scenario.any_records)
