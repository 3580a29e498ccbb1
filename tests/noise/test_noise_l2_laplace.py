"""Noise in the l2 norm of a whole vector: costs, draws, and who takes it."""

import json
import math
import pickle
from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skpuffer.accountants import (
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
    PrivacyLoss,
    RenyiDP,
    scale_for,
    scale_for_delta,
)
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import L2LaplaceNoise, LaplaceNoise, Noise, Shift
from skpuffer.privacy._written import from_plain
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from tests.refused import refused

from ..attack import assert_tight, promise_of

radii = st.floats(1e-6, 40.0)
orders = st.floats(1.001, 1e3)


def response(alpha, u):
    """Rényi divergence of randomised response, straight from its two masses."""
    p = 1 / (1 + math.exp(-u))
    first, second = np.array([p, 1 - p]), np.array([1 - p, p])
    return math.log(np.sum(first**alpha * second ** (1 - alpha))) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 8.0])
@pytest.mark.parametrize("u", [0.01, 0.5, 3.0, 9.0])
def test_costs_are_those_of_randomised_response(alpha, u):
    noise = L2LaplaceNoise()
    assert noise.renyi(alpha, u) == pytest.approx(response(alpha, u), rel=1e-6)
    p = 1 / (1 + math.exp(-u))
    for epsilon in (-2.0, 0.0, u / 2, 2 * u):
        q = [(p, 1 - p), (1 - p, p)]
        expected = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in q)
        assert noise.delta(epsilon, u) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=10)
@given(orders, radii)
def test_no_cost_is_below_that_of_one_coordinate(alpha, u):
    """Of one coordinate it is Laplace noise, whose costs are known exactly."""
    noise, exact = L2LaplaceNoise(), LaplaceNoise()
    assert noise.renyi(alpha, u) >= exact.renyi(alpha, u) * (1 - 1e-9)
    for epsilon in (0.0, u / 3):
        assert noise.delta(epsilon, u) >= exact.delta(epsilon, u) * (1 - 1e-9)
    assert noise.renyi(alpha, u) <= noise.pure_epsilon(u) == u


@given(st.floats(1e-3, 10), st.floats(1e-9, 0.5), radii)
def test_calibration_inverts_the_costs(epsilon, delta, radius):
    shift = Shift(radius, norm=2, dim=7)
    pure = scale_for(L2LaplaceNoise(), math.inf, epsilon, shift)
    assert pure == pytest.approx(radius / epsilon)
    scale = scale_for_delta(L2LaplaceNoise(), epsilon, delta, shift)
    assert L2LaplaceNoise(scale).delta(epsilon, shift) <= delta
    assert L2LaplaceNoise(scale * (1 - 1e-6)).delta(epsilon, shift) > delta


def test_a_move_in_another_norm_is_converted():
    noise = L2LaplaceNoise((1.0, 2.0))
    assert noise.pure_epsilon(Shift(1.0, norm=2, dim=2)) == pytest.approx(1.0)
    assert noise.pure_epsilon(Shift(1.0, norm=math.inf, dim=2)) == pytest.approx(
        math.hypot(1.0, 0.5)
    )


