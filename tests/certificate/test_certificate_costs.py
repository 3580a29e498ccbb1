"""The second path itself: its costs against densities, and what it has no path to."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from skpuffer.certificate import _structure as _composition
from skpuffer.certificate._curves import recomputed
from skpuffer.certificate._noise import (
    NotRecomputableError,
    noise_shift,
    smallest_epsilon,
)
from skpuffer.certificate._pairs import left_to_hide, pairs_of, renyi_of
from skpuffer.certificate._quilts import worst_quilt
from skpuffer.certificate._structure import composed_delta, composed_epsilon

from .test_certificate_rules import (
    BEST,
    COUPLING,
    D1,
    ELLIPSOID,
    MEAN,
    NORMALS,
    NORMALS_AT_3,
    ODDS,
    SAMPLED,
    SPHERE,
    TABLE,
    gaussian,
    losses,
    normal_delta,
    normal_epsilon,
    order_delta,
    pair,
    shift,
    shifted,
    under_belief,
)

# -- costs of noise, from the densities ------------------------------------------------

LAWS = {
    "gaussian": ({"family": "gaussian"}, stats.norm()),
    "laplace": ({"family": "laplace"}, stats.laplace()),
    "gennorm": (
        {"family": "generalized_gaussian", "beta": 1.5},
        stats.gennorm(1.5),
    ),
    "gennorm 1": ({"family": "generalized_gaussian", "beta": 1}, stats.laplace()),
    "gennorm 2": ({"family": "generalized_gaussian", "beta": 2}, stats.gennorm(2)),
    "cauchy": ({"family": "generalized_cauchy", "exponent": 2.0}, stats.cauchy()),
    "student": (
        {"family": "generalized_cauchy", "exponent": 4.0},
        stats.t(3, scale=1 / math.sqrt(3)),
    ),
}


# dense about zero, and out to where a Cauchy law has next to nothing
_T = np.linspace(-25.0, 25.0, 200_001)
X, DX = np.sinh(_T), np.cosh(_T) * (_T[1] - _T[0])


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("radius", [0.04, 0.6, 2.4, 9.0])
def test_noise_costs_what_its_density_says(name, radius):
    noise, law = LAWS[name]
    made = noise_shift(noise | {"scale": 2.0}, shift(radius))
    first, second = law.logpdf(X - radius / 2), law.logpdf(X)
    epsilons = np.array([0.0, 0.15, 0.29, 0.59, 1.1, 1.9])
    p, q = np.exp(first) * DX, np.exp(second) * DX
    known = [np.maximum(p - math.exp(e) * q, 0.0).sum() for e in epsilons]
    assert made.delta(epsilons) == pytest.approx(known, rel=1e-4, abs=1e-7)
    half = noise_shift(noise | {"scale": 2.0}, shift(radius / 2)).times(2.0)
    assert half.delta(epsilons) == pytest.approx(known, rel=1e-4, abs=1e-7)
    for alpha in (1.5, 3.0):
        counts = first > -700
        exponents = alpha * first[counts] + (1 - alpha) * second[counts]
        cost = math.log(np.sum(np.exp(exponents) * DX[counts])) / (alpha - 1)
        assert made.renyi(alpha) == pytest.approx(cost, rel=1e-5, abs=2e-8)
        assert half.renyi(alpha) == pytest.approx(cost, rel=1e-5, abs=2e-8)
    if name in ("laplace", "gennorm 1", "cauchy", "student"):
        near = np.abs(X) < 50
        largest = np.max(first[near] - second[near])
        assert made.renyi(math.inf) == pytest.approx(largest, rel=1e-6)
    else:
        assert made.renyi(math.inf) == math.inf


@pytest.mark.parametrize("u", [1e-3, 0.1, 3.0, 100.0])
def test_cauchy_noise_costs_what_legendre_functions_say(u):
    """Of unit Cauchy laws the mean of a power is Legendre's function at 1 + u²/2."""
    made = noise_shift(STUDENT | {"exponent": 2.0}, shift(u))
    for alpha in (1.2, 2.0, 3.5, 10.0):
        mean = special.hyp2f1(1 - alpha, alpha, 1, -u * u / 4)
        known = math.log(mean) / (alpha - 1)
        assert made.renyi(alpha) == pytest.approx(known, rel=1e-6)
    # the largest ratio of the densities, where its slope is zero
    largest = math.log(1 + u * u / 2 + u * math.sqrt(1 + u * u / 4))
    assert made.renyi(math.inf) == pytest.approx(largest, rel=1e-8)


@pytest.mark.parametrize("name", LAWS)
def test_below_zero_epsilon_the_other_direction_is_met(name):
    noise, _ = LAWS[name]
    made = noise_shift(noise | {"scale": 1.0}, shift(0.7))
    for e in (-0.1, -0.4, -0.69, -0.9, -3.0):
        mirrored = -math.expm1(e) + math.exp(e) * made.delta(np.array([-e]))[0]
        assert made.delta(np.array([e]))[0] == pytest.approx(mirrored, abs=1e-9)


def test_a_pure_promise_is_two_answers_of_these_odds():
    made = noise_shift({"family": "l2_laplace", "scale": 2.0}, shift(1.4, dim=3))
    likely = math.exp(0.7) / (1 + math.exp(0.7))
    for e in (-3.0, -0.71, -0.3, 0.0, 0.3, 0.69, 0.71, 2.0):
        known = max(0.0, likely - math.exp(e) * (1 - likely), -math.expm1(e))
        assert made.delta(np.array([e]))[0] == pytest.approx(known, abs=1e-15)
    mean = likely**4 * (1 - likely) ** -3 + (1 - likely) ** 4 * likely**-3
    assert made.renyi(4.0) == pytest.approx(math.log(mean) / 3, rel=1e-12)
    assert made.renyi(math.inf) == pytest.approx(0.7)


@pytest.mark.parametrize("radius, moved", [(2.0, 2), (1.5, 2), (2.0 + 1e-10, 2)])
def test_integers_are_added_up(radius, moved):
    made = noise_shift({"family": "discrete_laplace", "scale": 1.5}, shift(radius))
    x = np.arange(-80, 81)
    p = np.exp(-np.abs(x - moved) / 1.5) * math.tanh(1 / 3)
    q = np.exp(-np.abs(x) / 1.5) * math.tanh(1 / 3)
    for e in (0.0, 0.5, 1.0, 1.32, 1.34):
        known = np.maximum(0.0, p - math.exp(e) * q).sum()
        assert made.delta(np.array([e]))[0] == pytest.approx(known, abs=1e-14)
    known = math.log(np.sum(p**3 * q**-2.0)) / 2
    assert made.renyi(3.0) == pytest.approx(known, rel=1e-9)
    assert made.renyi(math.inf) == pytest.approx(moved / 1.5)
    assert made.times(2.0).renyi(math.inf) == pytest.approx(2 * moved / 1.5)


