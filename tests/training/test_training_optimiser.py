"""The optimiser's algebra, against the formulas written out."""

import math

import numpy as np
import pytest

from skpuffer.releases import Optimiser
from skpuffer.releases._optimiser import SCHEDULES
from skpuffer.training import OptimiserRun

GRADIENTS = np.random.default_rng(0).normal(size=(12, 3))
START = np.array([0.5, -1.0, 2.0])


def run(start=START, penalised=None, **parameters):
    state = OptimiserRun(Optimiser(**parameters), start, len(GRADIENTS), penalised)
    return [state.step(gradient) for gradient in GRADIENTS], state


def test_plain_descent():
    path, state = run(learning_rate=0.1)
    np.testing.assert_allclose(path, START - 0.1 * np.cumsum(GRADIENTS, axis=0))
    np.testing.assert_array_equal(state.result(), path[-1])


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(nesterov):
    path, _ = run(learning_rate=0.1, momentum=0.9, nesterov=nesterov)
    w, v = START, 0
    for found, g in zip(path, GRADIENTS, strict=True):
        v = 0.9 * v + g
        w = w - 0.1 * (g + 0.9 * v if nesterov else v)
        np.testing.assert_allclose(found, w)


@pytest.mark.parametrize(
    "schedule, factor",
    [
        ("constant", lambda t: 1),
        ("invscaling", lambda t: (t + 1) ** -0.5),
        ("linear", lambda t: 1 - t / 12),
        ("cosine", lambda t: (1 + math.cos(math.pi * t / 12)) / 2),
    ],
)
def test_schedules(schedule, factor):
    path, _ = run(learning_rate=2.0, schedule=schedule)
    steps = -np.diff(np.vstack([START, path]), axis=0)
    rates = np.array([2 * factor(t) for t in range(12)])
    np.testing.assert_allclose(steps, rates[:, None] * GRADIENTS, rtol=1e-9)
    assert schedule in SCHEDULES


@pytest.mark.parametrize(
    "average, kept", [(0.0, 1), (False, 1), (0.01, 1), (0.25, 3), (0.3, 4), (1, 12)]
)
def test_average_of_the_last_iterates(average, kept):
    path, state = run(learning_rate=0.1, average=average)
    np.testing.assert_allclose(state.result(), np.mean(path[-kept:], axis=0))


def test_penalty_is_of_the_penalised_only():
    mask = np.array([True, True, False])
    path, _ = run(learning_rate=0.1, l2=0.5, penalised=mask)
    expected = (START - 0.1 * GRADIENTS[0]) / (1 + 0.1 * 0.5 * mask)
    np.testing.assert_allclose(path[0], expected)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("l2", [0.1, 1e3, 1e9])
def test_a_penalty_is_met_whatever_its_strength(l2, nesterov, momentum):
    optimiser = Optimiser(
        learning_rate=0.1, momentum=momentum, nesterov=nesterov, l2=l2
    )
    target = np.array([1.0, -2.0])
    state = OptimiserRun(optimiser, np.zeros(2), n_steps=4000)
    for _ in range(4000):
        state.step(state.parameters - target)  # of |w - target|² / 2
    np.testing.assert_allclose(state.result(), target / (1 + l2), rtol=1e-6)


def test_projection_onto_the_ball():
    path, state = run(learning_rate=1.0, radius=1.5, average=0.5)
    lengths = np.linalg.norm(path, axis=1)
    assert lengths.max() <= 1.5 * (1 + 1e-12)
    assert np.isclose(lengths, 1.5).any()
    assert np.linalg.norm(state.result()) <= 1.5
    first = START / np.linalg.norm(START) * 1.5 - GRADIENTS[0]
    np.testing.assert_allclose(
        path[0], first * min(1, 1.5 / np.linalg.norm(first)), rtol=1e-12
    )


def test_nothing_given_is_changed():
    start, gradient = START.copy(), GRADIENTS[0].copy()
    state = OptimiserRun(Optimiser(learning_rate=1.0, momentum=0.5, l2=1.0), start, 2)
    one = state.step(gradient)
    kept = one.copy()
    state.step(gradient)
    np.testing.assert_array_equal(start, START)
    np.testing.assert_array_equal(gradient, GRADIENTS[0])
    np.testing.assert_array_equal(one, kept)


@pytest.mark.parametrize(
    "parameters, name",
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"learning_rate": math.inf}, "learning_rate"),
        ({"learning_rate": 1.0, "schedule": "adaptive"}, "schedule"),
        ({"learning_rate": 1.0, "momentum": 1.0}, "momentum"),
        ({"learning_rate": 1.0, "momentum": -0.1}, "momentum"),
        ({"learning_rate": 1.0, "average": 1.1}, "average"),
        ({"learning_rate": 1.0, "l2": -1.0}, "l2"),
        ({"learning_rate": 1.0, "radius": 0.0}, "radius"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        Optimiser(**parameters)
