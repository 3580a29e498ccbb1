"""A missing value is no answer: statistics are of the values that are there."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import Best, GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.distributions import PointMass
from skpuffer.exceptions import ScenarioError
from skpuffer.kernel.queries import NORMS
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.summary._cells import Bins, Grouped, Signs
from skpuffer.summary._count_tree import CountTree
from skpuffer.summary._gaps import Gaps, Ones, Stacked, gap_weight
from skpuffer.summary._mean import Moments
from skpuffer.utils._bounds import Bounds
from tests.engines import lazy_frame
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

EXACT = PrivacyLoss(1e6, 1e-9, noise="gaussian")
RELATIONS = ["add_remove", "replace"]
ALL = ["count", "size", "mean", "std", "var", "sum", "rate", "histogram"]

# -- sensitivities ---------------------------------------------------------------------


def blocks(order, with_signs, edges, mark=1):
    """Contributions of one column at position 0."""
    found = [Moments((0,), Bounds((-1.0,), (1.0,)), order, (mark,))] if order else []
    found += [Signs((0,), (mark,))] if with_signs else []
    found += [Bins(0, edges, mark)] if edges else []
    return found


KINDS = {
    "count": (0, False, None),
    "mean": (1, False, None),
    "deviation": (2, False, None),
    "rate": (0, True, None),
    "mean and rate": (1, True, None),
    "histogram": (0, False, (-1.0, 0.0, 1.0)),
    "mean and histogram": (1, False, (-1.0, 0.0, 1.0)),
}

VALUES = np.concatenate([np.linspace(-1.5, 1.5, 301), [-0.5, 0.5]])
#: Every value, and gaps that are filled by one.
RECORDS = np.array([*itertools.product(VALUES, [0.0]), (0.3, 1.0), (-1.0, 1.0)])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_record_moves_a_column_with_gaps_as_far_as_is_said(kind, relation, norm):
    """All pairs of records, and each of them and none: the bounds are attained."""
    held = blocks(*KINDS[kind])
    weight = 1.0
    if held:
        present = Stacked(tuple(held)).sensitivity
        weight = gap_weight(present, relation, norm)
    block = Stacked((*held, Gaps((0,), (1,), (weight,))))
    rows = np.unique(block(RECORDS), axis=0)
    said = block.sensitivity
    for p in NORMS:
        alone = np.linalg.norm(rows, p, axis=1).max()
        apart = max(np.linalg.norm(rows - row, p, axis=1).max() for row in rows)
        assert alone == pytest.approx(said.add_remove[p], rel=1e-9)
        assert apart == pytest.approx(said.replace[p], rel=1e-9)
    # by its choice of the weight, a gap costs nothing
    if held:
        assert said.value(relation, norm, None) == pytest.approx(
            present.value(relation, norm, None)
        )
    np.testing.assert_allclose(
        block.sums(RECORDS)[0], block(RECORDS).sum(axis=0), atol=1e-9
    )


def test_weights_are_those_of_the_formulas():
    mean = Moments((0,), Bounds((0.0,), (1.0,)), 1).sensitivity
    assert gap_weight(mean, "add_remove", 2.0) == 1
    assert gap_weight(mean, "replace", 2.0) == pytest.approx(math.sqrt(3))
    assert gap_weight(mean, "replace", 1.0) == pytest.approx(1)
    spread = Moments((0,), Bounds((0.0,), (1.0,)), 2).sensitivity
    assert gap_weight(spread, "replace", 2.0) == pytest.approx(math.sqrt(2.75))
    assert gap_weight(spread, "replace", 1.0) == pytest.approx(0.75)


def test_groups_and_trees_with_gaps_reach_as_far_as_is_said():
    edges = tuple(np.linspace(-1, 1, 65).tolist())
    rows = np.array(list(itertools.product([0, 1], [-1.0, 0.1, 1.0], [0.0, 1.0])))
    block = Stacked(
        (
            Ones(),
            Moments((1,), Bounds((-1.0,), (1.0,)), 2, (2,)),
            CountTree(1, edges, math.sqrt(2), 2),
            Gaps((1,), (2,), (1.5,)),
        )
    )
    for found in (block, Grouped((0,), (2,), block)):
        held = found(rows)
        sums = found.sums(rows).ravel()
        np.testing.assert_allclose(sums, held.sum(axis=0), atol=1e-12)
        for p in NORMS:
            alone = np.linalg.norm(held, p, axis=1).max()
            apart = max(np.linalg.norm(held - row, p, axis=1).max() for row in held)
            assert alone <= found.sensitivity.add_remove[p] * (1 + 1e-12)
            assert apart <= found.sensitivity.replace[p] * (1 + 1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_changes_by_so_much_moves_no_further(kind, norm):
    rng = np.random.default_rng(0)
    block = Stacked((*blocks(*KINDS[kind]), Gaps((0,), (1,), (1.2,))))
    first = np.column_stack([rng.uniform(-1.5, 1.5, 4000), rng.random(4000) < 0.3])
    other = np.column_stack([rng.uniform(-1.5, 1.5, 4000), rng.random(4000) < 0.3])
    near = rng.random(4000) < 0.5
    other[near, 0] = first[near, 0] + rng.normal(0, 0.1, near.sum())
    other[::7] = first[::7]
    moved = np.linalg.norm(block(first) - block(other), norm, axis=1)
    said = block.move(np.abs(first - other), norm)
    assert np.all(moved <= said + 1e-12)
    assert not said[::7].any()


# -- whole estimators ------------------------------------------------------------------


def told(estimator, table):
    """Return the release of a fit, and the table as it reads it."""
    held = []

    class Told(type(estimator)):
        def _release(self, task):
            release = super()._release(task)
            held.append((release, task.X))
            return release

    Told(**estimator.get_params(deep=False)).fit(table)
    return held[0]


BOOK = Schema(
    {
        "a": Number(0, 10),
        "b": Number(-5, 5, missing=False),
        "g": Category(["x", "y"], missing_level=False),
        "c": Category(["u", "v"]),
    }
)
#: Each corner of the bounds, gaps, and both groups and none.
CORNERS = pd.DataFrame(
    list(
        itertools.product(
            [0, 3, 10, np.nan], [-5, 0, 5], ["x", "y", None], ["u", "v", None]
        )
    ),
    columns=list("abgc"),
)
ESTIMATORS = {
    "mean": PrivateMean(schema=BOOK),
    "scaler": PrivateStandardScaler(schema=BOOK),
    "cdf": PrivateCDF(schema=BOOK, bins=16),
    "summary": PrivateSummary(statistics={"a": ALL, "b": ["mean"]}, schema=BOOK),
    "levels": PrivateSummary(
        statistics={"c": ["count"], "g": ["count"], "a": ["mean"]}, schema=BOOK
    ),
    "counts of levels": PrivateSummary(
        statistics={"c": ["count", "rate", "histogram"]}, by="g", schema=BOOK
    ),
    "sums": PrivateSummary(statistics={"a": ["sum"], "b": ["sum"]}, schema=BOOK),
    "groups": PrivateSummary(
        statistics={"a": [*ALL, "median"], "b": ["sum"]}, by="g", schema=BOOK
    ),
}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_noise_covers_every_pair_of_records(name, relation, noise):
    """A pair of records costs no more than the budget, and more at 0.7 of the noise."""
    budget = GroupPrivacy(1.0, alpha=2.0 if noise == "gaussian" else math.inf)
    budget.set_params(noise=noise)
    scenario = RecordScenario(relation=relation)
    model = ESTIMATORS[name]
    model = type(model)(**model.get_params(deep=False))
    model.set_params(scenario=scenario, accountant=budget, random_state=0)
    release, X = told(model, CORNERS)
    rows = release.contribution(np.asarray(X, dtype=float)) * abs(release.factor)
    if relation == "add_remove":
        pairs = rows
    else:
        pairs = np.concatenate([rows - row for row in rows])
    norm = 2.0 if noise == "gaussian" else 1.0
    worst = np.linalg.norm(pairs, norm, axis=1).max()
    scale = model.fit(CORNERS).noise_.std(release.dim) / np.asarray(
        release.units or (1.0,)
    )
    # of Gaussian noise the Rényi divergence of order 2, of Laplace noise the loss
    cost = {
        "gaussian": lambda s: worst**2 / s**2,
        "laplace": lambda s: worst * math.sqrt(2) / s,
    }[noise]
    assert np.ptp(scale) <= 1e-9 * scale[0]
    # room for the grid on which noise is drawn
    assert cost(scale[0]) <= 1.001
    if name in ("mean", "cdf"):
        assert cost(0.7 * scale[0]) > 1.1


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "auto", "best"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("middle", [-0.48, 0.0, 0.3])
def test_gaps_cost_little(middle, relation, noise):
    """Of a mean within half a half-range of the middle, a twentieth being missing."""
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(middle, 0.1, 10_000), -1, 1)
    table = pd.DataFrame({"x": np.where(rng.random(x.size) < 0.05, np.nan, x)})
    scenario = RecordScenario(relation=relation)
    budget = Best(1.0, delta=1e-5)
    if noise != "best":
        budget = PrivacyLoss(1.0, 1e-5, noise=noise)
    with_gaps, complete = (
        PrivateMean(scenario, budget, schema=Schema({"x": entry})).fit(table)
        for entry in (Number(-1, 1), Number(-1, 1, missing=False))
    )
    ratio = with_gaps.mean_std_[0] / complete.mean_std_[0]
    assert 1.04 < ratio < 1.2
    # and nothing else than noise differs
    n = len(table)
    assert with_gaps.certificate_.sensitivity == complete.certificate_.sensitivity
    assert with_gaps.noise_.std(2).size == 2 and complete.mean_.shape == (1,)
    assert complete.certificate_.sensitivity == pytest.approx(
        (1 if relation == "add_remove" else 2) / n
    )


def test_deviations_are_those_of_many_draws():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(400) < 0.3, np.nan, rng.uniform(2, 8, 400))
    table = pd.DataFrame({"x": x})
    budget = PrivacyLoss(2.0, 1e-5, noise="gaussian")
    book = Schema({"x": Number(-5, 15)})
    asked = PrivateSummary(
        accountant=budget, statistics=["count", "mean", "rate"], schema=book
    )
    fits = [asked.fit(table).result_["x"].copy() for _ in range(150)]
    drawn = pd.DataFrame(fits).std()
    said = asked.result_std_["x"]
    assert list(said.index) == ["count", "mean", "rate"]
    np.testing.assert_allclose(drawn, said, rtol=0.25)
    mean = PrivateMean(accountant=budget, schema=book).fit(table)
    low, high = mean.confidence_interval()["mean_"]
    assert low[0] < mean.mean_[0] < high[0]
    # of the column of the table alone
    assert mean.mean_std_.shape == mean.mean_.shape == (1,)


@pytest.mark.parametrize("size", ["public", "private"])
@pytest.mark.parametrize("by", [None, "g"])
def test_a_preview_knows_the_deviations_of_a_complete_table(size, by):
    table = pd.DataFrame({"x": [5.0, 5.0, 10.0, 10.0], "g": ["p", "q"] * 2})
    table["c"] = ["u", "v", "v", "u"]
    table = pd.concat([table] * 5000, ignore_index=True)
    book = {"x": Number(0, 10), "g": Category(["p", "q"], missing_level=False)}
    book = Schema(book | {"c": ["u", "v"]}, size=None if size == "public" else size)
    asked = ["count", "mean", "rate", "std", "sum"]
    model = PrivateSummary(statistics=asked, by=by, schema=book)
    before = model.preview(len(table)).std["result_"]
    said = model.fit(table).result_std_
    # of spreads, which depend on how large these are, it says nothing
    said = said.reindex_like(before)
    assert before.notna().to_numpy().sum() >= 8
    np.testing.assert_allclose(before, said, rtol=0.02)
    mean = PrivateMean(schema=book)
    before = mean.preview(len(table)).std["mean_"][0]
    # 5 % of gaps make it as much larger
    gone = table.assign(x=table.x.mask(np.arange(len(table)) % 20 == 19))
    assert mean.fit(gone).mean_std_[0] == pytest.approx(before / 0.95, rel=0.03)
    # of a private number of records that nobody said
    if size == "private":
        assert "mean_" not in mean.preview().std


# -- answers, as pandas has them -------------------------------------------------------

ENGINES = {
    "pandas": lambda table: table,
    "polars": lambda table: pytest.importorskip("polars").DataFrame(
        {name: table[name].tolist() for name in table}
    ),
    "arrow": lambda table: pytest.importorskip("pyarrow").table(
        {name: table[name].tolist() for name in table}
    ),
    "lazy polars": lambda table: lazy_frame("polars", table),
    "duckdb": lambda table: lazy_frame("duckdb", table),
}


#: How far the noise may put each; a sum is as far off as all values are.
OFF = np.where(np.arange(12) == 5, 0.3, 2e-2)


def expected(values):
    """What pandas says of a column's values."""
    x = values.dropna()
    counts = np.histogram(x, np.linspace(0, 10, 6))[0]
    return [
        len(x),
        len(values),
        x.mean(),
        x.std(ddof=0),
        x.var(ddof=0),
        x.sum(),
        (x > 0).mean(),
        *counts,
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize(
    "share, asked",
    [(s, ["count", "size", "rate", "histogram"]) for s in (0.0, 0.3)]
    + [(0.3, ["count"])],
    ids=str,
)
def test_statistics_of_levels_are_those_of_pandas(engine, by, share, asked):
    """Truth values are levels as others are; a gap in `s` is at no level."""
    rng = np.random.default_rng(0)
    draw = {"c": ["u", "v", "w"], "t": [True, False], "s": ["p", "q"], "g": ["x", "y"]}
    table = pd.DataFrame(
        {name: rng.choice(np.array(v, dtype=object), 200) for name, v in draw.items()}
    )
    for name in ("c", "t", "s"):
        gone = rng.random(200) < share
        cells = np.where(gone, None, table[name].to_numpy(dtype=object))
        table[name] = pd.Series(cells, dtype=object)
    told = {name: Category(draw[name]) for name in ("c", "t")}
    untold = {name: Category(draw[name], missing_level=False) for name in ("s", "g")}
    found = PrivateSummary(
        accountant=EXACT,
        statistics=dict.fromkeys("cts", asked),
        by=by,
        schema=Schema(told | untold),
    ).fit(ENGINES[engine](table))
    parts = [(None, table)] if by is None else table.groupby("g")
    for (group, part), name in itertools.product(parts, "cts"):
        held = found.result_[name].dropna() if by is None else found.result_.loc[group]
        held = held if by is None else held[name]
        x = part[name]
        counts = x.value_counts().reindex(draw[name], fill_value=0)
        # nothing is missing, by declaration
        answers = len(x) if name == "s" else x.count()
        exact = {"count": answers, "size": len(x)}
        exact |= {f"rate[{level}]": c / answers for level, c in counts.items()}
        exact |= {f"histogram[{level}]": c for level, c in counts.items()}
        if name != "s":
            exact["histogram[None]"] = x.isna().sum()
        exact = {key: v for key, v in exact.items() if key.partition("[")[0] in asked}
        assert set(held.index) == set(exact)
        np.testing.assert_allclose(held[list(exact)], list(exact.values()), atol=0.02)


@settings(deadline=None, max_examples=4)
@given(
    seed=st.integers(0, 10_000),
    share=st.sampled_from([0.0, 0.2, 0.44, 0.9]),
    shares=st.sampled_from([0.0, 0.5]),
)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("by", [None, "g"])
def test_statistics_are_those_of_pandas(engine, by, seed, share, shares):
    rng = np.random.default_rng(seed)
    n = 120
    table = pd.DataFrame(
        {"a": rng.uniform(0, 10, n), "b": rng.integers(0, 11, n) / 1.0}
    )
    table = table.assign(g=rng.choice(["x", "y"], n))
    table.loc[rng.random(n) < share, "a"] = np.nan
    table.loc[rng.random(n) < shares, "b"] = np.nan
    book = Schema(
        {
            "a": Number(0, 10),
            "b": Number(0, 10, missing=("?",)),
            "g": Category(["x", "y"], missing_level=False),
        }
    )
    found = PrivateSummary(
        accountant=EXACT,
        statistics={"a": ALL, "b": ALL},
        by=by,
        bins=5,
        schema=book,
    ).fit(ENGINES[engine](table))
    for name in ("a", "b"):
        if by is None:
            held = found.result_[name].dropna()
            assert np.all(np.abs(held - expected(table[name])) <= OFF)
            continue
        for group, part in table.groupby("g"):
            held = found.result_.loc[group, name]
            assert np.all(np.abs(held - expected(part[name])) <= 3 * OFF)


@pytest.mark.parametrize("engine", ENGINES)
def test_moments_quantiles_and_shares_are_of_the_answers(engine):
    rng = np.random.default_rng(3)
    wage = np.where(rng.random(3000) < 0.44, np.nan, rng.gamma(3, 5, 3000))
    table = pd.DataFrame({"wage": wage, "age": rng.uniform(20, 60, 3000)})
    book = Schema({"wage": Number(0, 100), "age": Number(0, 80, missing=False)})
    given = ENGINES[engine](table)
    answers = table["wage"].dropna().clip(0, 100)
    mean = PrivateMean(accountant=EXACT, schema=book).fit(given)
    assert mean.feature_map_.names.tolist() == ["wage", "wage_missing", "age"]
    exact = [answers.mean(), 1 - len(answers) / 3000, table["age"].mean()]
    np.testing.assert_allclose(mean.mean_, exact[::2], atol=1e-3)
    np.testing.assert_allclose(mean.n_answers_, [len(answers), 3000], atol=0.1)
    assert mean.to_frame()["column"].tolist() == ["wage", "age"]
    scaler = PrivateStandardScaler(accountant=EXACT, schema=book).fit(given)
    np.testing.assert_allclose(scaler.mean_, exact, atol=1e-3)
    share = exact[1] * (1 - exact[1])
    spread = [answers.var(ddof=0), share, table["age"].var(ddof=0)]
    np.testing.assert_allclose(scaler.var_, spread, rtol=1e-2)
    cdf = PrivateCDF(accountant=EXACT, schema=book).fit(given)
    np.testing.assert_allclose(cdf.n_answers_, [len(answers), 3000], atol=0.1)
    medians = [answers.median(), table["age"].median()]
    np.testing.assert_allclose(cdf.median(), medians, atol=0.3)
    if engine in ("lazy polars", "duckdb"):
        return
    chosen = PrivateQuantile(accountant=PrivacyLoss(50.0, 1e-6), schema=book).fit(given)
    np.testing.assert_allclose(chosen.quantiles_, medians, atol=0.3)


def test_nothing_is_paid_for_what_is_never_missing():
    table = pd.DataFrame({"x": [1.0, np.nan, 4.0, 7.0] * 50})
    books = {
        "declared": Number(0, 10, missing=False),
        "filled": Number(0, 10, fill=2),
        "told": Number(0, 10),
    }
    found = {}
    for name, entry in books.items():
        book = Schema({"x": entry})
        asked = ["count", "mean", "median", "rate"]
        found[name] = PrivateSummary(
            accountant=EXACT, statistics=asked, schema=book
        ).fit(table)
        dim = told(PrivateMean(accountant=EXACT, schema=book), table)[0].dim
        assert dim == (2 if name == "told" else 1)
    results = {name: held.result_["x"] for name, held in found.items()}
    # a gap that there is all the same is read as the middle, one that is filled as said
    np.testing.assert_allclose(
        [results[name]["mean"] for name in books], [4.25, 3.5, 4.0], atol=1e-3
    )
    np.testing.assert_allclose(
        [results[name]["count"] for name in books], [200, 200, 150], atol=0.1
    )
    assert results["told"]["median"] == pytest.approx(4, abs=0.1)


def test_a_column_of_gaps_alone_has_no_mean():
    table = pd.DataFrame({"x": [np.nan] * 300, "y": [1.0, np.nan, 3.0] * 100})
    # noise alone looks like answers now and then, not of this seed
    given = {"schema": Schema({"x": Number(0, 10), "y": Number(0, 10)})}
    given["random_state"] = 0
    mean = PrivateMean(**given).fit(table).mean_
    assert np.isnan(mean[0]) and np.isfinite(mean[1])
    scaler = PrivateStandardScaler(**given).fit(table)
    assert np.isfinite(scaler.mean_).all() and np.all(scaler.scale_ > 0)
    # the middle of the bounds, and half of the range
    assert (scaler.mean_[0], scaler.scale_[0]) == (5, 5)
    summary = PrivateSummary(statistics=["mean", "std", "median"], **given)
    found = summary.fit(table).result_
    # what is divided by is there too
    assert list(found.index) == ["mean", "std", "median", "count"]
    assert found["x"].isna().tolist() == [True] * 3 + [False]
    assert found.loc["count"].tolist() == pytest.approx([0, 200], abs=60)
    assert np.isfinite(PrivateCDF(**given).fit(table).median()).all()
    assert PrivateQuantile(**given).fit(table).quantiles_.shape == (2,)


def test_counts_that_agree_are_no_more_than_their_groups():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": np.where(rng.random(40) < 0.5, np.nan, 3.0), "g": "x"})
    book = Schema({"x": Number(0, 10), "g": ["x", "y"]})
    for seed in range(5):
        found = PrivateSummary(
            statistics=["count", "size", "histogram"],
            by="g",
            bins=4,
            schema=book,
            nonnegative=True,
            random_state=seed,
        )
        held = found.fit(table).result_["x"]
        bins = held.filter(like="histogram")
        assert (held >= 0).all(axis=None)
        assert (held["count"] <= held["size"] + 1e-9).all()
        assert (bins.sum(axis=1) <= held["size"] + 1e-9).all()


@pytest.mark.parametrize(
    "asked", [["mean", "std"], ["rate", "count"], ["median"], ["histogram"]], ids=str
)
def test_a_secret_attribute_is_hidden_by_what_its_belief_allows(asked):
    rng = np.random.default_rng(0)
    n = 300
    public = pd.DataFrame({"s": rng.integers(0, 2, n)})
    public["x"] = np.where(rng.random(n) < 0.3, np.nan, 3 + public["s"])
    table = public.sample(frac=1, random_state=1, ignore_index=True)
    book = Schema({"x": Number(0, 10), "s": [0, 1]})
    scenario = AttributeScenario("s", level="record", prior=public, prior_as="law")
    found = PrivateSummary(
        scenario,
        Best(epsilon=1.0, delta=1e-5),
        statistics=asked,
        bins=5,
        schema=book.without("s"),
    ).fit(table)
    assert np.isfinite(found.result_.to_numpy()).any()
    assert found.certificate_.epsilon is not None


def test_laws_of_means_are_none_of_sums_and_gaps():
    laws = LawsScenario([(PointMass(np.zeros(1)), PointMass(np.ones(1)))])
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    for entry, is_refused in ((Number(0, 10), True), (Number(0, 10, fill=1), False)):
        book = Schema({"x": entry})
        model = PrivateMean(laws, GeneralWasserstein(1.0, 4.0), schema=book)
        if is_refused:
            with refused(ScenarioError, "summary.laws_with_gaps", n_columns=1):
                model.fit(table)
        else:
            assert model.fit(table).mean_.shape == (1,)
