"""What every accountant promises, whatever its mechanism."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass
from dataclasses import replace as replace_fields
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from sklearn.base import clone

from skpuffer.accountants import Accountant, Support
from skpuffer.base import proved
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import (
    Statement,
    UncertifiedError,
    UnsupportedError,
    stated,
)
from skpuffer.noise import (
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.noise.strategies import banded_square_root
from skpuffer.privacy import Certificate
from skpuffer.releases import (
    GradientRelease,
    PoissonSampling,
    QueryRelease,
    SamplingScheme,
    Sensitivity,
)
from skpuffer.scenarios import Adjacency, RecordScenario, Scenario

from ._attack import assert_within
from ._cases import Ballot, Offering, Rumour, Silent, query
from ._suite import Check, Suite, close, raises, run_all

#: Code that refuses noise that costs more than the budget.
TOO_MUCH = "certificate.noise_costs_above_parameter"

#: Schemes by which a record keeps its batch.
KEPT = ("balls_in_bins", "full_batch")


@dataclass(frozen=True)
class StrangeSampling(SamplingScheme):
    """A scheme made from nothing that is known."""

    name = "strange"

    def statement(self, release: Any) -> Any:
        return "every step takes what it likes"

    def _batches(self, release: Any, rng: Any) -> Any:
        while True:
            yield np.arange(release.batch_size)


@dataclass(frozen=True)
class RepeatedPoisson(PoissonSampling):
    """Poisson sampling by its base, but one batch serves the whole run."""

    name = "repeated"

    def _batches(self, release: Any, rng: Any) -> Any:
        batch = next(super().batches(release, rng))
        while True:
            yield batch


def finer(fact: Any) -> Any:
    """The same fact, of a subclass that might qualify what it says."""
    kind = type(fact)
    new = make_dataclass(f"Finer{kind.__name__}", [], bases=(kind,), frozen=True)
    return new(**{f.name: getattr(fact, f.name) for f in fields(fact)})


def _with_event(bound: Any, need: Any, delta: Any) -> Offering:
    """Offer a scenario's fact outside of an event of some mass only."""
    return Offering(
        bound,
        need,
        lambda release, norm: replace_fields(
            bound.fact(need, release, norm), delta=delta
        ),
    )


def forget() -> Any:
    """Empty all caches of the library, so that everything is computed afresh."""
    MEMORY.clear()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "skpuffer":
            for value in vars(module).values():
                if hasattr(value, "cache_clear") and not isinstance(value, type):
                    value.cache_clear()


def answers(curve: Any) -> Any:
    """Ask a curve questions of every kind; return None without one."""
    if curve is None:
        return None
    answered = curve.renyi(2.0), curve.renyi(8.5), curve.delta(0.7), curve.epsilon(1e-3)
    return [np.asarray(answer).tolist() for answer in answered]


def said(certificate: Any) -> Any:
    """All that a certificate says, the answers of its curve included."""
    names = [f.name for f in fields(certificate) if f.name != "curve"]
    told = {name: getattr(certificate, name) for name in names}
    return told | {"curve": answers(certificate.curve)}


#: Noise of other families, other norms and no spread, at the scale of what was found.
OTHERS = (
    GaussianNoise,
    LaplaceNoise,
    partial(GeneralizedGaussianNoise, beta=1.3),
    GeneralizedCauchyNoise,
    DiscreteLaplaceNoise,
    lambda scale: GaussianNoise(0.0 * scale),
    lambda scale: None,
)


def _of_other_noise(other: Any, made: Any) -> Any:
    scale = float(np.max(made.noise.scale))
    return replace_fields(made, noise=other(scale))


def lying(accountant: Any, lie: Any) -> Any:
    """An accountant of a subclass that claims other than what it finds."""

    def calibrate(
        self: Any, release: Any, scenario: Any, random_state: Any = None
    ) -> Any:
        if not callable(lie):
            return lie
        return lie(kind.calibrate(self, release, scenario, random_state))

    kind = type(accountant)
    made = type(f"Lying{kind.__name__}", (kind,), {"calibrate": calibrate})
    return made(**accountant.get_params(deep=False))


