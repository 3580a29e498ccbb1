"""What follows for a query's output where the table is a random subset of a pool."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import joblib
import numpy as np
from scipy.special import entr
from sklearn.utils import _safe_indexing

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import Fact, OutputSamples
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios._base import AnyRelease, BoundScenario, Rows, offers
from skpuffer.scenarios._simulation import (
    fresh_generator,
    remembered_simulation,
    run_tables,
)
from skpuffer.utils._reading import read_groups, row_count

from ._laws import IndependentRecords, Masks, SubsetLaw, UniformSubset, shares
from ._pool import check_classes, pool_arrays, pool_digest, taken_of

__all__ = ["BoundSubsample"]


def of_records(masks: Masks, weights: Floats | None) -> Indices:
    """Return the membership of each record, without those that are certain.

    Parameters
    ----------
    masks : ndarray of bool of shape (n_subsets, n_pool)
    weights : ndarray of shape (n_subsets,) or None
        Probabilities, where these are all subsets there are. None where they are draws:
        of a record that is in all of them or in none nothing is certain.

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    codes: Indices = masks.astype(np.int8)
    return codes if weights is None else _uncertain(codes, weights)


def of_groups(masks: Masks, weights: Floats | None, groups: Indices) -> Indices:
    """Return the memberships of each group's records together, as one code a group.

    Parameters
    ----------
    masks, weights : as in :func:`of_records`
    groups : ndarray of int of shape (n_pool,)

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    columns = []
    for group in np.unique(groups):
        mine = np.packbits(masks[:, groups == group], axis=1)
        columns.append(np.unique(mine, axis=0, return_inverse=True)[1].reshape(-1))
    codes: Indices = np.column_stack(columns)
    return codes if weights is None else _uncertain(codes, weights)


def of_function(
    masks: Masks, weights: Floats | None, function: Callable[[Any], Any]
) -> Indices:
    """Return what a function says of each subset, as codes.

    Parameters
    ----------
    masks, weights : as in :func:`of_records`
    function : callable
        Of one mask: a label, or a sequence with one for each secret.

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    said = [function(mask.copy()) for mask in masks]
    rows = [list(one) if _is_sequence(one) else [one] for one in said]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ScenarioError(Statement("subsample.groups_labels_count_varies"))
    try:
        columns = [_codes(column) for column in zip(*rows, strict=True)]
    except TypeError:
        raise ScenarioError(Statement("subsample.groups_labels_not_hashable")) from None
    codes: Indices = np.column_stack(columns)
    return codes if weights is None else _uncertain(codes, weights)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )


def _codes(labels: tuple[Any, ...]) -> Indices:
    """Number of each label, in order of appearance."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels])


def _uncertain(codes: Indices, weights: Floats) -> Indices:
    """Those columns that have more than one value with positive probability."""
    possible = codes[weights > 0]
    kept: Indices = codes[:, np.any(possible != possible[0], axis=0)]
    if not kept.shape[1]:
        raise ScenarioError(Statement("subsample.no_secret_uncertain"))
    return kept


#: Subsets that are gone through one by one, at most.
_MOST_SUBSETS = 50_000
_MOST = math.log(_MOST_SUBSETS + 0.5)

#: What is told a user whose query fails on a subset.
_REMEDY = Statement("subsample.remedy_larger_or_stratified")


class BoundSubsample(BoundScenario):
    """Facts of a subsample scenario; see :class:`SubsampleScenario`."""

    realises: ClassVar[bool] = True

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        if not scenario.draws_from_pool:
            self.X, self.y = pool_arrays(scenario.pool, context)
        elif context.pool is None:
            raise ScenarioError(Statement("subsample.known_pool_outside_fit"))
        else:
            self.X, self.y = context.pool
        self.n_pool = row_count(self.X)
        self.n_drawn: int = scenario.drawn(self.n_pool)
        if context.n_records != self.n_drawn:
            raise ScenarioError(
                Statement(
                    "subsample.size_differs_from_table",
                    n_drawn=self.n_drawn,
                    n_pool=self.n_pool,
                    n_records=context.n_records,
                )
            )
        self.law = self._law()
        self.groups = self._groups() if scenario.secret == "groups" else None
        if scenario.prior == "enumerated" and self.law.log_count > _MOST:
            raise ScenarioError(
                Statement(
                    "subsample.too_many_subsets",
                    log_count=self.law.log_count / math.log(10),
                    most_subsets=_MOST_SUBSETS,
                )
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
            raise ScenarioError(
                Statement(
                    "subsample.stratify_too_many_classes",
                    n_classes=len(classes),
                    n_drawn=self.n_drawn,
                )
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
            raise ScenarioError(Statement("subsample.groups_not_given"))
        if given is not None and of_fit is not None:
            raise ScenarioError(Statement("subsample.groups_given_twice"))
        if callable(given):
            return given
        groups = np.asarray(of_fit) if given is None else read_groups(given)
        if len(groups) != self.n_pool:
            raise ScenarioError(
                Statement(
                    "subsample.groups_count_differs",
                    n_groups=len(groups),
                    n_pool=self.n_pool,
                )
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
            raise ScenarioError(Statement("subsample.subsets_all_same"))
        distinct = np.unpackbits(packed, axis=1, count=self.n_pool).astype(bool)
        return distinct, times / times.sum()

    def check_table(self, X: Rows, y: Any) -> None:
        """Refuse a table that was not drawn of a public pool."""
        if not self.scenario.draws_from_pool:
            taken_of((X, y), (self.X, self.y), None)

    def realise(self, X: Rows, y: Any, rng: np.random.Generator) -> tuple[Rows, Any]:
        """Draw the subset that the query is run on, by the prior.

        Of a public pool it was drawn: its records are those of the pool and in its
        order, as they were simulated. A query may go by the order.
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

    @cached_property
    def _digest(self) -> str:
        """Hash of the pool's content."""
        return str(joblib.hash((self.X, self.y), hash_name="sha1"))

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
            options = {"n_jobs": scenario.n_jobs, "verbose": scenario.verbose}
            found = run_tables(release, tables(), n_runs, **options)
            if again:
                _refuse_chance(release, found[0], found[-1])
            return found[: len(masks)]

        if not remember:
            return find()
        made_of = (
            "pool_subsets",
            self._digest,
            masks.shape,
            np.packbits(masks),
        )
        return remembered_simulation(scenario, release, made_of, find)

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


def _refuse_chance(release: QueryRelease, first: Floats, second: Floats) -> None:
    """Refuse a query that is another on one and the same table."""
    # threads may add up in any order: that much is no chance
    if np.allclose(first, second, rtol=1e-6, atol=1e-9 * np.abs(first).max(initial=0)):
        return
    raise ScenarioError(
        Statement("subsample.query_not_deterministic", name=release.name)
    )


def _taken(X: Any, y: Any, mask: Any) -> tuple[Any, Any]:
    """The records of a subset, in the order of the pool."""
    # by positions: one and the same table whether it is simulated or run
    at = np.flatnonzero(mask)
    return _safe_indexing(X, at), None if y is None else _safe_indexing(y, at)
