"""Quantiles by noisy ranks: the exponential mechanism, and permute-and-flip."""

import math
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from skpuffer.accountants import (
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.distributions import PointMass
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.noise import (
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion
from skpuffer.privacy._written import from_plain
from skpuffer.releases import QueryRelease, SelectionRelease, Sensitivity
from skpuffer.scenarios import DependenceScenario, LawsScenario, RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateQuantile
from skpuffer.summary._quantile import RankScores, grid_size, halvings
from tests.attack import assert_tight
from tests.refused import refused

RELATIONS = ("add_remove", "replace")


def scores_of(x, q, candidates):
    """Scores by their definition, record by record."""
    x, found = np.asarray(x), []
    for c in candidates:
        below, above, n = np.sum(x < c), np.sum(x > c), len(x)
        found.append(
            -max(
                (1 - q) * below - q * (n - below), q * above - (1 - q) * (n - above), 0
            )
        )
    return np.array(found)


def law(x, q, candidates, scale, measure=1.0):
    """Probability of each candidate."""
    weights = measure * np.exp(scores_of(x, q, candidates) / scale)
    return weights / weights.sum()


class Drawn(GumbelNoise):
    """Scale without noise: the best candidate."""

    def sample(self, shape, rng):
        return np.zeros(shape)


# -- scores ---------------------------------------------------------------------------

VALUES = st.lists(st.integers(0, 6), min_size=1, max_size=9)
LEVELS = st.floats(0.02, 0.98)


@given(VALUES, st.integers(0, 6), st.integers(0, 6), LEVELS)
def test_no_score_moves_out_of_its_range(x, one, other, q):
    # between the values as well: of intervals
    candidates = np.arange(0, 6.5, 0.5)
    scores = RankScores(0, (q,), 0.0, 6.0)
    tables = {
        "add_remove": (x, [*x, one]),
        "replace": ([*x, one], [*x, other]),
    }
    for relation, (first, second) in tables.items():
        moves = scores_of(second, q, candidates) - scores_of(first, q, candidates)
        assert np.ptp(moves) <= scores.ranges(relation)[0] + 1e-12


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("relation", RELATIONS)
def test_some_tables_attain_the_range(q, relation):
    base = list(np.arange(1, 200))
    candidates = np.arange(0, 200.5, 0.5)
    wide = 0.0 if q < 0.5 else 200.0
    first, second = base, [*base, wide]
    if relation == "replace":
        first, second = [*base, 0.0], [*base, 200.0]
    moves = scores_of(second, q, candidates) - scores_of(first, q, candidates)
    assert np.ptp(moves) == pytest.approx(
        RankScores(0, (q,), 0.0, 200.0).ranges(relation)[0]
    )


def test_relations_that_are_not_known_cost_the_most():
    assert RankScores(0, (0.5,), 0, 1).ranges("relabel") == (2.0,)


# -- the mechanism --------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.2, 0.5])
def test_values_of_a_grid_are_chosen_by_their_law(q):
    x, scale = np.array([0, 1, 1, 1, 4.2, 9.0]), 1.3
    scores = RankScores(0, (q,), 0.0, 5.0, 1.0)
    rng = np.random.default_rng(0)
    drawn = [
        scores.choose(x[:, None], GumbelNoise(scale), rng)[0] for _ in range(8_000)
    ]
    expected = law(np.clip(x, 0, 5), q, np.arange(6), scale)
    counts = np.bincount(np.array(drawn).astype(int), minlength=6)
    assert chisquare(counts, 8_000 * expected).pvalue > 1e-6


def test_values_between_records_are_chosen_by_their_law():
    x, q, scale = np.array([0.1, 0.1, 0.5, 0.9]), 0.4, 0.8
    scores = RankScores(0, (q,), 0.0, 1.0)
    rng = np.random.default_rng(0)
    drawn = np.array(
        [scores.choose(x[:, None], GumbelNoise(scale), rng)[0] for _ in range(8_000)]
    )
    edges = np.array([0, 0.1, 0.5, 0.9, 1.0])
    expected = law(x, q, edges[:-1] + 0.05, scale, np.diff(edges))
    counts = np.histogram(drawn, edges)[0]
    assert chisquare(counts, 8_000 * expected).pvalue > 1e-6
    inside = drawn[(drawn > 0.5) & (drawn < 0.9)]
    assert kstest((inside - 0.5) / 0.4, "uniform").pvalue > 1e-6


@given(VALUES, st.integers(0, 6), st.integers(0, 6), LEVELS, st.floats(0.1, 5))
def test_the_loss_of_every_value_is_within_epsilon(x, one, other, q, epsilon):
    candidates = np.arange(7)
    tables = {"add_remove": (x, [*x, one]), "replace": ([*x, one], [*x, other])}
    for relation, (first, second) in tables.items():
        scale = RankScores(0, (q,), 0, 6).ranges(relation)[0] / epsilon
        p, r = (law(t, q, candidates, scale) for t in (first, second))
        assert np.abs(np.log(p / r)).max() <= epsilon * (1 + 1e-9)


@settings(deadline=None)
@given(
    st.lists(st.floats(-5, 15), min_size=1, max_size=30),
    st.lists(LEVELS, min_size=1, max_size=4),
    st.sampled_from([None, 1.0, 0.3]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_chosen_lies_within_the_bounds(x, levels, resolution, seed):
    scores = RankScores(0, tuple(levels), 0.0, 10.0, resolution)
    rng = np.random.default_rng(seed)
    found = scores.choose(np.array(x)[:, None], GumbelNoise(2.0), rng)
    assert found.shape == (len(levels),)
    assert np.all((found >= 0) & (found <= 10))
    if resolution is not None:
        steps = found / resolution
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), LEVELS)
def test_without_noise_it_is_a_quantile(x, q):
    scores = RankScores(0, (q,), 0.0, 9.0, 1.0)
    (found,) = scores.choose(
        np.array(x, dtype=float)[:, None], Drawn(1e-9), np.random.default_rng(0)
    )
    assert np.sum(np.array(x) < found) <= q * len(x) + 1e-9
    assert np.sum(np.array(x) > found) <= (1 - q) * len(x) + 1e-9


# -- permute-and-flip -----------------------------------------------------------------


def flipped(scores, scale):
    """Law of permute-and-flip by its definition: all orders of asking."""
    chances = np.exp((scores - np.max(scores)) / scale)
    found = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for one in order:
            found[one] += left * chances[one] / len(orders)
            left *= 1 - chances[one]
    return found


@pytest.mark.parametrize("q", [0.2, 0.5])
def test_exponential_noise_permutes_and_flips(q):
    x, scale = np.array([0, 1, 1, 1, 4.2, 9.0]), 1.3
    scores = RankScores(0, (q,), 0.0, 5.0, 1.0)
    rng = np.random.default_rng(0)
    noise = ExponentialNoise(scale)
    drawn = [scores.choose(x[:, None], noise, rng)[0] for _ in range(8_000)]
    expected = flipped(scores_of(np.clip(x, 0, 5), q, np.arange(6)), scale)
    counts = np.bincount(np.array(drawn).astype(int), minlength=6)
    assert chisquare(counts, 8_000 * expected).pvalue > 1e-6


@pytest.mark.parametrize("q", [0.25, 0.5])
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbours_of_small_tables_tell_more_than_is_promised(q, relation):
    # all of them: of up to three records, of five values
    epsilon, values = 1.0, range(5)
    release = release_of((q,), resolution=0.25)
    made = GroupPrivacy(epsilon, math.inf, noise="laplace").calibrate(
        release, RecordScenario(relation=relation)
    )
    assert type(made.noise) is ExponentialNoise
    tables = [t for n in range(4) for t in combinations_with_replacement(values, n)]
    laws = {}
    for table in tables:
        scores = scores_of(table, q, np.arange(5))
        by_law = np.exp(scores / made.noise.scale)
        laws[table] = flipped(scores, made.noise.scale), by_law / by_law.sum()
    worst = np.zeros(2)
    for table in tables:
        for other in neighbours(table, values, relation):
            if other not in laws:
                continue
            for mechanism in (0, 1):
                loss = np.log(laws[table][mechanism] / laws[other][mechanism])
                worst[mechanism] = max(worst[mechanism], np.abs(loss).max())
    assert np.all(worst <= epsilon * (1 + 1e-9))
    assert np.all(worst > 0.4 * epsilon)


def neighbours(table, values, relation):
    added = [tuple(sorted([*table, one])) for one in values]
    if relation == "add_remove":
        return added
    rest = [table[:i] + table[i + 1 :] for i in range(len(table))]
    return [tuple(sorted([*r, one])) for r in rest for one in values]


@given(VALUES, LEVELS, st.floats(0.3, 3))
def test_permute_and_flip_errs_no_more_at_the_same_scale(x, q, scale):
    scores = scores_of(x, q, np.arange(6))
    by_flips, by_law = flipped(scores, scale), law(x, q, np.arange(6), scale)
    assert by_flips @ scores >= by_law @ scores - 1e-12


def test_the_noise_that_errs_less_is_chosen_where_it_is_proved():
    def noise(accountant, release):
        return type(accountant.calibrate(release, RecordScenario()).noise)

    grid, line = release_of(resolution=0.1), release_of()
    two, many = (SelectionRelease(n_records=9, scores=grid.scores * k) for k in (1, 30))
    loss = PrivacyLoss(1.0, 1e-6)
    assert noise(loss, grid) is noise(loss, two) is ExponentialNoise
    assert noise(loss, many) is noise(loss, line) is GumbelNoise
    assert noise(PrivacyLoss(1.0, noise=GumbelNoise()), grid) is GumbelNoise
    pure = GroupPrivacy(1.0, math.inf, noise="laplace")
    assert noise(pure, many) is ExponentialNoise
    assert noise(pure, line) is GumbelNoise
    asked = GroupPrivacy(1.0, math.inf, noise=GumbelNoise())
    assert noise(asked, grid) is GumbelNoise


@pytest.mark.parametrize("noise", [GumbelNoise, ExponentialNoise])
def test_pure_promises_add_up_over_choices(noise):
    release = release_of((0.25, 0.5), resolution=None)
    if noise is ExponentialNoise:
        scores = (RankScores(0, (0.25,), 0, 1, 0.1), RankScores(0, (0.5,), 0, 1, 0.1))
        release = SelectionRelease(n_records=9, scores=scores)
    accountant = GroupPrivacy(1.0, math.inf, noise="laplace")
    for k in (1, 3):
        scenario = RecordScenario(k=k)
        made = accountant.calibrate(release, scenario)
        assert type(made.noise) is noise
        assert made.noise.scale == pytest.approx(k * sum(release.ranges("add_remove")))
        assert made.certificate.notion == Notion.PURE_DP
        assert made.certificate.epsilon == pytest.approx(1.0)
        assert made.certificate.epsilon <= 1
        half = accountant.certify(
            made.noise.with_scale(made.noise.scale / 2), release, scenario
        )
        assert half.epsilon == pytest.approx(2.0)
    assert from_plain(made.certificate.curve.to_dict()) == made.certificate.curve


def test_exponential_noise_is_for_finitely_many_candidates():
    for levels, resolution in (((0.5,), None), ((0.25, 0.5), 0.1)):
        release = release_of(levels, resolution=resolution)
        with refused(UnsupportedError, "selection.exponential_candidates_not_finite"):
            PrivacyLoss().certify(ExponentialNoise(9.0), release, RecordScenario())


# -- several quantiles ----------------------------------------------------------------


@given(st.lists(LEVELS, min_size=1, max_size=40, unique=True).map(sorted))
def test_rounds_halve_what_is_left(levels):
    rounds = halvings(tuple(levels))
    assert len(rounds) == math.ceil(math.log2(len(levels) + 1))
    assert sorted(one.place for r in rounds for one in r) == list(range(len(levels)))
    ends = [0.0, *levels, 1.0]
    known = {-1, len(levels)}
    for chosen in rounds:
        for one in chosen:
            # of choices that were made in earlier rounds
            assert {one.left, one.right} <= known
            low, high = ends[one.left + 1], ends[one.right + 1]
            assert low + one.level * (high - low) == pytest.approx(levels[one.place])
        known |= {one.place for one in chosen}


@given(
    VALUES, st.integers(0, 6), st.integers(0, 6), st.floats(0.5, 5.5), LEVELS, LEVELS
)
def test_choices_of_one_round_move_by_no_more_than_its_range(x, one, other, at, p, q):
    # given the middle one, scores on either side of it add up
    levels = (p / 2, 0.5, 0.5 + q / 2)
    scores = RankScores(0, levels, 0.0, 6.0)
    (_, chosen) = halvings(levels)
    tables = {
        "add_remove": (x, [*x, one]),
        "replace": ([*x, one], [*x, other]),
    }
    candidates = np.arange(-0.25, 6.5, 0.5)
    low, high = candidates[candidates < at], candidates[candidates > at]
    for relation, pair in tables.items():
        sums = []
        for table in map(np.array, pair):
            below = scores_of(table[table < at], chosen[0].level, low)
            above = scores_of(table[table > at], chosen[1].level, high)
            sums.append(below[:, None] + above[None, :])
        assert np.ptp(sums[1] - sums[0]) <= scores.ranges(relation)[1] + 1e-9


def test_who_goes_from_one_choice_to_another_moves_both():
    scores = RankScores(0, (0.1, 0.5, 0.9), 0.0, 1.0)
    # of those below the median a fifth is below the first, and so at the other end
    assert scores.ranges("add_remove") == pytest.approx((1.0, 1.6))
    for relation in ("replace", "relabel"):
        assert scores.ranges(relation) == pytest.approx((2.0, 3.2))
    # of four in the last round, a record is in two at most
    levels = (0.01, 0.25, 0.4, 0.5, 0.6, 0.75, 0.99)
    assert RankScores(0, levels, 0.0, 1.0).ranges("replace")[-1] == pytest.approx(3.84)


def test_quartiles_are_chosen_by_the_law_of_their_rounds():
    # three records; the middle one of the quartiles is chosen as if alone
    x, scale = np.array([0.2, 0.5, 0.6]), 0.7
    scores = RankScores(0, (0.25, 0.5, 0.75), 0.0, 1.0)
    rng = np.random.default_rng(0)
    drawn = np.array(
        [scores.choose(x[:, None], GumbelNoise(scale), rng) for _ in range(8_000)]
    )
    edges = np.array([0, 0.2, 0.5, 0.6, 1.0])
    expected = law(x, 0.5, edges[:-1] + 0.05, scale, np.diff(edges))
    counts = np.histogram(drawn[:, 1], edges)[0]
    assert chisquare(counts, 8_000 * expected).pvalue > 1e-6
    # given it lies in the last interval, the third has no records above it
    last = drawn[drawn[:, 1] > 0.6]
    share = (last[:, 2] - last[:, 1]) / (1 - last[:, 1])
    assert kstest(share, "uniform").pvalue > 1e-6
    # and the first is a median of all three, up to the middle one
    share = np.mean(last[:, 0] < 0.2)
    tops = last[:, 1]
    weights = [
        law(x, 0.5, edges[:-1] + 0.05, scale, np.diff([*edges[:-1], top]))[0]
        for top in tops
    ]
    assert abs(share - np.mean(weights)) < 5 / np.sqrt(len(last))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30),
    st.lists(LEVELS, min_size=2, max_size=5, unique=True).map(sorted),
    st.sampled_from([None, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_quantiles_are_in_order_whatever_the_noise(x, levels, resolution, seed):
    scores = RankScores(0, tuple(levels), 0.0, 10.0, resolution)
    rng = np.random.default_rng(seed)
    found = scores.choose(np.array(x)[:, None], GumbelNoise(5.0), rng)
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("value", [10.2, 10.9, 1e9])
def test_values_beyond_the_last_multiple_are_above_it(value):
    x = np.repeat([2.0, value], [20, 20])[:, None]
    scores = RankScores(0, (0.25, 0.75), 0.0, 10.9, 1.0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = scores.choose(x, GumbelNoise(0.1), rng)
        assert found[0] == 2 and found[1] in range(2, 11)


def test_records_of_one_value_lie_on_both_sides_of_a_quantile():
    X = np.repeat([0.0, 1.0], [700, 300])[:, None]
    model = PrivateQuantile(
        quantiles=[0.25, 0.5, 0.65, 0.75], bounds=(0, 1000), resolution=1
    )
    np.testing.assert_array_equal(model.fit(X).quantiles_[:, 0], [0, 0, 0, 1])


# -- accounting -----------------------------------------------------------------------


def release_of(levels=(0.5,), n=100, resolution=None, **more):
    scores = (RankScores(0, levels, 0.0, 1.0, resolution),)
    return SelectionRelease(n_records=n, scores=scores, **more)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_choice_is_pure_up_to_delta(relation, epsilon):
    made = PrivacyLoss(epsilon, 1e-12).calibrate(
        release_of(), RecordScenario(relation=relation)
    )
    exact = (1.0 if relation == "add_remove" else 2.0) / epsilon
    assert made.noise.scale == pytest.approx(exact, rel=2e-3)
    # never less than a pure promise of slightly more than epsilon would take
    assert made.noise.scale >= exact * (1 - 1e-4)
    assert made.certificate.notion == Notion.APPROXIMATE_DP
    assert made.certificate.epsilon == epsilon
    assert made.certificate.epsilon_lower is None


def test_groups_of_records_add_up():
    alone, pair = (
        PrivacyLoss(1.0, 1e-9).calibrate(release_of(), RecordScenario(k=k)).noise.scale
        for k in (1, 2)
    )
    assert pair == pytest.approx(2 * alone, rel=1e-3)


@pytest.mark.parametrize(
    "accountant",
    [PrivacyLoss(1.0, 1e-6), RenyiDP(1.0, 1e-6), RenyiDP(1.0, None, alpha=8.0)],
)
def test_a_noise_keeps_what_it_was_calibrated_for(accountant):
    release, scenario = release_of((0.1, 0.5, 0.7)), RecordScenario()
    made = accountant.calibrate(release, scenario)
    again = accountant.certify(made.noise, release, scenario)
    assert again.epsilon == pytest.approx(1.0, rel=1e-3)
    less = accountant.certify(GumbelNoise(0.7 * made.noise.scale), release, scenario)
    assert less.epsilon > 1.2
    assert accountant.supports(release, scenario)


def test_best_finds_who_accounts_for_selections():
    made = Best(1.0, delta=1e-6).calibrate(release_of(), RecordScenario())
    assert type(made.noise) is GumbelNoise


@pytest.mark.parametrize(
    "accountant", [GroupPrivacy(), GeneralWasserstein(), GroupPrivacy(noise="laplace")]
)
def test_who_knows_nothing_of_selections_refuses(accountant):
    with refused(
        UnsupportedError,
        ("accountant.remedy_other_accountants", "selection.pure_promises_alone"),
    ):
        accountant.calibrate(release_of(), RecordScenario())
    assert not accountant.supports(release_of(), RecordScenario())


@pytest.mark.parametrize(
    "noise", [GaussianNoise(1.0), LaplaceNoise(5.0), GumbelNoise([1.0, 2.0])]
)
def test_other_noise_is_refused_for_scores(noise):
    with refused(UnsupportedError, "selection.noise_not_gumbel_exponential"):
        PrivacyLoss().certify(noise, release_of(), RecordScenario())


@pytest.mark.parametrize("accountant", [PrivacyLoss, GroupPrivacy])
def test_gumbel_noise_hides_no_vector(accountant):
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=3,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 1.0}),
    )
    with refused(UnsupportedError, "noise.selection_hides_no_vector"):
        accountant().certify(GumbelNoise(100.0), release, RecordScenario())
    with refused(UnsupportedError, "noise.selection_hides_no_vector"):
        accountant(noise=GumbelNoise()).calibrate(release, RecordScenario())


def test_what_a_subclass_of_a_selection_adds_is_not_accounted_for():
    @dataclass(frozen=True, kw_only=True)
    class Shown(SelectionRelease):
        show_scores: bool = True

    release = Shown(n_records=3, scores=(RankScores(0, (0.5,), 0.0, 1.0),))
    with refused(UnsupportedError, "accountant.fields_not_read"):
        PrivacyLoss().calibrate(release, RecordScenario())


def test_a_selection_of_nothing_is_refused():
    with refused(ValueError, "release.selection_scores_empty"):
        SelectionRelease(n_records=3, scores=())


def log_density(x, levels, scale, high, points):
    """Density of the quantiles chosen between records, at points between them."""
    found = np.zeros(len(points))
    for row, point in enumerate(points):
        values = [0.0, *point, high]
        for one in (one for chosen in halvings(levels) for one in chosen):
            low, top = values[one.left + 1], values[one.right + 1]
            inside = np.array([r for r in x if low < r < top])
            edges = np.array([low, *inside, top])
            n = len(inside)
            weights = np.exp(-np.abs(np.arange(n + 1) - one.level * n) / scale)
            at = np.searchsorted(inside, values[one.place + 1])
            found[row] += math.log(weights[at] / (weights @ np.diff(edges)))
    return found


@pytest.mark.parametrize("relation, least", [("add_remove", 0.9), ("replace", 0.65)])
def test_no_neighbours_tell_more_by_quartiles_than_is_promised(relation, least):
    levels, high, values = (0.25, 0.5, 0.75), 20.0, (1.5, 2.0, 19.5)
    scores = RankScores(0, levels, 0.0, high)
    scale = sum(scores.ranges(relation))  # of a promise of one
    points = list(combinations([0.25, 0.75, 1.3, 1.8, 2.4, 19.0], 3))
    spread = 1e-3 * np.arange(4)
    densities = {
        t: log_density(np.array(t) + spread[: len(t)], levels, scale, high, points)
        for n in range(5)
        for t in combinations_with_replacement((0.5, *values), n)
    }
    worst = max(
        np.abs(densities[table] - densities[other]).max()
        for table in densities
        for other in neighbours(table, values, relation)
        if other in densities
    )
    assert least < worst <= 1 + 1e-9


# One record goes from the lowest value to the highest: those up to 6 lose a rank, all
# from 8 on, which nearly all of the mass is on, win one. And one is added to the upper
# ones: both quantiles are less likely to be low.
ATTACKS = {
    "gumbel": ("replace", (0.5,), 1.0, [0, 7, 7, 47], [47, 7, 7, 47], 6),
    "exponential": ("replace", (0.5,), 1.0, [0, 7, 7, 47], [47, 7, 7, 47], 6),
    "rounds": ("add_remove", (0.5, 0.75), None, [16, 16, 19], [16, 16, 19, 19.5], 16),
}


@pytest.mark.parametrize(
    "name", ["gumbel", "exponential", pytest.param("rounds", marks=pytest.mark.slow)]
)
def test_an_attacker_finds_what_is_certified_and_no_more(name):
    relation, levels, resolution, first, second, threshold = ATTACKS[name]
    rounds = name == "rounds"
    scores = RankScores(0, levels, 0.0, 20.0 if rounds else 47.0, resolution)
    release = SelectionRelease(n_records=4, scores=(scores,))
    scenario = RecordScenario(relation=relation)
    noise = GumbelNoise() if name == "gumbel" else "gaussian"
    epsilon = 3.0 if rounds else 2.0
    made = PrivacyLoss(epsilon, 1e-9, noise=noise).calibrate(release, scenario)
    assert type(made.noise) is (
        ExponentialNoise if name == "exponential" else GumbelNoise
    )

    tables = [np.array(rows, dtype=float)[:, None] for rows in (first, second)]

    def worlds(noise):
        return [
            lambda n, rng, X=X: np.array(
                [release.choose(X, noise, rng) for _ in range(n)]
            )
            for X in tables
        ]

    assert_tight(
        made.certificate,
        made.noise,
        worlds,
        seed=0,
        n_draws=60_000 if rounds else 20_000,
        score=lambda noise: lambda found: np.all(found <= threshold, axis=1) * 1.0,
    )


# -- the estimator --------------------------------------------------------------------


def test_quantiles_of_large_tables_are_near_the_exact_ones():
    X = np.random.default_rng(0).normal(size=(20_000, 2)) * [1, 5]
    levels = [0.75, 0.25, 0.5]
    model = PrivateQuantile(quantiles=levels, bounds=(-100, 100)).fit(X)
    assert model.quantiles_.shape == (3, 2)
    error = model.quantiles_ - np.quantile(X, levels, axis=0)
    assert np.abs(error / [1, 5]).max() < 0.05
    median = PrivateQuantile(bounds=(-100, 100)).fit(X)
    assert median.quantiles_.shape == (2,)
    assert type(median.noise_) is GumbelNoise


def test_the_error_is_of_few_ranks():
    X = np.random.default_rng(0).uniform(size=(10_000, 1))
    model = PrivateQuantile(bounds=(0, 1), accountant=PrivacyLoss(1.0, 1e-9))
    errors = [float(model.fit(X).quantiles_[0] - np.median(X)) for _ in range(200)]
    # of a Laplace law with one rank of 1e-4 for its scale
    assert np.sqrt(np.mean(np.square(errors))) < 3e-4


@pytest.mark.parametrize("resolution", [None, 1.0])
def test_quantiles_come_in_order(resolution):
    X = np.arange(5.0)[:, None]
    levels = [0.5, 0.1, 0.9, 0.11]
    model = PrivateQuantile(quantiles=levels, bounds=(0, 100), resolution=resolution)
    for _ in range(20):
        found = model.fit(X).quantiles_[:, 0]
        assert np.all(np.diff(found[np.argsort(levels)]) >= 0)


def test_whole_numbers_stay_whole():
    X = np.rint(np.random.default_rng(0).normal(40, 10, size=(5000, 2)))
    frame = pd.DataFrame(X, columns=["age", "hours"])
    model = PrivateQuantile(
        bounds={"age": (0, 100), "hours": (0, 99)}, resolution=[1, 0.5]
    ).fit(frame)
    assert list(model.feature_names_in_) == ["age", "hours"]
    np.testing.assert_allclose(model.quantiles_, 40, atol=0.5)


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
@pytest.mark.parametrize("levels", [0.5, [0.1, 0.5, 0.6, 0.9]])
@pytest.mark.parametrize("bounds", [(17, 90), (0, 1e9), (40, 1000), (-7.3, 40)])
def test_a_value_that_most_records_hold_is_their_median(bounds, levels, epsilon):
    rng = np.random.default_rng(0)
    x = rng.choice([20, 30, 40], 10_000, p=[0.1, 0.2, 0.7]).astype(float)
    model = PrivateQuantile(
        quantiles=levels, bounds=bounds, accountant=PrivacyLoss(epsilon)
    )
    found = model.fit(x[:, None]).quantiles_.ravel()
    expected = np.quantile(np.clip(x, *bounds), levels)
    near = np.abs(found - expected) < 0.01
    # the quantile at 0.1 is between two values
    assert near.all() if np.isscalar(levels) else near[1:].all()


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("levels", [0.5, [0.25, 0.5]])
def test_whole_numbers_of_a_code_book_are_chosen_from(levels, fractional):
    shift = 0.5 * fractional
    columns = {
        "sex": ["F", "M"],
        "age": Number(17 - shift, 90 + shift, integer=True, missing_level=True),
        "many": Number(0, 1e12, integer=True),
        "share": Number(0, 100, missing=False),
    }
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 60),
            "age": rng.integers(17, 91, 60),
            "many": rng.integers(0, 1000, 60),
            "share": rng.uniform(0, 100, 60),
        }
    )
    model = PrivateQuantile(quantiles=levels, schema=Schema(columns))
    fits = [np.atleast_2d(model.fit(table).quantiles_) for _ in range(5)]
    names = [n for n in model.feature_map_.names if not n.endswith("missing")]
    names.append("sex_missing")
    names.sort(key=list(model.feature_map_.names).index)
    ages, shares = (
        np.concatenate([fit[:, names.index(name)] for fit in fits])
        for name in ("age", "share")
    )
    assert np.all(ages % 1 == 0) and ages.min() >= 17 and ages.max() <= 90
    assert np.any(shares % 1 != 0)
    asked = PrivateQuantile(resolution=0.5, schema=Schema({"age": (0, 9.5)}))
    assert asked.fit(table[["age"]]).quantiles_[0] % 0.5 == 0


