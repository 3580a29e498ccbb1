"""How far apart two laws are: exact Wasserstein distances up to order infinity.

W_inf is what the general Wasserstein mechanism calibrates on, and no library offers
it: POT returns NaN for ``p=inf`` and SciPy's ``wasserstein_distance`` knows ``p=1``
only. The distances here are therefore hand-written on top of NumPy's sorts and SciPy's
maximum flow, with masses in exact integer arithmetic: W_inf is a maximum over a
support, so one dropped sliver of mass would under-state it, and the noise with it.
"""

from ._bottleneck import (
    BottleneckResult,
    bottleneck_distance,
    bottleneck_transport,
)
from ._gaussian import gaussian_wasserstein
from ._line import quantile_coupling, wasserstein_distance

__all__ = [
    "BottleneckResult",
    "bottleneck_distance",
    "bottleneck_transport",
    "gaussian_wasserstein",
    "quantile_coupling",
    "wasserstein_distance",
]
