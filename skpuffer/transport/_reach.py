"""Pairs of atoms within reach of each other: all of them if few, else some for a flow.

A flow needs a few pairs for each atom, however many are within reach: those drawn at
random nearly always let through what all of them would. Where they do not, the cut says
between which atoms pairs are lacking, and pairs across it are added, if there are any.
"""

import numpy as np
from scipy.spatial import KDTree

from skpuffer.utils._types import Booleans, Floats, Indices

# With fewer pairs within reach, in all or of an atom on average, all are taken.
_SMALL = 500_000
_FEW = 40
# Atoms among which that average is found.
_ASKED = 500
# Pairs drawn for each atom at first, and for each atom next to a cut.
_DRAWN = 6
_ADDED = 2
# Cuts that may lack pairs before all are taken: those of two distributions that match
# in few ways only.
_PATIENCE = 4


class Reach:
    """Pairs of atoms within a radius, for the search of the smallest one.

    Parameters
    ----------
    U, V : ndarray of shape (n, d) and (m, d)
        Distinct atoms.
    norm : float
        Norm of their differences.

    Attributes
    ----------
    tree_u, tree_v : KDTree
        Of all atoms of either side.
    """

    def __init__(self, U: Floats, V: Floats, norm: float) -> None:
        self.U, self.V, self.norm = U, V, norm
        self.tree_u, self.tree_v = KDTree(U), KDTree(V)
        self._keys = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0)
        self._patience = _PATIENCE
        # The same pairs on every run. They steer the search and are no part of the
        # result.
        self._rng = np.random.default_rng(0)

    def pairs(
        self, radius: float, max_pairs: float
    ) -> tuple[Indices, Indices, bool] | None:
        """Pairs within a radius and whether they are all; None if they are too many.

        Parameters
        ----------
        radius : float
        max_pairs : float
            Most pairs held at once.
        """
        if self._draws(radius):
            if not len(self._keys):
                i, j = np.arange(len(self.U)), np.arange(len(self.V))
                self._draw(i, j, i, j, radius, _DRAWN)
            if len(self._keys) <= max_pairs:
                within = self._lengths <= radius
                return *np.divmod(self._keys[within], len(self.V)), False
        if (
            len(self.U) * len(self.V) > max_pairs
            and self.tree_u.count_neighbors(self.tree_v, radius, p=self.norm)
            > max_pairs
        ):
            return None
        found = self.tree_u.sparse_distance_matrix(
            self.tree_v, radius, p=self.norm, output_type="ndarray"
        )
        return found["i"], found["j"], True

    def add_across(self, stuck: Booleans, short: Booleans, radius: float) -> None:
        """Draw pairs across a cut, within a radius.

        Parameters
        ----------
        stuck, short : ndarray of bool, of shape (n,) and (m,)
            Atoms on the two sides of the cut between which pairs were lacking.
        radius : float
        """
        self._patience -= 1
        every_i, every_j = np.flatnonzero(stuck), np.flatnonzero(short)
        # only those with anyone across the cut within reach
        i = every_i[nearest(self.V[every_j], self.U[every_i], self.norm) <= radius]
        j = every_j[nearest(self.U[every_i], self.V[every_j], self.norm) <= radius]
        self._draw(i, j, every_i, every_j, radius, _ADDED)

    def _draws(self, radius: float) -> bool:
        """Whether pairs are drawn: all are too many, and not yet asked for."""
        if self._patience <= 0 or len(self.U) * len(self.V) < _SMALL:
            return False
        asked = self.U[:: max(1, len(self.U) // _ASKED)]
        counts = self.tree_v.query_ball_point(
            asked, radius, p=self.norm, return_length=True
        )
        return bool(np.mean(counts) > max(_FEW, _SMALL / len(self.U)))

    def _draw(
        self,
        i: Indices,
        j: Indices,
        every_i: Indices,
        every_j: Indices,
        radius: float,
        times: int,
    ) -> None:
        """Add pairs of each of `i` with some of `every_j`, of each `j` with `every_i`.

        Some may be longer than the radius.
        """
        near_j = self._partners(self.U[i], self.V[every_j], radius, times)
        near_i = self._partners(self.V[j], self.U[every_i], radius, times)
        one = np.concatenate([np.tile(i, times + 1), every_i[near_i]])
        other = np.concatenate([every_j[near_j], np.tile(j, times + 1)])
        keys = np.concatenate([self._keys, one * len(self.V) + other])
        keys.sort()
        self._keys = keys[np.diff(keys, prepend=-1) > 0]
        one, other = np.divmod(self._keys, len(self.V))
        self._lengths = norms(self.U[one] - self.V[other], self.norm)

    def _partners(
        self, points: Floats, others: Floats, radius: float, times: int
    ) -> Indices:
        """Nearest of the others, then for each time one at random, mostly in reach."""
        tree = KDTree(others)
        partners = [tree.query(points, p=self.norm)[1]]
        for _ in range(times):
            drawn = self._rng.integers(len(others), size=len(points))
            apart = norms(points - others[drawn], self.norm)
            # Who is too far away says which way to go: what is nearest to a point on
            # the way, within reach.
            far = np.flatnonzero(apart > radius)
            share = radius * self._rng.random(len(far)) ** (1 / points.shape[1])
            ways = others[drawn[far]] - points[far]
            stops = points[far] + ways * (share / apart[far])[:, None]
            drawn[far] = tree.query(stops, p=self.norm)[1]
            partners.append(drawn)
        return np.concatenate(partners)


def nearest(others: Floats, points: Floats, norm: float) -> Floats:
    """Distance of each point to the nearest of the others."""
    distances: Floats = KDTree(others).query(points, p=norm)[0]
    return distances


def norms(differences: Floats, norm: float) -> Floats:
    """Norm of each row."""
    lengths: Floats = np.linalg.norm(differences, ord=norm, axis=1)
    return lengths
