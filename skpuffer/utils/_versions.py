"""Version of the package in pickles, as another one may mean another thing."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from skpuffer.exceptions import Statement, VersionWarning

_KEY = "_skpuffer_version"


def _version() -> str:
    return str(sys.modules["skpuffer"].__version__)


def with_version(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object for a pickle, with the version that writes it."""
    return {**state, _KEY: _version()}


def without_version(owner: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state that a pickle held, and warn if another version wrote it."""
    rest = dict(state)
    written = rest.pop(_KEY, None)
    if written != _version():
        said = Statement(
            "version.pickle_of_another",
            owner=type(owner).__name__,
            written=written or "unknown",
            version=_version(),
        )
        # of the line that loads it, below that of the class
        warnings.warn(VersionWarning(said), stacklevel=4)
    return rest
