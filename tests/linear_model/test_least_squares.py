"""Least squares with standard errors: against those without noise, and coverage."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from skpuffer._template._weights import Weighting
from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.linear_model import PrivateLinearRegression
from skpuffer.linear_model._base_linear import TargetScale
from skpuffer.linear_model._least_squares import CrossProducts, solve
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.utils._bounds import Bounds
from tests.engines import lazy_frame
from tests.refused import refused, says

#: Hardly any noise.
LARGE = PrivacyLoss(1e6, 1e-5)
BOOK = Schema(
    {
        "age": Number(18, 80),
        "sex": Category(["F", "M"], missing_level=False, fill="F"),
        "town": ["Bonn", "Köln", "Ulm"],
        "pay": Number(-20, 60),
    },
    target="pay",
)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 80, n)
    age[rng.random(n) < 0.1] = np.nan
    table = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], n),
            "town": rng.choice(
                ["Bonn", "Köln", "Ulm", None], n, p=[0.5, 0.3, 0.1, 0.1]
            ),
        }
    )
    town = table.town.map({"Bonn": 0, "Köln": 1, "Ulm": -2}).fillna(3)
    pay = 2 + 0.3 * np.nan_to_num(age) + 4 * (table.sex == "M") + town
    table["pay"] = pay + rng.normal(0, 4, n)
    table.loc[rng.random(n) < 0.05, "pay"] = np.nan
    return table


def ordinary(X, y):
    """Least squares and standard errors, by the textbook."""
    slopes, (left,), *_ = np.linalg.lstsq(X, y, rcond=None)
    variance = left / (len(X) - X.shape[1])
    return slopes, np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X))), variance**0.5


def test_without_noise_it_is_ordinary_least_squares_of_complete_records():
    table = people(4000)
    model = PrivateLinearRegression(accountant=LARGE, schema=BOOK).fit(
        table.drop(columns="pay"), table.pay
    )
    known = table.dropna(subset=["age", "pay"])
    town = known.town.fillna("missing")
    design = np.column_stack(
        [
            np.ones(len(known)),
            known.age,
            known.sex == "M",
            *(town == level for level in ("Köln", "Ulm", "missing")),
        ]
    ).astype(float)
    slopes, errors, residual = ordinary(design, known.pay)
    found = model.to_frame()
    assert found.column.tolist() == [
        "intercept",
        *("age", "sex_M", "town_Köln", "town_Ulm", "town_missing"),
    ]
    np.testing.assert_allclose(found.estimate, slopes, rtol=1e-4)
    np.testing.assert_allclose(found.std_error, errors, rtol=1e-4)
    np.testing.assert_allclose(found.n, len(known), rtol=1e-6)
    np.testing.assert_allclose(model.residual_std_, residual, rtol=1e-4)
    tested = 2 * stats.norm.sf(np.abs(slopes / errors))
    np.testing.assert_allclose(found.p_value, tested, atol=1e-4)
    assert (model.to_frame(of="table").std_error < 1e-3 * errors).all()
    low, high = model.confidence_interval(0.9)["coef_"]
    # the first levels have no errors, for they are zero by definition
    assert np.all((high == low) == (model.coef_ == 0))
    text = model.summary()
    assert all(name in text for name in found.column)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_scikit_learns(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.uniform([0, -5, 100], [3, 7, 900], (500, 3))
    y = X @ [2.0, -1.0, 0.01] + 4 + rng.normal(0, 1, 500)
    model = PrivateLinearRegression(
        accountant=LARGE,
        bounds=([0, -5, 100], [3, 7, 900]),
        target_bounds=(-20, 40),
        fit_intercept=fit_intercept,
    ).fit(X, y)
    other = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-3)
    design = np.column_stack([np.ones(500), X]) if fit_intercept else X
    np.testing.assert_allclose(
        model.to_frame().std_error, ordinary(design, y)[1], rtol=1e-3
    )
    if fit_intercept:
        np.testing.assert_allclose(model.r_squared_, other.score(X, y), atol=1e-4)


@pytest.mark.parametrize("size", ["public", "private"])
def test_records_without_a_target_are_not_counted_where_no_number_is_missing(size):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(-1, 1, 500)})
    y = pd.Series(1 + X.x + rng.normal(0, 0.1, 500), name="y")
    y[::3] = np.nan
    book = Schema({"x": Number(-1, 1, missing=False), "y": (-4, 4)}, target="y")
    found = PrivateLinearRegression(RecordScenario(size=size), LARGE, schema=book)
    found.fit(X, y)
    known = y.notna()
    twin = LinearRegression().fit(X[known], y[known])
    assert found.n_complete_ == pytest.approx(known.sum(), abs=0.5)
    np.testing.assert_allclose(found.coef_, twin.coef_, atol=1e-2)
    assert found.intercept_ == pytest.approx(twin.intercept_, abs=1e-2)


def test_a_missing_number_is_predicted_from_the_mean():
    table = people(4000)
    X = table.drop(columns="pay")
    model = PrivateLinearRegression(accountant=LARGE, schema=BOOK).fit(X, table.pay)
    known = table.dropna(subset=["age", "pay"])
    rows = X.head(2).assign(age=[np.nan, known.age.mean()], sex="F", town="Bonn")
    np.testing.assert_allclose(*np.split(model.predict(rows), 2), rtol=1e-4)


# -- what a record adds ----------------------------------------------------------------


#: Ways in which a contribution counts records.
COUNTS = {
    "all": {"lacks": False},
    "gaps": {},
    "present": {"lacks": False, "counts_present": True},
    "present, with gaps": {"counts_present": True},
    "weights": {"lacks": False, "weighting": Weighting(0.3, 2.0)},
    "weights, with gaps": {"weighting": Weighting(0.3, 2.0)},
    "weights of one size": {"lacks": False, "weighting": Weighting(1.0, 2.0)},
    "weights, present": {
        "lacks": False,
        "counts_present": True,
        "weighting": Weighting(0.0, 2.0),
    },
}


def contribution(lacks=True, counts_present=False, weighting=None):
    return CrossProducts(
        numbers=(0, 1),
        bounds=Bounds((-1.0, 0.0), (1.0, 4.0)),
        levels=((2, 3), (4,)),
        target=TargetScale(1.0, 2.0),
        marks=(5,) if lacks else (),
        lacks=lacks,
        counts_present=counts_present,
        weight=1.7,
        weighting=weighting,
    )


def records_of(held):
    X, y = records()
    if not held.lacks:
        X, y = X[~np.isnan(y)], y[~np.isnan(y)]
    if held.weighting is None:
        return X, y
    least = held.weighting.least
    shares = np.resize([1.0, least, (1 + least) / 2], len(X) * 3)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    return np.column_stack([X, shares, 1 - shares]), y


def records():
    """Rows at the ends of what they can be, and some within, with targets."""
    ends = itertools.product(
        *[(-9, -1, 0, 0.4, 1, 9), (0, 2, 4)], [(0, 0), (1, 0), (0, 1)], (0, 1), (0, 1)
    )
    rows = [[a, b, *c, d, e] for a, b, c, d, e in ends]
    X = np.repeat(np.array(rows, dtype=float), 4, axis=0)
    return X, np.tile([-1.0, 0.9, 3.0, np.nan], len(rows))


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("counts", COUNTS)
def test_no_record_adds_or_moves_more_than_stated(counts, norm):
    held = contribution(**COUNTS[counts])
    X, y = records_of(held)
    added = held(X, y)
    most = held.sensitivity.value("add_remove", norm, held.dim)
    lengths = np.linalg.norm(added, norm, axis=1)
    assert lengths.max() <= most + 1e-12
    if norm != np.inf:  # attained, in the norms that are held
        assert lengths.max() >= 0.99 * most
    rng = np.random.default_rng(0)
    one, other = rng.integers(len(X), size=(2, 4000))
    apart = np.linalg.norm(added[one] - added[other], norm, axis=1)
    assert apart.max() <= held.sensitivity.value("replace", norm, held.dim) + 1e-12
    if held.weighting is not None:
        return  # under whose scenarios no record moves
    # of records whose targets stay, by how far each column moves
    gaps = np.abs(X[one] - X[other])
    still = np.array(held(X[other], y[one]))
    moves = np.linalg.norm(added[one] - still, norm, axis=1)
    assert np.all(moves <= held.move(gaps, norm) + 1e-9)


@pytest.mark.parametrize("shift", [0.01, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n_numbers", [1, 3])
def test_how_far_numbers_move_a_record_is_attained_at_their_bounds(shift, n_numbers):
    """From a corner of what a record can be, of a target at its own bound."""
    held = CrossProducts(
        numbers=tuple(range(n_numbers)),
        bounds=Bounds((-1.0,) * n_numbers, (1.0,) * n_numbers),
        levels=(),
        target=TargetScale(1.0, 2.0),
    )
    corner, gaps = np.ones((1, n_numbers)), np.zeros((1, n_numbers))
    gaps[0, 0] = shift
    moved = (held(corner, [3.0]) - held(corner - gaps, [3.0]))[0]
    stated = held.move(gaps, 2.0)[0]
    assert np.linalg.norm(moved) == pytest.approx(stated, rel=1e-12)


def test_the_total_is_that_of_all_records():
    for counts in COUNTS.values():
        held = contribution(**counts)
        X, y = records_of(held)
        np.testing.assert_allclose(held.total(X, y), held(X, y).sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("counts", COUNTS)
def test_noise_enters_the_moments_as_it_is_said_to(counts):
    """Moments of noisy sums are those of the sums and each noise in its places."""
    held = contribution(**COUNTS[counts])
    X, y = records_of(held)
    total, rng = held.total(X, y), np.random.default_rng(0)
    vector = rng.normal(size=held.width)
    noise = rng.normal(size=held.dim)
    ones = np.ones(held.dim)
    exact = held.read(total, ones, len(X))
    noisy = held.read(total + noise, ones, len(X))
    moved = (noisy.products - exact.products) @ vector
    np.testing.assert_allclose(exact.times(vector).T @ noise, moved, atol=1e-9)


# -- records with weights --------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weighted_coefficients_are_those_of_repeated_records(fit_intercept):
    table, rng = people(800), np.random.default_rng(0)
    w = rng.choice([0, 1, 2], len(table))
    common = {"accountant": LARGE, "schema": BOOK, "fit_intercept": fit_intercept}
    model = PrivateLinearRegression(weight_bounds=(0, 2), **common)
    model.fit(table.drop(columns="pay"), table.pay, sample_weight=w)
    again = table.loc[np.repeat(table.index, w)]
    other = PrivateLinearRegression(**common).fit(again.drop(columns="pay"), again.pay)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-2)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-2)
    assert model.n_complete_ == pytest.approx(other.n_complete_, rel=1e-4)
    assert says(model.certificate_.assumptions, "assume.weights_clipped", high=2.0)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_noise_of_weighted_moments_is_that_of_records_of_the_largest(relation):
    X, y = np.zeros((50, 2)), np.zeros(50)
    common = {"bounds": (-1, 1), "target_bounds": (-1, 1)}
    scenario = RecordScenario(relation=relation)
    plain = PrivateLinearRegression(scenario, **common).fit(X, y)
    for bounds in ((0, 5), (2, 5), (5, 5)):
        model = PrivateLinearRegression(scenario, weight_bounds=bounds, **common)
        model.fit(X, y, sample_weight=np.full(50, 3.0))
        assert model.noise_.scale == pytest.approx(plain.noise_.scale, rel=1e-3)
        planned = model.preview(50, n_features=2)
        assert planned.certificate.sensitivity == model.certificate_.sensitivity


@pytest.mark.parametrize("of", ["population", "table"])
@pytest.mark.parametrize("kind", ["apart", "by_column", "by_residual", "all_small"])
def test_weighted_intervals_cover_what_they_say(kind, of):
    """Of 200 draws of three coefficients each, residuals with and without weight."""
    n, scale, rng = 800, 2.0, np.random.default_rng(7)
    held = CrossProducts(
        numbers=(0, 1),
        bounds=Bounds((-1.0,) * 2, (1.0,) * 2),
        levels=(),
        target=TargetScale(),
        weight=2.0,
        weighting=Weighting(0.1, 1.0),
    )
    truth, held_in = np.array([0.05, 0.3, -0.2]), []
    for _ in range(200):
        X, left = rng.uniform(-1, 1, (n, 2)), 0.2 * rng.normal(size=n)
        share = {
            "apart": rng.choice([0.1, 0.4, 1.0], n),
            "by_column": np.where(X[:, 0] > 0, 1.0, 0.2),
            "by_residual": np.where(np.abs(left) > 0.2, 1.0, 0.1),
            "all_small": np.full(n, 0.3),
        }[kind]
        rows = np.column_stack([X, share, 1 - share])
        total = held.total(rows, truth[0] + X @ truth[1:] + left)
        noise = rng.normal(0, scale, held.dim)
        found = solve(
            held.read(total + noise, np.full(held.dim, scale), n), np.eye(3), 0.0
        )
        errors = found.of_noise + (found.of_sample if of == "population" else 0)
        target = truth
        if of == "table":
            clean = held.read(total, np.zeros(held.dim), n)
            target = solve(clean, np.eye(3), 0.0).slopes
        held_in.append(np.abs(found.slopes - target) <= 1.96 * np.sqrt(np.diag(errors)))
    # of 600, which are 0.009 of chance
    assert np.mean(held_in) > 0.91


# -- intervals -------------------------------------------------------------------------


def covered(n, deviations, draws, of="population", level=0.95, seed=0):
    """Share of intervals that hold the truth, for each coefficient, and the resolution.

    Noise is that of so many `deviations` of the contribution's sensitivity; one column
    in three is skewed, one holds two values, and so does a category.
    """
    rng = np.random.default_rng(seed)
    held = CrossProducts(
        numbers=(0, 1),
        bounds=Bounds((-1.0,) * 2, (1.0,) * 2),
        levels=((2, 3),),
        target=TargetScale(),
        lacks=True,
        weight=2.0,
    )
    scale = deviations * held.sensitivity.value("add_remove", 2, held.dim)
    truth = np.array([0.05, 0.3, -0.2, 0.1, 0.25])
    z = stats.norm.ppf((1 + level) / 2)
    held_in, resolution = [], []
    for _ in range(draws):
        code = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        X = np.column_stack(
            [rng.beta(2, 5, n) * 2 - 1, rng.choice([-1, 1], n), np.eye(3)[code][:, 1:]]
        )
        y = truth[0] + X @ truth[1:] + 0.15 * rng.standard_t(8, n)
        y[rng.random(n) < 0.1] = np.nan
        noise = rng.normal(0, scale, held.dim)
        moments = held.read(held.total(X, y) + noise, np.full(held.dim, scale), n)
        found = solve(moments, np.eye(5), 0.0)
        errors = found.of_noise + (found.of_sample if of == "population" else 0)
        target = truth
        if of == "table":
            clean = held.read(held.total(X, y), np.zeros(held.dim), n)
            target = solve(clean, np.eye(5), 0.0).slopes
        half = np.where(found.is_lost, np.inf, z * np.sqrt(np.diag(errors)))
        held_in.append(np.abs(found.slopes - target) <= half)
        resolution.append(found.resolution)
    return np.mean(held_in, axis=0), np.median(resolution)


def test_errors_of_the_population_hold_those_of_the_noise():
    """Also of residuals that are zero, whose noisy square is often below it."""
    rng, drowned = np.random.default_rng(4), 0
    X = rng.uniform(-1, 1, size=(3000, 2))
    for seed in range(12):
        model = PrivateLinearRegression(
            bounds=(-1, 1), target_bounds=(-2, 2), random_state=seed
        ).fit(X, X @ [0.5, -1.0])
        whole, noise = (
            model.to_frame(of=of).std_error for of in ("population", "table")
        )
        assert np.all(whole > noise) and not np.isnan(whole).any()
        drowned += np.isnan(model.residual_std_)
    assert 0 < drowned < 12


@pytest.mark.parametrize("of", ["population", "table"])
@pytest.mark.parametrize("n, deviations", [(1000, 0.6), (3000, 4.2), (8000, 12.0)])
def test_intervals_cover_what_they_say(n, deviations, of):
    """Of 300 draws of five coefficients each."""
    share, _ = covered(n, deviations, 300, of)
    assert 0.93 <= share.mean() <= 0.98 and share.min() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("deviations", [0.6, 4.2, 34.0])
def test_intervals_cover_at_every_size(n, deviations, level):
    """As far as 2,000 draws tell, and the noise leaves the moments to be inverted."""
    share, resolution = covered(n, deviations, 2000, level=level, seed=1)
    error = np.sqrt(level * (1 - level) / 2000)
    assert share.min() >= max(level - 4.5 * error, level - 0.025)
    if resolution >= 12:
        assert share.max() <= level + 0.025


def test_weights_take_a_quarter_off_the_variance_that_equal_ones_leave():
    """Beside products whose norm is that of the row squared; three columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 3))
    y = 0.05 + X @ [0.3, -0.2, 0.1] + 0.2 * rng.normal(size=5000)
    held = CrossProducts((0, 1, 2), Bounds((-1.0,) * 3, (1.0,) * 3), (), TargetScale())
    equal = CrossProducts(
        *[getattr(held, f) for f in ("numbers", "bounds")], (), held.target
    )
    weights = np.where(held.first == held.second, 1.0, np.sqrt(2))
    object.__setattr__(equal, "weights", weights)
    object.__setattr__(equal, "centres", np.zeros(held.dim))
    variances = []
    # the norm of (1, x, t) squared is five, and the constant's own square is known
    for one, norm in ((held, held.sensitivity.add_remove[2.0]), (equal, 24**0.5)):
        noise = np.full(held.dim, norm)
        found = solve(one.read(one.total(X, y), noise, len(X)), np.eye(4), 0.0)
        variances.append(np.diag(found.of_noise))
    assert np.mean(variances[0] / variances[1]) <= 0.72


