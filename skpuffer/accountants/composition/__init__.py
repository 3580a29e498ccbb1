"""Many noisy steps, accounted for one by one and composed."""

from ._privacy_loss import PrivacyLoss
from ._renyi_dp import RenyiDP

__all__ = ["PrivacyLoss", "RenyiDP"]
