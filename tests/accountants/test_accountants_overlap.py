"""Amplification by overlap: what noise is left to hide of a record under a belief."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler, scale

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.distributions import Discrete
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import (
    CompositionError,
    Statement,
    UncertifiedError,
    UnsupportedError,
)
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Certificate, Notion, compose
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._overlap import OverlapCurve
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedInference,
    BoundedOdds,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from tests.attack import assert_tight, noisy_laws
from tests.refused import refused, says, warned

RUN = GradientRelease(n_records=1000, n_steps=10, sampling="full_batch")
REPLACE = RecordScenario(relation="replace")


def believing(prior, **options):
    return AttributeScenario("secret", level="record", prior=prior, **options)


def query(move=1.0):
    """A sum that one replaced record moves by so much."""
    return QueryRelease(
        query=lambda X, y: np.sum(X, axis=0),
        n_records=20,
        dim=1,
        sensitivity=Sensitivity({1: move, 2: move}, {1: move, 2: move}),
    )


# -- how much is gained ----------------------------------------------------------------


@pytest.mark.parametrize(
    "prior, epsilon, gain",
    [
        (BoundedOdds(2.0), 0.1, 5.877621),
        (BoundedOdds(2.0), 0.3, 6.313343),
        (BoundedOdds(4.0), 0.1, 3.006079),
        (BoundedOdds(4.0), 0.3, 3.054619),
        (BoundedOdds(4.0), 1.0, 3.899441),
        (BoundedOdds(10.0), 1.0, 2.066991),
        (BoundedInference(0.66), 0.1, 4.364816),
        (BoundedInference(0.66), 0.3, 4.412445),
        (BoundedInference(0.66), 1.0, 4.939490),
        (BoundedInference(0.75), 0.1, 2.729353),
        (BoundedInference(0.9), 1.0, 1.594485),
        (BoundedInference(0.72), 0.1, 3.129730),
        (BoundedInference(0.72), 0.3, 3.146778),
        (BoundedInference(0.72), 1.0, 3.329383),
        (BoundedInference(0.66, BoundedOdds(2.0)), 0.1, 3.602566),
        (BoundedInference(0.66, BoundedOdds(2.0)), 0.3, 3.633093),
        (BoundedInference(0.66, BoundedOdds(2.0)), 1.0, 3.972230),
    ],
    ids=repr,
)
def test_gains_over_plain_privacy(prior, epsilon, gain):
    believed = OverlapAmplification(epsilon).calibrate(RUN, believing(prior))
    plain = PrivacyLoss(epsilon).calibrate(RUN, REPLACE)
    assert plain.noise.scale / believed.noise.scale == pytest.approx(gain, rel=1e-6)
    assert believed.certificate.gain == pytest.approx(gain, rel=1e-6)
    assert believed.certificate.epsilon == epsilon
    # other releases gain as much where their noise is Gaussian
    votes = VoteRelease(n_records=100, n_teachers=10, n_classes=2, n_queries=5)
    for release in (query(), votes):
        accountant = OverlapAmplification(epsilon, noise="gaussian")
        found = accountant.calibrate(release, believing(prior))
        assert found.certificate.gain == pytest.approx(gain, rel=1e-6)


def test_a_belief_that_says_little_gains_little():
    gains = [
        OverlapAmplification(0.5)
        .calibrate(RUN, believing(BoundedOdds(w)))
        .certificate.gain
        for w in (3.0, 30.0, 3e3, 1e9)
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] == pytest.approx(1.0, abs=1e-3) and gains[-1] >= 1 - 1e-9


# -- what is promised ------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_no_attacker_beats_the_certificate(noise):
    # The record is a coin with the widest odds, and the others are known: nobody who
    # holds the belief is told more. Certified is the whole curve, not one point of it.
    w, release = 9.0, query()
    found = OverlapAmplification(0.4, delta=0.02, noise=noise).calibrate(
        release, believing(BoundedOdds(w))
    )
    high = math.sqrt(w) / (1 + math.sqrt(w))
    coins = (
        Discrete([0.0, 1.0], [1 - high, high]),
        Discrete([0.0, 1.0], [high, 1 - high]),
    )
    assert_tight(
        found.certificate,
        found.noise,
        **noisy_laws(*coins),
        seed=0,
        n_draws=200_000,
        epsilons=(0.0, 0.4, 1.0),
    )


def test_the_fallback_is_what_holds_for_everyone():
    scenario = believing(BoundedOdds(4.0))
    found = OverlapAmplification(0.3).calibrate(RUN, scenario)
    plain = PrivacyLoss(0.3).certify(found.noise, RUN, REPLACE)
    assert found.certificate.fallback == plain.epsilon
    said = f"whatever is believed: ε = {plain.epsilon:.4g}, RecordScenario"
    assert said in found.certificate.details()
    # what is converted to another delta has another one
    other = found.certificate.to_approximate(1e-8)
    assert other.fallback == plain.curve.epsilon(1e-8) > plain.epsilon
    assert f"ε = {other.fallback:.4g}, RecordScenario" in other.details()
    assert plain.fallback is None
    assert found.certificate.curve.curve == plain.curve
    assert plain.epsilon > 0.3
    # what would be so at twice the range
    twice = OverlapAmplification(0.3).certify(
        found.noise, RUN, believing(BoundedOdds(8.0))
    )
    said = f"with odds within 8, ε = {twice.epsilon:.4g}"
    assert said in found.certificate.details()


def test_the_fallback_is_capped():
    scenario = believing(BoundedOdds(2.0))
    free = OverlapAmplification(0.6).calibrate(RUN, scenario)
    capped = OverlapAmplification(0.6, max_fallback=2.0).calibrate(RUN, scenario)
    assert PrivacyLoss().certify(free.noise, RUN, REPLACE).epsilon > 7
    fallback = PrivacyLoss().certify(capped.noise, RUN, REPLACE).epsilon
    assert fallback == pytest.approx(2.0, rel=1e-3) and fallback <= 2.0 * (1 + 1e-9)
    # the noise buys less, and that is what is stated
    assert capped.certificate.epsilon < 0.5
    again = OverlapAmplification().certify(capped.noise, RUN, scenario)
    assert again.epsilon == pytest.approx(capped.certificate.epsilon)


def test_a_belief_that_suffices():
    scenario = believing(BoundedOdds(2.0))
    for epsilon in (0.7, 2.0):
        with refused(UnsupportedError, "overlap.belief_alone_within_budget"):
            OverlapAmplification(epsilon).calibrate(RUN, scenario)
    found = OverlapAmplification(2.0, if_belief_suffices="cap").calibrate(RUN, scenario)
    most = PrivacyLoss(8.0).calibrate(RUN, REPLACE)
    assert found.noise == most.noise
    assert found.certificate.epsilon <= math.log(2.0) + 1e-6


def certified(scenario, epsilon=0.3, **options):
    return OverlapAmplification(epsilon, **options).calibrate(RUN, scenario).certificate


def test_releases_under_one_belief_are_amplified_once():
    scenario = believing(BoundedOdds(4.0), table="census 2020")
    one, other = certified(scenario), certified(scenario, 0.2)
    both = compose([one, other])
    assert both.notion is Notion.APPROXIMATE_PUFFERFISH and both.n_releases == 2
    mu = math.hypot(one.curve.curve.mu, other.curve.curve.mu)
    together = OverlapCurve(GaussianCurve(mu), BoundedOdds(4.0).overlap())
    assert both.epsilon == pytest.approx(together.epsilon(1e-5), rel=1e-9)
    assert both.fallback == pytest.approx(GaussianCurve(mu).epsilon(1e-5))
    # of a third, and written and read, as of all of them at once
    read = Certificate.from_dict(both.to_dict())
    assert read == both
    three = compose([read, one])
    assert three.epsilon == pytest.approx(compose([one, one, other]).epsilon)
    with pytest.raises(UncertifiedError):
        one.under_prior_shift(0.1)


@pytest.mark.parametrize(
    "other",
    [
        believing(BoundedOdds(3.0), table="census 2020"),
        believing(BoundedOdds(4.0), table="census 2021"),
        believing(BoundedInference(0.7), table="census 2020"),
        AttributeScenario(
            "age", level="record", prior=BoundedOdds(4.0), table="census 2020"
        ),
    ],
    ids=["belief", "table", "kind", "secret"],
)
def test_under_two_beliefs_releases_count_at_the_fallback(other):
    one = certified(believing(BoundedOdds(4.0), table="census 2020"))
    two = certified(other)
    both = compose([one, two])
    mu = math.hypot(one.curve.curve.mu, two.curve.curve.mu)
    assert both.notion is Notion.APPROXIMATE_DP and both.relation == "replace"
    assert both.epsilon == pytest.approx(GaussianCurve(mu).epsilon(1e-5))
    assert both.fallback is None
    assert says(both.assumptions, "assume.release_counts_at_fallback")
    # so that it holds for others than believers as well
    assert not any("who believes" in str(text) for text in both.assumptions)


def test_a_position_is_not_known_to_be_one_column_in_two_releases():
    counted = AttributeScenario(
        2, level="record", prior=BoundedOdds(4.0), table="census 2020"
    )
    one = certified(counted)
    both = compose([one, one])
    assert both.notion is Notion.APPROXIMATE_DP
    assert both.epsilon > compose([one]).fallback


def test_no_belief_amplifies_a_renyi_promise():
    one = certified(believing(BoundedOdds(4.0), table="census 2020"))
    both = compose([one, one], alpha=4.0)
    assert both.notion is Notion.RENYI_DP
    assert says(both.assumptions, "assume.release_counts_at_fallback")
    assert both.epsilon == pytest.approx(2 * 4.0 * one.curve.curve.mu**2 / 2)


def test_without_a_name_or_beside_plain_releases_the_fallback_counts():
    unnamed = certified(believing(BoundedOdds(4.0)))
    plain = PrivacyLoss(0.3).calibrate(RUN, REPLACE).certificate
    for parts in ([unnamed, unnamed], [unnamed, plain]):
        both = compose(parts)
        assert both.notion is Notion.APPROXIMATE_DP
        curves = [getattr(c.curve, "curve", c.curve) for c in parts]
        mu = math.hypot(*(curve.mu for curve in curves))
        assert both.epsilon == pytest.approx(GaussianCurve(mu).epsilon(1e-5))
    added = PrivacyLoss(0.3).calibrate(RUN, RecordScenario()).certificate
    with refused(CompositionError, "compose.couplings_differ"):
        compose([unnamed, added])


def test_the_certificate_says_what_it_rests_on():
    scenario = believing([BoundedOdds(4.0), BoundedInference(0.7)])
    found = OverlapAmplification(0.3).calibrate(RUN, scenario).certificate
    assert found.notion is Notion.APPROXIMATE_PUFFERFISH
    assert not found.implies(Notion.APPROXIMATE_DP)
    text = found.details()
    for said in ("range of 4", "AUC 0.7", "fallback", "'secret'", "η = ", "less noise"):
        assert said in text
    # of neighbours nothing is left that differential privacy would say
    assert "neighbouring tables" not in text
    read = Certificate.from_dict(found.to_dict())
    assert read == found and read.gain == found.gain
    assert found.to_approximate(1e-4).epsilon < found.epsilon
    assert found.to_approximate(1e-4).gain is None


def test_plain_accountants_go_on_working():
    scenario = believing(BoundedOdds(4.0))
    under, plain = (PrivacyLoss(1.0).calibrate(RUN, s) for s in (scenario, REPLACE))
    assert under.noise == plain.noise
    assert under.certificate.gain == 1.0


def test_noise_may_have_another_shape():
    scenario = believing(BoundedOdds(4.0))
    for options in (
        {"noise": "laplace"},
        {"noise": "generalized_gaussian", "beta": 1.5},
        {"noise": LaplaceNoise()},
    ):
        accountant = OverlapAmplification(0.5, **options)
        found = accountant.calibrate(query(), scenario)
        assert found.certificate.gain > 2
        back = accountant.certify(found.noise, query(), scenario)
        assert 0.5 * (1 - 1e-3) <= back.epsilon <= 0.5 * (1 + 1e-9)


def test_a_release_that_no_record_moves_needs_no_noise():
    found = OverlapAmplification().calibrate(
        query(move=0.0), believing(BoundedOdds(4.0))
    )
    assert found.noise.is_zero and found.certificate.epsilon == 0


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, said",
    [
        ({"epsilon": 0.0}, Statement("parameter.not_positive", name="epsilon")),
        ({"delta": 0.0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": 1.0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": None}, Statement("parameter.not_real_number", name="delta")),
        ({"max_fallback": 0.5}, Statement("overlap.max_fallback_below_epsilon")),
        ({"max_fallback": np.nan}, Statement("parameter.is_nan", name="max_fallback")),
        (
            {"if_belief_suffices": "ignore"},
            Statement("parameter.option_unknown", name="if_belief_suffices"),
        ),
        ({"noise": "cauchy"}, Statement("parameter.option_unknown", name="noise")),
        ({"beta": 1.5}, Statement("noise.beta_with_other_family")),
    ],
    ids=repr,
)
def test_bad_parameters(options, said):
    accountant = OverlapAmplification(**{"epsilon": 1.0} | options)
    for call in (
        lambda: accountant.calibrate(RUN, believing(BoundedOdds(4.0))),
        lambda: accountant.certify(
            GaussianNoise(1.0), RUN, believing(BoundedOdds(4.0))
        ),
    ):
        with refused((ValueError, TypeError), said.code, **said.parameters):
            call()


def test_a_table_is_no_belief():
    table = pd.DataFrame({"secret": [0, 1], "value": [0.0, 1.0]})
    scenario = AttributeScenario("secret", level="record", prior=table, prior_as="law")
    for other in (scenario, REPLACE):
        support = OverlapAmplification().supports(query(), other)
        assert not support and "RecordBelief" in str(support.reason)


# -- in estimators ---------------------------------------------------------------------


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = pd.DataFrame(scale(X)).add_prefix("f")
    return X.assign(secret=(X["f0"] > 0).map({True: "a", False: "b"})), y


def estimators():
    public = cancer()[0].drop(columns="secret")[:40]
    bounded = {"bounds": (-3, 3)}
    return [
        PrivateLogisticRegression(data_norm=5.0),
        PrivateLogisticRegression(data_norm=5.0, solver="output"),
        PrivateLinearSVC(data_norm=5.0),
        PrivateSGDClassifier(data_norm=5.0, training=Training(batch_size=100)),
        PrivateMLPClassifier(data_norm=5.0),
        PrivateRidge(target_bounds=(0, 1), data_norm=5.0),
        PATEClassifier(n_teachers=10, n_queries=20, unlabeled=public),
        PrivateMean(**bounded),
    ]


@pytest.mark.parametrize("model", estimators(), ids=lambda m: type(m).__name__)
def test_every_estimator_gains(model):
    X, y = (rows[40:] for rows in cancer())
    model = model.set_params(
        scenario=believing(BoundedOdds(4.0)),
        accountant=OverlapAmplification(0.5),
        random_state=0,
    )
    with warned(UserWarning, "noise.drawn_from_seed"):
        model.fit(X, y)
    certificate = model.certificate_
    assert certificate.epsilon == pytest.approx(0.5, rel=1e-3)
    assert certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert certificate.gain > 2.9
    # the secret is no feature, and the certificate names those that are
    assert model.n_features_in_ == 30
    assert any("f0, f1" in str(text) for text in certificate.assumptions)
    if hasattr(model, "predict"):
        assert len(model.predict(X)) == len(X)


def test_public_steps_see_no_secret():
    X, y = cancer()
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(
            believing(BoundedOdds(4.0)), OverlapAmplification(0.5), data_norm=5.0
        ),
        reference=X.drop(columns="secret")[:100],
    ).fit(X[100:], y[100:])
    assert model.n_features_in_ == model.estimator_.n_features_in_ == 30
    np.testing.assert_array_equal(
        model.predict(X), model.predict(X.drop(columns="secret"))
    )


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_budgets_are_searched_past_what_the_belief_holds():
    X, y = cancer()
    model = PrivateLogisticRegression(
        believing(BoundedOdds(4.0)),
        OverlapAmplification(if_belief_suffices="cap"),
        data_norm=5.0,
        random_state=0,
    )
    search = GridSearchCV(
        model, {"accountant__epsilon": [0.1, 1.0, 5.0]}, cv=3, error_score="raise"
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] < scores[1] + 0.02 and scores[2] > 0.85
