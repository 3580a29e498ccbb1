"""The last iterate of a noisy iteration: known values, optimality, truth, refusals."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import logsumexp

from skpuffer.exceptions import PrivacyWarning
from skpuffer.extensions.last_iterate._iteration import last_iterate_mu
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import (
    Certificate,
    Notion,
    allocate_shifts,
    gaussian_prior_shifts,
    iteration_cost,
)
from skpuffer.privacy_loss import gaussian_renyi_divergence
from tests.attack import assert_beaten, assert_tight, assert_within
from tests.refused import refused, warned

ORACLE = json.loads(
    (Path(__file__).parents[2] / "oracles" / "rpp_iteration.json").read_text("utf-8")
)


def joint(shifts, scales, alpha=2, **options):
    return iteration_cost(shifts, scales, alpha, coupling="joint", **options)


def every_iterate(shifts, scale, alpha=2):
    """What all iterates together cost: nothing is carried from step to step."""
    return sum(joint([shift], scale, alpha) for shift in shifts)


def left_over(shifts, allocated, contraction):
    """What each step carries to the next."""
    z = [0.0]
    for s, a in zip(shifts, allocated, strict=True):
        z.append(contraction * z[-1] + s - a)
    return np.array(z[1:])


# -- known values ----------------------------------------------------------------------


@pytest.mark.parametrize("case", ORACLE["allocations"])
def test_allocations(case):
    found = allocate_shifts(case["shifts"])
    np.testing.assert_allclose(found, case["value"], rtol=1e-12)


@pytest.mark.parametrize("step", [1, 50, 100])
def test_one_record_at_one_step(step):
    case = ORACLE["one_record"]
    eta = 0.3  # both the shift and the noise are that of a gradient times it
    shifts = np.zeros(case["n_steps"])
    shifts[step - 1] = eta * 2 * case["lipschitz"]
    found = joint(shifts, eta * case["scale"], case["alpha"])
    assert found == pytest.approx(case["costs"][str(step)], rel=1e-9)


@pytest.mark.parametrize("record", [1, 5, 10])
def test_series_with_fading_correlation(record):
    case = ORACLE["series"]
    t = np.arange(case["n_steps"])
    covariance = 4 * case["correlation"] ** np.abs(t[:, None] - t)
    shifts = gaussian_prior_shifts(
        covariance,
        case["gap"],
        step_size=case["step_size"],
        smoothness=case["smoothness"],
        lipschitz=case["lipschitz"],
    )[record - 1]
    key, near = str(record), {"rel": 1e-9}
    assert joint(shifts, 1) == pytest.approx(case["allocated"][key], **near)
    assert every_iterate(shifts, 1) == pytest.approx(case["every_iterate"][key], **near)
    contracted = joint(shifts, 1, contraction=case["contraction"])
    assert contracted == pytest.approx(case["contracted"][key], **near)


@pytest.mark.parametrize("name", ORACLE["first_record"]["last"])
def test_first_record_of_correlated_ones(name):
    case = ORACLE["first_record"]
    t = np.arange(1, case["n_steps"] + 1)
    rho = {"1/t": 1 / t, "1/t^2": 1 / t**2}.get(name)
    if rho is None:
        rho = np.where(t == 1, 1.0, float(name))
    shifts = case["shift"] * rho
    assert joint(shifts, 1) == pytest.approx(case["last"][name], rel=2e-8)
    assert every_iterate(shifts, 1) == pytest.approx(
        case["every_iterate"][name], rel=1e-8
    )


def test_linear_iteration_on_gaussian_records_is_exact():
    """Given the records the bound is attained; their own spread makes it a bound."""
    case = ORACLE["quadratic"]
    T, eta, rho, sigma = (
        case[k] for k in ("n_steps", "step_size", "correlation", "scale")
    )
    covariance = np.full((T, T), rho**2)
    covariance[0] = covariance[:, 0] = rho
    np.fill_diagonal(covariance, 1.0)
    shifts = gaussian_prior_shifts(covariance, case["gap"], step_size=eta)[0]
    c = 1 - eta
    assert joint(shifts, sigma) == pytest.approx(case["not_contracted"], rel=1e-9)
    found = joint(shifts, sigma, contraction=c)
    assert found == pytest.approx(case["contracted"], rel=1e-8)

    weights = c ** np.arange(T - 1.0, -1, -1)
    moved = weights @ (eta * covariance[0])
    noise = sigma**2 * weights @ weights
    given_data = gaussian_renyi_divergence(moved, noise, 0.0, noise, 2)
    assert given_data == pytest.approx(case["given_data"], rel=1e-8)
    assert found == pytest.approx(given_data, rel=1e-12)
    assert found >= given_data
    rest = covariance - np.outer(covariance[0], covariance[0])
    spread = noise + eta**2 * weights @ rest @ weights
    exact = gaussian_renyi_divergence(moved, spread, 0.0, spread, 2)
    assert exact == pytest.approx(case["exact"], rel=1e-8)
    assert exact < found


@pytest.mark.parametrize("best", [1_040, 1_075, 1_105, 1_140])
def test_the_best_restart_is_found_wherever_it_lies(best):
    # n restarted steps of one shift each cost alpha/2 (diameter + n)**2 / n at unit
    # scale, the least where n is the diameter
    found = joint(np.ones(20_000), 1.0, 2, diameter=float(best))
    assert found == pytest.approx(4.0 * best, rel=2e-6)


def test_the_best_restart_may_leave_out_one_step():
    shifts = np.append(1e3, np.ones(299))
    found = joint(shifts, 1.0, 2, diameter=299.0)
    assert found == pytest.approx(4.0 * 299, rel=2e-6)


def test_diameter():
    case = ORACLE["diameter"]
    shifts = np.full(case["n_steps"], case["shift"])
    assert joint(shifts, 1) == pytest.approx(case["without"], rel=1e-9)
    found = joint(shifts, 1, diameter=case["diameter"])
    assert found == pytest.approx(case["cost"], rel=1e-9)
    n = case["n_last"]
    restarted = joint(shifts[:n] + np.eye(1, n)[0] * case["diameter"], 1)
    assert restarted == pytest.approx(case["cost"], rel=1e-9)
    # the distance shrinks at the step that follows, like any other
    shrunk = joint([5.0, 1.0], 1, contraction=0.5, diameter=2.0)
    assert shrunk == pytest.approx((0.5 * 2 + 1) ** 2, rel=1e-9)
    # many steps cost no more than some do, and the search finds nearly as much
    many = joint(np.full(20_000, case["shift"]), 1, diameter=case["diameter"])
    assert many == pytest.approx(case["cost"], rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_restart_is_found_among_all(seed):
    """Whatever shifts, noise and contraction are at each step."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    shifts = rng.random(n) * rng.choice([0.0, 1.0, 1.0, 5.0], size=n)
    scales = rng.uniform(0.2, 2.0, size=n)
    factors = rng.uniform(rng.uniform(), 1.0, size=n)
    diameter = float(rng.choice([0.01, 0.3, 3.0, 30.0]))
    found = joint(shifts, scales, contraction=factors, diameter=diameter)

    def restarted(start):
        rest = shifts[start:].copy()
        rest[0] += factors[start] * diameter
        return joint(rest, scales[start:], contraction=factors[start:])

    whole = joint(shifts, scales, contraction=factors)
    least = min([whole, *map(restarted, range(n))])
    assert found == pytest.approx(least, rel=1e-6)
    assert found >= least * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_long_runs_of_any_steps_are_searched_well(seed):
    rng = np.random.default_rng(seed)
    n = 2_000
    shifts = np.cumsum(rng.normal(size=n)) ** 2 * rng.random(n)
    scales = np.exp(np.cumsum(rng.normal(size=n)) / 30)
    diameter = float(rng.choice([1.0, 100.0, 3000.0]))
    found = joint(shifts, scales, diameter=diameter)
    best = min(
        joint(np.append(shifts[i] + diameter, shifts[i + 1 :]), scales[i:])
        for i in range(0, n, 5)
    )
    assert found <= best * 1.01


