"""Tables by what is published of them: one loader, driven by ``data/tables.toml``."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_count, check_non_negative, check_option
from skpuffer.schema import Category, Number, Schema

from ._fetch import RemoteTable, load_table

__all__ = ["PublishedTable", "as_categories", "published", "read_excerpt"]


@dataclass(frozen=True)
class PublishedTable:
    """What a publisher, or this package, says of a table.

    Parameters
    ----------
    target : str
        Name of the target column.
    columns : list of str
        Names, for a file without a header.
    categories, bounds, units : dict
        By column: its codes; what it lies between; what it counts.
    amounts, gaps : list of str
        Columns that are amounts with a heavy tail, and those with missing values.
    files : dict of str to RemoteTable
        By part of the table.
    descr : str
    """

    target: str
    columns: list[str]
    categories: dict[str, list[Any]]
    bounds: dict[str, tuple[float, float]]
    units: dict[str, str]
    amounts: list[str]
    gaps: list[str]
    files: dict[str, RemoteTable]
    descr: str

    def fetch(
        self,
        parse: Callable[..., pd.DataFrame],
        parts: Sequence[str] = ("all",),
        *,
        data_home: str | PathLike[str] | None,
        download_if_missing: bool,
        return_X_y: bool,
        as_frame: bool,
        n_retries: int,
        delay: float,
    ) -> Bunch | tuple[Any, Any]:
        """Load parts of the table from disk or by download; see :func:`load_table`.

        Parameters
        ----------
        parse : callable
            Takes content, and whether it is the ready CSV, and returns a frame.
        parts : sequence of str, default=('all',)
            Keys of `files`, in order.
        data_home : str, path-like or None
        download_if_missing, return_X_y, as_frame : bool
        n_retries : int
        delay : float
            As of all public loaders.

        Returns
        -------
        Bunch, or the pair (data, target)
        """
        # before disk or network is touched
        _check_switches(
            download_if_missing=download_if_missing,
            return_X_y=return_X_y,
            as_frame=as_frame,
        )
        check_count(least=0, n_retries=n_retries)
        check_non_negative(delay=delay)
        how: dict[str, Any] = {
            "data_home": data_home,
            "download_if_missing": download_if_missing,
            "n_retries": n_retries,
            "delay": delay,
        }
        frames = [parse(*load_table(self.files[part], **how)) for part in parts]
        return self._packed(frames, return_X_y, as_frame, self.descr)

    def shipped(
        self,
        parse: Callable[..., pd.DataFrame],
        names: Sequence[str],
        chosen: str,
        *,
        return_X_y: bool,
        as_frame: bool,
    ) -> Bunch | tuple[Any, Any]:
        """Load an excerpt that is shipped with the package.

        Parameters
        ----------
        parse : callable
            As in :meth:`fetch`.
        names : sequence of str
            Of the shipped files, in order.
        chosen : str
            Which rows and columns they hold.
        return_X_y, as_frame : bool

        Returns
        -------
        Bunch, or the pair (data, target)
        """
        _check_switches(return_X_y=return_X_y, as_frame=as_frame)
        frames = [parse(read_excerpt(name), True) for name in names]
        title, line, rest = self.descr.split("\n", 2)
        descr = (
            f"{title}\n{line}\n\n**Shipped with this package:** {chosen}; nothing else "
            f"was changed. What follows is about all that was published.\n{rest}"
        )
        return self._packed(frames, return_X_y, as_frame, descr)

    def _packed(
        self, frames: list[pd.DataFrame], return_X_y: bool, as_frame: bool, descr: str
    ) -> Bunch | tuple[Any, Any]:
        """Split into data and target, and pack them as scikit-learn does."""
        # one keeps its index
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        data, y = frame.drop(columns=self.target), frame[self.target]
        feature_names = data.columns.tolist()
        if not as_frame:
            data, y = data.to_numpy(), y.to_numpy()
        if return_X_y:
            return data, y
        known, bounds = self.categories.items(), self.bounds.items()
        return Bunch(
            data=data,
            target=y,
            frame=frame if as_frame else None,
            feature_names=feature_names,
            target_names=[self.target],
            categories={name: list(codes) for name, codes in known if name in frame},
            bounds={name: pair for name, pair in bounds if name in frame},
            schema=self._schema(frame),
            DESCR=descr,
        )

    def _schema(self, frame: pd.DataFrame) -> Schema:
        """Code book of what is said of the columns, and of their types."""
        columns: dict[Any, Category | Number] = {}
        for name in frame.columns:
            # "?" is how the files of the repository write a missing value
            common: dict[str, Any] = {
                "missing": ("?",) if name in self.gaps else (),
                "missing_level": name in self.gaps,
                "unit": self.units.get(name),
            }
            if name in self.categories:
                columns[name] = Category(tuple(self.categories[name]), **common)
            else:
                columns[name] = Number(
                    *self.bounds[name],
                    integer=bool(pd.api.types.is_integer_dtype(frame[name])),
                    amount=name in self.amounts,
                    **common,
                )
        return Schema(columns, target=self.target)


@cache
def published(name: str) -> PublishedTable:
    """Return what is said of a table in ``data/tables.toml``."""
    held = tomllib.loads(_data("tables.toml").decode("utf-8"))[name]
    known = {"columns": [], "units": {}, "amounts": [], "gaps": []} | held
    known["bounds"] = {column: tuple(pair) for column, pair in held["bounds"].items()}
    # two tables may be one data set
    dataset = known.pop("dataset", name)
    known["files"] = {
        part: RemoteTable(dataset=dataset, **one | {"urls": tuple(one["urls"])})
        for part, one in held["files"].items()
    }
    return PublishedTable(**known, descr=_data(f"{dataset}.rst").decode("utf-8"))


def _data(name: str) -> bytes:
    return (files(__package__) / "data" / name).read_bytes()


def read_excerpt(name: str) -> bytes:
    """Return the uncompressed content of a shipped file."""
    return gzip.decompress(_data(name))


def as_categories(frame: pd.DataFrame, table: PublishedTable) -> pd.DataFrame:
    """Give columns the categories of the published code book, but for whole numbers.

    A column that is absent from the data keeps every code of the book, so the type
    tells nothing of the rows.
    """
    return frame.astype(
        {
            column: pd.CategoricalDtype(codes)
            for column, codes in table.categories.items()
            if isinstance(codes[0], str)
        }
    )


def _check_switches(**switches: bool) -> None:
    for name, value in switches.items():
        check_option((True, False), **{name: value})
