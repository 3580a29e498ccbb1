"""What a fit knows at each of its stages, before anything is released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._intervals import interval_width
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.numbers import check_option, check_probability

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.privacy import Certificate
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import BoundScenario, Scenario

    from ._weights import Weighting


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of one fit, checked and validated: all that its hooks are told.

    Parameters
    ----------
    scenario : Scenario
        For public bounds it declares.
    accountant : Accountant
    context : PublicContext
    X, y : validated private data
        For ``'empirical'`` parameters only, until the release is run.
    reading : object
        Public: how the table was read, as `_validate` says.
    start : ndarray or None
        Public or released parameters from which this fit goes on.
    start_assumption : Statement or None
        Assumption about them in the certificate.
    units : ndarray of int of shape (n_rows,) or None
        Number of each row's unit, where a unit is a record of the release.
    weighting : Weighting or None
        Public facts about the weights of records.
    weights : ndarray of shape (n_rows, 2) or None
        Weights, until the release is run.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.summary import PrivateMean
    >>> class Told(PrivateMean):
    ...     def _release(self, task):
    ...         print(task.context.n_records, task.context.feature_names, task.scenario)
    ...         return super()._release(task)
    >>> mean = Told(bounds=(0, 1)).fit(pd.DataFrame({"x": [0.1, 0.7, 0.3]}))
    3 ('x',) RecordScenario()
    """

    scenario: Scenario
    accountant: Accountant
    context: PublicContext
    X: Any
    y: Any = None
    reading: Any = None
    start: Any = None
    start_assumption: Statement | None = None
    units: Any = None
    weighting: Weighting | None = None
    weights: Any = None


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Parameters of one fit, checked before any row is read.

    Parameters
    ----------
    accountant : Accountant
        A copy that belongs to the fit.
    leaks : tuple of str
        Uses of private rows by parameters, in sentences.
    size : {'public', 'private'} or int, default='public'
        The public statement on the number of records.
    """

    scenario: Scenario
    accountant: Accountant
    rng: np.random.Generator
    seeded: bool
    leaks: tuple[Statement, ...]
    size: int | str = "public"


@dataclass(frozen=True, kw_only=True)
class TableRead:
    """A table as a fit has read it, and what is public of it.

    Parameters
    ----------
    X, y, secret : validated private data
        In a preview :class:`UnreadRows`.
    empirical : tuple or None
        The rows as they came, where the scenario takes them as its prior.
    feature_map, schema_map : object or None
        Public preprocessing, and the schema where that is what it is.
    of_no_target : str or None
        Statement of a certificate on records without a target.
    leaks : callable
        Returns what voids the promise, such as public rows that are private ones.
    by_units : bool
        Whether a record of the release is a unit with all its rows.
    weights : ndarray of shape (n_given, 2) or None
        Weight of each row, in units of the largest, and what it lacks of that.
    """

    X: Any
    y: Any
    secret: Any
    empirical: Any
    n_given: int
    groups: tuple[int, ...] | None
    names: Any
    target_name: Any
    has_target: bool
    n_targets: int
    feature_map: Any
    schema_map: Any
    reading: Any
    of_no_target: Statement | None
    leaks: Callable[[], tuple[Statement, ...]] = tuple
    by_units: bool = False
    units: Any = None
    weighting: Weighting | None = None
    weights: Any = None


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """The release of a fit, its noise and its promise.

    Parameters
    ----------
    certificate : Certificate
        Certificate of this release.
    whole : Certificate
        With what the fit starts from.
    """

    task: Task
    release: Any
    bound: BoundScenario
    calibration: Calibration
    certificate: Certificate
    whole: Certificate
    leaks: tuple[Statement, ...]

    def seeded(self) -> FitPlan:
        """Return this plan with certificates of seeded noise."""
        return replace(
            self,
            certificate=self.certificate.as_seeded(),
            whole=self.whole.as_seeded(),
        )


# -- attributes that are affine in the released vector: deviations and intervals -------


def confidence_interval(
    self: Any, level: float = 0.95, *, of: str = "table"
) -> dict[str, tuple[Any, Any]]:
    """Return intervals around what was released, for the noise alone.

    Each entry's interval holds, with probability `level` over the noise, the number
    that would have been released without noise: of the table clipped to bounds and
    norms. It costs no budget.

    Parameters
    ----------
    level : float, default=0.95
        Confidence level of each entry by itself, in (0, 1).
    of : {'table'}, default='table'
        Target of intervals.

    Returns
    -------
    dict of {str: (low, high)}
        For each attribute with known deviations its name and two of its kind.

    Raises
    ------
    UnsupportedError
        If quantiles of the noise are not known, or nothing released is affine in it.
    """
    check_is_fitted(self)
    level = check_probability(level=level)
    check_option(("table",), of=of)
    names = self._affine_attributes
    known = [name for name in names if hasattr(self, f"{name}std_")]
    if not known:
        raise unsupported_error(
            "release.no_confidence_intervals", owner=type(self).__name__
        )
    width = interval_width(self.noise_, level)
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
