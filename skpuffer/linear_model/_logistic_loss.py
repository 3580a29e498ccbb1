"""Regularised logistic loss, binary and multinomial: constants and minimiser.

scikit-learn's solvers neither accept a class that is public but absent from the data
nor stop at a gradient norm, which the privacy of output perturbation rests on; so the
objective is put together here, from the losses that training uses; SciPy minimises it
and solves the Newton steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, softmax
from sklearn.utils.extmath import safe_sparse_dot

from skpuffer.base import PUBLIC_TARGET
from skpuffer.training import make_loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.training import Loss
    from skpuffer.utils._types import Array, Floats, Matrix

__all__ = ["LogisticConstants", "LogisticRecord", "minimise"]

# Newton steps, of which a handful are enough as a rule.
_NEWTON_STEPS = 100


@dataclass(frozen=True)
class LogisticConstants:
    """Lipschitz and smoothness constants of the regularised logistic objective.

    The objective is ``C * sum of losses + |w|**2 / 2``, which is 1-strongly convex, so
    a change of the gradient by g moves the minimiser by at most g.

    Parameters
    ----------
    n_records : int
    n_classes : int
    radius : float
        Bound R of the l2 norm of a row, the intercept's column included.
    C : float
        Inverse regularisation strength.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011), Differentially private empirical risk
    minimization, Lemma 7, for the move of the minimiser under a change of records.
    """

    n_records: int
    n_classes: int
    radius: float
    C: float

    @property
    def _loss(self) -> Loss:
        return make_loss("log_loss", self.n_classes)

    @property
    def lipschitz(self) -> float:
        """Largest gradient norm of one record's loss."""
        return self.radius * self._loss.lipschitz

    @property
    def smoothness(self) -> float:
        """Largest curvature of the objective, all records and the penalty included."""
        # the Hessian of one loss is at most (smoothness of the loss in the scores) x x'
        curvature = self.radius**2 * self._loss.smoothness
        return 1.0 + self.C * self.n_records * curvature

    @property
    def weight_norm(self) -> float:
        """Largest norm of the minimiser: its objective is no worse than that of 0."""
        # |w|^2 / 2 <= objective(w) <= objective(0) = C n log(n_classes)
        at_zero = math.log(self.n_classes)
        return math.sqrt(2 * at_zero * self.n_records * self.C)

    @property
    def gradient_lipschitz(self) -> float:
        """Lipschitz constant, in the record, of the gradient at the minimiser.

        Binary: ``1 + R D / 4`` in z = y x. Multinomial: ``sqrt(2) + R D / 2`` in x at
        a fixed label, the softmax being 1/2-Lipschitz.
        """
        # The gradient of a record's loss is l'(scores) x: by the product rule it moves
        # by |l'| for each unit that x moves, and by |x| times what l' moves, of scores
        # that move by |w| each.
        largest_score = self.radius * self.weight_norm
        return self._loss.lipschitz + largest_score * self._loss.smoothness

    def move(self, shift: float) -> float:
        """Sensitivity of the minimiser to one record that moves by `shift`."""
        # The gradient at the old minimiser changes by the difference of two records'
        # gradients: at most twice the largest one, or what the shift allows. By strong
        # convexity the minimiser moves no further. (An infinite constant times no shift
        # is none.)
        bound = self.gradient_lipschitz * shift if shift else 0.0
        return self.C * min(2 * self.lipschitz, bound)

    @property
    def shift_ceiling(self) -> float:
        """Shift beyond which a record costs no more than replacing it by any other."""
        # where the two terms of `move` meet
        return 2 * self.lipschitz / self.gradient_lipschitz


