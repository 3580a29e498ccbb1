"""Any estimator's parameters, released with noise."""

from numbers import Real

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from skpuffer.base import PrivateClassifierParts, PrivateEstimatorMixin
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.utils._checks import check_positive
from skpuffer.utils._sklearn import HasMethods

from ._delegation import delegates, inherit_tags
from ._fitted_query import FittedQuery, is_settable

__all__ = ["OutputPerturbation"]


@delegates
class OutputPerturbation(
    PrivateClassifierParts, MetaEstimatorMixin, PrivateEstimatorMixin
):
    """Releases the parameters, or any vector, of a scikit-learn estimator with noise.

    The estimator is fitted on the private table as it is; what leaves is the vector
    asked for, with noise. How far that vector can move must be known: give a
    `sensitivity`, or a scenario that offers laws of it or simulates worlds
    (:class:`~skpuffer.scenarios.SimulatorScenario`,
    :class:`~skpuffer.scenarios.AttributeScenario`,
    :class:`~skpuffer.scenarios.LawsScenario`).

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator.
    query : str, list of str or callable
        What to release, ``'coef_'`` unless said otherwise: attributes of the fitted
        estimator, or a function of it that returns an array. Predictions need every
        attribute they read, such as ``['coef_', 'intercept_']``.
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy.
    sensitivity : float or Sensitivity, default=None
        How far the vector moves at most when one record changes as the scenario's
        relation says: a number is the l2 move, under either relation. It is yours to
        prove; the certificate states it as an assumption.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns. The inner
        estimator's own `random_state` is left as it is.

    Attributes
    ----------
    value_ : ndarray, or dict of {str: ndarray}
        The noisy arrays: one for one attribute or a function, a dict for a list.
    estimator_ : estimator
        A fresh estimator on which the noisy attributes and public facts are set, and
        nothing else. Only if `query` names attributes that can be set.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, for a classifier.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Examples
    --------
    Ridge regression on rows and targets of norm at most 1, whose minimiser one record
    moves by at most ``2 / alpha``:

    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skpuffer.compose import OutputPerturbation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(500, 2))
    >>> y = X @ [1.0, -1.0]
    >>> model = OutputPerturbation(
    ...     Ridge(alpha=50.0, fit_intercept=False), "coef_", sensitivity=2 / 50
    ... )
    >>> model.fit(X, y).value_.shape
    (2,)
    """

    _parameter_constraints: dict = {
        **PrivateEstimatorMixin._parameter_constraints,
        "estimator": [HasMethods(["fit"])],
        "query": [str, list, tuple, callable],
        "sensitivity": [Real, Sensitivity, None],
        "classes": ["array-like", None],
    }

    def __init__(
        self,
        estimator,
        query="coef_",
        scenario=None,
        accountant=None,
        *,
        sensitivity=None,
        classes=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.query = query
        self.scenario = scenario
        self.accountant = accountant
        self.sensitivity = sensitivity
        self.classes = classes
        self.random_state = random_state

    def _check_parameters(self, scenario):
        if self.sensitivity is not None and not isinstance(
            self.sensitivity, Sensitivity
        ):
            check_positive(sensitivity=self.sensitivity)
        if not callable(self.query) and len(self.query) == 0:
            raise ValueError("The parameter 'query' names no attribute.")

    def _validate(self, X, y):
        tags = get_tags(self.estimator)
        if tags.estimator_type == "classifier":
            return self._validate_classes(X, y)
        if y is None and not tags.target_tags.required:
            return validate_data(self, X, dtype=np.float64), None
        return validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            y_numeric=True,
            multi_output=tags.target_tags.multi_output,
        )

    def _release(self, scenario, context, X):
        sensitivity, assumptions = self.sensitivity, []
        if sensitivity is not None:
            if not isinstance(sensitivity, Sensitivity):
                moves = {2: float(sensitivity)}
                sensitivity = Sensitivity(add_remove=moves, replace=moves)
            assumptions.append(
                "one record moves the released vector by no more than the stated "
                "sensitivity; the library has not proved it"
            )
        inner = type(self.estimator).__name__
        self._query = FittedQuery(
            self.estimator, self.query, getattr(self, "classes_", None)
        )
        names = self._query.names or ["a function of it"]
        return QueryRelease(
            query=self._query,
            name=f"{', '.join(names)} of {inner}",
            n_records=context.n_records,
            sensitivity=sensitivity,
            context=context,
            assumptions=(
                *assumptions,
                "the shape of the released arrays and the class labels are public",
            ),
        )

    def _publish(self, value, context):
        query = self._query
        del self._query
        arrays = query.split(value)
        self.value_ = arrays[0]
        if query.names is None:
            return
        if not isinstance(self.query, str):
            self.value_ = dict(zip(query.names, arrays, strict=True))
        if not all(is_settable(self.estimator, name) for name in query.names):
            return
        fresh = clone(self.estimator)
        fresh.n_features_in_ = self.n_features_in_
        if hasattr(self, "classes_"):
            fresh.classes_ = self.classes_
        for name, array in zip(query.names, arrays, strict=True):
            setattr(fresh, name, array if array.ndim else float(array))
        self.estimator_ = fresh

    def _offers(self, name):
        if callable(self.query):
            raise AttributeError(
                f"OutputPerturbation has no {name!r}: its 'query' is a function, so "
                "nothing is released that could predict."
            )
        getattr(self.estimator, name)  # raises its own AttributeError
        return True

    def _call(self, name, X):
        if not hasattr(self, "estimator_"):
            raise AttributeError(
                f"OutputPerturbation cannot {name!r}: {self.query!r} cannot be set on "
                "an estimator."
            )
        X = validate_data(self, self._without_secret(X), dtype=np.float64, reset=False)
        try:
            return getattr(self.estimator_, name)(X)
        except AttributeError as error:
            raise AttributeError(
                f"{type(self.estimator_).__name__}.{name} reads what was not released: "
                f"{error}. Name it in the parameter 'query', such as "
                "['coef_', 'intercept_'], or set fit_intercept=False."
            ) from error

    def score(self, X, y, sample_weight=None):
        """Return the accuracy of a classifier, or the R² of a regressor.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
        y : array-like of shape (n_records,)
        sample_weight : array-like of shape (n_records,), default=None

        Returns
        -------
        float
            Not private: it compares with the true targets.
        """
        classifies = get_tags(self.estimator).estimator_type == "classifier"
        measure = accuracy_score if classifies else r2_score
        return measure(y, self.predict(X), sample_weight=sample_weight)

    def __sklearn_tags__(self):
        return inherit_tags(super().__sklearn_tags__(), self.estimator)
