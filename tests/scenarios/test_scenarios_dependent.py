"""Diffusions, weak dependence, listed tables and independent blocks."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
    PrivacyLoss,
)
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.distributions import distribution_distance
from skpuffer.exceptions import ScenarioError, Statement, UnsupportedError
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BlocksScenario,
    DependenceScenario,
    DiffusionScenario,
    JointTableScenario,
    MarkovChainScenario,
    OutputDistributions,
    OutputSensitivity,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.scenarios._base import matched_rows
from skpuffer.scenarios._joint import _integers
from skpuffer.summary import PrivateMean
from tests.refused import refused, says

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_scenarios.json").read_text()
)
DIFFUSION = ORACLES["diffusion"]
ONE = Sensitivity(add_remove={1: 1.0}, replace={1: 1.0})


def identity(X, y=None):
    return np.asarray(X, dtype=float)


def total(n, **options):
    return QueryRelease(
        contribution=identity, is_sum=True, n_records=n, dim=1, **options
    )


def linear(matrix, n):
    matrix = np.asarray(matrix, dtype=float)
    return QueryRelease(
        query=lambda X, y: matrix @ np.ravel(X),
        linear=matrix,
        n_records=n,
        dim=len(matrix),
    )


def fact(kind, scenario, release, norm=2):
    return scenario.bind(release.context).fact(kind, release, norm)


def largest(laws):
    return max(
        distribution_distance(u, v) for *_, u, v in laws.pairs_of_distributions()
    )


# -- diffusions -----------------------------------------------------------------------


@pytest.fixture
def diffusion():
    return DiffusionScenario(
        DIFFUSION["curvature"], DIFFUSION["times"], DIFFUSION["diameter"]
    )


def test_known_shifts_of_a_diffusion(diffusion):
    assert diffusion.query_shift() == pytest.approx(DIFFUSION["sum"], abs=1e-9)
    stacked = diffusion.query_shift(form="stacked")
    assert stacked == pytest.approx(DIFFUSION["stacked"], abs=1e-9)
    whole, sum_ = linear(np.eye(3), 3), linear(np.ones((1, 3)), 3)
    assert fact(OutputSensitivity, diffusion, whole).radius == pytest.approx(stacked)
    assert fact(OutputSensitivity, diffusion, sum_).radius == pytest.approx(
        DIFFUSION["sum"]
    )
    found = GeneralWasserstein().calibrate(sum_, diffusion).certificate
    assert found.sensitivity == pytest.approx(DIFFUSION["sum"])
    assert found.notion is Notion.RENYI_PUFFERFISH


def test_the_printed_exponent_is_too_small(diffusion):
    """An Ornstein-Uhlenbeck process moves by the sound bound, above the printed one."""
    times = np.array(DIFFUSION["times"])
    curvature, diameter = DIFFUSION["curvature"], DIFFUSION["diameter"]
    printed = diameter * np.exp(-2 * curvature * times).sum()
    assert printed == pytest.approx(DIFFUSION["printed"], abs=1e-9)
    # X_t given X_0 = a has mean a exp(-C t) and a covariance that does not know a
    ends = [a * np.exp(-curvature * times).sum() for a in (0.0, diameter)]
    assert ends[1] - ends[0] == pytest.approx(diffusion.query_shift())
    assert diffusion.query_shift() > printed


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, math.inf]), st.integers(1, 3))
def test_no_pair_of_paths_moves_a_linear_query_further(seed, norm, n_features):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 4, size=3))
    scenario = DiffusionScenario(0.3, times, 2.0)
    matrix, units = rng.normal(size=(2, 3 * n_features)), rng.uniform(0.2, 5, 2)
    release = linear(matrix, 3)
    radius = fact(OutputSensitivity, scenario, release, norm).radius
    # the same as of a map to numbers in these units
    told = replace(release, units=tuple(units.tolist()))
    in_units = fact(OutputSensitivity, scenario, told, norm).radius
    same = linear(matrix / units[:, None], 3)
    assert in_units == fact(OutputSensitivity, scenario, same, norm).radius
    gaps = rng.normal(size=(50, 3, n_features))
    gaps *= scenario.record_shifts()[:, None] / np.linalg.norm(
        gaps, axis=2, keepdims=True
    )
    moved = np.linalg.norm(gaps.reshape(50, -1) @ matrix.T, norm, axis=1)
    assert moved.max() <= radius * (1 + 1e-12)


class Plain:
    """Records as they are, which says how far it moves with its record."""

    def __call__(self, X, y=None):
        return identity(X)

    def move(self, gaps, norm):
        return np.linalg.norm(gaps, norm, axis=1)


def test_records_of_a_diffusion_move_together(diffusion):
    context = PublicContext(n_records=3, feature_names=("x",), n_features=1)
    release = QueryRelease(
        contribution=Plain(), is_sum=True, n_records=3, dim=1, context=context
    )
    found = GroupPrivacy().calibrate(release, diffusion).certificate
    assert found.sensitivity == pytest.approx(DIFFUSION["sum"])
    assert not found.composable  # of which table is not known
    diffusion = clone(diffusion).set_params(table="paths")
    assert GroupPrivacy().calibrate(release, diffusion).certificate.composable
    unknown = QueryRelease(query=lambda X, y: X, n_records=3, dim=1, sensitivity=ONE)
    assert fact(Adjacency, diffusion, unknown).count == 3


def test_what_is_made_of_the_records_is_not_linear_in_them(diffusion):
    for mapped, offered in ((None, {OutputSensitivity}), (np.tanh, set())):
        context = PublicContext(n_records=3, n_features=1, feature_map=mapped)
        release = replace(linear(np.eye(3), 3), context=context)
        assert diffusion.bind(context).provides(release) == offered
        # nor is it known how far what is mapped moves with a record
        release = QueryRelease(
            contribution=Plain(), is_sum=True, n_records=3, dim=1, context=context
        )
        known = set() if mapped else {Adjacency}
        assert diffusion.bind(context).provides(release) == known


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"curvature": math.inf},
            Statement("parameter.array_not_finite", name="curvature"),
        ),
        (
            {"curvature": "steep"},
            Statement("parameter.not_real_number", name="curvature"),
        ),
        ({"diameter": 0.0}, Statement("parameter.not_positive", name="diameter")),
        ({"times": [2, 1, 3]}, Statement("diffusion.times_not_increasing")),
        ({"times": [-1, 1, 3]}, Statement("diffusion.times_not_increasing")),
        ({"times": []}, Statement("diffusion.times_not_increasing")),
        (
            {"times": [1, 2]},
            Statement("diffusion.times_differ_from_records", n_times=2),
        ),
    ],
)
def test_bad_diffusions(options, said):
    given = {"curvature": 1.0, "times": [1, 2, 3], "diameter": 1.0, **options}
    with refused((ValueError, TypeError), said.code, **said.parameters):
        DiffusionScenario(**given).bind(PublicContext(n_records=3))


def test_a_bound_on_what_is_no_query_of_the_table_is_refused(diffusion):
    with refused(ScenarioError, "diffusion.release_matrix_not_whole_records"):
        fact(OutputSensitivity, diffusion, linear(np.ones((1, 4)), 3))
    with refused(ValueError, "parameter.option_unknown", name="form"):
        diffusion.query_shift(form="mean")


# -- weak dependence ------------------------------------------------------------------


def test_weak_dependence():
    release = QueryRelease(query=lambda X, y: X, n_records=9, dim=1, sensitivity=ONE)
    accountant = GeneralWasserstein()

    def moved(**options):
        found = accountant.calibrate(release, DependenceScenario(**options))
        assert not found.certificate.composable
        return found.certificate.sensitivity

    assert moved(distance=0.0) == 1.0
    assert moved(distance=0.5) == 2.0
    assert moved(distance=0.5, pairs="all") == 3.0


def test_across_records_one_records_move_counts_twice():
    """Independent records, X_1 - X_2: two secrets across are twice as far apart."""
    p = 0.1
    tables = [[a, b] for a in (0, 1) for b in (0, 1)]
    masses = [(p if a else 1 - p) * (p if b else 1 - p) for a, b in tables]
    release = QueryRelease(
        query=lambda X, y: X[0] - X[1], n_records=2, dim=1, sensitivity=ONE
    )
    same = JointTableScenario(tables, masses)
    across = JointTableScenario(tables, masses, pairs="all")
    assert largest(fact(OutputDistributions, same, release)) == 1
    assert largest(fact(OutputDistributions, across, release)) == 2
    bound = DependenceScenario(distance=0.0, pairs="all")
    assert fact(OutputSensitivity, bound, release).radius == 2


@given(st.lists(st.integers(0, 5), min_size=8, max_size=8).filter(any))
def test_weak_dependence_holds_on_small_tables(counts):
    tables = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    shares = np.array(counts) / sum(counts)
    ones = shares @ tables
    alone = np.prod(np.where(tables == 1, ones, 1 - ones), axis=1)
    release = total(3)

    def laws(masses):
        try:
            found = fact(
                OutputDistributions, JointTableScenario(tables, masses), release
            )
        except ScenarioError:
            return None
        return dict(zip(found.secrets, found.distributions[0], strict=True)), found

    mine, product = laws(np.array(counts)), laws(alone / alone.sum())
    if mine is None or product is None:
        return
    distance = max(
        distribution_distance(law, product[0][secret])
        for secret, law in mine[0].items()
        if law is not None
    )
    assert largest(mine[1]) <= 2 * distance + 1 + 1e-12


def test_a_distance_of_the_output_in_its_own_units():
    release = QueryRelease(
        query=lambda X, y: X,
        n_records=9,
        dim=2,
        units=(2.0, 4.0),
        sensitivity=Sensitivity(add_remove={2: 1.0}, replace={2: 1.0}),
    )
    assert fact(OutputSensitivity, DependenceScenario(3.0), release).radius == 4.0
    assert fact(OutputSensitivity, DependenceScenario(3.0), release, 1).radius == (
        pytest.approx(3 * math.sqrt(2) + math.sqrt(2))
    )


@pytest.mark.parametrize(
    "options, said",
    [
        ({"distance": -1.0}, Statement("parameter.is_negative", name="distance")),
        ({"distance": math.inf}, Statement("dependence.distance_infinite")),
        ({"norm": 0.5}, Statement("parameter.below_one", name="norm")),
        ({"pairs": "none"}, Statement("parameter.option_unknown", name="pairs")),
    ],
)
def test_bad_dependence(options, said):
    with refused(ValueError, said.code, **said.parameters):
        DependenceScenario(**{"distance": 1.0, **options}).check()


# -- listed tables --------------------------------------------------------------------


def correlated(p, correlation):
    """Two binary records of one mean and a correlation."""
    both = p * p + correlation * p * (1 - p)
    tables = [[0, 0], [0, 1], [1, 0], [1, 1]]
    return tables, [1 - 2 * p + both, p - both, p - both, both]


@pytest.mark.parametrize("correlation, distance", [(0.3, 2), (-0.3, 1), (0.0, 1)])
def test_two_correlated_records(correlation, distance):
    scenario = JointTableScenario(*correlated(0.5, correlation))
    assert largest(fact(OutputDistributions, scenario, total(2))) == distance


def test_averages_of_rare_values():
    """A rare secret is a secret: no mass may be left out for being rare."""
    oracle = ORACLES["averages"]
    values, counts = oracle["values"], oracle["counts"]
    tables = [[a, b] for a in values for b in values]
    masses = [a * b for a in counts for b in counts]
    scenario = JointTableScenario(tables, masses, protected=[0])
    release = QueryRelease(query=lambda X, y: X.mean(), n_records=2, dim=1)
    found = fact(OutputDistributions, scenario, release)
    for _, i, j, u, v in found.pairs_of_distributions():
        names = ",".join(f"{found.secrets[s][1][0]:.0f}" for s in (i, j))
        assert distribution_distance(u, v) == oracle["distances"][names]


def test_bounded_records_of_any_dependence():
    """With ranges r_1, r_2 no dependence moves a sum by more than both."""
    rng = np.random.default_rng(0)
    tables = np.column_stack([rng.integers(0, 3, 40), rng.integers(0, 6, 40)])
    scenario = JointTableScenario(tables, rng.integers(1, 9, size=40))
    assert largest(fact(OutputDistributions, scenario, total(2))) <= 2 + 5


def test_masses_are_those_given():
    third = [1 / 3, 1 / 3, 1 / 3]
    laws = fact(
        OutputDistributions,
        JointTableScenario([[0, 1], [1, 0], [1, 1]], third),
        total(2),
    ).distributions[0]
    assert laws[1].weights.tolist() == [Fraction(1, 2), Fraction(1, 2)]
    odd = [0.1 + 1e-12, 0.9 - 1e-12]
    scenario = JointTableScenario([[0, 1], [1, 0]], odd)
    assert (
        fact(OutputDistributions, scenario, total(2)).distributions[0][0].masses.sum()
        == 1
    )


def test_sums_and_queries_agree_on_listed_tables():
    rng = np.random.default_rng(1)
    tables, masses = rng.integers(0, 3, size=(30, 4)), rng.integers(1, 5, size=30)
    scenario = JointTableScenario(tables, [masses, masses[::-1]])
    same = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=4, dim=1)
    for one, other in zip(
        fact(OutputDistributions, scenario, total(4)).distributions,
        fact(OutputDistributions, scenario, same).distributions,
        strict=True,
    ):
        for u, v in zip(one, other, strict=True):
            assert u.points.tolist() == v.points.tolist()
            assert u.weights.tolist() == v.weights.tolist()


def test_a_sum_without_a_number_on_a_listed_table_is_refused():
    release = QueryRelease(
        contribution=lambda X, y: np.where(X > 0, np.inf, X),
        is_sum=True,
        n_records=2,
        dim=1,
    )
    scenario = JointTableScenario([[0, 1], [1, 0]], [0.5, 0.5])
    with refused(ScenarioError, "joint.release_not_finite"):
        fact(OutputDistributions, scenario, release)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_a_mean_under_a_listed_prior():
    scenario = JointTableScenario(*correlated(0.5, 0.3))
    X = pd.DataFrame({"sick": [0.0, 1.0]})
    found = PrivateMean(
        scenario=clone(scenario), accountant=GeneralWasserstein(), random_state=0
    ).fit(X)
    # two records of one half each, from -1 to 1 in half-ranges: data units show 1
    assert found.certificate_.sensitivity == pytest.approx(2.0)
    assert "4 tables of 2 records" in found.certificate_.scenario


@pytest.mark.parametrize(
    "options, said",
    [
        ({"tables": [0, 1]}, Statement("joint.tables_shape_invalid")),
        (
            {"tables": [["a", "b"]]},
            Statement("parameter.array_not_finite", name="tables"),
        ),
        (
            {"tables": [[0, math.nan], [0, 1]]},
            Statement("parameter.array_not_finite", name="tables"),
        ),
        (
            {"tables": np.zeros((2, 5_000_001))},
            Statement("joint.tables_too_large", most_numbers=10000000),
        ),
        (
            {"tables": [[0, 1, 2], [1, 2, 3]]},
            Statement("joint.record_count_differs", n=3),
        ),
        ({"probabilities": [0.5]}, Statement("joint.probabilities_invalid")),
        ({"probabilities": [0.5, 0.6]}, Statement("joint.probabilities_invalid")),
        ({"probabilities": [-0.5, 1.5]}, Statement("joint.probabilities_invalid")),
        ({"probabilities": []}, Statement("joint.probabilities_invalid")),
        ({"probabilities": [1.0, 0.0]}, Statement("joint.no_pair_possible")),
        (
            {"probabilities": [[1.0, 0.0], [0.0, 1.0]]},
            Statement("joint.no_pair_possible"),
        ),
        ({"pairs": "any"}, Statement("parameter.option_unknown", name="pairs")),
        ({"protected": [2]}, Statement("scenario.protected_out_of_range")),
    ],
)
def test_bad_tables(options, said):
    given = {"tables": [[0, 1], [1, 0]], "probabilities": [0.5, 0.5], **options}
    with refused(ValueError, said.code, **said.parameters):
        JointTableScenario(**given).bind(PublicContext(n_records=2))


# -- blocks ---------------------------------------------------------------------------

P = [[0.9, 0.1], [0.2, 0.8]]


def test_blocks_cost_what_the_most_telling_one_does():
    chain = MarkovChainScenario(P)
    sizes = [5, 20, 50, 100]
    alone = {n: largest(fact(OutputDistributions, chain, total(n))) for n in sizes}
    blocks = BlocksScenario(chain, sizes)
    assert largest(fact(OutputDistributions, blocks, total(175))) == max(alone.values())
    assert fact(Adjacency, blocks, total(175)).count == 100
    even = BlocksScenario(chain, 5)
    assert largest(fact(OutputDistributions, even, total(175))) == alone[5]
    assert len(even.block_sizes(175)) == 35


def releases(n):
    """Of every kind, by name; each voter has a record."""
    found = _releases(n)
    votes = VoteRelease(n_records=n, n_teachers=n, n_classes=2, n_queries=1)
    return found | {"votes": votes}


@pytest.mark.parametrize("name", _scenarios(4))
def test_blocks_cost_what_the_dearest_one_does_in_every_release(name):
    """Smaller blocks beside the largest ones take nothing off."""
    scenario, asked = _scenarios(4)[name], set()
    for kind, release in releases(8).items():
        scales = []
        for sizes in ([4, 4], [2, 4, 2]):
            blocks = BlocksScenario(scenario, sizes)
            try:
                made = PrivacyLoss(1.0, 0.1).calibrate(release, blocks)
            # other sizes may be none of what the scenario speaks of
            except (ScenarioError, UnsupportedError):
                scales.append(math.inf)
            else:
                scales.append(float(np.max(made.noise.scale)))
        if scales[0] < math.inf:
            asked.add(kind)
            assert min(scales) >= scales[0] * (1 - 1e-6), kind
    assert not asked or len(asked) > 5


@pytest.mark.parametrize("sizes", [200, [50, 200], [7, 200]])
def test_blocks_are_as_certain_as_what_they_consist_of(sizes):
    """Outside its event a chain changes more records than it says."""
    chain = MarkovChainScenario(P, event_delta=0.3)
    n = int(np.sum(sizes))
    alone = fact(Adjacency, chain, total(200))
    blocks = fact(Adjacency, BlocksScenario(chain, sizes), total(n))
    assert not alone.count_is_certain and not blocks.count_is_certain
    assert (blocks.count, blocks.delta) == (alone.count, alone.delta)
    assert blocks.coupling_id is None
    release = total(n, sensitivity=ONE)
    pure = GroupPrivacy(1.0, math.inf, noise="laplace")
    found = pure.calibrate(release, BlocksScenario(chain, sizes)).certificate
    assert found.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert found.delta == alone.delta
    assert not found.composable
    # what the blocks take for granted, and what a chain does within one
    code = "assume.blocks_of_sizes_independent"
    assert says(found.assumptions, code, n_records=n)


def test_blocks_are_no_further_than_their_table_listed():
    """Two blocks of two records, against all their tables."""
    tables, masses = correlated(0.5, 0.3)
    joint = [a + b for a in tables for b in tables]
    chances = [p * q for p in masses for q in masses]
    whole = JointTableScenario(joint, chances)
    blocks = BlocksScenario(JointTableScenario(tables, masses), 2)
    assert largest(fact(OutputDistributions, whole, total(4))) <= largest(
        fact(OutputDistributions, blocks, total(4))
    )


def test_records_are_blocks_of_one():
    release = QueryRelease(query=lambda X, y: X, n_records=6, dim=1, sensitivity=ONE)
    alone = GroupPrivacy().calibrate(release, RecordScenario(2)).certificate
    blocks = BlocksScenario(RecordScenario(2), 2)
    found = GroupPrivacy().calibrate(release, blocks).certificate
    assert found.sensitivity == alone.sensitivity
    assert found.coupling_id == alone.coupling_id


def test_a_household_shares_a_value():
    public = pd.DataFrame({"sick": [0, 0, 1, 1], "visits": [0.0, 1.0, 2.0, 4.0]})
    scenario = BlocksScenario(
        AttributeScenario(
            "sick", level="dataset", prior=public, prior_as="law", table="clinic"
        ),
        4,
    )
    context = PublicContext(n_records=400, feature_names=("visits",), n_features=1)
    found = fact(Adjacency, scenario, total(400, context=context))
    assert (found.count, found.move) == (4, 3.0)
    assert found.coupling_id.startswith("400 in blocks:")


def test_samples_of_all_blocks_must_be_good():
    public = pd.DataFrame({"sick": [0, 1] * 500, "visits": [0.0, 1, 1, 0] * 250})
    person = AttributeScenario(
        "sick", level="record", prior=public, prior_as="confidence", confidence=0.9
    )
    context = PublicContext(n_records=10, feature_names=("visits",), n_features=1)
    for sizes, expected in ((5, 0.9), ([4, 6], 0.8), ([1, 2, 3, 4], 0.6)):
        scenario = BlocksScenario(person, sizes)
        found = fact(OutputDistributions, scenario, total(10, context=context))
        assert found.confidence == pytest.approx(expected)


def test_a_household_without_one_value_is_refused():
    public = pd.DataFrame({"sick": [0, 0, 1, 1], "visits": [0.0, 1.0, 2.0, 4.0]})
    scenario = BlocksScenario(
        AttributeScenario("sick", level="dataset", prior=public, prior_as="law"), 2
    )
    scenario.check_secret([0, 0, 1, 1])
    for strangers in ([0, 1, 1, 1], [0, 0, 2, 2]):
        with pytest.raises(ScenarioError):
            scenario.check_secret(strangers)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_a_mean_of_several_series():
    X = np.tile([0.0, 0.0, 1.0, 1.0, 0.0], 20)[:, None]
    found = PrivateMean(
        scenario=BlocksScenario(MarkovChainScenario(P), 5),
        accountant=GeneralWasserstein(),
        random_state=0,
    ).fit(X)
    assert found.certificate_.sensitivity == pytest.approx(5 * 2 / 100)


@pytest.mark.parametrize("quantity", ["sum", "query"])
def test_quilts_of_blocks_cost_what_those_of_the_worst_block_do(quantity):
    """Blocks are told apart by their lengths only, and take the worst of each."""
    chain = MarkovChainScenario([[0.8, 0.2], [0.3, 0.7]], [0.5, 0.5], protected=[0])
    quilts = MarkovQuilt(epsilon=1.5)

    def release(n):
        if quantity == "sum":
            return total(n)
        return QueryRelease(
            query=lambda X, y: X.sum(), n_records=n, dim=1, sensitivity=ONE
        )

    sizes = [3, 12, 5, 3]
    for method in ("exact", "approximate"):
        quilts.set_params(method=method)
        alone = [quilts.calibrate(release(n), chain).noise.scale for n in sizes]
        found = quilts.calibrate(release(23), BlocksScenario(chain, sizes))
        assert found.noise.scale == max(alone)
        assert found.certificate.certified
    assert max(alone) > min(alone)


@given(
    st.lists(st.floats(0.2, 0.8), min_size=6, max_size=6),
    st.lists(st.integers(1, 4), min_size=2, max_size=3),
    st.sampled_from([0.7, 2.0, 4.0]),
)
def test_quilts_of_blocks_keep_their_promise_on_all_tables(chances, sizes, epsilon):
    """The densities of the output given each secret, by enumeration."""
    laws = np.transpose([chances, np.subtract(1, chances)]).reshape(2, 3, 2)
    beliefs = [(law[0], law[1:]) for law in laws]  # of the first, and of the next
    scenario = BlocksScenario(
        MarkovChainScenario([t for _, t in beliefs], [q for q, _ in beliefs]), sizes
    )
    n = sum(sizes)
    found = MarkovQuilt(epsilon=epsilon).calibrate(total(n), scenario)
    tables = np.array(list(itertools.product((0, 1), repeat=n)))
    totals = tables.sum(axis=1)
    outputs = np.linspace(-5, n + 5, 8 * (n + 10) + 1)
    noise = np.exp(-np.abs(outputs - np.arange(n + 1)[:, None]) / found.noise.scale)
    worst = 0.0
    for which in itertools.product(beliefs, repeat=len(sizes)):
        masses, start = np.ones(len(tables)), 0
        for (initial, step), size in zip(which, sizes, strict=True):
            block = tables[:, start : start + size]
            masses *= initial[block[:, 0]]
            masses *= step[block[:, :-1], block[:, 1:]].prod(axis=1)
            start += size
        for record in range(n):
            density = []
            for value in (0, 1):
                given_it = masses * (tables[:, record] == value)
                law = np.bincount(totals, given_it, n + 1)
                density.append(law / law.sum() @ noise)
            worst = max(worst, np.abs(np.log(density[0] / density[1])).max())
    assert worst <= epsilon * (1 + 1e-9)
    assert found.certificate.epsilon <= epsilon * (1 + 1e-9)


def test_what_a_block_cannot_offer():
    draws = SimulatorScenario(lambda secret, rng: [[secret]], secrets=[0, 1])
    blocks = BlocksScenario(draws, 1)
    query = QueryRelease(query=lambda X, y: X, n_records=2, dim=1)
    assert blocks.bind(query.context).provides(query) == frozenset()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"sizes": 4}, Statement("blocks.records_not_whole_blocks")),
        ({"sizes": [4, 5]}, Statement("blocks.sizes_sum_differs", sizes=9)),
        ({"sizes": []}, Statement("scenario.block_sizes_not_list")),
        ({"sizes": [0, 10]}, Statement("parameter.count_too_small", name="sizes")),
        (
            {"scenario": MarkovChainScenario([[0.5, 0.6], [0.5, 0.5]])},
            Statement("markov.transition_row_invalid", row=0),
        ),
        (
            {"scenario": AttributeScenario("a", level="record", prior="empirical")},
            Statement("scenario.block_prior_is_private"),
        ),
    ],
)
def test_bad_blocks(options, said):
    given = {"scenario": MarkovChainScenario(P), "sizes": 5, **options}
    with refused(ValueError, said.code, **said.parameters):
        BlocksScenario(**given).bind(PublicContext(n_records=10))
    with refused(TypeError, "scenario.block_scenario_wrong_type"):
        BlocksScenario(scenario=None, sizes=1).check()


def test_a_shift_never_falls_to_nothing():
    """Squares of tiny distances would be zero, and noise with them."""
    paths = DiffusionScenario(1.0, times=(400, 800), diameter=1.0)
    assert paths.query_shift(form="stacked") > 0


def test_a_listed_table_is_read_as_it_is_listed():
    tables = np.array([[0.7, 0.9], [0.9, 0.7]])
    bound = JointTableScenario(tables, [0.5, 0.5]).bind(
        PublicContext(n_records=2, n_features=1)
    )
    read = bound.check_rows(tables[1].astype(np.float32)[:, None])
    np.testing.assert_array_equal(read.ravel(), tables[1])


@pytest.mark.parametrize("times, which", [(0.0, 1), (0.9, 1), (-0.9, 1), (1.1, -1)])
@pytest.mark.parametrize("feature, near", [(0, 20 * 1e-6), (1, 3e6 * 1e-12)])
def test_rows_are_matched_up_to_rounding(times, which, feature, near):
    # a share of the feature's range, or of its digits if it hardly has one
    rows = np.array([[0.0, 3e6], [10.0, 3e6], [20.0, 3e6]])
    row = rows[1].copy()
    row[feature] += times * near
    assert matched_rows(row[None], rows).tolist() == [which]


@pytest.mark.parametrize(
    "masses, meant",
    [
        ([0.1, 0.2, 0.7], [1, 2, 7]),
        ([1 / 3, 0.0, 2 / 3], [1, 0, 2]),
        ([3, 4], [3, 4]),
        # no simple fractions: the floats as they are
        ([math.pi / 4, 1 - math.pi / 4], None),
        ([0.1, 0.2], None),
    ],
)
def test_masses_are_read_as_the_fractions_they_were_meant_to_be(masses, meant):
    found = _integers(np.array(masses)).tolist()
    if meant is not None:
        assert found == meant
    exact = [Fraction(value) for value in masses]
    for one, value in zip(found, exact, strict=True):
        share, known = Fraction(one, sum(found)), value / sum(exact)
        assert abs(share - known) <= (1e-15 * known if meant else 0)
