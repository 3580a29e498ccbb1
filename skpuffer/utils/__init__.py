"""Utilities for writing and checking private estimators."""

from ._discovery import EstimatorEntry, all_estimators

__all__ = ["EstimatorEntry", "all_estimators"]
