"""The secret of who was drawn of a pool."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr
from sklearn.utils import _safe_indexing

from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_option,
    check_real,
)
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios._base import (
    AnyRelease,
    BoundScenario,
    Rows,
    Scenario,
    offers,
    refuse_repeated,
    restating,
)
from skpuffer.scenarios._facts import OutputSamples
from skpuffer.scenarios._simulator import (
    check_running,
    fresh_generator,
    run_tables,
    simulated_once,
)
from skpuffer.utils._reading import read_groups, row_count
from skpuffer.utils._types import Table

from ._pool import (
    IndependentRecords,
    Masks,
    SubsetLaw,
    UniformSubset,
    check_classes,
    check_pool,
    pool_arrays,
    pool_digest,
    pool_rows,
    shares,
    taken_of,
)


class SubsampleScenario(Scenario):
    """The secret is who was drawn of a pool: the table is a random subset of it.

    For accountants that bound a mutual information (PAC privacy): the query is run on
    random subsets of the pool, and the noise is set by how much its outputs differ. It
    suits any query that is one vector, also without a bound on one record's influence.

    Parameters
    ----------
    pool : 'known' or table or (X, y), default='known'
        'known': the table given to `fit` is the pool, of which `fit` draws a subset and
        reads no more. The attacker is assumed to know all its rows; only membership is
        protected. A table is a public pool; `fit` is then given a subset of it.
    size : int or float, default=0.5
        Records of a subset. A float is a share of the pool, in (0, 1).
    secret : {'dataset', 'record', 'groups'}, default='dataset'
        'dataset' is all of who was drawn. 'record' is each record's membership by
        itself: a weaker promise, which says nothing of two records at once. 'groups'
        are those of `groups`, each by itself.
    groups : array-like of shape (n_pool,) or callable, default=None
        With ``secret='groups'``: public ids of the pool's records; or a callable of the
        mask of memberships that returns a label, or one for each secret. None takes the
        `groups` given to `fit` of a known pool.
    prior : {'design', 'enumerated', 'sampled'}, default='design'
        - 'design': `n_subsets` subsets are drawn beforehand from the public
          `random_state`, and the one that is run is one of these.
        - 'enumerated': all subsets, of a small pool.
        - 'sampled': `n_subsets` of all subsets are drawn to learn from. The one that is
          run is drawn anew.
    n_subsets : int, default=512
        Subsets drawn, and fits of the model. By design the whole table leaks no more
        than ``log(n_subsets)`` nats.
    independent : bool, default=False
        Whether each record is drawn by itself, with the share `size` as probability.
        The number of records drawn is then secret.
    stratify : bool, default=False
        Whether classes have the same shares in each subset as in the pool.
    random_state : int, default=0
        Public seed of the subsets, neither of the noise nor of which subset is run.
    n_jobs : int, default=None
        Processes that run the query on the subsets, as in joblib.
    verbose : bool, default=False
        Whether to show a progress bar of the subsets.

    Notes
    -----
    The query is told the size of the subset, or the expected one where records are
    drawn independently. With 'design' and 'enumerated' the first subset is run twice: a
    query that returns another vector is refused.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy. Zhang and Vorobeychik, Breaking the Gaussian
    barrier: Residual-PAC privacy for automatic privatization.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import OutputSamples, SubsampleScenario
    >>> scenario = SubsampleScenario(np.arange(10.0)[:, None], 5, prior="enumerated")
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    >>> samples = scenario.bind(mean.context).fact(OutputSamples, mean)
    >>> samples.draws.shape, round(samples.entropy, 4), samples.draws.var().round(4)
    ((252, 1), 5.5294, np.float64(0.9167))
    """

    independent_records = True

    _purpose = Statement("subsample.needs_mutual_information_accountant")

    def __init__(
        self,
        pool: "str | Table | tuple[Table, ArrayLike]" = "known",
        size: float = 0.5,
        *,
        secret: str = "dataset",
        groups: ArrayLike | Callable[[Any], Any] | None = None,
        prior: str = "design",
        n_subsets: int = 512,
        independent: bool = False,
        stratify: bool = False,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.pool = pool
        self.size = size
        self.secret = secret
        self.groups = groups
        self.prior = prior
        self.n_subsets = n_subsets
        self.independent = independent
        self.stratify = stratify
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def draws_from_pool(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the table given is the pool."""
        return isinstance(self.pool, str)

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_pool(self.pool)
        check_option(("dataset", "record", "groups"), secret=self.secret)
        check_option(("design", "enumerated", "sampled"), prior=self.prior)
        check_option((False, True), independent=self.independent)
        check_option((False, True), stratify=self.stratify)
        check_count(random_state=self.random_state, least=0)
        check_running(self.n_jobs, self.verbose)
        size: Any = self.size
        if isinstance(size, int | np.integer) and not isinstance(size, bool):
            check_count(size=size)
        elif not 0 < check_real(size=size) < 1:
            raise scenario_error("subsample.size_share_out_of_range", size=size)
        with restating("subsample.single_subset_certain"):
            check_count(n_subsets=self.n_subsets, least=2)
        if self.groups is not None:
            if self.secret != "groups":
                raise scenario_error(
                    "subsample.groups_without_secret_groups", secret=self.secret
                )
            with restating("subsample.groups_ids_invalid"):
                if not callable(self.groups):
                    read_groups(self.groups)
        self._check_together()
        # of a pool that is at hand all is known by now
        if not self.draws_from_pool:
            self.drawn(row_count(pool_rows(self.pool)[0]))

    def _check_together(self) -> None:
        """Refuse parameters that contradict each other."""
        if self.independent and self.stratify:
            raise scenario_error("subsample.stratify_with_independent")
        if self.draws_from_pool:
            return
        if self.prior == "design":
            raise scenario_error("subsample.design_with_public_pool")
        if self.independent:
            raise scenario_error("subsample.independent_with_public_pool")
        if self.stratify:
            check_classes(pool_rows(self.pool)[1])
        if self.secret == "groups" and self.groups is None:
            raise scenario_error("subsample.groups_missing")

    def drawn(self, n_pool: int) -> int:
        """Return how many of `n_pool` records are drawn, rounded if only expected."""
        given = self.size
        share = not isinstance(given, int | np.integer)
        n = round(given * n_pool) if share else int(given)
        if not 1 <= n < n_pool:
            facts = {"given": given, "n": n, "n_pool": n_pool, "most": n_pool - 1}
            raise ScenarioError(
                Statement("subsample.size_too_small", **facts)
                if n < 1
                else Statement("subsample.size_too_large", **facts)
            )
        return n

    def table_size(self, n_given: int) -> int:
        """Return how many records a query is run on."""
        return self.drawn(n_given) if self.draws_from_pool else n_given

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that no secret is about."""
        if self.secret == "record":
            refuse_repeated(groups, self)
        if self.secret == "groups" and not self.draws_from_pool:
            raise scenario_error("subsample.groups_of_table_given")

    def declared_groups(self, context: PublicContext) -> None:
        """Return None: groups are of the pool, and not of the table."""
        return

    def __repr__(self) -> str:
        pool: Any = repr(self.pool)
        if not isinstance(self.pool, str):
            try:
                pool = f"<{row_count(pool_rows(self.pool)[0])} records>"
            except (ValueError, IndexError):  # no table, as a fit will say
                pool = f"<{type(self.pool).__name__}>"
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("pool", "size", "groups", "n_jobs", "verbose")
        }
        rest = "".join(f", {name}={value!r}" for name, value in sorted(given.items()))
        return f"SubsampleScenario(pool={pool}, size={self.size!r}{rest})"


# -- what follows for a query's output where the table is a random subset of a pool ----


def of_records(masks: Masks, weights: Floats | None) -> Indices:
    """Return the membership of each record as ints (n_subsets, n_secrets).

    Records that are in all subsets or in none are left out, if `weights` says that
    these are all subsets there are.
    """
    return _uncertain(masks.astype(np.int8), weights)


def of_groups(masks: Masks, weights: Floats | None, groups: Indices) -> Indices:
    """Return the memberships of each group's records together, as one code a group."""
    columns = []
    for group in np.unique(groups):
        mine = np.packbits(masks[:, groups == group], axis=1)
        columns.append(np.unique(mine, axis=0, return_inverse=True)[1].reshape(-1))
    return _uncertain(np.column_stack(columns), weights)


