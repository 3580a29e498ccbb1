"""Covariances and correlations, of the records that lack no number."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from skpuffer._template._intervals import interval_width
from skpuffer._template._weights import Weighting
from skpuffer.accountants import Best, GroupPrivacy, PrivacyLoss
from skpuffer.covariance import PrivateCovariance
from skpuffer.covariance._covariance import CrossMoments
from skpuffer.exceptions import UnsupportedError
from skpuffer.scenarios import AttributeScenario, RecordScenario, ReferenceTable
from skpuffer.schema import Date, Number, Schema
from skpuffer.summary._gaps import of_each_record
from skpuffer.utils._bounds import Bounds
from tests.refused import refused
from tests.summary.test_summary_gaps import ENGINES, EXACT, told

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

BOOK = Schema(
    {
        "x": Number(-2, 9),
        "y": Number(0, 100, missing=False),
        "day": Date("2024-01-01", "2024-12-31"),
        "g": ["p", "q"],
    }
)


def made_table(seed, share, n=3000):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 9, n)
    table = pd.DataFrame(
        {
            "x": x,
            "y": 50 + 4 * x + rng.uniform(-5, 5, n),
            "day": np.datetime64("2024-01-01") + (20 * (x + 2)).astype(int),
        }
    )
    table[["x", "day"]] = table[["x", "day"]].mask(rng.random((n, 2)) < share)
    return table.assign(g=np.where(x > 3, "p", "q"))


@pytest.mark.parametrize("engine", ["pandas", "lazy polars", "duckdb"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_matrices_are_those_of_pandas(share, engine):
    table = made_table(1, share)
    texts = table["day"].dt.strftime("%Y-%m-%d").astype(object)
    held = table.assign(day=texts.where(texts.notna(), None))
    found = PrivateCovariance(accountant=EXACT, schema=BOOK).fit(ENGINES[engine](held))
    complete = table.dropna()
    first = np.datetime64("1970-01-01")
    numbers = complete.assign(
        day=(complete["day"] - first).dt.days,
        g_p=(complete["g"] == "p") * 1.0,
        g_q=(complete["g"] == "q") * 1.0,
        g_missing=0.0,
    ).drop(columns="g")
    assert list(found.columns_) == list(numbers)
    assert found.n_complete_ == pytest.approx(len(complete), abs=0.1)
    np.testing.assert_allclose(found.mean_, numbers.mean(), rtol=1e-2, atol=1e-2)
    off = np.abs(found.covariance_ - numbers.cov())
    assert np.all(off <= 6 * found.covariance_std_ + 1e-9)
    assert np.all(found.covariance_std_ < 0.05 * np.outer(*[numbers.std() + 0.2] * 2))
    correlation = numbers.drop(columns="g_missing").corr()
    assert np.abs(found.correlation_[:5, :5] - correlation).max().max() < 0.01
    # nobody lacks a level, and that is all noise
    variances, noise = np.diag(found.covariance_), np.diag(found.covariance_std_)
    assert (np.isnan(np.diag(found.correlation_)) == (variances < 2 * noise)).all()


@pytest.mark.parametrize("engine", ["pandas", "lazy polars"])
def test_records_with_gaps_are_no_part_of_a_private_number(engine):
    table = made_table(1, 0.3)[["x", "y"]]
    found = PrivateCovariance(
        RecordScenario(size="private"), EXACT, schema=BOOK.select(["x", "y"])
    ).fit(ENGINES[engine](table))
    complete = table.dropna()
    assert found.n_complete_ == pytest.approx(len(complete), abs=1)
    np.testing.assert_allclose(found.mean_, complete.mean(), atol=0.1)
    np.testing.assert_allclose(found.covariance_, complete.cov(), atol=1)


@pytest.mark.parametrize("size", ["public", "private"])
def test_weights_below_the_largest_count_beside_gaps(size):
    table = made_table(1, 0.3, n=1000)[["x", "y"]]
    w = np.random.default_rng(0).integers(0, 3, 1000)
    book = BOOK.select(["x", "y"])
    found = PrivateCovariance(
        RecordScenario(size=size), EXACT, weight_bounds=(0, 4), schema=book
    ).fit(table, sample_weight=w)
    repeated = table.loc[np.repeat(np.arange(1000), w)].dropna()
    assert found.n_complete_ == pytest.approx(len(repeated), abs=1)
    np.testing.assert_allclose(found.mean_, repeated.mean(), atol=0.1)
    np.testing.assert_allclose(found.covariance_, repeated.cov(), rtol=0.02)


def test_arrays_by_bounds_without_gaps():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (2000, 3)) @ rng.uniform(-1, 1, (3, 3))
    found = PrivateCovariance(accountant=EXACT, bounds=(-3, 3)).fit(X)
    np.testing.assert_allclose(found.covariance_, np.cov(X.T), atol=2e-3)
    np.testing.assert_allclose(found.correlation_, np.corrcoef(X.T), atol=2e-2)
    assert found.n_complete_ == 2000 and list(found.columns_) == [0, 1, 2]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_noise_covers_every_pair_of_records(relation, noise):
    """All corners, middles and gaps; at 0.7 of the Gaussian noise a pair costs more."""
    book = Schema({"a": Number(0, 10), "b": Number(-5, 5)})
    cells = itertools.product([0, 2, 5, 10, None], [-5, 0, 1, 5, None])
    table = pd.DataFrame(list(cells), columns=["a", "b"])
    budget = GroupPrivacy(1.0, alpha=2.0 if noise == "gaussian" else math.inf)
    model = PrivateCovariance(
        RecordScenario(relation=relation), budget.set_params(noise=noise), schema=book
    )
    release, X = told(model, table)
    rows = release.contribution(X)
    np.testing.assert_allclose(release.contribution.total(X), rows.sum(axis=0))
    pairs = rows
    if relation == "replace":
        pairs = np.concatenate([rows - row for row in rows])
    order = 2.0 if noise == "gaussian" else 1.0
    worst = np.linalg.norm(pairs, order, axis=1).max()
    scale = model.fit(table).noise_.std(release.dim)
    assert np.ptp(scale) <= 1e-9 * scale[0]

    def cost(part):
        moved = worst / (part * scale[0])
        return moved**2 if order == 2 else moved * math.sqrt(2)

    assert cost(1.0) <= 1.001
    # the corners are the worst of all but for two rows at an angle of their own
    if noise == "gaussian" and relation == "add_remove":
        assert cost(0.7) > 1.1


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("least", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("extra", [{}, {"marks": (2,)}, {"counts_present": True}])
def test_no_weight_moves_a_sum_further(extra, least, relation):
    bounds, weighting = Bounds((0.0, -5.0), (10.0, 5.0)), Weighting(least, 3.0)
    held = CrossMoments((0, 1), bounds, weight=0.9, weighting=weighting, **extra)
    gaps = [0, 1] if held.marks else [0]
    shares = [least, (1 + least) / 2, 1.0]
    cells = itertools.product([0, 2, 5, 10], [-5, 0, 1, 5], gaps, shares)
    X = np.array([[*row, 1 - row[-1]] for row in cells], dtype=float)
    added = held(X)
    np.testing.assert_allclose(held.total(X), added.sum(axis=0), atol=1e-9)
    for norm in (1.0, 2.0):
        pairs = added
        if relation == "replace":
            pairs = np.concatenate([added - row for row in added])
        most = held.sensitivity.value(relation, norm, held.dim)
        assert np.linalg.norm(pairs, norm, axis=1).max() <= most + 1e-12


def test_parts_make_up_the_contributions():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 11, (50, 3)), rng.random((50, 2)) < 0.3])
    bounds = Bounds((0.0, -5.0, 2.0), (10.0, 5.0, 3.0))
    for block in (
        CrossMoments((0, 1, 2), bounds),
        CrossMoments((0, 1, 2), bounds, (3, 4), 0.9),
    ):
        np.testing.assert_allclose(of_each_record(block, X), block(X), atol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_moves_of_features_are_covered(norm):
    rng = np.random.default_rng(0)
    block = CrossMoments((0, 1), Bounds((0.0, -5.0), (10.0, 5.0)), (2,), 0.9)
    first = np.column_stack([rng.uniform(-1, 11, (4000, 2)), rng.random(4000) < 0.3])
    other = first + rng.normal(0, 1, first.shape) * rng.choice([0, 0.2, 5], (4000, 1))
    other[:, 2] = np.where(rng.random(4000) < 0.8, first[:, 2], 1 - first[:, 2])
    moved = np.linalg.norm(block(first) - block(other), norm, axis=1)
    said = block.move(np.abs(first - other), norm)
    assert np.all(moved <= said + 1e-12)
    assert np.all(said <= block.sensitivity.value("replace", norm, block.dim) + 1e-12)


def test_deviations_are_those_of_many_draws():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=["a", "b"])
    X.iloc[::4, 0] = np.nan
    model = PrivateCovariance(
        accountant=PrivacyLoss(20.0, 1e-5, noise="gaussian"),
        schema=Schema({"a": Number(-1, 2), "b": Number(-2, 1)}),
    )
    drawn = np.array([model.fit(X).covariance_ for _ in range(200)])
    np.testing.assert_allclose(drawn.std(axis=0), model.covariance_std_, rtol=0.2)


def test_beliefs_set_less_noise():
    table = made_table(2, 0.0, n=400)[["x", "y", "g"]]
    scenario = AttributeScenario(
        "g", level="record", prior_as="law", prior=ReferenceTable(table)
    )
    model = PrivateCovariance(
        scenario, Best(epsilon=1.0, delta=1e-5), schema=BOOK.select(["x", "y"])
    ).fit(table)
    assert np.isfinite(model.covariance_).all()


@pytest.mark.parametrize("counted", [False, True])
def test_noise_leaves_no_bias(counted):
    """A noisy mean times itself is too large, by what is taken off again."""
    rng, deviation = np.random.default_rng(1), 6.0
    bounds = Bounds((0.0, 0.0), (1.0, 1.0))
    held = CrossMoments((0, 1), bounds, counts_present=counted)
    exact = held.total(rng.uniform(size=(100, 2)))
    noise = rng.normal(0, deviation, size=(2000, held.dim))
    if counted:
        noise[:, -1] = 0.0  # of a ratio the bias is one of the second order
    drawn = [held.read(exact + one, deviation, 100.0).covariance for one in noise]
    off = np.mean(drawn, axis=0) - held.read(exact, 1e-9, 100.0).covariance
    unsure = np.std(drawn, axis=0) / math.sqrt(len(drawn))
    assert np.all(np.abs(off) <= 5 * unsure)
    # and that would show
    assert (deviation / (0.5 * 100)) ** 2 * 2 > 8 * unsure[0, 0]


@pytest.mark.parametrize("size", ["public", "private"])
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_intervals_cover_what_they_are_for(epsilon, size):
    mixed = np.array([[1, 0, 0], [0.8, 0.6, 0], [-0.3, 0.2, 0.9]])

    def drawn(n, rng):
        x = pd.DataFrame(np.clip(rng.exponential(size=(n, 3)) @ mixed.T, -4, 8))
        return x.set_axis([*"abc"], axis=1)

    def truth(x):
        return {"mean": x.mean(), "covariance": x.cov(), "correlation": x.corr()}

    right = truth(drawn(1_000_000, np.random.default_rng(1)))
    model = PrivateCovariance(
        RecordScenario(size=size), PrivacyLoss(epsilon), bounds=(-4, 8)
    )
    rng, held, rows = np.random.default_rng(0), {}, 5000
    for _ in range(25):
        x = drawn(rows, rng)
        model.fit(x)
        for of, true in (("table", truth(x)), ("population", right)):
            frame = model.to_frame(of=of)
            for row in frame.itertuples():
                value = true[row.statistic][row.column]
                value = value if row.statistic == "mean" else value[row.other]
                inside = row.low <= value <= row.high
                held.setdefault((of, row.statistic), []).append(inside)
                held.setdefault((of, row.statistic, row.column, row.other), []).append(
                    inside
                )
    # beyond what chance does in a run of many
    assert min(map(np.mean, held.values())) >= 0.6
    assert min(np.mean(held[key]) for key in held if len(key) == 2) >= 0.75
    # as long as the noise makes them
    known = model.to_frame(of="table")
    known = known[known.statistic == "correlation"]
    assert (known.high - known.low).max() < (0.2 if epsilon == 10 else 1.0)
    ends = model.confidence_interval(of="table")["covariance_"]
    width = (ends[1] - ends[0]) / 2 / model.covariance_std_
    np.testing.assert_allclose(width, interval_width(model.noise_, 0.95))
    assert frame.wide.eq(frame.statistic != "mean").all()


def test_of_a_column_that_is_noise_alone_no_correlation_is_told():
    x = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1e-3]
    frame = PrivateCovariance(bounds=(-5, 5)).fit(x).to_frame(of="table")
    (row,) = frame[frame.statistic == "correlation"].itertuples()
    assert (row.low, row.high) == (-1, 1)


def test_records_that_depend_on_each_other_have_intervals_of_the_table_alone():
    x = pd.DataFrame({"id": np.repeat(np.arange(200), 2), "x": np.arange(400) / 40})
    scenario = RecordScenario(unit="id", max_rows=2)
    model = PrivateCovariance(scenario, bounds=(0, 10)).fit(x)
    assert len(model.to_frame(of="table")) == 2
    with refused(UnsupportedError, "summary.no_population_of_such_records"):
        model.confidence_interval()


def test_errors_of_the_table_are_the_spread_of_many_draws():
    table = made_table(3, 0.1)[["x", "y"]] + [5, 0]
    book = Schema({"x": Number(0, 16), "y": Number(0, 100)})
    model = PrivateCovariance(accountant=PrivacyLoss(3.0, 1e-6), schema=book)
    drawn, stated = [], []
    for _ in range(300):
        found = model.fit(table).to_frame(of="table")
        drawn.append(found["estimate"])
        stated.append(found["std_error"])
    spread = np.std(drawn, axis=0)
    ratios = (np.mean(stated, axis=0) / spread)[spread > 0]
    np.testing.assert_allclose(ratios, 1, atol=0.3)
