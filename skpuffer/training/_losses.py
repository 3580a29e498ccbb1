"""Losses of scores, with their derivatives, Lipschitz and smoothness constants."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.utils.extmath import softmax

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_option, check_positive

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Indices
    from skpuffer.utils._types import Array


# A derivative of one sign by class; derivatives of one class at most at a right angle.
_ONE_SIGN = ((1.0, 1.0), (-1.0, -1.0))
_ACUTE = ((0.0, 1.0), (-1.0, 1.0))


class Loss(ABC):
    """Base of losses of the scores of each example, not summed over examples.

    Scores have shape (n,) for one output and (n, n_outputs) for several. Targets are
    class indices or real numbers.

    Attributes
    ----------
    classification : bool
        Whether targets are class indices.
    indexed : bool
        Whether targets name a column of the scores, one column for each class.
    cosines : tuple of (float, float)
        Least and largest cosine between the derivatives of two examples, of one target
        and of two.
    lipschitz : float
        Largest l2 norm of the derivative of one example.
    smoothness : float
        Lipschitz constant of the derivative.
    label_slope : float
        Largest distance of derivatives at the same scores, by the target alone.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from skpuffer.training import LinearGradients, Loss
    >>> class Absolute(Loss):
    ...     classification = False
    ...     lipschitz = 1.0
    ...     smoothness = math.inf
    ...     label_slope = 2.0
    ...
    ...     def value(self, scores, y):
    ...         return np.abs(scores - y)
    ...
    ...     def derivative(self, scores, y):
    ...         return np.sign(scores - y)
    >>> gradients = LinearGradients(Absolute(), [[1.0], [3.0]], [0.5, 0.0])
    >>> gradients.loss.value(np.array([1.0, 1.0]), gradients.y)
    array([0.5, 1. ])
    """

    #: Whether targets are class indices.
    classification: ClassVar[bool]
    #: Whether targets name a column of the scores, one column for each class.
    indexed: ClassVar[bool] = False
    #: Least and largest cosine between the derivatives of two examples, whatever their
    #: scores: of one target, and of two.
    cosines: ClassVar[tuple[tuple[float, float], tuple[float, float]]] = (
        (-1.0, 1.0),
        (-1.0, 1.0),
    )

    @abstractmethod
    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""

    @abstractmethod
    def derivative(self, scores: Array, y: Array) -> Array:
        """Return a new array of the shape of `scores`: a (sub)gradient by the score."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Largest l2 norm of the derivative of one example, inf if unbounded."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Lipschitz constant of the derivative in the l2 norm, inf if there is none."""

    def largest_derivative(self, score: float) -> float:
        """Largest l2 norm of the derivative at scores within [-score, score]."""
        # targets of a regression are within [-1, 1]
        return self.lipschitz

    def gradient_lipschitz(self, score: float) -> float:
        """Lipschitz constant, in the row, of one record's gradient by the parameters.

        At fixed parameters and a fixed target; for two classes of the signed row
        ``z = y x``. The gradient ``l'(w x) x`` moves by ``|l'|`` for each unit that x
        moves, and by ``|x|`` times what l' moves, of scores that move by ``|w|`` each.

        Parameters
        ----------
        score : float
            Largest norm of the scores: that of a row times that of the parameters.

        Returns
        -------
        float
            Infinite for a loss with a corner.
        """
        # a jump is one at any scores, however small
        if math.isinf(self.smoothness):
            return math.inf
        return self.largest_derivative(score) + self.smoothness * score

    def corner_move(self, shift: float, clip_norm: float, row_norm: float) -> float:
        """Bound the move of one record's clipped gradient, at any parameters.

        Parameters
        ----------
        shift : float
            Positive; how far the row of :meth:`gradient_lipschitz` moves.
        clip_norm : float
            Norm for l2 clipping of the whole gradient.
        row_norm : float
            Largest l2 norm of a row.

        Returns
        -------
        float
            Infinite where nothing follows from the shift.
        """
        return math.inf

    @property
    @abstractmethod
    def label_slope(self) -> float:
        """Largest l2 distance of derivatives at the same scores, by the target alone.

        For any two classes, or for targets of a regression that are one apart.
        """

    def n_outputs(self, n_classes: int | None = None) -> int:
        """Return the number of scores an example has."""
        # whoever trains by an indexed loss has the number of classes
        return n_classes if self.indexed else 1  # type: ignore[return-value]


class SmoothLoss(Loss):
    """Base of losses whose derivative is Lipschitz: `smoothness` is finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Hinge, Logistic, SmoothLoss
    >>> isinstance(Logistic(), SmoothLoss), isinstance(Hinge(), SmoothLoss)
    (True, False)
    >>> scores, y, direction = np.zeros(2), np.array([0, 1]), np.array([1.0, 2.0])
    >>> Logistic().second_derivative(scores, y, direction)
    array([0.25, 0.5 ])
    """

    @abstractmethod
    def second_derivative(self, scores: Array, y: Array, direction: Array) -> Array:
        """Return the change of the derivative as the scores move, per unit of it.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, n_outputs)
        y : ndarray of shape (n,)
        direction : ndarray of the shape of `scores`
            How they move.

        Returns
        -------
        ndarray of the shape of `scores`
            The Hessian of each example's loss times its direction, on either side of
            corners.
        """


@dataclass(frozen=True)
class Logistic(SmoothLoss):
    """Logistic loss of two classes: log(1 + exp(-z)) with z the signed score.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Logistic
    >>> loss, scores, y = Logistic(), np.array([0.0, 2.0]), np.array([1, 1])
    >>> loss.value(scores, y).round(3), loss.derivative(scores, y).round(3)
    (array([0.693, 0.127]), array([-0.5  , -0.119]))
    >>> loss.lipschitz, loss.smoothness
    (1.0, 0.25)
    """

    classification = True
    # the derivative is expit(s) - y, within (-1, 1), and expit itself rises by 1/4 at
    # most
    lipschitz = 1.0
    smoothness = 0.25
    # the derivative has the sign of the other class, whatever the score
    cosines = _ONE_SIGN
    # the two targets are one apart, and the derivative is expit(s) less the target
    label_slope = 1.0

    def gradient_lipschitz(self, score: float) -> float:
        """Lipschitz constant of a record's gradient in z = y x; see :class:`Loss`."""
        # With t = expit(-w z), the Jacobian of -t z is -t I + t (1 - t) z wᵀ, of norm
        # at most t + t (1 - t) X for |w| |z| <= X: largest at t = (1 + X) / (2 X), or
        # at t = 1 where that is more.
        return (1 + score) ** 2 / (4 * score) if score > 1 else 1.0

    def corner_move(self, shift: float, clip_norm: float, row_norm: float) -> float:
        """Bound the move of a clipped gradient at any parameters; see :class:`Loss`."""
        return _corner_move(shift, clip_norm, row_norm)

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        # log(1 + e^s) - y s, without the overflow of e^s
        loss: Array = np.logaddexp(0, scores) - y * scores
        return loss

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the score, of shape (n,)."""
        # expit(s) = (1 + tanh(s / 2)) / 2, and NumPy has a fast tanh
        half = scores.dtype.type(0.5)
        residual: Array = half * scores
        np.tanh(residual, out=residual)
        residual *= half
        residual += half - y
        return residual

    def second_derivative(self, scores: Array, y: Array, direction: Array) -> Array:
        """Return the Hessian of each example's loss times its direction."""
        p = expit(scores)
        product: Array = p * (1 - p) * direction
        return product


