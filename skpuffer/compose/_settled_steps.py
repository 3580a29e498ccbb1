"""Steps of a pipeline, each fitted in the way that its kind allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skpuffer._template._steps import (
    CHOSEN_COLUMNS,
    StepAudit,
    audited,
    chooses_by_rows,
    is_known,
)
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, value_error
from skpuffer.utils._reading import bounded, matching_names, row_count
from skpuffer.utils._silence import muted, unquoted
from skpuffer.utils._sklearn import safe_indexing

from ._feature_map import FeatureMap, subject_of
from ._fixed_steps import (
    Chain,
    ColumnSelection,
    as_read,
    foreign_frozen,
)

#: The map of rows that reach a private step as they are.
AS_IT_IS = FeatureMap(Chain(), None, Statement("pipeline.no_step_before"))


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Rows on their way through the steps, and the fixed map that brought them there.

    Parameters
    ----------
    base : {DataFrame, ndarray} of shape (n, n_columns)
        Raw rows, or raw columns of them.
    steps : tuple of (str, estimator)
        Fitted, from `base` on.
    rows : {data frame, ndarray, sparse matrix}
        Result of these on `base`.
    public : same, or None
        Public rows at the same place.
    released : tuple of str
        Names of the private steps before.
    is_cut : bool
        Whether a secret was left out of `base` by its position, which is not to be
        looked for again.
    """

    base: Any
    steps: tuple[tuple[str, Any], ...] = ()
    rows: Any
    public: Any = None
    released: tuple[str, ...] = ()
    is_cut: bool = False

    def feature_map(self) -> FeatureMap | None:
        """Map from `base` to here, None where there is no step between."""
        if not self.steps:
            return AS_IT_IS if self.is_cut else None
        names = [name for name, _ in self.steps]
        said = Statement("assume.steps_fixed_or_public", steps=names)
        if self.released:
            said = Statement(
                "assume.steps_released_are_public", steps=names, released=self.released
            )
        return FeatureMap(
            Chain(self.steps),
            matching_names(self.base),
            said,
            owner=subject_of(names),
        )

    def selecting(self, name: str, columns: Any) -> Flow:
        """Columns of the rows, for a part of a column transformer."""
        selection = ColumnSelection(columns)
        rows = selection.transform(self.rows)
        if not self.steps:
            # raw columns, which keep their names
            return replace(
                self, base=rows, rows=rows, public=self._of_public(selection)
            )
        return replace(
            self,
            steps=(*self.steps, (name, selection)),
            rows=rows,
            public=self._of_public(selection),
        )

    def after(self, name: str, step: Any, released: tuple[str, ...]) -> Flow:
        """Rows that a fitted step has been applied to."""
        rows = unquoted(
            Statement("pipeline.subject_named_step", name=name),
            step.transform,
            as_read(step, self.rows),
        )
        # one row more or less would change how many records one person has
        if row_count(rows) != row_count(self.rows):
            raise value_error(
                "pipeline.step_rows_not_per_record",
                name=name,
                n_rows=row_count(rows),
                n_records=row_count(self.rows),
            )
        return replace(
            self,
            steps=(*self.steps, (name, step)),
            rows=bounded(rows, mapped=True),
            public=self._of_public(step),
            released=released,
        )

    def _of_public(self, step: Any) -> Any:
        if self.public is None:
            return None
        return step.transform(as_read(step, self.public))


#: Fits a private step: its name, the estimator and the rows on their way; returns it
#: fitted.
FitPrivate = Callable[[str, Any, Flow], Any]


def settle(
    node: Any, name: str, flow: Flow, fit_private: FitPrivate
) -> tuple[Any, tuple[str, ...]]:
    """Fit one step by what it is: a private, a public or a row-wise one.

    Parameters
    ----------
    node : estimator
        Step of a kind that :func:`step_kinds` allows.
    fit_private : callable
        By which a private one is fitted.

    Returns
    -------
    fitted : estimator
        With nothing left to learn.
    released : tuple of str
        Names of the private steps that it depends on, itself and those before it.
    """
    if is_passed_over(node):
        return node, flow.released
    if type(node) is Pipeline:
        return _settled_pipeline(node, name, flow, fit_private)
    if type(node) is FeatureUnion:
        parts, released = [], flow.released
        for part, one in node.transformer_list:
            done, of = settle(one, under(name, part), flow, fit_private)
            parts.append((part, _frozen(done, flow)))
            released = _joined(released, of)
        union = _alone(node, transformer_list=parts)
        return _fitted(union, name, flow), released
    if type(node) is ColumnTransformer:
        named: list[tuple[str, Any, Any]] = []
        released = flow.released
        for part, one, columns in node.transformers:
            path = under(name, part)
            if callable(columns):
                # by names alone, unless there are public rows
                columns = columns(flow.rows if flow.public is None else flow.public)
            done, inner = one, flow
            if not is_passed_over(one):
                inner = flow.selecting(path, columns)
                done, of = settle(one, path, inner, fit_private)
                released = _joined(released, of)
            named.append((part, _frozen(done, inner), columns))
        # whether a table is sparse it would settle by counting the zeros of the rows
        made = _alone(
            node,
            transformers=named,
            remainder=foreign_frozen(node.remainder),
            sparse_threshold=0,
        )
        return _fitted(made, name, flow), released
    if isinstance(node, PrivateEstimatorMixin):
        return fit_private(name, node, flow), _joined(flow.released, (name,))
    if isinstance(node, FrozenEstimator):
        return node, flow.released
    return _fitted(node, name, flow), flow.released


