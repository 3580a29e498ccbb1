"""Columns of dates and of times of the day."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.schema import Date, Schema, Time
from skpuffer.schema._cells import numbers
from skpuffer.summary import PrivateMean
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.utils._reading import object_cells

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

MOMENTS = [
    ("2020-03-05 17:05:59", "2020-03-05 17:05:59"),
    (pd.Timestamp("2020-03-05 17:05:59.9"), "2020-03-05 17:05:59"),
    (pd.Timestamp("2020-03-05 18:05:59", tz="Europe/Paris"), "2020-03-05 17:05:59"),
    (np.datetime64("2020-03-05"), "2020-03-05"),
    (datetime.date(2020, 3, 5), "2020-03-05"),
    ("1999-01-01", "2020-01-01"),
    ("9999-12-31", "2024-12-31 23:59:59"),
]


@pytest.mark.parametrize("unit", ["day", "hour", "minute", "second"])
@pytest.mark.parametrize("cell, meant", MOMENTS)
def test_dates_of_any_type_are_cut_to_their_unit(cell, meant, unit):
    column = Date("2020-01-01", "2024-12-31", unit=unit, missing_level=True)
    (found,), (missing,) = numbers(column, object_cells([cell]))
    cut = pd.Timestamp(meant).floor({"day": "D"}.get(unit, unit[0].replace("m", "min")))
    assert not missing and column.present([found])[0] == cut
    assert pd.Timestamp(column.text(found)) == cut
    if isinstance(cell, np.datetime64):
        assert numbers(column, np.array([cell]))[0] == found


@pytest.mark.parametrize("zone", ["Z", "+05:30", "-03:30", "+0545", "-0930", "+02"])
@pytest.mark.parametrize("gap", ["", " "])
def test_moments_of_any_zone_are_read_in_utc(zone, gap):
    """As Python reads them, which knows no space before a zone."""
    column = Date("2020-01-01", "2024-12-31", unit="second")
    for written in ("2020-03-05T17:05:59", "2021-12-31 23:50:00"):
        (found,), (missing,) = numbers(column, object_cells([written + gap + zone]))
        meant = datetime.datetime.fromisoformat(written + zone)
        assert not missing
        assert column.present([found])[0] == pd.Timestamp(meant).tz_convert(None)


@pytest.mark.parametrize("unit", ["day", "hour", "minute", "second"])
def test_codes_of_missing_moments_are_read_in_any_unit(unit):
    """By rows at hand as by an engine, and whatever type the column has."""
    codes = ("1900-01-01", "2021-06-01 12:00")
    column = Date("2020-01-01", "2024-12-31", unit=unit, missing=codes)
    days = ["1900-01-01", "2021-06-01 12:00", "2021-06-03"]
    cells = object_cells([*days, None])
    for values in (cells, pd.Series(days, dtype="datetime64[ns]").to_numpy()):
        _, missing = numbers(column, values)
        assert missing.tolist() == [True, True, False, True][: len(values)]
    mean = PrivateMean(schema=Schema({"d": column}), accountant=PrivacyLoss(1e6))
    answers = [
        mean.fit(pl.DataFrame({"d": days}).lazy()).n_answers_[0],
        mean.fit(pd.DataFrame({"d": days})).n_answers_[0],
    ]
    np.testing.assert_allclose(answers, 1, atol=1e-2)
    clock = Time(unit=unit, missing=("12:00",)) if unit != "day" else None
    if clock is not None:
        _, missing = numbers(clock, object_cells(["12:00:00", "13:30", "x"]))
        assert missing.tolist() == [True, False, True]


@pytest.mark.parametrize("cell", [19_000, 19_000.0, "5", "x", None, True, "25:00"])
def test_what_is_no_date_is_missing(cell):
    for column in (Date("2020-01-01", "2024-12-31"), Time()):
        assert numbers(column, object_cells([cell]))[1].all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "column, cell",
    [
        (Time(), np.timedelta64(25, "h")),
        (Time(), np.timedelta64(-1, "h")),
        (Time(), np.timedelta64(9, "h")),
        (Date("2020-01-01", "2024-12-31"), np.datetime64("12000-01-01", "s")),
        (Date("2020-01-01", "2024-12-31"), np.datetime64("0000-01-01", "s")),
        (Date("2020-01-01", "2024-12-31"), np.datetime64("-0044-03-15", "s")),
        (Date("2020-01-01", "2024-12-31"), np.datetime64("1969-12-31T23:59:59.5")),
        (Date("2020-01-01", "2024-12-31"), np.datetime64("0001-01-01", "s")),
    ],
    ids=str,
)
def test_a_malformed_cell_changes_the_reading_of_no_other(column, cell):
    alone = numbers(column, np.array([cell]))
    for odd in ("x", "0001-01-01T00:00+01:00", "9999-12-31T23:00-05:00"):
        beside = numbers(column, object_cells([cell, odd]))
        assert beside[1][1]
        assert (alone[0][0], alone[1][0]) == (beside[0][0], beside[1][0])


PARIS = pa.timestamp("us", "Europe/Paris")

FAR = [
    (pa.int32(), pa.date32(), 18_322, [10**8, 2**31 - 1, -(2**31)]),
    (pa.int64(), PARIS, 1_583_020_800 * 10**6, [2**62, -(2**62)]),
    (pa.int64(), pa.timestamp("us"), 1_583_020_800 * 10**6, [2**63 - 1, -(2**63) + 1]),
    (pa.int64(), pa.timestamp("ns"), 1_583_020_800 * 10**9, [2**63 - 1]),
]  # fmt: skip


@pytest.mark.parametrize("whole, kind, usual, far", FAR, ids=lambda v: str(v)[:20])
def test_no_date_of_a_table_is_too_far_to_be_read(whole, kind, usual, far):
    model = PrivateMean(
        schema=Schema({"d": Date("2020-01-01", "2020-12-31")}),
        accountant=PrivacyLoss(1e6, 1e-5),
    )
    for one in far:
        cells = pa.array([usual] * 40 + [one], whole).cast(kind)
        table = pa.table({"d": cells})
        connection = duckdb.connect()
        held = [
            table,
            table.to_pandas(types_mapper=pd.ArrowDtype),
            pl.from_arrow(table).lazy(),
            connection.from_arrow(table),
        ]
        for at_hand in held:
            # in January or in December, or missing
            assert abs(model.fit(at_hand).mean_[0] - 18_322) < 9


def test_times_of_the_day():
    column = Time("08:00", "18:00")
    cells = ["09:30", "7:00", datetime.time(23), pd.Timedelta("10:00:30"), "24:00"]
    found, missing = numbers(column, object_cells(cells))
    assert missing.tolist() == [False, False, False, False, True]
    assert [column.text(v) for v in found[:4]] == [
        "09:30:00",
        "08:00:00",
        "18:00:00",
        "10:00:00",
    ]


@pytest.mark.parametrize(
    "column", [Date("2020-01-01", "2024-12-31", unit="hour"), Time("08:00", "18:00")]
)
def test_dates_are_kept_in_files_and_copies(column):
    schema = Schema({"d": column})
    assert Schema.from_json(schema.to_json()) == schema
    assert eval(repr(column)) == column
    assert replace(column, missing_level=True) != column


@pytest.mark.parametrize(
    "make",
    [
        lambda: Date("2020-01-01", "2019-01-01"),
        lambda: Date("soon", "2020-01-01"),
        lambda: Date("2020-01-01", "2021-01-01", unit="week"),
        lambda: Date("2020-01-01", "2021-01-01", amount=True),
        lambda: Time("2020-01-01", "12:00"),
        lambda: Date(1, 2),
    ],
)
def test_bounds_that_are_no_dates_are_refused(make):
    with pytest.raises(ValueError, match="low|high|unit|amount"):
        make()


def test_models_and_synthesizers_read_dates():
    """A label that changes in July is learnt, and synthetic rows hold dates."""
    rng = np.random.default_rng(0)
    n = 1000
    table = pd.DataFrame(
        {
            "day": np.datetime64("2024-01-01") + rng.integers(0, 366, n),
            "clock": pd.to_timedelta(rng.integers(480, 1081, n), unit="min"),
        }
    ).assign(late=lambda t: (t["day"].dt.month > 6).astype(int))
    table.loc[::17, "day"] = pd.NaT
    book = Schema(
        {
            "day": Date("2024-01-01", "2024-12-31"),
            "clock": Time("08:00", "18:00"),
            "late": [0, 1],
        },
        target="late",
    )
    budget = PrivacyLoss(10.0)
    for kind in (PrivateCategoricalNB, PrivateAdditiveClassifier):
        model = kind(accountant=budget, schema=book)
        model.fit(table.drop(columns="late"), table["late"])
        assert model.score(table.drop(columns="late"), table["late"]) > 0.85
    made = PrivateTableSynthesizer(
        accountant=budget, schema=book.with_target(None)
    ).fit(table)
    rows = made.sample(500)
    assert rows["day"].dtype.kind == "M" and rows["clock"].dtype.kind == "m"
    assert rows["day"].dropna().between("2024-01-01", "2024-12-31").all()
    assert rows["clock"].dropna().between("08:00:00", "18:00:00").all()
    with_dates = rows.dropna()
    agree = (with_dates["day"].dt.month > 6) == (with_dates["late"].astype(int) == 1)
    assert agree.mean() > 0.85
