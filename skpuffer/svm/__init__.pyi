from ._linear_svc import PrivateLinearSVC

__all__ = ["PrivateLinearSVC"]
