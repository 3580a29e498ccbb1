"""Clipped sums against gradients built one by one; how far one record moves them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpuffer.exceptions import Statement
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
    PerceptronGradients,
    Squared,
    train,
)
from skpuffer.training._perceptron import ACTIVATIONS
from skpuffer.utils._clipping import clip_rows
from tests.refused import refused

from .naive import clipped_sum

LOSSES = [
    Logistic(),
    Multinomial(),
    Hinge(),
    HuberHinge(),
    MulticlassHinge(),
    MulticlassHinge(HuberHinge()),
    Squared(),
    Huber(),
]
ORDERS = [1, 1.5, 2, 3, np.inf]
N, D, K = 30, 5, 3
UNITS = [None, 1e-60, 0.1, 1e60]


def table(loss, rng, n=N, d=D):
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 0.1, 1.0, 10.0], size=(n, 1))
    X[rng.random((n, d)) < 0.3] = 0.0
    if not loss.classification:
        return X, 3 * rng.normal(size=n)
    return X, rng.integers(K if loss.indexed else 2, size=n)


def whole(n=N, **clipping):
    return GradientRelease(n_records=n, n_steps=1, sampling="full_batch", **clipping)


def stored(X, form):
    X = X.astype(np.float32 if "32" in form else np.float64)
    return sparse.csr_array(X) if form.startswith("csr") else X


def close(found, expected, form="64"):
    tolerance = 2e-5 if "32" in form else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(
    "order, form",
    [
        *[(order, "dense64") for order in ORDERS],
        *[(2, form) for form in ("dense32", "csr64", "csr32")],
    ],
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_linear_sum_is_that_of_gradients_built_one_by_one(loss, order, form):
    rng = np.random.default_rng(0)
    X, y = table(loss, rng)
    for scale in (0.0, 0.5):
        gradients = LinearGradients(
            loss, stored(X, form), y, n_classes=K, intercept_scale=scale
        )
        w = rng.normal(size=gradients.dim).astype(np.float32).astype(float)
        release = whole(clip_norm=0.7, clip_order=order)
        for index in (None, np.array([3]), np.sort(rng.choice(N, 40))):
            found = gradients.clipped_sum(w, index, release)
            assert found.dtype == np.float64
            close(found, clipped_sum(gradients, w, index, release), form)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Squared()], ids=repr)
def test_weights_and_intercepts_may_be_clipped_apart(loss, order):
    rng = np.random.default_rng(1)
    X, y = table(loss, rng)
    gradients = LinearGradients(loss, X, y, n_classes=K, intercept_scale=2.0)
    w = rng.normal(size=gradients.dim)
    release = whole(clip_norm=(0.5, 0.3), clip_order=order, blocks=gradients.blocks)
    found = gradients.clipped_sum(w, None, release)
    close(found, clipped_sum(gradients, w, None, release))


@pytest.mark.parametrize(
    "activation, form",
    [
        *[(activation, "dense64") for activation in ACTIVATIONS],
        *[("tanh", form) for form in ("dense32", "csr64")],
    ],
)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_perceptron_sum_is_that_of_gradients_built_one_by_one(
    loss, activation, apart, form
):
    rng = np.random.default_rng(2)
    X, y = table(loss, rng)
    gradients = PerceptronGradients(
        loss, stored(X, form), y, n_classes=K, n_hidden=4, activation=activation
    )
    w = rng.normal(size=gradients.dim).astype(np.float32).astype(float)
    clipping = {"blocks": gradients.blocks} if apart else {}
    for order in (1, 2, 3):
        release = whole(
            clip_norm=(0.8, 0.4) if apart else 0.8, clip_order=order, **clipping
        )
        for index in (None, np.array([0, 7, 7])):
            found = gradients.clipped_sum(w, index, release)
            close(found, clipped_sum(gradients, w, index, release), form)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Squared()], ids=repr)
def test_perceptron_gradient_is_the_slope_of_the_loss(loss, activation):
    rng = np.random.default_rng(3)
    X, y = table(loss, rng)
    gradients = PerceptronGradients(
        loss, X, y, n_classes=K, n_hidden=4, activation=activation
    )
    activate, _ = ACTIVATIONS[activation]

    def value(w):
        (first, second), (b, c) = gradients.split(w)
        scores = activate(X @ first + b) @ second + c
        return loss.value(scores if loss.indexed else scores[:, 0], y).sum()

    w = rng.normal(size=gradients.dim)
    found = gradients.clipped_sum(w, None, whole(clip_norm=1e9))
    moves = 1e-6 * np.eye(gradients.dim)
    slopes = [(value(w + move) - value(w - move)) / 2e-6 for move in moves]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "activation, factor", [("relu", 6), ("tanh", 6), ("logistic", 2), ("identity", 6)]
)
def test_a_perceptron_starts_within_the_bounds_of_scikit_learn(activation, factor):
    gradients = PerceptronGradients(
        Multinomial(),
        np.zeros((N, D)),
        np.arange(N) % K,
        n_classes=K,
        n_hidden=200,
        activation=activation,
    )
    start = gradients.initial(np.random.default_rng(0))
    for weights, biases in zip(*gradients.split(start), strict=True):
        bound = np.sqrt(factor / sum(weights.shape))
        assert 0.98 * bound < np.abs(weights).max() <= bound
        assert abs(weights.mean()) < bound / 8
        assert not np.any(biases)


@pytest.mark.parametrize("n", [1000, 1792])
@pytest.mark.parametrize("make", [LinearGradients, PerceptronGradients])
def test_many_blocks_of_rows_make_one_sum(make, n):
    """Larger than what is read at once, in full and as a batch; or just twice that."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n, 300)), rng.integers(2, size=n)
    gradients = make(Logistic(), X, y)
    for index in (None, np.arange(n)):
        assert sum(1 for _ in gradients.rows.blocks(index)) == 2
    w = rng.normal(size=gradients.dim)
    release = whole(n, clip_norm=1.0)
    everyone = gradients.clipped_sum(w, np.arange(n), release)
    close(gradients.clipped_sum(w, None, release), everyone)
    halves = [gradients.clipped_sum(w, i, release) for i in np.split(np.arange(n), 2)]
    close(sum(halves), everyone)


