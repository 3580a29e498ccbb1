"""Preprocessing that is public, applied to the data and to the prior alike."""

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._frame import column_names, drop_position, is_frame, to_pandas
from skpuffer.utils._sklearn import HasMethods, fit_context

from ._delegation import delegates, inherit_tags
from ._feature_map import FeatureMap, is_fixed

__all__ = ["PublicPreprocessing"]


@delegates
class PublicPreprocessing(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """Public preprocessing in front of a private estimator.

    One-hot encoding and scaling stand between the raw columns, in which a scenario's
    prior speaks, and the model. Here they are made without the private rows and applied
    to the data *and* to the prior, so that the scenario's laws are those of what the
    model really reads.

    Parameters
    ----------
    transformer : transformer
        A scikit-learn transformer, also a pipeline or a column transformer. One with
        nothing to learn (stateless, or fitted and wrapped in
        :class:`sklearn.frozen.FrozenEstimator`) is used as it is; any other is fitted on
        public rows: on `reference`, or else on the rows of the scenario's prior.
    estimator : private estimator
        One of skpuffer's estimators, with its scenario and accountant.
    reference : table, default=None
        Public rows to fit the transformer on, with the columns of the data.

    Attributes
    ----------
    estimator_ : private estimator
        The fitted estimator.
    transformer_ : transformer
        The public transformer.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of raw columns, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the raw columns, if all are strings.

    See Also
    --------
    skpuffer.preprocessing.PublicOneHotEncoder : Encodes by public categories.
    skpuffer.summary.PrivateStandardScaler : Scales by private moments instead.

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

    _parameter_constraints: dict = {
        "transformer": [HasMethods(["fit", "transform"])],
        "estimator": [HasMethods(["fit"])],
    }

    def __init__(self, transformer, estimator, *, reference=None):
        self.transformer = transformer
        self.estimator = estimator
        self.reference = reference

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, secret=None):
        """Fit the transformer on public rows, then the estimator privately.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
            Private records in raw columns. A secret column is dropped.
        y : array-like of shape (n_records,), default=None
            Private target, where the estimator has one.
        secret : array-like of shape (n_records,), default=None
            As in the estimator's own `fit`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._forget()
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        try:
            self._fit(X, y, secret, callback)
        except BaseException:
            self._forget()
            raise
        callback.call_on_fit_task_end(
            estimator=self, metadata={"certificate": self.certificate_}
        )
        return self

    def _fit(self, X, y, secret, callback):
        if not isinstance(self.estimator, PrivateEstimatorMixin):
            raise TypeError(
                "The parameter 'estimator' must be one of skpuffer's private "
                f"estimators. Got {self.estimator!r}: wrap it in "
                "compose.OutputPerturbation, or put PublicPreprocessing around the "
                "private step only."
            )
        inner = clone(self.estimator)
        inner._validate_params()
        scenario, _ = inner._parameters()
        features = self._validate(X, scenario, reset=True)
        self.transformer_, where = self._public_transformer(scenario, features)
        mapping = FeatureMap(self.transformer_, column_names(features), where)
        mapping.check_by_record(features)
        task = callback.subcontext(task_name="fit private estimator")
        with task.propagate_callback_context(inner):
            inner._fit_private(X, y, secret, feature_map=mapping)
        self._map = mapping
        self.estimator_ = inner
        for name in ("certificate_", "noise_", "accountant_"):
            setattr(self, name, getattr(inner, name))

    def _public_transformer(self, scenario, X):
        """The transformer, fitted without private rows, and what makes it public."""
        if is_fixed(self.transformer):
            # learns names at most: there is nothing in it that rows could tell
            fixed = clone(self.transformer).fit(X)
            return fixed, "the preprocessing is fixed and learns nothing from data"
        public, where = self.reference, "the given public reference table"
        if public is None:
            public, where = scenario.public_table(), "the scenario's public prior"
        if public is None:
            raise ValueError(
                "The parameter 'transformer' must be fitted, but there are no public "
                f"rows to fit it on: {type(scenario).__name__} has no public prior. "
                "Pass reference=<public table>, or a fitted transformer wrapped in "
                "sklearn.frozen.FrozenEstimator."
            )
        fitted = clone(self.transformer).fit(_like(public, X))
        return fitted, f"the preprocessing was fitted on {where}, which is public"

    def _validate(self, X, scenario, reset):
        """Raw records without the secret column, names and number checked."""
        shape = getattr(X, "shape", None)
        if shape is not None and len(shape) == 2:
            position = scenario.secret_position(column_names(X), shape[1])
            if position is not None:
                X, _ = drop_position(X, position)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite=False
        )

    def _offers(self, name):
        getattr(self.estimator, name)  # raises its own AttributeError
        return True

    def _call(self, name, X):
        scenario = self.estimator_.scenario
        X = self._validate(X, scenario or RecordScenario(), reset=False)
        return getattr(self.estimator_, name)(self._map(X))

    def score(self, X, y, sample_weight=None):
        """Return the accuracy of a classifier, or the R² of a regressor.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
        y : array-like of shape (n_records,)
        sample_weight : array-like of shape (n_records,), default=None

        Returns
        -------
        float
            Not private: it compares with the true targets.
        """
        kind = self.__sklearn_tags__().estimator_type
        measure = accuracy_score if kind == "classifier" else r2_score
        return measure(y, self.predict(X), sample_weight=sample_weight)

    @property
    def classes_(self):
        """Public class labels of the estimator inside."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def get_feature_names_out(self, input_features=None):
        """Names of the features that reach the estimator.

        Parameters
        ----------
        input_features : array-like of str, default=None
            As in scikit-learn.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def _forget(self):
        for name in [n for n in vars(self) if n.endswith("_") and n[0] != "_"]:
            delattr(self, name)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "certificate_")

    def __sklearn_tags__(self):
        tags = inherit_tags(super().__sklearn_tags__(), self.estimator)
        tags.input_tags.allow_nan = False
        return tags


def _like(public, X):
    """Public rows with the columns of the data, in their order."""
    names = column_names(X)
    if names is None:
        return to_pandas(public).to_numpy()
    if not is_frame(public):
        raise ValueError(
            "The data has named columns, so the public rows must be a data frame too "
            "(parameter 'reference', or the scenario's prior)."
        )
    missing = [name for name in names if name not in column_names(public)]
    if missing:
        raise ValueError(
            f"The public rows lack the columns {missing!r} of the data; they have "
            f"{list(column_names(public))!r}."
        )
    return to_pandas(public, names)
