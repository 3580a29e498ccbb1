"""Transformers that learn nothing from data: bounds and categories are public."""

from ._clipper import RowNormClipper
from ._one_hot import PublicOneHotEncoder

__all__ = ["PublicOneHotEncoder", "RowNormClipper"]
