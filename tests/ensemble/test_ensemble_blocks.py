"""Teachers that are dealt whole households, blocks and stretches of a series."""

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier

from skpuffer.accountants import GroupPrivacy, OverlapAmplification, PrivacyLoss
from skpuffer.ensemble import PATEClassifier
from skpuffer.ensemble._teachers import Teachers
from skpuffer.exceptions import CompositionError, ScenarioError
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import compose
from skpuffer.releases import PublicContext, VoteRelease
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

from ..attack import assert_beaten, assert_tight

CHAIN = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])


def households(k, relation="replace", sizes=None):
    return BlocksScenario(RecordScenario(k=k, relation=relation), sizes)


def votes(groups, n_teachers=4, n_queries=7, **changes):
    return VoteRelease(
        n_records=len(groups),
        n_teachers=n_teachers,
        n_classes=2,
        n_queries=n_queries,
        groups=groups,
        **changes,
    )


def scattered(n_groups, k, seed=0):
    """Groups of k records each, anywhere in the table."""
    return np.random.default_rng(seed).permutation(np.arange(n_groups * k) % n_groups)


# -- what it costs --------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_household_costs_what_one_record_costs(k):
    n_queries, scale = 7, 10.0
    release = votes(scattered(24, k), n_queries=n_queries)
    accountant, noise = PrivacyLoss(delta=1e-5), GaussianNoise(scale)
    whole = accountant.certify(noise, release, households(k))
    assert whole.curve.mu**2 == pytest.approx(2 * n_queries / scale**2)
    singly = votes(np.arange(24 * k), 24 * k)
    singly = accountant.certify(noise, singly, RecordScenario(k, "replace"))
    assert singly.curve.mu**2 == pytest.approx(2 * k**2 * n_queries / scale**2)
    # what is promised, and of what
    assert any(
        says(a, "pate.groups_dealt_whole")
        and says(a, "pate.groups_dealt_whole", n_touched=1, n_teachers=4)
        for a in whole.assumptions
    )
    # blocks by their sizes, in the order of the table, are dealt whole as well
    listed = votes(np.repeat(np.arange(24), k), n_queries=n_queries)
    by_size = accountant.certify(noise, listed, households(k, sizes=k))
    assert by_size.curve == whole.curve


def test_groups_add_up_with_their_own_kind_only():
    groups = scattered(24, 3)
    accountant = PrivacyLoss(1.0, 1e-5)
    one, two = (
        accountant.calibrate(votes(groups, n_teachers=t), households(3)).certificate
        for t in (4, 6)
    )
    assert compose([one, two]).epsilon > 1
    # any three records are more than three of one household
    anywhere = accountant.calibrate(votes(groups), RecordScenario(3, "replace"))
    others = accountant.calibrate(votes(scattered(24, 3, seed=1)), households(3))
    for other in (anywhere.certificate, others.certificate):
        with pytest.raises(CompositionError):
            compose([one, other])


@given(st.integers(1, 9), st.integers(1, 30))
def test_stretches_that_a_window_meets(length, window):
    n = 12 * length
    release = votes(np.arange(n) // length, 12)
    met = int(release.teachers_met(window, (np.arange(n),)))
    assert met == min(12, math.ceil((window - 1) / length) + 1)
    # anywhere, each record may lie with another teacher
    assert release.teachers_met(window) == min(12, window)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=14), st.integers(1, 14))
def test_a_window_never_meets_more_groups_than_are_counted(labels, window):
    labels = [0, 1, 2, 3, *labels]
    halves = np.array_split(np.random.default_rng(0).permutation(len(labels)), 2)
    release = VoteRelease(
        n_records=len(labels), n_teachers=1, n_classes=2, n_queries=1, groups=labels
    )
    object.__setattr__(release, "n_teachers", 4)  # shares are another matter
    truth = max(
        len({labels[i] for i in half[start : start + window]})
        for half in halves
        for start in range(len(half))
    )
    met = int(release.teachers_met(window, halves))
    assert truth <= met <= min(window, 4)


