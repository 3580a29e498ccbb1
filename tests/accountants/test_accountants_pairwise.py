"""Amplification by overlap where records are told apart pair by pair."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import Best, OverlapAmplification
from skpuffer.base import proved
from skpuffer.compose import PublicPreprocessing
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.run import noise_grid
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Certificate, compose
from skpuffer.privacy_loss.overlap import PairwiseOverlapCurve
from skpuffer.privacy_loss.overlap._pairwise import ROOM_OF_PAIRS
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, BinnedLaw, BoundedOdds
from skpuffer.training import Logistic, RecordGradient

#: Masses of four numbers given either value of the secret.
VALUES = (0.0, 0.6, 0.8, 1.0)
FIRST, SECOND = (4, 3, 1, 2), (1, 2, 3, 4)
PUBLIC = pd.DataFrame(
    [("f", v) for v, n in zip(VALUES, FIRST, strict=True) for _ in range(n)]
    + [("m", v) for v, n in zip(VALUES, SECOND, strict=True) for _ in range(n)],
    columns=["sex", "x"],
)


def believing(rows=PUBLIC, **options):
    law = BinnedLaw(rows, **{k: options.pop(k) for k in ("rest",) if k in options})
    return AttributeScenario("sex", level="record", prior=law, **options)


def identity(X, y):
    return np.asarray(X, dtype=float)


def total(n=20, names=("x",), **known):
    return QueryRelease(
        contribution=identity,
        is_sum=True,
        n_records=n,
        dim=1,
        sensitivity=Sensitivity(replace={2: 1.0}, add_remove={2: 1.0}),
        context=PublicContext(n_records=n, n_features=1, feature_names=names, **known),
    )


def truth(epsilon, sigma):
    """Divergence of the sum given either value, the other records being known."""
    p, q = (np.array(counts) / sum(counts) for counts in (FIRST, SECOND))

    def gap(t):
        density = norm.pdf(t, np.array(VALUES), sigma)
        return max(p @ density - np.exp(epsilon) * q @ density, 0.0)

    edges = np.linspace(-8 * sigma, 1 + 8 * sigma, 41)
    return sum(quad(gap, a, b)[0] for a, b in zip(edges, edges[1:], strict=False))


def test_a_sum_is_certified_near_the_truth():
    certificate = OverlapAmplification(0.3, delta=0.05).certify(
        GaussianNoise(1.0), total(), believing()
    )
    assert isinstance(certificate.curve, PairwiseOverlapCurve)
    found = certificate.curve.delta(0.3)
    # the best bound from pairwise curves, found within 0.2 %
    assert 0.0336865748 * (1 - 1e-6) <= found <= 0.0336865748 * 1.002
    assert truth(0.3, 1.0) <= found
    # of the same belief as a whole
    assert super(PairwiseOverlapCurve, certificate.curve).delta(0.3) == pytest.approx(
        0.0503237660, abs=1e-9
    )


def test_the_noise_is_enough_and_hardly_more():
    accountant = OverlapAmplification(0.2, delta=0.01, max_fallback=20)
    found = accountant.calibrate(total(), believing())
    sigma = found.noise.scale
    assert found.certificate.epsilon == pytest.approx(0.2, rel=1e-3)
    assert truth(0.2, sigma) <= 0.01
    # the positive control
    assert truth(0.2, 0.7 * sigma) > 0.01
    whole = OverlapAmplification(0.2, delta=0.01, max_fallback=20).calibrate(
        total(names=("x", "other")), believing(rest=BoundedOdds(1.0))
    )
    # another column may take any value, so that nothing is known of pairs
    assert not isinstance(whole.certificate.curve, PairwiseOverlapCurve)
    assert whole.noise.scale > 1.2 * sigma
    read = Certificate.from_dict(found.certificate.to_dict())
    assert read == found.certificate
    assert found.certificate.fallback <= 20
    capped = OverlapAmplification(0.2, delta=0.01, max_fallback=0.5).calibrate(
        total(), believing()
    )
    assert capped.certificate.fallback == pytest.approx(0.5, rel=1e-3)
    assert capped.certificate.epsilon < 0.2


@pytest.mark.parametrize("apart", [1e-12, 1e-6, 0.3])
def test_records_that_nearly_agree_pay_for_the_rounding_of_a_sum(apart):
    """Their sums may be on either side of a step of the grid, whatever the noise."""
    values = (0.0, apart, 1.0)
    rows = pd.DataFrame({"sex": list("ffffmmm"), "x": [*values, 0.0, *values]})
    asked = OverlapAmplification(0.2, delta=0.01, max_fallback=20.0)
    release, scenario = total(), believing(rows)
    bound = scenario.bind(release.context)
    found = proved(asked, release, bound, noise_generator(None)[0])
    assert any(
        "the noise covers them" in str(text) for text in found.certificate.assumptions
    )
    certified = found.certificate.curve
    costs = np.array(certified.overlap.costs)
    step = float(noise_grid(found.noise, release.n_records))
    # in units of the final noise: the move of the exact value, and of both roundings
    moved = np.array([[0, apart, 1], [apart, 0, 1 - apart], [1, 1 - apart, 0]])
    moved = np.where(moved > 0, moved + 2 * step, 0.0) / found.noise.scale
    assert np.all(moved <= certified.curve.gaussian_mu * costs * (1 + 1e-12))
    # the positive control: without room for the rounding they would not
    before = certified.curve.gaussian_mu * (costs - ROOM_OF_PAIRS)
    assert moved[0, 1] > before[0, 1]
    assert costs[0, 0] == 0


def test_pairs_are_added_up_pair_by_pair():
    scenario = believing(table="panel")
    one = OverlapAmplification(0.2, delta=0.01).calibrate(total(), scenario)
    both = compose([one.certificate, one.certificate])
    assert isinstance(both.curve, PairwiseOverlapCurve)
    # two looks with as much noise are one with less
    once = OverlapAmplification(0.2, delta=0.01).certify(
        GaussianNoise(one.noise.scale / np.sqrt(2)), total(), scenario
    )
    assert both.epsilon == pytest.approx(once.epsilon, rel=1e-3)
    assert truth(both.epsilon, one.noise.scale / np.sqrt(2)) <= 0.01


#: Of these the record and its label are told, or next to nothing but its label.
FEW = {"x": [0.2, 0.9] * 5 + [0.5, 0.9, 0.9, 0.9, 0.2] * 2, "y": [0, 1] * 5}
FEW["y"] += [0, 1, 1, 0, 1] * 2
LABELS = {"x": [0.9] * 20, "y": [1] * 7 + [0] * 3 + [1] * 2 + [0] * 8}


@pytest.mark.parametrize("records, tight", [(FEW, False), (LABELS, True)])
def test_first_gradients_are_no_further_apart_than_certified(records, tight):
    rows = pd.DataFrame({"sex": ["f"] * 10 + ["m"] * 10} | records)
    record = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)
    run = GradientRelease(
        n_records=20,
        n_steps=1,
        sampling="full_batch",
        clip_norm=0.4,
        record=record,
        context=PublicContext(
            n_records=20,
            n_features=1,
            feature_names=("x",),
            has_target=True,
            classes=(0, 1),
            target_name="y",
        ),
    )
    certificate = OverlapAmplification(0.3, delta=0.01).certify(
        GaussianNoise(0.5), run, believing(rows)
    )
    assert isinstance(certificate.curve, PairwiseOverlapCurve)
    # the first sum of gradients, at whatever parameters the run begins
    signed = rows["x"] * (2 * rows["y"] - 1)
    grid, levels = np.linspace(-5, 5, 8001), (0.0, 0.2, 0.5)

    def exact(sigma):
        found = []
        for w in (-30.0, -1.0, 0.0, 2.0, 30.0):
            slopes = -1 / (1 + np.exp(w * signed))
            values = np.clip(slopes * signed, -0.4, 0.4).to_numpy()
            densities = norm.pdf(grid[:, None], values, sigma)
            p, q = densities[:, :10].mean(axis=1), densities[:, 10:].mean(axis=1)
            gaps = [[p - np.exp(e) * q, q - np.exp(e) * p] for e in levels]
            found.append(np.trapezoid(np.maximum(gaps, 0), grid).max(axis=1))
        return np.max(found, axis=0)

    certified = [certificate.curve.delta(epsilon) for epsilon in levels]
    assert np.all(exact(0.5) <= np.array(certified) + 1e-7)
    if tight:  # at zero the label alone moves a gradient by twice the clip norm
        assert np.all(exact(0.5) >= 0.99 * np.array(certified))
        # the positive control
        assert np.all(exact(0.7 * 0.5) > certified)
    # batches that are drawn are not told apart by pairs
    drawn = GradientRelease(
        n_records=20, n_steps=1, batch_size=5, record=record, context=run.context
    )
    certificate = OverlapAmplification(0.3, delta=0.01).certify(
        GaussianNoise(0.5), drawn, believing(rows)
    )
    assert not isinstance(certificate.curve, PairwiseOverlapCurve)


def test_a_model_of_coded_rows_gains_more():
    X, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = (progress > 140).astype(int).rename("high")
    columns = ["bmi", "s5", "sex"]
    law = BinnedLaw(X[:150][columns].assign(high=y), {"bmi": 4, "s5": 4})
    scenario = AttributeScenario("sex", level="record", prior=law, target="high")
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(scenario, OverlapAmplification(0.1), data_norm=2.0),
    ).fit(X[150:][columns], y[150:])
    certificate = model.certificate_
    assert certificate.epsilon == 0.1
    assert certificate.curve.delta(0.1) <= 1e-5
    assert certificate.gain > 1.4 * scenario.explain(0.1)["gain"].item()
    # the default accountant finds it by itself
    best = model.set_params(estimator__accountant=Best(0.1, delta=1e-5))
    best.fit(X[150:][columns], y[150:])
    assert best.certificate_.gain == pytest.approx(certificate.gain, rel=1e-6)
