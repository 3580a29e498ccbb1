"""Right guesses of a label, against a certificate of mutual information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skpuffer.audit import clopper_pearson
from skpuffer.exceptions import Statement
from skpuffer.information import fano_bound
from skpuffer.kernel.numbers import check_count, check_probability

from ._attacks import budget_of

if TYPE_CHECKING:
    from skpuffer.privacy import Certificate

__all__ = ["FanoAudit", "fano_audit"]


@dataclass(frozen=True)
class FanoAudit:
    """What a classifier's accuracy on a release says of it; see :func:`fano_audit`.

    Parameters
    ----------
    information : float
        Least mutual information, in nats, with which the accuracy is possible; a lower
        confidence bound.
    allowed : float
        What the certificate bounds it by.

    Examples
    --------
    >>> from skpuffer.audit import fano_audit
    >>> from skpuffer.privacy import Certificate
    >>> claimed = Certificate(notion="mutual_information", mutual_information=0.5)
    >>> audit = fano_audit(claimed, hits=450, n_guesses=1000, n_classes=10)
    >>> round(audit.information, 2), audit.allowed, audit.exceeds
    (0.35, 0.5, False)
    """

    information: float
    allowed: float

    @property
    def exceeds(self) -> bool:
        """Whether the accuracy is impossible under the certificate."""
        return self.information > self.allowed


def fano_audit(
    certificate: Certificate,
    hits: int,
    n_guesses: int,
    n_classes: int,
    *,
    confidence: float = 0.95,
) -> FanoAudit:
    """Compare right guesses of a label with what a mutual information allows.

    Whatever names the label right that often from what was released, a downstream
    classifier among it, shows how much was released: Fano's inequality.

    Parameters
    ----------
    certificate : Certificate
        A bound on the mutual information with the whole table, a function of which the
        label must be.
    hits : int
        Right guesses.
    n_guesses : int
        Independent ones, each of a release of its own.
    n_classes : int
        Equally likely labels.
    confidence : float, default=0.95
        That an excess is none of chance.

    Returns
    -------
    FanoAudit

    Raises
    ------
    UncertifiedError
        If the certificate is an estimate, or bounds something else.
    ValueError
        If a count is out of range.

    References
    ----------
    Cover and Thomas (2006), Elements of information theory, Theorem 2.10.1.

    Examples
    --------
    A published result: ten classes, a budget of one half nat, and logits from which 79
    of 100 labels are right.

    >>> from skpuffer.audit import fano_audit
    >>> from skpuffer.privacy import Certificate
    >>> claimed = Certificate(notion="mutual_information", mutual_information=0.5)
    >>> audit = fano_audit(claimed, 7910, 10_000, 10)
    >>> round(audit.information, 2), audit.exceeds
    (1.31, True)
    """
    n_guesses = check_count(n_guesses=n_guesses)
    hits = check_count(least=0, hits=hits)
    n_classes = check_count(least=2, n_classes=n_classes)
    if hits > n_guesses:
        raise ValueError(
            Statement("audit.hits_above_guesses", hits=hits, n_guesses=n_guesses)
        )
    confidence = check_probability(confidence=confidence)
    allowed = budget_of(certificate, "dataset")
    low, _ = clopper_pearson(hits, n_guesses, 1 - confidence)
    # worse than chance says nothing
    least = fano_bound(low, n_classes) if low > 1 / n_classes else 0.0
    return FanoAudit(information=least, allowed=allowed)
