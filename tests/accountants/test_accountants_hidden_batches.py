"""Hidden batches under any dependence: groups in sampled runs, and what they promise.

If at most k records differ under one coupling, what holds for any k replaced records
holds, whatever depends on what.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, hypergeom, norm

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.pairs import seen_excess
from skpuffer.kernel.steps import steps_of
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.papers import SampledPrivacyLoss
from skpuffer.privacy import Certificate, Notion, compose
from skpuffer.privacy_loss import (
    CountLawCurve,
    GaussianCurve,
    GaussianPoissonPair,
    MixturePair,
    PrivacyLossCurve,
    SubsetGroupPair,
)
from skpuffer.releases import GradientRelease, PublicContext, VoteRelease
from skpuffer.scenarios import (
    Adjacency,
    BlocksScenario,
    GaussianScenario,
    JointTableScenario,
    MarkovChainScenario,
    RecordScenario,
)
from tests.refused import refused, says

from .mixtures import hockey_stick, renyi

HIDDEN = ("poisson", "fixed_size", "with_replacement")
CHAIN = [[0.9, 0.1], [0.2, 0.8]]


def run(sampling="poisson", n=4000, size=200, steps=200, **options):
    return GradientRelease(
        n_records=n, batch_size=size, n_steps=steps, sampling=sampling, **options
    )


def curve(scale, norm=2):
    kind = GaussianNoise if norm == 2 else LaplaceNoise
    return kind(scale).curve(Shift(1.0, norm=norm, dim=None))


def group(k):
    return RecordScenario(k, relation="replace")


# -- Rényi costs, to the digits of an independent quadrature --------------------------


#: (sampling, records, batch, steps, k, order) and the noise of a sum by epsilon
SCALES = [
    (("poisson", 4000, 200, 200, 10, 8), {0.5: 39.9942, 2: 19.9892, 8: 9.9844}),
    (("poisson", 4000, 200, 200, 10, 8), {64: 3.6712}),
    (("fixed_size", 4000, 200, 200, 10, 8), {0.5: 44.204, 2: 23.0433, 64: 17.05046}),
    (("poisson", 4000, 200, 200, 81, 8), {0.5: 323.994, 8: 80.9772}),
    (("poisson", 4000, 200, 200, 121, 8), {0.5: 483.994, 8: 120.9769}),
    # where a grid of privacy losses was infinite too early
    (("poisson", 50000, 512, 3920, 20, 16), {0.5: 102.5791, 8: 25.64146, 80: 8.1098}),
    (("poisson", 50000, 512, 3920, 2, 16), {0.5: 10.25715, 8: 2.56996, 80: 1.82142}),
    (("poisson", 50000, 1024, 1960, 20, 16), {0.5: 145.0687, 80: 11.46827}),
    (("poisson", 50000, 1024, 1960, 2, 16), {0.5: 14.50574, 8: 3.62864, 80: 1.97953}),
]


@pytest.mark.parametrize("what, scales", SCALES)
def test_renyi_costs_of_hidden_groups(what, scales):
    sampling, n, size, n_steps, k, alpha = what
    steps = steps_of(run(sampling, n, size, n_steps), Adjacency.arbitrary(k, ()))
    for epsilon, scale in scales.items():
        (cost,) = steps.dominated(GaussianNoise(scale)).pair.renyi_costs((alpha,))
        assert n_steps * cost == pytest.approx(epsilon, rel=5e-5)


def test_a_scale_for_a_promise_at_an_order_has_its_digits():
    accountant = RenyiDP(80.0, alpha=16, delta=None)
    found = accountant.calibrate(run(n=50000, size=512, steps=3920), group(20))
    assert found.noise.scale == pytest.approx(8.109798, rel=1e-6)
    assert 80 * (1 - 1e-7) <= found.certificate.epsilon <= 80


def test_hidden_batches_cost_more_than_the_mean_square_of_one_step():
    """2.896, the mean square of how many are drawn, is no bound of one step's 66.276"""
    (hidden,) = GaussianPoissonPair(curve(2.0), 0.05, 10, 10).renyi_costs((8.0,))
    assert hidden == pytest.approx(66.276, rel=1e-6)
    mean_square = 10 * 0.05 * 0.95 + 0.25
    assert hidden > 8 / 2 * (2 * 0.5) ** 2 * mean_square == pytest.approx(2.9, rel=1e-3)


