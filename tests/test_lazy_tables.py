"""Tables that lie elsewhere: the same release as in memory, summed by the engine."""

import datetime
import itertools
import math
from dataclasses import replace
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer._template import _lazy_tables
from skpuffer._template._elsewhere import STEPS
from skpuffer._template._lazy_tables import (
    MOST_SUMS,
    LazyTable,
    SummedColumns,
    clipped,
    encoded,
    in_unit_ball,
    number,
    number_of_book,
)
from skpuffer._template._reading import (
    PRIOR_UNSEEN,
    SUMMED_ELSEWHERE,
)
from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.covariance import PrivateCovariance
from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.run import (
    CHOSEN_ON_GRID,
    NO_ROOM,
    ON_GRID,
    ROUNDED_ELSEWHERE,
    ROUNDED_SUMS,
    SUMS_ON_GRID,
)
from skpuffer.linear_model import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    MarkovChainScenario,
    RecordScenario,
    SubsampleScenario,
)
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.summary._cells import Bins, Grouped, Levels, Signs
from skpuffer.summary._count_tree import CountTree
from skpuffer.summary._gaps import Ones, Stacked, of_each_record
from skpuffer.summary._mean import Moments
from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import NUMBER, TEXT, listen
from skpuffer.utils._bounds import Bounds
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import drop_position
from tests.engines import ENGINES, lazy_frame
from tests.refused import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    # of narwhals, that another package will read Dask's frames
    pytest.mark.filterwarnings("ignore:Dask support:FutureWarning"),
    # of the engines themselves
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 99, N),
        "wage": RNG.lognormal(3, 1, N),
        "member": RNG.random(N) < 0.3,
        "town": RNG.choice(["Bonn", "Köln", "O'Hara"], N),
    }
)
BOUNDS = {"age": (20, 80), "wage": (0, 100), "member": (0, 1)}
NUMBERS = TABLE[["age", "wage", "member"]]
TARGET = 0.01 * TABLE["age"] + 0.002 * TABLE["wage"]

SCHEMA = Schema(
    {
        "age": Number(20, 80, missing=(99,)),
        "wage": Number(0, 100, missing_level=True),
        "town": Category(["Bonn", "Köln"]),
    }
)

#: Estimators that are summed up where a table lies, with their defaults.
SUMMED = [
    "PrivateBounds",
    "PrivateCDF",
    "PrivateCovariance",
    "PrivateMean",
    "PrivateStandardScaler",
    "PrivateSummary",
]

#: Estimator, columns, target, and what it publishes.
CASES = {
    "mean": (PrivateMean(bounds=BOUNDS), NUMBERS, None, ["mean_"]),
    "scaler": (
        PrivateStandardScaler(bounds=BOUNDS),
        NUMBERS,
        None,
        ["mean_", "var_"],
    ),
    "mean of a code book": (
        PrivateMean(schema=SCHEMA),
        TABLE,
        None,
        ["mean_"],
    ),
    "covariance": (
        PrivateCovariance(schema=SCHEMA),
        TABLE,
        None,
        ["covariance_", "mean_"],
    ),
    "summary": (
        PrivateSummary(
            statistics={
                "age": ["mean", "std", "histogram"],
                "wage": ["mean", "quantile"],
                "member": ["rate", "histogram"],
                "town": ["rate"],
            },
            bounds=BOUNDS,
            bins={"age": 7, "wage": [0, 10, 20, 30, 100]},
            categories={"town": ["Köln", "O'Hara", "absent", None]},
        ),
        TABLE,
        None,
        ["result_"],
    ),
    "groups": (
        PrivateSummary(
            statistics={"age": ["mean", "var", "median"], "wage": ["count", "mean"]},
            by=["town", "member"],
            bounds=BOUNDS,
            bins={"age": [20, 40, 60, 80]},
            categories={"town": ["Bonn", "O'Hara"]},
        ),
        TABLE,
        None,
        ["result_"],
    ),
    "counts": (
        PrivateSummary(
            statistics=["count"], by="town", categories={"town": ["Bonn", None]}
        ),
        TABLE[["town"]],
        None,
        ["result_"],
    ),
    "summary of a code book": (
        PrivateSummary(
            statistics=["count", "mean", "rate", "histogram"], schema=SCHEMA, by="town"
        ),
        TABLE,
        None,
        ["result_"],
    ),
    "distribution": (
        PrivateCDF(bounds={"age": (20, 80)}, bins=30),
        TABLE[["age"]],
        None,
        ["levels_"],
    ),
    "least squares": (
        PrivateLinearRegression(bounds=BOUNDS, target_bounds=(0, 1)),
        NUMBERS,
        TARGET,
        ["coef_", "intercept_", "coef_std_"],
    ),
    "ridge": (
        PrivateRidge(data_norm=60, target_bounds=(0, 1), solver="moments"),
        NUMBERS,
        TARGET,
        ["coef_", "intercept_"],
    ),
    "ridge without intercept": (
        PrivateRidge(
            data_norm=60, target_bounds=(0, 1), solver="moments", fit_intercept=False
        ),
        NUMBERS,
        TARGET,
        ["coef_"],
    ),
}


