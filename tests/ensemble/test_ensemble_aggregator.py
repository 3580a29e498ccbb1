"""Answers to votes that were counted elsewhere: noise, budget, refusals."""

import contextlib
import copy
import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import FLOATING_POINT, UNTOUCHED_ROWS
from skpuffer.distributions import PointMass
from skpuffer.ensemble import (
    PATEAggregator,
    noisy_argmax,
    plurality_agreement,
    subsample_votes,
)
from skpuffer.exceptions import QueryBudgetError, SeededNoiseWarning, UnsupportedError
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise
from skpuffer.scenarios import LawsScenario, RecordScenario
from tests.refused import refused

from .argmax_distribution import argmax_distribution

SURE = [[50, 0, 0], [0, 0, 50]]


def aggregator(**changes):
    return PATEAggregator(
        **{
            "accountant": PrivacyLoss(epsilon=50.0, delta=1e-5),
            "n_teachers": 50,
            "n_classes": 3,
            "n_queries": 4,
            **changes,
        }
    )


# -- the noisy argmax ---------------------------------------------------------------


@pytest.mark.parametrize(
    "noise, beta, scale",
    [
        (LaplaceNoise(5.0), 1, 5.0),
        (GaussianNoise(5.0), 2, 5.0 * np.sqrt(2)),
        (GeneralizedGaussianNoise(5.0, beta=1.5), 1.5, 5.0),
        (GeneralizedGaussianNoise(5.0, beta=3), 3, 5.0),
    ],
)
def test_the_argmax_follows_its_exact_law(noise, beta, scale):
    counts, n = [20, 18, 12], 40_000
    labels = noisy_argmax(np.tile(counts, (n, 1)), noise, random_state=0)
    expected = n * argmax_distribution(counts, scale, beta)
    result = stats.chisquare(np.bincount(labels, minlength=3), expected)
    assert result.pvalue > 1e-5


@pytest.mark.parametrize(
    "votes, code",
    [
        ([[1], [2]], "pate.votes_of_wrong_shape"),
        ([1, 2], "pate.votes_of_wrong_shape"),
        ([[1, -1]], "pate.votes_negative_or_infinite"),
        ([[1, np.nan]], "pate.votes_negative_or_infinite"),
    ],
)
def test_the_argmax_refuses_what_is_no_vote(votes, code):
    with refused(ValueError, code):
        noisy_argmax(votes, LaplaceNoise(1.0))


def test_the_argmax_refuses_to_go_without_noise():
    with refused(ValueError, "pate.noise_scale_not_positive"):
        noisy_argmax([[1, 2]], LaplaceNoise(0.0))


# -- the budget ---------------------------------------------------------------------


def test_portions_use_up_one_budget():
    model = aggregator()
    np.testing.assert_array_equal(model.aggregate(SURE), [0, 2])
    certificate, noise = model.certificate_, model.noise_
    assert model.n_queries_left_ == 2
    assert model.histograms(SURE[:1]).shape == (1, 3)
    with refused(QueryBudgetError, "pate.queries_exceed_paid", n_left=1):
        model.aggregate(SURE)
    assert model.n_queries_left_ == 1  # a refused portion costs nothing
    model.aggregate(SURE[:1])
    with refused(QueryBudgetError, "pate.queries_exceed_paid"):
        model.aggregate(SURE[:1])
    assert model.certificate_ is certificate and model.noise_ is noise


def test_the_noise_is_set_before_any_vote_is_seen():
    model = aggregator().calibrate()
    assert model.n_queries_left_ == model.n_answers_left_ == 4
    before = model.noise_
    model.aggregate(SURE)
    assert model.noise_ is before
    assert model.release_.n_records == 50
    assert model.certificate_.epsilon == 50.0
    assert not hasattr(aggregator(), "n_queries_left_")
    assert not hasattr(clone(model), "certificate_")


def test_calibrating_again_begins_anew():
    model = aggregator()
    model.aggregate(SURE)
    assert model.set_params(n_queries=9).calibrate().n_queries_left_ == 9


def test_votes_that_are_refused_cost_nothing():
    model = aggregator()
    for votes in ([[49, 0, 0]], [[51, -1, 0]], [[25.5, 24.5, 0]], [[25, 25]]):
        with refused(
            ValueError,
            (
                "pate.votes_not_whole",
                "pate.votes_out_of_range",
                "pate.votes_shape_wrong",
                "pate.votes_sum_not_teachers",
            ),
        ):
            model.aggregate(votes)
    assert model.n_queries_left_ == 4


