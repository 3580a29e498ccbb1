"""Tables drawn by a simulator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpuffer.distributions._distributions import Samples, cached_distribution_distance
from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.facts import CoupledSamples, Fact, OutputDistributions
from skpuffer.kernel.numbers import Floats, check_count, check_option, check_probability
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_jobs
from skpuffer.utils._reading import is_frame, row_count

from ._base import (
    AnyRelease,
    BoundScenario,
    Pairs,
    Scenario,
    finite_output,
    offers,
    resolve_pairs,
    stated,
)
from ._facts import OutputSamples
from ._priors._tables import bound_arrays


class SimulatorScenario(Scenario):
    """The attacker's belief is a simulator of whole tables given a secret.

    Parameters
    ----------
    draw : callable of (secret, rng)
        Returns a table ``X`` or a pair ``(X, y)`` like the private one, drawn given the
        secret; `rng` is a NumPy generator.
    draw_pair : callable of (secret, other, rng), default=None
        Returns two such tables under any one coupling, such as common random numbers.
        Any coupling is sound, and a close one is far tighter than independent draws.
    secrets : sequence
        The secrets.
    pairs : 'all' or list of (secret, secret), default='all'
        The pairs that must look alike.
    n_draws : int, default=200
        Pairs of tables for each pair of secrets (or tables for each secret).
    confidence : float, default=None
        With `draw_pair`: the largest distance seen then holds with this probability
        over the simulation, outside an event of stated mass
        ``1 - ((1 - confidence) / n_pairs) ** (1 / n_draws)``. None leaves an estimate.
    random_state : int, default=0
        Public seed of the simulation, not of the noise.
    n_jobs : int, default=None
        Processes that run the query on the tables, as in joblib.
    verbose : bool, default=False
        Whether to show a progress bar of the tables.

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
                raise scenario_error("simulation.parameter_not_callable", name=name)
        check_count(n_draws=self.n_draws, least=2)
        check_count(random_state=self.random_state, least=0)
        check_running(self.n_jobs, self.verbose)
        resolve_pairs(
            self.pairs, self.secrets, Statement("simulation.owner_secrets_parameter")
        )
        if self.confidence is not None:
            check_probability(confidence=self.confidence)
            if self.draw_pair is None:
                raise scenario_error("simulation.confidence_needs_draw_pair")


Result = TypeVar("Result")


