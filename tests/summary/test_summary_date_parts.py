"""Groups by months, weekdays and hours: public levels that dates fall into."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import Best, GroupPrivacy
from skpuffer.exceptions import ScenarioError
from skpuffer.scenarios import (
    AttributeScenario,
    MarkovChainScenario,
    RecordScenario,
    ReferenceTable,
)
from skpuffer.schema import Date, Number, Schema, Time
from skpuffer.summary import PrivateSummary
from tests.refused import refused
from tests.summary.test_summary_gaps import ENGINES, EXACT, told

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

LOW, HIGH = "1968-11-17", "1971-02-03"
#: What pandas says of a date, for each part.
PANDAS = {
    "year": lambda d: d.year,
    "quarter": lambda d: d.to_period("Q"),
    "month": lambda d: d.to_period("M"),
    "day": lambda d: d.to_period("D"),
    "month_of_year": lambda d: d.month,
    "weekday": lambda d: d.day_name(),
    "hour": lambda d: d.hour,
}


def moments(n, beyond=40):
    """Dates within the bounds and up to some days beyond, gaps among them."""
    rng = np.random.default_rng(n)
    low, high = pd.Timestamp(LOW), pd.Timestamp(HIGH) + pd.Timedelta(days=1)
    minutes = int((high - low).total_seconds()) // 60
    beyond *= 1440
    found = low + pd.to_timedelta(rng.integers(-beyond, minutes + beyond, n), unit="m")
    return pd.Series(found).astype("M8[s]").mask(rng.random(n) < 0.1)


def named(labels):
    return [None if pd.isna(label) else label for label in labels]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["day", "minute"])
def test_each_date_is_in_the_level_that_pandas_says(engine, unit):
    table = pd.DataFrame({"at": moments(500), "x": 1.0})
    book = Schema({"at": Date(LOW, HIGH, unit=unit), "x": Number(0, 1)})
    inside = table["at"].clip(
        pd.Timestamp(LOW), pd.Timestamp(HIGH) + pd.Timedelta("23:59:59")
    )
    if engine not in ("pandas", "duckdb"):  # whose frames are made of texts
        texts = table["at"].dt.strftime("%Y-%m-%d %H:%M")
        table["at"] = texts.astype(object).where(texts.notna(), None)
    cells = ENGINES[engine](table)
    for part, of in PANDAS.items():
        if part == "hour" and unit == "day":
            continue
        fit = PrivateSummary(
            accountant=EXACT, statistics={"x": ["size"]}, by=f"at.{part}", schema=book
        ).fit(cells)
        exact = Counter(None if pd.isna(d) else of(d) for d in inside)
        levels = named(fit.result_.index)
        found = dict(zip(levels, fit.result_["x", "size"].round(), strict=True))
        assert {level: n for level, n in found.items() if n} == exact, part
        # in order, whoever is there
        if part in ("year", "quarter", "month", "day"):
            assert levels[:-1] == sorted(levels[:-1]) and levels[-1] is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gap_that_is_said_not_to_be_is_in_no_group(engine):
    """Of two dates, one of which has gaps in all truth, and one a filling."""
    days = [None if pd.isna(d) else f"{d:%Y-%m-%d}" for d in moments(300, 0)]
    table = pd.DataFrame({"at": days, "by": days[::-1], "x": 1.0}, dtype=object)
    for fill in (None, LOW):
        book = {"at": Date(LOW, HIGH, missing=False), "by": Date(LOW, HIGH, fill=fill)}
        fit = PrivateSummary(
            accountant=EXACT,
            statistics={"x": ["size"]},
            by=["at.year", "by.year"],
            schema=Schema(book | {"x": Number(0, 1)}),
        ).fit(ENGINES[engine](table))
        exact = Counter(
            (int(at[:4]), int(by[:4]) if by else None)
            for at, by in zip(days, (by or fill for by in days[::-1]), strict=True)
            if at is not None
        )
        index = [(at, None if pd.isna(by) else by) for at, by in fit.result_.index]
        sizes = fit.result_["x", "size"].round()
        found = {at: n for at, n in zip(index, sizes, strict=True) if n}
        assert found == exact


@pytest.mark.parametrize("engine", ENGINES)
def test_hours_of_a_day_and_two_parts_at_once(engine):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "clock": [f"{h:02}:{m:02}" for h, m in rng.integers(0, [24, 60], (400, 2))],
            "day": pd.Series(moments(400).dt.strftime("%Y-%m-%d"), dtype=object),
            "x": rng.uniform(0, 1, 400),
        }
    )
    table["day"] = table["day"].fillna("1970-01-01")
    book = Schema(
        {
            "clock": Time("08:30", "17:59", missing=False),
            "day": Date(LOW, HIGH, missing=False),
            "x": Number(0, 1, missing=False),
        }
    )
    fit = PrivateSummary(
        accountant=EXACT, statistics=["mean"], by=["hour", "day.year"], schema=book
    ).fit(ENGINES[engine](table))
    hour = table["clock"].str[:2].astype(int).clip(8, 17)
    year = pd.to_datetime(table["day"]).dt.year.clip(1968, 1971)
    exact = table["x"].groupby([hour, year]).agg(["size", "mean"])
    found = fit.result_.reindex(exact.index)
    assert fit.result_.shape == (10 * 4, 2)
    assert np.abs(found["records", "count"] - exact["size"]).max() < 0.1
    assert (found["x", "mean"] - exact["mean"]).abs()[exact["size"] > 1].max() < 0.1


def test_a_monthly_series_of_hours_is_one_call():
    at = pd.date_range("2023-01-01", "2023-12-31 23:00", freq="h")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"at": at, "load": rng.normal(at.month, 1)})
    book = Schema(
        {
            "at": Date("2023-01-01", "2023-12-31", unit="hour", missing=False),
            "load": Number(0, 15, missing=False),
        }
    )
    found = PrivateSummary(statistics=["mean"], by="month", schema=book).fit(table)
    series = found.result_["load", "mean"]
    assert isinstance(series.index, pd.PeriodIndex)
    exact = table["load"].clip(0, 15).groupby(at.to_period("M")).mean()
    assert np.abs(series - exact).max() < 0.3
    # the date is not summarised, as it was not asked for
    assert set(found.result_.columns.get_level_values(0)) == {"records", "load"}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_noise_covers_every_pair_of_records(relation, noise):
    days = [None, "2023-01-01", "2023-02-15", "2022-01-01", "2023-03-31"]
    table = pd.DataFrame(
        list(itertools.product(days, [0.0, 3.0, 10.0, None])), columns=["d", "x"]
    )
    book = Schema({"d": Date("2023-01-01", "2023-03-31"), "x": Number(0, 10)})
    order = 2.0 if noise == "gaussian" else 1.0
    model = PrivateSummary(
        RecordScenario(relation=relation),
        GroupPrivacy(1.0, alpha=2.0 if order == 2 else math.inf, noise=noise),
        statistics={"x": ["sum"]},
        by="month",
        schema=book,
    )
    release, X = told(model, table)
    rows = release.contribution(np.asarray(X, dtype=float)) * abs(release.factor)
    pairs = rows
    if relation == "replace":
        pairs = np.concatenate([rows - row for row in rows])
    scale = model.fit(table).noise_.std(release.dim)
    # the noise has these units
    scale = scale / np.asarray(release.units or (1.0,))
    worst = np.linalg.norm(pairs, order, axis=1).max()

    def cost(by):
        moved = worst / (by * scale[0])
        return moved**2 if order == 2 else moved * math.sqrt(2)

    assert np.ptp(scale) <= 1e-9 * scale[0]
    assert cost(1.0) <= 1.001 and cost(0.7) > 1.1


TWO = Schema(
    {
        "a": Date("2023-01-01", "2023-03-31"),
        "b": Date("2023-01-01", "2023-03-31", unit="hour"),
        "x": Number(0, 10),
        "month": [1, 2, 3],
    }
)


def test_it_is_clear_of_which_column_a_part_is():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": ["2023-01-05", "2023-03-01"] * 100,
            "b": ["2023-02-05 11:00", "2023-02-05 13:00"] * 100,
            "x": rng.uniform(0, 10, 200),
            "month": [1, 3] * 100,
        }
    )

    def rows(by):
        model = PrivateSummary(
            accountant=EXACT, statistics=["size"], columns=["x"], by=by, schema=TWO
        )
        found = model.fit(table).result_["x", "size"].round() + 0.0
        return found[found > 0].to_dict()

    # a column of that name goes first, and one alone has hours
    assert rows("month") == {1: 100, 3: 100}
    assert rows("b.month") == {pd.Period("2023-02", "M"): 200}
    assert rows("hour") == {11: 100, 13: 100}
    for by, code in {
        "weekday": "schema.date_part_of_no_column",
        "a.hour": "schema.date_part_of_no_column",
        "x.month": "schema.date_part_of_no_column",
        "a.century": "summary.columns_not_in_schema",
    }.items():
        with refused(ValueError, code):
            rows(by)
    plain = Schema({"a": Date("2023-01-01", "2023-12-31"), "x": Number(0, 10)})
    with refused(ValueError, "schema.date_part_of_none", part="hour"):
        PrivateSummary(by="hour", columns=["x"], schema=plain).fit(table)
    chain = MarkovChainScenario([[0.9, 0.1], [0.1, 0.9]], states=[0.0, 10.0])
    with refused(ScenarioError, "summary.dates_are_no_states", names=["a"]):
        PrivateSummary(chain, by="a.month", columns=["x"], schema=TWO).fit(table)
    secret = AttributeScenario(
        "a", level="record", prior_as="law", prior=ReferenceTable(table)
    )
    with refused(ValueError, "summary.secret_column_summarised"):
        PrivateSummary(secret, by="a.month", columns=["x"], schema=TWO).fit(table)


def test_parts_are_known_to_a_public_belief():
    rng = np.random.default_rng(0)
    n = 400
    table = pd.DataFrame(
        {
            "day": np.datetime64("2023-01-01") + rng.integers(0, 90, n),
            "x": rng.uniform(0, 10, n),
            "s": rng.choice(["u", "v"], n),
        }
    )
    book = Schema(
        {
            "day": Date("2023-01-01", "2023-03-31", missing=False),
            "x": Number(0, 10, missing=False),
        }
    )
    scenario = AttributeScenario(
        "s", level="record", prior_as="law", prior=ReferenceTable(table)
    )
    found = PrivateSummary(
        scenario,
        Best(epsilon=1.0, delta=1e-5),
        statistics=["mean"],
        by="day.month",
        schema=book,
    ).fit(table)
    assert found.result_["x", "mean"].notna().all()
