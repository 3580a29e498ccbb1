"""The benchmark of runs in bins: what it looks for, and what is stored of it."""

import importlib
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpuffer.extensions.random_allocation.loss._conditional import Hazards
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.noise.strategies import banded_square_root, identity

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def benchmark():
    """Give a benchmark's module by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("start", [0.1, 3.0, 50.0])
def test_the_least_noise_is_found_from_wherever_the_search_starts(benchmark, start):
    found = benchmark("_allocation").least_scale(
        lambda sigma: float(gaussian_delta(1.0, 1 / sigma)), start
    )
    # of the Gaussian mechanism at epsilon = 1, delta = 1e-5
    assert 3.7306 <= found <= 3.7306 * 1.002


def test_few_accounts_agree_of_a_short_run(benchmark):
    allocation = benchmark("_allocation")
    run = allocation.Run("short", identity(), 10, 2)
    known, exact, renyi, conditional = (
        allocation.scale_of(account, run, 1.0, 3.0)
        for account in ("known bin", "exact", "Rényi", "conditional")
    )
    assert exact < renyi < known * 1.001
    assert exact < conditional
    sampled = allocation.sampled_scale(run, 1.0, exact, 20_000)
    assert sampled.low <= exact * 1.002
    assert exact <= sampled.high * 1.002


def test_hazards_are_those_of_the_library(benchmark):
    hazards = benchmark("_allocation_hazards")
    strategy, sigma = banded_square_root(3), 2.0
    means = strategy.means(8, 24)
    n_needed = hazards.n_needed(means)
    of_all = Hazards.of(means, hazards.TEMPERATURES)
    assert n_needed == len(of_all.row)
    chance = hazards.VARIED / n_needed
    found = hazards.by_family(strategy, 8, 3, sigma)["1, 3"]
    weights = of_all.weights(sigma, chance, False)
    np.testing.assert_allclose(found, [each[-1] for each in weights], rtol=1e-8)


def test_printed_splits_promise_more_in_later_epochs(benchmark):
    hazards = benchmark("_allocation_hazards")
    found = hazards.by_split(banded_square_root(4), 10, 3, 2.0)
    # a witness of what is unsound: less than the union needs
    assert (found[hazards.EPOCH] < found[hazards.UNION]).iloc[-1]
    assert math.isclose(found[hazards.FIRST].iloc[0], 0.1)


PARTS = {
    "noise": "",
    "sampled": "_sampled",
    "checked": "_checked",
    "errors": "_errors",
    "hazards": "_hazards",
    "accuracy": "_accuracy",
}


@pytest.mark.parametrize("part", PARTS)
def test_what_is_stored_holds_what_must_hold(benchmark, part):
    random_allocation = benchmark("random_allocation")
    path = random_allocation.RESULTS / f"random_allocation{PARTS[part]}.csv"
    _, check = random_allocation.PARTS[part]
    check(pd.read_csv(path))


def test_all_that_is_promised_is_checked_by_ten_million_draws(benchmark):
    random_allocation = benchmark("random_allocation")
    path = random_allocation.RESULTS / "random_allocation_checked.csv"
    random_allocation.check_all_checked(pd.read_csv(path))


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_checks_are_worth_the_plain_draws_they_say(benchmark, direction):
    allocation = benchmark("_allocation")
    run = allocation.Run("short", banded_square_root(2), 6, 2)
    gram, rng = run.gram(2.0), np.random.default_rng(0)
    values = _plain_values(gram, 0.5, direction, rng, 400_000)
    for tilt in (1.0, 2.5):
        estimate, error = allocation.moved_draws(
            gram, 0.5, direction, tilt, 100_000, rng
        )
        spread = values.std() / len(values) ** 0.5
        assert abs(estimate - values.mean()) < 5 * np.hypot(error, spread)
        square = allocation.mean_square(gram, 0.5, direction, tilt, rng)
        assert square == pytest.approx(np.mean(values**2), rel=0.05)
    found = allocation.sampled_divergence(run, 2.0, 0.5, 1000, plain=1e5)
    assert found.plain >= 1e5


def _plain_values(gram, epsilon, direction, rng, n_samples):
    """What draws say that are not moved."""
    root, halves = np.linalg.cholesky(gram), np.diag(gram)[:, np.newaxis] / 2
    sums = root @ rng.standard_normal((len(gram), n_samples))
    if direction == "remove":
        sums += gram[:, rng.integers(len(gram), size=n_samples)]
    ratio = np.exp(sums - halves).mean(axis=0)
    least = np.exp(epsilon) * ratio if direction == "add" else np.exp(epsilon) / ratio
    return np.maximum(1 - least, 0)


def test_no_stored_bound_is_below_samples(benchmark):
    bounds = benchmark("allocation_bounds")
    frame = pd.read_csv(benchmark("_report").RESULTS / "allocation_bounds.csv")
    bounds.check(frame)
    # of few diagonals and one epoch the noise is hardly more than it must be
    few = frame[(frame["bandwidth"] == 4) & (frame["n_epochs"] == 1)]
    assert few["excess"].max() < 0.1
