"""Clusters of records, by centres that are released with noise."""

from ._k_means import PrivateKMeans

__all__ = ["PrivateKMeans"]
