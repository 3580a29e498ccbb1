"""How far the clipped gradient of a linear model moves with its record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_non_negative, check_positive
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.utils._clipping import clip_rows, row_norms

from ._base import LinearGradients
from ._losses import Huber, HuberHinge, Logistic, Multinomial, Squared
from ._rows import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import GradientRelease

    from ._base import Gradients
    from ._losses import Loss


#: Losses that are convex and smooth.
_CONVEX = (Huber, HuberHinge, Logistic, Multinomial, Squared)


@dataclass(frozen=True, kw_only=True)
class RecordGradient:
    """Say how the gradients of a linear model move with a record.

    As the `record` of a :class:`~skpuffer.releases.GradientRelease` it lets accountants
    charge for how far a scenario moves a record.

    Parameters
    ----------
    loss : Loss
    data_norm : float
        Rows are scaled down to this l2 norm, and are in units of it.
    intercept : float
        Constant appended to a row, in the same units; zero for none.
    n_classes : int, default=None
        None for a regression.
    target_scale : tuple of float, default=(0.0, 1.0)
        Centre and half range of a regression's targets, which are clipped to it.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease, Optimiser
    >>> from skpuffer.training import Logistic, RecordGradient
    >>> release = GradientRelease(
    ...     n_records=400,
    ...     n_steps=50,
    ...     sampling="full_batch",
    ...     record=RecordGradient(
    ...         loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2
    ...     ),
    ...     optimiser=Optimiser(learning_rate=1.0, radius=4.0),
    ... )
    >>> release.modulus(0.02), release.sensitivity.value("replace", 2, None)
    (0.03125, 2.0)
    """

    loss: Loss
    data_norm: float
    intercept: float
    n_classes: int | None = None
    target_scale: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_positive(data_norm=self.data_norm)
        check_non_negative(intercept=self.intercept)
        # of other targets a gradient is made in another way than its point
        fits = self.n_classes is None
        if self.loss.classification:
            least, most = (2, math.inf) if self.loss.indexed else (2, 2)
            fits = self.n_classes is not None and least <= self.n_classes <= most
        if not fits:
            raise value_error(
                "training.n_classes_unfit_for_loss",
                loss=self.loss,
                n_classes=self.n_classes,
            )

    @property
    def row_norm(self) -> float:
        """Largest l2 norm of a row, the intercept's constant included."""
        return math.hypot(1.0, self.intercept)

    @property
    def unclipped_norm(self) -> float:
        """Clip norm to which no gradient has to be scaled down; infinite if none."""
        # what is taken off a clip norm for roundings is less than is added here
        return self.loss.lipschitz * self.row_norm * (1 + 2.0**-9)

    @property
    def curvature(self) -> float:
        """Largest curvature of a record's loss in the parameters, inf at a corner."""
        return self.loss.smoothness * self.row_norm**2

    def step_obstacle(self, clip_norm: float) -> Statement | None:
        """Return what keeps clipped gradients from being those of a smooth convex loss.

        For such a loss, a short step of gradient descent brings no two iterates further
        apart.

        Parameters
        ----------
        clip_norm : float
            Norm for l2 clipping of the whole gradient.

        Returns
        -------
        str or None
            A clause with the remedy; None if nothing does.

        Notes
        -----
        With one score s a clipped gradient is a multiple of the row, by the derivative
        cut off at both sides: a slope that does not fall with s, and no faster than the
        derivative rises. With more scores the projection is no gradient.

        Examples
        --------
        >>> from skpuffer.training import Hinge, RecordGradient
        >>> facts = {"data_norm": 1.0, "intercept": 0.0, "n_classes": 2}
        >>> RecordGradient(loss=Hinge(), **facts).step_obstacle(0.3) is None
        False
        """
        # by exact type: what a subclass makes of a derivative is not known
        if math.isinf(self.loss.smoothness):
            return Statement("gradient.loss_has_corner", loss=self.loss)
        if type(self.loss) not in _CONVEX:
            return Statement("gradient.loss_not_known_convex", loss=self.loss)
        if self.loss.indexed and clip_norm < self.unclipped_norm:
            return Statement(
                "gradient.several_scores_scaled_down",
                unclipped_norm=self.unclipped_norm * 1.001,
            )
        return None

    def longest(self, radius: float) -> float:
        """Largest l2 norm of a gradient at parameters in the ball of a radius."""
        norm = self.row_norm
        return norm * self.loss.largest_derivative(norm * radius)

    def label_move(self, clip_norm: float) -> float:
        """Bound how far the clipped gradient moves, in l2, with the target alone."""
        # targets of a regression are within [-1, 1]
        span = 2.0 if self.n_classes is None else 1.0
        return min(2 * clip_norm, self.row_norm * span * self.loss.label_slope)

    def clipped(self, clip_norm: float, radius: float | None) -> ClippedGradient | None:
        """Return the record's gradient, clipped in l2, or None if nothing is known."""
        found = ClippedGradient(self, clip_norm, radius)
        return found if found.ceiling > 0 else None

    def pair_costs(self, X: Any, y: Any, release: GradientRelease) -> Floats:
        """Return how far a sum moves when a record becomes another of some records.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Public records, in the units of the data.
        y : array-like of shape (n,) or None
            Their targets; None is any.
        release : GradientRelease

        Returns
        -------
        ndarray of shape (n, n)
            Symmetric, rounded up, and at most twice the clip norm; zero on the diagonal
            where targets are given.
        """
        rows = clip_rows(X, self.data_norm)
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, float)
        if y is not None and self.n_classes is None:
            centre, half = self.target_scale
            y = np.clip((np.asarray(y, dtype=float) - centre) / half, -1.0, 1.0)
        return corner_costs(
            self.loss,
            rows / self.data_norm,
            y,
            release,
            intercept_scale=self.intercept,
        )

    def check(self, gradients: Gradients) -> None:
        """Refuse to be executed with other gradients than those it speaks of."""
        mine = (self.loss, self.intercept)
        if type(gradients) is not LinearGradients or mine != (
            gradients.loss,
            gradients.intercept_scale,
        ):
            raise value_error(
                "gradient.record_of_other_gradients",
                loss=self.loss,
                intercept=self.intercept,
            )
        if gradients.weights is not None:
            raise value_error("gradient.record_with_unit_weights")
        # roundings of a float32 sum are not covered by a small move
        if gradients.rows.dtype != np.float64:
            raise value_error("gradient.record_needs_float64")
        # up to the rounding of norms, which are rounded up
        longest = gradients.rows.norms(2).max(initial=0.0)
        if self.n_classes is None:
            longest = max(longest, np.abs(gradients.y).max(initial=0.0))
        if longest > 1 + 1e-9:
            raise value_error("gradient.record_rows_not_scaled")


