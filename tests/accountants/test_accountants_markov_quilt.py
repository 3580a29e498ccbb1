"""The Markov quilt mechanism: reference values, and enumeration of small chains."""

import itertools
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import GroupPrivacy, MarkovQuilt
from skpuffer.accountants._quilt_runs import ORDERS
from skpuffer.distributions import Discrete
from skpuffer.exceptions import (
    CompositionError,
    InfiniteDistanceError,
    ScenarioError,
    Statement,
    UnsupportedError,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion, compose
from skpuffer.privacy_loss import renyi_divergence, renyi_to_approximate
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    BayesianNetworkScenario,
    MarkovChainScenario,
    MaxInfluence,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused

from ..attack import SHARE, assert_tight, noisy_laws

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "markov_quilt.json").read_text("utf-8")
)
TRANSITION = ORACLES["chain"]["transition"]
CHAIN = MarkovChainScenario(TRANSITION)
FAMILIES = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}
ONE = {1: 1.0, 2: 1.0}


def count_of(n, move=1.0, **options):
    known = {norm: move * value for norm, value in ONE.items()}
    return QueryRelease(
        **{
            "query": lambda X, y: X.sum(),
            "n_records": n,
            "dim": 1,
            "name": "count",
            "sensitivity": Sensitivity(add_remove=known, replace=known),
            **options,
        }
    )


# -- reference values ---------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["scale"])
@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_scales_of_reference(row, method):
    accountant = MarkovQuilt(epsilon=row["epsilon"], method=method)
    found = accountant.calibrate(count_of(row["n_records"]), CHAIN)
    assert found.noise.scale == pytest.approx(row[method], rel=1e-9)
    certificate = found.certificate
    assert certificate.notion is Notion.PURE_PUFFERFISH
    assert (certificate.epsilon, certificate.alpha) == (row["epsilon"], math.inf)
    assert certificate.rpp_epsilon == certificate.epsilon


@pytest.mark.parametrize("row", ORACLES["renyi"])
def test_renyi_costs_of_reference(row):
    noise = FAMILIES[row["noise"]](row["scale"])
    accountant = MarkovQuilt(alpha=row["alpha"], noise=row["noise"])
    release = count_of(row["n_records"])
    certificate = accountant.certify(noise, release, CHAIN)
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    assert certificate.epsilon == pytest.approx(row["epsilon"], abs=6e-11)
    group = noise.renyi(row["alpha"], float(row["n_records"]))
    assert group == pytest.approx(row["group"], rel=1e-4)


def chain_worlds(initial, transition, n, index, weights):
    """Values of a weighted sum, and their law given each state of one record."""
    k = len(initial)
    laws = {}
    for x in itertools.product(range(k), repeat=n):
        steps = [transition[a][b] for a, b in itertools.pairwise(x)]
        mass = initial[x[0]] * math.prod(steps)
        value = sum(w * s for w, s in zip(weights, x, strict=True))
        law = laws.setdefault(x[index], {})
        law[value] = law.get(value, 0.0) + mass
    points = sorted({value for law in laws.values() for value in law})
    table = np.array([[laws.get(s, {}).get(v, 0.0) for v in points] for s in range(k)])
    masses = table.sum(axis=1)
    return np.array(points, float), table[masses > 0] / masses[masses > 0, None]


def pure_loss(points, table, scale):
    """Exact max-divergence of atoms plus Laplace noise.

    Between two atoms each density is a sum of a growing and a falling exponential, so
    that the ratio of two densities is monotone there: the extremes are at atoms.
    """
    density = np.exp(-np.abs(points[:, None] - points) / scale) @ table.T
    if density.shape[1] < 2:
        return 0.0
    log = np.log(density)
    return float((log[:, :, None] - log[:, None, :]).max())


def test_true_loss_of_reference():
    row = ORACLES["true_loss"]
    n, initial = row["n_records"], ORACLES["chain"]["initial"]
    true = max(
        pure_loss(*chain_worlds(initial, TRANSITION, n, i, [1] * n), row["scale"])
        for i in range(n)
    )
    assert true == pytest.approx(row["epsilon"], abs=6e-5)
    assert true <= row["allowed"]


