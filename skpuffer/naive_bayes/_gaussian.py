"""Gaussian naive Bayes from one noisy release of moments by class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.releases import QueryRelease
from skpuffer.utils._bounds import (
    BOUNDS_LEAK,
    are_empirical,
    check_bounds,
    resolve_bounds,
)
from skpuffer.utils._deviation import noise_deviation
from skpuffer.utils._reading import floats, validate_rows
from skpuffer.utils._sklearn import StrOptions

from ._base import PrivateNaiveBayes
from ._moments import class_gaussians, class_moments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, Floats, RandomState

__all__ = ["PrivateGaussianNB"]


class PrivateGaussianNB(PrivateNaiveBayes):
    """Gaussian naive Bayes from one noisy release of moments by class.

    What scikit-learn's :class:`~sklearn.naive_bayes.GaussianNB` estimates: a normal
    distribution of each feature in each class.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
        Gaussian, Laplace and other noise will do, and pure epsilon
        (``GroupPrivacy(epsilon, noise='laplace')``).
    schema : Schema, default=None
        Public code book, by which a raw table is read, texts and missing values too.
        Its numbers are scaled by their bounds, its levels are columns of zeros and
        ones. It stands for `bounds` and, if it has a target, for `classes`.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features: numbers, or arrays of shape (n_features,), all
        lows before all highs; in a dict by name for a data frame, else by position,
        where keys that are no columns are passed over. What lies outside is clipped in
        `fit`. None takes the range the scenario declares (that of its public prior), as
        a dict does for columns it lacks. ``'empirical'`` reads the range off the
        private data, warns, and leaves an estimate for a certificate.
    classes : array-like, default=None
        Public class labels. A record with any other label counts as nothing. None takes
        those of the schema's target or, without one, those of `y` as public.
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes in sorted order. None takes their noisy
        shares.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    theta_ : ndarray of shape (n_classes, n_columns)
        Means of the columns in each class: of the features, or of the columns that the
        schema makes of them, scaled.
    var_ : ndarray of shape (n_classes, n_columns)
        Variances, positive; they include what noise leaves unknown of the means.
    class_count_ : ndarray of shape (n_classes,)
        Noisy sizes of the classes, whose sum is the public number of records.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : Noise
        The noise that was added to counts and moments, of features in [-1, 1].
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateCategoricalNB : Counts of cells, which take distributions of any shape.

    Notes
    -----
    *What is released.* One vector, the sum over the records of ``(1, u, u**2 - 1/2)``
    in the block of their class, with u the row scaled to [-1, 1] by its bounds. For d
    columns, adding or removing a record moves it by ``sqrt(1 + 5 d / 4)`` in l2 and
    ``1 + 3 d / 2`` in l1; replacing one by ``max(2 sqrt(d), sqrt(2 + 5 d / 2))`` and
    ``2 + 3 d``, as a record that changes class leaves one block for another.

    *What is made of it.* Sizes are brought to the public sum and shrunk to equal ones;
    means are shrunk to the mean of all records and variances to that within classes, as
    far as noise explains the difference. What noise leaves unknown of a mean is added
    to the variance, so that an uncertain class is a wide one. All of it is
    post-processing by public numbers.

    References
    ----------
    Vaidya, Shafiq, Basu and Hong (2013), Differentially private naive Bayes
    classification.

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
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.bounds = bounds
        self.classes = classes
        self.priors = priors
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_bounds(self.bounds)
        self._check_priors()
        if self.schema is None and self.bounds is None and scenario.any_records:
            raise UnsupportedError(
                Statement("bayes.bounds_missing", owner=type(self).__name__)
            )

    def _check_priors(self) -> None:
        if self.priors is None:
            return
        held = floats(self.priors)
        if held is None or held.ndim != 1 or not np.all(held >= 0):
            raise ValueError(
                Statement("bayes.priors_not_probabilities", priors=self.priors)
            )
        if not np.isclose(held.sum(), 1.0):
            raise ValueError(Statement("bayes.priors_sum_not_one", total=held.sum()))

    def _leaks(self) -> tuple[Statement, ...]:
        return (BOUNDS_LEAK,) if are_empirical(self.bounds) else ()

    def _read_rows(self, X: Any) -> tuple[Floats, None]:
        return validate_rows(self, X, dtype=np.float64, reset=True), None

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context  # of a fit, which knows the number of features
        n_classes = len(context.classes)
        if self.priors is not None and np.size(self.priors) != n_classes:
            raise ValueError(
                Statement(
                    "bayes.priors_count_mismatch",
                    size=np.size(self.priors),
                    n_classes=n_classes,
                )
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
            raise UnsupportedError(Statement("bayes.scenario_declares_no_bounds"))
        moments = class_moments(bounds, n_classes)
        return QueryRelease(
            query=moments.total,
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
        counts, means, variances = class_gaussians(
            value,
            noise_deviation(self.noise_, value.size),
            release.n_records,
            len(self.classes_),
        )
        self.class_count_ = counts
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
