"""Public weights of classes: what a record weighs, and that none weighs more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_class_weight

from skpuffer.accountants import IterationAmplification, PrivacyLoss
from skpuffer.exceptions import SeededNoiseWarning, UnsupportedError
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.linear_model._base_sgd import class_weights
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import AttributeScenario
from skpuffer.scenarios._priors import BoundedOdds
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    PerceptronGradients,
    RecordGradient,
    Training,
    train,
)
from tests.refused import refused, says
from tests.training import naive

pytestmark = pytest.mark.filterwarnings("ignore", category=SeededNoiseWarning)

CLASSIFIERS = [
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateLinearSVC,
    PrivateMLPClassifier,
]
RARE = {"no": 0.96, "yes": 0.04}


def rare(n=4000, seed=0):
    X, y = make_classification(
        n,
        6,
        n_informative=4,
        weights=[0.96],
        flip_y=0,
        class_sep=1.5,
        random_state=seed,
    )
    X /= np.linalg.norm(X, axis=1).max() / 2
    return X, np.where(y, "yes", "no")


def fitted(make, X, y, epsilon=4.0, **parameters):
    accountant = PrivacyLoss(epsilon=epsilon, delta=1e-5)
    return make(accountant=accountant, random_state=0, **parameters).fit(X, y)


# -- the weights -----------------------------------------------------------------------


def test_balanced_is_scikit_learns_with_shares_for_counts():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    found = class_weights(("balanced", {0: 0.5, 1: 0.3, 2: 0.2}), np.arange(3))
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y)
    np.testing.assert_allclose(found, expected)


def test_a_dict_leaves_the_others_at_one():
    found = class_weights({"b": 3.0}, np.array(["a", "b"]))
    np.testing.assert_array_equal(found, [1, 3])
    assert class_weights(None, np.array(["a", "b"])) is None


# -- what is trained -------------------------------------------------------------------


def models(n_classes, weights, seed, n=9):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(n_classes, size=n)
    loss = Logistic() if n_classes == 2 else Multinomial()
    facts = {"n_classes": n_classes, "weights": weights}
    yield LinearGradients(loss, X, y, intercept_scale=0.5, **facts)
    yield PerceptronGradients(loss, X, y, n_hidden=4, **facts)


@given(seed=st.integers(0, 99), n_classes=st.integers(2, 4), scale=st.floats(0, 30))
def test_a_record_adds_its_weight_times_the_clipped_gradient(seed, n_classes, scale):
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 0.25, 1.0], size=9)
    release = GradientRelease(
        n_records=9, n_steps=1, sampling="full_batch", clip_norm=0.3
    )
    for gradients in models(n_classes, weights, seed):
        parameters = scale * rng.normal(size=gradients.dim)
        expected = np.zeros(gradients.dim)
        for i, weight in enumerate(weights):
            one = naive.clipped_sum(gradients, parameters, [i], release)
            assert np.linalg.norm(one) <= 0.3
            expected += weight * one
        found = gradients.clipped_sum(parameters, None, release)
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("share, holds", [(1.0, True), (0.7, False)])
def test_attack_on_the_record_that_weighs_most(share, holds, n_trials):
    """Of a class that weighs as much as any may, with its gradient at the clip norm."""
    n, epsilon, delta, trials = 20, 1.0, 1e-2, n_trials(200_000)
    X = np.zeros((2, n, 1))
    X[1, 0], y = 1.0, np.r_[1.0, np.zeros(n - 1)]
    model = PrivateLogisticRegression(
        accountant=PrivacyLoss(epsilon=epsilon, delta=delta),
        class_weight={0: 0.5, 1: 40.0},
        fit_intercept=False,
        training=Training(n_steps=8, clip_norm=0.3, learning_rate=1e-9),
    ).fit(X[1], y)
    sigma = model.noise_.scale * share
    sums = []
    for rows in X:
        gradients, steps = model._gradients(rows, y.astype(int)), []
        noise = GaussianNoise(1e-12)
        train(gradients, model.release_, noise, np.random.default_rng(0), record=steps)
        sums.append(np.ravel([step.clipped_sum for step in steps]))
    gap = np.linalg.norm(sums[1] - sums[0])
    assert gap == pytest.approx(0.3 * np.sqrt(8), rel=1e-2)
    unit = (sums[1] - sums[0]) / gap
    draws = np.random.default_rng(1).normal(scale=sigma, size=(2, trials, 8)) @ unit
    threshold = gap / 2 + sigma**2 * epsilon / gap
    hits, alarms = np.mean(draws[0] + gap > threshold), np.mean(draws[1] > threshold)
    error = 4 * np.sqrt((hits + np.exp(2 * epsilon) * alarms) / trials)
    assert (hits - np.exp(epsilon) * alarms <= delta + error) == holds


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_a_rare_class_is_found(make):
    X, y = rare()
    plain = fitted(make, X, y, data_norm=2.0)
    model = fitted(make, X, y, data_norm=2.0, class_weight=("balanced", RARE))
    scores = [balanced_accuracy_score(y, m.predict(X)) for m in (plain, model)]
    assert scores[1] > max(0.75, scores[0] + 0.03)
    # no more noise for it
    assert model.noise_.std() / model.release_.total_clip_norm == pytest.approx(
        plain.noise_.std()
        / plain.release_.total_clip_norm
        * np.sqrt(model.n_steps_ / plain.n_steps_)
    )
    assert says(model.certificate_.assumptions, "assume.class_weights_public")


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_only_proportions_count_but_for_a_penalty(make):
    X, y = rare(500)
    facts = {"data_norm": 2.0, "classes": ["no", "yes"]}
    one, other = (
        fitted(make, X, y, class_weight={"no": k, "yes": 5 * k}, **facts)
        for k in (1.0, 7.0)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    plain, alike = (
        fitted(make, X, y, class_weight=w, **facts)
        for w in (None, {"no": 2.0, "yes": 2.0})
    )
    np.testing.assert_array_equal(plain.predict(X), alike.predict(X))


def test_the_penalty_stands_beside_the_weighted_sum():
    X, y = rare(500)
    model = fitted(
        PrivateSGDClassifier, X, y, alpha=0.6, class_weight={"no": 1.0, "yes": 3.0}
    )
    assert model.release_.optimiser.l2 == pytest.approx(0.2)
    model = fitted(
        PrivateLogisticRegression, X, y, C=0.1, class_weight={"no": 1.0, "yes": 4.0}
    )
    assert model.release_.optimiser.l2 == pytest.approx(1 / (0.1 * 500 * 4))


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize(
    "parameters, error, match",
    [
        ({"class_weight": "balanced"}, ValueError, "count the private"),
        ({"class_weight": ("balanced",)}, ValueError, "dict"),
        ({"class_weight": np.ones(500)}, ValueError, "class_weight"),
        ({"class_weight": {"yes": 0.0}}, ValueError, "class_weight"),
        ({"class_weight": {"yes": np.inf}}, ValueError, "class_weight"),
        ({"class_weight": {"yes": "much"}}, TypeError, "class_weight"),
        ({"class_weight": {"Yes": 2.0}}, ValueError, "none of the classes"),
        (
            {"class_weight": ("balanced", {"no": 0.9, "yes": 0.2})},
            ValueError,
            "add up to one",
        ),
        (
            {"class_weight": ("balanced", {"no": 1.0})},
            ValueError,
            "each of the 2",
        ),
    ],
)
def test_weights_that_are_none_or_of_the_data(make, parameters, error, match):
    X, y = rare(500)
    model = make(**parameters)
    with pytest.raises(error, match=match):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("make", [PrivateLogisticRegression, PrivateLinearSVC])
def test_the_output_weighs_all_alike(make):
    X, y = rare(500)
    with refused(
        ValueError, "linear.gradient_parameter_with_output_solver", name="class_weight"
    ):
        make(solver="output", class_weight={"yes": 2.0}).fit(X, y)


def test_accountants_of_moves_do_not_count_on_weighted_gradients():
    X, y = rare(500)
    model = PrivateLogisticRegression(
        accountant=IterationAmplification(epsilon=1.0), class_weight={"yes": 2.0}
    )
    with pytest.raises(UnsupportedError):
        model.fit(X, y)


def test_where_the_secret_moves_a_record_clipping_alone_is_charged():
    X, y = rare(500)
    X = np.c_[X, np.arange(500) % 2]
    scenario = AttributeScenario(6, level="record", prior=BoundedOdds(4.0))
    model = PrivateSGDClassifier(
        scenario, class_weight={"yes": 2.0}, random_state=0
    ).fit(X, y)
    assert model.release_.record is None


def test_a_record_is_not_of_weighted_gradients():
    gradients = LinearGradients(
        Logistic(), np.zeros((4, 2)), np.zeros(4), weights=np.full(4, 0.5)
    )
    release = GradientRelease(
        n_records=4,
        n_steps=1,
        sampling="full_batch",
        record=RecordGradient(
            loss=Logistic(), data_norm=1.0, intercept=1.0, n_classes=2
        ),
        optimiser=Optimiser(learning_rate=1.0),
    )
    with refused(ValueError, "gradient.record_with_unit_weights"):
        train(gradients, release, GaussianNoise(1.0), np.random.default_rng(0))


@pytest.mark.parametrize("weights", [[0.5], [1.1] * 9, [-0.1] * 9, [np.nan] * 9])
def test_gradients_refuse_weights_above_one(weights):
    with refused(ValueError, "weights.out_of_unit_range"):
        list(models(2, weights, 0))