def fit_both(engine, case):
    model, table, target, names = CASES[case]
    model = model.set_params(random_state=0)
    near = type(model)(**model.get_params(deep=False)).fit(table, target)
    if target is None:
        far = type(model)(**model.get_params(deep=False))
        return near, far.fit(lazy_frame(engine, table)), names
    far = type(model)(**model.get_params(deep=False))
    whole = table.assign(target=target)
    return near, far.fit(lazy_frame(engine, whole), "target"), names


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_releases_what_memory_does(engine, case):
    near, far, names = fit_both(engine, case)
    for name in names:
        expected, found = getattr(near, name), getattr(far, name)
        np.testing.assert_allclose(
            np.asarray(found, dtype=float),
            np.asarray(expected, dtype=float),
            rtol=1e-6,
            atol=1e-6,
        )
    # the same promise, and what it rests on beside
    ours, theirs = near.certificate_, far.certificate_
    new = set(theirs.assumptions) - set(ours.assumptions)
    digits = {CHOSEN_ON_GRID, ON_GRID, SUMS_ON_GRID, ROUNDED_SUMS, NO_ROOM}
    assert set(ours.assumptions) - set(theirs.assumptions) <= digits
    assert SUMMED_ELSEWHERE in new
    assert replace(theirs, assumptions=()) == replace(ours, assumptions=())
    np.testing.assert_array_equal(far.noise_.scale, near.noise_.scale)
    assert far.n_features_in_ == near.n_features_in_
    assert list(far.feature_names_in_) == list(near.feature_names_in_)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_secret_column_is_left_out(engine):
    prior = TABLE.sample(200, random_state=0)
    scenario = AttributeScenario(
        "town", level="record", prior=prior[["age", "wage", "town"]]
    )
    mean = PrivateMean(
        scenario, PrivacyLoss(epsilon=5.0), bounds=BOUNDS, random_state=0
    )
    table = TABLE[["age", "wage", "town"]]
    near = mean.fit(table).mean_
    far = mean.fit(lazy_frame(engine, table))
    np.testing.assert_allclose(far.mean_, near, rtol=1e-6)
    assert list(far.feature_names_in_) == ["age", "wage"]
    # the rows of the prior cannot be looked for among those of the table
    assert PRIOR_UNSEEN in far.certificate_.assumptions


# -- what a record adds ----------------------------------------------------------------

CELLS = st.one_of(
    st.floats(-200, 200),
    st.sampled_from([-0.0, 0.0, 1.7e308, -1.7e308, 5e-324, 10.0, 20.0, 1e16 + 2]),
)

CONTRIBUTIONS = [
    Moments((0,), Bounds((0.0,), (20.0,)), 2),
    Moments((1, 0), Bounds((-1e16, 3.0), (1e16, 4.0)), 2),
    # whose middle is rounded to one of its ends
    Moments((0,), Bounds((1e16,), (1e16 + 2,)), 2),
    Signs((0, 1)),
    Bins(0, (0.0, 10.0, 20.0)),
    CountTree(1, tuple(np.linspace(-50, 50, 21).tolist()), unit=math.sqrt(2)),
]


@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=repr)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_parts_make_up_the_contributions(contribution, rows):
    X = np.array(rows)
    of_parts = of_each_record(contribution, X)
    np.testing.assert_allclose(of_parts, contribution(X), atol=1e-12)
    np.testing.assert_allclose(
        of_parts.sum(axis=0), contribution.sums(X).ravel(), atol=1e-9
    )
    # what sensitivities rest on
    norms = np.linalg.norm(of_parts, axis=1)
    most = contribution.sensitivity.value("add_remove", 2, contribution.dim)
    assert (norms <= most * (1 + 1e-12)).all()


def summed(engine, frame, contribution):
    table = LazyTable(lazy_frame(engine, frame))
    columns = [number(table, name) for name in table.names]
    return SummedColumns(table, columns, "this").sum(contribution)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=repr)
