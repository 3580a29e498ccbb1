"""Public bounds: where they come from and what they do to data."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.utils._bounds import Bounds, check_bounds, declared_bounds, resolve_bounds


def test_numbers_and_arrays_spread_over_features():
    assert resolve_bounds((0, 10), 3) == Bounds((0.0,) * 3, (10.0,) * 3)
    assert resolve_bounds(([0, 1], 5), 2) == Bounds((0.0, 1.0), (5.0, 5.0))
    assert resolve_bounds(np.array([[0, 1], [5, 6]]), 2) == Bounds((0, 1), (5, 6))
    assert resolve_bounds(None, 2) is None


@pytest.mark.parametrize(
    "bounds, match",
    [
        ((1, 0), "low < high"),
        ((1, 1), "low < high"),
        (([0, 2], [1, 1]), "low < high"),
        ((0, np.inf), "finite"),
        ((-np.inf, 0), "finite"),
        ((np.nan, 1), "finite"),
        ((0, 1, 2), "pair"),
        (3, "pair"),
        (("a", "b"), "pair"),
        (([0, 1], [1, 2, 3]), "give as many"),
        (([[0]], [[1]]), "one-dimensional"),
        ("data", "'empirical'"),
        ([(0, 1), (2, 3)], "a pair for each of two"),
        ([[0, 1], [2, 3]], "a pair for each of two"),
        (((0, 1), (2, 3)), "a pair for each of two"),
        ([(0, 1), (2, 3), (4, 5)], "dict"),
    ],
)
def test_bad_bounds_are_refused_before_the_data_is_seen(bounds, match):
    with pytest.raises(ValueError, match=match) as error:
        check_bounds(bounds)
    assert "'bounds'" in str(error.value)


@pytest.mark.parametrize("pair", [(1, 0), ([0], [1]), None, "empirical", 3])
def test_bad_pairs_of_a_column(pair):
    with pytest.raises(ValueError, match="bounds.*age"):
        check_bounds({"sex": (0, 1), "age": pair})


def test_lows_and_highs_of_two_features_are_told_from_pairs():
    for bounds in (([0, 1], [2, 3]), (np.array([0, 1]), (2, 3)), [(0, 1), (5, 1.5)]):
        assert resolve_bounds(bounds, 2).low == (0.0, 1.0)


def test_wrong_number_of_bounds():
    with pytest.raises(ValueError, match="2 bounds, the data has 3 features"):
        resolve_bounds(([0, 0], 1), 3)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=5),
)
def test_normalised_data_never_leaves_the_unit_interval(low, length, x):
    bounds = Bounds((low,), (low + length,))
    u = bounds.normalise(np.array(x)[:, None])
    assert np.all(np.abs(u) <= 1)
    inside = np.clip(x, bounds.low[0], bounds.high[0])
    back = bounds.middle + bounds.half * u[:, 0]
    np.testing.assert_allclose(back, inside, rtol=1e-9, atol=1e-9 * length)


def test_bounds_declared_by_a_prior_and_constant_columns():
    prior = pd.DataFrame({"s": [0, 1, 1], "a": [2.0, 5.0, 3.0], "b": [7.0, 7.0, 7.0]})
    scenario = AttributeScenario("s", level="record", prior=prior, prior_as="law")
    context = PublicContext(n_records=5, feature_names=("b", "a"), n_features=2)
    assert declared_bounds(scenario, context, 2) == Bounds((6.0, 2.0), (8.0, 5.0))
    assert resolve_bounds(None, 2, scenario=scenario, context=context) == Bounds(
        (6.0, 2.0), (8.0, 5.0)
    )
    assert declared_bounds(RecordScenario(), context, 2) is None


def test_a_prior_with_nan_declares_nothing_usable():
    prior = pd.DataFrame({"s": [0, 1], "a": [2.0, np.nan]})
    scenario = AttributeScenario("s", level="record", prior=prior, prior_as="law")
    context = PublicContext(n_records=5, feature_names=("a",), n_features=1)
    with pytest.raises(ValueError, match="NaN"):
        declared_bounds(scenario, context, 1)


def test_empirical_bounds_are_the_range_of_the_data():
    X = np.array([[1.0, 4.0], [3.0, 4.0]])
    assert resolve_bounds("empirical", 2, X=X) == Bounds((1.0, 3.0), (3.0, 5.0))
