"""Base of additive models: reading, release, and what is made of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._raw_tables import (
    ComposedMap,
    check_records,
    column_keys,
    mapped_context,
    read_raw,
)
from skpuffer.accountants._layout import stage_layout
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import check_count, check_finite
from skpuffer.releases import PublicContext
from skpuffer.schema import Binning, Schema
from skpuffer.utils._sklearn import Interval, StrOptions

from ._interactions import pairs_of
from ._run import AdditiveRun, Problem, additive_release, execute
from ._shapes import additive_scores, monotone

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.scenarios import Scenario
    from skpuffer.training import Loss
    from skpuffer.utils._types import Table

__all__ = ["PrivateAdditiveModel"]

_PUBLIC = Statement("assume.code_book_public")
_NO_TARGET = Statement("assume.missing_target_in_histograms_only")
_FOUND = Statement("assume.class_labels_found_public")


def _binning_of(code: Any) -> Any:
    binning: Any = code.then if isinstance(code, ComposedMap) else code
    return binning


class PrivateAdditiveModel(PrivateEstimatorMixin):
    """Base of additive models; a subclass reads targets and makes predictions."""

    schema: Schema | None

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, None],
        "categories": [dict, None],
        "amounts": ["array-like"],
        "interactions": ["array-like", StrOptions({"all"}), None],
        "monotone_constraints": [dict, None],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "n_amount_bins": [Interval(Integral, 2, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _read_y(self, X: Any, y: Any) -> Any:
        """Return targets as the loss reads them; -1 or NaN where there is none."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of the scores."""

    @abstractmethod
    def _scale(self) -> tuple[float, float]:
        """Return what a score of zero stands for, and the unit of scores."""

    def _n_outputs(self) -> int:
        return 1

    def _of_no_target(self) -> Statement | None:
        # labels that are taken from the target are all known
        return None if self._classes_from_data() else _NO_TARGET

    # -- fit ----------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        check_count(least=2, n_bins=self.n_bins)
        check_count(least=2, n_amount_bins=self.n_amount_bins)
        if self.n_rounds != "auto":
            check_count(n_rounds=self.n_rounds)
        self._check_interactions()
        constraints = self.monotone_constraints
        if constraints is not None and (
            not isinstance(constraints, Mapping)
            or any(value not in (-1, 0, 1) for value in constraints.values())
        ):
            raise ValueError(
                Statement("additive.monotone_not_a_dict", constraints=constraints)
            )
        if self.schema is not None:
            self._check_features(self.schema.names, self.schema)
        elif self.bounds is None and self.categories is None:
            raise UnsupportedError(
                Statement("additive.code_book_missing", owner=type(self).__name__)
            )

    def _check_interactions(self) -> None:
        given = self.interactions
        if given is None or (isinstance(given, str) and given == "all"):
            return
        listed = np.iterable(given) and not isinstance(given, str | Mapping)
        well = listed and all(
            not isinstance(pair, str) and np.ndim(pair) == 1 and len(pair) == 2
            for pair in given
        )
        if not well:
            raise ValueError(Statement("additive.interactions_not_a_list", given=given))

    def _check_features(self, names: Any, schema: Schema) -> None:
        """Check what parameters say of features, now that there are some."""
        pairs_of(self.interactions, names)
        for name, direction in (self.monotone_constraints or {}).items():
            if name not in names:
                raise ValueError(
                    Statement(
                        "additive.monotone_unknown_feature",
                        name=name,
                        names=list(names),
                    )
                )
            kind = schema.select([name]).binning().kinds[0]
            if direction and kind == "levels":
                raise ValueError(
                    Statement("additive.monotone_levels_unordered", name=name)
                )

    def _read_by(self, schema: Schema) -> Binning:
        return schema.binning(self.n_bins, self.n_amount_bins)

    def _own_schema(self, X: Any) -> Schema:
        """Code book that the parameters amount to, for the columns of a table."""
        names = column_keys(X)

        def without_secret(given: Any) -> Any:
            # the column is gone, and what is said of it says nothing; columns without
            # names are numbered without it
            if given is None or not all(isinstance(name, str) for name in given):
                return given
            kept = {*self._names_without_secret(list(given))}
            if isinstance(given, Mapping):
                return {name: held for name, held in given.items() if name in kept}
            return [name for name in given if name in kept]

        schema = Schema.from_parameters(
            names,
            bounds=without_secret(self.bounds)
            if isinstance(self.bounds, Mapping)
            else self.bounds,
            categories=without_secret(self.categories),
            amounts=without_secret(self._amount_names()),
        )
        self._check_features(names, schema)
        return schema

    def _amount_names(self) -> list[Any]:
        names = list(self.amounts)
        if not all(isinstance(name, Hashable) for name in names):
            raise ValueError(
                Statement("additive.amounts_not_column_names", amounts=self.amounts)
            )
        return names

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        binning = None
        if self.schema is None:
            X = read_raw(self, X, reset=True)
            binning = self._read_by(self._own_schema(X))
            X = binning(X)
        else:
            # cells already, see `_read_by`
            check_records(self, X)
            self.n_features_in_ = X.shape[1]
        return X, self._read_y(X, y), binning

    def _problem(self, binning: Binning) -> Problem:
        return Problem(
            binning=binning,
            pairs=pairs_of(self.interactions, binning.names),
            loss=self._loss(),
            n_outputs=self._n_outputs(),
        )

    def _release(self, task: Task) -> AdaptiveRelease:
        context: Any = task.context
        if task.reading is not None:
            n_columns = len(task.reading.n_cells)
            context = mapped_context(context, task.reading, n_columns)
        assumptions = [_PUBLIC]
        if self._classes_from_data():
            assumptions.append(_FOUND)
        return additive_release(
            self._problem(_binning_of(context.feature_map)),
            context,
            layout=stage_layout(task.accountant, task.scenario)._asdict(),
            rounds=None if self.n_rounds == "auto" else int(self.n_rounds),
            assumptions=tuple(assumptions),
        )

    def _classes_from_data(self) -> bool:
        return False

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Any:
        problem = self._problem(_binning_of(release.context.feature_map))
        return execute(problem, release, task.X, task.y, noise, rng)

    def _publish(self, value: AdditiveRun, release: Any) -> None:
        binning = _binning_of(release.context.feature_map)
        middle, unit = self._scale()
        # a release on a fitted object is public: its context may hold private rows
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)
        self.binning_ = binning
        self.histograms_ = dict(zip(binning.names, value.histograms, strict=True))
        self.histogram_noise_ = value.deviation
        self.n_rounds_ = value.rounds
        self.plan_ = value.plan
        functions = value.shape_functions(self._problem(binning), unit)
        self.shape_functions_ = {
            f.features if len(f.features) > 1 else f.features[0]: f for f in functions
        }
        intercept = middle + unit * value.intercept
        self.intercept_ = intercept if intercept.size > 1 else float(intercept[0])
        for name, direction in (self.monotone_constraints or {}).items():
            if direction:
                one = self.shape_functions_[name]
                missing = binning.has_missing[binning.names.index(name)]
                scores = monotone(one.scores, one.masses, direction, missing)
                self.shape_functions_[name] = replace(one, scores=scores)

    # -- post-processing ----------------------------------------------------------

    def edit(self, features: Any, scores: ArrayLike) -> Self:
        """Replace the scores of a shape function by others.

        What is made of released numbers and of what is known without the private rows
        (rounded, smoothed, set to zero, corrected by an expert) is post-processing and
        costs no privacy.

        Parameters
        ----------
        features : str, int or tuple of them
            A feature, or a pair that interacts.
        scores : array-like of the shape of its `scores`

        Returns
        -------
        self : object
            The fitted estimator, which predicts by the new scores.

        Raises
        ------
        ValueError
            If there is no such function, or the scores are not as many finite numbers.
        """
        check_is_fitted(self)
        if features not in self.shape_functions_:
            raise ValueError(
                Statement(
                    "additive.edit_features_unknown",
                    known=list(self.shape_functions_),
                    features=features,
                )
            )
        old, new = self.shape_functions_[features], check_finite(scores=scores)
        if new.shape != old.scores.shape:
            raise ValueError(
                Statement(
                    "additive.edit_scores_wrong_shape",
                    shape=old.scores.shape,
                    given_shape=new.shape,
                )
            )
        edited = replace(old, scores=new.copy())
        self.shape_functions_ = {**self.shape_functions_, features: edited}
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # the code book gives what is missing a cell, and text too
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _scores(self, X: Table) -> Floats:
        check_is_fitted(self)
        rows = self._without_secret(X)
        if self.schema is None:
            # with a schema they have been read by it
            rows = self.binning_(read_raw(self, rows, reset=False))
        check_records(self, rows, 1)
        return additive_scores(
            rows,
            self.binning_.names,
            self.shape_functions_.values(),
            self.intercept_,
        )
