"""Private Huber regression: its minimiser, its sensitivity, what an attacker sees."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.linear_model import HuberRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.base import Task
from skpuffer.linear_model import PrivateHuberRegressor, PrivateRidge
from skpuffer.linear_model._minimiser_constants import RegressionConstants
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.training import Huber
from tests.refused import says

from ..attack import assert_tight

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
BOUNDS = (-3.0, 5.0)


def table(seed=0, n=200, outliers=0):
    """Rows and targets of which some are beyond the bounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * rng.uniform(0.1, 1.5, size=(n, 1))
    y = 1 + X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=n)
    y[:outliers] = 1e6
    return X, y


def release_of(model, X, y):
    """The release a model would make of a table, and the rows and targets it reads."""
    model = clone(model)
    X, t, _ = model._validate(X, y)
    context = PublicContext(n_records=len(X), n_features=X.shape[1])
    task = Task(scenario=RecordScenario(), accountant=NO_NOISE, context=context, X=X)
    return model._release(task), X, t


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_in_float32_are_clipped_as_exactly_as_others(form):
    # rounded in float32, rows longer than one would move the minimiser by more than
    # its tolerance
    X, y = table()
    X = (3 * X).astype(np.float32)
    release, _, targets = release_of(PrivateHuberRegressor(target_bounds=BOUNDS), X, y)
    one, other = (release.run(form(rows), targets) for rows in (X, X.astype(float)))
    np.testing.assert_array_equal(one, other)


def constants_of(n_records, C, radius=1.0, width=0.5):
    return RegressionConstants(
        loss=Huber(width), n_records=n_records, radius=radius, C=C
    )


# -- the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("unit, intercept", [(1.0, True), (20.0, False)])
def test_without_noise_it_is_the_minimiser(unit, intercept):
    X, y = table()
    model = PrivateHuberRegressor(
        accountant=NO_NOISE,
        sigma=0.1,
        alpha=2.0,
        data_norm=2.0 * unit,
        target_bounds=tuple(unit * np.array(BOUNDS)),
        fit_intercept=intercept,
        tol=1e-7,
    )
    forms = [X, sparse.csr_matrix(X), pd.DataFrame(X, columns=list("abc"))]
    fits = [clone(model).fit(unit * form, unit * y) for form in forms]
    rows = X * np.minimum(1, 2.0 / np.linalg.norm(X, axis=1, keepdims=True)) / 2.0
    rows = np.hstack([rows, np.full((len(X), 1), float(intercept))])
    target = (np.clip(y, *BOUNDS) - 1.0) / 4.0

    def objective(w):
        error = rows @ w - target
        pull = np.clip(error, -0.135, 0.135)
        return (pull * (error - pull / 2)).sum() + w @ w, rows.T @ pull + 2 * w

    best = optimize.minimize(objective, np.zeros(4), jac=True, tol=1e-12).x
    for fitted, form in zip(fits, forms, strict=True):
        # half a range of four, half a row of two, and one unit for both
        np.testing.assert_allclose(fitted.coef_, 2 * best[:3], atol=1e-5)
        assert fitted.intercept_ / unit == pytest.approx(1 + 4 * best[3], abs=1e-5)
        assert fitted.score(unit * form, unit * y) > 0.6


def test_outliers_pull_no_further_than_their_slope():
    X, y = table(outliers=20)
    rest = slice(20, None)
    make = {"accountant": NO_NOISE, "data_norm": 3.0, "target_bounds": BOUNDS}
    robust = PrivateHuberRegressor(alpha=0.01, sigma=0.1, **make).fit(X, y)
    square = PrivateRidge(alpha=0.01, **make).fit(X, y)
    twin = HuberRegressor().fit(X[rest], y[rest])
    off = [np.abs(m.predict(X) - twin.predict(X)).mean() for m in (robust, square)]
    assert off[0] < 0.3 * off[1]


# -- how far a record moves the minimiser ---------------------------------------------


