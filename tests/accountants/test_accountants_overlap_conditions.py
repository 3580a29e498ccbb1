"""What amplification by overlap rests on: each condition by what fails without it.

The numbers are of small cases that are computed exactly, and were found apart.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtri

from skpuffer.accountants import OverlapAmplification
from skpuffer.exceptions import CompositionError, ScenarioError, UnsupportedError
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion, compose
from skpuffer.privacy_loss import GaussianCurve, hockey_stick_divergence
from skpuffer.privacy_loss.overlap import (
    FiniteOverlap,
    NormalOverlap,
    OddsOverlap,
    OverlapCurve,
    amplified_target,
)
from skpuffer.privacy_loss.overlap._kinds import _with_odds
from skpuffer.releases import GradientRelease, PublicContext
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BoundedOdds,
    DeclaredOdds,
    RecordBelief,
)
from skpuffer.training import LinearGradients, Multinomial, Squared
from skpuffer.training._losses import make_loss
from skpuffer.training._record_gradient import corner_costs
from tests.refused import refused

COIN = ((0.6, 0.4), (0.4, 0.6))
#: Of either value a tenth is told apart, and the rest alike.
STAR = ((0.1, 0.0, 0.9), (0.0, 0.1, 0.9))


def believing(prior, **options):
    return AttributeScenario("s", level="record", prior=prior, **options)


def run(names=None, **options):
    context = PublicContext(n_records=50, feature_names=names)
    release = {"n_steps": 1, "sampling": "full_batch"} | options
    return GradientRelease(n_records=50, context=context, **release)


def etas(prior, names, epsilon):
    release = run(names)
    fact = believing(prior).bind(release.context).fact(RecordBelief, release)
    return fact.overlap.etas(epsilon)


def randomised(epsilon, n_draws=1, star=False):
    """Laws of independent noisy bits, by the bit; a star is read as a fair coin."""
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    once = np.array([[kept, 1 - kept], [1 - kept, kept], [0.5, 0.5]])[: 2 + star]
    laws = once
    for _ in range(n_draws - 1):
        laws = (laws[:, :, None] * once[:, None, :]).reshape(len(once), -1)
    return laws


def told(laws, record, epsilon):
    """Divergence of what is released of a record, given either value."""
    p, q = (np.array(law) @ laws for law in record)
    return max(hockey_stick_divergence(*pair, epsilon) for pair in ((p, q), (q, p)))


def amplified(laws, record, epsilon):
    """Divergence by the theorem, from that of the worst two records."""
    return max(
        eta * max(hockey_stick_divergence(a, b, target) for a in laws for b in laws)
        for eta in FiniteOverlap(*record).etas(epsilon)
        for target in [amplified_target(epsilon, eta)]
    )


# -- what is amplified -----------------------------------------------------------------


def test_a_record_is_replaced_never_removed():
    coin = FiniteOverlap(*COIN)
    # records are +1 and -1, clipped to one: the sum moves by two
    of_removed = OverlapCurve(GaussianCurve(1.0), coin).delta(0.3)
    truth = OverlapCurve(GaussianCurve(2.0), coin).delta(0.3)
    assert of_removed == pytest.approx(0.00149, abs=5e-6)
    assert truth == pytest.approx(0.02074, abs=5e-6)
    found = OverlapAmplification(delta=0.02).certify(
        GaussianNoise(1.0), run(clip_norm=1.0), believing(BoundedOdds(2.25))
    )
    # the coin is one of those within the odds
    assert found.relation == "replace"
    assert found.curve.curve == GaussianCurve(2.0)
    assert found.curve.delta(0.3) >= truth


def test_steps_are_composed_first_and_amplified_once():
    steps = randomised(0.5, 8, star=True)
    once = np.array(STAR) @ randomised(0.5, star=True)
    each = once
    for _ in range(7):
        each = (each[:, :, None] * once[:, None, :]).reshape(2, -1)
    # as if each step had a record of its own, and as it is
    assert hockey_stick_divergence(*each, 0.2) == pytest.approx(0.00407, abs=5e-6)
    assert told(steps, STAR, 0.2) == pytest.approx(0.00547, abs=5e-6)
    assert amplified(steps, STAR, 0.2) >= told(steps, STAR, 0.2)


def test_maps_of_a_record_are_amplified_together():
    star = FiniteOverlap(*STAR)
    for epsilon in (0.0, 1.0, 5.0):
        assert star.etas(epsilon) == pytest.approx((0.1, 0.1), abs=1e-12)
    # whether it is a star tells nothing, and its value as a coin .2007
    assert FiniteOverlap((0.1, 0.9), (0.1, 0.9)).etas(0.0) == pytest.approx((0, 0))
    value = FiniteOverlap((0.55, 0.45), (0.45, 0.55))
    assert value.etas(0.2006)[0] > 1e-5 and value.etas(0.2007)[0] < 1e-5
    # of a fair coin and its sum with the secret neither tells, and both tell all
    rows = pd.DataFrame([(s, u, u ^ s) for s in (0, 1) for u in (0, 1)])
    rows.columns = ["s", "u", "v"]
    for name in ("u", "v"):
        alone = BinnedLaw(rows[["s", name]])
        assert etas(alone, (name,), 0.0) == pytest.approx((0, 0), abs=1e-12)
        # by the whole row of the belief, whichever part of it a release reads
        assert etas(BinnedLaw(rows), (name,), 3.0) == pytest.approx((1, 1))
    parts = [
        OverlapAmplification(1.0, if_belief_suffices="cap")
        .calibrate(run(names), believing(BinnedLaw(rows[["s", *names]]), table="t"))
        .certificate
        for names in (("u",), ("v",), ("u", "v"))
    ]
    # neither is of a table that holds both
    with refused(CompositionError, "compose.table_columns_differ"):
        compose(parts[:2])
    both = compose(parts[1:])
    assert both.notion is Notion.APPROXIMATE_DP
    assert both.epsilon > max(part.fallback for part in parts[1:])


# -- of whom and of what ---------------------------------------------------------------


def test_what_an_attacker_knows_besides_leaves_the_row():
    # the secret is the sum of two fair coins in 99 of 100 people
    rows = pd.DataFrame(
        [
            (s, z, k)
            for z in (0, 1)
            for k in (0, 1)
            for s in (0, 1)
            for _ in range(99 if s == z ^ k else 1)
        ],
        columns=["s", "z", "k"],
    )
    # the range of one coin's odds is 1, and 9801 where the other is known
    assert etas(BinnedLaw(rows[["s", "z"]]), ("z",), 0.0) == pytest.approx((0, 0))
    widest = OddsOverlap(9801.0)
    for epsilon in (0.0, 0.5, 4.0):
        known = etas(BinnedLaw(rows, known=("k",)), ("z", "k"), epsilon)
        assert known[0] == pytest.approx(max(0.0, 0.99 - 0.01 * math.exp(epsilon)))
        assert known[0] <= widest.etas(epsilon)[0] + 1e-12
    assert widest.etas(0.0)[0] == pytest.approx(0.98, abs=1e-12)
    with refused(UnsupportedError, "overlap.belief_alone_within_budget"):
        OverlapAmplification(0.1).calibrate(
            run(("z",)), believing(BinnedLaw(rows[["s", "z"]]))
        )


def test_one_person_has_one_row():
    twice, once = randomised(1.0, 2), randomised(1.0)
    assert amplified(once, COIN, 0.1) == pytest.approx(0.0447, abs=5e-5)
    assert told(twice, COIN, 0.1) == pytest.approx(0.0654, abs=5e-5)
    # the curve of the group holds
    assert amplified(twice, COIN, 0.1) >= told(twice, COIN, 0.1)
    model = PrivateSGDClassifier(believing(BoundedOdds(2.25)), OverlapAmplification())
    X = pd.DataFrame({"a": np.linspace(0, 1, 10)})
    with refused(ScenarioError, "scenario.group_ids_repeat"):
        model.fit(X, [0, 1] * 5, groups=[0, 0, *range(1, 9)])
    assert not hasattr(model, "certificate_")


def test_weights_of_records_are_refused():
    model = PrivateSGDClassifier(believing(BoundedOdds(2.25)), OverlapAmplification())
    X = pd.DataFrame({"a": np.linspace(0, 1, 10)})
    with refused(TypeError, "parameter.fit_argument_unexpected", name="sample_weight"):
        model.fit(X, [0, 1] * 5, sample_weight=np.ones(10))


# -- how much is left to hide ----------------------------------------------------------


@pytest.mark.parametrize("w", [1.2, 2.0, 6.0, 40.0])
def test_no_law_within_the_odds_tells_more(w):
    """What else is known of a row of masses u and v: 100,000 laws, of four values."""
    rng = np.random.default_rng(0)
    n = 25_000
    u, v = rng.random((2, n))
    q = rng.gamma(0.5, size=(n, 4)) + 1e-12
    # ratios within the range, of half the laws at its ends
    inside, at_ends = rng.random((n // 2, 4)), rng.integers(0, 2, (n - n // 2, 4))
    p = q * w ** np.concatenate([inside, at_ends])
    p, q = (law / law.sum(axis=1, keepdims=True) for law in (p, q))
    exact = np.maximum(u[:, None] * p - v[:, None] * q, 0).sum(axis=1)
    bound = _with_odds(u, v, w)
    assert np.all(exact <= bound)
    told = exact > 1e-6
    assert np.max(exact[told] / bound[told]) > 0.9999


def test_the_overlap_of_counts_is_too_small_on_average_and_of_a_coarse_fit_too_large():
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.full(12, 0.5), size=2)
    exact = FiniteOverlap(*map(tuple, laws)).etas(0.3)[0]
    found = [
        FiniteOverlap(*(tuple(rng.multinomial(60, law) / 60) for law in laws))
        for _ in range(300)
    ]
    assert np.mean([overlap.etas(0.3)[0] for overlap in found]) > exact + 0.01
    # odds that are shrunk, or fitted on fewer columns, tell less than the rows do
    rows = pd.DataFrame({"x": np.arange(12)})
    odds = laws[1] / laws.sum(axis=0)
    rows = rows.loc[np.repeat(np.arange(12), rng.multinomial(4000, laws.mean(axis=0)))]
    sharp = etas(DeclaredOdds(odds[rows["x"]], rows), ("x",), 0.3)[0]
    shrunk = etas(DeclaredOdds(0.35 + 0.3 * odds[rows["x"]], rows), ("x",), 0.3)[0]
    assert shrunk < sharp / 2
    # so what was fitted is the belief where that is declared, and else an estimate
    release = run(("x",))
    for prior_as, certified in ((None, True), ("sample", False)):
        scenario = believing(DeclaredOdds(odds[rows["x"]], rows), prior_as=prior_as)
        found = OverlapAmplification().calibrate(release, scenario).certificate
        assert found.certified is certified


def test_how_well_a_secret_is_guessed_in_practice():
    """Seen of race on a census: an AUC of .693, by ten columns."""
    normal = NormalOverlap(math.sqrt(2) * ndtri(0.693))
    found = [normal.etas(epsilon)[0] for epsilon in (0.1, 0.3, 1.0)]
    assert found == pytest.approx([0.243, 0.179, 0.041], abs=6e-4)


def test_a_belief_that_nearly_suffices_is_held_by_its_fallback():
    """Seen of sex on a school's table: η is .014, and other rows have another law."""
    eta = 0.014
    mu = gaussian_mu(amplified_target(1.0, eta), 1e-5 / eta)
    free = GaussianCurve(mu)
    assert free.epsilon(1e-5) == pytest.approx(6.3578, abs=1e-4)
    # whoever believes otherwise by a twentieth is promised far less than one
    near = OverlapCurve(free, OddsOverlap(3.35, 0.0))
    assert near.overlap.etas(1.0)[0] == pytest.approx(eta, abs=5e-5)
    assert near.epsilon(1e-5) == pytest.approx(1.0, abs=0.01)
    off = OverlapCurve(free, OddsOverlap(3.35, share=0.05))
    assert off.epsilon(1e-5) > 2.4
    capped = OverlapAmplification(1.0, max_fallback=3.0).calibrate(
        run(), believing(BoundedOdds(3.35))
    )
    assert capped.certificate.fallback == pytest.approx(3.0, rel=1e-3)
    assert capped.certificate.epsilon < 0.7


