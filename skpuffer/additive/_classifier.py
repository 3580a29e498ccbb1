"""Additive classifier: shape functions on public bins, by noisy gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._prediction import LinearLabelsMixin
from skpuffer._targets import class_indices, declared_classes
from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer.exceptions import Statement
from skpuffer.training import make_loss

from ._model import PrivateAdditiveModel
from ._run import probabilities_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss
    from skpuffer.utils._types import RandomState, Table

__all__ = ["PrivateAdditiveClassifier"]


class PrivateAdditiveClassifier(
    LinearLabelsMixin, PrivateClassifierMixin, PrivateAdditiveModel
):
    """Generalised additive model of classes, whose shape functions can be read.

    The score of a row is an intercept plus, for each feature, a function of the public
    cell that its value is in: smooth over numbers, free over levels. With two classes
    the score is the log-odds of the second one; of more, each has a score.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario. It must
        offer Gaussian noise.
    schema : Schema, default=None
        Public code book of the table, by which `fit` and `predict` read raw columns,
        texts and missing values among them. It stands for `bounds`, `categories`,
        `amounts` and `classes`, which must not say anything else.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds of the numeric features: numbers, or arrays with one for each
        column that is no category; by name for a data frame, else by position. What
        lies outside falls into the end cell.
    categories : dict of {column: levels}, default=None
        Public levels of the other features. What is missing or not listed has a cell of
        its own.
    amounts : sequence, default=()
        Numeric features with a heavy tail, such as money: their cells are equal on the
        scale of the logarithm.
    classes : array-like, default=None
        Public class labels. A record with another label counts as nothing. None takes
        those of the schema's target or, without one, those of `y` as public.
    interactions : {'all', None} or list of pairs of features, default=None
        Pairs that get a function of both, on 8 x 8 coarse cells.
    monotone_constraints : dict of {feature: -1, 0 or 1}, default=None
        Features whose shape function must not rise (-1) or fall (1) from cell to cell,
        by post-processing.
    n_bins : int, default=32
        Cells of a number, of which each integer is one where that is fewer.
    n_amount_bins : int, default=256
        Cells of an amount.
    n_rounds : int or 'auto', default='auto'
        Number of noisy sums; 'auto' is between 50 and 100, by the size of the table.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    shape_functions_ : dict of {feature or pair: ShapeFunction}
        Cells, scores (by class where there are more than two) and standard errors.
    intercept_ : float or ndarray of shape (n_classes,)
        Score of a row whose functions are zero.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    histograms_ : dict of {feature: ndarray of shape (n_cells,)}
        Noisy numbers of records by cell.
    histogram_noise_ : float
        Standard deviation of their noise.
    binning_ : Binning
        Public map from raw columns to cells.
    n_rounds_ : int
        Number of noisy sums.
    plan_ : RoundPlan
        Clip norm, step size and momentum of the rounds.
    release_ : AdaptiveRelease
        What was accounted and run.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added, in the unit of the release.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateAdditiveRegressor : The same for numbers.
    skpuffer.inspection.ShapeDisplay : Draws the shape functions.
    skpuffer.linear_model.PrivateLogisticRegression : Linear, for few records.

    Notes
    -----
    *What is released.* The histograms of all features, as one vector, take a twentieth
    of the privacy (of mu squared); the rest goes to sums, in some rounds, of the
    records' clipped residuals times their rows. A round depends on the noisy ones
    before it; all together is accounted for as one mechanism, see
    :class:`~skpuffer.releases.AdaptiveRelease`.

    *What is made of it.* From the histograms, a basis of smooth functions of each
    feature, orthogonal under the noisy shares of the cells; from each noisy sum, a step
    of the heavy ball; of the iterates, the mean of the last 30 %. How many rounds there
    are, how residuals are clipped and how far steps go follows from the number of
    records and the noise alone. Residuals are rounded to millionths, towards zero, so
    that sums are exact and do not depend on the order of the records.

    *When.* On few records, and where a straight line is right, a linear model is as
    good. Where ``n * mu / sqrt(n_features)`` is below 10 (mu is about epsilon / 4 for
    delta = 1e-5), noise leaves little but the mean.

    References
    ----------
    Nori, Caruana, Bu, Shen and Kulkarni (2021), Accuracy, interpretability, and
    differential privacy via explainable boosting, for what is learnt, by other means;
    Dong, Roth and Su (2022), Gaussian differential privacy, for the accounting.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpuffer.additive import PrivateAdditiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> bounds = {"mean radius": (5, 30), "mean texture": (5, 40)}
    >>> model = PrivateAdditiveClassifier(bounds=bounds, classes=[0, 1])
    >>> model.fit(X[list(bounds)], y).certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    >>> model.shape_functions_["mean radius"].scores.shape
    (32,)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateAdditiveModel._parameter_constraints,
        "classes": ["array-like", None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        schema: Schema | None = None,
        bounds: Any = None,
        categories: dict[Any, Any] | None = None,
        amounts: Sequence[Any] = (),
        classes: ArrayLike | None = None,
        interactions: Any = None,
        monotone_constraints: dict[Any, int] | None = None,
        n_bins: int = 32,
        n_amount_bins: int = 256,
        n_rounds: int | str = "auto",
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.amounts = amounts
        self.classes = classes
        self.interactions = interactions
        self.monotone_constraints = monotone_constraints
        self.n_bins = n_bins
        self.n_amount_bins = n_amount_bins
        self.n_rounds = n_rounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        self._check_outputs(declared_classes(self))

    def _check_outputs(self, labels: Any) -> None:
        constrained = [k for k, v in (self.monotone_constraints or {}).items() if v]
        if labels is not None and len(labels) > 2 and constrained:
            raise ValueError(
                Statement("additive.monotone_with_many_classes", n_labels=len(labels))
            )

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        # not as other classifiers, which refuse labels that they do not know
        return PrivateAdditiveModel._validate(self, X, y)

    def _of_no_target(self) -> Statement | None:
        # not as other classifiers: the histograms count records without a label too
        return PrivateAdditiveModel._of_no_target(self)

    def _read_y(self, X: Any, y: Any) -> Any:
        codes = class_indices(self, X, y)
        self._check_outputs(self.classes_)
        return codes

    def _classes_from_data(self) -> bool:
        return declared_classes(self) is None

    def _loss(self) -> Loss:
        return make_loss("log_loss", len(self.classes_))

    def _n_outputs(self) -> int:
        return self._loss().n_outputs(len(self.classes_))

    def _scale(self) -> tuple[float, float]:
        return 0.0, 1.0

    # -- post-processing ----------------------------------------------------------

    def decision_function(self, X: Table) -> Floats:
        """Return the score of each class, or of the second of two.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Raw columns; a secret column is ignored.

        Returns
        -------
        scores : ndarray of shape (n_records,) or (n_records, n_classes)
        """
        return self._scores(X)

    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class, corrected for clipped residuals.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_records, n_classes)
        """
        check_is_fitted(self)
        return probabilities_of(self.decision_function(X), self.plan_.clip)

    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_records, n_classes)
        """
        return np.log(self.predict_proba(X))
