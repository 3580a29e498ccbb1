"""Rows of any scale are measured, and clipped, as rows of length one are."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from skpuffer.releases import GradientRelease
from skpuffer.training import LinearGradients, PerceptronGradients, Squared
from skpuffer.utils._clipping import (
    clip_rows,
    joint_norms,
    least_norm,
    row_norms,
    upper_norms,
)
from tests.refused import refused

FORMS = {"dense": np.asarray, "csr": sparse.csr_matrix, "array": sparse.csr_array}
SCALES = [
    (np.float32, 1e-30),
    (np.float32, 1e-23),
    (np.float32, 1e30),
    (np.float64, 1e-290),
    (np.float64, 1e-160),
    (np.float64, 1e160),
    (np.float64, 1e300),
]


def exact_norm(row, order):
    """Norm as a number times a power of two that keeps it near one."""
    entries = np.abs(np.asarray(row, dtype=float))
    largest = float(entries.max())
    if largest == 0 or order == math.inf:
        return Fraction(largest)
    shares = (entries / largest).tolist()
    total = math.fsum(x**order for x in shares)
    return Fraction(largest) * Fraction(total ** (1 / order))


def rows(dtype, scale, n=40, d=6):
    """Rows of lengths from a hundredth of a scale to a thousand times it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 3, (n, 1))
    X[::7] = 0.0
    return (X * scale).astype(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, scale", SCALES)
def test_a_row_is_measured_at_any_scale(dtype, scale, form):
    X = rows(dtype, scale)
    for order in (1, 1.5, 2, 3, 40, math.inf):
        for row, length in zip(X, row_norms(FORMS[form](X), order), strict=True):
            truth = exact_norm(row, order)
            gap = abs(Fraction(float(length)) - truth)
            assert gap <= truth * Fraction(1e-14), order


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, scale", [*SCALES, (np.float32, 1.0)])
def test_an_upper_norm_is_no_shorter_and_hardly_longer(dtype, scale, form):
    tiny = 2 * Fraction(float(np.finfo(dtype).tiny))
    for d, order in product((1, 6, 500, 5000), (1, 1.5, 2, math.inf)):
        X = rows(dtype, scale, n=6, d=d)
        lengths = upper_norms(FORMS[form](X), order)
        assert lengths.dtype == dtype
        for row, length in zip(X, lengths, strict=True):
            truth = exact_norm(row, order)
            above = max(truth * Fraction(1.001), tiny)
            assert truth <= Fraction(float(length)) <= above, (d, order)


def test_plain_norms_in_single_precision_are_shorter_than_the_rows():
    X = rows(np.float32, 1.0, n=100, d=500)
    plain = np.sqrt(np.einsum("ij,ij->i", X, X))
    assert any(
        Fraction(float(short)) < exact_norm(row, 2)
        for row, short in zip(X, plain, strict=True)
    )


@pytest.mark.parametrize("d", [1024, 4096])
def test_squares_that_are_lost_one_by_one_are_made_up_for(d):
    """Each is below half a unit in the last place of the sum that it is added to."""
    X = np.full((1, d), math.sqrt(0.99 * 2.0**-24), np.float32)
    # some for each of the sums that run beside one another
    X[0, :64] = 1.0
    truth = exact_norm(X[0], 2)
    # one after the other, in single precision, they would be
    assert Fraction(math.sqrt(np.add.accumulate(X[0] * X[0])[-1])) < truth
    (length,) = upper_norms(X, 2)
    assert truth <= Fraction(float(length)) <= truth * Fraction(1.001)


def test_rows_without_entries_and_room_for_more_are_measured():
    X = sparse.csr_array(np.array([[0.0, 0], [3, 4], [0, 0], [0, 2], [0, 0]]))
    X.data, X.indices = np.append(X.data, 7.0), np.append(X.indices, 0)
    for order, second in ((1, 7.0), (1.5, None), (2, 5.0), (math.inf, 4.0)):
        found = row_norms(X, order)
        assert found[[0, 2, 4]].tolist() == [0, 0, 0]
        assert found[3] == pytest.approx(2)
        assert second is None or found[1] == second
    assert row_norms(sparse.csr_array((3, 2)), 2).tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "dtype, scale",
    [scale for scale in SCALES if 1e-70 <= scale[1] <= 1e70]
    + [(np.float64, 1e-70), (np.float64, 1e70)],
)
def test_no_row_exceeds_the_bound_at_any_scale(dtype, scale, form):
    bound = Fraction(scale) * (1 + Fraction(4 * float(np.finfo(dtype).eps)))
    X = rows(dtype, scale)
    for order in (1, 2, math.inf):
        clipped = clip_rows(FORMS[form](X), scale, order)
        assert clipped.dtype == dtype
        clipped = clipped if form == "dense" else clipped.toarray()
        for row, before in zip(clipped, X, strict=True):
            length = exact_norm(row, order)
            assert length <= bound, order
            if exact_norm(before, order) > scale:  # and the bound is used
                assert length >= 2 * Fraction(scale) - bound, order


