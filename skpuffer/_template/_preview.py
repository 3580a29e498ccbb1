"""Part of the template: what a fit would promise, before any row is read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_count
from skpuffer.privacy import Preview
from skpuffer.schema import Date, Number, Schema
from skpuffer.utils._reading import as_table, ordered_labels

from ._intervals import noise_error
from ._reading import declared_classes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array, Table


class UnreadRows:
    """Stand-in for the rows of a table that is not there: all access is refused.

    Parameters
    ----------
    name : str
        Name of the estimator, for the message.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported_error("preview.fit_reads_rows", name=self._name)

    def __getattr__(self, name: str) -> Any:
        # lookups of the language itself, such as for a copy, are no access to rows
        if name.startswith("__") and name != "__array_interface__":
            raise AttributeError(name)
        self._refuse()

    __array__ = __bool__ = __getitem__ = __iter__ = __len__ = _refuse


def refuse_unread(
    estimator: Any, scenario: Scenario, leaks: Sequence[Statement] = ()
) -> None:
    """Refuse a preview where noise would be set by the rows themselves."""
    name = type(estimator).__name__
    if scenario.needs_empirical:
        raise unsupported_error("preview.prior_empirical", name=name)
    if scenario.draws_from_pool:
        raise unsupported_error(
            "preview.noise_set_by_pool",
            name=name,
            scenario_type=type(scenario).__name__,
        )
    for leak in leaks:
        # that a parameter is 'empirical' is how such a sentence comes about
        asked = [
            key
            for key, held in estimator.get_params(deep=False).items()
            if isinstance(held, str) and held == "empirical"
        ] or ["bounds"]
        raise unsupported_error(
            "preview.parameter_empirical", name=name, asked=asked[0], leak=leak
        )


def made_up_table(
    n_rows: int,
    names: Sequence[Any] | None,
    n_columns: int | None,
    *,
    book: Schema | None = None,
    levels: Any = None,
    known: Mapping[Hashable, Any] = MappingProxyType({}),
) -> Any:
    """Return a table of made-up rows, such as any table of these columns may hold."""
    if names is None and not known and not isinstance(levels, Mapping):
        return np.zeros((n_rows, n_columns or 0))

    def value(name: Any) -> Any:
        if book is not None and name in book:
            column: Any = book[name]
            if isinstance(column, Date):
                return column.present([column.low])[0]
            return column.low if isinstance(column, Number) else column.levels[0]
        if isinstance(levels, Mapping) and name in levels:
            return list(levels[name])[0]
        return known.get(name, 0.0)

    if names is None:
        # columns of an array are known by their numbers, and are of one type
        rows = np.array([[value(i) for i in range(n_columns or 0)]] * n_rows)
        return rows
    return pd.DataFrame({name: [value(name)] * n_rows for name in names})


def preview(
    self: Any,
    n_records: int | None = None,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    example: Table | None = None,
    classes: ArrayLike | None = None,
    target_name: str | None = None,
    groups: ArrayLike | None = None,
) -> Preview:
    """Return noise, expected error and certificate of a fit, before any is made.

    No row is read, no noise drawn and no budget spent. Facts that only rows can tell
    are not foreseen: a fit also refuses records that the scenario rules out.

    Parameters
    ----------
    n_records : int, default=None
        Number of records; needed unless the scenario or the `schema` declares it, or
        says that it is private.
    n_features : int, default=None
        Number of columns, with a secret one. One of `n_features`, `feature_names` and
        `example` is needed, except where a `schema` names the columns.
    feature_names : sequence of str, default=None
        Names of the columns.
    example : {array-like, data frame} of shape (n, n_columns), default=None
        Public or made-up rows with the columns and types of the table.
    classes : array-like, default=None
        Class labels of a classifier, where nothing declares them.
    target_name : str, default=None
        Name of the target, where a scenario needs it.
    groups : array-like of shape (n_records,), default=None
        As in `fit`.

    Returns
    -------
    Preview

    Raises
    ------
    ValueError
        If a public fact is missing.
    UnsupportedError
        If the noise depends on the rows, or the accountant does not support the
        scenario.
    """
    told = n_records
    if n_records is None:
        n_records = _declared_size(self)
    n_records = check_count(n_records=n_records)
    # reading a table sets attributes, here those of a copy; its generator is a copy
    # as well, so that a fit afterwards draws what it would have drawn
    copy = clone(self)
    if example is not None:
        example = as_table(example)
    model = getattr(copy, "_previewed", copy)
    labels = _labels(model, classes)
    n_rows = 2 if labels is None else max(2, len(labels))
    if n_rows > n_records:
        if labels is not None and declared_classes(model) is None:
            raise value_error(
                "preview.fewer_records_than_classes",
                n_records=n_records,
                n_labels=len(labels),
            )
        n_rows = n_records
    X = copy._made_up(n_rows, n_features, feature_names, example)
    y = _made_up_target(model, n_rows, labels, target_name)
    plan = copy._plan_unread(
        X,
        y,
        n_records=n_records,
        groups=groups,
        released=vars(self).get("_released"),
    )
    return preview_of(copy, plan, told)