#: 1 / s = 1 / (norm of the noise) - 1 / (norm of the shift): then the longest move is
#: the s-norm of the weights over the scales (equality in Hölder's inequality).
@pytest.mark.parametrize(
    "family, own, times",
    [
        ({"family": "laplace"}, 1.0, 1.0),
        ({"family": "gaussian"}, 2.0, 1.0),
        ({"family": "l2_laplace"}, 2.0, 1.0),
        # a density of exp(-|x|) and one of exp(-x²)
        ({"family": "generalized_gaussian", "beta": 1.0}, 1.0, 1.0),
        ({"family": "generalized_gaussian", "beta": 2.0}, 2.0, math.sqrt(2)),
    ],
)
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, "inf"])
@pytest.mark.parametrize(
    "scale, weights",
    [(2.0, None), ([1.0, 2.0, 4.0], None), (2.0, [1.0, 3.0, 0.5])]
    + [([1.0, 2.0, 4.0], [1.0, 3.0, 0.5])],
)
def test_the_longest_move_in_the_norm_of_the_noise(
    family, own, times, norm, scale, weights
):
    ratio = np.broadcast_to(np.array(weights or 1.0) / np.array(scale), 3)
    left = 1 / own - 1 / float(norm)
    longest = times * np.linalg.norm(ratio, math.inf if left <= 0 else 1 / left)
    noise = family | {"scale": scale}
    made = noise_shift(noise, shift(3.0, norm=norm, dim=3, weights=weights))
    assert made.u == pytest.approx(3 * longest, rel=1e-12)
    # of a scalar times the weights, every coordinate may not move at once
    one = noise_shift(noise, shift(3.0, norm=norm, dim=3, structure="scalar"))
    assert one.u == pytest.approx(3 * times / np.min(scale))


def test_no_move_costs_nothing_and_no_noise_costs_all():
    epsilons = np.array([-1.0, 0.0, 0.5])
    none = -np.expm1([-1.0]), 0.0, 0.0
    for noise, _ in LAWS.values():
        still = noise_shift(noise | {"scale": 1.0}, shift(0.0))
        assert still.u == 0
        assert still.renyi(3.0) == pytest.approx(0.0, abs=1e-9)
        assert still.delta(epsilons) == pytest.approx(np.hstack(none), abs=1e-9)
        assert noise_shift(noise | {"scale": 0.0}, shift(0.0)).u == 0
    for scale in (0.0, [1.0, 0.0]):
        assert noise_shift({"family": "gaussian", "scale": scale}, shift(1.0)).u == (
            math.inf
        )


def test_correlated_noise_is_weakest_along_one_axis():
    noise = ELLIPSOID["noise"]
    assert noise_shift(noise, shift(3.0, dim=2)).u == pytest.approx(3 / 2)
    little = noise_shift(noise | {"scale": 0.5}, shift(3.0, dim=2))
    assert little.u == pytest.approx(6.0)
    # of scales that no such noise has, the one at which it hides least counts
    for scale in ([2.0, 50.0], [50.0, 2.0]):
        forged = noise_shift(noise | {"scale": scale}, shift(3.0, dim=2))
        assert forged.u == pytest.approx(3 / 2)
        moves = ATOMS | {"radii": [1.0], "masses": [1.0], "steps": [[0.0, 1.0]]}
        wide = COUPLING | {"couplings": [moves], "shift": shift("inf", dim=2)}
        found = recomputed(wide | {"noise": noise | {"scale": scale}})
        assert found.renyi(3.0) == pytest.approx(3 / 2 / 4)
    flat = noise | {"covariance": [[1.0, 1.0], [1.0, 1.0]]}
    assert noise_shift(flat, shift(3.0, dim=2)).u > 1e6


@pytest.mark.parametrize("norm", [1.0, 2.0, "inf"])
def test_moves_of_one_number_times_weights_are_those_of_one_coordinate(norm):
    # whatever the norm, as no second coordinate shares the move
    for noise in (STUDENT, BETA):
        one = shift(3.0, norm=norm, dim=3, structure="scalar")
        assert noise_shift(noise, one).u == pytest.approx(3.0)


@pytest.mark.parametrize("exponent", [1.5, 2.0, 4.0, 7.5])
def test_flat_noise_has_the_density_of_its_law(exponent):
    made = noise_shift(STUDENT | {"exponent": exponent}, shift(1.0))
    x = np.array([-20.0, -1.0, 0.0, 0.3, 4.0])
    assert made.log_density(x) == pytest.approx(made.law.logpdf(x), rel=1e-12)
    # which falls with the exponent
    tails = made.log_density(np.array([1e8, 1e9]))
    assert np.diff(tails) == pytest.approx(-exponent * math.log(10))


# -- what there is no path to ----------------------------------------------------------

STUDENT = {"family": "generalized_cauchy", "exponent": 4.0, "scale": 1.0}
BETA = {"family": "generalized_gaussian", "beta": 1.5, "scale": 1.0}
CORRELATED = ELLIPSOID["noise"]
INTEGERS = {"family": "discrete_laplace", "scale": 1.0}
VALUES = {"kind": "finite_overlap", "first": [0.6, 0.4], "second": [1.0], "odds": 1.0}
QUILT = {
    "kind": "markov_quilt",
    "quilts": [
        {
            "kind": "markov_chain",
            "initial": [0.5, 0.5],
            "transition": [[0.7, 0.3], [0.3, 0.7]],
            "n_records": 4,
            "protected": None,
            "pairs": None,
        }
    ],
    "parts": [
        {
            "kind": "quilt_part",
            "noise": {"family": "laplace", "scale": 4.0},
            "move": 1.0,
            "slack": 0.0,
            "dim": 1,
            "units": None,
            "smallest": 1.0,
            "largest": 4.0,
        }
    ],
    "method": "exact",
    "max_distance": None,
}
(CHAIN,) = QUILT["quilts"]
ATOMS = COUPLING["couplings"][0]


def of_noise(noise, **options):
    return lambda: noise_shift(noise, shift(1.0, **options))


def listed_quilts(rest):
    """Two records apart, of which one tells a part of the other."""
    masses = [[[0.9, rest], [0.7, 0.3]], [[True, True], [True, True]]]
    record = [0, [1.0], [[3]], [masses], [[False, True], [True, False]]]
    return {"kind": "listed_quilts", "records": [record], "described": {}, "steps": 1}


def of_chain(**changes):
    return lambda: worst_quilt(QUILT | {"quilts": [CHAIN | changes]}, math.inf)


def of_moves(what, *given, **changes):
    curve = COUPLING | {"couplings": [ATOMS | changes]}
    return lambda: getattr(recomputed(curve), what)(*given)


def of_steps(*steps):
    return lambda: recomputed(losses(*steps)).delta(1.0)


def batch(kind, **fields):
    return pair(shifted(), kind, **fields)