# -- the promise, by enumeration ----------------------------------------------------


@st.composite
def chains(draw):
    k = draw(st.integers(2, 3))

    def law():
        weights = draw(st.lists(st.integers(0, 5), min_size=k, max_size=k))
        assume(sum(weights))
        return np.array(weights, float) / sum(weights)

    return law(), np.array([law() for _ in range(k)])


def scenario_of(initial, transition, n):
    scenario = MarkovChainScenario(transition, initial)
    try:
        scenario.bind(count_of(n).context)
    except ScenarioError:
        assume(False)  # nothing is secret
    return scenario


@given(
    chains(),
    st.lists(st.integers(-2, 2), min_size=2, max_size=5),
    st.floats(0.3, 4.0),
    st.sampled_from(["exact", "approximate"]),
)
def test_pure_promise_on_small_chains(chain, weights, epsilon, method):
    n, k = len(weights), len(chain[0])
    scenario = scenario_of(*chain, n)
    move = float(max(map(abs, weights)) * (k - 1)) or 1.0
    try:
        found = MarkovQuilt(epsilon=epsilon, method=method).calibrate(
            count_of(n, move), scenario
        )
    except UnsupportedError:
        assert method == "approximate"
        return
    assert found.noise.scale <= n * move / epsilon * (1 + 1e-12)
    for index in range(n):
        world = chain_worlds(*chain, n, index, weights)
        assert pure_loss(*world, found.noise.scale) <= epsilon * (1 + 1e-12)


@given(
    chains(),
    st.lists(st.integers(-1, 2), min_size=2, max_size=4),
    st.sampled_from([1.5, 2.0, 6.0]),
    st.sampled_from(["laplace", "gaussian"]),
)
def test_renyi_promise_on_small_chains(chain, weights, alpha, family):
    """By a sum over a fine grid, which is accurate for smooth densities."""
    n, k = len(weights), len(chain[0])
    scenario = scenario_of(*chain, n)
    move = float(max(map(abs, weights)) * (k - 1)) or 1.0
    found = MarkovQuilt(alpha=alpha, noise=family).calibrate(
        count_of(n, move), scenario
    )
    scale = found.noise.scale
    for index in range(n):
        points, table = chain_worlds(*chain, n, index, weights)
        reach = 25 * scale
        grid = np.linspace(points[0] - reach, points[-1] + reach, 8001)
        u = np.abs(grid[:, None] - points) / scale
        law = np.exp(-u if family == "laplace" else -(u**2) / 2) @ table.T
        law = (law / law.sum(axis=0)).T
        for a, b in itertools.permutations(range(len(law)), 2):
            assert renyi_divergence(law[a], law[b], alpha) <= 1.0 + 1e-5


@settings(max_examples=10)
@given(
    chains(),
    st.lists(st.integers(-1, 2), min_size=2, max_size=4),
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from([1e-3, 0.05, 0.3]),
)
def test_approximate_promise_on_small_chains(chain, weights, family, delta):
    """By the same sum; kinks of Laplace densities cost some of its accuracy."""
    n, k = len(weights), len(chain[0])
    scenario = scenario_of(*chain, n)
    move = float(max(map(abs, weights)) * (k - 1)) or 1.0
    accountant = MarkovQuilt(epsilon=0.8, delta=delta, noise=family)
    found = accountant.calibrate(count_of(n, move), scenario)
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.certificate.epsilon <= 0.8
    for index in range(n):
        points, table = chain_worlds(*chain, n, index, weights)
        scale = found.noise.scale
        grid = np.linspace(points[0] - 25 * scale, points[-1] + 25 * scale, 8001)
        u = np.abs(grid[:, None] - points) / scale
        law = np.exp(-u if family == "laplace" else -(u**2) / 2) @ table.T
        law = (law / law.sum(axis=0)).T
        for a, b in itertools.permutations(range(len(law)), 2):
            excess = np.maximum(law[a] - math.exp(0.8) * law[b], 0).sum()
            assert excess <= delta * (1 + 2e-3)


