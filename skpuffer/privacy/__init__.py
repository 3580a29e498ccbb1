"""What is promised, what follows from it, and what may be added up."""

from ._certificate import Certificate, Notion, compose
from ._conversions import (
    approximate_renyi_to_approximate,
    renyi_to_approximate,
    renyi_to_delta,
)
from ._curves import GaussianCurve, RenyiCurve, compose_curves
from ._divergences import (
    gaussian_renyi_divergence,
    hockey_stick_divergence,
    renyi_divergence,
)
from ._iteration import allocate_shifts, gaussian_prior_shifts, iteration_cost
from ._loss_curve import PrivacyLossCurve
from ._parallel import parallel

__all__ = [
    "Certificate",
    "GaussianCurve",
    "Notion",
    "PrivacyLossCurve",
    "RenyiCurve",
    "allocate_shifts",
    "approximate_renyi_to_approximate",
    "compose",
    "compose_curves",
    "gaussian_prior_shifts",
    "gaussian_renyi_divergence",
    "hockey_stick_divergence",
    "iteration_cost",
    "parallel",
    "renyi_divergence",
    "renyi_to_approximate",
    "renyi_to_delta",
]
