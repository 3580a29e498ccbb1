"""What a check found, number by number."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """The verdict on one number of a certificate.

    Attributes
    ----------
    RECOMPUTED
        It follows from the others by a second path, or they depend on it.
    DOES_NOT_FOLLOW
        The others give something else.
    NOT_RECOMPUTABLE

    Examples
    --------
    >>> from skpuffer.certificate import State
    >>> [state.value for state in State]
    ['recomputed', 'does not follow', 'cannot be recomputed']
    """

    RECOMPUTED = "recomputed"
    DOES_NOT_FOLLOW = "does not follow"
    NOT_RECOMPUTABLE = "cannot be recomputed"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on one field.

    Parameters
    ----------
    field : str
        Path of it in the data, such as ``curve.noise.scale``.
    state : State
    reason : str
        By what it was recomputed, or why it does not follow or cannot be recomputed.
    stated, found : float or None
        The number in the file, and what was recomputed.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.certificate import check
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=len, n_records=100, dim=1, sensitivity=Sensitivity({2: 1.0})
    ... )
    >>> accountant = PrivacyLoss(noise="gaussian")
    >>> certificate = accountant.calibrate(release, RecordScenario()).certificate
    >>> first = check(certificate).findings[0]
    >>> first.field, first.state.value
    ('epsilon', 'recomputed')
    """

    field: str
    state: State
    reason: str
    stated: float | None = None
    found: float | None = None

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """The verdict on a certificate; true if nothing in it contradicts the rest.

    Parameters
    ----------
    findings : tuple of Finding
        One for each number and each premise.
    notion : str
        Notion of the promise.
    assumptions : tuple of str
        Assumptions of the promise, none of which is checked.

    Examples
    --------
    >>> from skpuffer.certificate import check
    >>> from skpuffer.summary import PrivateMean
    >>> mean = PrivateMean(bounds=(0, 1)).fit([[0.1], [0.4], [0.9]])
    >>> report = check(mean.certificate_)
    >>> report.follows, report.is_promise_recomputed
    (True, True)
    >>> len(report.of("does not follow"))
    0
    """

    findings: tuple[Finding, ...]
    notion: str
    assumptions: tuple[str, ...] = ()

    def of(self, state: State | str) -> tuple[Finding, ...]:
        """Return what is in one state."""
        return tuple(f for f in self.findings if f.state == State(state))

    @property
    def follows(self) -> bool:
        """Whether no number contradicts the others."""
        return not self.of(State.DOES_NOT_FOLLOW)

    @property
    def is_promise_recomputed(self) -> bool:
        """Whether the number of the promise itself was recomputed."""
        promised = ("epsilon", "mutual_information")
        return any(
            f.field in promised and f.state == State.RECOMPUTED for f in self.findings
        )

    def __bool__(self) -> bool:
        return self.follows

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "notion": self.notion,
            "follows": self.follows,
            "is_promise_recomputed": self.is_promise_recomputed,
            "findings": [
                {
                    "field": f.field,
                    "state": str(f.state),
                    "reason": f.reason,
                    "stated": _plain(f.stated),
                    "found": _plain(f.found),
                }
                for f in self.findings
            ],
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Certificate of the notion {self.notion!r}: {self._verdict}"
        for state in (State.DOES_NOT_FOLLOW, State.RECOMPUTED, State.NOT_RECOMPUTABLE):
            found = self.of(state)
            if found:
                yield f"  {state}"
            yield from (f"    - {_shown(str(f))}" for f in found)
        if self.assumptions:
            yield "  taken for granted, and not checked"
        yield from (f"    - {_shown(text)}" for text in self.assumptions)
        yield (
            "  The digest is that of the data: it was not changed by accident. It is "
            "no signature, and does not say who wrote it."
        )

    @property
    def _verdict(self) -> str:
        if not self.follows:
            names = dict.fromkeys(f.field for f in self.of(State.DOES_NOT_FOLLOW))
            return f"REFUTED, as of {', '.join(names)}"
        if self.notion == "estimated":
            return "an estimate, which promises nothing"
        if not self.is_promise_recomputed:
            return "NOT CONFIRMED: the number of the promise cannot be recomputed"
        return "the number of the promise follows from what is stated"


def _plain(value: float | None) -> float | str | None:
    if value is None or abs(value) < float("inf"):
        return value
    return str(value)


def _shown(text: str) -> str:
    """Text of a file as a terminal may show it: nothing in it steers the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
