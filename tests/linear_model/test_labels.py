"""Secret labels beside public features: what a target alone moves."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.distributions import PointMass
from skpuffer.exceptions import CompositionError, NoGainWarning
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.linear_model._base_output import minimise
from skpuffer.linear_model._minimiser_constants import (
    LogisticConstants,
    MarginConstants,
    MultinomialConstants,
    RegressionConstants,
)
from skpuffer.privacy import Notion, compose
from skpuffer.releases import GradientRelease, PublicContext, Sensitivity
from skpuffer.scenarios import Adjacency, RecordScenario
from skpuffer.summary import PrivateMean
from skpuffer.training import (
    Hinge,
    Huber,
    HuberHinge,
    LinearGradients,
    Logistic,
    Multinomial,
    RecordGradient,
    Squared,
    Training,
)
from tests.attack import assert_tight, noisy_laws
from tests.refused import refused, warned

#: Whose noise is in proportion to the l2 sensitivity.
GAUSSIAN = GroupPrivacy(1.0, delta=1e-5, noise="gaussian")
LABEL = RecordScenario(relation="relabel")
ANY = RecordScenario(relation="replace")


def record_of(loss, n_classes=2, intercept=0.0):
    if not loss.classification:
        n_classes = None
    return RecordGradient(
        loss=loss, data_norm=1.0, intercept=intercept, n_classes=n_classes
    )


def run_of(record, clip_norm=2.0, sampling="full_batch", **options):
    return GradientRelease(
        n_records=40,
        n_steps=5,
        batch_size=None if sampling == "full_batch" else 4,
        sampling=sampling,
        clip_norm=clip_norm,
        record=record,
        **options,
    )


# -- how far a target moves a gradient -------------------------------------------------


@pytest.mark.parametrize(
    "loss, n_classes, expected",
    [
        (Logistic(), 2, 1.0),
        (Hinge(), 2, 2.0),
        (HuberHinge(width=0.5), 2, 2.0),
        (HuberHinge(width=4.0), 2, 1.25),
        (Multinomial(), 4, np.sqrt(2)),
        (Squared(), None, 2.0),
        (Huber(5.0), None, 2.0),
    ],
    ids=repr,
)
def test_no_target_moves_a_clipped_gradient_further(loss, n_classes, expected):
    """For rows of norm r: r, 2 r, min(2, (1 + h) / h) r, sqrt(2) r and |y - y'| r."""
    record, rng = (
        record_of(loss, n_classes or 2, intercept=0.75),
        np.random.default_rng(0),
    )
    longest = np.hypot(1, 0.75)
    assert record.label_move(100.0) == pytest.approx(expected * longest)
    assert record.label_move(0.1) == 0.2
    targets = range(n_classes) if n_classes else (-1.0, -0.3, 1.0)
    worst = 0.0
    for clip, scale in itertools.product((0.4, 1.3, 50.0), (0.0, 0.3, 3.0, 300.0)):
        bound = record.label_move(clip)
        release = run_of(record, clip)
        x = rng.normal(size=3)
        row = np.array([x / np.linalg.norm(x)])
        width = (n_classes if loss.indexed else 1) * 4
        w, found = scale * rng.normal(size=width), []
        for y in targets:
            gradients = LinearGradients(
                loss, row, [y], n_classes=n_classes, intercept_scale=0.75
            )
            found.append(gradients.clipped_sum(w, np.arange(1), release))
        for a, b in itertools.combinations(found, 2):
            moved = np.linalg.norm(a - b)
            assert moved <= bound * (1 + 1e-9)
            worst = max(worst, moved / bound)
    assert worst > 0.9


