"""What a certificate allows an attacker: formulas, bounds, and what bounds nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skpuffer.accountants import (
    GeneralWasserstein,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.audit import allowed_delta, allowed_roc, largest_auc, largest_tpr
from skpuffer.distributions import PointMass
from skpuffer.exceptions import UncertifiedError
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Certificate, Notion
from skpuffer.privacy_loss import GaussianCurve, RenyiCurve
from skpuffer.releases import GradientRelease, QueryRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    LawsScenario,
    RecordScenario,
)
from tests.refused import refused

GAUSSIAN = {"epsilon": 0.6, "alpha": 4.0}
PURE = {"epsilon": 0.6, "alpha": math.inf, "noise": "laplace"}
APPROXIMATE = {"epsilon": 0.5, "delta": 0.02}


def gaussian(mu, **fields):
    """Promise of Gaussian noise, by its exact curve."""
    return Certificate(
        notion="approximate_dp",
        epsilon=GaussianCurve(mu).epsilon(1e-5),
        delta=1e-5,
        curve=GaussianCurve(mu),
        relation="add_remove",
        **fields,
    )


def promise(notion="approximate_dp", epsilon=1.0, **fields):
    return Certificate(notion=notion, epsilon=epsilon, **fields)


def test_delta_by_the_numbers_and_by_the_curve():
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    scenario = LawsScenario([(PointMass(0.0), PointMass(1.0))])

    def certificate(budget):
        return GeneralWasserstein(**budget).calibrate(release, scenario).certificate

    pure, approximate, renyi = map(certificate, (PURE, APPROXIMATE, GAUSSIAN))
    assert allowed_delta(pure, 0.6) == 0.0
    assert allowed_delta(pure, 0.0) == pytest.approx(1 - math.exp(-0.3))
    assert allowed_delta(pure, 0.0, whole_curve=False) == pytest.approx(math.tanh(0.3))
    assert allowed_delta(approximate, 0.5) == pytest.approx(0.02, rel=1e-6)
    assert allowed_delta(approximate, 0.5, whole_curve=False) == 0.02
    assert allowed_delta(renyi, 0.5) < allowed_delta(renyi, 0.5, whole_curve=False)
    with refused(ValueError, "audit.estimate_promises_nothing"):
        allowed_delta(pure.as_estimate("peeked"), 0.0)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
def test_gaussian_noise_allows_what_its_own_roc_says(mu):
    # oracle: the ROC curve of two unit normals (Dong, Roth and Su 2022)
    found = largest_auc(gaussian(mu))
    assert 0 <= found - norm.cdf(mu / math.sqrt(2)) < 3e-4
    rates = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9])
    exact = norm.cdf(norm.ppf(rates) + mu)
    found = largest_tpr(gaussian(mu), rates)
    assert np.all(found >= exact) and np.all(found < exact + 1e-3)
    # another record in its place: twice the distance
    two = largest_auc(gaussian(mu), relation="replace")
    assert 0 <= two - norm.cdf(2 * mu / math.sqrt(2)) < 5e-4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_stated_numbers_allow_randomised_response(epsilon, delta):
    notion = "approximate_dp" if delta else "pure_dp"
    fpr, tpr = allowed_roc(promise(notion, epsilon, delta=delta))
    # oracle: Kairouz, Oh and Viswanath (2015): delta, then two lines of slope e^±eps
    corner = (1 - delta) / (1 + math.exp(epsilon))
    assert np.allclose(fpr, [0, corner, 1 - delta, 1] if delta else [0, corner, 1])
    assert np.allclose(tpr, [delta, 1 - corner, 1, 1] if delta else [0, 1 - corner, 1])
    assert largest_auc(promise("pure_dp", epsilon)) == pytest.approx(
        1 / (1 + math.exp(-epsilon))
    )


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("cost", [0.001, 0.3, 4.0])
def test_a_renyi_promise_bounds_two_coins(alpha, cost):
    certificate = promise("renyi_dp", cost, alpha=alpha)
    rates = np.array([1e-9, 1e-4, 0.01, 0.3, 0.8, 0.999])
    found = largest_tpr(certificate, rates)

    def divergence(p, q):
        terms = [
            alpha * np.log(p) + (1 - alpha) * np.log(q),
            alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q),
        ]
        return np.logaddexp(*terms) / (alpha - 1)

    # on the boundary, up to the corners of the lines: in one order or the other
    for p, x in zip(found, rates, strict=True):
        inside = x + (p - x) * 0.995
        assert max(divergence(inside, x), divergence(x, inside)) <= cost * 1.001
        if p < 1 - 1e-9:
            beyond = min(p + (p - x) * 1e-6 + 1e-12, 1 - 1e-15)
            assert max(divergence(beyond, x), divergence(x, beyond)) >= cost * 0.999
    # less than what follows by way of (epsilon, delta)
    assert found[3] <= 0.3 + allowed_delta(certificate, 0.0) + 1e-12


@given(mu=st.floats(0.01, 4), order=st.floats(1.1, 60), rate=st.floats(0, 1))
def test_orders_allow_no_less_than_the_noise_does(mu, order, rate):
    one = promise("renyi_dp", order * mu**2 / 2, alpha=order)
    orders = (1.2, 2.0, 5.0, 30.0)
    curve = RenyiCurve(orders, tuple(a * mu**2 / 2 for a in orders))
    many = promise("renyi_dp", mu**2, alpha=2.0, curve=curve)
    exact = norm.cdf(norm.ppf(rate) + mu)
    for certificate in (one, many):
        assert largest_tpr(certificate, rate) >= exact - 1e-12
    assert largest_auc(many) <= largest_auc(promise("renyi_dp", mu**2, alpha=2.0))


@given(
    epsilon=st.floats(0, 30),
    delta=st.floats(0, 0.99),
    relation=st.sampled_from([None, "add_remove", "replace"]),
)
def test_what_is_allowed_is_a_roc_curve(epsilon, delta, relation):
    certificate = promise(epsilon=epsilon, delta=delta, relation="add_remove")
    fpr, tpr = allowed_roc(certificate, relation=relation)
    assert fpr[0] == 0 and fpr[-1] == 1 and tpr[-1] == pytest.approx(1)
    assert np.all(np.diff(fpr) >= 0) and np.all(np.diff(tpr) >= -1e-12)
    assert np.all(tpr >= fpr - 1e-12)
    # concave: averages over records obey it
    middle = np.interp((fpr[:-1] + fpr[1:]) / 2, fpr, tpr)
    assert np.all(middle >= (tpr[:-1] + tpr[1:]) / 2 - 1e-12)
    # symmetric: the worlds may be exchanged
    # (where the curve is steep, the last digit of a rate next to one decides)
    mirror = np.interp(1 - tpr + 1e-15, fpr, tpr)
    assert np.all(mirror >= 1 - fpr - 1e-6)
    assert 0.5 - 1e-12 <= largest_auc(certificate, relation=relation) <= 1 + 1e-12


def test_the_event_of_an_approximate_renyi_promise_is_counted():
    options = {"notion": "approximate_renyi_pufferfish", "epsilon": 0.3, "alpha": 2.0}
    without = promise(**options)
    with_event = promise(**options, delta=0.05, event_delta=0.05)
    assert largest_tpr(with_event, 0.0) == pytest.approx(
        largest_tpr(without, 0.0) + 0.05
    )
    for epsilon in (0.0, 0.2, 1.0):
        more = allowed_delta(with_event, epsilon) - allowed_delta(without, epsilon)
        assert more == pytest.approx(0.05)
    # a pure promise on an event
    options["alpha"] = math.inf
    roc = allowed_roc(promise(**options, delta=0.05, event_delta=0.05))
    assert roc[1][0] == pytest.approx(0.05)


def test_an_event_is_counted_beside_the_whole_curve():
    """It may tell all, whatever the noise costs outside it."""
    curve = GaussianCurve(1.0)
    options = {"epsilon": curve.epsilon(0.01), "curve": curve}
    without = promise(**options, delta=0.01)
    with_event = promise(**options, delta=0.06, event_delta=0.05)
    assert largest_tpr(with_event, 0.0) == pytest.approx(0.05, abs=1e-6)
    for rate in (0.01, 0.1, 0.3):
        assert largest_tpr(with_event, rate) > largest_tpr(without, rate)


def test_a_run_by_its_losses_allows_less_than_by_its_orders():
    run = GradientRelease(n_records=1000, batch_size=100, n_steps=50)
    found = {}
    for accountant in (PrivacyLoss(delta=1e-5), RenyiDP(delta=1e-5)):
        certificate = accountant.certify(GaussianNoise(4.0), run, RecordScenario())
        found[type(accountant)] = largest_auc(certificate)
    assert 0.5 < found[PrivacyLoss] < found[RenyiDP] < 0.65


# -- of what a certificate speaks ------------------------------------------------------


def test_membership_needs_a_certificate_of_records():
    removal = promise(relation="add_remove")
    replacement = promise(relation="replace")
    assert largest_auc(removal) == largest_auc(removal, relation="add_remove")
    assert largest_auc(removal) < largest_auc(removal, relation="replace")
    assert largest_auc(replacement) == largest_auc(replacement, relation="replace")
    # two records of which one is removed: nothing of the kind was promised
    with refused(
        ValueError, "audit.certificate_of_other_relation", certified="replace"
    ):
        largest_auc(replacement, relation="add_remove")
    for relation in ("relabel", "replace_vote", None):
        with refused(ValueError, "audit.certificate_of_other_relation"):
            largest_auc(promise(relation=relation), relation="replace")
    secret = promise("approximate_pufferfish", relation="replace")
    with refused(ValueError, "audit.certificate_not_of_membership"):
        largest_auc(secret, relation="replace")
    # of its own secrets it does speak
    assert 0.5 < largest_auc(secret) < 1
    with refused(ValueError, "parameter.option_unknown", name="relation"):
        largest_auc(removal, relation="relabel")


def test_under_a_belief_membership_has_the_fallback():
    run = GradientRelease(n_records=1000, n_steps=5, sampling="full_batch")
    scenario = AttributeScenario("race", level="record", prior=BoundedOdds(2.0))
    accountant = OverlapAmplification(epsilon=0.3, delta=1e-5)
    believed = accountant.certify(GaussianNoise(4.0), run, scenario)
    plain = PrivacyLoss(delta=1e-5).certify(
        GaussianNoise(4.0), run, RecordScenario(relation="replace")
    )
    assert largest_auc(believed) < largest_auc(plain)
    assert largest_auc(believed, relation="replace") == pytest.approx(
        largest_auc(plain), abs=1e-3
    )


@pytest.mark.parametrize(
    "certificate, reason",
    [
        (promise().as_estimate("peeked"), "audit.estimate_promises_nothing"),
        (
            Certificate(notion=Notion.ESTIMATED, mutual_information=0.1),
            "audit.estimate_promises_nothing",
        ),
        (
            Certificate(notion="renyi_pufferfish", mutual_information=0.1),
            "audit.information_bounds_no_attack",
        ),
        (
            promise("sa_joint_sliced_renyi_pufferfish", alpha=2.0),
            "audit.average_bounds_no_attack",
        ),
        (
            promise("sa_averaged_sliced_renyi_pufferfish", alpha=2.0),
            "audit.average_bounds_no_attack",
        ),
    ],
)
def test_what_bounds_no_attack_is_refused_with_the_reason(certificate, reason):
    for ask in (
        largest_auc,
        allowed_roc,
        lambda c: largest_tpr(c, 0.1),
        lambda c: allowed_delta(c, 0.1),
    ):
        with refused(UncertifiedError, reason):
            ask(certificate)


@pytest.mark.parametrize("rate", [-0.1, 1.5, math.nan, [0.1, 2.0]])
def test_rates_are_probabilities(rate):
    with refused(
        ValueError,
        ("audit.fpr_out_of_range", "parameter.is_nan", "parameter.is_negative"),
    ):
        largest_tpr(promise(), rate)
    assert largest_tpr(promise(delta=0.01), 0.0) == pytest.approx(0.01)


def test_a_promise_of_nothing_allows_everything():
    assert largest_auc(promise(epsilon=math.inf)) == 1.0
    assert largest_auc(promise(epsilon=60.0)) == 1.0
    assert largest_auc(promise("pure_dp", 0.0)) == pytest.approx(0.5)
    assert allowed_delta(promise("pure_dp", 1.0), 800.0) == 0.0
