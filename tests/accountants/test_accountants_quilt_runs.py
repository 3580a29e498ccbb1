"""Markov quilts of a run: influence is paid once, near sets at every step."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from skpuffer.accountants import GroupPrivacy, MarkovQuilt, PrivacyLoss, RenyiDP
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Certificate
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    Adjacency,
    BayesianNetworkScenario,
    BlocksScenario,
    MarkovChainScenario,
    MaxInfluence,
    RecordScenario,
)
from skpuffer.training import Training
from tests.refused import refused

from ..attack import assert_tight

ALPHA = 4.0
N = 12
CHAIN = MarkovChainScenario([[0.7, 0.3], [0.3, 0.7]])


def run(n_steps=5, n_records=N, **options):
    options = {"sampling": "full_batch", **options}
    return GradientRelease(n_records=n_records, n_steps=n_steps, **options)


def votes(length, n_records=N, n_teachers=3):
    return VoteRelease(
        n_records=n_records,
        n_teachers=n_teachers,
        n_classes=2,
        n_queries=5,
        groups=np.arange(n_records) // length,
    )


def by_brute_force(release, cost, scenario=CHAIN, order=ALPHA):
    """Largest price over records of the cheapest quilt, all of them tried."""
    fact = scenario.bind(release.context).fact(MaxInfluence, release)
    (quilts,) = fact.quilts
    n = release.n_records
    prices = []
    for i in range(n):
        ends = itertools.product([None, *range(1, i + 1)], [None, *range(1, n - i)])
        prices.append(
            min(
                quilts.influence(i, a, b, order) + cost(quilts.size(i, a, b))
                for a, b in ends
            )
        )
    return max(prices)


def certify(used, release, scenario=CHAIN, alpha=ALPHA):
    noise = "gaussian" if alpha == ALPHA else "laplace"
    return MarkovQuilt(1.0, alpha, noise=noise).certify(used, release, scenario)


QUERY = QueryRelease(
    query=lambda X, y: X.sum(),
    n_records=N,
    dim=1,
    sensitivity=Sensitivity(add_remove={2: 1.0}, replace={2: 1.0}),
)


# -- known values ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [5.0, 20.0, 80.0])
def test_every_step_pays_for_the_near_set_and_influence_is_paid_once(scale):
    def cost(size):
        return ALPHA * 5 * (2 * size) ** 2 / (2 * scale**2)

    noise, release = GaussianNoise(scale), run()
    exact = by_brute_force(release, cost)
    assert certify(noise, release).epsilon == pytest.approx(exact, rel=1e-9)
    # four times as many steps of twice the noise: the same quilts, paid for once
    longer = certify(GaussianNoise(2 * scale), run(20)).epsilon
    assert longer == pytest.approx(exact, rel=1e-9)
    # a record takes part once in an epoch, whichever batch it is in
    dealt = run(6, sampling="shuffled_epochs", batch_size=N // 6)
    query = QueryRelease(
        query=lambda X, y: X.sum(),
        n_records=N,
        dim=1,
        sensitivity=Sensitivity(add_remove={2: 1.0}, replace={2: 2.0}),
    )
    once = certify(noise, query).epsilon
    assert certify(noise, dealt).epsilon == pytest.approx(once, rel=1e-9)


def test_batches_drawn_by_chance_pay_for_a_group_at_every_step():
    release = run(5, 6, sampling="poisson", batch_size=2)
    noise = GaussianNoise(4.0)
    by_group = RenyiDP(1.0, alpha=ALPHA, delta=None)

    def cost(size):
        group = RecordScenario(int(size), "replace")
        return by_group.certify(noise, release, group).epsilon

    found = certify(noise, release)
    assert found.epsilon == pytest.approx(by_brute_force(release, cost), rel=1e-9)
    # less than in full batches of the same noise for a mean
    full = certify(noise, run(5, 6)).epsilon
    assert cost(1) < found.epsilon < full
    assert any("stays secret" in str(text) for text in found.assumptions)
    accountant = MarkovQuilt(1.0, ALPHA, noise="gaussian")
    back = accountant.calibrate(release, CHAIN)
    # a search leaves out what is too dear, a certificate does not
    assert certify(back.noise, release).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("stay", [0.7, 1 - 1e-9])
def test_no_run_in_drawn_batches_tells_more_than_its_certificate(stay):
    """Exactly: every table, every set of batches, outputs on a fine grid."""
    n, n_steps, rate, sigma, alpha = 3, 2, 1 / 3, 1.5, 2.0
    release = run(n_steps, n, sampling="poisson", batch_size=1, dim=1)
    chain = MarkovChainScenario([[stay, 1 - stay], [1 - stay, stay]])
    states = np.array(list(itertools.product((0, 1), repeat=n)))
    kept = states[:, 1:] == states[:, :-1]
    masses = np.where(kept, stay, 1 - stay).prod(axis=1) / 2
    grid = np.linspace(-3 - 9 * sigma, 3 + 9 * sigma, 301)
    drawn = np.array(list(itertools.product((0, 1), repeat=n)))
    chance = np.prod(np.where(drawn, rate, 1 - rate), axis=1)

    def truth(noise):
        # sums by who is drawn and by table, whose records pull by their states
        sums = drawn @ (2 * states - 1).T
        densities = norm.pdf(grid[:, None, None], sums, noise.scale)
        step = np.einsum("b,gbt->gt", chance, densities)
        found = []
        for i in range(n):
            # both steps, given each value of the secret record
            given = [
                (step * np.where(states[:, i] == a, 2 * masses, 0)) @ step.T
                for a in (0, 1)
            ]
            found += [
                np.sum(p**alpha * q ** (1 - alpha)) * (grid[1] - grid[0]) ** 2
                for p, q in (given, given[::-1])
            ]
        return np.log(max(found)) / (alpha - 1)

    accountant = MarkovQuilt(1.0, alpha, noise="gaussian")
    noise = GaussianNoise(sigma)
    certified = accountant.certify(noise, release, chain).epsilon
    assert 0.3 * certified < truth(noise) <= certified
    # where all records are the secret, a share of the noise is too little
    if stay > 0.99:
        assert truth(GaussianNoise(0.7 * sigma)) > certified


def test_the_noise_of_another_family_adds_up_step_by_step():
    noise, release = LaplaceNoise(60.0), run(clip_order=1)
    exact = by_brute_force(release, lambda size: 5 * 2 * size / 60.0, order=math.inf)
    found = certify(noise, release, alpha=math.inf).epsilon
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_votes_pay_for_the_teachers_near(length):
    def cost(size):
        near = 1 if size == 1 else math.ceil((size - 1) / length) + 1
        return ALPHA * 2 * 5 * min(near, 3) ** 2 / (2 * 10.0**2)

    release = votes(length)
    exact = by_brute_force(release, cost)
    noise = GaussianNoise(10.0)
    assert certify(noise, release).epsilon == pytest.approx(exact, rel=1e-9)
    # in blocks of their own it is the teachers within a block
    blocks = BlocksScenario(CHAIN, N)
    assert certify(noise, release, blocks).epsilon == pytest.approx(exact, rel=1e-9)


def test_an_epsilon_too_small_for_the_orders_there_are():
    release = run(n_records=2)
    accountant = MarkovQuilt(0.01, delta=1e-5, noise="gaussian")
    found = accountant.calibrate(release, CHAIN)
    assert accountant.certify(found.noise, release, CHAIN).epsilon <= 0.01


def test_a_query_and_a_run_share_their_quilts():
    def cost(size):
        steps = 5 * (2 * size / 40.0) ** 2
        return ALPHA / 2 * (steps + (size / 10.0) ** 2)

    parts = [(GaussianNoise(10.0), QUERY), (GaussianNoise(40.0), run())]
    accountant = MarkovQuilt(1.0, ALPHA, noise="gaussian")
    found = accountant.certify_together(parts, CHAIN)
    assert found.epsilon == pytest.approx(by_brute_force(QUERY, cost), rel=1e-9)
    assert not found.composable


# -- properties -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": ALPHA, "noise": "gaussian"},
        {"delta": 1e-3, "noise": "gaussian"},
        {"noise": "laplace"},
    ],
)
@pytest.mark.parametrize("release", [run(clip_order=1), votes(2)], ids=["run", "votes"])
def test_to_a_noise_and_back(params, release):
    accountant = MarkovQuilt(1.0, **params)
    found = accountant.calibrate(release, CHAIN)
    back = accountant.certify(found.noise, release, CHAIN)
    assert back.epsilon == pytest.approx(1.0, rel=1e-6) and back.epsilon <= 1 + 1e-9
    assert not found.certificate.composable
    if accountant.alpha == ALPHA:
        # never more than for all records, nor less than for one
        plain = RenyiDP(1.0, alpha=ALPHA, delta=None)
        one, every = (
            plain.certify(found.noise, release, RecordScenario(k, "replace")).epsilon
            for k in (1, N)
        )
        assert one < 1 < every
    # and it is plain data
    told = Certificate.from_dict(json.loads(json.dumps(found.certificate.to_dict())))
    assert told.curve.renyi(3.0) == found.certificate.curve.renyi(3.0)


def test_an_attack_on_a_run_of_records_that_move_together():
    """All records of a chain that hardly ever changes are the secret."""
    n, n_steps = 6, 4
    stuck = MarkovChainScenario([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]])
    release = run(n_steps, n, dim=1)
    accountant = MarkovQuilt(2.0, delta=0.05, noise="gaussian")
    found = accountant.calibrate(release, stuck)

    def worlds(noise):
        def sums(sign):
            def draw(size, rng):
                return sign * n + noise.sample((size, n_steps), rng)

            return draw

        return [sums(1), sums(-1)]

    assert_tight(
        found.certificate,
        found.noise,
        worlds,
        score=lambda noise: lambda outputs: outputs.sum(axis=1),
        seed=0,
        n_draws=20_000,
    )


def test_a_classifier_trains_under_quilts():
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(200) < 0.3) % 2
    model = PrivateSGDClassifier(
        scenario=CHAIN,
        accountant=MarkovQuilt(8.0, 2.0, noise="gaussian"),
        training=Training(sampling="full_batch", n_steps=3),
        data_norm=1.0,
        classes=[0, 1],
    )
    fitted = model.fit(states[:, None].astype(float), states)
    assert fitted.certificate_.epsilon == 8.0
    assert any("Markov chain" in str(text) for text in fitted.certificate_.assumptions)


# -- networks -------------------------------------------------------------------------


def network(**parents):
    """A network of fair nodes; those with two parents are their exclusive or."""
    tables = {}
    for node, of in parents.items():
        flip = np.array([[0.8, 0.2], [0.2, 0.8]])
        tables[node] = [0.5, 0.5] if not of else flip
        if len(of) == 2:
            tables[node] = flip[np.array([[0, 1], [1, 0]])]
    return BayesianNetworkScenario(
        parents=parents, tables=tables, protected=[next(iter(parents))]
    )


@pytest.mark.parametrize(
    "scenario, count",
    [
        (network(a=(), b=("a",), c=()), 2),
        # an effect of two causes: the other cause stays as it is
        (network(a=(), b=(), c=("a", "b")), 2),
        (network(a=("b",), b=(), c=("b",)), 3),
    ],
)
def test_a_network_says_how_many_records_can_differ(scenario, count):
    release = run(n_records=3)
    fact = scenario.bind(release.context).fact(Adjacency, release)
    assert (fact.count, fact.count_is_certain) == (count, True)
    found = PrivacyLoss().calibrate(release, scenario).noise.scale
    group = PrivacyLoss().calibrate(release, RecordScenario(count, "replace"))
    assert found == group.noise.scale
    quilts = MarkovQuilt(noise="laplace")
    assert quilts.supports(run(n_records=3, clip_order=1), scenario)
    # said at once, and not only when noise is set
    answer = quilts.supports(release, scenario)
    assert not answer and "clip_order=1" in str(answer.reason)


def random_belief(rng, n):
    """A chain or a network of so many bits, and the masses of all its outcomes."""
    states = np.array(list(itertools.product((0, 1), repeat=n)))
    masses = np.ones(len(states))
    if rng.random() < 0.5:
        change = rng.uniform(0.05, 0.5, 2)
        matrix = np.array([[1 - change[0], change[0]], [change[1], 1 - change[1]]])
        first = rng.dirichlet([2, 2])
        for i in range(n):
            given = first if i == 0 else matrix[states[:, i - 1]].T
            masses = masses * np.choose(states[:, i], np.broadcast_arrays(*given))
        return MarkovChainScenario(matrix, first), states, masses
    parents, tables = {}, {}
    for i in range(n):
        of = np.sort(rng.choice(i, size=min(i, rng.integers(3)), replace=False))
        ones = rng.uniform(0.15, 0.85, (2,) * len(of))
        tables[i] = np.stack([1 - ones, ones], axis=-1)
        parents[i] = tuple(of.tolist())
        masses = masses * tables[i][(*states[:, of].T, states[:, i])]
    return BayesianNetworkScenario(parents, tables), states, masses


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 8.0, "alpha": 2.0}, {"epsilon": 3.0, "delta": 0.02}],
    ids=str,
)
def test_no_run_in_blocks_of_a_network_tells_more_than_its_certificate(options):
    """Exactly: every outcome of a block, whose records pull by their states."""
    n, n_steps, seen, rng = 6, 2, [], np.random.default_rng(0)
    epsilons = np.linspace(0, 8, 17)
    release = run(n_steps, 2 * n, dim=1)
    accountant = MarkovQuilt(noise="gaussian", **options)

    def truth(scale, states, masses, weights):
        """Delta at each epsilon, and the divergence of order two."""
        # what is known of equal steps is their mean
        scale, sums = scale / math.sqrt(n_steps), (2 * states - 1) @ weights
        ends = np.abs(sums).max() + 9 * scale
        grid = np.linspace(-ends, ends, 401)
        densities = norm.pdf(grid[:, None], sums, scale) * (grid[1] - grid[0])
        deltas, divergence = np.zeros(len(epsilons)), 0.0
        for i in range(n):
            given = np.stack([np.where(states[:, i] == a, masses, 0) for a in (0, 1)])
            laws = densities @ (given / given.sum(axis=1, keepdims=True)).T
            for p, q in (laws.T, laws.T[::-1]):
                excess = p - np.exp(epsilons)[:, None] * q
                deltas = np.maximum(deltas, np.maximum(excess, 0).sum(axis=1))
                divergence = max(divergence, math.log(np.sum(p**2 / q)))
        return deltas, divergence

    for _ in range(6):
        scenario, states, masses = random_belief(rng, n)
        found = accountant.calibrate(release, BlocksScenario(scenario, n))
        curve, scale = found.certificate.curve, float(found.noise.scale)
        allowed = np.array([curve.delta(epsilon) for epsilon in epsilons])
        for weights in (np.ones(n), np.eye(n)[n // 2], rng.choice([-1, 0, 1], n)):
            deltas, divergence = truth(scale, states, masses, weights)
            assert (deltas <= allowed + 1e-9).all()
            assert divergence <= curve.renyi(2.0) * (1 + 1e-6)
            less = truth(0.7 * scale, states, masses, weights)
            seen.append(max(np.max(less[0] - allowed), less[1] / curve.renyi(2.0) - 1))
    # a share of the noise is too little for some of them
    assert max(seen) > 0.01


# -- what is refused ------------------------------------------------------------------


def test_moves_of_columns_are_no_numbers_of_records():
    scenario = BayesianNetworkScenario(
        parents={"a": (), "b": ("a",)},
        tables={"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.1, 0.9]]},
        level="attribute",
        moves={"a": 1.0, "b": 2.0},
    )
    answer = MarkovQuilt(delta=1e-5, noise="gaussian").supports(run(), scenario)
    assert not answer and "MaxInfluence" in str(answer.reason)
    with refused(UnsupportedError, "accountant.facts_not_offered"):
        MarkovQuilt(delta=1e-5, noise="gaussian").calibrate(run(), scenario)


def test_batches_by_chance_are_refused_but_for_poisson_at_an_order():
    gaussian = {"noise": "gaussian"}
    for sampling, params, remedy in (
        ("poisson", {}, "noise='gaussian'"),
        ("poisson", {"delta": 1e-5, **gaussian}, "give an alpha"),
        ("fixed_size", {"alpha": ALPHA, **gaussian}, "'poisson'"),
        ("with_replacement", {"alpha": ALPHA, **gaussian}, "'poisson'"),
    ):
        release = run(sampling=sampling, batch_size=2)
        answer = MarkovQuilt(**params).supports(release, CHAIN)
        assert (
            not answer
            and remedy in str(answer.reason)
            and "full_batch" in str(answer.reason)
        )
        assert str(answer.reason).startswith("MarkovQuilt has no bound")
        with refused(
            UnsupportedError,
            ("quilt.delta_under_sampling", "quilt.near_sets_under_sampling"),
        ):
            MarkovQuilt(**params).calibrate(release, CHAIN)


def test_gradients_that_are_clipped_in_too_wide_a_norm():
    with refused(UnsupportedError, "gradient.clip_order_too_large"):
        MarkovQuilt().calibrate(run(dim=None), CHAIN)


def test_group_privacy_names_who_would_do():
    reason = str(GroupPrivacy().supports(run(), CHAIN).reason)
    assert "MarkovQuilt" in reason
