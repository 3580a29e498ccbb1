"""What a record moves a sum by, in floating point: sums that stick, and their slack."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpuffer.releases import GradientRelease
from skpuffer.training import (
    Hinge,
    LinearGradients,
    Multinomial,
    PerceptronGradients,
    Squared,
)
from skpuffer.training._rows import (
    _FLOAT32_ROWS,
    _FLOAT32_TERMS,
    Rows,
    largest_factor,
)
from tests.refused import refused


def dense(entries, d):
    X = np.zeros((len(entries), d), np.float32)
    X[:, 0] = entries
    return X


def csr(entries, d):
    at = np.flatnonzero(entries)
    places = at, np.zeros_like(at)
    return sparse.csr_array((entries[at], places), shape=(len(entries), d))


FORMS = {"dense": dense, "csr": csr}


def sticky(n, lanes, whole):
    """Entries whose sum in float32 reaches a power of two with the last of `whole`.

    Then what comes is lost by rounding; short of it, half a unit less, it is not.
    `lanes` copies of it stand side by side, as some kernels keep so many sums. Returns
    the place where the worlds differ, too.
    """
    per = n // lanes
    ones = int(np.log2(per // 2 - 2))
    lane = np.full(per, -0.75 * 2.0 ** (ones - 24))
    lane[: 2**ones] = 1.0
    lane[2**ones] = 0.0
    entries = np.zeros(n, np.float32)
    entries[: per * lanes] = np.repeat(lane, lanes)
    place = lanes * 2**ones
    entries[place] = float(whole)
    return entries, place


def totals(form, entries, d, *indices):
    """Sums of a table over some of its rows, one for each choice of them."""
    n = len(entries)
    if form == "intercept":
        # the constant is all there is to a record; its target does the rest
        gradients = LinearGradients(Squared(), np.zeros((n, d), np.float32), -entries)
    else:
        X = FORMS[form](entries, d)
        gradients = LinearGradients(Squared(), X, -np.ones(n), intercept_scale=0.0)
    release = GradientRelease(n_records=n, n_steps=1, sampling="full_batch")
    at = np.zeros(gradients.dim)
    return [gradients.clipped_sum(at, index, release) for index in indices]


@pytest.mark.parametrize("n", [1000, 4097, 12_000, 2**14, 2**14 + 1, 400_000])
@pytest.mark.parametrize("form", ["dense", "csr", "intercept"])
@pytest.mark.parametrize("d", [1, 20])
def test_one_record_moves_no_sum_that_sticks(form, d, n):
    for lanes in (1, 2, 4, 8, 16) if n < 2**15 else (1, 8):
        (less, _), (more, place) = (sticky(n, lanes, world) for world in (False, True))
        sums = totals(form, more, d, None, np.arange(n))
        for one, other in zip(
            sums, totals(form, less, d, None, np.arange(n)), strict=True
        ):
            assert np.abs(one - other).max() <= 1.0
        # nor does one that is not there, so that all behind it move up
        (without,) = totals(form, np.delete(more, place), d, None)
        assert np.abs(sums[0] - without).max() <= 1.0


def test_the_attack_is_real():
    """Plain sums in float32 of the same rows move by many times as much."""
    worlds = [sticky(400_000, 1, world)[0] for world in (False, True)]
    sums = [np.cumsum(entries, dtype=np.float32)[-1] for entries in worlds]
    assert abs(float(sums[1]) - float(sums[0])) > 100


@pytest.mark.parametrize("n", [1000, 12_000, 30_000])
def test_one_record_moves_no_sum_of_a_perceptron_that_sticks(n):
    release = GradientRelease(
        n_records=n, n_steps=1, sampling="full_batch", clip_norm=3.0
    )
    for lanes in (1, 4, 16):
        sums = []
        for world in (False, True):
            X = np.zeros((n, 2), np.float32)
            X[:, 0], _ = sticky(n, lanes, world)
            gradients = PerceptronGradients(
                Squared(), X, np.zeros(n), n_hidden=2, activation="identity"
            )
            w = np.zeros(gradients.dim)
            w[gradients.blocks[0]] = 1.0  # the first hidden unit counts
            w[-1] = -1.0  # residuals are -1
            sums.append(gradients.clipped_sum(w, None, release))
        assert np.linalg.norm(sums[1] - sums[0]) <= 3.0


@given(
    st.integers(1, 4096),
    st.integers(1, 40),
    st.sampled_from([(), (1,), (3,)]),
    st.integers(0, 2**32 - 1),
)
def test_sums_are_off_by_no_more_than_half_the_slack(n, d, outputs, seed):
    rng = np.random.default_rng(seed)
    # all of one sign: sums are as large as they can be
    X = np.abs(rng.standard_normal((n, d))).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    factors = rng.uniform(0.5, 1.0, size=(n, *outputs)).astype(np.float32)
    rows = Rows(X)
    ((block, _),) = rows.blocks()
    found = rows.add_up(block, factors)
    exact = X.astype(float).T @ factors.astype(float)
    assert found.shape == exact.shape
    assert found.dtype == np.float64
    length = np.sqrt(np.prod(outputs or (1,)))
    off = np.linalg.norm(found - exact)
    assert off <= rows.slack / 2 * length + 1e-6


def test_slack_is_small_and_the_same_for_all():
    tables = [np.zeros((10**6, 1)), np.ones((20, 3)), sparse.csr_array((5, 2))]
    for X in tables:
        assert Rows(X.astype(np.float32)).slack == pytest.approx(2**-5, rel=0.1)
        assert Rows(X.astype(np.float64)).slack < 1e-3


@pytest.mark.parametrize("unit", [None, 3.0])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (10,)])
@pytest.mark.parametrize("d", [1, 7, 100, 300])
def test_a_row_has_the_same_score_wherever_it_stands(d, shape, kind, unit):
    """Or one record less would change what many others are rounded to."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.standard_normal(d).astype(kind), (4999, 1))
    matrix = rng.standard_normal((d, *shape)).astype(kind)
    rows = Rows(X, unit)
    scores = set()
    for index in [None, *(np.arange(n) for n in (1, 2, 3, 63, 64, 65, 1000, 4998))]:
        for block, select in rows.blocks(index):
            found = rows.scores(block, select, matrix)
            found = found.reshape(len(found), -1)
            scores.update(map(tuple, found[: len(block)].tolist()))
    assert len(scores) == 1