@pytest.mark.parametrize(
    "kind, loss, targets, options",
    [
        (LogisticConstants, Logistic(), (0, 1), {}),
        (MultinomialConstants, Multinomial(), (0, 1, 2), {"n_classes": 3}),
        (RegressionConstants, Huber(3.0), (-1.0, 1.0), {}),
        # where the target passes both corners of a loss, from one end to the other
        (RegressionConstants, Huber(0.2), (-1.0, 1.0), {}),
        (MarginConstants, HuberHinge(0.3), (0, 1), {}),
        (MarginConstants, HuberHinge(4.0), (0, 1), {}),
    ],
)
def test_no_target_moves_a_minimiser_further(kind, loss, targets, options):
    rng, worst = np.random.default_rng(0), 0.0
    for C, n in itertools.product((0.02, 0.5), (1, 3)):
        constants = kind(loss=loss, n_records=n, radius=1.0, C=C, **options)
        X = rng.normal(size=(n, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        others = rng.choice(targets, n - 1)
        found = [
            minimise(X, np.array([y, *others]), constants, 1e-9, 1000) for y in targets
        ]
        for a, b in itertools.combinations(found, 2):
            moved = np.linalg.norm(a - b) / (C * constants.label_move)
            assert moved <= 1 + 1e-6
            worst = max(worst, moved)
    assert worst > 0.85
    assert constants.label_move <= 2 * constants.lipschitz


# -- what it costs ---------------------------------------------------------------------


def test_a_run_pays_for_its_label():
    accountant, record = PrivacyLoss(1.0), record_of(Logistic())
    for clip, sampling, gain in (
        (1.0, "full_batch", 2.0),
        (4.0, "full_batch", 8.0),
        (0.75, "full_batch", 1.5),
        (0.5, "full_batch", 1.0),
        (1.0, "shuffled_epochs", 2.0),
        (0.5, "poisson", 1.0),
    ):
        release = run_of(record, clip, sampling)
        label = accountant.calibrate(release, LABEL)
        plain = accountant.calibrate(release, ANY)
        ratio = plain.noise.scale / label.noise.scale
        assert ratio == pytest.approx(gain, rel=1e-6)
        # a target alone is no record: no differential privacy of those is promised
        dp = label.certificate.notion is Notion.APPROXIMATE_DP
        assert dp == (gain == 1)
        assert (label.certificate.coupling_id == "replace:1") == dp
    # drawn batches hide a label too, by more than its move
    release = run_of(record, 4.0, "poisson")
    label = accountant.calibrate(release, LABEL)
    assert label.noise.scale < 0.7 * accountant.calibrate(release, ANY).noise.scale
    text = label.certificate.details()
    for said in ("given another target, and features are not hidden", "moves by at"):
        assert said in text
    # two labels move a sum by twice as much
    twice = accountant.calibrate(run_of(record), RecordScenario(2, "relabel"))
    once = accountant.calibrate(run_of(record), LABEL)
    assert twice.noise.scale == pytest.approx(2 * once.noise.scale, rel=1e-6)


def test_no_attacker_tells_a_label_better_than_certified():
    # at zero two labels pull a row of norm one by one half either way
    release = run_of(record_of(Logistic()))
    release = GradientRelease(
        n_records=2,
        n_steps=1,
        sampling="full_batch",
        clip_norm=2.0,
        record=release.record,
    )
    X = np.array([[0.6, 0.8], [1.0, 0.0]])
    sums = [
        LinearGradients(Logistic(), X, [y, 1], intercept_scale=0.0).clipped_sum(
            np.zeros(2), np.arange(2), release
        )
        for y in (0, 1)
    ]
    found = PrivacyLoss(0.7, 0.02).calibrate(release, LABEL)
    apart = float(np.linalg.norm(sums[0] - sums[1]))
    assert apart == pytest.approx(1.0)
    # along the line between the two
    assert_tight(
        found.certificate,
        found.noise,
        **noisy_laws(PointMass(0.0), PointMass(apart)),
        seed=0,
        n_draws=100_000,
        epsilons=(0.0, 0.7),
    )


def test_coefficients_pay_for_a_label():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = pd.Series((X["a"] > 0).astype(int), name="ill")
    found = {}
    for scenario in (LABEL, ANY):
        for model in (
            PrivateLogisticRegression(scenario, GAUSSIAN, solver="output"),
            PrivateHuberRegressor(scenario, GAUSSIAN, target_bounds=(0, 1)),
            PrivateSGDClassifier(
                scenario, loss="log_loss", training=Training(clip_norm=1.5)
            ),
            PrivateMean(scenario, GAUSSIAN, bounds=(-1, 1)),
        ):
            fitted = model.fit(X, y) if hasattr(model, "predict") else model.fit(X)
            found[type(model), scenario.relation] = fitted
    gains = {
        kind: np.max(other.noise_.scale) / np.max(found[kind, "relabel"].noise_.scale)
        for (kind, relation), other in found.items()
        if relation == "replace"
    }
    # logistic: r for 2 r. Squared beside a corner: as any two gradients, and no less
    assert gains[PrivateLogisticRegression] == pytest.approx(2.0, rel=5e-3)
    assert gains[PrivateSGDClassifier] == pytest.approx(3 / np.hypot(1, 0.5), rel=1e-6)
    assert gains[PrivateHuberRegressor] >= 1
    # a release that states nothing of labels is charged for records
    assert gains[PrivateMean] == pytest.approx(1.0)
    logistic = found[PrivateLogisticRegression, "relabel"].certificate_
    assert logistic.notion is Notion.APPROXIMATE_PUFFERFISH
    # beside the noise that differential privacy would take, which is of any family
    free = clone(GAUSSIAN).set_params(noise="auto")
    plain = PrivateLogisticRegression(ANY, free, solver="output").fit(X, y).noise_
    used = found[PrivateLogisticRegression, "relabel"].noise_
    assert type(plain) is not type(used)
    ratio = np.sqrt(np.sum(plain.variance(3)) / np.sum(used.variance(3)))
    assert logistic.gain == pytest.approx(ratio, rel=1e-2) and ratio < 2.0
    assert found[PrivateMean, "relabel"].certificate_.notion is Notion.APPROXIMATE_DP
    # under one label and one list of features, budgets add up
    both = compose([logistic, found[PrivateSGDClassifier, "relabel"].certificate_])
    assert 1.0 < both.epsilon < 2.0
    # a label that is a feature elsewhere is hidden nowhere
    other = PrivateLogisticRegression(LABEL, GAUSSIAN, solver="output")
    for table, target in (
        (X.rename(columns={"a": "ill"}), y.rename("c")),
        (X, y.values),
    ):
        with pytest.raises(CompositionError):
            compose([logistic, other.fit(table, target).certificate_])


def test_what_states_nothing_of_labels_pays_for_records():
    moved = Sensitivity({2: 1.0}, {2: 1.5}, {2: 0.25})
    assert [moved.value(r, 2, 3) for r in ("add_remove", "replace", "relabel")] == [
        *(1.0, 1.5, 0.25)
    ]
    assert moved.times(2.0).value("relabel", 2, 3) == 0.5
    assert hash(moved) != hash(Sensitivity({2: 1.0}, {2: 1.5}))
    assert Sensitivity({2: 1.0}).value("relabel", 2, 3) == 2.0
    # never more than a record that is replaced
    assert Sensitivity({2: 1.0}, None, {2: 9.0}).value("relabel", 2, 3) == 2.0
    release = run_of(None)
    fact = LABEL.bind(release.context).fact(Adjacency, release)
    assert fact.relabelled and fact.coupling_id is None
    plain = PrivacyLoss(1.0).calibrate(release, ANY)
    label = PrivacyLoss(1.0).calibrate(release, LABEL)
    assert plain.noise == label.noise and label.certificate.coupling_id == "replace:1"
    named = PublicContext(n_records=40, feature_names=("a",), target_name="y")
    one, two = (
        RecordScenario(k, "relabel").bind(named).fact(Adjacency, release).coupling_id
        for k in (1, 2)
    )
    assert one.startswith("relabel:1:") and two.startswith("relabel:2:")
    with refused(ValueError, "parameter.option_unknown", name="relation"):
        RecordScenario(relation="labels").check()


def test_labels_that_gain_nothing_are_said_to():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    small = PrivateLogisticRegression(LABEL, PrivacyLoss(1.0), data_norm=1.0)
    # clipped so short that a gradient turns round by no more than its target does
    with warned(NoGainWarning, "scenario.gains_nothing_over_dp"):
        small.fit(X, y)
    assert small.certificate_.gain == pytest.approx(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoGainWarning)
        gain = small.set_params(training__clip_norm=1.2).fit(X, y).certificate_.gain
    assert gain > 1.9


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "model",
    [
        PrivateRidge(target_bounds=(-2, 2)),
        PrivateRidge(target_bounds=(-2, 2), solver="moments"),
        PrivateHuberRegressor(target_bounds=(-2, 2)),
        PrivateSGDRegressor(target_bounds=(-2, 2), max_iter=3),
    ],
)
def test_a_number_of_minus_one_is_a_target_and_no_missing_label(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, -1, 1)
    found = [
        clone(model).set_params(random_state=0).fit(X, target).coef_
        for target in (y, y.astype(float))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
