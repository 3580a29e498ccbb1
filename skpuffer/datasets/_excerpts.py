"""Excerpts of published tables that are shipped with the package."""

from __future__ import annotations

import gzip
from importlib.resources import files


def read_excerpt(name: str) -> bytes:
    """Return the uncompressed content of a shipped file."""
    return gzip.decompress((files(__package__) / "data" / name).read_bytes())


def described(descr: str, chosen: str) -> str:
    """Add to the description of a table which part of it is shipped.

    Parameters
    ----------
    descr : str
        Description of the published table.
    chosen : str
        Which rows and columns are shipped.

    Returns
    -------
    str
    """
    title, line, rest = descr.split("\n", 2)
    return (
        f"{title}\n{line}\n\n**Shipped with this package:** {chosen}; nothing else was "
        f"changed. What follows is about all that was published.\n{rest}"
    )
