"""Rényi divergences of projections: averaged, joint, and of shifts in closed form."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import hyp1f1, i0e
from scipy.stats import beta

from skpuffer.extensions.sliced._divergences import _log_kummer
from skpuffer.privacy_loss import (
    averaged_divergence,
    averaged_shift_divergence,
    gaussian_renyi_divergence,
    joint_divergence,
    joint_shift_divergence,
    shift_divergence_bound,
    sliced_gaussian_divergences,
)
from skpuffer.transport import SliceProfile
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "sliced.json").read_text("utf-8")
)

divergences = st.lists(st.floats(0, 1e3), min_size=1, max_size=6)
orders = st.floats(1, 100)


@pytest.mark.every_run
def test_gaussians_on_the_line():
    for case in ORACLES["OT-08"]:
        expected = math.inf if case["divergence"] is None else case["divergence"]
        found = gaussian_renyi_divergence(*case["p"], *case["q"], case["alpha"])
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.every_run
def test_gaussians_in_the_plane():
    case = ORACLES["OT-09"]
    full = gaussian_renyi_divergence(*case["p"], *case["q"], case["alpha"])
    assert full == pytest.approx(case["full"], rel=1e-9)
    for slices in case["slices"]:
        angles = np.pi * np.arange(slices["n"]) / slices["n"]
        profile = SliceProfile.finite(np.c_[np.cos(angles), np.sin(angles)])
        found = sliced_gaussian_divergences(
            *case["p"], *case["q"], case["alpha"], profile
        )
        averaged = averaged_divergence(found, profile.weights)
        joint = joint_divergence(found, profile.weights, alpha=case["alpha"])
        assert averaged == pytest.approx(slices["averaged"], rel=1e-9)
        assert joint == pytest.approx(slices["joint"], rel=1e-9)
        assert averaged <= joint <= full


@pytest.mark.every_run
def test_three_points():
    for case in ORACLES["OT-02"]:
        slices = 4 * np.array([9, 16, 0]) / (2 * case["variance"])
        assert averaged_divergence(slices) == pytest.approx(case["averaged"], rel=1e-9)
        joint = joint_divergence(slices, alpha=4)
        assert joint == pytest.approx(case["joint"], rel=1e-9)
        bound = shift_divergence_bound(case["averaged"], SliceProfile.basis(3))
        # even slices see an equal share of every shift
        assert bound == pytest.approx(case["full"], rel=1e-9)


@pytest.mark.every_run
def test_large_divergences_do_not_overflow():
    case = ORACLES["OT-39"]
    joint = joint_divergence(case["divergences"], alpha=case["alpha"])
    assert joint == pytest.approx(case["joint"], rel=1e-12)


@given(divergences, st.data(), orders)
def test_ordering(values, data, alpha):
    weights = data.draw(
        st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values))
    )
    averaged = averaged_divergence(values, weights)
    joint = joint_divergence(values, weights, alpha=alpha)
    assert averaged <= joint <= max(values)
    assert joint <= joint_divergence(values, weights, alpha=2 * alpha) * (1 + 1e-12)
    # without weight, or of weight split among equal slices, nothing changes
    for more, masses in (
        ([*values, math.inf], [*weights, 0]),
        ([*values, *values], [*weights, *weights]),
    ):
        close = {"rel": 1e-12, "abs": 1e-300}
        assert averaged_divergence(more, masses) == pytest.approx(averaged, **close)
        again = joint_divergence(more, masses, alpha=alpha)
        assert again == pytest.approx(joint, **close)


@given(divergences)
def test_orders_one_and_infinity(values):
    averaged = averaged_divergence(values)
    assert joint_divergence(values, alpha=1) == averaged
    assert joint_divergence(values, alpha=math.inf) == max(values)
    near = joint_divergence(values, alpha=1 + 1e-12)
    assert near == pytest.approx(averaged, rel=1e-6)
    # a half of the variance, to the first order
    slope = (joint_divergence(values, alpha=1 + 1e-7) - averaged) / 1e-7
    assert slope == pytest.approx(np.var(values) / 2, rel=1e-2, abs=1e-2)


@given(st.floats(0, 1e3), orders)
def test_one_slice(value, alpha):
    assert averaged_divergence([value]) == value
    assert joint_divergence([value], alpha=alpha) == value


def test_infinite_divergences():
    assert averaged_divergence([1, math.inf]) == math.inf
    assert joint_divergence([1, math.inf], alpha=2) == math.inf
    assert joint_divergence([1, math.inf], [1, 0], alpha=2) == 1


def test_small_weight_on_a_large_divergence():
    joint = joint_divergence([0, 100], [1 - 1e-9, 1e-9], alpha=3)
    assert joint == pytest.approx(100 + math.log(1e-9) / 2, rel=1e-12)


@pytest.mark.parametrize("values", [[], [[1.0]], [-1.0], [math.nan], 1.0], ids=str)
def test_what_are_no_divergences(values):
    with refused(ValueError, "sliced.divergences_invalid"):
        averaged_divergence(values)
    with refused(ValueError, "sliced.divergences_invalid"):
        joint_divergence(values, alpha=2)


def test_refusals():
    with refused(ValueError, "parameter.masses_not_sum_one", name="weights"):
        averaged_divergence([1, 2], [0.5, 0.6])
    with refused(ValueError, "parameter.below_one", name="alpha"):
        joint_divergence([1], alpha=0.5)
    with refused(ValueError, "distribution.profile_infinite"):
        sliced_gaussian_divergences(0, 1, 0, 1, 2, SliceProfile.uniform(1))
    with refused(ValueError, "sliced.gaussian_shapes_wrong"):
        sliced_gaussian_divergences(0, 1, 0, 1, 2, SliceProfile.basis(2))
    for arguments in ((-1, 1, 2, 2), (1, 0, 2, 2), (1, 1, 0, 2), (1, 1, 2, 0.5)):
        with refused(
            ValueError,
            (
                "parameter.below_one",
                "parameter.count_too_small",
                "parameter.is_negative",
                "parameter.not_positive",
            ),
        ):
            joint_shift_divergence(*arguments)
        with refused(
            ValueError,
            (
                "parameter.below_one",
                "parameter.count_too_small",
                "parameter.is_negative",
                "parameter.not_positive",
            ),
        ):
            averaged_shift_divergence(*arguments)
    with refused(ValueError, "parameter.is_negative", name="averaged"):
        shift_divergence_bound(-1, SliceProfile.basis(2))


# -- shifts, looked at from everywhere --------------------------------------------


@pytest.mark.every_run
def test_shifts_at_published_variances():
    case = ORACLES["OT-07"]
    for dim, averaged, joint in zip(
        case["dims"], case["averaged"], case["joint"], strict=True
    ):
        alpha, epsilon = case["alpha"], case["epsilon"]
        found = averaged_shift_divergence(1, math.sqrt(averaged), dim, alpha)
        assert found == pytest.approx(epsilon, rel=1e-9)
        found = joint_shift_divergence(1, math.sqrt(joint), dim, alpha)
        assert found == pytest.approx(epsilon, rel=1e-8)
    case = ORACLES["OT-06"]
    for one in case["joint_variances"]:
        length, scale = math.sqrt(case["squared_length"]), math.sqrt(one["variance"])
        found = joint_shift_divergence(length, scale, 2, one["alpha"])
        assert found == pytest.approx(one["epsilon"], rel=1e-9)


@pytest.mark.parametrize("z", [1e-3, 0.1, 1, 10, 200, 1e3, 1e5, 1e8])
def test_in_the_plane_by_a_bessel_function(z):
    # relative to z, as the logarithm of a Bessel function is added to it
    expected = z + math.log(i0e(z / 2))
    assert _log_kummer(2, z) == pytest.approx(expected, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("dim", [3, 50, 1000, 10**5])
@pytest.mark.parametrize("z", [0.1, 1, 30, 500])
def test_by_a_hypergeometric_function(dim, z):
    found = _log_kummer(dim, z)
    assert found == pytest.approx(math.log(hyp1f1(0.5, dim / 2, z)), rel=1e-9)


@pytest.mark.parametrize("dim", [3, 40, 2000])
@pytest.mark.parametrize("z", [2e3, 1e5])
def test_large_arguments_by_quadrature(dim, z):
    law = beta(0.5, (dim - 1) / 2)
    # where the integrand is largest, in fine steps
    cosine = np.linspace(1e-9, 1 - 1e-12, 200_001)
    logs = z * cosine**2 + law.logpdf(cosine**2) + np.log(2 * cosine)
    top = logs.max()
    expected = top + math.log(np.trapezoid(np.exp(logs - top), cosine))
    assert _log_kummer(dim, z) == pytest.approx(expected, rel=1e-5)


def test_huge_arguments_stay_bounds():
    values = [_log_kummer(5, z) / z for z in (1e6, 9.99e9, 1.01e10, 1e50)]
    assert values == sorted(values)
    assert values[-1] == 1


@given(st.floats(0, 20), st.floats(0.1, 10), st.integers(1, 200), st.floats(1, 40))
def test_shifts_in_order(length, scale, dim, alpha):
    whole = alpha * (length / scale) ** 2 / 2
    averaged = averaged_shift_divergence(length, scale, dim, alpha)
    joint = joint_shift_divergence(length, scale, dim, alpha)
    close = 1 + 1e-9
    assert averaged <= joint <= whole * close
    assert whole == pytest.approx(dim * averaged)
    assert joint >= joint_shift_divergence(length, scale, dim + 1, alpha) / close
    if dim == 1:
        assert joint == whole


def test_many_slices_come_close_to_all():
    dim, alpha = 4, 3.0
    profile = SliceProfile.sampled(dim, 20_000)
    slices = alpha * (profile.directions @ [1.0, 2.0, 0.0, -1.0]) ** 2 / 2
    length = math.sqrt(6)
    assert averaged_divergence(slices) == pytest.approx(
        averaged_shift_divergence(length, 1, dim, alpha), rel=0.02
    )
    assert joint_divergence(slices, alpha=alpha) == pytest.approx(
        joint_shift_divergence(length, 1, dim, alpha), rel=0.02
    )


def test_no_shift_and_limits_of_the_order():
    assert joint_shift_divergence(0, 1, 3, math.inf) == 0
    assert joint_shift_divergence(1, 1, 3, math.inf) == math.inf
    assert joint_shift_divergence(2, 1, 4, 1) == 0.5
    assert joint_shift_divergence(2, 1, 4, 1 + 1e-9) == pytest.approx(0.5, rel=1e-8)


@given(st.integers(0, 99))
def test_a_frame_bounds_a_shift(seed):
    profile = SliceProfile.sampled(3, 40, random_state=seed)
    shift = np.random.default_rng(seed).normal(size=3)
    slices = 2 * (profile.directions @ shift) ** 2
    averaged = averaged_divergence(slices, profile.weights)
    assert shift_divergence_bound(averaged, profile) >= 2 * (shift @ shift) * (1 - 1e-9)


def test_a_direction_left_out_is_not_bounded():
    flat = SliceProfile.finite([[1, 0]], allow_degenerate=True)
    assert shift_divergence_bound(1.0, flat) == math.inf