class AccountantSuite(Suite):
    """Checks of one accountant, made by `kind` and `modes`, about each `case`."""

    #: The class under test.
    kind: Any = None
    #: Parameters besides epsilon, one dict for each kind of promise and noise.
    modes: Any = ()
    #: Name of the parameter that holds the budget, and of the field that states it.
    budget: Any = "epsilon"
    stated: Any = "epsilon"
    #: Names of what there may be more of; see `case`.
    growths: Any = ()
    #: Names of the cases that can be put into other units.
    measured: Any = ()
    #: Names of the cases whose fact may hold outside of an event only.
    eventful: Any = ()
    #: Part of the budget that the noise found may leave.
    left: Any = 1e-3
    #: Part of the budget by which it may be exceeded, for rounding.
    above: Any = 1e-9
    #: How far noise may be off from what is computed from an equal input.
    precision: Any = 1e-6
    #: Whether it accounts for correlated noise where all records are in one batch, or
    #: in one of several throughout.
    reads_correlations: Any = False
    #: Whether its certificates are promises.
    certified: Any = True
    #: Two samplers of the exact output of the first case, or None; see
    #: `accountant_checks`.
    worlds: Any = None

    def case(self, growth: Any, size: Any = 1, unit: Any = 1.0) -> Any:
        """Return a release and a scenario with more to hide the larger the size."""
        raise NotImplementedError

    # -- the machinery -----------------------------------------------------------------

    def values(self) -> Any:
        """Return what the parameters of checks stand for, by name."""
        return {
            "mode": self.modes,
            "approximate": [mode for mode in self.modes if mode.get("delta")],
            "growth": self.growths,
            "measure": self.measured,
            "eventful": self.eventful,
        }

    def make(self, mode: Any = None, epsilon: Any = 1.0, **params: Any) -> Any:
        mode = self.modes[0] if mode is None else mode
        return self.kind(**{self.budget: epsilon, **mode, **params})

    def found(
        self, mode: Any, growth: Any, epsilon: Any = 1.0, size: Any = 1, unit: Any = 1.0
    ) -> Any:
        """Return what is found for a case, once for all checks that ask for it."""
        at = self.modes.index(mode)
        contract: Any = type(self)
        return _calibration(contract, at, growth, epsilon, size, unit)

    def found_scale(
        self, mode: Any, growth: Any, epsilon: Any = 1.0, size: Any = 1, unit: Any = 1.0
    ) -> Any:
        noise = self.found(mode, growth, epsilon, size, unit).noise
        return float(np.max(noise.scale))

    def spent(self, certificate: Any) -> Any:
        """Return how much of the budget a certificate states."""
        return getattr(certificate, self.stated)

    def scale(self, accountant: Any, release: Any, scenario: Any) -> Any:
        noise = accountant.calibrate(release, scenario, random_state=0).noise
        return float(np.max(noise.scale))

    def refused(self, release: Any, scenario: Any, *words: Any) -> Any:
        """Assert that an accountant refuses in every way, with words of the reason."""
        for mode in self.modes:
            accountant = self.make(mode)
            support = accountant.supports(release, scenario)
            assert type(support) is Support and support.ok is False
            assert not support
            self.raised(accountant, release, scenario, *words)
            for word in words:
                assert word in str(support.reason)

    def raised(self, accountant: Any, release: Any, scenario: Any, *words: Any) -> Any:
        noise = accountant._chosen_noise()
        with raises(UnsupportedError, *words):
            accountant.calibrate(release, scenario, random_state=0)
        with raises(UnsupportedError, *words):
            accountant.certify(noise, release, scenario)

    @property
    def cases(self) -> Any:
        """A release and a scenario of each kind it can be asked about."""
        return [self.case(growth) for growth in self.growths]

    def silent(self, release: Any, scenario: Any) -> Any:
        return Silent(scenario.bind(release.context))

    # -- to a noise and back -----------------------------------------------------------

    def check_the_noise_found_keeps_the_budget(self, mode: Any, growth: Any) -> None:
        release, scenario = self.case(growth)
        # of the first case at other budgets too: each takes a search of its own
        for epsilon in (0.5, 1.0, 2.0) if growth == self.growths[0] else (1.0,):
            accountant = self.make(mode, epsilon)
            found = self.found(mode, growth, epsilon)
            spent = self.spent(found.certificate)
            assert close(spent, epsilon, self.left)
            assert found.certificate.certified is self.certified
            back = accountant.certify(found.noise, release, scenario)
            # never above it, whatever the certificate was made to say
            assert self.spent(back) <= epsilon * (1 + self.above)
            assert self.spent(back) >= epsilon * (1 - self.left)
            assert (back.notion, back.alpha, back.delta) == (
                found.certificate.notion,
                found.certificate.alpha,
                found.certificate.delta,
            )

    def proved(self, mode: Any, lie: Any = None, size: Any = 1) -> Any:
        """Prove what a search found, or what a lie makes of it."""
        release, scenario = self.case(self.growths[0], size)
        accountant = self.make(mode)
        if lie is not None:
            # what an honest search finds is known already
            claimed = lie(self.found(mode, self.growths[0]))
            accountant = lying(accountant, claimed)
        bound = scenario.bind(release.context)
        return proved(accountant, release, bound, np.random.default_rng(0))

    def check_what_is_released_is_proved_from_its_noise(self, mode: Any) -> None:
        release, scenario = self.case(self.growths[0])
        made = self.proved(mode)
        spent = self.spent(made.certificate)
        assert 1 - self.left <= spent <= 1 + 1e-6
        back = self.make(mode).certify(made.noise, release, scenario)
        assert close(self.spent(back), spent, self.left)
        assert back.notion == made.certificate.notion

    def check_a_search_that_finds_too_little_noise_is_caught(self, mode: Any) -> None:
        def less(made: Any, share: Any) -> Any:
            scale = share * np.asarray(made.noise.scale)
            return replace_fields(made, noise=made.noise.with_scale(scale))

        if mode == self.modes[0]:
            with raises(UncertifiedError, code=TOO_MUCH):
                self.proved(mode, partial(less, share=0.5))
        try:
            made = self.proved(mode, partial(less, share=0.99))
        except UncertifiedError:
            return
        # a few searches leave a little of the budget, which less noise spends
        back = self.make(mode).certify(made.noise, *self.case(self.growths[0]))
        assert self.spent(back) <= 1 + 1e-6

    def check_noise_of_another_kind_is_proved_or_refused(self) -> None:
        mode, (release, scenario) = self.modes[0], self.case(self.growths[0])
        for other in OTHERS:
            claimed = partial(_of_other_noise, other)
            try:
                made = self.proved(mode, claimed)
            except (ValueError, TypeError):
                continue
            back = self.make(mode).certify(made.noise, release, scenario)
            assert self.spent(back) <= 1 + self.above
            assert self.spent(made.certificate) <= 1 + 1e-6

    def check_what_was_found_for_another_release_is_caught(self) -> None:
        mode = self.modes[0]
        small = self.found(mode, self.growths[0])
        with raises(UncertifiedError, code=TOO_MUCH):
            self.proved(mode, lambda made: small, size=3)

    def check_less_noise_would_not_do(self, mode: Any) -> None:
        release, scenario = self.case(self.growths[0])
        accountant = self.make(mode)
        noise = self.found(mode, self.growths[0]).noise
        less = noise.with_scale(0.95 * np.asarray(noise.scale))
        more = noise.with_scale(1.05 * np.asarray(noise.scale))
        costs = [
            self.spent(accountant.certify(each, release, scenario))
            for each in (less, noise, more)
        ]
        assert costs[0] > costs[1] > costs[2]

    def check_noise_falls_with_epsilon(self, mode: Any) -> None:
        scales = [
            self.found_scale(mode, self.growths[0], epsilon)
            for epsilon in (0.5, 1.0, 2.0)
        ]
        assert scales[0] > scales[1] > scales[2] > 0

    def check_noise_falls_with_delta(self, approximate: Any) -> None:
        release, scenario = self.case(self.growths[0])
        scales = [
            self.scale(self.make(approximate, delta=delta), release, scenario)
            for delta in np.array([0.1, 1.0, 10.0]) * approximate["delta"]
        ]
        assert scales[0] >= scales[1] >= scales[2] >= 0
        assert scales[0] > scales[2]

    def check_no_attacker_beats_a_promise(self, mode: Any) -> None:
        if self.worlds is None:
            return
        made = self.found(mode, self.growths[0])

        def noisy(world: Any) -> Any:
            def draw(n: Any, rng: Any) -> Any:
                exact = np.asarray(world(n, rng), dtype=float)
                return exact + made.noise.sample(exact.shape, rng)

            return draw

        assert_within(
            made.certificate,
            *map(noisy, self.worlds),
            n_draws=40_000,
            rng=np.random.default_rng(0),
        )

    # -- more to hide ------------------------------------------------------------------

    def check_more_to_hide_never_needs_less_noise(self, mode: Any, growth: Any) -> None:
        # in between for one kind of promise: the order is that of what is hidden
        sizes = (1, 2, 3) if mode == self.modes[0] else (1, 3)
        scales = [self.found_scale(mode, growth, size=size) for size in sizes]
        for fewer, more in pairwise(scales):
            assert fewer <= more * (1 + self.precision)
        assert scales[0] < scales[-1]

    def check_noise_follows_the_unit(self, mode: Any, measure: Any) -> None:
        one, ten = (self.found_scale(mode, measure, unit=unit) for unit in (1.0, 10.0))
        assert close(ten, 10 * one, self.precision)

    # -- what is unknown is refused ----------------------------------------------------

    def check_what_it_supports_it_says_so(self, growth: Any) -> None:
        support = self.make().supports(*self.case(growth))
        assert support == Support(True) and support.reason == ""
        with raises(FrozenInstanceError):
            support.ok = False

    def check_a_kind_of_release_that_is_new(self) -> None:
        _, scenario = self.cases[0]
        n = self.cases[0][0].n_records
        release = Ballot(
            n_records=n, sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0})
        )
        self.refused(release, self.silent(release, scenario), "Ballot")

    def check_a_field_that_is_new(self) -> None:
        values = None, False, 0, "twice"
        for (release, scenario), value in product(self.cases, values):
            kind = make_dataclass(
                "Twisted",
                [("twist", object, field(default=value))],
                bases=(type(release),),
                frozen=True,
                kw_only=True,
            )
            twisted = kind(
                **{f.name: getattr(release, f.name) for f in fields(release)}
            )
            self.refused(twisted, self.silent(twisted, scenario), "'twist'", "Twisted")

    def check_a_subclass_without_new_fields(self) -> None:
        for release, scenario in self.cases:
            kind = make_dataclass("Renamed", [], bases=(type(release),), frozen=True)
            renamed = kind(
                **{f.name: getattr(release, f.name) for f in fields(release)}
            )
            self.refused(renamed, self.silent(renamed, scenario), "Renamed")

    def check_it_lists_fields_of_releases_that_there_are(self) -> None:
        """A field that is renamed is read no more, and must not be listed on."""
        for kind, names in self.kind.reads.items():
            assert names <= {f.name for f in fields(kind)}

    def check_a_sampling_scheme_that_is_new(self) -> None:
        schemes = StrangeSampling(), RepeatedPoisson()
        for (release, scenario), scheme in product(self._runs, schemes):
            strange = replace_fields(release, sampling=scheme, batch_size=5)
            self.refused(strange, scenario, type(scheme).__name__)

    def check_noise_that_is_correlated_across_steps(self) -> None:
        for release, scenario in self._runs:
            # the schemes under which some accountants read it
            if self.reads_correlations and str(release.sampling) in KEPT:
                continue
            correlated = replace_fields(
                release, noise_correlation=banded_square_root(3)
            )
            self.refused(correlated, scenario, "correlated")

    def check_noise_of_the_updates(self) -> None:
        for release, scenario in self._runs:
            moved = replace_fields(
                release, noise_position="update", noise_correlation=None
            )
            self.refused(moved, scenario, "noise_position")

    def check_noise_of_blocks_is_in_the_proportions_asked_for_or_refused(self) -> None:
        for release, scenario in self._runs:
            if release.record is not None:
                continue
            dim, norm = release.dim or 5, release.total_clip_norm
            sizes = (1, dim - 1) if dim > 1 else (1,)
            asked = tuple(2.0**i for i in range(len(sizes)))
            split = replace_fields(
                release,
                dim=dim,
                blocks=sizes,
                clip_norm=(norm,) * len(sizes),
                noise_proportions=asked,
            )
            for mode in self.modes:
                accountant = self.make(mode)
                if accountant.supports(split, scenario):
                    found = accountant.calibrate(split, scenario, random_state=0).noise
                    each = np.broadcast_to(found.scale, (dim,)) / split.units
                    assert np.ptp(each) <= 1e-9 * each.max()

    @property
    def _runs(self) -> Any:
        return [case for case in self.cases if type(case[0]) is GradientRelease]

    def check_a_fact_that_is_new(self) -> None:
        for release, scenario in self.cases:
            bound = scenario.bind(release.context)
            offering = Offering(bound, Rumour, lambda release, norm: Rumour())
            self.refused(release, offering, "Rumour")

    def check_a_subclass_of_a_fact_is_another_fact(self) -> None:
        for release, scenario in self.cases:
            bound = scenario.bind(release.context)
            for need in self._met(release, bound):
                new = type(f"Finer{need.__name__}", (need,), {})

                def made(
                    release: Any, norm: Any, bound: Any = bound, need: Any = need
                ) -> Any:
                    return finer(bound.fact(need, release, norm))

                # by what is offered, and by what is found where another was offered
                self.refused(release, Offering(bound, new, made), new.__name__)
                under = Offering(bound, need, made)
                for mode in self.modes:
                    self.raised(self.make(mode), release, under, new.__name__)
                if need is Adjacency:  # cheap enough to be asked for beforehand
                    self.refused(release, under, new.__name__)

    def check_a_relation_that_is_new(self) -> None:
        for release, scenario in self.cases:
            bound = scenario.bind(release.context)
            if Adjacency in self._met(release, bound):

                def swapped(release: Any, norm: Any, bound: Any = bound) -> Any:
                    fact = bound.fact(Adjacency, release, norm)
                    return replace_fields(fact, relation="swap")

                offering = Offering(bound, Adjacency, swapped)
                self.refused(release, offering, "'swap'")

    def _met(self, release: Any, bound: Any) -> Any:
        """Kinds of fact that it needs and the scenario offers."""
        return [need for need in self.kind.needs if need in bound.provides(release)]

    def check_a_scenario_bound_to_another_table(self) -> None:
        for release, scenario in self.cases:
            other = replace_fields(
                release.context, n_records=release.context.n_records + 1
            )
            bound = Offering(scenario.bind(release.context), Rumour, None)
            bound.context = other
            with raises(ValueError, "records"):
                self.make().calibrate(release, bound)
            with raises(TypeError, "scenario"):
                self.make().calibrate(release, "a record")

    def check_a_scenario_bound_to_other_columns(self) -> None:
        """A fact about one column may be too little for another one."""
        release, scenario = self.cases[0]
        accountant = self.make()
        for name, ours, theirs in (
            ("feature_names", ("age",), ("income",)),
            ("n_features", 1, 2),
            ("target_name", "age", "income"),
            ("feature_map", np.abs, np.sqrt),
        ):
            context, other = (
                replace_fields(release.context, **{name: value})
                for value in (ours, theirs)
            )
            named = replace_fields(release, context=context)
            bound = Offering(scenario.bind(release.context), Rumour, None)
            bound.context = other
            with raises(ValueError, name):
                accountant.calibrate(named, bound)
            with raises(ValueError, name):
                accountant.certify(accountant._chosen_noise(), named, bound)
            with raises(ValueError, name):
                accountant.supports(named, bound)

    # -- parameters --------------------------------------------------------------------

    def check_parameters_are_kept_as_they_are(self, mode: Any) -> None:
        accountant = self.make(mode, 0.7)
        params = accountant.get_params()
        assert params[self.budget] == 0.7
        assert {name: params[name] for name in mode} == mode
        for twin in (
            clone(accountant),
            pickle.loads(pickle.dumps(accountant)),
            copy.deepcopy(accountant),
            self.kind(**params),
            self.kind().set_params(**params),
        ):
            assert type(twin) is self.kind
            assert twin.get_params() == params
            assert repr(twin) == repr(accountant)
        assert repr(accountant).startswith(f"{self.kind.__name__}(")
        assert f"{self.budget}=0.7" in repr(accountant)

    def check_nothing_is_learned(self, mode: Any) -> None:
        """Calibration leaves parameters alone and adds no state."""
        accountant = self.make(mode)
        before = dict(vars(accountant))
        release, scenario = self.case(self.growths[0])
        accountant.calibrate(release, scenario, random_state=0)
        assert vars(accountant) == before

    def check_bad_budgets(self) -> None:
        release, scenario = self.case(self.growths[0])
        scenario = self.silent(release, scenario)
        noise = self.make()._chosen_noise()
        named = f"'{self.budget}'"
        for epsilon in (0.0, -1.0, math.nan, math.inf, "1", None):
            accountant = self.make(epsilon=epsilon)
            with raises((ValueError, TypeError), named):
                accountant.check()
            with raises((ValueError, TypeError), named):
                accountant.calibrate(release, scenario)
            with raises((ValueError, TypeError), named):
                accountant.certify(noise, release, scenario)

    # -- threads -----------------------------------------------------------------------

    def check_threads_find_what_one_finds(self) -> None:
        def find(job: Any) -> Any:
            mode, growth = job
            release, scenario = self.case(growth)
            found = self.make(mode).calibrate(release, scenario, random_state=0)
            return found.noise, said(found.certificate)

        jobs = [(mode, growth) for mode in self.modes for growth in self.growths][:2]
        forget()
        alone = [find(job) for job in jobs]
        forget()
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(find, 2 * jobs))
        assert together == 2 * alone

    # -- certificates ------------------------------------------------------------------

    def check_certificates_say_who_promises_what_about_what(
        self, mode: Any, growth: Any
    ) -> None:
        release, scenario = self.case(growth)
        accountant = self.make(mode)
        certificate = self.found(mode, growth).certificate
        assert certificate.release == release.name
        assert certificate.accountant == " ".join(repr(accountant).split())
        assert certificate.scenario == scenario.bind(release.context).describe()
        assert certificate.source
        assert certificate.n_releases == 1
        assert certificate.assumptions
        assert all(
            isinstance(said, Statement) and str(said)
            for said in certificate.assumptions
        )
        assert certificate.delta == (mode.get("delta") or certificate.event_delta)

    def check_what_is_taken_for_granted_is_said(self, mode: Any, growth: Any) -> None:
        release, scenario = self.case(growth)
        of_release, of_fact = stated("the release is right"), stated("so is the prior")
        release = replace_fields(release, assumptions=(of_release,))
        accountant, bound = self.make(mode), scenario.bind(release.context)
        need = accountant._need(release, bound)
        granted = [of_release, of_fact]

        def fact(release: Any, norm: Any) -> Any:
            known = bound.fact(need, release, norm)
            granted.extend(known.assumptions)
            return replace_fields(known, assumptions=(*known.assumptions, of_fact))

        offering = Offering(bound, need, fact)
        found = accountant.calibrate(release, offering, random_state=0)
        certified = accountant.certify(found.noise, release, offering)
        assert set(granted) <= set(found.certificate.assumptions)
        assert set(granted) <= set(certified.assumptions)

    def check_an_event_is_paid_for_out_of_delta(
        self, approximate: Any, eventful: Any
    ) -> None:
        release, scenario = self.case(eventful)
        accountant, bound = self.make(approximate), scenario.bind(release.context)
        need = accountant._need(release, bound)
        outside, delta = partial(_with_event, bound, need), accountant.delta
        found = accountant.calibrate(release, outside(delta / 2), random_state=0)
        # what is left of delta is all that the noise has
        left = self.make({**approximate, "delta": delta / 2})
        scale = float(np.max(found.noise.scale))
        least = self.scale(left, release, bound)
        assert close(scale, least, self.left)
        for certificate in (
            found.certificate,
            accountant.certify(found.noise, release, outside(delta / 2)),
        ):
            assert certificate.delta == delta
            assert certificate.event_delta >= delta / 2
            assert certificate.epsilon <= 1 + self.above
        if need is Adjacency:
            # as many records may become any others, and of that there is no event
            certain = accountant.calibrate(release, outside(1.5 * delta), 0)
            assert certain.certificate.event_delta == 0
            assert float(np.max(certain.noise.scale)) >= least * (1 - self.left)
            return
        # some noise keeps a pure promise inside the event, with none of delta
        with raises(
            ValueError, code=("event.mass_above_delta", "quilt.mass_above_delta")
        ):
            accountant.calibrate(release, outside(1.5 * delta), random_state=0)

    def check_a_certificate_pays_for_an_event_out_of_delta(
        self, approximate: Any, eventful: Any
    ) -> None:
        release, scenario = self.case(eventful)
        accountant, bound = self.make(approximate), scenario.bind(release.context)
        noise = accountant.calibrate(release, bound, random_state=0).noise
        event = 0.9 * accountant.delta
        # what the same noise promises without an event at what is left of delta
        left = self.make({**approximate, "delta": accountant.delta - event})
        least = self.spent(left.certify(noise, release, bound))
        outside = _with_event(bound, accountant._need(release, bound), event)
        found = self.spent(accountant.certify(noise, release, outside))
        assert found >= least * (1 - self.left)

    def check_certificates_are_plain_data(self, mode: Any, growth: Any) -> None:
        certificate = self.found(mode, growth).certificate
        with raises(FrozenInstanceError):
            certificate.epsilon = 0.0
        text = json.dumps(certificate.to_dict(), allow_nan=False)
        told = said(certificate)
        for twin in (
            pickle.loads(pickle.dumps(certificate)),
            copy.deepcopy(certificate),
            Certificate.from_dict(json.loads(text)),
        ):
            assert said(twin) == told


