"""Private search over a grid of parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

from skpuffer.kernel.numbers import check_count
from skpuffer.utils._sklearn import Interval

from ._base import BasePrivateSearch

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from skpuffer.accountants import Accountant
    from skpuffer.utils._types import RandomState


#: Trials for each candidate of a grid, on average.
_PER_CANDIDATE = 2


class PrivateGridSearchCV(BasePrivateSearch):
    """Search over a grid, of which search and winner together keep one budget.

    A random number of candidates is drawn with replacement, fitted privately to one
    part of the table, and scored with noise on the rest. The best is released: its
    parameters, the very model that was scored, and its noisy score. That costs a bit
    more than a single fit, as long as the number of trials and their other results stay
    secret.

    Parameters
    ----------
    estimator : estimator
        A private classifier or regressor,
        :class:`~skpuffer.compose.PublicPreprocessing` around one, or a pipeline that
        ends in one after public or row-wise steps. Its own `accountant` and
        `random_state` stay None. Its scenario is a
        :class:`~skpuffer.scenarios.RecordScenario`, or a belief about a record under
        :class:`~skpuffer.accountants.OverlapAmplification`.
    param_grid : dict or list of dict
        As in scikit-learn. Its values are public.
    accountant : Accountant, default=None
        Budget of search, winner and score. None is (1, 1e-5) by `PrivacyLoss` under a
        `RecordScenario` and by `OverlapAmplification` otherwise.
    n_trials : float, default=None
        How many trials there are on average, above 1. None is two for each candidate.
    trials : {'geometric', 'logarithmic', 'poisson', 'each'} or float, \
default='geometric'
        Distribution of their number. A number up to 1000 is the shape of a negative
        binomial ('logarithmic' 0, 'geometric' 1, 'poisson' infinity): a larger one
        misses the best candidate less often, and needs more noise. 'each' tries every
        candidate once, and releases all scores.
    scoring : {'accuracy', 'neg_brier_score', 'neg_mean_squared_error', \
'neg_mean_absolute_error'}, default=None
        The first two are for classifiers, the others for regressors with public bounds
        of the target. None is the first of either kind.
    validation_fraction : float, default=0.2
        Part of the records on which models are scored.
    row_wise : collection of str, default=()
        Names of steps that are declared to change each record by itself.
    n_jobs : int, default=None
        How many trials run at once; as in scikit-learn.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise and the number of trials from the operating system's entropy. A
        seed warns.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, as it was scored; not fitted again. Its certificate is the search's.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its noisy score; too high on average, as the best of several.
    best_score_std_ : float
        Standard deviation of the noise in it.
    best_index_ : int
        Its position among the candidates.
    candidates_ : list of dict
        Parameters of all candidates.
    scores_ : ndarray of shape (n_candidates,)
        Noisy scores of all candidates, NaN after an error; with ``trials='each'``.
    certificate_ : Certificate
        Promise of search and winner together.
    accountant_ : Accountant
        The accountant that set the noise.
    noise_ : Noise
        The noise that was added to what a score sums up.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, of a classifier.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    There are no `cv_results_`, folds, number of trials or `refit`: each would be
    another release. Trials must be independent, as those of halving or Bayesian
    optimisation are not.

    The certificate's line *chosen* says what a single fit with the same noise would
    promise, and a plain search, which is no dearer for a few candidates
    (``trials='each'``).

    All candidates are calibrated to one epsilon of a trial, and the largest of their
    curves is accounted for. A record is in one of the two parts, so fit and score do
    not add up under ``RecordScenario(k=1)``; of k records some may be in each, and then
    they do. A belief about one record amplifies the whole search, last.

    The running time reveals the number of trials and must not be published. An error in
    a trial counts as the lowest score, and its text is withheld.

    References
    ----------
    Liu and Talwar (2019), Private selection from private candidates; Papernot and
    Steinke (2022), Hyperparameter tuning; Koskela, Redberg and Wang (2024), Privacy
    profiles.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> from skpuffer.model_selection import PrivateGridSearchCV
    >>> from skpuffer.schema import Schema
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> columns = {name: (0, 40) for name in X.columns[:2]}
    >>> schema = Schema(columns | {"target": [0, 1]}, target="target")
    >>> search = PrivateGridSearchCV(
    ...     PrivateLogisticRegression(schema=schema),
    ...     {"C": [0.1, 1.0, 10.0]},
    ...     accountant=PrivacyLoss(epsilon=4.0, delta=1e-5),
    ... )
    >>> search.fit(X, y).certificate_
    Certificate(notion='approximate_dp', epsilon=4, delta=1e-05)
    >>> sorted(search.best_params_)
    ['C']
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_grid": [dict, list],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        accountant: Accountant | None = None,
        n_trials: float | None = None,
        trials: str | float = "geometric",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        row_wise: Collection[str] = (),
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.accountant = accountant
        self.n_trials = n_trials
        self.trials = trials
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.row_wise = row_wise
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _candidates(self, rng: np.random.Generator) -> list[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))

    def _usual_trials(self, n_candidates: int) -> float:
        return float(_PER_CANDIDATE * n_candidates)


