"""Slices of a range."""

from collections.abc import Iterator

__all__ = ["slices"]


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices of so many entries each that cover a range; the last may be short.

    Parameters
    ----------
    n : int
        Entries in all.
    size : int
        At least one.

    Yields
    ------
    slice
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
