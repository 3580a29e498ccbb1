"""Probabilities of classes, corrected for the clipping of residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["clipped_curvature", "corrected", "probabilities_of"]


def probabilities_of(scores: Floats, clip: float) -> Floats:
    """Probabilities of classes from scores.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, n_classes)
        Log-odds of the second class of two, or softmax logits.
    clip : float
        Norm to which residuals were clipped in training.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    if scores.ndim == 1:
        raw = np.column_stack([expit(-scores), expit(scores)])
        return corrected(raw, np.abs(1 - raw), clip)
    raw = softmax(scores, axis=1)
    # |e_j - p|^2 = 1 - 2 p_j + |p|^2
    squares = 1 - 2 * raw + np.sum(raw**2, axis=1, keepdims=True)
    return corrected(raw, np.sqrt(np.maximum(squares, 0.0)), clip)


def corrected(probabilities: Floats, residuals: Floats, clip: float) -> Floats:
    """Undo in part what clipped residuals do to probabilities.

    Where a residual of class j is scaled down by a_j, the fit is stationary at
    probabilities p that obey P_j proportional to p_j / a_j. Divided by the root of a_j:
    the full power suits labels that are noisy, none such that are separable. The order
    of the classes stays, for any clip norm of at least a half.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    residuals : ndarray of shape (n, n_classes)
        Norm of the residual of a record of each class.
    clip : float

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    odds = probabilities * np.sqrt(np.maximum(residuals / clip, 1.0))
    shares: Floats = odds / np.sum(odds, axis=1, keepdims=True)
    return shares


def clipped_curvature(scores: Floats, clip: float) -> Floats:
    """Mean derivative of clipped residuals by the scores, by output.

    Of labels that follow the scores' own probabilities; a residual that is clipped does
    not move.

    Parameters
    ----------
    scores : ndarray of shape (n, n_outputs)
        One output is the log-odds of the second of two classes.
    clip : float

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if scores.shape[1] == 1:
        p = np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        unclipped = np.sum(p * (1 - p <= clip), axis=1)
        return np.array([np.mean(p[:, 0] * p[:, 1] * unclipped)])
    p = softmax(scores, axis=1)
    squares = 1 - 2 * p + np.sum(p**2, axis=1, keepdims=True)
    unclipped = np.sum(p * (squares <= clip**2), axis=1, keepdims=True)
    curvature: Floats = np.mean(p * (1 - p) * unclipped, axis=0)
    return curvature
