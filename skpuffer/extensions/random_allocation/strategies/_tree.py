"""Strategy of the binary tree: a draw of noise for each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Indices, check_count

from ._base import NoiseStrategy

__all__ = ["PrefixSumTree"]


@dataclass(frozen=True)
class PrefixSumTree(NoiseStrategy, kind="prefix_sum_tree"):
    """Strategy of the binary tree over the steps of a run.

    A node of level l is a sum of ``2**l`` consecutive steps, with noise of its own; C
    has a row for each node that the run completes, in the order in which it does. A
    prefix sum is that of as many nodes as its length has binary digits that are one.
    Of each node the estimate of least variance is taken that it and the nodes below it
    allow, as all of them are paid for.

    Parameters
    ----------
    n_steps : int
        Of the run. No more state than its number of binary digits is kept.

    References
    ----------
    Dwork, Naor, Pitassi and Rothblum (2010), Differential privacy under continual
    observation. Chan, Shi and Song (2011), Private and continual release of statistics.
    Honaker (2015), Efficient use of differentially private binary trees (the estimate
    from below). Kairouz et al. (2021), Practical and private (deep) learning without
    sampling or shuffling.

    Examples
    --------
    >>> from skpuffer.noise.strategies import PrefixSumTree
    >>> PrefixSumTree(3).matrix(3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    n_steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_steps", check_count(n_steps=self.n_steps))

    def check_run(self, n_steps: int) -> None:
        """Refuse a run of another number of steps."""
        if n_steps != self.n_steps:
            raise ValueError(
                Statement(
                    "strategy.tree_steps_mismatch",
                    tree_steps=self.n_steps,
                    n_steps=n_steps,
                )
            )

    def n_rows(self, n_steps: int) -> int:
        """Return how many nodes the steps complete."""
        return 2 * n_steps - n_steps.bit_count()

    def _nodes(self, n_steps: int) -> tuple[Indices, Indices]:
        """First step of each node, and the one after its last, in order of the rows."""
        levels = [
            np.arange(1, n_steps // size + 1) * size
            for size in 2 ** np.arange(n_steps.bit_length())
        ]
        ends = np.concatenate(levels)
        sizes = np.repeat(2 ** np.arange(len(levels)), [len(each) for each in levels])
        # by the step that completes them, lower levels first
        order = np.lexsort([sizes, ends])
        return (ends - sizes)[order], ends[order]

    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds at most, by its batch; see the base class."""
        starts, ends = self._nodes(n_steps)
        batches = np.arange(n_batches)[:, np.newaxis]
        # steps of a batch before the end of a node, less those before its start
        means: Floats = ((ends - batches - 1) // n_batches).astype(np.float64)
        means -= (starts - batches - 1) // n_batches
        return means

    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step; see the base class.

        Parameters
        ----------
        draws : iterator of ndarray of shape (dim,)
        n_steps : int

        Yields
        ------
        ndarray of shape (dim,)
            Not to be changed: it may be part of the state.
        """
        variances = _variances(n_steps.bit_length())
        # nodes of the prefix, the largest first, each with the sum of those up to it
        nodes: list[tuple[Floats, Floats]] = []
        before: Floats | float = 0.0
        for step in range(1, n_steps + 1):
            node = next(draws)
            # as one is added to a binary number: two of a level make one of the next
            for level in range((step & -step).bit_length() - 1):
                left, _ = nodes.pop()
                # by inverse variances: that of a draw is one
                share = variances[level + 1]
                node = share * next(draws) + (1 - share) * (left + node)
            total = node + (nodes[-1][1] if nodes else 0.0)
            nodes.append((node, total))
            yield total - before
            before = total

    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""
        starts, ends = self._nodes(n_steps)
        steps = np.arange(n_steps)
        inside = (starts[:, np.newaxis] <= steps) & (steps < ends[:, np.newaxis])
        return inside.astype(np.float64)

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum; see the base class."""
        lengths = np.arange(1, n_steps + 1)[:, np.newaxis]
        variances = _variances(n_steps.bit_length())
        digits = (lengths >> np.arange(len(variances))) & 1
        errors: Floats = np.sqrt(digits @ variances)
        return errors


def _variances(n_levels: int) -> Floats:
    """Variance of the best estimate of a node of each level, by it and those below."""
    variances = [1.0]
    for _ in range(n_levels):
        below = 2 * variances[-1]
        # of a draw of variance one, and of the sum of the two nodes below
        variances.append(below / (1 + below))
    return np.array(variances)
