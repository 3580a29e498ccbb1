"""Support vector machines that spend a privacy budget."""

from ._linear_svc import PrivateLinearSVC

__all__ = ["PrivateLinearSVC"]
