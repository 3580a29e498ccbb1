"""Sums of residuals: how far one record moves them, by brute force; and exactness."""

from itertools import product

import numpy as np
import pytest

from skpuffer.additive import _codes
from skpuffer.additive._basis import make_basis
from skpuffer.additive._codes import CodedRows
from skpuffer.additive._run import LARGEST_NORM, ResidualSums, n_rounds, round_plan
from skpuffer.training import make_loss

SIZES = (3, 4, 2)
KINDS = ("levels", "ordered", "levels")
ALL_ROWS = np.array([*product(*map(range, SIZES))], dtype=np.uint8)

LOSSES = {
    "two classes": (make_loss("log_loss", 2), 1, (0, 1), 0.5),
    "four classes": (make_loss("log_loss", 4), 4, (0, 1, 2, 3), 0.6),
    "numbers": (make_loss("squared_error"), 1, (-1.0, -0.3, 1.0), 0.2),
}


def _basis(rng):
    masses = [rng.dirichlet(np.ones(m)) for m in SIZES]
    return make_basis(masses, KINDS, n_records=500, mu=0.3)


def _sums(codes, y, basis, loss, n_outputs, clip, weights=None):
    rows = CodedRows(np.asfortranarray(codes), SIZES)
    return ResidualSums(
        rows,
        np.asarray(y),
        basis,
        loss,
        n_outputs=n_outputs,
        clip=clip,
        weights=weights,
    )


