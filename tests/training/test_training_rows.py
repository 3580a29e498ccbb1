"""Rows as a run reads them: their lengths are bounds, whoever else reads or changes."""

import mmap
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from skpuffer.kernel.draws import secret_generator
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import LinearGradients, Logistic, Squared, train
from skpuffer.training._engine import Recalibration, _other_clipping
from skpuffer.training._record_gradient import RecordGradient
from skpuffer.training._rows import Rows
from tests.refused import refused

N = 9000
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-0.5, 0.5, (N, 3))


def by_memmap(path):
    return np.memmap(path, dtype=float, mode="r+", shape=ROWS.shape)


def by_buffer(path):
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0)).reshape(ROWS.shape)


def by_view(path):
    with path.open("r+b") as file:
        held = memoryview(mmap.mmap(file.fileno(), 0))
    return np.frombuffer(held).reshape(ROWS.shape)


def by_slice(path):
    return np.asarray(by_memmap(path))[:]


@pytest.mark.parametrize("place", [0, 5000, 8500, N - 1])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize("mapped", [by_memmap, by_buffer, by_view, by_slice])
def test_no_row_that_changes_behind_a_map_moves_a_sum_further(
    mapped, order, some, place, tmp_path
):
    """Longer in one of the norms that were measured, wherever it is."""
    path = tmp_path / "rows.dat"
    rows = ROWS.copy()
    rows[place] = 0.49, 0.0, 0.0
    rows.tofile(path)
    gradients = LinearGradients(Logistic(), mapped(path), ROWS[:, 0] > 0)
    release = GradientRelease(
        n_records=N, n_steps=2, sampling="full_batch", clip_norm=0.3, clip_order=order
    )
    index = np.arange(N)[::-1].copy() if some else None
    at = np.ones(gradients.dim)
    before = gradients.clipped_sum(at, index, release)
    # the first one is longer in l1 alone
    for row in ([0.34, 0.34, 0.05], [1e6, 0.0, 0.0], [40.0, 40.0, 40.0]):
        by_memmap(path)[place] = row
        if max(row) > 1 or order == 1:
            with refused(ValueError, "gradient.memory_map_changed"):
                gradients.clipped_sum(at, index, release)
            continue
        with suppress(ValueError):
            after = gradients.clipped_sum(at, index, release)
            assert np.linalg.norm(after - before, order) <= 2 * 0.3 * (1 + 1e-9)


def test_readers_of_the_same_rows_do_not_write_over_each_other():
    whole = Rows(ROWS)
    there = [RNG.permutation(N)[:8400] for _ in range(2)]
    for _ in whole.blocks(there[0]):
        pass
    readers = [whole.reader() for _ in there]
    for pair in zip(
        *(r.blocks(i) for r, i in zip(readers, there, strict=True)), strict=True
    ):
        for rows, select in pair:
            assert np.array_equal(rows, ROWS[select])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data_norm", [None, 0.3, 7.0])
def test_lengths_are_bounds_for_each_norm_and_constant(dtype, data_norm):
    X = RNG.uniform(-1, 1, (500, 3)).astype(dtype)
    rows = Rows(X, data_norm)
    exact = X.astype(np.longdouble)
    longest = np.sqrt(np.sum(exact**2, axis=1))
    if data_norm is not None:
        # as rows are read: over their own length or the norm of the data, in dtype
        exact = exact * (rows._units.astype(np.longdouble))[:, None]
        assert np.all(rows._units * longest <= 1 + 8 * np.finfo(dtype).eps)
    for constant in (0.0, 0.5, 1.0, 3.0, 0.5, 0.0):
        for order in (1.0, 2.0, np.inf):
            with_one = np.column_stack([exact, np.full(len(X), constant)])
            real = np.linalg.norm(with_one.astype(float), order, axis=1)
            found = rows.norms(order, constant).astype(float)
            assert np.all(found >= real * (1 - 2.0**-50))
            assert np.all(found <= real * (1 + 1e-4))
    squared = np.sum(exact**2, axis=1)
    assert np.all(rows.norms(2.0).astype(np.longdouble) ** 2 >= squared)


def test_a_sum_is_checked_for_the_most_records_it_may_be_of(monkeypatch):
    told = []
    monkeypatch.setattr(Rows, "check_size", lambda self, n_rows: told.append(n_rows))
    X = ROWS[:40]
    for sampling, size in (("poisson", 5), ("with_replacement", 60), ("fixed_size", 3)):
        release = GradientRelease(
            n_records=40,
            n_steps=1,
            sampling=sampling,
            batch_size=size,
            optimiser=Optimiser(learning_rate=0.1),
        )
        gradients = LinearGradients(Logistic(), X, X[:, 0] > 0)
        train(gradients, release, GaussianNoise(1.0), secret_generator())
        assert told.pop() >= max(40, size)


@pytest.mark.parametrize("seed", range(50))
def test_the_last_steps_weigh_no_record_more_than_the_first(seed):
    whole, last = np.random.default_rng(seed).uniform(0.01, 3.0, 2)
    optimiser = Optimiser(
        learning_rate=0.1, recalibration=Recalibration(n_steps=2, clip_norm=last)
    )
    release = GradientRelease(
        n_records=9,
        n_steps=5,
        sampling="full_batch",
        clip_norm=whole,
        optimiser=optimiser,
    )
    other, share = _other_clipping(release)
    assert Fraction(share) * Fraction(other.clip_norm) <= Fraction(whole)


def test_a_record_of_known_moves_has_rows_and_targets_of_their_scale():
    record = RecordGradient(loss=Squared(), data_norm=1.0, intercept=0.0)
    release = GradientRelease(
        n_records=40,
        n_steps=1,
        sampling="full_batch",
        record=record,
        optimiser=Optimiser(learning_rate=0.1),
    )
    X, y = ROWS[:40], np.clip(ROWS[:40, 0], -1, 1)

    def run(X, y, release=release, **options):
        gradients = LinearGradients(Squared(), X, y, intercept_scale=0.0, **options)
        return train(gradients, release, GaussianNoise(1.0), secret_generator())

    run(X, y)
    for rows, targets in ((4 * X, y), (X, 4 * y), (X, np.append(y[1:], 1.1))):
        with refused(ValueError, "gradient.record_rows_not_scaled"):
            run(rows, targets)
    with refused(ValueError, "gradient.record_with_unit_weights"):
        run(X, y, weights=np.linspace(0.5, 1, 40))
    other = replace(release, record=replace(record, intercept=0.5))
    with refused(ValueError, "gradient.record_of_other_gradients"):
        run(X, y, release=other)
