"""How far a sum of clipped gradients moves when a record becomes a given other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.utils._clipping import row_norms

from ._rows import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import GradientRelease

    from ._losses import Loss

__all__ = ["corner_costs"]

_EPS = float(np.finfo(float).eps)


def corner_costs(
    loss: Loss,
    X: ArrayLike,
    y: ArrayLike | None,
    release: GradientRelease,
    *,
    intercept_scale: float = 1.0,
    relabelled: Floats | None = None,
    dtype: type = np.float64,
) -> Floats:
    """Bound how far the sum moves, for all pairs of some records and all parameters.

    Parameters
    ----------
    loss : Loss
        Of a linear model's scores.
    X : array-like of shape (n, n_features)
        Public records, as the model reads them.
    y : array-like of shape (n,) or None
        Their targets; class indices for classification. None is any targets: costs are
        the largest over all, and those on the diagonal are of records whose targets
        alone differ.
    release : GradientRelease
        Its `clip_norm`, `clip_order` and `blocks` are obeyed.
    intercept_scale : float, default=1.0
        Constant appended to the features of each record; zero for no intercept.
    relabelled : ndarray of shape (n,), default=None
        How far the clipped gradient moves at most when a record's target alone changes,
        where that is known.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        What the model computes with.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric, no larger than twice the clip norm of the whole gradient; rounded up,
        with what rounding may add to a sum. Zero on the diagonal where targets are
        given.

    Notes
    -----
    A gradient is the outer product of the derivative of the loss by the scores, no
    longer than ``loss.lipschitz``, and of the features x. Clipped, its length r is
    anywhere up to R = min(C, lipschitz ‖x‖). The distance of two is convex in either
    length, so largest at a corner: R, R', or ``√(R² + R'² - 2 R R' κ)`` with κ the
    least product of the cosines of the derivatives and of the features. A penalty must
    be added outside the clip. Parts that are clipped apart each have costs of their
    own, and add up in squares.

    Where targets differ, the target may change first.
    """
    X = np.asarray(X, float)
    n, total = len(X), release.total_clip_norm
    whole = release.blocks is None or not intercept_scale
    constant = np.full((n, 1), intercept_scale)
    parts = [np.hstack([X, constant])] if whole else [X, constant]
    norms: Any = [total] if whole else release.clip_norm
    # with one target and with two; another norm than the l2 has no angles
    costs = [np.full((n, n), 2 * total) for _ in loss.cosines]
    if release.clip_order == 2:
        costs = [
            np.sqrt(
                sum(
                    _squares(part, norm, loss.lipschitz, cosines)
                    for part, norm in zip(parts, norms, strict=True)
                )
            )
            for cosines in loss.cosines
        ]
    alike, other = costs
    ids = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    alike[ids[:, None] == ids] = 0.0
    if relabelled is not None:
        other = np.minimum(other, alike + np.minimum.outer(relabelled, relabelled))
    found: Floats
    if y is None:
        found = np.maximum(alike, other)
    else:
        y = np.asarray(y)
        same = y[:, None] == y
        found = np.where(same, alike, other)
    # rounding is taken off the clip norm when gradients are clipped
    slack = Rows(np.zeros((1, 1), dtype)).slack * total
    found = np.minimum(found + slack, 2 * total).astype(float)
    if y is not None:
        # the same record
        found[same & (ids[:, None] == ids)] = 0.0
    return found


def _squares(
    part: Floats, norm: float, lipschitz: float, cosines: tuple[float, float]
) -> Floats:
    """Squared costs of one part of the gradient, rounded up."""
    n_terms = part.shape[1] + 16
    lengths = row_norms(part, 2) * (1 + n_terms * _EPS)
    units = part / np.where(lengths > 0, lengths, 1.0)[:, None]
    between = units @ units.T
    least = np.minimum(*(cosine * between for cosine in cosines)) - n_terms * _EPS
    with np.errstate(invalid="ignore"):
        # without features there is no gradient, however long its derivative
        longest = np.where(lengths > 0, lipschitz * lengths, 0.0)
    longest = np.minimum(norm, longest)
    squares = longest**2
    apart = squares[:, None] + squares - 2 * least * np.outer(longest, longest)
    found: Floats = np.maximum(apart, np.maximum.outer(squares, squares))
    found *= 1 + n_terms * _EPS
    return found
