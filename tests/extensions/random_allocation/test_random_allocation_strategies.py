"""Strategies of correlated noise: what is accounted for, and what is executed."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, minimize_scalar

from skpuffer.extensions.random_allocation.strategies._families import columns_cost
from skpuffer.extensions.random_allocation.strategies._optimised import (
    _buffered_start,
    banded_cost,
    buffered_cost,
    inverse_cost,
)
from skpuffer.noise.strategies import (
    BandedRows,
    BufferedToeplitz,
    InverseToeplitz,
    NoiseStrategy,
    PrefixSumTree,
    Restarted,
    Toeplitz,
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    identity,
    prefix_sum_tree,
    restarted,
)
from skpuffer.privacy._written import from_plain
from tests.refused import refused

STEPS = 40

#: One of each class, and of each family.
STRATEGIES = {
    "identity": identity(),
    "scaled": Toeplitz((2.0,)),
    "square root": banded_square_root(4),
    "longer than the run": banded_square_root(STEPS + 3),
    "signed": Toeplitz((2.0, -0.5, 0.3)),
    "inverse square root": banded_inverse_square_root(5),
    "long inverse": banded_inverse_square_root(STEPS + 3),
    "buffers": BufferedToeplitz((0.9, 0.5), (0.12, 0.25)),
    "rows": BandedRows.of_matrix(banded_square_root(6).matrix(STEPS)),
    "banded factorization": banded_matrix_factorization(STEPS, 4),
    "columns": banded_matrix_factorization(STEPS, 4, toeplitz=False),
    "inverse factorization": banded_inverse_factorization(STEPS, 4),
    "optimised buffers": buffered_linear_toeplitz(STEPS, 2),
    "tree": prefix_sum_tree(STEPS),
    "restarted": restarted(banded_square_root(3), every=7),
    "restarted tree": restarted(prefix_sum_tree(8), every=8),
}
each_strategy = pytest.mark.parametrize(
    "strategy", STRATEGIES.values(), ids=list(STRATEGIES)
)


def mixing(strategy, n_steps):
    """What each draw adds to the noise of each step."""
    unit = np.eye(strategy.n_rows(n_steps))
    return np.array(list(strategy.stream(iter(unit), n_steps)))


def dense_means(strategy, n_batches, n_steps):
    matrix = np.abs(strategy.matrix(n_steps))
    return np.array([matrix[:, i::n_batches].sum(axis=1) for i in range(n_batches)])


def gram(strategy, n_batches, n_steps):
    means = strategy.means(n_batches, n_steps)
    return means @ means.T


# -- coefficients, to all digits ---------------------------------------------------


def test_square_roots_have_their_coefficients():
    root, inverse = banded_square_root(6), banded_inverse_square_root(6)
    assert root.column == (1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375)
    expected = (1, -0.5, -0.125, -0.0625, -0.0390625, -0.02734375)
    assert inverse.column == expected
    # the square of the root are the prefix sums, and the inverse is its own
    square = banded_square_root(9).matrix(9) @ banded_square_root(9).matrix(9)
    np.testing.assert_allclose(square, np.tril(np.ones((9, 9))), atol=1e-15)
    product = banded_square_root(9).matrix(9) @ np.linalg.inv(
        banded_inverse_square_root(9).matrix(9)
    )
    np.testing.assert_allclose(product @ product, square @ np.linalg.inv(square))


@pytest.mark.parametrize(
    "bandwidth, column",
    [
        (2, [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (3, [1, 0.5, 0.375, 0.25, 0.171875, 0.1171875]),
    ],
)
def test_banded_inverses_have_their_first_column(bandwidth, column):
    found = banded_inverse_square_root(bandwidth).coefficients(6)
    np.testing.assert_array_equal(found, column)


def test_means_and_gram_matrices_of_small_runs():
    root = banded_square_root(2)
    np.testing.assert_array_equal(
        root.means(3, 6),
        [[1, 0.5, 0, 1, 0.5, 0], [0, 1, 0.5, 0, 1, 0.5], [0, 0, 1, 0.5, 0, 1]],
    )
    np.testing.assert_array_equal(
        gram(root, 3, 6), [[2.5, 1, 0.5], [1, 2.5, 1], [0.5, 1, 2.25]]
    )
    np.testing.assert_allclose(
        gram(banded_inverse_square_root(2), 3, 6),
        [
            [2.9736328125, 1.697265625, 1.26953125],
            [1.697265625, 2.89453125, 1.5390625],
            [1.26953125, 1.5390625, 2.578125],
        ],
        rtol=1e-15,
    )
    longer = gram(banded_square_root(3), 10, 20)
    np.testing.assert_array_equal(longer[0, :4], [2.78125, 1.375, 0.75, 0])
    np.testing.assert_array_equal(longer[0, -2:], [0.375, 0.6875])
    assert longer[9, 9] == 2.390625


# -- every strategy ----------------------------------------------------------------


@each_strategy
@pytest.mark.parametrize("dim", [1, 5, 3000])
def test_the_noise_solves_for_its_draws(strategy, dim):
    # of few numbers in long blocks, and of many in short ones
    draws = np.random.default_rng(0).normal(size=(strategy.n_rows(STEPS), dim))
    before = draws.copy()
    noise = np.array(list(strategy.stream(iter(draws), STEPS)))
    np.testing.assert_array_equal(draws, before)
    matrix = strategy.matrix(STEPS)
    if len(matrix) == STEPS:
        expected = solve_triangular(matrix, draws, lower=True)
        np.testing.assert_allclose(noise, expected, rtol=0, atol=1e-12)


@each_strategy
def test_what_is_released_is_made_of_what_is_accounted_for(strategy):
    # x + B Z = B (C x + Z) if B C is the identity
    executed = mixing(strategy, STEPS)
    assert executed.shape == (STEPS, strategy.n_rows(STEPS))
    recovered = executed @ strategy.matrix(STEPS)
    np.testing.assert_allclose(recovered, np.eye(STEPS), atol=1e-12)


@each_strategy
def test_noise_of_a_step_is_of_rows_that_are_complete(strategy):
    # else a gradient would be answered by noise of which a later row says more: rows
    # come in the order of the last step they hold, and no noise reads a later one
    matrix, executed = strategy.matrix(STEPS), mixing(strategy, STEPS)
    ends = np.array([np.flatnonzero(row).max() for row in matrix])
    assert np.all(np.diff(ends) >= 0)
    for step in range(STEPS):
        np.testing.assert_allclose(executed[step, ends > step], 0, atol=1e-15)


@each_strategy
@pytest.mark.parametrize("n_batches", [1, 3, 7, 8, STEPS, STEPS + 5])
def test_means_are_sums_of_columns(strategy, n_batches):
    found = strategy.means(n_batches, STEPS)
    expected = dense_means(strategy, n_batches, STEPS)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    size = np.linalg.norm(expected, axis=1).max()
    assert strategy.sensitivity(n_batches, STEPS) == pytest.approx(size, rel=1e-12)


@each_strategy
def test_prefix_errors_are_those_of_the_noise(strategy):
    sums = np.cumsum(mixing(strategy, STEPS), axis=0)
    expected = np.linalg.norm(sums, axis=1)
    found = strategy.prefix_errors(STEPS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # the same by the rows that are streamed, as of a strategy without a closed form
    by_stream = NoiseStrategy.prefix_errors(strategy, STEPS)
    np.testing.assert_allclose(by_stream, expected, rtol=1e-12)
    assert strategy.max_error(STEPS) == pytest.approx(expected.max())
    assert strategy.mean_error(STEPS) == pytest.approx(np.sqrt(np.mean(expected**2)))


@each_strategy
def test_bands_are_as_wide_as_is_said(strategy):
    if strategy.bandwidth is None:
        return
    rows, columns = np.nonzero(strategy.matrix(STEPS))
    if isinstance(strategy, Restarted) and strategy.n_rows(STEPS) != STEPS:
        return
    assert np.max(rows - columns) < strategy.bandwidth


@each_strategy
def test_strategies_are_plain_data(strategy):
    plain = json.loads(json.dumps(strategy.to_dict(), allow_nan=False))
    for copy in (from_plain(plain), pickle.loads(pickle.dumps(strategy))):
        assert copy == strategy
        assert hash(copy) == hash(strategy)
        np.testing.assert_array_equal(copy.means(3, STEPS), strategy.means(3, STEPS))
    with pytest.raises(AttributeError):
        strategy.column = (1.0,)


def test_strategies_differ_by_class_and_numbers():
    assert Toeplitz((1.0, 0.5)) != InverseToeplitz((1.0, 0.5))
    assert Toeplitz((1.0, 0.5)) != Toeplitz((1.0, 0.4))
    assert Toeplitz((1, 0.5)) == Toeplitz((np.float64(1), 0.5))


def test_only_the_identity_is_one():
    assert [name for name, s in STRATEGIES.items() if s.is_identity] == ["identity"]
    assert Toeplitz((1.0, 0.0)).is_identity
    assert restarted(identity(), every=3).is_identity
    assert banded_inverse_square_root(1).is_identity


# -- properties --------------------------------------------------------------------

columns = st.lists(st.floats(-0.3, 0.3), min_size=0, max_size=3).map(
    lambda tail: (1.0, *tail)
)


@settings(deadline=None)
@given(
    column=columns,
    kind=st.sampled_from([Toeplitz, InverseToeplitz]),
    n_batches=st.integers(1, 9),
    n_steps=st.integers(1, 25),
    every=st.integers(1, 9),
)
def test_means_of_any_run(column, kind, n_batches, n_steps, every):
    strategy = kind(column)
    rows = BandedRows.of_matrix(strategy.matrix(n_steps))
    for each in (strategy, rows, Restarted(strategy, every), PrefixSumTree(n_steps)):
        found = each.means(n_batches, n_steps)
        expected = dense_means(each, n_batches, n_steps)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        rows.prefix_errors(n_steps), strategy.prefix_errors(n_steps), rtol=1e-9
    )


@settings(deadline=None)
@given(column=columns, scale=st.floats(0.1, 10), n_steps=st.integers(1, 25))
def test_scale_goes_from_errors_to_means(column, scale, n_steps):
    one, other = Toeplitz(column), Toeplitz(tuple(scale * c for c in column))
    np.testing.assert_allclose(
        other.prefix_errors(n_steps) * scale, one.prefix_errors(n_steps), rtol=1e-9
    )
    np.testing.assert_allclose(
        other.means(3, n_steps), scale * one.means(3, n_steps), rtol=1e-9, atol=1e-15
    )
    # C, and not |C|, is what sums are solved for
    signed = np.array(list(other.stream(iter(np.eye(n_steps)), n_steps)))
    assert np.allclose(signed * scale, mixing(one, n_steps))


@settings(deadline=None, max_examples=50)
@given(
    decays=st.lists(st.floats(0.05, 0.95), min_size=1, max_size=3),
    total=st.floats(0.01, 0.8),
    n_steps=st.integers(1, 20),
)
def test_buffers_invert_their_coefficients(decays, total, n_steps):
    weights = tuple(total / len(decays) for _ in decays)
    strategy = BufferedToeplitz(tuple(decays), weights)
    steps = np.arange(1, n_steps)[:, np.newaxis] - 1
    column = [1.0, *(np.array(decays) ** steps @ np.array(weights))]
    np.testing.assert_allclose(strategy.coefficients(n_steps), column, rtol=1e-12)
    product = np.convolve(column, strategy.inverse_coefficients(n_steps))[:n_steps]
    np.testing.assert_allclose(product, np.eye(n_steps)[0], atol=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 8, 100])
def test_the_tree_has_a_row_for_each_node_it_completes(n_steps):
    tree = prefix_sum_tree(n_steps)
    matrix = tree.matrix(n_steps)
    sizes = sorted(matrix.sum(axis=1), reverse=True)
    expected = [
        2**level
        for level in range(n_steps.bit_length())
        for _ in range(n_steps // 2**level)
    ]
    assert sizes == sorted(expected, reverse=True)
    # all rows differ: no node is paid for twice
    assert len(np.unique(matrix, axis=0)) == len(matrix) == tree.n_rows(n_steps)
    # a step is in no more nodes than there are levels
    levels = tree.sensitivity(n_steps, n_steps) ** 2
    assert levels == pytest.approx(n_steps.bit_length())


def test_the_tree_takes_the_best_estimate_from_below():
    # the last prefix is one node: what is best of it and of the nodes below it is what
    # generalised least squares takes
    tree = prefix_sum_tree(8)
    matrix = tree.matrix(8)
    variance = np.ones(8) @ np.linalg.inv(matrix.T @ matrix) @ np.ones(8)
    assert tree.prefix_errors(8)[-1] ** 2 == pytest.approx(variance)
    # Honaker's 1 / (2 (1 - 2^-levels)) of the variance of one node
    assert variance == pytest.approx(1 / (2 * (1 - 2.0**-4)))


def test_blocks_that_are_no_epochs_are_counted():
    # a batch is not at the same place of every block
    found = restarted(prefix_sum_tree(4), every=4).means(3, 11)
    expected = dense_means(restarted(prefix_sum_tree(4), every=4), 3, 11)
    np.testing.assert_array_equal(found, expected)


# -- optimised ---------------------------------------------------------------------

COSTS = {
    "banded": (banded_cost, banded_square_root(5).column[1:]),
    "inverse": (inverse_cost, np.log(banded_square_root(5).column[1:])),
    "buffered": (buffered_cost, _buffered_start(12, 2)),
}


@pytest.mark.parametrize("n_batches", [4, 5, 12])
@pytest.mark.parametrize("objective", ["mean", "max"])
@pytest.mark.parametrize("kind", COSTS)
def test_gradients_are_slopes(kind, objective, n_batches):
    make, start = COSTS[kind]
    cost = make(12, n_batches, objective)
    x = np.asarray(start) * np.random.default_rng(0).uniform(0.8, 1.1, len(start))
    _, gradient = cost(x)
    steps = 1e-6 * np.eye(len(x))
    slopes = [(cost(x + step)[0] - cost(x - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def error_of(strategy, n_steps, n_batches, objective="mean"):
    """Error at unit sensitivity, from dense matrices."""
    inverse = np.linalg.inv(strategy.matrix(n_steps))
    errors = np.linalg.norm(np.tril(np.ones((n_steps,) * 2)) @ inverse, axis=1)
    error = errors.max() if objective == "max" else np.sqrt(np.mean(errors**2))
    means = dense_means(strategy, n_batches, n_steps)
    return error * np.linalg.norm(means, axis=1).max()


@pytest.mark.parametrize("objective", ["mean", "max"])
@pytest.mark.parametrize(
    "n_steps, n_batches", [(1, 1), (2, 2), (30, 30), (60, 10), (200, 200)]
)
@pytest.mark.parametrize("width", [1, 2, 6])
def test_optimised_ones_beat_square_roots(n_steps, n_batches, width, objective):
    run = n_steps, n_batches, objective
    pairs = [
        (banded_matrix_factorization, banded_square_root),
        (banded_inverse_factorization, banded_inverse_square_root),
    ]
    for optimised, root in pairs:
        best = error_of(optimised(n_steps, width, n_batches, objective), *run)
        assert best <= error_of(root(width), *run) * (1 + 1e-12)
        if width > 1 and n_steps > 2:
            assert best < 0.999 * error_of(root(width), *run)
    buffers = buffered_linear_toeplitz(n_steps, width, n_batches, objective)
    assert error_of(buffers, *run) <= error_of(identity(), *run) * (1 + 1e-9)


def test_optimised_ones_have_no_slope():
    best = banded_matrix_factorization(100, 5)
    _, gradient = banded_cost(100, 100, "mean")(
        np.array(best.column[1:]) / best.column[0]
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-7)
    assert np.linalg.norm(best.column) == pytest.approx(1)
    inverse = banded_inverse_factorization(100, 5)
    _, gradient = inverse_cost(100, 100, "mean")(np.log(np.cumsum(inverse.column)[1:]))
    np.testing.assert_allclose(gradient, 0, atol=1e-7)


def test_the_best_of_two_steps_is_known():
    # C = [[1, 0], [x, 1]]: prefix errors 1 and 1 + (1 - x)^2, sensitivity 1 + x^2
    found = minimize_scalar(
        lambda x: (2 + (1 - x) ** 2) * (1 + x**2) / 2, bounds=(0, 1), method="bounded"
    )
    for best in (
        banded_matrix_factorization(2, 2),
        banded_inverse_factorization(2, 2),
        buffered_linear_toeplitz(2, 1),
    ):
        assert error_of(best, 2, 2) ** 2 == pytest.approx(found.fun, rel=1e-9)


@pytest.mark.parametrize("objective", ["mean", "max"])
def test_the_best_is_that_of_a_dense_search(objective):
    n_steps, width = 9, 3

    def cost(x):
        matrix = sum(c * np.eye(n_steps, k=-lag) for lag, c in enumerate((1.0, *x)))
        sums = np.tril(np.ones((n_steps,) * 2)) @ np.linalg.inv(matrix)
        errors = np.sum(sums**2, axis=1)
        error = errors.max() if objective == "max" else errors.mean()
        return error * np.sum(matrix[:, 0] ** 2)

    found = minimize(cost, [0.3, 0.2], method="Nelder-Mead", options={"xatol": 1e-9})
    best = banded_matrix_factorization(n_steps, width, objective=objective)
    squared = error_of(best, n_steps, n_steps, objective) ** 2
    assert squared == pytest.approx(found.fun, rel=1e-7)


def test_no_factorization_is_below_the_bound_of_all():
    # singular values of the prefix sums: the least of all matrices for the mean
    n_steps = 50
    values = np.linalg.svd(np.tril(np.ones((n_steps,) * 2)), compute_uv=False)
    least = values.sum() / n_steps
    for best in (
        banded_matrix_factorization(n_steps, n_steps),
        banded_inverse_factorization(n_steps, n_steps),
        buffered_linear_toeplitz(n_steps),
    ):
        assert least < error_of(best, n_steps, n_steps) < 1.1 * least


def test_gradients_of_columns_are_slopes():
    rng = np.random.default_rng(0)
    x = np.array(banded_square_root(3).column)[:, np.newaxis] * rng.uniform(1, 2, 7)
    _, gradient = columns_cost(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        slope = (columns_cost(x + step)[0] - columns_cost(x - step)[0]) / 2e-6
        assert gradient[at] == pytest.approx(slope, abs=1e-7)
    # the last ones are below the last row
    assert not gradient[1, -1]
    assert not gradient[2, -2:].any()


@pytest.mark.parametrize("n_steps, width", [(1, 1), (7, 1), (20, 4), (150, 8)])
def test_columns_that_differ_are_better_than_equal_ones(n_steps, width):
    equal = banded_matrix_factorization(n_steps, width)
    rows = banded_matrix_factorization(n_steps, width, toeplitz=False)
    rows.check_run(n_steps)
    matrix = rows.matrix(n_steps)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=0), 1, rtol=1e-12)
    assert rows.bandwidth == width
    better = error_of(rows, n_steps, n_steps) / error_of(equal, n_steps, n_steps)
    assert better <= 1 + 1e-12
    if width > 1:
        assert better < 0.995


def test_columns_that_differ_are_for_some_runs_only():
    for more in ({"objective": "max"}, {"n_batches": 3}):
        with refused(ValueError, "strategy.non_toeplitz_unsupported"):
            banded_matrix_factorization(20, 4, toeplitz=False, **more)


def test_optimised_ones_are_found_once():
    assert banded_matrix_factorization(50, 3) is banded_matrix_factorization(50, 3)
    # more diagonals than steps are of no use
    assert banded_matrix_factorization(5, 9).bandwidth == 5


# -- refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Toeplitz, InverseToeplitz])
@pytest.mark.parametrize(
    "column",
    [(), (0.0,), (-1.0, 0.5), (1.0, np.nan), (np.inf,), (1.0, (0.5,)), ((1.0,),)],
)
def test_columns_that_are_none_are_refused(kind, column):
    with refused(
        ValueError,
        (
            "parameter.array_not_finite",
            "parameter.not_positive",
            "strategy.column_empty",
        ),
    ):
        kind(column)


@pytest.mark.parametrize(
    "column", [(1.0, 1.0), (1.0, -1.0), (1.0, 2.0), (1.0, 0.5, 2.0), (1.0, 0.0, 1.0)]
)
def test_noise_that_would_grow_is_refused(column):
    with refused(ValueError, "strategy.column_noise_grows"):
        Toeplitz(column)


@settings(deadline=None)
@given(tail=st.lists(st.integers(-200, 200).map(lambda k: k / 100), max_size=4))
def test_growth_is_read_off_the_zeros(tail):
    zeros = np.roots([*tail[::-1], 1.0])
    smallest = np.abs(zeros).min(initial=np.inf)
    # at the circle itself rounding decides
    if abs(smallest - 1) < 1e-6:
        return
    if smallest > 1:
        assert Toeplitz((1.0, *tail)).column == (1.0, *tail)
    else:
        with refused(ValueError, "strategy.column_noise_grows"):
            Toeplitz((1.0, *tail))


def test_buffers_that_are_none_are_refused():
    for decays, weights, match in [
        ((), (), "one number for each"),
        ((0.5,), (0.1, 0.2), "one number for each"),
        ((1.0,), (0.1,), "'decays' must be in the range"),
        ((-0.5,), (0.1,), "'decays'"),
        ((0.5,), (-0.1,), "'weights'"),
        ((0.5,), (1.6,), "would grow from step to step"),
    ]:
        with pytest.raises(ValueError, match=match):
            BufferedToeplitz(decays, weights)


def test_rows_that_are_none_are_refused():
    for rows in ((), ((),), ((1.0, 0.0), (1.0,)), ((np.nan,),), (1.0, 2.0)):
        with refused(
            ValueError, ("parameter.array_not_finite", "strategy.rows_shape_wrong")
        ):
            BandedRows(rows)
    with refused(ValueError, "parameter.not_positive", name="rows"):
        BandedRows(((1.0,), (0.0,)))
    with refused(ValueError, "strategy.rows_not_lower"):
        BandedRows(((1.0, 0.5), (1.0, 0.5)))
    with refused(ValueError, "strategy.rows_noise_grows"):
        BandedRows.of_matrix(np.eye(60) + 2 * np.eye(60, k=-1))
    with refused(ValueError, "strategy.matrix_not_square"):
        BandedRows.of_matrix(np.ones((2, 3)))
    with refused(ValueError, "strategy.matrix_not_lower_triangular"):
        BandedRows.of_matrix(np.ones((2, 2)))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_growth_of_rows_is_that_in_units_of_the_diagonal(unit):
    with refused(ValueError, "strategy.rows_noise_grows"):
        BandedRows.of_matrix(unit * (np.eye(40) + 2 * np.eye(40, k=-1)))
    BandedRows.of_matrix(unit * (np.eye(40) + 0.5 * np.eye(40, k=-1)))


def test_negative_entries_are_accounted_for_by_their_sizes():
    matrix = np.array([[1.0, 0.0], [-0.5, 1.0]])
    rows = BandedRows.of_matrix(matrix)
    np.testing.assert_array_equal(rows.means(1, 2), [[1.0, 1.5]])
    np.testing.assert_array_equal(rows.matrix(2), matrix)


def test_runs_of_other_lengths_are_refused():
    rows = BandedRows(((1.0,),) * 3)
    assert repr(rows) == "BandedRows(<3 rows of 1 diagonals>)"
    for strategy in (rows, prefix_sum_tree(3)):
        strategy.check_run(3)
        with refused(
            ValueError, ("strategy.rows_steps_mismatch", "strategy.tree_steps_mismatch")
        ):
            strategy.check_run(4)
        with refused(
            ValueError, ("strategy.rows_steps_mismatch", "strategy.tree_steps_mismatch")
        ):
            Restarted(strategy, every=4)
    with refused(ValueError, "strategy.rows_steps_mismatch", n_rows=3, n_steps=4):
        rows.means(2, 4)
    with refused(ValueError, "strategy.rows_steps_mismatch", n_rows=3, n_steps=4):
        next(rows.stream(iter(np.ones((4, 1))), 4))


def test_what_is_no_number_of_steps_is_refused():
    with refused(TypeError, "strategy.restarted_wrong_type"):
        Restarted((1.0,), every=3)
    with refused(ValueError, "parameter.count_too_small", name="every"):
        restarted(banded_square_root(2), every=0)
    with refused(ValueError, "parameter.count_too_small", name="n_steps"):
        prefix_sum_tree(0)
    for make in (banded_square_root, banded_inverse_square_root):
        with refused(ValueError, "parameter.count_too_small", name="bandwidth"):
            make(0)
    for make in (banded_matrix_factorization, banded_inverse_factorization):
        with refused(ValueError, "parameter.count_too_small", name="bandwidth"):
            make(5, 0)
        with refused(ValueError, "parameter.option_unknown", name="objective"):
            make(5, 2, objective="median")
    with refused(ValueError, "parameter.count_too_small", name="n_batches"):
        buffered_linear_toeplitz(5, n_batches=0)
    with refused(ValueError, "parameter.count_too_small", name="n_buffers"):
        buffered_linear_toeplitz(5, 0)


def test_an_inverse_that_overflows_is_refused():
    # what a record adds would be no number, and accounted for as none
    with refused(ValueError, "strategy.column_inverse_overflows", n_steps=2000):
        InverseToeplitz((1.0, -2.0)).means(10, 2000)


@pytest.mark.parametrize("kind", [Toeplitz, InverseToeplitz])
@pytest.mark.parametrize("column", [(1.0, 0.5), (1.0, 0.0, 0.1), (2.0,), (0.5, 0.0)])
def test_what_differs_from_the_identity_in_one_number_is_none(kind, column):
    """It is what tells accountants that steps are independent."""
    assert not kind(column).is_identity
    assert not restarted(kind(column), every=3).is_identity
    assert kind((1.0, 0.0, 0.0)).is_identity


def test_noise_that_grows_is_refused_and_no_other():
    """By the zeros of the polynomial, of any degree and of any signs."""
    rng = np.random.default_rng(8)
    found = {True: 0, False: 0}
    for _ in range(400):
        column = np.append(1.0, rng.normal(size=rng.integers(1, 6)) * rng.uniform(0, 1))
        inside = np.abs(np.roots(column[::-1])).min()
        # not so near the circle that rounding would decide
        if abs(inside - 1) < 1e-3:
            continue
        grows = bool(inside < 1)
        found[grows] += 1
        if grows:
            with refused(ValueError, "strategy.column_noise_grows"):
                Toeplitz(tuple(column))
        else:
            Toeplitz(tuple(column))
    assert min(found.values()) > 50


def test_a_block_has_no_more_diagonals_than_steps():
    assert restarted(banded_square_root(4), every=2).bandwidth == 2
    assert restarted(banded_square_root(2), every=4).bandwidth == 2
    assert restarted(banded_inverse_square_root(2), every=3).bandwidth == 3
