"""What every noise family promises, whatever its formulas."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from skpuffer.accountants import GroupPrivacy, scale_for, scale_for_delta
from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise, Shift, ShiftCurve
from skpuffer.privacy._written import from_plain
from skpuffer.scenarios import RecordScenario

from ._attack import Draw, assert_tight
from ._cases import query
from ._quadrature import hockey_stick_by_quadrature, renyi_by_quadrature
from ._suite import Check, Suite, at_most, close, raises, run_all

# Ends of ranges, to be tried on a scale of logarithms.
ORDERS = 1.001, 1e3
RADII = 1e-4, 50.0
SCALES = 1e-3, 1e3
BUDGETS = 1e-4, 20.0
DELTAS = 1e-10, 0.9


def some(*ranges: tuple[float, float], n: int = 25) -> Iterator[tuple[float, ...]]:
    """Numbers from each of some ranges, the same at every call."""
    rng = np.random.default_rng(0)
    logs: Any = np.log(np.transpose(ranges))
    for drawn in rng.uniform(logs[0], logs[1], size=(n, len(ranges))):
        yield tuple(np.exp(drawn).tolist())


def _global_state() -> Any:
    state: Any = np.random.get_state()  # noqa: NPY002
    return state[1].copy()


class NoiseSuite(Suite):
    """Checks of one family; `unit` is its distribution at scale one."""

    noise: Noise
    #: Frozen SciPy distribution of one coordinate at scale one.
    unit: Any
    #: Whether a finite shift has a finite pure-epsilon cost.
    pure = True
    #: Norms of a shift in two dimensions whose worst displacement attains the cost.
    attained_norms: Sequence[float] = ()
    #: At what the costs are compared with integrals.
    orders: Sequence[float] = (1.1, 2.0, 4.5, 16.0)
    shifts: Sequence[float] = (0.05, 1.0, 3.0)
    #: Norms and weights of a shift, and scales, that are tried in two dimensions.
    norms: Sequence[float] = (1, 1.5, 2, 3, math.inf)
    weights: Sequence[Any] = (None, (0.5, 2.0))
    scales: Sequence[Any] = (0.7, (1.0, 3.0))

    def make(self, scale: Any = 1.0) -> Any:
        """Noise of the family at a scale."""
        return self.noise.with_scale(scale)

    def values(self) -> dict[str, Sequence[Any]]:
        """Return what the parameters of checks stand for, by name."""
        return {"norm": self.norms}

    # -- the cost of a shift -----------------------------------------------------------

    def check_cost_increases_with_order(self) -> None:
        for alpha, other, z, scale in some(ORDERS, ORDERS, RADII, SCALES):
            low, high = sorted((alpha, other))
            noise = self.make(scale)
            assert at_most(noise.renyi(low, z), noise.renyi(high, z))
            assert at_most(noise.renyi(high, z), noise.pure_epsilon(z))

    def check_cost_increases_with_shift(self) -> None:
        for alpha, z, other, scale in some(ORDERS, RADII, RADII, SCALES):
            low, high = sorted((z, 1.01 * other))
            noise = self.make(scale)
            if high > low * 1.001:
                assert 0 < noise.renyi(alpha, low) < noise.renyi(alpha, high)
            assert noise.pure_epsilon(low) < math.inf or not self.pure

    def check_moment_generating_function_is_log_convex(self) -> None:
        for alpha, other, z in some(ORDERS, ORDERS, RADII):
            low, middle, high = (
                (order - 1) * self.make().renyi(order, z)
                for order in (alpha, (alpha + other) / 2, other)
            )
            assert at_most(middle, (low + high) / 2, 1e-9)

    def check_zero_shift_costs_nothing(self) -> None:
        shifts = 0.0, Shift(0.0, 2, 2), Shift(0.0, dim=None)
        for scale, shift in product([0.0, 0.3, (1.0, 2.0), (0.0, 1.0)], shifts):
            noise = self.make(scale)
            assert not np.any(noise.renyi(np.array([2, np.inf]), shift))
            assert not np.any(noise.delta(np.array([0.0, 1.0]), shift))
            assert not np.any(noise.epsilon(np.array([0, 0.1]), shift))
            assert close(noise.delta(-1.0, shift), 1 - math.exp(-1))

    def check_zero_scale_costs_everything(self) -> None:
        noise = self.make(0.0)
        assert noise.is_zero and not self.make(1.0).is_zero
        assert noise.renyi(2, 1e-300) == math.inf
        assert noise.pure_epsilon(Shift(1.0, noise.norm, dim=None)) == math.inf
        assert noise.delta(100.0, 1.0) == 1.0
        assert noise.epsilon(0.1, 1.0) == math.inf
        assert not np.any(noise.sample(3, 0))

    def check_only_the_shift_over_the_scale_matters(self) -> None:
        unit = self.make(1.0)
        for alpha, z, scale, power in some(ORDERS, RADII, SCALES, (1.0, 1e4)):
            wide, epsilon = self.make(scale), math.log(power) - 5
            assert close(wide.renyi(alpha, scale * z), unit.renyi(alpha, z), 1e-9)
            ours, theirs = wide.delta(epsilon, scale * z), unit.delta(epsilon, z)
            assert close(ours, theirs)

    def check_cost_is_the_divergence_of_the_densities(self) -> None:
        for alpha, z in product(self.orders, self.shifts):
            expected = renyi_by_quadrature(self.unit.logpdf, alpha, z)
            cost = self.make().renyi(alpha, z)
            assert close(cost, expected, 1e-8, 1e-10), (
                f"the Rényi divergence of order {alpha} at a shift of {z} is "
                f"{expected:.9g}, and the noise says {cost:.9g}"
            )

    def check_arrays_of_orders_and_of_shifts(self) -> None:
        noise = self.make(1.5)
        alphas, shifts = np.array([1.5, 2, 8, np.inf]), np.array([0.0, 0.5, 2.0])
        grid = noise.renyi(alphas[:, None], shifts)
        for i, alpha in enumerate(alphas):
            assert noise.renyi(alphas, 0.7)[i] == noise.renyi(alpha, 0.7)
            assert grid[i].tolist() == [noise.renyi(alpha, z) for z in shifts]
        for i, z in enumerate(shifts):
            assert noise.renyi(3, shifts)[i] == noise.renyi(3, z)
            assert noise.epsilon(0.01, shifts)[i] == noise.epsilon(0.01, z)
        both = noise.delta(np.array([-1.0, 0.2]), 0.7)
        assert both.tolist() == [noise.delta(-1.0, 0.7), noise.delta(0.2, 0.7)]
        for one in (noise.renyi(2, 1), noise.delta(1, 1), noise.epsilon(0.1, 1)):
            assert type(one) is float
        assert noise.renyi(np.array([]), 1.0).shape == (0,)

    # -- the hockey-stick divergence ---------------------------------------------------

    def check_delta_is_the_divergence_of_the_densities(self) -> None:
        epsilons = -4.0, -1.5, -0.3, 0.0, 0.4, 1.2, 2.5
        for epsilon, z in product(epsilons, [0.1, 1.0, 3.0]):
            expected = hockey_stick_by_quadrature(self.unit.logpdf, epsilon, z)
            delta = self.make().delta(epsilon, z)
            assert close(delta, expected, 1e-8, 1e-11), (
                f"the hockey-stick divergence at epsilon {epsilon} and a shift of {z} "
                f"is {expected:.9g}, and the noise says {delta:.9g}"
            )

    def check_delta_falls_with_epsilon_and_grows_with_shift(self) -> None:
        noise, powers = self.make(), (1.0, math.exp(20))
        for *drawn, z, further in some(powers, powers, RADII, RADII):
            low, high = sorted(math.log(power) - 10 for power in drawn)
            near, far = sorted((z, further))
            assert noise.delta(high, near) <= noise.delta(low, near) + 1e-15
            assert noise.delta(low, near) <= noise.delta(low, far) + 1e-14

    def check_delta_of_symmetric_noise_is_symmetric(self) -> None:
        noise = self.make()
        for epsilon, z in some((1e-3, 10.0), RADII):
            image = -math.expm1(-epsilon) + math.exp(-epsilon) * noise.delta(epsilon, z)
            assert close(noise.delta(-epsilon, z), image, 1e-9, 1e-13)

    def check_delta_is_below_what_each_order_implies(self) -> None:
        noise = self.make()
        for alpha, z, epsilon in some(ORDERS, RADII, (1e-3, 30.0)):
            log_delta = (alpha - 1) * (
                noise.renyi(alpha, z) - epsilon + math.log1p(-1 / alpha)
            ) - math.log(alpha)
            assert noise.delta(epsilon, z) <= math.exp(min(log_delta, 0.0)) + 1e-14

    def check_epsilon_inverts_delta(self) -> None:
        noise = self.make()
        for delta, z in some(DELTAS, RADII):
            epsilon = noise.epsilon(delta, z)
            assert epsilon >= 0
            assert noise.delta(epsilon, z) <= delta
            if epsilon > 1e-3:
                assert noise.delta(epsilon * (1 - 1e-6), z) > delta

    def check_delta_zero_asks_for_pure_epsilon(self) -> None:
        noise = self.make()
        assert noise.epsilon(0, 0.7) == noise.pure_epsilon(0.7)
        both = noise.epsilon(np.array([0.0, 0.1]), 0.7)
        assert both[0] == noise.pure_epsilon(0.7)
        assert both[1] == noise.epsilon(0.1, 0.7)

    # -- calibration -------------------------------------------------------------------

    def check_scale_for_inverts_renyi(self) -> None:
        noise = self.make(7.0)
        for alpha, epsilon, z in some(ORDERS, BUDGETS, RADII):
            scale = scale_for(noise, alpha, epsilon, z)
            assert type(scale) is float
            cost = noise.with_scale(scale).renyi(alpha, z)
            assert epsilon * (1 - 1e-6) <= cost <= epsilon

    def check_scale_for_pure_epsilon(self) -> None:
        noise = self.make()
        for epsilon, z in some(BUDGETS, RADII):
            if self.pure:
                scale = scale_for(noise, math.inf, epsilon, z)
                cost = noise.with_scale(scale).pure_epsilon(z)
                assert epsilon * (1 - 1e-6) <= cost <= epsilon
                assert scale == scale_for_delta(noise, epsilon, 0, z)
                continue
            with raises(ValueError, "LaplaceNoise"):
                scale_for(noise, math.inf, epsilon, z)
            with raises(ValueError, "LaplaceNoise"):
                scale_for_delta(noise, epsilon, 0, z)

    def check_scale_for_delta_inverts_delta(self) -> None:
        noise = self.make()
        for epsilon, delta, z in some(BUDGETS, DELTAS, RADII):
            scale = scale_for_delta(noise, epsilon, delta, z)
            assert noise.with_scale(scale).delta(epsilon, z) <= delta
            assert noise.with_scale(scale * (1 - 1e-6)).delta(epsilon, z) > delta

    def check_calibration_keeps_the_proportions(self) -> None:
        proportions = np.array([1.0, 2.0, 5.0])
        noise = self.make(proportions)
        for shift in (1.3, Shift(2.0, norm=1, dim=3)):
            scales = (
                scale_for(noise, 4, 0.5, shift),
                scale_for_delta(noise, 1, 0.01, shift),
            )
            for scale in map(np.asarray, scales):
                assert np.allclose(scale / scale[0], proportions, rtol=1e-12, atol=0)
            by_order, by_delta = map(noise.with_scale, scales)
            assert 1 - 1e-6 <= by_order.renyi(4, shift) / 0.5 <= 1
            assert 1 - 1e-6 <= by_delta.delta(1, shift) / 0.01 <= 1

    def check_nothing_to_hide_needs_no_noise(self) -> None:
        assert scale_for(self.make(), 2, 0.5, 0.0) == 0.0
        assert scale_for_delta(self.make(), 0.5, 0.1, Shift(0.0, dim=None)) == 0.0
        assert not np.any(scale_for(self.make((1, 2)), 2, 0.5, 0.0))

    # -- many coordinates --------------------------------------------------------------

    def check_no_displacement_costs_more(self, norm: float) -> None:
        angles = np.linspace(0, np.pi / 2, 801)  # the rest by symmetry
        ray = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ray /= np.linalg.norm(ray, ord=norm, axis=1, keepdims=True)
        for weights, scale, alpha in product(self.weights, self.scales, (1.2, 2, 10)):
            shift = Shift(1.2, norm=norm, dim=2, weights=weights)
            moved = 1.2 * ray * (1.0 if weights is None else np.array(weights))
            # independent coordinates: the costs of one displacement add up
            costs: Any = sum(
                self.make(s).renyi(alpha, moved[:, j])
                for j, s in enumerate(np.broadcast_to(scale, 2))
            )
            try:
                cost = self.make(scale).renyi(alpha, shift)
            except UnsupportedError:
                assert norm not in self.attained_norms
                continue
            assert at_most(costs.max(), cost), (
                f"a move of norm {norm} costs {costs.max():.9g} at order {alpha}, and "
                f"the noise says {cost:.9g}"
            )
            if norm in self.attained_norms:
                assert costs.max() >= cost * (1 - 1e-5)

    def check_one_coordinate_may_be_the_one_with_least_noise(self) -> None:
        noise, least = self.make((4.0, 0.5, 1.0)), self.make(0.5)
        assert noise.renyi(3, 0.7) == least.renyi(3, 0.7)
        scalar = Shift(0.7, norm=math.inf, dim=3, structure="scalar")
        assert noise.renyi(3, scalar) == least.renyi(3, 0.7)
        shifts = np.array([0.7, 0.2])
        assert np.array_equal(noise.renyi(3, shifts), least.renyi(3, shifts))

    def check_dimensions_must_agree(self) -> None:
        with raises(ValueError, code="noise.shift_dimension_mismatch"):
            self.make((1, 2, 3)).renyi(2, Shift(1.0, dim=2))

    # -- the noise itself --------------------------------------------------------------

    def check_sample_follows_the_distribution(self) -> None:
        scale = 2.5
        draws = self.make(scale).sample(50_000, np.random.default_rng(0))
        found = stats.kstest(draws, lambda x: self.unit.cdf(x / scale))
        assert found.pvalue > 0.01, f"draws are off the distribution: {found}"
        # the test can tell a scale that is off by a twentieth
        wrong = stats.kstest(draws, lambda x: self.unit.cdf(x / scale / 1.05))
        assert wrong.pvalue < 0.01

    def check_moments(self) -> None:
        noise, variance = self.make((1.0, 3.0)), self.unit.var()
        if not math.isfinite(variance):
            assert not np.any(np.isfinite(noise.variance()))
            return
        expected = variance * np.array([1.0, 9.0])
        assert np.allclose(noise.variance(), expected)
        assert np.allclose(noise.std() ** 2, expected)
        assert close(self.make(3.0).variance(), 9 * variance)
        assert np.allclose(self.make(3.0).variance(4), np.full(4, 9 * variance))
        assert np.allclose(noise.std(2), noise.std())
        draws = noise.sample((40_000, 2), np.random.default_rng(1))
        error = np.sqrt(expected / len(draws))
        assert np.all(np.abs(draws.mean(axis=0)) < 4 * error)
        assert np.allclose(draws.var(axis=0), expected, rtol=0.05)
        assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / math.sqrt(len(draws))

    def check_sample_shapes(self) -> None:
        shape: Any
        for shape in ((5,), (2, 0, 4), ()):
            assert self.make().sample(shape, 0).shape == shape
        assert self.make().sample(5, 0).shape == (5,)
        assert self.make((1, 2)).sample(2, 0).shape == (2,)
        assert self.make((1, 2)).sample((7, 2), 0).shape == (7, 2)
        for shape in (5, (2, 5), ()):
            with raises(ValueError, code="noise.sample_shape_mismatch"):
                self.make((1, 2)).sample(shape, 0)
        with raises(ValueError, "shape"):
            self.make().sample(-1, 0)

    def check_sample_is_reproducible_and_leaves_the_global_state_alone(self) -> None:
        noise = self.make(2.0)
        first = noise.sample((3, 4), np.random.default_rng(7))
        assert np.array_equal(first, noise.sample((3, 4), 7))
        generator = np.random.default_rng(7)
        assert np.array_equal(first, noise.sample((3, 4), generator))
        assert not np.array_equal(first, noise.sample((3, 4), generator))
        kept: Any = np.random.get_state()  # noqa: NPY002
        try:
            draws: list[Any] = []
            for _ in range(2):
                np.random.seed(0)  # noqa: NPY002
                before = _global_state()
                draws.append(noise.sample(4, None))
                assert np.array_equal(before, _global_state())
            assert not np.array_equal(draws[0], draws[1])
        finally:
            np.random.set_state(kept)  # noqa: NPY002

    def check_no_attacker_beats_delta_but_with_less_noise(self) -> None:
        noise = self.make(1.5)
        for z in (0.75, 2.25):

            def worlds(noise: Noise, z: float = z) -> list[Draw]:
                return [lambda n, rng: z + noise.sample(n, rng), noise.sample]

            promised = GroupPrivacy(delta=1e-3, noise=noise)
            certificate = promised.certify(noise, query(z), RecordScenario())
            assert_tight(certificate, noise, worlds, seed=3, n_draws=40_000)

    # -- plain data --------------------------------------------------------------------

    def check_it_is_plain_data(self) -> None:
        for scale in (2.0, (1.0, 2.0)):
            noise = self.make(scale)
            same = self.make(np.asarray(scale))
            assert noise == same and hash(noise) == hash(same)
            assert noise != self.make(np.asarray(scale) * 2)
            assert noise != "noise"
            for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
                assert twin == noise and hash(twin) == hash(noise)
                assert np.array_equal(twin.sample(2, 0), noise.sample(2, 0))
            assert noise.with_scale(3) == self.make(3.0)
            assert noise.scale == scale and noise.dim == (2 if np.ndim(scale) else None)
            told = json.loads(json.dumps(noise.to_dict(), allow_nan=False))
            assert told["family"] == type(noise).family
            assert np.array_equal(told["scale"], scale)
            assert from_plain(told) == noise
            try:
                noise.scale = 1.0
            except AttributeError:
                continue
            raise AssertionError(
                "the scale can be changed: write @dataclass(frozen=True)"
            )

    def check_accountants_take_its_name(self) -> None:
        noise = self.make()
        if noise.by_name and not hasattr(noise, "beta"):
            named = GroupPrivacy(noise=noise.family)._chosen_noise()
            assert type(named) is type(noise) and named.scale == 1.0

    def check_a_scale_given_as_an_array_is_copied(self) -> None:
        array = np.array([1.0, 2.0])
        noise = self.make(array)
        array[0] = 9.0
        assert noise.scale == (1.0, 2.0)

    def check_curve_speaks_for_noise_and_shift(self) -> None:
        noise, shift = self.make(2.0), Shift(1.0, norm=1, dim=3)
        curve = noise.curve(shift)
        assert curve == ShiftCurve(noise, shift)
        assert hash(curve) == hash(pickle.loads(pickle.dumps(curve)))
        alphas = np.array([2.0, 5.0])
        assert np.array_equal(curve.renyi(alphas), noise.renyi(alphas, shift))
        assert curve.renyi_costs((2.0, 5.0)) == [curve.renyi(a) for a in alphas]
        assert curve.delta(0.3) == noise.delta(0.3, shift)
        assert curve.epsilon(0.01) == noise.epsilon(0.01, shift)
        assert noise.curve(0.4).renyi(3) == noise.renyi(3, 0.4)
        told = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
        assert told["noise"] == noise.to_dict() and told["shift"] == shift.to_dict()
        assert from_plain(told) == curve

    # -- bad input ---------------------------------------------------------------------

    def check_bad_input_is_refused(self) -> None:
        scale: Any
        for scale in (-1.0, math.nan, math.inf, [], [[1.0]], [1, -1]):
            with raises(ValueError, "scale"):
                self.make(scale)
        for scale in ("1", True, None, [1, "a"], [True]):
            with raises(TypeError, "scale"):
                self.make(scale)
        for alpha in (1.0, 0.5, -2.0, math.nan, np.array([2.0, 1.0])):
            with raises(ValueError, "alpha"):
                self.make().renyi(alpha, 1.0)
            with raises((ValueError, TypeError), "alpha"):
                scale_for(self.make(), alpha, 1.0, 1.0)  # type: ignore[arg-type]
        for shift in (-1.0, math.nan, np.array([1.0, -1.0])):
            with raises(ValueError, "shift"):
                self.make().renyi(2, shift)


def noise_checks(
    noise: Noise, distribution: Any, attained_norms: Sequence[float] = ()
) -> list[Check]:
    """Return the checks of a noise family, by name.

    Parameters
    ----------
    noise : Noise
        Noise of the family, at any scale, with independent coordinates.
    distribution : frozen SciPy distribution
        The distribution of one coordinate at scale one, with `logpdf`, `cdf` and `var`.
    attained_norms : sequence of float, default=()
        Norms of a shift in the plane whose worst displacement attains the cost.

    Returns
    -------
    checks : list of (str, callable)
        Names, and functions without arguments that raise an AssertionError.
    """
    suite = NoiseSuite()
    suite.noise, suite.unit = noise, distribution
    suite.pure, suite.attained_norms = noise.has_bounded_loss, attained_norms
    return suite.checks()


def check_noise(
    noise: Noise, distribution: Any, attained_norms: Sequence[float] = ()
) -> None:
    """Raise an AssertionError unless a noise draws and costs what it says.

    Parameters
    ----------
    noise : Noise
    distribution : frozen SciPy distribution
    attained_norms : sequence of float, default=()
        As of :func:`noise_checks`.

    Examples
    --------
    >>> from scipy import stats
    >>> from skpuffer.noise import LaplaceNoise
    >>> from skpuffer.testing import check_noise
    >>> check_noise(LaplaceNoise(), stats.laplace(), attained_norms=(1,))
    """
    run_all(noise_checks(noise, distribution, attained_norms))
