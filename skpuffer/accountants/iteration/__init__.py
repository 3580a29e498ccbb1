"""Training runs of which only the last iterate leaves."""

from ._amplification import IterationAmplification

__all__ = ["IterationAmplification"]
