"""Promises about slices of an output: what follows from them, and what does not."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.privacy_loss._sliced_curves import SlicedCurve

from ._notions import Notion
from ._subsampling_averages import SUBSAMPLING_AVERAGES

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["SLICED", "processed", "sliced_approximate"]

#: What a sliced Rényi notion converts to, at a delta.
_APPROXIMATE = {
    Notion.AVERAGED_SLICED_RENYI_PUFFERFISH: Notion.AVERAGED_SLICED_PUFFERFISH,
    Notion.JOINT_SLICED_RENYI_PUFFERFISH: Notion.JOINT_SLICED_PUFFERFISH,
}

#: Notions about slices of an output, and not about the output.
SLICED = (*_APPROXIMATE, *_APPROXIMATE.values())


def sliced_approximate(certificate: "Certificate", delta: float) -> "Certificate":
    """Return the (epsilon, delta) promise about slices that follows from a Rényi one.

    Parameters
    ----------
    certificate : Certificate
        A promise.
    delta : float
        In (0, 1).

    Returns
    -------
    Certificate

    Raises
    ------
    UncertifiedError
        If it holds no curve of slices.
    ValueError
        If it is in another notion.
    """
    notion = _APPROXIMATE.get(certificate.notion)
    if notion is None:
        raise ValueError(
            Statement("sliced.not_renyi_promise", title=certificate.notion.title)
        )
    if not isinstance(certificate.curve, SlicedCurve):
        raise UncertifiedError(Statement("certificate.no_curve_to_convert"))
    # orders are of one noise: the curve is read at that of the certificate
    return replace(
        certificate,
        notion=notion,
        epsilon=float(certificate.curve.epsilon(delta)),
        alpha=None,
        delta=delta,
        rpp_epsilon=math.inf,
    )


def processed(certificate: "Certificate") -> "Certificate":
    """Return what is promised of whatever is computed from a release.

    Parameters
    ----------
    certificate : Certificate
        A promise.

    Returns
    -------
    Certificate

    Raises
    ------
    UncertifiedError
        If nothing is known of the whole output.
    """
    if certificate.notion in SUBSAMPLING_AVERAGES:
        raise UncertifiedError(
            Statement("sliced.nothing_after_processing", title=certificate.notion.title)
        )
    if certificate.notion not in SLICED:
        return certificate
    curve = certificate.curve
    vector = curve.vector if isinstance(curve, SlicedCurve) else None
    if vector is None:
        raise UncertifiedError(Statement("sliced.whole_output_unknown"))
    if certificate.alpha is None:
        notion, epsilon = (
            Notion.APPROXIMATE_PUFFERFISH,
            vector.epsilon(certificate.delta),
        )
    else:
        notion, epsilon = Notion.RENYI_PUFFERFISH, vector.renyi(certificate.alpha)
    rpp = math.inf if certificate.alpha is None else float(epsilon)
    return replace(
        certificate,
        notion=notion,
        epsilon=float(epsilon),
        rpp_epsilon=rpp,
        curve=vector,
        events=None,
        profile=None,
        source=Statement("source.wasserstein_whole_output"),
    )
