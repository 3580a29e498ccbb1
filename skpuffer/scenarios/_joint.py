"""Joint distribution of all records, given by enumeration of tables."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import entr

from skpuffer.distributions._distributions import Discrete, Distribution
from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.facts import Adjacency, Fact, OutputDistributions
from skpuffer.kernel.numbers import Floats, Indices, check_option
from skpuffer.kernel.releases import Release
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.utils._checks import check_masses, check_sizes

from ._base import (
    AnyRelease,
    BoundScenario,
    Rows,
    Scenario,
    finite_output,
    matched_rows,
    offers,
    protected_records,
    restating,
    stated,
)
from ._facts import OutputSamples
from ._priors._tables import bound_arrays

#: Numbers in all tables together, and tables a query is run on one by one.
_MOST_NUMBERS = 10_000_000
_MOST_RUNS = 200_000
_LARGEST_DENOMINATOR = 10**6


class JointTableScenario(Scenario):
    """The secret is a record's value, and every possible table is listed.

    Any dependence between few records is stated by enumeration, and any query's
    distributions follow exactly.

    Parameters
    ----------
    tables : array-like of shape (n_tables, n_records) or \
            (n_tables, n_records, n_features)
        All tables that may be.
    probabilities : array-like of shape (n_tables,), or list of these
        Masses that sum to one, or integer counts. The promise holds for each of a list.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: values of one record, or of any two records.
    protected : array-like of int, default=None
        Records whose value is secret, from zero. None is all.

    Notes
    -----
    The tables may hold ten million numbers together. A query that is not a sum over
    records is run on 200 000 tables at most. Masses are added as integers.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Examples 1 and 2.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import JointTableScenario
    >>> scenario = JointTableScenario(
    ...     tables=[[0, 0], [0, 1], [1, 0], [1, 1]],
    ...     probabilities=[0.4, 0.1, 0.1, 0.4],
    ... )
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=2, dim=1)
    >>> GeneralWasserstein().calibrate(release, scenario).certificate.sensitivity
    2.0
    """

    def __init__(
        self,
        tables: ArrayLike,
        probabilities: ArrayLike | Sequence[ArrayLike],
        *,
        pairs: str = "same_index",
        protected: ArrayLike | None = None,
    ) -> None:
        self.tables = tables
        self.probabilities = probabilities
        self.pairs = pairs
        self.protected = protected

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("same_index", "all"), pairs=self.pairs)
        tables = self._tables()
        self._masses(len(tables))
        protected_records(self.protected, tables.shape[1])

    def _tables(self) -> Floats:
        """All tables, of shape (n_tables, n_records, n_features)."""
        tables = stated(check_sizes, tables=self.tables)
        tables = tables[:, :, None] if tables.ndim == 2 else tables
        if tables.ndim != 3 or tables.size == 0:
            raise scenario_error("joint.tables_shape_invalid", shape=tables.shape)
        if tables.size > _MOST_NUMBERS:
            raise scenario_error(
                "joint.tables_too_large", size=tables.size, most_numbers=_MOST_NUMBERS
            )
        return tables

    def _masses(self, n_tables: int) -> list[NDArray[np.object_]]:
        """Masses of the tables by belief, as integers."""
        given: Any = self.probabilities
        # a list of numbers is one belief, a list of arrays are several
        several = np.iterable(given) and any(
            np.iterable(one) and not isinstance(one, str) for one in given
        )
        beliefs = list(given) if several else [given]
        out = []
        for belief in beliefs:
            with restating("joint.probabilities_invalid", n_tables=n_tables):
                masses = np.asanyarray(belief)  # a mask is kept, and refused
                check_masses(n_tables, probabilities=masses)
            out.append(_integers(masses))
        return out

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the range of each feature over all tables."""
        rows = _rows(self._tables(), context)
        return rows.min(axis=0), rows.max(axis=0)

    def __repr__(self) -> str:
        shape = np.shape(self.tables)
        return (
            f"JointTableScenario(<{shape[0]} tables of {shape[1]} records>, "
            f"pairs={self.pairs!r})"
        )


def _integers(masses: Floats) -> NDArray[np.object_]:
    """Masses as integers, exact up to their sum."""
    if masses.dtype.kind in "iu":
        return masses.astype(object)
    values = masses.astype(float)
    if len(values) <= 10_000:
        # decimals and fractions are read as what they were meant to be
        read = [Fraction(p).limit_denominator(_LARGEST_DENOMINATOR) for p in values]
        close = all(
            abs(float(f) - p) <= 1e-15 * p for f, p in zip(read, values, strict=True)
        )
        if close and sum(read) == 1:
            common = math.lcm(*(f.denominator for f in read))
            out = np.empty(len(read), dtype=object)
            out[:] = [int(f * common) for f in read]
            return out
    # else the exact binary values, over their common power of two
    mantissa, exponent = np.frexp(values)
    exponent[values == 0] = exponent.max()
    mantissa = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    return mantissa << (exponent - exponent.min()).astype(object)


