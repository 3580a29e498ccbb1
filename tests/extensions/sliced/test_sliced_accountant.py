"""The sliced Wasserstein mechanism: its numbers, its invariants, what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skpuffer.accountants import Best, GeneralWasserstein, SlicedWasserstein
from skpuffer.distributions import (
    Discrete,
    Gaussian,
    PointMass,
    Samples,
    Support,
    sliced_distribution_distances,
)
from skpuffer.exceptions import (
    CompositionError,
    InfiniteDistanceError,
    Statement,
    UncertifiedError,
    UnsupportedError,
)
from skpuffer.extensions.sliced._costs import JointSlicedCurve, SampledSlicesCurve
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise, LaplaceNoise
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import CoupledSamples, LawsScenario, SimulatorScenario
from skpuffer.transport import Ball, Box, SliceProfile
from tests.accountants.contract import Offering
from tests.refused import refused, says

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "sliced_mechanisms.json").read_text(
        "utf-8"
    )
)

WAYS = {
    "average": ("average", None),
    "exact": ("joint", "exact"),
    "closed": ("joint", "closed"),
}


def output(dim, **options):
    return QueryRelease(query=lambda X, y: X, n_records=5, dim=dim, **options)


def moved(*move):
    """Two points, so far apart."""
    return LawsScenario([(PointMass(np.zeros(len(move))), PointMass(list(move)))])


def between(*points):
    """Every two of some points."""
    masses = [PointMass(point) for point in points]
    return LawsScenario([(u, v) for i, u in enumerate(masses) for v in masses[:i]])


def sliced(way, alpha, epsilon=1.0, **options):
    return SlicedWasserstein(epsilon, alpha, *WAYS[way], **options)


def variance(way, release, scenario, alpha, epsilon=1.0, **options):
    """Variance of the noise that is found, after a look at the promise of it."""
    accountant = sliced(way, alpha, epsilon, **options)
    noise, certificate, *_ = vars(accountant.calibrate(release, scenario)).values()
    again = accountant.certify(noise, release, scenario)
    assert again.epsilon <= epsilon
    assert certificate.epsilon == pytest.approx(again.epsilon, rel=1e-9)
    return float(noise.variance())


def full(release, scenario, alpha, epsilon=1.0):
    accountant = GeneralWasserstein(epsilon, alpha, noise="gaussian")
    return float(accountant.calibrate(release, scenario).noise.variance())


# -- numbers ---------------------------------------------------------------------------


@pytest.mark.every_run
@pytest.mark.parametrize("way", WAYS)
def test_points_on_the_axes(way):
    """OT-01."""
    case = ORACLES["OT-01"]
    args = output(3), moved(*case["move"]), case["alpha"], case["epsilon"]
    found = variance(way, *args, profile="basis")
    assert found == pytest.approx(case[way], rel=1e-10)
    assert full(*args) == pytest.approx(case["gwm"])


@pytest.mark.every_run
@pytest.mark.parametrize("case", ORACLES["OT-02"], ids=str)
def test_the_way_back(case):
    """OT-02, OT-02b."""
    noise = GaussianNoise(math.sqrt(case["variance"]))
    for way in ("average", "exact"):
        accountant = sliced(way, 4.0, profile="basis")
        certificate = accountant.certify(noise, output(3), moved(3, 4, 0))
        assert certificate.epsilon == pytest.approx(case[way], rel=1e-8)
        assert certificate.rpp_epsilon == pytest.approx(case["rpp"], rel=1e-9)


@pytest.mark.every_run
def test_orders_between_the_limits():
    """OT-03."""
    case = ORACLES["OT-03"]
    ratios = zip(case["alpha"], case["exact_over_average"], strict=True)
    args = output(3), moved(3, 4, 0)
    for alpha, ratio in ratios:
        exact, average = (
            variance(way, *args, alpha, profile="basis") for way in ("exact", "average")
        )
        assert exact / average == pytest.approx(ratio, rel=1e-9)
    exact, closed = (
        variance(way, *args, 256.0, profile="basis") for way in ("exact", "closed")
    )
    assert exact / closed == pytest.approx(case["exact_over_closed_at_256"], rel=1e-9)


@pytest.mark.every_run
@pytest.mark.parametrize("case", ORACLES["OT-06"]["found"], ids=str)
def test_gaussians_under_a_linear_query(case):
    """OT-06: the prior's own spread is no noise."""
    matrix, mean, covariance = (
        np.array(ORACLES["OT-06"][name]) for name in ("matrix", "mean", "covariance")
    )
    spread = matrix @ covariance @ matrix.T
    scenario = LawsScenario(
        [(Gaussian(np.zeros(2), spread), Gaussian(matrix @ mean, spread))]
    )
    args = output(2), scenario, case["alpha"], case["epsilon"]
    for way in WAYS:
        found = variance(way, *args, profile="uniform")
        assert found == pytest.approx(case[way], rel=1e-9)
    assert full(*args) == pytest.approx(case["gwm"])
    # and along one slice
    u, v = scenario.laws[0]
    one = SliceProfile.finite([ORACLES["OT-06"]["slice"]], allow_degenerate=True)
    move = sliced_distribution_distances([(u, v)], one).item()
    assert move == pytest.approx(ORACLES["OT-06"]["slice_move"])
    budgeted = 4 * move**2 / (2 * 42.5)
    assert budgeted == pytest.approx(ORACLES["OT-06"]["slice_epsilon"])
    along = one.directions[0] @ spread @ one.directions[0]
    told = 4 * move**2 / (2 * (42.5 + along))
    assert told == pytest.approx(ORACLES["OT-06"]["slice_with_prior"])


