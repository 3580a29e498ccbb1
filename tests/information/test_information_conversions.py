"""Budgets and success: published values, round trips, statements that are not true."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2 as chi2_law
from scipy.stats import norm

from skpuffer.information import (
    budget_for_posterior,
    chi2_success,
    disclosure_bound,
    dp_epsilon,
    dp_equivalent,
    dp_mean_power,
    dp_posterior,
    fano_bound,
    membership_advantage,
    pinsker_success,
    posterior_success,
    published_dp_mean_power,
    total_variation_success,
)
from skpuffer.kernel.noise import gaussian_delta
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)

priors = st.floats(0.01, 0.99)


def test_success_at_a_fair_prior():
    case = ORACLES["O-32"]["fair"]
    for budget, success, epsilon in zip(*case.values(), strict=True):
        assert posterior_success(budget, 0.5) == pytest.approx(success, abs=1e-8)
        assert dp_equivalent(budget) == pytest.approx(epsilon, abs=1e-6)
    assert posterior_success(1.0, 0.5) == 1
    assert dp_equivalent(1.0) == math.inf


def test_success_at_other_priors():
    for case in ORACLES["O-32"]["other"]:
        for budget, success in zip(case["budgets"], case["success"], strict=True):
            found = posterior_success(budget, case["prior"])
            assert found == pytest.approx(success, abs=1e-8)


def test_differential_privacy_at_a_fair_prior():
    case = ORACLES["O-33"]
    for epsilon, success, budget in zip(
        case["epsilon"], case["success"], case["budget"], strict=True
    ):
        assert dp_posterior(epsilon) == pytest.approx(success, abs=1e-7)
        found = budget_for_posterior(dp_posterior(epsilon), 0.5)
        assert found == pytest.approx(budget, abs=1e-7)
    case = case["approximate"]
    success = dp_posterior(case["epsilon"], case["delta"])
    assert success == pytest.approx(case["success"], abs=1e-7)
    assert budget_for_posterior(success, 0.5) == pytest.approx(case["budget"], abs=1e-7)


def test_noise_of_the_analytic_gaussian():
    for case in ORACLES["O-34"]:
        power = dp_mean_power(
            case["epsilon"], case["delta"], clip_norm=1, dim=1, denominator=1
        )
        assert math.sqrt(power) == pytest.approx(case["sigma"], rel=1e-6)
        # a record that becomes another moves the sum twice as far
        moved = dp_mean_power(
            case["epsilon"],
            case["delta"],
            clip_norm=1,
            dim=1,
            denominator=1,
            relation="replace",
        )
        assert moved == pytest.approx(4 * power)


def test_the_classical_noise_is_too_small_above_one():
    epsilon, delta = 20.0, 1e-5
    classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert gaussian_delta(epsilon, 1 / classical) > 10 * delta
    power = dp_mean_power(epsilon, delta, clip_norm=1, dim=1, denominator=1)
    assert gaussian_delta(epsilon, 1 / math.sqrt(power)) <= delta * (1 + 1e-9)
    assert math.sqrt(power) > classical


def test_a_fair_sign_in_unit_noise():
    case = ORACLES["O-35"]
    y = np.linspace(-13, 13, 200_001)
    joint = norm.pdf(y, np.array([[1.0], [-1.0]])) / 2
    total = joint.sum(axis=0)
    # joint against product
    product = total / 2
    distance = np.trapezoid(np.abs(joint - product).sum(axis=0), y) / 2
    chi2 = np.trapezoid(((joint - product) ** 2 / product).sum(axis=0), y)
    told = np.trapezoid((joint * np.log(joint / product)).sum(axis=0), y)
    assert distance == pytest.approx(case["total_variation"], abs=1e-7)
    assert chi2 == pytest.approx(case["chi2"], abs=1e-7)
    assert told == pytest.approx(case["information"], abs=1e-7)
    bounds = {
        "bayes": total_variation_success(distance, 0.5),
        "from_information": posterior_success(told, 0.5),
        "from_chi2": chi2_success(chi2, 0.5),
        "from_pinsker": pinsker_success(told, 0.5),
    }
    for name, bound in bounds.items():
        assert bound == pytest.approx(case[name], abs=1e-7)
    # the first is attained: two equally likely secrets
    assert norm.cdf(1) == pytest.approx(case["bayes"], abs=1e-7)


@given(st.floats(0, 1), st.floats(0, 1))
def test_no_attack_on_a_fair_membership_exceeds_the_advantage(true, false):
    # information of the guess itself, of which the release has more
    share = (true + false) / 2
    told = sum(
        p * math.log(p / q) / 2
        for rate in (true, false)
        for p, q in ((rate, share), (1 - rate, 1 - share))
        if p > 0 and q > 0
    )
    assert true - false <= membership_advantage(max(0.0, told)) + 1e-6
    assert membership_advantage(math.log(2)) == 1


def test_fano():
    for n_classes, accuracy, bound in ORACLES["O-39"]:
        assert fano_bound(accuracy, n_classes) == pytest.approx(bound, abs=5e-5)
        entropy = -accuracy * math.log(accuracy)
        entropy -= (1 - accuracy) * math.log(1 - accuracy)
        textbook = math.log(n_classes) - entropy
        textbook -= (1 - accuracy) * math.log(n_classes - 1)
        assert fano_bound(accuracy, n_classes) == pytest.approx(textbook, rel=1e-12)


def test_published_accuracies_that_no_budget_allows():
    # of releases calibrated by a trained decoder
    for case in ORACLES["fano_tables"]["violations"]:
        assert fano_bound(case["accuracy"], case["n_classes"]) > case["budget"]


def test_the_published_baseline_does_not_pay_for_its_count():
    # one or two rows of zeros: the mean is noise of deviation sigma, or half of it
    epsilon, delta, dim = 0.25, 1e-6, 4
    sigma = math.sqrt(dp_mean_power(epsilon, delta, clip_norm=1, dim=1, denominator=1))
    # hockey stick of N(0, sigma²/4) from N(0, sigma²): the set is a ball around zero
    square = 2 / (3 / sigma**2) * (dim * math.log(2) - epsilon)
    exceeds = chi2_law.cdf(4 * square / sigma**2, dim)
    exceeds -= math.exp(epsilon) * chi2_law.cdf(square / sigma**2, dim)
    assert exceeds > 0.3
    # with a public denominator what was promised holds, tightly
    assert gaussian_delta(epsilon, 1 / sigma) == pytest.approx(delta, rel=1e-6)


def test_published_baseline_on_thirty_rows():
    found = published_dp_mean_power(2.983, 1e-6, clip_norm=1, dim=4, n_records=30)
    assert found == pytest.approx(0.0480, rel=1e-3)
    found = published_dp_mean_power(0.250983, 1e-6, clip_norm=1, dim=4, n_records=30)
    assert found == pytest.approx(4.70, rel=1e-3)


def test_published_baseline_on_two_rows():
    # no member, and one, divide by one; two of them by two
    found = published_dp_mean_power(
        1.0, 1e-6, clip_norm=2, dim=3, n_records=2, rate=0.9
    )
    plain = dp_mean_power(1.0, 1e-6, clip_norm=2, dim=3, denominator=1)
    assert found == pytest.approx(plain * (0.01 + 0.18 + 0.81 / 4), rel=1e-12)


def test_loss_on_an_event_is_not_information_yet():
    # a fair bit, told right three times in four
    told = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    probability, loss = 0.75, math.log(1.5)
    # p L is said to bound it from below
    assert probability * loss > told
    assert disclosure_bound(probability, loss) <= told
    # what reveals everything, rarely, tells its share of the entropy
    entropy, rate = 100 * math.log(2), 0.01
    assert disclosure_bound(rate, entropy) <= rate * entropy
    assert disclosure_bound(rate, entropy) > rate * entropy - rate


@given(st.floats(1e-15, 3), priors)
def test_round_trip_of_budgets(budget, prior):
    success = posterior_success(budget, prior)
    assert prior < success <= min(1, pinsker_success(budget, prior) * (1 + 1e-11))
    if success < 1 and budget > 1e-9:
        assert budget_for_posterior(success, prior) == pytest.approx(budget, rel=1e-5)
    # rounded up: nobody is told too little
    assert budget_for_posterior(success, prior) >= budget * (1 - 1e-5) or success == 1


@given(st.floats(1e-6, 3), st.floats(1.01, 3), priors)
def test_success_grows_with_the_budget(budget, factor, prior):
    assert posterior_success(budget, prior) <= posterior_success(factor * budget, prior)


@given(st.floats(0.01, 20), st.sampled_from([0.0, 1e-6, 0.1]))
def test_round_trip_of_epsilon(epsilon, delta):
    found = dp_epsilon(dp_posterior(epsilon, delta), delta)
    assert found == pytest.approx(epsilon, rel=1e-5)


@given(st.floats(0.01, 10), st.floats(0.5, 0.99))
def test_pure_privacy_at_any_prior(epsilon, prior):
    # attained by randomised response read by Bayes' rule, where that pays at all
    success = dp_posterior(epsilon, prior=prior)
    assert prior <= success < 1
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    bayes = max(prior, prior * truth + (1 - prior) * truth)
    assert bayes <= success + 1e-12


@given(st.floats(0, 1), st.integers(2, 50))
def test_fano_agrees_with_the_bound_on_success(accuracy, n_classes):
    told = fano_bound(accuracy, n_classes)
    if accuracy > 1 / n_classes:
        assert posterior_success(told, 1 / n_classes) >= accuracy * (1 - 1e-9)


def test_a_smaller_prior_would_bound_nothing():
    # 0.1 instead of 0.9: a "bound" of 0.23, and never looking is right nine times in
    # ten
    with refused(ValueError, "pac.prior_success_out_of_range"):
        dp_posterior(1.0, prior=0.1)


def test_extremes():
    assert posterior_success(0.0, 0.3) == 0.3
    assert posterior_success(math.inf, 0.3) == 1
    assert dp_posterior(math.inf) == 1
    assert dp_posterior(0.0, 0.2) == pytest.approx(0.6)
    assert dp_epsilon(1.0) == math.inf
    assert budget_for_posterior(1.0, 0.5) == pytest.approx(math.log(2))
    assert total_variation_success(1.0, 0.5) == 1
    assert chi2_success(math.inf, 0.5) == 1
    assert disclosure_bound(0.5, 0.0) == 0


@pytest.mark.parametrize(
    "function, arguments, name",
    [
        (posterior_success, (-0.1, 0.5), "budget"),
        (posterior_success, (0.1, 1.0), "prior"),
        (posterior_success, (0.1, 0.0), "prior"),
        (posterior_success, (math.nan, 0.5), "budget"),
        (budget_for_posterior, (0.4, 0.5), "success"),
        (budget_for_posterior, (1.1, 0.5), "success"),
        (pinsker_success, (-1.0, 0.5), "budget"),
        (total_variation_success, (1.1, 0.5), "total_variation"),
        (total_variation_success, (-0.1, 0.5), "total_variation"),
        (chi2_success, (-0.1, 0.5), "chi2"),
        (dp_posterior, (-1.0,), "epsilon"),
        (dp_posterior, (1.0, 1.0), "delta"),
        (dp_epsilon, (0.5,), "success"),
        (dp_epsilon, (0.52, 0.1), "success"),
        (dp_epsilon, (1.2,), "success"),
        (dp_equivalent, (0.0,), "budget"),
        (dp_equivalent, (1e-9, 0.1), "success"),
        (fano_bound, (1.2, 3), "accuracy"),
        (fano_bound, (0.5, 1), "n_classes"),
        (disclosure_bound, (0.0, 1.0), "probability"),
        (disclosure_bound, (0.5, -1.0), "loss"),
    ],
)
def test_bad_inputs(function, arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        function(*arguments)


def test_approximate_privacy_asks_for_a_fair_prior():
    with refused(ValueError, "pac.delta_needs_fair_prior"):
        dp_posterior(1.0, 1e-5, prior=0.7)


def test_bad_inputs_of_the_mean():
    good = {"clip_norm": 1.0, "dim": 2, "denominator": 10.0}
    for name in good:
        with pytest.raises(ValueError, match=f"'{name}'"):
            dp_mean_power(1.0, 1e-6, **{**good, name: 0})
    with refused(ValueError, "parameter.not_positive", name="epsilon"):
        dp_mean_power(0.0, 1e-6, **good)
    with refused(ValueError, "parameter.probability_out_of_range", name="delta"):
        dp_mean_power(1.0, 0.0, **good)
    with refused(ValueError, "parameter.option_unknown", name="relation"):
        dp_mean_power(1.0, 1e-6, relation="swap", **good)
    with refused(ValueError, "parameter.count_too_small", name="n_records"):
        published_dp_mean_power(1.0, 1e-6, clip_norm=1, dim=2, n_records=0)
    with refused(ValueError, "parameter.probability_out_of_range", name="rate"):
        published_dp_mean_power(1.0, 1e-6, clip_norm=1, dim=2, n_records=9, rate=1)
