"""Adding budgets: only inside one coupling of the two worlds."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import clone

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.distributions import Discrete
from skpuffer.exceptions import CompositionError, stated
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy import Certificate, Notion, compose
from skpuffer.privacy_loss import renyi_to_approximate
from skpuffer.releases import (
    GradientRelease,
    PublicContext,
    QueryRelease,
    Sensitivity,
)
from skpuffer.scenarios import (
    AttributeScenario,
    DiffusionScenario,
    GaussianScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_accountants.json").read_text("utf-8")
)["composition"]


def identity(X, y):
    return np.asarray(X, dtype=float)


def cubed(X, y):
    return np.asarray(X, dtype=float) ** 3


def mean_of(names=None, contribution=identity, **options):
    context = PublicContext(
        n_records=4, feature_names=names, n_features=None if names is None else 1
    )
    return QueryRelease(
        contribution=contribution,
        is_sum=True,
        factor=0.25,
        n_records=4,
        dim=1,
        context=context,
        **options,
    )


def bits():
    """A fair coin U beside the secret s, and s*U, just as fair: each alone is empty."""
    return pd.DataFrame(
        {"s": [-1, -1, 1, 1], "u": [-1.0, 1, -1, 1], "su": [1.0, -1, -1, 1]}
    )


def scenario(prior, **options):
    options = {"level": "record", "prior_as": "law", "table": "visits"} | options
    return AttributeScenario("s", prior=prior, **options)


def group(release, scenario, **options):
    # of one number, mu, by which sums are known
    options = {"epsilon": 1.0, "alpha": 2.0, "noise": "gaussian"} | options
    return GroupPrivacy(**options).calibrate(release, scenario).certificate


def known(value=0.1):
    return QueryRelease(
        query=lambda X, y: X,
        n_records=4,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: value, 2: value}),
    )


# -- what may not be added up ----------------------------------------------------------


def joint_divergence(alpha):
    """Rényi divergence between (U, U) and (U, -U), plus Laplace(1) noise on each."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    edges = np.array([-41.0, -6, -1, 1, 6, 41])
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    y = (middle[:, None] + half[:, None] * nodes).ravel()
    w = (half[:, None] * weights).ravel()
    plus, minus = np.exp(-np.abs(y - 1)) / 2, np.exp(-np.abs(y + 1)) / 2
    p = (np.outer(plus, plus) + np.outer(minus, minus)) / 2
    q = (np.outer(plus, minus) + np.outer(minus, plus)) / 2
    return math.log(w @ (p**alpha * q ** (1 - alpha)) @ w) / (alpha - 1)


@pytest.mark.parametrize("alpha", [2, 8])
def test_two_releases_without_loss_leak_together(alpha):
    """Each coin alone has one law in both worlds; both together give the secret."""
    alone = LawsScenario([(Discrete([-1, 1]), Discrete([-1, 1]))])
    accountant = GeneralWasserstein(alpha=alpha, noise="laplace")
    one = accountant.certify(LaplaceNoise(1.0), known(), alone)
    assert one.epsilon == 0.0
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose([one, one])

    leaked = joint_divergence(alpha)
    assert leaked == pytest.approx(ORACLE["joint"][str(alpha)], abs=1e-5)
    both = LawsScenario([(Discrete([[1, -1], [-1, 1]]), Discrete([[1, 1], [-1, -1]]))])
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=2)
    stacked = accountant.certify(LaplaceNoise(1.0), release, both)
    assert stacked.sensitivity == ORACLE["distance"]
    assert stacked.epsilon == pytest.approx(
        ORACLE["stacked"][str(alpha)], abs=ORACLE["stacked_tolerance"]
    )
    assert 0.5 < leaked < stacked.epsilon


def test_group_privacy_does_not_hide_the_same_leak_in_one_scenario():
    one = group(mean_of(("u",)), scenario(bits()))
    other = group(mean_of(("su",)), scenario(bits()))
    assert one.sensitivity == other.sensitivity == 0.0
    with refused(CompositionError, "compose.couplings_differ"):
        compose([one, other])


