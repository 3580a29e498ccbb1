"""Transformer that scales rows down to a public norm."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from skpuffer.base import all_or_nothing
from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import check_count, check_option, check_real
from skpuffer.schema import Category, Number, Schema
from skpuffer.schema._cells import (
    UNLISTED,
    cell_key,
    cell_numbers,
    is_missing,
    level_codes,
    level_places,
    numbers,
)
from skpuffer.utils._bounds import check_bounds, resolve_bounds
from skpuffer.utils._clipping import check_clipping, clip_rows
from skpuffer.utils._reading import all_finite, object_cells, read_numbers
from skpuffer.utils._sklearn import linked_to_docs

from ._columns import PublicColumnTransformer, by_name

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from skpuffer.schema import Binning
    from skpuffer.utils._types import Array, BoundsLike, Matrix, Table


@linked_to_docs
class RowNormClipper(
    OneToOneFeatureMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    BaseEstimator,  # type: ignore[misc] # as above
):
    """Scale each row whose norm exceeds a public bound down to it.

    After it no record moves a sum of rows by more than `norm`. It learns nothing from
    data.

    Parameters
    ----------
    norm : float, default=1.0
        Public bound of a row's norm, in the units of the features.
    ord : {1, 2, inf}, default=2
        Order of the norm.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Examples
    --------
    >>> from skpuffer.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=5.0).fit_transform([[3.0, 4.0], [6.0, 8.0]])
    array([[3., 4.],
           [3., 4.]])
    """

    def __init__(self, norm: float = 1.0, *, ord: float = 2):
        self.norm = norm
        self.ord = ord

    @all_or_nothing
    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:
        """Validate the parameters and the names of the features; learn nothing."""
        # nothing is kept of the rows, so that refits on other tables are the same
        check_clipping(self.norm, self.ord)
        self._validate(X, reset=True)
        return self

    def transform(self, X: Table) -> Matrix:
        """Scale long rows down.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        X : {ndarray, CSR matrix} of shape (n_records, n_features)
            Rows of norm `norm` at most.
        """
        # row by row, so one record's norm is no matter of another's
        return clip_rows(self._validate(X, reset=False, copy=True), self.norm, self.ord)

    def _validate(self, X: Table, **options: Any) -> Matrix:
        """Check rows, of which no value is quoted in an error."""
        options |= {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
        options |= {"ensure_all_finite": False}
        rows: Matrix = validate_data(self, read_numbers(X), **options)
        # a row with an infinite entry has no multiple of norm `norm`
        if not all_finite(rows):
            raise value_error("preprocessing.rows_not_finite")
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # nothing to learn, so `PublicPreprocessing` takes it as it is
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# -- binner by public edges ------------------------------------------------------------


class PublicBinner(PublicColumnTransformer):
    """Cut columns into cells whose edges are given, not read off the data.

    Quantiles of a private column are values of its records. This binner learns nothing.

    Parameters
    ----------
    bins : dict of {column: array-like of edges}, default=None
        Public ascending edges, one more than there are cells, by name or position.
        Cells are closed below and open above; values outside are in the first or the
        last, and what is missing or no number in a further one. Other columns must be
        numbers.
    schema : Schema, default=None
        Public schema instead, for all of its columns; see
        :class:`~skpuffer.schema.Binning`.
    n_bins : int, default=32
        Cells of a number for which the schema does not say how many.
    encode : {'ordinal', 'onehot'}, default='ordinal'
        Whether to return the cell's number, or a column for each cell.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns before.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

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
            raise type_error("preprocessing.bins_not_dict", bins=self.bins)
        self._edges()

    def _edges(self) -> dict[Any, Number]:
        found = {}
        for name, given in (self.bins or {}).items():
            edges = np.asarray(given, dtype=float)
            if edges.ndim != 1 or len(edges) < 2:
                raise value_error(
                    "preprocessing.bins_too_few_edges", name=name, given=given
                )
            try:
                found[name] = Number(edges[0], edges[-1], bins=tuple(edges))
            except ValueError as error:
                raise value_error(
                    "preprocessing.bins_column_invalid", name=name, error=error
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


# -- imputer by public values ----------------------------------------------------------


@dataclass(frozen=True)
class _Fill:
    """What stands for the missing values of one column, and how these are written."""

    value: Any
    missing: tuple[Any, ...] = ()


class PublicImputer(PublicColumnTransformer):
    """Fill missing values by values that are given, not read off the data.

    A mean of private rows would carry each of them into the rows it fills. This imputer
    learns nothing.

    Parameters
    ----------
    fill : dict of {column: value}, default=None
        Public value that stands for a missing one, by name or position. In a column
        that a number fills, all that is no number is missing. Other columns must be
        numbers.
    schema : Schema, default=None
        Public schema instead, by the `fill` of all of its columns. Levels that it does
        not have are missing too, and numbers are clipped to its bounds.
    missing : sequence, default=()
        Codes that mean a missing value, besides None, NaN and NA. A schema has its own.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

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
            raise type_error("preprocessing.fill_not_dict", fill=self.fill)
        for column, value in (self.fill or {}).items():
            if np.ndim(value):
                raise value_error(
                    "preprocessing.fill_not_one_value", column=column, value=value
                )
            number = isinstance(value, Real)
            if is_missing(value) or (number and not np.isfinite(value)):
                raise value_error(
                    "preprocessing.fill_value_missing", column=column, value=value
                )
        if isinstance(self.missing, str) or not np.iterable(self.missing):
            raise value_error(
                "preprocessing.missing_codes_not_list", missing=self.missing
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
            found = cell_numbers(values)
            codes = level_places(fact.missing, values) != UNLISTED
            known = np.isfinite(found) & ~codes
            return np.where(known, found, float(fact.value))
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


# -- scaler by public bounds -----------------------------------------------------------


class PublicMinMaxScaler(PublicColumnTransformer):
    """Scale columns by bounds that are given, not read off the data.

    The least and the largest value of a private column are two records. This scaler
    learns nothing, and clips to the bounds.

    Parameters
    ----------
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds: numbers, arrays with an entry for each column, or a dict of the
        columns to scale, by name or position. Other columns must be numbers.
    schema : Schema, default=None
        Public schema instead: its numbers are scaled, amounts by their logarithm, and
        missing values are read as it says.
    feature_range : tuple (min, max), default=(0, 1)
        Range of the result.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if all are strings.

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
            raise value_error(
                "preprocessing.bounds_not_public_form", bounds=self.bounds
            )
        check_bounds(self.bounds)
        given: Any = self.feature_range
        pair = isinstance(given, tuple | list) and len(given) == 2
        ends = [check_real(feature_range=end) for end in given] if pair else []
        if not ends or not np.all(np.isfinite(ends)) or not ends[0] < ends[1]:
            raise value_error(
                "preprocessing.feature_range_not_ordered",
                feature_range=self.feature_range,
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
            raise value_error("preprocessing.columns_are_categories", levels=levels)
        return facts

    def _mapped(self, fact: Any, values: Array) -> Array:
        found, missing = numbers(fact, values)
        low, high = fact.scale(np.array([fact.low, fact.high]))
        # halved first: the range of two large bounds could overflow
        share = (fact.scale(found) / 2 - low / 2) / (high / 2 - low / 2)
        least, most = map(float, self.feature_range)
        scaled: Array = np.clip(least + share * (most - least), least, most)
        return scaled if self.schema is not None else np.where(missing, np.nan, scaled)
