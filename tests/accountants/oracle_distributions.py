"""Reference laws, releases and noise for the mechanisms that compare output laws."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from skpuffer.distributions import Discrete
from skpuffer.noise import GaussianNoise, GeneralizedCauchyNoise, LaplaceNoise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import AttributeScenario, LawsScenario

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_mechanisms.json").read_text("utf-8")
)


#: Two laws of a village or a town. All mass moves by 2, and nothing blurs it: the rest
#: is far away. Of the others half of the mass moves.
ALL_MOVES = Discrete([0.0, 100.0], [3, 1]), Discrete([2.0, 102.0], [3, 1])
HALF_MOVES = Discrete([0.0, 100.0]), Discrete([2.0, 100.0])


def pair(name):
    """Return the two laws of that name."""
    laws = ORACLES["laws"][name]
    return tuple(Discrete(laws[s], laws.get(f"{s}_weights")) for s in "uv")


def scenario(name):
    """Return the scenario of one pair of laws."""
    return LawsScenario([pair(name)])


def output(dim=1, **options):
    """Return a release of that many coordinates."""
    options = {"n_records": 4, "is_integer": True} | options
    return QueryRelease(query=lambda X, y: X, dim=dim, **options)


def release_of(name):
    """Return a release whose output has the dimension of the laws of that name."""
    return output(pair(name)[0].dim)


def noise_of(row):
    """Return the noise of a row of the oracles."""
    if row["noise"] == "cauchy":
        return GeneralizedCauchyNoise(float(row["scale"]), float(row["exponent"]))
    family = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}[row["noise"]]
    return family(float(row["scale"]))


def number(value):
    """Return a number that JSON may have had to spell out."""
    return math.inf if value == "inf" else float(value)


def atoms(law):
    """Return the points and masses of a law on the line."""
    return law.points[:, 0], law.masses


def attribute(seed=0, n_rows=60, **options):
    """Return a record-level scenario whose prior has one rare far value."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n_rows)
    x = np.clip(rng.normal(0.2 + 0.3 * secret, 0.2), 0, 1).round(2)
    x[0], secret[0] = 1.0, 0
    prior = pd.DataFrame({"s": secret, "x": x})
    options = {"prior": prior, "prior_as": "law", "level": "record"} | options
    return AttributeScenario("s", **options)


def table(n_rows=50, seed=1):
    """Return private rows with the column of `attribute`, in its bounds."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.uniform(0, 1, n_rows)})