def test_an_engine_sums_what_records_add(engine, contribution):
    # Dask takes longest for a table of a few rows
    @settings(deadline=None, max_examples=1 if engine == "dask" else 6)
    @given(st.lists(st.tuples(CELLS, CELLS), min_size=4, max_size=8))
    def check(rows):
        X = np.array(rows)
        found = summed(engine, pd.DataFrame(X, columns=["a", "b"]), contribution)
        np.testing.assert_allclose(
            found, contribution.sums(X).ravel(), atol=2 * len(X) / STEPS
        )

    check()


@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=repr)
@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=6))
def test_a_record_moves_the_sum_no_further_than_is_covered(contribution, rows):
    """Whatever it holds: no cell gets past the clip, and no rounding past its bound."""
    frame = pd.DataFrame(np.array(rows), columns=["a", "b"])
    table = LazyTable(lazy_frame("polars", frame))
    columns = SummedColumns(table, [number(table, c) for c in "ab"], "this")
    room = columns.rounding(contribution)
    whole = columns.sum(contribution)
    moved = whole - summed("polars", frame.iloc[1:], contribution)
    for norm in (1.0, 2.0, math.inf):
        most = contribution.sensitivity.value("add_remove", norm, contribution.dim)
        assert np.linalg.norm(moved, norm) <= (
            most * (1 + 1e-12) + np.linalg.norm(room, norm)
        )


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_columns_may_have_any_names(engine):
    names = ["c0", "cell", "O'Hara", "n", "p0 p1", "r1; drop table kept"]
    X = RNG.uniform(0, 1, (20, len(names)))
    mean = PrivateMean(bounds=(0, 1), random_state=0)
    near = mean.fit(X).mean_
    far = mean.fit(lazy_frame(engine, pd.DataFrame(X, columns=names)))
    np.testing.assert_allclose(far.mean_, near, atol=1e-8)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_groups_and_levels_are_counted_there(engine):
    frame = pd.DataFrame({"g": [0, 1, -1, 1, 0], "l": [2, 0, 1, -1, 2.0]})
    block = Stacked((Ones(), Levels(1, 3)))
    contribution = Grouped((0,), (2,), block)
    found = summed(engine, frame, contribution)
    expected = contribution(frame.to_numpy(float)).sum(axis=0)
    assert found.tolist() == expected.tolist()


def test_sums_are_of_whole_steps_and_exact():
    """In whatever order: a sum in floating point would lose the small ones."""
    rows = np.array([1.0, 2.0**-31, -1.0] * 1000)
    for order in (rows, np.sort(rows)):
        found = summed(
            "polars",
            pd.DataFrame({"a": order}),
            Moments((0,), Bounds((-1.0,), (1.0,))),
        )
        assert found.tolist() == [1000 * 2.0**-31]


@given(st.lists(st.one_of(CELLS, st.just(math.nan), st.none()), min_size=1))
def test_no_cell_passes_the_bounds_of_an_expression(cells):
    frame = nw.from_native(pl.LazyFrame({"a": cells}, schema={"a": pl.Float64}))
    found = frame.select(clipped(nw.col("a"), -1, 2)).collect()["a"].to_numpy()
    assert ((found >= -1) & (found <= 2)).all()


@pytest.mark.parametrize("radius", [1.0, 0.5, 60.0])
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8))
def test_rows_of_an_expression_are_those_of_memory_in_the_unit_ball(radius, rows):
    X = np.array(rows)
    frame = nw.from_native(pl.LazyFrame(X, schema=["a", "b", "c"], orient="row"))
    made = in_unit_ball([nw.col(name) for name in "abc"], radius)
    found = frame.select(*(c.alias(f"c{i}") for i, c in enumerate(made))).collect()
    found = found.to_numpy()
    assert (np.linalg.norm(found, axis=1) <= 1 + 1e-12).all()
    ordinary = (np.abs(X) < 1e100).all(axis=1)
    np.testing.assert_allclose(
        found[ordinary], clip_rows(X[ordinary] / radius, 1.0), atol=1e-12
    )


def test_codes_of_missing_numbers_are_missing():
    frame = nw.from_native(pl.LazyFrame({"a": [99.0, 50.0, None, 98.0, math.nan]}))
    column = Number(20, 80, missing=(99, math.nan), missing_level=True)
    values, missing = number_of_book(LazyTable(frame.to_native()), "a", column)
    found = frame.rename({"a": "column_0"}).select(v=values, m=missing).collect()
    assert found["m"].to_list() == [True, False, True, False, True]
    fill = float(column.filling)
    assert found["v"].to_list() == [fill, 50.0, fill, 80.0, fill]


