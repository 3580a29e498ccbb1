"""Training runs whose records draw bins: a bound of one's choice, and estimates."""

from ._allocation import RandomAllocation
from ._sampled import SampledAllocation

__all__ = ["RandomAllocation", "SampledAllocation"]
