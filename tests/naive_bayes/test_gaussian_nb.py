"""Gaussian naive Bayes: what it estimates, of whom, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.exceptions import PrivacyLeakWarning, UnsupportedError
from skpuffer.naive_bayes import PrivateGaussianNB
from skpuffer.naive_bayes._gaussian import (
    class_gaussians,
    class_moments,
    shrunk,
    shrunk_counts,
)
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.scenarios import AttributeScenario, BoundedOdds, GaussianScenario
from skpuffer.schema import Schema
from skpuffer.utils._bounds import Bounds
from tests.refused import refused, says

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
PURE = GroupPrivacy(epsilon=1.0, alpha=math.inf, noise="laplace")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def model(**options):
    return PrivateGaussianNB(**{"bounds": (0, 8), "classes": [0, 1, 2]} | options)


# -- what it estimates -----------------------------------------------------------------


def test_without_noise_it_is_scikit_learns(iris):
    found = model(accountant=NO_NOISE).fit(*iris)
    exact = GaussianNB().fit(*iris)
    np.testing.assert_allclose(found.theta_, exact.theta_, atol=1e-6)
    np.testing.assert_allclose(found.var_, exact.var_, rtol=1e-3)
    np.testing.assert_allclose(found.class_prior_, exact.class_prior_, atol=1e-9)
    for name in ("predict", "predict_proba", "predict_joint_log_proba"):
        np.testing.assert_allclose(
            getattr(found, name)(iris[0]), getattr(exact, name)(iris[0]), atol=0.05
        )
    assert found.class_count_.sum() == pytest.approx(150)


def test_the_release_is_of_the_stated_sensitivity(iris):
    found = model().fit(*iris)
    assert found.certificate_.notion is Notion.APPROXIMATE_DP
    assert found.certificate_.sensitivity == pytest.approx(math.sqrt(6))
    pure = model(accountant=PURE).fit(*iris)
    assert isinstance(pure.noise_, LaplaceNoise)
    assert pure.noise_.scale == pytest.approx(7.0)  # 1 + 3 d / 2 for d = 4
    assert pure.certificate_.epsilon == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_all_that_is_published_is_possible_whatever_the_noise(iris, seed):
    """Negative variances and empty classes are made by noise, and not published."""
    found = model(accountant=PrivacyLoss(1e-3, 1e-5), random_state=seed).fit(*iris)
    assert np.all(found.var_ > 0)
    assert np.all((found.theta_ >= 0) & (found.theta_ <= 8))
    assert np.all(found.class_count_ > 0)
    assert found.class_count_.sum() == pytest.approx(150)
    assert found.class_prior_.sum() == pytest.approx(1)
    assert np.all(np.isfinite(found.predict_log_proba(iris[0])))


def test_little_budget_leaves_classes_alike():
    """Post-processing shrinks to what all records share."""
    moments = class_moments(Bounds((-1.0,), (1.0,)), 2)
    value = moments.total(np.array([[0.5], [-0.5]]), [0, 1])
    counts, means, variances = class_gaussians(value, 1e6, 2, 2)
    assert counts == pytest.approx([1, 1])
    assert means[0] == pytest.approx(means[1])
    assert variances[0] == pytest.approx(variances[1])


def test_what_noise_leaves_unknown_of_a_mean_is_in_the_variance():
    """Kept share g of the distance to the centre, and noise variance v: g v is left."""
    u = np.repeat([[-0.8], [0.8]], 500, axis=0)
    moments = class_moments(Bounds((-1.0,), (1.0,)), 2)
    value = moments.total(u, np.repeat([0, 1], 500))
    for deviation in (5.0, 50.0):
        _, means, variances = class_gaussians(value, deviation, 1000, 2)
        noise = (deviation / 500) ** 2
        kept = (0.64 - noise) / 0.64
        assert means[1, 0] == pytest.approx(0.8 * kept)
        assert variances[1, 0] >= kept * noise


def test_shares_of_distances_that_are_kept():
    values, noise = np.array([[2.0], [-2.0]]), np.ones((2, 1))
    shares = np.full((2, 1), 0.5)
    # the mean square 4 is 3 of spread and 1 of noise
    kept = shrunk(values, np.zeros(1), noise, shares)
    np.testing.assert_allclose(kept, 0.75)
    np.testing.assert_array_equal(shrunk(values, np.zeros(1), 9 * noise, shares), 0)
    np.testing.assert_array_equal(shrunk(values, np.zeros(1), 0 * noise, shares), 1)


def test_counts_are_shrunk_to_equal_ones():
    # 40 and 60 are 200 from equal ones by squares; noise explains (2 - 1) * 10**2
    found = shrunk_counts(np.array([40.0, 60.0]), 10.0, 100)
    np.testing.assert_allclose(found, [45, 55])
    # the public sum is met, and no size is below its noise
    found = shrunk_counts(np.array([-500.0, 90.0]), 20.0, 100)
    assert found.sum() == pytest.approx(100)
    assert found.min() > 0


# -- classes ---------------------------------------------------------------------------


def test_classes_are_never_those_of_the_labels_where_they_are_declared(iris):
    """One record of a class of its own changes nothing that is public."""
    X, y = iris
    odd = y.copy()
    odd[0] = 7
    found = model(accountant=NO_NOISE, classes=[0, 1, 2, 3]).fit(X, odd)
    assert found.classes_.tolist() == [0, 1, 2, 3]
    assert found.theta_.shape == (4, 4)
    assert "although" not in " ".join(map(str, found.certificate_.assumptions))
    # a record of no class counts as nothing
    np.testing.assert_allclose(found.class_count_, [49, 50, 50, 1], atol=0.5)
    told = model(classes=None).fit(X, y).certificate_
    assert says(told.assumptions, "assume.values_clipped_labels_found")


def test_labels_that_are_missing_count_as_nothing(iris):
    X, y = iris
    gaps = y.astype(float)
    gaps[:50] = np.nan
    found = model(accountant=NO_NOISE).fit(X, gaps)
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.class_count_[0] == found.class_count_.min()


def test_priors_are_public_and_set_the_odds(iris):
    found = model(priors=[0.5, 0.25, 0.25], accountant=NO_NOISE).fit(*iris)
    np.testing.assert_array_equal(found.class_prior_, [0.5, 0.25, 0.25])


# -- tables ----------------------------------------------------------------------------


def test_a_raw_table_is_read_by_its_schema():
    rng = np.random.default_rng(0)
    n = 400
    sex = rng.choice(["F", "M"], n)
    table = pd.DataFrame({"sex": sex, "age": rng.uniform(20, 60, n), "note": "x"})
    table.loc[sex == "M", "age"] += 20
    y = pd.Series(np.where(sex == "M", "yes", "no"), name="answer")
    schema = Schema(
        {"age": (0, 100), "sex": ["F", "M"], "answer": ["no", "yes"]}, target="answer"
    )
    found = PrivateGaussianNB(schema=schema, random_state=0).fit(table, y)
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.theta_.shape == (2, 5)  # age, F, M, and gaps of either
    assert found.score(table, y) > 0.95
    new = pd.DataFrame({"age": [np.nan, 30], "sex": ["neither", None]})
    assert np.all(np.isfinite(found.predict_proba(new)))


def test_it_stands_in_a_pipeline(iris):
    X, y = iris
    scaled = make_pipeline(FunctionTransformer(), model(bounds=(0, 3)))
    assert scaled.fit(X, y).predict(X).shape == (150,)


# -- scenarios -------------------------------------------------------------------------


def test_a_secret_that_moves_little_costs_little():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)).clip(-3, 3), rng.integers(0, 2, 200)
    covariance = np.eye(3)
    covariance[0, 1] = covariance[1, 0] = 0.1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scenario = GaussianScenario(
        covariance=pd.DataFrame(covariance, frame.columns, frame.columns),
        secret="a",
        domain=(-1, 1),
    )
    accountant = PrivacyLoss(1.0, 1e-5, noise="gaussian")
    found = PrivateGaussianNB(scenario, accountant, bounds=(-4, 4), classes=[0, 1]).fit(
        frame, y
    )
    # a moves by 2 and b by 0.2, c not at all; of u = x / 4 and u**2 by d and d (2 - d)
    said = math.hypot(*(d * math.hypot(1, 2 - d) for d in (0.5, 0.05)))
    assert found.certificate_.sensitivity == pytest.approx(said, rel=1e-6)
    assert says(found.certificate_.assumptions, "assume.targets_public")


def test_odds_within_a_range_gain():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (100, 3)), columns=["race", "a", "b"])
    scenario = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    found = PrivateGaussianNB(scenario, bounds=(-1, 1), classes=[0, 1])
    found.fit(frame, rng.integers(0, 2, 100))
    assert found.n_features_in_ == 2
    assert found.certificate_.gain > 1.2
    assert found.predict(frame).shape == (100,)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"bounds": None}, "bayes.bounds_missing", {}),
        ({"bounds": (1, 0)}, "bounds.low_not_below_high", {"name": "bounds"}),
        ({"priors": [0.5, 0.5]}, "bayes.priors_count_mismatch", {}),
        ({"priors": [0.5, 0.9, 0.1]}, "bayes.priors_sum_not_one", {}),
        ({"priors": [-0.5, 0.5, 1]}, "bayes.priors_not_probabilities", {}),
        ({"classes": [0]}, "target.one_class_only", {}),
        ({"classes": ["1", 1.0]}, "schema.levels_read_alike", {"parameter": "classes"}),
        ({"schema": Schema({"a": (0, 1)})}, "schema.parameter_disagrees_at_column", {}),
        (
            {"schema": Schema({"a": (0, 1)}), "bounds": None},
            "schema.array_column_count_differs",
            {},
        ),
        (
            {"schema": Schema(dict.fromkeys("abcdy", (0, 8)), target="y")}
            | {"bounds": None, "classes": None},
            "schema.number_for_classifier",
            {},
        ),
        (
            {
                "schema": Schema(
                    dict.fromkeys("abcd", (0, 8)) | {"y": [0, 1]}, target="y"
                ),
                "bounds": None,
            },
            "schema.parameter_disagrees",
            {},
        ),
    ],
)
def test_contradictory_parameters_are_named(iris, options, code, parameters):
    fresh = model(**options)
    with refused((ValueError, UnsupportedError), code, **parameters):
        fresh.fit(*iris)
    assert not hasattr(fresh, "certificate_")


def test_tables_that_are_too_small_are_refused(iris):
    X, y = iris
    with refused(ValueError, "table.too_few_samples", least=2):
        model().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="0 sample"):
        model().fit(X[:0], y[:0])
    with refused(TypeError, "parameter.fit_argument_unexpected", name="sample_weight"):
        model().fit(X, y, sample_weight=np.ones(150))


def test_bounds_of_the_data_are_an_estimate(iris):
    with pytest.warns(PrivacyLeakWarning):
        found = model(bounds="empirical").fit(*iris)
    assert found.certificate_.notion is Notion.ESTIMATED
