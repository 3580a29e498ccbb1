"""How likely a record's bin is, given the releases so far: bounds that hold often.

At each row of the releases the bins are sorted by what they add to it. The posterior
hazard of a bin is its probability given that no bin after it is the record's; hazards
that are larger everywhere put more weight on bins that add more. In terms of the past x
the hazard at position i is ``1 / (1 + (i - 1) exp(L))`` with L the log of the mean
density of the bins before it over its own. So a lower bound on L that holds except with
some probability bounds the hazard.

Bins with the same past as the i-th, a share f of those before it, enter L exactly:
``L = log(f + (1 - f) exp(L'))`` with L' over the rest. And L' is at least the mean of
the log densities under any distribution psi of these, less its divergence from the
uniform one, which is Gaussian.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, ndtr, ndtri, xlogy

from skpuffer.kernel.numbers import Floats

__all__ = ["Hazards", "Row", "merged"]


class Row(NamedTuple):
    """One row of the releases, as those who know the past see it.

    Parameters
    ----------
    means : ndarray of shape (n_bins,)
        What each bin adds, sorted.
    hazards : ndarray of shape (n_bins,)
        Of the positions that need no bound; NaN elsewhere.
    """

    means: Floats
    hazards: Floats


@dataclass(frozen=True, eq=False)
class Hazards:
    """What all bounds on hazards of a run depend on, whatever the noise.

    Parameters
    ----------
    rows : list of Row
    row, position : ndarray of int of shape (n_bounds,)
        Where a bound is needed; positions start from zero.
    tied : ndarray of shape (n_bounds,)
        Share of the bins before that have the same past.
    along : ndarray of shape (n_bounds, n_laws, n_bins)
        Inner products of each bin's past and of how far the mean past under each law
        psi lies from that of the position's bin.
    gap : ndarray of shape (n_bounds, n_laws)
        Half of the latter's squared norm less the mean of the others'.
    distance : ndarray of shape (n_bounds, n_laws)
        Of the two pasts.
    divergence : ndarray of shape (n_bounds, n_laws)
        Of psi from the uniform distribution.
    """

    rows: list[Row]
    row: np.ndarray
    position: np.ndarray
    tied: Floats
    along: Floats
    gap: Floats
    distance: Floats
    divergence: Floats

    @classmethod
    def of(cls, means: Floats, temperatures: tuple[float, ...] = ()) -> "Hazards":
        """Look where bounds are needed, and what they depend on.

        Parameters
        ----------
        means : ndarray of shape (n_bins, n_rows)
            What each bin adds to each row, in any order of the rows.
        temperatures : tuple of float
            Of the laws psi beside the uniform one: proportional to the exponential of
            minus the squared distance from the position's bin over the temperature.
        """
        rows, found = [], []
        n_bins, n_rows = means.shape
        same = np.zeros(n_bins, int)  # bins of the same past share a label
        for n in range(n_rows):
            order = np.argsort(means[:, n], kind="stable")
            sorted_means = means[order, n]
            hazards = np.full(n_bins, np.nan)
            # among bins that add the least it does not matter which one it is
            hazards[sorted_means == sorted_means[0]] = 1.0
            for i in np.flatnonzero(np.isnan(hazards)):
                bin_, before = order[i], order[:i]
                others = before[same[before] != same[bin_]]
                if not len(others):
                    # all had the same past: nothing is known of them
                    hazards[i] = 1 / (i + 1)
                    continue
                past = means[:, :n]
                tied = 1 - len(others) / i
                found.append((n, i, tied, *_laws(past, bin_, others, temperatures)))
            rows.append(Row(sorted_means, hazards))
            pairs = np.column_stack([same, means[:, n]])
            same = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        if not found:
            n_laws = 1 + len(temperatures)
            empty, by_law = np.zeros(0, int), np.zeros((0, n_laws))
            along = np.zeros((0, n_laws, n_bins))
            return cls(rows, empty, empty, np.zeros(0), along, by_law, by_law, by_law)
        columns = [np.array(column) for column in zip(*found, strict=True)]
        return cls(rows, *columns)

    def tails(self, noise: float, chance: float, add: bool) -> Floats:
        """Return lower bounds on L, each of which fails with some probability.

        Parameters
        ----------
        noise : float
            Standard deviation.
        chance : float
            Probability of each failure, under the first distribution of the direction:
            with the record in a random bin ("remove"), or without it ("add").
        add : bool

        Returns
        -------
        ndarray of shape (n_bounds,)
        """
        centre = self.gap / noise**2 - self.divergence
        spread = self.distance / noise
        if add:
            found = (centre + spread * ndtri(chance)).max(axis=1)
        else:
            found = _mixture_tail(
                self.along / noise**2 + centre[..., np.newaxis],
                np.maximum(spread, 1e-300)[..., np.newaxis],
                chance,
            )
        with np.errstate(divide="ignore"):
            tails: Floats = np.logaddexp(
                np.log(self.tied), np.log1p(-self.tied) + found
            )
        return tails

    def weights(self, noise: float, chance: float, add: bool) -> list[Floats]:
        """Return weights of the sorted bins at each row, all of which hold together.

        Parameters
        ----------
        noise : float
            Standard deviation.
        chance : float
            Probability of the failure of each bound, as for :meth:`tails`.
        add : bool

        Returns
        -------
        list of ndarray of shape (n_bins,)
            Except with probability n_bounds times `chance`, they put more weight on
            bins that add more than the posterior does.
        """
        tails = self.tails(noise, chance, add)
        # up: the safe side of what rounding does to some hundred operations
        bounds = np.minimum(expit(-np.log(self.position) - tails) * (1 + 1e-10), 1.0)
        hazards = np.array([row.hazards for row in self.rows])
        hazards = hazards.reshape(len(self.rows), self.along.shape[-1])
        hazards[self.row, self.position] = bounds
        after = np.cumprod(1 - hazards[:, :0:-1], axis=1)[:, ::-1]
        after = np.column_stack([after, np.ones(len(hazards))])
        return list(hazards * after)


def _laws(
    past: Floats, bin_: int, others: np.ndarray, temperatures: tuple[float, ...]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return `along`, `gap`, `distance` and `divergence` of one bound, by the law."""
    apart = past[others] - past[bin_]
    squares = (apart**2).sum(axis=1)
    logits = [np.zeros(len(others)), *(-squares / t for t in temperatures)]
    laws = np.exp(log_softmax(np.array(logits), axis=1))
    # of laws that do not sum to one by rounding, the divergence would be off as well
    laws /= laws.sum(axis=1, keepdims=True)
    step = laws @ apart
    norms = (past**2).sum(axis=1)
    gap = (norms[bin_] - laws @ norms[others]) / 2
    divergence = np.log(len(others)) + xlogy(laws, laws).sum(axis=1)
    return (
        step @ past.T,
        gap,
        np.sqrt((step**2).sum(axis=1)),
        np.maximum(divergence, 0.0),
    )


