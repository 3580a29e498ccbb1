"""Interface of clipped gradients, as the engine uses them."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_non_negative
from skpuffer.utils._clipping import least_norm

from ._rows import Rows, clip_factors, largest_factor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.releases import GradientRelease
    from skpuffer.utils._types import Array, Matrix, Table

    from ._losses import Loss


class Gradients(ABC):
    """Base of models: clipped gradients of a loss on the records of a run.

    Parameters
    ----------
    loss : Loss
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers, float32 or float64; all else becomes float64.
    y : array-like of shape (n_records,)
        Class indices for classification, finite numbers for regression.
    n_classes : int, default=None
        Public number of classes. Needed for losses with one score for each class.
    data_norm : float, default=None
        Public l2 norm to which longer rows are scaled down, and the unit in which rows
        are read; None leaves them as they are.
    counted : array-like of bool of shape (n_records,), default=None
        Records that count; the gradient of any other is zero. None is all.
    weights : array-like of shape (n_records,), default=None
        Factors in [0, 1] of the clipped gradients. None is one for all.

    Attributes
    ----------
    blocks : tuple of int
        Sizes of the parts of the parameter vector that may be clipped apart.
    dim : int
        Length of the parameter vector.
    n_outputs : int
        Number of scores of an example.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.training import LinearGradients, Logistic
    >>> gradients = LinearGradients(Logistic(), [[3.0], [0.0]], [1, 0])
    >>> gradients.blocks, gradients.dim  # a weight and an intercept
    ((1, 1), 2)
    >>> run = GradientRelease(n_records=2, n_steps=1, sampling="full_batch")
    >>> start = gradients.initial(np.random.default_rng(0))
    >>> gradients.clipped_sum(start, None, run).round(3)
    array([-0.948,  0.184])
    """

    #: Whether scores are linear in the parameters.
    is_linear: ClassVar[bool] = False

    def __init__(
        self,
        loss: Loss,
        X: Table,
        y: ArrayLike,
        *,
        n_classes: int | None = None,
        data_norm: float | None = None,
        counted: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ):
        self.loss = loss
        self.rows = Rows(X, data_norm)
        # read off `y`, it would tell whether the rarest class has a record
        if loss.indexed and n_classes is None:
            raise value_error(
                "training.n_classes_missing", loss_type=type(loss).__name__
            )
        self.n_outputs: int = n_classes if loss.indexed else 1  # type: ignore[assignment]
        #: Records whose gradient is zero, None if there is none.
        self.ignored: Booleans | None = None
        if counted is not None:
            self.ignored = ~np.asarray(counted, dtype=bool)
            # any target will do
            y = np.where(self.ignored, 0, np.asarray(y))
        #: Of each record's clipped gradient, None if none is below one.
        self.weights: Array | None = None
        if weights is not None:
            self.weights = self._check_weights(np.asarray(weights, dtype=np.float64))
        #: Records of a run, which are rows or units; and the rows of one at most.
        self.n_records, self.most_rows = self.rows.n_records, 1
        #: Rows of each unit, one unit after the other, and where each begins.
        self._units: tuple[Indices, Indices] | None = None
        # checked once: an index beyond the scores would fail in the middle of a run
        self.y = self._check_targets(y, n_classes or 2)
        # from public sizes: two tables of one shape have the same parameters
        self.blocks = self._sizes()
        self.dim = sum(self.blocks)

    def weighted(self, weights: Floats) -> Self:
        """Return the gradients of records with weights."""
        own = copy.copy(self)
        shares = self._check_weights(weights)
        own.weights = shares if self.weights is None else self.weights * shares
        return own

    def of_units(self, units: Indices) -> Self:
        """Return the gradients of units: of each the mean of its rows' clipped ones.

        Parameters
        ----------
        units : ndarray of int of shape (n_rows,)
            Number of each row's unit.

        Returns
        -------
        Gradients
            A unit moves a sum no further than one record would.
        """
        sizes = np.bincount(units)
        # rounded down, so that the weights of a unit add up to no more than one
        shares = np.nextafter((1.0 / sizes).astype(self.rows.dtype), 0)[units]
        own = copy.copy(self)
        own.weights = shares if self.weights is None else self.weights * shares
        starts = np.concatenate([[0], np.cumsum(sizes)])
        own._units = np.argsort(units, kind="stable"), starts
        own.n_records, own.most_rows = len(sizes), int(sizes.max())
        return own

    def _rows_of(self, index: Indices) -> Indices:
        """Rows of the units of a batch."""
        if self._units is None:
            return index
        rows, starts = self._units
        begin, sizes = starts[index], np.diff(starts)[index]
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1] if len(ends) else 0)
        found: Indices = rows[places + np.repeat(begin - (ends - sizes), sizes)]
        return found

    def _check_weights(self, weights: Floats) -> Array:
        """Weights in the dtype of the rows; a longer gradient is not paid for."""
        fits = weights.shape == (self.rows.n_records,)
        if not fits or not np.all((weights >= 0) & (weights <= 1)):
            raise value_error("weights.out_of_unit_range")
        return weights.astype(self.rows.dtype)

    def _weigh(self, factors: Array, select: Any) -> Array:
        """Return clipped factors of gradients, multiplied by their records' weights."""
        if self.weights is None:
            return factors
        # by at most one, so that rounding makes none longer
        weights = self.weights[select]
        weighed: Array = factors * (weights if factors.ndim == 1 else weights[:, None])
        return weighed

    def _check_targets(self, y: ArrayLike, n_classes: int) -> Array:
        """Targets in the loss's form: class indices, or numbers that stay finite."""
        y = np.asarray(y)
        if y.shape != (self.rows.n_records,):
            raise value_error(
                "target.shape_not_one_per_row",
                n_records=self.rows.n_records,
                shape=y.shape,
            )
        # NaN passes every comparison of norms, and so every clipping
        if not np.all(np.isfinite(y)):
            raise value_error("target.not_finite")
        if self.loss.classification:
            if np.any((y != np.floor(y)) | (y < 0) | (y >= n_classes)):
                raise value_error("target.not_class_indices", n_classes=n_classes - 1)
            # of the rows' dtype where it is computed with, so that float32 stays
            # float32
            return y.astype(np.intp if self.loss.indexed else self.rows.dtype)
        # as with the features, a fixed map of each record, so it costs no privacy; it
        # keeps errors finite
        limit = self.rows.limit
        return np.clip(y.astype(np.float64), -limit, limit).astype(self.rows.dtype)

    @abstractmethod
    def _sizes(self) -> tuple[int, ...]:
        """Return the sizes of the parts of the parameter vector."""

    @property
    @abstractmethod
    def penalised(self) -> Booleans:
        """Mask of the parameters that a penalty is for, booleans of shape (dim,)."""

    @abstractmethod
    def initial(self, rng: np.random.Generator) -> Floats:
        """Return starting parameters of shape (dim,), which depend on no data."""

    def clipped_sum(
        self, parameters: Floats, index: Indices | None, release: GradientRelease
    ) -> Floats:
        """Return the sum of the clipped gradients of a batch.

        Parameters
        ----------
        parameters : ndarray of shape (dim,)
        index : ndarray of shape (size,) or None
            Rows of the batch, possibly none or one twice; None for all rows.
        release : GradientRelease
            Its `clip_norm`, `clip_order` and `blocks` are obeyed.

        Returns
        -------
        ndarray of shape (dim,), float64

        Notes
        -----
        The gradients are taken at parameters none of which is larger than the largest
        entry of a row (see `Rows.limit`), so that nothing overflows but a length, of a
        gradient that is then shortened to nothing.
        """
        total = np.zeros(self.dim)
        for part in self.part_sums(parameters, index, release):
            total += part
        return total

    def part_sums(
        self,
        parameters: Floats,
        index: Indices | None,
        release: GradientRelease,
        parts: Sequence[slice] | None = None,
    ) -> Iterator[Floats]:
        """Yield the sums of clipped gradients that :meth:`clipped_sum` adds up.

        Parameters
        ----------
        parameters : ndarray of shape (dim,)
        index : ndarray of shape (size,) or None
        release : GradientRelease
        parts : sequence of slice, default=None
            Some of the batch, as ``Rows.parts`` has them; None for all of them.

        Yields
        ------
        ndarray of shape (dim,), float64
        """
        # before any gradient: what is executed is what was accounted for
        _check_release(release, self.blocks, self.rows.dtype)
        limit = self.rows.limit
        # the norm is quicker than a look at each entry; NaN and overflow fail as well
        if not parameters.dot(parameters) <= limit * limit:
            parameters = parameters.clip(-limit, limit)
        if index is not None:
            index = self._rows_of(index)
        layers = self._prepare(parameters.astype(self.rows.dtype))
        if parts is None:
            n_rows = self.rows.n_records if index is None else len(index)
            parts = self.rows.parts(n_rows)
        for part in parts:
            # float64 across blocks, whatever the rows: see `Rows.slack`
            total = np.zeros(self.dim)
            for rows, select in self.rows.blocks(index, part):
                total += self._block_sum(layers, rows, select, release)
            yield total

    def settle(self, release: GradientRelease) -> None:
        """Find, and keep, what is the same at all steps of a run."""
        self.rows.norms(release.clip_order)

    def __sizeof__(self) -> int:
        """Bytes in memory, by which a cluster decides how records are sent."""
        return object.__sizeof__(self) + sys.getsizeof(self.rows)

    def reader(self) -> Gradients:
        """Return the same gradients, to be summed while these are."""
        own = copy.copy(self)
        own.rows = self.rows.reader()
        return own

    @abstractmethod
    def _prepare(self, parameters: Array) -> Any:
        """Return the parameters in the shapes of the computation."""

    @abstractmethod
    def _block_sum(
        self, layers: Any, rows: Matrix, select: Any, release: GradientRelease
    ) -> Floats:
        """Return the sum over a block, of shape (dim,), float64."""


