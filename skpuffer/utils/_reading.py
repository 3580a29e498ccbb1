"""Reading and validation of tables of any library, with errors that quote nothing.

The checks of scikit-learn and NumPy quote what they refuse, so what they would refuse
is refused here first.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from numbers import Complex, Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from skpuffer.exceptions import Statement, type_error, value_error
from skpuffer.kernel.numbers import Booleans, Indices, floats

# -- tables of any library ------------------------------------------------------------


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame (pandas, polars, or another eager one)."""
    if isinstance(X, pd.DataFrame | np.ndarray):  # what it nearly always is
        return isinstance(X, pd.DataFrame)
    return nw.dependencies.is_into_dataframe(X)


#: Size of a float in a table that is mapped: no square of it overflows.
LARGEST = 1e100

#: What is done with a lazy data frame whose rows must be read.
COLLECT = Statement("table.collect_into_memory")

#: What is said of a data frame whose columns cannot be told apart.
REPEATED_NAMES = Statement("table.column_names_repeated")


def is_lazy(X: Any) -> bool:
    """Whether `X` is a lazy data frame, whose rows another engine holds."""
    # what it nearly always is
    if isinstance(X, pd.DataFrame | np.ndarray | list) or X is None:
        return False
    known = nw.dependencies
    return isinstance(X, nw.LazyFrame) or any(
        is_kind(X)
        for is_kind in (
            known.is_polars_lazyframe,
            known.is_duckdb_relation,
            known.is_dask_dataframe,
            known.is_ibis_table,
            known.is_pyspark_dataframe,
            known.is_pyspark_connect_dataframe,
            known.is_sqlframe_dataframe,
        )
    )


def refuse_lazy(X: Any) -> None:
    """Refuse a lazy data frame where rows are read."""
    if is_lazy(X):
        raise type_error("table.lazy_frame", collect=COLLECT)


def as_table(X: Any) -> Any:
    """Return lists of rows as an array of objects, and anything with a shape as it is.

    An array of objects, as the text of a secret column must be kept.
    """
    refuse_lazy(X)
    refuse_mask(X, "X")
    return X if hasattr(X, "shape") or is_frame(X) else np.asarray(X, dtype=object)


def object_rows(X: Any) -> Any:
    """Return lists of rows as an array of objects, and anything else as it is.

    An array of numbers would make numbers of the truth values that stand beside them,
    in all rows as soon as a single one holds a number.
    """
    if not isinstance(X, list | tuple):
        return X
    try:
        return np.asarray(X, dtype=object)
    except Exception:  # refused later, where nothing of it is quoted
        return X


def column_names(X: Any) -> tuple[Any, ...] | None:
    """Return the column names of a frame as a tuple, or None for anything else."""
    if isinstance(X, pd.DataFrame):
        if not X.columns.is_unique:
            raise ValueError(REPEATED_NAMES)
        return tuple(X.columns.tolist())  # as below, which is slow to find out
    if not is_frame(X):
        return None
    return tuple(nw.from_native(X, eager_only=True).columns)


def matching_names(X: Any) -> tuple[Any, ...] | None:
    """Return column names that say what a column is, or None.

    Integers are what pandas numbers columns with when nobody names them: as positions
    they mean another column as soon as one is left out.
    """
    names = column_names(X)
    if names is None or all(isinstance(name, Integral) for name in names):
        return None
    return names


def row_count(X: Any) -> int:
    """Return the number of records of a frame, an array or a sparse matrix."""
    # sparse matrices have no length
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(X)
    except TypeError:
        raise value_error(
            "table.not_rows_of_records", x_type=type(X).__name__
        ) from None


def to_pandas(X: Any, columns: Iterable[Any] | None = None) -> pd.DataFrame:
    """Return a pandas frame with the same columns, or an array's with names 0, 1, …

    Column by column through NumPy, because a frame's own conversion may need an
    optional library that is not ours to require.
    """
    if isinstance(X, pd.DataFrame):
        return X if columns is None else X.loc[:, list(columns)]
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        names = frame.columns if columns is None else columns
        return pd.DataFrame({name: cells_of(frame[name]) for name in names})
    frame = pd.DataFrame(np.asarray(X))
    return frame if columns is None else frame.loc[:, list(columns)]


def cells_of(column: nw.Series[Any]) -> NDArray[Any]:
    """Return the cells of a frame's column as an array, whatever they hold."""
    try:
        cells = column.to_numpy()
        if cells.ndim == 1:  # not of structures, or of arrays of one length
            return cells
        return object_cells(column.to_list())
    # narwhals may ask what is missing, which a signalling NaN does not answer; or the
    # column is of a type that NumPy lacks, as of whole numbers beyond 64 bits
    except Exception:
        return object_cells(column.to_list())


