"""Vote releases: what they say of themselves, and what they refuse."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss
from skpuffer.exceptions import Statement
from skpuffer.kernel.draws import secret_generator
from skpuffer.kernel.votes import VOTE_RELATIONS, noisy_counts
from skpuffer.noise import DiscreteLaplaceNoise, GaussianNoise
from skpuffer.releases import PublicContext, VoteRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import refused


def release(**changes):
    return VoteRelease(
        **{
            "n_records": 100,
            "n_teachers": 10,
            "n_classes": 3,
            "n_queries": 5,
            **changes,
        }
    )


def test_every_query_is_answered_without_a_threshold():
    assert release().max_answers == 5
    assert release(threshold=7.0).max_answers == 5
    assert release(threshold=7.0, max_answers=2).max_answers == 2


def test_releases_are_compared_by_what_is_accounted():
    other = dataclasses.replace(
        release(),
        context=PublicContext(n_records=100, n_features=3),
        assumptions=("a",),
    )
    assert other == release()
    assert hash(other) == hash(release())
    assert release(n_queries=6) != release()
    assert release().context.n_records == 100


def test_a_moved_vote_is_two_counts():
    moved = release().sensitivity
    for relation in ("add_remove", "replace"):
        assert moved.value(relation, norm=1, dim=3) == 2
        assert moved.value(relation, norm=2, dim=3) == pytest.approx(math.sqrt(2))
        assert moved.value(relation, norm=math.inf, dim=3) == 1
    joined = release(n_records=10, relation="add_remove_vote").sensitivity
    for norm in (1, 2, math.inf):
        assert joined.value("add_remove", norm=norm, dim=3) == 1
    assert joined.value("replace", norm=2, dim=3) == pytest.approx(math.sqrt(2))
    assert release().contribution is None
    assert release().dim == 3


def test_the_test_takes_noise_of_its_own():
    noise = release(threshold=5, threshold_noise_ratio=3.0).test_noise(
        GaussianNoise(2.0)
    )
    assert noise == GaussianNoise(6.0)


@given(
    votes=st.lists(
        st.lists(st.integers(0, 10), min_size=10, max_size=10), min_size=1, max_size=5
    )
)
def test_ballots_make_votes(votes):
    counts = np.array([np.bincount(row, minlength=11) for row in votes])
    held = release(n_classes=11).check_votes(counts.astype(float))
    assert held.dtype == np.int64
    np.testing.assert_array_equal(held, counts)


@pytest.mark.parametrize(
    "votes, code",
    [
        ([[11, -1, 0]], "pate.votes_out_of_range"),
        ([[6, -1, 5]], "pate.votes_out_of_range"),
        ([[9.5, 0.5, 0]], "pate.votes_not_whole"),
        ([[np.nan, 5, 5]], "pate.votes_not_whole"),
        ([[np.inf, 0, 0]], "pate.votes_out_of_range"),
        ([["10", "0", "0"]], "pate.votes_not_whole"),
        ([[9, 0, 0]], "pate.votes_sum_not_teachers"),
        ([[11, 0, 0]], "pate.votes_out_of_range"),
        ([[5, 5]], "pate.votes_shape_wrong"),
        ([5, 5, 0], "pate.votes_shape_wrong"),
    ],
)
def test_what_is_no_vote_is_refused(votes, code):
    with refused(ValueError, code):
        release().check_votes(votes)
    if np.shape(votes) == (1, 3):  # and among others that are votes
        with refused(ValueError, code):
            release().check_votes([[5, 3, 2], *votes, [10, 0, 0]])


def test_no_voter_is_added_to_one_of_several_queries():
    ballots = release(n_records=10, relation="add_remove_vote")
    with refused(ValueError, "pate.votes_sum_exceeds_teachers"):
        ballots.check_votes([[5, 3, 2], [9, 2, 0], [4, 0, 0]])


def test_missing_voters_are_allowed_where_they_are_accounted_for():
    loose = release(n_records=10, relation="add_remove_vote")
    np.testing.assert_array_equal(loose.check_votes([[3, 0, 0]]), [[3, 0, 0]])
    with refused(ValueError, "pate.votes_sum_exceeds_teachers"):
        loose.check_votes([[6, 5, 0]])


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"n_records": 9}, Statement("pate.teachers_exceed_records")),
        ({"n_teachers": 0}, Statement("parameter.count_too_small", name="n_teachers")),
        ({"n_classes": 1}, Statement("parameter.count_too_small", name="n_classes")),
        ({"n_queries": 0}, Statement("parameter.count_too_small", name="n_queries")),
        ({"n_queries": 1.5}, Statement("parameter.count_too_small", name="n_queries")),
        (
            {"relation": "replace"},
            Statement("parameter.option_unknown", name="relation"),
        ),
        ({"threshold": math.inf}, Statement("pate.threshold_not_finite")),
        ({"threshold": math.nan}, Statement("parameter.is_nan", name="threshold")),
        ({"max_answers": 2}, Statement("pate.max_answers_without_threshold")),
        (
            {"max_answers": 6, "threshold": 1.0},
            Statement("pate.max_answers_exceeds_queries"),
        ),
        (
            {"max_answers": 0, "threshold": 1.0},
            Statement("parameter.count_too_small", name="max_answers"),
        ),
        (
            {"threshold_noise_ratio": 0.0},
            Statement("parameter.not_positive", name="threshold_noise_ratio"),
        ),
        (
            {"context": PublicContext(n_records=7)},
            Statement("release.n_records_differs_from_context"),
        ),
    ],
)
def test_bad_input_names_the_culprit(changes, said):
    with refused(ValueError, said.code, **said.parameters):
        release(**changes)


def test_a_record_of_many_does_not_leave_alone():
    with refused(ValueError, "pate.vote_relation_several_records"):
        release(n_records=100, n_teachers=10, relation="add_remove_vote")


@pytest.mark.parametrize("relation", ["replace_vote", "add_remove_vote"])
def test_votes_of_fixed_queries_are_one_vector(relation):
    """Whose counts move by a vote in each query, or two where that moves."""
    context = PublicContext(n_records=10, n_features=2)
    votes = release(
        n_records=10,
        relation=relation,
        query=lambda X, y: X,
        name="of experts",
        context=context,
        assumptions=("as said",),
    )
    vector = votes.stacked()
    counts = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(vector.run(counts), counts.ravel())
    assert (vector.dim, vector.n_records, vector.name) == (15, 10, "of experts")
    assert vector.is_integer and vector.context is context and not vector.is_sum
    assert vector.assumptions == (
        "as said",
        Statement("assume.queries_fixed_before_votes"),
    )
    # a moved vote bounds one that joins or leaves
    for each in ("add_remove", "replace", "relabel"):
        for norm, move in ((1, 10.0), (2, math.sqrt(10)), (math.inf, 1.0)):
            found = vector.sensitivity.value(each, norm, 15)
            assert found == pytest.approx(move)


def farthest_counts(relation, records, k):
    """How far `k` voters who change move the counts of three classes, in l2."""
    voters = np.eye(3)
    after = voters
    # who may be missing and leaves has no vote afterwards
    if relation == "add_remove_vote" and records == "add_remove":
        after = np.zeros((1, 3))
    changes = [b - a for a in voters for b in after]
    groups = itertools.combinations_with_replacement(changes, k)
    return max(float(np.linalg.norm(sum(group))) for group in groups)


@pytest.mark.parametrize("relation", VOTE_RELATIONS)
@pytest.mark.parametrize("records", ["add_remove", "replace"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("answers", [5, 1])
def test_a_certificate_covers_whatever_voters_may_do(relation, records, k, answers):
    """By brute force, over all that so many of them may vote before and after."""
    tested = {} if answers == 5 else {"threshold": 7.0, "max_answers": answers}
    votes = release(n_records=10, relation=relation, **tested)
    move = farthest_counts(relation, records, k)
    assert k * votes.sensitivity.value(records, 2, 3) >= move * (1 - 1e-12)
    scenario = RecordScenario(k=k, relation=records)
    found = PrivacyLoss(1.0, 1e-5).certify(GaussianNoise(4.0), votes, scenario)
    # Gaussian noise in each answer, and in a test of each query, answered or not, of
    # which k voters move the largest count by k: squares add up
    squares = answers * move**2 / 4**2
    if tested:
        squares += 5 * k**2 / votes.test_noise(GaussianNoise(4.0)).scale ** 2
    assert found.curve.mu >= math.sqrt(squares) * (1 - 1e-12)


def test_groups_are_public_facts_that_a_scenario_is_told_of():
    groups = np.repeat(["x", "y", "z", "u"], 25)
    dealt = release(n_teachers=4, groups=groups)
    assert dealt.groups == tuple(np.repeat([1, 2, 3, 0], 25).tolist())
    assert dealt.context == PublicContext(n_records=100, groups=dealt.groups)
    assert dealt.context.groups == dealt.groups
    own = PublicContext(n_records=100, n_features=1)
    assert release(n_teachers=4, groups=groups, context=own).context is own


@pytest.mark.parametrize("scale, step", [(3.0, 2.0**-19), (2.0**35, 1.0)])
def test_counts_are_released_in_steps_that_the_noise_and_the_records_set(scale, step):
    """Never coarser than counts are, and as seldom finer as many records allow."""
    counts, rng = np.tile([7, 2, 1], (50, 1)), secret_generator()
    found = noisy_counts(counts, GaussianNoise(scale), rng, 2**26)
    assert found.shape == counts.shape
    steps = found / step
    np.testing.assert_array_equal(steps, np.rint(steps))
    # half of 150 numbers of steps are odd
    assert np.any(steps % 2)


def test_noise_of_integers_leaves_counts_whole():
    counts, noise = np.tile([7, 2, 1], (50, 1)), DiscreteLaplaceNoise(3.0)
    for rng in (secret_generator(), np.random.default_rng(0)):
        found = noisy_counts(counts, noise, rng)
        np.testing.assert_array_equal(found, np.rint(found))
        assert np.any(found != counts)
