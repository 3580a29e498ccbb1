"""Equally private noises: their scales, spreads and tails, and how they are drawn."""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import PrivacyLoss
from skpuffer.inspection import EquivalentNoiseDisplay, equivalent_noises, lightest_tail
from skpuffer.inspection._noise_family import density
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "noise_family.json").read_text()
)
#: How far a calibrated scale may be above the least, relatively.
CALIBRATED = 3e-4


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def scales(noises):
    return [noise.scale for noise in noises]


def stds(noises):
    return [noise.std() for noise in noises]


# -- numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("case", ORACLES["single_scales"], ids=str)
def test_scales_of_one_release(case):
    noises = equivalent_noises(case["epsilon"], case["delta"], ORACLES["betas"])
    np.testing.assert_allclose(scales(noises), case["scales"], rtol=0, atol=6e-6)


def test_spreads_of_one_release():
    case = ORACLES["single_stds"]
    noises = equivalent_noises(case["epsilon"], case["delta"], ORACLES["betas"])
    np.testing.assert_allclose(stds(noises), case["stds"], rtol=0, atol=6e-5)


def test_scales_of_a_sampled_run():
    case = ORACLES["sampled_run"]
    noises = equivalent_noises(
        case["epsilon"],
        case["delta"],
        case["betas"],
        n_steps=case["n_steps"],
        sampling_rate=case["sampling_rate"],
    )
    np.testing.assert_allclose(scales(noises), case["scales"], rtol=CALIBRATED)
    np.testing.assert_allclose(stds(noises), case["stds"], rtol=CALIBRATED)


def test_scales_of_votes_are_those_of_the_vote_release():
    case = ORACLES["votes_scales"]
    q = case["n_queries"]
    noises = equivalent_noises(
        case["epsilon"], case["delta"], case["betas"], n_steps=2 * q
    )
    np.testing.assert_allclose(scales(noises), case["scales"], rtol=CALIBRATED)
    release = VoteRelease(n_records=100, n_teachers=100, n_classes=10, n_queries=q)
    for noise in noises:
        accountant = PrivacyLoss(case["epsilon"], case["delta"], noise=noise)
        theirs = accountant.calibrate(release, RecordScenario()).noise
        assert noise.scale == pytest.approx(theirs.scale, rel=CALIBRATED)


@pytest.mark.parametrize("case", ["single_tails", "sampled_tails"])
def test_tails(case):
    case = ORACLES[case]
    sampled = "n_steps" in case
    run = {"n_steps": 100, "sampling_rate": 0.01} if sampled else {}
    display = EquivalentNoiseDisplay.from_budget(
        epsilon=case["epsilon"],
        delta=case["delta"],
        betas=[row["beta"] for row in case["rows"]],
        thresholds=case["thresholds"],
        kind="tail",
        **run,
    )
    want = np.array([row["tails"] for row in case["rows"]])
    # far out a tail moves some thirty times as much as the scale
    rtol = 0.01 if sampled else 5e-5
    np.testing.assert_allclose(display.tails, want, rtol=rtol)
    if sampled:
        want_scales = [row["scale"] for row in case["rows"]]
        np.testing.assert_allclose(display.scales, want_scales, rtol=CALIBRATED)


def test_promises_are_kept_and_nearly_used_up():
    for noise in equivalent_noises(1.3, 1e-6, [1, 1.2, 2, 3.3], shift=2.5):
        assert noise.delta(1.3, 2.5) <= 1e-6
        assert noise.with_scale(0.999 * noise.scale).delta(1.3, 2.5) > 1e-6


@settings(max_examples=10)
@given(shift=st.floats(0.01, 100.0), beta=st.floats(1.0, 4.0))
def test_scales_are_in_units_of_the_shift(shift, beta):
    (unit,) = equivalent_noises(1.0, 1e-5, [beta])
    (noise,) = equivalent_noises(1.0, 1e-5, [beta], shift=shift)
    assert noise.scale == pytest.approx(shift * unit.scale, rel=1e-6)


def test_densities_are_of_mass_one():
    x = np.linspace(-300, 300, 400_001)
    for noise in equivalent_noises(1.0, 1e-5, [1, 1.5, 3]):
        mass = density(noise, x)
        assert np.trapezoid(mass, x) == pytest.approx(1, abs=1e-6)
        assert np.trapezoid(mass * x**2, x) == pytest.approx(noise.variance(), rel=1e-5)