@pytest.mark.parametrize("least", [None, 0.0, 0.3])
@pytest.mark.parametrize("name", LOSSES)
def test_one_record_moves_a_sum_by_at_most_one_and_another_by_two(name, least):
    """By brute force, over all rows and targets, and weights where there are any."""
    levels = [None] if least is None else [np.array([w]) for w in (least, 0.7, 1.0)]
    loss, n_outputs, targets, clip = LOSSES[name]
    rng = np.random.default_rng(0)
    longest = furthest = 0.0
    for scale in (0.0, 3.0, 30.0):
        basis = _basis(rng)
        parameters = scale * rng.normal(size=(basis.dim + 1) * n_outputs)
        alone = np.array(
            [
                _sums(row[None], [y], basis, loss, n_outputs, clip, w)(parameters)
                for row in ALL_ROWS
                for y in targets
                for w in levels
            ]
        )
        norms = np.linalg.norm(alone, axis=1)
        apart = np.linalg.norm(alone[:, None] - alone, axis=2)
        longest, furthest = max(longest, norms.max()), max(furthest, apart.max())
    assert longest <= 1.0
    assert furthest <= 2.0
    # both are attained, or nearly: rounding takes a millionth
    assert longest > 0.999
    assert furthest > (1.9 if name != "four classes" else 1.4)


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_record_adds_is_the_same_beside_any_others(name):
    loss, n_outputs, targets, clip = LOSSES[name]
    rng = np.random.default_rng(1)
    basis = _basis(rng)
    parameters = 3 * rng.normal(size=(basis.dim + 1) * n_outputs)
    codes = ALL_ROWS[rng.integers(0, len(ALL_ROWS), 60)]
    y = rng.choice(targets, 60)
    whole = _sums(codes, y, basis, loss, n_outputs, clip)(parameters)
    without = _sums(codes[1:], y[1:], basis, loss, n_outputs, clip)(parameters)
    alone = _sums(codes[:1], y[:1], basis, loss, n_outputs, clip)(parameters)
    np.testing.assert_allclose(whole - without, alone, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_sums_are_exact_whatever_the_order_and_the_chunks(monkeypatch, name):
    loss, n_outputs, targets, clip = LOSSES[name]
    rng = np.random.default_rng(2)
    basis = _basis(rng)
    parameters = 3 * rng.normal(size=(basis.dim + 1) * n_outputs)
    codes = ALL_ROWS[rng.integers(0, len(ALL_ROWS), 1000)]
    y = rng.choice(targets, 1000)
    once = _sums(codes, y, basis, loss, n_outputs, clip)(parameters)
    order = rng.permutation(1000)
    monkeypatch.setattr(_codes, "_ROWS", 97)
    again = _sums(codes[order], y[order], basis, loss, n_outputs, clip)(parameters)
    # bit by bit
    np.testing.assert_array_equal(again, once)


def test_a_sum_is_of_weighted_clipped_residuals_times_rows():
    rng = np.random.default_rng(3)
    basis = _basis(rng)
    parameters = rng.normal(size=basis.dim + 1)
    y = rng.integers(0, 2, len(ALL_ROWS))
    x = np.hstack([t[ALL_ROWS[:, k]] for k, t in enumerate(basis.tables)])
    x = np.hstack([x, np.full((len(x), 1), 0.25)])
    scores = x @ parameters
    residuals = np.clip(y - 1 / (1 + np.exp(-scores)), -0.5, 0.5)
    weights = np.minimum(1, LARGEST_NORM / np.linalg.norm(x, axis=1))
    assert np.any(weights < 1)
    expected = (weights * residuals) @ x / (0.5 * LARGEST_NORM)
    loss = make_loss("log_loss", 2)
    found = _sums(ALL_ROWS, y, basis, loss, 1, 0.5)(parameters)
    # each residual is rounded to millionths, towards zero
    np.testing.assert_allclose(found, expected, atol=3e-5)


@pytest.mark.parametrize("weights", [None, [0.3, 0.6]])
@pytest.mark.parametrize("name", LOSSES)
def test_a_record_without_a_target_adds_nothing(name, weights):
    both_weights = one_weight = None
    if weights is not None:
        both_weights, one_weight = np.array(weights), np.array(weights[:1])
    loss, n_outputs, targets, clip = LOSSES[name]
    basis = _basis(np.random.default_rng(4))
    none = -1 if loss.classification else np.nan
    y = np.array([targets[0], none])
    parameters = np.ones((basis.dim + 1) * n_outputs)
    known = basis, loss, n_outputs, clip
    both = _sums(ALL_ROWS[:2], y, *known, both_weights)(parameters)
    one = _sums(ALL_ROWS[:1], y[:1], *known, one_weight)(parameters)
    np.testing.assert_array_equal(both, one)


# -- the plan --------------------------------------------------------------------------


def test_rounds_are_between_fifty_and_a_hundred():
    assert n_rounds(32_561, 12) == 100
    assert n_rounds(100_000, 14) == 71
    assert n_rounds(1_000_000, 14) == 50


def _plan(**changed):
    given = {
        "n_records": 32_561,
        "mu": 0.26,
        "rounds": 100,
        "steepest": 0.17,
        "smoothness": 0.25,
        "classification": True,
    }
    return round_plan(**{**given, **changed})


def test_the_plan_is_that_of_the_rule():
    plan = _plan()
    stable = 2 / (0.25 * 0.17)
    # reach over the furthest 100 rounds is 8465 / 47059, below the least clip norm
    rate = 32_561 * 0.26 / (0.5 * 100)
    assert plan.clip == 0.5
    assert plan.momentum == pytest.approx(1 - stable / rate)
    assert plan.step == pytest.approx(stable / 32_561)  # (1 - momentum) * rate / n
    far = _plan(mu=5.0)
    assert far.clip == 0.75
    assert far.momentum == pytest.approx(0.9)
    assert far.step == pytest.approx(0.1 * 10 * stable / 32_561)
    near = _plan(mu=0.01)
    assert near.momentum == 0.0
    assert near.step == pytest.approx(0.01 / (0.5 * 100))


def test_the_plan_of_other_losses():
    several = _plan(smoothness=0.5, mu=0.01)
    assert several.step == pytest.approx(0.01 / (0.5 * 100))
    numbers = _plan(smoothness=1.0, classification=False, mu=0.01)
    assert numbers.clip == 0.2
    assert numbers.step == pytest.approx(0.3 * 0.5 * 0.01 / (0.2 * 100))
    # a curvature outside of [.1, 1] counts as the nearer end
    assert _plan(steepest=0.01) == _plan(steepest=0.1)


def test_numbers_are_clipped_less_where_noise_is_small():
    """What is clipped pulls a skewed target to its median, at any budget."""
    numbers = {"smoothness": 1.0, "classification": False, "steepest": 0.2}
    # n mu / steepest is 4 times 8000: twice the least norm
    assert _plan(**numbers, n_records=64_000, mu=0.1).clip == pytest.approx(0.4)
    norms = [_plan(**numbers, mu=mu).clip for mu in (0.001, 0.05, 0.1, 0.2, 1.0, 5.0)]
    assert norms == sorted(norms)
    assert (norms[0], norms[-1]) == (0.2, 0.5)


def test_without_noise_there_is_a_plan_all_the_same():
    plan = _plan(mu=float("inf"))
    assert np.isfinite(plan.step)
    assert plan.clip == 0.75
