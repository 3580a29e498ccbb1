"""A record without a target counts as nothing, and within what is accounted for."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import AttributeScenario, BlocksScenario, RecordScenario
from skpuffer.schema import Schema
from skpuffer.summary._cells import Bins, Grouped, Levels
from skpuffer.summary._gaps import Ones, Stacked
from skpuffer.summary._mean import Moments
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import (
    LinearGradients,
    PerceptronGradients,
    RecordGradient,
    Squared,
    Training,
    make_loss,
)
from skpuffer.utils._bounds import Bounds
from tests.refused import says

NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)
QUIET = PrivacyLoss(epsilon=1e6, delta=0.1)
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(40, 3))
Y = np.tile([0, 1, 0, 1, 5], 8)

LOSSES = {
    "log_loss": (make_loss("log_loss", 2), 2),
    "log_loss of three": (make_loss("log_loss", 3), 3),
    "hinge": (make_loss("hinge", 2), 2),
    "hinge of three": (make_loss("hinge", 3), 3),
    "huber_hinge": (make_loss("huber_hinge", 2, width=0.5), 2),
    "huber_hinge of three": (make_loss("huber_hinge", 3, width=0.5), 3),
    "huber": (make_loss("huber", width=0.3), None),
    "squared": (Squared(), None),
}


# -- gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", [LinearGradients, PerceptronGradients])
@pytest.mark.parametrize("blocks", [False, True])
def test_the_gradient_of_such_a_record_is_zero(name, kind, blocks):
    loss, n_classes = LOSSES[name]
    y = RNG.integers(0, n_classes or 2, len(X)).astype(float)
    counted = RNG.random(len(X)) < 0.6
    options = {"n_hidden": 4} if kind is PerceptronGradients else {}
    some = kind(loss, X, y, n_classes=n_classes, counted=counted, **options)
    without = kind(loss, X[counted], y[counted], n_classes=n_classes, **options)
    w = RNG.normal(size=some.dim)
    clip = (0.3, 0.2) if blocks else 0.4
    release = GradientRelease(
        n_records=len(X),
        n_steps=1,
        sampling="full_batch",
        clip_norm=clip,
        blocks=some.blocks if blocks else None,
    )
    expected = without.clipped_sum(w, None, release)
    np.testing.assert_allclose(some.clipped_sum(w, None, release), expected, atol=1e-12)
    # in a batch as well, whichever records are drawn
    index = np.array([3, 1, 7, 30])
    batch = kind(
        loss, X[index], y[index], n_classes=n_classes, counted=counted[index], **options
    )
    np.testing.assert_allclose(
        some.clipped_sum(w, index, release),
        batch.clipped_sum(w, None, release),
        atol=1e-12,
    )


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
@given(seed=st.integers(0, 2**20), clip=st.floats(0.05, 20), scale=st.floats(0.1, 50))
def test_a_label_that_becomes_none_moves_no_further_than_is_accounted_for(
    name, seed, clip, scale
):
    """From any label to none, under a relation in which targets alone change.

    The squared error has no slope that bounds it; see the tests of regressors below.
    """
    loss, n_classes = LOSSES[name]
    record = RecordGradient(
        loss=loss, data_norm=1.0, intercept=0.5, n_classes=n_classes
    )
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, 3))
    x /= np.linalg.norm(x)
    y = rng.integers(0, n_classes, 1) if n_classes else rng.uniform(-1, 1, 1)
    release = GradientRelease(
        n_records=1, n_steps=1, sampling="full_batch", clip_norm=clip
    )
    gradients = LinearGradients(loss, x, y, n_classes=n_classes, intercept_scale=0.5)
    w = rng.normal(size=gradients.dim) * scale
    length = np.linalg.norm(gradients.clipped_sum(w, None, release))
    allowed = record.label_move(clip)
    assert length <= allowed * (1 + 1e-9)


def test_of_a_squared_error_it_would_move_further():
    record = RecordGradient(
        loss=Squared(), data_norm=1.0, intercept=0.0, n_classes=None
    )
    gradients = LinearGradients(Squared(), [[1.0]], [1.0], intercept_scale=0.0)
    release = GradientRelease(
        n_records=1, n_steps=1, sampling="full_batch", clip_norm=10.0
    )
    alone = np.linalg.norm(gradients.clipped_sum(np.array([9.0]), None, release))
    assert alone > record.label_move(10.0)


# -- estimators ------------------------------------------------------------------------

STEPS = Training(n_steps=5, learning_rate=1.0, sampling="full_batch", clip_norm=1.0)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(solver="gradient", training=STEPS),
        PrivateSGDClassifier(training=STEPS),
        PrivateLinearSVC(training=STEPS),
        PrivateMLPClassifier(hidden_size=3, training=STEPS),
    ],
    ids=lambda m: type(m).__name__,
)
def test_classifiers_by_gradients(model):
    """Whatever such a record holds, the same run comes out."""
    model = clone(model).set_params(classes=[0, 1], accountant=QUIET, random_state=0)
    strange = Y == 5
    outcomes = []
    for labels in (Y, np.where(strange, 7, Y), np.where(strange, np.nan, Y)):
        other = np.where(strange[:, None], RNG.uniform(-9, 9, X.shape), X)
        with pytest.warns():
            fitted = clone(model).fit(other, labels)
        outcomes.append(np.concatenate([np.ravel(w) for w in _weights(fitted)]))
    # rows are clipped, and a sum may round otherwise
    np.testing.assert_allclose(outcomes[1], outcomes[0], atol=1e-12)
    np.testing.assert_allclose(outcomes[2], outcomes[0], atol=1e-12)


def _weights(model):
    return model.coefs_ if hasattr(model, "coefs_") else [model.coef_]


def test_whole_numbers_among_objects_are_labels():
    y = np.tile([0, 1], 20).astype(object)
    assert PrivateLogisticRegression().fit(X, y).classes_.tolist() == [0, 1]


def test_all_records_but_one_may_count_as_nothing():
    for model in (
        PrivateLogisticRegression(classes=["a", "b"], solver="output"),
        PrivateLogisticRegression(classes=["a", "b"]),
    ):
        assert np.all(np.isfinite(model.fit(X, ["a"] + ["c"] * 39).coef_))
    book = Schema({0: (-1, 1), 1: (-1, 1), 2: (-1, 1), "t": (0, 1)}, target="t")
    for kind in (PrivateRidge, PrivateHuberRegressor, PrivateSGDRegressor):
        assert np.all(np.isfinite(kind(schema=book).fit(X, [0.5] + [None] * 39).coef_))


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateHuberRegressor])
def test_regressors_leave_such_records_out(kind):
    book = Schema({0: (-1, 1), 1: (-1, 1), 2: (-1, 1), "t": (0, 1)}, target="t")
    t = RNG.uniform(size=40).astype(object)
    t[::4] = "?"
    known = np.arange(40) % 4 > 0
    model = kind(schema=book, accountant=NO_NOISE)
    among, alone = model.fit(X, t).coef_, clone(model).fit(X[known], t[known]).coef_
    np.testing.assert_allclose(among, alone, atol=1e-4)


@pytest.mark.parametrize(
    "kind", [PrivateRidge, PrivateHuberRegressor, PrivateSGDRegressor]
)
def test_where_targets_alone_change_a_missing_one_is_an_ordinary_one(kind):
    book = Schema({0: (-1, 1), 1: (-1, 1), 2: (-1, 1), "t": (0, 4)}, target="t")
    t = RNG.uniform(0, 4, size=40).astype(object)
    t[::4] = None
    filled = np.where(np.arange(40) % 4 == 0, 2.0, t)
    relabel = RecordScenario(relation="relabel")
    model = kind(scenario=relabel, schema=book, accountant=PrivacyLoss(1.0, 1e-5))
    model.set_params(random_state=0)
    with pytest.warns():
        given, read = clone(model).fit(X, t), clone(model).fit(X, filled)
    np.testing.assert_array_equal(given.coef_, read.coef_)
    assert says(given.certificate_.assumptions, "assume.missing_target_read_as_middle")
    free = clone(model).set_params(scenario=None)
    with pytest.warns():
        said = free.fit(X, t).certificate_.assumptions
    assert says(said, "assume.missing_target_counts_nothing")
    assert BlocksScenario(relabel, sizes=[40]).any_records is False


def test_moments_of_a_record_without_a_target():
    from skpuffer.linear_model._ridge import _Moments

    moments = _Moments(1.0, 1.0, 3)
    rows = RNG.normal(size=(50, 3)) * 3
    t = RNG.uniform(-3, 3, 50)
    t[::3] = np.nan
    each = moments(rows, t)
    assert np.all(each[::3] == 0)
    np.testing.assert_allclose(moments.total(rows, t), each.sum(axis=0))
    # with it or without: no further than a record that comes
    assert np.linalg.norm(each, axis=1).max() <= moments.norm * (1 + 1e-12)


def test_an_empirical_prior_has_the_records_that_count():
    table = pd.DataFrame(X, columns=list("abc")).assign(s=np.tile([0, 1], 20))
    y = pd.Series(Y).astype(object).where(Y != 5, "a private label")
    model = PrivateLogisticRegression(
        AttributeScenario("s", level="record", prior="empirical"),
        GeneralWasserstein(),
        solver="output",
        classes=[0, 1],
    )
    with pytest.warns() as warned:
        model.fit(table, y)
    assert not any("a private label" in str(w.message) for w in warned)


# -- counts ---------------------------------------------------------------------------


BLOCK = Stacked((Ones(), Moments((2,), Bounds((0.0,), (1.0,)), 2), Levels(1, 3)))
CONTRIBUTIONS = {
    "levels": Levels(0, 3),
    "stacked": Stacked((Levels(0, 3), Levels(1, 3), Bins(2, (0.0, 0.5, 1.0)))),
    "grouped counts": Grouped((0,), (3,), Ones()),
    "grouped": Grouped((0, 1), (3, 3), BLOCK),
    "grouped by one": Grouped((0,), (3,), BLOCK),
}


@pytest.mark.parametrize("name", CONTRIBUTIONS)
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_values_that_no_level_lists_move_counts_no_further(name, norm):
    contribution = CONTRIBUTIONS[name]
    codes = np.array([(i, j) for i in (-1, 0, 1, 2) for j in (-1, 0, 1, 2)], float)
    rows = np.vstack(
        [np.column_stack([codes, np.full(16, v)]) for v in (0, 0.3, 0.75, 1)]
    )
    each = contribution(rows)
    limits = contribution.sensitivity
    dim = contribution.dim
    longest = np.linalg.norm(each, norm, axis=1).max()
    assert longest <= limits.value("add_remove", norm, dim) * (1 + 1e-12)
    apart = np.linalg.norm(each[:, None] - each, norm, axis=2)
    assert apart.max() <= limits.value("replace", norm, dim) * (1 + 1e-12)
    # by how far the columns move
    gaps = np.abs(rows[:, None] - rows)
    allowed = contribution.move(gaps.reshape(-1, 3), norm).reshape(apart.shape)
    assert np.all(apart <= allowed * (1 + 1e-12) + 1e-12)
