"""Discrete Laplace noise, against its series and against attackers."""

import copy
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.exceptions import InfiniteDistanceError, Statement
from skpuffer.kernel.laplace import LARGEST_SCALE
from skpuffer.noise import DiscreteLaplaceNoise, LaplaceNoise, Noise, Shift
from tests.refused import refused

from ..attack import assert_tight, promise_of
from .contract import at_most, examples

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_noise.json").read_text("utf-8")
)
orders = st.floats(1.001, 300)
scales = st.floats(0.2, 50)
shifts = st.integers(1, 40)
epsilons = st.floats(-5, 5)


def masses(scale, reach=4000):
    x = np.arange(-reach, reach + 1)
    t = math.exp(-1 / scale)
    return x, (1 - t) / (1 + t) * np.exp(-np.abs(x) / scale)


def losses(scale, z, reach=4000):
    """Loss of each integer, and its mass under the moved noise."""
    x, _ = masses(scale, reach)
    moved = masses(scale, reach)[1]
    return (np.abs(x + z) - np.abs(x)) / scale, moved


def hockey_stick(loss, mass, epsilon):
    return float(mass @ np.maximum(-np.expm1(epsilon - loss), 0.0))


@pytest.mark.parametrize(
    "row",
    [row for row in ORACLES["rows"] if row["family"] == "discrete_laplace"],
    ids=lambda row: f"{row['method']}-{row['args']}",
)
def test_reference_values(row):
    noise = DiscreteLaplaceNoise(**row["fields"])
    value = getattr(noise, row["method"])(
        **{k: float(v) for k, v in row["args"].items()}
    )
    assert value == pytest.approx(row["value"], rel=ORACLES["relative_tolerance"])


@examples
@given(orders, scales, shifts)
def test_cost_is_the_sum_of_its_series(alpha, scale, z):
    loss, mass = losses(scale, z)
    rest = alpha - 1
    largest = rest * z / scale
    total = math.log(mass @ np.exp(rest * loss - largest)) + largest
    cost = DiscreteLaplaceNoise(scale).renyi(alpha, z)
    assert cost == pytest.approx(total / rest, rel=1e-9, abs=1e-13 / rest)
    assert cost <= DiscreteLaplaceNoise(scale).pure_epsilon(z) == z / scale


@examples
@given(epsilons, scales, shifts)
def test_delta_is_the_sum_of_its_series(epsilon, scale, z):
    loss, mass = losses(scale, z)
    delta = DiscreteLaplaceNoise(scale).delta(epsilon, z)
    assert delta == pytest.approx(hockey_stick(loss, mass, epsilon), abs=1e-13)


@examples
@given(orders, orders, scales, shifts, shifts)
def test_costs_increase(alpha, other, scale, z, further):
    noise = DiscreteLaplaceNoise(scale)
    low, high = sorted((alpha, other))
    near, far = sorted((z, further))
    assert at_most(noise.renyi(low, near), noise.renyi(high, near), 1e-9)
    assert at_most(noise.renyi(low, near), noise.renyi(low, far), 1e-9)
    # smoother noise of the same scale costs less
    assert noise.renyi(low, near) >= LaplaceNoise(scale).renyi(low, near) * (1 - 1e-9)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 20.0])
def test_large_scales_tend_to_laplace_noise(alpha):
    discrete, smooth = DiscreteLaplaceNoise(1e5), LaplaceNoise(1e5)
    for z in (10**4, 10**5, 10**6):
        assert discrete.renyi(alpha, z) == pytest.approx(
            smooth.renyi(alpha, z), rel=1e-3
        )
    assert discrete.delta(0.3, 10**5) == pytest.approx(smooth.delta(0.3, 1e5), rel=1e-3)


@examples
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.3, 8), epsilons, orders)
def test_no_split_over_two_coordinates_costs_more(a, b, scale, epsilon, alpha):
    reach = 300
    first, second = losses(scale, a, reach), losses(scale, b, reach)
    loss = np.add.outer(first[0], second[0]).ravel()
    mass = np.multiply.outer(first[1], second[1]).ravel()
    noise = DiscreteLaplaceNoise(scale)
    shift = Shift(a + b, norm=1, dim=2)
    assert hockey_stick(loss, mass, epsilon) <= noise.delta(epsilon, shift) + 1e-10
    split = noise.renyi(alpha, a) + noise.renyi(alpha, b)
    assert split <= noise.renyi(alpha, shift) * (1 + 1e-9)