def _rows(tables: Floats, context: PublicContext) -> Floats:
    """All records, one table after the other, as the query reads them."""
    flat, names = tables.reshape(-1, tables.shape[2]), context.feature_names
    if names is not None and len(names) == flat.shape[1]:
        flat = pd.DataFrame(flat, columns=list(names))
    return bound_arrays(context, flat)[0]


class _BoundJointTable(BoundScenario, of=JointTableScenario):
    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        tables = scenario._tables()
        n = tables.shape[1]
        if n != context.n_records:
            raise scenario_error(
                "joint.record_count_differs", n=n, n_records=context.n_records
            )
        self.masses = scenario._masses(len(tables))
        # tables that no belief thinks possible are of no event
        possible = np.any([masses > 0 for masses in self.masses], axis=0)
        self.tables = tables[possible]
        self.masses = [masses[possible] for masses in self.masses]
        # a secret is the event, as a mask of the tables, that a record has a value
        self.secrets, self.events = [], []
        for record in protected_records(scenario.protected, n):
            values, codes = np.unique(
                self.tables[:, record], axis=0, return_inverse=True
            )
            for code, value in enumerate(values.tolist()):
                self.secrets.append((record, tuple(value)))
                self.events.append(codes.reshape(-1) == code)
        same = scenario.pairs == "same_index"
        self.pairs = tuple(
            (i, j)
            for i in range(len(self.secrets))
            for j in range(i + 1, len(self.secrets))
            if not same or self.secrets[i][0] == self.secrets[j][0]
        )
        # some belief must give both secrets of a pair a positive probability
        positive = [
            [bool(sum(masses[event])) for event in self.events]
            for masses in self.masses
        ]
        if not any(known[i] and known[j] for known in positive for i, j in self.pairs):
            raise scenario_error("joint.no_pair_possible")

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts: set[type[Fact]] = set()
        if release.is_bounded:
            facts.add(Adjacency)
        if release.is_one_output and self._readable(release):
            facts.add(OutputDistributions)
            # an information is about one belief, and the mixture of several is none
            if len(self.masses) == 1:
                facts.add(OutputSamples)
        return frozenset(facts)

    def _readable(self, release: Release) -> bool:
        # tables hold no targets, and a query that is no sum is run on each
        if getattr(release.contribution, "needs_target", False):
            return False
        return release.is_sum or len(self.tables) <= _MOST_RUNS

    @cached_property
    def _arrays(self) -> Floats:
        """All tables as the query reads them."""
        rows = _rows(self.tables, self.context)
        return rows.reshape(len(self.tables), self.context.n_records, -1)

    def check_rows(self, X: Rows) -> Rows:
        """Return the table that is listed; refuse one that is not."""
        given: Any = X
        table = given.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        tables = self._arrays.reshape(len(self.tables), -1)
        (which,) = matched_rows(table.reshape(1, -1), tables)
        if which < 0:
            raise scenario_error("joint.data_not_listed")
        return self._arrays[which]

    def _outputs(self, release: QueryRelease) -> Floats:
        """The release of each table, of shape (n_tables, dim)."""
        arrays = self._arrays
        if not release.is_sum:
            return np.array([finite_output(release, table, None) for table in arrays])
        # a sum over records: the contribution of each distinct record once
        rows, where = np.unique(
            arrays.reshape(-1, arrays.shape[2]), axis=0, return_inverse=True
        )
        assert release.contribution is not None  # a sum has one
        values = np.asarray(release.contribution(rows, None), dtype=float)
        values = values.reshape(len(rows), -1)
        if not np.all(np.isfinite(values)):
            raise scenario_error("joint.release_not_finite", name=release.name)
        sums = np.zeros((len(arrays), values.shape[1]))
        for record in where.reshape(arrays.shape[:2]).T:
            sums += values[record]
        units = release.unit_array
        return release.factor * sums * units

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: QueryRelease, norm: float
    ) -> OutputDistributions:
        # tables of one output are one atom of its distribution
        outputs, where = np.unique(self._outputs(release), axis=0, return_inverse=True)
        where = where.reshape(-1)
        distributions, probabilities = [], []
        for masses in self.masses:
            found = [
                _conditional_distribution(outputs, where[event], masses[event])
                for event in self.events
            ]
            distributions.append(tuple(found))
            total = sum(masses)
            probabilities.append(
                tuple(float(sum(masses[event]) / total) for event in self.events)
            )
        return OutputDistributions(
            distributions=tuple(distributions),
            secrets=tuple(self.secrets),
            pairs=self.pairs,
            probabilities=tuple(probabilities),
            assumptions=self.statements(),
        )

    @offers(OutputSamples)
    def _output_samples(self, release: QueryRelease, norm: float) -> OutputSamples:
        outputs = self._outputs(release)
        (masses,) = self.masses
        weights = np.array([float(Fraction(m, sum(masses))) for m in masses])
        weights /= weights.sum()

        def again(n: int, rng: Any) -> Floats:
            chosen = np.random.default_rng(rng).choice(len(outputs), n, p=weights)
            return outputs[chosen]

        # the whole table is the secret, and a table that is listed twice is one
        _, groups = np.unique(
            self.tables.reshape(len(self.tables), -1), axis=0, return_inverse=True
        )
        groups = groups.reshape(-1)
        return OutputSamples(
            draws=outputs,
            weights=weights,
            groups=groups,
            regime="enumerated",
            entropy=float(entr(np.bincount(groups, weights)).sum()),
            again=again,
            assumptions=(
                Statement("assume.joint_secret_whole_table"),
                *self.statements()[1:],
                Statement("assume.joint_average_over_tables"),
            ),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        return Adjacency.arbitrary(self.context.n_records, self.statements())

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        which = {
            "same_index": Statement("assume.joint_values_same_record"),
            "all": Statement("assume.joint_values_any_record"),
        }[scenario.pairs]
        belief = Statement("assume.joint_stated_probabilities")
        if len(self.masses) > 1:
            belief = Statement(
                "assume.joint_one_of_probabilities", n_masses=len(self.masses)
            )
        return (
            Statement("assume.joint_secret_record_value", which=which),
            Statement(
                "assume.joint_table_listed", n_tables=len(self.tables), belief=belief
            ),
            Statement("assume.joint_count_public", n=n),
        )


def _conditional_distribution(
    outputs: Floats, where: Indices, masses: NDArray[np.object_]
) -> Discrete | None:
    """Distribution of the output given an event, or None if it has no mass."""
    total = sum(masses)
    if not total:
        return None
    # P(output | event): masses of the tables with that output over the event's, exactly
    sums = np.zeros(len(outputs), dtype=object)
    np.add.at(sums, where, masses)
    kept = np.flatnonzero(sums)
    weights = np.empty(len(kept), dtype=object)
    weights[:] = [Fraction(mass, total) for mass in sums[kept]]
    return Discrete(outputs[kept], weights)


# -- output distributions given explicitly ---------------------------------------------


class LawsScenario(Scenario):
    """Pairs of distributions of the query's output that must look alike.

    Also distribution privacy (Chen and Ohrimenko, 2023): pairs of distributions the
    data may have been drawn from.

    Parameters
    ----------
    laws : list of (Distribution, Distribution)
        The output, in its own units, under the two secrets of a pair and one prior.

    References
    ----------
    Pierquin et al. (2024), Definition C.1 and Proposition C.3.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    >>> infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    >>> scenario = LawsScenario([(healthy, infected)])
    >>> count = QueryRelease(query=lambda X, y: X.sum(), n_records=9, dim=1)
    >>> GeneralWasserstein().calibrate(count, scenario).certificate.sensitivity
    2.0
    """

    def __init__(self, laws: Sequence[tuple[Distribution, Distribution]]) -> None:
        self.laws = laws

    def check(self) -> None:
        """Check the parameters; see the class."""
        try:
            pairs = [tuple(pair) for pair in self.laws]
        except TypeError:
            pairs = []
        if not pairs or any(
            len(pair) != 2 or not all(isinstance(one, Distribution) for one in pair)
            for pair in pairs
        ):
            raise scenario_error("laws.pairs_not_a_list")
        with restating("laws.distribution_out_of_range"):
            for one in {one for pair in pairs for one in pair}:
                one.check()
        dims = {one.dim for pair in pairs for one in pair}
        if len(dims) > 1:
            raise scenario_error("laws.dimensions_mixed", dims=sorted(dims))


class _BoundLaws(BoundScenario, of=LawsScenario):
    @property
    def _dim(self) -> int:
        return self.scenario.laws[0][0].dim

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if not release.is_one_output:
            return frozenset()  # given are the distributions of one output
        # said here, so that `supports` does not promise what a fit refuses
        if release.dim != self._dim:
            raise scenario_error(
                "laws.dimension_differs_from_release",
                n_coordinates=self._dim,
                name=release.name,
                n_numbers=release.dim,
            )
        return frozenset({OutputDistributions})

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: AnyRelease, norm: float
    ) -> OutputDistributions:
        flat = tuple(one for pair in self.scenario.laws for one in pair)
        n = len(flat)
        return OutputDistributions(
            distributions=(flat,),
            # each distribution is a secret of its own, next to its partner
            secrets=tuple(range(n)),
            pairs=tuple((i, i + 1) for i in range(0, n, 2)),
            certified=all(one.certified for one in flat),
            assumptions=(
                Statement("assume.output_follows_given_laws", name=release.name, n=n),
            ),
        )

    def describe(self) -> str:
        return f"LawsScenario({len(self.scenario.laws)} pairs of distributions)"
