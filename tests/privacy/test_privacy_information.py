"""Bounds on mutual information: what adds up, and what does not."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from skpuffer.exceptions import CompositionError, UncertifiedError, UnsupportedError
from skpuffer.information import budget_for_posterior
from skpuffer.privacy import Certificate, Notion, compose, mixed_information
from skpuffer.privacy._information import INFORMATION
from tests.refused import refused, says

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "information_composition.json").read_text(
        "utf-8"
    )
)
BITS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
SINGLE = ["record_mutual_information", "group_mutual_information"]


def information(secret, outputs, noise, order=120):
    """Mutual information with a secret of equally likely outputs plus Gaussian noise.

    By Gauss-Hermite quadrature around each output, at most two numbers long.
    """
    outputs = np.asarray(outputs, dtype=float).reshape(len(secret), -1)
    noise = np.broadcast_to(np.asarray(noise, dtype=float), outputs.shape[1])
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    grid = np.stack(np.meshgrid(*[nodes] * len(noise), indexing="ij"), axis=-1)
    grid = grid.reshape(-1, len(noise)) * np.sqrt(noise)
    mass = weights / weights.sum()
    for _ in range(len(noise) - 1):
        mass = np.multiply.outer(mass, weights / weights.sum()).ravel()
    total = 0.0
    for own, output in zip(secret, outputs, strict=True):
        at = output + grid
        gaps = at[:, None] - outputs
        logs = -(gaps**2 / noise).sum(axis=2) / 2
        same = secret == own
        given_secret = logsumexp(logs[:, same], axis=1) - math.log(same.sum())
        total += mass @ (given_secret - logsumexp(logs, axis=1) + math.log(len(secret)))
    return total / len(secret)


def whole(value=0.25, **changes):
    fields = {"entropy": math.log(2), "scenario": "one", "release": "a"} | changes
    return Certificate(
        notion="mutual_information", mutual_information=value, accountant="x", **fields
    )


def single(value=0.05, table=0.2, notion=SINGLE[0], **changes):
    return replace(
        whole(value, **changes), notion=Notion.of(notion), table_information=table
    )


# -- budgets about the whole table -----------------------------------------------------


@pytest.mark.parametrize("budget", ["0.25", "0.1"])
@pytest.mark.parametrize("k", [2, 4, 10])
def test_releases_of_one_bit_add_up_to_no_more_than_the_bit(budget, k):
    known = ORACLE["same_bit"][budget]
    # k outputs of one noise are their mean, of a k-th of it
    joint = information(np.arange(2), [-1.0, 1.0], known["noise"] / k)
    assert joint == pytest.approx(known["joint"][str(k)], abs=1e-5)
    alone = information(np.arange(2), [-1.0, 1.0], known["noise"])
    assert alone == pytest.approx(float(budget), abs=1e-5)
    one = whole(float(budget), table="visits")
    found = compose([one] * k)
    assert found.mutual_information == pytest.approx(
        min(k * float(budget), math.log(2))
    )
    assert joint <= found.mutual_information
    assert found.n_releases == k and found.release == " + ".join("a" * k)
    assert found.notion == Notion.MUTUAL_INFORMATION and found.epsilon is None
    assert says(found.assumptions, "assume.releases_not_adaptive")


def test_tables_that_may_be_two_are_not_bounded_by_the_entropy_of_one():
    """Of two subsets, each drawn by its own fit, both entropies may leak."""
    assert compose([whole(0.5)] * 3).mutual_information == pytest.approx(1.5)
    named = [whole(0.5, table="visits")] * 3
    assert compose(named).mutual_information == math.log(2)


@pytest.mark.parametrize(
    "name, maps, noise",
    [
        ("number_and_square", [lambda x: x, lambda x: x**2 / 7], [2.0, 2.0]),
        ("independent_parts", [lambda x: x % 2, lambda x: x // 2], [0.5, 1.0]),
    ],
)
def test_releases_of_one_number_add_up(name, maps, noise):
    known, x = ORACLE[name], np.arange(8)
    outputs = np.column_stack([f(x) for f in maps])
    for one, alone, n in zip(outputs.T, known["alone"], noise, strict=True):
        assert information(x, one, n) == pytest.approx(alone, abs=1e-5)
    joint = information(x, outputs, noise, order=60)
    assert joint == pytest.approx(known["joint"], abs=1e-5)
    added = compose([whole(v, entropy=math.log(8)) for v in known["alone"]])
    assert joint <= added.mutual_information + 1e-6
    assert added.mutual_information == pytest.approx(sum(known["alone"]))


@given(st.lists(st.floats(1e-6, 5.0), min_size=2, max_size=6), st.floats(0.1, 8.0))
def test_a_sum_is_one_in_any_order_and_at_most_the_entropy(budgets, entropy):
    parts = [whole(b, entropy=entropy, table="t") for b in budgets]
    found = compose(parts).mutual_information
    assert found == pytest.approx(min(sum(budgets), entropy))
    assert compose(parts[::-1]).mutual_information == pytest.approx(found)
    stepwise = parts[0]
    for part in parts[1:]:
        stepwise = compose([stepwise, part])
    assert stepwise.mutual_information == pytest.approx(found)
    assert stepwise.n_releases == len(parts)


def test_bounds_that_hold_with_confidence_hold_together_less_often():
    parts = [whole(0.1, confidence=0.95), whole(0.1, confidence=0.99)]
    assert compose(parts).confidence == pytest.approx(0.94)
    assert compose([whole(confidence=0.3)] * 2).confidence == 0.0


def test_one_release_is_itself():
    one = whole()
    assert compose([one]) is one
    alone = single()
    assert mixed_information([alone]) is alone


# -- what does not add up --------------------------------------------------------------


@pytest.mark.parametrize("noise", ["1.0", "0.25"])
def test_two_releases_that_show_nothing_of_a_record_show_it_together(noise):
    """S = X1 xor X2 and X2: each leaks nothing of X1, both together all of it."""
    known, n = ORACLE["exclusive_or"][noise], float(noise)
    first, other = BITS.T
    signs = 2.0 * np.column_stack([first ^ other, other]) - 1
    for one in signs.T:
        assert information(first, one, n) == pytest.approx(known["record"], abs=1e-12)
        table = information(np.arange(4), one, n)
        assert table == pytest.approx(known["table"], abs=1e-5)
    joint = information(first, signs, n)
    assert joint == pytest.approx(known["joint"], abs=2e-5)
    certificates = [single(0.0, known["table"], release=name) for name in "ab"]
    with refused(CompositionError, "compose.single_secret_information"):
        compose(certificates)
    mixed = mixed_information(certificates)
    assert mixed.mutual_information == pytest.approx(known["table"])
    assert joint <= mixed.mutual_information
    assert mixed.notion == Notion.RECORD_MUTUAL_INFORMATION
    assert mixed.table_information == pytest.approx(2 * known["table"])


def test_without_noise_they_show_all_of_it():
    """As the noise goes, what two empty releases leak together goes to log 2."""
    signs = 2.0 * np.column_stack([BITS[:, 0] ^ BITS[:, 1], BITS[:, 1]]) - 1
    assert information(BITS[:, 0], signs, 0.02) == pytest.approx(math.log(2), abs=1e-6)


@pytest.mark.parametrize("notion", SINGLE)
def test_budgets_of_single_secrets_are_refused_in_any_company(notion):
    for company in (single(notion=notion), whole()):
        with refused(CompositionError, "compose.single_secret_information"):
            compose([single(notion=notion), company])
    with refused(CompositionError, "compose.single_secret_information"):
        compose([single(notion=notion)])


@pytest.mark.parametrize("add", [compose, mixed_information])
@pytest.mark.parametrize(
    "changes",
    [
        {"scenario": "another"},
        {"table": "another"},
        {"n_records": 7},
        {"entropy": 9.0},
        {"entropy": None},
    ],
)
def test_other_scenarios_and_tables_are_refused(add, changes):
    first = whole() if add is compose else single()
    with refused(CompositionError, "compose.information_scenarios_differ"):
        add([first, replace(first, **changes)])


@pytest.mark.parametrize("notion", ["pure_dp", "renyi_pufferfish"])
def test_promises_of_another_kind_are_refused(notion):
    other = Certificate(notion=notion, epsilon=1.0, alpha=2.0, scenario="one")
    for pair in ([whole(), other], [other, whole()]):
        with refused(CompositionError, "compose.information_with_other_notion"):
            compose(pair)
    with refused(CompositionError, "compose.information_with_other_notion"):
        mixed_information([single(), other])


def test_estimates_are_refused():
    estimate = Certificate(notion="estimated", mutual_information=0.1, scenario="one")
    for add, kept in ((compose, whole()), (mixed_information, single())):
        with refused(CompositionError, "compose.estimate_not_addable"):
            add([kept, estimate])
        with refused(CompositionError, "compose.no_certificate"):
            add([])


@pytest.mark.parametrize("asked", [{"alpha": 2.0}, {"delta": 1e-5}])
def test_a_sum_has_no_order_and_no_delta(asked):
    with refused(CompositionError, "compose.information_alpha_or_delta"):
        compose([whole(), whole()], **asked)


# -- the mixed bound -------------------------------------------------------------------


def test_the_mixed_bound_takes_the_best_release_for_its_own():
    parts = [single(0.05, 0.2), single(0.01, 0.3), whole(0.4)]
    # .05 + .3 + .4, .01 + .2 + .4, .4 + .2 + .3
    assert mixed_information(parts).mutual_information == pytest.approx(0.61)
    ten = mixed_information([single(0.05, 0.2039150)] * 2).mutual_information
    assert ten == pytest.approx(0.2539150)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 2.0)), min_size=2, max_size=5
    )
)
def test_the_mixed_bound_is_between_the_largest_and_the_table(pairs):
    parts = [single(min(pair), max(pair), entropy=None) for pair in pairs]
    mixed = mixed_information(parts)
    assert mixed.mutual_information <= mixed.table_information + 1e-12
    assert mixed.mutual_information >= max(map(min, pairs)) - 1e-12


def test_the_mixed_bound_needs_to_know_what_the_table_leaks():
    with refused(CompositionError, "compose.table_information_missing"):
        mixed_information([single(), single(table=None)])


def test_the_mixed_bound_is_about_one_kind_of_secret():
    for pair in ([single(), single(notion=SINGLE[1])], [whole(), whole()]):
        with refused(CompositionError, "compose.information_secret_kinds_differ"):
            mixed_information(pair)


# -- what a certificate says of it -----------------------------------------------------


def test_it_is_said_in_nats_and_in_words():
    found = single(
        0.05, 0.2, prior_success=0.5, worst_leakage=1.25, entropy=math.log(16)
    )
    assert "is right with at most 0.6568 after" in str(found)
    said = found.details()
    assert "each record's membership" in said
    assert "mutual information ≤ 0.05 nats" in said
    assert "right with probability 0.5 before is right with at most 0.6568 after" in (
        " ".join(said.split())
    )
    assert "may leak up to 0.2 nats" in said and "1.25 nats (estimated)" in said
    assert "2.573 of 2.773 nats of the table stay unknown" in said
    assert "a convention, no promise of it" in said
    assert "must not be added" in said
    assert "adds up with budgets about the whole table" in str(whole())


def test_nothing_of_another_kind_follows():
    assert set(INFORMATION) == {n for n in Notion.known if "information" in n}
    for notion in INFORMATION:
        held = Certificate(notion=notion, mutual_information=0.1)
        for other in Notion.known.values():
            if other not in INFORMATION:
                assert not held.implies(other), (notion, other)
                assert not Certificate(notion=other, epsilon=1.0).implies(notion)
        with pytest.raises(UncertifiedError):
            held.to_approximate(1e-5)


# -- what an attacker gains ------------------------------------------------------------


@pytest.mark.parametrize(
    "budget, success, epsilon",
    # the published conversions, at a fair prior
    [
        (0.5, 0.95181125, 2.9832),
        (0.25, 0.83789308, 1.6427),
        (0.125, 0.74464026, 1.0702),
    ],
)
def test_conversions_of_a_fair_bit(budget, success, epsilon):
    bound = single(budget, table=1.0, prior_success=0.5)
    assert bound.posterior_success() == pytest.approx(success, abs=1e-7)
    assert bound.membership_advantage() == pytest.approx(2 * success - 1, abs=1e-7)
    assert bound.dp_equivalent() == pytest.approx(epsilon, abs=1e-4)
    # a convention, and no promise
    assert bound.epsilon is None
    assert not bound.implies(Notion.of("approximate_dp"))


@given(st.floats(1e-6, 3.0), st.floats(0.01, 0.99))
def test_a_success_is_the_largest_that_the_budget_allows(budget, prior):
    success = whole(budget).posterior_success(prior)
    assert prior <= success <= 1
    if success < 1:
        spent = budget_for_posterior(success, prior)
        assert spent == pytest.approx(budget, rel=1e-3, abs=1e-12)
    assert 0 <= whole(budget).membership_advantage() <= 1


def test_the_best_guess_of_a_noisy_bit_is_within_the_conversion():
    # a sign in unit noise is guessed right with probability 0.8413
    leaks = information(np.arange(2), [-1.0, 1.0], 1.0)
    bound = whole(leaks, prior_success=0.5)
    assert 0.8413447 < bound.posterior_success() < 0.8853
    assert bound.membership_advantage() > 2 * 0.8413447 - 1
    # which a budget of 0.7 times the information would not allow
    assert whole(0.7 * leaks).posterior_success(0.5) < 0.8413447


def test_nothing_that_leaks_leaves_a_guess_as_it_is():
    bound = whole(0.0, prior_success=0.5)
    assert bound.posterior_success() == 0.5
    assert bound.membership_advantage() == 0
    assert bound.dp_equivalent() == 0


@pytest.mark.parametrize(
    "ask", ["posterior_success", "membership_advantage", "dp_equivalent"]
)
def test_what_bounds_no_information_has_no_conversion(ask):
    private = Certificate(notion="approximate_dp", epsilon=1.0, delta=1e-5)
    with refused(UnsupportedError, "certificate.bounds_no_information"):
        getattr(private, ask)()
    estimate = whole(prior_success=0.5).as_estimate("drawn")
    with refused(UncertifiedError, "certificate.information_is_estimate"):
        getattr(estimate, ask)()


def test_a_success_needs_a_prior():
    with refused(ValueError, "certificate.prior_success_missing"):
        whole().posterior_success()
    with refused(ValueError, "parameter.probability_out_of_range", name="prior"):
        whole().posterior_success(1.5)


@pytest.mark.parametrize("notion", SINGLE)
def test_an_advantage_is_that_of_a_fair_secret(notion):
    unfair = single(notion=notion, prior_success=0.6)
    with refused(UnsupportedError, "certificate.advantage_secret_not_fair"):
        unfair.membership_advantage()
    assert unfair.posterior_success() > 0.6


# -- what stays unknown ----------------------------------------------------------------


@given(st.floats(0.0, 3.0), st.floats(0.0, 5.0), st.floats(0.0, 4.0))
def test_what_stays_unknown_is_the_entropy_less_what_is_told(told, entropy, more):
    report = whole(told, entropy=entropy).residual_report()
    assert report.residual == pytest.approx(max(0.0, entropy - told))
    assert report.intrinsic == 0
    assert report.residual_privacy == pytest.approx(-min(told, entropy))
    # a reference that is larger takes as much off both
    wider = whole(told, entropy=entropy).residual_report(entropy + more)
    assert wider.intrinsic == pytest.approx(-more)
    assert wider.residual_privacy == pytest.approx(report.residual_privacy - more)


def test_of_single_secrets_the_whole_table_stays_unknown_by_its_own_bound():
    report = single(0.05, table=1.0, entropy=4.0).residual_report()
    assert report.information == 1.0 and report.residual == 3.0


@pytest.mark.parametrize("noise", [0.25, 1.0])
def test_no_less_stays_unknown_than_is_reported(noise):
    outputs = BITS @ [1.0, 2.0]
    leaks = information(np.arange(4), outputs, noise)
    bound = whole(leaks * 1.01, entropy=math.log(4))
    assert bound.residual_report().residual < math.log(4) - leaks
    # a bound on less than leaks would report more than stays
    lower = whole(leaks * 0.7, entropy=math.log(4))
    assert lower.residual_report().residual > math.log(4) - leaks


def test_what_bounds_no_information_has_no_report():
    private = Certificate(notion="approximate_dp", epsilon=1.0, delta=1e-5)
    with refused(UnsupportedError, "certificate.bounds_no_information"):
        private.residual_report()
    with refused(UncertifiedError, "certificate.information_is_estimate"):
        whole(entropy=1.0).as_estimate("drawn").residual_report()
    with refused(
        UnsupportedError, "certificate.residual_report_unknown", missing="entropy"
    ):
        whole(entropy=None).residual_report()
    with refused(
        UnsupportedError,
        "certificate.residual_report_unknown",
        missing="table_information",
    ):
        single(table=None, entropy=1.0).residual_report()
    with refused(ValueError, "pac.value_below_entropy"):
        whole(entropy=1.0).residual_report(0.5)
