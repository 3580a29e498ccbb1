"""The claim of a theorem about a noise, and the proof that makes a certificate of it.

Nothing else makes one. What every claim must keep is checked here.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self, TypedDict

from skpuffer.exceptions import Statement, UncertifiedError, stated, value_error
from skpuffer.kernel.curves import BeliefCurve, Events, PrivacyCurve
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.noise import Noise
from skpuffer.kernel.notions import SLICED, Notion
from skpuffer.kernel.numbers import check_probability
from skpuffer.kernel.releases import Release

# How far from the budget, in parts of it, what the noise spends may be: above it by
# rounding alone, below it by as much as a search for the scale may leave.
_ABOVE, _BELOW = 1e-6, 1e-2


class Changes(TypedDict, total=False):
    """Costs of a claim, in nats, as they are asked for."""

    epsilon: float
    mutual_information: float
    rpp_epsilon: float


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim of one theorem about a noise: all of a certificate but whose it is.

    Parameters
    ----------
    notion : Notion or str
        The privacy notion the promise is stated in.
    epsilon : float or None
        The bound in nats; None if the promise is a mutual information.
    alpha : float or None
        Rényi order, where the notion has one; infinity for a pure promise.
    delta : float
        The delta of an approximate notion, for each pair of secrets and each prior.
    event_delta : float
        The part of `delta` that no noise can buy back: the mass outside the event that
        `curve` speaks of.
    mutual_information : float or None
        A PAC budget in nats. It never stands in `epsilon`.
    table_information : float or None
        Where that is about single records or groups: what the whole table leaks, in
        nats.
    entropy : float or None
        Shannon entropy of the table under the prior of a PAC budget, in nats.
    prior_success : float or None
        Probability with which the likeliest secret of a PAC budget is guessed under the
        prior alone.
    worst_leakage : float or None
        Under a PAC budget, what the secret that leaks most leaks, in nats; estimated.
    confidence : float
        Probability, over the public sample, that the statement holds; 1 if certain.
    relation : {'add_remove', 'replace'} or None
        How neighbouring tables differ.
    curve : PrivacyCurve or None
        The whole privacy curve the numbers came from: `renyi(alpha)`, `delta(epsilon)`,
        `epsilon(delta)`.
    events : tuple of (pair, int) or None
        Dominating pairs and how often each: what `curve` was made of, where it does not
        list them itself; see :mod:`skpuffer.certificate`.
    epsilon_lower : float or None
        A lower bound of the true epsilon where one is known.
    rpp_epsilon : float
        The Rényi-Pufferfish epsilon at the same order for secrets about the values of
        as many records, or infinity. Under 'add_remove' a value changes in two steps.
        For a sliced promise, what the whole noisy vector is worth.
    profile : str or None
        Name of the slice profile that a sliced promise is about.
    coupling_id : str or None
        Names the coupling of neighbouring tables that the promise rests on.
        Certificates with the same one may be composed, and those for any neighbouring
        tables count under a coupling of the same table that changes no more records.
    coupling_count : int or None
        How many records that coupling changes at most, where that is known. Under a
        declared belief both are of the `fallback`.
    record : str or None
        Under a declared belief, what the belief speaks of. Promises under one belief
        about the same are composed first and amplified once.
    composable : bool
        Whether it may be added to others at all.
    assumptions : tuple of Statement
        Facts that must be true for the promise to hold.
    sensitivity : float or None
        Bound on the output's sensitivity that the noise covers, in the units of the
        release: half the range of each column in a summary, the clip norm of gradients
        in a training run, otherwise the unit of the output.
    norm : float or None
        The norm of `sensitivity`.
    record_sensitivity : float or None
        Sensitivity to an arbitrary change of one record, in the same norm.
    noise_gain : float or None
        The `gain` by the noise itself, where it is not the ratio of the two
        sensitivities.
    n_releases : int
        How many releases are composed in it.
    source : Statement or str
        Where the statement is proved.

    Examples
    --------
    >>> from skpuffer.accountants import Claim
    >>> Claim(notion="pure_dp", epsilon=0.5, relation="replace").epsilon
    0.5
    """

    # Defaults promise nothing: an infinite epsilon for values, no curve, not
    # composable.
    notion: Notion
    epsilon: float | None = None
    alpha: float | None = None
    delta: float = 0.0
    # apart from `delta`, which a conversion may raise: this part stays as it is
    event_delta: float = 0.0
    # a field of its own: a bound on it implies no epsilon, and must not be read as one
    mutual_information: float | None = None
    table_information: float | None = None
    entropy: float | None = None
    prior_success: float | None = None
    worst_leakage: float | None = None
    confidence: float = 1.0
    relation: str | None = None
    curve: PrivacyCurve | None = None
    events: Events | None = None
    epsilon_lower: float | None = None
    # infinity says that nothing is known to follow
    rpp_epsilon: float = math.inf
    profile: str | None = None
    coupling_id: str | None = None
    coupling_count: int | None = None
    record: str | None = None
    composable: bool = False
    assumptions: tuple[Statement, ...] = ()
    sensitivity: float | None = None
    norm: float | None = None
    record_sensitivity: float | None = None
    noise_gain: float | None = None
    source: Statement | str = ""
    n_releases: int = 1

    def __post_init__(self) -> None:
        given = vars(self)["notion"]  # or its name
        if type(given) is not Notion:
            object.__setattr__(self, "notion", Notion.of(given))
        # tuples, also of what is read back from JSON: certificates compare by value
        object.__setattr__(self, "assumptions", in_statements(self.assumptions))
        if self.source and not isinstance(self.source, Statement):
            object.__setattr__(self, "source", stated(self.source))

    @property
    def certified(self) -> bool:
        """Whether this is a promise (True) or an estimate (False)."""
        return self.notion.certified

    def assuming(self, *assumptions: Statement | str) -> Self:
        """Return this certificate with further assumptions written into it."""
        # appended, never replaced: what was assumed before still has to hold
        further = in_statements(assumptions)
        return replace(self, assumptions=(*self.assumptions, *further))


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Claim):
    """Privacy guarantee of a release: its notion, its numbers, its assumptions.

    Plain data, made by an accountant and never changed. It never upgrades itself.

    Parameters
    ----------
    table : str or None
        The public name of the table that was read, as the scenario gives it.
    n_records : int or None
        How many records it has.
    columns : tuple of str or None
        Names of the columns of it that were there to be read, besides the secret;
        None where they have none.
    seeded : bool
        Whether the noise came from a seed. The noise of two such releases may be the
        same, and their difference shows the data without any noise. So a seeded
        certificate is never added to another one, and ledgers refuse it.
    scenario, accountant, release : str
        Names of the scenario, the accountant and the release.
    choice : Statement or str
        Which family of noise was taken, or whom an accountant that asks others took,
        and how the others compared.
    **claim
        As :class:`Claim`.
    """

    table: str | None = None
    n_records: int | None = None
    columns: tuple[str, ...] | None = None
    seeded: bool = False
    scenario: str = ""
    accountant: str = ""
    choice: Statement | str = ""
    release: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.choice and not isinstance(self.choice, Statement):
            object.__setattr__(self, "choice", stated(self.choice))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def gain(self) -> float | None:
        """Noise that one arbitrary record would need, over the noise used here.

        In a fit, the root mean square of the noise of plain differential privacy of one
        replaced record at the same numbers, by its best accountant and family of noise,
        over that of the noise used. Outside of a fit it may be the ratio of the two
        sensitivities. Under a belief about several records together, the comparison is
        with differential privacy of these. None where the comparison makes no sense.
        """
        if self.noise_gain is not None:
            return self.noise_gain
        # By the sensitivities, to which noise is in proportion. A secret about many
        # records, or about no bounded ones, has no record to compare.
        if self.record_sensitivity is None or self.sensitivity is None:
            return None
        # no noise at all, where plain differential privacy would need some
        if self.sensitivity == 0:
            return math.inf
        return self.record_sensitivity / self.sensitivity

    @property
    def fallback(self) -> float | None:
        """Epsilon at `delta` under no belief, or None where none is declared.

        Plain differential privacy of one replaced record, or of those that the belief
        takes together. Under a `coupling_id` such as 'replace:3' these are any three,
        otherwise all records of one block or household.
        """
        curve: object = self.curve
        if not isinstance(curve, BeliefCurve):
            return None
        return float(curve.without_belief().epsilon(self.delta - self.event_delta))

    def _refuse_estimate(self, what: Statement) -> None:
        if not self.certified:
            raise UncertifiedError(
                Statement("certificate.estimate_no_guarantee", what=what)
            )

    def as_asked(self, asked: float | None, field: str = "epsilon") -> Self:
        """Return this certificate at the budget asked for, if its cost is near it.

        Parameters
        ----------
        asked : float or None
            None is no budget.
        field : {'epsilon', 'mutual_information'}, default='epsilon'
            Field that the budget limits.

        Returns
        -------
        Certificate
            As it is, if the noise spends more than was asked or leaves some of it, or
            if this states no such cost.
        """
        changes = self.near(asked, field)
        return replace(self, **changes) if changes else self

    def near(self, asked: float | None, field: str) -> Changes:
        """Return what :meth:`as_asked` changes, by field."""
        cost = getattr(self, field)
        # such as an exact release, which spends nothing, or a noise that is more than
        # enough
        if asked is None or cost is None:
            return {}
        if not 1 - _BELOW <= cost / asked <= 1 + _ABOVE:
            return {}
        if field == "mutual_information":
            return {"mutual_information": float(asked)}
        # the two go on being equal where they were
        if self.rpp_epsilon == self.epsilon:
            return {"epsilon": float(asked), "rpp_epsilon": float(asked)}
        return {"epsilon": float(asked)}

    def refuse_above(
        self, budget: Mapping[str, tuple[str, float | None]], whose: str
    ) -> None:
        """Refuse to promise more than a budget allows.

        Parameters
        ----------
        budget : dict of {field: (parameter, most)}
            Largest value of each field, by which parameter; None for any number.
        whose : str
            Finder of the noise.

        Raises
        ------
        UncertifiedError
            If a field is above what is allowed by more than rounding, or missing.
        """
        for field, (parameter, most) in budget.items():
            cost = getattr(self, field)
            if most is None or (cost is not None and cost <= most * (1 + _ABOVE)):
                continue
            cost = math.inf if cost is None else cost
            raise UncertifiedError(
                Statement(
                    "certificate.noise_costs_above_parameter",
                    whose=whose,
                    release=self.release,
                    parameter=parameter,
                    cost=cost,
                    most=float(most),
                )
            )

    def implies(self, notion: Notion | str) -> bool:
        """Whether a promise in `notion` follows from this one, at the same numbers.

        From a Rényi notion to an (epsilon, delta) one the numbers differ:
        :meth:`to_approximate` gives them.

        Parameters
        ----------
        notion : Notion or str

        Returns
        -------
        bool
            An estimate implies nothing but an estimate.
        """
        notion = Notion.of(notion)
        if self.relation == "add_remove" and self.notion.differential:
            # Another value of a record is two steps of this relation away, a removal
            # and an addition, so nothing follows for replaced values at these numbers.
            return notion.differential and self.notion.implies(notion)
        # read off an explicit table: a notion that is new implies nothing but itself
        return self.notion.implies(notion)

    def to_approximate(self, delta: float) -> Self:
        """Return the (epsilon, delta) promise that follows.

        Parameters
        ----------
        delta : float
            In (0, 1), and greater than the certificate's own `delta` where its notion
            has an event outside of which nothing is promised.

        Returns
        -------
        Certificate
            From the whole curve where one is held, not from a single order.

        Raises
        ------
        UncertifiedError
            If this is an estimate or holds no curve to convert.
        ValueError
            If `delta` is not in the range.
        """
        # the number first, then what is held: neither can make up for the other
        delta = check_probability(delta=delta)
        self._refuse_estimate(Statement("certificate.what_approximate_promise"))
        # without a curve one order would have to stand for all of them
        if self.curve is None:
            raise UncertifiedError(Statement("certificate.no_curve_to_convert"))
        # from an average over subsamples or projections, say, no (epsilon, delta)
        # follows
        if self.notion.approximate is None:
            of_slices: Statement | str = ""
            if self.notion in SLICED:
                of_slices = Statement("certificate.remedy_sliced_approximate")
            raise UncertifiedError(
                Statement(
                    "certificate.no_approximate_promise_follows",
                    title=self.notion.title,
                    of_slices=of_slices,
                )
            )
        event = self.event_delta
        if delta <= event:
            raise value_error("certificate.delta_below_event", event=event, delta=delta)
        # delta is the noise's own trade-off given the event, plus the mass outside it
        epsilon = float(self.curve.epsilon(delta - event))
        return replace(
            self,
            notion=self.notion.approximate,
            epsilon=epsilon,
            alpha=None,
            delta=delta,
            epsilon_lower=None,
            rpp_epsilon=math.inf,
            noise_gain=None,
        )