def test_a_chain_meets_few_stretches():
    """The window of a chain of 123 records meets two stretches of 200."""
    release = votes(np.arange(4000) // 200, 20)
    fact = CHAIN.bind(release.context).fact(Adjacency, release)
    assert (fact.window, fact.teachers(release)) == (123, 2)
    assert fact.count == 69
    # in blocks of its own, found anywhere in the table
    persons = np.arange(4000) % 2
    blocks = BlocksScenario(CHAIN)
    release = votes((np.arange(4000) // 2) // 200 + 10 * persons, 20)
    bound = blocks.bind(PublicContext(n_records=4000, groups=tuple(persons)))
    assert bound.fact(Adjacency, release).teachers(release) == 2


# -- how it is dealt ------------------------------------------------------------------


def test_groups_are_dealt_whole_and_only_one_teacher_sees_a_change():
    groups, rng = scattered(12, 4), np.random.default_rng(0)
    X = rng.normal(size=(48, 2))
    y = rng.integers(2, size=48)
    changed, other = X.copy(), y.copy()
    changed[groups == 5] += 3.0
    other[groups == 5] ^= 1

    def teachers(X, y):
        model = KNeighborsClassifier(1)
        return Teachers(model, 4, np.random.default_rng(7)).fit(X, y, groups)

    def rows(model):
        return np.asarray(model._fit_X) if hasattr(model, "_fit_X") else None

    before, after = teachers(X, y)._models, teachers(changed, other)._models
    of_teacher = [
        [int(np.flatnonzero((row == X).all(1))[0]) for row in rows(m)] for m in before
    ]
    assert sorted(sum(of_teacher, [])) == list(range(48))
    holders = [{int(groups[i]) for i in part} for part in of_teacher]
    # every group has one teacher, and every teacher as many groups
    assert [len(held) for held in holders] == [3] * 4
    assert set.union(*holders) == set(range(12))
    for held, one, two in zip(holders, before, after, strict=True):
        assert np.array_equal(rows(one), rows(two)) is (5 not in held)


def test_the_classifier_deals_what_the_scenario_calls_a_block():
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = (X[:, 0] > 0).astype(int)
    groups = [f"home {i % 15}" for i in range(60)]
    model = PATEClassifier(
        KNeighborsClassifier(1),
        n_teachers=5,
        n_queries=3,
        classes=[0, 1],
        scenario=households(4),
        accountant=PrivacyLoss(4.0, 1e-3),
    )
    fitted = model.fit(X, y, groups=groups)
    assert fitted.certificate_.sensitivity == 1
    assert len(set(fitted.release_.groups)) == 15
    assert fitted.release_.groups[0] == fitted.release_.groups[15]
    # sizes in the order of the table say it as well, and leave what is seen unchanged
    listed = model.set_params(scenario=households(4, sizes=4)).fit(X, y)
    assert listed.release_.groups == tuple(np.repeat(np.arange(15), 4).tolist())
    with config_context(enable_metadata_routing=True):
        model.set_params(scenario=households(4), n_queries=60)
        found = cross_validate(
            model.set_fit_request(groups=True),
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": groups},
            error_score="raise",
        )
    assert len(found["test_score"]) == 3


class Watched(KNeighborsClassifier):
    """Keeps what each teacher was shown."""

    shown: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y):
        self.shown.append(X[:, 0])
        return super().fit(X, y)


@pytest.mark.parametrize("sizes", [None, 4])
@pytest.mark.parametrize("student", [None, "supervised", "clusters"])
@pytest.mark.parametrize("kind", [PrivacyLoss, GroupPrivacy])
def test_no_two_teachers_see_records_of_one_household(kind, student, sizes):
    """Whoever accounts for the votes, and whoever asks."""
    n, rng = 60, np.random.default_rng(0)
    groups = scattered(15, 4) if sizes is None else np.repeat(np.arange(15), 4)
    # by which a record is known, of which those that parameters are tried on have none
    X = np.column_stack([1000.0 + np.arange(n), rng.normal(size=n)])
    model = PATEClassifier(
        Watched(1),
        n_teachers=5,
        student=student,
        unlabeled=None if student is None else rng.normal(size=(20, 2)),
        n_queries=3,
        classes=[0, 1],
        scenario=households(4, sizes=sizes),
        accountant=kind(4.0, delta=1e-3),
    )
    if kind is GroupPrivacy and student is None:
        pytest.skip("it accounts for votes that are one vector alone")
    Watched.shown.clear()
    model.fit(X, np.arange(n) % 2, groups=groups if sizes is None else None)
    rows = [(at[at >= 1000] - 1000).astype(int) for at in Watched.shown]
    rows = [each for each in rows if len(each)]
    assert len(rows) == 5 and sorted(np.concatenate(rows)) == list(range(n))
    homes = [set(groups[each]) for each in rows]
    assert sum(map(len, homes)) == len(set.union(*homes)) == 15


def test_groups_are_blocks_of_any_estimator():
    rng = np.random.default_rng(0)
    groups = scattered(6, 5)
    X = rng.integers(2, size=(30, 1)).astype(float)
    order = np.argsort(groups, kind="stable")
    anywhere = PrivateMean(BlocksScenario(CHAIN), bounds=(0, 1))
    found = anywhere.fit(X, groups=groups).certificate_
    sorted_ = PrivateMean(BlocksScenario(CHAIN, 5), bounds=(0, 1)).fit(X[order])
    assert found.epsilon == sorted_.certificate_.epsilon
    assert found.sensitivity == sorted_.certificate_.sensitivity < 30 * (1 / 30)
    # rows come back in the order of the table
    bound = BlocksScenario(CHAIN).bind(
        PublicContext(n_records=30, groups=tuple(groups))
    )
    np.testing.assert_array_equal(bound.check_rows(X), X)


# -- an attack ------------------------------------------------------------------------


def test_a_household_does_not_beat_the_certificate():
    groups, n_queries = np.repeat(np.arange(6), 3), 4
    X = np.zeros((18, 1))
    y = np.repeat([0, 1, 0, 1, 0, 1], 3)
    other = np.where(groups == 0, 1 - y, y)
    asked = np.zeros((n_queries, 1))
    release = votes(groups, n_teachers=6, n_queries=n_queries)
    fitted = PrivacyLoss(2.0, 0.05).calibrate(release, households(3))

    def counts(target, groups):
        teachers = Teachers(KNeighborsClassifier(1), 6, np.random.default_rng(0))
        return teachers.fit(X, target, groups).vote(asked, 2)

    def worlds(groups):
        here, there = counts(y, groups), counts(other, groups)

        def answered(counts, noise):
            def draw(n, rng):
                return counts.ravel() + noise.sample((n, counts.size), rng)

            return draw

        return (here - there).ravel(), lambda noise: [
            answered(here, noise),
            answered(there, noise),
        ]

    moved, whole = worlds(groups)
    assert np.abs(moved).sum() == 2 * n_queries
    assert_tight(
        fitted.certificate,
        fitted.noise,
        whole,
        score=lambda noise: lambda outputs: outputs @ moved,
        seed=0,
        n_draws=20_000,
    )
    # dealt singly, the household would tell more than that
    singly = np.arange(18)
    moved, spread = worlds(singly)
    assert np.abs(moved).sum() > 2 * n_queries
    assert_beaten(
        fitted.certificate,
        *spread(fitted.noise),
        score=lambda outputs: outputs @ moved,
        rng=np.random.default_rng(0),
        n_draws=20_000,
    )


# -- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups, message",
    [
        ([0, 0, 0, 0, 0, 0, 1, 2, 3, 4], "share of 3.*fewer teachers"),
        ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], "3 groups.*fewer teachers"),
        ([0, 1, 2], "one value for each of the 10"),
    ],
)
def test_groups_that_teachers_cannot_be_dealt(groups, message):
    with pytest.raises(ValueError, match=f"'groups'.*{message}"):
        VoteRelease(n_records=10, n_teachers=4, n_classes=2, n_queries=1, groups=groups)