@pytest.mark.parametrize("form", ["dense64", "dense32", "csr64"])
@pytest.mark.parametrize("make", [LinearGradients, PerceptronGradients])
def test_an_empty_batch_sums_to_zero(make, form):
    X, y = table(Logistic(), np.random.default_rng(5))
    gradients = make(Logistic(), stored(X, form), y)
    w = np.ones(gradients.dim)
    found = gradients.clipped_sum(w, np.array([], dtype=int), whole())
    np.testing.assert_array_equal(found, np.zeros(gradients.dim))


def test_the_table_is_neither_copied_nor_changed():
    X = np.random.default_rng(6).normal(size=(50, 4)).astype(np.float32)
    before = X.copy()
    gradients = LinearGradients(Logistic(), X, np.zeros(50))
    assert gradients.rows.X is X
    gradients.clipped_sum(np.ones(5), np.arange(9), whole(50))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("make", [LinearGradients, PerceptronGradients])
@pytest.mark.parametrize("unit", [1e-9, 0.5, 1.0, 30.0, 1e9])
@pytest.mark.parametrize("form", ["dense64", "dense32", "csr64", "csr32"])
def test_rows_in_units_are_those_of_a_scaled_copy(form, unit, make):
    """Also those that are longer by far, beyond what is computed with as it is."""
    rng = np.random.default_rng(16)
    X, y = table(Logistic(), rng)
    X *= unit
    X[3] *= 1e9
    X = stored(X, form)
    gradients = make(Logistic(), X, y, data_norm=unit)
    expected = make(Logistic(), (clip_rows(X, unit) / unit).astype(X.dtype), y)
    w = rng.normal(size=gradients.dim)
    for index in (None, np.array([3, 5, 8]), np.arange(N)):
        for order in (1, 2, np.inf):
            release = whole(clip_norm=0.2, clip_order=order)
            found = gradients.clipped_sum(w, index, release)
            close(found, expected.clipped_sum(w, index, release), form)


