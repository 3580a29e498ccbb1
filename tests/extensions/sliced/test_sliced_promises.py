"""Promises about slices of an output: what follows from them, and what does not."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from skpuffer.accountants import GeneralWasserstein, SlicedWasserstein
from skpuffer.distributions import Discrete, PointMass
from skpuffer.exceptions import CompositionError, UncertifiedError
from skpuffer.extensions.sliced._costs import (
    JointSlicedCurve,
    MeanSquareCurve,
    ShiftedSphereCurve,
)
from skpuffer.kernel.composed_curves import SymmetricPair
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Certificate, Notion, compose, parallel
from skpuffer.privacy._information import SLICED
from skpuffer.privacy_loss import GaussianCurve, renyi_to_approximate
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.transport import SliceProfile
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "sliced_mechanisms.json").read_text(
        "utf-8"
    )
)
AVERAGED, JOINT = SLICED[:2]


def made(aggregation="average", profile="basis", dim=3, **options):
    release = QueryRelease(query=lambda X, y: X, n_records=5, dim=dim)
    pair = PointMass(np.zeros(dim)), PointMass(np.arange(dim) + 1.0)
    accountant = SlicedWasserstein(1.0, 4.0, aggregation, profile=profile, **options)
    return accountant.calibrate(release, LawsScenario([pair])).certificate


CERTIFICATES = {
    "average": lambda: made(),
    "joint": lambda: made("joint", None),
    "sphere": lambda: made("joint", "uniform"),
    "drawn": lambda: (
        SlicedWasserstein(1.0, 4.0, "joint", profile="uniform", confidence=0.9)
        .calibrate(
            QueryRelease(query=lambda X, y: X, n_records=5, dim=2),
            LawsScenario([(Discrete(np.eye(2)), Discrete(3 * np.eye(2)))]),
        )
        .certificate
    ),
    "approximate": lambda: made().to_sliced_approximate(1e-5),
    "approximate joint": lambda: made("joint").to_sliced_approximate(1e-5),
}


@pytest.fixture(params=CERTIFICATES, ids=str)
def certificate(request):
    return CERTIFICATES[request.param]()


# -- what follows ----------------------------------------------------------------------


def test_no_promise_about_the_output_follows(certificate):
    for notion in Notion.known.values():
        if notion not in SLICED:
            assert not certificate.implies(notion)
    with refused(UncertifiedError, "certificate.remedy_sliced_approximate"):
        certificate.to_approximate(1e-5)
    with refused(UncertifiedError, "certificate.slices_under_other_prior"):
        certificate.under_prior_shift(0.1)
    with refused(UncertifiedError, "certificate.slices_under_other_prior"):
        certificate.under_prior_shift(method="variation", variation=0.01)


def test_slices_say_nothing_about_other_slices():
    certificate = made("joint")
    same, other = SliceProfile.basis(3), SliceProfile.uniform(3)
    assert certificate.profile == same.name
    for notion in (JOINT, AVERAGED, "joint_sliced_pufferfish"):
        assert certificate.implies(notion)
        assert certificate.implies(notion, same)
        assert certificate.implies(notion, same.name)
        assert not certificate.implies(notion, other)
    assert not made().implies(JOINT, same)
    # what holds of the whole output holds along all slices
    full = certificate.after_processing()
    for profile in (same, other):
        assert full.implies(JOINT, profile) and full.implies(AVERAGED, profile)
    with refused(ValueError, "certificate.profile_without_slices"):
        full.implies("approximate_pufferfish", same)
    # without a name nothing is known to be the same
    assert not replace(certificate, profile=None).implies(JOINT, same)


def test_one_random_projection_says_nothing_about_a_mean_of_slices():
    """A slice that is rarely drawn may tell all, and no epsilon of its own is left."""
    assert not Notion.JOINT_SLICED_PUFFERFISH.implies("averaged_sliced_pufferfish")


def test_what_is_computed_may_be_worth_all_of_it(certificate):
    processed = certificate.after_processing()
    assert processed.notion.name in ("renyi_pufferfish", "approximate_pufferfish")
    assert processed.profile is None and not processed.composable
    assert processed.after_processing() is processed
    assert processed.epsilon >= certificate.epsilon or certificate.alpha is None
    if certificate.alpha is not None:
        assert processed.epsilon == certificate.rpp_epsilon == processed.rpp_epsilon
        assert processed.to_approximate(1e-5).notion == "approximate_pufferfish"
    else:
        assert processed.delta == certificate.delta
        assert processed.rpp_epsilon == math.inf


def changed(one, other):
    """Names of the fields in which two certificates differ."""
    names = [field.name for field in fields(Certificate)]
    return {name for name in names if getattr(one, name) != getattr(other, name)}


def test_all_else_of_a_promise_stays():
    full = replace(
        made("joint"),
        events=((SymmetricPair(GaussianNoise(2.0).curve(1.0)), 1),),
        rpp_epsilon=7.0,
        assumptions=("as said",),
        confidence=0.9,
    )
    sliced = full.to_sliced_approximate(1e-5)
    assert changed(full, sliced) == {
        "notion",
        "epsilon",
        "alpha",
        "delta",
        "rpp_epsilon",
    }
    assert (sliced.alpha, sliced.rpp_epsilon) == (None, math.inf)
    of_all = {"notion", "epsilon", "curve", "events", "profile", "source"}
    for one in (full, sliced):
        found = one.after_processing()
        assert changed(one, found) - {"rpp_epsilon"} == of_all
        assert found.events is None and found.profile is None
        assert found.curve == full.curve.vector
    assert full.after_processing().rpp_epsilon == full.curve.vector.renyi(full.alpha)
    assert sliced.after_processing().epsilon == full.curve.vector.epsilon(1e-5)
    assert sliced.after_processing().rpp_epsilon == math.inf


def test_it_is_the_promise_of_the_general_mechanism():
    release = QueryRelease(query=lambda X, y: X, n_records=5, dim=2)
    scenario = LawsScenario([(PointMass([0.0, 0.0]), PointMass([3.0, 4.0]))])
    noise = GaussianNoise(7.0)
    sliced, full = (
        kind(alpha=4.0).certify(noise, release, scenario)
        for kind in (SlicedWasserstein, GeneralWasserstein)
    )
    assert sliced.after_processing().epsilon == full.epsilon == sliced.rpp_epsilon
    assert sliced.after_processing().curve == full.curve


def test_of_an_unknown_whole_nothing_is_known():
    certificate = replace(made(), curve=None)
    for ask in (
        certificate.after_processing,
        lambda: certificate.to_sliced_approximate(1e-5),
    ):
        with refused(
            UncertifiedError,
            ("certificate.no_curve_to_convert", "sliced.whole_output_unknown"),
        ):
            ask()
    assert "rpp_epsilon = ∞" in certificate.details()
    batches = Certificate(
        notion="sa_joint_sliced_renyi_pufferfish", epsilon=1.0, alpha=2.0
    )
    with refused(UncertifiedError, "sliced.nothing_after_processing"):
        batches.after_processing()


# -- what adds up ----------------------------------------------------------------------


def test_nothing_adds_up(certificate):
    full = certificate.after_processing()
    forged = replace(certificate, composable=True, coupling_id="replace:1")
    batches = Certificate(
        notion="sa_joint_sliced_renyi_pufferfish",
        epsilon=1.0,
        alpha=4.0,
        composable=True,
        coupling_id="replace:1",
    )
    for parts in (
        [certificate, certificate],
        [certificate],
        [certificate, full],
        [forged, forged],
        [forged, batches],
    ):
        with refused(
            CompositionError,
            ("compose.slices_not_composable", "sampling.average_with_other_notion"),
        ):
            compose(parts)
    with pytest.raises((CompositionError, ValueError)):
        parallel([certificate, certificate])


# -- (epsilon, delta) of slices --------------------------------------------------------


@pytest.mark.every_run
def test_the_best_of_all_orders():
    """OT-12: of one noise, by the sharper conversion."""
    case = ORACLES["OT-12"]
    delta, rho = case["delta"], case["rho"]
    found = MeanSquareCurve(2 * rho).epsilon(delta)
    assert found == pytest.approx(case["over_all_orders"], abs=1e-9)
    order = 1 + math.sqrt(math.log(1 / delta) / rho)
    basic = renyi_to_approximate(order, order * rho, delta, "basic")
    assert basic == pytest.approx(case["basic"], abs=1e-9)
    converted = renyi_to_approximate(case["alpha"], case["epsilon"], delta, "basic")
    assert converted == pytest.approx(case["converted_basic"], abs=1e-9)
    exact = GaussianCurve(math.sqrt(2 * rho)).epsilon(delta)
    assert exact == pytest.approx(case["exact"], abs=1e-8)
    assert exact < found < basic < converted
    orders = np.array(case["grid"], float)
    for conversion, expected in (("basic", "basic_on_grid"), ("tight", "over_grid")):
        least = renyi_to_approximate(orders, orders * rho, delta, conversion)
        assert least == pytest.approx(case[expected], abs=1e-9)


CURVES = {
    "mean": MeanSquareCurve(0.7),
    "none": MeanSquareCurve(0.0),
    "joint": JointSlicedCurve([[0.1, 2.0, 0.0], [1.0, 1.0, 0.0]], [0.5, 0.2, 0.3]),
    "sphere": ShiftedSphereCurve(2.0, 5),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_two_ways_of_a_curve(name):
    curve = CURVES[name]
    costs = [curve.renyi(order) for order in (1.001, 2.0, 16.0, 1e3)]
    assert sorted(costs) == costs
    assert curve.gaussian_mu is None
    for delta in (1e-10, 1e-5, 0.1, 0.5):
        epsilon = curve.epsilon(delta)
        assert epsilon >= 0
        # from a grid of orders, so that it is no less
        assert delta * (1 - 1e-9) <= curve.delta(epsilon + 1e-9) or epsilon == 0
        assert curve.delta(epsilon + 0.01) <= delta * 1.1
    found = [curve.epsilon(delta) for delta in (0.5, 1e-2, 1e-5)]
    assert sorted(found) == found
    assert curve.delta(-1.0) == 1.0


def test_a_projection_keeps_its_promise():
    """One that is drawn with its direction: by the exact trade-off of the mixture."""
    curve = CURVES["joint"]
    for delta in (1e-6, 1e-2):
        epsilon = curve.epsilon(delta)
        for row in curve.squares:
            exact = sum(
                weight * GaussianCurve(math.sqrt(square)).delta(epsilon)
                for weight, square in zip(curve.weights, row, strict=True)
                if square
            )
            assert exact <= delta


def test_the_mean_of_the_slices_own_epsilons():
    curve, delta = MeanSquareCurve(0.5 * 0.1 + 0.2 * 2.0), 1e-5
    exact = 0.5 * GaussianCurve(math.sqrt(0.1)).epsilon(delta)
    exact += 0.2 * GaussianCurve(math.sqrt(2.0)).epsilon(delta)
    assert exact <= curve.epsilon(delta)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_a_delta_that_is_none(delta):
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        made().to_sliced_approximate(delta)


def test_only_sliced_orders_convert():
    for certificate in (made().after_processing(), made().to_sliced_approximate(0.1)):
        with refused(ValueError, "sliced.not_renyi_promise"):
            certificate.to_sliced_approximate(1e-5)


# -- how it is shown -------------------------------------------------------------------


def test_it_is_shown_what_the_vector_is_worth(certificate):
    for shown in (certificate.details(), certificate._repr_html_()):
        assert "of the noisy vector itself; what is computed from it may be" in shown
        assert certificate.profile in shown
        assert "must not be added" in shown
    if certificate.alpha is not None:
        assert f"rpp_epsilon = {certificate.rpp_epsilon:.4g}" in certificate.details()
        assert "may be worth rpp_epsilon" in certificate.details()


def test_plain_data(certificate):
    text = json.dumps(certificate.to_dict(), allow_nan=False)
    again = Certificate.from_dict(json.loads(text))
    assert again == certificate
    assert again.after_processing() == certificate.after_processing()


def test_a_profile_is_a_name_whatever_it_says():
    certificate = replace(made(), profile="inf")
    assert Certificate.from_dict(certificate.to_dict()).profile == "inf"
