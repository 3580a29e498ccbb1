"""Which keys are released: chances that are optimal, private and certified."""

import itertools
import math

import numpy as np
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.partitions import PartitionRelease, keep_probability, kept_keys
from skpuffer.noise import DiscreteLaplaceNoise
from skpuffer.scenarios import RecordScenario
from tests.refused import refused

BUDGETS = [(0.1, 1e-6), (1.0, 1e-5), (0.02, 0.1), (3.0, 1e-12), (8.0, 1e-3), (1.0, 0.9)]


@pytest.mark.parametrize("budget", BUDGETS)
def test_chances_are_the_largest_that_are_private(budget):
    epsilon, delta = budget
    found = keep_probability(np.arange(201), epsilon, delta)
    most = [0.0]
    for _ in range(200):
        p, e = most[-1], math.exp(epsilon)
        most.append(min(e * p + delta, 1 - (1 - p - delta) / e, 1.0))
    np.testing.assert_allclose(found, most, rtol=1e-9, atol=1e-15)
    # of rounding near one, times odds
    room = delta * (1 + 1e-9) + math.exp(epsilon) * 1e-15
    for p, q in ((found[:-1], found[1:]), (found[1:], found[:-1])):
        assert np.all(p <= math.exp(epsilon) * q + room)
        assert np.all(1 - p <= math.exp(epsilon) * (1 - q) + room)


def law(counts, epsilon, delta):
    """Chances of all sets of released keys."""
    p = keep_probability(np.array(counts), epsilon, delta)
    sets = np.array(list(itertools.product([False, True], repeat=len(p))))
    return np.where(sets, p, 1 - p).prod(axis=1)


def neighbours(counts, held, relation, differ=1):
    """Counts where so many units come, go, or are others."""
    units = [u for u in itertools.product([0, 1], repeat=len(counts)) if sum(u) <= held]
    moves = {tuple(sign * np.array(u)) for u in units for sign in (1, -1)}
    if relation == "replace":
        moves = {tuple(np.subtract(u, v)) for u in units for v in units}
    ends = {tuple(counts)}
    for _ in range(differ):
        ends = {tuple(np.add(end, move)) for end in ends for move in moves}
    yield from ((counts, end) for end in sorted(ends) if min(end) >= 0)


def largest_divergence(release, noise, relation, epsilon):
    worst = 0.0
    one = 1 / noise.scale
    share = math.expm1(one) / math.expm1(release.max_units * one)
    delta, held = release.delta * share, release.max_keys
    for counts in itertools.product(range(4), repeat=2 if release.max_units > 1 else 3):
        for pair in neighbours(counts, held, relation, release.max_units):
            first, second = (law(c, one, delta) for c in pair)
            for p, q in ((first, second), (second, first)):
                apart = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                worst = max(worst, apart)
    return worst


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("held, differ", [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)])
def test_no_neighbour_tells_more_than_the_certificate_says(relation, held, differ):
    """All outcomes of all pairs of small tables, whose keys a unit may hold."""
    delta = 0.15
    moves = held * (1 if relation == "add_remove" else 2)
    release = PartitionRelease(
        n_records=9, delta=0.9 * delta / moves, max_keys=held, max_units=differ
    )
    scenario = RecordScenario(relation=relation, k=differ)
    found = PrivacyLoss(1.0, delta).calibrate(release, scenario)
    certificate = found.certificate
    assert certificate.relation == relation and certificate.composable
    assert certificate.delta == delta and 0.98 < certificate.epsilon <= 1.0
    told = largest_divergence(release, found.noise, relation, certificate.epsilon)
    assert told <= delta
    # outside of the event that it states, its curve holds at any epsilon
    curve = certificate.curve
    held_at = {epsilon: curve.delta(epsilon) for epsilon in (0.0, 0.5)}
    for epsilon, most in (held_at | {float(curve.renyi(math.inf)): 0.0}).items():
        told = largest_divergence(release, found.noise, relation, epsilon)
        assert told <= (certificate.event_delta + most) * (1 + 1e-12)
    if moves == 1:
        # less noise, or a larger share of delta, tells more than that
        less = DiscreteLaplaceNoise(0.7 * found.noise.scale)
        tight = PartitionRelease(n_records=9, delta=delta, max_units=differ)
        assert largest_divergence(tight, found.noise, relation, 1.0) > 0.99 * delta
        assert largest_divergence(tight, less, relation, 1.0) > 1.1 * delta


def test_more_units_than_are_said_to_differ_are_refused():
    release = PartitionRelease(n_records=9, delta=1e-6, max_units=2)
    with refused(UnsupportedError, "partition.several_records_differ", count=3):
        PrivacyLoss(1.0, 1e-5).calibrate(release, RecordScenario(k=3))


def test_keys_are_drawn_by_these_chances():
    _check_drawn(PartitionRelease(n_records=9, delta=0.01), 0.01)


def test_keys_that_several_units_move_are_drawn_by_less_likely_ones():
    share = math.expm1(1.0) / math.expm1(3.0)
    _check_drawn(PartitionRelease(n_records=9, delta=0.01, max_units=3), 0.01 * share)


def _check_drawn(release, delta):
    noise, n, rng = DiscreteLaplaceNoise(1.0), 40_000, np.random.default_rng(1)

    def off(noise):
        """How many deviations the most unlikely share is off."""
        worst = 0.0
        for count in range(1, 9):
            drawn = kept_keys(release, np.full(n, count), noise, rng).mean()
            p = float(keep_probability(np.array([count]), 1.0, delta)[0])
            worst = max(worst, abs(drawn - p) / math.sqrt(p * (1 - p) / n + 1e-12))
        return worst

    assert off(noise) < 5
    assert off(DiscreteLaplaceNoise(0.7)) > 50
    assert not kept_keys(release, np.zeros(n, int), noise, rng).any()
