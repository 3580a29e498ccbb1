"""How what is released is drawn, to its last digits, and the proof of that noise.

Nothing of a search is believed before a release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.accountants._base import check_values
from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.kernel.draws import is_secret
from skpuffer.kernel.rounding import (
    MOST_ROOM,
    draws_exactly,
    less_room_for_grid,
    noise_grid,
    with_room_for_grid,
)
from skpuffer.privacy_loss.overlap import PairwiseOverlapCurve
from skpuffer.privacy_loss.overlap._pairwise import ROOM_OF_PAIRS
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    SelectionRelease,
    VoteRelease,
)

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate
    from skpuffer.scenarios import BoundScenario

__all__ = [
    "CHOSEN_ON_GRID",
    "FLOATING_POINT",
    "NO_ROOM",
    "ON_GRID",
    "ROUNDED_ELSEWHERE",
    "ROUNDED_SUMS",
    "SUMS_ON_GRID",
    "on_grid",
    "proved",
]

#: What a certificate says of any noise, which theorems take for a real number.
FLOATING_POINT = Statement("assume.noise_in_floating_point")

#: What a certificate says of noise that is drawn exactly, in whole steps of a grid.
ON_GRID = Statement("assume.noise_exact_on_grid")

#: The same of sums of gradients, of which there are too many for exact draws.
SUMS_ON_GRID = Statement("assume.gradient_sums_on_grid")

#: The same of a choice by noisy scores, of which no number leaves.
CHOSEN_ON_GRID = Statement("assume.choice_on_grid")

#: What the grid rests on, where noise pays for it.
ROUNDED_SUMS = Statement("assume.rounding_below_half_step")

#: The same where what it would cost is not known.
NO_ROOM = Statement("assume.rounding_not_counted")

#: The same where noise does not cover how far a record is rounded.
ROUNDED_ELSEWHERE = Statement("assume.engine_rounding_not_counted")

#: Parameters of a model of which a certificate says that rounding is covered.
_MANY_PARAMETERS = 2**20

# By the very type: another kind of release is executed in its own way.
_EXECUTED_ON_GRID: dict[type, Statement] = {
    AdaptiveRelease: ON_GRID,
    GradientRelease: SUMS_ON_GRID,
    QueryRelease: ON_GRID,
    VoteRelease: ON_GRID,
}


def on_grid(
    calibration: Calibration,
    release: Any,
    rng: np.random.Generator,
    rounding: Floats | None = None,
    any_records: bool = False,
    by_sensitivity: bool = False,
) -> tuple[Calibration, tuple[Statement, ...]]:
    """Make room for the grid that a release is rounded to, where that can be shown.

    Parameters
    ----------
    calibration : Calibration
    release : QueryRelease, GradientRelease, VoteRelease or SelectionRelease
    rng : numpy.random.Generator
        Of the noise.
    rounding : ndarray of shape (dim,), default=None
        How far each coordinate of one record's contribution was rounded.
    any_records : bool, default=False
        Whether the sensitivity is that of records that become any others.
    by_sensitivity : bool, default=False
        Whether a larger sensitivity takes noise that is larger in proportion.

    Returns
    -------
    calibration : Calibration
        With noise that is larger by next to nothing.
    statements : tuple of Statement
        What the last digits of what is released tell.
    """
    noise, certificate = calibration.noise, calibration.certificate
    if type(release) is SelectionRelease and release.on_grid and is_secret(rng):
        return calibration, (CHOSEN_ON_GRID,)
    statement = _EXECUTED_ON_GRID.get(type(release))
    uncovered: tuple[Statement, ...] = ()
    if rounding is not None and np.any(rounding):
        uncovered = (ROUNDED_ELSEWHERE,)
    if statement is None:
        return calibration, (FLOATING_POINT, *uncovered)
    covered = _to_cover(noise, certificate, release, rounding, any_records)
    if not draws_exactly(noise, rng):
        return calibration, (FLOATING_POINT, *uncovered)
    # of updates, what the noise is added to is made of the table and of the iterate
    if getattr(release, "noise_position", None) == "update":
        return calibration, (FLOATING_POINT,)
    if noise_grid(noise, release.n_records, integer=release.is_integer) is None:
        return calibration, (FLOATING_POINT, *uncovered)
    # integers are on the grid already
    if release.is_integer:
        return calibration, (statement,)
    # The engine makes the room in a run, as it knows how many parameters there are.
    trained = type(release) is GradientRelease
    larger = None
    if by_sensitivity and certificate.sensitivity:
        # pairs of records that nearly agree have so much room, and others any
        in_pairs = isinstance(certificate.curve, PairwiseOverlapCurve)
        larger = with_room_for_grid(
            noise,
            *covered,
            most=ROOM_OF_PAIRS if in_pairs else MOST_ROOM,
        )
    if larger is None:
        return calibration, (statement, NO_ROOM, *uncovered)
    if not trained:
        calibration = replace(calibration, noise=larger)
    # what an engine rounded is not in the room that a run makes
    return calibration, (statement, ROUNDED_SUMS, *(uncovered if trained else ()))


def _to_cover(
    noise: Noise,
    certificate: Certificate,
    release: Any,
    rounding: Floats | None,
    any_records: bool,
) -> tuple[Any, ...]:
    """Return what the room for a grid is made for, as `with_room_for_grid` takes it.

    Parameters
    ----------
    noise : Noise
    certificate : Certificate
        Of the sensitivity.
    release, rounding, any_records : optional
        As for :func:`on_grid`.

    Returns
    -------
    tuple
    """
    trained = type(release) is GradientRelease
    return (
        release.n_records,
        certificate.sensitivity,
        noise.norm if certificate.norm is None else certificate.norm,
        _MANY_PARAMETERS if trained else release.dim,
        release.unit_array,
        0.0
        if rounding is None or trained
        else _rounded_share(release, certificate, noise.norm, rounding, any_records),
    )


def _rounded_share(
    release: Any,
    certificate: Certificate,
    noise_norm: float,
    rounding: Floats,
    any_records: bool,
) -> float:
    """How much further rounded records move a sum, as a share of its sensitivity."""
    norm = noise_norm if certificate.norm is None else certificate.norm
    # a record that is replaced was rounded once before and once after
    moved: float = 2 * abs(release.factor)
    moved *= max(float(np.linalg.norm(rounding, p)) for p in (norm, noise_norm))
    if not any_records:
        # it is not known how many records are moved a little: as if all were
        n_records: int = release.n_records
        return moved * n_records / float(certificate.sensitivity or 0.0)
    # of each record that changes the sensitivity has a share as large as this
    least: float = min(
        release.sensitivity.value(relation, norm, release.dim)
        for relation in ("add_remove", "replace")
    )
    return moved / least if least > 0 else float("inf")


def proved(
    accountant: Accountant,
    release: Any,
    bound: BoundScenario,
    rng: np.random.Generator,
    rounding: Floats | None = None,
    any_records: bool = False,
) -> Calibration:
    """Search for noise, and certify the noise that will be drawn.

    The certificate follows from the final noise, the release and the bound scenario.
    Of the search it keeps what it says of other noises: the choice and the gain.

    Parameters
    ----------
    accountant : Accountant
    release : QueryRelease, GradientRelease, VoteRelease or SelectionRelease
    bound : BoundScenario
    rng : numpy.random.Generator
        Of the noise.
    rounding, any_records : optional
        As for :func:`on_grid`.

    Returns
    -------
    Calibration
        With the noise to draw, and with what its last digits tell in the certificate.

    Raises
    ------
    UncertifiedError
        If the noise is not certified to keep the budget.
    UnsupportedError
        If the accountant cannot work from what the scenario offers.
    """
    searched = accountant.calibrate(release, bound, rng)
    check_values(searched.noise, release, joint=True)
    length, dim = None, getattr(release, "dim", None)
    if searched.noise.joint or np.ndim(searched.noise.scale):
        length = searched.noise.dim
    if length is not None and dim is not None and length != dim:
        raise UncertifiedError(
            Statement(
                "release.noise_dimension_mismatch",
                accountant_type=type(accountant).__name__,
                length=length,
                name=release.name,
                dim=dim,
            )
        )
    in_proportion = accountant._by_sensitivity(searched, release, bound)
    found, digits = on_grid(
        searched, release, rng, rounding, any_records, in_proportion
    )
    bare, certificate = found.noise, searched.certificate
    for _ in range(2):
        told = certificate
        if found.noise is not searched.noise:
            # the rest covers the rounding of the exact value, and hides no secret
            covered = _to_cover(found.noise, told, release, rounding, any_records)
            bare = less_room_for_grid(found.noise, *covered)
        certificate = accountant._certified_again(
            replace(searched, noise=bare), release, bound
        )
        if told.sensitivity == certificate.sensitivity:
            break
    stated = replace(searched, noise=bare, certificate=certificate)
    if certificate.record_sensitivity is not None:
        # not at import, as most fits hide any record and compare with nothing
        from skpuffer.accountants._gain import stating_gain

        stated = stating_gain(stated, accountant.epsilon, release, bound)
    return replace(
        stated, noise=found.noise, certificate=stated.certificate.assuming(*digits)
    )
