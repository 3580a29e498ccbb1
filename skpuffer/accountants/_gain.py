"""How much less noise a scenario needs than differential privacy of as many records."""

import math
from dataclasses import replace

import numpy as np

from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.facts import arbitrary_coupling
from skpuffer.privacy_loss._overlap import OverlapCurve
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    Adjacency,
    BoundScenario,
    OutputDistributions,
    RecordScenario,
)
from skpuffer.scenarios._base import AnyRelease

from ._additive import GroupPrivacy
from ._base import Accountant, Calibration
from ._best import Best
from ._composition import PrivacyLoss, RenyiDP

#: Noise is found to about so many digits: a ratio within it is that of the shifts.
_AS_FOUND = 1e-3


def records_that_differ(release: AnyRelease, bound: BoundScenario) -> int:
    """Return at most how many records may differ; 1 only if they are independent."""
    provided = bound.provides(release)
    if Adjacency in provided:
        return max(1, bound.fact(Adjacency, release).count)
    if OutputDistributions in provided:
        fact = bound.fact(OutputDistributions, release)
        if fact.common_part_removed:
            return 1
    return release.n_records


def gain_over_records(
    found: Calibration,
    epsilon: float,
    release: AnyRelease,
    bound: BoundScenario,
    count: int | None = None,
) -> tuple[float, int] | None:
    """Compare a noise with that of differential privacy at the same target.

    The gain is the root mean square of the noise for replacing `count` arbitrary
    records (None: as many as may differ), by the best accountant, over that of the
    noise used. Both are returned, or None where there is nothing to compare: an
    estimate, an average over subsamples, or a noise without a variance.
    """
    certificate = found.certificate
    alpha, delta = certificate.alpha, certificate.delta
    stated = certificate.epsilon is not None and (alpha is not None or delta > 0)
    if not (certificate.certified and stated):
        return None
    # noise for a promise from which no other follows compares with none
    if certificate.notion.approximate is None:
        return None
    count = count or records_that_differ(release, bound)
    # stated by accountants that compare with one record, or under a belief with those
    # that it takes together
    as_any = certificate.coupling_id == arbitrary_coupling("replace", count)
    believed = isinstance(certificate.curve, OverlapCurve)
    compared = as_any if believed else count == 1
    if certificate.noise_gain is not None and compared:
        return certificate.noise_gain, count
    used = _root_mean_square(found, release)
    if used in (0, math.inf):
        return None if used else (math.inf, count)
    if as_any and not believed:
        # it promises as much to any records, so nothing was made of the scenario
        return 1.0, count
    plain_dp = RecordScenario(count, relation="replace")
    best = Best(
        epsilon,
        alpha,
        delta=delta if alpha is None else None,
        candidates=_for_records(release, alpha),
    )
    try:
        plain = best.calibrate(release, plain_dp)
    except UnsupportedError:
        # nothing bounds what any record does: no noise would do
        return math.inf, count
    return _root_mean_square(plain, release) / used, count


def stating_gain(
    found: Calibration, epsilon: float, release: AnyRelease, bound: BoundScenario
) -> Calibration:
    """State the gain of a noise as the ratio of two noises, not of two shifts."""
    certificate = found.certificate
    shifts = certificate.gain
    # compared by the accountant, or with nothing
    if certificate.noise_gain is not None or shifts is None:
        return found
    compared = gain_over_records(found, epsilon, release, bound, count=1)
    if compared is None or math.isinf(compared[0]):
        return found
    if abs(compared[0] - shifts) <= _AS_FOUND * shifts:
        return found
    return replace(found, certificate=replace(certificate, noise_gain=compared[0]))


def _for_records(release: AnyRelease, alpha: float | None) -> list[Accountant]:
    """Accountants that differential privacy needs no other than, without repeats."""
    if not isinstance(release, QueryRelease):
        # of an extension, to which the room alone leads
        from . import IterationAmplification

        return [PrivacyLoss() if alpha is None else RenyiDP(), IterationAmplification()]
    return [GroupPrivacy()]


def _root_mean_square(found: Calibration, release: AnyRelease) -> float:
    return float(np.sqrt(np.mean(found.noise.variance(release.dim))))
