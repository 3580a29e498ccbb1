"""What every scenario promises, whatever it says is secret."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
from sklearn.base import clone

import skpuffer.scenarios
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.accountants._base import bind, known_accountants
from skpuffer.distributions import Distribution
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import PrivacyWarning, ScenarioError, Statement, stated
from skpuffer.kernel.facts import arbitrary_coupling
from skpuffer.kernel.sums import sensitivity_bound
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    Fact,
    MaxInfluence,
    OutputDistributions,
    OutputSensitivity,
    Scenario,
)
from skpuffer.scenarios._quilts._base import Quilts

from ._attack import assert_within
from ._cases import Ballot, Offering, context_of, total
from ._suite import Check, Suite, at_most, raises, run_all

#: Those that are exported.
FACTS = {
    kind
    for kind in (getattr(skpuffer.scenarios, n) for n in skpuffer.scenarios.__all__)
    if isinstance(kind, type) and issubclass(kind, Fact) and kind is not Fact
}


def same(one: Any, other: Any) -> Any:
    """Whether two facts, or parts of facts, say the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Fact):
        return all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Quilts):
        return one.to_dict() == other.to_dict()
    if callable(one):
        # what draws anew: by what it draws
        return same(one(3, 0), other(3, 0))
    if isinstance(one, Distribution):
        return pickle.dumps(one) == pickle.dumps(other) or one == other
    return bool(np.all(np.equal(one, other)))


#: Codes that refuse a table of more records than a scenario is of.
OTHER_COUNT = (
    "blocks.records_not_whole_blocks",
    "diffusion.times_differ_from_records",
    "gaussian.covariance_not_whole_columns",
    "joint.record_count_differs",
    "network.nodes_differ_from_records",
    "simulation.record_count_differs",
    "subsample.size_differs_from_table",
)


