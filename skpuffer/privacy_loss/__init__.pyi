from skpuffer.extensions.sliced import (
    averaged_divergence,
    averaged_shift_divergence,
    joint_divergence,
    joint_shift_divergence,
    shift_divergence_bound,
    sliced_gaussian_divergences,
)

from ._bounded_range import BoundedRangePair
from ._conversions import (
    approximate_renyi_to_approximate,
    renyi_to_approximate,
    renyi_to_delta,
)
from ._curves import CountLawCurve, RenyiCurve, compose_curves
from ._distribution import PrivacyLossCurve
from ._divergences import (
    gaussian_renyi_divergence,
    hockey_stick_divergence,
    renyi_divergence,
)
from ._dominating_pairs import (
    DominatingPair,
    MixturePair,
    MovedPair,
    PoissonPair,
    ReplacePoissonPair,
    ShiftPair,
    SubsetGroupPair,
    SubsetPair,
)
from ._gaussian import GaussianCurve
from ._poisson_groups import GaussianPoissonGroup, GaussianPoissonPair
from ._pure import PurePair
from .repetition import BestRunCurve, RandomRuns

__all__ = [
    "BestRunCurve",
    "BoundedRangePair",
    "CountLawCurve",
    "DominatingPair",
    "GaussianCurve",
    "GaussianPoissonGroup",
    "GaussianPoissonPair",
    "MixturePair",
    "MovedPair",
    "PoissonPair",
    "PrivacyLossCurve",
    "PurePair",
    "RandomRuns",
    "RenyiCurve",
    "ReplacePoissonPair",
    "ShiftPair",
    "SubsetGroupPair",
    "SubsetPair",
    "approximate_renyi_to_approximate",
    "averaged_divergence",
    "averaged_shift_divergence",
    "compose_curves",
    "gaussian_renyi_divergence",
    "hockey_stick_divergence",
    "joint_divergence",
    "joint_shift_divergence",
    "renyi_divergence",
    "renyi_to_approximate",
    "renyi_to_delta",
    "shift_divergence_bound",
    "sliced_gaussian_divergences",
]