# -- in the Rényi notion ---------------------------------------------------------------


def test_renyi_divergences_are_integrals_of_both_orders():
    """Of a noisy record at 0, .5 or 1: truth, each order by its own curve, the worst.

    exp((α - 1) D(P, Q)) = 1 + α (α - 1) ∫ e^((α - 1) ε) δ_PQ(ε) + e^(-α ε) δ_QP(ε) dε.
    """
    alpha, records = 4.0, (0.0, 0.5, 1.0)
    record = FiniteOverlap((0.5, 0.3, 0.2), (0.15, 0.3, 0.55))
    noise = GaussianCurve(1.0)

    # beyond the largest ratio of masses nothing is left
    grid = np.linspace(0, math.log(0.55 / 0.15), 600)
    etas = np.array([record.etas(epsilon) for epsilon in grid])
    own = np.array(
        [
            [
                eta * noise.delta(amplified_target(epsilon, eta)) if eta > 0 else 0.0
                for eta in pair
            ]
            for epsilon, pair in zip(grid, etas, strict=True)
        ]
    ).T
    worst = np.tile(own.max(axis=0), (2, 1))
    x = np.linspace(-9, 10, 1500)
    p, q = (
        np.array(law) @ stats.norm.pdf(x, np.array(records)[:, None])
        for law in (record.first, record.second)
    )
    grown = np.exp(grid)[:, None]
    gaps = (p - grown * q, q - grown * p)
    truth = [np.trapezoid(np.maximum(gap, 0), x, axis=1) for gap in gaps]

    def renyi(curves):
        first, second = curves
        height = np.exp((alpha - 1) * grid) * first + np.exp(-alpha * grid) * second
        mass = np.trapezoid(height, grid)
        return math.log1p(alpha * (alpha - 1) * mass) / (alpha - 1)

    assert renyi(own) == pytest.approx(0.26587, abs=6e-6)
    assert renyi(worst) == pytest.approx(0.267181, abs=4e-6)
    assert renyi(truth) == pytest.approx(0.211840, abs=5e-6)
    # whatever is believed of it, the curve itself states what may be composed
    assert OverlapCurve(noise, record).renyi(alpha) == noise.renyi(alpha) > renyi(worst)


