"""The family of noise that an accountant chooses: the least expected error, truthfully.

Brute force over families by name, closed forms beside it, and where nothing is chosen.
"""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import clone

from skpuffer.accountants import (
    ApproximateWasserstein,
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
    SinkhornWasserstein,
)
from skpuffer.accountants._base import TRIED, least_error, mean_square, told_choice
from skpuffer.distributions import Discrete, Gaussian, PointMass, Samples
from skpuffer.exceptions import (
    InfiniteDistanceError,
    PrivacyWarning,
    Statement,
    UnsupportedError,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy import Notion, compose
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.refused import refused, says

RECORD, REPLACED = RecordScenario(), RecordScenario(relation="replace")
AUTO = (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
    SinkhornWasserstein,
)


def query(dim=1, l1=None, l2=None, **options):
    """Sum of columns in [0, 1], unless other sensitivities are stated."""
    l1, l2 = l1 or float(dim), l2 or math.sqrt(dim)
    return QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=100,
        dim=dim,
        sensitivity=Sensitivity(add_remove={1: l1, 2: l2}),
        **options,
    )


def counts(dim):
    """Histogram: a record is one count, whatever the number of bins."""
    return query(dim, 1.0, 1.0, is_integer=True)


def error(noise, dim):
    """Expected squared error, summed over coordinates."""
    return float(np.sum(noise.variance(dim)))


def by_name(accountant, release, scenario=RECORD):
    """Expected errors of all families that keep the promise, one by one."""
    found = {}
    for family in TRIED:
        named = clone(accountant).set_params(noise=family)
        try:
            noise = named.calibrate(release, scenario).noise
        except ValueError:
            continue
        found[family] = error(noise, release.dim)
    return found


