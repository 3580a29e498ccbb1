"""What every noise family promises, whatever its formulas.

A family's test class inherits `NoiseContract`, names the family and the law of one
coordinate of unit noise as SciPy knows it, and gets the whole suite.
"""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from skpuffer.exceptions import InfiniteDistanceError
from skpuffer.kernel.plain import from_plain
from skpuffer.noise import Noise, Shift, ShiftCurve
from tests.refused import refused

from ..attack import assert_tight, promise_of
from .quadrature import hockey_stick_by_quadrature, renyi_by_quadrature

examples = settings(
    # the same property runs for every family, which is the point
    suppress_health_check=[HealthCheck.differing_executors],
)

orders = st.floats(1.001, 1e3)
radii = st.floats(1e-4, 50.0)
scales = st.floats(1e-3, 1e3)
budgets = st.floats(1e-4, 20.0)
deltas = st.floats(1e-10, 0.9)


def at_most(value, bound, slack=1e-12):
    return value <= bound * (1 + slack)


class NoiseContract:
    """Inherit, and set `family` and `unit`; the rest has defaults."""

    #: The class under test, constructed by `make`.
    family: type[Noise]
    #: Frozen SciPy law of one coordinate at scale one.
    unit = None
    #: Whether a finite shift has a finite pure-epsilon cost.
    pure = True
    #: Norms of a shift in two dimensions whose worst displacement attains the cost.
    attained_norms = ()

    def make(self, scale=1.0):
        return self.family(scale=scale)

    # -- the cost of a shift -----------------------------------------------------------

    @examples
    @given(orders, orders, radii, scales)
    def test_cost_increases_with_order(self, alpha, other, z, scale):
        low, high = sorted((alpha, other))
        noise = self.make(scale)
        assert at_most(noise.renyi(low, z), noise.renyi(high, z))
        assert at_most(noise.renyi(high, z), noise.pure_epsilon(z))

    @examples
    @given(orders, radii, radii, scales)
    def test_cost_increases_with_shift(self, alpha, z, other, scale):
        low, high = sorted((z, other))
        assume(high > low * 1.001)
        noise = self.make(scale)
        assert 0 < noise.renyi(alpha, low) < noise.renyi(alpha, high)
        assert noise.pure_epsilon(low) < math.inf or not self.pure

    @examples
    @given(orders, orders, radii)
    def test_moment_generating_function_is_log_convex(self, alpha, other, z):
        middle = (alpha + other) / 2

        def moment(order):
            return (order - 1) * self.make().renyi(order, z)

        assert at_most(moment(middle), (moment(alpha) + moment(other)) / 2, 1e-9)

    @pytest.mark.parametrize("scale", [0.0, 0.3, (1.0, 2.0), (0.0, 1.0)])
    @pytest.mark.parametrize("shift", [0.0, Shift(0.0, 2, 2), Shift(0.0, dim=None)])
    def test_zero_shift_costs_nothing(self, scale, shift):
        noise = self.make(scale)
        np.testing.assert_array_equal(noise.renyi(np.array([2, np.inf]), shift), 0.0)
        np.testing.assert_array_equal(noise.delta(np.array([0.0, 1.0]), shift), 0.0)
        np.testing.assert_array_equal(noise.epsilon(np.array([0, 0.1]), shift), 0.0)
        assert noise.delta(-1.0, shift) == pytest.approx(1 - math.exp(-1))

    def test_zero_scale_costs_everything(self):
        noise = self.make(0.0)
        assert noise.is_zero and not self.make(1.0).is_zero
        assert noise.renyi(2, 1e-300) == math.inf
        assert noise.pure_epsilon(Shift(1.0, noise.norm, dim=None)) == math.inf
        assert noise.delta(100.0, 1.0) == 1.0
        assert noise.epsilon(0.1, 1.0) == math.inf
        np.testing.assert_array_equal(noise.sample(3, 0), 0.0)

    @examples
    @given(orders, radii, scales, st.floats(-5, 5))
    def test_only_the_shift_over_the_scale_matters(self, alpha, z, scale, epsilon):
        wide, unit = self.make(scale), self.make(1.0)
        assert wide.renyi(alpha, scale * z) == pytest.approx(
            unit.renyi(alpha, z), rel=1e-9
        )
        assert wide.delta(epsilon, scale * z) == pytest.approx(
            unit.delta(epsilon, z), rel=1e-6, abs=1e-12
        )

    @pytest.mark.parametrize("alpha", [1.1, 2.0, 4.5, 16.0])
    @pytest.mark.parametrize("z", [0.05, 1.0, 3.0])
    def test_cost_is_the_divergence_of_the_densities(self, alpha, z):
        expected = renyi_by_quadrature(self.unit.logpdf, alpha, z)
        cost = self.make().renyi(alpha, z)
        assert cost == pytest.approx(expected, rel=1e-8, abs=1e-10)

    def test_arrays_of_orders_and_of_shifts(self):
        noise = self.make(1.5)
        alphas, shifts = np.array([1.5, 2, 8, np.inf]), np.array([0.0, 0.5, 2.0])
        np.testing.assert_array_equal(
            noise.renyi(alphas, 0.7), [noise.renyi(a, 0.7) for a in alphas]
        )
        np.testing.assert_array_equal(
            noise.renyi(3, shifts), [noise.renyi(3, z) for z in shifts]
        )
        np.testing.assert_array_equal(
            noise.renyi(alphas[:, None], shifts),
            [[noise.renyi(a, z) for z in shifts] for a in alphas],
        )
        np.testing.assert_array_equal(
            noise.delta(np.array([-1.0, 0.2]), 0.7),
            [noise.delta(-1.0, 0.7), noise.delta(0.2, 0.7)],
        )
        np.testing.assert_array_equal(
            noise.epsilon(0.01, shifts), [noise.epsilon(0.01, z) for z in shifts]
        )
        assert type(noise.renyi(2, 1)) is float
        assert type(noise.delta(1, 1)) is float
        assert type(noise.epsilon(0.1, 1)) is float
        assert noise.renyi(np.array([]), 1.0).shape == (0,)

    # -- the hockey-stick divergence ---------------------------------------------------

    @pytest.mark.parametrize("epsilon", [-4.0, -1.5, -0.3, 0.0, 0.4, 1.2, 2.5])
    @pytest.mark.parametrize("z", [0.1, 1.0, 3.0])
    def test_delta_is_the_divergence_of_the_densities(self, epsilon, z):
        expected = hockey_stick_by_quadrature(self.unit.logpdf, epsilon, z)
        assert self.make().delta(epsilon, z) == pytest.approx(
            expected, rel=1e-8, abs=1e-11
        )

    @examples
    @given(st.floats(-10, 10), st.floats(-10, 10), radii, radii)
    def test_delta_falls_with_epsilon_and_grows_with_shift(self, e, other, z, further):
        noise = self.make()
        low, high = sorted((e, other))
        near, far = sorted((z, further))
        assert noise.delta(high, near) <= noise.delta(low, near) + 1e-15
        assert noise.delta(low, near) <= noise.delta(low, far) + 1e-14

    @examples
    @given(st.floats(0, 10), radii)
    def test_delta_of_symmetric_noise_is_symmetric(self, epsilon, z):
        noise = self.make()
        image = -math.expm1(-epsilon) + math.exp(-epsilon) * noise.delta(epsilon, z)
        assert noise.delta(-epsilon, z) == pytest.approx(image, rel=1e-9, abs=1e-13)

    @examples
    @given(orders, radii, st.floats(0, 30))
    def test_delta_is_below_what_each_order_implies(self, alpha, z, epsilon):
        noise = self.make()
        log_delta = (alpha - 1) * (
            noise.renyi(alpha, z) - epsilon + math.log1p(-1 / alpha)
        ) - math.log(alpha)
        assert noise.delta(epsilon, z) <= math.exp(min(log_delta, 0.0)) + 1e-14

    @examples
    @given(deltas, radii)
    def test_epsilon_inverts_delta(self, delta, z):
        noise = self.make()
        epsilon = noise.epsilon(delta, z)
        assert epsilon >= 0
        assert noise.delta(epsilon, z) <= delta
        if epsilon > 1e-3:
            assert noise.delta(epsilon * (1 - 1e-6), z) > delta

    def test_delta_zero_asks_for_pure_epsilon(self):
        noise = self.make()
        assert noise.epsilon(0, 0.7) == noise.pure_epsilon(0.7)
        both = noise.epsilon(np.array([0.0, 0.1]), 0.7)
        assert both[0] == noise.pure_epsilon(0.7)
        assert both[1] == noise.epsilon(0.1, 0.7)

    # -- calibration -------------------------------------------------------------------

    @examples
    @given(orders, budgets, radii)
    def test_scale_for_inverts_renyi(self, alpha, epsilon, z):
        noise = self.make(7.0)
        scale = noise.scale_for(alpha, epsilon, z)
        assert type(scale) is float
        cost = noise.with_scale(scale).renyi(alpha, z)
        assert epsilon * (1 - 1e-6) <= cost <= epsilon

    @examples
    @given(budgets, radii)
    def test_scale_for_pure_epsilon(self, epsilon, z):
        noise = self.make()
        if self.pure:
            scale = noise.scale_for(math.inf, epsilon, z)
            cost = noise.with_scale(scale).pure_epsilon(z)
            assert epsilon * (1 - 1e-6) <= cost <= epsilon
            assert scale == noise.scale_for_delta(epsilon, 0, z)
        else:
            for call in (noise.scale_for, noise.scale_for_delta):
                args = (math.inf, epsilon) if call == noise.scale_for else (epsilon, 0)
                with pytest.raises(ValueError, match="LaplaceNoise"):
                    call(*args, z)

    @examples
    @given(budgets, deltas, radii)
    def test_scale_for_delta_inverts_delta(self, epsilon, delta, z):
        noise = self.make()
        scale = noise.scale_for_delta(epsilon, delta, z)
        assert noise.with_scale(scale).delta(epsilon, z) <= delta
        assert noise.with_scale(scale * (1 - 1e-6)).delta(epsilon, z) > delta

    @pytest.mark.parametrize("shift", [1.3, Shift(2.0, norm=1, dim=3)])
    def test_calibration_keeps_the_proportions(self, shift):
        proportions = np.array([1.0, 2.0, 5.0])
        noise = self.make(proportions)
        for scale, cost in (
            (noise.scale_for(4, 0.5, shift), lambda n: n.renyi(4, shift) / 0.5),
            (noise.scale_for_delta(1, 0.01, shift), lambda n: n.delta(1, shift) / 0.01),
        ):
            assert scale.shape == (3,)
            np.testing.assert_allclose(scale / scale[0], proportions, rtol=1e-12)
            assert 1 - 1e-6 <= cost(noise.with_scale(scale)) <= 1

    def test_nothing_to_hide_needs_no_noise(self):
        assert self.make().scale_for(2, 0.5, 0.0) == 0.0
        assert self.make().scale_for_delta(0.5, 0.1, Shift(0.0, dim=None)) == 0.0
        np.testing.assert_array_equal(self.make((1, 2)).scale_for(2, 0.5, 0.0), [0, 0])

    # -- many coordinates --------------------------------------------------------------

    @pytest.mark.parametrize("norm", [1, 1.5, 2, 3, math.inf])
    @pytest.mark.parametrize("weights", [None, (0.5, 2.0)])
    @pytest.mark.parametrize("scale", [0.7, (1.0, 3.0)])
    def test_no_displacement_costs_more(self, norm, weights, scale):
        shift = Shift(1.2, norm=norm, dim=2, weights=weights)
        angles = np.linspace(0, np.pi / 2, 401)  # the rest by symmetry
        ray = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ray /= np.linalg.norm(ray, ord=norm, axis=1, keepdims=True)
        moved = 1.2 * ray * (1.0 if weights is None else np.array(weights))
        for alpha in (1.2, 2, 10):
            # independent coordinates: the costs of one displacement add up
            costs = sum(
                self.make(s).renyi(alpha, moved[:, j])
                for j, s in enumerate(np.broadcast_to(scale, 2))
            )
            cost = self.make(scale).renyi(alpha, shift)
            assert at_most(costs.max(), cost)
            if norm in self.attained_norms:
                assert costs.max() >= cost * (1 - 1e-5)

    def test_one_coordinate_may_be_the_one_with_least_noise(self):
        noise, least = self.make((4.0, 0.5, 1.0)), self.make(0.5)
        assert noise.renyi(3, 0.7) == least.renyi(3, 0.7)
        scalar = Shift(0.7, norm=math.inf, dim=3, structure="scalar")
        assert noise.renyi(3, scalar) == least.renyi(3, 0.7)
        np.testing.assert_array_equal(
            noise.renyi(3, np.array([0.7, 0.2])), least.renyi(3, np.array([0.7, 0.2]))
        )

    def test_dimensions_must_agree(self):
        with refused(ValueError, "noise.shift_dimension_mismatch", dim=2, noise_dim=3):
            self.make((1, 2, 3)).renyi(2, Shift(1.0, dim=2))

    # -- the noise itself --------------------------------------------------------------

    def test_sample_follows_the_law(self):
        scale = 2.5
        draws = self.make(scale).sample(50_000, np.random.default_rng(0))
        assert stats.kstest(draws, lambda x: self.unit.cdf(x / scale)).pvalue > 0.01
        # the test can tell a scale that is off by a twentieth
        wrong = stats.kstest(draws, lambda x: self.unit.cdf(x / scale / 1.05))
        assert wrong.pvalue < 0.01

    def test_moments(self):
        noise, variance = self.make((1.0, 3.0)), self.unit.var()
        if not math.isfinite(variance):
            pytest.skip("the family has no variance")
        expected = variance * np.array([1.0, 9.0])
        np.testing.assert_allclose(noise.variance(), expected)
        np.testing.assert_allclose(noise.std() ** 2, expected)
        assert self.make(3.0).variance() == pytest.approx(9 * variance)
        np.testing.assert_allclose(self.make(3.0).variance(4), np.full(4, 9 * variance))
        np.testing.assert_allclose(noise.std(2), noise.std())
        draws = noise.sample((40_000, 2), np.random.default_rng(1))
        error = np.sqrt(expected / len(draws))
        assert np.all(np.abs(draws.mean(axis=0)) < 4 * error)
        np.testing.assert_allclose(draws.var(axis=0), expected, rtol=0.05)
        assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / math.sqrt(len(draws))

    def test_sample_shapes(self):
        assert self.make().sample(5, 0).shape == (5,)
        assert self.make().sample((2, 0, 4), 0).shape == (2, 0, 4)
        assert self.make().sample((), 0).shape == ()
        assert self.make((1, 2)).sample(2, 0).shape == (2,)
        assert self.make((1, 2)).sample((7, 2), 0).shape == (7, 2)
        for shape in (5, (2, 5), ()):
            with refused(ValueError, "noise.sample_shape_mismatch", dim=2):
                self.make((1, 2)).sample(shape, 0)
        with pytest.raises(ValueError, match="shape"):
            self.make().sample(-1, 0)

    def test_sample_is_reproducible_and_leaves_the_global_state_alone(self):
        noise = self.make(2.0)
        first = noise.sample((3, 4), np.random.default_rng(7))
        np.testing.assert_array_equal(first, noise.sample((3, 4), 7))
        generator = np.random.default_rng(7)
        np.testing.assert_array_equal(first, noise.sample((3, 4), generator))
        assert not np.array_equal(first, noise.sample((3, 4), generator))
        kept = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(0)  # noqa: NPY002
            before = np.random.get_state()[1].copy()  # noqa: NPY002
            one = noise.sample(4, None)
            np.testing.assert_array_equal(
                before,
                np.random.get_state()[1],  # noqa: NPY002
            )
            np.random.seed(0)  # noqa: NPY002
            assert not np.array_equal(one, noise.sample(4, None))
        finally:
            np.random.set_state(kept)  # noqa: NPY002

    @pytest.mark.parametrize("z", [0.75, 2.25])
    def test_no_attacker_beats_delta_but_with_less_noise(self, z):
        noise = self.make(1.5)
        assert_tight(
            promise_of(noise.curve(z)),
            noise,
            lambda noise: [
                lambda n, rng, at=at: at + noise.sample(n, rng) for at in (z, 0.0)
            ],
            seed=3,
            n_draws=40_000,
        )

    # -- plain data --------------------------------------------------------------------

    @pytest.mark.parametrize("scale", [2.0, (1.0, 2.0)])
    def test_is_plain_data(self, scale):
        noise = self.make(scale)
        same = self.make(np.asarray(scale))
        assert noise == same and hash(noise) == hash(same)
        assert noise != self.make(np.asarray(scale) * 2)
        assert noise != "noise"
        for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
            assert twin == noise and hash(twin) == hash(noise)
            np.testing.assert_array_equal(twin.sample(2, 0), noise.sample(2, 0))
        assert noise.with_scale(3) == self.make(3.0)
        assert noise.scale == scale and noise.dim == (2 if np.ndim(scale) else None)
        told = json.loads(json.dumps(noise.to_dict(), allow_nan=False))
        assert told["family"] == self.family.family
        np.testing.assert_array_equal(told["scale"], scale)
        assert from_plain(told) == noise
        with pytest.raises(AttributeError):
            noise.scale = 1.0

    def test_a_scale_given_as_an_array_is_copied(self):
        array = np.array([1.0, 2.0])
        noise = self.make(array)
        array[0] = 9.0
        assert noise.scale == (1.0, 2.0)

    def test_curve_speaks_for_noise_and_shift(self):
        noise, shift = self.make(2.0), Shift(1.0, norm=1, dim=3)
        curve = noise.curve(shift)
        assert curve == ShiftCurve(noise, shift)
        assert hash(curve) == hash(pickle.loads(pickle.dumps(curve)))
        alphas = np.array([2.0, 5.0])
        np.testing.assert_array_equal(curve.renyi(alphas), noise.renyi(alphas, shift))
        assert curve.delta(0.3) == noise.delta(0.3, shift)
        assert curve.epsilon(0.01) == noise.epsilon(0.01, shift)
        assert noise.curve(0.4).renyi(3) == noise.renyi(3, 0.4)
        told = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
        assert told["noise"] == noise.to_dict() and told["shift"] == shift.to_dict()
        assert from_plain(told) == curve

    # -- bad input ---------------------------------------------------------------------

    @pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf, [], [[1.0]], [1, -1]])
    def test_bad_scale(self, scale):
        with pytest.raises(ValueError, match="scale"):
            self.make(scale)

    @pytest.mark.parametrize("scale", ["1", True, None, [1, "a"], [True]])
    def test_scale_of_no_number(self, scale):
        with pytest.raises(TypeError, match="scale"):
            self.make(scale)

    @pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0, math.nan, np.array([2.0, 1.0])])
    def test_bad_order(self, alpha):
        with pytest.raises(ValueError, match="alpha"):
            self.make().renyi(alpha, 1.0)
        with pytest.raises((ValueError, TypeError), match="alpha"):
            self.make().scale_for(alpha, 1.0, 1.0)

    @pytest.mark.parametrize("shift", [-1.0, math.nan, np.array([1.0, -1.0])])
    def test_bad_shift(self, shift):
        with pytest.raises(ValueError, match="shift"):
            self.make().renyi(2, shift)
        with pytest.raises((ValueError, TypeError), match="shift"):
            self.make().scale_for(2, 1.0, shift)

    @pytest.mark.parametrize("delta", [-0.1, 1.0, 2.0, math.nan])
    def test_bad_delta(self, delta):
        with pytest.raises(ValueError, match="delta"):
            self.make().epsilon(delta, 1.0)
        with pytest.raises(ValueError, match="delta"):
            self.make().scale_for_delta(1.0, delta, 1.0)

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
    def test_bad_target(self, epsilon):
        with pytest.raises(ValueError, match="epsilon"):
            self.make().scale_for(2, epsilon, 1.0)
        with pytest.raises(ValueError, match="epsilon"):
            self.make().scale_for_delta(epsilon, 0.1, 1.0)
        with pytest.raises(ValueError, match="epsilon"):
            self.make().delta(math.nan, 1.0)

    @pytest.mark.parametrize("shift", [math.inf, Shift(math.inf, norm=2, dim=3)])
    def test_infinite_shift(self, shift):
        assert self.make().renyi(2, shift) == math.inf
        assert self.make().delta(3.0, shift) == 1.0
        with pytest.raises(InfiniteDistanceError, match="no finite scale"):
            self.make().scale_for(2, 1.0, shift)

    def test_proportions_of_zero_cannot_be_scaled(self):
        with pytest.raises(ValueError, match="proportions"):
            self.make((0.0, 1.0)).scale_for(2, 1.0, 1.0)
        assert self.make(0.0).scale_for(2, 1.0, 1.0) == self.make().scale_for(
            2, 1.0, 1.0
        )

    @pytest.mark.parametrize("dim", [0, -1, 1.5])
    def test_variance_of_no_number_of_coordinates(self, dim):
        with pytest.raises(ValueError, match="'dim' must"):
            self.make().variance(dim)

    def test_variance_of_another_dimension(self):
        with pytest.raises(ValueError, match="dim=3"):
            self.make((1, 2)).variance(3)
