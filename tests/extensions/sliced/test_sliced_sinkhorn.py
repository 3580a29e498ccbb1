"""The Sinkhorn mechanism: a full promise, and never less noise than W_inf needs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer.accountants import Best, GeneralWasserstein, SinkhornWasserstein
from skpuffer.distributions import Discrete, Gaussian, PointMass, Samples, Support
from skpuffer.distributions._lattice_sum import LatticeSum
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import CorrelatedGaussianNoise, GaussianNoise
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import LawsScenario, RecordScenario
from skpuffer.summary import PrivateMean
from tests.accountants.oracle_distributions import ALL_MOVES, attribute, output, table
from tests.attack import assert_tight, noisy_laws
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "srpp_entropic.json").read_text("utf-8")
)
PAIR = Discrete(ORACLES["u"]), Discrete(ORACLES["v"])
planar_laws = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=4
).map(Discrete)


@pytest.mark.every_run
@pytest.mark.parametrize("entropy, expected", ORACLES["values"])
def test_reference_values(entropy, expected):
    accountant = SinkhornWasserstein(1.0, 4.0, entropy=entropy, noise="gaussian")
    found = accountant.calibrate(output(), LawsScenario([PAIR]))
    # values of the radii are a unit apart or so: a share of 1e-3 is none of them
    assert found.certificate.sensitivity == pytest.approx(expected, rel=1e-9)
    # alpha shift^2 / (2 epsilon)
    assert found.noise.scale**2 == pytest.approx(2 * expected**2, rel=1e-9)
    assert found.certificate.notion is Notion.RENYI_PUFFERFISH
    assert found.certificate.rpp_epsilon == found.certificate.epsilon == 1.0
    assert not found.certificate.composable


@given(planar_laws, planar_laws, st.floats(1e-3, 5))
@settings(deadline=None)
def test_it_never_needs_less_than_the_wasserstein_mechanism(u, v, entropy):
    args = (output(2), LawsScenario([(u, v)]))
    ours = SinkhornWasserstein(entropy=entropy).calibrate(*args)
    best = GeneralWasserstein().calibrate(*args)
    assert ours.noise.scale >= best.noise.scale * (1 - 1e-12)
    fine = SinkhornWasserstein(entropy=1e-9).calibrate(*args)
    assert fine.noise.scale == pytest.approx(best.noise.scale, rel=1e-6, abs=1e-7)
    # what it found keeps the promise by the other's own account
    spent = GeneralWasserstein().certify(ours.noise, *args).epsilon
    assert spent <= 1 + 1e-9


def test_the_worst_of_all_pairs():
    far = PointMass(0.0), PointMass(2.0)
    accountant = SinkhornWasserstein(entropy=1e-6)
    found = accountant.calibrate(output(), LawsScenario([PAIR, far]))
    assert found.certificate.sensitivity == 2.0
    # one point is coupled in one way, which costs nothing
    dear = SinkhornWasserstein(entropy=1e3).calibrate(output(), LawsScenario([far]))
    assert dear.certificate.sensitivity == 2.0


def test_the_price_is_in_units_of_the_release():
    u, v = Discrete([[0, 0], [10, 0]]), Discrete([[0, 0], [10, 0]])
    release = output(2, units=(10.0, 1.0))
    scenario = LawsScenario([(u, v)])
    found = SinkhornWasserstein(entropy=0.1).calibrate(release, scenario)
    assert found.certificate.sensitivity == pytest.approx(0.1 * math.log(2))
    assert found.noise.scale[0] == pytest.approx(10 * found.noise.scale[1])


def test_a_mean_prices_the_mean_and_not_the_sum():
    options = {"scenario": attribute(), "bounds": (0.0, 1.0)}

    def fitted(accountant):
        model = PrivateMean(accountant=accountant, **options).fit(table())
        return float(np.max(model.noise_.scale))

    best = fitted(GeneralWasserstein(0.5))
    fine = fitted(SinkhornWasserstein(0.5, entropy=1e-9))
    some = fitted(SinkhornWasserstein(0.5, entropy=1e-3))
    assert fine == pytest.approx(best, rel=1e-5)
    assert best < some <= 1.2 * best


def test_other_promises():
    scenario = LawsScenario([PAIR])
    pure = SinkhornWasserstein(alpha=math.inf, noise="laplace")
    assert pure.calibrate(output(), scenario).certificate.notion is (
        Notion.PURE_PUFFERFISH
    )
    loose = SinkhornWasserstein(delta=1e-3).calibrate(output(), scenario)
    assert loose.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    samples = LawsScenario([(Samples([0.0, 1.0]), Samples([2.0, 1.0]))])
    found = SinkhornWasserstein().calibrate(output(), samples).certificate
    assert found.notion is Notion.ESTIMATED
    joint = CorrelatedGaussianNoise(covariance=np.diag([1.0, 4.0]))
    flat = LawsScenario([(PointMass([0.0, 0.0]), PointMass([1.0, 0.0]))])
    assert SinkhornWasserstein(alpha=2.0).certify(joint, output(2), flat).epsilon > 0


@pytest.mark.parametrize(
    "options, said",
    [
        ({"entropy": 0.0}, Statement("parameter.not_positive", name="entropy")),
        ({"entropy": -0.1}, Statement("parameter.not_positive", name="entropy")),
        ({"entropy": math.inf}, Statement("parameter.not_positive", name="entropy")),
        ({"epsilon": 0.0}, Statement("parameter.not_positive", name="epsilon")),
        ({"alpha": 1.0}, Statement("parameter.renyi_order_out_of_range", name="alpha")),
        ({"alpha": 2.0, "delta": 0.1}, Statement("parameter.alpha_and_delta_both")),
        ({"alpha": math.inf, "noise": "gaussian"}, Statement("noise.family_not_pure")),
    ],
    ids=repr,
)
def test_bad_parameters(options, said):
    accountant = SinkhornWasserstein(**options)
    with refused(ValueError, said.code, **said.parameters):
        accountant.calibrate(output(), LawsScenario([PAIR]))
    with refused(ValueError, said.code, **said.parameters):
        accountant.certify(GaussianNoise(1.0), output(), LawsScenario([PAIR]))


@pytest.mark.parametrize(
    "pair",
    [
        (Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)),
        (PointMass(0.0), Gaussian(1.0, 1.0)),
        (Support([0.0, 1.0]), PointMass(0.0)),
        (
            LatticeSum(
                np.array([0, 9]), np.array([0.9, 0.1]), np.zeros(1), np.ones(1), 0.01
            ),
            PointMass(0.0),
        ),
    ],
    ids=["gaussian", "point", "support", "masses to an error"],
)
def test_distributions_without_known_masses(pair):
    with refused(UnsupportedError, "transport.sinkhorn_points_missing"):
        SinkhornWasserstein().calibrate(output(), LawsScenario([pair]))


def test_what_it_cannot_work_from():
    release = output(sensitivity=Sensitivity(add_remove={1: 1.0}))
    with refused(UnsupportedError, "accountant.remedy_other_accountants"):
        SinkhornWasserstein().calibrate(release, RecordScenario())


def test_it_is_never_recommended():
    laws = LawsScenario([PAIR])
    assert not SinkhornWasserstein.recommended
    chosen = Best(1.0, alpha=4.0).calibrate(output(), laws)
    assert "Sinkhorn" not in str(chosen.certificate.source)
    unmet = QueryRelease(query=lambda X, y: X, dim=1, n_records=4)
    assert "Sinkhorn" not in str(
        GeneralWasserstein().supports(unmet, RecordScenario()).reason
    )
    assert clone(SinkhornWasserstein(entropy=0.3)).entropy == 0.3


@pytest.mark.every_run
def test_an_attacker():
    """Most that can be told apart, where the price of a nat is next to nothing."""
    found = SinkhornWasserstein(0.8, 4.0, entropy=1e-6).calibrate(
        output(), LawsScenario([ALL_MOVES])
    )
    options = {"n_draws": 30_000, "seed": 8}
    assert_tight(found.certificate, found.noise, **noisy_laws(*ALL_MOVES), **options)
