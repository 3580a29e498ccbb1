"""Groups that nobody listed: their keys are released, then what is asked of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from skpuffer._template._reading import read_table as read_rows
from skpuffer._template._reading import split_secret
from skpuffer._template._units import by_units, is_limited, kept_rows
from skpuffer.accountants import PrivacyLoss
from skpuffer.base import (
    PrivateEstimatorMixin,
    scenario_and_accountant,
    unnoised_steps,
)
from skpuffer.exceptions import (
    Statement,
    scenario_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_probability
from skpuffer.kernel.partitions import MOST_EPSILON, PartitionRelease, kept_keys
from skpuffer.privacy import compose
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Category, Schema
from skpuffer.schema._cells import TRUTH, column_arrays, distinct_keys
from skpuffer.schema._dates import date_part
from skpuffer.utils._reading import is_lazy, object_cells, read_table, to_pandas
from skpuffer.utils._silence import silence

from ._layout import as_list, check_summary
from ._schema import column_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer._template._plan import FitPlan, Opening, Task
    from skpuffer.kernel.numbers import Indices
    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate

# Part of delta that the keys of one unit cost at most when they tell all; the rest is
# for what they may tell beyond their epsilon.
_OF_DELTA = 0.99

# Part of an epsilon by which composition may be rounded up.
_ROUNDED = 1e-4

#: What a certificate says of parts that are drawn from one seed.
_SEEDED = Statement("pipeline.seeded_noise_dependent")


class _Keys(PrivateEstimatorMixin):
    """Keys of the groups that enough units are in, as tuples of what was written."""

    _takes_any_size = True

    def __init__(
        self,
        scenario: Any = None,
        accountant: Any = None,
        *,
        by: Any = (),
        random_state: Any = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.by = by
        self.random_state = random_state

    def _reads_units(self) -> bool:
        return True

    def _reads_missing(self) -> bool:
        return True

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        validate_data(self, X, skip_check_array=True)
        columns = []
        for places, known in map(_written, column_arrays(X, self.by)):
            # what is missing is the last, a key as any other
            columns.append(np.array([*known, None], dtype=object)[places])
        return np.column_stack(columns), None, None

    def _release(self, task: Task) -> PartitionRelease:
        scenario: Any = task.scenario
        context = task.context
        limit = int(scenario.max_rows) if is_limited(scenario) else 1
        moves = limit * (1 if getattr(scenario, "relation", "") == "add_remove" else 2)
        return PartitionRelease(
            n_records=context.n_records,
            delta=_OF_DELTA * float(task.accountant.delta) / moves,
            max_keys=limit,
            max_units=getattr(scenario, "k", 1),
            context=context,
            assumptions=(Statement("assume.keys_read_as_written"),),
        )

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Any:
        codes, keys = _coded(task.X)
        if task.units is not None:
            # a unit counts once for a key, whatever the number of its rows
            pairs = np.unique(np.asarray(task.units, np.int64) * len(keys) + codes)
            codes = pairs % len(keys)
        counts = np.bincount(codes, minlength=len(keys))
        kept = kept_keys(release, counts, noise, rng)
        return sorted((keys[at] for at in np.flatnonzero(kept)), key=_order)

    def _check_released(self, value: Any) -> None:
        """Accept any keys."""

    def _publish(self, value: Any, release: Any) -> None:
        self.keys_ = value


def _coded(cells: Any) -> tuple[Indices, list[tuple[Any, ...]]]:
    """Number of each row's key, and all keys, given columns of cells."""
    codes = np.zeros(len(cells), dtype=np.intp)
    for column in cells.T:
        # None is a key as well
        places, found = pd.factorize(column, use_na_sentinel=False)
        _, codes = np.unique(codes * len(found) + places, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    keys = [tuple(None if _is_gap(c) else c for c in cells[row]) for row in first]
    return codes, keys


def _is_gap(cell: Any) -> bool:
    return cell is None or cell != cell


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Order of a key: numbers, then texts, then what is missing."""
    return tuple(
        (2, 0.0, "") if c is None else (1, 0.0, c) if isinstance(c, str) else (0, c, "")
        for c in key
    )


#: Before letters that some reader takes for a truth value: it is no space, and no
#: reader knows it.
_AS_TEXT = "\u2060"


def _written(values: Any) -> tuple[Indices, list[Any]]:
    """Number of each cell, and what the cells hold; see :func:`distinct_keys`."""
    if getattr(values.dtype, "kind", "O") == "O":
        values = np.asarray(values, dtype=object)
        values = object_cells(
            _AS_TEXT + cell.strip() if _is_letter(cell) else cell for cell in values
        )
    places, known = distinct_keys(values)
    return places, [
        key.removeprefix(_AS_TEXT) if isinstance(key, str) else key for key in known
    ]


def _is_letter(cell: Any) -> bool:
    """Whether a cell is a text that means a truth value, and no more than that."""
    if not isinstance(cell, str):
        return False
    word = cell.strip().lower()
    return word in TRUTH and word not in ("true", "false")


def _places(columns: Sequence[Any], keys: Sequence[tuple[Any, ...]]) -> Indices:
    """Place of each row's key among some, -1 if it is none of them."""
    found, ranks = [], []
    for at, (places, known) in enumerate(map(_written, columns)):
        numbers = {c: i for i, c in enumerate(dict.fromkeys(k[at] for k in keys))}
        coded = np.array([numbers.get(cell, -1) for cell in [*known, None]], np.int64)
        found.append(coded[places])
        ranks.append([numbers[k[at]] for k in keys])
    index = (
        pd.MultiIndex.from_arrays(ranks)
        if keys
        else pd.MultiIndex.from_arrays([[]] * len(found))
    )
    rows: Indices = index.get_indexer(pd.MultiIndex.from_arrays(found))
    return rows


def unlisted(summary: Any, X: Any) -> bool:
    """Whether some columns of `by` have levels that nobody listed, as types say."""
    check_summary(summary)
    by, schema = as_list(summary.by), summary.schema
    known: Any = summary.categories or {} if schema is None else _entries(schema)
    hidden = [name for name in by if name not in known]
    # parts of dates are all there are, and go with listed levels alone
    if not hidden or is_lazy(X):
        return False
    if schema is not None:
        parts = [name for name in hidden if date_part(schema, name) is not None]
        hidden = [name for name in hidden if name not in parts]
        if parts and hidden:
            raise value_error("summary.by_levels_not_public", name=hidden[0])
    # before any row is read: a secret among them, say
    summary._check_parameters(scenario_and_accountant(summary)[0])
    kinds = column_kinds(read_table(X))
    there = set(by) <= kinds.keys()
    if schema is None:
        # a column that is not there is refused as any other
        return there and any(kinds[name] != "boolean" for name in hidden)
    if hidden and not there:
        raise value_error(
            "summary.columns_not_in_schema",
            parameter="by",
            unknown=hidden,
            known=list(known),
        )
    return bool(hidden)


def _entries(schema: Schema) -> dict[Any, Any]:
    return {name: schema[name] for name in [*schema.names, *as_list(schema.target)]}


def budgets(accountant: Any, share: float) -> tuple[PrivacyLoss, Any]:
    """Split epsilon and delta between keys and what is asked of them."""
    share = check_probability(key_share=share)
    epsilon = getattr(accountant, "epsilon", None)
    delta = getattr(accountant, "delta", None)
    if epsilon is None or not delta:
        raise unsupported_error(
            "summary.keys_need_delta", accountant_type=type(accountant).__name__
        )
    of_keys = min(share * float(epsilon), MOST_EPSILON)
    left = (float(epsilon) - of_keys) * (1 - _ROUNDED)
    rest = clone(accountant).set_params(epsilon=left, delta=(1 - share) * float(delta))
    return PrivacyLoss(of_keys, share * float(delta)), rest


def promised_by_keys(summary: Any, X: Any) -> Certificate:
    """Return what both parts of a fit promise together, whatever groups there are."""
    scenario, accountant = scenario_and_accountant(summary)
    of_keys, of_values = budgets(accountant, summary.key_share)
    table, by = to_pandas(read_table(X)), as_list(summary.by)
    n_records = None if scenario.size == "private" else len(table)
    keys = _Keys(scenario, of_keys, by=by)
    params = summary.get_params(deep=False) | _named(summary, by, [0], table)
    part = type(summary)(**params | {"accountant": of_values, "by": by[0]})
    names = table.columns.tolist()
    plans = keys.preview(n_records, feature_names=names), part.preview(n_records)
    return compose([plan.certificate for plan in plans], delta=float(accountant.delta))


def fit_by_keys(
    summary: Any, opening: Opening, X: Any, y: Any, secret: Any, groups: Any
) -> None:
    """Release the keys of the groups, then what is asked of them, and add both up."""
    scenario, by = opening.scenario, as_list(summary.by)
    # of others, what one knows of a key may tell of records in all
    if type(scenario) is not RecordScenario:
        raise scenario_error(
            "summary.keys_need_records", scenario_type=type(scenario).__name__
        )
    of_keys, of_values = budgets(opening.accountant, summary.key_share)
    callback = summary._init_callback_context(max_subtasks=2)
    callback.call_on_fit_task_begin(estimator=summary)
    # once for both
    given, y, secret, groups, _, units = kept_rows(
        scenario, X, y, secret, groups, opening.rng
    )
    X, secret = split_secret(scenario, given, secret)
    table = to_pandas(read_table(X))

    def part_of(found: list[tuple[Any, ...]]) -> tuple[Any, Any]:
        coded = table.copy(deep=False)
        # in the place of the first, so that columns stay as many
        coded[by[0]] = _places(column_arrays(table, by), found)
        levels = list(range(max(1, len(found))))
        # without its callbacks, which hear of the parts
        params = summary.get_params(deep=False) | _named(summary, by, levels, table)
        params |= {"scenario": scenario, "accountant": of_values, "by": by[0]}
        return type(summary)(**params), coded

    keys = _Keys(scenario, of_keys, by=by, random_state=summary.random_state)
    accountant: Any = opening.accountant
    delta = float(accountant.delta)
    # what can be refused, is so before the keys are paid for
    with silence():
        plans = [
            _planned(part, rows, y, secret, groups, units)
            for part, rows in ((clone(keys), table), part_of([]))
        ]
    total = compose([replace(plan.whole, seeded=False) for plan in plans], delta=delta)
    budget = {"epsilon": ("epsilon", float(accountant.epsilon))}
    total.refuse_above(budget, type(summary).__name__)
    leaks = unnoised_steps()

    def fit(name: str, part: Any, rows: Any) -> Any:
        task = callback.subcontext(task_name=name)
        with task.propagate_callback_context(part):
            task.call_on_fit_task_begin(estimator=summary)
            part._fit_private(rows, y, secret, groups, given=given)
            task.call_on_fit_task_end(estimator=summary)
        return part

    keys = fit("fit-keys", keys, table)
    found = keys.keys_
    part = fit("fit-values", *part_of(found))
    for name, value in vars(part).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(summary, name, by_key(value, found, by))
    # of which errors are read
    summary._held, summary._keys = part._held, found
    summary.accountant_ = accountant
    parts = [keys.certificate_, part.certificate_]
    if leaks:  # an estimate of either part is not added up
        for leak in leaks:
            total = total.as_estimate(leak)
    else:
        total = compose([replace(c, seeded=False) for c in parts], delta=delta)
    if opening.seeded:
        total = replace(total, seeded=True).as_estimate(_SEEDED)
    summary.certificate_ = total
    callback.call_on_fit_task_end(estimator=summary)


def _planned(
    part: Any, rows: Any, y: Any, secret: Any, groups: Any, units: Any
) -> FitPlan:
    """What a part is going to release, of which nothing is drawn yet."""
    opening = part._opening(y)
    scenario = opening.scenario
    table = read_rows(part, scenario, rows, y, secret, groups, None, rows)
    table = by_units(part, scenario, table, units)
    plan: FitPlan = part._plan_fit(opening, table, None)
    return plan


def _named(
    summary: Any, by: list[Any], levels: list[int], table: Any
) -> dict[str, Any]:
    """Parameters of the summary by one column of numbers of keys."""
    names, found = table.columns.tolist(), dict[str, Any]()
    if summary.schema is None:
        found["categories"] = {**(summary.categories or {}), by[0]: levels}
    else:
        entries = _entries(summary.schema)
        rest = {name: entry for name, entry in entries.items() if name not in by}
        names = list(rest)
        columns = {**rest, by[0]: Category(tuple(levels))}
        found["schema"] = Schema(columns, size=summary.schema.size)
    if summary.columns is None:
        asked = summary.statistics
        listed = asked if isinstance(asked, dict) else names
        found["columns"] = [name for name in listed if name not in by]
    return found


def by_key(value: Any, keys: list[tuple[Any, ...]], by: list[Any]) -> Any:
    """Put keys in place of their numbers, in a table of groups."""
    if not isinstance(value, pd.DataFrame):
        return value
    value = value.iloc[: len(keys)]
    columns = [[_shown(key[at]) for key in keys] for at in range(len(by))]
    if len(by) == 1:
        return value.set_axis(pd.Index(columns[0], name=by[0]), axis=0)
    return value.set_axis(pd.MultiIndex.from_arrays(columns, names=by), axis=0)


def named_groups(
    table: pd.DataFrame, keys: list[tuple[Any, ...]], coded: Any, by: list[Any]
) -> pd.DataFrame:
    """Put keys in place of their numbers, in a tidy table with a column of these."""
    table = table[table[coded] < len(keys)]
    places = table[coded].to_numpy(dtype=int)
    columns = {
        name: [_shown(keys[p][at]) for p in places] for at, name in enumerate(by)
    }
    named = pd.DataFrame(columns, index=table.index)
    return pd.concat([named, table.drop(columns=coded)], axis=1).reset_index(drop=True)


def _shown(cell: Any) -> Any:
    """What a key is called: whole numbers as such, and NaN where it is missing."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return np.nan if cell is None else cell
