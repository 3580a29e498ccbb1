"""Divergences along single directions of what is released with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from skpuffer.accountants import Calibration
from skpuffer.audit._released import Released, gaussian_noise, read_outputs
from skpuffer.exceptions import type_error, unsupported_error, value_error
from skpuffer.kernel.numbers import Floats, check_order
from skpuffer.noise import Noise

from ._divergences import averaged_divergence, joint_divergence
from .transport._profile import SliceProfile

#: Step of the first grid, in standard deviations.
_STEP = 0.125

#: Halving the step must change the result by less than this, in nats and relatively.
_AGREED = 1e-10

#: Points of the finest grid, and densities that are computed at once.
_MOST_POINTS, _BLOCK = 2**22, 2**22

#: A share of all variance that is as good as none.
_NONE = 1e-14

#: An integrand so far below another one, in logarithms, adds nothing to it.
_NEGLIGIBLE = 45.0


@dataclass(frozen=True, eq=False)
class SliceDivergences:
    """Rényi divergence of each projection; see :func:`slice_divergences`.

    Parameters
    ----------
    values : ndarray of shape (n_slices,)
        In nats, slice by slice.
    profile : SliceProfile
    alpha : float
        Order.

    Examples
    --------
    >>> from skpuffer.audit import slice_divergences
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.transport import SliceProfile
    >>> outputs, noise = [[0.0, 0.0], [3.0, 4.0]], GaussianNoise(5.0)
    >>> found = slice_divergences(outputs, noise, SliceProfile.basis(2), alpha=2)
    >>> round(found.largest, 2), round(found.averaged, 2), round(found.joint, 2)
    (0.64, 0.5, 0.51)
    """

    values: Floats
    profile: SliceProfile
    alpha: float

    @property
    def averaged(self) -> float:
        """Mean over slices: the averaged sliced Rényi divergence."""
        return averaged_divergence(self.values, self.profile.weights)

    @property
    def joint(self) -> float:
        """Divergence of one slice, drawn by the profile, with its direction."""
        weights = self.profile.weights
        return joint_divergence(self.values, weights, alpha=self.alpha)

    @property
    def largest(self) -> float:
        """Divergence of the worst slice."""
        return float(self.values.max())


def slice_divergences(
    outputs: Any, noise: Noise | Calibration, profile: SliceProfile, *, alpha: float
) -> SliceDivergences:
    """Measure the Rényi divergence of each projection of a release.

    For outputs made of atoms, with Gaussian noise, by quadrature. An averaged or a
    joint sliced promise bounds the averaged or the joint divergence.

    Parameters
    ----------
    outputs : array-like, sequence of Distribution, OutputDistributions or OutputSamples
        The output under two secrets, as in :func:`map_attack`. The divergence is that
        of the first from the second.
    noise : Noise or Calibration
        Gaussian, of any covariance.
    profile : SliceProfile
        Finite.
    alpha : float
        Order, above 1.

    Returns
    -------
    SliceDivergences

    Raises
    ------
    UnsupportedError
        If the profile is not finite, or as :func:`map_attack`.
    ValueError
        If there are more than two secrets, some direction has no noise, or moves are
        too long beside the noise for any grid.

    References
    ----------
    Zhang and Vorobeychik (2025), Sliced Rényi Pufferfish Privacy, Definitions 4.1, 4.3.

    Examples
    --------
    >>> from skpuffer.audit import slice_divergences
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.transport import SliceProfile
    >>> outputs, noise = [[0, 0], [3, 4]], GaussianNoise(5.0)
    >>> found = slice_divergences(outputs, noise, SliceProfile.basis(2), alpha=2)
    >>> found.values.round(2).tolist()
    [0.36, 0.64]
    """
    given = read_outputs(outputs)
    if len(given.distributions) != 2:
        raise value_error(
            "audit.slices_not_two_secrets", n_distributions=len(given.distributions)
        )
    alpha = check_order(alpha=alpha)
    if math.isinf(alpha):
        raise value_error("history.alpha_infinite")
    if not isinstance(profile, SliceProfile):
        raise type_error("audit.profile_not_slice_profile", profile=profile)
    if profile.directions is None:
        raise unsupported_error("audit.profile_infinitely_many_slices")
    dim = given.distributions[0].dim
    if profile.dim != dim:
        raise value_error(
            "audit.profile_dimension_mismatch", profile_dim=profile.dim, dim=dim
        )
    added = gaussian_noise(noise)
    first, second = (
        Released.of(law, added, given.scale) for law in given.distributions
    )
    values = [_along(u, first, second, alpha) for u in profile.directions]
    return SliceDivergences(np.array(values), profile, alpha)


def _along(u: Floats, first: Released, second: Released, alpha: float) -> float:
    """Rényi divergence of the projections on one direction."""
    variances = [float(u @ world.covariance @ u) for world in (first, second)]
    if min(variances) <= _NONE * max(np.trace(first.covariance), max(variances)):
        raise value_error("audit.slice_without_noise")
    unit = math.sqrt(variances[1])
    p, q = (world.atoms @ u / unit for world in (first, second))
    ratio = math.sqrt(variances[0] / variances[1])
    # of the integrand beyond all atoms: q only helps where it is narrower
    curvature = alpha / ratio**2 - (alpha - 1)
    if curvature <= 0:
        return math.inf
    rate = alpha - 1
    low, high = _ends(p, q, ratio, curvature, alpha)
    # what small masses may take from the density in a denominator
    rare = alpha * max(-world.log_weights.min() for world in (first, second))
    reach = math.sqrt(2 * (_NEGLIGIBLE + rare) / curvature)
    low, high = low - reach, high + reach
    step, before = min(_STEP, _STEP * ratio), math.nan
    while (high - low) / step <= _MOST_POINTS:
        grid = np.arange(low, high + step, step)
        logs = alpha * _log_density(grid, p, first.log_weights, ratio)
        logs -= rate * _log_density(grid, q, second.log_weights, 1.0)
        found = float(logsumexp(logs) + math.log(step)) / rate
        if abs(found - before) <= _AGREED * max(1.0, abs(found)):
            return max(found, 0.0)
        step, before = step / 2, found
    raise value_error("audit.divergence_off_grid")


def _ends(
    p: Floats, q: Floats, ratio: float, curvature: float, alpha: float
) -> tuple[float, float]:
    """Points beyond which the integrand falls off as a Gaussian does."""
    # p^alpha q^(1 - alpha) of two Gaussians peaks where their tilts are in balance
    peaks = [
        (alpha * a / ratio**2 - (alpha - 1) * b) / curvature
        for a in (p.min(), p.max())
        for b in (q.min(), q.max())
    ]
    return min(*peaks, p.min(), q.min()), max(*peaks, p.max(), q.max())


def _log_density(
    points: Floats, atoms: Floats, log_weights: Floats, scale: float
) -> Floats:
    """Log density of a mixture of Gaussians of one scale, at points."""
    step = max(1, _BLOCK // len(atoms))
    parts = []
    for part in gen_batches(len(points), step):
        z = (points[part, None] - atoms) / scale
        parts.append(logsumexp(log_weights - z**2 / 2, axis=1))
    return np.concatenate(parts) - math.log(scale * math.sqrt(2 * math.pi))
