"""Deviations and intervals by noise of what was released."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import dlaplace, laplace, norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skpuffer._template._intervals import interval_width
from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.compose import OutputPerturbation
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
)
from skpuffer.schema import Number, Schema
from skpuffer.summary import (
    PrivateMean,
    PrivateStandardScaler,
    PrivateStatistic,
    PrivateSummary,
)
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
Y = (X[:, 0] > 0).astype(int)
TABLE = pd.DataFrame(
    {
        "age": 50 + 30 * X[:, 0],
        "sex": np.where(X[:, 1] > 0, "f", "m"),
        "old": X[:, 0] > 0,
    }
)
FACTS = {"bounds": {"age": (18, 90)}, "categories": {"sex": ["f", "m"]}}
LAPLACE = GroupPrivacy(1.0, math.inf, noise="laplace")
COMPLETE = Schema({"age": Number(18, 90, missing=False)})

#: Estimators, what they are fitted to, and the attributes that are known.
CASES = {
    "mean": (PrivateMean(bounds=(1e6, [1e6 + 2, 2e6])), (1e6 + 1 + X,), ["mean_"]),
    "laplace": (PrivateMean(accountant=LAPLACE, bounds=(-1, 1)), (X,), ["mean_"]),
    "scaler": (PrivateStandardScaler(bounds=(-1, [1, 5])), (X,), ["mean_"]),
    "means": (
        PrivateStandardScaler(bounds=(-1, 1), with_std=False),
        (X,),
        ["mean_"],
    ),
    "statistic": (
        PrivateStatistic(np.mean, sensitivity=0.1, n_outputs=1),
        (X,),
        ["value_"],
    ),
    "perturbed": (
        OutputPerturbation(
            LinearRegression(), query=["coef_", "intercept_"], sensitivity=0.2
        ),
        (X, Y),
        ["value_"],
    ),
    "one attribute": (
        OutputPerturbation(LinearRegression(), query="coef_", sensitivity=0.2),
        (X, Y),
        ["value_"],
    ),
    "huber": (
        PrivateHuberRegressor(data_norm=2.0, target_bounds=(0, 40)),
        (X, 40.0 * Y),
        ["coef_", "intercept_"],
    ),
    "logistic": (
        PrivateLogisticRegression(solver="output", classes=[0, 1], data_norm=2.0),
        (X, Y),
        ["coef_", "intercept_"],
    ),
    "three classes": (
        PrivateLogisticRegression(
            solver="output", classes=[0, 1, 2], fit_intercept=False
        ),
        (X, Y),
        ["coef_"],
    ),
    "summary": (PrivateSummary(statistics=["mean", "rate"], **FACTS), (TABLE,), None),
    "counts": (
        PrivateSummary(statistics=["histogram"], bins=4, **FACTS),
        (TABLE,),
        None,
    ),
    "groups": (
        PrivateSummary(statistics=["count"], by="sex", columns=["age"], **FACTS),
        (TABLE,),
        None,
    ),
    "schema": (
        PrivateSummary(statistics=["mean"], schema=COMPLETE, columns=["age"]),
        (TABLE,),
        None,
    ),
}


def flat(value):
    """All numbers of an attribute as one vector."""
    if isinstance(value, dict):
        return np.concatenate([flat(held) for held in value.values()])
    return np.ravel(np.asarray(value, dtype=float))


@pytest.mark.parametrize("name", CASES)
def test_deviations_are_those_of_the_noise(name):
    estimator, arguments, attributes = CASES[name]
    attributes = attributes or ["result_"]
    n_trials = 100
    fits = [
        clone(estimator).set_params(random_state=seed).fit(*arguments)
        for seed in range(n_trials)
    ]
    for attribute in attributes:
        draws = np.array([flat(getattr(fitted, attribute)) for fitted in fits])
        said = flat(getattr(fits[0], f"{attribute}std_"))
        assert said.shape == draws.shape[1:]
        known = ~np.isnan(said)
        # of what is public there is no noise
        noisy = known & (said > 0)
        assert noisy.any()
        found = np.sqrt(np.mean(np.var(draws[:, noisy], axis=0) / said[noisy] ** 2))
        # a variance from 100 draws is off by 14 %, the mean of several by less
        assert 0.82 < found < 1.18
        assert not 0.82 < 0.7 * found < 1.18
        assert np.all(draws[:, known & (said == 0)].std(axis=0) == 0)


@pytest.mark.parametrize("name", CASES)
def test_a_preview_knows_them_where_it_knows_the_shape(name):
    estimator, arguments, _ = CASES[name]
    fitted = clone(estimator).set_params(random_state=0).fit(*arguments)
    preview = estimator.preview(60, example=arguments[0][:1])
    names = {k.removesuffix("std_") for k in vars(fitted) if k.endswith("_std_")}
    if not isinstance(estimator, PrivateStatistic | OutputPerturbation):
        assert set(preview.std) == names
    for key, held in preview.std.items():
        np.testing.assert_allclose(flat(held), flat(getattr(fitted, f"{key}std_")))


@pytest.mark.parametrize(
    "accountant",
    [
        PrivacyLoss(1.0, 1e-6),
        LAPLACE,
        GroupPrivacy(1.0, math.inf, noise="discrete_laplace"),
    ],
    ids=["gaussian", "laplace", "discrete"],
)
def test_intervals_hold_as_often_as_they_say(accountant):
    summary = PrivateSummary(
        accountant=accountant,
        statistics=["histogram"],
        bins={"age": np.linspace(18, 90, 5)},
        bounds={"age": (18, 90)},
    )
    table = TABLE[["age"]]
    exact = np.histogram(table["age"].clip(18, 90), np.linspace(18, 90, 5))[0]
    level, n_trials, held, narrow = 0.8, 120, [], []
    for seed in range(n_trials):
        fitted = clone(summary).set_params(random_state=seed).fit(table)
        low, high = fitted.confidence_interval(level, of="table")["result_"]
        assert low.shape == high.shape == fitted.result_.shape == (4, 1)
        held += list((low["age"] <= exact) & (exact <= high["age"]))
        half = 0.7 * (high["age"] - low["age"]) / 2
        narrow += list(np.abs(fitted.result_["age"] - exact) <= half)
    # the entries of a fit are independent
    error = 4 * math.sqrt(level * (1 - level) / len(held))
    assert np.mean(held) > level - error
    # of whole numbers the least interval may hold more often
    if fitted.noise_.integer:
        return
    assert np.mean(held) < level + error
    # with 0.7 times the width it would not
    assert np.mean(narrow) < level - error


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999])
def test_widths_against_scipy(level):
    for scale in (0.3, 1.0, (2.0, 5.0)):
        width = interval_width(GaussianNoise(scale), level)
        assert width == pytest.approx(norm.ppf((1 + level) / 2), rel=1e-12)
        width = interval_width(LaplaceNoise(scale), level)
        assert width == pytest.approx(
            laplace.ppf((1 + level) / 2) / laplace.std(), rel=1e-12
        )
    for scale in (0.05, 0.3, 1.0, 7.5, 1e4):
        noise = DiscreteLaplaceNoise(scale)
        k = round(interval_width(noise, level) * noise.std())

        def inside(k, a=1 / scale):
            return dlaplace.cdf(k, a) - dlaplace.cdf(-k - 1, a)

        assert inside(k) >= level - 1e-12
        assert k == 0 or inside(k - 1) < level
    correlated = CorrelatedGaussianNoise(covariance=[[2.0, 1.0], [1.0, 1.0]])
    assert interval_width(correlated, level) == pytest.approx(norm.ppf((1 + level) / 2))


def test_no_noise_has_no_width():
    for noise in (GaussianNoise(0.0), LaplaceNoise(0.0), DiscreteLaplaceNoise(0.0)):
        assert interval_width(noise, 0.9) == 0.0
    with refused(UnsupportedError, "noise.quantiles_unknown", owner="L2LaplaceNoise"):
        interval_width(L2LaplaceNoise(1.0), 0.9)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, None, "high"])
def test_the_level_is_a_probability(level):
    fitted = PrivateMean(bounds=(-1, 1)).fit(X)
    with refused(
        (ValueError, TypeError),
        ("parameter.not_real_number", "parameter.probability_out_of_range"),
    ):
        fitted.confidence_interval(level)


def test_what_is_not_affine_is_not_offered():
    """Quantiles and modes; models by noisy gradients, ridge."""
    summary = PrivateSummary(
        statistics=["mean", "std", "var", "median", "quantile"],
        columns=["age"],
        bins=8,
        **FACTS,
    ).fit(TABLE)
    known = summary.result_std_["age"]
    assert list(known.index) == ["mean", "std", "var"]
    assert not hasattr(PrivateRidge(), "confidence_interval")
    trained = PrivateLogisticRegression(solver="gradient").fit(X, Y)
    assert not hasattr(trained, "coef_std_")
    with refused(UnsupportedError, "release.no_confidence_intervals"):
        trained.confidence_interval()


def test_the_number_of_records_has_no_noise():
    fitted = PrivateSummary(statistics=["count", "mean"], columns=["age"], **FACTS).fit(
        TABLE
    )
    assert fitted.result_std_.loc["count", "age"] == 0
    ((low, high),) = fitted.confidence_interval().values()
    assert low.loc["count", "age"] == high.loc["count", "age"] == 60


def test_intervals_are_of_the_kind_of_the_attribute():
    estimator, arguments, _ = CASES["perturbed"]
    low, high = clone(estimator).fit(*arguments).confidence_interval(0.9)["value_"]
    assert set(low) == {"coef_", "intercept_"}
    assert low["coef_"].shape == (2,) and np.all(low["coef_"] < high["coef_"])
    estimator, arguments, _ = CASES["huber"]
    intervals = clone(estimator).fit(*arguments).confidence_interval(0.9)
    assert list(intervals) == ["coef_", "intercept_"]
    assert intervals["intercept_"][0] < intervals["intercept_"][1]


@given(
    st.floats(0.01, 0.98),
    st.floats(0.001, 0.019),
    st.floats(0.05, 1e6),
    st.sampled_from([GaussianNoise, LaplaceNoise, DiscreteLaplaceNoise]),
)
def test_widths_grow_with_the_level_and_not_with_the_scale(level, more, scale, family):
    noise = family(scale)
    width = interval_width(noise, level)
    assert 0 <= width <= interval_width(noise, level + more)
    # Chebyshev's inequality, whatever the family; of whole numbers up to the next one
    assert width <= 1 / math.sqrt(1 - level) + 1e-9 + 1 / noise.std() * noise.integer
    if not noise.integer:
        assert interval_width(noise.with_scale(2 * scale), level) == width


@given(st.integers(-(10**9), 10**9), st.floats(1e-6, 1e6), st.integers(1, 5))
def test_deviations_do_not_depend_on_the_offset(middle, half, dim):
    low = np.full(dim, float(middle))
    bounds = (low, low + np.maximum(half, np.spacing(np.abs(low)) * 4))
    preview = PrivateMean(bounds=bounds).preview(100, n_features=dim)
    np.testing.assert_array_equal(preview.std["mean_"], preview.noise.std(dim))


def test_an_interval_is_the_quantile_on_either_side():
    accountant = PrivacyLoss(noise="gaussian")
    fitted = PrivateMean(accountant=accountant, bounds=(-1, 1)).fit(X)
    low, high = fitted.confidence_interval(0.9, of="table")["mean_"]
    half = norm.ppf(0.95) * fitted.mean_std_
    np.testing.assert_allclose(low, fitted.mean_ - half, rtol=1e-12)
    np.testing.assert_allclose(high, fitted.mean_ + half, rtol=1e-12)
