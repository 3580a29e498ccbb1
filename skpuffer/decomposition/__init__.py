"""Decompositions from one noisy release of second moments."""

from ._pca import PrivatePCA

__all__ = ["PrivatePCA"]
