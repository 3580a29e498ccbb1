"""What is about to leave the building, described before it leaves.

An estimator makes a release and executes it from the same object, so that what is
accounted cannot differ from what is run. A release knows no scenario, no budget and
no noise.
"""

from ._context import PublicContext
from ._gradient import SAMPLING_SCHEMES, GradientRelease
from ._query import QueryRelease
from ._sensitivity import Sensitivity, convert_norm

__all__ = [
    "SAMPLING_SCHEMES",
    "GradientRelease",
    "PublicContext",
    "QueryRelease",
    "Sensitivity",
    "convert_norm",
]