def held_as_codes(column: Any) -> Any:
    """Return a column of categories or texts as pandas holds it, None for any other.

    Which of these are equal, pandas tells without an object for each: in Arrow, if that
    is where they lie. Other libraries do too; their codes are taken over.
    """
    kind = column.dtype
    if isinstance(column, nw.Series):
        # objects, of which some are taken for texts by the first of them
        if column.implementation.is_pandas_like():
            return None
        known = isinstance(kind, nw.String | nw.Categorical | nw.Enum)
        return _categorical(column.cast(nw.String)) if known else None
    texts = isinstance(kind, pd.api.extensions.ExtensionDtype) and kind.type is str
    return column.array if texts or isinstance(kind, pd.CategoricalDtype) else None


def _categorical(texts: nw.Series[Any]) -> pd.Categorical:
    levels = texts.drop_nulls().unique().to_list()
    codes = np.full(len(texts), -1)
    if levels:
        order = list(range(len(levels)))
        found = texts.replace_strict(levels, order, return_dtype=nw.Int64)
        codes = found.fill_null(-1).to_numpy()
    return pd.Categorical.from_codes(codes, pd.Index(levels, dtype=object))


def object_cells(values: Iterable[Any]) -> NDArray[Any]:
    """Return values as an array of objects of one dimension, even if all are lists."""
    return np.fromiter(values, dtype=object)


def missing_cells(values: NDArray[Any]) -> Booleans:
    """Tell which cells are missing: none of those that cannot be compared."""
    try:
        missing: Booleans = pd.isna(values)
        return missing
    except ArithmeticError:  # a signalling NaN, which is no number either
        return np.zeros(values.shape, dtype=bool)


def distinct_names(names: Iterable[Any]) -> list[Any]:
    """Return names of columns made of others, of which no two are the same.

    The first of those that are stays as it is, and each later one is given the first
    number that makes it a new name: ``a_b_c`` and ``a_b_c_2``.
    """
    listed = list(names)
    taken, found = set(listed), []
    used: set[Any] = set()
    for name in listed:
        made, count = name, 2
        while made in used or (made != name and made in taken):
            made, count = f"{name}_{count}", count + 1
        used.add(made)
        found.append(made)
    return found


def drop_position(X: Any, position: int) -> tuple[Any, NDArray[Any]]:
    """Split off one column by position."""
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        name = frame.columns[position]
        # not frame[name]: a name that is a number would be read as a row
        # by place, as a name may look like a pattern of names
        rest = [i for i, other in enumerate(frame.columns) if other != name]
        return frame[:, rest].to_native(), cells_of(frame.get_column(name))
    # columns are cheap to take in this format; rows, in the one it goes back to
    if hasattr(X, "tocsc"):
        keep = np.delete(np.arange(X.shape[1]), position)
        column = X.tocsc()
        return column[:, keep].tocsr(), column[:, [position]].toarray().ravel()
    X = np.asarray(X)
    return np.delete(X, position, axis=1), X[:, position]


# -- reading, and what is refused -----------------------------------------------------


def read_table(X: Any) -> Any:
    """Return a table whose cells are of any kind, in two dimensions."""
    if is_frame(X):
        column_names(X)  # which must differ
        return X
    refuse_lazy(X)
    X = _as_array(X, "X")
    if X.ndim < 2:
        what = "scalar" if X.ndim == 0 else f"{X.ndim}D"
        raise value_error("table.not_two_dimensional", what=what, dtype=X.dtype)
    return X


def read_numbers(X: Any) -> Any:
    """Return a table whose cells are numbers, NaN where one is missing."""
    X = read_table(X)
    # column by column: one of text must not turn the others into objects
    if is_frame(X):
        return _numeric_frame(X)
    # by its type alone: no cell is looked at
    if sparse.issparse(X) or X.dtype.kind in "biuf":
        return X
    # scikit-learn refuses it later, in words that tests of its API expect
    if X.ndim > 2:
        return as_numbers(X, partial(Statement, "table.where_x"))
    # by column, so that the message can name the one to look at, and no cell of it
    columns = [
        as_numbers(column, partial(Statement, "table.where_x_column_position", i=i))
        for i, column in enumerate(X.T)
    ]
    return np.column_stack(columns) if columns else np.empty(X.shape)


