from ._base import Accountant, Calibration, Support
from ._compatibility import compatibility_table
from .additive import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    SinkhornWasserstein,
)
from .best import Best
from .composition import PrivacyLoss, RenyiDP
from .history import HistoryUniformCap
from .iteration import IterationAmplification
from .overlap import OverlapAmplification
from .pac import PAC, ResidualPAC
from .quilts import MarkovQuilt
from .random_allocation import RandomAllocation, SampledAllocation
from .shaped import ShapedWasserstein
from .sliced import SlicedWasserstein

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
