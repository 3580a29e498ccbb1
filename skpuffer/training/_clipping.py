"""Per-example clipping of gradients that are outer products, by their factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.utils._norms import joint_norms, least_norm, row_norms

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from skpuffer.releases import GradientRelease
    from skpuffer.utils._types import Array

__all__ = ["check_release", "clip_layers", "clip_rows", "largest_factor"]


def check_release(
    release: GradientRelease, blocks: tuple[int, ...], dtype: DTypeLike
) -> None:
    """Check that a release clips what a model has, to what its numbers can hold.

    Raises
    ------
    ValueError
        If it clips other parts than the whole vector or those a model has, or to a norm
        so short that numbers of `dtype` would be rounded by more than the slack.
    """
    if release.blocks not in (None, blocks):
        raise ValueError(
            f"The parameter 'blocks' of the release must be {blocks}, the parts these "
            f"gradients can be clipped by, or None. Got {release.blocks}."
        )
    if np.min(release.clip_norm) < least_norm(dtype):
        raise ValueError(
            f"The parameter 'clip_norm' must be at least {least_norm(dtype):.3g} for "
            f"gradients in {np.dtype(dtype).name}. Got {release.clip_norm}."
        )


def largest_factor(clip_norm: float, lengths: Array, slack: float) -> Array:
    """Return the largest norm of one factor of a gradient, given that of the other.

    Parameters
    ----------
    clip_norm : float
    lengths : ndarray or scalar of NumPy, float32 or float64
    slack : float
        Share of a gradient's length that rounding may add; see `Rows.slack`.

    Returns
    -------
    ndarray or scalar
        ``clip_norm / lengths``, of the same dtype; less the slack, and some units of
        the last place, which cover the roundings here and of what is scaled by it.
        Infinite for length zero.
    """
    # rounding may lengthen what comes out; that much is taken off beforehand
    slack += 8 * float(np.finfo(lengths.dtype).eps)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return clip_norm * (1 - slack) / lengths


def clip_rows(factors: Array, caps: Array | float, order: float) -> Array:
    """Clip rows to a norm each.

    Parameters
    ----------
    factors : ndarray of shape (n,) or (n, m)
    caps : float or ndarray of shape (n,)
        Of the dtype of `factors`.
    order : float
        Of the norm, in [1, inf].

    Returns
    -------
    ndarray of the shape of `factors`
        Rows multiplied by ``min(1, cap / norm)``.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.
    """
    if factors.ndim == 1:
        clipped = np.minimum(factors, caps)
        return np.maximum(clipped, -caps, out=clipped)  # `clip` costs more than both
    # times min(1, cap / norm), as a division by what the norm exceeds the cap by
    excess = row_norms(factors, order).astype(factors.dtype, copy=False) / caps
    return factors / np.maximum(excess, 1)[:, None]


def clip_layers(
    entering: Sequence[Array],
    leaving: Sequence[Array],
    release: GradientRelease,
    slack: float,
) -> list[Array]:
    """Clip the gradients of two layers, each an outer product.

    Parameters
    ----------
    entering : pair of ndarrays of shape (n,)
        Norm of what enters each layer, of the order the release clips by.
    leaving : pair of ndarrays of shape (n, n_units)
        Derivatives of the loss by what leaves each layer.
    release : GradientRelease
        Its `clip_norm`, `clip_order` and `blocks` are obeyed.
    slack : float
        As for :func:`largest_factor`.

    Returns
    -------
    list of two ndarrays of shape (n, n_units)
        Derivatives scaled down, together where the release clips the whole vector at
        once.
    """
    order, norm = release.clip_order, release.clip_norm
    if release.blocks is not None:
        caps = [
            largest_factor(own, length, slack)
            for own, length in zip(norm, entering, strict=True)
        ]
        return [
            clip_rows(factor, cap, order)
            for factor, cap in zip(leaving, caps, strict=True)
        ]
    # The norm of an outer product is the product of its factors' norms.
    lengths = [
        row_norms(factor, order) * norm
        for factor, norm in zip(leaving, entering, strict=True)
    ]
    total = joint_norms(*lengths, order).astype(leaving[0].dtype)
    shares = np.minimum(largest_factor(norm, total, slack), 1)
    return [factor * shares[:, None] for factor in leaving]
