"""Monte Carlo of the privacy loss of a record that is in one of many bins.

Neither the estimate nor its bound is a promise; see :func:`abstention_delta`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import rel_entr
from sklearn.utils import gen_batches

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_finite,
    check_option,
    check_probability,
    check_real,
)

#: Orders of the pair: with the record against without it, the other way round, and with
#: one record against another.
DIRECTIONS = ("remove", "add", "replace")

# Draws times bins that are treated at once: bounds the memory, and fits a cache.
_BLOCK = 2**18

# Shares of entries that are not zero up to which a sparse product is faster.
_SPARSE = 0.15

# Squared distances, in deviations of the noise, beyond which nothing is simulated.
_FAR = 300.0

# Steps of the search for a tilt.
_TILTS = 400


class SampledDelta(NamedTuple):
    """A hockey-stick divergence, from samples.

    Parameters
    ----------
    estimate : float
        Unbiased.
    error : float
        Its standard error.
    upper : float
        Confidence bound: not below the truth, with the confidence asked for.
    largest : float
        Bound on one sample's value, of which the mean is the estimate.
    n_samples : int

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.privacy_loss.allocation import sampled_delta
    >>> rng = np.random.default_rng(0)
    >>> found = sampled_delta(np.eye(10), 0.5, "remove", n_samples=10_000, rng=rng)
    >>> found.estimate < found.upper < found.largest
    True
    """

    estimate: float
    error: float
    upper: float
    largest: float
    n_samples: int


def check_gram(gram: Any) -> Floats:
    """Return a Gram matrix as floats, exactly symmetric, in the noise's variance."""
    values = check_finite(gram=gram)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise value_error("allocation.gram_not_square", shape=values.shape)
    if np.any(values < 0):
        raise value_error("allocation.gram_negative", least=values.min())
    if np.any(np.abs(values - values.T) > 1e-9 * values.max()):
        raise value_error("allocation.gram_not_symmetric")
    # the larger of two entries that differ by rounding: the safe one
    return np.maximum(values, values.T)


