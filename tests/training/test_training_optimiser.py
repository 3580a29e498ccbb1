"""The optimiser's algebra, against the formulas written out."""

import math

import numpy as np
import pytest

from skpuffer.exceptions import Statement
from skpuffer.releases import Optimiser
from skpuffer.training import OptimiserRun
from skpuffer.training._engine import SCHEDULES
from tests.refused import refused

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


@pytest.mark.parametrize("average", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_noise_on_updates_hides_the_gradient_of_its_step(schedule, l2, average):
    """One that moves as the noise moves back leaves the same behind, at any step."""
    optimiser = Optimiser(learning_rate=0.3, schedule=schedule, l2=l2, average=average)
    draws = np.random.default_rng(1).normal(size=GRADIENTS.shape)
    rates = np.array(optimiser.step_sizes(len(GRADIENTS)))

    def left(gradients, draws):
        state = OptimiserRun(optimiser, START, len(gradients))
        path = [state.step(*both) for both in zip(gradients, draws, strict=True)]
        return np.array([*path, state.result()])

    for step, rate in enumerate(rates):
        gradients, other = GRADIENTS.copy(), draws.copy()
        gradients[step] += 7.0
        other[step] += 7.0 * rate / (1 + rate * l2)
        np.testing.assert_allclose(left(gradients, other), left(GRADIENTS, draws))


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
    "parameters, said",
    [
        ({"learning_rate": 0.0}, Statement("training.learning_rate_out_of_range")),
        (
            {"learning_rate": math.nan},
            Statement("parameter.is_nan", name="learning_rate"),
        ),
        ({"learning_rate": math.inf}, Statement("training.learning_rate_out_of_range")),
        (
            {"learning_rate": 1.0, "schedule": "adaptive"},
            Statement("parameter.option_unknown", name="schedule"),
        ),
        (
            {"learning_rate": 1.0, "momentum": 1.0},
            Statement("training.momentum_out_of_range"),
        ),
        (
            {"learning_rate": 1.0, "momentum": -0.1},
            Statement("training.momentum_out_of_range"),
        ),
        (
            {"learning_rate": 1.0, "average": 1.1},
            Statement("training.average_out_of_range"),
        ),
        (
            {"learning_rate": 1.0, "l2": -1.0},
            Statement("parameter.is_negative", name="l2"),
        ),
        (
            {"learning_rate": 1.0, "radius": 0.0},
            Statement("parameter.not_positive", name="radius"),
        ),
    ],
)
def test_bad_parameters_are_named(parameters, said):
    with refused(ValueError, said.code, **said.parameters):
        Optimiser(**parameters)


def distances(optimiser, curvatures, n_steps, penalised=None, seed=0):
    """By what each step multiplies the distance of two runs on one quadratic loss."""
    rng = np.random.default_rng(seed)
    runs = [
        OptimiserRun(optimiser, rng.normal(size=len(curvatures)), n_steps, penalised)
        for _ in range(2)
    ]
    apart = [np.linalg.norm(runs[0].parameters - runs[1].parameters)]
    for _ in range(n_steps):
        noise = rng.normal(size=len(curvatures))  # the same for both
        ends = [run.step(curvatures * run.parameters + noise) for run in runs]
        apart.append(np.linalg.norm(ends[0] - ends[1]))
    return np.array(apart[1:]) / apart[:-1]


@pytest.mark.parametrize("rate", [0.1, 0.4, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_step_carries_two_runs_further_apart(rate, l2, radius, schedule):
    optimiser = Optimiser(learning_rate=rate, l2=l2, radius=radius, schedule=schedule)
    bounds = optimiser.contractions(4, smoothness=2.0)
    for seed in range(20):
        found = distances(optimiser, np.array([0.0, 1.0, 2.0]), 4, seed=seed)
        assert np.all(found <= np.array(bounds) * (1 + 1e-12))
    # attained: by a flat direction, or by the one of the largest curvature
    if radius is None:
        ends = [distances(optimiser, np.array([along]), 4) for along in (0.0, 2.0)]
        np.testing.assert_allclose(np.maximum(*ends), bounds, rtol=1e-9)


def test_what_is_not_penalised_need_not_contract():
    optimiser = Optimiser(learning_rate=0.5, l2=1.0)
    penalised = np.array([True, False])
    found = distances(optimiser, np.zeros(2), 3, penalised)
    assert max(optimiser.contractions(3, 1.0)) < max(found) <= 1
    assert optimiser.contractions(3, 1.0, all_penalised=False) == [1.0] * 3


def test_no_contraction_is_claimed_without_grounds():
    assert Optimiser(learning_rate=0.1, momentum=0.5).contractions(2, 1.0) == (
        [math.inf] * 2
    )
    assert Optimiser(learning_rate=0.1).contractions(2, math.inf) == [math.inf] * 2
    for smoothness in (-1.0, math.nan):
        with refused(ValueError, ("parameter.is_nan", "parameter.is_negative")):
            Optimiser(learning_rate=0.1).contractions(2, smoothness)


def test_a_restart_forgets_what_a_gradient_turns_against():
    mask = np.array([True, True, False])
    path, _ = run(learning_rate=0.1, momentum=0.9, restart=True, penalised=mask)
    w, v = START, np.zeros(3)
    for found, g in zip(path, GRADIENTS, strict=True):
        v = np.where(~mask & (v * g < 0), 0, v)
        v = 0.9 * v + g
        w = w - 0.1 * v
        np.testing.assert_allclose(found, w)


def test_an_intercept_goes_no_further_past_its_place():
    """A weight swings around the minimum; what restarts is there in the first pass."""
    far = {}
    for restart in (False, True):
        optimiser = Optimiser(learning_rate=1.0, momentum=0.95, restart=restart)
        mask = np.array([False])
        state = OptimiserRun(optimiser, np.zeros(1), 200, mask)
        passed = [state.step(0.25 * (state.parameters + 4)) for _ in range(200)]
        far[restart] = -4 - np.min(passed)
    assert far[True] < 0.3 * far[False]
