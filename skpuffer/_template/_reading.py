"""How a fit reads a table: rows at hand, by a code book, or summed elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpuffer.exceptions import (
    Statement,
    scenario_error,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.scenarios import BoundScenario, RecordScenario
from skpuffer.scenarios._priors._coding import target_leaks
from skpuffer.scenarios._priors._overlap import (
    columns_of,
    holds_private_rows,
    prior_leaks,
    shares_records,
)
from skpuffer.schema import Schema
from skpuffer.schema._agreement import check_agreement, check_same_book
from skpuffer.schema._cells import level_places, refuse_ambiguous
from skpuffer.schema._check import refuse_types, refuse_unread
from skpuffer.utils._reading import (
    COLLECT,
    as_numbers,
    as_table,
    column_names,
    drop_position,
    is_frame,
    matching_names,
    ordered_labels,
    read_groups,
    read_labels,
    read_secret,
    to_pandas,
    validate_rows,
)

from ._lazy_tables import LazyTable, SummedColumns, refuse_unread_texts
from ._plan import TableRead
from ._units import is_limited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.scenarios import Scenario
    from skpuffer.utils._types import Array

    from ._elsewhere import TableElsewhere
    from ._plan import Opening


#: Why there is no code book within public preprocessing.
SCHEMA_BEHIND_PREPROCESSING = Statement("schema.behind_public_preprocessing")

#: What a certificate says of a table that was summed up by the engine that holds it.
SUMMED_ELSEWHERE = Statement("assume.rows_summed_by_engine")

#: What a certificate cannot say of it.
PRIOR_UNSEEN = Statement("assume.prior_unseen_elsewhere")


def read_table(
    estimator: Any,
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
        X, secret = split_secret(scenario, X, secret)
    schema_map = None
    if estimator.schema is not None:
        # nothing but the columns of the code book is read, whatever else there is
        schema_map = feature_map = map_by_schema(estimator, scenario, feature_map)
        X = schema_map.schema.frame(X)
        refuse_unread(schema_map.schema, X)
    target_name = name_of_target(y)
    if target_name is None and y is not None and estimator.schema is not None:
        # so that a secret is found out there too, and a prior knows its column
        target_name = estimator.schema.target
    if scenario.is_coded:
        # what nothing refuses later must be a record that the belief speaks of; a
        # step before the model may take missing values as well
        fills = {
            "fill_rows": feature_map is not None or estimator._reads_missing(),
            "fill_targets": estimator._of_no_target() is not None,
        }
        X, y = scenario.coded_records(X, y, target_name, **fills)
    raw, names = X, matching_names(X)
    if feature_map is not None:
        X = feature_map(X)
    # kept as given: validation turns class labels into codes, a prior knows the
    # labels
    raw_y = y
    of_no_target = estimator._of_no_target()
    X, y, reading = estimator._validate(X, y)
    if secret is not None:
        secret = read_secret(secret)
        check_consistent_length(X, secret)
        scenario.check_secret(secret)
    return TableRead(
        X=X,
        y=y,
        secret=secret,
        # rows only where the scenario asks for the private data as its prior
        empirical=_empirical(estimator, raw, raw_y, secret, y)
        if scenario.needs_empirical
        else None,
        n_given=X.shape[0],
        groups=None if groups is None else public_groups(scenario, groups, X.shape[0]),
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
        if type(scenario) is RecordScenario and not estimator._public_parameters
        else partial(
            _leaks_of_rows, estimator, scenario, given, given_y, secret, target_name
        ),
    )


def validate_features(self: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Validate the private data; return X, y and public facts for the release."""
    return validate_rows(self, X, dtype=np.float64), None, None


def of_no_target(self: Any) -> Statement | None:
    """Return what a certificate says of records without a target, or None."""
    return None


def split_secret(scenario: Scenario, X: Any, secret: Any) -> tuple[Any, Any]:
    """Drop columns that are no features, if they are there; read what is left."""
    return split_secrets([scenario], X, secret)


