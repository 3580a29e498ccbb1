"""Reference values of the noise families, from a data file."""

import json
import math
from functools import partial
from pathlib import Path

import pytest

from skpuffer import accountants
from skpuffer.accountants import scale_for_delta
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "noise.json").read_text("utf-8")
)
FAMILIES = {family.family: family for family in (GaussianNoise, LaplaceNoise)}


@pytest.mark.parametrize(
    "row", ORACLES["rows"], ids=lambda row: f"{row['family']}-{row['method']}"
)
def test_reference_values(row):
    noise = FAMILIES[row["family"]](scale=row["scale"])
    asked = getattr(noise, row["method"], None)
    search = getattr(accountants, row["method"], None)
    value = (asked or partial(search, noise))(
        **{k: float(v) for k, v in row["args"].items()}
    )
    assert value == pytest.approx(row["value"], rel=ORACLES["relative_tolerance"])


def test_worst_shift_covers_the_equal_split():
    oracle = ORACLES["equal_split"]
    noise = LaplaceNoise(oracle["scale"])
    alpha, dim, radius = oracle["alpha"], oracle["dim"], oracle["radius"]
    split = dim * noise.renyi(alpha, radius / math.sqrt(dim))
    assert split == pytest.approx(oracle["value"], rel=1e-9)
    assert noise.renyi(alpha, Shift(radius, norm=2, dim=dim)) >= oracle["value"]
    # taking the l2 bound for an l1 bound would have promised too much
    assert noise.renyi(alpha, Shift(radius, norm=1, dim=dim)) < oracle["value"]


def test_basic_conversion_optimum():
    oracle = ORACLES["basic_conversion"]
    curve = GaussianNoise(oracle["scale"]).curve(oracle["shift"])

    def basic(alpha):
        return curve.renyi(alpha) + math.log(1 / oracle["delta"]) / (alpha - 1)

    alpha = oracle["alpha"]
    assert basic(alpha) == pytest.approx(oracle["value"], rel=1e-9)
    assert basic(alpha) < min(basic(alpha * 0.99), basic(alpha * 1.01))


def test_exact_calibration_beats_the_classical_formula():
    oracle = ORACLES["classical_gaussian"]
    epsilon, delta, shift = oracle["epsilon"], oracle["delta"], oracle["shift"]
    classical = shift * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert classical == pytest.approx(oracle["value"], rel=1e-9)
    assert GaussianNoise(classical).delta(epsilon, shift) < delta
    assert scale_for_delta(GaussianNoise(), epsilon, delta, shift) < 0.8 * classical
