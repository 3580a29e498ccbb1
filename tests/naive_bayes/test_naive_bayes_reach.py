"""How far one record moves the moments and counts of its class."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import PrivacyLoss
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.naive_bayes._categorical import cell_counts
from skpuffer.naive_bayes._gaussian import class_moments
from skpuffer.utils._bounds import Bounds

NORMS = (1.0, 2.0, math.inf)


def unit(d):
    return Bounds((-1.0,) * d, (1.0,) * d)


def every_row(d, codes):
    """Rows on a grid, at each class and at none."""
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 9), repeat=d)))
    y = np.repeat(np.arange(-1, codes), len(grid))
    return np.tile(grid, (codes + 1, 1)), y


def furthest(contribution, X, y):
    """Largest moves by relation and norm, over all records."""
    points = contribution(X, y)
    apart = points[:, None] - points[None]
    same = (X[:, None] == X[None]).all(axis=2)
    found = {}
    for norm in NORMS:
        found["add_remove", norm] = np.linalg.norm(points, norm, axis=1).max()
        lengths = np.linalg.norm(apart, norm, axis=2)
        found["replace", norm] = lengths.max()
        found["relabel", norm] = lengths[same].max()
    return found


@pytest.mark.parametrize("d", [1, 2])
def test_moments_move_as_far_as_is_said_and_no_further(d):
    moments = class_moments(unit(d), n_classes=2)
    for (relation, norm), move in furthest(moments, *every_row(d, 2)).items():
        said = moments.sensitivity.value(relation, norm, moments.dim)
        if norm in (1.0, 2.0):
            assert move == pytest.approx(said), (relation, norm)
        assert move <= said * (1 + 1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 30])
def test_moments_have_the_published_sensitivities(d):
    """Numbers of the specification, for d columns."""
    moments = class_moments(unit(d), n_classes=3)
    expected = {
        ("add_remove", 2): math.sqrt(1 + 5 * d / 4),
        ("add_remove", 1): 1 + 3 * d / 2,
        ("replace", 2): max(2 * math.sqrt(d), math.sqrt(2 + 5 * d / 2)),
        ("replace", 1): 2 + 3 * d,
        ("relabel", 2): math.sqrt(2 + 5 * d / 2),
    }
    for (relation, norm), value in expected.items():
        said = moments.sensitivity.value(relation, norm, moments.dim)
        assert said == pytest.approx(value), (relation, norm)


@pytest.mark.parametrize("n_cells", [(3,), (2, 4), (2, 3, 2)])
def test_counts_move_as_far_as_is_said_and_no_further(n_cells):
    counts = cell_counts(n_cells, n_classes=2)
    d = len(n_cells)
    rows = np.array(list(itertools.product(*map(range, n_cells))))
    X, y = np.tile(rows, (3, 1)), np.repeat([-1, 0, 1], len(rows))
    expected = {
        ("add_remove", 1.0): d,
        ("add_remove", 2.0): math.sqrt(d),
        ("replace", 1.0): 2 * d,
        ("replace", 2.0): math.sqrt(2 * d),
        ("relabel", 2.0): math.sqrt(2 * d),
    }
    for (relation, norm), move in furthest(counts, X, y).items():
        said = counts.sensitivity.value(relation, norm, counts.dim)
        assert move == pytest.approx(said), (relation, norm)
        if (relation, norm) in expected:
            assert said == pytest.approx(expected[relation, norm])


def test_a_record_that_changes_class_moves_two_blocks():
    moments = class_moments(unit(2), n_classes=3)
    x = np.ones((1, 2))
    moved = moments(x, [0]) - moments(x, [2])
    blocks = moved.reshape(3, -1)
    assert (blocks != 0).any(axis=1).tolist() == [True, False, True]
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(2 + 5))


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 4),
    n_classes=st.integers(2, 4),
    norm=st.sampled_from(NORMS),
)
def test_moves_of_features_bound_those_of_contributions(seed, d, n_classes, norm):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-5, 0, d)
    bounds = Bounds(tuple(low), tuple(low + rng.uniform(0.1, 9, d)))
    n_cells = tuple(rng.integers(1, 6, d).tolist())
    gaps = rng.uniform(0, 3, (20, d)) * (rng.random((20, d)) < 0.6)
    first = rng.uniform(-6, 9, (20, d))
    second = first + gaps * rng.choice([-1, 0.3, 1], (20, d))
    y = rng.integers(-1, n_classes, 20)
    for contribution, a, b in (
        (class_moments(bounds, n_classes), first, second),
        (
            cell_counts(n_cells, n_classes),
            *(
                np.clip(x, 0, np.array(n_cells) - 1).astype(int)
                for x in (first, second)
            ),
        ),
    ):
        apart = np.linalg.norm(contribution(a, y) - contribution(b, y), norm, axis=1)
        assert np.all(apart <= contribution.move(gaps, norm) * (1 + 1e-9) + 1e-9)


def test_columns_that_stay_cost_nothing():
    """Of five columns two may move: sqrt(2 * 2) for sqrt(2 * 5)."""
    counts = cell_counts((3,) * 5, n_classes=2)
    gaps = np.array([[1.0, 0, 0, 2.0, 0]])
    assert counts.move(gaps, 2.0)[0] == pytest.approx(2.0)
    assert counts.move(gaps, 1.0)[0] == pytest.approx(4.0)


@given(seed=st.integers(0, 2**32 - 1))
def test_sums_are_those_of_the_contributions(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 3, 40)
    X = rng.uniform(-2, 2, (40, 3))
    codes = rng.integers(0, 4, (40, 3)).astype(np.uint8)
    for contribution, rows in (
        (class_moments(unit(3), 3), X),
        (cell_counts((4, 5, 4), 3), codes),
    ):
        np.testing.assert_allclose(
            contribution.total(rows, y), contribution(rows, y).sum(axis=0), atol=1e-12
        )


def test_contributions_are_hashable_by_value():
    assert hash(class_moments(unit(2), 2)) == hash(class_moments(unit(2), 2))
    assert cell_counts((2, 3), 2) == cell_counts((2, 3), 2)
    assert cell_counts((2, 3), 2) != cell_counts((2, 3), 3)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("kind", [PrivateGaussianNB, PrivateCategoricalNB])
@pytest.mark.parametrize("least", [0, 3])
def test_weights_below_the_largest_count_beside_missing_labels(kind, least):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", None], 300, p=[0.5, 0.3, 0.2])
    X = rng.uniform(-1, 1, (300, 2)) + 0.3 * (y == "b")[:, None]
    w = np.full(300, 3) if least else rng.integers(0, 3, 300)
    accountant = PrivacyLoss(1e6, 1e-9, noise="gaussian")
    options = {"bounds": (-2, 2), "classes": ["a", "b"], "accountant": accountant}
    model = kind(weight_bounds=(least, 3), **options).fit(X, y, sample_weight=w)
    times = np.repeat(np.arange(300), w)
    other = kind(**options).fit(X[times], y[times])
    for name in ("class_count_", "class_prior_"):
        found, expected = getattr(model, name), getattr(other, name)
        np.testing.assert_allclose(found, expected, rtol=1e-3)
    np.testing.assert_allclose(
        model.predict_proba(X), other.predict_proba(X), rtol=0.01, atol=1e-3
    )


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("kind", [PrivateGaussianNB, PrivateCategoricalNB])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_missing_labels_leave_the_model_of_the_others(kind, weighted):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.1, "b", "a").astype(object)
    X = rng.normal(0, 0.2, (2000, 1)) + np.where(y == "b", 0.5, -0.5)[:, None]
    y[rng.random(2000) < 0.5] = None
    w = rng.integers(1, 3, 2000) if weighted else np.ones(2000, int)
    accountant = PrivacyLoss(1e6, 1e-9, noise="gaussian")
    model = kind(None, accountant, bounds=(-2, 2), classes=["a", "b"])
    times = np.repeat(np.arange(2000), w * (y != None))  # noqa: E711 # by entry
    other = clone(model).fit(X[times], y[times])
    if weighted:
        model.set_params(weight_bounds=(0, 3)).fit(X, y, sample_weight=w)
    else:
        model.fit(X, y)
    for name in ("class_count_", "class_prior_"):
        found, expected = getattr(model, name), getattr(other, name)
        np.testing.assert_allclose(found, expected, rtol=1e-3)
    np.testing.assert_allclose(
        model.predict_log_proba(X), other.predict_log_proba(X), rtol=0.01, atol=1e-3
    )
