"""Warnings that point at the line of whoever called."""

import sys
import warnings
from types import FrameType

#: Packages whose lines are not the user's.
_LIBRARIES = ("joblib", "skpuffer", "sklearn")


def warn(message: object, category: type[Warning]) -> None:
    """Warn at the first line up the stack that is outside of these libraries."""
    # a filter by module, and the line shown, must be the user's
    frame, level = sys._getframe(1), 2
    # the outermost frame is a fallback: there is always a line to point at
    while frame.f_back is not None and _package(frame) in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)


def _package(frame: FrameType) -> str:
    module: str = frame.f_globals.get("__name__", "")
    return module.partition(".")[0]
