"""Proof of the final noise: nothing of a search is believed before a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skpuffer.accountants._base import check_values
from skpuffer.accountants._facts_once import FactsOnce
from skpuffer.exceptions import UncertifiedError

from ._on_grid import on_grid, without_room

if TYPE_CHECKING:
    import numpy as np

    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.scenarios import BoundScenario
    from skpuffer.utils._types import Floats

__all__ = ["proved"]


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
        As for :func:`~skpuffer._template._on_grid.on_grid`.

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
    # of one draw, where they are simulated: no chance is between search and proof
    bound = FactsOnce(bound)
    searched = accountant.calibrate(release, bound, rng)
    check_values(searched.noise, release, joint=True)
    length, dim = searched.noise.dim, getattr(release, "dim", None)
    if length is not None and dim is not None and length != dim:
        raise UncertifiedError(
            f"{type(accountant).__name__} found noise of {length} coordinates for the "
            f"release {release.name!r}, which has {dim}. Nothing is released, and "
            "nothing is spent. Correct its calibrate(), or use another accountant."
        )
    found, digits = on_grid(searched, release, rng, rounding, any_records)
    bare, certificate = found.noise, searched.certificate
    for _ in range(2):
        told = certificate
        if found.noise is not searched.noise:
            # the rest covers the rounding of the exact value, and hides no secret
            bare = without_room(found.noise, told, release, rounding, any_records)
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
        stated, noise=found.noise, certificate=stated.certificate.assuming(digits)
    )
