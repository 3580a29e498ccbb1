"""One budget for several releases: closed forms, and what a search may return."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from skpuffer.accountants import PrivacyLoss
from skpuffer.accountants._budget_split import (
    certificate_of_share,
    common_scale,
    relative_noise,
    shares_of_least_error,
)
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import compose
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    SelectionRelease,
    Sensitivity,
    Stage,
)
from skpuffer.scenarios import RecordScenario
from tests.refused import refused

SHARES = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5).map(
    lambda raw: [share / sum(raw) for share in raw]
)


@given(shares=SHARES, target=st.floats(1e-3, 50.0))
def test_gaussian_costs_leave_room_up_to_the_root_of_their_squares(shares, target):
    """Two Gaussian steps compose to the root of the sum of squares."""
    scale = common_scale(
        lambda s: math.sqrt(sum((s * share) ** 2 for share in shares)), target, shares
    )
    known = target / math.sqrt(sum(share**2 for share in shares))
    assert known * (1 - 2e-4) <= scale <= known * (1 + 1e-9)


def test_certificates_of_shares_add_up_to_the_whole():
    whole = PrivacyLoss(0.8, 1e-5, noise="gaussian")
    parts = [certificate_of_share(whole, RecordScenario(), s) for s in (0.2, 0.3, 0.5)]
    assert compose(parts, delta=1e-5).epsilon == pytest.approx(0.8, rel=1e-6)


@given(shares=SHARES, target=st.floats(1e-3, 50.0), power=st.floats(0.5, 2.0))
def test_a_total_is_never_above_the_target(shares, target, power):
    def total(scale):
        # of events, say: it costs more than the sum where the power is below one
        return sum((scale * share) ** power for share in shares) ** (1 / power)

    scale = common_scale(total, target, shares)
    assert target * (1 - 2e-3) <= total(scale) <= target * (1 + 1e-8)


def test_a_sum_is_met_at_once():
    asked = []

    def total(scale):
        asked.append(scale)
        return scale

    assert common_scale(total, 3.0, [0.5, 0.5]) == 3.0
    assert len(asked) == 1


def test_no_scale_is_small_enough_for_what_is_spent_already():
    with refused(ValueError, "budget.no_part_small_enough"):
        common_scale(lambda scale: 2.0 + scale, 1.0, [1.0])


@given(errors=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=4))
def test_shares_make_the_sum_of_squared_errors_least(errors):
    shares = np.array(shares_of_least_error(errors))
    assert shares.sum() == pytest.approx(1)

    def loss(logs, at=1.0):
        epsilons = np.exp(logs)
        epsilons = at * epsilons / np.linalg.norm(epsilons)
        return np.log(np.sum((np.array(errors) / epsilons) ** 2))

    least = minimize(loss, np.zeros(len(errors)), tol=1e-12).fun
    assert loss(np.log(shares)) == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("unknown", [None, math.inf, 0.0])
def test_shares_are_equal_where_an_error_is_not_known(unknown):
    assert shares_of_least_error([1.0, unknown, 9.0]) == [1 / 3] * 3


def test_relative_noise_of_each_kind():
    one = Sensitivity(add_remove={2: 0.5}, replace={2: 1.0})
    query = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        n_records=100,
        dim=4,
        units=(1.0, 1.0, 2.0, 2.0),
        sensitivity=one,
    )
    noise = GaussianNoise((3.0, 3.0, 6.0, 6.0))
    # in its units every coordinate has noise of three, six times the sensitivity
    assert relative_noise(query, noise, 0.5) == pytest.approx(6 * 2 / 100)
    stages = AdaptiveRelease(
        n_records=100,
        stages=[Stage("a", 8, one, 0.5), Stage("b", 4, one, 0.5, times=2)],
    )
    found = PrivacyLoss(1.0).calibrate(stages, RecordScenario())
    sensitivity = found.certificate.sensitivity
    assert relative_noise(stages, found.noise, sensitivity) == pytest.approx(
        float(found.noise.std(1)[0]) / sensitivity * 4 / 100
    )
    steps = GradientRelease(n_records=100, batch_size=10, n_steps=25, dim=9)
    assert relative_noise(steps, GaussianNoise(2.0), 1.0) == pytest.approx(
        2 * 3 / (10 * 5)
    )
    choice = SelectionRelease.__new__(SelectionRelease)
    assert relative_noise(choice, GaussianNoise(1.0), 1.0) is None
    assert relative_noise(query, noise, 0.0) is None
