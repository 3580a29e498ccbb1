from ._binned_law import BinnedLaw
from ._bounded_inference import BoundedInference
from ._bounded_odds import BoundedOdds
from ._declared_odds import DeclaredOdds
from ._tables import ReferenceTable

__all__ = [
    "BinnedLaw",
    "BoundedInference",
    "BoundedOdds",
    "DeclaredOdds",
    "ReferenceTable",
]
