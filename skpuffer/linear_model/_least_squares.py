"""Least squares with standard errors, on noisy second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer._template._elsewhere import Part
from skpuffer._template._lazy_tables import clipped
from skpuffer._template._reading import counted
from skpuffer._template._weights import Weighting, without_weights
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import (
    Statement,
    scenario_error,
)
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.releases import QueryRelease, Sensitivity, convert_norm
from skpuffer.scenarios import LawsScenario
from skpuffer.summary._gaps import gap_weight, with_count, with_gaps
from skpuffer.summary._mean import (
    BoundedColumnsMixin,
    divisor_of,
    relation_of,
)
from skpuffer.utils._sklearn import StrOptions

from ._base_linear import LinearRegressorMixin, TargetScale, lazy_regression
from ._coefficients import (
    CodedColumns,
    CoefficientsMixin,
    Moments,
    coded_columns,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, RandomState, Table


# What the variance of the noise of one moment is worth, beside that of a moment of the
# target: slopes are small numbers where columns and target are in [-1, 1], and they
# multiply the noise of moments of columns. The spread of the target is one number for
# all of them.
_OF_MEANS, _OF_SPREAD = 0.25, 0.1
# and that of the number of records, where it is private
_OF_SIZE = 0.1
_MOST_OF_PAIRS, _OF_ALL_PAIRS = 0.25, 0.75

#: Slope that is looked for at most where nothing is known, in deviations of the target.
_STEEPEST = 3.0


@dataclass(frozen=True)
class CrossProducts(CodedColumns):
    """Contribution of a record to the moments of a least-squares fit.

    With every number in [-1, 1], levels as zeros and ones, and w = (1, columns,
    target), it is the products of all pairs of w that are not known beforehand, squares
    less one half.

    Parameters
    ----------
    numbers : tuple of int
        Columns that are numbers.
    bounds : Bounds
        Bounds of these.
    levels : tuple of tuple of int
        Columns of zeros and ones of each category.
    target : TargetScale
    marks : tuple of int, default=()
        Columns that are one where a number is missing.
    lacks : bool, default=False
        Whether a record may lack its target or a number: it is then counted alone.
    weight : float, default=1.0
        Contribution of such a record, or of one that lacks nothing.
    counts_present : bool, default=False
        Whether records that lack nothing are counted instead.
    weighting : Weighting, default=None
        Public facts about weights, the last two columns. A record of the weight s adds
        s times what it adds otherwise, and the rest is counted as lacking.

    Notes
    -----
    *Weights.* The noise of all entries has one deviation, and the entry k is multiplied
    by a public weight ``c_k``. If a slope's variance has the noise of an entry with the
    importance ``a_k``, then ``sum(a_k / c_k**2)`` at a given sensitivity
    ``sqrt(sum(c_k**2 m_k))``, where no record adds more than ``m_k`` to the square of
    an entry, is least at ``c_k**4 = a_k / m_k`` (Cauchy and Schwarz). Any weights are
    valid.
    """

    target: TargetScale
    marks: tuple[int, ...] = ()
    lacks: bool = False
    weight: float = 1.0
    counts_present: bool = False
    weighting: Weighting | None = None
    #: Entries: places in w, weights, and what is taken off.
    first: Indices = field(init=False, repr=False, compare=False)
    second: Indices = field(init=False, repr=False, compare=False)
    weights: Floats = field(init=False, repr=False, compare=False)
    centres: Floats = field(init=False, repr=False, compare=False)
    #: Sum of squares, and of absolute values, of what a record can add.
    largest: tuple[float, float] = field(init=False, repr=False, compare=False)

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    def __post_init__(self) -> None:
        blocks, place = [[0]], 1
        for width in (*(1 for _ in self.numbers), *map(len, self.levels), 1):
            blocks.append(list(range(place, place + width)))
            place += width
        n_numbers, last = len(self.numbers), len(blocks) - 1
        of_pairs = min(_MOST_OF_PAIRS, _OF_ALL_PAIRS / max(1, last - 1))
        entries: list[tuple[int, int, float, float]] = []
        squares = moves = 0.0
        for a in range(len(blocks)):
            for b in range(a, len(blocks)):
                is_square = a == b
                if is_square and not (0 < a <= n_numbers or a == last):
                    continue  # known, or the same as a mean
                importance = _importance(a, b, last, of_pairs)
                most = 0.25 if is_square else 1.0
                scale = (importance / most) ** 0.25
                squares += scale**2 * most
                moves += scale * math.sqrt(most)
                entries += [
                    (i, j, scale, 0.5 * is_square) for i in blocks[a] for j in blocks[b]
                ]
        first, second, weights, centres = zip(*entries, strict=True)
        found = {
            "first": np.array(first),
            "second": np.array(second),
            "weights": np.array(weights),
            "centres": np.array(centres),
            "largest": (squares, moves),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """Number of places of w."""
        return len(self.columns) + 2

    @property
    def dim(self) -> int:
        """Number of entries, and one of records that lack something, or nothing."""
        return len(self.first) + self.counts

    @property
    def counts(self) -> bool:
        """Whether records are counted, those that lack something or the others."""
        return self.lacks or self.counts_present or self.least < 1

    @property
    def least(self) -> float:
        """Smallest share of what a record adds that it may have."""
        if self.lacks:
            return 0.0
        return 1.0 if self.weighting is None else self.weighting.least

    @property
    def present(self) -> Sensitivity:
        """Sensitivity of the sum where no record lacks anything."""
        squares, moves = self.largest
        alone = {1.0: moves, 2.0: math.sqrt(squares)}
        return Sensitivity(
            add_remove=alone, replace={n: 2 * value for n, value in alone.items()}
        )

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :func:`skpuffer.summary._gaps.with_gaps`."""
        if self.counts_present:
            return with_count(self.present, self.weight, self.least < 1)
        if not self.counts:
            return self.present
        return with_gaps(self.present, self.weight, self.least)

    def rows(self, X: Floats, y: ArrayLike) -> tuple[Floats, Floats | None]:
        """Return w of each record, and its share of what it adds; None is all of it."""
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        shares = None
        if self.weighting is not None:
            X, shares = without_weights(X)
        known = counted(y)
        missing = np.zeros(len(X), dtype=bool) if known is None else ~known
        missing |= np.any(X[:, list(self.marks)] > 0, axis=1)
        target = self.target(np.where(missing, self.target.centre, y))
        found = np.column_stack([self.coded(X), target])
        if self.lacks:
            present = (~missing).astype(float)
            shares = present if shares is None else shares * present
        return found, shares

    def __call__(self, X: Floats, y: ArrayLike) -> Floats:
        """Contributions, of shape (n, dim)."""
        w, shares = self.rows(X, y)
        found = self.weights * (w[:, self.first] * w[:, self.second] - self.centres)
        shares = np.ones(len(w)) if shares is None else shares
        found *= shares[:, np.newaxis]
        if not self.counts:
            return found
        counted = shares if self.counts_present else 1 - shares
        return np.column_stack([found, self.weight * counted])

    def total(self, X: Floats, y: ArrayLike) -> Floats:
        """Sum of the contributions by one product, of shape (dim,)."""
        w, shares = self.rows(X, y)
        size = float(len(w) if shares is None else shares.sum())
        part = w if shares is None else w * shares[:, np.newaxis]
        products = (w.T @ part)[self.first, self.second]
        found: Floats = self.weights * (products - size * self.centres)
        if not self.counts:
            return found
        counted = size if self.counts_present else len(w) - size
        return np.append(found, self.weight * counted)

    def parts(self, columns: Sequence[Any]) -> list[Part]:
        """Numbers whose sums are asked of an engine: the products of w."""
        *features, target = columns
        bounds = zip(self.bounds.middle, self.bounds.half, strict=True)
        u = [
            clipped(features[at] - float(middle), -half, half) / float(half)
            for at, (middle, half) in zip(self.numbers, bounds, strict=True)
        ]
        w = [None, *u, self.target.scaled(target)]
        pairs = zip(self.first, self.second, strict=True)
        return [Part(w[j] if i == 0 else w[i] * w[j]) for i, j in pairs]

    def from_parts(self, sums: Floats, counts: Floats) -> Floats:
        """Sum of the contributions from those of :meth:`parts`, of shape (1, dim)."""
        summed: Floats = self.weights * (sums - counts * self.centres)
        if not self.counts_present:
            return summed
        return np.append(summed, self.weight * counts, axis=1)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of each contribution to moves of its record's features.

        A product of two numbers in [-1, 1] moves by no more than both do, and by two at
        most; a square of one that moves by d by ``d (2 - d)``, and by one at most.
        """
        gaps = np.asarray(gaps, dtype=float)
        levels = [at for block in self.levels for at in block]
        w = np.zeros((len(gaps), self.width))
        n = len(self.numbers)
        w[:, 1 : n + 1] = gaps[:, list(self.numbers)] / self.bounds.half
        w[:, n + 1 : -1] = np.minimum(gaps[:, levels], 1.0)
        moves = np.minimum(w[:, self.first] + w[:, self.second], 2.0)
        square = self.first == self.second
        of_one = np.minimum(w[:, self.first[square]], 1.0)
        moves[:, square] = of_one * (2 - of_one)
        found = np.linalg.norm(self.weights * moves, 2, axis=1)
        found = found * convert_norm(1.0, 2.0, norm, len(self.first))
        # no further than any two records are
        found = np.minimum(found, self.present.value("replace", norm, self.dim))
        if self.marks:
            appears = np.any(gaps[:, list(self.marks)] > 0, axis=1)
            most = self.sensitivity.value("replace", norm, self.dim)
            found = np.where(appears, most, found)
        moved: Floats = found
        return moved

    def read(self, value: Floats, noise: Floats, n_records: float) -> Moments:
        """Return the moments off the noisy sum of contributions."""
        n_complete, counted = float(n_records), 0.0
        if self.counts:
            counted = float(value[-1]) / self.weight
            n_complete = counted if self.counts_present else n_complete - counted
        size = max(n_complete, 1.0)
        k = len(self.first)
        entries = value[:k] / self.weights + self.centres * size
        products = np.zeros((self.width, self.width))
        products[self.first, self.second] = entries
        places = [(np.arange(k), self.first, self.second, 1 / self.weights)]
        # the squares of levels are levels
        of_level = (self.first == 0) & (self.second > len(self.numbers))
        of_level &= self.second < self.width - 1
        at = self.second[of_level]
        products[at, at] = entries[of_level]
        places.append((np.flatnonzero(of_level), at, at, 1 / self.weights[of_level]))
        off = self.first != self.second
        places.append(
            (
                np.flatnonzero(off),
                self.second[off],
                self.first[off],
                1 / self.weights[off],
            )
        )
        products[self.second[off], self.first[off]] = entries[off]
        products[0, 0] = size
        if self.counts:
            square = self.first[~off]
            at = np.concatenate([[0], square])
            share = np.concatenate([[1.0], self.centres[~off]]) / self.weight
            sign = 1.0 if self.counts_present else -1.0
            places.append((np.full(len(at), k), at, at, sign * share))
        joined = [np.concatenate(part) for part in zip(*places, strict=True)]
        which, row, column, share = joined
        return Moments(products, size, noise, which, row, column, share)


def _importance(a: int, b: int, last: int, of_pairs: float) -> float:
    """Return what the noise of the moments of two columns is worth."""
    if b == last:
        return _OF_SPREAD if a == last else 1.0
    if a == 0:
        return _OF_MEANS
    # of a square there is one slope, of a pair there are two
    return of_pairs * (0.6 if a == b else 1.0)


@dataclass(frozen=True)
class Solution:
    """Least squares of noisy moments.

    Parameters
    ----------
    slopes : ndarray of shape (k,)
    of_noise, of_sample : ndarray of shape (k, k)
        Covariances that the noise and the sampling of records give them.
    residual : float
        Variance of the residuals; NaN where it drowns in noise.
    explained : float
        Share of the variance of the target.
    resolution : float
        Smallest eigenvalue of the moments in deviations of its noise.
    is_lost : ndarray of bool of shape (k,)
        Slopes of which nothing is known.
    """

    slopes: Floats
    of_noise: Floats
    of_sample: Floats
    residual: float
    explained: float
    resolution: float
    is_lost: Booleans


def solve(moments: Moments, design: Floats, shift: float) -> Solution:
    """Return least squares of moments, and their errors to the first order.

    With N the moments, w = (design @ slopes - shift e_0, -1) and A = design' N design,
    what the slopes solve is design' N w = 0. At the true slopes it is the noise of the
    residuals, of covariance ``residual * A``, and what was added to N. The covariance
    of the slopes is that of both between two inverses of A. With weights s up to one,
    the residuals have the covariance ``sum(s**2 e**2 x x') <= sum(s e**2 x x')``, which
    is ``residual * A``.

    Evans and King (2023), for errors of regressions on noisy moments by the delta
    method.
    """
    N = moments.products
    k = design.shape[1]
    outer = np.zeros(len(N))
    outer[0], outer[-1] = shift, 1.0
    target = design.T @ (N[:-1] @ outer)
    found = resolve(moments, design)
    A, inverse = found.matrix, found.inverse
    slopes = inverse @ target
    w = np.append(design @ slopes, 0.0) - outer
    of_w = moments.noise_along(w, design)
    errors = of_w.T @ of_w
    left = float(w @ N @ w + np.trace(inverse @ errors))
    # what is known of the residuals at best, and at worst
    unsure = float(np.linalg.norm(moments.times(w) @ w))
    degrees = max(moments.size - k, 1.0)
    residual = max(left, unsure) / degrees
    centred = N[-1, -1] - N[0, -1] ** 2 / moments.size
    steepest = min(2.0, _STEEPEST * math.sqrt(max(centred, unsure) / moments.size))
    for v in found.lost.T:
        # along these any slope may be true, and it multiplies noise of its own
        of_v = moments.noise_along(np.append(steepest * (design @ v), 0.0), design)
        errors = errors + of_v.T @ of_v
    total = centred if shift == 0.0 else float(outer @ N @ outer)
    is_known = left > 0 and total > 0
    return Solution(
        slopes=slopes,
        of_noise=inverse @ errors @ inverse,
        # to the first order it is the inverse
        of_sample=residual * (inverse @ A @ inverse),
        # of what noise drowns nothing is said
        residual=left / degrees if left > 0 else math.nan,
        explained=max(0.0, 1 - left / total) if is_known else math.nan,
        resolution=found.resolution,
        is_lost=found.is_lost,
    )


class PrivateLinearRegression(
    CoefficientsMixin, LinearRegressorMixin, BoundedColumnsMixin, PrivateEstimatorMixin
):
    """Fit least squares in the units of the data, with standard errors.

    The products of columns and target are released once with noise. Coefficients, their
    errors by the noise and by sampling, and tests follow from them.

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
        Values outside are clipped. 'empirical' reads the private data and warns. A
        :class:`~skpuffer.summary.PrivateBounds` spends a part of the budget.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target; required without a `schema`. Values
        outside are clipped.
    fit_intercept : bool, default=True
        Whether there is a constant beside the features.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with its
        own bounds. Each level of a category but the first is a column of zeros and
        ones. Records that lack the target or a number count as nothing.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the target by units of the feature; zero for the first
        level of a category, and for marks of missing numbers.
    intercept_ : float
        Constant, in units of the target.
    coef_std_ : ndarray of shape (n_features,)
        Standard deviation of the noise of `coef_`, to the first order (delta method).
        Infinite where the noise drowns the moments.
    intercept_std_ : float
        The same of the constant.
    residual_std_ : float
        Noisy standard deviation of the residuals, in units of the target. NaN where it
        drowns in noise.
    r_squared_ : float
        Noisy share of the target's variance that is explained, in [0, 1].
    n_complete_ : float
        Noisy number of records that lack nothing, or the sum of their weights; exact if
        public.
    resolution_ : float
        Smallest eigenvalue of the matrix of moments, in standard deviations of its
        noise. Below 3 some coefficients are unknown, and :meth:`summary` names them.
        Below 12 intervals are wider than they need be.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to the moments, of columns in half-ranges.
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
    PrivateLogit : The same for a target of two classes.
    PrivateRidge : Better predictions of small tables, without errors of coefficients.

    Notes
    -----
    *Errors.* Standard errors assume that records are drawn independently, that the
    residuals have one variance, and that bounds cut off little. Under ``of="table"``
    they are of the noise alone. With weights they are an upper bound of the sandwich
    estimator's, as each record is taken to have the largest weight beside its own.

    *Noise.* Of d columns some ``d**2 / 2`` products are released, and the noise of each
    grows like d. Bounds twice as wide as they need be cost up to four times the
    records.

    References
    ----------
    Evans and King (2023), Statistically valid inferences from differentially private
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.linear_model import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(50_000, 2))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1] + rng.normal(0, 5, size=50_000)
    >>> model = PrivateLinearRegression(bounds=(0, 10), target_bounds=(-30, 40))
    >>> low, high = model.fit(X, y).confidence_interval()["coef_"]
    >>> bool(np.all(high - low < 0.5) and np.all(np.abs(model.coef_ - [3, -2]) < 0.5))
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "target_bounds": ["array-like", None],
        "fit_intercept": ["boolean"],
    }

    fit = WeightedFit()

    _accept_sparse: str | bool = False

    _takes_any_size = True

    _sharp_from = 12.0

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        bounds: BoundsLike = None,
        target_bounds: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        weight_bounds: tuple[float, float] | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.fit_intercept = fit_intercept
        self.weight_bounds = weight_bounds
        self.schema = schema
        self.random_state = random_state

    _lazy_columns = lazy_regression

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if isinstance(scenario, LawsScenario):
            raise scenario_error("summary.laws_for_stacked_moments")

    def _release(self, task: Task) -> QueryRelease:
        context: Any = task.context  # of a fit, which knows the number of features
        bounds = self._public_bounds(task)
        if bounds is None:
            raise scenario_error("decomposition.scenario_without_bounds")
        columns = coded_columns(context, bounds)
        gaps = bool(columns["marks"])
        moments = CrossProducts(
            **columns,
            target=self._target,
            lacks=gaps or (self._target_may_lack and not self._fills_targets),
            weighting=task.weighting,
        )
        if context.size == "private":
            weight = _OF_SIZE**0.25
            moments = replace(moments, weight=weight, counts_present=True)
        elif moments.counts:
            relation, orders = relation_of(task.scenario), task.accountant.unit_orders
            weight = gap_weight(moments.present, relation, orders, moments.least)
            moments = replace(moments, weight=weight)
        low, high = map(float, self._bounds_of_target)
        return QueryRelease(
            # the same sum as of the contributions, without an array of them
            query=moments.total,
            contribution=moments,
            is_sum=True,
            dim=moments.dim,
            sensitivity=moments.sensitivity,
            n_records=context.n_records,
            name="second moments of features and target",
            context=context,
            assumptions=(
                Statement("assume.columns_target_clipped", low=low, high=high),
            ),
        )

    def _publish(self, value: Floats, release: Any) -> None:
        # everything below is post-processing of the noisy moments and public scales
        held, target = release.contribution, release.contribution.target
        noise = np.broadcast_to(self.noise_.std(value.size), value.shape)
        moments = held.read(value, noise, divisor_of(release.context))
        units = held.units
        shift = 0.0 if self.fit_intercept else target.centre / target.half
        found = solve(moments, units.design(self.fit_intercept), shift)
        means = moments.products[0, 1:-1] / moments.size
        self._set_slopes(release, units, found, means, target.half, target.centre)
        self.residual_std_ = target.half * math.sqrt(found.residual)
        self.r_squared_ = found.explained
        self.resolution_ = found.resolution
        unit = 1.0 if held.weighting is None else held.weighting.largest
        self.n_complete_ = unit * moments.size

    def predict(self, X: Table) -> Floats:
        """Predict the target of each row; a missing number becomes the noisy mean."""
        return self._scores(X)

    def _heads(self) -> dict[str, str]:
        return {
            "R-squared": f"{self.r_squared_:.3f}",
            "Residual std": f"{self.residual_std_:.4g}",
        }
