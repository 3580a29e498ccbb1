"""A secret column: record level, data-set level, and how far a prior is trusted."""

import dataclasses
import math
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.compose import OutputPerturbation
from skpuffer.distributions import Discrete, Samples, Support, distribution_distance
from skpuffer.exceptions import EmpiricalPriorWarning, ScenarioError, Statement
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    CoupledSamples,
    OutputDistributions,
    OutputSamples,
    ReferenceTable,
)
from skpuffer.scenarios._priors._bounded import variation_radius
from skpuffer.summary import PrivateMean
from skpuffer.training import Training
from tests.refused import refused, says

CALLS = []


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns themselves, clipped; counts how often it is asked."""

    low: float = -100.0
    high: float = 100.0

    def __call__(self, X, y):
        CALLS.append(len(X))
        return np.clip(np.asarray(X, dtype=float), self.low, self.high)


@dataclasses.dataclass(frozen=True)
class WithTarget:
    needs_target = True

    def __call__(self, X, y):
        return np.asarray(X, dtype=float) * np.asarray(y, dtype=float)[:, None]


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "sex": ["f", "f", "f", "m", "m", "x"],
            "height": [160.0, 165, 170, 170, 180, 175],
            "age": [30.0, 40, 50, 30, 45, 90],
        }
    )


def context(n=10, names=("height", "age"), **options):
    return PublicContext(
        n_records=n,
        feature_names=names,
        n_features=None if names is None else len(names),
        **options,
    )


def mean(n=10, names=("height", "age"), contribution=None, dim=2, **options):
    return QueryRelease(
        contribution=contribution or Columns(-1000, 1000),
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=dim,
        context=context(n, names),
        **options,
    )


def scenario(prior, **options):
    options = {"level": "record", "prior_as": "law"} | options
    return AttributeScenario("sex", prior=prior, **options)


def certificate(release, scenario, accountant=None, **options):
    accountant = accountant or GeneralWasserstein
    return accountant(**options).calibrate(release, scenario).certificate


def given_secret(table, value, column="height"):
    return table.loc[table["sex"] == value, column].to_numpy()


# -- levels ----------------------------------------------------------------------------


def test_a_mean_moves_by_one_record_over_n(table):
    release = mean(names=("height",), dim=1)
    pair = scenario(table, pairs=[("f", "m")])
    expected = distribution_distance(
        Discrete(given_secret(table, "f")), Discrete(given_secret(table, "m"))
    )
    # between the quantiles 1/2 and 2/3: 165 against 180
    assert expected == 15.0
    for kind in (GeneralWasserstein, GroupPrivacy):
        assert certificate(release, pair, kind).sensitivity == pytest.approx(1.5)
    fact = pair.bind(release.context).fact(OutputDistributions, release)
    assert fact.common_part_removed and fact.scale == 0.1
    assert fact.probabilities == ((0.5, 2 / 6, 1 / 6),)


def test_a_table_drawn_given_one_secret_moves_by_every_record(table):
    release = mean(names=("height",), dim=1)
    shared = scenario(table, pairs=[("f", "m")], level="dataset")
    bound = shared.bind(release.context)
    assert OutputDistributions not in bound.provides(release)
    fact = bound.fact(Adjacency, release)
    assert (fact.count, fact.move, fact.relation) == (10, 15.0, "replace")
    found = certificate(release, shared)
    assert found.sensitivity == pytest.approx(15.0)
    said = found.details()
    assert "all share" in said and "one record's" not in said


def test_the_level_is_that_of_records_and_a_belief_is_needed():
    assert AttributeScenario("s", prior=BoundedOdds(2.0)).level == "record"
    with refused(ScenarioError, "prior.is_none"):
        PrivateMean(AttributeScenario("s"), bounds=(0, 1)).fit([[0.0], [1.0]])


def test_joint_columns_are_compared_jointly(table):
    """The distance of the joint laws, not of each column's law on its own."""
    prior = pd.DataFrame(
        {"sex": list("ffmm"), "u": [0.0, 1, 0, 1], "v": [0.0, 1, 1, 0]}
    )
    release = mean(names=("u", "v"))
    assert certificate(release, scenario(prior)).sensitivity == pytest.approx(0.1)
    one = mean(names=("u",), dim=1)
    assert certificate(one, scenario(prior)).sensitivity == 0.0


def test_columns_are_matched_by_name(table):
    shuffled = table[["age", "sex", "height"]].assign(extra=7.0)
    for prior in (table, shuffled):
        laws = (
            scenario(prior)
            .bind(context())
            .fact(OutputDistributions, mean())
            .distributions
        )
        assert laws[0][0].points[0].tolist() == [160.0, 30.0]


# -- pairs and priors ------------------------------------------------------------------