def test_network_of_a_family():
    """Two parents and a child: enumerated, and no looser than group privacy."""
    tables = {
        "mother": [0.9, 0.1],
        "father": [0.9, 0.1],
        "child": [[[0.9, 0.1], [0.8, 0.2]], [[0.8, 0.2], [0.7, 0.3]]],
    }
    parents = {"mother": (), "father": (), "child": ("mother", "father")}
    scenario = BayesianNetworkScenario(parents, tables)
    found = MarkovQuilt(epsilon=2.0).calibrate(count_of(3), scenario)
    assert found.noise.scale < 3 / 2.0
    ((joint, _),) = scenario._joints()
    for index in range(3):
        table = np.zeros((2, 4))
        for x in itertools.product(range(2), repeat=3):
            table[x[index], sum(x)] += joint[x]
        table /= table.sum(axis=1, keepdims=True)
        assert pure_loss(np.arange(4.0), table, found.noise.scale) <= 2.0


def test_secret_parameters_of_columns():
    """A population's rate is secret, and a linked column's move is paid for."""
    parents = {"rate": (), "treated": ("rate",), "age": ("treated",)}
    step = [[0.6, 0.4], [0.4, 0.6]]
    scenario = BayesianNetworkScenario(
        parents,
        {"rate": [0.5, 0.5], "treated": step, "age": step},
        level="attribute",
        protected=["rate"],
        moves={"rate": 1.0, "treated": 0.5, "age": 2.0},
    )
    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=100, dim=3)
    found = MarkovQuilt(epsilon=2.0).calibrate(release, scenario)
    # the quilt of the second column tells log(0.6 / 0.4) and leaves the first near
    assert found.noise.scale == pytest.approx(1.0 / (2.0 - math.log(1.5)), rel=1e-9)
    assert found.certificate.sensitivity == pytest.approx(1.0)
    assert "moves" in str(found.certificate.assumptions[1])


# -- relations ----------------------------------------------------------------------


@given(
    st.floats(0.02, 0.98),
    st.floats(0.02, 0.98),
    st.integers(2, 60),
    st.floats(0.1, 5.0),
    st.sampled_from([2.0, 8.0, math.inf]),
)
def test_ordered_and_tight(p, q, n, epsilon, alpha):
    scenario = MarkovChainScenario([[1 - p, p], [q, 1 - q]])
    release = count_of(n)
    options = {"epsilon": epsilon, "alpha": alpha}
    accountant = MarkovQuilt(noise="laplace", **options)
    found = accountant.calibrate(release, scenario)
    group = GroupPrivacy(noise="laplace", **options)
    whole = group.calibrate(release, RecordScenario(k=n, relation="replace"))
    one = group.calibrate(release, RecordScenario(k=1, relation="replace"))
    assert found.noise.scale <= whole.noise.scale * (1 + 1e-9)
    assert found.noise.scale >= one.noise.scale * (1 - 1e-9)
    back = accountant.certify(found.noise, release, scenario)
    assert back.epsilon <= epsilon
    if found.noise.scale > one.noise.scale * (1 + 1e-6):
        less = found.noise.with_scale(found.noise.scale * (1 - 1e-6))
        assert accountant.certify(less, release, scenario).epsilon > epsilon
    more = clone(accountant).set_params(epsilon=1.1 * epsilon)
    assert more.calibrate(release, scenario).noise.scale < found.noise.scale
    try:
        bound = clone(accountant).set_params(method="approximate")
        assert bound.calibrate(release, scenario).noise.scale >= found.noise.scale * (
            1 - 1e-9
        )
    except UnsupportedError:
        assert abs(1 - p - q) > 1 - 1e-8
    near = clone(accountant).set_params(max_distance=2)
    assert near.calibrate(release, scenario).noise.scale >= found.noise.scale * (
        1 - 1e-9
    )


def test_independent_records_cost_what_one_record_costs():
    scenario = MarkovChainScenario([[0.3, 0.7], [0.3, 0.7]])
    found = MarkovQuilt(epsilon=0.5).calibrate(count_of(1000), scenario)
    assert found.noise.scale == pytest.approx(2.0, rel=1e-6)