def test_group_privacy_does_not_hide_the_same_leak_behind_equal_numbers():
    """Two priors with the same numbers under other names are two couplings."""
    rows = bits()
    first = rows[["s", "u"]]
    second = rows[["s", "su"]].sort_values(["s", "su"])
    assert np.array_equal(first.to_numpy(), second.to_numpy())
    for names in ((None, None), (("u",), ("su",))):
        one = group(mean_of(names[0]), scenario(first))
        other = group(mean_of(names[1]), scenario(second))
        with refused(
            CompositionError,
            ("compose.certificate_not_composable", "compose.couplings_differ"),
        ):
            compose([one, other])


@pytest.mark.filterwarnings("ignore:PrivateMean is released exactly")
@pytest.mark.parametrize("tables", [(None, None), ("spring", "autumn")])
def test_two_tables_about_the_same_people_are_not_added_up(tables):
    """U at one visit, sU at the next: each tells nothing, their product is s."""
    prior = bits()[["s", "u"]].rename(columns={"u": "x"})
    rng = np.random.default_rng(0)
    for _ in range(20):
        s, u = rng.choice([-1.0, 1.0], size=2)
        visits = [
            PrivateMean(
                scenario(prior, table=table),
                GroupPrivacy(epsilon=1.0, alpha=2.0),
                bounds=(-1, 1),
            ).fit(pd.DataFrame({"x": [value]}))
            for value, table in zip((u, s * u), tables, strict=True)
        ]
        assert visits[0].mean_ * visits[1].mean_ == s  # given away
        parts = [visit.certificate_ for visit in visits]
        assert [part.epsilon for part in parts] == [0.0, 0.0]
        with pytest.raises(CompositionError):
            compose(parts)


def moving(n, names, table=None):
    """A mean whose records all say how far they move, under one coupling."""
    X = pd.DataFrame(np.zeros((n, 1)), columns=names)
    moved = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 2.0, 1.0, 3.0]})
    scenarios = (
        scenario(moved, table=table),
        GaussianScenario(
            covariance=np.eye(n) + 1,
            covariance_of="records",
            domain=(0, 1),
            columns=names,
            table=table,
        ),
        DiffusionScenario(1.0, range(n), 1.0, table=table),
    )
    accountant = GroupPrivacy(epsilon=0.5, alpha=2.0)
    for each in scenarios:
        model = PrivateMean(each, accountant, bounds=(-3, 3))
        yield model.fit(X).certificate_


def test_releases_of_one_named_table_add_up():
    for one in moving(8, ["u"], "visits"):
        other = replace(one, epsilon=0.25)
        assert "8 records of 'visits'" in one.coupling_id
        total = compose([one, other])
        assert total.n_releases == 2
        said = [a for a in total.assumptions if a.code == "assume.same_table_by_name"]
        assert [one.parameters["table"] for one in said] == ["visits"]


def test_windows_of_a_chain_need_the_name_of_their_table():
    context = PublicContext(n_records=400, feature_names=("u",), n_features=1)
    release = replace(known(), n_records=400, context=context)
    chain = MarkovChainScenario([[0.5, 0.5], [0.5, 0.5]])
    accountant = GroupPrivacy(epsilon=0.5, alpha=2.0)
    apart = accountant.calibrate(release, chain).certificate
    assert apart.delta == 0 and not apart.composable
    chain.set_params(table="visits")
    one = accountant.calibrate(release, chain).certificate
    assert compose([one, one]).epsilon == pytest.approx(1.0)
    assert says(one.assumptions, "assume.same_table_by_name", table="visits")


def test_one_name_and_two_sizes_are_two_tables():
    pairs = zip(moving(8, ["u"], "visits"), moving(9, ["u"], "visits"), strict=True)
    for one, other in pairs:
        assert one.composable and other.composable
        with refused(CompositionError, "compose.table_sizes_differ"):
            compose([one, other])


def test_no_name_is_no_table():
    for one in moving(8, ["u"]):
        assert one.coupling_id is None and not one.composable
        with refused(CompositionError, "compose.certificate_not_composable"):
            compose([one, one])
        assert not says(one.assumptions, "assume.same_table_by_name")


def test_arbitrary_neighbours_need_no_name_of_a_table():
    """What holds for any two tables holds for any two of them."""
    accountant = GroupPrivacy(epsilon=0.5, alpha=2.0)
    parts = [
        PrivateMean(accountant=accountant, bounds=(-1, 1))
        .fit(pd.DataFrame(np.zeros((n, 1)), columns=[name]))
        .certificate_
        for n, name in ((8, "u"), (9, "su"))
    ]
    assert compose(parts).epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("table", ["", "  ", 3, ("a",), b"a"])
