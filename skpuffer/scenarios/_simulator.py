"""Tables drawn by a simulator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skpuffer.distributions._distributions import Samples, cached_distribution_distance
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import (
    CoupledSamples,
    Fact,
    OutputDistributions,
    OutputSamples,
)
from skpuffer.kernel.numbers import Floats, check_count, check_probability
from skpuffer.releases import PublicContext
from skpuffer.scenarios.priors._tables import bound_arrays
from skpuffer.utils._reading import is_frame, row_count

from ._base import (
    AnyRelease,
    BoundScenario,
    Pairs,
    Scenario,
    offers,
    resolve_pairs,
)
from ._simulation import (
    check_running,
    fresh_generator,
    remembered_simulation,
    run_tables,
)

__all__ = ["SimulatorScenario"]


class SimulatorScenario(Scenario):
    """The attacker's belief is a simulator of whole tables given a secret.

    Parameters
    ----------
    draw : callable of (secret, rng)
        Returns a table ``X`` or a pair ``(X, y)`` like the private one, drawn given
        the secret; `rng` is a NumPy generator.
    draw_pair : callable of (secret, other, rng), default=None
        Returns two tables (or two pairs ``(X, y)``), drawn under any one coupling of
        the two tables: common random numbers, say. Any coupling is sound, and a close
        one is far tighter than comparing independent draws, whose sampling noise alone
        looks like a distance.
    secrets : sequence
        The secrets.
    pairs : 'all' or list of (secret, secret), default='all'
        The pairs that must look alike.
    n_draws : int, default=200
        Pairs of tables drawn for each pair of secrets (tables for each secret, without
        `draw_pair`).
    confidence : float, default=None
        With `draw_pair`: turns the largest distance seen into a statement that
        holds with this probability over the simulation, outside an event of stated
        mass ``1 - ((1 - confidence) / n_pairs) ** (1 / n_draws)``. None leaves an
        estimate, and the certificate says so.
    random_state : int, default=0
        Seed of the simulation. It is public and has nothing to do with the noise.
    n_jobs : int, default=None
        How many processes run the query on the tables drawn, as joblib has it.
    verbose : bool, default=False
        Whether to show a progress bar of the tables.

    Notes
    -----
    A simulation is done once in a process for all budgets: it is remembered by what the
    tables and the query are made of, wherever that can be told.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import SimulatorScenario
    >>> def coupled(secret, other, rng):
    ...     base = rng.normal(size=(50, 2))
    ...     return base + secret, base + other
    >>> scenario = SimulatorScenario(
    ...     draw=lambda secret, rng: rng.normal(secret, size=(50, 2)),
    ...     draw_pair=coupled,
    ...     secrets=[0.0, 0.5],
    ... )
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=50, dim=2)
    >>> certificate = GeneralWasserstein().calibrate(mean, scenario).certificate
    >>> round(certificate.sensitivity, 3), certificate.certified
    (0.707, False)
    """

    def __init__(
        self,
        draw: Callable[[Any, np.random.Generator], Any],
        draw_pair: Callable[[Any, Any, np.random.Generator], tuple[Any, Any]]
        | None = None,
        *,
        secrets: Sequence[Any],
        pairs: Pairs = "all",
        n_draws: int = 200,
        confidence: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.draw = draw
        self.draw_pair = draw_pair
        self.secrets = secrets
        self.pairs = pairs
        self.n_draws = n_draws
        self.confidence = confidence
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def check(self) -> None:
        """Check the parameters; see the class."""
        for name in ("draw", "draw_pair"):
            value = getattr(self, name)
            if not callable(value) and not (name == "draw_pair" and value is None):
                raise ScenarioError(
                    Statement("simulation.parameter_not_callable", name=name)
                )
        check_count(n_draws=self.n_draws, least=2)
        check_count(random_state=self.random_state, least=0)
        check_running(self.n_jobs, self.verbose)
        resolve_pairs(
            self.pairs, self.secrets, Statement("simulation.owner_secrets_parameter")
        )
        if self.confidence is not None:
            check_probability(confidence=self.confidence)
            if self.draw_pair is None:
                raise ScenarioError(Statement("simulation.confidence_needs_draw_pair"))

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return _BoundSimulator(self, context)


class _BoundSimulator(BoundScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if not release.is_one_output:
            return frozenset()  # simulated is one output alone
        paired = self.scenario.draw_pair is not None
        return frozenset(
            {CoupledSamples if paired else OutputDistributions, OutputSamples}
        )

    def _pairs(self):
        scenario = self.scenario
        return resolve_pairs(
            scenario.pairs, scenario.secrets, Statement("simulation.owner_simulator")
        )

    def _read(self, table):
        """What a table is, and the arrays that the query reads."""
        X, y = table if isinstance(table, tuple) else (table, None)
        if not is_frame(X) and not np.ndim(X):
            raise ScenarioError(
                Statement("simulation.draw_not_a_table", x_type=type(X).__name__)
            )
        n = row_count(X)
        if n != self.context.n_records:
            raise ScenarioError(
                Statement(
                    "simulation.record_count_differs",
                    n=n,
                    n_records=self.context.n_records,
                )
            )
        return "", *bound_arrays(self.context, X, y)

    def _outputs(self, release, tables, shape, arranged, *made_of):
        """Outputs on tables, remembered by all that these are made of."""
        scenario, n_tables = self.scenario, int(np.prod(shape))

        def find():
            outputs = run_tables(
                release,
                map(self._read, tables()),
                n_tables,
                n_jobs=scenario.n_jobs,
                verbose=scenario.verbose,
            )
            return tuple(map(arranged, outputs.reshape(*shape, -1)))

        made_of = (
            "simulator_tables",
            arranged,
            *made_of,
            shape,
            int(scenario.random_state),
            # by which the tables are read
            replace(self.context, empirical=None),
        )
        return remembered_simulation(scenario, release, made_of, find)

    def _draw_pair(self, a, b, rng):
        tables = self.scenario.draw_pair(a, b, rng)
        if not np.iterable(tables) or len(tables) != 2:
            raise ScenarioError(Statement("simulation.draw_pair_not_two_tables"))
        return tables

    @offers(CoupledSamples)
    def _coupled_samples(self, release: AnyRelease, norm: float) -> CoupledSamples:
        scenario = self.scenario
        pairs, n_draws = self._pairs(), int(scenario.n_draws)
        named = [(scenario.secrets[i], scenario.secrets[j]) for i, j in pairs]

        def tables() -> Iterator[Any]:
            rng = np.random.default_rng(int(scenario.random_state))
            for a, b in named:
                for _ in range(n_draws):
                    yield from self._draw_pair(a, b, rng)

        shape = len(pairs), n_draws, 2
        outputs = self._outputs(
            release, tables, shape, np.asarray, scenario.draw_pair, named
        )
        draws = tuple(
            (0, i, j, found[:, 0], found[:, 1])
            for (i, j), found in zip(pairs, outputs, strict=True)
        )
        common = dict(draws=draws, secrets=tuple(scenario.secrets))
        text = Statement("assume.simulator_coupled_draws", n_draws=scenario.n_draws)
        if scenario.confidence is None:
            return CoupledSamples(certified=False, assumptions=(text,), **common)
        # union bound over the pairs
        beta = (1 - scenario.confidence) / len(pairs)
        # P(all n draws below the (1 - delta)-quantile) = (1 - delta)^n = beta, so with
        # probability 1 - beta at most a mass delta lies above the largest draw
        delta = -np.expm1(np.log(beta) / scenario.n_draws)
        return CoupledSamples(
            delta=float(delta),
            confidence=float(scenario.confidence),
            assumptions=(text,),
            **common,
        )

    def _independent_outputs(self, release, seed_offset=0):
        """Outputs of independently drawn tables, by secret, as samples."""
        scenario = self.scenario
        secrets, n_draws = list(scenario.secrets), int(scenario.n_draws)

        def tables() -> Iterator[Any]:
            # the simulation is public: its seed may be known, the noise's may not
            rng = np.random.default_rng([int(scenario.random_state), seed_offset])
            for secret in secrets:
                for _ in range(n_draws):
                    yield scenario.draw(secret, rng)

        # samples are remembered themselves, as distances go by their identity
        shape = len(secrets), n_draws
        return self._outputs(
            release, tables, shape, Samples, scenario.draw, secrets, seed_offset
        )

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: AnyRelease, norm: float
    ) -> OutputDistributions:
        drawn, again = (
            self._independent_outputs(release, seed_offset) for seed_offset in (0, 1)
        )
        # distance of two samples of one distribution: sampling noise alone
        null = max(
            cached_distribution_distance(u, v, norm, release.units)
            for u, v in zip(drawn, again, strict=True)
        )
        return OutputDistributions(
            distributions=(drawn,),
            secrets=tuple(self.scenario.secrets),
            pairs=self._pairs(),
            certified=False,
            assumptions=(
                Statement(
                    "assume.simulator_independent_draws", n_draws=self.scenario.n_draws
                ),
                Statement("assume.simulator_sampling_noise", null=null),
            ),
        )

    @offers(OutputSamples)
    def _output_samples(self, release: AnyRelease, norm: float) -> OutputSamples:
        by_secret = self._independent_outputs(release)
        # the mixture over secrets, each with as many draws
        draws = np.concatenate([one.points for one in by_secret])
        scenario, secrets = self.scenario, list(self.scenario.secrets)

        def again(n: int, rng: Any) -> Floats:
            fresh = fresh_generator(rng)
            tables = (
                self._read(scenario.draw(secrets[fresh.integers(len(secrets))], fresh))
                for _ in range(n)
            )
            options = {"n_jobs": scenario.n_jobs, "verbose": scenario.verbose}
            return run_tables(release, tables, n, **options)

        return OutputSamples(
            draws=draws,
            weights=np.full(len(draws), 1 / len(draws)),
            groups=np.repeat(np.arange(len(secrets)), scenario.n_draws),
            again=again,
            assumptions=(
                Statement(
                    "assume.simulator_secrets_equally_likely", n_secrets=len(secrets)
                ),
                Statement("assume.simulated_tables_stand_for_all", n_draws=len(draws)),
            ),
        )

    def describe(self) -> str:
        return f"SimulatorScenario({len(self.scenario.secrets)} secrets)"