def of_function(
    masks: Masks, weights: Floats | None, function: Callable[[Any], Any]
) -> Indices:
    """Return what a function says of each subset, as codes."""
    said = [function(mask.copy()) for mask in masks]
    rows = [list(one) if _is_sequence(one) else [one] for one in said]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise scenario_error("subsample.groups_labels_count_varies")
    try:
        columns = [_codes(column) for column in zip(*rows, strict=True)]
    except TypeError:
        raise scenario_error("subsample.groups_labels_not_hashable") from None
    return _uncertain(np.column_stack(columns), weights)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )


def _codes(labels: tuple[Any, ...]) -> Indices:
    """Number of each label, in order of appearance."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels])


def _uncertain(codes: Indices, weights: Floats | None) -> Indices:
    """Those columns that have more than one value with positive probability, or all."""
    if weights is None:
        return codes
    possible = codes[weights > 0]
    kept: Indices = codes[:, np.any(possible != possible[0], axis=0)]
    if not kept.shape[1]:
        raise scenario_error("subsample.no_secret_uncertain")
    return kept


#: Subsets that are gone through one by one, at most.
_MOST_SUBSETS = 50_000
_MOST = math.log(_MOST_SUBSETS + 0.5)

#: What is told a user whose query fails on a subset.
_REMEDY = Statement("subsample.remedy_larger_or_stratified")


class BoundSubsample(BoundScenario, of=SubsampleScenario):
    """Facts of a subsample scenario; see :class:`SubsampleScenario`."""

    realises: ClassVar[bool] = True

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        if not scenario.draws_from_pool:
            self.X, self.y = pool_arrays(scenario.pool, context)
        elif context.pool is None:
            raise scenario_error("subsample.known_pool_outside_fit")
        else:
            self.X, self.y = context.pool
        self.n_pool = row_count(self.X)
        self.n_drawn: int = scenario.drawn(self.n_pool)
        if context.n_records != self.n_drawn:
            raise scenario_error(
                "subsample.size_differs_from_table",
                n_drawn=self.n_drawn,
                n_pool=self.n_pool,
                n_records=context.n_records,
            )
        self.law = self._law()
        self.groups = self._groups() if scenario.secret == "groups" else None
        if scenario.prior == "enumerated" and self.law.log_count > _MOST:
            raise scenario_error(
                "subsample.too_many_subsets",
                log_count=self.law.log_count / math.log(10),
                most_subsets=_MOST_SUBSETS,
            )

    def _law(self) -> SubsetLaw:
        scenario, n = self.scenario, self.n_pool
        if scenario.independent:
            size = scenario.size
            share = not isinstance(size, int | np.integer)
            return IndependentRecords(float(size if share else size / n), n)
        if not scenario.stratify:
            return UniformSubset(((np.arange(n), self.n_drawn),), n)
        check_classes(self.y)
        # of numbers, each is a class of its own
        classes, codes, sizes = np.unique(
            self.y, return_inverse=True, return_counts=True
        )
        if len(classes) > self.n_drawn:
            raise scenario_error(
                "subsample.stratify_too_many_classes",
                n_classes=len(classes),
                n_drawn=self.n_drawn,
            )
        strata = (
            (np.flatnonzero(codes == at), int(count))
            for at, count in enumerate(shares(sizes, self.n_drawn))
        )
        return UniformSubset(tuple(strata), n)

    def _groups(self) -> Any:
        """Group of each record of the pool, or a function of the memberships."""
        given, of_fit = self.scenario.groups, self.context.groups
        if given is None and of_fit is None:
            raise scenario_error("subsample.groups_not_given")
        if given is not None and of_fit is not None:
            raise scenario_error("subsample.groups_given_twice")
        if callable(given):
            return given
        groups = np.asarray(of_fit) if given is None else read_groups(given)
        if len(groups) != self.n_pool:
            raise scenario_error(
                "subsample.groups_count_differs",
                n_groups=len(groups),
                n_pool=self.n_pool,
            )
        return groups

    # -- which subsets -------------------------------------------------------------

    @cached_property
    def _subsets(self) -> tuple[Masks, Floats]:
        """Subsets that the query is run on, and their probabilities or weights."""
        scenario = self.scenario
        if scenario.prior == "enumerated":
            return self.law.all()
        # a public seed, and marked: the same number may be the seed of the noise
        rng = np.random.default_rng([1, int(scenario.random_state)])
        masks = self.law.draw(int(scenario.n_subsets), rng)
        if scenario.prior == "sampled":
            return masks, np.full(len(masks), 1 / len(masks))
        # one that was drawn twice is as likely as two
        packed, times = np.unique(
            np.packbits(masks, axis=1), axis=0, return_counts=True
        )
        if len(packed) < 2:
            raise scenario_error("subsample.subsets_all_same")
        distinct = np.unpackbits(packed, axis=1, count=self.n_pool).astype(bool)
        return distinct, times / times.sum()

    def check_table(self, X: Rows, y: Any) -> None:
        """Refuse a table that was not drawn of a public pool."""
        if not self.scenario.draws_from_pool:
            taken_of((X, y), (self.X, self.y), None)

    def realise(self, X: Rows, y: Any, rng: np.random.Generator) -> tuple[Rows, Any]:
        """Draw the subset that the query is run on, by the prior.

        If the pool is public, the subset was drawn from it: its records are those of
        the pool and in its order, as they were simulated. A query may go by the order.
        """
        if not self.scenario.draws_from_pool:
            return _taken(self.X, self.y, taken_of((X, y), (self.X, self.y), rng))
        if self.scenario.prior == "design":
            masks, weights = self._subsets
            mask = masks[rng.choice(len(masks), p=weights)]
        else:
            # anew: whether or not it was gone through before
            (mask,) = self.law.draw(1, rng)
        return _taken(X, y, mask)

    # -- facts ---------------------------------------------------------------------

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        # runs of many noisy steps have no output that a subset could be run through
        one = isinstance(release, QueryRelease) and release.is_one_output
        return frozenset({OutputSamples} if one else ())

    def _outputs(self, release: Any, masks: Masks, remember: bool = True) -> Floats:
        """The query on subsets, of shape (n_subsets, dim)."""
        scenario = self.scenario
        # of all tables that there are nothing is known but by a function of them
        again = 0 if scenario.prior == "sampled" else 1
        n_runs = len(masks) + again

        def tables() -> Iterator[tuple[Statement, Any, Any]]:
            for i, mask in enumerate(itertools.chain(masks, masks[:again])):
                what = Statement(
                    "simulation.subset_of_pool", i=i + 1, n_runs=n_runs, remedy=_REMEDY
                )
                yield what, *_taken(self.X, self.y, mask)

        def find() -> Floats:
            found = run_tables(release, tables(), n_runs, scenario)
            # threads may add up in any order: that much is no chance
            slack = 1e-9 * np.abs(found[0]).max(initial=0)
            if again and not np.allclose(found[0], found[-1], rtol=1e-6, atol=slack):
                raise scenario_error(
                    "subsample.query_not_deterministic", name=release.name
                )
            return found[: len(masks)]

        if not remember:
            return find()
        key = masks.shape, np.packbits(masks).tobytes()
        return simulated_once(self, release, key, find)

    @offers(OutputSamples)
    def _output_samples(self, release: AnyRelease, norm: float) -> OutputSamples:
        scenario = self.scenario
        masks, weights = self._subsets
        design, sampled = scenario.prior == "design", scenario.prior == "sampled"
        outputs = self._outputs(release, masks)

        def again(n: int, rng: Any) -> Floats:
            fresh = fresh_generator(rng)
            if not sampled:
                return outputs[fresh.choice(len(outputs), n, p=weights)]
            # a seed says which they are, so they may be remembered
            seeded = isinstance(rng, int | np.integer)
            return self._outputs(release, self.law.draw(n, fresh), remember=seeded)

        return OutputSamples(
            draws=outputs,
            weights=weights,
            # each subset is a secret, where all of it is one
            groups=np.arange(len(outputs)),
            regime=scenario.prior,
            secret=scenario.secret,
            memberships=self._memberships(masks, None if sampled else weights),
            entropy=float(entr(weights).sum()) if design else self.law.entropy,
            again=again,
            assumptions=self.statements(),
        )

    def _memberships(self, masks: Masks, weights: Floats | None) -> Indices | None:
        secret = self.scenario.secret
        if secret == "dataset":
            return None
        if secret == "record":
            return of_records(masks, weights)
        groups: Any = self.groups
        take = of_function if callable(groups) else of_groups
        return take(masks, weights, groups)

    def statements(self) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario, n, n_pool = self.scenario, self.n_drawn, self.n_pool
        n_run = len(self._subsets[0])
        secret = {
            "dataset": Statement("assume.subsample_secret_who_drawn"),
            "record": Statement("assume.subsample_secret_record_drawn"),
            "groups": Statement("assume.subsample_secret_functions"),
        }[scenario.secret]
        how = Statement("assume.subsample_equally_likely", n=n, n_pool=n_pool)
        if scenario.independent:
            how = Statement("assume.subsample_independent_draws", n_pool=n_pool, n=n)
        if scenario.stratify:
            how = Statement("assume.subsample_stratified_draws", n=n, n_pool=n_pool)
        chance = {
            "design": Statement(
                "assume.subsample_drawn_by_design", how=how, n_run=n_run
            ),
            "enumerated": Statement("assume.subsample_drawn_so", how=how),
            "sampled": Statement("assume.subsample_query_finite", how=how, n_run=n_run),
        }[scenario.prior]
        known = Statement("assume.subsample_pool_known")
        if not scenario.draws_from_pool:
            known = Statement("assume.subsample_pool_public")
        average = Statement("assume.subsample_average_over_draws")
        return secret, chance, known, average

    def describe(self) -> str:
        drawn = f"{super().describe()}: {self.n_drawn} of {self.n_pool} records"
        if not self.scenario.draws_from_pool:
            # of another public pool it is another prior; that of a known one is the
            # table of a fit, of which no text may tell
            drawn += f" of the pool {self._pool_digest[:12]}"
        if self.scenario.secret != "groups":
            return drawn
        # budgets about other groups are about other secrets
        return f"{drawn}, groups {self._groups_digest}"

    @cached_property
    def _pool_digest(self) -> str:
        """Hash of a public pool, however it is read."""
        return pool_digest(self.scenario.pool)

    @cached_property
    def _groups_digest(self) -> str:
        """Short name of what is secret, by what it is of each subset."""
        codes = self._memberships(self._subsets[0], None)
        return str(joblib.hash(codes, hash_name="sha1"))[:8]


def _taken(X: Any, y: Any, mask: Any) -> tuple[Any, Any]:
    """The records of a subset, in the order of the pool."""
    # by positions: one and the same table whether it is simulated or run
    at = np.flatnonzero(mask)
    return _safe_indexing(X, at), None if y is None else _safe_indexing(y, at)
