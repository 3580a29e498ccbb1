"""Near radii against linear programs, subsets and simulation."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from skpuffer.transport import (
    _image as _near,
)
from skpuffer.transport import (
    _radius,
    bottleneck_distance,
    gaussian_near_radius,
    gaussian_wasserstein,
    near_radius,
    near_transport,
    quantile_coupling,
    wasserstein_distance,
)
from skpuffer.transport import (
    _radius as _flow,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_transport.json").read_text("utf-8")
)
METRICS = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}
norms = st.sampled_from(list(METRICS))
twentieths = st.integers(0, 19).map(lambda part: Fraction(part, 20))


def laws(max_atoms=5, max_count=4, reach=6, dim=2):
    atom = st.tuples(*[st.integers(-reach, reach)] * dim, st.integers(1, max_count))
    return st.lists(atom, min_size=1, max_size=max_atoms).map(
        lambda atoms: (np.array(atoms)[:, :-1], np.array(atoms)[:, -1])
    )


def radius(u, v, delta, **options):
    return near_radius(u[0], v[0], delta, u[1], v[1], **options)


def matched_by_program(costs, a, b, z):
    """Largest mass of a sub-coupling within z, by a linear program."""
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    within = (costs <= z * (1 + 1e-12)).ravel()
    result = linprog(
        -within.astype(float),
        A_ub=np.concatenate([rows, columns]),
        b_ub=np.concatenate([a, b]),
        bounds=list(zip(np.zeros(n * m), np.where(within, 1.0, 0.0), strict=True)),
    )
    return -result.fun


def radius_by_program(u, v, delta, norm=2):
    costs = cdist(u[0], v[0], METRICS[norm])
    a, b = (counts / counts.sum() for _, counts in (u, v))
    for z in np.unique(np.append(costs, 0.0)):
        if matched_by_program(costs, a, b, z) >= 1 - float(delta) - 1e-9:
            return z
    raise AssertionError("the largest cost lets all mass through")


@pytest.mark.parametrize("case", ORACLES["near"], ids=lambda case: case["name"])
def test_reference_radii(case):
    u, v = (case["u"], case["u_weights"]), (case["v"], case["v_weights"])
    for delta, expected in case["radii"]:
        assert radius(u, v, delta) == expected
        assert radius(v, u, delta) == expected
        # by flow as well, on a line in the plane
        flat = [np.c_[np.array(law[0]) * 3.0, np.array(law[0]) * 4.0] for law in (u, v)]
        assert near_radius(*flat, delta, u[1], v[1]) == pytest.approx(5 * expected)


def test_reference_matched_mass():
    case = ORACLES["matched_mass"]
    u, v = (case["u"], case["u_weights"]), (case["v"], case["v_weights"])
    for z, mass in case["rows"]:
        spare = Fraction(1) - Fraction(mass).limit_denominator(1000)
        assert radius(u, v, spare) <= z * (1 + 1e-12)
        if spare >= Fraction(1, 1000):
            assert radius(u, v, spare - Fraction(1, 1000)) > z * (1 + 1e-12)


def test_the_quantile_coupling_is_not_optimal_here():
    flu = ORACLES["near"][0]
    x, y, mass = quantile_coupling(
        flu["u"], flu["v"], flu["u_weights"], flu["v_weights"]
    )
    # it would leave out twice the mass to come within a distance of one
    assert mass[np.abs(x - y) > 1].sum() == pytest.approx(0.25)
    u, v = (flu["u"], flu["u_weights"]), (flu["v"], flu["v_weights"])
    assert radius(u, v, 0.125) == 1.0


@given(laws(dim=1, max_atoms=6), laws(dim=1, max_atoms=6), twentieths)
def test_line_agrees_with_linear_programs(u, v, delta):
    expected = radius_by_program(u, v, delta)
    assert radius(u, v, delta) == expected
    values = [(points[:, 0], counts) for points, counts in (u, v)]
    assert radius(*values, delta) == expected


@given(laws(), laws(), twentieths, norms)
def test_plane_agrees_with_linear_programs(u, v, delta, norm):
    expected = radius_by_program(u, v, delta, norm)
    assert radius(u, v, delta, ord=norm) == pytest.approx(expected, rel=1e-12)


@given(laws(max_atoms=5, dim=1), laws(max_atoms=5, dim=1), st.integers(0, 8))
def test_what_is_left_out_is_the_largest_deficit_of_a_set(u, v, z):
    """Strassen's theorem: mass of a set less that of its neighbourhood, at most."""
    x, a = u[0][:, 0], [Fraction(int(w), int(u[1].sum())) for w in u[1]]
    y, b = v[0][:, 0], [Fraction(int(w), int(v[1].sum())) for w in v[1]]
    deficit = Fraction(0)
    for size in range(1, len(x) + 1):
        for chosen in map(list, itertools.combinations(range(len(x)), size)):
            near = np.abs(x[chosen][:, None] - y).min(axis=0) <= z
            held = sum((a[i] for i in chosen), Fraction(0))
            reached = sum((b[j] for j in np.flatnonzero(near)), Fraction(0))
            deficit = max(deficit, held - reached)
    if deficit < 1:
        assert near_radius(x, y, deficit, a, b) <= z
    if deficit > 0:
        assert near_radius(x, y, deficit * Fraction(999, 1000), a, b) > z