@dataclass(frozen=True)
class Multinomial(SmoothLoss):
    """Cross-entropy of the softmax of one score for each class.

    Notes
    -----
    The derivative is p - e_y, of l2 norm below sqrt(2); the Hessian diag(p) - p pᵀ has
    no eigenvalue above 1/2 (Böhning, 1992).

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Multinomial
    >>> loss, scores, y = Multinomial(), np.array([[0.0, 0.0, 1.0]]), np.array([2])
    >>> loss.value(scores, y).round(3), loss.derivative(scores, y).round(3)
    (array([0.551]), array([[ 0.212,  0.212, -0.424]]))
    >>> loss.n_outputs(n_classes=3), round(loss.lipschitz, 3)
    (3, 1.414)
    """

    classification = True
    indexed = True
    lipschitz = math.sqrt(2)
    smoothness = 0.5
    # (p - e_y)(q - e_y) has terms p_j q_j and (1 - p_y)(1 - q_y) only
    cosines = _ACUTE
    # two corners of the simplex
    label_slope = math.sqrt(2)

    def corner_move(self, shift: float, clip_norm: float, row_norm: float) -> float:
        """Bound the move of a clipped gradient at any parameters; see :class:`Loss`."""
        return _right_angle_move(shift, clip_norm, row_norm)

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        loss: Array = logsumexp(scores, axis=1) - _own(scores, y)
        return loss

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the scores, of shape (n, n_outputs)."""
        # scikit-learn's, which takes the largest score off first: no overflow
        residual: Array = softmax(scores)
        residual[np.arange(len(residual)), y] -= 1
        return residual

    def second_derivative(self, scores: Array, y: Array, direction: Array) -> Array:
        """Return the Hessian of each example's loss times its direction."""
        # (diag(p) - p p') applied to the direction
        p = softmax(scores)
        product: Array = p * direction
        product -= p * product.sum(axis=1, keepdims=True)
        return product


