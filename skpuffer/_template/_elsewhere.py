"""How a fit reads a table whose rows lie elsewhere, and stay there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer._code_book import CodeBookMixin
from skpuffer._lazy_tables import LazyTable, SummedColumns
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.scenarios import BoundScenario
from skpuffer.utils._reading import COLLECT

from ._plan import TableRead

if TYPE_CHECKING:
    from skpuffer.kernel.releases import TableElsewhere

    from ._plan import Opening

__all__ = ["PRIOR_UNSEEN", "SUMMED_ELSEWHERE", "ElsewhereMixin"]

#: What a certificate says of a table that was summed up by the engine that holds it.
SUMMED_ELSEWHERE = Statement("assume.rows_summed_by_engine")

#: What a certificate cannot say of it.
PRIOR_UNSEEN = Statement("assume.prior_unseen_elsewhere")


class ElsewhereMixin(CodeBookMixin):
    """Mixin of private estimators: sums are made by the engine that holds the table."""

    _leaks: Callable[[], tuple[Statement, ...]]

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
                Statement("lazy.estimator_reads_rows", name=name, collect=COLLECT)
            )
        if feature_map is not None:
            raise TypeError(Statement("lazy.preprocessing_reads_rows", collect=COLLECT))
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
                Statement("lazy.too_few_records", n_records=table.n_records, name=name)
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
                    Statement(
                        "lazy.parameter_per_row", parameter=parameter, collect=COLLECT
                    )
                )
        reads = scenario.needs_empirical or scenario.draws_from_pool
        if reads or scenario.is_coded:
            raise UnsupportedError(
                Statement(
                    "lazy.scenario_reads_rows",
                    name=name,
                    scenario_type=type(scenario).__name__,
                    collect=COLLECT,
                )
            )
        for leak in self._leaks():
            raise UnsupportedError(
                Statement(
                    "lazy.parameter_read_from_rows",
                    name=name,
                    leak=leak,
                    collect=COLLECT,
                )
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
                else Statement("lazy.grid_counted_there")
            )
            raise UnsupportedError(
                Statement(
                    "lazy.release_no_sum",
                    name=name,
                    name2=release.name,
                    way=way,
                    collect=COLLECT,
                )
            )
        kind = type(bound)
        reads_rows = kind.realises or any(
            getattr(kind, method) is not getattr(BoundScenario, method)
            for method in ("check_rows", "check_table")
        )
        if reads_rows:
            raise UnsupportedError(
                Statement(
                    "lazy.scenario_looks_at_rows",
                    scenario_type=type(bound.scenario).__name__,
                    collect=COLLECT,
                )
            )
        # What cannot be read is refused here, before a ledger is told of a release.
        # The sums are of one state of the table, and kept until they are released.
        table.sum(release.contribution)