@given(laws(), laws(), twentieths, twentieths, norms)
def test_falls_with_delta_from_the_bottleneck_to_zero(u, v, delta, other, norm):
    low, high = sorted((delta, other))
    assert radius(u, v, high, ord=norm) <= radius(u, v, low, ord=norm)
    whole = bottleneck_distance(u[0], v[0], u[1], v[1], norm)
    assert radius(u, v, 0, ord=norm) == pytest.approx(whole, rel=1e-12)
    assert radius(u, v, delta, ord=norm) == pytest.approx(
        radius(v, u, delta, ord=norm), rel=1e-12
    )
    # the total variation distance is what no coupling keeps in place
    atoms = {tuple(row) for row in np.concatenate([u[0], v[0]]).tolist()}
    kept = sum(
        min(
            *(
                Fraction(int(law[1][(law[0] == atom).all(axis=1)].sum()))
                / int(law[1].sum())
                for law in (u, v)
            )
        )
        for atom in atoms
    )
    if kept > 0:
        assert radius(u, v, 1 - kept, ord=norm) == 0
    if 0 < kept < 1:
        assert radius(u, v, (1 - kept) * Fraction(999, 1000), ord=norm) > 0


@given(laws(), laws(), laws(), st.integers(0, 9), st.integers(0, 9), norms)
def test_couplings_glue(u, v, w, first, second, norm):
    first, second = Fraction(first, 20), Fraction(second, 20)
    through = radius(u, w, first, ord=norm) + radius(w, v, second, ord=norm)
    assert radius(u, v, first + second, ord=norm) <= through * (1 + 1e-12)


@given(laws(), laws(), twentieths, st.booleans())
def test_what_is_kept_is_part_of_a_coupling_within_the_radius(u, v, delta, line):
    if line:
        u, v = ((law[0][:, 0], law[1]) for law in (u, v))
    result = near_transport(u[0], v[0], delta, u[1], v[1])
    kept = result.kept
    assert result.exact and result.grid_width == 0
    assert Fraction(int(kept.counts.sum()), int(kept.total)) >= 1 - delta
    assert kept.distance(p=math.inf) <= result.radius * (1 + 1e-12)
    for atoms, law in ((kept.x, u), (kept.y, v)):
        assert np.shape(atoms)[1:] == np.shape(law[0])[1:]
        points = np.reshape(law[0], (len(law[1]), -1))
        for point in np.unique(points, axis=0):
            here = (np.reshape(atoms, (len(atoms), -1)) == point).all(axis=1)
            there = (points == point).all(axis=1)
            held = Fraction(int(law[1][there].sum()), int(law[1].sum()))
            assert Fraction(int(kept.counts[here].sum()), int(kept.total)) <= held


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_reals_agree_with_linear_programs(norm):
    rng = np.random.default_rng(7)
    U, V = rng.normal(size=(9, 3)), rng.normal(size=(7, 3)) + 0.3
    a, b = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(7))
    costs = np.linalg.norm(U[:, None] - V, ord=norm, axis=2)
    for delta in (0.013, 0.21, 0.6):
        z = near_radius(U, V, delta, a, b, norm)
        assert matched_by_program(costs, a, b, z) >= 1 - delta - 1e-9
        assert matched_by_program(costs, a, b, z * (1 - 1e-9)) < 1 - delta
        for scale in (1e-150, 1e140):
            scaled = near_radius(U * scale, V * scale, delta, a, b, norm)
            assert scaled == pytest.approx(z * scale, rel=1e-11, abs=0)


