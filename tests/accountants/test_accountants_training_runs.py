"""Accounting of training runs: known values, another library, a second derivation."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.noise import gaussian_epsilon
from skpuffer.kernel.pairs import ShiftPair
from skpuffer.kernel.steps import GradientSteps, steps_of
from skpuffer.noise import GaussianNoise, GeneralizedGaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy import Notion, compose
from skpuffer.privacy_loss import PrivacyLossCurve
from skpuffer.privacy_loss._lower_bounds import account
from skpuffer.releases import GradientRelease, PoissonSampling
from skpuffer.scenarios import Adjacency, JointTableScenario, RecordScenario
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "training_runs.json").read_text()
)
DELTA = 1e-5


def run(sampling="poisson", n_steps=10, rate=0.01, n_records=1000, **options):
    size = None if sampling == "full_batch" else max(1, round(rate * n_records))
    return GradientRelease(
        n_records=n_records,
        batch_size=size,
        n_steps=n_steps,
        sampling=sampling,
        **options,
    )


def epsilon(release, scale, relation="add_remove", k=1, delta=DELTA):
    certificate = PrivacyLoss(delta=delta).certify(
        GaussianNoise(scale), release, RecordScenario(k=k, relation=relation)
    )
    assert certificate.notion is Notion.APPROXIMATE_DP
    return certificate.epsilon


@pytest.mark.parametrize("row", ORACLES["gaussian_composition"])
def test_full_batches_are_one_gaussian(row):
    found = epsilon(run("full_batch", n_steps=row["n_steps"]), row["scale"])
    assert found == pytest.approx(row["epsilon"], abs=1e-6)
    exact = gaussian_epsilon(DELTA, math.sqrt(row["n_steps"]) / row["scale"])
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("row", ORACLES["subsampled_gaussian"])
def test_poisson_batches(row):
    release = run(n_steps=row["n_steps"], rate=row["rate"])
    assert epsilon(release, row["scale"]) == pytest.approx(row["remove"], abs=2e-4)


@pytest.mark.parametrize("row", ORACLES["calibration"])
def test_calibration(row):
    release = run(n_steps=row["n_steps"], rate=row["rate"])
    accountant = PrivacyLoss(epsilon=row["epsilon"], delta=row["delta"])
    scale = accountant.calibrate(release, RecordScenario()).noise.scale
    assert scale == pytest.approx(row["scale"], rel=1e-3)


@pytest.mark.parametrize(
    "scale, rate, n_steps",
    [
        (0.6, 0.001, 1000),
        (1.0, 0.01, 10_000),
        (2.0, 0.1, 100),
        pytest.param(0.6, 0.01, 10_000, marks=pytest.mark.slow),
        pytest.param(0.6, 0.1, 100, marks=pytest.mark.slow),
        pytest.param(2.0, 0.001, 1000, marks=pytest.mark.slow),
    ],
)
def test_as_dp_accounting_has_it_and_never_below(scale, rate, n_steps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    options = {"value_discretization_interval": 2e-4 / scale, "sampling_prob": rate}
    theirs = pld.from_gaussian_mechanism(scale, **options)
    optimistic = pld.from_gaussian_mechanism(
        scale,
        **options,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    upper = theirs.self_compose(n_steps).get_epsilon_for_delta(DELTA)
    lower = optimistic.self_compose(n_steps).get_epsilon_for_delta(DELTA)
    ours = epsilon(run(n_steps=n_steps, rate=rate, n_records=10_000), scale)
    assert ours >= lower * (1 - 1e-9)
    assert ours <= upper * (1 + 1e-3)


def single_step_deltas(p, q, epsilons):
    """Hockey-stick divergences of mixtures of Gaussians, by quadrature."""

    def law(x, parts):
        return sum(w * stats.norm.pdf(x, m, s) for w, m, s in parts)

    grid = np.linspace(-40, 40, 400_001)
    first, second = law(grid, p), law(grid, q)
    return [
        integrate.trapezoid(np.maximum(first - math.exp(e) * second, 0), grid)
        for e in epsilons
    ]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "with_replacement"])
def test_one_step_is_at_least_what_an_attacker_sees(sampling, relation, k):
    n, size, s = 10, 3, 1.5
    release = run(sampling, n_steps=1, rate=size / n, n_records=n)
    scenario = RecordScenario(k, relation=relation)
    if k > 1 and relation == "add_remove" and sampling != "poisson":
        assert not PrivacyLoss().supports(release, scenario)
        return
    certificate = PrivacyLoss(delta=DELTA).certify(GaussianNoise(s), release, scenario)
    # how often the records of the group are in a batch
    law = {
        "poisson": stats.binom(k, size / n),
        "fixed_size": stats.hypergeom(n, k, size),
        "with_replacement": stats.binom(size, k / n),
    }[sampling]
    hits = law.pmf(np.arange(4))
    other = -1.0 if sampling != "poisson" else 0.0  # all the others pull against it
    start = size * other if other else 0.0

    def world(pull):
        return [(w, start + j * (pull - other), s) for j, w in enumerate(hits.tolist())]

    absent = [(1.0, start, s)]
    pairs = [(world(1.0), absent), (absent, world(1.0))]
    if relation == "replace":
        pairs = [(world(1.0), world(-1.0)), (world(-1.0), world(1.0))]
    epsilons = [0.0, 0.05, 0.5, 2.0]
    worst = np.max([single_step_deltas(p, q, epsilons) for p, q in pairs], axis=0)
    for epsilon_, least in zip(epsilons, worst, strict=True):
        assert certificate.curve.delta(epsilon_) >= least - 1e-9


@given(
    scale=st.floats(0.6, 20),
    rate=st.floats(0.002, 0.5),
    n_steps=st.integers(1, 2000),
)
def test_more_noise_fewer_steps_rarer_batches_cost_less(scale, rate, n_steps):
    here = epsilon(run(n_steps=n_steps, rate=rate), scale)
    assert epsilon(run(n_steps=n_steps, rate=rate), 1.5 * scale) <= here * 1.001
    assert epsilon(run(n_steps=2 * n_steps, rate=rate), scale) >= here * 0.999
    assert epsilon(run(n_steps=n_steps, rate=rate / 2), scale) <= here * 1.001
    replaced = epsilon(run(n_steps=n_steps, rate=rate), scale, "replace")
    assert replaced >= here * 0.999
    full = epsilon(run("full_batch", n_steps=n_steps), scale)
    assert here <= full * 1.001


def test_sampling_never_costs_more_than_none():
    for relation in ("add_remove", "replace"):
        full = epsilon(run("full_batch", n_steps=100), 20.0, relation)
        for sampling in ("poisson", "fixed_size"):
            drawn = epsilon(run(sampling, n_steps=100, rate=0.1), 20.0, relation)
            assert drawn < full


def test_losses_are_counted_more_tightly_than_their_moments():
    release = run(n_steps=1000)
    exact = PrivacyLoss(delta=DELTA).certify(
        GaussianNoise(1.0), release, RecordScenario()
    )
    renyi = RenyiDP(delta=DELTA).certify(GaussianNoise(1.0), release, RecordScenario())
    assert exact.epsilon_lower <= exact.epsilon < renyi.epsilon < 1.3 * exact.epsilon


def test_runs_compose_as_one_longer_run():
    def certificate(n_steps):
        return PrivacyLoss(delta=DELTA).certify(
            GaussianNoise(1.0), run(n_steps=n_steps), RecordScenario()
        )

    both = compose([certificate(300), certificate(700)]).to_approximate(DELTA)
    assert both.epsilon == pytest.approx(certificate(1000).epsilon, rel=1e-3)


def test_directions_must_not_be_composed_apart_under_replacement():
    # of one batch without replacement either direction of Poisson sampling is less
    # than the symmetric curve that bounds a replaced record
    release = run("fixed_size", n_steps=1, rate=0.1)
    scenario = RecordScenario(relation="replace")
    curve = (
        PrivacyLoss(delta=DELTA).certify(GaussianNoise(2.0), release, scenario).curve
    )
    for value in (0.05, 0.2):
        # delta(-e) = 1 - exp(-e) + exp(-e) delta(e): the curve is its own reverse
        assert curve.delta(-value) == pytest.approx(
            -math.expm1(-value) + math.exp(-value) * curve.delta(value), rel=1e-6
        )


def test_groups_of_records():
    one = epsilon(run(n_steps=100), 2.0)
    three = epsilon(run(n_steps=100), 2.0, k=3)
    assert one < three < epsilon(run("full_batch", n_steps=100), 2.0, k=3)
    for sampling in ("fixed_size", "with_replacement"):
        with refused(UnsupportedError, "sampling.draws_from_changing_count"):
            epsilon(run(sampling), 2.0, k=3)
    full = epsilon(run("full_batch", n_steps=1), 6.0, k=3)
    assert full == pytest.approx(epsilon(run("full_batch", n_steps=1), 2.0))


def test_a_grid_too_large_falls_back_and_says_so():
    release = run(n_steps=1000)
    tiny = PrivacyLoss(delta=DELTA, max_memory=0.001)
    certificate = tiny.certify(GaussianNoise(1.0), release, RecordScenario())
    assert any("Rényi" in str(text) for text in certificate.assumptions)
    assert certificate.epsilon > epsilon(release, 1.0)


def test_clip_norms_of_the_wrong_order_are_refused():
    release = run("full_batch", clip_order=2.0)
    with refused(UnsupportedError, "gradient.clip_order_too_large"):
        PrivacyLoss().certify(LaplaceNoise(1.0), release, RecordScenario())
    pure = run("full_batch", n_steps=1, clip_order=1.0)
    found = PrivacyLoss(delta=DELTA).certify(LaplaceNoise(2.0), pure, RecordScenario())
    assert found.epsilon == pytest.approx(0.5 + 2 * math.log1p(-DELTA), abs=1e-9)


def test_the_clip_norm_is_the_unit():
    one = epsilon(run(n_steps=100), 1.0)
    other = PrivacyLoss(delta=DELTA).certify(
        GaussianNoise(3.0), run(n_steps=100, clip_norm=3.0), RecordScenario()
    )
    assert other.epsilon == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(
    "accountant, said",
    [
        (PrivacyLoss(epsilon=0.0), Statement("parameter.not_positive", name="epsilon")),
        (
            PrivacyLoss(delta=0.0),
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        (
            PrivacyLoss(delta=1.0),
            Statement("parameter.probability_out_of_range", name="delta"),
        ),
        (
            PrivacyLoss(noise="cauchy"),
            Statement("parameter.option_unknown", name="noise"),
        ),
        (
            PrivacyLoss(max_memory=0),
            Statement("parameter.not_positive", name="max_memory"),
        ),
        (RenyiDP(delta=None), Statement("parameter.alpha_or_delta_missing")),
        (RenyiDP(alpha=3.0), Statement("parameter.alpha_and_delta_both")),
        (
            RenyiDP(delta=None, alpha=1.0),
            Statement("parameter.renyi_order_out_of_range", name="alpha"),
        ),
    ],
)
def test_bad_parameters_are_named(accountant, said):
    with refused(ValueError, said.code, **said.parameters):
        accountant.calibrate(run(), RecordScenario())


@pytest.mark.parametrize("beta", [1.25, 1.75, 3.0])
def test_dealt_batches_move_two_sums(beta):
    """One coordinate of one batch moves by two clip norms, one of another by one."""
    noise = GeneralizedGaussianNoise(2.0, beta=beta)
    release = GradientRelease(
        n_records=100,
        batch_size=10,
        n_steps=10,
        sampling="shuffled_epochs",
        clip_order=1,
    )
    certificate = PrivacyLoss(delta=1e-5).certify(noise, release, RecordScenario())
    both = tuple(
        (ShiftPair(noise.curve(Shift(r, dim=None, structure="scalar"))), 1)
        for r in (2.0, 1.0)
    )
    attained = account(PrivacyLossCurve(both), 1e-5).lower
    assert certificate.epsilon >= attained * (1 - 1e-6)


def test_costs_of_sampled_steps_rest_on_the_trade_off():
    """The proved bound is one of Rényi costs, which only full steps use."""
    noise = GeneralizedGaussianNoise(8.0, beta=1.5)
    sentences = []
    for sampling in ("full_batch", "poisson"):
        release = GradientRelease(
            n_records=100,
            batch_size=None if sampling == "full_batch" else 10,
            n_steps=10,
            sampling=sampling,
            clip_order=1.5,
        )
        certificate = RenyiDP().certify(noise, release, RecordScenario())
        sentences.append(" ".join(map(str, certificate.assumptions)))
    assert "not proved" not in sentences[0] and "not proved" in sentences[1]


@pytest.mark.parametrize(
    "noise, order, dim",
    [
        (LaplaceNoise(1.0), 2.0, 1),
        (GaussianNoise(1.0), np.inf, 1),
        (GeneralizedGaussianNoise(1.0, beta=1.5), 1.5, 1),
        (GeneralizedGaussianNoise(1.0, beta=1.5), 2.0, 3),
    ],
)
def test_dealt_batches_have_coordinates_of_their_own(noise, order, dim):
    release = run("shuffled_epochs", 10, 0.1, clip_order=order, dim=dim)
    certificate = PrivacyLoss(delta=DELTA).certify(noise, release, RecordScenario())
    # every coordinate of one batch moves by two, of another by one, of clipped length
    each = 1.0 if math.isinf(order) else dim ** (-1 / order)
    pairs = tuple(
        (ShiftPair(noise.curve(Shift(r * each, dim=None, structure="scalar"))), dim)
        for r in (2.0, 1.0)
    )
    attained = account(PrivacyLossCurve(pairs), DELTA).lower
    assert certificate.epsilon >= attained * (1 - 1e-6)


@pytest.mark.parametrize("n, size", [(7, 3), (5, 2), (4, 2), (5, 5)])
def test_no_deal_moves_an_epoch_further_than_is_accounted_for(n, size):
    """All deals of records of known moves, to batches of the sampler's own sizes."""
    moves, noise = (1.5, 1.0, 0.7, 0.4), GaussianNoise(2.0)
    release = run("shuffled_epochs", math.ceil(n / size), size / n, n_records=n)
    batches = release.sampling.batches(release, np.random.default_rng(0))
    places = [batch for batch, index in enumerate(batches) for _ in index]
    worst = max(
        np.linalg.norm(np.bincount(deal, weights=moves))
        for deal in set(itertools.permutations(places, len(moves)))
    )
    steps = GradientSteps(release, "replace", len(moves), moves=moves)
    stated = steps.under(noise, 100.0).curve.mu * noise.scale
    assert stated == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("n, size", [(1, 1), (1, 4), (2, 1), (2, 5)])