def test_rows_as_short_as_squares_that_vanish_are_clipped():
    """In float32 each square of these entries, and so their sum, would be zero."""
    X = np.full((1, 16), 0.9e-23, np.float32)
    assert float(exact_norm(clip_rows(X, 1e-23)[0], 2)) <= 1e-23 * (1 + 1e-6)


def test_a_mixed_table_is_clipped_row_by_row():
    """Blocks of rows that are short, long, tiny and huge, in one table."""
    X = np.zeros((70_000, 3))
    X[5], X[40_000], X[-1] = 1e200, [3e-200, 0, 0], [0.1, 5.0, 0.0]
    clipped = clip_rows(X, 1.0)
    np.testing.assert_allclose(clipped[5], math.sqrt(1 / 3))
    np.testing.assert_array_equal(clipped[40_000], X[40_000])
    assert exact_norm(clipped[-1], 2) <= 1 + 1e-15


def test_entries_stored_in_parts_are_measured_together():
    parts = sparse.csr_matrix(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 2))
    np.testing.assert_allclose(clip_rows(parts, 1.0).toarray(), [[1.0, 0.0]])
    assert parts.nnz == 2  # of the caller's


def test_bounds_beyond_what_parameters_may_be_are_refused():
    for bound in (1e-160, 1e160):
        with refused(ValueError, "parameter.size_not_workable", name="norm"):
            clip_rows(np.ones((2, 2)), bound)


def test_a_bound_too_short_for_the_dtype_is_refused():
    dtype, least = np.float32, least_norm(np.float32)
    clip_rows(np.ones((2, 2), dtype), least)
    with refused(ValueError, "clipping.norm_too_small"):
        clip_rows(np.zeros((2, 2), dtype), least / 2)
    gradients = LinearGradients(Squared(), np.ones((2, 2), dtype), np.ones(2))
    release = GradientRelease(
        n_records=2, n_steps=1, sampling="full_batch", clip_norm=least / 2
    )
    with refused(ValueError, "gradient.clip_norm_too_small"):
        gradients.clipped_sum(np.zeros(3), None, release)


def test_the_least_bounds_are_those_below_which_entries_lose_digits():
    """All entries of so short a row are normal numbers, but for a part of 2**-23."""
    assert least_norm(np.float32) == 2.0**-103
    assert least_norm(np.float64) == 2.0**-970


