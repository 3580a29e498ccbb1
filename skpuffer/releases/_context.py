"""The public facts of a table: all that a scenario may know of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PublicContext"]


@dataclass(frozen=True, kw_only=True)
class PublicContext:
    """Public facts of a table: all that a scenario may know of it.

    No rows are among them, unless the scenario takes the private table as its prior.

    Parameters
    ----------
    n_records : int
        Number of records. Public by assumption.
    feature_names : tuple of str or None
        Columns of the model's input, before `feature_map`.
    n_features : int or None
    target_name : str or None
        Name of the target column, as the prior calls it.
    has_target : bool
        Whether a target is read beside the features.
    n_targets : int
        Number of columns of the target, where there is one.
    classes : tuple or None
        Class labels. Public by assumption.
    bounds : object or None
        Public bounds of the features, as the estimator was given them.
    groups : tuple of int or None
        Which records belong together (those of a household, say): a number for each
        record, the same for those of one group. None where nothing is said of it.
    feature_map : object or None
        Public preprocessing between raw columns and the model's input: a callable of
        a table, applied to data and prior alike.
    empirical : tuple or None
        The private rows ``(X, y, secret)``: only under ``prior='empirical'``.
    pool : tuple or None
        The rows ``(X, y)`` that the table is drawn from, as a query reads them: only
        under a scenario that takes them as known to the attacker.

    Examples
    --------
    An estimator states what is public of a table, and a scenario is bound to that:

    >>> from skpuffer.releases import PublicContext
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> context = PublicContext(n_records=100, feature_names=("height",), n_features=1)
    >>> scenario = AttributeScenario("sex", level="record", prior=BoundedOdds(4.0))
    >>> scenario.bind(context).context.n_records
    100
    """

    # Except for `empirical` and `pool` every field is public: to add one is to publish
    # it.
    n_records: int
    feature_names: tuple[str, ...] | None = None
    n_features: int | None = None
    target_name: str | None = None
    has_target: bool = False
    n_targets: int = 1
    classes: tuple[Any, ...] | None = None
    # as parameters say it, or read off the data where the certificate says so
    bounds: Any = None
    groups: tuple[int, ...] | None = field(default=None, repr=False)
    feature_map: Callable[[Any], Any] | None = None
    # Left out of comparisons and of the text: arrays do not compare to one truth value,
    # and a printed context must not show private rows.
    empirical: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)
    pool: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)
