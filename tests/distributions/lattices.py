"""Laws on the integers, as sums along a chain have them."""

import numpy as np

from skpuffer.distributions import distribution_distance
from skpuffer.distributions._lattice_sum import LatticeSum


def steps_apart(u, v, error=0.0):
    """W_inf of two laws on the integers, each given by its atoms and their masses."""
    place = np.zeros(1), np.ones(1)
    return distribution_distance(*(LatticeSum(*law, *place, error) for law in (u, v)))
