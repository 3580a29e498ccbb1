"""Statistics as they are shown: levels, dates and lengths of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skpuffer.schema import Date
from skpuffer.utils._reading import object_cells

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.schema import Number

    from ._layout import ColumnRequest


#: Statistics that are numbers, whatever their column holds.
_PLAIN = ("count", "size", "rate", "histogram", "n_unique")


def presented(column: ColumnRequest, label: str, values: Floats, spread: bool) -> Any:
    """Return a statistic of a column as people write it.

    Parameters
    ----------
    label : str
        Label of the statistic.
    values : ndarray of shape (n_cells,)
        Numbers, or positions of levels.
    spread : bool
        Whether they are standard deviations of the statistic.

    Returns
    -------
    array of shape (n_cells,)
        Levels for the mode of levels; for statistics of dates timestamps, of times of
        the day lengths since midnight, of deviations lengths of time.
    """
    name, date = label.partition("[")[0], column.number
    if name == "mode" and column.cells is not None:
        places = np.where(np.isnan(values), len(column.cells), values).astype(int)
        return object_cells([*column.cells, None])[places]
    if not isinstance(date, Date) or name in _PLAIN:
        return values
    if spread or name == "std":
        return date.lengths(values)
    return date.present(values)


def cell_labels(column: ColumnRequest) -> list[str]:
    """Return labels of a column's bins or levels, as they are printed."""
    if column.cells is not None:
        return [f"[{level}]" for level in column.cells]
    # closed below and open above, the last one closed, as `Bins` counts
    texts = _edge_texts(column.number, np.asarray(column.edges))
    last = len(texts) - 2
    return [
        f"[{low}, {high}{']' if i == last else ')'}"
        for i, (low, high) in enumerate(zip(texts[:-1], texts[1:], strict=True))
    ]


def _edge_texts(number: Number | None, edges: Floats) -> list[str]:
    if not isinstance(number, Date):
        return [f"{edge:.12g}" for edge in edges]
    # of whole units: the first that is in a bin, and the last of all
    whole = np.append(np.ceil(edges[:-1]), np.floor(edges[-1]))
    return [number.text(value) for value in whole]


def plain_table(
    table: dict[Any, Any], names: list[Any], labels: list[str]
) -> pd.DataFrame:
    """Return statistics as rows and columns as columns, NaN where one was not asked."""
    cells = [[table.get((name, label), np.nan) for name in names] for label in labels]
    kinds = {type(cell) for row in cells for cell in row}
    index, columns = pd.Index(labels, name="statistic"), pd.Index(names, name="column")
    if kinds <= {float, np.float64}:
        return pd.DataFrame(cells, index, columns, dtype=float)
    held = {
        i: object_cells(column) for i, column in enumerate(zip(*cells, strict=True))
    }
    return pd.DataFrame(held, index).set_axis(columns, axis=1)
