"""The last steps of a run: one direction, another clip norm, the same privacy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import IterationAmplification, PrivacyLoss
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser, Recalibration
from skpuffer.scenarios import RecordScenario
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    OptimiserRun,
    PerceptronGradients,
    RecordGradient,
    run_defaults,
    train,
)
from skpuffer.training._engine import RecalibrationRun
from tests.refused import refused
from tests.training import naive


def last(**changes):
    return Recalibration(**{"n_steps": 4, "clip_norm": 1.2} | changes)


def release_of(n, **changes):
    optimiser = Optimiser(learning_rate=1.0, recalibration=last())
    facts = {"n_steps": 9, "sampling": "full_batch", "clip_norm": 0.3}
    return GradientRelease(n_records=n, **{"optimiser": optimiser} | facts | changes)


def model(n=40, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = rng.integers(n_classes, size=n)
    loss = Logistic() if n_classes == 2 else Multinomial()
    return LinearGradients(loss, X, y, n_classes=n_classes, intercept_scale=0.5)


# -- the state -------------------------------------------------------------------------


@pytest.mark.parametrize("deviation", [0.0, 0.1, 3.0])
def test_slopes_written_out(deviation):
    w, mask = np.array([3.0, 4.0, 1.0]), np.array([True, True, False])
    run = RecalibrationRun(last(), w, mask, 0.3, deviation)
    slopes, grid = [], np.linspace(1.0, 0.2, 4)
    for factor, g in zip(
        grid, np.random.default_rng(0).normal(size=(4, 3)), strict=True
    ):
        np.testing.assert_allclose(run.parameters, factor * w)
        run.step(g)
        slopes.append(g @ w + 0.3 * factor * 25)
    # slopes of a line through them, integrated from a factor to one; each has a noise
    # of its own, which is multiplied by its weight in the integral
    gains = []
    for k in range(4):
        weights = np.zeros(4)
        for i in range(k):
            weights[[i, i + 1]] += (grid[i] - grid[i + 1]) / 2
        gains.append(
            np.dot(weights, slopes)
            - deviation * np.linalg.norm(w) * np.linalg.norm(weights)
        )
    np.testing.assert_allclose(run.result(), grid[np.argmax(gains)] * w)


@given(
    seed=st.integers(0, 99),
    n=st.integers(2, 20),
    shortest=st.floats(0.01, 0.9),
    deviation=st.floats(0, 2),
)
def test_labels_stay_whatever_the_noise(seed, n, shortest, deviation):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=5)
    rule = last(n_steps=n, shortest=shortest)
    run = RecalibrationRun(rule, w, deviation=deviation)
    for _ in range(n):
        run.step(rng.normal(size=5))
    factor = run.result() / w
    np.testing.assert_allclose(factor, factor[0])
    assert shortest - 1e-12 <= factor[0] <= 1 + 1e-12


@given(at=st.floats(0.2, 1.0), curved=st.floats(0.01, 100), n=st.integers(2, 30))
def test_exact_slopes_lead_next_to_their_zero(at, curved, n):
    w = np.array([1.0, -2.0])
    run = RecalibrationRun(last(n_steps=n), w)
    for _ in range(n):
        run.step(curved * (run.parameters - at * w))
    factor = run.result()[0]
    assert abs(factor - at) <= 0.8 / (n - 1) / 2 + 1e-9


def test_noise_alone_changes_nothing_as_a_rule():
    rng, w, changed = np.random.default_rng(0), np.array([3.0, 4.0]), 0
    for _ in range(500):
        run = RecalibrationRun(last(n_steps=8), w, deviation=0.7)
        for _ in range(8):
            run.step(0.7 * rng.normal(size=2))
        changed += bool(np.any(run.result() != w))
    # of sums of normal variables, of which each is above its deviation once in six
    assert 500 / 6 < changed < 500 / 2


def test_where_nothing_is_known_nothing_changes():
    w = np.array([1.0, 2.0])
    np.testing.assert_array_equal(RecalibrationRun(last(), w).result(), w)


def test_a_calibrated_likelihood_is_reached():
    """Scores of twice the length become the log-odds they were made of."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(4000, 1))
    y = rng.random(4000) < 1 / (1 + np.exp(-(3 * X[:, 0] - 1)))
    gradients = LinearGradients(Logistic(), X, y, intercept_scale=1.0)
    run = RecalibrationRun(last(n_steps=17), np.array([6.0, -2.0]))
    release = GradientRelease(
        n_records=4000, n_steps=1, sampling="full_batch", clip_norm=2.0
    )
    for _ in range(17):
        run.step(gradients.clipped_sum(run.parameters, None, release) / 4000)
    np.testing.assert_allclose(run.result(), [3, -1], atol=0.4)