class ScenarioSuite(Suite):
    """Checks of one scenario, made by `kind` and `params`."""

    #: The class under test.
    kind: Any = None
    #: Parameters by which it can be made, as a function so that each test has its own.
    params: Any = staticmethod(dict)
    #: Records of the table it is bound to.
    n_records: Any = 3
    #: Facts it has of the sum of a table.
    offered: Any = frozenset()
    #: Two samplers of tables whose secret differs, or None; see `scenario_checks`.
    worlds: Any = None
    #: Changes of parameters that are refused, with the name of the culprit.
    bad: Any = ()
    #: Changes of parameters, from the least to hide to the most.
    growing: Any = ()
    #: Whether it is about tables of `n_records` records only.
    one_size: Any = False
    #: Whether its parameter `table` names the table its couplings belong to.
    names_table: Any = False

    def make(self, **changes: Any) -> Any:
        return self.kind(**{**self.params(), **changes})

    def bound(self, **changes: Any) -> Any:
        return self.make(**changes).bind(context_of(self.n_records))

    def release(self) -> Any:
        return total(self.n_records)

    def facts(self, bound: Any = None) -> Any:
        """All that it offers about the sum, by kind."""
        bound = self.bound() if bound is None else bound
        release = self.release()
        kinds = sorted(bound.provides(release), key=lambda kind: kind.__name__)
        return {kind: bound.fact(kind, release, 2) for kind in kinds}

    def values(self) -> Any:
        """Return what the parameters of checks stand for, by name."""
        return {"at": range(len(self.bad))}

    # -- parameters --------------------------------------------------------------------

    def check_parameters_are_kept_as_they_are(self) -> None:
        scenario = self.make()
        scenario.check()
        params = scenario.get_params(deep=False)
        for name, value in self.params().items():
            assert repr(params[name]) == repr(value)
        for twin in (
            clone(scenario),
            pickle.loads(pickle.dumps(scenario)),
            copy.deepcopy(scenario),
        ):
            assert type(twin) is self.kind
            assert repr(twin) == repr(scenario)
            assert twin.get_params(deep=False).keys() == params.keys()
            mine, its = self.facts(), self.facts(twin.bind(context_of(self.n_records)))
            assert all(same(mine[kind], its[kind]) for kind in mine | its)
        assert repr(scenario).startswith(f"{self.kind.__name__}(")
        for name, value in params.items():
            assert getattr(scenario, name) is value

    def check_bad_parameters_are_named(self, at: Any) -> None:
        changes, name = self.bad[at]
        scenario = self.make(**changes)
        for call in (scenario.check, lambda: self.bound(**changes)):
            try:
                call()
            except (ValueError, TypeError) as error:
                named = f"'{name}'" in str(error) or f"{name}=" in str(error)
                assert named, f"the parameter {name!r} is not named in: {error}"
            else:
                raise AssertionError(f"{changes} is accepted")

    # -- binding -----------------------------------------------------------------------

    def check_it_binds_to_public_facts(self) -> None:
        scenario = self.make()
        params = dict(vars(scenario))
        context = context_of(self.n_records)
        bound = scenario.bind(context)
        assert isinstance(bound, BoundScenario)
        assert bound.scenario is scenario and bound.context is context
        assert context.empirical is None
        described = bound.describe()
        assert isinstance(described, str) and "\n" not in described
        assert described.startswith(self.kind.__name__)
        self.facts(bound)
        # neither has been changed by what was asked
        assert vars(scenario) == params
        assert bound.context == context and bound.describe() == described

    def check_the_bound_scenario_does_not_change(self) -> None:
        bound = self.bound()
        first = self.facts(bound)
        assert all(same(first[kind], fact) for kind, fact in self.facts(bound).items())
        for fact in first.values():
            with raises(FrozenInstanceError):
                fact.certified = True

    def check_another_number_of_records_is_refused(self) -> None:
        bound, more = self.bound(), self.n_records + 1
        with raises(ValueError, code="scenario.bound_to_other_record_count"):
            bind(bound, total(more))
        if self.one_size:
            with raises(ScenarioError, code=OTHER_COUNT):
                self._ask_all(more)

    def _ask_all(self, n: Any) -> Any:
        bound = self.make().bind(context_of(n))
        for kind in bound.provides(total(n)):
            bound.fact(kind, total(n))

    # -- facts -------------------------------------------------------------------------

    def check_it_offers_what_it_says(self) -> None:
        bound, release = self.bound(), self.release()
        offered = bound.provides(release)
        assert type(offered) is frozenset
        assert offered == self.offered
        assert all(issubclass(kind, Fact) for kind in offered)
        for kind, fact in self.facts(bound).items():
            assert type(fact) is kind
            assert 0 <= fact.delta < 1 and 0 < fact.confidence <= 1
            assert fact.reads_private_rows is False
            assert isinstance(fact.assumptions, tuple) and fact.assumptions
            for text in fact.assumptions:
                # sentences, and not the repr of something
                assert isinstance(text, Statement) and " " in str(text).strip()
                assert "<" not in str(text) and "array(" not in str(text)
        for kind in FACTS - offered:
            with raises(ScenarioError, kind.__name__, code="scenario.fact_not_offered"):
                bound.fact(kind, release)

    def check_facts_are_the_same_each_time(self) -> None:
        first = self.facts()
        MEMORY.clear()
        again = self.facts()
        assert first.keys() == again.keys()
        assert all(same(first[kind], again[kind]) for kind in first)

    def check_a_fact_that_reads_private_rows_is_no_promise(self) -> None:
        peeking = type("Peeking", (self.kind,), {"needs_empirical": True})
        bound = self.bound()
        bound.scenario = peeking(**self.params())
        found = self.facts(bound)
        assert found.keys() == self.offered
        for fact in found.values():
            assert fact.certified is False and fact.reads_private_rows is True

    def check_an_unknown_release_is_offered_no_more_than_a_count(self) -> None:
        bound = self.bound()
        known = Sensitivity(add_remove={1: 1.0, 2: 1.0})
        for sensitivity in (None, known):
            ballot = Ballot(
                n_records=self.n_records,
                sensitivity=sensitivity,
                context=context_of(self.n_records),
            )
            assert bound.provides(ballot) <= {Adjacency}
            for accountant in known_accountants():
                assert not accountant().supports(ballot, bound)

    def check_couplings_go_by_the_name_of_the_table(self) -> None:
        fact = self.facts().get(Adjacency)
        if not self.names_table:
            assert "table" not in self.kind._get_param_names()
            if fact is not None:
                named = arbitrary_coupling(fact.relation, fact.count)
                assert fact.coupling_id in (None, named)
            return

        def coupling(table: Any) -> Any:
            return self.facts(self.bound(table=table))[Adjacency].coupling_id

        arbitrary = arbitrary_coupling(fact.relation, fact.count)
        assert coupling(None) in (None, arbitrary)
        one = coupling("one")
        assert one == coupling("one")
        if one != arbitrary:
            assert one not in (None, coupling("other")) and "'one'" in one

    # -- more to hide ------------------------------------------------------------------

    def check_more_to_hide_never_moves_less(self) -> None:
        for kind in self.offered - {MaxInfluence}:
            if not all(kind in self.facts(self.bound(**c)) for c in self.growing):
                continue
            radii = [self._radius(kind, self.bound(**c)) for c in self.growing]
            assert radii == sorted(radii)

    def check_no_coupling_is_shorter_than_the_distance_that_it_bounds(self) -> None:
        """How far distributions of the output are apart is the least of couplings."""
        if OutputDistributions not in self.offered:
            return
        least = self._radius(OutputDistributions, self.bound())
        for kind in self.offered & {Adjacency, OutputSensitivity}:
            if self.facts()[kind].delta == 0:
                assert self._radius(kind, self.bound()) >= least * (1 - 1e-9)

    def _radius(self, kind: Any, bound: Any) -> Any:
        fact = bound.fact(kind, self.release(), 2)
        try:
            return sensitivity_bound(fact, self.release(), 2).radius
        except TypeError:  # of samples that no displacement is read off
            return 0.0

    # -- memory and threads ------------------------------------------------------------

    def check_threads_find_what_one_finds(self) -> None:
        alone = self.facts()
        MEMORY.clear()
        bound = self.bound()
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda _: self.facts(bound), range(8)))
        for found in together:
            assert found.keys() == alone.keys()
            assert all(same(alone[kind], found[kind]) for kind in alone)

    def check_what_is_remembered_dies_with_it(self) -> None:
        with warnings.catch_warnings():
            # some accountants warn of single outputs
            warnings.simplefilter("ignore", PrivacyWarning)
            self._remembered_dies()

    def _remembered_dies(self) -> Any:
        gc.collect()
        MEMORY.clear()
        scenario = self.make()
        bound = scenario.bind(context_of(self.n_records))
        for accountant in known_accountants():
            if accountant().supports(self.release(), bound):
                try:
                    accountant().calibrate(self.release(), bound, random_state=0)
                except ValueError:
                    continue  # too little is known for its default promise
        assert 0 <= MEMORY.n_bytes <= MEMORY.max_bytes
        del scenario, bound
        gc.collect()
        MEMORY.held((self,), "nothing")  # what died is forgotten at the next question
        assert len(MEMORY) == 0 and MEMORY.n_bytes == 0

    def check_group_privacy_never_needs_more_than_any_records(self) -> None:
        """However a table is known, no more than all its records can change."""
        fact = self.facts().get(Adjacency)
        if fact is None:
            assert Adjacency not in self.offered
            return
        assert 1 <= fact.count <= self.n_records
        release = self.release()
        everything = Adjacency.arbitrary(self.n_records, (stated("all may change"),))
        most = sensitivity_bound(everything, release, 2).radius
        found = GroupPrivacy().calibrate(release, self.bound()).certificate
        assert found.sensitivity is not None and at_most(found.sensitivity, most)

    # -- is it enough ------------------------------------------------------------------

    def check_no_attacker_tells_the_secret(self) -> None:
        """By the noise of each fact alone, so that none of them says too little."""
        if self.worlds is None:
            return
        bound, release = self.bound(), self.release()
        attacked = 0
        for kind in bound.provides(release):

            def known(release: Any, norm: Any, kind: Any = kind) -> Any:
                return bound.fact(kind, release, norm)

            offering = Offering(bound, kind, known)
            for accountant in (GroupPrivacy(), GeneralWasserstein(), MarkovQuilt()):
                if not accountant.supports(release, offering):
                    continue
                found = accountant.calibrate(release, offering, random_state=0)
                if not found.certificate.certified:
                    continue

                def noisy(world: Any, noise: Any = found.noise) -> Any:
                    return lambda n, rng: (
                        world(n, rng).sum(axis=1) + noise.sample(n, rng)
                    )

                assert_within(
                    found.certificate,
                    *map(noisy, self.worlds),
                    n_draws=40_000,
                    rng=np.random.default_rng(0),
                )
                attacked += 1
        assert attacked, "no promise was found by which to try what it offers"


