"""Minimiser of a regularised sum of smooth losses, to a tolerance that always holds.

scikit-learn's solvers neither accept a class that is public but absent from the data
nor stop at a gradient norm, which the privacy of output perturbation rests on; so the
objective is put together here, from the losses that training uses; SciPy minimises it
and solves the Newton steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils.extmath import safe_sparse_dot

if TYPE_CHECKING:
    from skpuffer.training import SmoothLoss
    from skpuffer.utils._types import Array, Floats, Matrix

    from ._minimiser_constants import MinimiserConstants

__all__ = ["Objective", "minimise"]

# Newton steps, of which a handful are enough as a rule.
_NEWTON_STEPS = 100


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective ``C * sum of losses + |w|**2 / 2`` of a table.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_records, n_coordinates)
    y : ndarray of shape (n_records,)
        Class indices or numbers, as the loss reads them.
    loss : SmoothLoss
    C : float
    n_outputs : int, default=1
        Scores of a record. The parameters are the weights of each in turn.
    """

    rows: Matrix
    y: Array
    loss: SmoothLoss
    C: float
    n_outputs: int = 1

    @property
    def size(self) -> int:
        """Number of parameters."""
        size: int = self.rows.shape[1] * self.n_outputs
        return size

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        """Return value and gradient at `w`."""
        scores = self._scores(w)
        value: float = self.C * self.loss.value(scores, self.y).sum() + w @ w / 2
        return value, self._sum(self.loss.derivative(scores, self.y)) + w

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient at `w`."""
        return self._sum(self.loss.derivative(self._scores(w), self.y)) + w

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at `w`, times `v`."""
        direction = self._scores(v.ravel())
        moved = self.loss.second_derivative(self._scores(w), self.y, direction)
        return self._sum(moved) + v.ravel()

    def _scores(self, w: Floats) -> Array:
        # sparse rows stay sparse: scores and gradients are the only dense arrays
        weights = w.reshape(-1, self.rows.shape[1]).T
        scores: Array = safe_sparse_dot(self.rows, weights, dense_output=True)
        return scores.ravel() if self.n_outputs == 1 else scores

    def _sum(self, by_score: Array) -> Floats:
        summed: Floats = safe_sparse_dot(self.rows.T, by_score, dense_output=True)
        return self.C * summed.T.ravel()


def minimise(
    rows: Matrix, y: Array, constants: MinimiserConstants, tol: float, max_iter: int
) -> Floats:
    """Minimise the objective until its gradient is no longer than a tolerance.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_records, n_coordinates)
    y : ndarray of shape (n_records,)
    constants : MinimiserConstants
    tol : float
        Public tolerance, as a share of ``C * lipschitz``; the result is within that of
        the exact minimiser.
    max_iter : int
        Iterations of the first, rough stage.

    Returns
    -------
    w : ndarray of shape (n_outputs * n_coordinates,)

    Notes
    -----
    It never fails: that it did, or not, would tell of the data. Quasi-Newton and Newton
    steps are quick and all that is needed as a rule. What they leave is done by
    accelerated gradient descent, in a number of steps that `constants` alone bound.
    """
    objective = Objective(rows, y, constants.loss, constants.C, constants.n_outputs)
    # The objective is 1-strongly convex, so where its gradient is at most this long the
    # exact minimiser is no further away: that is what the release counts as slack.
    gradient_tol = tol * constants.C * constants.lipschitz
    # a quick rough stage, then one that is measured in the norm that counts
    rough = minimize(
        objective,
        np.zeros(objective.size),
        method="L-BFGS-B",
        jac=True,
        options={
            "maxiter": max_iter,
            # SciPy stops at the largest entry of the gradient, the norm is in l2
            "gtol": gradient_tol / math.sqrt(objective.size),
            "ftol": 1e-15,
        },
    )
    w = _newton(rough.x, objective, gradient_tol)
    # checked, not trusted: the slack must hold on every table, whatever stopped above
    if np.linalg.norm(objective.gradient(w)) <= gradient_tol:
        return w
    return _descent(objective, gradient_tol, constants, tol)


def _descent(
    objective: Objective, gradient_tol: float, constants: MinimiserConstants, tol: float
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
    last = ahead = w = np.zeros(objective.size)
    for _ in range(2 + math.ceil(2 * root * math.log(share))):
        gradient = objective.gradient(ahead)
        if np.linalg.norm(gradient) <= gradient_tol:
            break
        w = ahead - gradient / L
        ahead, last = w + momentum * (w - last), w
    return ahead  # where the gradient was measured


def _newton(w: Floats, objective: Objective, gradient_tol: float) -> Floats:
    """Newton steps that are judged by the gradient's norm.

    SciPy's minimisers compare values of the objective, whose last digits run out long
    before a small gradient tolerance is met. Along a Newton direction the norm of the
    gradient falls as well, and it is what must become small.
    """
    gradient = objective.gradient(w)
    norm = np.linalg.norm(gradient)
    for _ in range(_NEWTON_STEPS):
        if norm <= gradient_tol:
            break
        product = partial(objective.hessian_product, w)
        hessian = LinearOperator((w.size, w.size), matvec=product, dtype=float)
        # Inexact Newton steps: the system is solved the more exactly the shorter the
        # gradient, which keeps convergence quadratic (Nocedal and Wright 2006, section
        # 7.1).
        direction, _ = cg(hessian, gradient, rtol=min(0.1, norm), maxiter=10 * w.size)
        # backtracking: the longest halving of the step that shortens the gradient
        step = 1.0
        while step > 1e-10:
            moved = objective.gradient(w - step * direction)
            if np.linalg.norm(moved) < norm:
                w, gradient = w - step * direction, moved
                break
            step /= 2
        else:
            break  # rounding errors stop it; the caller sees how far it came
        norm = np.linalg.norm(gradient)
    return w
