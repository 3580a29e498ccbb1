"""Privacy curves: what a certificate holds besides the numbers of its promise."""

from typing import Any, Protocol

__all__ = ["Curve"]


class Curve(Protocol):
    """Privacy curve: upper bounds of the loss in every form of a promise.

    Curves of noise, of couplings, of quilts and of composed steps have this in common.
    Each is defined beside what it is made of.
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
