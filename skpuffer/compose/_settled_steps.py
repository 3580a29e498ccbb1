"""Steps of a pipeline, each fitted in the way that its kind allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement
from skpuffer.utils._reading import bounded, matching_names, row_count
from skpuffer.utils._silence import muted
from skpuffer.utils._sklearn import safe_indexing
from skpuffer.utils._unquoted import unquoted

from ._feature_map import FeatureMap, subject_of
from ._fixed_steps import Chain, ColumnSelection, as_read, foreign_frozen, is_known
from ._step_kinds import is_passed_over, under

__all__ = ["AS_IT_IS", "FitPrivate", "Flow", "chosen_rows", "settle", "settle_all"]

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
        What these made of `base`.
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
            raise ValueError(
                Statement(
                    "pipeline.step_rows_not_per_record",
                    name=name,
                    n_rows=row_count(rows),
                    n_records=row_count(self.rows),
                )
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
        Of a kind that :func:`step_kinds` allows.
    name : str
    flow : Flow
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
        raise ValueError(
            Statement(
                "pipeline.step_needs_public_target",
                name=name,
                step_type=type(step).__name__,
                error=error,
            )
        ) from error


def chosen_rows(table: Any, places: Any) -> Any:
    """Some rows of a table.

    Parameters
    ----------
    table : {DataFrame, ndarray}
    places : ndarray of int

    Returns
    -------
    the same kind
    """
    return safe_indexing(table, np.asarray(places), axis=0)


def settle_all(
    steps: Sequence[tuple[str, Any]], flow: Flow, fit_private: FitPrivate
) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """Fit all steps, each on what those before it return.

    Parameters
    ----------
    steps : sequence of (str, estimator)
    flow : Flow
    fit_private : callable
        By which a private one is fitted.

    Returns
    -------
    fitted : list of (str, estimator)
    released : tuple of str
        Names of the private steps that they depend on.
    """
    done, released = [], flow.released
    for at, (name, node) in enumerate(steps):
        fitted, released = settle(node, name, flow, fit_private)
        done.append((name, fitted))
        if at < len(steps) - 1 and not is_passed_over(fitted):
            flow = flow.after(name, fitted, released)
    return done, released
