from ._audit_pipeline import PipelineAudit, StepAudit, audit_pipeline
from ._output_perturbation import OutputPerturbation
from ._public_preprocessing import PublicPreprocessing

__all__ = [
    "OutputPerturbation",
    "PipelineAudit",
    "PublicPreprocessing",
    "StepAudit",
    "audit_pipeline",
]
