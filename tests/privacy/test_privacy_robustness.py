"""What is left of a promise when the attacker's belief is none of the priors."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
)
from skpuffer.distributions import Discrete, Gaussian, PointMass, Samples
from skpuffer.exceptions import (
    CompositionError,
    Statement,
    UncertifiedError,
    UnsupportedError,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy import Certificate, Notion, compose
from skpuffer.privacy_loss import RenyiCurve, hockey_stick_divergence, renyi_divergence
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, RecordScenario
from tests.refused import refused, says, statements_in

from ..attack import assert_beaten, assert_tight, noisy_laws

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "rpp_mechanisms.json").read_text("utf-8")
)["robustness"]
RELEASE = QueryRelease(
    query=lambda X, y: X,
    n_records=4,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}),
)


def apart(shift):
    return LawsScenario([(PointMass(0.0), PointMass(float(shift)))])


def wasserstein(covered, shift=1.0, **options):
    return GeneralWasserstein(**options).certify(covered, RELEASE, apart(shift))


# -- reference values ------------------------------------------------------------------


def test_reference_general_theorem():
    row = ORACLES["general"]
    certificate = Certificate(
        notion="renyi_pufferfish",
        epsilon=row["epsilon"],
        alpha=row["alpha"],
        curve=RenyiCurve((row["order"],), (row["epsilon"],)),
    )
    found = certificate.under_prior_shift(
        method="a4", divergence=row["divergence"], orders=row["orders"]
    )
    assert found.epsilon == pytest.approx(row["shifted"], rel=1e-12)
    assert found.alpha == row["alpha"] and found.notion is Notion.RENYI_PUFFERFISH
    # with costs at that order only: nothing is known of others
    higher = certificate.under_prior_shift(
        method="a4", divergence=row["divergence"], orders=(2, 6, 3)
    )
    assert higher.epsilon == math.inf


def test_reference_gaussian_corollary_and_direct_bound():
    row = ORACLES["gaussian"]
    p, q, _ = row["orders"]
    variance = q * (row["alpha"] - 1 / p) * row["shift"] ** 2 / (2 * row["epsilon"])
    assert variance == row["variance"]
    certificate = wasserstein(GaussianNoise(math.sqrt(variance)), alpha=row["alpha"])
    shifted = certificate.under_prior_shift
    fixed = shifted(row["distance"], method="a5", orders=row["orders"])
    assert fixed.epsilon == pytest.approx(row["a5"], rel=1e-12)
    assert shifted(row["distance"]).epsilon == pytest.approx(row["direct"], rel=1e-12)


@pytest.mark.parametrize("row", ORACLES["optimised"], ids=str)
def test_reference_optimised_orders(row):
    noise = GaussianNoise(float(row["scale"]))
    certificate = wasserstein(noise, row["shift"], alpha=row["alpha"])
    for method in ("direct", "a5"):
        found = certificate.under_prior_shift(row["distance"], method=method)
        assert found.epsilon == pytest.approx(row["epsilon"], rel=1e-7)


def test_reference_laplace():
    row = ORACLES["laplace"]
    noise = LaplaceNoise(float(row["scale"]))
    certificate = wasserstein(noise, row["shift"], alpha=row["alpha"])
    for method in ("direct", "a5"):
        found = certificate.under_prior_shift(row["distance"], method=method)
        assert found.epsilon == pytest.approx(row[method], abs=6e-6)


# -- orderings and limits --------------------------------------------------------------


@given(
    st.floats(1.2, 20),
    st.floats(0.0, 2),
    st.floats(0.5, 4),
    st.sampled_from([GaussianNoise, LaplaceNoise]),
    st.lists(st.floats(-2, 2), min_size=2, max_size=2),
)
def test_no_orders_beat_the_direct_bound(alpha, distance, scale, family, logits):
    certificate = wasserstein(family(scale), alpha=alpha)
    direct = certificate.under_prior_shift(distance).epsilon
    shares = np.exp([*logits, 0.0])
    orders = tuple(shares.sum() / shares)
    other = certificate.under_prior_shift(distance, method="a5", orders=orders)
    assert other.epsilon >= direct * (1 - 1e-9)
    assert direct >= certificate.epsilon


def test_no_shift_costs_nothing():
    certificate = wasserstein(GaussianNoise(2.0), alpha=3)
    found = certificate.under_prior_shift(0.0)
    assert found.epsilon == certificate.epsilon
    best = certificate.under_prior_shift(0.0, method="a5")
    assert best.epsilon == pytest.approx(certificate.epsilon, rel=1e-3)


def test_every_target_of_the_direct_bound():
    laplace = LaplaceNoise(2.0)
    pure = wasserstein(laplace, alpha=math.inf, noise="laplace")
    found = pure.under_prior_shift(0.25)
    assert found.notion is Notion.PURE_PUFFERFISH
    assert found.epsilon == found.rpp_epsilon == 0.75
    assert found.sensitivity == 1.5 and found.norm == pure.norm
    approximate = wasserstein(GaussianNoise(2.0), delta=1e-5)
    found = approximate.under_prior_shift(0.25)
    wider = wasserstein(GaussianNoise(2.0), 1.5, delta=1e-5)
    assert (found.epsilon, found.delta) == (wider.epsilon, 1e-5)
    assert found.to_approximate(1e-3).epsilon == wider.to_approximate(1e-3).epsilon


def test_pure_promises_by_the_divergence_of_the_data():
    pure = wasserstein(LaplaceNoise(2.0), alpha=math.inf, noise="laplace")
    found = pure.under_prior_shift(method="a3", divergence=0.1)
    assert found.epsilon == pytest.approx(0.7)
    assert found.to_approximate(1e-5).epsilon == pytest.approx(0.7)
    with refused(ValueError, "belief.method_needs_pure_promise"):
        wasserstein(LaplaceNoise(2.0), alpha=2).under_prior_shift(
            method="a3", divergence=0.1
        )
    with refused(ValueError, "parameter.is_negative", name="divergence"):
        pure.under_prior_shift(method="a3", divergence=-0.1)


# -- what it needs is said, and is not more --------------------------------------------

SAME = Statement("assume.belief_near_same_prior")


@pytest.mark.parametrize(
    "inputs, code, parameters",
    [
        (
            {"query_distance": 0.25},
            "assume.belief_within_wasserstein",
            {"distance": 0.25, "norm": 2.0, "units": ""},
        ),
        (
            {"method": "a5", "query_distance": 0.125},
            "assume.belief_within_wasserstein",
            {"distance": 0.125, "norm": 2.0, "units": ""},
        ),
        (
            {"method": "variation", "variation": 0.01},
            "assume.belief_within_total_variation",
            {"variation": 0.01},
        ),
        (
            {"method": "a4", "divergence": (0.1, 0.2), "orders": (2.0, 4.0, 4.0)},
            "assume.belief_within_renyi_divergences",
            {"alpha": 6.0, "first": 0.1, "alpha2": 9.0, "second": 0.2},
        ),
        (
            {"method": "a3", "divergence": 0.3},
            "assume.belief_within_max_divergence",
            {"divergence": 0.3},
        ),
    ],
    ids=str,
)
def test_how_close_a_belief_must_be_is_said_in_full(inputs, code, parameters):
    certificate = wasserstein(GaussianNoise(2.0), alpha=3)
    if inputs.get("method") == "a3":
        certificate = wasserstein(LaplaceNoise(2.0), alpha=math.inf, noise="laplace")
    found = certificate.under_prior_shift(**inputs)
    near = Statement(code, **parameters, same_prior=SAME)
    assert found.assumptions == (*certificate.assumptions, near)


def test_in_which_units_a_belief_is_close_is_said():
    """Where coordinates have noise of their own, distances are in units of it."""
    shift = Shift(norm=2, radius=1.0, weights=(1.0, 3.0), dim=2)
    certificate = Certificate(
        notion="renyi_pufferfish",
        epsilon=0.25,
        alpha=2.0,
        curve=GaussianNoise((2.0, 6.0)).curve(shift),
    )
    for inputs in ({"query_distance": 0.25}, {"query_distance": 0.25, "method": "a5"}):
        (text,) = certificate.under_prior_shift(**inputs).assumptions
        units = Statement("assume.units_of_noise")
        near = {"distance": 0.25, "norm": 2, "units": units}
        assert says(text, "assume.belief_within_wasserstein", **near)


def test_the_new_certificate_says_what_it_needs():
    certificate = wasserstein(GaussianNoise(2.0), alpha=3)
    for method, inputs in (
        ("direct", {"query_distance": 0.25}),
        ("a5", {"query_distance": 0.25}),
        ("a4", {"divergence": (0.1, 0.25), "orders": (3, 3, 3)}),
        ("variation", {"variation": 0.25}),
    ):
        found = certificate.under_prior_shift(method=method, **inputs)
        text = found.assumptions[-1]
        assert found.assumptions[:-1] == certificate.assumptions
        assert says(text, "assume.belief_near_same_prior")
        assert 0.25 in text.parameters.values()
        assert certificate.source in statements_in(found.source)
        assert found.source != certificate.source
        assert not found.composable and found.coupling_id is None
        with pytest.raises(CompositionError):
            compose([found, found])
        json.dumps(found.to_dict(), allow_nan=False)
    assert certificate.assumptions == wasserstein(GaussianNoise(2.0)).assumptions


def test_two_priors_must_not_share_the_divergences():
    """Each close in one way only: the theorem with separate infima would be false."""
    alpha, orders = 2.0, (3.0, 3.0, 3.0)
    belief = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])  # by secret
    priors = [np.tile([0.5, 0.25, 0.25], (2, 1)), np.tile([1.0, 0.0, 0.0], (2, 1))]
    firsts, seconds = [], []
    for prior in priors:
        assert renyi_divergence(*prior, 5.0) == 0  # releasing everything costs nothing
        pairs = list(zip(belief, prior, strict=True))
        firsts.append(max(renyi_divergence(b, p, 6.0) for b, p in pairs))
        seconds.append(max(renyi_divergence(p, b, 4.0) for b, p in pairs))
    certificate = Certificate(
        notion="renyi_pufferfish",
        epsilon=0.0,
        alpha=alpha,
        curve=RenyiCurve((8.0,), (0.0,)),
    )

    def shifted(first, second):
        return certificate.under_prior_shift(
            method="a4", divergence=(first, second), orders=orders
        ).epsilon

    assert renyi_divergence(*belief, alpha) == math.inf
    assert shifted(min(firsts), min(seconds)) < 3  # what the mixture would promise
    for first, second in zip(firsts, seconds, strict=True):
        assert shifted(first, second) == math.inf


# -- soundness -------------------------------------------------------------------------

masses = st.lists(st.integers(1, 20), min_size=4, max_size=4)


def law(counts):
    return np.array(counts) / np.sum(counts)


@given(
    st.tuples(masses, masses),
    st.tuples(masses, masses),
    st.lists(masses, min_size=4, max_size=4),
    st.sampled_from([1.5, 2.0, 6.0]),
    st.lists(st.floats(-1, 1), min_size=2, max_size=2),
)
def test_the_general_theorem_on_any_channel(prior, belief, rows, alpha, logits):
    channel = np.array([law(row) for row in rows])
    prior, belief = ([law(given) for given in side] for side in (prior, belief))
    shares = np.exp([*logits, 0.0])
    p, q, r = shares.sum() / shares
    order = q * (alpha - 1 / p)

    def cost(laws, order):
        first, second = (given @ channel for given in laws)
        return max(
            renyi_divergence(first, second, order),
            renyi_divergence(second, first, order),
        )

    epsilon = cost(prior, order)
    certificate = Certificate(
        notion="renyi_pufferfish",
        epsilon=epsilon,
        alpha=alpha,
        curve=RenyiCurve((order,), (epsilon,)),
    )
    pairs = list(zip(belief, prior, strict=True))
    divergence = (
        max(renyi_divergence(b, a, alpha * p) for b, a in pairs),
        max(renyi_divergence(a, b, (alpha - 1) * r + 1) for b, a in pairs),
    )
    found = certificate.under_prior_shift(
        method="a4", divergence=divergence, orders=(p, q, r)
    )
    assert cost(belief, alpha) <= found.epsilon * (1 + 1e-9) + 1e-12
    # and the pure theorem
    pure = cost(prior, math.inf)
    certificate = Certificate(
        notion="pure_pufferfish",
        epsilon=pure,
        alpha=math.inf,
        curve=RenyiCurve((math.inf,), (pure,)),
    )
    ways = [w for b, a in pairs for w in ((b, a), (a, b))]
    distance = max(renyi_divergence(*way, math.inf) for way in ways)
    found = certificate.under_prior_shift(method="a3", divergence=distance)
    assert cost(belief, math.inf) <= found.epsilon + 1e-9


def test_direct_bound_is_attained():
    """Beliefs that move both laws apart by as much as they may."""
    certificate = wasserstein(GaussianNoise(1.5), alpha=4)
    found = certificate.under_prior_shift(0.3)
    aligned = GeneralWasserstein(alpha=4).certify(
        GaussianNoise(1.5), RELEASE, LawsScenario([(PointMass(-0.3), PointMass(1.3))])
    )
    assert aligned.epsilon == pytest.approx(found.epsilon, rel=1e-12)


@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.floats(1e-12, 0.2),
    st.sampled_from(["gaussian", "laplace"]),
)
def test_variation_on_lattices(u, v, variation, family):
    """A share of each law goes anywhere; the promise loses twice that share."""
    first, second = (Discrete([0.0, 1.0, 2.0], w) for w in (u, v))
    accountant = DistributionAwareWasserstein(alpha=3, noise=family)
    noise = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}[family](1.5)
    base = accountant.certify(noise, RELEASE, LawsScenario([(first, second)]))
    if base.epsilon == 0:
        return
    found = base.under_prior_shift(method="variation", variation=variation)
    assert found.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert found.event_delta == pytest.approx(2 * variation, rel=1e-6, abs=0)
    assert found.epsilon >= base.epsilon * (1 - 1e-12)
    grid = np.linspace(-40, 80, 6001)

    def released(law, far):
        points = np.append(law.points[:, 0], far)
        weights = np.append(law.masses * (1 - variation), variation)
        steps = np.abs(grid[:, None] - points) / 1.5
        kernel = np.exp(-steps if family == "laplace" else -(steps**2) / 2) @ weights
        return kernel / kernel.sum()

    a, b = released(first, -20.0), released(second, 40.0)
    for epsilon in (0.2, 1.0):
        true = hockey_stick_divergence(a, b, epsilon)
        assert true <= found.curve.delta(epsilon) + found.event_delta + 1e-3


def test_variation_of_an_approximate_promise():
    base = wasserstein(GaussianNoise(2.0), delta=1e-3)
    found = base.under_prior_shift(method="variation", variation=0.01)
    assert found.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.delta == pytest.approx(0.021) and found.event_delta == 0.02
    assert found.epsilon == pytest.approx(base.epsilon, rel=1e-6)
    with refused(ValueError, "belief.variation_too_large"):
        base.under_prior_shift(method="variation", variation=0.4999)


def test_mechanisms_that_do_not_only_cover_the_longest_move():
    far = LawsScenario([(Discrete([0.0, 9.0], [99, 1]), PointMass(1.0))])
    approximate = ApproximateWasserstein(alpha=3, event_delta=0.01)
    found = approximate.calibrate(RELEASE, far).certificate.under_prior_shift(0.5)
    assert found.event_delta == 0.01 and found.sensitivity == 2.0
    assert found.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    noise = LaplaceNoise(2.0)
    aware = DistributionAwareWasserstein(alpha=3).certify(noise, RELEASE, far)
    found = aware.under_prior_shift(0.5)
    # every move is longer by twice the distance
    expected = 0.99 * math.exp(2 * noise.renyi(3, 2.0))
    expected += 0.01 * math.exp(2 * noise.renyi(3, 9.0))
    assert found.epsilon == pytest.approx(math.log(expected) / 2, rel=1e-9)
    assert found.curve.delta(0.5) > aware.curve.delta(0.5)
    worst = GeneralWasserstein(alpha=3, noise="laplace").certify(noise, RELEASE, far)
    assert found.epsilon < worst.under_prior_shift(0.5).epsilon
    assert aware.under_prior_shift(0.5, method="a5").epsilon < math.inf
    unequal = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(0.0, 1.1))])
    aware = DistributionAwareWasserstein(alpha=2, noise="gaussian")
    certificate = aware.calibrate(RELEASE, unequal).certificate
    with refused(UnsupportedError, "gaussian.unequal_covariance_not_widened"):
        certificate.under_prior_shift(0.5)
    assert certificate.under_prior_shift(0.5, method="a5").epsilon > 1.0


def test_an_attacker_with_another_belief():
    """Noise calibrated for the priors is not enough; what is promised beyond holds."""
    found = GeneralWasserstein(0.3, alpha=4).calibrate(RELEASE, apart(1.0))
    shifted = found.certificate.under_prior_shift(0.5)
    assert shifted.epsilon == pytest.approx(1.2)
    # each prior half as far away as the two are from each other
    attacked = noisy_laws(PointMass(-0.5), PointMass(1.5))
    assert_tight(shifted, found.noise, **attacked, seed=4, n_draws=30_000)
    assert_beaten(
        found.certificate,
        *attacked["worlds"](found.noise),
        n_draws=30_000,
        rng=np.random.default_rng(4),
    )


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inputs, code, parameters",
    [
        ({}, "belief.method_parameter_missing", {"needed": "query_distance"}),
        ({"query_distance": -0.1}, "parameter.is_negative", {"name": "query_distance"}),
        ({"query_distance": math.nan}, "parameter.is_nan", {"name": "query_distance"}),
        (
            {"method": "a5", "query_distance": -0.1},
            "parameter.is_negative",
            {"name": "query_distance"},
        ),
        (
            {"method": "a5", "query_distance": math.nan},
            "parameter.is_nan",
            {"name": "query_distance"},
        ),
        (
            {"query_distance": 0.1, "method": "best"},
            "parameter.option_unknown",
            {"name": "method"},
        ),
        (
            {"query_distance": 0.1, "divergence": 0.1},
            "belief.method_parameter_superfluous",
            {"name": "divergence"},
        ),
        (
            {"query_distance": 0.1, "orders": (3, 3, 3)},
            "belief.method_orders_superfluous",
            {},
        ),
        ({"method": "a4", "divergence": (0.1, 0.1)}, "belief.orders_missing", {}),
        (
            {"method": "a4", "divergence": 0.1, "orders": (3, 3, 3)},
            "belief.divergence_not_pair",
            {},
        ),
        (
            {"method": "a4", "divergence": (1, 2), "orders": (3, 3)},
            "belief.orders_not_three",
            {},
        ),
        (
            {"method": "a4", "divergence": (1, 2), "orders": (3, 3, 4)},
            "belief.orders_reciprocals_wrong",
            {},
        ),
        (
            {"method": "a4", "divergence": (1, 2), "orders": (3, 3, math.nan)},
            "belief.orders_not_three",
            {},
        ),
        (
            {"method": "a4", "divergence": (1, 2), "orders": (-1, 1, 1)},
            "belief.orders_reciprocals_wrong",
            {},
        ),
        (
            {"method": "a4", "divergence": (1, 2), "orders": (1, 2, -2)},
            "belief.orders_reciprocals_wrong",
            {},
        ),
        (
            {"method": "a5", "query_distance": 1, "orders": (1, 9, 9)},
            "belief.orders_reciprocals_wrong",
            {},
        ),
        (
            {"method": "a4", "divergence": (-1, 2), "orders": (3, 3, 3)},
            "parameter.is_negative",
            {"name": "divergence"},
        ),
        (
            {"method": "a4", "divergence": (1, -2), "orders": (3, 3, 3)},
            "parameter.is_negative",
            {"name": "divergence"},
        ),
        (
            {"method": "a4", "divergence": (1, math.nan), "orders": (3, 3, 3)},
            "parameter.is_nan",
            {"name": "divergence"},
        ),
        (
            {"method": "variation"},
            "belief.method_parameter_missing",
            {"needed": "variation", "method": "variation"},
        ),
        (
            {"method": "variation", "variation": -0.1},
            "parameter.probability_out_of_range",
            {"name": "variation"},
        ),
        (
            {"method": "variation", "variation": math.nan},
            "parameter.is_nan",
            {"name": "variation"},
        ),
        ({"method": "variation", "variation": 0.5}, "belief.variation_too_large", {}),
        (
            {"method": "variation", "variation": 0.0},
            "parameter.probability_out_of_range",
            {"name": "variation"},
        ),
    ],
    ids=str,
)
def test_bad_input(inputs, code, parameters):
    with refused(ValueError, code, **parameters):
        wasserstein(GaussianNoise(2.0), alpha=3).under_prior_shift(**inputs)


def test_texts_are_no_orders():
    inputs = {"method": "a4", "divergence": (1, 2), "orders": ("3", "3", "3")}
    with refused((TypeError, ValueError), "parameter.not_real_number", name="orders"):
        wasserstein(GaussianNoise(2.0), alpha=3).under_prior_shift(**inputs)


def test_a_sensitivity_that_is_not_stated_is_not_made_up():
    stated = wasserstein(GaussianNoise(2.0), alpha=3)
    silent = replace(stated, sensitivity=None).under_prior_shift(query_distance=0.5)
    assert stated.under_prior_shift(query_distance=0.5).sensitivity == 2.0
    assert silent.sensitivity is None


def test_promises_it_does_not_apply_to():
    samples = LawsScenario([(Samples([0.0, 1.0]), Samples([2.0, 1.0]))])
    estimate = GeneralWasserstein().calibrate(RELEASE, samples).certificate
    with refused(UncertifiedError, "certificate.estimate_no_guarantee"):
        estimate.under_prior_shift(0.1)
    bits = Certificate(notion="pure_pufferfish", mutual_information=0.1)
    with refused(UncertifiedError, "certificate.information_own_prior_only"):
        bits.under_prior_shift(0.1)
    relied = AttributeGaussian(alpha=2, use_prior_variance=True)
    laws = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))])
    certificate = relied.calibrate(RELEASE, laws).certificate
    with refused(UncertifiedError, "belief.no_additive_noise"):
        certificate.under_prior_shift(0.1)
    general = {"method": "a4", "divergence": (0.1, 0.1), "orders": (3, 3, 3)}
    assert certificate.under_prior_shift(**general).epsilon > certificate.epsilon
    approximate = wasserstein(GaussianNoise(2.0), delta=1e-5)
    for inputs in (general, {"method": "a5", "query_distance": 0.1}):
        with refused(ValueError, "belief.method_needs_renyi_promise"):
            approximate.under_prior_shift(**inputs)


@pytest.mark.parametrize(
    "inputs, finite",
    [
        ({"method": "a3", "divergence": 0.1}, False),
        ({"method": "a4", "divergence": (0.1, 0.1), "orders": (3, 3, 3)}, True),
        ({"method": "a5", "query_distance": 0.1}, True),
    ],
)
def test_theorems_about_one_order_are_of_promises_that_hold_for_all_outputs(
    inputs, finite
):
    """Outside of an event a belief may be as far from a prior as it likes."""
    curve = GaussianNoise(2.0).curve(1.0) if finite else LaplaceNoise(2.0).curve(1.0)
    alpha = 2.0 if finite else math.inf
    one = Certificate(
        notion="renyi_pufferfish" if finite else "pure_pufferfish",
        epsilon=curve.renyi(alpha),
        alpha=alpha,
        curve=curve,
    )
    found = one.under_prior_shift(**inputs)
    assert found.epsilon > one.epsilon and found.alpha == alpha
    event = {"delta": 1e-5, "event_delta": 1e-5}
    for change in (
        {"notion": "approximate_renyi_pufferfish", **event},
        {"notion": "approximate_pufferfish", "alpha": None, "delta": 1e-5},
        {"alpha": math.inf if finite else 2.0},
    ):
        with refused(
            ValueError,
            ("belief.method_needs_pure_promise", "belief.method_needs_renyi_promise"),
        ):
            replace(one, **change).under_prior_shift(**inputs)


def test_differential_privacy_speaks_of_priors_if_records_are_replaced():
    replaced, removed = (
        GroupPrivacy(alpha=3)
        .calibrate(RELEASE, RecordScenario(relation=relation))
        .certificate
        for relation in ("replace", "add_remove")
    )
    found = replaced.under_prior_shift(0.1)
    assert found.notion is Notion.RENYI_PUFFERFISH
    assert not found.implies(Notion.RENYI_DP)
    with refused(ValueError, "certificate.speaks_of_no_prior"):
        removed.under_prior_shift(0.1)
    both = compose([replaced, replaced])
    with refused(UncertifiedError, "belief.no_additive_noise"):
        both.under_prior_shift(0.1)


@pytest.mark.parametrize("known", [{"epsilon": None}, {"mutual_information": 0.1}])
def test_what_has_no_epsilon_says_nothing_of_another_belief(known):
    certificate = Certificate(**{"notion": "pure_pufferfish", "epsilon": 1.0} | known)
    with refused(UncertifiedError, "certificate.information_own_prior_only"):
        certificate.under_prior_shift(0.1)