#: Draws tables of records: takes their number and a generator, and returns an array of
#: shape (n_tables, n_records).
World = Callable[[int, np.random.Generator], Any]


def scenario_checks(
    scenario: Scenario,
    worlds: tuple[World, World],
    *,
    n_records: int = 3,
    bad: Sequence[tuple[dict[str, Any], str]] = (),
    growing: Sequence[dict[str, Any]] = (),
) -> list[Check]:
    """Return the checks of a scenario, by name.

    The scenario is bound to a table of one number a record, in [-9, 9], and asked about
    the sum.

    Parameters
    ----------
    scenario : Scenario
    worlds : tuple of two callables
        Draw tables whose secrets differ most: each takes a number of tables and a
        generator and returns an array of shape (n_tables, n_records). A record that is
        not there counts as zero.
    n_records : int, default=3
        Number of records of each table.
    bad : sequence of (dict, str), default=()
        Changes of parameters that must be refused, with the name of the culprit.
    growing : sequence of dict, default=()
        Changes of parameters, from the least to hide to the most.

    Returns
    -------
    checks : list of (str, callable)
        Names, and functions without arguments that raise an AssertionError.
    """
    suite = ScenarioSuite()
    suite.kind, suite.n_records = type(scenario), n_records
    suite.params = lambda: scenario.get_params(deep=False)
    suite.bad, suite.growing, suite.worlds = bad, growing, worlds
    suite.names_table = "table" in scenario.get_params(deep=False)
    suite.offered = suite.bound().provides(suite.release())
    return suite.checks()


def check_scenario(
    scenario: Scenario,
    worlds: tuple[World, World],
    *,
    n_records: int = 3,
    bad: Sequence[tuple[dict[str, Any], str]] = (),
    growing: Sequence[dict[str, Any]] = (),
) -> None:
    """Raise an AssertionError unless a scenario says no less than what is true.

    Parameters
    ----------
    scenario : Scenario
    worlds : tuple of two callables
    n_records : int, default=3
    bad : sequence of (dict, str), default=()
    growing : sequence of dict, default=()
        As of :func:`scenario_checks`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.scenarios import RecordScenario
    >>> from skpuffer.testing import check_scenario
    >>> def low(n, rng):
    ...     return np.full((n, 3), [0.0, 0.0, -9.0])
    >>> def high(n, rng):
    ...     return np.full((n, 3), [0.0, 0.0, 9.0])
    >>> check_scenario(RecordScenario(relation="replace"), (low, high))
    """
    run_all(
        scenario_checks(scenario, worlds, n_records=n_records, bad=bad, growing=growing)
    )
