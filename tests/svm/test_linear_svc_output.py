"""The support vector classifier by output perturbation: constants, solver, attack."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
)
from skpuffer.base import Task
from skpuffer.linear_model._minimiser_constants import MarginConstants
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, MarkovChainScenario, RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import HuberHinge

from ..attack import assert_tight

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)


def constants_of(n_records, C, radius=1.0, width=0.5):
    return MarginConstants(
        loss=HuberHinge(width), n_records=n_records, radius=radius, C=C
    )


def release_of(model, X, y):
    """The release a model would make of a table, and the rows and labels it reads."""
    model = clone(model)
    X, codes, _ = model._validate(X, y)
    context = PublicContext(
        n_records=len(X),
        n_features=X.shape[1],
        classes=tuple(model.classes_.tolist()),
    )
    task = Task(scenario=RecordScenario(), accountant=NO_NOISE, context=context, X=X)
    return model._release(task), X, codes


def table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


# -- how far a record moves the minimiser ---------------------------------------------


def test_constants_to_their_digits():
    # computed apart: n = 1000, C = .1, R = 1, half-width .5
    constants = constants_of(1000, 0.1)
    assert constants.weight_norm == pytest.approx(14.1421356, abs=1e-7)
    assert constants.gradient_lipschitz == pytest.approx(15.1421356, abs=1e-7)
    for shift, moved in ((0.05, 0.0757106781), (0.1, 0.1), (1.0, 0.1), (2.0, 0.2)):
        assert constants.move(shift) == pytest.approx(moved, abs=1e-10)
    assert constants.move(0.0) == 0.0
    assert constants.move(np.inf) == 0.2 and constants.shift_ceiling == 1.5
    # a wide corner is there for a margin of zero too, where the loss is (1 + h)^2 / 4h
    wide = constants_of(1000, 0.1, width=2.0)
    assert wide.weight_norm == pytest.approx(np.sqrt(200 * 9 / 8))
    assert wide.gradient_lipschitz == pytest.approx(1 + wide.weight_norm / 4)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.floats(0.01, 3.0),
    width=st.sampled_from([0.05, 0.5, 2.0]),
    step=st.sampled_from([0.01, 0.3, 1.0, 10.0]),
)
def test_no_records_move_the_minimiser_further(seed, C, width, step):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 2)), np.tile([0, 1], 3)
    model = PrivateLinearSVC(solver="output", C=C, width=width, data_norm=1.5, tol=1e-8)
    release, X, y = release_of(model, X, y)
    X2, y2 = X.copy(), y.copy()
    X2[:2] += step * rng.normal(size=(2, 2))
    y2[0] = rng.integers(2)
    shifts = np.linalg.norm(
        release.contribution(X, y) - release.contribution(X2, y2), axis=1
    )
    one = release.run(X, y)
    moved = np.linalg.norm(one - release.run(X2, y2))
    allowed = sum(release.record_move(b, 2, "replace") for b in shifts)
    assert moved <= allowed + release.total_slack(2)
    assert (
        np.linalg.norm(one)
        <= constants_of(6, C, release.contribution.rows.radius, width).weight_norm
    )
    removed = np.linalg.norm(one - release.run(X[1:], y[1:]))
    assert removed <= release.record_move(
        np.inf, 2, "add_remove"
    ) + release.total_slack(2)


# -- the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("unit, intercept", [(1.0, True), (20.0, False)])
def test_without_noise_it_is_the_minimiser(unit, intercept):
    X, y = table()
    model = PrivateLinearSVC(
        accountant=NO_NOISE,
        solver="output",
        C=0.5,
        width=0.3,
        data_norm=unit,
        fit_intercept=intercept,
        tol=1e-6,
    )
    forms = [X, sparse.csr_matrix(X), pd.DataFrame(X, columns=list("abc"))]
    fits = [clone(model).fit(unit * form, y) for form in forms]
    rows = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    rows = np.hstack([rows, np.full((len(X), 1), 0.5 * intercept)])
    sign = 2 * y - 1

    def objective(w):
        slope = np.clip((1.3 - sign * (rows @ w)) / 0.6, 0, 1)
        losses = np.where(slope < 1, 0.3 * slope**2, 1 - sign * (rows @ w))
        return 0.5 * losses.sum() + w @ w / 2, w - 0.5 * rows.T @ (sign * slope)

    best = optimize.minimize(objective, np.zeros(4), jac=True, tol=1e-12).x
    for fitted, form in zip(fits, forms, strict=True):
        np.testing.assert_allclose(unit * fitted.coef_[0], best[:3], atol=1e-5)
        assert fitted.intercept_[0] == pytest.approx(0.5 * best[3], abs=1e-5)
        assert fitted.score(unit * form, y) > 0.85
    assert not hasattr(fits[0], "release_")
    assert fits[0].n_iter_ == [1000]


def test_an_accountant_of_queries_reaches_it():
    X, y = table(n=1000)
    model = PrivateLinearSVC(solver="output", data_norm=2.0)
    assert model.fit(X, y).certificate_.notion is Notion.APPROXIMATE_DP
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    for scenario, accountant in (
        (None, GeneralWasserstein(1.0, alpha=float("inf"), noise="laplace")),
        (chain, GroupPrivacy(1.0, delta=1e-5)),
    ):
        rows = X if scenario is None else (X[:, :1] > 0).astype(float)
        again = clone(model).set_params(scenario=scenario, accountant=accountant)
        assert again.fit(rows, y).certificate_.epsilon == 1.0
    better = clone(model).set_params(accountant=PrivacyLoss(10.0, delta=1e-5))
    assert better.fit(X, y).score(X, y) > 0.8


# -- what an attacker sees ------------------------------------------------------------


def test_no_attacker_tells_a_record_that_moves_as_far_as_it_is_long():
    """Two tables on which the bound is attained: no loss has its corner in between."""
    C, first, second = 0.01, [np.sqrt(3) / 2, 0.5], [0.0, 1.0]
    others = np.tile([0.0, 0.5], (240, 1))
    tables = [np.vstack([row, others]) for row in (first, second)]
    y = np.ones(241, dtype=int)
    prior = pd.DataFrame([[*first, 0], [*second, 1]], columns=["a", "b", "s"])
    scenario = AttributeScenario(
        "s", level="record", prior=prior.assign(t=1), prior_as="law", target="t"
    )
    model = PrivateLinearSVC(
        scenario,
        GeneralWasserstein(1.0, alpha=4.0),
        solver="output",
        C=C,
        width=0.1,
        fit_intercept=False,
        classes=[0, 1],
        tol=1e-6,
    )
    frames = [pd.DataFrame(rows, columns=["a", "b"]) for rows in tables]
    target = pd.Series(y, name="t")
    exact = [
        clone(model).set_params(scenario=None, accountant=NO_NOISE).fit(frame, target)
        for frame in frames
    ]
    # all others pull with their whole weight, the record with all of its own or none
    pull = 240 * C * np.array([0.0, 0.5])
    np.testing.assert_allclose(exact[0].coef_[0], pull + C * np.array(first), atol=1e-7)
    np.testing.assert_allclose(exact[1].coef_[0], pull, atol=1e-7)
    fitted = model.fit(frames[0], target)
    assert fitted.certificate_.sensitivity == pytest.approx(C, rel=1e-5)
    # half of what any other record would do, and of what the longer move alone says
    assert fitted.certificate_.gain == pytest.approx(2.0, rel=1e-5)

    def worlds(noise):
        return [
            lambda n, rng, w=one.coef_[0]: w + noise.sample((n, 2), rng)
            for one in exact
        ]

    assert_tight(fitted.certificate_, fitted.noise_, worlds, seed=0, n_draws=4000)


# -- refusals -------------------------------------------------------------------------


def test_its_tags_say_that_two_classes_are_all_it_takes():
    for solver in ("gradient", "output"):
        tags = get_tags(PrivateLinearSVC(solver=solver))
        assert tags.classifier_tags.multi_class is (solver == "gradient")


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"loss": "hinge"}, "loss"),
        ({"solver": "auto"}, "solver"),
        ({"width": 0.0}, "width"),
        ({"width": np.inf}, "width"),
        ({"tol": 0.0}, "tol"),
        ({"tol": 1e-12}, "tol"),
        ({"classes": [0, 1, 2]}, "solver"),
        ({"C": -1.0}, "C"),
    ],
)
def test_bad_parameters_are_named(changes, match):
    model = PrivateLinearSVC(solver="output").set_params(**changes)
    with pytest.raises(ValueError, match=f"'{match}'"):
        model.fit(*table())
    assert not vars(model).keys() & {"coef_", "certificate_", "noise_", "classes_"}
