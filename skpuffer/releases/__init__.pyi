from skpuffer.kernel.gradients import GradientRelease as GradientRelease
from skpuffer.kernel.partitions import PartitionRelease as PartitionRelease
from skpuffer.kernel.queries import AdaptiveRelease as AdaptiveRelease
from skpuffer.kernel.queries import QueryRelease as QueryRelease
from skpuffer.kernel.queries import Sensitivity as Sensitivity
from skpuffer.kernel.queries import Stage as Stage
from skpuffer.kernel.queries import convert_norm as convert_norm
from skpuffer.kernel.releases import PublicContext as PublicContext
from skpuffer.kernel.releases import SelectionRelease as SelectionRelease
from skpuffer.kernel.sampling import FixedSizeSampling as FixedSizeSampling
from skpuffer.kernel.sampling import FullBatchSampling as FullBatchSampling
from skpuffer.kernel.sampling import PoissonSampling as PoissonSampling
from skpuffer.kernel.sampling import SamplingScheme as SamplingScheme
from skpuffer.kernel.sampling import ShuffledEpochsSampling as ShuffledEpochsSampling
from skpuffer.kernel.sampling import WithReplacementSampling as WithReplacementSampling
from skpuffer.kernel.votes import VOTE_RELATIONS as VOTE_RELATIONS
from skpuffer.kernel.votes import VoteRelease as VoteRelease
from skpuffer.training._engine import Optimiser as Optimiser
from skpuffer.training._engine import Recalibration as Recalibration

from ._bins import SAMPLING_SCHEMES as SAMPLING_SCHEMES
from ._bins import BallsInBinsSampling as BallsInBinsSampling
from ._bins import FreshBinsSampling as FreshBinsSampling

__all__ = [
    "AdaptiveRelease",
    "BallsInBinsSampling",
    "FixedSizeSampling",
    "FreshBinsSampling",
    "FullBatchSampling",
    "GradientRelease",
    "Optimiser",
    "PartitionRelease",
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
]
