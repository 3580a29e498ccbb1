"""Sums of contributions by the short way are those of the contributions."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.releases import QueryRelease
from skpuffer.schema._cells import cell_key
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.summary._cells import (
    Bins,
    Grouped,
    Levels,
    Signs,
    _bins_of,
    cell_counts,
)
from skpuffer.summary._count_tree import CountTree
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Moments, row_blocks
from skpuffer.summary._schema import Column, TableEncoder
from skpuffer.utils._bounds import Bounds
from tests.refused import refused

from .releases import release_of

BOUNDS = Bounds((-1.0, 5.0), (2.0, 5.5))


def table(seed, n, order="C"):
    """Numbers in columns 0, 1 and 3, codes of three and of two levels in the others."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal([0, 5, 0], [2, 1, 1], size=(n, 3))
    codes = rng.integers(-1, [3, 2], size=(n, 2))
    columns = [*numbers[:, :2].T, codes[:, 0], numbers[:, 2], codes[:, 1]]
    return np.array(np.column_stack(columns), order=order)


BLOCKS = (
    Ones(),
    Signs((0, 3)),
    Moments((0, 1), BOUNDS),
    Moments((0, 1), BOUNDS, order=2),
    Moments((3, 1), BOUNDS, order=2),
    Bins(0, (-1.0, 0.0, 1.0, 2.0)),
    Bins(3, (-1.0, 0.5, 0.6, 100.0)),
    Levels(2, 3),
)
CONTRIBUTIONS = (
    Stacked(BLOCKS),
    Grouped((2,), (3,), Stacked(BLOCKS)),
    Grouped((4, 2), (2, 3), Stacked(BLOCKS)),
)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([0, 1, 7, 300]),
    order=st.sampled_from("CF"),
    contribution=st.sampled_from([*BLOCKS, *CONTRIBUTIONS]),
)
@settings(deadline=None)
def test_sums_are_those_of_the_contributions(seed, n, order, contribution):
    X = table(seed, n, order)
    found = contribution.sums(X).ravel()
    assert found.shape == (contribution.dim,)
    # counts are whole, and equal exactly
    exact = {"rtol": 0, "atol": 0} if getattr(contribution, "is_count", False) else {}
    usual = {"rtol": 1e-12, "atol": 1e-10}
    np.testing.assert_allclose(found, contribution(X).sum(axis=0), **(exact or usual))


@pytest.mark.parametrize("contribution", CONTRIBUTIONS)
def test_sums_over_many_blocks_of_rows(contribution):
    X = table(0, 40_000)
    usual = {"rtol": 1e-12, "atol": 1e-7}
    np.testing.assert_allclose(
        contribution.sums(X).ravel(), contribution(X).sum(axis=0), **usual
    )


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateMean(bounds=(0, [1, 2, 3])),
        PrivateStandardScaler(bounds=(0, [1, 2, 3])),
        PrivateSummary(
            statistics=["mean", "var", "rate", "histogram"], bounds=(0, [1, 2, 3])
        ),
        PrivateSummary(statistics=["histogram"], bounds=(0, [1, 2, 3]), bins=7),
        PrivateSummary(by=0, categories={0: [0, 1]}, bounds=(0, [1, 2, 3])),
    ],
)
def test_a_release_runs_what_is_accounted_for(estimator):
    X = np.random.default_rng(0).uniform(-1, 4, size=(500, 3))
    X[:, 0] = np.trunc(X[:, 0])
    release, encode = release_of(estimator, X)
    encoded = encode(X)
    assert release.query is None
    assert hash(release.contribution) == hash(release_of(estimator, X)[0].contribution)
    units = np.ones(release.dim) if release.units is None else np.array(release.units)
    slow = release.factor * release.contribution(encoded).sum(axis=0) * units
    np.testing.assert_allclose(release.run(encoded), slow, rtol=1e-12, atol=1e-12)


def test_a_table_of_objects_is_read_as_numbers():
    release = QueryRelease(
        contribution=Moments((0,), Bounds((0.0,), (2.0,))),
        is_sum=True,
        factor=0.5,
        n_records=3,
    )
    table = np.array([[0], [2.0], [2]], dtype=object)
    np.testing.assert_allclose(release.run(table), 0.5)


@given(
    edges=st.lists(
        st.floats(-1e9, 1e9) | st.sampled_from([-1e308, 1e308, 5e-324]),
        min_size=2,
        max_size=20,
        unique=True,
    ).map(sorted),
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20),
)
def test_bins_are_those_of_a_search(edges, values):
    edges = np.array(edges)
    near = np.nextafter(edges[:, None], [-np.inf, np.inf]).ravel()
    x = np.concatenate([values, edges, near])
    last = len(edges) - 2
    expected = np.searchsorted(edges, x, side="right") - 1
    found = _bins_of(x, edges)
    np.testing.assert_array_equal(np.clip(found, 0, last), np.clip(expected, 0, last))