@pytest.mark.parametrize("form", ["float64", "float32"])
@pytest.mark.parametrize("n", [50, 5000])
def test_how_a_table_is_stored_changes_no_bit(n, form, tmp_path):
    X = np.random.default_rng(17).normal(size=(n, 6)).astype(form)
    np.save(tmp_path / "table.npy", X)
    twice = np.repeat(X, 2, axis=1)
    others = [
        np.asfortranarray(X),
        twice[:, ::2],
        np.load(tmp_path / "table.npy", mmap_mode="r"),
    ]
    for make in (LinearGradients, PerceptronGradients):
        for index in (None, np.arange(0, n, 3)):
            kept, *sums = [
                (one := make(Logistic(), Z, X[:, 0] > 0, data_norm=2.0)).clipped_sum(
                    np.ones(one.dim), index, whole(n)
                )
                for Z in (X, *others)
            ]
            for found in sums:
                np.testing.assert_array_equal(found, kept)


@pytest.mark.parametrize("scheme", ["full_batch", "poisson"])
@pytest.mark.parametrize("store", ["C", "F", "map"])
def test_a_run_takes_a_part_of_the_table_besides(store, scheme, tmp_path):
    n = 20_000
    X = np.random.default_rng(18).normal(size=(n, 100))
    if store == "map":
        np.save(tmp_path / "table.npy", X)
        X = np.load(tmp_path / "table.npy", mmap_mode="r")
    elif store == "F":
        X = np.asfortranarray(X)
    release = GradientRelease(
        n_records=n,
        batch_size=None if scheme == "full_batch" else 100,
        n_steps=3,
        sampling=scheme,
        optimiser=Optimiser(learning_rate=1.0),
    )
    tracemalloc.start()
    gradients = LinearGradients(Logistic(), X, np.zeros(n), data_norm=5.0)
    train(gradients, release, GaussianNoise(1.0), np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    # what is in another order is copied, once
    assert peak < (1.3 if store == "F" else 0.3)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("value", [100.0, np.nan])
def test_a_memory_map_that_changes_is_refused(value, order, form, tmp_path):
    X = np.random.default_rng(19).normal(size=(50, 4))
    np.save(tmp_path / "table.npy", X)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r+")
    table = mapped
    if form == "csr":
        table = sparse.csr_array(X)
        table.data = mapped.ravel()
    gradients = LinearGradients(Logistic(), table, np.zeros(50), data_norm=1.0)
    release = whole(50, clip_order=order)
    for index in (None, np.arange(20)):
        gradients.clipped_sum(np.zeros(5), index, release)
    mapped[7, 2] = value
    for index in (None, np.arange(20)):
        with refused(ValueError, "gradient.memory_map_changed"):
            gradients.clipped_sum(np.zeros(5), index, release)
    # other rows are as they were, and shorter ones are within their bounds
    gradients.clipped_sum(np.zeros(5), np.arange(20, 50), release)
    mapped[7] = 0.0
    gradients.clipped_sum(np.zeros(5), None, release)


@pytest.mark.parametrize("order", ORDERS)
def test_entries_stored_in_parts_are_clipped_as_one(order):
    parts = sparse.csr_array(([3.0, 3.0, 1.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    gradients = LinearGradients(Squared(), parts, [5.0])
    release = whole(1, clip_order=order)
    found = gradients.clipped_sum(np.zeros(3), None, release)
    assert np.linalg.norm(found, ord=order) <= 1
    expected = LinearGradients(Squared(), [[6.0, 1.0]], [5.0])
    close(found, expected.clipped_sum(np.zeros(3), None, release))
    assert parts.nnz == 3


def test_integers_lists_and_fortran_order_are_welcome():
    X = np.arange(12).reshape(4, 3)
    y = [0, 1, 1, 0]
    expected = LinearGradients(Logistic(), X.astype(float), y)
    for form in (X, X.tolist(), np.asfortranarray(X, dtype=float), sparse.coo_array(X)):
        gradients = LinearGradients(Logistic(), form, y)
        found = gradients.clipped_sum(np.ones(4), None, whole(4))
        close(found, expected.clipped_sum(np.ones(4), None, whole(4)))


@pytest.mark.parametrize("make", [LinearGradients, PerceptronGradients])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(make, bad):
    for X in (np.array([[0.0, bad]]), sparse.csr_array([[0.0, bad]])):
        with refused(ValueError, "clipping.rows_not_finite"):
            make(Squared(), X, [0.0])
    with refused(ValueError, "target.not_finite"):
        make(Squared(), [[1.0, 2.0]], [bad])


@pytest.mark.parametrize(
    "y, said",
    [
        ([0.0, 1.0], Statement("target.shape_not_one_per_row")),
        ([0, 1, 2], Statement("target.not_class_indices", n_classes=1)),
        ([0, -1, 1], Statement("target.not_class_indices", n_classes=1)),
        ([0, 0.5, 1], Statement("target.not_class_indices", n_classes=1)),
    ],
)
def test_targets_that_do_not_fit_are_refused(y, said):
    with refused(ValueError, said.code, **said.parameters):
        LinearGradients(Logistic(), np.eye(3), y)


def test_the_number_of_classes_must_be_said():
    with refused(ValueError, "training.n_classes_missing", loss_type="Multinomial"):
        LinearGradients(Multinomial(), np.eye(3), [0, 1, 2])


def test_other_blocks_are_refused():
    gradients = LinearGradients(Logistic(), np.eye(3), [0, 1, 0])
    release = whole(3, clip_norm=(1.0, 1.0), blocks=(2, 2))
    with refused(ValueError, "gradient.release_blocks_differ"):
        gradients.clipped_sum(np.zeros(4), None, release)


@pytest.mark.parametrize(
    "clipping",
    [{"clip_norm": 1e-35}, {"clip_norm": (1.0, 1e-35), "blocks": (3, 1)}],
    ids=str,
)
def test_a_norm_too_short_for_the_numbers_is_refused(clipping):
    release = whole(3, **clipping)
    for dtype, held in ((np.float32, False), (np.float64, True)):
        gradients = LinearGradients(Logistic(), np.eye(3, dtype=dtype), [0, 1, 0])
        if held:
            gradients.clipped_sum(np.zeros(4), None, release)
            continue
        with refused(ValueError, "gradient.clip_norm_too_small"):
            gradients.clipped_sum(np.zeros(4), None, release)


@pytest.mark.parametrize("make", [LinearGradients, PerceptronGradients])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=repr)
def test_weights_are_penalised_and_intercepts_are_not(make, loss):
    gradients = make(loss, np.zeros((N, D)), np.arange(N) % 2, n_classes=2)
    weights, intercepts = gradients.split(gradients.penalised)
    assert all(np.all(each) for each in weights)
    assert not any(np.any(each) for each in intercepts)


# -- how far one record moves a sum ---------------------------------------------------

entries = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, 1e200, -1e300, 1e-200, 1e9, 1e80])
)
rows = st.lists(entries, min_size=3, max_size=3)
tables = st.lists(rows, min_size=1, max_size=6)


