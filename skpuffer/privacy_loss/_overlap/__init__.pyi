from ._curve import OverlapCurve, WorstOverlapCurve, amplified_budgets, amplified_target
from ._kinds import (
    FiniteOverlap,
    NearOverlap,
    NormalOverlap,
    OddsOverlap,
    Overlap,
    WorstOverlap,
    finite_overlap,
)
from ._pairwise import (
    PairwiseOverlap,
    PairwiseOverlapCurve,
    composed_pairs,
    largest_pairwise_mu,
    pairwise_overlap,
)

__all__ = [
    "FiniteOverlap",
    "NearOverlap",
    "NormalOverlap",
    "OddsOverlap",
    "Overlap",
    "OverlapCurve",
    "PairwiseOverlap",
    "PairwiseOverlapCurve",
    "WorstOverlap",
    "WorstOverlapCurve",
    "amplified_budgets",
    "amplified_target",
    "composed_pairs",
    "finite_overlap",
    "largest_pairwise_mu",
    "pairwise_overlap",
]
