"""Pairs of features that interact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["pairs_of"]


def pairs_of(interactions: Any, names: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the positions of features that interact.

    Parameters
    ----------
    interactions : {'all', None} or list of pairs of names
    names : sequence
        Of the features.

    Returns
    -------
    tuple of (int, int)

    Raises
    ------
    ValueError
        If a pair names a feature that is not there, one twice, or comes twice.
    """
    if interactions is None:
        return ()
    n = len(names)
    if isinstance(interactions, str):
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))
    found = []
    for pair in interactions:
        unknown = [name for name in pair if name not in names]
        if unknown:
            raise ValueError(
                f"The parameter 'interactions' names {unknown!r}, which are no "
                f"features: {list(names)!r}."
            )
        i, j = sorted(list(names).index(name) for name in pair)
        if i == j or (i, j) in found:
            raise ValueError(
                "The parameter 'interactions' must be of pairs of two features, each "
                f"pair once. Got {pair!r}."
            )
        found.append((i, j))
    return tuple(found)
