"""The noise of a fit: found by a search, and certified as it will be drawn.

Nothing of a search is believed before a release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.accountants._base import check_values
from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.kernel.rounding import on_grid, without_room

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import BoundScenario

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
    drawn, digits = on_grid(
        searched.noise,
        searched.certificate,
        release,
        rng,
        rounding,
        any_records,
        in_proportion,
    )
    bare, certificate = drawn, searched.certificate
    for _ in range(2):
        told = certificate
        if drawn is not searched.noise:
            bare = without_room(drawn, told, release, rounding, any_records)
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
        stated, noise=drawn, certificate=stated.certificate.assuming(*digits)
    )
