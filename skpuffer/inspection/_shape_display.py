"""Display of the shape functions of an additive model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import check_non_negative

from ._drawing import panels, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from skpuffer.additive import ShapeFunction
    from skpuffer.kernel.numbers import Floats


#: Levels that are written out below an axis, at most.
_MOST_LABELS = 12
#: Share of the height that the masses of cells take.
_MASS_HEIGHT = 0.25


class ShapeDisplay:
    """Draw shape functions of an additive model, with error bands and cell masses.

    Make one by :meth:`from_estimator`. Only released numbers are drawn.

    Parameters
    ----------
    functions : list of ShapeFunction
        In the order in which they are drawn.
    edges : dict of {feature: ndarray or None}
        Edges of the cells of numbers, in their unit; None for levels.
    classes : sequence or None
        Names of several scores.
    deviations : float, default=2.0
        Half the width of the bands, in standard errors.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each function.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.additive import PrivateAdditiveRegressor
    >>> from skpuffer.inspection import ShapeDisplay
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> model = PrivateAdditiveRegressor(bounds=(0, 1), target_bounds=(0, 2))
    >>> model = model.fit(X, X[:, 0] ** 2 + X[:, 1])
    >>> display = ShapeDisplay.from_estimator(model)
    >>> len(display.axes_)
    2
    """

    def __init__(
        self,
        *,
        functions: Sequence[ShapeFunction],
        edges: dict[Any, Floats | None],
        classes: Sequence[Any] | None = None,
        deviations: float = 2.0,
    ):
        self.functions = functions
        self.edges = edges
        self.classes = classes
        self.deviations = deviations

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        features: Sequence[Any] | None = None,
        deviations: float = 2.0,
        n_columns: int = 3,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the shape functions of a fitted additive model.

        Parameters
        ----------
        estimator : PrivateAdditiveClassifier or PrivateAdditiveRegressor
            Fitted.
        features : sequence, default=None
            Features, and pairs of them as tuples, to draw. None draws all.
        deviations : float, default=2.0
            Half the width of the bands, in standard errors of the noise.
        n_columns : int, default=3
            Columns of the figure.
        axes : sequence of matplotlib Axes, default=None
            One for each function. None makes a figure.

        Returns
        -------
        display : ShapeDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        if not hasattr(estimator, "shape_functions_"):
            raise type_error(
                "shaped.estimator_not_additive", estimator_type=type(estimator).__name__
            )
        known = estimator.shape_functions_
        drawn = list(known) if features is None else list(features)
        unknown = [name for name in drawn if name not in known]
        if unknown or not drawn:
            raise value_error(
                "shaped.features_unknown", known=list(known), features=features
            )
        binning = estimator.binning_
        display = cls(
            functions=[known[name] for name in drawn],
            edges=dict(zip(binning.names, binning.edges, strict=True)),
            classes=getattr(estimator, "classes_", None),
            deviations=deviations,
        )
        return display.plot(axes, n_columns=n_columns)

    def plot(self, axes: Sequence[Axes] | None = None, *, n_columns: int = 3) -> Self:
        """Draw each function on axes of its own.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            One for each function. None makes a figure.
        n_columns : int, default=3
            Columns of the figure.

        Returns
        -------
        display : ShapeDisplay
        """
        check_non_negative(deviations=self.deviations)
        caller = f"{type(self).__name__}.plot"
        axes = panels(caller, axes, len(self.functions), n_columns, (3.4, 2.6))
        for ax, function in zip(axes, self.functions, strict=True):
            if len(function.features) > 1:
                self._plot_pair(ax, function)
            elif self.edges.get(function.features[0]) is None:
                self._plot_levels(ax, function)
            else:
                self._plot_number(ax, function)
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return self

    def _lines(self, function: ShapeFunction) -> list[tuple[str | None, Any, Any]]:
        """Label, scores and half widths of the bands, score by score."""
        scores = function.scores.reshape(len(function.cells[0]), -1)
        bands = self.deviations * function.standard_errors.reshape(scores.shape)
        labels: list[str | None] = [None]
        if scores.shape[1] > 1:
            labels = [*map(str, self.classes)]  # type: ignore[arg-type] # several
        return list(zip(labels, scores.T, bands.T, strict=True))

    def _plot_number(self, ax: Axes, function: ShapeFunction) -> None:
        name = function.features[0]
        edges: Any = self.edges[name]
        n = len(edges) - 1
        for label, scores, band in self._lines(function):
            (line,) = ax.step(
                edges, np.append(scores[:n], scores[n - 1]), where="post", label=label
            )
            low, high = scores[:n] - band[:n], scores[:n] + band[:n]
            ax.fill_between(
                edges,
                np.append(low, low[-1]),
                np.append(high, high[-1]),
                step="post",
                color=line.get_color(),
                alpha=0.25,
                linewidth=0,
            )
            # what is missing has no place among numbers
            if scores.size > n:
                ax.axhline(
                    scores[n], color=line.get_color(), linestyle=":", linewidth=1
                )
        self._draw_masses(ax, edges[:-1], np.diff(edges), function.masses[:n])
        # an amount has cells that grow, as the logarithm of it or of it plus one
        sizes = np.diff(edges)
        if sizes[-1] > 20 * sizes[0]:
            if edges[0] > 0:
                ax.set_xscale("log")
            else:
                ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(edges[0], edges[-1])
        self._finish(ax, str(name), function)

    def _plot_levels(self, ax: Axes, function: ShapeFunction) -> None:
        cells = function.cells[0]
        at = np.arange(len(cells))
        for label, scores, band in self._lines(function):
            ax.errorbar(at, scores, band, fmt="o", markersize=3, label=label)
        self._draw_masses(ax, at - 0.4, np.full(at.size, 0.8), function.masses)
        if at.size <= _MOST_LABELS:
            ax.set_xticks(at, cells, rotation=45, ha="right", fontsize="x-small")
        else:
            ax.set_xticks([])
        self._finish(ax, str(function.features[0]), function)

    def _plot_pair(self, ax: Axes, function: ShapeFunction) -> None:
        scores = function.scores
        # of several classes the largest score says which
        values = scores if scores.ndim == 2 else scores.argmax(axis=2)
        image = ax.imshow(values.T, origin="lower", aspect="auto", cmap="coolwarm")
        ax.figure.colorbar(image, ax=ax)
        for axis, cells in zip((ax.xaxis, ax.yaxis), function.cells, strict=True):
            axis.set_ticks(np.arange(len(cells)), cells, fontsize="xx-small")
        ax.tick_params(axis="x", rotation=45)
        first, second = function.features
        ax.set_title(f"{first} and {second}", fontsize="medium")

    def _draw_masses(self, ax: Axes, left: Any, width: Any, masses: Floats) -> None:
        """Draw the noisy shares of the records along the foot of the axes."""
        foot = ax.twinx()
        foot.bar(left, masses, width, align="edge", color="0.7", alpha=0.5, zorder=0)
        foot.set_ylim(0, float(np.max(masses)) / _MASS_HEIGHT)
        foot.set_yticks([])

    def _finish(self, ax: Axes, title: str, function: ShapeFunction) -> None:
        ax.axhline(0, color="0.5", linewidth=0.5, zorder=0)
        ax.set_title(title, fontsize="medium")
        ax.set_ylabel("Score")
        if function.scores.ndim > 1:
            ax.legend(fontsize="x-small")