def test_a_level_that_nobody_has_leaves_the_others_known():
    table = people(20_000)
    book = Schema(
        {n: BOOK[n] for n in ("age", "sex")}
        | {"town": ["Bonn", "Köln", "Ulm", "Juist"], "pay": BOOK["pay"]},
        target="pay",
    )
    model = PrivateLinearRegression(schema=book)
    model.fit(table.drop(columns="pay"), table.pay)
    said = str(Statement("linear.moments_drown", columns=["town_Juist"]))
    assert model.summary().endswith(said)
    found = model.to_frame().set_index("column")
    lost = found.index[np.isinf(found.std_error)]
    assert lost.tolist() == ["town_Juist"]
    assert found.low["town_Juist"] == -np.inf and found.p_value["town_Juist"] == 1
    assert abs(found.estimate["sex_M"] - 4) <= 5 * found.std_error["sex_M"] < 2
    assert np.abs(model.predict(table.drop(columns="pay"))).max() < 200


def test_noise_that_drowns_all_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (30, 4)), rng.uniform(-1, 1, 30)
    model = PrivateLinearRegression(bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, y)
    assert np.isinf(model.coef_std_).all() and np.isfinite(model.predict(X)).all()
    low, high = model.confidence_interval()["intercept_"]
    assert (low, high) == (-np.inf, np.inf)