def test_batches_that_are_seen_cost_the_log_of_a_moment():
    """0.346347 records' deviations for epsilon 0.5, by a sum over the numbers drawn."""
    j = np.arange(1, 11)
    logs = hypergeom(4000, 10, 200).logpmf(j)

    def cost(ratio):
        seen = seen_excess(np.array([8.0]), 2 * j / (200 * ratio), logs)[0]
        return 200 / 7 * np.logaddexp(0, seen)

    found = brentq(lambda ratio: cost(ratio) - 0.5, 0.2, 0.5)
    assert found == pytest.approx(0.346347, rel=2e-6)


def test_a_group_drawn_at_random_costs_no_more_than_its_size():
    """Who differs may depend on anything: two of three records, chosen by chance."""
    q = 1 / 3
    first = [-j for j in range(4)], binom(3, q).pmf(range(4))
    second = (
        [i - j for i in range(3) for j in range(2)],
        [a * b for a in binom(2, q).pmf(range(3)) for b in (1 - q, q)],
    )
    unit = GaussianNoise(1.0)
    truths = renyi(unit, *first, *second, 4), renyi(unit, *second, *first, 4)
    assert truths == pytest.approx((5.5346, 5.7609), abs=1e-4)
    (bound,) = GaussianPoissonPair(curve(1.0), q, 2, 2).renyi_costs((4.0,))
    assert max(truths) <= bound == pytest.approx(5.894481, abs=1e-6)


@settings(max_examples=15)
@given(
    st.integers(1, 12),
    st.floats(1e-4, 0.9),
    st.floats(0.2, 30),
    st.floats(1.05, 60),
    st.booleans(),
)
def test_quadratures_are_the_integrals(k, rate, scale, alpha, hidden):
    """Poisson pairs against their densities; mixtures against their trade-offs."""
    if hidden:
        # the peak of what is compared with lies so far beyond the last atom, and its
        # nodes end at 40 scales
        if 2 * (alpha - 1) * k > 30 * scale:
            return
        (found,) = GaussianPoissonPair(curve(scale), rate, k, k).renyi_costs((alpha,))
        j, w = np.arange(k + 1), binom(k, rate).pmf(range(k + 1))
        exact = renyi(GaussianNoise(scale), j, w, -j, w, alpha)
        # the sum that is compared cancels where costs are small
        tolerance = 1e-12 / (alpha - 1)
    else:
        pair = MixturePair(curve(scale), k, rate)
        (found,) = pair.renyi_costs((alpha,))
        most = alpha * (k / scale) ** 2 + 10 * k / scale
        # its trade-off is no float so far out, nor what it is multiplied by
        if most > 300 or alpha * most > 700:
            return
        t = np.unique(
            np.concatenate(
                [np.geomspace(1e-9, most, 4000), np.linspace(0, most, 20000)]
            )
        )
        # 1 + alpha (alpha - 1) ∫ (x^(alpha-2) + x^(-alpha-1)) delta(log x) dx
        height = np.exp((alpha - 1) * t) + np.exp(-alpha * t)
        total = np.trapezoid(height * pair.delta(t), t)
        exact = math.log1p(alpha * (alpha - 1) * total) / (alpha - 1)
        tolerance = 2e-3 * exact
    assert exact * (1 - 1e-9) - tolerance <= found <= exact * (1 + 1e-7) + tolerance


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.3])
def test_small_costs_keep_their_digits(rate):
    """As noise grows, a batch is Gaussian with the mean number of the group."""
    a, k, alpha = 1e-6, 5, 7.0
    mean = alpha / 2 * (2 * k * rate * a) ** 2
    (found,) = GaussianPoissonPair(curve(1 / a), rate, k, k).renyi_costs((alpha,))
    assert found == pytest.approx(mean, rel=1e-5)
    # P and Q of the bound share a batch without the group: 2 (Pearson) of it
    share = -math.expm1(k * math.log1p(-rate))
    (found,) = MixturePair(curve(1 / a), k, rate).renyi_costs((alpha,))
    j, w = np.arange(1, k + 1), binom(k, rate).pmf(range(1, k + 1))
    assert found == pytest.approx(alpha / 2 * share * w @ (j * a) ** 2, rel=1e-5)


