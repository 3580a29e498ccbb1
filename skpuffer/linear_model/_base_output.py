"""Linear models by output perturbation: a minimiser, and noise on its coefficients."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils.extmath import safe_sparse_dot

from skpuffer._template import _plan
from skpuffer._template._reading import known_targets
from skpuffer._template._weights import without_weights
from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_positive
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.utils._sklearn import Interval

from ._base_linear import ModelRows, warn_of_scale
from ._base_sgd import LinearClassifier

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import Scenario
    from skpuffer.training import SmoothLoss
    from skpuffer.utils._types import Array, Matrix

    from ._base_linear import ModelRecord
    from ._minimiser_constants import MinimiserConstants


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
    n_outputs : int, default=1
        Scores of a record. The parameters are the weights of each in turn.
    shares : ndarray of shape (n_records,), default=None
        By which the loss of each record of one score is multiplied; None is one.
    """

    rows: Matrix
    y: Array
    loss: SmoothLoss
    C: float
    n_outputs: int = 1
    shares: Floats | None = None

    @property
    def size(self) -> int:
        """Number of parameters."""
        size: int = self.rows.shape[1] * self.n_outputs
        return size

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        """Return value and gradient at `w`."""
        scores = self._scores(w)
        losses = self._shared(self.loss.value(scores, self.y))
        value: float = self.C * losses.sum() + w @ w / 2
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

    def _shared(self, of_records: Array) -> Array:
        return of_records if self.shares is None else self.shares * of_records

    def _sum(self, by_score: Array) -> Floats:
        by_score = self._shared(by_score)
        summed: Floats = safe_sparse_dot(self.rows.T, by_score, dense_output=True)
        return self.C * summed.T.ravel()


def minimise(
    rows: Matrix,
    y: Array,
    constants: MinimiserConstants,
    tol: float,
    max_iter: int,
    shares: Floats | None = None,
) -> Floats:
    """Minimise the objective until its gradient is no longer than a public tolerance.

    `tol` is a share of ``C * lipschitz``; the result is within that of the minimiser.
    It never fails, which would reveal something about the data: accelerated gradient
    descent does the rest after Newton steps, in a number of steps that `constants`
    bound.
    """
    objective = Objective(
        rows, y, constants.loss, constants.C, constants.n_outputs, shares
    )
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
    ``3 L sqrt(2 L) g (1 - 1 / sqrt(L)) ** ((k - 1) / 2)``, with g that at zero, at most
    n / tol tolerances long (Nesterov, 2004, Theorem 2.2.3).
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

    SciPy's minimisers compare values, whose last digits run out before a small gradient
    tolerance is met.
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


#: Iterations of the solver's first, rough stage, if nothing is said.
OUTPUT_ITERATIONS = 1000

# What a classifier takes where the user said nothing.
_OUTPUT_C = 0.01

# Share of a record's gradient that rounding may add for each record of a sum; about
# eight thousand times the unit of float64.
_ROUNDING = 2.0**-40


def minimiser_release(
    context: PublicContext,
    constants: MinimiserConstants,
    record: ModelRecord,
    *,
    name: str,
    tol: float,
    max_iter: int = OUTPUT_ITERATIONS,
    assumptions: tuple[Statement, ...],
    weighted: bool = False,
) -> QueryRelease:
    """Release of the coefficients that minimise a regularised sum of losses.

    `tol` is the public tolerance of the solver, as a share of the sensitivity. If
    `weighted`, rows end with weights, as :func:`with_weights` appends them.
    """
    # Adding or removing a record changes the gradient of a 1-strongly convex objective
    # by at most this, and its minimiser by no more (Chaudhuri et al. 2011, Lemma 7).
    move = constants.C * constants.lipschitz
    # Below the rounding errors of a sum of gradients no computed gradient proves that
    # the minimiser is as near as the slack says.
    least = context.n_records * _ROUNDING
    if tol < least:
        raise value_error(
            "linear.tol_below_exactness",
            least=least,
            n_records=context.n_records,
            tol=tol,
        )

    # deterministic, from zero: one table has one answer, whatever was fitted before
    def query(X: Matrix, y: Array) -> Floats:
        # the loss of a record without a target is constant: it adds nothing
        X, y = known_targets(X, record.given(y))
        X, shares = without_weights(X) if weighted else (X, None)
        # clipped in float32, rows may be longer by more than the tolerance is
        X = X if sparse.issparse(X) else np.asarray(X)
        rows = record.rows(X.astype(np.float64, copy=False))
        return minimise(rows, record.targets(y), constants, tol, max_iter, shares)

    n_features: Any = context.n_features  # known in a fit
    return QueryRelease(
        query=query,
        name=name,
        n_records=context.n_records,
        dim=constants.n_outputs * (n_features + bool(record.rows.intercept)),
        contribution=record,
        # of a record and its weight nothing but the largest move is known
        modulus=None if weighted else constants.move,
        shift_ceiling=constants.shift_ceiling,
        sensitivity=Sensitivity(
            add_remove={2: move}, relabel={2: constants.C * constants.label_move}
        ),
        # both minimisers, on either table, may be off by the tolerance
        slack=2 * tol * move,
        context=context,
        assumptions=assumptions,
    )


