"""Several releases of one certificate, as one certificate."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.kernel.composed_curves import RepeatedCurve
from skpuffer.kernel.notions import Notion
from skpuffer.privacy_loss.overlap import OverlapCurve

from ._information import INFORMATION, NOT_ADAPTIVE, capped

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["repeated"]


def repeated(certificate: "Certificate", times: int) -> "list[Certificate]":
    """Return certificates that compose to as much as so many copies of one.

    Parameters
    ----------
    certificate : Certificate
    times : int
        At least 1.

    Returns
    -------
    list of Certificate
        One alone, except under a declared belief, whose releases are told apart.
    """
    c = certificate
    if times == 1:
        return [c]
    # amplified together, by what each of them leaves to hide
    if isinstance(c.curve, OverlapCurve):
        return times * [c]
    counted = replace(
        c,
        # each copy may fail on an event of its own, or over a sample of its own
        delta=c.delta + (times - 1) * c.event_delta,
        event_delta=times * c.event_delta,
        confidence=max(0.0, 1 - times * (1 - c.confidence)),
        curve=None if c.curve is None else RepeatedCurve(c.curve, times),
        release=f"{c.release} (x {times})",
        n_releases=times * c.n_releases,
    )
    if c.notion in INFORMATION:
        return [_of_information(counted, times)]
    # what averages over subsamples add up by, which have no curve
    return [replace(counted, epsilon=None if c.epsilon is None else times * c.epsilon)]


def _of_information(c: "Certificate", times: int) -> "Certificate":
    """The whole table leaks so many times as much, a secret once and that otherwise.

    See :func:`mixed_information`, of whose sum over equal parts this is one term.
    """
    assert c.mutual_information is not None  # what such a notion is stated in
    whole = c.table_information
    if c.notion == Notion.MUTUAL_INFORMATION:
        own = capped(times * c.mutual_information, c)
    elif whole is not None:
        own, whole = c.mutual_information + (times - 1) * whole, times * whole
    else:
        own = math.inf  # refused where it is to be added
    return replace(
        c,
        mutual_information=own,
        table_information=whole,
        worst_leakage=None,
        assumptions=tuple(dict.fromkeys((*c.assumptions, NOT_ADAPTIVE))),
    )
