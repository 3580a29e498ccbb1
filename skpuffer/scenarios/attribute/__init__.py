"""The value of one column is secret, through every column that goes with it."""

from ._scenario import AttributeScenario

__all__ = ["AttributeScenario"]