@dataclass(frozen=True)
class RecordPoint:
    """Map from a record to the point by whose move its gradient's is bounded.

    It is the signed row ``z = y x`` (y = ±1) for two classes, of which alone the
    gradient is made. For a regression the target stands beside the row, in units of
    half its range; for more classes, labels do, so far apart that nothing is gained
    from a record that changes its own.

    Parameters
    ----------
    apart : float
        How far apart rows of different labels are at least, of more than two.
    """

    record: RecordGradient
    apart: float

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    def __call__(self, X: Any, y: Any = None) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        record = self.record
        rows = clip_rows(X, record.data_norm)
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, float)
        constant = np.full((len(rows), 1), record.intercept)
        points: Floats = np.hstack([rows / record.data_norm, constant])
        if record.n_classes is None:
            centre, half = record.target_scale
            target = np.clip((np.asarray(y, dtype=float) - centre) / half, -1.0, 1.0)
            points = np.hstack([points, target.reshape(-1, 1)])
        elif record.n_classes == 2:
            points = points * (2.0 * np.asarray(y) - 1.0)[:, None]
        else:
            # two unit vectors are sqrt(2) apart
            apart = self.apart / math.sqrt(2)
            labels = np.eye(record.n_classes)[np.asarray(y)]
            points = np.hstack([points, apart * labels])
        return points

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points to moves of the features, targets staying."""
        # Clipping projects rows onto a ball: no two come further apart, and none than
        # it is wide. The constant and the sign do not move.
        moves = np.linalg.norm(gaps, axis=1) / self.record.data_norm
        nearest: Floats = np.minimum(moves, 2.0)
        return nearest


@dataclass(frozen=True)
class ClippedGradient:
    """Map from moves of a record's point to those of its clipped gradient.

    Parameters
    ----------
    clip_norm : float
        Norm for l2 clipping of the whole gradient.
    radius : float or None
        Radius of the l2 ball in which all gradients are taken.
    """

    record: RecordGradient
    clip_norm: float
    radius: float | None

    @property
    def point(self) -> RecordPoint:
        """The points that are compared."""
        record, several = self.record, (self.record.n_classes or 0) > 2
        # two classes and regressions have the same ones however they are clipped; a
        # little more, for the rounding of distances
        return RecordPoint(record, self._reach * (1 + 1e-9) if several else 0.0)

    @property
    def _any(self) -> float:
        """Largest distance of any two clipped gradients."""
        longest = self.record.loss.lipschitz * self.record.row_norm
        return 2 * min(self.clip_norm, longest)

    @property
    def _lipschitz(self) -> float:
        """Lipschitz constant of the gradient in the point, inf if there is none."""
        if self.radius is None:
            return math.inf
        loss, longest = self.record.loss, self.record.row_norm
        slope = loss.gradient_lipschitz(longest * self.radius)
        if self.record.n_classes is None:
            # the target moves the derivative as well; both moves at once, by
            # Cauchy-Schwarz
            slope = math.hypot(slope, longest * loss.label_slope)
        return slope

    @property
    def ceiling(self) -> float:
        """Move of a point from which on it is not worth to know how far it is."""
        smooth = self._any / self._lipschitz
        # without a ball a shorter clip norm has a corner bound that is less
        return smooth if smooth > 0 else self._reach

    @property
    def _reach(self) -> float:
        """Move of a point at which its gradient's bound is that of any two records."""
        most, record = self._any, self.record
        # where both bounds have reached that of any two records
        smooth = most / self._lipschitz
        corner = record.loss.corner_move(most, self.clip_norm, record.row_norm)
        if math.isinf(corner):
            return smooth
        # that of one score reaches it at `most` itself; that of several, which rises
        # with slope sqrt(2), as much earlier as it is above it there
        return max(smooth, most - (corner - most) / math.sqrt(2))

    def gradient_move(self, shift: float) -> float:
        """Bound how far the clipped gradient moves, in l2, with its point.

        Clipping in l2 is a projection onto a ball, which moves no two gradients apart.
        """
        if shift == 0:
            return 0.0
        record = self.record
        corner = record.loss.corner_move(shift, self.clip_norm, record.row_norm)
        return min(self._any, corner, self._lipschitz * shift)

    def statement(self, shift: float) -> Statement:
        """Return how the bound for the largest move was found, in a sentence."""
        record = self.record
        space = Statement("assume.gradient_row_labels_stay")
        if record.n_classes is None:
            space = Statement("assume.gradient_row_and_target")
        elif record.n_classes == 2:
            space = Statement("assume.gradient_row_signed")
        found = self.gradient_move(shift)
        if found >= self._any:
            how = Statement("assume.gradient_no_two_further")
        elif found < self._lipschitz * shift:
            how = Statement("assume.gradient_corner_bound")
            if self.radius is not None and math.isfinite(self._lipschitz):
                how = Statement("assume.gradient_corner_below_projection")
        else:
            how = Statement(
                "assume.gradient_projected_lipschitz",
                radius=self.radius,
                lipschitz=self._lipschitz,
            )
        return Statement(
            "assume.gradient_record_move_bounded",
            shift=shift,
            space=space,
            data_norm=record.data_norm,
            found=found,
            how=how,
        )


