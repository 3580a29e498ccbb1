"""How a fit reads a table that is at hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from skpuffer._template._code_book import CodeBookMixin
from skpuffer._template._targets import counted
from skpuffer.exceptions import Statement
from skpuffer.scenarios import RecordScenario
from skpuffer.scenarios.priors._overlap import (
    columns_of,
    holds_private_rows,
    prior_leaks,
    shares_records,
)
from skpuffer.scenarios.priors._target import target_leaks
from skpuffer.utils._reading import (
    as_table,
    column_names,
    drop_position,
    is_frame,
    matching_names,
    read_groups,
    read_secret,
    to_pandas,
    validate_rows,
)

from ._plan import TableRead

if TYPE_CHECKING:
    from skpuffer.scenarios import Scenario

__all__ = ["RowsMixin", "name_of_target", "public_groups"]


class RowsMixin(CodeBookMixin):
    """Mixin of private estimators: a table is read, and its secret is left out."""

    scenario: Scenario | None

    #: Parameters that are tables of public rows.
    _public_parameters: tuple[str, ...] = ()

    def _read_table(
        self,
        scenario: Scenario,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
        given: Any = None,
    ) -> TableRead:
        """Read a table, and what is public of it.

        `given` is the table as it came, if something was done to it before.
        """
        given, given_y = X if given is None else given, y
        # The secret is no feature: it is out before preprocessing or a query could read
        # it. Names are those of the raw columns, by which a prior knows them.
        # Public preprocessing has left it out already.
        if feature_map is None:
            X, secret = self._split_secret(scenario, X, secret)
        schema_map = None
        if self.schema is not None:
            # nothing but the columns of the code book is read, whatever else there is
            schema_map = feature_map = self._schema_map(scenario, feature_map)
            X = schema_map.schema.frame(X)
        target_name = name_of_target(y)
        if target_name is None and y is not None and self.schema is not None:
            # so that a secret is found out there too, and a prior knows its column
            target_name = self.schema.target
        if scenario.is_coded:
            # what nothing refuses later must be a record that the belief speaks of; a
            # step before the model may take missing values as well
            fills = {
                "fill_rows": feature_map is not None or self._reads_missing(),
                "fill_targets": self._of_no_target() is not None,
            }
            X, y = scenario.coded_records(X, y, target_name, **fills)
        raw, names = X, matching_names(X)
        if feature_map is not None:
            X = feature_map(X)
        # kept as given: validation turns class labels into codes, a prior knows the
        # labels
        raw_y = y
        of_no_target = self._of_no_target()
        X, y, reading = self._validate(X, y)
        if secret is not None:
            secret = read_secret(secret)
            check_consistent_length(X, secret)
            scenario.check_secret(secret)
        return TableRead(
            X=X,
            y=y,
            secret=secret,
            # rows only where the scenario asks for the private data as its prior
            empirical=self._empirical(raw, raw_y, secret, y)
            if scenario.needs_empirical
            else None,
            n_given=X.shape[0],
            groups=public_groups(scenario, groups, X.shape[0]),
            names=names,
            target_name=target_name,
            has_target=y is not None,
            n_targets=y.shape[1] if getattr(y, "ndim", 1) > 1 else 1,
            feature_map=feature_map,
            schema_map=schema_map,
            reading=reading,
            of_no_target=of_no_target,
            # by exact type, as another one may have public rows
            leaks=tuple
            if type(scenario) is RecordScenario and not self._public_parameters
            else partial(
                self._leaks_of_rows, scenario, given, given_y, secret, target_name
            ),
        )

    def _split_secret(self, scenario: Scenario, X: Any, secret: Any) -> tuple[Any, Any]:
        """Drop the secret column from the data, if it is there; read what is left."""
        table = as_table(X)
        # not a table: validation refuses it later, and in scikit-learn's words
        if len(table.shape) != 2:
            return X, secret
        names = matching_names(table)
        position = scenario.secret_position(names, table.shape[1])
        if names is None and hasattr(table, "columns"):
            scenario.check_numbers(column_names(table), position)
        if position is not None:
            X, column = drop_position(table, position)
            # values given apart win over the column
            secret = column if secret is None else secret
        return scenario.coded(X) if scenario.is_coded else X, secret

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Validate the private data.

        Returns
        -------
        X, y : the data, as the query reads it
        reading : object or None
            What else :meth:`_release` should know of how the table was read; public.
        """
        return validate_rows(self, X, dtype=np.float64), None, None

    def _of_no_target(self) -> Statement | None:
        """Return what a certificate says of records without a target, or None."""
        return None

    def _empirical(self, raw: Any, raw_y: Any, secret: Any, y: Any) -> Any:
        """Return the private rows as a prior: those that count."""
        if y is None or self._of_no_target() is None:
            return raw, raw_y, secret
        # labels as they were read, which a prior's are compared with
        labels = self.classes_[y] if hasattr(self, "classes_") else y
        mask = counted(y)
        if mask is None:
            return raw, labels, secret
        kept = to_pandas(raw)[mask] if is_frame(raw) else raw[mask]
        return kept, labels[mask], None if secret is None else secret[mask]

    def _leaks_of_rows(
        self, scenario: Scenario, X: Any, y: Any, secret: Any, target_name: Any
    ) -> tuple[Statement, ...]:
        """Return what voids the promise: a target or public rows that are not so."""
        X = as_table(X)
        tables = {name: getattr(self, name) for name in self._public_parameters}
        return (
            *target_leaks(scenario, y, secret, target_name),
            *prior_leaks(scenario, X, y, secret, target_name),
            *(
                holds_private_rows(
                    Statement("table.subject_named_parameter", name=name)
                )
                for name, table in tables.items()
                if table is not None
                and shares_records(columns_of(X), columns_of(as_table(table)))
            ),
        )

    def _without_secret(self, X: Any, width: int | None = None) -> Any:
        """Drop the secret column from data to predict for, if it is there.

        A table with a code book is read by it as well.
        """
        width = self.n_features_in_ if width is None else width
        scenario = RecordScenario() if self.scenario is None else self.scenario
        if hasattr(self, "feature_map_"):
            X = as_table(X)
            if matching_names(X) is not None or X.shape[1:] != (width,):
                X = self._split_secret(scenario, X, None)[0]
            elif scenario.is_coded:
                X = scenario.coded(X)
            return self.feature_map_(X)
        if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
            if hasattr(X, "columns"):
                scenario.check_numbers(column_names(X), None)
            return X  # as wide as what was fitted once the secret was left out
        return self._split_secret(scenario, X, None)[0]

    def _names_without_secret(self, names: Any) -> Any:
        """Leave the secret column's name out of a list of names."""
        scenario = RecordScenario() if self.scenario is None else self.scenario
        position = scenario.secret_position(tuple(names), len(names))
        return names if position is None else np.delete(names, position)


def public_groups(
    scenario: Scenario, groups: Any, n_records: int
) -> tuple[int, ...] | None:
    """Public groups of a table, one number for each of its records."""
    if groups is None:
        return None
    groups = read_groups(groups)
    check_consistent_length(range(n_records), groups)
    scenario.check_groups(groups)
    return tuple(groups.tolist())


def name_of_target(y: Any) -> Any:
    """Name of a target, where it has one."""
    name = getattr(y, "name", None)
    # of a frame of one column, unless it was numbered
    if name is None and len(named := matching_names(y) or ()) == 1:
        (name,) = named
    return name
