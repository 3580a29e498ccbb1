"""Logistic regression with standard errors: sums, attacks, errors and coverage."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skpuffer._template._plan import Task
from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import PrivateLogit, _logit
from skpuffer.linear_model._logit import _CURVATURE, NewtonSums, newton_step
from skpuffer.releases import PublicContext
from skpuffer.scenarios import BlocksScenario, RecordScenario
from skpuffer.schema import Category, Number, Schema
from skpuffer.utils._bounds import Bounds
from tests.attack import assert_tight
from tests.refused import refused

#: Hardly any noise.
LARGE = PrivacyLoss(1e7, 1e-5)
BOOK = Schema(
    {
        "age": Number(18, 80),
        "sex": Category(["F", "M"], missing_level=False, fill="F"),
        "town": Category(["Bonn", "Köln", "Ulm"], missing_level=False, fill="Bonn"),
        "ill": Category([False, True], missing_level=False),
    },
    target="ill",
)
TRUTH = {"intercept": -1.5, "age": 0.03, "sex_M": 0.5, "town_Köln": -0.4}
TRUTH |= {"town_Ulm": 0.8}


def people(n, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "town": rng.choice(["Bonn", "Köln", "Ulm"], n, p=[0.5, 0.3, 0.2]),
        }
    )
    odds = TRUTH["intercept"] + TRUTH["age"] * table.age
    odds += TRUTH["sex_M"] * (table.sex == "M")
    odds += table.town.map({"Bonn": 0, "Köln": -0.4, "Ulm": 0.8})
    y = pd.Series(rng.random(n) < expit(odds), name="ill")
    table.loc[rng.random(n) < gaps, "age"] = np.nan
    return table, y


def design_of(table):
    columns = [table.age, table.sex == "M", table.town == "Köln", table.town == "Ulm"]
    return np.column_stack([np.asarray(c, float) for c in columns])


def sums_of(norm=2.0, numbers=2, levels=((2, 3), (4, 5, 6)), marks=()):
    bounds = Bounds((-1.0,) * numbers, (1.0,) * numbers)
    return NewtonSums(tuple(range(numbers)), bounds, levels, marks, norm)


# -- what one record adds --------------------------------------------------------------


def test_curvature_is_free_up_to_the_fifth_power_of_the_golden_ratio():
    golden = (1 + math.sqrt(5)) / 2
    a = np.linspace(0, 1, 100_001)

    def longest(weight):
        return np.max(a**2 + (weight * a * (1 - a)) ** 2)

    assert golden**5 >= _CURVATURE**2
    assert longest(_CURVATURE) <= 1 < longest(math.sqrt(golden**5) + 0.01)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_no_record_moves_a_sum_by_more_than_is_stated(norm):
    rng, held = np.random.default_rng(0), sums_of(norm)
    n = 900
    X = np.zeros((n, 7))
    X[:, :2] = rng.choice([-3.0, -1.0, 0.3, 1.0, 3.0], (n, 2))
    for block in ((2, 3), (4, 5, 6)):
        at = rng.integers(-1, len(block), n)
        X[np.arange(n)[at >= 0], np.array(block)[at[at >= 0]]] = 1.0
    y, moves = rng.integers(0, 2, n), []
    for _ in range(4):
        slopes = rng.normal(0, rng.choice([0.0, 0.3, 1.0, 5.0]), held.width)
        moves += [
            held(held.rows(X[i : i + 1], y[i : i + 1]), slopes) for i in range(0, n, 3)
        ]
    moves = np.array(moves)
    apart = moves[:, np.newaxis][:600] - moves[np.newaxis][:, :600]
    for order in (1.0, 2.0):
        alone = np.linalg.norm(moves, order, axis=1).max()
        most = held.sensitivity.value("add_remove", order, held.dim)
        assert alone <= most * (1 + 1e-9)
        if order == norm:
            assert alone > 0.85 * most
        most = held.sensitivity.value("replace", order, held.dim)
        assert np.linalg.norm(apart, order, axis=2).max() <= most * (1 + 1e-9)


def test_a_record_changes_nothing_that_others_add(monkeypatch):
    """Wherever they stand: a BLAS rounds by the number of rows."""
    # so fine that a last digit shows, and as exact for so few records
    monkeypatch.setattr(_logit, "_GRAIN", 2.0**-47)
    rng, held = np.random.default_rng(0), sums_of(numbers=30, levels=())
    for n in range(20, 60):
        X, y = rng.uniform(-1, 1, (n, 30)), rng.integers(0, 2, n)
        slopes = rng.normal(0, 0.5, held.width)
        whole, first, rest = (
            held(held.rows(X[part], y[part]), slopes)
            for part in (slice(None), slice(1), slice(1, None))
        )
        np.testing.assert_array_equal(whole, first + rest)


def test_a_record_that_lacks_something_adds_nothing():
    held = sums_of(numbers=1, levels=(), marks=(1,))
    X, y = np.array([[0.5, 0.0], [0.5, 1.0], [0.5, 0.0]]), np.array([1, 1, -1])
    slopes = np.array([0.2, 0.1])
    one = held(held.rows(X[:1], y[:1]), slopes)
    np.testing.assert_array_equal(held(held.rows(X, y), slopes), one)
    assert np.any(one)


class Watched:
    """Sums that keep what the canary adds to them."""

    def __init__(self, sums, canary):
        self._sums, self._canary = sums, canary

    def __getattr__(self, name):
        return getattr(self._sums, name)

    def __call__(self, rows, slopes):
        self.canary = self._sums(self._canary, slopes)
        return self._sums(rows, slopes)


class Odds:
    """A release that adds up the log odds of the canary's presence, exactly."""

    def __init__(self, release, sums, scale, present):
        self._release, self._scale, self._present = release, scale, present
        self.context, self.total = replace(release.context, bounds=sums), 0.0

    def __getattr__(self, name):
        return getattr(self._release, name)

    def noisy(self, at, exact, noise, rng):
        found = self._release.noisy(at, exact, noise, rng)
        canary = self.context.bounds.canary
        absent = exact - canary if self._present else exact
        scale = self._release.unit(at) * self._scale
        far, near = (np.abs(found - mean) / scale for mean in (absent, absent + canary))
        if noise.family == "gaussian":
            far, near = far**2 / 2, near**2 / 2
        self.total += np.sum(far - near)
        return found


