"""What is made of certificates says nothing that was said of a part alone.

Every field of the whole is stated here: what is not named goes on holding as it was.
"""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from skpuffer.exceptions import CompositionError, Statement, stated
from skpuffer.kernel.composed_curves import RepeatedCurve, SymmetricPair
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Certificate, Notion, compose, mixed_information, parallel
from skpuffer.privacy._compose import _without_belief, repeated
from skpuffer.privacy._information import NOT_ADAPTIVE
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve, RenyiCurve
from skpuffer.privacy_loss._overlap import OverlapCurve, finite_overlap
from tests.refused import codes_of, refused, says

CURVE = GaussianCurve(0.5)
EVENTS = ((SymmetricPair(GaussianNoise(2.0).curve(1.0)), 2),)
#: Of a single release, with a value of its own in every field.
ONE = Certificate(
    notion="renyi_pufferfish",
    epsilon=0.25,
    alpha=2.0,
    confidence=0.99,
    relation="replace",
    curve=CURVE,
    events=EVENTS,
    epsilon_lower=0.1,
    rpp_epsilon=0.25,
    coupling_id="of days",
    coupling_count=3,
    table="days",
    n_records=10,
    columns=("a", "b"),
    composable=True,
    assumptions=("of both", "of one"),
    sensitivity=1.0,
    norm=2.0,
    record_sensitivity=3.0,
    noise_gain=4.0,
    source="a paper",
    scenario="of days",
    accountant="One()",
    choice=stated("one of two"),
    release="one",
    n_releases=2,
)
OTHER = replace(
    ONE,
    epsilon=1.0,
    curve=GaussianCurve(1.0),
    rpp_epsilon=1.0,
    confidence=0.98,
    columns=("b", "a", "c"),
    assumptions=("of both", "of the other"),
    source="another paper",
    accountant="Other()",
    choice="",
    release="other",
    n_releases=3,
)
OVERLAP = finite_overlap(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
#: Under a belief about one record, of any table.
#: For whom a promise under a belief holds.
OF_BELIEVERS = Statement(
    "assume.belief_independent_of_rows", together="", belief="it is so"
)
BELIEVED = replace(
    ONE,
    notion="approximate_pufferfish",
    alpha=None,
    epsilon=0.3,
    delta=1e-5,
    rpp_epsilon=math.inf,
    curve=OverlapCurve(CURVE, OVERLAP),
    events=None,
    coupling_id="replace:1",
    coupling_count=1,
    record="a row of people",
    assumptions=("of both", OF_BELIEVERS),
)
INFORMATION = Certificate(
    notion="mutual_information",
    mutual_information=0.2,
    entropy=2.0,
    prior_success=0.1,
    worst_leakage=3.0,
    confidence=0.99,
    table="days",
    n_records=10,
    composable=True,
    assumptions=("of both", "of one"),
    sensitivity=1.0,
    norm=2.0,
    record_sensitivity=3.0,
    source="a paper",
    accountant="One()",
    release="one",
    n_releases=2,
)
#: Where the parts are proved.
PAPERS = [stated("a paper"), stated("another paper")]
#: What no sum has of its parts.
OF_NONE = {
    "epsilon_lower": None,
    "sensitivity": None,
    "norm": None,
    "record_sensitivity": None,
    "noise_gain": None,
}


def assert_says(found, base, **expected):
    """That a certificate is another one but for what is named."""
    assert {field.name for field in fields(Certificate)} >= {*expected}
    for field in fields(Certificate):
        value = expected.get(field.name, getattr(base, field.name))
        if field.name == "assumptions":
            assert sorted(found.assumptions, key=str) == sorted(
                map(stated, value), key=str
            )
        elif isinstance(value, float):
            assert getattr(found, field.name) == pytest.approx(value), field.name
        else:
            assert getattr(found, field.name) == value, field.name


def test_a_composition():
    found = compose([ONE, OTHER])
    assert_says(
        found,
        ONE,
        **OF_NONE,
        epsilon=1.25,
        rpp_epsilon=1.25,
        confidence=0.97,
        curve=GaussianCurve(math.sqrt(1.25)),
        events=(*EVENTS, *EVENTS),
        columns=("b", "a", "c"),
        assumptions=("of both", "of one", "of the other"),
        source=Statement("source.coupling_composition", sources=PAPERS),
        accountant="One() + Other()",
        release="one + other",
        n_releases=5,
    )
    # a value replaced is two steps of records that come and go
    for each, rpp in (("add_remove", math.inf), ("replace", 1.25)):
        parts = [replace(c, relation=each) for c in (ONE, OTHER)]
        assert compose(parts).rpp_epsilon == pytest.approx(rpp)
    # what is not known of a part is not known of the whole
    assert compose([ONE, replace(OTHER, events=None)]).events is None
    # failures of more than one release add up to no more than certain failure
    parts = [replace(ONE, confidence=0.4), replace(OTHER, confidence=0.5)]
    assert compose(parts).confidence == 0.0


#: A pure promise, and each part's notion with what the whole is asked for.
PURE = LaplaceNoise(4.0).curve(1.0)
NOTIONS = {
    ("pure_dp", "pure_dp"): ("pure_dp", "renyi_dp", "approximate_dp"),
    ("pure_dp", "pure_pufferfish"): (
        "pure_pufferfish",
        "renyi_pufferfish",
        "approximate_pufferfish",
    ),
    ("pure_pufferfish", "pure_pufferfish"): (
        "pure_pufferfish",
        "renyi_pufferfish",
        "approximate_pufferfish",
    ),
    ("pure_dp", "renyi_dp"): (None, "renyi_dp", "approximate_dp"),
    ("pure_dp", "renyi_pufferfish"): (
        None,
        "renyi_pufferfish",
        "approximate_pufferfish",
    ),
    ("approximate_dp", "pure_pufferfish"): (
        None,
        "renyi_pufferfish",
        "approximate_pufferfish",
    ),
}


@pytest.mark.parametrize("parts", NOTIONS)
def test_a_composition_is_about_tables_only_if_every_part_is(parts):
    """And at all orders only if every part is: asked for in each form."""
    at = {
        "pure": {"epsilon": 0.25, "alpha": math.inf},
        "renyi": {"epsilon": 0.1, "alpha": 3.0},
        "approximate": {"epsilon": 0.2, "alpha": None, "delta": 1e-5},
    }
    both = [
        replace(ONE, notion=name, curve=PURE, **at[name.partition("_")[0]])
        for name in parts
    ]
    expected = NOTIONS[parts]
    for asked, notion in zip(
        ({"alpha": math.inf}, {"alpha": 4.0}, {"delta": 1e-6}), expected, strict=True
    ):
        for order in (both, both[::-1]):
            if notion is None:
                with refused(CompositionError, "compose.infinite_order_not_pure"):
                    compose(order, **asked)
                continue
            found = compose(order, **asked)
            assert found.notion == notion
            assert found.alpha == asked.get("alpha")
            assert found.delta == asked.get("delta", 0.0)
        if notion is not None:
            # about a record of whom something is believed it is under a prior
            known = [replace(c, record="a row of people") for c in both]
            believed = compose(known, **asked).notion
            assert believed == Notion.of(notion).pufferfish
    if expected[0] is not None:
        assert compose(both).notion == expected[0]
        assert compose(both).epsilon == pytest.approx(0.5)


ANYONE = replace(OTHER, coupling_id="replace:3")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"coupling_id": "replace:4"},
        {"coupling_id": "add_remove:6", "relation": "add_remove"},
    ],
)
def test_arbitrary_records_of_a_table_count_under_its_coupling(change):
    """If they are as many as the coupling changes, or more."""
    other = replace(ANYONE, **change)
    for order in ([ONE, other], [other, ONE]):
        found = compose(order)
        assert found.coupling_id == "of days" and found.relation == "replace"
        assert found.epsilon == pytest.approx(1.25)
        assert says(
            found.assumptions,
            "assume.counted_under_table_coupling",
            changed=3,
            table="days",
        )