def split_secrets(
    scenarios: Iterable[Scenario], X: Any, secret: Any
) -> tuple[Any, Any]:
    """Drop the columns that are no features to any of several scenarios, each once."""
    table = as_table(X)
    # not a table: validation refuses it later, and in scikit-learn's words
    if len(table.shape) != 2:
        return X, secret
    width, gone = table.shape[1], list[int]()
    for scenario in scenarios:
        names = matching_names(X)
        # what has no name is found by its place in the table given
        at = names, width if names is None else len(names)
        places = scenario.left_out(*at)
        if names is None and hasattr(table, "columns"):
            scenario.check_numbers(column_names(table), places[0] if places else None)
        for place in [p for p in reversed(places) if p not in gone]:
            X, column = drop_position(X, place - sum(other < place for other in gone))
            if names is None:
                gone.append(place)
            # values given apart win over the column
            if secret is None and place == scenario.secret_position(*at):
                secret = column
        X = scenario.coded(X) if scenario.is_coded else X
    return X, secret


def _empirical(estimator: Any, raw: Any, raw_y: Any, secret: Any, y: Any) -> Any:
    """Return the private rows as a prior: those that count."""
    if y is None or estimator._of_no_target() is None:
        return raw, raw_y, secret
    # labels as they were read, which a prior's are compared with
    labels = estimator.classes_[y] if hasattr(estimator, "classes_") else y
    mask = counted(y)
    if mask is None:
        return raw, labels, secret
    kept = to_pandas(raw)[mask] if is_frame(raw) else raw[mask]
    return kept, labels[mask], None if secret is None else secret[mask]


def _leaks_of_rows(
    estimator: Any, scenario: Scenario, X: Any, y: Any, secret: Any, target_name: Any
) -> tuple[Statement, ...]:
    """Return what voids the promise: a target or public rows that are not so."""
    X = as_table(X)
    tables = {name: getattr(estimator, name) for name in estimator._public_parameters}
    return (
        *target_leaks(scenario, y, secret, target_name),
        *prior_leaks(scenario, X, y, secret, target_name),
        *(
            holds_private_rows(Statement("table.subject_named_parameter", name=name))
            for name, table in tables.items()
            if table is not None
            and shares_records(columns_of(X), columns_of(as_table(table)))
        ),
    )


def without_secret(estimator: Any, X: Any, width: int | None = None) -> Any:
    """Drop the secret column from data to predict for, if it is there.

    A table with a code book is read by it as well.
    """
    width = estimator.n_features_in_ if width is None else width
    scenario = RecordScenario() if estimator.scenario is None else estimator.scenario
    if hasattr(estimator, "feature_map_"):
        X = as_table(X)
        if matching_names(X) is not None or X.shape[1:] != (width,):
            X = split_secret(scenario, X, None)[0]
        elif scenario.is_coded:
            X = scenario.coded(X)
        return estimator.feature_map_(X)
    if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
        if hasattr(X, "columns"):
            scenario.check_numbers(column_names(X), None)
        return X  # as wide as what was fitted once the secret was left out
    return split_secret(scenario, X, None)[0]


def names_without_secret(estimator: Any, names: Any) -> Any:
    """Leave the names of columns that are no features out of a list of names."""
    scenario = RecordScenario() if estimator.scenario is None else estimator.scenario
    places = scenario.left_out(tuple(names), len(names))
    return np.delete(names, places) if places else names


def public_groups(
    scenario: Scenario, groups: Any, n_records: int
) -> tuple[int, ...] | None:
    """Public groups of a table, one number for each of its records."""
    # ids of units are private
    if groups is None or is_limited(scenario):
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


def check_schema(estimator: Any, target_name: Any) -> None:
    """Check the code book against the other parameters and the target's name.

    Before any row is read: what is refused here tells nothing of the data.
    """
    schema: Any = estimator.schema
    if not isinstance(schema, Schema):
        raise type_error("schema.not_a_schema", schema_type=type(schema).__name__)
    check_agreement(schema, estimator.get_params(deep=False))
    if target_name in schema.names:
        raise value_error("schema.target_among_features", target_name=target_name)
    wrong = None
    if is_classifier(estimator) and schema.target_bounds is not None:
        wrong = Statement("schema.number_for_classifier")
    if is_regressor(estimator) and schema.classes is not None:
        wrong = Statement("schema.category_for_regressor")
    if wrong is not None:
        raise value_error(
            "schema.target_of_wrong_kind", target=schema.target, wrong=wrong
        )