def in_statements(given: Iterable[Statement | str]) -> tuple[Statement, ...]:
    """Return assumptions as statements, also those given in words."""
    return tuple(a if isinstance(a, Statement) else stated(a) for a in given)


#: What a theorem claims of a noise, of one release and what is known about it.
Rule = Callable[[Noise], Claim]


@dataclass(frozen=True)
class Names:
    """Names on a certificate; nothing of it is computed with.

    Parameters
    ----------
    table : str or None
        Public name of the table.
    n_records : int or None
        How many records it has.
    columns : tuple of str or None
        Names of its columns.
    """

    release: str
    accountant: str
    scenario: str
    table: str | None = None
    n_records: int | None = None
    columns: tuple[str, ...] | None = None


def certificates_are(kind: type[Certificate]) -> None:
    """Register the class of certificates: a subclass that says more of one."""
    _kinds[:] = [kind]


def certificates_from(load: Callable[[], object]) -> None:
    """Register what loads the module that calls :func:`certificates_are`."""
    _loaders[:] = [load]


_kinds: list[type[Certificate]] = []
_loaders: list[Callable[[], object]] = []


def prove(
    noise: Noise, release: Release, fact: Fact, rule: Rule, names: Names
) -> Certificate:
    """Certify what a noise promises of a release.

    Parameters
    ----------
    noise : Noise
        As it will be drawn, but for the room that its grid takes.
    fact : Fact
        A scenario's knowledge of the release.
    rule : callable
        Returns the :class:`Claim` that a theorem makes of a noise.
    """
    return certificate_of(rule(noise), release, fact, names)


