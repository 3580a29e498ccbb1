"""Runs of which the last iterate alone leaves: what is promised against what is so."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from skpuffer.accountants import IterationAmplification
from skpuffer.noise import GaussianNoise
from skpuffer.scenarios import RecordScenario
from skpuffer.training import (
    HuberHinge,
    LinearGradients,
    Logistic,
    Multinomial,
    OptimiserRun,
    RecordGradient,
    Squared,
    train,
)
from tests.attack import assert_tight
from tests.extensions.last_iterate.last_iterates import last_iterate, penalty_for

REPLACED = RecordScenario(relation="replace")


def gradients_of(record, X, y):
    return LinearGradients(
        record.loss, X, y, n_classes=record.n_classes, intercept_scale=record.intercept
    )


def promised(release, scenario=REPLACED, scale=1.0):
    accountant = IterationAmplification(delta=1e-5)
    return accountant.certify(GaussianNoise(scale), release, scenario).curve


# -- quadratic losses: the last iterate is Gaussian, in closed form --------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("schedule", ["constant", "cosine", "invscaling"])
def test_targets_of_a_quadratic_loss(schedule, seed):
    """Two tables whose targets differ have last iterates of one covariance."""
    rng = np.random.default_rng(seed)
    n, dim, n_steps, scale = 6, 3, 12, 0.7
    record = RecordGradient(loss=Squared(), data_norm=1.0, intercept=0.0)
    X = rng.normal(size=(n, dim))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    X[0] /= np.linalg.norm(X[0])
    # a clip norm that clips nothing near the targets: half the largest move there is
    release = last_iterate(
        n_records=n,
        n_steps=n_steps,
        record=record,
        clip_norm=1.0,
        learning_rate=float(rng.uniform(0.2, 2.0)),
        l2=float(rng.choice([0.0, 0.05, 0.5])),
        schedule=schedule,
    )
    steps = np.array(release.optimiser.step_sizes(n_steps))
    shrunk = 1 / (1 + steps * release.optimiser.l2)
    gap, covariance = np.zeros(dim), np.zeros((dim, dim))
    for step, factor in zip(steps, shrunk, strict=True):
        through = factor * (np.eye(dim) - step * X.T @ X / n)
        # the target of the first record is -1 or 1: two apart, times its row
        gap = through @ gap + factor * step * 2 * X[0] / n
        noise = (factor * step * scale / n) ** 2
        covariance = through @ covariance @ through.T + noise * np.eye(dim)
    exact = math.sqrt(gap @ np.linalg.solve(covariance, gap))
    assert exact <= promised(release, scale=scale).mu


@pytest.mark.parametrize("c", [0.5, 0.9, 0.99])
def test_what_is_promised_is_attained(c):
    """Where the losses have no curvature and all gradients the clip norm."""
    n_steps, step = 30, 1e-3
    release = last_iterate(
        n_records=1, n_steps=n_steps, learning_rate=step, l2=penalty_for(c, step)
    )
    weights = c ** np.arange(1, n_steps + 1.0)
    exact = 2 * weights.sum() / math.sqrt(weights @ weights)
    assert promised(release).mu == pytest.approx(exact, rel=1e-12)


# -- one parameter: the law of the last iterate on a fine grid -------------------------


class Line:
    """Laws of an iterate within [-radius, radius], as masses of cells."""

    def __init__(self, radius, n_cells=1500):
        edges = np.linspace(-radius, radius, n_cells + 1)
        # the ends hold what is projected onto them
        self.points = np.concatenate(
            [[-radius], (edges[1:] + edges[:-1]) / 2, [radius]]
        )
        self.edges = edges

    def start(self):
        mass = np.zeros(len(self.points))
        mass[len(mass) // 2] = 1.0
        return mass

    def kernel(self, after, deviation):
        """Masses of the next iterate by the one before; rows are where it was."""
        below = ndtr((self.edges - after[:, None]) / deviation)
        return np.hstack([below[:, :1], np.diff(below, axis=1), 1 - below[:, -1:]])


def last_law(release, X, y, scale, line):
    """Mixture, over the deals of each epoch, of the last iterate's law."""
    record, optimiser = release.record, release.optimiser
    gradients = gradients_of(record, X, y)
    n = release.n_records
    per_epoch = release.steps_per_epoch
    steps = optimiser.step_sizes(release.n_steps)
    size = n // per_epoch
    mass = line.start()
    for start in range(0, release.n_steps, per_epoch):
        deals = list(itertools.permutations(range(n)))
        # one of each set of batches
        deals = {
            tuple(
                tuple(sorted(deal[b * size : (b + 1) * size])) for b in range(per_epoch)
            )
            for deal in deals
        }
        after_epoch = np.zeros_like(mass)
        for deal in deals:
            here = mass
            for step, batch in zip(
                steps[start : start + per_epoch], deal, strict=False
            ):
                shrunk = 1 / (1 + step * optimiser.l2)
                total = np.array(
                    [
                        gradients.clipped_sum(np.array([w]), np.array(batch), release)[
                            0
                        ]
                        for w in line.points
                    ]
                )
                after = shrunk * (line.points - step * total / release.divisor)
                deviation = shrunk * step * scale / release.divisor
                here = here @ line.kernel(after, deviation)
            after_epoch += here / len(deals)
        mass = after_epoch
    return mass