@pytest.mark.parametrize(
    "scenario",
    [
        AttributeScenario("s", level="record", prior=bits()),
        GaussianScenario(covariance=np.eye(2), secret=0, domain=(0, 1)),
        DiffusionScenario(1.0, (1,), 1.0),
        MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]),
    ],
    ids=lambda scenario: type(scenario).__name__,
)
def test_names_of_tables(scenario, table):
    scenario = clone(scenario).set_params(table="visits")
    scenario.check()
    assert clone(scenario).get_params()["table"] == "visits"
    assert "table='visits'" in repr(scenario)
    with refused(ValueError, "parameter.name_not_text", name="table"):
        scenario.set_params(table=table).check()


def test_columns_without_names_are_no_coupling():
    prior = bits()[["s", "u"]].to_numpy()
    unnamed = AttributeScenario(
        0, level="record", prior=prior, prior_as="law", table="visits"
    )
    certificate = group(mean_of(), unnamed)
    assert not certificate.composable
    assert certificate.coupling_id is None
    with pytest.raises(CompositionError):
        compose([certificate, certificate])


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": [(-1, 1)]},
        {"level": "dataset"},
        {"prior_as": "support"},
        {"prior": bits().assign(s=[2, 2, 1, 1])},
        {"prior": [bits(), bits().iloc[:3]]},
    ],
    ids=["pairs", "level", "prior_as", "values of the secret", "priors"],
)
def test_another_scenario_is_another_coupling(change):
    prior = bits()
    prior["s"] = [-1, -1, 1, 0]
    base = {"prior": prior}
    if change.keys() & {"prior"}:
        base = {"prior": bits()}
    first = group(mean_of(("u",)), scenario(**base))
    second = group(mean_of(("u",)), scenario(**(base | change)))
    assert first.composable and second.composable
    with refused(CompositionError, "compose.couplings_differ"):
        compose([first, second])


def test_another_map_or_norm_is_another_coupling():
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 2.0, 1.0, 3.0]})
    base = group(mean_of(("u",)), scenario(rows))
    for other in (
        group(mean_of(("u",), contribution=cubed), scenario(rows)),
        group(mean_of(("u",)), scenario(rows), noise="laplace"),
    ):
        assert other.composable
        with refused(CompositionError, "compose.couplings_differ"):
            compose([base, other])


def test_a_promise_about_more_records_counts_for_fewer():
    one, two, three = (group(known(), RecordScenario(k=k)) for k in (1, 2, 3))
    for parts, left in (([two, one], one), ([three, two], two), ([one, three], one)):
        total = compose(parts)
        assert (total.coupling_id, total.relation) == (left.coupling_id, "add_remove")
        # what was promised for more records is promised for fewer at the same price
        expected = sum(part.curve.renyi(total.alpha) for part in parts)
        assert total.epsilon == pytest.approx(expected)
    replaced = group(known(), RecordScenario(relation="replace"))
    # one replaced record is one that goes and one that comes
    total = compose([two, replaced])
    assert (total.coupling_id, total.relation) == ("replace:1", "replace")
    assert compose([replaced, three]).coupling_id == "replace:1"
    # and every one of them is paid for, in whatever order they come
    apart = replace(replaced, release="apart")
    for parts in ([two, replaced], [replaced, two], [two, apart, replaced, three]):
        total = compose(parts)
        costs = [part.curve.renyi(total.alpha) for part in parts]
        assert total.epsilon == pytest.approx(sum(costs))
        assert total.n_releases == len(parts)
        assert (total.coupling_id, total.coupling_count) == ("replace:1", 1)
        assert total.relation == "replace"
    with refused(CompositionError, "compose.couplings_differ"):
        compose([one, replaced])


