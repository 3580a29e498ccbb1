from ._k_means import PrivateKMeans

__all__ = ["PrivateKMeans"]
