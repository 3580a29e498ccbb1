"""Transport plans with exact marginals, in any number of dimensions.

Solvers only say along which pairs mass should travel; an exact integer flow settles how
much.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array, eye_array, kron, vstack

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    Indices,
    Integers,
    check_at_least_one,
    check_option,
    check_real,
    lengths_of,
)

from ._bottleneck import bottleneck_distance
from ._line import _shares, wasserstein_distance
from ._masses import (
    check_points,
    common_masses,
    finest_grid,
    match,
    merge,
    round_to_grid,
)
from ._radius import send

#: Cost of transport: a power of the distance, or a function of displacements.
Cost = float | Callable[[Floats], ArrayLike]

# Support of the plan, dual prices of either side, and whether the solver converged.
_Prices = tuple[Booleans, Floats, Floats, bool]

# Pairs whose reduced cost is below this fraction of the largest cost count as optimal:
# the round-off of a solver's dual prices.
_TIGHT = 1e-11
# SciPy's assignment takes a second or so for as many atoms; beyond, POT is faster.
_ASSIGNED = 2500
_PIVOTS = 10_000_000
# Entries of displacements held at once.
_BLOCK = 2**24


@dataclass(frozen=True, eq=False)
class TransportPlan:
    """Coupling of two discrete distributions, by pairs of atoms and their masses.

    Parameters
    ----------
    x, y : ndarray of shape (k,) or (k, d)
        Atoms of the two distributions that meet.
    counts : ndarray of shape (k,), of int64 or of Python integers
        Mass they share, above zero, in units of ``1 / total``.
    total : int
        The mass of either distribution in the same units.
    optimal : bool
        Whether no plan costs less, up to the round-off of costs.

    Examples
    --------
    >>> from skpuffer.transport import transport_plan
    >>> plan = transport_plan([0.0, 1.0], [1.0, 3.0], [0.5, 0.5], [0.75, 0.25], cost=1)
    >>> plan.mass, plan.displacements.ravel()
    (array([0.5 , 0.25, 0.25]), array([-1.,  0., -2.]))
    >>> plan.distance(p=1), plan.distance(p=float("inf"))
    (1.0, 2.0)
    """

    x: Floats
    y: Floats
    counts: Integers
    total: int
    optimal: bool = True

    @property
    def mass(self) -> Floats:
        """Masses of the pairs as floats: they sum to one if nothing is left out."""
        # divided first: a float may not hold what a Python integer does
        return (self.counts / self.total).astype(float)

    @property
    def displacements(self) -> Floats:
        """Differences ``x - y``, of shape (k, d)."""
        return (self.x - self.y).reshape(len(self.counts), -1)

    def distance(
        self, p: float = 2, ord: float = 2, coordinate_scale: ArrayLike | None = None
    ) -> float:
        """Return the mean of order `p` of the plan's displacements.

        Parameters
        ----------
        p : float, default=2
            Order, in (0, inf]; inf is the longest displacement of any mass.
        ord : float, default=2
            Norm of a displacement, in [1, inf].
        coordinate_scale : array-like of shape (d,), default=None
            Positive numbers by which the coordinates are divided first.

        Returns
        -------
        distance : float
            Not below the Wasserstein distance of order `p`, for ``p >= 1``, if no mass
            is left out.
        """
        order = check_real(p=p)
        moves = self.displacements
        if coordinate_scale is not None:
            moves = moves / np.asarray(coordinate_scale, dtype=float)
        lengths = lengths_of(moves, ord)
        longest = float(lengths.max())
        if math.isinf(order) or longest == 0:
            return longest
        # lengths in units of the longest: no overflow of their powers at any order
        mean = float((lengths / longest) ** order @ self.mass)
        root: float = mean ** (1 / order)
        return longest * root


def transport_plan(
    U: ArrayLike,
    V: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    cost: Cost = 2,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
    max_cells: float = 4e6,
    solver: str = "auto",
) -> TransportPlan:
    """Return an optimal transport plan of discrete distributions, with exact marginals.

    Parameters
    ----------
    U, V : array-like of shape (n,) and (m,), or (n, d) and (m, d)
        Atoms: values on the line, or one point a row. Equal atoms are merged.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `wasserstein_distance`: none, counts, fractions or floats.
    cost : float or callable, default=2
        The power of the distance that is paid, above zero. Or a function of all
        displacements ``x - y`` of shape (..., d) that returns finite costs of shape
        (...).
    ord : float, default=2
        Norm of a displacement, in [1, inf], where `cost` is a power.
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which displacements are divided before the norm is taken;
        not for a cost that is a function.
    max_cells : float, default=4e6
        Most pairs of atoms to choose among. Beyond, the cells of a grid are coupled at
        the least cost and the atoms within cells in order.
    solver : {"auto", "pot", "scipy"}, default="auto"
        POT's network simplex, SciPy's assignment and linear programs, or the first that
        is installed.

    Returns
    -------
    plan : TransportPlan
        A coupling whatever happens; `plan.optimal` says whether the cheapest.

    Raises
    ------
    ImportError
        If `solver` is "pot" and POT is not installed.

    Notes
    -----
    The solver gives prices (the dual solution). An optimal plan uses pairs alone whose
    cost is the sum of their prices; along those the integer masses travel by an exact
    maximum flow. Mass kept out of these pairs by round-off is coupled in order of the
    atoms.

    References
    ----------
    Peyré and Cuturi (2019), Computational Optimal Transport, Section 3. Flamary et al.
    (2021), POT: Python Optimal Transport.

    Examples
    --------
    >>> from skpuffer.transport import transport_plan
    >>> plan = transport_plan([[0, 0], [1, 0]], [[0, 2], [1, 1]], [3, 1], [1, 1])
    >>> plan.mass.tolist(), round(plan.distance(p=1), 2)
    ([0.25, 0.5, 0.25], 1.6)
    """
    check_option(("auto", "pot", "scipy"), solver=solver)
    cost = _check_cost(cost)
    check_at_least_one(ord=ord)
    U, V, line = as_rows(U, V)
    check_points(coordinate_scale, U=U, V=V)
    scale = 1.0 if coordinate_scale is None else np.asarray(coordinate_scale, float)
    a, b = common_masses(len(U), u_weights, len(V), v_weights)
    total = int(a.sum())
    # Distinct atoms with mass: a smaller problem with the same plans.
    U, a = merge(U, a)
    V, b = merge(V, b)
    # On the line the monotone coupling is optimal for every convex cost (Villani 2003,
    # Theorem 2.18), and no solver is asked.
    optimal = True
    if U.shape[1] == 1 and not callable(cost) and cost >= 1:
        i, j, counts = match(a, b)
    elif len(U) * len(V) <= max_cells:
        costs = _costs(U, V, cost, ord, scale)
        i, j, counts, optimal = _cheapest(costs, a, b, solver)
    else:
        optimal = False
        i, j, counts = _by_cells(U, a, V, b, cost, ord, scale, max_cells, solver)
    x, y = (U[i, 0], V[j, 0]) if line else (U[i], V[j])
    return TransportPlan(x, y, counts, total, optimal)


def transport_distance(
    U: ArrayLike,
    V: ArrayLike,
    p: float = 2,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
    ord: float = 2,
    *,
    coordinate_scale: ArrayLike | None = None,
) -> float:
    """Return the Wasserstein distance of any order between discrete distributions.

    Parameters
    ----------
    U, V : array-like of shape (n,) and (m,), or (n, d) and (m, d)
        Atoms, as for `transport_plan`.
    p : float, default=2
        Order, in [1, inf].
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Masses, as for `wasserstein_distance`.
    ord : float, default=2
        Norm of a displacement, in [1, inf].
    coordinate_scale : array-like of shape (d,), default=None
        Positive numbers by which the coordinates are divided first.

    Returns
    -------
    distance : float
        Distance of a coupling that exists, so not below the true one but for round-off.

    Examples
    --------
    >>> from skpuffer.transport import transport_distance
    >>> transport_distance([[0, 0], [1, 0]], [[0, 2], [1, 1]], p=1)
    1.5
    """
    order = check_at_least_one(p=p)
    U, V, _ = as_rows(U, V)
    # order infinity is a search of its own, and the line has a closed form
    if math.isinf(order):
        return bottleneck_distance(
            U, V, u_weights, v_weights, ord, coordinate_scale=coordinate_scale
        )
    if U.shape[1:] == V.shape[1:] == (1,):
        U, V = check_points(coordinate_scale, U=U, V=V)
        return wasserstein_distance(U[:, 0], V[:, 0], u_weights, v_weights, order)
    plan = transport_plan(
        U, V, u_weights, v_weights, order, ord, coordinate_scale=coordinate_scale
    )
    return plan.distance(order, ord, coordinate_scale)


def as_rows(U: ArrayLike, V: ArrayLike) -> tuple[Floats, Floats, bool]:
    """Return two sets of atoms as rows, and whether both were values on the line."""
    U, V = np.asarray(U, dtype=float), np.asarray(V, dtype=float)
    line = U.ndim == 1 and V.ndim == 1
    return (U[:, None], V[:, None], line) if line else (U, V, line)


def _check_cost(cost: Cost) -> Cost:
    if callable(cost):
        return cost
    power = check_real(cost=cost)
    if not 0 < power < math.inf:
        raise value_error("transport.cost_invalid", cost=cost)
    return power


def _costs(
    U: Floats, V: Floats, cost: Cost, ord: float, scale: Floats | float
) -> Floats:
    """Return costs of all pairs, of shape (n, m), divided by the largest."""
    if callable(cost):
        costs = np.asarray(cost(U[:, None] - V), dtype=float)
        if costs.shape != (len(U), len(V)):
            raise value_error(
                "transport.cost_shape_invalid",
                expected=(len(U), len(V)),
                shape=costs.shape,
            )
    else:
        # displacements of all pairs hold d numbers each: block by block
        rows = max(1, _BLOCK // V.size)
        lengths = np.concatenate(
            [
                lengths_of((U[start : start + rows, None] - V) / scale, ord)
                for start in range(0, len(U), rows)
            ]
        )
        costs = (lengths / (lengths.max() or 1.0)) ** cost
    if not np.isfinite(costs).all():
        raise value_error("transport.cost_not_finite")
    # _TIGHT is a fraction of the largest cost
    largest = np.abs(costs).max()
    return costs / largest if largest > 0 else costs


def _cheapest(
    costs: Floats, a: Integers, b: Integers, solver: str
) -> tuple[Indices, Indices, Integers, bool]:
    """Optimal plan of integer masses for a matrix of costs."""
    n, m = costs.shape
    # Equal masses: by Birkhoff's theorem some optimal plan is a permutation.
    if n == m <= _ASSIGNED and (a == a[0]).all() and (b == a[0]).all():
        return *linear_sum_assignment(costs), a, True
    if solver == "auto":
        solver = "pot" if importlib.util.find_spec("ot") else "scipy"
    prices = _prices_by_pot if solver == "pot" else _prices_by_scipy
    used, u, v, solved = prices(costs, _shares(a), _shares(b))
    # Complementary slackness: an optimal plan uses only pairs of reduced cost zero,
    # and every plan on such pairs is optimal.
    reduced = costs - u[:, None] - v
    # Infeasible dual prices say nothing: then only the solver's support counts. Pairs
    # of its support count in any case, whatever their rounded prices.
    tight = reduced <= _TIGHT if reduced.min() >= -_TIGHT else False
    rows, columns = np.nonzero(used | tight)
    flow = send(rows, columns, a, b)
    i, j, counts = flow.i, flow.j, flow.mass
    if flow.complete:
        return i, j, counts, solved
    # Round-off of the prices left out a pair. The mass that could not travel is coupled
    # in order of the atoms: the plan stays a coupling, and is optimal only if that is a
    # mass as small as the prices' round-off.
    rest_a, rest_b = a.copy(), b.copy()
    np.subtract.at(rest_a, i, counts)
    np.subtract.at(rest_b, j, counts)
    left, right = np.flatnonzero(rest_a), np.flatnonzero(rest_b)
    k, m, more = match(rest_a[left], rest_b[right])
    lost = float(more.sum()) / float(a.sum())
    return (
        np.concatenate([i, left[k]]),
        np.concatenate([j, right[m]]),
        np.concatenate([counts, more]),
        solved and lost <= _TIGHT,
    )


def _prices_by_pot(costs: Floats, a: Floats, b: Floats) -> _Prices:
    """Support and dual prices by POT's network simplex, and whether it converged."""
    try:
        from ot.lp import emd
    except ImportError as error:
        raise ImportError(Statement("dependency.pot_missing")) from error
    # POT warns where it stops early: its prices may then be wrong, and the plan is not
    # called optimal
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        plan, log = emd(a, b, costs, numItermax=_PIVOTS, log=True)
    return plan > 0, log["u"], log["v"], not (warned or log["warning"])