# -- where corners bound no move -------------------------------------------------------


@pytest.mark.parametrize(
    "loss, blocks, exceeded",
    [(Squared(), False, 80.0), (Multinomial(), False, 1.5), ("logistic", True, 1.15)],
    ids=["squared", "softmax", "apart"],
)
def test_the_corners_of_one_slope_bound_no_move(loss, blocks, exceeded):
    """How much further two gradients move than the corners of slopes of one sign say.

    The library's bound holds there as well.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    loss = make_loss("log_loss", 2) if loss == "logistic" else loss
    n_scores = 3 if isinstance(loss, Multinomial) else 1
    options = {"clip_norm": 1.0}
    if blocks:
        options = {"clip_norm": (1.0, 1.0), "blocks": (2, 1)}
    release = run(**options)
    for _ in range(150):
        short = 10 ** rng.uniform(-2.2, 0.5)
        X = rng.normal(size=(2, 2)) * short
        y = rng.normal(size=2) * short
        if loss.classification:
            y = rng.integers(0, max(2, n_scores), 2)
        scale = 1.0 if blocks else 0.0
        parts = [
            LinearGradients(
                loss,
                X[i : i + 1],
                y[i : i + 1],
                n_classes=n_scores if n_scores > 1 else None,
                intercept_scale=scale,
            )
            for i in (0, 1)
        ]
        w = rng.normal(size=parts[0].dim) * 10 ** rng.uniform(-1, 5)
        first, second = (part.clipped_sum(w, None, release) for part in parts)
        move = np.linalg.norm(first - second)
        assert move <= corner_costs(loss, X, y, release, intercept_scale=scale)[0, 1]
        rows = np.hstack([X, np.full((2, 1), scale)])
        rows = (
            rows * (2.0 * (y[:, None] == y.max()) - 1) if loss.classification else rows
        )
        z = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        corner = max(*np.linalg.norm(z, axis=1), np.linalg.norm(z[0] - z[1]))
        worst = max(worst, move / corner)

    assert worst > exceeded


@pytest.mark.parametrize("name", ["modified_huber", "squared_hinge"])
def test_losses_whose_slopes_pass_one_are_not_offered(name):
    with refused(ValueError, "parameter.option_unknown", name="loss"):
        make_loss(name, 2)
