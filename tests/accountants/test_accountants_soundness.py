"""The promise against the truth: divergences of the released laws by quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import GeneralWasserstein
from skpuffer.distributions import Discrete, PointMass
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario

from ..attack import weakened
from .mixtures import hockey_stick, renyi

counts = st.lists(st.integers(1, 9), min_size=1, max_size=5)
laws = counts.flatmap(
    lambda w: st.lists(
        st.integers(-6, 6).map(float),
        min_size=len(w),
        max_size=len(w),
        unique=True,
    ).map(lambda x: Discrete(x, w))
)
epsilons = st.floats(0.1, 3)
families = st.sampled_from(["gaussian", "laplace"])
RELEASE = QueryRelease(query=lambda X, y: X, n_records=4, dim=1)


def atoms(law):
    return law.points[:, 0], law.masses


@given(laws, laws, epsilons, st.sampled_from([1.2, 2.0, 8.0]), families)
def test_no_renyi_divergence_exceeds_the_promise(u, v, epsilon, alpha, family):
    accountant = GeneralWasserstein(epsilon=epsilon, alpha=alpha, noise=family)
    found = accountant.calibrate(RELEASE, LawsScenario([(u, v)]))
    if found.certificate.sensitivity == 0:
        return
    for first, second in ((u, v), (v, u)):
        true = renyi(found.noise, *atoms(first), *atoms(second), alpha)
        assert true <= epsilon * (1 + 1e-6) + 1e-9
        # the whole curve is a promise, not only the order that was asked for
        assert renyi(found.noise, *atoms(first), *atoms(second), 3.0) <= float(
            found.certificate.curve.renyi(3.0)
        ) * (1 + 1e-6)


@given(laws, laws, epsilons, st.floats(1e-4, 0.3), families)
def test_no_event_exceeds_the_promise(u, v, epsilon, delta, family):
    accountant = GeneralWasserstein(epsilon=epsilon, delta=delta, noise=family)
    found = accountant.calibrate(RELEASE, LawsScenario([(u, v)]))
    if found.certificate.sensitivity == 0:
        return
    for first, second in ((u, v), (v, u)):
        true = hockey_stick(found.noise, *atoms(first), *atoms(second), epsilon)
        assert true <= delta * (1 + 1e-3)
        elsewhere = found.certificate.curve.delta(0.5 * epsilon)
        assert hockey_stick(
            found.noise, *atoms(first), *atoms(second), 0.5 * epsilon
        ) <= elsewhere * (1 + 1e-3)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("distance", [0.5, 2.0])
def test_two_points_attain_the_promise_and_less_noise_breaks_it(family, distance):
    """So that the checks above can fail: nothing is lost between two point masses."""
    alpha, epsilon = 4.0, 0.8
    pair = (PointMass(0.0), PointMass(distance))
    scenario = LawsScenario([pair])
    accountant = GeneralWasserstein(epsilon=epsilon, alpha=alpha, noise=family)
    noise = accountant.calibrate(RELEASE, scenario).noise
    ends = (*atoms(pair[0]), *atoms(pair[1]))
    assert renyi(noise, *ends, alpha) == pytest.approx(epsilon, rel=1e-6)
    assert renyi(weakened(noise), *ends, alpha) > 1.4 * epsilon

    accountant = GeneralWasserstein(epsilon=epsilon, delta=0.01, noise=family)
    noise = accountant.calibrate(RELEASE, scenario).noise
    assert hockey_stick(noise, *ends, epsilon) == pytest.approx(0.01, rel=1e-3)
    assert hockey_stick(weakened(noise), *ends, epsilon) > 0.03


def test_flu_example():
    """Reference laws, both directions; the bound holds and is not trivial."""
    healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    scenario = LawsScenario([(healthy, infected)])
    for noise in (GaussianNoise(2.0), LaplaceNoise(2.0)):
        bound = GeneralWasserstein(alpha=2).certify(noise, RELEASE, scenario).epsilon
        true = [
            renyi(noise, *atoms(a), *atoms(b), 2.0)
            for a, b in ((healthy, infected), (infected, healthy))
        ]
        assert max(true) < bound < 6 * max(true)


@given(st.integers(2, 4), families, epsilons)
def test_several_coordinates_by_their_true_sum(dim, family, epsilon):
    """Product noise on a worst-case move: the norm of the noise is the right one."""
    rng = np.random.default_rng(dim)
    move = rng.normal(size=dim)
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=dim)
    scenario = LawsScenario([(PointMass(np.zeros(dim)), PointMass(move))])
    accountant = GeneralWasserstein(epsilon=epsilon, alpha=2.0, noise=family)
    noise = accountant.calibrate(release, scenario).noise
    true = sum(noise.renyi(2.0, abs(step)) for step in move)
    assert true <= epsilon * (1 + 1e-9)
    if family == "gaussian":
        assert true == pytest.approx(epsilon)


def test_an_l2_distance_would_have_been_too_small_for_laplace_noise():
    dim, alpha = 4, 2.0
    move = np.full(dim, 0.5)  # l2 length 1, l1 length 2
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=dim)
    scenario = LawsScenario([(PointMass(np.zeros(dim)), PointMass(move))])
    noise = LaplaceNoise(1.0)
    certificate = GeneralWasserstein(alpha=alpha).certify(noise, release, scenario)
    true = dim * noise.renyi(alpha, 0.5)
    assert certificate.norm == 1.0
    assert certificate.sensitivity == pytest.approx(2.0)
    assert noise.renyi(alpha, 1.0) < true <= certificate.epsilon
    assert math.isclose(true, 0.8012155846944635, rel_tol=1e-9)
