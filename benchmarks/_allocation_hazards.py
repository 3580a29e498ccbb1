"""How likely the bin that adds most is, by bounds as printed and as they hold.

Those named *printed* take the largest of an epoch's bounds, each at the level of a
single one: they fail more often than they say, are drawn as curves, and are used for
nothing else.
"""

import numpy as np
import pandas as pd
from scipy.special import expit, log_softmax, ndtr, xlogy

from skpuffer.extensions.random_allocation.loss._conditional import merged

#: Temperatures of the paper.
TEMPERATURES = tuple(10.0 ** np.array([-1, -0.5, 0, 0.5, 1]))
#: Budgets of the pasts on which bounds fail, of figures 4 and 6.
ALLOCATED, VARIED = 0.5e-5, 1e-5
#: Families of laws: uniform, near the reference, near the position's bin.
FAMILIES = {"1": (), "1, 2": (2,), "1, 3": (3,), "1, 2, 3": (2, 3)}
UNION, MERGED = "union of all", "union of all, merged"
FIRST, EPOCH, ALL = "printed: epoch 1, max", "printed: max", "printed: max of all"
#: Ways to split the probability of failure.
SPLITS = (UNION, MERGED, FIRST, EPOCH, ALL)


def _pasts(means, step):
    """The bin that adds most at a step, those of another past, and the share of ties.

    Ties count exactly: it is splits and families that are compared here.
    """
    order = np.argsort(means[:, step], kind="stable")
    past = means[:, :step]
    apart = (past[order[:-1]] != past[order[-1]]).any(axis=1)
    return order[-1], order[:-1][apart], 1 - apart.mean()


def n_needed(means):
    """Number of bounds that are needed: of bins that add more than the least."""
    total = 0
    for step in range(means.shape[1]):
        order = np.argsort(means[:, step], kind="stable")
        past, column = means[:, :step], means[order, step]
        for i in np.flatnonzero(column > column[0]):
            total += (past[order[:i]] != past[order[i]]).any()
    return int(total)


def hazard(means, step, sigma, chance, family=()):
    """Bound the probability of the bin that adds most, given the past.

    Parameters
    ----------
    means : ndarray of shape (n_bins, n_steps)
    step : int
    sigma : float
    chance : float
        That the bound fails, with the record in a random bin.
    family : tuple of int
        Options beside the uniform law.

    Returns
    -------
    float
    """
    bin_, others, tied = _pasts(means, step)
    n_before = len(means) - 1
    if not len(others):
        return 1 / len(means)
    past = means[:, :step]
    norms = (past**2).sum(axis=1)
    inner = past @ past.T
    squares = norms[:, np.newaxis] + norms - 2 * inner
    logits = [np.zeros((1, len(others)))]
    for temperature in TEMPERATURES:
        if 3 in family:
            logits.append(-squares[bin_, others][np.newaxis] / temperature)
        if 2 in family:
            # near each bin that may be the record's
            logits.append(-squares[:, others] / temperature)
    centres, spreads = zip(
        *(_affine(each, inner, norms, bin_, others, sigma) for each in logits),
        strict=True,
    )
    tail = _largest(np.array(centres), np.array(spreads), chance)
    with np.errstate(divide="ignore"):
        tail = np.logaddexp(np.log(tied), np.log1p(-tied) + tail)
    return float(expit(-np.log(n_before) - tail))


def _affine(logits, inner, norms, bin_, others, sigma):
    """Centre and spread of a mean of log ratios, by the record's bin."""
    laws = np.exp(log_softmax(logits, axis=1))
    n_bins = len(norms)
    toward = laws @ inner[others]
    toward = np.broadcast_to(toward, (n_bins, n_bins))
    at = np.arange(n_bins)
    along = toward[at, at] - inner[:, bin_]
    mean = np.einsum("cj,jk,ck->c", laws, inner[np.ix_(others, others)], laws)
    distance = mean - 2 * toward[:, bin_] + norms[bin_]
    gap = (norms[bin_] - laws @ norms[others]) / 2
    divergence = np.log(len(others)) + xlogy(laws, laws).sum(axis=1)
    centre = (along + gap) / sigma**2 - divergence
    spread = np.sqrt(np.maximum(distance, 1e-18)) / sigma
    return np.broadcast_to(centre, n_bins), np.broadcast_to(spread, n_bins)


def _largest(centres, spreads, chance):
    low, high = (centres - 40 * spreads).min(), (centres + 9 * spreads).max()
    for _ in range(50):
        middle = (low + high) / 2
        likely = ndtr((middle - centres) / spreads).min(axis=0).mean()
        low, high = (middle, high) if likely <= chance else (low, middle)
    return low


def _hazards(means, sigma, chance, family=()):
    steps = range(means.shape[1])
    return np.array([hazard(means, step, sigma, chance, family) for step in steps])


def by_split(strategy, n_batches, n_epochs, sigma):
    """Return hazards by step under each split of the probability of failure."""
    n_steps = n_batches * n_epochs
    means = strategy.means(n_batches, n_steps)
    fewer = merged(means)
    total, one = ALLOCATED, n_batches - 1
    single = _hazards(means, sigma, total / (n_epochs * n_batches * one))
    by_epoch = _hazards(means, sigma, total / (n_epochs * one))
    largest = by_epoch.reshape(n_epochs, n_batches).max(axis=1).repeat(n_batches)
    first = np.concatenate([single[:n_batches], largest[n_batches:]])
    whole = _hazards(means, sigma, total / one).max()
    found = {
        UNION: _hazards(means, sigma, total / n_needed(means)),
        FIRST: first,
        EPOCH: largest,
        ALL: np.full(n_steps, whole),
    }
    frame = pd.DataFrame(found)
    few = _hazards(fewer, sigma, total / n_needed(fewer))
    return frame.assign(**{MERGED: pd.Series(few)})


def by_family(strategy, n_batches, n_epochs, sigma):
    """Return hazards by step under each family of laws, by the union of all bounds."""
    means = strategy.means(n_batches, n_batches * n_epochs)
    chance = VARIED / n_needed(means)
    found = {
        name: _hazards(means, sigma, chance, family)
        for name, family in FAMILIES.items()
    }
    return pd.DataFrame(found)
