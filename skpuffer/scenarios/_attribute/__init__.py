"""One column is secret, through every column that depends on it."""

from ._scenario import AttributeScenario

__all__ = ["AttributeScenario"]