@given(st.lists(st.datetimes(), min_size=2))
def test_seconds_are_those_of_the_calendar_where_moments_are_not_subtracted(moments):
    moments = [moment.replace(microsecond=0) for moment in moments]
    frame = nw.from_native(pl.LazyFrame({"a": moments}))
    seconds = []
    for engines in (_lazy_tables._HAVE_DURATIONS, ()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_lazy_tables, "_HAVE_DURATIONS", engines)
            found = _lazy_tables._moments(LazyTable(frame.to_native()), "a")
            seconds.append(
                frame.rename({"a": "column_0"})
                .select(v=found)
                .collect()["v"]
                .to_numpy()
            )
    np.testing.assert_allclose(*seconds, atol=1e-3)


# -- what is refused -------------------------------------------------------------------


def refusal(call, *arguments, kind=ValueError):
    """What is said instead of a result, which quotes nothing."""
    with listen() as said:
        call(*arguments)
    assert type(said.error) is kind, said.error
    assert not said.songs
    assert said.error.__context__ is None
    return str(said.error)


@pytest.mark.parametrize(
    "engine, value",
    [
        *itertools.product(["polars", "duckdb"], [math.nan, math.inf, -math.inf]),
        # which take longest, and ask in the same words
        ("dask", math.inf),
        ("pyspark", math.nan),
    ],
)
def test_what_is_no_number_is_refused_as_in_memory(engine, value):
    table = pd.DataFrame({"a": [NUMBER, value, 1.0], "b": [1.0, 2.0, 3.0]})
    for model in (
        PrivateMean(bounds=(0, 1)),
        PrivateSummary(bounds=(0, 1)),
        PrivateStandardScaler(bounds=(0, 1)),
    ):
        message = refusal(model.fit, lazy_frame(engine, table))
        assert "'a'" in message
        assert not hasattr(model, "certificate_")
    ridge = PrivateRidge(data_norm=1, target_bounds=(0, 1), solver="moments")
    assert "'a'" in refusal(ridge.fit, lazy_frame(engine, table), "b")
    assert "'a'" in refusal(ridge.fit, lazy_frame(engine, table), "a")


@pytest.mark.parametrize(
    "cells, kind",
    [
        ([None, 1.0, 2.0], pl.Float64),
        ([None, 1, 2], pl.Int64),
        ([None, True, False], pl.Boolean),
        ([None, Decimal("1.50"), Decimal("2.00")], pl.Decimal(10, 2)),
    ],
)
def test_null_is_refused(cells, kind):
    frame = pl.LazyFrame({"a": pl.Series(cells, dtype=kind)})
    assert "missing" in refusal(PrivateMean(bounds=(0, 1)).fit, frame)


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([2**64 - 1, 0, 1], dtype=pl.UInt64),
        pl.Series([127, 0, 1], dtype=pl.Int8),
        pl.Series([Decimal(c) for c in ("12345678901234567890.5", "0.0", "1.0")]),
        pl.Series([3e38, 0, 1], dtype=pl.Float32),
        pl.Series([1.7e308, -0.0, 1]),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_numbers_of_any_size_are_clipped(cells):
    mean = PrivateMean(bounds=(0, 2), random_state=0)
    found = mean.fit(pl.LazyFrame({"a": cells})).mean_
    expected = mean.fit(np.array([[2.0], [0.0], [1.0]])).mean_
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    "cells",
    [
        [TEXT, "a", "b"],
        [datetime.date(2026, 1, 1)] * 3,
        [datetime.timedelta(1)] * 3,
        [[1.0], [2.0], [3.0]],
        [None, None, None],
        pl.Series([TEXT, "a", "b"], dtype=pl.Enum([TEXT, "a", "b"])),
    ],
    ids=["text", "dates", "spans", "lists", "nothing", "enumeration"],
)
def test_columns_of_other_types_are_refused_by_their_type(cells):
    frame = pl.LazyFrame({"a": cells})
    assert "'a'" in refusal(PrivateMean(bounds=(0, 1)).fit, frame)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_of_the_engine_is_withheld(engine):
    frame = nw.from_native(lazy_frame(engine, pd.DataFrame({"a": [TEXT, "1", "2"]})))
    # fails where it is computed, and quotes the cell
    numbers = frame.select(nw.col("a").cast(nw.Int64)).to_native()
    message = refusal(PrivateMean(bounds=(0, 1)).fit, numbers)
    if engine != "pyspark" or "engine" in message:
        assert f"engine {engine}" in message


