"""How far one record's clipped gradient moves with the record, at any parameters."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import (
    Hinge,
    Huber,
    HuberHinge,
    LinearGradients,
    Logistic,
    MulticlassHinge,
    Multinomial,
    RecordGradient,
    Squared,
    train,
)
from tests.refused import refused

#: By name: the loss, and its number of classes.
LOSSES = {
    "logistic": (Logistic(), 2),
    "hinge": (Hinge(), 2),
    "huber_hinge": (HuberHinge(2.0), 2),
    "multinomial": (Multinomial(), 3),
    "multiclass_hinge": (MulticlassHinge(), 3),
    "squared": (Squared(), None),
    "huber": (Huber(0.5), None),
}


def jacobian_norm(t, margin, score):
    """Norm of the derivative of -expit(-m) z by z at t = expit(-m), |m| <= score."""
    fall = t * (1 - t)
    return np.linalg.norm(
        [[fall * margin - t, 0], [fall * math.sqrt(score**2 - margin**2), -t]], 2
    )


@pytest.mark.parametrize(
    "score, exact, closed",
    [
        (0.5, 0.7399612, 1.0),
        (1, 0.9276705, 1.0),
        (2, 1.0912350, 1.125),
        (4, 1.3094418, 1.5625),
        (8, 2.1345183, 2.53125),
        (16, 4.0637159, 4.515625),
    ],
)
def test_logistic_gradients_are_lipschitz_by_the_closed_form(score, exact, closed):
    # by another way: the largest singular value of the Jacobian, over all margins
    margins = np.linspace(-score, score, 401)
    norms = [jacobian_norm(1 / (1 + math.exp(m)), m, score) for m in margins]
    best = margins[int(np.argmax(norms))]
    step = 2 * score / 400
    found = minimize_scalar(
        lambda m: -jacobian_norm(1 / (1 + math.exp(m)), m, score),
        bounds=(max(best - step, -score), min(best + step, score)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert -found.fun == pytest.approx(exact, abs=1e-7)
    assert Logistic().gradient_lipschitz(score) == closed
    # the product rule alone gives more
    assert closed <= 1 + score / 4


@pytest.mark.parametrize(
    "loss, lipschitz",
    [
        (HuberHinge(2.0), 1 + 3 / 4),
        (HuberHinge(0.5), 1 + 3),
        (Squared(), 2 * 3 + 1),
        (Huber(0.5), 0.5 + 3),
        (Multinomial(), math.sqrt(2) + 3 / 2),
        (Hinge(), math.inf),
        (MulticlassHinge(HuberHinge()), math.inf),
    ],
)
def test_gradients_are_lipschitz_by_the_table(loss, lipschitz):
    assert loss.gradient_lipschitz(3.0) == pytest.approx(lipschitz)
    smaller = loss.gradient_lipschitz(1.0)
    assert smaller < lipschitz or smaller == math.inf


def gradients_of(loss, scores, y, rows, clip):
    """Clipped gradients, of shape (n, n_scores * n_features), one by one."""
    slopes = loss.derivative(scores, y).reshape(len(rows), -1)
    found = (slopes[:, :, None] * rows[:, None]).reshape(len(rows), -1)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return found * np.minimum(1, clip / np.maximum(lengths, 1e-300))


def random_parameters(rng, shape, radius):
    """Of all lengths up to the radius, most of them near it, or near those of a row."""
    w = rng.normal(size=shape)
    flat = (len(w), -1)
    lengths = radius * 10.0 ** -rng.choice([0.0, 1.0, 2.0, 3.0], size=len(w))
    return w * (lengths / np.linalg.norm(w.reshape(flat), axis=1)).reshape(
        -1, *[1] * (w.ndim - 1)
    )


@pytest.mark.parametrize("name", LOSSES)
def test_points_of_records_are_of_clipped_rows(name):
    """Rows that clipping makes equal are no distance apart."""
    loss, n_classes = LOSSES[name]
    record = RecordGradient(
        loss=loss, data_norm=2.0, intercept=0.5, n_classes=n_classes
    )
    found = record.clipped(0.3, 4.0)
    X, y = np.array([[3.0, 4.0], [-5.0, 12.0]]), np.array([0, 1])
    np.testing.assert_allclose(found.point(X, y), found.point(10 * X, y))


@pytest.mark.parametrize("radius", [None, 4.0])
@pytest.mark.parametrize("name", LOSSES)
def test_no_clipped_gradient_moves_further_than_stated(name, radius):
    loss, n_classes = LOSSES[name]
    rng = np.random.default_rng(0)
    n, d = 4000, 2
    reached = []
    for clip in (0.3, 3.0):
        record = RecordGradient(
            loss=loss, data_norm=1.0, intercept=0.5, n_classes=n_classes
        )
        found = record.clipped(clip, radius)
        # of a regression nothing is known at any parameters
        assert (found is None) == (radius is None and n_classes is None)
        if found is None:
            return
        X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 9.0], size=(n, 1))
        near = X + rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4, 1, size=(n, 1))
        if n_classes is None:
            y, other = rng.uniform(-1, 1, size=(2, n))
            other = np.where(rng.random(n) < 0.5, y, other)
        else:
            y, other = rng.integers(n_classes, size=(2, n))
        points = found.point(X, y), found.point(near, other)
        limit = [
            found.gradient_move(b)
            for b in np.linalg.norm(points[0] - points[1], axis=1)
        ]
        rows = [
            np.column_stack(
                [
                    Z / np.maximum(1, np.linalg.norm(Z, axis=1, keepdims=True)),
                    np.full(n, 0.5),
                ]
            )
            for Z in (X, near)
        ]
        outputs = loss.n_outputs(n_classes)
        w = random_parameters(rng, (n, outputs, d + 1), 1e3 if radius is None else 4.0)
        clipped = []
        for Z, target in zip(rows, (y, other), strict=True):
            scores = np.einsum("nkd,nd->nk", w, Z)
            scores = scores[:, 0] if outputs == 1 else scores
            clipped.append(gradients_of(loss, scores, target, Z, clip))
        moves = np.linalg.norm(clipped[0] - clipped[1], axis=1)
        assert np.all(moves <= np.array(limit) * (1 + 1e-9) + 1e-12)
        assert max(limit) <= 2 * clip * (1 + 1e-12)
        reached.append(np.max(moves / np.maximum(limit, 1e-12)))
        # less than any two gradients where the record hardly moves
        assert found.gradient_move(1e-4) < 0.75 * 2 * clip
        # and no less than what any two have where a class changes
        assert found.gradient_move(found._reach) == pytest.approx(
            found.gradient_move(10.0)
        )
        assert found.ceiling <= found._reach
    # nor is the bound far off, so that the search had a chance
    assert max(reached) > 0.7


@pytest.mark.parametrize("radius", [0.1, 1.0])
@pytest.mark.parametrize("name", [n for n, (_, k) in LOSSES.items() if k is None])
def test_a_row_and_its_target_may_move_at_once(name, radius):
    """Steps of every direction from records with the steepest gradients."""
    loss, _ = LOSSES[name]
    record = RecordGradient(loss=loss, data_norm=1.0, intercept=0.0)
    found = record.clipped(100.0, radius)
    angles, step = np.linspace(0, 2 * math.pi, 73), 1e-4
    reached = 0.0
    for w, y in itertools.product((-radius, radius), np.linspace(-1, 1, 41)):
        rows = np.clip(np.append(1.0, 1.0 + step * np.cos(angles)), -1.0, 1.0)
        targets = np.clip(np.append(y, y + step * np.sin(angles)), -1.0, 1.0)
        gradients = gradients_of(loss, w * rows, targets, rows[:, None], 100.0)[:, 0]
        apart = np.hypot(rows[1:] - rows[0], targets[1:] - targets[0])
        limit = np.array([found.gradient_move(shift) for shift in apart])
        moves = np.abs(gradients[1:] - gradients[0])
        assert np.all(moves <= limit * (1 + 1e-3))
        reached = max(reached, np.max(moves / np.maximum(limit, 1e-300)))
    assert reached > 0.95


@pytest.mark.parametrize("name", LOSSES)
def test_no_clipped_gradient_moves_further_by_its_label(name):
    loss, n_classes = LOSSES[name]
    rng = np.random.default_rng(1)
    n, d = 4000, 3
    rows = rng.normal(size=(n, d))
    lengths = np.linalg.norm(rows, axis=1)
    if n_classes is None:
        y, other = rng.uniform(-1, 1, size=(2, n))
        far = np.abs(y - other)
    else:
        y = rng.integers(n_classes, size=n)
        other, far = (y + 1) % n_classes, 1.0
    outputs = loss.n_outputs(n_classes)
    w = random_parameters(rng, (n, outputs, d), 1e3)
    scores = np.einsum("nkd,nd->nk", w, rows)
    scores = scores[:, 0] if outputs == 1 else scores
    for clip in (0.3, 3.0):
        both = [gradients_of(loss, scores, t, rows, clip) for t in (y, other)]
        moves = np.linalg.norm(both[0] - both[1], axis=1)
        limit = np.minimum(2 * clip, loss.label_slope * far * lengths)
        assert np.all(moves <= limit * (1 + 1e-9) + 1e-12)
        assert np.max(moves / limit) > 0.95
    # and of a model whose rows are as long as they can be
    record = RecordGradient(
        loss=loss, data_norm=2.0, intercept=0.5, n_classes=n_classes
    )
    longest = rows * (record.row_norm / lengths)[:, None]
    for clip in (0.3, 3.0):
        both = [gradients_of(loss, scores, t, longest, clip) for t in (y, other)]
        moved = np.max(np.linalg.norm(both[0] - both[1], axis=1))
        stated = record.label_move(clip) * (1 + 1e-9)
        # two derivatives of Huber's loss are no further apart than twice its width
        assert moved <= stated < (2.1 if name == "huber" else 1.06) * moved


def test_the_corner_bound_is_attained():
    # a hinge whose margin is on either side of one: its gradient comes or goes
    hinge = RecordGradient(loss=Hinge(), data_norm=1.0, intercept=0.0, n_classes=2)
    bound = hinge.clipped(0.5, None)
    row, near = np.array([[1.0]]), np.array([[0.98]])
    w = np.array([1 / 0.99])
    release = GradientRelease(
        n_records=1, n_steps=1, sampling="full_batch", clip_norm=0.5
    )
    sums = [
        LinearGradients(Hinge(), X, [1], intercept_scale=0.0).clipped_sum(
            w, None, release
        )
        for X in (row, near)
    ]
    gap = float(np.linalg.norm(sums[0] - sums[1]))
    assert gap <= bound.gradient_move(0.02) == 0.5
    assert gap > 0.999 * 0.5


def test_a_ball_never_raises_the_bound_and_a_smaller_one_lowers_it():
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.5, n_classes=2)
    for shift in (0.001, 0.02, 0.3, 1.5):
        bounds = [
            record.clipped(1.0, radius).gradient_move(shift)
            for radius in (0.5, 4.0, 40.0, None)
        ]
        assert bounds == sorted(bounds)
    small = record.clipped(1.0, 4.0)
    assert small.gradient_move(0.0) == 0.0
    assert small.gradient_move(0.002) == pytest.approx(2 * small.gradient_move(0.001))


def test_more_classes_charge_a_change_of_class_as_any_record():
    record = RecordGradient(
        loss=Multinomial(), data_norm=2.0, intercept=0.5, n_classes=3
    )
    found = record.clipped(1.0, 3.0)
    points = found.point(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 2]))
    apart = float(np.linalg.norm(points[0] - points[1]))
    assert found.gradient_move(apart) == 2.0
    # rows are in units of the norm they are scaled down to
    np.testing.assert_allclose(points[0, :3], [0.5, 0.0, 0.5])
    np.testing.assert_allclose(
        found.point.move(np.array([[3.0, 4.0], [0, 0.2]]), 2), [2, 0.1]
    )


@pytest.mark.parametrize(
    "facts",
    [{"loss": Squared()}, {"n_classes": 3}, {"n_classes": None}, {"data_norm": 0.0}],
    ids=["regression", "classes", "no classes", "norm"],
)
def test_a_record_that_is_none_of_the_loss_is_refused(facts):
    known = {"loss": Logistic(), "data_norm": 1.0, "intercept": 0.0, "n_classes": 2}
    with refused(
        ValueError, ("parameter.not_positive", "training.n_classes_unfit_for_loss")
    ):
        RecordGradient(**known | facts)


@pytest.mark.parametrize("name", LOSSES)
def test_what_short_steps_need(name):
    loss, n_classes = LOSSES[name]
    record = RecordGradient(
        loss=loss, data_norm=3.0, intercept=0.75, n_classes=n_classes
    )
    assert record.curvature == loss.smoothness * 1.5625
    obstacles = [record.step_obstacle(norm) for norm in (0.1, record.unclipped_norm)]
    expected = {
        "hinge": ["corner", "corner"],
        "multiclass_hinge": ["corner", "corner"],
        "multinomial": ["clip_norm=1.77", None],
    }
    for found, word in zip(obstacles, expected.get(name, [None, None]), strict=True):
        assert (found is None) if word is None else word in str(found)


def test_a_norm_that_clips_nothing():
    """Gradients at it are those of no clipping, to the last digit."""
    rng = np.random.default_rng(0)
    record = RecordGradient(
        loss=Multinomial(), data_norm=1.0, intercept=0.5, n_classes=3
    )
    X = rng.normal(size=(50, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gradients = LinearGradients(
        Multinomial(), X, rng.integers(3, size=50), n_classes=3, intercept_scale=0.5
    )
    for w in (np.zeros(9), 1e3 * rng.normal(size=9)):
        sums = [
            gradients.clipped_sum(
                w,
                None,
                GradientRelease(
                    n_records=50, n_steps=1, sampling="full_batch", clip_norm=norm
                ),
            )
            for norm in (record.unclipped_norm, 1e6)
        ]
        np.testing.assert_array_equal(*sums)


def test_the_release_takes_the_radius_it_is_executed_with():
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)

    def release(**facts):
        return GradientRelease(
            n_records=3, n_steps=2, sampling="full_batch", record=record, **facts
        )

    free, ball = release(), release(optimiser=Optimiser(learning_rate=1, radius=2.0))
    assert free.clipped.radius is None and ball.clipped.radius == 2.0
    assert free.modulus(0.1) == 1.0
    # scores are at most 2, where the gradient is 9/8-Lipschitz
    assert ball.modulus(0.1) == pytest.approx(0.1125)
    assert ball == release(optimiser=Optimiser(learning_rate=1, radius=2.0)) != free
    assert hash(ball) is not None


@pytest.mark.parametrize(
    "facts",
    [{"clip_order": 1.0}, {"blocks": (2, 1), "clip_norm": (1.0, 1.0)}],
    ids=["l1", "blocks"],
)
def test_moves_in_l2_are_refused_where_clipping_is_no_projection(facts):
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)
    with refused(ValueError, "gradient.record_needs_whole_l2_clipping"):
        GradientRelease(
            n_records=3, n_steps=2, sampling="full_batch", record=record, **facts
        )


@pytest.mark.parametrize("name", LOSSES)
def test_no_run_breaks_a_premise_of_how_far_its_records_move(name):
    """Each number that a bound was found for is held to it, at either end."""
    loss, n_classes = LOSSES[name]
    record = RecordGradient(
        loss=loss, data_norm=1.0, intercept=0.5, n_classes=n_classes
    )
    rows = np.array([[1.0, 0.0], [-0.6, 0.8]])
    ends = np.array([-1.0, 1.0] if n_classes is None else [0, n_classes - 1])
    known = {
        "loss": loss,
        "X": rows,
        "y": ends,
        "n_classes": n_classes,
        "intercept_scale": 0.5,
    }
    other = {"loss": Huber(3.0) if n_classes is None else Hinge()}
    if n_classes == 3:
        other = {"loss": MulticlassHinge(HuberHinge(3.0))}
    broken = [
        ({"X": rows * 1.001}, "rows_not_scaled"),
        # short enough for any rounding of their lengths
        ({"X": (0.5 * rows).astype(np.float32)}, "needs_float64"),
        ({"intercept_scale": 0.25}, "of_other_gradients"),
        ({"weights": np.array([1.0, 0.5])}, "with_unit_weights"),
        (other, "of_other_gradients"),
    ]
    if n_classes is None:
        for end in (-1.0, 1.0):
            broken.append(({"y": 1.001 * end * np.eye(2)[0]}, "rows_not_scaled"))
    release = GradientRelease(
        n_records=2,
        n_steps=1,
        sampling="full_batch",
        record=record,
        optimiser=Optimiser(learning_rate=1.0),
    )

    def run(**change):
        gradients = LinearGradients(**known | change)
        train(gradients, release, GaussianNoise(1.0), np.random.default_rng(0))

    run()
    for change, code in broken:
        if change.get("loss") == loss:
            continue
        with refused(ValueError, f"gradient.record_{code}"):
            run(**change)
