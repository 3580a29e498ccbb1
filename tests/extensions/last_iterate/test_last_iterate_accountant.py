"""Runs of which the last iterate alone leaves: known values, order, and refusals."""

import math
from dataclasses import FrozenInstanceError, dataclass
from dataclasses import replace as replace_fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.accountants import (
    Best,
    IterationAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.distributions import PointMass
from skpuffer.exceptions import CompositionError, UnsupportedError
from skpuffer.extensions.last_iterate._amplification import IteratedSteps
from skpuffer.kernel.steps import steps_of
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.noise.strategies import banded_square_root
from skpuffer.privacy import Notion, compose, iteration_cost
from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.scenarios import Adjacency, LawsScenario, RecordScenario
from skpuffer.training import (
    Hinge,
    Huber,
    HuberHinge,
    LinearGradients,
    Logistic,
    MulticlassHinge,
    Multinomial,
    RecordGradient,
    Squared,
    train,
)
from skpuffer.training._engine import SCHEDULES
from tests.accountants.contract import Offering
from tests.extensions.last_iterate.last_iterates import (
    RECORD,
    STEP,
    last_iterate,
    penalty_for,
)
from tests.refused import refused as is_refused
from tests.refused import says

REPLACED = RecordScenario(relation="replace")


def mu_of(release, scenario=REPLACED, scale=1.0):
    """The distance of two Gaussians that a certificate rests on."""
    accountant = IterationAmplification()
    return accountant.certify(GaussianNoise(scale), release, scenario).curve.mu


def mu_of_moves(release, *, count=1, scale=1.0, **facts):
    """The same for facts that no scenario states."""
    fact = Adjacency(
        **{
            "count": count,
            "move": math.inf,
            "relation": "replace",
            "coupling_id": "test",
        }
        | facts
    )
    steps = steps_of(release, fact, {GradientRelease: IteratedSteps})
    return steps.under(GaussianNoise(scale), 500.0).curve.mu


# -- known values ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "c, n_steps, cost",
    [
        (0.9, 10, 9.1757303077),
        (0.9, 100, 18.9989906937),
        (0.99, 100, 92.3547417399),
        (0.5, 3, 2.3333333333),
    ],
)
def test_constant_steps_that_contract(c, n_steps, cost):
    release = last_iterate(n_steps=n_steps, l2=penalty_for(c))
    # one record comes or goes: a move of one, as large as the noise
    found = IterationAmplification(alpha=2).certify(
        GaussianNoise(1.0), release, RecordScenario()
    )
    assert found.epsilon == pytest.approx(cost, rel=1e-10)
    closed = (1 + c) / (1 - c) * (1 - c**n_steps) / (1 + c**n_steps)
    assert found.epsilon == pytest.approx(closed, rel=1e-12)
    assert found.epsilon >= closed * (1 - 1e-14)


@pytest.mark.parametrize(
    "c, cost", [(1.0, 1.45), (0.9, 1.0044932566), (0.99, 1.2943258240)]
)
def test_shuffled_epochs(c, cost):
    release = last_iterate(
        n_records=2000,
        n_steps=200,
        sampling="shuffled_epochs",
        batch_size=100,
        l2=penalty_for(c),
    )
    # records that are replaced move a sum by two
    noise = GaussianNoise(2.0)
    found = IterationAmplification(alpha=2).certify(noise, release, REPLACED)
    assert found.epsilon == pytest.approx(cost, rel=1e-9)
    composed = RenyiDP(delta=None, alpha=2.0).certify(noise, release, REPLACED)
    assert composed.epsilon == pytest.approx(10.0)


@pytest.mark.every_run
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("n_batches, moves", [(1, [1]), (2, [2, 1])])
def test_a_record_that_leaves_its_batch_is_missing_in_another(k, n_batches, moves):
    """Another one takes its place, and the batch of that one is shorter."""
    release = last_iterate(
        n_records=40,
        n_steps=n_batches,
        sampling="shuffled_epochs",
        batch_size=40 // n_batches,
    )
    found = mu_of(release, RecordScenario(k=k))
    # of one epoch each batch has noise of its own: squares add up
    assert found == pytest.approx(k * release.clip_norm * np.linalg.norm(moves))


