"""Private ridge regression: its moments, its noise, what an attacker sees of it."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.base import Task
from skpuffer.linear_model import PrivateRidge
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.schema import Schema

from ..attack import assert_tight

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
BOUNDS = (-3.0, 5.0)


def on_moments(*given, **parameters):
    return PrivateRidge(*given, **{"solver": "moments"} | parameters)


class Recording(PrivateRidge):
    """Keeps what it must not: the exact moments and the noisy ones."""

    def _execute(self, task, release, noise, rng):
        self.exact = release.run(task.X, task.y)
        self.noisy = super()._execute(task, release, noise, rng)
        return self.noisy


def table(seed=0, n=200, d=3):
    """Rows and targets of which some are beyond the bounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 1.5, size=(n, 1))
    return X, 1 + X @ np.arange(1, d + 1) + rng.normal(size=n)


def release_of(model, X, y):
    """The release a model would make of a table, and the rows and targets it reads."""
    model = clone(model)
    X, t, _ = model._validate(X, y)
    context = PublicContext(n_records=len(X), n_features=X.shape[1])
    task = Task(scenario=RecordScenario(), accountant=NO_NOISE, context=context, X=X)
    return model._release(task), X, t


# -- the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.01, 3.0])
@pytest.mark.parametrize("intercept", [None, 1.0, 0.4])
def test_without_noise_it_is_scikit_learns(alpha, intercept):
    X, y = table()
    model = on_moments(
        accountant=NO_NOISE,
        alpha=alpha,
        data_norm=2.0,
        target_bounds=BOUNDS,
        fit_intercept=intercept is not None,
        intercept_scaling=intercept or 1.0,
    ).fit(X, y)
    rows = X * np.minimum(1, 2.0 / np.linalg.norm(X, axis=1, keepdims=True))
    assert np.any(rows != X)
    column = np.full((len(X), 1), intercept or 0.0)
    target = (np.clip(y, *BOUNDS) - 1.0) / 4.0
    assert np.any(np.abs(target) == 1)
    twin = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky")
    twin.fit(np.hstack([rows / 2.0, column]), target)
    np.testing.assert_allclose(model.coef_, 4.0 * twin.coef_[:3] / 2.0, rtol=1e-8)
    constant = (intercept or 0.0) * twin.coef_[3]
    assert model.intercept_ == pytest.approx(1.0 + 4.0 * constant, rel=1e-8)
    np.testing.assert_allclose(
        model.predict(X), rows @ model.coef_ + model.intercept_, rtol=1e-12
    )


def test_a_record_without_a_target_is_in_no_moment():
    X, y = table(n=400)
    frame = pd.DataFrame(np.clip(X, -1, 1), columns=["a", "b", "c"])
    frame["y"] = np.where(np.arange(400) % 3 == 0, None, y)
    schema = Schema({**dict.fromkeys("abc", (-1, 1)), "y": BOUNDS}, target="y")
    model = on_moments(accountant=NO_NOISE, data_norm=2.0, schema=schema)

    def fitted(held):
        return clone(model).fit(held[["a", "b", "c"]], held["y"].astype(float))

    found, expected = fitted(frame), fitted(frame.dropna())
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    assert found.intercept_ == pytest.approx(expected.intercept_, rel=1e-6)


def test_the_penalty_that_noise_adds_is_its_spectral_norm():
    # of square moments alone: the released matrix, solved with what is documented
    X, y = table()
    model = Recording(
        solver="moments", target_bounds=BOUNDS, fit_intercept=False, random_state=0
    )
    model.fit(X, y)
    square, cross = model._moments(3).unpack(model.noisy, 200)
    noise, _ = model._moments(3).unpack(model.noisy - model.exact, 0)
    ridge = 1.0 + np.sqrt(2 * 3) * model.noise_.scale
    assert np.linalg.norm(noise, ord=2) < 1.5 * (ridge - 1)
    values, vectors = np.linalg.eigh(square)
    positive = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
    weights = np.linalg.solve(positive + ridge * np.eye(3), cross)
    np.testing.assert_allclose(model.coef_, 4.0 * weights)


def test_the_unit_of_the_data_does_not_matter():
    X, y = table()
    one = on_moments(target_bounds=BOUNDS, random_state=0).fit(X, y)
    other = on_moments(data_norm=10.0, target_bounds=(-30, 50), random_state=0)
    other.fit(10 * X, 10 * y)
    np.testing.assert_allclose(other.coef_, one.coef_)
    assert other.intercept_ == pytest.approx(10 * one.intercept_)
    assert other.noise_ == one.noise_