@pytest.mark.parametrize("few", [0, 10, 10**6])
def test_narrowing_the_distances_of_the_line_changes_nothing(monkeypatch, few):
    rng = np.random.default_rng(few)
    monkeypatch.setattr(_near, "_FEW", few)
    cases = [
        (rng.normal(size=300), rng.normal(size=200) * 1.3),
        (rng.integers(0, 1000, 300), rng.integers(50, 900, 300)),
    ]
    for x, y in cases:
        for delta in (0.004, 0.1, 0.7):
            exact = near_radius(x, y, delta)
            distances = np.unique(np.abs(x[:, None] - y))
            assert exact == 0 or exact in distances
            tighter = near_transport(x, y, delta)
            assert tighter.kept.counts.sum() >= math.ceil(
                tighter.kept.total * (1 - Fraction(delta).limit_denominator(1000))
            )
            if exact > 0:
                below = distances[distances < exact].max()
                law = _near._atoms(x.astype(float), None, y.astype(float), None)
                xs, a = _near._merge(law[0], law[1])
                ys, b = _near._merge(law[2], law[3])
                need = tighter.kept.total - math.floor(
                    Fraction(delta).limit_denominator(1000) * int(tighter.kept.total)
                )
                lists = (part.tolist() for part in (xs, a, ys, b))
                assert not _near._keeps_enough(*lists, below, need)


@pytest.mark.parametrize("capacity", [1, 7, 300])
def test_masses_beyond_the_capacity_of_the_solver(monkeypatch, capacity):
    rng = np.random.default_rng(capacity)
    cases = []
    for _ in range(20):
        n, m = rng.integers(2, 9, size=2)
        U, V = rng.integers(0, 6, (n, 2)), rng.integers(0, 6, (m, 2))
        weights = rng.integers(1, 40, n), rng.integers(1, 40, m)
        cases.append((U, V, 0.2, *weights, near_radius(U, V, 0.2, *weights)))
    monkeypatch.setattr(_flow, "_CAPACITY", capacity)
    for *arguments, expected in cases:
        assert near_radius(*arguments) == expected


def test_one_unit_in_a_total_of_1e30_decides():
    u, v = [10**30, 1], [10**30 + 1]
    U, V = [[0, 0], [9, 0]], [[0, 1]]
    spare = Fraction(1, 10**30 + 1)
    assert near_radius(U, V, spare, u, v) == 1
    assert near_radius(U, V, spare * Fraction(99, 100), u, v) > 9
    assert near_radius([0, 9], [1], spare, u, v) == 1
    assert near_radius([0, 9], [1], spare / 2, u, v) == 8


@pytest.mark.parametrize("cuts_alone", [0, 1])
def test_bisection_changes_nothing(monkeypatch, cuts_alone):
    rng = np.random.default_rng(3)
    cases = []
    for n, m in ((40, 40), (60, 45)):
        U, V = rng.random((n, 2)), 1.5 * rng.random((m, 2))
        cases.append((U, V, 0.07, near_radius(U, V, 0.07)))
    monkeypatch.setattr(_radius, "_CUTS_ALONE", cuts_alone)
    for *arguments, expected in cases:
        assert near_radius(*arguments) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("max_cells", [1, 40, 900])
def test_grid_bounds_from_above(max_cells):
    rng = np.random.default_rng(max_cells)
    U, V = rng.normal(size=(120, 3)), rng.normal(size=(100, 3)) + [0, 0, 1]
    exact = near_radius(U, V, 0.05)
    coarse = near_transport(U, V, 0.05, max_cells=max_cells)
    assert not coarse.exact and coarse.kept is None and coarse.grid_width > 0
    moved = coarse.grid_width * math.sqrt(3)
    assert exact <= coarse.radius <= exact + 2 * moved * (1 + 1e-12)


@pytest.mark.parametrize("spare", [0, 0.3])
@pytest.mark.parametrize("norm", METRICS)
def test_a_grid_pays_for_the_rounding_of_both_distributions(norm, spare):
    """Of two cells, one has its atoms at the lower end and the other at the upper."""
    U = np.array([[0.0, 0.0], [0.0, 1.0]])
    for move in np.random.default_rng(0).uniform(5, 100, 25):
        far = near_transport(U, U + [move, 0], spare, ord=norm, max_cells=1)
        assert not far.exact and far.radius >= move * (1 - 1e-12)


