"""Beliefs about all records of a household, taken together for one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.accountants._gain import gain_over_records
from skpuffer.distributions import Discrete
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import ScenarioError
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import Notion, compose, parallel
from skpuffer.releases import (
    GradientRelease,
    PublicContext,
    QueryRelease,
    Sensitivity,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    RecordScenario,
)
from tests.attack import assert_tight, noisy_laws
from tests.refused import refused, says

GROUPS = tuple(i // 2 for i in range(20))


def household(prior=None, **options):
    prior = BoundedOdds(9.0) if prior is None else prior
    return BlocksScenario(
        AttributeScenario("s", **{"level": "dataset", "prior": prior} | options)
    )


def query(groups=GROUPS):
    """A sum that one replaced record moves by one, and two by two."""
    return QueryRelease(
        query=lambda X, y: np.sum(X, axis=0),
        n_records=20,
        dim=1,
        sensitivity=Sensitivity({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}),
        context=PublicContext(n_records=20, groups=groups),
    )


def quadrature(values, scale):
    """Nodes, and there the normal densities around some values."""
    at = np.linspace(-9 * scale, 2 + 9 * scale, 2001)
    return at, norm.pdf(at[:, None], values, scale)


def exact(first, second, epsilon, at, densities):
    """Hockey-stick of two mixtures of normal distributions."""
    p, q = (densities @ law for law in (first, second))
    return np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), at)


def test_whatever_a_household_is_no_more_is_told_than_certified():
    w, rng = 9.0, np.random.default_rng(0)
    found = OverlapAmplification(0.4, delta=0.02).calibrate(query(), household())
    # what two records add to the sum
    pairs = np.array([(a, b) for a in (0, 0.5, 1) for b in (0, 0.5, 1)])
    values, scale, curve = pairs.sum(axis=1), found.noise.scale, found.certificate.curve
    worst, every = 0.0, quadrature(values, scale)
    for _ in range(40):
        first = rng.dirichlet(np.full(9, rng.choice([0.1, 1.0])))
        # likelihood ratios anywhere in a range of w, and often at its ends
        second = first * w ** rng.beta(*rng.choice([0.1, 1.0], 2), size=9)
        second /= second.sum()
        for epsilon in (0.0, 0.2, 0.4, 1.0):
            for laws in ((first, second), (second, first)):
                told = exact(*laws, epsilon, *every)
                assert told <= curve.delta(epsilon) * (1 + 1e-9) + 1e-12
                worst = max(worst, told / curve.delta(epsilon))
    assert worst > 0.3
    # Two records that move together, and the widest odds: exactly what is certified.
    q = (np.sqrt(w) * np.exp(-0.2) - 1) / (w - 1)
    p = w * q / (1 + (w - 1) * q)
    coins = np.array([p, 1 - p]), np.array([q, 1 - q])
    told = exact(*coins, 0.4, *quadrature([0.0, 2.0], scale))
    assert told == pytest.approx(0.02, rel=1e-3)
    # the noise for one record of its own would not do
    single = AttributeScenario("s", level="record", prior=BoundedOdds(w))
    alone = OverlapAmplification(0.4, delta=0.02).calibrate(query(None), single)
    assert exact(*coins, 0.4, *quadrature([0.0, 2.0], alone.noise.scale)) > 0.04
    assert_tight(
        found.certificate,
        found.noise,
        **noisy_laws(Discrete([0.0, 2.0], coins[0]), Discrete([0.0, 2.0], coins[1])),
        seed=0,
        n_draws=50_000,
        epsilons=(0.4,),
    )


def test_the_fallback_is_that_of_the_household():
    found = OverlapAmplification(0.3).calibrate(query(), household())
    certificate = found.certificate
    plain = PrivacyLoss(0.3).certify(
        found.noise, query(None), RecordScenario(k=2, relation="replace")
    )
    assert certificate.fallback == plain.epsilon
    assert certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert (certificate.coupling_id, certificate.coupling_count) == ("replace:2", 2)
    text = certificate.details()
    for said in (
        "RecordScenario(k=2, relation='replace')",
        "with all records of one block (2) taken together for one, the whole row but",
        "all its values in these records together",
        "its groups, whose ids are public",
    ):
        assert said in text
    assert "counts at its fallback" in text
    # the gain is over as many records as may differ, and says so
    assert "less noise than RecordScenario(k=2, relation='replace')" in text
    # as much is gained over two replaced records as by a record over one
    single = AttributeScenario("s", level="record", prior=BoundedOdds(9.0))
    alone = OverlapAmplification(0.3).calibrate(query(None), single)
    assert certificate.gain == pytest.approx(alone.certificate.gain)
    assert found.noise.scale == pytest.approx(2 * alone.noise.scale, rel=1e-6)
    # households of several sizes cost what the largest does
    uneven = query((0, 0, 0, *range(1, 18)))
    larger = OverlapAmplification(0.3).calibrate(uneven, household())
    assert larger.noise.scale == pytest.approx(3 * alone.noise.scale, rel=1e-6)
    # all records of a table that has no blocks are one household
    whole = AttributeScenario("s", level="dataset", prior=BoundedInference(0.7))
    fact = OverlapAmplification(0.3).calibrate(query(None), whole)
    assert fact.certificate.coupling_count == 20


VOTES = VoteRelease(
    n_records=20,
    n_teachers=5,
    n_classes=2,
    n_queries=3,
    groups=GROUPS,
    context=PublicContext(n_records=20, groups=GROUPS),
)
OF_ONE = "differential privacy of all records of one block or household (of at most 2)"


def test_what_is_counted_by_household_is_promised_to_no_other_records():
    found = OverlapAmplification().calibrate(VOTES, household(table="census"))
    text = found.certificate.details()
    # any two records have two teachers, and are told apart by far more
    plain = PrivacyLoss(delta=1e-5)
    pair = plain.certify(found.noise, VOTES, RecordScenario(k=2, relation="replace"))
    assert pair.epsilon > 1.5 * found.certificate.fallback
    one = plain.certify(found.noise, VOTES, RecordScenario(relation="replace"))
    assert one.epsilon == pytest.approx(found.certificate.fallback)
    assert f"ε = {one.epsilon:.4g}, {OF_ONE}" in text
    assert f"times less noise than {OF_ONE}" in text
    assert "RecordScenario(k" not in text
    # beside another belief it is told of which tables the sum is
    other = household(BoundedOdds(4.0), table="census")
    other = OverlapAmplification().calibrate(VOTES, other).certificate
    both = compose([found.certificate, other])
    assert both.notion is Notion.APPROXIMATE_DP
    fallback = "assume.release_counts_at_fallback"
    plain_privacy = {
        a.parameters["plain_privacy"] for a in both.assumptions if a.code == fallback
    }
    assert OF_ONE in map(str, plain_privacy)
    # blocks side by side know of households no more
    together = parallel([found.certificate, other])
    assert f"ε = {together.fallback:.4g}, {OF_ONE}" in together.details()
    # nor of as many records where others are taken one by one
    single = AttributeScenario("s", level="record", prior=BoundedOdds(9.0))
    single = OverlapAmplification().calibrate(query(None), single).certificate
    beside = parallel([found.certificate, single])
    assert "privacy of the records that each belief takes together" in beside.details()


def test_the_gain_is_over_as_many_records_as_it_says():
    bound = household().bind(query().context)
    run = GradientRelease(n_records=20, n_steps=4, sampling="full_batch")
    run = replace(run, context=query().context)
    found = OverlapAmplification(delta=1e-5).calibrate(run, household())
    # twice the noise for twice as many records, of which nobody is warned
    gain, count = gain_over_records(found, 1.0, run, bound)
    assert (gain, count) == (found.certificate.gain, 2)
    one, _ = gain_over_records(found, 1.0, run, bound, count=1)
    assert one == pytest.approx(gain / 2, rel=1e-6)
    # a household that one teacher has costs what a record does
    found = OverlapAmplification(delta=1e-5).calibrate(VOTES, household())
    one, _ = gain_over_records(found, 1.0, VOTES, bound, count=1)
    assert one == pytest.approx(found.certificate.gain, rel=1e-6)


def test_statements_are_about_households_of_every_size():
    groups = (*[0] * 7, *range(1, 14))
    found = OverlapAmplification().calibrate(query(groups), household()).certificate
    believed, blocks, _, alone, *_ = found.assumptions
    assert says(believed, "assume.together_one_block", sizes=[1, 7])
    assert says(blocks, "assume.blocks_of_sizes_independent", sizes=[1, 7])
    assert says(alone, "assume.no_record_outside_these")


def test_a_belief_about_a_household_is_explained():
    scenario = household()
    pd.testing.assert_frame_equal(
        scenario.explain([0.1, 0.3], delta=1e-6),
        scenario.scenario.explain([0.1, 0.3], delta=1e-6),
    )
    # the gain of Gaussian noise is one number for every release
    accountant = OverlapAmplification(0.3, noise="gaussian")
    found = accountant.calibrate(query(), scenario).certificate
    assert scenario.explain(0.3)["gain"].item() == pytest.approx(found.gain)
    with refused(ScenarioError, "blocks.explain_without_belief"):
        BlocksScenario(RecordScenario(relation="replace")).explain()


def test_releases_about_the_same_households_are_amplified_once():
    accountant = OverlapAmplification(0.3, noise="gaussian")
    named = household(table="census")
    one = accountant.calibrate(query(), named).certificate
    both = compose([one, one])
    assert both.notion is Notion.APPROXIMATE_PUFFERFISH
    assert both.epsilon < 0.5 and both.coupling_id == "replace:2"
    assert compose([both, one]).epsilon == pytest.approx(
        compose([one, one, one]).epsilon
    )
    # other households of the same people, or one record of theirs
    others = accountant.calibrate(query(GROUPS[::-1]), named).certificate
    assert others.record == one.record  # the same households, numbered otherwise
    others = accountant.calibrate(query((*range(1, 10), *range(10), 0)), named)
    record = AttributeScenario(
        "s", level="record", prior=BoundedOdds(9.0), table="census"
    )
    record = accountant.calibrate(query(None), record).certificate
    for other in (others.certificate, record):
        mixed = compose([one, other])
        assert mixed.notion is Notion.APPROXIMATE_DP
        assert says(mixed.assumptions, "assume.release_counts_at_fallback")
        assert mixed.epsilon > both.epsilon
    assert mixed.coupling_id == "replace:1"


def people():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    return X.assign(s=rng.integers(0, 3, 60)), (X["a"] > 0).astype(int)


def test_households_in_estimators():
    X, y = people()
    # its members have values of their own
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(30), 2))
    model = PrivateLogisticRegression(
        household(), OverlapAmplification(0.3), data_norm=2.0
    )
    certificate = model.fit(X, y, groups=groups).certificate_
    assert certificate.coupling_count == 2
    assert certificate.gain == pytest.approx(2.02, abs=0.05)
    with refused(ScenarioError, "blocks.groups_not_given"):
        model.fit(X, y)
    # dealt whole to one teacher, a household costs what a record does
    votes = PATEClassifier(
        n_teachers=5,
        n_queries=3,
        unlabeled=-X[["a", "b"]],
        scenario=household(),
        accountant=OverlapAmplification(0.3),
        classes=[0, 1],
    )
    assert votes.fit(X, y, groups=groups).certificate_.sensitivity == 1


def test_what_is_no_belief_about_a_household():
    with refused(ScenarioError, "blocks.level_record_unsupported"):
        OverlapAmplification().calibrate(query(), household(level="record"))
    rows = pd.DataFrame({"s": [0, 1, 0, 1], "z": [0, 1, 1, 0]})
    # of blocks of one record each it is read through the coding all the same
    one = AttributeScenario("s", level="record", prior=BinnedLaw(rows))
    alone = BlocksScenario(one, sizes=1)
    assert alone.is_coded and alone.coded(pd.DataFrame({"z": [0.2, 7.0]}))[
        "z"
    ].tolist() == [0, 1]
    X, y = pd.DataFrame({"z": [0.2, 7.0]}), np.array([0, 1])
    assert alone.coded_records(alone.coded(X), y, None)[1] is y
    with refused(ScenarioError, "attribute.level_not_record"):
        OverlapAmplification().calibrate(query(), household(BinnedLaw(rows)))
