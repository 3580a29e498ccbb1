"""Upper bounds on sliced W_inf from draws of a declared support."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.transport import (
    Ball,
    Box,
    SliceProfile,
    dkw_sliced_distances,
    sliced_distances,
)
from tests.refused import refused

LINE = SliceProfile.basis(1)


def band(n, failure):
    """Half width around each of two distribution functions of `n` draws."""
    return math.sqrt(math.log(4 / failure) / (2 * n))


def printed(x, y, failure):
    """The published estimate: levels within the bands only, and one order."""
    x, y, n, e = np.sort(x), np.sort(y), len(x), band(len(x), failure)
    breaks = np.r_[np.arange(n + 1) / n + e, np.arange(n + 1) / n - e, e, 1 - e]
    breaks = np.unique(breaks[(breaks >= e) & (breaks <= 1 - e)])
    levels = (breaks[1:] + breaks[:-1]) / 2
    above = np.minimum(np.ceil((levels + e) * n).astype(int), n) - 1
    below = np.maximum(np.ceil((levels - e) * n).astype(int), 1) - 1
    return np.abs(x[above] - y[below]).max()


def by_definition(x, y, support, failure):
    """Upper and lower quantiles at every level at which either changes."""
    (low, high), bands = support, {id(z): band(len(z), failure) for z in (x, y)}

    def upper(z, t):
        at = math.ceil((t + bands[id(z)]) * len(z))
        return np.sort(z)[at - 1] if t + bands[id(z)] <= 1 else high

    def lower(z, t):
        at = math.ceil((t - bands[id(z)]) * len(z))
        return np.sort(z)[at - 1] if t - bands[id(z)] > 0 else low

    breaks = [0.0, 1.0]
    for z in (x, y):
        ends = np.arange(len(z) + 1) / len(z)
        breaks += [*(ends - bands[id(z)]), *(ends + bands[id(z)])]
    breaks = np.unique([b for b in breaks if 0 <= b <= 1])
    return max(
        max(upper(x, t) - lower(y, t), upper(y, t) - lower(x, t))
        for t in (breaks[1:] + breaks[:-1]) / 2
    )


def bound(x, y, support, confidence):
    column = [np.asarray(z, float)[:, None] for z in (x, y)]
    found = dkw_sliced_distances(column, LINE, support=support, confidence=confidence)
    assert found.shape == (1, 1)
    return found[0, 0]


def test_a_shift_by_one_half(sliced):
    case = sliced["OT-11"]
    assert band(case["n"], 0.05) == pytest.approx(case["band"], rel=1e-9)
    x = np.arange(case["n"]) / case["n"]
    y = x + case["shift"]
    found = bound(x, y, Box(*case["support"]), case["confidence"])
    assert found == pytest.approx(case["bound"], rel=1e-9)
    assert bound(y, x, Box(*case["support"]), case["confidence"]) == found
    assert printed(x, y, 0.05) == pytest.approx(case["printed"][0])
    assert printed(y, x, 0.05) == pytest.approx(case["printed"][1])


draws = st.lists(st.integers(0, 100), min_size=1, max_size=60).map(
    lambda values: np.array(values, float)
)


@given(draws, draws, st.floats(0.02, 0.98))
def test_as_defined(x, y, confidence):
    found = bound(x, y, Box(-3.0, 104.0), confidence)
    expected = by_definition(x, y, (-3.0, 104.0), 1 - confidence)
    assert found == pytest.approx(expected, rel=1e-12)
    assert sliced_distances([x[:, None], y[:, None]], LINE)[0, 0] <= found <= 107


def coverage(draw, truth, support, estimate, n_runs=60):
    covered = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        covered += estimate(*draw(rng), support) >= truth
    return covered / n_runs


def ours(x, y, support):
    return bound(x, y, support, 0.95)


def theirs(x, y, support):
    return printed(x, y, 0.05)


def in_both_orders(x, y, support):
    return max(printed(x, y, 0.05), printed(y, x, 0.05))


def test_the_other_order_is_covered():
    def draw(rng):
        return rng.random(500), rng.random(500) + 1

    assert coverage(draw, 1, Box(0, 2), theirs) == 0
    assert coverage(draw, 1, Box(0, 2), ours) == 1


def test_tails_are_covered():
    # mass of a thousandth at ten, drawn in two samples of five
    def draw(rng):
        x, y = rng.random((2, 500))
        return np.where(rng.random(500) < 1e-3, 10.0, x), y

    assert coverage(draw, 9, Box(0, 10), in_both_orders) < 0.6
    assert coverage(draw, 9, Box(0, 10), ours) == 1


def test_each_sample_has_its_own_size():
    rng = np.random.default_rng(0)
    few, many = rng.random(30), rng.random(3000)
    box = Box(0, 1)
    assert bound(few, many, box, 0.9) < bound(few, few, box, 0.9)
    assert bound(many, many[::-1], box, 0.9) < bound(few, many, box, 0.9)


def test_failures_are_shared_among_slices_and_distributions():
    rng = np.random.default_rng(0)
    worlds = [rng.random((n, 2)) for n in (200, 300, 400)]
    axes = SliceProfile.basis(2)
    found = dkw_sliced_distances(worlds, axes, support=Box(0, 1), confidence=0.94)
    assert found.shape == (3, 2)
    # six distribution functions, a share of 0.01 each
    for row, (i, j) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        for axis in range(2):
            x, y = worlds[i][:, axis], worlds[j][:, axis]
            expected = by_definition(x, y, (0.0, 1.0), 0.02)
            assert row[axis] == pytest.approx(expected, rel=1e-12)
    again = dkw_sliced_distances(
        worlds,
        axes,
        support=Box(0, 1),
        confidence=0.94,
        pairs=[(2, 0), (1, 1)],
        n_jobs=2,
        max_memory=1e-6,
    )
    np.testing.assert_array_equal(again, [found[1], [0, 0]])


@given(st.integers(0, 99), st.floats(-5, 5), st.floats(0.1, 3))
def test_projections_of_supports(seed, middle, size):
    rng = np.random.default_rng(seed)
    directions = SliceProfile.sampled(3, 10, random_state=seed).directions
    points = rng.normal(size=(200, 3))
    points *= size / np.linalg.norm(points, axis=1)[:, None]
    ball = Ball(size, middle)
    low, high = ball.ranges(directions)
    np.testing.assert_allclose(high - low, 2 * size)
    projected = (points + middle) @ directions.T
    assert ball.holds(points + middle)
    assert np.all((projected >= low - 1e-9) & (projected <= high + 1e-9))
    box = Box(middle - size, [middle + size, middle + size, middle + 2 * size])
    corners = middle + size * np.array(
        [[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 2)]
    )
    low, high = box.ranges(directions)
    np.testing.assert_allclose(low, (corners @ directions.T).min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, (corners @ directions.T).max(axis=0), atol=1e-12)
    assert box.holds(points + middle)


def test_units_and_far_origins():
    rng = np.random.default_rng(0)
    worlds = [rng.integers(0, 9, (n, 2)).astype(float) for n in (50, 70)]
    profile = SliceProfile.finite([[0.6, 0.8], [1, 0]])
    options = {"confidence": 0.9}
    found = dkw_sliced_distances(worlds, profile, support=Box(0, 9), **options)
    far = dkw_sliced_distances(
        [world + 2.0**40 for world in worlds],
        profile,
        support=Box(2.0**40, 2.0**40 + 9),
        **options,
    )
    np.testing.assert_allclose(far, found, atol=1e-3)
    half = dkw_sliced_distances(
        worlds, profile, support=Box(0, 9), coordinate_scale=[2, 2], **options
    )
    np.testing.assert_allclose(half, found / 2)


def test_without_a_support_there_is_no_bound():
    worlds = [[[0.0]], [[1.0]]]
    for support in (None, (0, 1)):
        with refused(ValueError, "transport.support_not_ball_or_box"):
            dkw_sliced_distances(worlds, LINE, support=support, confidence=0.9)


@pytest.mark.parametrize("support", [Box(0, 0.5), Ball(0.5), Ball(0.5, 0.2)])
def test_draws_outside_of_the_support(support):
    with refused(ValueError, "transport.support_excludes_draws"):
        dkw_sliced_distances([[[0.0]], [[1.0]]], LINE, support=support, confidence=0.9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, math.nan])
def test_confidence_is_a_probability(confidence):
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        dkw_sliced_distances(
            [[[0.0]], [[1.0]]], LINE, support=Box(0, 1), confidence=confidence
        )


@pytest.mark.parametrize("support", [Box([0, 0], 1), Box(0, [1, 1]), Ball(1, [0, 0])])
def test_supports_have_the_coordinates_of_the_profile(support):
    with refused(ValueError, "transport.vector_shape_invalid"):
        dkw_sliced_distances([[[0.0]], [[1.0]]], LINE, support=support, confidence=0.9)


def test_supports_of_nothing():
    with refused(ValueError, "transport.box_lower_above_upper"):
        Box(1, 0)
    with refused(ValueError, "parameter.array_not_finite", name="upper"):
        Box(1, math.inf)
    with refused(ValueError, "parameter.not_positive", name="radius"):
        Ball(0)
    with refused(ValueError, "parameter.array_not_finite", name="center"):
        Ball(1, math.nan)
