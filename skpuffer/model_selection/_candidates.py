"""Candidates of a search, and what each would release: from public facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from skpuffer._template._plan import FitPlan, Opening, TableRead
from skpuffer._template._preview import UnreadRows, refuse_unread
from skpuffer._template._reading import (
    class_indices,
    declared_classes,
    numeric_targets,
    read_table,
    target_values,
)
from skpuffer._template._units import by_units, is_limited, unit_codes
from skpuffer._template._weights import read_weights
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.compose import PublicPreprocessing, audit_pipeline
from skpuffer.compose._feature_map import refuse_mixing, subject_of
from skpuffer.compose._fixed_steps import foreign_frozen
from skpuffer.compose._settled_steps import step_kinds
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    unsupported_error,
    value_error,
)
from skpuffer.utils._reading import is_frame, row_count, to_pandas
from skpuffer.utils._silence import muted, unquoted
from skpuffer.utils._sklearn import safe_indexing

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant
    from skpuffer.releases import PublicContext
    from skpuffer.utils._types import Array


#: How many records are mapped again in other company, to see that steps mix none.
_LOOKED_AT = 1000

#: What the search sets itself, in each of its fits.
_ITS_OWN = {
    "accountant": Statement("search.accountant_is_of_search"),
    "scenario": Statement("search.scenario_is_of_estimator"),
    "random_state": Statement("search.seed_is_of_search"),
    "schema": Statement("search.schema_is_of_estimator"),
    "classes": Statement("search.classes_are_of_estimator"),
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One combination of parameters, set on a copy of the estimator.

    Parameters
    ----------
    steps : tuple of (str, transformer)
        Steps of a pipeline that change each record by itself.
    last : tuple of (str, estimator)
        The private estimator, or public preprocessing around one. Its name is empty
        where there is no pipeline.
    """

    params: Mapping[str, Any]
    steps: tuple[tuple[str, Any], ...]
    last: tuple[str, Any]

    @property
    def estimator(self) -> Any:
        """The private estimator, or public preprocessing around one."""
        return self.last[1]

    def fitted_steps(self, X: Any) -> tuple[list[tuple[str, Any]], Any]:
        """Return the steps, fitted to columns of a table, and the table they make."""
        fitted = []
        for name, step in self.steps:
            # what is left of a step that does nothing
            if step is None or isinstance(step, str):
                fitted.append((name, step))
                continue
            # no foreign code is told to fit: it might keep the rows it is given
            made = foreign_frozen(muted(step))
            unquoted(
                Statement("pipeline.subject_named_step", name=name), made.fit, X, None
            )
            X = unquoted(
                Statement("pipeline.subject_named_step", name=name), made.transform, X
            )
            fitted.append((name, made))
        return fitted, X

    def check_by_record(self, steps: Sequence[tuple[str, Any]], X: Any) -> None:
        """Refuse steps that carry private values from one record to another."""
        if not steps:
            return
        owner = subject_of([name for name, _ in steps])
        some = safe_indexing(X, np.arange(min(_LOOKED_AT, row_count(X))), axis=0)
        refuse_mixing(lambda rows: _as_array(self.mapped(steps, rows)), some, owner)

    def mapped(self, steps: Sequence[tuple[str, Any]], X: Any) -> Any:
        """Return what fitted steps make of other rows."""
        for name, step in steps:
            if hasattr(step, "transform"):
                X = unquoted(
                    Statement("pipeline.subject_named_step", name=name),
                    step.transform,
                    X,
                )
        return X

    def made_up(self, n_rows: int, told: Mapping[str, Any]) -> Any:
        """Return made-up rows, as they reach the private estimator."""
        # each says for itself which columns it knows of
        return self.fitted_steps(self.estimator._made_up(n_rows, **told))[1]

    @property
    def declares_labels(self) -> bool:
        """Whether it is no classifier, or knows its labels without the table."""
        inner = innermost(self.estimator)
        return not is_classifier(inner) or declared_classes(inner) is not None

    def with_labels(self, labels: Array) -> Candidate:
        """Return the candidate with class labels declared, if it declares none."""
        if self.declares_labels:
            return self
        name, estimator = self.last
        return replace(self, last=(name, with_parameters(estimator, classes=labels)))

    def reading(self, X: Any, y: Any, rng: Any) -> Reading:
        """Read a table as it would in its fit."""
        return read_part(self.estimator, self.fitted_steps(X)[1], y, rng)

    def whole(self, steps: Sequence[tuple[str, Any]], last: Any) -> Any:
        """Return a fitted estimator of fitted parts."""
        if not self.last[0]:
            return last
        return Pipeline([*steps, (self.last[0], last)])


def _as_array(table: Any) -> Array:
    if hasattr(table, "toarray"):
        table = table.toarray()
    found: Array = np.asarray(to_pandas(table) if is_frame(table) else table)
    return found


def innermost(estimator: Any) -> Any:
    """Return the private estimator behind public preprocessing."""
    while isinstance(estimator, PublicPreprocessing):
        estimator = estimator.estimator
    return estimator


def with_parameters(estimator: Any, **parameters: Any) -> Any:
    """Return a copy, with parameters of the private estimator in it set."""
    made = clone(estimator)
    innermost(made).set_params(**parameters)
    return made


