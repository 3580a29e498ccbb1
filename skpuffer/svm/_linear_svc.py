"""Linear support vector classifier, by noisy gradients or output perturbation."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_positive
from skpuffer.linear_model._base_linear import SignedRecord
from skpuffer.linear_model._base_output import OutputClassifier
from skpuffer.linear_model._minimiser_constants import MarginConstants
from skpuffer.training import HuberHinge, make_loss
from skpuffer.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.linear_model._base_linear import ModelRecord, ModelRows
    from skpuffer.linear_model._minimiser_constants import MinimiserConstants
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss, Training
    from skpuffer.utils._types import RandomState


class PrivateLinearSVC(OutputClassifier):
    """Linear support vector classifier by noisy gradients, or noisy coefficients.

    More than two classes are trained in one release, by the multi-class hinge loss of
    Crammer and Singer.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret to protect. None is one record, added or removed: differential
        privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    solver : {'gradient', 'output'}, default='gradient'
        ``'gradient'`` trains by noisy clipped gradients. ``'output'`` adds noise to the
        l2-regularised minimiser, for two classes, the Huber hinge and any scenario that
        bounds how far it moves.
    loss : {'hinge', 'huber_hinge'}, default='huber_hinge'
        The hinge loss, or one with a smoothed corner, which noisy steps follow better.
    width : float, default=0.5
        Half-width of the Huber hinge's corner: it is quadratic for margins in
        ``[1 - width, 1 + width]``. A wider corner reduces the effect of small moves.
    C : float, default=None
        Inverse regularisation strength: ``C * sum of losses + |w|**2 / 2``, for rows in
        units of `data_norm`. None is no penalty for gradients, and 0.01 for the output,
        whose noise is proportional to it. The output regularises the intercept as well.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    fit_intercept : bool, default=True
        Whether to add a constant column.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    class_weight : dict or tuple, default=None
        Public weight of each label, one for others; in proportion to the largest it
        multiplies a record's clipped gradient.
        ``('balanced', {'no': 0.99, 'yes': 0.01})`` is one over the number of classes
        times these public shares. None is one for all. For gradients only.
    tol : float, default=0.001
        Output only: public tolerance of the optimiser, as a share of the sensitivity,
        which grows by as much.
    max_iter : int, default=None
        Number of epochs; None follows the rule in the notes. For the output, iterations
        of the first stage (1000 if None); slower ones then reach the tolerance.
    training : Training, default=None
        How gradients are batched, clipped and followed; see
        :class:`~skpuffer.training.Training`. None follows the rule in the notes. Its
        `init`, `radius`, `schedule` and `noise_correlation` are for gradients only.
    schema : Schema, default=None
        Public code book of the table, with the `classes` of its target. Numbers are
        scaled by their bounds, levels become a column each, and rows lie in the unit
        ball. See :class:`~skpuffer.schema.Schema`.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Noisy coefficients.
    coef_std_ : ndarray of the shape of `coef_`
        Standard deviation that the noise gives `coef_`, for ``solver='output'``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts.
    intercept_std_ : ndarray of shape (1,) or (n_classes,)
        Standard deviation that the noise gives `intercept_`, for ``solver='output'``.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    n_steps_ : int
        Number of noisy gradient sums; gradients only.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun, or the iterations allowed for the output.
    release_ : GradientRelease
        The release that was accounted and run; gradients only.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients, or to the
        coefficients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    Gradient parameters left at None follow :func:`skpuffer.training.run_defaults`, from
    public facts alone.

    For the output, one record that moves by b in the space of z = y x moves the
    minimiser by at most ``C * min(max(R, min(b, 2 R)), (1 + R D / (2 h)) b)``, with h
    the half-width, R the largest norm of a row and D = sqrt(2 l n C) that of the
    minimiser, l = 1 or, for h above 1, (1 + h)^2 / (4 h). Several records add up. The
    hinge itself and the loss of several classes have no derivative at ties: both are
    for gradients.

    Where a scenario bounds how far a record moves, the parameters are kept in a ball of
    radius 3.8 over the largest curvature of the loss and over the norm of a row,
    intercept included. The radius is halved, three times at most, while noise would let
    the parameters travel less than 15 times as far. Where clipping alone takes less
    noise, nothing is projected; the certificate says which.

    References
    ----------
    Crammer and Singer (2001), On the algorithmic implementation of multiclass
    kernel-based vector machines; Chaudhuri, Monteleoni and Sarwate (2011),
    Differentially private empirical risk minimization.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.svm import PrivateLinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrivateLinearSVC(data_norm=5.0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **OutputClassifier._parameter_constraints,
        "solver": [StrOptions({"gradient", "output"})],
        "loss": [StrOptions({"hinge", "huber_hinge"})],
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        solver: str = "gradient",
        loss: str = "huber_hinge",
        width: float = 0.5,
        C: float | None = None,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | tuple[str, dict[Any, float]] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        training: Training | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.solver = solver
        self.loss = loss
        self.width = width
        self.C = C
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.training = training
        self.schema = schema
        self.random_state = random_state

    # it has no parameter left for bounds of weights: PrivateSGDClassifier(loss='hinge')
    fit = PrivateEstimatorMixin.fit

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_positive(width=self.width)
        if self.solver == "output" and self.loss != "huber_hinge":
            raise value_error("svm.hinge_with_output_solver")

    # -- by gradients -------------------------------------------------------------

    def _loss(self) -> Loss:
        width = {"width": float(self.width)} if self.loss == "huber_hinge" else {}
        return make_loss(self.loss, len(self.classes_), **width)

    def _by_gradients(self, task: Task) -> bool:
        return self.solver == "gradient"

    # -- by output perturbation ---------------------------------------------------

    _output_name = "support vector machine coefficients"

    def _record_constants(
        self, rows: ModelRows, **known: Any
    ) -> tuple[MinimiserConstants, ModelRecord]:
        if len(self.classes_) > 2:
            raise value_error("svm.multiclass_with_output_solver")
        loss = HuberHinge(width=float(self.width))
        return MarginConstants(loss=loss, **known), SignedRecord(rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.solver != "output"
        return tags