@pytest.mark.every_run
@pytest.mark.parametrize("at", range(5))
def test_one_move_over_all_directions(at):
    """OT-07: in one dimension all are one mechanism."""
    case = ORACLES["OT-07"]
    dim = case["dim"][at]
    args = output(dim), moved(1.0, *[0.0] * (dim - 1)), case["alpha"], case["epsilon"]
    for way in WAYS:
        expected = case[way] if way == "closed" else case[way][at]
        found = variance(way, *args, profile="uniform")
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.every_run
@pytest.mark.parametrize("name", ["OT-10", "OT-10b"])
def test_directions_that_are_drawn(name):
    """Theorems 4.7 and 4.8: the worst direction always bounds what was not drawn."""
    from skpuffer.extensions.sliced._costs import AveragedSlices, JointSlices
    from skpuffer.kernel.noise import root_above

    case = ORACLES[name]
    moves = np.array(case["moves"], dtype=float)
    if name == "OT-10b":
        moves = np.linspace(*case["moves"][:2], case["moves"][2])
        assert np.mean(moves**2) == pytest.approx(case["mean_square"], rel=1e-9)
    m, alpha, epsilon = len(moves), case["alpha"], case["epsilon"]
    shortfall = math.sqrt(math.log(4 / (1 - case["confidence"])) / (2 * m))
    assert shortfall == pytest.approx(case["shortfall"], rel=1e-9)
    weights, one = np.full(m, 1 / m), np.ones(1)
    parts = moves[None] ** 2, weights, case["most"] ** 2
    # the average, in closed form
    square = AveragedSlices(*parts, shortfall).curve(one).square
    most = alpha * case["most"] ** 2 / (2 * epsilon)
    assert alpha * square / (2 * epsilon) == pytest.approx(
        case.get("average_returned", case["average"]), rel=1e-9
    )
    assert case["average"] == pytest.approx(
        alpha / (2 * epsilon) * (np.mean(moves**2) + case["most"] ** 2 * shortfall)
    )

    def least(costs):
        def cost(scale):
            return costs.curve(scale**2 * one).renyi(alpha)

        low, high = np.sqrt(costs.bracket(one) * alpha / (2 * epsilon))
        return root_above(cost, epsilon, low * (1 - 1e-9), high) ** 2

    assert least(JointSlices(*parts, shortfall)) == pytest.approx(
        case["exact"], rel=1e-8
    )
    assert least(JointSlices(*parts, shortfall)) <= most
    if "finite" in case:
        assert least(JointSlices(*parts)) == pytest.approx(case["finite"], rel=1e-8)


@pytest.mark.every_run
def test_pairs_are_taken_one_by_one():
    """OT-36."""
    case = ORACLES["OT-36"]
    args = output(3), between(*case["points"]), case["alpha"], case["epsilon"]
    for way in ("average", "exact"):
        for per_pair, name in ((True, way), (False, f"{way}_paper")):
            found = variance(way, *args, profile="basis", per_pair=per_pair)
            assert found == pytest.approx(case[name], rel=1e-9)
    closed = variance("closed", *args, profile="basis")
    assert closed == pytest.approx(case["closed"])
    assert full(*args) == pytest.approx(case["gwm"])


@pytest.mark.every_run
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", ["basis", "uniform", None])
def test_on_the_line_all_are_one(way, profile):
    """OT-45."""
    case = ORACLES["OT-45"]
    args = output(1), moved(case["move"]), case["alpha"], case["epsilon"]
    assert variance(way, *args, profile=profile) == pytest.approx(case["variance"])
    assert full(*args) == pytest.approx(case["variance"])


