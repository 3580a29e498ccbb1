"""The noise of an accountant: by name, by name and shape, or as a noise."""

import numpy as np
import pytest
from sklearn.base import clone

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.exceptions import Statement
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training
from tests.refused import refused

SAME = [
    ({"noise": "gaussian"}, {"noise": GaussianNoise(3.0)}),
    ({"noise": "laplace"}, {"noise": LaplaceNoise()}),
    (
        {"noise": "generalized_gaussian", "beta": 1.5},
        {"noise": GeneralizedGaussianNoise(7.0, beta=1.5)},
    ),
]


def mean(dim=1):
    return QueryRelease(
        contribution=lambda X, y: X,
        is_sum=True,
        n_records=10,
        dim=dim,
        sensitivity=Sensitivity(add_remove={1: 1.0}),
    )


@pytest.mark.parametrize("named, given", SAME)
@pytest.mark.parametrize("kind", [GroupPrivacy, GeneralWasserstein])
def test_a_noise_is_as_good_as_its_name(kind, named, given):
    first, second = (
        kind(epsilon=1.0, alpha=2, **choice).calibrate(mean(), RecordScenario())
        for choice in (named, given)
    )
    assert first.noise == second.noise
    assert first.certificate.epsilon == second.certificate.epsilon


@pytest.mark.parametrize("named, given", SAME)
def test_calibration_begins_at_scale_one(named, given):
    unit = given["noise"].with_scale(1.0)
    for choice in (named, given):
        assert PrivacyLoss(**choice)._checked_noise() == unit


@pytest.mark.parametrize("named, given", SAME)
@pytest.mark.parametrize("kind", [PrivacyLoss, RenyiDP])
def test_for_gradients_too(kind, named, given):
    accountant = kind(epsilon=1.0, delta=1e-5, **named)
    release = GradientRelease(
        n_records=100, n_steps=5, sampling="full_batch", clip_order=1
    )
    first = accountant.calibrate(release, RecordScenario())
    second = kind(epsilon=1.0, delta=1e-5, **given).calibrate(release, RecordScenario())
    assert first.noise == second.noise
    assert clone(accountant).get_params() == accountant.get_params()


@pytest.mark.parametrize(
    "choice, order",
    [
        ({}, 2.0),
        ({"noise": "laplace"}, 1.0),
        ({"noise": "generalized_gaussian", "beta": 1.25}, 1.25),
    ],
)
def test_gradients_are_clipped_as_the_noise_measures(choice, order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    accountant = PrivacyLoss(epsilon=20.0, **choice)
    # Of one step the noise alone is accounted, with no search for a number of steps; at
    # the clip norm of the first look its noise is that of the run, and known.
    options = {"accountant": accountant, "classes": [0, 1]}
    options["training"] = Training(n_steps=1, clip_norm=1.0)
    for model in (
        PrivateLogisticRegression(**options),
        PrivateMLPClassifier(**options, clip_by="layer"),
    ):
        model.fit(X, y)
        assert model.release_.clip_order == order
        assert model.noise_.norm == order
        again = accountant.certify(model.noise_, model.release_, RecordScenario())
        assert again.epsilon == pytest.approx(20.0, rel=1e-3)
        assert again.epsilon <= 20.0


@pytest.mark.parametrize(
    "choice, said",
    [
        ({"noise": "cauchy"}, Statement("parameter.option_unknown", name="noise")),
        ({"noise": "laplace", "beta": 1.5}, Statement("noise.beta_with_other_family")),
        ({"noise": "generalized_gaussian"}, Statement("noise.beta_missing")),
        (
            {"noise": "generalized_gaussian", "beta": 0.5},
            Statement("shaped.beta_out_of_range"),
        ),
        ({"noise": GaussianNoise((1.0, 2.0))}, Statement("noise.several_scales")),
        (
            {"noise": LaplaceNoise(), "beta": 1.5},
            Statement("noise.beta_with_given_noise"),
        ),
    ],
)
@pytest.mark.parametrize("kind", [GroupPrivacy, PrivacyLoss, RenyiDP])
def test_bad_choices(kind, choice, said):
    with refused((TypeError, ValueError), said.code, **said.parameters):
        kind(epsilon=1.0, **choice).check()


@pytest.mark.parametrize("beta", [1.5, 2.0, 3.0])
def test_a_pure_promise_needs_laplace(beta):
    accountant = GroupPrivacy(
        epsilon=1.0, alpha=np.inf, noise="generalized_gaussian", beta=beta
    )
    with refused(ValueError, "noise.family_not_pure"):
        accountant.check()
