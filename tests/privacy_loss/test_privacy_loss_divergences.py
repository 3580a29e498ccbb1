"""Divergences between finite laws and between Gaussians."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from skpuffer.privacy_loss import (
    gaussian_renyi_divergence,
    hockey_stick_divergence,
    renyi_divergence,
)
from tests.refused import refused

masses = hnp.arrays(int, 5, elements=st.integers(0, 20)).filter(lambda a: a.sum() > 0)
full = hnp.arrays(int, 5, elements=st.integers(1, 20))


@given(masses, full)
def test_orders_and_limits(p, q):
    values = [renyi_divergence(p, q, a) for a in (1, 1.5, 2, 8, 300, math.inf)]
    assert all(a <= b + 1e-12 for a, b in zip(values, values[1:], strict=False))
    assert renyi_divergence(p, q, 1 + 1e-6) == pytest.approx(values[0], abs=1e-4)
    assert renyi_divergence(q, q, 3) == pytest.approx(0, abs=1e-12)
    ratios = (p / p.sum())[p > 0] / (q / q.sum())[p > 0]
    assert values[-1] == pytest.approx(max(0.0, math.log(ratios.max())), abs=1e-12)


@given(masses, full, st.floats(-3, 3))
def test_hockey_stick_is_the_best_event(p, q, epsilon):
    found = hockey_stick_divergence(p, q, epsilon)
    a, b = p / p.sum(), q / q.sum()
    events = ((np.arange(32)[:, None] >> np.arange(5)) & 1).astype(bool)
    best = max((a * e).sum() - math.exp(epsilon) * (b * e).sum() for e in events)
    assert found == pytest.approx(max(0.0, best), abs=1e-12)


def test_hockey_stick_far_out():
    assert hockey_stick_divergence([1, 1], [1, 3], 900.0) == 0.0
    assert hockey_stick_divergence([1, 1], [0, 1], 900.0) == 0.5
    assert hockey_stick_divergence([1, 1], [0, 1], math.inf) == 0.5


def test_mass_where_there_is_none():
    assert renyi_divergence([0.5, 0.5], [1.0, 0.0], 2) == math.inf
    assert renyi_divergence([1.0, 0.0], [0.5, 0.5], 2) == pytest.approx(math.log(2))


@pytest.mark.parametrize("alpha", [1.3, 2.0, 3.0])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.8, 1.1), (1.2, 1.1)])
def test_gaussian_closed_form(alpha, scales):
    p, q = stats.norm(0.7, scales[0]), stats.norm(-0.2, scales[1])

    def integrand(x):
        return math.exp(alpha * p.logpdf(x) + (1 - alpha) * q.logpdf(x))

    expected = math.log(integrate.quad(integrand, -30, 30, points=[0, 3])[0])
    value = gaussian_renyi_divergence(0.7, scales[0] ** 2, -0.2, scales[1] ** 2, alpha)
    assert value == pytest.approx(expected / (alpha - 1), rel=1e-8)


def test_gaussian_divergence_without_end():
    assert gaussian_renyi_divergence(0, 4.0, 0, 1.0, 2) == math.inf


@pytest.mark.parametrize("alpha", [0.5, math.nan])
def test_bad_order(alpha):
    with refused(ValueError, ("curve.order_below_one", "parameter.is_nan")):
        renyi_divergence([1, 1], [1, 1], alpha)
    with refused(ValueError, ("curve.gaussian_order_out_of_range", "parameter.is_nan")):
        gaussian_renyi_divergence(0, 1, 0, 1, alpha)


def test_gaussian_divergence_of_order_infinity():
    with refused(ValueError, "curve.gaussian_order_out_of_range"):
        gaussian_renyi_divergence(0, 1, 0, 1, math.inf)


def test_bad_masses():
    with refused(ValueError, "curve.masses_shape_mismatch"):
        renyi_divergence([0.5, 0.5], [1.0], 2)
    with refused(ValueError, "parameter.masses_not_sum_one", name="p"):
        hockey_stick_divergence([0.5, 0.6], [0.5, 0.5], 1)
    for p, q in (([], []), ([[1.0]], [[1.0]]), (1.0, 1.0)):
        for divergence in (renyi_divergence, hockey_stick_divergence):
            with refused(ValueError, "curve.masses_shape_mismatch"):
                divergence(p, q, 2)
    with refused(ValueError, "parameter.is_nan", name="epsilon"):
        hockey_stick_divergence([0.5, 0.5], [0.5, 0.5], math.nan)
    for alpha in (math.nan, 0.99):
        with refused(ValueError, ("curve.order_below_one", "parameter.is_nan")):
            renyi_divergence([0.5, 0.5], [0.5, 0.5], alpha)
