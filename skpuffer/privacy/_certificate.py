"""The certificate: what one release promised, in which notion, assuming what."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skpuffer.exceptions import CompositionError, Statement, UncertifiedError, stated
from skpuffer.kernel.notions import Notion
from skpuffer.privacy_loss.overlap import OverlapCurve, WorstOverlapCurve

from ._card import certificate_card
from ._consequences import ConsequencesMixin
from ._curve import Curve
from ._display import certificate_html, certificate_text
from ._events import Events
from ._guesses import GuessesMixin
from ._plain_data import SEEDED, PlainDataMixin

__all__ = ["Certificate"]


# How far from the budget, in parts of it, what the noise spends may be: above it by
# rounding alone, below it by as much as a search for the scale may leave.
_ABOVE, _BELOW = 1e-6, 1e-2


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(ConsequencesMixin, GuessesMixin, PlainDataMixin):
    """Privacy guarantee of a release: its notion, its numbers, its assumptions.

    Plain data, made by an accountant and never changed. It never upgrades itself.

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
        The part of `delta` that no noise can buy back: the mass outside the event
        that `curve` speaks of.
    mutual_information : float or None
        A PAC budget in nats. It never stands in `epsilon`.
    table_information : float or None
        Where that is about single records or groups: what the whole table leaks, in
        nats, held with the same confidence.
    entropy : float or None
        Shannon entropy of the table under the prior of a PAC budget, in nats.
    prior_success : float or None
        Probability with which the secret of a PAC budget, of several the likeliest, is
        guessed under the prior alone.
    worst_leakage : float or None
        Under a PAC budget, what the secret that leaks most leaks, in nats; estimated.
    confidence : float
        Probability, over the public sample, that the statement holds; 1 if certain.
    relation : str or None
        How neighbouring tables differ: 'add_remove', 'replace', or None.
    curve : Curve or None
        The whole privacy curve the numbers came from: `renyi(alpha)`,
        `delta(epsilon)`, `epsilon(delta)`.
    events : tuple of (pair, int) or None
        Dominating pairs of what leaves, and how often each: what `curve` was made of,
        where that is known and the curve does not list it itself. For whoever checks
        the numbers, see :mod:`skpuffer.certificate`.
    epsilon_lower : float or None
        A lower bound of the true epsilon where one is known; `epsilon` is the upper.
    rpp_epsilon : float
        The Rényi-Pufferfish epsilon at the same order that follows for secrets about
        the values of as many records, or infinity. Under 'add_remove' a value changes
        in two steps, so it is more than `epsilon`. Of a sliced promise, what the whole
        noisy vector is worth.
    profile : str or None
        Name of the slice profile that a sliced promise is about.
    coupling_id : str or None
        Names the coupling of neighbouring tables that the promise rests on.
        Certificates with the same one may be composed, and those for any neighbouring
        tables count under a coupling of the same table that changes no more records.
    coupling_count : int or None
        How many records that coupling changes at most, where that is known. Under a
        declared belief both are of the fallback, which may hold only of all records
        of one block; see `fallback`.
    table : str or None
        The public name of the table that was read, as the scenario gives it.
    n_records : int or None
        How many records it has.
    columns : tuple of str or None
        Names of the columns of it that were there to be read, besides the secret;
        None where they have none.
    record : str or None
        Under a declared belief, what it is that the belief speaks of. Promises under
        one belief about the same are composed first and amplified once.
    composable : bool
        Whether it may be added to others at all.
    seeded : bool
        Whether the noise came from a seed. The noise of two such releases may be the
        same, and their difference shows the data without any noise. So a seeded
        certificate is never added to another one, and ledgers refuse it.
    assumptions : tuple of Statement
        What must be true for the promise to hold. ``str`` writes each as a sentence.
    sensitivity : float or None
        Bound on the output's sensitivity that the noise covers, in the units of the
        release: half the range of each column in a summary, the clip norm of gradients
        in a training run, otherwise the unit of the output.
    norm : float or None
        The norm of `sensitivity`.
    record_sensitivity : float or None
        Sensitivity to an arbitrary change of one record, in the same norm: what plain
        differential privacy covers.
    noise_gain : float or None
        The `gain` by the noise itself, where it is not the ratio of the two
        sensitivities.
    source : Statement or str
        Where the statement is proved.
    scenario, accountant, release : str
        What was protected, who accounted, what left.
    choice : Statement or str
        Which family of noise was taken, or whom an accountant that asks others took,
        and how the others compared.
    n_releases : int
        How many releases are composed in it.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.mean(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 0.01}),
    ... )
    >>> accountant = GroupPrivacy(epsilon=1.0, alpha=4, noise="gaussian")
    >>> certificate = accountant.calibrate(release, RecordScenario()).certificate
    >>> certificate.notion, certificate.epsilon, certificate.alpha
    (<Notion 'renyi_dp'>, 1.0, 4.0)
    >>> round(certificate.to_approximate(1e-5).epsilon, 3)
    2.943
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
    curve: Curve | None = None
    events: Events | None = None
    epsilon_lower: float | None = None
    # infinity says that nothing is known to follow
    rpp_epsilon: float = math.inf
    profile: str | None = None
    coupling_id: str | None = None
    coupling_count: int | None = None
    table: str | None = None
    n_records: int | None = None
    columns: tuple[str, ...] | None = None
    record: str | None = None
    composable: bool = False
    seeded: bool = False
    assumptions: tuple[Statement, ...] = ()
    sensitivity: float | None = None
    norm: float | None = None
    record_sensitivity: float | None = None
    noise_gain: float | None = None
    source: Statement | str = ""
    scenario: str = ""
    accountant: str = ""
    choice: Statement | str = ""
    release: str = ""
    n_releases: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.notion, Notion):
            # for mypy a notion is never given by its name
            object.__setattr__(self, "notion", Notion.of(self.notion))  # type: ignore[unreachable]
        # tuples, also of what is read back from JSON: certificates compare by value
        object.__setattr__(self, "assumptions", _statements(self.assumptions))
        for name in ("source", "choice"):
            value = getattr(self, name)
            if value and not isinstance(value, Statement):
                object.__setattr__(self, name, stated(value))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def certified(self) -> bool:
        """Whether this is a promise (True) or an estimate (False)."""
        return self.notion.certified

    @property
    def gain(self) -> float | None:
        """Noise that one arbitrary record would need, over the noise used here.

        In a fit, the root mean square of the noise by which plain differential privacy
        of one replaced record keeps the same promise, by its best accountant and family
        of noise, over that of the noise used. Of a certificate that an accountant gave
        by itself, outside of a fit, it may be the ratio of the two sensitivities (where
        `noise_gain` is None), to which noise of one family is in proportion.

        Under a belief about several records together, such as those of a household,
        the noise that differential privacy of these would need: what the `fallback` is
        of, and the certificate names. 1.0 or less: the scenario gained nothing over
        plain differential privacy. None where the comparison makes no sense.
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
        """Epsilon at `delta` whatever is believed of the record, under a belief.

        Plain differential privacy of one replaced record, or of those that the belief
        takes together. Under a `coupling_id` such as 'replace:3' these are any three,
        otherwise all records of one block or household and no others. None where no
        belief is declared.
        """
        if not isinstance(self.curve, OverlapCurve | WorstOverlapCurve):
            return None
        return float(self.curve.curve.epsilon(self.delta - self.event_delta))

    def _refuse_estimate(self, what: Statement) -> None:
        if not self.certified:
            raise UncertifiedError(
                Statement("certificate.estimate_no_guarantee", what=what)
            )

    def _refuse_sum(self) -> None:
        """Raise where this is nothing that others may be added to."""
        if not self.certified:
            raise CompositionError(
                Statement("compose.estimate_not_addable", certificate=self)
            )
        if self.seeded:
            raise CompositionError(
                Statement(
                    "compose.noise_from_seed", certificate=self, release=self.release
                )
            )

    def as_asked(self, asked: float | None, field: str = "epsilon") -> "Certificate":
        """Return this certificate at the budget asked for, if its cost is near it.

        Parameters
        ----------
        asked : float or None
            None is no budget.
        field : {'epsilon', 'mutual_information'}, default='epsilon'
            What the budget is of.

        Returns
        -------
        Certificate
            As it is, if the noise spends more than was asked or leaves some of it, or
            if this states no such cost.
        """
        cost = getattr(self, field)
        # such as an exact release, which spends nothing, or a noise that is more than
        # enough
        if asked is None or cost is None:
            return self
        if not 1 - _BELOW <= cost / asked <= 1 + _ABOVE:
            return self
        changes: dict[str, Any] = {field: float(asked)}
        # the two go on being equal where they were
        if field == "epsilon" and self.rpp_epsilon == self.epsilon:
            changes["rpp_epsilon"] = float(asked)
        return replace(self, **changes)

    def refuse_above(self, budget: Mapping[str, tuple[str, Any]], whose: str) -> None:
        """Refuse to promise more than a budget allows.

        Parameters
        ----------
        budget : dict of {field: (parameter, most)}
            What each field may be at most, by which parameter; None for any number.
        whose : str
            Who found the noise.

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

    def as_estimate(self, reason: Statement | str) -> "Certificate":
        """Return this certificate demoted to an estimate, for a stated reason."""
        return replace(
            self,
            # an estimate is no promise, so that nothing may follow from it or be added
            # to it
            notion=Notion.ESTIMATED,
            rpp_epsilon=math.inf,
            composable=False,
            assumptions=(*self.assumptions, *_statements((reason,))),
        )

    def as_seeded(self) -> "Certificate":
        """Return this certificate with the statement that its noise has a seed."""
        return replace(self, seeded=True).assuming(SEEDED)

    def assuming(self, *assumptions: Statement | str) -> "Certificate":
        """Return this certificate with further assumptions written into it."""
        # appended, never replaced: what was assumed before still has to hold
        further = _statements(assumptions)
        return replace(self, assumptions=(*self.assumptions, *further))

    def to_card(self) -> dict[str, str]:
        """Return the certificate as sections of a model card.

        Returns
        -------
        dict of {str: str}
            Markdown by title, a slash before that of a part of a section: what
            ``skops.card.Card.add(**certificate.to_card())`` takes. For a card that is
            read by machines, :meth:`to_dict` has every field.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> certificate = Certificate(notion="pure_dp", epsilon=1.0)
        >>> for title, text in certificate.to_card().items():
        ...     print(title, text.splitlines()[0], sep=": ")
        Privacy: This is a guarantee.
        Privacy/Certificate: - **promise**: pure differential privacy: ε = 1
        Privacy/Check: Beside this card belongs the JSON of `certificate.to_dict()`. ...
        """
        return certificate_card(self)

    def __str__(self) -> str:
        return certificate_text(self)

    def __repr__(self) -> str:
        parts = [f"notion={self.notion.name!r}"]
        for name in ("epsilon", "alpha", "delta", "mutual_information"):
            value = getattr(self, name)
            # what is zero or unknown is left out: a line has to be short
            if value is not None and not (name == "delta" and value == 0):
                parts.append(f"{name}={value:.6g}")
        # the notion and its numbers; `str` says the rest, assumptions above all
        return f"Certificate({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return certificate_html(self)


def _statements(given: Iterable[Statement | str]) -> tuple[Statement, ...]:
    return tuple(a if isinstance(a, Statement) else stated(a) for a in given)