OPEN = {
    "two directions of student": (of_noise(STUDENT, dim=2), "several coordinates"),
    "no dimension of student": (of_noise(STUDENT, dim=None), "several coordinates"),
    "two directions of beta": (of_noise(BETA, dim=2), "several coordinates"),
    "correlated in l1": (of_noise(CORRELATED, dim=2, norm=1.0), "search of its own"),
    "correlated, weighted": (
        of_noise(CORRELATED, dim=2, weights=[1.0, 2.0]),
        "weighted moves",
    ),
    "correlated, scalar": (
        of_noise(CORRELATED, dim=2, structure="scalar"),
        "weighted moves",
    ),
    "another family": (
        of_noise({"family": "gumbel", "scale": 1.0}),
        "gumbel noise is found by a search",
    ),
    "wide integers": (
        of_noise({"family": "discrete_laplace", "scale": 3e4}),
        "so many",
    ),
    "long moves of integers": (
        lambda: noise_shift(INTEGERS, shift(1e6 + 1)),
        "so many integers",
    ),
    "dimensions that differ": (
        of_noise(
            {"family": "gaussian", "scale": [1.0, 2.0]}, weights=[1.0, 2.0, 3.0], dim=3
        ),
        "different dimensions",
    ),
    "no dimension": (
        of_noise({"family": "laplace", "scale": 1.0}, dim=None),
        "the dimension of the shift is not stated",
    ),
    "a vast dimension": (
        of_noise({"family": "laplace", "scale": 1.0}, dim=10**7 + 1),
        "dimension of the shift is too large",
    ),
    "beliefs of unlike values": (
        lambda: left_to_hide(VALUES, 0.5),
        "of different values",
    ),
    "another belief": (
        lambda: left_to_hide({"kind": "my_overlap"}, 0.5),
        "nothing is known here of a 'my_overlap'",
    ),
    "a pair by search": (
        of_steps((batch("moved_pair", joined=shifted(), trials=2, chance=0.1), 1)),
        "'moved_pair' are bounds that are found by a search",
    ),
    "a step of steps": (
        of_steps((pair(losses((pair(gaussian(1.0)), 1))), 1)),
        "a step of a 'privacy_loss' curve",
    ),
    "many draws": (
        of_steps((batch("mixture_pair", trials=1001, chance=0.1), 1)),
        "more than 1000 records or draws",
    ),
    "a large group": (
        of_steps((batch("gaussian_poisson_group", rate=0.1, count=13), 1)),
        "more than 12 records or draws",
    ),
    "a large replaced group": (
        of_steps((batch("gaussian_poisson_pair", rate=0.1, first=1, second=13), 1)),
        "more than 12 records or draws",
    ),
    "a large group of subsets": (
        of_steps(
            (batch("subset_group_pair", n_records=5000, batch_size=9, count=1001), 1)
        ),
        "more than 1000 records or draws",
    ),
    "groups of laplace": (
        of_steps(
            (
                pair(shifted(family="laplace"), "gaussian_poisson_group", rate=0.1)
                | {"count": 2},
                1,
            )
        ),
        "groups in Poisson batches take Gaussian noise",
    ),
    "pairs that may dominate": (
        of_steps(*[(batch("gaussian_poisson_group", rate=0.1, count=6), 1)] * 4),
        "too many pairs may dominate",
    ),
    "very many steps": (
        of_steps((pair(gaussian(1e-5)), 10_000_001)),
        "more than 10000000 steps",
    ),
    "losses that spread": (
        of_steps((pair(gaussian(2000.0)), 1)),
        "losses spread too far",
    ),
    "many losses that spread": (
        of_steps((batch("mixture_pair", trials=2, chance=0.9), 1_000_000)),
        "losses spread too far",
    ),
    "losses without an end": (
        of_steps(({"kind": "pure_pair", "epsilon": 1e5}, 1)),
        "losses spread too far",
    ),
    "the largest loss of steps": (
        lambda: recomputed(losses((pair(gaussian(1.0)), 1))).epsilon(0.0, 1.0),
        "no largest loss",
    ),
    "orders of batches": (
        lambda: recomputed(losses((batch("poisson_pair", rate=0.1), 1))).renyi(2.0),
        "a step's Rényi cost is not read off here",
    ),
    "the largest loss of a batch": (
        lambda: renyi_of(pairs_of(batch("poisson_pair", rate=0.1))[0], math.inf),
        "largest loss of a sampled step",
    ),
    "a high order of a batch": (
        lambda: renyi_of(pairs_of(batch("poisson_pair", rate=0.1))[0], 1000.0),
        "an order of 1000 is too large to integrate",
    ),
    "a table that is cut": (
        lambda: recomputed(TABLE | {"orders": [2.0]}).delta(1.0),
        "orders and costs are not as many",
    ),
    "counts without a weight": (
        lambda: recomputed(
            {"kind": "count_law", "curves": [gaussian(1.0)], "weights": [0.5, 0.5]}
            | {"beyond": 0.0}
        ).delta(1.0),
        "curves and weights are not as many",
    ),
    "repeated laplace": (
        lambda: recomputed(
            {"kind": "repeated", "curve": shifted(family="laplace"), "times": 2}
        ).delta(1.0),
        "only Gaussian noise is added up so",
    ),
    "a belief about a belief": (
        lambda: recomputed(under_belief(under_belief(gaussian(1.0)))).delta(1.0),
        "is not amplified twice",
    ),
    "pairs of values": (
        lambda: recomputed(
            under_belief(gaussian(1.0), kind="pairwise_overlap_curve")
        ).delta(1.0),
        "told apart is found by a search",
    ),
    "a sure event": (
        lambda: recomputed(COUPLING | {"event_delta": 1.0}).delta(1.0),
        "errors of the coupling leave nothing",
    ),
    "an error of all": (
        lambda: recomputed(COUPLING | {"mass_error": 1.0}).delta(1.0),
        "errors of the coupling leave nothing",
    ),
    "moves without masses": (of_moves("delta", 1.0, masses=[1.0]), "not as many"),
    "moves without masses at an order": (
        of_moves("renyi", 2.0, masses=[1.0]),
        "moves and masses are not as many",
    ),
    "masses of several lengths": (
        of_moves("delta", 1.0, masses=[[0.5, 0.5], [1.0]]),
        "rows of a matrix are of several lengths",
    ),
    "very many moves": (
        of_moves("delta", 1.0, radii=[0.0] * 10_001, masses=[1e-4] * 10_001),
        "more than 10000 moves",
    ),
    "very many moves at an order": (
        of_moves("renyi", 2.0, radii=[0.0] * 10_001, masses=[1e-4] * 10_001),
        "more than 10000 moves",
    ),
    "normal moves of laplace": (
        lambda: recomputed(
            NORMALS | {"noise": {"family": "laplace", "scale": 1.0}}
        ).renyi(2.0),
        "Gaussian moves take Gaussian noise of one scale",
    ),
    "normal moves of scales": (
        lambda: recomputed(
            NORMALS | {"noise": {"family": "gaussian", "scale": [1.0, 2.0]}}
        ).renyi(2.0),
        "Gaussian moves take Gaussian noise of one scale",
    ),
    "normal moves of two coordinates": (
        lambda: recomputed(
            NORMALS
            | {
                "couplings": [
                    {"kind": "gaussian_moves", "mean": [0.5, 0.1]}
                    | {"covariance": [[0.2, 0.0], [0.0, 0.2]]}
                ]
            }
        ).delta(1.0),
        "on one coordinate here",
    ),
    "a delta of quilts": (lambda: recomputed(QUILT).delta(1.0), "a delta of quilts"),
    "quilts by mixing": (
        lambda: worst_quilt(QUILT | {"method": "approximate"}, math.inf),
        "bounded by a mixing time",
    ),
    "a run under quilts": (
        lambda: worst_quilt(
            QUILT | {"parts": [QUILT["parts"][0] | {"kind": "run_part"}]}, math.inf
        ),
        "a run is composed anew",
    ),
    "other quilts": (of_chain(kind="my_quilts"), "of 'my_quilts' have no second path"),
    "a first record of less than one": (
        of_chain(initial=[0.5, 0.5 - 2e-9]),
        "masses under a quilt do not sum to 1",
    ),
    "steps of less than one": (
        of_chain(transition=[[0.7, 0.3], [0.1, 0.1]]),
        "masses under a quilt do not sum to 1",
    ),
    "masses below zero": (
        of_chain(transition=[[1.1, -0.1], [0.3, 0.7]]),
        "masses under a quilt do not sum to 1",
    ),
    "listed masses of less than one": (
        lambda: worst_quilt(QUILT | {"quilts": [listed_quilts(0.05)]}, math.inf),
        "masses under a quilt do not sum to 1",
    ),
    "very many quilts": (of_chain(n_records=59), "too many quilts"),
    "quilts of nothing": (of_chain(initial=[]), "masses under a quilt do not sum to 1"),
    "quilts of words": (of_chain(transition="x"), "is not as it should be"),
    "quilts that miss a part": (
        lambda: worst_quilt(QUILT | {"quilts": [{"kind": "markov_chain"}]}, math.inf),
        "the data of 'markov_chain' is not as it should be",
    ),
    "listed quilts of numbers": (
        lambda: worst_quilt(
            QUILT | {"quilts": [{"kind": "listed_quilts", "records": [1, 2]}]}, math.inf
        ),
        "the data of 'listed_quilts' is not as it should be",
    ),
    "listed quilts that miss a part": (
        lambda: worst_quilt(
            QUILT
            | {
                "quilts": [
                    {
                        "kind": "listed_quilts",
                        "records": [[0, [1.0], [[3]], [[5]], [[True]]]],
                    }
                ]
            },
            math.inf,
        ),
        "the data of 'listed_quilts' is not as it should be",
    ),
    "a delta of slices": (lambda: recomputed(MEAN).delta(1.0), "not promised"),
    "slices without weights": (
        lambda: recomputed(SAMPLED | {"weights": [1.0]}).renyi(2.0),
        "slices and weights are not as many",
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_has_no_second_path_says_so(name):
    ask, words = OPEN[name]
    with pytest.raises(NotRecomputableError, match=words):
        ask()


def test_a_law_that_never_settles_is_no_answer(monkeypatch):
    widths = []

    def drifting(steps, width):
        widths.append(width)
        return len(widths)

    monkeypatch.setattr(_composition, "_composed", drifting)
    steps = [(pairs_of(pair(gaussian(1.0)))[0], 1)]
    with pytest.raises(NotRecomputableError, match="no grid of losses was fine"):
        _composition._settled(steps, 1.0, lambda n: 2.0**n)
    assert np.array(widths) == pytest.approx(widths[0] * 2.0 ** -np.arange(9))


# -- pairs of batches, and what is composed of them ------------------------------------

_GRID = np.linspace(-14.0, 16.0, 60_001)
MU = 0.8


def normals(shares):
    """Density at the grid of a mixture of unit normals, of shares by mean."""
    return sum(w * stats.norm.pdf(_GRID - m) for m, w in shares.items())


def hockey_stick(p, q, epsilon):
    return float(
        np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (_GRID[1] - _GRID[0])
    )


def binomial(n, rate, sign=1):
    law = stats.binom(n, rate)
    return {sign * MU * k: law.pmf(k) for k in range(n + 1)}


#: By kind: its fields, and mixtures between which a step tells, ahead and behind.
PAIRS = {
    "poisson": (
        batch("poisson_pair", rate=0.3),
        {0: 0.7, MU: 0.3},
        {0: 1.0},
    ),
    "whole": (batch("poisson_pair", rate=1.0), {MU: 1.0}, {0: 1.0}),
    "never": (batch("poisson_pair", rate=0.0), {0: 1.0}, {0: 1.0}),
    "group": (
        batch("gaussian_poisson_pair", rate=0.3, first=2, second=1),
        binomial(2, 0.3),
        binomial(1, 0.3, -1),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_batch_tells_what_its_mixtures_do(name):
    fields, ahead, behind = PAIRS[name]
    (made,) = pairs_of(fields | {"curve": shifted(1 / MU)})
    p, q = normals(ahead), normals(behind)
    for e in (0.0, 0.1, 0.4, 1.0, 2.0):
        for found, known in (
            (made.forward, hockey_stick(p, q, e)),
            (made.backward, hockey_stick(q, p, e)),
        ):
            assert float(found(np.array([e]))[0]) == pytest.approx(known, abs=1e-7)
    if name == "poisson":
        step = _GRID[1] - _GRID[0]
        for alpha in (2.0, 5.0):
            costs = [
                math.log(np.sum(a**alpha * b ** (1 - alpha)) * step) / (alpha - 1)
                for a, b in ((p, q), (q, p))
            ]
            assert renyi_of(made, alpha) == pytest.approx(max(costs), rel=1e-5)


def moved(share, laws):
    """Of a move of j with weight w, hidden in a share: by its joint convexity."""

    def delta(e):
        grown = math.log1p(math.expm1(e) / share)
        return sum(w * normal_delta(j * MU, grown) for j, w in laws.items())

    return delta


def replaced(e):
    """Balle, Barthe and Gaboardi (2018), Theorem 2 with its three distributions."""
    q = 0.3
    grown = math.log1p(math.expm1(e) / q)
    share = math.exp(e - grown)
    return q * (
        (1 - share) * normal_delta(MU, grown) + share * normal_delta(2 * MU, grown)
    )


SYMMETRIC = {
    "subset": (batch("subset_pair", rate=0.3), moved(0.3, {1: 0.3})),
    "mixture": (
        batch("mixture_pair", trials=3, chance=0.2),
        moved(1 - 0.8**3, {1: 3 * 0.2 * 0.64, 2: 3 * 0.04 * 0.8, 3: 0.008}),
    ),
    # of ten records two are drawn, and three are theirs
    "group of subsets": (
        batch("subset_group_pair", n_records=10, batch_size=2, count=3),
        moved(24 / 45, {1: 21 / 45, 2: 3 / 45}),
    ),
    # none of nine is drawn without one of theirs
    "group that is not hidden": (
        batch("subset_group_pair", n_records=10, batch_size=9, count=2),
        moved(1.0, {1: 9 / 45, 2: 36 / 45}),
    ),
    "group that is just hidden": (
        batch("subset_group_pair", n_records=10, batch_size=8, count=2),
        moved(44 / 45, {1: 16 / 45, 2: 28 / 45}),
    ),
    "replaced": (batch("replace_poisson_pair", rate=0.3), replaced),
    "shift": (batch("shift_pair"), moved(1.0, {1: 1.0})),
    "gaussian": (pair(gaussian(MU)), moved(1.0, {1: 1.0})),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_step_tells_as_much_either_way(name):
    fields, known = SYMMETRIC[name]
    if name != "gaussian":
        fields = fields | {"curve": shifted(1 / MU)}
    (made,) = pairs_of(fields)
    for e in (0.05, 0.4, 1.0, 2.5):
        for found in (made.forward, made.backward):
            assert float(found(np.array([e]))[0]) == pytest.approx(known(e), rel=1e-9)


def test_a_group_that_is_added_or_replaced_is_tried_in_every_way():
    made = pairs_of(
        batch("gaussian_poisson_group", rate=0.3, count=4) | {"curve": shifted(1 / MU)}
    )
    assert len(made) == 3
    for one, (come, gone) in zip(made, ((4, 0), (3, 1), (2, 2)), strict=True):
        p, q = normals(binomial(come, 0.3)), normals(binomial(gone, 0.3, -1))
        known = hockey_stick(p, q, 0.4)
        assert float(one.forward(np.array([0.4]))[0]) == pytest.approx(known, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.79, 0.81])
def test_pure_steps_and_choices(epsilon):
    (pure,) = pairs_of({"kind": "pure_pair", "epsilon": 0.8})
    likely = 1 / (1 + math.exp(-0.8))
    known = max(0.0, likely - math.exp(epsilon) * (1 - likely))
    found = float(pure.forward(np.array([epsilon]))[0])
    assert found == pytest.approx(known, abs=1e-15)
    # the worst of the two-point laws of losses t and t - 0.8, over t
    (choice,) = pairs_of({"kind": "bounded_range_pair", "eta": 0.8})
    t = np.linspace(0.0, 0.8, 80_001)
    p = -np.expm1(t - 0.8) / -math.expm1(-0.8)
    worst = np.max(p * np.maximum(0.0, -np.expm1(epsilon - t)))
    found = float(choice.forward(np.array([epsilon]))[0])
    assert found == pytest.approx(float(worst), abs=1e-8)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_steps_that_add_up_in_closed_form(rate):
    """Of moves by 0.6 four times and 0.5 once: 1.3, or 0.5 if the four never meet."""
    whole = pair(shifted(1 / 0.6), "poisson_pair", rate=rate)
    curve = recomputed(losses((whole, 4), (pair(gaussian(0.5)), 1)))
    mu = 1.3 if rate else 0.5
    assert curve.delta(0.7) == pytest.approx(normal_delta(mu, 0.7), rel=5e-4)
    known = normal_epsilon(mu, 1e-3)
    assert curve.epsilon(1e-3, 1.0) == pytest.approx(known, rel=5e-4)


def test_orders_of_steps_are_added():
    steps = (pair(gaussian(0.6)), 4), (pair(shifted(2.0)), 2)
    known = 3 * (4 * 0.36 + 2 * 0.25) / 2
    assert recomputed(losses(*steps)).renyi(3.0) == pytest.approx(known)


def test_laplace_steps_are_composed_exactly():
    """Two steps of losses in [-0.5, 0.5]: none beyond one, and by the sum of two."""
    steps = [(pairs_of(pair(shifted(2.0, family="laplace")))[0], 2)]
    assert composed_delta(steps, 1.0 + 1e-3) == pytest.approx(0.0, abs=1e-9)
    # masses 1/2 at 0.5, e^-0.5 / 2 at -0.5, and a density between
    grid = np.linspace(-0.5, 0.5, 2001)
    step = grid[1] - grid[0]
    law = np.exp((grid - 0.5) / 2) / 4 * step
    law[[0, -1]] = law[[0, -1]] / 2 + [math.exp(-0.5) / 2, 0.5]
    total = np.add.outer(grid, grid)
    mass = np.outer(law, law)
    known = (mass * np.maximum(0.0, -np.expm1(0.4 - total))).sum()
    assert composed_delta(steps, 0.4) == pytest.approx(known, rel=1e-3)
    assert composed_epsilon(steps, known, 0.4) == pytest.approx(0.4, rel=1e-3)


# -- curves ----------------------------------------------------------------------------


def test_a_table_is_read_at_the_next_order_and_the_best():
    table = TABLE | {"orders": [2.0, 8.0, "inf"], "epsilons": [0.1, 0.4, 3.0]}
    made = recomputed(table)
    costs = (1.5, 0.1), (2.0, 0.1), (2.1, 0.4), (8.0, 0.4), (9.0, 3.0)
    for order, cost in costs:
        assert made.renyi(order) == cost
    assert made.renyi(math.inf) == 3.0
    assert recomputed(TABLE).renyi(8.1) == math.inf
    for epsilon in (0.5, 1.0, 2.9):
        known = min(order_delta(2.0, 0.1, epsilon), order_delta(8.0, 0.4, epsilon))
        assert made.delta(epsilon) == pytest.approx(known)
        assert recomputed(TABLE).delta(epsilon) == pytest.approx(known)
    assert made.delta(3.0) == 0.0 and made.epsilon(0.0, 1.0) == 3.0
    # a bound above one says nothing
    assert recomputed(TABLE | {"epsilons": [9.0, 9.0]}).delta(0.0) <= 1.0


@pytest.mark.parametrize("dim", [2, 3, 10])
@pytest.mark.parametrize("square", [1e-3, 0.5, 40.0, 400.0])
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_move_in_a_direction_by_chance(dim, square, alpha):
    """Kummer's function is the moment of a squared cosine, Beta(1/2, (d - 1)/2)."""
    at = alpha * (alpha - 1) / 2 * square
    expected = math.log(special.hyp1f1(0.5, dim / 2, at)) / (alpha - 1)
    curve = SPHERE | {"square": square, "dim": dim}
    assert recomputed(curve).renyi(alpha) == pytest.approx(expected, rel=1e-9)


def test_the_worst_and_the_mean_of_curves():
    parts = [gaussian(0.5), gaussian(1.0)]
    for kind in ("worst_curve", "worst_overlap_curve"):
        worst = recomputed({"kind": kind, "curves": parts})
        assert worst.renyi(3.0) == pytest.approx(1.5)
        assert worst.delta(1.0) == pytest.approx(D1)
        assert worst.epsilon(D1, 1.0) == pytest.approx(1.0)
    law = {"kind": "count_law", "curves": parts, "weights": [0.6, 0.4], "beyond": 0.0}
    made = recomputed(law)
    known = math.log(0.6 * math.exp(2 * 3 * 0.25 / 2) + 0.4 * math.exp(2 * 1.5)) / 2
    assert made.renyi(3.0) == pytest.approx(known)
    mean = 0.6 * normal_delta(0.5, 1.0) + 0.4 * D1
    assert made.delta(1.0) == pytest.approx(mean)
    assert made.epsilon(mean, 1.0) == pytest.approx(1.0)
    beyond = recomputed(law | {"beyond": 0.1})
    assert beyond.renyi(3.0) == math.inf
    assert beyond.delta(1.0) == pytest.approx(mean + 0.1)
    assert recomputed(law | {"beyond": 1.0}).delta(1.0) == 1.0


def test_runs_that_are_repeated():
    made = recomputed({"kind": "repeated", "curve": gaussian(0.5), "times": 4})
    assert made.renyi(3.0) == pytest.approx(4 * 3 * 0.25 / 2)
    assert made.delta(1.0) == pytest.approx(D1)


def test_moves_of_a_coupling_are_averaged():
    made = recomputed(COUPLING)
    assert made.delta(1.0) == pytest.approx(0.5 * normal_delta(2.0, 1.0))
    known = math.log(0.5 + 0.5 * math.exp(3 * 2 * 2.0))
    assert made.renyi(3.0) == pytest.approx(known / 2)
    # an event is divided out, and masses that are off count either way
    off = recomputed(COUPLING | {"event_delta": 0.1, "mass_error": 1e-3})
    slack = math.log(1.001 / 0.999)
    assert off.renyi(3.0) == pytest.approx((known - math.log(0.9) + 3 * slack) / 2)
    grown = 0.5 * normal_delta(2.0, 1.0 - slack) * 1.001 / 0.9
    assert off.delta(1.0) == pytest.approx(grown)
    # and never more than all of it costs where everything moves as far as it may
    sure = recomputed(COUPLING | {"event_delta": 0.9})
    assert sure.delta(1.0) == pytest.approx(normal_delta(2.0, 1.0))
    assert sure.renyi(3.0) == pytest.approx(6.0)
    assert made.renyi(math.inf) == math.inf
    # of several couplings and of several rows of masses the worst counts
    other = ATOMS | {"masses": [[0.9, 0.1], [0.4, 0.6]]}
    several = recomputed(COUPLING | {"couplings": [ATOMS, other]})
    assert several.delta(1.0) == pytest.approx(0.6 * normal_delta(2.0, 1.0))
    known = math.log(0.4 + 0.6 * math.exp(3 * 2 * 2.0)) / 2
    assert several.renyi(3.0) == pytest.approx(known)


def test_coordinates_of_a_step_cost_their_sum():
    moves = ATOMS | {"steps": [[0.0, 0.0], [1.0, -1.0]], "radii": [0.0, math.sqrt(2)]}
    wide = COUPLING | {"couplings": [moves], "shift": shift("inf", dim=2)}
    for scale in ([0.5, 2.0], [0.5, 0.5]):
        noise = {"family": "gaussian", "scale": scale}
        square = sum(1 / s**2 for s in scale)
        known = math.log(0.5 + 0.5 * math.exp(3 * square)) / 2
        assert recomputed(wide | {"noise": noise}).renyi(3.0) == pytest.approx(known)
    noise = {"family": "laplace", "scale": 0.5}
    one = 2 / 3 * math.exp(2.0) + math.exp(-4.0) / 3
    known = math.log(0.5 + 0.5 * one**2)
    assert recomputed(wide | {"noise": noise}).renyi(2.0) == pytest.approx(known)
    correlated = CORRELATED | {"covariance": [[2.0, 1.0], [1.0, 2.0]], "scale": 3.0}
    # (1, -1) is an axis, of variance one
    known = math.log(0.5 + 0.5 * math.exp(3 * 2 / 9)) / 2
    assert recomputed(wide | {"noise": correlated}).renyi(3.0) == pytest.approx(known)


def test_normal_moves_are_averaged():
    assert recomputed(NORMALS).renyi(3.0) == pytest.approx(NORMALS_AT_3)
    # beyond this order the mean has no end
    assert recomputed(NORMALS).renyi(10.0) == math.inf
    z = np.linspace(-9, 9, 4001)
    moves = np.abs(0.5 + math.sqrt(0.2) * z) / 2
    deltas = [normal_delta(max(m, 1e-9), 0.4) for m in moves]
    known = np.sum(stats.norm.pdf(z) * deltas) * (z[1] - z[0])
    assert recomputed(NORMALS).delta(0.4) == pytest.approx(known, rel=1e-6)


def test_slices_in_closed_form():
    assert recomputed(MEAN).renyi(3.0) == pytest.approx(0.3)
    assert recomputed(MEAN | {"square": 0.0}).renyi(math.inf) == 0.0
    joint = SAMPLED | {"kind": "joint_slices", "squares": [[0.2, 0.1], [0.3, 0.0]]}
    rows = [np.exp(3 * np.array(s)).mean() for s in ([0.2, 0.1], [0.3, 0.0])]
    assert recomputed(joint).renyi(3.0) == pytest.approx(math.log(max(rows)) / 2)
    few = SAMPLED | {"shortfall": 0.01}
    mean = np.exp([0.6, 0.3]).mean() + 0.01 * math.expm1(0.75)
    assert recomputed(few).renyi(3.0) == pytest.approx(math.log(mean) / 2)
    # no more than all of it, and without overflow
    assert recomputed(SAMPLED | {"shortfall": 9.0}).renyi(3.0) == pytest.approx(0.375)
    assert recomputed(few).renyi(3000.0) < 3000.0 * 0.25 / 2
    high = (math.log(0.01) + 3000 * 2999 / 2 * 0.25) / 2999
    assert recomputed(few).renyi(3000.0) == pytest.approx(high)
    assert recomputed(SPHERE).renyi(3.0) == pytest.approx(0.375)
    angles = np.linspace(0, 2 * np.pi, 2001)[:-1]
    known = math.log(np.mean(np.exp(0.75 * np.cos(angles) ** 2))) / 2
    assert recomputed(SPHERE | {"dim": 2}).renyi(3.0) == pytest.approx(known)
    # in three dimensions the cosine is uniform
    known = math.log(np.mean(np.exp(0.75 * np.linspace(-1, 1, 200_001) ** 2))) / 2
    found = recomputed(SPHERE | {"dim": 3}).renyi(3.0)
    assert found == pytest.approx(known, rel=1e-4)
    assert recomputed(SPHERE | {"dim": 3, "square": 0.0}).renyi(3.0) == 0.0


def test_an_epsilon_of_slices_is_the_best_over_orders():
    orders = 1 + np.geomspace(1e-3, 1e5, 200_001)
    terms = np.log1p(-1 / orders) - (math.log(1e-3) + np.log(orders)) / (orders - 1)
    known = np.min(orders * 0.2 / 2 + np.maximum(terms, 0.0))
    assert recomputed(MEAN).epsilon(1e-3, 1.0) == pytest.approx(known, rel=1e-6)


def test_the_smallest_epsilon():
    for mu in (0.5, 3.0):
        found = smallest_epsilon(lambda e, mu=mu: normal_delta(mu, e), 1e-4)
        assert found == pytest.approx(normal_epsilon(mu, 1e-4), rel=1e-10)
    assert smallest_epsilon(lambda e: 0.1 - e, 0.1) == 0.0
    assert smallest_epsilon(lambda e: 0.2, 0.1) == math.inf
    assert smallest_epsilon(lambda e: max(0.0, 4e5 - e), 0.1) == pytest.approx(4e5)


# -- beliefs ---------------------------------------------------------------------------


def split(u, v, odds):
    """The largest of u w q / (1 + (w - 1) q) - v q, over shares q on a grid."""
    q = np.linspace(0, 1, 20_001)
    return np.max(u * odds * q / (1 + (odds - 1) * q) - v * q)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_what_is_left_to_hide(epsilon):
    grown = math.exp(epsilon)
    known = split(1.0, grown, 4.0)
    assert left_to_hide(ODDS, epsilon) == pytest.approx((known,) * 2, abs=1e-7)
    shared = 0.2 + 0.8 * known
    some = left_to_hide(ODDS | {"share": 0.2}, epsilon)
    assert some == pytest.approx((shared,) * 2, abs=1e-7)
    sure = left_to_hide(ODDS | {"odds": 1.0}, epsilon)
    assert sure == (0.0, 0.0)
    first, second = [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]
    values = VALUES | {"first": first, "second": second}
    for odds in (1.0, 2.0):
        known = (
            sum(split(a, grown * b, odds) for a, b in zip(x, y, strict=True))
            for x, y in ((first, second), (second, first))
        )
        found = left_to_hide(values | {"odds": odds}, epsilon)
        assert found == pytest.approx(tuple(known), abs=1e-7)
    near = left_to_hide(
        {"kind": "near_overlap", "part": values, "variation": 0.01}, epsilon
    )
    plain = left_to_hide(values, epsilon)
    assert near == pytest.approx([min(1.0, p + 0.01 * (1 + grown)) for p in plain])
    far = {"kind": "near_overlap", "part": values, "variation": 1.0}
    assert left_to_hide(far, epsilon) == (1.0, 1.0)
    for kind, name in (("worst_overlap", "parts"), ("pairwise_overlap", "overlaps")):
        worst = left_to_hide({"kind": kind, name: [values, ODDS]}, epsilon)
        both = zip(plain, left_to_hide(ODDS, epsilon), strict=True)
        assert worst == pytest.approx([max(pair) for pair in both])


@pytest.mark.parametrize("odds", [1.0, 2.0])
@pytest.mark.parametrize(
    "mu, epsilon", [(1.0, 0.0), (1.0, 0.5), (2.5, 1.0), (0.0, 0.2)]
)
def test_normals_that_are_left_to_hide(mu, epsilon, odds):
    law = {"kind": "normal_overlap", "mu": mu, "odds": odds}
    x = np.linspace(-10, 12, 1101)
    u, v = stats.norm.pdf(x - mu), math.exp(epsilon) * stats.norm.pdf(x)
    known = sum(split(a, b, odds) for a, b in zip(u, v, strict=True)) * (x[1] - x[0])
    found = left_to_hide(law, epsilon)
    assert found == pytest.approx((known,) * 2, rel=2e-3, abs=1e-7)


def test_a_belief_takes_part_of_what_a_curve_tells():
    values = VALUES | {"first": [0.6, 0.4], "second": [0.1, 0.9]}
    made = recomputed(under_belief(gaussian(2.0), values))
    etas = (
        max(0.0, 0.6 - math.exp(0.5) * 0.1) + max(0.0, 0.4 - math.exp(0.5) * 0.9),
        max(0.0, 0.1 - math.exp(0.5) * 0.6) + max(0.0, 0.9 - math.exp(0.5) * 0.4),
    )
    known = max(
        eta * normal_delta(2.0, math.log1p(math.expm1(0.5) / eta)) for eta in etas
    )
    assert made.delta(0.5) == pytest.approx(known)
    # at an order it helps nothing
    assert made.renyi(3.0) == pytest.approx(6.0)
    same = VALUES | {"first": [0.5, 0.5], "second": [0.5, 0.5]}
    assert recomputed(under_belief(gaussian(2.0), same)).delta(0.5) == 0.0


# -- quilts ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", [3.0, math.inf])
@pytest.mark.parametrize("most, protected", [(None, None), (1, None), (None, [0, 3])])
def test_every_quilt_of_a_chain_is_tried(order, most, protected):
    """Against the joint distribution of all four records."""
    start, step = np.array([0.5, 0.5]), np.array([[0.7, 0.3], [0.3, 0.7]])
    joint = np.einsum("a,ab,bc,cd->abcd", start, step, step, step)
    if protected is not None:
        start = np.array([0.2, 0.8])
        joint = np.einsum("a,ab,bc,cd->abcd", start, step, step, step)
    worst = 0.0
    for i in protected or range(4):
        best = math.inf
        for a in [None, *range(i)]:
            for b in [None, *range(i + 1, 4)]:
                kept = sorted({a, b} - {None})
                if most and any(abs(k - i) > most for k in kept):
                    continue
                size = (i if a is None else i - a - 1) + 1
                size += 3 - i if b is None else b - i - 1
                axes = tuple(k for k in range(4) if k != i and k not in kept)
                law = np.moveaxis(joint.sum(axis=axes), sorted([*kept, i]).index(i), 0)
                law = law.reshape(2, -1) / law.reshape(2, -1).sum(axis=1)[:, None]
                found = max(of_order(p, q, order) for p, q in (law, law[::-1]))
                u = size / 4
                mean = order / (2 * order - 1) * math.exp(min(order, 9) * u - u)
                mean += (order - 1) / (2 * order - 1) * math.exp(-min(order, 9) * u)
                cost = u if math.isinf(order) else math.log(mean) / (order - 1)
                best = min(best, found + cost)
        worst = max(worst, best)
    chain = CHAIN | {"initial": start.tolist(), "protected": protected}
    curve = QUILT | {"quilts": [chain], "max_distance": most}
    assert worst_quilt(curve, order)[0] == pytest.approx(worst)


def near_sets(start, step, n, i):
    """Sizes and quilts of a record, with what they tell of its value, both ways."""
    joint = start.reshape(-1, *[1] * (n - 1))
    for k in range(n - 1):
        shape = [1] * n
        shape[k : k + 2] = step.shape
        joint = joint * step.reshape(shape)
    for a in [None, *range(i)]:
        for b in [None, *range(i + 1, n)]:
            kept = sorted({a, b} - {None})
            size = (n if b is None else b) - (-1 if a is None else a) - 1
            axes = tuple(k for k in range(n) if k != i and k not in kept)
            law = np.moveaxis(joint.sum(axis=axes), sorted([*kept, i]).index(i), 0)
            law = law.reshape(len(start), -1)
            yield size, kept, law / law.sum(axis=1)[:, None]


@pytest.mark.parametrize("order", [1.5, math.inf])
@pytest.mark.parametrize("most", [None, 1, 2, 4])
def test_the_cheapest_quilt_of_each_record_of_a_longer_chain(order, most):
    """Of a chain that is not the same backwards, whose values are three."""
    start = np.array([0.6, 0.3, 0.1])
    step = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.3, 0.1, 0.6]])
    n, chosen = 5, set()
    for i in range(n):
        quilts = list(near_sets(start, step, n, i))
        for scale in (0.5, 3.0, 4.0, 5.0, 8.0):
            options = {}
            for size, kept, law in quilts:
                if most and any(abs(k - i) > most for k in kept):
                    continue
                told = max(
                    of_order(law[x], law[y], order)
                    for x in range(3)
                    for y in range(3)
                    if x != y
                )
                noise = shifted(scale, size, "laplace")
                cost = told + recomputed(noise).renyi(order)
                options[cost] = size, tuple(kept)
            cost = min(options)
            chain = CHAIN | {"initial": start.tolist(), "transition": step.tolist()}
            chain |= {"n_records": n, "protected": [i]}
            part = QUILT["parts"][0] | {"noise": {"family": "laplace", "scale": scale}}
            curve = QUILT | {"quilts": [chain], "parts": [part], "max_distance": most}
            assert worst_quilt(curve, order)[0] == pytest.approx(cost, rel=1e-9)
            # and this is what the curve costs, and not the size of the near set
            assert recomputed(curve).renyi(order) == pytest.approx(cost, rel=1e-9)
            chosen.add(options[cost][1])
    if most == 1:
        assert len(chosen) > 2
    else:
        # quilts of one side, of both, and none are met
        assert {len(kept) for kept in chosen} == {0, 1, 2}


def test_of_several_quilts_and_records_the_worst_counts():
    masses = [[[0.9, 0.1], [0.7, 0.3]], [[True, True], [True, True]]]

    def listed(*sizes):
        records = [
            [at, [size], [[3]], [masses], [[False, True], [True, False]]]
            for at, size in enumerate(sizes)
        ]
        known = {"kind": "listed_quilts", "described": {}, "steps": 1}
        return known | {"records": records}

    told = math.log(3)
    for quilts in (
        [listed(1.0, 3.0)],
        [listed(3.0, 1.0)],
        [listed(1.0), listed(3.0)],
        [listed(3.0), listed(1.0)],
    ):
        cost, size = worst_quilt(QUILT | {"quilts": quilts}, math.inf)
        assert (cost, size) == (pytest.approx(told + 3 / 4), 3.0)


def test_a_value_that_never_occurs_changes_nothing():
    """Whatever its row of transitions says."""
    two = CHAIN | {"transition": [[0.8, 0.2], [0.4, 0.6]]}
    three = CHAIN | {
        "initial": [0.5, 0.5, 0.0],
        "transition": [[0.8, 0.2, 0.0], [0.4, 0.6, 0.0], [0.1, 0.1, 0.8]],
    }
    for scale in (1.0, 3.0, 5.0):
        part = QUILT["parts"][0] | {"noise": {"family": "laplace", "scale": scale}}
        costs = [
            worst_quilt(QUILT | {"quilts": [chain], "parts": [part]}, math.inf)[0]
            for chain in (two, three)
        ]
        assert costs[0] == pytest.approx(costs[1], rel=1e-12)
        assert 0 < costs[1] < math.inf


def of_order(p, q, order):
    if math.isinf(order):
        return math.log(np.max(p / q))
    return math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)


