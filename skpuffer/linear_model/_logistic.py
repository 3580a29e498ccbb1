"""Logistic regression, private by noisy gradients or by output perturbation."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer._template import _classes
from skpuffer.exceptions import Statement, UnsupportedError, value_error
from skpuffer.releases import QueryRelease
from skpuffer.training import Logistic, Multinomial, make_loss
from skpuffer.training._engine import travel
from skpuffer.utils._clipping import row_norms
from skpuffer.utils._sklearn import Interval, StrOptions

from ._base_linear import LabelledRecord, ModelRows, SignedRecord
from ._base_output import OutputClassifier
from ._minimiser_constants import LogisticConstants, MultinomialConstants

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss, Training
    from skpuffer.utils._types import RandomState

    from ._base_linear import ModelRecord
    from ._minimiser_constants import MinimiserConstants


#: How often further training has to go than the output to be taken with more noise.
_FURTHER = 3.0


def _deviation(release: Any, task: Task) -> float:
    """Largest deviation of the noise of a release; infinite where there is none."""
    try:
        found = task.accountant.calibrate(release, task.scenario.bind(release.context))
    except UnsupportedError:
        return float("inf")
    return float(np.max(found.noise.std()))


class PrivateLogisticRegression(OutputClassifier):
    """Fit a logistic regression by noisy gradients, or by noise on its coefficients.

    More than two classes use the multinomial loss, in one release.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    solver : {'auto', 'gradient', 'output'}, default='auto'
        ``'gradient'`` trains by noisy clipped gradients. ``'output'`` adds noise to the
        l2-regularised minimiser, for any scenario that bounds how far it moves.
        ``'auto'`` takes gradients where the accountant supports them, unless the
        output's noise lets it go further; see the notes.
    C : float, default=None
        Inverse regularisation strength: the objective is
        ``C * sum of losses + |w|^2 / 2``. None is no penalty for gradients, and 0.01
        for the output, whose noise is proportional to C.
    data_norm : float or 'empirical', default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it. Scale
        the features so that rows use this range, by public numbers or with
        :class:`~skpuffer.summary.PrivateStandardScaler`. 'empirical' (output only)
        reads the private data and warns.
    fit_intercept : bool, default=True
        Whether to add a constant column. The output regularises it like the others.
    intercept_scaling : float, default=None
        Value of that column, for gradients in units of `data_norm`. It counts in the
        noise. None is 0.5 for gradients, 1 for the output.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    class_weight : dict or tuple, default=None
        Public weight of each label, one for others; in proportion to the largest, a
        record's clipped gradient is multiplied by its own.
        ``('balanced', {'no': 0.99, 'yes': 0.01})`` is one over the number of classes
        times these public shares. Gradients only.
    tol : float, default=0.001
        Output only: public tolerance of the optimiser, as a share of the sensitivity.
    max_iter : int, default=None
        Number of epochs; None leaves the number of steps to the rule in the notes. For
        the output, iterations (1000 if None) of a first, rough stage.
    training : Training, default=None
        How gradients are batched, clipped and followed; see
        :class:`~skpuffer.training.Training`. None is the rule in the notes. Its `init`,
        `radius`, `schedule` and `noise_correlation` are for gradients only.
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
    coef_std_ : ndarray of the shape of `coef_`
        Standard deviation of the noise of `coef_`, exactly (``solver='output'``).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts.
    intercept_std_ : ndarray of shape (1,) or (n_classes,)
        Standard deviation of the noise of `intercept_`, exactly (``solver='output'``).
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
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateLogit : Two classes, with standard errors of the coefficients.

    Notes
    -----
    Gradients follow :func:`skpuffer.training.run_defaults` where nothing is given.
    Where a scenario bounds how far a record moves, the parameters are kept in a ball of
    radius 3.8 over the largest curvature of the loss and over the norm of a row,
    intercept included. It is halved up to three times where noise lets the parameters
    travel less than 15 times as far. Where clipping alone takes less noise, nothing is
    projected; the certificate says which.

    For the output, one record that moves by b in the space of z = y x moves the
    minimiser by at most ``C * min(max(R, min(b, 2 R)), L b)``, with R the largest norm
    of a row, D = sqrt(2 log(2) n C) that of the minimiser, X = R D and L = (1 + X)^2 /
    (4 X), or 1 for X below 1. With more classes it is ``C * min(2 sqrt(2) R, 2 R +
    sqrt(2) b, (sqrt(2) + X / 2) b)`` while the label stays, b the move of x and D the
    same with their number for the 2. If the secret moves several records, each is paid
    for by how far it moves.

    ``solver='auto'`` takes the output where training, by its rule, goes less than three
    times as far as ``C n R / 2`` and gathers more noise on the same way.

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

    _parameter_constraints: dict[str, Any] = {
        **OutputClassifier._parameter_constraints,
        "solver": [StrOptions({"auto", "gradient", "output"})],
        "data_norm": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"empirical"}),
        ],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither"), None],
    }

    predict_proba = _classes.predict_proba
    predict_log_proba = _classes.predict_log_proba

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        solver: str = "auto",
        C: float | None = None,
        data_norm: float | str = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | tuple[str, dict[Any, float]] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        training: Training | None = None,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.solver = solver
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
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        for name in self._of_gradients():
            if self._norm_from_data:
                raise value_error(
                    "linear.gradient_parameter_needs_data_norm", name=name
                )
        if self.solver == "gradient" and self._norm_from_data:
            raise value_error("linear.data_norm_empirical_with_gradient")

    @property
    def _norm_from_data(self) -> bool:
        return isinstance(self.data_norm, str) and self.data_norm == "empirical"

    def _leaks(self) -> tuple[Statement, ...]:
        if self._norm_from_data:
            return (Statement("linear.data_norm_read_from_data"),)
        return ()

    # -- by gradients -------------------------------------------------------------

    def _loss(self) -> Loss:
        return make_loss("log_loss", len(self.classes_))

    def _by_gradients(self, task: Task) -> bool:
        # The choice reads the parameters and public facts alone: not the noise of an
        # empirical prior.
        if self.solver == "output" or self._norm_from_data:
            return False
        # what is for gradients is not left out by a choice
        # the minimiser on the output weighs records alike
        weighted = self.weight_bounds is not None
        if self.solver == "gradient" or weighted or self._of_gradients():
            return True
        # a unit of several rows is one record of a run of gradients
        if task.context.of_units:
            return True
        # whoever reads no query says why it refuses gradients, if it does
        if QueryRelease not in task.accountant.reads:
            return True
        scenario, probe = task.scenario, self._probe(task)
        if not task.accountant.supports(probe, scenario) or scenario.needs_empirical:
            return False
        # of any record only the clip norm is known: nothing to compare, see the notes
        if scenario.any_records:
            return True
        n, way = (
            task.context.n_records,
            self._output_C * self._model_rows(task).radius / 2,
        )
        by_gradients = self._deviation_of_gradients(task)
        # first, as noise for the output may take long to find
        if travel(n, by_gradients, self._loss().smoothness) >= _FURTHER * n * way:
            return True
        # noise for a way of one, over n in either
        by_output = _deviation(self._output_release(task), task) / way
        return by_gradients < np.inf and by_gradients <= by_output

    def _deviation_of_gradients(self, task: Task) -> float:
        """Deviation of the noise of one sum of gradients, as if clipped to norm one."""
        try:
            look = self._look(task)
        except UnsupportedError:
            return float("inf")
        clip, record = look.release.total_clip_norm, look.release.record
        # in a ball nothing is clipped, and gradients are as long as those at zero
        longest = clip if record is None else record.longest(0.0)
        return look.deviation / min(clip, longest)

    # -- by output perturbation ---------------------------------------------------

    _output_name = "logistic regression coefficients"

    def _model_rows(self, task: Task) -> ModelRows:
        # in the units of the data, as scikit-learn's objective is
        norm: Any = self.data_norm
        # The largest norm is read off private rows by that word only: `_leaks` turns
        # the certificate into an estimate.
        if self._norm_from_data:
            norm = row_norms(task.X, 2).max()
        if self.fit_intercept and self.intercept_scaling is None:
            return ModelRows(float(norm), 1.0)
        return ModelRows(float(norm), self._intercept_scale)

    def _record_constants(
        self, rows: ModelRows, **known: Any
    ) -> tuple[MinimiserConstants, ModelRecord]:
        n_classes = len(self.classes_)
        if n_classes == 2:
            return LogisticConstants(loss=Logistic(), **known), SignedRecord(rows)
        constants = MultinomialConstants(
            loss=Multinomial(), n_classes=n_classes, **known
        )
        return constants, LabelledRecord(rows, n_classes, constants.shift_ceiling)
