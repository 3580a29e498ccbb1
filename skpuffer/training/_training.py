"""How a run of noisy gradients is executed: one object of the trained models."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from skpuffer.kernel.numbers import check_count, check_option, check_positive
from skpuffer.releases import SAMPLING_SCHEMES, SamplingScheme
from skpuffer.utils._checks import check_jobs
from skpuffer.utils._sklearn import HasMethods, Interval, StrOptions

from ._engine import NOISE_CORRELATIONS, SCHEDULES

if TYPE_CHECKING:
    from skpuffer.noise.strategies import NoiseStrategy


class Training(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """Say how a model is trained by noisy gradients.

    It is the parameter `training` of the trained models. What is left at None follows
    :func:`skpuffer.training.run_defaults`, "the rule" below.

    Parameters
    ----------
    sampling : str or SamplingScheme, default=None
        How the records of a step are chosen; see
        :class:`~skpuffer.releases.GradientRelease`. None is ``'full_batch'``, or with a
        `batch_size` ``'fresh_bins'`` where that takes no more noise, else
        ``'poisson'``.
    batch_size : int, default=None
        Records of a step, maybe in expectation. None is all, or a tenth where the
        sampling named takes fewer.
    noise_correlation : NoiseStrategy or str, default=None
        How the noise of the steps is correlated: a strategy of
        ``skpuffer.noise.strategies``, or its name, such as ``'banded_square_root'``. It
        needs a `batch_size`, and `sampling` is then ``'balls_in_bins'`` if None. None
        is independent noise.
    n_steps : int, default=None
        Number of steps; takes precedence over the model's `max_iter`, of epochs.
    clip_norm : float or tuple of float, default=None
        Norm to which each record's gradient is scaled down, for rows in units of
        `data_norm`; l2 for Gaussian noise. A pair is of the two layers of a network.
    radius : float, default=None
        Radius of the l2 ball, for rows in units of `data_norm`, onto which parameters
        are projected at each step. It costs no privacy; see the notes for None.
    learning_rate : float, default=None
        Step size for the mean gradient.
    schedule : str, default=None
        How the learning rate changes over the run: 'constant' (None), 'invscaling',
        'linear', 'cosine' or 'warmup_cosine'; see
        :class:`~skpuffer.releases.Optimiser`.
    momentum : float, default=None
        Heavy-ball momentum: share of the last step that is taken again, in [0, 1).
    average : float or bool, default=None
        Share of the steps, counted from the last, whose iterates are averaged.
    init : estimator or tuple, default=None
        Where training starts, in the units of the data: a fitted model with the same
        columns and classes, or the pair of its weights and intercepts. See the notes.
    warm_start : bool, default=False
        Whether to begin at the parameters an earlier `fit` released. The certificate is
        of all these fits together. No effect within
        :class:`~skpuffer.compose.PublicPreprocessing`.
    n_jobs : int, default=None
        Workers of joblib that sum up gradients of all records. None is 1 unless in a
        ``joblib.parallel_config`` context. The model is the same to the last digit.
    verbose : int, default=0
        Whether to show a progress bar.

    Notes
    -----
    A `radius` of None is no projection where a record may become any other, as under
    :class:`~skpuffer.scenarios.RecordScenario`, and otherwise the rule's, if that takes
    less noise. A network starts near the norm
    ``sqrt(2 n_features hidden_size / (n_features + hidden_size))``; a shorter radius
    scales it down.

    An `init` with a `certificate_` is composed with the fit, or refused where the two
    do not add up; an estimate makes the fit an estimate. For any other the certificate
    assumes that it was fitted without these rows. In a search, wrap it in
    :class:`sklearn.frozen.FrozenEstimator`. A `radius` that leaves it out is refused.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.linear_model import PrivateSGDClassifier
    >>> from skpuffer.training import Training
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> training = Training(batch_size=100, n_steps=30)
    >>> model = PrivateSGDClassifier(data_norm=5.0, training=training)
    >>> model.fit(scale(X), y).n_steps_
    30
    >>> model.set_params(training__n_steps=60).fit(scale(X), y).n_steps_
    60
    """

    _parameter_constraints: dict[str, Any] = {
        "sampling": [StrOptions(set(SAMPLING_SCHEMES)), SamplingScheme, None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "noise_correlation": [
            StrOptions(set(NOISE_CORRELATIONS)),
            HasMethods(["stream", "means"]),
            None,
        ],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), tuple, None],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "schedule": [StrOptions(set(SCHEDULES)), None],
        "momentum": [Interval(Real, 0, 1, closed="left"), None],
        "average": [Interval(Real, 0, 1, closed="both"), "boolean", None],
        "init": [HasMethods(["fit"]), tuple, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        sampling: str | SamplingScheme | None = None,
        batch_size: int | None = None,
        noise_correlation: NoiseStrategy | str | None = None,
        n_steps: int | None = None,
        clip_norm: float | tuple[float, float] | None = None,
        radius: float | None = None,
        learning_rate: float | None = None,
        schedule: str | None = None,
        momentum: float | None = None,
        average: float | None = None,
        init: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.sampling = sampling
        self.batch_size = batch_size
        self.noise_correlation = noise_correlation
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

    def check(self) -> None:
        """Check the parameters, as a fit does first."""
        self._validate_params()
        # by plain code as well, since scikit-learn's own validation can be switched off
        for check, names in (
            (check_count, ("batch_size", "n_steps")),
            (check_positive, ("learning_rate", "radius")),
            (check_jobs, ("n_jobs",)),
        ):
            for name in names:
                if getattr(self, name) is not None:
                    check(**{name: getattr(self, name)})
        for norm in _norms(self.clip_norm):
            check_positive(clip_norm=norm)
        if isinstance(self.noise_correlation, str):
            check_option(
                tuple(NOISE_CORRELATIONS), noise_correlation=self.noise_correlation
            )
        if self.schedule is not None:
            check_option(tuple(SCHEDULES), schedule=self.schedule)


def _norms(clip_norm: Any) -> tuple[Any, ...]:
    """Return the clip norms that were given: none, one, or one for each layer."""
    if isinstance(clip_norm, tuple):
        return clip_norm
    return () if clip_norm is None else (clip_norm,)
