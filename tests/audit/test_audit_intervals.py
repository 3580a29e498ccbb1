"""Intervals of rates, of areas under ROC curves, and of one run."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from skpuffer.accountants import PrivacyLoss
from skpuffer.audit import MembershipAttack, clopper_pearson, distinguishing_attack
from skpuffer.audit._membership import one_run_p_value
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Certificate
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import refused


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def normals(rng, n, m, shift, **options):
    scores = np.concatenate([rng.normal(shift, 1, n), rng.normal(0, 1, m)])
    return MembershipAttack(scores, np.repeat([True, False], [n, m]), **options)


def test_bounds_of_a_rate_cover(rng):
    rate, trials = 0.03, 500
    found = rng.binomial(trials, rate, size=2000)
    bounds = np.array([clopper_pearson(k, trials, 0.01) for k in found])
    assert np.mean(bounds[:, 0] > rate) <= 0.02
    assert np.mean(bounds[:, 1] < rate) <= 0.02
    assert clopper_pearson(0, 10, 0.01)[0] == 0.0
    assert clopper_pearson(10, 10, 0.01)[1] == 1.0


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("rounded", [False, True], ids=["", "ties"])
def test_intervals_of_an_area_cover(shift, rounded, rng):
    n_runs = 600
    points = np.arange(-8, 9)
    # the exact area, of scores as they are and of rounded ones
    exact = norm.cdf(shift / math.sqrt(2))
    if rounded:
        mass = [
            np.diff(norm.cdf(np.append(points - 0.5, 8.5), loc)) for loc in (shift, 0)
        ]
        joint = np.outer(*mass)
        exact = np.tril(joint, -1).sum() + np.trace(joint) / 2
    missed = {"delong": 0, "pairs": 0}
    for _ in range(n_runs):
        attack = normals(rng, 60, 90, shift)
        if rounded:
            attack = MembershipAttack(np.round(attack.scores), attack.labels)
        for method in missed:
            low, high = attack.auc_interval(method)
            missed[method] += not low <= exact <= high
    # at a nominal 5 percent; the second is exact, and the first nearly so
    assert missed["pairs"] <= 0.05 * n_runs + 3 * math.sqrt(0.05 * n_runs)
    assert missed["delong"] <= 0.06 * n_runs + 3 * math.sqrt(0.06 * n_runs)


def test_an_area_counts_ties_half_and_has_delong_error(rng):
    attack = MembershipAttack([1.0, 1.0, 2.0, 0.0], [True, False, True, False])
    assert attack.auc == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    one = normals(rng, 4000, 4000, 0.0)
    low, high = one.auc_interval()
    # oracle: the variance of Mann and Whitney's statistic under chance
    spread = math.sqrt((4000 + 4000 + 1) / (12 * 4000 * 4000))
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.02)


def test_scores_that_separate_have_an_exact_interval():
    labels = np.repeat([True, False], 50)
    low, high = MembershipAttack(labels.astype(float), labels).auc_interval()
    assert low == pytest.approx(clopper_pearson(50, 50, 0.025)[0]) and high == 1.0
    low, high = MembershipAttack(np.zeros(100), labels).auc_interval()
    assert 0.2 < low < 0.5 < high < 0.8
    # one of a kind: no variance can be told
    one = MembershipAttack([1.0, 0.0, 0.5], [True, False, False])
    assert one.auc_interval() == pytest.approx((0.025, 1.0))


def test_an_interval_does_not_follow_the_order_of_the_scores(rng):
    scores = np.sort(rng.normal(size=400))
    attack = MembershipAttack(np.tile(scores, 2), np.repeat([True, False], 400))
    low, high = attack.auc_interval("pairs")
    assert low < 0.5 < high and high - low < 0.12


def test_rates_are_measured_where_the_threshold_was_not_chosen(rng):
    n_runs, missed = 400, 0
    for _ in range(n_runs):
        point = normals(rng, 200, 400, 1.0, confidence=0.9).tpr_at(0.02)
        exact = norm.sf(point.threshold - 1)
        missed += not point.tpr_interval[0] <= exact <= point.tpr_interval[1]
        low, high = point.fpr_interval
        assert low <= point.fpr <= high
    assert missed <= 0.1 * n_runs + 3 * math.sqrt(0.1 * n_runs)


def test_a_rate_below_one_false_alarm_takes_the_largest_score(rng):
    attack = normals(rng, 100, 20, 3.0)
    point = attack.tpr_at(1e-6)
    assert point.threshold in attack.scores[~attack.labels]
    assert 0 <= point.fpr <= 0.3


def test_the_roc_curve_and_the_advantage(rng):
    attack = normals(rng, 5000, 5000, 1.0)
    fpr, tpr = attack.roc()
    assert fpr[0] == tpr[0] == 0 and fpr[-1] == tpr[-1] == 1
    assert np.trapezoid(tpr, fpr) == pytest.approx(attack.auc)
    # oracle: total variation of two unit normals
    assert attack.advantage == pytest.approx(2 * norm.cdf(0.5) - 1, abs=0.03)


# -- one run ---------------------------------------------------------------------------


def coins(rng, epsilon, n=2000):
    """Randomised response about each of many coins."""
    member = rng.random(n) < 0.5
    truth = rng.random(n) < 1 / (1 + math.exp(-epsilon))
    scores = np.where(truth, member, ~member) + rng.uniform(-0.1, 0.1, n)
    return MembershipAttack(scores, member, relation="add_remove")


def test_one_run_of_randomised_response_is_told_from_a_weaker_one(rng):
    pure = Certificate(notion="pure_dp", epsilon=1.0, relation="add_remove")
    values = [coins(rng, 1.0).one_run_p_value(pure) for _ in range(300)]
    # at most its level, whichever that is
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(values) <= level) <= level + 3 * math.sqrt(level / 300)
    # 1 / 0.7 of the epsilon, and a few more guesses
    assert coins(rng, 1 / 0.7).one_run_p_value(pure, n_guesses=2000) < 1e-4


def test_one_run_by_the_numbers_of_the_paper():
    # oracle: Steinke, Nasr and Jagielski (2023), appendix D: 75 of 100 guesses right
    # about 1000 records; at delta = 1e-4 every epsilon below 0.673 is rejected at 0.05
    for epsilon, rejected in ((0.6725, True), (0.6735, False)):
        value = one_run_p_value(75, 100, 1000, [(epsilon, 1e-4)])
        assert (value < 0.05) == rejected
    # the least of several bounds
    both = one_run_p_value(75, 100, 1000, [(0.6, 1e-4), (3.0, 1e-4)])
    assert both == one_run_p_value(75, 100, 1000, [(0.6, 1e-4)])


def test_one_run_counts_delta_for_every_record(rng):
    attack = coins(rng, 3.0)
    values = [
        attack.one_run_p_value(
            Certificate(
                notion="approximate_dp", epsilon=2.5, delta=d, relation="add_remove"
            ),
            n_guesses=1000,
        )
        for d in (1e-12, 1e-6, 1e-5)
    ]
    assert values[0] < values[1] < values[2] <= 1


def test_few_members_do_not_break_what_is_kept(rng):
    """An asymptotic interval of ten members would say so three times too often."""
    distance = 2.5
    release = GradientRelease(n_records=10, n_steps=1, sampling="full_batch")
    promise = PrivacyLoss(epsilon=1.0, delta=1e-5).certify(
        GaussianNoise(2 / distance), release, RecordScenario(relation="replace")
    )
    # the best attacker there is, at the limit of what is allowed
    attacks = [normals(rng, 10, 200, distance) for _ in range(200)]
    wrong = sum(attack.exceeds(promise) for attack in attacks)
    assert wrong <= binom.isf(1e-6, 200, 0.05)
    # that the other interval is off is why it has to be asked for
    asymptotic = sum(attack.exceeds(promise, method="delong") for attack in attacks)
    assert wrong < asymptotic


def test_one_run_does_not_rest_on_independence():
    """All scores by one coin of the model: averages over one run would be deceived."""
    rng = np.random.default_rng(0)
    member = rng.random(2000) < 0.5
    attack = MembershipAttack(np.where(member, 1.0, 0.0), member, relation="add_remove")
    # all or nothing, which delta is about
    promise = Certificate(
        notion="approximate_dp", epsilon=0.1, delta=0.5, relation="add_remove"
    )
    assert attack.exceeds(promise)
    assert attack.one_run_p_value(promise) == 1.0


def test_one_run_needs_coins_and_an_even_number_of_guesses(rng):
    pure = Certificate(notion="pure_dp", epsilon=1.0, relation="add_remove")
    with refused(ValueError, "audit.one_run_needs_coin"):
        normals(rng, 50, 50, 1.0).one_run_p_value(pure)
    attack = coins(rng, 1.0, n=100)
    for n_guesses in (3, 102):
        with refused(ValueError, "audit.guesses_odd_or_many"):
            attack.one_run_p_value(pure, n_guesses=n_guesses)
    with refused(ValueError, "audit.estimate_promises_nothing"):
        attack.one_run_p_value(pure.as_estimate("peeked"))


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scores, labels, message",
    [
        ([1.0, math.nan], [1, 0], "audit.scores_not_finite"),
        ([1.0, math.inf], [1, 0], "audit.scores_not_finite"),
        ([1.0, 2.0], [1, 1], "audit.labels_of_one_kind"),
        ([1.0, 2.0], [1, 0, 0], "audit.labels_not_per_score"),
        ([1.0, 2.0], [1, 2], "audit.labels_not_per_score"),
        ([], [], "audit.not_a_list_of_numbers"),
        ([[1.0, 2.0]], [1, 0], "audit.not_a_list_of_numbers"),
        (["17.53", "b"], [1, 0], "audit.not_a_list_of_numbers"),
    ],
)
def test_scores_and_labels_are_checked(scores, labels, message):
    with refused(ValueError, message) as caught:
        MembershipAttack(scores, labels)
    assert "17.53" not in str(caught.value)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, math.nan])
def test_rates_to_measure_at_are_in_the_open_interval(rate, rng):
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        normals(rng, 50, 50, 1.0).tpr_at(rate)
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        normals(rng, 50, 50, 1.0).exceeds(
            Certificate(notion="pure_dp", epsilon=1.0, relation="replace"), fpr=rate
        )


def test_other_parameters_of_an_attack(rng):
    for options, message in (
        ({"confidence": 1.0}, "'confidence'"),
        ({"relation": "relabel"}, "'relation'"),
    ):
        with pytest.raises(ValueError, match=message):
            normals(rng, 5, 5, 1.0, **options)
    with refused(ValueError, "parameter.option_unknown", name="method"):
        normals(rng, 5, 5, 1.0).auc_interval("bootstrap")
    pure = Certificate(notion="pure_dp", epsilon=1.0, relation="replace")
    with refused(ValueError, "audit.fewer_than_five_scores"):
        normals(rng, 4, 9, 1.0).against(pure)
    with refused(ValueError, "audit.one_score_only", kind="others"):
        normals(rng, 4, 1, 1.0).tpr_at(0.1)


@pytest.mark.parametrize(
    "first, second, options, code, parameters",
    [
        (
            [1.0, math.nan],
            [1.0, 2.0],
            {},
            "parameter.array_not_finite",
            {"name": "first"},
        ),
        (
            [1.0] * 9,
            [["17.53 m"]] * 9,
            {},
            "parameter.array_not_finite",
            {"name": "second"},
        ),
        (np.ones((9, 2)), np.ones((9, 3)), {}, "audit.outputs_lengths_unequal", {}),
        (np.ones((3, 1)), np.ones((9, 1)), {}, "audit.share_leaves_none", {}),
        (np.ones((9, 1, 1)), np.ones((9, 1)), {}, "audit.outputs_not_one_per_row", {}),
        (
            np.ones(9),
            np.ones(9),
            {"share": 1.0},
            "parameter.probability_out_of_range",
            {"name": "share"},
        ),
        (
            np.ones(9),
            np.ones(9),
            {"confidence": 0.0},
            "parameter.probability_out_of_range",
            {"name": "confidence"},
        ),
        (
            np.ones(9),
            np.ones(9),
            {"score": lambda x: 1.0},
            "audit.score_not_per_output",
            {},
        ),
    ],
)
def test_outputs_of_two_worlds_are_checked(first, second, options, code, parameters):
    with refused(ValueError, code, **parameters) as caught:
        distinguishing_attack(first, second, **options)
    assert "17.53" not in str(caught.value)
