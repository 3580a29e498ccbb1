"""Releases about independent blocks of records."""

import math
from dataclasses import replace

import pytest

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    OverlapAmplification,
)
from skpuffer.distributions import PointMass, Samples
from skpuffer.exceptions import CompositionError
from skpuffer.privacy import Certificate, Notion, compose, parallel
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedInference,
    BoundedOdds,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from tests.refused import refused, says

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
    assert says(found.assumptions, "assume.blocks_independent")
    assert all(text in found.assumptions for c in parts for text in c.assumptions)
    assert parallel(parts[:1]) is parts[0]


def test_deltas_are_those_of_the_worst_block():
    parts = [series(10, 1.0, delta=1e-6), series(20, 0.5, delta=1e-5)]
    found = parallel(parts)
    assert (found.epsilon, found.delta) == (1.0, 1e-5)
    assert found.notion is Notion.APPROXIMATE_PUFFERFISH


def test_no_curve_of_a_part_stands_for_that_of_another():
    small, large = series(10, 0.5), series(20, 2.0)
    for order in ([small, small, large], [small, large, small], [large, small, small]):
        assert parallel(order).curve is None
    assert parallel([small, small]).curve is small.curve


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
    assert not says(found.assumptions, "assume.blocks_independent")


def test_the_largest_fallback_is_kept():
    # the one that promises less to believers is not the one that promises less to all
    parts = [
        OverlapAmplification(epsilon, delta=delta)
        .calibrate(count(10), AttributeScenario("s", level="record", prior=prior))
        .certificate
        for epsilon, delta, prior in (
            (0.5, 1e-6, BoundedOdds(3.0)),
            (0.7, 1e-5, BoundedOdds(9.0)),
            (0.1, 1e-6, BoundedInference(0.7)),
        )
    ]
    found = parallel(parts)
    assert (found.epsilon, found.delta) == (0.7, 1e-5)
    plain = [part.curve.curve.epsilon(1e-5) for part in parts]
    assert found.fallback == max(plain) == plain[0] > parts[1].fallback
    assert f"{found.fallback:.4g}" in found.details()
    for epsilon in (0.0, 0.3, 0.7, 2.0):
        worst = max(part.curve.delta(epsilon) for part in parts)
        assert found.curve.delta(epsilon) == worst
    # each is amplified by its own belief, so that no more is asked than is promised
    assert found.to_approximate(1e-5).epsilon == pytest.approx(0.7, rel=1e-6)
    assert Certificate.from_dict(found.to_dict()) == found
    # if a belief is off, in ways of its own, the worst is said of all
    off = found.curve.if_off(1e-5)
    assert max(max(part.curve.if_off(1e-5).values()) for part in parts) in off.values()
    (name,) = off
    assert (
        "odds within 6 | odds within 18 | " in str(name)
        and str(name) in found.details()
    )
    alike = parallel([parts[0], Certificate.from_dict(parts[0].to_dict())])
    assert alike.curve.if_off(1e-5) == parts[0].curve.if_off(1e-5)
    # said of all or of none
    silent = replace(parts[1], curve=replace(parts[1].curve, wider=()))
    assert parallel([parts[0], silent]).curve.if_off(1e-5) == {}
    # beside a promise without a belief nothing holds whatever is believed
    other = replace(parts[0], curve=parts[0].curve.curve)
    assert parallel([parts[1], other]).fallback is None


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_what_cannot_be_put_side_by_side():
    with refused(CompositionError, "parallel.no_certificate"):
        parallel([])
    with refused(CompositionError, "parallel.promises_differ"):
        parallel([series(10), series(10, alpha=3.0)])
    with refused(CompositionError, "parallel.promises_differ"):
        parallel([series(10), series(10, alpha=math.inf)])
    samples = LawsScenario([(Samples([0.0, 1.0]), PointMass(3.0))])
    estimate = GeneralWasserstein().calibrate(count(10), samples).certificate
    with refused(CompositionError, "parallel.no_epsilon_promised"):
        parallel([estimate, estimate])


@pytest.mark.parametrize("add", [compose, parallel])
def test_a_notion_that_is_new_is_not_added_up(add):
    new = Notion("concentrated", "concentrated differential privacy")
    part = replace(series(10), notion=new, composable=True, coupling_id="one table")
    assert not any(new.implies(known) for known in Notion.known.values())
    with refused(
        CompositionError, ("compose.notion_unknown", "parallel.notion_unknown")
    ):
        add([part, part])
