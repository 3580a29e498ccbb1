"""Base of accountants: from a release and a scenario to noise and a certificate."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from reprlib import repr as brief
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone

from skpuffer import noise as noise_room
from skpuffer.exceptions import (
    PrivacyWarning,
    ScenarioError,
    Statement,
    UnsupportedError,
    reason_of,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim, Names, certificate_of, prove
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import check_option, check_order, check_probability
from skpuffer.kernel.releases import Release
from skpuffer.noise import GeneralizedGaussianNoise, Noise, ShiftCurve
from skpuffer.privacy import Certificate
from skpuffer.releases import GradientRelease, QueryRelease, VoteRelease
from skpuffer.scenarios import Adjacency, BoundScenario, RecordBelief, Scenario
from skpuffer.utils._silence import warn
from skpuffer.utils._sklearn import linked_to_docs

Method = TypeVar("Method", bound=Callable[..., "Account"])


@dataclass(frozen=True)
class Calibration:
    """Noise that keeps a promise, and the certificate of the promise.

    Parameters
    ----------
    noise : Noise
        The noise that keeps the promise.
    certificate : Certificate
        The exact promise.
    warnings : tuple of str
        Warnings to give once this noise is taken.
    accountant : Accountant or None, default=None
        Candidate that found the noise, where an accountant asks several.
    draws : object, default=None
        Seed of the draws on which the certificate rests, where an accountant simulates.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> run = GradientRelease(n_records=1000, batch_size=100, n_steps=50)
    >>> found = PrivacyLoss(epsilon=1.0, delta=1e-5).calibrate(run, RecordScenario())
    >>> found.noise.family, round(found.noise.scale, 2)
    ('gaussian', 2.93)
    >>> found.certificate
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    """

    noise: Noise
    certificate: Certificate
    warnings: tuple[Statement, ...] = ()
    accountant: "Accountant | None" = None
    draws: Any = None


@dataclass(frozen=True)
class Found:
    """The result of a search: a noise, and what it takes the noise to promise.

    Parameters
    ----------
    noise : Noise
    claim : Claim
    warnings, draws : optional
        As of a :class:`Calibration`.

    Examples
    --------
    >>> from skpuffer.accountants import Claim, Found
    >>> from skpuffer.noise import LaplaceNoise
    >>> Found(LaplaceNoise(2.0), Claim(notion="pure_dp", epsilon=0.5)).noise.scale
    2.0
    """

    noise: Noise
    claim: Claim
    warnings: tuple[Statement, ...] = ()
    draws: Any = None


@dataclass(frozen=True)
class Account:
    """Search and proof for one release under one bound scenario.

    Parameters
    ----------
    calibrate : callable
        The search: takes noise whose scale is to be set, and a generator or None;
        returns what it `Found`.
    claim : callable
        The rule: takes noise; returns the `Claim` of what it promises.
    try_noise : callable or None, default=None
        Takes noise of any scale; raises an UnsupportedError if its cost is not known.
    by_sensitivity : bool, default=False
        Whether the promise depends on the noise only by the ratio of the certificate's
        `sensitivity` to its scale.
    fact : Fact, optional
        That the account works from; set by the accountant.

    Examples
    --------
    >>> from skpuffer.accountants import Account, Claim, Found, scale_for
    >>> from skpuffer.noise import LaplaceNoise
    >>> def claim(noise):
    ...     return Claim(notion="pure_dp", epsilon=noise.pure_epsilon(1.0))
    >>> def calibrate(noise, rng):
    ...     found = noise.with_scale(scale_for(noise, float("inf"), 0.5, 1.0))
    ...     return Found(found, claim(found))
    >>> Account(calibrate, claim).calibrate(LaplaceNoise(), None).noise.scale
    2.0
    """

    calibrate: Callable[[Noise, Any], Found]
    claim: Callable[[Noise], Claim]
    try_noise: Callable[[Noise], object] | None = None
    by_sensitivity: bool = False
    fact: Fact = field(default_factory=Fact)


def accounts_for(*kinds: type[Release]) -> Callable[[Method], Method]:
    """Register a method of an accountant for some kinds of release."""

    def mark(method: Method) -> Method:
        # collected by `__init_subclass__`, so that a new kind of release is one new
        # method
        method.accounts_for = kinds  # type: ignore[attr-defined]
        return method

    return mark


@dataclass(frozen=True)
class Support:
    """Whether an accountant can answer for a release under a scenario.

    Parameters
    ----------
    ok : bool
        The truth value of this object.
    reason : Statement or str
        Why not, and what would do; empty if it can.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy, PrivacyLoss
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> run = GradientRelease(n_records=1000, batch_size=10, n_steps=50)
    >>> bool(PrivacyLoss().supports(run, RecordScenario()))
    True
    >>> support = GroupPrivacy().supports(run, RecordScenario())
    >>> support.ok
    False
    >>> print(support.reason)
    GroupPrivacy accounts for a QueryRelease or an AdaptiveRelease or a
    SelectionRelease, and this is a GradientRelease, so it does not answer for the
    release 'gradients'; PrivacyLoss or RenyiDP would do.
    """

    ok: bool
    reason: Statement | str = ""

    def __bool__(self) -> bool:
        return self.ok


#: Facts that are stated rather than computed.
_AT_HAND = (Adjacency, RecordBelief)

#: How much of a budget noise may cost more than it, in parts of it, for rounding.
ROUNDING = 1e-6

#: Relations of neighbouring tables that the accountants here know.
RELATIONS = ("add_remove", "replace")


#: Fields of a certificate that are bounded by parameters of an accountant.
_SPENT = {
    "epsilon": "epsilon",
    "delta": "delta",
    "budget": "mutual_information",
    "max_fallback": "fallback",
}


@linked_to_docs
class Accountant(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """Base of accountants: privacy-loss accounting for releases.

    An accountant holds parameters only and works from the facts a scenario offers about
    a release. A subclass has the parameters `epsilon`, `noise` and optionally `beta`,
    ``_check_parameters``, and methods for kinds of release, marked by ``accounts_for``.

    Attributes
    ----------
    epsilon : float
        Budget, in nats.
    noise : str or Noise
        Family of the noise, or a noise whose scale calibration replaces.
    beta : float or None
        Shape of generalised Gaussian noise.
    needs : tuple of type
        Facts it can work from, best first; any one of them suffices.
    reads : dict of {type: frozenset of str}
        Fields that it knows of each kind of release; one with others is refused.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> mean = QueryRelease(
    ...     query=lambda X, y: X.mean(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 0.01}),
    ... )
    >>> accountant = GroupPrivacy(epsilon=1.0, alpha=4.0, noise="gaussian")
    >>> accountant.supports(mean, RecordScenario()).ok
    True
    >>> round(accountant.calibrate(mean, RecordScenario()).noise.scale, 6)
    0.014142
    >>> accountant.certify(GaussianNoise(0.02), mean, RecordScenario()).epsilon
    0.5
    """

    epsilon: float
    noise: str | Noise
    beta: float | None = None

    #: Facts it can work from, best first. Any one of them suffices.
    needs: tuple[type, ...] = ()

    #: By kind of release, by exact type: the fields it reads, and those known not to
    #: matter to it. A release with any other field is refused, whatever the field says.
    reads: ClassVar[dict[type, frozenset[str]]] = {}

    #: Parameter that holds the budget, and the field of a certificate that states it.
    _states: ClassVar[tuple[str, str]] = ("epsilon", "epsilon")

    #: Whether to name it to users whose own choice does not do.
    recommended = True

    #: Whether it accounts for runs of which nothing but the last iterate leaves, and
    #: for no others: momentum and averages are off then, unless asked for.
    last_iterate_only = False

    #: Whether it reads trade-offs, by which a record that draws one batch of an epoch
    #: costs no more than in Poisson batches. By Rényi costs it may: few are exact.
    saved_by_bins = False

    #: Family that ``noise="auto"`` stands for where there is nothing to choose, and
    #: the one that is taken among equals.
    _usual_family: ClassVar[str] = "gaussian"

    #: Seed of the draws of a simulation, where noise is certified by the same again.
    _draws: Any = None

    #: The accountant that certificates name, if it tries a family for another one.
    _asked_by: "Accountant | None" = None

    #: Whether a law of how many records differ is read: by means of trade-offs.
    _by_law = False

    #: Whether of one vector it reads no more of the noise than what a move of it costs,
    #: so that coordinates of the noise may depend on each other.
    _takes_joint_noise = False

    @classmethod
    def _candidate(cls) -> "Accountant":
        """Instance asked where many are: quick rather than to the last digit."""
        return cls()

    @property
    def clip_order(self) -> float:
        """Order of the norm by which its noise wants gradients clipped."""
        return 2.0

    def longest_step(self, release: GradientRelease) -> float:
        """Longest step of an optimiser that it accounts for; infinite if any is."""
        return math.inf

    # scikit-learn reads the signature anew each time, for each word of a text
    _get_param_names: Any = classmethod(cache(BaseEstimator._get_param_names.__func__))  # type: ignore[arg-type]

    def check(self) -> None:
        """Check the parameters by plain code; an error names the parameter."""
        self._checked_noise()

    def _checked_noise(self) -> Noise:
        """Noise of the parameters, at scale one, once all of them are checked."""
        noise = self._chosen_noise()
        self._check_parameters(noise)
        return noise

    @abstractmethod
    def _check_parameters(self, noise: Noise) -> None:
        """Check the parameters other than those of the noise, and what both mean."""

    #: Methods that make the account of a release, by its kind; see `accounts_for`.
    _accounts: ClassVar[dict[type, Callable[..., Account]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A subclass keeps the methods it inherits and replaces those of the same kind;
        # the mapping of its base stays as it is.
        own = {
            kind: method
            for method in vars(cls).values()
            for kind in getattr(method, "accounts_for", ())
        }
        cls._accounts = cls._accounts | own

    def calibrate(
        self,
        release: Any,
        scenario: Scenario | BoundScenario,
        random_state: Any = None,
    ) -> Calibration:
        """Find the least noise that keeps the promise.

        Parameters
        ----------
        release : QueryRelease, GradientRelease or VoteRelease
            The release to account for.
        scenario : Scenario or BoundScenario
            The secret to protect.
        random_state : int, RandomState instance, Generator or None, default=None
            For accountants that simulate; the others ignore it.

        Returns
        -------
        Calibration
            With attributes `noise` and `certificate`.

        Raises
        ------
        UnsupportedError
            If this accountant cannot work with what the scenario offers.
        """
        made = self._calibrated(release, scenario, random_state)
        for text in made.warnings:
            warn(text, PrivacyWarning)
        return made

    def _calibrated(
        self, release: Any, scenario: Scenario | BoundScenario, random_state: Any
    ) -> Calibration:
        """Find the least noise that keeps the promise, without a word of warning."""
        # By plain code and at every call: whatever scikit-learn's switches for
        # validation say, no noise is set from a budget that is none.
        noise = self._checked_noise()
        if self._chooses(release):
            return self._of_least_error(release, bind(scenario, release), random_state)
        if type(release) is VoteRelease:
            release = self._votes_as_read(release)
        bound = bind(scenario, release)
        check_values(noise, release, self._takes_joint_noise)
        account = self._account(release, bound, noise.norm)
        found = account.calibrate(noise, random_state)
        # not proved: whoever draws the noise certifies it from the noise
        names = self._names(bound, release)
        made = certificate_of(found.claim, release, account.fact, names)
        certificate = cast(Certificate, made)
        # a scale found numerically spends the budget to its last digits only
        name, spent = self._states
        certificate = certificate.as_asked(getattr(self, name, None), spent)
        return Calibration(found.noise, certificate, found.warnings, draws=found.draws)

    def certify(
        self, noise: Noise, release: Any, scenario: Scenario | BoundScenario
    ) -> Certificate:
        """Find what a given noise promises."""
        # an order or a delta of the promise is read off the parameters
        self.check()
        if type(release) is VoteRelease:
            release = self._votes_as_read(release)
        check_values(noise, release, self._takes_joint_noise)
        bound = bind(scenario, release)
        # as the one who calibrated it
        chosen = self._chooses(release) and noise.family in TRIED
        named = self._named(noise.family) if chosen else self
        return named._certified(noise, release, bound)

    def _certified(
        self, noise: Noise, release: Any, bound: BoundScenario
    ) -> Certificate:
        """Find what a noise promises, once all that is given is checked."""
        account = self._account(release, bound, noise.norm)
        return self._proved(noise, release, bound, account)

    def _proved(
        self, noise: Noise, release: Any, bound: BoundScenario, account: Account
    ) -> Certificate:
        """Let the kernel certify a noise by the rule of an account."""
        names = self._names(bound, release)
        made = prove(noise, release, account.fact, account.claim, names)
        return cast(Certificate, made)

    def _certified_again(
        self, found: Calibration, release: Any, bound: BoundScenario
    ) -> Certificate:
        """Certify the noise of a search from the noise, within the budget."""
        told, most = found.certificate, budget_of(self)
        name, spent = self._states
        certificate = self._certified_by_draws(found, release, bound)
        certificate = replace(
            certificate,
            choice=told.choice,
            noise_gain=told.noise_gain,
            confidence=min(certificate.confidence, told.confidence),
            **certificate.near(getattr(self, name, None), spent),
        )
        certificate.refuse_above(most, type(self).__name__)
        return certificate

    def _certified_by_draws(
        self, found: Calibration, release: Any, bound: BoundScenario
    ) -> Certificate:
        """Certify the noise of a search by whom, and by the draws, that found it."""
        again = self
        if found.draws is not None:
            again = clone(self)
            again._draws = found.draws
        return again.certify(found.noise, release, bound)

    def _by_sensitivity(
        self, found: Calibration, release: Any, bound: BoundScenario
    ) -> bool:
        """Whether a larger sensitivity takes larger noise in proportion; see `Account`.

        It is never taken from a search.
        """
        if type(release) is VoteRelease:
            release = self._votes_as_read(release)
        try:
            return self._account(release, bound, found.noise.norm).by_sensitivity
        except ValueError:
            # it calibrates and certifies by means of its own, of which nothing is known
            return False

    def supports(self, release: Any, scenario: Scenario | BoundScenario) -> Support:
        """Return whether this accountant can account for a release under a scenario.

        A kind of release, a field, a fact, a relation or a sampling scheme that is new
        to it is refused.

        Parameters
        ----------
        release : QueryRelease, GradientRelease or VoteRelease
        scenario : Scenario or BoundScenario

        Returns
        -------
        Support
            True where it can; otherwise it holds the reason.
        """
        # a parameter that is wrong for any release is an error, as in calibration
        if isinstance(scenario, Scenario):
            scenario.check()
        if type(release) is VoteRelease:
            release = self._votes_as_read(release)
        # By the checks of calibration itself, so that the two do not drift apart. What
        # is left to a scenario is not to fit the table of this release.
        try:
            self._check_support(release, bind(scenario, release))
        except (UnsupportedError, ScenarioError) as error:
            return Support(False, reason_of(error))
        return Support(True)

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        """Raise an UnsupportedError with the reason if it cannot answer."""
        self._method(release, bound)
        need = self._need(release, bound)
        noise = self._chosen_noise()
        check_values(noise, release, self._takes_joint_noise)
        # other facts take simulation or transport to compute
        if need in _AT_HAND:
            account = self._account(release, bound, noise.norm)
            if account.try_noise is not None:
                account.try_noise(noise)

    def _votes_as_read(self, release: VoteRelease) -> VoteRelease | QueryRelease:
        """Votes, as one vector if they are that and it does not read votes."""
        if VoteRelease in self.reads or release.query is None:
            return release
        return release.stacked()

    # -- the choice of a family ------------------------------------------------------

    @property
    def _is_auto(self) -> bool:
        """Whether the family of the noise is to be chosen."""
        return isinstance(self.noise, str) and self.noise == AUTO

    def _chooses(self, release: Any) -> bool:
        """Whether the family is chosen for a release: one vector that is a query."""
        # Steps and stages are laid out for one norm before they are accounted for, and
        # the error of votes is not that of their counts.
        return self._is_auto and type(release) is QueryRelease

    def _named(self, family: str) -> Self:
        """This accountant with noise of a family by name."""
        # no clone: that takes longer, and forgets the draws to certify by
        named = copy(self)
        named.noise = family
        named._asked_by = self
        return named

    def _tried(self) -> Iterator[str]:
        """Families that keep promises of this kind, the usual one first."""
        for family in dict.fromkeys((self._usual_family, *TRIED)):
            with suppress(ValueError):
                self._check_parameters(family_named(family)(1.0))
                yield family

    def _of_least_error(
        self, release: QueryRelease, bound: BoundScenario, rng: Any
    ) -> Calibration:
        """Calibrate each family, and take the noise of the least mean square error."""
        found: dict[str, Calibration] = {}
        sizes: list[float] = []
        errors: list[ValueError] = []
        for family in self._tried():
            if family_named(family).integer and not release.is_integer:
                continue
            try:
                made = self._named(family)._calibrated(release, bound, rng)
            except ValueError as error:
                errors.append(error)
                if bound.scenario.needs_empirical:
                    break
                continue
            told = made.certificate
            # Whether it is the least is read off the sample, and that the sample does
            # not err would have to hold for each of them.
            known = told.certified and told.confidence == 1
            if not known or bound.scenario.needs_empirical:
                return made
            found[family] = made
            sizes.append(mean_square(made.noise, release.dim))
        if not found:
            raise errors[0]
        calibrations = list(found.values())
        best = least_error(sizes)
        made = calibrations[best]
        certificate = replace(
            made.certificate,
            choice=told_choice(list(found), sizes, best),
            noise_gain=_gain_of_least(calibrations, sizes, best),
        )
        return replace(made, certificate=certificate)

    def _account(self, release: Any, bound: BoundScenario, norm: float) -> Account:
        """Account of a release, by its kind and the fact to work from."""
        method = self._method(release, bound)
        fact = self._fact(release, bound, norm)
        account: Account = method(fact, release, bound)
        return replace(account, fact=fact)

    def _method(self, release: Any, bound: BoundScenario) -> Callable[..., Account]:
        """Method that makes the account of a release, or an UnsupportedError."""
        # exact type, as in `reads`: what a subclass of a release adds is not accounted
        # for
        method = self._accounts.get(type(release))
        if method is None:
            kind = type(release).__name__
            unmarked = Statement("accountant.kind_has_no_method", kind=kind)
            raise self._refusal(release, bound, unmarked)
        # looked up by its name, so that a subclass replaces it as any other method
        found: Callable[..., Account] = getattr(self, method.__name__)
        return found

    def _need(self, release: Any, bound: BoundScenario) -> type:
        """Kind of the first fact in `needs` that a scenario provides; not computed."""
        # Fails closed: a field that the accountant was never written for may change
        # what leaves, so the release is refused before any fact is looked at.
        if unread_fields(self.reads, release) is None:
            provided = bound.provides(release)
            # distributions of the output bound its sensitivity more tightly than what
            # holds for any records, so they come first where both are offered
            for need in self.needs:
                if need in provided:
                    return need
        raise self._refusal(release, bound)

    def _fact(self, release: Any, bound: BoundScenario, norm: float) -> Any:
        """First fact in `needs` that a scenario provides, if all it says is read."""
        need = self._need(release, bound)
        fact: Any = bound.fact(need, release, norm)
        new = None
        # a subclass of a fact may mean less than the fact by which noise is set
        if type(fact) is not need:
            new = Statement(
                "accountant.other_fact_offered",
                fact_type=type(fact).__name__,
                need=need.__name__,
            )
        # facts about distributions speak of secrets, not of tables: they have no
        # relation
        relation = getattr(fact, "relation", RELATIONS[0])
        if relation not in RELATIONS:
            new = Statement("accountant.relation_unknown", relation=relation)
        if new is not None:
            raise unsupported_error(
                "accountant.scenario_fact_unknown",
                scenario_type=type(bound.scenario).__name__,
                new=new,
                owner=type(self).__name__,
            )
        delta = getattr(self, "delta", None)
        # no noise buys back an event of more than delta, but what is certain needs none
        if need is Adjacency and delta is not None and fact.delta >= delta:
            by_law = self._by_law and fact.survival is not None
            if fact.count_is_certain or by_law:
                fact = fact.in_any_event(release.n_records)
        return fact

    @contextmanager
    def _refusing(
        self,
        release: Any,
        bound: BoundScenario,
        code: str = "compose.release_without_bound",
    ) -> Iterator[None]:
        """Say of what is refused within that this accountant has no bound for it."""
        try:
            yield
        except UnsupportedError as error:
            raise unsupported_error(
                code,
                owner=type(self).__name__,
                name=release.name,
                scenario_type=type(bound.scenario).__name__,
                reason=reason_of(error),
            ) from None

    def _refusal(
        self, release: Any, bound: BoundScenario, unread: Statement | None = None
    ) -> UnsupportedError:
        """Say why there is no account of a release, and what would do."""
        unread = unread_fields(self.reads, release) or unread
        provided = bound.provides(release)
        # named only if it reads the release and some fact for it is there
        others = tuple(
            kind.__name__
            for kind in known_accountants()
            if kind.recommended
            # the settings that one of these needs are its own to name
            and not kind.last_iterate_only
            and unread_fields(kind.reads, release) is None
            and any(need in provided for need in kind.needs)
        )
        remedy = Statement("accountant.remedy_richer_scenario")
        if others:
            remedy = Statement("accountant.remedy_other_accountants", others=others)
        elif unread is None:
            remedy = Statement("accountant.remedy_bound_record", remedy=remedy)
        # what a scenario is for its author says better than can be read off facts
        purpose = bound.scenario._purpose
        if purpose is not None:
            remedy = (
                Statement("accountant.remedies", remedies=(remedy, purpose))
                if others
                else purpose
            )
        # the release is to blame before the scenario: no other scenario would help
        if unread is not None:
            return UnsupportedError(
                Statement(
                    "accountant.does_not_answer_for_release",
                    owner=type(self).__name__,
                    unread=unread,
                    name=release.name,
                    remedy=remedy,
                )
            )
        offers = tuple(sorted(f.__name__ for f in provided))
        return UnsupportedError(
            Statement(
                "accountant.facts_not_offered",
                owner=type(self).__name__,
                needs=tuple(need.__name__ for need in self.needs),
                scenario_type=type(bound.scenario).__name__,
                offers=offers or (Statement("accountant.nothing_offered"),),
                name=release.name,
                remedy=remedy,
            )
        )

    def _asked(self, kind: type) -> Iterable["Accountant"]:
        """Yield the accountants that are asked about a kind of release: this one."""
        yield self

    @property
    def unit_order(self) -> float:
        """Order p by which n coordinates cost what one does in units of n^(1/p).

        It is the order of the norm in which the noise measures moves, 2 if that may be
        any, and infinite for noise on the integers.
        """
        noise = self._chosen_noise() if hasattr(self, "noise") else None
        if noise is None:
            return 2.0
        return math.inf if noise.integer else float(noise.norm)

    @property
    def unit_orders(self) -> tuple[float, ...]:
        """Orders of the norms in which noise may measure moves, if it is chosen yet.

        One that adds nothing in any of them adds nothing whichever noise is taken.
        """
        named = hasattr(self, "noise") and not self._is_auto
        return (self.unit_order,) if named else (1.0, self.unit_order)

    def _chosen_noise(self) -> Noise:
        """The noise of the parameters `noise` and `beta`, at scale one."""
        noise, beta = self.noise, self.beta
        # The family and its shape are taken from it, and the scale is set anew: one
        # that the user chose might not keep the promise.
        if isinstance(noise, Noise):
            if beta is not None:
                raise value_error("noise.beta_with_given_noise", beta=beta)
            # proportions of coordinates are the release's to say, in its units
            if np.ndim(noise.scale):
                raise value_error("noise.several_scales", noise=noise)
            return noise.with_scale(1.0)
        # with none of them, what is wrong with the parameters is said of the usual one
        chosen = next(self._tried(), self._usual_family) if self._is_auto else noise
        family = family_named(chosen)
        # beta would be ignored without a word
        if family is not GeneralizedGaussianNoise:
            if beta is not None:
                raise value_error(
                    "noise.beta_with_other_family", noise=noise, beta=beta
                )
            return family(1.0)
        # no default: the shape decides in which norm the sensitivity is bounded
        if beta is None:
            raise value_error("noise.beta_missing")
        return family(1.0, beta=beta)

    def _names(self, bound: BoundScenario, *releases: Release) -> Names:
        """Names of releases, accountant and scenario, for a certificate."""
        return Names(
            release=" + ".join(release.name for release in releases),
            accountant=name_of(self._asked_by or self),
            scenario=bound.describe(),
            table=getattr(bound.scenario, "table", None),
            n_records=None
            if bound.context.size == "private"
            else bound.context.n_records,
            columns=bound.context.feature_names,
        )


def budget_of(accountant: Accountant) -> dict[str, tuple[str, Any]]:
    """Return what a certificate may state at most, by field, and by which parameter."""
    return {
        field: (name, getattr(accountant, name, None)) for name, field in _SPENT.items()
    }


def name_of(accountant: Accountant) -> str:
    """Return the text of an accountant in one line."""
    # scikit-learn takes as long for it as a calibration does
    params = {k: repr(v) for k, v in accountant.get_params(deep=False).items()}
    at = type(accountant), *params.values(), get_config()["print_changed_only"]
    if len(_NAMES) > _MOST_NAMES:
        _NAMES.clear()
    if at not in _NAMES:
        _NAMES[at] = " ".join(repr(accountant).split())
    return _NAMES[at]


# By value; each is of a few public parameters.
_NAMES: dict[tuple[Any, ...], str] = {}
_MOST_NAMES = 1000


def _gain_of_least(
    made: Sequence[Calibration], sizes: Sequence[float], best: int
) -> float | None:
    """Gain over differential privacy, if that had the choice of a family too.

    None where the ratio of the sensitivities, in the norm of the family taken, says it.
    """
    told = made[best].certificate
    # noise is in proportion to the shift that it covers, or the ratio has been found
    plain = all(
        isinstance(each.certificate.curve, ShiftCurve)
        or each.certificate.noise_gain is not None
        for each in made
    )
    gains = [each.certificate.gain for each in made]
    known = [gain for gain in gains if gain is not None and math.isfinite(gain)]
    if told.gain is None or not plain or len(known) < len(made):
        return told.noise_gain
    least = min(size * gain**2 for size, gain in zip(sizes, known, strict=True))
    gain = math.sqrt(least / sizes[best])
    return gain if gain < told.gain * (1 - 1e-9) else told.noise_gain


def unread_fields(
    reads: dict[type, frozenset[str]], release: Release
) -> Statement | None:
    """Describe what an accountant does not read of a release; None if it reads all."""
    kind: type = type(release)
    # fields may be inherited from a kind that is read
    known = next((base for base in kind.__mro__ if base in reads), None)
    if known is None:
        return Statement(
            "accountant.other_kinds_accounted",
            kinds=tuple(map(_a, reads)),
            kind=_a(kind),
        )
    new = sorted({field.name for field in fields(kind)} - reads[known])
    if new:
        return Statement(
            "accountant.fields_not_read", fields=tuple(map(repr, new)), kind=_a(kind)
        )
    # no new field, but perhaps another meaning of an old one
    if known is not kind:
        return Statement(
            "accountant.subclass_meaning_unknown", known=_a(known), kind=_a(kind)
        )
    return None


def _a(kind: type) -> Statement:
    """Name of a kind with its article."""
    name = kind.__name__
    if name[0] in "AEIOU":
        return Statement("accountant.a_kind_by_vowel", name=name)
    return Statement("accountant.a_kind", name=name)


def bind(scenario: Scenario | BoundScenario, release: Any) -> BoundScenario:
    """Return a bound scenario, binding to the release's own public facts if need be."""
    if isinstance(scenario, BoundScenario):
        # bound to another table: its facts are about other numbers of records
        if scenario.context.n_records != release.n_records:
            raise value_error(
                "scenario.bound_to_other_record_count",
                n_bound=scenario.context.n_records,
                name=release.name,
                n_release=release.n_records,
            )
        # or of as many records, but about other columns; what one side does not say
        # may be as the other has it
        for name in (
            "feature_names",
            "n_features",
            "target_name",
            "groups",
            "feature_map",
            "size",
        ):
            bound, given = (
                getattr(context, name)
                for context in (scenario.context, release.context)
            )
            if bound is not None and given is not None and bound != given:
                raise value_error(
                    "scenario.bound_to_other_context",
                    field=name,
                    bound=brief(bound),
                    name=release.name,
                    given=brief(given),
                )
        return scenario
    if isinstance(scenario, Scenario):
        return scenario.bind(release.context)
    raise type_error("scenario.not_a_scenario", scenario=scenario)


