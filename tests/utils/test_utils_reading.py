"""Cells of frames of any library: whatever one holds is read, or refused in words."""

from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer.utils._reading import (
    cells_of,
    drop_position,
    missing_cells,
    object_cells,
    read_numbers,
    to_pandas,
)
from tests.refused import refused

CELLS = [1.0, Decimal("sNaN"), None, "text"]


@pytest.mark.parametrize(
    "make",
    [
        lambda cells: pd.Series(cells, dtype=object),
        lambda cells: pl.Series(cells, dtype=pl.Object),
    ],
    ids=["pandas", "polars"],
)
def test_cells_are_read_whatever_they_are(make):
    cells = cells_of(nw.from_native(make(CELLS), series_only=True))
    assert cells.dtype == object and list(map(repr, cells)) == list(map(repr, CELLS))


def test_cells_that_cannot_be_compared_are_not_missing():
    assert not missing_cells(np.array(CELLS, dtype=object)[:2]).any()
    assert missing_cells(np.array([1.0, None], dtype=object)).tolist() == [False, True]


def test_cells_that_are_lists_stay_in_one_dimension():
    assert object_cells([[1, 2], [3, 4]]).shape == (2,)
    assert object_cells([]).shape == (0,)


def test_frames_with_a_signalling_nan_are_refused_in_words():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, Decimal("sNaN")]})
    with refused(ValueError, "table.where_x_column_name", name="b"):
        read_numbers(frame)
    rest, column = drop_position(frame, 1)
    assert list(rest.columns) == ["a"] and column[0] == 3.0
    assert to_pandas(frame) is frame
