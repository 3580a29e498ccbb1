"""What of a random subset is secret, as a code for each subset."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.utils._types import Floats, Indices

from ._laws import Masks

__all__ = ["of_function", "of_groups", "of_records"]


def of_records(masks: Masks, weights: Floats | None) -> Indices:
    """Return the membership of each record, without those that are certain.

    Parameters
    ----------
    masks : ndarray of bool of shape (n_subsets, n_pool)
    weights : ndarray of shape (n_subsets,) or None
        Probabilities, where these are all subsets there are. None where they are draws:
        of a record that is in all of them or in none nothing is certain.

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    codes: Indices = masks.astype(np.int8)
    return codes if weights is None else _uncertain(codes, weights)


def of_groups(masks: Masks, weights: Floats | None, groups: Indices) -> Indices:
    """Return the memberships of each group's records together, as one code a group.

    Parameters
    ----------
    masks, weights : as in :func:`of_records`
    groups : ndarray of int of shape (n_pool,)

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    columns = []
    for group in np.unique(groups):
        mine = np.packbits(masks[:, groups == group], axis=1)
        columns.append(np.unique(mine, axis=0, return_inverse=True)[1].reshape(-1))
    codes: Indices = np.column_stack(columns)
    return codes if weights is None else _uncertain(codes, weights)


def of_function(
    masks: Masks, weights: Floats | None, function: Callable[[Any], Any]
) -> Indices:
    """Return what a function says of each subset, as codes.

    Parameters
    ----------
    masks, weights : as in :func:`of_records`
    function : callable
        Of one mask: a label, or a sequence with one for each secret.

    Returns
    -------
    ndarray of int of shape (n_subsets, n_secrets)
    """
    said = [function(mask.copy()) for mask in masks]
    rows = [list(one) if _is_sequence(one) else [one] for one in said]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ScenarioError(Statement("subsample.groups_labels_count_varies"))
    try:
        columns = [_codes(column) for column in zip(*rows, strict=True)]
    except TypeError:
        raise ScenarioError(Statement("subsample.groups_labels_not_hashable")) from None
    codes: Indices = np.column_stack(columns)
    return codes if weights is None else _uncertain(codes, weights)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )


def _codes(labels: tuple[Any, ...]) -> Indices:
    """Number of each label, in order of appearance."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels])


def _uncertain(codes: Indices, weights: Floats) -> Indices:
    """Those columns that have more than one value with positive probability."""
    possible = codes[weights > 0]
    kept: Indices = codes[:, np.any(possible != possible[0], axis=0)]
    if not kept.shape[1]:
        raise ScenarioError(Statement("subsample.no_secret_uncertain"))
    return kept
