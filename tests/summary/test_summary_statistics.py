"""Post-processing of noisy counts and moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skpuffer.summary._mean import bounded_variance
from skpuffer.summary._private_statistic import grid_quantiles, usable_counts

LEVELS = np.array([0.01, 0.25, 0.5, 0.75, 0.99])


@given(
    st.lists(st.floats(-50, 100), min_size=1, max_size=12),
    st.integers(0, 10**6),
)
def test_quantiles_of_any_noisy_counts_are_ordered_and_on_the_grid(counts, seed):
    edges = np.sort(np.random.default_rng(seed).choice(1000, len(counts) + 1, False))
    total = max(abs(sum(counts)), 1.0)
    found = grid_quantiles(counts, total, edges, LEVELS)
    assert np.all(np.diff(found) >= 0)
    assert np.all((edges[0] <= found) & (found <= edges[-1]))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any))
def test_quantiles_of_exact_counts_invert_the_distribution_function(counts):
    edges = np.arange(len(counts) + 1.0)
    found = grid_quantiles(counts, sum(counts), edges, LEVELS)
    cumulative = np.concatenate([[0], np.cumsum(counts)]) / sum(counts)
    inside = np.clip(np.ceil(found).astype(int) - 1, 0, len(counts) - 1)
    assert np.all(np.asarray(counts)[inside] > 0)  # never in an empty bin
    # each lies in the bin in which its level is reached
    assert np.all(cumulative[inside] <= LEVELS + 1e-12)
    assert np.all(cumulative[inside + 1] >= LEVELS - 1e-12)


@given(st.integers(1, 12), st.integers(0, 3), st.integers(0, 3))
def test_even_counts_are_inverted_exactly_wherever_they_begin(n, before, after):
    counts = [0] * before + [5] * n + [0] * after
    found = grid_quantiles(counts, 5 * n, np.arange(len(counts) + 1.0), LEVELS)
    np.testing.assert_allclose(found, before + n * LEVELS, atol=1e-9)


def test_smooth_densities_have_next_to_no_floor():
    # twenty bins of a normal law, each one standard deviation wide
    edges = np.linspace(-10, 10, 21)
    counts = np.diff(norm.cdf(edges))
    found = grid_quantiles(counts, 1.0, edges, LEVELS[1:-1])
    # 0.065 by straight lines
    assert np.abs(found - norm.ppf(LEVELS[1:-1])).max() < 0.03
    fine = np.linspace(-10, 10, 501)
    found = grid_quantiles(np.diff(norm.cdf(fine)), 1.0, fine, LEVELS[1:-1])
    assert np.abs(found - norm.ppf(LEVELS[1:-1])).max() < 1e-5


def test_quantiles_are_right_to_a_bin_width():
    x = np.random.default_rng(0).gamma(2.0, size=5000)
    counts, edges = np.histogram(x, bins=200)
    found = grid_quantiles(counts, len(x), edges, LEVELS)
    assert np.all(np.abs(found - np.quantile(x, LEVELS)) < edges[1] - edges[0])


def test_quantiles_without_a_total_are_nan():
    assert np.all(np.isnan(grid_quantiles([1, 2], np.nan, [0, 1, 2], LEVELS)))


def test_small_counts_do_not_divide():
    found = usable_counts([100.0, 20.0, 19.9, -30.0], 10.0)
    np.testing.assert_array_equal(found, [100.0, 20.0, np.nan, np.nan])
    np.testing.assert_array_equal(usable_counts([0.9, 1.0], 0.0), [np.nan, 1.0])


@pytest.mark.parametrize(
    "first, second, least, expected",
    [
        (0.0, 0.5, 0.0, 1.0),
        (0.5, 0.25, 0.0, 0.5),
        (0.9, -0.5, 0.0, 0.0),  # impossible moments are projected
        (0.9, -0.5, 0.125, 0.125),
        (0.0, 5.0, 0.0, 1.0),
        (0.0, 0.0, 7.0, 1.0),
        (np.nan, 0.0, 0.0, np.nan),
    ],
)
def test_variances_stay_possible(first, second, least, expected):
    np.testing.assert_equal(bounded_variance(first, second, least), expected)
