"""Gaussian naive Bayes from one noisy release of moments by class."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import floats
from skpuffer.releases import QueryRelease
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Moments
from skpuffer.utils._bounds import (
    BOUNDS_LEAK,
    are_empirical,
    check_bounds,
    resolve_bounds,
)
from skpuffer.utils._checks import noise_deviation
from skpuffer.utils._reading import validate_rows
from skpuffer.utils._sklearn import StrOptions

from ._base import ByClass, PrivateNaiveBayes, labelled, without_lack

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import BoundsLike, RandomState


def shrunk(values: Floats, centre: Floats, noise: Floats, shares: Floats) -> Floats:
    """Share of each value's distance to a common centre that is not noise, in [0, 1].

    Empirical Bayes (Efron and Morris, 1973): a value is kept by the ratio of the
    estimated spread of the true values to spread and noise together. `noise` holds
    variances.
    """
    # the mean square of distances is that of the truth, and the noise
    spread = np.maximum(
        0.0, (shares * (np.square(values - centre) - noise)).sum(axis=0)
    )
    whole = spread + noise
    # without noise there is nothing to shrink, even where all values are one
    kept: Floats = np.where(noise > 0, spread / np.where(whole > 0, whole, 1.0), 1.0)
    return kept


def shrunk_counts(counts: Floats, deviation: float, n_records: float) -> Floats:
    """Sizes of classes from noisy counts: positive, and with the public sum.

    James and Stein (1961), towards equal classes.
    """
    n_classes = len(counts)
    # all of them sum to n, which spreads the error of their sum
    away = counts - counts.sum() / n_classes
    # the noise of that has a dimension less
    length = np.square(away).sum()
    noise = (n_classes - 1) * deviation**2
    kept = max(0.0, 1 - noise / length) if length > 0 else 0.0
    sizes = np.maximum(n_records / n_classes + kept * away, max(1.0, deviation))
    # a size below its own noise says nothing, and is divided by
    found: Floats = sizes * (n_records / sizes.sum())
    return found


#: Smallest variance of u in [-1, 1] that a class is given.
_LEAST_VARIANCE = 1e-6


def class_moments(bounds: Bounds, n_classes: int) -> ByClass:
    """Contribution ``(1, u, u**2 - 1/2)`` of a record, in the block of its class.

    With u the row in [-1, 1] by its bounds. In l2 a record that is added moves the sum
    by sqrt(1 + 5 d / 4), one that is replaced by max(2 sqrt(d), sqrt(2 + 5 d / 2)).
    """
    positions = tuple(range(len(bounds.low)))
    return ByClass(Stacked((Ones(), Moments(positions, bounds, order=2))), n_classes)


def class_gaussians(
    value: Floats, deviation: float, n_records: float, n_classes: int
) -> tuple[Floats, Floats, Floats]:
    """Sizes, means and variances of the classes from noisy moments, for u in [-1, 1].

    Each class's means and variances are shrunk to what all records have, as far as
    noise explains the distance. A class variance includes what noise leaves unknown of
    its mean.
    """
    table = value.reshape(n_classes, -1)
    first, second = np.split(table[:, 1:], 2, axis=1)
    of_sum = deviation * math.sqrt(n_classes)
    n_records = labelled(table[:, 0].sum(), of_sum, n_records)
    counts = shrunk_counts(table[:, 0], deviation, n_records)
    sizes, shares = counts[:, None], counts[:, None] / n_records
    # -- means: noise of their sums, over the sizes of the classes
    noise = np.square(deviation / sizes) * np.ones_like(first)
    whole = np.clip(first.sum(axis=0) / n_records, -1.0, 1.0)
    kept = shrunk(first / sizes, whole, noise, shares)
    means = np.clip(whole + kept * (first / sizes - whole), -1.0, 1.0)
    # -- variances: E u² - (E u)², pooled over the classes within them
    within = second.sum(axis=0) / n_records + 0.5 - (shares * means**2).sum(axis=0)
    least = max(deviation * math.sqrt(n_classes) / n_records, _LEAST_VARIANCE)
    within = np.clip(within, min(least, 1.0), 1.0)
    raw = second / sizes + 0.5 - means**2
    # of u² and, by the slope 2 m, of the squared mean
    noise_of = noise * (1 + 4 * means**2)
    part = shrunk(raw, within, noise_of, shares)
    floor = np.minimum(np.sqrt(part * noise_of), within)
    variances = np.clip(within + part * (raw - within), floor, 1.0)
    variances = np.maximum(variances, _LEAST_VARIANCE)
    # the mean is known up to what is left of its noise
    return counts, means, variances + kept * noise


class PrivateGaussianNB(PrivateNaiveBayes):
    """Fit Gaussian naive Bayes from one noisy release of moments by class.

    As scikit-learn's :class:`~sklearn.naive_bayes.GaussianNB`, with a normal
    distribution of each feature in each class.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise. Any noise
        will do, and pure epsilon (``GroupPrivacy(epsilon, noise='laplace')``).
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds` and, if it has a target, `classes`. Numbers are scaled by their
        bounds, levels are columns of zeros and ones.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped in `fit`. None takes the
        scenario's range. 'empirical' reads the private data and warns.
    classes : array-like, default=None
        Public class labels; others count as nothing. None takes those of the schema's
        target or, without one, those of `y` as public.
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the sorted classes. None takes their noisy shares.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    theta_ : ndarray of shape (n_classes, n_columns)
        Means of the features, or of the scaled columns of the schema, in each class.
    var_ : ndarray of shape (n_classes, n_columns)
        Variances, positive; they include what noise leaves unknown of the means.
    class_count_ : ndarray of shape (n_classes,)
        Noisy sizes of the classes. They sum to the number of records, less those
        without a class where noise does not explain the difference.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to counts and moments, of features in [-1, 1].
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    *The release* is the sum over the records of ``(1, u, u**2 - 1/2)`` in the block of
    their class, with u the row scaled to [-1, 1]. For d columns, adding or removing a
    record moves it by ``sqrt(1 + 5 d / 4)`` in l2 and ``1 + 3 d / 2`` in l1; replacing
    one by ``max(2 sqrt(d), sqrt(2 + 5 d / 2))`` and ``2 + 3 d``.

    *Post-processing.* Sizes are brought to their known sum and shrunk to equal ones;
    means are shrunk to the mean of all records and variances to that within classes, as
    far as noise explains the difference. Uncertainty of a mean by noise is added to the
    variance.

    References
    ----------
    Vaidya, Shafiq, Basu and Hong (2013), Differentially private naive Bayes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skpuffer.naive_bayes import PrivateGaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PrivateGaussianNB(bounds=(0, 8), classes=[0, 1, 2]).fit(X, y)
    >>> model.theta_.shape, round(model.class_count_.sum())
    ((3, 4), 150)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateNaiveBayes._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "classes": ["array-like", None],
        "priors": ["array-like", None],
    }

    #: Numbers by their bounds in [-1, 1].
    _schema_scale = "box"

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        schema: Schema | None = None,
        bounds: BoundsLike = None,
        classes: ArrayLike | None = None,
        priors: ArrayLike | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.bounds = bounds
        self.classes = classes
        self.priors = priors
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_bounds(self.bounds)
        self._check_priors()
        if self.schema is None and self.bounds is None and scenario.any_records:
            raise unsupported_error("bayes.bounds_missing", owner=type(self).__name__)

    def _check_priors(self) -> None:
        if self.priors is None:
            return
        held = floats(self.priors)
        if held is None or held.ndim != 1 or not np.all(held >= 0):
            raise value_error("bayes.priors_not_probabilities", priors=self.priors)
        if not np.isclose(held.sum(), 1.0):
            raise value_error("bayes.priors_sum_not_one", total=held.sum())

    def _leaks(self) -> tuple[Statement, ...]:
        return (BOUNDS_LEAK,) if are_empirical(self.bounds) else ()

    def _read_rows(self, X: Any) -> tuple[Floats, None]:
        return validate_rows(self, X, dtype=np.float64, reset=True), None

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context  # of a fit, which knows the number of features
        n_classes = len(context.classes)
        if self.priors is not None and np.size(self.priors) != n_classes:
            raise value_error(
                "bayes.priors_count_mismatch",
                size=np.size(self.priors),
                n_classes=n_classes,
            )
        bounds = resolve_bounds(
            # a schema has scaled all columns
            self.bounds if self.schema is None else (-1.0, 1.0),
            context.n_features,
            scenario=task.scenario,
            context=context,
            # read for 'empirical' alone, which voids the promise
            X=task.X,
        )
        if bounds is None:
            raise unsupported_error("bayes.scenario_declares_no_bounds")
        moments, query = self._weighted(task, class_moments(bounds, n_classes))
        return QueryRelease(
            query=query,
            contribution=moments,
            is_sum=True,
            dim=moments.dim,
            sensitivity=moments.sensitivity,
            n_records=context.n_records,
            name="moments by class",
            # what publishes the vector has no data, so bounds travel with the release
            context=replace(context, bounds=bounds),
            assumptions=(self._public_facts(task),),
        )

    def _publish(self, value: Floats, release: Any) -> None:
        bounds = release.context.bounds
        deviation = noise_deviation(self.noise_, value.size)
        value, n, unit = without_lack(value, release)
        counts, means, variances = class_gaussians(
            value, deviation, n, len(self.classes_)
        )
        self.class_count_ = unit * counts
        shares = counts / counts.sum() if self.priors is None else self.priors
        self.class_prior_ = np.asarray(shares, dtype=float)
        # from [-1, 1] to the units of the data
        self.theta_ = bounds.middle + bounds.half * means
        self.var_ = bounds.half**2 * variances

    def _log_likelihood(self, X: Any) -> Floats:
        X = validate_rows(self, X, dtype=np.float64, reset=False)
        # a class at a time, so that no array is larger than the table
        scores = [
            -0.5 * (np.log(2 * np.pi * var) + (X - mean) ** 2 / var).sum(axis=1)
            for mean, var in zip(self.theta_, self.var_, strict=True)
        ]
        likelihood: Floats = np.column_stack(scores)
        return likelihood
