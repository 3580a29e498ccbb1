"""Which noise keeps the promise, and what exactly is promised."""

from ._base import Accountant, Calibration, Unsupported
from ._compatibility import compatibility_table
from ._group import GroupPrivacy
from ._privacy_loss import PrivacyLoss
from ._renyi_dp import RenyiDP
from ._wasserstein import GeneralWasserstein

__all__ = [
    "Accountant",
    "Calibration",
    "GeneralWasserstein",
    "GroupPrivacy",
    "PrivacyLoss",
    "RenyiDP",
    "Unsupported",
    "compatibility_table",
]
