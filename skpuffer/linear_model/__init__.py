"""Private linear models."""

from ._logistic import PrivateLogisticRegression

__all__ = ["PrivateLogisticRegression"]
