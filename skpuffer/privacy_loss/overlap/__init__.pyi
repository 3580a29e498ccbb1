from ._curve import OverlapCurve, amplified_budgets, amplified_target
from ._kinds import (
    FiniteOverlap,
    NearOverlap,
    NormalOverlap,
    OddsOverlap,
    Overlap,
    WorstOverlap,
    finite_overlap,
)
from ._pairwise import PairwiseOverlap, pairwise_overlap
from ._pairwise_curve import (
    PairwiseOverlapCurve,
    composed_pairs,
    largest_pairwise_mu,
)
from ._worst_curve import WorstOverlapCurve

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