def test_where_records_stand_in_their_epochs():
    """The last batches cost most; whoever is in the first ones gains most."""
    first, last, half = (np.zeros(200) for _ in range(3))
    first[::20] = last[19::20] = 1.0
    half[9::20] = half[19::20] = 0.5
    costs = [
        iteration_cost(shifts, 1.0, 2, coupling="joint")
        for shifts in (first, half, last)
    ]
    assert costs == pytest.approx([0.5, 0.725, 1.45], rel=1e-10)


def test_a_ball():
    # steps of a half, in a ball of diameter two: 4 where 25 would be added up
    release = last_iterate(
        n_records=1, n_steps=100, clip_norm=0.5, learning_rate=1.0, radius=1.0
    )
    found = IterationAmplification(alpha=2).certify(
        GaussianNoise(1.0), release, RecordScenario()
    )
    assert found.epsilon == pytest.approx(4.0, rel=1e-12)
    without = replace_fields(release, optimiser=Optimiser(learning_rate=1.0))
    found = IterationAmplification(alpha=2).certify(
        GaussianNoise(1.0), without, RecordScenario()
    )
    assert found.epsilon == pytest.approx(25.0)


def test_a_ball_costs_the_same_in_every_unit():
    """Noise, moves and the diameter are those of iterates: 2 alpha D s / sigma^2."""
    release = last_iterate(
        n_records=500, n_steps=10_000, learning_rate=0.8, radius=0.75, clip_norm=0.4
    )
    sigma = 3.0
    step = 0.8 / 500
    expected = 4 * 1.5 * (step * 0.8) / (step * sigma) ** 2
    assert mu_of(release, scale=sigma) ** 2 == pytest.approx(expected, rel=1e-3)


def test_it_promises_at_an_order_or_a_delta():
    release = last_iterate(l2=0.1)
    found = {}
    for mode in ({}, {"alpha": 2.0}, {"alpha": 8.0}, {"delta": 1e-5}):
        accountant = IterationAmplification(0.7, **mode)
        found[tuple(mode.items())] = accountant.calibrate(release, REPLACED)
    by_default, at_two, at_eight, at_delta = (c.certificate for c in found.values())
    assert by_default.alpha == at_two.alpha == 2.0
    assert by_default.curve == at_two.curve
    assert at_eight.notion is Notion.RENYI_DP and at_eight.alpha == 8.0
    assert at_eight.curve.renyi(8.0) == pytest.approx(0.7, rel=1e-9)
    assert at_delta.notion is Notion.APPROXIMATE_DP and at_delta.alpha is None
    # the trade-off itself, and no conversion of Rényi costs
    assert at_delta.curve.delta(0.7) == pytest.approx(1e-5, rel=1e-6)
    assert says(at_delta.assumptions, "assume.last_iterate_alone_leaves")
    assert at_delta.composable and at_delta.coupling_id == "replace:1"


def test_orders_that_are_none():
    with is_refused(ValueError, "iteration.alpha_infinite"):
        IterationAmplification(alpha=math.inf).check()
    with is_refused(ValueError, "parameter.alpha_and_delta_both"):
        IterationAmplification(alpha=2.0, delta=1e-5).check()
    with is_refused(ValueError, "parameter.not_positive", name="epsilon"):
        IterationAmplification(0.0).check()


# -- moves that a scenario bounds ------------------------------------------------------


def test_records_that_move_a_little_cost_as_much():
    run = last_iterate(l2=0.1, radius=3.0, n_steps=50)
    some = mu_of_moves(run, move=0.02)
    assert 0 < some < 0.05 * mu_of_moves(run)
    # their moves add up in a sum, each by its own bound
    three = mu_of_moves(run, count=3, move=0.02, moves=np.array([0.02, 0.01, 0.01]))
    assert some < three < 2 * some * (1 + 1e-6)
    certificate = IterationAmplification().certify(
        GaussianNoise(1.0), run, _offering(run, move=0.02)
    )
    assert certificate.notion is Notion.RENYI_PUFFERFISH
    assert certificate.coupling_id == "test"


