"""Statistical attacks on accountants end to end, and attacks that must succeed."""

import math

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.distributions import Discrete, PointMass
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)

from ..attack import (
    allowed_delta,
    assert_beaten,
    assert_tight,
    assert_within,
    bayes_score,
    clopper_pearson,
)

N_DRAWS = 100_000
GAUSSIAN = {"epsilon": 0.6, "alpha": 4.0}
PURE = {"epsilon": 0.6, "alpha": math.inf, "noise": "laplace"}
APPROXIMATE = {"epsilon": 0.5, "delta": 0.02}
BUDGETS = pytest.mark.parametrize(
    "budget", [GAUSSIAN, PURE, APPROXIMATE], ids=["renyi", "pure", "approximate"]
)


def identity(X, y):
    return np.asarray(X, dtype=float)


def column_mean(n, **options):
    return QueryRelease(
        contribution=identity,
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=1,
        **options,
    )


def noisy(outputs, noise):
    """A sampler of noisy outputs from one of exact ones."""
    return lambda n, rng: outputs(n, rng) + noise.sample((n, 1), rng)


def worlds_of(prior, n_records, secret, level):
    """Draw tables from the prior itself, given the secret, and take their mean."""
    column = prior["x"].to_numpy()
    given = column[prior["s"].to_numpy() == secret]

    def draw(n, rng):
        free = column if level == "record" else given
        total = rng.choice(free, size=(n, n_records - 1)).sum(axis=1)
        return ((total + rng.choice(given, size=n)) / n_records)[:, None]

    return draw


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@BUDGETS
@pytest.mark.parametrize("level", ["record", "dataset"])
def test_mean_under_an_attribute_prior(budget, level):
    prior = pd.DataFrame(
        {"s": [0] * 6 + [1] * 4, "x": [0.0, 0, 0, 1, 1, 2, 1, 2, 2, 2]}
    )
    n = 4
    scenario = AttributeScenario("s", level=level, prior=prior, prior_as="law")
    found = GeneralWasserstein(**budget).calibrate(column_mean(n), scenario)
    assert found.certificate.sensitivity == 2.0 / (n if level == "record" else 1)

    def worlds(noise):
        return [noisy(worlds_of(prior, n, s, level), noise) for s in (0, 1)]

    # the laws overlap, and he learns less than of the farthest points of them
    assert_tight(
        found.certificate, found.noise, worlds, share=0.25, seed=1, n_draws=N_DRAWS
    )


@BUDGETS
def test_flu(budget):
    healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    found = GeneralWasserstein(**budget).calibrate(
        release, LawsScenario([(healthy, infected)])
    )
    laws = (healthy, infected)
    atoms = [part for law in laws for part in (law.points, law.masses)]
    # here too the laws overlap
    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: [noisy(law.sample, noise) for law in laws],
        score=lambda noise: bayes_score(noise, *atoms),
        share=0.35,
        seed=1,
        n_draws=N_DRAWS,
    )


@BUDGETS
def test_two_points_and_less_noise(budget):
    """A tight case: the promise holds, and is broken as soon as noise is missing."""
    ends = (PointMass(0.0), PointMass(1.0))
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    found = GeneralWasserstein(**budget).calibrate(release, LawsScenario([ends]))
    certificate = found.certificate

    def worlds(noise):
        return [noisy(law.sample, noise) for law in ends]

    def score(noise):
        return bayes_score(noise, [0.0], [1.0], [1.0], [1.0])

    # the curve leaves nothing to spare; the two numbers alone say less
    for share, whole_curve in ((0.8, True), (0.5, False)):
        assert_tight(
            certificate,
            found.noise,
            worlds,
            score=score,
            share=share,
            seed=1,
            n_draws=N_DRAWS,
            whole_curve=whole_curve,
        )