@pytest.mark.every_run
def test_slices_without_weight():
    """OT-46: left out, of the worst slice too; and then they do not span."""
    case = ORACLES["OT-46"]
    with refused(ValueError, "sliced.slices_not_spanning"):
        SliceProfile.finite(case["slices"], case["weights"])
    one = SliceProfile.finite(case["slices"], case["weights"], allow_degenerate=True)
    for accountant in (sliced(way, case["alpha"], profile=one) for way in WAYS):
        with refused(UnsupportedError, "sliced.profile_not_spanning"):
            accountant.calibrate(output(2), moved(*case["move"]))
        assert not accountant.supports(output(2), moved(*case["move"]))
    # three that span, with and without a fourth that counts for nothing
    slices = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]]
    some = SliceProfile.finite(slices[:3], [0.5, 0.25, 0.25])
    more = SliceProfile.finite(slices, [0.5, 0.25, 0.25, 0.0])
    for way in WAYS:
        args = output(2), moved(3, 4), 4.0
        assert variance(way, *args, profile=some) == variance(way, *args, profile=more)


# -- invariants ------------------------------------------------------------------------

finite = st.floats(-10, 10).map(lambda x: round(x, 3))


@st.composite
def worlds(draw, dim=3, n_worlds=3, n_atoms=3):
    atoms = arrays(float, (n_worlds, n_atoms, dim), elements=finite)
    points = draw(atoms.filter(lambda a: np.ptp(a.sum(axis=1), axis=0).max() > 0.1))
    weights = [[2, 3, 5], [1, 1, 1], [5, 4, 1]]
    laws = [Discrete(x, w) for x, w in zip(points, weights, strict=True)]
    return [(u, v) for i, u in enumerate(laws) for v in laws[:i]]


few = settings(max_examples=12, deadline=None)


@few
@given(worlds(), st.sampled_from([1.5, 4.0, 32.0]), st.booleans())
def test_more_is_promised_by_more_noise(pairs, alpha, per_pair):
    args = output(3), LawsScenario(pairs), alpha
    found = [
        variance(way, *args, per_pair=per_pair, n_slices=20)
        for way in ("average", "exact", "closed")
    ]
    found.append(full(*args))
    for less, more in zip(found, found[1:], strict=False):
        assert less <= more * (1 + 1e-9)
    if per_pair:
        loose = variance("exact", *args, per_pair=False, n_slices=20)
        assert found[1] <= loose * (1 + 1e-9)


@few
@given(worlds(), st.sampled_from(sorted(WAYS)), st.floats(0.1, 100))
def test_noise_follows_units_and_rotations(pairs, way, factor):
    profile = SliceProfile.sampled(3, 12)
    one = variance(way, output(3), LawsScenario(pairs), 4.0, profile=profile)

    def through(map_points, profile, **options):
        mapped = [
            tuple(Discrete(map_points(law.points), law.weights) for law in pair)
            for pair in pairs
        ]
        args = output(3, **options), LawsScenario(mapped), 4.0
        return variance(way, *args, profile=profile)

    larger = through(lambda x: factor * x, profile)
    assert larger == pytest.approx(factor**2 * one, rel=1e-9)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned = SliceProfile.finite(profile.directions @ turn.T, normalize=True)
    assert through(lambda x: x @ turn.T, turned) == pytest.approx(one, rel=1e-9)


@few
@given(worlds(), st.sampled_from(sorted(WAYS)), st.permutations(range(6)))
def test_slices_may_be_permuted_or_split(pairs, way, order):
    slices = SliceProfile.sampled(3, 6).directions
    weights = np.array([0.1, 0.3, 0.2, 0.1, 0.2, 0.1])
    args = output(3), LawsScenario(pairs), 4.0
    one = variance(way, *args, profile=SliceProfile.finite(slices, weights))
    shuffled = SliceProfile.finite(slices[list(order)], weights[list(order)])
    assert variance(way, *args, profile=shuffled) == pytest.approx(one, rel=1e-12)
    twice = SliceProfile.finite(
        np.vstack([slices, slices]), np.concatenate([weights, 3 * weights]) / 4
    )
    assert variance(way, *args, profile=twice) == pytest.approx(one, rel=1e-12)


@few
@given(worlds(), st.sampled_from(sorted(WAYS)))
def test_noise_falls_with_the_budget_and_grows_with_the_order(pairs, way):
    def at(alpha, epsilon):
        scenario = LawsScenario(pairs)
        return variance(way, output(3), scenario, alpha, epsilon, n_slices=8)

    assert at(4.0, 2.0) < at(4.0, 1.0) < at(4.0, 0.5)
    assert at(2.0, 1.0) < at(4.0, 1.0) < at(8.0, 1.0)


def test_units_of_the_release():
    """Slices are of the output in its units, and so are noise and supports."""
    units = (1.0, 100.0)
    plain = variance("exact", output(2), moved(3, 4), 4.0)
    found = sliced("exact", 4.0).calibrate(output(2, units=units), moved(3, 400))
    scales = np.array(found.noise.scale)
    assert scales == pytest.approx(math.sqrt(plain) * np.array(units))
    assert found.certificate.rpp_epsilon == pytest.approx(50 / plain)


