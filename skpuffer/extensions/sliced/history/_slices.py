"""What clipping layer by layer caps along each slice of a profile."""

from dataclasses import dataclass

import joblib
import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_non_negative

from ..transport._profile import SliceProfile

__all__ = ["Slices", "layer_caps"]


@dataclass(frozen=True)
class Slices:
    """A finite slice profile, and how its slices are taken together.

    Parameters
    ----------
    profile : SliceProfile
    averaging : {'joint', 'averaged'}
    """

    profile: SliceProfile
    averaging: str

    @classmethod
    def checked(
        cls,
        slices: ArrayLike | SliceProfile,
        slice_weights: ArrayLike | None,
        averaging: str,
    ) -> "Slices":
        """Return what a user gave, as a profile or as directions and weights.

        Raises
        ------
        ValueError
            If the directions are no unit vectors or leave some direction out, or the
            weights are none.
        """
        if not isinstance(slices, SliceProfile):
            slices = SliceProfile.finite(slices, slice_weights)
        elif slice_weights is not None or not slices.is_finite:
            raise ValueError(Statement("sliced.slices_profile_infinite"))
        return cls(slices, averaging)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.profile.dim

    def squared(self, clip_norms: Floats, blocks: tuple[int, ...]) -> float:
        """Squared length of a clipped gradient along the slices, taken together.

        Parameters
        ----------
        clip_norms : ndarray of shape (n_blocks,)
        blocks : tuple of int

        Returns
        -------
        float
            The weighted mean over the slices if averaged, their largest otherwise.
        """
        directions, weights = self.profile.directions, self.profile.weights
        assert directions is not None and weights is not None  # finite
        caps = layer_caps(directions, blocks, clip_norms)
        return float(weights @ caps if self.averaging == "averaged" else caps.max())

    @property
    def name(self) -> str:
        """Identifier that equal profiles share."""
        return str(joblib.hash((self.profile.name, self.averaging)))[:16]


def layer_caps(
    slices: ArrayLike,
    blocks: tuple[int, ...],
    clip_norms: ArrayLike,
    *,
    lipschitz: ArrayLike = 1.0,
    factor: float = 1.0,
) -> Floats:
    """Cap of the squared move along each slice, if layers are clipped apart.

    Parameters
    ----------
    slices : array-like of shape (n_slices, dim)
        Unit vectors.
    blocks : tuple of int
        Sizes of consecutive layers, adding up to `dim`.
    clip_norms : array-like of shape (n_blocks,)
        Of the layers.
    lipschitz : float or array-like of shape (n_blocks,), default=1.0
        Step size of each layer, where noise is added to the update.
    factor : float, default=1.0
        How many clip norms the mean moves: ``2 K / B`` for K replaced records of B.

    Returns
    -------
    ndarray of shape (n_slices,)
        At most the full-dimensional value, the same with the norm of `clip_norms` times
        `lipschitz`: the largest over all directions.

    Raises
    ------
    ValueError
        If the blocks do not add up to the length of a slice.

    Notes
    -----
    Caps that differ from slice to slice bound the loss of a slice in one step, given
    the history. They do not add up over the steps of a run that reads its own history:
    what a step tells along one direction, the next may copy to another.

    References
    ----------
    Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix F.
    """
    directions = np.asarray(slices, float)
    if sum(blocks) != directions.shape[1]:
        raise ValueError(
            Statement(
                "sliced.blocks_not_slice_length",
                shape=directions.shape[1],
                blocks=blocks,
            )
        )
    factor = check_non_negative(factor=factor)
    starts = np.cumsum((0, *blocks[:-1]))
    lengths = np.sqrt(np.add.reduceat(directions**2, starts, axis=1))
    per_layer = np.asarray(clip_norms, float) * np.asarray(lipschitz, float)
    caps: Floats = (factor * (lengths @ np.broadcast_to(per_layer, len(blocks)))) ** 2
    return caps
