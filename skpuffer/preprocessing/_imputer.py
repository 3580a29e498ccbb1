"""Imputer by public values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.schema import Category, Number
from skpuffer.schema._cells import UNLISTED, cell_key, is_missing, level_places
from skpuffer.schema._values import level_codes, numbers, plain_numbers
from skpuffer.utils._reading import object_cells

from ._columns import PublicColumnTransformer, by_name

if TYPE_CHECKING:
    from skpuffer.schema import Schema
    from skpuffer.utils._types import Array

__all__ = ["PublicImputer"]


@dataclass(frozen=True)
class _Fill:
    """What stands for the missing values of one column, and how these are written."""

    value: Any
    missing: tuple[Any, ...] = ()


class PublicImputer(PublicColumnTransformer):
    """Fill missing values by values that are given, not read off the data.

    A mean of private rows carries each of them into the rows it fills, and leaving
    incomplete records out would tell of them. This imputer learns nothing, so it may
    stand before a private estimator.

    Parameters
    ----------
    fill : dict of {column: value}, default=None
        Public value that stands for a missing one, in each column to fill; columns by
        name in a data frame, by position in an array. In a column that a number fills,
        all that is no number is missing. Columns that are not named must be numbers and
        pass unchanged.
    schema : Schema, default=None
        Public code book instead: of all its columns the `fill` is taken, also where the
        schema has a level for missing values. Levels that it does not have are missing
        too, and numbers outside its bounds are clipped to them.
    missing : sequence, default=()
        Codes that mean a missing value, besides None, NaN and NA. A schema has its own.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

    See Also
    --------
    skpuffer.schema.Encoding : Imputes, scales and encodes a whole table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.preprocessing import PublicImputer
    >>> X = pd.DataFrame({"age": [30, None], "race": ["White", "?"]})
    >>> PublicImputer({"age": 40, "race": "Other"}, missing=["?"]).fit_transform(X)
    array([[30.0, 'White'],
           [40.0, 'Other']], dtype=object)
    """

    _parameter = "fill"

    def __init__(
        self,
        fill: Mapping[Hashable, Any] | None = None,
        *,
        schema: Schema | None = None,
        missing: Sequence[Any] = (),
    ):
        self.fill = fill
        self.schema = schema
        self.missing = missing

    def _check(self) -> None:
        if self.fill is not None and not isinstance(self.fill, Mapping):
            raise TypeError(Statement("preprocessing.fill_not_dict", fill=self.fill))
        for column, value in (self.fill or {}).items():
            if np.ndim(value):
                raise ValueError(
                    Statement(
                        "preprocessing.fill_not_one_value", column=column, value=value
                    )
                )
            number = isinstance(value, Real)
            if is_missing(value) or (number and not np.isfinite(value)):
                raise ValueError(
                    Statement(
                        "preprocessing.fill_value_missing", column=column, value=value
                    )
                )
        if isinstance(self.missing, str) or not np.iterable(self.missing):
            raise ValueError(
                Statement("preprocessing.missing_codes_not_list", missing=self.missing)
            )

    def _said(self, names: list[Any]) -> dict[Any, Any]:
        given = dict(self.fill or {})
        by_name("fill", given, names)
        codes = tuple(self.missing)
        return {name: _Fill(value, codes) for name, value in given.items()}

    def _mapped(self, fact: Any, values: Array) -> Array:
        if isinstance(fact, Number):
            return numbers(fact, values)[0]
        if isinstance(fact, Category):
            return _levels_of(fact, values)
        if type(fact.value) is not bool and isinstance(fact.value, Real):
            found = plain_numbers(values, fact.missing)
            return np.where(np.isfinite(found), found, float(fact.value))
        # what was written: a text beside numbers must not make texts of them
        held = object_cells(map(cell_key, values))
        held[level_places(fact.missing, values) != UNLISTED] = fact.value
        return held


def _levels_of(column: Category, values: Array) -> Array:
    codes = level_codes(column, values)
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = column.levels
    # the code of a level for missing values is none of these
    filled: Array = levels[np.where(codes < len(levels), codes, column.filling)]
    return filled
