from ._adaptive import AdaptiveRelease, Stage
from ._context import PublicContext
from ._gradient import GradientRelease
from ._optimiser import Optimiser, Recalibration
from ._query import QueryRelease
from ._sampling import (
    SAMPLING_SCHEMES,
    BallsInBinsSampling,
    FixedSizeSampling,
    FreshBinsSampling,
    FullBatchSampling,
    PoissonSampling,
    SamplingScheme,
    ShuffledEpochsSampling,
    WithReplacementSampling,
)
from ._selection import SelectionRelease
from ._sensitivity import Sensitivity, convert_norm
from ._votes import VOTE_RELATIONS, VoteRelease

__all__ = [
    "SAMPLING_SCHEMES",
    "VOTE_RELATIONS",
    "AdaptiveRelease",
    "BallsInBinsSampling",
    "FixedSizeSampling",
    "FreshBinsSampling",
    "FullBatchSampling",
    "GradientRelease",
    "Optimiser",
    "PoissonSampling",
    "PublicContext",
    "QueryRelease",
    "Recalibration",
    "SamplingScheme",
    "SelectionRelease",
    "Sensitivity",
    "ShuffledEpochsSampling",
    "Stage",
    "VoteRelease",
    "WithReplacementSampling",
    "convert_norm",
]
