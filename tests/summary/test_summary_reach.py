"""How far one record moves what is released: bounds that hold and are attained."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.kernel.queries import NORMS
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.summary._cells import Bins, Grouped, Levels, Signs
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Moments, _pair_move
from skpuffer.utils._bounds import Bounds

from .releases import release_of

BOUNDS = Bounds((-1.0,), (1.0,))
GRID = np.concatenate([np.linspace(-1.5, 1.5, 601), [-0.5, 0.5]])[:, None]


def brute(block, X):
    """Largest norm of one contribution and of the difference of two, over rows of X."""
    rows = np.unique(block(X), axis=0)
    alone = {p: np.linalg.norm(rows, p, axis=1).max() for p in NORMS}
    apart = {
        p: max(np.linalg.norm(rows - row, p, axis=1).max() for row in rows)
        for p in NORMS
    }
    return alone, apart


@pytest.mark.parametrize(
    "block, alone, apart",
    [
        (Moments((0,), BOUNDS, 1), (1, 1, 1), (2, 2, 2)),
        # l1: |u| + |u^2 - 1/2| and d (3 - d); squared l2: u^4 + 1/4 and 4
        (Moments((0,), BOUNDS, 2), (1.5, math.sqrt(5) / 2, 1), (2.25, 2, 2)),
        (Signs((0,)), (1, 1, 1), (2, 2, 2)),
        (Bins(0, (-1.0, 0.0, 1.0)), (1, 1, 1), (2, math.sqrt(2), 1)),
        (Ones(), (1, 1, 1), (0, 0, 0)),
    ],
)
def test_reach_of_each_block_is_exact(block, alone, apart):
    assert [block.sensitivity.add_remove[p] for p in NORMS] == pytest.approx(alone)
    assert [block.sensitivity.replace[p] for p in NORMS] == pytest.approx(apart)
    found_alone, found_apart = brute(block, GRID)
    for p in NORMS:
        assert found_alone[p] == pytest.approx(
            block.sensitivity.add_remove[p], rel=1e-12
        )
        assert found_apart[p] == pytest.approx(block.sensitivity.replace[p], rel=1e-12)


@pytest.mark.parametrize("gap", [0.05, 0.5, 1.0, 1.4, 1.6, 2.0])
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_small_moves_of_a_pair_reach_as_far_as_is_said(gap, norm):
    """Of a number and its square, as its record moves by a gap at most."""
    at = np.linspace(-1, 1, 801)
    pairs = np.stack([at, at**2 - 0.5])
    apart = np.abs(pairs[:, :, None] - pairs[:, None, :])
    near = np.abs(at[:, None] - at) <= gap + 1e-12
    longest = np.linalg.norm(apart[:, near], norm, axis=0).max()
    said = _pair_move(np.array([gap]), norm)[0]
    assert longest <= said * (1 + 1e-12)
    if norm in (1.0, 2.0):
        assert said == pytest.approx(longest, rel=1e-3)  # by the grid


def test_reach_of_many_columns_and_of_groups_is_exact():
    points = [-1.0, -0.5, 0.5, 1.0]
    X = np.array(list(itertools.product([0, 1, 2], points, points)))
    two = Bounds((-1.0, -1.0), (1.0, 1.0))
    block = Stacked((Ones(), Moments((1, 2), two, 2), Bins(2, (-1, -0.7, 0, 0.7, 1))))
    for found in (block, Grouped((0,), (3,), block)):
        alone, apart = brute(found, X)
        for p in NORMS:
            assert alone[p] == pytest.approx(found.sensitivity.add_remove[p], rel=1e-12)
            assert apart[p] == pytest.approx(found.sensitivity.replace[p], rel=1e-12)
    # a record that changes its group empties one block and fills another
    across = Grouped((0,), (3,), Ones()).sensitivity
    assert across.add_remove == {1.0: 1.0, 2.0: 1.0, math.inf: 1.0}
    assert across.replace == pytest.approx({1.0: 2.0, 2.0: math.sqrt(2), math.inf: 1.0})


def test_levels_and_cells_are_where_they_should_be():
    X = np.array([[0, 1], [2, 0], [1, 1]], dtype=float)
    np.testing.assert_array_equal(Levels(0, 3)(X), np.eye(3)[[0, 2, 1]])
    cells = Grouped((0, 1), (3, 2), Ones())(X)
    np.testing.assert_array_equal(cells.argmax(axis=1), [1, 4, 3])
    np.testing.assert_array_equal(cells.sum(axis=1), 1)


def test_a_grid_counts_what_lies_outside_in_its_ends():
    bins = Bins(0, (0.0, 1.0, 2.0))
    x = np.array([[-5.0], [0.0], [1.0], [2.0], [9.0]])
    np.testing.assert_array_equal(bins(x).argmax(axis=1), [0, 0, 1, 1, 1])


# -- whole estimators ------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("n", [1, 50])
def test_stated_sensitivities_of_the_mean_and_the_scaler(d, n):
    X = np.zeros((n, d))
    mean, _ = release_of(PrivateMean(bounds=(-2, 6)), X)
    assert mean.units == (4.0,) * d
    for norm, value in ((1, d), (2, math.sqrt(d)), (math.inf, 1)):
        assert mean.sensitivity.value("add_remove", norm, d) == pytest.approx(value / n)
        assert mean.sensitivity.value("replace", norm, d) == pytest.approx(
            2 * value / n
        )
    scaler, _ = release_of(PrivateStandardScaler(bounds=(-2, 6)), X)
    assert scaler.units == (4.0,) * d + (16.0,) * d
    for relation, norm, value in (
        ("add_remove", 1, 1.5 * d),
        ("add_remove", 2, math.sqrt(1.25 * d)),
        ("replace", 1, 2.25 * d),
        ("replace", 2, 2 * math.sqrt(d)),
    ):
        found = scaler.sensitivity.value(relation, norm, 2 * d)
        assert found == pytest.approx(value / n)


LEVELS = ["a", "b", "c"]
ALL = ["count", "mean", "std", "var", "rate", "quantile", "median", "histogram"]


@st.composite
def records(draw, n):
    """Rows that go to extremes: ends of the bounds, beyond them, edges of the grid."""
    number = st.sampled_from([-9.0, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 7.0])
    level = st.sampled_from(LEVELS)
    row = st.tuples(number, number, level, level, st.booleans())
    rows = draw(st.lists(row, min_size=n, max_size=n))
    return pd.DataFrame(rows, columns=["x", "y", "g", "h", "b"])


@given(
    data=st.data(),
    n=st.integers(2, 6),
    statistics=st.lists(
        st.sampled_from(ALL), min_size=1, max_size=5, unique=True
    ).filter(lambda names: names != ["count"]),
    by=st.sampled_from([None, "g", ["g", "b"], ["h", "g"]]),
    bins=st.integers(1, 5),
)
def test_no_neighbour_moves_a_summary_further_than_stated(
    data, n, statistics, by, bins
):
    table = data.draw(records(n))
    asked = {"x": statistics, "y": statistics[:2]}
    if by in (None, "g"):
        asked |= {"h": ["rate", "histogram"]}
    summary = PrivateSummary(
        statistics=asked,
        by=by,
        bounds={"x": (-1, 1), "y": (0, 0.5)},
        categories={"g": LEVELS, "h": LEVELS},
        bins=bins,
    )
    release, encode = release_of(summary, table)
    units = 1.0 if release.units is None else np.asarray(release.units)
    row = data.draw(st.integers(0, n - 1))
    other = table.copy()
    other.iloc[[row]] = data.draw(records(1)).to_numpy()
    other = other.astype(table.dtypes.to_dict())
    neighbours = {"add_remove": table.drop(index=row), "replace": other}
    before = release.run(encode(table))
    for relation, neighbour in neighbours.items():
        moved = (release.run(encode(neighbour)) - before) / units
        for norm in NORMS:
            stated = release.sensitivity.value(relation, norm, release.dim)
            assert np.linalg.norm(moved, norm) <= stated * (1 + 1e-9)


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    kind=st.sampled_from([PrivateMean, PrivateStandardScaler]),
)
def test_no_neighbour_moves_moments_further_than_stated(seed, d, kind):
    rng = np.random.default_rng(seed)
    X = rng.choice([-50.0, 0.0, 1.0, 2.5, 5.0, 80.0], size=(5, d))
    release, _ = release_of(kind(bounds=(0, 5)), X)
    other = X.copy()
    other[0] = rng.choice([-50.0, 0.0, 1.0, 2.5, 5.0, 80.0], size=d)
    for relation, neighbour in (("add_remove", X[1:]), ("replace", other)):
        moved = (release.run(neighbour) - release.run(X)) / np.asarray(release.units)
        for norm in NORMS:
            stated = release.sensitivity.value(relation, norm, release.dim)
            assert np.linalg.norm(moved, norm) <= stated * (1 + 1e-9)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("statistics", [["mean"], ["std"], ["rate"], ALL])
def test_some_neighbour_moves_a_summary_as_far_as_stated(by, statistics):
    values = [-1.0, -0.5, 0.5, 1.0]
    rows = pd.DataFrame(
        list(itertools.product(values, values, "ab")), columns=["x", "y", "g"]
    )
    summary = PrivateSummary(
        statistics=statistics,
        by=by,
        columns=["x", "y"],
        bounds=None if statistics == ["rate"] else {"x": (-1, 1), "y": (-1, 1)},
        categories={"g": ["a", "b"]},
        bins=[-1.0, -0.7, 0.0, 0.7, 1.0],
    )
    release, encode = release_of(summary, rows)
    alone, apart = brute(release.contribution, encode(rows))
    for norm in (1.0, 2.0):
        stated = release.sensitivity
        at_most = stated.value("add_remove", norm, release.dim) * len(rows)
        assert alone[norm] == pytest.approx(at_most, rel=1e-9)
        at_most = stated.value("replace", norm, release.dim) * len(rows)
        assert apart[norm] == pytest.approx(at_most, rel=1e-9)
