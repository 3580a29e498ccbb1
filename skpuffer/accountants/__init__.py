"""Which noise keeps the promise, and what exactly is promised."""

from ._base import Accountant, Calibration, Support
from ._compatibility import compatibility_table
from .additive import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
)
from .best import Best
from .composition import PrivacyLoss, RenyiDP
from .history import HistoryUniformCap
from .iteration import IterationAmplification
from .overlap import OverlapAmplification
from .quilts import MarkovQuilt

__all__ = [
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
    "RenyiDP",
    "Support",
    "compatibility_table",
]
