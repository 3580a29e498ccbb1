from ._audit_display import AuditDisplay
from ._belief_display import BeliefAudit, BeliefDisplay, MarginalDisplay, audit_belief
from ._noise_family import (
    EquivalentNoiseDisplay,
    LightestTail,
    equivalent_noises,
    lightest_tail,
)
from ._shape_display import ShapeDisplay
from ._summary_display import SummaryDisplay
from ._utility import PrivacyUtilityDisplay

__all__ = [
    "AuditDisplay",
    "BeliefAudit",
    "BeliefDisplay",
    "EquivalentNoiseDisplay",
    "LightestTail",
    "MarginalDisplay",
    "PrivacyUtilityDisplay",
    "ShapeDisplay",
    "SummaryDisplay",
    "audit_belief",
    "equivalent_noises",
    "lightest_tail",
]
