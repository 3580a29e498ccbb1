"""Trees of counts: their sensitivity, and the counts that agree best with them."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skpuffer.accountants import Best, GroupPrivacy, PrivacyLoss
from skpuffer.noise import LaplaceNoise
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateSummary
from skpuffer.summary._count_tree import CountTree, consistent_leaves, tree_shape
from tests.attack import assert_tight

LEAVES = st.integers(1, 90)


def tree_of(n_leaves, unit=1.0):
    return CountTree(0, tuple(np.arange(n_leaves + 1.0)), unit)


def matrix(tree):
    """Rows are nodes, columns leaves."""
    leaves = np.arange(tree.n_leaves)
    return np.vstack(
        [
            (leaves // span == node).astype(float)
            for span, size in zip(tree.spans, tree.sizes, strict=True)
            for node in range(size)
        ]
    )


@given(st.integers(1, 5000))
def test_a_tree_covers_its_leaves(n_leaves):
    depth, fan_out = tree_shape(n_leaves)
    assert fan_out**depth >= n_leaves
    tree = tree_of(n_leaves)
    assert tree.sizes[-1] == n_leaves
    assert len(tree.sizes) == depth == tree.depth


@given(LEAVES, st.lists(st.floats(-3, 99), max_size=20), st.sampled_from([1.0, 2.5]))
def test_sums_are_those_of_contributions_and_of_leaves(n_leaves, x, unit):
    tree, X = tree_of(n_leaves, unit), np.array(x)[:, None]
    contributions = tree(X).sum(axis=0)
    np.testing.assert_allclose(tree.sums(X)[0], contributions)
    counts = np.histogram(np.clip(x, 0, n_leaves), tree.edges)[0]
    np.testing.assert_allclose(contributions * unit, matrix(tree) @ counts)


@pytest.mark.parametrize("n_leaves", [1, 7, 64, 70])
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_sensitivity_is_attained_and_no_more(n_leaves, norm):
    tree = tree_of(n_leaves, unit=1.5)
    rows = tree(np.arange(n_leaves)[:, None] + 0.5)
    added = np.linalg.norm(rows, norm, axis=1).max()
    assert tree.sensitivity.value("add_remove", norm, tree.dim) == pytest.approx(added)
    moves = np.linalg.norm(rows[:, None] - rows[None], norm, axis=2).max()
    bound = tree.sensitivity.value("replace", norm, tree.dim)
    assert bound == pytest.approx(moves) if n_leaves > 1 else bound >= moves


@settings(deadline=None)
@given(LEAVES, st.integers(0, 2**32 - 1))
# of three levels, in the middle one of which variances differ
@example(300, 0)
def test_leaves_are_those_of_dense_least_squares(n_leaves, seed):
    tree = tree_of(n_leaves)
    rng, A = np.random.default_rng(seed), matrix(tree)
    nodes, total = rng.normal(size=(2, tree.dim)), rng.normal(size=2)
    dense = np.linalg.lstsq(A, nodes.T, rcond=None)[0].T
    np.testing.assert_allclose(consistent_leaves(tree, nodes), dense, atol=1e-9)
    # with the total as a constraint, by its Lagrange multiplier
    ones = np.ones((n_leaves, 1))
    system = np.block([[A.T @ A, ones], [ones.T, np.zeros((1, 1))]])
    right = np.vstack([A.T @ nodes.T, total[None]])
    dense = np.linalg.solve(system, right)[:-1].T
    found = consistent_leaves(tree, nodes, total)
    np.testing.assert_allclose(found, dense, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), total, atol=1e-9)


def test_full_trees_have_the_weights_of_hay_et_al():
    # Theorem 3: z = (k^l - k^(l-1)) / (k^l - 1) h + (k^(l-1) - 1) / (k^l - 1) sum z
    tree = tree_of(64)
    nodes = np.random.default_rng(0).normal(size=(1, tree.dim))
    top, leaves = nodes[:, :8], nodes[:, 8:]
    k, sums = 8, leaves.reshape(1, 8, 8).sum(axis=2)
    z = (k**2 - k) / (k**2 - 1) * top + (k - 1) / (k**2 - 1) * sums
    found = consistent_leaves(tree, nodes).reshape(1, 8, 8)
    np.testing.assert_allclose(found.sum(axis=2), z)


@given(LEAVES, st.integers(0, 2**32 - 1))
def test_counts_without_noise_stay_what_they_are(n_leaves, seed):
    counts = np.random.default_rng(seed).integers(0, 9, (1, n_leaves)).astype(float)
    tree = tree_of(n_leaves)
    nodes = counts @ matrix(tree).T
    for total in (None, counts.sum(axis=1)):
        found = consistent_leaves(tree, nodes, total)
        np.testing.assert_allclose(found, counts, atol=1e-9)


# -- in a summary ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "accountant",
    [
        PrivacyLoss(noise="gaussian"),
        PrivacyLoss(noise="laplace"),
        PrivacyLoss(noise=LaplaceNoise()),
    ],
)
def test_other_statistics_have_no_more_noise_than_beside_few_bins(accountant):
    X = np.zeros((100, 1))
    scales = [
        PrivateSummary(
            accountant=accountant,
            statistics=["mean", "median"],
            bounds=(0, 1),
            bins=bins,
        )
        .fit(X)
        .noise_.scale[0]
        for bins in (20, np.linspace(0, 1, 21))  # the latter are counted as they are
    ]
    assert scales[0] == pytest.approx(scales[1])


def test_trees_alone_are_whole_numbers():
    X = np.random.default_rng(0).uniform(size=(10_000, 2))
    accountant = PrivacyLoss(noise="discrete_laplace")
    for statistics in ("median", {0: ["histogram"], 1: ["median"]}):
        model = PrivateSummary(None, accountant, statistics=statistics, bounds=(0, 1))
        assert abs(model.fit(X).result_.loc["median", 1] - 0.5) < 0.05


@pytest.mark.parametrize("accountant", [PrivacyLoss(), Best(1.0, delta=1e-5)])
@pytest.mark.parametrize("by", [None, "group"])
def test_quantiles_of_a_summary_have_no_floor_of_twenty_bins(by, accountant):
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(0.3, size=200_000)
    frame = pd.DataFrame({"x": x, "group": rng.integers(0, 2, len(x))})
    model = PrivateSummary(
        None,
        accountant,
        statistics={"x": ["quantile"]},
        by=by,
        categories={"group": [0, 1, 2]} if by else None,
        bounds={"x": (-10, 10)},
    ).fit(frame)
    exact = np.quantile(x, [0.25, 0.5, 0.75])
    found = model.result_.to_numpy()
    if by:
        # of a group without records there is nothing to say, by noisy counts
        assert np.all(np.isnan(found[2]) | (np.abs(found[2]) <= 10))
        assert np.abs(found[:2] - exact).max() < 0.02
    else:
        assert np.abs(found[:, 0] - exact).max() < 5e-3


def test_grids_that_are_given_are_counted_as_they_are():
    edges = np.linspace(0, 1, 21)
    model = PrivateSummary(statistics="median", bins=edges).fit(np.ones((50, 1)))
    asked = model.certificate_.sensitivity
    assert asked == pytest.approx(1)
    fine = PrivateSummary(
        accountant=PrivacyLoss(noise="gaussian"), statistics="median", bounds=(0, 1)
    ).fit(np.ones((50, 1)))
    assert fine.certificate_.sensitivity == pytest.approx(math.sqrt(3))


def test_bounds_with_no_numbers_between_them_leave_the_grid_as_it_is():
    low = 1.0
    high = low + 30 * np.spacing(low)
    model = PrivateSummary(statistics="median", bounds=(low, high))
    assert low <= model.fit(np.full((9, 1), low)).result_.iloc[0, 0] <= high


def test_an_attacker_finds_what_is_certified_of_a_tree_and_no_more():
    # one record goes from one end of the grid to the other: as far as can be
    model = PrivateSummary(
        RecordScenario(relation="replace"),
        GroupPrivacy(1.0, delta=1e-5, noise="gaussian"),
        statistics="median",
        bounds=(0, 1),
    )
    first, second = np.zeros((9, 1)), np.zeros((9, 1))
    second[0] = 1.0
    made = model.fit(first)
    tree = CountTree(0, tuple(np.linspace(0, 1, 501).tolist()))
    means = [tree.sums(X)[0] for X in (first, second)]
    move = means[1] - means[0]
    assert made.noise_.scale == pytest.approx(
        GroupPrivacy(1.0, delta=1e-5, noise="gaussian")
        .calibrate(*_release(np.linalg.norm(move)))
        .noise.scale,
        rel=1e-6,
    )

    def worlds(noise):
        # along the move, which is all that tells the two apart
        return [
            lambda n, rng, mean=mean: (
                mean @ move / np.linalg.norm(move) + noise.sample(n, rng)
            )
            for mean in means
        ]

    assert_tight(
        made.certificate_,
        made.noise_,
        worlds,
        seed=0,
        n_draws=60_000,
        score=lambda noise: lambda found: -np.ravel(found),
    )


def _release(shift):
    from skpuffer.releases import QueryRelease, Sensitivity

    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=9,
        dim=1,
        sensitivity=Sensitivity(add_remove={2: shift}),
    )
    return release, RecordScenario()
