"""Options and return values of all loaders, in scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_count, check_non_negative, check_option
from skpuffer.schema import Category, Number, Schema


def check_switches(**switches: bool) -> None:
    """Check options that are True or False."""
    for name, value in switches.items():
        check_option((True, False), **{name: value})


def check_fetch_options(*, n_retries: int, delay: float, **switches: bool) -> None:
    """Check the options that all fetchers share, before disk or network is touched."""
    check_switches(**switches)
    check_count(least=0, n_retries=n_retries)
    check_non_negative(delay=delay)


def as_categories(
    frame: pd.DataFrame, categories: Mapping[str, Sequence[Any]]
) -> pd.DataFrame:
    """Give the columns of a frame the categories of the published code book.

    Parameters
    ----------
    frame : DataFrame
        The table as read.
    categories : dict of str to tuple of str
        Code book by column. A column that is absent from the data keeps every code
        of the book, so the dtype tells nothing of the rows.

    Returns
    -------
    DataFrame
    """
    return frame.astype(
        {
            column: pd.CategoricalDtype(list(codes))
            for column, codes in categories.items()
        }
    )


def _schema_of(
    frame: pd.DataFrame,
    target: str,
    categories: Mapping[str, Sequence[Any]],
    bounds: Mapping[str, tuple[float, float]],
    amounts: Sequence[str],
    gaps: Sequence[str],
    units: Mapping[str, str] | None,
) -> Schema:
    """Code book of a published table: what is said of its columns, and their types."""
    columns: dict[Any, Category | Number] = {}
    for name in frame.columns:
        # "?" is how the files of the repository write a missing value
        common: dict[str, Any] = {
            "missing": ("?",) if name in gaps else (),
            "missing_level": name in gaps,
            "unit": (units or {}).get(name),
        }
        if name in categories:
            columns[name] = Category(tuple(categories[name]), **common)
        else:
            columns[name] = Number(
                *bounds[name],
                integer=bool(pd.api.types.is_integer_dtype(frame[name])),
                amount=name in amounts,
                **common,
            )
    return Schema(columns, target=target)


def as_dataset(
    frame: pd.DataFrame,
    target: str,
    *,
    return_X_y: bool,
    as_frame: bool,
    categories: Mapping[str, Sequence[Any]],
    bounds: Mapping[str, tuple[float, float]],
    descr: str,
    amounts: Sequence[str] = (),
    gaps: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    **extra: Any,
) -> Bunch | tuple[Any, Any]:
    """Split a frame into data and target and pack them as scikit-learn does.

    Parameters
    ----------
    frame : DataFrame of shape (n_samples, n_features + 1)
    target : str
        Name of the target column.
    return_X_y, as_frame : bool
    categories : dict of str to tuple
    bounds : dict of str to (low, high)
    descr : str
    amounts, gaps : sequence of str, default=()
        Columns that are amounts with a heavy tail, and those that have missing values.
    units : dict of str to str, default=None
    **extra : further fields of the Bunch

    Returns
    -------
    Bunch, or the pair (data, target)
    """
    data, y = frame.drop(columns=target), frame[target]
    feature_names = data.columns.tolist()
    if not as_frame:
        data, y = data.to_numpy(), y.to_numpy()
    if return_X_y:
        return data, y
    return Bunch(
        data=data,
        target=y,
        frame=frame if as_frame else None,
        feature_names=feature_names,
        target_names=[target],
        categories={column: list(codes) for column, codes in categories.items()},
        bounds=dict(bounds),
        schema=_schema_of(frame, target, categories, bounds, amounts, gaps, units),
        DESCR=descr,
        **extra,
    )