BELIEF = AttributeScenario("secret", level="record", prior=BoundedOdds(4.0))


@pytest.mark.parametrize(
    "scenario, groups, code, parameters",
    [
        (RecordScenario(), [0, 0, 1, 2], "scenario.group_ids_repeat", {}),
        (RecordScenario(k=2), [0, 0, 1, 2], "scenario.group_ids_repeat", {}),
        (BELIEF, [0, 0, 1, 2], "scenario.group_ids_repeat", {}),
        (households(2), [0, 0, None, 1], "table.groups_missing_values", {}),
        (
            households(2),
            [[0, 0, 1, 1]],
            "table.secret_not_one_per_record",
            {"secret_type": "list"},
        ),
        (households(2), None, "blocks.groups_not_given", {}),
        (households(2, "add_remove"), [0, 0, 1, 1], "blocks.relation_add_remove", {}),
    ],
)
def test_groups_that_a_scenario_does_not_cover(scenario, groups, code, parameters):
    accountant = PrivacyLoss(4.0, 1e-3)
    if scenario is BELIEF:
        accountant = OverlapAmplification(0.5)
    model = PATEClassifier(
        n_teachers=2, scenario=scenario, accountant=accountant, classes=[0, 1]
    )
    with refused((ScenarioError, ValueError), code, **parameters):
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1], groups=groups)
    assert not hasattr(model, "certificate_")


def test_an_id_each_is_no_group():
    model = PATEClassifier(n_teachers=2, classes=[0, 1], n_queries=1)
    model.fit(np.zeros((4, 1)), [0, 1, 0, 1], groups=["a", "b", "c", "d"])
    assert model.certificate_.sensitivity == 1


def test_a_scenario_bound_to_other_groups():
    scenario = households(4).bind(PublicContext(n_records=8, groups=(0, 0, 1, 1) * 2))
    with refused(ValueError, "scenario.bound_to_other_context", field="groups"):
        PrivacyLoss().calibrate(votes(np.arange(8) // 2), scenario)