@cache
def _calibration(
    contract: Any, at: Any, growth: Any, epsilon: Any, size: Any, unit: Any
) -> Any:
    test = contract()
    release, scenario = test.case(growth, size, unit)
    accountant = test.make(test.modes[at], epsilon)
    return accountant.calibrate(release, scenario, random_state=0)


#: Makes a release and a scenario of a size and a unit, with more to hide the larger the
#: size is.
Case = Callable[[int, float], tuple[QueryRelease, Scenario]]

#: Draws exact outputs: takes their number and a generator.
World = Callable[[int, np.random.Generator], Any]


#: Outputs that one record moves by one.
MOVED_BY_ONE: tuple[World, World] = (
    lambda n, rng: np.zeros(n),
    lambda n, rng: np.ones(n),
)


def _records(size: int, unit: float) -> tuple[QueryRelease, Scenario]:
    """Return a query that each of some records moves by a unit."""
    return query(unit), RecordScenario(k=size)


def accountant_checks(
    accountant: Accountant,
    case: Case = _records,
    worlds: tuple[World, World] = MOVED_BY_ONE,
) -> list[Check]:
    """Return the checks of an accountant, by name.

    Parameters
    ----------
    accountant : Accountant
        With the parameters of one kind of promise; its budget is set by the checks.
    case : callable, optional
        Takes a whole number `size` and a number `unit`; returns a release and a
        scenario. There is more to hide the larger the size is, and moves are in
        proportion to the unit. By default, a record moves a query in one dimension by
        the unit, and as many differ as the size.
    worlds : tuple of two callables, optional
        Draw the exact output of the first case in two tables that differ most: each
        takes a number of draws and a generator.

    Returns
    -------
    checks : list of (str, callable)
        Names, and functions without arguments that raise an AssertionError.
    """
    budget, stated = accountant._states
    mode = accountant.get_params(deep=False)
    del mode[budget]
    # a class, as what is found is kept by the class of a suite
    given = {
        "kind": type(accountant),
        "modes": (mode,),
        "budget": budget,
        "stated": stated,
        "growths": ("case",),
        "measured": ("case",),
        "worlds": worlds,
        "case": lambda self, growth, size=1, unit=1.0: case(size, unit),
    }
    suite: AccountantSuite = type("Given", (AccountantSuite,), given)()
    return suite.checks()


def check_accountant(
    accountant: Accountant,
    case: Case = _records,
    worlds: tuple[World, World] = MOVED_BY_ONE,
) -> None:
    """Raise an AssertionError unless an accountant keeps its budget.

    Parameters
    ----------
    accountant : Accountant
    case : callable, optional
    worlds : tuple of two callables, optional
        As of :func:`accountant_checks`.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.testing import check_accountant
    >>> check_accountant(GroupPrivacy(epsilon=1.0, delta=1e-5))
    """
    run_all(accountant_checks(accountant, case, worlds))