def test_a_transition_never_seen():
    """What is next to the secret gives it away; what is further may not."""
    never = MarkovChainScenario([[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.3, 0.3, 0.4]])
    found = MarkovQuilt().calibrate(count_of(100), never)
    curve = found.certificate.curve
    (quilts,) = curve.fact.quilts
    assert quilts.influence(50, 1, 1) == math.inf
    assert found.noise.scale < 30
    # in a cycle no distance helps: group privacy
    cycle = MarkovChainScenario([[0.0, 1.0], [1.0, 0.0]])
    assert MarkovQuilt().calibrate(count_of(100), cycle).noise.scale == 100.0
    with refused(UnsupportedError, "markov.no_spectral_gap"):
        MarkovQuilt(method="approximate").calibrate(count_of(100), cycle)
    apart = MarkovChainScenario([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    assert MarkovQuilt().calibrate(count_of(100), apart).noise.scale == 100.0


def test_every_belief_is_kept():
    slow, fast = TRANSITION, [[0.5, 0.5], [0.4, 0.6]]
    release = count_of(80)
    scales = [
        MarkovQuilt().calibrate(release, MarkovChainScenario(chain)).noise.scale
        for chain in (slow, fast)
    ]
    both = MarkovQuilt().calibrate(release, MarkovChainScenario([fast, slow]))
    assert both.noise.scale == pytest.approx(max(scales), rel=1e-9)


def test_a_histogram_moves_by_two():
    n = 200
    known = Sensitivity(add_remove={1: 1.0, 2: 1.0}, replace={1: 2.0, 2: math.sqrt(2)})
    bins = count_of(n, dim=4, query=lambda X, y: np.zeros(4), sensitivity=known)
    one = MarkovQuilt().calibrate(count_of(n), CHAIN)
    many = MarkovQuilt().calibrate(bins, CHAIN)
    assert many.noise.scale == pytest.approx(2 * one.noise.scale, rel=1e-9)
    assert (many.certificate.norm, one.certificate.norm) == (1.0, 1.0)
    gaussian = MarkovQuilt(alpha=4, noise="gaussian")
    many, one = (gaussian.calibrate(r, CHAIN) for r in (bins, count_of(n)))
    assert many.noise.scale == pytest.approx(math.sqrt(2) * one.noise.scale, rel=1e-6)


def test_units_and_slack():
    n = 60
    plain = MarkovQuilt().calibrate(count_of(n), CHAIN)
    units = count_of(n, dim=2, units=(1.0, 10.0), query=lambda X, y: np.zeros(2))
    found = MarkovQuilt().calibrate(units, CHAIN)
    assert found.noise.scale == pytest.approx(
        (plain.noise.scale, 10 * plain.noise.scale), rel=1e-9
    )
    loose = MarkovQuilt().calibrate(count_of(n, slack=0.5, modulus_norm=1), CHAIN)
    assert loose.noise.scale > plain.noise.scale
    still = count_of(n, sensitivity=Sensitivity(add_remove={1: 0.0}, replace={1: 0.0}))
    found = MarkovQuilt().calibrate(still, CHAIN)
    assert found.noise.is_zero
    assert found.certificate.epsilon == 0.0


def test_other_noise_by_the_general_way():
    """A family whose cost the accountant knows nothing of."""

    class Foreign(LaplaceNoise):
        pass

    found = MarkovQuilt().calibrate(count_of(40), CHAIN)
    same = MarkovQuilt(noise=Foreign()).calibrate(count_of(40), CHAIN)
    assert same.noise.scale == pytest.approx(found.noise.scale, rel=1e-9)
    shaped = CorrelatedGaussianNoise(covariance=[[4.0, 0.0], [0.0, 1.0]])
    release = count_of(40, dim=2, query=lambda X, y: np.zeros(2))
    accountant = MarkovQuilt(alpha=2, noise="gaussian")
    whole = GaussianNoise(30.0)
    assert accountant.certify(whole, release, CHAIN).epsilon < (
        accountant.certify(shaped, release, CHAIN).epsilon
    )


# -- curves and composition ---------------------------------------------------------


def test_curve_is_one():
    found = MarkovQuilt(epsilon=0.5).calibrate(count_of(50), CHAIN)
    curve = found.certificate.curve
    costs = [curve.renyi(alpha) for alpha in (1.25, 2, 4, 16, 128, math.inf)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(0.5, rel=1e-9)
    epsilons = [curve.epsilon(delta) for delta in (1e-9, 1e-4, 0.01, 0.2)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert all(0 <= epsilon <= 0.5 + 1e-9 for epsilon in epsilons)
    deltas = [curve.delta(epsilon) for epsilon in (0.0, 0.1, 0.4, 0.5001)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] < 1e-12
    for delta, epsilon in zip((1e-4, 0.01), epsilons[1:], strict=False):
        assert curve.delta(epsilon + 1e-9) <= delta * (1 + 1e-6)
    approximate = found.certificate.to_approximate(0.01)
    assert approximate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert approximate.epsilon == curve.epsilon(0.01)
    plain = json.loads(json.dumps(found.certificate.to_dict()))
    assert plain["curve"]["kind"] == "markov_quilt"
    assert plain["curve"]["quilts"][0]["transition"] == TRANSITION
    again = pickle.loads(pickle.dumps(found.certificate))
    assert again.curve.renyi(2) == pytest.approx(curve.renyi(2), rel=1e-11)


def test_an_approximate_promise_takes_the_better_way():
    release = count_of(60)
    pure = MarkovQuilt(noise="laplace").calibrate(release, CHAIN)
    for delta in (1e-6, 0.01, 0.2):
        found = MarkovQuilt(delta=delta, noise="laplace").calibrate(release, CHAIN)
        assert found.noise.scale <= pure.noise.scale * (1 + 1e-9)
        assert found.certificate.delta == delta
        assert found.certificate.event_delta == 0.0
        back = MarkovQuilt(delta=delta).certify(found.noise, release, CHAIN)
        assert back.epsilon <= 1.0
    assert found.noise.scale < 0.5 * pure.noise.scale


def test_certificates_are_not_added():
    found = MarkovQuilt().calibrate(count_of(50), CHAIN)
    assert not found.certificate.composable
    with refused(CompositionError, "compose.certificate_not_composable"):
        compose([found.certificate, found.certificate])


def test_releases_together_share_their_quilts():
    accountant, release = MarkovQuilt(), count_of(60)
    noise = LaplaceNoise(40.0)
    one = accountant.certify(noise, release, CHAIN)
    same = accountant.certify_together([(noise, release)], CHAIN)
    assert same.epsilon == one.epsilon
    two = accountant.certify_together([(noise, release)] * 2, CHAIN)
    assert two.n_releases == 2
    assert one.epsilon < two.epsilon <= 2 * one.epsilon
    # two equal releases cost what one with half the noise does
    half = accountant.certify(LaplaceNoise(20.0), release, CHAIN)
    assert two.epsilon == pytest.approx(half.epsilon, rel=1e-9)
    assert two.to_approximate(0.01).epsilon <= two.epsilon
    with refused(CompositionError, "quilt.record_counts_differ"):
        accountant.certify_together(
            [(noise, release), (noise, count_of(50))], MarkovChainScenario(TRANSITION)
        )
    visits = [
        replace(release, context=PublicContext(n_records=60, feature_names=(name,)))
        for name in ("u", "su")
    ]
    with refused(CompositionError, "quilt.column_names_differ"):
        accountant.certify_together([(noise, visit) for visit in visits], CHAIN)
    # rows without names may be those of a table that has them
    unnamed = replace(release, context=PublicContext(n_records=60))
    mixed = accountant.certify_together([(noise, unnamed), (noise, visits[0])], CHAIN)
    assert mixed.epsilon == two.epsilon
    assert any("same table" in str(text) for text in two.assumptions)
    assert not any("same table" in str(text) for text in one.assumptions)
    with refused(CompositionError, "quilt.no_release"):
        accountant.certify_together([], CHAIN)
    with refused(TypeError, "noise.not_a_noise"):
        accountant.certify_together([(3.0, release)], CHAIN)


def test_each_of_several_releases_pays_for_its_own_moves():
    """In any order, and where one is of the same records ten times as far apart."""
    chain = MarkovChainScenario(TRANSITION, states=[[0.0], [1.0]])
    noise, context = LaplaceNoise(40.0), PublicContext(n_records=60, n_features=1)

    def near(X, y):
        return X

    def far(X, y):
        return 10.0 * X

    parts = [
        (noise, count_of(60, 1e3, contribution=of, is_sum=True, context=context))
        for of in (near, far)
    ]
    alone = [MarkovQuilt().certify(*part, chain).epsilon for part in parts]
    assert alone[0] < 0.3 * alone[1]
    orders = (parts, parts[::-1])
    found = [MarkovQuilt().certify_together(each, chain).epsilon for each in orders]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[0] >= alone[1]


@given(chains(), st.data())
def test_two_releases_on_small_chains(chain, data):
    """All of it enumerated: the loss of the pair is at most what is certified."""
    n = data.draw(st.integers(2, 4))
    weights = [
        data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)) for _ in range(2)
    ]
    scenario, k = scenario_of(*chain, n), len(chain[0])
    noises = [LaplaceNoise(3.0), LaplaceNoise(5.0)]
    release = count_of(n, float(k - 1))
    certificate = MarkovQuilt().certify_together(
        [(noise, release) for noise in noises], scenario
    )
    initial, transition = chain
    for index in range(n):
        masses, values = {}, {}
        for x in itertools.product(range(k), repeat=n):
            steps = [transition[a][b] for a, b in itertools.pairwise(x)]
            mass = initial[x[0]] * math.prod(steps)
            masses.setdefault(x[index], []).append(mass)
            at = [sum(w * s for w, s in zip(ws, x, strict=True)) for ws in weights]
            values.setdefault(x[index], []).append(at)
        atoms = [sorted({v[j] for of in values.values() for v in of}) for j in (0, 1)]
        grid = np.array(list(itertools.product(*atoms)), float)
        densities = []
        for state, mass in masses.items():
            if sum(mass) == 0:
                continue
            u = np.abs(grid[:, None, :] - np.array(values[state], float))
            exponent = u[..., 0] / 3.0 + u[..., 1] / 5.0
            densities.append(np.log(np.exp(-exponent) @ mass / sum(mass)))
        for a, b in itertools.permutations(densities, 2):
            assert (a - b).max() <= certificate.epsilon * (1 + 1e-12)


# -- sampled ------------------------------------------------------------------------


#: A chain, its initial law, and the part of the noise that is found to be too little:
#: a quilt covers all records within it, of which few move in a chain that forgets. All
#: do in one that hardly ever moves.
ATTACKED = {
    "moving": (TRANSITION, ORACLES["chain"]["initial"], 0.1),
    "frozen": ([[1 - 1e-5, 1e-5], [1e-5, 1 - 1e-5]], [0.5, 0.5], SHARE),
}


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0},
        {"epsilon": 0.5, "alpha": 4.0, "noise": "gaussian"},
        {"epsilon": 0.5, "delta": 0.05, "noise": "gaussian"},
    ],
    ids=["pure", "renyi", "approximate"],
)
@pytest.mark.parametrize("chain", ATTACKED)
def test_an_attacker_learns_no_more_than_promised(options, chain):
    transition, initial, share = ATTACKED[chain]
    n, index = 20, 9
    known = MarkovChainScenario(transition)
    found = MarkovQuilt(**options).calibrate(count_of(n), known)
    points, table = sum_laws(initial, n, index, transition)
    assert_tight(
        found.certificate,
        found.noise,
        **noisy_laws(*(Discrete(points, masses) for masses in table)),
        share=share,
        seed=5,
        n_draws=30_000,
    )


