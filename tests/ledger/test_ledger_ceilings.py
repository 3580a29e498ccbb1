"""What fits under a ceiling is what the composition of the certificates says."""

import math
from dataclasses import replace
from functools import cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.distributions import PointMass
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    LedgerError,
    NotComposableError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.ledger._book import _ORDERS, Book
from skpuffer.ledger._ceilings import read_limits
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.privacy import Certificate, Notion, compose, mixed_information
from skpuffer.privacy_loss import GaussianCurve, renyi_to_approximate
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, RecordScenario
from skpuffer.training import Training
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

RELEASE = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=100,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 0.01, 2: 0.01}, replace={1: 0.02, 2: 0.02}),
)


@cache
def certificate(name):
    """A certificate of each kind of curve that composes in a way of its own."""
    if name == "sgd":
        rng = np.random.default_rng(0)
        X = rng.uniform(-0.5, 0.5, (200, 2))
        model = PrivateSGDClassifier(
            accountant=PrivacyLoss(0.5, 1e-5), training=Training(batch_size=20)
        )
        return model.fit(X, X[:, 0] > 0).certificate_
    accountant, scenario = {
        "gaussian": (PrivacyLoss(0.5, 1e-5), RecordScenario()),
        "smaller": (PrivacyLoss(0.2, 1e-6), RecordScenario()),
        "laplace": (
            GroupPrivacy(0.25, alpha=math.inf, noise="laplace"),
            RecordScenario(),
        ),
        "renyi": (GroupPrivacy(0.1, alpha=4.0), RecordScenario()),
        "replace": (
            GroupPrivacy(0.1, alpha=4.0),
            RecordScenario(relation="replace"),
        ),
        "wasserstein": (
            GeneralWasserstein(0.25, alpha=4.0),
            LawsScenario([(PointMass(0.0), PointMass(1.0))]),
        ),
    }[name]
    return accountant.calibrate(RELEASE, scenario).certificate


ADDING = ("gaussian", "smaller", "laplace", "renyi", "sgd")


def information(nats, **fields):
    return Certificate(
        notion="mutual_information",
        mutual_information=nats,
        composable=True,
        **fields,
    )


def of_table(name, mu=1.0):
    """A Pufferfish promise under the coupling of a named table."""
    return Certificate(
        notion="renyi_pufferfish",
        epsilon=mu**2,
        alpha=2.0,
        curve=GaussianCurve(mu),
        coupling_id=f"of {name}",
        composable=True,
        table=name,
        n_records=10,
    )


def ledger(**limits):
    return PrivacyLedger(":memory:", limits)


def entered(ledger, certificates):
    """How many of some certificates are entered until one is refused."""
    for number, each in enumerate(certificates):
        try:
            ledger.enter(each)
        except BudgetExceededError:
            return number
    return len(certificates)


@given(
    st.lists(st.sampled_from(ADDING), min_size=1, max_size=9),
    st.sampled_from(
        [
            ("approximate_dp", (0.7, 1e-5)),
            ("approximate_dp", (1.6, 1e-5)),
            ("approximate_dp", (1.3, 1e-8)),
            ("renyi_dp", (0.3, 4.0)),
            ("renyi_dp", (0.2, 2.5)),
        ]
    ),
)
def test_accepted_is_what_composes_below_the_ceiling(names, limit):
    notion, (most, parameter) = limit
    at = {"delta" if notion == "approximate_dp" else "alpha": parameter}
    own, kept = PrivacyLedger(":memory:", {notion: (most, parameter)}), []
    for name in names:
        both = [*kept, certificate(name)]
        fits = compose(both, **at).epsilon <= most * (1 + 1e-6)
        try:
            own.enter(certificate(name))
            entered = True
        except BudgetExceededError:
            entered = False
        assert entered == fits
        kept = both if fits else kept
    if len(kept) > 1:
        assert own.total().epsilon == pytest.approx(compose(kept, **at).epsilon)
    assert own.total() is None or own.total().epsilon <= most * (1 + 1e-6)
    assert len(own.report()) == len(kept)


@pytest.mark.parametrize("name", ADDING)
def test_how_many_more_fit_is_said_and_kept(name):
    own = ledger(approximate_dp=(2.0, 1e-5))
    fits = own.remaining(certificate(name))
    assert fits > 1
    assert entered(own, (fits + 3) * [certificate(name)]) == fits
    assert own.remaining(certificate(name)) == 0
    assert compose([certificate(name)], counts=[fits], delta=1e-5).epsilon <= 2.0
    more = compose([certificate(name)], counts=[fits + 1], delta=1e-5)
    assert more.epsilon > 2.0
    left = own.remaining()["approximate_dp"]
    assert left == pytest.approx(2.0 - own.total().epsilon)


