"""One round of k-means: cells, sums, their sensitivity, and the steps that follow."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.cluster import _k_means as _rounds
from skpuffer.cluster._k_means import (
    CellSums,
    Centres,
    Plan,
    merged,
    moved,
    nearest,
    public_centres,
    squared_distances,
)
from skpuffer.releases import AdaptiveRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._bounds import Bounds

from ..attack import assert_tight

RNG = np.random.default_rng(0)


def box(d):
    return Bounds((-1.0,) * d, (1.0,) * d)


def plan(norm=2.0, k=3, d=4, n=50, rounds=(2, 3)):
    return Plan(n, k, 4 * k, box(d), rounds, norm)


# -- cells ---------------------------------------------------------------------------


def test_a_cell_depends_on_its_row_alone():
    """Whoever stands beside a row, its distances are the same to the last bit."""
    rows, centres = RNG.uniform(-1, 1, (600, 7)), RNG.uniform(-1, 1, (9, 7))
    whole = squared_distances(rows, centres)
    for size in (1, 2, 3, 17, 64):
        for start in (0, 5, 301):
            part = rows[start : start + size]
            alone = squared_distances(part, centres)
            np.testing.assert_array_equal(alone, whole[start : start + size])
    np.testing.assert_array_equal(
        squared_distances(np.asfortranarray(rows), centres), whole
    )
    order = RNG.permutation(600)
    cells = nearest(rows, centres)
    np.testing.assert_array_equal(nearest(rows[order], centres), cells[order])


def test_ties_go_to_the_first_centre():
    centres = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    rows = np.array([[0.0, 0.3], [1.0, 0.0], [-0.5, 0.0]])
    assert nearest(rows, centres).tolist() == [0, 0, 1]


def test_a_record_changes_its_own_block_and_no_bit_of_the_others():
    sums, d = CellSums(0.4, 5), 5
    rows, centres = RNG.uniform(-1, 1, (500, d)), RNG.uniform(-1, 1, (6, d))
    whole = sums(rows, centres)
    np.testing.assert_array_equal(sums(RNG.permutation(rows), centres), whole)
    for at in (0, 17, 499):
        change = whole - sums(np.delete(rows, at, axis=0), centres)
        cell = nearest(rows[at : at + 1], centres)[0]
        assert not np.any(np.delete(change, cell, axis=0))
        own = sums(rows[at : at + 1], centres)
        np.testing.assert_array_equal(change[:, 1:], own[:, 1:])


def test_sums_by_hand():
    sums = CellSums(1.0, 2)
    centres = np.array([[0.0, 0.0], [10.0, 0.0]])
    rows = np.array([[0.5, 0.0], [3.0, 4.0], [10.0, -0.25]])
    a = 2**-0.25
    np.testing.assert_allclose(
        sums(rows, centres), [[2 * a, 0.5 + 0.6, 0.8], [a, 0.0, -0.25]], atol=2e-6
    )


# -- sensitivity ---------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 4, 13])
def test_sensitivities_of_the_specification(d):
    r = 0.4 * math.sqrt(d)
    sums, a = CellSums(r, d), r * d**-0.25
    assert sums.weight == pytest.approx(a)
    value = sums.sensitivity.value
    assert value("add_remove", 2, 99) == pytest.approx(math.hypot(a, r))
    assert value("replace", 2, 99) == pytest.approx(2 * r)
    pure = CellSums(r, d, norm=1.0)
    value = pure.sensitivity.value
    assert value("add_remove", 1, 99) == pytest.approx(pure.weight + r)
    assert value("replace", 1, 99) == pytest.approx(2 * (pure.weight + r))


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_the_weight_is_the_best_one(norm, d):
    """It minimises the error of a mean, by noise in its sum and in its count."""
    length = 1.0 if norm == 2 else 1 / math.sqrt(d)

    def error(a):
        sensitivity = math.hypot(a, 1) if norm == 2 else a + 1
        return (d + (length / a) ** 2) * sensitivity**2

    best = minimize_scalar(error, bounds=(1e-3, 10), method="bounded").x
    assert CellSums(1.0, d, norm).weight == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_no_record_moves_the_sums_further_and_some_as_far(norm):
    d = 3
    sums, centres = CellSums(0.5, d, norm), np.array([[-0.9] * d, [0.9] * d])
    points = np.vstack([RNG.uniform(-1, 1, (60, d)), np.eye(d), -np.eye(d)])
    parts = np.array([sums(point[None], centres).ravel() for point in points])
    for measured in (1, 2):
        length = np.linalg.norm(parts, measured, axis=1).max()
        apart = np.linalg.norm(parts[:, None] - parts, measured, axis=-1).max()
        stated = sums.sensitivity
        assert length <= stated.value("add_remove", measured, None) * (1 + 1e-12)
        assert apart <= stated.value("replace", measured, None) * (1 + 1e-12)
    # opposite in one cell, and far from both centres
    corner = np.array([[1.0, -1.0, 1.0]])
    move = np.linalg.norm(sums(corner, -corner).ravel(), norm)
    stated = sums.sensitivity.value("add_remove", norm, None)
    assert move == pytest.approx(stated, rel=1e-5)


# -- steps ---------------------------------------------------------------------------


def step(noisy, places, sums, deviation=0.01, n=10):
    d = places.shape[1]
    return moved(noisy, places, sums, deviation=deviation, n_records=n, box=box(d))


def test_a_step_by_hand():
    sums, places = CellSums(1.0, 1), np.array([[0.0], [0.5]])
    # weight 1; the counts 5 and 3 lack 2 of the public 10
    noisy = np.array([[5.0, 1.2], [3.0, -0.4]])
    found = step(noisy, places, sums)
    np.testing.assert_allclose(found.counts, [6.0, 4.0])
    np.testing.assert_allclose(found.places, [[0.2], [0.4]])


def test_steps_are_capped_clipped_and_floored():
    sums, places = CellSums(0.4, 1), np.array([[0.0], [0.9]])
    noisy = np.array([[4.0, 100.0], [-2.0, 0.3]])
    found = step(noisy, places, sums, deviation=0.1)
    assert found.places[0, 0] == pytest.approx(0.4)  # no longer than the radius
    assert found.places[1, 0] == pytest.approx(1.0)  # within the box
    assert found.counts.sum() == pytest.approx(10)
    assert found.counts[1] < 0 and np.all(np.isfinite(found.places))


def test_steps_are_shrunk_by_james_and_stein():
    sums, d = CellSums(1.0, 4), 4
    a = sums.weight
    noisy = np.array([[10 * a, 0.5, 0, 0, 0]])
    found = step(noisy, np.zeros((1, d)), sums, deviation=0.2)
    # s^2 = (.2/10)^2, |step| = .05: 1 - (4 - 2) s^2 / |step|^2
    assert found.places[0, 0] == pytest.approx(0.05 * (1 - 2 * 0.02**2 / 0.05**2))
    drowned = step(noisy, np.zeros((1, d)), sums, deviation=5.0)
    assert not drowned.places.any()


def test_centres_that_noise_makes_weigh_nothing():
    places = np.array([[-0.5], [-0.4], [0.5], [0.4], [1.0], [-1.0]])
    counts = np.array([100.0, 100.0, 60.0, 60.0, 9.0, -3.0])
    found = np.sort(merged(Centres(places, counts), 2, deviation=5.0).ravel())
    # the one of 9 is within two deviations, and pulls by half a record
    np.testing.assert_allclose(found, [-0.45, 0.45], atol=0.01)
    # fewer than asked for exceed the noise: the largest counts are taken
    counts = np.array([1.0, 2.0, 3.0, -1.0, 0.0, -2.0])
    found = merged(Centres(places, counts), 2, deviation=5.0)
    np.testing.assert_allclose(np.sort(found.ravel()), [-0.4, 0.5])


def test_public_centres_are_those_of_the_box():
    one, again = (public_centres(12, box(3)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one).max() <= 1 and len(np.unique(one, axis=0)) == 12
    shifted = public_centres(12, Bounds((0.0, -1.0, -1.0), (1.0, 1.0, 1.0)))
    np.testing.assert_allclose(shifted[:, 0], (one[:, 0] + 1) / 2)


def test_learning_is_forbidden_by_public_facts_alone():
    one = plan(n=1200, k=5, d=4)
    # the count of one of 20 cells, 60 records, in deviations of its noise
    limit = 60 / 0.06 * one.sums[0].weight
    assert one.can_learn(0.99 * limit) and not one.can_learn(1.01 * limit)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_shares_and_radii_of_the_plan(norm):
    found = plan(norm, rounds=(3, 1))
    assert sum(stage.share for stage in found.stages) == pytest.approx(1.0)
    assert [stage.dim for stage in found.stages] == [60, 60, 60, 15]
    half = 4 if norm == 1 else 2
    radii = [sums.radius / half for sums in found.sums]
    expected = [0.4, 0.25, 0.25, 0.2] if norm == 2 else [0.3, 0.2, 0.2, 0.2]
    assert radii == pytest.approx(expected)


# -- an attack on the rounds as they are executed ------------------------------------


class Watched:
    """Sums that keep what the canary would add to them."""

    def __init__(self, sums, canary):
        self._sums, self._canary = sums, canary

    def __getattr__(self, name):
        return getattr(self._sums, name)

    def __call__(self, rows, places):
        self.canary = self._sums(self._canary, places)
        return self._sums(rows, places)


class Odds:
    """A release that adds up the log odds of the canary's presence, exactly."""

    def __init__(self, release, sums, scale, present):
        self._release, self._sums, self._scale = release, sums, scale
        self._present, self.total = present, 0.0

    def __getattr__(self, name):
        return getattr(self._release, name)

    def noisy(self, at, exact, noise, rng):
        found = self._release.noisy(at, exact, noise, rng)
        canary = self._sums[at].canary
        absent = exact - canary if self._present else exact
        scale = self._release.unit(at) * self._scale
        far, near = (np.abs(found - mean) / scale for mean in (absent, absent + canary))
        if noise.family == "gaussian":
            far, near = far**2 / 2, near**2 / 2
        self.total += np.sum(far - near)
        return found


