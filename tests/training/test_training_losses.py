"""Losses against finite differences of their values, and against their constants."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.training import (
    Hinge,
    Huber,
    HuberHinge,
    Logistic,
    MulticlassHinge,
    Multinomial,
    SmoothLoss,
    Squared,
    make_loss,
)
from skpuffer.training._losses import LOSSES
from tests.refused import refused

SINGLE = [Logistic(), Hinge(), HuberHinge(), HuberHinge(0.1), Squared(), Huber(0.7)]
MULTIPLE = [Multinomial(), MulticlassHinge(), MulticlassHinge(HuberHinge(0.5))]


def example(loss, rng, n=200):
    if loss.indexed:
        return 3 * rng.normal(size=(n, 4)), rng.integers(4, size=n)
    scores = 3 * rng.normal(size=n)
    return scores, rng.integers(2, size=n) if loss.classification else rng.normal(
        size=n
    )


@pytest.mark.parametrize("loss", SINGLE + MULTIPLE, ids=repr)
def test_derivative_is_the_slope_of_the_value(loss):
    scores, y = example(loss, np.random.default_rng(0))
    before = scores.copy()
    found = loss.derivative(scores, y)
    np.testing.assert_array_equal(scores, before)
    step = 1e-6
    columns = scores.shape[1] if loss.indexed else 1
    for k in range(columns):
        move = np.zeros_like(scores)
        move[..., k] = step
        if not loss.indexed:
            move[:] = step
        slope = (loss.value(scores + move, y) - loss.value(scores - move, y)) / (
            2 * step
        )
        column = found[:, k] if loss.indexed else found
        np.testing.assert_allclose(column, slope, atol=1e-5)


@pytest.mark.parametrize(
    "loss", [x for x in SINGLE + MULTIPLE if isinstance(x, SmoothLoss)], ids=repr
)
def test_second_derivative_is_the_slope_of_the_derivative(loss):
    rng = np.random.default_rng(3)
    scores, y = example(loss, rng)
    direction = rng.normal(size=scores.shape)
    step = 1e-6 * direction
    ahead, behind = (loss.derivative(scores + s, y) for s in (step, -step))
    found = loss.second_derivative(scores, y, direction)
    np.testing.assert_allclose(found, (ahead - behind) / 2e-6, atol=1e-5)


@pytest.mark.parametrize("loss", SINGLE + MULTIPLE, ids=repr)
def test_derivative_keeps_single_precision(loss):
    scores, y = example(loss, np.random.default_rng(1))
    target = y if loss.indexed else y.astype(np.float32)
    found = loss.derivative(scores.astype(np.float32), target)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, loss.derivative(scores, y), atol=2e-6)


@pytest.mark.parametrize("loss", SINGLE + MULTIPLE, ids=repr)
def test_lipschitz_and_smoothness_bound_what_they_say(loss):
    rng = np.random.default_rng(2)
    scores, y = example(loss, rng, n=3000)
    other = scores + rng.normal(size=scores.shape) * rng.choice(
        [1e-3, 0.1, 1.0], size=(len(scores),) + (1,) * (scores.ndim - 1)
    )
    slopes = [loss.derivative(s, y).reshape(len(s), -1) for s in (scores, other)]
    lengths = np.linalg.norm(slopes[0], axis=1)
    assert lengths.max() <= loss.lipschitz * (1 + 1e-12)
    if not math.isinf(loss.smoothness):
        moved = np.linalg.norm((scores - other).reshape(len(scores), -1), axis=1)
        change = np.linalg.norm(slopes[0] - slopes[1], axis=1)
        assert np.all(change <= loss.smoothness * moved * (1 + 1e-9) + 1e-12)
        assert (change / moved).max() >= 0.8 * loss.smoothness or loss.indexed


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), HuberHinge(), Multinomial()])
def test_far_scores_stay_finite(loss):
    far = np.array([1e300, -1e300])
    scores = np.stack([far, -far], axis=1) if loss.indexed else far
    found = loss.derivative(scores, np.array([0, 0]))
    assert np.all(np.isfinite(found))
    assert np.abs(found).max() <= 1


@given(st.floats(-50, 50), st.integers(0, 1))
def test_two_classes_of_the_multinomial_are_the_logistic(score, y):
    y = np.array([y])
    two = np.array([[0.0, score]])
    one = np.array([score])
    np.testing.assert_allclose(
        Multinomial().value(two, y), Logistic().value(one, y), rtol=1e-9, atol=1e-14
    )
    np.testing.assert_allclose(
        Multinomial().derivative(two, y)[:, 1],
        Logistic().derivative(one, y),
        atol=1e-15,
    )


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_made_by_name(name):
    single, multiple = LOSSES[name]
    if not single.classification:
        assert make_loss(name) == single()
        assert make_loss(name).n_outputs() == 1
        return
    assert make_loss(name, n_classes=2) == single()
    assert make_loss(name, n_classes=5) == multiple()
    assert make_loss(name, n_classes=5).n_outputs(5) == 5


def test_width_reaches_the_loss():
    assert make_loss("huber", width=2.0) == Huber(2.0)
    assert make_loss("huber_hinge", n_classes=3, width=0.2) == MulticlassHinge(
        HuberHinge(0.2)
    )


@pytest.mark.parametrize(
    "name, n_classes, message",
    [
        ("log_loss", None, "training.loss_unknown"),
        ("huber", 3, "training.loss_unknown"),
        ("cosine", 2, "parameter.option_unknown"),
    ],
)
def test_a_loss_that_does_not_fit_names_those_that_do(name, n_classes, message):
    with refused(ValueError, message):
        make_loss(name, n_classes)


@pytest.mark.parametrize("loss", [Huber, HuberHinge])
@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
def test_a_width_must_be_positive(loss, width):
    with refused(ValueError, ("parameter.is_nan", "parameter.not_positive")):
        loss(width)
