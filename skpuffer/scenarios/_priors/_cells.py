"""Cells of a public table, chosen from its rows alone."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import scenario_error
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.privacy_loss._overlap._pairwise import MOST_GROUPS

from ._coding import Coding, Levels, Numbers, column_coding

#: Records that are told apart at most: of so many no two are taken for one, so that
#: releases of other columns compose pair by pair.
_MOST_ATOMS = MOST_GROUPS

#: Public rows of each value of the secret to a record that is told apart, on average.
_LEAST_ROWS = 5

#: Cells of a column that are tried in turn.
_SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 40)

#: Columns of so few values keep them all.
_FEW = 5


def chosen_cells(
    frame: pd.DataFrame, names: Sequence[Hashable], secret: Indices
) -> Coding:
    """Return cells that lose little of each column and keep few records apart.

    The column that loses most, in units of its range, is refined first.

    Parameters
    ----------
    frame : DataFrame
        Public rows.
    names : sequence of column names
    secret : ndarray of int of shape (n_rows,)
        Codes of the secret.
    """
    most = min(_MOST_ATOMS, int(np.bincount(secret).min()) // _LEAST_ROWS)
    ladders = [_ladder(frame[name], name) for name in names]
    at = [0] * len(ladders)

    def n_atoms_at(places: list[int]) -> int:
        return _n_atoms([lad[k].codes for lad, k in zip(ladders, places, strict=True)])

    if n_atoms_at(at) > most:
        raise scenario_error(
            "prior.too_many_columns_for_cells", n_columns=len(names), most=most
        )
    refined = set(range(len(ladders)))
    while refined:
        # the column that loses most
        i = max(refined, key=lambda j: ladders[j][at[j]].loss)
        finer = [k + (j == i) for j, k in enumerate(at)]
        if finer[i] == len(ladders[i]) or n_atoms_at(finer) > most:
            refined.remove(i)
        else:
            at = finer
    return Coding(
        {n: ladder[k].coding for n, ladder, k in zip(names, ladders, at, strict=True)}
    )


class _Step:
    """Coding of one column, what it makes of the public rows, and what it loses."""

    def __init__(self, column: pd.Series, coding: Numbers | Levels) -> None:
        self.coding = coding
        self.codes = coding.codes(column)
        self.loss = _loss(column, coding)


def _ladder(column: pd.Series, name: Hashable) -> list[_Step]:
    """Codings of a column, coarse ones first; the last keeps all values if it may."""
    whole = column_coding(column, None, name)
    n_values = len(whole.values)
    if n_values <= _FEW:
        return [_Step(column, whole)]
    sizes = [size for size in _SIZES if size < n_values]
    if isinstance(whole, Numbers):
        codings: list[Any] = [column_coding(column, size, name) for size in sizes]
    else:
        # the most frequent ones; any other is read as the first
        often = np.argsort(-np.bincount(whole.codes(column)), kind="stable")
        codings = [Levels(whole.values[often[:size]]) for size in sizes]
    if n_values <= _SIZES[-1]:
        codings.append(whole)
    return [_Step(column, coding) for coding in codings]


def _loss(column: pd.Series, coding: Numbers | Levels) -> float:
    """Mean square error of a coded column, in units of its range."""
    if isinstance(coding, Levels):
        return float(np.mean(coding.read(column) != column.to_numpy(dtype=object)))
    numbers: Floats = column.to_numpy(dtype=float)
    width = float(np.ptp(numbers)) or 1.0
    return float(np.mean((coding.read(column) - numbers) ** 2)) / width**2


def _n_atoms(codes: Sequence[Indices]) -> int:
    """Distinct rows of codes."""
    keys = np.zeros(len(codes[0]), dtype=np.intp) if codes else np.zeros(1, np.intp)
    for column in codes:
        # numbered anew after each column, so that no product is too large
        _, keys = np.unique(keys * (column.max() + 1) + column, return_inverse=True)
    return int(keys.max()) + 1
