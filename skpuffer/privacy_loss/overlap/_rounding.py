"""Margins of rounding that divergences of overlaps are raised by."""

import numpy as np

__all__ = ["DIGITS", "FARTHEST", "ROUNDING"]

#: Differences of numbers up to one lose a few units of their last digit.
ROUNDING = 16 * float(np.finfo(float).eps)

#: Curves and sums of divergences are evaluated to about as many digits.
DIGITS = 1e-12

#: Largest epsilon whose exponential is a float.
FARTHEST = 700.0
