from skpuffer.extensions.pac import (
    FanoAudit,
    InformationAttack,
    bayes_attack,
    fano_audit,
    pool_attack,
)
from skpuffer.extensions.sliced import SliceDivergences, slice_divergences

from ._accuracy import largest_accuracy
from ._allowed import allowed_delta, allowed_roc, largest_auc, largest_tpr
from ._distinguishing import DistinguishingAttack, distinguishing_attack
from ._map import MapAttack, map_attack
from ._membership import MembershipAttack, membership_attack
from ._scored import EPSILONS as EPSILONS
from ._scored import Comparison, Finding, OperatingPoint
from ._scores import clopper_pearson as clopper_pearson

__all__ = [
    "Comparison",
    "DistinguishingAttack",
    "FanoAudit",
    "Finding",
    "InformationAttack",
    "MapAttack",
    "MembershipAttack",
    "OperatingPoint",
    "SliceDivergences",
    "allowed_delta",
    "allowed_roc",
    "bayes_attack",
    "distinguishing_attack",
    "fano_audit",
    "largest_accuracy",
    "largest_auc",
    "largest_tpr",
    "map_attack",
    "membership_attack",
    "pool_attack",
    "slice_divergences",
]
