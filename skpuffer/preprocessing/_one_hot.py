"""One-hot encoder of public categories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skpuffer.base import all_or_nothing
from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import check_option
from skpuffer.schema._cells import (
    MISSING,
    UNLISTED,
    is_missing,
    level_places,
    refuse_ambiguous,
)
from skpuffer.utils._reading import distinct_names, held_as_codes
from skpuffer.utils._sklearn import linked_to_docs

from ._columns import as_number, by_name, read_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Array, Matrix, Table


@linked_to_docs
class PublicOneHotEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """One-hot encode columns by categories that are given, not read off the data.

    Which categories occur in private data is itself private. This encoder learns
    nothing.

    Parameters
    ----------
    categories : dict of {column: list}, default=None
        Public categories of each column to encode, by name or position. Other columns
        must be numbers. Cells are compared with them as with the levels of a
        :class:`~skpuffer.schema.Category`: 1, 1.0 and "1" are one category.
    missing : {'category', 'zero', 'error'}, default='category'
        Treatment of a missing value in an encoded column.

        - 'category': a category of its own, always the last column,
          ``<column>_missing``.
        - 'zero': zeros in all columns.
        - 'error': `transform` raises.
    unknown : {'zero', 'error'}, default='zero'
        Treatment of a value that `categories` does not name.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.
    dtype : number type, default=numpy.float64
        Type of the result.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns before encoding.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.preprocessing import PublicOneHotEncoder
    >>> X = pd.DataFrame({"age": [30, 40], "race": ["White", None]})
    >>> encoder = PublicOneHotEncoder({"race": ["White", "Black"]})
    >>> encoder.fit_transform(X)
    array([[30.,  1.,  0.,  0.],
           [40.,  0.,  0.,  1.]])
    >>> encoder.get_feature_names_out()
    array(['age', 'race_White', 'race_Black', 'race_missing'], dtype=object)
    """

    def __init__(
        self,
        categories: Mapping[Hashable, Sequence[Any]] | None = None,
        *,
        missing: str = "category",
        unknown: str = "zero",
        sparse_output: bool = False,
        dtype: DTypeLike = np.float64,
    ):
        self.categories = categories
        self.missing = missing
        self.unknown = unknown
        self.sparse_output = sparse_output
        self.dtype = dtype

    @all_or_nothing
    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:
        """Validate the parameters and the names of the columns; learn nothing."""
        self._check()
        X, names = read_columns(self, X, reset=True)
        encoded = self._positions(names)
        self._numbers(X, names, encoded)
        return self

    def transform(self, X: Table) -> Matrix:
        """Encode.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)

        Returns
        -------
        X : {ndarray, CSR matrix} of shape (n_records, n_features_out)
            Each encoded column is replaced by its categories' columns, in place.
        """
        self._check()
        X, names = read_columns(self, X, reset=False)
        encoded = self._positions(names)
        numbers = self._numbers(X, names, encoded)
        if not encoded:
            return sparse.csr_matrix(numbers) if self.sparse_output else numbers
        # Each row by itself and by the given categories, so one record changes one row.
        blocks = [
            self._block(X.iloc[:, i], names[i], given) for i, given in encoded.items()
        ]
        codes = sparse.hstack(blocks, format="csr")
        codes = codes if self.sparse_output else codes.toarray()
        # columns are indexed in CSC, rows read in CSR
        order = self._order(len(names), encoded)
        if self.sparse_output:
            return sparse.hstack([numbers, codes]).tocsc()[:, order].tocsr()
        return np.hstack([numbers, codes])[:, order]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the columns after encoding."""
        before = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        # `categories` names columns as the data does, whatever they are called here
        known = getattr(self, "feature_names_in_", range(self.n_features_in_))
        encoded = self._positions(list(known))
        plain = [name for i, name in enumerate(before) if i not in encoded]
        last = ["missing"] if self.missing == "category" else []
        coded = [
            f"{before[i]}_{category}"
            for i, given in encoded.items()
            for category in [*given, *last]
        ]
        order = self._order(len(before), encoded)
        made = distinct_names([*plain, *coded])
        names: Array = np.array(made, dtype=object)[order]
        return names

    # -- its parts ----------------------------------------------------------------

    def _check(self) -> None:
        """Check the parameters."""
        check_option(("category", "zero", "error"), missing=self.missing)
        check_option(("zero", "error"), unknown=self.unknown)
        try:
            is_number = self.dtype is not None and np.dtype(self.dtype).kind in "biuf"
        except TypeError:
            is_number = False
        if not is_number:
            raise value_error("preprocessing.dtype_not_numeric", dtype=self.dtype)
        if self.categories is not None and not isinstance(self.categories, dict):
            raise type_error(
                "preprocessing.categories_not_dict", categories=self.categories
            )
        for column, given in (self.categories or {}).items():
            # a string would be taken for the list of its letters
            if isinstance(given, str) or np.ndim(_objects(given)) != 1:
                raise value_error(
                    "preprocessing.categories_not_list", column=column, given=given
                )
            given = _objects(given)
            if len(given) == 0:
                raise value_error("preprocessing.categories_empty", column=column)
            if any(map(is_missing, given)):
                raise value_error(
                    "preprocessing.categories_name_missing_value", column=column
                )
            refuse_ambiguous(given.tolist(), "categories")
            # two columns of one name
            if self.missing == "category" and "missing" in given.tolist():
                raise value_error(
                    "preprocessing.categories_missing_name_clash", column=column
                )

    def _positions(self, names: list[Any]) -> dict[int, Array]:
        """Categories by position of their column, in the order of the columns."""
        categories = self.categories or {}
        by_name("categories", dict(categories), names)
        # in the order of the columns, whatever the order of the dict
        return {
            i: _objects(categories[name])
            for i, name in enumerate(names)
            if name in categories
        }

    def _numbers(
        self, X: pd.DataFrame, names: list[Any], encoded: dict[int, Array]
    ) -> Array:
        """Columns that pass unchanged, as an array."""
        kept = [i for i in range(len(names)) if i not in encoded]
        columns = [as_number(X.iloc[:, i], names[i], self.dtype) for i in kept]
        return np.column_stack(columns) if kept else np.empty((len(X), 0), self.dtype)

    def _block(self, column: pd.Series, name: Any, given: Array) -> sparse.csr_array:
        """Codes of a column, of shape (n, n_categories)."""
        held = held_as_codes(column)
        values = column.to_numpy() if held is None else held
        places = level_places(given.tolist(), values)
        # errors name the column and no value
        if self.missing == "error" and np.any(places == MISSING):
            raise value_error("preprocessing.column_has_missing_values", name=name)
        if self.unknown == "error" and np.any(places == UNLISTED):
            raise value_error("preprocessing.column_has_unknown_values", name=name)
        if self.missing == "category":
            places[places == MISSING] = len(given)
        rows = np.flatnonzero(places >= 0)
        shape = len(places), len(given) + (self.missing == "category")
        ones = np.ones(len(rows), dtype=self.dtype)
        return sparse.csr_array((ones, (rows, places[rows])), shape=shape)

    def _order(self, n_columns: int, encoded: dict[int, Array]) -> list[int]:
        """Permutation that puts the codes of each column in the place of that column.

        The result is made as all numbers, followed by all codes.
        """
        # the column of missing values is there whether or not one is missing
        extra = self.missing == "category"
        n_numbers = n_columns - len(encoded)
        numbers, codes = iter(range(n_numbers)), n_numbers
        order: list[int] = []
        for i in range(n_columns):
            if i not in encoded:
                order.append(next(numbers))
                continue
            width = len(encoded[i]) + extra
            order.extend(range(codes, codes + width))
            codes += width
        return order

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _objects(values: Iterable[Any]) -> Array:
    """Array of objects made of a list, whatever the list holds."""
    # np.array would make two dimensions of a list of tuples, and strings of a mixed
    # list
    values = list(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
