"""Spectrum of a noisy covariance: post-processing by the known noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.extmath import svd_flip

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats

__all__ = ["noisy_spectrum", "spectrum_edge"]


def spectrum_edge(deviation: float, n_features: int) -> float:
    """Largest eigenvalue of a symmetric matrix of nothing but noise.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise off the diagonal; on it sqrt(2) times as large.
    n_features : int

    Returns
    -------
    float
        Its limit for many features.

    References
    ----------
    Wigner (1958), On the distribution of the roots of certain symmetric matrices.
    """
    return 2 * deviation * math.sqrt(n_features)


def noisy_spectrum(
    covariance: Floats, deviation: float
) -> tuple[Floats, Floats, float]:
    """Eigenvectors of a noisy covariance, and eigenvalues less what noise adds.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Symmetric, with noise.
    deviation : float
        As of :func:`spectrum_edge`.

    Returns
    -------
    variances : ndarray of shape (d,)
        Descending, not negative: zero for whatever is no larger than noise alone.
    components : ndarray of shape (d, d)
        Of their eigenvectors, as rows, with signs that depend on them alone.
    trace : float
        Noisy sum of all variances, at least that of those found.

    References
    ----------
    Benaych-Georges and Nadakuditi (2011), The eigenvalues and eigenvectors of finite,
    low rank perturbations of large random matrices, Theorem 2.1: an eigenvalue x above
    the noise is seen at ``x + d s**2 / x``.
    """
    d = len(covariance)
    seen, vectors = np.linalg.eigh(covariance)
    seen, components = seen[::-1], np.ascontiguousarray(vectors.T[::-1])
    _, components = svd_flip(None, components, u_based_decision=False)
    edge = spectrum_edge(deviation, d)
    above = np.maximum(seen**2 - edge**2, 0.0)
    found = np.where(seen > edge, (seen + np.sqrt(above)) / 2, 0.0)
    # without noise the smallest may be negative by rounding
    variances: Floats = np.maximum(found, 0.0)
    trace = max(float(np.trace(covariance)), float(variances.sum()))
    return variances, components, trace
