"""Which noise keeps the promise, and what exactly is promised."""

from ._approximate import ApproximateWasserstein
from ._attribute_gaussian import AttributeGaussian
from ._base import Accountant, Calibration, Unsupported
from ._compatibility import compatibility_table
from ._distribution_aware import DistributionAwareWasserstein
from ._group import GroupPrivacy
from ._kantorovich import Kantorovich
from ._markov_quilt import MarkovQuilt
from ._privacy_loss import PrivacyLoss
from ._renyi_dp import RenyiDP
from ._sampled import SampledPrivacyLoss
from ._wasserstein import GeneralWasserstein

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
    "SampledPrivacyLoss",
    "Unsupported",
    "compatibility_table",
]
