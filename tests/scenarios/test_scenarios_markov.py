"""Records that form a Markov chain."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
)
from skpuffer.distributions import distribution_distance
from skpuffer.distributions._lattice_sum import lattice_of, mass_error
from skpuffer.exceptions import PrivacyWarning, ScenarioError, Statement
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    BlocksScenario,
    JointTableScenario,
    MarkovChainScenario,
    MaxInfluence,
    OutputDistributions,
)
from skpuffer.scenarios._markov._chains import (
    TINY,
    Chains,
    Marginals,
    exact_entries,
    exact_sum_distributions,
    float_sum_distributions,
    mix,
    settling_marginals,
    stationary_distribution,
    window_delta,
    window_sum_distributions,
)
from skpuffer.scenarios._markov._scenario import meeting
from skpuffer.summary import PrivateMean, PrivateSummary
from skpuffer.transport import near_radius, wasserstein_distance
from tests.attack import SHARE, assert_tight, noisy_laws
from tests.distributions.lattices import steps_apart
from tests.refused import refused, says, warned

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_scenarios.json").read_text()
)
CHAIN = ORACLES["chain"]
P = np.array(CHAIN["transition"])
COUNT = np.array([0, 1])
PURE = GeneralWasserstein(epsilon=1.0, alpha=math.inf, noise="laplace")


def identity(X, y=None):
    return np.asarray(X, dtype=float)


def count_release(n, **options):
    return QueryRelease(
        contribution=identity, is_sum=True, n_records=n, dim=1, **options
    )


def facts(scenario, release, kind=OutputDistributions):
    return scenario.bind(release.context).fact(kind, release)


def largest(fact, norm=2):
    return max(
        distribution_distance(u, v, norm) for *_, u, v in fact.pairs_of_distributions()
    )


# -- known values ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chain", "symmetric_chain"])
def test_known_distances(name):
    oracle = ORACLES[name]
    for n, distance in oracle["distance"].items():
        found = PURE.calibrate(
            count_release(int(n)), MarkovChainScenario(oracle["transition"])
        )
        assert found.certificate.sensitivity == distance
        assert found.certificate.notion is Notion.PURE_PUFFERFISH


def test_known_distances_record_by_record():
    fact = facts(MarkovChainScenario(P), count_release(10))
    found = [
        int(distribution_distance(u, v)) for *_, u, v in fact.pairs_of_distributions()
    ]
    assert found == CHAIN["by_record_of_ten"]


def test_known_masses():
    fact = facts(MarkovChainScenario(P, protected=[2]), count_release(5))
    for law, masses in zip(fact.distributions[0], CHAIN["middle_of_five"], strict=True):
        found = np.zeros(6)
        found[law.points[:, 0].astype(int)] = law.masses
        assert found == pytest.approx(masses, abs=1e-15)


@pytest.mark.parametrize("n", CHAIN["w2"])
def test_known_distances_of_order_two(n):
    fact = facts(MarkovChainScenario(P), count_release(int(n)))
    found = max(
        wasserstein_distance(u.points[:, 0], v.points[:, 0], u.weights, v.weights, p=2)
        for *_, u, v in fact.pairs_of_distributions()
    )
    assert found == pytest.approx(CHAIN["w2"][n], abs=5e-7)


def _true_losses(u, v, scale, orders):
    """Rényi divergences of two laws with Laplace noise, by quadrature."""
    x = np.arange(-30_000, 31_001) / 200  # the densities bend at whole numbers only
    p, q = (
        np.exp(-np.abs(x[:, None] - law.points[:, 0]) / scale) @ law.masses
        for law in (u, v)
    )
    p, q = p / (2 * scale), q / (2 * scale)
    out = {math.inf: float(np.log(p / q).max())}
    for alpha in orders:
        total = np.trapezoid(p**alpha * q ** (1 - alpha), x)
        out[alpha] = math.log(total) / (alpha - 1)
    return out


def test_known_losses_of_ten_records():
    release, scenario = count_release(10), MarkovChainScenario(P)
    noise, fact = LaplaceNoise(5.0), facts(scenario, release)
    rows = CHAIN["ten_records_laplace_5"]
    orders = [row["alpha"] for row in rows]
    losses = [
        _true_losses(*order, 5.0, orders)
        for *_, u, v in fact.pairs_of_distributions()
        for order in ((u, v), (v, u))
    ]
    for row in rows:
        alpha = row["alpha"]
        plain = GeneralWasserstein(alpha=alpha, noise="laplace")
        aware = DistributionAwareWasserstein(alpha=alpha, noise="laplace")
        promised = plain.certify(noise, release, scenario).epsilon
        assert promised == pytest.approx(row["wasserstein"], abs=1e-9)
        sharper = aware.certify(noise, release, scenario).epsilon
        assert sharper == pytest.approx(row["aware"], abs=1e-9)
        true = max(loss[alpha] for loss in losses)
        assert true == pytest.approx(row["true"], abs=1e-5)
        assert true <= sharper <= promised
    pure = max(loss[math.inf] for loss in losses)
    assert pure == pytest.approx(CHAIN["ten_records_laplace_5_pure"], abs=1e-5)
    promised = PURE.certify(noise, release, scenario).epsilon
    assert pure <= promised == pytest.approx(6 / 5)


# -- against enumeration --------------------------------------------------------------


@st.composite
def chains(draw, sparse=True):
    k = draw(st.integers(2, 3))
    least = 0 if sparse else 1

    def law():
        counts = draw(st.lists(st.integers(least, 6), min_size=k, max_size=k))
        if not any(counts):
            counts[draw(st.integers(0, k - 1))] = 1
        return np.array(counts) / sum(counts)

    return law(), np.array([law() for _ in range(k)])


def listed(initial, transition, n, values):
    """The same chain with every path listed."""
    paths, masses = [], []
    for path in itertools.product(range(len(initial)), repeat=n):
        mass = initial[path[0]]
        for a, b in itertools.pairwise(path):
            mass *= transition[a, b]
        if mass > 0:
            paths.append([values[x] for x in path])
            masses.append(mass)
    return np.array(paths), np.array(masses) / np.sum(masses)


@given(
    chains(),
    st.integers(1, 5),
    st.sampled_from([(0.0, 1.0, 2.0), (1.0, 0.0, 0.0), (-1.0, 0.5, 4.0)]),
    st.sampled_from(["same_index", "all"]),
)
@example((np.array([0.0, 1.0]), np.array([[0.0, 1.0]] * 2)), 1, (0.0, 1.0), "all")
def test_laws_are_those_of_all_paths(chain, n, values, pairs):
    initial, transition = chain
    values = values[: len(initial)]
    scenario = MarkovChainScenario(
        transition, initial, states=range(len(initial)), pairs=pairs
    )

    def contribution(X, y=None):
        return np.array(values)[np.asarray(X, dtype=int)]

    release = QueryRelease(
        contribution=contribution, is_sum=True, factor=0.5, n_records=n, dim=1
    )
    tables, masses = listed(initial, transition, n, range(len(initial)))
    try:
        truth = facts(JointTableScenario(tables, masses, pairs=pairs), release)
    except ScenarioError:
        with refused(ScenarioError, "markov.no_pair_possible"):
            scenario.bind(release.context)
        return
    fact = facts(scenario, release)
    assert fact.delta == 0
    known = {
        (record, int(value[0])): law
        for (record, value), law in zip(
            truth.secrets, truth.distributions[0], strict=True
        )
    }
    for (record, state), law in zip(fact.secrets, fact.distributions[0], strict=True):
        other = known.get((record, state))
        assert (law is None) == (other is None)
        if law is not None:
            points = fact.scale * law.points[:, 0]
            order = np.argsort(points)
            assert points[order] == pytest.approx(other.points[:, 0])
            assert law.masses[order] == pytest.approx(other.masses, rel=1e-9)
    assert fact.scale * largest(fact) == pytest.approx(largest(truth))


@given(chains(), st.integers(2, 40))
def test_floats_never_understate(chain, n):
    initial, transition = chain
    weights = np.arange(len(initial))
    first, steps = exact_entries(initial[None]), exact_entries(transition)
    exact = exact_sum_distributions(first[0][0], steps, weights, n, range(n))
    rough, lost = float_sum_distributions(initial, transition, weights, n, range(n))
    assert lost == 0
    error = mass_error(n, len(initial), 2 * n + 1)
    for i in range(n):
        for a, b in itertools.combinations(range(len(initial)), 2):
            if exact[i][a] is None or exact[i][b] is None:
                assert rough[i][a] is None or rough[i][b] is None
                continue
            truth = steps_apart(exact[i][a], exact[i][b])
            found = steps_apart(rough[i][a], rough[i][b], error)
            assert found >= truth
            assert steps_apart(rough[i][b], rough[i][a], error) == found
            total = sum(exact[i][a][1])
            masses = [mass / total for mass in exact[i][a][1]]
            assert rough[i][a][0].tolist() == exact[i][a][0].tolist()
            assert rough[i][a][1] == pytest.approx(masses, rel=error, abs=0)


# -- windows --------------------------------------------------------------------------


@given(chains(sparse=False), st.integers(3, 14), st.integers(1, 4))
def test_outside_the_event_the_whole_is_as_near_as_the_window(chain, n, width):
    """The laws of the whole sum are near, by the exact near radius of transport."""
    initial, transition = chain
    weights = np.arange(len(initial))
    whole, _ = float_sum_distributions(initial, transition, weights, n, range(n))
    windows, _ = window_sum_distributions(initial, transition, weights, n, width)
    delta = window_delta(
        settling_marginals(initial, transition, n), transition, n, width
    )
    pairs = list(itertools.combinations(range(len(initial)), 2))
    radius = max(
        steps_apart(laws[a], laws[b], 1e-12)
        for laws in windows.values()
        for a, b in pairs
        if laws[a] is not None and laws[b] is not None
    )
    for i in range(n):
        for a, b in pairs:
            if whole[i][a] is None or whole[i][b] is None:
                continue
            (x, p), (y, q) = whole[i][a], whole[i][b]
            if delta + 1e-9 < 1:
                near = near_radius(x, y, delta + 1e-9, p, q)
                assert float(getattr(near, "radius", near)) <= radius


def test_windows_are_of_the_records_around_the_secret():
    """Of one state the sum is a count: without the end before, with that behind."""
    one = np.ones((1, 1))
    windows, _ = window_sum_distributions(one[0], one, np.array([1]), 5, 2)
    assert {where: laws[0][0].tolist() for where, laws in windows.items()} == {
        ("inside", 0, 0): [4],
        (0, None, 0): [3],
        (1, None, 0): [4],
        (3, 0, None): [3],
        (4, 0, None): [2],
    }


def test_the_event_fades_with_the_width_and_is_the_distance_of_the_ends():
    marginals = settling_marginals(np.array([2 / 3, 1 / 3]), P, 100)
    found = [window_delta(marginals, P, 100, width) for width in (5, 10, 20)]
    # one end alone is 0.7 ** width apart; both are apart by the known quilt distances
    for width, delta, known in zip(
        (5, 10, 20), found, (0.2146774917, 0.0373973923, 0.0010636847), strict=True
    ):
        assert known <= delta == pytest.approx(1 - (1 - 0.7**width) ** 2, abs=1e-12)
    assert found == sorted(found, reverse=True)
    alike = np.array([[0.3, 0.7], [0.3, 0.7]])
    marginals = settling_marginals(alike[0], alike, 9)
    assert window_delta(marginals, alike, 9, 1) == 0.0


@given(chains(sparse=False), st.integers(2, 60), st.integers(1, 9))
def test_settled_marginals_stand_for_all_that_follow(chain, n, width):
    """Step by step, and so what a window leaves out, over all of the records."""
    initial, transition = chain
    found, q = settling_marginals(initial, transition, n), initial
    assert len(found.masses) <= n
    steps = []
    for t in range(n):
        steps.append(q)
        masses, possible = found.at(t)
        np.testing.assert_allclose(masses, q, rtol=1e-12)
        assert np.array_equal(possible, q > 0)
        q = q @ transition
    every = Marginals(np.array(steps), np.array(steps) > 0, 0.0)
    width = min(width, n)
    all_of_them = window_delta(every, transition, n, width)
    left_out = window_delta(found, transition, n, width)
    assert left_out == pytest.approx(all_of_them, abs=2e-12)


def test_long_series():
    release = count_release(10_000)
    found = PURE.calibrate(release, MarkovChainScenario(P)).certificate
    assert found.sensitivity == 6
    assert found.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert 0 < found.event_delta <= 1e-9
    windows = (
        "assume.markov_agree_outside_all_but",
        "assume.markov_agree_outside_window",
    )
    assert says(found.assumptions, windows)
    # nothing left out: what remains are the records of the table
    strict = MarkovChainScenario(P, event_delta=0.0)
    assert facts(strict, release, Adjacency).count == 10_000
    assert OutputDistributions not in strict.bind(release.context).provides(release)


def test_ten_states_and_ten_thousand_records():
    k = 10
    transition = np.full((k, k), 0.05)
    np.fill_diagonal(transition, 0.55)
    scenario = MarkovChainScenario(transition, states=np.arange(k))

    release = count_release(10_000)
    bound = scenario.bind(release.context)
    fact = bound.fact(OutputDistributions, release)
    assert 0 < fact.delta <= 1e-9
    assert len(fact.pairs) > 10_000


def test_independent_records_are_kept_apart_one_by_one():
    scenario = MarkovChainScenario([[0.3, 0.7], [0.3, 0.7]], event_delta=0.0)
    for n in (1, 10, 100, 1000, 10_000):
        release = count_release(n)
        found = PURE.calibrate(release, scenario).certificate
        assert (found.sensitivity, found.event_delta) == (1.0, 0.0)
        assert facts(scenario, release, Adjacency).count == 1


def test_the_distance_is_not_monotone_in_the_length():
    found = [
        largest(facts(MarkovChainScenario(P), count_release(n))) for n in (5, 20, 100)
    ]
    assert found[0] < found[1] > found[2]


def test_atoms_too_light_to_be_computed_are_left_out_by_name():
    tiny = [[1e-9, 1 - 1e-9], [1 - 1e-9, 1e-9]]
    release = count_release(200)
    loose = facts(MarkovChainScenario(tiny), release)
    assert loose.delta > 0
    strict = MarkovChainScenario(tiny, event_delta=0.0).bind(release.context)
    assert strict.provides(release) & {OutputDistributions, Adjacency} == {Adjacency}


# -- what is kept apart ---------------------------------------------------------------


def test_secrets_without_probability_are_left_out():
    # the chain starts in 0 and never returns to it
    scenario = MarkovChainScenario([[0, 1, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], [1, 0, 0])
    fact = facts(scenario, count_release(4))
    none = {
        s for s, law in zip(fact.secrets, fact.distributions[0], strict=True) if not law
    }
    assert none == {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (3, 0)}
    with refused(ScenarioError, "markov.no_pair_possible"):
        MarkovChainScenario([[0, 1], [1, 0]], [1, 0]).bind(PublicContext(n_records=9))


def test_every_chain_counts():
    release = count_release(20)
    matrices = [P, np.array([[0.7, 0.3], [0.3, 0.7]])]
    each = [largest(facts(MarkovChainScenario(Q), release)) for Q in matrices]
    both = facts(MarkovChainScenario(matrices), release)
    assert len(both.distributions) == 2
    assert largest(both) == max(each)
    assert says(both.assumptions, "assume.markov_one_of_chains", n_chains=2)
    alone = facts(MarkovChainScenario(P), release)
    assert says(alone.assumptions, "assume.markov_stated_chain")
    given = MarkovChainScenario([P, P], ["stationary", [0.5, 0.5]])
    assert len(given.chains()) == 2


def test_a_chain_without_a_secret_adds_nothing():
    # the second is in one state at a time, and known to be
    release = count_release(9)
    certain = np.array([[0.0, 1.0], [1.0, 0.0]])
    both = MarkovChainScenario([P, certain], ["stationary", [1.0, 0.0]])
    assert largest(facts(both, release)) == largest(
        facts(MarkovChainScenario(P), release)
    )


def test_other_chains_are_not_answered_from_memory():
    scenario, release = MarkovChainScenario(P), count_release(20)
    facts(scenario, release)
    other = [[0.7, 0.3], [0.3, 0.7]]
    found = largest(facts(scenario.set_params(transition=other), release))
    assert found == largest(facts(MarkovChainScenario(other), release))


def test_more_secrets_are_no_nearer():
    release = count_release(12)
    same = largest(facts(MarkovChainScenario(P), release))
    across = largest(facts(MarkovChainScenario(P, pairs="all"), release))
    one = largest(facts(MarkovChainScenario(P, protected=[0]), release))
    assert one <= same <= across <= 2 * same


def test_far_apart_records_are_as_far_as_the_table_is_long_for_any_query():
    scenario = MarkovChainScenario(P, pairs="all")
    assert facts(scenario, count_release(500), Adjacency).count == 500
    assert facts(MarkovChainScenario(P), count_release(500), Adjacency).count == 69


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_two_states_have_laws_of_any_histogram(norm):
    def cells(X, y=None):
        return np.column_stack([X[:, 0] == 0, X[:, 0] == 1]).astype(float)

    release = QueryRelease(contribution=cells, is_sum=True, n_records=20, dim=2)
    fact = facts(MarkovChainScenario(P), release)
    assert largest(fact, norm) == pytest.approx(7 * np.linalg.norm([1, 1], norm))
    three = MarkovChainScenario(np.full((3, 3), 1 / 3))
    off_line = QueryRelease(
        contribution=lambda X, y: np.eye(3)[X[:, 0].astype(int)],
        is_sum=True,
        n_records=20,
        dim=3,
    )
    assert OutputDistributions not in three.bind(off_line.context).provides(off_line)


def test_lattices():
    origin, direction, weights = lattice_of(np.array([[-1.0], [1.0], [0.5]]))
    assert (origin[0], direction[0], weights.tolist()) == (-1.0, 0.5, [0, 4, 3])
    # counted from the least, wherever the first state lies
    origin, direction, weights = lattice_of(np.array([[0.0], [1.0], [-3.0]]))
    assert origin + np.outer(weights, direction) == pytest.approx(
        np.array([[0.0], [1.0], [-3.0]]), abs=1e-15
    )
    assert weights.min() == 0
    assert lattice_of(np.array([[0.0], [1.0], [math.sqrt(2)]])) is None
    assert lattice_of(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])) is None
    assert lattice_of(np.array([[2.0], [2.0]]))[2].tolist() == [0, 0]


@given(st.floats(-1e3, 1e3), st.integers(-60, 60))
def test_lattices_are_found_at_any_scale(offset, exponent):
    values = (np.array([[0.0], [4.0], [3.0]]) + round(offset)) * 2.0**exponent
    origin, direction, weights = lattice_of(values)
    assert weights.tolist() == [0, 4, 3]
    assert origin + np.outer(weights, direction) == pytest.approx(
        values, rel=1e-12, abs=0
    )


@pytest.mark.parametrize(
    "values",
    [
        # a large feature that never changes hides no move of the others
        [[1e13, 0.0, 0.0], [1e13, 5.0, 0.0], [1e13, 0.0, 4.0]],
        [[1e7, 0.0], [1e7, 1.0], [1e7, 1e-6]],
        # nearly equal states are not equal
        [[0.0], [1.0], [1.0 + 1e-13]],
        [[0.0], [1e-200], [math.pi * 1e-200]],
        # sums of so large numbers would not tell them apart
        [[1e16], [1e16 + 2.0]],
    ],
)
def test_what_is_no_lattice(values):
    assert lattice_of(np.array(values)) is None


def test_a_large_constant_does_not_hide_a_move():
    transition = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])

    def moved(constant):
        states = [[constant, 0, 0], [constant, 1, 0], [constant, 0, 1]]
        release = QueryRelease(contribution=identity, is_sum=True, n_records=5, dim=3)
        scenario = MarkovChainScenario(transition, states=states)
        return PURE.calibrate(release, scenario).certificate.sensitivity

    assert moved(1e13) >= moved(0.0)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_record_moves_as_far_as_any_two_states_are_apart(k, norm):
    """Not those alone that stand next to each other in the list."""
    rng = np.random.default_rng(k)
    release = QueryRelease(contribution=identity, is_sum=True, n_records=6, dim=2)
    context = PublicContext(n_records=6, n_features=2)
    for states in (rng.normal(size=(k, 2)), np.arange(2 * k).reshape(k, 2)):
        scenario = MarkovChainScenario(np.full((k, k), 1 / k), states=states)
        bound = scenario.bind(context)
        apart = states[:, None] - states[None]
        furthest = np.linalg.norm(apart, norm, axis=-1).max()
        for kind in (Adjacency, MaxInfluence):
            move = bound.fact(kind, release, norm).move
            assert move == pytest.approx(furthest, rel=1e-9)


def test_records_are_compared_feature_by_feature():
    scenario = MarkovChainScenario(P, states=[[1e6, 0.0], [1e6, 1.0]])
    bound = scenario.bind(PublicContext(n_records=3, n_features=2))
    rows = bound.check_rows(np.array([[1e6, 0.0], [1e6, 1.0], [1e6, 1.0 + 1e-9]]))
    np.testing.assert_array_equal(rows, [[1e6, 0.0], [1e6, 1.0], [1e6, 1.0]])
    for stranger in ([1e6, 1.9], [1e6, -0.9], [1e6 + 1, 0.0]):
        with refused(ScenarioError, "markov.records_not_states"):
            bound.check_rows(np.array([[1e6, 0.0], [1e6, 1.0], stranger]))
    small = MarkovChainScenario(P, states=[0.0, 1e-9])
    with refused(ScenarioError, "markov.records_not_states"):
        small.bind(PublicContext(n_records=1)).check_rows(np.array([[5e-9]]))


def test_a_constant_query_is_not_moved():
    release = QueryRelease(
        contribution=lambda X, y: np.ones((len(X), 1)),
        is_sum=True,
        n_records=9,
        dim=1,
    )
    assert PURE.calibrate(release, MarkovChainScenario(P)).noise.is_zero


@given(chains(sparse=False))
def test_stationary_laws_stay(chain):
    _, transition = chain
    law = np.array(stationary_distribution(transition))
    assert law @ transition == pytest.approx(law, rel=1e-12)
    assert law.sum() == pytest.approx(1)


# -- other queries --------------------------------------------------------------------


def test_other_queries_are_bounded_by_records():
    known = Sensitivity(add_remove={1: 0.5}, replace={1: 1.0})
    release = QueryRelease(
        query=lambda X, y: np.median(X), n_records=50, dim=1, sensitivity=known
    )
    found = GroupPrivacy(epsilon=1, alpha=math.inf, noise="laplace").calibrate(
        release, MarkovChainScenario(P)
    )
    assert found.certificate.sensitivity == 50
    without = QueryRelease(query=lambda X, y: np.median(X), n_records=50, dim=1)
    assert MarkovChainScenario(P).bind(without.context).provides(without) == frozenset()


# -- estimators -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("frame", [False, True])
def test_a_mean_of_a_series(frame):
    rng = np.random.default_rng(0)
    series = (np.cumsum(rng.random(100) < 0.2) % 2).astype(float)[:, None]
    X = pd.DataFrame(series, columns=["awake"]) if frame else series
    estimator = PrivateMean(scenario=MarkovChainScenario(P), accountant=PURE)
    found = clone(estimator).set_params(random_state=0).fit(X)
    # six of a hundred, where each record moves by one
    assert found.noise_.scale == pytest.approx((0.06,))
    assert abs(found.mean_[0] - series.mean()) < 1
    assert "MarkovChainScenario(<2 states>" in found.certificate_.scenario


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_a_mean_of_a_series_by_default():
    series = np.tile([[0.0], [1.0]], (15, 1))
    default = PrivateMean(scenario=MarkovChainScenario(P), random_state=0).fit(series)
    assert default.certificate_.delta == 1e-5


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_a_histogram_of_a_series():
    table = pd.DataFrame({"state": [0, 0, 1, 1, 0] * 4})
    found = PrivateSummary(
        scenario=MarkovChainScenario(P),
        accountant=PURE,
        statistics={"state": ["histogram"]},
        categories={"state": [0, 1]},
        random_state=0,
    ).fit(table)
    # 7 records, two cells, in whole numbers
    assert found.certificate_.sensitivity == pytest.approx(14)


def test_parameters():
    scenario = MarkovChainScenario(P, [0.5, 0.5], protected=[3])
    assert scenario.get_params()["initial"] == [0.5, 0.5]
    assert clone(scenario).protected == [3]
    assert repr(scenario) == (
        "MarkovChainScenario(<2 states>, initial='<given>', pairs='same_index', "
        "protected=<1 times>, event_delta=1e-09)"
    )
    low, high = MarkovChainScenario(P, states=[-1, 4]).declared_bounds(
        PublicContext(n_records=1)
    )
    assert (low.tolist(), high.tolist()) == ([-1.0], [4.0])


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"transition": [[0.5, 0.6], [0.5, 0.5]]},
            Statement("markov.transition_row_invalid", row=0),
        ),
        ({"transition": [[9, 2], [2, 8]]}, Statement("markov.transition_row_invalid")),
        (
            {"transition": [[1.5, -0.5], [0.5, 0.5]]},
            Statement("markov.transition_row_invalid", row=0),
        ),
        (
            {"transition": [[math.nan, 1], [0.5, 0.5]]},
            Statement("parameter.array_not_finite", name="transition"),
        ),
        ({"transition": [[1.0]]}, Statement("markov.transition_one_state")),
        ({"transition": [[0.5, 0.5]]}, Statement("markov.transition_not_square")),
        ({"transition": []}, Statement("markov.transition_not_square")),
        (
            {"transition": "P"},
            Statement("parameter.array_not_finite", name="transition"),
        ),
        ({"transition": np.eye(2)}, Statement("markov.stationary_needs_initial")),
        ({"initial": [0.5, 0.6]}, Statement("markov.initial_invalid")),
        ({"initial": [1.0]}, Statement("markov.initial_invalid")),
        ({"initial": None}, Statement("markov.initial_missing")),
        ({"initial": "uniform"}, Statement("parameter.option_unknown", name="initial")),
        (
            {"initial": [[0.5, 0.5], [0.5, 0.5]]},
            Statement("markov.initial_count_differs", n_listed=2, n_chains=1),
        ),
        ({"states": [0, 1, 2]}, Statement("markov.states_shape_invalid")),
        ({"states": [1, 1]}, Statement("markov.states_repeated")),
        ({"states": ["a", "b"]}, Statement("parameter.array_not_finite")),
        ({"states": [0, math.inf]}, Statement("parameter.array_not_finite")),
        ({"pairs": "some"}, Statement("parameter.option_unknown", name="pairs")),
        ({"protected": []}, Statement("scenario.protected_not_record_indices")),
        ({"protected": [-1]}, Statement("scenario.protected_not_record_indices")),
        ({"protected": [1.5]}, Statement("scenario.protected_not_record_indices")),
        ({"protected": [5]}, Statement("scenario.protected_out_of_range", most=4)),
        (
            {"event_delta": 1},
            Statement("parameter.share_out_of_range", name="event_delta"),
        ),
        (
            {"event_delta": -1e-9},
            Statement("parameter.share_out_of_range", name="event_delta"),
        ),
    ],
)
def test_bad_parameters_are_named(options, said):
    scenario = MarkovChainScenario(**{"transition": P, **options})
    with refused(ValueError, said.code, **said.parameters):
        scenario.bind(PublicContext(n_records=5))


def test_data_of_more_columns_than_the_states_is_refused():
    for names in (None, ("a", "b")):
        context = PublicContext(n_records=5, feature_names=names, n_features=2)
        with refused(
            ScenarioError,
            ("markov.states_features_differ", "prior.feature_count_differs"),
        ):
            MarkovChainScenario(P).bind(context)


# -- an attacker ----------------------------------------------------------------------


#: A chain that moves blurs its own past; in one that hardly ever does all follow.
ATTACKED = {"moving": (P, 0.4), "frozen": (np.abs(np.eye(2) - 1e-5), SHARE)}


@pytest.mark.parametrize("chain", ATTACKED)
def test_an_attacker_who_knows_the_chain(chain):
    (transition, share), n, at = ATTACKED[chain], 10, 4
    release, scenario = count_release(n), MarkovChainScenario(transition)
    found = PURE.calibrate(release, scenario)
    fact = facts(scenario, release)
    laws = [fact.distributions[0][fact.secrets.index((at, state))] for state in (0, 1)]

    def world(state, noise):
        def draw(size, rng):
            series = np.empty((size, n), dtype=int)
            series[:, at] = state
            # the chain is reversible: it looks the same in both directions
            for t in range(at + 1, n):
                series[:, t] = rng.random(size) < transition[series[:, t - 1], 1]
            for t in range(at - 1, -1, -1):
                series[:, t] = rng.random(size) < transition[series[:, t + 1], 1]
            return series.sum(axis=1) + noise.sample((size,), rng)

        return draw

    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: [world(state, noise) for state in (0, 1)],
        score=noisy_laws(*laws)["score"],
        share=share,
        seed=1,
        n_draws=30_000,
    )


@pytest.mark.parametrize("blocks", [False, True])
def test_the_query_reads_the_states_and_not_what_is_near_them(blocks):
    """In float32, 0.7 lies below the edge 0.7, where no state does."""
    scenario = MarkovChainScenario([[0.5, 0.5], [0.5, 0.5]], states=[0.7, 0.9])
    if blocks:
        scenario = BlocksScenario(scenario, sizes=5)
    X = np.array([0.7, 0.9, 0.7, 0.9, 0.7], dtype=np.float32)[:, None]
    summary = PrivateSummary(
        scenario,
        GeneralWasserstein(epsilon=1.0, alpha=math.inf, noise="laplace"),
        statistics=["histogram"],
        bins=[0.0, 0.7, 1.0],
    )
    with warned(PrivacyWarning, "release.exact_without_noise"):
        summary.fit(X)
    # both states lie in the second bin, so what is released is no secret
    assert summary.result_.to_numpy().ravel().tolist() == [0.0, 5.0]


def test_independent_records_are_one_certain_record():
    release = GradientRelease(n_records=20, n_steps=3, sampling="full_batch")
    chain = MarkovChainScenario([[0.5, 0.5], [0.5, 0.5]])
    one = PrivacyLoss().calibrate(release, chain).certificate
    assert one.relation == "replace" and one.sensitivity == 2.0


@pytest.mark.parametrize(
    "n, width, count, window",
    [
        (120, 60, 119, 119),
        (121, 61, 121, None),
        (122, 61, 121, 121),
        (500, 61, 69, 123),
    ],
)
def test_a_window_is_used_where_it_leaves_a_record_out(n, width, count, window):
    release = count_release(n)
    assert MarkovChainScenario(P).bind(release.context).width == width
    found = facts(MarkovChainScenario(P), release, Adjacency)
    # by chains that meet, where these are in a window that is less than the table
    assert (found.count, found.window) == (count, window)
    # a promise without an event where the window is all of the table
    assert (found.delta > 0) is (window is not None)
    steps = (count if window is None else window) // 2 + 1
    outside = f"{steps} or more steps"
    assert any(outside in str(a) for a in found.assumptions) is (window is not None)


def adjacency(transition, n=400, **options):
    scenario = MarkovChainScenario(transition, **options)
    return facts(scenario, count_release(n), Adjacency)


@pytest.mark.parametrize("event", [1e-3, 1e-6, 1e-9])
def test_fewer_records_differ_than_lie_in_the_window(event):
    """Two states of either side stay apart with a probability of .7 in each step."""
    found = adjacency(P, event_delta=event)
    k = np.arange(400)
    more = 0.7**k * (1 + 0.3 * k)
    outside = 1 - (1 - 0.7**k) ** 2
    # more of them, or further out: each may be what a release reads
    width = np.argmax(outside <= event / 2)
    assert found.window == 2 * width - 1
    assert found.count == np.argmax(more <= event / 2) < found.window
    mass = more[found.count] + outside[width]
    assert found.delta == pytest.approx(mass, rel=1e-6)
    assert found.delta <= event
    code = "assume.markov_agree_outside_all_but"
    assert says(found.assumptions, code, count=found.count)
    # one coupling for what reads the window and for what reads the number
    met = meeting(found, Chains((MarkovChainScenario(P).chains()[0],), 400))
    np.testing.assert_allclose(met.distance, outside, rtol=1e-6, atol=1e-11)
    assert met.distance[5] == pytest.approx(0.3079, abs=5e-5)


def test_chains_that_meet_late_have_a_wider_window_and_fewer_records():
    rng = np.random.default_rng(0)
    wider = 0
    for transition in rng.dirichlet(np.full(3, 0.3), size=(8, 3)):
        found = adjacency(transition, event_delta=1e-6)
        window = 2 * adjacency_window(transition) - 1
        assert found.count < window <= found.window
        assert 0 < found.delta <= 1e-6
        wider += found.window > window
    assert wider > 2


def adjacency_window(transition):
    """Width of the window by the total variation of its ends."""
    scenario = MarkovChainScenario(transition, event_delta=1e-6)
    return scenario.bind(PublicContext(n_records=400)).width


@pytest.mark.parametrize(
    "row", [[17 / 29, 1 / 29, 11 / 29], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0]]
)
def test_transitions_are_kept_but_for_what_is_no_rounding(row):
    rows = [row] * len(row)
    assert np.array_equal(MarkovChainScenario(rows)._matrices()[0], rows)
    # off by more than rounding, and by little enough to be accepted
    off = np.array(rows) * (1 + 1e-10)
    (found,) = MarkovChainScenario(off)._matrices()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=4e-16)
    assert not np.array_equal(found, off)


@pytest.mark.parametrize(
    "left, right",
    [
        ([1.0, 1e-200], [1.0, 1e-200]),
        ([1.0, 1.0], [1.0, 1e-300]),
        ([1.0, 1e-300], [1.0, 1.0]),
    ],
)
def test_products_too_small_for_a_float_are_counted_as_lost(left, right):
    left, right = np.array(left), np.array(right)
    (atoms, masses), lost = mix(left, right)
    assert atoms.tolist() == [0, 1]
    assert masses.sum() == pytest.approx(1, rel=1e-15)
    # a mass of that size for each possible sum, relative to all of it
    total = np.convolve(left, right).sum()
    assert lost == pytest.approx(3 * TINY / total, rel=1e-12, abs=0)
    # where nothing is too small, nothing is lost
    assert mix(left**0.1, right**0.1)[1] == 0.0


def test_one_chain_with_two_states_is_enough():
    stuck = [[1.0, 0.0], [0.0, 1.0]]
    surely = [1.0, 0.0]
    both = MarkovChainScenario([stuck, P], initial=[surely, [0.5, 0.5]])
    both.bind(count_release(5).context)
    with refused(ScenarioError, "markov.no_pair_possible"):
        MarkovChainScenario([stuck] * 2, initial=surely).bind(count_release(5).context)


@pytest.mark.parametrize("protected", [[10], [0, 10], [10, 0], [-1, 3]])
def test_every_protected_record_is_one_of_the_table(protected):
    with refused(
        ScenarioError,
        ("scenario.protected_not_record_indices", "scenario.protected_out_of_range"),
    ):
        MarkovChainScenario(P, protected=protected).bind(count_release(10).context)
    MarkovChainScenario(P, protected=[0, 9]).bind(count_release(10).context)
