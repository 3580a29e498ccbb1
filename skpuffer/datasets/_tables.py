"""Tables by what is published of them: one loader, driven by ``data/tables.toml``."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib.resources import files
from io import BytesIO
from os import PathLike
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError, URLError
from zipfile import BadZipFile, ZipFile

import pandas as pd
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_count, check_non_negative, check_option
from skpuffer.schema import Category, Number, Schema


@dataclass(frozen=True)
class PublishedTable:
    """The facts that a publisher, or this package, states of a table.

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
        """Load parts of the table from disk or by download; see :func:`load_table`."""
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
        """Load an excerpt that is shipped with the package."""
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
            has_gaps, unit = name in self.gaps, self.units.get(name)
            if name in self.categories:
                columns[name] = Category(
                    tuple(self.categories[name]),
                    missing=("?",) if has_gaps else (),
                    missing_level=has_gaps,
                    unit=unit,
                )
            else:
                columns[name] = Number(
                    *self.bounds[name],
                    integer=bool(pd.api.types.is_integer_dtype(frame[name])),
                    amount=name in self.amounts,
                    missing=("?",) if has_gaps else False,
                    unit=unit,
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


# -- loading of published tables: from disk or by download, verified by SHA-256 --------
# The publisher packs most tables into archives whose own checksum may change, so what
# is verified is always the content of the table itself.


# An archive is opened before it can be verified; no table here is above half of this.
_LARGEST_MEMBER = 2**28

# Everything a refused, damaged or foreign download was seen to raise; zipfile reports
# encryption and unknown compression as RuntimeError and its NotImplementedError.
_DOWNLOAD_ERRORS = (
    OSError,
    HTTPException,
    BadZipFile,
    EOFError,
    RuntimeError,
    zlib.error,
)


def _one_table(files: dict[str, bytes]) -> bytes:
    """Return one CSV of the trials: room, trial, sex, time and activity as printed."""
    by_trial = {PurePosixPath(path).name: text for path, text in files.items()}
    lines = [b"room,trial,sex,time_s,activity"]
    for trial in sorted(by_trial):
        start = f"S{trial[1]},{trial},{trial[-1]}".encode()
        for line in by_trial[trial].split():
            cells = line.split(b",")
            lines.append(b",".join((start, cells[0], cells[-1])))
    return b"\n".join([*lines, b""])


@dataclass(frozen=True)
class RemoteTable:
    """Addresses and checksums of one published table.

    Parameters
    ----------
    dataset : str
        Name of the data set; the cache is the folder ``skpuffer_<dataset>``.
    urls : tuple of str
        Addresses on one host, tried in order: the file itself, or an archive (``.zip``)
        that holds it at any depth.
    ready_name, ready_sha256 : str
        Name and checksum of the same table as a ready CSV with a header row.
    part : str, default=None
        For an archive of many series: the regular expression of their files' names.
    assemble : callable, optional
        With `part`: takes ``{path in the archive: content}`` of all and returns the
        content of `name`.
    """

    dataset: str
    name: str
    sha256: str
    urls: tuple[str, ...]
    ready_name: str
    ready_sha256: str
    part: str | None = None
    assemble: Callable[[dict[str, bytes]], bytes] = _one_table

    @property
    def folder(self) -> str:
        """Name of the cache folder inside ``data_home``."""
        return f"skpuffer_{self.dataset}"

    @property
    def local_names(self) -> tuple[str, ...]:
        """File names under which the table is looked for, in order."""
        names = dict.fromkeys((self.name, self.ready_name))
        return tuple(name + ending for name in names for ending in ("", ".gz"))

    def contents(self, archive: str | PathLike[str]) -> Iterator[bytes]:
        """Yield what an archive holds that may be this table."""
        if self.part is None:
            for _, content in _members(archive, re.escape(self.name)):
                yield content
        elif parts := dict(_members(archive, self.part)):
            yield self.assemble(parts)


def load_table(
    table: RemoteTable,
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> tuple[bytes, bool]:
    """Return the verified content of a table, and whether it is the ready CSV.

    The table is looked for in its cache folder and in `data_home`, before any network
    is touched. An OSError is raised if a local file is not the published table, or the
    table is missing and cannot be downloaded. :func:`socket.setdefaulttimeout` limits
    the waiting.
    """
    home = Path(get_data_home(data_home))
    for place in (home / table.folder, home):
        for name in table.local_names:
            path = place / name
            if path.is_file():
                return _read_local(table, path)
    by_hand = f"put one of {', '.join(table.local_names)} into {home}"
    if not download_if_missing:
        raise OSError(
            Statement(
                "dataset.download_forbidden",
                name=table.name,
                home=home,
                folder=table.folder,
                by_hand=by_hand,
            )
        )
    try:
        return _download(table, home, n_retries, delay), False
    except OSError as error:
        raise OSError(
            Statement(
                "dataset.download_failed",
                name=table.name,
                home=home,
                error=error,
                by_hand=by_hand,
            )
        ) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_local(table: RemoteTable, path: Path) -> tuple[bytes, bool]:
    """Read, uncompress and recognise one local file."""
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise OSError(
            Statement(
                "dataset.file_not_uncompressed", path=path, error=error, name=table.name
            )
        ) from error
    digest = _sha256(content)
    if digest == table.sha256:
        return content, False
    if digest == table.ready_sha256:
        return content, True
    raise OSError(
        Statement(
            "dataset.file_digest_differs",
            path=path,
            digest=digest,
            sha256=table.sha256,
            name=table.name,
            ready_sha256=table.ready_sha256,
            ready_name=table.ready_name,
        )
    )


def _download(table: RemoteTable, home: Path, n_retries: int, delay: float) -> bytes:
    """Download, verify and cache the table; return its content or raise OSError."""
    failures = []
    # Work in a private folder and publish by one rename, so that parallel calls and
    # interrupted ones never show each other half a file.
    with TemporaryDirectory(prefix=".skpuffer_", dir=home) as folder:
        scratch = Path(folder)
        for attempt, url in enumerate(table.urls):
            try:
                content = _fetch_content(
                    table, url, scratch, f"{attempt}.part", n_retries, delay
                )
            except _DOWNLOAD_ERRORS as error:
                failures.append(f"{url}: {str(error) or type(error).__name__}")
                if isinstance(error, (URLError, TimeoutError)) and not isinstance(
                    error, HTTPError
                ):
                    break  # the host is out of reach; its other addresses are too
                continue
            finished = scratch / table.name
            finished.write_bytes(content)
            (home / table.folder).mkdir(exist_ok=True)
            os.replace(finished, home / table.folder / table.name)
            return content
    raise OSError("; ".join(failures))


def _fetch_content(
    table: RemoteTable,
    url: str,
    scratch: Path,
    filename: str,
    n_retries: int,
    delay: float,
) -> bytes:
    """Download one address and return the verified content of the table."""
    zipped = url.endswith(".zip")
    path: Path = fetch_file(
        url,
        folder=scratch,
        local_filename=filename,
        sha256=None if zipped else table.sha256,
        n_retries=n_retries,
        delay=delay,
    )
    if not zipped:
        return path.read_bytes()
    digests = []
    for content in table.contents(path):
        digests.append(_sha256(content))
        if digests[-1] == table.sha256:
            return content
    if not digests:
        raise OSError(Statement("dataset.archive_member_missing", name=table.name))
    raise OSError(
        Statement(
            "dataset.archive_digest_differs",
            name=table.name,
            digests=" and ".join(digests),
            sha256=table.sha256,
        )
    )


def _members(
    archive: str | PathLike[str] | BytesIO, pattern: str, nested: bool = True
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every member of such a file name, one archive deep."""
    with ZipFile(archive) as opened:
        for member in opened.infolist():
            base = PurePosixPath(member.filename).name
            inner = nested and base.endswith(".zip")
            if not (inner or re.fullmatch(pattern, base)):
                continue
            if member.file_size > _LARGEST_MEMBER:
                raise OSError(
                    Statement(
                        "dataset.archive_member_too_large", filename=member.filename
                    )
                )
            content = opened.read(member)
            if inner:
                yield from _members(BytesIO(content), pattern, nested=False)
            else:
                yield member.filename, content