def read_labels(y: Any, *, numeric: bool = False, missing: bool = False) -> Any:
    """Return targets of any kind, or only such as are finite numbers."""
    if y is None:
        return y
    # scikit-learn refuses some by itself, and quotes their cells
    if sparse.issparse(y):
        raise type_error("target.sparse_matrix")
    # where what is no target counts as nothing, a complex number is none either
    y = _as_array(y, "y", refuse_complex=not missing)
    if numeric:
        y = as_numbers(y, partial(Statement, "target.subject_parameter_y"))
    if missing:
        # as objects, of which none is refused, and then quoted, by scikit-learn
        return y.astype(object) if y.dtype.kind == "c" else y
    # infinity is missing as well: no loss of it is finite
    if np.any(~np.isfinite(y) if y.dtype.kind == "f" else missing_cells(y)):
        raise value_error("target.missing_values", dtype=y.dtype)
    if y.dtype == object and y.ndim == 1:
        # whole numbers among objects, as which scikit-learn takes no labels
        y = pd.Series(y).infer_objects().to_numpy()
    return y


def read_secret(secret: Any, name: str = "secret") -> NDArray[Any]:
    """Return the values of the secret, one for each record."""
    refuse_mask(secret, name)
    values = None if sparse.issparse(secret) else np.asarray(secret)
    if values is None or values.ndim != 1:
        raise value_error(
            "table.secret_not_one_per_record",
            name=name,
            secret_type=type(secret).__name__,
            found=""
            if values is None
            else Statement("table.of_shape", shape=values.shape),
        )
    return values


def read_groups(groups: Any) -> Indices:
    """Return the number of each record's group, from 0 in order of appearance."""
    held = read_secret(groups, "groups")
    if held.dtype == object and not all(of.__hash__ for of in set(map(type, held))):
        raise type_error("table.groups_not_comparable")
    codes: Indices = pd.factorize(held)[0]
    if np.any(codes < 0):
        raise value_error("table.groups_missing_values")
    return codes


def as_numbers(values: NDArray[Any], where: Callable[[], Statement]) -> NDArray[Any]:
    """Return an array of numbers, NaN where one is missing.

    Text that reads as a number is one; dates are none, even if NumPy could read them.
    """
    # first, as a cast to floats would drop the imaginary parts
    _refuse_complex(values, where)
    kind = values.dtype.kind
    if kind in "biuf":
        return values

    # the dtype helps to find the cause, and quotes no cell
    def told() -> Statement:
        return Statement("table.where_with_dtype", where=where(), dtype=values.dtype)

    missing = missing_cells(values)
    present = values[~missing]
    if kind == "O":
        held = {type(value) for value in present}
        others = [h for h in held if not issubclass(h, (Real, Decimal, str, bytes))]
        # dates first: their remedy is another one than that of other objects
        if any(issubclass(h, (np.datetime64, np.timedelta64)) for h in others):
            kind = "M"
        elif others:
            raise type_error("table.objects_of_other_types", where=told())
    if kind in "mMV":
        raise value_error("table.dates_or_structures", where=told())
    numbers = np.full(values.shape, np.nan)
    # without the missing ones, such as pandas' NA, which no cast takes
    read = floats(present)
    if read is None:
        raise value_error("table.text_or_beyond_floats", where=told())
    numbers[~missing] = read
    return numbers


def all_finite(X: Any) -> bool:
    """Whether all numbers of an array or a sparse matrix are finite."""
    # asked whatever scikit-learn's switches say: clipping, and so the promise, needs it
    with config_context(assume_finite=False):
        try:
            assert_all_finite(X)
        except ValueError:
            return False
    return True


def bounded(X: Any, mapped: bool = False) -> Any:
    """Return a table whose finite numbers are so small that no map of one overflows.

    Infinity is bounded only if a map made the table (`mapped`).
    """
    if isinstance(X, pd.DataFrame):
        for i in range(X.shape[1]):
            old = X.iloc[:, i].to_numpy()
            if (new := bounded(old, mapped)) is not old:
                X = X.copy(deep=False)
                X.isetitem(i, new)
        return X
    if sparse.issparse(X):
        if (data := bounded(X.data, mapped)) is not X.data:
            X = X.copy()
            X.data = data
        return X
    # of less precision none is so large
    if getattr(X, "dtype", None) != np.float64:
        return X
    large = (np.abs(X) > LARGEST) & (mapped | np.isfinite(X))
    return np.where(large, np.clip(X, -LARGEST, LARGEST), X) if large.any() else X


def _as_array(values: Any, name: str, refuse_complex: bool = True) -> Any:
    """A plain array without a mask, or a sparse matrix, of real entries."""
    if sparse.issparse(values):
        _refuse_complex(values, partial(Statement, "table.where_parameter", name=name))
        return values
    refuse_mask(values, name)
    if isinstance(values, np.matrix):
        raise type_error("table.numpy_matrix", name=name)
    array = _plain_array(values)
    if array is None:
        raise value_error(
            "table.not_an_array", name=name, values_type=type(values).__name__
        )
    if refuse_complex:
        _refuse_complex(array, partial(Statement, "table.where_parameter", name=name))
    return array