def sum_laws(initial, n, index, transition=TRANSITION):
    """Law of the count given each state of one record, by dynamic programming."""
    step = np.array(transition)
    table = []
    for state in (0, 1):
        forward = np.zeros((2, n + 1))
        for t in range(n):
            moved = np.zeros((2, n + 1))
            for v in (0, 1):
                if t == index and v != state:
                    continue
                source = step[:, v] @ forward if t else initial[v] * np.eye(1, n + 1)[0]
                moved[v, v:] = source[: n + 1 - v]
            forward = moved
        law = forward.sum(axis=0)
        table.append(law / law.sum())
    return np.arange(n + 1.0), np.array(table)


def simulate(n_draws, n, index, state, rng):
    """Counts of a stationary reversible two-state chain with one record known."""
    stays = np.array([TRANSITION[0][0], TRANSITION[1][1]])
    x = np.full((n_draws, n), state)
    for t in range(index + 1, n):
        x[:, t] = np.where(rng.random(n_draws) < stays[x[:, t - 1]], 1, 0) ^ (
            1 - x[:, t - 1]
        )
    for t in range(index - 1, -1, -1):  # a two-state chain is reversible
        x[:, t] = np.where(rng.random(n_draws) < stays[x[:, t + 1]], 1, 0) ^ (
            1 - x[:, t + 1]
        )
    return x.sum(axis=1)[:, None].astype(float)