def test_slack_lengthens_every_move():
    slack = 0.5
    release = output(2, slack=slack)
    profile = SliceProfile.basis(2)
    found = variance("closed", release, moved(3, 4), 4.0, profile=profile)
    assert found == pytest.approx(2 * (4 + slack) ** 2)
    uniform = variance("average", release, moved(3, 4), 4.0, profile="uniform")
    assert uniform == pytest.approx(2 * (5 + slack) ** 2 / 2)


def test_noise_of_another_shape():
    """A certificate reads the variance along each slice."""
    release, scenario = output(2), moved(3, 4)
    scales = 2.0, 5.0
    expected = 4 / 2 * np.mean([9 / 4, 16 / 25])
    covariance = CorrelatedGaussianNoise(covariance=np.diag(np.square(scales)))
    for noise in (GaussianNoise(scales), covariance):
        found = sliced("average", 4.0, profile="basis").certify(
            noise, release, scenario
        )
        assert found.epsilon == pytest.approx(expected)
        assert found.rpp_epsilon == pytest.approx(2 * 25 / 4)
        # of all directions, as along that of least noise
        uniform = sliced("average", 4.0, profile="uniform")
        found = uniform.certify(noise, release, scenario)
        assert found.epsilon == pytest.approx(2 * 25 / 4 / 2)
    full_of_it = CorrelatedGaussianNoise(covariance=[[2.0, 0.9], [0.9, 1.0]])
    found = sliced("exact", 4.0).certify(full_of_it, release, scenario)
    drawn = SliceProfile.sampled(2, 200).directions
    spread = np.einsum("ki,ij,kj->k", drawn, full_of_it.covariance, drawn)
    costs = 2 * (drawn @ [3, 4]) ** 2 / spread
    assert found.epsilon == pytest.approx(
        np.log(np.mean(np.exp(3 * costs - 30))) / 3 + 10
    )
    assert found.rpp_epsilon < math.inf


# -- what else the output may be -------------------------------------------------------


def test_supports_and_continuous_lines():
    far = Support([[0.0, 0.0], [1.0, 0.0]]), Support([[0.0, 0.0], [0.0, 2.0]])
    args = output(2), LawsScenario([far]), 4.0
    assert variance("closed", *args, profile="basis") == pytest.approx(2 * 2**2)


def coupled(release, *draws, **options):
    """A bound scenario of samples of both secrets of each pair together."""
    scenario = moved(*[1.0] * release.dim).bind(release.context)
    fact = CoupledSamples(
        draws=tuple((0, 0, 1, np.array(u), np.array(v)) for u, v in draws),
        secrets=(0, 1),
        **options,
    )
    return Offering(scenario, CoupledSamples, lambda release, norm: fact)


