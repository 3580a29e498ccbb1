"""Joint codes: the same sums as feature by feature, whatever is grouped how."""

from itertools import combinations

import numpy as np
import pytest

from skpuffer.additive import _codes
from skpuffer.additive._codes import CodedRows


@pytest.fixture
def coded():
    rng = np.random.default_rng(0)
    sizes = [3, 40, 2, 300, 7, 1]
    codes = np.column_stack([rng.integers(0, m, 500) for m in sizes])
    pairs = [*combinations(range(4), 2)]
    merged = [np.minimum(np.arange(m) * 8 // max(m, 8), 7) for m in sizes]
    # in both orders of a group's fields
    pairs[0] = pairs[0][::-1]
    return np.asfortranarray(codes.astype(np.uint16)), sizes, pairs, merged


def _cells(codes, sizes, pairs, merged):
    """Cell of each row in each block, and the blocks' numbers of cells."""
    cells = [codes[:, k].astype(int) for k in range(len(sizes))]
    counts = list(sizes)
    for i, j in pairs:
        width = merged[j].max() + 1
        cells.append(merged[i][codes[:, i]] * width + merged[j][codes[:, j]])
        counts.append((merged[i].max() + 1) * width)
    return cells, counts


@pytest.mark.parametrize("most_cells", [64, 512, 2**15])
@pytest.mark.parametrize("chunk", [7, 2**16])
def test_values_and_sums_are_those_of_the_blocks(monkeypatch, coded, most_cells, chunk):
    monkeypatch.setattr(_codes, "_MOST_CELLS", most_cells)
    monkeypatch.setattr(_codes, "_ROWS", chunk)
    rows, (cells, counts) = CodedRows(*coded), _cells(*coded)
    rng = np.random.default_rng(1)
    functions = [rng.normal(size=(m, 2)) for m in counts]
    tables = rows.tables(functions)
    found = np.concatenate([rows.values(tables, c) for _, c in rows.chunks()], axis=1)
    expected = sum(f[c] for f, c in zip(functions, cells, strict=True))
    np.testing.assert_allclose(found, expected.T)
    weights = rng.integers(-(2**20), 2**20, (2, 500)).astype(float)
    for total, c, m in zip(rows.sums(weights), cells, counts, strict=True):
        for out, weight in zip(total, weights, strict=True):
            # whole numbers: exact, whatever the order
            np.testing.assert_array_equal(out, np.bincount(c, weight, minlength=m))


def test_few_groups_hold_all_pairs():
    n = 20
    codes = np.zeros((100_000, n), dtype=np.uint8)
    rows = CodedRows(codes, [8] * n, [*combinations(range(n), 2)], [np.arange(8)] * n)
    # five features of eight cells a group hold ten pairs: 19 groups at the very least
    assert len(rows._groups) <= 4 + 2 * 19
    held = [b for group in rows._groups for b, _ in group.blocks]
    assert sorted(held) == list(range(n + n * (n - 1) // 2))


def test_joint_codes_are_small():
    codes = np.zeros((100_000, 14), dtype=np.uint8)
    rows = CodedRows(codes, [32] * 14)
    # three features of 32 cells a group, two bytes each
    assert sum(joint.nbytes for joint in rows._joint) == 5 * 2 * 100_000


def test_a_feature_of_more_cells_than_a_group_stands_alone():
    codes = np.array([[0], [70_000], [5]])
    rows = CodedRows(codes, [70_001])
    (total,) = rows.sums(np.ones((1, 3)))
    assert np.flatnonzero(total[0]).tolist() == [0, 5, 70_000]