def test_a_prior_has_its_targets_in_the_unit_of_the_data():
    """From one end of its bounds to the other is a move of two, whatever they are."""
    X, y = pd.DataFrame({"x": [0.5] * 4}), pd.Series([0.0, 1.0] * 2, name="t")
    prior = X.iloc[:2].assign(s=[0, 1], t=[0.0, 1.0])
    for unit, middle in ((1.0, 0.0), (1e-3, 0.0), (300.0, 1e3)):
        scenario = AttributeScenario(
            "s",
            level="record",
            prior=prior.assign(t=unit * prior["t"] + middle),
            prior_as="law",
            target="t",
        )
        bounds = (middle, middle + unit)
        model = on_moments(
            scenario, GroupPrivacy(), target_bounds=bounds, fit_intercept=False
        ).fit(X, unit * y + middle)
        # x t, of x = 1/2
        assert model.certificate_.sensitivity == pytest.approx(1.0)


# -- how far a record moves the moments -----------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_moments_are_those_of_each_record_summed(intercept):
    moments = on_moments(data_norm=2.0, fit_intercept=intercept)._moments(3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * rng.choice([0.1, 10.0], size=(200, 1))
    t = rng.choice([-1.0, 1.0], size=200)
    norms = np.linalg.norm(moments(X, t), axis=1)
    assert np.all(norms <= moments.norm * (1 + 1e-12))
    assert norms.max() > 0.99 * moments.norm
    for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        np.testing.assert_allclose(moments.total(rows, t), moments(X, t).sum(axis=0))
    square, cross = moments.unpack(moments.total(X, t), 200)
    z = moments.rows(X)
    np.testing.assert_allclose(square, z.T @ z)
    np.testing.assert_allclose(cross, z.T @ t)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_in_float32_are_no_longer_than_others(form):
    # rounded in float32 a row would move the moments by many steps of the grid more
    # than is stated
    moments = on_moments(fit_intercept=False)._moments(30)
    X = (3 * np.random.default_rng(0).normal(size=(500, 30))).astype(np.float32)
    sums = [moments.total(form(X[i : i + 1]), np.ones(1)) for i in range(500)]
    assert np.linalg.norm(sums, axis=1).max() <= moments.norm * (1 + 1e-14)


@given(
    seed=st.integers(0, 2**32 - 1),
    scaling=st.sampled_from([None, 0.3, 1.0, 2.0]),
    size=st.sampled_from([0.1, 1.0, 100.0]),
)
def test_no_neighbouring_table_is_further_away(seed, scaling, size):
    X, y = table(seed, n=8)
    model = on_moments(
        data_norm=1.5,
        target_bounds=BOUNDS,
        fit_intercept=scaling is not None,
        intercept_scaling=scaling or 1.0,
    )
    rng = np.random.default_rng(seed)
    X2, y2 = X.copy(), y.copy()
    X2[-1] = size * rng.normal(size=3)
    y2[-1] = rng.choice([*BOUNDS, 1e6, -1e6])
    release, *one = release_of(model, X, y)
    _, *replaced = release_of(model, X2, y2)
    value = release.run(*one)
    removed = release.run(one[0][:-1], one[1][:-1])
    for other, relation in (
        (release.run(*replaced), "replace"),
        (removed, "add_remove"),
    ):
        bound = release.record_move(np.inf, 2, relation)
        assert np.linalg.norm(value - other) <= bound * (1 + 1e-12)


@pytest.mark.parametrize(
    "scaling, squared", [(None, 2.0), (1.0, 5.0), (2.0, 14.0), (0.5, 2.75)]
)
def test_the_bound_is_attained(scaling, squared):
    # |z z'|**2 + |z t|**2 with |z|**2 = 1 + scaling**2 and |t| = 1, less scaling**4
    model = on_moments(
        data_norm=7.0,
        target_bounds=BOUNDS,
        fit_intercept=scaling is not None,
        intercept_scaling=scaling or 1.0,
    )
    X, y = table(n=5)
    X[0], y[0] = [0.0, 0.0, -1e3], BOUNDS[0]
    release, X, t = release_of(model, X, y)
    value = release.run(X, t)
    moved = np.linalg.norm(value - release.run(X[1:], t[1:]))
    assert moved == pytest.approx(np.sqrt(squared))
    assert release.record_move(np.inf, 2, "add_remove") == pytest.approx(moved)
    # the best replacement: opposite targets, and rows in between same and opposite
    grid = np.linspace(0, np.pi, 181)
    opposite = np.append(BOUNDS[1], t[1:])
    others = np.column_stack([np.sin(grid), 0 * grid, np.cos(grid)])
    moves = [
        np.linalg.norm(value - release.run(np.vstack([7 * row, X[1:]]), opposite))
        for row in others
    ]
    bound = release.record_move(np.inf, 2, "replace")
    assert 0.6 * bound < max(moves) <= bound


# -- noise ----------------------------------------------------------------------------


def test_the_certificate_is_what_the_release_accounts_for():
    X, y = table()
    accountant = GroupPrivacy(epsilon=0.5, alpha=4.0)
    model = on_moments(RecordScenario(k=2), accountant, target_bounds=BOUNDS)
    model.fit(X, y)
    assert model.certificate_.notion is Notion.RENYI_DP
    assert model.certificate_.sensitivity == pytest.approx(2 * np.sqrt(2.75))
    # the Renyi divergence of two Gaussians: alpha * shift**2 / (2 * scale**2)
    assert model.noise_.scale == pytest.approx(
        2 * np.sqrt(2.75) * np.sqrt(4 / (2 * 0.5))
    )
    release, *_ = release_of(model, X, y)
    again = accountant.certify(model.noise_, release, RecordScenario(k=2))
    assert again.epsilon == pytest.approx(model.certificate_.epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_default_accounting_is_that_of_one_gaussian(epsilon):
    accountant = PrivacyLoss(epsilon=epsilon, delta=1e-5)
    model = on_moments(accountant=accountant, target_bounds=BOUNDS).fit(*table())
    mu = np.sqrt(2.75) / model.noise_.scale
    # Balle and Wang (2018), Theorem 8
    delta = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert delta == pytest.approx(1e-5, rel=1e-3)


def test_more_budget_is_less_noise_and_a_better_fit():
    X, y = table(n=2000)
    scales, scores = [], []
    for epsilon in (0.01, 0.3, 10.0):
        model = on_moments(
            accountant=PrivacyLoss(epsilon=epsilon), target_bounds=BOUNDS
        )
        scores.append(model.set_params(random_state=0).fit(X, y).score(X, y))
        scales.append(model.noise_.scale)
        assert model.certificate_.epsilon == epsilon
    assert scales[0] > 10 * scales[1] > 100 * scales[2]
    assert scores[0] < scores[1] < scores[2]


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_the_noise_drawn_is_the_noise_named(family):
    X, y = table()
    accountant = GroupPrivacy(epsilon=1.0, alpha=2.0, noise=family)
    draws = []
    for _ in range(100):
        model = Recording(
            solver="moments", accountant=accountant, target_bounds=BOUNDS
        ).fit(X, y)
        draws.append((model.noisy - model.exact) / model.noise_.scale)
    draws = np.array(draws)
    assert draws.shape == (100, 13)
    assert model.noise_.family == family
    law = {"gaussian": stats.norm, "laplace": stats.laplace}[family]
    assert stats.kstest(draws.ravel(), law.cdf).pvalue > 1e-4
    # independent in every coordinate and every fit
    assert len(np.unique(draws)) == draws.size
    correlations = np.corrcoef(draws.T)[np.triu_indices(13, 1)]
    assert np.abs(correlations).max() < 0.5


def test_the_noise_does_not_depend_on_the_data():
    noise = []
    for seed in (0, 1):
        model = Recording(solver="moments", target_bounds=BOUNDS, random_state=3).fit(
            *table(seed)
        )
        noise.append(model.noisy - model.exact)
    np.testing.assert_allclose(*noise, atol=1e-12)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_canary_beats_the_certificate(relation):
    X, y = np.zeros((6, 2)), np.full(6, 1.0)
    X2, y2 = X.copy(), y.copy()
    X2[-1], y2[-1] = [1.0, 0.0], BOUNDS[1]
    if relation == "replace":
        X[-1], y[-1] = [0.5, np.sqrt(0.75)], BOUNDS[0]  # as far away as there is
    else:
        X, y = X[:-1], y[:-1]
    model = on_moments(
        RecordScenario(relation=relation),
        PrivacyLoss(epsilon=6.0, delta=0.05),
        target_bounds=BOUNDS,
        fit_intercept=False,
    ).fit(X2, y2)

    def exact(X, y):
        """What is released, which differs from one real draw of it by the noise."""
        (release, X, y), noise = release_of(model, X, y), model.noise_
        task = Task(
            scenario=model.scenario,
            accountant=model.accountant,
            context=release.context,
            X=X,
            y=y,
        )
        drawn = model._execute(task, release, noise, np.random.default_rng(7))
        values = release.run(X, y)
        np.testing.assert_allclose(drawn, values + noise.sample(values.shape, 7))
        return values

    ends = exact(X2, y2), exact(X, y)
    # what a record that leaves moves is all of the bound, one replaced three quarters
    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [
            lambda n, rng, at=at: at + noise.sample((n, len(at)), rng) for at in ends
        ],
        score=lambda noise: lambda values: values @ (ends[0] - ends[1]),
        seed=0,
        n_draws=100_000,
    )


# -- in scikit-learn ------------------------------------------------------------------


def test_forms_of_a_table_are_one_table():
    X, y = table()
    names = ["a", "b", "c"]
    make = on_moments(target_bounds=BOUNDS, random_state=0)
    dense = clone(make).fit(X, y)
    frame = pd.DataFrame(X, columns=names)
    forms = [sparse.csr_matrix(X), sparse.csr_array(X), frame, pl.from_pandas(frame)]
    for form in forms:
        other = clone(make).fit(form, y)
        np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-9)
        assert other.intercept_ == pytest.approx(dense.intercept_)
        np.testing.assert_allclose(other.predict(form), dense.predict(X), rtol=1e-9)
    assert list(other.feature_names_in_) == names


