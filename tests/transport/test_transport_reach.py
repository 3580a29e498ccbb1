"""Pairs drawn for the flow change how W_inf is found, and never what it is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from skpuffer.transport import (
    _radius as _reach,
)
from skpuffer.transport import (
    bottleneck_distance,
    bottleneck_transport,
    near_radius,
    near_transport,
)
from skpuffer.transport._radius import Reach


@pytest.fixture
def drawn(monkeypatch):
    """Draw pairs however few atoms there are, two for each, and count the cuts."""
    for name, value in {"_SMALL": 0, "_FEW": 1, "_DRAWN": 1, "_ADDED": 1}.items():
        monkeypatch.setattr(_reach, name, value)
    cuts = []
    add = Reach.add_across
    monkeypatch.setattr(
        Reach, "add_across", lambda self, *cut: (cuts.append(1), add(self, *cut))
    )
    return cuts


def by_all_pairs(monkeypatch, call, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(_reach, "_SMALL", math.inf)
        return call(*arguments, **options)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
    "shifted": lambda rng, n: rng.normal(size=(n, 2)) + 1,
    "uniform": lambda rng, n: rng.random((n, 2)) + [0.7, 0],
    "wide": lambda rng, n: rng.normal(size=(n, 3)) * 20,
    "lattice": lambda rng, n: rng.integers(0, 9, (n, 2)),
    "clusters": lambda rng, n: rng.choice([-4, 4], (n, 1)) + rng.normal(size=(n, 2)),
}


@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("patience", [1, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_all_pairs(monkeypatch, drawn, shape, patience, norm):
    monkeypatch.setattr(_reach, "_PATIENCE", patience)
    rng = np.random.default_rng(len(shape))
    for n, m in [(30, 30), (40, 17)]:
        U = rng.normal(size=(n, 3 if shape == "wide" else 2))
        V = SHAPES[shape](rng, m)
        for weights in ((None, None), (rng.integers(1, 9, n), None)):
            law = (U, V, *weights, norm)
            expected = by_all_pairs(monkeypatch, bottleneck_distance, *law)
            assert bottleneck_distance(*law) == pytest.approx(expected, rel=2e-12)
    if patience == 1000 and shape in ("uniform", "shifted"):
        assert drawn


points = st.lists(
    st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=7
)


@given(points, points, st.sampled_from([1, 2, math.inf]))
def test_agrees_with_brute_force(brute_force, U, V, norm):
    metric = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}[norm]
    ones = np.ones(len(U), int), np.ones(len(V), int)
    expected = brute_force(cdist(U, V, metric), *ones, math.inf)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_SMALL", "_FEW", "_DRAWN", "_ADDED"):
            patch.setattr(_reach, name, 0)
        found = bottleneck_distance(U, V, ord=norm)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_near_radii_agree_with_all_pairs(monkeypatch, drawn, delta):
    rng = np.random.default_rng(3)
    U, V = rng.normal(size=(70, 2)), rng.normal(size=(70, 2)) * 1.5 + 0.4
    expected = by_all_pairs(monkeypatch, near_radius, U, V, delta)
    result = near_transport(U, V, delta)
    assert result.radius == pytest.approx(expected, rel=2e-12)
    assert result.kept.mass.sum() >= 1 - delta - 1e-12
    lengths = np.linalg.norm(result.kept.displacements, axis=1)
    assert lengths.max() <= result.radius * (1 + 1e-12)


def test_draws_where_all_pairs_are_too_many_to_hold():
    """Ten million pairs within reach, of which two hundred thousand may be held."""
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 1
    result = bottleneck_transport(U, V, max_cells=2e5)
    assert result.exact
    # the atom furthest from all others has to travel to the nearest of them
    assert result.distance >= cdist(U, V).min(axis=0).max() * (1 - 1e-12)


def test_the_same_pairs_on_every_run(drawn):
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(90, 2)), rng.normal(size=(90, 2)) + 1
    first, second = (near_transport(U, V, 0.1).kept for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)


def test_all_pairs_are_taken_where_they_are_few():
    rng = np.random.default_rng(0)
    U = rng.random((2000, 2))
    V = U + rng.uniform(-1e-3, 1e-3, U.shape)
    *_, every = Reach(U, V, 2).pairs(2e-3, math.inf)
    assert every
    i, j, every = Reach(U, V, 2).pairs(0.9, math.inf)  # millions are within reach
    assert not every and len(i) <= 2 * 2000 * (1 + _reach._DRAWN)
    assert np.all(np.linalg.norm(U[i] - V[j], axis=1) <= 0.9)
    assert len(np.unique(i * 2000 + j)) == len(i)