# -- the lightest tail ----------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1, 2, 4])
def test_one_release_has_the_lightest_tails_with_laplace_noise(threshold):
    found = lightest_tail(1.5, 1e-5, threshold)
    assert found.noise.beta == 1
    case = ORACLES["single_tails"]["rows"][0]
    want = case["tails"][[1, 2, 4].index(threshold)]
    assert found.probability == pytest.approx(want, rel=5e-5)


def test_many_releases_have_them_with_a_shape_in_between():
    run = {"n_steps": 100, "sampling_rate": 0.01}
    among = [row["beta"] for row in ORACLES["sampled_tails"]["rows"]]
    coarse = lightest_tail(1.5, 1e-5, 4, betas=among, **run)
    assert coarse.noise.beta == 1.5
    fine = lightest_tail(1.5, 1e-5, 4, **run)
    assert 1.5 < fine.noise.beta < 1.75
    assert fine.probability < 0.9 * coarse.probability
    assert fine.probability == fine.noise.tail(4.0)


# -- drawings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, n_lines, scale, label",
    [
        ("density", 3, "linear", "Density"),
        ("log_density", 3, "log", "Density"),
        ("std", 1, "linear", "Standard deviation"),
        ("tail", 2, "log", "P(|noise| > τ)"),
    ],
)
def test_what_is_drawn(kind, n_lines, scale, label):
    display = EquivalentNoiseDisplay.from_budget(
        betas=[2, 1, 3], thresholds=[1, 5], kind=kind, line_kw={"lw": 3}
    )
    ax = display.ax_
    assert len(display.lines_) == n_lines
    assert {line.get_linewidth() for line in display.lines_} == {3}
    assert ax.get_yscale() == scale
    assert ax.get_ylabel() == label
    assert display.figure_ is ax.figure
    np.testing.assert_array_equal(display.betas, [1, 2, 3])
    if kind == "std":
        np.testing.assert_array_equal(display.lines_[0].get_ydata(), display.stds)
    elif kind == "tail":
        np.testing.assert_array_equal(display.lines_[1].get_ydata(), display.tails.T[1])
    else:
        x = display.lines_[2].get_xdata()
        want = density(display.noises[2], x)
        np.testing.assert_array_equal(display.lines_[2].get_ydata(), want)
    assert ax.get_title() == "ε = 1, δ = 1e-05"


def test_drawn_again_on_given_axes():
    display = EquivalentNoiseDisplay.from_budget(
        betas=[1, 2], n_steps=10, sampling_rate=0.1
    )
    assert display.ax_.get_title() == (
        "ε = 1, δ = 1e-05, 10 releases, sampling rate 0.1"
    )
    _, ax = plt.subplots()
    assert display.plot(ax, kind="std") is display
    assert display.ax_ is ax
    bare = EquivalentNoiseDisplay(noises=display.noises).plot(kind="tail")
    assert bare.ax_.get_title() == ""
    assert len(bare.lines_) == 3


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"betas": []}, "inspection.betas_below_one", {}),
        ({"betas": [0.9]}, "inspection.betas_below_one", {}),
        ({"betas": [1, np.inf]}, "inspection.betas_below_one", {}),
        ({"epsilon": 0}, "parameter.not_positive", {"name": "epsilon"}),
        ({"delta": 0}, "parameter.probability_out_of_range", {"name": "delta"}),
        ({"shift": 0}, "parameter.not_positive", {"name": "shift"}),
        ({"n_steps": 0}, "parameter.count_too_small", {"name": "n_steps"}),
        ({"sampling_rate": 0}, "parameter.not_positive", {"name": "sampling_rate"}),
        ({"sampling_rate": 1.1}, "inspection.sampling_rate_out_of_range", {}),
        ({"thresholds": [0]}, "parameter.not_positive", {"name": "thresholds"}),
        ({"kind": "cdf"}, "parameter.option_unknown", {"name": "kind"}),
    ],
)
def test_bad_parameters(options, code, parameters):
    with refused(ValueError, code, **parameters):
        EquivalentNoiseDisplay.from_budget(**options)
    assert not plt.get_fignums()


def test_bad_thresholds():
    with refused(ValueError, "parameter.not_positive", name="threshold"):
        lightest_tail(1.0, 1e-5, 0)


def test_matplotlib_is_imported_late(monkeypatch):
    noises = equivalent_noises(1.0, 1e-5, [1, 2])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = EquivalentNoiseDisplay(noises=noises)
    assert display.stds.shape == (2,)
    with refused(ImportError, "inspection.matplotlib_missing"):
        display.plot()
