"""A word where public facts say that rows are of another scale than `data_norm`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import ScaleWarning, Statement
from skpuffer.utils._warn import warn

if TYPE_CHECKING:
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats

__all__ = ["scale_advice", "warn_of_scale"]

#: By so much the length of rows may miss `data_norm`: what is cut off, or wasted.
_FAR = 10.0

#: By so much one column may be wider than most.
_APART = 100.0


def scale_advice(low: Floats, high: Floats, data_norm: float) -> Statement | None:
    """Return what is wrong with public bounds of columns, or None.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        Public bounds of the columns.
    data_norm : float
        To which longer rows are scaled down.

    Returns
    -------
    Statement or None
        With the remedy.

    Notes
    -----
    Of a row that is uniform within the bounds the mean squared length is ``|c|**2 +
    |h|**2 / 3``, with c their middle and h their half width.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.linear_model._scale import scale_advice
    >>> scale_advice(np.zeros(2), np.array([0.9, 0.7]), 1.0)
    >>> scale_advice(np.zeros(2), np.array([90.0, 99_999.0]), 1.0).code
    'linear.rows_longer_than_data_norm'
    """
    middle, half = (low + high) / 2, (high - low) / 2
    usual = math.sqrt(float(middle @ middle + half @ half / 3))
    longest = float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))
    remedy = Statement("linear.remedy_scale_by_bounds")
    if usual > _FAR * data_norm:
        return Statement(
            "linear.rows_longer_than_data_norm", usual=usual / data_norm, remedy=remedy
        )
    if longest < data_norm / _FAR:
        return Statement(
            "linear.rows_shorter_than_data_norm", longest=longest, data_norm=data_norm
        )
    wide = half[half > 0]
    if len(wide) > 2 and wide.max() > _APART * np.median(wide):
        return Statement(
            "linear.one_column_too_wide",
            ratio=wide.max() / np.median(wide),
            remedy=remedy,
        )
    return None


def warn_of_scale(estimator: Any, task: Task) -> None:
    """Warn where public facts say that rows are far from the estimator's `data_norm`.

    Parameters
    ----------
    estimator : estimator
        With the parameter `data_norm`.
    task : Task
        Of which the scenario's bounds and the code book are read, and no row.
    """
    norm = getattr(estimator, "data_norm", None)
    if norm is None or isinstance(norm, str) or task.scenario.needs_empirical:
        return
    if estimator.schema is not None:
        # columns are scaled by their bounds, and the rows' norm is known
        longest = float(getattr(task.context.feature_map, "norm", math.inf))
        if longest < norm / _FAR:
            _say(
                estimator,
                Statement(
                    "linear.schema_rows_below_data_norm", longest=longest, norm=norm
                ),
            )
        return
    bounds = task.scenario.declared_bounds(task.context)
    if bounds is not None:
        low, high = (np.asarray(ends, float) for ends in bounds)
        found = scale_advice(low, high, float(norm))
        if found is not None:
            _say(estimator, found)


def _say(estimator: Any, found: Statement) -> None:
    warn(
        Statement(
            "linear.scale_found_by_bounds",
            estimator_type=type(estimator).__name__,
            found=found,
        ),
        ScaleWarning,
    )