def test_a_scaler_and_a_model_of_one_named_table_add_up():
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 2.0, 1.0, 3.0]})
    mine = group(mean_of(("u",)), scenario(rows))
    assert mine.coupling_count == 1 and mine.table is not None
    # of any neighbouring tables, as a training run is: one record replaced, two, or two
    # that come or go
    for other in (
        RecordScenario(relation="replace"),
        RecordScenario(relation="replace", k=2),
        RecordScenario(k=2),
    ):
        of_any = replace(group(known(), other), table=mine.table)
        total = compose([of_any, mine])
        assert total.coupling_id == mine.coupling_id
        assert total.notion is Notion.RENYI_PUFFERFISH
        alpha = total.alpha
        expected = of_any.curve.renyi(alpha) + mine.curve.renyi(alpha)
        assert total.epsilon == pytest.approx(expected)
        assert says(total.assumptions, "assume.counted_under_table_coupling")
    for other in (
        replace(group(known(), RecordScenario()), table=mine.table),
        # a table without a name may be another one
        group(known(), RecordScenario(relation="replace")),
        replace(
            group(known(), RecordScenario(relation="replace")),
            table=mine.table,
            coupling_id=None,
        ),
    ):
        with pytest.raises(CompositionError, match="different couplings"):
            compose([mine, other])
    # how many records it changes is not known
    vague = replace(mine, coupling_count=None)
    with pytest.raises(CompositionError, match="different couplings"):
        compose([vague, replace(of_any, coupling_id="replace:3", relation="replace")])


def test_one_name_is_one_table():
    certificate = replace(group(known(), RecordScenario()), table="census")
    with refused(CompositionError, "compose.table_sizes_differ", sizes=4, n=5):
        compose([certificate, replace(certificate, n_records=5)])
    # a table may be read in part, and its columns come in any order
    parts = [("b", "a", "c"), ("a", "b"), None, ("c",)]
    known_columns = [replace(certificate, columns=part) for part in parts]
    both = compose(known_columns)
    assert both.columns == ("b", "a", "c")
    strange = replace(certificate, columns=("a", "d"))
    for mine in (known_columns[0], both):
        with refused(CompositionError, "compose.table_columns_differ", name="census"):
            compose([mine, known_columns[1], strange])
        compose([mine, replace(strange, table="census 2021")])
    assert Certificate.from_dict(both.to_dict()) == both
    inf = replace(certificate, columns=("inf",))
    assert Certificate.from_dict(inf.to_dict()) == inf


def test_estimates_are_not_added_to_promises():
    certificate = group(known(), RecordScenario())
    with refused(CompositionError, "compose.estimate_not_addable"):
        compose([certificate, certificate.as_estimate("peeked")])
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 2.0, 1.0, 3.0]})
    sampled = group(mean_of(("u",)), scenario(rows, prior_as="sample"))
    with refused(CompositionError, "compose.estimate_not_addable"):
        compose([sampled, sampled])


def test_an_estimate_is_not_added_even_if_it_says_it_composes():
    certificate = group(known(), RecordScenario())
    estimate = replace(certificate, notion=Notion.ESTIMATED)
    assert estimate.composable
    with refused(CompositionError, "compose.estimate_not_addable"):
        compose([certificate, estimate])


def test_promises_that_rest_on_an_event_are_not_added():
    rows = pd.concat([bits()] * 5000)
    certificate = group(mean_of(("u",)), scenario(rows, prior_as="confidence"))
    assert certificate.event_delta > 0
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose([certificate, certificate])


def test_nothing_to_compose():
    with refused(CompositionError, "compose.no_certificate"):
        compose([])


def test_no_curve_to_add_up():
    bare = Certificate(
        notion="renyi_dp", epsilon=1.0, alpha=2.0, coupling_id="x", composable=True
    )
    with refused(CompositionError, "compose.no_curve"):
        compose([bare, bare])


# -- what may --------------------------------------------------------------------------


def test_gaussian_composition_is_exact():
    one = group(known(0.1), RecordScenario(relation="replace"), epsilon=0.5)
    total = compose([one, one])
    assert total.notion is Notion.RENYI_DP
    assert total.epsilon == pytest.approx(1.0, rel=1e-9)
    assert total.rpp_epsilon == total.epsilon
    assert total.curve.gaussian_mu == pytest.approx(
        one.curve.gaussian_mu * math.sqrt(2), rel=1e-12
    )
    assert total.n_releases == 2 and "(2 releases)" in total.details()
    assert total.to_approximate(1e-5).epsilon < 2 * one.to_approximate(1e-5).epsilon
    # and composing goes on
    assert compose([total, one]).epsilon == pytest.approx(1.5, rel=1e-9)