@pytest.mark.parametrize("order", [0, 0.5, 1.5, 3, -1, math.nan, [2], "2", None])
def test_rows_are_clipped_in_one_of_three_norms(order):
    with refused(ValueError, "clipping.norm_order_unknown"):
        clip_rows(np.ones((2, 2)), 1.0, order)


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan, math.inf])
def test_rows_are_clipped_to_a_length(norm):
    with refused(ValueError, ("parameter.is_nan", "parameter.not_positive")):
        clip_rows(np.ones((2, 2)), norm)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("order", [1, 2, math.inf])
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_not_finite_are_refused_and_not_quoted(form, order, bad):
    X = np.array([[0.1, 0.2], [0.125, bad], [3e300, 4e300]])
    with refused(ValueError, "clipping.rows_not_finite") as caught:
        clip_rows(FORMS[form](X), 1.0, order)
    assert "0.125" not in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_clipped_rows_by_hand(form):
    X = np.array([[3.0, -4.0], [0.0, 0.0], [0.3, 0.4], [-6.0, 8.0]])
    before = X.copy()
    expected = {
        1: [[3 / 7, -4 / 7], [0.0, 0.0], [0.3, 0.4], [-3 / 7, 4 / 7]],
        2: [[0.6, -0.8], [0.0, 0.0], [0.3, 0.4], [-0.6, 0.8]],
        math.inf: [[0.75, -1.0], [0.0, 0.0], [0.3, 0.4], [-0.75, 1.0]],
    }
    for order, rows_ in expected.items():
        clipped = clip_rows(FORMS[form](X), 1.0, order)
        clipped = clipped if form == "dense" else clipped.toarray()
        np.testing.assert_allclose(clipped, rows_, rtol=1e-14)
    np.testing.assert_array_equal(X, before)
    # by default in l2, and whole numbers as others
    clipped = clip_rows(FORMS[form](np.array([[3, 4]])), 1.0)
    assert clipped.dtype == np.float64
    np.testing.assert_allclose(clipped @ np.ones(2), [1.4])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order, share", [(1, 0.5), (2, math.sqrt(0.5)), (math.inf, 1)])
@pytest.mark.parametrize("norm", [1.0, 1e-70])
def test_rows_beyond_what_floats_can_measure_are_clipped(norm, order, share, form):
    """Their norm overflows, or their factor is no normal float."""
    X = np.array([[0.5, 0.0], [1.5e308, -1.5e308], [1e300, 1e300], [3.0, 3.0]])
    clipped = clip_rows(FORMS[form](X), norm, order)
    clipped = clipped if form == "dense" else clipped.toarray()
    entry = norm * share
    expected = [[min(0.5, norm), 0], [entry, -entry], [entry, entry], [entry, entry]]
    np.testing.assert_allclose(clipped, expected, rtol=1e-14)


@pytest.mark.parametrize("order", [1, 1.5, 2, math.inf])
def test_norms_of_two_parts(order):
    a, b = np.array([3e-200, 3e200, 0.0]), np.array([4e-200, 4e200, 2.0])
    expected = [
        float(exact_norm(pair, order)) for pair in zip(a.tolist(), b, strict=True)
    ]
    np.testing.assert_allclose(joint_norms(a, b, order), expected, rtol=1e-14)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, math.inf])
@pytest.mark.parametrize("dtype, clip", [(np.float32, 1e-23), (np.float64, 1e-70)])
@pytest.mark.parametrize("model", ["linear", "perceptron"])
def test_no_gradient_exceeds_a_tiny_clip_norm(model, dtype, clip, order):
    """A record of many features and a target so small that its gradient is tiny too."""
    X = np.zeros((1, 300), dtype)
    X[:] = 0.7
    for y in (np.array([clip]), np.array([100 * clip])):
        if model == "linear":
            gradients = LinearGradients(Squared(), X * clip, y * 0 + 1)
            start = np.zeros(gradients.dim)
        else:
            gradients = PerceptronGradients(Squared(), X, y, n_hidden=50)
            start = np.zeros(gradients.dim)
            start[: 300 * 50] = 0.01
        release = GradientRelease(
            n_records=1,
            n_steps=1,
            sampling="full_batch",
            clip_norm=clip,
            clip_order=order,
        )
        total = gradients.clipped_sum(start, None, release)
        assert float(exact_norm(total, order)) <= clip
