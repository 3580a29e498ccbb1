"""Public bounds: where they come from and what they do to data."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.releases import PublicContext
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.utils._bounds import (
    Bounds,
    are_empirical,
    check_bounds,
    data_bounds,
    declared_bounds,
    resolve_bounds,
)
from tests.refused import refused


def test_numbers_and_arrays_spread_over_features():
    assert resolve_bounds((0, 10), 3) == Bounds((0.0,) * 3, (10.0,) * 3)
    assert resolve_bounds(([0, 1], 5), 2) == Bounds((0.0, 1.0), (5.0, 5.0))
    assert resolve_bounds(np.array([[0, 1], [5, 6]]), 2) == Bounds((0, 1), (5, 6))
    assert resolve_bounds(None, 2) is None


@pytest.mark.parametrize(
    "bounds, code, parameters",
    [
        ((1, 0), "bounds.low_not_below_high", {}),
        ((1, 1), "bounds.low_not_below_high", {}),
        (([0, 2], [1, 1]), "bounds.low_not_below_high", {}),
        ((0, np.inf), "bounds.not_finite", {}),
        ((-np.inf, 0), "bounds.not_finite", {}),
        ((np.nan, 1), "bounds.not_finite", {}),
        ((0, 1, 2), "bounds.not_pair_or_dict", {}),
        (3, "bounds.not_pair_or_dict", {}),
        (("a", "b"), "bounds.not_pair_or_dict", {}),
        (([0, 1], [1, 2, 3]), "bounds.counts_unequal", {}),
        (([[0]], [[1]]), "bounds.shapes_invalid", {}),
        (
            "data",
            "parameter.option_unknown",
            {"listed": "'empirical'", "name": "bounds"},
        ),
        ([(0, 1), (2, 3)], "bounds.layout_ambiguous", {}),
        ([[0, 1], [2, 3]], "bounds.layout_ambiguous", {}),
        (((0, 1), (2, 3)), "bounds.layout_ambiguous", {}),
        ([(0, 1), (2, 3), (4, 5)], "bounds.not_pair_or_dict", {}),
    ],
)
def test_bad_bounds_are_refused_before_the_data_is_seen(bounds, code, parameters):
    with refused(ValueError, code, **parameters) as error:
        check_bounds(bounds)
    assert "'bounds'" in str(error.value)


@pytest.mark.parametrize("pair", [(1, 0), ([0], [1]), None, "empirical", 3])
def test_bad_pairs_of_a_column(pair):
    with refused(
        ValueError,
        (
            "bounds.column_pair_invalid",
            "bounds.low_not_below_high",
            "bounds.not_pair_or_dict",
        ),
    ):
        check_bounds({"sex": (0, 1), "age": pair})


def test_lows_and_highs_of_two_features_are_told_from_pairs():
    for bounds in (([0, 1], [2, 3]), (np.array([0, 1]), (2, 3)), [(0, 1), (5, 1.5)]):
        assert resolve_bounds(bounds, 2).low == (0.0, 1.0)


def test_wrong_number_of_bounds():
    with refused(
        ValueError, "bounds.count_differs_from_features", size=2, n_features=3
    ):
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
    with refused(ValueError, "prior.public_rows_not_finite"):
        declared_bounds(scenario, context, 1)


def test_empirical_bounds_are_the_range_of_the_data():
    X = np.array([[1.0, 4.0], [3.0, 4.0]])
    assert resolve_bounds("empirical", 2, X=X) == Bounds((1.0, 3.0), (3.0, 5.0))


# -- what is computed of them ----------------------------------------------------------


def test_middles_and_halves_by_hand():
    bounds = Bounds((0.0, -4.0, -1e308), (10.0, -1.0, 1e308))
    np.testing.assert_array_equal(bounds.middle, [5.0, -2.5, 0.0])
    # of ends whose difference overflows as well
    np.testing.assert_array_equal(bounds.half, [5.0, 1.5, 1e308])
    np.testing.assert_array_equal(
        bounds.normalise([[0.0, -2.5, 5e307], [12.0, -9.0, -1e308]]),
        [[-1.0, 0.0, 0.5], [1.0, -1.0, -1.0]],
    )
    assert bounds.select([2, 0]) == Bounds((-1e308, 0.0), (1e308, 10.0))


@pytest.mark.parametrize(
    "low, high", [(0.3, 0.8), (0.1, 2.0), (0.627, 2.4530000000000003)]
)
def test_ends_are_ones_where_the_quotient_is_rounded_beyond(low, high):
    bounds = Bounds((low,), (high,))
    quotients = (np.array([low, high]) - bounds.middle) / bounds.half
    assert np.abs(quotients).max() > 1
    ends = bounds.normalise([[low], [high], [2 * low - high], [2 * high - low]])
    np.testing.assert_allclose(ends[:, 0], [-1, 1, -1, 1], rtol=1e-15)
    assert np.all(np.abs(ends) <= 1)


def test_bounds_are_plain_data():
    bounds = Bounds((0.0,), (10.0,))
    assert repr(bounds) == "Bounds(low=(0.0,), high=(10.0,))"
    assert hash(bounds) == hash(Bounds((0.0,), (10.0,)))
    assert bounds != Bounds((0.0,), (11.0,))
    for twin in (copy.deepcopy(bounds), pickle.loads(pickle.dumps(bounds))):
        assert twin == bounds and twin.half.tolist() == [5.0]
    with pytest.raises(TypeError):
        Bounds((0.0,), (10.0,), np.array([1.0]))
    with pytest.raises(TypeError):
        Bounds((0.0,), (10.0,), half=np.array([1.0]))


def test_only_that_word_asks_for_bounds_of_the_data():
    assert are_empirical("empirical")
    assert not any(map(are_empirical, (None, "Empirical", (0, 1), ["empirical"], {})))
    # an array of words is compared with nothing
    assert not are_empirical(np.array(["empirical", "empirical"]))


# -- which are taken -------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [
        (1e-170, 1.0),  # an end whose square vanishes
        (0.0, 1e-170),
        (-1e170, 1.0),
        (0.0, 1e170),
        ([0.0, 0.0], [1.0, 1e170]),
        (1.0, 1.0 + 1e-320),
    ],
)
def test_ends_and_lengths_are_of_workable_size(bounds):
    with refused(
        ValueError, ("bounds.low_not_below_high", "parameter.size_not_workable")
    ):
        check_bounds(bounds)


@pytest.mark.parametrize("name", ["bounds", "target_bounds"])
@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0),
        (0, math.inf),
        (math.nan, 1),
        3,
        (0, 1, 2),
        ("a", "b"),
        (0, 10**400),
        ([0, 1], [1, 2, 3]),
        ([[0]], [[1]]),
        (0, [[1]]),
        "data",
        [(0, 1), (2, 3)],
        (0.0, 1e170),
        {"age": (1, 0)},
        {"age": 3},
    ],
)
def test_messages_name_the_parameter(bounds, name):
    with pytest.raises(ValueError, match=f"'{name}|{name}.*'age'"):
        check_bounds(bounds, name)


def test_bounds_that_are_given_are_returned_as_arrays():
    low, high = check_bounds((0, [1, 5]))
    assert low.shape == () and low == 0.0
    assert high.tolist() == [1.0, 5.0]
    for left_open in (None, "empirical", {}, {"age": (0, 1), 3: [2, 4]}):
        assert check_bounds(left_open) is None


@pytest.mark.parametrize(
    "bounds, low",
    [
        # three features, or one: no pairs of two
        ([[0, 1, 2], [3, 4, 5]], (0.0, 1.0, 2.0)),
        ([[0], [1]], (0.0,)),
        # a tuple of two lists, as the message asks for
        (([0, 1], [2, 3]), (0.0, 1.0)),
        (([0, 1], (2, 3)), (0.0, 1.0)),
        # read as pairs the second would be none
        ([(0, 1), (5, 1.5)], (0.0, 1.0)),
        ([(1, 1), (2, 3)], (1.0, 1.0)),
        (((0, 1), (2, 2)), (0.0, 1.0)),
        (np.array([[0, 1], [5, 6]]), (0.0, 1.0)),
    ],
)
def test_lows_and_highs_where_they_cannot_be_pairs(bounds, low):
    assert resolve_bounds(bounds, len(low)).low == low


@pytest.mark.parametrize("bounds", [([0, 0, 0], 1), (0, [1, 1, 1]), ([0, 0], [1, 1])])
def test_as_many_bounds_as_features(bounds):
    given = max(np.size(side) for side in bounds)
    n_features = 2 if given == 3 else 3
    with pytest.raises(
        ValueError, match=f"'bounds' has {given} bounds, the data has {n_features}"
    ):
        resolve_bounds(bounds, n_features)


class _Declares:
    """A scenario with bounds of its own, which notes what it was asked."""

    def __init__(self, low, high):
        self.pair, self.asked = (low, high), []

    def declared_bounds(self, context):
        self.asked.append(context)
        return None if self.pair[0] is None else self.pair


CONTEXT = PublicContext(n_records=5, feature_names=("b", "a"), n_features=7)


def test_the_scenario_is_asked_for_the_columns_of_the_model():
    scenario = _Declares([0, 1], [4.0, 1.0])
    found = resolve_bounds(None, 2, scenario=scenario, context=CONTEXT)
    # a point is widened by one to either side
    assert found == Bounds((0.0, 0.0), (4.0, 2.0))
    assert [context.n_features for context in scenario.asked] == [2]
    # what is given outright is not asked for
    assert resolve_bounds((0, 9), 2, scenario=scenario, context=CONTEXT) == Bounds(
        (0.0, 0.0), (9.0, 9.0)
    )
    X = [[1.0, 2.0], [3.0, 7.0]]
    assert resolve_bounds(
        "empirical", 2, scenario=scenario, context=CONTEXT, X=X
    ) == Bounds((1.0, 2.0), (3.0, 7.0))
    assert len(scenario.asked) == 1
    assert resolve_bounds(None, 2, scenario=_Declares(None, None), context=CONTEXT) is (
        None
    )


@pytest.mark.parametrize(
    "low, high, match",
    [
        ([0.0, math.nan], [1.0, 1.0], "bounds.prior_not_finite"),
        ([0.0, 0.0], [1.0, math.inf], "bounds.prior_not_finite"),
        ([0.0, -math.inf], [1.0, 1.0], "bounds.prior_not_finite"),
        ([0.0], [1.0], "bounds.count_differs_from_features"),
        ([0.0] * 3, [1.0] * 3, "bounds.count_differs_from_features"),
    ],
)
def test_what_a_scenario_declares_is_checked(low, high, match):
    with refused(ValueError, match):
        declared_bounds(_Declares(low, high), CONTEXT, 2)


def test_columns_by_name_with_the_scenario_for_the_others():
    pairs = {"a": (0, 3), "b": (1, 2), "unused": (7, 8)}
    scenario = _Declares([-5.0, -6.0], [5.0, 6.0])
    found = resolve_bounds(pairs, 2, scenario=scenario, context=CONTEXT)
    assert found == Bounds((1.0, 0.0), (2.0, 3.0)) and scenario.asked == []
    found = resolve_bounds({"a": (0, 3)}, 2, scenario=scenario, context=CONTEXT)
    assert found == Bounds((-5.0, 0.0), (5.0, 3.0))
    # by position in an array, and after public preprocessing
    without = PublicContext(n_records=5, feature_names=None, n_features=2)
    mapped = PublicContext(
        n_records=5, feature_names=("b", "a"), n_features=2, feature_map=np.asarray
    )
    for context in (without, mapped):
        found = resolve_bounds({1: (0, 3)}, 2, scenario=scenario, context=context)
        assert found == Bounds((-5.0, 0.0), (5.0, 3.0))
        with refused(ValueError, "bounds.columns_without_pair"):
            resolve_bounds(pairs, 2, scenario=_Declares(None, None), context=context)
    with refused(ValueError, "bounds.columns_without_pair"):
        resolve_bounds({"a": (0, 3)}, 2, scenario=_Declares(None, 0), context=CONTEXT)


def test_only_points_are_widened_and_far_out_by_their_share():
    X = np.array([[1.0, 4.0, -5e9, 0.0], [3.0, 4.0, -5e9, 0.0]])
    assert data_bounds(X) == Bounds(
        (1.0, 3.0, -5e9 - 5000.0, -1.0), (3.0, 5.0, -5e9 + 5000.0, 1.0)
    )
