from ._pca import PrivatePCA

__all__ = ["PrivatePCA"]
