"""Bases of estimators trained by noisy gradients: a plan, a run, a warm start."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.utils.metaestimators import available_if

from skpuffer._template import _classes
from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer._template._reading import counted, map_by_schema
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import (
    CompositionError,
    EstimatedGuaranteeWarning,
    Statement,
    type_error,
    value_error,
)
from skpuffer.kernel.numbers import check_count, check_positive
from skpuffer.kernel.sampling import (
    FullBatchSampling,
    SamplingScheme,
    WithReplacementSampling,
    sampling_scheme,
)
from skpuffer.privacy import Certificate, compose
from skpuffer.releases import GradientRelease, Optimiser, PublicContext, QueryRelease
from skpuffer.scenarios import Adjacency, RecordScenario
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    RecordGradient,
    Training,
    run_defaults,
    train,
)
from skpuffer.training._engine import LEAST_CLIP_NORM, strategy_of_run
from skpuffer.utils._silence import warn
from skpuffer.utils._sklearn import Interval

from ._base_linear import LinearRegressorMixin, warn_of_scale
from ._minimiser_constants import (
    Look,
    least_clip_norm,
    least_noise,
    refuse_corner,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.training import Gradients, Loss, RunDefaults, Step
    from skpuffer.utils._types import Array, Table


# -- public weights of classes: what a record counts in training, by its label ---------


#: Parameters of trained classifiers, as scikit-learn's validation reads them.
CLASS_CONSTRAINTS: dict[str, Any] = {
    "classes": ["array-like", None],
    # a text passes here, to be refused by `check_class_weight` with the remedy
    "class_weight": [dict, tuple, str, None],
}

#: By so much public shares may miss adding up to one: they are rounded.
_ROUNDED = 0.01


def _read(class_weight: Any) -> tuple[bool, Any]:
    """Return whether numbers by label are shares, and these numbers."""
    if isinstance(class_weight, tuple | str):
        kind, *shares = (
            (class_weight,) if isinstance(class_weight, str) else class_weight
        )
        if kind == "balanced":
            if len(shares) != 1:
                raise value_error("weights.balanced_counts_private_labels")
            return True, shares[0]
    return False, class_weight


def check_class_weight(class_weight: Any) -> None:
    """Check weights and shares as far as they can be without the classes."""
    if class_weight is None:
        return
    balanced, given = _read(class_weight)
    if not isinstance(given, Mapping):
        raise value_error(
            "weights.dict_not_public_numbers",
            name="class_weight",
            given_type=type(given).__name__,
        )
    for value in given.values():
        check_positive(class_weight=value)
    if balanced and abs(sum(given.values()) - 1) > _ROUNDED:
        raise value_error(
            "weights.class_shares_not_one", class_shares=sum(given.values())
        )


def class_weights(class_weight: Any, classes: Array) -> Floats | None:
    """Return the weight of each class, None where nothing is weighted.

    ``('balanced', shares)`` is ``1 / (n_classes * share)``. A label that a dict of
    weights leaves out has one.
    """
    if class_weight is None:
        return None
    labels = classes.tolist()
    balanced, given = _read(class_weight)
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise value_error(
            "weights.class_unknown", name="class_weight", unknown=unknown[0]
        )
    if balanced:
        # of the shares that were given: which classes there are may be the table's
        if len(given) < len(labels):
            raise value_error(
                "weights.class_shares_incomplete",
                n_labels=len(labels),
                n_given=len(given),
            )
        return np.array([1 / (len(labels) * given[label]) for label in labels])
    return np.array([float(given.get(label, 1.0)) for label in labels])


# -- bases of estimators trained by noisy gradients: a plan, a run, a warm start -------


#: What a certificate says of a warm start.
WARM_STARTED = Statement("assume.warm_start_released_before")


#: What a certificate says of weighted classes.
PUBLIC_WEIGHTS = Statement("assume.class_weights_public")

#: A run that goes on from a model reckons with so many times its noise, and so does not
#: go as far: it has something to lose. Found with public starts from 16 and 60 rows of
#: breast cancer and of digits, at budgets from 0.01 to 1.
_CARE = 2.0

#: What belongs to steps that somebody has chosen, after which no others are put.
_OF_OWN_STEPS = ("learning_rate", "momentum", "average", "noise_correlation")

#: What stands for none: all is left to the rule.
_USUAL = Training()

#: By so much of the radius a start may lie outside of the ball: what ended at its edge
#: does, rounded.
_ROUNDING = 1e-9


def _refuse_partial_fit(estimator: Any) -> NoReturn:
    # hidden instead of refused: scikit-learn asks for the attribute before it calls it
    raise AttributeError(
        Statement("linear.no_partial_fit", estimator_type=type(estimator).__name__)
    )


class PrivateTrainingMixin(PrivateEstimatorMixin):
    """Base of estimators trained by noisy clipped gradient descent.

    A subclass says what is differentiated (:meth:`_gradients`, :meth:`_loss`) and how
    parameters are published.
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "training": [Training, None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    _default_parts = {"training": Training}

    fit = WeightedFit()

    #: Why a record may become any other though a scenario says how far it moves.
    _only_clipped = Statement("assume.clipping_only_network")

    @property
    def _training(self) -> Training:
        return _USUAL if self.training is None else self.training

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _gradients(self, X: Any, y: Any) -> Gradients:
        """Return what is differentiated, of :mod:`skpuffer.training`."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss of one record's scores, of :mod:`skpuffer.training`."""

    def _l2(self, context: PublicContext) -> float:
        """Weight of ``|w|**2 / 2`` next to the mean loss."""
        return 0.0

    def _class_weights(self) -> Floats | None:
        """Public weight of each class, None where nothing is weighted."""
        # a parameter of classifiers
        if getattr(self, "class_weight", None) is None:
            return None
        return class_weights(self.class_weight, self.classes_)

    def _record_weights(self, y: Any) -> Floats | None:
        """Weight of each record, the largest of the classes' being one."""
        weights = self._class_weights()
        # code -1, of a label that is none, is any class here: it counts as nothing
        return None if weights is None else (weights / weights.max())[y]

    @property
    def _is_likelihood(self) -> bool:
        """Whether scores are to be log-odds."""
        return isinstance(self._loss(), Logistic | Multinomial)

    def _n_outputs(self) -> int:
        """Number of scores: a regressor has one, and so has a loss of two classes."""
        return self._loss().n_outputs(len(getattr(self, "classes_", (0, 1))))

    def _unclipped_norm(self, order: float) -> float | None:
        """Clip norm that scales no gradient down, if a run may be recalibrated."""
        return None

    def _clipping(self, default: float, order: float) -> dict[str, Any]:
        """Clip norm or norms of the release, and sizes of the blocks if apart."""
        return {"clip_norm": self._clip_norm(default), "clip_order": order}

    def _clip_norm(self, default: float) -> float:
        """Return the clip norm that was asked for, which is one, or the default."""
        asked: Any = self._training.clip_norm
        return default if asked is None else float(asked)

    #: Attributes of a fitted model that `init` may be, in raw units.
    _init_names = ("coef_", "intercept_")

    @abstractmethod
    def _parameters(self, weights: Any, intercepts: Any) -> Floats:
        """Return coefficients in raw units as the vector that is trained.

        The inverse of what `_publish` does.
        """

    def _start(self, released: Start | None) -> Start | None:
        run = self._training
        # of an earlier fit: with warm_start, `init` is where the first one began
        if run.warm_start and released is not None:
            return released
        if run.init is None:
            return None
        columns = getattr(self, "feature_names_in_", None)
        found = read_init(run.init, self._init_names, columns)
        weights, intercepts, assumption, certificate = found
        if self.schema is not None:
            scenario = RecordScenario() if self.scenario is None else self.scenario
            refuse_other_schema(run.init, map_by_schema(self, scenario, None))
        if hasattr(self, "classes_"):
            refuse_other_classes(run.init, self.classes_)
        parameters = self._parameters(weights, intercepts)
        length = float(np.linalg.norm(parameters))
        # into the ball it would be scaled, unasked
        if run.radius is not None and length > run.radius * (1 + _ROUNDING):
            raise value_error(
                "linear.init_outside_ball", length=length, radius=run.radius
            )
        return Start(
            parameters=parameters,
            assumption=assumption,
            certificate=certificate,
        )

    # -- the plan: from public facts alone ----------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        if self.training is not None:
            if not isinstance(self.training, Training):
                raise type_error(
                    "parameter.not_instance_or_none",
                    name="training",
                    kind="Training",
                    held=self.training,
                )
            self.training.check()
        # a start that is none is refused before any row is read
        if self._training.init is not None:
            read_init(self._training.init, self._init_names, None)
        # by plain code as well, since scikit-learn's own validation can be switched off
        if self.max_iter is not None:
            check_count(max_iter=self.max_iter)
        if hasattr(self, "class_weight"):
            check_class_weight(self.class_weight)
        self._check_clip_norm()

    def _check_clip_norm(self) -> None:
        # a pair is of the layers of a network
        if self._training.clip_norm is not None:
            check_positive(clip_norm=self._training.clip_norm)

    def _probe(self, task: Task) -> GradientRelease:
        """Return the release of a single sum of all gradients, at clip norm one."""
        accountant = task.accountant
        probe = GradientRelease(
            n_records=task.context.n_records,
            n_steps=1,
            sampling="full_batch",
            clip_order=accountant.clip_order,
            context=task.context,
            name=self._release_name,
        )
        if not accountant.last_iterate_only:
            return probe
        # an accountant that reads the steps is asked about such as it takes, if any
        record = self._record_of(task, probe.clip_order)
        norm = 1.0 if record is None else least_clip_norm(record, accountant)
        probe = replace(
            probe, published="result", record=record, clip_norm=max(1.0, norm)
        )
        step = min(1.0, accountant.longest_step(probe)) or 1.0
        return replace(probe, optimiser=Optimiser(learning_rate=step))

    def _reads_units(self) -> bool:
        by_gradients = getattr(self, "solver", "gradient") in ("auto", "gradient")
        return by_gradients and not getattr(self, "_norm_from_data", False)

    def _record(self, order: float) -> RecordGradient | None:
        """Return how far a record moves its gradient, clipped in a norm, if known."""
        return None

    def _record_of(self, task: Task, order: float) -> RecordGradient | None:
        """Return the same for the records of a task, of which units are none."""
        return None if task.context.of_units else self._record(order)

    def _look(self, task: Task) -> Look:
        """Return a sum of all gradients at once, with how noisy the budget makes it."""
        run = self._training
        probe, scenario, known = self._probe(task), task.scenario, None
        any_records = scenario.any_records
        bound = scenario.bind(task.context)
        # nothing moves less than its clip norm where a record may become any other
        if scenario.is_coded or not any_records:
            known = self._record_of(task, probe.clip_order)
        if known is not None:
            decided: dict[str, Any] = {
                "clip_norm": run.clip_norm,
                "radius": run.radius,
            }
            if not any_records:
                start = task.start
                length = 0.0 if start is None else float(np.linalg.norm(start))
                return least_noise(
                    probe, known, task.accountant, bound, start=length, **decided
                )
            # coded records are few, and may be told apart pair by pair
            norm = max(LEAST_CLIP_NORM, least_clip_norm(known, task.accountant))
            probe = replace(probe, record=known, clip_norm=self._clip_norm(norm))
        noise = task.accountant.calibrate(probe, bound).noise
        return Look(release=probe, deviation=float(np.max(noise.std())))

    def _release(self, task: Task) -> Any:
        run = self._training
        if run.radius is not None:
            refuse_corner(self._loss())
        warn_of_scale(self, task)
        context = task.context
        look = self._look(task)
        probe, order = look.release, look.release.clip_order
        weights = self._class_weights()
        # trained are weights in units of the largest, and so is the penalty beside them
        unit = 1.0 if weights is None else float(weights.max())
        if task.weighting is not None:
            unit *= task.weighting.largest
        l2, loss = self._l2(context) / unit, self._loss()
        # norm, as of the gradients, of features that are equal and of l2 norm one
        width = self.n_features_in_ ** max(0.0, 1 / order - 1 / 2)
        # how much noise one look at all gradients takes: what the budget buys
        multiplier = look.deviation / probe.total_clip_norm * width
        if task.start is not None:
            multiplier *= _CARE
        radius, clip = run.radius, None
        if probe.optimiser is not None and probe.optimiser.radius is not None:
            # what is in a ball already is clipped by what was probed
            radius, clip = probe.optimiser.radius, probe.total_clip_norm
        last, record = task.accountant.last_iterate_only, probe.record
        # as asked for, and not by default: rows take float64 for it
        if run.momentum == 0 and run.average == 0:
            asked = task.accountant._asked(GradientRelease)
            last = last or any(other.last_iterate_only for other in asked)
        if last and record is None:
            record = self._record_of(task, order)
        if record is not None and least_clip_norm(record, task.accountant) > 0:
            clip = probe.total_clip_norm
        # the rule for what was not said
        rule = partial(run_defaults, context.n_records, multiplier, loss.smoothness)
        if not loss.classification:
            rule = partial(rule, regression=True)
        if last and record is not None:
            step = task.accountant.longest_step(replace(probe, record=record))
            rule = partial(rule, longest_step=step or None)
        sampling = run.sampling
        if sampling is None and run.batch_size is None:
            sampling = "full_batch"
        elif sampling is None:
            # a batch size is asked for by whoever wants smaller steps
            sampling = self._default_sampling(task, look)
        scheme = sampling_scheme(sampling)
        recalibrated = (
            record is None
            and radius is None
            and isinstance(scheme, FullBatchSampling)
            and all(getattr(run, name) is None for name in _OF_OWN_STEPS)
        )
        if recalibrated:
            rule = partial(
                rule,
                unclipped_norm=self._unclipped_norm(order),
                n_parameters=self.n_features_in_ * self._n_outputs(),
            )
        defaults = rule(clip_norm=clip)
        unmoved = probe.record is None and not task.scenario.any_records
        release = GradientRelease(
            n_records=context.n_records,
            n_steps=1,
            # public: it follows from the number of records alone
            batch_size=usual_batch_size(scheme, context.n_records, run.batch_size),
            sampling=scheme,
            dim=None,
            record=record,
            # noisy sums stay inside of `fit`
            published="result",
            name=self._release_name,
            context=context,
            assumptions=(
                *filter(None, (task.start_assumption,)),
                Statement("assume.rows_clipped", data_norm=self.data_norm),
                *([self._only_clipped] if unmoved else []),
                *([PUBLIC_WEIGHTS] if weights is not None else []),
            ),
            **self._clipping(defaults.clip_norm * width, order),
        )
        # one step at first: an epoch's length follows from the release, the steps from
        # that
        n_steps = self._steps(release, defaults)
        # once more, for the steps and the norm that were decided, whoever decided them
        if last and record is not None:
            step = task.accountant.longest_step(release)
            rule = partial(rule, longest_step=step or None)
        fitted = rule(
            n_steps=n_steps,
            clip_norm=release.total_clip_norm / width,
            schedule=run.schedule,
        )
        # complete: calibrated as it is, and executed from this same object
        whole = task.accountant.last_iterate_only
        optimiser = self._optimiser(fitted, l2, radius, whole)
        release = replace(release, n_steps=n_steps, optimiser=optimiser)
        if run.noise_correlation is None:
            return release
        # made for the run, where it was named
        strategy = strategy_of_run(run.noise_correlation, release)
        return replace(release, noise_correlation=strategy)

    def _default_sampling(self, task: Task, look: Look) -> str:
        """Sampling of batches where none is named, by the noise that it takes."""
        if task.accountant.last_iterate_only:
            # a Poisson batch may hold all records, at a divisor of few
            return "shuffled_epochs"
        if self._training.noise_correlation is not None:
            # the same batches in every epoch, over which noise may then be correlated
            return "balls_in_bins"
        return "fresh_bins" if self._saved_by_bins(task, look) else "poisson"

    def _saved_by_bins(self, task: Task, look: Look) -> bool:
        """Whether a batch of each epoch takes no more noise than Poisson batches."""
        run = self._training
        scenario, context = task.scenario, task.context
        if not scenario.any_records:
            return False
        bound, probe = scenario.bind(context), look.release
        if Adjacency not in bound.provides(probe):
            return False
        adjacency = bound.fact(Adjacency, probe, probe.clip_order)
        if adjacency.count != 1 or adjacency.relation != "add_remove":
            return False
        assert run.batch_size is not None
        size = min(context.n_records, int(run.batch_size))
        epoch = -(-context.n_records // size)
        n_steps = epoch if run.n_steps is None else int(run.n_steps)
        if n_steps < epoch:
            return False
        in_bins, poisson = (
            replace(probe, batch_size=size, n_steps=n_steps, sampling=sampling)
            for sampling in ("fresh_bins", "poisson")
        )
        # of several accountants none is to be lost for the bins
        asked = list(task.accountant._asked(GradientRelease))
        able = [one for one in asked if one.supports(in_bins, bound)]
        lost = [one for one in asked if one not in able]
        return any(one.saved_by_bins for one in able) and not any(
            one.supports(poisson, bound) for one in lost
        )

    def _optimiser(
        self,
        fitted: RunDefaults,
        l2: float,
        radius: float | None,
        last_iterate_only: bool,
    ) -> Optimiser:
        """Return how noisy gradients become parameters: post-processing."""
        run = self._training
        chosen: dict[str, Any] = {
            "learning_rate": fitted.learning_rate,
            # the rule's momentum belongs to the rule's step
            "momentum": fitted.momentum if run.learning_rate is None else 0.0,
            "average": fitted.average,
        }
        own = run.learning_rate is not None or run.momentum is not None
        if last_iterate_only:
            # as short a step as without momentum, which would make longer ones
            chosen |= {"momentum": 0.0, "average": 0.0}
        for name in chosen:
            if getattr(run, name) is not None:
                chosen[name] = float(getattr(run, name))
        return Optimiser(
            schedule="constant" if run.schedule is None else run.schedule,
            l2=l2,
            penalise_all=last_iterate_only,
            radius=None if radius is None else float(radius),
            # the rule's momentum goes far past where a rare class has the intercept
            restart=chosen["momentum"] > 0 and not own and self._is_likelihood,
            recalibration=fitted.recalibration,
            **chosen,
        )

    def _steps(self, release: GradientRelease, defaults: RunDefaults) -> int:
        run = self._training
        if run.n_steps is not None:
            return int(run.n_steps)
        if self.max_iter is not None:
            return int(self.max_iter) * release.steps_per_epoch
        # an epoch at least, so that every record is read about once
        return max(defaults.n_steps, release.steps_per_epoch)

    # -- the run ------------------------------------------------------------------

    def _execute(
        self,
        task: Task,
        release: Any,
        noise: Any,
        rng: np.random.Generator,
        record: list[Step] | None = None,
    ) -> Floats:
        # a subclass may perturb the output instead of the gradients
        if isinstance(release, QueryRelease):
            return super()._execute(task, release, noise, rng)
        X = task.X
        if release.record is not None:
            # float32 would round away what a record moves
            X = X.astype(np.float64, copy=False)
        gradients = self._gradients(X, task.y)
        if self._weight_bounds is not None:
            # those of a unit's rows are divided by their number below
            gradients = gradients.weighted(
                task.weights[:, 0] / task.weights.sum(axis=1)
            )
        if task.units is not None:
            gradients = gradients.of_units(task.units)
        if task.start is not None:
            _check_start(task.start, gradients)
        return train(
            gradients,
            release,
            noise,
            rng,
            initial=task.start,
            n_jobs=self._training.n_jobs,
            verbose=bool(self._training.verbose),
            record=record,
        )

    def _publish(self, value: Any, release: Any) -> None:
        # a release on a fitted object is public: the context it had may hold private
        # rows
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)
        self.n_steps_ = release.n_steps
        self.n_iter_ = np.array([release.n_epochs])
        # for a warm start of the next fit, whose certificate covers this one as well
        self._released = Start(
            parameters=value,
            assumption=WARM_STARTED,
            certificate=self.certificate_,
            name="warm_start",
        )

    @available_if(_refuse_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Table, y: ArrayLike | None = None) -> None:
        """Raise: a run is accounted for as a whole, before it starts."""


class LinearTraining(PrivateTrainingMixin):
    """Base of linear models trained with a loss of :mod:`skpuffer.training`.

    A subclass has the parameters `data_norm`, `fit_intercept` and `intercept_scaling`
    and says which loss it takes.
    """

    _release_name = "gradients of a linear model"
    _accept_sparse: str | bool = "csr"

    _parameter_constraints: dict[str, Any] = {
        **PrivateTrainingMixin._parameter_constraints,
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    }

    _only_clipped = Statement("assume.clipping_only_other_norm")

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if self.intercept_scaling is not None:
            check_positive(intercept_scaling=self.intercept_scaling)
        if not isinstance(self.data_norm, str):
            check_positive(data_norm=self.data_norm)

    @property
    def _intercept_scale(self) -> float:
        """Value of the intercept's column in units of `data_norm`; 0 for none."""
        if not self.fit_intercept:
            return 0.0
        return 0.5 if self.intercept_scaling is None else float(self.intercept_scaling)

    def _parameters(self, weights: Any, intercepts: Any) -> Floats:
        n_outputs = self._n_outputs()
        coef = checked_array("coef_", weights, (n_outputs, self.n_features_in_))
        # scikit-learn's intercept that is not fitted is one zero for all classes
        if np.ndim(intercepts) == 0:
            intercepts = np.full(n_outputs, intercepts)
        intercept = checked_array("intercept_", intercepts, (n_outputs,))
        return self._in_units(coef, intercept)

    def _in_units(self, coef: Floats, intercept: Floats) -> Floats:
        """Coefficients in raw units as parameters for rows in units of `data_norm`."""
        parameters: Floats = (coef * self.data_norm).T.ravel()
        if self.fit_intercept:
            return np.concatenate([parameters, intercept / self._intercept_scale])
        if np.any(intercept):
            raise value_error("linear.init_intercept_without_place")
        return parameters

    #: Centre and half range of the targets of a regression.
    _target_scale = (0.0, 1.0)

    def _record(self, order: float) -> RecordGradient | None:
        """Return how far a record moves its gradient, where it is clipped in l2."""
        # a weight changes with the label or by itself, and the gradient by more than is
        # known of one
        weighs = self._class_weights() is not None or self._weight_bounds is not None
        if order != 2 or weighs:
            return None
        return RecordGradient(
            loss=self._loss(),
            data_norm=float(self.data_norm),
            intercept=self._intercept_scale,
            n_classes=len(self.classes_) if hasattr(self, "classes_") else None,
            target_scale=self._target_scale,
        )

    def _unclipped_norm(self, order: float) -> float | None:
        if order != 2 or not self._is_likelihood:
            return None
        return self._loss().lipschitz * math.hypot(1.0, self._intercept_scale)

    def _gradients(self, X: Any, y: Any) -> Gradients:
        """Clipped gradients of the model on rows in units of `data_norm`."""
        # of the public labels, not of those that this table happens to hold
        n_classes = len(self.classes_) if hasattr(self, "classes_") else None
        intercept_scale = self._intercept_scale
        return LinearGradients(
            self._loss(),
            X,
            y,
            n_classes=n_classes,
            intercept_scale=intercept_scale,
            # in units of the public norm, so that one rule fits every scale of the data
            data_norm=float(self.data_norm),
            counted=None if self._of_no_target() is None else counted(y),
            weights=self._record_weights(y),
        )

    def _publish(self, value: Any, release: Any) -> None:
        super()._publish(value, release)
        # trained on rows in units of `data_norm`, published for rows as they are
        # from the length of what was released: nothing else is told to publish
        n_outputs = value.size // (self.n_features_in_ + bool(self.fit_intercept))
        weights = self.n_features_in_ * n_outputs
        self.coef_ = value[:weights].reshape(self.n_features_in_, -1).T / self.data_norm
        self.intercept_ = np.zeros(len(self.coef_))
        if self.fit_intercept:
            self.intercept_ = value[weights:] * self._intercept_scale


class LinearClassifier(PrivateClassifierMixin, LinearTraining):
    """Base of linear classifiers; a subclass has the parameter `classes` as well."""

    _parameter_constraints: dict[str, Any] = {
        **LinearTraining._parameter_constraints,
        **CLASS_CONSTRAINTS,
    }

    decision_function = _classes.decision_function
    predict = _classes.predict


class LinearRegressor(LinearRegressorMixin, LinearTraining):
    """Base of linear regressors; a subclass has the parameter `target_bounds` too.

    Trained are targets in units of half their range, about its middle.
    """

    def _gradients(self, X: Any, y: Any) -> Gradients:
        # NaN, of a record that counts as nothing, stays
        return super()._gradients(X, self._target(y))

    @property
    def _target_scale(self) -> tuple[float, float]:  # type: ignore[override]
        scale = self._target
        return scale.centre, scale.half

    def _in_units(self, coef: Floats, intercept: Floats) -> Floats:
        scale = self._target
        return super()._in_units(
            coef / scale.half, (intercept - scale.centre) / scale.half
        )

    def _publish(self, value: Any, release: Any) -> None:
        super()._publish(value, release)
        scale = self._target
        # back from [-1, 1] to the unit of the target, by public numbers
        self.coef_ = self.coef_.ravel() * scale.half
        # the centre belongs to the intercept: targets were centred before they were
        # scaled
        self.intercept_ = self.intercept_ * scale.half + scale.centre


def _check_start(start: Floats, gradients: Gradients) -> None:
    """Refuse to go on from parameters of another shape."""
    # another table's features or classes: parameters would be read in the wrong places
    if start.shape != (gradients.dim,):
        raise value_error(
            "linear.warm_start_shape_mismatch", size=start.size, dim=gradients.dim
        )


# -- where a training run starts: parameters that are public, or released before -------


#: What a certificate says of a start that nothing is known of.
_PUBLIC = Statement("assume.init_fitted_without_rows")

#: What it says of one that has a certificate.
_RELEASED = Statement("assume.init_has_own_certificate")


@dataclass(frozen=True, kw_only=True)
class Start:
    """Parameters from which a run goes on.

    Parameters
    ----------
    parameters : ndarray of shape (dim,)
    assumption : Statement
        Assumption about them in the certificate of the run.
    certificate : Certificate or None, default=None
        Certificate of their own release, where it is to be added to that of the run.
    name : {'init', 'warm_start'}, default='init'
        Parameter that asks for it.
    """

    parameters: Floats
    assumption: Statement
    certificate: Certificate | None = None
    name: str = "init"

    def covering(self, run: Certificate) -> Certificate:
        """Return the certificate of the run and of its start together.

        A CompositionError is raised if the two promises cannot be added.
        """
        if self.certificate is None:
            return run
        weak = (
            Statement("linear.start_is_estimate")
            if not self.certificate.certified
            else None
        )
        if weak is None and self.certificate.seeded:
            weak = Statement("linear.start_noise_from_seed")
        if weak is not None:
            warn(
                Statement("linear.start_makes_fit_estimate", name=self.name, weak=weak),
                EstimatedGuaranteeWarning,
            )
            return run.as_estimate(
                Statement(
                    "assume.init_certificate_weak",
                    assumption=self.assumption,
                    weak=weak,
                    certificate=repr(self.certificate),
                )
            )
        # an estimate stays one, whatever was promised before it
        if not run.certified:
            return run.assuming(
                Statement(
                    "assume.init_certificate_kept",
                    assumption=self.assumption,
                    certificate=repr(self.certificate),
                )
            )
        try:
            return compose([self.certificate, run])
        except CompositionError as error:
            raise CompositionError(
                Statement(
                    "linear.start_certificate_not_addable", name=self.name, error=error
                )
            ) from None


def read_init(
    init: Any, names: tuple[str, str], columns: Sequence[str] | None
) -> tuple[Any, Any, Statement, Certificate | None]:
    """Read `init`: weights, intercepts, an assumption and a certificate or None.

    It is a fitted estimator with the attributes `names`, or a pair of coefficients.
    """
    if isinstance(init, tuple):
        if len(init) != 2:
            raise value_error(
                "linear.init_not_estimator_or_pair", names=list(names), n_init=len(init)
            )
        return *init, _PUBLIC, None
    if not all(hasattr(init, name) for name in names):
        raise value_error("linear.init_not_fitted", names=list(names))
    theirs = getattr(init, "feature_names_in_", None)
    # coefficients of other columns, or in another order, would be read wrongly
    if columns is not None and theirs is not None and list(theirs) != list(columns):
        raise value_error(
            "linear.init_columns_differ", theirs=list(theirs), columns=list(columns)
        )
    certificate = getattr(init, "certificate_", None)
    released = isinstance(certificate, Certificate)
    return (
        *(getattr(init, name) for name in names),
        _RELEASED if released else _PUBLIC,
        certificate if released else None,
    )


def refuse_other_schema(init: Any, schema_map: Any) -> None:
    """Refuse a start that read its columns by another code book."""
    theirs = getattr(getattr(init, "feature_map_", None), "schema", None)
    mine = schema_map.schema
    # the same coefficients would be of other columns, or in another unit
    if theirs is not None and theirs.without(theirs.target) != mine.without(
        mine.target
    ):
        raise value_error("linear.init_schema_differs")


def refuse_other_classes(init: Any, classes: ArrayLike) -> None:
    """Refuse a start whose scores are of other classes, or in another order."""
    theirs = getattr(init, "classes_", None)
    if theirs is not None and not np.array_equal(theirs, classes):
        raise value_error(
            "linear.init_classes_differ",
            init_classes=np.asarray(theirs).tolist(),
            classes=np.asarray(classes).tolist(),
        )


def checked_array(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return coefficients as finite numbers of a shape, or say what is wrong."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim < len(shape):
        array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise value_error(
            "linear.init_array_shape_wrong",
            name=name,
            shape=shape,
            given_shape=array.shape,
        )
    return array


def usual_batch_size(
    scheme: SamplingScheme, n_records: int, asked: int | None
) -> int | None:
    """Return the batch size for a table whose size the caller may not know.

    Parameters
    ----------
    scheme : SamplingScheme
    n_records : int
    asked : int or None

    Returns
    -------
    int or None
        The size asked for, or a tenth of the records. At most all of them, except for
        draws with replacement. None for full batches.
    """
    if isinstance(scheme, FullBatchSampling):
        return None
    size = asked or max(1, n_records // 10)
    return size if isinstance(scheme, WithReplacementSampling) else min(n_records, size)
