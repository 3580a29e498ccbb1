"""Monte Carlo of records in random bins: what it estimates, and what it proves."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from skpuffer.exceptions import Statement
from skpuffer.noise.strategies import (
    banded_inverse_square_root,
    banded_square_root,
    identity,
)
from skpuffer.privacy_loss.allocation import unamplified_delta
from skpuffer.privacy_loss.allocation._sampled import (
    DIRECTIONS,
    _root,
    abstention_delta,
    abstention_threshold,
    kl_upper,
    sampled_delta,
    tilt_of,
)
from tests.refused import refused

CONFIDENCE = 0.999


def gram_of(strategy, n_batches, epochs, sigma):
    means = strategy.means(n_batches, n_batches * epochs)
    return means @ means.T / sigma**2


def sampled(gram, epsilon, direction, n_samples=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return sampled_delta(
        gram, epsilon, direction, n_samples=n_samples, confidence=CONFIDENCE, rng=rng
    )


def plainly(means, sigma, epsilon, direction, n_samples, seed=1):
    """Histories as they are published: sampled whole, in as many numbers as steps."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(len(means), size=n_samples)
    outputs = sigma * rng.standard_normal((n_samples, means.shape[1]))
    if direction != "add":
        outputs += means[bins]

    def log_ratio(sign):
        squares = np.sum(means**2, axis=1) / 2
        ratios = (sign * outputs @ means.T - squares) / sigma**2
        return np.logaddexp.reduce(ratios, axis=1) - math.log(len(means))

    loss = log_ratio(1)
    if direction == "replace":
        loss = loss - log_ratio(-1)
    values = -np.expm1(np.minimum(epsilon - (-loss if direction == "add" else loss), 0))
    return values.mean(), values.std() / math.sqrt(n_samples)


# -- estimates -------------------------------------------------------------------------

# deltas from two million plain samples, ends of their 99 % intervals
PUBLISHED = [
    (banded_square_root(3), 2.0, "remove", 3.189e-3, 3.293e-3),
    (banded_square_root(3), 2.0, "add", 2.161e-3, 2.240e-3),
    (banded_inverse_square_root(3), 3.0, "remove", 6.253e-4, 6.654e-4),
    (banded_inverse_square_root(3), 3.0, "add", 5.548e-4, 5.920e-4),
]


@pytest.mark.parametrize("strategy, sigma, direction, low, high", PUBLISHED)
def test_what_plain_samples_estimate(strategy, sigma, direction, low, high):
    found = sampled(gram_of(strategy, 10, 2, sigma), 1.0, direction, 100_000)
    assert low - 3 * found.error < found.estimate < high + 3 * found.error
    assert found.estimate < found.upper < 1.1 * high
    # the tilt makes more of each sample
    assert found.error < 0.3 * math.sqrt(found.estimate / found.n_samples)


@pytest.mark.slow
@pytest.mark.parametrize("strategy, sigma, direction, low, high", PUBLISHED)
def test_what_plain_samples_estimate_more_closely(
    strategy, sigma, direction, low, high
):
    found = sampled(gram_of(strategy, 10, 2, sigma), 1.0, direction, 2_000_000)
    assert low < found.estimate < high


# scale, epochs, epsilon, the delta of millions of plain samples and its standard error
FOUR_DIAGONALS = [
    (3.0, 1, 0.25, 8.8e-6, 4e-7),
    (1.702, 1, 0.5, 1.06e-5, 6e-7),
    (1.168, 1, 1.0, 1.09e-5, 1.0e-6),
    (0.905, 1, 2.0, 1.09e-5, 1.3e-6),
    (0.696, 1, 4.0, 1.12e-5, 1.5e-6),
    (5.42, 10, 0.5, 1.00e-5, 6e-7),
    (3.71, 10, 1.0, 1.01e-5, 9e-7),
    (2.86, 10, 2.0, 1.13e-5, 1.3e-6),
]


@pytest.mark.slow
@pytest.mark.parametrize("sigma, epochs, epsilon, delta, error", FOUR_DIAGONALS)
def test_a_hundred_bins(sigma, epochs, epsilon, delta, error):
    gram = gram_of(banded_square_root(4), 100, epochs, sigma)
    found = sampled(gram, epsilon, "remove", 2_000_000)
    assert abs(found.estimate - delta) < 3.5 * math.hypot(error, found.error)


def test_a_hundred_bins_in_short():
    sigma, epochs, epsilon, delta, error = FOUR_DIAGONALS[2]
    gram = gram_of(banded_square_root(4), 100, epochs, sigma)
    found = sampled(gram, epsilon, "remove", 100_000)
    assert abs(found.estimate - delta) < 3.5 * math.hypot(error, found.error)


