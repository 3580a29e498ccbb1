"""Attacks find what is there: models by heart, promises with too little noise."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skpuffer.accountants import PrivacyLoss
from skpuffer.audit import (
    MembershipAttack,
    distinguishing_attack,
    largest_auc,
    membership_attack,
)
from skpuffer.exceptions import UncertifiedError
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import Certificate
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training
from tests.refused import refused

SHARE = 0.7


def table(n=240, n_features=80, seed=0, n_classes=2):
    """Labels of which a third is chance, which can only be learnt by heart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = (X[:, 0] > 0).astype(int) + (n_classes - 2) * (X[:, 1] > 0)
    chance = rng.random(n) < 1 / 3
    return X, np.where(chance, rng.integers(0, n_classes, n), y)


def halves(*arrays):
    n = len(arrays[0]) // 2
    cuts = slice(n), slice(n, None)
    return [array[cut] for cut in cuts for array in arrays]


def attacked(model, X, y, **options):
    parts = halves(X, y)
    return membership_attack(clone(model).fit(*parts[:2]), *parts, **options)


# -- tight promises, and too little noise ----------------------------------------------


def orthogonal_canaries(noise, rng, n=4000):
    """Half of n records, each a direction of its own, in one noisy sum."""
    member = rng.random(n) < 0.5
    return MembershipAttack(
        member + noise.sample((n,), rng),
        member,
        confidence=0.999,
        relation="add_remove",
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fpr", [None, 0.1], ids=["auc", "tpr"])
def test_records_of_one_sum_are_guessed_as_well_as_promised(seed, fpr):
    # records in orthogonal directions, whose noise is independent: one run is many
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=4000,
        dim=4000,
        sensitivity=Sensitivity(add_remove={2: 1.0}),
    )
    accountant = PrivacyLoss(epsilon=4.0, delta=1e-5)
    found = accountant.calibrate(release, RecordScenario())
    rng = np.random.default_rng(seed)
    tight = orthogonal_canaries(found.noise, rng)
    assert not tight.exceeds(found.certificate, fpr)
    assert not tight.against(found.certificate).broken
    assert tight.one_run_p_value(found.certificate) > 0.01
    # the promise is kept to the last bit: what is allowed is within the interval
    low, high = tight.auc_interval()
    assert low <= largest_auc(found.certificate) <= high + 1e-3
    weak = found.noise.with_scale(SHARE * found.noise.scale)
    broken = orthogonal_canaries(weak, rng)
    assert broken.exceeds(found.certificate, fpr)
    assert broken.exceeds(found.certificate, method="pairs")
    assert broken.against(found.certificate).broken