def test_signs_behind_the_argument():
    """Masses of the summed loss less those of one coordinate: + at neither end."""
    for a, b in ((1, 1), (2, 5), (4, 4)):
        for scale in (0.4, 2.0, 30.0):
            t, z = math.exp(-1 / scale), a + b
            one = [t**i * (1 - t) / (1 + t) for i in range(z + 1)]
            one[0], one[z] = 1 / (1 + t), t**z / (1 + t)
            sides = []
            for n in (a, b):
                side = [t**i * (1 - t) / (1 + t) for i in range(n + 1)]
                side[0], side[n] = 1 / (1 + t), t**n / (1 + t)
                sides.append(side)
            both = np.convolve(*sides)
            assert sum(one) == pytest.approx(1) and both.sum() == pytest.approx(1)
            assert both[0] < one[0] and both[-1] < one[-1]
            assert np.all(both[1:-1] >= np.array(one[1:-1]) * (1 - 1e-12))


def test_shifts_are_rounded_up_to_integers():
    noise = DiscreteLaplaceNoise(2.0)
    assert noise.renyi(3, 2.1) == noise.renyi(3, 3) > noise.renyi(3, 2)
    # but not those that exceed an integer by round-off
    assert noise.renyi(3, 0.1 + 0.2 + 2.7) == noise.renyi(3, 3)
    assert noise.renyi(3, 3.0000000001) == noise.renyi(3, 3)
    assert noise.renyi(3, 1e-12) == noise.renyi(3, 1)
    np.testing.assert_array_equal(
        noise.renyi(3, np.array([0.0, 0.5, 1.5])), noise.renyi(3, np.array([0, 1, 2]))
    )
    # an l2 ball in four coordinates holds four times one step
    l2 = Shift(2.0, norm=2, dim=4)
    assert noise.renyi(3, l2) == noise.renyi(3, 4)
    weighted = Shift(1.0, norm=1, dim=2, weights=(2.0, 3.0))
    assert noise.renyi(3, weighted) == noise.renyi(3, 3)
    with refused(ValueError, "noise.shift_norm_mismatch"):
        noise.renyi(3, Shift(2.0, norm=2, dim=None))


@pytest.mark.parametrize("whole", [1.0, 7.0, 1e9, 3e9 + 1, 2.0**50])
def test_a_whole_number_is_covered_by_itself_however_large(whole):
    noise = DiscreteLaplaceNoise(1.0)
    assert noise._magnitude(np.array([whole])) == [whole]
    assert noise._magnitude(np.array([whole + 0.75])) == [whole + 1]


@examples
@given(orders, st.floats(1e-3, 15), st.floats(0.1, 40))
def test_scale_for_inverts_renyi(alpha, epsilon, z):
    noise = DiscreteLaplaceNoise(7.0)
    scale = scale_for(noise, alpha, epsilon, z)
    assert type(scale) is float
    cost = noise.with_scale(scale).renyi(alpha, z)
    assert epsilon * (1 - 1e-6) <= cost <= epsilon


@examples
@given(st.floats(1e-3, 15), st.floats(1e-10, 0.9), st.floats(0.1, 40))
def test_scale_for_delta_inverts_delta(epsilon, delta, z):
    noise = DiscreteLaplaceNoise()
    scale = scale_for_delta(noise, epsilon, delta, z)
    assert noise.with_scale(scale).delta(epsilon, z) <= delta
    assert noise.with_scale(scale * (1 - 1e-6)).delta(epsilon, z) > delta
    found = noise.with_scale(scale).epsilon(delta, z)
    assert noise.with_scale(scale).delta(found, z) <= delta
    assert found <= epsilon * (1 + 1e-9)


@given(st.floats(0.1, 50), st.integers(1, 40))
def test_beyond_every_loss_nothing_is_left(scale, z):
    """And not next to nothing, of either sign: that is what a pure promise says."""
    assert DiscreteLaplaceNoise(scale).delta(z / scale, z) == 0


