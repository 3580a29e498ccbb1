"""How far one record's clipped gradient moves, by pair, over all parameters."""

import numpy as np
import pytest

from skpuffer.releases import GradientRelease
from skpuffer.training import (
    Hinge,
    Huber,
    HuberHinge,
    LinearGradients,
    Logistic,
    MulticlassHinge,
    Multinomial,
    Squared,
)
from skpuffer.training._record_gradient import corner_costs

LOSSES = [
    Logistic(),
    Hinge(),
    HuberHinge(0.5),
    Squared(),
    Huber(1.35),
    Multinomial(),
    MulticlassHinge(),
    MulticlassHinge(HuberHinge(0.5)),
]

N_CLASSES = 3


def records(loss, rng, n=5, dim=2):
    X = rng.normal(size=(n, dim)) * 10 ** rng.uniform(-1.5, 0.5, size=(n, 1))
    X[1] = X[0] * rng.uniform(0.5, 1.5)
    X[2] = -X[0]
    y = rng.normal(size=n)
    if loss.classification:
        y = rng.integers(0, N_CLASSES if loss.indexed else 2, n)
    return X, y


def release_of(clip_norm=1.0, **options):
    return GradientRelease(
        n_records=1, n_steps=1, sampling="full_batch", clip_norm=clip_norm, **options
    )


def gradients(loss, X, y, release, parameters, intercept_scale):
    """Return the clipped gradient of each record as it is executed."""
    parts = [
        LinearGradients(
            loss,
            X[i : i + 1],
            y[i : i + 1],
            n_classes=N_CLASSES if loss.indexed else None,
            intercept_scale=intercept_scale,
        )
        for i in range(len(X))
    ]
    return np.array([part.clipped_sum(parameters, None, release) for part in parts])


def largest_ratio(loss, rng, *, apart=False, intercept_scale=0.7, draws=30):
    """Search for parameters and records whose gradients are furthest apart."""
    worst = 0.0
    n_outputs = N_CLASSES if loss.indexed else 1
    for _ in range(draws):
        X, y = records(loss, rng)
        norm, blocks = 1.0, None
        if apart:
            norm, blocks = (1.0, 0.4), (2 * n_outputs, n_outputs)
        release = release_of(norm, blocks=blocks)
        costs = corner_costs(loss, X, y, release, intercept_scale=intercept_scale)
        assert np.array_equal(costs, costs.T)
        assert np.all(costs <= 2 * release.total_clip_norm)
        w = rng.normal(size=(2 + (intercept_scale > 0)) * n_outputs)
        w *= 10 ** rng.uniform(-2, 3)
        found = gradients(loss, X, y, release, w, intercept_scale)
        moves = np.linalg.norm(found[:, None] - found, axis=2)
        assert np.all(moves <= costs)
        worst = max(worst, np.max(moves / np.where(costs > 0, costs, 1)))
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_parameters_move_a_gradient_further(loss):
    rng = np.random.default_rng(0)
    assert largest_ratio(loss, rng) > 0.9
    assert largest_ratio(loss, rng, apart=True, draws=10) > 0.5
    assert largest_ratio(loss, rng, intercept_scale=0.0, draws=10) > 0.8


def test_corner_by_hand():
    X = np.array([[0.6, 0.0], [0.0, 0.8], [3.0, 4.0], [0.6, 0.0]])
    y = np.array([1, 1, 0, 0])
    found = corner_costs(Logistic(), X, y, release_of(), intercept_scale=0.0)
    # the last row's label alone is another: both ends of one line
    exact = [
        [0.0, 1.0, np.hypot(0.6 + 0.6, 0.8), 1.2],
        [1.0, 0.0, np.hypot(0.6, 0.8 + 0.8), 1.0],
        [np.hypot(1.2, 0.8), np.hypot(0.6, 1.6), 0.0, 1.0],
        [1.2, 1.0, 1.0, 0.0],
    ]
    slack = 2.0**-11
    np.testing.assert_allclose(found, exact + slack * (1 - np.eye(4)), atol=1e-12)
    # float32 sums are rounded more
    coarse = corner_costs(
        Logistic(), X, y, release_of(), intercept_scale=0.0, dtype=np.float32
    )
    assert np.all((coarse - found)[~np.eye(4, dtype=bool)] > 0.02)


def test_squared_loss_needs_both_signs():
    # 88 times what the corners of a slope of one sign give
    X = np.array([[0.01, 0.0], [0.0, 0.01], [-0.01, 0.0]])
    found = corner_costs(Squared(), X, np.zeros(3), release_of(), intercept_scale=0)
    slack = 2.0**-11
    np.testing.assert_allclose(
        found,
        [
            [0, np.sqrt(2) + slack, 2],
            [np.sqrt(2) + slack, 0, np.sqrt(2) + slack],
            [2, np.sqrt(2) + slack, 0],
        ],
        atol=1e-12,
    )
    with_width = corner_costs(
        Huber(3.0), X, np.zeros(3), release_of(), intercept_scale=0
    )
    assert with_width[0, 2] == pytest.approx(0.06 + slack)


def test_any_target():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 2))
    X[3] = X[0]
    release = release_of()
    for loss in (Logistic(), HuberHinge(0.5), Multinomial()):
        found = corner_costs(loss, X, None, release)
        classes = range(N_CLASSES if loss.indexed else 2)
        every = [
            corner_costs(loss, np.vstack([X, X]), np.repeat([a, b], 4), release)
            for a in classes
            for b in classes
        ]
        parts = np.max(every, axis=0).reshape(2, 4, 2, 4)
        np.testing.assert_allclose(found, parts.max(axis=(0, 2)), atol=1e-12)


def test_a_label_that_moves_less_is_used():
    X = np.array([[0.6, 0.0], [0.6, 0.0], [0.5, 0.1]])
    moved = np.linalg.norm(X, axis=1)
    options = {"intercept_scale": 0.0, "relabelled": moved}
    slack = 2.0**-11
    found = corner_costs(Logistic(), X, np.array([0, 1, 1]), release_of(), **options)
    assert found[0, 1] == pytest.approx(0.6 + slack)
    assert found[1, 2] == pytest.approx(0.6 + slack)
    found = corner_costs(Logistic(), X, None, release_of(), **options)
    np.testing.assert_allclose(np.diag(found), moved + slack)


def test_the_same_record_twice_costs_nothing():
    X, y = np.array([[0.3, 0.4], [0.3, 0.4], [0.3, 0.4]]), np.array([1, 1, 0])
    found = corner_costs(Hinge(), X, y, release_of())
    assert found[0, 1] == 0
    assert found[0, 2] > 0


def test_other_norms_have_no_angles():
    X, y = np.array([[0.3, 0.4], [0.3, 0.1]]), np.array([1, 1])
    release = release_of(clip_order=1.0)
    np.testing.assert_array_equal(
        corner_costs(Logistic(), X, y, release), [[0, 2], [2, 0]]
    )
