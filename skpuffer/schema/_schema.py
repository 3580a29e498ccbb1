"""Schema of a table: its public code book."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count, check_option

from . import _files, _public
from ._binning import Binning
from ._cells import column_arrays, level_places, numbers
from ._check import TableCheck, check_table, column_types, draft, refuse_types
from ._columns import (
    Category,
    Column,
    Number,
    as_column,
    differing_fields,
    entries,
)
from ._encoding import Encoding

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.utils._types import RandomState, Table


class _UnknownColumnError(KeyError):
    def __str__(self) -> str:
        # a key error shows the repr of what it is given
        return str(self.args[0])


class Schema:
    """Describe a table by public facts: bounds, levels, gaps, units, the target.

    Its contents must be known without the private rows. Estimators with the parameter
    `schema` read raw tables by it, in `fit` and `predict` alike. Values outside of it
    are read as the nearest public value, or as missing.

    Parameters
    ----------
    columns : dict of {column: entry}
        An entry is a pair ``(low, high)``, a list of levels, a :class:`Number`, a
        :class:`Category`, or a dict of their fields. Columns of a data frame go by
        name, those of an array in this order.
    target : str or int, default=None
        Which of the columns is the target.
    size : {'public', 'private'} or int, default=None
        Number of records: 'public' (None) reads it off the table; 'private' releases it
        with noise where needed; an integer is declared and used instead. Estimators
        that need the exact number refuse the latter two.

    Attributes
    ----------
    names : tuple
        Names of the features.
    target : str, int or None
    classes : tuple or None
        Levels of the target, if it is a category.
    target_bounds : (float, float) or None
        Bounds of the target, if it is a number.
    size : {'public', 'private'}, int or None

    Examples
    --------
    >>> from skpuffer.schema import Number, Schema
    >>> schema = Schema(
    ...     {
    ...         "age": (17, 90),
    ...         "sex": ["Female", "Male"],
    ...         "gain": Number(0, 100_000, amount=True, unit="dollars"),
    ...         "income": ["<=50K", ">50K"],
    ...     },
    ...     target="income",
    ... )
    >>> schema.names, schema.classes
    (('age', 'sex', 'gain'), ('<=50K', '>50K'))
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    def __init__(
        self,
        columns: Mapping[Hashable, Any],
        *,
        target: Hashable | None = None,
        size: int | str | None = None,
    ) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise value_error(
                "schema.columns_not_a_dict", columns_type=type(columns).__name__
            )
        held = {name: as_column(name, given) for name, given in columns.items()}
        if target is not None and target not in held:
            raise value_error(
                "schema.target_not_a_column", columns=list(held), target=target
            )
        self._columns: dict[Hashable, Column] = held
        if isinstance(size, str):
            check_option(("public", "private"), size=size)
        elif size is not None:
            size = check_count(size=size)
        self._target, self._size = target, size
        self._names = tuple(name for name in held if name != target)

    # -- what it says -------------------------------------------------------------

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the features."""
        return self._names

    @property
    def target(self) -> Any:
        """Name of the target, or None."""
        return self._target

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Levels of the target, if it is a category."""
        column = None if self._target is None else self._columns[self._target]
        return column.levels if isinstance(column, Category) else None

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Bounds of the target, if it is a number."""
        column = None if self._target is None else self._columns[self._target]
        return (column.low, column.high) if isinstance(column, Number) else None

    @property
    def size(self) -> int | str | None:
        """How much estimators may know of the number of records."""
        return self._size

    def __getitem__(self, name: Hashable) -> Column:
        if name not in self._columns:
            raise _UnknownColumnError(Statement("schema.column_unknown", name=name))
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    # -- parts of it --------------------------------------------------------------

    def select(self, names: Iterable[Hashable]) -> Self:
        """Return the schema of the features `names`, and of the target."""
        names = list(names)
        unknown = [name for name in names if name not in self._names]
        if self._target is not None and self._target in unknown:
            raise value_error("schema.select_names_target", target=self._target)
        if unknown:
            raise value_error(
                "schema.select_unknown_features",
                unknown=unknown,
                names=list(self._names),
            )
        kept = {name: self._columns[name] for name in names}
        if self._target is not None:
            kept[self._target] = self._columns[self._target]
        return type(self)(kept, target=self._target, size=self._size)

    def without(self, *names: Hashable) -> Self:
        """Return the schema without some columns, whether or not it has them."""
        kept = {k: v for k, v in self._columns.items() if k not in names}
        target = None if self._target in names else self._target
        return type(self)(kept, target=target, size=self._size)

    def with_target(self, target: Hashable | None) -> Self:
        """Return the schema with another of its columns as the target, or none."""
        return type(self)(self._columns, target=target, size=self._size)

    def check_units(self, units: Mapping[Hashable, str]) -> None:
        """Refuse units that are not those of the columns.

        An estimator cannot see that a number is in another unit: say so here.

        Parameters
        ----------
        units : dict of {column: str}
        """
        for name, unit in units.items():
            if name not in self:
                raise value_error(
                    "schema.units_unknown_column",
                    name=name,
                    columns=list(self._columns),
                )
            if self[name].unit != unit:
                raise value_error(
                    "schema.units_differ",
                    name=name,
                    unit=unit,
                    schema_unit=self[name].unit,
                )

    # -- how tables are read by it ------------------------------------------------

    def binning(
        self,
        n_bins: int = 32,
        n_amount_bins: int = 256,
        n_halvings: int | None = None,
    ) -> Binning:
        """Return the map to cells; see :class:`Binning`."""
        return Binning(self, n_bins, n_amount_bins, n_halvings)

    def encoding(self, scale: str = "unit_ball") -> Encoding:
        """Return the map to numbers; see :class:`Encoding`."""
        return Encoding(self, scale)

    def check(self, X: Table, y: ArrayLike | None = None) -> TableCheck:
        """Count how the cells of a table are read, before a budget is spent.

        The counts are exact and as private as the table: do not release them.

        Parameters
        ----------
        X : {data frame, lazy data frame, array-like} of shape (n, n_columns)
        y : array-like of shape (n,), default=None
            The target, if it is no column of the table.

        Returns
        -------
        TableCheck
            How many cells of each column are missing, clipped, unlisted or unreadable,
            and the position of one to look at. Nothing raises for what a cell holds.

        Examples
        --------
        >>> from skpuffer.schema import Schema
        >>> found = Schema({"age": (17, 90)}).check([[30], [95], ["old"]])
        >>> found.to_frame()[["column", "clipped", "unreadable", "example"]]
          column  clipped  unreadable  example
        0    age        1            1        1
        """
        return check_table(self, X, y)

    def frame(self, X: Table) -> pd.DataFrame:
        """Return the features of a table by their names, and nothing else of it."""
        arrays = column_arrays(X, self._names)
        refuse_types(self, column_types(X), dict(zip(self._names, arrays, strict=True)))
        # columns as they are, as a copy would take as much memory as the table; what is
        # coded as plain values, without the levels that a table gave it; and texts as
        # objects, as one cell may be no text that Arrow takes
        own = pd.api.extensions.ExtensionArray
        held = {
            name: pd.Series(np.asarray(values, object), dtype=object, copy=False)
            if isinstance(values, own) or values.dtype == object
            else values
            for name, values in zip(self._names, arrays, strict=True)
        }
        return pd.DataFrame(held, copy=False)

    def class_codes(self, y: ArrayLike) -> Indices:
        """Return the position of each label in `classes`, -1 for what is none."""
        column = self._target_column(Category)
        return np.maximum(level_places(column.levels, np.asarray(y)), -1)

    def target_numbers(self, y: ArrayLike) -> Floats:
        """Return a numeric target within its bounds, NaN for what is no number."""
        values, missing = numbers(self._target_column(Number), np.asarray(y))
        return np.where(missing, np.nan, values)

    def _target_column(self, kind: type) -> Any:
        column = None if self._target is None else self._columns[self._target]
        if not isinstance(column, kind):
            raise value_error(
                "schema.target_wrong_kind", kind=kind.__name__, target=self._target
            )
        return column

    # -- files of private tables --------------------------------------------------

    def read_csv(
        self, source: str | PathLike[str], *, engine: str = "pandas", **options: Any
    ) -> Any:
        r"""Read a table from a CSV file as the schema says.

        Every column is read as text first, so no cell changes how another one is read.
        Columns that are numbers in the schema become numbers, missing where a cell is
        none.

        Parameters
        ----------
        source : str, path-like or file
        engine : {'pandas', 'polars'}, default='pandas'
            Library that reads the file, and whose data frame is returned.
        **options : dict
            Further options of the library's `read_csv`, such as the separator.

        Returns
        -------
        data frame
            All columns of the file; what the schema does not name is text.

        Examples
        --------
        >>> import io
        >>> from skpuffer.schema import Schema
        >>> schema = Schema({"age": (17, 90), "grade": [1, 2, 3]})
        >>> table = schema.read_csv(io.StringIO("age,grade\n30,1\nold,2\n41,?\n"))
        >>> table["age"].tolist()
        [30.0, nan, 41.0]
        >>> schema.binning(n_bins=2)(table)[:, 1]
        array([0, 1, 3], dtype=uint8)
        """
        return _files.read_csv(self, source, engine, options)

    def scan_csv(self, source: str | PathLike[str], **options: Any) -> Any:
        r"""Return a CSV file as a lazy frame of Polars, whose columns are texts.

        Estimators that sum lazy frames read the texts by their `schema`, cell by cell.

        Parameters
        ----------
        source : str or path-like
        **options : dict
            Further options of `polars.scan_csv`.

        Returns
        -------
        polars.LazyFrame

        Examples
        --------
        >>> import tempfile
        >>> from skpuffer.schema import Schema
        >>> schema = Schema({"age": (17, 90)})
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     _ = file.write("age\n30\nold\n")
        ...     _ = file.seek(0)
        ...     schema.scan_csv(file.name).collect()["age"].to_list()
        ['30', 'old']
        """
        return _files.scan_csv(source, options)

    def read_parquet(self, source: str | PathLike[str], **options: Any) -> pd.DataFrame:
        """Read a table from a Parquet file as the schema says.

        Columns that are numbers in the schema become numbers, missing where a cell is
        none.

        Parameters
        ----------
        source : str or path-like
        **options : dict
            Further options of ``pandas.read_parquet``.

        Returns
        -------
        DataFrame
            All columns of the file.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from skpuffer.schema import Schema
        >>> schema = Schema({"age": (17, 90)})
        >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        ...     pd.DataFrame({"age": ["30", "old"]}).to_parquet(file.name)
        ...     schema.read_parquet(file.name)["age"].tolist()
        [30.0, nan]
        """
        return _files.read_parquet(self, source, options)

    # -- where it comes from, and goes to -----------------------------------------

    @classmethod
    def from_parameters(
        cls,
        names: Sequence[Hashable],
        *,
        bounds: Any = None,
        categories: Mapping[Hashable, Sequence[Any]] | None = None,
        amounts: Sequence[Hashable] = (),
    ) -> Self:
        """Return the schema of the columns `names` by an estimator's own parameters."""
        return cls(entries(list(names), bounds, categories, amounts))

    @classmethod
    def from_public(
        cls,
        table: Table,
        *,
        target: Hashable | None = None,
        max_levels: int = 20,
        amounts: Sequence[Hashable] = (),
        missing: Sequence[Any] = (),
    ) -> Self:
        """Return the schema of a *public* table: its ranges, levels, moments and gaps.

        Never use the private table: a range or a rare level read off it is a leak.

        Parameters
        ----------
        table : data frame
            Public rows.
        target : str, default=None
        max_levels : int, default=20
            Text of more levels is refused. A number of up to two values is a category.
        amounts : sequence of str, default=()
            Columns that are amounts.
        missing : sequence, default=()
            Codes that mean a missing value, in any column.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If a column has no value, an infinite one, or too many levels.
        """
        read = functools.partial(
            _public.public_column, max_levels=max_levels, missing=tuple(missing)
        )
        return cls(_public.columns_of(table, read, amounts), target=target)

    def draw(self, n: int, random_state: RandomState = None) -> pd.DataFrame:
        """Draw made-up rows, to try code on before there is a table.

        Each cell is drawn by itself, evenly from what its column may hold.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy.

        Returns
        -------
        DataFrame of shape (n, n_columns)
            Of the features and the target.

        Examples
        --------
        >>> from skpuffer.schema import Number, Schema
        >>> schema = Schema({"age": Number(17, 90, integer=True), "sex": ["F", "M"]})
        >>> rows = schema.draw(1000)
        >>> rows.shape, bool(rows["age"].between(17, 90).all())
        ((1000, 2), True)
        """
        rng, _ = noise_generator(random_state)
        return _public.drawn_rows(self._columns, check_count(n=n), rng)

    @classmethod
    def draft(cls, X: Table, *, target: Hashable | None = None) -> str:
        """Return code of a schema to fill in, from names and types of columns alone.

        No cell is read. Complete the draft from a questionnaire, a standard or an
        earlier public release.

        Parameters
        ----------
        X : {data frame, lazy data frame}
        target : str, default=None

        Returns
        -------
        str
            Python code of a :class:`Schema` with ``...`` for what must be known.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpuffer.schema import Schema
        >>> table = pd.DataFrame({"age": [30], "sex": ["F"]})
        >>> print(Schema.draft(table))
        Schema(
            {
                'age': Number(..., ..., integer=True),  # Int64
                'sex': Category([...]),  # String
            },
        )
        """
        return draft(X, target)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return a schema from ``{'columns': {...}, 'target': ..., 'size': ...}``."""
        mapping = isinstance(given, Mapping)
        unknown = set(given) - {"columns", "target", "size"} if mapping else given
        if not mapping or unknown or "columns" not in given:
            raise value_error(
                "schema.dict_form_invalid",
                given=sorted(map(str, given)) if mapping else given,
            )
        return cls(given["columns"], target=given.get("target"), size=given.get("size"))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, which :meth:`from_dict` reads."""
        columns = {name: differing_fields(c) for name, c in self._columns.items()}
        size = {} if self._size is None else {"size": self._size}
        return {"columns": columns, "target": self._target, **size}

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """Return a schema from a JSON text or file.

        Bounds are written as ``{"bounds": [17, 90]}``; a list of two numbers is
        refused.

        Parameters
        ----------
        source : str or path-like
            The text, or the path of a file.

        Returns
        -------
        Schema
        """
        return cls.from_dict(_files.unambiguous(_files.read_json(source)))

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return it as JSON; written to a file too, if there is a path."""
        return _files.write(_files.json_text(self.to_dict()), path)

    @classmethod
    def from_yaml(cls, source: str | PathLike[str]) -> Self:
        """Return a schema from a YAML text or file, as from JSON; needs PyYAML."""
        return cls.from_dict(_files.unambiguous(_files.read_yaml(source)))

    def to_yaml(self, path: str | PathLike[str] | None = None) -> str:
        """Return it as YAML; written to a file too, if there is a path."""
        return _files.write(_files.yaml_text(self.to_dict()), path)

    # -- what certificates say of it ----------------------------------------------

    @property
    def of_gaps(self) -> tuple[Statement, ...]:
        """Statements of a certificate on missing numbers among the features."""
        held = {n: c for n in self._names if isinstance(c := self._columns[n], Number)}
        by_code = {
            "assume.missing_numbers_told": [n for n, c in held.items() if c.has_gaps],
            "assume.missing_numbers_read_as_public": [
                n for n, c in held.items() if not c.has_gaps
            ],
        }
        return tuple(
            Statement(k, columns=names) for k, names in by_code.items() if names
        )

    # -- comparison and display ---------------------------------------------------

    def _content(self) -> tuple[Any, ...]:
        return tuple(self._columns.items()), self._target, self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __sklearn_clone__(self) -> Self:
        return self  # immutable

    def __repr__(self) -> str:
        target = "" if self._target is None else f", target={self._target!r}"
        size = "" if self._size is None else f", size={self._size!r}"
        return f"Schema({len(self)} columns{target}{size})"

    def __str__(self) -> str:
        return _files.table_text(self._rows())

    def _repr_html_(self) -> str:
        return _files.table_html(self._rows())

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = []
        for name, column in self._columns.items():
            kind, values, missing = _files.told(column)
            if name == self._target:
                rows.append((f"{name} (target)", kind, values, "counts as nothing"))
            else:
                rows.append((str(name), kind, values, missing))
        return rows