def test_pure_calibration():
    noise = DiscreteLaplaceNoise()
    assert scale_for(noise, math.inf, 0.5, 3) == 6.0
    assert scale_for_delta(noise, 0.5, 0, Shift(2.5, norm=1, dim=7)) == 6.0
    assert scale_for(noise, 2, 0.5, 0) == 0.0 == scale_for_delta(noise, 0.5, 0.1, 0)
    with pytest.raises(InfiniteDistanceError):
        scale_for(noise, 2, 0.5, math.inf)


def test_extremes():
    noise, still = DiscreteLaplaceNoise(2.0), DiscreteLaplaceNoise(0.0)
    assert noise.renyi(2, 0) == 0 == noise.delta(0.1, 0) == noise.epsilon(0.1, 0)
    assert noise.delta(-1.0, 0) == pytest.approx(1 - math.exp(-1))
    assert still.is_zero and still.renyi(2, 1) == math.inf
    assert still.renyi(2, 0) == 0 and still.delta(9.0, 1) == 1
    assert still.epsilon(0.1, 1) == math.inf and still.variance() == 0
    np.testing.assert_array_equal(still.sample((2, 3), 0), np.zeros((2, 3)))
    assert noise.renyi(2, math.inf) == math.inf and noise.delta(1, math.inf) == 1
    assert noise.renyi(1e15, 3) == pytest.approx(1.5)
    assert DiscreteLaplaceNoise(1e-3).renyi(2, 1) == pytest.approx(1000)
    assert DiscreteLaplaceNoise(1e-3).variance() == 0


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_sample_follows_the_law(scale):
    noise = DiscreteLaplaceNoise(scale)
    draws = noise.sample(50_000, np.random.default_rng(0))
    assert draws.dtype == float
    np.testing.assert_array_equal(draws, np.rint(draws))

    def p_value(supposed):
        x, mass = masses(supposed)
        edges = np.searchsorted(np.cumsum(mass), np.linspace(0, 1, 25)[1:-1])
        edges = np.unique(x[edges])
        bins = np.searchsorted(edges, draws)
        observed = np.bincount(bins, minlength=len(edges) + 1)
        expected = np.bincount(
            np.searchsorted(edges, x), weights=mass, minlength=len(edges) + 1
        )
        expected *= len(draws) / expected.sum()
        few = expected < 5
        observed = np.append(observed[~few], observed[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        some = expected > 0
        return stats.chisquare(
            observed[some], expected[some] * observed[some].sum() / expected[some].sum()
        ).pvalue

    assert p_value(scale) > 0.01
    assert p_value(scale * 1.05) < 0.01
    error = noise.std() / math.sqrt(len(draws))
    assert abs(draws.mean()) < 4 * error
    assert draws.var() == pytest.approx(noise.variance(), rel=0.05)
    x, mass = masses(scale)
    assert noise.variance() == pytest.approx(mass @ x**2, rel=1e-9)


@pytest.mark.parametrize("z, scale", [(1, 1.0), (3, 2.0)])
def test_no_attacker_beats_delta_but_with_less_noise(z, scale):
    noise = DiscreteLaplaceNoise(scale)
    assert_tight(
        promise_of(noise.curve(z)),
        noise,
        lambda noise: [
            lambda n, rng, at=at: at + noise.sample(n, rng) for at in (z, 0)
        ],
        seed=3,
        n_draws=30_000,
    )


def test_says_that_the_query_must_be_an_integer():
    assert DiscreteLaplaceNoise.integer and DiscreteLaplaceNoise(3.0).integer
    assert not Noise.integer and not LaplaceNoise(3.0).integer


def test_is_plain_data():
    noise = DiscreteLaplaceNoise(2)
    for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
        assert twin == noise and hash(twin) == hash(noise)
        np.testing.assert_array_equal(twin.sample(4, 7), noise.sample(4, 7))
    assert noise.to_dict() == {"family": "discrete_laplace", "scale": 2.0}
    assert (
        noise.dim is None and noise.unit_variance == DiscreteLaplaceNoise().variance()
    )
    curve = noise.curve(Shift(1.5, norm=1, dim=3))
    assert curve.renyi(2) == noise.renyi(2, 2) and curve.delta(0.1) == noise.delta(
        0.1, 2
    )
    assert curve.gaussian_mu is None
    epsilons = np.array([-1.0, 0.2, 3.0])
    np.testing.assert_array_equal(
        noise.delta(epsilons, 2), [noise.delta(e, 2) for e in epsilons]
    )
    assert noise.sample((2, 0, 4), 0).shape == (2, 0, 4)
    assert noise.sample((), 0).shape == ()


@pytest.mark.parametrize("scale", [(1.0, 2.0), [1.0]])
def test_one_scale_for_all_coordinates(scale):
    with refused(ValueError, "noise.discrete_laplace_several_scales"):
        DiscreteLaplaceNoise(scale)


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_bad_scale(scale):
    with refused(
        ValueError,
        ("noise.scale_not_finite", "parameter.is_nan", "parameter.is_negative"),
    ):
        DiscreteLaplaceNoise(scale)


@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda noise: noise.renyi(1.0, 1),
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
        (
            lambda noise: noise.renyi(2.0, -1),
            Statement("parameter.is_negative", name="shift"),
        ),
        (
            lambda noise: scale_for(noise, 2.0, 0.0, 1),
            Statement("parameter.not_positive", name="epsilon"),
        ),
        (
            lambda noise: scale_for_delta(noise, 1.0, 1.0, 1),
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        (
            lambda noise: scale_for_delta(noise, -1.0, 0.5, 1),
            Statement("parameter.not_positive", name="epsilon"),
        ),
    ],
)
def test_bad_input(call, said):
    with refused(ValueError, said.code, **said.parameters):
        call(DiscreteLaplaceNoise())


@pytest.mark.parametrize("scale", [2.0**33, 1e19, 1e25])
def test_scales_that_cannot_be_drawn(scale):
    noise = DiscreteLaplaceNoise(LARGEST_SCALE)
    for construct in (DiscreteLaplaceNoise, noise.with_scale):
        with refused(ValueError, "noise.discrete_laplace_scale_too_large"):
            construct(scale)
    # what constructs nothing
    smuggled = copy.copy(noise)
    object.__setattr__(smuggled, "scale", scale)
    with refused(ValueError, "noise.discrete_laplace_scale_too_large"):
        smuggled.sample(3, 0)


def test_the_largest_scale_is_drawn_to_the_unit():
    noise = DiscreteLaplaceNoise(LARGEST_SCALE)
    draws = noise.sample(100_000, np.random.default_rng(0))
    np.testing.assert_array_equal(draws, np.rint(draws))
    assert np.abs(draws).max() < 2**53 / 100
    law = stats.laplace(scale=LARGEST_SCALE)
    assert stats.kstest(draws, law.cdf).pvalue > 0.01
    # the low bits are as even as they come
    low = np.bincount(draws.astype(np.int64) % 8, minlength=8)
    assert stats.chisquare(low).pvalue > 0.01


def test_calibration_up_to_the_largest_scale():
    noise = DiscreteLaplaceNoise()
    # the search begins at scales that are refused, and ends below
    for scale, cost in (
        (scale_for(noise, 2, 1e-12, 1), lambda n: n.renyi(2, 1) / 1e-12),
        (scale_for_delta(noise, 1e-12, 1e-3, 1), lambda n: n.delta(1e-12, 1) / 1e-3),
        (scale_for(noise, 2, 0.01, 1e8), lambda n: n.renyi(2, 1e8) / 0.01),
    ):
        assert scale < LARGEST_SCALE
        assert 0.99 < cost(noise.with_scale(scale)) <= 1
    for call in (
        lambda: scale_for(noise, math.inf, 1e-10, 1),
        lambda: scale_for(noise, 2, 1e-25, 1),
        lambda: scale_for(noise, 2, 0.01, 1e11),
        lambda: scale_for_delta(noise, 1e-12, 1e-11, 1),
    ):
        with refused(ValueError, "noise.discrete_laplace_scale_too_large"):
            call()