def test_only_pairs_that_are_secret_are_compared():
    start = [0.5, 0.3, 0.2]
    step = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    one_way = [[False, False, True], [False, False, False], [False, False, True]]
    back = np.transpose(one_way).tolist()
    chain = CHAIN | {"initial": start, "transition": step, "n_records": 2}
    parts = [QUILT["parts"][0] | {"noise": {"family": "laplace", "scale": 1e-9}}]
    curve = QUILT | {"parts": parts}
    laplace = 1e9
    # the likelihood ratios of a neighbour, ahead or by Bayes' rule behind
    for compared, ratio in (
        (one_way, 8 / 3),
        (back, 4 / 3 * 0.49 / 0.16),
        (None, 11.2),
    ):
        price, size = worst_quilt(
            curve | {"quilts": [chain | {"pairs": compared}]}, math.inf
        )
        assert size == 1.0
        assert price - laplace == pytest.approx(math.log(ratio), abs=1e-5)
    # a value that never occurs is no secret
    chain = chain | {"initial": [0.5, 0.5, 0.0], "n_records": 1}
    assert worst_quilt(QUILT | {"quilts": [chain]}, math.inf) == (0.25, 1.0)


def test_quilts_that_are_listed():
    masses = [[[0.9, 0.1], [0.7, 0.3]], [[True, True], [True, True]]]
    whole = [[[1.0], [1.0]], [[True], [True]]]
    record = [0, [2.0, 1.0], [[], [3]], [whole, masses], [[False, True], [True, False]]]
    listed = {"kind": "listed_quilts", "records": [record], "described": {}, "steps": 1}
    curve = QUILT | {"quilts": [listed]}
    assert worst_quilt(curve, math.inf) == (2 / 4, 2.0)
    noise = {"family": "laplace", "scale": 0.5}
    narrow = curve | {"parts": [QUILT["parts"][0] | {"noise": noise}]}
    assert worst_quilt(narrow, math.inf) == (pytest.approx(2 + math.log(3)), 1.0)
    # the quilt lies three records away
    assert worst_quilt(narrow | {"max_distance": 3}, math.inf)[1] == 1.0
    assert worst_quilt(narrow | {"max_distance": 2}, math.inf) == (4.0, 2.0)
    one = [0, [1.0], [[3]], [masses], [[False, True], [False, False]]]
    only = narrow | {"quilts": [listed | {"records": [one]}]}
    assert worst_quilt(only, math.inf)[0] == pytest.approx(2 + math.log(9 / 7))
    # what tells two values apart for sure is no quilt
    told = [[[1.0, 0.0], [0.0, 1.0]], masses[1]]
    sure = narrow | {"quilts": [listed | {"records": [one[:3] + [[told], one[4]]]}]}
    assert worst_quilt(sure, math.inf)[0] == math.inf