def moved(make, X, y, w, release):
    """Sums with the last record and without it."""
    sums = [
        make(X[:m], y[:m]).clipped_sum(w, None, release) for m in (len(X), len(X) - 1)
    ]
    assert np.all(np.isfinite(sums))
    return sums[0] - sums[1]


@given(
    tables,
    st.sampled_from(LOSSES),
    st.sampled_from(ORDERS),
    st.sampled_from([1e-3, 1.0, 1e6]),
    st.sampled_from([0.0, 1.0, 1e30, 1e150]),
    st.sampled_from(UNITS),
    st.booleans(),
)
def test_one_record_moves_a_linear_sum_by_the_clip_norm_at_most(
    X, loss, order, clip_norm, size, unit, as_csr
):
    X = np.array([[0.0] * 3, *X])
    y = np.arange(len(X)) % 2 if loss.classification else X[:, 0]
    keep = sparse.csr_array if as_csr else np.asarray

    def make(X, y):
        return LinearGradients(loss, keep(X), y, n_classes=2, data_norm=unit)

    w = size * np.random.default_rng(7).normal(size=make(X, y).dim)
    release = whole(1, clip_norm=clip_norm, clip_order=order)
    change = moved(make, X, y, w, release)
    assert np.linalg.norm(change, ord=order) <= clip_norm * (1 + 1e-6)


