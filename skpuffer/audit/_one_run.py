"""The chance of as many right guesses in one run that keeps its promise."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import special, stats

__all__ = ["one_run_p_value"]


def one_run_p_value(
    right: int, n_guesses: int, n_records: int, points: Iterable[tuple[float, float]]
) -> float:
    """Bound the probability of as many right guesses about coins in one run.

    Parameters
    ----------
    right : int
        How many guesses are right.
    n_guesses : int
        How many there are. What is guessed is read off the output alone.
    n_records : int
        How many fair coins decided which records take part.
    points : iterable of (float, float)
        Epsilons and deltas, all of which are promised. Each bounds the probability, so
        that the least bound does.

    Returns
    -------
    float

    References
    ----------
    Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run,
    Theorem 5.2 and appendix D.
    """
    least = 1.0
    for epsilon, delta in points:
        # each guess is as good as randomised response at most
        q = special.expit(epsilon)
        beta = stats.binom.sf(right - 1, n_guesses, q)
        worst = 0.0
        if delta > 0 and right > 0:
            # the largest mean mass of the counts just below, of any number of them
            below = stats.binom.pmf(np.arange(right - 1, -1, -1), n_guesses, q)
            worst = float(np.max(np.cumsum(below) / np.arange(1, right + 1)))
        least = min(least, float(beta + 2 * n_records * delta * worst))
    return least
