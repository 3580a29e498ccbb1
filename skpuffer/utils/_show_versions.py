"""Versions of all that results depend on, for reports of problems."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys

#: Extras whose libraries no result depends on.
_FOR_DEVELOPMENT = re.compile(r"""extra == ['"](dev|docs|lint|test)['"]""")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def show_versions() -> None:
    """Print the versions of Python, skpuffer and the libraries that it uses.

    Nothing is imported, and nothing of this machine but its kind is printed.

    Examples
    --------
    >>> import skpuffer
    >>> skpuffer.show_versions()  # doctest: +ELLIPSIS
    Python        ...
    skpuffer      ...
    """
    rows = {
        "Python": f"{sys.version.split()[0]} on {platform.system()} "
        f"{platform.machine()}",
        "skpuffer": _version("skpuffer"),
        **{name: _version(name) for name in _libraries()},
    }
    width = max(map(len, rows)) + 1
    for name, version in rows.items():
        print(f"{name:<{width}} {version}")


def _libraries() -> list[str]:
    """Names of what skpuffer requires, then of what it can do without."""
    try:
        requirements = importlib.metadata.requires("skpuffer") or []
    except importlib.metadata.PackageNotFoundError:
        # read from a folder that is not installed
        return []
    used = [text for text in requirements if not _FOR_DEVELOPMENT.search(text)]
    # what is always there comes first
    found = map(_NAME.match, sorted(used, key=lambda text: "extra ==" in text))
    return list(dict.fromkeys(match.group() for match in found if match))


def _version(name: str) -> str:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
