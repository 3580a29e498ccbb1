"""What a certificate holds of a mechanism besides the numbers of its promise."""

from typing import Any, Protocol

__all__ = ["Curve"]


class Curve(Protocol):
    """A privacy curve: upper bounds of the loss under each way of counting it.

    Curves of noise, of couplings, of quilts and of composed steps have this in common.
    Each is at home with what it is made of.
    """

    @property
    def gaussian_mu(self) -> float | None:
        """Mu, if the mechanism is exactly mu-Gaussian private, otherwise None."""

    def renyi(self, alpha: float) -> float:
        """Rényi divergence of order `alpha`, in nats."""

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence at exp(`epsilon`): the delta that goes with it."""

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 that goes with `delta`, rounded up."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
