"""Random subsets of a pool: the prior that is accounted for is the one that is run."""

import gc
import json
import math
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import rel_entr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GroupPrivacy, PrivacyLoss, compatibility_table
from skpuffer.accountants._base import known_accountants
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import (
    CompositionError,
    PrivacyWarning,
    ScenarioError,
    Statement,
    UnsupportedError,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import compose
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease
from skpuffer.scenarios import OutputSamples, SubsampleScenario
from skpuffer.scenarios._subsample._pool import (
    IndependentRecords,
    UniformSubset,
    shares,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

from ..gaussian_bound import GaussianBound

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyWarning.__module__}.PrivacyWarning"
)

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "subsets.json").read_text("utf-8")
)
TEN = np.arange(10.0)[:, None]
RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(40, 2))
LABEL = (POOL[:, 0] + RNG.normal(size=40) > 0).astype(int)


def mark(X):
    """Size and content of a table, as a text."""
    return f"{X.shape[0]} records, {X.sum():.9f}"


class Counted(LogisticRegression):
    """A model that tells on which tables it was fitted."""

    # a log of texts: by such a one a query is no other than before
    tables = []

    def fit(self, X, y, sample_weight=None):
        type(self).tables.append(mark(X))
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def from_nothing():
    gc.collect()
    MEMORY.clear()
    Counted.tables.clear()


def mean(X, y):
    return np.asarray(X).mean(axis=0)


def fifth(X, y):
    return np.asarray(X).sum(axis=0) / 5


def release_of(X, n, y=None, query=mean, **options):
    context = PublicContext(n_records=n, pool=(X, y), **options)
    return QueryRelease(query=query, n_records=n, dim=X.shape[1], context=context)


def bound_of(X=TEN, n=5, y=None, context=(), **options):
    """A scenario bound to a known pool, and a release to ask it about."""
    release = release_of(X, n, y, **dict(context))
    return SubsampleScenario(size=n, **options).bind(release.context), release


def samples(*args, **options):
    bound, release = bound_of(*args, **options)
    return bound.fact(OutputSamples, release)


def model(scenario=None, query="coef_", budget=0.5, estimator=None, **options):
    scenario = SubsampleScenario(n_subsets=8) if scenario is None else scenario
    return OutputPerturbation(
        Counted() if estimator is None else estimator,
        query,
        scenario,
        GaussianBound(budget),
        **options,
    )


def information(codes, fact, noise):
    """Mutual information of a code with one output plus Gaussian noise, by a grid."""
    # few outputs are distinct: of each, the mass of every code
    at, where = np.unique(fact.draws[:, 0].round(9), return_inverse=True)
    codes = np.unique(codes, return_inverse=True)[1]
    mass = np.zeros((len(at), codes.max() + 1))
    np.add.at(mass, (where.ravel(), codes), fact.weights)
    spread = 10 * math.sqrt(noise)
    y = np.linspace(at.min() - spread, at.max() + spread, 2001)
    joint = stats.norm.pdf(y[:, None], at, math.sqrt(noise)) @ mass
    product = joint.sum(axis=1, keepdims=True) * mass.sum(axis=0)
    return float(np.trapezoid(rel_entr(joint, product).sum(axis=1), y))


# -- subsets ---------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=8).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.integers(1, sum(sizes)))
    )
)
def test_shares_are_within_one_of_exact_ones(drawn):
    sizes, n = np.array(drawn[0]), drawn[1]
    found = shares(sizes, n)
    assert found.sum() == n and np.all(found <= sizes)
    assert np.all(np.abs(found - sizes * n / sizes.sum()) < 1)


@given(st.integers(2, 8), st.integers(1, 7))
def test_all_subsets_are_each_there_once(n_pool, n):
    n = min(n, n_pool)
    law = UniformSubset(((np.arange(n_pool), n),), n_pool)
    masks, weights = law.all()
    assert len(np.unique(masks, axis=0)) == len(masks)
    assert math.exp(law.log_count) == pytest.approx(len(masks))
    assert np.all(masks.sum(axis=1) == n)
    assert weights.sum() == pytest.approx(1.0)
    assert law.entropy == pytest.approx(math.log(math.comb(n_pool, n)))


def test_independent_records_are_all_masks_with_their_probabilities():
    law = IndependentRecords(0.3, 4)
    masks, weights = law.all()
    assert len(np.unique(masks, axis=0)) == 16
    assert law.log_count == pytest.approx(math.log(16))
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ masks == pytest.approx([0.3] * 4)
    assert law.entropy == pytest.approx(-(weights * np.log(weights)).sum())
    drawn = law.draw(4000, np.random.default_rng(0))
    assert np.allclose(drawn.mean(axis=0), 0.3, atol=0.035)