@pytest.mark.parametrize("unit", [None, 0.7])
@pytest.mark.parametrize("loss", [Hinge(), Squared()])
@pytest.mark.parametrize("n", [1000, 4097])
def test_a_record_more_leaves_the_scores_of_all_others(loss, n, unit):
    """Rows at a kink, by parameters that were chosen for it."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, w = (rng.standard_normal(3).astype(np.float32) for _ in range(2))
        w /= x.astype(float) @ w.astype(float)  # a margin of one except for rounding
        X = np.tile(x * (1 if loss == Hinge() else 1e3), (n, 1))
        y = np.ones(n) if loss == Hinge() else np.full(n, 1e3)
        X[-1] *= 1e20  # the record that goes is unlike the others
        sums = []
        for m in (n, n - 1):
            gradients = LinearGradients(
                loss, X[:m], y[:m], intercept_scale=0.0, data_norm=unit
            )
            release = GradientRelease(
                n_records=m, n_steps=1, sampling="full_batch", clip_norm=1e-6
            )
            sums.append(gradients.clipped_sum(w.astype(float), None, release))
        assert np.linalg.norm(sums[0] - sums[1]) <= 1e-6


def test_more_records_than_rounding_allows_are_refused():
    with refused(ValueError, "gradient.sum_rounds_too_much"):
        Rows(np.zeros((3, 1))).check_size(10**9)
    Rows(np.zeros((3, 1))).check_size(10**8)
    Rows(sparse.csr_array((3, 1))).check_size(10**7)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [64, 1024])
def test_a_record_less_leaves_what_goes_back_through_a_perceptron(kind, n):
    """Where classes hardly differ, errors are rounding noise that features blow up."""
    rng, K, h, d = np.random.default_rng(0), 30, 100, 3
    big = kind(1e6 if kind == np.float32 else 1e15)
    for _ in range(3):
        V = np.tile(rng.normal(size=(h, 1)) * float(big) * 0.1, (1, K))
        c = rng.normal(size=K)
        parameters = np.concatenate([np.zeros(d * h + h), V.ravel(), c])
        # the rows that plain products round otherwise when all move up by one
        leaving = np.tile(Multinomial().derivative(c[None].astype(kind), [0]), (n, 1))
        plain = leaving @ V.astype(kind).T, leaving[1:] @ V.astype(kind).T
        flips = 1 + np.flatnonzero(np.any(plain[0][1:] != plain[1], axis=1))
        X = np.zeros((n, d), kind)
        X[flips] = big
        gradients = PerceptronGradients(
            Multinomial(),
            X,
            np.zeros(n, int),
            n_classes=K,
            n_hidden=h,
            activation="tanh",
        )
        release = GradientRelease(n_records=n, batch_size=n // 2, n_steps=1)
        sums = [
            gradients.clipped_sum(parameters, np.arange(first, n), release)
            for first in (0, 1)
        ]
        assert np.linalg.norm(sums[0] - sums[1]) <= 1


def test_the_slack_covers_every_addition_of_a_block():
    # of m rows in slices of s: u m (s + 1) for two tables, and 2 u m of the products,
    # with s m the terms and m at most the rows that are added up so
    unit = 2.0**-24
    least = unit * (_FLOAT32_TERMS + 3 * _FLOAT32_ROWS)
    wide = Rows(np.ones((3, 2))).slack
    assert wide + least <= Rows(np.ones((3, 2), np.float32)).slack <= 2 * least
    assert wide < least / 50


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n", [1, 100, _FLOAT32_ROWS, _FLOAT32_ROWS + 1])
def test_no_more_terms_are_added_up_in_float32_than_the_slack_covers(n, make):
    rows = Rows(make(np.ones((n, 2), np.float32)))
    few = n <= _FLOAT32_ROWS and make is np.asarray
    for index in (None, np.arange(n)):
        for _ in rows.blocks(index):
            assert n * rows._slice_rows <= _FLOAT32_TERMS
            assert (rows._slice_rows > 0) is few


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_beyond_floats_is_infinite(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    lengths = np.array([0, tiny, 1], dtype)
    found = largest_factor(100.0, lengths, 0.0)
    assert found.dtype == dtype
    assert found[:2].tolist() == [np.inf, np.inf]
    assert 99.99 < found[2] < 100


@pytest.mark.parametrize("width", [1, 300])
def test_as_many_rows_are_added_up_as_the_slack_allows(width):
    rows = Rows(np.zeros((3, width)))
    size = rows._block_size

    def share(n):
        # u n (s + 1) within blocks of s, u n (n / s + 1) over them, 2 u n of products
        return 2.0**-53 * n * (size + n / size + 4)

    low, high = 1, 10**12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if share(middle) <= rows.slack else (low, middle)
    rows.check_size(low)
    with refused(ValueError, "gradient.sum_rounds_too_much"):
        rows.check_size(high)
