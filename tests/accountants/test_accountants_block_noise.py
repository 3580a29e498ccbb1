"""Noise of a scale for each block of a gradient: its exact cost, by every scheme."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import (
    HistoryUniformCap,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.kernel.noise import gaussian_delta
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Certificate
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from tests.refused import refused

ALPHA = 3.0
RENYI = RenyiDP(1.0, alpha=ALPHA, delta=None)
CHAIN = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])


def run(norms=(1.0, 2.0), sizes=None, n_steps=5, **changes):
    """A run of blocks of growing sizes."""
    fields = {"n_records": 40, "sampling": "full_batch", "n_steps": n_steps}
    sizes = tuple(range(2, 2 + len(norms))) if sizes is None else sizes
    return GradientRelease(**{**fields, "clip_norm": norms, "blocks": sizes, **changes})


def spread(scales, release):
    return GaussianNoise(np.repeat(scales, release.blocks))


norms = st.floats(1e-3, 1e3)


@given(
    blocks=st.lists(st.tuples(norms, norms), min_size=1, max_size=6),
    relation=st.sampled_from(["add_remove", "replace"]),
)
def test_the_cost_is_that_of_the_gaussians_themselves(blocks, relation):
    clips, scales = map(np.array, zip(*blocks, strict=True))
    release = run(tuple(clips.tolist()))
    moves = 1 if relation == "add_remove" else 2
    # the longest gradient of each block at once, in standard deviations
    mu = moves * np.linalg.norm(clips / scales) * math.sqrt(5)
    noise, scenario = spread(scales, release), RecordScenario(relation=relation)
    renyi = RENYI.certify(noise, release, scenario)
    assert renyi.epsilon == pytest.approx(ALPHA * mu**2 / 2, rel=1e-9)
    exact = PrivacyLoss(1.0, 1e-5).certify(noise, release, scenario)
    assert exact.curve.delta(1.0) == pytest.approx(gaussian_delta(1.0, mu), rel=1e-6)
    # never more than the longest gradient under the least noise, which is looser
    least = GaussianNoise(scales.min())
    assert renyi.epsilon <= RENYI.certify(least, release, scenario).epsilon * (1 + 1e-9)


def test_a_block_is_as_private_as_its_least_noise():
    release = run((1.0, 2.0), (2, 3))
    noise = GaussianNoise([4.0, 2.0, 5.0, 8.0, 4.0])
    found = RENYI.certify(noise, release, RecordScenario()).epsilon
    assert found == pytest.approx(ALPHA / 2 * 5 * (0.5**2 + 0.5**2))


def test_a_block_without_noise_is_paid_for_without_end():
    release = run((1.0, 2.0), (1, 1))
    for scales in ([0.0, 1.0], [0.0, 0.0]):
        found = RENYI.certify(GaussianNoise(scales), release, RecordScenario())
        assert math.isinf(found.epsilon)


def test_noise_by_clip_norms_that_are_shares_of_the_whole_costs_so_many_times():
    """A published set-up: noise below the one of the whole, in every block."""
    sizes = np.random.default_rng(0).integers(10, 2000, 23)
    base, sigma = 5.0, 7.0
    clips = base * np.sqrt(sizes / sizes.sum())
    release = run(tuple(clips.tolist()), tuple(sizes.tolist()))
    assert release.total_clip_norm == pytest.approx(base)
    per_block = sigma * clips / base
    assert np.all(per_block < sigma)
    whole = RENYI.certify(GaussianNoise(sigma), release, RecordScenario()).epsilon
    by_block = RENYI.certify(spread(per_block, release), release, RecordScenario())
    assert by_block.epsilon == pytest.approx(23 * whole)


SCHEMES = {
    "full_batch": {},
    "poisson": {"batch_size": 4},
    "fixed_size": {"batch_size": 4},
    "with_replacement": {"batch_size": 4},
    "shuffled_epochs": {"batch_size": 4},
}


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("sampling", SCHEMES)
def test_whatever_is_sampled_it_is_a_run_of_one_whitened_block(sampling, relation):
    scenario = RecordScenario(relation=relation)
    shape = {"sampling": sampling, **SCHEMES[sampling]}
    release = run((1.0, 3.0), noise_proportions=(0.5, 3.0), **shape)
    white = run((1.0,), **shape, **{"blocks": None, "clip_norm": math.hypot(2, 1)})
    for accountant in (RENYI, PrivacyLoss(1.0, 1e-5)):
        found = accountant.calibrate(release, scenario)
        plain = accountant.calibrate(white, scenario)
        expected = plain.noise.scale * np.repeat((0.5, 3.0), (2, 3))
        np.testing.assert_allclose(found.noise.scale, expected, rtol=1e-3)
        assert found.certificate.epsilon <= 1.0
        again = accountant.certify(found.noise, release, scenario)
        assert 0.999 < again.epsilon <= 1.0
    # without them, one scale
    assert np.ndim(RENYI.calibrate(run(**shape), scenario).noise.scale) == 0


def test_noise_of_another_norm_than_the_clipping_adds_blocks_up():
    """Laplace noise measures in l1: the l1 norms of blocks add up."""
    release = run((1.0, 2.0), clip_order=1)
    noise = LaplaceNoise(np.repeat((2.0, 8.0), release.blocks))
    found = PrivacyLoss(1.0, 1e-5).certify(noise, release, RecordScenario())
    assert found.curve.renyi(math.inf) == pytest.approx(5 * (1 / 2 + 2 / 8))
    # gradients that are clipped in l2 are longer in l1, by how many there are of them
    longer = replace(release, clip_order=2.0)
    found = PrivacyLoss(1.0, 1e-5).certify(noise, longer, RecordScenario())
    most = math.hypot(1 / 2, 2 / 8) * math.sqrt(5)
    assert found.curve.renyi(math.inf) == pytest.approx(5 * most)


def test_beliefs_and_quilts_keep_the_proportions():
    release = run(noise_proportions=(1.0, 2.0))
    whole = replace(release, noise_proportions=None)
    belief = AttributeScenario("a", level="record", prior=BoundedOdds(3.0))
    quilts = MarkovQuilt(2.0, ALPHA, noise="gaussian")
    for accountant, scenario in (
        (OverlapAmplification(0.5, delta=1e-5), belief),
        (quilts, CHAIN),
    ):
        found = accountant.calibrate(release, scenario)
        scales = np.array(found.noise.scale)
        np.testing.assert_allclose(scales / scales[0], [1, 1, 2, 2, 2])
        # two blocks in proportion: sqrt(2) a block, sqrt(5) for the whole
        plain = accountant.calibrate(whole, scenario).noise.scale
        assert scales[0] / math.sqrt(2) == pytest.approx(plain / math.sqrt(5), rel=1e-3)
    text = json.dumps(found.certificate.to_dict())
    back = Certificate.from_dict(json.loads(text))
    assert back.curve.renyi(ALPHA) == found.certificate.curve.renyi(ALPHA)


def test_caps_at_every_history_charge_blocks_alike():
    release = run((0.5, 3.0), noise_proportions=(0.5, 3.0))
    found = HistoryUniformCap(1.0, ALPHA).calibrate(release, RecordScenario())
    # one clip norm a block in its own unit, as many steps as there are
    scale = math.sqrt(ALPHA / 2 * 5 * 2)
    expected = scale * np.repeat((0.5, 3.0), release.blocks)
    np.testing.assert_allclose(found.noise.scale, expected, rtol=1e-6)
    again = HistoryUniformCap(1.0, ALPHA).certify(
        found.noise, release, RecordScenario()
    )
    assert again.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise_proportions": (1.0,)},
        {"noise_proportions": (1.0, 0.0)},
        {"noise_proportions": (1.0, math.nan)},
        {"noise_proportions": [1.0, 1.0]},
        {"noise_proportions": 1.0},
        {"noise_proportions": (1.0,), "blocks": None, "clip_norm": 1.0},
    ],
)
def test_proportions_that_are_none_are_refused(changes):
    with refused(
        ValueError,
        (
            "gradient.noise_proportions_count_mismatch",
            "parameter.is_nan",
            "parameter.not_positive",
        ),
    ):
        run(**changes)


def test_noise_of_another_length_is_refused():
    with refused(ValueError, "gradient.noise_scales_mismatch", dim=5):
        RENYI.certify(GaussianNoise([1.0, 2.0]), run(), RecordScenario())
