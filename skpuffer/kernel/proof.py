"""The proof: from a noise, a release and a fact about it to a certificate.

Nothing else makes one. A rule says what a theorem claims of the noise; what every claim
must keep, whatever the theorem, is checked here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.kernel.certificates import Certificate, Claim
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.noise import Noise
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.releases import Release

__all__ = ["Names", "Rule", "certificates_are", "prove"]

#: What a theorem claims of a noise, of one release and what is known about it.
Rule = Callable[[Noise], Claim]


@dataclass(frozen=True)
class Names:
    """Whose a certificate is; nothing of it is computed with.

    Parameters
    ----------
    release, accountant, scenario : str
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


_kinds: list[Callable[[], type[Certificate]]] = [lambda: Certificate]


def certificates_are(kind: Callable[[], type[Certificate]]) -> None:
    """Register what gives the class of certificates, which may say more of one.

    Parameters
    ----------
    kind : callable
        Without parameters; returns a subclass of :class:`Certificate`.
    """
    _kinds[:] = [kind]


def prove(
    noise: Noise, release: Release, fact: Fact, rule: Rule, names: Names
) -> Certificate:
    """Certify what a noise promises of a release.

    Parameters
    ----------
    noise : Noise
        As it will be drawn, but for the room that its grid takes.
    release : Release
    fact : Fact
        What a scenario knows of the release.
    rule : callable
        Returns the :class:`Claim` that a theorem makes of a noise.
    names : Names

    Returns
    -------
    Certificate

    Raises
    ------
    UncertifiedError
        If the claim is none that this noise and this fact can give.
    """
    claim = rule(noise)
    wrong = next((code for code, failed in _checks(claim, fact) if failed), None)
    if wrong is not None:
        raise UncertifiedError(
            Statement(wrong, release=release.name, accountant=names.accountant)
        )
    held = {field.name: getattr(claim, field.name) for field in fields(Claim)}
    stated = dict.fromkeys(
        (*fact.assumptions, *claim.assumptions, *release.assumptions)
    )
    # in the order of the claim, and what it left out before
    missing = tuple(each for each in stated if each not in claim.assumptions)
    held["assumptions"] = (*missing, *claim.assumptions)
    return _kinds[0]()(**held, **vars(names))


def _checks(claim: Claim, fact: Fact) -> tuple[tuple[str, bool], ...]:
    """Pairs of what a claim must not be, and whether it is that."""
    costs = (claim.epsilon, claim.mutual_information, claim.rpp_epsilon)
    known = [cost for cost in costs if cost is not None]
    estimate = claim.notion is Notion.ESTIMATED
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