@pytest.mark.parametrize(
    "accountant, steps, n_draws",
    [
        pytest.param(PrivacyLoss(6.0, 0.15), 1, 1000, id="gaussian, one"),
        pytest.param(
            PrivacyLoss(6.0, 0.15), 2, 2000, id="gaussian", marks=pytest.mark.slow
        ),
    ],
)
def test_an_attacker_of_all_steps_gets_what_is_promised_and_no_more(
    accountant, steps, n_draws
):
    model = PrivateLogit(bounds=(-1, 1), max_iter=steps, fit_intercept=False)
    X, y = np.array([[-1.0], [-0.9], [1.0]]), np.array([0, 0, 1])
    model.n_features_in_ = 1
    task = Task(
        scenario=RecordScenario(),
        accountant=accountant,
        context=PublicContext(n_records=4, n_features=1),
        X=X,
        y=y,
    )
    release = model._release(task)
    sums = release.context.bounds
    canary = np.array([[1.0]]), np.array([0])
    calibrated = accountant.calibrate(release, RecordScenario())

    def worlds(noise):
        def draw(present, n, rng):
            rows = np.vstack([X, canary[0]]) if present else X
            labels = np.append(y, canary[1]) if present else y
            totals = []
            for _ in range(n):
                watched = Watched(sums, sums.rows(*canary))
                odds = Odds(release, watched, noise.scale, present)
                model._execute(replace(task, X=rows, y=labels), odds, noise, rng)
                totals.append(odds.total)
            return np.array(totals)

        return [
            lambda n, rng, present=present: draw(present, n, rng)
            for present in (True, False)
        ]

    assert_tight(
        calibrated.certificate,
        calibrated.noise,
        worlds,
        n_draws=n_draws,
        seed=1,
        epsilons=(0.0, 1.0),
    )


def stepped(start, deviation):
    """One step on exact sums that are read as noisy, and the slopes of the maximum."""
    rng, held = np.random.default_rng(0), sums_of(numbers=1, levels=())
    X = rng.uniform(-1, 1, (2000, 1))
    y = rng.random(2000) < expit(6 * X[:, 0])
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    best = np.array([plain.intercept_[0], plain.coef_[0, 0]])
    total = held(held.rows(X, y), start * best)
    moments = held.read(total, deviation)
    return newton_step(moments, start * best, np.eye(2), math.sqrt(2)), best


@pytest.mark.parametrize("start", [0.3, 0.5, 0.7, 0.9, 1.0, 1.2])
def test_a_step_says_at_least_what_it_leaves(start):
    step, best = stepped(start, 1e-9)
    assert (np.abs(step.slopes - best) <= step.beyond + 1e-3).all()
    assert not step.is_blurred.any() and not step.is_lost.any()


def test_errors_that_are_not_known_well_are_marked():
    resolution = stepped(1.0, 1.0)[0].resolution
    for held, lost, blurred in ((2.5, True, True), (5, False, True), (7, False, False)):
        step, _ = stepped(1.0, resolution / held)
        assert (step.is_lost[1], step.is_blurred[1]) == (lost, blurred)


