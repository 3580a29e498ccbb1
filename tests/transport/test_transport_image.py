"""Couplings whose longest move is shortest in the image of a linear map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.transport import bottleneck_distance, near_plan_in_image, near_radius

seeds = st.integers(0, 2**20)


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_it_is_the_bottleneck_of_the_images(seed, n, m):
    rng = np.random.default_rng(seed)
    U, V, matrix = (rng.normal(size=size) for size in ((n, 3), (m, 3), (3, 3)))
    a, b = rng.integers(1, 5, size=n), rng.integers(1, 5, size=m)
    plan = near_plan_in_image(U, V, lambda rows: rows @ matrix, a, b)
    longest = np.linalg.norm(plan.displacements @ matrix, axis=1).max()
    exact = bottleneck_distance(U @ matrix, V @ matrix, a, b)
    assert longest == pytest.approx(exact, rel=1e-9)
    # a coupling: all mass of both sides, of the atoms themselves
    assert plan.mass.sum() == pytest.approx(1)
    for points, mass, side in ((U, a, plan.x), (V, b, plan.y)):
        for point, share in zip(points, mass / mass.sum(), strict=True):
            at = np.all(side == point, axis=1)
            assert plan.mass[at].sum() == pytest.approx(share)


@given(seeds, st.floats(0.0, 0.6))
def test_a_mass_may_be_left_out(seed, delta):
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(5, 2)), rng.normal(size=(7, 2))
    plan = near_plan_in_image(U, V, lambda rows: 2 * rows, delta=delta)
    assert plan.mass.sum() >= 1 - delta - 1e-12
    longest = np.linalg.norm(plan.displacements, axis=1).max()
    assert longest == pytest.approx(near_radius(U, V, delta), rel=1e-9)