def test_pairs(table):
    release = mean(names=("height",), dim=1)
    laws = {s: Discrete(given_secret(table, s)) for s in "fmx"}
    for pairs in ([("f", "x")], [("m", "x"), ("x", "m")], "all"):
        listed = [("f", "m"), ("f", "x"), ("m", "x")] if pairs == "all" else pairs
        worst = max(distribution_distance(laws[a], laws[b]) for a, b in listed)
        found = certificate(release, scenario(table, pairs=pairs))
        assert found.sensitivity == pytest.approx(worst / 10)


def test_every_prior_counts(table):
    far = table.assign(height=lambda t: t["height"] + 30 * (t["sex"] == "m"))
    release = mean(names=("height",), dim=1)
    one, other, both = (
        certificate(release, scenario(prior, pairs=[("f", "m")])).sensitivity
        for prior in (table, far, [table, far])
    )
    assert one == pytest.approx(1.5)
    assert both == other > one


def test_a_secret_without_mass_is_skipped_for_that_prior_only(table):
    """Under the second prior nobody is 'x': only its other pairs are compared."""
    release = mean(names=("height",), dim=1)
    two = table[table["sex"] != "x"].assign(height=lambda t: 2 * t["height"])
    laws = [
        {s: Discrete(given_secret(t, s)) for s in t["sex"].unique()}
        for t in (table, two)
    ]
    expected = max(
        distribution_distance(prior[a], prior[b])
        for prior in laws
        for a, b in (("f", "m"), ("f", "x"), ("m", "x"))
        if a in prior and b in prior
    )
    assert expected == distribution_distance(laws[1]["f"], laws[1]["m"]) == 30.0
    found = certificate(release, scenario([table, two]))
    assert found.sensitivity == pytest.approx(expected / 10)
    fact = (
        scenario([table, two]).bind(release.context).fact(OutputDistributions, release)
    )
    assert fact.distributions[1][2] is None and fact.probabilities[1][2] == 0.0
    # and a pair under no prior at all is not silently promised
    found = certificate(
        release, scenario([table[table["sex"] != "m"], two], pairs="all")
    )
    (vacuous,) = (a for a in found.assumptions if a.code == "assume.pairs_vacuous")
    assert "('m', 'x')" in str(vacuous)
    plain = certificate(release, scenario(table)).assumptions
    assert not says(plain, "assume.pairs_vacuous")


def test_no_pair_with_mass(table):
    lonely = [table[table["sex"] == s] for s in "fm"]
    with refused(ScenarioError, "attribute.no_pair_possible"):
        scenario(lonely).bind(context())


# -- how far a prior is trusted --------------------------------------------------------


@pytest.mark.parametrize(
    "prior_as, law, notion, phrase",
    [
        ("sample", Samples, "estimated", "otherwise unknown"),
        ("law", Discrete, "renyi_pufferfish", "exactly the attacker's belief"),
        ("support", Support, "renyi_pufferfish", "every value the attacker"),
        (
            "confidence",
            Discrete,
            "approximate_renyi_pufferfish",
            "no mass on values not seen",
        ),
    ],
)
@pytest.mark.parametrize("kind", [GeneralWasserstein, GroupPrivacy])
def test_labels(table, prior_as, law, notion, phrase, kind):
    many = pd.concat([table] * 300)
    release = mean(names=("height",), dim=1)
    trusting = scenario(many, prior_as=prior_as, table="heights")
    found = certificate(release, trusting, kind)
    assert found.notion.name == notion
    assert any(phrase in str(a) for a in found.assumptions)
    fact = trusting.bind(release.context).fact(OutputDistributions, release)
    assert all(type(one) is law for one in fact.distributions[0])
    assert found.composable is (kind is GroupPrivacy and prior_as in ("law", "support"))
    assert found.confidence == (0.99 if prior_as == "confidence" else 1.0)


def test_the_default_is_an_estimate(table):
    scenario = AttributeScenario("sex", level="record", prior=table)
    assert (scenario.prior_as, scenario.trust) == (None, "sample")


def weissman(size, n, beta):
    """Half the l1 radius of Weissman et al. (2003), Theorem 2.1, solved for it."""
    return 0.5 * math.sqrt(2 / n * math.log((2**size - 2) / beta))


def test_mass_outside_of_what_a_sample_tells():
    """One pair of 900 and 600 rows on three values; two laws share the failure."""
    prior = pd.DataFrame(
        {"sex": ["f"] * 900 + ["m"] * 600, "u": [0.0, 1.0, 2.0] * 300 + [1.0] * 600}
    )
    sure = scenario(prior, prior_as="confidence", confidence=0.95)
    release = mean(names=("u",), dim=1)
    found = certificate(release, sure)
    expected = weissman(3, 900, 0.025) + weissman(3, 600, 0.025)
    assert found.delta == found.event_delta == pytest.approx(expected, rel=1e-12)
    assert found.confidence == 0.95
    # one more prior shares the same failure probability among four laws
    found = certificate(release, scenario([prior, prior], prior_as="confidence"))
    expected = weissman(3, 900, 0.0025) + weissman(3, 600, 0.0025)
    assert found.delta == pytest.approx(expected, rel=1e-12)


