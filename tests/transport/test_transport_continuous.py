"""Continuous laws on the line: bounds from above, and never from below."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skpuffer.transport import (
    continuous_near_radius,
    continuous_wasserstein,
    gaussian_near_radius,
    near_radius,
)
from tests.refused import refused

BOUNDED = [
    (stats.uniform(0, 1), stats.beta(2, 2)),
    (stats.beta(0.5, 0.5), stats.beta(3, 1)),
    (stats.truncnorm(-2, 2), stats.uniform(-1, 4)),
    (stats.triang(0.3), stats.powerlaw(2.5, loc=-1)),
]
UNBOUNDED = [
    (stats.norm(0, 1), stats.norm(1, 1.3)),
    (stats.norm(0, 1), stats.laplace(1, 1)),
    (stats.expon(), stats.gamma(2)),
    (stats.cauchy(), stats.t(3, loc=1)),
    (stats.expon(), stats.uniform()),
]


def gaps(u, v, n=200_000):
    levels = (np.arange(n) + 0.5) / n
    return np.abs(u.ppf(levels) - v.ppf(levels))


@pytest.mark.parametrize(
    "u, v, expected",
    [
        (stats.norm(0, 2), stats.norm(3, 2), 3),
        (stats.norm(loc=0, scale=2), stats.norm(3, scale=2), 3),
        (stats.norm(0, 2), stats.norm(0, 2.001), math.inf),
        (stats.expon(0, 2), stats.expon(-0.5, 2), 0.5),
        (stats.expon(0, 2), stats.expon(0, 3), math.inf),
        (stats.gamma(2, 0, 1), stats.gamma(a=2, loc=1), 1),
        (stats.uniform(0, 1), stats.uniform(2, 3), 4),
        (stats.uniform(0, 1), stats.uniform(-1, 3), 1),
        (stats.beta(2, 3), stats.beta(2, 3, loc=-1, scale=4), 2),
    ],
)
def test_location_and_scale_within_a_family(u, v, expected):
    assert continuous_wasserstein(u, v) == expected
    assert continuous_wasserstein(v, u) == expected
    assert continuous_wasserstein(u, u) == 0


@pytest.mark.parametrize("u, v", BOUNDED)
def test_bounds_from_above_and_closely(u, v):
    for rtol in (0.1, 1e-3, 1e-4):
        found = continuous_wasserstein(u, v, rtol=rtol)
        ends = [abs(a - b) for a, b in zip(u.support(), v.support(), strict=True)]
        pointwise = max(gaps(u, v).max(), *ends)
        assert pointwise <= found <= pointwise * (1 + 2 * rtol)
        assert continuous_wasserstein(v, u, rtol=rtol) == pytest.approx(
            found, rel=2 * rtol
        )


@pytest.mark.parametrize("u, v", UNBOUNDED)
def test_no_finite_bound_without_bounded_supports(u, v):
    assert continuous_wasserstein(u, v) == math.inf
    assert continuous_near_radius(u, v, 0) == math.inf


@pytest.mark.parametrize("u, v", BOUNDED + UNBOUNDED)
@pytest.mark.parametrize("delta", [1e-6, 0.05])
def test_radius_is_that_of_the_monotone_coupling(u, v, delta):
    found = continuous_near_radius(u, v, delta)
    between = gaps(u, v)
    left_out = np.mean(between > found)
    assert left_out <= delta
    if delta >= 0.01:
        expected = np.quantile(between, 1 - delta, method="inverted_cdf")
        assert expected * (1 - 1e-3) <= found <= expected * 1.01
        x, y = (law.ppf((np.arange(800) + 0.5) / 800) for law in (u, v))
        # what is between the atoms and the laws is in the tails: a mass of 1/400
        assert near_radius(x, y, delta + 0.005) <= found * 1.05


@settings(max_examples=20)
@given(st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_radius_falls_with_delta(delta, other):
    low, high = sorted((delta, other))
    for u, v in (BOUNDED[0], UNBOUNDED[1]):
        first, second = (continuous_near_radius(u, v, d) for d in (low, high))
        assert second <= first * (1 + 2e-3)


def test_agrees_with_gaussians():
    u, v = stats.norm(0, 1), stats.norm(1, 1.3)
    for delta in (1e-9, 1e-3, 0.3):
        exact = gaussian_near_radius(0, 1, 1, 1.69, delta, coupling="monotone")
        found = continuous_near_radius(u, v, delta, rtol=1e-4)
        assert exact <= found <= exact * (1 + 1e-3)
    assert continuous_near_radius(u, stats.norm(1, 1), 0.2) == 1


def test_triangle_inequality():
    laws = [law for pair in BOUNDED for law in pair]
    for u in laws[:4]:
        for v in laws[2:6]:
            direct = continuous_wasserstein(u, v)
            for w in laws[::3]:
                through = continuous_wasserstein(u, w) + continuous_wasserstein(w, v)
                assert direct <= through * (1 + 2e-3)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(u=stats.norm), TypeError, "transport.not_frozen_continuous"),
        (dict(v=stats.poisson(2)), TypeError, "transport.not_frozen_continuous"),
        (dict(v=[0, 1]), TypeError, "transport.not_frozen_continuous"),
        (dict(rtol=0), ValueError, "parameter.probability_out_of_range"),
        (dict(delta=1.0), ValueError, "parameter.share_out_of_range"),
        (dict(delta=-0.5), ValueError, "parameter.share_out_of_range"),
    ],
)
def test_errors_name_the_parameter(arguments, error, message):
    arguments = dict(u=stats.norm(), v=stats.norm(1), delta=0.1) | arguments
    with refused(error, message):
        continuous_near_radius(**arguments)


class Flat(stats.rv_continuous):
    """Uniform on [0, top], where the top is no shape."""

    def __init__(self, top=1.0, **others):
        super().__init__(**({"a": 0, "b": top, "name": "uniform"} | others))
        self.top = top

    def _updated_ctor_param(self):
        return super()._updated_ctor_param() | {"top": self.top}

    def _cdf(self, x):
        return x / self.top

    def _ppf(self, q):
        return q * self.top


def histogram(low, high, name=None):
    return stats.rv_histogram(([1, 3, 2], np.linspace(low, high, 4)), name=name)()


@pytest.mark.parametrize(
    "u, v, expected",
    [
        (histogram(0, 1), histogram(5, 6), 5),
        (histogram(0, 1, "norm"), histogram(5, 6, "norm"), 5),
        (histogram(0, 1, "rv_histogram"), histogram(5, 6, "rv_histogram"), 5),
        (histogram(0, 1), histogram(0, 3), 2),
        (Flat(1.0)(), Flat(9.0)(), 8),
        (Flat(1.0)(), stats.uniform(0, 9), 8),
    ],
)
def test_laws_of_one_class_without_shapes_are_no_family(u, v, expected):
    for a, b in ((u, v), (v, u)):
        assert expected <= continuous_wasserstein(a, b) <= expected * (1 + 2e-3)
        assert continuous_near_radius(a, b, 0.01) >= 0.95 * expected
    assert continuous_wasserstein(u, u) <= 2e-3 * u.support()[1]


def test_laws_that_location_and_scale_do_not_move():
    # the second parametrisation is one more thing that no shape says
    u, v = stats.levy_stable(1.5, 0.5), stats.levy_stable(1.5, 0.5)
    v.parameterization = "S0"
    assert u.dist._parse_args(*u.args) == v.dist._parse_args(*v.args)
    assert continuous_wasserstein(u, v) == math.inf
    assert continuous_wasserstein(stats.vonmises(2), stats.vonmises(2, 6)) == math.inf
