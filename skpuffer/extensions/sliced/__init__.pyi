from ._audit import SliceDivergences, slice_divergences
from ._costs import group_privacy_costs, sliced_variance
from ._divergences import (
    averaged_divergence,
    averaged_shift_divergence,
    joint_divergence,
    joint_shift_divergence,
    shift_divergence_bound,
    sliced_gaussian_divergences,
)
from ._moves import sliced_distribution_distances
from ._sliced_wasserstein import SinkhornWasserstein, SlicedWasserstein
from .history._run import layer_caps
from .history._uniform_cap import HistoryUniformCap
from .transport._dkw import Box, dkw_sliced_distances
from .transport._profile import SliceProfile
from .transport._sliced import sliced_distances

__all__ = [
    "Box",
    "HistoryUniformCap",
    "SinkhornWasserstein",
    "SliceDivergences",
    "SliceProfile",
    "SlicedWasserstein",
    "averaged_divergence",
    "averaged_shift_divergence",
    "dkw_sliced_distances",
    "group_privacy_costs",
    "joint_divergence",
    "joint_shift_divergence",
    "layer_caps",
    "shift_divergence_bound",
    "slice_divergences",
    "sliced_distances",
    "sliced_distribution_distances",
    "sliced_gaussian_divergences",
    "sliced_variance",
]