class _Margin(Loss):
    """Base of losses that fall with the margin, the score signed by the class."""

    classification = True
    # the slope by the margin is in [0, 1], and a sign does not change its size
    lipschitz = 1.0
    # the derivative has the sign of the other class, whatever the score
    cosines = _ONE_SIGN

    def corner_move(self, shift: float, clip_norm: float, row_norm: float) -> float:
        """Bound the move of a clipped gradient at any parameters; see :class:`Loss`."""
        return _corner_move(shift, clip_norm, row_norm)

    @abstractmethod
    def _loss(self, margin: Array) -> Array:
        """Return the loss of a margin, elementwise."""

    @abstractmethod
    def _slope(self, margin: Array) -> Array:
        """Return minus the derivative by the margin, in [0, 1], elementwise."""

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        # classes 0 and 1 are the signs -1 and 1
        return self._loss((2 * y - 1) * scores)

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the score, of shape (n,)."""
        sign = 2 * y - 1
        # by the chain rule, as the margin is the score times the sign
        return (-sign * self._slope(sign * scores)).astype(scores.dtype, copy=False)


@dataclass(frozen=True)
class Hinge(_Margin):
    """Hinge loss of two classes, max(0, 1 - z).

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Hinge
    >>> loss, scores, y = Hinge(), np.array([0.5, -2.0]), np.array([1, 0])
    >>> loss.value(scores, y), loss.derivative(scores, y)
    (array([0.5, 0. ]), array([-1.,  0.]))
    """

    smoothness = math.inf
    # both classes pull, one either way, where the score is within (-1, 1)
    label_slope = 2.0

    def _loss(self, margin: Array) -> Array:
        loss: Array = np.maximum(0, 1 - margin)
        return loss

    def _slope(self, margin: Array) -> Array:
        # a subgradient: at the corner itself the slope is taken as zero
        return (margin < 1).astype(margin.dtype)


@dataclass(frozen=True)
class HuberHinge(_Margin, SmoothLoss):
    """Hinge loss of two classes with its corner rounded.

    Parameters
    ----------
    width : float, default=0.5
        The loss is quadratic for margins in [1 - width, 1 + width].

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011), Section 3.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import HuberHinge
    >>> loss, scores, y = HuberHinge(width=0.5), np.array([0.0, 1.0]), np.array([1, 1])
    >>> loss.value(scores, y), loss.derivative(scores, y)
    (array([1.   , 0.125]), array([-1. , -0.5]))
    >>> loss.smoothness
    1.0
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", check_positive(width=self.width))

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the derivative."""
        # the slope falls from one to zero on an interval of length 2 width
        return 1 / (2 * self.width)

    @property
    def label_slope(self) -> float:
        """Largest distance of derivatives at the same score, by the class alone."""
        # the slopes at the margins m and -m add up to this where both are rounded
        return min(2.0, (1 + self.width) / self.width)

    def _loss(self, margin: Array) -> Array:
        slope = self._slope(margin)
        # the quadratic part is width * slope**2; left of it the hinge itself
        return np.where(slope < 1, self.width * slope**2, 1 - margin)

    def _slope(self, margin: Array) -> Array:
        # zero from 1 + width on, one up to 1 - width
        return np.clip((1 + self.width - margin) / (2 * self.width), 0, 1)

    def second_derivative(self, scores: Array, y: Array, direction: Array) -> Array:
        """Return the Hessian of each example's loss times its direction."""
        margin = (2 * y - 1) * scores
        return np.where(np.abs(margin - 1) < self.width, self.smoothness, 0) * direction


