"""Clipped gradients of generalised linear models."""

import numpy as np

from ._base import Gradients
from ._clipping import clip_factors
from ._rows import entry_norms

__all__ = ["LinearGradients"]


class LinearGradients(Gradients):
    """Clipped gradients of a loss of linear scores, with none of them built.

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
    array([-0.949,  0.184])
    """

    def __init__(self, loss, X, y, *, n_classes=None, intercept_scale=1.0):
        super().__init__(loss, X, y, n_classes=n_classes)
        self.intercept_scale = float(intercept_scale)

    @property
    def blocks(self):
        """Sizes of the weights and, if there are any, of the intercepts."""
        weights = self.rows.n_features * self.n_outputs
        return (weights, self.n_outputs) if self.intercept_scale else (weights,)

    @property
    def penalised(self):
        """Which parameters are weights, booleans of shape (dim,)."""
        return np.arange(self.dim) < self.blocks[0]

    def initial(self, rng):
        """Return zeros, of shape (dim,)."""
        return np.zeros(self.dim)

    def split(self, parameters):
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
        coef = parameters[:weights].reshape(self.rows.n_features, self.n_outputs).T
        if not self.intercept_scale:
            return coef.copy(), np.zeros(self.n_outputs)
        return coef.copy(), self.intercept_scale * parameters[weights:]

    def _prepare(self, parameters):
        weights = self.blocks[0]
        parameters = parameters.astype(self.rows.dtype, copy=False)
        matrix, intercept = parameters[:weights], parameters[weights:]
        intercept = intercept * intercept.dtype.type(self.intercept_scale)
        if self.n_outputs > 1:
            matrix = matrix.reshape(self.rows.n_features, self.n_outputs)
        return matrix, intercept

    def _block_sum(self, parameters, rows, select, release, guard=False):
        matrix, intercept = parameters
        scores = rows @ matrix
        if self.intercept_scale:
            scores += intercept
        residual = self.loss.derivative(scores, self.y[select])
        length = self._residual_norms(residual, release.clip_order)
        if guard:
            bad = ~np.isfinite(length)
            residual[bad], length[bad] = 0, 0
        if release.blocks is None:
            row = self.rows.norms(release.clip_order, self.intercept_scale)[select]
            (factor,) = clip_factors([length * row], release, (self.dim,))
            factors = [factor, factor]
        else:
            row = self.rows.norms(release.clip_order)[select]
            lengths = [length * row, length * abs(self.intercept_scale)]
            factors = clip_factors(lengths[: len(self.blocks)], release, self.blocks)
        total = np.empty(self.dim, self.rows.dtype)
        weights = self.blocks[0]
        clipped = (residual.T * factors[0]).T
        total[:weights] = (rows.T @ clipped).ravel()
        if self.intercept_scale:
            if factors[1] is not factors[0]:
                clipped = (residual.T * factors[1]).T
            total[weights:] = self.intercept_scale * clipped.sum(axis=0)
        return total

    @staticmethod
    def _residual_norms(residual, order):
        if residual.ndim == 1:
            return np.abs(residual)
        return entry_norms(residual, order).astype(residual.dtype, copy=False)