# -- what is published -----------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_the_maximum_of_the_likelihood(fit_intercept):
    table, y = people(4000, gaps=0.2)
    model = PrivateLogit(accountant=LARGE, schema=BOOK, fit_intercept=fit_intercept)
    model.fit(table, y)
    known = table.age.notna()
    X = design_of(table[known])
    plain = LogisticRegression(C=np.inf, fit_intercept=fit_intercept, tol=1e-10)
    plain.fit(X, y[known])
    frame = model.to_frame()
    found = frame.set_index("column").estimate
    expected = plain.coef_[0]
    np.testing.assert_allclose(found[list(TRUTH)[1:]], expected, rtol=1e-3, atol=1e-4)
    # errors by the textbook: the inverse of Fisher's information
    rows = np.column_stack([np.ones(len(X)), X]) if fit_intercept else X
    p = plain.predict_proba(X)[:, 1]
    information = (rows * (p * (1 - p))[:, np.newaxis]).T @ rows
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(frame.std_error, errors, rtol=1e-3)
    assert not frame.wide.any()
    near = model.predict_proba(table[known])[:, 1]
    np.testing.assert_allclose(near, p, atol=1e-4)
    assert model.score(table, y) > 0.55


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("size", ["public", "private"])
def test_intervals_cover_what_they_are_for(epsilon, size):
    truth, held = pd.Series(TRUTH), {"table": [], "population": []}
    model = PrivateLogit(RecordScenario(size=size), PrivacyLoss(epsilon), schema=BOOK)
    exact = PrivateLogit(accountant=LARGE, schema=BOOK)
    for draw in range(15):
        table, y = people(5000, seed=draw, gaps=0.05)
        own = exact.fit(table, y).to_frame().set_index("column").estimate
        model.fit(table, y)
        for of, right in (("table", own), ("population", truth)):
            found = model.to_frame(of=of).set_index("column").loc[list(TRUTH)]
            held[of].append(
                found.low.le(right[found.index]) & found.high.ge(right[found.index])
            )
    for of, of_draws in held.items():
        # beyond what chance does in a run of many
        share = np.mean(of_draws, axis=0)
        assert share.min() >= 0.4 and share.mean() >= 0.7, of
    # not much longer than they have to be
    plain = exact.to_frame().std_error.to_numpy()
    longest = 1.1 if epsilon == 10 else 2.0
    assert (model.to_frame().std_error.to_numpy() <= longest * plain).all()


def test_classes_that_are_separable_are_marked_as_wide():
    x = np.linspace(-1, 1, 2000)
    model = PrivateLogit(accountant=PrivacyLoss(10.0), bounds=(-1, 1))
    frame = model.fit(x[:, np.newaxis], x > 0).to_frame()
    assert frame.wide[1] and model.coef_[0, 0] > 3


def test_a_level_that_nobody_has_says_nothing_and_spoils_nothing():
    table, y = people(5000)
    towns = ["Bonn", "Köln", "Ulm", "Juist"]
    parts = {name: BOOK[name] for name in ("age", "sex", "ill")}
    book = Schema({**parts, "town": towns}, target="ill")
    model, lost = PrivateLogit(accountant=PrivacyLoss(10.0), schema=book), []
    for _ in range(3):
        frame = model.fit(table, y).to_frame().set_index("column")
        lost.append(np.isinf(frame.std_error["town_Juist"]) & frame.wide["town_Juist"])
        known = frame.loc[list(TRUTH)]
        assert np.isfinite(known.std_error).all() and not known.wide.any()
    # in one of a thousand fits noise looks like records
    assert any(lost)
    assert "town_Juist" in model.summary() or not lost[-1]


def test_what_is_not_known_is_refused_by_name():
    table, y = people(300)
    three = np.arange(300) % 3
    with refused(ValueError, "linear.logit_of_two_classes", n_classes=3):
        PrivateLogit(bounds=(18, 80)).fit(table[["age"]], three)
    rows = BlocksScenario(RecordScenario(2), sizes=2)
    model = PrivateLogit(rows, schema=BOOK).fit(table, y)
    assert len(model.to_frame(of="table")) == 5
    with refused(UnsupportedError, "summary.no_population_of_such_records"):
        model.confidence_interval()


def test_errors_of_the_table_are_the_spread_of_many_draws():
    table, y = people(4000, seed=2)
    model = PrivateLogit(accountant=PrivacyLoss(3.0, 1e-5), schema=BOOK)
    drawn, stated = [], []
    for _ in range(120):
        found = model.fit(table, y).to_frame(of="table")
        drawn.append(found["estimate"])
        stated.append(found["std_error"])
    ratios = np.mean(stated, axis=0) / np.std(drawn, axis=0)
    np.testing.assert_allclose(ratios, 1, atol=0.4)
