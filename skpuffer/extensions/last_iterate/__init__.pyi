from ._amplification import IterationAmplification
from ._iteration import allocate_shifts, gaussian_prior_shifts, iteration_cost

__all__ = [
    "IterationAmplification",
    "allocate_shifts",
    "gaussian_prior_shifts",
    "iteration_cost",
]