# two bins, by quadrature: strategy, scale, epochs, epsilon, remove, add, replace
TWO_BINS = [
    (identity(), 1.0, 1, 1.0, 0.05920650108589, 0.05019766236949, 0.2862082119),
    (
        banded_square_root(2),
        1.0,
        1,
        1.0,
        0.10187757845384,
        0.09856581802398,
        0.436778909,
    ),
    (
        banded_square_root(2),
        2.0,
        2,
        1.0,
        0.03817224183063,
        0.03781824981783,
        0.2771974628,
    ),
    (
        banded_inverse_square_root(2),
        3.0,
        2,
        0.5,
        0.0599589786467,
        0.05977069667348,
        0.2562814913,
    ),
]


@pytest.mark.parametrize("strategy, sigma, epochs, epsilon, r, a, b", TWO_BINS)
def test_two_bins(strategy, sigma, epochs, epsilon, r, a, b):
    gram = gram_of(strategy, 2, epochs, sigma)
    for direction, truth in zip(DIRECTIONS, (r, a, b), strict=True):
        found = sampled(gram, epsilon, direction, 50_000)
        assert abs(found.estimate - truth) < 4 * found.error
        assert found.error < 0.02 * truth
        assert truth < found.upper


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("epochs", [1, 3])
def test_whole_histories(direction, epochs):
    # a strategy without zeros, and unequal lengths of means
    strategy, sigma, epsilon = banded_inverse_square_root(3), 1.5, 0.7
    means = strategy.means(7, 7 * epochs - 2)
    mean, error = plainly(means, sigma, epsilon, direction, 200_000)
    found = sampled(means @ means.T / sigma**2, epsilon, direction, 50_000)
    assert abs(found.estimate - mean) < 4 * math.hypot(error, found.error)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_bins_that_are_never_met(direction):
    # three steps of ten bins: the Gram matrix is singular
    means = banded_square_root(2).means(10, 3)
    mean, error = plainly(means, 1.0, 0.3, direction, 200_000)
    found = sampled(means @ means.T, 0.3, direction, 50_000)
    assert abs(found.estimate - mean) < 4 * math.hypot(error, found.error)


def test_no_record_anywhere():
    for direction in DIRECTIONS:
        found = sampled(np.zeros((3, 3)), 0.5, direction, 1000)
        assert found.estimate == found.error == 0
        assert found.upper <= 1 - (1 - CONFIDENCE) ** (1 / 1000) + 1e-15


def test_records_in_plain_sight():
    found = sampled(np.array([[1e4]]), 1.0, "remove", 1000)
    assert found.upper == 1


# -- bounds on a value -----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n_bins=st.integers(1, 6),
    scale=st.floats(0.05, 6.0),
    common=st.floats(0.0, 1.0),
    epsilon=st.floats(0.0, 6.0),
    direction=st.sampled_from(DIRECTIONS),
    seed=st.integers(0, 99),
)
def test_no_value_exceeds_the_largest(n_bins, scale, common, epsilon, direction, seed):
    from skpuffer.privacy_loss.allocation._sampled import _VALUES

    rng = np.random.default_rng(seed)
    means = rng.uniform(0.2, 1, (n_bins, 4)) * rng.integers(0, 2, (n_bins, 4))
    means = scale * (common + (1 - common) * means)
    gram = means @ means.T
    tilt, largest = tilt_of(gram, epsilon, direction)
    assert 0 < largest <= 1
    value = _VALUES[direction](gram, epsilon, tilt)
    root = _root(gram)
    # far out as well, where no sample is likely to be
    for far in (0.1, 1.0, 3.0, 4.0):
        draws = far * rng.standard_normal((root.shape[1], 400))
        draws[:, :5] += far * np.arange(-2, 3)
        found = value(root @ draws)
        assert np.all(found >= 0)
        assert np.all(found <= largest * (1 + 1e-9))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_never_above_a_known_bin(direction):
    gram = gram_of(banded_square_root(3), 20, 2, 1.3)
    cap = float(unamplified_delta((4 if direction == "replace" else 1) * gram, 1.0))
    assert sampled(gram, 1.0, direction).estimate < cap


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_same_draws_for_the_same_seed(direction):
    gram = gram_of(banded_square_root(3), 20, 2, 1.3)
    assert sampled(gram, 1.0, direction) == sampled(gram, 1.0, direction)
    assert sampled(gram, 1.0, direction) != sampled(gram, 1.0, direction, seed=1)