def test_quantiles_cost_as_many_medians_as_there_are_rounds():
    one, again, three, many = (
        PrivateQuantile(
            quantiles=q,
            bounds=(0, 1),
            accountant=GroupPrivacy(1.0, math.inf, noise="laplace"),
        )
        .fit(np.zeros((9, 1)))
        .noise_.scale
        for q in (0.5, [0.5] * 50, [0.25, 0.5, 0.75], np.arange(1, 64) / 64)
    )
    assert one == again
    assert three == pytest.approx(2 * one)
    assert many == pytest.approx(6 * one)


def test_a_level_that_is_asked_for_twice_is_chosen_once():
    model = PrivateQuantile(quantiles=[0.5, 0.25, 0.5], bounds=(0, 1))
    found = model.fit(np.linspace(0, 1, 50)[:, None]).quantiles_[:, 0]
    assert found[0] == found[2] >= found[1]


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.5, math.nan, [0.5, 2], "half", None])
def test_levels_outside_are_refused_by_name(q):
    with pytest.raises((ValueError, TypeError), match="'quantiles'"):
        PrivateQuantile(quantiles=q, bounds=(0, 1)).fit([[0.0], [1.0]])


@pytest.mark.parametrize("q", [[], [[0.5]]])
def test_levels_of_another_shape_are_refused(q):
    with refused(ValueError, "quantile.levels_out_of_range"):
        PrivateQuantile(quantiles=q, bounds=(0, 1)).fit([[0.0], [1.0]])


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, math.inf), (0, math.nan)])
def test_bounds_that_are_none_are_refused(bounds):
    with refused(ValueError, ("bounds.low_not_below_high", "bounds.not_finite")):
        PrivateQuantile(bounds=bounds).fit([[0.0], [1.0]])


