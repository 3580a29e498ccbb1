"""Facts of an attribute scenario bound to a table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
import pandas as pd

from skpuffer.distributions import Distribution
from skpuffer.distributions._distributions import (
    Discrete,
    Samples,
    Support,
    largest_distance,
)
from skpuffer.distributions._weak_cache import is_data, life_of, remembered_with
from skpuffer.exceptions import EmpiricalPriorWarning, Statement, scenario_error
from skpuffer.kernel.facts import (
    Adjacency,
    CoupledSamples,
    Fact,
    OutputDistributions,
    RecordDistributions,
)
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.kernel.releases import Release
from skpuffer.releases import PublicContext, QueryRelease, VoteRelease
from skpuffer.scenarios._base import (
    AnyRelease,
    BoundScenario,
    coupling_in_table,
    kind_of_units,
    name_of_units,
    offers,
    resolve_pairs,
    same_table,
)
from skpuffer.scenarios._facts import OutputSamples
from skpuffer.scenarios._priors._bounded import variation_radius
from skpuffer.scenarios._priors._coding import check_target, target_statement
from skpuffer.scenarios._priors._tables import (
    ReferenceTable,
    ordered,
    prior_arrays,
    secret_values,
)
from skpuffer.scenarios._simulator import fresh_generator, run_tables, simulated_once
from skpuffer.schema._cells import level_places
from skpuffer.utils._reading import matching_names, to_pandas
from skpuffer.utils._silence import warn

#: More values than this make a column a number, not a secret to be told apart.
MAX_SECRETS = 64

#: Distribution that a prior's rows are read as, by the parameter `prior_as`.
DISTRIBUTION_TYPES = {
    "law": Discrete,
    "sample": Samples,
    "support": Support,
    "confidence": Discrete,
}

#: Readings of a prior that bound how far a record moves for certain.
_CERTAIN = ("law", "support")

_LEVELS = {
    "record": Statement("assume.records_independent"),
    "dataset": Statement("assume.records_independent_given_secret"),
}

_LEAK = Statement("assume.empirical_prior_noise_leaks")


@dataclass(frozen=True)
class PriorRows:
    """Rows of one prior as the model's query reads them, comparable by content."""

    X: np.ndarray = field(compare=False)
    y: np.ndarray | None = field(compare=False)
    codes: np.ndarray = field(compare=False)
    digest: str


@remembered_with(1)
def _contribution_distributions(
    life: Any, rows: PriorRows, n_secrets: int, contribution: Any, prior_as: str
) -> tuple[Any, ...]:
    """Distributions of a record's contribution by secret, and a digest of values."""
    values = np.asarray(contribution(rows.X, rows.y), dtype=float)
    if not np.all(np.isfinite(values)):
        raise scenario_error("attribute.query_not_finite_on_prior")
    kind = DISTRIBUTION_TYPES[prior_as]
    distributions: list[Discrete | None] = []
    for code in range(n_secrets):
        mine = values[rows.codes == code]
        if len(mine) == 0:
            distributions.append(None)
            continue
        # not merged into distinct rows here: distances do that where it pays
        distributions.append(kind(mine))
    return tuple(distributions), joblib.hash(values)