def test_a_coupling_of_the_outputs():
    """It bounds W_inf along every slice; along each, better ones may be known."""
    release = output(2)
    u, v = [[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    bound = coupled(release, (u, v))
    accountant = sliced("average", 4.0, profile="basis")
    found = accountant.calibrate(release, bound)
    assert found.noise.variance() == pytest.approx(2 * (0 + 1) / 2)
    with refused(UnsupportedError, "sliced.secrets_do_not_move"):
        accountant.calibrate(release, LawsScenario([(Discrete(u), Discrete(v))]))
    # one displacement for all draws has closed forms
    shifted = coupled(release, (u, np.array(u) + [3.0, 4.0]))
    uniform = sliced("average", 4.0, profile="uniform")
    assert uniform.calibrate(release, shifted).noise.variance() == pytest.approx(25)
    with refused(UnsupportedError, "sliced.profile_of_all_directions"):
        uniform.calibrate(release, bound)


def test_an_event_is_refused():
    release = output(2)
    bound = coupled(release, ([[0.0, 0.0]], [[1.0, 0.0]]), delta=0.01)
    with refused(UnsupportedError, "sliced.moves_outside_event", delta=0.01):
        sliced("average", 4.0).calibrate(release, bound)


# -- directions and draws that are samples ---------------------------------------------


def discrete_pair(rng, n=40):
    return Discrete(rng.normal(size=(n, 2))), Discrete(1 + rng.normal(size=(n, 2)))


@pytest.mark.parametrize("way", WAYS)
def test_all_directions_by_those_drawn(way):
    rng = np.random.default_rng(0)
    args = output(2), LawsScenario([discrete_pair(rng)]), 4.0
    drawn = variance(way, *args)
    for confidence in (0.9, 0.999):
        accountant = sliced(way, 4.0, profile="uniform", confidence=confidence)
        noise, certificate, *_ = vars(accountant.calibrate(*args[:2])).values()
        if way == "closed":
            # the worst direction is bounded by the whole move, for certain
            assert certificate.confidence == 1
            assert noise.variance() == pytest.approx(full(*args))
            continue
        assert certificate.confidence == pytest.approx(confidence)
        assert certificate.profile == "uniform:2"
        assert drawn < noise.variance() <= full(*args) * (1 + 1e-9)
        drawn = noise.variance()
        assert any("public seed 0" in str(text) for text in certificate.assumptions)


@pytest.mark.every_run
def test_confidence_is_shared_out_over_pairs():
    rng = np.random.default_rng(0)
    one = discrete_pair(rng)
    options = {"profile": "uniform", "confidence": 0.9, "n_slices": 50}
    alone, same, together = (
        sliced("average", 4.0, **options, per_pair=per_pair)
        .calibrate(output(2), LawsScenario(pairs))
        .noise.variance()
        for pairs, per_pair in (
            ([one], True),
            ([one, one[::-1]], False),
            ([one, one[::-1]], True),
        )
    )
    assert alone == pytest.approx(same)
    # by Hoeffding's inequality, as of the largest move: a fail of either is one
    short, shorter = (math.sqrt(math.log(4 * n / 0.1) / 100) for n in (1, 2))
    most = full(output(2), LawsScenario([one]), 4.0)
    assert together - alone == pytest.approx(most * (shorter - short), rel=1e-6)


def test_draws_of_a_declared_support():
    """Bounded from above by bands, both ways round, and never beyond the support."""
    rng = np.random.default_rng(1)
    draws = [rng.uniform(size=(n, 2)) + shift for n, shift in ((900, 0), (700, 1))]
    low, high = draws
    scenario = LawsScenario([(Samples(low), Samples(high))])
    turned = LawsScenario([(Samples(high), Samples(low))])
    support = Box(0.0, 2.0)
    found = {}
    for way in WAYS:
        accountant = sliced(way, 4.0, profile="basis", confidence=0.95, support=support)
        noise, certificate, *_ = vars(
            accountant.calibrate(output(2), scenario)
        ).values()
        assert certificate.certified
        assert certificate.confidence == pytest.approx(0.95)
        assert certificate.rpp_epsilon == pytest.approx(
            4 * 8 / (2 * noise.variance()), rel=1e-6
        )
        # of uniform distributions one apart
        assert noise.variance() >= 2 * 1.0
        found[way] = noise.variance()
        back = accountant.calibrate(output(2), turned)
        assert back.noise.variance() == pytest.approx(found[way])
        known = "the draws of the output are independent, and drawn from the prior"
        assert known in map(str, certificate.assumptions)
        # all directions take more, and no more than the support is wide
        everywhere = sliced(
            way, 4.0, profile="uniform", confidence=0.95, support=support
        )
        wide = everywhere.calibrate(output(2), scenario)
        assert found[way] < wide.noise.variance() <= 2 * 8 * (1 + 1e-9)
        assert wide.certificate.certified
        # a direction that was not drawn may be worse than all that were
        if way == "closed":
            assert wide.noise.variance() == pytest.approx(2 * 8)
    assert found["average"] <= found["exact"] <= found["closed"]
    # the tails were not drawn, so that any of it may be there
    few_draws = LawsScenario([(Samples(low[:5]), Samples(high[:5]))])
    widest = sliced("closed", 4.0, profile="basis", confidence=0.95, support=support)
    assert widest.calibrate(output(2), few_draws).noise.variance() == pytest.approx(8)


def test_a_ball_as_the_support():
    rng = np.random.default_rng(1)
    scenario = LawsScenario([tuple(Samples(rng.normal(size=(5, 2))) for _ in "uv")])
    accountant = sliced("closed", 4.0, confidence=0.9, support=Ball(10.0))
    found = accountant.calibrate(output(2), scenario)
    assert found.noise.variance() == pytest.approx(2 * 20**2)
    scaled = output(2, units=(1.0, 2.0))
    found = accountant.certify(GaussianNoise((1.0, 2.0)), scaled, scenario)
    assert found.rpp_epsilon == pytest.approx(2 * 20**2)


def test_draws_without_a_support_are_refused():
    rng = np.random.default_rng(1)
    draws = tuple(Samples(rng.normal(size=(50, 2))) for _ in "uv")
    scenario = LawsScenario([draws])
    with refused(UnsupportedError, "sliced.support_not_declared"):
        sliced("average", 4.0, confidence=0.9).calibrate(output(2), scenario)
    with refused(ValueError, "transport.support_excludes_draws"):
        sliced("average", 4.0, confidence=0.9, support=Box(0, 1)).calibrate(
            output(2), scenario
        )
    weighted = Samples([[0.0, 0.0], [1.0, 1.0]], [1, 2]), draws[0]
    accountant = sliced("average", 4.0, confidence=0.9, support=Box(-9, 9))
    with refused(UnsupportedError, "sliced.confidence_with_partial_draws"):
        accountant.calibrate(output(2), LawsScenario([weighted]))
    release = output(2)
    bound = coupled(release, ([[0.0, 0.0]], [[1.0, 0.0]]), certified=False)
    with refused(UnsupportedError, "sliced.confidence_with_pair_draws"):
        accountant.calibrate(release, bound)


def test_draws_alone_are_an_estimate():
    """A plug-in distance is too small on average: an estimate, of which nothing
    follows."""
    rng = np.random.default_rng(1)
    scenario = LawsScenario(
        [tuple(Samples(rng.normal(size=(50, 2))) for _ in range(2))]
    )
    certificate = sliced("average", 4.0).calibrate(output(2), scenario).certificate
    assert not certificate.certified
    assert certificate.rpp_epsilon == math.inf
    # and does not pass for one of the whole vector
    assert (
        "slice-averaged Rényi Pufferfish privacy: it is about" in certificate.details()
    )
    assert "it is estimated at epsilon" in certificate.details()
    for ask in (
        lambda: certificate.to_approximate(1e-5),
        lambda: certificate.to_sliced_approximate(1e-5),
        certificate.after_processing,
    ):
        with refused(UncertifiedError, "certificate.estimate_no_guarantee"):
            ask()


def test_simulated_worlds():
    """Of tables that are drawn, given where the query stays."""

    def draw(secret, rng):
        return np.clip(rng.normal(secret, 0.1, size=(5, 2)), 0, 1)

    scenario = SimulatorScenario(draw, secrets=[0.2, 0.5], n_draws=100)
    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=2)
    accountant = sliced("average", 4.0, confidence=0.9, support=Box(0.0, 1.0))
    certificate = accountant.calibrate(release, scenario).certificate
    assert certificate.certified and certificate.confidence == pytest.approx(0.9)


def test_private_rows_are_no_draws():
    """Whatever is declared, a prior read off the private rows certifies nothing."""
    release = output(2, sensitivity=Sensitivity({2: 1.0}))
    rng = np.random.default_rng(1)
    scenario = LawsScenario([tuple(Samples(rng.uniform(size=(9, 2))) for _ in "uv")])
    bound = scenario.bind(release.context)
    (kind,) = bound.provides(release)

    def read(release, norm):
        return replace(bound.fact(kind, release, norm), reads_private_rows=True)

    accountant = sliced("average", 4.0, confidence=0.9, support=Box(0.0, 1.0))
    found = accountant.calibrate(release, Offering(bound, kind, read)).certificate
    assert not found.certified and found.rpp_epsilon == math.inf
    # nor is noise that was set by them worth anything to whoever is in them
    assert not any("replaced record" in str(text) for text in found.assumptions)


# -- counter-examples: what slices do not show -----------------------------------------

#: Uniform on one diagonal of the square, and on the other.
CROSSED = (
    Discrete([[0.0, 0.0], [1.0, 1.0]]),
    Discrete([[0.0, 1.0], [1.0, 0.0]]),
)


def test_no_move_along_any_slice_is_no_ground_for_no_noise():
    """OT-34: the secret is told whole, and no axis shows it."""
    args = output(2), LawsScenario([CROSSED])
    case = ORACLES["OT-34"]
    assert full(*args, 4.0) == pytest.approx(2 * case["whole"])
    for way in WAYS:
        with refused(UnsupportedError, "sliced.secrets_do_not_move"):
            sliced(way, 4.0, profile="basis").calibrate(*args)
    diagonals = SliceProfile.finite([[1, 1], [1, -1]], normalize=True)
    closed = variance("closed", *args, 4.0, profile=diagonals)
    assert closed == pytest.approx(2 * case["diagonal"] ** 2)
    many = SliceProfile.sampled(2, 20_000)
    mean = float(np.mean(sliced_distribution_distances([CROSSED], many) ** 2))
    assert mean == pytest.approx(case["uniform_mean_square"], rel=0.02)


def test_no_noise_is_certified_for_nothing():
    args = output(2), LawsScenario([CROSSED])
    for noise in (GaussianNoise(0.0), GaussianNoise((1.0, 0.0))):
        with refused(UnsupportedError, "sliced.noise_scale_not_positive"):
            sliced("average", 4.0, profile="basis").certify(noise, *args)
    # with noise the axes show nothing, and the certificate says what is told
    noise = GaussianNoise(1.0)
    found = sliced("average", 4.0, profile="basis").certify(noise, *args)
    assert found.epsilon == 0 and found.rpp_epsilon == 2.0
    assert "rpp_epsilon = 2" in found.details()


def mixture_divergences(alpha, variance):
    """Rényi divergences of the crossed pair under noise: whole, and along slices."""
    grid = np.linspace(-4, 5, 1201)
    step = grid[1] - grid[0]

    def density(centres):
        each = np.exp(-((grid - np.asarray(centres)[:, None]) ** 2) / (2 * variance))
        return each / math.sqrt(2 * math.pi * variance)

    def renyi(p, q, cell):
        return math.log(np.sum(p**alpha * q ** (1 - alpha)) * cell) / (alpha - 1)

    planes = [
        sum(np.outer(*density(x)) for x in law.points) / len(law.points)
        for law in CROSSED
    ]
    slices = []
    for angle in np.pi * np.arange(180) / 180:
        u = np.array([math.cos(angle), math.sin(angle)])
        p, q = (density(law.points @ u).mean(axis=0) for law in CROSSED)
        slices.append(renyi(p, q, step))
    return renyi(*planes, step**2), np.array(slices)


@pytest.mark.every_run
def test_no_slice_bounds_the_whole():
    """OT-35: all slices keep a promise that the vector does not."""
    case = ORACLES["OT-35"]
    alpha, close = case["alpha"], case["tolerance"]
    whole, slices = mixture_divergences(alpha, case["variance"])
    assert whole == pytest.approx(case["whole"], abs=close)
    assert slices.max() == pytest.approx(case["worst_slice"], abs=close)
    assert slices.mean() == pytest.approx(case["average"], abs=close)
    joint = math.log(np.mean(np.exp((alpha - 1) * slices))) / (alpha - 1)
    assert joint == pytest.approx(case["joint"], abs=close)
    noise = GaussianNoise(math.sqrt(case["variance"]))
    diagonals = SliceProfile.finite([[1, 1], [1, -1]], normalize=True)
    found = sliced("closed", alpha, profile=diagonals).certify(
        noise, output(2), LawsScenario([CROSSED])
    )
    assert slices.max() <= found.epsilon < whole <= found.rpp_epsilon
    assert not found.implies("renyi_pufferfish")


@pytest.mark.every_run
def test_an_attacker_sees_the_whole_vector():
    """OT-26: the likelier secret is told ever more surely in more dimensions."""
    from scipy.stats import norm

    case = ORACLES["OT-26"]
    for dim, accuracy in zip(case["dim"], case["average"], strict=True):
        args = output(dim), moved(1.0, *[0.0] * (dim - 1)), case["alpha"]
        found = variance("average", *args, profile="uniform")
        assert norm.cdf(0.5 / math.sqrt(found)) == pytest.approx(accuracy, rel=1e-9)
        certificate = (
            sliced("average", case["alpha"], profile="uniform")
            .calibrate(*args[:2])
            .certificate
        )
        assert certificate.rpp_epsilon == pytest.approx(dim, rel=1e-9)
        closed = variance("closed", *args, profile="uniform")
        assert norm.cdf(0.5 / math.sqrt(closed)) == pytest.approx(
            case["closed"], rel=1e-9
        )


def test_two_releases_tell_what_neither_does():
    """OT-33: of a fair sign and its product with the secret, no distance is told."""
    sign = Discrete([[-1.0], [1.0]])
    release, noise = output(1), GaussianNoise(0.1)
    certificates = [
        sliced("average", 4.0).certify(noise, release, LawsScenario([(sign, sign)]))
        for _ in range(2)
    ]
    assert [c.epsilon for c in certificates] == [0, 0]
    with refused(CompositionError, "compose.slices_not_composable"):
        compose(certificates)
    stacked = tuple(
        Discrete([[-1.0, -secret], [1.0, secret]]) for secret in (1.0, -1.0)
    )
    assert full(output(2), LawsScenario([stacked]), 4.0) == pytest.approx(2 * 2**2)


def test_unequal_covariances_are_infinitely_far_apart():
    """C5, also where no slice of the profile shows it."""
    plain, tilted = np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]])
    for other in (2 * plain, tilted):
        scenario = LawsScenario([(Gaussian([0, 0], plain), Gaussian([1, 0], other))])
        for profile in (None, "basis", "uniform"):
            for way in WAYS:
                with refused(InfiniteDistanceError, "sliced.distance_infinite"):
                    sliced(way, 4.0, profile=profile).calibrate(output(2), scenario)