def test_decimal_deltas_are_the_fractions_that_were_meant():
    x = np.r_[np.zeros(7), np.ones(3)]
    for delta in (0.3, np.float64(0.3), Fraction(3, 10)):
        assert near_radius(x, [0.0], delta) == 0.0
    assert near_radius(x, [0.0], math.nextafter(0.3, 0)) == 1.0


def test_coordinate_scale_divides():
    U, V = [[0, 0], [4, 10]], [[2, 0], [4, 30]]
    assert near_radius(U, V, 0) == 20
    assert near_radius(U, V, 0.5) == 2
    result = near_transport(U, V, 0.5, coordinate_scale=[1, 100])
    assert result.radius == pytest.approx(0.2)
    assert result.kept.x.tolist() == [[4, 10]]
    assert near_radius([[0.0]], [[3.0]], 0.1, coordinate_scale=[2]) == 1.5


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(delta=-0.1), ValueError, "audit.delta_out_of_range"),
        (dict(delta=1), ValueError, "audit.delta_out_of_range"),
        (dict(delta=math.nan), ValueError, "parameter.is_nan"),
        (dict(delta="0.1"), TypeError, "parameter.not_real_number"),
        (dict(ord=0.5), ValueError, "parameter.below_one"),
        (dict(max_cells=0), ValueError, "parameter.below_one"),
        (dict(U=[0.0, 1.0]), ValueError, "transport.points_shape_invalid"),
        (dict(V=[[0.0, np.inf]]), ValueError, "transport.values_not_finite"),
        (dict(u_weights=[0.4, 0.5]), ValueError, "parameter.masses_not_sum_one"),
    ],
)
def test_errors_name_the_parameter(arguments, error, message):
    arguments = dict(U=[[0, 0], [1, 1]], V=[[0, 0], [1, 1]], delta=0.1) | arguments
    with refused(error, message):
        near_radius(**arguments)


# -- Gaussian laws ---------------------------------------------------------------------


def test_gaussian_reference_value():
    case = ORACLES["gaussian_near"]
    variances = [deviation**2 for deviation in case["deviations"]]
    found = gaussian_near_radius(
        0.0,
        variances[0],
        case["mean"],
        variances[1],
        case["delta"],
        coupling="monotone",
    )
    assert found == pytest.approx(case["value"], rel=1e-9)
    assert found >= case["value"] * (1 - 1e-14)


@given(st.floats(0, 5), st.floats(0.1, 3), st.floats(0.1, 3), st.floats(1e-12, 0.9))
def test_gaussian_radius_of_the_monotone_coupling_is_a_quantile(m, s, t, delta):
    options = dict(coupling="monotone")
    found = gaussian_near_radius(0.0, s**2, m, t**2, delta, **options)
    d = abs(s - t)
    if d < 1e-9:
        assert found == pytest.approx(m, abs=1e-6)
        return
    left_out = stats.norm.sf(found, m, d) + stats.norm.cdf(-found, m, d)
    assert left_out <= delta * (1 + 1e-9)
    assert gaussian_near_radius(0.0, s**2, m, t**2, delta / 2, **options) >= found
    best = gaussian_near_radius(0.0, s**2, m, t**2, delta)
    assert best <= found
    assert gaussian_near_radius(m, t**2, 0.0, s**2, delta) == pytest.approx(best)
    assert gaussian_near_radius(0.0, s**2, m, t**2, delta / 2) >= best


@pytest.mark.parametrize("m, s, t", [(1, 1, 1.3), (0.2, 1, 2), (2, 1, 1), (0, 0.5, 3)])
@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_gaussian_radius_is_that_of_fine_atoms(m, s, t, delta):
    levels = (np.arange(4000) + 0.5) / 4000
    x, y = stats.norm(0, s).ppf(levels), stats.norm(m, t).ppf(levels)
    exact = gaussian_near_radius(0.0, s**2, m, t**2, delta)
    near = near_radius(x, y, delta)
    # either law is within 1e-2 of its atoms except for the outermost of them
    assert near_radius(x, y, delta + 0.002) - 1e-2 <= exact
    assert exact <= near_radius(x, y, delta - 0.002) + 1e-2
    assert near == pytest.approx(exact, abs=0.05)