def test_a_million_steps_in_a_ball_cost_what_the_last_four_do():
    """How long it takes, `benchmarks.last_iterate` says."""
    shifts = np.full(10**6, 0.5)
    assert joint(shifts, 1.0, diameter=2.0) == pytest.approx(4.0, rel=1e-9)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_contraction_step_by_step(n, seed):
    """Is that of one number where all are alike, and never more than its largest."""
    rng = np.random.default_rng(seed)
    shifts, scales = rng.random(n), rng.uniform(0.1, 2.0, size=n)
    factors = rng.uniform(0.5, 1.0, size=n)
    options = {"coupling": "joint", "diameter": 2.0}
    alike = iteration_cost(
        shifts, scales, 2, contraction=np.full(n, factors[0]), **options
    )
    one = iteration_cost(shifts, scales, 2, contraction=factors[0], **options)
    assert alike == pytest.approx(one, rel=1e-12)
    each = iteration_cost(shifts, scales, 2, contraction=factors, **options)
    largest = iteration_cost(shifts, scales, 2, contraction=factors.max(), **options)
    assert each <= largest * (1 + 1e-9)
    spent = allocate_shifts(shifts, scales, contraction=factors)
    z = 0.0
    for shift, paid, factor in zip(shifts, spent, factors, strict=True):
        z = factor * z + shift - paid
        assert z >= -1e-9
    assert abs(z) < 1e-9
    # no other way to pay for them is cheaper
    best, z, squares = sum((spent / scales) ** 2), 0.0, 0.0
    for at, (shift, factor) in enumerate(zip(shifts, factors, strict=True)):
        due = factor * z + shift
        paid = due if at == n - 1 else due * rng.random() ** 2
        z, squares = due - paid, squares + (paid / scales[at]) ** 2
    assert best <= squares * (1 + 1e-9)


