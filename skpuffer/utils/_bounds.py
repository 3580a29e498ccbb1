"""Public bounds of features: given, declared by the scenario, or asked of the data."""

from dataclasses import dataclass, replace

import numpy as np

from ._checks import check_interval, check_option

__all__ = [
    "BOUNDS_LEAK",
    "Bounds",
    "are_empirical",
    "check_bounds",
    "data_bounds",
    "declared_bounds",
    "resolve_bounds",
]

#: What a certificate and a warning say where the bounds are data-dependent.
BOUNDS_LEAK = (
    "the bounds were read from the private data and are not covered by any promise"
)


@dataclass(frozen=True)
class Bounds:
    """A closed interval for each feature. Hashable, so that queries may hold it.

    Parameters
    ----------
    low, high : tuple of float
        Finite, ``low < high`` for each feature.

    Examples
    --------
    >>> from skpuffer.utils._bounds import Bounds
    >>> bounds = Bounds((0.0, -1.0), (10.0, 1.0))
    >>> bounds.normalise([[20.0, 0.5]])
    array([[1. , 0.5]])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def middle(self):
        """Midpoints, of shape (n_features,)."""
        return np.asarray(self.low) / 2 + np.asarray(self.high) / 2

    @property
    def half(self):
        """Half the lengths, of shape (n_features,): the reach from a midpoint."""
        return np.asarray(self.high) / 2 - np.asarray(self.low) / 2

    def select(self, positions):
        """Return the bounds of some of the features."""
        return Bounds(
            tuple(self.low[i] for i in positions),
            tuple(self.high[i] for i in positions),
        )

    def normalise(self, X):
        """Clip to the bounds and map them to [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        # the second clip is for rounding: a sensitivity rests on the range
        inside = np.clip(np.asarray(X, dtype=float), self.low, self.high)
        return np.clip((inside - self.middle) / self.half, -1.0, 1.0)


def are_empirical(bounds):
    """Whether the bounds are to be read from the private data."""
    return isinstance(bounds, str) and bounds == "empirical"


def check_bounds(bounds, name="bounds"):
    """Check what can be checked before the data is seen.

    Parameters
    ----------
    bounds : None, 'empirical', pair (low, high), or dict of such pairs
        Numbers, or arrays of one number for each feature; in a dict, numbers.
    name : str
        Of the parameter, for the message.

    Returns
    -------
    None or pair of ndarray
        None if the bounds are not given outright.

    Raises
    ------
    ValueError
        If the pair is none, is not finite, or is not ``low < high`` everywhere; or if
        it may be two pairs as well.
    """
    if bounds is None:
        return None
    if isinstance(bounds, dict):
        for column, pair in bounds.items():
            found = check_bounds(pair, f"{name}[{column!r}]")
            if found is None or any(side.ndim for side in found):
                raise ValueError(
                    f"The parameter {name!r} must give the column {column!r} a pair of "
                    f"numbers (low, high). Got {pair!r}."
                )
        return None
    if isinstance(bounds, str):
        check_option(("empirical",), **{name: bounds})
        return None
    try:
        low, high = bounds
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"The parameter {name!r} must be a pair (low, high) of numbers, or of "
            "arrays of one number for each feature, all lows before all highs; or a "
            f"dict of {{column: (low, high)}}. Got {bounds!r}."
        ) from None
    if max(low.ndim, high.ndim) > 1:
        raise ValueError(
            f"The parameter {name!r} must be a pair of numbers or of one-dimensional "
            f"arrays. Got shapes {low.shape} and {high.shape}."
        )
    if low.ndim and high.ndim and low.shape != high.shape:
        raise ValueError(
            f"The parameter {name!r} has {low.size} lower and {high.size} upper "
            "bounds: give as many."
        )
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError(
            f"The parameter {name!r} must be finite: one record could move the result "
            f"without end otherwise. Got {bounds!r}."
        )
    if not np.all(low < high):
        raise ValueError(
            f"The parameter {name!r} must be a pair (low, high) with low < high for "
            f"each feature. Got {bounds!r}."
        )
    check_interval(low, high, name)
    if low.shape == high.shape == (2,) and _looks_like_pairs(bounds):
        raise ValueError(
            f"The parameter {name!r} can be read as lows and highs, or as a pair for "
            "each of two features. Give lows and highs as a tuple of two lists, "
            f"{name}=([low, low], [high, high]), or a dict of {{column: (low, high)}}. "
            f"Got {bounds!r}."
        )
    return low, high