class _BoundSimulator(BoundScenario, of=SimulatorScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if not release.is_one_output:
            return frozenset()  # simulated is one output alone
        paired = self.scenario.draw_pair is not None
        return frozenset(
            {CoupledSamples if paired else OutputDistributions, OutputSamples}
        )

    def _pairs(self) -> tuple[tuple[int, int], ...]:
        scenario = self.scenario
        return resolve_pairs(
            scenario.pairs, scenario.secrets, Statement("simulation.owner_simulator")
        )

    def _read(self, table: Any) -> tuple[Any, ...]:
        """What a table is, and the arrays that the query reads."""
        X, y = table if isinstance(table, tuple) else (table, None)
        if not is_frame(X) and not np.ndim(X):
            raise scenario_error("simulation.draw_not_a_table", x_type=type(X).__name__)
        n = row_count(X)
        if n != self.context.n_records:
            raise scenario_error(
                "simulation.record_count_differs", n=n, n_records=self.context.n_records
            )
        return "", *bound_arrays(self.context, X, y)

    def _outputs(
        self,
        release: QueryRelease,
        tables: Callable[[], Iterator[Any]],
        shape: tuple[int, ...],
        arranged: Callable[[Floats], Result],
        *key: Any,
    ) -> tuple[Result, ...]:
        """Outputs on tables, found once for each key."""
        scenario, n_tables = self.scenario, int(np.prod(shape))

        def find() -> tuple[Result, ...]:
            tables_read = map(self._read, tables())
            outputs = run_tables(release, tables_read, n_tables, scenario)
            return tuple(map(arranged, outputs.reshape(*shape, -1)))

        return simulated_once(self, release, key, find)

    def _draw_pair(self, a: Any, b: Any, rng: np.random.Generator) -> Any:
        tables = self.scenario.draw_pair(a, b, rng)
        if not bool(np.iterable(tables)) or len(tables) != 2:
            raise scenario_error("simulation.draw_pair_not_two_tables")
        return tables

    @offers(CoupledSamples)
    def _coupled_samples(self, release: QueryRelease, norm: float) -> CoupledSamples:
        scenario = self.scenario
        pairs, n_draws = self._pairs(), int(scenario.n_draws)
        named = [(scenario.secrets[i], scenario.secrets[j]) for i, j in pairs]

        def tables() -> Iterator[Any]:
            rng = np.random.default_rng(int(scenario.random_state))
            for a, b in named:
                for _ in range(n_draws):
                    yield from self._draw_pair(a, b, rng)

        shape = len(pairs), n_draws, 2
        outputs = self._outputs(release, tables, shape, np.asarray, "pairs")
        draws = tuple(
            (0, i, j, found[:, 0], found[:, 1])
            for (i, j), found in zip(pairs, outputs, strict=True)
        )
        common: dict[str, Any] = dict(draws=draws, secrets=tuple(scenario.secrets))
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

    def _independent_outputs(
        self, release: QueryRelease, seed_offset: int = 0
    ) -> tuple[Samples, ...]:
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
        return self._outputs(release, tables, shape, Samples, "secrets", seed_offset)

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: QueryRelease, norm: float
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
    def _output_samples(self, release: QueryRelease, norm: float) -> OutputSamples:
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
            return run_tables(release, tables, n, scenario)

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


# -- queries run on simulated tables: once for each fit, and in parallel ---------------


def check_running(n_jobs: Any, verbose: Any) -> None:
    """Refuse parameters by which no simulation can be run."""
    stated(check_jobs, n_jobs=n_jobs)
    check_option((False, True), verbose=verbose)


def fresh_generator(rng: Any) -> np.random.Generator:
    """Return a generator whose draws no other simulation has made."""
    return np.random.default_rng(rng).spawn(1)[0]


def run_tables(
    release: QueryRelease,
    tables: Iterable[tuple[Statement | str, Any, Any]],
    n_tables: int,
    scenario: Any,
) -> Floats:
    """Run a release on tables as they are drawn, as a scenario wants it run."""
    # without the context, which a worker process has no use for
    bare = replace(release, context=None)
    outputs: Any = Parallel(n_jobs=scenario.n_jobs, return_as="generator")(
        delayed(_output)(bare, *table) for table in tables
    )
    if scenario.verbose:
        from tqdm.auto import tqdm  # a display, wanted by few: not at import

        outputs = tqdm(outputs, total=n_tables, desc=release.name, unit="table")
    found: list[Floats] = []
    for output, shapes in outputs:
        if shapes is not None:
            # the query refuses a table that gives other shapes than simulated ones
            release.query.check_shapes(shapes)  # type: ignore[union-attr] # it has shapes
        # of foreign code shapes are known; of other queries their lengths are
        if len(output) != (len(found[0]) if found else release.dim or len(output)):
            raise scenario_error("simulation.release_length_varies", name=release.name)
        found.append(output)
    array = np.array(found)
    # shared by whoever asks
    array.setflags(write=False)
    return array


def _output(release: QueryRelease, what: object, X: Any, y: Any) -> tuple[Floats, Any]:
    """Output on one table, and the shapes of its parts where the query knows them."""
    try:
        output = finite_output(
            release, X, y, what or Statement("simulation.one_simulated_table")
        )
    except ScenarioError:
        raise
    except ValueError as error:
        if not what:
            raise
        raise scenario_error(
            "simulation.release_not_computable",
            name=release.name,
            what=what,
            error=error,
        ) from None
    return output, getattr(release.query, "shapes", None)


def simulated_once(
    bound: Any, release: QueryRelease, key: tuple[Any, ...], find: Callable[[], Result]
) -> Result:
    """Return what a simulation finds, once for a bound scenario and a release.

    No other fit shares it: two calls of one function can mean two computations. The
    result must not be written to.
    """
    known = vars(bound).setdefault("_known_simulations", {})
    # by identity, which a release that is kept cannot lose to another one
    at = id(release), *key
    if at not in known:
        known[at] = release, find()
    return cast(Result, known[at][1])
