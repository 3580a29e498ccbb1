"""Moves of each step of a run for one record that differs, at any history."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, UnsupportedError, reason_of
from skpuffer.kernel.numbers import Floats
from skpuffer.noise import Noise, Shift
from skpuffer.releases import GradientRelease

from ._slices import Slices

__all__ = ["StepMoves", "one_clipped", "step_moves"]


class StepMoves(NamedTuple):
    """How far one record moves each step's release, in clip norms.

    Parameters
    ----------
    factors : ndarray of shape (n_steps,)
    assumptions : tuple of Statement
    """

    factors: Floats
    assumptions: tuple[Statement, ...]


def step_moves(
    release: GradientRelease, relation: str, lipschitz: ArrayLike | None
) -> StepMoves:
    """Return how far one record moves each step, wherever the noise enters.

    Parameters
    ----------
    release : GradientRelease
    relation : {'add_remove', 'replace'}
    lipschitz : float, array-like of shape (n_steps,) or None
        Declared Lipschitz constants of the updates in the mean gradient.

    Returns
    -------
    StepMoves

    Raises
    ------
    UnsupportedError
        With a clause that gives the reason and the remedy.
    """
    # a replaced record takes one clipped gradient out of a sum and puts another in
    each = 1.0 if relation == "add_remove" else 2.0
    if release.noise_position == "gradient":
        # What is released is the noisy sum, of which an update is made afterwards. A
        # step size here would count noise that was never divided by it.
        if lipschitz is not None:
            raise UnsupportedError(Statement("history.lipschitz_with_gradient_noise"))
        return StepMoves(np.full(release.n_steps, each), ())
    constants, source = _update_constants(release, lipschitz)
    text = Statement("assume.update_lipschitz_noise_added", source=source)
    return StepMoves(each * constants / release.divisor, (text,))


def _update_constants(
    release: GradientRelease, lipschitz: ArrayLike | None
) -> tuple[Floats, Statement]:
    """Lipschitz constants of the updates in the mean gradient, and in words."""
    n_steps, optimiser = release.n_steps, release.optimiser
    least = np.zeros(n_steps)
    if optimiser is not None:
        steps = np.array(optimiser.step_sizes(n_steps))
        # What is made of a moved iterate, the penalty and the projection, shrinks it as
        # it does where the loss has no curvature.
        least = steps * optimiser.contractions(
            n_steps, smoothness=0.0, all_penalised=optimiser.penalise_all
        )
    elif lipschitz is None:
        raise UnsupportedError(Statement("history.update_constants_missing"))
    if lipschitz is None:
        return least, _range(least)
    given = np.asarray(lipschitz, float)
    if given.ndim and given.shape != (n_steps,):
        raise UnsupportedError(
            Statement(
                "history.lipschitz_count_not_steps", n_given=given.size, n_steps=n_steps
            )
        )
    given = np.broadcast_to(given, (n_steps,))
    # what is executed counts, whatever is declared
    if np.any(given < least * (1 - 1e-12)):
        raise UnsupportedError(
            Statement("history.lipschitz_below_optimiser", range=_range(least))
        )
    return given, Statement("history.constants_declared", constants=_range(given))


def _range(constants: Floats) -> Statement:
    low, high = float(constants.min()), float(constants.max())
    if low == high:
        return Statement("history.constant", constant=high)
    return Statement("history.constants_range", low=low, high=high)


def one_clipped(
    release: GradientRelease, noise: Noise, profile: Slices | None
) -> float:
    """Length of the longest clipped gradient, in standard deviations of the noise.

    Parameters
    ----------
    release : GradientRelease
    noise : Noise
        Gaussian.
    profile : Slices or None
        Slices that each are looked at by themselves. None is the whole vector, which
        is the largest over all directions.

    Returns
    -------
    float

    Raises
    ------
    UnsupportedError
        If the norm of the clipping bounds no l2 norm.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix F; over all
    directions by the Cauchy-Schwarz inequality.
    """
    blocks, scale = release.blocks, np.asarray(noise.scale, float)
    if blocks is not None and release.clip_order <= 2:
        # an l2 norm is no larger than one of a lower order
        clips = np.array(release.clip_norm, float)
        if profile is not None and not scale.ndim:
            return math.sqrt(profile.squared(clips, blocks)) / float(scale)
        return float(np.linalg.norm(clips / _block_scales(scale, blocks)))
    order = release.clip_order
    try:
        shift = Shift(release.total_clip_norm, norm=order, dim=release.dim)
        mu = noise.curve(shift).gaussian_mu
    except ValueError as error:
        raise UnsupportedError(
            Statement(
                "history.clip_order_above_two", order=order, reason=reason_of(error)
            )
        ) from error
    assert mu is not None  # of Gaussian noise
    return mu


def _block_scales(scale: Floats, blocks: tuple[int, ...]) -> Floats:
    """Least standard deviation of each block's coordinates."""
    if scale.ndim and scale.size == sum(blocks):
        starts = np.cumsum((0, *blocks[:-1]))
        return np.minimum.reduceat(scale, starts)
    return np.full(len(blocks), scale.min())
