"""Scenarios in which a table is drawn of a pool, and who was drawn is secret."""

from ._scenario import SubsampleScenario

__all__ = ["SubsampleScenario"]