# -- the truth, subset by subset ------------------------------------------------------


def sums(contents, batches):
    """Sums of all batches, and how likely each is."""
    values, counts = np.unique(
        [sum(contents[i] for i in batch) for batch in batches], return_counts=True
    )
    return values, counts / counts.sum()


@pytest.mark.parametrize("replaced", [False, True], ids=["subsets", "draws"])
def test_no_table_is_worse_than_the_curves(replaced):
    rng, noise, best = np.random.default_rng(3), GaussianNoise(0.8), 0.0
    line = np.linspace(-10, 10, 10_001)

    def density(values, masses):
        return masses @ norm.pdf(line, values[:, None], noise.scale)

    for n, k, size in itertools.product((2, 4, 6), (1, 2, 3), (1, 2, 3)):
        if k >= n:
            continue
        if replaced:
            batches = list(itertools.product(range(n), repeat=size))
            pair = MixturePair(noise.curve(Shift(2.0)), size, k / n)
        else:
            batches = list(itertools.combinations(range(n), min(size, n)))
            pair = SubsetGroupPair(noise.curve(Shift(2.0)), n, min(size, n), k)
        epsilons = np.array([0.0, 0.5, 2.0])
        bound = pair.delta(epsilons)
        for worst in (True, False, False):
            rest = np.full(n - k, -1.0) if worst else rng.choice([-1, 0, 1], n - k)
            there = np.ones(k) if worst else rng.choice([-1, 0.5, 1], k)
            back = -np.ones(k) if worst else rng.choice([-1, 0.5, 1], k)
            p, q = (sums([*of, *rest], batches) for of in (there, back))
            for a, b in ((p, q), (q, p)):
                ahead, behind = (density(*of) for of in (a, b))
                gains = np.maximum(0, ahead - np.exp(epsilons)[:, None] * behind)
                true = np.trapezoid(gains, line)
                assert np.all(true <= bound * (1 + 1e-5))
                best = max(best, *(true / bound))
    assert best > 0.999


def test_hidden_is_no_worse_than_seen_nor_seen_than_all_at_once():
    orders, epsilons = (1.5, 4.0, 30.0), np.array([0.0, 0.3, 2.0])
    for scale, k in ((1.0, 3), (6.0, 10)):
        costs, deltas = [], []
        for pair in (
            SubsetGroupPair(curve(scale / 2), 100, 20, k),
            # too few other records to take their places
            SubsetGroupPair(curve(scale / 2), 100, 100 - k + 1, k),
            SubsetGroupPair(curve(scale / 2), 100, 100, k),
        ):
            costs.append(pair.renyi_costs(orders))
            deltas.append(pair.delta(epsilons))
        assert np.all(np.diff(costs, axis=0) > 0)
        assert np.all(np.diff(deltas, axis=0) > 0)
        exact = GaussianPoissonPair(curve(scale), 0.2, k, k).renyi_costs(orders)
        j = np.arange(1, k + 1)
        seen = seen_excess(np.array(orders), 2 * j / scale, binom(k, 0.2).logpmf(j))
        assert np.all(exact <= np.logaddexp(0, seen) / (np.array(orders) - 1))
        # all of them, in every batch
        assert np.all(
            np.array(costs[-1]) <= np.array(orders) / 2 * (2 * k / scale) ** 2
        )


@pytest.mark.parametrize("sampling", HIDDEN)
def test_costs_grow_with_group_rate_and_precision(sampling):
    def pair(k=3, size=20, scale=8.0, noise=GaussianNoise, **options):
        steps = steps_of(
            run(sampling, 200, size, **options), Adjacency.arbitrary(k, ())
        )
        return steps.dominated(noise(scale)).pair

    def cost(**options):
        found = pair(**options)
        return [*found.renyi_costs((3.0,)), *found.delta(np.array([0.0, 0.5]))]

    base = np.array(cost())
    assert np.all(base > cost(k=2)) and np.all(base < cost(k=4))
    assert np.all(base > cost(size=15)) and np.all(base < cost(size=25))
    assert np.all(base > cost(scale=9.0)) and np.all(base < cost(scale=7.0))
    # the whole table
    assert np.all(base < cost(k=200)) and np.all(np.isfinite(cost(k=200)))
    laplace = pair(noise=LaplaceNoise, clip_order=1).delta(np.array([0.0, 0.2]))
    assert 0 < laplace[1] < laplace[0] < 0.1


