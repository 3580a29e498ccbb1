"""Amplification by overlap: one record whose distributions have much in common."""

from ._amplification import OverlapAmplification

__all__ = ["OverlapAmplification"]