def _offering(release, **facts):
    fact = Adjacency(
        **{
            "count": 1,
            "move": math.inf,
            "relation": "replace",
            "coupling_id": "test",
        }
        | facts
    )
    bound = REPLACED.bind(release.context)
    return Offering(bound, Adjacency, lambda release, norm: fact)


def test_labels_that_move():
    run = last_iterate(clip_norm=0.9)
    # min(2C, r) of the logistic loss
    ratio = mu_of_moves(run, relabelled=True) / mu_of_moves(run)
    assert ratio == pytest.approx(1 / 1.8, rel=1e-6)


def test_what_a_fact_leaves_out_is_paid_for_once():
    run = last_iterate(l2=0.1, n_steps=50)
    scenario = _offering(run, count=2, delta=4e-6, count_is_certain=False)
    found = IterationAmplification(delta=1e-5).calibrate(run, scenario)
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert found.certificate.event_delta == 4e-6
    given = found.certificate.curve.delta(1.0)
    assert (1 - 4e-6) * given + 4e-6 <= 1e-5 * (1 + 1e-9)
    with is_refused(UnsupportedError, "event.count_uncertain_at_order"):
        IterationAmplification(alpha=2.0).calibrate(run, scenario)


def test_few_of_many_records_fit_in_a_batch():
    facts = {"n_records": 60, "n_steps": 5, "batch_size": 10}
    fixed = last_iterate(sampling="fixed_size", **facts)
    assert mu_of(fixed, RecordScenario(k=10, relation="replace")) == pytest.approx(
        mu_of(fixed, RecordScenario(k=60, relation="replace"))
    )
    # one record may be drawn every time
    drawn = last_iterate(sampling="with_replacement", **facts)
    assert mu_of(drawn) == pytest.approx(10 * mu_of(fixed))


# -- order: what is more costs more ----------------------------------------------------

SCHEMES = {
    "full_batch": None,
    "fixed_size": 7,
    "with_replacement": 3,
    "shuffled_epochs": 7,
}


@st.composite
def runs(draw):
    sampling = draw(st.sampled_from(sorted(SCHEMES)))
    return last_iterate(
        n_records=30,
        n_steps=draw(st.integers(1, 40)),
        sampling=sampling,
        batch_size=SCHEMES[sampling],
        schedule=draw(st.sampled_from(sorted(SCHEDULES))),
        learning_rate=draw(st.floats(1e-3, 6.0)),
        l2=draw(st.sampled_from([0.0, 0.01, 1.0])),
        radius=draw(st.sampled_from([None, 0.3, 3.0])),
        clip_norm=draw(st.floats(0.01, 1.0)),
    )


def tuned(release, **options):
    optimiser = replace_fields(release.optimiser, **options)
    return replace_fields(release, optimiser=optimiser)


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 3))
def test_never_more_than_steps_add_up_to(release, k):
    scenario = RecordScenario(k=k, relation="replace")
    found = mu_of(release, scenario)
    size, steps = release.batch_size, release.n_steps
    if release.sampling.name == "shuffled_epochs":
        composed = PrivacyLoss().certify(GaussianNoise(1.0), release, scenario)
        assert found <= composed.curve.mu * (1 + 1e-9)
        return
    at_once = {"full_batch": k, "fixed_size": min(k, 7), "with_replacement": size}
    worst = 2 * at_once[release.sampling.name] * release.clip_norm * math.sqrt(steps)
    assert found <= worst * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(runs(), st.floats(0.1, 10.0))