def test_a_seed_repeats_the_noise_and_none_does_not():
    X, y = table()
    make = on_moments(target_bounds=BOUNDS)
    seeded = [clone(make).set_params(random_state=5).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(seeded[0].coef_, seeded[1].coef_)
    assert any("seed" in str(a) for a in seeded[0].certificate_.assumptions)
    free = [clone(make).fit(X, y) for _ in range(2)]
    assert np.all(free[0].coef_ != free[1].coef_)
    assert not any("seed" in str(a) for a in free[0].certificate_.assumptions)


def test_clones_and_pickles():
    X, y = table()
    model = on_moments(
        accountant=PrivacyLoss(epsilon=2.0), alpha=0.5, target_bounds=BOUNDS
    ).fit(X, y)
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert fresh.alpha == 0.5
    assert fresh.accountant.epsilon == 2.0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_


def test_in_a_grid_over_budgets():
    X, y = table(n=600)
    grid = GridSearchCV(
        make_pipeline(
            FunctionTransformer(),
            on_moments(target_bounds=BOUNDS, random_state=0),
        ),
        {"privateridge__accountant__epsilon": [0.01, 20.0]},
        error_score="raise",
        cv=3,
    ).fit(X, y)
    assert grid.best_params_ == {"privateridge__accountant__epsilon": 20.0}
    assert grid.best_score_ > 0.5
    assert grid.best_estimator_[-1].certificate_.epsilon == 20.0


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
        ({"fit_intercept": "no"}, "fit_intercept"),
        ({"target_bounds": (2.0, 1.0)}, "target_bounds"),
        ({"target_bounds": (0.0, np.inf)}, "target_bounds"),
        ({"target_bounds": 3.0}, "target_bounds"),
        ({"accountant": PrivacyLoss(epsilon=-1.0)}, "epsilon"),
        ({"scenario": RecordScenario(k=0)}, "k"),
    ],
)
def test_bad_parameters_are_named(changes, match):
    model = on_moments(target_bounds=BOUNDS).set_params(**changes)
    with pytest.raises(ValueError, match=f"'{match}'"):
        model.fit(*table())
    assert not vars(model).keys() & {"coef_", "certificate_", "noise_"}


