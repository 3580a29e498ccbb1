from ._output_perturbation import OutputPerturbation
from ._public_preprocessing import PublicPreprocessing

__all__ = ["OutputPerturbation", "PublicPreprocessing"]