def test_noise_and_cost_are_in_proportion(release, factor):
    one, other = mu_of(release), mu_of(release, scale=factor)
    assert other == pytest.approx(one / factor, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_what_forgets_more_costs_less(release):
    assert mu_of(tuned(release, l2=2 * release.optimiser.l2 + 0.1)) <= mu_of(
        release
    ) * (1 + 1e-9) or (
        # under a schedule, or in epochs, a penalty also says which steps come late
        release.optimiser.schedule != "constant"
        or release.sampling.name == "shuffled_epochs"
    )
    smaller = tuned(release, radius=0.5 * (release.optimiser.radius or 10.0))
    assert mu_of(smaller) <= mu_of(release) * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(runs())
def test_another_step_costs_no_less(release):
    """At constant steps: another one changes what a schedule makes of all."""
    steady = tuned(release, schedule="constant")
    longer = replace_fields(steady, n_steps=steady.n_steps + 1)
    if steady.sampling.name == "shuffled_epochs":
        # whole epochs: a part of one has batches that come later than they would
        n = -(-steady.n_steps // steady.steps_per_epoch) * steady.steps_per_epoch
        steady = replace_fields(steady, n_steps=n)
        longer = replace_fields(steady, n_steps=n + steady.steps_per_epoch)
    assert mu_of(longer) >= mu_of(steady) * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    runs(),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["replace", "add_remove"]),
)
def test_no_deal_of_the_records_costs_more(release, k, seed, relation):
    """Whatever batches they are in, and however steps change."""
    release = replace_fields(
        release, sampling="shuffled_epochs", batch_size=7, n_records=30
    )
    bound = mu_of(release, RecordScenario(k=k, relation=relation))
    rng = np.random.default_rng(seed)
    n_batches = release.steps_per_epoch
    moved = np.zeros((release.n_epochs, n_batches))
    batches = np.arange(30) * n_batches // 30
    for epoch in moved:
        own = rng.permutation(batches)[:k]
        np.add.at(epoch, own, 2)
        if relation == "add_remove":
            # a record of another batch takes the place of each that leaves
            np.add.at(epoch, (own + rng.integers(1, n_batches, k)) % n_batches, 1)
    moved = moved.ravel()
    steps = np.array(release.optimiser.step_sizes(release.n_steps))
    shrunk = 1 / (1 + steps * release.optimiser.l2)
    radius = release.optimiser.radius
    cost = iteration_cost(
        steps * shrunk * moved[: release.n_steps] * release.clip_norm,
        steps * shrunk,
        2.0,
        coupling="joint",
        contraction=shrunk,
        diameter=None if radius is None else 2 * radius * release.divisor,
    )
    assert math.sqrt(cost) <= bound * (1 + 1e-9)


# -- refusals: each names the setting that would do ------------------------------------

LABELLED = RecordGradient(loss=Multinomial(), data_norm=1.0, intercept=0.0, n_classes=3)
ANY_RECORD = {"record": None}


def of_loss(loss, n_classes=2):
    return RecordGradient(loss=loss, data_norm=1.0, intercept=0.0, n_classes=n_classes)


@dataclass(frozen=True)
class Sigmoid(Logistic):
    """No convex loss, though it says it is one's subclass."""


@dataclass(frozen=True, kw_only=True)
class OtherSteps(Optimiser):
    """Steps that are not those that are stated."""

    def step_sizes(self, n_steps):
        return [1e-3] * n_steps