def test_draws_have_the_stated_law():
    """Length by a gamma distribution, direction uniform; one coordinate is Laplace."""
    rng = np.random.default_rng(0)
    draws = L2LaplaceNoise(2.0).sample((20_000, 4), rng)
    lengths = np.linalg.norm(draws, axis=1) / 2
    assert stats.kstest(lengths, stats.gamma(4).cdf).pvalue > 0.01
    cosine = draws[:, 0] / np.linalg.norm(draws, axis=1)
    # in four dimensions of density sqrt(1 - t**2): a beta distribution of (1 + t) / 2
    assert stats.kstest((1 + cosine) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 0.01
    np.testing.assert_allclose(draws.std(axis=0), L2LaplaceNoise(2.0).std(4), rtol=0.05)
    one = L2LaplaceNoise().sample((20_000, 1), rng).ravel()
    assert stats.kstest(one, stats.laplace().cdf).pvalue > 0.01


def test_shapes_and_moments():
    noise = L2LaplaceNoise(3.0)
    assert noise.sample((), 0).shape == ()
    assert noise.sample((2, 0, 4), 0).shape == (2, 0, 4)
    assert noise.sample((2, 0), 0).shape == (2, 0)
    np.testing.assert_allclose(noise.variance(5), np.full(5, 9 * 6))
    with refused(ValueError, "noise.l2_laplace_dimension_needed"):
        noise.std()
    np.testing.assert_allclose(L2LaplaceNoise((1.0, 2.0)).variance(), [3, 12])
    np.testing.assert_array_equal(L2LaplaceNoise(0.0).sample(3, 0), 0)


def test_is_plain_data():
    noise = L2LaplaceNoise((1.0, 2.0))
    assert from_plain(json.loads(json.dumps(noise.to_dict()))) == noise
    assert pickle.loads(pickle.dumps(noise)) == noise


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_attacker_beats_the_promise_but_with_less_noise(dim):
    noise, move = L2LaplaceNoise(0.25), np.eye(dim)[0]

    def worlds(noise):
        return [
            lambda n, rng, at=at: at + noise.sample((n, dim), rng)
            for at in (move, 0 * move)
        ]

    def score(noise):
        scale = noise.scale
        return lambda x: (
            (np.linalg.norm(x, axis=1) - np.linalg.norm(x - move, axis=1)) / scale
        )

    assert_tight(
        promise_of(noise.curve(Shift(1.0, norm=2, dim=dim))),
        noise,
        worlds,
        score=score,
        seed=0,
        n_draws=40_000,
        epsilons=(0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 4.5),
    )


# -- who takes it ----------------------------------------------------------------------

VECTOR = QueryRelease(
    contribution=lambda X, y: np.asarray(X, dtype=float),
    is_sum=True,
    n_records=5,
    dim=30,
    sensitivity=Sensitivity(add_remove={2: 1.0}),
)


def test_it_takes_less_noise_than_laplace_for_an_l2_sensitivity():
    found = [
        accountant.calibrate(VECTOR, RecordScenario())
        for accountant in (
            GroupPrivacy(1.0, math.inf, noise=L2LaplaceNoise()),
            GroupPrivacy(1.0, math.inf, noise="laplace"),
        )
    ]
    assert found[0].noise.scale == pytest.approx(1.0)
    assert found[0].certificate.epsilon == 1.0
    deviations = [np.max(one.noise.std(30)) for one in found]
    assert deviations[0] == pytest.approx(math.sqrt(31))
    assert deviations[1] == pytest.approx(math.sqrt(2 * 30))


def test_who_reads_more_than_a_move_refuses_it():
    noise = L2LaplaceNoise(1.0)
    assert isinstance(noise, Noise)
    for accountant in (
        PrivacyLoss(1.0, 1e-5, noise=noise),
        RenyiDP(1.0, alpha=2.0, delta=None, noise=noise),
        DistributionAwareWasserstein(1.0, alpha=2.0, noise=noise),
        MarkovQuilt(1.0, noise=noise),
    ):
        with pytest.raises(UnsupportedError):
            accountant.calibrate(VECTOR, RecordScenario())
        assert not accountant.supports(VECTOR, RecordScenario())
    steps = GradientRelease(n_records=50, n_steps=2, batch_size=50)
    for kind in (GroupPrivacy, GeneralWasserstein):
        accountant = kind(1.0, alpha=2.0, noise=noise)
        assert not accountant.supports(steps, RecordScenario())
    certified = Best(1.0, delta=1e-5).certify(noise, VECTOR, RecordScenario())
    assert certified.epsilon <= 1.0


@dataclass(frozen=True)
class Parts(QueryRelease):
    """A release that may be drawn part by part."""


def test_a_release_of_several_parts_is_refused():
    held = {field.name: getattr(VECTOR, field.name) for field in fields(VECTOR)}
    accountant = GroupPrivacy(1.0, math.inf, noise=L2LaplaceNoise())
    assert accountant.supports(QueryRelease(**held), RecordScenario())
    assert not accountant.supports(Parts(**held), RecordScenario())