def test_parts_of_a_quilt_are_added_with_what_they_move():
    part = QUILT["parts"][0]
    parts = [
        part | {"move": 2.0, "slack": 0.5},
        part | {"noise": {"family": "laplace", "scale": 2.0}, "units": [3.0]},
    ]
    chain = CHAIN | {"n_records": 1}
    price, size = worst_quilt(QUILT | {"parts": parts, "quilts": [chain]}, math.inf)
    assert (price, size) == (pytest.approx(2.5 / 4 + 3 / 2), 1.0)


# -- the best of several runs ----------------------------------------------------------


@pytest.mark.parametrize("shape", [0.0, 1.0, 2.5, "inf"])
def test_the_slope_of_what_generates_a_number_of_runs(shape):
    """From the chances of each number, of which there are none of no run."""
    from skpuffer.certificate._structure import log_slope

    k = np.arange(1, 4000)
    made = log_slope({"mean": 4.0, "shape": shape})
    slope = np.exp(made(np.array([0.0, 0.1, 0.6, 0.99])))
    assert slope[0] == pytest.approx(4.0)
    # the law of the number, by the same mean
    factorials = special.gammaln(k + 1)
    rise = 0.0 if shape == "inf" else special.gammaln(k + shape)
    low, high = (0.1, 20.0) if shape == "inf" else (0.01, 0.99999)
    for _ in range(80):
        middle = (low + high) / 2
        logs = rise - factorials + k * math.log(middle)
        weights = np.exp(logs - logs.max())
        mean = (weights @ k) / weights.sum()
        low, high = (middle, high) if mean < 4.0 else (low, middle)
    weights = weights / weights.sum()
    known = [np.sum(weights * k * (1 - p) ** (k - 1.0)) for p in (0.0, 0.1, 0.6, 0.99)]
    assert slope == pytest.approx(known, rel=1e-6)


