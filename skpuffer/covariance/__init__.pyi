from ._covariance import PrivateCovariance

__all__ = ["PrivateCovariance"]