REFUSED = {
    "iterates seen": ({"published": "all"}, "published='result'"),
    "no optimiser": ({"optimiser": None}, "optimiser=skpuffer.releases.Optimiser"),
    "other steps": (
        {"optimiser": OtherSteps(learning_rate=100.0)},
        "optimiser=skpuffer.releases.Optimiser",
    ),
    "momentum": ({"momentum": 0.5}, "momentum=0"),
    "nesterov": ({"nesterov": True}, "nesterov=False"),
    "average": ({"average": 0.3}, "average=0"),
    "averaged by a flag": ({"average": True}, "average=0"),
    "noise of updates": ({"noise_position": "update"}, "noise_position='gradient'"),
    "correlated noise": (
        {"noise_correlation": banded_square_root(2)},
        "noise_correlation=None",
    ),
    "another norm": (ANY_RECORD | {"clip_order": 1.0}, "clip_order=2"),
    "blocks": (ANY_RECORD | {"blocks": (2, 1), "clip_norm": (1.0, 1.0)}, "blocks=None"),
    "a network": (ANY_RECORD, "record=skpuffer.training.RecordGradient"),
    "a corner": ({"record": of_loss(Hinge())}, "'huber_hinge'"),
    "corners": (
        {"record": of_loss(MulticlassHinge(HuberHinge()), 3)},
        "'log_loss'",
    ),
    "a loss of one's own": ({"record": of_loss(Sigmoid())}, "skpuffer.training"),
    "clipped scores": ({"record": LABELLED}, "clip_norm=1.4"),
    "long steps": ({"learning_rate": 8.01}, "learning_rate=8.0 or less"),
    "long steps at once": (
        {"learning_rate": 8.01, "schedule": "warmup_cosine", "n_steps": 100},
        "learning_rate=8.0 or less",
    ),
    "Poisson batches": (
        {"sampling": "poisson", "batch_size": 6},
        "sampling='fixed_size' or 'full_batch', or learning_rate=0.8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    options, remedy = REFUSED[case]
    release = last_iterate(**options)
    accountant = IterationAmplification()
    support = accountant.supports(release, REPLACED)
    assert not support
    assert remedy in str(support.reason)
    for call in (
        lambda: accountant.calibrate(release, REPLACED),
        lambda: accountant.certify(GaussianNoise(1.0), release, REPLACED),
    ):
        with pytest.raises(UnsupportedError) as caught:
            call()
        assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 8.0},
        {"record": of_loss(HuberHinge(0.5)), "learning_rate": 2.0},
        {"record": of_loss(Squared(), None), "learning_rate": 2.0},
        {"record": of_loss(Huber(), None), "learning_rate": 2.0},
        {"record": LABELLED, "learning_rate": 4.0, "clip_norm": 1.418},
        {"sampling": "poisson", "batch_size": 6, "learning_rate": 0.8},
        # the smallest batch is of fewer records than the divisor, the largest of more
        {"sampling": "shuffled_epochs", "batch_size": 7, "learning_rate": 7.6},
    ],
)
def test_what_is_taken(options):
    assert IterationAmplification().supports(last_iterate(**options), REPLACED)


def test_batches_that_are_dealt_may_hold_more_than_the_divisor():
    uneven = {"sampling": "shuffled_epochs", "batch_size": 7, "n_records": 60}
    release = last_iterate(learning_rate=7.7, **uneven)
    assert math.ceil(60 / 9) == 7 > release.divisor
    assert not IterationAmplification().supports(release, REPLACED)


def test_an_intercept_that_is_not_penalised_does_not_contract():
    record = replace_fields(RECORD, intercept=0.5)
    runs = [
        last_iterate(record=record, l2=0.1, penalise_all=penalised, n_steps=50)
        for penalised in (True, False)
    ]
    mus = [mu_of(release) for release in runs]
    assert mus[0] < 0.5 * mus[1]
    assert mus[1] == pytest.approx(2 * math.sqrt(50))


def test_noise_that_it_does_not_know():
    release = last_iterate()
    for noise in (LaplaceNoise(1.0), GaussianNoise([1.0, 2.0])):
        with pytest.raises(UnsupportedError):
            IterationAmplification().certify(noise, release, REPLACED)


def test_groups_that_change_the_number_that_batches_are_drawn_from():
    release = last_iterate(sampling="fixed_size", batch_size=6)
    with is_refused(UnsupportedError, "sampling.draws_from_changing_count"):
        IterationAmplification().calibrate(release, RecordScenario(k=2))


def test_distances_of_single_steps_are_not_read():
    """They promise less than is lost where records depend on each other.

    The one fact that is read bounds all records at once, under one coupling.
    """
    ends = PointMass(0.0), PointMass(1.0)
    with is_refused(UnsupportedError, "accountant.facts_not_offered"):
        IterationAmplification().calibrate(last_iterate(), LawsScenario([ends]))
    assert IterationAmplification.needs == (Adjacency,)


def test_certificates_of_different_couplings_do_not_add_up():
    release = last_iterate()
    one, other = (
        IterationAmplification(delta=1e-5).certify(GaussianNoise(9.0), release, s)
        for s in (RecordScenario(), REPLACED)
    )
    twice = compose([one, one])
    assert twice.curve.mu == pytest.approx(math.sqrt(2) * one.curve.mu)
    with pytest.raises(CompositionError):
        compose([one, other])


# -- the run that is accounted for is the one that is executed -------------------------


def test_a_release_does_not_change():
    release = last_iterate()
    for thing, name in ((release, "n_steps"), (release.optimiser, "learning_rate")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, 10)


