"""Which group of people a whole table is about."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.distributions._distributions import Discrete, PointMass, Samples
from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.facts import Fact, OutputDistributions, OutputSensitivity
from skpuffer.kernel.numbers import (
    Floats,
    check_at_least_one,
    check_count,
    check_extent,
    check_option,
)
from skpuffer.releases import PublicContext, QueryRelease, convert_norm
from skpuffer.scenarios._attribute import AttributeScenario
from skpuffer.schema._cells import cell_key

from ._attribute._bound import BoundAttribute, positions
from ._base import (
    AnyRelease,
    BoundScenario,
    Pairs,
    Scenario,
    check_units,
    name_of_units,
    offers,
)
from ._priors._overlap import Belief
from ._priors._tables import ReferenceTable
from ._simulator import check_running, run_tables, simulated_once

#: Public rows, or how they are drawn.
Table: TypeAlias = (
    ArrayLike | pd.DataFrame | ReferenceTable | Callable[[np.random.Generator], Any]
)


class GroupScenario(Scenario):
    """The secret is which group a whole table is about: a race, a sex, a quintile.

    The table that is fitted has the records of one group, and that group is secret. The
    groups' distributions are public: the noise covers how far the query's outputs on
    the prior rows of each group are apart.

    Parameters
    ----------
    column : str or int
        The column of the group, as the prior names it. If the data has it, with one
        value in all records, it is dropped before fitting and ignored in prediction.
    prior : table, callable, or list of these
        Public rows of all groups with the column, and the target for supervised models;
        or a callable of a NumPy generator that returns such. The promise holds for each
        belief of a list. If a prior holds private rows, the certificate is an estimate.
    n_worlds : int, default=None
        None runs the query once on the rows of each group. An integer draws so many
        bootstrap tables for each group, of as many records as the private one.
    pairs : 'all' or list of (value, value), default='all'
        The groups that must look alike.
    prior_as : {'sample', 'law'}, default=None
        How far the prior is trusted. None is 'sample'.

        - 'sample': draws from an unknown distribution. The certificate is an estimate.
        - 'law': the belief is exactly that of the prior: the one output of each group,
          or its `n_worlds` worlds with equal probability. Certified for that belief
          only.
    target : str or int, default=None
        The prior's column that is the target. None takes the name of `y` at fit.
    random_state : int, default=0
        Public seed of the worlds, not of the noise.
    n_jobs : int, default=None
        Processes that run the query on the tables, as in joblib.
    verbose : bool, default=False
        Whether to show a progress bar of the tables.

    See Also
    --------
    AttributeScenario : The secret is a record's value, or one that all records share.

    Notes
    -----
    Sizes are public: that of the private table, and those of the groups in the prior.
    Where groups have other sizes, the certificate states the assumption that the number
    tells nothing of the group. Under ``n_worlds=None`` a sum over records is scaled to
    the size of the private table; other queries run on the prior rows as they are.

    With one output for each group, the noise hides only the differences of these few
    vectors. An attacker who knows more of the table is promised nothing.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, section 6.1. Pierquin et al.
    (2024), Rényi Pufferfish privacy, Theorem 3.3.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.scenarios import GroupScenario
    >>> from skpuffer.summary import PrivateMean
    >>> public = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 40, 60]})
    >>> private = pd.DataFrame({"age": [33, 41, 35, 38, 29]})  # of one sex
    >>> mean = PrivateMean(
    ...     GroupScenario("sex", prior=public, prior_as="law"),
    ...     GeneralWasserstein(epsilon=1.0, alpha=4.0, noise="gaussian"),
    ...     bounds=(0, 100),
    ... ).fit(private)
    >>> mean.noise_.std(1).round(2)  # of a distance of 15 years, times sqrt(2)
    array([21.21])
    """

    independent_records = True

    def __init__(
        self,
        column: Hashable,
        *,
        prior: Table | Sequence[Table],
        n_worlds: int | None = None,
        pairs: Pairs = "all",
        prior_as: str | None = None,
        target: Hashable | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.column = column
        self.prior = prior
        self.n_worlds = n_worlds
        self.pairs = pairs
        self.prior_as = prior_as
        self.target = target
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def trust(self) -> str:
        """How far the prior is trusted; see the parameter `prior_as`."""
        return "sample" if self.prior_as is None else self.prior_as

    def check(self) -> None:
        """Check the parameters; see the class."""
        if self.n_worlds is not None:
            check_count(n_worlds=self.n_worlds, least=2)
        if self.prior_as is not None:
            check_option(("sample", "law"), prior_as=self.prior_as)
        check_running(self.n_jobs, self.verbose)
        if isinstance(self.prior, str):
            raise scenario_error("group.prior_not_public_table", prior=self.prior)
        if any(isinstance(prior, Belief) for prior in self._priors()):
            raise scenario_error("group.prior_declared_belief")
        self._as_attribute().check()

    def _priors(self) -> list[Any]:
        prior: Any = self.prior
        return list(prior) if isinstance(prior, list | tuple) else [prior]

    def _as_attribute(self) -> AttributeScenario:
        """Return the secret as a value that all records share, with the same tables."""
        return AttributeScenario(
            self.column,
            level="dataset",
            prior=self.prior,
            pairs=self.pairs,
            prior_as=self.trust,
            target=self.target,
            random_state=self.random_state,
        )

    def secret_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the column of the group among those of a table, or None."""
        return self._as_attribute().secret_position(feature_names, n_features)

    def check_numbers(self, labels: Sequence[int] | None, position: int | None) -> None:
        """Refuse a frame with numbers for names by which a position is in doubt."""
        self._as_attribute().check_numbers(labels, position)

    def check_secret(self, secret: ArrayLike) -> None:
        """Refuse a table of several groups, or of one that no prior has.

        Parameters
        ----------
        secret : ndarray of shape (n_records,)
        """
        if len(set(map(cell_key, np.asarray(secret)))) > 1:
            raise scenario_error("group.several_groups_in_data", column=self.column)
        self._as_attribute().check_secret(secret)

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the range of each feature over the public prior tables."""
        return self._as_attribute().declared_bounds(context)

    def public_rows(self) -> list[tuple[Any, Hashable, Hashable | None]]:
        """Return the prior tables as they came."""
        return self._as_attribute().public_rows()

    def public_table(self) -> pd.DataFrame | None:
        """Return the rows of all prior tables, without the group and the target."""
        return self._as_attribute().public_table()

    def public_record(self) -> dict[Hashable, Any]:
        """Return what comes first in each column of the first prior table.

        Returns
        -------
        dict of {column: object}
        """
        return self._as_attribute().public_record()

    def __repr__(self) -> str:
        n_priors = len(self._priors())
        prior = "<table>" if n_priors == 1 else f"<{n_priors} tables>"
        parts = [f"{self.column!r}, prior={prior}, n_worlds={self.n_worlds!r}"]
        if not isinstance(self.pairs, str):
            parts.append(f"pairs={self.pairs!r}")
        return f"GroupScenario({', '.join(parts)}, prior_as={self.trust!r})"


class _BoundGroup(BoundScenario, of=GroupScenario):
    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        self._table = BoundAttribute(scenario._as_attribute(), context)
        #: Rows of each group, by prior.
        self._sizes = [
            np.bincount(rows.codes, minlength=len(self.secrets))
            for rows in self._table.priors
        ]
        if scenario.n_worlds is not None:
            self._check_sizes()

    @property
    def secrets(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self._table.secrets

    @property
    def target_assumption(self) -> Statement:
        """Which column the target is, beside the group."""
        return self._table.target_assumption

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if not release.is_one_output:
            return frozenset()  # simulated is one output alone
        return frozenset({OutputDistributions})

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: QueryRelease, norm: float
    ) -> OutputDistributions:
        scenario = self.scenario
        return OutputDistributions(
            distributions=simulated_once(
                self, release, (), lambda: self._found(release)
            ),
            secrets=self.secrets,
            pairs=self._table.pairs,
            # share of each group in the prior's rows
            probabilities=tuple(tuple(size / size.sum()) for size in self._sizes),
            certified=scenario.trust == "law",
            assumptions=self.statements(),
        )

    def _found(self, release: QueryRelease) -> tuple[tuple[Any, ...], ...]:
        """Distributions of the output by prior and group, None without rows."""
        scenario, n = self.scenario, self.context.n_records
        n_each = 1 if scenario.n_worlds is None else int(scenario.n_worlds)
        known = [
            (prior, code)
            for prior, size in enumerate(self._sizes)
            for code in np.flatnonzero(size)
        ]
        outputs = run_tables(
            release, self._tables(known), len(known) * n_each, scenario
        ).reshape(len(known), n_each, -1)
        whole = release.is_integer and release.is_sum
        found: list[list[Any]] = [[None] * len(self.secrets) for _ in self._sizes]
        for (prior, code), points in zip(known, outputs, strict=True):
            if scenario.n_worlds is not None:
                kind = Discrete if scenario.trust == "law" else Samples
                found[prior][code] = kind(points)
                continue
            point = points[0]
            if release.is_sum:
                # a sum grows with its records: of so many as the private table has
                point = n / self._sizes[prior][code] * point
            found[prior][code] = PointMass(np.rint(point) if whole else point)
        return tuple(map(tuple, found))

    def _check_sizes(self) -> None:
        """Refuse to draw worlds from one row, which would all be alike."""
        for size in self._sizes:
            single = [self.secrets[code] for code in np.flatnonzero(size == 1)]
            if single:
                raise scenario_error(
                    "group.single_row_group", single=single, column=self.scenario.column
                )

    def _tables(self, known: list[Any]) -> Iterator[tuple[Statement, Any, Any]]:
        """Tables of each group, one after the other."""
        scenario, n = self.scenario, self.context.n_records
        for prior, code in known:
            rows = self._table.priors[prior]
            # the prior is public, and so is the label
            what = Statement(
                "group.named_group", secrets=self.secrets[code], column=scenario.column
            )
            if scenario.n_worlds is None:
                chosen = np.flatnonzero(rows.codes == code)
                yield Statement("group.rows_of_group", what=what), *_taken(rows, chosen)
                continue
            rng = np.random.default_rng([int(scenario.random_state), prior, code])
            for _ in range(scenario.n_worlds):
                chosen = positions(rows, code, n, rng)
                yield (
                    Statement("group.table_drawn_from_group", what=what),
                    *_taken(rows, chosen),
                )

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions of the groups and of the prior, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        tables = self._table._tables
        named = tuple(
            Statement(
                "assume.group_rows_and_digest",
                n_rows=len(table),
                digest=table.digest[:12],
            )
            for table in tables
        )
        of = (
            Statement("assume.group_the_public_prior")
            if len(tables) == 1
            else Statement("assume.group_a_public_prior")
        )
        if scenario.n_worlds is None:
            world = Statement("assume.group_world_own_rows", n=n)
        else:
            world = Statement(
                "assume.group_world_drawn_tables",
                n_worlds=scenario.n_worlds,
                n=n,
                random_state=scenario.random_state,
            )
        if scenario.trust == "law":
            belief = Statement(
                "assume.group_belief_exact", prior=of, tables=named, world=world
            )
        else:
            belief = Statement(
                "assume.group_belief_sampled", prior=of, tables=named, world=world
            )
        _, _, _, columns, *rest = self._table.statements()
        return (
            Statement(
                "assume.group_secret_of_table",
                column=scenario.column,
                secrets=list(self.secrets),
            ),
            Statement("assume.group_sizes_public", n=n),
            belief,
            columns,
            *rest,
        )


def _taken(rows: Any, chosen: Any) -> tuple[Any, Any]:
    return rows.X[chosen], None if rows.y is None else rows.y[chosen]


# -- weakly dependent records, at a stated W_inf distance from independent ones --------


class DependenceScenario(Scenario):
    """The secret is one record of a table of weakly dependent records.

    Dependence must move the query little. Given any value of a record, the query's
    distribution is within `distance` of that for independent records with the same
    marginals. Then two values of the record are at most ``2 * distance`` and the
    query's sensitivity to one record apart.

    Parameters
    ----------
    distance : float
        Bound on W_inf between the query's distribution given the secret and that for
        independent records with the same marginals, over all beliefs and secrets. In
        units of the query's output: means, or counts where
        :class:`~skpuffer.summary.PrivateSummary` releases counts only.
    norm : float, default=2
        Norm of `distance`.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: values of one record, or also of different ones,
        for which a record's move counts twice.
    unit : str or int, default=None
        Column of ids, as in :class:`RecordScenario`: the secret is all rows of one
        unit, and `distance` is from a table of independent units.
    max_rows : int, default=None
        Rows of a unit that are read at most. A record's move counts so many times.

    Notes
    -----
    The condition cannot be checked here; the certificate states it. It never holds for
    dependent Gaussian records: use :class:`GaussianScenario`.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition 6.1.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import DependenceScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.sum(),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={1: 1.0}, replace={1: 1.0}),
    ... )
    >>> scenario = DependenceScenario(distance=0.5)
    >>> GeneralWasserstein().calibrate(release, scenario).certificate.sensitivity
    2.0
    """

    def __init__(
        self,
        distance: float,
        norm: float = 2,
        pairs: str = "same_index",
        *,
        unit: Hashable | None = None,
        max_rows: int | None = None,
    ) -> None:
        self.distance = distance
        self.norm = norm
        self.pairs = pairs
        self.unit = unit
        self.max_rows = max_rows

    def check(self) -> None:
        """Check the parameters; see the class."""
        distance = check_extent(distance=self.distance)
        if distance == float("inf"):
            raise scenario_error("dependence.distance_infinite")
        check_at_least_one(norm=self.norm)
        check_option(("same_index", "all"), pairs=self.pairs)
        check_units(self)


class _BoundDependence(BoundScenario, of=DependenceScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        known = release.is_one_output and release.is_bounded
        return frozenset({OutputSensitivity} if known else ())

    @offers(OutputSensitivity)
    def _output_sensitivity(
        self, release: AnyRelease, norm: float
    ) -> OutputSensitivity:
        scenario = self.scenario
        assert release.sensitivity is not None  # or the fact is not on offer
        # across independent records: one record replaced (twice between two records)
        one = release.sensitivity.value("replace", norm, release.dim)
        of_units: tuple[Statement, ...] = ()
        if scenario.max_rows is not None:
            of_units = (
                Statement(
                    "assume.dependence_of_units",
                    unit=name_of_units(scenario),
                    max_rows=int(scenario.max_rows),
                ),
            )
            # one row after the other, unless a unit is one record of the release
            one *= 1 if self.context.of_units else int(scenario.max_rows)
        # Triangle inequality for W_inf: to independent records, across, and back. In
        # units, a displacement grows at most as much as in the smallest one.
        distance = float(scenario.distance)
        if release.units is not None:
            distance /= min(release.units)
        distance = convert_norm(distance, float(scenario.norm), norm, release.dim)
        across = scenario.pairs == "all"
        which = (
            Statement("assume.values_any_two_records")
            if across
            else Statement("assume.values_one_record")
        )
        return OutputSensitivity(
            radius=2 * distance + (2 if across else 1) * one,
            coupling_id=None,
            assumptions=(
                Statement("assume.dependence_secret_any_record", which=which),
                Statement(
                    "assume.dependence_distance_bounded",
                    name=release.name,
                    distance=scenario.distance,
                    norm=scenario.norm,
                ),
                Statement(
                    "assume.dependence_count_public", n_records=self.context.n_records
                ),
                *of_units,
            ),
        )
