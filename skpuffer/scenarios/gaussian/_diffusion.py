"""Langevin diffusion observed at public times: its start is secret, and fades."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import Adjacency, Fact, OutputSensitivity
from skpuffer.kernel.numbers import (
    Floats,
    check_option,
    check_positive,
    check_real,
    lengths_of,
)
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios._base import (
    AnyRelease,
    BoundScenario,
    Scenario,
    offers,
    stated,
)
from skpuffer.scenarios._coupling import coupling_in_table, same_table
from skpuffer.utils._checks import check_name, check_sizes

__all__ = ["DiffusionScenario"]


#: Dimension up to which all corners of a cube are enumerated.
MOST_CORNERS = 12


def half_the_signs(dim: int) -> Floats:
    """Corners of the cube [-1, 1]^dim as rows, one of each two opposite ones."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
    return signs[: len(signs) // 2]


def operator_norm(matrix: Floats, norm: float) -> float:
    """Operator norm of a matrix from l2 to lp, or an upper bound of it.

    Parameters
    ----------
    matrix : ndarray of shape (dim, n_coordinates)
    norm : float
        Order p of the norm of the image, in [1, inf].

    Returns
    -------
    float
        The largest norm itself for the norms 2 and inf, for norm 1 up to `MOST_CORNERS`
        rows, and for a single row or column; otherwise a bound.
    """
    rows = lengths_of(matrix, 2)
    if norm == 1 and len(rows) <= MOST_CORNERS:
        # duality: max |A x|_1 over the l2 ball is max |A^T s|_2 over signs s, the
        # corners of the dual ball
        images = half_the_signs(len(rows)) @ matrix
        return float(lengths_of(images, 2).max())
    # two bounds: the lp norm of the rows' l2 norms (Cauchy-Schwarz row by row), and
    # ||y||_p <= dim^(1/p - 1/2) ||y||_2 for p < 2
    largest = float(np.linalg.norm(matrix, 2))
    widest: float = len(rows) ** max(0.0, 1 / norm - 0.5)
    return min(float(lengths_of(rows, norm)), largest * widest)


#: Distances below are rounded up: the square of a smaller one underflows to zero.
_LEAST_SHIFT = 1e-140


class DiffusionScenario(Scenario):
    r"""The secret is the start of a Langevin diffusion, the records its later states.

    The records are the states at public times of

    .. math:: dX_t = -\nabla V(X_t)\,dt + \sqrt{2}\,dB_t

    with a potential whose Hessian is at least `curvature` times the identity. Under the
    synchronous coupling (both paths driven by the same noise) two paths approach each
    other at the rate `curvature` in the Euclidean norm, at all times.

    Parameters
    ----------
    curvature : float
        Least eigenvalue of the Hessian of the potential, anywhere, one over the unit
        of time. Negative if paths may part.
    times : array-like of shape (n_records,)
        When the records are taken after the start; increasing and not negative.
    diameter : float
        Largest Euclidean distance of two starting points that must look alike.
    table : str or None, default=None
        Public name of the table, by which certificates of several releases that rest
        on one coupling of it may be added up (:func:`~skpuffer.privacy.compose`). None
        names no table, and such certificates are not added.

    Notes
    -----
    The exponent is :math:`e^{-Ct}` and the norm is l2. The bound printed with
    :math:`e^{-2Ct}` in the l1 norm does not hold: the Ornstein-Uhlenbeck process
    exceeds it.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition 6.3, with the exponent
    and the norm of its proof.

    Examples
    --------
    >>> from skpuffer.scenarios import DiffusionScenario
    >>> scenario = DiffusionScenario(curvature=0.5, times=(1, 2, 3), diameter=2.0)
    >>> round(scenario.query_shift(), 6)
    2.395081
    >>> round(scenario.query_shift(form="stacked"), 6)
    1.487282
    """

    def __init__(
        self,
        curvature: float,
        times: ArrayLike,
        diameter: float,
        *,
        table: str | None = None,
    ) -> None:
        self.curvature = curvature
        self.times = times
        self.diameter = diameter
        self.table = table

    def check(self) -> None:
        """Check the parameters; see the class."""
        # as a number first: of one alone, an array says more than is asked for
        check_sizes(curvature=check_real(curvature=self.curvature))
        check_positive(diameter=self.diameter)
        check_name(table=self.table)
        times = stated(check_sizes, times=self.times)
        if (
            times.ndim != 1
            or not times.size
            or times[0] < 0
            or np.any(np.diff(times) <= 0)
        ):
            raise ScenarioError(
                Statement("diffusion.times_not_increasing", times=self.times)
            )

    def record_shifts(self) -> Floats:
        """Largest distance of the records of two starts, by time.

        Returns
        -------
        ndarray of shape (n_records,)
            Euclidean distances.
        """
        self.check()
        # Driven by the same noise, two paths X and Y have a difference without noise:
        # d|X - Y|²/dt = -2 <grad V(X) - grad V(Y), X - Y> <= -2 C |X - Y|², so
        # |X_t - Y_t| <= exp(-C t) |X_0 - Y_0| (Grönwall).
        times = np.asarray(self.times, dtype=float)
        with np.errstate(over="ignore"):
            shifts = float(self.diameter) * np.exp(-float(self.curvature) * times)
        if not np.all(np.isfinite(shifts)):
            raise ScenarioError(Statement("diffusion.paths_overflow"))
        # a distance of zero would be a release without any noise
        return np.maximum(shifts, _LEAST_SHIFT)

    def query_shift(self, lipschitz: float = 1.0, form: str = "sum") -> float:
        """Upper bound of W_inf of a query, by its Lipschitz constant.

        Parameters
        ----------
        lipschitz : float, default=1.0
            Of the query, from the norm `form` of the records to its own.
        form : {'sum', 'stacked'}, default='sum'
            The sum of the Euclidean norms of the records, or the Euclidean norm of the
            vector of all of them.

        Returns
        -------
        float
            In the norm of the query's output.
        """
        check_positive(lipschitz=lipschitz)
        # sum of the records' distances, or root of the sum of their squares
        order = {"sum": 1, "stacked": 2}[check_option(("sum", "stacked"), form=form)]
        return float(lipschitz * np.linalg.norm(self.record_shifts(), order))

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        if len(self.times) != context.n_records:
            raise ScenarioError(
                Statement(
                    "diffusion.times_differ_from_records",
                    n_times=len(self.times),
                    n_records=context.n_records,
                )
            )
        return _BoundDiffusion(self, context)

    def __repr__(self) -> str:
        times = f"<{len(self.times)} times>"
        table = "" if self.table is None else f", table={self.table!r}"
        return (
            f"DiffusionScenario(curvature={self.curvature!r}, times={times}, "
            f"diameter={self.diameter!r}{table})"
        )


class _BoundDiffusion(BoundScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts = set()
        if release.is_bounded or self._move(release) is not None:
            facts.add(Adjacency)
        raw = self.context.feature_map is None  # and not a function of the records
        if isinstance(release, QueryRelease) and raw and release.linear is not None:
            facts.add(OutputSensitivity)
        return frozenset(facts)

    def _move(self, release):
        """Map from moves of records to moves of contributions, or None."""
        context = self.context
        usual = context.feature_map is None and context.n_features is not None
        if not (usual and release.moves_with_contributions):
            return None
        return getattr(release.contribution, "move", None)

    @offers(OutputSensitivity)
    def _output_sensitivity(
        self, release: AnyRelease, norm: float
    ) -> OutputSensitivity:
        shifts = self.scenario.record_shifts()
        matrix = np.asarray(release.linear, dtype=float)
        if matrix.ndim != 2 or matrix.shape[1] % len(shifts):
            raise ScenarioError(
                Statement(
                    "diffusion.release_matrix_not_whole_records",
                    name=release.name,
                    shape=matrix.shape,
                    n_shifts=len(shifts),
                )
            )
        if release.units is not None:
            matrix = matrix / np.reshape(release.units, (-1, 1))
        blocks = np.split(matrix, len(shifts), axis=1)
        # triangle inequality over records, or Cauchy-Schwarz over the stacked vector
        apart = sum(
            operator_norm(block, norm) * s
            for block, s in zip(blocks, shifts, strict=True)
        )
        stacked = operator_norm(matrix, norm) * np.linalg.norm(shifts)
        coupling = self._coupling()
        return OutputSensitivity(
            radius=float(min(apart, stacked)),
            coupling_id=coupling,
            assumptions=(
                *self.statements(),
                *same_table(coupling, self.scenario.table),
            ),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        n, move = self.context.n_records, self._move(release)
        if move is None:
            return Adjacency.arbitrary(n, self.statements())
        # a distance bounds the move of every feature
        gaps = np.tile(
            self.scenario.record_shifts()[:, None], (1, self.context.n_features)
        )
        moves = np.asarray(move(gaps, release.shift_norm(norm)), dtype=float)
        # how many records move that far, whichever they are: the largest first
        moves = np.sort(moves)[::-1]
        coupling = self._coupling()
        return Adjacency(
            count=n,
            move=float(moves[0]),
            moves=moves,
            relation="replace",
            coupling_id=coupling,
            assumptions=(
                *self.statements(),
                *same_table(coupling, self.scenario.table),
                *getattr(release.contribution, "move_assumptions", ()),
            ),
        )

    def _coupling(self):
        """Name of the synchronous coupling of both paths, or None if it has none."""
        return coupling_in_table(self, "diffusion", self.scenario.record_shifts())

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario = self.scenario
        return (
            Statement("assume.diffusion_secret_start", diameter=scenario.diameter),
            Statement(
                "assume.diffusion_langevin_states",
                n_records=self.context.n_records,
                curvature=scenario.curvature,
            ),
        )
