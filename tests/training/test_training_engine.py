"""The loop: replayed from its own record, and refused what does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease, Optimiser
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    OptimiserRun,
    PerceptronGradients,
    train,
)
from tests.refused import refused

from .naive import clipped_sum

N = 40


def linear(seed=0, n=N, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return LinearGradients(Logistic(), X, (X[:, 0] > 0).astype(int))


def release_of(scheme="poisson", n_steps=25, **more):
    size = None if scheme == "full_batch" else 6
    return GradientRelease(
        n_records=N, batch_size=size, n_steps=n_steps, sampling=scheme, **more
    )


@pytest.mark.parametrize("scheme", SAMPLING_SCHEMES)
@pytest.mark.parametrize("kind", ["linear", "perceptron"])
def test_a_run_is_replayed_from_its_record(scheme, kind):
    gradients = linear()
    if kind == "perceptron":
        rng = np.random.default_rng(0)
        gradients = PerceptronGradients(
            Multinomial(),
            rng.normal(size=(N, 3)),
            rng.integers(3, size=N),
            n_classes=3,
            n_hidden=4,
        )
    release = release_of(scheme, clip_norm=0.5, dim=gradients.dim)
    optimiser = Optimiser(learning_rate=0.7, momentum=0.5, l2=0.1, average=0.5)
    record = []
    found = train(
        gradients,
        replace(release, optimiser=optimiser),
        GaussianNoise(0.3),
        np.random.default_rng(5),
        record=record,
    )
    assert len(record) == release.n_steps
    start = gradients.initial(np.random.default_rng(5).spawn(1)[0])
    run = OptimiserRun(optimiser, start, release.n_steps, gradients.penalised)
    for step in record:
        total = clipped_sum(gradients, run.parameters, step.index, release)
        np.testing.assert_allclose(step.clipped_sum, total, atol=1e-10)
        run.step((total + step.noise) / release.divisor)
    np.testing.assert_allclose(found, run.result(), atol=1e-9)


@pytest.mark.parametrize("scheme", SAMPLING_SCHEMES)
def test_batches_and_noise_come_from_generators_of_their_own(scheme):
    release, record = release_of(scheme), []
    noise = LaplaceNoise(2.0)
    gradients = linear()
    train(
        gradients,
        replace(release, optimiser=Optimiser(learning_rate=1.0)),
        noise,
        np.random.default_rng(6),
        record=record,
    )
    _, batch_rng, noise_rng = np.random.default_rng(6).spawn(3)
    for step, index in zip(
        record, release.sampling.batches(release, batch_rng), strict=True
    ):
        np.testing.assert_array_equal(step.index, index)
    draws = noise.sample((release.n_steps, gradients.dim), noise_rng)
    np.testing.assert_array_equal([step.noise for step in record], draws)


def test_empty_batches_are_noised():
    gradients, record = linear(), []
    release = GradientRelease(n_records=N, batch_size=1, n_steps=200)
    optimiser = Optimiser(learning_rate=1.0)
    train(
        gradients,
        replace(release, optimiser=optimiser),
        GaussianNoise(1.0),
        np.random.default_rng(7),
        record=record,
    )
    empty = [step for step in record if len(step.index) == 0]
    assert len(empty) > 30
    for step in empty:
        np.testing.assert_array_equal(step.clipped_sum, 0)
        assert np.all(step.noise != 0)


def test_noise_is_fresh_at_each_step_and_of_its_law():
    record = []
    gradients = linear(d=50)
    train(
        gradients,
        replace(release_of(n_steps=300), optimiser=Optimiser(learning_rate=1.0)),
        GaussianNoise(3.0),
        np.random.default_rng(8),
        record=record,
    )
    noise = np.stack([step.noise for step in record])
    assert len(np.unique(noise)) == noise.size
    assert abs(noise.std() - 3) < 5 * 3 / np.sqrt(2 * noise.size)
    assert np.abs(np.corrcoef(noise) - np.eye(300)).max() < 7 / np.sqrt(51)


@pytest.mark.parametrize("block", [1, 7, 2**12])
def test_how_many_draws_are_made_at_once_changes_nothing(block, monkeypatch):
    usual, sample, drawn = run(), GaussianNoise.sample, []

    def counted(noise, shape, rng):
        drawn.append(shape[0])
        return sample(noise, shape, rng)

    monkeypatch.setattr("skpuffer.kernel.run._NOISE_BLOCK", block)
    monkeypatch.setattr(GaussianNoise, "sample", counted)
    np.testing.assert_array_equal(run(), usual)
    # for the 25 steps of 4 parameters alone, and never more of them than a block holds
    assert sum(drawn) == 25
    assert max(drawn) <= max(1, block // 4)


def run(seed=9, **more):
    return train(
        linear(),
        replace(release_of(), optimiser=Optimiser(learning_rate=0.5)),
        GaussianNoise(1.0),
        np.random.default_rng(seed),
        **more,
    )


def test_a_seed_fixes_the_run_and_a_second_run_differs():
    np.testing.assert_array_equal(run(), run())
    rng = np.random.default_rng(9)
    release = release_of(optimiser=Optimiser(learning_rate=0.5))
    arguments = linear(), release, GaussianNoise(1.0)
    one, two = (train(*arguments, rng) for _ in range(2))
    np.testing.assert_array_equal(one, run())
    assert not np.array_equal(one, two)


def test_the_global_state_is_not_touched():
    before = np.random.get_state()  # noqa: NPY002
    run()
    after = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2] == after[2]


def test_without_noise_it_is_gradient_descent():
    gradients = linear(n=N)
    release = release_of("full_batch", n_steps=2000, clip_norm=1e6)
    w = train(
        gradients,
        replace(release, optimiser=Optimiser(learning_rate=1.0, l2=0.05)),
        GaussianNoise(0.0),
        np.random.default_rng(0),
    )
    slope = gradients.clipped_sum(w, None, release) / N + 0.05 * w * gradients.penalised
    np.testing.assert_allclose(slope, 0, atol=1e-9)


def test_a_start_is_taken():
    start = np.array([1.0, 2.0, 3.0, 4.0])
    release = release_of(n_steps=1)
    record = []
    found = train(
        linear(),
        replace(release, optimiser=Optimiser(learning_rate=1e-9)),
        GaussianNoise(1.0),
        np.random.default_rng(0),
        initial=start,
        record=record,
    )
    np.testing.assert_allclose(found, start, atol=1e-6)


@pytest.mark.parametrize("start", [np.zeros(3), np.full(4, np.nan)])
def test_a_start_that_does_not_fit_is_refused(start):
    with refused(ValueError, "training.initial_invalid", dim=4):
        run(initial=start)


def test_a_release_of_others_is_refused():
    rng, noise = np.random.default_rng(0), GaussianNoise(1.0)
    step = Optimiser(learning_rate=1.0)
    for n in (N - 1, N + 1):
        other = GradientRelease(n_records=n, batch_size=5, n_steps=3, optimiser=step)
        match = f"{n} records, but the gradients are of 40"
        with pytest.raises(ValueError, match=match):
            train(linear(), other, noise, rng)
    with refused(ValueError, "training.dimension_differs", name="release", dim=7):
        train(linear(), release_of(dim=7, optimiser=step), noise, rng)
    with refused(ValueError, "training.dimension_differs", name="noise", dim=2):
        train(linear(), release_of(optimiser=step), GaussianNoise((1.0, 1.0)), rng)
    apart = release_of(blocks=(1, 3), clip_norm=(1.0, 1.0), optimiser=step)
    with refused(ValueError, "gradient.release_blocks_differ"):
        train(linear(), apart, noise, rng)
    with refused(ValueError, "training.optimiser_missing"):
        train(linear(), release_of(), noise, rng)


def test_overflow_is_said():
    with refused(ValueError, "training.parameters_overflowed"):
        train(
            linear(),
            replace(release_of(n_steps=100), optimiser=Optimiser(learning_rate=1e300)),
            GaussianNoise(1e10),
            np.random.default_rng(0),
        )


def test_huge_features_still_train():
    X = np.array([[1e200, -1e200], [-1e200, 1e200], [1.0, 0.0], [0.0, 0.0]] * 10)
    gradients = LinearGradients(Logistic(), X, np.array([1, 0, 1, 0] * 10))
    w = train(
        gradients,
        replace(release_of(), optimiser=Optimiser(learning_rate=1.0)),
        GaussianNoise(0.1),
        np.random.default_rng(0),
    )
    assert np.all(np.isfinite(w))
    assert w[0] > 0 > w[1]


def test_progress_is_shown_on_request(capsys):
    pytest.importorskip("tqdm")
    silent = run()
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(run(verbose=True), silent)
    assert "25/25" in capsys.readouterr().err