def test_far_from_the_ceiling_nothing_is_composed(monkeypatch):
    composed = []
    total = Book._composed

    def counted(self, counts):
        composed.append(sum(counts.values()))
        return total(self, counts)

    monkeypatch.setattr(Book, "_composed", counted)
    far = ledger(approximate_dp=(50.0, 1e-5))
    for _ in range(100):
        far.enter(certificate("sgd"))
    assert not composed
    # up to what Rényi costs prove, which is all of them together
    alone = 100 * np.array(certificate("sgd").curve.renyi_costs(_ORDERS))
    proved = PrivacyLedger(
        ":memory:",
        {"approximate_dp": (renyi_to_approximate(_ORDERS, alone, 1e-5), 1e-5)},
    )
    proved.enter(certificate("sgd"), count=60)
    for _ in range(40):
        proved.enter(certificate("sgd"))
    assert not composed
    # near it a few compositions tell of many releases
    near = compose([certificate("sgd")], counts=[100], delta=1e-5).epsilon
    own = ledger(approximate_dp=(near, 1e-5))
    assert entered(own, 120 * [certificate("sgd")]) == 100
    assert len(composed) < 40


@pytest.mark.parametrize(
    "notion, limit, name, count",
    [
        ("pure_dp", 1.0, "laplace", 4),
        ("pure_dp", 0.99, "laplace", 3),
        ("renyi_dp", (0.4, 4.0), "renyi", 4),
        ("renyi_dp", (0.39, 4.0), "renyi", 3),
        ("renyi_pufferfish", (0.3, 4.0), "replace", 3),
    ],
)
def test_budgets_that_add_up_are_counted_out(notion, limit, name, count):
    own = PrivacyLedger(":memory:", {notion: limit})
    assert entered(own, 9 * [certificate(name)]) == count


def test_bounds_on_information_add_up():
    own = ledger(mutual_information=0.5)
    assert entered(own, 9 * [information(0.125)]) == 4
    assert own.total().mutual_information == 0.5
    known = ledger(mutual_information=0.5)
    # of one table no more is to be known than its entropy
    assert entered(known, 9 * [information(0.125, table="t", entropy=0.4)]) == 9
    one = Certificate(
        notion="record_mutual_information",
        mutual_information=0.05,
        table_information=0.2,
    )
    records = ledger(record_mutual_information=0.65)
    assert entered(records, 9 * [one]) == 4
    assert records.total() == replace(
        mixed_information(4 * [one]), release=records.total().release
    )


def test_a_ceiling_is_passed_by_rounding_and_by_no_more():
    """A millionth is how far a certificate may be above its own budget."""
    most = 0.25
    ledger(mutual_information=most).enter(information(most * (1 + 0.9e-6)))
    with pytest.raises(BudgetExceededError):
        ledger(mutual_information=most).enter(information(most * (1 + 1.1e-6)))


def test_averages_over_subsamples_add_up_at_their_order():
    average = Certificate(
        notion="sa_joint_sliced_renyi_pufferfish",
        epsilon=0.25,
        alpha=4.0,
        coupling_id="of slices",
        composable=True,
    )
    own = ledger(sa_averaged_sliced_renyi_pufferfish=(1.0, 4.0))
    assert entered(own, 9 * [average]) == 4
    assert own.total().epsilon == 1.0
    # what is promised at a higher order than asked is added up at that
    below = ledger(sa_averaged_sliced_renyi_pufferfish=(1.0, 3.0))
    assert entered(below, 9 * [average]) == 4
    assert below.total().alpha == 4.0
    # of a lower order than asked nothing follows
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        ledger(sa_joint_sliced_renyi_pufferfish=(1.0, 5.0)).enter(average)


def test_what_promises_the_notion_of_no_ceiling_is_refused():
    own = ledger(pure_dp=1.0)
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        own.enter(certificate("gaussian"))
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        ledger(approximate_dp=(1.0, 1e-5)).enter(information(0.1))
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        ledger(approximate_dp=(9.0, 1e-5)).enter(of_table("a"))


def test_each_ceiling_is_of_what_promises_its_notion():
    own = ledger(approximate_dp=(2.0, 1e-5), mutual_information=0.3, pure_dp=0.25)
    own.enter(certificate("gaussian"))
    own.enter(information(0.2))
    own.enter(certificate("laplace"))
    totals = own.totals().set_index("notion")
    assert totals["releases"].to_dict() == {
        "approximate_dp": 2,
        "mutual_information": 1,
        "pure_dp": 1,
    }
    assert totals["not_counted"].to_dict() == {
        "approximate_dp": 1,
        "mutual_information": 2,
        "pure_dp": 2,
    }
    with refused(BudgetExceededError, "ledger.ceiling_exceeded"):
        own.enter(certificate("laplace"))
    with refused(ValueError, "ledger.notion_not_of_ceiling"):
        own.total()
    with refused(ValueError, "ledger.notion_not_of_ceiling"):
        own.total("renyi_dp")
    for name in own.limits:
        assert own.total(name).notion == own.total(Notion.of(name)).notion == name