def test_the_law_is_that_of_a_simulated_chain():
    points, table = sum_laws(ORACLES["chain"]["initial"], 20, 9)
    drawn = simulate(20_000, 20, 9, 1, np.random.default_rng(0))
    rates = np.mean(drawn == points, axis=0)
    np.testing.assert_allclose(rates, table[1], atol=0.015)


# -- estimators, and bad input ------------------------------------------------------


def test_mean_of_a_series():
    x = np.random.default_rng(0).integers(0, 2, size=(300, 1)).astype(float)
    accountant = MarkovQuilt(epsilon=2.0)
    model = PrivateMean(CHAIN, accountant).fit(x)
    certificate = model.certificate_
    assert certificate.notion is Notion.PURE_PUFFERFISH
    # a state moves the mean by 1/300, and group privacy would cover all 300 of them
    scale = accountant.calibrate(count_of(300), CHAIN).noise.scale / 300
    assert np.max(model.noise_.scale) == pytest.approx(scale, rel=1e-6)
    assert scale < 0.2 / accountant.epsilon
    assert "MarkovQuilt" in certificate.details()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"epsilon": 0.0}, Statement("parameter.not_positive", name="epsilon")),
        ({"epsilon": math.inf}, Statement("parameter.not_positive", name="epsilon")),
        ({"alpha": 1.0}, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ({"noise": "gaussian"}, Statement("noise.family_not_pure", family="gaussian")),
        ({"noise": "cauchy-ish"}, Statement("parameter.option_unknown", name="noise")),
        ({"delta": 1.5}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": 0.1, "alpha": 2.0}, Statement("quilt.alpha_and_delta_both")),
        ({"method": "fast"}, Statement("parameter.option_unknown", name="method")),
        (
            {"max_distance": 0},
            Statement("parameter.count_too_small", name="max_distance"),
        ),
    ],
)
def test_parameters_that_are_none(options, said):
    with refused(ValueError, said.code, **said.parameters):
        MarkovQuilt(**options).calibrate(count_of(10), CHAIN)


