"""Cells that are too rare for a row of their own in a noisy table, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpuffer.utils._types import Floats, Indices

__all__ = ["group_cells", "sum_groups"]


def group_cells(
    masses: Floats, least: float, kind: str, has_missing: bool = False
) -> Indices:
    """Group the cells of a column so that each group has some mass.

    Parameters
    ----------
    masses : ndarray of shape (n_cells,)
        *Released* masses: which level is rare must not be read off exact counts.
    least : float
        Mass that is worth a group.
    kind : {'levels', 'ordered', 'amount'}
        Rare levels make one group, in any order; ordered cells join their neighbours.
    has_missing : bool, default=False
        Whether the last cell is that of missing values, which have no neighbours.

    Returns
    -------
    ndarray of int of shape (n_cells,)
        Group of each cell, from 0 without gaps.
    """
    if kind == "levels":
        own = masses >= least
        groups = np.where(own, np.cumsum(own) - 1, np.count_nonzero(own))
        return groups.astype(np.intp)
    n_ordered = len(masses) - has_missing
    groups = np.zeros(len(masses), dtype=np.intp)
    group, held = 0, 0.0
    for cell in range(n_ordered):
        # a heavy cell does not take in the lighter ones before it
        heavy = masses[cell] >= least and 2 * held >= least
        if held > 0 and (held >= least or heavy):
            group, held = group + 1, 0.0
        groups[cell] = group
        held += masses[cell]
    # what is left at the end joins the last group
    if held < least and group > 0:
        groups[groups == group] = group - 1
        group -= 1
    if has_missing:
        groups[-1] = group + (masses[-1] >= least)
    return groups


def sum_groups(table: Floats, groups: Indices) -> Floats:
    """Sum the last axis by groups.

    Parameters
    ----------
    table : ndarray of shape (..., n_cells)
    groups : ndarray of int of shape (n_cells,)

    Returns
    -------
    ndarray of shape (..., n_groups)
    """
    belongs = groups[:, None] == np.arange(groups.max() + 1)
    summed: Floats = table @ belongs.astype(float)
    return summed
