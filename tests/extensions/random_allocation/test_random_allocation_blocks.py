"""Bounds by independent blocks of bins: not below what they bound."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.extensions.random_allocation.loss._bins import Bins
from skpuffer.extensions.random_allocation.loss._blocks import (
    Blocks,
    block_law,
    block_plan,
    blocks_of,
)
from skpuffer.extensions.random_allocation.loss._chain import delta_of_law
from skpuffer.noise.strategies import (
    banded_inverse_square_root,
    banded_square_root,
    identity,
)
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss.allocation import CorrelatedAllocationPair
from tests.allocation import divergence

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "allocation_chain.json").read_text("utf-8")
)
DIRECTIONS = ("remove", "add")


def pair_of(strategy, n_batches, n_steps, sigma, method="blocks"):
    curve = GaussianCurve(1 / sigma)
    return CorrelatedAllocationPair(curve, strategy, n_batches, n_steps, method=method)


def bound(blocks, epsilon, direction, nodes=48, points=2**11):
    """Bound of one direction at one epsilon."""
    adding = direction == "add"
    reach = math.exp(-epsilon if adding else epsilon)
    law = block_law(blocks, reach, nodes, points)
    return float(delta_of_law(law, np.array([epsilon]), adding)[0])


def gram_of(blocks):
    """Gram matrix of the bins of blocks that are side by side."""
    block = np.full((blocks.size, blocks.size), blocks.common)
    block += blocks.own * np.eye(blocks.size)
    return np.kron(np.eye(blocks.number), block)


# -- numbers found elsewhere -----------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["blocks"], ids=str)
def test_reference_noise_that_is_enough(row):
    strategy, epsilon = banded_square_root(4), np.array([row["epsilon"]])
    found = pair_of(strategy, 100, 100, row["sigma"]).delta(epsilon)[0]
    # the noise is given to three decimals
    assert 0.97e-5 < found < 1.003e-5
    plan = block_plan(Bins(strategy, 100, 100), row["sigma"] ** 2, *epsilon, False)
    assert plan.size == row["size"]


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["independent"], ids=str)
def test_reference_independent_noise_is_exact_from_above(row):
    n_batches, epsilon = row["n_batches"], np.array([row["epsilon"]])
    pair = pair_of(identity(), n_batches, n_batches, row["sigma"])
    for direction, found in zip(DIRECTIONS, (pair.delta, pair.reverse), strict=True):
        # the references have six digits, and 1e-10 is the least that is certified
        assert row[direction] * (1 - 1e-5) < found(epsilon)[0]
        assert found(epsilon)[0] < row[direction] * (1 + 1e-4) + 2e-10


# -- properties ------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)]),
    st.floats(0.01, 2.0),
    st.floats(0.01, 1.5),
    st.floats(0, 2.5),
)
def test_no_bound_is_below_a_quadrature(shape, common, own, epsilon):
    blocks = Blocks(*shape, common, own)
    for direction in DIRECTIONS:
        gram = gram_of(blocks)
        if len(gram) == 1:
            exact = GaussianCurve(math.sqrt(gram[0, 0])).delta(epsilon)
        else:
            exact = divergence(gram, epsilon, direction, points=301)
        found = bound(blocks, epsilon, direction)
        assert exact - 1e-8 <= found <= 1.1 * exact + 1e-5
        # every grid is a bound, and coarse ones are looser
        assert bound(blocks, epsilon, direction, nodes=12, points=256) >= exact - 1e-8


@settings(max_examples=8, deadline=None)
@given(st.floats(0.05, 1.5), st.floats(0.05, 1.0), st.floats(0.0, 0.5))
def test_more_in_common_and_more_noise_of_ones_own_cost_more(common, own, more):
    for direction in DIRECTIONS:
        found = bound(Blocks(5, 3, common, own), 0.7, direction)
        assert bound(Blocks(5, 3, common + more, own), 0.7, direction) >= 0.99 * found
        assert bound(Blocks(5, 3, common, own + more), 0.7, direction) >= 0.99 * found


def test_blocks_are_looser_than_chains_mostly():
    epsilon = np.array([0.8])
    for strategy in (banded_square_root(3), banded_inverse_square_root(3)):
        chain = pair_of(strategy, 20, 20, 2.0, method="chain")
        blocks = pair_of(strategy, 20, 20, 2.0)
        assert chain.delta(epsilon) < blocks.delta(epsilon) < 0.1
        assert chain.reverse(epsilon) < blocks.reverse(epsilon) < 0.1
        assert blocks.winner(0.8) == {"remove": "blocks", "add": "blocks"}
    # not where a window leaves out more bins than blocks do
    pairs = [pair_of(banded_square_root(3), 20, 40, 3.0, m) for m in ("chain", "best")]
    assert pairs[1].reverse(epsilon) < 0.8 * pairs[0].reverse(epsilon)
    assert pairs[1].winner(0.8)["add"] == "blocks"


def test_many_epsilons_are_those_of_one():
    pair, epsilon = pair_of(banded_square_root(2), 30, 30, 1.5), np.array([0.2, 0.9])
    for found in (pair.delta, pair.reverse):
        single = [found(np.array([e]))[0] for e in epsilon]
        assert found(epsilon) == pytest.approx(single, rel=0.02)


def test_blocks_leave_out_what_they_have_in_common():
    gram = np.eye(12) + 0.5 * (np.eye(12, k=1) + np.eye(12, k=-1))
    found = blocks_of(gram)
    assert Blocks(6, 1, 0.0, 1.0) in found
    assert Blocks(4, 2, 0.5, 0.5) in found
    assert found[-1] == Blocks(1, 12, 0.5, 0.5)
    # the first and the last bin are neighbours in the run's next epoch
    gram[0, -1] = gram[-1, 0] = 0.7
    assert Blocks(4, 2, 0.7, 1.0 - 0.7) in blocks_of(gram)


def test_terms_without_noise_of_their_own():
    blocks = Blocks(1, 3, 0.8, 0.0)
    exact = GaussianCurve(math.sqrt(0.8)).delta(0.5)
    for direction in DIRECTIONS:
        assert exact <= bound(blocks, 0.5, direction) < 1.02 * exact


def test_a_replaced_record_is_as_one_whose_bin_is_known():
    curve, epsilon = GaussianCurve(0.5), np.array([0.5])
    both = [
        CorrelatedAllocationPair(
            curve, banded_square_root(2), 9, 9, replaced=True, method=method
        ).delta(epsilon)
        for method in ("blocks", "unamplified")
    ]
    assert both[0] == both[1]


# -- what would be no bound ------------------------------------------------------------


def test_pitfall_blocks_side_by_side_are_not_independent():
    gram = np.eye(3) + 0.6 * (np.eye(3, k=1) + np.eye(3, k=-1))
    exact = divergence(gram, 1.0, "remove")
    assert bound(Blocks(3, 1, 0.0, 1.0), 1.0, "remove") < exact
    assert bound(blocks_of(gram)[-1], 1.0, "remove") > exact
