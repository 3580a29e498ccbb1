"""The private perceptron: what is computed, accounted and drawn."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training
from tests.refused import refused

from ..attack import assert_tight, many_runs, with_share_of_noise

NO_NOISE = RenyiDP(epsilon=1e24, delta=0.1)
ACTIVATIONS = ["relu", "tanh", "logistic", "identity"]


class Recording(PrivateMLPClassifier):
    """Keeps what it must not: each step's exact sum and noise."""

    def _execute(self, task, release, noise, rng):
        self.steps, self.task = [], task
        return super()._execute(task, release, noise, rng, record=self.steps)


def table(n_classes=2, seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ rng.normal(size=(3, n_classes)) + 0.2 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def initial_of(model, X, y):
    """The weights and biases a seeded model starts from."""
    gradients = model._gradients(*model._validate(X, y)[:2])
    start_rng, *_ = np.random.default_rng(model.random_state).spawn(3)
    return gradients.split(gradients.initial(start_rng))


# -- the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("clip_by", ["all", "layer"])
def test_without_noise_it_is_scikit_learns(activation, n_classes, clip_by):
    X, y = table(n_classes)
    model = PrivateMLPClassifier(
        accountant=NO_NOISE,
        hidden_size=5,
        activation=activation,
        clip_by=clip_by,
        training=Training(
            clip_norm=50.0, learning_rate=0.5, momentum=0.0, average=False, n_steps=30
        ),
        random_state=7,
    ).fit(X, y)
    # the same steps from the same start
    twin = MLPClassifier(
        (5,),
        activation=activation,
        alpha=0.0,
        solver="sgd",
        batch_size=len(X),
        learning_rate_init=0.5,
        momentum=0.0,
        max_iter=1,
        shuffle=False,
        warm_start=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        twin.fit(X, y)
        coefs, intercepts = initial_of(model, X, y)
        twin.coefs_ = [w.copy() for w in coefs]
        twin.intercepts_ = [b.copy() for b in intercepts]
        twin.set_params(max_iter=30, tol=0.0, n_iter_no_change=1000).fit(X, y)
    for ours, theirs, start in zip(model.coefs_, twin.coefs_, coefs, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
        assert np.abs(theirs - start).max() > 0.1
    for ours, theirs in zip(model.intercepts_, twin.intercepts_, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))


def test_the_penalty_is_of_weights_and_not_of_biases():
    X, y = table()
    model = Recording(
        accountant=NO_NOISE,
        hidden_size=2,
        alpha=0.02,
        training=Training(clip_norm=50.0, learning_rate=1.0, n_steps=3000),
        random_state=0,
    ).fit(X, y)
    gradients = model._gradients(model.task.X, model.task.y)
    found = np.concatenate(
        [
            part.ravel()
            for layer in zip(model.coefs_, model.intercepts_, strict=True)
            for part in layer
        ]
    )
    # where the mean loss and the penalty pull equally
    slope = gradients.clipped_sum(found, None, model.release_) / len(X)
    expected = -0.02 * found
    expected[[6, 7, 10]] = 0.0
    np.testing.assert_allclose(slope, expected, atol=1e-6)
    assert np.abs(found[[6, 7, 10]]).max() > 0.05
    assert np.abs(expected).max() > 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
def test_records_without_a_label_teach_nothing(n_classes):
    """Their rows may be any others, and the model stays."""
    X, y = table(n_classes)
    labels = y.astype(object)
    labels[::3] = None
    other = X.copy()
    other[::3] *= -1
    model = PrivateMLPClassifier(
        accountant=NO_NOISE,
        classes=list(range(n_classes)),
        training=Training(n_steps=5),
        random_state=0,
    )
    found = [clone(model).fit(rows, labels) for rows in (X, other)]
    for one, two in zip(found[0].coefs_, found[1].coefs_, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize("clip_by", ["all", "layer"])
def test_weights_of_classes_and_of_records_are_multiplied(clip_by):
    X, y = table()
    w = np.random.default_rng(1).uniform(0.2, 2, len(y))
    labels = y.astype(object)
    labels[::5] = None
    model = PrivateMLPClassifier(
        accountant=NO_NOISE,
        classes=[0, 1],
        clip_by=clip_by,
        weight_bounds=(0, 3),
        training=Training(clip_norm=5.0, learning_rate=0.5, n_steps=5),
        random_state=0,
    )
    both = clone(model).set_params(class_weight={0: 1.0, 1: 0.25})
    both.fit(X, labels, sample_weight=w)
    model.fit(X, labels, sample_weight=w * np.where(y == 1, 0.25, 1.0))
    for one, other in zip(model.coefs_, both.coefs_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_unit_of_the_data_does_not_matter():
    X, y = table()
    make = PrivateMLPClassifier(training=Training(n_steps=5), random_state=0)
    one = clone(make).fit(X, y)
    other = clone(make).set_params(data_norm=100.0).fit(100 * X, y)
    np.testing.assert_allclose(100 * other.coefs_[0], one.coefs_[0])
    np.testing.assert_allclose(other.coefs_[1], one.coefs_[1])
    np.testing.assert_allclose(
        other.decision_function(100 * X), one.decision_function(X)
    )


def test_training_starts_at_a_model_in_the_units_of_the_data():
    X, y = table()
    make = PrivateMLPClassifier(training=Training(n_steps=5), data_norm=20.0)
    first = make.fit(20 * X, y)
    # steps of no length: what is given is what comes out
    stays = Training(n_steps=1, init=first, learning_rate=1e-12)
    again = clone(make).set_params(training=stays).fit(20 * X, y)
    for one, other in zip(
        [*first.coefs_, *first.intercepts_],
        [*again.coefs_, *again.intercepts_],
        strict=True,
    ):
        np.testing.assert_allclose(other, one, atol=1e-6)


# -- what is accounted ----------------------------------------------------------------


@pytest.mark.parametrize("clip_by", ["all", "layer"])
def test_the_certificate_is_what_the_release_accounts_for(clip_by):
    accountant = PrivacyLoss(epsilon=2.0, delta=1e-5)
    model = PrivateMLPClassifier(
        accountant=accountant,
        clip_by=clip_by,
        training=Training(clip_norm=0.8, n_steps=20),
    ).fit(*table(3))
    release = model.release_
    assert release.n_steps == 20
    assert release.total_clip_norm == pytest.approx(0.8)
    if clip_by == "layer":
        assert release.blocks == (4 * 32, 33 * 3)
        assert release.clip_norm == pytest.approx((0.8 / np.sqrt(2),) * 2)
    again = accountant.certify(model.noise_, release, RecordScenario())
    assert again.epsilon == pytest.approx(2.0, rel=1e-3)
    assert model.certificate_.epsilon == 2.0
    # 20 Gaussians make one: Balle and Wang (2018), Theorem 8
    mu = np.sqrt(20) * 0.8 / model.noise_.scale
    delta = stats.norm.cdf(mu / 2 - 2 / mu)
    delta -= np.exp(2) * stats.norm.cdf(-mu / 2 - 2 / mu)
    assert delta == pytest.approx(1e-5, rel=1e-2)


def test_layers_have_clip_norms_and_noise_of_their_own():
    X, y = table(3)
    make = PrivateMLPClassifier(
        accountant=RenyiDP(2.0, alpha=4.0, delta=None),
        clip_by="layer",
        training=Training(clip_norm=(0.3, 0.9), n_steps=20),
    )
    one, each = clone(make).fit(X, y), clone(make).set_params(noise_by="layer")
    each.fit(X, y)
    assert one.release_.clip_norm == each.release_.clip_norm == (0.3, 0.9)
    assert one.release_.total_clip_norm == pytest.approx(np.hypot(0.3, 0.9))
    # a Gaussian of 20 steps costs 4 / 2 * 20 * (clip / scale)^2
    assert one.noise_.scale == pytest.approx(np.sqrt(20 * 0.9))
    hidden, output = one.release_.blocks
    scales = np.array(each.noise_.scale)
    assert scales.shape == (hidden + output,)
    np.testing.assert_allclose(scales[:hidden], 0.3 * np.sqrt(2 * 20))
    np.testing.assert_allclose(scales[hidden:], 0.9 * np.sqrt(2 * 20))
    assert each.release_.noise_proportions == (0.3, 0.9)
    assert each.certificate_.epsilon == one.certificate_.epsilon == 2.0


@pytest.mark.parametrize("clip_by", ["all", "layer"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_record_moves_a_sum_further_than_the_clip_norm(
    clip_by, activation, n_classes
):
    X, y = table(n_classes, n=6)
    model = PrivateMLPClassifier(
        clip_by=clip_by,
        activation=activation,
        hidden_size=4,
        training=Training(clip_norm=0.4),
    ).fit(X, y)
    release = model.release_
    rng = np.random.default_rng(0)
    moved = []
    for _ in range(60):
        X2, y2 = X.copy(), y.copy()
        X2[-1] = rng.choice([0.1, 1.0, 100.0]) * rng.normal(size=3)
        y2[-1] = rng.integers(n_classes)
        gradients = model._gradients(X2, y2)
        parameters = rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=gradients.dim)
        whole = gradients.clipped_sum(parameters, None, release)
        rest = gradients.clipped_sum(parameters, np.arange(5), release)
        moved.append(whole - rest)
    total = [np.linalg.norm(move) for move in moved]
    assert 0.99 * 0.4 < max(total) <= 0.4
    if clip_by == "layer":
        for part, bound in zip(
            (slice(16), slice(16, None)), release.clip_norm, strict=True
        ):
            lengths = [np.linalg.norm(move[part]) for move in moved]
            assert 0.99 * bound < max(lengths) <= bound


def test_more_budget_is_less_noise_and_a_better_fit():
    X, y = table(n=600)
    scales, scores = [], []
    for epsilon in (0.03, 0.3, 3.0):
        model = PrivateMLPClassifier(
            accountant=PrivacyLoss(epsilon=epsilon),
            hidden_size=8,
            training=Training(n_steps=30, clip_norm=0.5),
            random_state=0,
        ).fit(X, y)
        scores.append(model.score(X, y))
        scales.append(model.noise_.scale)
    assert scales[0] > 5 * scales[1] > 25 * scales[2]
    assert scores[0] < scores[2]
    assert scores[2] > 0.8


# -- noise ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clipping",
    [
        {},
        {"clip_by": "layer"},
        {"clip_by": "layer", "noise_by": "layer", "training__clip_norm": (0.1, 2.0)},
    ],
    ids=["all", "layer", "noise"],
)
def test_the_noise_drawn_is_the_noise_named(clipping):
    model = Recording(hidden_size=2, training=Training(n_steps=200))
    model.set_params(**clipping).fit(*table())
    draws = np.array([step.noise for step in model.steps]) / model.noise_.scale
    assert draws.shape == (200, 4 * 2 + 3)
    assert stats.kstest(draws.ravel(), stats.norm.cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(draws.T)[np.triu_indices(11, 1)]).max() < 0.35
    assert np.abs(np.corrcoef(draws[1:].ravel(), draws[:-1].ravel())[0, 1]) < 0.15


@pytest.mark.parametrize("radius", [0.5, 50.0])
def test_all_parameters_stay_in_the_ball(radius):
    X, y = table()
    model = PrivateMLPClassifier(
        hidden_size=8, training=Training(radius=radius, average=False), random_state=0
    ).fit(X, y)
    parts = [*model.coefs_, *model.intercepts_]
    length = np.linalg.norm(np.concatenate([part.ravel() for part in parts]))
    assert length == pytest.approx(0.5) if radius == 0.5 else length < 50
    free = clone(model).set_params(training__radius=None).fit(X, y)
    assert np.array_equal(free.coefs_[0], model.coefs_[0]) == (radius == 50.0)
    # whatever is made of noisy sums costs nothing
    assert free.certificate_ == model.certificate_
    with refused(ValueError, "linear.init_outside_ball", radius=0.5):
        PrivateMLPClassifier(
            hidden_size=8, training=Training(radius=0.5, init=free)
        ).fit(X, y)


def test_the_parameters_are_made_of_noisy_sums_alone():
    X, y = table()
    model = Recording(
        hidden_size=4,
        training=Training(n_steps=7, learning_rate=0.5, momentum=0.0, average=False),
        random_state=1,
    ).fit(X, y)
    gradients = model._gradients(model.task.X, model.task.y)
    start_rng, *_ = np.random.default_rng(1).spawn(3)
    w = gradients.initial(start_rng)
    for step in model.steps:
        exact = gradients.clipped_sum(w, None, model.release_)
        np.testing.assert_allclose(step.clipped_sum, exact)
        w = w - 0.5 * (exact + step.noise) / len(X)
    coefs, intercepts = gradients.split(w)
    for ours, theirs in zip(
        [*model.coefs_, *model.intercepts_], [*coefs, *intercepts], strict=True
    ):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    "clipping",
    [
        {"training__clip_norm": 0.05},
        {"training__clip_norm": 0.05, "clip_by": "layer"},
        {"training__clip_norm": (0.02, 0.06), "clip_by": "layer", "noise_by": "layer"},
    ],
    ids=["all", "layer", "noise"],
)
def test_no_canary_beats_the_certificate(clipping):
    X, y = table(n=6)
    X[-1] = [0.0, 0.0, 1.0]
    # small steps, so that the attacker knows where the canary pulls at each of them
    model = Recording(
        accountant=PrivacyLoss(epsilon=8.0, delta=1e-5),
        hidden_size=3,
        training=Training(learning_rate=1e-9, n_steps=2),
    )
    model.set_params(**clipping).fit(X, y)
    rng = np.random.default_rng(0)
    start = rng.normal(size=4 * 3 + 4)  # public, released before
    release, noise = model.release_, model.noise_
    without = replace(release, n_records=5, batch_size=None, context=None)
    gradients = model._gradients(X, y)
    rest = gradients.clipped_sum(start, np.arange(5), release)
    pull = gradients.clipped_sum(start, None, release) - rest
    assert np.linalg.norm(pull) > 0.99 * release.total_clip_norm

    n_draws = 1500

    def runs(release, n_records):
        rows, targets = X[:n_records], y[:n_records]
        task = replace(model.task, X=rows, y=targets, start=start)
        sums, noises = many_runs(model, release, task, noise, n_draws, rng)
        # what all others pull is known, and taken off at each step
        return sums - release.n_steps * rest, noises

    worlds = [runs(release, 6), runs(without, 5)]
    assert_tight(
        model.certificate_,
        noise,
        with_share_of_noise(worlds, noise),
        # how far they are pulled, in standard deviations of each coordinate
        score=lambda noise: lambda sums: sums @ (pull / np.square(noise.scale)),
        seed=0,
        n_draws=n_draws,
    )


# -- in scikit-learn ------------------------------------------------------------------


def test_forms_of_a_table_are_one_table():
    X, y = table(3)
    names = ["a", "b", "c"]
    make = PrivateMLPClassifier(random_state=0, training=Training(n_steps=10))
    dense = clone(make).fit(X, y)
    frame = pd.DataFrame(X, columns=names)
    labels = np.array(["no", "perhaps", "yes"])
    for form in (frame, pl.from_pandas(frame)):
        other = clone(make).fit(form, labels[y])
        for ours, theirs in zip(other.coefs_, dense.coefs_, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(other.predict(form), labels[dense.predict(X)])
    assert list(other.feature_names_in_) == names


def test_sparse_rows_are_refused_with_the_remedy():
    X, y = table()
    with pytest.raises(TypeError, match="dense"):
        PrivateMLPClassifier().fit(sparse.csr_matrix(X), y)


def test_a_seed_repeats_the_run_and_none_does_not():
    X, y = table()
    make = PrivateMLPClassifier(training=Training(n_steps=5, batch_size=30))
    seeded = [clone(make).set_params(random_state=5).fit(X, y) for _ in range(2)]
    free = [clone(make).fit(X, y) for _ in range(2)]
    for layer in (0, 1):
        np.testing.assert_array_equal(*(m.coefs_[layer] for m in seeded))
        assert np.all(free[0].coefs_[layer] != free[1].coefs_[layer])


def test_clones_and_pickles():
    X, y = table()
    model = PrivateMLPClassifier(
        hidden_size=3, activation="relu", training=Training(n_steps=5)
    ).fit(X, y)
    fresh = clone(model)
    assert not hasattr(fresh, "coefs_")
    assert (fresh.hidden_size, fresh.activation) == (3, "relu")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certificate_ == model.certificate_
    assert again.release_ == model.release_


def test_in_a_grid_over_budgets():
    X, y = table(n=400)
    grid = GridSearchCV(
        make_pipeline(
            Normalizer(),
            PrivateMLPClassifier(
                hidden_size=8, training=Training(n_steps=30), random_state=0
            ),
        ),
        {"privatemlpclassifier__accountant__epsilon": [0.01, 10.0]},
        error_score="raise",
        cv=3,
    ).fit(X, y)
    assert grid.best_params_ == {"privatemlpclassifier__accountant__epsilon": 10.0}
    assert grid.best_estimator_[-1].certificate_.epsilon == 10.0


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": (5, 5)}, "hidden_size"),
        ({"activation": "softmax"}, "activation"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"clip_by": "row"}, "clip_by"),
        ({"training__clip_norm": 0.0}, "clip_norm"),
        ({"training__clip_norm": (1.0, 1.0)}, "clip_norm"),
        ({"training__clip_norm": (1.0, 0.0), "clip_by": "layer"}, "clip_norm"),
        ({"training__clip_norm": (1.0,) * 3, "clip_by": "layer"}, "clip_norm"),
        ({"training__clip_norm": [1.0, 1.0], "clip_by": "layer"}, "clip_norm"),
        ({"noise_by": "row"}, "noise_by"),
        ({"noise_by": "layer"}, "noise_by"),
        ({"training__radius": 0.0}, "radius"),
        ({"training__schedule": "annealed"}, "schedule"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"training__n_steps": 0}, "n_steps"),
        ({"classes": [0, np.nan]}, "classes"),
        ({"accountant": PrivacyLoss(delta=2.0)}, "delta"),
    ],
)
def test_bad_parameters_are_named(changes, match):
    model = PrivateMLPClassifier().set_params(**changes)
    with pytest.raises(ValueError, match=f"'{match}'"):
        model.fit(*table())
    assert not vars(model).keys() & {"coefs_", "certificate_", "release_"}