CASES = {
    "full batch": {"n_steps": 8},
    "full batch, a penalty": {"n_steps": 8, "l2": 0.2},
    "dealt": {"n_steps": 4, "sampling": "shuffled_epochs", "batch_size": 2},
    "dealt, decaying": {
        "n_steps": 4,
        "sampling": "shuffled_epochs",
        "batch_size": 2,
        "schedule": "linear",
    },
}


@pytest.mark.parametrize("case", CASES)
def test_logistic_regression_of_one_parameter(case):
    n, radius, scale = 4, 1.5, 1.3
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)
    release = last_iterate(
        n_records=n, record=record, clip_norm=0.4, radius=radius, **CASES[case]
    )
    X = np.array([[1.0], [0.7], [-0.3], [0.9]])
    y = np.array([1, 0, 1, 0])
    other = X.copy()
    other[0] = -1.0
    line = Line(radius, n_cells=300)
    p, q = (last_law(release, table, y, scale, line) for table in (X, other))
    assert p.sum() == pytest.approx(1) and abs(p - q).sum() > 0.05
    curve = promised(release, scale=scale)
    for epsilon in (-0.5, 0.0, 0.3, 1.0, 2.0):
        for one, two in ((p, q), (q, p)):
            found = np.maximum(one - math.exp(epsilon) * two, 0).sum()
            assert found <= curve.delta(epsilon) + 1e-9
    for alpha in (1.5, 2.0, 8.0):
        assert np.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1) <= curve.renyi(
            alpha
        )


def test_a_ball_that_is_met_at_every_step():
    """Iterates spread over the whole ball: here its diameter is what counts."""
    n_steps, radius, scale = 40, 0.25, 4.0
    record = RecordGradient(
        loss=HuberHinge(0.5), data_norm=1.0, intercept=0.0, n_classes=2
    )
    release = last_iterate(
        n_records=1, n_steps=n_steps, record=record, radius=radius, learning_rate=0.2
    )
    line = Line(radius, n_cells=200)
    p, q = (
        last_law(release, np.array([[x]]), np.array([1]), scale, line)
        for x in (1.0, -1.0)
    )
    curve = promised(release, scale=scale)
    without = last_iterate(
        n_records=1, n_steps=n_steps, record=record, learning_rate=0.2
    )
    assert curve.mu < 0.8 * promised(without, scale=scale).mu
    for epsilon in (0.0, 0.5, 1.0):
        found = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert found <= curve.delta(epsilon)
        # no bound of the ball alone is tight, but half of it is seen
        assert epsilon > 0 or found > 0.5 * curve.delta(epsilon)


