import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.preprocessing import RowNormClipper
from skpuffer.utils._clipping import clip_rows
from tests.refused import refused

ORDERS = (1, 2, math.inf)
ROWS = hnp.arrays(
    float,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
    elements=st.floats(-1e200, 1e200),
)


def norms(X, ord):
    return np.linalg.norm(X, ord=ord, axis=1)


@given(ROWS, st.floats(1e-3, 1e3), st.sampled_from(ORDERS))
def test_no_row_is_longer_than_the_bound(X, norm, ord):
    clipped = clip_rows(X, norm, ord)
    assert np.all(norms(clipped, ord) <= norm * (1 + 1e-12))
    # and the bound is used: what was longer now has it, direction kept
    largest = np.abs(X).max(axis=1)
    safe = largest < 1e150
    long = safe & (norms(np.where(safe[:, None], X, 0), ord) > norm * (1 + 1e-9))
    np.testing.assert_allclose(norms(clipped[long], ord), norm)
    unit = X[long] / largest[long, None]
    # numbers below the smallest normal one have few digits
    np.testing.assert_allclose(
        clipped[long] / np.abs(clipped[long]).max(axis=1, keepdims=True),
        unit,
        atol=1e-300,
    )


@given(ROWS, st.floats(1e-3, 1e3), st.sampled_from(ORDERS))
def test_sparse_agrees_with_dense(X, norm, ord):
    dense = clip_rows(X, norm, ord)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        clipped = clip_rows(make(X), norm, ord)
        assert clipped.format == "csr"
        np.testing.assert_allclose(clipped.toarray(), dense, atol=1e-300)


def test_rows_within_the_bound_are_left_alone():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-1e-3, 0.0]])
    assert clip_rows(X, 5.0) is X
    np.testing.assert_array_equal(clip_rows(X, 1.0)[1:], X[1:])


def test_input_is_never_changed():
    X = np.array([[3.0, 4.0]])
    S = sparse.csr_matrix(X)
    clip_rows(X, 1.0)
    clip_rows(S, 1.0)
    np.testing.assert_array_equal(X, [[3.0, 4.0]])
    np.testing.assert_array_equal(S.toarray(), [[3.0, 4.0]])


def test_a_square_that_overflows_does_not_pass():
    clipped = clip_rows(np.array([[3e200, 4e200], [0.0, 0.0]]), 1.0)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.0, 0.0]])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_rows_that_cannot_be_compared_are_refused(bad):
    with refused(ValueError, "clipping.rows_not_finite"):
        clip_rows(np.array([[bad, 0.0], [1.0, 1.0]]), 1.0)


@pytest.mark.parametrize("norm", [0, -1.0, math.inf, math.nan])
def test_bad_norm(norm):
    with refused(ValueError, ("parameter.is_nan", "parameter.not_positive")):
        clip_rows(np.eye(2), norm)
    with refused(ValueError, ("parameter.is_nan", "parameter.not_positive")):
        RowNormClipper(norm).fit(np.eye(2))


@pytest.mark.parametrize("ord", [0, 3, "2", None])
def test_bad_order(ord):
    with refused(ValueError, "clipping.norm_order_unknown"):
        RowNormClipper(ord=ord).fit(np.eye(2))
    with refused(ValueError, "clipping.norm_order_unknown"):
        RowNormClipper(ord=ord).transform(np.eye(2))


def test_transformer_needs_no_fit_and_keeps_the_dtype():
    X = np.array([[3, 4], [6, 8]], dtype=np.float32)
    out = RowNormClipper(5.0).transform(X)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, [[3, 4], [3, 4]])
    out[:] = 0
    assert X[0, 0] == 3  # not the caller's own rows


@pytest.mark.parametrize(
    "make, kind", [(pd.DataFrame, "pandas"), (pl.DataFrame, "polars")]
)
def test_names_and_set_output(make, kind):
    frame = make({"a": [3.0, 0.0], "b": [4.0, 1.0]})
    clipper = RowNormClipper().set_output(transform=kind).fit(frame)
    out = clipper.transform(frame)
    assert type(out) is type(frame)
    assert list(out.columns) == ["a", "b"]
    assert list(clipper.get_feature_names_out()) == ["a", "b"]
    np.testing.assert_allclose(out.to_numpy(), [[0.6, 0.8], [0.0, 1.0]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([RowNormClipper(0.5, ord=math.inf), RowNormClipper(ord=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
