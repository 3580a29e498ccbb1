"""What a fitted estimator released, as a tidy table: a number a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import unsupported_error
from skpuffer.kernel.numbers import check_probability

if TYPE_CHECKING:
    from collections.abc import Iterator


def to_frame(self: Any, level: float = 0.95, *, of: str | None = None) -> pd.DataFrame:
    """Return what was released as a tidy table, a number a row; it costs no budget.

    Parameters
    ----------
    level : float, default=0.95
        Confidence level of each interval by itself, in (0, 1).
    of : {'population', 'table'}, default=None
        Target of intervals. None is the population if known, else the table, else none.

    Returns
    -------
    pandas.DataFrame
        With the columns 'column' (empty where it is of none), 'statistic' (a fitted
        attribute, and the place in it), 'estimate' and, with intervals, 'std_error',
        'low' and 'high'.

    Raises
    ------
    UnsupportedError
        If intervals are asked for, and none are known.
    """
    check_is_fitted(self)
    level = check_probability(level=level)
    if of is not None:
        return _with_intervals(self, level, of)
    for kind in ("population", "table"):
        try:
            return _with_intervals(self, level, kind)
        # others may be known of this estimator
        except ValueError:
            continue
    frames = [_entries(self, name, estimate=value) for name, value in _results(self)]
    if frames:
        return pd.concat(frames, ignore_index=True)
    return pd.DataFrame(columns=["column", "statistic", "estimate"])


def _with_intervals(self: Any, level: float, of: str) -> pd.DataFrame:
    if not hasattr(self, "confidence_interval"):
        raise unsupported_error(
            "release.no_confidence_intervals", owner=type(self).__name__
        )
    width = 2 * float(stats.norm.isf((1 - level) / 2))
    frames = []
    for name, (low, high) in self.confidence_interval(level, of=of).items():
        error = getattr(self, f"{name}std_", None) if of == "table" else None
        if error is None:
            error = np.subtract(high, low) / width
        ends = {"std_error": error, "low": low, "high": high}
        frames.append(_entries(self, name, estimate=getattr(self, name), **ends))
    return pd.concat(frames, ignore_index=True)


def _results(self: Any) -> Iterator[tuple[str, Any]]:
    """Attributes that hold noisy numbers, and choices that were made of them."""
    if hasattr(self, "best_params_"):
        yield from self.best_params_.items()
        yield "score", self.best_score_
        return
    for name, value in vars(self).items():
        if not name.endswith("_") or "noise" in name or name.endswith("_std_"):
            continue
        if name == "bounds_":
            yield from zip(("low", "high"), value, strict=True)
        elif name == "tree_":
            yield name, np.array([" – ".join(map(str, pair)) for pair in value])
        elif isinstance(value, pd.DataFrame | pd.Series | float) or _is_real(value):
            yield name, value


def _is_real(value: Any) -> bool:
    """Whether this is an array of numbers, and not of positions or names."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _entries(self: Any, name: str, **columns: Any) -> pd.DataFrame:
    """Entries of what was released, one a row."""
    held = {key: _by_place(self, value) for key, value in columns.items()}
    places = next(iter(held.values()))
    found = {
        "column": [place[-1] for place in places],
        "statistic": [" ".join(map(str, (name.rstrip("_"), *p[:-1]))) for p in places],
    }
    return pd.DataFrame(found | {key: [*part.values()] for key, part in held.items()})


def _by_place(self: Any, value: Any) -> dict[tuple[Any, ...], Any]:
    """Entries by their places in an attribute, of which the last is the column."""
    if isinstance(value, pd.DataFrame):
        value = value.stack(future_stack=True)
    if isinstance(value, dict | pd.Series):
        parts = dict(value).items()
        return {key if isinstance(key, tuple) else (key,): v for key, v in parts}
    array = np.asarray(value)
    last = array.shape[-1] if array.ndim else 0
    encoding = getattr(self, "feature_map_", None)
    encoded = list(getattr(encoding, "names", ()))
    marks = set(getattr(encoding, "marks", {}).values())
    known = (
        getattr(self, "columns_", ()),
        encoded,
        [name for at, name in enumerate(encoded) if at not in marks],
        getattr(self, "feature_names_in_", ()),
    )
    names = next((list(n) for n in known if len(n) == last), None)
    if names is None and last == getattr(self, "n_features_in_", None):
        names = [*range(last)]
    places: list[tuple[Any, ...]] = [*np.ndindex(array.shape)]
    if names is not None and array.ndim:
        places = [(*at[:-1], names[at[-1]]) for at in places]
    else:  # of no column
        places = [(*at, "") if array.size > 1 else ("",) for at in places]
    return dict(zip(places, array.ravel().tolist(), strict=True))
