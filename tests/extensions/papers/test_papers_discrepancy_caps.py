"""Published caps and costs of sliced runs: their numbers, and that they are no less."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from skpuffer.exceptions import Statement
from skpuffer.papers import (
    group_privacy_costs,
    layer_caps,
    mismatch_mean_square,
    monte_carlo_caps,
    realised_mean_square,
    sliced_variance,
    tail_cap,
    tail_route_epsilon,
)
from tests.refused import refused

DRAWS = np.repeat([0, 1, 2, 3, 4], [5000, 3000, 1500, 450, 50])


def test_caps_of_ten_thousand_draws():
    found = monte_carlo_caps(DRAWS, 20, tail=0.05)
    assert found.slack == pytest.approx(0.0135810152, rel=1e-8)
    assert found.mean_square == pytest.approx(6.8174060630, rel=1e-9)
    assert found.confidence == pytest.approx(0.95)
    tails = [monte_carlo_caps(DRAWS, 20, tail=t).tail for t in (0.05, 0.02, 0.01)]
    assert tails == [3, 3, 20]
    several = monte_carlo_caps(DRAWS, 20, tail=0.05, n_instances=20)
    assert several.slack == pytest.approx(0.0182819744, rel=1e-8)


def test_the_worst_of_several_pairs_counts():
    both = np.array([DRAWS, np.minimum(DRAWS, 1)])
    assert monte_carlo_caps(both, 20, tail=0.05) == monte_carlo_caps(
        DRAWS, 20, tail=0.05
    )
    # never more than a batch can hold
    assert monte_carlo_caps([2, 2, 2], 2, tail=0.5).mean_square == 4


def test_caps_hold_as_often_as_they_say():
    rng, size, chance = np.random.default_rng(0), 10, 0.2
    mean = mismatch_mean_square(size, chance)
    held = 0
    for _ in range(200):
        found = monte_carlo_caps(
            rng.binomial(size, chance, 400), size, tail=0.2, failure=0.2
        )
        held += found.mean_square >= mean and binom.sf(found.tail, size, chance) <= 0.2
    assert held >= 160


@pytest.mark.parametrize(
    "size, chance, tail, bound, exact",
    [(20, 0.1, 0.01, 8.7861404244, 6), (512, 4e-4, 1e-5, 54.4939233953, 4)],
)
def test_tails_of_independent_mismatches(size, chance, tail, bound, exact):
    assert tail_cap(size, chance, tail, exact=False) == pytest.approx(bound, rel=1e-10)
    assert tail_cap(size, chance, tail) == exact


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.floats(0.001, 0.999), st.floats(1e-9, 0.5))
def test_a_tail_cap_is_exceeded_no_more_often(size, chance, tail):
    exact = tail_cap(size, chance, tail)
    assert binom.sf(exact, size, chance) <= tail * (1 + 1e-9)
    assert exact <= tail_cap(size, chance, tail, exact=False) + 1


@pytest.mark.parametrize(
    "n, size, chance, different, again",
    [(100, 20, 0.1, 5.8, 6.142), (10, 8, 0.3, 7.44, 8.616)],
)
def test_mean_squares_of_independent_mismatches(n, size, chance, different, again):
    assert mismatch_mean_square(size, chance) == pytest.approx(different)
    assert mismatch_mean_square(size, chance, n) == pytest.approx(again)
    rng = np.random.default_rng(0)
    differs = rng.random((40_000, n)) < chance
    drawn = rng.integers(n, size=(40_000, size))
    count = np.take_along_axis(differs, drawn, axis=1).sum(axis=1)
    assert np.mean(count**2) == pytest.approx(again, rel=0.03)


def test_shares_of_batches_of_any_size():
    found = realised_mean_square(100, 10, 0.2)
    assert found == pytest.approx(0.0138372642, rel=1e-8)
    found = realised_mean_square(20, 1, 0.1)
    assert found == pytest.approx(0.0253386444, rel=1e-8)
    assert binom.sf(0, 20, 0.1) == pytest.approx(0.8784233454)


def test_a_route_by_tails():
    found = tail_route_epsilon(1.0, 16.0, 1e-5, 1e-6)
    assert found == pytest.approx(1.7745523987, rel=1e-10)
    with refused(ValueError, "papers.delta_below_exceeded"):
        tail_route_epsilon(1.0, 16.0, 1e-5, 1e-5)


def test_variances_of_two_steps_and_two_slices():
    caps, options = [[1, 4], [2, 2]], {"slice_weights": [0.25, 0.75]}
    found = {
        bound: sliced_variance(caps, 2.0, 4.0, bound=bound, **options)
        for bound in ("averaged", "joint", "exact")
    }
    assert found["averaged"] == pytest.approx(5.25)
    assert found["joint"] == pytest.approx(6)
    assert found["exact"] == pytest.approx(5.7385974120, rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=1, max_size=4
    ),
    st.floats(1.1, 20),
)
@example([[0.0, 0.0, 5e-324]], 2.0)
@example([[0.0, 0.0, 5e-323]], 2.0)
def test_variances_are_in_order(caps, alpha):
    averaged, exact, joint = (
        sliced_variance(caps, 1.0, alpha, bound=bound)
        for bound in ("averaged", "exact", "joint")
    )
    assert averaged <= exact * (1 + 1e-9) + 1e-300
    assert exact <= joint * (1 + 1e-9)


def test_caps_of_layers_fill_the_ball():
    """Over all directions the largest is that of the whole vector."""
    angles = np.linspace(0, 2 * math.pi, 721)
    around = np.column_stack([np.cos(angles), np.sin(angles)])
    caps = layer_caps(around, (1, 1), (1.0, 2.0), factor=0.3)
    assert caps.max() == pytest.approx(0.3**2 * 5, rel=1e-4)
    assert caps.max() <= 0.3**2 * 5 * (1 + 1e-12)
    assert caps.min() == pytest.approx(0.3**2)


def test_layers_in_proportion_to_their_noise():
    """Noise of each layer in proportion to its clip norm, scaled to one share of them.

    Every layer then costs what the whole was to cost: as many times too much as there
    are layers.
    """
    clips, base = np.array([0.5, 1.0, 2.0]), 1.7
    by_layer = base * clips / np.linalg.norm(clips)
    claimed = np.sum(clips**2) / base**2
    assert np.sum((clips / by_layer) ** 2) == pytest.approx(3 * claimed)


def test_baselines_of_groups():
    one = group_privacy_costs(2.0, 0.2, 1, 8.0)
    assert one.subsampled == pytest.approx(0.0649519515, rel=1e-7)
    assert one.converted == one.subsampled
    ten = group_privacy_costs(5.0, 0.2, 10, 8.0)
    assert ten.naive == pytest.approx(16)
    assert ten.subsampled == pytest.approx(1.4878352305, rel=1e-7)
    # sixteen are reached by four doublings
    assert ten.converted == group_privacy_costs(5.0, 0.2, 16, 8.0).converted
    assert ten.converted >= ten.subsampled
    steps = group_privacy_costs(5.0, 0.2, 10, 8.0, n_steps=7)
    assert np.divide(steps, ten) == pytest.approx(7)


@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: monte_carlo_caps([21], 20, tail=0.1),
            Statement("papers.draws_out_of_range"),
        ),
        (
            lambda: monte_carlo_caps([], 20, tail=0.1),
            Statement("papers.draws_out_of_range"),
        ),
        (
            lambda: monte_carlo_caps([-1], 20, tail=0.1),
            Statement("papers.draws_out_of_range"),
        ),
        (
            lambda: monte_carlo_caps([1], 20, tail=0.0),
            Statement("parameter.probability_out_of_range", name="tail"),
        ),
        (
            lambda: monte_carlo_caps([1], 20, tail=0.1, failure=1.0),
            Statement("parameter.probability_out_of_range", name="failure"),
        ),
        (
            lambda: tail_cap(0, 0.1, 0.1),
            Statement("parameter.count_too_small", name="batch_size"),
        ),
        (
            lambda: tail_cap(10, 1.5, 0.1),
            Statement("parameter.probability_out_of_range", name="chance"),
        ),
        (
            lambda: mismatch_mean_square(10, 0.1, 0),
            Statement("parameter.count_too_small", name="n_records"),
        ),
        (
            lambda: realised_mean_square(3, 4, 0.1),
            Statement("papers.count_exceeds_records"),
        ),
        (
            lambda: tail_route_epsilon(-1.0, 2.0, 0.1, 0.01),
            Statement("parameter.not_positive", name="epsilon"),
        ),
        (
            lambda: sliced_variance([1.0], 1.0, 2.0),
            Statement("papers.caps_shape_wrong"),
        ),
        (
            lambda: sliced_variance([[-1.0]], 1.0, 2.0),
            Statement("papers.caps_shape_wrong"),
        ),
        (
            lambda: sliced_variance([[1.0]], 1.0, 1.0),
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
        (
            lambda: sliced_variance([[1.0]], 1.0, 2.0, bound="all"),
            Statement("parameter.option_unknown", name="bound"),
        ),
        (
            lambda: sliced_variance([[1.0]], 1.0, 2.0, slice_weights=[0.5]),
            Statement("parameter.masses_not_sum_one", name="slice_weights"),
        ),
        (
            lambda: group_privacy_costs(1.0, 0.1, 2, 1.5),
            Statement("papers.group_order_below_two"),
        ),
        (
            lambda: group_privacy_costs(0.0, 0.1, 2, 2.0),
            Statement("parameter.not_positive", name="scale"),
        ),
        (
            lambda: group_privacy_costs(1.0, 0.1, 2.5, 2.0),
            Statement("parameter.count_too_small", name="count"),
        ),
    ],
)
def test_what_is_refused(call, said):
    with refused((ValueError, TypeError), said.code, **said.parameters):
        call()