@pytest.mark.parametrize("weights", [None, "ones", "random"])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Squared()])
def test_a_unit_of_many_rows_moves_a_sum_by_the_clip_norm_at_most(loss, weights):
    rng = np.random.default_rng(3)
    # rows that pull one way
    X, y = np.full((9, D), 5.0), np.zeros(9)
    w = {"ones": np.ones(9), "random": rng.random(9)}.get(weights)
    rows = LinearGradients(loss, X, y, n_classes=K, weights=w)
    unit, release = rows.of_units(np.zeros(9, int)), whole(1, clip_norm=0.1)
    at = 0.1 * np.ones(rows.dim)
    share = 1.0 if w is None else w.mean()
    length = np.linalg.norm(unit.clipped_sum(at, None, release))
    assert 0.09 * share < length <= 0.1 * share * (1 + 1e-12)


@given(
    tables,
    st.sampled_from([Logistic(), Multinomial(), Squared()]),
    st.sampled_from(sorted(ACTIVATIONS)),
    st.sampled_from([1.0, 2.0, np.inf]),
    st.sampled_from([1.0, 1e30, 1e150]),
    st.sampled_from(UNITS),
    st.booleans(),
)
def test_one_record_moves_a_perceptron_sum_by_the_clip_norm_at_most(
    X, loss, activation, order, size, unit, apart
):
    X = np.array([[0.0] * 3, *X])
    y = np.arange(len(X)) % 2 if loss.classification else X[:, 0]

    def make(X, y):
        return PerceptronGradients(
            loss,
            X,
            y,
            n_classes=2,
            n_hidden=2,
            activation=activation,
            data_norm=unit,
        )

    gradients = make(X, y)
    w = size * np.random.default_rng(8).normal(size=gradients.dim)
    clipping = {"blocks": gradients.blocks} if apart else {}
    norms = (0.5, 2.0) if apart else 1.0
    release = whole(1, clip_norm=norms, clip_order=order, **clipping)
    change = moved(make, X, y, w, release)
    assert np.linalg.norm(change, ord=order) <= release.total_clip_norm * (1 + 1e-6)
    if apart:
        first, second = np.split(change, [gradients.blocks[0]])
        assert np.linalg.norm(first, ord=order) <= 0.5 * (1 + 1e-6)
        assert np.linalg.norm(second, ord=order) <= 2.0 * (1 + 1e-6)


@pytest.mark.parametrize("unit", [None, 0.1, 3e4])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_single_gradient_is_never_too_long_in_single_precision(loss, order, unit):
    rng = np.random.default_rng(9)
    X, y = table(loss, rng, n=300)
    X = (1e4 * X).astype(np.float32)
    gradients = LinearGradients(loss, X, y, n_classes=K, data_norm=unit)
    w = rng.normal(size=gradients.dim)
    release = whole(300, clip_norm=0.3, clip_order=order)
    for i in range(0, 300, 3):
        one = gradients.clipped_sum(w, np.array([i]), release)
        assert np.linalg.norm(one, ord=order) <= 0.3


def test_a_record_adds_the_same_beside_enormous_ones():
    X = np.array([[1e70, 1.0], [1e200, -3e199], [1.0, 1.0], [-1e46, 1e60]])
    for loss in (Squared(), Huber(), Logistic()):
        y = np.array([0, 1, 0, 1])
        for order in (1.0, 2.0, np.inf):
            for apart in (False, True):
                gradients = PerceptronGradients(
                    loss, X, y, n_hidden=2, activation="identity"
                )
                clipping = {"blocks": gradients.blocks} if apart else {}
                release = whole(
                    4,
                    clip_norm=(1.0, 1.0) if apart else 1.0,
                    clip_order=order,
                    **clipping,
                )
                w = 1e50 * np.random.default_rng(0).normal(size=gradients.dim)
                each = [
                    gradients.clipped_sum(w, np.array([i]), release) for i in range(4)
                ]
                together = gradients.clipped_sum(w, None, release)
                np.testing.assert_allclose(together, sum(each), atol=1e-9)


def test_constant_and_zero_columns_and_rows_are_harmless():
    X = np.zeros((6, 3))
    X[:, 1] = 1.0
    X[3] = 0.0
    for form in (X, sparse.csr_array(X)):
        gradients = LinearGradients(Logistic(), form, np.ones(6), intercept_scale=0.0)
        found = gradients.clipped_sum(np.zeros(3), None, whole(6, clip_norm=1.0))
        np.testing.assert_allclose(found, [0, -2.5, 0])
