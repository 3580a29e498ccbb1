"""How far each example's gradient is scaled down."""

import numpy as np

from ._rows import entry_norms

__all__ = ["clip_factors"]


def clip_factors(lengths, release, blocks):
    """Return the factors that bring each example's gradient within the clip norms.

    Parameters
    ----------
    lengths : list of ndarray of shape (n,)
        Norm, of the order the release clips by, of each example's gradient in each
        part of the parameter vector. May be overwritten.
    release : GradientRelease
        Its `clip_norm` and `blocks` are obeyed.
    blocks : tuple of int
        Sizes of the parts.

    Returns
    -------
    list of ndarray of shape (n,)
        ``min(1, clip_norm / length)`` for each part: all alike where the release clips
        the whole vector at once.

    Raises
    ------
    ValueError
        If the release clips blocks that are not these parts.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    """
    if release.blocks is None:
        if len(lengths) == 1:
            total = lengths[0]
        else:
            total = entry_norms(np.stack(lengths, axis=1), release.clip_order)
        return [_factor(total, release.clip_norm, lengths[0].dtype)] * len(lengths)
    if release.blocks != blocks:
        raise ValueError(
            f"The parameter 'blocks' of the release must be {blocks}, the parts these "
            f"gradients can be clipped by, or None. Got {release.blocks}."
        )
    return [
        _factor(length, norm, length.dtype)
        for length, norm in zip(lengths, release.clip_norm, strict=True)
    ]


def _factor(length, clip_norm, dtype):
    # The roundings of the length, the ratio and the products that follow are covered
    # by a few units of the last place, so that no gradient comes out too long.
    bound = dtype.type(clip_norm * (1 - 8 * np.finfo(dtype).eps))
    factor = np.maximum(length, bound)
    return np.divide(bound, factor, out=factor).astype(dtype, copy=False)
