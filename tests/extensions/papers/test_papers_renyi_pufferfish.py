"""Rényi Pufferfish privacy, Figures 5 and 6: F(T), exactly and by accounting."""

import math

import numpy as np
import pytest

from skpuffer.accountants import IterationAmplification, PrivacyLoss
from skpuffer.privacy import iteration_cost
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import GaussianScenario
from skpuffer.training import Logistic, RecordGradient

#: (1 + rho(2) + ... + rho(T))^2 / T at T = 10, 100, 1000.
LOSSES = {
    "0": (0.1, 0.01, 0.001),
    "0.1": (0.361, 1.1881, 10.18081),
    "0.2": (0.784, 4.3264, 40.32064),
    "0.8": (6.724, 64.3204, 640.32004),
    "1": (10, 100, 1000),
    "1/t": (0.857886, 0.269089, 0.056032),
    "1/t^2": (0.240178, 0.026732, 0.002703),
}


def correlations(name, n_steps):
    t = np.arange(1.0, n_steps + 1)
    rho = {"1/t": 1 / t, "1/t^2": 1 / t**2}.get(name)
    return np.where(t == 1, 1.0, float(name)) if rho is None else rho


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_the_first_record_over_that_of_one_step(name):
    for n_steps, loss in zip((10, 100, 1000), LOSSES[name], strict=True):
        found = iteration_cost(correlations(name, n_steps), 3.0, 2.5, coupling="joint")
        one = iteration_cost([1.0], 3.0, 2.5, coupling="joint")
        assert found / one == pytest.approx(loss, abs=5.1e-7, rel=1e-6)


def test_at_a_tenth_it_is_least_at_nine_steps():
    losses = [
        iteration_cost(correlations("0.1", n), 1.0, 2.0, coupling="joint")
        for n in range(1, 30)
    ]
    assert np.argmin(losses) + 1 == 9
    assert min(losses) == pytest.approx(0.36)


def noise(name, n_steps, accountant, **optimiser):
    """Scale for one pass over Gaussian records, one a step, of which the first is
    secret."""
    rho = correlations(name, n_steps)
    apart = np.abs(np.arange(n_steps)[:, None] - np.arange(n_steps))
    scenario = GaussianScenario(
        covariance=rho[apart],
        covariance_of="records",
        secret=0,
        domain=(-0.1, 0.1),
        protected=[0],
    )
    release = GradientRelease(
        n_records=n_steps,
        n_steps=n_steps,
        batch_size=1,
        sampling="shuffled_epochs",
        published="result",
        record=RecordGradient(
            loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2
        ),
        optimiser=Optimiser(learning_rate=1.0, radius=2.0, **optimiser),
    )
    return accountant.calibrate(release, scenario).noise.scale


@pytest.mark.parametrize("name", LOSSES)
def test_any_record_pays_for_what_it_moves_wherever_it_comes(name):
    """What F(T) leaves out: the secret record may be the last one of the pass."""
    promise = {"epsilon": 1.0, "delta": 1e-5}
    one = noise(name, 1, PrivacyLoss(**promise))
    for n_steps in (3, 10, 40):
        squares = np.sum(correlations(name, n_steps) ** 2)
        every = noise(name, n_steps, PrivacyLoss(**promise)) / one
        assert every**2 == pytest.approx(squares, rel=1e-3)
        last = noise(name, n_steps, IterationAmplification(**promise)) / one
        assert 1 - 1e-9 <= last <= every * (1 + 1e-9)
        if n_steps == 40 and name in ("0.1", "0.2", "0.8", "1"):
            penalty = IterationAmplification(**promise)
            forgets = noise(name, n_steps, penalty, l2=0.5) / one
            assert forgets < last
        # never less than the first record of a pass in order
        paper = correlations(name, n_steps).sum() / math.sqrt(n_steps)
        assert every >= paper * (1 - 1e-9)