class BoundAttribute(BoundScenario):
    """Facts of an attribute scenario; see :class:`AttributeScenario`."""

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        self._empirical = scenario.needs_empirical
        tables, target = self._prior_tables()
        self._tables, self._target = tables, target
        secrets = set().union(*(secret_values(t, scenario.column) for t in tables))
        self.secrets = tuple(ordered(secrets))
        if self._empirical and len(self.secrets) > MAX_SECRETS:
            raise scenario_error(
                "attribute.too_many_secret_values",
                column=scenario.column,
                n_secrets=len(self.secrets),
                max_secrets=MAX_SECRETS,
            )
        self.pairs = resolve_pairs(
            scenario.pairs,
            self.secrets,
            Statement("assume.secret_named_column", column=scenario.column),
            public=not self._empirical,
        )
        self.priors = tuple(self._bind_prior(table, target) for table in tables)
        # pairs of which no prior gives both secrets a positive probability
        self._uncovered = [
            tuple(self.secrets[code] for code in pair)
            for pair in self.pairs
            if not any(np.isin(pair, rows.codes).all() for rows in self.priors)
        ]
        if len(self._uncovered) == len(self.pairs):
            raise scenario_error("attribute.no_pair_possible")

    # -- meeting the public facts -------------------------------------------------

    def _prior_tables(self) -> tuple[Any, ...]:
        """Reference tables and the name of their target column, if they have one."""
        scenario, context = self.scenario, self.context
        if not self._empirical:
            tables, target = scenario._tables(), scenario.target
            check_target(scenario, context)
            if target is None and context.target_name is not None:
                known = all(context.target_name in t.columns for t in tables)
                target = context.target_name if known else None
            return tables, target
        if context.empirical is None:
            raise scenario_error("attribute.empirical_prior_outside_fit")
        X, y, secret = context.empirical
        if secret is None:
            raise scenario_error(
                "attribute.empirical_secret_not_passed", column=scenario.column
            )
        warn(Statement("attribute.empirical_prior_leaks"), EmpiricalPriorWarning)
        frame = to_pandas(X).copy()
        names = matching_names(X)
        if names is None:
            # positions would clash with a secret column that is named by position
            frame.columns = [f"feature {i}" for i in range(frame.shape[1])]
        target = None
        if y is not None:
            target = Statement(
                "attribute.target_of_classes", columns=list(frame.columns)
            )  # a new name
            frame[target] = np.asarray(y)
        frame[scenario.column] = np.asarray(secret)
        table = ReferenceTable(frame)
        if names is None:
            table._names = None  # columns are matched by position again
        return [table], target

    def _bind_prior(
        self, table: ReferenceTable, target: Statement | str | None
    ) -> PriorRows:
        X, y = prior_arrays(self.scenario, table, target, self.context)
        # equal by content, so that the cache serves every clone of the scenario
        codes = self._codes(table._frame[self.scenario.column])
        return PriorRows(X, y, codes, joblib.hash((X, y, codes)))

    @property
    def prior_as(self) -> str:
        """How far the prior is trusted; the private rows are a sample."""
        return "sample" if self._empirical else self.scenario.trust

    # -- facts --------------------------------------------------------------------

    def _codes(self, secret: pd.Series) -> Indices:
        """Index of each value among the secrets; -1 for one that no prior has."""
        return np.maximum(level_places(self.secrets, np.asarray(secret)), -1)

    @property
    def target_assumption(self) -> Statement:
        """Which column the target is, beside the secret."""
        return target_statement(self.scenario, self.context)

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        facts = self._offered(release)
        # distributions and simulated tables are of single rows
        several = (self.scenario.max_rows or 1) > 1 or self.context.of_units
        return facts & {Adjacency} if several else facts

    def _offered(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if release.contribution is None:
            # a stated sensitivity is certain; simulated tables only estimate
            if not release.is_one_output:
                return frozenset({Adjacency})
            stated = release.is_bounded
            return frozenset({Adjacency if stated else CoupledSamples, OutputSamples})
        # adaptive steps have no output that tables could be simulated through
        if not isinstance(release, QueryRelease):
            return frozenset({Adjacency})
        facts = {Adjacency, OutputSamples}
        # One record's contribution stands for the table only if the other records are
        # independent of the secret.
        if self.scenario.level == "record" and self._readable(release):
            if release.is_sum:
                facts.add(OutputDistributions)
            elif release.modulus is not None:
                facts.add(RecordDistributions)
        return frozenset(facts)

    def _readable(self, release: Release) -> bool:
        """Whether the priors hold all that a record's contribution is made of."""
        needs = getattr(release.contribution, "needs_target", False)
        return not needs or all(rows.y is not None for rows in self.priors)

    def _contributions(self, release: Release) -> tuple[Any, ...]:
        """Distributions of a record's contribution by prior and secret; digests."""
        # Nothing is kept of an empirical prior: its rows are private. Code may read
        # anything, so what it gave is kept for this fit alone.
        shared = life_of(self.scenario) if is_data(release.contribution) else self
        life = None if self._empirical else shared
        of = len(self.secrets), release.contribution, self.prior_as
        found = [_contribution_distributions(life, rows, *of) for rows in self.priors]
        return tuple(zip(*found, strict=True))

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions of the priors and of the level of the secret, in sentences."""
        scenario = self.scenario
        given = {
            "sample": Statement("assume.prior_given_sample"),
            "law": Statement("assume.prior_given_exact"),
            "support": Statement("assume.prior_given_support"),
            "confidence": Statement("assume.prior_given_sample_with_confidence"),
        }[self.prior_as]
        reading = (
            _LEAK if self._empirical else Statement("assume.prior_reading", given=given)
        )
        asked = scenario.pairs
        chosen = (
            Statement(
                "assume.only_chosen_pairs_protected",
                pairs=[tuple(self.secrets[i] for i in p) for p in self.pairs],
            ),
        )
        vacuous = (Statement("assume.pairs_vacuous", pairs=list(self._uncovered)),)
        positional = (Statement("assume.columns_matched_by_position"),)
        return (
            Statement(
                "assume.attribute_secret_column",
                column=scenario.column,
                secrets=list(self.secrets),
            ),
            _LEVELS[scenario.level]
            if scenario.max_rows is None
            else Statement(
                "assume.units_independent",
                unit=name_of_units(scenario),
                max_rows=int(scenario.max_rows),
            ),
            reading,
            Statement(
                "assume.attribute_units_of_prior", n_records=self.context.n_records
            ),
            *(() if all(table.named for table in self._tables) else positional),
            *(() if isinstance(asked, str) else chosen),
            *(vacuous if self._uncovered else ()),
        )

    def trust(self, distributions: Any) -> dict[str, Any]:
        """How far the distributions are known, in the fields that every fact has."""
        scenario = self.scenario
        trust = {
            "certified": self.prior_as != "sample",
            "assumptions": self.statements(),
        }
        if self.prior_as == "confidence":
            delta = self._confidence_delta(distributions)
            # rows whose value changes, however many records of the release they are
            n_rows = int(scenario.max_rows or 1)
            if scenario.level == "dataset":
                n_rows = self.context.n_records
            if n_rows > 1 and delta < 1:
                # independent records: 1 - (1 - delta)^n, the mass of some bad event
                delta = -math.expm1(n_rows * math.log1p(-delta))
            if delta >= 1:
                raise scenario_error(
                    "attribute.prior_confidence_vacuous", confidence=scenario.confidence
                )
            trust |= {"delta": delta, "confidence": float(scenario.confidence)}
        return trust

    def _confidence_delta(self, distributions: tuple[Any, ...]) -> float:
        """Mass outside of which the prior's distributions stand for the true ones.

        The largest over pairs, by a union bound over all distributions. From one on it
        says nothing.
        """
        # Each true distribution is, with probability 1 - beta, within its radius of the
        # prior's in total variation, so that a coupling of both differs with no more
        # than that mass. Glued to the coupling of a pair, one for either secret, it
        # moves records by what the prior says except for the sum of the two radii.
        known = [one for prior in distributions for one in prior if one is not None]
        beta = (1 - self.scenario.confidence) / len(known)
        worst = 0.0
        for prior in distributions:
            points = [one.points for one in prior if one is not None]
            # all points of a prior, on which by assumption the true distribution is
            size = len(np.unique(np.concatenate(points), axis=0))
            radius = [
                None if one is None else variation_radius(size, len(one.points), beta)
                for one in prior
            ]
            for i, j in self.pairs:
                first, second = radius[i], radius[j]
                if first is not None and second is not None:
                    worst = max(worst, first + second)
        return worst

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: QueryRelease, norm: float
    ) -> OutputDistributions:
        distributions, _ = self._contributions(release)
        units = release.unit_array
        return OutputDistributions(
            distributions=tuple(
                tuple(None if one is None else _scaled(one, units) for one in prior)
                for prior in distributions
            ),
            scale=abs(release.factor),  # distances do not know of a sign
            secrets=self.secrets,
            pairs=self.pairs,
            # frequency of each secret in the prior's rows
            probabilities=tuple(
                tuple(np.bincount(r.codes, minlength=len(self.secrets)) / len(r.codes))
                for r in self.priors
            ),
            common_part_removed=True,
            **self.trust(distributions),
        )

    @offers(RecordDistributions)
    def _record_distributions(
        self, release: AnyRelease, norm: float
    ) -> RecordDistributions:
        distributions, _ = self._contributions(release)
        return RecordDistributions(
            distributions=distributions,
            secrets=self.secrets,
            pairs=self.pairs,
            **self.trust(distributions),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        scenario = self.scenario
        # a value that all records share may move all of them
        count = 1 if scenario.level == "record" else self.context.n_records
        if scenario.max_rows is not None and not self.context.of_units:
            count = int(scenario.max_rows)
        if release.contribution is None:
            return self._any_record(
                count, Statement("assume.reason_query_not_recordwise")
            )
        # A bounded release is promised to everyone as it is; an estimate would be less.
        firm = isinstance(release, QueryRelease) or self.prior_as in _CERTAIN
        if not firm:
            return self._any_record(count, Statement("assume.reason_move_from_sample"))
        assert not isinstance(release, VoteRelease)  # votes have no contribution
        norm = release.shift_norm(norm)
        if self.context.of_units and isinstance(release, QueryRelease):
            # whose contributions read the weights of rows, which no prior has
            return self._any_record(count, Statement("assume.reason_rows_are_weighed"))
        if not self._readable(release):
            return self._any_record(
                count, Statement("assume.reason_prior_without_target")
            )
        distributions, names = self._contributions(release)
        pairs = [
            (prior[i], prior[j])
            for prior in distributions
            for i, j in self.pairs
            if prior[i] is not None and prior[j] is not None
        ]
        # An optimal coupling moves a record's contribution by no more than W_inf. For
        # all records at once, independent given the secret, take it for each.
        move, _ = largest_distance(pairs, norm, ceiling=release.shift_ceiling)
        # from the ceiling on the bound for arbitrary records is no worse
        if math.isinf(move):
            return self._any_record(count, Statement("assume.reason_move_very_far"))
        coupling, trust = self._coupling(names, norm), self.trust(distributions)
        trust["assumptions"] += same_table(coupling, self.scenario.table)
        return Adjacency(
            count=count,
            move=move,
            relation="replace",
            coupling_id=coupling,
            # a secret about one record is about a given one
            settled=count == 1,
            units=kind_of_units(scenario),
            **trust,
        )

    def _coupling(self, contributions: tuple[str, ...], norm: float) -> str | None:
        """Name of the optimal coupling of a record's two distributions, or None."""
        scenario, units = self.scenario, kind_of_units(self.scenario)
        if not all(table.named for table in self._tables):
            return None
        # each release drops rows of its own, and each of them may be a bad event
        if units is not None and self.prior_as == "confidence":
            return None
        level = scenario.level if units is None else f"unit {units},"
        return coupling_in_table(
            self,
            f"{level} {scenario.column}",
            [table.digest for table in self._tables],
            self._target,
            self.pairs,  # indices into the secrets, which the tables hold
            self.prior_as,
            contributions,
            float(norm),
        )

    def _any_record(self, count: int, reason: Statement) -> Adjacency:
        """Adjacency by which records may become any others: no prior is needed."""
        assumptions = (
            *self.statements()[:2],
            Statement("assume.attribute_record_any_other", reason=reason)
            if count == 1
            else Statement("assume.attribute_each_record_any_other", reason=reason),
            Statement(
                "assume.dependence_count_public", n_records=self.context.n_records
            ),
            *((_LEAK,) if self._empirical else ()),
        )
        units = kind_of_units(self.scenario)
        found = Adjacency.arbitrary(count, assumptions, units=units)
        return replace(found, settled=count == 1)

    def _run(
        self, release: QueryRelease, draws: Iterator[Any], n_tables: int
    ) -> Floats:
        """Outputs on tables of prior rows, as they are drawn."""
        tables = (
            ("", rows.X[chosen], None if rows.y is None else rows.y[chosen])
            for rows, chosen in draws
        )
        return run_tables(release, tables, n_tables, self.scenario)

    def _outputs(
        self, release: QueryRelease, known: Sequence[tuple[int, ...]], kind: str
    ) -> Floats:
        """Outputs on tables coupled by prior and secrets, found once for each kind."""
        scenario, n = self.scenario, self.context.n_records
        couple, n_draws = _COUPLINGS[scenario.level], int(scenario.n_draws)

        def draws() -> Iterator[Any]:
            for prior, *codes in known:
                rows = self.priors[prior]
                rng = np.random.default_rng([int(scenario.random_state), prior, *codes])
                for _ in range(n_draws):
                    for chosen in couple(rows, tuple(codes), n, rng):
                        yield rows, chosen

        n_tables = n_draws * sum(len(codes) for _, *codes in known)
        return simulated_once(
            self, release, (kind,), lambda: self._run(release, draws(), n_tables)
        )

    @offers(CoupledSamples)
    def _coupled_samples(self, release: QueryRelease, norm: float) -> CoupledSamples:
        """Outputs on pairs of coupled tables; see :class:`CoupledSamples`."""
        scenario = self.scenario
        known = [
            (prior, i, j)
            for prior, rows in enumerate(self.priors)
            for i, j in self.pairs
            if np.any(rows.codes == i) and np.any(rows.codes == j)
        ]

        outputs = self._outputs(release, known, "pairs")
        found = outputs.reshape(len(known), int(scenario.n_draws), 2, -1)
        return CoupledSamples(
            draws=tuple(
                (*at, one[:, 0], one[:, 1])
                for at, one in zip(known, found, strict=True)
            ),
            secrets=self.secrets,
            certified=False,
            assumptions=(
                *self.statements(),
                Statement(
                    "assume.simulated_pairs_stand_for_all", n_draws=scenario.n_draws
                ),
            ),
        )

    @offers(OutputSamples)
    def _output_samples(self, release: QueryRelease, norm: float) -> OutputSamples:
        """Outputs on tables drawn given every secret; see :class:`OutputSamples`."""
        scenario, n = self.scenario, self.context.n_records
        n_draws = int(scenario.n_draws)
        masses = [
            np.bincount(rows.codes, minlength=len(self.secrets)) / len(rows.codes)
            for rows in self.priors
        ]
        known = [
            (prior, int(code))
            for prior, mass in enumerate(masses)
            for code in np.flatnonzero(mass)
        ]

        outputs = self._outputs(release, known, "single")
        # each secret by its mass under the prior, each prior alike
        weights = [masses[prior][code] / n_draws / len(masses) for prior, code in known]

        def again(n_fresh: int, rng: Any) -> Floats:
            fresh = fresh_generator(rng)

            def draws() -> Iterator[Any]:
                for _ in range(n_fresh):
                    rows = self.priors[fresh.integers(len(self.priors))]
                    # as likely as its share of the rows, where all records share it
                    code = (
                        fresh.choice(rows.codes)
                        if scenario.level == "dataset"
                        else None
                    )
                    yield rows, positions(rows, code, n, fresh)

            return self._run(release, draws(), n_fresh)

        return OutputSamples(
            draws=outputs,
            weights=np.repeat(weights, n_draws),
            groups=np.repeat([code for _, code in known], n_draws),
            again=again,
            # of a sample, tables are drawn of another law than the attacker's belief;
            # of several beliefs the attacker holds one
            certified=self.prior_as == "law" and len(self.priors) == 1,
            assumptions=(
                *self.statements(),
                Statement(
                    "assume.simulated_tables_stand_for_prior", n_outputs=len(outputs)
                ),
            ),
        )


@remembered_with(1)
def _scaled_cached(distribution: Discrete, units: tuple[float, ...]) -> Discrete:
    kind = type(distribution)
    return kind(distribution.points * np.asarray(units), distribution.weights)


def _scaled(distribution: Distribution, units: Floats | float) -> Distribution:
    """Distribution in the output's own units; the same object where they are one."""
    if np.ndim(units) == 0:
        return distribution
    return _scaled_cached(distribution, tuple(np.asarray(units).tolist()))


# -- samples of the output on tables simulated from an attribute scenario's priors -----
# For queries that are no function of single records, such as a forest's importances.
# What is read off finitely many simulations is an estimate.


def positions(rows: Any, code: int | None, n: int, rng: Any) -> Any:
    """Draw the positions of prior rows, with repeats."""
    among = np.arange(len(rows.codes))
    if code is not None:
        among = among[rows.codes == code]
    # inverse transform, one uniform a record: a common generator state couples tables
    return among[(rng.random(n) * len(among)).astype(int)]


def _one_record_differs(
    rows: PriorRows, codes: tuple[int, ...], n: int, rng: np.random.Generator
) -> list[Indices]:
    """Tables that differ in one record, which is drawn given each secret."""
    # the first record stands for any: they are independent and alike
    base = positions(rows, None, n, rng)
    tables = []
    for code in codes:
        table = base.copy()
        table[0] = positions(rows, code, 1, rng)[0]
        tables.append(table)
    return tables


def _all_records_differ(
    rows: PriorRows, codes: tuple[int, ...], n: int, rng: np.random.Generator
) -> list[Indices]:
    """Tables drawn given each secret, from common random numbers."""
    seed = int(rng.integers(2**63))
    return [positions(rows, code, n, np.random.default_rng(seed)) for code in codes]


_COUPLINGS = {"record": _one_record_differs, "dataset": _all_records_differ}
