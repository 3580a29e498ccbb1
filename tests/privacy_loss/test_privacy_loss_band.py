"""Sums of very many losses by few frequencies: against all, and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss
from skpuffer.kernel import distribution as composition
from skpuffer.kernel import loss_grid as grids
from skpuffer.kernel.loss_grid import (
    GridTooLargeError,
    Sum,
    band_of,
    low_frequencies,
    on_grid,
)
from skpuffer.kernel.pairs import PoissonPair, ShiftPair
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.noise._generalized_gaussian_loss import log_deltas
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss import _lower_bounds as lower_bounds
from skpuffer.privacy_loss._lower_bounds import account
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import says


def gaussian(mu):
    return GaussianNoise(1 / mu).curve(Shift(1.0))


@st.composite
def terms(draw):
    """Masses of a term of a sum, of any form: single ones, gaps, long tails."""
    size = draw(st.integers(1, 60))
    weights = np.array(draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    weights = weights ** draw(st.integers(1, 8))
    assume(weights.sum() > 1e-3)
    masses = weights / weights.sum()
    if draw(st.booleans()):
        # as rounding leaves them
        masses[draw(st.integers(0, size - 1))] -= 1e-12
    return masses


def variance(masses):
    at = np.arange(len(masses))
    return float(masses @ (at - masses @ at) ** 2)


@given(terms(), st.integers(1, 400), st.integers(1, 80))
def test_low_frequencies_are_those_of_the_transform(masses, n, m):
    n, m = max(n, len(masses)), min(m, n)
    expected = np.fft.fft(masses, n)[:m]
    np.testing.assert_allclose(low_frequencies(masses, n, m), expected, atol=1e-13)


@given(st.lists(st.tuples(terms(), st.integers(1, 10**5)), min_size=1, max_size=3))
def test_beyond_its_band_a_transform_is_as_small_as_stated(parts):
    band = band_of([(masses, variance(masses), count) for masses, count in parts])
    assume(band is not None)
    assert 0 < band.limit <= math.pi
    assert band.beyond <= 1e-18 * (1 + 1e-9)
    # at far more frequencies than it was bounded by
    frequency = np.linspace(band.limit, math.pi, 20_001)
    log = np.zeros(len(frequency))
    for masses, count in parts:
        waves = np.exp(-1j * np.multiply.outer(frequency, np.arange(len(masses))))
        log += count * np.log(np.maximum(np.abs(waves @ masses), 1e-300))
    assert log.max() <= math.log(band.beyond) + 1e-12 * sum(n for _, n in parts)


def test_a_transform_that_comes_back_has_no_band():
    # on every second point only: at the highest frequency it is one again
    masses = np.array([0.25, 0.0, 0.5, 0.0, 0.25])
    assert band_of([(masses, 2.0, 10**6)]) is None
    # unless another term has none there
    other = np.array([0.5, 0.5])
    assert band_of([(masses, 2.0, 10**6), (other, 0.25, 10**6)]) is not None
    # too few terms to fade at all
    assert band_of([(other, 0.25, 2)]) is None


def tails(pairs, step, tilt):
    """Trade-off of a sum by all of its frequencies and by few of them."""
    total = Sum([(on_grid(pair, step, 1e-16, math.inf), n) for pair, n in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "_LONG", math.inf)
        every = total.tail(tilt, math.inf)
        patch.setattr(grids, "_LONG", 0)
        patch.setattr(grids, "_COARSE", 256)
        few = total.tail(tilt, 0)  # of any size
    assert every._dense
    assert not few._dense
    return every, few


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.floats(0.02, 0.4), st.sampled_from([0.05, 0.4]), st.integers(100, 3000)
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda term: term[:2],
    ),
    st.floats(0.5, 6.0),
)
def test_few_frequencies_tell_what_all_of_them_tell(terms, tilt):
    pairs = [(PoissonPair(gaussian(mu), rate), n) for mu, rate, n in terms]
    spread = math.sqrt(sum(n * (rate * mu) ** 2 for mu, rate, n in terms))
    step = min(rate * mu for mu, rate, _ in terms) / 4
    try:
        every, few = tails(pairs, step, tilt / spread)
    except GridTooLargeError:  # not few
        assume(False)
    for delta in (1e-2, 1e-5, 1e-9):
        upper, lower = every.epsilon(delta), every.lower(delta)
        assume(every.step * every.low < upper < math.inf)
        # never below what is certain of the sum, and little above
        assert few.epsilon(delta) >= lower
        assert few.epsilon(delta) <= upper + 0.05 * spread
        assert few.lower(delta) <= upper
        assert few.lower(delta) >= lower - 0.2 * spread
    # at the grid's own points
    at = every.low + np.arange(0, len(every._floor), 1 + len(every._floor) // 50)
    with np.errstate(divide="ignore"):
        certain = np.log(every._floor[at - every.low]) + every._unit
    logs = log_deltas(few, every.step * at)
    for index, known, log in zip(at, certain, logs, strict=True):
        found = few.delta(every.step * index)
        assert found >= math.exp(known) + every.infinity - 1e-15
        assert math.log(found) == pytest.approx(log, abs=1e-6)


@pytest.mark.parametrize("n_steps, slack", [(10**6, 1e-4), (10**10, 2e-4)])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_any_number_of_gaussian_steps_costs_what_one_does(n_steps, slack, delta):
    """Also a number for which a grid of the whole run would take terabytes."""
    mu = 1 / math.sqrt(n_steps)
    curve = PrivacyLossCurve(((ShiftPair(gaussian(mu)), n_steps),), max_memory=50)
    truth = GaussianCurve(1.0).epsilon(delta)
    found = account(curve, delta)
    assert found.engine == "grid"
    assert truth <= found.epsilon <= truth * (1 + slack)
    assert found.lower <= truth
    assert found.lower >= 0.998 * truth


def test_different_steps_cost_at_least_the_finest_grid():
    """The first grid is as fine as the sum needs; the result no looser for it."""
    rng = np.random.default_rng(0)
    steps = [
        (PoissonPair(gaussian(1 / s), q), int(n))
        for s, q, n in zip(
            rng.uniform(0.7, 4, 6),
            rng.uniform(0.001, 0.05, 6),
            rng.integers(1, 200, 6),
            strict=True,
        )
    ]
    steps.append((ShiftPair(LaplaceNoise(4.0).curve(Shift(1.0))), 3))
    curve = PrivacyLossCurve(tuple(steps))
    found = account(curve, 1e-5)
    epsilon, lower = (
        max(ask(each, 1e-5, 2e-5, math.inf) for each in curve._directions)
        for ask in (composition._epsilon_on, lower_bounds._lower_epsilon_on)
    )
    assert lower <= epsilon <= found.epsilon * (1 + 1e-6)
    assert 0.998 * epsilon < found.lower <= epsilon
    assert found.epsilon <= epsilon * (1 + 2 * composition.TOLERANCE)


def test_a_certificate_says_when_a_grid_is_coarse():
    release = GradientRelease(n_records=1000, batch_size=10, n_steps=100)
    noise = GaussianNoise(1.0)
    for memory, coarse in ((500, False), (0.05, True)):
        accountant = PrivacyLoss(delta=1e-5, max_memory=memory)
        found = accountant.certify(noise, release, RecordScenario())
        code = "curve.grid_coarsened_by_memory"
        assert says(found.assumptions, code, max_memory=memory) is coarse


@given(st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_powers_are_multiplied_by_their_digits(counts):
    rng = np.random.default_rng(len(counts))
    angle = rng.uniform(-0.01, 0.01, (len(counts), 7))
    factors = [0.999 * np.exp(1j * each) for each in angle]
    expected = np.prod([f**c for f, c in zip(factors, counts, strict=True)], axis=0)
    held = [factor.copy() for factor in factors]
    np.testing.assert_allclose(grids._product(counts, factors), expected, rtol=1e-11)
    # what was given is left as it was
    assert all(map(np.array_equal, factors, held))