# -- what scenarios get of it ---------------------------------------------------------


def test_a_table_whose_records_all_change_together_is_attacked_exactly():
    """All records of a table go from one end to the other; its batches stay hidden."""
    n, size = 6, 2
    scenario = JointTableScenario(np.outer([-1, 1], np.ones(n)), [0.5, 0.5])
    release = run(n=n, size=size, steps=1)
    found = PrivacyLoss(1.0, 1e-2).calibrate(release, scenario)
    assert found.certificate.coupling_id == f"replace:{n}"
    j, w = np.arange(n + 1), binom(n, size / n).pmf(range(n + 1))

    def true(share):
        less = found.noise.with_scale(share * found.noise.scale)
        return hockey_stick(less, j, w, -j, w, 1.0)

    assert true(1.0) == pytest.approx(1e-2, rel=1e-3)
    assert true(1.0) <= 1e-2 < true(0.7)


@pytest.mark.parametrize("sampling", HIDDEN)
def test_scenarios_with_a_certain_count_are_accounted_for(sampling):
    n = 40
    series = GaussianScenario(
        covariance=0.7 ** np.abs(np.subtract.outer(range(n), range(n))),
        covariance_of="records",
        domain=(0, 1),
    )
    chain = MarkovChainScenario(CHAIN, event_delta=0.0)
    release = run(sampling, n, 4, 3)
    for scenario, k in ((series, n), (chain, n), (BlocksScenario(chain, 10), 10)):
        found = PrivacyLoss().certify(GaussianNoise(30.0), release, scenario)
        alone = PrivacyLoss().certify(GaussianNoise(30.0), release, group(k))
        assert found.epsilon == alone.epsilon
        assert found.notion is Notion.APPROXIMATE_DP and found.event_delta == 0
        assert RenyiDP(alpha=4, delta=None).supports(release, scenario)


# -- an event on which more records differ is paid for once ---------------------------


@pytest.mark.parametrize("event, k", [(1e-6, 49), (1e-9, 69)])
def test_the_event_of_a_long_chain_is_paid_once_for_all_steps(event, k):
    chain = MarkovChainScenario(CHAIN, event_delta=event, table="a street")
    delta, noise = 1e-5, GaussianNoise(500.0)
    for steps in (1, 300):
        found = PrivacyLoss(delta=delta).certify(noise, run(steps=steps), chain)
        left = (delta - found.event_delta) / (1 - found.event_delta)
        same = PrivacyLoss(delta=left).certify(noise, run(steps=steps), group(k))
        assert found.epsilon == same.epsilon
        assert 0 < found.event_delta <= event
        assert found.delta == delta
        assert found.notion is Notion.APPROXIMATE_PUFFERFISH
        assert not found.implies(Notion.APPROXIMATE_DP)
        # read off the whole curve it costs no less
        assert found.to_approximate(delta).epsilon >= found.epsilon
    one = RenyiDP(2.0, delta=delta).calibrate(run(), chain)
    again = RenyiDP(2.0, delta=left).calibrate(run(), group(k))
    assert one.noise.scale == again.noise.scale
    votes = VoteRelease(n_records=4000, n_teachers=200, n_classes=2, n_queries=3)
    voted = PrivacyLoss(delta=delta).calibrate(votes, chain).certificate
    assert voted.event_delta == found.event_delta


def test_runs_under_one_named_window_add_up_and_pay_their_events():
    chain = MarkovChainScenario(CHAIN, event_delta=1e-6, table="a street")
    context = PublicContext(n_records=4000, feature_names=("state",), n_features=1)
    release = run(context=context)
    found = PrivacyLoss().certify(GaussianNoise(500.0), release, chain)
    assert found.composable and found.coupling_id is not None
    both = compose([found, found])
    assert both.event_delta == 2 * found.event_delta
    assert both.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.epsilon < both.epsilon < 2 * found.epsilon
    unnamed = PrivacyLoss().certify(
        GaussianNoise(500.0), run(), MarkovChainScenario(CHAIN, event_delta=1e-6)
    )
    # what is weighed by the law of the number is a mean over tables, and adds up with
    # nothing
    assert not unnamed.composable and unnamed.epsilon < found.epsilon


