"""Outputs far from zero, in units: rounded multiples must not hide a move."""

import numpy as np
import pytest

from skpuffer.accountants import (
    ApproximateWasserstein,
    GeneralWasserstein,
    ShapedWasserstein,
    SlicedWasserstein,
)
from skpuffer.accountants._shaped._programme import least_shape
from skpuffer.distributions import (
    Discrete,
    Gaussian,
    PointMass,
    Support,
    distribution_distance,
)
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.transport import near_radius, near_transport

FAR = 1e9
MOVE = np.array([3e-6, -4e-6])
UNITS = (7.3, 0.59)

#: As they are in floating point: the difference of these is exact.
U = np.array([FAR, 2 * FAR])
V = U + MOVE
STEP = V - U


def _of(make):
    return make(U), make(V)


@pytest.mark.parametrize(
    "make",
    [
        PointMass,
        lambda at: Discrete([at, at + 1.0]),
        lambda at: Support([at]),
        lambda at: Gaussian(at, np.eye(2)),
    ],
)
def test_distances_in_units(make):
    u, v = _of(make)
    found = distribution_distance(u, v, units=UNITS)
    assert found == pytest.approx(np.linalg.norm(STEP / UNITS), rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2])
def test_near_distances_in_units(dim):
    u, v = [U[:dim], U[:dim] + 1.0], [V[:dim], V[:dim] + 1.0]
    length = np.linalg.norm(STEP[:dim] / UNITS[:dim])
    scale = UNITS[:dim]
    assert near_radius(u, v, 0, coordinate_scale=scale) == pytest.approx(length, 1e-12)
    found = near_transport(u, v, 0, coordinate_scale=scale)
    # the atoms of the plan are those that were given
    assert {tuple(row) for row in found.kept.x} <= {tuple(row) for row in u}


@pytest.mark.parametrize(
    "accountant",
    [
        GeneralWasserstein(1.0, 4.0, delta=None, noise="gaussian"),
        ApproximateWasserstein(
            1.0, 4.0, delta=None, event_delta=1e-3, noise="gaussian"
        ),
        ShapedWasserstein(1.0, 4.0),
        ShapedWasserstein(1.0, 4.0, floor=0, allow_degenerate=True),
        ShapedWasserstein(1.0, 4.0, slack=1e-6),
        SlicedWasserstein(1.0, 4.0, "joint", "closed", profile="basis"),
    ],
)
@pytest.mark.parametrize("make", [PointMass, lambda at: Discrete([at, at + 1.0])])
@pytest.mark.filterwarnings("ignore")
def test_noise_covers_the_move(accountant, make):
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0), n_records=4, dim=2, units=UNITS
    )
    noise = accountant.calibrate(release, LawsScenario([_of(make)])).noise
    if isinstance(accountant, SlicedWasserstein):
        loss = np.max(2 * STEP**2 / noise.std(2) ** 2)
    else:
        loss = 2 * np.sum(noise.whitened(STEP[None]) ** 2)
    assert loss <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_moves_that_are_nearly_parallel(seed):
    rng = np.random.default_rng(seed)
    moves = 1e3 * rng.normal(size=2) + rng.normal(size=(3, 2))
    found = least_shape(moves, gap=1e-3)
    lengths = np.einsum("ij,ij->i", moves @ np.linalg.inv(found.matrix), moves)
    assert lengths.max() <= 1 + 1e-6
    assert found.gap <= 1e-3


def test_a_step_leaves_no_move_without_weight():
    moves = [
        [678.0895663, -638.72252744],
        [680.9630894, -640.76524321],
        [681.85606357, -641.47237066],
    ]
    assert least_shape(np.array(moves), gap=1e-3).gap <= 1e-3


@pytest.mark.filterwarnings("ignore")
def test_what_rounding_shows_beside_the_moves_is_said():
    accountant = ShapedWasserstein(1.0, 4.0, floor=0, allow_degenerate=True)
    release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=2)
    laws = [(PointMass([0.0, 0.0]), PointMass([1.0, 2.0]))]
    said = accountant.calibrate(release, LawsScenario(laws)).certificate.assumptions
    assert any("rounding" in str(text) and "2^-43" in str(text) for text in said)
