"""Logistic regression, private by output perturbation."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skpuffer.base import PrivateClassifierParts, PrivateEstimatorMixin
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.utils._checks import check_positive
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._sklearn import Interval, StrOptions

from ._logistic_loss import LogisticConstants, LogisticRecord, minimise

__all__ = ["PrivateLogisticRegression"]


@dataclass(frozen=True)
class _Rows:
    """Clips rows to a public norm and adds the intercept's column."""

    data_norm: float
    intercept: float

    def __call__(self, X):
        rows = clip_rows(X, self.data_norm)
        if not self.intercept:
            return rows
        column = np.full((rows.shape[0], 1), self.intercept)
        if sparse.issparse(rows):
            return sparse.hstack([rows, column], format="csr")
        return np.hstack([rows, column])


class PrivateLogisticRegression(
    PrivateClassifierParts, ClassifierMixin, PrivateEstimatorMixin
):
    """Logistic regression whose coefficients are released with noise.

    The l2-regularised minimiser is computed to a public tolerance and noise is added
    to it (output perturbation). Binary targets use the logistic loss, more classes the
    multinomial one, in one release.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.GroupPrivacy`.
    C : float, default=0.01
        Inverse regularisation strength, as in scikit-learn: the objective is
        ``C * sum of losses + |w|^2 / 2``. The noise is proportional to it, so it is
        far smaller than one would choose without privacy.
    data_norm : float or 'empirical', default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it. Scale
        the features, by public numbers or with
        :class:`~skpuffer.summary.PrivateStandardScaler`, so that rows use this range.
        ``'empirical'`` takes the largest norm of the training data, warns, and leaves
        an estimate for a certificate.
    fit_intercept : bool, default=True
        Whether to add a constant column; it is regularised like the others.
    intercept_scaling : float, default=1.0
        Value of that column. It counts in the norm of a row, hence in the noise.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    tol : float, default=0.001
        Public tolerance of the optimiser, as a share of the sensitivity, which grows
        by as much.
    max_iter : int, default=1000
        Iterations after which `fit` fails rather than miss the tolerance.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Noisy coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    n_iter_ : ndarray of shape (1,)
        The parameter `max_iter`: how many iterations were needed depends on the data
        and stays private.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to the coefficients.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    skpuffer.compose.OutputPerturbation : The same for any estimator whose sensitivity
        is known or can be simulated.
    skpuffer.compose.PublicPreprocessing : Encodes and scales data and prior alike.

    Notes
    -----
    One record that moves by b in the space of z = y x moves the minimiser by at most
    ``C * min(2 R, (1 + R D / 4) b)``, with R the largest norm of a row and
    D = sqrt(2 log(2) n C) that of the minimiser. A scenario under which the secret
    moves a record only a little thus needs less noise than differential privacy.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011), Differentially private empirical risk
    minimization; Pierquin et al. (2024), Theorem 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrivateLogisticRegression(
    ...     accountant=GroupPrivacy(epsilon=2.0, delta=1e-5), data_norm=10.0
    ... )
    >>> model.fit(scale(X), y).certificate_
    Certificate(notion='approximate_dp', epsilon=2, delta=1e-05)
    """

    _parameter_constraints: dict = {
        **PrivateEstimatorMixin._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "data_norm": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"empirical"}),
        ],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "classes": ["array-like", None],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        scenario=None,
        accountant=None,
        *,
        C=0.01,
        data_norm=1.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        tol=1e-3,
        max_iter=1000,
        random_state=None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.C = C
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self, scenario):
        check_positive(C=self.C)
        check_positive(tol=self.tol)
        check_positive(intercept_scaling=self.intercept_scaling)
        if not self._norm_from_data:
            check_positive(data_norm=self.data_norm)

    @property
    def _norm_from_data(self):
        return isinstance(self.data_norm, str) and self.data_norm == "empirical"

    def _leaks(self):
        if self._norm_from_data:
            return (
                "data_norm was read from the private data and is not covered by any "
                "promise",
            )
        return ()

    def _validate(self, X, y):
        return self._validate_classes(X, y, accept_sparse="csr")

    def _release(self, scenario, context, X):
        norm = self.data_norm
        if self._norm_from_data:
            norm = float(np.sqrt(_squared_norms(X).max()))
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        n_classes = len(self.classes_)
        constants = LogisticConstants(
            n_records=context.n_records,
            n_classes=n_classes,
            radius=float(np.hypot(norm, intercept)),
            C=float(self.C),
        )
        prepare = _Rows(float(norm), intercept)
        move = constants.C * constants.lipschitz
        gradient_tol = float(self.tol) * move

        def query(X, y):
            return minimise(
                prepare(X), y, n_classes, constants.C, gradient_tol, self.max_iter
            )

        blocks = 1 if n_classes == 2 else n_classes
        return QueryRelease(
            query=query,
            name="logistic regression coefficients",
            n_records=context.n_records,
            dim=blocks * (context.n_features + bool(intercept)),
            contribution=LogisticRecord(prepare, n_classes, constants.shift_ceiling),
            modulus=constants.move,
            shift_ceiling=constants.shift_ceiling,
            sensitivity=Sensitivity(add_remove={2: move}),
            # both minimisers may be off by the tolerance
            slack=2 * gradient_tol,
            context=context,
            assumptions=(
                f"rows longer than {norm:g} are scaled down to it; the class labels "
                f"{context.classes!r} are public",
            ),
        )

    def _publish(self, value, context):
        self.n_iter_ = np.array([self.max_iter])
        blocks = 1 if len(self.classes_) == 2 else len(self.classes_)
        weights = value.reshape(blocks, -1)
        self.intercept_ = np.zeros(blocks)
        self.coef_ = weights
        if self.fit_intercept:
            self.coef_ = weights[:, :-1].copy()
            self.intercept_ = weights[:, -1] * self.intercept_scaling

    # -- prediction: post-processing ------------------------------------------------

    def decision_function(self, X):
        """Return the score of each class, or of the second of two.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
            A secret column is ignored; rows are scaled down as in training.

        Returns
        -------
        scores : ndarray of shape (n_records,) or (n_records, n_classes)
        """
        check_is_fitted(self)
        X = self._without_secret(X)
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        if not self._norm_from_data:
            X = clip_rows(X, self.data_norm)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        labels : ndarray of shape (n_records,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X):
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_records, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_records, n_classes)
        """
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # noise at the default budget
        return tags


def _squared_norms(X):
    return np.asarray((X.multiply(X) if sparse.issparse(X) else X * X).sum(axis=1))
