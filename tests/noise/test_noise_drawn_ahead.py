"""Magnitudes that a run draws ahead: each used once, by the run that drew it."""

import math
import os
import pickle
import threading

import numpy as np
import pytest
from scipy import stats

from skpuffer.kernel import run as kernel_run
from skpuffer.kernel.draws import Ahead, exact_normal, secret_generator
from skpuffer.kernel.run import noise_grid, sample_on_grid
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.summary import PrivateMean
from tests.refused import refused


def counted(n, rng):
    """Numbers 1, 2, 3, ... in place of magnitudes, so that each is known again."""
    counted.calls.append(n)
    first = sum(counted.calls[:-1]) + 1
    numbers = np.arange(first, first + n)
    return numbers, numbers.astype(np.uint64)


@pytest.mark.parametrize("expected", [0, 50, 10_000])
def test_each_is_handed_out_once(expected):
    counted.calls = []
    rng = secret_generator()
    ahead = Ahead(rng, expected)
    asked = [1, 1, 3, 0, 7, 200, 5, 5, 1000, 1]
    taken = [ahead.take(counted, n, rng) for n in asked]
    whole = np.concatenate([pair[0] for pair in taken])
    np.testing.assert_array_equal(whole, np.arange(1, sum(asked) + 1))
    np.testing.assert_array_equal(np.concatenate([pair[1] for pair in taken]), whole)
    # and they are drawn in few calls, no more than asked for and expected
    assert len(counted.calls) < 8
    assert sum(counted.calls) <= max(2 * sum(asked), expected)
    ((left, words),) = ahead._held.values()
    ahead.wipe()
    assert not left.any() and not words.any() and not ahead._held


def test_nobody_else_is_given_them():
    rng, other = secret_generator(), secret_generator()
    ahead = Ahead(rng, 100)
    ahead.take(exact_normal, 1, rng)

    def left():
        return ahead._held[exact_normal][0].size

    before = left()
    ahead.take(exact_normal, 5, other)
    thread = threading.Thread(target=ahead.take, args=(exact_normal, 5, rng))
    thread.start()
    thread.join()
    ahead._owner = (os.getpid() + 1, threading.get_ident())
    ahead.take(exact_normal, 5, rng)
    assert left() == before
    with refused(TypeError, "draws.ahead_not_pickled"):
        pickle.dumps(ahead)


@pytest.mark.parametrize(
    "noise, law",
    [
        (GaussianNoise(3.0), stats.norm(scale=3.0)),
        (LaplaceNoise(3.0), stats.laplace(scale=3.0)),
    ],
)
def test_the_law_is_that_of_draws_one_by_one(noise, law):
    rng, drawn = secret_generator(), []
    grid = noise_grid(noise, 100)
    token = kernel_run._AHEAD.set((rng, 3000, []))
    try:
        for n in [1, 2, 300, 17] * 30:
            drawn.append(sample_on_grid(noise, grid, (n,), rng))
    finally:
        kernel_run._AHEAD.reset(token)
    drawn = np.concatenate(drawn)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    # neighbours tell nothing of each other
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5 / math.sqrt(len(drawn))
    assert len(np.unique(np.abs(drawn))) == len(drawn)


def test_a_run_ends_with_nothing_held(monkeypatch):
    made = []

    class Kept(Ahead):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(kernel_run, "Ahead", Kept)
    PrivateMean(bounds=(0, 1)).fit(np.eye(4))
    assert len(made) == 1 and not made[0]._held
    assert kernel_run._AHEAD.get() is None