# -- the run ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed, shortens", [(0, True), (1, True), (2, False)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_engine_executes_both_parts(n_classes, seed, shortens):
    gradients = model(n_classes=n_classes)
    release, steps = release_of(40), []
    noise = GaussianNoise(2.0)
    rng = np.random.default_rng
    found = train(gradients, release, noise, rng(seed), record=steps)
    run = OptimiserRun(release.optimiser, np.zeros(gradients.dim), 5)
    for step in steps[:5]:
        sums = naive.clipped_sum(gradients, run.parameters, None, release)
        np.testing.assert_allclose(step.clipped_sum, sums, atol=1e-9)
        run.step((step.clipped_sum + step.noise) / 40)
    start = run.result()
    run = RecalibrationRun(last(), start, gradients.penalised, deviation=2.0 * 4 / 40)
    longer = replace(release, clip_norm=1.2)
    for step in steps[5:]:
        sums = naive.clipped_sum(gradients, run.parameters, None, longer)
        np.testing.assert_allclose(step.clipped_sum, 0.25 * sums, atol=1e-9)
        # the noise of a sum is that of all steps, so it weighs four times as much here
        run.step((step.clipped_sum + step.noise) * 4 / 40)
    np.testing.assert_allclose(found, run.result(), atol=1e-9)
    # or the scale of the last slopes would not show
    if n_classes == 2:
        assert shortens == (np.linalg.norm(found) < 0.9 * np.linalg.norm(start))


@given(seed=st.integers(0, 50), norm=st.floats(0.05, 20), n_classes=st.integers(2, 4))
def test_no_record_moves_a_sum_by_more_than_the_clip_norm(seed, norm, n_classes):
    """At parameters of any size, in each step: what the noise is calibrated to."""
    gradients = model(n=1, n_classes=n_classes, seed=seed)
    optimiser = Optimiser(learning_rate=5.0, recalibration=last(clip_norm=norm))
    release, steps = release_of(1, optimiser=optimiser), []
    rng = np.random.default_rng(seed)
    train(gradients, release, GaussianNoise(3.0), rng, record=steps)
    assert len(steps) == 9
    assert all(np.linalg.norm(step.clipped_sum) <= 0.3 for step in steps)


@pytest.mark.parametrize("share, holds", [(1.0, True), (0.7, False)])
def test_attack_on_the_last_steps(share, holds, n_trials):
    """The best test of one record, by all that a run of such steps makes of it."""
    n, epsilon, delta, trials = 20, 1.0, 1e-2, n_trials(200_000)
    # nothing is moved by a row of zeros: it stands for a record that is not there
    X, y = np.zeros((2, n, 1)), np.zeros(n)
    X[1, 0], y[0] = 1.0, 1.0
    # at zero its gradient is 0.5 long: the last steps clip nothing, and all of it tells
    optimiser = Optimiser(
        learning_rate=1e-9,
        recalibration=last(n_steps=7, clip_norm=0.5),
    )
    release = release_of(n, n_steps=8, optimiser=optimiser)
    accountant = PrivacyLoss(epsilon=epsilon, delta=delta)
    sigma = accountant.calibrate(release, RecordScenario()).noise.scale * share
    sums = []
    for rows in X:
        gradients, steps = LinearGradients(Logistic(), rows, y, intercept_scale=0.0), []
        noise = GaussianNoise(1e-12)
        train(gradients, release, noise, np.random.default_rng(0), record=steps)
        sums.append(np.ravel([step.clipped_sum for step in steps]))
    gap = np.linalg.norm(sums[1] - sums[0])
    assert gap == pytest.approx(0.3 * np.sqrt(8), rel=1e-2)
    unit = (sums[1] - sums[0]) / gap
    draws = np.random.default_rng(1).normal(scale=sigma, size=(2, trials, 8)) @ unit
    # the threshold of the largest hockey stick between two Gaussians
    threshold = gap / 2 + sigma**2 * epsilon / gap
    hits, alarms = np.mean(draws[0] + gap > threshold), np.mean(draws[1] > threshold)
    error = 4 * np.sqrt((hits + np.exp(2 * epsilon) * alarms) / trials)
    assert (hits - np.exp(epsilon) * alarms <= delta + error) == holds


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"n_steps": 4}, Statement("gradient.recalibration_too_many_steps")),
        (
            {"blocks": (3, 1), "clip_norm": (0.2, 0.2)},
            Statement("gradient.recalibration_unsupported", setting="blocks=None"),
        ),
        (
            {"noise_position": "update"},
            Statement(
                "gradient.recalibration_unsupported",
                setting="noise_position='gradient'",
            ),
        ),
        (
            {
                "record": RecordGradient(
                    loss=Logistic(), data_norm=1.0, intercept=0.5, n_classes=2
                )
            },
            Statement("gradient.recalibration_unsupported", setting="record=None"),
        ),
    ],
)
def test_releases_that_state_more_are_refused(changes, said):
    with refused(ValueError, said.code, **said.parameters):
        release_of(40, **changes)