def test_what_quilts_cannot_do():
    accountant = MarkovQuilt()
    with refused(UnsupportedError, "accountant.facts_not_offered"):
        accountant.calibrate(count_of(10), RecordScenario())
    across = MarkovChainScenario(TRANSITION, pairs="all")
    assert not accountant.supports(count_of(10), across)
    assert accountant.supports(count_of(10), CHAIN)
    unknown = QueryRelease(query=lambda X, y: X.sum(), n_records=10, dim=1)
    assert not accountant.supports(unknown, CHAIN)
    wide = count_of(10, dim=None, sensitivity=Sensitivity(add_remove={2: 1.0}))
    with refused(InfiniteDistanceError, "quilt.sensitivity_unbounded"):
        accountant.calibrate(wide, CHAIN)
    with refused(TypeError, "noise.not_a_noise"):
        accountant.certify(2.0, count_of(10), CHAIN)


def test_whole_noise_is_for_whole_numbers():
    chain = CHAIN
    mean = QueryRelease(
        contribution=lambda X, y: X, is_sum=True, factor=0.1, n_records=10, dim=1
    )
    with refused(UnsupportedError, "noise.integer_family_for_reals"):
        MarkovQuilt(1.0, noise="discrete_laplace").calibrate(mean, chain)
    count = replace(mean, factor=1.0, is_integer=True)
    found = MarkovQuilt(1.0, noise="discrete_laplace").calibrate(count, chain)
    assert found.noise.integer


