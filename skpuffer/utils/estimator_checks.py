"""Old location of :mod:`skpuffer.testing`; what is imported from here warns."""

import importlib
import warnings
from typing import Any

from skpuffer.exceptions import Statement

__all__ = []

_MOVED = ("check_private_estimator", "privacy_checks")


def __getattr__(name: str) -> Any:
    """Hand out what has moved, with a warning that says where it is."""
    # whatever else is asked for, such as by inspection, is answered as by any module
    if name not in _MOVED:
        raise AttributeError(
            Statement("module.attribute_unknown", module=__name__, name=name)
        )
    warnings.warn(FutureWarning(Statement("module.has_moved", name=name)), stacklevel=2)
    # imported on demand: this package stands below the one that holds them
    return getattr(importlib.import_module("skpuffer.testing"), name)
