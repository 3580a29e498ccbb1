"""Closed forms of a Gram matrix of bins: exact for one bin, and never too small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.privacy_loss import GaussianCurve, renyi_to_delta
from skpuffer.privacy_loss.allocation import (
    closed_add_delta,
    renyi_add,
    unamplified_delta,
)
from tests.extensions.random_allocation.allocation_oracles import gram_of, ids, oracles
from tests.refused import refused

ORACLES = oracles("allocation_renyi.json")


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["closed_add"], ids=ids)
def test_reference_closed_add(row):
    found = closed_add_delta(gram_of(row), row["epsilon"])
    assert found == pytest.approx(row["value"], rel=row.get("tolerance", 1e-10))


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["renyi_add"], ids=ids)
def test_reference_renyi_add(row):
    found = renyi_add(gram_of(row), row["order"])
    assert found == pytest.approx(row["value"], rel=1e-9)
    assert found >= row.get("exact", 0.0)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["unamplified"], ids=ids)
def test_reference_unamplified(row):
    found = unamplified_delta(gram_of(row), row["epsilon"])
    assert found == pytest.approx(row["value"], abs=5e-6)


def test_a_single_bin_is_the_gaussian():
    epsilon = np.linspace(-2, 4, 13)
    expected = [GaussianCurve(1.0).delta(e) for e in epsilon]
    assert closed_add_delta([[1.0]], epsilon) == pytest.approx(expected, rel=1e-14)
    assert unamplified_delta([[1.0]], epsilon) == pytest.approx(expected, rel=1e-14)
    assert closed_add_delta([[1.0]], 1.0) == pytest.approx(0.12693673750664392)
    assert GaussianCurve(1.0).epsilon(1e-5) == pytest.approx(4.377178095681137)
    assert renyi_add([[1.0]], [2.0, 5.5]) == pytest.approx([1.0, 2.75])


def test_nothing_is_learnt_of_a_record_that_moves_nothing():
    zero = np.zeros((3, 3))
    assert closed_add_delta(zero, [0.0, 1.0]).tolist() == [0.0, 0.0]
    assert unamplified_delta(zero, [0.0, 1.0]).tolist() == [0.0, 0.0]
    assert renyi_add(zero, 3.0) == 0.0


@given(
    st.integers(1, 6), st.integers(1, 4), st.floats(0.3, 4), st.integers(0, 2**32 - 1)
)
def test_closed_forms_are_ordered(n_bins, n_rows, sigma, seed):
    means = np.random.default_rng(seed).random((n_bins, n_rows))
    gram = means @ means.T / sigma**2
    epsilon = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    closed = closed_add_delta(gram, epsilon)
    assert np.all(np.diff(closed) <= 0)
    # less noise is never more private
    assert np.all(closed <= closed_add_delta(1.1 * gram, epsilon) + 1e-15)
    assert np.all(
        unamplified_delta(gram, epsilon)
        <= unamplified_delta(1.1 * gram, epsilon) + 1e-15
    )
    # the Rényi divergence is that of the same two Gaussians and converts with a loss
    orders = np.geomspace(1.01, 200, 60)
    costs = renyi_add(gram, orders)
    for e, delta in zip(epsilon, closed, strict=True):
        assert delta <= renyi_to_delta(orders, costs, e) * (1 + 1e-9)
    # bins that are told apart by nothing are one bin
    doubled = np.repeat(np.repeat(gram, 2, axis=0), 2, axis=1)
    assert closed_add_delta(doubled, epsilon) == pytest.approx(closed, rel=1e-9)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["exact_two_bins"], ids=ids)
def test_closed_forms_are_not_below_the_truth(row):
    gram = gram_of(row)
    assert row["add"] <= closed_add_delta(gram, row["epsilon"])
    cap = unamplified_delta(gram, row["epsilon"])
    assert max(row["add"], row["remove"]) <= cap


@pytest.mark.parametrize(
    "gram", [[[1.0, 0.5]], [[1.0, 0.1], [0.3, 1.0]], [[1.0, -0.1], [-0.1, 1.0]], []]
)
@pytest.mark.parametrize("function", [closed_add_delta, unamplified_delta, renyi_add])
def test_what_is_no_gram_matrix_is_refused(function, gram):
    with refused(
        ValueError,
        (
            "allocation.gram_negative",
            "allocation.gram_not_square",
            "allocation.gram_not_symmetric",
        ),
    ):
        function(gram, 2.0)


@pytest.mark.parametrize("order", [1.0, 0.5, np.inf, np.nan])
def test_orders_must_be_finite_and_above_one(order):
    with refused(
        ValueError, ("allocation.orders_not_above_one", "parameter.array_not_finite")
    ):
        renyi_add([[1.0]], order)