def test_bounds_hold_as_often_as_they_say():
    gram = gram_of(banded_square_root(2), 2, 1, 1.0)
    truth = TWO_BINS[1][4]
    held = [
        sampled_delta(
            gram,
            1.0,
            "remove",
            n_samples=200,
            confidence=0.9,
            rng=np.random.default_rng(seed),
        ).upper
        >= truth
        for seed in range(300)
    ]
    assert np.mean(held) >= 0.9


# -- what samples prove ----------------------------------------------------------------


def test_no_hit_has_a_closed_form():
    for n in (1, 10, 1000):
        assert kl_upper(0.0, n, 0.95) == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-12)


@given(
    mean=st.floats(0, 1), n=st.integers(1, 10**7), confidence=st.floats(0.01, 0.9999)
)
def test_kl_bound(mean, n, confidence):
    bound = kl_upper(mean, n, confidence)
    assert mean <= bound <= 1
    if 1e-9 < mean < bound < 1 - 1e-9:
        kl = mean * math.log(mean / bound)
        kl += (1 - mean) * math.log((1 - mean) / (1 - bound))
        # not less than the point it is, up to rounding of the entropy itself
        assert n * kl >= -math.log(1 - confidence) * (1 - 1e-6) - 1e-9 * n * bound


def test_kl_bound_by_binomials():
    # Chernoff: no more likely than 5 % if the truth is the bound
    for n, hits in ((50, 3), (1000, 0), (1000, 20)):
        assert binom.cdf(hits, n, kl_upper(hits / n, n, 0.95)) <= 0.05 + 1e-12


@pytest.mark.parametrize("largest", [1.0, 0.2])
@pytest.mark.parametrize(
    "threshold, n", [(0.0, 10**6), (5e-6, 10**7), (1e-3, 10**4), (0.1, 100)]
)
def test_abstention_by_brute_force(threshold, n, largest):
    found = abstention_delta(threshold, n, largest)
    t = np.geomspace(max(threshold, 1e-12), largest, 400_001)[:-1]
    p, q = threshold / largest, t / largest
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = (1 - p) * np.log((1 - p) / (1 - q))
        kl += 0 if p == 0 else p * np.log(p / q)
    brute = np.min(t + np.exp(-n * kl) * (1 - t))
    assert found == pytest.approx(min(brute, 1), rel=1e-4)
    assert threshold < found


def test_abstention_is_no_less_than_what_passes():
    # the chance that a release passes whose values are one with probability d
    threshold, n = 1e-3, 5000
    delta = abstention_delta(threshold, n)
    for d in np.geomspace(1e-3, 1, 200):
        passes = binom.cdf(math.floor(threshold * n), n, d)
        assert passes * d <= delta


@settings(max_examples=40, deadline=None)
@given(delta=st.floats(1e-7, 0.1), more=st.floats(10, 1e4), largest=st.floats(0.01, 1))
def test_threshold_is_the_inverse(delta, more, largest):
    n = math.ceil(more * math.log(10 / delta) / delta * largest)
    threshold = abstention_threshold(delta, n, largest)
    assert 0 <= threshold < delta
    assert abstention_delta(threshold, n, largest) <= delta
    assert abstention_delta(threshold * 1.001 + 1e-12, n, largest) > delta * 0.9999


def test_too_few_samples_for_a_promise():
    with refused(ValueError, "allocation.n_samples_too_small"):
        abstention_threshold(1e-5, 10_000)


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"direction": "sideways"},
            Statement("parameter.option_unknown", name="direction"),
        ),
        ({"n_samples": 0}, Statement("parameter.count_too_small", name="n_samples")),
        (
            {"confidence": 1.0},
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        ({"epsilon": math.nan}, Statement("parameter.is_nan", name="epsilon")),
        ({"gram": [[1.0, 2.0]]}, Statement("allocation.gram_not_square")),
        ({"gram": [[-1.0]]}, Statement("allocation.gram_negative")),
    ],
)
def test_bad_input(change, said):
    given = {
        "gram": np.eye(2),
        "epsilon": 1.0,
        "direction": "add",
        "n_samples": 10,
        "rng": np.random.default_rng(0),
    }
    with refused((ValueError, TypeError), said.code, **said.parameters):
        sampled_delta(**given | change)


def test_one_bin_is_a_gaussian():
    mu, epsilon = 1.0, 1.0
    truth = ndtr(mu / 2 - epsilon / mu) - math.e * ndtr(-mu / 2 - epsilon / mu)
    for direction in ("remove", "add"):
        found = sampled([[mu**2]], epsilon, direction)
        assert abs(found.estimate - truth) < 4 * found.error
