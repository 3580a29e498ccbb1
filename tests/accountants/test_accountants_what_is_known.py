"""What is not known for certain is not taken to be: bounds, shares, groups, counts."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import (
    ApproximateWasserstein,
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
)
from skpuffer.accountants._additive._approximate import near_sensitivity
from skpuffer.accountants._additive._couplings import has_masses
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.distributions import Discrete, Support, distribution_distance
from skpuffer.distributions._distributions import largest_distance
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.kernel.poisson_groups import GaussianPoissonGroup
from skpuffer.kernel.sums import sensitivity_bound
from skpuffer.noise import GaussianNoise, Shift
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BinnedLaw,
    BoundedOdds,
    CoupledSamples,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.transport import near_radius
from tests.refused import refused as is_refused

# The support of a law that may be any, and a law that is known, on the same points.
ANY, KNOWN = Support([0.0, 5.0]), Discrete([0.0, 5.0])
RELEASE = QueryRelease(
    query=lambda X, y: X.sum(),
    n_records=10,
    dim=1,
    sensitivity=Sensitivity(add_remove={2: 1.0}),
)


@pytest.mark.parametrize("pair", [(ANY, KNOWN), (KNOWN, ANY), (ANY, ANY)])
def test_a_support_is_no_law_that_is_known(pair):
    """All its mass may be at the far end, whatever the other law is."""
    assert distribution_distance(*pair) == 5.0
    assert largest_distance([pair]) == (5.0, 0)
    assert not all(map(has_masses, pair))
    release = QueryRelease(query=lambda X, y: X.sum(), n_records=10, dim=1)
    for accountant in (
        GeneralWasserstein(1.0, alpha=2.0),
        ApproximateWasserstein(1.0, alpha=2.0, event_delta=0.4),
        Kantorovich(1.0),
    ):
        found = accountant.calibrate(release, LawsScenario([pair]))
        assert found.certificate.sensitivity == 5.0


@pytest.mark.parametrize("event, left_out", [(0.25, 2), (0.29, 2), (0.3, 3), (0.09, 0)])
def test_no_more_draws_are_left_out_than_the_share_covers(event, left_out):
    v = np.arange(1.0, 11.0)[:, None]
    fact = CoupledSamples(draws=((0, 0, 1, 0 * v, v),), secrets=(0, 1), certified=False)
    whole = sensitivity_bound(fact, RELEASE, 2)
    found = near_sensitivity(fact, whole, RELEASE, 2, event)
    assert found.radius == 10 - left_out


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("event, left_out", [(0.25, 2), (0.29, 2), (0.09, 0)])
def test_no_more_mass_is_left_out_than_the_share_covers(event, left_out, dim):
    v = np.zeros((10, dim))
    v[:, 0] = np.arange(1.0, 11.0)
    assert near_radius(0 * v, v, event) == pytest.approx(10 - left_out)


@pytest.mark.parametrize("count", [1.9, float("nan"), float("inf"), -1])
def test_records_that_differ_are_a_whole_number(count):
    """Cut off to an integer, as a number of steps is, it would be too small."""
    with is_refused(ValueError, ("parameter.count_too_small", "parameter.is_nan")):
        Adjacency.arbitrary(count, ())


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_group_may_be_split_in_any_way_between_two_worlds(count):
    groups = GaussianPoissonGroup(GaussianNoise(1.0).curve(Shift(1.0, 2)), 0.1, count)
    directions = {(way.first, way.second) for way in groups.directions}
    assert directions == {
        pair
        for pair in itertools.product(range(count + 1), repeat=2)
        if sum(pair) == count
    }
    curve = PrivacyLossCurve(((groups, 1),))
    for epsilon in (0.0, 0.01, 0.1, 0.5):
        worst = max(
            float(way.delta(np.array([epsilon]))[0]) for way in groups.directions
        )
        assert curve.delta(epsilon) >= worst * (1 - 1e-12)


def test_without_room_for_an_event_what_is_certain_counts():
    """How far a record moves is known outside of an event, that it is one always."""
    rows = pd.DataFrame({"s": [0, 1] * 40, "a": [0.4, 0.6] * 40})
    scenario = AttributeScenario("s", level="record", prior=rows, prior_as="confidence")
    release = QueryRelease(
        contribution=lambda X, y: X,
        is_sum=True,
        n_records=9,
        dim=1,
        sensitivity=Sensitivity({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}),
        context=PublicContext(n_records=9, feature_names=("a",), n_features=1),
    )
    event = scenario.bind(release.context).fact(Adjacency, release).delta
    assert 0.1 < event < 0.9
    wide, narrow = (
        GroupPrivacy(1.0, delta=delta).calibrate(release, scenario)
        for delta in ((1 + event) / 2, 1e-5)
    )
    assert wide.certificate.event_delta == event
    assert wide.certificate.sensitivity == pytest.approx(0.2)
    # one record, whatever it becomes: nothing that rests on the public rows
    plain = GroupPrivacy(1.0, delta=1e-5).calibrate(
        release, RecordScenario(relation="replace")
    )
    certificate = narrow.certificate
    assert narrow.noise == plain.noise
    assert (certificate.event_delta, certificate.confidence) == (0.0, 1.0)
    assert certificate.coupling_id == "replace:1"
    assert any(
        "has no room for an event" in str(text) for text in certificate.assumptions
    )
    assert Best(1.0, delta=1e-5).calibrate(release, scenario).certificate.certified
    # distances of distributions are what the rows say, and nothing without them
    with is_refused(ValueError, "event.mass_above_delta"):
        GeneralWasserstein(1.0, delta=1e-5).calibrate(release, scenario)
    # and of a chain all records may be concerned: no accountant is sent to itself
    chain = MarkovChainScenario(
        [[0.5, 0.5], [0.4, 0.6]], states=[0.0, 1.0], event_delta=1e-3
    )
    long = replace(release, n_records=900, context=PublicContext(n_records=900))
    with is_refused(ValueError, "event.mass_above_delta") as refused:
        GroupPrivacy(1.0, delta=1e-5).calibrate(long, chain)
    assert "GroupPrivacy" not in str(refused.value)
    # how many records differ may itself be what is known outside of the event only
    vague = Adjacency(
        count=2,
        move=0.1,
        relation="replace",
        coupling_id="c",
        delta=0.1,
        count_is_certain=False,
        confidence=0.9,
        window=2,
    )
    certain = vague.in_any_event(9)
    assert (certain.count, certain.move, certain.delta) == (9, np.inf, 0.0)
    assert certain.window is None and certain.coupling_id == "replace:9"


#: One column of bits, of which the two values of the secret have other shares, so
#: that the longest move is that of any two records, and the mean one is short.
BITS = pd.DataFrame({"s": np.repeat([0, 1], 20_000), "x": np.arange(40_000) % 2.0})
BITS.loc[:999, "x"] = 1.0


def identity(X, y):
    return np.asarray(X, dtype=float)


SUM = QueryRelease(
    contribution=identity,
    is_sum=True,
    n_records=10,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}, replace={1: 1.0, 2: 1.0}),
    context=PublicContext(n_records=10, feature_names=("x",), n_features=1),
)
#: The same by a bound of its own on how far it moves.
SMOOTH = replace(SUM, query=lambda X, y: X.sum(axis=0), is_sum=False, modulus=float)


def of_bits(secret, rng):
    return pd.DataFrame({"x": rng.integers(0, 2, 10) * 1.0})


def of_two_bits(one, other, rng):
    table = of_bits(one, rng)
    changed = table.copy()
    changed.iloc[0] = 1.0
    return table, changed


#: What is known with a confidence, or outside of an event.
NOT_FOR_CERTAIN = {
    "rows": AttributeScenario(
        "s", level="record", prior=BITS, prior_as="confidence", confidence=0.95
    ),
    "belief": AttributeScenario(
        "s",
        level="record",
        prior=BinnedLaw(BITS, {"x": [0.5]}, rest=BoundedOdds(50.0)),
        prior_as="confidence",
        confidence=0.95,
    ),
    "draws": SimulatorScenario(
        of_bits, of_two_bits, secrets=[0, 1], n_draws=400, confidence=0.95
    ),
}


@pytest.mark.parametrize("asked", [{"alpha": 2.0}, {"delta": 0.2}], ids=str)
@pytest.mark.parametrize("release", [SUM, SMOOTH], ids=["sum", "smooth"])
@pytest.mark.parametrize("name", NOT_FOR_CERTAIN)
def test_what_is_not_known_for_certain_is_stated(name, release, asked):
    """Or it is no better than what holds of any two records."""
    bound, stated = NOT_FOR_CERTAIN[name].bind(release.context), 0
    for kind in known_accountants():
        if not asked.keys() <= kind().get_params().keys():
            continue
        accountant = kind(0.3, **asked)
        try:
            fact = bound.fact(accountant._need(release, bound), release)
            made = accountant.calibrate(release, bound)
        except (UnsupportedError, ValueError):
            continue
        if fact.confidence == 1 or not fact.certified:
            continue
        again = accountant.certify(made.noise, release, bound)
        for found in (made.certificate, again):
            if found.event_delta >= fact.delta and found.confidence <= 0.95:
                stated += 1
                continue
            assert (found.event_delta, found.confidence) == (0.0, 1.0), kind
            plain = GroupPrivacy(1.0, **asked, noise=made.noise.with_scale(1.0))
            anyone = RecordScenario(relation="replace")
            least = plain.certify(made.noise, release, anyone)
            assert found.epsilon >= least.epsilon * (1 - 1e-6), kind
    assert stated or (name, *asked) == ("belief", "alpha")


@pytest.mark.parametrize("release", [SUM, SMOOTH], ids=["sum", "smooth"])
def test_a_sample_promises_less_than_the_law_that_it_shows(release):
    """Whether records are told apart pair by pair or not."""
    accountant = OverlapAmplification(0.3, delta=0.2, noise="gaussian")
    law, sample, support = (
        clone(NOT_FOR_CERTAIN["belief"]).set_params(prior_as=prior_as)
        for prior_as in ("law", "confidence", "support")
    )
    noise = accountant.calibrate(release, law).noise
    exact, *less = (
        accountant.certify(noise, release, scenario).epsilon
        for scenario in (law, sample, support)
    )
    assert all(epsilon > exact * (1 + 1e-6) for epsilon in less)


_LAWS = {0: [0.0, 0.0, 0.5], 1: [0.5, 1.0, 1.0], 2: [0.0, 0.0, 3.0]}
_PEOPLE = pd.DataFrame(
    # of each value other numbers of rows, so that their shares are known less well
    [(s, x) for s, held in _LAWS.items() for x in held * (60 - 25 * s)],
    columns=["s", "x"],
)
_STEPS = np.array([[0.9, 0.05, 0.05], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
_FAST = np.full((3, 3), 1 / 3)
_STATES = np.array([0.0, 1.0, 3.0])


def _told(rows=(_PEOPLE,), pairs=((0, 1), (0, 2), (1, 2))):
    asked = {"level": "record", "prior_as": "confidence", "confidence": 0.9}
    return AttributeScenario("s", prior=list(rows), pairs=list(pairs), **asked)


def _chain(chains=(_STEPS,), order=(0, 1, 2)):
    order = list(order)
    moved = [chain[np.ix_(order, order)] for chain in chains]
    given = moved[0] if len(moved) == 1 else moved
    return MarkovChainScenario(given, states=_STATES[order], event_delta=1e-2)


#: The same in another order: of pairs, of beliefs, of chains, of states.
ORDERS = {
    "pairs": [_told(pairs=p) for p in itertools.permutations([(0, 1), (0, 2), (1, 2)])],
    "beliefs": [
        _told(rows)
        for rows in itertools.permutations([_PEOPLE, _PEOPLE[_PEOPLE["s"] < 2]])
    ],
    "chains": [_chain(c) for c in itertools.permutations([_STEPS, _FAST])],
    "states": [_chain(order=o) for o in itertools.permutations(range(3))],
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_last_of_several_does_not_count_alone(name):
    """In whatever order they are told, the worst of them sets what is promised."""
    release = QueryRelease(
        contribution=lambda X, y=None: np.asarray(X, dtype=float),
        is_sum=True,
        n_records=40,
        dim=1,
        sensitivity=Sensitivity(add_remove={1: 9.0, 2: 9.0}),
        context=PublicContext(n_records=40, n_features=1, feature_names=("x",)),
    )
    said = []
    for scenario in ORDERS[name]:
        bound = scenario.bind(release.context)
        found = [bound.fact(Adjacency, release).delta]
        if isinstance(scenario, MarkovChainScenario):
            found.append(MarkovQuilt(1.0).calibrate(release, bound).noise.scale)
        said.append(found)
    np.testing.assert_allclose(said, said[:1] * len(said), rtol=1e-9)


# -- an event that any fact may hold outside of ----------------------------------------

#: Mass of the event, and what it and the noise may take together.
EVENT, DELTA = 2e-4, 1e-3


def told_with_event(bound):
    """A bound scenario, each of whose facts fails on an event."""
    plain = bound.fact
    bound.fact = lambda *asked: replace(plain(*asked), delta=EVENT)
    return bound


def with_deltas():
    """Each accountant that states a delta, once for each kind of fact and release."""
    kinds = [k for k in known_accountants() if "delta" in k().get_params()]
    found = {}
    for scenario in _scenarios(4).values():
        for release in _releases(4).values():
            for kind in (k for k in kinds if k is not Best):
                if all((kind, need, type(release)) in found for need in kind.needs):
                    continue
                try:
                    bound = scenario.bind(release.context)
                except ScenarioError:
                    continue
                made = kind(delta=DELTA)
                if made.supports(release, bound):
                    need = made._need(release, bound)
                    asked = made, release, scenario
                    found.setdefault((kind, need, type(release)), asked)
    return found


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_noise_has_no_part_of_delta_that_an_event_takes():
    taken = set()
    for key, (accountant, release, scenario) in with_deltas().items():
        noise = accountant.calibrate(release, scenario, 0).noise
        bound = told_with_event(scenario.bind(release.context))
        told = accountant.certify(noise, release, bound)
        assert told.delta == DELTA and told.event_delta in (0.0, EVENT), key
        left = clone(accountant).set_params(delta=DELTA - told.event_delta)
        plain = left.certify(noise, release, scenario)
        # those of draws differ by chance
        slack = 1e-9 if told.certified else 1e-2
        assert told.epsilon >= plain.epsilon * (1 - slack), key
        if told.event_delta:
            taken.add(key[0])
    assert {OverlapAmplification, GroupPrivacy, GeneralWasserstein} <= taken
