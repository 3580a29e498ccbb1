from ._audit_pipeline import PipelineAudit, StepAudit, audit_pipeline
from ._output_perturbation import OutputPerturbation
from ._pipeline_plan import PipelinePreview
from ._private_pipeline import PrivatePipeline, make_private_pipeline
from ._public_preprocessing import PublicPreprocessing

__all__ = [
    "OutputPerturbation",
    "PipelineAudit",
    "PipelinePreview",
    "PrivatePipeline",
    "PublicPreprocessing",
    "StepAudit",
    "audit_pipeline",
    "make_private_pipeline",
]