def is_uniform(codes, n_codes, weights=None):
    counts = np.bincount(codes, minlength=n_codes)
    expected = np.full(n_codes, 1 / n_codes) if weights is None else weights
    return stats.chisquare(counts, expected * len(codes)).pvalue > 1e-4


def test_subsets_are_drawn_uniformly():
    law = UniformSubset(((np.arange(3), 1), (np.arange(3, 6), 2)), 6)
    assert law.entropy == pytest.approx(math.log(9))
    masks, _ = law.all()
    drawn = law.draw(3000, np.random.default_rng(0))
    codes = (drawn[:, None] == masks).all(axis=2).argmax(axis=1)
    assert np.array_equal(masks[codes], drawn)
    assert is_uniform(codes, 9)
    # the test would notice: one that begins at the first record
    assert not is_uniform(np.minimum(codes, 7), 9)


# -- enumerated ------------------------------------------------------------------------


def test_all_halves_of_ten():
    known = ORACLE["halves_mean"]
    fact = samples(prior="enumerated", secret="record")
    assert fact.draws.shape == (252, 1) and fact.regime == "enumerated"
    assert fact.certified and fact.secret == "record"
    assert fact.entropy == pytest.approx(known["entropy"], abs=1e-7)
    center = fact.weights @ fact.draws
    variance = fact.weights @ (fact.draws - center) ** 2
    assert variance == pytest.approx(known["variance"], abs=1e-6)
    _, at = np.unique(fact.draws.round(9), return_inverse=True)
    mass = np.bincount(at.ravel(), fact.weights)
    assert len(mass) == known["distinct"]
    entropy = -(mass * np.log(mass)).sum()
    assert entropy == pytest.approx(known["output_entropy"], abs=1e-6)
    assert fact.memberships.shape == (252, 10)
    assert fact.weights @ fact.memberships == pytest.approx([0.5] * 10)
    assert np.array_equal(fact.groups, np.arange(252))


def test_records_of_halves_leak_what_they_should():
    known = ORACLE["halves_mean"]
    fact = samples(prior="enumerated", secret="record")
    by_record = [information(c, fact, known["noise"]) for c in fact.memberships.T]
    assert max(by_record) == pytest.approx(known["record"], abs=1e-5)
    table = information(fact.groups, fact, known["noise"])
    assert table == pytest.approx(known["table"], abs=1e-5)
    for budget, (noise, record) in known["by_budget"].items():
        found = information(fact.groups, fact, noise)
        assert found == pytest.approx(float(budget), abs=1e-5)
        found = max(information(c, fact, noise) for c in fact.memberships.T)
        assert found == pytest.approx(record, abs=1e-5)


def test_independent_records_leak_what_they_should():
    known = ORACLE["independent_sum"]
    fact = samples(
        prior="enumerated",
        secret="record",
        independent=True,
        context={"query": fifth},
    )
    assert fact.draws.shape == (1024, 1)
    assert fact.entropy == pytest.approx(10 * math.log(2))
    found = [information(c, fact, known["noise"]) for c in fact.memberships.T]
    assert found == pytest.approx(known["records"], abs=1e-5)
    table = information(fact.groups, fact, known["noise"])
    assert table == pytest.approx(known["table"], abs=1e-5)


def test_stratified_subsets_keep_the_shares():
    y = np.repeat([0, 1], [6, 3])
    fact = samples(TEN[:9], 6, y, prior="enumerated", secret="record", stratify=True)
    assert len(fact.draws) == math.comb(6, 4) * math.comb(3, 2)
    assert fact.entropy == pytest.approx(math.log(len(fact.draws)))
    assert np.all(fact.memberships[:, :6].sum(axis=1) == 4)


# -- by design -------------------------------------------------------------------------


def test_a_subset_that_was_drawn_twice_weighs_double():
    fact = samples(TEN[:4], 2, n_subsets=100, secret="record")
    assert fact.regime == "design" and fact.certified and len(fact.draws) == 6
    times = fact.weights * 100
    assert np.all(times == times.round()) and fact.weights.sum() == 1
    assert fact.entropy == pytest.approx(-(fact.weights * np.log(fact.weights)).sum())
    assert len(np.unique(fact.memberships, axis=0)) == 6
    assert np.allclose(fact.draws, fact.memberships @ TEN[:4] / 2)


