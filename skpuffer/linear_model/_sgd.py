"""Stochastic gradient descent with noise: linear classifiers and regressors."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from skpuffer._prediction import ScoreProbabilitiesMixin
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_non_negative, check_positive
from skpuffer.training import make_loss
from skpuffer.utils._sklearn import Interval, StrOptions

from ._base_sgd import LinearClassifier, LinearRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise.strategies import NoiseStrategy
    from skpuffer.releases import PublicContext, SamplingScheme
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss
    from skpuffer.utils._types import RandomState, Table

__all__ = ["PrivateSGDClassifier", "PrivateSGDRegressor"]


def _has_probabilities(estimator: Any) -> bool:
    # a hinge loss is no likelihood, so its scores are no log-odds
    if estimator.loss == "log_loss":
        return True
    raise AttributeError(
        Statement("linear.probabilities_need_log_loss", loss=estimator.loss)
    )


class PrivateSGDClassifier(ScoreProbabilitiesMixin, LinearClassifier):
    """A linear classifier trained by noisy clipped gradients.

    More than two classes are trained at once, in one release: by the multinomial
    logistic loss, or by the multi-class hinge loss of Crammer and Singer.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    loss : {'log_loss', 'hinge', 'huber_hinge'}, default='log_loss'
        Loss of a record: logistic regression, a linear support vector machine, or one
        with a smoothed corner.
    width : float, default=0.5
        Half-width of the corner of ``'huber_hinge'``, which is quadratic for margins
        within so much of one. The wider, the less its gradients move with a record.
    alpha : float, default=0.0
        Weight of ``|w|**2 / 2`` next to the mean loss. It costs no privacy; the noise
        and the number of steps regularise already.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    class_weight : dict or 'balanced', default=None
        Public weight of each label, one for those that are left out; in proportion to
        the largest, a record's clipped gradient is multiplied by its own, so that none
        takes more noise. ``'balanced'`` is ``1 / (n_classes * share)`` of
        `class_shares`, and never counts the labels of the table. None is one for all.
    class_shares : dict, default=None
        Public share of each class, as it is known without the data; for
        ``class_weight='balanced'``.
    sampling : str or SamplingScheme, default=None
        How the records of a step are chosen; see
        :class:`~skpuffer.releases.GradientRelease`. None is ``'full_batch'``. If
        `batch_size` is given it is ``'fresh_bins'`` where that takes no more noise, and
        ``'poisson'`` otherwise: bins are for one record, added or removed, in an
        epoch or more of Gaussian noise under ``PrivacyLoss``.
    batch_size : int, default=None
        Records of a step, in expectation where records draw. None is all, or a tenth
        where the sampling named takes fewer.
    noise_correlation : NoiseStrategy or str, default=None
        How the noise of the steps is correlated, so that later steps take back a part
        of it: a strategy of :mod:`skpuffer.noise.strategies`, or the name of one that
        is then made for the run, such as ``'banded_square_root'``, with four diagonals
        where it is banded. It is for runs with a `batch_size`, and `sampling` is then
        ``'balls_in_bins'`` if None; in full batches nothing is gained, and a name is
        independent noise. None is independent noise.
    max_iter : int, default=None
        Number of epochs. None leaves the number of steps to the rule in the notes.
    n_steps : int, default=None
        Number of steps; takes precedence over `max_iter`.
    clip_norm : float, default=None
        Norm to which each record's gradient is scaled down, for rows in units of
        `data_norm`; of the order that the accountant's noise measures in, l2 for
        Gaussian noise. None is by the rule.
    radius : float, default=None
        Radius of the l2 ball that the parameters, intercept included and for rows in
        units of `data_norm`, are projected onto at the start and after each step. It
        costs no privacy, and where a scenario bounds how far a record moves it bounds
        how far its gradient does. None is no projection where a record may become any
        other, as under :class:`~skpuffer.scenarios.RecordScenario`, and otherwise by
        the rule, if that takes less noise.
    learning_rate : float, default=None
        Step size for the mean gradient. None is by the rule.
    schedule : str, default=None
        How the learning rate, that of the longest step, changes over the run:
        'constant' (None), 'invscaling', 'linear', 'cosine' or 'warmup_cosine', as in
        :class:`~skpuffer.releases.Optimiser`. It costs no privacy. The rule raises the
        rate so that the run goes as far, where steps stay stable; constant steps, which
        it averages, were about as good or better on the tables that were tried.
    momentum : float, default=None
        Heavy-ball momentum: share of the last step that is taken again, in [0, 1).
        None is by the rule.
    average : float or bool, default=None
        Iterate averaging: share of the steps, counted from the last, whose iterates
        are averaged. None is by the rule.
    init : estimator or tuple, default=None
        Where training starts, in the units of the data: a fitted model with the same
        columns and classes, such as one of scikit-learn's on public rows with labels,
        or the pair (`coef_`, `intercept_`). One with a `certificate_` is composed with
        this fit, or refused where the two do not add up; an estimate makes this one an
        estimate. Of any other the certificate assumes that it was fitted without these
        rows. In a search, wrap it in :class:`sklearn.frozen.FrozenEstimator`, as
        cloning forgets a fit. The rule for what is not given does not go as far from a
        start, and takes no ball that leaves it out; a `radius` that does is refused.
    warm_start : bool, default=False
        Whether to begin at the parameters an earlier `fit` released, also of a table
        of other records. The certificate is of all these fits together.
        Within :class:`~skpuffer.compose.PublicPreprocessing` it has no effect.
    n_jobs : int, default=None
        Workers of joblib that sum up gradients of all records. None is 1 unless in a
        ``joblib.parallel_config`` context. The model is the same to the last digit.
        Small tables, and batches that are drawn, are summed up here.
    verbose : int, default=0
        Whether to show a progress bar.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `classes` are those of its target. Numbers are scaled by their bounds,
        levels become a column each, and rows lie in the unit ball. See
        :class:`~skpuffer.schema.Schema`.
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
        What was accounted and run.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read, whose names are
        ``feature_map_.names``; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateLogisticRegression : The logistic loss, also by output perturbation.

    Notes
    -----
    What is left at None follows :func:`skpuffer.training.run_defaults`, from public
    facts alone: the number of records, how much noise the budget asks for, and how
    curved the loss is.

    Where a scenario bounds how far a record moves, the parameters are kept in a ball of
    which the radius is 3.8 over the largest curvature of the loss and over the norm of
    a row, intercept included. There gradients move no more than a few times as far as
    their records, and are clipped to the longest there is, which costs nothing. The
    radius is halved, three times at most, while noise would let the parameters travel
    less than 15 times as far. Where clipping alone takes less noise, nothing is
    projected; the certificate says which.

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
        class_weight: dict[Any, float] | str | None = None,
        class_shares: dict[Any, float] | None = None,
        sampling: str | SamplingScheme | None = None,
        batch_size: int | None = None,
        noise_correlation: NoiseStrategy | str | None = None,
        max_iter: int | None = None,
        n_steps: int | None = None,
        clip_norm: float | None = None,
        radius: float | None = None,
        learning_rate: float | None = None,
        schedule: str | None = None,
        momentum: float | None = None,
        average: float | None = None,
        init: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        schema: Schema | None = None,
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
        self.class_shares = class_shares
        self.sampling = sampling
        self.batch_size = batch_size
        self.noise_correlation = noise_correlation
        self.max_iter = max_iter
        self.n_steps = n_steps
        self.clip_norm = clip_norm
        self.radius = radius
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.average = average
        self.init = init
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.schema = schema
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
        """Return the probability of each class; only with ``loss='log_loss'``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_records, n_classes)
        """
        return super().predict_proba(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_records, n_classes)
        """
        log_probabilities: Floats = np.log(self.predict_proba(X))
        return log_probabilities


class PrivateSGDRegressor(LinearRegressor):
    """A linear regressor trained by noisy clipped gradients.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    loss : {'squared_error', 'huber'}, default='squared_error'
        Loss of a record.
    epsilon : float, default=0.1
        Where the Huber loss becomes linear, in units of half the target's range. (The
        budget of the same name is a parameter of the accountant.)
    alpha : float, default=0.0
        Weight of ``|w|**2 / 2`` next to the mean loss. It costs no privacy.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, from what is known of it without the
        data. They must be given: values outside are clipped.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`.
    sampling : str or SamplingScheme, default=None
        How the records of a step are chosen; see
        :class:`~skpuffer.releases.GradientRelease`. None is ``'full_batch'``. If
        `batch_size` is given it is ``'fresh_bins'`` where that takes no more noise, and
        ``'poisson'`` otherwise: bins are for one record, added or removed, in an
        epoch or more of Gaussian noise under ``PrivacyLoss``.
    batch_size : int, default=None
        Records of a step, in expectation where records draw. None is all, or a tenth
        where the sampling named takes fewer.
    noise_correlation : NoiseStrategy or str, default=None
        How the noise of the steps is correlated, so that later steps take back a part
        of it: a strategy of :mod:`skpuffer.noise.strategies`, or the name of one that
        is then made for the run, such as ``'banded_square_root'``, with four diagonals
        where it is banded. It is for runs with a `batch_size`, and `sampling` is then
        ``'balls_in_bins'`` if None; in full batches nothing is gained, and a name is
        independent noise. None is independent noise.
    max_iter : int, default=None
        Number of epochs. None leaves the number of steps to the rule in the notes.
    n_steps : int, default=None
        Number of steps; takes precedence over `max_iter`.
    clip_norm : float, default=None
        Norm to which each record's gradient is scaled down, for rows in units of
        `data_norm`; of the order that the accountant's noise measures in, l2 for
        Gaussian noise. None is by the rule.
    radius : float, default=None
        Radius of the l2 ball that the parameters, intercept included and for rows in
        units of `data_norm`, are projected onto at the start and after each step. It
        costs no privacy, and where a scenario bounds how far a record moves it bounds
        how far its gradient does. None is no projection where a record may become any
        other, as under :class:`~skpuffer.scenarios.RecordScenario`, and otherwise by
        the rule, if that takes less noise.
    learning_rate : float, default=None
        Step size for the mean gradient. None is by the rule.
    schedule : str, default=None
        How the learning rate, that of the longest step, changes over the run:
        'constant' (None), 'invscaling', 'linear', 'cosine' or 'warmup_cosine', as in
        :class:`~skpuffer.releases.Optimiser`. It costs no privacy. The rule raises the
        rate so that the run goes as far, where steps stay stable; constant steps, which
        it averages, were about as good or better on the tables that were tried.
    momentum : float, default=None
        Heavy-ball momentum: share of the last step that is taken again, in [0, 1).
        None is by the rule.
    average : float or bool, default=None
        Iterate averaging: share of the steps, counted from the last, whose iterates
        are averaged. None is by the rule.
    init : estimator or tuple, default=None
        Where training starts, in the units of the data: a fitted model with the same
        columns and classes, such as one of scikit-learn's on public rows with labels,
        or the pair (`coef_`, `intercept_`). One with a `certificate_` is composed with
        this fit, or refused where the two do not add up; an estimate makes this one an
        estimate. Of any other the certificate assumes that it was fitted without these
        rows. In a search, wrap it in :class:`sklearn.frozen.FrozenEstimator`, as
        cloning forgets a fit. The rule for what is not given does not go as far from a
        start, and takes no ball that leaves it out; a `radius` that does is refused.
    warm_start : bool, default=False
        Whether to begin at the parameters an earlier `fit` released, also of a table
        of other records. The certificate is of all these fits together.
        Within :class:`~skpuffer.compose.PublicPreprocessing` it has no effect.
    n_jobs : int, default=None
        Workers of joblib that sum up gradients of all records. None is 1 unless in a
        ``joblib.parallel_config`` context. The model is the same to the last digit.
        Small tables, and batches that are drawn, are summed up here.
    verbose : int, default=0
        Whether to show a progress bar.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `target_bounds` are those of its target. Numbers are scaled by their
        bounds, levels become a column each, and rows lie in the unit ball. See
        :class:`~skpuffer.schema.Schema`.
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
        What was accounted and run.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read, whose names are
        ``feature_map_.names``; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateRidge : Least squares with a penalty, by gradients or noisy second moments.

    Notes
    -----
    What is left at None follows :func:`skpuffer.training.run_defaults`, from public
    facts alone: the number of records, how much noise the budget asks for, and how
    curved the loss is.

    Where a scenario bounds how far a record moves, the parameters are kept in a ball of
    which the radius is 3.2 over the largest norm of a row in units of `data_norm`,
    intercept included. There gradients move no more than a few times as far as their
    records, and are clipped to the longest there is, which costs nothing. The radius is
    taken 1.5 times smaller, three times at most, while noise would let the parameters
    travel less than 100 times as far. Where clipping alone takes less noise, nothing is
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
        sampling: str | SamplingScheme | None = None,
        batch_size: int | None = None,
        noise_correlation: NoiseStrategy | str | None = None,
        max_iter: int | None = None,
        n_steps: int | None = None,
        clip_norm: float | None = None,
        radius: float | None = None,
        learning_rate: float | None = None,
        schedule: str | None = None,
        momentum: float | None = None,
        average: float | None = None,
        init: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        schema: Schema | None = None,
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
        self.sampling = sampling
        self.batch_size = batch_size
        self.noise_correlation = noise_correlation
        self.max_iter = max_iter
        self.n_steps = n_steps
        self.clip_norm = clip_norm
        self.radius = radius
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.average = average
        self.init = init
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.schema = schema
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
