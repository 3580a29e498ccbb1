"""Logistic regression with standard errors, by Newton's method on noisy sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.utils import gen_batches

from skpuffer._template import _classes
from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer._template._reading import counted
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.numbers import check_count
from skpuffer.releases import AdaptiveRelease, PublicContext, Sensitivity, Stage
from skpuffer.scenarios import LawsScenario
from skpuffer.summary._mean import BoundedColumnsMixin
from skpuffer.training._rows import products
from skpuffer.utils._sklearn import Interval, StrOptions

from ._coefficients import (
    CodedColumns,
    CoefficientsMixin,
    Moments,
    coded_columns,
    resolve,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.noise import Noise
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState, Table


#: Weight of the curvature of a row as long as any, beside its gradient. With the
#: residual a the square of both is ``a**2 + (_CURVATURE * a * (1 - a))**2``. It is at
#: most one as long as the square of the weight is no more than the fifth power of the
#: golden ratio, 11.09. So the curvature takes no noise that the gradient does not take.
_CURVATURE = 3.33

#: Each step has so many times the budget of the one before: the first ones have only to
#: come near.
_GROWTH = 2.0

#: Number of steps by default.
_STEPS = 6

#: Slope, of columns in half ranges, that is looked for at most where nothing is known.
_STEEPEST = 3.0

#: By how much a step changes the log-odds of a record at most.
_LONGEST = 20.0

#: Change of log-odds, at most one, of which it is said how much a step leaves.
_FARTHEST = 0.95

#: Contributions are whole multiples of this, so that their sums are exact in any order.
_GRAIN = 2.0**-24

_BLOCK = 2**14


@dataclass(frozen=True)
class NewtonSums(CodedColumns):
    """Sums of a step of Newton's method: gradients and curvatures of records.

    With w = (1, columns), its score s and the residual ``a = y - expit(s)``, a record
    adds ``a w``, and the entries of ``|a| (1 - |a|) w w'`` that are not zero or the
    same as another for all records, times a public weight. Off the diagonal they are
    multiplied by sqrt(2), by which their length is ``|w|**2`` at most.

    Parameters
    ----------
    marks : tuple of int, default=()
        Columns that are one where a number is missing: such a record adds nothing.
    norm : {2.0, 1.0}, default=2.0
        2 for Gaussian noise, 1 for Laplace noise.
    """

    marks: tuple[int, ...] = ()
    norm: float = 2.0

    @property
    def width(self) -> int:
        """Length of w."""
        return 1 + len(self.columns)

    @property
    def longest(self) -> float:
        """Largest square of the length of w: a record has one level of a category."""
        return 1.0 + len(self.numbers) + len(self.levels)

    @property
    def entries(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the curvature that are summed."""
        first, second = np.triu_indices(self.width)
        kind = np.zeros(self.width, dtype=int)
        start = 1 + len(self.numbers)
        for number, block in enumerate(self.levels, start=1):
            kind[start : start + len(block)] = number
            start += len(block)
        # two levels of a category never meet, and the square of one is the level
        kept = (kind[first] != kind[second]) | (kind[first] == 0)
        return first[kept], second[kept]

    @property
    def weights(self) -> Floats:
        """Weights of these entries."""
        first, second = self.entries
        weight = _CURVATURE / math.sqrt(self.longest)
        if self.norm == 1:
            weight = self.longest / self._entries_in_l1
        found: Floats = weight * np.where(first == second, 1.0, math.sqrt(2))
        return found

    @property
    def _entries_in_l1(self) -> float:
        """Largest l1 norm of the entries of w w', those off the diagonal times sqrt(2).

        The sum of the products of two is at most half of ``|w|_1**2 - |w|**2``, and w
        has no more than `longest` places that are not zero.
        """
        square = self.longest
        return square + math.sqrt(2) * (square**2 - square) / 2

    @property
    def dim(self) -> int:
        """Number of gradients and of entries."""
        return self.width + len(self.entries[0])

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum to one record, whatever the coefficients are."""
        square, weight = self.longest, float(np.min(self.weights))
        # of the residual a: a |w|_1 and a (1 - a) weight times the entries
        slope, curve = square, weight * self._entries_in_l1
        in_l1 = slope if curve <= slope else (slope + curve) ** 2 / (4 * curve)
        alone = {2.0: math.sqrt(square), 1.0: in_l1}
        return Sensitivity(
            add_remove=alone, replace={n: 2 * value for n, value in alone.items()}
        )

    def rows(self, X: Floats, y: ArrayLike) -> tuple[Floats, Floats, Booleans]:
        """Return w and the label of each record, and which lack nothing."""
        known = counted(np.asarray(y))
        present = np.ones(len(X), dtype=bool) if known is None else known
        present = present & ~np.any(X[:, list(self.marks)] > 0, axis=1)
        return self.coded(X), np.asarray(y, dtype=float), present

    def __call__(self, rows: tuple[Floats, Floats, Booleans], slopes: Floats) -> Floats:
        """Return the exact sum, which must not be released without noise."""
        w, y, present = rows
        (first, second), weights = self.entries, self.weights
        total = np.zeros(self.dim)
        for part in gen_batches(len(w), _BLOCK):
            at = w[part][present[part]]
            residual = y[part][present[part]] - expit(products(at, slopes))
            curved = np.abs(residual) * (1 - np.abs(residual))
            found = np.hstack(
                [
                    residual[:, np.newaxis] * at,
                    weights * (curved[:, np.newaxis] * at[:, first] * at[:, second]),
                ]
            )
            # toward zero, by which no norm grows
            total += (np.trunc(found / _GRAIN) * _GRAIN).sum(axis=0)
        return total

    def read(self, total: Floats, deviation: float) -> Moments:
        """Return curvature and gradient off a noisy sum."""
        k, (first, second), weights = self.width, self.entries, self.weights
        products = np.zeros((k + 1, k + 1))
        gradient = np.arange(k)
        products[gradient, k] = products[k, gradient] = total[:k]
        products[first, second] = products[second, first] = total[k:] / weights
        places: list[tuple[Any, ...]] = [
            (gradient, gradient, np.full(k, k), np.ones(k))
        ]
        which, off = k + np.arange(len(first)), first != second
        places.append((which, first, second, 1 / weights))
        places.append((which[off], second[off], first[off], 1 / weights[off]))
        of_level = (first == 0) & (second > len(self.numbers))
        at = second[of_level]
        products[at, at] = products[0, at]
        places.append((which[of_level], at, at, 1 / weights[of_level]))
        joined = [np.concatenate(part) for part in zip(*places, strict=True)]
        noise = np.full(len(total), deviation)
        return Moments(products, math.nan, noise, *joined)


@dataclass(frozen=True)
class NewtonStep:
    """One step of Newton's method on noisy sums, with errors to the first order.

    Parameters
    ----------
    slopes : ndarray of shape (k,)
        After the step.
    of_noise, of_sample : ndarray of shape (k, k)
        Covariances that the noise and the sampling of records give them.
    beyond : ndarray of shape (k,)
        Possible change by a further step, noise apart.
    resolution : float
        Smallest eigenvalue of the curvature in deviations of its noise.
    is_lost, is_blurred : ndarray of bool of shape (k,)
        Slopes of which nothing is known, and those with errors that are not known well.
    """

    slopes: Floats
    of_noise: Floats
    of_sample: Floats
    beyond: Floats
    resolution: float
    is_lost: Booleans
    is_blurred: Booleans


def newton_step(
    moments: Moments, before: Floats, design: Floats, longest: float
) -> NewtonStep:
    """Return the slopes after a step, and their errors.

    The curvature H and the gradient g at the slopes before are known with noise, and
    the step is ``g / H``. At the slopes of the maximum the gradient vanishes but for
    noise, and for the sampling of records, of covariance H (Fisher). Where the
    curvature falls as fast as it can, a step that changes log-odds by t leaves ``-log(1
    - t) - t``, which is below ``t / (1 - t) / 2`` of itself. Twice of that is taken, as
    t is a mean over records, and noise that makes the curvature large makes the step
    short.
    """
    found = resolve(moments, design)
    # nothing is learnt along what is not resolved
    inverse = found.inverse - found.lost @ (found.lost.T @ found.inverse)
    step = inverse @ (design.T @ moments.products[:-1, -1])
    change = longest * float(np.linalg.norm(design @ step))
    if change > _LONGEST:
        step *= _LONGEST / change
    mean_square = float(step @ found.matrix @ step) / max(moments.products[0, 0], 1.0)
    change = min(change, math.sqrt(max(mean_square, 0.0)))
    change = min(change, _FARTHEST)
    # the gradient less the curvature times the step
    noise = moments.noise_along(np.append(design @ step, -1.0), design)
    errors = noise.T @ noise
    for v in found.lost.T:
        # any slope may be true there, and it multiplies noise of its own
        noise = moments.noise_along(np.append(_STEEPEST * (design @ v), 0.0), design)
        errors = errors + noise.T @ noise
    return NewtonStep(
        slopes=before + step,
        of_noise=inverse @ errors @ inverse,
        of_sample=inverse @ found.matrix @ inverse,
        beyond=change / (1 - change) * np.abs(step),
        resolution=found.resolution,
        is_lost=found.is_lost,
        is_blurred=found.is_blurred,
    )


class PrivateLogit(
    CoefficientsMixin,
    PrivateClassifierMixin,
    BoundedColumnsMixin,
    PrivateEstimatorMixin,
):
    """Fit a logistic regression of two classes, with standard errors.

    It takes a few steps of Newton's method, each on a noisy sum of gradients and
    curvatures. The last one gives coefficients, their errors by noise and sampling, and
    tests.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features, as of :class:`~skpuffer.summary.PrivateMean`.
        Values outside are clipped. 'empirical' reads the private data and warns.
    classes : array-like of shape (2,), default=None
        Public class labels. None takes those of `y` as public.
    fit_intercept : bool, default=True
        Whether there is a constant beside the features.
    max_iter : int, default=6
        Number of steps. Each has twice the budget of the one before. More are needed
        where the classes are nearly separable.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds and classes. Each level of a category but the first is a column of
        zeros and ones. Records that lack a number or have no such label count as
        nothing.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Change of the log-odds of the second class by a unit of the feature; zero for
        the first level of a category, and for marks of missing numbers.
    intercept_ : ndarray of shape (1,)
        Constant.
    coef_std_ : ndarray of shape (1, n_features)
        Standard deviation of the noise of `coef_`, to the first order (delta method).
        Infinite where the noise drowns the curvature.
    intercept_std_ : ndarray of shape (1,)
        The same of the constant.
    classes_ : ndarray of shape (2,)
        Public class labels.
    n_complete_ : float
        The number of records; only where it is public and none lacks anything.
    n_iter_ : ndarray of shape (1,)
        Number of steps.
    resolution_ : float
        Smallest eigenvalue of the curvature, in standard deviations of its noise. Below
        3 some coefficients are unknown, and :meth:`summary` names them.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the sums, in units of each step.
    accountant_ : Accountant
        The accountant that set it.
    release_ : AdaptiveRelease
        The release that was accounted for and run.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateLogisticRegression : Many features, more classes, any scenario; no errors.

    Notes
    -----
    *Errors.* Standard errors assume that records are drawn independently, that the
    log-odds are linear, and that bounds cut off little. Under ``of="table"`` they are
    of the noise alone. Intervals are longer by what one more step might change. Rows of
    :meth:`to_frame` are marked as wide where this is more than half of a standard
    error, or where the curvature is below six deviations of its noise: an interval may
    then be too short.

    *Noise.* A record whose residual is a adds ``a`` to the gradient, times its row, and
    ``a (1 - a)`` to the curvature, of which one only is large. So the curvature is
    released without more noise for either.

    References
    ----------
    Ganesh, Haghifam, Steinke and Thakurta (2023), Faster differentially private convex
    optimization via second-order methods.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.linear_model import PrivateLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(50_000, 2))
    >>> odds = np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] - 1)
    >>> y = rng.random(50_000) < odds / (1 + odds)
    >>> model = PrivateLogit(bounds=(0, 10)).fit(X, y)
    >>> low, high = model.confidence_interval()["coef_"]
    >>> bool(np.all(high - low < 0.1) and np.all(abs(model.coef_ - [0.4, -0.2]) < 0.1))
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "classes": ["array-like", None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _takes_any_size = True

    predict = _classes.predict
    predict_proba = _classes.predict_proba
    predict_log_proba = _classes.predict_log_proba

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        classes: ArrayLike | None = None,
        fit_intercept: bool = True,
        max_iter: int = _STEPS,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.schema = schema
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_count(max_iter=self.max_iter)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_stacked_moments")

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        found = super()._validate(X, y)
        if len(self.classes_) != 2:
            raise value_error(
                "linear.logit_of_two_classes", n_classes=len(self.classes_)
            )
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _release(self, task: Task) -> AdaptiveRelease:
        bounds = self._public_bounds(task)
        if bounds is None:
            raise scenario_error("decomposition.scenario_without_bounds")
        layout = stage_layout(task.accountant, task.scenario)
        sums = NewtonSums(**coded_columns(task.context, bounds), norm=layout.norm)
        growth = _GROWTH ** np.arange(self.max_iter)
        stages = tuple(
            Stage(f"step {at}", sums.dim, sums.sensitivity, float(share))
            for at, share in enumerate(growth / growth.sum(), start=1)
        )
        return AdaptiveRelease(
            n_records=task.context.n_records,
            stages=stages,
            name="steps of a logistic regression",
            # what publishes has no data, so how columns are read travels along
            context=replace(task.context, bounds=sums),
            assumptions=(Statement("assume.values_clipped"),),
            **layout._asdict(),
        )

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        sums = release.context.bounds
        rows = sums.rows(task.X, task.y)
        design = sums.units.design(self.fit_intercept)
        slopes = np.zeros(design.shape[1])
        last = len(release.stages) - 1
        for at in range(last + 1):
            exact = sums(rows, design @ slopes)
            total = release.noisy(at, exact, noise, rng)
            if at < last:
                slopes = self._step(total, slopes, release, at, noise).slopes
        return np.concatenate([slopes, total])

    def _step(
        self, total: Floats, slopes: Floats, release: Any, at: int, noise: Noise
    ) -> NewtonStep:
        sums = release.context.bounds
        design = sums.units.design(self.fit_intercept)
        moments = sums.read(total, release.deviation(at, noise))
        return newton_step(moments, slopes, design, math.sqrt(sums.longest))

    def _publish(self, value: Floats, release: Any) -> None:
        # everything below is post-processing of noisy sums and public scales
        sums, context = release.context.bounds, release.context
        slopes, total = value[: -sums.dim], value[-sums.dim :]
        last = len(release.stages) - 1
        found = self._step(total, slopes, release, last, self.noise_)
        curvature = sums.read(total, 0.0).products
        weight = max(curvature[0, 0], 1.0)
        means = curvature[0, 1:-1] / weight
        self._set_slopes(
            release,
            sums.units,
            found,
            means,
            beyond=found.beyond,
            is_blurred=found.is_blurred,
        )
        # a row for the one score of two classes, as scikit-learn has it
        self.coef_, self.coef_std_ = self.coef_[np.newaxis], self.coef_std_[np.newaxis]
        self.intercept_ = np.atleast_1d(self.intercept_)
        self.intercept_std_ = np.atleast_1d(self.intercept_std_)
        complete = context.size == "public" and not sums.marks
        if complete and self._of_no_target() is None:
            self.n_complete_ = float(release.n_records)
        self.n_iter_ = np.array([len(release.stages)])
        # public: the context it had may hold private rows
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)

    def decision_function(self, X: Table) -> Floats:
        """Return the log-odds of class two; a missing number is the noisy mean."""
        return self._scores(X)
