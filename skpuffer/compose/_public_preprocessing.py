"""Public preprocessing, applied to the data and to the prior alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer._template import _preview
from skpuffer._template._plan import FitPlan
from skpuffer._template._reading import (
    SCHEMA_BEHIND_PREPROCESSING,
    split_secret,
    without_secret,
)
from skpuffer._template._steps import StepAudit, audited, step_of, under
from skpuffer.base import (
    PrivateEstimatorMixin,
    all_or_nothing,
    refuse_arguments,
    scenario_and_accountant,
)
from skpuffer.exceptions import (
    ScenarioError,
    Statement,
    scenario_error,
    type_error,
    value_error,
)
from skpuffer.scenarios import ReferenceTable
from skpuffer.scenarios._priors._overlap import (
    columns_of,
    holds_private_rows,
    shares_records,
)
from skpuffer.utils._reading import (
    as_table,
    column_names,
    is_frame,
    matching_names,
    read_table,
)
from skpuffer.utils._silence import muted, unquoted
from skpuffer.utils._sklearn import HasMethods, VisualBlock, fit_context, linked_to_docs

from ._delegation import delegates, inherit_tags
from ._feature_map import TRANSFORMER, FeatureMap, is_fixed
from ._fixed_steps import foreign_frozen

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array, Table


@delegates
@linked_to_docs
class PublicPreprocessing(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    MetaEstimatorMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # scikit-learn is untyped
):
    """Apply public preprocessing in front of a private estimator.

    The preprocessing is made without the private rows and applied to the data *and* to
    the scenario's prior, so that its distributions are those of what the model reads.

    Parameters
    ----------
    transformer : transformer
        A scikit-learn transformer that maps each record by itself. One with nothing to
        learn (stateless or frozen) is used as it is; any other is fitted on
        `reference`, or else on the rows of the scenario's prior.
    estimator : private estimator
        One of skpuffer's estimators, with its scenario and accountant.
    reference : table, default=None
        Public rows to fit the transformer on, with the columns of the data. They do not
        replace the scenario's prior.

    Attributes
    ----------
    estimator_ : private estimator
        The fitted estimator.
    transformer_ : transformer
        The public transformer.
    feature_map_ : FeatureMap
        The public map from raw columns to what the estimator reads.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of raw columns without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the raw columns, if all are strings.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, if the estimator is a classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpuffer.compose import PublicPreprocessing
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> public, private = X[:100], X[100:]
    >>> model = PublicPreprocessing(
    ...     StandardScaler(), PrivateLogisticRegression(data_norm=5.0), reference=public
    ... )
    >>> model.fit(private, y[100:]).certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    """

    _parameter_constraints: dict[str, Any] = {
        "transformer": [HasMethods(["fit", "transform"])],
        "estimator": [HasMethods(["fit"])],
    }

    def __init__(
        self,
        transformer: Any,
        estimator: BaseEstimator,
        *,
        reference: Table | None = None,
    ):
        self.transformer = transformer
        self.estimator = estimator
        self.reference = reference

    @all_or_nothing
    def fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        *,
        secret: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **refused: Any,
    ) -> Self:
        """Fit the transformer on public rows, then the estimator privately.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
            Private records in raw columns. A secret column is dropped.
        y : array-like of shape (n_records,), default=None
            Private target, where the estimator has one.
        secret, groups : array-like of shape (n_records,), default=None
            As in the estimator's own `fit`.
        **refused : dict
            Nothing else is taken.

        Returns
        -------
        self : object
        """
        refuse_arguments(self, refused)
        fitted: Self = self._fit_validated(X, y, secret, groups)
        return fitted

    @with_callbacks  # type: ignore[untyped-decorator]
    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _fit_validated(
        self,
        X: Table,
        y: ArrayLike | None,
        secret: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> Self:
        # the inner fit announces the release, with its certificate, as a task of this
        # one
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        task = callback.subcontext(task_name="fit-estimator")
        self._fit(X, y, secret, groups, task)
        callback.call_on_fit_task_end(estimator=self)
        return self

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        secret: ArrayLike | None,
        groups: ArrayLike | None,
        task: Any,
    ) -> None:
        """Make the public map, and fit the private estimator behind it."""
        given = X
        inner, X, secret, features = self._mapped(X, secret)
        with task.propagate_callback_context(inner):
            # the inner root task and this one are one and the same: callbacks that
            # travel on hear of it there, the others here
            task.call_on_fit_task_begin(estimator=self)
            inner._fit_private(X, y, secret, groups, feature_map=features, given=given)
            task.call_on_fit_task_end(estimator=self)
        self.feature_map_ = features
        self.estimator_ = inner
        self.certificate_ = inner.certificate_
        self.noise_ = inner.noise_
        self.accountant_ = inner.accountant_

    def _mapped(
        self, X: Any, secret: Any, made_up: bool = False
    ) -> tuple[PrivateEstimatorMixin, Any, Any, FeatureMap]:
        """Return the estimator to fit, rows without the secret, and the public map."""
        self._check_estimator()
        # The inner estimator's own template runs, told of the map: it binds the
        # scenario in raw columns and the model in mapped ones, and one certificate
        # covers both.
        inner = clone(self.estimator)
        inner._validate_params()
        if inner.schema is not None:
            raise ValueError(SCHEMA_BEHIND_PREPROCESSING)
        scenario, _ = scenario_and_accountant(inner)
        inner._check_parameters(scenario)
        given = X = as_table(X)
        X, secret = split_secret(scenario, X, secret)
        X = self._validate(X, reset=True)
        self.transformer_, assumption, public = self._public_transformer(
            inner, scenario, X
        )
        leaks: tuple[Statement, ...] = ()
        # a prior is looked at with the scenario
        looked_at = self.reference is not None and public is not None and not made_up
        if looked_at and share_records(given, self.reference, X, public):
            leaks = (
                holds_private_rows(Statement("preprocessing.subject_reference_table")),
            )
        features = FeatureMap(self.transformer_, matching_names(X), assumption, leaks)
        # before anything is released: what mixes records would defeat the accounting
        features.check_by_record(X)
        return inner, X, secret, features

    def _check_estimator(self) -> None:
        if not isinstance(self.estimator, PrivateEstimatorMixin):
            raise type_error(
                "preprocessing.estimator_not_private", estimator=self.estimator
            )

    # -- a preview: the same, without the rows ------------------------------------

    preview = _preview.preview

    @property
    def _previewed(self) -> Any:
        self._check_estimator()
        return self.estimator

    def _made_up(
        self, n_rows: int, n_features: Any, feature_names: Any, example: Any
    ) -> Any:
        # rows of the public table are of the right types
        if self.reference is not None and n_features is None and example is None:
            rows = as_table(self.reference)
            if feature_names is None:
                example = rows
            elif is_frame(rows) and {*feature_names} <= {*rows.columns}:
                example, feature_names = rows[list(feature_names)], None
        return _preview.made_up(self, n_rows, n_features, feature_names, example)

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _plan_unread(self, X: Any, y: Any, **public: Any) -> FitPlan:
        try:
            inner, X, _, features = self._mapped(X, None, made_up=True)
        except ValueError as error:
            raise value_error("preview.made_up_rows_refused", error=error) from error
        plan: FitPlan = inner._plan_unread(X, y, feature_map=features, **public)
        return plan

    def _public_transformer(
        self, inner: PrivateEstimatorMixin, scenario: Scenario, X: Any
    ) -> tuple[Any, Statement, Any]:
        """Transformer fitted on public rows, its assumption, and these rows."""
        transformer = clone(self.transformer)
        if is_fixed(transformer):
            # it learns the columns at most; whether a column transformer returns sparse
            # columns, which it would settle by counting zeros, is settled here
            dense = {
                name: 0
                for name in transformer.get_params(deep=True)
                if name.rpartition("__")[2] == "sparse_threshold"
            }
            if dense:
                transformer.set_params(**dense)
            assumption = Statement("assume.preprocessing_fixed_beforehand")
            # these rows are private, so the fit is silent and its errors quote no value
            fixed = foreign_frozen(muted(transformer))
            fixed = unquoted(TRANSFORMER, fixed.fit, X, None)
            return fixed, assumption, None
        # anything that learns does so from public rows; the private ones are no source
        public, owner = (
            self.reference,
            Statement("pipeline.subject_parameter_reference"),
        )
        if public is None:
            public, owner = (
                scenario.public_table(),
                Statement("preprocessing.subject_scenario_prior"),
            )
        else:
            public = without_secret(inner, public, self.n_features_in_)
        if public is None:
            raise scenario_error(
                "preprocessing.public_rows_missing",
                scenario_type=type(scenario).__name__,
            )
        assumption = Statement(
            "assume.preprocessing_fitted_on_prior"
            if self.reference is None
            else "assume.preprocessing_fitted_on_reference"
        )
        public = rows_like(public, X, owner)
        return transformer.fit(public, None), assumption, public

    def _validate(self, X: Any, reset: bool) -> Any:
        """Check the names and the number of raw columns, whatever they hold."""
        # of any type: text and missing values are what a transformer is there for
        X = read_table(X)
        if is_frame(X):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    # -- prediction: post-processing ------------------------------------------------

    def _offers(self, name: str) -> bool:
        getattr(self.estimator, name)  # raises its own AttributeError
        return True

    def _call(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the fitted estimator on mapped rows."""
        check_is_fitted(self)
        if name == "inverse_transform":
            return self.estimator_.inverse_transform(X)
        inner = self.estimator_
        # the same steps as in fit: the secret column out, then the public map
        raw = without_secret(inner, as_table(X), self.n_features_in_)
        raw = self._validate(raw, reset=False)
        out = getattr(inner, name)(self.feature_map_(raw), *args, **kwargs)
        # the estimator inside saw arrays, so names and index of the raw table are set
        # here
        if name == "transform" and is_frame(out):
            out.columns = list(self.get_feature_names_out())
            if isinstance(raw, pd.DataFrame) and isinstance(out, pd.DataFrame):
                out.index = raw.index
        return out

    @property
    def classes_(self) -> Array:
        """Public class labels of the estimator inside."""
        check_is_fitted(self)
        classes: Array = self.estimator_.classes_
        return classes

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of what `transform` returns, or the estimator reads."""
        check_is_fitted(self)
        names: Array = self.transformer_.get_feature_names_out(input_features)
        if hasattr(self.estimator_, "get_feature_names_out"):
            names = self.estimator_.get_feature_names_out(names)
        return names

    def _sk_visual_block_(self) -> VisualBlock:
        steps = (self.transformer, self.estimator)
        return VisualBlock(
            "serial",
            steps,
            names=[
                f"{name}: {type(step).__name__}"
                for name, step in zip(("transformer", "estimator"), steps, strict=True)
            ],
            name_details=[str(step) for step in steps],
            dash_wrapped=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def __sklearn_tags__(self) -> Tags:
        tags = inherit_tags(super().__sklearn_tags__(), self.estimator)
        theirs = get_tags(self.transformer).input_tags
        tags.input_tags.categorical = theirs.categorical
        tags.input_tags.string = theirs.string
        tags.input_tags.positive_only = theirs.positive_only
        return tags


# -- public rows to fit a transformer on, with the columns of the data and not of it ---


def rows_like(public: Any, X: Any, owner: object) -> Any:
    """Return public rows with the columns of the data, in their order.

    Columns are matched by name, or by position where one of the two has no names.
    """
    # the table's own error may quote what it holds, so say no more than this
    try:
        frame = ReferenceTable(public).frame()
    except (ScenarioError, ValueError):
        raise scenario_error("preprocessing.public_table_empty", owner=owner) from None
    names = column_names(X)
    # a pandas frame made of an array numbers its columns
    named = not all(isinstance(name, int) for name in frame.columns)
    if names is not None and named:
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise scenario_error(
                "preprocessing.public_columns_missing",
                owner=owner,
                missing=missing,
                columns=list(frame.columns),
            )
        return frame[list(names)]
    # by position: only tables of the same width can be matched
    if frame.shape[1] != X.shape[1]:
        raise scenario_error(
            "preprocessing.public_column_count_differs",
            owner=owner,
            n_public=frame.shape[1],
            n_columns=X.shape[1],
        )
    if names is None:
        return frame.to_numpy()
    frame.columns = list(names)
    return frame


def share_records(given: Any, reference: Any, X: Any, public: Any) -> bool:
    """Whether reference rows hold private ones."""
    raw = columns_of(given), columns_of(reference)
    known = columns_of(X, column_names(X))
    # by position where one of them has no names
    if any(all(isinstance(name, int) for name in one) for one in raw):
        raw = known, columns_of(public, column_names(public))
    apart = tuple(name for name in raw[0] if name not in known)
    return shares_records(*raw, apart)


def is_same(public: Any, X: Any) -> bool:
    """Whether two tables are one object, or share memory."""
    if public is X:
        return True
    if isinstance(public, np.ndarray) and isinstance(X, np.ndarray):
        pairs = [(public, X)]
    elif isinstance(public, pd.DataFrame) and isinstance(X, pd.DataFrame):
        shared = [name for name in public.columns if name in X.columns]
        pairs = [(np.asarray(public[n]), np.asarray(X[n])) for n in shared]
    else:
        return False
    try:
        most: Any = 10_000  # steps; the stubs know two special values only
        return any(np.shares_memory(a, b, max_work=most) for a, b in pairs)
    except np.exceptions.TooHardError:
        return False  # equal records are looked for besides


@audited.register
def _(node: PublicPreprocessing, name: str) -> Iterator[StepAudit]:
    yield step_of(
        node,
        under(name, "transformer"),
        "public",
        Statement("pipeline.step_fitted_on_public"),
    )
    yield from audited(node.estimator, under(name, "estimator"))
