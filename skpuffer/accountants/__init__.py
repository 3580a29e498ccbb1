"""Which noise keeps the promise, and what exactly is promised."""

from ._base import Accountant, Calibration, Unsupported
from ._compatibility import compatibility_table
from .additive import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
)
from .composition import PrivacyLoss, RenyiDP
from .quilts import MarkovQuilt

__all__ = [
    "Accountant",
    "ApproximateWasserstein",
    "AttributeGaussian",
    "Calibration",
    "DistributionAwareWasserstein",
    "GeneralWasserstein",
    "GroupPrivacy",
    "Kantorovich",
    "MarkovQuilt",
    "PrivacyLoss",
    "RenyiDP",
    "Unsupported",
    "compatibility_table",
]
