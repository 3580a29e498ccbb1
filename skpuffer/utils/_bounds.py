"""Public bounds of features: given, declared by the scenario, or read from the data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import (
    Floats,
    Numbers,
    check_extent,
    check_option,
    check_positive,
)

if TYPE_CHECKING:
    from skpuffer.releases import PublicContext


#: What a certificate and a warning say where the bounds are data-dependent.
BOUNDS_LEAK = Statement("assume.bounds_read_from_data")

# Whose bounds are not as many as features.
_GIVEN = Statement("bounds.owner_parameter_has")
_DECLARED = Statement("bounds.owner_scenario_declares")


class DeclaresBounds(Protocol):
    """Protocol of a scenario that may declare bounds."""

    def declared_bounds(
        self, context: "PublicContext"
    ) -> tuple[ArrayLike, ArrayLike] | None:
        """Bounds of the features that the scenario takes for public."""


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

    # tuples, so that bounds have a hash; the arrays below are computed from them once
    low: tuple[float, ...]
    high: tuple[float, ...]
    #: Midpoints, and half the lengths, of shape (n_features,).
    middle: Floats = field(init=False, repr=False, compare=False)
    half: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # halved first: a sum or difference of two large ends could overflow
        low, high = np.asarray(self.low) / 2, np.asarray(self.high) / 2
        object.__setattr__(self, "middle", low + high)
        object.__setattr__(self, "half", high - low)

    def select(self, positions: Iterable[int]) -> "Bounds":
        """Return the bounds of some of the features."""
        return Bounds(
            tuple(self.low[i] for i in positions),
            tuple(self.high[i] for i in positions),
        )

    def normalise(self, X: ArrayLike) -> Floats:
        """Clip to the bounds and map them to [-1, 1]."""
        # the second clip is for rounding: a sensitivity rests on the range
        inside = np.clip(np.asarray(X, dtype=float), self.low, self.high)
        normalised: Floats = np.clip((inside - self.middle) / self.half, -1.0, 1.0)
        return normalised


def are_empirical(bounds: Any) -> bool:
    """Whether the bounds are to be read from the private data."""
    return isinstance(bounds, str) and bounds == "empirical"


def check_bounds(bounds: Any, name: str = "bounds") -> tuple[Floats, Floats] | None:
    """Check the parameter as far as possible without data; None if not given."""
    # what is released first is seen to by itself
    if bounds is None or hasattr(bounds, "_fit_within"):
        return None
    # each pair by itself; whether the columns exist is seen when the table is
    if isinstance(bounds, dict):
        for column, pair in bounds.items():
            found = check_bounds(pair, f"{name}[{column!r}]")
            if found is None or any(side.ndim for side in found):
                raise value_error(
                    "bounds.column_pair_invalid", name=name, column=column, pair=pair
                )
        return None
    if isinstance(bounds, str):
        # a word of its own, so that nobody leaks a range by leaving a parameter out
        check_option(("empirical",), **{name: bounds})
        return None
    try:
        low, high = bounds
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise value_error("bounds.not_pair_or_dict", name=name, bounds=bounds) from None
    if max(low.ndim, high.ndim) > 1:
        raise value_error(
            "bounds.shapes_invalid", name=name, shape=low.shape, shape2=high.shape
        )
    if low.ndim and high.ndim and low.shape != high.shape:
        raise value_error(
            "bounds.counts_unequal", name=name, size=low.size, size2=high.size
        )
    # an infinite bound would clip nothing, and leave the sensitivity infinite
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise value_error("bounds.not_finite", name=name, bounds=bounds)
    if not np.all(low < high):
        raise value_error("bounds.low_not_below_high", name=name, bounds=bounds)
    # half a range is a unit of the noise: it must be of a size that can be squared
    check_interval(low, high, name)
    # the one case in which both readings have the right shape: better to ask
    if low.shape == high.shape == (2,) and _looks_like_pairs(bounds):
        raise value_error("bounds.layout_ambiguous", name=name, bounds=bounds)
    return low, high


def _looks_like_pairs(bounds: Any) -> bool:
    """Whether a user may have written one pair (low, high) for each of two features."""
    written = isinstance(bounds, list) or all(isinstance(p, tuple) for p in bounds)
    return written and all(low < high for low, high in bounds)


def resolve_bounds(
    bounds: Any,
    n_features: int,
    *,
    scenario: "DeclaresBounds | None" = None,
    context: Any = None,
    X: ArrayLike | None = None,
) -> Bounds | None:
    """Return the bounds of every feature: given, declared, or of the data.

    `X` is read for ``'empirical'`` only. None if no bounds are given or declared.
    """
    # what is given outright wins over what the scenario declares
    given = check_bounds(bounds)
    if given is not None:
        return _of_length(*given, n_features, _GIVEN)
    # the only way to the data, and the caller writes it in the certificate
    if are_empirical(bounds):
        return data_bounds(cast(ArrayLike, X))
    if isinstance(bounds, dict):
        return _by_column(bounds, n_features, scenario, context)
    if scenario is None:
        return None
    return declared_bounds(scenario, context, n_features)


def _by_column(
    bounds: Any,
    n_features: int,
    scenario: "DeclaresBounds | None",
    context: "PublicContext",
) -> Bounds:
    """Bounds in the order of the columns, from a dict by column and the scenario."""
    # after preprocessing, columns have other meanings than their raw names
    named = context.feature_names if context.feature_map is None else None
    names: Sequence[Any] = range(n_features) if named is None else named
    missing = [name for name in names if name not in bounds]
    if missing:
        # a fit, which has column names, has a scenario
        declared = declared_bounds(cast(DeclaresBounds, scenario), context, n_features)
        if declared is None:
            raise value_error(
                "bounds.columns_without_pair", missing=missing, bounds=list(bounds)
            )
        # the dict wins where both speak of a column
        pairs = zip(declared.low, declared.high, strict=True)
        bounds = dict(zip(names, pairs, strict=True)) | bounds
    # every pair has been checked by now, whoever gave it
    low, high = zip(*(map(float, bounds[name]) for name in names), strict=True)
    return Bounds(low, high)


def data_bounds(X: ArrayLike) -> Bounds:
    """Return the range of each column of private data: a leak, asked for by name."""
    # the extremes are two records' own values: whoever calls this says so in the
    # certificate
    X = np.asarray(X, dtype=float)
    return _widened(X.min(axis=0), X.max(axis=0))


def declared_bounds(
    scenario: DeclaresBounds, context: "PublicContext", n_features: int
) -> Bounds | None:
    """Return the bounds a scenario declares, or None.

    A feature that is constant over a public prior gets an interval of length two around
    its value: a unit of the noise must be positive.
    """
    # of the model's own columns: preprocessing may have made more or fewer
    declared = scenario.declared_bounds(replace(context, n_features=n_features))
    if declared is None:
        return None
    low, high = (np.asarray(side, dtype=float) for side in declared)
    # a prior is checked here, as it was not given as bounds
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise value_error("bounds.prior_not_finite")
    _of_length(low, high, n_features, _DECLARED)
    return _widened(low, high)


def _of_length(low: Floats, high: Floats, n_features: int, what: Statement) -> Bounds:
    """Bounds of `n_features` features, from numbers or arrays of that length."""
    # a single number stands for all features
    for side in (low, high):
        if side.ndim and side.size != n_features:
            raise value_error(
                "bounds.count_differs_from_features",
                what=what,
                size=side.size,
                n_features=n_features,
            )
    low, high = (np.broadcast_to(side, n_features) for side in (low, high))
    return Bounds(tuple(low.tolist()), tuple(high.tolist()))


def _widened(low: Floats, high: Floats) -> Bounds:
    # only where the range is a point; outwards, so that the values stay inside
    spread = np.where(low < high, 0.0, np.maximum(1.0, 1e-6 * np.abs(low)))
    return Bounds(tuple((low - spread).tolist()), tuple((high + spread).tolist()))


def check_interval(low: Numbers, high: Numbers, name: str) -> None:
    """Refuse intervals whose ends or half lengths are not of workable size."""
    # an end may be zero, half a length may not
    for end in np.unique(np.abs([*np.ravel(low), *np.ravel(high)])):
        check_extent(**{name: float(end)})
    for half in np.unique(high / 2 - low / 2):
        check_positive(**{name: float(half)})  # type: ignore[arg-type] # not `finite`
