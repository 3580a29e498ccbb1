from ._approximate import ApproximateWasserstein
from ._attribute_gaussian import AttributeGaussian
from ._distribution_aware import DistributionAwareWasserstein
from ._group_privacy import GroupPrivacy
from ._kantorovich import Kantorovich
from ._wasserstein import GeneralWasserstein

__all__ = [
    "ApproximateWasserstein",
    "AttributeGaussian",
    "DistributionAwareWasserstein",
    "GeneralWasserstein",
    "GroupPrivacy",
    "Kantorovich",
]
