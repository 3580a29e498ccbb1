"""Which records each step reads: one exact law for each sampling scheme."""

import math
from itertools import islice, repeat

import numpy as np

__all__ = ["batches"]

# Poisson batches are drawn for so many expected records at once: enough to pay for the
# calls, and small beside the records themselves.
_POISSON_BLOCK = 2**14


def batches(release, rng):
    """Return an iterator over the batches of a training run.

    Parameters
    ----------
    release : GradientRelease
        Its `sampling`, `n_records`, `batch_size` and `n_steps` are obeyed.
    rng : numpy.random.Generator
        Used by nothing else while the iterator is read, so that a run can be replayed.

    Returns
    -------
    iterator of ndarray of shape (size,) or None
        The rows of each of the `n_steps` steps, in increasing order (they lie closer
        in memory so); a row drawn twice appears twice. A Poisson batch may be empty.
        None stands for all rows.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, for Poisson batches;
    Balle, Barthe, Gaboardi (2018), Privacy amplification by subsampling, for batches
    without and with replacement.
    """
    return islice(_SCHEMES[release.sampling](release, rng), release.n_steps)


def _full_batch(release, rng):
    return repeat(None)


def _poisson(release, rng):
    n, rate = release.n_records, release.sampling_rate
    n_blocks = math.ceil(release.n_steps * release.batch_size / _POISSON_BLOCK)
    n_steps = math.ceil(release.n_steps / n_blocks)
    while True:
        # the trials of several steps, one after the other
        hits = _successes(n * n_steps, rate, rng)
        ends = hits.searchsorted(n * np.arange(1, n_steps + 1))
        start = 0
        for step, end in enumerate(ends.tolist()):
            batch = hits[start:end]
            batch -= step * n
            yield batch
            start = end


def _successes(n_trials, probability, rng):
    """Draw the sorted positions of the successes among independent trials.

    The gaps between successes are geometric, so the cost is that of the successes and
    not of the trials. A geometric variable is, exactly, the integer part of
    ``log(u) / log(1 - probability)``, plus one, with `u` uniform in (0, 1]; drawn so,
    it costs less than half of `Generator.geometric`, which takes the second logarithm
    at each draw.
    """
    mean_gap = -1 / math.log1p(-probability) if probability < 1 else 0.0
    n_hits = n_trials * probability
    size = int(n_hits + 4 * n_hits**0.5) + 16  # nearly always enough; topped up if not
    last, parts = -1, []
    while last < n_trials:
        gaps = rng.random(size)
        np.subtract(1, gaps, out=gaps)  # never zero
        np.log(gaps, out=gaps)
        positions = np.empty(size, np.int64)
        np.multiply(gaps, -mean_gap, out=positions, casting="unsafe")  # rounds down
        positions += 1
        positions[0] += last
        np.cumsum(positions, out=positions)
        last = positions[-1]
        parts.append(positions)
    hits = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return hits[: hits.searchsorted(n_trials)]


def _fixed_size(release, rng):
    n, size = release.n_records, release.batch_size
    while True:
        yield np.sort(rng.choice(n, size, replace=False, shuffle=False))


def _with_replacement(release, rng):
    while True:
        yield np.sort(rng.integers(release.n_records, size=release.batch_size))


def _shuffled_epochs(release, rng):
    while True:
        order = rng.permutation(release.n_records)
        for batch in np.array_split(order, release.steps_per_epoch):
            yield np.sort(batch)


_SCHEMES = {
    "full_batch": _full_batch,
    "poisson": _poisson,
    "fixed_size": _fixed_size,
    "with_replacement": _with_replacement,
    "shuffled_epochs": _shuffled_epochs,
}
