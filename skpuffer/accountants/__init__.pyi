from skpuffer.extensions.last_iterate import IterationAmplification
from skpuffer.extensions.pac import PAC, ResidualPAC
from skpuffer.extensions.random_allocation import RandomAllocation, SampledAllocation
from skpuffer.extensions.sliced import (
    HistoryUniformCap,
    SinkhornWasserstein,
    SlicedWasserstein,
)
from skpuffer.kernel.certificates import Claim as Claim
from skpuffer.kernel.sums import sensitivity_bound as sensitivity_bound

from ._additive import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
)
from ._additive._base import scale_for as scale_for
from ._additive._base import scale_for_delta as scale_for_delta
from ._base import Account, Accountant, Calibration, Found, Support, accounts_for
from ._best import Best
from ._compatibility import compatibility_table
from ._composition import PrivacyLoss, RenyiDP
from ._fields import GRADIENT_FIELDS as GRADIENT_FIELDS
from ._fields import QUERY_FIELDS as QUERY_FIELDS
from ._overlap import OverlapAmplification
from ._quilts import MarkovQuilt
from ._shaped import ShapedWasserstein

__all__ = [
    "PAC",
    "QUERY_FIELDS",
    "Account",
    "Accountant",
    "ApproximateWasserstein",
    "AttributeGaussian",
    "Best",
    "Calibration",
    "Claim",
    "DistributionAwareWasserstein",
    "Found",
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
    "accounts_for",
    "compatibility_table",
    "scale_for",
    "scale_for_delta",
    "sensitivity_bound",
]
