"""Helpers of all displays for matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pyplot(caller: str) -> ModuleType:
    """Import matplotlib on first use: computing never needs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            Statement("inspection.matplotlib_missing", caller=caller)
        ) from error
    return plt


def line_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """Normalise aliases of line options, so that 'c' replaces 'color'."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(options or {}, Line2D)


def panels(
    caller: str,
    axes: Sequence[Axes] | None,
    n: int,
    n_columns: int,
    size: tuple[float, float],
) -> list[Axes]:
    """Return axes for so many panels: those that were given, or of a new figure."""
    plt = pyplot(caller)
    if axes is None:
        width = min(check_count(n_columns=n_columns), n)
        height = math.ceil(n / width)
        _, grid = plt.subplots(
            height,
            width,
            squeeze=False,
            figsize=(size[0] * width, size[1] * height),
            layout="constrained",
        )
        for spare in grid.ravel()[n:]:
            spare.set_axis_off()
        axes = grid.ravel()[:n].tolist()
    if len(axes) != n:
        raise value_error("shaped.axes_count_mismatch", n=n, n_axes=len(axes))
    return list(axes)