# -- by gradients ---------------------------------------------------------------------


def scattered(n=4000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d) / 1.3
    return X, X @ np.arange(1, d + 1) / 3 + 1 + 0.3 * rng.normal(size=n)


def by_gradients(**parameters):
    return PrivateRidge(
        solver="gradient", target_bounds=BOUNDS, random_state=0, **parameters
    )


@pytest.mark.parametrize("alpha", [1.0, 800.0])
def test_much_budget_comes_to_the_penalised_fit(alpha):
    X, y = scattered()
    model = by_gradients(
        accountant=PrivacyLoss(epsilon=200.0), alpha=alpha, data_norm=1.5
    ).fit(X, y)
    # the penalty is of weights for rows over 1.5, in whatever unit the target is
    twin = Ridge(alpha=alpha * 1.5**2).fit(X, np.clip(y, *BOUNDS))
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=0.08)
    assert isinstance(model.intercept_, float)
    assert model.intercept_ == pytest.approx(twin.intercept_, abs=0.05)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_gradients_take_less_noise_than_moments(epsilon):
    X, y = scattered(2000, d=10, seed=1)
    accountant = PrivacyLoss(epsilon=epsilon, delta=1e-5)
    scores = {
        solver: np.mean(
            [
                PrivateRidge(
                    accountant=accountant,
                    solver=solver,
                    target_bounds=BOUNDS,
                    random_state=seed,
                )
                .fit(X, y)
                .score(X, y)
                for seed in range(5)
            ]
        )
        for solver in ("gradient", "moments")
    }
    assert scores["gradient"] > scores["moments"] + 0.05


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_canary_beats_the_certificate_of_gradients(relation):
    """Of a record as badly fitted as may be: all its gradients are at the clip norm."""
    n = 20
    X, y = np.zeros((n, 1)), np.full(n, 1.0)
    X[0], y[0] = 1.0, BOUNDS[1]
    other_X, other_y = X.copy(), y.copy()
    if relation == "replace":
        other_y[0] = BOUNDS[0]
    else:
        other_X[0] = 0.0  # as good as absent
    model = PrivateRidge(
        RecordScenario(relation=relation),
        PrivacyLoss(epsilon=6.0, delta=0.05),
        solver="gradient",
        target_bounds=BOUNDS,
        fit_intercept=False,
    ).fit(X, y)
    release = model.release_

    def exact(X, y):
        """The sums that are released with noise, of the run that a fit makes."""
        X, t, _ = model._validate(X, y)
        task = Task(
            scenario=model.scenario,
            accountant=model.accountant,
            context=release.context,
            X=X,
            y=t,
        )
        steps, little = [], replace(model.noise_, scale=1e-9)
        model._execute(task, release, little, np.random.default_rng(0), record=steps)
        return np.ravel([step.clipped_sum for step in steps])

    ends = exact(X, y), exact(other_X, other_y)
    apart = ends[0] - ends[1]
    moved = 2 if relation == "replace" else 1
    longest = moved * release.total_clip_norm * np.sqrt(release.n_steps)
    assert np.linalg.norm(apart) == pytest.approx(longest, rel=1e-2)
    unit = apart / np.linalg.norm(apart)
    # along what tells the two apart, as nothing else of the sums does
    assert_tight(
        model.certificate_,
        model.noise_,
        lambda noise: [
            lambda m, rng, at=at: at @ unit + noise.sample((m, len(unit)), rng) @ unit
            for at in ends
        ],
        score=lambda noise: lambda values: values[:, 0],
        seed=0,
        n_draws=100_000,
    )