def test_without_bounds_it_is_refused():
    with refused(UnsupportedError, "bounds.features_without_bounds"):
        PrivateQuantile().fit([[0.0], [1.0]])
    # where records are not any records the scenario may know of bounds, or not
    scenario = DependenceScenario(0.1)
    assert not scenario.any_records
    with refused(ValueError, "quantile.bounds_missing"):
        PrivateQuantile(scenario).fit([[0.0], [1.0]])


@pytest.mark.parametrize("resolution", [0, -1.0, math.nan, "1", [1.0, 0]])
def test_resolutions_that_are_none_are_refused(resolution):
    with pytest.raises((ValueError, TypeError), match="'resolution'"):
        PrivateQuantile(bounds=(0, 1), resolution=resolution).fit([[0.0, 1.0]])


@pytest.mark.parametrize(
    "resolution, said",
    [
        (2.0, "quantile.resolution_too_coarse"),
        (1e-12, "quantile.resolution_too_fine"),
        ([0.1] * 3, "quantile.resolution_count_differs"),
    ],
)
def test_resolutions_that_fit_no_column_are_refused(resolution, said):
    with refused(ValueError, said):
        PrivateQuantile(bounds=(0, 1), resolution=resolution).fit([[0.0, 1.0]])


@pytest.mark.parametrize(
    "noise, levels",
    [
        (GumbelNoise(1e9), (0.5,)),
        (GumbelNoise(1e9), (0.25, 0.5)),
        # for one choice among finitely many values
        (ExponentialNoise(1e9), (0.5,)),
    ],
)
def test_of_noise_alone_any_value_is_chosen(noise, levels):
    """And of next to none the one that all records hold."""
    scores = RankScores(0, levels, 0.0, 1.0, 0.5)
    x, rng = np.zeros((5, 1)), np.random.default_rng(0)
    found = [scores.choose(x, noise, rng)[0] for _ in range(100)]
    assert {0.0, 0.5} <= set(found)
    quiet = type(noise)(1e-6)
    assert {scores.choose(x, quiet, rng)[0] for _ in range(20)} == {0.0}


