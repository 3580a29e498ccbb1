"""The distribution-aware Wasserstein mechanism: references, orderings, soundness."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm as normal
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import DistributionAwareWasserstein, GeneralWasserstein
from skpuffer.accountants._additive._couplings import _cells
from skpuffer.distributions import Discrete, Gaussian, PointMass, Samples, Support
from skpuffer.distributions._lattice_sum import LatticeSum
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion
from skpuffer.privacy_loss import gaussian_renyi_divergence
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import PrivateMean
from skpuffer.transport import quantile_coupling
from tests.refused import refused

from ..attack import SHARE, assert_tight, noisy_laws
from .mixtures import hockey_stick, renyi
from .oracle_distributions import (
    ALL_MOVES,
    HALF_MOVES,
    ORACLES,
    atoms,
    attribute,
    noise_of,
    number,
    output,
    pair,
    release_of,
    scenario,
    table,
)

counts = st.lists(st.integers(1, 9), min_size=1, max_size=5)
laws = counts.flatmap(
    lambda w: st.lists(
        st.integers(-6, 6).map(float), min_size=len(w), max_size=len(w), unique=True
    ).map(lambda x: Discrete(x, w))
)
planar_laws = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=4
).map(Discrete)
epsilons = st.floats(0.1, 3)
families = st.sampled_from(["gaussian", "laplace"])
targets = st.one_of(
    st.sampled_from([1.2, 2.0, 8.0]).map(lambda a: {"alpha": a}),
    st.floats(1e-4, 0.3).map(lambda d: {"delta": d}),
)
COVERED = {"delta": 0.3}
SLICED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "sliced_mechanisms.json").read_text(
        "utf-8"
    )
)["OT-22"]
NOISES = [
    GaussianNoise(),
    LaplaceNoise(),
    GeneralizedCauchyNoise(),
    GeneralizedCauchyNoise(exponent=4.0),
    GeneralizedGaussianNoise(beta=1.5),
    DiscreteLaplaceNoise(),
]
Aware = DistributionAwareWasserstein


def between_gaussians(mean, spread, first=1.0):
    return LawsScenario(
        [(Gaussian(0.0, first**2), Gaussian(mean, (first + spread) ** 2))]
    )


# -- reference values ------------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["aware"], ids=str)
def test_reference_costs(row):
    noise = noise_of(row)
    args = (noise, release_of(row["laws"]), scenario(row["laws"]))
    found = Aware(alpha=row["alpha"]).certify(*args)
    assert found.epsilon == pytest.approx(row["epsilon"], rel=1e-7)
    worst = GeneralWasserstein(alpha=row["alpha"]).certify(*args)
    if "worst" in row:
        assert worst.epsilon == pytest.approx(row["worst"], rel=1e-7)
    assert found.epsilon < worst.epsilon


@pytest.mark.parametrize("row", ORACLES["aware_calibrated"], ids=str)
def test_reference_scales(row):
    accountant = Aware(row["epsilon"], alpha=row["alpha"], noise=row["noise"])
    found = accountant.calibrate(release_of(row["laws"]), scenario(row["laws"]))
    assert found.noise.scale == pytest.approx(row["scale"], rel=1e-9)
    assert found.certificate.epsilon == row["epsilon"]
    # rounded up
    curve = found.certificate.curve
    assert curve.renyi(row["alpha"]) <= row["epsilon"]


@pytest.mark.parametrize("row", ORACLES["aware_gaussians"], ids=str)
def test_reference_costs_of_gaussian_laws(row):
    laws = between_gaussians(row["mean"], row["spread"])
    noise = GaussianNoise(float(row["scale"]))
    found = Aware(alpha=row["alpha"]).certify(noise, output(), laws)
    assert found.epsilon == pytest.approx(number(row["epsilon"]), rel=1e-9)


def test_reference_exponents_and_that_one_is_the_best():
    row = ORACLES["aware_exponent"]
    noise = LaplaceNoise(float(row["scale"]))
    args = (noise, output(), scenario(row["laws"]))
    costs = [Aware(alpha=row["alpha"], q=q).certify(*args).epsilon for q in row["q"]]
    assert costs == pytest.approx(row["epsilon"], rel=1e-6)
    assert costs == sorted(costs)
    # and never above the worst case, however large
    worst = GeneralWasserstein(alpha=row["alpha"]).certify(*args).epsilon
    assert Aware(alpha=row["alpha"], q=100).certify(*args).epsilon == worst


def chain_laws(n, i, transition, initial):
    """Return the laws of the visits to state 1 given each state at time i."""
    out = []
    for state in (0, 1):
        mass = np.zeros((2, n + 1))
        for t in range(n):
            if t == 0:
                now = np.outer(initial, np.eye(1, n + 1)[0])
            else:
                now = transition.T @ mass
            now[1] = np.roll(now[1], 1)
            if t == i:
                now[1 - state] = 0.0
            mass = now
        total = mass.sum(axis=0)
        out.append(Discrete(np.arange(n + 1), total / total.sum()))
    return tuple(out)


@pytest.mark.parametrize("case", SLICED["found"], ids=str)
def test_reference_variances_of_gaussian_noise(case):
    """OT-22. Larger exponents may take more than the worst case, which is taken."""
    laws = LawsScenario([(Discrete(SLICED["first"]), Discrete(SLICED["second"]))])
    budget = {"epsilon": case["epsilon"], "alpha": case["alpha"]}
    worst = GeneralWasserstein(**budget, noise="gaussian").calibrate(output(), laws)
    most = worst.noise.scale**2
    assert most == pytest.approx(2 * case["alpha"] / case["epsilon"])
    accountant = Aware(**budget, noise="gaussian", q=case["q"])
    found = accountant.calibrate(output(), laws).noise.scale ** 2
    assert found == pytest.approx(min(case["variance"], most), rel=1e-9)


@pytest.mark.parametrize("alpha", ["2", "8"])
def test_reference_chain(alpha):
    row = ORACLES["aware_chain"]
    n, order = row["n"], float(alpha)
    laws = [
        chain_laws(n, i, np.array(row["transition"]), row["initial"]) for i in range(n)
    ]
    noise = LaplaceNoise(float(row["scale"]))
    args = (noise, output(), LawsScenario(laws))
    aware = Aware(alpha=order).certify(*args).epsilon
    assert aware == pytest.approx(row["aware"][alpha], rel=1e-8)
    worst = GeneralWasserstein(alpha=order).certify(*args).epsilon
    assert worst == pytest.approx(row["worst"][alpha], rel=1e-8)
    true = max(
        renyi(noise, *atoms(a), *atoms(b), order)
        for u, v in laws
        for a, b in ((u, v), (v, u))
    )
    assert true == pytest.approx(row["true"][alpha], abs=1e-5)


def test_reference_chain_of_the_scenario():
    row = ORACLES["aware_chain"]
    count = QueryRelease(
        contribution=lambda X, y: X, is_sum=True, n_records=row["n"], dim=1
    )
    chain = MarkovChainScenario(row["transition"])
    noise = LaplaceNoise(float(row["scale"]))
    for alpha, epsilon in row["aware"].items():
        found = Aware(alpha=float(alpha)).certify(noise, count, chain)
        assert found.epsilon == pytest.approx(epsilon, rel=1e-8)


# -- orderings -------------------------------------------------------------------------


# delta covers all that moves: no noise is needed, and none is enough on the way back
@example(Discrete([0.0, 1.0], [4, 1]), Discrete([0.0, 3.0], [4, 1]), 0.1, 1, COVERED)
@given(laws, laws, epsilons, st.sampled_from(range(len(NOISES))), targets)
def test_never_more_noise_than_the_worst_case(u, v, epsilon, which, target):
    noise = NOISES[which]
    laws = LawsScenario([(u, v)])
    aware, worst = (
        kind(epsilon, noise=noise, **target).calibrate(output(), laws)
        for kind in (Aware, GeneralWasserstein)
    )
    assert aware.noise.scale <= worst.noise.scale
    back = Aware(epsilon, noise=noise, **target).certify(aware.noise, output(), laws)
    assert back.epsilon <= epsilon * (1 + 1e-9)


@given(planar_laws, planar_laws, epsilons, families, targets)
def test_never_more_noise_in_the_plane(u, v, epsilon, noise, target):
    laws = LawsScenario([(u, v)])
    aware, worst = (
        kind(epsilon, noise=noise, **target).calibrate(output(2), laws).noise.scale
        for kind in (Aware, GeneralWasserstein)
    )
    assert aware <= worst


@given(laws, laws, families, st.floats(0.3, 5))
def test_costs_grow_with_the_order_up_to_the_worst_case(u, v, family, scale):
    noise = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}[family](scale)
    laws = LawsScenario([(u, v)])
    costs = [
        Aware(alpha=a).certify(noise, output(), laws).epsilon for a in (1.2, 2.0, 5.0)
    ]
    assert costs[0] <= costs[1] * (1 + 1e-9) and costs[1] <= costs[2] * (1 + 1e-9)
    curve = Aware(alpha=2.0).certify(noise, output(), laws).curve
    assert curve.renyi(math.inf) == noise.renyi(
        math.inf, GeneralWasserstein().certify(noise, output(), laws).sensitivity
    )


def test_a_pure_promise_gains_nothing_and_is_refused():
    with refused(ValueError, "parameter.alpha_infinite_mean_order"):
        Aware(alpha=math.inf).calibrate(output(), scenario("flu"))
    # the mean tends to the worst case
    noise = LaplaceNoise(2.0)
    high = Aware(alpha=1e5).certify(noise, output(), scenario("flu")).epsilon
    assert 0.9999 < high <= 1.0


@pytest.mark.parametrize(
    "options, said",
    [
        ({"q": 0.5}, Statement("parameter.q_below_one")),
        ({"q": math.inf}, Statement("parameter.q_below_one")),
        ({"q": math.nan}, Statement("parameter.is_nan", name="q")),
        ({"epsilon": 0}, Statement("parameter.not_positive", name="epsilon")),
        ({"alpha": 1}, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ({"alpha": 2, "delta": 0.1}, Statement("parameter.alpha_and_delta_both")),
        ({"delta": 1.0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"noise": "uniform"}, Statement("parameter.option_unknown", name="noise")),
    ],
    ids=repr,
)
def test_bad_parameters(options, said):
    for attempt in ("calibrate", "certify"):
        noise = (LaplaceNoise(1.0),) if attempt == "certify" else ()
        with refused(ValueError, said.code, **said.parameters):
            getattr(Aware(**options), attempt)(*noise, output(), scenario("flu"))
    with refused(TypeError, "noise.not_a_noise"):
        Aware().certify("laplace", output(), scenario("flu"))
    # noise on the integers hides integers
    args = (output(is_integer=False), scenario("flu"))
    whole = DiscreteLaplaceNoise()
    with refused(UnsupportedError, "noise.integer_family_for_reals"):
        Aware(noise=whole).calibrate(*args)
    with refused(UnsupportedError, "noise.integer_family_for_reals"):
        Aware().certify(whole, *args)


# -- the promise against the truth -----------------------------------------------------


@given(laws, laws, epsilons, st.sampled_from([1.2, 2.0, 8.0]), families)
def test_no_renyi_divergence_exceeds_the_promise(u, v, epsilon, alpha, family):
    accountant = Aware(epsilon=epsilon, alpha=alpha, noise=family)
    found = accountant.calibrate(output(), LawsScenario([(u, v)]))
    if found.noise.is_zero:
        return
    for first, second in ((u, v), (v, u)):
        true = renyi(found.noise, *atoms(first), *atoms(second), alpha)
        assert true <= epsilon * (1 + 1e-6) + 1e-9
        true = renyi(found.noise, *atoms(first), *atoms(second), 3.0)
        assert true <= found.certificate.curve.renyi(3.0) * (1 + 1e-6) + 1e-9


@given(laws, laws, epsilons, st.floats(1e-4, 0.3), families)
def test_no_event_exceeds_the_promise(u, v, epsilon, delta, family):
    accountant = Aware(epsilon=epsilon, delta=delta, noise=family)
    found = accountant.calibrate(output(), LawsScenario([(u, v)]))
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    if found.noise.is_zero:
        return
    curve = found.certificate.curve
    assert curve.delta(epsilon) <= delta
    for first, second in ((u, v), (v, u)):
        true = hockey_stick(found.noise, *atoms(first), *atoms(second), epsilon)
        assert true <= delta * (1 + 1e-3)
        true = hockey_stick(found.noise, *atoms(first), *atoms(second), 0.5 * epsilon)
        assert true <= curve.delta(0.5 * epsilon) * (1 + 1e-3)


def test_two_points_leave_nothing_to_spare():
    laws = LawsScenario([(PointMass(0.0), PointMass(2.0))])
    for noise in ("gaussian", "laplace"):
        found = Aware(0.8, alpha=4, noise=noise).calibrate(output(), laws)
        worst = GeneralWasserstein(0.8, alpha=4, noise=noise)
        assert found.noise == worst.calibrate(output(), laws).noise
        half = found.noise.with_scale(found.noise.scale / 2)
        assert renyi(half, [0.0], [1.0], [2.0], [1.0], 4.0) > 1.2


def test_the_bound_between_truth_and_worst_case():
    noise = GeneralizedCauchyNoise(1.0)
    args = (noise, output(), scenario("correlated"))
    aware = Aware(alpha=2).certify(*args).epsilon
    assert ORACLES["true_renyi_of_correlated"] < aware
    u, v = pair("correlated")

    def density(law, x):
        return sum(
            m / (math.pi * (1 + (x - p) ** 2)) for p, m in zip(*atoms(law), strict=True)
        )

    total = sum(
        quad(lambda x: density(u, x) ** 2 / density(v, x), a, b, limit=200)[0]
        for a, b in ((-math.inf, 0), (0, 2), (2, math.inf))
    )
    assert math.log(total) == pytest.approx(
        ORACLES["true_renyi_of_correlated"], rel=1e-6
    )


# -- laws that are infinitely far apart ------------------------------------------------


@pytest.mark.parametrize("mean, spread, alpha", [(1, 0.3, 2), (0, 0.2, 3), (2, 0.1, 4)])
def test_gaussian_laws_of_unequal_variance(mean, spread, alpha):
    laws = between_gaussians(mean, spread)
    with refused(InfiniteDistanceError, "transport.distance_infinite"):
        GeneralWasserstein(alpha=alpha).calibrate(output(), laws)
    found = Aware(0.5, alpha=alpha, noise="gaussian").calibrate(output(), laws)
    certificate = found.certificate
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    assert certificate.epsilon == certificate.rpp_epsilon == 0.5
    assert certificate.sensitivity is None and certificate.norm is None
    noise = found.noise.scale**2
    first, second = 1 + noise, (1 + spread) ** 2 + noise
    for a, b in ((first, second), (second, first)):
        true = gaussian_renyi_divergence(0.0, a, mean, b, alpha)
        assert true <= 0.5
    assert "∞" not in certificate.details() and certificate.gain is None


def mean_over_moves(mean, spread):
    """Mean of a function of the length of a Gaussian move, by quadrature."""
    middle = mean / spread
    sides = ((-15 - middle, -middle), (-middle, 0.0), (0.0, 15.0 + middle))
    # Gauss-Legendre nodes on pieces of each side of the places where nothing moves
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = [np.linspace(*side, 21) for side in sides]
    starts = np.concatenate([e[:-1] for e in edges])[:, np.newaxis]
    halves = np.concatenate([np.diff(e) for e in edges])[:, np.newaxis] / 2
    t = (starts + halves * (1 + nodes)).ravel()
    masses = (halves * weights).ravel() * normal.pdf(t)
    return lambda function: float(masses @ function(np.abs(mean + spread * t)))


@pytest.mark.parametrize(
    "noise", [LaplaceNoise(0.7), GeneralizedCauchyNoise(3.0)], ids=lambda n: n.family
)
def test_cells_of_a_gaussian_move_are_rounded_up_but_little(noise):
    mean, spread = 1.0, 0.4
    mean_of = mean_over_moves(mean, spread)
    for alpha in (1.5, 5.0):
        given = between_gaussians(mean, spread)
        found = Aware(alpha=alpha).certify(noise, output(), given)
        total = mean_of(lambda z, a=alpha: np.exp((a - 1) * noise.renyi(a, z)))
        true = math.log(total) / (alpha - 1)
        assert true <= found.epsilon <= true * (1 + 5e-3)
    # the curve is the same whatever the order asked for
    true = mean_of(lambda z: noise.delta(0.3, z))
    assert true <= found.curve.delta(0.3) <= true * (1 + 5e-3)


def test_gaussian_laws_of_equal_covariance_are_points_apart():
    first = Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    second = Gaussian([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]])
    laws = LawsScenario([(first, second)])
    for noise in (GaussianNoise(1.5), LaplaceNoise(1.5)):
        found = Aware(alpha=3).certify(noise, output(2), laws).epsilon
        assert found == pytest.approx(noise.renyi(3, 1.0) + noise.renyi(3, 2.0))


def test_gaussian_laws_in_the_plane():
    first = Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 4.0]])
    second = Gaussian([1.0, 2.0], [[1.44, 0.0], [0.0, 4.84]])
    laws = LawsScenario([(first, second)])
    noise = GaussianNoise((2.0, 3.0))
    found = Aware(alpha=2).certify(noise, output(2), laws).epsilon
    # coordinates are independent, so costs add
    parts = [
        Aware(alpha=2).certify(GaussianNoise(s), output(), between_gaussians(m, d, f))
        for s, m, d, f in ((2.0, 1.0, 0.2, 1.0), (3.0, 2.0, 0.2, 2.0))
    ]
    assert found == pytest.approx(sum(part.epsilon for part in parts), rel=1e-9)
    as_matrix = CorrelatedGaussianNoise(covariance=[[4.0, 0.0], [0.0, 9.0]])
    assert Aware(alpha=2).certify(as_matrix, output(2), laws).epsilon == (
        pytest.approx(found, rel=1e-9)
    )
    true = gaussian_renyi_divergence(
        [0, 0], np.diag([5.0, 13.0]), [1, 2], np.diag([5.44, 13.84]), 2
    )
    assert true <= found
    calibrated = Aware(1.0, alpha=2, noise="gaussian").calibrate(output(2), laws)
    assert calibrated.certificate.to_approximate(1e-4).epsilon > 1.0
    with refused(InfiniteDistanceError, "transport.mean_distance_infinite"):
        Aware(alpha=2, noise="laplace").calibrate(output(2), laws)


# -- what facts allow ------------------------------------------------------------------


def test_only_the_longest_move_known():
    """Nothing but the worst case, hence its noise and its promise."""
    support = LawsScenario([(Support([0.0, 1.0]), Support([0.5, 2.0]))])
    release = output(sensitivity=Sensitivity(add_remove={1: 1.0}))
    for laws in (support, RecordScenario(), RecordScenario(relation="replace")):
        aware, worst = (
            kind(0.5, alpha=3, noise="laplace").calibrate(release, laws)
            for kind in (Aware, GeneralWasserstein)
        )
        assert aware.noise == worst.noise
        for name in ("notion", "epsilon", "rpp_epsilon", "relation", "sensitivity"):
            assert getattr(aware.certificate, name) == getattr(worst.certificate, name)


def test_draws_of_unknown_laws_are_estimates():
    samples = LawsScenario([(Samples([0.0, 0.1, 5.0]), Samples([0.0, 0.2, 1.0]))])
    found = Aware().calibrate(output(), samples)
    assert found.certificate.notion is Notion.ESTIMATED
    assert found.certificate.rpp_epsilon == math.inf
    same = LawsScenario([(Samples([0.0, 1.0]), Samples([1.0, 0.0]))])
    with refused(UnsupportedError, "noise.samples_do_not_move"):
        Aware().calibrate(output(), same)
    hardly = LawsScenario([(Samples([0.0] * 9 + [1.0]), Samples([0.0] * 10))])
    with refused(UnsupportedError, "noise.samples_hardly_move"):
        Aware(delta=0.5).calibrate(output(), hardly)


def test_paired_draws():
    def draw(secret, rng):
        return rng.normal(size=(3, 1))

    def draw_pair(a, b, rng):
        base = rng.normal(size=(3, 1))
        far = 5.0 if rng.random() < 0.05 else 0.0
        return base, base + 0.5 + far

    release = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=3, dim=1)

    def found(kind, confidence, **options):
        worlds = SimulatorScenario(
            draw, draw_pair, secrets=[0, 1], confidence=confidence
        )
        options = {"noise": "laplace"} | options
        return kind(1.0, alpha=2, **options).calibrate(release, worlds)

    estimate = found(Aware, None)
    assert estimate.certificate.notion is Notion.ESTIMATED
    assert estimate.noise.scale < 0.9 * found(GeneralWasserstein, None).noise.scale
    # with confidence it is the longest move that is known, not the mean
    sure, worst = found(Aware, 0.99), found(GeneralWasserstein, 0.99)
    assert sure.noise == worst.noise
    assert sure.certificate.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH


def test_a_prior_known_outside_an_event():
    """Masses are then inflated by what the event leaves of them, and no more."""
    rng = np.random.default_rng(0)
    prior = pd.DataFrame({"s": [0, 1] * 2000, "x": rng.integers(0, 3, 4000) * 1.0})
    release = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=3,
        dim=1,
    )
    found = {
        trust: Aware(alpha=2).certify(
            LaplaceNoise(1.0),
            release,
            AttributeScenario("s", level="record", prior=prior, prior_as=trust),
        )
        for trust in ("law", "confidence")
    }
    event = found["confidence"].event_delta
    assert event > 0 and found["law"].event_delta == 0
    assert found["confidence"].notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert found["confidence"].epsilon == pytest.approx(
        found["law"].epsilon - math.log1p(-event), rel=1e-9
    )
    # a delta that the event uses up is refused
    scenario = AttributeScenario(
        "s", level="record", prior=prior, prior_as="confidence"
    )
    with refused(ValueError, "event.mass_above_delta"):
        Aware(delta=event / 2).calibrate(release, scenario)


@pytest.mark.parametrize("family", [GaussianNoise, LaplaceNoise])
def test_masses_known_to_an_error(family):
    """The curve holds for all laws within it, and costs as little as the error."""
    u, v = pair("flu")
    noise, error = family(2.0), 0.05
    exact = Aware(alpha=3).certify(noise, output(), scenario("flu")).curve
    curve = replace(exact, mass_error=error)
    rng = np.random.default_rng(1)
    for _ in range(20):
        laws = []
        for law in (u, v):
            masses = law.masses * (1 + error * rng.uniform(-0.5, 0.5, len(law.masses)))
            laws.append((law.points[:, 0], masses / masses.sum()))
        assert renyi(noise, *laws[0], *laws[1], 3) <= curve.renyi(3)
        for epsilon in (0.1, 0.5):
            true = hockey_stick(noise, *laws[0], *laws[1], epsilon)
            assert true <= curve.delta(epsilon)
    assert exact.renyi(3) < curve.renyi(3) < exact.renyi(3) + 0.2
    tiny = replace(exact, mass_error=1e-12)
    assert tiny.renyi(3) == pytest.approx(exact.renyi(3), rel=1e-9)


@pytest.mark.parametrize("at", [0, 1])
def test_errors_of_masses_reach_the_promise(at):
    """Those of any law of any pair."""
    place, steps = (np.zeros(1), np.ones(1)), np.arange(3)
    masses = np.array([0.5, 0.3, 0.2])

    def promised(error, **options):
        law = LatticeSum(steps, masses, *place, error)
        pair = [law, PointMass(0.0)]
        other = (Discrete([0, 1]), PointMass(0.0))
        laws = LawsScenario([(pair[at], pair[1 - at]), other])
        return Aware(**options).certify(LaplaceNoise(8.0), output(), laws)

    for options in ({"alpha": 3}, {"delta": 0.01}):
        assert promised(0.01, **options).epsilon > promised(0.0, **options).epsilon
    # every ratio of densities may be off by it, and every density
    exact, rough = promised(0.0, alpha=3).curve, promised(0.01, alpha=3).curve
    off = math.log(1.01 / 0.99)
    assert rough.renyi(3) == pytest.approx(exact.renyi(3) + 3 * off / 2, rel=1e-6)
    assert rough.delta(0.1) == pytest.approx(1.01 * exact.delta(0.1 - off), rel=1e-6)


@pytest.mark.parametrize("noise", [GaussianNoise(6.0), LaplaceNoise(6.0)])
@pytest.mark.parametrize("options", [{"alpha": 3}, {"delta": 0.01}], ids=str)
def test_the_dearest_of_several_couplings_counts(noise, options):
    """In either promise, whichever order pairs and priors come in."""
    zero = PointMass(0.0)
    far = [Discrete([0, 9], [90, 10]), Discrete([0, 9], [60, 40]), Discrete([0, 1])]

    def certify(laws):
        return Aware(**options).certify(noise, output(), LawsScenario(laws))

    alone = [certify([(law, zero)]) for law in far]
    epsilons = [certificate.epsilon for certificate in alone]
    assert epsilons[1] == max(epsilons) > 2 * min(epsilons)
    for laws in ([(law, zero) for law in far], [(law, zero) for law in far[::-1]]):
        together = certify(laws)
        assert together.epsilon == pytest.approx(max(epsilons), rel=1e-9)
        for epsilon in (0.05, 0.3):
            deltas = [each.curve.delta(epsilon) for each in alone]
            assert together.curve.delta(epsilon) == pytest.approx(max(deltas), rel=1e-9)


def test_a_mass_within_delta_needs_no_noise():
    laws = LawsScenario([(Discrete([0.0, 9.0], [99, 1]), PointMass(0.0))])
    found = Aware(delta=0.02).calibrate(output(), laws)
    assert found.noise.is_zero
    assert (found.certificate.epsilon, found.certificate.delta) == (0.0, 0.02)
    assert found.certificate.curve.delta(1.0) == pytest.approx(0.01)
    assert not Aware(delta=0.005).calibrate(output(), laws).noise.is_zero


@pytest.mark.parametrize("noise", [GaussianNoise, LaplaceNoise])
def test_plans_avoid_a_coordinate_without_noise(noise):
    """The plan of W_2 moves it by one, so its cost is infinite; another does not."""
    laws = Discrete([[0, 0], [10, 1]]), Discrete([[0, 1], [10, 0]])
    found = Aware(alpha=2).certify(noise([10.0, 0.0]), output(2), LawsScenario([laws]))
    moved = noise(10.0).renyi(2, 10.0)
    assert found.epsilon == pytest.approx(float(moved), rel=1e-9)


def test_the_longest_move_is_stated_beside_the_mean():
    found = Aware(0.5, alpha=8).calibrate(output(), scenario("flu")).certificate
    assert (found.sensitivity, found.norm) == (2.0, 1.0)
    far = Aware(noise="gaussian").calibrate(output(), between_gaussians(1.0, 0.1))
    assert far.certificate.sensitivity is far.certificate.norm is None


def test_certificates_do_not_compose_and_convert_by_the_whole_curve():
    found = Aware(0.5, alpha=8).calibrate(output(), scenario("flu")).certificate
    assert not found.composable and found.coupling_id is None
    assert found.n_releases == 1 and found.to_dict()["curve"]["kind"] == "coupling"
    exact = found.to_approximate(1e-3)
    basic = 0.5 + math.log(1e3) / 7
    assert exact.epsilon < basic
    noise, (u, v) = found.curve.noise, pair("flu")
    for a, b in ((u, v), (v, u)):
        assert hockey_stick(noise, *atoms(a), *atoms(b), exact.epsilon) <= 1e-3


def test_units_and_the_factor_of_a_sum():
    u, v = Discrete([[0.0, 0.0], [1.0, 10.0]]), Discrete([[0.0, 20.0], [2.0, 0.0]])
    scaled = [Discrete(law.points / [1.0, 10.0]) for law in (u, v)]
    plain = Aware(alpha=2).calibrate(output(2), LawsScenario([tuple(scaled)]))
    found = Aware(alpha=2).calibrate(
        output(2, units=(1.0, 10.0)), LawsScenario([(u, v)])
    )
    assert np.asarray(found.noise.scale) == pytest.approx(
        plain.noise.scale * np.array([1.0, 10.0]), rel=1e-6
    )
    release = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        factor=-0.5,
        n_records=2,
        dim=1,
    )
    prior = pd.DataFrame({"s": [0, 0, 1, 1], "x": [0.0, 1.0, 1.0, 3.0]})
    half = AttributeScenario("s", level="record", prior=prior, prior_as="law")
    laws = LawsScenario([(Discrete([0.0, 0.5]), Discrete([0.5, 1.5]))])
    assert Aware().calibrate(release, half).noise.scale == pytest.approx(
        Aware().calibrate(output(), laws).noise.scale, rel=1e-9
    )


def test_an_optimiser_s_tolerance_lengthens_every_move():
    u, v = pair("flu")
    x, y, mass = quantile_coupling(u.points[:, 0], v.points[:, 0], u.weights, v.weights)
    noise = LaplaceNoise(2.0)
    slack = 0.25
    costs = np.exp(noise.renyi(2, np.abs(x - y) + slack))
    found = Aware(alpha=2).certify(noise, output(slack=slack), scenario("flu"))
    assert found.epsilon == pytest.approx(math.log(mass @ costs), rel=1e-9)


# -- end to end ------------------------------------------------------------------------


def test_in_an_estimator():
    X = table()
    options = {"scenario": attribute(), "bounds": (0.0, 1.0)}
    fitted = {
        kind: PrivateMean(
            accountant=kind(0.5, alpha=2, noise="laplace"), **options
        ).fit(X)
        for kind in (Aware, GeneralWasserstein)
    }
    scales = [np.max(model.noise_.scale) for model in fitted.values()]
    assert scales[0] < 0.7 * scales[1]
    certificate = fitted[Aware].certificate_
    assert certificate.notion is Notion.RENYI_PUFFERFISH and certificate.epsilon == 0.5
    search = GridSearchCV(
        PrivateMean(accountant=Aware(), **options),
        {"accountant__epsilon": [0.5, 1.0], "accountant__q": [1, 2]},
        cv=2,
        scoring=lambda model, X, y=None: -float(np.max(model.noise_.scale)),
        error_score="raise",
    )
    assert search.fit(X).best_params_ == {
        "accountant__epsilon": 1.0,
        "accountant__q": 1,
    }


@pytest.mark.parametrize(
    "budget",
    [{"epsilon": 0.6, "alpha": 4.0}, {"epsilon": 0.5, "delta": 0.02}],
    ids=["renyi", "approximate"],
)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "laws, share",
    # the published laws overlap, so that less noise would do
    [(pair("flu"), 0.35), (ALL_MOVES, SHARE), (HALF_MOVES, SHARE)],
    ids=["flu", "all moves", "half moves"],
)
def test_an_attacker(budget, noise, laws, share):
    found = Aware(noise=noise, **budget).calibrate(output(), LawsScenario([laws]))
    options = {"n_draws": 40_000, "seed": 3, "share": share}
    assert_tight(found.certificate, found.noise, **noisy_laws(*laws), **options)


@pytest.mark.parametrize("center, spread", [(0.0, 1.0), (1.5, 0.5), (40.0, 2.0)])
@pytest.mark.parametrize("slope", [0.0, 5.0])
def test_cells_of_a_folded_normal(center, spread, slope):
    last = center / spread + 38
    ends, masses = _cells(center, spread, last, slope)
    # from each cell on, all that lies beyond the one before
    before, z = np.concatenate([[0.0], ends[:-1]]), normal(center, spread)
    beyond = z.sf(before) + z.cdf(-before)
    np.testing.assert_allclose(masses[::-1].cumsum()[::-1], beyond, rtol=1e-9)
    # nearly all of it is in narrow cells, those below the mean too
    wide = np.diff(np.concatenate([[0.0], ends])) > 2e-3 * spread
    assert masses[wide].sum() < 1e-15
    # and where an exponential weight has moved the upper half
    moved = normal(center + slope * spread, spread)
    assert moved.sf(before[wide & (before > center)].min()) < 1e-15


@pytest.mark.parametrize(
    "one, other",
    [
        (PointMass(0.0), Gaussian(1.0, 1.0)),
        (Gaussian(1.0, 1.0), PointMass(0.0)),
        (Support([0.0, 1.0]), Gaussian(1.0, 1.0)),
        (Gaussian(1.0, 1.0), Support([0.0, 1.0])),
    ],
)
def test_no_coupling_is_made_up_for_a_gaussian_and_something_else(one, other):
    release = QueryRelease(query=lambda X, y: X.mean(), n_records=5, dim=1)
    with pytest.raises(InfiniteDistanceError):
        DistributionAwareWasserstein(alpha=2.0, noise="gaussian").calibrate(
            release, LawsScenario([(one, other)])
        )
