"""What no sum, conversion or other belief is known of is refused, at every door."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.exceptions import CompositionError, Statement, UncertifiedError
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import (
    Certificate,
    Notion,
    compose,
    mixed_information,
    parallel,
)
from skpuffer.privacy._robustness import arbitrary_count
from skpuffer.privacy_loss import GaussianCurve, RenyiCurve
from skpuffer.privacy_loss._overlap import OverlapCurve, finite_overlap
from tests.refused import refused

ONE = Certificate(
    notion="renyi_pufferfish",
    epsilon=0.25,
    alpha=2.0,
    relation="replace",
    curve=GaussianCurve(0.5),
    coupling_id="of days",
    coupling_count=1,
    table="days",
    n_records=10,
    composable=True,
    source="a paper",
    release="one",
)
AVERAGE = replace(ONE, notion="sa_joint_sliced_renyi_pufferfish", curve=None)
INFORMATION = Certificate(
    notion="mutual_information",
    mutual_information=0.2,
    entropy=2.0,
    table="days",
    n_records=10,
    composable=True,
)
RECORD = replace(INFORMATION, notion="record_mutual_information", table_information=0.5)
BAD_DELTAS = [0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "0.1", None]


# -- sums -----------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[], [1], [1, 2, 3], [0, 1], [1.5, 1], ["one", 1]])
@pytest.mark.parametrize("certificate", [ONE, AVERAGE, INFORMATION])
def test_counts_are_whole_numbers_one_for_each(certificate, counts):
    with refused(
        (TypeError, ValueError),
        (
            "compose.counts_mismatch",
            "parameter.count_too_small",
            "parameter.not_real_number",
        ),
    ):
        compose([certificate, certificate], counts=counts)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0, -2.0, math.nan, "2"])
def test_an_order_is_above_one(alpha):
    with refused(
        (TypeError, ValueError),
        (
            "parameter.is_nan",
            "parameter.not_real_number",
            "parameter.renyi_order_out_of_range",
        ),
    ):
        compose([ONE, ONE], alpha=alpha)


@pytest.mark.parametrize("delta", BAD_DELTAS[:-1])
def test_a_delta_is_a_probability(delta):
    with refused(
        (TypeError, ValueError),
        (
            "parameter.is_nan",
            "parameter.not_real_number",
            "parameter.probability_out_of_range",
        ),
    ):
        compose([ONE, ONE], delta=delta)
    with refused(
        (TypeError, ValueError),
        (
            "parameter.is_nan",
            "parameter.not_real_number",
            "parameter.probability_out_of_range",
        ),
    ):
        ONE.to_approximate(delta)
    with refused(
        (TypeError, ValueError),
        (
            "parameter.is_nan",
            "parameter.not_real_number",
            "parameter.probability_out_of_range",
        ),
    ):
        ONE.to_sliced_approximate(delta)


@pytest.mark.parametrize("what", [compose, parallel, mixed_information])
def test_of_nothing_there_is_no_sum(what):
    with refused(
        CompositionError, ("compose.no_certificate", "parallel.no_certificate")
    ):
        what([])
    with refused(
        CompositionError, ("compose.no_certificate", "parallel.no_certificate")
    ):
        what(iter(()))


@pytest.mark.parametrize(
    "what, certificate",
    [
        (compose, ONE),
        (compose, AVERAGE),
        (compose, INFORMATION),
        (parallel, ONE),
        (mixed_information, RECORD),
    ],
)
def test_estimates_are_added_to_nothing(what, certificate):
    estimate = certificate.as_estimate("seen")
    for parts in ([estimate], [certificate, estimate], [estimate, certificate]):
        with refused(
            CompositionError,
            ("compose.estimate_not_addable", "parallel.no_epsilon_promised"),
        ):
            what(parts)


@pytest.mark.parametrize(
    "change, code",
    [
        ({"composable": False}, "compose.certificate_not_composable"),
        ({"curve": None}, "compose.no_curve"),
        ({"n_records": 9}, "compose.table_sizes_differ"),
        ({"coupling_id": "of nights"}, "compose.couplings_differ"),
        ({"coupling_id": None}, "compose.couplings_differ"),
        ({"notion": "joint_sliced_renyi_pufferfish"}, "compose.slices_not_composable"),
        ({"notion": "averaged_sliced_pufferfish"}, "compose.slices_not_composable"),
    ],
)
def test_what_adds_up_with_nothing_of_the_kind(change, code):
    other = replace(ONE, **change)
    for parts in ([ONE, other], [other, ONE]):
        with refused(CompositionError, code):
            compose(parts)


def test_of_a_notion_that_is_new_nothing_follows_and_nothing_adds_up():
    """Whatever else a certificate in it says, until somebody proves a theorem."""
    new = Notion("concentrated", "concentrated differential privacy")
    one = replace(ONE, notion=new)
    for parts in ([one, one], [ONE, one], [one, ONE]):
        for asked in ({}, {"alpha": 2.0}, {"delta": 1e-6}):
            with refused(CompositionError, "compose.notion_unknown"):
                compose(parts, **asked)
    with refused(CompositionError, "compose.notion_unknown"):
        compose([one], counts=[2])
    with refused(UncertifiedError, "certificate.no_approximate_promise_follows"):
        one.to_approximate(1e-5)
    assert [n.name for n in Notion.known.values() if one.implies(n)] == []
    assert one.implies(new)


def test_of_releases_without_a_coupling_not_even_equal_ones_add_up():
    with refused(CompositionError, "compose.couplings_differ"):
        compose(2 * [replace(ONE, coupling_id=None)])
    vague = replace(ONE, coupling_count=None)
    plain = replace(ONE, coupling_id="replace:1", notion="renyi_dp")
    with refused(CompositionError, "compose.couplings_differ"):
        compose([vague, plain])
    # what holds for fewer records than the coupling changes says nothing of it
    with refused(CompositionError, "compose.couplings_differ"):
        compose([replace(ONE, coupling_count=2), plain])
    assert compose([ONE, plain]).coupling_id == "of days"


@pytest.mark.parametrize(
    "coupling_id", ["replace", "replace:", "replace:two", "replace:-1", "add_remove:1"]
)
def test_a_coupling_that_says_no_number_is_none_of_any_records(coupling_id):
    other = replace(ONE, coupling_id=coupling_id)
    assert arbitrary_count(other) is None
    with refused(CompositionError, "compose.couplings_differ"):
        compose([ONE, other])
    assert arbitrary_count(replace(ONE, coupling_id="replace:12")) == 12


# -- averages over subsamples ---------------------------------------------------------


@pytest.mark.parametrize(
    "others, asked, code",
    [
        ([], {"alpha": 3.0}, "sampling.average_order_not_convertible"),
        ([], {"delta": 1e-5}, "sampling.average_order_not_convertible"),
        ([AVERAGE], {"alpha": 3.0}, "sampling.average_order_not_convertible"),
        ([AVERAGE], {"delta": 1e-5}, "sampling.average_order_not_convertible"),
        ([ONE], {}, "sampling.average_with_other_notion"),
        (
            [replace(AVERAGE, notion="sa_averaged_sliced_renyi_pufferfish")],
            {},
            "sampling.average_with_other_notion",
        ),
        ([replace(AVERAGE, composable=False)], {}, "sampling.average_caps_per_slice"),
        ([replace(AVERAGE, alpha=3.0)], {}, "sampling.average_orders_differ"),
        (
            [replace(AVERAGE, coupling_id="of nights")],
            {},
            "sampling.average_couplings_differ",
        ),
        ([replace(AVERAGE, coupling_id=None)], {}, "sampling.average_couplings_differ"),
        ([replace(AVERAGE, n_records=9)], {}, "compose.table_sizes_differ"),
    ],
)
def test_averages_over_subsamples_add_up_with_their_like_alone(others, asked, code):
    for parts in ([AVERAGE, *others], [*others, AVERAGE]):
        with refused(CompositionError, code):
            compose(parts, **asked)
    assert compose([AVERAGE], alpha=2.0) is AVERAGE


def test_averages_without_a_coupling_are_of_no_one_divergence():
    with refused(CompositionError, "sampling.average_couplings_differ"):
        compose(2 * [replace(AVERAGE, coupling_id=None)])


# -- bounds on information ------------------------------------------------------------


@pytest.mark.parametrize(
    "what, others, code",
    [
        (compose, [ONE], "compose.information_with_other_notion"),
        (compose, [RECORD], "compose.single_secret_information"),
        (
            compose,
            [replace(INFORMATION, scenario="another")],
            "compose.information_scenarios_differ",
        ),
        (
            compose,
            [replace(INFORMATION, table="nights")],
            "compose.information_scenarios_differ",
        ),
        (
            compose,
            [replace(INFORMATION, n_records=9)],
            "compose.information_scenarios_differ",
        ),
        (
            compose,
            [replace(INFORMATION, entropy=1.0)],
            "compose.information_scenarios_differ",
        ),
        (mixed_information, [INFORMATION], "compose.information_secret_kinds_differ"),
        (
            mixed_information,
            [RECORD, replace(RECORD, notion="group_mutual_information")],
            "compose.information_secret_kinds_differ",
        ),
        (mixed_information, [RECORD, ONE], "compose.information_with_other_notion"),
        (
            mixed_information,
            [replace(RECORD, table_information=None)],
            "compose.table_information_missing",
        ),
    ],
)
def test_bounds_on_information_add_up_about_one_thing_alone(what, others, code):
    first = INFORMATION if what is compose else (others[0])
    with refused(CompositionError, code):
        what([first, *others])
    with refused(CompositionError, "compose.information_alpha_or_delta"):
        compose([INFORMATION], alpha=2.0)
    with refused(CompositionError, "compose.information_alpha_or_delta"):
        compose([INFORMATION, INFORMATION], delta=1e-5)


# -- side by side ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, code",
    [
        ({"alpha": 3.0}, "parallel.promises_differ"),
        ({"relation": "add_remove"}, "parallel.promises_differ"),
        ({"notion": "pure_pufferfish"}, "parallel.promises_differ"),
        ({"epsilon": None}, "parallel.no_epsilon_promised"),
        ({"notion": "joint_sliced_renyi_pufferfish"}, "parallel.notion_unknown"),
    ],
)
def test_blocks_promise_one_thing(change, code):
    other = replace(ONE, **change)
    for parts in ([ONE, other], [other, ONE]):
        with refused(CompositionError, code):
            parallel(parts)


# -- what follows ---------------------------------------------------------------------


def test_without_a_curve_nothing_follows_at_other_numbers():
    bare = replace(ONE, curve=None)
    with refused(UncertifiedError, "certificate.no_curve_to_convert"):
        bare.to_approximate(1e-5)
    orders = (3.0, 3.0, 3.0)
    with refused(UncertifiedError, "belief.no_curve_to_read"):
        bare.under_prior_shift(method="a4", divergence=(0.1, 0.1), orders=orders)
    for inputs in (
        {"query_distance": 0.1},
        {"method": "variation", "variation": 0.1},
        {"method": "a5", "query_distance": 0.1},
    ):
        with refused(
            UncertifiedError, ("belief.no_additive_noise", "belief.no_curve_to_read")
        ):
            bare.under_prior_shift(**inputs)


@pytest.mark.parametrize("what", ["to_approximate", "to_sliced_approximate"])
def test_of_what_is_no_promise_about_the_output_none_follows(what):
    for notion in (
        "estimated",
        "mutual_information",
        "sa_joint_sliced_renyi_pufferfish",
    ):
        with pytest.raises((UncertifiedError, ValueError)):
            getattr(replace(ONE, notion=notion), what)(1e-5)


@pytest.mark.parametrize(
    "notion",
    [
        "joint_sliced_renyi_pufferfish",
        "averaged_sliced_renyi_pufferfish",
        "joint_sliced_pufferfish",
        "averaged_sliced_pufferfish",
        "sa_joint_sliced_renyi_pufferfish",
        "sa_averaged_sliced_renyi_pufferfish",
        "estimated",
    ],
)
def test_what_is_computed_from_slices_may_tell_more_than_they_do(notion):
    sliced = replace(ONE, notion=notion)
    with pytest.raises(UncertifiedError):
        sliced.after_processing()
    with pytest.raises(UncertifiedError):
        sliced.to_approximate(1e-5)
    assert ONE.after_processing() is ONE


@pytest.mark.parametrize("name", ["pure_pufferfish", "approximate_pufferfish"])
def test_slices_are_asked_for_where_there_are_some(name):
    with refused(ValueError, "certificate.profile_without_slices"):
        ONE.implies(name, "uniform")
    sliced = replace(ONE, notion="joint_sliced_renyi_pufferfish", profile="uniform")
    assert sliced.implies("joint_sliced_pufferfish", "uniform")
    assert not sliced.implies("joint_sliced_pufferfish", "another")
    assert ONE.implies("joint_sliced_pufferfish", "another")


# -- what is counted at its fallback --------------------------------------------------


@pytest.mark.parametrize(
    "coupling_id, count, said",
    [
        ("replace:1", 1, "RecordScenario(relation='replace')"),
        ("replace:3", 3, "RecordScenario(k=3, relation='replace')"),
        (
            "replace:3",
            None,
            Statement("neighbours.records_taken_together"),
        ),
        (
            "replace:3",
            2,
            Statement("neighbours.records_of_one_block", count=2),
        ),
    ],
)
def test_a_fallback_says_of_whom_it_is(coupling_id, count, said):
    overlap = finite_overlap(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    believed = replace(
        ONE,
        notion="approximate_pufferfish",
        alpha=None,
        delta=1e-5,
        curve=OverlapCurve(GaussianCurve(0.5), overlap),
        coupling_id=coupling_id,
        coupling_count=count,
        record="a row",
    )
    found = compose([believed, replace(believed, record="another")])
    code = "assume.release_counts_at_fallback"
    (told,) = (a for a in found.assumptions if a.code == code)
    assert str(told.parameters["plain_privacy"]) == str(said)


def test_events_of_a_sum_are_those_of_its_parts_where_their_curve_names_none():
    noise = GaussianNoise(2.0).curve(1.0)
    additive = replace(ONE, curve=noise)
    orders = RenyiCurve((2.0, 4.0), (0.3, 0.6))
    table = replace(ONE, curve=orders, events=None)
    both = compose([additive, additive])
    assert [count for _, count in both.events] == [1, 1]
    assert {pair.curve for pair, _ in both.events} == {noise}
    assert compose([additive, table]).events is None


@pytest.mark.parametrize("name", ["pure", "renyi", "approximate"])
def test_of_records_that_come_and_go_nothing_follows_for_their_values(name):
    """A replaced value is two steps away, at twice the numbers and more."""
    dp, values = f"{name}_dp", f"{name}_pufferfish"
    for relation, follows in (("add_remove", False), ("replace", True)):
        certificate = replace(ONE, notion=dp, relation=relation)
        assert certificate.implies(dp) and certificate.implies("approximate_dp")
        assert certificate.implies(values) is follows
        # and of all notions about tables no more than that they follow
        for other in ("pure_dp", "renyi_dp", "approximate_dp"):
            assert certificate.implies(other) is Notion.of(dp).implies(other)
        # what is about values already is no promise about records that come and go
        pufferfish = replace(ONE, notion=values, relation=relation)
        assert pufferfish.implies(values) and not pufferfish.implies(dp)


def test_a_fallback_pays_for_its_event_too():
    overlap = finite_overlap(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    plain = GaussianCurve(0.5)
    believed = replace(
        ONE,
        notion="approximate_pufferfish",
        alpha=None,
        delta=1e-4,
        event_delta=9e-5,
        curve=OverlapCurve(plain, overlap),
    )
    assert believed.fallback == pytest.approx(plain.epsilon(1e-5))
    assert replace(believed, event_delta=0.0).fallback == plain.epsilon(1e-4)
    assert replace(believed, curve=plain).fallback is None
