"""Runs in which records are dealt to bins, and the noise they need by many accounts."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.utils import gen_batches

from skpuffer.kernel.curves import log_delta_of_orders
from skpuffer.noise import GaussianNoise, Shift
from skpuffer.noise.strategies import (
    NoiseStrategy,
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
)
from skpuffer.privacy_loss import PoissonPair, PrivacyLossCurve
from skpuffer.privacy_loss.allocation import (
    AllocationPair,
    CorrelatedAllocationPair,
    closed_add_delta,
    conditional_delta,
    renyi_delta,
    sampled_delta,
    unamplified_delta,
)
from skpuffer.privacy_loss.allocation._sampled import _VALUES, _root, tilt_of

DELTA = 1e-5
#: Of one pass over the counts, of which there are many here.
OPERATIONS = 3e5
#: Those of Rényi divergences under independent noise.
ORDERS = np.arange(2.0, 129.0)
#: Plain draws that a check is worth at least.
PLAIN = 1e7
#: Draws times bins that fit a cache.
CACHED = 2**17
#: Relative width to which noise is searched for.
NEAR = 1e-3

EXACT, CHAIN, RENYI, CONDITIONAL = "exact", "chain", "Rényi", "conditional"
POISSON, FRESH, KNOWN, SAMPLED = "Poisson", "fresh bins", "known bin", "Monte Carlo"
#: Fresh bins and correlated noise, which begins anew in every epoch as well.
RESTARTED = "fresh bins, restarted"


@dataclass(frozen=True)
class Run:
    """A run of kept bins: a strategy, and how many batches and epochs.

    Parameters
    ----------
    name : str
    strategy : NoiseStrategy
    n_batches, n_epochs : int
    """

    name: str
    strategy: NoiseStrategy
    n_batches: int
    n_epochs: int

    @property
    def n_steps(self):
        return self.n_batches * self.n_epochs

    @property
    def independent(self):
        """Whether noise is independent across steps."""
        return self.strategy.is_identity

    def gram(self, sigma):
        """Inner products of what a record adds by its bin, in units of the noise."""
        return _gram(self) / sigma**2


@lru_cache(maxsize=64)
def _gram(run):
    means = run.strategy.means(run.n_batches, run.n_steps)
    return means @ means.T


def _runs():
    """The panels of the paper's figures 2 and 3, by their letters."""
    once, long, often = (100, 1), (1000, 1), (100, 10)
    root, inverse = banded_square_root, banded_inverse_square_root
    made = {
        "2a": ("DP-SGD", identity(), once),
        "2b": ("DP-SGD", identity(), long),
        "2c": ("DP-SGD", identity(), often),
        "2d": ("BSR, p = 4", root(4), once),
        "2e": ("BSR, p = 64", root(64), once),
        "2f": ("BSR, p = 4", root(4), often),
        "3a": ("BISR, p = 4", inverse(4), once),
        "3b": ("BISR, p = 64", inverse(64), once),
        "3c": ("BISR, p = 4", inverse(4), often),
        "3d": ("BLT", buffered_linear_toeplitz(100), once),
        "3e": ("BandMF, p = 64", banded_matrix_factorization(100, 64), once),
        "3f": ("BandInvMF, p = 4", banded_inverse_factorization(100, 4), once),
    }
    return {key: Run(name, of, *size) for key, (name, of, size) in made.items()}


#: The panels of the paper's figures 2 and 3, by their letters.
RUNS = _runs()
#: Runs beside these whose errors are compared.
MORE_RUNS = {
    "BandMF, p = 4": Run("BandMF, p = 4", banded_matrix_factorization(100, 4), 100, 1),
    "BandMF, p = 4, ten": Run(
        "BandMF, p = 4", banded_matrix_factorization(1000, 4, 100), 100, 10
    ),
    "BLT, ten": Run("BLT", buffered_linear_toeplitz(1000, n_batches=100), 100, 10),
}


# -- divergences by each account ---------------------------------------------------


def _curve(sigma):
    return GaussianNoise(sigma).curve(Shift(1.0))


def _worse(pair, epsilon):
    """The larger divergence of a pair's two directions."""
    at = np.array([epsilon])
    removed = float(pair.delta(at)[0])
    # far from the aim already: the other direction takes as long again
    return removed if removed > 2 * DELTA else max(removed, float(pair.reverse(at)[0]))


def _exact(run, sigma, epsilon):
    return _worse(AllocationPair(_curve(sigma), run.n_batches, run.n_steps), epsilon)


def _chain(run, sigma, epsilon):
    pair = CorrelatedAllocationPair(
        _curve(sigma), run.strategy, run.n_batches, run.n_steps, method="chain"
    )
    return _worse(pair, epsilon)


