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
from ._sliced import sliced_distribution_distances

__all__ = [
    "Continuous",
    "Discrete",
    "Distribution",
    "Gaussian",
    "PointMass",
    "Samples",
    "Support",
    "distribution_distance",
    "sliced_distribution_distances",
]
