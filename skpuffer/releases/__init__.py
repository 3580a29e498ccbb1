"""Releases: vectors, gradient sums and votes, computed from a table and made noisy.

An estimator makes a release and executes it from the same object, so that what is
accounted cannot differ from what is run. A release knows no scenario, no budget and
no noise.
"""

from ._adaptive import AdaptiveRelease, Stage
from ._context import PublicContext
from ._gradient import GradientRelease
from ._optimiser import Optimiser
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
    "SamplingScheme",
    "Sensitivity",
    "ShuffledEpochsSampling",
    "Stage",
    "VoteRelease",
    "WithReplacementSampling",
    "convert_norm",
]