@pytest.mark.parametrize(
    "levels, cells",
    [
        ([1, 2.0, "x", True, 1.5, 2**70], pl.Series([1, 2, 300])),
        ([1, 300, -1], pl.Series([1, 2, 3], dtype=pl.Int8)),
        ([1, -1], pl.Series([1, 2**64 - 1, 3], dtype=pl.UInt64)),
        ([0.5, 1, None], pl.Series([0.5, math.nan, None])),
        ([True, None], pl.Series([True, False, None])),
        ([False, -1, 2], pl.Series([True, False, None])),
        (["a", 1, None], pl.Series(["a", "1", None])),
        (["a", "z"], pl.Series(["a", "b", None], dtype=pl.Categorical)),
    ],
)
def test_levels_are_compared_as_in_memory(levels, cells):
    # each once, as a table's labels must be
    levels = [v for i, v in enumerate(levels) if v is not True or 1 not in levels[:i]]
    summary = PrivateSummary(
        statistics=["count"], by="a", categories={"a": levels}, random_state=0
    )
    table = pl.DataFrame({"a": cells})
    near = summary.fit(table).result_.copy()
    pd.testing.assert_frame_equal(summary.fit(table.lazy()).result_, near)


def test_a_table_without_a_column_of_the_code_book_is_refused():
    book = PrivateSummary(statistics=["rate"], schema=Schema({"a": ["1", "2"]}))
    assert "lacks" in refusal(book.fit, pl.LazyFrame({"b": ["1", "2"]}))


def test_what_reads_rows_names_the_remedy():
    frame = lazy_frame("polars", NUMBERS)
    collect = "collect()"
    logistic = PrivateLogisticRegression(classes=[0, 1])
    assert collect in refusal(logistic.fit, frame, [0, 1], kind=TypeError)
    assert collect in refusal(
        PrivateQuantile(bounds=(0, 1)).fit, frame, kind=UnsupportedError
    )
    ridge = PrivateRidge(data_norm=1, target_bounds=(0, 1), solver="gradient")
    message = refusal(ridge.fit, frame, "age", kind=UnsupportedError)
    assert "solver='moments'" in message
    assert "'y'" in refusal(ridge.fit, frame, "nobody")
    assert "'y'" in refusal(ridge.fit, frame, np.ones(N))
    mean = PrivateMean(bounds="empirical")
    assert collect in refusal(mean.fit, frame, kind=UnsupportedError)
    mean = PrivateMean(bounds=(0, 1))
    assert "'y'" in refusal(mean.fit, frame, "age")
    behind = PublicPreprocessing(
        PrivateStandardScaler(bounds=(0, 1)), mean, reference=NUMBERS
    )
    assert collect in refusal(behind.fit, frame, kind=TypeError)
    scaler = PrivateStandardScaler(bounds=BOUNDS).fit(frame)
    assert collect in refusal(scaler.transform, frame, kind=TypeError)
    fine = PrivateSummary(statistics=["median"], bounds=(0, 1))
    wide = frame.with_columns(tips=pl.col("wage") / 10)
    assert "'bins'" in refusal(fine.fit, wide, kind=UnsupportedError)


@pytest.mark.parametrize("entry", all_estimators(), ids=lambda entry: entry.name)
def test_every_estimator_sums_a_lazy_table_or_names_the_remedy(entry):
    frame = lazy_frame("polars", NUMBERS[["age", "wage"]])
    model = clone(entry.instance)
    if entry.name in SUMMED:
        assert model.fit(frame) is model
        return
    with listen() as said:
        model.fit(frame)
    by_name = ("PrivateLinearRegression", "PrivateRidge")
    remedy = "'y' must name" if entry.name in by_name else "collect()"
    assert remedy in str(said.error)


def test_rows_have_no_order_and_scenarios_that_read_them_are_refused():
    frame = lazy_frame("polars", NUMBERS)
    mean = PrivateMean(bounds=BOUNDS)
    for parameter in ("secret", "groups"):
        with pytest.raises(UnsupportedError, match=f"'{parameter}'"):
            mean.fit(frame, **{parameter: [0] * N})
    mean = PrivateMean(
        AttributeScenario("town", level="record", prior="empirical"),
        GeneralWasserstein(epsilon=1.0),
        bounds=BOUNDS,
    )
    with refused(UnsupportedError, "lazy.scenario_reads_rows"):
        mean.fit(lazy_frame("polars", TABLE))


