from ._approximate import ApproximateWasserstein
from ._attribute_gaussian import AttributeGaussian
from ._base import GeneralWasserstein, GroupPrivacy
from ._distribution_aware import DistributionAwareWasserstein
from ._kantorovich import Kantorovich

__all__ = [
    "ApproximateWasserstein",
    "AttributeGaussian",
    "DistributionAwareWasserstein",
    "GeneralWasserstein",
    "GroupPrivacy",
    "Kantorovich",
]
