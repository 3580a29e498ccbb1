"""Chances of noisy votes: exact ones, made-up histograms, and how they are drawn."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skpuffer.accountants import scale_for
from skpuffer.exceptions import Statement
from skpuffer.inspection import equivalent_noises
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.papers import (
    VoteUtilityDisplay,
    argmax_distribution,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "noise_family.json").read_text()
)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def noise_of(beta, scale=1.0):
    return GeneralizedGaussianNoise(scale, beta=beta)


# -- the law of the winner ------------------------------------------------------------


@pytest.mark.every_run
@pytest.mark.parametrize("case", ORACLES["argmax_distributions"]["rows"], ids=str)
def test_law_of_the_winner(case):
    votes, scale = (
        ORACLES["argmax_distributions"]["votes"],
        ORACLES["argmax_distributions"]["scale"],
    )
    (law,) = argmax_distribution([votes], noise_of(case["beta"], scale))
    np.testing.assert_allclose(law, case["law"], rtol=0, atol=1e-8)


@given(
    votes=st.lists(st.integers(0, 60), min_size=2, max_size=6),
    beta=st.floats(1.0, 5.0),
    scale=st.floats(0.5, 50.0),
)
def test_law_is_one(votes, beta, scale):
    (law,) = argmax_distribution([votes], noise_of(beta, scale))
    assert law.sum() == pytest.approx(1, abs=5e-6)
    # who has more votes wins more often
    order = np.argsort(votes, kind="stable")
    assert np.all(np.diff(law[order]) > -5e-6)


@pytest.mark.parametrize("beta", [1, 1.3, 2, 4])
def test_equal_counts_are_equally_likely(beta):
    law = argmax_distribution([[3, 3, 3, 3]], noise_of(beta, 5.0))
    np.testing.assert_allclose(law, 0.25, atol=1e-6)


def test_closed_forms_of_two_classes():
    gap = np.array([0.0, 0.5, 3.0, 40.0])
    votes = np.column_stack([100 + gap, np.full(4, 100.0)])
    laplace = 1 - np.exp(-gap / 2) * (2 + gap / 2) / 4
    np.testing.assert_allclose(
        hardmax_utility(votes, noise_of(1, 2.0)), laplace, atol=1e-10
    )
    gaussian = norm.cdf(gap / 2.0)  # the difference has twice the variance, 4
    np.testing.assert_allclose(
        hardmax_utility(votes, noise_of(2, 2.0)), gaussian, atol=1e-10
    )


@pytest.mark.parametrize("beta", [1, 1.5, 3])
def test_law_against_draws(beta):
    votes = np.array([[12, 10, 9, 3, 0]])
    noise, rng = noise_of(beta, 4.0), np.random.default_rng(0)
    n = 100_000
    drawn = np.argmax(votes + noise.sample((n, 5), rng), axis=1)
    shares = np.bincount(drawn, minlength=5) / n
    (law,) = argmax_distribution(votes, noise)
    assert np.all(np.abs(shares - law) < 4.5 * np.sqrt(law * (1 - law) / n) + 1e-5)
    assert hardmax_utility(votes, noise)[0] == pytest.approx(law[0], abs=1e-12)


def test_the_leader_may_stand_anywhere():
    votes = np.array([[10, 30, 20], [30, 20, 10], [20, 10, 30]])
    found = hardmax_utility(votes, noise_of(1.5, 5.0))
    np.testing.assert_allclose(found, found[0], rtol=1e-12)
    np.testing.assert_array_equal(votes[0], [10, 30, 20])


# -- made-up votes --------------------------------------------------------------------


@given(
    n_votes=st.integers(1, 3000),
    n_classes=st.integers(3, 30),
    gap=st.floats(0, 100),
    seed=st.integers(0, 5),
)
def test_histograms_add_up_and_are_in_order(n_votes, n_classes, gap, seed):
    votes = make_vote_histograms(
        n_votes, n_classes, gap, n_histograms=4, random_state=seed
    )
    assert votes.shape == (4, n_classes)
    assert np.all(votes.sum(axis=1) == n_votes)
    assert np.all(votes == np.floor(votes)) and np.all(votes >= 0)
    assert np.all(np.diff(votes[:, :3], axis=1) <= 0)
    assert np.all(votes[:, 3:] <= votes[:, [2]])


@pytest.mark.parametrize("n_classes", [2, 3, 10, 25])
def test_the_runner_up_is_as_far_behind_as_asked(n_classes):
    votes = make_vote_histograms(10_000, n_classes, 8.0, random_state=0)
    assert votes[0, 1] / votes[0, 0] == pytest.approx(0.92, rel=0.005)
    if n_classes > 2:
        assert votes[0, 2] / votes[0, 1] == pytest.approx(0.95, rel=0.005)


def test_all_ways_to_share_out_the_rest_are_equally_likely():
    n = 20_000
    votes = make_vote_histograms(50, 6, 0.0, n_histograms=n, random_state=1)
    most = int(votes[0, 2])
    total = int(votes[0, 3:].sum())
    directions, counts = np.unique(votes[:, 3:], axis=0, return_counts=True)
    every = np.indices((most + 1,) * 3).reshape(3, -1)
    assert len(directions) == np.sum(every.sum(axis=0) == total) > 10
    expected = n / len(directions)
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


# -- which noise wins -----------------------------------------------------------------


def auc_by_trapezes(noise, n_votes, n_gaps):
    """The mean as the tables have it, a hair below the integral."""
    gaps = np.linspace(0, 10, n_gaps)
    votes = np.vstack([make_vote_histograms(n_votes, 2, gap) for gap in gaps])
    return np.trapezoid(hardmax_utility(votes, noise), gaps) / 10


@pytest.mark.parametrize("case", ORACLES["auc_one_query"]["rows"], ids=str)
def test_one_query(case):
    table = ORACLES["auc_one_query"]
    noises = equivalent_noises(case["epsilon"], table["delta"], table["betas"])
    found = [auc_by_trapezes(noise, table["n_votes"], 101) for noise in noises]
    np.testing.assert_allclose(found, case["auc"], rtol=0, atol=6e-6)
    assert np.argmax(found) == 0


@pytest.mark.parametrize("case", ORACLES["auc_many_queries"]["rows"], ids=str)
def test_many_queries(case):
    table = ORACLES["auc_many_queries"]
    noises = equivalent_noises(
        table["epsilon"], table["delta"], table["betas"], n_steps=case["n_queries"]
    )
    found = [auc_by_trapezes(noise, case["n_votes"], 51) for noise in noises]
    # a calibrated scale may be a bit above the least
    np.testing.assert_allclose(found, case["auc"], rtol=0, atol=3.5e-5)
    assert np.argmax(found) == np.argmax(case["auc"]) > 0


def test_matched_by_a_renyi_order():
    table = ORACLES["auc_many_queries"]
    case = table["renyi"]
    noises = [
        noise.with_scale(scale_for(noise, case["alpha"], case["epsilon"], 1.0))
        for noise in map(noise_of, table["betas"])
    ]
    found = [auc_by_trapezes(noise, case["n_votes"], 51) for noise in noises]
    np.testing.assert_allclose(found, case["auc"], rtol=0, atol=6e-6)


def test_the_mean_over_gaps_is_exact():
    (noise,) = equivalent_noises(1.0, 1e-5, [1.5])
    gaps = np.linspace(0, 10, 2001)
    votes = np.vstack([make_vote_histograms(1000, 2, gap) for gap in gaps])
    mean = np.trapezoid(hardmax_utility(votes, noise), gaps) / 10
    assert hardmax_auc(noise) == pytest.approx(mean, abs=2e-6)


def test_more_classes_favour_lighter_noise_even_more():
    # simulated figures of 25 classes, gaps from 0.1 to 20 %: to two digits
    found = [
        hardmax_auc(noise, n_classes=25, gaps=(0.1, 20.0), n_histograms=20, n_gaps=8)
        for noise in equivalent_noises(1.0, 1e-5, [1, 2, 4])
    ]
    np.testing.assert_allclose(found, [0.965, 0.861, 0.578], atol=0.01)


# -- drawings -------------------------------------------------------------------------


def test_display():
    display = VoteUtilityDisplay.from_budget(
        betas=[2, 1],
        n_queries=[1, 50],
        n_votes=[1000, 2000],
        relation="add_remove_vote",
        line_kw={"ls": ":"},
    )
    assert display.utilities.shape == display.scales.shape == (2, 2)
    np.testing.assert_array_equal(display.best_betas_, [1, 2])
    lines = display.lines_
    assert [line.get_label() for line in lines] == ["1 query", "50 queries"]
    np.testing.assert_array_equal(lines[1].get_xdata(), [1, 2])
    np.testing.assert_array_equal(lines[1].get_ydata(), display.utilities[1])
    assert lines[0].get_linestyle() == ":"
    assert display.ax_.get_xlabel() == "Shape β"
    assert display.ax_.get_title() == "ε = 1, δ = 1e-05, 2 classes"
    (one,) = equivalent_noises(1.0, 1e-5, [2])
    assert display.scales[0, 1] == one.scale
    assert display.utilities[0, 1] == hardmax_auc(one)


def test_a_replaced_vote_costs_two_moves():
    one, two = (
        VoteUtilityDisplay.from_budget(betas=[2], n_queries=n, relation=relation)
        for n, relation in ((10, "replace_vote"), (20, "add_remove_vote"))
    )
    np.testing.assert_array_equal(one.scales, two.scales)


def test_one_gap():
    display = VoteUtilityDisplay.from_budget(
        betas=[1.5], n_queries=1, gaps=4.0, relation="add_remove_vote"
    )
    (noise,) = equivalent_noises(1.0, 1e-5, [1.5])
    want = hardmax_utility(make_vote_histograms(1000, 2, 4.0), noise)
    np.testing.assert_allclose(display.utilities[0], want, rtol=1e-12)
    _, ax = plt.subplots()
    assert display.plot(ax) is display and display.ax_ is ax


@pytest.mark.parametrize(
    "options, said",
    [
        ({"betas": [0.5]}, Statement("inspection.betas_below_one")),
        ({"n_queries": 0}, Statement("parameter.count_too_small", name="n_queries")),
        ({"n_votes": [1, 2, 3]}, Statement("papers.n_votes_count_mismatch")),
        ({"n_votes": 0.5}, Statement("parameter.count_too_small", name="n_votes")),
        ({"n_classes": 1}, Statement("parameter.count_too_small", name="n_classes")),
        ({"relation": "swap"}, Statement("parameter.option_unknown", name="relation")),
        ({"gaps": (5, 1)}, Statement("papers.gaps_not_percentages")),
        ({"gaps": 101.0}, Statement("papers.gaps_not_percentages")),
        (
            {"n_classes": 5, "n_histograms": 0},
            Statement("parameter.count_too_small", name="n_histograms"),
        ),
    ],
)
def test_bad_parameters(options, said):
    with refused(ValueError, said.code, **said.parameters):
        VoteUtilityDisplay.from_budget(**options)


@pytest.mark.parametrize("votes", [[1, 2], [[1]], [[1, -1]], [[1, np.nan]]])
@pytest.mark.parametrize("function", [argmax_distribution, hardmax_utility])
def test_bad_votes(function, votes):
    with refused(
        ValueError, ("pate.votes_negative_or_infinite", "pate.votes_of_wrong_shape")
    ):
        function(votes, noise_of(2))
