"""Distribution functions on a fine grid."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.distributions import PointMass
from skpuffer.exceptions import ScenarioError, SeededNoiseWarning, UnsupportedError
from skpuffer.scenarios import DependenceScenario, LawsScenario, RecordScenario
from skpuffer.summary import PrivateCDF
from tests.refused import refused


def test_it_is_the_distribution_function_of_large_tables():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100_000), rng.exponential(size=100_000)])
    model = PrivateCDF(bounds=(-10, 10)).fit(X)
    at = np.array([[-1.0, 0.1], [0.0, 0.5], [1.5, 3.0]])
    exact = np.array([np.mean(at[i] >= X, axis=0) for i in range(3)])
    np.testing.assert_allclose(model.cdf(at), exact, atol=2e-3)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    exact = np.quantile(X, levels, axis=0)
    np.testing.assert_allclose(model.quantiles(levels), exact, atol=0.02)
    np.testing.assert_array_equal(model.median(), model.quantiles(0.5))
    np.testing.assert_allclose(
        model.interquartile_range(), exact[3] - exact[1], atol=0.03
    )
    assert [len(e) for e in model.edges_] == [4097, 4097]


@settings(deadline=None)
@given(
    st.lists(st.floats(-5, 15), min_size=1, max_size=9),
    st.floats(0.01, 5),
    st.integers(2, 90),
    st.integers(0, 2**32 - 1),
)
def test_it_is_monotone_within_bounds_and_inverse_to_its_quantiles(x, epsilon, n, seed):
    model = PrivateCDF(
        accountant=PrivacyLoss(epsilon), bounds=(0, 10), bins=n, random_state=seed
    )
    with pytest.warns(SeededNoiseWarning):
        model.fit(np.array(x)[:, None])
    at = np.linspace(-1, 11, 200)[:, None]
    levels = model.cdf(at)
    assert np.all((levels >= 0) & (levels <= 1))
    assert np.all(np.diff(levels[:, 0]) >= -1e-12)
    assert levels[0] == 0 and levels[-1] == 1
    asked = np.linspace(0.01, 0.99, 25)
    found = model.quantiles(asked)
    assert np.all((found >= 0) & (found <= 10))
    assert np.all(np.diff(found[:, 0]) >= 0)
    # where a level is jumped over by rounding alone, it is met to rounding
    np.testing.assert_allclose(model.cdf(found)[:, 0], asked, atol=1e-6)


def test_whole_numbers_are_told_apart_by_edges_between_them():
    X = np.repeat([20.0, 21.0, 22.0], [10_000, 30_000, 10_000])[:, None]
    model = PrivateCDF(bins=np.arange(-0.5, 101)).fit(X)
    np.testing.assert_allclose(
        model.cdf([[19.5], [20.5], [21.5], [22.5]])[:, 0], [0, 0.2, 0.8, 1], atol=0.01
    )
    assert np.rint(model.median()[0]) == 21


def test_noise_is_in_proportion_to_the_levels_of_the_tree():
    accountant = GroupPrivacy(1.0, math.inf, noise="laplace")
    one, tree = (
        PrivateCDF(accountant=accountant, bounds=(0, 1), bins=bins)
        .fit(np.zeros((9, 1)))
        .noise_.scale
        for bins in (16, None)
    )
    assert (one, tree) == pytest.approx((1, 3))
    replaced = PrivateCDF(
        RecordScenario(relation="replace"), accountant, bounds=(0, 1)
    ).fit(np.zeros((9, 1)))
    assert replaced.noise_.scale == pytest.approx(6)


def test_many_quantiles_cost_what_one_does_and_err_little():
    X = np.random.default_rng(0).uniform(size=(20_000, 1))
    levels = np.arange(1, 100) / 100
    errors = PrivateCDF(bounds=(0, 1)).fit(X).quantiles(levels)[:, 0] - levels
    assert np.abs(errors).max() < 0.01


def test_frames_keep_their_names():
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [3.0, 4.0]})
    model = PrivateCDF(bounds={"a": (0, 1), "b": (0, 9)}).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.edges_[1][-1] == 9


@pytest.mark.parametrize(
    "bins", [0, 1, 2.5, "many", [0.0, 1.0], [0, 1, 1], [0, math.nan, 1], [[0, 1, 2]]]
)
def test_grids_that_are_none_are_refused(bins):
    with pytest.raises((ValueError, TypeError), match="'bins'"):
        PrivateCDF(bins=bins, bounds=(0, 1)).fit([[0.0], [1.0]])


def test_grids_too_fine_are_refused():
    with refused(ValueError, "summary.cdf_bins_too_many"):
        PrivateCDF(bins=2**21, bounds=(0, 1)).fit([[0.0]])
    narrow = (1.0, 1.0 + 9 * np.spacing(1.0))
    with refused(ValueError, "summary.cdf_bins_finer_than_floats"):
        PrivateCDF(bounds=narrow).fit([[1.0]])


def test_without_bounds_or_edges_it_is_refused():
    with refused(UnsupportedError, "bounds.features_without_bounds"):
        PrivateCDF().fit([[0.0], [1.0]])
    # where records are not any records the scenario may know of bounds, or not
    for bins in (None, 5):
        with refused(ValueError, "summary.cdf_bounds_missing"):
            PrivateCDF(DependenceScenario(0.1), bins=bins).fit([[0.0], [1.0]])


@pytest.mark.parametrize("levels", [0, 1, [0.5, 1.2], math.nan, "half"])
def test_levels_outside_are_refused(levels):
    model = PrivateCDF(bounds=(0, 1)).fit([[0.0], [1.0]])
    with refused(
        (ValueError, TypeError),
        (
            "parameter.is_nan",
            "parameter.not_real_number",
            "parameter.probability_out_of_range",
        ),
    ):
        model.quantiles(levels)


@pytest.mark.parametrize("values", [0.5, [0.5], [[0.1, 0.2]]])
def test_values_of_another_shape_are_refused(values):
    model = PrivateCDF(bounds=(0, 1)).fit([[0.0], [1.0]])
    with refused(ValueError, "summary.cdf_values_shape_invalid"):
        model.cdf(values)


def test_distributions_of_vectors_are_refused():
    scenario = LawsScenario([(PointMass([0.0]), PointMass([1.0]))])
    with refused(ScenarioError, "summary.laws_for_grid_counts"):
        PrivateCDF(scenario, bounds=(0, 1)).fit([[0.0], [1.0]])


def test_missing_numbers_are_refused_without_quoting_any():
    with refused(ValueError, "table.not_finite") as caught:
        PrivateCDF(bounds=(0, 1)).fit([[0.123456], [math.nan]])
    assert "0.123456" not in str(caught.value)
