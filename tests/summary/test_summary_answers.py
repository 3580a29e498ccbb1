"""Sums, extremes, modes and numbers of levels; and dates among all statistics."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss
from skpuffer.schema import Category, Date, Number, Schema, Time
from skpuffer.summary import PrivateSummary
from skpuffer.summary._layout import seen_deviations
from tests.refused import refused
from tests.summary.test_summary_gaps import ENGINES, EXACT, told

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

BOOK = Schema(
    {
        "x": Number(-2, 9),
        "k": Number(-2, 9, integer=True),
        "c": Category(["u", "v", "w"]),
        "day": Date("2023-12-30", "2024-02-03"),
        "at": Date("2024-01-01", "2024-01-02", unit="minute"),
        "clock": Time("08:00", "18:00"),
        "g": Category(["p", "q"], missing_level=False),
    }
)


def made_table(seed, n=300, share=0.2):
    rng = np.random.default_rng(seed)
    moment = np.datetime64("2024-01-01T00:00") + rng.integers(0, 2880, n)
    table = pd.DataFrame(
        {
            "x": rng.uniform(-2, 9, n),
            "k": rng.choice([-2.0, 0.0, 3.0, 4.0], n, p=[0.1, 0.2, 0.5, 0.2]),
            "c": pd.Series(rng.choice(["v", "w"], n, p=[0.7, 0.3]), dtype=object),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 30, n),
            "at": moment,
            "clock": pd.to_timedelta(rng.integers(480, 1081, n), unit="min"),
        }
    )
    table = table.mask(rng.random(table.shape) < share)
    return table.assign(g=rng.choice(["p", "q"], n))


def near(found, exact, within):
    assert abs(found - exact) <= within, (found, exact)


def check(found, part):
    """Compare statistics of all columns with those of pandas."""
    x, k, c, day = (part[name].dropna() for name in ("x", "k", "c", "day"))
    near(found["x", "sum"], x.sum(), 0.1)
    near(found["k", "sum"], k.sum(), 0.1)
    near(found["x", "min"], x.quantile(0.01), 0.3)
    near(found["x", "max"], x.quantile(0.99), 0.3)
    assert (found["k", "min"], found["k", "max"]) == (-2, 4)
    for name, values in (("k", k), ("c", c)):
        assert found[name, "mode"] == values.mode()[0]
        assert found[name, "n_unique"] == values.nunique()
    assert found["day", "n_unique"] == day.nunique()
    most = day.value_counts()
    assert most[found["day", "mode"]] == most.max()
    hour, minute = pd.Timedelta(hours=1), pd.Timedelta(minutes=1)
    for name, close in (("day", 2 * hour), ("at", 5 * minute), ("clock", 2 * minute)):
        values = part[name].dropna()
        near(found[name, "mean"], values.mean(), close)
        near(found[name, "std"], values.std(ddof=0), close)
        # on the grid of a column: days, or 512 bins
        near(found[name, "median"], values.median(), 12 * close)
    assert isinstance(found["clock", "std"], pd.Timedelta)
    assert isinstance(found["day", "median"], pd.Timestamp)


@settings(deadline=None, max_examples=3)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.0, 0.3]))
@pytest.mark.parametrize("by", [None, "g"])
def test_statistics_are_those_of_pandas(by, seed, share):
    table = made_table(seed, share=share)
    shape = ["mean", "std", "median"]
    extremes, levels = ["sum", "min", "max"], ["mode", "n_unique"]
    found = PrivateSummary(
        accountant=EXACT,
        statistics={
            "x": extremes,
            "k": [*extremes, *levels],
            "c": levels,
            "day": [*shape, *levels],
            "at": shape,
            "clock": shape,
        },
        by=by,
        schema=BOOK,
    ).fit(table)
    if by is None:
        check(found.result_.T.stack(future_stack=True), table)
        return
    for group, part in table.groupby("g"):
        check(found.result_.loc[group], part)
    assert found.result_["day", "mean"].dtype.kind == "M"
    assert found.result_["clock", "std"].dtype.kind == "m"


@pytest.mark.parametrize("engine", ["pandas", "lazy polars", "duckdb"])
@pytest.mark.parametrize("unit", ["day", "hour", "second"])
def test_means_are_of_moments_and_counts_of_whole_units(engine, unit):
    """Afternoons are no mornings on average, and no next days in a histogram."""
    rng = np.random.default_rng(0)
    seconds = 3600 * rng.integers(12, 24, 3000) + rng.integers(0, 3600, 3000)
    days = np.datetime64("2024-01-01") + rng.integers(0, 31, 3000)
    moments = days.astype("M8[s]") + seconds
    table = pd.DataFrame({"at": moments.astype("M8[ns]")})
    edges = ["2024-01-01", "2024-01-11", "2024-01-21", "2024-01-31"]
    for bins in (3, edges):
        found = PrivateSummary(
            accountant=EXACT,
            statistics=["mean", "std", "histogram"],
            schema=Schema({"at": Date("2024-01-01", "2024-01-31", unit=unit)}),
            bins={"at": bins},
        ).fit(ENGINES[engine](table))
        held = found.result_["at"]
        near(held["mean"], table["at"].mean(), pd.Timedelta(minutes=5))
        near(held["std"], table["at"].std(ddof=0), pd.Timedelta(minutes=5))
        if bins == edges:
            counts = np.histogram(days, np.array(edges, "M8[D]"))[0]
            counts = [*counts[:2], counts[2]]
            shown = held.filter(like="histogram").astype(float)
            np.testing.assert_allclose(shown, counts, atol=0.1)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("complete", [False, True])
def test_deviations_of_sums_are_exact(by, complete):
    """A sum is affine in the noise: its slopes by each coordinate say how it varies."""
    entry = Number(-2, 9, missing=not complete)
    book = Schema({"x": entry, "g": Category(["p", "q"], missing_level=False)})
    model = PrivateSummary(
        accountant=PrivacyLoss(1.0, 1e-5, noise="gaussian"),
        statistics={"x": ["sum", "mean"]},
        by=by,
        schema=book,
    ).fit(made_table(0, share=0.0))
    release, _ = told(model, made_table(0, share=0.0))
    layout, widths = release.context.layout, model.noise_.std(release.dim)
    origin = np.full(release.dim, 0.3)

    def sums(vector):
        return layout.read(vector, widths, release.n_records)["x", "sum"]

    slopes = [sums(origin + step) - sums(origin) for step in np.eye(release.dim)]
    exact = np.linalg.norm(widths[:, None] * slopes, axis=0)
    said = model.result_std_.loc["sum"] if by is None else model.result_std_["x", "sum"]
    np.testing.assert_allclose(said, exact, rtol=1e-9)


def test_levels_of_nobody_are_seldom_counted():
    """Of 600 minutes of which one is met: none of the others by the noise, mostly."""
    table = pd.DataFrame({"t": [pd.Timedelta(hours=9)] * 400})
    for noise in ("laplace", "gaussian"):
        fits = [
            PrivateSummary(
                accountant=PrivacyLoss(1.0, 1e-5, noise=noise),
                statistics=["mode", "n_unique"],
                schema=Schema({"t": Time("08:00", "18:00")}),
            ).fit(table)
            for _ in range(20)
        ]
        assert {fit.result_.loc["mode", "t"] for fit in fits} == {table["t"][0]}
        assert sum(fit.result_.loc["n_unique", "t"] > 1 for fit in fits) <= 5
    # what is said of both families
    for n in (2, 10, 600):
        t = seen_deviations(n)
        assert n * math.exp(-math.sqrt(2) * t) / 2 <= 0.0501
        assert n * math.erfc(t / math.sqrt(2)) / 2 <= 0.0501


def test_edges_of_dates_are_dates():
    table = made_table(5)
    edges = ["2023-12-30", pd.Timestamp("2024-01-11"), "2024-02-03"]
    found = PrivateSummary(
        accountant=EXACT,
        statistics={"day": ["histogram"], "clock": ["histogram"]},
        bins={"day": edges, "clock": ["08:00", "12:30", "18:00"]},
        schema=BOOK,
    ).fit(table)
    early = {
        "day": (table["day"] < "2024-01-11").sum(),
        "clock": (table["clock"] < "12:30:00").sum(),
    }
    labels = ["[2023-12-30, 2024-01-11)", "[08:00:00, 12:30:00)"]
    for (name, exact), label in zip(early.items(), labels, strict=True):
        near(found.result_.loc[f"histogram{label}", name], exact, 0.1)
        both = found.result_[name].dropna()
        near(both.sum(), table[name].count(), 0.1)
    with refused(ValueError, "summary.bins_invalid"):
        PrivateSummary(schema=BOOK, bins={"day": ["soon", "later"]}).fit(table)


def test_bins_and_intervals_of_dates_are_dates():
    table = made_table(1)
    model = PrivateSummary(
        statistics={"day": ["histogram", "mean", "count"], "x": ["mean"]},
        schema=BOOK,
        bins=4,
    )
    before = model.preview(300, feature_names=list(BOOK.names))
    model.fit(table)
    labels = [name for name in model.result_.index if name.startswith("histogram")]
    assert labels == [
        "histogram[2023-12-30, 2024-01-08)",
        "histogram[2024-01-08, 2024-01-17)",
        "histogram[2024-01-17, 2024-01-26)",
        "histogram[2024-01-26, 2024-02-03]",
    ]
    low, high = model.confidence_interval()["result_"]
    mean = model.result_.loc["mean", "day"]
    assert low.loc["mean", "day"] < mean < high.loc["mean", "day"]
    assert isinstance(model.result_std_.loc["mean", "day"], pd.Timedelta)
    assert "count" in before.std["result_"].index


@pytest.mark.parametrize(
    "name, statistic",
    [("day", "var"), ("clock", "sum"), ("day", "rate"), ("x", "mode"), ("c", "sum")],
)
def test_a_column_has_no_statistic_that_makes_no_sense(name, statistic):
    with refused(
        ValueError, "summary.statistic_impossible_for_column", impossible=[statistic]
    ):
        PrivateSummary(statistics={name: [statistic]}, schema=BOOK).fit(made_table(0))


def test_margins_add_up_and_are_those_of_pandas():
    table = made_table(3, share=0.0)
    model = PrivateSummary(
        accountant=EXACT,
        statistics={"x": ["size", "sum", "mean"]},
        by=["g", "day.month"],
        schema=BOOK,
    ).fit(table)
    for statistic, exact in (
        ("size", pd.crosstab(table["g"], table["day"].dt.month, margins=True)),
        (
            "sum",
            pd.crosstab(
                table["g"],
                table["day"].dt.month,
                table["x"],
                aggfunc="sum",
                margins=True,
            ),
        ),
    ):
        found = model.to_crosstab(statistic, "x", margins=True)
        cells = model.to_crosstab(statistic, "x")
        pd.testing.assert_frame_equal(found.iloc[:-1, :-1], cells, check_names=False)
        np.testing.assert_allclose(found.loc["All"][:-1], cells.sum())
        # the month before and the one after have nobody
        held = found[[pd.Period("2024-01", "M"), "All"]]
        np.testing.assert_allclose(held, exact[[1, "All"]], rtol=1e-2)
    noise = model.to_crosstab("size", "x", margins=True, deviations=True)
    months = noise.shape[1] - 1
    np.testing.assert_allclose(noise["All"][:-1], noise.iloc[0, 0] * months**0.5)
    np.testing.assert_allclose(
        noise.loc["All", "All"], noise.iloc[0, 0] * (2 * months) ** 0.5
    )
    with refused(ValueError, "summary.margins_do_not_add_up", statistic="mean"):
        model.to_crosstab("mean", "x", margins=True)