@given(st.integers(0, 50), st.integers(2, 6))
def test_by_design_no_more_is_unknown_than_which_subset(seed, n_subsets):
    fact = samples(n_subsets=n_subsets, random_state=seed, secret="record")
    assert len(fact.draws) <= n_subsets
    assert fact.entropy <= math.log(n_subsets) + 1e-12
    # of a record that is in all or in none nothing is unknown
    shares = fact.weights @ fact.memberships
    assert np.all((shares > 0) & (shares < 1))


def test_other_seeds_are_other_subsets():
    first, same, other = (samples(random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.draws, same.draws)
    assert not np.array_equal(first.draws, other.draws)


# -- secrets ---------------------------------------------------------------------------


def test_the_secret_of_a_group_is_who_of_it_was_drawn():
    groups = np.repeat([0, 1, 2], [2, 3, 5])
    context = {"groups": tuple(groups.tolist())}
    of_fit = samples(prior="enumerated", secret="groups", context=context)
    given = samples(prior="enumerated", secret="groups", groups=list("aabbbccccc"))
    assert np.array_equal(of_fit.memberships, given.memberships)
    n_values = [len(np.unique(column)) for column in of_fit.memberships.T]
    assert n_values == [4, 8, 32]
    masks = samples(prior="enumerated", secret="record").memberships
    for group, codes in enumerate(of_fit.memberships.T):
        mine = masks[:, groups == group]
        same = (mine[:, None] == mine).all(axis=2)
        assert np.array_equal(same, codes[:, None] == codes)


def test_the_secret_is_any_function_of_who_was_drawn():
    one = samples(
        prior="enumerated", secret="groups", groups=lambda m: int(m[0] ^ m[1])
    )
    assert one.memberships.shape == (252, 1)
    two = samples(
        prior="enumerated",
        secret="groups",
        groups=lambda m: ("first" if m[0] else "others", int(m[:5].sum())),
    )
    assert [len(np.unique(column)) for column in two.memberships.T] == [2, 6]
    masks = samples(prior="enumerated", secret="record").memberships
    assert np.array_equal(two.memberships[:, 0] == two.memberships[0, 0], masks[:, 0])


@pytest.mark.parametrize("secret", ["dataset", "record"])
def test_a_dataset_has_no_memberships_and_draws_drop_none(secret):
    fact = samples(prior="sampled", n_subsets=2, secret=secret)
    if secret == "dataset":
        assert fact.memberships is None
    else:
        assert fact.memberships.shape == (2, 10)


# -- sampled, and fresh tables ---------------------------------------------------------


def test_fresh_tables_are_drawn_anew():
    pool = RNG.normal(size=(60, 1))
    fact = samples(pool, 30, prior="sampled", n_subsets=40, random_state=3)
    assert fact.regime == "sampled" and fact.draws.shape == (40, 1)
    assert fact.entropy == pytest.approx(math.log(math.comb(60, 30)))
    fresh = fact.again(50, np.random.default_rng(3))
    assert fresh.shape == (50, 1)
    assert not np.isin(fresh, fact.draws).any()
    assert np.array_equal(fact.again(50, 3), fact.again(50, 3))
    assert not np.array_equal(fact.again(50, 3), fact.again(50, 4))


@pytest.mark.parametrize("prior", ["design", "enumerated"])
def test_fresh_tables_are_those_that_are_listed(prior):
    fact = samples(TEN[:4], 2, prior=prior, n_subsets=30)
    fresh = fact.again(3000, 0)
    codes = (fresh == fact.draws[:, 0]).argmax(axis=1)
    assert np.array_equal(fact.draws[codes], fresh)
    law = np.bincount(codes, minlength=len(fact.draws)) / 3000
    by_value = [fact.weights[fact.draws[:, 0] == v].sum() for v in fact.draws[:, 0]]
    of_value = [law[fact.draws[:, 0] == v].sum() for v in fact.draws[:, 0]]
    assert np.allclose(of_value, by_value, atol=0.05)


# -- the table that is run -------------------------------------------------------------


def test_each_subset_drawn_beforehand_is_run_as_often_as_it_weighs():
    bound, release = bound_of(TEN[:4], 2, n_subsets=40)
    fact = bound.fact(OutputSamples, release)
    rng = np.random.default_rng(0)
    run = [bound.realise(TEN[:4], None, rng)[0] for _ in range(3000)]
    assert all(table.shape == (2, 1) for table in run)
    masks, weights = bound._subsets
    taken = np.array([np.isin(TEN[:4, 0], table[:, 0]) for table in run])
    codes = (taken[:, None] == masks).all(axis=2).argmax(axis=1)
    assert np.array_equal(masks[codes], taken)
    assert is_uniform(codes, len(masks), weights)
    assert not is_uniform(np.minimum(codes, len(masks) - 2), len(masks), weights)
    assert np.allclose(fact.weights, weights)


@pytest.mark.parametrize("prior", ["enumerated", "sampled"])
def test_of_all_subsets_each_is_run_as_often(prior):
    bound, _ = bound_of(TEN[:4], 2, prior=prior, n_subsets=2)
    rng = np.random.default_rng(0)
    sums = [bound.realise(TEN[:4], None, rng)[0] for _ in range(1200)]
    codes = np.unique(sums, axis=0, return_inverse=True)[1].ravel()
    assert is_uniform(codes, 6)


def public(X, y, n, **options):
    """A scenario bound to a public pool, of which tables of `n` records are drawn."""
    pool = X if y is None else (X, y)
    scenario = SubsampleScenario(pool, n, prior="enumerated", **options)
    context = PublicContext(
        n_records=n, n_features=X.shape[1], has_target=y is not None
    )
    return scenario.bind(context)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_table_of_a_public_pool_is_run_as_it_was_simulated(kind):
    """A query may go by the order, in which the pool's subsets were simulated."""
    y = np.arange(10.0) ** 2
    bound = public(TEN, y, 4)
    drawn = [7, 0, 9, 3]
    X, targets = bound.realise(kind(TEN[drawn]), y[drawn], np.random.default_rng(0))
    assert np.array_equal(X, TEN[sorted(drawn)])
    assert np.array_equal(targets, y[sorted(drawn)])


def test_equal_records_of_a_public_pool_are_run_as_often_as_the_prior_has_them():
    """Of a, b, a the table a, b is the first two or the last two, in that order."""
    bound = public(np.array([[0.0], [1.0], [0.0]]), None, 2)
    rng = np.random.default_rng(0)
    given = np.array([[0.0], [1.0]])
    first = [bound.realise(given, None, rng)[0][0, 0] for _ in range(2000)]
    codes = np.array(first, dtype=int)
    assert is_uniform(codes, 2)
    assert not is_uniform(np.zeros(2000, dtype=int), 2)


def test_targets_that_a_public_pool_has_not():
    y = np.arange(10.0) % 2
    bound = public(TEN, y, 4)
    bound.check_table(TEN[:4], y[:4])
    with refused(ScenarioError, "subsample.records_not_in_pool"):
        bound.check_table(TEN[:4], 1 - y[:4])
    with refused(ScenarioError, "subsample.records_not_in_pool"):
        bound.check_table(TEN[[0, 0, 1, 2]], y[[0, 0, 1, 2]])
    labels = np.where(LABEL == 1, "a", "b")
    scenario = SubsampleScenario((POOL, labels), prior="sampled", n_subsets=4)
    estimator = model(scenario)
    with refused(ScenarioError, "subsample.records_not_in_pool"):
        estimator.fit(POOL[:20], np.where(LABEL[:20] == 1, "b", "a"))
    assert not hasattr(estimator, "certificate_")
    assert estimator.fit(POOL[19::-1], labels[19::-1]).value_.shape == (1, 2)


def test_budgets_about_other_groups_are_under_other_scenarios():
    """Else a bound for one kind of secret would be taken for the other's."""
    said = {
        public(TEN, None, 4, secret="groups", groups=groups).describe()
        for groups in ([0] * 5 + [1] * 5, [0, 1] * 5, lambda mask: bool(mask[0]))
    }
    assert len(said) == 3
    same = public(TEN, None, 4, secret="groups", groups=[3] * 5 + [7] * 5).describe()
    assert same in said


def test_certificates_about_other_public_pools_are_of_other_scenarios():
    """Else budgets about two pools would be added up as if about one."""
    y = np.arange(10) % 2
    targets = y, 1 - y, list("ab" * 5)
    others = [TEN, TEN + 1e-12, TEN[::-1], *((TEN, of) for of in targets)]
    said = {
        SubsampleScenario(pool, 4, prior="enumerated")
        .bind(PublicContext(n_records=4, n_features=1))
        .describe()
        for pool in others
    }
    assert len(said) == len(others)
    # however it is read: of named columns some, of targets none
    frame = pd.DataFrame({"a": TEN[:, 0], "b": TEN[:, 0] ** 2})
    read = {
        SubsampleScenario((frame, y), 4, prior="enumerated")
        .bind(PublicContext(n_records=4, n_features=k, feature_names=names))
        .describe()
        for k, names in ((2, ("a", "b")), (1, ("b",)))
    }
    assert len(read) == 1 and not read & said
    subset = TEN[[0, 2, 4, 6]]
    certificates = [
        PrivateMean(
            SubsampleScenario(pool, 4, prior="sampled", n_subsets=8),
            GaussianBound(),
            bounds=(0.0, 9.0),
        )
        .fit(subset)
        .certificate_
        for pool in (TEN, TEN[::-1])
    ]
    with refused(CompositionError, "compose.information_scenarios_differ"):
        compose(certificates)


def test_what_is_said_of_a_known_pool_tells_nothing_of_it():
    """The attacker is assumed to know it, but whoever reads a text need not."""
    said = [str(model().fit(pool, LABEL).certificate_) for pool in (POOL, POOL + 1)]
    assert said[0] == said[1]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_what_is_run_is_one_of_the_tables_accounted_for(kind):
    X, y = kind(POOL), LABEL
    of = model().set_params(random_state=5)
    clone(of).fit(X, y)
    # the first one twice, to see that it is a function of the table
    simulated, run = Counted.tables[:8], Counted.tables[9:]
    assert Counted.tables[8] == simulated[0]
    assert len(run) == 1 and run[0] in simulated
    assert all(table.startswith("20 records") for table in simulated)  # of forty
    for seed in range(6):
        clone(of).set_params(random_state=seed).fit(X, y)
    # the last of each fit
    run = Counted.tables[19::10]
    assert len(run) == 6 and set(run) <= set(simulated)
    assert len(set(run)) > 2


def test_the_noise_is_the_same_whatever_was_drawn():
    """Who is drawn comes of a generator of its own, and takes nothing of the noise."""
    pool = np.arange(100.0)[:, None] ** 2
    scenario = SubsampleScenario(size=50, n_subsets=64)
    noises, run = [], []
    for seed in range(40):
        fitted = PrivateMean(
            scenario,
            GaussianBound(1e4),
            bounds=(0, 1e4),
            random_state=seed,
        ).fit(pool)
        noise = fitted.noise_.sample((1,), np.random.default_rng(seed))
        noises.append(noise[0])
        run.append(fitted.mean_[0] - noise[0])
    release = release_of(pool, 50)
    fact = scenario.bind(release.context).fact(OutputSamples, release)
    # without the noise of the seed it is the mean of one of the subsets, exactly
    gaps = np.abs(fact.draws[:, 0] - np.array(run)[:, None]).min(axis=1)
    assert np.all(gaps < 1e-8)
    assert len(set(np.round(run, 6))) > 15
    assert stats.spearmanr(noises, run).pvalue > 1e-3


def test_a_mean_is_that_of_the_subset():
    pool = 10.0 ** np.arange(6)[:, None]
    fitted = PrivateMean(
        SubsampleScenario(size=2, prior="enumerated"),
        GaussianBound(1e4),
        bounds=(0, 1e5),
        random_state=0,
    ).fit(pool)
    digits = np.round(2 * fitted.mean_[0])
    assert sorted(str(int(digits)).replace("0", "")) == ["1", "1"]
    assert fitted.certificate_.n_records == 2


def test_a_mean_of_independent_records_has_a_public_denominator():
    pool = np.ones((20, 1))
    scenario = SubsampleScenario(size=0.3, independent=True, n_subsets=32)
    run = {
        float(
            PrivateMean(scenario, GaussianBound(1e5), bounds=(0, 1), random_state=seed)
            .fit(pool)
            .mean_[0]
        )
        for seed in range(10)
    }
    # one half for the middle of the bounds, and a half for each record drawn over six
    drawn = [12 * (value - 0.5) for value in run]
    assert len({round(n) for n in drawn}) > 2
    assert all(abs(n - round(n)) < 0.01 for n in drawn)


def test_the_certificate_says_what_is_assumed():
    fitted = model().fit(POOL, LABEL)
    said = fitted.certificate_.assumptions
    assert fitted.certificate_.n_records == 20
    assert says(said, "assume.subsample_pool_known")
    assert says(said, "assume.subsample_drawn_by_design", n_run=8)
    assert says(said, "assume.subsample_average_over_draws")
    assert "20 of 40 records" in fitted.certificate_.details()
    sampled = SubsampleScenario(prior="sampled", n_subsets=9, secret="record")
    said = model(sampled).fit(POOL, LABEL).certificate_.assumptions
    assert says(said, "assume.subsample_query_finite", n_run=9)
    assert says(said, "assume.subsample_secret_record_drawn")


# -- as any estimator ------------------------------------------------------------------


def test_each_fit_runs_its_subsets_once():
    of = model()

    def fits(X=POOL, y=LABEL, **changes):
        before = len(Counted.tables)
        clone(of).set_params(**changes).fit(X, y)
        return len(Counted.tables) - before - 1

    # code may read anything: no other fit shares them
    assert [fits(), fits(), fits(accountant__budget=3.0)] == [9, 9, 9]
    assert fits(scenario__n_subsets=5) == 6
    copy = clone(of)
    assert copy.get_params()["scenario__n_subsets"] == 8
    assert copy.set_params(scenario__n_subsets=4).scenario.n_subsets == 4


def test_frames_with_public_preprocessing():
    frame = pd.DataFrame(POOL, columns=["x", "z"])
    inner = model()
    for wrapped in (
        inner,
        PublicPreprocessing(StandardScaler(), inner, reference=frame[:20]),
    ):
        Counted.tables.clear()
        MEMORY.clear()
        clone(wrapped).fit(frame, pd.Series(LABEL, name="label"))
        assert len(Counted.tables) == 10 and Counted.tables[-1] in Counted.tables[:8]


def test_no_rows_are_kept():
    private = pd.DataFrame(POOL.copy())
    gone = weakref.ref(private)
    kept = model().fit(private.to_numpy(), LABEL)
    rows = private.to_numpy()
    memory = weakref.ref(rows.base if rows.base is not None else rows)
    del private, rows
    gc.collect()
    assert gone() is None and memory() is None and kept.certificate_ is not None


@pytest.mark.slow
def test_processes_find_what_one_finds():
    def query(X, y):  # a local one is sent whole: workers cannot import this module
        return np.asarray(X).mean(axis=0)

    found = []
    for n_jobs in (None, 2):
        MEMORY.clear()
        found.append(
            samples(context={"query": query}, prior="enumerated", n_jobs=n_jobs).draws
        )
    assert np.array_equal(*found)


def test_a_progress_bar_is_shown_to_who_asks(capsys):
    model().fit(POOL, LABEL)
    assert capsys.readouterr().err == ""
    MEMORY.clear()
    model().set_params(scenario__verbose=True).fit(POOL, LABEL)
    assert "9/9" in capsys.readouterr().err


# -- a pool that is given --------------------------------------------------------------


@pytest.mark.parametrize("prior", ["enumerated", "sampled"])
def test_a_table_that_somebody_drew_of_a_public_pool(prior):
    size = 39 if prior == "enumerated" else 20
    scenario = SubsampleScenario((POOL, LABEL), size, prior=prior, n_subsets=8)
    fitted = model(scenario, random_state=0).fit(POOL[:size], LABEL[:size])
    assert len(Counted.tables) == (41 if prior == "enumerated" else 8) + 1
    # what was given is run, all of it
    assert Counted.tables[-1] == mark(POOL[:size])
    assert says(fitted.certificate_.assumptions, "assume.subsample_pool_public")
    assert fitted.certificate_.n_records == size


def test_a_pool_of_named_columns_is_matched_by_name():
    frame = pd.DataFrame(POOL, columns=["x", "z"])
    pool = frame[["z", "x"]].assign(more=1.0)
    scenario = SubsampleScenario((pool, LABEL), 20, prior="sampled", n_subsets=8)
    model(scenario).fit(frame[::2], LABEL[::2])
    assert Counted.tables[-1] == mark(POOL[::2])


def test_a_table_that_is_no_subset_is_refused():
    scenario = SubsampleScenario((POOL, LABEL), 20, prior="sampled", n_subsets=8)
    twice = np.concatenate([POOL[:19], POOL[:1]])
    for X in (twice, POOL[:20] + 1e-6):
        of = model(scenario)
        with refused(ScenarioError, "subsample.records_not_in_pool") as error:
            of.fit(X, LABEL[:20])
        assert not hasattr(of, "certificate_") and not Counted.tables
        assert str(POOL[0, 0])[:6] not in str(error.value)


# -- bad input -------------------------------------------------------------------------


BAD_FITS = {
    "pool smaller": (
        {"size": 41},
        {},
        Statement("subsample.size_too_large", given=41, n=41, n_pool=40),
    ),
    "the whole pool": (
        {"size": 40},
        {},
        Statement("subsample.size_too_large", most=39),
    ),
    "no record": ({"size": 0.001}, {}, Statement("subsample.size_too_small")),
    "too many": (
        {"prior": "enumerated"},
        {},
        Statement("subsample.too_many_subsets"),
    ),
    "a number": (
        {"size": 1, "stratify": True},
        {},
        Statement("subsample.stratify_too_many_classes"),
    ),
    "no groups": ({"secret": "groups"}, {}, Statement("subsample.groups_not_given")),
    "other groups": (
        {"secret": "groups", "groups": [0, 1]},
        {},
        Statement("subsample.groups_count_differs", n_groups=2, n_pool=40),
    ),
    "groups twice": (
        {"secret": "groups", "groups": np.arange(40)},
        {"groups": np.arange(40)},
        Statement("subsample.groups_given_twice"),
    ),
    "labels of varying number": (
        {"secret": "groups", "groups": lambda m: list(range(m[:3].sum() + 1))},
        {},
        Statement("subsample.groups_labels_count_varies"),
    ),
    "labels of no kind": (
        {"secret": "groups", "groups": lambda m: {}},
        {},
        Statement("subsample.groups_labels_not_hashable"),
    ),
    "one label": (
        {"secret": "groups", "groups": lambda m: 0},
        {},
        Statement("subsample.no_secret_uncertain"),
    ),
    "ids of single records": (
        {"secret": "record"},
        {"groups": np.zeros(40)},
        Statement("scenario.group_ids_repeat"),
    ),
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_input_is_named_and_nothing_is_fitted(name):
    parameters, of_fit, said = BAD_FITS[name]
    of = model(SubsampleScenario(**{"n_subsets": 8} | parameters))
    with refused(ScenarioError, said.code, **said.parameters):
        of.fit(POOL, LABEL, **of_fit)
    assert not hasattr(of, "certificate_")


def test_a_target_is_needed_to_stratify():
    of = PrivateMean(
        SubsampleScenario(stratify=True), GaussianBound(), bounds=(-9.0, 9.0)
    )
    with refused(ScenarioError, "subsample.stratify_without_target"):
        of.fit(POOL)


def test_subsets_that_lack_a_class_are_refused_with_the_remedy():
    rare = np.repeat([0, 1], [37, 3])
    of = model(SubsampleScenario(size=4, n_subsets=32))
    with refused(ScenarioError, "simulation.subset_of_pool"):
        of.fit(POOL, rare)
    assert not hasattr(of, "certificate_")
    of.set_params(scenario__stratify=True, scenario__size=14).fit(POOL, rare)


def test_models_that_cannot_be_fitted_on_a_subset_are_refused_with_the_remedy():
    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError(f"no such number as {X[0, 0]}")

    of = model(estimator=Picky())
    with refused(ScenarioError, "simulation.release_not_computable") as e:
        of.fit(POOL, LABEL)
    assert str(POOL[0, 0])[:6] not in str(e.value) and not hasattr(of, "certificate_")


def nothing(X, y):
    return np.full(2, np.nan if X[0, 0] < 2 else 1.0)


def varying(X, y):
    return np.ones(1 + int(X[0, 0] < 2))


@pytest.mark.parametrize(
    "query, said",
    [
        (nothing, Statement("scenario.release_not_finite", name="query")),
        (varying, Statement("simulation.release_length_varies")),
    ],
)
def test_outputs_must_be_finite_and_of_one_length(query, said):
    context = PublicContext(n_records=3, pool=(TEN, None))
    release = QueryRelease(query=query, n_records=3, context=context)
    for prior in ("design", "enumerated", "sampled"):
        bound = SubsampleScenario(size=3, prior=prior, n_subsets=64).bind(context)
        with refused(ScenarioError, said.code, **said.parameters):
            bound.fact(OutputSamples, release)
    short = QueryRelease(query=mean, dim=2, n_records=3, context=context)
    with refused(ScenarioError, "simulation.release_length_varies"):
        bound.fact(OutputSamples, short)


class Chance(LogisticRegression):
    """A model that tosses coins nobody seeded."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ + np.random.default_rng().normal(size=self.coef_.shape)
        return self


def test_a_query_of_chance_is_no_function_of_the_table():
    for prior, size in (("design", 0.5), ("enumerated", 39)):
        of = model(
            SubsampleScenario(size=size, prior=prior, n_subsets=8), estimator=Chance()
        )
        with refused(ScenarioError, "subsample.query_not_deterministic"):
            of.fit(POOL, LABEL)
        assert not hasattr(of, "certificate_")
    # drawn with the table it is one more thing that is drawn
    sampled = SubsampleScenario(prior="sampled", n_subsets=8)
    assert model(sampled, estimator=Chance()).fit(POOL, LABEL)


def test_fitted_arrays_must_be_of_one_shape():
    of = model(query=lambda m: np.ones(1 + int(m.coef_[0, 1] > 0)))
    with refused((ScenarioError, ValueError), "simulation.release_not_computable"):
        of.fit(POOL, LABEL)


@pytest.mark.parametrize(
    "pool, words",
    [
        (POOL[:, :1], "subsample.pool_differs_from_table"),
        (pd.DataFrame(POOL, columns=["a", "b"]), "subsample.pool_differs_from_table"),
        (POOL, "subsample.pool_without_targets"),
        ((POOL, np.where(LABEL, "up", "down")), "subsample.pool_differs_from_table"),
        (sparse.csr_matrix(POOL), "subsample.pool_sparse"),
    ],
)
def test_a_pool_that_does_not_fit_the_table_is_refused(pool, words):
    if not isinstance(pool, tuple) and "targets" not in words:
        pool = (pool, LABEL)
    of = model(SubsampleScenario(pool, 20, prior="sampled", n_subsets=8))
    with refused(ScenarioError, words):
        of.fit(POOL[:20], LABEL[:20])
    assert not hasattr(of, "certificate_")


def test_masked_values_of_a_pool_are_refused():
    masked = np.ma.masked_array(TEN, TEN == 3)
    for pool in (masked, (TEN, np.ma.masked_array(TEN[:, 0], TEN[:, 0] == 3))):
        with refused(ValueError, "table.masked_array", name="pool"):
            SubsampleScenario(pool, 5, prior="enumerated").check()


def test_a_table_of_another_size_is_refused():
    of = model(SubsampleScenario((POOL, LABEL), 20, prior="sampled", n_subsets=8))
    with refused(
        ScenarioError,
        "subsample.size_differs_from_table",
        n_drawn=20,
        n_pool=40,
        n_records=21,
    ):
        of.fit(POOL[:21], LABEL[:21])
    of = model(
        SubsampleScenario(
            (POOL, LABEL), 20, prior="sampled", secret="groups", groups=np.arange(40)
        )
    )
    with refused(ScenarioError, "subsample.groups_of_table_given"):
        of.fit(POOL[:20], LABEL[:20], groups=np.arange(20))


def test_a_pool_is_known_within_a_fit_only():
    with refused(ScenarioError, "subsample.known_pool_outside_fit"):
        SubsampleScenario().bind(PublicContext(n_records=5))


def test_one_subset_hides_nothing():
    pool = TEN[:2]
    seed = next(
        s
        for s in range(100)
        if len(
            set(
                map(
                    bytes,
                    bound_of(TEN[:3], 1, n_subsets=2, random_state=s)[0]
                    .law.draw(2, np.random.default_rng([1, s]))
                    .astype("u1"),
                )
            )
        )
        == 1
    )
    with refused(ScenarioError, "subsample.subsets_all_same"):
        samples(TEN[:3], 1, n_subsets=2, random_state=seed)
    assert len(samples(pool, 1, n_subsets=20).draws) == 2


# -- who reads it ----------------------------------------------------------------------


def test_accountants_of_other_promises_refuse_and_say_what_it_is_for():
    bound, release = bound_of(prior="enumerated")
    for kind in known_accountants():
        if OutputSamples in kind.needs:
            continue
        answer = kind().supports(release, bound)
        assert not answer
        if "UnsupportedError" not in str(answer.reason) and kind.recommended:
            reason = str(answer.reason)
            assert "mutual information" in reason or "reads" in reason
    with refused(UnsupportedError, "subsample.needs_mutual_information_accountant"):
        PrivateMean(
            SubsampleScenario(n_subsets=8), GroupPrivacy(), bounds=(-9.0, 9.0)
        ).fit(POOL)
    # what is asked where nothing is said
    with refused(UnsupportedError, "subsample.needs_mutual_information_accountant"):
        model().set_params(accountant=None).fit(POOL, LABEL)


@pytest.mark.parametrize("accountant", [GaussianBound(), PrivacyLoss()])
def test_training_runs_are_refused(accountant):
    bound, _ = bound_of()
    run = GradientRelease(n_records=5, n_steps=2, sampling="full_batch")
    assert bound.provides(run) == frozenset()
    of = PrivateLogisticRegression(
        SubsampleScenario(n_subsets=8), accountant, data_norm=1.0, solver="gradient"
    )
    with refused(UnsupportedError, "subsample.needs_mutual_information_accountant"):
        of.fit(POOL, LABEL)
    assert not hasattr(of, "certificate_")


def test_the_compatibility_table_has_it():
    rows = [r for r in compatibility_table(2) if r["scenario"] == "SubsampleScenario"]
    assert rows
    assert all(r["reason"] == "OutputSamples" for r in rows if r["works"])


@pytest.mark.parametrize(
    "pool, shown",
    [
        (5, "<int>"),
        (None, "<NoneType>"),
        ((), "<tuple>"),
        ([[1.0], [2.0]], "<2 records>"),
    ],
)
def test_what_is_no_pool_is_shown_all_the_same(pool, shown):
    assert f"pool={shown}," in repr(SubsampleScenario(pool=pool))