def certificate_of(
    claim: Claim, release: Release, fact: Fact, names: Names
) -> Certificate:
    """Return the certificate of a claim, if a theorem may claim that."""
    wrong = next((code for code, failed in _checks(claim, fact) if failed), None)
    if wrong is not None:
        raise UncertifiedError(
            Statement(wrong, release=release.name, accountant=names.accountant)
        )
    held = {field.name: getattr(claim, field.name) for field in fields(Claim)}
    # in the order of the claim, and before it what it left out
    same = set(map(id, claim.assumptions))
    missing = tuple(
        each
        for each in in_statements((*fact.assumptions, *release.assumptions))
        if id(each) not in same and each not in claim.assumptions
    )
    held["assumptions"] = (*missing, *claim.assumptions)
    for load in () if _kinds else _loaders:
        load()
    kind = _kinds[0] if _kinds else Certificate
    return kind(**held, **vars(names))


def _checks(claim: Claim, fact: Fact) -> tuple[tuple[str, bool], ...]:
    """Pairs of what a claim must not be, and whether it is that."""
    costs = (claim.epsilon, claim.mutual_information, claim.rpp_epsilon)
    known = [cost for cost in costs if cost is not None]
    estimate = not claim.certified
    return (
        ("proof.cost_not_a_number", any(not cost >= 0 for cost in known)),
        ("proof.states_no_cost", claim.epsilon is claim.mutual_information is None),
        ("proof.delta_out_of_range", not 0 <= claim.event_delta <= claim.delta < 1),
        ("proof.confidence_out_of_range", not 0 <= claim.confidence <= 1),
        # whatever was computed, that it was reached is read off the private rows
        ("proof.private_rows_were_read", fact.reads_private_rows and not estimate),
        ("proof.estimate_adds_up", estimate and claim.composable),
        ("proof.estimate_says_more", estimate and not math.isinf(claim.rpp_epsilon)),
        ("proof.order_out_of_range", claim.alpha is not None and not claim.alpha > 1),
    )
