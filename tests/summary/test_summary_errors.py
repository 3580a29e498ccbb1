"""Errors and intervals of summaries: every statistic's covers what it says."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import CorrelatedGaussianNoise, DegenerateGaussianNoise
from skpuffer.scenarios import BlocksScenario, DependenceScenario, RecordScenario
from skpuffer.schema import Category, Date, Number, Schema
from skpuffer.summary import PrivateCDF, PrivateMean, PrivateSummary
from skpuffer.summary._errors import QuantileErrors
from tests.refused import refused

GROUPS, LEVELS = ["F", "M"], ["a", "b", "c", "d"]
BOOK = Schema(
    {
        "x": Number(0, 10),
        "s": Category(GROUPS, missing_level=False, fill="F"),
        "k": Category(LEVELS),
    }
)
EDGES = np.linspace(0, 10, 21)
ASKED = {
    "x": ["count", "mean", "std", "var", "rate", "sum", "histogram"],
    "k": ["count", "rate", "histogram"],
}


def values(kind, n, rng):
    """Skewed, normal, or of heavy tails that the bounds cut."""
    if kind == "skewed":
        return 10 * rng.beta(1, 6, n)
    x = rng.normal(0, 1, n) if kind == "normal" else rng.standard_t(2.5, n) / 2
    return np.clip(5 + x, 0, 10)


def people(kind, n, rng):
    sex = rng.choice(GROUPS, n, p=[0.7, 0.3])
    x = np.minimum(values(kind, n, rng) + 0.5 * (sex == "M"), 10)
    x[rng.random(n) < 0.1] = np.nan
    levels = np.array([*LEVELS, None], dtype=object)
    k = rng.choice(levels, n, p=[0.5, 0.2, 0.09, 0.01, 0.2])
    return pd.DataFrame({"x": x, "s": sex, "k": k})


def exact(table, by):
    """Statistics by pandas, of each group."""
    found = {}
    for group, rows in [(None, table)] if by is None else list(table.groupby(by)):
        x = rows.x.dropna()
        counts = np.histogram(x, EDGES)[0]
        of_x = {
            "count": len(x),
            "mean": x.mean(),
            "std": x.std(ddof=0),
            "var": x.var(ddof=0),
            "rate": (x > 0).mean(),
            "sum": x.sum(),
            "median": x.median(),
            "min": x.quantile(0.01),
            "25%": x.quantile(0.25),
        }
        ends = [")"] * 19 + ["]"]
        for low, high, count, end in zip(EDGES, EDGES[1:], counts, ends, strict=False):
            of_x[f"histogram[{low:.12g}, {high:.12g}{end}"] = count
        found |= {(group, "x", name): value for name, value in of_x.items()}
        found[group, "k", "count"] = rows.k.count()
        found[group, "k", "histogram[None]"] = rows.k.isna().sum()
        for level in LEVELS:
            held = rows.k.dropna() == level
            found[group, "k", f"rate[{level}]"] = held.mean()
            found[group, "k", f"histogram[{level}]"] = held.sum()
    return found


def covered(model, kind, n, draws, level=0.95, seed=0):
    """Share of intervals that hold the truth, for each statistic, of many tables."""
    rng, size = np.random.default_rng(seed), 300_000
    population = exact(people(kind, size, rng), model.by)
    for key in population:
        if key[2].startswith(("count", "sum", "histogram")):
            population[key] *= n / size
    held = {}
    for _ in range(draws):
        table = people(kind, n, rng)
        model.fit(table)
        of_table = exact(table, model.by)
        for of, truth in (("table", of_table), ("population", population)):
            found = model.to_frame(level, of=of)
            groups = found[model.by] if model.by else [None] * len(found)
            columns = found.column, found.statistic, found.low, found.high, found.wide
            for group, *key, low, high, wide in zip(groups, *columns, strict=True):
                inside = low - 1e-9 <= truth[group, *key] <= high + 1e-9
                name = of, key[0], key[1].partition("[")[0], bool(wide)
                held.setdefault(name, []).append(inside)
    return {key: np.mean(found) for key, found in held.items() if len(found) >= draws}


def summary(epsilon=1.0, statistics=ASKED, **parameters):
    return PrivateSummary(
        accountant=PrivacyLoss(epsilon),
        statistics=statistics,
        schema=BOOK,
        bins={"x": EDGES},
        **parameters,
    )


@pytest.mark.parametrize(
    "by, nonnegative, draws",
    [("s", False, 20), pytest.param(None, True, 40, marks=pytest.mark.slow)],
)
def test_intervals_cover_what_they_say(by, nonnegative, draws):
    """Of small tables with gaps, and much noise."""
    model = summary(0.5, by=by, nonnegative=nonnegative)
    found = covered(model, "skewed", 300, draws)
    assert {name for _, _, name, _ in found} == {*ASKED["x"]}
    # more than four deviations of a share of 20
    assert min(found.values()) >= 0.75 and np.mean([*found.values()]) >= 0.93


@pytest.mark.slow
def test_intervals_of_quantiles_cover_what_they_say():
    asked = {"x": ["median", "quantile", "min"]}
    model = summary(1.0, asked, by="s", quantiles=(0.25,))
    found = covered(model, "normal", 1000, 25)
    assert min(found.values()) >= 0.8 and np.mean([*found.values()]) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["skewed", "normal", "heavy"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("by", [None, "s"])
def test_intervals_cover_at_every_budget(kind, epsilon, by, n_trials):
    draws = n_trials(600, least=40)
    for n, level in ((200, 0.95), (2000, 0.9)):
        # beyond what chance does in a run of many
        slack = 5 * np.sqrt(level * (1 - level) / draws)
        found = covered(summary(epsilon, by=by), kind, n, draws, level, seed=1)
        for (of, _, name, wide), share in found.items():
            assert share >= level - slack, (of, n, name)
            # what is discrete, or at the end of what it can be, is held more often
            if not wide and name in ("mean", "sum") and n >= 2000:
                assert share <= level + slack, (of, n, name)


@pytest.mark.parametrize("of", ["table", "population"])
def test_errors_have_the_unit_of_their_statistic(of):
    """Of a column in other units, by the same noise: variances by the square."""
    x = 10 * np.random.default_rng(0).beta(1, 6, 300)
    x[::10] = np.nan
    found = []
    for unit in (1.0, 8.0):
        model = PrivateSummary(
            accountant=PrivacyLoss(0.5),
            statistics={"x": ["mean", "std", "var", "sum", "rate", "count"]},
            schema=Schema({"x": Number(0, 10 * unit)}),
            random_state=0,
        ).fit(pd.DataFrame({"x": unit * x}))
        found.append(model.to_frame(0.9, of=of).set_index("statistic"))
    one, other = found
    powers = one.index.map({"mean": 1, "std": 1, "sum": 1, "var": 2}).fillna(0)
    for name in ("estimate", "std_error", "low", "high"):
        grown = one[name] * 8.0**powers
        np.testing.assert_allclose(other[name], grown, rtol=1e-6, err_msg=name)


def test_a_projected_count_is_no_certain_one():
    """Counts that are made not negative have the errors of the noise all the same."""
    rng = np.random.default_rng(0)
    model = summary(0.5, nonnegative=True).fit(people("skewed", 300, rng))
    spread = model.result_std_["x"]
    cells = spread[spread.index.str.startswith("histogram")].dropna()
    assert (cells > 5).all()
    low, high = model.confidence_interval(of="table")["result_"]
    full = model.result_["x"][cells.index] > 20
    assert full.any() and (high["x"] - low["x"])[cells.index][full].min() > 20


def test_a_tidy_table_has_a_row_for_each_number():
    table = people("normal", 3000, np.random.default_rng(0))
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        np.arange(3000) % 100, "D"
    )
    book = Schema(
        {name: BOOK[name] for name in BOOK.names}
        | {"day": Date("2024-01-01", "2024-12-31", missing=False)}
    )
    model = PrivateSummary(
        statistics={"x": ["mean", "median"], "day": ["mean"]},
        by=["s", "k"],
        schema=book,
        bins=10,
    )
    found = model.fit(table).to_frame()
    named = ["s", "k", "column", "statistic", "estimate", "std_error", "low", "high"]
    assert found.columns.tolist() == [*named, "n", "wide"]
    assert len(found) == 10 * len(model.result_.columns)
    days = found[found.column == "day"]
    assert all(isinstance(low, pd.Timestamp) for low in days.low.dropna())
    at = found.set_index(["s", "k", "column", "statistic"]).loc[("F", "a", "x", "mean")]
    assert at.low < at.estimate < at.high
    assert at.estimate == model.result_.loc[("F", "a"), ("x", "mean")]


@pytest.mark.parametrize("by", [None, "s"])
@pytest.mark.parametrize("asked", [{"x": ["size"]}, {"x": ["histogram"]}])
def test_columns_whose_gaps_are_not_counted_have_errors_beside_others(asked, by):
    table = people("normal", 300, np.random.default_rng(0))
    table["z"] = table.x
    book = Schema({name: BOOK[name] for name in ("x", "s")} | {"z": Number(0, 10)})
    model = PrivateSummary(statistics={**asked, "z": ["mean"]}, schema=book, by=by)
    found = model.fit(table).to_frame()
    assert {*found.column} >= {"x", "z"}
    assert found.drop(columns=["estimate", "std_error"]).notna().all(axis=None)


@pytest.mark.parametrize("by", [None, "s", "g"])
def test_of_modes_alone_there_are_no_errors(by):
    table = people("normal", 300, np.random.default_rng(0)).assign(g="one")
    model = PrivateSummary(statistics={"k": ["mode"]}, schema=BOOK, by=by).fit(table)
    assert model.confidence_interval()["result_"][0].size == 0
    named = [*([by] if by else []), "column", "statistic", "estimate", "std_error"]
    found = model.to_frame()
    assert found.empty
    assert found.columns.tolist() == [*named, "low", "high", "n", "wide"]


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_a_sum_has_an_error_where_no_mean_is_known():
    book = Schema({"x": Number(0, 10)})
    model = PrivateSummary(
        accountant=PrivacyLoss(0.02),
        statistics={"x": ["mean", "sum"]},
        schema=book,
        random_state=0,
    )
    found = model.fit(pd.DataFrame({"x": [np.nan, 1.0]})).to_frame()
    found = found.set_index("statistic")
    assert np.isnan(found.estimate["mean"]) and found.std_error["sum"] > 10


def test_groups_that_nobody_listed_have_errors():
    table = people("normal", 3000, np.random.default_rng(0)).rename(columns={"s": "g"})
    book = Schema({"x": Number(0, 10)})
    model = PrivateSummary(by="g", statistics=["mean"], schema=book).fit(table)
    found = model.to_frame()
    assert set(found.g) == set(GROUPS)
    low, high = model.confidence_interval()["result_"]
    assert low.index.tolist() == model.result_.index.tolist()
    means = found[found.statistic == "mean"].set_index("g")
    assert ((means.low < means.estimate) & (means.estimate < means.high)).all()


@pytest.mark.parametrize("of", ["table", "population"])
@pytest.mark.parametrize("epsilon", [1e6, 1.0, 0.5])
def test_a_mean_has_the_same_interval_by_either_door(epsilon, of):
    """Of the same noise: near a bound, and of a column that mostly lacks values."""
    rng = np.random.default_rng(0)
    rare = np.where(rng.random(200) < 0.7, np.nan, rng.uniform(8, 10, 200))
    table = pd.DataFrame({"rare": rare, "high": rng.uniform(9, 10, 200)})
    book = Schema({"rare": Number(0, 10), "high": Number(0, 10, missing=False)})
    given = {"accountant": PrivacyLoss(epsilon), "schema": book, "random_state": 1}
    mean = PrivateMean(**given).fit(table)
    tidy = PrivateSummary(statistics=["mean"], **given).fit(table).to_frame(of=of)
    tidy = tidy[tidy.statistic == "mean"]
    places = [["rare", "high"].index(name) for name in tidy.column]
    np.testing.assert_allclose(tidy.estimate, mean.mean_[places], rtol=1e-9)
    ends = mean.confidence_interval(of=of)["mean_"]
    for name, end in zip(("low", "high"), ends, strict=True):
        np.testing.assert_allclose(tidy[name], np.clip(end, 0, 10)[places], rtol=1e-6)


@pytest.mark.parametrize("level", [0.02, 0.5, 0.9])
def test_without_noise_a_quantile_is_within_its_interval(level):
    """Wherever in the bin between two edges, which counts do not say."""
    rng, edges = np.random.default_rng(3), np.linspace(0, 1, 9)
    counts = rng.integers(0, 20, size=(50, 8))
    below = np.hstack([np.zeros((50, 1)), counts.cumsum(axis=1)])
    excess = below - level * below[:, -1:]
    at = np.argmax(excess >= 0, axis=1) - 1
    for estimate in (edges[at], edges[at + 1]):
        zero = np.zeros(excess.shape)
        errors = QuantileErrors(estimate, edges, excess, zero, zero[:, 0])
        for of in ("table", "population"):
            low, high = errors.interval(0.95, of, 2.0)
            assert np.all(low <= edges[at]) and np.all(edges[at + 1] <= high)
            assert np.all(high - low <= 3 / 8 + 1e-12)


@pytest.mark.parametrize("of", ["table", "population"])
def test_intervals_of_means_cover_what_they_say(of):
    rng, held = np.random.default_rng(0), []
    model = PrivateMean(bounds=(0, 10))
    for _ in range(80):
        x = values("skewed", 200, rng)[:, None]
        low, high = model.fit(x).confidence_interval(of=of)["mean_"]
        held.append(low[0] <= (x.mean() if of == "table" else 10 / 7) <= high[0])
    assert np.mean(held) >= 0.87


@pytest.mark.parametrize("size", ["public", "private"])
def test_means_of_few_values_have_intervals_that_cover(size):
    """By draws of noise, of 30 records: what is divided by is noisy."""
    rng = np.random.default_rng(0)
    x = values("skewed", 30, rng)
    x[:9] = np.nan
    held = []

    class Told(PrivateMean):
        def _execute(self, task, release, noise, rng):
            held.append((release, release.run(task.X)))
            return super()._execute(task, release, noise, rng)

    book = Schema({"x": Number(0, 10)}, size=size)
    model = Told(accountant=PrivacyLoss(0.2), schema=book)
    model.fit(pd.DataFrame({"x": x}))
    (release, exact), inside = held[0], []
    for _ in range(1500):
        model._publish(exact + model.noise_.sample(exact.shape, rng), release)
        low, high = model.confidence_interval(of="table")["mean_"]
        inside.append(low[0] <= np.nanmean(x) <= high[0])
    assert np.mean(inside) >= 0.935


@pytest.mark.parametrize("kind", [PrivateMean, PrivateSummary])
def test_rare_values_are_within_the_interval_of_the_population(kind):
    rng, held = np.random.default_rng(0), []
    model = kind(accountant=PrivacyLoss(50.0), bounds={"x": (0, 10)})
    if kind is PrivateSummary:
        model.set_params(statistics=["mean"])
    for _ in range(60):
        x = pd.DataFrame({"x": 10.0 * (rng.random(30) < 0.05)})
        (ends,) = model.fit(x).confidence_interval().values()
        low, high = (np.ravel(end)[0] for end in ends)
        held.append(low <= 0.5 <= high)
    assert np.mean(held) >= 0.9


def test_of_zeros_and_ones_the_interval_is_not_wide():
    x = np.random.default_rng(0).integers(0, 2, (10_000, 1)).astype(float)
    low, high = PrivateMean(bounds=(0, 1)).fit(x).confidence_interval()["mean_"]
    assert (high - low)[0] == pytest.approx(2 * 1.96 * 0.5 / 100, rel=0.1)


def test_records_that_are_not_independent_have_intervals_of_the_table():
    x, ids = np.linspace(0, 10, 400)[:, None], np.repeat(np.arange(100), 4)
    sized = RecordScenario(relation="replace", sizes="public")
    for kind, of_rows in itertools.product(
        (PrivateMean, PrivateSummary), (RecordScenario(max_rows=4), sized)
    ):
        model = kind(
            of_rows, bounds={0: (0, 10)} if kind is PrivateSummary else (0, 10)
        )
        model.fit(x, groups=ids)
        with refused(UnsupportedError, "summary.no_population_of_such_records"):
            model.confidence_interval()
        assert model.confidence_interval(of="table")
        model.set_params(weight="unit").fit(x, groups=ids)
        assert model.confidence_interval()
        model.set_params(scenario=None, weight="row", weight_bounds=(0, 1))
        model.fit(x, sample_weight=np.ones(400))
        with refused(UnsupportedError, "summary.no_population_of_such_records"):
            model.confidence_interval()


def test_records_that_depend_on_each_other_have_intervals_of_the_table():
    x = np.linspace(0, 10, 400)[:, None]
    of_law = GeneralWasserstein(1.0, alpha=np.inf, noise="laplace")
    for scenario, accountant in (
        (DependenceScenario(0.01), of_law),
        (BlocksScenario(RecordScenario(4)), PrivacyLoss(1.0)),
    ):
        model = PrivateMean(scenario, accountant, bounds=(0, 10))
        model.fit(x, groups=np.repeat(np.arange(100), 4))
        with refused(UnsupportedError, "summary.no_population_of_such_records"):
            model.confidence_interval()
        assert model.confidence_interval(of="table")


def test_errors_of_sampling_are_those_of_the_textbook():
    """At a budget so large that nothing else is left."""
    rng, n = np.random.default_rng(0), 20_000
    x = 10 * rng.beta(1, 6, n)
    asked = {"x": ["mean", "std", "var", "sum", "median"]}
    model = PrivateSummary(
        accountant=PrivacyLoss(1e6), statistics=asked, bounds={"x": (0, 10)}
    ).fit(pd.DataFrame({"x": x}))
    found = model.to_frame().set_index("statistic").std_error
    variance = x.var()
    fourth = ((x - x.mean()) ** 4).mean() - variance**2
    assert found["mean"] == pytest.approx(np.sqrt(variance / n), rel=0.02)
    assert found["sum"] == pytest.approx(np.sqrt(variance * n), rel=0.02)
    # of what is bounded it is no less
    assert 1 <= found["var"] / np.sqrt(fourth / n) < 4
    assert found["std"] == pytest.approx(found["var"] / (2 * x.std()), rel=0.02)
    density = 6 / 10 * 0.5 ** (5 / 6)  # of the beta distribution at its median
    # within the cells of its grid
    of_median = 0.5 / density / np.sqrt(n)
    assert of_median <= found["median"] + 0.02 < of_median + 0.06


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_of_differences_cover_what_they_say(epsilon):
    rng = np.random.default_rng(0)
    large = people("skewed", 1_000_000, rng)
    truth = {}
    for name, ask in {"mean": "mean", "std": "std"}.items():
        of_groups = large.groupby("s").x.agg(ask)
        truth[name] = of_groups["M"] - of_groups["F"]
    for name in LEVELS:
        shares = large.k.eq(name).groupby(large.s).mean()
        truth[f"rate[{name}]"] = shares["M"] - shares["F"]
    right = pd.Series(truth)
    model = summary(epsilon, {"x": ["mean", "std", "count"], "k": ["rate"]}, by="s")
    held = []
    for _ in range(40):
        found = model.fit(people("skewed", 2000, rng)).compare("F")
        assert set(found.s) == {"M"} and set(found.statistic) == set(truth)
        found = found.set_index("statistic").loc[list(truth)]
        held.append(found.low.le(right) & found.high.ge(right))
    share = np.mean(held, axis=0)
    # beyond what chance does in a run of many
    assert share.min() >= 0.75 and share.mean() >= 0.9
    # the other way round it is the same
    back = model.compare("M").set_index("statistic").loc[list(truth)]
    ahead = model.compare("F").set_index("statistic").loc[list(truth)]
    np.testing.assert_allclose(back.low, -ahead.high)
    np.testing.assert_allclose(back.std_error, ahead.std_error)


def test_groups_are_compared_by_their_names():
    table = pd.DataFrame({"s": ["F", "M"] * 200, "k": ["a", "a", "b", "c"] * 100})
    table["x"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400), "D")
    book = Schema({"s": GROUPS, "k": LEVELS, "x": Date("2020-01-01", "2022-01-01")})
    model = PrivateSummary(schema=book, by=["s", "k"], statistics={"x": ["mean"]})
    found = model.fit(table).compare(("F", "b"))
    assert len(found) == len(model.result_) - 1
    assert found.estimate.dtype.kind == "m"
    with refused(ValueError, "summary.compare_group_unknown"):
        model.compare("F")
    model.set_params(by=None).fit(table)
    with refused(ValueError, "summary.compare_without_groups"):
        model.compare("F")


def test_of_groups_that_nobody_listed_those_that_were_released_are_compared():
    towns = np.repeat(["Bonn", "Ulm", "Juist"], [3000, 2000, 1])
    table = pd.DataFrame({"town": towns, "x": np.tile([2.0, 6.0, 7.0], 1667)})
    model = PrivateSummary(by="town", statistics=["mean"], bounds={"x": (0, 10)})
    found = model.fit(table).compare("Ulm")
    assert found.town.tolist() == ["Bonn"]


@pytest.mark.parametrize("of", ["population", "table"])
@pytest.mark.parametrize("kind", ["public", "private", "gaps"])
def test_intervals_of_quantiles_off_a_function_cover_what_they_say(kind, of):
    rng, held, asked = np.random.default_rng(0), [], [0.1, 0.5, 0.9]
    parameters = {"bounds": (0, 10), "bins": 100}
    if kind == "private":
        parameters["scenario"] = RecordScenario(size="private")
    if kind == "gaps":
        parameters = {"schema": Schema({"x": Number(0, 10)}), "bins": 100}
    model = PrivateCDF(accountant=PrivacyLoss(0.2), **parameters)
    truth = 10 * stats.beta(2, 4).ppf(asked)
    for _ in range(30):
        x = 10 * rng.beta(2, 4, 2000)
        if kind == "gaps":
            x[rng.random(2000) < 0.2] = np.nan
        found = model.fit(pd.DataFrame({"x": x})).to_frame(of=of, levels=asked)
        true = truth if of == "population" else np.nanquantile(x, asked)
        held.append(found.low.le(true) & found.high.ge(true))
        assert found.n[0] == model.n_answers_[0]
    # beyond what chance does in a run of many
    assert np.min(np.mean(held, axis=0)) >= 0.75 and np.mean(held) >= 0.9
    assert found.column.unique() == ["x"]
    if of == "population":
        return
    # errors shrink with the noise, as far as the grid goes
    precise = clone(model).set_params(accountant=PrivacyLoss(9.0))
    sharper = precise.fit(pd.DataFrame({"x": x})).to_frame(of=of, levels=asked)
    assert sharper.std_error.sum() < found.std_error.sum()


def test_a_function_of_rows_of_units_has_intervals_of_the_table():
    x = pd.DataFrame({"id": np.repeat(np.arange(100), 4), "x": np.arange(400) / 40})
    model = PrivateCDF(RecordScenario(unit="id", max_rows=4), bounds=(0, 10)).fit(x)
    with refused(UnsupportedError, "summary.no_population_of_such_records"):
        model.to_frame()
    assert len(model.to_frame(of="table", levels=[0.5])) == 1


@pytest.mark.parametrize(
    "noise",
    [
        CorrelatedGaussianNoise(covariance=((1.0, 0.5), (0.5, 1.0))),
        DegenerateGaussianNoise(factor=((1.0,), (0.5,))),
    ],
)
def test_noise_that_is_correlated_makes_longer_intervals_of_differences(noise):
    table = pd.DataFrame({"s": GROUPS * 200, "x": np.linspace(0, 10, 400)})
    model = PrivateSummary(
        by="s", statistics=["mean"], bounds={"x": (0, 10)}, categories={"s": GROUPS}
    ).fit(table)
    alone = model.compare("F", of="table").iloc[0]
    frame = model.to_frame(of="table")
    deviations = frame.std_error[frame.statistic == "mean"]
    assert alone.std_error == pytest.approx(np.hypot(*deviations))
    # nothing is known of how the noise of groups goes together
    model.noise_ = noise
    together = model.compare("F", of="table").iloc[0]
    assert together.std_error == pytest.approx(deviations.sum())


def test_errors_of_quantiles_are_those_of_the_textbook_where_noise_is_small():
    rng, n = np.random.default_rng(0), 4000
    x = pd.DataFrame({"x": rng.normal(5, 1, n)})
    model = PrivateCDF(accountant=PrivacyLoss(1e3), bounds=(0, 10), bins=4000)
    found = model.fit(x).to_frame(levels=[0.5])
    # of the median of normal numbers
    assert found.std_error[0] == pytest.approx(np.sqrt(np.pi / 2 / n), rel=0.3)


@pytest.mark.parametrize("of", ["table", "population"])
def test_a_private_number_of_records_has_errors_too(of):
    rng, held = np.random.default_rng(0), {}
    scenario = RecordScenario(size="private")
    model = PrivateSummary(
        scenario, statistics=["size", "mean", "sum"], bounds={"x": (0, 10)}
    )
    mean = PrivateMean(scenario, bounds=(0, 10))
    for _ in range(60):
        x = pd.DataFrame({"x": values("normal", 2000, rng)})
        truth = {"size": 2000, "mean": 5.0, "sum": 10_000.0}
        if of == "table":
            truth = {"size": 2000, "mean": x.x.mean(), "sum": x.x.sum()}
        found = model.fit(x).to_frame(of=of).set_index("statistic")
        for name, value in truth.items():
            inside = found.low[name] <= value <= found.high[name]
            held.setdefault(name, []).append(inside)
        low, high = mean.fit(x).confidence_interval(of=of)["mean_"]
        held.setdefault("alone", []).append(low[0] <= truth["mean"] <= high[0])
    assert all(np.mean(inside) >= 0.85 for inside in held.values())