def test_constants_in_closed_form():
    constants = constants_of(100, 0.1, radius=2.0)
    # a residual of one costs w (1 - w / 2)
    D = np.sqrt(2 * 0.375 * 10)
    assert constants.weight_norm == pytest.approx(D)
    assert constants_of(100, 0.1, width=3.0).weight_norm == pytest.approx(np.sqrt(10))
    assert constants.lipschitz == 1.0
    steep = 0.5 + 2 * np.sqrt(D**2 + 1)
    assert constants.gradient_lipschitz == pytest.approx(steep)
    for shift, moved in ((0.0, 0.0), (0.1, 0.1 * steep), (1.0, 2.0), (np.inf, 2.0)):
        assert constants.move(shift) == pytest.approx(0.1 * moved)
    assert constants.move(constants.shift_ceiling) == pytest.approx(0.2)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.3, 100.0),
    width=st.sampled_from([0.05, 0.5, 3.0]),
    step=st.sampled_from([0.01, 0.3, 10.0]),
)
def test_no_records_move_the_minimiser_further(seed, alpha, width, step):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 2)), rng.uniform(*BOUNDS, size=6)
    model = PrivateHuberRegressor(
        alpha=alpha, sigma=width / 1.35, data_norm=1.5, target_bounds=BOUNDS, tol=1e-8
    )
    release, X, y = release_of(model, X, y)
    X2, y2 = X.copy(), y.copy()
    X2[:2] += step * rng.normal(size=(2, 2))
    y2[1:3] += step * rng.normal(size=2)
    points = release.contribution(X, y) - release.contribution(X2, y2)
    allowed = sum(
        release.record_move(b, 2, "replace") for b in np.linalg.norm(points, axis=1)
    )
    slack, one = release.total_slack(2), release.run(X, y)
    assert np.linalg.norm(one - release.run(X2, y2)) <= allowed + slack
    removed = np.linalg.norm(one - release.run(X[1:], y[1:]))
    assert removed <= release.record_move(np.inf, 2, "add_remove") + slack


# -- under a scenario -----------------------------------------------------------------


def test_a_secret_that_moves_a_record_little_costs_little():
    X, y = table()
    X, y = pd.DataFrame(X, columns=list("abc")), pd.Series(y, name="t")
    prior = X.iloc[[0, 0, 1, 1]].assign(s=[0, 1, 0, 1], t=[0.0, 0.4, 1.0, 1.4])
    scenario = AttributeScenario(
        "s", level="record", prior=prior, prior_as="law", target="t"
    )
    accountant = GeneralWasserstein(1.0, alpha=4.0)
    model = PrivateHuberRegressor(
        scenario, accountant, data_norm=3.0, target_bounds=BOUNDS, tol=1e-5
    ).fit(X, y)
    certificate = model.certificate_
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    # a tenth of half the range, in the units of the loss
    constants = constants_of(200, 1 / 30, np.sqrt(2), 0.27)
    assert certificate.sensitivity == pytest.approx(constants.move(0.1), rel=1e-4)
    assert certificate.gain > 1.2
    assert says(certificate.assumptions, "assume.huber_rows_targets_clipped")


@pytest.mark.parametrize("largest", [None, 2.0])
def test_no_attacker_tells_a_target_from_one_end_of_its_bounds_to_the_other(largest):
    """All others have no features: hardly anything hinders the first in its pull.

    Or it has the largest weight.
    """
    X, weighed = np.array([[1.0]] + [[0.0]] * 5), {}
    if largest is not None:
        weighed = {"sample_weight": [largest, 0.5, 0.5, 0.5, 0.5, 0.5]}
    model = PrivateHuberRegressor(
        RecordScenario(relation="replace"),
        PrivacyLoss(1.5, delta=0.05),
        target_bounds=(-1, 1),
        fit_intercept=False,
        tol=1e-6,
        weight_bounds=None if largest is None else (0, largest),
    )
    tables = [np.array([t, 0, 0, 0, 0, 0.0]) for t in (-1.0, 1.0)]
    plain = clone(model).set_params(accountant=NO_NOISE)
    exact = [clone(plain).fit(X, y, **weighed) for y in tables]
    fitted = model.fit(X, tables[0], **weighed)
    np.testing.assert_allclose(
        exact[1].coef_ - exact[0].coef_, fitted.certificate_.sensitivity, rtol=1e-5
    )

    def worlds(noise):
        return [
            lambda n, rng, w=world.coef_: w + noise.sample((n, 1), rng)
            for world in exact
        ]

    assert_tight(fitted.certificate_, fitted.noise_, worlds, seed=0, n_draws=5000)


# -- in scikit-learn ------------------------------------------------------------------


def test_in_a_grid_over_budgets():
    X, y = table(n=600)
    model = PrivateHuberRegressor(
        target_bounds=BOUNDS, data_norm=2.0, alpha=10.0, random_state=0
    )
    grid = GridSearchCV(
        make_pipeline(FunctionTransformer(), model),
        {"privatehuberregressor__accountant__epsilon": [0.01, 20.0]},
        error_score="raise",
        cv=3,
    ).fit(X, y)
    assert grid.best_params_ == {"privatehuberregressor__accountant__epsilon": 20.0}
    assert grid.best_score_ > 0.5


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": np.nan}, "sigma"),
        ({"alpha": 0.0}, "alpha"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
        ({"target_bounds": None}, "target_bounds"),
        ({"target_bounds": (2.0, 1.0)}, "target_bounds"),
        ({"tol": 1.0}, "tol"),
        ({"tol": 1e-12}, "tol"),
    ],
)
def test_bad_parameters_are_named(changes, match):
    model = PrivateHuberRegressor(target_bounds=BOUNDS).set_params(**changes)
    with pytest.raises(ValueError, match=f"'{match}'"):
        model.fit(*table())
    assert not vars(model).keys() & {"coef_", "certificate_", "noise_"}
