"""Worlds drawn by a simulator."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skpuffer.accountants import GeneralWasserstein
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.privacy import Notion
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import (
    CoupledSamples,
    OutputDistributions,
    OutputSamples,
    SimulatorScenario,
)
from tests.refused import refused, says

N = 30


def mean(X, y):
    return np.asarray(X, dtype=float).mean(axis=0)


RELEASE = QueryRelease(query=mean, n_records=N, dim=2, name="mean")


def draw(secret, rng):
    return rng.normal(size=(N, 2)) + secret


def draw_pair(first, second, rng):
    base = rng.normal(size=(N, 2))
    return base + first, base + second


def simulator(**options):
    options = {"draw": draw, "secrets": [0.0, 0.5], "n_draws": 50} | options
    return SimulatorScenario(**options)


def certificate(scenario, release=RELEASE, **options):
    return GeneralWasserstein(**options).calibrate(release, scenario).certificate


# -- a coupling is worth having --------------------------------------------------------


def test_a_coupling_is_far_tighter_than_independent_draws():
    paired = certificate(simulator(draw_pair=draw_pair))
    alone = certificate(simulator())
    assert paired.sensitivity == pytest.approx(0.5 * math.sqrt(2), rel=1e-12)
    assert alone.sensitivity > 1.3 * paired.sensitivity
    assert paired.notion is alone.notion is Notion.ESTIMATED


NULL = "assume.simulator_sampling_noise"


def test_the_distance_of_a_secret_from_itself_is_printed():
    worlds = certificate(simulator())
    null = [a for a in worlds.assumptions if a.code == NULL]
    assert len(null) == 1
    said = null[0].parameters["null"]
    # sampling noise alone: of the order of the spread of a mean of N
    assert 0.2 / math.sqrt(N) < said < 5 / math.sqrt(N)
    assert said < worlds.sensitivity
    coupled = certificate(simulator(draw_pair=draw_pair))
    assert not says(coupled.assumptions, NULL)


def test_each_coupling_is_as_sound_as_its_draws():
    """Independent worlds as a coupling: allowed, and far looser."""

    def independent(first, second, rng):
        return draw(first, rng), draw(second, rng)

    loose = certificate(simulator(draw_pair=independent))
    tight = certificate(simulator(draw_pair=draw_pair))
    assert loose.sensitivity > 1.5 * tight.sensitivity


def test_units_and_norm_of_paired_draws():
    def shifted(first, second, rng):
        base = rng.normal(size=(N, 2))
        return base, base + [3.0, 400.0]

    release = QueryRelease(query=mean, n_records=N, dim=2, units=(1.0, 100.0))
    scenario = simulator(draw_pair=shifted)
    assert certificate(scenario, release).sensitivity == pytest.approx(5.0)
    assert certificate(scenario, release, noise="laplace").sensitivity == pytest.approx(
        7.0
    )


def test_the_worst_pair_counts():
    scenario = simulator(draw_pair=draw_pair, secrets=[0.0, 0.1, 1.0])
    assert certificate(scenario).sensitivity == pytest.approx(math.sqrt(2))
    near = simulator(draw_pair=draw_pair, secrets=[0.0, 0.1, 1.0], pairs=[(0.1, 0.0)])
    assert certificate(near).sensitivity == pytest.approx(0.1 * math.sqrt(2))


# -- with confidence -------------------------------------------------------------------


def test_confidence_gives_a_promise_outside_an_event():
    scenario = simulator(draw_pair=draw_pair, n_draws=200, confidence=0.95)
    promise = certificate(scenario)
    assert promise.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert promise.confidence == 0.95
    assert promise.delta == promise.event_delta == pytest.approx(1 - 0.05 ** (1 / 200))
    assert promise.rpp_epsilon == math.inf and not promise.composable
    three = simulator(
        draw_pair=draw_pair, n_draws=200, confidence=0.95, secrets=[0, 1, 2]
    )
    assert certificate(three).delta == pytest.approx(1 - (0.05 / 3) ** (1 / 200))


def test_confidence_leaves_the_rest_of_delta_to_the_noise():
    scenario = simulator(draw_pair=draw_pair, n_draws=1000, confidence=0.9)
    event = 1 - 0.1 ** (1 / 1000)
    promise = certificate(scenario, epsilon=1.0, delta=0.01)
    assert promise.notion is Notion.APPROXIMATE_PUFFERFISH
    assert promise.delta == 0.01
    assert promise.curve.delta(1.0) == pytest.approx(0.01 - event, rel=1e-6)
    with refused(ValueError, "event.mass_above_delta"):
        certificate(scenario, epsilon=1.0, delta=0.999 * event)
    with refused(ValueError, "certificate.delta_below_event"):
        promise.to_approximate(0.999 * event)


def test_the_stated_mass_covers_what_the_draws_missed():
    """Of many simulations, at most a tenth leave more mass above than they state."""
    n_draws, confidence, n_simulations = 60, 0.9, 200
    displacement = stats.expon()

    def exponential(first, second, rng):
        base = np.zeros((N, 2))
        return base, base + np.array([rng.exponential(), 0.0])

    missed = []
    for seed in range(n_simulations):
        scenario = simulator(
            draw_pair=exponential,
            n_draws=n_draws,
            confidence=confidence,
            random_state=seed,
        )
        promise = certificate(scenario)
        missed.append(displacement.sf(promise.sensitivity) > promise.delta)
    # it is exact for a continuous law: neither more nor much less than a tenth
    rate = np.mean(missed)
    spread = math.sqrt(0.09 / n_simulations)
    assert abs(rate - 0.1) < 4 * spread


# -- facts -----------------------------------------------------------------------------


def test_facts_on_offer():
    assert simulator().bind(RELEASE.context).provides(RELEASE) == {
        OutputDistributions,
        OutputSamples,
    }
    paired = simulator(draw_pair=draw_pair).bind(RELEASE.context)
    assert paired.provides(RELEASE) == {CoupledSamples, OutputSamples}
    with refused(
        ScenarioError, "scenario.fact_not_offered", kind="OutputDistributions"
    ):
        paired.fact(OutputDistributions, RELEASE)


@pytest.mark.parametrize("n_draws", [2, 50])
def test_as_many_couplings_are_drawn_as_the_mass_is_stated_for(n_draws):
    drawn = []

    def counted(first, second, rng):
        drawn.append((first, second))
        return draw_pair(first, second, rng)

    paired = simulator(draw_pair=counted, n_draws=n_draws, secrets=[0.0, 0.5, 2.0])
    fact = paired.bind(RELEASE.context).fact(CoupledSamples, RELEASE)
    assert len(drawn) == 3 * n_draws
    assert all(u.shape == v.shape == (n_draws, 2) for *_, u, v in fact.draws)


def test_cloud():
    cloud = simulator(secrets=["a", "b", "c"], draw=lambda s, rng: draw(0, rng)).bind(
        RELEASE.context
    )
    fact = cloud.fact(OutputSamples, RELEASE)
    assert fact.draws.shape == (150, 2)
    assert fact.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(np.bincount(fact.groups), [50, 50, 50])
    # true draws of the mixture, and no more than draws
    assert fact.regime == "sampled" and fact.certified
    assert fact.secret == "dataset" and fact.memberships is None


def test_fresh_tables_are_of_the_mixture_and_no_earlier_ones():
    scenario = simulator(secrets=[0.0, 10.0], draw=draw, draw_pair=None)
    fact = scenario.bind(RELEASE.context).fact(OutputSamples, RELEASE)
    seed = scenario.random_state
    fresh = fact.again(60, np.random.default_rng(seed))
    assert fresh.shape == (60, 2)
    assert 15 <= np.sum(fresh[:, 0] > 5) <= 45  # either secret about as often
    # of the same seed, and yet none of the tables that were learnt from
    assert not np.isin(fresh[:, 0], fact.draws[:, 0]).any()
    assert np.array_equal(fresh, fact.again(60, seed))
    assert not np.isin(fact.again(60, seed + 1)[:, 0], fresh[:, 0]).any()


def test_the_same_seed_gives_the_same_simulation():
    one, again, other = (
        certificate(simulator(random_state=seed)).sensitivity for seed in (3, 3, 4)
    )
    assert one == again != other


def test_frames_and_targets():
    context = PublicContext(
        n_records=N, feature_names=("b", "a"), n_features=2, classes=("no", "yes")
    )

    def world(secret, rng):
        table = pd.DataFrame({"a": np.full(N, secret), "b": 10.0, "extra": 3.0})
        return table, np.where(np.arange(N) % 2, "yes", "no")

    def query(X, y):
        return np.append(X.mean(axis=0), y.mean())

    release = QueryRelease(query=query, n_records=N, dim=3, context=context)
    scenario = simulator(
        draw=world, draw_pair=lambda s, t, r: (world(s, r), world(t, r))
    )
    ((_, _, _, u, v),) = scenario.bind(context).fact(CoupledSamples, release).draws
    assert u[0].tolist() == [10.0, 0.0, 0.5]
    assert v[0].tolist() == [10.0, 0.5, 0.5]


# -- what it refuses -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, said",
    [
        ({"draw": None}, Statement("simulation.parameter_not_callable", name="draw")),
        (
            {"draw_pair": 3},
            Statement("simulation.parameter_not_callable", name="draw_pair"),
        ),
        ({"secrets": [1]}, Statement("scenario.fewer_than_two_secrets")),
        ({"secrets": []}, Statement("scenario.fewer_than_two_secrets")),
        ({"secrets": None}, Statement("simulation.owner_secrets_parameter")),
        ({"secrets": [1, 1]}, Statement("scenario.secret_twice")),
        ({"secrets": [[1], [2]]}, Statement("scenario.secrets_not_hashable_sequence")),
        ({"pairs": "some"}, Statement("parameter.option_unknown", name="pairs")),
        ({"pairs": []}, Statement("scenario.pairs_empty_or_invalid")),
        ({"pairs": 3}, Statement("scenario.pairs_invalid")),
        ({"pairs": [(0.0, 0.5, 1.0)]}, Statement("scenario.pairs_empty_or_invalid")),
        (
            {"pairs": [(0.0, 0.7)]},
            Statement("scenario.pair_secret_unknown", secret=0.7),
        ),
        ({"pairs": [(0.0, 0.0)]}, Statement("scenario.pair_secrets_equal")),
        ({"n_draws": 1}, Statement("parameter.count_too_small", name="n_draws")),
        ({"n_draws": 2.5}, Statement("parameter.count_too_small", name="n_draws")),
        ({"confidence": 0.9}, Statement("simulation.confidence_needs_draw_pair")),
        (
            {"confidence": 1.0, "draw_pair": draw_pair},
            Statement("parameter.probability_out_of_range", name="confidence"),
        ),
        (
            {"random_state": -1},
            Statement("parameter.count_too_small", name="random_state"),
        ),
    ],
)
def test_bad_parameters(options, said):
    with refused(ValueError, said.code, **said.parameters):
        simulator(**options).check()
    with refused(ValueError, said.code, **said.parameters):
        certificate(simulator(**options))


def test_bad_worlds():
    def broken(value):
        def draw_pair(first, second, rng):
            base = rng.normal(size=(N, 2))
            return base, base + value

        return draw_pair

    def few(first, second, rng):
        return np.zeros((N - 1, 2)), np.zeros((N - 1, 2))

    with refused(ScenarioError, "simulation.record_count_differs", n=29, n_records=30):
        certificate(simulator(draw_pair=few))
    with refused(ScenarioError, "prior.public_rows_not_finite"):
        certificate(simulator(draw_pair=broken(math.nan)))
    with refused(ScenarioError, "prior.public_rows_not_finite"):
        certificate(simulator(draw=lambda s, rng: np.full((N, 2), math.inf)))
    with refused(ScenarioError, "prior.columns_not_numeric"):
        certificate(simulator(draw=lambda s, rng: np.full((N, 2), "x")))


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("bad", [0.0, 1.0])
def test_an_output_of_nan_is_not_lost_in_a_maximum(paired, bad):
    """Whichever secret it comes from, and however far apart the others are."""

    def query(X, y):
        return np.where(X[:, 0].mean() > bad - 0.5, math.nan, X.mean(axis=0))

    def constant(secret, rng):
        return np.full((N, 2), secret)

    scenario = simulator(
        draw=constant,
        draw_pair=(lambda s, t, r: (constant(s, r), constant(t, r)))
        if paired
        else None,
        secrets=[-5.0, -4.0, bad],
        confidence=0.9 if paired else None,
    )
    release = QueryRelease(query=query, n_records=N, dim=2, name="odd")
    with refused(ScenarioError, "scenario.release_not_finite", name="odd"):
        certificate(scenario, release)


def test_the_noisiest_secret_says_how_far_its_draws_are_apart():
    def narrow_and_wide(secret, rng):
        return rng.normal(size=(N, 2)) * (1.0 if secret else 1e-6) + secret

    found = certificate(simulator(draw=narrow_and_wide, secrets=[0.0, 1.0]))
    (null,) = (a for a in found.assumptions if a.code == NULL)
    assert null.parameters["null"] > 0.1 / math.sqrt(N)
