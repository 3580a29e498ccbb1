"""Which tables are neighbours under the coupling of a certificate."""

from typing import TYPE_CHECKING

from skpuffer.exceptions import Statement

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["arbitrary_count", "plain_privacy"]


def arbitrary_count(certificate: "Certificate") -> int | None:
    """Return how many records any neighbouring tables differ in.

    Parameters
    ----------
    certificate : Certificate

    Returns
    -------
    int or None
        None where its coupling is another one.
    """
    relation, _, count = str(certificate.coupling_id).partition(":")
    if relation != certificate.relation or not count.isdigit():
        return None
    return int(count)


def plain_privacy(certificate: "Certificate") -> Statement | str:
    """Return whose differential privacy a promise under a belief falls back to.

    Parameters
    ----------
    certificate : Certificate
        Under a declared belief.

    Returns
    -------
    str
    """
    count = certificate.coupling_count
    # one record is taken by itself, wherever it is
    if count == 1:
        return "RecordScenario(relation='replace')"
    if count is not None and arbitrary_count(certificate) == count:
        return f"RecordScenario(k={count}, relation='replace')"
    # side by side, of different numbers
    if count is None:
        return Statement("neighbours.records_taken_together")
    # what was counted by where the records are says nothing of any others
    return Statement("neighbours.records_of_one_block", count=count)