def map_by_schema(estimator: Any, scenario: Scenario, feature_map: Any) -> Any:
    """Return the public map from raw columns to what the estimator reads."""
    schema: Any = estimator.schema
    if feature_map is not None:
        raise ValueError(SCHEMA_BEHIND_PREPROCESSING)
    for position in reversed(scenario.left_out(schema.names, len(schema))):
        schema = schema.without(schema.names[position])
    if scenario.code_book is not None:
        check_same_book(schema, scenario.code_book)
    return estimator._read_by(schema)


def publish_schema(estimator: Any, schema_map: Any) -> None:
    """Set what is public of the raw columns."""
    names = schema_map.schema.names
    estimator.feature_map_ = schema_map
    # of the raw columns, as scikit-learn has it for whatever takes a table
    estimator.n_features_in_ = len(names)
    if all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def read_elsewhere(
    estimator: Any,
    opening: Opening,
    X: Any,
    y: Any,
    secret: Any,
    groups: Any,
    feature_map: Any,
) -> TableRead:
    """Read names and types of a lazy data frame, whose rows stay where they are."""
    scenario, name = opening.scenario, type(estimator).__name__
    if not hasattr(estimator, "_lazy_columns"):
        raise type_error("lazy.estimator_reads_rows", name=name, collect=COLLECT)
    if feature_map is not None:
        raise type_error("lazy.preprocessing_reads_rows", collect=COLLECT)
    _refuse_rows_elsewhere(estimator, opening, secret=secret, groups=groups)
    table = LazyTable(X)
    by_units = False
    if scenario.reads_sizes:
        raise unsupported_error("units.sizes_not_read")
    if is_limited(scenario):
        if scenario.unit is None:
            raise scenario_error("units.ids_not_given")
        if scenario.unit not in table.names:
            raise scenario_error("units.column_not_there", unit=scenario.unit)
        by_units = estimator._reads_units()
        most: Any = scenario.max_rows
        table = table.by_units(str(scenario.unit), int(most), alone=by_units)
    for position in reversed(scenario.left_out(table.names, len(table.names))):
        table = table.without(table.names[position])
    schema_map = None
    if estimator.schema is not None:
        schema_map = map_by_schema(estimator, scenario, None)
        table.check_names(schema_map.schema.names)
        refuse_types(schema_map.schema, table.types)
        refuse_unread_texts(table, schema_map.schema)
    columns, reading, names = estimator._lazy_columns(table, y, schema_map)
    if schema_map is None:
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        estimator.n_features_in_ = len(columns) - (y is not None)
    # of a private number only that it is none
    if table.n_records < (2 if opening.size == "public" else 1):
        raise value_error("lazy.too_few_records", n_records=table.n_records, name=name)
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
        by_units=by_units,
        weighting=estimator._weighting(True) if by_units else None,
    )


def _refuse_rows_elsewhere(estimator: Any, opening: Opening, **given: Any) -> None:
    """Refuse what reads rows, or their order, before an engine is asked."""
    scenario, name = opening.scenario, type(estimator).__name__
    for parameter, value in given.items():
        if value is not None:
            raise unsupported_error(
                "lazy.parameter_per_row", parameter=parameter, collect=COLLECT
            )
    reads = scenario.needs_empirical or scenario.draws_from_pool
    if reads or scenario.is_coded:
        raise unsupported_error(
            "lazy.scenario_reads_rows",
            name=name,
            scenario_type=type(scenario).__name__,
            collect=COLLECT,
        )
    for leak in estimator._leaks():
        raise unsupported_error(
            "lazy.parameter_read_from_rows", name=name, leak=leak, collect=COLLECT
        )