def sampled_delta(
    gram: Any,
    epsilon: float,
    direction: str,
    *,
    n_samples: int,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> SampledDelta:
    """Estimate the hockey-stick divergence of one order of the pair by Monte Carlo.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of what a record adds in each bin, in units of the noise's
        variance.
    epsilon : float
        In nats.
    direction : {'remove', 'add', 'replace'}
        Which order of the pair, or the pair of a replaced record.
    n_samples : int
        Number of independent draws.
    confidence : float, default=0.99
        Probability, in (0, 1), with which `upper` is not below the truth.
    rng : Generator

    Returns
    -------
    SampledDelta

    Notes
    -----
    The loss depends on the noise only through its inner products with the means, which
    are Gaussian with covariance `gram`. Draws are moved to where losses are large, by a
    tilt chosen before anything is drawn such that no weighted value exceeds `largest`.
    So the bound for variables in an interval (Hoeffding 1963, Theorem 1, in its form
    with the relative entropy) holds for weighted values too.

    References
    ----------
    Choquette-Choo, Ganesh, Haque, Steinke and Thakurta (2025), Near exact privacy
    amplification for matrix mechanisms.
    """
    gram = check_gram(gram)
    # the divergence falls with it, and exp(epsilon) is a float
    epsilon = min(check_real(epsilon=epsilon), 600.0)
    check_option(DIRECTIONS, direction=direction)
    n_samples = check_count(n_samples=n_samples)
    confidence = check_probability(confidence=confidence)
    # told apart but for a chance that no float holds: the bound is the trivial one
    if gram.max() > _FAR:
        return SampledDelta(1.0, 0.0, 1.0, 1.0, n_samples)
    tilt, largest = tilt_of(gram, epsilon, direction)
    value = _VALUES[direction](gram, epsilon, tilt)
    root = _root(gram)
    total = squares = 0.0
    for part in gen_batches(n_samples, max(1, _BLOCK // len(gram))):
        normal = rng.standard_normal((root.shape[1], part.stop - part.start))
        found = value(root @ normal)
        total += float(found.sum())
        squares += float(found @ found)
    mean = total / n_samples
    spread = max(0.0, squares / n_samples - mean**2)
    upper = largest * kl_upper(mean / largest, n_samples, confidence)
    return SampledDelta(
        mean, math.sqrt(spread / n_samples), min(1.0, upper), largest, n_samples
    )


def tilt_of(gram: Any, epsilon: float, direction: str) -> tuple[float, float]:
    """Return a tilt of the draws, and the largest value, at most one, under it.

    Under tilt c the direction "remove" draws from the mixture of bins with all means c
    times as long. Let L_c be its density over that without the record. A value is then
    ``(L - exp(epsilon))₊ / L_c``. By the inequality of power means L_c is at least
    ``exp(-c (c - 1) g / 2) L**c`` for the largest square g of a mean. "replace" draws
    the same. "add" draws from where the mean of all bins' means is taken off c times.
    By Jensen's inequality the log of L is at least the mean of the components' logs.
    """
    gram = check_gram(gram)
    square, mean = float(np.diag(gram).max()), float(gram.mean())
    if direction == "add":
        drop = float(np.trace(gram)) / (2 * len(gram))
        # about where the bound is least without the factors of c
        about = max(0.0, epsilon - drop) / max(mean, 1e-12) + 1
        c = np.concatenate([[0.0], np.geomspace(1e-2, 4, _TILTS) * min(about, 1e3)])
        logs = c * (drop - epsilon) + c**2 * mean / 2
        # max of (1 - K u) u^c
        logs += _times_log(c, c / (1 + c)) - np.log1p(c)
    else:
        # no further than what floats hold
        most = max(1.0, math.sqrt(_FAR / max(square, 1e-12)))
        c = 1 + np.concatenate([[0.0], np.geomspace(1e-3, min(most, 200.0), _TILTS)])
        c = c[c <= most]
        more = c - 1
        logs = c * more * square / 2
        if direction == "remove":
            # max of (l - K) / l^c over l > K
            logs += _times_log(more, more / c) - np.log(c) - more * epsilon
        else:
            # A B >= q² by Cauchy and Schwarz: max of (A - K q² / A) / A^c
            root = epsilon / 2 + math.log(float(np.exp(-np.diag(gram) / 2).mean()))
            with np.errstate(divide="ignore"):
                ratio = (c + 1) / more
            logs += np.log(2 / (c + 1)) - more * root - _times_log(more, ratio) / 2
    # without a tilt, a value is at most one
    logs[0] = 0.0
    best = int(np.argmin(logs))
    # no smaller than what floats hold
    return float(c[best]), math.exp(max(float(logs[best]), -600.0))


def _times_log(factor: Floats, value: Floats) -> Floats:
    """Return factor * log(value), zero where the factor is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(factor == 0, 0.0, factor * np.log(value))


# -- values of draws --------------------------------------------------------------


def _root(gram: Floats) -> Any:
    """A matrix whose product with its transpose is the Gram matrix."""
    try:
        return _thin(np.linalg.cholesky(gram))
    except np.linalg.LinAlgError:
        # bins that add the same, or none at all
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-14 * values.max(initial=0.0)
        return vectors[:, kept] * np.sqrt(values[kept])


def _thin(matrix: Any) -> Any:
    """The matrix, without its zeros if these are most of it."""
    some = np.count_nonzero(matrix) <= _SPARSE * matrix.size
    return csr_array(matrix) if some else matrix


Value = Callable[[Floats], Floats]


def _grown(gram: Floats, factor: float) -> Callable[[Floats], Floats]:
    """Mean over bins of weights that grow by exp(factor G), if in each of the bins."""
    if factor < 0:
        # nothing is taken off: what is left may be far below what it was
        shrinkage = np.exp(factor * gram) / len(gram)
        return lambda weights: shrinkage @ weights
    # zeros of the Gram matrix stay zeros
    growth = _thin(np.expm1(factor * gram)) / len(gram)

    def grown(weights: Floats) -> Floats:
        found: Floats = growth @ weights
        found += weights.mean(axis=0)
        return found

    return grown


def _weights(xi: Floats, halves: Floats, factor: float) -> Floats:
    """Density ratios exp(factor xi - factor² G_ii / 2), one for each bin and draw."""
    found = factor * xi
    found -= (factor**2 * halves)[:, np.newaxis]
    return np.exp(found, out=found)


def _removed(gram: Floats, epsilon: float, tilt: float) -> Value:
    halves, least = np.diag(gram) / 2, math.exp(epsilon)
    grown, tilted = _grown(gram, tilt), _grown(gram, tilt**2)

    def value(xi: Floats) -> Floats:
        ratio = grown(_weights(xi, halves, 1.0))
        drawn = ratio if tilt == 1 else tilted(_weights(xi, halves, tilt))
        excess = np.maximum(ratio - least, 0.0)
        # over bins first: what the draws of one sample have in common is one value
        found: Floats = (excess / drawn).mean(axis=0)
        return found

    return value


def _replaced(gram: Floats, epsilon: float, tilt: float) -> Value:
    halves, least = np.diag(gram) / 2, math.exp(epsilon)
    grown, tilted = _grown(gram, tilt), _grown(gram, tilt**2)
    shrunk = _grown(gram, -tilt)

    def value(xi: Floats) -> Floats:
        ratio = grown(_weights(xi, halves, 1.0))
        other = shrunk(_weights(xi, halves, -1.0))
        drawn = ratio if tilt == 1 else tilted(_weights(xi, halves, tilt))
        excess = np.maximum(ratio - least * other, 0.0)
        found: Floats = (excess / drawn).mean(axis=0)
        return found

    return value


def _added(gram: Floats, epsilon: float, tilt: float) -> Value:
    halves, mean = np.diag(gram) / 2, gram.mean()
    moved = tilt * gram.mean(axis=0)[:, np.newaxis]

    def value(xi: Floats) -> Floats:
        xi -= moved
        log_weight = tilt * xi.mean(axis=0) + tilt**2 * mean / 2
        ratio = _weights(xi, halves, 1.0).mean(axis=0)
        short = -np.expm1(np.minimum(epsilon + np.log(ratio), 0.0))
        # nothing overflows where there is a value at all
        weight = np.exp(np.where(short > 0, log_weight, 0.0))
        found: Floats = weight * short
        return found

    return value


_VALUES = {"remove": _removed, "add": _added, "replace": _replaced}


# -- what samples prove -----------------------------------------------------------


def _kl(p: float, q: float) -> float:
    """Relative entropy of two Bernoulli variables, in nats."""
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def kl_upper(mean: float, n_samples: int, confidence: float) -> float:
    """Return an upper confidence bound for the mean of independent variables in [0, 1].

    The largest d whose relative entropy from the sample's mean, times the number of
    samples, is at most ``log(1 / (1 - confidence))``: Hoeffding (1963), Theorem 1.
    """
    aim = -math.log1p(-confidence) / n_samples
    if mean <= 0:
        return -math.expm1(-aim)
    if mean >= 1:
        return 1.0
    found = brentq(lambda d: _kl(mean, d) - aim, mean, 1 - 1e-16, xtol=1e-300)
    return min(1.0, float(found) * (1 + 1e-9))


def abstention_delta(threshold: float, n_samples: int, largest: float = 1.0) -> float:
    """Return the delta of a release that is refused unless a fresh sample supports it.

    Suppose that the divergence at the epsilon promised is more than some d. Then the
    mean of the sample is at most the threshold with a probability of at most
    ``exp(-n_samples kl)``. Here kl is the relative entropy of the threshold from d. So
    the release promises ``d + exp(-n_samples kl) (1 - d)`` for any d; the least is
    taken.

    Parameters
    ----------
    threshold : float
        The release is refused if the mean of the sample is above this, in any
        direction.
    n_samples : int
    largest : float, default=1.0
        Bound on one value of the sample.

    Returns
    -------
    float
        At most one.

    Notes
    -----
    Fix the noise and draw the sample before reading the data, and only once: to try
    again after a refusal would multiply the chance to err.
    """
    low = threshold / largest
    if not low < 1:
        return 1.0

    def missed(d: float) -> float:
        # no sample reaches what is more than the largest value
        log_chance = -n_samples * _kl(low, min(d / largest, 1.0))
        return d + math.exp(log_chance) * (1 - d)

    # any d holds: the least need not be found to the last digit
    ends = math.log(max(threshold, 1e-3 * largest / n_samples)), math.log(largest)
    found = minimize_scalar(
        lambda log_d: missed(math.exp(log_d)), bounds=ends, method="bounded"
    )
    return min(1.0, missed(math.exp(found.x)))


def abstention_threshold(delta: float, n_samples: int, largest: float = 1.0) -> float:
    """Return the largest threshold with which a release promises a delta.

    Parameters
    ----------
    delta : float
        In (0, 1).
    n_samples : int
    largest : float, default=1.0

    Returns
    -------
    float
        At most `delta`.

    Raises
    ------
    ValueError
        If the samples are too few for any.
    """
    if abstention_delta(0.0, n_samples, largest) > delta:
        least = math.ceil(largest * (math.log(1 / delta) + 3) / delta)
        raise value_error(
            "allocation.n_samples_too_small",
            delta=delta,
            least=least,
            n_samples=n_samples,
        )
    low, high = 0.0, delta
    for _ in range(60):
        middle = (low + high) / 2
        if abstention_delta(middle, n_samples, largest) <= delta:
            low = middle
        else:
            high = middle
    return low
