"""Each sampling scheme against its law."""

import numpy as np
import pytest
from scipy import stats

from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease


def drawn(seed=0, **release):
    release = GradientRelease(**release)
    return list(release.sampling.batches(release, np.random.default_rng(seed))), release


def counts(drawn_batches, n):
    return np.bincount(np.concatenate(drawn_batches), minlength=n)


@pytest.mark.parametrize("scheme", SAMPLING_SCHEMES)
@pytest.mark.parametrize("n_steps", [1, 7, 100])
def test_as_many_batches_as_steps_in_range_and_in_order(scheme, n_steps):
    size = None if scheme == "full_batch" else 5
    found, _ = drawn(n_records=23, batch_size=size, n_steps=n_steps, sampling=scheme)
    assert len(found) == n_steps
    for batch in found:
        if scheme == "full_batch":
            assert batch is None
            continue
        assert batch.dtype.kind == "i"
        assert np.all((batch >= 0) & (batch < 23))
        least = 0 if scheme == "with_replacement" else 1
        assert np.all(np.diff(batch) >= least)


@pytest.mark.parametrize("scheme", list(SAMPLING_SCHEMES)[1:])
def test_a_generator_fixes_the_batches(scheme):
    same = [
        drawn(3, n_records=50, batch_size=8, n_steps=20, sampling=scheme)[0]
        for _ in range(2)
    ]
    for one, two in zip(*same, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("scheme", ["poisson", "fixed_size", "with_replacement"])
def test_every_record_is_as_likely(scheme):
    found, release = drawn(n_records=40, batch_size=8, n_steps=20_000, sampling=scheme)
    seen = counts(found, 40)
    rate, trials = 8 / 40, len(found)
    spread = {
        "poisson": 1 - rate,
        "fixed_size": 1 - rate,
        "with_replacement": 1 - 1 / 40,
    }
    # counts are exchangeable; under a fixed total the sum of squares has n-1 freedoms
    statistic = ((seen - trials * rate) ** 2).sum() / (trials * rate * spread[scheme])
    freedom = 40 if scheme == "poisson" else 39
    factor = 39 / 40 if scheme != "poisson" else 1.0
    assert 1e-4 < stats.chi2.sf(statistic * factor, freedom) < 1 - 1e-4
    inside = np.mean([7 in batch for batch in found])
    assert abs(inside - release.sampling_rate) < 5 * np.sqrt(0.25 / trials)


def test_poisson_sizes_are_binomial_with_empty_batches():
    found, _ = drawn(n_records=30, batch_size=2, n_steps=20_000)
    sizes = np.bincount([len(batch) for batch in found], minlength=31)
    expected = stats.binom.pmf(np.arange(31), 30, 2 / 30) * len(found)
    tail = expected < 10
    seen = np.append(sizes[~tail], sizes[tail].sum())
    wanted = np.append(expected[~tail], expected[tail].sum())
    assert sizes[0] > 1000
    assert stats.chisquare(seen, wanted).pvalue > 1e-4


def test_poisson_records_are_independent():
    found, _ = drawn(1, n_records=12, batch_size=6, n_steps=20_000)
    inside = np.zeros((len(found), 12))
    for row, batch in zip(inside, found, strict=True):
        row[batch] = 1
    correlation = np.corrcoef(inside, rowvar=False) - np.eye(12)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(found))
    # and steps of each other: the next step's inclusions are as likely after any
    lagged = np.corrcoef(inside[:-1, 0], inside[1:, 0])[0, 1]
    assert abs(lagged) < 5 / np.sqrt(len(found))
    ends = np.corrcoef(inside[:-1, 11], inside[1:, 0])[0, 1]
    assert abs(ends) < 5 / np.sqrt(len(found))


def test_poisson_of_everyone_is_everyone():
    found, _ = drawn(n_records=9, batch_size=9, n_steps=5)
    for batch in found:
        np.testing.assert_array_equal(batch, np.arange(9))


def test_poisson_of_one_record_in_many():
    found, _ = drawn(n_records=100_000, batch_size=1, n_steps=3000)
    sizes = [len(batch) for batch in found]
    assert abs(np.mean(sizes) - 1) < 5 / np.sqrt(3000)


def test_fixed_size_pairs_are_as_likely():
    found, _ = drawn(
        2, n_records=6, batch_size=2, n_steps=15_000, sampling="fixed_size"
    )
    _, seen = np.unique(np.stack(found), axis=0, return_counts=True)
    assert len(seen) == 15
    assert stats.chisquare(seen).pvalue > 1e-4


def test_with_replacement_repeats_as_often_as_it_should():
    found, _ = drawn(
        n_records=5, batch_size=3, n_steps=20_000, sampling="with_replacement"
    )
    distinct = np.bincount([len(np.unique(batch)) for batch in found], minlength=4)
    expected = np.array([1 / 25, 12 / 25, 12 / 25]) * len(found)
    assert stats.chisquare(distinct[1:], expected).pvalue > 1e-4


@pytest.mark.parametrize("n, size", [(12, 4), (13, 4), (7, 7), (5, 3)])
def test_an_epoch_deals_every_record_once(n, size):
    release = GradientRelease(
        n_records=n, batch_size=size, n_steps=40, sampling="shuffled_epochs"
    )
    found = list(release.sampling.batches(release, np.random.default_rng(0)))
    k = release.steps_per_epoch
    for start in range(0, len(found) - k + 1, k):
        epoch = found[start : start + k]
        np.testing.assert_array_equal(np.sort(np.concatenate(epoch)), np.arange(n))
        sizes = [len(batch) for batch in epoch]
        assert max(sizes) - min(sizes) <= 1
        assert abs(np.mean(sizes) - release.divisor) < 1e-12


def test_epochs_are_shuffled_anew():
    found, _ = drawn(
        n_records=6, batch_size=3, n_steps=4000, sampling="shuffled_epochs"
    )
    first = np.stack(found[::2])
    _, seen = np.unique(first, axis=0, return_counts=True)
    assert len(seen) == 20
    assert stats.chisquare(seen).pvalue > 1e-4


@pytest.mark.parametrize("scheme", ["fresh_bins", "balls_in_bins"])
def test_records_draw_a_bin_of_each_epoch_by_themselves(scheme):
    # four bins an epoch, and a last epoch of one
    found, release = drawn(3, n_records=12, batch_size=3, n_steps=17, sampling=scheme)
    assert release.steps_per_epoch == 4 and release.divisor == 3
    epochs = [found[i : i + 4] for i in range(0, 17, 4)]
    for epoch in epochs[:-1]:
        np.testing.assert_array_equal(np.sort(np.concatenate(epoch)), np.arange(12))
    same = [np.array_equal(epoch[0], epochs[0][0]) for epoch in epochs]
    assert all(same) == (scheme == "balls_in_bins")


@pytest.mark.parametrize("scheme", ["fresh_bins", "balls_in_bins"])
def test_bins_are_uniform_and_independent(scheme):
    bins = np.empty((3000, 6), int)
    for seed, row in enumerate(bins):
        for i, batch in enumerate(
            drawn(seed, n_records=6, batch_size=2, n_steps=3, sampling=scheme)[0]
        ):
            row[batch] = i
    for column in bins.T:
        assert stats.chisquare(np.bincount(column, minlength=3)).pvalue > 1e-5
    joint = np.bincount(3 * bins[:, 0] + bins[:, 5], minlength=9)
    assert stats.chisquare(joint).pvalue > 1e-5
