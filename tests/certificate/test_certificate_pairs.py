"""Steps of every kind: their costs at an order, and what several of them add up to."""

import json
import math

import numpy as np
import pytest
from scipy import integrate, stats

from skpuffer.certificate._curves import alternatives, recomputed
from skpuffer.certificate._pairs import pairs_of, renyi_of
from skpuffer.certificate._structure import composed_delta, composed_epsilon
from skpuffer.kernel.composed_curves import SymmetricPair
from skpuffer.kernel.distribution import _directions
from skpuffer.kernel.pairs import ReplacePoissonPair, SubsetGroupPair, renyi_of_pair
from skpuffer.kernel.poisson_groups import GaussianPoissonPair
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy_loss import (
    BoundedRangePair,
    MixturePair,
    PoissonPair,
    PurePair,
    ShiftPair,
    SubsetPair,
)

from .test_certificate_costs import MU, SYMMETRIC, batch, moved
from .test_certificate_rules import gaussian, losses, normal_delta, pair, shifted


def one_of(kind, **fields):
    (made,) = pairs_of(batch(kind, **fields) | {"curve": shifted(1 / MU)})
    return made


# -- costs at an order -----------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.2, 2.0, 7.0])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_cost_at_an_order_is_that_of_the_divergences(name, alpha):
    """Liese and Vajda (2006): the second derivative of a power, by either direction."""
    fields, known = SYMMETRIC[name]
    if name != "gaussian":
        fields = fields | {"curve": shifted(1 / MU)}
    (made,) = pairs_of(fields)

    def weighted(e):
        return (math.exp((alpha - 1) * e) + math.exp(-alpha * e)) * known(e)

    total, _ = integrate.quad(weighted, 0.0, 60.0, epsabs=1e-13, limit=400)
    cost = math.log1p(alpha * (alpha - 1) * total) / (alpha - 1)
    assert renyi_of(made, alpha) == pytest.approx(cost, rel=1e-5)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 9.0, 60.0])
def test_the_cost_of_a_pure_step_is_that_of_two_answers(alpha):
    (made,) = pairs_of({"kind": "pure_pair", "epsilon": 0.8})
    p = 1 / (1 + math.exp(-0.8))
    mean = p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)
    assert renyi_of(made, alpha) == pytest.approx(math.log(mean) / (alpha - 1), 1e-6)


@pytest.mark.parametrize("alpha", [2.0, 300.0])
def test_a_step_of_noise_alone_costs_what_the_noise_does(alpha):
    """At orders as well that are too large to integrate."""
    for kind in ("shift_pair", "symmetric_pair"):
        assert renyi_of(one_of(kind), alpha) == pytest.approx(alpha * MU**2 / 2)
    whole = one_of("poisson_pair", rate=1.0)
    assert renyi_of(whole, alpha) == pytest.approx(alpha * MU**2 / 2)
    (never,) = pairs_of(batch("poisson_pair", rate=0.0))
    assert renyi_of(never, 2.0) == 0.0


@pytest.mark.parametrize("alpha", [2.0, 5.0])
def test_a_batch_of_groups_costs_the_worse_of_two_directions(alpha):
    made = one_of("gaussian_poisson_pair", rate=0.3, first=2, second=1)
    x, step = np.linspace(-14.0, 16.0, 60_001, retstep=True)
    p = sum(w * stats.norm.pdf(x - MU * k) for k, w in enumerate((0.49, 0.42, 0.09)))
    q = 0.7 * stats.norm.pdf(x) + 0.3 * stats.norm.pdf(x + MU)
    costs = [
        math.log(np.sum(a**alpha * b ** (1 - alpha)) * step) / (alpha - 1)
        for a, b in ((p, q), (q, p))
    ]
    assert renyi_of(made, alpha) == pytest.approx(max(costs), rel=1e-5)


# -- what they add up to ---------------------------------------------------------------