def _looks_like_pairs(bounds):
    """Whether a user may have written one pair (low, high) for each of two features."""
    written = isinstance(bounds, list) or all(isinstance(p, tuple) for p in bounds)
    return written and all(low < high for low, high in bounds)


def resolve_bounds(bounds, n_features, *, scenario=None, context=None, X=None):
    """Return the bounds of every feature, from wherever they are to come.

    Parameters
    ----------
    bounds : None, 'empirical', pair (low, high), or dict of {column: (low, high)}
        The estimator's parameter. None asks the scenario, as a dict does for columns
        it does not name.
    n_features : int
    scenario : Scenario, default=None
        Asked for the bounds it declares.
    context : PublicContext, default=None
        Names and public preprocessing of the features, to ask with.
    X : ndarray of shape (n, n_features), default=None
        The private data, read for ``'empirical'`` only.

    Returns
    -------
    Bounds or None
        None if nobody knows any.

    Raises
    ------
    ValueError
        As :func:`check_bounds`, or if there are not as many as features, or some are
        in no dict and not declared.

    Examples
    --------
    >>> from skpuffer.utils._bounds import resolve_bounds
    >>> resolve_bounds((0, [1, 5]), n_features=2)
    Bounds(low=(0.0, 0.0), high=(1.0, 5.0))
    """
    given = check_bounds(bounds)
    if given is not None:
        return _of_length(*given, n_features, "The parameter 'bounds' has")
    if are_empirical(bounds):
        return data_bounds(X)
    if isinstance(bounds, dict):
        return _by_column(bounds, n_features, scenario, context)
    if scenario is None:
        return None
    return declared_bounds(scenario, context, n_features)


def _by_column(bounds, n_features, scenario, context):
    """Bounds in the order of the columns, from a dict that may know more of them."""
    names = context.feature_names if context.feature_map is None else None
    names = range(n_features) if names is None else names
    missing = [name for name in names if name not in bounds]
    if missing:
        declared = declared_bounds(scenario, context, n_features)
        if declared is None:
            raise ValueError(
                f"The parameter 'bounds' has no pair for the columns {missing!r} of "
                f"the data; it names {list(bounds)!r}. Columns go by name in a data "
                "frame, by position in an array and after public preprocessing."
            )
        pairs = zip(declared.low, declared.high, strict=True)
        bounds = dict(zip(names, pairs, strict=True)) | bounds
    low, high = zip(*(map(float, bounds[name]) for name in names), strict=True)
    return Bounds(low, high)


def data_bounds(X):
    """Return the range of each column of private data: a leak, asked for by name."""
    X = np.asarray(X, dtype=float)
    return _widened(X.min(axis=0), X.max(axis=0))


def declared_bounds(scenario, context, n_features):
    """Return the bounds a scenario declares, or None.

    A feature that is constant over a public prior gets an interval of length two around
    its value: a unit of the noise must be positive.
    """
    declared = scenario.declared_bounds(replace(context, n_features=n_features))
    if declared is None:
        return None
    low, high = (np.asarray(side, dtype=float) for side in declared)
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError(
            "The prior of the scenario has NaN or infinity, so its range cannot bound "
            "the features: clean it, or give 'bounds'."
        )
    _of_length(low, high, n_features, "The scenario declares")
    return _widened(low, high)


def _of_length(low, high, n_features, what):
    """Spread over the features, or refuse."""
    for side in (low, high):
        if side.ndim and side.size != n_features:
            raise ValueError(
                f"{what} {side.size} bounds, the data has {n_features} features: give "
                "'bounds' as one pair of numbers, or of arrays with a number for each "
                "feature (a secret column that is dropped does not count)."
            )
    low, high = (np.broadcast_to(side, n_features) for side in (low, high))
    return Bounds(tuple(low.tolist()), tuple(high.tolist()))


def _widened(low, high):
    spread = np.where(low < high, 0.0, np.maximum(1.0, 1e-6 * np.abs(low)))
    return Bounds(tuple((low - spread).tolist()), tuple((high + spread).tolist()))
