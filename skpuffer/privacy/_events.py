"""What leaves, and how often: the events that a curve of a certificate is made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skpuffer.kernel.composed_curves import RepeatedCurve, SymmetricPair
from skpuffer.kernel.curves import ComposedPair, Events, PrivacyCurve
from skpuffer.kernel.noise import ShiftCurve
from skpuffer.privacy_loss import PrivacyLossCurve

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["events_together"]


def events_together(
    certificates: "Sequence[Certificate]", curve: PrivacyCurve | None
) -> Events | None:
    """Return the events of several releases under one curve.

    Parameters
    ----------
    certificates : sequence of Certificate
    curve : PrivacyCurve or None
        Of all of them together.

    Returns
    -------
    tuple of (pair, int) or None
        None where `curve` lists them itself, or those of a part are not known.
    """
    if curve is None or isinstance(curve, PrivacyLossCurve | ShiftCurve):
        return None
    found: list[tuple[ComposedPair, int]] = []
    for certificate in certificates:
        own = _events_of(certificate.curve, certificate.events)
        if own is None:
            return None
        found += own
    return tuple(found)


def _events_of(curve: PrivacyCurve | None, stated: Events | None) -> Events | None:
    if isinstance(curve, RepeatedCurve):
        once = _events_of(curve.curve, stated)
        return once and tuple((pair, curve.times * count) for pair, count in once)
    if isinstance(curve, PrivacyLossCurve):
        return curve.steps
    if isinstance(curve, ShiftCurve):
        return ((SymmetricPair(curve), 1),)
    return stated
