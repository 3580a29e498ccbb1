"""How many records of a group a batch holds: every chance is counted, tails upwards."""

import math

import numpy as np
import pytest
from scipy import stats

from skpuffer.kernel.pairs import (
    log_mixed,
    participation,
    participation_of_subset,
    rare_participation,
)


@pytest.mark.parametrize("trials", [1, 3, 8, 9, 16, 40])
@pytest.mark.parametrize("chance", [0.01, 0.3, 0.9])
def test_of_few_trials_each_number_stands_for_itself(trials, chance):
    times, weights = participation(trials, chance)
    known = [
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in times
    ]
    ahead = times[:-1]
    assert ahead.tolist() == list(range(1, len(times)))
    # the last stands for all further ones
    known[-1] = 1 - (1 - chance) ** trials - sum(known[:-1])
    np.testing.assert_allclose(weights, known, rtol=1e-9, atol=1e-13)
    assert times[-1] == trials


@pytest.mark.parametrize(
    "trials, chance", [(10_000, 1e-4), (50_000, 1e-5), (3000, 0.01), (500, 0.002)]
)
def test_a_tail_is_counted_as_if_all_took_part(trials, chance):
    times, weights = participation(trials, chance)
    last = int(times[-2])
    law = stats.binom(trials, chance)
    assert times.tolist() == [*range(1, last + 1), trials]
    np.testing.assert_allclose(weights[:-1], law.pmf(times[:-1]))
    assert 0 < weights[-1] <= 1e-30
    assert weights[-1] == pytest.approx(law.sf(last))
    assert weights.sum() == pytest.approx(-math.expm1(trials * math.log1p(-chance)))
    # one by one, for what grows with the number
    rare, logs = rare_participation(trials, chance)
    assert rare.tolist() == list(range(last + 1, trials + 1))
    np.testing.assert_allclose(logs, law.logpmf(rare))
    assert not (times.flags.writeable or weights.flags.writeable)


@pytest.mark.parametrize("trials, chance", [(1, 0.5), (2, 0.5), (8, 0.1), (20, 0.5)])
def test_where_nothing_is_lumped_nothing_is_rare(trials, chance):
    assert participation(trials, chance)[0].tolist() == list(range(1, trials + 1))
    rare, logs = rare_participation(trials, chance)
    assert (len(rare), len(logs)) == (0, 0)


@pytest.mark.parametrize(
    "n, count, size", [(10, 3, 4), (10, 4, 3), (10, 1, 1), (5, 5, 2), (6, 4, 5)]
)
def test_a_subset_has_so_many_of_a_group(n, count, size):
    times, weights = participation_of_subset(n, count, size)
    known = {
        k: math.comb(count, k) * math.comb(n - count, size - k) / math.comb(n, size)
        for k in range(1, min(count, size) + 1)
        if size - k <= n - count
    }
    assert times.tolist() == list(known)
    np.testing.assert_allclose(weights, list(known.values()))
    assert not (times.flags.writeable or weights.flags.writeable)


@pytest.mark.parametrize("q", [1e-3, 0.3, 1.0])
def test_a_loss_is_mixed_and_told_apart_again(q):
    for loss in (0.0, 0.2, 5.0, 40.0, 299.9):
        mixed = float(log_mixed(np.array(loss), q))
        assert mixed == pytest.approx(math.log1p(q * math.expm1(loss)), rel=1e-12)
        assert float(log_mixed(np.array(mixed), 1 / q)) == pytest.approx(loss, 1e-9)
    # whose exponential no float holds
    for loss in (300.0, 301.0, 5000.0):
        known = loss + math.log(q)
        assert float(log_mixed(np.array(loss), q)) == pytest.approx(known, rel=1e-12)
