"""The entropic W_inf against reference values, a convex programme and its limits."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from skpuffer.transport import _entropic, bottleneck_distance, entropic_distance
from skpuffer.transport._masses import common_masses
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "srpp_entropic.json").read_text("utf-8")
)
U, V = np.array(ORACLES["u"])[:, None], np.array(ORACLES["v"])[:, None]
entropies = st.floats(1e-3, 10)


def laws(max_atoms=4, max_count=4, reach=5):
    atom = st.tuples(*[st.integers(-reach, reach)] * 2, st.integers(1, max_count))
    return st.lists(atom, min_size=1, max_size=max_atoms).map(
        lambda atoms: (np.array(atoms)[:, :2], np.array(atoms)[:, 2])
    )


def between(u, v, entropy, **options):
    return entropic_distance(u[0], v[0], entropy, u[1], v[1], **{"tol": 0.0} | options)


def radii_of(u, v):
    a, b = common_masses(len(u[0]), u[1], len(v[0]), v[1])
    return _entropic._Radii(u[0] * 1.0, a, v[0] * 1.0, b, 2.0, 1000)


@pytest.mark.parametrize("entropy, expected", ORACLES["values"])
def test_reference_values(entropy, expected):
    assert entropic_distance(U, V, entropy, tol=0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("radius, expected", ORACLES["divergences"])
def test_reference_divergences(radius, expected):
    """At the least radius too, where scaling on the mask alone is slow."""
    radii = radii_of((U, None), (V, None))
    # half a unit lets nothing through, and is none of them
    assert radii.radii[0] == radii.least == ORACLES["distance"]
    at = int(np.flatnonzero(radii.radii == radius)[0])
    assert radii.divergence(at) == pytest.approx(expected, abs=1e-9)


@given(entropies)
def test_a_law_against_itself(entropy):
    points = [[0], [1]]
    expected = min(entropy * math.log(2), 1)
    assert entropic_distance(points, points, entropy, tol=0) == pytest.approx(expected)
    assert bottleneck_distance(points, points) == 0


def divergence_by_programme(a, b, allowed):
    """Least divergence of a coupling on allowed pairs, from its concave dual."""
    i, j = np.nonzero(allowed)
    base = a[i] * b[j]

    def loss(potentials):
        f, g = np.split(potentials, [len(a)])
        mass = base * np.exp(f[i] + g[j])
        slope = np.concatenate(
            [
                np.bincount(i, mass, len(a)) - a,
                np.bincount(j, mass, len(b)) - b,
            ]
        )
        return mass.sum() - 1 - a @ f - b @ g, slope

    start = np.zeros(len(a) + len(b))
    return -minimize(loss, start, jac=True, method="BFGS", tol=1e-8).fun


@given(laws(), laws())
@settings(max_examples=15, deadline=None)
def test_divergences_against_a_programme(u, v):
    radii = radii_of(u, v)
    a, b = u[1] / u[1].sum(), v[1] / v[1].sum()
    found = [radii.divergence(at) for at in range(len(radii.radii))]
    assert found == sorted(found, reverse=True) or np.diff(found).max() < 1e-9
    lengths = cdist(u[0], v[0])
    for radius, ours in zip(radii.radii, found, strict=True):
        expected = divergence_by_programme(a, b, lengths <= radius * (1 + 1e-12))
        assert ours == pytest.approx(expected, abs=1e-5)


@given(laws(), laws(), entropies, st.floats(1, 5))
@settings(deadline=None)
def test_bounds_limits_and_order(u, v, entropy, factor):
    least = bottleneck_distance(u[0], v[0], u[1], v[1])
    found = between(u, v, entropy)
    assert least <= found <= cdist(u[0], v[0]).max() * (1 + 1e-12)
    assert found <= between(u, v, entropy * factor) * (1 + 1e-9)
    assert found == pytest.approx(between(v, u, entropy), rel=1e-9)
    # an unfinished search or scaling is no less than W_inf either
    rough = between(u, v, entropy, tol=0.1)
    assert found <= rough * (1 + 1e-9) and rough <= found / 0.9 * (1 + 1e-9)
    assert between(u, v, entropy, max_iter=1) >= least
    # the limit: no more than what a plan of W_inf costs
    atoms = math.log(len(u[0]) * len(v[0]) * 16)
    assert between(u, v, 1e-9) <= least + 1e-9 * (1 + atoms)


@given(laws(), laws(), entropies, st.floats(0.01, 100))
@settings(deadline=None, max_examples=20)
def test_units_scale_with_the_price(u, v, entropy, unit):
    found = between(u, v, entropy)
    scaled = [(points * unit, counts) for points, counts in (u, v)]
    assert between(*scaled, entropy * unit) == pytest.approx(unit * found, rel=1e-9)
    by_scale = between(*scaled, entropy, coordinate_scale=[unit, unit])
    assert by_scale == pytest.approx(found, rel=1e-9)


def test_equal_atoms_are_one():
    twice = [[0], [0], [1]], [[2], [3]]
    once = entropic_distance([[0], [1]], [[2], [3]], 0.3, [2, 1], tol=0)
    assert entropic_distance(*twice, 0.3, tol=0) == once
    masses = [Fraction(2, 3), Fraction(1, 3)]
    assert entropic_distance([[0], [1]], [[2], [3]], 0.3, masses, tol=0) == once


@pytest.mark.parametrize("ord", [1, 1.5, 3, np.inf])
def test_norms(ord):
    found = entropic_distance([[0, 0]], [[3, 4]], 0.5, ord=ord)
    assert found == pytest.approx(np.linalg.norm([3, 4], ord=ord))


def test_a_chain_that_scaling_alone_would_hardly_finish():
    """One coupling only: mass of the pairs beside it falls like 1/k."""
    n = 30
    points = np.arange(n)[:, None]
    moved = points + 0.5
    radii = radii_of((points, None), (moved, None))
    assert radii.divergence(0) == pytest.approx(math.log(n), abs=1e-9)


def test_many_atoms_go_to_a_grid():
    rng = np.random.default_rng(0)
    first, second = rng.random((60, 2)), rng.random((50, 2)) + 1
    exact = entropic_distance(first, second, 0.1, tol=0)
    coarse = entropic_distance(first, second, 0.1, tol=0, max_cells=400)
    assert exact <= coarse <= 2 * exact
    assert coarse >= bottleneck_distance(first, second)


def test_lengths_of_any_size():
    for unit in (1e-60, 1e60):
        found = entropic_distance(U * unit, V * unit, 0.1 * unit, tol=0)
        assert found == pytest.approx(1.1098612289 * unit, rel=1e-9)


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"entropy": 0.0}, "parameter.not_positive", {"name": "entropy"}),
        ({"entropy": -1.0}, "parameter.not_positive", {"name": "entropy"}),
        ({"entropy": np.nan}, "parameter.is_nan", {"name": "entropy"}),
        ({"entropy": np.inf}, "parameter.not_positive", {"name": "entropy"}),
        ({"ord": 0.5}, "parameter.below_one", {"name": "ord"}),
        ({"tol": -1.0}, "parameter.is_negative", {"name": "tol"}),
        ({"max_iter": 0}, "parameter.count_too_small", {"name": "max_iter"}),
        ({"max_cells": 0}, "parameter.below_one", {"name": "max_cells"}),
        (
            {"u_weights": [1, 2]},
            "transport.masses_count_differs",
            {"name": "u_weights"},
        ),
        ({"v_weights": [-1, 1, 1]}, "transport.masses_invalid", {"name": "v_weights"}),
        ({"coordinate_scale": [0.0]}, "transport.coordinate_scale_invalid", {}),
        ({"U": [1.0, 2.0]}, "transport.points_shape_invalid", {"name": "U"}),
        ({"V": [[np.nan]]}, "transport.values_not_finite", {"name": "V"}),
        ({"V": [[1.0, 2.0]]}, "transport.points_column_counts_differ", {}),
    ],
    ids=str,
)
def test_bad_parameters(options, code, parameters):
    with refused(ValueError, code, **parameters):
        entropic_distance(**{"U": U, "V": V, "entropy": 0.1} | options)