def test_pure_promises_add():
    parts = [
        group(known(), RecordScenario(), alpha=math.inf, epsilon=e, noise="laplace")
        for e in (0.3, 0.4)
    ]
    total = compose(parts)
    assert total.notion is Notion.PURE_DP
    assert total.alpha == math.inf
    assert total.epsilon == pytest.approx(0.7, rel=1e-9)
    renyi = compose(parts, alpha=2.0)
    assert renyi.notion is Notion.RENYI_DP
    assert renyi.epsilon < total.epsilon


def test_renyi_promises_compose_at_the_order_asked_for_or_the_smallest():
    parts = [
        group(known(), RecordScenario(relation="replace"), epsilon=0.5, alpha=alpha)
        for alpha in (8.0, 4.0)
    ]
    mu = math.hypot(*(part.curve.gaussian_mu for part in parts))
    for asked, alpha in ((None, 4.0), (3.0, 3.0)):
        total = compose(parts, alpha=asked)
        assert total.alpha == alpha
        assert total.epsilon == pytest.approx(alpha / 2 * mu**2, rel=1e-9)


def test_pure_order_needs_pure_parts():
    parts = [group(known(), RecordScenario()) for _ in range(2)]
    with refused(CompositionError, "compose.infinite_order_not_pure"):
        compose(parts, alpha=math.inf)


def test_approximate_promises_compose_through_their_curve():
    one = group(known(), RecordScenario(), epsilon=1.0, alpha=None, delta=1e-5)
    total = compose([one, one])
    # the deltas are not added: epsilon is read off the curve of both
    assert total.notion is Notion.APPROXIMATE_DP
    assert total.delta == 1e-5
    assert one.epsilon < total.epsilon < 2 * one.epsilon
    assert total.curve.gaussian_mu == pytest.approx(
        one.curve.gaussian_mu * math.sqrt(2), rel=1e-12
    )
    assert compose([one, one], delta=1e-6).epsilon > total.epsilon
    assert compose([total, one]).epsilon > total.epsilon
    by_order = compose([one, one], alpha=2.0)
    assert by_order.notion is Notion.RENYI_DP
    assert by_order.to_approximate(1e-5).epsilon == total.epsilon
    with refused(ValueError, "compose.alpha_and_delta_both_given"):
        compose([one, one], alpha=2.0, delta=1e-5)


def test_an_order_and_a_delta_make_a_delta():
    parts = [
        group(known(), RecordScenario(), epsilon=1.0, alpha=None, delta=1e-6),
        group(known(), RecordScenario(), epsilon=0.5),
    ]
    total = compose(parts)
    assert total.notion is Notion.APPROXIMATE_DP
    assert (total.delta, total.alpha) == (1e-6, None)
    assert total.epsilon > parts[0].epsilon


def test_deltas_that_no_noise_buys_add_up():
    one = replace(
        group(known(), RecordScenario(), epsilon=1.0, alpha=None, delta=1e-5),
        event_delta=4e-6,
    )
    total = compose([one, one])
    assert total.delta == pytest.approx(8e-6 + 6e-6)
    assert total.event_delta == pytest.approx(8e-6)
    assert total.epsilon == compose([one, one], delta=total.delta).epsilon
    # and those of copies as well
    counted = compose([one], counts=[2])
    assert (counted.delta, counted.event_delta) == (total.delta, total.event_delta)
    assert counted.epsilon == pytest.approx(total.epsilon, rel=1e-9)
    with refused(ValueError, "certificate.delta_below_event"):
        compose([one, one], delta=8e-6)


def test_one_attribute_coupling_twice():
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 2.0, 1.0, 3.0]})
    one = group(mean_of(("u",)), scenario(rows), epsilon=0.5)
    other = group(mean_of(("u",)), scenario(rows.copy()), epsilon=0.25)
    assert one.sensitivity == 0.25
    total = compose([one, other])
    assert total.notion is Notion.RENYI_PUFFERFISH
    assert total.epsilon == pytest.approx(0.75, rel=1e-9)


