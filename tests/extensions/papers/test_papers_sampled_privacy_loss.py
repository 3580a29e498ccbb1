"""The sampled privacy loss: near the exact one, and labelled as an estimate."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from skpuffer.accountants import GroupPrivacy, PrivacyLoss, compatibility_table
from skpuffer.exceptions import (
    CompositionError,
    Statement,
    UncertifiedError,
    UnsupportedError,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.papers import SampledPrivacyLoss
from skpuffer.privacy import Notion, compose
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import refused, says

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "noise_family.json").read_text()
)
N_RECORDS = 10_000


def run(n_steps=1, sampling_rate=1.0, **options):
    if sampling_rate < 1:
        options["batch_size"] = round(sampling_rate * N_RECORDS)
    else:
        options.setdefault("sampling", "full_batch")
    return GradientRelease(
        **{"n_records": N_RECORDS, "n_steps": n_steps, "dim": 1} | options
    )


def estimates(noise, release, n_repeats=5, **options):
    scenario = RecordScenario()
    return [
        SampledPrivacyLoss(n_samples=100_000, random_state=seed, **options)
        .certify(noise, release, scenario)
        .epsilon
        for seed in range(n_repeats)
    ]


@pytest.mark.parametrize("case", ORACLES["sampled_epsilons"], ids=str)
def test_estimates_scatter_about_the_exact_number(case):
    noise = GeneralizedGaussianNoise(case["scale"], beta=case["beta"])
    found = estimates(noise, run(case["n_steps"], case["sampling_rate"]))
    # the mean of five: two standard errors of it, and a part of the spread as bias
    assert abs(np.mean(found) - case["epsilon"]) < 1.5 * case["scatter"]
    assert np.std(found) < 2 * case["scatter"]
    assert np.std(found) > 0  # nothing but chance makes them differ


@pytest.mark.parametrize(
    "noise, twin",
    [
        (LaplaceNoise(2.0), GeneralizedGaussianNoise(2.0, beta=1)),
        (GaussianNoise(2.0), GeneralizedGaussianNoise(2 * math.sqrt(2), beta=2)),
        (CorrelatedGaussianNoise(0.5, covariance=[[16.0]]), GaussianNoise(2.0)),
    ],
    ids=["laplace", "gaussian", "covariance"],
)
def test_families_and_their_twins(noise, twin):
    ours, theirs = (
        SampledPrivacyLoss(n_samples=20_000, random_state=1)
        .certify(one, run(), RecordScenario())
        .epsilon
        for one in (noise, twin)
    )
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_both_orders_of_the_worlds_are_sampled():
    # the direction in which a record leaves costs more, and dwarfs the other here
    noise = GaussianNoise(1.0)
    found = np.mean(estimates(noise, run(1, 0.01)))
    exact = PrivacyLoss().certify(noise, run(1, 0.01), RecordScenario()).epsilon
    assert found == pytest.approx(exact, rel=0.1)


def test_shifts_and_groups_scale_the_loss():
    noise = GeneralizedGaussianNoise(4.0, beta=1.5)

    def epsilon(release, **options):
        accountant = SampledPrivacyLoss(n_samples=20_000, random_state=3)
        return accountant.certify(noise, release, RecordScenario(**options)).epsilon

    twice = epsilon(run(clip_norm=2.0))
    assert epsilon(run(), k=2) == pytest.approx(twice, rel=1e-9)
    assert epsilon(run(), relation="replace") == pytest.approx(twice, rel=1e-9)
    assert twice > 1.5 * epsilon(run())


def test_it_never_certifies():
    release = run()
    certificate = SampledPrivacyLoss(n_samples=1000, random_state=0).certify(
        GaussianNoise(3.0), release, RecordScenario()
    )
    assert certificate.notion is Notion.ESTIMATED
    assert not certificate.certified and not certificate.composable
    assert any("1000 sampled" in str(sentence) for sentence in certificate.assumptions)
    with pytest.raises(UncertifiedError):
        certificate.to_approximate(1e-6)
    with pytest.raises(CompositionError):
        compose([certificate, certificate])


def test_calibration_meets_its_own_estimate():
    accountant = SampledPrivacyLoss(
        epsilon=2.0,
        noise="generalized_gaussian",
        beta=1.5,
        n_samples=50_000,
        random_state=0,
    )
    noise, certificate, *_ = vars(
        accountant.calibrate(run(), RecordScenario())
    ).values()
    assert certificate.epsilon == pytest.approx(2.0, rel=1e-3)
    assert not certificate.certified
    assert noise.beta == 1.5
    assert noise.scale == pytest.approx(1.50933, rel=0.05)


def test_a_window_counts_what_it_rejects():
    noise, scenario = GaussianNoise(1.0), RecordScenario()
    options = {"n_samples": 20_000, "random_state": 0, "mesh": 1e-3}
    wide = SampledPrivacyLoss(delta=1e-3, half_width=20.0, **options)
    cut = SampledPrivacyLoss(delta=1e-3, half_width=2.0, **options)
    tiny = SampledPrivacyLoss(delta=1e-3, half_width=1e-6, **options)
    assert wide.certify(noise, run(), scenario).epsilon < 4
    # a tenth of all losses lies beyond, and counts as lost
    assert cut.certify(noise, run(), scenario).epsilon == math.inf
    assert tiny.certify(noise, run(), scenario).epsilon == math.inf
    found = wide.set_params(epsilon=2.0).calibrate(run(), scenario)
    assert found.certificate.epsilon == pytest.approx(2.0, rel=1e-3)


@pytest.mark.every_run
@pytest.mark.parametrize("case", ORACLES["error_bounds"], ids=str)
def test_the_published_error_bound(case):
    case = dict(case)
    want = case.pop("eta"), case.pop("tau")
    found = SampledPrivacyLoss.error_bound(**case)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    # it says nothing of a delta that anybody would ask for
    assert found[0] > 1e-5


@pytest.mark.parametrize(
    "release, scenario, said",
    [
        (
            run(dim=5),
            RecordScenario(),
            Statement("papers.loss_several_coordinates", dim=5),
        ),
        (
            run(dim=None),
            RecordScenario(),
            Statement("papers.loss_several_coordinates", dim=None),
        ),
        (
            run(1, 0.1),
            RecordScenario(relation="replace"),
            Statement("papers.loss_sampling_unsupported", relation="replace"),
        ),
        (
            run(1, 0.1),
            RecordScenario(k=3),
            Statement("papers.loss_sampling_unsupported", count=3),
        ),
    ],
)
def test_what_it_cannot_sample(release, scenario, said):
    accountant = SampledPrivacyLoss(n_samples=1000)
    answer = accountant.supports(release, scenario)
    assert (
        not answer
        and says(answer.reason, said.code, **said.parameters)
        and "PrivacyLoss" in str(answer.reason)
    )
    with refused(UnsupportedError, said.code, **said.parameters):
        accountant.certify(GaussianNoise(1.0), release, scenario)
    with refused(UnsupportedError, said.code, **said.parameters):
        accountant.calibrate(release, scenario)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"epsilon": 0}, Statement("parameter.not_positive", name="epsilon")),
        ({"delta": 1}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"n_samples": 10}, Statement("parameter.count_too_small", name="n_samples")),
        (
            {"n_samples": 1000.5},
            Statement("parameter.count_too_small", name="n_samples"),
        ),
        ({"mesh": 0}, Statement("parameter.not_positive", name="mesh")),
        ({"half_width": -1}, Statement("parameter.not_positive", name="half_width")),
        ({"noise": "generalized_gaussian"}, Statement("noise.beta_missing")),
        (
            {"noise": "generalized_gaussian", "beta": 0.5},
            Statement("shaped.beta_out_of_range"),
        ),
        ({"beta": 1.5}, Statement("noise.beta_with_other_family")),
    ],
)
def test_bad_parameters(options, said):
    accountant = SampledPrivacyLoss(**options)
    with refused(ValueError, said.code, **said.parameters):
        accountant.calibrate(run(), RecordScenario())


def test_other_noise_is_refused():
    with refused(TypeError, "noise.not_a_noise"):
        SampledPrivacyLoss().certify(1.0, run(), RecordScenario())


def test_an_estimate_is_not_recommended():
    named = {row["accountant"] for row in compatibility_table(n_records=2)}
    assert "SampledPrivacyLoss" not in named
    poisson = GradientRelease(n_records=10, n_steps=2, batch_size=1)
    reason = str(GroupPrivacy().supports(poisson, RecordScenario()).reason)
    assert "PrivacyLoss" in reason and "Sampled" not in reason


@pytest.mark.parametrize("bad", [{"mesh": 0}, {"slack": 0}, {"outside": -1}])
def test_bad_bounds(bad):
    good = {"n_steps": 1, "mesh": 1e-3, "half_width": 10, "n_samples": 1e7}
    good |= {"slack": 5e-3, "deviation": 2e-2}
    with pytest.raises(ValueError, match=next(iter(bad))):
        SampledPrivacyLoss.error_bound(**good | bad)
