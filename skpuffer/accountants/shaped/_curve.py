"""Privacy curve of Gaussian noise against moves of known length in its own norm."""

import math
from dataclasses import dataclass, replace

from skpuffer.kernel.curves import GaussianCurve
from skpuffer.kernel.plain import Plain
from skpuffer.noise import Noise, Shift

__all__ = ["EllipsoidCurve"]


@dataclass(frozen=True)
class EllipsoidCurve(Plain, kind="ellipsoid"):
    """Privacy curve of Gaussian noise where all moves lie in an ellipsoid of its shape.

    Parameters
    ----------
    noise : Noise
        Gaussian, of any covariance.
    shift : Shift
        An l2 ball that no move leaves, in the units of the release.
    mu : float
        Largest length of a move in standard deviations of the noise: with it the
        mechanism is mu-Gaussian private.
    room : float
        How far each move may be off besides, with `mu` still as it is.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3, with W_inf in the
    norm of the noise; joint convexity for the hockey-stick divergence.
    """

    noise: Noise
    shift: Shift
    mu: float
    room: float = 0.0

    @property
    def gaussian_mu(self) -> float:
        """The mu of mu-Gaussian privacy."""
        return self.mu

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost in nats."""
        return self._curve.renyi(alpha)

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence."""
        return self._curve.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        # no event is left out: the loss of Gaussian noise has no bound
        if delta == 0:
            return 0.0 if self.mu == 0 else math.inf
        return self._curve.epsilon(delta)

    def widened(self, distance: float) -> "EllipsoidCurve":
        """Return the curve with all moves off by at most a distance, in units."""
        shift = replace(self.shift, radius=self.shift.radius + distance)
        if distance <= self.room:
            return replace(self, shift=shift, room=self.room - distance)
        # triangle inequality in the norm of the noise, for what the room does not hold
        beyond = replace(self.shift, radius=distance - self.room)
        mu = self.mu + self.noise.curve(beyond).magnitude
        return replace(self, shift=shift, mu=mu, room=0.0)

    @property
    def _curve(self) -> GaussianCurve:
        return GaussianCurve(self.mu)