def one_step(label, epsilon, n_runs):
    """Coefficients after one step, of a table with one record that has this label."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.5]])
    y = np.array([label, 0, 1, 0])
    model = PrivateLogisticRegression(
        classes=[0, 1],
        training=Training(n_steps=1, clip_norm=0.1, learning_rate=1.0),
        scenario=RecordScenario(relation="replace"),
        accountant=PrivacyLoss(epsilon=epsilon, delta=1e-5),
    )
    outputs = []
    for seed in range(n_runs):
        model.set_params(random_state=1000 * label + seed).fit(X, y)
        outputs.append([*model.coef_.ravel(), *model.intercept_])
    return np.array(outputs), model


def test_one_step_of_gradients_is_guessed_as_well_as_promised():
    found, epsilon = {}, 8.0
    for share in (1.0, SHARE):
        (first, model), (second, _) = (
            one_step(label, epsilon, n_runs=120) for label in (1, 0)
        )
        # the gradient is along the record, intercept included: no score does better
        attack = distinguishing_attack(
            first, second, score=lambda w: w[:, 0] + w[:, 2], confidence=0.99
        )
        found[share] = attack
        if share == 1:
            certificate = model.certificate_
            less = model.noise_.with_scale(SHARE * model.noise_.scale)
            weak = model.accountant_.certify(
                less, model.release_, RecordScenario(relation="replace")
            )
            epsilon = weak.epsilon
    assert not found[1.0].exceeds(certificate)
    assert not found[1.0].against(certificate).broken
    assert found[SHARE].exceeds(certificate, method="delong")
    # which is what the noise that was used promises
    assert not found[SHARE].exceeds(weak)
    assert found[1.0].auc == pytest.approx(largest_auc(certificate), abs=0.07)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("score", ["loss", "lira"])
def test_no_private_model_is_guessed_better_than_promised(epsilon, score):
    X, y = table(300, 200)
    model = PrivateLogisticRegression(
        classes=[0, 1],
        accountant=PrivacyLoss(epsilon=epsilon, delta=1e-5),
        random_state=0,
    )
    options = {"n_shadows": 8, "random_state": 0} if score == "lira" else {}
    attack = attacked(model, X, y, score=score, **options)
    certificate = model.fit(X[:150], y[:150]).certificate_
    low, _ = attack.auc_interval()
    assert low <= largest_auc(certificate, relation="replace")
    assert not attack.exceeds(certificate) and not attack.exceeds(certificate, 0.01)
    assert not attack.against(certificate).broken
    # and the same records by heart are guessed better than that
    by_heart = attacked(LogisticRegression(C=1e6, max_iter=1000), X, y, **options)
    assert by_heart.auc > attack.auc + 0.05
    small = Certificate(notion="pure_dp", epsilon=0.05, relation="replace")
    assert by_heart.exceeds(small)


# -- models ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        LogisticRegression(C=1e4, max_iter=1000),
        KNeighborsClassifier(1),
        LinearSVC(C=100.0, max_iter=100_000),
        SVC(C=100.0),
        RidgeClassifier(1e-6),
        make_pipeline(StandardScaler(), SVC(C=100.0)),
        GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [None, 50]}),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_overfitted_classifiers_give_their_members_away(model, n_classes):
    X, y = table(n_classes=n_classes)
    attack = attacked(model, X, y)
    assert attack.auc_interval()[0] > 0.51
    again = attacked(model, X, np.array(["no", "yes", "maybe"])[y])
    assert again.auc == pytest.approx(attack.auc, abs=0.01)


def test_overfitted_regressors_give_their_members_away():
    X, _ = table()
    rng = np.random.default_rng(1)
    y = X[:, 0] + rng.normal(size=len(X))
    both = np.column_stack([y, -y])
    for model, targets in (
        (KNeighborsRegressor(1), y),
        (LinearRegression(), y),
        (KNeighborsRegressor(1), both),
    ):
        assert attacked(model, X, targets).auc > 0.55
    attack = attacked(
        LinearRegression(), X, y, score="lira", n_shadows=8, random_state=0
    )
    assert attack.auc > 0.55


def test_what_two_losses_say():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LogisticRegression().fit(X, [0, 0, 1, 1])
    attack = membership_attack(model, X, [0, 0, 1, 1], X, [0, 1, 1, 1])
    proba = model.predict_proba(X)[np.arange(4), [0, 0, 1, 1]]
    assert np.allclose(attack.scores[:4], np.log(proba))
    margins = LinearSVC().fit(X, [0, 0, 1, 1])
    attack = membership_attack(margins, X, [0, 0, 1, 1], X, [0, 1, 1, 1])
    signs = np.array([-1, -1, 1, 1])
    assert np.allclose(attack.scores[:4], signs * margins.decision_function(X))
    numbers = LinearRegression().fit(X, [0, 0, 1, 1])
    attack = membership_attack(numbers, X, [0, 0, 1, 1], X, [0, 1, 1, 1])
    assert np.allclose(attack.scores[:4], -((numbers.predict(X) - [0, 0, 1, 1]) ** 2))


def test_probabilities_that_round_to_one_are_told_apart():
    X = np.array([[0.0], [1.0], [60.0], [61.0]])
    model = LogisticRegression(C=1e6, max_iter=10_000).fit(X, [0, 0, 1, 1])
    attack = membership_attack(model, X[2:], [1, 1], X[:2], [0, 0])
    assert len(set(attack.scores[:2])) == 2 and np.all(attack.scores <= 0)


def test_tables_of_all_kinds():
    X, y = table()
    model = DecisionTreeClassifier(random_state=0)
    expected = attacked(model, X, y).scores
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    names = frame.columns.to_list()
    for given in (frame, pl.DataFrame(X, schema=names), sparse.csr_array(X)):
        n = len(y) // 2
        fitted = clone(model).fit(given[:n], y[:n])
        found = membership_attack(fitted, given[:n], y[:n], given[n:], y[n:])
        assert np.array_equal(found.scores, expected)
        options = {"n_shadows": 3, "random_state": 0, "score": "lira"}
        found = membership_attack(
            fitted, given[:n], pd.Series(y[:n]), given[n:], y[n:], **options
        )
        assert np.all(np.isfinite(found.scores))
    # columns that only a pipeline reads
    frame["text"] = np.where(X[:, 0] > 0, "a", "b")
    columns = make_column_transformer(
        (OneHotEncoder(), ["text"]), remainder="passthrough"
    )
    found = attacked(make_pipeline(columns, model), frame, y)
    assert found.auc > 0.55


def test_a_score_of_ones_own():
    X, y = table()
    attack = attacked(
        KMeans(2, n_init=1, random_state=0),
        X,
        y,
        score=lambda model, X, y: -model.transform(X).min(axis=1),
    )
    assert 0.3 < attack.auc < 0.9


# -- likelihood ratios -----------------------------------------------------------------


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_likelihood_ratios_find_more_than_losses(variant):
    X, y = table(200, 100)
    model = LogisticRegression(max_iter=500)
    plain = attacked(model, X, y)
    options = {"score": "lira", "variant": variant, "n_shadows": 16, "random_state": 0}
    ratios = attacked(model, X, y, **options)
    assert ratios.auc > plain.auc + 0.02
    assert ratios.auc_interval()[0] > 0.6
    # a seed says it all, whoever does the work
    with parallel_config("threading"):
        again = attacked(model, X, y, n_jobs=2, **options)
    assert np.array_equal(again.scores, ratios.scores)
    assert not np.array_equal(
        attacked(model, X, y, **options | {"random_state": 1}).scores, ratios.scores
    )


def test_likelihood_ratios_by_other_models_and_with_their_own_variances():
    X, y = table(200, 60)
    model = DecisionTreeClassifier(random_state=0)
    options = {"score": "lira", "random_state": np.random.default_rng(0)}
    shadow = DecisionTreeClassifier(max_depth=5)
    assert attacked(model, X, y, shadow=shadow, n_shadows=8, **options).auc > 0.6
    options["random_state"] = np.random.RandomState(0)
    assert attacked(LinearRegression(), X, y, n_shadows=64, **options).auc > 0.55


@pytest.mark.parametrize("n_members", [30, 60, 90])
def test_shadow_models_learn_from_as_many_records_as_the_model(n_members):
    fitted = []

    class Counted(LinearRegression):
        def fit(self, X, y):
            fitted.append(len(X))
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.normal(size=120)
    model = Counted().fit(X[:n_members], y[:n_members])
    fitted.clear()
    parts = X[:n_members], y[:n_members], X[n_members:], y[n_members:]
    membership_attack(model, *parts, score="lira", n_shadows=8, random_state=0)
    assert len(fitted) == 8
    assert np.mean(fitted) == pytest.approx(n_members)


def test_shadow_models_have_noise_of_their_own():
    X, y = table(100, 3)
    parts = halves(X, y)
    model = PrivateLogisticRegression(classes=[0, 1], random_state=0).fit(*parts[:2])
    attack = membership_attack(model, *parts, score="lira", n_shadows=4, random_state=0)
    # equal noise in all of them would leave no variance, and ratios beyond all bounds
    assert np.abs(attack.scores).max() < 50


def test_no_callback_hears_of_shadow_models():
    class Ledger:
        heard = 0

        def setup(self, estimator, context):
            Ledger.heard += 1

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context): ...

    parts = halves(*table(60, 3))
    model = LogisticRegression().set_callbacks(Ledger()).fit(*parts[:2])
    assert Ledger.heard == 1
    membership_attack(model, *parts, score="lira", n_shadows=3, random_state=0)
    assert Ledger.heard == 1
    # and the user's own model keeps it
    model.fit(*parts[:2])
    assert Ledger.heard == 2


def test_a_label_that_a_shadow_never_saw_has_no_chance():
    X, y = table(60, 3)
    y[-1] = 2
    y[0] = 2
    for model in (LogisticRegression(), LinearSVC()):
        attack = attacked(model, X, y, score="lira", n_shadows=4, random_state=0)
        assert np.all(np.isfinite(attack.scores))


# -- bad input -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts():
    return halves(*table(40, 3))


@pytest.fixture(scope="module")
def model(parts):
    return LogisticRegression().fit(*parts[:2])


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, b, c, d: (a[:5], b, c, d), "audit.records_and_targets_unequal"),
        (lambda a, b, c, d: (a, b, c, d[:5]), "audit.records_and_targets_unequal"),
        (lambda a, b, c, d: (a[:0], b[:0], c, d), "audit.no_record_given"),
        (lambda a, b, c, d: (a, b, c[:0], d[:0]), "audit.no_record_given"),
        (lambda a, b, c, d: (a, b, c, d + 17), "audit.labels_unknown_to_model"),
        (lambda a, b, c, d: (a, b.astype(str), c, d), "audit.labels_unknown_to_model"),
        (lambda a, b, c, d: (a, b * np.nan, c, d), "audit.targets_unreadable"),
        (lambda a, b, c, d: (a, None, c, d), "audit.target_not_per_record"),
        (lambda a, b, c, d: (a, b, c[:, :2], d), "audit.tables_column_counts_differ"),
        (lambda a, b, c, d: (pd.DataFrame(a), b, c, d), "audit.tables_columns_differ"),
        (
            lambda a, b, c, d: (
                pd.DataFrame(a, columns=list("xyz")),
                b,
                pd.DataFrame(c, columns=list("xzy")),
                d,
            ),
            "audit.tables_columns_differ",
        ),
    ],
)
def test_records_are_checked(change, message, parts, model):
    with refused(ValueError, message) as caught:
        membership_attack(model, *change(*parts))
    assert "17" not in str(caught.value).replace("Got", "")


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"score": "losses"}, "parameter.option_unknown", {"name": "score"}),
        (
            {"score": "lira", "n_shadows": 1},
            "parameter.count_too_small",
            {"name": "n_shadows"},
        ),
        (
            {"score": "lira", "variant": "both"},
            "parameter.option_unknown",
            {"name": "variant"},
        ),
        ({"relation": "relabel"}, "parameter.option_unknown", {"name": "relation"}),
        (
            {"confidence": 1.0},
            "parameter.probability_out_of_range",
            {"name": "confidence"},
        ),
        ({"score": lambda model, X, y: np.ones(3)}, "audit.score_not_per_record", {}),
        (
            {"score": lambda model, X, y: np.full(len(y), "a")},
            "audit.score_not_per_record",
            {},
        ),
        (
            {"score": lambda model, X, y: np.full(len(y), np.nan)},
            "audit.scores_not_finite",
            {},
        ),
    ],
)
def test_options_are_checked(options, code, parameters, parts, model):
    with refused(ValueError, code, **parameters):
        membership_attack(model, *parts, **options)


def test_models_that_cannot_be_attacked(parts):
    with pytest.raises(NotFittedError):
        membership_attack(LogisticRegression(), *parts)
    with refused(TypeError, "audit.model_of_unknown_kind"):
        membership_attack(KMeans(2, n_init=1).fit(parts[0]), *parts)
    y = np.arange(20) % 4
    ovo = SVC(decision_function_shape="ovo").fit(parts[0], y)
    with refused(ValueError, "audit.predictions_not_per_class"):
        membership_attack(ovo, parts[0], y, parts[2], y)


def test_certificates_that_speak_of_something_else(parts, model):
    attack = membership_attack(model, *parts)
    pure = Certificate(notion="pure_dp", epsilon=1.0, relation="replace")
    with refused(UncertifiedError, "audit.estimate_promises_nothing"):
        attack.exceeds(pure.as_estimate("peeked"))
    secret = Certificate(notion="pure_pufferfish", epsilon=1.0, relation="replace")
    for ask in (attack.exceeds, attack.against):
        with refused(ValueError, "audit.certificate_not_of_membership"):
            ask(secret)
    coins = membership_attack(model, *parts, relation="add_remove")
    with refused(ValueError, "audit.certificate_of_other_relation"):
        coins.exceeds(pure)
    assert not attack.exceeds(
        Certificate(notion="pure_dp", epsilon=math.inf, relation="replace")
    )