def test_how_probable_an_event_may_be_elsewhere():
    from skpuffer.certificate._structure import most_probable

    p, q = most_probable(lambda e: normal_delta(1.0, e), 12.0, math.inf)
    known = stats.norm.cdf(stats.norm.ppf(p) + 1.0)
    assert q == pytest.approx(known, rel=2e-3, abs=1e-5)
    assert np.all(q >= known - 1e-12)
    p, q = most_probable(lambda e: max(0.0, 0.2 - e), 0.1, 0.3)
    assert q == pytest.approx(
        np.min(
            [
                np.ones(len(p)),
                math.exp(0.3) * p,
                1 - math.exp(-0.3) * (1 - p),
                *[
                    bound
                    for e in np.linspace(0, 0.1, 200)
                    for bound in (
                        math.exp(e) * p + 0.2 - e,
                        1 - math.exp(-e) * (0.8 + e - p),
                    )
                ],
            ],
            axis=0,
        )
    )


def test_the_best_of_a_poisson_number_of_laplace_runs():
    """Papernot and Steinke (2022), Theorem 6, with the trade-off in closed form."""
    u, mean = 0.3, 4.0
    made = recomputed(BEST | {"curve": shifted(1 / u, family="laplace")})
    rate = optimize.brentq(lambda r: r / -math.expm1(-r) - mean, 1.0, 9.0)
    p = np.linspace(0, 1, 100_001)
    middle = 1 - math.exp(-u) / (4 * np.maximum(p, 1e-9))
    q = np.where(p < 0.5, middle, 1 - math.exp(-u) * (1 - p))
    q = np.where(p < math.exp(-u) / 2, math.exp(u) * p, q)
    far = rate * np.max(q - p)
    assert far == pytest.approx(rate * -math.expm1(-u / 2))
    assert made.renyi(math.inf) == pytest.approx(u + far, rel=1e-4)

    def cost(a):
        rising = a / (2 * a - 1) * np.exp((a - 1) * u)
        one = np.log(rising + (a - 1) / (2 * a - 1) * np.exp(-a * u)) / (a - 1)
        return one + (math.log(mean) + rate * np.max((a - 1) * q - a * p)) / (a - 1)

    for order in (2.0, 8.0):
        assert made.renyi(order) == pytest.approx(cost(order), rel=1e-4)
    orders = 1 + np.geomspace(1e-1, 1e3, 400)
    costs = np.array([cost(a) for a in orders])
    # up to where the trade-off is all that proves anything
    for epsilon in (0.2, 0.7, 0.8, 0.9, far + 0.28, far + 0.295):
        logs = (orders - 1) * (costs - epsilon) + orders * np.log1p(-1 / orders)
        known = min(1.0, math.exp(np.min(logs - np.log(orders - 1))))
        if epsilon > far:
            known = min(known, mean * max(0.0, -math.expm1((epsilon - far - u) / 2)))
        assert made.delta(epsilon) == pytest.approx(known, rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
def test_the_trade_off_of_the_best_of_few_gaussian_runs(mu):
    """The mean number of runs at what the largest ratio of the densities leaves."""
    runs = {"kind": "random_runs", "mean": 1.2, "shape": "inf"}
    made = recomputed(BEST | {"curve": gaussian(mu), "runs": runs})
    rate = optimize.brentq(lambda r: r / -math.expm1(-r) - 1.2, 0.01, 2.0)
    far = rate * normal_delta(mu, 0.0)
    for rest in (mu, 2 * mu, 3 * mu):
        known = 1.2 * normal_delta(mu, rest)
        assert made.delta(far + rest) == pytest.approx(known, rel=5e-3)
        assert made.delta(far + rest) >= known * (1 - 1e-9)


def test_the_best_of_runs_of_what_tells_nothing():
    made = recomputed(BEST | {"curve": gaussian(0.0)})
    assert made.renyi(4.0) == pytest.approx(math.log(4.0) / 3)
    assert made.renyi(math.inf) == pytest.approx(0.0, abs=1e-9)
    assert made.delta(0.5) == pytest.approx(0.0, abs=1e-9)
