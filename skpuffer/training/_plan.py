"""What to do when nothing was said: steps, clip norm and step size from public facts."""

import math
from dataclasses import dataclass

from skpuffer.utils._checks import check_count, check_positive

__all__ = ["Plan", "default_plan"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A rule's answer.

    Parameters
    ----------
    n_steps : int
        Number of noisy gradient sums.
    clip_norm : float
        Norm to which an example's gradient is scaled down.
    learning_rate : float
        Step size for the mean of clipped gradients.
    momentum, average : float
        As in :class:`Optimiser`.
    schedule : str
        As in :class:`Optimiser`.
    """

    n_steps: int
    clip_norm: float
    learning_rate: float
    momentum: float = 0.0
    average: float = 0.0
    schedule: str = "constant"


def default_plan(n_records, n_features, n_outputs, multiplier):
    """Return steps, clip norm and step size for a linear model of normalised rows."""
    check_count(n_records=n_records)
    check_positive(multiplier=multiplier)
    del n_features
    steps = 30
    return Plan(
        n_steps=steps,
        clip_norm=1.0,
        learning_rate=4.0 * math.sqrt(n_outputs),
        average=0.5,
    )
