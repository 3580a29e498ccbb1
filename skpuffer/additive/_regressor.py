"""Additive regressor: shape functions on public bins, by noisy gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from skpuffer._targets import numeric_targets, target_values
from skpuffer._template._classes import mark_noisy
from skpuffer.linear_model._base_linear import BoundedTargetMixin
from skpuffer.training import make_loss

from ._model import PrivateAdditiveModel

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss
    from skpuffer.utils._types import RandomState, Table

__all__ = ["PrivateAdditiveRegressor"]


class PrivateAdditiveRegressor(
    BoundedTargetMixin,
    RegressorMixin,  # type: ignore[misc] # scikit-learn is untyped
    PrivateAdditiveModel,
):
    """Generalised additive model of a number, whose shape functions can be read.

    The prediction for a row is an intercept plus, for each feature, a function of the
    public cell that its value is in: smooth over numbers, free over levels.

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
        `amounts` and `target_bounds`, which must not say anything else.
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
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target; values outside are clipped. None takes
        those of the schema's target. One of the two must say them.
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
        Cells, scores in units of the target, and standard errors.
    intercept_ : float
        Prediction for a row whose functions are zero.
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
    PrivateAdditiveClassifier : The same for classes.
    skpuffer.inspection.ShapeDisplay : Draws the shape functions.
    skpuffer.linear_model.PrivateRidge : Linear, for few records.

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
    >>> from sklearn.datasets import make_friedman1
    >>> from skpuffer.additive import PrivateAdditiveRegressor
    >>> X, y = make_friedman1(5000, random_state=0)
    >>> model = PrivateAdditiveRegressor(bounds=(0, 1), target_bounds=(0, 30))
    >>> model.fit(X, y).score(X, y) > 0.7
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateAdditiveModel._parameter_constraints,
        "target_bounds": ["array-like", None],
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
        target_bounds: tuple[float, float] | None = None,
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
        self.target_bounds = target_bounds
        self.interactions = interactions
        self.monotone_constraints = monotone_constraints
        self.n_bins = n_bins
        self.n_amount_bins = n_amount_bins
        self.n_rounds = n_rounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _read_y(self, X: Any, y: Any) -> Any:
        if self._target_may_lack:
            y = target_values(self, self.schema, y)
        else:
            y = numeric_targets(self, y)
        check_consistent_length(X, y)
        # NaN, of a record that counts as nothing, stays
        return self._target(y)

    def _loss(self) -> Loss:
        return make_loss("squared_error")

    def _scale(self) -> tuple[float, float]:
        return self._target.centre, self._target.half

    # -- post-processing ----------------------------------------------------------

    def predict(self, X: Table) -> Floats:
        """Predict the target of each row.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Raw columns; a secret column is ignored.

        Returns
        -------
        y : ndarray of shape (n_records,)
            Not clipped to the bounds.
        """
        return self._scores(X)

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())