def test_every_record_of_a_table_may_leave_its_event():
    prior = pd.DataFrame({"sex": ["f", "m"] * 100_000, "u": [0.0, 1, 1, 0] * 50_000})
    record, table = (
        certificate(
            mean(n=5, names=("u",), dim=1),
            scenario(prior, prior_as="confidence", level=level),
        )
        for level in ("record", "dataset")
    )
    assert table.delta == pytest.approx(1 - (1 - record.delta) ** 5, rel=1e-9)


def test_the_radius_covers():
    """A sample leaves the ball no more often than stated; half of it would not do."""
    rng = np.random.default_rng(0)
    n, beta = 200, 0.3
    law = np.array([0.5, 0.5])
    samples = rng.multinomial(n, law, size=20_000) / n
    distance = np.abs(samples - law).sum(axis=1) / 2
    radius = variation_radius(2, n, beta)
    assert np.mean(distance > radius) <= beta
    assert np.mean(distance > radius / 2) > beta
    assert variation_radius(1, n, beta) == 0.0
    sizes = [variation_radius(k, n, beta) for k in (2, 3, 50, 5000)]
    assert sizes == sorted(sizes)
    numbers = [variation_radius(4, m, beta) for m in (10, 20, 1000, 10**6)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == pytest.approx(numbers[-1] * math.sqrt(1e5))


def test_the_confidence_statement_covers_end_to_end():
    """Far moves that samples miss weigh less than the stated mass, nearly always."""
    rng = np.random.default_rng(1)
    values = np.array([0.0, 1.0, 5.0])
    true = {"f": np.array([0.6, 0.39, 0.01]), "m": np.array([0.3, 0.7, 0.0])}
    release = mean(n=1, names=("u",), dim=1)
    failures = 0
    for _ in range(100):
        prior = pd.concat(
            [
                pd.DataFrame({"sex": s, "u": rng.choice(values, size=150, p=p)})
                for s, p in true.items()
            ]
        )
        # the values are declared: every secret's rows together show them all
        if prior["u"].nunique() < 3:
            continue
        found = certificate(
            release, scenario(prior, prior_as="confidence", confidence=0.9)
        )
        # most mass that a coupling of the true laws can keep within the shift
        z, moved = found.sensitivity, 0.0
        rest = true["m"].copy()
        for x, mass in zip(values, true["f"], strict=True):
            for j in np.flatnonzero(np.abs(values - x) <= z + 1e-9):
                step = min(mass, rest[j])
                mass, rest[j], moved = mass - step, rest[j] - step, moved + step
        failures += 1 - moved > found.delta
    assert failures <= 0.1 * 100


def test_too_few_rows_for_confidence(table):
    for level in ("record", "dataset"):
        sure = scenario(table, prior_as="confidence", level=level)
        with refused(ScenarioError, "attribute.prior_confidence_vacuous"):
            certificate(mean(), sure)


def test_a_far_secret_needs_no_prior(table):
    """Where the secret moves a record as far as any change, no trust is needed."""
    ends = pd.DataFrame({"sex": ["f", "m"], "u": [0.0, 1.0]})
    release = mean(
        names=("u",),
        dim=1,
        sensitivity=Sensitivity(add_remove={}, replace={1: 0.1, 2: 0.1}),
    )
    for prior_as in ("sample", "law", "support"):
        found = certificate(release, scenario(ends, prior_as=prior_as))
        assert found.notion is Notion.RENYI_PUFFERFISH
        assert found.gain == pytest.approx(1.0)
        groups = certificate(release, scenario(ends, prior_as=prior_as), GroupPrivacy)
        assert groups.notion is Notion.RENYI_DP
        assert groups.sensitivity == found.sensitivity == pytest.approx(0.1)
        assert groups.coupling_id == "replace:1"


# -- the private data as the prior -----------------------------------------------------


def empirical_release(X, y=None, secret=None, names=("height", "age"), **options):
    facts = context(len(X), names, empirical=(X, y, secret))
    return QueryRelease(
        contribution=Columns(-1000, 1000),
        is_sum=True,
        n_records=len(X),
        dim=2,
        context=facts,
        **options,
    )


def test_the_data_as_prior_is_always_an_estimate(table):
    X, secret = table[["height", "age"]], table["sex"].to_numpy()
    private = AttributeScenario("sex", level="record", prior="empirical")
    arbitrary = Sensitivity(add_remove={1: 1e-3, 2: 1e-3})
    for sensitivity in (None, arbitrary):
        release = empirical_release(X, secret=secret, sensitivity=sensitivity)
        for kind in (GeneralWasserstein, GroupPrivacy):
            with pytest.warns(EmpiricalPriorWarning):
                found = certificate(release, private, kind)
            # even where no prior is needed: that it is not is read off the data
            assert found.notion is Notion.ESTIMATED
            assert not found.composable
            assert says(found.assumptions, "assume.empirical_prior_noise_leaks")


def test_the_data_as_prior_without_its_secret(table):
    private = AttributeScenario("sex", level="record", prior="empirical")
    with refused(ScenarioError, "attribute.empirical_secret_not_passed"):
        private.bind(context(6, empirical=(table[["height", "age"]], None, None)))
    with refused(ScenarioError, "attribute.empirical_prior_outside_fit"):
        private.bind(context(6))


def test_the_data_as_prior_of_too_many_secrets():
    many = pd.DataFrame(np.ones((65, 2)), columns=["height", "age"])
    private = AttributeScenario("sex", level="record", prior="empirical")
    with (
        pytest.warns(EmpiricalPriorWarning),
        refused(ScenarioError, "attribute.too_many_secret_values", n_secrets=65),
    ):
        private.bind(context(65, empirical=(many, None, np.arange(65))))


@pytest.mark.parametrize("column", ["sex", 0, 1])
def test_the_data_as_prior_from_arrays(table, column):
    """A secret column named by position must not overwrite a feature."""
    X = table[["height", "age"]].to_numpy()
    private = AttributeScenario(column, level="record", prior="empirical")
    release = empirical_release(X, np.zeros(6), table["sex"].to_numpy(), names=None)
    with pytest.warns(EmpiricalPriorWarning) as caught:
        fact = private.bind(release.context).fact(OutputDistributions, release)
    assert caught[0].filename == __file__  # whoever asked, not the library
    assert fact.distributions[0][0].points.tolist() == X[:3].tolist()


def test_the_data_as_prior_with_a_feature_called_target(table):
    X = table.rename(columns={"height": "target"})[["target", "age"]]
    private = AttributeScenario("sex", level="record", prior="empirical")
    release = empirical_release(
        X, np.zeros(6), table["sex"].to_numpy(), names=("target", "age")
    )
    with pytest.warns(EmpiricalPriorWarning):
        fact = private.bind(release.context).fact(OutputDistributions, release)
    assert fact.distributions[0][0].points.tolist() == X[:3].to_numpy().tolist()


# -- simulated tables ------------------------------------------------------------------


def maximum(X, y):
    return X.max(axis=0)


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_queries_of_no_single_record_are_simulated(table, level):
    release = QueryRelease(query=maximum, n_records=4, dim=2, context=context(4))
    simulated = scenario(table, level=level, n_draws=40)
    bound = simulated.bind(release.context)
    assert bound.provides(release) == {CoupledSamples, OutputSamples}
    fact = bound.fact(CoupledSamples, release)
    assert {(i, j) for _, i, j, _, _ in fact.draws} == {(0, 1), (0, 2), (1, 2)}
    assert all(u.shape == v.shape == (40, 2) for _, _, _, u, v in fact.draws)
    found = certificate(release, simulated)
    assert found.notion is Notion.ESTIMATED
    assert says(found.assumptions, "assume.simulated_pairs_stand_for_all")
    cloud = bound.fact(OutputSamples, release)
    assert cloud.weights.sum() == pytest.approx(1.0)
    mass = [cloud.weights[cloud.groups == s].sum() for s in range(3)]
    assert mass == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert cloud.regime == "sampled" and cloud.certified
    # rows of an unknown law make tables of another
    unknown = scenario(table, level=level, n_draws=40, prior_as="sample")
    assert not unknown.bind(release.context).fact(OutputSamples, release).certified
    fresh, drawn = cloud.again(400, 1), cloud.weights @ cloud.draws
    assert fresh.shape == (400, 2)
    error = fresh.std(axis=0) * np.sqrt(1 / 400 + 1 / 40)
    assert np.all(np.abs(fresh.mean(axis=0) - drawn) <= 4 * error + 1e-12)
    assert np.array_equal(fresh, cloud.again(400, 1))


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_an_information_under_several_beliefs_is_of_none(table, level):
    release = QueryRelease(query=maximum, n_records=4, dim=2, context=context(4))
    both = scenario([table, table], level=level, n_draws=4, prior_as="law")
    assert not both.bind(release.context).fact(OutputSamples, release).certified


def test_a_secret_without_mass_is_not_simulated_for_that_prior(table):
    """No 'f' under the first prior, no 'x' under the second."""
    release = QueryRelease(query=maximum, n_records=4, dim=2, context=context(4))
    priors = [table[table["sex"] != gone] for gone in ("f", "x")]
    fact = (
        scenario(priors, n_draws=2).bind(release.context).fact(CoupledSamples, release)
    )
    assert [draw[:3] for draw in fact.draws] == [(0, 1, 2), (1, 0, 1)]


def test_record_level_worlds_differ_in_one_record(table):
    def rows(X, y):
        return X.ravel()

    release = QueryRelease(query=rows, n_records=5, dim=10, context=context(5))
    for level, differing in (("record", {1}), ("dataset", {5})):
        far = table.assign(height=lambda t: t["height"] + 1000 * (t["sex"] == "m"))
        bound = scenario(far, level=level, pairs=[("f", "m")], n_draws=20).bind(
            release.context
        )
        ((_, _, _, u, v),) = bound.fact(CoupledSamples, release).draws
        changed = (u != v).reshape(20, 5, 2).any(axis=2).sum(axis=1)
        assert set(changed) == differing


def test_a_query_that_fails_on_simulated_tables(table):
    release = QueryRelease(
        query=lambda X, y: np.full(2, math.nan), n_records=4, context=context(4)
    )
    for kind in (CoupledSamples, OutputSamples):
        with refused(ScenarioError, "scenario.release_not_finite"):
            scenario(table, n_draws=3).bind(release.context).fact(kind, release)


def test_a_stated_sensitivity_needs_no_simulation(table):
    release = QueryRelease(
        query=maximum,
        n_records=4,
        dim=2,
        context=context(4),
        sensitivity=Sensitivity(add_remove={2: 1.0}),
    )
    for level, count in (("record", 1), ("dataset", 4)):
        found = certificate(release, scenario(table, level=level))
        assert found.notion is Notion.RENYI_DP and found.relation == "replace"
        assert found.sensitivity == 2.0 * count


# -- targets ---------------------------------------------------------------------------


@pytest.fixture
def labelled(table):
    return table.assign(ill=["no", "yes", "no", "yes", "yes", "no"])


@pytest.mark.parametrize("named", ["by parameter", "by the name of y"])
def test_the_target_is_no_feature(labelled, named):
    release = QueryRelease(
        contribution=WithTarget(),
        modulus=lambda move: 2 * move,
        query=maximum,
        n_records=3,
        dim=2,
        context=PublicContext(
            n_records=3,
            feature_names=("height", "age"),
            n_features=2,
            classes=("no", "yes"),
            target_name="ill" if named == "by the name of y" else None,
        ),
    )
    target = "ill" if named == "by parameter" else None
    bound = scenario(labelled, target=target).bind(release.context)
    assert bound.priors[0].y.tolist() == [0, 1, 0, 1, 1, 0]
    # given 'x' the target is "no", so that record contributes nothing
    laws = {
        "f": Discrete([[0, 0], [165, 40], [0, 0]]),
        "m": Discrete([[170, 30], [180, 45]]),
        "x": Discrete([[0, 0]]),
    }
    worst = max(distribution_distance(laws[a], laws[b]) for a, b in ("fm", "fx", "mx"))
    assert certificate(release, bound).sensitivity == pytest.approx(2 * worst)


def test_the_target_itself_may_be_the_secret(labelled):
    release = QueryRelease(
        contribution=WithTarget(),
        is_sum=True,
        n_records=3,
        dim=1,
        context=PublicContext(
            n_records=3, feature_names=("age",), classes=("no", "yes")
        ),
    )
    protected = AttributeScenario(
        "ill", level="record", prior=labelled, prior_as="law", target="ill"
    )
    # 0 for every healthy record, the age for an ill one
    assert certificate(release, protected).sensitivity == 45.0


def test_a_prior_without_the_target(table):
    """Nothing is known of a record then but that it may become any other."""
    release = QueryRelease(
        contribution=WithTarget(),
        is_sum=True,
        n_records=3,
        dim=2,
        context=context(3),
        sensitivity=Sensitivity(add_remove={2: 1.0}),
    )
    found = certificate(release, scenario(table))
    assert found.sensitivity == 2.0
    assert says(found.assumptions, "assume.reason_prior_without_target")
    # what is secret at all, and of how many records, is said as anywhere else
    known = certificate(mean(3), scenario(table)).assumptions
    assert found.assumptions[:2] == known[:2]
    assert "'sex'" in str(known[0])


def test_labels_that_only_pass_through(labelled):
    """A transformer in a pipeline is handed a target of text that it never reads."""
    facts = PublicContext(
        n_records=10, feature_names=("height", "age"), n_features=2, target_name="ill"
    )
    release = dataclasses.replace(mean(), context=facts)
    assert certificate(release, scenario(labelled)).sensitivity == pytest.approx(
        certificate(mean(), scenario(labelled)).sensitivity
    )


def test_labels_of_the_prior_that_are_no_class(labelled):
    facts = PublicContext(
        n_records=10, feature_names=("age",), classes=("no", "maybe"), target_name="ill"
    )
    with refused(ScenarioError, "prior.target_label_unknown", unknown="yes"):
        scenario(labelled).bind(facts)


# -- the secret column of the data -----------------------------------------------------


def test_where_the_secret_is_in_a_frame(table):
    hidden = scenario(table)
    assert hidden.secret_position(("age", "sex", "height"), 3) == 1
    assert hidden.secret_position(("age", "height"), 2) is None
    # a name decides, whatever the number of columns
    assert hidden.secret_position(("a", "b", "c"), 3) is None
    assert hidden.secret_position(None, 3) is None


def test_where_the_secret_is_in_an_array(table):
    prior = np.arange(20.0).reshape(5, 4)
    prior[:, 1] = [0, 0, 1, 1, 1]

    def position(column, n_features, target=None, prior=prior):
        return AttributeScenario(
            column, level="record", prior=prior, target=target
        ).secret_position(None, n_features)

    assert position(1, 4) == 1
    assert position(1, 3) is None  # dropped already
    assert position(1, 3, target=3) == 1
    # the data has no target column: what stood behind it moved up
    assert position(1, 3, target=0) == 0
    labelled = pd.DataFrame(prior, columns=[10, 11, 12, 13])
    assert position(11, 4, prior=labelled) == 1


def test_values_no_prior_speaks_of(table):
    hidden = scenario([table, table[table["sex"] != "x"]])
    hidden.check_secret(np.array(["f", "x", "m"]))
    with refused(ScenarioError, "attribute.values_not_in_prior") as caught:
        hidden.check_secret(np.array(["zeta", "f", "quux", "zeta"]))
    assert "zeta" not in str(caught.value)  # private values are not quoted


def test_declared_bounds(table):
    taller = table.assign(height=lambda t: t["height"] + 20)
    context = PublicContext(n_records=9, feature_names=("age", "height"), n_features=2)
    low, high = scenario([table, taller]).declared_bounds(context)
    assert (low.tolist(), high.tolist()) == ([30.0, 160.0], [90.0, 200.0])

    def in_metres(X):
        return np.asarray(X, dtype=float)[:, [1]] / 100

    mapped = dataclasses.replace(context, n_features=1, feature_map=in_metres)
    low, high = scenario(table).declared_bounds(mapped)
    assert (low.tolist(), high.tolist()) == ([1.6], [1.8])
    private = AttributeScenario("sex", level="record", prior="empirical")
    one = dataclasses.replace(context, feature_names=("age",), n_features=1)
    assert private.declared_bounds(one) is None
    with refused(ScenarioError, "prior.public_rows_not_finite"):
        scenario(table.assign(age=math.nan)).declared_bounds(one)
    with refused(ScenarioError, "prior.columns_not_numeric"):
        scenario(table.assign(age="old")).declared_bounds(one)
    with refused(ScenarioError, "prior.public_rows_lack_columns"):
        scenario(table).declared_bounds(
            dataclasses.replace(context, feature_names=("age", "shoe"))
        )


@pytest.mark.parametrize(
    "column", [["sex", "age"], ("sex", "age"), ("sex", "height", "age")]
)
def test_several_columns_are_no_secret(table, column):
    with refused(ScenarioError, "attribute.several_secret_columns"):
        AttributeScenario(column, level="record", prior=table).check()


def test_public_table(table):
    public = scenario([table, table], target="age").public_table()
    assert list(public.columns) == ["height"] and len(public) == 12


# -- priors of all makes ---------------------------------------------------------------


def test_callable_prior(table):
    drawn = []

    def belief(rng):
        drawn.append(rng.normal())
        return table

    release = mean()
    found = certificate(release, scenario(belief))
    assert found.sensitivity == certificate(release, scenario(table)).sensitivity
    # whenever it is asked, the public seed gives it the same numbers
    assert len(drawn) > 1 and len(set(drawn)) == 1


def test_array_prior_with_numbered_columns(table):
    codes = table["sex"].map({"f": 0, "m": 1, "x": 2}).to_numpy(float)
    prior = np.column_stack([table["height"], codes, table["age"]])
    positional = AttributeScenario(1, level="record", prior=prior, prior_as="law")
    expected = certificate(mean(), scenario(table)).sensitivity
    assert certificate(mean(names=None), positional).sensitivity == expected
    found = certificate(mean(names=None), positional)
    assert says(found.assumptions, "assume.columns_matched_by_position")
    with refused(ScenarioError, "prior.only_data_names_columns"):
        certificate(mean(), positional)
    pair = AttributeScenario(
        1, level="record", prior=prior, prior_as="law", pairs=[(0, 2)]
    )
    assert pair.bind(context(names=None)).pairs == ((0, 2),)


@pytest.mark.parametrize("wrap", [False, True])
def test_polars_prior(table, wrap):
    polars = pytest.importorskip("polars")
    prior = polars.DataFrame({name: table[name].tolist() for name in table})
    prior = ReferenceTable(prior) if wrap else prior
    for level in ("record", "dataset"):
        assert certificate(mean(), scenario(prior, level=level)).sensitivity == (
            certificate(mean(), scenario(table, level=level)).sensitivity
        )


def test_a_reference_table_is_shared(table):
    prior = ReferenceTable(table)
    hidden = scenario(prior)
    assert clone(hidden).prior is prior
    assert clone(GeneralWasserstein()) is not None
    again = pickle.loads(pickle.dumps(prior))
    assert again == prior and hash(again) == hash(prior)
    assert ReferenceTable(table.copy()) == prior
    assert ReferenceTable(table.assign(age=0.0)) != prior
    assert ReferenceTable(table.rename(columns={"age": "years"})) != prior
    # what pandas numbers is as unnamed as an array
    numbered = ReferenceTable(pd.DataFrame(table.to_numpy()))
    assert ReferenceTable(table.to_numpy()) == numbered and not numbered.named
    assert repr(prior) == "ReferenceTable(6 rows: sex, height, age)"
    assert len(prior) == 6
    with refused(ScenarioError, "prior.table_without_rows"):
        ReferenceTable(table.iloc[:0])


def test_being_used_does_not_change_a_reference_table(table):
    """scikit-learn compares parameters before and after a fit by their hash."""
    prior = ReferenceTable(table)
    hidden = scenario(prior)
    before = joblib.hash(prior), joblib.hash(hidden)
    certificate(mean(), hidden, GroupPrivacy)
    hash(prior)
    assert (joblib.hash(prior), joblib.hash(hidden)) == before
    assert joblib.hash(ReferenceTable(table.copy())) == before[0]
    changed = prior.frame()
    changed["age"] = 0.0
    assert prior == ReferenceTable(table)


def test_laws_are_found_once_for_all_folds_and_budgets(table, monkeypatch):
    """Folds of other sizes, other budgets, clones and copies of a prior: one law."""
    # shared is what data of this package say, and no code of others
    CALLS.clear()
    for _ in range(2):
        certificate(mean(contribution=Columns(-76.0, 1000)), scenario(table))
    assert CALLS == [6, 6]
    monkeypatch.setattr(Columns, "__module__", "skpuffer.summary")
    CALLS.clear()
    sensitivities, first = set(), scenario(table)
    for n in (10, 11, 200):
        for epsilon in (0.5, 1.0):
            for prior in (table, table.copy(), ReferenceTable(table)):
                release = mean(n, contribution=Columns(-77.0, 1000))
                again = clone(first).set_params(prior=prior)
                found = certificate(release, again, epsilon=epsilon)
                sensitivities.add(round(n * found.sensitivity, 9))
    assert CALLS == [6]
    assert len(sensitivities) == 1
    # another prior or another map is another law
    certificate(mean(contribution=Columns(-78.0, 1000)), first)
    other = clone(first).set_params(prior=table.iloc[1:])
    certificate(mean(contribution=Columns(-77.0, 1000)), other)
    assert CALLS == [6, 6, 5]


def test_maps_without_a_name_of_their_own(table):
    """Functions made on the spot cannot be pickled; they are compared by identity."""
    for kind in (GeneralWasserstein, GroupPrivacy):
        for power in (1, 2):
            release = mean(
                contribution=lambda X, y, power=power: X[:, :1] ** power, dim=1
            )
            expected = distribution_distance(
                *(Discrete(given_secret(table, s) ** power) for s in ("f", "m"))
            )
            pair = scenario(table, pairs=[("f", "m")])
            found = certificate(release, pair, kind)
            assert found.sensitivity == pytest.approx(expected / 10)


def test_representation(table):
    assert repr(scenario(table, pairs=[("f", "m")])) == (
        "AttributeScenario('sex', level='record', prior=<table>, "
        "pairs=[('f', 'm')], prior_as='law')"
    )
    assert "<2 tables>" in repr(scenario([table, table]))
    assert "prior='empirical'" in repr(
        AttributeScenario("sex", level="record", prior="empirical")
    )
    # nor does a table of blocks print the rows
    inner = scenario(table)
    assert repr(BlocksScenario(inner, 5)) == f"BlocksScenario({inner!r}, sizes=5)"
    assert "sizes=<list>" in repr(BlocksScenario(inner, [2, 3] * 50))


# -- what it refuses -------------------------------------------------------------------


def many_values(k):
    return pd.DataFrame({"sex": range(k), "height": 1.0, "age": 2.0})


@pytest.mark.parametrize(
    "change, said",
    [
        ({"level": "row"}, Statement("parameter.option_unknown", name="level")),
        ({"prior_as": "truth"}, Statement("parameter.option_unknown", name="prior_as")),
        ({"prior": None}, Statement("prior.is_none")),
        ({"prior": "imperial"}, Statement("parameter.option_unknown", name="prior")),
        ({"prior": []}, Statement("prior.empty_list")),
        ({"prior": many_values(1)}, Statement("scenario.fewer_than_two_secrets")),
        (
            {"prior": many_values(65)},
            Statement("prior.too_many_secret_values", n_secrets=65),
        ),
        (
            {"prior": pd.DataFrame({"sxe": [0, 1]})},
            Statement("prior.column_missing", which="column", name="sex"),
        ),
        (
            {"prior": many_values(3).assign(sex=[0, 1, None])},
            Statement("prior.secret_missing_values"),
        ),
        (
            {"target": "wealth"},
            Statement("prior.column_missing", which="target", name="wealth"),
        ),
        (
            {"pairs": [("f", "q")]},
            Statement("scenario.pair_secret_unknown", secret="q"),
        ),
        ({"pairs": [("f", "f")]}, Statement("scenario.pair_secrets_equal")),
        ({"pairs": []}, Statement("scenario.pairs_empty_or_invalid")),
        ({"pairs": "some"}, Statement("parameter.option_unknown", name="pairs")),
        (
            {"confidence": 0.0},
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        (
            {"confidence": 1.0},
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        ({"n_draws": 1}, Statement("parameter.count_too_small", name="n_draws")),
        (
            {"random_state": None},
            Statement("parameter.not_real_number", name="random_state"),
        ),
    ],
)
def test_bad_parameters(table, change, said):
    options = {"level": "record", "prior": table} | change
    bad = AttributeScenario("sex", **options)
    with refused((ValueError, TypeError), said.code, **said.parameters):
        bad.check()
    with refused((ValueError, TypeError), said.code, **said.parameters):
        certificate(mean(), bad)


@pytest.mark.parametrize(
    "change, code",
    [
        ({"age": math.nan}, "prior.public_rows_not_finite"),
        ({"age": math.inf}, "prior.public_rows_not_finite"),
        ({"age": "old"}, "prior.columns_not_numeric"),
    ],
)
def test_bad_prior_rows(table, change, code):
    with refused(ScenarioError, code):
        certificate(mean(), scenario(table.assign(**change)))


def test_prior_without_a_feature(table):
    with refused(ScenarioError, "prior.public_rows_lack_columns"):
        certificate(mean(), scenario(table.drop(columns="age")))
    with refused(ScenarioError, "prior.only_prior_names_columns"):
        certificate(
            QueryRelease(
                contribution=Columns(),
                is_sum=True,
                n_records=3,
                context=PublicContext(n_records=3, n_features=2),
            ),
            scenario(table.drop(columns="age")),
        )


def test_prior_target_with_gaps(table):
    prior = table.assign(y=[0.0, 1, math.nan, 1, 0, 1])
    with refused(ScenarioError, "prior.target_not_finite"):
        certificate(mean(), scenario(prior, target="y"))


def test_a_query_that_is_not_finite_on_the_prior(table):
    def inverse(X, y):
        return 1 / np.where(X[:, :1] == 175, math.nan, X[:, :1])

    with refused(ScenarioError, "attribute.query_not_finite_on_prior"):
        certificate(mean(contribution=inverse, dim=1), scenario(table))


def test_a_table_is_what_its_rows_say(table):
    one = ReferenceTable(table)
    # labels of rows are no content, names and rows are
    relabelled = table.set_axis(range(100, 100 + len(table)), axis=0)
    assert ReferenceTable(relabelled) == one
    assert hash(ReferenceTable(relabelled)) == hash(one)
    assert ReferenceTable(table.iloc[::-1]) != one
    assert ReferenceTable(table.rename(columns={"age": "years"})) != one


@pytest.mark.parametrize(
    "target, expected", [(None, {1: 1.0, 2: 7.0, 3: 0.0}), (1, {1: 7.0, 2: 0.0})]
)
def test_a_column_of_a_prior_that_holds_nothing_keeps_its_place(target, expected):
    prior = np.array([[np.nan, 1.0, 7.0, 0.0], [np.nan, 2.0, 8.0, 1.0]])
    scenario = AttributeScenario(3, prior=prior, level="record", target=target)
    assert scenario.public_record() == expected


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("prior_as", [None, "sample", "law", "support", "confidence"])
@pytest.mark.parametrize("name", ["mean", "minimiser", "run", "any query"])
def test_of_private_rows_nothing_is_certified_however_they_are_trusted(name, prior_as):
    """But what holds for any record; and it is stated that they were read."""
    model = {
        "mean": PrivateMean(accountant=GroupPrivacy(1.0), bounds=(0, 1)),
        "minimiser": PrivateLogisticRegression(
            accountant=GeneralWasserstein(1.0), solver="output"
        ),
        "run": PrivateSGDClassifier(
            accountant=PrivacyLoss(1.0, 1e-5), training=Training(radius=1, n_steps=2)
        ),
        "any query": OutputPerturbation(
            Ridge(), "coef_", accountant=GroupPrivacy(1.0), sensitivity=0.1
        ),
    }[name]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": np.arange(40) % 2, "u": rng.uniform(0, 1, 40)})
    y = None if name == "mean" else X["u"] > 0.5
    scenario = AttributeScenario(
        "s", level="record", prior="empirical", prior_as=prior_as
    )
    found = model.set_params(scenario=scenario).fit(X, y).certificate_
    assert not found.certified or found.notion.differential
    assert "assume.empirical_prior_noise_leaks" in {a.code for a in found.assumptions}
