"""Beliefs of an attacker: declared, or read from public tables."""

from ._bounded_inference import BoundedInference
from ._bounded_odds import BoundedOdds
from ._tables import ReferenceTable

__all__ = ["BoundedInference", "BoundedOdds", "ReferenceTable"]
