"""Bounds found privately, and what is computed within them."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.compose import PrivatePipeline
from skpuffer.exceptions import ScenarioError
from skpuffer.ledger import PrivacyLedger
from skpuffer.noise import DiscreteLaplaceNoise, GaussianNoise
from skpuffer.privacy import compose
from skpuffer.scenarios import LawsScenario, RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.summary import PrivateBounds, PrivateMean
from skpuffer.summary._private_bounds import occupied, upper_quantile
from tests.refused import refused, says
from tests.summary.releases import release_of

RNG = np.random.default_rng(0)
EXACT = PrivacyLoss(1e6, 1e-9)
N = 3000


@pytest.mark.parametrize(
    "column",
    [
        RNG.normal(size=N),
        RNG.lognormal(3, 2, N),
        -RNG.exponential(1e-3, N),
        RNG.integers(-7, 90, N).astype(float),
        np.full(N, 5.0),
        np.full(N, -5e11),
        np.zeros(N),
    ],
)
def test_bounds_hold_all_records_and_are_hardly_wider(column):
    model = PrivateBounds(accountant=EXACT).fit(column[:, None])
    (low,), (high,) = model.bounds_
    assert low <= column.min() <= column.max() <= high
    # powers of two, or zero, or the resolution next to it
    assert high <= max(2 * column.max(), 0) + 2.0**-20 or column.max() < 0
    assert low >= min(2 * column.min(), 0) - 2.0**-20 or column.min() > 0
    assert np.all(np.abs(model.transform(column[:, None])) <= 1)
    back = model.inverse_transform(model.transform(column[:, None]))
    np.testing.assert_allclose(back[:, 0], column, rtol=1e-9, atol=1e-9 * high)


def test_columns_have_bounds_of_their_own_and_one_certificate():
    X = np.column_stack([RNG.normal(0, 1, N), RNG.uniform(900, 1000, N)])
    model = PrivateBounds(accountant=EXACT).fit(X)
    low, high = model.bounds_
    assert -8 <= low[0] < -1 < 1 < high[0] <= 8
    assert (low[1], high[1]) == (512, 1024)
    assert PrivateBounds().fit(X).certificate_.epsilon == 1
    # as `bounds` of what comes later
    assert PrivateMean(bounds=model.bounds_).fit(X).mean_.shape == (2,)
    clipped = PrivateBounds(accountant=EXACT, bounds=(-1, 500), scale=False).fit(X)
    np.testing.assert_array_equal(clipped.transform(X), np.clip(X, -1, 500))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_of_few_records_the_whole_range_is_left(n):
    for _ in range(9):
        model = PrivateBounds(bounds=(-100, 900), false_positive=1e-9)
        model.fit(np.full((n, 1), 7.0))
        assert [side.tolist() for side in model.bounds_] == [[-100], [900]]


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_neighbour_moves_the_counts_further_than_stated(relation):
    """Of all tables of up to three records of a few values, near edges and beyond."""
    values = [-1e300, -4.0, -0.0, 5e-324, 0.5, 4.0, 1e300]
    records = list(itertools.product(values[::2], values[1::2]))
    model = PrivateBounds(bounds=(-8, 8), resolution=0.5)
    release, read = release_of(model, np.array(records))
    sums = {
        pair: release.contribution(read(np.array(pair))).sum(axis=0)
        for n in (1, 2)
        for pair in itertools.combinations_with_replacement(records, n)
    }
    moved = []
    for pair, of_pair in sums.items():
        if relation == "add_remove" and len(pair) == 2:
            moved += [of_pair - sums[(one,)] for one in pair]
        if relation == "replace":
            rest = pair[1:]
            moved += [
                of_pair - sums[tuple(sorted((other, *rest), key=records.index))]
                for other in records
            ]
    for norm in (1, 2, math.inf):
        stated = release.sensitivity.value(relation, norm, release.dim)
        most = max(np.linalg.norm(move, norm) for move in moved)
        assert most == pytest.approx(stated)


@pytest.mark.parametrize(
    "noise", [GaussianNoise(3.0), DiscreteLaplaceNoise(3.0)], ids=lambda n: n.family
)
def test_noise_alone_sets_a_bound_as_rarely_as_asked(noise):
    rng = np.random.default_rng(1)
    cells, asked = 60, 0.05
    core = upper_quantile(noise, asked / cells) * float(noise.std())
    runs = noise.sample((4000, cells), rng)

    def found(share):
        thresholds = np.full(cells, share * core)
        return np.mean(
            [occupied(run, thresholds, thresholds, 1.0) is not None for run in runs]
        )

    # four deviations of a share of 4000 runs
    assert found(1.0) <= asked + 4 * math.sqrt(asked / 4000)
    assert found(0.7) > 2 * asked


def test_bounds_are_read_off_counts_alone():
    rng = np.random.default_rng(2)
    for _ in range(200):
        counts = rng.normal(0, 3, 12) + np.where(rng.random(12) < 0.3, 30, 0)
        core, beside = np.full(12, 20.0), np.full(12, 4.0)
        found = occupied(counts, core, beside, 1.0)
        above = np.flatnonzero(counts > core)
        if not len(above):
            assert found is None
            continue
        first, last = found
        assert first <= above[0] and last >= above[-1]
        assert np.all(counts[first : above[0]] > 4) and np.all(
            counts[above[-1] : last + 1] > 4
        )
        assert first == 0 or counts[first - 1] <= 4
        assert last == 11 or counts[last + 1] <= 4
    tail = np.array([1.0, 10.0, 978.0, 10.0, 1.0])
    none = np.zeros(5)
    # half of the rest beyond either bound
    kept = {c: occupied(tail, none, none, c) for c in (1.0, 0.99, 0.9)}
    assert kept == {1.0: (0, 4), 0.99: (1, 3), 0.9: (2, 2)}


@pytest.mark.parametrize("target", [None, "y"])
def test_a_narrowed_code_book_is_the_same_but_for_bounds(target):
    columns = {"x": Number(0, 1e9), "k": Category(["a", "b"]), "y": Number(0, 7)}
    book = Schema(columns, target=target, size="public")
    table = pd.DataFrame({"x": RNG.uniform(20, 30, 400), "k": "a", "y": 7.0})
    found = PrivateBounds(accountant=EXACT, schema=book).fit(table).to_schema()
    columns["x"] = Number(16, 32)
    if target is None:
        columns["y"] = Number(4, 7)
    assert found == Schema(columns, target=target, size="public")


@pytest.mark.parametrize("coverage", [1.0, 0.95, 0.7, 0.3])
def test_half_of_the_rest_may_lie_beyond_either_bound(coverage):
    rng, none = np.random.default_rng(6), np.zeros(12)
    for _ in range(50):
        counts = rng.integers(1, 50, 12).astype(float)
        first, last = occupied(counts, none, none, coverage)
        beyond = (1 - coverage) / 2 * counts.sum()
        for ends, at in ((counts, first), (counts[::-1], 11 - last)):
            # the cell at the bound is the first of which some must be kept
            assert ends[:at].sum() <= beyond * (1 + 1e-9)
            assert ends[: at + 1].sum() > beyond * (1 - 1e-9)


def test_noise_sets_a_bound_of_any_feature_as_rarely_as_asked(monkeypatch):
    """Of a table without a count above noise, read as often as noise is drawn."""
    asked, held = 0.1, []
    monkeypatch.setattr(PrivateBounds, "_publish", lambda self, *a: held.append(a))
    model = PrivateBounds(bounds=(-100, 100), resolution=0.5, false_positive=asked)
    model.fit(np.zeros((1, 3)))
    monkeypatch.undo()
    (value, release), n_runs = *held, 2000
    rng, set_by_noise = np.random.default_rng(7), 0
    for drawn in model.noise_.sample((n_runs, value.size), rng):
        model._publish(drawn, release)
        low, high = model.bounds_
        set_by_noise += np.any(low > -100) or np.any(high < 100)
    assert 0.3 * asked < set_by_noise / n_runs < asked + 4 * math.sqrt(asked / n_runs)


@pytest.mark.parametrize("resolution", [0.01, 0.5, 3.0])
def test_no_edge_but_zero_is_nearer_to_it_than_asked(resolution):
    model = PrivateBounds(bounds=(-100, 60), resolution=resolution)
    release, _ = release_of(model, np.zeros((5, 1)))
    edges = np.array(release.contribution.blocks[0].edges)
    inner = np.abs(edges[edges != 0])
    assert resolution <= inner.min() < 2 * resolution
    assert edges[0] == -100 and edges[-1] == 60 and np.all(np.diff(edges) > 0)


def test_gaps_are_in_no_cell_and_code_books_are_narrowed():
    table = pd.DataFrame(
        {
            "income": np.where(np.arange(N) % 3, RNG.uniform(1000, 4000, N), np.nan),
            "sex": RNG.choice(["f", "m"], N),
            "age": RNG.integers(18, 90, N),
        }
    )
    wide = Schema(
        {
            "income": Number(0, 1e9, unit="EUR"),
            "sex": Category(["f", "m"]),
            "age": Number(0, 10_000, integer=True, missing=False),
        }
    )
    model = PrivateBounds(accountant=EXACT, schema=wide).fit(table)
    low, high = model.bounds_
    # of marks of missing numbers there are none
    names = model.get_feature_names_out().tolist()
    assert model.transform(table).shape == (len(table), len(names))
    names.remove("income_missing")
    found = dict(zip(names, zip(low, high, strict=True), strict=True))
    assert found["income"] == (512, 4096) and found["age"] == (16, 128)
    assert {found[name] for name in ("sex_f", "sex_m")} == {(0, 1)}
    narrow = model.to_schema()
    assert narrow["income"] == Number(512, 4096, unit="EUR")
    assert narrow["age"] == Number(16, 128, integer=True, missing=False)
    mean = PrivateMean(accountant=EXACT, schema=narrow).fit(table)
    np.testing.assert_allclose(mean.mean_[0], table.income.mean(), rtol=1e-3)
    plain = PrivateBounds(accountant=EXACT).fit(table[["age"]]).to_schema()
    assert plain == Schema({"age": Number(16, 128, missing=False)})


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("law", ["normal", "lognormal", "exponential"])
def test_a_mean_errs_little_more_than_with_the_right_bounds(law):
    """At one budget, from a range 1,000 times as wide as that of the records."""
    n, draws = 10_000, 50
    X = getattr(np.random.default_rng(3), law)(size=(n, 1))
    low, high = X.min(), X.max()
    wide = (-500 * (high - low), 500 * (high - low))

    def error(bounds, epsilon, seed):
        accountant = PrivacyLoss(epsilon, 1e-5)
        found = PrivateMean(None, accountant, bounds=bounds, random_state=seed)
        return found.fit(X).mean_[0] - X.mean()

    right = [error((low, high), 1.0, k) for k in range(draws)]
    half, found = PrivacyLoss(0.5, 0.5e-5), []
    for k in range(draws):
        model = PrivateBounds(None, half, bounds=wide, random_state=k).fit(X)
        found.append(error(model.bounds_, 0.5, draws + k))
    ratio = np.linalg.norm(found) / np.linalg.norm(right)
    # of 200 draws it is 2.4 at most
    assert ratio < 3
    # what no bounds would cost
    assert np.linalg.norm(
        [error(wide, 1.0, k) for k in range(9)]
    ) > 30 * np.linalg.norm(right[:9])


def test_one_pipeline_finds_bounds_and_uses_them_under_one_certificate():
    X = RNG.exponential(1000, (N, 1))
    model = PrivatePipeline(
        [("bounds", PrivateBounds()), ("mean", PrivateMean(bounds=(-1, 1)))],
        accountant=PrivacyLoss(4.0, 1e-5),
    ).fit(X)
    assert model.certificate_.n_releases == 2
    assert model.certificate_.epsilon <= 4.0 * (1 + 1e-6)
    # neither is starved of its share, whatever the number of cells
    assert min(model.epsilons_.values()) > 1.5
    ((mean,),) = model["bounds"].inverse_transform([model["mean"].mean_])
    assert abs(mean - X.mean()) < 60
    assert (
        pickle.loads(pickle.dumps(model["bounds"])).bounds_ == model["bounds"].bounds_
    )


def test_units_and_ledgers_count_bounds_as_any_release(tmp_path):
    ids = np.repeat(np.arange(N // 3), 3)
    table = pd.DataFrame({"id": ids, "x": RNG.uniform(0, 100, N)})
    people = RecordScenario(unit="id", max_rows=2)
    ledger = PrivacyLedger(tmp_path / "ledger", {"approximate_dp": (9.0, 1e-5)})
    bounds = PrivateBounds(people).set_callbacks(ledger).fit(table)
    mean = PrivateMean(people, bounds=bounds.bounds_).set_callbacks(ledger).fit(table)
    stated = {"k": 1, "unit": "id", "max_rows": 2}
    assert says(bounds.certificate_.assumptions, "assume.record_of_units", **stated)
    assert bounds.certificate_.sensitivity >= 2
    both = compose([bounds.certificate_, mean.certificate_])
    assert both.epsilon > 1
    assert ledger.total().epsilon == pytest.approx(both.epsilon)


@pytest.mark.parametrize("accountant", [None, GroupPrivacy(1.0, alpha=2.0)])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_other_accountants_and_relations_do_as_for_counts(accountant, relation):
    X = RNG.uniform(50, 60, (N, 1))
    model = PrivateBounds(RecordScenario(relation=relation), accountant).fit(X)
    # or a few cells wider, by noise
    (low,), (high,) = model.bounds_
    assert -64 <= low <= 32 and 64 <= high <= 2**12


@pytest.mark.parametrize(
    "parameters, code",
    [
        ({"grid": [0.0, 2.0, 1.0]}, "summary.bounds_grid_invalid"),
        (
            {"schema": Schema({"x": Category(["1", "2"])})},
            "summary.bounds_of_no_number",
        ),
    ],
)
def test_parameters_are_refused(parameters, code):
    with refused(ValueError, code):
        PrivateBounds(**parameters).fit(pd.DataFrame({"x": [1.0, 2.0]}))


def test_laws_of_one_output_are_refused():
    from skpuffer.distributions import PointMass

    scenario = LawsScenario([(PointMass([0.0]), PointMass([1.0]))])
    with refused(ScenarioError, "summary.laws_for_grid_counts"):
        PrivateBounds(scenario).fit([[1.0]])


def test_a_grid_of_ones_own():
    X = RNG.uniform(0, 100, (N, 1))
    model = PrivateBounds(accountant=EXACT, grid=[-50, 0, 30, 105, 200]).fit(X)
    assert [side.tolist() for side in model.bounds_] == [[0], [105]]