def test_other_noise_has_errors_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50_000, 2))
    y = X @ [0.3, -0.2] + 0.1 * rng.normal(size=50_000)
    model = PrivateLinearRegression(
        accountant=GroupPrivacy(1.0, alpha=np.inf, noise="laplace"),
        bounds=(-1, 1),
        target_bounds=(-1, 1),
    ).fit(X, y)
    assert np.all(np.abs(model.coef_ - [0.3, -0.2]) <= 5 * model.coef_std_ + 0.01)


def test_rows_of_units_have_errors_of_noise_alone():
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-1, 1, (4000, 2)), np.repeat(np.arange(1000), 4)
    model = PrivateLinearRegression(
        RecordScenario(max_rows=4), bounds=(-1, 1), target_bounds=(-1, 1)
    ).fit(X, X[:, 0] / 2, groups=ids)
    assert len(model.to_frame(of="table")) == 3
    for door in (model.confidence_interval, model.to_frame, model.summary):
        with refused(UnsupportedError, "summary.no_population_of_such_records"):
            door()


@pytest.mark.parametrize("size", ["private", 4100])
def test_the_number_of_records_may_be_private_or_declared(size):
    table = people(4000)
    models = [
        PrivateLinearRegression(
            RecordScenario(size=said), PrivacyLoss(1e4, 1e-5), schema=BOOK
        ).fit(table, table.pay)
        for said in ("public", size)
    ]
    public, other = models
    assert other.certificate_.n_records is None or size != "private"
    assert "number of records is public" not in str(other.certificate_)
    if size == "private":
        np.testing.assert_allclose(other.coef_, public.coef_, atol=0.02)
        assert abs(other.n_complete_ - public.n_complete_) < 1
    else:
        assert abs(other.n_complete_ - public.n_complete_ - 100) < 1


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_sum_the_same_moments_where_the_number_is_private(engine):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 9, 3000), "z": rng.uniform(-1, 1, 3000)})
    table["y"] = table.x - 3 * table.z + rng.normal(0, 1, 3000)
    model = PrivateLinearRegression(
        RecordScenario(size="private"),
        PrivacyLoss(1e5, 1e-5),
        bounds=([0, -1], [9, 1]),
        target_bounds=(-12, 20),
    )
    here = model.fit(table[["x", "z"]], table.y).to_frame()
    there = model.fit(lazy_frame(engine, table), "y").to_frame()
    for name in ("estimate", "std_error", "n"):
        np.testing.assert_allclose(here[name], there[name], rtol=1e-2)
