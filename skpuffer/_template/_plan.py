"""What a fit knows at each of its stages, before anything is released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skpuffer.exceptions import Statement

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.privacy import Certificate
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import BoundScenario, Scenario

__all__ = ["FitPlan", "Opening", "TableRead", "Task"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of one fit, checked and validated: all that its hooks are told.

    Parameters
    ----------
    scenario : Scenario
        For public bounds it declares; nothing else of it concerns an estimator.
    accountant : Accountant
    context : PublicContext
    X, y : validated private data
        For ``'empirical'`` parameters only, until the release is run.
    reading : object
        Public: how the table was read, as `_validate` says.
    start : ndarray or None
        Parameters that are public or were released before, where this fit goes on from
        them.
    start_assumption : Statement or None
        What the certificate takes for granted of them.

    Examples
    --------
    What the hooks of an estimator are told:

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


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Parameters of one fit, checked before any row is read.

    Parameters
    ----------
    scenario : Scenario
    accountant : Accountant
        A copy that belongs to the fit.
    rng : numpy.random.Generator
    seeded : bool
    leaks : tuple of str
        What parameters take from private rows, in sentences.
    """

    scenario: Scenario
    accountant: Accountant
    rng: np.random.Generator
    seeded: bool
    leaks: tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class TableRead:
    """A table as a fit has read it, and what is public of it.

    Parameters
    ----------
    X, y, secret : validated private data
        In a preview :class:`UnreadRows`.
    empirical : tuple or None
        The rows as they came, where the scenario takes them as its prior.
    n_given : int
        Number of rows.
    groups : tuple of int or None
    names : tuple of str or None
        Of the raw columns.
    target_name : str or None
    has_target : bool
    n_targets : int
    feature_map, schema_map : object or None
        Public preprocessing, and the code book where that is what it is.
    reading : object or None
        As :meth:`PrivateEstimatorMixin._validate` says.
    of_no_target : str or None
        What a certificate says of records without a target.
    leaks : callable
        Returns what voids the promise, such as public rows that are private ones.
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


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """What a fit is going to release, with which noise and which promise.

    Parameters
    ----------
    task : Task
    release : QueryRelease, GradientRelease, VoteRelease or SelectionRelease
    bound : BoundScenario
    calibration : Calibration
    certificate : Certificate
        Of this release.
    whole : Certificate
        With what the fit starts from.
    leaks : tuple of str
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
