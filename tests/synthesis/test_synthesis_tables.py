"""Trees, consistency and sampling: each step against what it should be."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse.csgraph import minimum_spanning_tree

from skpuffer.accountants import PrivacyLoss
from skpuffer.schema import Number, Schema
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.synthesis._mechanism import (
    maximum_spanning_tree,
    spanning_forest,
    unlinked,
)
from skpuffer.synthesis._model import (
    TableModel,
    group_cells,
    sum_groups,
    systematic_cells,
)
from skpuffer.synthesis._structure import (
    WeightedMean,
    dependence_scores,
    fit_to_margins,
    independent_table,
    joint_counts,
    pairs_of,
    project_on_groups,
    project_on_margins,
    project_on_mass,
    scale_to_margins,
)

# -- counts --------------------------------------------------------------------------


def test_joint_counts_are_a_cross_table():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 200) for size in (2, 3, 4)]
    counts = joint_counts(codes, (2, 3, 4))
    for cell in product(range(2), range(3), range(4)):
        inside = np.logical_and.reduce(
            [c == k for c, k in zip(codes, cell, strict=True)]
        )
        assert counts[cell] == inside.sum()


def test_joint_codes_of_bytes_do_not_overflow():
    codes = [np.full(3, 200, dtype=np.uint8), np.full(3, 250, dtype=np.uint8)]
    counts = joint_counts(codes, (201, 251))
    assert counts[200, 250] == counts.sum() == 3


def test_scores_are_distances_to_independence_by_the_released_margins():
    classes = np.array([0, 0, 1, 1])
    cells = [np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])]
    even = np.ones((2, 2))
    # each class has both cells of a diagonal, where independence has a half in each
    (score,) = dependence_scores(classes, cells, [even, even], [(0, 1)])
    assert score == pytest.approx(4.0)
    # by other margins, released ones, the distance is another
    skew = np.array([[2.0, 0.0], [2.0, 0.0]])
    (score,) = dependence_scores(classes, cells, [skew, skew], [(0, 1)])
    assert score == pytest.approx((1 + 1) + (2 + 1 + 1))


def test_classes_without_mass_have_an_empty_independent_table():
    table = independent_table(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(table, np.zeros((1, 2, 3)))


# -- the tree ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_tree_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=len(pairs_of(7)))
    edges = maximum_spanning_tree(scores, 7)
    by_pair = dict(zip(pairs_of(7), scores, strict=True))
    found = sum(by_pair[min(e), max(e)] for e in edges)
    # SciPy's is a minimum of positive weights
    costs = np.zeros((7, 7))
    for (i, j), score in by_pair.items():
        costs[i, j] = 10 - score
    best = 6 * 10 - minimum_spanning_tree(costs).sum()
    assert found == pytest.approx(best)
    met = {0}
    for parent, child in edges:
        assert parent in met
        assert child not in met
        met.add(child)
    assert met == set(range(7))


def test_ties_go_by_public_order():
    assert maximum_spanning_tree(np.zeros(6), 4) == [(0, 1), (0, 2), (0, 3)]


def test_one_column_has_no_links():
    assert maximum_spanning_tree(np.array([]), 1) == []


def test_links_of_low_scores_are_left_out():
    scores = np.array([5.0, -1.0, 2.0])  # of 01, 02 and 12
    assert spanning_forest(scores, 3, 0.0) == [(0, 1), (1, 2)]
    edges = spanning_forest(scores, 3, 3.0)
    assert edges == [(0, 1)]
    assert unlinked(edges, 3) == [2]


# -- groups --------------------------------------------------------------------------


def test_rare_levels_make_one_group():
    groups = group_cells(np.array([50.0, 1.0, 30.0, 0.0]), 10, "levels")
    np.testing.assert_array_equal(groups, [0, 2, 1, 2])


def test_ordered_cells_join_their_neighbours_and_heavy_ones_stand_alone():
    masses = np.array([4.0, 7.0, 3.0, 50.0, 0.0, 2.0, 90.0])
    groups = group_cells(masses, 10, "ordered", has_missing=True)
    # 3 is too light to stand beside 50, and what follows 50 is too light at the end
    np.testing.assert_array_equal(groups, [0, 0, 1, 1, 1, 1, 2])
    rare = group_cells(np.array([20.0, 20.0, 1.0]), 10, "amount", has_missing=True)
    np.testing.assert_array_equal(rare, [0, 1, 1])


@pytest.mark.parametrize("kind", ["levels", "ordered"])
@pytest.mark.parametrize("least", [0.0, 1.0, 1e9])
def test_groups_have_no_gaps(kind, least):
    masses = np.random.default_rng(1).poisson(1.0, 30).astype(float)
    groups = group_cells(masses, least, kind)
    assert set(groups) == set(range(groups.max() + 1))
    assert sum_groups(masses, groups).sum() == masses.sum()


# -- consistency ---------------------------------------------------------------------


def test_mean_of_least_variance():
    mean = WeightedMean()
    mean.add(np.array([1.0, 4.0]), 1.0)
    mean.add(np.array([4.0, 1.0]), np.array([2.0, 0.5]))
    np.testing.assert_allclose(mean.value, [2.0, 2.0])


def test_projection_on_a_mass():
    values = np.array([[3.0, 1.0, -5.0], [0.0, 0.0, 1.0]])
    found = project_on_mass(values, np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    grouped = project_on_groups(
        np.array([[5.0, 1.0, 1.0]]), np.array([0, 1, 1]), np.array([[2.0, 6.0]])
    )
    np.testing.assert_allclose(grouped, [[2.0, 3.0, 3.0]])


def test_projection_on_margins_is_the_nearest_table():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(1, 2, 3))
    rows, columns = np.array([[4.0, 2.0]]), np.array([[1.0, 2.0, 3.0]])
    found = project_on_margins(table, rows, columns)
    np.testing.assert_allclose(found.sum(axis=2), rows)
    np.testing.assert_allclose(found.sum(axis=1), columns)
    sums = [
        {"type": "eq", "fun": lambda t: t.reshape(2, 3).sum(axis=1) - rows[0]},
        {"type": "eq", "fun": lambda t: t.reshape(2, 3).sum(axis=0)[:2] - [1, 2]},
    ]
    best = minimize(
        lambda t: np.sum((t - table.ravel()) ** 2), np.zeros(6), constraints=sums
    )
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-4)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((1, 3, 2)),
        np.array([[[5.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]),
        np.array([[[0.0, 5.0], [5.0, 0.0], [0.0, 0.0]]]),
    ],
    ids=["nothing", "one cell", "a diagonal"],
)
def test_scaled_tables_have_their_margins_exactly_whatever_is_zero(table):
    rows, columns = np.array([[3.0, 0.0, 4.0]]), np.array([[2.0, 5.0]])
    found = scale_to_margins(table, rows, columns)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=2), rows, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), columns, atol=1e-12)


def test_noisy_tables_fit_their_margins_exactly():
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(8), size=3) * np.array([[100.0], [3.0], [0.0]])
    columns = rng.dirichlet(np.ones(5), size=3) * np.array([[100.0], [3.0], [0.0]])
    found = fit_to_margins(rng.normal(0, 20, (3, 8, 5)), rows, columns)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=2), rows, atol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), columns, atol=1e-10)


# -- sampling ------------------------------------------------------------------------


def test_rows_are_as_even_as_whole_numbers_allow():
    weights = np.array(
        [[1.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    )
    groups = np.repeat([0, 1, 2], [10, 8, 5])
    rng = np.random.default_rng(4)
    cells = systematic_cells(weights, groups, rng)
    counts = np.array([np.bincount(cells[groups == g], minlength=4) for g in range(3)])
    shares = np.array([10 * weights[0] / 6, [2, 2, 2, 2], [0, 0, 5, 0]])
    assert np.all(np.abs(counts - shares) < 1)
    assert counts[0, 2] == 0
    # rounded at random and without bias, by rows in random order
    many = np.array([systematic_cells(weights, groups, rng) for _ in range(600)])
    np.testing.assert_allclose((many[:, :10] == 0).mean(), 1 / 6, atol=0.02)
    first, second = many[:, 0] == 3, many[:, 1] == 3
    np.testing.assert_allclose(first.mean(), 0.5, atol=0.1)
    np.testing.assert_allclose(second.mean(), 0.5, atol=0.1)
    assert (first & second).mean() < 0.35


def _model(seed=0, n_classes=2):
    """A tree of four columns and one that stands alone, with merged cells."""
    rng = np.random.default_rng(seed)
    groups = [np.array(g) for g in ([0, 1, 1], [0, 1], [0, 1, 2, 0], [0, 0], [0, 1])]
    masses = np.array([70.0, 30.0])[:n_classes]
    margins = [
        rng.dirichlet(np.ones(len(g)), n_classes) * masses[:, None] for g in groups
    ]
    edges = [(0, 1), (1, 2), (0, 3)]
    tables = [
        scale_to_margins(
            rng.random((n_classes, groups[i].max() + 1, groups[j].max() + 1)),
            sum_groups(margins[i], groups[i]),
            sum_groups(margins[j], groups[j]),
        )
        for i, j in edges
    ]
    return TableModel(tuple(margins), tuple(groups), tuple(edges), tuple(tables))


def _whole_joint(model):
    """Masses of all combinations of cells, one after the other."""
    shape = [m.shape[1] for m in model.margins]
    joint = np.zeros([len(model.masses), *shape])
    for c, *cell in product(range(len(model.masses)), *map(range, shape)):
        at = [model.groups[k][x] for k, x in enumerate(cell)]
        mass = model.masses[c]
        children = {child for _, child in model.edges}
        for k, x in enumerate(cell):
            whole = model.margins[k][c][model.groups[k] == at[k]].sum()
            mass *= model.margins[k][c, x] / whole
            if k not in children:
                mass *= whole / model.masses[c]
        for (i, j), table in zip(model.edges, model.tables, strict=True):
            mass *= table[c, at[i], at[j]] / table[c, at[i]].sum()
        joint[(c, *cell)] = mass
    return joint


def test_joint_masses_are_sums_of_the_whole_distribution():
    model = _model()
    whole = _whole_joint(model)
    assert whole.sum() == pytest.approx(100)
    for size in (1, 2, 3):
        for columns in combinations(range(5), size):
            others = tuple(1 + k for k in range(5) if k not in columns)
            np.testing.assert_allclose(
                model.joint(columns), whole.sum(axis=others), atol=1e-10
            )
    # in the order they are asked for
    np.testing.assert_allclose(
        model.joint([4, 2, 0]), np.moveaxis(model.joint([0, 2, 4]), (1, 3), (3, 1))
    )
    for k, margin in enumerate(model.margins):
        np.testing.assert_allclose(model.joint([k]), margin, atol=1e-10)


def test_sampled_margins_are_those_of_the_model():
    model = _model(seed=1)
    classes, cells = model.sample(40_000, np.random.default_rng(5))
    np.testing.assert_allclose(np.bincount(classes), 400 * model.masses, atol=1)
    frame = pd.DataFrame(dict(enumerate(cells)))
    for i, j in combinations(range(5), 2):
        found = pd.crosstab([classes, frame[i]], frame[j]).to_numpy()
        joint = model.joint([i, j])
        np.testing.assert_allclose(
            found, 400 * joint.reshape(found.shape), atol=5 * np.sqrt(40_000 / 12)
        )
    for k, margin in enumerate(model.margins):
        found = pd.crosstab(classes, frame[k]).to_numpy()
        # evenly drawn: off by the roundings alone
        np.testing.assert_allclose(found, 400 * margin, atol=12)


def test_a_column_that_hangs_on_two_trees_is_drawn_once():
    model = TableModel(
        (np.array([[2.0, 2.0]]), np.array([[1.0, 3.0]])),
        (np.array([0, 1]), np.array([0, 1])),
    )
    np.testing.assert_allclose(model.joint([0, 1])[0], [[0.5, 1.5], [0.5, 1.5]])
    _, cells = model.sample(4, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(cells[1]), [0, 1, 1, 1])


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("share, scale", [(0.92, 5000), (0.5, 300), (0.0, 1000)])
def test_means_of_skewed_numbers_are_kept(integer, sign, share, scale):
    rng = np.random.default_rng(0)
    values = rng.exponential(scale, 10_000) * (rng.random(10_000) >= share)
    values = np.minimum(np.round(values) if integer else values, 99_999)
    low, high = sorted((0, sign * 99_999))
    schema = Schema(
        {"gain": Number(low, high, integer=integer, missing=False), "k": ["x", "y"]}
    )
    table = pd.DataFrame({"gain": sign * values, "k": rng.choice(["x", "y"], 10_000)})
    model = PrivateTableSynthesizer(schema=schema, accountant=PrivacyLoss(20.0))
    found = model.fit(table).sample(10_000)["gain"].to_numpy(dtype=float)
    assert found.mean() == pytest.approx(sign * values.mean(), rel=0.25)
    zeros = np.mean(np.abs(found) < 1e-5)
    assert zeros == pytest.approx(np.mean(values == 0), abs=0.03)
    assert np.all((found >= low) & (found <= high))
