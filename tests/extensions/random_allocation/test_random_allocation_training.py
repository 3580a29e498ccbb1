"""Noise that is correlated across the steps of a run, as the engine adds it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.noise.strategies import (
    BandedRows,
    BufferedToeplitz,
    Toeplitz,
    banded_inverse_square_root,
    banded_square_root,
    identity,
    prefix_sum_tree,
    restarted,
)
from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease, Optimiser
from skpuffer.training import LinearGradients, Logistic, OptimiserRun, train
from tests.refused import refused
from tests.training.naive import clipped_sum

N, STEPS = 40, 30

STRATEGIES = [
    Toeplitz((2.0,)),
    banded_square_root(4),
    banded_square_root(STEPS + 5),
    banded_inverse_square_root(5),
    BufferedToeplitz((0.9, 0.5), (0.12, 0.25)),
    BandedRows.of_matrix(Toeplitz((1.0, -0.4, 0.2)).matrix(STEPS)),
    restarted(banded_square_root(3), every=7),
]


def linear(d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, d))
    return LinearGradients(Logistic(), X, (X[:, 0] > 0).astype(int))


def release_of(scheme="balls_in_bins", n_steps=STEPS, **more):
    size = None if scheme == "full_batch" else 6
    optimiser = Optimiser(learning_rate=0.5, momentum=0.5, average=0.3)
    return GradientRelease(
        n_records=N,
        batch_size=size,
        n_steps=n_steps,
        sampling=scheme,
        optimiser=optimiser,
        **more,
    )


def noise_of(release, noise=None, gradients=None, seed=5):
    """Noise of each step of a run, and the parameters it ends at."""
    record = []
    gradients = linear() if gradients is None else gradients
    noise = GaussianNoise(1.5) if noise is None else noise
    rng = np.random.default_rng(seed)
    found = train(gradients, release, noise, rng, record=record)
    return np.array([step.noise for step in record]), found, record


def drawn(noise, shape, seed=5):
    """Draws that a run of that seed makes."""
    return noise.sample(shape, np.random.default_rng(seed).spawn(3)[2])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.kind)
@pytest.mark.parametrize(
    "noise",
    [GaussianNoise(1.5), GaussianNoise((0.1, 2.0, 3.0, 4.0)), LaplaceNoise(2.0)],
    ids=["one scale", "scales", "Laplace"],
)
def test_the_noise_of_a_run_solves_for_its_draws(strategy, noise):
    executed, _, _ = noise_of(release_of(noise_correlation=strategy), noise)
    draws = drawn(noise, (STEPS, 4))
    expected = solve_triangular(strategy.matrix(STEPS), draws, lower=True)
    np.testing.assert_allclose(executed, expected, rtol=0, atol=1e-12 * 30)


@pytest.mark.parametrize("scheme", SAMPLING_SCHEMES)
def test_a_run_is_replayed_from_its_record(scheme):
    release = release_of(scheme, noise_correlation=banded_square_root(4))
    gradients = linear()
    _, found, record = noise_of(release, gradients=gradients)
    run = OptimiserRun(release.optimiser, np.zeros(4), STEPS, gradients.penalised)
    for step in record:
        total = clipped_sum(gradients, run.parameters, step.index, release)
        np.testing.assert_allclose(step.clipped_sum, total, atol=1e-10)
        run.step((total + step.noise) / release.divisor)
    np.testing.assert_allclose(found, run.result(), atol=1e-9)


def test_a_seed_fixes_the_run_and_the_batches_do_not_depend_on_the_strategy():
    release = release_of(noise_correlation=banded_inverse_square_root(3))
    one, found, record = noise_of(release)
    two, again, _ = noise_of(release)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(found, again)
    _, _, independent = noise_of(replace(release, noise_correlation=None))
    for step, other in zip(record, independent, strict=True):
        np.testing.assert_array_equal(step.index, other.index)


def test_the_identity_is_independent_noise_to_the_last_bit():
    release = release_of(noise_correlation=identity())
    assert release.noise_correlation is None
    _, found, _ = noise_of(release)
    _, plain, _ = noise_of(release_of())
    np.testing.assert_array_equal(found, plain)


def test_scale_and_strategy_may_be_exchanged():
    # the scale multiplies the draws: twice of both C and scale is the same mechanism
    column = banded_square_root(4).column
    double = Toeplitz(tuple(2 * c for c in column))
    one, _, _ = noise_of(release_of(noise_correlation=Toeplitz(column)))
    two, _, _ = noise_of(release_of(noise_correlation=double), GaussianNoise(3.0))
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_empty_batches_are_noised():
    release = GradientRelease(
        n_records=N,
        batch_size=1,
        n_steps=100,
        sampling="balls_in_bins",
        optimiser=Optimiser(learning_rate=1.0),
        noise_correlation=banded_square_root(4),
    )
    _, _, record = noise_of(release)
    empty = [step for step in record if len(step.index) == 0]
    assert len(empty) > 20
    for step in empty:
        np.testing.assert_array_equal(step.clipped_sum, 0)
        assert np.all(step.noise != 0)


@pytest.mark.parametrize("n_steps", [1, 7, 13])
def test_the_tree_adds_what_its_nodes_have(n_steps):
    tree = prefix_sum_tree(n_steps)
    release = release_of(n_steps=n_steps, noise_correlation=tree)
    executed, _, _ = noise_of(release)
    # what is released is a combination of C x + Z, for the C that is accounted for
    draws = drawn(GaussianNoise(1.5), (tree.n_rows(n_steps), 4))
    unit = np.eye(tree.n_rows(n_steps))
    mixing = np.array(list(tree.stream(iter(unit), n_steps)))
    recovered = mixing @ tree.matrix(n_steps)
    np.testing.assert_allclose(recovered, np.eye(n_steps), atol=1e-12)
    np.testing.assert_allclose(executed, mixing @ draws, atol=1e-12)


@pytest.mark.parametrize(
    "strategy",
    [banded_square_root(3), banded_inverse_square_root(3), prefix_sum_tree(6)],
    ids=lambda s: s.kind,
)
def test_noise_has_the_covariance_of_the_strategy(strategy):
    # parameters are independent of each other, so they are as many runs
    gradients, n_steps = linear(d=20_000), 6
    release = replace(release_of(n_steps=6), noise_correlation=strategy)
    executed, _, _ = noise_of(release, gradients=gradients)
    unit = np.eye(strategy.n_rows(n_steps))
    mixing = np.array(list(strategy.stream(iter(unit), n_steps)))
    expected = 1.5**2 * mixing @ mixing.T
    variances = np.diag(expected)
    error = np.sqrt((np.outer(variances, variances) + expected**2) / 20_001)
    found = executed @ executed.T / executed.shape[1]
    assert np.all(np.abs(found - expected) < 5 * error)
    # other noise would be found: the same with independent draws is not within that
    assert np.abs(1.5**2 * np.eye(n_steps) - expected).max() > 20 * error.max()


def test_prefixes_of_noise_deviate_as_the_strategy_says():
    strategy, gradients = banded_square_root(8), linear(d=20_000)
    release = release_of(noise_correlation=strategy)
    executed, _, _ = noise_of(release, gradients=gradients)
    found = np.cumsum(executed, axis=0).std(axis=1) / 1.5
    errors = strategy.prefix_errors(STEPS)
    np.testing.assert_allclose(found, errors, rtol=5 / np.sqrt(2 * 20_000))


def test_a_strategy_keeps_nothing_of_a_run():
    strategy = banded_square_root(4)
    before = pickle.dumps(strategy)
    release = release_of(noise_correlation=strategy)
    noise_of(release)
    assert pickle.dumps(release.noise_correlation) == before


def test_a_strategy_of_another_length_is_refused():
    with refused(ValueError, "strategy.tree_steps_mismatch", tree_steps=5, n_steps=30):
        release_of(noise_correlation=prefix_sum_tree(5))
    rows = BandedRows(((1.0,),) * 5)
    with refused(ValueError, "strategy.rows_steps_mismatch", n_rows=5, n_steps=30):
        release_of(noise_correlation=rows)