@pytest.mark.parametrize(
    "one, other",
    [
        ({}, {"coupling_id": "replace:2"}),
        ({}, {"coupling_id": "add_remove:5", "relation": "add_remove"}),
        ({}, {"table": None}),
        ({}, {"table": "nights"}),
        ({"table": None}, {}),
        ({"table": None}, {"table": None}),
        ({"coupling_count": None}, {}),
        ({"coupling_id": None}, {}),
        ({"coupling_id": None}, {"coupling_id": None}),
    ],
)
def test_fewer_records_or_those_of_no_one_named_table_do_not(one, other):
    """Nor where nobody knows how many records the coupling changes."""
    parts = [replace(ONE, **one), replace(ANYONE, **other)]
    # nor beside others that do
    for held in (parts, [*parts, ANYONE]):
        for order in (held, held[::-1]):
            with refused(CompositionError, "compose.couplings_differ"):
                compose(order)


def test_columns_of_a_composition_are_those_of_its_table():
    """What other tables have says nothing of which releases may join later."""
    anyone = replace(ONE, coupling_id="replace:1", coupling_count=1)
    other = replace(anyone, table="nights", columns=("a", "b", "c", "d"))
    unread = replace(anyone, columns=None)
    for parts, columns in (
        ([anyone, other], ("a", "b")),
        ([other, anyone], ("a", "b", "c", "d")),
        ([unread, other], None),
        ([unread, anyone], ("a", "b")),
        ([anyone, unread], ("a", "b")),
    ):
        found = compose(parts)
        assert (found.table, found.columns) == (parts[0].table, columns)
    narrow = replace(anyone, columns=("a", "e"))
    for parts in ([anyone, narrow], [other, narrow, anyone]):
        with refused(CompositionError, "compose.table_columns_differ", name="days"):
            compose(parts)