def candidate_of(
    estimator: Any, params: Mapping[str, Any], row_wise: Sequence[str] = ()
) -> Candidate:
    """Return a candidate, if a trial of it releases nothing but its private fit."""
    for name in params:
        for part in name.split("__"):
            if part in _ITS_OWN:
                raise value_error(
                    "search.parameter_not_searchable", name=name, its_own=_ITS_OWN[part]
                )
    made = clone(estimator).set_params(
        # a candidate that is an estimator must not be shared by trials
        **{key: clone(value, safe=False) for key, value in params.items()}
    )
    steps: tuple[tuple[str, Any], ...] = ()
    name, last = "", made
    if isinstance(made, Pipeline):
        *before, (name, last) = made.steps
        steps = tuple(before)
    # what the audit only names is refused here, as the steps are run here; and what it
    # does not vouch for is tried on the rows
    kinds = list(step_kinds(steps, row_wise, has_reference=False))
    tried = [step.name for step in kinds if step.kind != "leak"]
    audit = audit_pipeline(made, row_wise=_named(made, [*row_wise, *tried]))
    private = [step for step in audit.steps if step.kind == "private"]
    other = [s for s in audit.steps if s.kind not in ("private", "public", "row_wise")]
    if other or len(private) != 1:
        why = (
            str(other[0])
            if other
            else Statement("search.several_private_steps", n_private=len(private))
        )
        raise unsupported_error("search.estimator_not_one_private", why=why)
    if not isinstance(innermost(last), PrivateEstimatorMixin):
        raise unsupported_error(
            "search.estimator_end_not_private", last_type=type(last).__name__
        )
    for step in kinds:
        if step.kind == "leak":
            raise unsupported_error("search.estimator_steps_not_public", step=step)
    inner = innermost(last)
    if inner.accountant is not None:
        raise value_error("search.candidate_has_accountant")
    if inner.random_state is not None:
        raise value_error("search.candidate_has_random_state")
    run = getattr(inner, "training", None)
    if getattr(run, "warm_start", False) or getattr(run, "init", None) is not None:
        raise value_error("search.candidate_warm_start")
    return Candidate(params=dict(params), steps=steps, last=(name, last))


def _named(estimator: Any, row_wise: Sequence[str]) -> list[str]:
    """Declared steps that a candidate has: another may have others."""
    found = [step.name for step in audit_pipeline(estimator).steps]
    there = {*found, *(name.rpartition("__")[2] for name in found)}
    return [name for name in row_wise if name in there]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A part of a table, as one candidate reads it.

    Parameters
    ----------
    inner : private estimator
        A copy, whose attributes say how the part was read.
    """

    inner: PrivateEstimatorMixin
    opening: Opening
    table: TableRead

    def plan(self, accountant: Accountant) -> FitPlan:
        """Return what a fit to the part would release, from public facts."""
        self.inner.set_params(accountant=accountant)
        opening = replace(self.opening, accountant=clone(accountant))
        plan = self.inner._plan_fit(opening, self.table, None)
        for leak in plan.leaks:
            raise _leaking(self.inner, leak)
        return plan

    def unread(self, n_records: int | None = None) -> Reading:
        """Return the reading without any rows, of as many or of `n_records`."""
        rows = UnreadRows(type(self.inner).__name__)
        n = self.table.n_given if n_records is None else n_records
        table = replace(
            self.table,
            X=rows,
            y=rows,
            secret=None,
            units=None,
            weights=None,
            n_given=n,
            leaks=tuple,
        )
        return replace(self, table=table)


def held_out_context(plan: FitPlan, n_records: int) -> PublicContext:
    """Return the public facts of the held-out part, given those of the other one."""
    context: PublicContext = plan.release.context
    # a score adds up rows, whatever a fit makes of units
    return replace(context, n_records=n_records, groups=None, of_units=False)


def check_held_out(reading: Reading, plan: FitPlan) -> None:
    """Refuse held-out records that no promise would hold for."""
    table = reading.table
    context = held_out_context(plan, table.n_given)
    bound = plan.task.scenario.bind(context)
    rows = bound.check_rows(table.X)
    bound.check_table(rows, table.y)
    bound.check_secrets(table.secret)
    _refuse_leaks(reading)


def check_whole(read: Callable[[], Reading], plan: FitPlan) -> None:
    """Refuse a table that is the public one of a scenario."""
    if plan.task.scenario.public_rows():
        _refuse_leaks(read())


def _refuse_leaks(reading: Reading) -> None:
    for leak in reading.table.leaks():
        raise _leaking(reading.inner, leak)


def read_part(
    estimator: Any, X: Any, y: Any, rng: Any, *, made_up: bool = False
) -> Reading:
    """Read a part of a table as an estimator would in its fit."""
    made = with_parameters(estimator, random_state=rng)
    inner, secret, features, given = made, None, None, X
    if isinstance(made, PublicPreprocessing):
        inner, X, secret, features = made._mapped(X, None, made_up=made_up)
    inner._validate_params()
    opening = inner._opening(y)
    refuse_unread(inner, opening.scenario, opening.leaks)
    table = read_table(inner, opening.scenario, X, y, secret, None, features, given)
    # as the fits that are made are planned
    is_read = is_limited(opening.scenario) and not made_up
    units = unit_codes(opening.scenario, given) if is_read else None
    table = by_units(inner, opening.scenario, table, units)
    if inner._weight_bounds is not None or table.by_units:
        weighting = inner._weighting(table.by_units)
        table = read_weights(None, table, weighting, inner._weight_bounds)
    if table.has_target and getattr(table.y, "ndim", 1) > 1:
        raise value_error("search.target_not_one_column")
    return Reading(inner=inner, opening=opening, table=table)


def targets_of(estimator: Any, y: Any) -> Array:
    """Return targets as scores read them: -1 or NaN for none."""
    if is_classifier(estimator):
        return class_indices(estimator, y, y)
    schema = estimator.schema
    if schema is not None and schema.target_bounds is not None:
        return target_values(estimator, schema, y)
    return numeric_targets(estimator, y)


def _leaking(estimator: Any, leak: Statement) -> UnsupportedError:
    return UnsupportedError(
        Statement(
            "search.estimator_leaks", estimator_type=type(estimator).__name__, leak=leak
        )
    )
