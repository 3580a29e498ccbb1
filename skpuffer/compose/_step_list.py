"""A list of named steps, as scikit-learn's pipelines have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import Bunch, get_tags

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement
from skpuffer.utils._sklearn import BaseComposition, VisualBlock

from ._delegation import inherit_tags
from ._step_kinds import is_passed_over, under

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["StepListMixin", "flat_steps", "private_steps"]


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