#: A belief that reads records through bins of its own.
CODED = BinnedLaw(
    TABLE[["age", "town"]], Schema({"age": (20, 80), "town": ["Bonn", "Köln"]})
)
#: Of which half is drawn.
POOL = pd.concat([TABLE[["age"]], TABLE[["age"]] + 1])
EMPIRICAL = AttributeScenario("town", level="record", prior="empirical")


@pytest.mark.parametrize(
    "scenario, said",
    [
        # by their prior, their pool or their code book
        (EMPIRICAL, "reads the rows"),
        (SubsampleScenario(), "reads the rows"),
        (AttributeScenario("town", level="record", prior=CODED), "reads the rows"),
        # each by itself, which a sum cannot show
        (SubsampleScenario(POOL, prior="sampled"), "looks at each row"),
        (MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]), "looks at each row"),
        (
            BlocksScenario(
                MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]), sizes=[N // 2] * 2
            ),
            "looks at each row",
        ),
    ],
    ids=lambda part: type(part).__name__,
)
def test_scenarios_that_look_at_rows_are_refused_before_an_engine_sums(
    scenario, said, monkeypatch
):
    def refuse(*_):
        raise AssertionError("sums were asked for")

    monkeypatch.setattr(LazyTable, "totals", refuse)
    model = PrivateMean(scenario, GroupPrivacy(), bounds={"age": (0, 1)})
    frame = lazy_frame("polars", TABLE[["age"]])
    assert said in refusal(model.fit, frame, kind=UnsupportedError)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_too_few_records_are_refused(engine, n):
    frame = lazy_frame(engine, NUMBERS[["age"]].head(n))
    if n == 0:
        frame = lazy_frame("polars", NUMBERS).head(0)
    assert "records" in refusal(PrivateMean(bounds=(0, 1)).fit, frame)


def test_two_records_are_enough():
    frame = lazy_frame("polars", NUMBERS[["age"]].head(2))
    assert PrivateMean(bounds=(0, 1)).fit(frame).certificate_.n_records == 2


@pytest.mark.parametrize("change", ["insert into t values (2.0)", "delete from t"])
def test_a_table_that_changes_meanwhile_is_refused(change):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("create table t as select 1.0::double as a from range(10)")
    table = LazyTable(connection.table("t"))
    columns = SummedColumns(table, [number(table, "a")], "PrivateMean")
    connection.execute(change)
    contribution = Moments((0,), Bounds((0.0,), (1.0,)))
    with refused(ValueError, "lazy.table_changed_while_read"):
        columns.sum(contribution)


def test_records_are_counted_among_the_rows_that_are_summed(tmp_path):
    """An engine knows the length of a file before it reads what is there by then."""
    frames = pytest.importorskip("dask.dataframe")
    callbacks = pytest.importorskip("dask.callbacks")
    path, schema = tmp_path / "table.parquet", Schema({"a": Number(0, 1)})
    pd.DataFrame({"a": np.ones(100)}).to_parquet(path)
    more, runs = pd.DataFrame({"a": np.ones(5000)}), []
    frame = frames.read_parquet(path)

    def rewrite(graph):
        # the first run counts the records, or none is needed
        runs.append(graph)
        more.to_parquet(path)

    scaler = PrivateStandardScaler(schema=schema)
    with (
        callbacks.Callback(start=rewrite),
        refused(ValueError, "lazy.table_changed_while_read"),
    ):
        scaler.fit(frame)
    assert runs and not hasattr(scaler, "certificate_")


