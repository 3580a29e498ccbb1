"""The Kantorovich mechanism: sound, and no better than the Wasserstein one."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import GeneralWasserstein, Kantorovich
from skpuffer.distributions import Discrete, Gaussian, PointMass, Samples
from skpuffer.distributions._lattice_sum import LatticeSum
from skpuffer.exceptions import InfiniteDistanceError, Statement, UnsupportedError
from skpuffer.noise import (
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario
from skpuffer.summary import PrivateMean
from tests.refused import refused

from ..attack import SHARE, assert_tight, noisy_laws
from .mixtures import hockey_stick
from .oracle_distributions import (
    ALL_MOVES,
    ORACLES,
    atoms,
    attribute,
    output,
    pair,
    scenario,
    table,
)

counts = st.lists(st.integers(1, 9), min_size=1, max_size=5)
laws = counts.flatmap(
    lambda w: st.lists(
        st.integers(-6, 6).map(float), min_size=len(w), max_size=len(w), unique=True
    ).map(lambda x: Discrete(x, w))
)
planar_laws = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=4
).map(Discrete)
PURE = {"alpha": math.inf, "noise": "laplace"}


def test_reference_plan():
    """Optimal for the mean move, and its longest one far above the least there is."""
    row = ORACLES["kantorovich"]
    euclidean = GeneralizedCauchyNoise()  # whose shifts are measured in l2
    args = (output(2), scenario(row["laws"]))
    ours = Kantorovich(noise=euclidean).calibrate(*args)
    best = GeneralWasserstein(alpha=math.inf, noise=euclidean).calibrate(*args)
    assert ours.certificate.sensitivity == pytest.approx(row["plan"], rel=1e-9)
    assert best.certificate.sensitivity == pytest.approx(row["distance"], rel=1e-9)
    assert ours.noise.scale > 2 * best.noise.scale
    assert ours.certificate.notion is Notion.PURE_PUFFERFISH


def test_masses_known_to_an_error_are_not_left_out_for_less():
    steps, masses = np.array([0, 9]), np.array([0.9, 0.1])
    for error, delta, sensitivity in ((0.0, 0.11, 0), (0.01, 0.11, 9), (0.01, 0.13, 0)):
        law = LatticeSum(steps, masses, np.zeros(1), np.ones(1), error)
        for both in ((law, PointMass(0.0)), (PointMass(0.0), law)):
            args = (LaplaceNoise(9.0), output(), LawsScenario([both]))
            assert Kantorovich(delta=delta).certify(*args).sensitivity == sensitivity


@given(laws, laws, st.floats(0.1, 3))
def test_on_the_line_it_is_the_wasserstein_mechanism(u, v, epsilon):
    args = (output(), LawsScenario([(u, v)]))
    ours = Kantorovich(epsilon, noise="laplace").calibrate(*args)
    assert ours.noise == GeneralWasserstein(epsilon, **PURE).calibrate(*args).noise
    assert Kantorovich(epsilon).certify(ours.noise, *args).epsilon <= epsilon * (
        1 + 1e-9
    )


@given(planar_laws, planar_laws)
def test_in_the_plane_it_never_needs_less(u, v):
    args = (output(2), LawsScenario([(u, v)]))
    ours = Kantorovich().calibrate(*args).noise.scale
    assert ours >= GeneralWasserstein(**PURE).calibrate(*args).noise.scale * (1 - 1e-9)


def test_moves_are_measured_in_the_units_of_the_release():
    # along the second coordinate three units of ten, along the first two of one
    u, v = Discrete([[0, 0], [100, 0]]), Discrete([[0, 30], [102, 0]])
    units = output(2, units=(1.0, 10.0))
    for delta, sensitivity in ((None, 3.0), (0.5, 2.0)):
        found = Kantorovich(delta=delta).calibrate(units, LawsScenario([(u, v)]))
        assert found.certificate.sensitivity == sensitivity
        assert list(found.noise.scale) == [sensitivity, 10 * sensitivity]


def test_longest_moves_may_be_left_out():
    args = (output(2), scenario("kantorovich"))
    whole = Kantorovich().calibrate(*args)
    found = Kantorovich(delta=0.25).calibrate(*args)
    assert found.certificate.sensitivity < whole.certificate.sensitivity
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.certificate.delta == found.certificate.event_delta == 0.25
    assert any("left out" in str(text) for text in found.certificate.assumptions)
    # too little to leave one of four atoms out
    kept = Kantorovich(delta=0.2).calibrate(*args)
    assert kept.noise == whole.noise and kept.certificate.event_delta == 0


@given(laws, laws, st.floats(0.01, 0.5))
def test_no_event_exceeds_an_approximate_promise(u, v, delta):
    accountant = Kantorovich(0.7, delta=delta, noise="laplace")
    found = accountant.calibrate(output(), LawsScenario([(u, v)]))
    if found.noise.is_zero:
        return
    for first, second in ((u, v), (v, u)):
        true = hockey_stick(found.noise, *atoms(first), *atoms(second), 0.7)
        assert true <= found.certificate.event_delta + 1e-6 * delta
        assert true <= delta


def test_all_may_be_left_out():
    laws = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    found = Kantorovich(delta=0.5, noise="laplace").calibrate(output(), laws)
    assert found.noise.scale == 1.0
    almost = LawsScenario([(Discrete([0.0, 1.0], [99, 1]), PointMass(0.0))])
    assert Kantorovich(delta=0.01).calibrate(output(), almost).noise.is_zero


@pytest.mark.parametrize(
    "options, said",
    [
        ({"noise": "gaussian"}, Statement("noise.no_finite_pure_cost")),
        ({"noise": GaussianNoise()}, Statement("noise.no_finite_pure_cost")),
        (
            {"noise": "generalized_gaussian", "beta": 1.5},
            Statement("noise.no_finite_pure_cost"),
        ),
        ({"epsilon": 0.0}, Statement("parameter.not_positive", name="epsilon")),
        ({"delta": 1.0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"delta": 0.0}, Statement("parameter.probability_out_of_range", name="delta")),
    ],
    ids=repr,
)
def test_bad_parameters(options, said):
    with refused(ValueError, said.code, **said.parameters):
        Kantorovich(**options).calibrate(output(), scenario("flu"))
    with refused(ValueError, said.code, **said.parameters):
        Kantorovich(**options).certify(LaplaceNoise(1.0), output(), scenario("flu"))


def test_what_it_cannot_work_from():
    unequal = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(0.0, 2.0))])
    with pytest.raises(InfiniteDistanceError):
        Kantorovich().calibrate(output(), unequal)
    release = output(sensitivity=Sensitivity(add_remove={1: 1.0}))
    with refused(UnsupportedError, "accountant.remedy_other_accountants"):
        Kantorovich().calibrate(release, RecordScenario())
    samples = LawsScenario([(Samples([0.0, 1.0]), Samples([2.0, 1.0]))])
    found = Kantorovich().calibrate(output(), samples).certificate
    assert found.notion is Notion.ESTIMATED


def test_other_facts_of_a_prior():
    rng = np.random.default_rng(0)
    prior = pd.DataFrame({"s": [0, 1] * 500, "x": rng.integers(0, 3, 1000) * 1.0})
    release = QueryRelease(
        contribution=lambda X, y: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=3,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 2.0, 2: 2.0}, replace={1: 2.0, 2: 2.0}),
    )

    def found(trust, **options):
        secret = AttributeScenario("s", level="record", prior=prior, prior_as=trust)
        return Kantorovich(**options).calibrate(release, secret).certificate

    # as far as an arbitrary record: certain, whatever the prior
    assert found("support").notion is Notion.PURE_PUFFERFISH
    assert found("support").sensitivity == 2.0
    event = found("confidence")
    assert event.notion is Notion.APPROXIMATE_RENYI_PUFFERFISH
    assert event.event_delta > 0 and event.confidence == 0.99
    with refused(ValueError, "event.mass_above_delta"):
        found("confidence", delta=event.event_delta / 2)
    with_integers = DiscreteLaplaceNoise()
    assert Kantorovich(noise=with_integers).calibrate(
        output(), scenario("flu")
    ).noise.scale == pytest.approx(2.0)


def test_in_an_estimator():
    options = {"scenario": attribute(), "bounds": (0.0, 1.0)}
    model = PrivateMean(accountant=Kantorovich(0.5), **options).fit(table())
    pure = PrivateMean(accountant=GeneralWasserstein(0.5, **PURE), **options)
    assert model.noise_ == pure.fit(table()).noise_
    search = GridSearchCV(
        model,
        {"accountant__epsilon": [0.5, 1.0]},
        cv=2,
        scoring=lambda model, X, y=None: -float(np.max(model.noise_.scale)),
        error_score="raise",
    )
    assert search.fit(table()).best_params_ == {"accountant__epsilon": 1.0}


@pytest.mark.parametrize(
    "laws, share",
    # the published laws overlap, so that less noise would do
    [(pair("flu"), 0.35), (ALL_MOVES, SHARE)],
    ids=["flu", "all moves"],
)
def test_an_attacker(laws, share):
    found = Kantorovich(0.8).calibrate(output(), LawsScenario([laws]))
    options = {"n_draws": 30_000, "seed": 8, "share": share}
    assert_tight(found.certificate, found.noise, **noisy_laws(*laws), **options)
