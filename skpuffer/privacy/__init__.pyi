from skpuffer.extensions.last_iterate import (
    allocate_shifts,
    gaussian_prior_shifts,
    iteration_cost,
)
from skpuffer.kernel.notions import Notion as Notion

from ._certificate import Certificate
from ._compose import compose, parallel
from ._information import mixed_information
from ._preview import Preview

__all__ = [
    "Certificate",
    "Notion",
    "Preview",
    "allocate_shifts",
    "compose",
    "gaussian_prior_shifts",
    "iteration_cost",
    "mixed_information",
    "parallel",
]