def _settled_pipeline(
    node: Pipeline, name: str, flow: Flow, fit_private: FitPrivate
) -> tuple[Any, tuple[str, ...]]:
    parts = [(part, one) for part, one in node.steps if not is_passed_over(one)]
    named = [(under(name, part), one) for part, one in parts]
    done, released = settle_all(named, flow, fit_private)
    steps = zip((part for part, _ in parts), (one for _, one in done), strict=True)
    return Chain(tuple(steps)), released


def _joined(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))


def _frozen(step: Any, flow: Flow) -> Any:
    """Keep a fitted part of a composition from being fitted again."""
    if is_passed_over(step) or isinstance(step, FrozenEstimator):
        return step
    # one that saw arrays, and is given frames
    if as_read(step, flow.rows) is not flow.rows:
        step = Chain((("step", step),))
    return FrozenEstimator(step)


def _alone(node: Any, **params: Any) -> Any:
    """A copy of a composition of fitted parts, which runs in this process."""
    # what its output is set to stays with a clone; the parts are not to be cloned
    fresh = clone(node)
    for name, value in {**params, "n_jobs": None, "verbose": False}.items():
        setattr(fresh, name, value)
    return fresh


def _fitted(step: Any, name: str, flow: Flow) -> Any:
    """Fit a step on public rows; without any it learns no more than the columns."""
    fresh = muted(step)
    if flow.public is None:
        # foreign code that needs no fit might keep what it is given
        if not is_known(fresh) and not get_tags(fresh).requires_fit:
            return fresh
        unquoted(
            Statement("pipeline.subject_named_step", name=name),
            fresh.fit,
            flow.rows,
            None,
        )
        return fresh
    try:
        return fresh.fit(flow.public, None)
    except (TypeError, ValueError) as error:
        # public rows may be quoted
        raise value_error(
            "pipeline.step_needs_public_target",
            name=name,
            step_type=type(step).__name__,
            error=error,
        ) from error


def chosen_rows(table: Any, places: Any) -> Any:
    """Some rows of a table."""
    return safe_indexing(table, np.asarray(places), axis=0)


def settle_all(
    steps: Sequence[tuple[str, Any]], flow: Flow, fit_private: FitPrivate
) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """Fit all steps, each on what those before it return."""
    done, released = [], flow.released
    for at, (name, node) in enumerate(steps):
        fitted, released = settle(node, name, flow, fit_private)
        done.append((name, fitted))
        if at < len(steps) - 1 and not is_passed_over(fitted):
            flow = flow.after(name, fitted, released)
    return done, released


# -- which steps a private pipeline may have: private, public or row-wise ones ---------


def declared_steps(row_wise: Any) -> list[str]:
    """Return the names of steps that are declared to be row-wise, or raise."""
    if isinstance(row_wise, str) or not np.iterable(row_wise):
        raise value_error("pipeline.row_wise_not_a_list", row_wise=row_wise)
    return list(row_wise)


def is_passed_over(node: Any) -> bool:
    """Whether a step is none: None, 'passthrough' or 'drop'."""
    return node is None or (isinstance(node, str) and node in ("passthrough", "drop"))


def under(name: str, part: str) -> str:
    """Name of a part within a step."""
    return f"{name}__{part}" if name else part


def refuse_steps(kinds: Sequence[StepAudit], row_wise: Collection[str]) -> None:
    """Refuse steps that are not allowed, each by its name."""
    refused = [step for step in kinds if step.kind == "leak"]
    if refused:
        reasons = tuple(step.statement() for step in refused)
        raise value_error("pipeline.steps_refused", reasons=reasons)
    names = [step.name for step in kinds]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        # else the certificate of one of them would be left out
        raise value_error("pipeline.step_names_repeated", twice=twice)
    known = set(names)
    known |= {name.rpartition("__")[2] for name in known}
    if unknown := sorted(set(row_wise) - known):
        raise value_error(
            "pipeline.row_wise_unknown",
            unknown=unknown,
            kinds=[step.name for step in kinds],
        )
    if not any(step.kind == "private" for step in kinds):
        raise value_error("pipeline.no_private_step")