# -- an attacker of the engine itself --------------------------------------------------


def test_an_attacker_of_the_last_iterate():
    """Gradients of constant length: all that is promised is there to be seen."""
    c, step, n_steps = 0.9, 5e-3, 20
    record = RecordGradient(
        loss=HuberHinge(0.25), data_norm=1.0, intercept=0.0, n_classes=2
    )
    release = last_iterate(
        n_records=1,
        n_steps=n_steps,
        record=record,
        learning_rate=step,
        l2=penalty_for(c, step),
    )
    found = IterationAmplification(1.0, delta=1e-3).calibrate(release, REPLACED)

    def worlds(noise):
        def last(x):
            def draw(n, rng):
                # so many runs of one parameter side by side: steps and penalty are
                # coordinate by coordinate, as there is no ball
                run = OptimiserRun(release.optimiser, np.zeros(n), n_steps)
                y = np.ones(n)
                for _ in range(n_steps):
                    slopes = record.loss.derivative(x * run.parameters, y)
                    total = np.clip(slopes * x, -1.0, 1.0)
                    run.step(total + noise.sample((n,), rng))
                return run.result()

            return draw

        return last(1.0), last(-1.0)

    assert_tight(found.certificate, found.noise, worlds, seed=3, n_draws=200_000)


@pytest.mark.every_run
def test_the_attacked_runs_are_those_of_the_engine():
    record = RecordGradient(
        loss=HuberHinge(0.25), data_norm=1.0, intercept=0.0, n_classes=2
    )
    release = last_iterate(n_records=1, n_steps=9, record=record, l2=3.0)
    gradients = gradients_of(record, np.array([[1.0]]), np.array([1]))
    steps = []
    found = train(
        gradients, release, GaussianNoise(0.1), np.random.default_rng(0), record=steps
    )
    run = OptimiserRun(release.optimiser, np.zeros(1), 9)
    for step in steps:
        slopes = record.loss.derivative(run.parameters.copy(), np.ones(1))
        run.step(np.clip(slopes, -1.0, 1.0) + step.noise)
    # but for what the engine takes off a clip norm
    np.testing.assert_allclose(run.result(), found, atol=2e-3)


# -- steps bring no two iterates apart -------------------------------------------------


def worst_expansion(gradients, release, n_pairs, rng, spread=3.0):
    """Largest factor by which a step of full batches moves two iterates apart."""
    step = release.optimiser.learning_rate
    worst = 0.0
    for _ in range(n_pairs):
        w = rng.normal(size=gradients.dim) * spread
        v = w + rng.normal(size=gradients.dim) * rng.choice([1e-3, 0.1, 1.0, 5.0])
        ends = [
            at - step * gradients.clipped_sum(at, None, release) / release.divisor
            for at in (w, v)
        ]
        apart = np.linalg.norm(ends[1] - ends[0])
        worst = max(worst, apart / np.linalg.norm(v - w))
    return worst


LOSSES = {
    "logistic": (Logistic(), 2),
    "huber hinge": (HuberHinge(0.3), 2),
    "squared": (Squared(), None),
}


