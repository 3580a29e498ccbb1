"""Linear support vector classifier, by noisy gradients or output perturbation."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_positive
from skpuffer.linear_model._base_output import OutputClassifier
from skpuffer.linear_model._minimiser_constants import MarginConstants
from skpuffer.linear_model._model_rows import SignedRecord
from skpuffer.training import HuberHinge, make_loss
from skpuffer.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.linear_model._minimiser_constants import MinimiserConstants
    from skpuffer.linear_model._model_rows import ModelRecord, ModelRows
    from skpuffer.noise.strategies import NoiseStrategy
    from skpuffer.releases import SamplingScheme
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss
    from skpuffer.utils._types import RandomState

__all__ = ["PrivateLinearSVC"]


class PrivateLinearSVC(OutputClassifier):
    """Linear support vector classifier by noisy gradients, or noisy coefficients.

    More than two classes are trained at once, in one release, by the multi-class hinge
    loss of Crammer and Singer, not one against the rest with a part of the budget each.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    solver : {'gradient', 'output'}, default='gradient'
        ``'gradient'`` trains by noisy clipped gradients. ``'output'`` computes the
        l2-regularised minimiser to a public tolerance and adds noise to it, for two
        classes, the Huber hinge and any scenario that bounds how far it moves.
    loss : {'hinge', 'huber_hinge'}, default='huber_hinge'
        The hinge loss, or one with a smoothed corner, which noisy steps follow better.
    width : float, default=0.5
        Half-width of the Huber hinge's corner: it is quadratic for margins in
        ``[1 - width, 1 + width]``. The wider, the less gradients and the output move
        with a record that moves a little.
    C : float, default=None
        Inverse regularisation strength, as in scikit-learn: ``C * sum of losses +
        |w|**2 / 2``, for rows in units of `data_norm`. None is no penalty for
        gradients, whose noise and number of steps regularise already, and 0.01 for the
        output, whose noise is proportional to it. The output regularises the intercept
        like the other coefficients.
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
        It is for gradients only.
    class_shares : dict, default=None
        Public share of each class, as it is known without the data; for
        ``class_weight='balanced'``.
    tol : float, default=0.001
        Output only: public tolerance of the optimiser, as a share of the sensitivity,
        which grows by as much.
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
        independent noise. None is independent noise. It is for gradients only.
    max_iter : int, default=None
        Number of epochs; None leaves the number of steps to the rule in the notes. For
        the output, iterations (1000 if None) of a first, rough stage; whatever it
        leaves, slower ones reach the tolerance, and `fit` does not fail for it.
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
        the rule, if that takes less noise. It is for gradients only.
    learning_rate : float, default=None
        Step size for the mean gradient. None is by the rule.
    schedule : str, default=None
        How the learning rate, that of the longest step, changes over the run:
        'constant' (None), 'invscaling', 'linear', 'cosine' or 'warmup_cosine', as in
        :class:`~skpuffer.releases.Optimiser`. It costs no privacy. The rule raises the
        rate so that the run goes as far, where steps stay stable; constant steps, which
        it averages, were about as good or better on the tables that were tried.
        It is for gradients only.
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
        Small tables, and batches that are drawn, are summed up here. It is for
        gradients only.
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
    coef_std_ : ndarray of the shape of `coef_`
        Standard deviation that the noise gives `coef_`, exactly, where it is on
        the output (``solver='output'``).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts.
    intercept_std_ : ndarray of shape (1,) or (n_classes,)
        Standard deviation that the noise gives `intercept_`, exactly, where it is
        on the output (``solver='output'``).
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    n_steps_ : int
        Number of noisy gradient sums; gradients only.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun, or the iterations allowed for the output: how many
        were needed depends on the data and stays private.
    release_ : GradientRelease
        What was accounted and run; gradients only.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients, or to the
        coefficients.
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
    skpuffer.linear_model.PrivateSGDClassifier : The same engine with other losses.

    Notes
    -----
    For gradients, what is left at None follows
    :func:`skpuffer.training.run_defaults`, from public facts alone: the number of
    records, how much noise the budget asks for, and how curved the loss is.

    For the output, one record that moves by b in the space of z = y x moves the
    minimiser by at most ``C * min(max(R, min(b, 2 R)), (1 + R D / (2 h)) b)``, with h
    the half-width, R the largest norm of a row and D = sqrt(2 l n C) that of the
    minimiser, l = 1 or, for h above 1, (1 + h)^2 / (4 h). Several records add up. The
    hinge itself has no derivative that a solver could bring to a tolerance, and the
    loss of several classes has none where two scores tie: both are for gradients.

    Where a scenario bounds how far a record moves, the parameters are kept in a ball of
    which the radius is 3.8 over the largest curvature of the loss and over the norm of
    a row, intercept included. There gradients move no more than a few times as far as
    their records, and are clipped to the longest there is, which costs nothing. The
    radius is halved, three times at most, while noise would let the parameters travel
    less than 15 times as far. Where clipping alone takes less noise, nothing is
    projected; the certificate says which.

    References
    ----------
    Crammer and Singer (2001), On the algorithmic implementation of multiclass
    kernel-based vector machines; Chaudhuri, Monteleoni and Sarwate (2011) for the Huber
    hinge in private learning and for perturbing the output.

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
        class_weight: dict[Any, float] | str | None = None,
        class_shares: dict[Any, float] | None = None,
        tol: float = 1e-3,
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
        self.class_shares = class_shares
        self.tol = tol
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
        check_positive(width=self.width)
        if self.solver == "output" and self.loss != "huber_hinge":
            raise ValueError(Statement("svm.hinge_with_output_solver"))

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
            raise ValueError(Statement("svm.multiclass_with_output_solver"))
        loss = HuberHinge(width=float(self.width))
        return MarginConstants(loss=loss, **known), SignedRecord(rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.solver != "output"
        return tags