def test_where_all_records_differ_each_draw_moves_a_sum_by_two(n, size):
    release = run("with_replacement", 3, size / n, n_records=n)
    steps = GradientSteps(release, "replace", n)
    mu = steps.under(GaussianNoise(7.0), 100.0).curve.mu
    assert mu == pytest.approx(2 * size * math.sqrt(3) / 7.0)


def test_dealt_batches_take_noise_of_one_scale():
    release = run("shuffled_epochs", 10, 0.1, dim=2)
    with refused(UnsupportedError, "sampling.shuffled_scales_differ"):
        PrivacyLoss().certify(GaussianNoise([1.0, 2.0]), release, RecordScenario())


def test_gradients_are_no_integers():
    accountant = PrivacyLoss(noise="discrete_laplace")
    release = run("full_batch", clip_order=1)
    with refused(UnsupportedError, "noise.integer_family_for_reals"):
        accountant.calibrate(release, RecordScenario())
    support = accountant.supports(release, RecordScenario())
    assert not support and "is_integer" in str(support.reason)


class Registered(PoissonSampling):
    """A scheme whose account was registered, and of which nothing else is said."""


@pytest.mark.parametrize(
    "scenario, match",
    [
        (JointTableScenario([[0, 0], [1, 1]], [0.5, 0.5]), "group of 2"),
        (RecordScenario(k=2), "group of 2"),
    ],
    ids=["dependent", "group"],
)
def test_an_account_of_a_new_scheme_is_of_one_record(scenario, match, monkeypatch):
    """Until somebody says that it reads how many differ."""
    account = GradientSteps.schemes[PoissonSampling]
    monkeypatch.setitem(GradientSteps.schemes, Registered, account)
    release = run(Registered(), n_records=2, rate=0.5)
    assert PrivacyLoss().supports(release, RecordScenario())
    support = PrivacyLoss().supports(release, scenario)
    assert not support and match in str(support.reason)


def test_stacked_sums_have_the_coordinates_of_all_batches():
    release = GradientRelease(n_records=20, n_steps=2, batch_size=4, dim=3)
    steps = steps_of(release, Adjacency.arbitrary(1, ()))
    for moves, dim in (((1.0,), 3), ((1.0, 1.0), 6), ((1.0, 2.0, 2.0), 9)):
        shift = steps._shift(GaussianNoise(), *moves)
        assert shift.dim == dim
        assert shift.radius == pytest.approx(math.hypot(*moves), rel=1e-15)
