"""Scaler by public bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_real
from skpuffer.schema import Category, Number
from skpuffer.schema._values import numbers
from skpuffer.utils._bounds import check_bounds, resolve_bounds

from ._columns import PublicColumnTransformer, by_name

if TYPE_CHECKING:
    from skpuffer.schema import Schema
    from skpuffer.utils._types import Array, BoundsLike

__all__ = ["PublicMinMaxScaler"]


class PublicMinMaxScaler(PublicColumnTransformer):
    """Scale columns by bounds that are given, not read off the data.

    The least and the largest value of a private column are two records: a scaler that
    learns them releases these. This one learns nothing, so it may stand before a
    private estimator. Values outside the bounds are clipped to them.

    Parameters
    ----------
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds: numbers, or arrays with an entry for each column, all lows before
        all highs; in a dict of the columns to scale, by name in a data frame, by
        position in an array. Columns that are not named must be numbers and pass
        unchanged.
    schema : Schema, default=None
        Public code book instead: of its numbers the bounds are taken, amounts are
        scaled by their logarithm, and missing values are read as it says.
    feature_range : tuple (min, max), default=(0, 1)
        What the bounds become.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

    See Also
    --------
    skpuffer.summary.PrivateStandardScaler : Scales by private moments.
    skpuffer.schema.Encoding : Scales, imputes and encodes a whole table.

    Notes
    -----
    Without a schema what is missing, or no number, stays missing (NaN).

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.preprocessing import PublicMinMaxScaler
    >>> X = pd.DataFrame({"age": [17, 90, 250], "hours": [40, 38, 20]})
    >>> PublicMinMaxScaler({"age": (0, 100)}).fit_transform(X)
    array([[ 0.17, 40.  ],
           [ 0.9 , 38.  ],
           [ 1.  , 20.  ]])
    """

    _parameter = "bounds"

    def __init__(
        self,
        bounds: BoundsLike = None,
        *,
        schema: Schema | None = None,
        feature_range: tuple[float, float] = (0, 1),
    ):
        self.bounds = bounds
        self.schema = schema
        self.feature_range = feature_range

    def _check(self) -> None:
        if isinstance(self.bounds, str):
            raise ValueError(
                Statement("preprocessing.bounds_not_public_form", bounds=self.bounds)
            )
        check_bounds(self.bounds)
        given: Any = self.feature_range
        pair = isinstance(given, tuple | list) and len(given) == 2
        ends = [check_real(feature_range=end) for end in given] if pair else []
        if not ends or not np.all(np.isfinite(ends)) or not ends[0] < ends[1]:
            raise ValueError(
                Statement(
                    "preprocessing.feature_range_not_ordered",
                    feature_range=self.feature_range,
                )
            )

    def _said(self, names: list[Any]) -> dict[Any, Any]:
        given = self.bounds
        if given is None:
            return {}
        if isinstance(given, dict):
            by_name("bounds", given, names)
            return {name: Number(*pair) for name, pair in given.items()}
        found: Any = resolve_bounds(given, len(names))  # given outright
        pairs = zip(found.low, found.high, strict=True)
        return {name: Number(*pair) for name, pair in zip(names, pairs, strict=True)}

    def _facts(self, names: list[Any]) -> dict[int, Any]:
        facts = super()._facts(names)
        levels = [names[i] for i, fact in facts.items() if isinstance(fact, Category)]
        if levels:
            raise ValueError(
                Statement("preprocessing.columns_are_categories", levels=levels)
            )
        return facts

    def _mapped(self, fact: Any, values: Array) -> Array:
        found, missing = numbers(fact, values)
        low, high = fact.scale(np.array([fact.low, fact.high]))
        # halved first: the range of two large bounds could overflow
        share = (fact.scale(found) / 2 - low / 2) / (high / 2 - low / 2)
        least, most = map(float, self.feature_range)
        scaled: Array = np.clip(least + share * (most - least), least, most)
        return scaled if self.schema is not None else np.where(missing, np.nan, scaled)
