"""Jointly Gaussian records, and diffusions observed at a few times."""

from ._bound import DiffusionScenario
from ._scenario import GaussianScenario

__all__ = ["DiffusionScenario", "GaussianScenario"]
