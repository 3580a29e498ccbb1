"""Sums in turn are accounted for as one vector, at what each stage moves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.accountants._compatibility import _scenarios
from skpuffer.accountants._gain import gain_over_records
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.draws import secret_generator
from skpuffer.kernel.run import noise_grid
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    LaplaceNoise,
)
from skpuffer.privacy import Notion
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import AdaptiveRelease, QueryRelease, Sensitivity, Stage
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    MarkovChainScenario,
    RecordScenario,
)
from tests.refused import refused

from ..attack import assert_tight

#: Stages whose relations and norms differ in different proportions.
HISTOGRAM = Sensitivity(add_remove={1: 3.0, 2: 3**0.5}, replace={1: 6.0, 2: 6**0.5})
SUMS = Sensitivity(add_remove={1: 4.0, 2: 1.25}, replace={1: 8.0, 2: 2.0})
STAGES = (Stage("histogram", 8, HISTOGRAM, 0.2), Stage("sums", 20, SUMS, 0.8, times=4))
RELATIONS = ("add_remove", "replace")


def adaptive(relation="add_remove", norm=2.0, stages=STAGES, **options):
    return AdaptiveRelease(
        n_records=60, stages=stages, relation=relation, norm=norm, **options
    )


# -- what is spent ---------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_units_by_hand(relation):
    """u = sensitivity sqrt(times/share) in l2, sensitivity times/share in l1."""
    histogram, sums = {"add_remove": (3, 4), "replace": (6, 8)}[relation]
    whole = adaptive(relation, 1.0)
    assert [whole.unit(i) for i in (0, 1)] == pytest.approx(
        [histogram / 0.2, sums * 4 / 0.8]
    )
    histogram, sums = {"add_remove": (3**0.5, 1.25), "replace": (6**0.5, 2.0)}[relation]
    whole = adaptive(relation, 2.0)
    assert [whole.unit(i) for i in (0, 1)] == pytest.approx(
        [histogram * math.sqrt(1 / 0.2), sums * math.sqrt(4 / 0.8)]
    )
    assert whole.dim == 8 + 4 * 20


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_whole_has_sensitivity_one_where_it_was_laid_out(relation, norm):
    whole = adaptive(relation, norm)
    one = whole.sensitivity.value(relation, norm, whole.dim)
    assert one == pytest.approx(1.0, rel=1e-12)


def test_under_the_other_relation_stages_add_up_one_by_one():
    whole = adaptive("add_remove", 2.0)
    # the histogram costs sqrt(2) times as much where a record is replaced, a sum 1.6
    expected = math.sqrt(0.2 * 2 + 0.8 * 1.6**2)
    assert whole.sensitivity.value("replace", 2, whole.dim) == pytest.approx(expected)
    whole = adaptive("replace", 2.0)
    expected = math.sqrt(0.2 / 2 + 0.8 / 1.6**2)
    found = whole.sensitivity.value("add_remove", 2, whole.dim)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 3])
def test_gaussian_stages_are_one_gaussian_pair(relation, k):
    """mu^2 = sum of (k sensitivity / deviation)^2 over all vectors, at any layout."""
    for laid in RELATIONS:
        whole = adaptive(laid)
        found = PrivacyLoss(1.0).calibrate(whole, RecordScenario(k, relation))
        moves = {"add_remove": (3**0.5, 1.25), "replace": (6**0.5, 2.0)}[relation]
        squares = [
            times * (k * move / whole.deviation(i, found.noise)) ** 2
            for i, (move, times) in enumerate(zip(moves, (1, 4), strict=True))
        ]
        mu = math.sqrt(sum(squares))
        assert found.certificate.curve.gaussian_mu == pytest.approx(mu)
        assert GaussianCurve(mu).epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)
        assert "adaptively" in str(found.certificate.source)


@pytest.mark.parametrize("relation", RELATIONS)
def test_laplace_stages_spend_epsilon_by_their_shares(relation):
    accountant = GroupPrivacy(0.8, alpha=math.inf, noise="laplace")
    whole = adaptive(relation, 1.0)
    found = accountant.calibrate(whole, RecordScenario(relation=relation))
    scales = [whole.unit(i) * found.noise.scale for i in (0, 1)]
    moves = {"add_remove": (3, 4), "replace": (6, 8)}[relation]
    spent = [moves[0] / scales[0], 4 * moves[1] / scales[1]]
    assert spent == pytest.approx([0.2 * 0.8, 0.8 * 0.8])
    assert found.certificate.notion is Notion.PURE_DP
    assert found.certificate.epsilon == pytest.approx(0.8)


def test_laplace_curves_cover_every_split_of_a_shift():
    """Stages of fixed l1 moves are no worse together than one move of their sum."""
    law = LaplaceNoise(1.0)
    grid = np.linspace(-25, 25, 1501)
    density = np.exp(-np.abs(grid[:, None] - np.array([0, 0.7, 1.6]))) / 2
    p = np.multiply.outer(density[:, 0], density[:, 0])
    q = np.multiply.outer(density[:, 1], density[:, 2])
    for epsilon in (0.0, 0.5, 1.5):
        excess = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (50 / 1500) ** 2
        assert excess <= law.curve(2.3).delta(epsilon) + 1e-3


def test_the_same_as_one_vector():
    """A release of one stage is the query of its sensitivity, in other units."""
    whole = adaptive(stages=(Stage("histogram", 8, HISTOGRAM, 1.0),))
    query = QueryRelease(
        query=np.sum, n_records=60, dim=8, sensitivity=HISTOGRAM, name="query"
    )
    for scenario in (
        RecordScenario(k=2),
        RecordScenario(relation="replace"),
        BlocksScenario(RecordScenario(k=3, relation="replace"), sizes=3),
    ):
        accountant = PrivacyLoss(0.7, noise="gaussian")
        one = accountant.calibrate(whole, scenario)
        other = accountant.calibrate(query, scenario)
        assert whole.deviation(0, one.noise) == pytest.approx(other.noise.scale)
        for field in ("notion", "epsilon", "coupling_id", "composable", "relation"):
            assert getattr(one.certificate, field) == getattr(other.certificate, field)


# -- who answers for it ----------------------------------------------------------------

ODDS = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))


def test_a_belief_amplifies_the_whole_once():
    whole = adaptive("replace")
    found = OverlapAmplification(0.3).calibrate(whole, ODDS)
    assert found.certificate.gain == pytest.approx(3.05, abs=0.01)
    best = Best(0.3, delta=1e-5).calibrate(whole, ODDS)
    assert best.noise.scale == pytest.approx(found.noise.scale, rel=1e-3)
    gain, count = gain_over_records(found, 0.3, whole, ODDS.bind(whole.context))
    assert (gain, count) == (pytest.approx(3.05, abs=0.01), 1)


def test_gain_is_found_where_no_accountant_states_it():
    whole, scenario = adaptive("replace"), RecordScenario(relation="relabel")
    found = GroupPrivacy(1.0, delta=1e-5).calibrate(whole, scenario)
    assert gain_over_records(found, 1.0, whole, scenario.bind(whole.context)) == (1, 1)


@pytest.mark.parametrize("name", _scenarios(60))
def test_only_adjacency_quilts_and_beliefs_answer(name):
    able = {
        Best,
        GroupPrivacy,
        MarkovQuilt,
        OverlapAmplification,
        PrivacyLoss,
        RenyiDP,
    }
    whole, scenario = adaptive("replace"), _scenarios(60)[name]
    for kind in known_accountants():
        # some promise at an order alone
        has_delta = "delta" in kind().get_params()
        accountant = kind(delta=1e-5) if has_delta else kind()
        try:
            support = accountant.supports(whole, scenario)
        except ValueError:  # a scenario of blocks of another table, say
            continue
        assert kind in able or not support
        if support and kind is not Best:
            assert accountant.certify(GaussianNoise(9.0), whole, scenario).certified


@pytest.mark.parametrize(
    "noise",
    [
        GeneralizedGaussianNoise(1.0, beta=1.5),
        GeneralizedGaussianNoise(1.0, beta=2.0),
        GeneralizedCauchyNoise(1.0),
        GaussianNoise([1.0] * 88),
        CorrelatedGaussianNoise(1.0, covariance=np.eye(88)),
    ],
    ids=lambda noise: noise.family,
)
def test_other_noise_is_refused(noise):
    whole = adaptive()
    for accountant in (
        PrivacyLoss(1.0),
        RenyiDP(1.0, delta=None, alpha=3.0),
        GroupPrivacy(1.0),
        OverlapAmplification(1.0),
    ):
        scenario = ODDS if isinstance(accountant, OverlapAmplification) else None
        scenario = scenario or RecordScenario()
        with refused(UnsupportedError, "noise.stages_of_several_scales"):
            accountant.certify(noise, whole, scenario)
        if noise.dim is None:
            accountant.set_params(noise=noise)
            assert not accountant.supports(whole, scenario)
            with refused(UnsupportedError, "noise.stages_of_several_scales"):
                accountant.calibrate(whole, scenario)


def test_quilts_pay_for_their_influence_once():
    """The noise of one vector, in units of the stages: near records are a group."""
    chain = MarkovChainScenario([[0.7, 0.3], [0.3, 0.7]])
    whole = adaptive("replace", 1.0)
    query = QueryRelease(
        query=np.sum,
        n_records=60,
        dim=whole.dim,
        sensitivity=Sensitivity(add_remove={1: 1.0}, replace={1: 1.0}),
    )
    one, other = (MarkovQuilt(1.0).calibrate(r, chain) for r in (whole, query))
    assert one.noise.scale == pytest.approx(other.noise.scale)
    assert (
        one.noise.scale
        < GroupPrivacy(1.0, alpha=math.inf, noise="laplace")
        .calibrate(whole, RecordScenario(60, "replace"))
        .noise.scale
    )
    with refused(UnsupportedError, "noise.stages_of_several_scales"):
        MarkovQuilt(noise="generalized_cauchy").calibrate(whole, chain)
    cauchy = GeneralizedCauchyNoise(1.0)
    with refused(UnsupportedError, "noise.stages_of_several_scales"):
        MarkovQuilt().certify_together([(cauchy, whole)], chain)


# -- how it is laid out ----------------------------------------------------------------


@pytest.mark.parametrize(
    "accountant, scenario, expected",
    [
        (PrivacyLoss(), RecordScenario(), (2, "add_remove")),
        (PrivacyLoss(), RecordScenario(relation="replace"), (2, "replace")),
        (PrivacyLoss(noise="laplace"), RecordScenario(k=3), (1, "add_remove")),
        (PrivacyLoss(), BlocksScenario(RecordScenario(k=3)), (2, "add_remove")),
        (PrivacyLoss(), RecordScenario(relation="relabel"), (2, "replace")),
        (OverlapAmplification(), ODDS, (2, "replace")),
        (Best(delta=1e-5), ODDS, (2, "replace")),
        (Best(alpha=math.inf), RecordScenario(), (1, "add_remove")),
        (GroupPrivacy(alpha=math.inf, noise="laplace"), ODDS, (1, "replace")),
        (PrivacyLoss(noise="generalized_cauchy"), ODDS, (2, "replace")),
    ],
)
def test_layout_follows_noise_and_relation(accountant, scenario, expected):
    assert stage_layout(accountant, scenario) == expected


# -- how it is executed ----------------------------------------------------------------


def test_noise_is_in_proportion_to_the_unit():
    whole, noise = adaptive(), GaussianNoise(2.0)
    drawn = whole.noisy(1, np.zeros((20, 1)), noise, np.random.default_rng(0))
    unit = noise.sample((20, 1), np.random.default_rng(0))
    np.testing.assert_allclose(drawn, whole.unit(1) * unit)
    assert whole.deviation(1, noise) == pytest.approx(2 * whole.unit(1))
    laplace = LaplaceNoise(2.0)
    assert whole.deviation(1, laplace) == pytest.approx(8**0.5 * whole.unit(1))


@pytest.mark.parametrize("stage", [0, 1])
def test_stages_are_multiples_of_a_public_grid_in_their_units(stage):
    release, noise = adaptive(), GaussianNoise(3.0)
    exact = np.linspace(-1, 1, STAGES[stage].dim)
    grid = noise_grid(noise, release.n_records)
    steps = release.noisy(stage, exact, noise, secret_generator()) / release.unit(stage)
    np.testing.assert_allclose(np.rint(steps / grid) * grid, steps, rtol=1e-15)
    # not so what is drawn of a seed
    steps = release.noisy(stage, exact, noise, np.random.default_rng(0))
    steps /= release.unit(stage)
    assert np.abs(np.rint(steps / grid) * grid - steps).max() > grid / 100


def test_what_was_not_accounted_for_is_not_executed():
    whole, noise, rng = adaptive(), GaussianNoise(1.0), np.random.default_rng(0)
    with refused(ValueError, "release.stage_dimension_mismatch", dim=20):
        whole.noisy(1, np.zeros(21), noise, rng)
    with refused(ValueError, "release.stage_not_finite"):
        whole.noisy(0, np.full(8, np.nan), noise, rng)
    with refused(TypeError, "release.adaptive_not_run_whole"):
        whole.run(np.zeros((60, 2)))


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"stages": STAGES[:1]}, ValueError, Statement("release.stage_shares_sum")),
        ({"stages": ()}, ValueError, Statement("release.stage_shares_sum")),
        ({"stages": [SUMS]}, TypeError, Statement("release.stages_wrong_type")),
        (
            {"relation": "relabel"},
            ValueError,
            Statement("parameter.option_unknown", name="relation"),
        ),
        ({"norm": 3.0}, ValueError, Statement("parameter.option_unknown", name="norm")),
        (
            {"query": np.sum},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="query"),
        ),
        (
            {"contribution": np.sum},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="contribution"),
        ),
        (
            {"is_sum": True},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="is_sum"),
        ),
        (
            {"linear": np.eye(3)},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="linear"),
        ),
        (
            {"units": (1.0, 2.0)},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="units"),
        ),
        (
            {"dim": 4},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="dim"),
        ),
        (
            {"sensitivity": SUMS},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="sensitivity"),
        ),
        (
            {"is_integer": True},
            ValueError,
            Statement("release.adaptive_field_not_allowed", field="is_integer"),
        ),
    ],
)
def test_bad_releases(options, error, said):
    with refused(error, said.code, **said.parameters):
        adaptive(**options)


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"dim": 0}, ValueError, Statement("parameter.count_too_small", name="dim")),
        (
            {"times": 0},
            ValueError,
            Statement("parameter.count_too_small", name="times"),
        ),
        ({"share": 0.0}, ValueError, Statement("parameter.not_positive", name="share")),
        (
            {"sensitivity": 1.0},
            TypeError,
            Statement("release.stage_sensitivity_wrong_type"),
        ),
    ],
)
def test_bad_stages(options, error, said):
    with refused(error, said.code, **said.parameters):
        replace(STAGES[0], **options)


@pytest.mark.parametrize("move", [0.0, math.inf])
def test_a_stage_without_a_finite_move(move):
    stage = Stage("none", 1, Sensitivity({2: move}), 1.0)
    with refused(ValueError, "release.stage_sensitivity_not_positive"):
        adaptive(stages=(stage,))


def test_stages_are_values_and_a_copy_is_the_same():
    assert STAGES[0] == Stage("histogram", 8, HISTOGRAM, 0.2)
    assert hash(STAGES[0]) == hash(Stage("histogram", 8, HISTOGRAM, 0.2))
    whole = adaptive()
    again = replace(whole, assumptions=("a fact",))
    assert again.sensitivity == whole.sensitivity and again.dim == whole.dim


# -- an attack on two stages, the second chosen by the noise of the first --------------

CONTRIBUTION = Sensitivity(add_remove={1: 1.0, 2: 1.0}, replace={1: 2.0, 2: 2.0})


def worlds_of(release):
    """Draws of a toy in two worlds: one record is there, or is not.

    The second stage is on the coordinate that the noisy first one points at, by the
    sign that it has: all of it depends on the noise.
    """

    def draw(present, noise, n, rng):
        first = present + release.unit(0) * noise.sample((n,), rng)
        second = release.unit(1) * noise.sample((n, 2), rng)
        positive = first > 0.5
        moved = present * np.where(positive, 1.0, -1.0)
        second[np.arange(n), positive.astype(int)] += moved
        return np.column_stack([first, second])

    def worlds(noise):
        return [
            lambda n, rng, present=present: draw(present, noise, n, rng)
            for present in (1.0, 0.0)
        ]

    def score(noise):
        """Log odds of presence, exactly: those of the stages, given the past, add."""

        def log_odds(outputs):
            positive = outputs[:, 0] > 0.5
            chosen = outputs[np.arange(len(outputs)), 1 + positive]
            moves = np.ones(len(outputs)), np.where(positive, 1.0, -1.0)
            total = 0.0
            for stage, (value, move) in enumerate(
                zip((outputs[:, 0], chosen), moves, strict=True)
            ):
                scale = release.unit(stage) * noise.scale
                near, far = np.abs(value - move) / scale, np.abs(value) / scale
                if noise.family == "gaussian":
                    near, far = near**2 / 2, far**2 / 2
                total = total + far - near
            return total

        return log_odds

    return {"worlds": worlds, "score": score}


@pytest.mark.parametrize(
    "accountant",
    [
        PrivacyLoss(1.5, 0.05),
        RenyiDP(1.0, delta=None, alpha=4.0),
        GroupPrivacy(1.5, alpha=math.inf, noise="laplace"),
    ],
    ids=["gaussian", "renyi", "pure"],
)
def test_the_best_attacker_gets_what_is_promised_and_no_more(accountant):
    layout = stage_layout(accountant, RecordScenario())._asdict()
    stages = Stage("first", 1, CONTRIBUTION, 0.4), Stage("second", 2, CONTRIBUTION, 0.6)
    release = AdaptiveRelease(n_records=10, stages=stages, **layout)
    found = accountant.calibrate(release, RecordScenario())
    assert_tight(
        found.certificate, found.noise, n_draws=60_000, seed=3, **worlds_of(release)
    )