@given(
    low=st.floats(-1e12, 1e12),
    width=st.floats(1e-3, 1e12),
    count=st.integers(1, 3000),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_even_bins_are_those_of_a_search(low, width, count, seed):
    edges = np.unique(np.linspace(low, low + width, count + 1))
    if len(edges) < 2:
        return
    near = np.nextafter(edges[:, None], [-np.inf, np.inf]).ravel()
    some = np.random.default_rng(seed).uniform(low - width, low + 2 * width, 50)
    x = np.concatenate([edges, near, some])
    last = len(edges) - 2
    expected = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, last)
    np.testing.assert_array_equal(np.clip(_bins_of(x, edges), 0, last), expected)


def test_values_that_overflow_are_clipped():
    with np.errstate(all="raise"):
        X = np.array([[1.7e308], [-1.7e308]])
        one = Moments((0,), Bounds((-1.5e150,), (-1e150,)), order=2)
        np.testing.assert_allclose(one.sums(X), [[0.0, 1.0]])
        bins = Bins(0, (-1.5e308, 0.0, 1.5e308))
        np.testing.assert_array_equal(bins.sums(X), [[1.0, 1.0]])


def test_a_code_beyond_the_levels_is_refused_and_not_counted_elsewhere():
    with refused(IndexError, "summary.code_beyond_levels"):
        cell_counts(np.array([0, 2]), 2, np.array([0, 0]), 2)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_blocks_of_rows_cover_the_table_once(n, width, least):
    blocks = list(row_blocks(n, width, least))[:1000]
    assert all(a.stop == b.start for a, b in zip(blocks, blocks[1:], strict=False))
    assert not blocks or (blocks[0].start == 0 and blocks[-1].stop <= n)


# -- codes of levels ------------------------------------------------------------------


def codes_of(values, levels):
    encoder = TableEncoder((Column("a", 0, tuple(levels)),), 1)
    return encoder(pd.DataFrame({"a": values}))[:, 0].tolist()


CELLS = st.sampled_from(
    ["x", "y", "", "1", 1, 1.0, True, 0, False, 2.5, None, float("nan"), b"x", (1,)]
)


@given(
    values=st.lists(CELLS, min_size=1, max_size=12),
    levels=st.permutations(["x", "1", 2.5, None, 1]),
)
def test_codes_are_those_of_what_was_written(values, levels):
    # 1 and "1" are one level
    levels = [level for level in levels if level != "1"]
    index = {cell_key(level): code for code, level in enumerate(levels)}
    expected = [index.get(cell_key(v), index[None]) for v in values]
    column = np.array([*values, None], dtype=object)[:-1]
    assert codes_of(column, levels) == expected


@pytest.mark.parametrize(
    "odd", [[1], {}, Decimal("sNaN"), np.array([1, 2]), float("nan"), pd.NaT]
)
def test_cells_that_cannot_be_compared_have_no_level(odd):
    column = np.array(["x", None, odd, "y"], dtype=object)
    assert codes_of(column, ["y", "x"]) == [1, -1, -1, 0]
    assert codes_of(column, ["y", "x", None]) == [1, 2, 2, 0]


def test_codes_of_categories_are_those_of_their_values():
    column = pd.Categorical(["b", None, "c", "a"], categories=["c", "b", "a"])
    assert codes_of(column, ["a", "b"]) == [1, -1, -1, 0]
    numbers = pd.Categorical([3, 1, 1], categories=[1, 2, 3])
    assert codes_of(numbers, [1, 3]) == [1, 0, 0]
    dates = pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"]))
    assert codes_of(dates, [pd.Timestamp("2021-01-01")]) == [-1, 0]


@pytest.mark.parametrize("kind", [Bins, CountTree])
def test_a_table_that_changes_meanwhile_is_not_counted(kind):
    """A missing value would be in some bin, or in none."""
    x = np.array([[0.2], [np.nan], [0.4]])
    contribution = kind(0, (0.0, 0.25, 1.0))
    for count in (contribution, contribution.sums):
        with refused(ValueError, "summary.memory_map_changed"):
            count(x)


def test_a_code_beyond_the_last_level_is_not_counted_elsewhere():
    with refused(IndexError, "summary.code_beyond_levels"):
        cell_counts(np.array([0, 3]), 3, np.array([0, 0]), 2)
    np.testing.assert_array_equal(
        cell_counts(np.array([0, 2, -1, -5]), 3, np.array([0, 1, 1, 0]), 2),
        [[1, 0, 0], [0, 0, 1]],
    )
