"""Attacks on what was released, beside what its certificate allows."""

from ._allowed import allowed_delta, allowed_roc, largest_auc, largest_tpr
from ._distinguishing import DistinguishingAttack, distinguishing_attack
from ._intervals import clopper_pearson
from ._membership import MembershipAttack, membership_attack
from ._scored import EPSILONS, Comparison, Finding, OperatingPoint

__all__ = [
    "EPSILONS",
    "Comparison",
    "DistinguishingAttack",
    "Finding",
    "MembershipAttack",
    "OperatingPoint",
    "allowed_delta",
    "allowed_roc",
    "clopper_pearson",
    "distinguishing_attack",
    "largest_auc",
    "largest_tpr",
    "membership_attack",
]