def test_what_no_prior_was_needed_for_is_differential_privacy():
    """A secret that moves a record as far as any record moves: replacing one."""
    rows = pd.DataFrame({"s": [0, 0, 1, 1], "u": [0.0, 0.0, 1.0, 1.0]})
    bounded = mean_of(("u",), sensitivity=Sensitivity(add_remove={}, replace={2: 0.25}))
    capped = group(bounded, scenario(rows))
    assert capped.notion is Notion.RENYI_DP
    plain = group(known(0.1), RecordScenario(relation="replace"))
    total = compose([capped, plain])
    assert total.notion is Notion.RENYI_DP
    assert total.epsilon == pytest.approx(2.0, rel=1e-9)


def test_confidences_add_their_failures():
    one = replace(group(known(), RecordScenario()), confidence=0.99)
    assert compose([one, one, one]).confidence == pytest.approx(0.97)


def test_what_any_part_assumes_the_sum_assumes():
    common = group(known(), RecordScenario())
    parts = [common.assuming(f"part {i}") for i in range(3)]
    expected = [*common.assumptions, *(stated(f"part {i}") for i in range(3))]
    assert sorted(compose(parts).assumptions, key=str) == sorted(expected, key=str)
    assert set(compose([common, *parts]).assumptions) == set(expected)


def test_a_single_certificate_is_itself():
    one = group(known(), RecordScenario())
    assert compose([one]) is one
    other = compose([one], delta=1e-5)
    assert other.epsilon == pytest.approx(one.to_approximate(1e-5).epsilon)


def laplace_beside_gaussian(epsilon, pure, mu):
    """Hockey-stick divergence of both together: over the loss of one of them."""

    def gaussian(loss):
        # at any loss, also below zero
        upper = norm.cdf(mu / 2 - loss / mu)
        return upper - np.exp(loss) * norm.cdf(-mu / 2 - loss / mu)

    # between the two worlds of Laplace(1) noise, `pure` apart
    inside = quad(
        lambda x: np.exp(-abs(x)) / 2 * gaussian(epsilon - abs(x - pure) + abs(x)),
        0,
        pure,
        epsabs=1e-13,
    )[0]
    ends = gaussian(epsilon - pure) / 2 + np.exp(-pure) / 2 * gaussian(epsilon + pure)
    return inside + ends


@pytest.mark.parametrize("pure", [0.3, 1.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_laplace_beside_gaussian_noise_is_by_privacy_losses(pure, delta):
    release = mean_of(sensitivity=Sensitivity(add_remove={1: 0.25, 2: 0.25}))
    laplace, gaussian = (
        GroupPrivacy(epsilon=e, delta=delta, noise=noise).calibrate(
            release, RecordScenario()
        )
        for e, noise in ((pure, "laplace"), (1.0, "gaussian"))
    )
    shift = 0.25 / float(np.max(laplace.noise.scale))
    mu = 0.25 / float(np.max(gaussian.noise.scale))
    total = compose([laplace.certificate, gaussian.certificate], delta=delta)
    exact = brentq(
        lambda e: laplace_beside_gaussian(e, shift, mu) - delta, 0.0, pure + 1.5
    )
    assert exact <= total.epsilon <= exact * (1 + 2e-3)
    # less than both budgets added up, which Rényi costs order by order are not
    assert total.epsilon < pure + 1
    orders = np.geomspace(1.01, 200, 200).tolist()
    costs = [
        sum(float(c.certificate.curve.renyi(a)) for c in (laplace, gaussian))
        for a in orders
    ]
    assert total.epsilon < renyi_to_approximate(orders, costs, delta)
    again = Certificate.from_dict(json.loads(json.dumps(total.to_dict())))
    assert again.to_approximate(delta).epsilon == total.epsilon


def test_events_of_copies_are_those_of_one_as_often():
    run = GradientRelease(n_records=1000, batch_size=100, n_steps=5)
    at_an_order = RenyiDP(1.0, alpha=4.0, delta=None)
    one, other = (
        accountant.calibrate(run, RecordScenario()).certificate
        for accountant in (at_an_order, PrivacyLoss(1.0, 1e-5))
    )
    ((pair, n_steps),) = one.events
    assert n_steps == 5
    assert compose([one], counts=[3]).events == ((pair, 15),)
    both = compose([other, one], counts=[1, 3], alpha=4.0).events
    assert both == (*other.curve.steps, (pair, 15))