def test_a_composition_whose_parts_rest_on_events():
    """Of which only the orders speak, as no delta was asked for."""
    parts = [
        replace(c, delta=d, event_delta=d, notion="approximate_renyi_pufferfish")
        for c, d in ((ONE, 1e-3), (OTHER, 2e-3))
    ]
    found = compose(parts)
    assert found.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert (found.epsilon, found.rpp_epsilon) == (pytest.approx(1.25), math.inf)
    assert found.delta == found.event_delta == pytest.approx(3e-3)
    approximate = compose(parts, delta=1e-2)
    both = GaussianCurve(math.sqrt(1.25))
    assert approximate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert approximate.epsilon == pytest.approx(both.epsilon(7e-3))


def test_blocks_side_by_side():
    said = (
        Statement("assume.blocks_disjoint_and_public"),
        Statement("assume.blocks_independent"),
        Statement("assume.secret_within_one_block"),
    )
    low = replace(OTHER, epsilon=0.1, rpp_epsilon=0.3, delta=1e-6, event_delta=1e-7)
    for parts in ([ONE, low], [low, ONE]):
        found = parallel(parts)
        names = [c.release for c in parts]
        assert_says(
            found,
            ONE,
            **OF_NONE,
            delta=1e-6,
            event_delta=1e-7,
            rpp_epsilon=0.3,
            confidence=0.97,
            curve=None,
            events=None,
            coupling_id=None,
            coupling_count=3,
            composable=False,
            assumptions=(*said, "of both", "of one", "of the other"),
            source=Statement("source.parallel_composition", sources=PAPERS),
            accountant="; ".join(c.accountant for c in parts),
            release=" | ".join(names),
            n_releases=5,
        )
    # of one curve that all share, and of as many records
    found = parallel([ONE, replace(ONE, coupling_count=2, record="x")])
    assert found.curve is CURVE and found.events == EVENTS
    assert found.coupling_count is None
    assert parallel([replace(ONE, record="x")] * 2).record is None
    # differential privacy fixes all other records
    found = parallel([replace(c, notion="renyi_dp") for c in (ONE, low)])
    assert said[0] in found.assumptions and said[2] in found.assumptions
    assert said[1] not in found.assumptions


