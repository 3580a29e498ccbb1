"""Shifts: their magnitude in another norm, and their form."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.exceptions import Statement
from skpuffer.noise import (
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
    Shift,
)
from skpuffer.privacy._written import from_plain
from tests.refused import refused

from .contract import examples

norms = st.sampled_from([1, 1.3, 2, 3.5, math.inf])
entries = st.floats(0.05, 20.0)


@examples
@given(norms, norms, st.tuples(entries, entries), st.tuples(entries, entries))
def test_magnitude_is_the_longest_displacement(p, q, weights, scale):
    shift = Shift(2.0, norm=p, dim=2, weights=weights)
    # nearly on the axes as well as between them, where the weights differ much
    angles = np.concatenate(
        [[0, np.pi / 2], np.arctan(np.geomspace(1e-6, 1e6, 20_001))]
    )
    ray = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ray[0, 1] = ray[1, 0] = 0.0
    ray /= np.linalg.norm(ray, ord=p, axis=1, keepdims=True)
    lengths = np.linalg.norm(2 * ray * weights / scale, ord=q, axis=1)
    assert shift.magnitude(scale, q) == pytest.approx(lengths.max(), rel=1e-5)
    assert lengths.max() <= shift.magnitude(scale, q) * (1 + 1e-12)


@examples
@given(norms, norms, st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_magnitude_by_random_search(p, q, dim, seed):
    rng = np.random.default_rng(seed)
    weights, scale = rng.uniform(0.1, 3, size=(2, dim))
    shift = Shift(1.5, norm=p, dim=dim, weights=weights)
    ray = rng.normal(size=(300, dim)) * rng.uniform(size=dim) ** 4
    ray = np.concatenate([ray, np.eye(dim)])
    ray /= np.linalg.norm(ray, ord=p, axis=1, keepdims=True)
    lengths = np.linalg.norm(1.5 * ray * weights / scale, ord=q, axis=1)
    assert lengths.max() <= shift.magnitude(scale, q) * (1 + 1e-12)
    one = Shift(1.5, p, dim, structure="scalar", weights=weights)
    assert one.magnitude(scale, q) == pytest.approx(lengths[-dim:].max())


@pytest.mark.parametrize(
    "p, q, expected", [(2, 1, 2.0), (math.inf, 2, 2.0), (math.inf, 1, 4.0), (1, 2, 1.0)]
)
def test_equal_coordinates(p, q, expected):
    assert Shift(1.0, norm=p, dim=4).magnitude(1.0, q) == expected
    assert Shift(1.0, norm=p, dim=4).magnitude(np.ones(4), q) == pytest.approx(expected)
    assert Shift(3.0, norm=p, dim=4).magnitude(0.5, q) == 6 * expected


def test_dimension_may_come_from_weights_or_scale():
    assert Shift(1.0, 2, None, weights=(1, 1)).dim == 2
    assert Shift(1.0, 2, None).magnitude((1.0, 1.0), 1) == pytest.approx(math.sqrt(2))
    assert Shift(1.0, 2, None).magnitude(2.0, 2) == 0.5
    with refused(ValueError, "noise.shift_norm_mismatch"):
        Shift(1.0, 2, None).magnitude(2.0, 1)
    with refused(ValueError, "noise.shift_dimension_mismatch", dim=1, noise_dim=2):
        Shift(1.0).magnitude((1.0, 1.0), 2)


def test_zero_scale_and_zero_radius():
    assert Shift(1.0, 1, 2).magnitude((0.0, 1.0), 2) == math.inf
    assert Shift(1.0, 2, 2).magnitude((0.0, 1.0), 1) == math.inf
    assert Shift(0.0, 2, 2).magnitude((0.0, 1.0), 1) == 0.0
    assert Shift(math.inf, 2, 2).magnitude((1.0, 1.0), 1) == math.inf


def test_is_plain_data():
    shift = Shift(1, norm=math.inf, dim=2, weights=np.array([1, 2]))
    assert shift == Shift(1.0, norm=math.inf, dim=2.0, weights=[1.0, 2.0])
    assert shift.weights == (1.0, 2.0) and type(shift.dim) is int
    assert pickle.loads(pickle.dumps(shift)) == shift
    assert hash(shift) == hash(Shift(1, math.inf, 2, weights=(1, 2)))
    told = json.loads(json.dumps(shift.to_dict(), allow_nan=False))
    assert told == {
        "kind": "shift",
        "radius": 1.0,
        "norm": "inf",
        "dim": 2,
        "structure": "vector",
        "weights": [1.0, 2.0],
    }
    assert from_plain(told) == shift


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"radius": -1.0}, Statement("parameter.is_negative", name="radius")),
        ({"radius": math.nan}, Statement("parameter.is_nan", name="radius")),
        ({"norm": 0.5}, Statement("parameter.below_one", name="norm")),
        ({"norm": math.nan}, Statement("parameter.is_nan", name="norm")),
        ({"dim": 0}, Statement("parameter.count_too_small", name="dim")),
        ({"dim": 1.5}, Statement("parameter.count_too_small", name="dim")),
        (
            {"structure": "matrix"},
            Statement("parameter.option_unknown", name="structure"),
        ),
        (
            {"dim": 2, "weights": (1.0, 0.0)},
            Statement("parameter.not_positive", name="weights"),
        ),
        (
            {"dim": 2, "weights": (1.0, math.inf)},
            Statement("parameter.not_positive", name="weights"),
        ),
        (
            {"dim": 3, "weights": (1.0, 1.0)},
            Statement("noise.shift_weights_count_mismatch"),
        ),
        (
            {"dim": None, "weights": ()},
            Statement("parameter.count_too_small", name="dim"),
        ),
    ],
)
def test_bad_fields(fields, said):
    with refused(ValueError, said.code, **said.parameters):
        Shift(**{"radius": 1.0, **fields})


@pytest.mark.parametrize("fields", [{"radius": "1"}, {"norm": "2"}, {"dim": "2"}])
def test_fields_of_no_number(fields):
    with pytest.raises(TypeError, match=next(iter(fields))):
        Shift(**{"radius": 1.0, **fields})


@pytest.mark.parametrize("norm", [0.9, math.nan])
def test_bad_norm_asked_for(norm):
    with refused(ValueError, ("parameter.below_one", "parameter.is_nan")):
        Shift(1.0).magnitude(1.0, norm)


@pytest.mark.parametrize(
    "noise, bounded",
    [
        (GaussianNoise(), False),
        (GeneralizedGaussianNoise(1.0, beta=1.0), True),
        (GeneralizedGaussianNoise(1.0, beta=1.5), False),
        (LaplaceNoise(), True),
        (LaplaceNoise(0.0), True),
        (LaplaceNoise((1.0, 0.0)), True),
        (DiscreteLaplaceNoise(), True),
        (GeneralizedCauchyNoise(), True),
    ],
)
def test_some_noise_can_keep_a_pure_promise(noise, bounded):
    assert noise.has_bounded_loss is bounded