def _renyi(run, sigma, epsilon):
    if run.independent:
        # powers of one series: all orders at once, of any number of bins
        pair = AllocationPair(_curve(sigma), run.n_batches, run.n_steps)
        costs = np.array(pair.renyi_costs(tuple(ORDERS)))
        removed = np.exp(log_delta_of_orders(ORDERS, costs, epsilon))
        return float(max(removed, closed_add_delta(run.gram(sigma), epsilon)))
    # few diagonals are accounted for as they are, and many from above in any case
    few = run.strategy.bandwidth is not None and run.strategy.bandwidth <= 4
    operations = 10 * OPERATIONS if few else OPERATIONS
    return float(renyi_delta(run.gram(sigma), epsilon, max_operations=operations))


def _conditional(run, sigma, epsilon):
    # of laws beside the uniform one there is nothing to gain under one epoch
    means = run.strategy.means(run.n_batches, run.n_steps)
    return conditional_delta(means, sigma, epsilon, DELTA, temperatures=())


def _known(run, sigma, epsilon):
    return float(unamplified_delta(run.gram(sigma), epsilon))


def _poisson(run, sigma, epsilon):
    pair = PoissonPair(_curve(sigma), 1 / run.n_batches)
    return PrivacyLossCurve(((pair, run.n_steps),)).delta(epsilon)


def _fresh(run, sigma, epsilon):
    pair = AllocationPair(_curve(sigma), run.n_batches, run.n_batches)
    return PrivacyLossCurve(((pair, run.n_epochs),)).delta(epsilon)


def _restarted(run, sigma, epsilon):
    pair = CorrelatedAllocationPair(
        _curve(sigma), run.strategy, run.n_batches, run.n_batches
    )
    return PrivacyLossCurve(((pair, run.n_epochs),)).delta(epsilon)


#: Divergence of a run at a noise and an epsilon, by the name of the account.
ACCOUNTS: dict[str, Callable[[Run, float, float], float]] = {
    EXACT: _exact,
    CHAIN: _chain,
    RENYI: _renyi,
    KNOWN: _known,
    CONDITIONAL: _conditional,
    POISSON: _poisson,
    FRESH: _fresh,
    RESTARTED: _restarted,
}


def accounts_of(run):
    """Names of the accounts that there are of a run."""
    if not run.independent:
        others = (RESTARTED,) if run.n_epochs > 1 else ()
        return (KNOWN, RENYI, CHAIN, CONDITIONAL, *others)
    return (
        KNOWN,
        EXACT,
        RENYI,
        CONDITIONAL,
        POISSON,
        *((FRESH,) if run.n_epochs > 1 else ()),
    )


def least_scale(delta_of, start, delta=DELTA, step=0.06, near=NEAR):
    """Return the least noise at which a divergence is no more than delta.

    Parameters
    ----------
    delta_of : callable
        From the noise to the divergence, which falls.
    start : float
        Where to look first.
    delta : float
    step : float
        Of the logarithm, with which the search begins.
    near : float
        Relative width, with which it ends.

    Returns
    -------
    float
        At which it holds.
    """
    known = {}

    def excess(log_sigma):
        if log_sigma not in known:
            found = max(delta_of(math.exp(log_sigma)), 1e-300)
            known[log_sigma] = math.log(found / delta)
        return known[log_sigma]

    # brackets, in steps that grow
    low = high = math.log(start)
    while excess(high) > 0:
        low, high, step = high, high + step, 1.6 * step
    while excess(low) <= 0:
        low, high, step = low - step, low, 1.6 * step
    found = brentq(excess, low, high, xtol=near / 2)
    while excess(found) > 0:
        found += near / 2
    return math.exp(found)


class Sampled(NamedTuple):
    """Noise of a run by Monte Carlo, which is no promise.

    Parameters
    ----------
    sigma : float
        At which the estimate is delta.
    low, high : float
        The same of the estimate less and plus 2.58 standard errors: an interval that
        has the truth in it in 99 cases of 100.
    n_samples : int
        Of the last estimate.
    """

    sigma: float
    low: float
    high: float
    n_samples: int