def test_no_votes_are_no_query():
    model = aggregator()
    assert model.aggregate(np.zeros((0, 3), dtype=int)).shape == (0,)
    assert model.n_queries_left_ == 4


def test_more_queries_take_more_noise():
    scales = [
        aggregator(n_queries=n).calibrate().noise_.scale for n in (1, 10, 100, 1000)
    ]
    assert scales == sorted(scales)
    np.testing.assert_allclose(np.diff(np.log10(scales)), 0.5, rtol=1e-6)


def test_noisy_counts_are_counts_with_noise():
    model = aggregator(n_queries=4000, accountant=PrivacyLoss(5.0, 1e-5))
    noisy = model.histograms(np.tile([40, 10, 0], (4000, 1)))
    scaled = (noisy - [40, 10, 0]) / model.noise_.scale
    assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-6


def test_copies_share_one_budget():
    model = aggregator(n_queries=4 * len(SURE)).calibrate()
    drawn = [model.histograms(SURE)]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        drawn.append(other.histograms(SURE))
        assert not np.any(drawn[-1] == drawn[0])
        assert other.n_queries_left_ == model.n_queries_left_
    assert model.n_queries_left_ == len(SURE)
    assert not np.any(aggregator().histograms(SURE) == aggregator().histograms(SURE))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_no_query():
    model = aggregator().calibrate()
    child = os.fork()
    if not child:
        try:
            model.histograms(SURE)
        except QueryBudgetError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_threads_put_no_more_queries_than_were_paid_for():
    # a reservation that others see between its check and its charge is made twice
    model = aggregator(n_queries=1).calibrate()
    session, both = model._session, threading.Barrier(2, timeout=0.5)
    reserve, answers = session.reserve, []

    def slow(n_queries):
        reserve(n_queries)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()

    def ask():
        with contextlib.suppress(QueryBudgetError):
            answers.append(model.histograms(SURE[:1]))

    session.reserve = slow
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 1
    assert model.n_queries_left_ == 0


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_the_certificate_says_that_seeded_noise_is_in_floating_point():
    said = aggregator(random_state=0).calibrate().certificate_.assumptions
    assert said.count(FLOATING_POINT) == 1
    assert UNTOUCHED_ROWS not in said  # it reads votes, no rows


def test_a_seed_warns_and_is_certified_as_one():
    with pytest.warns(SeededNoiseWarning):
        model = aggregator(random_state=0).calibrate()
    assert any("seed" in str(text) for text in model.certificate_.assumptions)
    again = aggregator(random_state=0)
    np.testing.assert_array_equal(model.histograms(SURE), again.histograms(SURE))


# -- the threshold ------------------------------------------------------------------


def test_only_agreed_queries_are_answered():
    model = aggregator(n_queries=100, threshold=35.0, threshold_noise_ratio=1.0)
    votes = np.tile([[50, 0, 0], [17, 17, 16]], (50, 1))
    labels = model.aggregate(votes)
    assert np.mean(labels[::2] == 0) > 0.9
    assert np.mean(labels[1::2] == -1) > 0.9
    assert model.n_queries_left_ == 0
    assert model.n_answers_left_ == 100 - np.sum(labels >= 0)


@pytest.mark.parametrize("ratio", [0.2, 5.0])
def test_the_test_is_drawn_with_its_own_noise(ratio):
    """Half a scale of the test's noise below it, 31 in 100 leading classes pass."""
    n = 4000
    model = aggregator(n_queries=n, threshold=1.0, threshold_noise_ratio=ratio)
    scale = ratio * model.calibrate().noise_.scale
    model.set_params(threshold=50 + 0.5 * scale).calibrate()
    answered = model.aggregate(np.tile(SURE[0], (n, 1))) >= 0
    assert model.noise_.scale * ratio == pytest.approx(scale)
    passes = stats.norm.sf(0.5)
    assert stats.binomtest(int(answered.sum()), n, passes).pvalue > 1e-7


def test_after_the_last_answer_there_is_none():
    model = aggregator(n_queries=10, threshold=1.0, max_answers=3)
    model.set_params(accountant=PrivacyLoss(500.0, 1e-5))
    noisy = model.histograms(np.tile(SURE[0], (5, 1)))
    answered = ~np.isnan(noisy).any(axis=1)
    np.testing.assert_array_equal(answered, [True] * 3 + [False] * 2)
    assert model.n_answers_left_ == 0 and model.n_queries_left_ == 5
    with refused(QueryBudgetError, "pate.all_answers_given"):
        model.aggregate(SURE[:1])


