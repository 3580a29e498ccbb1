"""Estimators whose attributes are affine in the released vector: errors by noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._vector_query import VectorQuery
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import check_probability

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise

__all__ = ["AffineReleaseMixin", "deviation_name"]


def deviation_name(name: str) -> str:
    """Name of the attribute that holds the deviations of another: `coef_std_`."""
    return f"{name}std_"


class AffineReleaseMixin:
    """Mixin: some attributes are the released numbers themselves, in other units.

    That is, each of their entries is a public number plus a positive public multiple of
    one coordinate of the noisy vector. So the standard deviation that the noise gives
    them is known exactly.
    """

    noise_: Noise

    #: Function of the noisy vector, complex or not, and the release: these attributes
    #: by name, as `_publish` sets them. A subclass without has its own `_widths`.
    _read_off: Callable[[Any, Any], dict[str, Any]]

    def _deviations(self, noise: Noise, release: Any) -> dict[str, Any]:
        """Return the standard deviations by noise of these attributes, by name.

        Parameters
        ----------
        noise : Noise
        release : the object that `_release` made
        """
        query = getattr(release, "query", None)
        # code of others gives arrays whose shape is known once it has run
        size = query.size if isinstance(query, VectorQuery) else release.dim
        if size is None:
            return {}
        widths: Any = noise.std(size)
        # some families have no variance, in all coordinates
        return self._widths(widths, release) if np.isfinite(widths).all() else {}

    def _widths(self, widths: Floats, release: Any) -> dict[str, Any]:
        """Return what widths of the coordinates become in the attributes."""
        # The imaginary part of an affine map of imaginary numbers is its linear part,
        # to the last digit, whatever the offset.
        moved = self._read_off(1j * widths, release)
        return {name: _imaginary(held) for name, held in moved.items()}

    def confidence_interval(self, level: float = 0.95) -> dict[str, tuple[Any, Any]]:
        """Return intervals around what was released, for the noise alone.

        Each entry's interval holds, with probability `level` over the noise, the number
        that would have been released without noise: of the table as it was read,
        clipped to the bounds and norms. It says nothing of what clipping did, nor of
        the population that the table was drawn from. It is post-processing and costs no
        budget.

        Parameters
        ----------
        level : float, default=0.95
            Of each entry by itself, in (0, 1).

        Returns
        -------
        dict of {str: (low, high)}
            For each attribute with known deviations its name and two of its kind,
            of a table without what is no affine function of the noise.

        Raises
        ------
        UnsupportedError
            If quantiles of the family of noise are not known, or nothing released is
            affine in the noise, as after training with noisy gradients.
        """
        check_is_fitted(self)
        level = check_probability(level=level)
        known = [
            name.removesuffix("std_")
            for name in sorted(vars(self))
            if name.endswith("_std_")
        ]
        if not known:
            raise UnsupportedError(
                Statement("release.no_confidence_intervals", owner=type(self).__name__)
            )
        width = self.noise_.interval_width(level)
        return {
            name: _interval(
                getattr(self, name), getattr(self, deviation_name(name)), width
            )
            for name in known
        }


def _imaginary(value: Any) -> Any:
    """Return imaginary parts, of the kind of the value."""
    if isinstance(value, dict):
        return {key: _imaginary(held) for key, held in value.items()}
    return np.imag(value)


def _interval(value: Any, deviation: Any, width: float) -> tuple[Any, Any]:
    """Return the ends of intervals, of the kind of the value."""
    if isinstance(value, dict):
        ends = {key: _interval(value[key], deviation[key], width) for key in value}
        low, high = ({k: pair[i] for k, pair in ends.items()} for i in (0, 1))
        return low, high
    if hasattr(deviation, "reindex_like"):
        # of a table, the part whose deviations are known
        value = value.reindex_like(deviation)
    return value - width * deviation, value + width * deviation
