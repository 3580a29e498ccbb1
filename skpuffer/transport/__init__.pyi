from skpuffer.extensions.sliced import (
    Box,
    SliceProfile,
    dkw_sliced_distances,
    sliced_distances,
)
from skpuffer.kernel.queries import Ball as Ball

from ._bottleneck import BottleneckResult, bottleneck_distance, bottleneck_transport
from ._entropic import entropic_distance
from ._gaussian_near import gaussian_near_radius, gaussian_wasserstein
from ._image import NearResult, near_plan_in_image, near_radius, near_transport
from ._line import (
    continuous_near_radius,
    continuous_wasserstein,
    quantile_coupling,
    wasserstein_distance,
)
from ._plan import TransportPlan, transport_distance, transport_plan

__all__ = [
    "Ball",
    "BottleneckResult",
    "Box",
    "NearResult",
    "SliceProfile",
    "TransportPlan",
    "bottleneck_distance",
    "bottleneck_transport",
    "continuous_near_radius",
    "continuous_wasserstein",
    "dkw_sliced_distances",
    "entropic_distance",
    "gaussian_near_radius",
    "gaussian_wasserstein",
    "near_plan_in_image",
    "near_radius",
    "near_transport",
    "quantile_coupling",
    "sliced_distances",
    "transport_distance",
    "transport_plan",
    "wasserstein_distance",
]
