"""Distributions of one record given each value of a secret."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.utils._types import Floats, Indices

__all__ = ["Laws", "codes_of"]


class Laws:
    """Distributions of one record given each value of the secret, on public rows.

    Parameters
    ----------
    values : tuple
        Of the secret.
    masses : ndarray of shape (n_values, n_atoms)
        Of the atoms, given each value; each row sums to one.
    known : ndarray of int of shape (n_atoms, n_known)
        Codes of the columns that an attacker may know.
    """

    def __init__(self, values: tuple[Any, ...], masses: Floats, known: Indices) -> None:
        self.values = values
        self.masses = masses
        self.known = known

    def content(self) -> tuple[Any, ...]:
        """All that makes it another belief if it is another."""
        return self.values, self.masses, self.known

    def conditional(self) -> Iterator[Floats]:
        """Yield the distributions given each subset of what may be known."""
        # of the atoms that agree in the columns of a subset; all, for the empty one
        n_known = self.known.shape[1]
        for size in range(n_known + 1):
            for subset in combinations(range(n_known), size):
                if not subset:
                    yield self.masses
                    continue
                _, groups = np.unique(
                    self.known[:, subset], axis=0, return_inverse=True
                )
                for group in range(groups.max() + 1):
                    yield np.where(groups.ravel() == group, self.masses, 0.0)

    def pairs(
        self, pairs: Sequence[tuple[int, int]], doubted: bool = False
    ) -> list[tuple[Floats, Floats, float]]:
        """Return distributions to compare, on all atoms: by pair, and by what is known.

        Parameters
        ----------
        pairs : sequence of (int, int)
            Of the values.
        doubted : bool, default=False
            Whether masses may be others, so that what has none may have some.

        Returns
        -------
        list of (ndarray, ndarray, float)
            With the smaller mass, given either value, of what is known; zero only where
            masses are doubted.

        Raises
        ------
        ScenarioError
            If no two of them are to be compared.
        """
        found = []
        for masses in self.conditional():
            totals = masses.sum(axis=1)
            for i, j in pairs:
                # what a value rules out is not compared under it
                mass = float(min(totals[i], totals[j]))
                if mass > 0:
                    found.append((masses[i] / totals[i], masses[j] / totals[j], mass))
                elif doubted:
                    found.append((masses[i], masses[j], mass))
        if not found:
            raise ScenarioError(Statement("prior.no_pair_possible"))
        return found


def codes_of(frame: pd.DataFrame, names: Sequence[Hashable]) -> Indices:
    """Codes of some columns of a table, equal where values are."""
    found = [pd.factorize(frame[name], use_na_sentinel=False)[0] for name in names]
    if not found:
        return np.zeros((len(frame), 0), dtype=np.intp)
    return np.column_stack(found)