def test_only_the_gradients_that_are_stated_are_executed():
    X, y = np.eye(4) / 2, np.array([0, 1, 0, 1])
    release = last_iterate(n_records=4)
    noise, rng = GaussianNoise(1.0), np.random.default_rng(0)
    good = LinearGradients(Logistic(), X, y, intercept_scale=0.0)
    assert train(good, release, noise, rng).shape == (4,)
    for other, message in (
        (
            LinearGradients(Hinge(), X, y, intercept_scale=0.0),
            "gradient.record_of_other_gradients",
        ),
        (
            LinearGradients(Logistic(), X, y, intercept_scale=0.5),
            "gradient.record_of_other_gradients",
        ),
        (
            LinearGradients(Logistic(), 9 * X, y, intercept_scale=0.0),
            "gradient.record_rows_not_scaled",
        ),
        (
            LinearGradients(Logistic(), X[:3], y[:3], intercept_scale=0.0),
            "training.record_count_differs",
        ),
    ):
        with is_refused(ValueError, message):
            train(other, release, noise, rng)


def test_a_start_outside_of_the_ball_is_projected_into_it():
    X, y = np.eye(4) / 2, np.array([0, 1, 0, 1])
    release = last_iterate(n_records=4, radius=0.5, n_steps=1, learning_rate=1e-9)
    gradients = LinearGradients(Logistic(), X, y, intercept_scale=0.0)
    noise, rng = GaussianNoise(1e-9), np.random.default_rng(0)
    found = train(gradients, release, noise, rng, initial=np.full(4, 9.0))
    assert np.linalg.norm(found) <= 0.5 * (1 + 1e-12)


# -- the best of several ---------------------------------------------------------------


def test_best_takes_it_where_it_is_best_and_goes_on_where_it_refuses():
    last = last_iterate(l2=0.1, n_steps=500)
    found = Best(delta=1e-5).calibrate(last, RecordScenario())
    assert str(found.certificate.choice).startswith(
        "IterationAmplification(delta=1e-05)"
    )
    for refused in (
        replace_fields(last, published="all"),
        replace_fields(last, optimiser=Optimiser(learning_rate=4.0, momentum=0.5)),
    ):
        other = Best(delta=1e-5).calibrate(refused, RecordScenario())
        assert str(other.certificate.choice).startswith("PrivacyLoss(")
        assert other.noise.scale > 4 * found.noise.scale
    at_order = Best(alpha=4.0).calibrate(last, RecordScenario())
    assert str(at_order.certificate.choice).startswith(
        "IterationAmplification(alpha=4.0)"
    )
    assert at_order.certificate.alpha == 4.0


def test_a_remedy_is_no_accountant_that_refuses_as_well():
    release = last_iterate(published="all", record=None)
    ends = PointMass(0.0), PointMass(1.0)
    support = PrivacyLoss().supports(release, LawsScenario([ends]))
    assert "IterationAmplification" not in str(support.reason)


def test_the_step_it_takes():
    release = last_iterate(optimiser=None)
    assert IterationAmplification().longest_step(release) == STEP * 2
    assert Best().longest_step(release) == STEP * 2
    assert PrivacyLoss().longest_step(release) == math.inf
    assert IterationAmplification().longest_step(last_iterate(record=None)) == 0.0


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("target", [{"delta": 1e-5}, {"alpha": 4.0}])
def test_a_gain_is_over_the_least_noise_that_hides_any_record(seen, target):
    """In small batches a run that is seen may hide one with less noise."""
    if seen:
        options = {"batch_size": 6, "sampling": "poisson", "learning_rate": 0.5}
    else:
        options = {"l2": penalty_for(0.5)}
    release = last_iterate(n_steps=40, **options)
    accountant = IterationAmplification(1.0, **target)
    own = accountant.calibrate(release, REPLACED).noise.scale
    every = RenyiDP(1.0, None, **target) if "alpha" in target else PrivacyLoss(1.0)
    other = every.calibrate(release, REPLACED).noise.scale
    found = accountant._scale_of_any_record(
        IteratedSteps(release, "replace", 1, 0.0, None, (0.1,))
    )
    assert (other < own) is seen
    assert found == pytest.approx(min(own, other), rel=1e-3)
