from ._binned_law import BinnedLaw
from ._bounded import BoundedInference, BoundedOdds
from ._declared_odds import DeclaredOdds
from ._tables import ReferenceTable

__all__ = [
    "BinnedLaw",
    "BoundedInference",
    "BoundedOdds",
    "DeclaredOdds",
    "ReferenceTable",
]
