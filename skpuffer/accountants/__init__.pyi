from skpuffer.extensions.last_iterate import IterationAmplification
from skpuffer.extensions.pac import PAC, ResidualPAC
from skpuffer.extensions.random_allocation import RandomAllocation, SampledAllocation
from skpuffer.extensions.sliced import (
    HistoryUniformCap,
    SinkhornWasserstein,
    SlicedWasserstein,
)

from ._additive import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
)
from ._base import Accountant, Calibration, Support
from ._best import Best
from ._compatibility import compatibility_table
from ._composition import PrivacyLoss, RenyiDP
from ._overlap import OverlapAmplification
from ._quilts import MarkovQuilt
from ._shaped import ShapedWasserstein

__all__ = [
    "PAC",
    "Accountant",
    "ApproximateWasserstein",
    "AttributeGaussian",
    "Best",
    "Calibration",
    "DistributionAwareWasserstein",
    "GeneralWasserstein",
    "GroupPrivacy",
    "HistoryUniformCap",
    "IterationAmplification",
    "Kantorovich",
    "MarkovQuilt",
    "OverlapAmplification",
    "PrivacyLoss",
    "RandomAllocation",
    "RenyiDP",
    "ResidualPAC",
    "SampledAllocation",
    "ShapedWasserstein",
    "SinkhornWasserstein",
    "SlicedWasserstein",
    "Support",
    "compatibility_table",
]