def rounds_of(found, release):
    """Draws of the attacker's log odds, with and without a canary in a corner."""
    d = len(found.box.low)
    rows, canary = np.linspace(-0.5, 0.1, 3 * d).reshape(3, d), np.ones((1, d))

    def worlds(noise):
        def draw(present, n, rng):
            private = np.vstack([rows, canary]) if present else rows
            totals = []
            for _ in range(n):
                watched = replace(found)
                sums = tuple(Watched(each, canary) for each in found.sums)
                vars(watched)["sums"] = sums
                odds = Odds(release, sums, noise.scale, present)
                _rounds.noisy_centres(private, watched, odds, noise, rng)
                totals.append(odds.total)
            return np.array(totals)

        return [
            lambda n, rng, present=present: draw(present, n, rng)
            for present in (True, False)
        ]

    return worlds


@pytest.mark.parametrize(
    "accountant, d, n_draws",
    [
        pytest.param(PrivacyLoss(3.0, 0.15), 2, 1000, id="gaussian"),
        pytest.param(
            GroupPrivacy(2.0, alpha=math.inf, noise="laplace"),
            1,
            20_000,
            id="pure",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_attacker_of_all_rounds_gets_what_is_promised_and_no_more(
    accountant, d, n_draws, monkeypatch
):
    # merging is post-processing, and takes longer than all the rest
    monkeypatch.setattr(_rounds, "merged", lambda found, k, deviation: found.places[:k])
    layout = stage_layout(accountant, RecordScenario())
    # one declared number of records in both worlds
    found = Plan(4, 1, 1, box(d), (1, 1), layout.norm)
    release = AdaptiveRelease(n_records=4, stages=found.stages, **layout._asdict())
    calibrated = accountant.calibrate(release, RecordScenario())
    assert_tight(
        calibrated.certificate,
        calibrated.noise,
        rounds_of(found, release),
        n_draws=n_draws,
        seed=1,
        epsilons=(0.0, 1.0),
    )


OPPOSITE = np.array([[0.5, 0.9, 0.9, 0.0], [-0.5, -0.9, -0.9, 0.0]])


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_worst_centres_let_a_record_move_all_rounds_by_one(norm, relation):
    """In units of the release: what is accounted for is reached, and not exceeded."""
    found = plan(norm)
    release = AdaptiveRelease(
        n_records=50, stages=found.stages, relation=relation, norm=norm
    )
    one, other = np.eye(4)[:1], -np.eye(4)[:1]
    moves = []
    for at, sums in enumerate(found.sums):
        # beyond the radius of its centre; replaced, on the other side of one centre in
        # l2, and in the cell of another one in l1
        places = np.zeros((2, 4)) if norm == 2 else OPPOSITE
        if relation == "add_remove":
            places = other.repeat(2, axis=0)
        move = sums(one, places)
        if relation == "replace":
            move = move - sums(other, places)
        moves.append(np.linalg.norm(move.ravel(), norm) / release.unit(at))
    assert np.linalg.norm(moves, norm) == pytest.approx(1.0, rel=1e-5)
    assert np.linalg.norm(moves, norm) <= 1 + 1e-12