#: Where engines make a random cell, and that cell once more in another column.
RANDOM = {
    "polars": lambda: pl.LazyFrame({"a": np.zeros(1000)}).select(
        a=pl.col("a").map_batches(
            lambda s: pl.Series(np.random.default_rng().choice([-1.0, 1.0], len(s))),
            return_dtype=pl.Float64,
        )
    ),
    "duckdb": lambda: pytest.importorskip("duckdb").sql(
        "select case when random() < 0.5 then -1.0 else 1.0 end as a from range(1000)"
    ),
    "dask": lambda: lazy_frame(
        "dask", pd.DataFrame({"a": np.zeros(1000)})
    ).map_partitions(
        lambda part: pd.DataFrame(
            {"a": np.random.default_rng().choice([-1.0, 1.0], len(part))}
        ),
        meta={"a": float},
    ),
    "pyspark": lambda: lazy_frame(
        "pyspark", pd.DataFrame({"a": np.zeros(1000)})
    ).selectExpr("case when rand() < 0.5 then -1.0D else 1.0D end as a"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_random_cell_is_one_number_to_all_sums(engine):
    pytest.importorskip(engine)
    table = LazyTable(RANDOM[engine]())
    columns = SummedColumns(table, [number(table, "a")], "this")
    # each record is in a bin, of its own sign
    sums = [
        columns.sum(Stacked((Ones(), Signs((0,)), Bins(0, (-2.0, 0.0, 2.0)))))
        for _ in range(3)
    ]
    for n, signs, negative, positive in sums:
        assert (negative + positive, positive - negative) == (n, signs) == (1000, signs)
    # Spark fixes a seed for each expression
    assert len({tuple(each) for each in sums}) > 1 or engine == "pyspark"
    # and is in the group of its sign
    grouped = Grouped((0,), (2,), Stacked((Ones(), Signs((0,)))))
    frame = nw.from_native(RANDOM[engine]())
    positive = nw.when(nw.col("a") > 0).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    table = LazyTable(frame.with_columns(g=positive).select("g").to_native())
    columns = SummedColumns(table, [number(table, "g")], "this")
    (none, minus, ones, plus) = columns.sum(grouped)
    assert (none, ones) == (-minus, plus)


@pytest.mark.parametrize("other", ["a", "A"])
def test_columns_of_one_name_are_refused(other):
    duckdb = pytest.importorskip("duckdb")
    query = f'select 1.0 as a, 9.0 as "{other}", 0.5 as b from range(20)'
    table = duckdb.connect().sql(query)
    with refused(ValueError, "table.column_names_repeated"):
        PrivateMean(bounds=(0, 10)).fit(table)
    # to other engines these are two
    if other != "a":
        frame = pl.LazyFrame({"a": np.ones(20), other: np.full(20, 9.0)})
        assert LazyTable(frame).names == ("a", other)


def test_one_pass_reads_one_state(monkeypatch):
    """The size is counted before; all sums and checks are one query."""
    asked = []
    collect = LazyTable._collected
    monkeypatch.setattr(
        LazyTable,
        "_collected",
        lambda table, query: asked.append(1) or collect(table, query),
    )
    case = CASES["summary"]
    type(case[0])(**case[0].get_params(deep=False)).fit(lazy_frame("polars", case[1]))
    assert len(asked) == 2


# -- what noise covers -----------------------------------------------------------------


def test_noise_covers_how_far_records_are_rounded():
    """A record moves a sum by as much further as the scale grew, at least."""
    frame = lazy_frame("polars", NUMBERS)
    near = PrivateStandardScaler(bounds=BOUNDS).fit(NUMBERS)
    far = PrivateStandardScaler(bounds=BOUNDS).fit(frame)
    assert ROUNDED_ELSEWHERE not in far.certificate_.assumptions
    grown = np.max(np.divide(far.noise_.scale, near.noise_.scale)) - 1
    # one record, in units of the release: six numbers, each off by one step twice
    share = 2 * math.sqrt(6) / STEPS / math.sqrt(3 * 1.25)
    assert share * (1 - 1e-6) <= grown <= 2 * share
    # counts are exact
    counts = PrivateSummary(
        statistics=["count"], by="member", accountant=PrivacyLoss(epsilon=1.0)
    )
    table = TABLE[["member"]]
    np.testing.assert_array_equal(
        counts.fit(lazy_frame("polars", table)).noise_.scale,
        counts.fit(table).noise_.scale,
    )


def test_counts_are_not_rounded_and_numbers_are_by_a_step():
    table = LazyTable(lazy_frame("polars", NUMBERS))
    columns = SummedColumns(table, [number(table, "age")], "this")
    sums = Moments((0,), Bounds((20.0,), (80.0,)))
    assert not columns.rounding(Stacked((Ones(), Levels(0, 3)))).any()
    both = columns.rounding(Stacked((Ones(), sums)))
    assert both[0] == 0 and np.array_equal(both[1:], columns.rounding(sums))
    assert (columns.rounding(sums) >= 1 / STEPS).all()


def test_moves_smaller_than_a_record_are_covered_as_if_all_records_moved():
    """A rounding may be all of a small move, and how many records move is not said."""
    table = TABLE[["age", "wage", "town"]]
    scenario = AttributeScenario("town", level="record", prior=table.head(200))
    model = PrivateMean(scenario, GeneralWasserstein(epsilon=1.0), bounds=BOUNDS)
    near = clone(model).fit(table.tail(200))
    far = clone(model).fit(lazy_frame("polars", table.tail(200)))
    assert ROUNDED_ELSEWHERE not in far.certificate_.assumptions
    grown = np.max(np.divide(far.noise_.scale, near.noise_.scale)) - 1
    # of two means, by one step before and one after
    share = 2 * math.sqrt(2) / STEPS / near.certificate_.sensitivity
    assert share * (1 - 1e-6) <= grown <= 2 * share


def test_what_noise_does_not_cover_is_said():
    seeded = PrivateMean(bounds=BOUNDS, random_state=0)
    assumptions = seeded.fit(lazy_frame("polars", NUMBERS)).certificate_.assumptions
    assert ROUNDED_ELSEWHERE in assumptions


def test_many_records_need_wider_integers():
    """Steps are as fine as sums of 2**32 - 1 of them allow in 64 bits."""
    assert (2**32 - 1) * STEPS < 2**63
    release = PrivateMean(bounds=BOUNDS, random_state=0)
    assert release.preview(2**33, feature_names=["age", "wage", "member"])
    frame = lazy_frame("polars", NUMBERS)
    table = LazyTable(frame)
    columns = SummedColumns(table, [number(table, "age")], "PrivateMean")
    moments = Moments((0,), Bounds((0.0,), (1.0,)))
    columns.shape = 2**32, 1
    with refused(UnsupportedError, "lazy.too_many_records", most_records=4294967295):
        columns.sum(moments)
    # of one less they do; here there are others when it comes to it
    columns.shape = 2**32 - 1, 1
    with refused(ValueError, "lazy.table_changed_while_read"):
        columns.sum(moments)


def test_as_many_sums_are_asked_of_an_engine_as_it_takes():
    table = LazyTable(lazy_frame("polars", NUMBERS))
    columns = SummedColumns(table, [number(table, "age")], "this")
    edges = tuple(np.linspace(0, 100, MOST_SUMS + 2).tolist())
    assert columns.sum(Bins(0, edges)).sum() == N
    more = Bins(0, (*edges, 101.0))
    with pytest.raises(UnsupportedError, match=f"{MOST_SUMS + 1} sums"):
        columns.sum(more)
    with refused(UnsupportedError, "lazy.release_not_summable"):
        columns.sum(lambda X: X)


def test_scaled_rows_of_a_code_book_are_no_sums():
    table = LazyTable(lazy_frame("polars", TABLE))
    for scale in ("unit_ball", "box"):
        with refused(UnsupportedError, "lazy.schema_scales_rows"):
            encoded(table, SCHEMA.encoding(scale))
    assert len(encoded(table, SCHEMA.encoding("raw"))) == len(
        SCHEMA.encoding("raw").names
    )


def test_a_scenario_of_several_records_is_covered_as_well():
    scenario = RecordScenario(k=3, relation="replace")
    model = PrivateMean(scenario, bounds=BOUNDS, random_state=0)
    near = model.fit(NUMBERS).certificate_
    far = model.fit(lazy_frame("polars", NUMBERS)).certificate_
    assert far.sensitivity == near.sensitivity


#: What engines read as a pattern, a path, a quotation, or all columns at once.
NAMES = ["^x$", "*", "a.b", "a,b", 'say "x"', "it's", "`x`", "x y", "$1", "column_0"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_as_it_is_written(engine, name):
    frame = pd.DataFrame(
        {"x": [0.0] * 8, "a": 0.0, name: 1.0, "k": ["u", "v"] * 4, "y": 0.0}
    )
    if engine == "pyspark" and "`" in name:
        pytest.skip("the name quotes itself in its statement")
    table = lazy_frame(engine, frame)
    schema = Schema({name: (0, 1), "k": ["u", "v"]})
    plain = PrivateSummary(statistics={name: ["mean"]}, bounds=(0, 1))
    coded = PrivateSummary(statistics={name: ["mean"]}, by="k", schema=schema)
    for summary in (plain, coded):
        summary.set_params(accountant=GroupPrivacy(1e6)).fit(table)
        found = summary.result_.filter(like="mean", axis=int(summary is coded))
        np.testing.assert_allclose(found.to_numpy().ravel()[:1], 1, atol=1e-3)
    # where it is the secret, no other column goes with it
    held = frame.drop(columns="k")
    for made in (pl.DataFrame(held.to_dict("list")), held):
        rest, column = drop_position(made, held.columns.get_loc(name))
        assert list(rest.columns) == ["x", "a", "y"] and np.all(column == 1)
    rest = LazyTable(lazy_frame(engine, held)).without(name)
    assert rest.names == ("x", "a", "y")
    assert PrivateMean(bounds=(0, 1)).fit(lazy_frame(engine, held)).n_features_in_ == 4