def test_two_values_are_enough_to_choose_from():
    model = PrivateQuantile(bounds=(0, 1), resolution=1.0).fit([[0.0, 1.0]] * 9)
    assert set(np.ravel(model.quantiles_)) <= {0.0, 1.0}
    for step in (1.0 + 1e-9, 1.5):
        with refused(ValueError, "quantile.resolution_too_coarse"):
            PrivateQuantile(bounds=(0, 1), resolution=step).fit([[0.0, 1.0]])
    PrivateQuantile(bounds=(0, 2**24 - 1), resolution=1.0).preview(9, n_features=1)
    with refused(ValueError, "quantile.resolution_too_fine"):
        PrivateQuantile(bounds=(0, 2**24), resolution=1.0).preview(9, n_features=1)


def test_a_resolution_of_two_dimensions_is_refused():
    with refused(ValueError, "quantile.resolution_invalid"):
        PrivateQuantile(bounds=(0, 1), resolution=[[0.1]]).fit([[0.0]])


def test_missing_numbers_are_refused_without_quoting_any():
    with refused(ValueError, "table.not_finite") as caught:
        PrivateQuantile(bounds=(0, 1)).fit([[0.123456], [math.nan]])
    assert "0.123456" not in str(caught.value)


def test_distributions_of_vectors_are_refused():
    scenario = LawsScenario([(PointMass([0.0]), PointMass([1.0]))])
    with refused(ScenarioError, "quantile.laws_for_scores"):
        PrivateQuantile(scenario, bounds=(0, 1)).fit([[0.0], [1.0]])


@pytest.mark.parametrize("levels", [(0.5,), (0.25, 0.5)])
def test_decimals_are_the_multiples_they_are_written_as(levels):
    # 0.1 * 3 is not 0.3: nine in ten records are of that value all the same
    x = np.repeat([0.1 * 3, 0.7], [90, 10])[:, None]
    scores = RankScores(0, levels, 0.0, 1.0, 0.1)
    found = scores.choose(x, GumbelNoise(1e-3), np.random.default_rng(0))
    np.testing.assert_allclose(found, 0.3)


def test_what_lies_between_multiples_is_ranked_as_it_is():
    # the median is 0.5, and nearly all records lie between the two values about it
    x = np.linspace(0.45, 0.55, 1001)[:, None]
    scores = RankScores(0, (0.4,), 0.0, 1.0, 0.5)
    found = scores.choose(x, ExponentialNoise(1e-3), np.random.default_rng(0))
    # 100 ranks away, others hundreds
    np.testing.assert_allclose(found, 0.5)


def test_decimals_reach_the_last_value():
    assert grid_size(0.0, 0.3, 0.1) == 4
    assert grid_size(0.0, 1.0, 0.3) == 4
    assert replace(RankScores(0, (0.5,), 0, 1), low=0.5).low == 0.5
