"""Ridge regression by noisy gradients, or on noisy second moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from skpuffer._template._elsewhere import Part
from skpuffer._template._lazy_tables import in_unit_ball
from skpuffer._template._reading import counted, known_targets
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import (
    Statement,
)
from skpuffer.kernel.numbers import check_non_negative, check_option
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.releases import QueryRelease, Sensitivity, convert_norm
from skpuffer.training import make_loss
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._sklearn import Interval, StrOptions

from ._base_linear import (
    TargetScale,
    lazy_regression,
    warn_of_scale,
    with_intercept,
)
from ._base_sgd import LinearRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Loss
    from skpuffer.utils._types import Matrix, RandomState


#: Eigenvalue of the mean second moments that the longest steps of a run, a hundred of
#: momentum 0.95 and learning rate 2, come down to.
_RESOLVED = 1 / 4000


@dataclass(frozen=True)
class _Moments:
    """Contribution of a record to the second moments of a least-squares fit.

    Of z = (x / data_norm, intercept) and the target t, scaled to [-1, 1]: the upper
    triangle of z z' with its off-diagonal entries times sqrt(2), so that its l2 norm
    would be ``|z|**2``, but for the last, which is the same for all records, and z t.
    """

    data_norm: float
    intercept: float
    n_features: int
    target: TargetScale = TargetScale()
    #: Whether every record counts, so that it is known what constants add up to.
    all_count: bool = True

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of the moments to moves of the features, targets staying."""
        # With p = z + w and q = z - w, z z' - w w' is (p q' + q p') / 2, of squared
        # norm (|p|**2 |q|**2 + (p q)**2) / 2, where |p|**2 = 2 |z|**2 + 2 |w|**2 - d**2
        # and p q = |z|**2 - |w|**2. |z|**2 and |w|**2 are at most 1 + intercept**2;
        # `surface` is the square of the bound over d where both rows are as long as can
        # be, `radius` where they lie on one radius of the ball, and both count z t
        extra = 2 * self.intercept**2
        d = np.linalg.norm(gaps, axis=1) / self.data_norm
        # a ball is no wider than 2, and d sqrt(surface) is largest at sqrt(3 + extra):
        # whatever may move further is charged that
        d = np.minimum(d, min(2.0, np.sqrt(3 + extra)))
        surface, radius = 3 + extra - d**2 / 2, 5 + extra - 4 * d + d**2
        # all other norms from the one in l2, for vectors of this length
        moves: Floats = d * np.sqrt(np.maximum(surface, radius))
        return moves * convert_norm(1.0, 2, norm, self.dim)

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Contributions, of shape (n, dim)."""
        z = np.asarray(self.rows(X))
        i, j = self.triangle
        weights = np.where(i == j, 1.0, np.sqrt(2))
        products = z[:, i] * z[:, j] * weights
        moments = np.hstack([products, z * self.target(y)[:, None]])
        mask = counted(np.asarray(y, dtype=float))
        return moments if mask is None else np.where(mask[:, None], moments, 0.0)

    def prepared(self, columns: Sequence[Any]) -> list[Any]:
        """Rows and targets of an engine, scaled; :meth:`parts` are made of them."""
        *features, target = columns
        return [*in_unit_ball(features, self.data_norm), self.target.scaled(target)]

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Numbers whose sums are asked of an engine: products of rows and targets."""
        *z, target = columns
        last = self.n_features
        # the constant's column is one here, and takes its value in `from_parts`
        products = [
            z[i] if j == last else z[i] * z[j]
            for i, j in zip(*self.triangle, strict=True)
        ]
        crossed = [*(row * target for row in z), *([target] if self.intercept else [])]
        return [Part(values) for values in (*products, *crossed)]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sum of the contributions from those of :meth:`parts`, of shape (1, dim)."""
        i, j = self.triangle
        ones = np.ones(self.n_features)
        constants = np.append(ones, self.intercept) if self.intercept else ones
        weights = np.where(i == j, 1.0, np.sqrt(2)) * constants[i] * constants[j]
        summed: Floats = sums * np.concatenate([weights, constants])
        return summed

    @property
    def width(self) -> int:
        return self.n_features + bool(self.intercept)

    @property
    def triangle(self) -> tuple[Indices, Indices]:
        i, j = np.triu_indices(self.width)
        # what a constant adds up to is known: the number of records is public
        return (i[:-1], j[:-1]) if self._is_known else (i, j)

    @property
    def _is_known(self) -> bool:
        return bool(self.intercept) and self.all_count

    @property
    def dim(self) -> int:
        return len(self.triangle[0]) + self.width

    @property
    def norm(self) -> float:
        """Largest l2 norm of one record's moments: of z z' beside ``|z| |t|``."""
        # |z| is at most sqrt(1 + intercept^2) and |t| at most one; the constant's own
        # square is none of them
        squared = 1.0 + self.intercept**2
        known = self.intercept**4 if self._is_known else 0.0
        return float(np.sqrt(squared**2 + squared - known))

    def rows(self, X: Matrix) -> Matrix:
        # the unit ball, whatever the units of the data: the sensitivity is a constant;
        # rows that are clipped in float32 may be longer by more than a step of the grid
        X = X if sparse.issparse(X) else np.asarray(X)
        rows = clip_rows(X.astype(np.float64, copy=False), self.data_norm)
        rows = rows / self.data_norm
        return with_intercept(rows, self.intercept)

    def total(self, X: Matrix, y: ArrayLike) -> Floats:
        """Sum over all records by matrix products, without one row for each."""
        X, y = known_targets(X, np.asarray(y, dtype=float))
        z = self.rows(X)
        square = safe_sparse_dot(z.T, z, dense_output=True)
        i, j = self.triangle
        weights = np.where(i == j, 1.0, np.sqrt(2))
        cross = safe_sparse_dot(z.T, self.target(y))
        return np.concatenate([square[i, j] * weights, cross])

    def unpack(self, value: Floats, n_records: float) -> tuple[Floats, Floats]:
        """Return the symmetric matrix and the vector of a sum over some records."""
        i, j = self.triangle
        # symmetric by construction: noise was drawn for one triangle
        square = np.zeros((self.width, self.width))
        square[i, j] = value[: len(i)] / np.where(i == j, 1.0, np.sqrt(2))
        if self._is_known:
            square[-1, -1] = n_records * self.intercept**2
        return square + np.triu(square, 1).T, value[len(i) :]


class PrivateRidge(LinearRegressor):
    """Fit a ridge regression by noisy gradients, or on noisy second moments.

    Clipped gradients take a fraction of the noise under differential privacy. The
    moments are the sums of x x' and of x y, from which the coefficients are solved.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    solver : {'auto', 'gradient', 'moments'}, default='auto'
        ``'gradient'`` trains by noisy clipped gradients, ``'moments'`` releases the
        sums. ``'auto'`` takes moments where a scenario bounds how far the secret moves
        a record, the accountant does not support gradients, or there are beyond some
        10^5 records; otherwise gradients.
    alpha : float, default=1.0
        Regularisation strength on rows in units of `data_norm` and targets in units of
        half their range; at least what keeps the noisy moments solvable is added.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target; required. Values outside are clipped.
    fit_intercept : bool, default=True
        Whether to add a constant column; for moments it is regularised like the others.
    intercept_scaling : float, default=0.5
        Value of that column in units of `data_norm`. It counts in the noise.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, and the
        target's bounds. Numbers are scaled by their bounds, levels become a column
        each, and rows lie in the unit ball.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped (gradients alone). Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    intercept_ : float
        Noisy intercept.
    n_steps_ : int
        Number of noisy gradient sums; gradients only.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun; gradients only.
    release_ : GradientRelease
        The release that was accounted and run; gradients only.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the moments, or to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    Steps, clip norm and learning rate of gradients follow
    :func:`skpuffer.training.run_defaults`. For moments, negative eigenvalues of the
    noisy matrix are set to zero, and the noise's expected spectral norm is added to the
    diagonal.

    References
    ----------
    Wang (2018), Revisiting differentially private linear regression, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skpuffer.linear_model import PrivateRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PrivateRidge(data_norm=0.15, target_bounds=(25, 350)).fit(X, y)
    >>> model.certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "solver": [StrOptions({"auto", "gradient", "moments"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "target_bounds": ["array-like", None],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    }

    # of gradients, and left to the rule: who wants other ones has PrivateSGDRegressor
    training = max_iter = None

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        solver: str = "auto",
        alpha: float = 1.0,
        data_norm: float = 1.0,
        target_bounds: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.solver = solver
        self.alpha = alpha
        self.data_norm = data_norm
        self.target_bounds = target_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.schema = schema
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    _lazy_columns = lazy_regression

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        check_option(("auto", "gradient", "moments"), solver=self.solver)
        check_non_negative(alpha=self.alpha)

    def _loss(self) -> Loss:
        return make_loss("squared_error")

    def _l2(self, context: PublicContext) -> float:
        # sum of squared errors + alpha |w|^2, of which half the mean is trained
        return float(self.alpha) / context.n_records

    def _reads_units(self) -> bool:
        # moments of rows are sums, of which a unit moves as many as it has rows
        return bool(self.solver == "gradient")

    def _by_gradients(self, task: Task) -> bool:
        # from parameters and public facts alone
        if self.solver != "auto":
            return bool(self.solver == "gradient")
        # moments of records with weights are not released
        if self.weight_bounds is not None:
            return True
        # who reads no query says why it refuses gradients, if it does
        if QueryRelease not in task.accountant.reads:
            return True
        # moments move as far as a record does, of which gradients would make nothing
        if not task.scenario.any_records or task.scenario.needs_empirical:
            return False
        probe, n = self._probe(task), task.context.n_records
        if not task.accountant.supports(probe, task.scenario):
            return False
        moments = self._moments(self.n_features_in_)
        noise = self._look(task).deviation / probe.total_clip_norm
        spectral = math.sqrt(2 * moments.width) * moments.norm * noise
        return probe.clip_order != 2 or spectral > _RESOLVED * n

    def _moments(self, n_features: int) -> _Moments:
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return _Moments(
            float(self.data_norm),
            intercept,
            n_features,
            # a record without a target counts as nothing, and how many do is private
            all_count=not self._target_may_lack or self._fills_targets,
        )

    def _release(self, task: Task) -> Any:
        """A gradient release or a query release, by the solver and the scenario."""
        if self._by_gradients(task):
            return super()._release(task)
        context: Any = task.context
        warn_of_scale(self, task)
        # read by the contribution, so that a prior's targets are scaled as the data's
        target = self._target
        moments = replace(self._moments(context.n_features), target=target)
        low, high = map(float, self._bounds_of_target)
        return QueryRelease(
            # the same sum as of the contributions, without an array of them
            query=moments.total,
            name="second moments of features and target",
            n_records=context.n_records,
            dim=moments.dim,
            contribution=moments,
            is_sum=True,
            sensitivity=Sensitivity(add_remove={2: moments.norm}),
            context=context,
            assumptions=(
                Statement(
                    "assume.ridge_rows_targets_clipped",
                    data_norm=self.data_norm,
                    low=low,
                    high=high,
                ),
            ),
        )

    def _publish(self, value: Any, release: Any) -> None:
        if not isinstance(release, QueryRelease):
            super()._publish(value, release)
            self.intercept_: Any = float(self.intercept_[0])
            return
        # everything below is post-processing of the noisy moments and public scales
        moments = self._moments(self.n_features_in_)
        square, cross = moments.unpack(value, release.n_records)
        # noise makes the matrix indefinite: its negative eigenvalues are set to zero
        values, vectors = np.linalg.eigh(square)
        # off the diagonal the noise's deviation is that of the release over sqrt(2), so
        # its spectral norm is close to sqrt(2 width) deviations (Wigner)
        # regularising by that much keeps the solution stable against what the noise did
        # to small eigenvalues (Wang 2018); the scale is public, so this reads no data
        spread = float(np.max(self.noise_.std()))
        ridge = float(self.alpha) + np.sqrt(2 * moments.width) * spread
        weights = vectors @ ((vectors.T @ cross) / (np.maximum(values, 0.0) + ridge))
        target = self._target
        # back to the units of the data: of the rows, and of the target about its middle
        self.coef_ = weights[: self.n_features_in_] * target.half / self.data_norm
        self.intercept_ = target.centre
        if self.fit_intercept:
            self.intercept_ += weights[-1] * self.intercept_scaling * target.half
