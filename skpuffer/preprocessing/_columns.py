"""Base of transformers that map columns by public facts, and learn nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from skpuffer.base import all_or_nothing
from skpuffer.exceptions import Statement, type_error, value_error
from skpuffer.schema import Schema
from skpuffer.utils._reading import (
    as_numbers,
    column_names,
    is_frame,
    object_rows,
    read_table,
    to_pandas,
)
from skpuffer.utils._sklearn import linked_to_docs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Array, Table


@linked_to_docs
class PublicColumnTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """Base of transformers of columns by public facts of each.

    A subclass has the parameter `schema` and another that says the same of columns.
    Other columns must be numbers. Cells are never refused, as they are private.
    """

    schema: Schema | None

    # -- what a subclass says -----------------------------------------------------

    #: Parameter that says of columns what a code book does.
    _parameter: str

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters, except for the names of columns."""

    @abstractmethod
    def _said(self, names: list[Any]) -> dict[Any, Any]:
        """Return what the parameter says of columns, without a code book, by name."""

    @abstractmethod
    def _mapped(self, fact: Any, values: Array) -> Array:
        """Return what becomes of a column, of shape (n,) or (n, n_outputs)."""

    def _names_of(self, fact: Any, name: str) -> list[str]:
        """Return the names of what becomes of a column."""
        return [name]

    # -- the transformer ----------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:
        """Validate the parameters and the names of the columns; learn nothing."""
        self._read(X, reset=True)
        return self

    def transform(self, X: Table) -> Array:
        """Map the columns of which something is said."""
        return np.column_stack(self._read(X, reset=False))

    def _read(self, X: Table, reset: bool) -> list[Array]:
        self._check_all()
        frame, names = read_columns(self, X, reset=reset)
        facts = self._facts(names)
        said = self._parameter if self.schema is None else "schema"
        return [
            self._mapped(facts[i], frame.iloc[:, i].to_numpy(dtype=_plain(frame, i)))
            if i in facts
            else as_number(frame.iloc[:, i], name, np.float64, said)
            for i, name in enumerate(names)
        ]

    def _check_all(self) -> None:
        if self.schema is not None:
            if not isinstance(self.schema, Schema):
                raise type_error(
                    "schema.not_a_schema", schema_type=type(self.schema).__name__
                )
            if getattr(self, self._parameter) is not None:
                raise value_error(
                    "preprocessing.columns_and_schema_both_given",
                    parameter=self._parameter,
                )
        self._check()

    def _facts(self, names: list[Any]) -> dict[int, Any]:
        """What is said of columns, by position."""
        schema = self.schema
        if schema is None:
            said = self._said(names)
        elif names == list(range(len(schema))) and names[:1] != list(schema.names[:1]):
            # columns of an array go by position
            said = {i: schema[name] for i, name in enumerate(schema.names)}
        else:
            # a whole code book may be given, of which the table has some columns
            said = {name: schema[name] for name in names if name in schema}
        return {i: said[name] for i, name in enumerate(names) if name in said}

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the columns that `transform` makes."""
        before = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        # facts are of columns as the data names them, whatever they are called here
        known = getattr(self, "feature_names_in_", range(self.n_features_in_))
        facts = self._facts(list(known))
        made: list[str] = []
        for i, name in enumerate(before):
            made += self._names_of(facts[i], name) if i in facts else [name]
        return np.array(made, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # nothing to learn, so `PublicPreprocessing` takes it as it is
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def by_name(parameter: str, given: dict[Hashable, Any], names: list[Any]) -> None:
    """Refuse a dict that names columns which are not there."""
    unknown = [column for column in given if column not in names]
    if unknown:
        raise value_error(
            "preprocessing.columns_unknown",
            parameter=parameter,
            unknown=unknown,
            names=names,
        )


def read_columns(
    transformer: Any, X: Table, reset: bool
) -> tuple[pd.DataFrame, list[Any]]:
    """Validate a table of any cells; return it as a frame, and its columns' names."""
    X = read_table(object_rows(X))
    if is_frame(X):
        names = list(column_names(X) or ())
        validate_data(transformer, X, skip_check_array=True, reset=reset)
        return to_pandas(X), names
    X = validate_data(transformer, X, dtype=None, ensure_all_finite=False, reset=reset)
    return pd.DataFrame(X), list(range(X.shape[1]))


def as_number(
    column: pd.Series, name: Any, dtype: DTypeLike, parameter: str = "categories"
) -> Array:
    """Return a column as numbers; text and dates are none, even if NumPy reads them."""
    # Numbers written as text may be codes, and the number of a date depends on its
    # unit: the user must say what such a column is.
    values = column.to_numpy()
    text = values.dtype.kind in "OU" and any(isinstance(v, str) for v in values)
    dates = pd.api.types.is_datetime64_any_dtype(
        column
    ) or pd.api.types.is_timedelta64_dtype(column)
    if dates or text or isinstance(column.dtype, pd.CategoricalDtype):
        remedy = Statement(
            "preprocessing.remedy_say_column", parameter=parameter, name=name
        )
        if parameter == "categories":
            remedy = Statement("preprocessing.remedy_give_categories", name=name)
        if parameter == "schema":
            remedy = Statement("preprocessing.remedy_add_to_schema")
        raise value_error("preprocessing.column_not_numeric", name=name, remedy=remedy)
    return as_numbers(
        values, partial(Statement, "preprocessing.which_column", name=name)
    ).astype(dtype)


def _plain(frame: pd.DataFrame, i: int) -> type | None:
    # plain values: the levels of a type are those of a table, not of the code book
    categorical = isinstance(frame.dtypes.iloc[i], pd.CategoricalDtype)
    return object if categorical else None
