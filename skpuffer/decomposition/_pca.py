"""Principal components from one noisy release of second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._reading import without_secret
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_positive, floats
from skpuffer.releases import QueryRelease, Sensitivity, convert_norm
from skpuffer.schema import Number
from skpuffer.utils._bounds import (
    BOUNDS_LEAK,
    Bounds,
    are_empirical,
    check_bounds,
    resolve_bounds,
)
from skpuffer.utils._checks import noise_deviation
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import read_numbers, validate_rows
from skpuffer.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState, Table


def spectrum_edge(deviation: float, n_features: int) -> float:
    """Largest eigenvalue of a symmetric matrix of noise, in the limit (Wigner, 1958).

    `deviation` is that off the diagonal; on it sqrt(2) times as large.
    """
    return 2 * deviation * math.sqrt(n_features)


def noisy_spectrum(
    covariance: Floats, deviation: float
) -> tuple[Floats, Floats, float]:
    """Eigenvectors of a noisy covariance, and eigenvalues less what noise adds.

    An eigenvalue x above the noise is seen at ``x + d s**2 / x`` (Benaych-Georges and
    Nadakuditi, 2011, Theorem 2.1); those no larger than noise are zero. Components are
    rows with signs that depend on them alone, and the trace is at least the variances
    found.
    """
    d = len(covariance)
    seen, vectors = np.linalg.eigh(covariance)
    seen, components = seen[::-1], np.ascontiguousarray(vectors.T[::-1])
    _, components = svd_flip(None, components, u_based_decision=False)
    edge = spectrum_edge(deviation, d)
    above = np.maximum(seen**2 - edge**2, 0.0)
    found = np.where(seen > edge, (seen + np.sqrt(above)) / 2, 0.0)
    # without noise the smallest may be negative by rounding
    variances: Floats = np.maximum(found, 0.0)
    trace = max(float(np.trace(covariance)), float(variances.sum()))
    return variances, components, trace


def check_n_components(given: Any) -> None:
    """Refuse what is neither a number of components nor a part of the variance."""
    if given is None:
        return
    number = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
    if number and (isinstance(given, Integral) or float(given).is_integer()):
        number = isinstance(given, Integral) and int(given) >= 1
    elif number:
        number = 0 < given < 1
    if not number:
        raise ValueError(
            Statement("decomposition.n_components_by_likelihood")
            if given == "mle"
            else Statement("decomposition.n_components_not_valid", given=given)
        )


def number_kept(n_components: Any, ratios: Floats) -> int:
    """Number of components, of the noisy spectrum where a part of it is asked for."""
    if n_components is None:
        return len(ratios)
    if isinstance(n_components, Integral):
        return int(n_components)
    # with much noise all together may hold less than was asked for
    reached = np.cumsum(ratios) >= n_components
    return int(reached.argmax()) + 1 if reached.any() else len(ratios)


class PrivatePCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    PrivateEstimatorMixin,
):
    """Find principal components from one noisy release of means and products.

    As scikit-learn's :class:`~sklearn.decomposition.PCA`, on rows in a public ball.

    Parameters
    ----------
    n_components : int or float, default=None
        Number of components to keep; None is all. In (0, 1), as many as hold this part
        of the *noisy* variance.
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds: numbers, arrays of shape (n_features,) or a dict by name (by
        position for arrays). Values outside are clipped in `fit`, and the middle is the
        centre. None takes the scenario's range, unless there is a `data_norm`.
        'empirical' reads the private data and warns.
    center : float or array-like of shape (n_features,), default=None
        Public centre of the ball, instead of `bounds`; zero if None.
    data_norm : float, default=None
        Public radius of the ball: longer rows are moved towards the centre in `fit`.
        None is by the bounds: a length that few rows exceed whose numbers are
        independent and uniform. The noise is proportional to its square.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds` and `center`. Numbers are scaled to [-1, 1], levels are columns of
        zeros and ones.
    whiten : bool, default=False
        Whether components are divided by their standard deviation, or that of noise.
    estimate_mean : bool, default=True
        Whether the mean is released too. If not, the centre stands for it.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_columns)
        Orthonormal directions of the largest noisy variances, as rows.
    explained_variance_ : ndarray of shape (n_components,)
        Variances along them, less what noise adds; zero for noise alone.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as parts of the noisy total variance.
    singular_values_ : ndarray of shape (n_components,)
        Roots of the variances times ``n_records - 1``.
    mean_ : ndarray of shape (n_columns,)
        Noisy mean, or the public centre.
    n_components_ : int
        Number of components kept.
    noise_variance_ : float
        Mean variance of the components left out, as in scikit-learn.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the sums of moments of rows in the unit ball.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes ----- *The release* is the sum over records of ``(w z, z z' - I / d)`` with w
    = 1/2 and z the row in the unit ball. Adding or removing a record moves it by
    ``sqrt(1 + w**2 - 1 / d)`` in l2, replacing one by ``(2 + w**2) / sqrt(2)``.

    *Limits.* With about a hundred records at epsilon = 0.1 no method is better than a
    random basis. Features of wide range dominate: scale them by public numbers first.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang (2014), Analyze Gauss.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skpuffer.decomposition import PrivatePCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> PrivatePCA(2, bounds=(0, 16)).fit_transform(X).shape
    (1797, 2)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "n_components": [Integral, Real, str, None],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "center": ["array-like", Real, None],
        "data_norm": [Interval(Real, 0, None, closed="neither"), None],
        "whiten": ["boolean"],
        "estimate_mean": ["boolean"],
    }

    #: Numbers of a schema by their bounds in [-1, 1].
    _schema_scale = "box"

    def __init__(
        self,
        n_components: float | None = None,
        *,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        bounds: BoundsLike = None,
        center: ArrayLike | None = None,
        data_norm: float | None = None,
        schema: Schema | None = None,
        whiten: bool = False,
        estimate_mean: bool = True,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.center = center
        self.data_norm = data_norm
        self.schema = schema
        self.whiten = whiten
        self.estimate_mean = estimate_mean
        self.random_state = random_state

    # -- checks -------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        check_n_components(self.n_components)
        check_bounds(self.bounds)
        if self.data_norm is not None:
            check_positive(data_norm=self.data_norm)
        for first, second in (
            ("schema", "center"),
            ("bounds", "center"),
        ):
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise value_error(
                    "decomposition.bounds_told_twice", first=first, second=second
                )
        if self.center is not None:
            centre: Any = floats(self.center)
            if centre is None or centre.ndim > 1 or not np.all(np.isfinite(centre)):
                raise value_error("decomposition.center_not_finite", center=self.center)
            if self.data_norm is None:
                raise value_error("decomposition.center_without_data_norm")
        nothing = self.schema is None and self.bounds is None and self.data_norm is None
        if nothing and scenario.any_records:
            raise unsupported_error(
                "decomposition.bounds_missing", owner=type(self).__name__
            )

    def _leaks(self) -> tuple[Statement, ...]:
        return (BOUNDS_LEAK,) if are_empirical(self.bounds) else ()

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        X = validate_rows(self, X, dtype=np.float64)
        n, d = X.shape
        n_components: Any = self.n_components
        if n < 2:
            raise value_error("decomposition.too_few_records", n=n)
        if isinstance(n_components, Integral) and int(n_components) > d:
            raise value_error(
                "decomposition.n_components_above_columns",
                n_columns=d,
                n_components=n_components,
            )
        return X, None, None

    # -- the release --------------------------------------------------------------

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context  # of a fit, which knows the number of features
        moments = self._moments(task)
        return QueryRelease(
            query=moments.total,
            contribution=moments,
            is_sum=True,
            dim=moments.dim,
            sensitivity=moments.sensitivity,
            n_records=context.n_records,
            name="second moments",
            context=context,
            assumptions=(Statement("assume.rows_moved_into_ball"),),
        )

    def _moments(self, task: Task) -> SecondMoments:
        """Contribution of a record: the centre and radius of the ball of rows."""
        context: Any = task.context
        d, bounds = context.n_features, None
        weight = MEAN_WEIGHT if self.estimate_mean else 0.0
        if self.schema is not None:
            centre, radius = np.zeros(d), schema_norm(context.feature_map.schema)
        elif self.bounds is None and self.data_norm is not None:
            given: Any = 0.0 if self.center is None else self.center
            centre, radius = np.asarray(given, dtype=float), math.inf
        else:
            bounds = resolve_bounds(
                self.bounds, d, scenario=task.scenario, context=context, X=task.X
            )
            if bounds is None:
                raise unsupported_error("decomposition.scenario_without_bounds")
            centre = bounds.middle
            radius = usual_norm(bounds.half)
        if centre.ndim and len(centre) != d:
            raise value_error(
                "decomposition.center_length_mismatch",
                n_centre=len(centre),
                n_features=d,
            )
        return SecondMoments(
            centre=tuple(np.broadcast_to(centre, d).tolist()),
            radius=radius if self.data_norm is None else float(self.data_norm),
            weight=weight,
            bounds=bounds,
        )

    def _publish(self, value: Floats, release: Any) -> None:
        moments, n = release.contribution, release.n_records
        noise = noise_deviation(self.noise_, value.size)
        mean, products = moments.moments(value, n)
        # a noisy mean times itself is too large by the variance of its noise
        covariance = products - np.outer(mean, mean)
        if moments.weight:
            covariance[np.diag_indices_from(covariance)] += (
                noise / (moments.weight * n)
            ) ** 2
        # as scikit-learn's, of the sample; in the unit of the features
        unit = moments.radius**2 * n / (n - 1)
        deviation = unit * noise / (math.sqrt(2) * n)
        variances, components, trace = noisy_spectrum(unit * covariance, deviation)
        ratios = variances / trace if trace > 0 else np.zeros_like(variances)
        k = number_kept(self.n_components, ratios)
        self.n_components_ = k
        self.mean_ = np.asarray(moments.centre) + moments.radius * mean
        self.components_ = components[:k]
        self.explained_variance_ = variances[:k]
        self.explained_variance_ratio_ = ratios[:k]
        self.singular_values_ = np.sqrt((n - 1) * variances[:k])
        rest = variances[k:]
        self.noise_variance_ = float(rest.mean()) if len(rest) else 0.0
        # a direction of noise alone varies by as much, and is not blown up
        least = spectrum_edge(deviation, len(variances))
        scale = np.sqrt(np.maximum(variances[:k], least))
        self._scale = np.where(scale > 0, scale, 1.0)

    # -- post-processing ----------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def get_covariance(self) -> Floats:
        """Return the noisy covariance: positive semi-definite.

        Returns
        -------
        ndarray of shape (n_columns, n_columns)
            The components kept, and the mean variance of the others.
        """
        check_is_fitted(self)
        V = self.components_
        above = self.explained_variance_ - self.noise_variance_
        covariance: Floats = (V.T * above) @ V
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        return covariance

    def transform(self, X: Table) -> Floats:
        """Return rows by their components."""
        check_is_fitted(self)
        X = without_secret(self, X)
        rows = validate_rows(self, X, dtype=np.float64, reset=False)
        scores: Floats = (rows - self.mean_) @ self.components_.T
        return scores / self._scale if self.whiten else scores

    def inverse_transform(self, X: Table) -> Floats:
        """Return the rows that have these components, and no others."""
        check_is_fitted(self)
        scores = np.asarray(read_numbers(X), dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise value_error(
                "decomposition.components_shape_mismatch",
                n_components=self.n_components_,
                shape=scores.shape,
            )
        if self.whiten:
            scores = scores * self._scale
        rows: Floats = scores @ self.components_ + self.mean_
        return rows


# -- first and second moments of rows in a ball: contributions, and reading back -------


#: Weight of the mean beside the second moments.
MEAN_WEIGHT = 0.5


@dataclass(frozen=True)
class SecondMoments:
    """Contribution of a record: its row, and its products less those of a sphere.

    With ``z = (x - centre) / radius``, scaled down to the unit ball where it is longer,
    a record adds ``w z`` and the upper triangle of ``z z' - I / d``, whose entries off
    the diagonal are multiplied by sqrt(2), so that its l2 norm is the Frobenius norm.

    Parameters
    ----------
    centre : tuple of float
        Public.
    radius : float
        Public, in the unit of the features.
    weight : float
        Weight w of the mean, at most sqrt(2); zero leaves it out.
    bounds : Bounds or None
        To which features are clipped first.
    """

    centre: tuple[float, ...]
    radius: float
    weight: float = MEAN_WEIGHT
    bounds: Bounds | None = None

    @property
    def n_features(self) -> int:
        """Number d of features."""
        return len(self.centre)

    @property
    def dim(self) -> int:
        """Number of coordinates: the mean, the diagonal, the rest by rows."""
        d = self.n_features
        return d * bool(self.weight) + d * (d + 1) // 2

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :class:`Sensitivity`.

        Let q be the squared length of a row, at most one. That of its contribution is
        ``w**2 q + q**2 - 2 q / d + 1 / d``, convex in q and so largest at an end. Two
        rows at an angle of cosine c are ``2 w**2 (1 - c) + 2 (1 - c**2)`` apart, the
        square of ``(2 + w**2) / sqrt(2)`` at ``c = -w**2 / 2``; shorter rows are no
        further apart. In l1 each of both blocks is at most the root of its dimension
        times its l2 norm.
        """
        d, w = self.n_features, self.weight
        alone = max(1 - 1 / d, 1 / d)
        root, triangle = math.sqrt(d), math.sqrt(d * (d + 1) / 2)
        return Sensitivity(
            add_remove={
                1.0: w * root + triangle * math.sqrt(alone),
                2.0: math.sqrt(max(w**2 + 1 - 1 / d, 1 / d)),
            },
            replace={
                1.0: 2 * w * root + triangle * math.sqrt(2),
                2.0: (2 + w**2) / math.sqrt(2),
            },
        )

    def rows(self, X: Floats) -> Floats:
        """Rows in the unit ball, of shape (n, n_features)."""
        X = np.asarray(X, dtype=float)
        if self.bounds is not None:
            X = np.clip(X, self.bounds.low, self.bounds.high)
        clipped: Floats = clip_rows((X - np.asarray(self.centre)) / self.radius, 1.0)
        return clipped

    def __call__(self, X: Floats, y: ArrayLike | None = None) -> Floats:
        """Contributions, of shape (n, dim)."""
        z, d = self.rows(X), self.n_features
        first, second = np.triu_indices(d, 1)
        blocks = [z**2 - 1 / d, math.sqrt(2) * z[:, first] * z[:, second]]
        if self.weight:
            blocks.insert(0, self.weight * z)
        return np.hstack(blocks)

    def total(
        self,
        X: Floats,
        y: ArrayLike | None = None,
        weights: Floats | None = None,
    ) -> Floats:
        """Sum of the contributions, times weights, by one product, of shape (dim,)."""
        z, d = self.rows(X), self.n_features
        part = z if weights is None else z * weights[:, np.newaxis]
        size = len(z) if weights is None else weights.sum()
        products = z.T @ part
        blocks = [
            np.diag(products) - size / d,
            math.sqrt(2) * products[np.triu_indices(d, 1)],
        ]
        if self.weight:
            blocks.insert(0, self.weight * part.sum(axis=0))
        return np.concatenate(blocks)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of each contribution to moves of its record's features.

        Clipping moves no two rows apart, so both are in the ball and t apart at most.
        With p their middle and e their difference the products move by ``p e' + e p'``,
        whose squared length ``2 (|p|**2 t**2 + (p e)**2)`` is largest where both are as
        long as can be, or where one is and they lie on a line: ``t**2 (2 - t**2 / 2)``
        or ``t**2 (2 - t)**2``.
        """
        if self.bounds is not None:
            gaps = np.minimum(gaps, 2 * self.bounds.half)
        w = self.weight
        # up to there both grow with t; further apart no two rows move it further
        furthest = min(2.0, math.sqrt(2 + w**2))
        t = np.minimum(np.linalg.norm(gaps, axis=1) / self.radius, furthest)
        square = t**2 * (w**2 + np.maximum(2 - t**2 / 2, (2 - t) ** 2))
        factor = convert_norm(1.0, 2.0, norm, self.dim)
        moves: Floats = factor * np.sqrt(square)
        return moves

    def moments(self, value: Floats, n_records: float) -> tuple[Floats, Floats]:
        """Mean of the rows and of their products, from a sum of contributions."""
        d = self.n_features
        mean = np.zeros(d)
        if self.weight:
            mean, value = value[:d] / (self.weight * n_records), value[d:]
        products = np.zeros((d, d))
        products[np.triu_indices(d, 1)] = value[d:] / (math.sqrt(2) * n_records)
        products += products.T
        products[np.diag_indices(d)] = value[:d] / n_records + 1 / d
        return mean, products


def usual_norm(half: Floats, levels: int = 0) -> float:
    """Length that few rows exceed, by half the ranges of their numbers alone.

    Two standard deviations above the mean square of the length of independent numbers
    that are uniform within their bounds: ``h**2 / 3`` each, with the variance
    ``4 h**4 / 45``; `levels` have length one.
    """
    largest = float(np.max(half, initial=0.0)) or 1.0
    squares = np.square(half / largest)  # which could overflow
    usual = squares.sum() / 3 + 2 * math.sqrt(4 * np.square(squares).sum() / 45)
    return math.hypot(math.sqrt(usual) * largest, math.sqrt(levels))


def schema_norm(schema: Schema) -> float:
    """Length that few rows of a schema exceed, its numbers scaled to [-1, 1]."""
    numbers = sum(isinstance(schema[name], Number) for name in schema.names)
    return usual_norm(np.ones(numbers), levels=len(schema) - numbers)
