"""Binner by public edges."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_count, check_option
from skpuffer.schema import Number, Schema

from ._columns import PublicColumnTransformer, by_name

if TYPE_CHECKING:
    from skpuffer.schema import Binning
    from skpuffer.utils._types import Array

__all__ = ["PublicBinner"]


class PublicBinner(PublicColumnTransformer):
    """Cut columns into cells whose edges are given, not read off the data.

    Quantiles of a private column are values of its records: a binner that learns them
    releases these. This one learns nothing, so it may stand before a private estimator.

    Parameters
    ----------
    bins : dict of {column: array-like of edges}, default=None
        Public edges, one more than there are cells, ascending; columns by name in a
        data frame, by position in an array. Cells are closed below and open above, and
        what lies outside is in the first or the last. What is missing, or no number,
        has a cell of its own after these. Columns that are not named must be numbers
        and pass unchanged.
    schema : Schema, default=None
        Public code book instead: of all its columns the cells are taken, levels being
        cells as they are; see :class:`~skpuffer.schema.Binning`.
    n_bins : int, default=32
        Cells of a number for which the schema does not say how many.
    encode : {'ordinal', 'onehot'}, default='ordinal'
        Whether the cell's number is returned, or a column for each cell.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns before.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

    See Also
    --------
    skpuffer.schema.Binning : The cells of a whole table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.preprocessing import PublicBinner
    >>> X = pd.DataFrame({"age": [17, 30, None]})
    >>> binner = PublicBinner({"age": [0, 30, 60]}, encode="onehot")
    >>> binner.fit_transform(X)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> binner.get_feature_names_out()
    array(['age_[0, 30)', 'age_[30, 60]', 'age_missing'], dtype=object)
    """

    _parameter = "bins"

    def __init__(
        self,
        bins: Mapping[Hashable, ArrayLike] | None = None,
        *,
        schema: Schema | None = None,
        n_bins: int = 32,
        encode: str = "ordinal",
    ):
        self.bins = bins
        self.schema = schema
        self.n_bins = n_bins
        self.encode = encode

    def _check(self) -> None:
        check_count(n_bins=self.n_bins)
        check_option(("ordinal", "onehot"), encode=self.encode)
        if self.bins is not None and not isinstance(self.bins, Mapping):
            raise TypeError(Statement("preprocessing.bins_not_dict", bins=self.bins))
        self._edges()

    def _edges(self) -> dict[Any, Number]:
        found = {}
        for name, given in (self.bins or {}).items():
            edges = np.asarray(given, dtype=float)
            if edges.ndim != 1 or len(edges) < 2:
                raise ValueError(
                    Statement(
                        "preprocessing.bins_too_few_edges", name=name, given=given
                    )
                )
            try:
                found[name] = Number(
                    edges[0], edges[-1], bins=tuple(edges), missing_level=True
                )
            except ValueError as error:
                raise ValueError(
                    Statement(
                        "preprocessing.bins_column_invalid", name=name, error=error
                    )
                ) from None
        return found

    def _said(self, names: list[Any]) -> dict[Any, Any]:
        found = self._edges()
        by_name("bins", found, names)
        return found

    def _binning(self, fact: Any) -> Binning:
        return Schema({0: fact}).binning(self.n_bins)

    def _mapped(self, fact: Any, values: Array) -> Array:
        binning = self._binning(fact)
        codes = binning(np.asarray(values)[:, None])[:, 0]
        if self.encode == "ordinal":
            return codes.astype(float)
        cells: Array = np.eye(binning.n_cells[0])[codes]
        return cells

    def _names_of(self, fact: Any, name: str) -> list[str]:
        if self.encode == "ordinal":
            return [name]
        return [f"{name}_{label}" for label in self._binning(fact).labels(0)]
