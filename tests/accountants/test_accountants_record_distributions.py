"""Laws of one record under a query that is no sum: what its moves cost on average."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    Kantorovich,
)
from skpuffer.accountants._additive._couplings import RecordCouplings
from skpuffer.linear_model import PrivateHuberRegressor, PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, RecordDistributions

from ..attack import weakened
from .mixtures import hockey_stick, renyi


def identity(X, y):
    return np.asarray(X, dtype=float)


def at_most_two(shift):
    return min(shift, 2.0)


#: The sine of each record, summed: no further than the record moves, nor than two.
RELEASE = QueryRelease(
    query=lambda X, y: np.sin(X).sum(axis=0),
    contribution=identity,
    modulus=at_most_two,
    shift_ceiling=2.0,
    sensitivity=Sensitivity({1: 1.0, 2: 1.0}),
    n_records=3,
    dim=1,
)


def scenario_of(u, v, **options):
    """Values of a record by their counts, given either secret."""
    rows = [
        (secret, value)
        for secret, law in enumerate((u, v))
        for value, count in law.items()
        for _ in range(count)
    ]
    prior = pd.DataFrame(rows, columns=["s", "x"])
    options = {"level": "record", "prior_as": "law"} | options
    return AttributeScenario("s", prior=prior, **options)


def outputs(law):
    """Atoms and masses of the output, for others that are zero."""
    total = sum(law.values())
    return np.sin(list(law)), np.array(list(law.values())) / total


def test_the_mean_cost_in_closed_form():
    scenario = scenario_of({0.0: 10}, {0.0: 9, 50.0: 1})
    noise = GaussianNoise().with_scale(2.0)
    accountant = DistributionAwareWasserstein(1.0, alpha=4.0, noise="gaussian")
    found = accountant.certify(noise, RELEASE, scenario)
    # a tenth of the mass moves the output by no more than two: 4 * 2^2 / (2 * 2^2) = 2
    expected = math.log(0.9 + 0.1 * math.exp(3 * 2.0)) / 3
    assert found.epsilon == pytest.approx(expected, rel=1e-10)
    assert found.notion is Notion.RENYI_PUFFERFISH
    worst = GeneralWasserstein(1.0, alpha=4.0).certify(noise, RELEASE, scenario)
    assert worst.epsilon == pytest.approx(2.0)
    # the tolerance of a solver lengthens every move, those of nothing as well
    slack = replace(RELEASE, slack=0.1)
    moved = 0.9 * math.exp(3 * 4 * 0.1**2 / 8) + 0.1 * math.exp(3 * 4 * 2.1**2 / 8)
    loose = accountant.certify(noise, slack, scenario)
    assert loose.epsilon == pytest.approx(math.log(moved) / 3, rel=1e-9)


laws = st.dictionaries(
    st.integers(-6, 6).map(lambda k: k / 2), st.integers(1, 6), min_size=1, max_size=4
)


@settings(max_examples=12)
@given(laws, laws)
def test_no_divergence_exceeds_the_promise(u, v):
    scenario = scenario_of(u, v)
    for family in ("gaussian", "laplace"):
        renyi_target = {"epsilon": 0.7, "alpha": 3.0, "noise": family}
        most = GeneralWasserstein(**renyi_target).calibrate(RELEASE, scenario).noise
        found = DistributionAwareWasserstein(**renyi_target).calibrate(
            RELEASE, scenario
        )
        assert found.noise.scale <= most.scale * (1 + 1e-6)
        if most.scale == 0:
            return
        for first, second in ((u, v), (v, u)):
            both = (*outputs(first), *outputs(second))
            assert renyi(found.noise, *both, 3.0) <= 0.7 * (1 + 1e-6)
    for accountant in (
        DistributionAwareWasserstein(0.7, delta=0.05, noise="gaussian"),
        ApproximateWasserstein(0.7, delta=0.05, noise="gaussian"),
        Kantorovich(0.7, delta=0.05),
    ):
        noise = accountant.calibrate(RELEASE, scenario).noise
        if noise.scale == 0:
            continue
        for first, second in ((u, v), (v, u)):
            both = (*outputs(first), *outputs(second))
            assert hockey_stick(noise, *both, 0.7) <= 0.05 * (1 + 1e-3)


def test_less_noise_than_found_breaks_the_promise():
    """So that the checks above can fail: hardly anything is lost where most moves."""
    u, v = {0.0: 10}, {0.0: 1, math.pi / 2: 9}
    release = replace(RELEASE, modulus=lambda shift: min(shift, 1.0))
    accountant = DistributionAwareWasserstein(0.7, alpha=3.0, noise="gaussian")
    found = accountant.calibrate(release, scenario_of(u, v))
    both = (*outputs(v), *outputs(u))
    assert 0.6 < renyi(found.noise, *both, 3.0) <= 0.7
    assert renyi(weakened(found.noise), *both, 3.0) > 0.7


def test_many_lengths_are_rounded_up_a_little():
    rng = np.random.default_rng(0)
    displacements = np.concatenate([rng.normal(size=(3000, 2)), np.zeros((1, 2))])
    displacements *= 10.0 ** rng.uniform(-8, 2, size=(3001, 1))
    release = replace(RELEASE, modulus=lambda b: 3 * b, sensitivity=None, dim=2)
    couplings = RecordCouplings((), release=release)
    exact = 3 * np.linalg.norm(displacements, axis=1)
    found = couplings._reach(displacements)
    assert np.all(found >= exact * (1 - 1e-12))
    assert np.all(found <= exact * (1 + 2**-5))


# -- who reads it ---------------------------------------------------------------------


def test_only_a_coupling_theorem_reads_it():
    scenario = scenario_of({0.0: 1}, {0.0: 1, 1.0: 1})
    for kind in (DistributionAwareWasserstein, ApproximateWasserstein, Kantorovich):
        assert kind().supports(RELEASE, scenario)
    # a Gaussian output is what this one rests on, and what no minimiser has
    assert not AttributeGaussian().supports(RELEASE, scenario)
    bound = scenario.bind(RELEASE.context)
    assert RecordDistributions in bound.provides(RELEASE)
    # nor where all records share the secret, or no modulus bounds the query
    everyone = scenario_of({0.0: 1}, {1.0: 1}, level="dataset").bind(RELEASE.context)
    assert RecordDistributions not in everyone.provides(RELEASE)
    unbounded = replace(RELEASE, modulus=None)
    assert RecordDistributions not in bound.provides(unbounded)


def test_of_a_support_the_longest_move_is_all_that_is_known():
    scenario = scenario_of({0.0: 9}, {0.0: 8, 1.0: 1}, prior_as="support")
    noise = GaussianNoise().with_scale(1.0)
    accountant = DistributionAwareWasserstein(1.0, alpha=4.0, noise="gaussian")
    found = accountant.certify(noise, RELEASE, scenario)
    assert found.epsilon == pytest.approx(2.0)  # 4 * 1^2 / 2
    assert found.notion is Notion.RENYI_PUFFERFISH
    # a sample of an unknown law only estimates the mean
    sample = scenario_of({0.0: 9}, {0.0: 8, 1.0: 1}, prior_as="sample")
    assert accountant.certify(noise, RELEASE, sample).notion is Notion.ESTIMATED


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateHuberRegressor])
def test_a_model_whose_records_rarely_move_far_needs_less_noise(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(0.3 * rng.normal(size=(200, 2)), columns=["a", "b"])
    y = pd.Series(np.arange(200) % 2, name="t")
    secret = rng.integers(2, size=200)
    prior = X.assign(s=secret, t=0)
    prior["a"] += 0.05 * secret
    prior.loc[(secret == 1) & (rng.random(200) < 0.05), "b"] += 0.8
    scenario = AttributeScenario(
        "s", level="record", prior=prior, prior_as="law", target="t"
    )
    X = pd.DataFrame(0.3 * rng.normal(size=(200, 2)), columns=["a", "b"])
    options = {}
    if kind is PrivateHuberRegressor:
        options["target_bounds"] = (0, 1)
    budget = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian"}
    scales = []
    for accountant in (
        GeneralWasserstein(**budget),
        DistributionAwareWasserstein(**budget),
    ):
        fitted = kind(scenario, accountant, **options).fit(X, y)
        scales.append(float(np.max(fitted.noise_.std())))
    assert fitted.certificate_.notion is Notion.APPROXIMATE_PUFFERFISH
    assert scales[1] < 0.9 * scales[0]
