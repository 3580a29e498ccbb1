"""Every trained estimator on batches that records draw."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skpuffer.accountants import (
    Best,
    HistoryUniformCap,
    IterationAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.noise.strategies import (
    BandedRows,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
)
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from skpuffer.training._engine import NOISE_CORRELATIONS
from tests.refused import refused

MODELS = [
    PrivateLogisticRegression,
    PrivateLinearSVC,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
    PrivateMLPClassifier,
]


@pytest.mark.parametrize("sampling", ["fresh_bins", "balls_in_bins"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators_train_in_bins(model, sampling):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    bounds = {"target_bounds": (0, 1)} if model is PrivateSGDRegressor else {}
    found = model(
        accountant=PrivacyLoss(4.0, 1e-5),
        training=Training(batch_size=20, sampling=sampling),
        random_state=0,
        **bounds,
    )
    found.fit(X, y)
    assert found.predict(X).shape == (60,)
    assert found.certificate_.epsilon <= 4.0


#: Of two epochs of six steps and one step more.
STEPS = 13
STRATEGIES = {
    "rows": BandedRows.of_matrix(banded_square_root(3).matrix(STEPS)),
    "columns": banded_matrix_factorization(STEPS, 2, toeplitz=False),
    "buffers": buffered_linear_toeplitz(STEPS, 1),
    **{name: name for name in NOISE_CORRELATIONS},
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators_keep_their_promise_under_every_strategy(strategy):
    X = np.random.default_rng(0).normal(size=(60, 3)) / 3
    y = (X[:, 0] > 0).astype(int)
    for model in MODELS:
        bounds = {"target_bounds": (0, 1)} if model is PrivateSGDRegressor else {}
        found = clone(
            model(
                accountant=PrivacyLoss(4.0, 1e-3),
                training=Training(
                    batch_size=10, n_steps=STEPS, noise_correlation=strategy
                ),
                random_state=0,
                **bounds,
            )
        ).fit(X, y)
        certificate, release = found.certificate_, found.release_
        assert certificate.certified and certificate.epsilon <= 4.0
        assert release.noise_correlation is not None
        # what is promised is of the noise that was drawn, and of the run that was run
        again = PrivacyLoss(4.0, 1e-3).certify(found.noise_, release, RecordScenario())
        assert again.epsilon == pytest.approx(certificate.epsilon, rel=1e-3)
        copy = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(copy.predict(X), found.predict(X))


@pytest.mark.parametrize("sampling", ["fresh_bins", "balls_in_bins"])
@pytest.mark.parametrize("accountant", [HistoryUniformCap, IterationAmplification])
def test_other_accountants_refuse_with_a_remedy(accountant, sampling):
    release = GradientRelease(
        n_records=60, batch_size=20, n_steps=9, sampling=sampling, dim=3
    )
    with refused(
        UnsupportedError,
        ("history.sampling_scheme_unknown", "iteration.batch_size_unknown"),
    ):
        accountant(1.0).calibrate(release, RecordScenario())


ONE = RecordScenario()


@pytest.mark.parametrize(
    "expected, accountant, scenario, asked",
    [
        ("fresh_bins", PrivacyLoss(4.0), ONE, {}),
        ("fresh_bins", PrivacyLoss(4.0), ONE, {"n_steps": 3}),
        ("fresh_bins", None, None, {}),
        ("fresh_bins", Best(4.0, delta=1e-5), ONE, {}),
        # less than an epoch
        ("poisson", PrivacyLoss(4.0), ONE, {"n_steps": 2}),
        # of few orders the cost in bins is exact
        ("poisson", RenyiDP(4.0), ONE, {}),
        ("poisson", Best(4.0, alpha=4), ONE, {}),
        # what bins have no account of
        ("poisson", PrivacyLoss(4.0), RecordScenario(k=2), {}),
        ("poisson", PrivacyLoss(4.0, noise="laplace"), ONE, {}),
        # a trifle more noise in some runs, and slow
        ("poisson", PrivacyLoss(4.0), RecordScenario(relation="replace"), {}),
        ("poisson", PrivacyLoss(4.0), RecordScenario(relation="relabel"), {}),
        ("shuffled_epochs", IterationAmplification(4.0, delta=1e-5), ONE, {}),
        ("full_batch", PrivacyLoss(4.0), ONE, {"batch_size": None}),
        ("fixed_size", PrivacyLoss(4.0), ONE, {"sampling": "fixed_size"}),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_default_sampling(expected, accountant, scenario, asked):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    training = Training(**{"batch_size": 20} | asked)
    model = PrivateSGDClassifier(
        scenario, accountant, training=training, random_state=0
    )
    assert model.fit(X, y).release_.sampling.name == expected


def test_bins_by_default_take_less_noise():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    noise = [
        PrivateSGDClassifier(
            training=Training(batch_size=20, sampling=sampling),
            max_iter=1,
            random_state=0,
        )
        .fit(X, y)
        .noise_.scale
        for sampling in (None, "poisson")
    ]
    assert noise[0] < 0.9 * noise[1]


@pytest.mark.parametrize("sampling", ["fresh_bins", "balls_in_bins"])
@pytest.mark.parametrize("n_steps", [10, 25])
def test_upper_bounds_are_not_stated_as_lower_ones(sampling, n_steps):
    release = GradientRelease(
        n_records=1000, batch_size=100, n_steps=n_steps, sampling=sampling
    )
    found = PrivacyLoss().certify(GaussianNoise(2.0), release, RecordScenario())
    assert found.epsilon > 0
    assert found.epsilon_lower is None
