"""PAC privacy: noise by the mutual information of a secret and one output."""

from ._pac import PAC
from ._residual import ResidualPAC

__all__ = ["PAC", "ResidualPAC"]
