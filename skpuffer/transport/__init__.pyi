from skpuffer.extensions.sliced import Box as Box
from skpuffer.extensions.sliced import SliceProfile as SliceProfile
from skpuffer.extensions.sliced import dkw_sliced_distances as dkw_sliced_distances
from skpuffer.extensions.sliced import sliced_distances as sliced_distances
from skpuffer.kernel.queries import Ball as Ball

from ._bottleneck import BottleneckResult as BottleneckResult
from ._bottleneck import bottleneck_distance, bottleneck_transport
from ._entropic import entropic_distance as entropic_distance
from ._gaussian_near import gaussian_near_radius, gaussian_wasserstein
from ._image import NearResult as NearResult
from ._image import near_plan_in_image as near_plan_in_image
from ._image import near_radius, near_transport
from ._line import (
    continuous_near_radius,
    continuous_wasserstein,
    quantile_coupling,
    wasserstein_distance,
)
from ._plan import TransportPlan, transport_distance, transport_plan

__all__ = [
    "TransportPlan",
    "bottleneck_distance",
    "bottleneck_transport",
    "continuous_near_radius",
    "continuous_wasserstein",
    "gaussian_near_radius",
    "gaussian_wasserstein",
    "near_radius",
    "near_transport",
    "quantile_coupling",
    "transport_distance",
    "transport_plan",
    "wasserstein_distance",
]
