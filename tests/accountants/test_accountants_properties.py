"""What must hold whatever the laws: orderings, inverses, invariances."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.distributions import Discrete, PointMass
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario

values = st.integers(-8, 8).map(float)
laws = st.lists(values, min_size=1, max_size=6).map(Discrete)
pairs_of_distributions = st.lists(st.tuples(laws, laws), min_size=1, max_size=3)
epsilons = st.floats(1e-3, 10)
orders = st.floats(1.05, 100)
noises = st.sampled_from(["gaussian", "laplace"])
deltas = st.floats(1e-9, 0.5)
tables = st.lists(
    st.tuples(st.sampled_from("abc"), values, values), min_size=4, max_size=25
).filter(lambda rows: len({secret for secret, _, _ in rows}) > 1)


@st.composite
def budgets(draw):
    """Parameters of an accountant with any kind of target it may have."""
    kind = draw(st.sampled_from(["renyi", "pure", "approximate"]))
    epsilon = draw(epsilons)
    if kind == "renyi":
        return {"epsilon": epsilon, "alpha": draw(orders), "noise": draw(noises)}
    if kind == "pure":
        return {"epsilon": epsilon, "alpha": math.inf, "noise": "laplace"}
    return {"epsilon": epsilon, "delta": draw(deltas), "noise": draw(noises)}


def identity(X, y):
    return np.asarray(X, dtype=float)


def given_laws(dim=1, units=None):
    return QueryRelease(query=lambda X, y: X, n_records=4, dim=dim, units=units)


def distances(release, scenario, **options):
    accountant = GeneralWasserstein(**options)
    return accountant.calibrate(release, scenario).certificate.sensitivity


def prior(rows):
    return pd.DataFrame(rows, columns=["secret", "x", "z"])


def attribute(rows, level="record", **options):
    options = {"prior_as": "law"} | options
    return AttributeScenario("secret", level=level, prior=prior(rows), **options)


def clipped_sum(n=10, **options):
    """Sum of two columns in [-8, 8], over n."""
    return QueryRelease(
        contribution=identity,
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=2,
        sensitivity=Sensitivity(
            add_remove={1: 16 / n, 2: 8 * 2**0.5 / n},
            replace={1: 32 / n, 2: 16 * 2**0.5 / n},
        ),
        **options,
    )


# -- to a noise and back ---------------------------------------------------------------


@given(budgets(), st.floats(1e-6, 1e6))
def test_the_noise_found_keeps_the_budget(budget, distance):
    accountant = GeneralWasserstein(**budget)
    scenario = LawsScenario([(PointMass(0.0), PointMass(distance))])
    found = accountant.calibrate(given_laws(), scenario)
    back = accountant.certify(found.noise, given_laws(), scenario)
    # stated exactly, and true as computed from the noise alone
    assert found.certificate.epsilon == budget["epsilon"]
    assert back.epsilon <= budget["epsilon"] * (1 + 1e-9)
    assert back.notion == found.certificate.notion
    curve = found.certificate.curve
    if "delta" in budget:
        assert curve.delta(budget["epsilon"]) <= budget["delta"]
    else:
        assert curve.renyi(budget["alpha"]) <= budget["epsilon"]
    # and no smaller noise of the family would have done
    if "delta" not in budget:
        smaller = found.noise.with_scale(0.999 * found.noise.scale)
        assert (
            accountant.certify(smaller, given_laws(), scenario).epsilon
            > (budget["epsilon"])
        )


@given(noises, st.floats(0.1, 10), st.floats(0.1, 10), orders)
def test_a_noise_found_for_what_it_costs(noise, scale, distance, alpha):
    """The way there is the inverse of the way back."""
    accountant = GeneralWasserstein(alpha=alpha, noise=noise)
    scenario = LawsScenario([(PointMass(0.0), PointMass(distance))])
    family = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}[noise]
    cost = accountant.certify(family(scale), given_laws(), scenario).epsilon
    # a Laplace cost that is its limit to the last digit has no inverse
    assume(noise == "gaussian" or cost < 0.98 * distance / scale)
    again = GeneralWasserstein(epsilon=cost, alpha=alpha, noise=noise)
    assert again.calibrate(given_laws(), scenario).noise.scale == pytest.approx(
        scale, rel=1e-6
    )


# -- more budget, less noise -----------------------------------------------------------


@given(budgets(), st.floats(1.01, 10))
def test_noise_falls_with_epsilon(budget, more):
    scenario = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    richer = budget | {"epsilon": more * budget["epsilon"]}
    scales = [
        GeneralWasserstein(**b).calibrate(given_laws(), scenario).noise.scale
        for b in (budget, richer)
    ]
    assert scales[1] < scales[0]


@given(noises, epsilons, orders, st.floats(1.01, 5))
def test_noise_rises_with_the_order(noise, epsilon, alpha, more):
    scenario = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    low, high = (
        GeneralWasserstein(epsilon=epsilon, alpha=a, noise=noise)
        .calibrate(given_laws(), scenario)
        .noise.scale
        for a in (alpha, more * alpha)
    )
    assert high >= low * (1 - 1e-9)
    if noise == "gaussian":
        assert high == pytest.approx(low * more**0.5, rel=1e-9)


@given(budgets(), st.integers(1, 20))
def test_groups_cost_as_many_times(budget, k):
    release = clipped_sum()
    one, many = (
        GroupPrivacy(**budget).calibrate(release, RecordScenario(k=size)).noise.scale
        for size in (1, k)
    )
    assert many == pytest.approx(k * one, rel=1e-6)


@given(budgets())
def test_four_records_cost_four_times_and_replacing_twice(budget):
    accountant = GroupPrivacy(**budget)
    release = clipped_sum()
    base = accountant.calibrate(release, RecordScenario()).noise.scale
    four = accountant.calibrate(release, RecordScenario(k=4)).noise.scale
    replaced = accountant.calibrate(release, RecordScenario(relation="replace"))
    assert four == pytest.approx(4 * base, rel=1e-6)
    assert replaced.noise.scale == pytest.approx(2 * base, rel=1e-6)
    assert replaced.certificate.relation == "replace"


# -- Wasserstein never costs more ------------------------------------------------------


@given(tables, budgets(), st.sampled_from(["record", "dataset"]))
def test_wasserstein_never_needs_more_than_groups(rows, budget, level):
    for prior_as in ("law", "support"):
        scenario = attribute(rows, level=level, prior_as=prior_as)
        release = clipped_sum()
        laws, groups = (
            kind(**budget).calibrate(release, scenario)
            for kind in (GeneralWasserstein, GroupPrivacy)
        )
        assert np.all(laws.noise.scale <= groups.noise.scale * (1 + 1e-9))
        assert not laws.certificate.composable
        # which in turn never need more than every record becoming any other
        count = 1 if level == "record" else release.n_records
        arbitrary = GroupPrivacy(**budget).calibrate(
            release, RecordScenario(k=count, relation="replace")
        )
        assert groups.noise.scale <= arbitrary.noise.scale * (1 + 1e-9)


@given(tables, noises)
def test_any_law_on_a_support_costs_at_least_the_known_one(rows, noise):
    release = clipped_sum()
    law, support = (
        distances(release, attribute(rows, prior_as=prior_as), noise=noise)
        for prior_as in ("law", "support")
    )
    assert law <= support * (1 + 1e-12)


@given(tables)
def test_the_whole_table_costs_at_most_n_records(rows):
    release = clipped_sum(n=7)
    record = distances(release, attribute(rows))
    table = distances(release, attribute(rows, level="dataset"))
    assert table == pytest.approx(7 * record, rel=1e-12)


@given(tables, tables)
def test_more_beliefs_cost_no_less(rows, more):
    one, other = prior(rows), prior(more)
    release = clipped_sum()

    def cost(tables):
        scenario = AttributeScenario(
            "secret", level="record", prior=tables, prior_as="law"
        )
        return distances(release, scenario)

    both = cost([one, other])
    assert both == pytest.approx(max(cost([one]), cost([other])), rel=1e-12)


# -- what must not matter --------------------------------------------------------------


@given(pairs_of_distributions, st.randoms(use_true_random=False))
def test_order_of_pairs_and_within_pairs(pairs, random):
    shuffled = [tuple(random.sample(pair, 2)) for pair in pairs]
    random.shuffle(shuffled)
    assert distances(given_laws(), LawsScenario(pairs)) == distances(
        given_laws(), LawsScenario(shuffled)
    )


@given(tables, st.permutations("abc"), st.randoms(use_true_random=False))
def test_names_of_secrets_and_order_of_rows(rows, names, random):
    renamed = [
        (dict(zip("abc", names, strict=True))[secret], x, z) for secret, x, z in rows
    ]
    random.shuffle(renamed)
    for level in ("record", "dataset"):
        assert distances(clipped_sum(), attribute(rows, level)) == pytest.approx(
            distances(clipped_sum(), attribute(renamed, level)), rel=1e-12
        )


@given(tables, st.sampled_from([-1.0, 1.0]), st.floats(0.01, 100))
def test_factor_scales_and_its_sign_does_not_matter(rows, sign, factor):
    def summed(factor):
        return QueryRelease(
            contribution=identity, is_sum=True, factor=factor, n_records=5, dim=2
        )

    one = distances(summed(1.0), attribute(rows))
    assert distances(summed(sign * factor), attribute(rows)) == pytest.approx(
        factor * one, rel=1e-12
    )


@given(pairs_of_distributions, st.floats(0.01, 100), budgets())
def test_noise_follows_the_unit_of_the_output(pairs, unit, budget):
    """Laws measured in another unit get noise in that unit, and the same promise."""
    scaled = [tuple(Discrete(unit * u.points) for u in pair) for pair in pairs]
    accountant = GeneralWasserstein(**budget)
    plain, converted, declared = (
        accountant.calibrate(release, LawsScenario(laws))
        for release, laws in (
            (given_laws(), pairs),
            (given_laws(), scaled),
            (given_laws(units=(unit,)), scaled),
        )
    )
    assert converted.noise.scale == pytest.approx(unit * plain.noise.scale, rel=1e-6)
    assert np.ravel(declared.noise.scale)[0] == pytest.approx(
        unit * plain.noise.scale, rel=1e-6
    )
    assert declared.certificate.sensitivity == pytest.approx(
        plain.certificate.sensitivity, rel=1e-9
    )


def test_each_coordinate_has_its_own_unit():
    """Noise in proportion to units, and a distance that is measured in them."""
    u, v = PointMass([0.0, 0.0]), PointMass([3.0, 400.0])
    release = given_laws(dim=2, units=(1.0, 100.0))
    for noise, norm in (("gaussian", 5.0), ("laplace", 7.0)):
        accountant = GeneralWasserstein(alpha=2, epsilon=1.0, noise=noise)
        found = accountant.calibrate(release, LawsScenario([(u, v)]))
        assert found.certificate.sensitivity == pytest.approx(norm)
        scale = np.asarray(found.noise.scale)
        assert scale[1] == pytest.approx(100 * scale[0])
        # what that noise costs is what the shift costs coordinate by coordinate
        true = sum(
            found.noise.with_scale(float(s)).renyi(2, d)
            for s, d in zip(scale, (3.0, 400.0), strict=True)
        )
        assert true <= 1.0 + 1e-9
        if noise == "gaussian":
            assert true == pytest.approx(1.0)


@given(tables)
def test_units_of_a_sum(rows):
    """Contributions in units, noise in the output's own: the same promise."""
    units = (0.5, 20.0)
    plain = distances(clipped_sum(), attribute(rows))
    release = clipped_sum(units=units)
    found = GeneralWasserstein().calibrate(release, attribute(rows))
    assert found.certificate.sensitivity == pytest.approx(plain, rel=1e-12)
    if plain > 0:
        ratio = np.asarray(found.noise.scale) / np.asarray(units)
        assert ratio[0] == pytest.approx(ratio[1])
    for kind in (GeneralWasserstein, GroupPrivacy):
        certificate = kind().calibrate(release, attribute(rows)).certificate
        assert certificate.sensitivity == pytest.approx(plain, rel=1e-12)


def test_two_noises_of_other_proportions_are_certified_by_their_worst_coordinate():
    u, v = PointMass([0.0, 0.0]), PointMass([1.0, 1.0])
    release = given_laws(dim=2)
    certificate = GeneralWasserstein(alpha=2).certify(
        GaussianNoise([1.0, 4.0]), release, LawsScenario([(u, v)])
    )
    true = 1.0 + 1 / 16  # alpha / 2 * sum of squares of shift over scale
    worst = 2.0  # all of the l2 shift in the first coordinate
    assert true <= certificate.epsilon == pytest.approx(worst)


def test_a_secret_that_does_not_reach_the_release():
    scenario = attribute([("a", 1.0, 2.0), ("b", 1.0, 2.0)])
    for kind in (GeneralWasserstein, GroupPrivacy):
        found = kind().calibrate(clipped_sum(), scenario)
        assert found.noise.is_zero
        assert found.certificate.epsilon == 0.0
        assert found.certificate.gain == math.inf
