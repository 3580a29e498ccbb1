"""Public tables from which an attacker's belief is read."""

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.numbers import Floats, floats
from skpuffer.releases import PublicContext
from skpuffer.schema._cells import level_places
from skpuffer.utils._reading import (
    column_names,
    is_frame,
    matching_names,
    refuse_mask,
    to_pandas,
)


class ReferenceTable:
    """Public table, held once and shared by reference.

    Wrap a large public sample when a scenario is cloned often (a grid search): clones
    then share the table rather than copy it.

    Parameters
    ----------
    table : data frame or array-like of shape (n_rows, n_columns)
        Public rows, the secret column among them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.scenarios import ReferenceTable
    >>> ReferenceTable(pd.DataFrame({"sex": [0, 1], "age": [30, 40]}))
    ReferenceTable(2 rows: sex, age)
    """

    def __init__(self, table: Any) -> None:
        if isinstance(table, ReferenceTable):
            table = table._frame
        refuse_mask(table, "prior")
        if not is_frame(table):
            try:
                table = np.asarray(table)
            except ValueError:  # rows of different lengths
                table = np.empty(0)
        if len(table.shape) != 2 or not table.shape[0]:
            raise scenario_error("prior.table_without_rows")
        self._names = matching_names(table)
        frame = to_pandas(table)
        # a copy: the digest must not go stale when the caller's table changes
        self._frame: pd.DataFrame = frame.copy()

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own."""
        return self._names is not None

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Column names, or positions for an array."""
        return tuple(self._frame.columns)

    @cached_property
    def digest(self) -> str:
        """Hash of the content."""
        rows = pd.util.hash_pandas_object(self._frame, index=False).to_numpy()
        return joblib.hash([self.named, list(self._frame.columns), rows])

    def __contains__(self, name: Hashable) -> bool:
        # as pandas finds them: True is not the position 1
        try:
            return name in self._frame.columns
        except (OverflowError, TypeError):  # pandas 2 asks infinity for its integer
            return False

    def frame(self) -> pd.DataFrame:
        """Return a copy as a pandas frame."""
        return self._frame.copy()

    def __len__(self) -> int:
        return len(self._frame)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    # without the cached digest: whoever hashes a table must not see that it was used
    def __getstate__(self) -> dict[str, Any]:
        return {"_names": self._names, "_frame": self._frame}

    def __sklearn_clone__(self) -> Self:
        return self

    def __repr__(self) -> str:
        names = ", ".join(str(c) for c in self.columns[:6])
        more = ", …" if len(self.columns) > 6 else ""
        return f"ReferenceTable({len(self)} rows: {names}{more})"


def encode_target(context: PublicContext, y: ArrayLike | None) -> Any:
    """Encode raw targets as the model sees them: class indices, floats, or as is."""
    if y is None:
        return None
    y = np.asarray(y)
    if context.classes is None:
        numbers = floats(y)
        if numbers is None:
            return y  # labels that pass through a step that has no use for them
        if not np.all(np.isfinite(numbers)):
            raise scenario_error("prior.target_not_finite")
        return numbers
    codes = level_places(context.classes, y)
    if np.any(codes < 0):
        unknown = y[codes < 0][0]
        raise scenario_error(
            "prior.target_label_unknown", unknown=unknown, classes=list(context.classes)
        )
    return codes


def bound_arrays(
    context: PublicContext, X: Any, y: ArrayLike | None = None
) -> tuple[Floats, Any]:
    """Convert public rows to the arrays that the model's query reads."""
    # columns are matched by name or by position, never by one in place of the other
    names = context.feature_names
    if context.n_features is not None and (names is None) != (
        matching_names(X) is None
    ):
        raise ScenarioError(
            Statement("prior.only_prior_names_columns")
            if names is None
            else Statement("prior.only_data_names_columns")
        )
    if is_frame(X):
        if names is not None:
            known = column_names(X)
            assert known is not None  # a frame names its columns
            missing = [name for name in names if name not in known]
            if missing:
                raise scenario_error(
                    "prior.public_rows_lack_columns", missing=missing, known=list(known)
                )
            X = to_pandas(X, names)
        else:
            X = to_pandas(X)
    # public preprocessing, which the data went through as well
    if context.feature_map is not None:
        X = context.feature_map(X)
    X = floats(X)
    if X is None:
        raise scenario_error("prior.columns_not_numeric")
    if X.ndim != 2:
        raise scenario_error("prior.public_rows_shape_invalid", shape=X.shape)
    if context.n_features is not None and X.shape[1] != context.n_features:
        raise scenario_error(
            "prior.feature_count_differs",
            n_public=X.shape[1],
            n_features=context.n_features,
        )
    if not np.all(np.isfinite(X)):
        raise scenario_error("prior.public_rows_not_finite")
    return X, encode_target(context, y)


def secret_values(table: ReferenceTable, column: Hashable) -> set[Any]:
    """Return the set of values of a column, which must have none missing."""
    values = table._frame[column]
    if values.isna().any():
        raise scenario_error("prior.secret_missing_values", column=column)
    return set(values.tolist())


def ordered(values: Iterable[Any]) -> list[Any]:
    """Sort values of one type; mixed types by type and text, for a fixed order."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, str(v)))


def prior_arrays(
    scenario: Any,
    table: ReferenceTable,
    target: Hashable | None,
    context: PublicContext,
) -> tuple[Floats, Any]:
    """Convert a prior table to the arrays X and y that the model's query reads.

    The secret column, which `scenario` names, and the target are left out of X.
    """
    frame = table._frame
    # a public table of a declared belief need not have them
    dropped = [c for c in (scenario.column, target) if c in table]
    features = frame.drop(columns=dropped)
    y = frame[target].to_numpy() if target in dropped else None
    return bound_arrays(context, features if table.named else features.to_numpy(), y)