def test_what_is_forgotten_at_a_step_is_not_carried():
    factors = np.ones(400)
    factors[300] = 0.0
    # the last step whose shift is seen
    assert joint(np.ones(400), 1.0, contraction=factors) == pytest.approx(100.0)
    spent = allocate_shifts(np.ones(400), contraction=factors)
    np.testing.assert_allclose(spent[300:], 1.0)


@pytest.mark.parametrize("diameter", [None, 0.7])
def test_the_last_iterate_is_gaussian_private(diameter):
    """The Rényi costs at all orders are those of one Gaussian of that distance."""
    rng = np.random.default_rng(3)
    shifts, scales = rng.random(30), rng.uniform(0.5, 1.0, size=30)
    options = {"contraction": rng.uniform(0.8, 1.0, size=30), "diameter": diameter}
    mu = last_iterate_mu(shifts, scales, **options)
    for alpha in (1.5, 2.0, 30.0):
        assert joint(shifts, scales, alpha, **options) == pytest.approx(
            alpha * mu**2 / 2, rel=1e-12
        )
    assert last_iterate_mu(np.zeros(3), 1.0) == 0.0


def test_many_steps_are_searched_well():
    """Beyond 256 steps not all restarts are tried, but nearly the best is found."""
    rng = np.random.default_rng(0)
    shifts, scales = rng.exponential(size=400), rng.uniform(0.5, 2, size=400)
    found = joint(shifts, scales, diameter=3.0, contraction=0.999)
    best = min(
        joint(
            shifts[-n:] + 0.999 * 3.0 * np.eye(1, n)[0],
            scales[-n:],
            contraction=0.999,
        )
        for n in range(1, 401)
    )
    assert best * (1 - 1e-9) <= found <= 1.05 * best


def test_two_releases_leak_without_bound_on_the_order():
    case = ORACLE["two_releases"]
    nodes, weights = np.polynomial.legendre.leggauss(200)
    edges = np.array([-41.0, -6, -1, 1, 6, 41])
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    y = (middle[:, None] + half[:, None] * nodes).ravel()
    w = (half[:, None] * weights).ravel()
    plus, minus = np.exp(-np.abs(y - 1)) / 2, np.exp(-np.abs(y + 1)) / 2
    p = (np.outer(plus, plus) + np.outer(minus, minus)) / 2
    q = (np.outer(plus, minus) + np.outer(minus, plus)) / 2
    # each release alone: one law, whatever the secret
    np.testing.assert_allclose(p @ w, q @ w, atol=1e-12)
    near = {"abs": case["tolerance"]}
    for order in (2, 8):
        value = math.log(w @ (p**order * q ** (1 - order)) @ w) / (order - 1)
        assert value == pytest.approx(case["joint"][str(order)], **near)
    assert math.log((p / q).max()) == pytest.approx(case["joint"]["inf"], **near)


# -- marginal shifts of records that depend on each other ------------------------------


def shared_coin(sign, n_pairs):
    """Law of the last iterate: means, of equal weight, and the variance of all."""
    # the secret, then pairs (u, sign * u) of one coin u = -1, 1
    means = [sign + n_pairs * (u + sign * u) for u in (-1, 1)]
    return np.array(means, dtype=float), 2 * n_pairs + 1


def shared_coin_leak(n_pairs):
    """Order 2; the second world has one mean, so this is a sum of Gaussian terms."""
    first, variance = shared_coin(1, n_pairs)
    (second, _), _ = shared_coin(-1, n_pairs)
    a = first - second
    return math.log(np.exp(np.outer(a, a) / variance).mean())