def check_values(noise: Noise, release: Release, joint: bool = False) -> None:
    """Refuse what is no noise, and noise that does not fit the values of a release.

    Coordinates of the noise may depend on each other only if `joint` says that nothing
    but how far one vector moves is read.
    """
    if not isinstance(noise, Noise):
        raise type_error("noise.not_a_noise", noise=noise)
    # steps, votes and stages are drawn part by part, and their costs added up
    if noise.joint and not (joint and type(release) is QueryRelease):
        raise unsupported_error(
            "noise.family_for_one_vector", family=noise.family, name=release.name
        )
    # Values off the integers would show through: noise on the integers leaves their
    # fractional parts as they are.
    if noise.integer and not release.is_integer:
        raise unsupported_error(
            "noise.integer_family_for_reals", family=noise.family, name=release.name
        )


def known_accountants() -> list[type[Accountant]]:
    """Accountants that this room exports, by name."""
    room = import_module(__package__)
    exported = [getattr(room, name) for name in sorted(room.__all__)]
    return [
        kind
        for kind in exported
        if isinstance(kind, type)
        and issubclass(kind, Accountant)
        and kind is not Accountant
    ]


def check_pure(noise: Noise) -> None:
    """Refuse a noise of unbounded privacy loss, which can keep no pure promise."""
    if not noise.has_bounded_loss:
        raise value_error("noise.family_not_pure", family=noise.family)


