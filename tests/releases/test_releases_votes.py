"""Vote releases: what they say of themselves, and what they refuse."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.noise import GaussianNoise
from skpuffer.releases import PublicContext, VoteRelease


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
    "votes, match",
    [
        ([[11, -1, 0]], "at least 0"),
        ([[6, -1, 5]], "at least 0"),
        ([[9.5, 0.5, 0]], "whole"),
        ([[np.nan, 5, 5]], "whole"),
        ([[np.inf, 0, 0]], "at least 0"),
        ([["10", "0", "0"]], "whole"),
        ([[9, 0, 0]], "add up"),
        ([[11, 0, 0]], "n_teachers"),
        ([[5, 5]], "shape"),
        ([5, 5, 0], "shape"),
    ],
)
def test_what_is_no_vote_is_refused(votes, match):
    with pytest.raises(ValueError, match=match):
        release().check_votes(votes)


def test_missing_voters_are_allowed_where_they_are_accounted_for():
    loose = release(n_records=10, relation="add_remove_vote")
    np.testing.assert_array_equal(loose.check_votes([[3, 0, 0]]), [[3, 0, 0]])
    with pytest.raises(ValueError, match="at most"):
        loose.check_votes([[6, 5, 0]])


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"n_records": 9}, "n_teachers"),
        ({"n_teachers": 0}, "n_teachers"),
        ({"n_classes": 1}, "n_classes"),
        ({"n_queries": 0}, "n_queries"),
        ({"n_queries": 1.5}, "n_queries"),
        ({"relation": "replace"}, "relation"),
        ({"threshold": math.inf}, "threshold"),
        ({"threshold": math.nan}, "threshold"),
        ({"max_answers": 2}, "threshold"),
        ({"max_answers": 6, "threshold": 1.0}, "max_answers"),
        ({"max_answers": 0, "threshold": 1.0}, "max_answers"),
        ({"threshold_noise_ratio": 0.0}, "threshold_noise_ratio"),
        ({"context": PublicContext(n_records=7)}, "context"),
    ],
)
def test_bad_input_names_the_culprit(changes, match):
    with pytest.raises(ValueError, match=match):
        release(**changes)


def test_a_record_of_many_does_not_leave_alone():
    with pytest.raises(ValueError, match="relation"):
        release(n_records=100, n_teachers=10, relation="add_remove_vote")