def test_gaussians_of_one_variance_overlap_once_moved():
    for delta in (1e-9, 0.1, 0.5):
        found = gaussian_near_radius(0.0, 4.0, 3.0, 4.0, delta)
        left_out = 2 * stats.norm.cdf((3 - found) / 4) - 1
        assert 0 < left_out <= delta
        assert found == pytest.approx(3 - 4 * stats.norm.ppf((1 + delta) / 2))
    # at the total variation distance nothing needs to move
    assert gaussian_near_radius(0.0, 4.0, 3.0, 4.0, 0.6) == 0
    cov = np.array([[2.0, 1.0], [1.0, 2.0]])
    shift = np.array([3.0, -4.0])
    found = gaussian_near_radius([0, 0], cov, shift, cov, 0.1)
    rest = shift * (1 - found / 5)
    distance = math.sqrt(rest @ np.linalg.solve(cov, rest))
    assert 2 * stats.norm.cdf(distance / 2) - 1 == pytest.approx(0.1)
    # along what is fixed nothing overlaps
    assert gaussian_near_radius([0, 0], np.diag([1, 0]), [1, 1], np.diag([1, 0]), 0.3)
    assert gaussian_near_radius(
        [0, 0], np.diag([1, 0]), [1, 1], np.diag([1, 0]), 0.3
    ) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("delta", [0.2, 1e-3])
def test_gaussian_radius_in_many_dimensions(dim, delta):
    rng = np.random.default_rng(dim)
    mean_u, mean_v = rng.normal(size=(2, dim))
    roots = rng.normal(size=(2, dim, dim))
    cov_u, cov_v = (root @ root.T for root in roots)
    found = gaussian_near_radius(mean_u, cov_u, mean_v, cov_v, delta)
    # the coupling of W_2: the map that carries one law into the other
    values, vectors = np.linalg.eigh(cov_u)
    root = vectors * np.sqrt(values) @ vectors.T
    inverse = np.linalg.inv(root)
    inner = np.linalg.eigh(root @ cov_v @ root)
    carry = inverse @ (inner[1] * np.sqrt(inner[0]) @ inner[1].T) @ inverse
    np.testing.assert_allclose(carry @ cov_u @ carry, cov_v)
    draws = rng.multivariate_normal(np.zeros(dim), cov_u, size=400_000)
    moves = mean_u - mean_v + draws - draws @ carry
    lengths = np.linalg.norm(moves, axis=1)
    assert np.mean(lengths > found) <= delta
    assert found <= 2 * np.quantile(lengths, 1 - delta)
    total = np.abs(moves).sum(axis=1)
    by_l1 = gaussian_near_radius(mean_u, cov_u, mean_v, cov_v, delta, ord=1)
    assert np.mean(total > by_l1) <= delta
    largest = gaussian_near_radius(mean_u, cov_u, mean_v, cov_v, delta, ord=math.inf)
    assert np.mean(np.abs(moves).max(axis=1) > largest) <= delta


def test_gaussian_limits():
    cov = [[2, 1], [1, 2]]
    assert gaussian_near_radius([0, 0], cov, [3, 4], cov, 0.0) == 5
    monotone = dict(coupling="monotone")
    assert gaussian_near_radius([0, 0], cov, [3, 4], cov, 0.1, **monotone) == 5
    assert gaussian_near_radius(0, 1, 2, 1, 0.5, **monotone) == 2
    assert gaussian_near_radius(0, 0, 0, 4, 0.1) == gaussian_near_radius(
        0, 0, 0, 4, 0.1, **monotone
    )
    assert gaussian_near_radius(0, 1, 0, 4, 0) == math.inf
    assert gaussian_near_radius(0, 1, 0, 4, 1e-300) < 40
    assert gaussian_near_radius(0, 0, 3, 0, 0.1) == gaussian_wasserstein(0, 0, 3, 0)
    for bad in (-0.1, 1.0):
        with refused(ValueError, "parameter.share_out_of_range", name="delta"):
            gaussian_near_radius(0, 1, 0, 1, bad)
    with refused(ValueError, "parameter.option_unknown", name="coupling"):
        gaussian_near_radius(0, 1, 0, 1, 0.1, coupling="quantile")


def test_monotone_coupling_is_a_bound_on_the_line():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 30, 15), rng.integers(5, 40, 12)
        a, b, mass = quantile_coupling(x, y)
        gaps = np.abs(a - b)
        order = np.argsort(-gaps)
        for delta in (0.1, 0.3):
            within = np.cumsum(mass[order]) > delta + 1e-9
            assert near_radius(x, y, delta) <= gaps[order][within][0]
            assert near_radius(x, y, delta) <= wasserstein_distance(x, y)
