"""Facts of a Gaussian scenario bound to a table."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from skpuffer.distributions._distributions import Gaussian
from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.facts import (
    Adjacency,
    Fact,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_extent,
    check_option,
    check_positive,
    check_real,
    lengths_of,
)
from skpuffer.releases import PublicContext, QueryRelease, VoteRelease
from skpuffer.scenarios._base import (
    AnyRelease,
    BoundScenario,
    Scenario,
    coupling_in_table,
    offers,
    protected_records,
    same_table,
    stated,
)
from skpuffer.utils._checks import check_name, check_sizes

_EPS = np.finfo(float).eps
_WORST_CONDITION = 1e12

#: Share of a move that may be lost to the digits of the mean it is added to.
_SWALLOWED = 1e-9


def slopes_of(covariance: Floats, secret: Sequence[int]) -> Floats:
    """Regression coefficients Sigma_{.I} Sigma_{II}^{-1} on the secret."""
    inner = covariance[np.ix_(secret, secret)]
    try:
        # beyond that the slopes have too few digits to bound a move by
        if np.linalg.cond(inner) > _WORST_CONDITION:
            raise np.linalg.LinAlgError
        factor = cho_factor(inner)
    except np.linalg.LinAlgError:
        raise scenario_error("gaussian.secret_covariance_singular") from None
    # Sigma_{II} S' = Sigma_{I.}, solved for S'
    return cho_solve(factor, covariance[secret]).T


def certain_part(covariance: Floats, sizes: Floats, error: float) -> Floats:
    """Lower bound, in the Loewner order, of a covariance known up to round-off.

    Entry i, j is off by at most ``error * sizes[i] * sizes[j]``. The bound is positive
    semi-definite, and zero if there may be a direction without variance.
    """
    # in units of the sizes all entries are known to one and the same error
    sizes = np.where(sizes > 0, sizes, 1.0)
    outer = np.outer(sizes, sizes)
    # by Gershgorin's theorem no eigenvalue of a matrix of such errors is larger
    least = error * len(sizes)
    found = (covariance + covariance.T) / 2 / outer
    if np.linalg.eigvalsh(found)[0] <= least:
        # the direction itself is uncertain: clipping would leave others too much
        return np.zeros_like(covariance)
    return (found - least * np.eye(len(sizes))) * outer


class BoundGaussian(BoundScenario):
    """Facts of Gaussian records; see :class:`GaussianScenario`."""

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        n = context.n_records
        covariance = scenario._covariance()
        size = len(covariance)
        self.covariance, self.mean = covariance, scenario._mean(size)
        self.series = scenario.covariance_of == "records"
        self.n_columns = size
        if self.series:
            if size % n:
                raise scenario_error(
                    "gaussian.covariance_not_whole_columns", size=size, n=n
                )
            self.n_columns = size // n
        self.secret = scenario._secret_positions(self.n_columns)
        self.middle, self.moves = scenario._moves(len(self.secret))
        self.features = self._features()
        # independent records are all protected alike
        self.protected = protected_records(scenario.protected, n)

    def _features(self) -> list[int] | None:
        """Positions of the data's columns in a record, or None if unknown."""
        context, names = self.context, self.scenario._names()
        if context.feature_map is not None:
            return None
        if context.feature_names is not None and names is not None:
            missing = [c for c in context.feature_names if c not in names]
            if missing:
                raise scenario_error(
                    "gaussian.columns_missing_in_covariance",
                    missing=missing,
                    names=names,
                )
            return [names.index(name) for name in context.feature_names]
        # without names: the data has all columns, or all except the secret ones
        everything = list(range(self.n_columns))
        others = [c for c in everything if c not in self.secret]
        for columns in (everything, others):
            if context.n_features in (None, len(columns)):
                return columns
        raise scenario_error(
            "gaussian.column_count_differs",
            n_features=context.n_features,
            n_columns=self.n_columns,
        )

    # -- moves --------------------------------------------------------------------

    def _coordinates(self) -> Indices:
        """Coordinates of the data among the stacked ones of a series."""
        # records are stacked one after the other, each with all its columns
        assert self.features is not None  # asked for only where they are known
        starts: Indices = np.arange(self.context.n_records)[:, None] * self.n_columns
        return (starts + np.array(self.features)).ravel()

    def _series_slopes(self, record: int) -> tuple[list[int], Floats]:
        """Secret coordinates of a record among the stacked ones, and slopes of all."""
        inner = [record * self.n_columns + c for c in self.secret]
        return inner, slopes_of(self.covariance, inner)

    def _feature_moves(self) -> Iterator[Floats]:
        """Largest moves of the features of each record, for each secret."""
        assert self.features is not None  # see `_moves_of`
        if not self.series:
            slopes = slopes_of(self.covariance, self.secret)[self.features]
            # the value of one record, or the average, with which every record moves
            n_moved = 1 if self.scenario.level == "record" else self.context.n_records
            yield np.tile(self._largest_moves(slopes), (n_moved, 1))
            return
        # with the secret of one record all others move, each by its slopes
        at = self._coordinates()
        for record in self.protected:
            _, slopes = self._series_slopes(record)
            yield self._largest_moves(slopes[at]).reshape(
                len(at) // len(self.features), -1
            )

    def _largest_moves(self, slopes: Floats) -> Floats:
        """Largest absolute move of each coordinate over the domain."""
        # over a ball by Cauchy-Schwarz, and attained coordinate by coordinate
        if isinstance(self.moves, float):
            moves = self.moves * lengths_of(slopes, 2)
        else:
            moves = np.abs(slopes @ self.moves.T).max(axis=1)
        # of a dependence that has all but faded, contributions would not move
        check_extent(sensitivity=float(moves.max()))
        return moves

    # -- facts --------------------------------------------------------------------

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts: set[type[Fact]] = set()
        if release.is_bounded or self._moves_of(release) is not None:
            facts.add(Adjacency)
        matrix = self._matrix(release) if isinstance(release, QueryRelease) else None
        if matrix is not None:
            # accountants rank the directions of a ball each in their own way
            ball = isinstance(self.moves, float) and self._several(matrix)
            facts.add(OutputSensitivity if ball else OutputDistributions)
        return frozenset(facts)

    def _several(self, matrix: Floats) -> bool:
        """Whether moves of the output may have more than one direction."""
        return min(len(self.secret), len(matrix)) > 1

    def _moves_of(self, release: Any) -> Callable[..., Any] | None:
        """Map from moves of records to moves of contributions, or None."""
        if not release.moves_with_contributions or self.features is None:
            return None
        return getattr(release.contribution, "move", None)

    def _matrix(self, release: QueryRelease) -> Floats | None:
        """Matrix of a linear query, of shape (dim, n_records, n_features), or None."""
        if release.linear is None or self.features is None:
            return None
        matrix = np.asarray(release.linear, dtype=float)
        n, d = self.context.n_records, len(self.features)
        if matrix.ndim != 2 or matrix.shape[1] != n * d:
            raise scenario_error(
                "gaussian.release_matrix_shape_differs",
                name=release.name,
                shape=matrix.shape,
                n_records=n,
                n_numbers=n * d,
            )
        return matrix.reshape(len(matrix), n, d)

    def _secrets(self, matrix: Floats) -> Iterator[tuple[str, Floats, Floats, Floats]]:
        """Slopes, mean and covariance of the output given each secret."""
        # Given the secret coordinates x_I the output A x has mean A m + S (x_I - m_I),
        # with slopes S = A Sigma_{.I} Sigma_{II}^{-1}, and for all x_I one covariance,
        # A Sigma A' - S Sigma_{II} S'.
        assert self.features is not None  # see `_matrix`
        dim, n, _ = matrix.shape
        deviations = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        if self.series:
            at = self._coordinates()
            flat = matrix.reshape(dim, -1)
            whole = flat @ self.covariance[np.ix_(at, at)] @ flat.T
            mean = flat @ self.mean[at]
            # no output deviates by more: the unit in which its round-off is measured
            sizes = np.abs(flat) @ deviations[at]
            for record in self.protected:
                inner, slopes = self._series_slopes(record)
                error = self._round_off(slopes[at], inner, at, flat)
                slopes = flat @ slopes[at]
                known = self.covariance[np.ix_(inner, inner)]
                yield (
                    f"record {record}",
                    slopes,
                    mean + slopes @ self._offset(self.mean[inner]),
                    # Schur complement: the covariance given the secret
                    certain_part(whole - slopes @ known @ slopes.T, sizes, error),
                )
            return
        slope = slopes_of(self.covariance, self.secret)[self.features]
        inner = self.covariance[np.ix_(self.features, self.features)]
        known = self.covariance[np.ix_(self.secret, self.secret)]
        whole = np.einsum("itf,fg,jtg->ij", matrix, inner, matrix)
        mean = matrix.sum(axis=1) @ self.mean[self.features]
        offset = self._offset(self.mean[self.secret])
        # of independent records variances add up
        sizes = np.linalg.norm(np.abs(matrix) @ deviations[self.features], axis=1)
        error = self._round_off(slope, self.secret, self.features, matrix)
        if self.scenario.level == "dataset":
            # The secret is the average of n independent records: its covariance is
            # Sigma_{II} / n, and each record's regression on it has the same slopes.
            slopes = matrix.sum(axis=1) @ slope
            yield (
                "the table",
                slopes,
                mean + slopes @ offset,
                certain_part(whole - slopes @ known @ slopes.T / n, sizes, error),
            )
            return
        # records that the query weighs alike move it alike
        blocks, first = np.unique(
            matrix.transpose(1, 0, 2).reshape(n, -1), axis=0, return_index=True
        )
        for block, record in zip(blocks, first, strict=True):
            slopes = block.reshape(dim, -1) @ slope
            yield (
                f"record {record}",
                slopes,
                mean + slopes @ offset,
                certain_part(whole - slopes @ known @ slopes.T, sizes, error),
            )

    def _round_off(
        self, slopes: Floats, inner: list[int], at: Indices | list[int], matrix: Floats
    ) -> float:
        """Relative error of the conditional covariance."""
        deviations = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        # slopes between coordinates in standard deviations; a constant has none
        rows = np.where(deviations[at] > 0, deviations[at], math.inf)[:, None]
        steepest = np.abs(slopes * deviations[inner] / rows).sum(axis=1).max()
        operations = matrix.size + len(matrix) + len(inner)
        return 8 * _EPS * operations * len(inner) * (1 + float(steepest)) ** 2

    def _offset(self, mean: Floats) -> Floats:
        """Difference from the mean of the secret to the middle of its domain."""
        return np.zeros(len(mean)) if self.middle is None else self.middle - mean

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: QueryRelease, norm: float
    ) -> OutputDistributions:
        matrix = self._matrix(release)
        assert matrix is not None  # see `provides`
        distributions: list[Gaussian] = []
        secrets: list[tuple[str, tuple[float, ...]]] = []
        pairs: list[tuple[int, int]] = []
        for name, slopes, mean, covariance in self._secrets(matrix):
            moves = self.moves
            if isinstance(moves, float):
                # the output moves in one direction: the first right singular vector
                moves = moves * np.linalg.svd(slopes)[2][:1]
            for move in moves:
                # of two secrets the means are a move apart: half to either side
                half = slopes @ move / 2
                low, high = mean - half, mean + half
                # a mean far larger than the move would swallow it: the pair is then
                # put around zero, as noise depends on the difference alone
                if np.any(np.abs(high - low - 2 * half) > _SWALLOWED * np.abs(half)):
                    low, high = -half, half
                pairs.append((len(distributions), len(distributions) + 1))
                for sign, end in ((-1, low), (1, high)):
                    distributions.append(Gaussian(end, covariance))
                    secrets.append((name, tuple((sign * move / 2).tolist())))
        return OutputDistributions(
            distributions=(tuple(distributions),),
            secrets=tuple(secrets),
            pairs=tuple(pairs),
            corners=self.scenario.shape == "box" and self._several(matrix),
            assumptions=self.statements(),
        )

    @offers(OutputSensitivity)
    def _output_sensitivity(
        self, release: QueryRelease, norm: float
    ) -> OutputSensitivity:
        # moves of a ball: the diameter times the slopes' operator norm from l2
        matrix = self._matrix(release)
        assert matrix is not None  # see `provides`
        units = 1.0 if release.units is None else np.reshape(release.units, (-1, 1))
        steepest = max(
            operator_norm(slopes / units, norm)
            for _, slopes, *_ in self._secrets(matrix)
        )
        return OutputSensitivity(radius=self.moves * steepest, **_together(self))

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        moves_of = self._moves_of(release)
        if moves_of is None:
            return self._any_record()
        assert not isinstance(release, VoteRelease)  # votes have no contribution
        norm = release.shift_norm(norm)
        moves = np.zeros(1)
        for gaps in self._feature_moves():
            # sorted, so that the largest of each rank covers every secret
            one = np.sort(np.asarray(moves_of(gaps, norm), dtype=float))[::-1]
            if len(moves) < len(one):
                moves = np.pad(moves, (0, len(one) - len(moves)))
            moves[: len(one)] = np.maximum(moves[: len(one)], one)
        # records that do not move are in both tables
        moves = moves[: max(1, int(np.count_nonzero(moves)))]
        return _moved(self, release, moves)

    def _coupling(self) -> str | None:
        """Name of the coupling that moves the whole table, or None."""
        return coupling_in_table(
            self,
            "gaussian",
            self.covariance,
            self.secret,
            self.moves,
            self.features,
            self.scenario.covariance_of,
            self.scenario.level,
            self.protected,
        )

    def _any_record(self) -> Adjacency:
        one = not self.series and self.scenario.level == "record"
        count = 1 if one else self.context.n_records
        assumptions = (
            *self.statements()[:1],
            Statement("assume.gaussian_record_any_other")
            if one
            else Statement("assume.gaussian_each_record_any_other"),
            Statement(
                "assume.dependence_count_public", n_records=self.context.n_records
            ),
        )
        return Adjacency.arbitrary(count, assumptions)

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        what = Statement("assume.gaussian_secret_record_value")
        if scenario.level == "dataset":
            what = Statement("assume.gaussian_secret_table_average")
        elif self.series and len(self.protected) < n:
            what = Statement(
                "assume.gaussian_secret_protected_records",
                n_protected=len(self.protected),
                n=n,
            )
        domain = {
            "box": Statement("assume.gaussian_domain_bounds"),
            "ball": Statement("assume.gaussian_domain_ball"),
            "points": Statement("assume.gaussian_domain_values"),
        }[scenario.shape]
        records = Statement("assume.gaussian_records_independent")
        if self.series:
            records = Statement("assume.gaussian_records_jointly")
        return (
            Statement("assume.gaussian_secret", what=what, domain=domain)
            if scenario.secret is None
            else Statement(
                "assume.gaussian_secret_in_columns",
                what=what,
                columns=scenario.secret,
                domain=domain,
            ),
            Statement("assume.gaussian_stated_covariance", n=n, records=records),
            Statement("assume.joint_count_public", n=n),
        )