@BUDGETS
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_record_scenario_on_a_worst_pair_of_tables(budget, relation):
    n = 5
    release = column_mean(n, sensitivity=Sensitivity(add_remove={1: 1 / n, 2: 1 / n}))
    scenario = RecordScenario(k=2, relation=relation)
    found = GroupPrivacy(**budget).calibrate(release, scenario)
    changed = np.zeros((n, 1))
    # records in [-1, 1]; two of them leave the sum (they count zero) or turn over
    table = np.ones((n, 1))
    changed[:] = table
    changed[:2] = 0.0 if relation == "add_remove" else -1.0

    def worlds(noise):
        return [
            noisy(lambda m, rng, t=t: np.full((m, 1), release.run(t)), noise)
            for t in (table, changed)
        ]

    assert_tight(found.certificate, found.noise, worlds, seed=1, n_draws=N_DRAWS)


def test_dataset_level_is_not_kept_by_record_level_noise(rng):
    """The two levels promise different things: mixing them up is an attack won."""
    prior = pd.DataFrame({"s": [0, 0, 1, 1], "x": [0.0, 0.0, 1.0, 1.0]})
    n = 4
    found = {
        level: GeneralWasserstein(**GAUSSIAN).calibrate(
            column_mean(n),
            AttributeScenario("s", level=level, prior=prior, prior_as="law"),
        )
        for level in ("record", "dataset")
    }
    certificate = found["dataset"].certificate
    for level, check in (("record", assert_beaten), ("dataset", assert_within)):
        noise = found[level].noise
        worlds = [noisy(worlds_of(prior, n, s, "dataset"), noise) for s in (0, 1)]
        check(certificate, *worlds, n_draws=N_DRAWS, rng=rng)


def test_paired_worlds_outside_a_rare_event():
    """What the simulation missed is in the delta: rare far moves keep the promise."""

    def draw_pair(first, second, rng):
        base = rng.normal(size=(3, 1))
        far = 5.0 if rng.random() < 0.001 else 0.0
        return base, base + 0.5 + far

    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0), n_records=3, dim=1, name="mean"
    )
    scenario = SimulatorScenario(
        draw=lambda secret, rng: draw_pair(0, 1, rng)[secret],
        draw_pair=draw_pair,
        secrets=[0, 1],
        n_draws=400,
        confidence=0.99,
    )
    found = GeneralWasserstein(epsilon=0.5, delta=0.05).calibrate(release, scenario)
    assert 0.01 < found.certificate.event_delta < 0.02

    def exact(which):
        def draw(n, rng):
            base = rng.normal(size=(n, 3)).mean(axis=1, keepdims=True)
            far = 5.0 * (rng.random((n, 1)) < 0.001)
            return base + which * (0.5 + far)

        return draw

    # a far move was among those simulated, so that the noise covers it and the usual,
    # eleven times shorter, far more than needed
    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: [noisy(exact(which), noise) for which in (0, 1)],
        share=0.04,
        seed=1,
        n_draws=N_DRAWS,
    )


# -- the attacker himself --------------------------------------------------------------


def test_bounds_of_a_rate_cover(rng):
    rate, trials = 0.03, 500
    found = rng.binomial(trials, rate, size=2000)
    bounds = np.array([clopper_pearson(k, trials, 0.01) for k in found])
    assert np.mean(bounds[:, 0] > rate) <= 0.02
    assert np.mean(bounds[:, 1] < rate) <= 0.02
    assert clopper_pearson(0, 10, 0.01)[0] == 0.0
    assert clopper_pearson(10, 10, 0.01)[1] == 1.0


def test_what_a_certificate_allows():
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    scenario = LawsScenario([(PointMass(0.0), PointMass(1.0))])

    def certificate(budget):
        return GeneralWasserstein(**budget).calibrate(release, scenario).certificate

    pure, approximate, renyi = map(certificate, (PURE, APPROXIMATE, GAUSSIAN))
    assert allowed_delta(pure, 0.6) == 0.0
    assert allowed_delta(pure, 0.0) == pytest.approx(1 - math.exp(-0.3))
    assert allowed_delta(pure, 0.0, whole_curve=False) == pytest.approx(math.tanh(0.3))
    assert allowed_delta(approximate, 0.5) == pytest.approx(0.02, rel=1e-6)
    assert allowed_delta(approximate, 0.5, whole_curve=False) == 0.02
    assert allowed_delta(renyi, 0.5) < allowed_delta(renyi, 0.5, whole_curve=False)
    with pytest.raises(ValueError, match="estimate"):
        allowed_delta(pure.as_estimate("peeked"), 0.0)
