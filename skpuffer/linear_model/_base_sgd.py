"""What estimators trained by noisy gradients share: a plan, a run, a warm start."""

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.utils.metaestimators import available_if

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.releases import (
    SAMPLING_SCHEMES,
    GradientRelease,
    Optimiser,
    PublicContext,
    QueryRelease,
)
from skpuffer.training import run_defaults, train
from skpuffer.utils._checks import check_count, check_positive
from skpuffer.utils._fitting import forget
from skpuffer.utils._sklearn import Interval, StrOptions

__all__ = ["PrivateTrainingMixin"]


def _refuse_partial_fit(estimator):
    raise AttributeError(
        f"{type(estimator).__name__} has no partial_fit: the noise of a run is set "
        "before it starts, from its number of steps, and another call would be another "
        "release of the same records. Use fit, with warm_start=True to go on from "
        "released coefficients; the certificates of both fits then add up."
    )


class PrivateTrainingMixin(PrivateEstimatorMixin):
    """Plans, accounts and runs noisy clipped gradient descent.

    A subclass says what is differentiated (:meth:`_gradients`, :meth:`_loss`) and how
    parameters are published.
    """

    _parameter_constraints: dict = {
        **PrivateEstimatorMixin._parameter_constraints,
        "sampling": [StrOptions(set(SAMPLING_SCHEMES)), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "momentum": [Interval(Real, 0, 1, closed="left"), None],
        "average": [Interval(Real, 0, 1, closed="both"), "boolean", None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _gradients(self, X, y):
        """Return what is differentiated, of :mod:`skpuffer.training`."""

    @abstractmethod
    def _loss(self):
        """Return the loss of one record's scores, of :mod:`skpuffer.training`."""

    def _l2(self, context):
        """Weight of ``|w|**2 / 2`` next to the mean loss."""
        return 0.0

    def _clipping(self, default, order):
        """Clip norm or norms of the release, and sizes of the blocks if apart."""
        clip = default if self.clip_norm is None else float(self.clip_norm)
        return {"clip_norm": clip, "clip_order": order}

    def _width(self, order):
        """Norm of that order of features that are equal and of l2 norm one."""
        return self.n_features_in_ ** max(0.0, 1 / order - 1 / 2)

    # -- the plan: from public facts alone ----------------------------------------

    def _check_parameters(self, scenario):
        super()._check_parameters(scenario)
        for check, names in (
            (check_count, ("batch_size", "n_steps", "max_iter")),
            (check_positive, ("clip_norm", "learning_rate")),
        ):
            for name in names:
                if getattr(self, name) is not None:
                    check(**{name: getattr(self, name)})

    def _defaults(self, context, multiplier, **decided):
        """Return the rule for what was not said; see :func:`run_defaults`."""
        smoothness = self._loss().smoothness
        return run_defaults(context.n_records, multiplier, smoothness, **decided)

    def _probe(self, context, order):
        """Describe a single look at all gradients, of clip norm one."""
        return GradientRelease(
            n_records=context.n_records,
            n_steps=1,
            sampling="full_batch",
            clip_order=order,
            context=context,
            name=self._release_name,
        )

    def _plan(self, scenario, accountant, context, X):
        order = accountant.clip_order
        probe = self._probe(context, order)
        # how much noise one look at all gradients would take: what the budget buys
        once = accountant.calibrate(probe, scenario.bind(context)).noise
        multiplier = float(np.max(once.std())) * self._width(order)
        defaults = self._defaults(context, multiplier)
        sampling = self.sampling
        if sampling is None:
            sampling = "full_batch" if self.batch_size is None else "poisson"
        batch_size = self.batch_size
        if batch_size is None and sampling != "full_batch":
            batch_size = min(context.n_records, max(1, context.n_records // 10))
        if batch_size is not None and sampling != "with_replacement":
            batch_size = min(batch_size, context.n_records)
        if sampling == "full_batch":
            batch_size = None
        release = GradientRelease(
            n_records=context.n_records,
            n_steps=1,
            batch_size=batch_size,
            sampling=sampling,
            dim=None,
            name=self._release_name,
            context=context,
            assumptions=self._statements(context),
            **self._clipping(defaults.clip_norm * self._width(order), order),
        )
        release = replace(release, n_steps=self._steps(release, defaults))
        return replace(release, optimiser=self._optimiser(release, multiplier))

    def _steps(self, release, defaults):
        if self.n_steps is not None:
            return int(self.n_steps)
        if self.max_iter is not None:
            return int(self.max_iter) * release.steps_per_epoch
        return max(defaults.n_steps, release.steps_per_epoch)

    def _statements(self, context):
        if not hasattr(self, "_released"):
            return ()
        return (
            "training began at parameters released before, whose own certificate is "
            "to be added to this one",
        )

    # -- the run ------------------------------------------------------------------

    def _execute(self, release, noise, X, y, rng, record=None):
        start = vars(self).pop("_released", None)
        if isinstance(release, QueryRelease):
            return super()._execute(release, noise, X, y, rng)
        gradients = self._gradients(X, y)
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)
        self.n_steps_ = release.n_steps
        self.n_iter_ = np.array([release.n_epochs])
        self._released = train(
            gradients,
            release,
            noise,
            rng,
            initial=_checked_start(start, gradients),
            verbose=bool(self.verbose),
            record=record,
        )
        return self._released

    def _optimiser(self, release, multiplier):
        """How noisy gradients become parameters: post-processing of what is public."""
        defaults = self._defaults(
            release.context,
            multiplier,
            n_steps=release.n_steps,
            clip_norm=release.total_clip_norm / self._width(release.clip_order),
        )
        chosen = {
            name: given if (given := getattr(self, name)) is not None else fallback
            for name, fallback in (
                ("learning_rate", defaults.learning_rate),
                # the rule's momentum belongs to the rule's step
                ("momentum", defaults.momentum if self.learning_rate is None else 0.0),
                ("average", defaults.average),
            )
        }
        return Optimiser(
            l2=self._l2(release.context),
            **{name: float(value) for name, value in chosen.items()},
        )

    def _forget(self):
        """Remove what a fit has set, except for what a warm start goes on from."""
        forget(self, keep=("_released",) if self.warm_start else ())

    @available_if(_refuse_partial_fit)
    def partial_fit(self, X, y=None):
        """Not available; the error says why."""


def _checked_start(start, gradients):
    """What a warm start goes on from, if there is one of the shape that is needed."""
    if start is not None and start.shape != (gradients.dim,):
        raise ValueError(
            f"The parameter 'warm_start' needs released parameters of the same "
            f"shape: there are {start.size}, the data asks for {gradients.dim}. "
            "Use warm_start=False."
        )
    return start