def _check_release(
    release: GradientRelease, blocks: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Check the blocks and the clip norm of a release against a model and its dtype."""
    # other blocks would clip other parts than the noise was calibrated for
    if release.blocks not in (None, blocks):
        raise value_error(
            "gradient.release_blocks_differ", blocks=blocks, given=release.blocks
        )
    norm = release.clip_norm
    # below, rounding is a large share of the norm that clipping leaves
    if (min(norm) if isinstance(norm, tuple) else norm) < least_norm(dtype):
        raise value_error(
            "gradient.clip_norm_too_small",
            least_norm=least_norm(dtype),
            name=np.dtype(dtype).name,
            clip_norm=release.clip_norm,
        )


# -- clipped gradients of generalised linear models ------------------------------------


class LinearGradients(Gradients):
    """Clipped gradients of a linear model, summed without building any of them.

    The gradient of an example is the outer product of its features, with a constant for
    the intercept, and of the derivative of the loss by its scores. Any entrywise norm
    is the product of the two norms, so clipped ones add up in two matrix products.

    Parameters
    ----------
    loss : Loss
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers, float32 or float64; all else becomes float64.
    y : array-like of shape (n_records,)
        Class indices for classification, finite numbers for regression.
    n_classes : int, default=None
        Public number of classes. Needed for losses with one score for each class.
    intercept_scale : float, default=1.0
        Constant appended to the features of each record; zero for no intercept.
    data_norm : float, default=None
        Public l2 norm to which longer rows are scaled down, and the unit in which rows
        are read; None leaves them as they are.
    counted : array-like of bool of shape (n_records,), default=None
        Records that count; the gradient of any other is zero. None is all.
    weights : array-like of shape (n_records,), default=None
        Factors in [0, 1] of the clipped gradients. None is one for all.

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
        """Return weights of shape (n_outputs, n_features), and intercepts."""
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
        """Find, and keep, the caps of the residuals in a run."""
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
