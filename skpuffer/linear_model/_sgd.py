"""Stochastic gradient descent with noise: linear classifiers and regressors."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from skpuffer._template import _classes
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_non_negative, check_positive
from skpuffer.training import make_loss
from skpuffer.utils._sklearn import Interval, StrOptions

from ._base_sgd import LinearClassifier, LinearRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss, Training
    from skpuffer.utils._types import RandomState, Table


def _has_probabilities(estimator: Any) -> bool:
    # a hinge loss is no likelihood, so its scores are no log-odds
    if estimator.loss == "log_loss":
        return True
    raise AttributeError(
        Statement("linear.probabilities_need_log_loss", loss=estimator.loss)
    )


class PrivateSGDClassifier(LinearClassifier):
    """Train a linear classifier by noisy clipped gradients.

    More than two classes are trained in one release, by the multinomial logistic loss
    or by the multi-class hinge loss of Crammer and Singer.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    loss : {'log_loss', 'hinge', 'huber_hinge'}, default='log_loss'
        Loss of a record: logistic regression, a linear support vector machine, or one
        with a smoothed corner.
    width : float, default=0.5
        Half-width of the corner of ``'huber_hinge'``, quadratic for margins within so
        much of one. The wider, the less its gradients move with a record.
    alpha : float, default=0.0
        Weight of ``|w|**2 / 2`` next to the mean loss. It costs no privacy.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    class_weight : dict or tuple, default=None
        Public weight of each label, one for others; in proportion to the largest, a
        record's clipped gradient is multiplied by its own.
        ``('balanced', {'no': 0.99, 'yes': 0.01})`` is one over the number of classes
        times these public shares.
    max_iter : int, default=None
        Number of epochs. None leaves the number of steps to the rule in the notes.
    training : Training, default=None
        How gradients are batched, clipped and followed; see
        :class:`~skpuffer.training.Training`. None is the rule in the notes.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with the
        classes. Numbers are scaled by their bounds, levels become a column each, and
        rows lie in the unit ball.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped (gradients alone). Noise covers a record of the largest.
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
    n_steps_ : int
        Number of noisy gradient sums.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun.
    release_ : GradientRelease
        The release that was accounted and run.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateLogisticRegression : The logistic loss, also by output perturbation.

    Notes
    -----
    What is left at None follows :func:`skpuffer.training.run_defaults`. Where a
    scenario bounds how far a record moves, the parameters are kept in a ball of radius
    3.8 over the largest curvature of the loss and over the norm of a row, intercept
    included. It is halved up to three times where noise lets the parameters travel less
    than 15 times as far. Where clipping alone takes less noise, nothing is projected;
    the certificate says which.

    References
    ----------
    Song, Chaudhuri and Sarwate (2013), Stochastic gradient descent with differentially
    private updates; Abadi et al. (2016), Deep learning with differential privacy.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.linear_model import PrivateSGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrivateSGDClassifier(data_norm=5.0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **LinearClassifier._parameter_constraints,
        # any loss would do for privacy, as gradients are clipped whatever they are
        "loss": [StrOptions({"log_loss", "hinge", "huber_hinge"})],
        "width": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        loss: str = "log_loss",
        width: float = 0.5,
        alpha: float = 0.0,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | tuple[str, dict[Any, float]] | None = None,
        max_iter: int | None = None,
        training: Training | None = None,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        # stored as given: None is resolved at each fit, so that clones stay equal
        self.scenario = scenario
        self.accountant = accountant
        self.loss = loss
        self.width = width
        self.alpha = alpha
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.training = training
        self.schema = schema
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_non_negative(alpha=self.alpha)
        check_positive(width=self.width)

    def _loss(self) -> Loss:
        # as many scores as there are public classes
        shape = {"width": self.width} if self.loss == "huber_hinge" else {}
        return make_loss(self.loss, len(self.classes_), **shape)

    def _l2(self, context: PublicContext) -> float:
        # a term of the objective that no record enters, so no noise is needed for it
        return float(self.alpha)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class; only with ``loss='log_loss'``."""
        return _classes.predict_proba(self, X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`."""
        log_probabilities: Floats = np.log(self.predict_proba(X))
        return log_probabilities


class PrivateSGDRegressor(LinearRegressor):
    """Train a linear regressor by noisy clipped gradients.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    loss : {'squared_error', 'huber'}, default='squared_error'
        Loss of a record.
    epsilon : float, default=0.1
        Where the Huber loss becomes linear, in units of half the target's range. It is
        not the budget.
    alpha : float, default=0.0
        Weight of ``|w|**2 / 2`` next to the mean loss. It costs no privacy.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target; required. Values outside are clipped.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`.
    max_iter : int, default=None
        Number of epochs. None leaves the number of steps to the rule in the notes.
    training : Training, default=None
        How gradients are batched, clipped and followed; see
        :class:`~skpuffer.training.Training`. None is the rule in the notes.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, and the
        target's bounds. Numbers are scaled by their bounds, levels become a column
        each, and rows lie in the unit ball.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped (gradients alone). Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    intercept_ : ndarray of shape (1,)
        Noisy intercept.
    n_steps_ : int
        Number of noisy gradient sums.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun.
    release_ : GradientRelease
        The release that was accounted and run.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateRidge : Least squares with a penalty, by gradients or noisy second moments.

    Notes
    -----
    What is left at None follows :func:`skpuffer.training.run_defaults`. Where a
    scenario bounds how far a record moves, the parameters are kept in a ball of radius
    3.2 over the largest norm of a row in units of `data_norm`, intercept included. It
    is taken 1.5 times smaller up to three times, where noise lets the parameters travel
    less than 100 times as far. Where clipping alone takes less noise, nothing is
    projected; the certificate says which.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skpuffer.linear_model import PrivateSGDRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PrivateSGDRegressor(data_norm=0.15, target_bounds=(25, 350)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    _parameter_constraints: dict[str, Any] = {
        **LinearRegressor._parameter_constraints,
        "loss": [StrOptions({"squared_error", "huber"})],
        # the width of a loss; the budget of the same name is the accountant's
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        # None passes here, to be refused by `_check_parameters` with the remedy
        "target_bounds": ["array-like", None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        loss: str = "squared_error",
        epsilon: float = 0.1,
        alpha: float = 0.0,
        target_bounds: tuple[float, float] | None = None,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        max_iter: int | None = None,
        training: Training | None = None,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        # stored as given: None is resolved at each fit, so that clones stay equal
        self.scenario = scenario
        self.accountant = accountant
        self.loss = loss
        self.epsilon = epsilon
        self.alpha = alpha
        self.target_bounds = target_bounds
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.training = training
        self.schema = schema
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_non_negative(alpha=self.alpha)
        check_positive(epsilon=self.epsilon)

    def _loss(self) -> Loss:
        # targets are in units of half their range by now, and so is the width
        if self.loss == "huber":
            return make_loss("huber", width=float(self.epsilon))
        return make_loss(self.loss)

    def _l2(self, context: PublicContext) -> float:
        return float(self.alpha)