def sampled_scale(run, epsilon, start, n_samples, delta=DELTA):
    """Return the noise of a run by Monte Carlo; see :class:`Sampled`."""

    def drawn(sigma, n_samples):
        # the same draws at each noise, so that the estimates fall in it
        rng = np.random.default_rng(0)
        gram = run.gram(sigma)
        return sampled_delta(gram, epsilon, "remove", n_samples=n_samples, rng=rng)

    few = max(1000, n_samples // 8)
    about = least_scale(lambda sigma: drawn(sigma, few).estimate, start, delta)
    ends = [drawn(about * factor, few).estimate for factor in (0.98, 1.02)]
    slope = math.log(ends[1] / ends[0]) / math.log(1.02 / 0.98)
    found = drawn(about, n_samples)
    wide = 2.58 * found.error
    sigmas = [
        about * (max(value, 1e-3 * delta) / delta) ** (-1 / slope)
        for value in (found.estimate, found.estimate - wide, found.estimate + wide)
    ]
    return Sampled(*sigmas, n_samples)


class Checked(NamedTuple):
    """An estimate of a divergence, and how many plain draws would be as good.

    Parameters
    ----------
    direction : str
    estimate, error : float
    n_samples : int
        Draws, which are moved to where losses are large.
    plain : float
        Draws that are not moved, and have this error.
    """

    direction: str
    estimate: float
    error: float
    n_samples: int
    plain: float


def sampled_divergence(run, sigma, epsilon, n_samples, plain=PLAIN):
    """Return the larger estimate of both directions at a noise, with fresh draws.

    Parameters
    ----------
    run : Run
    sigma, epsilon : float
    n_samples : int
        Draws to begin with. If a record is added the divergence is far below that if
        one is removed, mostly: a tenth of them tell.
    plain : float
        How many plain draws they shall be worth, or there are more of them.

    Returns
    -------
    Checked
    """
    gram, found = run.gram(sigma), []
    for way, size in (("remove", n_samples), ("add", n_samples // 10)):
        tilt, _ = tilt_of(gram, epsilon, way)
        # at small epsilons the tilt of least values is far from that of least error
        if way == "remove" and epsilon < 1:
            tilt *= 2
        square = mean_square(gram, epsilon, way, tilt, np.random.default_rng(2))
        for _ in range(3):
            rng = np.random.default_rng(1)
            estimate, error = moved_draws(gram, epsilon, way, tilt, size, rng)
            worth = square / error**2 if error else math.inf
            if worth >= plain:
                break
            size = math.ceil(1.15 * size * plain / worth)
        found.append(Checked(way, estimate, error, size, worth))
    return max(found, key=lambda each: each.estimate)


def moved_draws(gram, epsilon, direction, tilt, n_samples, rng):
    """Return an estimate of a divergence by draws that are moved, and its error.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)
    epsilon : float
    direction : {'remove', 'add'}
    tilt : float
        How far they are moved: any gives an estimate without a bias.
    n_samples : int
    rng : Generator

    Returns
    -------
    tuple of float
    """
    value, root = _VALUES[direction](gram, epsilon, tilt), _root(gram)
    total = squares = 0.0
    for part in gen_batches(n_samples, max(1, CACHED // len(gram))):
        size = part.stop - part.start
        values = value(root @ rng.standard_normal((root.shape[1], size)))
        total += float(values.sum())
        squares += float(values @ values)
    mean = total / n_samples
    spread = max(0.0, squares / n_samples - mean**2)
    return mean, math.sqrt(spread / n_samples)


def mean_square(gram, epsilon, direction, tilt, rng, n_samples=40_000):
    """Return the mean square of what a plain draw says of a divergence.

    Parameters
    ----------
    gram : ndarray of shape (n_bins, n_bins)
    epsilon : float
    direction : {'remove', 'add'}
    tilt : float
        How far draws are moved; see :func:`moved_draws`.
    rng : Generator
    n_samples : int

    Returns
    -------
    float
    """
    root, halves, total = _root(gram), np.diag(gram)[:, np.newaxis] / 2, 0.0
    for part in gen_batches(n_samples, max(1, CACHED // len(gram))):
        size = part.stop - part.start
        sums = root @ rng.standard_normal((root.shape[1], size))
        if direction == "add":
            sums -= tilt * gram.mean(axis=0)[:, np.newaxis]
            weight = np.exp(tilt * sums.mean(axis=0) + tilt**2 * gram.mean() / 2)
            ratio = np.exp(sums - halves).mean(axis=0)
            value = np.maximum(1 - math.exp(epsilon) * ratio, 0.0)
        else:
            sums += tilt * gram[:, rng.integers(len(gram), size=size)]
            ratio = np.exp(sums - halves).mean(axis=0)
            weight = ratio / np.exp(tilt * sums - tilt**2 * halves).mean(axis=0)
            value = np.maximum(1 - math.exp(epsilon) / ratio, 0.0)
        total += float(np.sum(weight * value**2))
    return total / n_samples


def scale_of(account, run, epsilon, start, delta=DELTA):
    """Return the least noise of a run by an account."""
    delta_of = partial(ACCOUNTS[account], run, epsilon=epsilon)
    step = 0.02 if account in (CHAIN, RESTARTED) else 0.06
    # a composition of chains takes a minute
    near = 10 * NEAR if account == RESTARTED else NEAR
    return least_scale(delta_of, start, delta, step, near)
