"""Caps at every history: published numbers, bounds between them, and updates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from skpuffer.accountants import GroupPrivacy, HistoryUniformCap, RenyiDP
from skpuffer.exceptions import UnsupportedError
from skpuffer.extensions.sliced.history._run import (
    dealt_squares,
    discrepancy,
    layer_caps,
)
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion
from skpuffer.releases import GradientRelease, Optimiser, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    RecordScenario,
)
from tests.accountants.contract import unread
from tests.extensions.sliced.history_runs import (
    SUBSAMPLINGS,
    cost,
    offering,
    replaced,
    run,
    scale,
)
from tests.refused import refused, says

# -- numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "subsampling, sampling, scales",
    [
        ("worst_case", "fixed_size", (4.0, 2.0, 1.0, 0.353553)),
        ("mean_square", "fixed_size", (0.340337, 0.170168, 0.085084, 0.030082)),
        ("log_moment", "fixed_size", (0.346347, 0.182359, 0.111573, 0.094140)),
        ("hidden", "poisson", (0.199971, 0.099946, 0.049922, 0.018356)),
        ("hidden", "fixed_size", (0.22102, 0.11522, 0.09002, 0.08525)),
    ],
)
def test_ten_of_four_thousand_records(subsampling, sampling, scales):
    release = run(4000, 200, 200, sampling)
    for epsilon, expected in zip((0.5, 2, 8, 64), scales, strict=True):
        if subsampling == "hidden":
            hidden = RenyiDP(epsilon, None, alpha=8.0)
            found = hidden.calibrate(release, replaced(10)).noise.scale
        else:
            found = scale(release, replaced(10), epsilon, 8.0, subsampling)
        assert found / release.divisor == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(
    "k, hidden, worst",
    [(81, (1.61997, 0.404885), (32.4, 8.1)), (121, (2.41997, 0.604885), (48.4, 12.1))],
)
def test_large_groups_of_them(k, hidden, worst):
    release = run(4000, 200, 200, "poisson")
    for epsilon, least, most in zip((0.5, 8), hidden, worst, strict=True):
        accountant = RenyiDP(epsilon, None, alpha=8.0)
        found = accountant.calibrate(release, replaced(k)).noise.scale
        assert found / 200 == pytest.approx(least, rel=1e-5)
        capped = scale(release, replaced(k), epsilon, 8.0) / 200
        assert capped == pytest.approx(most, rel=1e-12)


def test_one_step_of_them():
    """The mean square is no bound of what the release tells."""
    release, noise = run(4000, 200, 1, "poisson"), GaussianNoise(2.0)
    found = [cost(release, replaced(10), 2.0, 8.0, how) for how in SUBSAMPLINGS]
    assert found == pytest.approx([400, 395.72038, 2.9], rel=1e-6)
    of_subsets = cost(run(4000, 200, 1), replaced(10), 2.0, 8.0, "mean_square")
    assert of_subsets == pytest.approx(2.895724, rel=1e-6)
    hidden = RenyiDP(delta=None, alpha=8.0).certify(noise, release, replaced(10))
    assert hidden.epsilon == pytest.approx(66.27600, rel=1e-6)


@pytest.mark.parametrize(
    "size, steps, k, hidden, mean",
    [
        (512, 3920, 20, (102.5791, 25.6415, 8.1098), (247.704, 61.926, 19.583)),
        (512, 3920, 2, (10.2572, 2.5700, 1.8214), (72.045, 18.011, 5.696)),
        (1024, 1960, 20, (145.0687, 36.2625, 11.4683), (267.122, 66.781, 21.118)),
        (1024, 1960, 2, (14.5057, 3.6286, 1.9795), (72.410, 18.102, 5.724)),
    ],
)
def test_the_papers_image_runs(size, steps, k, hidden, mean):
    """Beside the hidden-batch accountant, for the same Rényi order."""
    release = run(50_000, size, steps, "poisson")
    plain = run(50_000, size, steps, "fixed_size")
    for epsilon, least, square in zip((0.5, 8, 80), hidden, mean, strict=True):
        accountant = RenyiDP(epsilon, None, alpha=16.0)
        found = accountant.calibrate(release, replaced(k)).noise.scale
        # given to four digits after the point
        assert found == pytest.approx(least, abs=1.5e-4)
        for how in ("log_moment", "worst_case"):
            assert scale(release, replaced(k), epsilon, 16.0, how) > found
        # and to three, for batches of fixed or random size
        by_mean = [
            scale(r, replaced(k), epsilon, 16.0, "mean_square")
            for r in (plain, release)
        ]
        assert min(abs(m - square) for m in by_mean) < 6e-4


@pytest.mark.parametrize(
    "n, k, size, mean",
    [
        (100, 10, 20, 5.4545454545),
        (50_000, 20, 512, 0.2445688594),
        (50_000, 20, 1024, 0.5688310886),
        (50_000, 2, 512, 0.0206893098),
        (50_000, 2, 1024, 0.0417980584),
    ],
)
def test_mean_squares_of_subsets(n, k, size, mean):
    found = discrepancy(run(n, size, 1), k)
    assert found.mean_square == pytest.approx(mean, rel=1e-9)
    by_masses = np.exp(found.log_weights) @ found.times**2
    assert by_masses == pytest.approx(mean, rel=1e-9)
    assert found.largest == k


def test_variances_of_fifty_steps():
    release = run(100, 20, 50)
    found = [
        (scale(release, replaced(10), 1.0, 8.0, how) / 20) ** 2 for how in SUBSAMPLINGS
    ]
    expected = [200, 11.7726981097, 10.9090909091]
    assert found == pytest.approx(expected, rel=1e-9)
    # a cap of one squared mean, at every step
    worst = (2 * discrepancy(release, 10).largest / 20) ** 2
    assert worst == 1.0


@pytest.mark.parametrize(
    "sampling, costs",
    [
        ("fixed_size", (0.3265306122, 0.0191606759, 0.0178107607)),
        ("with_replacement", (1.3061224490, 0.0209739312, 0.0189387755)),
        ("poisson", (0.3265306122, 0.0198767724, 0.0182857143)),
    ],
)
def test_costs_of_one_step(sampling, costs):
    release = run(100, 20, 1, sampling)
    found = [cost(release, replaced(10), 70.0, 8.0, how) for how in SUBSAMPLINGS]
    assert found == pytest.approx(costs, rel=1e-8)


def test_epochs_of_disjoint_batches():
    release = run(100, 20, 50, "shuffled_epochs")
    for how in ("worst_case", "mean_square"):
        found = scale(release, replaced(10), 1.0, 8.0, how)
        assert (found / 20) ** 2 == pytest.approx(40, rel=1e-12)


def test_caps_by_layer():
    slices = [[1, 0, 0, 0], [0, 0, 1, 0], [0.5, 0.5, 0.5, 0.5]]
    found = layer_caps(
        slices, (2, 2), (1.0, 2.0), lipschitz=(0.1, 0.05), factor=2 * 3 / 30
    )
    assert found == pytest.approx([4e-4, 4e-4, 8e-4])
    # the largest over all directions
    assert (2 * 3 / 30) ** 2 * np.sum(np.array([0.1, 0.1]) ** 2) == pytest.approx(8e-4)
    with refused(ValueError, "sliced.blocks_not_slice_length"):
        layer_caps(slices, (2, 3), (1.0, 2.0))


def test_noise_of_gradients_and_of_updates():
    """A step size counts where noise is added after it, and nowhere else."""
    sgd = Optimiser(learning_rate=0.1)
    options = {"n_records": 100, "batch_size": 10, "n_steps": 1}
    gradients = GradientRelease(**options, optimiser=sgd)
    updates = GradientRelease(**options, optimiser=sgd, noise_position="update")
    # of two records in batches of ten: squared moves 0.16 and 0.0016
    by_mean = cost(gradients, replaced(2), 10.0, 2.0)
    by_update = cost(updates, replaced(2), 1.0, 2.0)
    assert (by_mean, by_update) == pytest.approx((0.16, 0.0016))


def test_what_step_sizes_are_worth():
    """Counting them for noise on gradients claims 67 times too little."""
    sgd = Optimiser(learning_rate=0.2, schedule="warmup_cosine")
    options = {"n_records": 50_000, "batch_size": 512, "n_steps": 3920}
    gradients = GradientRelease(**options, optimiser=sgd)
    updates = GradientRelease(**options, optimiser=sgd, noise_position="update")
    ratio = cost(gradients, replaced(2), 512.0, 16.0) / cost(
        updates, replaced(2), 1.0, 16.0
    )
    assert ratio == pytest.approx(66.9932389424, rel=1e-9)


@pytest.mark.parametrize("sigma, total", [(100, 0.0019151827), (10, 212.0165450100)])
def test_a_law_of_how_many_records_differ(sigma, total):
    release = run(100, 20, 10)
    survival = binom.sf(np.arange(100), 100, 0.01)
    scenario = offering(
        release,
        count=4,
        count_is_certain=False,
        delta=float(survival[4]),
        survival=survival,
    )
    found = cost(release, scenario, sigma, 4.0, "log_moment")
    assert found == pytest.approx(total, rel=1e-7)
    certificate = HistoryUniformCap(1.0, 4.0, "log_moment").calibrate(release, scenario)
    assert certificate.certificate.epsilon == pytest.approx(1.0)
    # the mean is over whole runs, and of no other
    assert not certificate.certificate.composable
    assert certificate.certificate.coupling_id is None
    # by numbers of records: the moments that are averaged
    each = [cost(release, replaced(k), 100.0, 4.0, "log_moment") for k in (1, 5, 10)]
    assert np.divide(each, 10) == pytest.approx(
        [0.0001601537, 0.0014198671, 0.0043957083], rel=1e-6
    )


def test_a_law_in_steps_is_no_less_than_one_by_one():
    release = run(150, 20, 10, "poisson")
    survival = binom.sf(np.arange(150), 150, 0.5)
    scenario = offering(
        release, count=4, count_is_certain=False, delta=0.5, survival=survival
    )
    found = cost(release, scenario, 100.0, 4.0, "log_moment")
    masses = -np.diff(np.append(survival, 0.0))
    each = [cost(release, replaced(k), 100.0, 4.0, "log_moment") for k in range(1, 151)]
    exact = math.log1p(masses @ np.expm1(3 * np.array(each))) / 3
    assert exact <= found <= 1.1 * exact


# -- what holds between them -----------------------------------------------------------

SCHEMES = st.sampled_from(["poisson", "fixed_size", "with_replacement", "full_batch"])


@settings(max_examples=40, deadline=None)
@given(
    SCHEMES,
    st.integers(2, 60),
    st.integers(1, 60),
    st.integers(1, 60),
    st.floats(1.1, 32),
    st.floats(0.3, 100),
)
def test_mean_square_log_moment_and_worst_case_are_in_order(
    sampling, n, size, k, alpha, sigma
):
    size, k = min(size, n), min(k, n)
    release = run(n, n if sampling == "full_batch" else size, 3, sampling)
    worst, log_moment, mean = (
        cost(release, replaced(k), sigma, alpha, how) for how in SUBSAMPLINGS
    )
    slack = 1 + 1e-9
    assert mean <= log_moment * slack
    assert log_moment <= worst * slack


@settings(max_examples=40, deadline=None)
@given(SCHEMES, st.sampled_from(SUBSAMPLINGS), st.floats(0.01, 100), st.floats(1.1, 40))
def test_the_least_noise_is_found(sampling, how, epsilon, alpha):
    release = run(50, 50 if sampling == "full_batch" else 7, 20, sampling)
    found = scale(release, replaced(3), epsilon, alpha, how)
    assert cost(release, replaced(3), found, alpha, how) <= epsilon
    assert cost(release, replaced(3), found * (1 - 1e-6), alpha, how) > epsilon


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 12),
    st.lists(st.floats(0, 3), min_size=1, max_size=4),
)
def test_no_deal_of_an_epoch_is_worse(count, size, weights):
    weights = np.array(weights)
    bound = dealt_squares(count, size, weights)
    rng = np.random.default_rng(0)
    for _ in range(20):
        places = rng.permutation(np.repeat(np.arange(len(weights)), size))[:count]
        dealt = np.bincount(places, minlength=len(weights))
        assert weights @ dealt**2 <= bound * (1 + 1e-12)
    assert bound <= weights.max() * count * min(count, size) * (1 + 1e-12)


def test_hidden_batches_need_no_more_than_log_moments():
    for epsilon in (0.1, 1.0, 10.0):
        release = run(300, 30, 20, "poisson")
        seen = scale(release, replaced(4), epsilon, 4.0, "log_moment")
        hidden = RenyiDP(epsilon, None, alpha=4.0).calibrate(release, replaced(4))
        assert hidden.noise.scale <= seen
        certificate = (
            HistoryUniformCap(epsilon, 4.0, "log_moment")
            .calibrate(release, replaced(4))
            .certificate
        )
        said = f"would need noise of scale {hidden.noise.scale:.4g}"
        own = f"this has noise of scale {seen:.4g}"
        assert any(said in str(a) and own in str(a) for a in certificate.assumptions)


@pytest.mark.parametrize("how", SUBSAMPLINGS)
@pytest.mark.parametrize("sampling", ["fixed_size", "with_replacement"])
def test_what_hidden_batches_would_need_is_said_for_other_schemes(sampling, how):
    """In Poisson batches as large: that of the scheme itself takes seconds."""
    hidden = RenyiDP(2.0, None, alpha=4.0)
    least = hidden.calibrate(run(300, 30, 20, "poisson"), replaced(4)).noise.scale
    found = HistoryUniformCap(2.0, 4.0, how).calibrate(
        run(300, 30, 20, sampling), replaced(4)
    )
    said = (
        "in Poisson batches of mean size 30, if batches and their sizes stay hidden, "
        f"would need noise of scale {least:.4g} for the full Rényi promise; this has "
        f"noise of scale {found.noise.scale:.4g}"
    )
    assert any(str(text).endswith(said) for text in found.certificate.assumptions)


@pytest.mark.parametrize(
    "sampling, size, k, relation",
    [
        ("poisson", 5, 10, "replace"),
        ("poisson", 5, 3, "add_remove"),
        ("fixed_size", 12, 3, "replace"),
        ("fixed_size", 19, 3, "replace"),
        ("with_replacement", 4, 2, "replace"),
    ],
)
def test_hidden_batches_of_every_kind(sampling, size, k, relation):
    release, scenario = (
        run(100, size, 50, sampling),
        RecordScenario(k=k, relation=relation),
    )
    for epsilon, alpha in ((0.5, 2.0), (4.0, 4.0)):
        seen = scale(release, scenario, epsilon, alpha, "log_moment")
        hidden = RenyiDP(epsilon, None, alpha=alpha).calibrate(release, scenario)
        # rounded up to nine digits
        assert hidden.noise.scale <= seen * (1 + 1e-8)


def test_the_worst_case_is_group_privacy():
    """Without amplification both are one bound, and the certificate says so."""
    release = run(30, 30, 7, "full_batch")
    found = HistoryUniformCap(2.0, 4.0).calibrate(release, replaced(3))
    once = QueryRelease(
        query=unread,
        n_records=30,
        dim=7,
        sensitivity=Sensitivity({2: math.sqrt(7)}),
    )
    group = GroupPrivacy(2.0, alpha=4.0).calibrate(once, replaced(3))
    assert found.noise.scale == pytest.approx(group.noise.scale, rel=1e-9)
    assert found.certificate.curve.gaussian_mu == pytest.approx(1.0)
    assert any("group privacy" in str(text) for text in found.certificate.assumptions)


def test_records_that_come_and_go_move_half_as_far():
    for sampling in ("poisson", "full_batch"):
        release = run(40, 40 if sampling == "full_batch" else 8, 5, sampling)
        both = [
            scale(release, RecordScenario(k=2, relation=relation), 1.0, 4.0, how)
            for how in SUBSAMPLINGS
            for relation in ("add_remove", "replace")
        ]
        assert np.divide(both[::2], both[1::2]) == pytest.approx(0.5, rel=1e-9)
    found = HistoryUniformCap().calibrate(release, RecordScenario()).certificate
    assert found.notion is Notion.RENYI_DP
    assert found.rpp_epsilon == math.inf


# -- noise of the updates --------------------------------------------------------------


def update_run(**options):
    return GradientRelease(
        n_records=50,
        batch_size=5,
        n_steps=4,
        noise_position="update",
        **options,
    )


def test_penalties_of_everything_shrink_a_step():
    plain = Optimiser(learning_rate=0.5)
    part = Optimiser(learning_rate=0.5, l2=2.0)
    whole = Optimiser(learning_rate=0.5, l2=2.0, penalise_all=True, radius=1.0)
    found = [
        scale(update_run(optimiser=each), replaced(1), 1.0, 2.0)
        for each in (plain, part, whole)
    ]
    assert found[1] == found[0]
    assert found[2] == pytest.approx(found[0] / 2)


def test_declared_constants_count():
    constants = (0.1, 0.2, 0.2, 0.4)
    declared = scale(update_run(), replaced(1), 1.0, 2.0, lipschitz=constants)
    # squared moves of means, added up: alpha / (2 epsilon) of them
    expected = math.sqrt(sum((2 * c / 5) ** 2 for c in constants))
    assert declared == pytest.approx(expected)
    for how in SUBSAMPLINGS:
        one, two = (
            scale(update_run(), replaced(1), 1.0, 2.0, how, lipschitz=c)
            for c in (0.3, [0.3] * 4)
        )
        assert one == two


def test_epochs_of_updates_fill_the_longest_steps_first():
    release = GradientRelease(
        n_records=8,
        batch_size=2,
        n_steps=4,
        sampling="shuffled_epochs",
        noise_position="update",
    )
    found = scale(release, replaced(3), 1.0, 2.0, lipschitz=(0.1, 0.4, 0.2, 0.3))
    assert found == pytest.approx(math.sqrt((2 * 0.4) ** 2 + 0.3**2))


@pytest.mark.parametrize(
    "options, lipschitz, code",
    [
        ({}, None, "history.update_constants_missing"),
        (
            {"optimiser": Optimiser(learning_rate=0.5)},
            0.1,
            "history.lipschitz_below_optimiser",
        ),
        ({}, (0.1, 0.2), "history.lipschitz_count_not_steps"),
        # of slices: a rotation is 1-Lipschitz, and no slice keeps its own
        ({}, [(0.1, 0.2)] * 4, "history.lipschitz_count_not_steps"),
        ({"noise_position": "gradient"}, 0.1, "history.lipschitz_with_gradient_noise"),
    ],
)
def test_constants_that_are_refused(options, lipschitz, code):
    release = (
        update_run(**options) if "noise_position" not in options else run(50, 5, 4)
    )
    accountant = HistoryUniformCap(lipschitz=lipschitz)
    support = accountant.supports(release, replaced(1))
    assert not support
    assert says(support.reason, code)
    with refused(UnsupportedError, code):
        accountant.calibrate(release, replaced(1))


def test_no_other_accountant_takes_constants_of_gradients_twice():
    """The ratio a careless reading would gain is refused, not granted."""
    with refused(UnsupportedError, "history.lipschitz_with_gradient_noise"):
        scale(run(50, 5, 4), replaced(1), 1.0, 2.0, lipschitz=0.01)
