"""The kernel: the only code that makes a certificate, and that draws noise."""

from collections.abc import Callable

__all__ = ["loaders"]

#: What loads the modules of this library that declare kinds of plain data.
loaders: list[Callable[[], object]] = []