#: Of every kind, in batches of Gaussian or of Laplace noise.
STEPS = {
    "poisson": batch("poisson_pair", rate=0.3),
    "poisson laplace": batch("poisson_pair", rate=0.3)
    | {"curve": shifted(2.0, family="laplace")},
    "poisson integers": batch("poisson_pair", rate=0.3)
    | {"curve": shifted(2.0, family="discrete_laplace")},
    "subset": batch("subset_pair", rate=0.3),
    "replaced": batch("replace_poisson_pair", rate=0.3),
    "mixture": batch("mixture_pair", trials=3, chance=0.2),
    "group of subsets": batch("subset_group_pair", n_records=10, batch_size=2, count=3),
    "group": batch("gaussian_poisson_pair", rate=0.3, first=2, second=1),
    "pure": {"kind": "pure_pair", "epsilon": 0.8},
    "choice": {"kind": "bounded_range_pair", "eta": 0.8},
    "gaussian": pair(gaussian(0.7)),
    "laplace": pair(shifted(2.0, family="laplace")),
    "student": pair(
        shifted()
        | {"noise": {"family": "generalized_cauchy", "scale": 2.0, "exponent": 4.0}}
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_one_step_alone_is_what_its_worse_direction_says(name):
    (made,), epsilon = pairs_of(STEPS[name]), 0.1
    at = np.array([epsilon])
    known = max(float(made.forward(at)[0]), float(made.backward(at)[0]))
    assert composed_delta([(made, 1)], epsilon) == pytest.approx(known, rel=1e-3)
    assert composed_epsilon([(made, 1)], known, epsilon) == pytest.approx(
        epsilon, rel=2e-3
    )


@pytest.mark.parametrize("count", [2, 5])
def test_pure_steps_add_up_by_a_binomial_law(count):
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3."""
    (made,) = pairs_of({"kind": "pure_pair", "epsilon": 0.4})
    k = np.arange(count + 1)
    p = stats.binom.pmf(k, count, 1 / (1 + math.exp(-0.4)))
    for epsilon in (0.1, 0.5):
        known = np.maximum(p - math.exp(epsilon) * p[::-1], 0.0).sum()
        assert composed_delta([(made, count)], epsilon) == pytest.approx(
            known, rel=2e-3
        )


def of_two(first, second, epsilon):
    """Divergence of two steps together, by their densities on a grid."""
    (p, q), (r, s) = first, second
    ahead, behind = np.outer(p, r), np.outer(q, s)
    return float(np.maximum(ahead - math.exp(epsilon) * behind, 0.0).sum())


_X = np.linspace(-7.0, 9.0, 801)


def densities(shares):
    law = sum(w * stats.norm.pdf(_X - m) for m, w in shares.items())
    return law * (_X[1] - _X[0])


@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_two_sampled_steps_are_the_worse_of_two_directions(epsilon):
    one = one_of("poisson_pair", rate=0.3)
    sampled = densities({0: 0.7, MU: 0.3}), densities({0: 1.0})
    group = one_of("gaussian_poisson_pair", rate=0.3, first=2, second=1)
    several = (
        densities({0: 0.49, MU: 0.42, 2 * MU: 0.09}),
        densities({0: 0.7, -MU: 0.3}),
    )
    for steps, laws in (
        ([(one, 2)], (sampled, sampled)),
        ([(group, 2)], (several, several)),
        ([(one, 1), (group, 1)], (sampled, several)),
    ):
        known = max(
            of_two(*laws, epsilon), of_two(*(law[::-1] for law in laws), epsilon)
        )
        assert composed_delta(steps, epsilon) == pytest.approx(known, rel=2e-3)


def test_unlike_steps_are_added_and_not_one_of_them_alone():
    """Answers at odds of exp(0.4) beside a move of one, given either answer."""
    steps = [
        (made, 1)
        for event in ({"kind": "pure_pair", "epsilon": 0.4}, pair(gaussian(1.0)))
        for made in pairs_of(event)
    ]
    likely = 1 / (1 + math.exp(-0.4))
    for epsilon in (0.6, 1.5):
        known = likely * normal_delta(1.0, epsilon - 0.4)
        known += (1 - likely) * normal_delta(1.0, epsilon + 0.4)
        assert composed_delta(steps, epsilon) == pytest.approx(known, rel=2e-3)
        assert composed_epsilon(steps, known, 1.0) == pytest.approx(epsilon, rel=2e-3)


def test_each_way_to_change_a_group_is_combined_with_each():
    group = batch("gaussian_poisson_group", rate=0.3, count=2)
    chosen = list(alternatives([[group, 3], [pair(gaussian(1.0)), 2], [group, 1]]))
    assert [[count for _, count in steps] for steps in chosen] == [[3, 2, 1]] * 4
    ways = pairs_of(group)
    assert [(steps[0][0], steps[2][0]) for steps in chosen] == [
        (a, b) for a in ways for b in ways
    ]


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_step_tells_next_to_nothing_beyond_what_it_tells_at_most(share):
    """At large epsilons, where the rate is all that is left of a sampled one."""
    made = one_of("subset_pair", rate=share)
    for e in (4.0, 31.0, 40.0):
        known = moved(share, {1: share})(e)
        found = float(made.forward(np.array([e]))[0])
        assert found == pytest.approx(known, rel=1e-9, abs=1e-15)
    (wide,) = pairs_of(batch("subset_pair", rate=0.3) | {"curve": shifted(0.1)})
    for e in (29.0, 31.0, 45.0):
        grown = e - math.log(0.3)
        known = 0.3 * normal_delta(10.0, grown)
        found = float(wide.forward(np.array([e]))[0])
        assert found == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_group_costs_what_the_worst_way_to_change_it_does(rate):
    group = batch("gaussian_poisson_group", rate=rate, count=2)
    event = group | {"curve": shifted(1 / MU)}
    p, q = 1 - rate, rate
    added = densities({0: p * p, MU: 2 * p * q, 2 * MU: q * q}), densities({0: 1.0})
    replaced = densities({0: p, MU: q}), densities({0: p, -MU: q})
    made = recomputed(losses((event, 1)))
    for epsilon in (0.1, 0.4):
        known = [
            np.maximum(a - math.exp(epsilon) * b, 0.0).sum()
            for a, b in (added, added[::-1], replaced, replaced[::-1])
        ]
        assert made.delta(epsilon) == pytest.approx(max(known), rel=2e-3)
        assert made.epsilon(max(known), epsilon) == pytest.approx(epsilon, rel=2e-3)
        # of the others it is less
        assert min(known) < 0.99 * max(known)


@pytest.mark.parametrize("mu", [0.05, 3.0])
@pytest.mark.parametrize("first, second", [(2, 1), (3, 0), (0, 1)])
def test_a_group_of_short_and_of_long_moves(mu, first, second):
    fields = {"rate": 0.3, "first": first, "second": second}
    (made,) = pairs_of(
        batch("gaussian_poisson_pair", **fields) | {"curve": shifted(1 / mu)}
    )
    x, step = np.linspace(-14.0, 20.0, 40_001, retstep=True)
    p, q = (
        sum(
            stats.binom.pmf(k, n, 0.3) * stats.norm.pdf(x - sign * mu * k)
            for k in range(n + 1)
        )
        for n, sign in ((first, 1), (second, -1))
    )
    for epsilon in (0.0, 0.01, 0.5, 4.0):
        for ask, a, b in ((made.forward, p, q), (made.backward, q, p)):
            known = np.maximum(a - math.exp(epsilon) * b, 0.0).sum() * step
            found = float(ask(np.array([epsilon]))[0])
            assert found == pytest.approx(known, rel=1e-6, abs=1e-9)


# -- the pairs that certificates state, and what the check makes of them ---------------

NOISES = {
    "gaussian": GaussianNoise(1.5).curve(1.0),
    "laplace": LaplaceNoise(2.0).curve(1.0),
}
OWN = {
    "shift": ShiftPair,
    "symmetric": SymmetricPair,
    "poisson": lambda noise: PoissonPair(noise, 0.2),
    "subset": lambda noise: SubsetPair(noise, 0.2),
    "replaced": lambda noise: ReplacePoissonPair(noise, 0.2),
    "mixture": lambda noise: MixturePair(noise, 3, 0.2),
    "once": lambda noise: MixturePair(noise, 1, 0.2),
    "group of subsets": lambda noise: SubsetGroupPair(noise, 20, 4, 3),
    "subsets that show": lambda noise: SubsetGroupPair(noise, 5, 4, 2),
    "group": lambda noise: GaussianPoissonPair(noise, 0.2, 2, 1),
    "group that is added": lambda noise: GaussianPoissonPair(noise, 0.2, 3, 0),
    "pure": lambda _: PurePair(0.7),
    "choice": lambda _: BoundedRangePair(0.7),
}


#: Of other noise than Gaussian a group in a Poisson batch has no pair, and a pure step
#: has none at all.
CASES = [
    (name, noise)
    for name in OWN
    for noise in NOISES
    if noise == "gaussian"
    or name not in ("group", "group that is added", "pure", "choice")
]


@pytest.mark.parametrize("name, noise", CASES)
def test_a_step_costs_where_it_is_checked_what_it_costs_where_it_is_certified(
    name, noise
):
    own = OWN[name](NOISES[noise])
    (made,) = pairs_of(json.loads(json.dumps(own.to_dict())))
    at = np.array([0.0, 0.03, 0.2, 0.6, 1.4])
    for found, known in (
        (own.delta(at), made.forward(at)),
        (own.reverse(at), made.backward(at)),
    ):
        assert np.asarray(found) == pytest.approx(known, rel=1e-6, abs=1e-12)
    # each of which takes the check long
    slow = {"choice": (), "group": (2.0,), "group that is added": (2.0,)}
    for alpha in slow.get(name, (1.5, 2.0, 6.0)):
        worse = [renyi_divergence_of(each, alpha) for each in _directions(own)]
        cost = renyi_of(made, alpha)
        # which are bounds, and near ones
        assert cost * (1 - 1e-5) <= max(worse) <= cost * 1.03 + 1e-6


def renyi_divergence_of(own, alpha):
    if hasattr(own, "renyi_costs"):
        return own.renyi_costs((alpha,))[0]
    if hasattr(own, "renyi"):
        return own.renyi(alpha)
    return float(renyi_of_pair(own, (alpha,))[0])
