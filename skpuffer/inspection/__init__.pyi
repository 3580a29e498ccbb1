from ._audit_display import AuditDisplay
from ._belief_display import BeliefAudit, BeliefDisplay, audit_belief
from ._equivalent_noise import EquivalentNoiseDisplay
from ._marginals import MarginalDisplay
from ._noise_family import LightestTail, equivalent_noises, lightest_tail
from ._shape_display import ShapeDisplay
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
    "audit_belief",
    "equivalent_noises",
    "lightest_tail",
]
