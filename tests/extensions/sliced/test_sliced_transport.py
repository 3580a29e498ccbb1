"""W_inf of projections, of several distributions at once."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.extensions.sliced.transport import _profile as _sliced_buckets
from skpuffer.extensions.sliced.transport import _sliced
from skpuffer.extensions.sliced.transport._profile import gaps_by_buckets
from skpuffer.transport import (
    SliceProfile,
    bottleneck_distance,
    sliced_distances,
    wasserstein_distance,
)
from tests.refused import refused

LINE = SliceProfile.basis(1)


def one_by_one(worlds, profile, weights=None):
    """Each slice of each pair by itself."""
    weights = weights or [None] * len(worlds)
    return np.array(
        [
            [
                wasserstein_distance(
                    worlds[i] @ u, worlds[j] @ u, weights[i], weights[j]
                )
                for u in profile.directions
            ]
            for i, j in itertools.combinations(range(len(worlds)), 2)
        ]
    )


def test_distances_on_the_line(sliced):
    for case in sliced["OT-04"]:
        worlds = [np.array(case[side], float)[:, None] for side in "uv"]
        weights = [case.get(f"{side}_weights") for side in "uv"]
        found = sliced_distances(worlds, LINE, weights=weights)
        assert found.tolist() == [[case["distance"]]]


def test_interpolated_quantiles_would_miss_the_largest_move():
    worlds = [[[0.0], [10.0]], [[0.0], [5.0], [10.0]]]
    levels = np.linspace(0, 1, 101)
    one, other = (np.quantile(np.ravel(world), levels) for world in worlds)
    assert np.abs(one - other).max() == pytest.approx(0)
    assert sliced_distances(worlds, LINE)[0, 0] == 5


def test_slices_of_points_in_the_plane(sliced):
    case = sliced["OT-24"]
    found = sliced_distances([case["u"], case["v"]], SliceProfile.basis(2))
    assert found.tolist() == [case["slices"]]
    assert bottleneck_distance(case["u"], case["v"]) == case["distance"]


def test_slices_may_vanish_where_a_secret_is_disclosed(sliced):
    case = sliced["OT-34"]
    worlds = [case["u"], case["v"]]
    assert sliced_distances(worlds, SliceProfile.basis(2)).tolist() == [case["axes"]]
    diagonals = SliceProfile.finite([[1, 1], [1, -1]], normalize=True)
    np.testing.assert_allclose(
        sliced_distances(worlds, diagonals), case["diagonals"], rtol=1e-9
    )
    # in between, the lesser of the two coordinates of the direction
    angles = (np.arange(2000) + 0.5) * np.pi / 2000
    around = SliceProfile.finite(np.c_[np.cos(angles), np.sin(angles)])
    found = sliced_distances(worlds, around)
    np.testing.assert_allclose(
        found[0], np.abs(around.directions).min(axis=1), atol=1e-15
    )
    assert np.mean(found**2) == pytest.approx(case["mean_square"], rel=1e-5)
    assert bottleneck_distance(*worlds) == case["distance"]


def test_five_points(sliced):
    case = sliced["OT-36"]
    worlds = np.array(case["points"], float)[:, None, :]
    found = sliced_distances(worlds, SliceProfile.basis(3))
    assert found.shape == (10, 3)
    assert found.max(axis=0).tolist() == case["largest"]
    # at order 4 and a budget of one: twice the mean square
    assert 2 * np.mean(found.max(axis=0) ** 2) == pytest.approx(case["paper"])
    assert 2 * np.mean(found**2, axis=1).max() == pytest.approx(case["tight"])


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("max_memory", [256, 1e-6])
def test_as_slice_by_slice(n_jobs, max_memory, monkeypatch):
    monkeypatch.setattr(_sliced, "_STRETCH", 4)
    monkeypatch.setattr(_sliced, "_TAPER", 2)
    monkeypatch.setattr(_sliced, "_stretches", _sliced._stretches.__wrapped__)
    rng = np.random.default_rng(0)
    profile = SliceProfile.sampled(3, 7)
    worlds = [rng.normal(size=(n, 3)) for n in (20, 20, 33, 10, 12)]
    options = {"n_jobs": n_jobs, "max_memory": max_memory}
    found = sliced_distances(worlds, profile, **options)
    np.testing.assert_allclose(found, one_by_one(worlds, profile), rtol=1e-12)
    thirds = np.array([Fraction(k, 45) for k in range(10)])
    weights = [None, rng.integers(0, 5, 20), None, thirds, rng.dirichlet(np.ones(12))]
    found = sliced_distances(worlds, profile, weights=weights, **options)
    np.testing.assert_allclose(found, one_by_one(worlds, profile, weights), rtol=1e-12)


points = st.lists(
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=7
).map(lambda rows: np.array(rows, float))
# axes besides two of any direction, so that none is left out
profiles = st.tuples(st.floats(0, 3), st.floats(0, 3)).map(
    lambda angles: SliceProfile.finite(
        np.vstack([np.eye(2), np.c_[np.cos(angles), np.sin(angles)]])
    )
)


@given(points, points, profiles)
def test_no_slice_exceeds_the_distance_of_the_points(x, y, profile):
    whole = bottleneck_distance(x, y)
    assert np.all(sliced_distances([x, y], profile) <= whole * (1 + 1e-9))


@given(points, points, profiles, st.floats(0.1, 10), st.floats(0, 7))
def test_what_distances_do_not_depend_on(x, y, profile, unit, angle):
    found = sliced_distances([x, y], profile)
    close = {"rtol": 1e-9, "atol": 1e-12}
    # a unit, in either place
    np.testing.assert_allclose(
        sliced_distances([unit * x, unit * y], profile), unit * found, **close
    )
    np.testing.assert_allclose(
        sliced_distances([x, y], profile, coordinate_scale=[1 / unit] * 2),
        unit * found,
        **close,
    )
    # a rotation of both points and slices, a common shift
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = SliceProfile.finite(profile.directions @ turn.T, normalize=True)
    np.testing.assert_allclose(
        sliced_distances([x @ turn.T, y @ turn.T], turned), found, **close
    )
    np.testing.assert_allclose(
        sliced_distances([x + 3, y + 3], profile), found, **close
    )
    # the order of slices, that of points, and that of the pair
    back = SliceProfile.finite(profile.directions[::-1])
    np.testing.assert_array_equal(sliced_distances([x[::-1], y], back)[:, ::-1], found)
    assert sliced_distances([x, y], profile, pairs=[(1, 0)]).tolist() == found.tolist()
    # repeated points are points of more mass
    np.testing.assert_allclose(
        sliced_distances([np.repeat(x, 3, axis=0), y], profile), found, **close
    )


def test_masses_leave_no_sliver():
    # sums of tenths that floats tell apart from their values
    tenths = np.full(10, 0.1)
    x = np.arange(10.0)[:, None]
    split = np.array([0.3, 0.3, 0.4])
    y = np.array([[0.0], [3.0], [6.0]])
    found = sliced_distances([x, y], LINE, weights=[tenths, split])
    assert found.tolist() == [[3.0]]
    # unequal numbers without weights, and the same as counts
    many = np.arange(9.0)[:, None] // 3
    assert sliced_distances([many, [[0.0], [1.0], [2.0]]], LINE).tolist() == [[0.0]]
    counts = [3, 3, 3]
    found = sliced_distances(
        [many, [[0.0], [1.0], [2.0]]], LINE, weights=[None, counts]
    )
    assert found.tolist() == [[0.0]]


def test_points_without_mass_do_not_count():
    worlds = [[[0.0], [1e6]], [[1.0]]]
    assert sliced_distances(worlds, LINE, weights=[[1, 0], None]).tolist() == [[1.0]]


def test_points_far_from_the_origin_keep_their_digits():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, (2, 50, 3)).astype(float)
    profile = SliceProfile.sampled(3, 10)
    near = sliced_distances([x, y], profile)
    np.testing.assert_allclose(
        sliced_distances([x + 2.0**40, y + 2.0**40], profile), near, rtol=1e-12
    )


def test_pairs_as_they_are_asked_for():
    worlds = [[[0.0]], [[1.0]], [[3.0]]]
    assert np.ravel(sliced_distances(worlds, LINE)).tolist() == [1, 3, 2]
    asked = [(2, 0), (1, 1), (0, 2), (2, 1)]
    found = np.ravel(sliced_distances(worlds, LINE, pairs=asked))
    assert found.tolist() == [3, 0, 3, 2]
    assert not np.signbit(found).any()
    assert sliced_distances(worlds, LINE, pairs=[]).shape == (0, 1)


def test_each_world_is_projected_and_sorted_once(monkeypatch):
    calls = []
    projected, ordered_by = _sliced._projected, _sliced.Sorted.of
    monkeypatch.setattr(
        _sliced, "_projected", lambda *args: calls.append("p") or projected(*args)
    )
    monkeypatch.setattr(
        _sliced.Sorted, "of", lambda *args: calls.append("s") or ordered_by(*args)
    )
    worlds = np.random.default_rng(0).normal(size=(5, 8, 2))
    ordered = list(itertools.permutations(range(4), 2))
    sliced_distances(worlds, SliceProfile.sampled(2, 6), pairs=ordered)
    # the fifth is in no pair
    assert calls.count("p") == calls.count("s") == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_projections_stay_within_the_memory(n_jobs, monkeypatch):
    held = []
    honest = _sliced._projected

    def spy(world, directions, memory):
        held.append(memory.nbytes)
        return honest(world, directions, memory)

    monkeypatch.setattr(_sliced, "_projected", spy)
    worlds = np.random.default_rng(0).normal(size=(3, 1000, 2))
    profile = SliceProfile.sampled(2, 64)
    sliced_distances(worlds, profile, n_jobs=n_jobs, max_memory=0.2)
    # each of three worlds, in each thread
    assert 3 * n_jobs * max(held) <= 0.2 * 2**20 < 3 * n_jobs * (max(held) + 8000)
    # one direction at least
    held.clear()
    sliced_distances(worlds, profile, n_jobs=n_jobs, max_memory=1e-9)
    assert max(held) == 8000


@pytest.mark.parametrize(
    "change, code, parameters",
    [
        ({"profile": SliceProfile.uniform(2)}, "distribution.profile_infinite", {}),
        ({"profile": SliceProfile.basis(3)}, "sliced.worlds_shape_invalid", {}),
        ({"worlds": []}, "sliced.worlds_empty", {}),
        ({"worlds": [[[0.0, math.nan]]] * 2}, "sliced.worlds_not_finite", {}),
        ({"worlds": [[[0.0, math.inf]]] * 2}, "sliced.worlds_not_finite", {}),
        (
            {"worlds": [[[0.0, -math.inf], [1.0, 2.0]]] * 2},
            "sliced.worlds_not_finite",
            {},
        ),
        (
            {"worlds": [[[0.0, 1e308], [1.0, -1e308]]] * 2},
            "sliced.worlds_not_finite",
            {},
        ),
        ({"worlds": [np.empty((0, 2))]}, "sliced.worlds_shape_invalid", {}),
        ({"worlds": [[0.0, 1.0]]}, "sliced.worlds_shape_invalid", {}),
        ({"weights": [None]}, "sliced.weights_count_differs", {}),
        (
            {"weights": [None, [0.5, 0.6]]},
            "parameter.masses_not_sum_one",
            {"name": "weights"},
        ),
        ({"weights": [None, [-1, 2]]}, "transport.masses_invalid", {"name": "weights"}),
        (
            {"weights": [[1, 2], None], "worlds": [[[0, math.nan]] * 2] * 2},
            "sliced.worlds_not_finite",
            {},
        ),
        ({"pairs": [(0, 2)]}, "sliced.pairs_out_of_range", {}),
        ({"pairs": [(-1, 0)]}, "sliced.pairs_out_of_range", {}),
        ({"coordinate_scale": [1.0]}, "sliced.coordinate_scale_invalid", {}),
        ({"coordinate_scale": [1.0, 0.0]}, "sliced.coordinate_scale_invalid", {}),
        ({"max_memory": 0}, "parameter.not_positive", {"name": "max_memory"}),
    ],
)
def test_refusals(change, code, parameters):
    two = [[[0.0, 0.0], [1.0, 1.0]]] * 2
    options = {"worlds": two, "profile": SliceProfile.basis(2)} | change
    with refused(ValueError, code, **parameters):
        sliced_distances(**options)


@pytest.mark.parametrize("n", [1, 2, 17, 200, 5000])
def test_stretches_hold_each_atom_once(n):
    first, last = _sliced._stretches(n)
    assert first[0] == 0
    assert last[-1] == n - 1
    assert np.all(first[1:] == last[:-1] + 1)
    assert np.all((last >= first) & (last - first < _sliced._STRETCH))


@pytest.mark.parametrize("sizes", [(3000, 3000), (3000, 2000), (1000, 1001)])
def test_what_is_bounded_only_is_no_larger(sizes):
    rng = np.random.default_rng(0)
    profile = SliceProfile.sampled(3, 6)
    for draw in (rng.normal, rng.uniform, rng.standard_cauchy):
        worlds = [draw(size=(n, 3)) for n in sizes]
        np.testing.assert_allclose(
            sliced_distances(worlds, profile), one_by_one(worlds, profile), rtol=1e-12
        )
    # all of them as far apart
    worlds = [worlds[0], worlds[0][: sizes[1]] + 1]
    np.testing.assert_allclose(
        sliced_distances(worlds, profile), one_by_one(worlds, profile), rtol=1e-12
    )
    # a single large gap in the middle
    worlds = [np.repeat(rng.normal(size=(n, 1)), 3, axis=1) for n in sizes]
    worlds[0][worlds[0] > 0] += 50
    np.testing.assert_allclose(
        sliced_distances(worlds, profile), one_by_one(worlds, profile), rtol=1e-12
    )


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_weights_that_are_no_fractions(seed):
    rng = np.random.default_rng(seed)
    worlds = [rng.integers(-5, 5, (n, 2)).astype(float) for n in (6, 4)]
    weights = [rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(4))]
    profile = SliceProfile.basis(2)
    found = sliced_distances(worlds, profile, weights=weights)
    np.testing.assert_array_equal(found, one_by_one(worlds, profile, weights))


# -- counted in buckets ----------------------------------------------------------------


def counted(worlds, profile, cells=1, **options):
    """Distances by buckets from the first point on, and how often they were enough."""
    found = []

    def spy(*args):
        found.append(gaps_by_buckets(*args))
        return found[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sliced, "_MANY", 1)
        patched.setattr(_sliced, "_CELLS", cells)
        patched.setattr(_sliced, "gaps_by_buckets", spy)
        table = sliced_distances(worlds, profile, **options)
    return table, [each is not None for each in found]


# few points in few buckets, equal and unequal numbers, ties, large and small
coarse = st.integers(1, 3).flatmap(
    lambda dim: st.lists(
        st.lists(
            st.tuples(*[st.integers(-20, 20) | st.floats(-1e6, 1e6)] * dim),
            min_size=1,
            max_size=30,
        ).map(lambda rows: np.array(rows, float)),
        min_size=2,
        max_size=4,
    )
)


@given(coarse, st.sampled_from([1, 40, 10**6]))
def test_buckets_give_the_distances_of_sorts_to_the_last_bit(worlds, cells):
    profile = SliceProfile.sampled(worlds[0].shape[1], 7)
    expected = sliced_distances(worlds, profile)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sliced_buckets, "_WORTH_SORTING", 1.0)
        found, enough = counted(worlds, profile, cells)
    np.testing.assert_array_equal(found, expected)
    # unless all projections of a direction are one number
    assert all(enough) or np.any(
        np.ptp(np.concatenate(worlds) @ profile.directions.T, axis=0) < 1e-300
    )


@pytest.mark.parametrize("sizes", [(3000,) * 3, (3000, 2999, 700)])
def test_few_of_many_projections_are_sorted(sizes):
    rng = np.random.default_rng(0)
    profile = SliceProfile.sampled(3, 25)
    for draw in (rng.normal, rng.uniform, rng.standard_cauchy):
        worlds = [draw(size=(n, 3)) for n in sizes]
        found, enough = counted(worlds, profile, 10_000)
        assert all(enough) and len(enough) > 5
        np.testing.assert_array_equal(found, sliced_distances(worlds, profile))


def test_where_all_move_alike_all_are_sorted():
    """And from then on no more are counted, of whatever direction."""
    x = np.random.default_rng(0).normal(size=(500, 2))
    moved = [x, x + [3.0, 4.0]]
    found, enough = counted(moved, SliceProfile.basis(2))
    assert enough == [False]
    np.testing.assert_allclose(found, [[3.0, 4.0]])
    # along the first axis they do not, along the others they do
    stretched = [x, np.column_stack([2 * x[:, 0], x[:, 1] + 4])]
    profile = SliceProfile.finite(np.eye(2)[[0, 1, 1, 0]])
    found, enough = counted(stretched, profile)
    assert enough == [True, False]
    np.testing.assert_array_equal(found, sliced_distances(stretched, profile))
    # points that are all one, and so close that no bucket is
    for width in (0.0, 5e-324):
        narrow = [np.zeros((9, 1)), np.full((9, 1), width)]
        found, enough = counted(narrow, LINE)
        assert found.tolist() == [[width]] and enough == [False]


def test_weights_are_never_counted_in_buckets():
    rng = np.random.default_rng(0)
    worlds = rng.normal(size=(3, 50, 2))
    weights = [None, rng.integers(1, 9, 50), None]
    found, enough = counted(worlds, SliceProfile.basis(2), weights=weights)
    assert not enough
    expected = one_by_one(worlds, SliceProfile.basis(2), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
