"""Attributes that are affine in the released vector: deviations and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.numbers import check_probability
from skpuffer.releases import QueryRelease

from ._foreign_code import VectorQuery

if TYPE_CHECKING:
    from skpuffer.noise import Noise

__all__ = ["confidence_interval", "deviations", "read_off"]


def read_off(estimator: Any, value: Any, release: Any) -> dict[str, Any]:
    """Return the attributes that are affine in the noisy vector, by name.

    Parameters
    ----------
    estimator : estimator
        Which declares their linear parts and their public offsets.
    value : ndarray of shape (dim,)
    release : the object that `_release` made
    """
    found: dict[str, Any] = estimator._linear_parts(value, release)
    offsets = estimator._offsets(release).items()
    return found | {name: found[name] + offset for name, offset in offsets}


def deviations(estimator: Any, noise: Noise, release: Any) -> dict[str, Any]:
    """Return the standard deviations by noise of these attributes, by name.

    Parameters
    ----------
    estimator : estimator
    noise : Noise
    release : the object that `_release` made
    """
    # noise of steps has gone through all later ones
    affine = getattr(estimator, "_affine_attributes", ())
    if not affine or not isinstance(release, QueryRelease):
        return {}
    # code of others gives arrays whose shape is known once it has run
    query = release.query
    size = query.size if isinstance(query, VectorQuery) else release.dim
    if size is None:
        return {}
    widths: Any = noise.std(size)
    # some families have no variance, in all coordinates
    if not np.isfinite(widths).all():
        return {}
    found: dict[str, Any] = estimator._linear_parts(widths, release)
    return found


def confidence_interval(self: Any, level: float = 0.95) -> dict[str, tuple[Any, Any]]:
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
    names = self._affine_attributes
    known = [name for name in names if hasattr(self, f"{name}std_")]
    if not known:
        raise UnsupportedError(
            Statement("release.no_confidence_intervals", owner=type(self).__name__)
        )
    width = self.noise_.interval_width(level)
    return {
        name: _interval(getattr(self, name), getattr(self, f"{name}std_"), width)
        for name in known
    }


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
