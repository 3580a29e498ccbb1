"""Records in bins, accounted for by conditional composition: a published baseline."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss, RandomAllocation
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.noise.strategies import (
    banded_inverse_square_root,
    banded_square_root,
    identity,
)
from skpuffer.privacy import Certificate
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss.allocation import (
    CorrelatedAllocationPair,
    conditional_delta,
    conditional_epsilon,
    sampled_delta,
)
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training
from tests.extensions.random_allocation.allocation_oracles import ids, oracles
from tests.refused import refused, says

ORACLES = oracles("allocation_conditional.json")
STRATEGY = banded_square_root(2)
ADDED, REPLACED = RecordScenario(), RecordScenario(relation="replace")


def run(n_batches=6, epochs=2, **options):
    usual = {
        "n_records": 10 * n_batches,
        "batch_size": 10,
        "n_steps": epochs * n_batches,
        "sampling": "balls_in_bins",
        "noise_correlation": STRATEGY,
    }
    return GradientRelease(**usual | options)


def conditional(epsilon=1.0, delta=1e-3):
    return RandomAllocation(epsilon, delta, method="conditional")


# -- the noise it takes ----------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLES["calibrated"][:1], ids=ids)
def test_reference_noise(row):
    release = run(row["n_batches"], row["epochs"], noise_correlation=None)
    found = conditional(row["epsilon"], 1e-5).calibrate(release, ADDED)
    assert found.noise.scale == pytest.approx(row["sigma"], rel=3e-3)
    # what is exact takes less
    least = RandomAllocation(row["epsilon"], 1e-5).calibrate(release, ADDED)
    assert found.noise.scale > 1.3 * least.noise.scale


@pytest.mark.slow
@pytest.mark.parametrize("row", ORACLES["calibrated"][1:], ids=ids)
def test_reference_noise_in_full(row):
    strategy = banded_square_root(4) if row["strategy"] == "bsr" else None
    release = run(row["n_batches"], row["epochs"], noise_correlation=strategy)
    found = conditional(row["epsilon"], 1e-5).calibrate(release, ADDED)
    # a finer family of laws than the reference's
    assert 0.985 * row["sigma"] < found.noise.scale < 1.002 * row["sigma"]


@pytest.mark.parametrize(
    "strategy",
    [
        None,
        STRATEGY,
        pytest.param(banded_inverse_square_root(3), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_its_scale_is_the_least_that_keeps_the_promise(strategy):
    release = run(noise_correlation=strategy)
    found = conditional().calibrate(release, ADDED)
    assert found.certificate.epsilon <= 1.0
    assert found.certificate.delta == 1e-3
    means = (strategy or identity()).means(6, 12)
    # both directions keep it, by the function that knows nothing of accountants
    assert conditional_delta(means, found.noise.scale, 1.0, 1e-3) <= 1e-3
    assert conditional_delta(means, 0.999 * found.noise.scale, 1.0, 1e-3) > 1e-3
    again = conditional().certify(found.noise, release, ADDED)
    assert 0.999 <= again.epsilon <= 1.0
    for way in ("remove", "add"):
        assert drawn(means / found.noise.scale, way) <= 1e-3
    # a baseline: it takes half as much again as there is any need for, so that the
    # same samples tell of what is less by more than that
    assert drawn(2 * means / found.noise.scale, "remove") > 1e-3


def drawn(means, way):
    rng = np.random.default_rng(7)
    return sampled_delta(means @ means.T, 1.0, way, n_samples=50_000, rng=rng).estimate


@settings(max_examples=5, deadline=None)
@given(st.integers(2, 8), st.integers(1, 3), st.floats(0.3, 4.0), st.floats(0.8, 6.0))
def test_it_is_never_below_what_is_exact(n_batches, epochs, epsilon, scale):
    release = run(n_batches, epochs, noise_correlation=None)
    noise = GaussianNoise(scale)
    exact = PrivacyLoss(epsilon, 1e-4).certify(noise, release, ADDED)
    found = conditional(epsilon, 1e-4).certify(noise, release, ADDED)
    assert found.epsilon >= exact.epsilon * (1 - 1e-6)


# -- the pair --------------------------------------------------------------------------


def pair(scale=4.0, target=1e-3, **options):
    usual = {"method": "conditional", "target": target}
    curve = GaussianCurve(1 / scale)
    return CorrelatedAllocationPair(curve, STRATEGY, 6, 12, **usual | options)


def test_a_pair_holds_at_every_epsilon_and_pays_for_failures():
    means, found = STRATEGY.means(6, 12), pair()
    epsilon = np.array([0.0, 0.3, 0.8, 1.1, 2.0, 40.0])
    for way, many in (
        ("remove", found.delta(epsilon)),
        ("add", found.reverse(epsilon)),
    ):
        each = [conditional_delta(means, 4.0, e, 1e-3, way) for e in epsilon]
        # many are read off lines, which lie above
        assert np.all(many >= np.array(each) * (1 - 1e-9))
        assert np.all(many >= 0.5e-3)
        assert np.all(np.diff(many) <= 0)
    assert found.least_epsilon(1e-3) == conditional_epsilon(means, 4.0, 1e-3)
    # at another delta what pays for failures is still the same
    assert found.least_epsilon(2e-3) < found.least_epsilon(1e-3)
    assert found.least_epsilon(0.5e-3) == np.inf
    assert found.winner(1.0) == {"remove": "conditional", "add": "conditional"}


def test_pairs_next_to_no_noise_promise_nothing():
    for scale in (1e-9, 1e-3, 0.05):
        assert pair(scale).least_epsilon(1e-3) == np.inf
        assert pair(scale).delta(np.array([1.0]))[0] == 1
    assert conditional().certify(GaussianNoise(0.0), run(), ADDED).epsilon == np.inf


def test_one_bin_is_known_exactly():
    found = CorrelatedAllocationPair(
        GaussianCurve(0.25), STRATEGY, 1, 3, method="conditional", target=1e-3
    )
    length = float(np.linalg.norm(STRATEGY.means(1, 3))) / 4
    assert found.least_epsilon(1e-3) == pytest.approx(
        GaussianCurve(length).epsilon(1e-3), rel=1e-6
    )
    assert found.winner(1.0) == {"remove": "unamplified", "add": "unamplified"}


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"target": None}, Statement("allocation.conditional_target_missing")),
        (
            {"target": 1.0},
            Statement("parameter.probability_out_of_range", name="target"),
        ),
        ({"replaced": True}, Statement("allocation.conditional_with_replaced")),
    ],
)
def test_pairs_that_are_none(changed, said):
    with refused(ValueError, said.code, **said.parameters):
        pair(**changed)


# -- words and refusals ----------------------------------------------------------------


def test_certificates_name_it():
    certificate = conditional().calibrate(run(), ADDED).certificate
    said = " ".join(map(str, certificate.assumptions))
    assert "conditional (remove), conditional (add)" in said
    assert "method='conditional'" in certificate.accountant
    assert certificate.certified
    twin = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert twin == certificate
    assert twin.curve.delta(1.0) <= 1e-3


@pytest.mark.parametrize("method", ["conditional", "blocks", "closed", "renyi"])
def test_records_that_are_replaced_are_refused(method):
    accountant = RandomAllocation(1.0, 1e-3, method=method)
    for strategy in (STRATEGY, None):
        release = run(noise_correlation=strategy)
        support = accountant.supports(release, REPLACED)
        code = "allocation.method_without_replace"
        assert says(support.reason, code, method=method)
        with refused(UnsupportedError, "allocation.method_without_replace"):
            accountant.calibrate(release, REPLACED)
        assert accountant.supports(release, ADDED)
    # all are in one bin: there is nothing to bound
    full = run(sampling="full_batch", batch_size=None)
    scale = accountant.calibrate(full, REPLACED).noise.scale
    assert scale == PrivacyLoss(1.0, 1e-3).calibrate(full, REPLACED).noise.scale


def test_several_epochs_of_fresh_bins_are_refused():
    release = run(sampling="fresh_bins", noise_correlation=None)
    support = conditional().supports(release, ADDED)
    assert says(support.reason, "allocation.conditional_over_epochs")
    # of one epoch, bins that are fresh are bins that are kept
    once = run(epochs=1, sampling="fresh_bins", noise_correlation=None)
    kept = run(epochs=1, noise_correlation=None)
    fresh = conditional().calibrate(once, ADDED).noise
    assert fresh == conditional().calibrate(kept, ADDED).noise


@pytest.mark.parametrize("delta", [0.0, 1.0, None])
def test_it_needs_a_delta(delta):
    with refused(
        (ValueError, TypeError),
        ("parameter.not_real_number", "parameter.probability_out_of_range"),
    ):
        conditional(delta=delta).supports(run(), ADDED)
    with refused(
        (ValueError, TypeError),
        ("parameter.not_real_number", "parameter.probability_out_of_range"),
    ):
        conditional(delta=delta).calibrate(run(), ADDED)


def test_groups_are_refused():
    support = conditional().supports(run(), RecordScenario(k=2))
    assert says(support.reason, "allocation.group_without_bound", count=2)


def test_runs_that_would_not_fit_in_memory_are_refused():
    release = run(400, 1, noise_correlation=banded_inverse_square_root(4))
    with refused(ValueError, "allocation.means_exceed_memory"):
        conditional().calibrate(release, ADDED)


# -- estimators ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSGDClassifier])
def test_it_trains(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    scales = []
    for method in ("conditional", "best"):
        model = kind(
            accountant=RandomAllocation(1.0, 1e-3, method=method),
            training=Training(
                batch_size=10,
                n_steps=6,
                sampling="balls_in_bins",
                noise_correlation=STRATEGY,
            ),
            data_norm=2.0,
            classes=[0, 1],
            random_state=0,
        )
        certificate = model.fit(X, y).certificate_
        assert certificate.certified
        assert certificate.epsilon <= 1.0
        said = " ".join(map(str, certificate.assumptions))
        assert ("conditional (remove)" in said) == (method == "conditional")
        scales.append(float(np.max(model.noise_.scale)))
    assert scales[0] > scales[1]