@pytest.mark.parametrize("clip_norm", [0.05, 0.3, 5.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_on_one_score_do_not_expand(loss, clip_norm):
    kind, n_classes = LOSSES[loss]
    record = RecordGradient(
        loss=kind, data_norm=1.0, intercept=0.5, n_classes=n_classes
    )
    rng = np.random.default_rng(0)
    for n in (1, 3):
        release = last_iterate(
            n_records=n,
            record=record,
            clip_norm=clip_norm,
            learning_rate=2 / record.curvature,
        )
        assert IterationAmplification().supports(release, REPLACED)
        X = rng.normal(size=(n, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.integers(2, size=n) if n_classes else rng.uniform(-1, 1, size=n)
        gradients = gradients_of(record, X, y)
        assert worst_expansion(gradients, release, 1500, rng) <= 1 + 1e-10


def test_steps_on_many_scores_do_not_expand_unclipped():
    record = RecordGradient(
        loss=Multinomial(), data_norm=1.0, intercept=0.0, n_classes=3
    )
    rng = np.random.default_rng(0)
    release = last_iterate(
        n_records=2, record=record, clip_norm=1.418, learning_rate=2 / record.curvature
    )
    assert IterationAmplification().supports(release, REPLACED)
    gradients = gradients_of(record, np.array([[1.0], [-0.8]]), np.array([0, 2]))
    assert worst_expansion(gradients, release, 3000, rng, spread=1.0) <= 1 + 1e-10


@pytest.mark.parametrize(
    "clip_norm, expansion", [(0.5, 1.0163565781), (0.25, 1.0071855631)]
)
def test_clipped_steps_on_many_scores_expand(clip_norm, expansion):
    """So they are refused."""
    record = RecordGradient(
        loss=Multinomial(), data_norm=1.0, intercept=0.0, n_classes=3
    )
    gradients = gradients_of(record, np.array([[1.0]]), np.array([0]))
    release = last_iterate(
        n_records=1, record=record, clip_norm=clip_norm, learning_rate=4.0
    )
    assert not IterationAmplification().supports(release, REPLACED)
    at = np.array([[1.6, -0.2, 1.4], [1.7, -0.23, 1.33]])
    # what the engine takes off a clip norm for roundings is put back
    exact = last_iterate(
        n_records=1,
        record=record,
        clip_norm=clip_norm / (1 - gradients.rows.slack),
        learning_rate=4.0,
    )
    ends = [w - 4.0 * gradients.clipped_sum(w, None, exact) for w in at]
    found = np.linalg.norm(ends[1] - ends[0]) / np.linalg.norm(at[1] - at[0])
    assert found == pytest.approx(expansion, rel=1e-9)


def test_steps_on_parts_that_are_clipped_apart_expand():
    """By the square root of two, where one part is cut off and the other is not."""
    gradients = LinearGradients(
        Logistic(), np.array([[1.0]]), np.array([0]), intercept_scale=1.0
    )
    step = 4.0  # two over the curvature of rows of norm sqrt(2)
    release = last_iterate(
        n_records=1,
        record=None,
        blocks=(1, 1),
        clip_norm=(9.0, 0.1),
        learning_rate=step,
    )
    assert not IterationAmplification().supports(release, REPLACED)
    at = np.array([[0.0, 0.0], [0.0, 1e-4]])
    ends = [w - step * gradients.clipped_sum(w, None, release) for w in at]
    found = np.linalg.norm(ends[1] - ends[0]) / np.linalg.norm(at[1] - at[0])
    assert found == pytest.approx(math.sqrt(2), rel=1e-3)


def test_long_steps_expand():
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)
    gradients = gradients_of(record, np.array([[1.0]]), np.array([0]))
    release = last_iterate(n_records=1, record=record, learning_rate=9.0)
    ends = [
        w - 9.0 * gradients.clipped_sum(np.array([w]), None, release)[0]
        for w in (0.0, 1e-3)
    ]
    assert abs(ends[1] - ends[0]) > 1.2e-3
    assert not IterationAmplification().supports(release, REPLACED)


def test_the_law_on_a_grid_is_that_of_one_gaussian_step():
    """What the tests above rest on."""
    line = Line(5.0, n_cells=2000)
    mass = line.start() @ line.kernel(line.points + 0.2, 0.5)
    exact = np.diff(norm.cdf(line.edges, line.points[len(mass) // 2] + 0.2, 0.5))
    np.testing.assert_allclose(mass[1:-1], exact, atol=1e-12)
