"""Two worlds that differ in how common a class or an attribute is."""

from ._scenario import PrevalenceScenario

__all__ = ["PrevalenceScenario"]
