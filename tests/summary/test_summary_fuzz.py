"""Statistics of random tables, read by several libraries, are those of pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.schema import Category, Date, Number, Schema
from skpuffer.summary import PrivateSummary

#: Next to no noise.
EXACT = PrivacyLoss(1e6, 1e-9, noise="gaussian")


def in_duckdb(table):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_df(table)


ENGINES = {
    "pandas": lambda t: t,
    "arrow": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "lazy polars": lambda t: pl.from_pandas(t).lazy(),
    "duckdb": in_duckdb,
}


def with_gaps(values, share, rng):
    gone = rng.random(len(values)) < share
    return pd.Series(values).mask(gone)


def drawn_table(rng):
    """A table, its code book, and numbers and groups among its columns."""
    n = int(rng.integers(30, 200))
    share = rng.choice([0.0, 0.05, 0.4])
    low = rng.choice([-1e3, -1.0, 0.0, 100.0])
    high = low + rng.choice([1.0, 50.0, 1e4])
    inside = rng.uniform(low, high, n)
    moments = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    kind = rng.choice(["float64", "float32", "text", "whole"])
    x = np.round(inside) if kind == "whole" else inside
    x = np.clip(x, low, high)
    x = with_gaps(x.astype("float32") if kind == "float32" else x, share, rng)
    if kind == "text":
        x = x.map(lambda v: None if pd.isna(v) else repr(float(v))).astype(object)
    levels = [["a", "b", "c"], ["1", "2"], [1, 2, 3]][rng.integers(3)]
    table = pd.DataFrame(
        {
            "x": x,
            "flag": rng.random(n) < 0.3,
            "day": with_gaps(moments, share, rng),
            "group": rng.choice(np.array(levels, dtype=object), n),
        }
    )
    if isinstance(levels[0], int):
        table["group"] = table["group"].astype(int)
    gaps = bool(table["x"].isna().any())
    number = Number(low, high, missing=gaps or bool(rng.integers(2)))
    book = {
        "x": number,
        "flag": Number(0, 1, missing=False),
        "day": Date("2020-01-01", "2023-12-31"),
        "group": Category(levels, missing_level=False),
    }
    return table, Schema(book)


def numbers_of(series):
    return pd.to_numeric(series.astype(object)).astype(float)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "seed",
    [pytest.param(i, marks=[pytest.mark.slow] * (i >= 20)) for i in range(300)],
)
def test_statistics_of_random_tables_are_those_of_pandas(seed):
    rng = np.random.default_rng(seed)
    table, book = drawn_table(rng)
    grouped = bool(rng.integers(2))
    name = list(ENGINES)[seed % len(ENGINES)]
    summary = PrivateSummary(
        statistics={"x": ["count", "mean", "std", "sum"], "flag": ["rate"]},
        by="group" if grouped else None,
        schema=book,
        accountant=EXACT,
    )
    found = summary.fit(ENGINES[name](table)).result_
    plain = pd.DataFrame(
        {"x": numbers_of(table["x"]), "flag": 1.0 * table["flag"], "g": table["group"]}
    )
    low, high = book["x"].low, book["x"].high
    width, most = high - low, max(abs(low), abs(high))
    for level in book["group"].levels if grouped else [None]:
        part = plain if level is None else plain[plain["g"] == level]
        x = part["x"].dropna()
        expected = {
            ("x", "count"): (len(x), 0.1),
            ("x", "mean"): (x.mean(), 1e-3 * width),
            ("x", "sum"): (x.sum(), 0.1 * width + 1e-2 * most),
            ("x", "std"): (x.std(ddof=0), 0.05 * width),
            ("flag", "rate"): (part["flag"].mean(), 1e-2),
        }
        if len(x) < 5:
            continue
        for (column, statistic), (value, within) in expected.items():
            got = (
                found.loc[statistic, column]
                if level is None
                else (found.loc[level, (column, statistic)])
            )
            assert got == pytest.approx(value, abs=within), (statistic, level, name)