def test_a_conversion_to_epsilon_and_delta():
    assert_says(
        ONE.to_approximate(1e-5),
        ONE,
        notion=Notion.APPROXIMATE_PUFFERFISH,
        epsilon=CURVE.epsilon(1e-5),
        alpha=None,
        delta=1e-5,
        epsilon_lower=None,
        rpp_epsilon=math.inf,
        noise_gain=None,
    )


def test_an_estimate():
    assert_says(
        ONE.as_estimate("seen"),
        ONE,
        notion=Notion.ESTIMATED,
        rpp_epsilon=math.inf,
        composable=False,
        assumptions=("of both", "of one", "seen"),
    )
    assert_says(
        ONE.assuming("more", "and more"),
        ONE,
        assumptions=("of both", "of one", "more", "and more"),
    )


@pytest.mark.parametrize(
    "asked, epsilon",
    [(0.2499999, 0.2499999), (0.2501, 0.2501), (0.24, 0.25), (0.3, 0.25)],
)
def test_a_budget_is_stated_as_asked_only_if_it_is_near(asked, epsilon):
    found = ONE.as_asked(asked)
    assert_says(found, ONE, epsilon=epsilon, rpp_epsilon=epsilon)
    # which is no statement about any other number
    apart = replace(ONE, rpp_epsilon=0.7).as_asked(asked)
    assert (apart.epsilon, apart.rpp_epsilon) == (epsilon, 0.7)


def test_copies():
    eventful = replace(ONE, delta=3e-6, event_delta=1e-6)
    (found,) = repeated(eventful, 3)
    assert_says(
        found,
        eventful,
        epsilon=0.75,
        delta=5e-6,
        event_delta=3e-6,
        confidence=0.97,
        curve=RepeatedCurve(CURVE, 3),
        release="one (x 3)",
        n_releases=6,
    )
    assert repeated(ONE, 1) == [ONE]
    assert repeated(replace(ONE, confidence=0.5), 3)[0].confidence == 0.0


def test_copies_of_a_bound_on_information():
    (found,) = repeated(INFORMATION, 3)
    assert_says(
        found,
        INFORMATION,
        mutual_information=0.6,
        confidence=0.97,
        worst_leakage=None,
        assumptions=("of both", "of one", NOT_ADAPTIVE),
        release="one (x 3)",
        n_releases=6,
    )
    # no more than there is to know of a table with a name, and of none without
    assert repeated(INFORMATION, 30)[0].mutual_information == 2.0
    anyone = replace(INFORMATION, table=None)
    assert repeated(anyone, 30)[0].mutual_information == pytest.approx(6.0)
    record = replace(
        INFORMATION, notion="record_mutual_information", table_information=0.5
    )
    (found,) = repeated(record, 3)
    assert found.mutual_information == pytest.approx(0.2 + 2 * 0.5)
    assert found.table_information == pytest.approx(1.5)
    unknown = replace(record, table_information=None)
    assert repeated(unknown, 2)[0].mutual_information == math.inf


