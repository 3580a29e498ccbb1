"""Huber regression by output perturbation."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from skpuffer._template import _plan
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_positive
from skpuffer.training import Huber
from skpuffer.utils._sklearn import Interval

from ._base_linear import LinearRegressorMixin, ModelRows, TargetRecord
from ._base_output import minimiser_release
from ._minimiser_constants import RegressionConstants

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.releases import QueryRelease
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import RandomState


class PrivateHuberRegressor(LinearRegressorMixin, PrivateEstimatorMixin):
    """Fit a Huber regression, with noise on its coefficients.

    No record pulls with more than a public slope, whatever its target. The
    l2-regularised minimiser is computed to a public tolerance and released with noise.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy.
    epsilon : float, default=1.35
        Residual, in units of `sigma`, from which on its loss is linear, as in
        scikit-learn. It is not the budget.
    sigma : float, default=0.2
        Public scale of the residuals, in units of half the target's range. It is not
        estimated. The smaller, the less a record counts.
    alpha : float, default=30.0
        Regularisation strength on rows in units of `data_norm` and targets in units of
        half their range. The noise is proportional to ``1 / alpha``.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target; required. Values outside are clipped.
    fit_intercept : bool, default=True
        Whether to add a constant column; it is regularised like the others.
    intercept_scaling : float, default=1.0
        Value of that column in units of `data_norm`. It counts in the noise.
    tol : float, default=0.001
        Public tolerance of the optimiser, as a share of the sensitivity.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, and the
        target's bounds. Numbers are scaled by their bounds, levels become a column
        each, and rows lie in the unit ball.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    coef_std_ : ndarray of shape (n_features,)
        Standard deviation that the noise gives `coef_`, exactly.
    intercept_ : float
        Noisy intercept.
    intercept_std_ : float
        Standard deviation that the noise gives `intercept_`, exactly.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the coefficients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    With C = 1 / alpha, or the largest weight over alpha, k = epsilon * sigma and R the
    largest norm of a row, the intercept's column included, one record moves the
    minimiser by at most ``C k R``. One whose features and target move by b in all, in
    the units above, moves it by at most ``C * min(2 k R, (k + R sqrt(D^2 + 1)) b)``.
    Here D = sqrt(2 l n C) bounds the minimiser's norm, and l is the loss of a residual
    of one. Several records add up.

    References
    ----------
    Huber (1964), Robust estimation of a location parameter; Chaudhuri, Monteleoni and
    Sarwate (2011), Differentially private empirical risk minimization, Lemma 7.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skpuffer.linear_model import PrivateHuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PrivateHuberRegressor(data_norm=0.15, target_bounds=(25, 350))
    >>> model.fit(X, y).certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "target_bounds": ["array-like", None],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        epsilon: float = 1.35,
        sigma: float = 0.2,
        alpha: float = 30.0,
        data_norm: float = 1.0,
        target_bounds: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.epsilon = epsilon
        self.sigma = sigma
        self.alpha = alpha
        self.data_norm = data_norm
        self.target_bounds = target_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.schema = schema
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    fit = WeightedFit()

    def _check_weighted(self, task: Task, release: Any) -> None:
        # the minimiser weighs losses by itself, and units are no records of it
        pass

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        for name in (
            "epsilon",
            "sigma",
            "alpha",
            "data_norm",
            "intercept_scaling",
            "tol",
        ):
            check_positive(**{name: getattr(self, name)})

    def _release(self, task: Task) -> QueryRelease:
        norm = float(self.data_norm)
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        rows = ModelRows(norm, intercept, unit=norm)
        low, high = map(float, self._bounds_of_target)
        weighting = self._weighting(False)
        return minimiser_release(
            task.context,
            RegressionConstants(
                # (s^2) times the loss of residuals in units of s is the loss of the
                # residuals themselves, linear from epsilon s on
                loss=Huber(float(self.epsilon) * float(self.sigma)),
                n_records=task.context.n_records,
                radius=rows.radius,
                # losses are in units of the largest weight, and so is the penalty
                C=weighting.largest / float(self.alpha),
            ),
            TargetRecord(rows, self._target),
            name="Huber regression coefficients",
            tol=float(self.tol),
            assumptions=(
                Statement(
                    "assume.huber_rows_targets_clipped", norm=norm, low=low, high=high
                ),
            ),
            weighted=task.weighting is not None,
        )

    _affine_attributes = ("coef_", "intercept_")
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        # back to the units of the data: of the rows, and of the target about its middle
        rows, target = release.contribution.rows, self._target
        intercept = 0.0
        if rows.intercept:
            intercept = vector[-1].item() * rows.intercept * target.half
        return {
            "coef_": vector[: release.context.n_features] * target.half / rows.unit,
            "intercept_": intercept,
        }

    def _offsets(self, release: Any) -> dict[str, Any]:
        return {"intercept_": self._target.centre}

    def _publish(self, value: Any, release: Any) -> None:
        found = self._read_off(value, release)
        self.coef_, self.intercept_ = found["coef_"], found["intercept_"]
