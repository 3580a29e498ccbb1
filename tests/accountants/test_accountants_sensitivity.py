"""How far an output can move, by each kind of fact: closed forms, ceilings, trust."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.accountants.additive._base import (
    distribution_sensitivity,
    record_sensitivity_bound,
    sensitivity_bound,
)
from skpuffer.distributions import Discrete, PointMass
from skpuffer.exceptions import stated
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    CoupledSamples,
    MaxInfluence,
    OutputDistributions,
    OutputSensitivity,
)
from skpuffer.scenarios._facts import arbitrary_coupling
from tests.refused import refused

TRUST = {
    "certified": False,
    "delta": 0.1,
    "confidence": 0.9,
    "assumptions": (stated("the sample is one"),),
}


def total(**options):
    """A sum of records that each move it by one, or by two if another comes."""
    options = {"sensitivity": Sensitivity(add_remove={1: 1.0, 2: 1.0})} | options
    return QueryRelease(
        **{"contribution": lambda X, y: X, "is_sum": True, "n_records": 10, "dim": 1}
        | options
    )


def adjacency(move=math.inf, count=1, **options):
    return Adjacency(
        **{"count": count, "move": move, "relation": "replace", "coupling_id": "c"}
        | options
    )


def given(*points, **options):
    """Distributions of two secrets that are points."""
    points = tuple(PointMass(point) for point in points)
    return OutputDistributions(
        distributions=(points,), secrets=("a", "b"), pairs=((0, 1),), **options
    )


def drawn(*moves, **options):
    moves = np.array(moves, dtype=float)
    draws = ((0, 0, 1, 0 * moves, moves),)
    return CoupledSamples(draws=draws, secrets=("a", "b"), **options)


FACTS = {
    "distributions": given(0.0, 0.5),
    "draws": drawn([0.5], [0.2]),
    "reach": OutputSensitivity(radius=0.5, coupling_id="c"),
    "records": adjacency(0.5),
}


# -- every kind of fact ----------------------------------------------------------------


@pytest.mark.parametrize("name", FACTS)
def test_the_bound_is_as_certain_as_its_fact(name):
    known = sensitivity_bound(FACTS[name], total(), 2)
    assert known.radius == pytest.approx(0.5)
    assert (known.certified, known.delta, known.confidence) == (True, 0.0, 1.0)
    found = sensitivity_bound(replace(FACTS[name], **TRUST), total(), 2)
    assert found.radius == known.radius
    assert {name: getattr(found, name) for name in TRUST} == TRUST


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("far", [False, True])
def test_private_rows_are_never_certified(name, far):
    """Not even what holds for any rows: that it was reached is read off them."""
    fact = FACTS[name]
    if far:
        fact = {"distributions": given(0.0, 99.0), "records": adjacency(99.0)}.get(
            name, fact
        )
        if name == "distributions":
            fact = replace(fact, common_part_removed=True)
    for certified in (True, False):
        peeked = replace(fact, reads_private_rows=True, certified=certified)
        found = sensitivity_bound(peeked, total(), 2)
        assert found.certified is False
        assert found.arbitrary is False


@pytest.mark.parametrize("name", ["distributions", "reach", "records"])
def test_slack_is_added_once(name):
    release = total(slack=0.25, modulus_norm=2.0)
    assert sensitivity_bound(FACTS[name], release, 2).radius == pytest.approx(0.75)


def test_facts_of_which_no_move_is_known():
    with refused(
        TypeError, "accountant.sensitivity_bound_unknown", fact_type="MaxInfluence"
    ):
        sensitivity_bound(MaxInfluence(quilts=()), total(), 2)


# -- distributions ---------------------------------------------------------------------


def test_the_worst_pair_of_distributions_sets_the_bound():
    points = (PointMass(0.0), PointMass(0.2), PointMass(0.9))
    fact = OutputDistributions(
        distributions=(points, (points[0], None, points[1])),
        secrets=("a", "b", "c"),
        pairs=((0, 1), (0, 2)),
        scale=3.0,
    )
    found = sensitivity_bound(fact, total(), 2)
    assert found.radius == pytest.approx(2.7) and found.worst == (0, "a", "c")
    assert found.relation is None and found.coupling_id is None
    assert sensitivity_bound(replace(fact, scale=0.0), total(), 2).radius == 0.0


@pytest.mark.parametrize("norm, expected", [(1, 7.0), (2, 5.0), (math.inf, 4.0)])
def test_the_norm_and_the_units_are_those_asked_for(norm, expected):
    fact = given([0.0, 0.0], [3.0, 40.0])
    release = total(dim=2, units=(1.0, 10.0), sensitivity=None)
    assert sensitivity_bound(fact, release, norm).radius == pytest.approx(expected)


def test_distributions_of_one_record_are_no_further_apart_than_any_record_moves():
    """And what is known of any record is certain, whatever is known of those."""
    apart = given(0.0, 99.0, **TRUST)
    assert sensitivity_bound(apart, total(), 2).radius == 99.0
    found = sensitivity_bound(replace(apart, common_part_removed=True), total(), 2)
    assert found.radius == 2.0  # one leaves and another comes
    assert found.certified and found.delta == 0.0 and found.confidence == 1.0
    assert found.relation == "replace"
    unknown = total(sensitivity=None)
    one = replace(apart, common_part_removed=True)
    assert sensitivity_bound(one, unknown, 2).radius == 99.0
    # a bound that others found meets the same ceiling
    for radius, expected in ((0.5, 0.5), (2.0, 2.0), (7.0, 2.0)):
        found = distribution_sensitivity(one, radius, total(), 2)
        assert found.radius == expected
        assert found.certified == (radius >= 2.0)


def test_the_bound_grows_with_the_distributions():
    near = Discrete([0.0, 1.0])
    radii = [
        sensitivity_bound(
            OutputDistributions(
                distributions=((near, Discrete([0.0, far])),),
                secrets=("a", "b"),
                pairs=((0, 1),),
            ),
            total(sensitivity=None),
            2,
        ).radius
        for far in (1.0, 1.5, 4.0)
    ]
    assert radii == pytest.approx([0.0, 0.5, 3.0])


# -- draws -----------------------------------------------------------------------------


def test_the_longest_draw_sets_the_bound():
    release = total(dim=2, units=(1.0, 2.0), sensitivity=None)
    fact = drawn([1.0, 0.0], [3.0, 8.0], [0.0, 6.0])
    for norm, expected in ((1, 7.0), (2, 5.0), (math.inf, 4.0)):
        found = sensitivity_bound(fact, release, norm)
        assert found.radius == pytest.approx(expected)
        assert found.worst == (0, "a", "b")


# -- records ---------------------------------------------------------------------------


@pytest.mark.parametrize("relation, one", [("add_remove", 1.0), ("replace", 2.0)])
def test_arbitrary_records_are_differential_privacy(relation, one):
    release = total(sensitivity=Sensitivity(add_remove={2: 1.0}))
    for count in (1, 2, 5):
        fact = Adjacency.arbitrary(count, ("public",), relation, any_records=True)
        found = sensitivity_bound(fact, release, 2)
        assert found.radius == count * one
        assert found.arbitrary and found.any_records and found.count == count
        assert found.relation == relation
        assert found.coupling_id == arbitrary_coupling(relation, count)
    unsure = replace(fact, certified=False)
    assert not sensitivity_bound(unsure, release, 2).arbitrary


def test_known_moves_are_added_up_and_meet_the_ceiling():
    for move, count, expected in ((0.5, 1, 0.5), (0.5, 3, 1.5), (99.0, 3, 6.0)):
        found = sensitivity_bound(adjacency(move, count), total(), 2)
        assert found.radius == pytest.approx(expected)
        # no further than any record moves: then no prior is needed for it
        assert found.arbitrary == (move > 2)
        named = arbitrary_coupling("replace", count) if move > 2 else "c"
        assert found.coupling_id == named


def test_each_record_has_a_bound_of_its_own():
    moves = np.array([2.5, 0.5, 0.25])
    fact = adjacency(2.5, 3, moves=moves, **TRUST)
    found = sensitivity_bound(fact, total(), 2)
    assert found.radius == pytest.approx(2.0 + 0.5 + 0.25)
    # the first may move as any record does, but that the others move less is believed
    assert not found.arbitrary and not found.certified and found.coupling_id == "c"
    alike = replace(fact, moves=np.full(3, 2.5))
    found = sensitivity_bound(alike, total(), 2)
    assert found.radius == 6.0 and found.arbitrary and found.certified


@pytest.mark.parametrize("move", [math.inf, 2.0])
def test_a_count_that_may_be_exceeded_is_not_certain(move):
    """A group's privacy holds without a prior only if no more records can differ."""
    fact = adjacency(move, 2, delta=0.1, count_is_certain=False)
    found = sensitivity_bound(fact, total(), 2)
    assert found.radius == 4.0
    assert found.delta == 0.1
    assert found.coupling_id == "c"
    assert not found.arbitrary
    certain = sensitivity_bound(adjacency(move, 2), total(), 2)
    assert certain.arbitrary and certain.delta == 0.0


def test_the_bound_never_falls_with_count_or_move():
    radii = [
        [sensitivity_bound(adjacency(m, k), total(), 2).radius for k in (1, 2, 4)]
        for m in (0.0, 0.5, 1.9, 2.0, 3.0, math.inf)
    ]
    assert np.all(np.diff(radii, axis=0) >= 0) and np.all(np.diff(radii, axis=1) >= 0)


def test_nothing_known_is_infinitely_far():
    assert sensitivity_bound(adjacency(), total(sensitivity=None), 2).radius == math.inf


# -- one arbitrary record, for comparison ----------------------------------------------


def test_what_one_arbitrary_record_moves():
    assert record_sensitivity_bound(total(), 2) == 2.0
    assert record_sensitivity_bound(total(slack=0.5), 2) == 2.5
    assert record_sensitivity_bound(total(sensitivity=None), 2) is None
    wide = total(dim=None, sensitivity=Sensitivity(add_remove={2: 1.0}))
    assert record_sensitivity_bound(wide, 1) is None  # without the dimension