def test_a_sum_of_information():
    other = replace(
        INFORMATION,
        mutual_information=0.3,
        confidence=0.98,
        assumptions=("of both", "of the other"),
        accountant="Other()",
        release="other",
        n_releases=1,
    )
    said = {
        "confidence": 0.97,
        "worst_leakage": None,
        "sensitivity": None,
        "record_sensitivity": None,
        "assumptions": ("of both", "of one", "of the other", NOT_ADAPTIVE),
        "accountant": "One() + Other()",
        "release": "one + other",
        "n_releases": 3,
    }
    assert_says(
        compose([INFORMATION, other]), INFORMATION, mutual_information=0.5, **said
    )
    records = [
        replace(c, notion="record_mutual_information", table_information=whole)
        for c, whole in ((INFORMATION, 0.7), (other, 0.4))
    ]
    # one of them tells of the record by itself, the other of the table
    least = min(0.2 + 0.4, 0.3 + 0.7)
    assert_says(
        mixed_information(records),
        records[0],
        mutual_information=least,
        table_information=1.1,
        **said,
    )
    # beside a bound about the whole table, which is one about each record
    assert_says(
        mixed_information([records[0], other]),
        records[0],
        mutual_information=min(0.2 + 0.3, 0.3 + 0.7),
        table_information=1.0,
        **said,
    )
    # about records it is, whichever comes first
    assert_says(
        mixed_information([INFORMATION, records[1]]),
        INFORMATION,
        notion=Notion.RECORD_MUTUAL_INFORMATION,
        mutual_information=min(0.2 + 0.4, 0.3 + 0.2),
        table_information=0.6,
        **said,
    )
    assert compose(9 * [INFORMATION]).mutual_information == pytest.approx(1.8)
    assert compose(11 * [INFORMATION]).mutual_information == 2.0


def test_a_sum_of_averages_over_subsamples():
    one, other = (
        replace(c, notion="sa_joint_sliced_renyi_pufferfish", curve=None, events=None)
        for c in (ONE, OTHER)
    )
    assert_says(
        compose([one, other]),
        one,
        **OF_NONE,
        epsilon=1.25,
        rpp_epsilon=math.inf,
        confidence=0.97,
        assumptions=("of both", "of one", "of the other"),
        source=Statement("source.fixed_batch_sums_averaged", source=PAPERS[0]),
        accountant="One() + Other()",
        release="one + other",
        n_releases=5,
    )
    # copies count one by one
    copies = compose([one, other], counts=[3, 2])
    assert copies.epsilon == pytest.approx(2.75) and copies.n_releases == 12


def test_another_belief():
    additive = GaussianNoise(2.0).curve(1.0)
    base = replace(ONE, curve=additive, composable=True)
    away = {
        "epsilon_lower": None,
        "coupling_id": None,
        "composable": False,
        "noise_gain": None,
        "events": None,
    }
    direct = base.under_prior_shift(0.25)
    wider = GaussianNoise(2.0).curve(1.5)
    assert_says(
        direct,
        base,
        **away,
        curve=wider,
        epsilon=wider.renyi(2.0),
        rpp_epsilon=wider.renyi(2.0),
        sensitivity=1.5,
        assumptions=direct.assumptions,
        source=Statement("source.close_prior_triangle_inequality", source=PAPERS[0]),
    )
    varied = base.under_prior_shift(method="variation", variation=0.01)
    assert_says(
        varied,
        base,
        **away,
        notion=Notion.APPROXIMATE_RENYI_PUFFERFISH,
        epsilon=additive.renyi(2.0),
        delta=0.02,
        event_delta=0.02,
        rpp_epsilon=math.inf,
        assumptions=varied.assumptions,
        source=Statement("source.close_prior_glued_couplings", source=PAPERS[0]),
    )
    orders = (3.0, 3.0, 3.0)
    general = base.under_prior_shift(method="a4", divergence=(0.1, 0.2), orders=orders)
    cost = (1 + 1 / 3) * additive.renyi(3 * (2 - 1 / 3)) + (1 + 2 / 3) * 0.1 + 0.2
    alone = {"sensitivity": None, "norm": None, "record_sensitivity": None}
    assert_says(
        general,
        base,
        **away,
        **alone,
        epsilon=cost,
        rpp_epsilon=cost,
        curve=RenyiCurve((2.0,), (general.epsilon,)),
        assumptions=general.assumptions,
        source=Statement(
            "source.close_prior",
            source=PAPERS[0],
            theorem=Statement("source.close_prior_renyi_theorem"),
        ),
    )
    for found in (direct, varied, general):
        assert found.assumptions[:2] == (stated("of both"), stated("of one"))
        assert len(found.assumptions) == 3


