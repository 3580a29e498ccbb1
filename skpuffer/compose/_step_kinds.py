"""Which steps a private pipeline may have: private, public or row-wise ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement

from ._audit_pipeline import CHOSEN_COLUMNS, StepAudit, audited
from ._fixed_steps import chooses_by_rows, is_known

__all__ = [
    "declared_steps",
    "is_passed_over",
    "refuse_steps",
    "step_kinds",
    "under",
]


def declared_steps(row_wise: Any) -> list[str]:
    """Return the names of steps that are declared to be row-wise, or raise."""
    if isinstance(row_wise, str) or not np.iterable(row_wise):
        raise ValueError(Statement("pipeline.row_wise_not_a_list", row_wise=row_wise))
    return list(row_wise)


def is_passed_over(node: Any) -> bool:
    """Whether a step is none: None, 'passthrough' or 'drop'."""
    return node is None or (isinstance(node, str) and node in ("passthrough", "drop"))


def under(name: str, part: str) -> str:
    """Name of a part within a step."""
    return f"{name}__{part}" if name else part


def refuse_steps(kinds: Sequence[StepAudit], row_wise: Collection[str]) -> None:
    """Refuse steps that are not allowed, each by its name.

    Parameters
    ----------
    kinds : sequence of StepAudit
    row_wise : collection of str
        Names that were declared to be row-wise.

    Raises
    ------
    ValueError
        With all reasons.
    """
    refused = [step for step in kinds if step.kind == "leak"]
    if refused:
        reasons = tuple(step.statement() for step in refused)
        raise ValueError(Statement("pipeline.steps_refused", reasons=reasons))
    names = [step.name for step in kinds]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        # else the certificate of one of them would be left out
        raise ValueError(Statement("pipeline.step_names_repeated", twice=twice))
    known = set(names)
    known |= {name.rpartition("__")[2] for name in known}
    if unknown := sorted(set(row_wise) - known):
        raise ValueError(
            Statement(
                "pipeline.row_wise_unknown",
                unknown=unknown,
                kinds=[step.name for step in kinds],
            )
        )
    if not any(step.kind == "private" for step in kinds):
        raise ValueError(Statement("pipeline.no_private_step"))


def step_kinds(
    steps: Sequence[tuple[str, Any]], row_wise: Collection[str], has_reference: bool
) -> Iterator[StepAudit]:
    """Yield what each step is; of the kind 'leak' is one that is not allowed.

    Parameters
    ----------
    steps : sequence of (str, estimator)
    row_wise : collection of str
        Names of steps that are declared to change each row by itself.
    has_reference : bool
        Whether there are public rows to fit steps on.

    Yields
    ------
    StepAudit
    """
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