# -- noise families by name, and the one of least expected error for a query -----------


#: Name by which an accountant chooses the family itself.
AUTO = "auto"


def family_named(noise: str) -> type[Noise]:
    """Return the noise family of a name: of this library, or declared by another."""
    found = Noise.families.get(noise) if isinstance(noise, str) else None
    if found is None:
        # rooms load what they offer when it is asked for
        for name in noise_room.__all__:
            getattr(noise_room, name)
        found = Noise.families.get(noise) if isinstance(noise, str) else None
    if found is None or not found.by_name:
        named = sorted(n for n, kind in Noise.families.items() if kind.by_name)
        check_option((AUTO, *named), noise=noise)
    family: type[Noise] = Noise.families[noise]
    return family


#: Families that are tried: those without a shape that would have to be searched for,
#: and with a finite variance.
TRIED = ("gaussian", "laplace", "discrete_laplace")

#: Errors that differ by no more than this share count as equal: rounding.
_EQUAL = 1e-9


def mean_square(noise: Noise, dim: int | None) -> float:
    """Return a noise's mean square over `dim` coordinates (or one), or inf."""
    return float(np.sum(noise.variance(dim)))


def least_error(errors: Sequence[float]) -> int:
    """Return where the least error is; of those about equal, the first."""
    near = min(errors) * (1 + _EQUAL)
    return next(i for i, error in enumerate(errors) if error <= near)