def sum_elsewhere(
    estimator: Any, table: TableElsewhere, release: Any, bound: BoundScenario
) -> None:
    """Have the sums made that a release asks for; refuse what is no sum."""
    name = type(estimator).__name__
    if not getattr(release, "is_sum", False):
        way = (
            " Give solver='moments'."
            if hasattr(estimator, "solver")
            else Statement("lazy.grid_counted_there")
        )
        raise unsupported_error(
            "lazy.release_no_sum",
            name=name,
            name2=release.name,
            way=way,
            collect=COLLECT,
        )
    if is_limited(bound.scenario) and release.is_integer:
        # weights make no whole numbers of counts, and the noise would be whole
        raise unsupported_error(
            "units.counts_elsewhere", name=release.name, collect=COLLECT
        )
    kind = type(bound)
    reads_rows = kind.realises or any(
        getattr(kind, method) is not getattr(BoundScenario, method)
        for method in ("check_rows", "check_table")
    )
    if reads_rows:
        raise unsupported_error(
            "lazy.scenario_looks_at_rows",
            scenario_type=type(bound.scenario).__name__,
            collect=COLLECT,
        )
    # What cannot be read is refused here, before a ledger is told of a release.
    # The sums are of one state of the table, and kept until they are released.
    table.sum(release.contribution)


# -- targets of records by public labels or bounds: what is none counts as nothing -----


def one_class(estimator: Any) -> ValueError:
    """Say that there is one class only, and so nothing to learn."""
    return ValueError(
        Statement("target.one_class_only", estimator=type(estimator).__name__)
    )


def label_codes(estimator: Any, classes: Array, y: ArrayLike) -> Indices:
    """Return the position of each label among public ones, -1 for what is none."""
    if len(classes) < 2:
        raise one_class(estimator)
    labels = classes.tolist()
    refuse_ambiguous(labels, "classes")
    return np.maximum(level_places(labels, _list_of(estimator, y)), -1)


def declared_classes(estimator: Any) -> Array | None:
    """Return the public labels of a classifier in their order, or None."""
    given, schema = estimator.classes, estimator.schema
    if given is None and schema is not None:
        given = schema.classes
    return None if given is None else ordered_labels(given, "classes")


def class_indices(estimator: Any, X: Any, y: ArrayLike) -> Indices:
    """Return the class of each record, -1 for one not counted; set `classes_`.

    Without public labels by `classes` or `schema`, those of the table are taken as
    public.
    """
    classes = declared_classes(estimator)
    if classes is None:
        labels = _list_of(estimator, y, missing=False)
        check_classification_targets(labels)
        classes = ordered_labels(labels, "y")
        if len(classes) < 2:
            raise one_class(estimator)
        codes: Indices = np.searchsorted(classes, labels)
    else:
        codes = label_codes(estimator, classes, y)
    check_consistent_length(X, codes)
    # last: an attribute that only a sound target sets
    estimator.classes_ = classes
    return codes


def rows_and_labels(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, Indices]:
    """Validate rows and read labels, -1 for one not counted; set `classes_`."""
    classes = declared_classes(estimator)
    assert classes is not None
    X = validate_rows(estimator, X)
    codes = label_codes(estimator, classes, y)
    check_consistent_length(X, codes)
    # last: an attribute that only a sound target sets
    estimator.classes_ = classes
    return X, codes


def target_values(estimator: Any, schema: Schema, y: ArrayLike) -> Floats:
    """Return numeric targets by a schema, NaN for one that counts as nothing."""
    return schema.target_numbers(_list_of(estimator, y))


def numeric_targets(estimator: Any, y: ArrayLike) -> Floats:
    """Return numeric targets, none of which may be missing."""
    numbers: Floats = as_numbers(
        _list_of(estimator, y, missing=False),
        partial(Statement, "target.subject_parameter_y"),
    ).astype(float)
    return numbers


def counted(y: Array) -> Booleans | None:
    """Mask of the records that count, or None if all do."""
    mask = np.isfinite(y) & ~((y == -1) if y.dtype.kind == "i" else np.isnan(y))
    return None if mask.all() else mask


def known_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the records that count: those without a target are left out."""
    mask = counted(np.asarray(y))
    return (X, y) if mask is None else (X[mask], y[mask])


def _list_of(estimator: Any, y: Any, missing: bool = True) -> Array:
    """Target as an array of one dimension, of any values."""
    if y is None:
        raise value_error("target.is_none", estimator_type=type(estimator).__name__)
    values = read_labels(y, missing=missing)
    found: Array = values if values.ndim == 1 else column_or_1d(values, warn=True)
    return found