@pytest.mark.parametrize(
    "changes, error, said",
    [
        ({"n_steps": 1}, ValueError, Statement("training.recalibration_steps_too_few")),
        (
            {"clip_norm": 0.0},
            ValueError,
            Statement("parameter.not_positive", name="clip_norm"),
        ),
        (
            {"shortest": 0.0},
            ValueError,
            Statement("parameter.not_positive", name="shortest"),
        ),
        (
            {"shortest": 1.0},
            ValueError,
            Statement("training.recalibration_shortest_out_of_range"),
        ),
        (
            {"shortest": "far"},
            TypeError,
            Statement("parameter.not_real_number", name="shortest"),
        ),
    ],
)
def test_bad_parameters_are_named(changes, error, said):
    with refused(error, said.code, **said.parameters):
        last(**changes)


def test_an_optimiser_refuses_what_is_none_and_a_ball():
    with refused(TypeError, "training.recalibration_wrong_type"):
        Optimiser(learning_rate=1.0, recalibration=5)
    with refused(ValueError, "training.recalibration_with_radius"):
        Optimiser(learning_rate=1.0, radius=1.0, recalibration=last())


def test_a_network_is_not_recalibrated():
    gradients = PerceptronGradients(
        Logistic(), np.zeros((40, 2)), np.zeros(40), n_hidden=2
    )
    with refused(ValueError, "training.recalibration_needs_linear_model"):
        train(gradients, release_of(40), GaussianNoise(1.0), np.random.default_rng(0))


@pytest.mark.parametrize("change", [{"restart": True}, {"recalibration": last()}])
def test_the_last_iterate_is_not_accounted_for(change):
    release = GradientRelease(
        n_records=400,
        n_steps=50,
        sampling="full_batch",
        published="result",
        optimiser=Optimiser(learning_rate=1.0, **change),
    )
    with refused(UnsupportedError, "iteration.restart_or_recalibration"):
        IterationAmplification(epsilon=1.0).calibrate(release, RecordScenario())


# -- the rule --------------------------------------------------------------------------


@given(
    n=st.integers(1, 10**7),
    z=st.floats(1e-3, 1e4),
    p=st.integers(1, 10**4),
    steps=st.none() | st.integers(1, 400),
)
def test_the_rule_recalibrates_where_the_budget_allows(n, z, p, steps):
    facts = {"unclipped_norm": 1.2, "n_parameters": p, "n_steps": steps}
    chosen = run_defaults(n, z, 0.25, **facts)
    late = chosen.recalibration
    allowed = n / z >= max(100, 25 * np.sqrt(p))
    assert (late is not None) == (allowed and (steps is None or steps >= 44))
    plain = run_defaults(n, z, 0.25, n_steps=steps)
    assert plain.recalibration is None
    if late is None:
        assert chosen == plain
        return
    assert late.n_steps == chosen.n_steps // 11
    assert steps in (None, chosen.n_steps)
    # decided once more, it stays the same
    again = run_defaults(n, z, 0.25, **facts | {"n_steps": chosen.n_steps})
    assert again.n_steps == chosen.n_steps
    assert again.recalibration.n_steps == late.n_steps
    assert late.clip_norm == 1.2


@pytest.mark.parametrize("changes", [{"unclipped_norm": 0.0}, {"n_parameters": 0}])
def test_the_rule_names_bad_input(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        run_defaults(400, 1.0, 0.25, **changes)
