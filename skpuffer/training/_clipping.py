"""How much too long each example's gradient is."""

import numpy as np

from ._rows import joint_norms

__all__ = ["check_blocks", "excess", "excesses", "shorten"]


def check_blocks(release, blocks):
    """Check that a release clips the whole vector, or just the parts a model has.

    Raises
    ------
    ValueError
        If it clips other parts.
    """
    if release.blocks not in (None, blocks):
        raise ValueError(
            f"The parameter 'blocks' of the release must be {blocks}, the parts these "
            f"gradients can be clipped by, or None. Got {release.blocks}."
        )


def excess(length, clip_norm):
    """Return ``max(1, length / clip_norm)``, by which a gradient is to be divided.

    Parameters
    ----------
    length : ndarray of shape (n,)
        Norm of each example's gradient. Overwritten.
    clip_norm : float

    Returns
    -------
    ndarray of shape (n,)
        Of the dtype of `length`.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    """
    # The roundings of the length, of this and of what is divided are covered by a few
    # units of the last place, so that no gradient comes out too long.
    length *= (1 + 8 * _EPS[length.dtype]) / clip_norm
    return np.maximum(length, 1, out=length)


def shorten(gradients, factors):
    """Divide each row, or entry, in place."""
    np.divide(gradients.T, factors, out=gradients.T)


def excesses(lengths, release):
    """Return by what the two parts of gradients are to be divided.

    Parameters
    ----------
    lengths : pair of ndarrays of shape (n,)
        Norm, of the order the release clips by, of each example's gradient in the two
        parts of the parameter vector. Overwritten.
    release : GradientRelease
        Its `clip_norm`, `clip_order` and `blocks` are obeyed.

    Returns
    -------
    pair of ndarrays of shape (n,)
        The same for both where the release clips the whole vector at once.
    """
    if release.blocks is not None:
        return tuple(map(excess, lengths, release.clip_norm))
    total = joint_norms(*lengths, release.clip_order)
    whole = excess(total.astype(lengths[0].dtype, copy=False), release.clip_norm)
    return whole, whole


_EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}
