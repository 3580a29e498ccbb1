"""The accountant that asks all others: whom it takes, whom it leaves out, and why."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import (
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
    ShapedWasserstein,
)
from skpuffer.distributions import Discrete, PointMass
from skpuffer.exceptions import (
    NoGainWarning,
    PrivacyWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.papers import SampledPrivacyLoss
from skpuffer.privacy import Certificate
from skpuffer.releases import (
    GradientRelease,
    QueryRelease,
    Sensitivity,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import PrivateMean
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from tests.refused import refused, says, warned

BELIEF = AttributeScenario("secret", level="record", prior=BoundedOdds(4.0))


def total(X, y):
    return np.asarray(X, dtype=float).sum(axis=0)


def query(dim=1, n_records=40):
    """One record moves one coordinate of it by one, or all together by one in l2."""
    known = {1: math.sqrt(dim), 2: 1.0}
    return QueryRelease(
        query=total,
        n_records=n_records,
        dim=dim,
        sensitivity=Sensitivity(add_remove=known, replace=known),
    )


def mean_square(found, dim):
    return float(np.sum(found.noise.variance(dim)))


# -- the choice ------------------------------------------------------------------------


@pytest.mark.parametrize("dim, family", [(1, "laplace"), (100, "gaussian")])
def test_the_noise_of_least_mean_square_is_taken(dim, family):
    """Laplace noise grows with the dimension by its square root, Gaussian does not."""
    release, scenario = query(dim), RecordScenario(relation="replace")
    errors = {
        noise: mean_square(
            GroupPrivacy(0.5, delta=1e-5, noise=noise).calibrate(release, scenario), dim
        )
        for noise in ("gaussian", "laplace")
    }
    found = Best(0.5, delta=1e-5).calibrate(release, scenario)
    assert found.noise.family == family == min(errors, key=errors.get)
    assert mean_square(found, dim) == pytest.approx(errors[family], rel=1e-3)
    ratio = max(errors.values()) / min(errors.values())
    assert f"({ratio:.3g} ×)" in str(found.certificate.choice)
    assert found.certificate.notion == "approximate_dp"


def test_never_more_error_than_any_candidate_alone():
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    release = query(n_records=30)
    quilts, group = MarkovQuilt(), GroupPrivacy(noise="laplace")
    pure = {"alpha": math.inf, "candidates": [group, quilts]}
    alone = MarkovQuilt(0.7).calibrate(release, chain)
    found = Best(0.7, **pure).calibrate(release, chain)
    assert found.noise == alone.noise
    assert str(found.certificate.choice).startswith("MarkovQuilt(")
    # group privacy covers all thirty records, at a Laplace scale of 30 / epsilon
    ratio = (30 / 0.7 / alone.noise.scale) ** 2
    assert f"({ratio:.3g} ×)" in str(found.certificate.choice)
    # whoever is asked again is told the same
    back = Best(0.7, **pure).certify(found.noise, release, chain)
    assert back.epsilon <= 0.7 * (1 + 1e-6) and str(back.choice).startswith(
        "MarkovQuilt("
    )


@pytest.mark.parametrize(
    "release",
    [
        query(3),
        GradientRelease(n_records=40, n_steps=5, sampling="full_batch"),
        VoteRelease(n_records=40, n_teachers=8, n_classes=2, n_queries=5),
    ],
    ids=lambda release: type(release).__name__,
)
def test_a_belief_is_found_for_every_kind_of_release(release):
    found = Best(0.3, delta=1e-5).calibrate(release, BELIEF)
    alone = OverlapAmplification(0.3, delta=1e-5).calibrate(release, BELIEF)
    assert np.max(found.noise.std()) <= np.max(alone.noise.std()) * (1 + 1e-9)
    assert str(found.certificate.choice).startswith("OverlapAmplification(")
    assert found.certificate.notion == "approximate_pufferfish"
    assert found.certificate.accountant == "Best(delta=1e-05, epsilon=0.3)"
    # the order of its own promise: the belief has none to offer at one
    at_order = Best(0.3, alpha=4.0).calibrate(release, BELIEF).certificate
    assert at_order.alpha == 4.0 and at_order.notion == "renyi_dp"


def test_among_equals_the_certificate_that_composes():
    release = query()
    wasserstein, group = GeneralWasserstein(), GroupPrivacy()
    found = Best(candidates=[wasserstein, group]).calibrate(release, RecordScenario())
    assert found.certificate.composable
    assert str(found.certificate.choice).startswith("GroupPrivacy(")
    assert "GeneralWasserstein" in str(found.certificate.choice)


def test_only_certificates_that_add_up():
    laws = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    release = QueryRelease(query=total, n_records=4, dim=1)
    assert not Best().calibrate(release, laws).certificate.composable
    with refused(UnsupportedError, "best.certificate_does_not_compose"):
        Best(composable=True).calibrate(release, laws)


def test_candidates_are_asked_for_the_budget_of_the_choice():
    laws = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    release = QueryRelease(query=total, n_records=4, dim=1)
    candidates = [GeneralWasserstein(9.0, alpha=3.0, noise="laplace"), Kantorovich(9.0)]
    pure = Best(0.5, alpha=math.inf, candidates=candidates).calibrate(release, laws)
    # a Laplace scale is the shift over epsilon
    assert pure.noise.scale == pytest.approx(2.0)
    assert pure.certificate.notion == "pure_pufferfish"
    # a promise with a delta is none at an order
    with refused(UnsupportedError, "best.no_candidate_makes_promise"):
        Best(alpha=3.0, candidates=[PrivacyLoss()]).calibrate(release, laws)


# -- who is left out -------------------------------------------------------------------


def draw(secret, rng):
    return rng.normal(secret, size=(4, 1))


def draw_pair(a, b, rng):
    noise = rng.uniform(size=(4, 1))
    return noise + a, noise + b


def test_estimates_are_left_out():
    release = QueryRelease(query=total, n_records=4, dim=1)
    sampled = SimulatorScenario(draw, secrets=[0, 1], n_draws=20)
    assert GeneralWasserstein().supports(release, sampled)
    support = Best().supports(release, sampled)
    assert not support and "only estimate" in str(support.reason)
    with refused(UnsupportedError, "best.candidate_would_estimate"):
        Best().calibrate(release, sampled)
    run = GradientRelease(n_records=40, n_steps=5, sampling="full_batch")
    with refused(UnsupportedError, "best.no_candidate_makes_promise"):
        Best(delta=1e-5, candidates=[SampledPrivacyLoss()]).calibrate(
            run, RecordScenario()
        )


def test_the_reason_of_each_is_said_once():
    release = QueryRelease(query=total, n_records=4, dim=1)
    with pytest.raises(UnsupportedError) as caught:
        Best(delta=1e-5).calibrate(release, RecordScenario())
    reasons = str(caught.value).splitlines()[1:]
    assert len(reasons) == len(set(reasons)) > 3
    assert any("MarkovQuilt" in reason for reason in reasons)


def test_a_choice_by_a_public_sample_pays_for_all_that_were_compared():
    release = QueryRelease(query=total, n_records=4, dim=1)
    scenario = SimulatorScenario(
        draw, draw_pair, secrets=[0, 1], n_draws=300, confidence=0.99
    )
    noises = [GeneralWasserstein(noise=name) for name in ("gaussian", "laplace")]
    one, two = (
        Best(delta=0.2, candidates=noises[:n]).calibrate(release, scenario).certificate
        for n in (1, 2)
    )
    assert one.confidence == pytest.approx(0.99)
    assert two.confidence == pytest.approx(0.98)


def test_tables_are_simulated_once_for_all_norms():
    asked = []

    def counted(a, b, rng):
        asked.append((a, b))
        return draw_pair(a, b, rng)

    release = QueryRelease(query=total, n_records=4, dim=1)
    scenario = SimulatorScenario(
        draw, counted, secrets=[0, 1], n_draws=300, confidence=0.99
    )
    found = Best(delta=0.2).calibrate(release, scenario)
    assert found.certificate.choice
    assert len(asked) == 300


# -- parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params, error, said",
    [
        (
            {"alpha": 2.0, "delta": 1e-5},
            ValueError,
            Statement("parameter.alpha_and_delta_both"),
        ),
        (
            {"alpha": 1.0},
            ValueError,
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
        (
            {"delta": 1.5},
            ValueError,
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        ({"composable": 1}, TypeError, Statement("parameter.not_bool")),
        ({"candidates": []}, ValueError, Statement("best.candidates_not_a_list")),
        (
            {"candidates": PrivacyLoss()},
            ValueError,
            Statement("best.candidates_not_a_list"),
        ),
        (
            {"candidates": [PrivacyLoss]},
            TypeError,
            Statement("best.candidate_not_an_accountant"),
        ),
        (
            {"candidates": [Best()]},
            TypeError,
            Statement("best.candidate_not_an_accountant"),
        ),
        (
            {"candidates": [GroupPrivacy(noise="no")]},
            ValueError,
            Statement("parameter.option_unknown", name="noise"),
        ),
        (
            {"alpha": math.inf, "candidates": [GroupPrivacy(noise="gaussian")]},
            ValueError,
            Statement("noise.family_not_pure"),
        ),
    ],
)
def test_bad_parameters(params, error, said):
    for call in (
        lambda: Best(**params).check(),
        lambda: Best(**params).calibrate(query(), RecordScenario()),
    ):
        with refused(error, said.code, **said.parameters):
            call()


def test_gradients_are_clipped_in_one_norm():
    mixed = [PrivacyLoss(), PrivacyLoss(noise="laplace")]
    with refused(ValueError, "best.candidates_clip_norms_differ"):
        _ = Best(delta=1e-5, candidates=mixed).clip_order
    # an accountant of queries alone has no say
    assert Best(delta=1e-5, candidates=[*mixed[:1], Kantorovich()]).clip_order == 2
    assert Best(delta=1e-5, candidates=[*mixed[1:], GroupPrivacy()]).clip_order == 1
    assert Best(delta=1e-5).clip_order == 2


def test_a_progress_bar(capfd):
    Best(delta=1e-5, verbose=1).calibrate(query(), RecordScenario())
    assert "accountants" in capfd.readouterr().err


def test_the_choice_is_kept_in_json():
    certificate = Best(delta=1e-5).calibrate(query(), BELIEF).certificate
    assert Certificate.from_dict(certificate.to_dict()).choice == certificate.choice
    assert str(certificate.choice) in certificate.details()


# -- estimators ------------------------------------------------------------------------


def table(n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"secret": np.arange(n) % 2, "x": rng.uniform(size=n)})
    return X, (X["x"] > 0.5).astype(int).rename("y")


def test_the_default_outside_of_differential_privacy():
    X, y = table()
    model = PrivateMean(bounds=(0, 1), scenario=BELIEF, random_state=0).fit(X)
    assert type(model.accountant_) is Best
    assert (model.certificate_.epsilon, model.certificate_.delta) == (1.0, 1e-5)
    plain = PrivateMean(bounds=(0, 1), random_state=0).fit(X)
    assert type(plain.accountant_) is PrivacyLoss
    # a parameter of the default is one of the default of that scenario
    named = clone(model).set_params(accountant__epsilon=0.5)
    assert type(named.accountant) is Best and named.accountant.delta == 1e-5
    both = PrivateMean(bounds=(0, 1)).set_params(
        scenario=BELIEF, accountant__epsilon=0.5
    )
    assert type(both.accountant) is Best
    search = GridSearchCV(
        PrivateLogisticRegression(BELIEF, random_state=0),
        {"accountant__epsilon": [0.5, 2.0]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert type(search.best_estimator_.accountant_) is Best


def moved(low, high, target=None):
    """A secret that moves the feature from one number to another."""
    prior = pd.DataFrame({"secret": [0, 1], "x": [low, high], "y": [0, 0]})
    known = {"target": "y"} if target else {}
    return AttributeScenario(
        "secret", level="record", prior=prior, prior_as="law", **known
    )


def test_no_gain_is_warned_of():
    X, _ = table()
    mean = PrivateMean(bounds=(0, 1), random_state=0)
    with warned(NoGainWarning, "scenario.gains_nothing_over_dp", count=1):
        mean.set_params(scenario=moved(0.0, 1.0)).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoGainWarning)
        mean.set_params(scenario=moved(0.4, 0.5)).fit(X)
        mean.set_params(scenario=BELIEF).fit(X)
        mean.set_params(scenario=RecordScenario(relation="replace")).fit(X)
    # each of a chain's records may change with the secret
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    series = (X[["x"]] > 0.5).to_numpy(dtype=int)
    with warned(NoGainWarning, "scenario.gains_nothing_over_dp", count=60):
        PrivateMean(
            bounds=(0, 1),
            scenario=chain,
            accountant=GroupPrivacy(delta=1e-5),
            random_state=0,
        ).fit(series)


def test_a_gain_is_over_the_best_accountant_of_records():
    """Rényi costs lose 8 % in their conversion, which is more than is gained here."""
    X, y = table()
    hinge = PrivateLinearSVC(
        moved(0.0, 0.58, target="y"), loss="hinge", training=Training(n_steps=2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoGainWarning)
        hinge.set_params(accountant=PrivacyLoss()).fit(X, y)
    assert hinge.certificate_.gain == pytest.approx(0.6 / 0.58)
    needed = hinge.noise_.scale * hinge.certificate_.gain
    with warned(NoGainWarning, "scenario.gains_nothing_over_dp"):
        hinge.set_params(accountant=RenyiDP()).fit(X, y)
    assert hinge.certificate_.gain == pytest.approx(needed / hinge.noise_.scale)
    # at an order nothing is converted
    hinge.set_params(accountant=RenyiDP(delta=None, alpha=4)).fit(X, y)
    assert hinge.certificate_.gain == pytest.approx(0.6 / 0.58)


@pytest.mark.parametrize(
    "far, epsilon, solver",
    [(-0.98, 1.0, "gradient"), (-0.5, 0.02, "output"), (1.0, 0.02, "gradient")],
)
def test_logistic_regression_takes_the_route_that_goes_further(far, epsilon, solver):
    X, y = table()
    scenario, best = moved(-1.0, far, target="y"), Best(epsilon, delta=1e-5)
    found, named = (
        PrivateLogisticRegression(scenario, best, solver=each, random_state=0).fit(X, y)
        for each in ("auto", solver)
    )
    np.testing.assert_array_equal(found.coef_, named.coef_)
    assert found.certificate_.release == named.certificate_.release


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.EmpiricalPriorWarning")
def test_it_does_not_choose_by_private_rows():
    X, _ = table()
    scenario = AttributeScenario("secret", level="record", prior="empirical")
    with refused(UnsupportedError, "best.prior_is_empirical"):
        PrivateMean(bounds=(0, 1), scenario=scenario).fit(X)


def test_what_would_warn_is_taken_only_by_name():
    """Noise in the shape of single points is little, and leans on them."""
    release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=2)
    points = LawsScenario([(PointMass([0.0, 0.0]), PointMass([3.0, 4.0]))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unasked = Best(alpha=4).calibrate(release, points)
    assert type(unasked.noise) is GaussianNoise
    assert says(unasked.certificate.choice, "best.among_those_not_warning")
    named = Best(alpha=4, candidates=[GeneralWasserstein(), ShapedWasserstein()])
    with warned(PrivacyWarning, "shaped.brittle_without_slack"):
        shaped = named.calibrate(release, points)
    assert shaped.noise.variance(2).sum() < unasked.noise.variance(2).sum()


def test_vectors_with_spread_have_noise_in_their_shape():
    release = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=2)
    u, v = Discrete([[0.0, 0.0], [0.8, -0.2]]), Discrete([[1.0, 0.0], [0.8, 0.8]])
    found = Best(alpha=4).calibrate(release, LawsScenario([(u, v)]))
    assert str(found.certificate.choice).startswith("ShapedWasserstein")
    assert found.certificate.notion == "renyi_pufferfish"
