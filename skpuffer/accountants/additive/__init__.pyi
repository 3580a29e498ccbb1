from ._approximate import ApproximateWasserstein
from ._attribute_gaussian import AttributeGaussian
from ._base import GeneralWasserstein, GroupPrivacy, Kantorovich
from ._distribution_aware import DistributionAwareWasserstein

__all__ = [
    "ApproximateWasserstein",
    "AttributeGaussian",
    "DistributionAwareWasserstein",
    "GeneralWasserstein",
    "GroupPrivacy",
    "Kantorovich",
]