def test_a_coordinate_without_noise_is_refused():
    release = QueryRelease(
        contribution=lambda X, y: np.hstack([X, X]), is_sum=True, n_records=10, dim=2
    )
    with refused(ValueError, "quilt.noise_scale_not_positive"):
        MarkovQuilt(1.0).certify(LaplaceNoise((0.0, 1.0)), release, CHAIN)


def test_a_window_leaves_plain_data():
    scenario = MarkovChainScenario(TRANSITION, event_delta=1e-6)
    release = QueryRelease(
        contribution=lambda X, y: np.sin(X), is_sum=True, n_records=3000, dim=1
    )
    certificate = GroupPrivacy(1.0).calibrate(release, scenario).certificate
    assert json.loads(json.dumps(certificate.to_dict()))["event_delta"] > 0


def test_nothing_moved_is_certified_without_noise():
    still = QueryRelease(
        contribution=lambda X, y: 0 * X, is_sum=True, n_records=10, dim=1
    )
    found = MarkovQuilt(1.0).calibrate(still, CHAIN)
    assert found.noise.is_zero
    assert MarkovQuilt(1.0).certify(found.noise, still, CHAIN).epsilon == 0


def test_what_is_not_proved_of_the_noise_is_said():
    release = QueryRelease(
        contribution=lambda X, y: np.hstack([X, 1 - X]), is_sum=True, n_records=3, dim=2
    )
    noise = GeneralizedGaussianNoise(30.0, beta=1.5)
    plain = MarkovQuilt(1.0, 2.0, noise=noise).certify(noise, release, CHAIN)
    traded = MarkovQuilt(1.0, delta=1e-3, noise=noise).certify(noise, release, CHAIN)
    said = ["not proved" in " ".join(map(str, c.assumptions)) for c in (plain, traded)]
    assert said == [False, True]


@pytest.mark.parametrize("noise", FAMILIES)
@pytest.mark.parametrize("promise", [{"alpha": 2.0}, {"delta": 1e-5}])
def test_what_no_record_moves_needs_no_noise(noise, promise):
    still = count_of(20, move=0.0)
    found = MarkovQuilt(noise=noise, **promise).calibrate(still, CHAIN)
    assert found.noise.is_zero
    assert found.certificate.epsilon == 0
    assert found.certificate.curve.renyi(3.0) == 0


# -- the search ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "family, scale",
    # found when every order was asked at every scale
    [("gaussian", 79.34949413329569), ("laplace", 22.298360636704768)],
)
def test_delta_takes_the_least_noise_of_all_routes(family, scale):
    accountant = MarkovQuilt(delta=1e-5, noise=family)
    release = count_of(300)
    found = accountant.calibrate(release, CHAIN).noise.scale
    assert found == pytest.approx(scale, rel=1e-9)

    def routes(scale):
        certificate = accountant.certify(FAMILIES[family](scale), release, CHAIN)
        curve = certificate.curve
        orders = renyi_to_approximate(ORDERS, curve.costs, 1e-5)
        return orders <= 1, curve.variation(1.0) <= 1e-5

    # one of them keeps the promise, and with a little less noise none does
    assert any(routes(found * (1 + 1e-9)))
    assert not any(routes(found * (1 - 1e-6)))


def test_noise_once_found_is_not_searched_for_again(monkeypatch):
    scenario = MarkovChainScenario([[0.8, 0.2], [0.3, 0.7]])
    accountant, release = MarkovQuilt(delta=1e-5, noise="gaussian"), count_of(20)
    first = accountant.calibrate(release, scenario)
    asked = []
    worst = MaxInfluence.worst

    def counted(*args, **kwargs):
        asked.append(args)
        return worst(*args, **kwargs)

    monkeypatch.setattr(MaxInfluence, "worst", counted)
    again = clone(accountant).calibrate(count_of(20), clone(scenario))
    assert again.noise == first.noise
    assert not asked
    # nor is it taken for that of another budget, move or table
    for other, query in (
        (clone(accountant).set_params(epsilon=0.9), release),
        (accountant, count_of(20, move=2.0)),
        (accountant, count_of(10)),
    ):
        asked.clear()
        assert other.calibrate(query, scenario).noise != first.noise
        assert asked
