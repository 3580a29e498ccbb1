"""Records that are jointly Gaussian, or one diffusion seen at a few times."""

from ._diffusion import DiffusionScenario
from ._scenario import GaussianScenario

__all__ = ["DiffusionScenario", "GaussianScenario"]
