"""Statistical attacks on accountants end to end, and attacks that must succeed."""

import math

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    Discrete,
    LawsScenario,
    PointMass,
    RecordScenario,
    SimulatorScenario,
)

from ..attack import allowed_delta, attack, bayes_score, clopper_pearson

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
def test_mean_under_an_attribute_prior(budget, level, rng):
    prior = pd.DataFrame(
        {"s": [0] * 6 + [1] * 4, "x": [0.0, 0, 0, 1, 1, 2, 1, 2, 2, 2]}
    )
    n = 4
    scenario = AttributeScenario("s", level=level, prior=prior, prior_as="law")
    found = GeneralWasserstein(**budget).calibrate(column_mean(n), scenario)
    assert found.certificate.sensitivity == 2.0 / (n if level == "record" else 1)
    worlds = [
        noisy(worlds_of(prior, n, secret, level), found.noise) for secret in (0, 1)
    ]
    report = attack(*worlds, found.certificate, n_draws=N_DRAWS, rng=rng)
    assert not report.broken, str(report)
    # the attacker is not asleep: he learns something, if less than he may
    assert max(f.tpr - f.fpr for f in report.findings) > 0.01


@BUDGETS
def test_flu(budget, rng):
    healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    found = GeneralWasserstein(**budget).calibrate(
        release, LawsScenario([(healthy, infected)])
    )
    worlds = [noisy(law.sample, found.noise) for law in (healthy, infected)]
    best = bayes_score(
        found.noise, healthy.points, healthy.masses, infected.points, infected.masses
    )
    report = attack(*worlds, found.certificate, n_draws=N_DRAWS, rng=rng, score=best)
    assert not report.broken, str(report)


@BUDGETS
def test_two_points_and_half_the_noise(budget, rng):
    """A tight case: the promise holds, and is broken as soon as noise is missing."""
    ends = (PointMass(0.0), PointMass(1.0))
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    found = GeneralWasserstein(**budget).calibrate(release, LawsScenario([ends]))
    certificate = found.certificate

    def report(noise, whole_curve):
        worlds = [noisy(law.sample, noise) for law in ends]
        best = bayes_score(noise, [0.0], [1.0], [1.0], [1.0])
        return attack(
            *worlds,
            certificate,
            n_draws=N_DRAWS,
            rng=rng,
            score=best,
            whole_curve=whole_curve,
        )

    kept = report(found.noise, True)
    assert not kept.broken, str(kept)
    # within a tenth of what is allowed: there is nothing to spare
    advantage = kept.findings[0].tpr - kept.findings[0].fpr
    assert advantage > 0.9 * kept.findings[0].allowed
    half = found.noise.with_scale(found.noise.scale / 2)
    assert report(half, True).broken
    assert report(half, False).broken


@BUDGETS
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_record_scenario_on_a_worst_pair_of_tables(budget, relation, rng):
    n = 5
    release = column_mean(n, sensitivity=Sensitivity(add_remove={1: 1 / n, 2: 1 / n}))
    scenario = RecordScenario(k=2, relation=relation)
    found = GroupPrivacy(**budget).calibrate(release, scenario)
    changed = np.zeros((n, 1))
    # records in [-1, 1]; two of them leave the sum (they count zero) or turn over
    table = np.ones((n, 1))
    changed[:] = table
    changed[:2] = 0.0 if relation == "add_remove" else -1.0
    worlds = [
        noisy(lambda m, rng, t=t: np.full((m, 1), release.run(t)), found.noise)
        for t in (table, changed)
    ]
    report = attack(*worlds, found.certificate, n_draws=N_DRAWS, rng=rng)
    assert not report.broken, str(report)
    half = found.noise.with_scale(found.noise.scale / 2)
    worlds = [
        noisy(lambda m, rng, t=t: np.full((m, 1), release.run(t)), half)
        for t in (table, changed)
    ]
    assert attack(*worlds, found.certificate, n_draws=N_DRAWS, rng=rng).broken


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
    for level, broken in (("record", True), ("dataset", False)):
        noise = found[level].noise
        worlds = [noisy(worlds_of(prior, n, s, "dataset"), noise) for s in (0, 1)]
        report = attack(*worlds, certificate, n_draws=N_DRAWS, rng=rng)
        assert report.broken is broken, str(report)


def test_paired_worlds_outside_a_rare_event(rng):
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

    def world(which):
        def draw(n, rng):
            base = rng.normal(size=(n, 3)).mean(axis=1, keepdims=True)
            far = 5.0 * (rng.random((n, 1)) < 0.001)
            return base + which * (0.5 + far)

        return noisy(draw, found.noise)

    report = attack(world(0), world(1), found.certificate, n_draws=N_DRAWS, rng=rng)
    assert not report.broken, str(report)


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
