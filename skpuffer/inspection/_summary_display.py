"""Display of released numbers with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import type_error, value_error

from ._drawing import panels, pyplot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Columns of a tidy table that are no groups.
_NUMBERS = frozenset(
    ("column", "statistic", "estimate", "std_error", "low", "high")
    + ("n", "wide", "p_value")
)


class SummaryDisplay:
    """Draw released numbers as points with error bars, a panel for each statistic.

    Make one by :meth:`from_estimator`. Only released numbers are drawn.

    Parameters
    ----------
    frame : DataFrame
        A tidy table, as ``to_frame`` returns it.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each statistic of each column; without groups, one for each statistic.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.inspection import SummaryDisplay
    >>> from skpuffer.summary import PrivateSummary
    >>> table = pd.DataFrame({"sex": ["F", "M"] * 500, "age": range(1000)})
    >>> summary = PrivateSummary(
    ...     by="sex",
    ...     statistics=["mean", "std"],
    ...     bounds={"age": (0, 1000)},
    ...     categories={"sex": ["F", "M"]},
    ... ).fit(table)
    >>> display = SummaryDisplay.from_estimator(summary, columns=["age"])
    >>> [ax.get_title() for ax in display.axes_]
    ['age: mean', 'age: std']
    """

    def __init__(self, *, frame: pd.DataFrame):
        self.frame = frame

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        columns: Sequence[Any] | None = None,
        statistics: Sequence[str] | None = None,
        level: float = 0.95,
        of: str = "population",
        n_columns: int = 3,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw what a fitted estimator released.

        Parameters
        ----------
        estimator : estimator with ``to_frame``
            Fitted, such as :class:`~skpuffer.summary.PrivateSummary` or
            :class:`~skpuffer.linear_model.PrivateLinearRegression`.
        columns : sequence, default=None
            Columns to draw. None draws all.
        statistics : sequence of str, default=None
            Statistics to draw, as the table names them. None draws all.
        level : float, default=0.95
            Confidence level of each interval, in (0, 1).
        of : {'population', 'table'}, default='population'
            Target of intervals.
        n_columns : int, default=3
            Columns of the figure.
        axes : sequence of matplotlib Axes, default=None
            One for each panel. None makes a figure.

        Returns
        -------
        display : SummaryDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        find = getattr(estimator, "to_frame", None)
        frame = None if find is None else find(level=level, of=of)
        if frame is None or not {"column", "statistic"} <= set(frame):
            raise type_error(
                "inspection.estimator_without_frame",
                estimator_type=type(estimator).__name__,
            )
        for name, kept in (("column", columns), ("statistic", statistics)):
            if kept is not None:
                frame = frame[frame[name].isin(list(kept))]
        if frame.empty:
            raise value_error(
                "inspection.nothing_to_draw", columns=columns, statistics=statistics
            )
        return cls(frame=frame).plot(axes, n_columns=n_columns)

    def plot(self, axes: Sequence[Axes] | None = None, *, n_columns: int = 3) -> Self:
        """Draw each statistic on axes of its own.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            One for each panel. None makes a figure.
        n_columns : int, default=3
            Columns of the figure.

        Returns
        -------
        display : SummaryDisplay
        """
        caller = f"{type(self).__name__}.plot"
        groups = [name for name in self.frame if name not in _NUMBERS]
        drawn = list(
            self.frame.groupby(
                ["column", "statistic"] if groups else ["statistic"], sort=False
            )
        )
        tallest = max(len(rows) for _, rows in drawn)
        size = 3.4, 1.1 + 0.28 * tallest
        axes = panels(caller, axes, len(drawn), n_columns, size)
        for ax, (key, rows) in zip(axes, drawn, strict=True):
            ax.set_title(": ".join(map(str, key)), fontsize="medium")
            labels = rows[groups] if groups else rows[["column"]]
            _draw(ax, rows, [", ".join(map(str, row)) for row in labels.to_numpy()])
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return self


def _draw(ax: Axes, rows: pd.DataFrame, labels: list[str]) -> None:
    """Draw rows as points with error bars; hollow ones have intervals that are wide."""
    at = np.arange(len(rows))
    ends, estimate = rows[["low", "high"]].to_numpy(), rows["estimate"].to_numpy()
    wide = np.zeros(len(rows), bool) if "wide" not in rows else rows["wide"].to_numpy()
    lost = rows["estimate"].isna().to_numpy()
    for drawn, face, name in (
        (~lost & ~wide, "C0", None),
        (~lost & wide, "white", "wide interval"),
    ):
        if drawn.any():
            ax.hlines(at[drawn], ends[drawn, 0], ends[drawn, 1], "C0", linewidth=1.5)
            points = ax.plot(estimate[drawn], at[drawn], "o", color="C0", label=name)
            points[0].set_markerfacecolor(face)
    if lost.any():
        label = "drowned by noise"
        ax.hlines(at[lost], ends[lost, 0], ends[lost, 1], "0.6", ":", label=label)
    ax.set_yticks(at, labels, fontsize="small")
    ax.set_ylim(len(rows) - 0.5, -0.5)
    if (wide | lost).any():
        ax.legend(fontsize="x-small")