def test_releases_under_one_belief():
    """What it leaves to hide amplifies all of them together, once."""
    found = compose([BELIEVED, replace(BELIEVED, release="again", n_releases=1)])
    both = OverlapCurve(GaussianCurve(math.sqrt(0.5)), OVERLAP)
    assert_says(
        found,
        BELIEVED,
        **OF_NONE,
        epsilon=both.epsilon(1e-5),
        confidence=0.98,
        curve=both,
        source=Statement(
            "source.amplified_after_composition",
            source=Statement("source.coupling_composition", sources=PAPERS[:1]),
        ),
        choice=stated("one of two"),
        release="one + again",
        n_releases=3,
    )
    assert found.epsilon < found.fallback


@pytest.mark.parametrize("known", ["a row of people", None])
def test_copies_under_one_belief_are_amplified_together_and_not_one_by_one(known):
    """Or, if nobody knows which record it is about, count at what holds for all."""
    c = replace(BELIEVED, record=known)
    for count in (2, 3):
        counted = compose([c], counts=[count])
        assert counted == compose(count * [c])
        plain = GaussianCurve(math.sqrt(count) * 0.5)
        curve = OverlapCurve(plain, OVERLAP) if known else plain
        assert counted.epsilon == pytest.approx(curve.epsilon(1e-5), rel=1e-9)


@pytest.mark.parametrize("together", [True, False])
def test_what_holds_for_everyone_holds_outside_of_the_event(together):
    event = replace(BELIEVED, event_delta=6e-6)
    found = _without_belief(event, together)
    assert found.epsilon == pytest.approx(CURVE.epsilon(4e-6), rel=1e-12)
    assert (found.delta, found.event_delta) == (1e-5, 6e-6)
    assert found.curve == CURVE


@pytest.mark.parametrize(
    "change, asked",
    [
        ({"record": "a row of others"}, {}),
        ({"table": "nights"}, {}),
        ({"curve": CURVE, "record": None}, {}),
        # of that record as well, but of whom nothing is believed in it
        ({"curve": CURVE}, {}),
        ({}, {"alpha": 2.0}),
    ],
)
def test_releases_under_no_one_belief_count_at_what_holds_for_everyone(change, asked):
    other = replace(BELIEVED, **change)
    if "curve" in change:
        other = replace(other, notion="approximate_dp", assumptions=("plain",))
    found = compose([BELIEVED, other], **asked)
    curve = GaussianCurve(math.sqrt(0.5))
    expected = curve.renyi(2.0) if asked else curve.epsilon(1e-5)
    assert found.epsilon == pytest.approx(expected)
    assert found.notion is (Notion.RENYI_DP if asked else Notion.APPROXIMATE_DP)
    assert found.curve.gaussian_mu == pytest.approx(curve.mu)
    assert (found.record, found.fallback) == (None, None)
    assert OF_BELIEVERS not in found.assumptions
    assert says(
        found.assumptions,
        "assume.release_counts_at_fallback",
        release="one",
        plain_privacy="RecordScenario(relation='replace')",
    )
    assert "source.amplified_after_composition" not in codes_of(found.source)
    # a belief that may not hold is none that this rests on
    plain = "curve" in change
    assert found.confidence == pytest.approx(0.99 if plain else 1.0)


def test_a_belief_about_a_table_without_a_name_amplifies_nothing():
    for change in ({"table": None, "n_records": None}, {"record": None}):
        parts = 2 * [replace(BELIEVED, **change)]
        found = compose(parts)
        assert found.notion is Notion.APPROXIMATE_DP
        assert found.epsilon == pytest.approx(
            GaussianCurve(math.sqrt(0.5)).epsilon(1e-5)
        )


def test_events_are_those_of_what_is_left_of_a_curve():
    """A curve that lists them itself needs no other list."""
    listed = replace(ONE, curve=PrivacyLossCurve(EVENTS), events=None)
    assert compose([listed, listed]).events is None
    assert compose([listed, listed]).curve.steps == ((EVENTS[0][0], 4),)
