"""Scores of a finished model on private records that it has not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from skpuffer._template._weights import hides_any_record
from skpuffer.exceptions import Statement, type_error, unsupported_error, value_error
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.schema._cells import MISSING, level_places, plain_numbers
from skpuffer.summary import PrivateSummary
from skpuffer.summary._layout import as_list
from skpuffer.utils._reading import (
    is_frame,
    is_lazy,
    object_cells,
    read_labels,
    read_table,
    to_pandas,
)
from skpuffer.utils._silence import unquoted

from ._scores import score_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array, RandomState, Table

    from ._scores import Score

#: What a certificate takes for granted of the model.
_PUBLIC_MODEL = Statement("assume.model_public_by_record")

#: Column of the table that is summed up.
_COLUMN = "__score__"


class PrivateScore(BaseEstimator):  # type: ignore[misc]
    """Estimate how well a finished model predicts private records, by group if asked.

    Each record is worth a number within public bounds, and the mean of these numbers is
    released. The model is taken as public: it has a certificate of its own, or was
    trained on other records. Score it on records it was not trained on.

    Parameters
    ----------
    estimator : classifier or regressor
        Fitted model, private or not. It must predict each record by itself.
    scenario : RecordScenario or BlocksScenario of one, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting, by default as of
        :class:`~skpuffer.summary.PrivateSummary`.
    scoring : str, default=None
        'accuracy' (default) or 'neg_brier_score' of a classifier,
        'neg_mean_squared_error' (default) or 'neg_mean_absolute_error' of a regressor.
    target_bounds : pair (low, high), default=None
        Public bounds to which targets and predictions of a regressor are clipped. None
        takes those of the model.
    by : str or list of str, default=None
        Columns by whose groups scores are told apart.
    categories : dict of {column: list}, default=None
        Public levels of the columns in `by`. Groups of others are released if enough
        records are in them.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    score_ : float or Series
        Noisy score, of the records that have a target. With `by`, of each group.
    summary_ : PrivateSummary
        The summary that was released.
    certificate_ : Certificate
        The promise, its notion and its assumptions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skpuffer.model_selection import PrivateScore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = X[:, 0] + rng.normal(size=4000) > 0
    >>> model = LogisticRegression().fit(X[:2000], y[:2000])
    >>> found = PrivateScore(model).fit(X[2000:], y[2000:])
    >>> found.to_frame().columns.tolist()
    ['statistic', 'estimate', 'std_error', 'low', 'high', 'n', 'wide']
    """

    def __init__(
        self,
        estimator: Any,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        scoring: str | None = None,
        target_bounds: tuple[float, float] | None = None,
        by: Hashable | Sequence[Hashable] = None,
        categories: Mapping[Hashable, Sequence[Any]] | None = None,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.scenario = scenario
        self.accountant = accountant
        self.scoring = scoring
        self.target_bounds = target_bounds
        self.by = by
        self.categories = categories
        self.random_state = random_state

    def __sklearn_clone__(self) -> PrivateScore:
        # the model is finished
        copies = {
            name: value if name == "estimator" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**copies)

    def fit(
        self, X: Table, y: ArrayLike, *, groups: ArrayLike | None = None
    ) -> PrivateScore:
        """Predict private records, and release the score.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Private records, with the columns of the model and those of `by`.
        y : array-like of shape (n_records,)
            Private targets. A record without one is left out.
        groups : array-like of shape (n_records,), default=None
            As of the scenario.

        Returns
        -------
        self : PrivateScore

        Raises
        ------
        TypeError
            If the table is lazy.
        UnsupportedError
            If the scenario hides anything but records: the model may read a secret.
        ValueError
            If the model is not fitted, has no such score or fails on the table.
        """
        check_is_fitted(self.estimator)
        if is_lazy(X):
            raise type_error("score.table_is_lazy")
        score = self._score()
        scenario: Any = self.scenario or RecordScenario()
        # the model may read the secret, or tell it
        if not hides_any_record(scenario):
            kind = type(scenario).__name__
            raise unsupported_error("score.scenario_of_columns", scenario_type=kind)
        rows = read_table(X)
        target = column_or_1d(read_labels([] if y is None else y, missing=True))
        check_consistent_length(rows, target)
        # an array is of features alone
        table = (
            to_pandas(rows)
            if is_frame(rows)
            else pd.DataFrame(index=range(len(target)))
        )
        names = list(table)
        lacking = [name for name in as_list(self.by) if name not in names]
        if lacking:
            raise value_error("score.groups_not_there", lacking=lacking, names=names)
        beside = [names[at] for at in scenario.left_out(names, len(names))]
        beside += [name for name in as_list(self.by) if name not in beside]
        if is_frame(rows):
            read = getattr(self.estimator, "feature_names_in_", None)
            left = [name for name in names if name not in beside]
            rows = table[left if read is None else list(read)]
        worth = self._worth(score, rows, target)
        held = table[beside].reset_index(drop=True).assign(**{_COLUMN: worth})
        self.summary_ = self._summary(score).fit(held, groups=groups)
        self.certificate_ = self.summary_.certificate_
        frame = self.to_frame(of="table")
        levels = [name for name in frame if name not in _TIDY]
        if levels:
            self.score_: Any = frame.set_index(levels)["estimate"].rename(score.name)
        else:
            self.score_ = float(frame["estimate"].iloc[0])
        return self

    def _score(self) -> Score:
        """Return what each record is worth."""
        model, bounds = self.estimator, self.target_bounds
        if bounds is None:
            schema = getattr(model, "schema", None)
            of_schema = None if schema is None else schema.target_bounds
            bounds = of_schema or getattr(model, "target_bounds", None)
        return score_of(self.scoring, model, getattr(model, "classes_", None), bounds)

    def _worth(self, score: Score, rows: Any, target: Array) -> Array:
        """Return the score of each record, missing where it has no target."""
        codes: Any
        model = self.estimator
        if is_classifier(model):
            codes = level_places(list(model.classes_), target)
            missing = codes == MISSING
            # any other label is one that no prediction meets
            codes = np.maximum(codes, -1)
        else:
            # what is no number is a gap, whatever stands beside it
            codes = plain_numbers(Number(*score.bounds), target)  # type: ignore[misc]
            missing = ~np.isfinite(codes)
            codes = np.where(missing, 0.0, codes)
        if is_frame(rows) and not hasattr(model, "feature_names_in_"):
            rows = rows.to_numpy()
        owner = Statement("score.subject_model", model_type=type(model).__name__)
        found: Floats = unquoted(owner, score.each, model, rows, codes)
        if score.is_integer:
            return object_cells(
                None if gap else bool(value)
                for gap, value in zip(missing, found, strict=True)
            )
        values = score.low + (score.high - score.low) * found
        return np.where(missing, np.nan, values)

    def _summary(self, score: Score) -> PrivateSummary:
        entry: Any = Category((False, True))
        statistics = ["rate"]
        if not score.is_integer:
            entry, statistics = Number(score.low, score.high), ["mean", "std"]
        known, by = self.categories or {}, as_list(self.by)
        levels = {
            name: Category(
                tuple(level for level in known[name] if level is not None),
                missing_level=None in known[name],
            )
            for name in by
            if name in known
        }
        return _ScoreSummary(
            self.scenario,
            self.accountant,
            statistics={_COLUMN: statistics},
            by=self.by,
            schema=Schema({**levels, _COLUMN: entry}),
            random_state=self.random_state,
        )

    def confidence_interval(
        self, level: float = 0.95, *, of: str = "population"
    ) -> dict[str, tuple[Any, Any]]:
        """Return intervals around the score; it costs no budget.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, in (0, 1), of each score by itself.
        of : {'population', 'table'}, default='population'
            Whether it is for the score in the population of independent records, or in
            this very table.

        Returns
        -------
        dict of {str: (low, high)}
        """
        frame = self.to_frame(level, of=of)
        low, high = (frame[end].to_numpy() for end in ("low", "high"))
        if np.ndim(self.score_) == 0:
            low, high = float(low[0]), float(high[0])
        return {"score_": (low, high)}

    def to_frame(self, level: float = 0.95, *, of: str = "population") -> pd.DataFrame:
        """Return the score as a tidy table, a group a row; it costs no budget.

        Parameters
        ----------
        level, of : float and str
            As in :meth:`confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            With the columns of `by`, 'statistic', 'estimate', 'std_error', 'low',
            'high', 'n' and 'wide', as of
            :meth:`PrivateSummary.to_frame <skpuffer.summary.PrivateSummary.to_frame>`.
        """
        check_is_fitted(self)
        frame = self.summary_.to_frame(level, of=of)
        asked = frame["statistic"].isin(["rate[True]", "mean"])
        frame = frame[asked & (frame["column"] == _COLUMN)].drop(columns="column")
        return frame.assign(statistic=self._score().name).reset_index(drop=True)


#: Columns of the tidy table that are no levels.
_TIDY = ("statistic", "estimate", "std_error", "low", "high", "n", "wide")


class _ScoreSummary(PrivateSummary):
    """Summary whose certificate says what it takes for granted of the model."""

    def _release(self, task: Any) -> Any:
        release: Any = super()._release(task)  # type: ignore[no-untyped-call]
        return replace(release, assumptions=(*release.assumptions, _PUBLIC_MODEL))