def gaussian_error(epsilon, delta, l2, dim):
    """From the trade-off of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""

    def excess(mu):
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return norm.cdf(a) - math.exp(epsilon + norm.logcdf(b)) - delta

    return dim * (l2 / brentq(excess, 1e-6, 50, xtol=1e-14)) ** 2


def laplace_error(epsilon, delta, l1, dim):
    """From 1 - exp((epsilon - u) / 2) = delta for a move of u scales."""
    return 2 * dim * (l1 / (epsilon - 2 * math.log1p(-delta))) ** 2


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_family_is_the_least_of_closed_forms(epsilon, delta):
    for dim in range(1, 21):
        made = PrivacyLoss(epsilon, delta).calibrate(query(dim), RECORD)
        closed = {
            "gaussian": gaussian_error(epsilon, delta, math.sqrt(dim), dim),
            "laplace": laplace_error(epsilon, delta, dim, dim),
        }
        least = min(closed, key=closed.get)
        assert made.noise.family == least
        assert error(made.noise, dim) == pytest.approx(closed[least], rel=1e-6)


@pytest.mark.parametrize("make", [query, counts], ids=["columns", "counts"])
@pytest.mark.parametrize(
    "accountant",
    [
        GroupPrivacy(1.0, 2.0),
        GroupPrivacy(8.0, 2.0),
        GroupPrivacy(0.5, math.inf),
        RenyiDP(1.0, None, alpha=16.0),
        RenyiDP(4.0, 1e-6),
        GeneralWasserstein(2.0, delta=1e-5),
        PrivacyLoss(0.3, 1e-5),
    ],
    ids=repr,
)
def test_the_family_is_the_least_by_brute_force(accountant, make):
    for dim in (1, 2, 5, 9, 20):
        release = make(dim)
        made = accountant.calibrate(release, RECORD)
        errors = by_name(accountant, release)
        assert error(made.noise, dim) == pytest.approx(min(errors.values()), rel=1e-9)
        assert errors[made.noise.family] == min(errors.values())


def test_few_columns_take_laplace_noise_and_many_gaussian():
    found = [
        PrivacyLoss(1.0, 1e-5).calibrate(query(dim), RECORD).noise.family
        for dim in range(1, 13)
    ]
    assert found == ["laplace"] * 6 + ["gaussian"] * 6


def test_counts_take_noise_on_the_integers_where_a_budget_is_large():
    for epsilon in (0.1, 1.0, 10.0):
        made = GroupPrivacy(epsilon, math.inf).calibrate(counts(20), RECORD)
        assert made.noise.family == "discrete_laplace"
        t = math.exp(-epsilon)
        # the geometric mechanism (Ghosh, Roughgarden and Sundararajan 2012)
        assert made.noise.variance() == pytest.approx(2 * t / (1 - t) ** 2)
        laplace = 2 / epsilon**2
        assert made.noise.variance() < laplace
    # at a large budget of little more than nothing, not of a hundredth
    assert made.noise.variance() < 0.01 * laplace


@given(
    dim=st.integers(1, 30),
    epsilon=st.floats(0.05, 20),
    delta=st.floats(1e-10, 0.1),
    spread=st.floats(0, 1),
    whole=st.booleans(),
    relation=st.sampled_from(["add_remove", "replace"]),
)
def test_never_more_error_than_gaussian_noise(
    dim, epsilon, delta, spread, whole, relation
):
    """Whatever the two sensitivities, as far apart as norms may be."""
    release = query(dim, dim ** (spread / 2), 1.0, is_integer=whole)
    scenario = RecordScenario(relation=relation)
    before = PrivacyLoss(epsilon, delta, noise="gaussian")
    made = PrivacyLoss(epsilon, delta).calibrate(release, scenario)
    old = before.calibrate(release, scenario)
    assert error(made.noise, dim) <= error(old.noise, dim) * (1 + 1e-9)
    assert made.certificate.epsilon <= epsilon * (1 + 1e-9)
    assert made.certificate.delta == delta


def test_units_change_nothing_of_the_choice():
    for dim in (2, 9):
        units = tuple(np.geomspace(1, 1e6, dim).tolist())
        plain = PrivacyLoss().calibrate(query(dim), RECORD).noise
        spread = PrivacyLoss().calibrate(query(dim, units=units), RECORD).noise
        assert spread.family == plain.family


def test_equals_stay_with_the_usual_family():
    assert least_error([2.0, 2.0 * (1 - 1e-12), 2.5]) == 0
    assert least_error([2.0, 1.9, 1.9]) == 1
    # nothing moves: no noise of either
    still = query(1, is_integer=True)
    law = LawsScenario([(PointMass(0.0), PointMass(0.0))])
    assert GeneralWasserstein().calibrate(still, law).noise == GaussianNoise(0.0)


def test_what_is_measured_is_the_trace():
    assert mean_square(GaussianNoise((1.0, 2.0)), 2) == 5.0
    assert mean_square(LaplaceNoise(1.0), 3) == 6.0
    assert mean_square(LaplaceNoise(1.0), None) == 2.0


# -- certificates ----------------------------------------------------------------------


def test_a_certificate_says_which_family_and_why():
    made = PrivacyLoss(1.0, 1e-5).calibrate(query(), RECORD)
    certificate = made.certificate
    assert str(certificate.choice) == (
        "laplace noise, of the least mean square error; against it gaussian (6.96 ×)"
    )
    assert str(certificate.choice) in certificate.details()
    assert certificate.accountant == "PrivacyLoss()"
    # one that is named is chosen by nobody
    named = PrivacyLoss(1.0, 1e-5, noise="laplace").calibrate(query(), RECORD)
    assert named.certificate.choice == ""
    assert named.noise == made.noise
    assert told_choice(["laplace"], [2.0], 0) == Statement(
        "noise.only_family_keeping_promise", family="laplace"
    )


@pytest.mark.parametrize(
    "release", [query(), query(9), counts(3)], ids=["one", "nine", "counts"]
)
@pytest.mark.parametrize(
    "accountant",
    [
        GroupPrivacy(1.0, math.inf),
        GroupPrivacy(1.0, 4.0),
        PrivacyLoss(),
        RenyiDP(),
        ApproximateWasserstein(1.0, delta=1e-3),
    ],
    ids=repr,
)
def test_certify_is_the_way_back(accountant, release):
    made = accountant.calibrate(release, RECORD)
    back = accountant.certify(made.noise, release, RECORD)
    assert back.epsilon == pytest.approx(made.certificate.epsilon, rel=1e-6)
    assert (back.notion, back.accountant) == (
        made.certificate.notion,
        made.certificate.accountant,
    )


def test_the_notion_is_that_of_what_was_asked_for():
    """Laplace noise at a delta keeps a bit more than pure epsilon, and says so."""
    pure = GroupPrivacy(1.0, math.inf).calibrate(query(), RECORD).certificate
    assert pure.notion is Notion.PURE_DP
    assert pure.delta == 0
    assert says(pure.choice, "noise.only_family_keeping_promise", family="laplace")
    loose = PrivacyLoss(1.0, 1e-2).calibrate(query(), RECORD)
    assert loose.certificate.notion is Notion.APPROXIMATE_DP
    assert loose.certificate.delta == 1e-2
    # the scale is less than pure epsilon takes, so it does not keep that
    assert loose.noise.scale < 1
    assert loose.certificate.curve.renyi(math.inf) > 1


def test_certificates_of_both_families_compose():
    few, many = query(1), query(12)
    parts = [PrivacyLoss(1.0, 1e-6).calibrate(r, RECORD) for r in (few, many)]
    assert {part.noise.family for part in parts} == {"laplace", "gaussian"}
    total = compose([part.certificate for part in parts], delta=1e-5)
    assert 1.0 < total.epsilon < 2.0
    for part in parts:
        assert str(part.certificate.choice) in str(total.choice)


# -- where nothing is chosen -----------------------------------------------------------


def sampled(**options):
    return GradientRelease(n_records=1000, n_steps=10, batch_size=100, **options)


@pytest.mark.parametrize("kind", [PrivacyLoss, RenyiDP])
def test_gradients_and_sums_in_turn_keep_the_usual_family(kind):
    one = Sensitivity(add_remove={1: 1.0, 2: 1.0})
    stages = AdaptiveRelease(
        n_records=100,
        stages=[Stage("first", 1, one, share=0.5), Stage("second", 1, one, share=0.5)],
    )
    votes = VoteRelease(n_records=100, n_teachers=10, n_classes=2, n_queries=1)
    assert kind().clip_order == 2
    for release in (sampled(), stages, votes):
        made = kind().calibrate(release, RECORD)
        named = kind(noise="gaussian").calibrate(release, RECORD)
        assert made.noise == named.noise
        assert made.certificate.choice == ""


def test_a_pure_promise_of_sums_in_turn_takes_laplace_noise():
    one = Sensitivity(add_remove={1: 1.0, 2: 1.0})
    release = AdaptiveRelease(
        n_records=100, stages=[Stage("only", 1, one, share=1.0)], norm=1
    )
    made = GroupPrivacy(1.0, math.inf).calibrate(release, RECORD)
    assert made.noise.family == "laplace"
    assert made.certificate.notion is Notion.PURE_DP


def test_private_rows_choose_nothing():
    """Not even the error: an empirical prior keeps the usual family, and its words."""
    X = pd.DataFrame({"s": [0, 1, 1, 0], "x": [1.0, 0.0, 3.0, 2.0]})
    scenario = AttributeScenario("s", level="record", prior="empirical")
    model = PrivateMean(scenario, GeneralWasserstein(1.0, delta=1e-5), bounds=(0, 3))
    with pytest.warns(PrivacyWarning):
        model.fit(X)
    assert model.noise_.family == "gaussian"
    assert model.certificate_.choice == ""


def test_samples_choose_nothing():
    scenario = LawsScenario([(Samples([0.0, 1.0, 1.5]), Samples([0.0, 0.5, 1.0]))])
    made = GeneralWasserstein(1.0, delta=1e-5).calibrate(query(), scenario)
    assert made.noise.family == "gaussian"
    assert made.certificate.notion is Notion.ESTIMATED
    assert made.certificate.choice == ""


# -- other facts, and accountants that ask others --------------------------------------


def test_distances_of_distributions_are_taken_in_the_norm_of_each_family():
    spread = LawsScenario([(PointMass([0.0] * 8), PointMass([1.0] * 8))])
    along = LawsScenario([(PointMass([0.0] * 8), PointMass([2.0] + [0.0] * 7))])
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=8)
    families = [
        GeneralWasserstein(1.0, delta=1e-5).calibrate(release, scenario).noise.family
        for scenario in (spread, along)
    ]
    # as many coordinates, of which all move or one
    assert families == ["gaussian", "laplace"]


def test_a_family_that_has_no_finite_noise_is_not_missed():
    """Gaussians of unequal covariance are far apart except for Gaussian noise."""
    scenario = LawsScenario(
        [(Gaussian([0.0, 0.0], np.eye(2)), Gaussian([0.0, 0.0], 1.1 * np.eye(2)))]
    )
    release = QueryRelease(query=lambda X, y: X, n_records=4, dim=2)
    with pytest.raises(InfiniteDistanceError):
        DistributionAwareWasserstein(1.0, 2.0, noise="laplace").calibrate(
            release, scenario
        )
    made = DistributionAwareWasserstein(1.0, 2.0).calibrate(release, scenario)
    assert made.noise.family == "gaussian"
    assert says(made.certificate.choice, "noise.only_family_keeping_promise")


def test_quilts_and_plans_choose_too():
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    count = query(1, 1.0, 1.0, is_integer=True)
    made = MarkovQuilt(1.0).calibrate(count, chain)
    assert made.noise.family == "discrete_laplace"
    assert made.certificate.notion is Notion.PURE_PUFFERFISH
    laws = LawsScenario([(Discrete([0, 1, 2]), Discrete([1, 2, 3]))])
    plan = Kantorovich(1.0).calibrate(count, laws)
    assert plan.noise.family == "discrete_laplace"


def test_best_asks_in_every_family():
    made = Best(1.0, math.inf).calibrate(counts(4), RECORD)
    assert made.noise.family == "discrete_laplace"
    assert "noise='discrete_laplace'" in str(made.certificate.choice)
    asked = Best(1.0, delta=1e-5, candidates=[GroupPrivacy()])
    made = asked.calibrate(query(), RECORD)
    assert made.noise.family == "laplace"
    choice = made.certificate.choice
    assert says(choice, "noise.family_of_least_error", family="laplace")
    # of sums that are no counts nobody is asked who hides whole numbers only
    assert "discrete" not in str(
        Best(1.0, delta=1e-5).calibrate(query(), RECORD).certificate.choice
    )


@pytest.mark.parametrize(
    "model, family",
    [
        (PrivateMean(bounds=(0, 1)), "laplace"),
        (PrivateSummary(bounds=(0, 1)), "laplace"),
        (
            PrivateSummary(statistics="histogram", bounds=(0, 1), bins=4),
            "discrete_laplace",
        ),
    ],
    ids=["mean", "summary", "histogram"],
)
def test_estimators_take_it_by_default(model, family):
    X = np.linspace(0, 1, 50)[:, None]
    model.fit(X)
    assert model.noise_.family == family
    assert str(model.certificate_.choice).startswith(family.replace("_", " "))
    wide = clone(model).fit(np.tile(X, 12))
    if isinstance(model, PrivateMean):
        assert wide.noise_.family == "gaussian"


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", AUTO)
def test_auto_is_the_default(kind):
    assert kind().noise == "auto"
    kind().check()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"noise": "Auto"}, Statement("parameter.option_unknown", name="noise")),
        (
            {"noise": "auto", "beta": 1.5},
            Statement("noise.beta_with_other_family", noise="auto"),
        ),
        ({"epsilon": 0}, Statement("parameter.not_positive", name="epsilon")),
        ({"delta": 1.5}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": 0}, Statement("parameter.probability_out_of_range", name="delta")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [PrivacyLoss, GroupPrivacy, RenyiDP])
def test_bad_parameters_are_named_as_ever(kind, options, said):
    with refused(ValueError, said.code, **said.parameters):
        kind(**options).calibrate(query(), RECORD)


def test_a_pure_promise_that_is_named_gaussian_is_refused():
    with refused(ValueError, "noise.family_not_pure"):
        GroupPrivacy(1.0, math.inf, noise="gaussian").calibrate(query(), RECORD)


def test_what_no_family_can_keep_is_refused_in_the_words_of_the_usual_one():
    unbounded = QueryRelease(query=lambda X, y: X, n_records=4, dim=1)
    reasons = []
    for noise in ("auto", "gaussian"):
        with pytest.raises(UnsupportedError) as caught:
            PrivacyLoss(noise=noise).calibrate(unbounded, RECORD)
        reasons.append(str(caught.value))
    assert reasons[0] == reasons[1]


def test_of_an_unknown_length_only_what_is_known_is_tried():
    unknown = QueryRelease(
        query=lambda X, y: X,
        n_records=4,
        sensitivity=Sensitivity(add_remove={2: 1.0}),
    )
    made = PrivacyLoss().calibrate(unknown, RECORD)
    assert made.noise.family == "gaussian"
    choice = made.certificate.choice
    assert says(choice, "noise.only_family_keeping_promise", family="gaussian")