@dataclass(frozen=True)
class MulticlassHinge(Loss):
    """Hinge loss of the own score less the largest other one.

    Parameters
    ----------
    margin : Hinge or HuberHinge, default=Hinge()
        Loss of that difference.

    References
    ----------
    Crammer and Singer (2001), Multiclass kernel-based vector machines.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import MulticlassHinge
    >>> loss, scores, y = MulticlassHinge(), np.array([[0.5, 0.0, 1.0]]), np.array([0])
    >>> loss.value(scores, y), loss.derivative(scores, y)
    (array([1.5]), array([[-1.,  0.,  1.]]))
    """

    margin: _Margin = Hinge()

    classification = True
    indexed = True
    lipschitz = math.sqrt(2)
    # the own entries of two have one sign, and so have those of a rival they share
    cosines = _ACUTE
    # the largest other score has a corner wherever two scores tie
    smoothness = math.inf
    # two derivatives, each no longer than sqrt(2)
    label_slope = 2 * math.sqrt(2)

    def corner_move(self, shift: float, clip_norm: float, row_norm: float) -> float:
        """Bound the move of a clipped gradient at any parameters; see :class:`Loss`."""
        return _right_angle_move(shift, clip_norm, row_norm)

    def _rival(self, scores: Array, y: Array) -> tuple[Indices, Array]:
        """Return the class of the largest other score, and the margin over it."""
        others = scores.copy()
        # the own score never is its own rival
        others[np.arange(len(others)), y] = -np.inf
        rival = others.argmax(axis=1)
        return rival, _own(scores, y) - _own(scores, rival)

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        return self.margin._loss(self._rival(scores, y)[1])

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the scores, of shape (n, n_outputs)."""
        rival, margin = self._rival(scores, y)
        slope = self.margin._slope(margin)
        rows = np.arange(len(scores))
        # all scores except the own one and the largest other stay at zero
        residual = np.zeros_like(scores)
        # two entries of opposite sign, no larger than one: an l2 norm of at most
        # sqrt(2)
        residual[rows, y] = -slope
        residual[rows, rival] = slope
        return residual


@dataclass(frozen=True)
class Squared(Loss):
    """Half the squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Squared
    >>> loss, scores, y = Squared(), np.array([0.0, 3.0]), np.array([1.0, 1.0])
    >>> loss.value(scores, y), loss.derivative(scores, y)
    (array([0.5, 2. ]), array([-1.,  2.]))
    >>> loss.lipschitz, loss.largest_derivative(2.0)
    (inf, 3.0)
    """

    classification = False
    # no bound of the loss itself: clipping alone bounds what a record adds
    lipschitz = math.inf
    smoothness = 1.0
    label_slope = 1.0

    def largest_derivative(self, score: float) -> float:
        """Largest derivative while scores stay within [-score, score]."""
        return score + 1.0

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        return (scores - y) ** 2 / 2

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the score, of shape (n,)."""
        return scores - y


