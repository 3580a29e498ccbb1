"""Base of strategies: how the noise of a run's steps is correlated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from skpuffer.utils._plain import Plain
from skpuffer.utils._types import Floats

__all__ = ["NoiseStrategy"]


class NoiseStrategy(Plain):
    """Base of strategies: how the noise of a run's steps is correlated.

    With C the strategy matrix, lower triangular with a positive diagonal, the sums of
    all steps are released with the noise ``C^-1 Z``, the rows of Z independent draws of
    the noise. That is post-processing of ``C @ sums + Z``, which is what is accounted
    for. C is never rescaled: noise of scale s under the strategy C is that of scale
    ``a s`` under ``a C``.

    A strategy is frozen, and hashable. What it says of C to accountants and what it
    does to the noise of a run follow from the same fields.

    References
    ----------
    Denisov, McMahan, Rush, Smith and Thakurta (2022), Improved differential privacy for
    SGD via optimal private linear operators on adaptive streams.
    """

    #: Whether noise is independent across steps, of the scale asked for.
    is_identity: ClassVar[bool] = False

    def check_run(self, n_steps: int) -> None:
        """Refuse a run that the strategy is not for.

        Parameters
        ----------
        n_steps : int

        Raises
        ------
        ValueError
            If it was made for another number of steps.
        """

    def n_rows(self, n_steps: int) -> int:
        """Return how many independent draws the noise of a run takes: rows of C."""
        return n_steps

    @property
    def bandwidth(self) -> int | None:
        """Number of diagonals of C that are not zero; None if that grows with a run."""
        return None

    @abstractmethod
    def means(self, n_batches: int, n_steps: int) -> Floats:
        """Return what a record adds to the rows of ``C @ sums`` at most, by its batch.

        Parameters
        ----------
        n_batches : int
            A record of batch i takes part in the steps i, i + n_batches, ...
        n_steps : int

        Returns
        -------
        ndarray of shape (n_batches, n_rows)
            Sums of the absolute values of those columns of C, in clip norms.
        """

    @abstractmethod
    def stream(self, draws: Iterator[Floats], n_steps: int) -> Iterator[Floats]:
        """Yield the noise of each step, row by row of ``C^-1 Z``.

        Parameters
        ----------
        draws : iterator of ndarray of shape (dim,)
            Rows of Z, :meth:`n_rows` of them. They may be changed.
        n_steps : int

        Yields
        ------
        ndarray of shape (dim,)
            Not to be changed: it may be part of the state.
        """

    @abstractmethod
    def matrix(self, n_steps: int) -> Floats:
        """Return C, dense: for figures and tests, and for nothing else."""

    def prefix_errors(self, n_steps: int) -> Floats:
        """Return the deviation of the noise in each prefix sum of the sums of steps.

        Parameters
        ----------
        n_steps : int

        Returns
        -------
        ndarray of shape (n_steps,)
            In scales of the noise Z.
        """
        sums = np.linalg.solve(self.matrix(n_steps).T, np.triu(np.ones((n_steps,) * 2)))
        return np.linalg.norm(sums, axis=0)
