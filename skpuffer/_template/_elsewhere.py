"""How a fit reads a table whose rows lie elsewhere, and stay there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer._code_book import CodeBookMixin
from skpuffer._lazy_tables import LazyTable, SummedColumns
from skpuffer.exceptions import UnsupportedError
from skpuffer.scenarios import BoundScenario
from skpuffer.utils._reading import COLLECT

from ._plan import TableRead

if TYPE_CHECKING:
    from skpuffer.utils._elsewhere import TableElsewhere

    from ._plan import Opening

__all__ = ["PRIOR_UNSEEN", "SUMMED_ELSEWHERE", "ElsewhereMixin"]

#: What a certificate says of a table that was summed up by the engine that holds it.
SUMMED_ELSEWHERE = (
    "each row of the lazy data frame is made of one record alone, and the engine that "
    "holds it clips, counts and sums up as it is asked to; numbers of a record "
    "are rounded to 2**-31 of their bounds there, and sums of them are exact"
)

#: What a certificate cannot say of it.
PRIOR_UNSEEN = (
    "no prior of the scenario was made of rows of this table, which is not looked for "
    "where the table lies elsewhere"
)


class ElsewhereMixin(CodeBookMixin):
    """Mixin of private estimators: sums are made by the engine that holds the table."""

    _leaks: Callable[[], tuple[str, ...]]

    def _read_elsewhere(
        self,
        opening: Opening,
        X: Any,
        y: Any,
        secret: Any,
        groups: Any,
        feature_map: Any,
    ) -> TableRead:
        """Read names and types of a lazy data frame, whose rows stay where they are."""
        scenario, name = opening.scenario, type(self).__name__
        if not hasattr(self, "_lazy_columns"):
            raise TypeError(
                f"{name} reads rows, and the parameter 'X' is a lazy data frame, whose "
                f"rows lie elsewhere. {COLLECT}"
            )
        if feature_map is not None:
            raise TypeError(
                "Public preprocessing reads rows, and the parameter 'X' is a lazy data "
                f"frame, whose rows lie elsewhere. {COLLECT}"
            )
        self._refuse_rows_elsewhere(opening, secret=secret, groups=groups)
        table = LazyTable(X)
        position = scenario.secret_position(table.names, len(table.names))
        if position is not None:
            table = table.without(table.names[position])
        schema_map = None
        if self.schema is not None:
            schema_map = self._schema_map(scenario, None)
            table.check_names(schema_map.schema.names)
        columns, reading, names = self._lazy_columns(table, y, schema_map)
        if schema_map is None:
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.n_features_in_ = len(columns) - (y is not None)
        if table.n_records < 2:
            raise ValueError(
                f"Found a table with {table.n_records} records; {name} needs 2 at "
                "least: nothing of one record is hidden among others."
            )
        return TableRead(
            X=SummedColumns(table, columns, name),
            y=None,
            secret=None,
            empirical=None,
            n_given=table.n_records,
            groups=None,
            names=tuple(names),
            target_name=y,
            has_target=y is not None,
            n_targets=1,
            feature_map=schema_map,
            schema_map=schema_map,
            reading=reading,
            of_no_target=None,
        )

    def _refuse_rows_elsewhere(self, opening: Opening, **given: Any) -> None:
        """Refuse what reads rows, or their order, before an engine is asked."""
        scenario, name = opening.scenario, type(self).__name__
        for parameter, value in given.items():
            if value is not None:
                raise UnsupportedError(
                    f"The parameter {parameter!r} has an entry for each row, and rows "
                    f"of a lazy data frame have no order. {COLLECT}"
                )
        reads = scenario.needs_empirical or scenario.draws_from_pool
        if reads or scenario.is_coded:
            raise UnsupportedError(
                f"The parameter 'scenario' of {name}, {type(scenario).__name__}, reads "
                "the rows of the table as its prior, its pool or by its code book, and "
                f"those of a lazy data frame lie elsewhere. {COLLECT}"
            )
        for leak in self._leaks():
            raise UnsupportedError(
                f"{name} would read a lazy data frame for a parameter: {leak}. Give it "
                f"a public value. Or else: {COLLECT}"
            )

    def _sum_elsewhere(
        self, table: TableElsewhere, release: Any, bound: BoundScenario
    ) -> None:
        """Have the sums made that a release asks for; refuse what is no sum."""
        name = type(self).__name__
        if not getattr(release, "is_sum", False):
            way = (
                " Give solver='moments'."
                if hasattr(self, "solver")
                else " PrivateSummary and PrivateCDF count a grid there."
            )
            raise UnsupportedError(
                f"The parameter 'X' of {name} is a lazy data frame, and the release "
                f"{release.name!r} is no sum over its rows.{way} Or else: {COLLECT}"
            )
        kind = type(bound)
        reads_rows = kind.realises or any(
            getattr(kind, method) is not getattr(BoundScenario, method)
            for method in ("check_rows", "check_table")
        )
        if reads_rows:
            raise UnsupportedError(
                f"{type(bound.scenario).__name__} looks at each row, and those of a "
                f"lazy data frame lie elsewhere. {COLLECT}"
            )
        # What cannot be read is refused here, before a ledger is told of a release.
        # The sums are of one state of the table, and kept until they are released.
        table.sum(release.contribution)
