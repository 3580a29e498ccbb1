"""Helpers of all displays for matplotlib."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from skpuffer.exceptions import Statement


def pyplot(caller: str) -> ModuleType:
    """Import matplotlib on first use: computing never needs it.

    Parameters
    ----------
    caller : str
        Who needs it, for the message if it is missing.

    Returns
    -------
    module
        ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            Statement("inspection.matplotlib_missing", caller=caller)
        ) from error
    return plt


def line_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """Normalise aliases of line options, so that 'c' replaces 'color'.

    Parameters
    ----------
    options : dict or None
        Options of a line, for matplotlib.
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(options or {}, Line2D)