def test_fewer_answers_take_less_noise():
    tested = aggregator(n_queries=100, threshold=1.0)
    few = clone(tested).set_params(max_answers=10).calibrate().noise_.scale
    assert few < tested.calibrate().noise_.scale
    assert aggregator(n_queries=100).calibrate().noise_.scale < tested.noise_.scale


# -- refusals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, code, parameters",
    [
        ({"n_teachers": 0}, "parameter.count_too_small", {"name": "n_teachers"}),
        ({"n_records": 49}, "pate.teachers_exceed_records", {}),
        ({"n_classes": 1}, "parameter.count_too_small", {"name": "n_classes"}),
        ({"n_queries": 0}, "parameter.count_too_small", {"name": "n_queries"}),
        ({"relation": "moved"}, "parameter.option_unknown", {"name": "relation"}),
        ({"max_answers": 2}, "pate.max_answers_without_threshold", {}),
        (
            {"accountant": PrivacyLoss(epsilon=0.0)},
            "parameter.not_positive",
            {"name": "epsilon"},
        ),
        ({"scenario": RecordScenario(k=0)}, "parameter.count_too_small", {"name": "k"}),
    ],
)
def test_bad_parameters_leave_nothing(changes, code, parameters):
    model = aggregator(**changes)
    with refused(ValueError, code, **parameters):
        model.aggregate(SURE)
    assert not hasattr(model, "certificate_")


def test_an_interrupt_leaves_nothing(monkeypatch):
    model = aggregator().calibrate()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("skpuffer.ensemble._aggregator.VoteSession", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.calibrate()
    assert set(vars(model)) == set(vars(clone(model)))


def test_wrong_kinds_are_named():
    with refused(TypeError, "parameter.not_instance_or_none", name="scenario"):
        aggregator(scenario=PrivacyLoss()).calibrate()
    with refused(TypeError, "parameter.not_instance_or_none", name="accountant"):
        aggregator(accountant=RecordScenario()).calibrate()


def test_scenarios_that_do_not_speak_of_records_are_refused():
    laws = LawsScenario([(PointMass([0.0]), PointMass([1.0]))])
    with pytest.raises(UnsupportedError):
        aggregator(scenario=laws).calibrate()


def test_voters_may_be_missing_if_that_is_accounted_for():
    votes = [[45, 0, 0], [0, 0, 48]]
    with refused(ValueError, "pate.votes_sum_not_teachers"):
        aggregator().aggregate(votes)
    loose = aggregator(relation="add_remove_vote")
    np.testing.assert_array_equal(loose.aggregate(votes), [0, 2])
    assert loose.noise_.scale < aggregator().calibrate().noise_.scale


# -- agreement ----------------------------------------------------------------------


@given(
    rows=st.lists(
        st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    seed=st.integers(0, 99),
)
def test_subsamples_are_of_one_size(rows, seed):
    votes = np.array(rows) + 1
    least = int(votes.sum(axis=1).min())
    drawn = subsample_votes(votes, least, seed)
    assert np.all(drawn.sum(axis=1) == least)
    assert np.all((drawn >= 0) & (drawn <= votes))
    np.testing.assert_array_equal(drawn, subsample_votes(votes, least, seed))
    with refused(ValueError, "pate.voters_above_votes"):
        subsample_votes(votes, least + 1)


def test_agreement_needs_one_number_of_voters():
    with refused(ValueError, "pate.rows_votes_unequal"):
        plurality_agreement([[3, 1], [3, 2]], [1.0])


def test_one_query_prefers_laplace_noise_and_many_gaussian(data_dir):
    votes = np.load(data_dir / "votes_cifar10h_human.npy")
    votes = subsample_votes(votes, 47, random_state=0)
    assert votes.shape == (10_000, 10)

    def agreement(noise, n_queries):
        return plurality_agreement(
            votes, [0.5, 2.0, 8.0], n_queries=n_queries, noise=noise, random_state=0
        )

    many = agreement("gaussian", 100)
    np.testing.assert_allclose(many, [0.184, 0.541, 0.991], atol=0.02)
    assert np.all(many > agreement("laplace", 100))
    once = agreement("gaussian", 1)
    np.testing.assert_allclose(once, [0.984, 0.998, 1.0], atol=0.005)
    assert once[0] < agreement("laplace", 1)[0]
