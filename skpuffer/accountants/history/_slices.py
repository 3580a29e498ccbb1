"""Slice profiles, and the caps that clipping layer by layer gives each slice."""

from dataclasses import dataclass, field

import joblib
import numpy as np
from numpy.typing import ArrayLike

from skpuffer.utils._checks import check_masses, check_non_negative
from skpuffer.utils._types import Floats

__all__ = ["SliceProfile", "layer_caps"]

#: How far a direction's length may be from one.
_UNIT = 1e-9


@dataclass(frozen=True)
class SliceProfile:
    """Directions along which a release is looked at, and how much each counts.

    Parameters
    ----------
    directions : ndarray of shape (n_slices, dim)
        Unit vectors, of positive weight.
    weights : ndarray of shape (n_slices,)
        Positive, summing to one.
    averaging : {'joint', 'averaged'}
    """

    directions: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    averaging: str

    @classmethod
    def checked(
        cls, slices: ArrayLike, weights: ArrayLike | None, averaging: str
    ) -> "SliceProfile":
        """Return the profile of what a user gave.

        Raises
        ------
        ValueError
            If the directions are no unit vectors or leave some direction out, or the
            weights are none.
        """
        given = np.asarray(slices)
        if given.ndim != 2 or not given.size or given.dtype.kind not in "iuf":
            raise ValueError(
                "The parameter 'slices' must be an array of shape (n_slices, dim), one "
                f"direction a row. Got shape {given.shape}."
            )
        given = given.astype(float)
        # a NaN has no length of one either
        if not np.all(np.abs(np.linalg.norm(given, axis=1) - 1) <= _UNIT):
            raise ValueError(
                "The parameter 'slices' must hold unit vectors: divide each row by its "
                "length."
            )
        masses = check_masses(len(given), slice_weights=weights)
        counted = masses > 0
        given, masses = given[counted], masses[counted]
        # what is orthogonal to all of them would be promised nothing
        rank = int(np.linalg.matrix_rank(given))
        if rank < given.shape[1]:
            raise ValueError(
                "The parameter 'slices' must span all directions: those of positive "
                f"weight have rank {rank} in {given.shape[1]} dimensions. Add "
                "directions, such as the coordinate axes."
            )
        return cls(given, masses, averaging)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.directions.shape[1])

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
        caps = layer_caps(self.directions, blocks, clip_norms)
        return float(
            self.weights @ caps if self.averaging == "averaged" else caps.max()
        )

    @property
    def name(self) -> str:
        """Identifier that equal profiles share."""
        parts = self.directions.tolist(), self.weights.tolist(), self.averaging
        return str(joblib.hash(parts))[:16]


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
            f"The parameter 'blocks' must add up to the length of a slice, "
            f"{directions.shape[1]}. Got {blocks!r}."
        )
    factor = check_non_negative(factor=factor)
    starts = np.cumsum((0, *blocks[:-1]))
    lengths = np.sqrt(np.add.reduceat(directions**2, starts, axis=1))
    per_layer = np.asarray(clip_norms, float) * np.asarray(lipschitz, float)
    caps: Floats = (factor * (lengths @ np.broadcast_to(per_layer, len(blocks)))) ** 2
    return caps
