"""Checks of parameters that several parts share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.kernel.numbers import (
    check_all_positive,
    check_at_least_one,
    check_option,
    check_positive,
)
from skpuffer.utils._checks import check_covariance, check_masses, check_share
from tests.refused import refused


def outcome(call):
    try:
        return call(), None
    except (TypeError, ValueError) as error:
        return None, type(error)


#: What may stand among sizes, most of it refused.
SIZES = [1, 2.5, np.float32(0.5), 1e-80, 1e80, 0.0, -1.0, np.nan, np.inf, True, "1"]


@given(
    st.lists(st.floats(1e-3, 1e3)),
    st.lists(st.sampled_from(SIZES), max_size=2),
    st.randoms(use_true_random=False),
)
def test_all_are_checked_as_each_is(sizes, others, order):
    values = [*sizes, *others]
    order.shuffle(values)
    found = outcome(lambda: check_all_positive(sizes=values))
    expected = outcome(lambda: tuple(check_positive(sizes=v) for v in values))
    assert found[0] == expected[0]
    assert (found[1] is None) == (expected[1] is None)
    assert found[0] is None or set(map(type, found[0])) <= {float}


@given(st.integers(-200, 200), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_whether_a_covariance_is_one_depends_on_no_unit(power, size, seed):
    factor = np.random.default_rng(seed).normal(size=(size, size))
    covariance = factor @ factor.T * 2.0**power
    found = check_covariance(covariance=covariance)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, covariance, rtol=1e-12)
    with refused(
        ValueError,
        "parameter.covariance_not_positive_definite",
        name="cov",
        kind="semi-definite",
    ):
        check_covariance(cov=-covariance)
    skew = covariance + np.triu(np.full((size, size), 1e-3 * covariance.max()), 1)
    if size > 1:
        with refused(ValueError, "parameter.covariance_not_symmetric", name="cov"):
            check_covariance(cov=skew)


def test_a_small_block_must_be_symmetric_beside_a_large_one():
    small = np.array([[1e-4, 1e-5], [-1e-5, 1e-4]])
    covariance = np.block(
        [[np.eye(1) * 1e3, np.zeros((1, 2))], [np.zeros((2, 1)), small]]
    )
    with refused(ValueError, "parameter.covariance_not_symmetric"):
        check_covariance(covariance=covariance)


def test_point_masses_are_semi_definite_only():
    for size in (1, 3):
        zero = np.zeros((size, size))
        assert np.array_equal(check_covariance(covariance=zero), zero)
        with refused(ValueError, "parameter.covariance_condition_number"):
            check_covariance(least=1e-12, covariance=zero)
    line = np.ones((2, 2))
    assert check_covariance(covariance=line).tolist() == line.tolist()
    with refused(ValueError, "parameter.covariance_not_positive_definite"):
        check_covariance(least=1e-12, covariance=line)


@pytest.mark.parametrize("raw", [1.0, [1.0], [[1.0, 2.0]], np.zeros((0, 0))])
def test_what_is_no_matrix(raw):
    with refused(ValueError, "parameter.covariance_not_square", name="cov"):
        check_covariance(cov=raw)


@pytest.mark.parametrize("raw", [[[1.0], [1, 2]], "a", None, [[10**400]], [[1j]]])
def test_a_matrix_of_no_numbers(raw):
    with refused(ValueError, "parameter.array_not_finite", name="cov"):
        check_covariance(cov=raw)


def test_intervals():
    assert check_share(x=0) == 0.0
    assert check_at_least_one(x=np.inf) == np.inf
    for check, bad in (
        (check_share, (1, -1e-9)),
        (check_at_least_one, (0.99, -np.inf)),
    ):
        for value in bad:
            with refused(
                ValueError, ("parameter.below_one", "parameter.share_out_of_range")
            ):
                check(x=value)
        with refused(TypeError, "parameter.not_real_number", name="x"):
            check(x="1")


def test_counts_are_masses_only_where_they_are_asked_for():
    assert check_masses(2, w=[1, 3]).tolist() == [0.25, 0.75]
    with refused(ValueError, "parameter.masses_not_sum_one", total=2.0):
        check_masses(2, w=[0.5, 1.5])
    assert check_masses(2, counts=False, w=[0, 1]).tolist() == [0.0, 1.0]
    with refused(ValueError, "parameter.masses_not_sum_one", total=4.0):
        check_masses(2, counts=False, w=[1, 3])


def test_options_are_told_apart_by_type():
    # as a grid of parameters that is an array has them
    assert check_option(("best", "exact"), method=np.array(["exact"])[0]) == "exact"
    assert check_option((1, None), count=None) is None
    for value in (True, 1.0, "1", np.array([1])):
        with refused(
            ValueError, "parameter.option_unknown", name="count", listed="1, None"
        ):
            check_option((1, None), count=value)
