"""W_inf on the line by buckets is that of sorting everything, to the last bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.transport import _buckets, quantile_coupling, wasserstein_distance
from skpuffer.transport._buckets import gap_by_buckets
from skpuffer.transport._masses import MeantMasses, read_masses
from tests.refused import refused

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "heavy": lambda rng, n: rng.standard_cauchy(n) ** 3,
    "tied": lambda rng, n: rng.integers(0, 12, n).astype(float),
    "half_tied": lambda rng, n: np.maximum(rng.normal(size=n), 0.0),
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
    "far": lambda rng, n: 1e9 + rng.random(n),
    "strided": lambda rng, n: rng.normal(size=(n, 3))[:, 1],
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "counts": lambda rng, n: rng.integers(0, 4, n) + (np.arange(n) == 0),
    "shares": lambda rng, n: np.full(n, 1 / n),
    "floats": lambda rng, n: rng.dirichlet(np.ones(n)),
    "steep": lambda rng, n: rng.dirichlet(np.full(n, 0.02)),
}


def by_sorting(x, y, a, b):
    first, second, _ = quantile_coupling(x, y, a, b)
    return np.abs(first - second).max()


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(_buckets, "_FEW", 0)
    monkeypatch.setattr(_buckets, "_FEW_WITH_MASSES", 0)
    monkeypatch.setattr(_buckets, "_WORTH_SORTING", math.inf)
    monkeypatch.setattr(_buckets, "_BLOCK", 7)


def seen(x, y, a, b):
    """What the buckets answer, or None."""
    x, y = np.asarray(x), np.asarray(y)
    a = read_masses(len(x), u_weights=a)
    b = read_masses(len(y), v_weights=b)
    return gap_by_buckets(x, a, y, b)


@pytest.mark.parametrize("fineness", [1, 16])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_sorting(monkeypatch, any_size, shape, weights, fineness):
    monkeypatch.setattr(_buckets, "_FINENESS", fineness)
    rng = np.random.default_rng(fineness)
    found = []
    for n, m in [(30, 30), (60, 20), (41, 13), (1, 25), (200, 200)]:
        x, y = SHAPES[shape](rng, n), SHAPES[shape](rng, m)
        y = y if shape == "far" else y * 1.1
        a, b = WEIGHTS[weights](rng, n), WEIGHTS[weights](rng, m)
        for law in ((x, y, a, b), (y, x, b, a), (x, y, None, b)):
            expected = by_sorting(*law)
            assert wasserstein_distance(*law) == expected
            found.append(seen(*law))
            assert found[-1] in (None, expected)
    if fineness == 16 and "tied" not in shape:
        assert any(gap is not None for gap in found)


@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=40),
    st.lists(st.integers(-40, 40), min_size=2, max_size=40),
    st.sampled_from([1.0, 0.1, 1e200]),
    st.integers(0, 2**16),
)
def test_agrees_with_sorting_on_ties(x, y, unit, seed):
    rng = np.random.default_rng(seed)
    x, y = np.array(x) * unit, np.array(y) * unit
    a, b = rng.integers(1, 5, len(x)), rng.integers(1, 5, len(y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_buckets, "_FEW_WITH_MASSES", 0)
        patch.setattr(_buckets, "_WORTH_SORTING", math.inf)
        for weights in ((a, b), (a, None), (a / a.sum(), b)):
            assert wasserstein_distance(x, y, *weights) == by_sorting(x, y, *weights)


@pytest.mark.parametrize("weights", ["none", "counts"])
def test_many_atoms_are_not_all_sorted(weights):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300_000), rng.normal(size=210_000)
    a, b = WEIGHTS[weights](rng, len(x)), WEIGHTS[weights](rng, len(y))
    assert seen(x, y, a, b) == by_sorting(x, y, a, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_many_atoms_must_be_finite(bad):
    x, y = np.arange(300_000.0), np.arange(300_000.0)
    y[7] = bad
    with refused(ValueError, "transport.values_not_finite", name="v_values"):
        wasserstein_distance(x, y)
    with refused(ValueError, "transport.values_not_finite", name="u_values"):
        wasserstein_distance(y, x, np.ones(len(y), int))


def test_what_no_bucket_can_tell_is_sorted(any_size):
    x = np.random.default_rng(0).normal(size=300)
    assert seen(x, x + 1, None, None) is None
    assert wasserstein_distance(x, x + 1) == np.abs(x - (x + 1)).max()
    assert seen(x, x / x.max() * 1.7e308, None, None) is None  # wider than any float
    assert seen(np.ones(50), np.ones(60), None, None) is None
    assert seen(x, x[:9], [2**70] + [1] * 299, None) is None
    assert wasserstein_distance(np.ones(50), np.ones(60)) == 0


def test_single_precision_is_exact():
    """Gaps are those of the values as double precision holds them."""
    x, y = np.random.default_rng(1).normal(size=(2, 300_000)).astype(np.float32)
    double = wasserstein_distance(x.astype(float), y.astype(float))
    assert wasserstein_distance(x, y) == double
    assert wasserstein_distance(x[:9], y[:9]) == wasserstein_distance(
        x[:9].astype(float), y[:9].astype(float)
    )
    ones = np.ones(len(x), int)
    assert wasserstein_distance(x, y, ones, ones, p=2) == wasserstein_distance(
        x.astype(float), y.astype(float), ones, ones, p=2
    )


def test_single_precision_of_its_whole_range(any_size):
    x, y = np.random.default_rng(2).normal(size=(2, 400)) * 1e38 * [[1], [0.5]]
    x, y = x.astype(np.float32), y.astype(np.float32)
    x[3], y[5] = 3e38, -3e38
    assert wasserstein_distance(x, y) == by_sorting(x.astype(float), y, None, None)


@given(
    st.lists(st.floats(0, 1, exclude_min=True), min_size=1, max_size=30),
    st.integers(0, 2**16),
)
def test_sums_of_floats_are_exact(weights, seed):
    """Over the whole range of exponents, in units of the least last place."""
    raw = np.array(weights)
    group = np.random.default_rng(seed).integers(0, 3, len(raw))
    masses = MeantMasses(len(raw), raw)
    sums = masses.sums(group, 3)
    unit = Fraction(raw.max()) / int(masses.of(np.array([raw.argmax()]))[0])
    for k in range(3):
        expected = sum((Fraction(w) for w in raw[group == k]), Fraction(0))
        assert int(sums[k]) * unit == expected
