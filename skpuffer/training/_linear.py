"""Clipped gradients of generalised linear models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.kernel.numbers import check_non_negative

from ._base import Gradients
from ._rows import clip_factors, largest_factor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.releases import GradientRelease
    from skpuffer.utils._types import Array, Matrix, Table

    from ._losses import Loss

__all__ = ["LinearGradients"]


class LinearGradients(Gradients):
    """Clipped gradients of a linear model, summed without building any of them.

    The gradient of an example is the outer product of its features, a constant
    appended for the intercept, and of the derivative of the loss by its scores. Any
    entrywise norm of it is the product of the two norms, so the clipped ones add up in
    two matrix products.

    Parameters
    ----------
    loss : Loss
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers, float32 or float64; all else becomes float64.
    y : array-like of shape (n_records,)
        Class indices for classification, finite numbers for regression.
    n_classes : int, default=None
        Public number of classes, never read off `y`. Needed for losses with one score
        for each class.
    intercept_scale : float, default=1.0
        Constant appended to the features of each record; zero for no intercept.
    data_norm : float, default=None
        Public l2 norm to which longer rows are scaled down, and the unit in which rows
        are read; None leaves them as they are.
    counted : array-like of bool of shape (n_records,), default=None
        Records that count; the gradient of any other is zero, whatever its target. None
        is all.
    weights : array-like of shape (n_records,), default=None
        In [0, 1]: what a record's clipped gradient is multiplied by. None is one for
        all.

    Raises
    ------
    ValueError
        If `X` or `y` holds NaN or infinity, or they do not fit each other.

    Notes
    -----
    The parameter vector is the matrix of shape (n_features, n_outputs) of the weights,
    row by row, then the `n_outputs` intercepts; :meth:`split` takes it apart. The norm
    of an outer product: Goodfellow (2015), Efficient per-example gradient computations.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.training import LinearGradients, Squared
    >>> gradients = LinearGradients(
    ...     Squared(), [[3.0], [0.0]], [1.0, -0.5], intercept_scale=1.0
    ... )
    >>> release = GradientRelease(n_records=2, n_steps=1, sampling="full_batch")
    >>> gradients.clipped_sum(np.zeros(2), None, release).round(3)
    array([-0.948,  0.184])
    """

    is_linear = True

    def __init__(
        self,
        loss: Loss,
        X: Table,
        y: ArrayLike,
        *,
        n_classes: int | None = None,
        intercept_scale: float = 1.0,
        data_norm: float | None = None,
        counted: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ):
        self.intercept_scale = check_non_negative(intercept_scale=intercept_scale)
        super().__init__(
            loss,
            X,
            y,
            n_classes=n_classes,
            data_norm=data_norm,
            counted=counted,
            weights=weights,
        )
        # by what a release clips to: lengths of rows do not change from step to step
        self._known_caps: dict[tuple[Any, float, float], Array] = {}

    def _sizes(self) -> tuple[int, ...]:
        # without an intercept there is one block, and nothing to clip apart
        weights = self.rows.n_features * self.n_outputs
        return (weights, self.n_outputs) if self.intercept_scale else (weights,)

    @property
    def penalised(self) -> Booleans:
        """Mask of the parameters that are weights, booleans of shape (dim,)."""
        # the intercepts come last, and are not penalised
        return np.arange(self.dim) < self.blocks[0]

    def initial(self, rng: np.random.Generator) -> Floats:
        """Return zeros, of shape (dim,)."""
        # the loss is convex: any start will do, and this one is public
        return np.zeros(self.dim)

    def split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Take a parameter vector apart.

        Parameters
        ----------
        parameters : ndarray of shape (dim,)

        Returns
        -------
        coef : ndarray of shape (n_outputs, n_features)
        intercept : ndarray of shape (n_outputs,)
            To be added to the scores: the intercept scale is in it.
        """
        weights = self.blocks[0]
        # copies: what is published must not change with the next step
        coef = parameters[:weights].reshape(self.rows.n_features, self.n_outputs).T
        if not self.intercept_scale:
            return coef.copy(), np.zeros(self.n_outputs)
        return coef.copy(), self.intercept_scale * parameters[weights:]

    def _prepare(self, parameters: Array) -> tuple[Array, Array]:
        weights = self.blocks[0]
        matrix, intercept = parameters[:weights], parameters[weights:]
        # a vector where there is one output, as products by a vector are quicker to
        # call
        if self.n_outputs > 1:
            matrix = matrix.reshape(self.rows.n_features, self.n_outputs)
        if self.intercept_scale:
            intercept = self.intercept_scale * intercept
        return matrix, intercept

    def _block_sum(
        self,
        layers: tuple[Array, Array],
        rows: Matrix,
        select: Any,
        release: GradientRelease,
    ) -> Floats:
        matrix, intercept = layers
        # forward: the same rounding for a record in whatever batch it stands
        scores = self.rows.scores(rows, select, matrix)[: rows.shape[0]]
        if self.intercept_scale:
            scores += intercept
        # backward: residuals are scaled down so that residual times row is clipped
        residual = self.loss.derivative(scores, self.y[select])
        if self.ignored is not None:
            # zero lies within every clip norm, whatever else the record may be
            residual[self.ignored[select]] = 0
        inner, constant = (
            self._weigh(factors, select)
            for factors in self._clip(residual, select, release)
        )
        # the sum of outer products of rows and residuals is one product of matrices
        gradient = self.rows.add_up(rows, self.rows.in_units(inner, select))
        if not self.intercept_scale:
            return gradient.ravel()
        total = np.empty(self.dim)
        weights = self.blocks[0]
        total[:weights] = gradient.ravel()
        total[weights:] = self.intercept_scale * constant.sum(axis=0, dtype=np.float64)
        return total

    def settle(self, release: GradientRelease) -> None:
        """Find, and keep, the caps of the residuals in a run.

        Parameters
        ----------
        release : GradientRelease
        """
        self._caps(release)

    def _clip(
        self, residual: Array, select: Any, release: GradientRelease
    ) -> tuple[Array, Array]:
        """Return the residuals, clipped, for the weights and for the intercepts."""
        # clipped whole, the constant counts with the row: one norm for both
        order, whole = release.clip_order, release.blocks is None
        caps = self._caps(release)[select]
        # || row ⊗ residual || = || row || · || residual ||, so a cap on the residual
        # clips it
        inner = clip_factors(residual, caps, order)
        if whole or not self.intercept_scale:
            return inner, inner
        # clipped apart: the intercept's gradient is the residual times one constant
        scale = self.rows.dtype.type(self.intercept_scale)
        caps = largest_factor(release.clip_norm[1], scale, self.rows.slack)  # type: ignore[index] # one for each block
        return inner, clip_factors(residual, caps, order)

    def _caps(self, release: GradientRelease) -> Array:
        """Largest norm of each record's residuals, of shape (n_records,)."""
        norm: Any = release.clip_norm
        constant = self.intercept_scale if release.blocks is None else 0.0
        key = norm, release.clip_order, constant
        if key not in self._known_caps:
            norm = norm if release.blocks is None else norm[0]
            # rounded up, and the caps down: a gradient is never longer than the clip
            # norm
            lengths = self.rows.norms(release.clip_order, constant)
            self._known_caps[key] = largest_factor(norm, lengths, self.rows.slack)
        return self._known_caps[key]
