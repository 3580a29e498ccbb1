"""What is made of the fitted steps of a pipeline, all of it post-processing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._parameters import scenario_and_accountant
from skpuffer._template._reading import split_secret
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement
from skpuffer.utils._reading import (
    as_table,
    is_frame,
    matching_names,
)
from skpuffer.utils._sklearn import VisualBlock

from ._delegation import inherit_tags
from ._fixed_steps import Chain, as_read
from ._step_kinds import is_passed_over, under

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Array

__all__ = [
    "call_last",
    "check_names",
    "flat_steps",
    "names_out",
    "offers",
    "private_steps",
    "split_step_secret",
    "step_or_slice",
    "tags_of_steps",
    "visual_block",
    "without_step_secret",
]


def flat_steps(steps: Any) -> Iterator[tuple[str, Any]]:
    """Steps, with those of nested pipelines in their place."""
    for name, node in steps:
        # one with a cache stays as it is, and is refused under its name
        cached = type(node) is Pipeline and (
            node.memory is not None or node.transform_input is not None
        )
        if type(node) is Pipeline and not cached:
            for part, one in flat_steps(node.steps):
                yield under(name, part), one
        else:
            yield name, node


def private_steps(steps: Any) -> Iterator[tuple[str, Any]]:
    """Private steps, at any depth."""
    for name, node in steps:
        if isinstance(node, PrivateEstimatorMixin):
            yield name, node
        # by exact type, as the steps are fitted
        parts: Any = ()
        if type(node) is Pipeline:
            parts = node.steps
        elif type(node) is FeatureUnion:
            parts = node.transformer_list
        elif type(node) is ColumnTransformer:
            parts = [pair[:2] for pair in node.transformers]
        yield from private_steps((under(name, part), one) for part, one in parts)


def check_names(pipeline: Any) -> None:
    for pair in pipeline.steps:
        good = isinstance(pair, tuple | list) and len(pair) == 2
        if not good or not isinstance(pair[0], str):
            raise ValueError(Statement("pipeline.steps_not_named_pairs"))
    if not pipeline.steps:
        raise ValueError(Statement("pipeline.steps_empty"))
    pipeline._validate_names([name for name, _ in pipeline.steps])
    pipeline._check_estimators_are_instances([step for _, step in pipeline.steps])


def step_or_slice(pipeline: Any, which: Any) -> Any:
    """Return a step, or a pipeline of some of them."""
    fitted = hasattr(pipeline, "steps_")
    steps = pipeline.steps_ if fitted else list(pipeline.steps)
    if not isinstance(which, slice):
        found = dict(steps)[which] if isinstance(which, str) else steps[which][1]
        return found
    if which.step not in (1, None):
        raise ValueError(Statement("pipeline.slice_step_not_one"))
    part = steps[which]
    if not fitted:
        return type(pipeline)(**{**pipeline.get_params(deep=False), "steps": part})
    return Pipeline(
        [
            (name, step if is_passed_over(step) else FrozenEstimator(step))
            for name, step in part
        ]
    )


def call_last(pipeline: Any, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the last step on rows that went through the others."""
    check_is_fitted(pipeline)
    if name == "inverse_transform":
        for _, step in reversed(pipeline.steps_):
            if not is_passed_over(step):
                X = step.inverse_transform(X)
        return X
    raw = as_table(X)
    for _, step in private_steps(pipeline.steps_):
        raw = without_step_secret(step, raw, pipeline.n_features_in_)
    raw = pipeline._validate(raw, reset=False)
    *before, (_, last) = pipeline.steps_
    rows = Chain(
        [(n, step) for n, step in before if not is_passed_over(step)]
    ).transform(raw)
    if is_passed_over(last):
        return rows
    out = getattr(last, name)(as_read(last, rows), *args, **kwargs)
    # a private step behind others saw arrays, so names and index are set here
    if name == "transform" and is_frame(out) and isinstance(out, pd.DataFrame):
        out.columns = list(pipeline.get_feature_names_out())
        if isinstance(raw, pd.DataFrame):
            out.index = raw.index
    return out


def offers(pipeline: Any, name: str) -> bool:
    (*before, last) = (step for _, step in flat_steps(pipeline.steps))
    asked = [last]
    if name == "inverse_transform":
        asked += before
    if name == "set_output":
        # of what a 'transform' returns
        name = "transform"
    for step in asked:
        if is_passed_over(step) and name in ("transform", "inverse_transform"):
            continue
        getattr(step, name)  # raises its own AttributeError
    return True


def names_out(pipeline: Any, input_features: ArrayLike | None = None) -> Array:
    """Return the names of what `transform` returns, or the last step reads.

    Parameters
    ----------
    input_features : array-like of str, default=None
        Names of the raw columns; None takes those seen in `fit`.

    Returns
    -------
    ndarray of str
    """
    check_is_fitted(pipeline)
    steps = [pair for pair in pipeline.steps_ if not is_passed_over(pair[1])]
    if steps and not hasattr(steps[-1][1], "transform"):
        steps = steps[:-1]
    names: Any = input_features
    if names is None:
        names = getattr(pipeline, "feature_names_in_", None)
    if names is None:
        names = np.array(
            [f"x{i}" for i in range(pipeline.n_features_in_)], dtype=object
        )
    return Chain(steps).get_feature_names_out(names)


def visual_block(pipeline: Any) -> VisualBlock:
    """Return how scikit-learn draws a pipeline."""
    names, steps = zip(*pipeline.steps, strict=True)
    return VisualBlock(
        "serial",
        steps,
        names=[
            f"{name}: {step if is_passed_over(step) else type(step).__name__}"
            for name, step in pipeline.steps
        ],
        name_details=[str(step) for step in steps],
        dash_wrapped=False,
    )


def tags_of_steps(tags: Tags, steps: Any) -> Tags:
    """Fill the tags of a pipeline with those of its first and its last step."""
    steps = [step for _, step in flat_steps(steps) if not is_passed_over(step)]
    if not steps:
        return tags
    tags = inherit_tags(tags, steps[-1])
    first = get_tags(steps[0]).input_tags
    for name in ("allow_nan", "categorical", "string", "positive_only"):
        setattr(tags.input_tags, name, getattr(first, name))
    return tags


def split_step_secret(step: Any, X: Any, secret: Any) -> tuple[Any, Any]:
    """Raw rows without the secret of a step's scenario, and its values."""
    scenario, _ = scenario_and_accountant(step)
    return split_secret(scenario, X, secret)


def without_step_secret(step: Any, X: Any, width: int) -> Any:
    """Raw rows without the secret, if it is there."""
    if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
        return X
    return split_step_secret(step, X, None)[0]
