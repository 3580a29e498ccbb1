"""What a fit would release and promise, known before it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise

    from ._certificate import Certificate


@dataclass(frozen=True, kw_only=True, eq=False)
class Preview:
    """The release and promise of a fit, from public facts alone.

    Parameters
    ----------
    estimator, noise, certificate : str, Noise, Certificate
        Name of the class, noise that would be added, and promise that would be made.
    error : ndarray of shape (dim,) or None
        Root mean square error that the noise causes in each coordinate of the noised
        value, such as a query's vector or one step's sum of gradients. A single number
        where the length is not known. None for a choice among candidates.
    std : dict of {str: ndarray}
        Standard deviations by noise of the fitted attributes that are affine in it, by
        the attribute's name; after a fit `mean_std_` and so on. Ratios of two noisy
        numbers are taken for a complete table of as many records, spread evenly over
        groups and levels. Where the share g of a column is missing, that of its mean is
        1 / (1 - g) times as large.

    Examples
    --------
    >>> from skpuffer.summary import PrivateMean
    >>> preview = PrivateMean(bounds=(0, 10)).preview(10_000, n_features=2)
    >>> preview.error.round(4)
    array([0.0014, 0.0014])
    """

    estimator: str
    noise: Noise
    certificate: Certificate
    error: Floats | None
    std: Mapping[str, Any] = field(default_factory=dict)

    def _rows(self) -> list[tuple[str, str]]:
        """Name and value of each line before the certificate."""
        rows = [("noise", _size(self.noise)), ("error", _spread(self.error))]
        # a table has numbers of several units, and is shown below
        rows += [
            (f"standard deviation of {name}", _range(np.asarray(std, dtype=float)))
            for name, std in self.std.items()
            if not hasattr(std, "to_string") and not isinstance(std, Mapping)
        ]
        return rows

    def _tables(self) -> list[tuple[str, Any]]:
        """Standard deviations of tables of statistics, each with its title."""
        return [
            (f"standard deviation of {name}", std.T)
            for name, std in self.std.items()
            if hasattr(std, "to_string")
        ]

    def __str__(self) -> str:
        lines = [f"Preview of {self.estimator}: nothing has been spent"]
        lines += [f"  {name:<6} {value}" for name, value in self._rows()]
        for title, table in self._tables():
            shown = table.to_string(float_format="{:.4g}".format)
            lines += [f"  {title}", *(f"    {line}" for line in shown.splitlines())]
        return "\n".join([*lines, str(self.certificate)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        caption = f"Preview of {html.escape(self.estimator)}: nothing has been spent"
        tables = "".join(
            f"<p>{html.escape(title)}</p>{table.to_html(escape=True)}"
            for title, table in self._tables()
        )
        return (
            "<table class='skpuffer-preview'>"
            f"<caption style='text-align:left'><b>{caption}</b></caption>{rows}"
            f"</table>{tables}{self.certificate._repr_html_()}"
        )


def _size(noise: Noise) -> str:
    """Return a noise in a few words, however many coordinates it has."""
    scales = np.asarray(noise.scale, dtype=float)
    low, high = f"{scales.min():.4g}", f"{scales.max():.4g}"
    of = f"scale {low}" if low == high else f"scales {low} to {high}"
    return f"{type(noise).__name__} of {of}"


def _spread(error: Floats | None) -> str:
    """Return errors of coordinates in a few words."""
    if error is None:
        return "depends on the rows: what leaves is a choice, not a number with noise"
    size = "each coordinate" if error.size == 1 else f"each of {error.size} coordinates"
    return f"{_range(error)} (root mean square, {size} of what is noised)"


def _range(values: Floats) -> str:
    """Return the least and the largest of some numbers in a few words."""
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.4g}" if np.isclose(low, high) else f"{low:.4g} to {high:.4g}"