def is_by_gradients(model):
    return hasattr(model, "release_") and hasattr(model, "n_steps_")


def test_the_way_follows_from_public_facts():
    X, y = scattered(300)
    facts = {"target_bounds": BOUNDS, "random_state": 0}
    assert is_by_gradients(PrivateRidge(**facts).fit(X, y))
    # whatever the rows are
    assert is_by_gradients(PrivateRidge(**facts).fit(0 * X, 0 * y))
    # noise so little that moments are all but exact
    plenty = PrivacyLoss(epsilon=1e4)
    assert not is_by_gradients(PrivateRidge(accountant=plenty, **facts).fit(X, y))
    assert not is_by_gradients(on_moments(**facts).fit(X, y))
    # one model fitted both ways keeps nothing of the other
    model = PrivateRidge(**facts).fit(X, y).set_params(solver="moments").fit(X, y)
    assert not is_by_gradients(model)


def test_a_secret_that_moves_records_a_little_takes_moments():
    X, y = scattered(60)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(s=np.arange(60) % 2)
    y = pd.Series(y, name="t")
    prior = frame.assign(t=y).iloc[:6]
    scenario = AttributeScenario(
        "s", level="record", prior=prior, prior_as="law", target="t"
    )
    model = PrivateRidge(scenario, target_bounds=BOUNDS, random_state=0)
    assert not is_by_gradients(model.fit(frame, y))


def test_a_solver_that_is_none():
    with pytest.raises(ValueError, match="solver"):
        PrivateRidge(solver="cholesky", target_bounds=BOUNDS).fit(*scattered(50))
