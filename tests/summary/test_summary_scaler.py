"""The private scaler: moments, floors, and its place among transformers."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.distributions import Discrete
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario
from skpuffer.summary import PrivateStandardScaler
from tests.refused import refused, warned

from .releases import NO_NOISE

LOW, HIGH = np.array([-2.0, 0.0, 10.0]), np.array([6.0, 1.0, 50.0])


def rows(n=200, seed=0):
    return np.random.default_rng(seed).uniform(LOW, HIGH, size=(n, 3))


def scaler(**options):
    return PrivateStandardScaler(
        **{"bounds": (LOW, HIGH), "accountant": NO_NOISE, **options}
    )


def test_without_noise_it_is_the_scaler_of_scikit_learn():
    X = rows()
    ours, theirs = scaler().fit(X), StandardScaler().fit(X)
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-6
        )
    new = rows(5, seed=1) * 3  # what lies outside is clipped in fit only
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-6)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(new)), new)
    kept = new.copy()
    ours.transform(new)
    np.testing.assert_array_equal(new, kept)


@pytest.mark.parametrize(
    "options", [{"with_mean": False}, {"with_std": False}], ids=str
)
def test_halves(options):
    X = rows()
    ours, theirs = scaler(**options).fit(X), StandardScaler(**options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-6)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X)


def test_what_is_not_asked_is_not_released():
    X = rows()
    accountant = GroupPrivacy(epsilon=1.0, alpha=2.0)
    both = scaler(accountant=accountant).fit(X)
    means = scaler(accountant=accountant, with_std=False).fit(X)
    assert both.noise_.dim == 6 and means.noise_.dim == 3
    assert means.var_ is None and means.scale_ is None
    ratio = both.noise_.std(6)[:3] / means.noise_.std(3)
    np.testing.assert_allclose(ratio, math.sqrt(5 / 4))
    with refused(ValueError, "summary.scaler_nothing_to_fit"):
        scaler(with_mean=False, with_std=False).fit(X)


def test_noise_is_in_proportion_to_the_range():
    X = rows()
    fitted = scaler(accountant=GroupPrivacy(epsilon=0.5, alpha=3.0)).fit(X)
    half = (HIGH - LOW) / 2
    in_units = math.sqrt(1.25 * 3) / len(X) * math.sqrt(3.0 / (2 * 0.5))
    np.testing.assert_allclose(
        fitted.noise_.std(6), in_units * np.concatenate([half, half**2])
    )


def test_the_published_moments_spread_as_the_noise_does(n_trials):
    X, trials = rows(2000), n_trials(200)
    model = scaler(accountant=GroupPrivacy(epsilon=1.0, alpha=2.0))
    means, squares = [], []
    for _ in range(trials):
        model.fit(X)
        means.append(model.mean_)
        squares.append(model.var_ + (model.mean_ - (LOW + HIGH) / 2) ** 2)
    std = model.noise_.std(6)
    for found, expected in ((means, std[:3]), (squares, std[3:])):
        ratio = np.std(found, axis=0) / expected
        assert np.all(np.abs(ratio - 1) < 5 / math.sqrt(2 * trials))


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 1e24])
def test_scales_are_positive_and_within_public_limits(epsilon):
    X = np.full((20, 3), LOW)
    fitted = scaler(accountant=GroupPrivacy(epsilon=epsilon, alpha=2.0)).fit(X)
    half = (HIGH - LOW) / 2
    least = np.clip(fitted.noise_.std(6)[3:] / half**2, 1e-6, 1)
    # a constant column: all that is left is the floor, or the noise above it
    assert np.all(fitted.var_ >= half**2 * least * (1 - 1e-12))
    assert np.all(fitted.var_ <= half**2)
    np.testing.assert_array_equal(fitted.scale_, np.sqrt(fitted.var_))
    if epsilon == 1e24:
        np.testing.assert_allclose(fitted.var_, 1e-6 * half**2)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("size", ["public", "private"])
def test_no_scale_is_less_than_what_noise_hides(size):
    """Whether the number of records is divided by or a noisy one."""
    X, least = np.full((400, 3), (LOW + HIGH) / 2), []
    for _ in range(8):
        fitted = scaler(
            scenario=RecordScenario(size=size), accountant=PrivacyLoss(0.5)
        ).fit(X)
        least.append(np.min(fitted.var_ / ((HIGH - LOW) / 2) ** 2))
    # that of a second moment of a public number of records
    noise = scaler(accountant=PrivacyLoss(0.5)).fit(X).noise_
    assert min(least) >= 0.5 * noise.std(6)[3] / ((HIGH - LOW) / 2)[0] ** 2
    assert min(least) > 1e-3


def test_laws_given_outright_need_no_bounds():
    scenario = LawsScenario([(Discrete([[0.0, 1.0]]), Discrete([[3.0, 5.0]]))])
    X = np.array([[1.0], [3.0]])
    accountant = GeneralWasserstein(1e24, 2.0, noise="gaussian")
    fitted = PrivateStandardScaler(scenario, accountant).fit(X)
    assert fitted.certificate_.sensitivity == pytest.approx(5.0)
    np.testing.assert_allclose([fitted.mean_[0], fitted.scale_[0]], [2.0, 1.0])
    constant = PrivateStandardScaler(
        LawsScenario([(Discrete([[0.0, 1.0]]), Discrete([[0.0, 1.0]]))]),
        GeneralWasserstein(),
    )
    with warned(PrivacyWarning, "release.exact_without_noise"):
        constant.fit(np.ones((4, 1)))
    np.testing.assert_array_equal(constant.scale_, 1.0)


def test_a_secret_column_is_dropped_in_fit_and_transform():
    X = pd.DataFrame(rows(), columns=["a", "b", "c"]).assign(sex=np.arange(200) % 2)
    public = X.max() + X.min() - X  # other rows of the same ranges
    scenario = AttributeScenario("sex", level="record", prior=public, prior_as="law")
    fitted = PrivateStandardScaler(scenario, NO_NOISE).fit(X)
    assert list(fitted.get_feature_names_out()) == ["a", "b", "c"]
    without = X.drop(columns="sex")
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(without))
    np.testing.assert_allclose(fitted.transform(X).std(axis=0), 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind, name", [(pd, "pandas"), (pl, "polars")])
def test_frames_and_set_output(kind, name):
    X = rows()
    frame = kind.DataFrame({c: X[:, i] for i, c in enumerate("abc")})
    fitted = scaler().set_output(transform=name).fit(frame)
    out = fitted.transform(frame)
    assert isinstance(out, kind.DataFrame)
    assert list(out.columns) == list("abc")
    np.testing.assert_allclose(out.to_numpy(), scaler().fit_transform(X), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[["b", "a", "c"]])


def test_in_pipelines_column_transformers_and_searches():
    X = pd.DataFrame(rows(), columns=["a", "b", "c"]).assign(kind="k")
    y = X["a"] + X["c"]
    mixed = ColumnTransformer(
        [("scale", scaler(), make_column_selector(dtype_include="number"))]
    )
    pipe = make_pipeline(mixed, Ridge())
    assert pipe.fit(X, y).score(X, y) > 0.99
    search = GridSearchCV(
        make_pipeline(scaler(accountant=GroupPrivacy()), Ridge()),
        {"privatestandardscaler__accountant__epsilon": [1e-3, 1e9]},
        cv=3,
        error_score="raise",
    ).fit(X[["a", "b", "c"]], y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] < scores[1]


def test_clone_pickle_and_bad_shapes():
    X = rows()
    fitted = scaler().fit(X)
    assert not hasattr(clone(fitted), "mean_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    for bad, match in (
        (X[:, :2], "summary.scaler_shape_differs"),
        (X[0], "table.not_two_dimensional"),
    ):
        with refused(ValueError, match):
            fitted.inverse_transform(bad)