#: Parameters that the output does not read, and why.
_OF_GRADIENTS = {
    "init": Statement("linear.minimiser_independent_of_start"),
    "radius": Statement("linear.minimiser_not_projected"),
    "schedule": Statement("linear.minimiser_independent_of_steps"),
    "noise_correlation": Statement("linear.minimiser_noised_once"),
    "class_weight": Statement("linear.minimiser_weighs_records_alike"),
}


class OutputClassifier(LinearClassifier):
    """Base of linear classifiers by noisy gradients or by output perturbation.

    A subclass has the parameters `solver`, `C` and `tol` as well, and says which way a
    fit goes and which loss the output minimises.
    """

    _parameter_constraints: dict[str, Any] = {
        **LinearClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }

    _output_name: str

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _by_gradients(self, task: Task) -> bool:
        """Whether a fit goes by gradients; from parameters and public facts alone."""

    @abstractmethod
    def _record_constants(
        self, rows: ModelRows, **known: Any
    ) -> tuple[MinimiserConstants, ModelRecord]:
        """Return the constants of the loss, given the others, and a record's point."""

    def _model_rows(self, task: Task) -> ModelRows:
        """Return the rows that the minimiser reads: in units of `data_norm`."""
        norm = float(self.data_norm)
        return ModelRows(norm, self._intercept_scale, unit=norm)

    # -- the release --------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        # by plain code, whatever scikit-learn's switch for validation says
        super()._check_parameters(scenario)
        if self.C is not None:
            check_positive(C=self.C)
        check_positive(tol=self.tol)
        for name in self._of_gradients():
            if self.solver == "output":
                raise value_error(
                    "linear.gradient_parameter_with_output_solver",
                    name=name,
                    why=_OF_GRADIENTS[name],
                )

    def _of_gradients(self) -> list[str]:
        """Return the names of what was given and the output does not read."""
        given = {"class_weight": self.class_weight, **vars(self._training)}
        return [name for name in _OF_GRADIENTS if given[name] is not None]

    @property
    def _output_C(self) -> float:
        return _OUTPUT_C if self.C is None else float(self.C)

    def _l2(self, context: PublicContext) -> float:
        # C * sum of losses + |w|^2 / 2, divided by C n: the mean loss and |w|^2 / (2 C
        # n)
        return 0.0 if self.C is None else 1.0 / (self.C * context.n_records)

    def _release(self, task: Task) -> Any:
        """A gradient release or a query release, by the solver and the scenario."""
        if self._by_gradients(task):
            return super()._release(task)
        warn_of_scale(self, task)
        return self._output_release(task)

    def _output_release(self, task: Task) -> QueryRelease:
        context, rows = task.context, self._model_rows(task)
        constants, record = self._record_constants(
            rows,
            n_records=context.n_records,
            radius=rows.radius,
            C=self._output_C,
        )
        return minimiser_release(
            context,
            constants,
            record,
            name=self._output_name,
            tol=float(self.tol),
            max_iter=self._output_iterations,
            assumptions=(
                Statement(
                    "assume.rows_clipped_labels_public",
                    data_norm=rows.data_norm,
                    classes=context.classes,
                ),
            ),
        )

    @property
    def _output_iterations(self) -> int:
        return OUTPUT_ITERATIONS if self.max_iter is None else int(self.max_iter)

    def _publish(self, value: Any, release: Any) -> None:
        if not isinstance(release, QueryRelease):
            super()._publish(value, release)
            return
        # allowed, not needed: how many were needed carries no noise
        self.n_iter_ = np.array([self._output_iterations])
        found = self._read_off(value, release)
        self.coef_, self.intercept_ = found["coef_"], found["intercept_"]

    _affine_attributes = ("coef_", "intercept_")
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        # weights of each class in turn, its intercept's as the last one
        record: Any = release.contribution
        context: Any = release.context
        rows, width = record.rows, context.n_features
        weights = vector.reshape(-1, width + bool(rows.intercept))
        intercepts = np.zeros(len(weights))
        if rows.intercept:
            intercepts = weights[:, width] * rows.intercept
        return {"coef_": weights[:, :width] / rows.unit, "intercept_": intercepts}
