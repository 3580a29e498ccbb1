"""What is made of the fitted steps of a pipeline, all of it post-processing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer._template._parameters import scenario_and_accountant
from skpuffer.utils._reading import (
    as_table,
    is_frame,
    matching_names,
    read_table,
    to_pandas,
)

from ._delegation import delegates, offered
from ._fixed_steps import Chain, as_read
from ._step_kinds import is_passed_over
from ._step_list import StepListMixin, flat_steps, private_steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.utils._types import Array, Table

__all__ = ["ReleasedStepsMixin", "split_secret", "without_secret"]


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
