"""What is made of the fitted steps of a pipeline, all of it post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import Bunch, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer._template._parameters import scenario_and_accountant
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement
from skpuffer.utils._reading import (
    as_table,
    is_frame,
    matching_names,
    read_table,
    to_pandas,
)
from skpuffer.utils._sklearn import BaseComposition, VisualBlock

from ._delegation import delegates, inherit_tags, offered
from ._fixed_steps import Chain, as_read
from ._step_kinds import is_passed_over, under

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Array, Table

__all__ = ["ReleasedStepsMixin", "split_secret", "without_secret"]


class StepListMixin(BaseComposition):  # type: ignore[misc] # scikit-learn is untyped
    """Mixin of pipelines: their steps by name and number, whether fitted or not."""

    steps: Sequence[tuple[str, Any]]

    def _check_names(self) -> None:
        for pair in self.steps:
            good = isinstance(pair, tuple | list) and len(pair) == 2
            if not good or not isinstance(pair[0], str):
                raise ValueError(Statement("pipeline.steps_not_named_pairs"))
        if not self.steps:
            raise ValueError(Statement("pipeline.steps_empty"))
        self._validate_names([name for name, _ in self.steps])
        self._check_estimators_are_instances([step for _, step in self.steps])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters, those of the steps among them.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict
        """
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

        Of a fitted pipeline these are fitted, and a slice is a
        :class:`~sklearn.pipeline.Pipeline` of frozen steps: to fit some of the steps is
        another release.
        """
        fitted = hasattr(self, "steps_")
        steps = self.steps_ if fitted else list(self.steps)
        if not isinstance(which, slice):
            found = dict(steps)[which] if isinstance(which, str) else steps[which][1]
            return found
        if which.step not in (1, None):
            raise ValueError(Statement("pipeline.slice_step_not_one"))
        part = steps[which]
        if not fitted:
            return type(self)(**{**self.get_params(deep=False), "steps": part})
        return Pipeline(
            [
                (name, step if is_passed_over(step) else FrozenEstimator(step))
                for name, step in part
            ]
        )

    def _sk_visual_block_(self) -> VisualBlock:
        names, steps = zip(*self.steps, strict=True)
        return VisualBlock(
            "serial",
            steps,
            names=[
                f"{name}: {step if is_passed_over(step) else type(step).__name__}"
                for name, step in self.steps
            ],
            name_details=[str(step) for step in steps],
            dash_wrapped=False,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        steps = [step for _, step in flat_steps(self.steps) if not is_passed_over(step)]
        if not steps:
            return tags
        tags = inherit_tags(tags, steps[-1])
        first = get_tags(steps[0]).input_tags
        for name in ("allow_nan", "categorical", "string", "positive_only"):
            setattr(tags.input_tags, name, getattr(first, name))
        return tags


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


@delegates
class ReleasedStepsMixin(StepListMixin):
    """Mixin of pipelines: rows pass through the fitted steps to the last one."""

    steps_: list[tuple[str, Any]]
    n_features_in_: int

    def _validate(self, X: Any, reset: bool) -> Any:
        """Check the names and the number of raw columns, whatever they hold."""
        # of any type: text and missing values are what a transformer is there for
        X = read_table(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return to_pandas(X)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _offers(self, name: str) -> bool:
        (*before, last) = (step for _, step in flat_steps(self.steps))
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

    def _call(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the last step on rows that went through the others."""
        check_is_fitted(self)
        if name == "inverse_transform":
            for _, step in reversed(self.steps_):
                if not is_passed_over(step):
                    X = step.inverse_transform(X)
            return X
        raw = as_table(X)
        for _, step in private_steps(self.steps_):
            raw = without_secret(step, raw, self.n_features_in_)
        raw = self._validate(raw, reset=False)
        *before, (_, last) = self.steps_
        rows = Chain(
            [(n, step) for n, step in before if not is_passed_over(step)]
        ).transform(raw)
        if is_passed_over(last):
            return rows
        out = getattr(last, name)(as_read(last, rows), *args, **kwargs)
        # a private step behind others saw arrays, so names and index are set here
        if name == "transform" and is_frame(out) and isinstance(out, pd.DataFrame):
            out.columns = list(self.get_feature_names_out())
            if isinstance(raw, pd.DataFrame):
                out.index = raw.index
        return out

    @offered("set_output")
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what `transform` of the last step returns.

        Parameters
        ----------
        transform : {'default', 'pandas', 'polars'}, default=None
            As in scikit-learn.

        Returns
        -------
        self : object
        """
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
        """Fit, then transform the same table. What comes out is not private.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
        y : array-like of shape (n_records,), default=None
        secret, groups : array-like of shape (n_records,), default=None
            As in `fit`.

        Returns
        -------
        array
        """
        fitted: Any = self.fit(X, y, secret=secret, groups=groups)
        return fitted.transform(X)

    @property
    def classes_(self) -> Array:
        """Public class labels of the last step."""
        check_is_fitted(self)
        classes: Array = self.steps_[-1][1].classes_
        return classes

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of what `transform` returns, or the last step reads.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the raw columns; None takes those seen in `fit`.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        steps = [pair for pair in self.steps_ if not is_passed_over(pair[1])]
        if steps and not hasattr(steps[-1][1], "transform"):
            steps = steps[:-1]
        names: Any = input_features
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.array(
                [f"x{i}" for i in range(self.n_features_in_)], dtype=object
            )
        return Chain(steps).get_feature_names_out(names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")


def split_secret(step: Any, X: Any, secret: Any) -> tuple[Any, Any]:
    """Raw rows without the secret of a step's scenario, and its values."""
    scenario, _ = scenario_and_accountant(step)
    split: tuple[Any, Any] = step._split_secret(scenario, X, secret)
    return split


def without_secret(step: Any, X: Any, width: int) -> Any:
    """Raw rows without the secret, if it is there."""
    if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
        return X
    return split_secret(step, X, None)[0]