def test_what_is_refused_and_what_would_do():
    chain, release = MarkovChainScenario(CHAIN, event_delta=1e-6), run()
    accountant = RenyiDP(delta=5e-7)
    with refused(ValueError, "event.mass_above_delta"):
        accountant.calibrate(release, chain)
    with refused(ValueError, "event.mass_above_delta"):
        accountant.certify(GaussianNoise(100.0), release, chain)
    # what reads the law of the number needs no event
    by_law = PrivacyLoss(delta=5e-7).certify(GaussianNoise(100.0), release, chain)
    assert isinstance(by_law.curve, CountLawCurve) and by_law.event_delta == 0
    order = RenyiDP(alpha=4, delta=None)
    support = order.supports(release, chain)
    assert not support and "event_delta=0" in str(support.reason)
    with refused(UnsupportedError, "event.count_uncertain_at_order"):
        order.calibrate(release, chain)
    sampled = SampledPrivacyLoss().supports(run(dim=1), chain)
    assert not sampled and "event_delta=0" in str(sampled.reason)
    for sampling in ("fixed_size", "with_replacement"):
        support = PrivacyLoss().supports(run(sampling), RecordScenario(2))
        assert not support
        code = "sampling.draws_from_changing_count"
        assert says(support.reason, code, count=2, scheme=sampling)


# -- the law of how many records differ -----------------------------------------------


def test_the_oracle_of_a_law_of_counts():
    """Two-sided geometric numbers of records, each of which moves by a tenth."""
    k = np.arange(1, 400)
    weights = k * 0.3**2 * 0.7 ** (k - 1)
    found = CountLawCurve(tuple(GaussianCurve(0.1 * j) for j in k), tuple(weights), 0.0)
    assert found.delta(1.0) == pytest.approx(0.0493, abs=5e-5)
    assert found.epsilon(found.delta(1.0)) == pytest.approx(1.0, rel=1e-9)
    assert found.epsilon(found.delta(0.0)) == 0.0
    rest = CountLawCurve(found.curves, found.weights, 1e-3)
    assert rest.epsilon(1e-3) == rest.renyi(2.0) == math.inf
    # the exponential of squares beats geometric tails: nothing is left of Rényi costs
    assert found.renyi(8.0) > 1000 > GaussianCurve(0.5).renyi(8.0)


def survival(*transitions, n=60, **options):
    scenario = MarkovChainScenario(transitions, **options)
    bound = scenario.bind(PublicContext(n_records=n))
    return bound.fact(Adjacency, run("full_batch", n, None)).survival


def test_two_states_meet_as_soon_as_their_total_variation_allows():
    k = np.arange(60)
    np.testing.assert_allclose(
        survival(CHAIN), 0.7**k * (1 + 0.3 * k), rtol=1e-6, atol=1e-11
    )
    # the larger of two beliefs, and a first record that is not stationary
    slower = [[0.95, 0.05], [0.2, 0.8]]
    assert np.all(survival(CHAIN, slower) == survival(slower))
    known = survival(CHAIN, initial=[0.5, 0.5])
    assert np.all(known >= survival(CHAIN)) and known[-1] < 1e-2
    for options in ({"pairs": "all"}, {"event_delta": 0.0}, {"table": "a street"}):
        assert survival(CHAIN, **options) is None
    large = np.full((12, 12), 1 / 12) + np.eye(12)
    assert survival(large / large.sum(1, keepdims=True), initial=np.eye(12)[0]) is None


def test_in_blocks_no_record_of_another_block_differs():
    blocks = BlocksScenario(MarkovChainScenario(CHAIN), sizes=[20, 40])
    bound = blocks.bind(PublicContext(n_records=60))
    found = bound.fact(Adjacency, run("full_batch", 60, None)).survival
    np.testing.assert_allclose(found[:40], survival(CHAIN, n=40), atol=1e-13)
    assert np.all(found[40:] == 0)