def shared_coin_shifts(n_pairs):
    """Under the coupling that keeps the coin, and of each step alone."""
    joint_shifts = np.array([2.0] + [0.0, 2.0] * n_pairs)
    marginal = np.array([2.0] + [0.0, 0.0] * n_pairs)
    return joint_shifts, marginal


@pytest.mark.parametrize("n_pairs", [1, 5, 20])
def test_marginal_shifts_promise_less_than_is_lost(n_pairs):
    case = ORACLE["shared_coin"]
    true = shared_coin_leak(n_pairs)
    assert true == pytest.approx(case["exact"][str(n_pairs)], rel=1e-9)
    # the same by quadrature
    x = np.linspace(-200, 250, 45_001)

    def log_density(sign):
        means, variance = shared_coin(sign, n_pairs)
        parts = -((x[:, None] - means) ** 2) / (2 * variance)
        return logsumexp(parts, axis=1) - math.log(4 * 2 * math.pi * variance) / 2

    ratio = 2 * log_density(1) - log_density(-1)
    assert logsumexp(ratio) + math.log(x[1] - x[0]) == pytest.approx(true, rel=1e-9)
    joint_shifts, marginal = shared_coin_shifts(n_pairs)
    sound = joint(joint_shifts, 1)
    assert sound == pytest.approx(case["joint"][str(n_pairs)], rel=1e-9)
    assert sound >= true
    with warned(PrivacyWarning, "iteration.independent_coupling_of_steps"):
        promised = iteration_cost(marginal, 1, 2, coupling="independent")
    assert every_iterate(marginal, 1) == pytest.approx(case["marginal_every_iterate"])
    assert promised == pytest.approx(4 / len(marginal))
    assert promised < true


def test_shifts_must_be_said_to_be_joint_or_independent():
    with pytest.raises(TypeError, match="coupling"):
        iteration_cost([1.0], 1.0, 2)
    with refused(ValueError, "parameter.option_unknown", name="coupling"):
        iteration_cost([1.0], 1.0, 2, coupling="marginal")


def test_independent_is_the_same_number_where_it_holds():
    shifts = [1.0, 0.2, 0.5]
    with pytest.warns(PrivacyWarning):
        found = iteration_cost(shifts, 1.0, 2, coupling="independent")
    assert found == joint(shifts, 1.0)


def promise(epsilon, alpha):
    return Certificate(notion=Notion.RENYI_PUFFERFISH, alpha=alpha, epsilon=epsilon)


@pytest.mark.every_run
def test_an_attacker_breaks_the_marginal_promise_and_not_the_joint_one():
    def world(sign):
        def draw(n, rng):
            means, variance = shared_coin(sign, 5)
            return rng.choice(means, n) + math.sqrt(variance) * rng.standard_normal(n)

        return draw

    joint_shifts, marginal = shared_coin_shifts(5)
    options = {"n_draws": 20_000, "score": lambda x: np.abs(x[:, 0])}
    with pytest.warns(PrivacyWarning):
        wrong = iteration_cost(marginal, 1, 2, coupling="independent")
    options |= {"rng": np.random.default_rng(0)}
    assert_beaten(promise(wrong, 2), world(1), world(-1), **options)
    right = promise(joint(joint_shifts, 1), 2)
    assert_within(right, world(1), world(-1), **options)


@pytest.mark.every_run
def test_an_attacker_on_linear_steps_finds_that_noise_is_missing():
    """All moves add up in the last iterate, and nothing but the noise hides them."""
    gaps, c, alpha = np.array([2.0, 0.5, 1.0]), 0.8, 2
    weights = c ** np.arange(2.0, -1, -1)
    moved, spread = weights @ gaps, np.linalg.norm(weights)
    noise = GaussianNoise(moved / spread / 1.5)
    cost = joint(gaps, noise.scale, alpha, contraction=c)
    assert cost == pytest.approx(alpha * 1.5**2 / 2)

    def last(sign, noise):
        def draw(n, rng):
            w = np.zeros(n)
            for gap in gaps:
                w = c * w + sign * gap / 2 + noise.sample(n, rng)
            return w

        return draw

    assert_tight(
        promise(cost, alpha),
        noise,
        lambda noise: [last(sign, noise) for sign in (1, -1)],
        seed=0,
        n_draws=50_000,
    )


# -- the truth, by brute force ---------------------------------------------------------


