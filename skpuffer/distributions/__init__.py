"""Output distributions: what is known of a query's output; how far two are apart."""

from ._distributions import (
    Continuous,
    Discrete,
    Distribution,
    Gaussian,
    PointMass,
    Samples,
    Support,
    distribution_distance,
)

__all__ = [
    "Continuous",
    "Discrete",
    "Distribution",
    "Gaussian",
    "PointMass",
    "Samples",
    "Support",
    "distribution_distance",
]