# -- corner costs ----------------------------------------------------------------------
# How far a sum of clipped gradients moves when a record becomes a given other one.


_EPS = float(np.finfo(float).eps)


def corner_costs(
    loss: Loss,
    X: ArrayLike,
    y: ArrayLike | None,
    release: GradientRelease,
    *,
    intercept_scale: float = 1.0,
    relabelled: Floats | None = None,
    dtype: type = np.float64,
) -> Floats:
    """Bound how far the sum moves, for all pairs of some records and all parameters.

    Parameters
    ----------
    y : array-like of shape (n,) or None
        Targets; class indices for classification. None is the largest over all targets;
        the diagonal is then of records whose targets alone differ.
    release : GradientRelease
        Its `clip_norm`, `clip_order` and `blocks` are obeyed.
    relabelled : ndarray of shape (n,), default=None
        How far the clipped gradient moves at most when a record's target alone changes.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric, at most twice the clip norm; rounded up, with what rounding may add
        to a sum. Zero on the diagonal where targets are given.

    Notes
    -----
    A gradient is the outer product of the derivative of the loss by the scores, no
    longer than ``loss.lipschitz``, and of the features x. Clipped, its length r is
    anywhere up to R = min(C, lipschitz ‖x‖). The distance of two is convex in either
    length, so largest at a corner: R, R', or ``√(R² + R'² - 2 R R' κ)`` with κ the
    least product of the cosines of the derivatives and of the features. A penalty must
    be added outside the clip. Parts that are clipped apart add up in squares. Where
    targets differ, the target may change first.
    """
    X = np.asarray(X, float)
    n, total = len(X), release.total_clip_norm
    whole = release.blocks is None or not intercept_scale
    constant = np.full((n, 1), intercept_scale)
    parts = [np.hstack([X, constant])] if whole else [X, constant]
    norms: Any = [total] if whole else release.clip_norm
    # with one target and with two; another norm than the l2 has no angles
    costs = [np.full((n, n), 2 * total) for _ in loss.cosines]
    if release.clip_order == 2:
        costs = [
            np.sqrt(
                sum(
                    _squares(part, norm, loss.lipschitz, cosines)
                    for part, norm in zip(parts, norms, strict=True)
                )
            )
            for cosines in loss.cosines
        ]
    alike, other = costs
    ids = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    alike[ids[:, None] == ids] = 0.0
    if relabelled is not None:
        other = np.minimum(other, alike + np.minimum.outer(relabelled, relabelled))
    found: Floats
    if y is None:
        found = np.maximum(alike, other)
    else:
        y = np.asarray(y)
        same = y[:, None] == y
        found = np.where(same, alike, other)
    # rounding is taken off the clip norm when gradients are clipped
    slack = Rows(np.zeros((1, 1), dtype)).slack * total
    found = np.minimum(found + slack, 2 * total).astype(float)
    if y is not None:
        # the same record
        found[same & (ids[:, None] == ids)] = 0.0
    return found


def _squares(
    part: Floats, norm: float, lipschitz: float, cosines: tuple[float, float]
) -> Floats:
    """Squared costs of one part of the gradient, rounded up."""
    n_terms = part.shape[1] + 16
    lengths = row_norms(part, 2) * (1 + n_terms * _EPS)
    units = part / np.where(lengths > 0, lengths, 1.0)[:, None]
    between = units @ units.T
    least = np.minimum(*(cosine * between for cosine in cosines)) - n_terms * _EPS
    with np.errstate(invalid="ignore"):
        # without features there is no gradient, however long its derivative
        longest = np.where(lengths > 0, lipschitz * lengths, 0.0)
    longest = np.minimum(norm, longest)
    squares = longest**2
    apart = squares[:, None] + squares - 2 * least * np.outer(longest, longest)
    found: Floats = np.maximum(apart, np.maximum.outer(squares, squares))
    found *= 1 + n_terms * _EPS
    return found
