from skpuffer.extensions.sliced import averaged_divergence as averaged_divergence
from skpuffer.extensions.sliced import (
    averaged_shift_divergence as averaged_shift_divergence,
)
from skpuffer.extensions.sliced import joint_divergence as joint_divergence
from skpuffer.extensions.sliced import joint_shift_divergence as joint_shift_divergence
from skpuffer.extensions.sliced import shift_divergence_bound as shift_divergence_bound
from skpuffer.extensions.sliced import (
    sliced_gaussian_divergences as sliced_gaussian_divergences,
)
from skpuffer.kernel.composed_curves import CountLawCurve as CountLawCurve
from skpuffer.kernel.composed_curves import RenyiCurve as RenyiCurve
from skpuffer.kernel.composed_curves import compose_curves as compose_curves
from skpuffer.kernel.curves import GaussianCurve as GaussianCurve
from skpuffer.kernel.curves import renyi_to_approximate as renyi_to_approximate
from skpuffer.kernel.curves import renyi_to_delta as renyi_to_delta
from skpuffer.kernel.distribution import PrivacyLossCurve as PrivacyLossCurve
from skpuffer.kernel.pairs import BoundedRangePair as BoundedRangePair
from skpuffer.kernel.pairs import DominatingPair as DominatingPair
from skpuffer.kernel.pairs import MixturePair as MixturePair
from skpuffer.kernel.pairs import MovedPair as MovedPair
from skpuffer.kernel.pairs import PoissonPair as PoissonPair
from skpuffer.kernel.pairs import PurePair as PurePair
from skpuffer.kernel.pairs import ReplacePoissonPair as ReplacePoissonPair
from skpuffer.kernel.pairs import ShiftPair as ShiftPair
from skpuffer.kernel.pairs import SubsetGroupPair as SubsetGroupPair
from skpuffer.kernel.pairs import SubsetPair as SubsetPair
from skpuffer.kernel.poisson_groups import GaussianPoissonGroup as GaussianPoissonGroup
from skpuffer.kernel.poisson_groups import GaussianPoissonPair as GaussianPoissonPair

from ._conversions import (
    approximate_renyi_to_approximate as approximate_renyi_to_approximate,
)
from ._divergences import gaussian_renyi_divergence as gaussian_renyi_divergence
from ._divergences import hockey_stick_divergence as hockey_stick_divergence
from ._divergences import renyi_divergence
from ._repetition import BestRunCurve, RandomRuns

__all__ = [
    "BestRunCurve",
    "BoundedRangePair",
    "DominatingPair",
    "GaussianCurve",
    "PoissonPair",
    "PrivacyLossCurve",
    "PurePair",
    "RandomRuns",
    "RenyiCurve",
    "ShiftPair",
    "compose_curves",
    "renyi_divergence",
    "renyi_to_approximate",
    "renyi_to_delta",
]