def _mixture_tail(centres: Floats, spreads: Floats, chance: float) -> Floats:
    """Return the largest t at which a mean of tails is at most `chance`, rounded down.

    Parameters
    ----------
    centres : ndarray of shape (n_bounds, n_laws, n_bins)
        For every bin the record may be in, those before the position and those after:
        leaving some out would undercount.
    spreads : ndarray of shape (n_bounds, n_laws, 1)
    chance : float

    Returns
    -------
    ndarray of shape (n_bounds,)
    """
    # at the lower end no bin's own tail is above the chance
    low = (centres + spreads * ndtri(chance)).max(axis=1).min(axis=1)
    high = np.maximum((centres + 9 * spreads).max(axis=(1, 2)), low)
    for _ in range(54):
        middle = (low + high) / 2
        at = middle[:, np.newaxis, np.newaxis]
        # whichever law is best may depend on the bin
        likely = ndtr((at - centres) / spreads).min(axis=1).mean(axis=1)
        fine = likely <= chance
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    found: Floats = low
    return found


def merged(means: Floats) -> Floats:
    """Merge columns that are multiples of each other, which leaves the pair as it is.

    Parameters
    ----------
    means : ndarray of shape (n_bins, n_rows)

    Returns
    -------
    ndarray of shape (n_bins, n_merged)
        In the order of first appearance; columns of zeros are left out. No inner
        product of two rows is less than before.
    """
    norms = np.sqrt((means**2).sum(axis=0))
    means, norms = means[:, norms > 0], norms[norms > 0]
    shapes = means / norms
    _, first, group = np.unique(
        np.round(shapes.T, 9), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    columns = []
    for label in np.argsort(first):
        chosen = group == label
        # of columns that differ by rounding, the largest entries
        largest = shapes[:, chosen].max(axis=1)
        columns.append(largest * np.sqrt((norms[chosen] ** 2).sum()))
    return np.array(columns).reshape(len(columns), len(means)).T
