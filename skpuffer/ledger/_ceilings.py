"""Ceilings: what the releases of a ledger may cost together, in one notion each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skpuffer.exceptions import CompositionError, LedgerError, Statement
from skpuffer.kernel.numbers import check_order, check_probability, check_real
from skpuffer.kernel.plain import to_plain
from skpuffer.privacy import Certificate, Notion, compose, mixed_information
from skpuffer.privacy._compose import repeated
from skpuffer.privacy._written import from_plain

#: What the number of a ceiling goes with, by notion: nothing, a delta or an order.
_GOES_WITH = {
    Notion.PURE_DP: None,
    Notion.PURE_PUFFERFISH: None,
    Notion.APPROXIMATE_DP: "delta",
    Notion.APPROXIMATE_PUFFERFISH: "delta",
    Notion.RENYI_DP: "alpha",
    Notion.RENYI_PUFFERFISH: "alpha",
    Notion.SA_JOINT_SLICED_RENYI_PUFFERFISH: "alpha",
    Notion.SA_AVERAGED_SLICED_RENYI_PUFFERFISH: "alpha",
    Notion.MUTUAL_INFORMATION: None,
    Notion.RECORD_MUTUAL_INFORMATION: None,
    Notion.GROUP_MUTUAL_INFORMATION: None,
}

#: How far a certificate may be above its own budget by rounding, in parts of it (see
#: `Certificate.as_asked`): so far may their sum be above a ceiling.
_ROUNDING = 1e-6

#: Averages over subsamples: what adds up order by order and has no curve.
_AVERAGES = (
    Notion.SA_JOINT_SLICED_RENYI_PUFFERFISH,
    Notion.SA_AVERAGED_SLICED_RENYI_PUFFERFISH,
)


@dataclass(frozen=True)
class Ceiling:
    """The most that releases may cost together, in one notion.

    Parameters
    ----------
    most : float
        Epsilon or mutual information, in nats; infinity counts without a ceiling.
    parameter : float or None
        The delta or the order that goes with it.
    """

    notion: Notion
    most: float
    parameter: float | None = None

    @property
    def at(self) -> dict[str, float]:
        """Where an epsilon is read, as an argument of :func:`compose`."""
        name = _GOES_WITH[self.notion]
        if self.notion in (Notion.PURE_DP, Notion.PURE_PUFFERFISH):
            return {"alpha": math.inf}
        if name is None:
            return {}
        assert self.parameter is not None  # checked when it was read
        return {name: self.parameter}

    def __str__(self) -> str:
        if not math.isfinite(self.most):
            return f"{self.notion.title}, counted without a ceiling"
        if self.is_information:
            return f"{self.notion.title} ≤ {self.most:.6g} nats"
        name = {"delta": "δ", "alpha": "α", None: ""}[_GOES_WITH[self.notion]]
        with_it = f", {name} = {self.parameter:.6g}" if name else ""
        return f"{self.notion.title}: ε ≤ {self.most:.6g}{with_it}"

    @property
    def is_information(self) -> bool:
        """Whether it bounds a mutual information."""
        return self.notion.name.endswith("mutual_information")

    @property
    def is_average(self) -> bool:
        """Whether it is of averages over subsamples, which add up at one order."""
        return self.notion in _AVERAGES

    def spent(self, certificate: Certificate | None) -> float:
        """Return what a total in this notion has used of the ceiling."""
        if certificate is None:
            return 0.0
        c = certificate
        value = c.mutual_information if self.is_information else c.epsilon
        assert value is not None  # what its notion is stated in
        return value

    def exceeded_by(self, certificate: Certificate) -> bool:
        """Whether a total in this notion is above the ceiling."""
        return self.spent(certificate) > self.most * (1 + _ROUNDING)

    def total(
        self, certificates: Sequence[Certificate], counts: Sequence[int]
    ) -> Certificate:
        """Return what releases promise together, in the notion of the ceiling."""
        if sum(counts) == 1:
            return self._alone(certificates[0])
        if self.notion in (
            Notion.RECORD_MUTUAL_INFORMATION,
            Notion.GROUP_MUTUAL_INFORMATION,
        ):
            parts = zip(certificates, counts, strict=True)
            total = mixed_information(
                [one for c, count in parts for one in repeated(c, count)]
            )
        elif self.is_average:
            total = compose(certificates, counts=counts)
        else:
            total = compose(certificates, counts=counts, **self.at)
        return self._in_notion(total)

    def _alone(self, c: Certificate) -> Certificate:
        """One release, which need not add up with any other.

        An estimate implies nothing, so that none is in the notion of a ceiling.
        """
        # at the numbers of its own, where these are no weaker than asked
        own = c if c.implies(self.notion) and self._no_weaker(c) else None
        if own is not None and own.delta == self.parameter:
            return own
        if _GOES_WITH[self.notion] == "delta" and (own is None or c.curve is not None):
            assert self.parameter is not None  # checked when it was read
            converted = self._in_notion(c.to_approximate(self.parameter))
            return min(filter(None, (own, converted)), key=self.spent)
        if own is not None:
            return own
        if "alpha" in self.at and c.curve is not None and c.notion.approximate:
            alpha = self.at["alpha"]
            if c.composable:
                return self._in_notion(compose([c], alpha=alpha))
            # at another order than its own, for what is not to be added up
            if c.implies(Notion.RENYI_PUFFERFISH):
                epsilon = float(c.curve.renyi(alpha))
                return self._in_notion(replace(c, alpha=alpha, epsilon=epsilon))
        return self._in_notion(c)

    def _no_weaker(self, c: Certificate) -> bool:
        """Whether a certificate's own order and delta are as good as asked."""
        # a pure promise is one at any order and delta
        if c.alpha is not None and math.isinf(c.alpha):
            return not c.delta
        if _GOES_WITH[self.notion] == "delta":
            return c.alpha is None and c.delta <= (self.parameter or 0.0)
        if _GOES_WITH[self.notion] == "alpha":
            # a Rényi divergence does not decrease with its order
            alpha, asked = c.alpha, self.parameter
            if alpha is None or asked is None:
                return False
            return not c.delta and alpha >= asked
        return self.is_information

    def _in_notion(self, total: Certificate) -> Certificate:
        if total.implies(self.notion) and self._no_weaker(total):
            return total
        raise CompositionError(
            Statement(
                "ledger.ceiling_notion_does_not_follow",
                title=total.notion.title,
                title2=self.notion.title,
            )
        )