def compared(name: str, error: float, least: float) -> Statement:
    """Say how many times the least the error of some noise is."""
    if error == least:
        return Statement("noise.same_error", name=name)
    if least == 0 or math.isinf(error):
        return Statement("noise.error_infinitely_larger", name=name)
    return Statement("noise.error_larger", name=name, ratio=error / least)


def told_choice(
    families: Sequence[str], errors: Sequence[float], best: int
) -> Statement:
    """Say which family was chosen, and against which others."""
    names = [family.replace("_", " ") for family in families]
    if len(names) == 1:
        return Statement("noise.only_family_keeping_promise", family=names[0])
    others = sorted(
        (error, name)
        for i, (error, name) in enumerate(zip(errors, names, strict=True))
        if i != best
    )
    against = tuple(compared(name, error, errors[best]) for error, name in others)
    return Statement("noise.family_of_least_error", family=names[best], against=against)


# -- target of a promise: a Rényi order, or a delta ------------------------------------


#: Rényi order of a promise that names neither an order nor a delta.
DEFAULT_ORDER = 2.0


def check_order_or_delta(alpha: float | None, delta: float | None) -> float | None:
    """Return the order, by default if neither is given; None if there is a delta."""
    if delta is None:
        return DEFAULT_ORDER if alpha is None else check_order(alpha=alpha)
    check_probability(delta=delta)
    # one promise a certificate: with both it would be unclear which one the noise is
    # for
    if alpha is not None:
        raise value_error("parameter.alpha_and_delta_both")
    return None