def _prices_by_scipy(costs: Floats, a: Floats, b: Floats) -> _Prices:
    """As `_prices_by_pot`, by SciPy's linear programs."""
    n, m = costs.shape
    rows = kron(eye_array(n), csr_array(np.ones((1, m))))
    columns = kron(csr_array(np.ones((1, n))), eye_array(m))
    # Row sums a and column sums b. The last equation follows from the others, except
    # for round-off.
    result = linprog(
        costs.ravel(),
        A_eq=vstack([rows, columns]).tocsr()[:-1],
        b_eq=np.concatenate([a, b[:-1]]),
        method="highs",
    )
    # without a solution: no pair is used, and no price makes one tight
    if result.x is None:
        none = np.zeros(costs.shape, dtype=bool)
        return none, np.full(n, -math.inf), np.zeros(m), False
    prices = np.append(result.eqlin.marginals, 0.0)
    used = result.x.reshape(n, m) > 0
    return used, prices[:n], prices[n:], result.status == 0


def _by_cells(
    U: Floats,
    a: Integers,
    V: Floats,
    b: Integers,
    cost: Cost,
    ord: float,
    scale: Floats | float,
    max_cells: float,
    solver: str,
) -> tuple[Indices, Indices, Integers]:
    """Couple the cells of a grid optimally, and the atoms within cells in order."""
    # A grid in the scaled coordinates, as there the norm is taken.
    first, second = U / scale, V / scale
    corner, width = finest_grid(first, second, max_cells)
    sides = []
    for points, masses in ((first, a), (second, b)):
        centres = round_to_grid(points, corner, width)
        cells, where = np.unique(centres, axis=0, return_inverse=True)
        held = np.zeros(len(cells), dtype=masses.dtype)
        np.add.at(held, where.ravel(), masses)
        # Distinct cells, their masses, and the atoms in the order of their cells.
        sides.append((cells, held, np.argsort(where.ravel(), kind="stable")))
    (cells_u, held_u, order_u), (cells_v, held_v, order_v) = sides
    costs = _costs(cells_u * scale, cells_v * scale, cost, ord, scale)
    i, j, counts, _ = _cheapest(costs, held_u, held_v, solver)
    # First, cell by cell, the shares that the plan of cells takes out of a cell meet
    # the atoms in it, in order. Then, pair of cells by pair of cells, the pieces of
    # atoms of both sides meet each other.
    pieces = []
    for cell, masses, order in ((i, a, order_u), (j, b, order_v)):
        by_cell = np.argsort(cell, kind="stable")
        atom, pair, piece = match(masses[order], counts[by_cell])
        by_pair = np.argsort(by_cell[pair], kind="stable")
        pieces.append((order[atom][by_pair], piece[by_pair]))
    (atoms_u, pieces_u), (atoms_v, pieces_v) = pieces
    k, m, counts = match(pieces_u, pieces_v)
    return atoms_u[k], atoms_v[m], counts