def test_of_one_ceiling_the_total_needs_no_name_and_of_others_there_is_none():
    alone = ledger(approximate_dp=(2.0, 1e-5))
    alone.enter(certificate("gaussian"))
    assert alone.total() == alone.total("approximate_dp") == certificate("gaussian")
    for other in ("renyi_dp", Notion.APPROXIMATE_PUFFERFISH):
        with refused(
            ValueError, "ledger.notion_not_of_ceiling", known="'approximate_dp'"
        ):
            alone.total(other)


@pytest.mark.parametrize("notion", ["renyi_dp", "renyi_pufferfish"])
def test_of_what_states_no_order_nothing_is_known_at_one(notion):
    own = ledger(**{notion: (9.0, 2.0)})
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        own.enter(Certificate(notion=notion, epsilon=1.0))
    # nor of what fails with some probability, at any
    with refused(NotComposableError, "ledger.release_notion_without_ceiling"):
        own.enter(Certificate(notion=notion, epsilon=1.0, alpha=math.inf, delta=1e-9))
    own.enter(Certificate(notion=notion, epsilon=1.0, alpha=2.0))


def test_what_adds_up_with_nothing_is_entered_alone():
    own = ledger(renyi_pufferfish=(1.0, 4.0))
    own.enter(certificate("wasserstein"))
    assert own.total() == certificate("wasserstein")
    for other in ("wasserstein", "replace"):
        with refused(NotComposableError, "ledger.release_does_not_add_up", before=1):
            own.enter(certificate(other))
    behind = ledger(renyi_pufferfish=(1.0, 4.0))
    behind.enter(certificate("replace"))
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        behind.enter(certificate("wasserstein"))
    assert len(behind.report()) == 1
    assert behind.remaining(certificate("wasserstein")) == 0


@pytest.mark.parametrize("name", ["wasserstein", "renyi"])
def test_at_another_order_the_curve_is_read(name):
    notion = "renyi_dp" if name == "renyi" else "renyi_pufferfish"
    own = PrivacyLedger(":memory:", {notion: (1.0, 6.0)})
    own.enter(certificate(name))
    total = own.total()
    assert total.alpha == 6.0
    assert total.epsilon == pytest.approx(certificate(name).curve.renyi(6.0))
    # what is promised at a higher order is at a lower one
    lower = PrivacyLedger(":memory:", {notion: (1.0, 3.0)})
    lower.enter(certificate(name))
    assert lower.total() == certificate(name)


def test_named_tables_are_apart_and_what_names_none_counts_for_all():
    own = ledger(renyi_pufferfish=(2.0, 2.0))
    for name in ("a", "b"):
        assert entered(own, 3 * [of_table(name)]) == 2
    assert own.total(table="a").n_releases == 2
    assert own.total().epsilon == pytest.approx(2.0)
    tables = own.totals()["table"]
    assert set(tables.dropna()) == {"a", "b"} and tables.isna().sum() == 1
    # by another coupling, of anybody: who knows that a table is not the same
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        own.enter(certificate("replace"))
    own = ledger(renyi_pufferfish=(2.0, 2.0))
    own.enter(certificate("replace"))
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        own.enter(of_table("a"))
    # a table that changed its size under its name
    own = ledger(renyi_pufferfish=(9.0, 2.0))
    own.enter(of_table("a"))
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        own.enter(replace(of_table("a"), n_records=9))


def test_a_ceiling_without_end_counts():
    own = ledger(approximate_dp=(math.inf, 1e-5))
    assert entered(own, 30 * [certificate("gaussian")]) == 30
    expected = compose([certificate("gaussian")], counts=[30], delta=1e-5)
    assert own.total().epsilon == expected.epsilon
    assert own.remaining() == {"approximate_dp": math.inf}
    assert "∞" in str(own)
    endless = ledger(mutual_information=math.inf)
    assert endless.remaining(information(1e-3)) == 2**20


