"""Masses, kernels and whitened bases: closed forms, and what holds of any histogram."""

import math

import numpy as np
import pytest

from skpuffer.additive._basis import cell_masses, kernel, make_basis, merged_cells


def test_masses_are_the_shares_where_there_is_no_noise():
    counts = np.array([10.0, 0.0, 30.0])
    np.testing.assert_allclose(cell_masses(counts, 0.0, 40), [0.25, 0.0, 0.75])


def test_counts_that_noise_explains_are_taken_for_equal():
    # (4 - 1) * 10^2 is more than the sum of squares about the mean, which is 20
    noisy = np.array([99.0, 103.0, 97.0, 101.0])
    np.testing.assert_allclose(cell_masses(noisy, 10.0, 400), 0.25)


def test_james_stein_and_the_uniform_share_are_as_the_rule_says():
    noisy, deviation, n = np.array([300.0, 80.0, 20.0]), 10.0, 400
    mean = noisy.mean()
    keep = 1 - 2 * deviation**2 / np.sum((noisy - mean) ** 2)
    shrunk = (n / 3 + keep * (noisy - mean)) / n  # all positive: nothing to project
    share = 0.5 * deviation * math.sqrt(3) / n
    expected = (1 - share) * shrunk + share / 3
    np.testing.assert_allclose(cell_masses(noisy, deviation, n), expected)


@pytest.mark.parametrize("seed", range(5))
def test_masses_are_a_law_with_no_empty_cell_where_there_is_noise(seed):
    rng = np.random.default_rng(seed)
    masses = cell_masses(rng.normal(0, 1e3, 50), 50.0, 500)
    assert masses.sum() == pytest.approx(1.0)
    # at most a fifth is uniform
    assert masses.min() >= 0.2 / 50 * 0.999


def test_levels_are_independent_and_neighbours_are_not():
    q = np.full(5, 0.2)
    np.testing.assert_array_equal(kernel(q, "levels"), np.eye(5))
    smooth = kernel(q, "ordered")
    assert q @ np.diag(smooth) == pytest.approx(1.0)
    assert smooth[0, 1] > smooth[0, 2] > smooth[0, 4]
    np.testing.assert_allclose(kernel(q, "amount"), (smooth + np.eye(5)) / 2)


def test_the_smooth_kernel_is_of_cosines_in_the_mean_of_rank_and_number():
    q = np.array([0.5, 0.25, 0.25])
    t = 0.5 * np.array([0.25, 0.625, 0.875]) + 0.5 * np.array([1, 3, 5]) / 6
    m = np.arange(1, 6)
    a = np.cos(math.pi * np.outer(t, m)) / m**1.5
    c = a @ a.T
    np.testing.assert_allclose(kernel(q, "ordered"), c / np.sum(q * np.diag(c)))


def test_a_cell_of_missing_values_has_no_neighbour():
    found = kernel(np.full(5, 0.2), "ordered", has_missing=True)
    np.testing.assert_array_equal(found[-1], [0, 0, 0, 0, 1])
    np.testing.assert_allclose(found[:4, :4], kernel(np.full(4, 0.25), "ordered"))


def _basis(rng, pairs=(), mu=0.25, n=1000):
    kinds = ("levels", "ordered", "amount", "ordered")
    gaps = (False, False, False, True)
    masses = [rng.dirichlet(np.ones(m)) for m in (4, 12, 20, 9)]
    merged = [merged_cells(*a) for a in zip(masses, kinds, gaps, strict=True)]
    return make_basis(
        masses, kinds, gaps, pairs=pairs, merged=merged, n_records=n, mu=mu
    )


@pytest.mark.parametrize("pairs", [(), ((0, 1), (1, 3))])
def test_columns_are_centred_orthogonal_and_of_mean_squared_norm_one(pairs):
    basis = _basis(np.random.default_rng(0), pairs)
    total = 0.0
    steepest = 0.0
    for table, q in zip(basis.tables, basis.masses, strict=True):
        np.testing.assert_allclose(q @ table, 0, atol=1e-12)
        moments = table.T @ (q[:, None] * table)
        variances = np.diag(moments)
        np.testing.assert_allclose(moments, np.diag(variances), atol=1e-12)
        total += variances.sum()
        steepest += variances.max()
    assert total == pytest.approx(1.0)
    assert basis.steepest == pytest.approx(steepest)
    assert basis.dim == sum(t.shape[1] for t in basis.tables)


def test_variances_are_those_of_the_ridge():
    # two levels of equal mass: C centred has the one eigenvalue 1/2, v = 1/4 * 2
    q = np.full(2, 0.5)
    n, mu = 1000, 0.1
    v, theta = 0.5, 16 / (n * mu)
    basis = make_basis([q, q], ["levels", "levels"], n_records=n, mu=mu)
    # equal blocks: each has half of the variance whatever the ridge is
    assert [t.shape for t in basis.tables] == [(2, 1), (2, 1)]
    np.testing.assert_allclose([q @ t[:, 0] ** 2 for t in basis.tables], 0.5)
    # beside a feature of uneven masses the shares tell the ridge
    p = np.array([0.9, 0.1])
    uneven = make_basis([q, p], ["levels", "levels"], n_records=n, mu=mu)
    w = 2 * 0.9 * 0.1  # sum of p (1 - p)
    theta *= math.sqrt(2)
    lams = np.array([v / (v + theta), w / (w + theta)])
    found = [m @ t[:, 0] ** 2 for m, t in zip((q, p), uneven.tables, strict=True)]
    np.testing.assert_allclose(found, lams / lams.sum())


def test_without_noise_nothing_is_divided_by_zero():
    basis = _basis(np.random.default_rng(1), mu=math.inf)
    assert all(np.all(np.isfinite(t)) for t in basis.tables)
    lonely = make_basis([np.ones(1)], ["ordered"], n_records=10, mu=0.1)
    assert lonely.dim == 0


def test_merged_cells_are_few_and_without_gaps():
    rng = np.random.default_rng(0)
    for kind, gap in (("levels", False), ("ordered", False), ("amount", True)):
        merged = merged_cells(rng.dirichlet(np.full(40, 0.2)), kind, gap)
        assert merged.max() <= 7
        assert set(merged.tolist()) == set(range(merged.max() + 1))
        if kind != "levels":
            assert np.all(np.diff(merged) >= 0)
        if gap:
            assert np.sum(merged == merged[-1]) == 1
