"""Private principal components: what they are of, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import PrivacyLeakWarning, UnsupportedError
from skpuffer.privacy import Notion
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    GaussianScenario,
    RecordScenario,
)
from skpuffer.schema import Schema
from tests.refused import refused

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
#: In which no row of iris is scaled down.
WIDE = {"bounds": (0, 8), "data_norm": 8.0, "accountant": NO_NOISE}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)[0]


# -- what it finds ---------------------------------------------------------------------


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_without_noise_it_is_scikit_learns(iris, k, whiten):
    found = PrivatePCA(k, whiten=whiten, **WIDE).fit(iris)
    exact = PCA(k, whiten=whiten).fit(iris)
    for name in (
        "components_",
        "mean_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "noise_variance_",
        "n_components_",
    ):
        ours, theirs = getattr(found, name), getattr(exact, name)
        np.testing.assert_allclose(ours, theirs, atol=1e-6, err_msg=name)
    scores = found.transform(iris)
    np.testing.assert_allclose(scores, exact.transform(iris), atol=1e-5)
    covariance = PCA(k).fit(iris).get_covariance()
    np.testing.assert_allclose(found.get_covariance(), covariance, atol=1e-6)
    np.testing.assert_allclose(
        found.inverse_transform(scores),
        exact.inverse_transform(exact.transform(iris)),
        atol=1e-5,
    )


def test_the_release_is_of_the_stated_sensitivity(iris):
    for estimate_mean, weight in ((True, 0.5), (False, 0.0)):
        for relation, said in (
            ("add_remove", math.sqrt(1 + weight**2 - 1 / 4)),
            ("replace", (2 + weight**2) / math.sqrt(2)),
        ):
            found = PrivatePCA(
                bounds=(0, 8),
                estimate_mean=estimate_mean,
                scenario=RecordScenario(relation=relation),
                accountant=PrivacyLoss(1.0, 1e-5),
            ).fit(iris)
            assert found.certificate_.notion is Notion.APPROXIMATE_DP
            assert found.certificate_.sensitivity == pytest.approx(said)


def test_a_part_of_the_variance_is_of_the_noisy_one(iris):
    exact = PrivatePCA(0.95, **WIDE).fit(iris)
    assert exact.n_components_ == 2
    # noise of which all components together hold too little: all are kept
    noisy = PrivatePCA(
        0.999999, bounds=(0, 8), accountant=PrivacyLoss(1e-3, 1e-5), random_state=0
    ).fit(iris)
    assert noisy.n_components_ == 4
    assert noisy.explained_variance_ratio_.sum() <= 1


@pytest.mark.parametrize("seed", range(3))
def test_all_that_is_published_is_possible_whatever_the_noise(iris, seed):
    found = PrivatePCA(
        3,
        bounds=(0, 8),
        whiten=True,
        accountant=PrivacyLoss(0.01, 1e-5),
        random_state=seed,
    ).fit(iris)
    assert np.all(found.explained_variance_ >= 0)
    assert np.all(np.diff(found.explained_variance_) <= 0)
    assert np.all(np.linalg.eigvalsh(found.get_covariance()) > -1e-9)
    assert np.all(np.isfinite(found.transform(iris)))
    np.testing.assert_allclose(
        found.components_ @ found.components_.T, np.eye(3), atol=1e-12
    )


def test_noise_is_taken_off_the_variances():
    X = load_digits(return_X_y=True)[0]
    exact = np.linalg.eigvalsh(np.cov(X.T))[::-1][:5]
    # no row is further from the middle than that
    found = PrivatePCA(
        5,
        bounds=(0, 16),
        data_norm=64.0,
        accountant=PrivacyLoss(3.0, 1e-5),
        random_state=0,
    ).fit(X)
    np.testing.assert_allclose(found.explained_variance_, exact, rtol=0.15)


def test_the_centre_is_taken_for_the_mean_where_none_is_released(iris):
    found = PrivatePCA(
        center=[5, 3, 4, 1], data_norm=6.0, estimate_mean=False, accountant=NO_NOISE
    ).fit(iris)
    np.testing.assert_array_equal(found.mean_, [5, 3, 4, 1])
    plain = PrivatePCA(data_norm=12.0, accountant=NO_NOISE).fit(iris)
    np.testing.assert_allclose(plain.mean_, iris.mean(), atol=1e-6)


def test_rows_are_scaled_down_in_the_fit_alone():
    X = np.vstack([np.eye(2)] * 50 + [[1e6, 0.0]])
    found = PrivatePCA(1, data_norm=1.0, accountant=NO_NOISE).fit(X)
    assert np.abs(found.mean_).max() < 1
    assert np.abs(found.transform(X)).max() > 1e5


def test_rows_beyond_all_bounds_are_one_record_each():
    X = np.vstack([np.eye(2)] * 50 + [[1e300, -1e300]])
    for options in ({"data_norm": 1.0}, {"bounds": (0, 1)}):
        found = PrivatePCA(2, accountant=NO_NOISE, **options).fit(X)
        assert np.all(np.isfinite(found.components_))
        assert np.all(np.abs(found.mean_) <= 1)


# -- tables ----------------------------------------------------------------------------


def test_it_stands_in_pipelines_and_column_transformers(iris):
    pca = PrivatePCA(2, bounds=(0, 8), random_state=0)
    beside = make_column_transformer((pca, list(iris.columns[:3])), remainder="drop")
    frame = beside.set_output(transform="pandas").fit_transform(iris)
    assert frame.columns.tolist() == [
        "privatepca__privatepca0",
        "privatepca__privatepca1",
    ]
    scaled = make_pipeline(FunctionTransformer(), pca).fit(iris)
    assert scaled.transform(iris).shape == (150, 2)


def test_a_raw_table_is_read_by_its_schema():
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {"sex": rng.choice(["F", "M", None], n), "age": rng.uniform(0, 120, n)}
    )
    schema = Schema({"age": (0, 100), "sex": ["F", "M"]})
    found = PrivatePCA(2, schema=schema).set_output(transform="pandas").fit(table)
    assert found.components_.shape == (2, 5)
    assert found.transform(table[["sex", "age"]]).shape == (n, 2)


# -- scenarios -------------------------------------------------------------------------


def test_a_secret_that_moves_little_costs_little():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    scenario = GaussianScenario(
        covariance=pd.DataFrame(np.eye(3), frame.columns, frame.columns),
        secret="a",
        domain=(-0.2, 0.2),
    )
    found = PrivatePCA(
        2, data_norm=4.0, scenario=scenario, accountant=PrivacyLoss(1.0, 1e-5)
    ).fit(frame)
    said = 0.1 * math.sqrt(0.25 + 1.9**2)
    assert found.certificate_.sensitivity == pytest.approx(said)


def test_odds_within_a_range_gain():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (100, 3)), columns=["race", "a", "b"])
    scenario = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    found = PrivatePCA(2, bounds=(-1, 1), scenario=scenario).fit(frame)
    assert found.n_features_in_ == 2
    assert found.certificate_.gain > 1.2
    np.testing.assert_array_equal(
        found.transform(frame), found.transform(frame.drop(columns="race"))
    )


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, said",
    [
        ({"bounds": None}, "public bounds"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"n_components": "mle"}, "n_components"),
        ({"n_components": 5}, "at most the 4 columns"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.0}, "n_components"),
        ({"n_components": -0.5}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"center": 1.0}, "center"),
        ({"bounds": None, "center": 1.0}, "data_norm"),
        ({"bounds": None, "center": [1.0] * 3, "data_norm": 1.0}, "3 numbers"),
        ({"bounds": None, "center": "x", "data_norm": 1.0}, "center"),
        ({"data_norm": -1.0}, "data_norm"),
        ({"schema": Schema({"a": (0, 1)})}, "schema"),
    ],
)
def test_contradictory_parameters_are_named(iris, options, said):
    fresh = PrivatePCA(**({"bounds": (0, 8)} | options))
    with pytest.raises((ValueError, TypeError, UnsupportedError), match=said):
        fresh.fit(iris)
    assert not hasattr(fresh, "certificate_")


def test_tables_that_are_too_small_are_refused(iris):
    with refused(ValueError, "decomposition.too_few_records"):
        PrivatePCA(bounds=(0, 8)).fit(iris[:1])
    with pytest.raises(ValueError, match="0 sample"):
        PrivatePCA(bounds=(0, 8)).fit(iris[:0])
    fitted = PrivatePCA(2, bounds=(0, 8)).fit(iris)
    with refused(ValueError, "decomposition.components_shape_mismatch"):
        fitted.inverse_transform(iris)


def test_bounds_of_the_data_are_an_estimate(iris):
    with pytest.warns(PrivacyLeakWarning):
        found = PrivatePCA(bounds="empirical").fit(iris)
    assert found.certificate_.notion is Notion.ESTIMATED


def test_the_edge_of_a_spectrum_is_that_of_noise_alone(monkeypatch):
    """Of rows at the centre, by as many draws of the noise as one likes."""
    n, d, held = 50, 12, []
    monkeypatch.setattr(PrivatePCA, "_publish", lambda self, *given: held.append(given))
    model = PrivatePCA(data_norm=2.0, estimate_mean=False).fit(np.zeros((n, d)))
    monkeypatch.undo()
    (value, release) = held[0]
    rng, entries, largest = np.random.default_rng(0), [], []
    first, second = np.triu_indices(d, 1)
    for drawn in model.noise_.sample((200, value.size), rng):
        _, products = release.contribution.moments(drawn, n)
        noisy = 2.0**2 * n / (n - 1) * (products - np.eye(d) / d)
        entries.append(noisy[first, second])
        largest.append(np.linalg.eigvalsh(noisy)[-1])
    model._publish(np.zeros(value.size), release)
    edge = np.min(model._scale) ** 2
    assert edge == pytest.approx(2 * np.std(entries) * math.sqrt(d), rel=0.03)
    assert 0.8 * edge < np.mean(largest) < 1.1 * edge