def step_kinds(
    steps: Sequence[tuple[str, Any]], row_wise: Collection[str], has_reference: bool
) -> Iterator[StepAudit]:
    """Yield what each step is; of the kind 'leak' is one that is not allowed."""
    for at, (name, node) in enumerate(steps):
        is_last = at == len(steps) - 1
        yield from _kinds(node, name, row_wise, has_reference, is_last)


def _step(node: Any, name: str, kind: str, reason: Statement) -> StepAudit:
    return StepAudit(name, type(node).__name__, kind, reason)


def _kinds(
    node: Any, name: str, row_wise: Collection[str], has_reference: bool, is_last: bool
) -> Iterator[StepAudit]:
    told = row_wise, has_reference
    if is_passed_over(node):
        if isinstance(node, str) and node == "drop" and "__" not in name:
            yield _step(node, name, "leak", Statement("pipeline.step_drops_columns"))
        return
    # by exact type: what a subclass does besides, such as to resample, is not known
    if type(node) is Pipeline:
        if node.memory is not None or node.transform_input is not None:
            yield _step(
                node,
                name,
                "leak",
                Statement("pipeline.step_caches_or_transforms_input"),
            )
            return
        for at, (part, one) in enumerate(node.steps):
            last = is_last and at == len(node.steps) - 1
            yield from _kinds(one, under(name, part), *told, last)
        return
    if type(node) is FeatureUnion:
        for part, one in node.transformer_list:
            yield from _kinds(one, under(name, part), *told, False)
        return
    if type(node) is ColumnTransformer:
        for part, one, columns in node.transformers:
            if chooses_by_rows(columns) and not has_reference:
                yield _step(one, under(name, part), "leak", CHOSEN_COLUMNS)
                continue
            yield from _kinds(one, under(name, part), *told, False)
        yield from _of_remainder(node.remainder, under(name, "remainder"), row_wise)
        return
    found = _one_kind(node, name, row_wise, has_reference)
    if found.kind != "leak" and not hasattr(node, "transform"):
        if found.kind == "private" and is_last:
            yield found
            return
        yield _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_without_transform"),
        )
        return
    yield found


def _of_remainder(
    node: Any, name: str, row_wise: Collection[str]
) -> Iterator[StepAudit]:
    for step in _kinds(node, name, row_wise, False, False):
        fixed = step.kind == "row_wise" or isinstance(node, FrozenEstimator)
        if fixed:
            yield step
            continue
        yield _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_fits_remainder"),
        )
        return


def _one_kind(
    node: Any, name: str, row_wise: Collection[str], has_reference: bool
) -> StepAudit:
    """What a step is that is no composition of others."""
    if hasattr(node, "fit_resample"):
        return _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_resamples_records"),
        )
    parts = list(audited(node, name))
    if isinstance(node, PrivateEstimatorMixin):
        return parts[0]
    if any(step.kind == "private" for step in parts):
        return _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_holds_private_estimators"),
        )
    (step,) = parts if len(parts) == 1 else (None,)
    if isinstance(node, FrozenEstimator) and _holds_release(node.estimator):
        return _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_released_already"),
        )
    foreign = not is_known(node) and not isinstance(node, FunctionTransformer)
    if foreign and hasattr(node, "transform") and not get_tags(node).requires_fit:
        told = Statement("pipeline.step_tried_row_wise")
        return _step(node, name, "row_wise", told)
    if isinstance(node, FrozenEstimator):
        return _step(node, name, "public", Statement("pipeline.step_not_fitted_here"))
    if step is not None and step.kind in ("public", "row_wise"):
        return step
    if isinstance(node, FunctionTransformer):
        # what a subclass learns in its fit is no matter of how it changes rows
        learns = not is_known(node) and get_tags(node).requires_fit
        declared = {name, name.rpartition("__")[2]} & set(row_wise)
        if declared and not learns:
            return _step(
                node, name, "row_wise", Statement("pipeline.step_declared_row_wise")
            )
        if not learns:
            return _step(node, name, "leak", parts[0].reason)
    if not (hasattr(node, "fit") and hasattr(node, "transform")):
        reason = parts[0].reason if parts else Statement("pipeline.step_unknown")
        return _step(node, name, "leak", reason)
    if has_reference:
        return _step(
            node, name, "public", Statement("pipeline.step_fitted_on_reference")
        )
    return _step(
        node,
        name,
        "leak",
        Statement("pipeline.step_needs_public_rows"),
    )


def _holds_release(node: Any) -> bool:
    """Whether a fitted estimator, or what is nested in it, was released privately."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif hasattr(one, "get_params") and not isinstance(one, type):
            if isinstance(one, PrivateEstimatorMixin) or hasattr(one, "certificate_"):
                return True
            # parameters and what was fitted: a list of steps, another frozen estimator
            waiting += vars(one).values()
    return False