def test_a_mass_outside_of_events_is_paid_for_out_of_delta():
    eventful = replace(
        certificate("replace"),
        notion=Notion.APPROXIMATE_RENYI_PUFFERFISH,
        delta=3e-6,
        event_delta=3e-6,
    )
    own = ledger(approximate_pufferfish=(50.0, 1e-5))
    own.enter(eventful, count=3)
    # four times 3e-6 is above delta, whatever the noise
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        own.enter(eventful)
    assert own.total().event_delta == pytest.approx(9e-6)
    # and all at once no less
    with refused(NotComposableError, "ledger.release_does_not_add_up"):
        ledger(approximate_pufferfish=(50.0, 1e-5)).enter(eventful, count=4)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        None,
        3.0,
        {"dp": (1.0, 1e-5)},
        {"estimated": 1.0},
        {"renyi_pufferfish": 1.0},
        {"approximate_dp": 1.0},
        {"approximate_dp": (1.0, 1e-5, 2.0)},
        {"approximate_dp": (0.0, 1e-5)},
        {"approximate_dp": (1.0, 0.0)},
        {"approximate_dp": (math.nan, 1e-5)},
        {"renyi_dp": (1.0, math.inf)},
        {"renyi_dp": (1.0, 0.5)},
        {"pure_dp": "much"},
        {"joint_sliced_renyi_pufferfish": (1.0, 2.0)},
    ],
)
def test_ceilings_that_are_none_are_refused(limits):
    with pytest.raises((LedgerError, ValueError, TypeError), match="'limits'"):
        PrivacyLedger(":memory:", limits)


def test_ceilings_are_read_back_as_they_are_given(tmp_path):
    limits = {
        Notion.APPROXIMATE_DP: (math.inf, 1e-5),
        "renyi_dp": [1, 2],
        "mutual_information": 0.5,
    }
    path = tmp_path / "limits.db"
    PrivacyLedger(path, limits)
    again = PrivacyLedger(path)
    assert again.limits == {
        "approximate_dp": (math.inf, 1e-5),
        "renyi_dp": (1.0, 2.0),
        "mutual_information": 0.5,
    }
    PrivacyLedger(path, limits)
    with refused(LedgerError, "ledger.limits_differ_from_stored"):
        PrivacyLedger(path, {"mutual_information": 0.5})
    assert [c.notion for c in read_limits(limits)] == list(again.limits)


def test_ceilings_can_be_changed_for_all_who_use_the_file(tmp_path):
    path = tmp_path / "limits.db"
    one = PrivacyLedger(path, {"approximate_dp": (0.6, 1e-5)})
    other = PrivacyLedger(path)
    one.enter(certificate("gaussian"))
    with pytest.raises(BudgetExceededError):
        other.enter(certificate("gaussian"))
    one.set_limits({"approximate_dp": (2.0, 1e-5)})
    other.enter(certificate("gaussian"))
    one.set_limits({"approximate_dp": (0.1, 1e-5)})
    assert other.remaining() == {"approximate_dp": 0.0}
    with pytest.raises(BudgetExceededError):
        other.enter(certificate("smaller"))


def test_a_ceiling_counts_all_releases_before_it(tmp_path):
    path, c = tmp_path / "limits.db", certificate("gaussian")
    one = PrivacyLedger(path, {"approximate_dp": (50.0, 1e-5)})
    one.enter(c, count=5)
    one.set_limits({"approximate_dp": (40.0, 1e-5), "renyi_dp": (40.0, 2.0)})
    for own in (one, PrivacyLedger(path)):
        for notion, at in (
            ("approximate_dp", {"delta": 1e-5}),
            ("renyi_dp", {"alpha": 2.0}),
        ):
            expected = compose([c], counts=[5], **at).epsilon
            assert own.total(notion).epsilon == pytest.approx(expected)
            assert own.remaining()[notion] == pytest.approx(40.0 - expected)


@pytest.mark.parametrize("name", [*ADDING, "replace"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_copies_are_composed_as_one_by_one(name, count):
    """`compose` with counts, of which the ledger makes its totals."""
    c, other = certificate(name), certificate("sgd")
    for together in ([c], [c, other] if name != "replace" else [c, c]):
        rest = together[1:]
        for at in ({"delta": 1e-6}, {"alpha": 3.0}):
            counted = compose(together, **at, counts=[count, *([1] * len(rest))])
            each = compose([*(count * [c]), *rest], **at)
            assert counted.epsilon == pytest.approx(each.epsilon, rel=1e-12)
            assert counted.n_releases == each.n_releases
            assert counted.notion == each.notion
            assert set(counted.assumptions) == set(each.assumptions)


def test_counts_must_be_of_releases():
    for counts in ([1, 2], [0], [1.5], ["one"]):
        with refused(
            (ValueError, TypeError),
            (
                "compose.counts_mismatch",
                "parameter.count_too_small",
                "parameter.not_real_number",
            ),
        ):
            compose([certificate("gaussian")], counts=counts)
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose([certificate("wasserstein")], counts=[2])
    c = information(0.125)
    assert compose([c], counts=[4]).mutual_information == 0.5