def divergence_of_last(data, other, scales, step, alpha, edge=30.0):
    """Rényi divergence of the last iterates on two fixed data sets, on a grid."""
    grid = np.linspace(-edge, edge, 1001)
    width = grid[1] - grid[0]

    def law(xs):
        density = None
        for x, scale in zip(xs, scales, strict=True):
            at = step(np.zeros(1) if density is None else grid, x)
            mass = np.ones(1) if density is None else density * width
            kernel = np.exp(-((grid[:, None] - at) ** 2) / (2 * scale**2))
            density = kernel @ mass / (scale * math.sqrt(2 * math.pi))
        return density

    p, q = law(data), law(other)
    on = (p > 1e-250) & (q > 1e-250)
    logs = alpha * np.log(p[on]) + (1 - alpha) * np.log(q[on])
    return math.log(np.exp(logs).sum() * width) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.5, 3.0])
@pytest.mark.parametrize("radius", [None, 0.1])
def test_bound_holds_for_nonlinear_steps(alpha, radius):
    """A contraction that is not linear, with and without projection, on fixed data."""
    rng = np.random.default_rng(0)
    c, gaps = 0.8, np.array([0.9, 0.0, 0.4, 0.7, 0.1])
    scales = np.array([0.7, 0.5, 0.9, 0.6, 0.8])

    def step(w, x):
        if radius is not None:
            w = np.clip(w, -radius, radius)
        return c * np.sin(w) + x

    tightest = 0.0
    for _ in range(4):
        data = rng.normal(size=5)
        signs = rng.choice([-1, 1], size=5)
        true = divergence_of_last(data, data + signs * gaps, scales, step, alpha)
        diameter = None if radius is None else 2 * radius
        bound = joint(gaps, scales, alpha, contraction=c, diameter=diameter)
        assert true <= bound * (1 + 1e-6)
        if radius is not None:  # the projection counts
            assert bound < joint(gaps, scales, alpha, contraction=c) / 2
        tightest = max(tightest, true / bound)
    assert tightest > 0.1  # the comparison is not an empty one


@pytest.mark.slow
def test_attack_on_projected_descent(n_trials):
    """Noisy descent on a logistic loss over a correlated series, its last iterate."""
    T, sigma, eta, alpha, radius, bound = 12, 2.5, 0.5, 2.0, 1.0, 1.5
    t = np.arange(T)
    covariance = 0.95 ** np.abs(t[:, None] - t)
    # z = clipped record; the gradient of log(1 + exp(-w z)) in w moves with z
    lipschitz, smoothness = bound, 1 + bound * radius / 4
    shifts = gaussian_prior_shifts(
        covariance,
        gap=2.0,
        step_size=eta,
        smoothness=smoothness,
        lipschitz=lipschitz,
    )
    assert eta <= 2 / (bound**2 / 4)
    row = 5
    slopes = covariance[row] / covariance[row, row]
    rest = np.linalg.cholesky(
        covariance - np.outer(slopes, covariance[row]) + 1e-12 * np.eye(T)
    )

    def last(value, noise):
        def draw(n, rng):
            x = value * slopes + rng.standard_normal((n, T)) @ rest.T
            z = np.clip(x, -bound, bound)
            w = np.zeros(n)
            for i in range(T):
                w = w + eta * z[:, i] / (1 + np.exp(w * z[:, i]))
                w = np.clip(w + noise.sample(n, rng), -radius, radius)
            return w

        return draw

    cost = joint(shifts[row], sigma, alpha, diameter=2 * radius)
    assert cost < every_iterate(shifts[row], sigma, alpha)
    assert cost < 1.5  # of more, no attacker could see anything amiss
    # gradients bend, records vary and the projection cuts: the bound leaves room
    assert_tight(
        promise(cost, alpha),
        GaussianNoise(sigma),
        lambda noise: [last(value, noise) for value in (1.0, -1.0)],
        share=0.15,
        seed=0,
        n_draws=n_trials(50_000, least=10_000),
    )


# -- properties ------------------------------------------------------------------------

lengths = st.integers(1, 12)
amounts = st.one_of(st.just(0.0), st.floats(1e-3, 10))


@st.composite
def runs(draw):
    n = draw(lengths)
    shifts = draw(hnp.arrays(float, n, elements=amounts))
    scales = draw(hnp.arrays(float, n, elements=st.floats(0.1, 5)))
    contraction = draw(st.one_of(st.just(1.0), st.floats(0.05, 1), st.just(0.0)))
    return shifts, scales, contraction


def squares(a, scales):
    return np.sum((a / scales) ** 2)