def _together(bound: Any) -> dict[str, Any]:
    """Coupling of the whole table and what it assumes, as fields of a fact."""
    coupling = bound._coupling()
    shared = same_table(coupling, bound.scenario.table)
    return {"coupling_id": coupling, "assumptions": (*bound.statements(), *shared)}


def _moved(bound: Any, release: AnyRelease, moves: Floats) -> Adjacency:
    """Adjacency of tables whose records move so far, the largest move first."""
    found = Adjacency(
        count=len(moves),
        move=float(moves[0]),
        moves=moves,
        relation="replace",
        **_together(bound),
    )
    more = getattr(release.contribution, "move_assumptions", ())
    return replace(found, assumptions=(*found.assumptions, *more))


# -- langevin diffusion observed at public times: its start is secret, and fades -------


#: Dimension up to which all corners of a cube are enumerated.
MOST_CORNERS = 12


def half_the_signs(dim: int) -> Floats:
    """Corners of the cube [-1, 1]^dim as rows, one of each two opposite ones."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
    return signs[: len(signs) // 2]


def operator_norm(matrix: Floats, norm: float) -> float:
    """Operator norm of a matrix from l2 to lp, p in [1, inf], or an upper bound.

    Exact for the norms 2 and inf, for norm 1 up to `MOST_CORNERS` rows, and for a
    single row or column.
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
    synchronous coupling two paths approach each other at the rate `curvature` in the
    Euclidean norm.

    Parameters
    ----------
    curvature : float
        Least eigenvalue of the Hessian of the potential, per unit of time; may be
        negative.
    times : array-like of shape (n_records,)
        Times of the records after the start; increasing and not negative.
    diameter : float
        Largest Euclidean distance of two starting points that must look alike.
    table : str or None, default=None
        Public name of the table. Certificates of several releases on one named table
        may be added up (:func:`~skpuffer.privacy.compose`).

    Notes
    -----
    The exponent is :math:`e^{-Ct}` and the norm is l2. The bound printed with
    :math:`e^{-2Ct}` in the l1 norm does not hold: the Ornstein-Uhlenbeck process
    exceeds it.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition 6.3, corrected.

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
            raise scenario_error("diffusion.times_not_increasing", times=self.times)

    def record_shifts(self) -> Floats:
        """Return the largest Euclidean distance of records of two starts, by time."""
        self.check()
        # Driven by the same noise, two paths X and Y have a difference without noise:
        # d|X - Y|²/dt = -2 <grad V(X) - grad V(Y), X - Y> <= -2 C |X - Y|², so
        # |X_t - Y_t| <= exp(-C t) |X_0 - Y_0| (Grönwall).
        times = np.asarray(self.times, dtype=float)
        with np.errstate(over="ignore"):
            shifts = float(self.diameter) * np.exp(-float(self.curvature) * times)
        if not np.all(np.isfinite(shifts)):
            raise scenario_error("diffusion.paths_overflow")
        # a distance of zero would be a release without any noise
        return np.maximum(shifts, _LEAST_SHIFT)

    def query_shift(self, lipschitz: float = 1.0, form: str = "sum") -> float:
        """Upper bound of W_inf of a query, by its Lipschitz constant.

        Parameters
        ----------
        lipschitz : float, default=1.0
            Lipschitz constant of the query, from the norm `form` of the records.
        form : {'sum', 'stacked'}, default='sum'
            Sum of the Euclidean norms of the records, or the norm of all stacked.

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
        if np.size(self.times) != context.n_records:
            raise scenario_error(
                "diffusion.times_differ_from_records",
                n_times=np.size(self.times),
                n_records=context.n_records,
            )
        return _BoundDiffusion(self, context)

    def __repr__(self) -> str:
        times = f"<{np.size(self.times)} times>"
        table = "" if self.table is None else f", table={self.table!r}"
        return (
            f"DiffusionScenario(curvature={self.curvature!r}, times={times}, "
            f"diameter={self.diameter!r}{table})"
        )


class _BoundDiffusion(BoundScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts: set[type[Fact]] = set()
        if release.is_bounded or self._move(release) is not None:
            facts.add(Adjacency)
        raw = self.context.feature_map is None  # and not a function of the records
        if isinstance(release, QueryRelease) and raw and release.linear is not None:
            facts.add(OutputSensitivity)
        return frozenset(facts)

    def _move(self, release: Any) -> Callable[..., Any] | None:
        """Map from moves of records to moves of contributions, or None."""
        context = self.context
        usual = context.feature_map is None and context.n_features is not None
        if not (usual and release.moves_with_contributions):
            return None
        return getattr(release.contribution, "move", None)

    @offers(OutputSensitivity)
    def _output_sensitivity(
        self, release: QueryRelease, norm: float
    ) -> OutputSensitivity:
        shifts = self.scenario.record_shifts()
        matrix = np.asarray(release.linear, dtype=float)
        if matrix.ndim != 2 or matrix.shape[1] % len(shifts):
            raise scenario_error(
                "diffusion.release_matrix_not_whole_records",
                name=release.name,
                shape=matrix.shape,
                n_shifts=len(shifts),
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
        return OutputSensitivity(radius=float(min(apart, stacked)), **_together(self))

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        n, move = self.context.n_records, self._move(release)
        if move is None:
            return Adjacency.arbitrary(n, self.statements())
        # a distance bounds the move of every feature
        n_features = self.context.n_features
        assert n_features is not None  # see `_move`
        assert not isinstance(release, VoteRelease)  # votes have no contribution
        gaps = np.tile(self.scenario.record_shifts()[:, None], (1, n_features))
        moves = np.asarray(move(gaps, release.shift_norm(norm)), dtype=float)
        # how many records move that far, whichever they are: the largest first
        moves = np.sort(moves)[::-1]
        return _moved(self, release, moves)

    def _coupling(self) -> str | None:
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
