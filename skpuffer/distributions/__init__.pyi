from skpuffer.extensions.sliced import (
    sliced_distribution_distances as sliced_distribution_distances,
)

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
