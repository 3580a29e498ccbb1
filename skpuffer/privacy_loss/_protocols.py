"""What composition asks of curves and of dominating pairs, whoever makes them."""

from typing import Any, Protocol

from skpuffer.kernel.numbers import Floats, Number

__all__ = [
    "ComposedPair",
    "DescribedPair",
    "HasDelta",
    "NoiseCurve",
    "Pair",
    "PairFamily",
    "PrivacyCurve",
    "TradeOffs",
]


class PrivacyCurve(Protocol):
    """Privacy curve of one mechanism: its cost in every form of a promise."""

    @property
    def gaussian_mu(self) -> float | None:
        """The mu of mu-Gaussian privacy where that is the exact curve, else None."""

    def renyi(self, alpha: float) -> float:
        """Rényi cost at order `alpha`, in nats."""

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, rounded up."""

    def epsilon(self, delta: float) -> float:
        """Epsilon at `delta`, rounded up."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


class NoiseCurve(Protocol):
    """The exact curve of additive symmetric noise against one shift."""

    @property
    def gaussian_mu(self) -> float | None:
        """The shift in standard deviations where the noise is Gaussian, else None."""

    def renyi(self, alpha: Number) -> Number:
        """Rényi cost at one order or an array of orders."""

    def delta(self, epsilon: Number) -> Number:
        """Hockey-stick divergence at one epsilon or an array of them."""

    def times(self, factor: float) -> "NoiseCurve":
        """Return the curve of the same noise against a multiple of the shift."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


class HasDelta(Protocol):
    """One direction of a pair of distributions."""

    def delta(self, epsilon: Floats) -> Floats:
        """Hockey-stick divergence of the first distribution from the second."""


class TradeOffs(HasDelta, Protocol):
    """Both trade-offs of a pair of distributions, at arrays of ``epsilon >= 0``."""

    def reverse(self, epsilon: Floats) -> Floats:
        """Hockey-stick divergence of the second distribution from the first."""


class Pair(TradeOffs, Protocol):
    """A dominating pair in one direction.

    It may have an exact `renyi(alpha)`, or `renyi_costs(orders)` for many at once.
    """

    def __hash__(self) -> int:
        """Equal pairs are accounted once."""

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the distributions have the same trade-off."""


class DescribedPair(Pair, Protocol):
    """A dominating pair that a certificate can list."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


class PairFamily(Protocol):
    """Dominating pairs, one of which, not known which, dominates all steps."""

    def __hash__(self) -> int:
        """Equal families are accounted once."""

    @property
    def directions(self) -> tuple[Pair, ...]:
        """The pairs, each in both directions."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""


#: What a step of a composition is dominated by.
ComposedPair = DescribedPair | PairFamily