def read_limits(limits: Any) -> tuple[Ceiling, ...]:
    """Return the ceilings that a user names."""
    if not isinstance(limits, Mapping) or not limits:
        raise LedgerError(Statement("ledger.limits_not_a_mapping", limits=limits))
    return tuple(_read_limit(name, given) for name, given in limits.items())


def _read_limit(name: Any, given: Any) -> Ceiling:
    notion = Notion.known.get(str(name))
    if notion is None or notion not in _GOES_WITH:
        known = ", ".join(repr(str(n)) for n in _GOES_WITH)
        raise LedgerError(
            Statement("ledger.limits_notion_unknown", known=known, name=name)
        )
    goes_with = _GOES_WITH[notion]
    values = tuple(given) if isinstance(given, tuple | list) else (given,)
    form = (
        "a number"
        if goes_with is None
        else Statement("ledger.form_is_epsilon_pair", goes_with=goes_with)
    )
    if len(values) != (1 if goes_with is None else 2):
        raise LedgerError(
            Statement(
                "ledger.limit_form_wrong", form=form, notion=str(notion), given=given
            )
        )
    most = check_real(limits=values[0])
    if most <= 0:
        raise LedgerError(
            Statement("ledger.limit_not_positive", notion=str(notion), given=given)
        )
    if goes_with == "delta":
        return Ceiling(notion, most, check_probability(limits=values[1]))
    if goes_with == "alpha":
        alpha = check_order(limits=values[1])
        if math.isinf(alpha):
            raise LedgerError(
                Statement("ledger.limit_order_infinite", notion=str(notion))
            )
        return Ceiling(notion, most, alpha)
    return Ceiling(notion, most)


def write_limits(ceilings: Sequence[Ceiling]) -> list[list[Any]]:
    """Return ceilings as plain data, which :func:`plain_limits` reads."""
    return [
        [
            str(c.notion),
            to_plain(c.most if c.parameter is None else (c.most, c.parameter)),
        ]
        for c in ceilings
    ]


def plain_limits(plain: list[list[Any]]) -> tuple[Ceiling, ...]:
    """Return the ceilings that were written as plain data."""
    return read_limits({name: from_plain(value) for name, value in plain})