# -- private search over parameters that are drawn from distributions ------------------


class PrivateRandomizedSearchCV(BasePrivateSearch):
    """Search over drawn parameters: search and winner together keep one budget.

    As :class:`PrivateGridSearchCV`, with candidates drawn from distributions before any
    record is read.

    Parameters
    ----------
    estimator : estimator
        A private classifier or regressor, as for :class:`PrivateGridSearchCV`.
    param_distributions : dict or list of dict
        As in scikit-learn: lists, or distributions with a method `rvs`. They are
        public.
    n_iter : int, default=10
        How many candidates are drawn. More of them cost time, and no privacy.
    accountant : Accountant, default=None
        Budget of search, winner and score. None is (1, 1e-5) by `PrivacyLoss` under a
        `RecordScenario` and by `OverlapAmplification` otherwise.
    n_trials : float, default=None
        How many trials there are on average, above 1. None is `n_iter`.
    trials : {'geometric', 'logarithmic', 'poisson', 'each'} or float, \
default='geometric'
        Distribution of their number, as for :class:`PrivateGridSearchCV`.
    scoring : {'accuracy', 'neg_brier_score', 'neg_mean_squared_error', \
'neg_mean_absolute_error'}, default=None
        The first two are for classifiers, the others for regressors with public bounds
        of the target. None is the first of either kind.
    validation_fraction : float, default=0.2
        Part of the records on which models are scored.
    row_wise : collection of str, default=()
        Names of steps that are declared to change each record by itself.
    n_jobs : int, default=None
        How many trials run at once; as in scikit-learn.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws candidates, noise and the number of trials from the operating
        system's entropy. A seed warns.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, as it was scored; not fitted again. Its certificate is the search's.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its noisy score; too high on average, as the best of several.
    best_score_std_ : float
        Standard deviation of the noise in it.
    best_index_ : int
        Its position among the candidates.
    candidates_ : list of dict
        Parameters of all candidates.
    scores_ : ndarray of shape (n_candidates,)
        Noisy scores of all candidates, NaN after an error; with ``trials='each'``.
    certificate_ : Certificate
        Promise of search and winner together.
    accountant_ : Accountant
        The accountant that set the noise.
    noise_ : Noise
        The noise that was added to what a score sums up.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, of a classifier.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_diabetes
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.linear_model import PrivateRidge
    >>> from skpuffer.model_selection import PrivateRandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = PrivateRandomizedSearchCV(
    ...     PrivateRidge(data_norm=0.2, target_bounds=(25, 346)),
    ...     {"alpha": loguniform(1e-2, 1e2)},
    ...     n_iter=5,
    ...     accountant=PrivacyLoss(epsilon=3.0, delta=1e-4),
    ... )
    >>> search.fit(X, y).certificate_
    Certificate(notion='approximate_dp', epsilon=3, delta=0.0001)
    >>> len(search.candidates_)
    5
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_iter: int = 10,
        accountant: Accountant | None = None,
        n_trials: float | None = None,
        trials: str | float = "geometric",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        row_wise: Collection[str] = (),
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.accountant = accountant
        self.n_trials = n_trials
        self.trials = trials
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.row_wise = row_wise
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _candidates(self, rng: np.random.Generator) -> list[Mapping[str, Any]]:
        # scikit-learn takes seeds, and numbers of its own generator
        seed = int(rng.integers(2**31))
        drawn = ParameterSampler(
            self.param_distributions,
            check_count(n_iter=self.n_iter),
            random_state=seed,
        )
        return list(drawn)

    def _usual_trials(self, n_candidates: int) -> float:
        return max(2.0, float(n_candidates))