@given(runs(), st.integers(0, 2**32 - 1))
def test_allocation_is_feasible_and_the_best(run, seed):
    shifts, scales, c = run
    a = allocate_shifts(shifts, scales, contraction=c)
    slack = 1e-9 * (1 + shifts.max())
    z = left_over(shifts, a, c)
    assert a.min() >= 0
    assert z.min() >= -slack
    assert abs(z[-1]) <= slack
    rng = np.random.default_rng(seed)
    for power in (0.2, 1, 5):
        carried, other = 0.0, []
        for s in shifts[:-1]:
            other.append((c * carried + s) * rng.random() ** power)
            carried = c * carried + s - other[-1]
        other.append(c * carried + shifts[-1])
        best = squares(a, scales)
        assert best <= squares(np.array(other), scales) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_allocation_against_a_solver(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    shifts = rng.exponential(size=n) * (rng.random(n) < 0.7)
    scales, c = rng.uniform(0.3, 2, size=n), rng.uniform(0.3, 1)
    fade = c ** np.arange(n - 1.0, -1, -1)
    late = np.tril(np.ones((n, n))) * fade  # row t: what a has covered until t
    goals = late @ shifts
    found = minimize(
        squares,
        shifts,
        args=(scales,),
        jac=lambda a, scales: 2 * a / scales**2,
        method="SLSQP",
        bounds=[(0, None)] * n,
        constraints=[
            {"type": "ineq", "fun": lambda a: (goals - late @ a)[:-1]},
            {"type": "eq", "fun": lambda a: (goals - late @ a)[-1]},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = squares(allocate_shifts(shifts, scales, contraction=c), scales)
    assert best <= found.fun * (1 + 1e-6) + 1e-12
    assert best == pytest.approx(found.fun, rel=1e-5, abs=1e-9)


@given(runs(), st.floats(1.01, 50), st.floats(0.01, 20))
def test_cost_is_monotone(run, alpha, diameter):
    shifts, scales, c = run
    options = {"contraction": c}
    cost = joint(shifts, scales, alpha, **options)
    more = 1 + 1e-9
    assert cost <= joint(shifts + 0.1, scales, alpha, **options) * more
    assert cost <= joint(shifts, scales, alpha * 1.1, **options) * more
    assert cost >= joint(shifts, scales * 1.1, alpha, **options) / more
    assert cost <= joint(shifts, scales, alpha, contraction=(1 + c) / 2) * more
    # one more step of noise only hides; one more shift does not
    longer = np.append(shifts, 0.0), np.append(scales, 1.0)
    assert joint(*longer, alpha, **options) <= cost * more
    # projection never hurts, less so the smaller the set
    near, far = (
        joint(shifts, scales, alpha, diameter=d, **options)
        for d in (diameter, 2 * diameter)
    )
    assert near <= far * more
    assert far <= cost * more
    # seeing every iterate costs more
    each = alpha / 2 * squares(shifts, scales)
    assert cost <= each * more


@given(runs(), st.floats(1e-3, 1e3))
def test_units_do_not_matter(run, unit):
    shifts, scales, c = run
    found = allocate_shifts(unit * shifts, unit * scales, contraction=c)
    expected = unit * allocate_shifts(shifts, scales, contraction=c)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * unit)


@given(runs(), st.floats(1.1, 20))
def test_cost_is_that_of_its_allocation_rounded_up(run, alpha):
    shifts, scales, c = run
    a = allocate_shifts(shifts, scales, contraction=c)
    expected = alpha / 2 * squares(a, scales)
    found = joint(shifts, scales, alpha, contraction=c)
    assert found >= expected * (1 - 1e-15)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("c", [0.5, 0.01, 0.0])
def test_shifts_that_fade_beyond_all_numbers_are_not_dropped(c):
    """Feasible to the end, and what is early costs nothing where it has faded."""
    n = 3000
    shifts = np.ones(n)
    a = allocate_shifts(shifts, contraction=c)
    z = left_over(shifts, a, c)
    assert z.min() >= -1e-12
    assert abs(z[-1]) <= 1e-12
    # of constant shifts: sum(a fade) = sum(fade), a proportional to fade
    fade = c ** np.arange(n - 1.0, -1, -1)
    least = fade.sum() ** 2 / (fade @ fade)
    assert joint(shifts, 1.0) == pytest.approx(n)
    assert joint(shifts, 1.0, contraction=c) == pytest.approx(least, rel=1e-9)
    first = np.eye(1, n)[0]
    assert 0 < joint(first, 1.0, alpha=2, contraction=max(c, 0.01)) < 1e-200


def test_noise_on_one_step_only_in_effect():
    """Scales so unequal that weights would vanish still give a valid allocation."""
    scales = [1e200, 1e-200, 1.0]
    a = allocate_shifts([1.0, 1.0, 1.0], scales)
    z = left_over([1.0, 1.0, 1.0], a, 1.0)
    assert a.min() >= 0
    assert z.min() >= -1e-12
    assert abs(z[-1]) <= 1e-12


def test_orders():
    assert joint([0.0, 0.0], 1.0, math.inf) == 0.0
    assert joint([1.0, 0.0], 1.0, math.inf) == math.inf
    assert joint([1e-200], 1.0) > 0.0


def test_late_records_gain_nothing():
    costs = [joint(np.eye(1, 30, k)[0], 1.0) for k in range(30)]
    assert all(a < b for a, b in pairwise(costs))
    assert costs[-1] == pytest.approx(1.0)


# -- other noise -----------------------------------------------------------------------


def laplace(alpha, shift, scale):
    return float(LaplaceNoise(scale).renyi(alpha, shift))


@given(runs(), st.floats(1.1, 20))
def test_other_noise(run, alpha):
    shifts, scales, c = run
    found = joint(shifts, scales, alpha, contraction=c, noise_cost=laplace)
    a = allocate_shifts(shifts, scales, contraction=c)
    expected = sum(laplace(alpha, *pair) for pair in zip(a, scales, strict=True))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_other_noise_by_brute_force():
    """The sum of two Laplace noises moved, against what two steps promise."""
    grid = np.linspace(-60, 60, 240_001)
    width = grid[1] - grid[0]

    def density(x):  # of Laplace(1) + Laplace(1)
        return np.exp(-np.abs(x)) * (1 + np.abs(x)) / 4

    for alpha in (2.0, 5.0):
        p, q = density(grid - 1.5), density(grid)
        true = math.log(np.sum(p**alpha * q ** (1 - alpha)) * width) / (alpha - 1)
        bound = joint([1.5, 0.0], 1.0, alpha, noise_cost=laplace)
        alone = joint([1.5], 1.0, alpha, noise_cost=laplace)
        assert true <= bound <= alone


def test_pure_promise_of_other_noise_adds_up():
    found = joint([1.0, 2.0, 0.0], 2.0, math.inf, noise_cost=laplace)
    assert found == pytest.approx(1.5)


# -- shifts of a Gaussian prior --------------------------------------------------------


def test_gaussian_shifts():
    covariance = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 1.5]])
    found = gaussian_prior_shifts(covariance, gap=3.0)
    expected = [[3, 0.9, 0], [1.8, 3, 0.9], [0, 0.6, 3]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    capped = gaussian_prior_shifts(
        covariance, gap=3.0, step_size=0.1, smoothness=2.0, lipschitz=0.8
    )
    np.testing.assert_allclose(capped, 0.1 * np.minimum(1.6, 2 * found), rtol=1e-12)
    # all values of a secret: whoever depends on it may move by any amount
    anyhow = gaussian_prior_shifts(covariance, gap=math.inf, lipschitz=0.5)
    np.testing.assert_array_equal(anyhow, np.asarray(covariance) != 0)


def test_all_move_at_once():
    """Moved by its shifts, the law given one value is the law given the other."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T
    for i, shifts in enumerate(gaussian_prior_shifts(covariance, gap=2.0)):
        slopes = covariance[i] / covariance[i, i]
        np.testing.assert_allclose(shifts, 2 * np.abs(slopes), rtol=1e-12)


@given(st.floats(-0.99, 0.99), st.floats(0.1, 5))
def test_dependence_lies_between_one_record_and_all(rho, gap):
    t = np.arange(8)
    shifts = gaussian_prior_shifts(rho ** np.abs(t[:, None] - t), gap)
    costs = np.array([joint(row, 1.0) for row in shifts])
    alone = np.array([joint(row, 1.0) for row in gap * np.eye(8)])
    everyone = joint(np.full(8, gap), 1.0)
    assert np.all(alone <= costs * (1 + 1e-12))
    assert np.all(costs <= everyone * (1 + 1e-12))


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"shifts": [1.0, -1.0]}, "iteration.shifts_negative_or_infinite", {}),
        ({"shifts": [1.0, math.inf]}, "iteration.shifts_negative_or_infinite", {}),
        ({"shifts": [1.0, math.nan]}, "iteration.shifts_negative_or_infinite", {}),
        ({"shifts": []}, "iteration.shifts_shape_wrong", {}),
        ({"shifts": 1.0}, "iteration.shifts_shape_wrong", {}),
        ({"scales": 0.0}, "iteration.scales_not_positive", {}),
        ({"scales": [1.0, 0.0]}, "iteration.scales_not_positive", {}),
        ({"scales": math.nan}, "iteration.scales_not_positive", {}),
        ({"scales": [1.0]}, "iteration.scales_shape_wrong", {}),
        ({"contraction": 1.01}, "iteration.contraction_out_of_range", {}),
        ({"contraction": -0.1}, "iteration.contraction_out_of_range", {}),
        ({"contraction": [0.9]}, "iteration.contraction_shape_wrong", {}),
        ({"contraction": [0.9, math.nan]}, "iteration.contraction_out_of_range", {}),
        ({"alpha": 1.0}, "parameter.renyi_order_out_of_range", {"name": "alpha"}),
        ({"diameter": 0.0}, "parameter.not_positive", {"name": "diameter"}),
        ({"diameter": math.inf}, "parameter.not_positive", {"name": "diameter"}),
        (
            {"noise_cost": lambda alpha, shift, scale: -1.0},
            "parameter.is_negative",
            {"name": "noise_cost"},
        ),
        (
            {"noise_cost": lambda alpha, shift, scale: math.nan},
            "parameter.is_nan",
            {"name": "noise_cost"},
        ),
    ],
)
def test_what_is_refused(options, code, parameters):
    options = {"shifts": [1.0, 1.0], "scales": 1.0, "alpha": 2.0} | options
    with refused(ValueError, code, **parameters):
        iteration_cost(**options, coupling="joint")
    # the distance of Gaussians and what each step pays are asked for by the same steps
    del options["alpha"]
    if options == {"shifts": [1.0, 1.0], "scales": 1.0} or "noise_cost" in options:
        return
    with refused(ValueError, code, **parameters):
        last_iterate_mu(**options)
    if "diameter" not in options:
        with refused(ValueError, code, **parameters):
            allocate_shifts(**options)


@pytest.mark.parametrize(
    "name, value",
    [("contraction", "0.9"), ("contraction", None), ("diameter", "1"), ("alpha", "2")],
)
def test_a_text_is_no_number(name, value):
    options = {"shifts": [1.0], "scales": 1.0, "alpha": 2.0} | {name: value}
    with pytest.raises((TypeError, ValueError), match=f"'{name}'"):
        iteration_cost(**options, coupling="joint")


def test_steps_that_expand_have_no_allocation():
    with refused(ValueError, "iteration.contraction_out_of_range"):
        allocate_shifts([1.0, 1.0], contraction=1.01)


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        (
            {"covariance": np.ones((2, 3))},
            "parameter.covariance_not_square",
            {"name": "covariance"},
        ),
        (
            {"covariance": np.zeros((0, 0))},
            "parameter.covariance_not_square",
            {"name": "covariance"},
        ),
        (
            {"covariance": [[1.0, 2.0], [2.0, 1.0]]},
            "parameter.covariance_not_positive_definite",
            {"kind": "semi-definite", "name": "covariance"},
        ),
        # which the unit of another record must not hide
        (
            {"covariance": [[1e12, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]},
            "parameter.covariance_not_positive_definite",
            {"kind": "semi-definite", "name": "covariance"},
        ),
        (
            {"covariance": [[1.0, 0.2], [0.3, 1.0]]},
            "parameter.covariance_not_symmetric",
            {"name": "covariance"},
        ),
        (
            {"covariance": [[0.0, 0.0], [0.0, 1.0]]},
            "iteration.variance_not_positive",
            {},
        ),
        (
            {"covariance": [[1.0, math.nan], [math.nan, 1.0]]},
            "parameter.array_not_finite",
            {"name": "covariance"},
        ),
        ({"gap": -1.0}, "parameter.is_negative", {"name": "gap"}),
        ({"gap": math.inf}, "iteration.gap_infinite", {}),
        ({"step_size": 0.0}, "parameter.not_positive", {"name": "step_size"}),
        ({"smoothness": 0.0}, "parameter.not_positive", {"name": "smoothness"}),
        ({"lipschitz": 0.0}, "parameter.not_positive", {"name": "lipschitz"}),
    ],
)
def test_what_is_no_gaussian_prior(options, code, parameters):
    options = {"covariance": np.eye(2), "gap": 1.0} | options
    with refused(ValueError, code, **parameters):
        gaussian_prior_shifts(**options)


@given(runs())
def test_nothing_moves_nothing_costs(run):
    shifts, scales, c = run
    assume(shifts.size)
    assert joint(0 * shifts, scales, 3.0, contraction=c, diameter=1.0) == 0.0


def test_a_cost_beyond_floats_is_infinite():
    for shift, scale in ((1e200, 1e-200), (1e200, 1.0)):
        assert joint([shift], scale) == math.inf