def test_it_is_never_chosen_for_a_full_promise():
    best = Best(
        1.0, 4.0, candidates=[SlicedWasserstein(), GeneralWasserstein(noise="gaussian")]
    )
    found = best.calibrate(output(2), moved(3, 4)).certificate
    assert found.notion == "renyi_pufferfish"
    with refused(UnsupportedError, "best.no_candidate_makes_promise"):
        Best(1.0, 4.0, candidates=[SlicedWasserstein(alpha=4.0)]).calibrate(
            output(2), moved(3, 4)
        )


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, error, said",
    [
        (
            {"alpha": 1.0},
            ValueError,
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
        ({"alpha": math.inf}, ValueError, Statement("history.alpha_infinite")),
        (
            {"alpha": "2"},
            TypeError,
            Statement("parameter.not_real_number", name="alpha"),
        ),
        (
            {"aggregation": "mean"},
            ValueError,
            Statement("parameter.option_unknown", name="aggregation"),
        ),
        (
            {"method": "open"},
            ValueError,
            Statement("parameter.option_unknown", name="method"),
        ),
        ({"method": "exact"}, ValueError, Statement("sliced.method_with_average")),
        ({"per_pair": "yes"}, TypeError, Statement("parameter.not_bool")),
        (
            {"profile": "axes"},
            ValueError,
            Statement("parameter.option_unknown", name="profile"),
        ),
        (
            {"profile": np.eye(2)},
            ValueError,
            Statement("parameter.option_unknown", name="profile"),
        ),
        (
            {"confidence": 1.0},
            ValueError,
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        ({"support": (0, 1)}, TypeError, Statement("sliced.support_not_box_or_ball")),
        (
            {"n_slices": 0},
            ValueError,
            Statement("parameter.count_too_small", name="n_slices"),
        ),
    ],
    ids=repr,
)
def test_bad_parameters(options, error, said):
    accountant = SlicedWasserstein(**options)
    with refused(error, said.code, **said.parameters):
        accountant.check()
    with refused(error, said.code, **said.parameters):
        accountant.calibrate(output(2), moved(3, 4))
    with refused(error, said.code, **said.parameters):
        accountant.certify(GaussianNoise(1.0), output(2), moved(3, 4))


def test_profiles_and_noise_that_do_not_fit():
    release, scenario = output(2), moved(3, 4)
    other = SlicedWasserstein(profile=SliceProfile.basis(3))
    reason = other.supports(release, scenario).reason
    assert says(reason, "sliced.profile_dimension_mismatch", profile_dim=3)
    with refused(UnsupportedError, "sliced.profile_dimension_mismatch", profile_dim=3):
        other.calibrate(release, scenario)

    class Tilted(GaussianNoise):
        """Another Gaussian noise."""

    for noise in (LaplaceNoise(1.0), Tilted(1.0)):
        with refused(UnsupportedError, "sliced.noise_not_gaussian"):
            SlicedWasserstein().certify(noise, release, scenario)
    with refused(ValueError, "noise.variance_dimension_mismatch", noise_dim=3):
        SlicedWasserstein().certify(GaussianNoise((1.0,) * 3), release, scenario)


def test_no_closed_form_over_all_directions():
    pairs = between([0, 0], [3, 4], [1, 0])
    with refused(UnsupportedError, "sliced.profile_of_all_directions"):
        sliced("average", 4.0, profile="uniform", per_pair=False).calibrate(
            output(2), pairs
        )
    with refused(UnsupportedError, "sliced.profile_of_all_directions"):
        sliced("exact", 4.0, profile="uniform").calibrate(
            output(2), LawsScenario([CROSSED])
        )
    # the worst direction needs none
    found = variance("closed", output(2), LawsScenario([CROSSED]), 4.0)
    uniform = variance(
        "closed", output(2), LawsScenario([CROSSED]), 4.0, profile="uniform"
    )
    assert found <= uniform == pytest.approx(2.0)


def test_one_record_stands_beside_it():
    release = output(2, sensitivity=Sensitivity({2: 5.0}, {2: 10.0}))
    certificate = (
        sliced("average", 4.0, profile="uniform")
        .calibrate(release, moved(3, 4))
        .certificate
    )
    # 25 is the variance: 4 * 100 / (2 * 25)
    (said,) = [a for a in certificate.assumptions if a.code == "assume.worth_renyi_dp"]
    assert said.parameters["cost"] == pytest.approx(8)


def test_curves_are_equal_where_they_answer_alike():
    curve = JointSlicedCurve([[1.0, 2.0]], [0.5, 0.5])
    assert curve == JointSlicedCurve([[1.0, 2.0]], [0.5, 0.5])
    assert hash(curve) == hash(JointSlicedCurve([[1.0, 2.0]], [0.5, 0.5]))
    assert curve != JointSlicedCurve([[1.0, 3.0]], [0.5, 0.5])
    drawn = SampledSlicesCurve([[1.0, 2.0]], [0.5, 0.5], [2.0], 0.0)
    assert drawn != curve and drawn.renyi(4.0) == pytest.approx(curve.renyi(4.0))
    assert curve.renyi(math.inf) == math.inf
    assert JointSlicedCurve([[0.0]], [1.0]).renyi(math.inf) == 0