def test_no_coupling_meets_sooner_than_total_variation_allows():
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = rng.dirichlet(np.ones(3), size=3)
        found, power = survival(step), np.eye(3)
        for k in range(20):
            gaps = np.abs(power[:, None] - power).sum(2).max() / 2
            assert found[k] >= gaps * (1 - 1e-9)
            power = power @ step
        assert np.all(np.diff(found) <= 1e-15) and found[0] == 1


def test_the_law_of_counts_bounds_what_a_series_tells_and_saves_noise():
    n, step = 7, np.array([[0.6, 0.4], [0.3, 0.7]])
    release = run("full_batch", n, None, 1)
    found = PrivacyLoss(0.5, 0.02).calibrate(release, MarkovChainScenario(step))
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert isinstance(found.certificate.curve, CountLawCurve)
    assert says(found.certificate.assumptions, "assume.mean_over_count_law")
    plain = found.certificate.to_dict()
    assert Certificate.from_dict(plain) == found.certificate
    all_at_once = PrivacyLoss(0.5, 0.02).calibrate(release, group(n))
    assert found.noise.scale < 0.8 * all_at_once.noise.scale
    # where it is named, by the number of records that differ but for an event
    named = MarkovChainScenario(step, event_delta=0.12, table="a street")
    fewer = PrivacyLoss(0.5, 0.15).calibrate(release, named)
    fact = named.bind(PublicContext(n_records=n)).fact(Adjacency, release)
    assert (fact.count, fact.window) == (4, 5) and fact.delta < 0.12
    paths = np.array(list(itertools.product((0, 1), repeat=n)))
    masses = np.array([3 / 7, 4 / 7])[paths[:, 0]]
    for a, b in itertools.pairwise(range(n)):
        masses = masses * step[paths[:, a], paths[:, b]]
    sums = (2.0 * paths - 1).sum(1)  # clipped at one
    for i in range(n):
        laws = []
        for value in (0, 1):
            given = masses * (paths[:, i] == value)
            laws += [sums, given / given.sum()]
        for a, b in ((laws[:2], laws[2:]), (laws[2:], laws[:2])):
            assert hockey_stick(found.noise, *a, *b, 0.5) <= 0.02
            assert hockey_stick(fewer.noise, *a, *b, 0.5) <= 0.15


def test_laws_save_noise_in_sampled_runs_too():
    chain = MarkovChainScenario(CHAIN)
    named = MarkovChainScenario(CHAIN, table="a street")
    for release, share in (
        (run("full_batch", size=None), 0.27),
        (run(size=40, steps=1), 0.8),
        (VoteRelease(n_records=4000, n_teachers=200, n_classes=2, n_queries=3), 0.27),
    ):
        law, most = (
            PrivacyLoss().calibrate(release, scenario) for scenario in (chain, named)
        )
        assert law.noise.scale < share * most.noise.scale
        assert law.certificate.epsilon == most.certificate.epsilon == 1.0
        back = PrivacyLoss().certify(law.noise.with_scale(1e5), release, chain)
        assert back.epsilon < 1.0


def test_a_law_needs_no_room_for_an_event():
    narrow = MarkovChainScenario(CHAIN, event_delta=1e-3)
    release = run("full_batch", n=60, size=None)
    usual = PrivacyLoss().calibrate(release, MarkovChainScenario(CHAIN))
    found = PrivacyLoss().calibrate(release, narrow)
    assert found.noise.scale == pytest.approx(usual.noise.scale, rel=1e-4)
    assert found.certificate.event_delta == 0 and not found.certificate.composable
    # what weighs by no law needs the event, and delta has no room for it
    for accountant, scenario in (
        (RenyiDP(delta=1e-5), narrow),
        (PrivacyLoss(), MarkovChainScenario(CHAIN, event_delta=1e-3, table="a street")),
    ):
        with refused(ValueError, "event.mass_above_delta"):
            accountant.calibrate(release, scenario)


def test_the_steps_of_a_run_list_their_group():
    found = PrivacyLoss().certify(GaussianNoise(50.0), run("fixed_size"), group(3))
    assert isinstance(found.curve, PrivacyLossCurve)
    ((pair, times),) = found.curve.steps
    assert isinstance(pair, SubsetGroupPair) and (pair.count, times) == (3, 200)
    assert "exchanged" in str(found.source)
    assert Certificate.from_dict(found.to_dict()) == found