def preview_of(copy: Any, plan: Any, n_records: int | None = None) -> Preview:
    """Return what a plan says of its fit."""
    noise, release = plan.calibration.noise, plan.release
    if n_records is None and getattr(release.context, "size", "private") != "private":
        n_records = release.n_records
    std = {}
    # steps around a private estimator have no attributes of their own
    if hasattr(copy, "_deviations"):
        std = copy._foreseen(noise, release, n_records)
    return Preview(
        estimator=type(copy).__name__,
        noise=noise,
        certificate=plan.whole,
        error=noise_error(release, noise),
        std=std,
    )


def _declared_size(estimator: Any) -> int:
    """Return the number of records that parameters declare, or any if it is private."""
    size = estimator._stated_size(estimator.scenario)
    if size == "public":
        raise value_error("preview.n_records_not_told", name=type(estimator).__name__)
    return 2 if size == "private" else size


def made_up(
    self: Any,
    n_rows: int,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    example: Any,
) -> Any:
    """Return made-up rows with the columns that public facts tell of."""
    given: dict[str, Any] = {
        "n_features": n_features,
        "feature_names": feature_names,
        "example": example,
    }
    told = [name for name, held in given.items() if held is not None]
    if len(told) > 1:
        raise value_error("preview.columns_told_twice", told=told)
    schema: Schema | None = getattr(self, "schema", None)
    if not told and schema is None:
        raise value_error("preview.columns_not_told", owner=type(self).__name__)
    if example is not None:
        return _repeated(example, n_rows)
    names = feature_names
    if names is None and n_features is None and schema is not None:
        names = schema.names
    if names is not None:
        names = list(names)
    else:
        check_count(n_features=n_features)
    scenario: Any = getattr(self, "_previewed", self).scenario
    book = schema if schema is not None else getattr(scenario, "code_book", None)
    return made_up_table(
        n_rows,
        names,
        n_features,
        book=book,
        levels=getattr(self, "categories", None),
        known=getattr(scenario, "public_record", dict)(),
    )


def _repeated(example: Any, n_rows: int) -> Any:
    """Return the first row of a table, so many times."""
    frame = hasattr(example, "columns")
    if len(example) == 0:
        raise value_error("preview.example_empty")
    if not frame:
        return np.repeat(np.asarray(example)[:1], n_rows, axis=0)
    places = [0] * n_rows
    return example.iloc[places] if hasattr(example, "iloc") else example[places]


def _labels(estimator: Any, classes: ArrayLike | None) -> Array | None:
    """Return the public labels of a classifier, None where there is none."""
    if not is_classifier(estimator):
        if classes is not None:
            raise value_error(
                "preview.classes_for_no_classifier",
                estimator_type=type(estimator).__name__,
            )
        return None
    declared = declared_classes(estimator)
    if declared is not None:
        if classes is not None:
            raise value_error("preview.classes_declared_already")
        return declared
    if classes is None:
        raise value_error(
            "preview.classes_not_told", estimator_type=type(estimator).__name__
        )
    return ordered_labels(classes, "classes")


def _made_up_target(
    estimator: Any, n_rows: int, labels: Array | None, target_name: str | None
) -> Any:
    """Return a made-up target, None where there is none."""
    y: Any = None
    if labels is not None:
        y = np.resize(labels, n_rows)
    elif get_tags(estimator).target_tags.required or is_regressor(estimator):
        schema = getattr(estimator, "schema", None)
        bounds = getattr(estimator, "target_bounds", None)
        if schema is not None and schema.target_bounds is not None:
            bounds = schema.target_bounds
        y = np.full(n_rows, 0.0 if bounds is None else float(bounds[0]))
    if target_name is None:
        return y
    return pd.Series(np.zeros(n_rows) if y is None else y, name=target_name)
