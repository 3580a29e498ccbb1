"""Releases about independent blocks of records."""

import math
from dataclasses import replace

import pytest

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.distributions import PointMass, Samples
from skpuffer.exceptions import CompositionError
from skpuffer.privacy import Notion, compose, parallel
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, MarkovChainScenario, RecordScenario

ONE = Sensitivity(add_remove={1: 1.0}, replace={1: 1.0})


def count(n):
    return QueryRelease(
        contribution=lambda X, y: X,
        is_sum=True,
        n_records=n,
        dim=1,
        name=f"count of {n}",
        sensitivity=ONE,
    )


def series(n, epsilon=1.0, **options):
    accountant = GeneralWasserstein(epsilon, noise="laplace", **options)
    scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    return accountant.calibrate(count(n), scenario).certificate


def test_the_weakest_promise_holds():
    parts = [series(10, 0.5), series(20, 2.0), series(50, 1.0)]
    found = parallel(parts)
    assert found.epsilon == 2.0
    assert (found.notion, found.alpha) == (Notion.RENYI_PUFFERFISH, 2.0)
    assert found.n_releases == 3
    assert not found.composable
    assert any("independent" in text for text in found.assumptions)
    assert all(text in found.assumptions for c in parts for text in c.assumptions)
    assert parallel(parts[:1]) is parts[0]


def test_deltas_are_those_of_the_worst_block():
    parts = [series(10, 1.0, delta=1e-6), series(20, 0.5, delta=1e-5)]
    found = parallel(parts)
    assert (found.epsilon, found.delta) == (1.0, 1e-5)
    assert found.notion is Notion.APPROXIMATE_PUFFERFISH


def test_confidences_add_their_failures():
    part = replace(series(10), confidence=0.99)
    assert parallel([part, part, part]).confidence == pytest.approx(0.97)
    certain = parallel([series(10), part])
    assert certain.confidence == pytest.approx(0.99)


def test_differential_privacy_needs_no_independence():
    parts = [
        GroupPrivacy(epsilon).calibrate(count(10), RecordScenario()).certificate
        for epsilon in (0.5, 1.0)
    ]
    found = parallel(parts)
    assert (found.epsilon, found.notion) == (1.0, Notion.RENYI_DP)
    assert not any("independent" in text for text in found.assumptions)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_what_cannot_be_put_side_by_side():
    with pytest.raises(CompositionError, match="no certificate"):
        parallel([])
    with pytest.raises(CompositionError, match="different things"):
        parallel([series(10), series(10, alpha=3.0)])
    with pytest.raises(CompositionError, match="different things"):
        parallel([series(10), series(10, alpha=math.inf)])
    samples = LawsScenario([(Samples([0.0, 1.0]), PointMass(3.0))])
    estimate = GeneralWasserstein().calibrate(count(10), samples).certificate
    with pytest.raises(CompositionError, match="nothing"):
        parallel([estimate, estimate])


@pytest.mark.parametrize("add", [compose, parallel])
def test_a_notion_that_is_new_is_not_added_up(add):
    new = Notion("concentrated", "concentrated differential privacy")
    part = replace(series(10), notion=new, composable=True, coupling_id="one table")
    assert not any(new.implies(known) for known in Notion.known.values())
    with pytest.raises(CompositionError, match="concentrated"):
        add([part, part])
