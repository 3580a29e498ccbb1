"""Display of released margins beside those of a synthetic table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import PrivacyLeakWarning, Statement
from skpuffer.utils._warn import warn

from ._drawing import pyplot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from skpuffer.synthesis import PrivateTableSynthesizer
    from skpuffer.utils._types import RandomState, Table

__all__ = ["MarginalDisplay"]

#: What a figure calls rows that no promise covers.
_REAL = "real rows (private)"


class MarginalDisplay:
    """Shares of the cells of some columns, as released and in a synthetic table.

    It is recommended to make one by :meth:`from_estimator`. All parameters are stored
    as attributes.

    Parameters
    ----------
    released, synthetic : pandas.Series of shape (n_cells,)
        Counts by cell, with the cells' texts as the index.
    real : pandas.Series of shape (n_cells,), default=None
        Counts of the private rows, for the eyes of their owner.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    skpuffer.synthesis.PrivateTableSynthesizer : Whose margins these are.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.inspection import MarginalDisplay
    >>> from skpuffer.schema import Schema
    >>> from skpuffer.synthesis import PrivateTableSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(18, 81, size=5000)})
    >>> model = PrivateTableSynthesizer(schema=Schema({"age": (18, 80)})).fit(table)
    >>> display = MarginalDisplay.from_estimator(model, "age", random_state=0)
    >>> display.ax_.get_ylabel()
    'Share of the rows'
    """

    def __init__(
        self,
        *,
        released: pd.Series,
        synthetic: pd.Series,
        real: pd.Series | None = None,
    ):
        self.released = released
        self.synthetic = synthetic
        self.real = real

    @classmethod
    def from_estimator(
        cls,
        synthesizer: PrivateTableSynthesizer,
        columns: Hashable | Sequence[Hashable],
        *,
        synthetic: Table | None = None,
        real: Table | None = None,
        random_state: RandomState = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the released margin of some columns beside that of a synthetic table.

        Parameters
        ----------
        synthesizer : PrivateTableSynthesizer
            Fitted.
        columns : name or list of names
        synthetic : data frame, default=None
            A table that it drew; None draws one.
        real : data frame, default=None
            Private rows to draw beside it, for their owner: the figure then tells of
            them without any promise, and says so.
        random_state : int, RandomState instance, Generator or None, default=None
            Of a table that is drawn.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : MarginalDisplay

        Warns
        -----
        PrivacyLeakWarning
            If real rows are given.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(synthesizer)
        released = synthesizer.marginal(columns)
        if synthetic is None:
            synthetic = synthesizer.sample(random_state=random_state)
        private = None
        if real is not None:
            warn(
                Statement("inspection.marginals_of_real_rows"),
                PrivacyLeakWarning,
            )
            private = synthesizer._counted(real, columns)
        drawn = synthesizer._counted(synthetic, columns)
        display = cls(released=released, synthetic=drawn, real=private)
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the shares.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : MarginalDisplay
            The object itself. One column is drawn cell by cell, as bars; of several
            columns each cell is a point, its released share to the right.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots()
        tables = {"released": self.released, "synthetic": self.synthetic}
        if self.real is not None:
            tables[_REAL] = self.real
        shares = {
            label: counts.to_numpy() / max(float(counts.sum()), 1.0)
            for label, counts in tables.items()
        }
        if self.released.index.nlevels == 1:
            self._plot_bars(ax, shares)
        else:
            self._plot_points(ax, shares)
        ax.set_title(", ".join(str(name) for name in self.released.index.names))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_bars(self, ax: Axes, shares: dict[str, Any]) -> None:
        at = np.arange(len(self.released))
        width = 0.8 / len(shares)
        for k, (label, heights) in enumerate(shares.items()):
            ax.bar(
                at + (k - (len(shares) - 1) / 2) * width, heights, width, label=label
            )
        texts = [str(text) for text in self.released.index]
        # upright where they would run into each other
        ax.set_xticks(at, texts, rotation=90 if len(texts) > 6 else 0)
        ax.set_ylabel("Share of the rows")

    def _plot_points(self, ax: Axes, shares: dict[str, Any]) -> None:
        released = shares.pop("released")
        for k, (label, found) in enumerate(shares.items()):
            ax.plot(released, found, f"C{k + 1}o", alpha=0.6, label=label)
        most = max(float(np.max(values)) for values in (released, *shares.values()))
        ax.plot([0, most], [0, most], color="0.5", linewidth=1, zorder=0)
        ax.set_xlabel("Released share of a cell")
        ax.set_ylabel("Share of the rows")
