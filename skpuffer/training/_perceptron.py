"""Clipped gradients of a perceptron with one hidden layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit

from skpuffer.kernel.numbers import check_count, check_option
from skpuffer.utils._clipping import joint_norms, rounded_up, upper_norms

from ._base import Gradients
from ._rows import aligned, clip_factors, largest_factor, products

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.releases import GradientRelease
    from skpuffer.utils._types import Array, Matrix, Table

    from ._losses import Loss

    Activation: TypeAlias = Callable[..., Array]

    #: Weights and biases of the two layers.
    Layers: TypeAlias = tuple[tuple[Array, Array], tuple[Array, Array]]


def _relu(scores: Array, out: Array | None = None) -> Array:
    # more than twice as quick as a maximum with a number
    positive: Array = scores.clip(0, math.inf, out=out)
    return positive


#: Activations by scikit-learn's names: the function, which writes into `out` if asked,
#: and its derivative as a function of its own value.
ACTIVATIONS: dict[str, tuple[Activation, Activation]] = {
    # At the corner of relu the slope is zero, as scikit-learn has it. By the value,
    # since a slope by the score would need the scores kept as well.
    "relu": (_relu, lambda value: value > 0),
    "tanh": (np.tanh, lambda value: 1 - value * value),
    "logistic": (expit, lambda value: value * (1 - value)),
    "identity": (np.positive, np.ones_like),
}


class PerceptronGradients(Gradients):
    """Clipped gradients of a perceptron, summed without building any of them.

    The gradient of an example in a layer is the outer product of what enters it, with a
    one for the bias, and of the derivative of the loss by what leaves it.

    Parameters
    ----------
    loss : Loss
        Loss of the scores of the output layer.
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Finite numbers, float32 or float64; all else becomes float64.
    y : array-like of shape (n_records,)
        Class indices for classification, finite numbers for regression.
    n_classes : int, default=None
        Public number of classes. Needed for losses with one score for each class.
    n_hidden : int, default=100
        Units of the hidden layer.
    activation : {'relu', 'tanh', 'logistic', 'identity'}, default='relu'
        Activation of the hidden layer.
    data_norm : float, default=None
        Public l2 norm to which longer rows are scaled down, and the unit in which rows
        are read; None leaves them as they are.
    counted : array-like of bool of shape (n_records,), default=None
        Records that count; the gradient of any other is zero. None is all.
    weights : array-like of shape (n_records,), default=None
        Factors in [0, 1] of the clipped gradients. None is one for all.

    Notes
    -----
    The parameter vector holds, layer after layer, the weights, of shape (n_in, n_out)
    row by row, then the `n_out` biases; :meth:`split` takes it apart. Goodfellow
    (2015), Efficient per-example gradient computations.

    Examples
    --------
    >>> from skpuffer.training import Logistic, PerceptronGradients
    >>> gradients = PerceptronGradients(Logistic(), [[0.0, 1.0]], [1], n_hidden=3)
    >>> gradients.blocks, gradients.dim
    ((9, 4), 13)
    """

    def __init__(
        self,
        loss: Loss,
        X: Table,
        y: ArrayLike,
        *,
        n_classes: int | None = None,
        n_hidden: int = 100,
        activation: str = "relu",
        data_norm: float | None = None,
        counted: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ):
        # before the base class, which asks for the sizes
        self.n_hidden = check_count(n_hidden=n_hidden)
        self.activation = check_option(tuple(ACTIVATIONS), activation=activation)
        super().__init__(
            loss,
            X,
            y,
            n_classes=n_classes,
            data_norm=data_norm,
            counted=counted,
            weights=weights,
        )
        # of a block, for what enters and what leaves the hidden layer
        self._space = np.empty((2, 0, self.n_hidden), self.rows.dtype)

    def reader(self) -> PerceptronGradients:
        """Return the same gradients, of which sums may be made while these make some.

        Returns
        -------
        PerceptronGradients
        """
        own: Any = super().reader()
        own._space = np.empty((2, 0, self.n_hidden), self.rows.dtype)
        found: PerceptronGradients = own
        return found

    def settle(self, release: GradientRelease) -> None:
        """Find, and keep, the norms of what enters the hidden layer."""
        self.rows.norms(release.clip_order, 1.0)

    def _sizes(self) -> tuple[int, ...]:
        return (
            # the bias is the weight of a constant one: a further row of the layer
            (self.rows.n_features + 1) * self.n_hidden,
            (self.n_hidden + 1) * self.n_outputs,
        )

    @property
    def penalised(self) -> Booleans:
        """Mask of the parameters that are weights, booleans of shape (dim,)."""
        # biases are the last of each layer
        mask = np.ones(self.dim, dtype=bool)
        first, _ = self.blocks
        mask[first - self.n_hidden : first] = False
        mask[self.dim - self.n_outputs :] = False
        return mask

    def initial(self, rng: np.random.Generator) -> Floats:
        """Draw weights uniformly as Glorot and Bengio (2010) do; biases are zero."""
        # scikit-learn's bounds for its MLPClassifier
        factor = 2.0 if self.activation == "logistic" else 6.0
        sizes = (self.rows.n_features, self.n_hidden, self.n_outputs)
        parts = []
        for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
            bound = math.sqrt(factor / (n_in + n_out))
            # random, as units that start alike stay alike; public, as no data is read
            parts += [rng.uniform(-bound, bound, n_in * n_out), np.zeros(n_out)]
        return np.concatenate(parts)

    def split(self, parameters: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return the weights and the biases of the two layers."""
        (first, b), (second, c) = self._layers(parameters)
        return [first, second], [b, c]

    def _layers(self, parameters: Array) -> Layers:
        first, _ = self.blocks
        one = parameters[:first].reshape(-1, self.n_hidden)
        two = parameters[first:].reshape(-1, self.n_outputs)
        return (one[:-1], one[-1]), (two[:-1], two[-1])

    def _prepare(self, parameters: Array) -> Layers:
        return self._layers(parameters)

    def _block_sum(
        self, layers: Layers, rows: Matrix, select: Any, release: GradientRelease
    ) -> Floats:
        (W, b), (V, c) = layers
        activate, slope = ACTIVATIONS[self.activation]
        # forward; rows beyond n_rows are padding, see `products`
        of_hidden, of_inner = self._spaces(rows.shape[0])
        hidden = self.rows.scores(rows, select, W, out=of_hidden)
        hidden += b
        activate(hidden, out=hidden)
        # losses of one score take a vector of them
        scores = products(hidden, V if self.loss.indexed else V.ravel())
        scores += c
        n_rows = rows.shape[0]
        hidden = hidden[:n_rows]
        # backward: derivatives by what leaves the output layer, and the hidden one
        outer = self.loss.derivative(scores[:n_rows], self.y[select])
        outer = outer.reshape(n_rows, -1)
        if self.ignored is not None:
            # zero lies within every clip norm, whatever else the record may be
            outer[self.ignored[select]] = 0
        # by the chain rule, through the weights and then the activation
        inner = products(outer, np.ascontiguousarray(V.T), out=of_inner)
        inner *= slope(hidden)

        order, dtype = release.clip_order, rows.dtype
        # norms of what enters the two layers, the bias's one included
        entering = (
            self.rows.norms(order, 1.0)[select],
            rounded_up(joint_norms(upper_norms(hidden, order), 1.0, order), dtype),
        )
        # clipped are the derivatives, which scales the outer products by as much
        factors = (inner, outer)
        inner, outer = (
            self._weigh(clipped, select)
            for clipped in _clip_layers(entering, factors, release, self.rows.slack)
        )
        ones = np.ones((n_rows, 1), dtype)  # what enters the biases
        biases = self.rows.add_up(ones, inner), self.rows.add_up(ones, outer)
        inner = self.rows.in_units(inner, select, out=inner)
        weights = self.rows.add_up(rows, inner), self.rows.add_up(hidden, outer)
        parts = [
            part.ravel() for pair in zip(weights, biases, strict=True) for part in pair
        ]
        return np.concatenate(parts)

    def _spaces(self, n_rows: int) -> Array:
        """Arrays for two layers of a block, written to again by the next one."""
        if self._space.shape[1] < n_rows:
            room = aligned(n_rows + n_rows // 4)  # the next batch may be larger
            self._space = np.empty((2, room, self.n_hidden), self.rows.dtype)
        return self._space


def _clip_layers(
    entering: tuple[Array, Array],
    leaving: tuple[Array, Array],
    release: GradientRelease,
    slack: float,
) -> list[Array]:
    """Clip the gradients of two layers, each an outer product."""
    norm: Any  # for the whole vector, or one for each layer
    order, norm = release.clip_order, release.clip_norm
    # each layer to its own norm; the noise is set by the norm of the norms
    if release.blocks is not None:
        caps = [
            largest_factor(own, length, slack)
            for own, length in zip(norm, entering, strict=True)
        ]
        return [
            clip_factors(factor, cap, order)
            for factor, cap in zip(leaving, caps, strict=True)
        ]
    # The norm of an outer product is the product of its factors' norms.
    lengths = [
        upper_norms(factor, order) * norm
        for factor, norm in zip(leaving, entering, strict=True)
    ]
    total = rounded_up(joint_norms(*lengths, order), leaving[0].dtype)  # type: ignore[call-arg, arg-type] # of two
    # one share for both layers: the gradient keeps its direction
    shares = np.minimum(largest_factor(norm, total, slack), 1)[:, None]
    return [np.multiply(factor, shares, out=factor) for factor in leaving]
