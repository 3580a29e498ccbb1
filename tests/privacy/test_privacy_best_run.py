"""Certificates of the best of several trials, each a fit and its score."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.accountants import (
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.exceptions import CompositionError, stated
from skpuffer.kernel.composed_curves import WorstCurve
from skpuffer.privacy import Certificate, compose
from skpuffer.privacy._best_run import (
    Trial,
    best_of_runs,
    every_trial_once,
    one_trial,
)
from skpuffer.privacy_loss import BestRunCurve, GaussianCurve, RandomRuns
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from tests.refused import codes_of, refused, says

RUNS = RandomRuns(8.0, 1.0)
ONE = {1: 1.0, 2: 1.0}
RACE = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))


def count_of(n):
    return QueryRelease(
        query=lambda X, y: np.ones(1),
        n_records=n,
        dim=1,
        name="count",
        is_integer=True,
        sensitivity=Sensitivity(add_remove=ONE, replace=ONE),
    )


def made(accountant, release, scenario=None):
    scenario = RecordScenario() if scenario is None else scenario
    return accountant.calibrate(release, scenario).certificate


def trial(fit=0.5, score=0.5, scenario=None, kind=PrivacyLoss, **more):
    accountants = [kind(e, noise="gaussian", **more) for e in (fit, score)]
    return Trial(
        made(accountants[0], count_of(70), scenario),
        made(accountants[1], count_of(30), scenario),
    )


def test_one_record_is_in_one_part_so_that_fit_and_score_do_not_add_up():
    found = best_of_runs([trial(0.5, 0.4), trial(0.3, 0.2)], RUNS, delta=1e-5)
    # of Gaussian releases the largest counts, of whichever trial and part
    mu = GaussianCurve(trial().fit.curve.gaussian_mu)
    assert found.curve == BestRunCurve(mu, RUNS)
    assert found.epsilon == pytest.approx(found.curve.epsilon(1e-5))
    assert found.notion == "approximate_dp"
    assert found.n_records == 100
    assert found.composable and found.n_releases == 1
    same = best_of_runs([trial(0.2, 0.5)], RUNS, delta=1e-5)
    assert same.epsilon == pytest.approx(found.epsilon)


def test_of_two_records_each_may_be_in_one_of_the_parts():
    pair = RecordScenario(k=2, relation="replace")
    one = trial(0.5, 0.4, pair)
    found = best_of_runs([one], RUNS, delta=1e-5)
    mus = [part.curve.gaussian_mu for part in one.parts]
    assert found.curve.curve == GaussianCurve(math.hypot(*mus))


def test_curves_that_differ_count_by_the_largest_at_each_order():
    run = GradientRelease(n_records=70, n_steps=20, batch_size=10)
    both = [
        Trial(made(PrivacyLoss(0.5), run), trial().score),
        Trial(made(PrivacyLoss(0.5, noise="laplace"), count_of(70)), trial().score),
    ]
    found = best_of_runs(both, RUNS, delta=1e-5)
    inner = found.curve.curve
    assert isinstance(inner, WorstCurve)
    for part in (*both[0].parts, *both[1].parts):
        for alpha in (1.5, 8.0):
            assert inner.renyi(alpha) >= part.curve.renyi(alpha) * (1 - 1e-9)
        for epsilon in (0.0, 0.4):
            assert inner.delta(epsilon) >= part.curve.delta(epsilon) * (1 - 1e-9)
    for one in both:
        alone = best_of_runs([one], RUNS, delta=1e-5)
        assert alone.epsilon <= found.epsilon * (1 + 1e-6)


def test_it_is_between_a_single_trial_and_every_trial():
    trials = [trial()] * 6
    single, best, every = (
        one_trial(trials, delta=1e-5).epsilon,
        best_of_runs(trials, RUNS, delta=1e-5).epsilon,
        every_trial_once(trials, delta=1e-5).epsilon,
    )
    assert single == pytest.approx(0.5)
    assert single < best < every
    # six Gaussian releases on one part
    mu = trials[0].fit.curve.gaussian_mu
    assert every == pytest.approx(GaussianCurve(math.sqrt(6) * mu).epsilon(1e-5))


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_more_runs_cost_more_whatever_the_number_of_candidates(n):
    few = best_of_runs([trial()] * n, RandomRuns(4.0, 1.0), delta=1e-5).epsilon
    many = best_of_runs([trial()] * n, RandomRuns(40.0, 1.0), delta=1e-5).epsilon
    assert 0.5 < few < many < 3 * 0.5


def test_notions_are_those_of_the_trials():
    renyi = trial(kind=RenyiDP, delta=None, alpha=4.0)
    found = best_of_runs([renyi], RUNS, alpha=4.0)
    assert (found.notion, found.alpha) == ("renyi_dp", 4.0)
    assert found.epsilon > 0.5
    accountant = GroupPrivacy(0.5, alpha=math.inf, noise="laplace")
    pure = Trial(made(accountant, count_of(70)), made(accountant, count_of(30)))
    found = best_of_runs([pure], RUNS, alpha=math.inf)
    # Liu and Talwar: less than three times, for a geometric number
    assert found.notion == "pure_dp"
    assert 1.0 < found.epsilon < 1.5


def test_under_a_belief_the_whole_search_is_amplified_last():
    one = trial(0.5, 0.4, RACE, OverlapAmplification)
    found = best_of_runs([one], RUNS, delta=1e-5)
    assert found.notion == "approximate_pufferfish"
    plain = [part.curve.curve.gaussian_mu for part in one.parts]
    assert found.curve.curve == BestRunCurve(GaussianCurve(max(plain)), RUNS)
    assert found.curve.overlap == one.fit.curve.overlap
    assert found.epsilon < found.fallback
    assert found.fallback == pytest.approx(found.curve.curve.epsilon(1e-5))
    # amplified first it would be said to cost less, which does not hold
    first = BestRunCurve(GaussianCurve(max(plain) * 0.9), RUNS)
    assert found.fallback > first.epsilon(1e-5)
    assert says(found.source, "source.amplified_once")


@pytest.mark.parametrize("how", [best_of_runs, every_trial_once, one_trial])
def test_what_is_said_of_one_part_is_not_said_of_the_whole(how):
    """What follows from a single fit, and from its numbers, need not of a search."""
    one = trial()
    run = GradientRelease(n_records=70, n_steps=20, batch_size=10)
    fit = replace(
        one.fit,
        events=made(PrivacyLoss(0.5), run).curve.steps,
        epsilon_lower=0.3,
        rpp_epsilon=0.4,
        sensitivity=1.0,
        norm=2.0,
        record_sensitivity=0.1,
        noise_gain=3.0,
        choice="the best of two",
        n_releases=3,
        assumptions=(*one.fit.assumptions, "of the fit"),
        source="a paper",
    )
    score = replace(one.score, assumptions=(*one.score.assumptions, "of the score"))
    assert fit.events is not None
    arguments = (RUNS,) if how is best_of_runs else ()
    trials = [Trial(fit, score), one]
    found = how(trials, *arguments, delta=1e-5)
    at_an_order = how(trials, *arguments, alpha=4.0)
    of_one_fit = ("events", "epsilon_lower", "noise_gain")
    for name in (*of_one_fit, "sensitivity", "norm", "record_sensitivity"):
        assert getattr(found, name) is getattr(at_an_order, name) is None
    # a value replaced is two steps of records that come and go
    assert found.rpp_epsilon == at_an_order.rpp_epsilon == math.inf
    assert at_an_order.epsilon == pytest.approx(found.curve.renyi(4.0))
    assert (found.choice, found.n_releases, found.n_records) == ("", 1, 100)
    assert {stated("of the fit"), stated("of the score")} < set(found.assumptions)
    assert len(set(found.assumptions)) == len(found.assumptions)
    assert {fit.source, score.source} <= set(found.source.parameters["parts"])
    assert found.release == "count"
    assert (found.certified, found.composable) == (True, True)
    # where nobody knows of how many records a part is, nobody knows of the whole
    for parts in (
        (replace(fit, n_records=None), score),
        (fit, replace(score, n_records=None)),
    ):
        assert how([Trial(*parts)], *arguments, delta=1e-5).n_records is None


def test_of_two_records_every_trial_and_a_single_one_cost_fit_and_score():
    pair = RecordScenario(k=2, relation="replace")
    trials = [trial(0.5, 0.4, pair), trial(0.3, 0.6, pair)]
    mus = np.array([[part.curve.gaussian_mu for part in t.parts] for t in trials])
    every = every_trial_once(trials, delta=1e-5)
    assert every.curve.gaussian_mu == pytest.approx(np.linalg.norm(mus))
    single = one_trial(trials, delta=1e-5)
    assert single.curve.gaussian_mu == pytest.approx(np.linalg.norm(mus, axis=1).max())
    # of one record the worse of all fits and of all scores
    trials = [trial(0.5, 0.4), trial(0.3, 0.6)]
    mus = np.array([[part.curve.gaussian_mu for part in t.parts] for t in trials])
    every = every_trial_once(trials, delta=1e-5)
    assert every.curve.gaussian_mu == pytest.approx(np.linalg.norm(mus, axis=0).max())
    single = one_trial(trials, delta=1e-5)
    assert single.curve.gaussian_mu == pytest.approx(mus.max())
    assert says(every.source, "source.every_trial_once")
    assert says(single.source, "source.one_trial")


@pytest.mark.parametrize("how", [every_trial_once, one_trial])
def test_no_other_way_to_count_trials_takes_what_the_best_of_them_refuses(how):
    one = trial()
    for trials, match in (
        ([], "no trial"),
        ([Trial(one.fit.as_estimate("seen"), one.score)], "estimate"),
        ([Trial(one.fit, replace(one.score, composable=False))], "single records"),
        ([Trial(replace(one.fit, event_delta=1e-7), one.score)], "event"),
        (
            [Trial(one.fit, trial(scenario=RecordScenario(relation="replace")).score)],
            "different neighbouring",
        ),
    ):
        with pytest.raises(CompositionError, match=match):
            how(trials, delta=1e-5)


def test_an_event_of_a_belief_is_one_event_of_all_trials():
    """It is about the record that all of them read, and not about the tables."""
    one = trial(scenario=RACE, kind=OverlapAmplification)
    fit, score = (replace(part, event_delta=1e-6) for part in one.parts)
    found = best_of_runs([Trial(fit, score)] * 3, RUNS, delta=1e-5)
    assert (found.event_delta, found.delta) == (1e-6, 1e-5)
    assert found.epsilon == pytest.approx(found.curve.epsilon(9e-6))
    with refused(CompositionError, "compose.best_run_beliefs_differ"):
        best_of_runs([Trial(fit, one.score)], RUNS, delta=1e-5)


def test_a_belief_counts_all_trials_for_any_record_and_amplifies_once():
    trials = [trial(0.5, 0.4, RACE, OverlapAmplification)] * 3
    mus = [part.curve.curve.gaussian_mu for part in trials[0].parts]
    every = every_trial_once(trials, delta=1e-5)
    assert every.curve.curve.gaussian_mu == pytest.approx(math.sqrt(3) * max(mus))
    assert every.curve.overlap == trials[0].fit.curve.overlap
    assert codes_of(every.source) >= {
        "source.amplified_once",
        "source.every_trial_once",
    }
    single = one_trial(trials, delta=1e-5)
    assert single.curve.curve.gaussian_mu == pytest.approx(max(mus))
    assert single.epsilon < every.epsilon


def test_it_composes_with_others_and_is_written_and_read():
    found = best_of_runs([trial()], RUNS, delta=1e-5)
    other = made(PrivacyLoss(0.5, noise="gaussian"), count_of(100))
    both = compose([found, other])
    assert found.epsilon < both.epsilon < found.epsilon + 0.5
    assert compose([found], counts=[2]).epsilon > found.epsilon
    again = Certificate.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.to_approximate(1e-6).epsilon == found.to_approximate(1e-6).epsilon


def test_what_no_promise_follows_from_is_refused():
    one = trial()
    with refused(CompositionError, "compose.best_run_empty"):
        best_of_runs([], RUNS, delta=1e-5)
    with refused(CompositionError, "compose.best_run_estimate_or_curveless"):
        best_of_runs([Trial(one.fit.as_estimate("seen"), one.score)], RUNS, delta=1e-5)
    with refused(CompositionError, "compose.best_run_estimate_or_curveless"):
        best_of_runs([Trial(replace(one.fit, curve=None), one.score)], RUNS, delta=1e-5)
    of_slices = replace(one.fit, notion="joint_sliced_renyi_pufferfish")
    with refused(CompositionError, "compose.best_run_estimate_or_curveless"):
        best_of_runs([Trial(of_slices, one.score)], RUNS, delta=1e-5)
    # all days of a chain may differ, of which the parts hold different numbers
    chain = MarkovChainScenario([[0.9, 0.1], [0.1, 0.9]], table="days")
    fit = made(PrivacyLoss(0.5), count_of(70), chain)
    with refused(CompositionError, "compose.best_run_neighbours_differ"):
        best_of_runs([Trial(fit, one.score)], RUNS, delta=1e-5)
    # nor is it known what parts of a table are neighbours where a whole one is coupled
    for part in (
        replace(one.fit, composable=False),
        replace(one.fit, coupling_id="of days"),
    ):
        with refused(CompositionError, "compose.best_run_table_coupling"):
            best_of_runs([Trial(part, part)], RUNS, delta=1e-5)
    replaced = trial(scenario=RecordScenario(relation="replace"))
    with refused(CompositionError, "compose.best_run_neighbours_differ"):
        best_of_runs([Trial(one.fit, replaced.score)], RUNS, delta=1e-5)
    mixed = Trial(trial(scenario=RACE, kind=OverlapAmplification).fit, replaced.score)
    with refused(CompositionError, "compose.best_run_beliefs_differ"):
        best_of_runs([mixed], RUNS, delta=1e-5)
    narrow = AttributeScenario("race", level="record", prior=BoundedOdds(2.0))
    other = trial(scenario=narrow, kind=OverlapAmplification)
    with refused(CompositionError, "compose.best_run_beliefs_differ"):
        best_of_runs(
            [trial(scenario=RACE, kind=OverlapAmplification), other], RUNS, delta=1e-5
        )
    event = replace(one.fit, event_delta=1e-7)
    with refused(CompositionError, "compose.best_run_prior_event"):
        best_of_runs([Trial(event, one.score)], RUNS, delta=1e-5)
