"""Size of known noise, as post-processing reads it."""

from typing import Any

import numpy as np

__all__ = ["noise_deviation"]


def noise_deviation(noise: Any, dim: int) -> float:
    """Return the largest standard deviation of a coordinate, finite in any case.

    Parameters
    ----------
    noise : Noise
    dim : int
        Number of coordinates.

    Returns
    -------
    float
        The largest scale, of families that have no second moment.
    """
    deviation = float(np.max(noise.std(dim)))
    return deviation if np.isfinite(deviation) else float(np.max(noise.scale))
