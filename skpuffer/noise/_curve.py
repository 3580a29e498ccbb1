"""What one noise makes of one shift, as a curve."""

from dataclasses import dataclass

from ._base import Noise
from ._shift import Shift, one_coordinate


@dataclass(frozen=True)
class ShiftCurve:
    """The whole privacy curve of a noise against a shift.

    Parameters
    ----------
    noise : Noise
        The noise.
    shift : Shift or float
        The shift; a float means one coordinate that moves by at most so much.

    Examples
    --------
    >>> from skpuffer.noise import GaussianNoise
    >>> curve = GaussianNoise(scale=2.0).curve(1.0)
    >>> curve.renyi(8)
    1.0
    >>> curve.gaussian_mu
    0.5
    """

    noise: Noise
    shift: Shift

    def __post_init__(self):
        if not isinstance(self.shift, Shift):
            object.__setattr__(self, "shift", one_coordinate(self.shift))

    def renyi(self, alpha):
        """Return the Rényi cost in nats at one order or an array of orders."""
        return self.noise.renyi(alpha, self.shift)

    def delta(self, epsilon):
        """Return the hockey-stick divergence at one epsilon or an array of them."""
        return self.noise.delta(epsilon, self.shift)

    def epsilon(self, delta):
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        return self.noise.epsilon(delta, self.shift)

    @property
    def gaussian_mu(self):
        """The mu of mu-Gaussian differential privacy, if that describes all (or None).

        For Gaussian noise this is the shift in standard deviations, and the whole
        curve follows from it (Dong, Roth and Su, 2022).
        """
        return self.noise._gaussian_mu(self.shift)

    def to_dict(self):
        """Return noise and shift as plain data that JSON can hold."""
        return {"noise": self.noise.to_dict(), "shift": self.shift.to_dict()}
