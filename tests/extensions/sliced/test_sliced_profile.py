"""Slice profiles: directions, weights, and what is refused of them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.exceptions import PrivacyWarning
from skpuffer.transport import SliceProfile
from tests.refused import refused, warned

PROFILES = [
    SliceProfile.basis(3),
    SliceProfile.uniform(4),
    SliceProfile.sampled(2, 5),
    SliceProfile.finite([[1, 0], [0, 1]], [1, 3]),
]


def test_frame(sliced):
    case = sliced["OT-41"]
    profile = SliceProfile.finite(case["slices"], normalize=True)
    np.testing.assert_allclose(profile.frame, case["frame"], rtol=1e-12)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(profile.frame), case["eigenvalues"], rtol=1e-12
    )
    assert profile.least_share == pytest.approx(1 / 3, rel=1e-12)
    assert profile.rank == 2


def test_a_slice_without_weight_protects_nothing():
    with refused(ValueError, "sliced.slices_not_spanning", rank=1, dim=2):
        SliceProfile.finite(np.eye(2), [1.0, 0.0])
    profile = SliceProfile.finite(np.eye(2), [1.0, 0.0], allow_degenerate=True)
    assert profile.n_slices == 1
    assert profile.least_share == 0
    np.testing.assert_array_equal(profile.directions, [[1, 0]])
    np.testing.assert_array_equal(profile.weights, [1])


@given(st.integers(1, 6), st.integers(0, 50))
def test_the_frame_is_an_average(dim, seed):
    profile = SliceProfile.sampled(dim, 20 * dim, random_state=seed)
    assert np.trace(profile.frame) == pytest.approx(1)
    v = np.random.default_rng(seed).normal(size=dim)
    seen = profile.weights @ (profile.directions @ v) ** 2
    assert v @ profile.frame @ v == pytest.approx(seen)
    assert profile.least_share * (v @ v) <= seen * (1 + 1e-9)


def test_axes_are_even():
    for dim in (1, 2, 7):
        for even in (SliceProfile.basis(dim), SliceProfile.uniform(dim)):
            np.testing.assert_allclose(even.frame, np.eye(dim) / dim)
            assert even.least_share == pytest.approx(1 / dim)
            assert even.rank == dim


def test_all_directions_are_no_finite_number():
    profile = SliceProfile.uniform(3)
    assert not profile.is_finite
    assert profile.n_slices is profile.directions is profile.weights is None


def test_weights_may_be_counts():
    counted = SliceProfile.finite(np.eye(2), [1, 3])
    assert counted == SliceProfile.finite(np.eye(2), [0.25, 0.75])
    np.testing.assert_array_equal(counted.weights, [0.25, 0.75])


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
def test_copies_are_equal(profile):
    for other in (
        pickle.loads(pickle.dumps(profile)),
        copy.deepcopy(profile),
        clone(profile),
    ):
        assert other == profile
        assert hash(other) == hash(profile)
        assert other.name == profile.name
    assert profile not in (PROFILES[PROFILES.index(profile) - 1], "basis")


def test_what_makes_profiles_different():
    axes = SliceProfile.basis(2)
    assert axes == SliceProfile.finite([[1, -0.0], [0.0, 1]])
    assert axes == SliceProfile.finite([[2, 0], [0, 5]], normalize=True)
    for other in (
        SliceProfile.finite([[0, 1], [1, 0]]),
        SliceProfile.finite(np.eye(2), [0.4, 0.6]),
        SliceProfile.basis(3),
        SliceProfile.uniform(2),
    ):
        assert axes != other
        assert axes.name != other.name


def test_a_sampled_profile_is_public():
    one = SliceProfile.sampled(4, 30, random_state=3)
    assert one == SliceProfile.sampled(4, 30, random_state=3)
    assert one != SliceProfile.sampled(4, 30)
    np.testing.assert_allclose(np.linalg.norm(one.directions, axis=1), 1)


def test_nobody_writes_to_a_profile():
    given = np.eye(2)
    profile = SliceProfile.finite(given)
    given[:] = 0
    assert profile == SliceProfile.basis(2)
    with pytest.raises(ValueError, match="read-only"):
        profile.directions[0] = 0
    with pytest.raises(AttributeError):
        profile.dim = 3


@pytest.mark.parametrize(
    "slices",
    [[], [1.0, 0.0], [[]], [["a", "b"]], [[True, False], [False, True]], None],
    ids=str,
)
def test_what_is_no_array_of_directions(slices):
    with refused(ValueError, "sliced.slices_shape_invalid"):
        SliceProfile.finite(slices)


@pytest.mark.parametrize("length", [0.0, 0.5, 1 + 1e-7, np.nan, np.inf])
def test_directions_have_unit_length(length):
    with refused(ValueError, "sliced.slices_not_unit"):
        SliceProfile.finite([[length, 0], [0, 1]])


@pytest.mark.parametrize("length", [0.0, np.nan, np.inf])
def test_what_has_no_direction(length):
    with refused(ValueError, "sliced.slices_zero_or_infinite"):
        SliceProfile.finite([[length, 0], [0, 1]], normalize=True)


def test_round_off_of_unit_vectors_is_fine():
    SliceProfile.finite([[1 + 1e-9, 0], [0, 1]])


@pytest.mark.parametrize(
    "weights", [[-0.1, 1.1], [0.5, 0.6], [np.nan, 1], [0, 0], [1.0], [[0.5, 0.5]]]
)
def test_weights_are_masses(weights):
    with refused(
        ValueError,
        (
            "parameter.masses_not_sum_one",
            "transport.masses_count_differs",
            "transport.masses_invalid",
        ),
    ):
        SliceProfile.finite(np.eye(2), weights)


def test_slices_that_leave_a_direction_out():
    flat = [[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]]
    with refused(ValueError, "sliced.slices_not_spanning"):
        SliceProfile.finite(flat)
    assert SliceProfile.finite(flat, allow_degenerate=True).rank == 2


def test_slices_that_hardly_look_along_a_direction_warn():
    with warned(PrivacyWarning, "sliced.slices_nearly_degenerate"):
        SliceProfile.finite([[1, 0], [1, 0.1]], normalize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SliceProfile.finite([[1, 0], [1, 1]], normalize=True)


@pytest.mark.parametrize("dim", [0, -1, 1.5])
def test_dimensions_are_counts(dim):
    for make in (SliceProfile.basis, SliceProfile.uniform, SliceProfile.sampled):
        with refused(ValueError, "parameter.count_too_small", name="dim"):
            make(dim)


def test_too_few_directions_drawn():
    with refused(ValueError, "parameter.count_too_small", name="n_slices", least=5):
        SliceProfile.sampled(5, 4)
    with refused(ValueError, "parameter.count_too_small", name="random_state"):
        SliceProfile.sampled(5, random_state=-1)


def test_representations():
    assert repr(SliceProfile.uniform(2)) == "SliceProfile.uniform(dim=2)"
    assert repr(SliceProfile.basis(2)) == "SliceProfile(n_slices=2, dim=2)"