@dataclass(frozen=True)
class LogisticRecord:
    """Map from a record to the space in which its shift is measured.

    Binary: z = y x with y = ±1. Multinomial: x, and the label as a coordinate block so
    far apart that records of different labels are beyond `label_distance`.

    Parameters
    ----------
    prepare : callable
        Maps raw rows to model rows (clipped, with the intercept's column).
    n_classes : int
    label_distance : float
    """

    prepare: Any
    n_classes: int
    label_distance: float

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points of that space to moves of the features.

        Parameters
        ----------
        gaps : ndarray of shape (n_records, n_features)
            Largest move of each feature; labels stay.
        norm : float
            At least 2.

        Returns
        -------
        ndarray of shape (n_records,)
        """
        moves: Floats = self.prepare.move(gaps)
        return moves

    def __call__(self, X: Matrix, y: ArrayLike) -> Floats:
        """Return an array of shape (n_records, n_coordinates)."""
        rows = self.prepare(X)
        if self.n_classes == 2:
            signed: Floats = rows * (2.0 * np.asarray(y) - 1.0)[:, None]
            return signed
        # two unit vectors are sqrt(2) apart
        labels = np.eye(self.n_classes)[np.asarray(y)]
        return np.hstack([rows, labels * (self.label_distance / math.sqrt(2))])


def _objective(
    w: Floats, rows: Matrix, y: Array, n_classes: int, C: float
) -> tuple[float, Floats]:
    """Value and gradient of ``C * sum of losses + |w|**2 / 2``."""
    # sparse rows stay sparse: scores and gradients are the only dense arrays
    loss = make_loss("log_loss", n_classes)
    scores = safe_sparse_dot(rows, w.reshape(-1, rows.shape[1]).T)
    if n_classes == 2:
        scores = scores.ravel()
    value = loss.value(scores, y).sum()
    gradient = safe_sparse_dot(rows.T, loss.derivative(scores, y)).T.ravel()
    return C * value + w @ w / 2, C * gradient + w


def _hessian_product(
    w: Floats, v: Floats, rows: Matrix, y: Array, n_classes: int, C: float
) -> Floats:
    """Hessian of the objective at `w`, times `v`."""
    if n_classes == 2:
        # X' diag(p (1 - p)) X v
        p = expit(safe_sparse_dot(rows, w))
        product = safe_sparse_dot(rows.T, p * (1 - p) * safe_sparse_dot(rows, v))
        found: Floats = C * product + v
        return found
    W, V = w.reshape(n_classes, -1), v.reshape(n_classes, -1)
    p = softmax(safe_sparse_dot(rows, W.T), axis=1)
    # for each row (diag(p) - p p') applied to its scores under V
    moved = p * safe_sparse_dot(rows, V.T)
    moved -= p * moved.sum(axis=1, keepdims=True)
    found = C * safe_sparse_dot(rows.T, moved).T.ravel() + v
    return found


def minimise(
    rows: Matrix, y: Array, constants: LogisticConstants, tol: float, max_iter: int
) -> Floats:
    """Minimise the objective until its gradient's norm is at most `gradient_tol`.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_records, n_coordinates)
    y : ndarray of shape (n_records,)
        Class indices.
    constants : LogisticConstants
    tol : float
        Public tolerance, as a share of ``C * lipschitz``; the result is within that of
        the exact minimiser.
    max_iter : int
        Iterations of the first, rough stage.

    Returns
    -------
    w : ndarray of shape (n_coordinates,) or (n_classes * n_coordinates,)

    Notes
    -----
    It never fails: that it did, or not, would tell of the data. Quasi-Newton and Newton
    steps are quick and all that is needed as a rule. What they leave is done by
    accelerated gradient descent, in a number of steps that `constants` alone bound.
    """
    n_classes = constants.n_classes
    # The objective is 1-strongly convex, so where its gradient is at most this long the
    # exact minimiser is no further away: that is what the release counts as slack.
    gradient_tol = tol * constants.C * constants.lipschitz
    size = rows.shape[1] * (1 if n_classes == 2 else n_classes)
    args = (rows, y, n_classes, constants.C)
    # a quick rough stage, then one that is measured in the norm that counts
    rough = minimize(
        _objective,
        np.zeros(size),
        args=args,
        method="L-BFGS-B",
        jac=True,
        options={
            "maxiter": max_iter,
            # SciPy stops at the largest entry of the gradient, the norm is in l2
            "gtol": gradient_tol / math.sqrt(size),
            "ftol": 1e-15,
        },
    )
    w = _newton(rough.x, args, gradient_tol)
    # checked, not trusted: the slack must hold on every table, whatever stopped above
    if np.linalg.norm(_objective(w, *args)[1]) <= gradient_tol:
        return w
    return _descent(np.zeros(size), args, gradient_tol, constants, tol)


def _descent(
    w: Floats,
    args: tuple[Any, ...],
    gradient_tol: float,
    constants: LogisticConstants,
    tol: float,
) -> Floats:
    """Accelerated gradient descent from zero, as long as it may take at most.

    Of an objective between 1- and L-strongly curved, k steps leave a gradient of
    ``3 L sqrt(2 L) g (1 - 1 / sqrt(L)) ** ((k - 1) / 2)``, with g that at zero, which
    is at most n / tol tolerances long.

    References
    ----------
    Nesterov (2004), Introductory lectures on convex optimization, Theorem 2.2.3.
    """
    # the objective is 1-strongly convex, so its condition number is L
    L, root = constants.smoothness, math.sqrt(constants.smoothness)
    share = 5 * L * root * constants.n_records / tol
    momentum = (root - 1) / (root + 1)
    last = ahead = w
    for _ in range(2 + math.ceil(2 * root * math.log(share))):
        gradient = _objective(ahead, *args)[1]
        if np.linalg.norm(gradient) <= gradient_tol:
            break
        w = ahead - gradient / L
        ahead, last = w + momentum * (w - last), w
    return ahead  # where the gradient was measured


def _newton(w: Floats, args: tuple[Any, ...], gradient_tol: float) -> Floats:
    """Newton steps that are judged by the gradient's norm.

    SciPy's minimisers compare values of the objective, whose last digits run out long
    before a small gradient tolerance is met. Along a Newton direction the norm of the
    gradient falls as well, and it is what must become small.
    """
    gradient = _objective(w, *args)[1]
    norm = np.linalg.norm(gradient)
    for _ in range(_NEWTON_STEPS):
        if norm <= gradient_tol:
            break
        hessian = LinearOperator(
            (w.size, w.size), matvec=partial(_hessian_product_at, w, args), dtype=float
        )
        # Inexact Newton steps: the system is solved the more exactly the shorter the
        # gradient, which keeps convergence quadratic (Nocedal and Wright 2006, section
        # 7.1).
        direction, _ = cg(hessian, gradient, rtol=min(0.1, norm), maxiter=10 * w.size)
        # backtracking: the longest halving of the step that shortens the gradient
        step = 1.0
        while step > 1e-10:
            moved = _objective(w - step * direction, *args)[1]
            if np.linalg.norm(moved) < norm:
                w, gradient = w - step * direction, moved
                break
            step /= 2
        else:
            break  # rounding errors stop it; the caller sees how far it came
        norm = np.linalg.norm(gradient)
    return w


def _hessian_product_at(w: Floats, args: tuple[Any, ...], v: Floats) -> Floats:
    return _hessian_product(w, v.ravel(), *args)