def _plain_array(values: Any) -> NDArray[Any] | None:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "USmM" and not hasattr(values, "__array__"):
            # a list that mixes numbers with text or dates: none becomes the other
            array = np.asarray(values, dtype=object)
    # whatever foreign code raises may quote a cell, so no word of it is passed on
    except Exception:
        try:  # of a type that NumPy lacks, as of whole numbers beyond 64 bits
            return object_cells(values.to_list())
        except Exception:
            return None
    return array


def _refuse_complex(array: Any, where: Callable[[], Statement]) -> None:
    kinds = {array.dtype.type}
    if array.dtype.kind == "O":
        kinds = set(map(type, array.flat))
    # every real number is a complex one to Python
    if any(issubclass(k, Complex) and not issubclass(k, Real) for k in kinds):
        raise value_error("table.complex_numbers", where=where(), dtype=array.dtype)


def _numeric_frame(X: Any) -> Any:
    """The frame; with all columns as numbers where the dtype of one is not a number."""
    # the usual case without narwhals
    if isinstance(X, pd.DataFrame) and all(map(_is_pandas_number, X.dtypes)):
        return X
    frame = nw.from_native(X, eager_only=True)
    if all(_is_number(X, name, dtype) for name, dtype in frame.schema.items()):
        return X
    # converted only here, where it must be: most tables are numbers already
    columns = {
        name: as_numbers(
            cells_of(frame.get_column(name)),
            partial(Statement, "table.where_x_column_name", name=name),
        )
        for name in frame.columns
    }
    return pd.DataFrame(columns)


def _is_number(X: Any, name: Any, dtype: Any) -> bool:
    if isinstance(X, pd.DataFrame):
        return _is_pandas_number(X.dtypes[name])
    # narwhals has them as a type of their own
    wide = dtype in (nw.Int128, nw.UInt128)  # one large cell makes a column of these
    return bool((dtype.is_numeric() and not wide) or dtype == nw.Boolean)


def _is_pandas_number(dtype: Any) -> bool:
    types = pd.api.types
    # booleans are numbers to pandas, and are read as zeros and ones
    return types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)


def validate_rows(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate as scikit-learn does, but quote nothing and advise on NaN."""
    # float32 stays float32: the caller's own options win
    options = {"dtype": [np.float64, np.float32]} | options
    # finiteness is asked below: what scikit-learn advises, an imputer, would leak
    options |= {"accept_sparse": estimator._accept_sparse, "ensure_all_finite": False}
    # before scikit-learn: what it refuses, it quotes
    X = read_numbers(X)
    if column_names(X) == ():
        raise value_error("table.without_columns")
    numeric = options.get("y_numeric", False)
    targets = [read_labels(v, numeric=numeric) for v in y]
    if hasattr(estimator, "feature_map_"):
        # read by its code book, which knows the raw columns; what it gives has others
        del options["reset"]
        checked = check_array(X, **options)
    else:
        # sets the number and the names of features in a fit, and compares with them
        # later
        checked = validate_data(estimator, X, *targets, **options)
    if not all_finite(checked[0] if targets else checked):
        name = type(estimator).__name__
        raise value_error("table.not_finite", name=name)
    # what a step makes of a record must not end the fit of the next one
    return checked if options.get("reset", True) else bounded(checked)


def validate_labels(estimator: Any, X: Any, y: Any) -> tuple[Any, Indices]:
    """Validate, set `classes_`, and encode the target as class indices.

    For a classifier without public labels: those of the table are taken as such.
    """
    X, y = validate_rows(estimator, X, y)
    classes = ordered_labels(y, "y")
    check_classification_targets(y)
    if len(classes) < 2:
        raise value_error("target.one_class_only", estimator=type(estimator).__name__)
    # last: an attribute that only a sound target sets
    estimator.classes_ = classes
    return X, np.searchsorted(classes, y)


def ordered_labels(labels: Any, name: str) -> NDArray[Any]:
    """Return distinct labels in their order."""
    try:
        return np.unique(labels)
    except TypeError:
        pass
    raise value_error("target.label_types_mixed", name=name)


def refuse_mask(values: object, name: str) -> None:
    """Refuse a masked array, whose masked values would be read."""
    # `asarray` drops the mask, and what was hidden would be computed with
    if np.ma.is_masked(values):
        raise value_error("table.masked_array", name=name)


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` entries that cover a range; the last may be short."""
    # scikit-learn's gen_batches checks its parameters at every call: as long as a step
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


# Number of entries of a temporary that stays in cache.
_PART_ENTRIES = 2**16


def row_parts(X: Any) -> Iterator[slice]:
    """Yield slices of rows, a copy of which stays in cache."""
    n, m = X.shape
    # of a sparse matrix, by what a row holds in the mean
    held = X.nnz / max(1, n) if sparse.issparse(X) else m
    yield from slices(n, max(1, int(_PART_ENTRIES // max(1, held))))