@dataclass(frozen=True)
class Huber(SmoothLoss):
    """Half the squared error near the target, linear beyond.

    Parameters
    ----------
    width : float, default=1.35
        Largest absolute error that is squared, in the unit of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.training import Huber
    >>> loss, scores, y = Huber(width=1.0), np.array([0.5, 3.0]), np.array([0.0, 0.0])
    >>> loss.value(scores, y), loss.derivative(scores, y)
    (array([0.125, 2.5  ]), array([0.5, 1. ]))
    >>> loss.lipschitz
    1.0
    """

    width: float = 1.35

    classification = False
    smoothness = 1.0
    label_slope = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", check_positive(width=self.width))

    @property
    def lipschitz(self) -> float:
        """Largest absolute derivative."""
        return self.width

    def value(self, scores: Array, y: Array) -> Array:
        """Return the loss of each example, of shape (n,)."""
        error = scores - y
        # with the derivative d: error**2 / 2 within the width, and beyond it
        # width * |error| - width**2 / 2, are both d * (error - d / 2)
        inner = np.clip(error, -self.width, self.width)
        loss: Array = inner * (error - inner / 2)
        return loss

    def derivative(self, scores: Array, y: Array) -> Array:
        """Return the derivative by the score, of shape (n,)."""
        error = scores - y
        # into the array of errors, which is new: one copy less
        return np.clip(error, -self.width, self.width, out=error)

    def second_derivative(self, scores: Array, y: Array, direction: Array) -> Array:
        """Return the Hessian of each example's loss times its direction."""
        product: Array = (np.abs(scores - y) < self.width) * direction
        return product


def _corner_move(shift: float, clip_norm: float, row_norm: float) -> float:
    """Bound the move of clipped gradients that are minus a share of the row."""
    return max(min(clip_norm, row_norm), min(shift, 2 * clip_norm))


def _right_angle_move(shift: float, clip_norm: float, row_norm: float) -> float:
    """Bound the move of clipped gradients of several scores, at a fixed class.

    Of one row, two gradients are at most a right angle apart; then the row moves, and a
    derivative is no longer than sqrt(2).
    """
    root = math.sqrt(2)
    return root * (min(clip_norm, root * row_norm) + shift)


def _own(scores: Array, y: Array) -> Array:
    """Return each example's score of one class."""
    return scores[np.arange(len(scores)), y]


#: Losses by name: of one score, and of one score for each class where there is one.
LOSSES: dict[str, tuple[Any, Any]] = {
    "log_loss": (Logistic, Multinomial),
    "hinge": (Hinge, MulticlassHinge),
    "huber_hinge": (
        HuberHinge,
        lambda **width: MulticlassHinge(HuberHinge(**width)),
    ),
    # regression has one score
    "squared_error": (Squared, None),
    "huber": (Huber, None),
}


def make_loss(name: str, n_classes: int | None = None, **parameters: float) -> Loss:
    """Make a loss by its name, for a number of classes or None for regression.

    `parameters` may be the `width` of 'huber_hinge' and 'huber'.
    """
    # two classes have one score: a second would say the same, and move the sum as well
    single, multiple = LOSSES[check_option(tuple(LOSSES), loss=name)]
    classifier = n_classes is not None
    if single.classification != classifier:
        fitting = [
            k for k, (one, _) in LOSSES.items() if one.classification == classifier
        ]
        kind = "classification" if classifier else "regression"
        raise value_error(
            "training.loss_unknown",
            fitting=tuple(map(repr, fitting)),
            kind=kind,
            name=name,
        )
    # the number of classes is public, so it may decide how many scores there are
    several = n_classes is not None and n_classes > 2
    loss: Loss = (multiple if several else single)(**parameters)
    return loss
