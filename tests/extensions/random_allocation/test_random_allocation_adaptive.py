"""Gradients that depend on what was released: never worse than aligned constant ones.

Two bins and two steps, of which the second one's noise has a part of the first one's.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "allocation_chain.json").read_text("utf-8")
)["aligned"]
#: Both releases without the record, in deviations of the noise, and their masses.
AXIS = np.linspace(-7.5, 7.5, 241)
MASSES = np.exp(-(AXIS**2) / 2)
MASSES /= MASSES.sum()
GRADIENTS = np.linspace(-1.0, 1.0, 9)


def ratio(sigma, share, first, second):
    """Likelihood ratio of the record's presence, by both releases.

    The record has the gradient `first` if it is in the first bin, and in the second one
    `second`, which may be an array that depends on the first release.
    """
    before, after = AXIS[:, np.newaxis], AXIS[np.newaxis, :]
    moved = first * before + share * first * after
    early = np.exp(moved / sigma - (1 + share**2) * first**2 / (2 * sigma**2))
    late = np.exp(second * after / sigma - second**2 / (2 * sigma**2))
    return (early + late) / 2


def payoff(direction, factor, one, other=None):
    """What is averaged: the first law's excess over the second."""
    if direction == "remove":
        return np.maximum(one - factor, 0.0)
    if direction == "add":
        return np.maximum(1 - factor * one, 0.0)
    return np.maximum(one - factor * other, 0.0)


def aligned(sigma, share, factor, direction):
    """Divergence of constant gradients of full length."""
    one = ratio(sigma, share, 1.0, 1.0)
    other = ratio(sigma, share, -1.0, -1.0)
    return MASSES @ payoff(direction, factor, one, other) @ MASSES


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES, ids=str)
def test_reference_aligned_gradients(row):
    factor = np.exp(row["epsilon"])
    for direction in ("remove", "add", "replace"):
        found = aligned(row["sigma"], row["share"], factor, direction)
        assert found == pytest.approx(row[direction], abs=5e-5)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES, ids=str)
@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_the_worst_answer_to_each_release_is_the_aligned_one(row, direction):
    sigma, share, factor = row["sigma"], row["share"], np.exp(row["epsilon"])
    # the mean over the second release, for each first one and each answer to it
    answers = {g: ratio(sigma, share, 1.0, g) for g in GRADIENTS}
    if direction == "replace":
        others = {g: ratio(sigma, share, -1.0, g) for g in GRADIENTS}
        inner = [
            payoff(direction, factor, one, other) @ MASSES
            for one in answers.values()
            for other in others.values()
        ]
    else:
        inner = [payoff(direction, factor, one) @ MASSES for one in answers.values()]
    # no strategy does better than the best answer to each release
    worst = MASSES @ np.max(inner, axis=0)
    assert worst <= aligned(sigma, share, factor, direction) * (1 + 1e-5)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    st.floats(-1, 1),
    st.floats(0.7, 2.0),
    st.floats(0, 1),
    st.floats(0, 1.5),
)
def test_no_strategy_exceeds_the_aligned_one(knots, first, sigma, share, epsilon):
    factor = np.exp(epsilon)
    answer = np.interp(AXIS, [-2, -0.5, 0.5, 2], knots)[:, np.newaxis]
    one = ratio(sigma, share, first, answer)
    other = ratio(sigma, share, -first, -answer[::-1])
    for direction in ("remove", "add", "replace"):
        found = MASSES @ payoff(direction, factor, one, other) @ MASSES
        assert found <= aligned(sigma, share, factor, direction) * (1 + 1e-5) + 1e-9


def test_pitfall_signed_entries_are_not_the_worst():
    # noise taken off again: with the entry's sign the bound would be too small
    found = aligned(1.0, -0.5, np.exp(0.7), "remove")
    opposed = ratio(1.0, -0.5, 1.0, -1.0)
    reached = MASSES @ payoff("remove", np.exp(0.7), opposed) @ MASSES
    assert found == pytest.approx(0.09939, abs=5e-5)
    assert reached == pytest.approx(0.15986, abs=5e-5)
    assert reached == pytest.approx(aligned(1.0, 0.5, np.exp(0.7), "remove"), abs=1e-6)
