"""Conditional composition of random bins: reference values, and nothing that fails."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit, ndtr
from scipy.stats import norm

from skpuffer.exceptions import Statement
from skpuffer.extensions.random_allocation.loss._conditional import (
    TEMPERATURES,
    Hazards,
    StepPair,
    merged,
)
from skpuffer.kernel.distribution import Reversed, _delta_on
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss.allocation import (
    closed_add_delta,
    conditional_delta,
    conditional_epsilon,
    renyi_delta,
)
from tests.extensions.random_allocation.allocation_oracles import (
    gram_of,
    ids,
    means_of,
    oracles,
)
from tests.refused import refused

ORACLES = oracles("allocation_conditional.json")
EXACT = oracles("allocation_renyi.json")["exact_two_bins"]
STEP = ORACLES["step"]

# -- one row ------------------------------------------------------------------------


def test_reference_row():
    pair = StepPair(tuple(STEP["weights"]), tuple(STEP["means"]))
    epsilon, delta = np.array(STEP["remove"]).T
    assert pair.delta(epsilon) == pytest.approx(delta, rel=2e-8, abs=1e-15)
    epsilon, delta = np.array(STEP["add"]).T
    assert pair.reverse(epsilon) == pytest.approx(delta, rel=2e-8, abs=1e-16)


def test_reference_rows_composed():
    pair = StepPair(tuple(STEP["weights"]), tuple(STEP["means"]))
    times = STEP["composed"]["times"]
    for steps, name in (
        (((pair, times),), "remove"),
        (((Reversed(pair), times),), "add"),
    ):
        for epsilon, delta in STEP["composed"][name]:
            found = _delta_on(steps, epsilon, delta, 1e-3, 1e6)
            assert found == pytest.approx(delta, rel=2e-4)


laws = st.builds(
    lambda weights, means: StepPair(
        tuple(np.array(weights[: len(means)]) / sum(weights[: len(means)])),
        tuple(sorted(means)),
    ),
    st.lists(st.floats(0.05, 1), min_size=4, max_size=4),
    st.lists(
        st.floats(0, 3).map(lambda u: round(u, 3)), min_size=1, max_size=4, unique=True
    ),
)


@settings(max_examples=25, deadline=None)
@given(laws)
def test_rows_are_the_mixtures(pair):
    x = np.linspace(-9, 12, 20_001)
    p = sum(w * norm.pdf(x, u) for w, u in zip(pair.weights, pair.means, strict=True))
    q, epsilon = norm.pdf(x), np.array([0.0, 0.05, 0.5, 2.0])
    for e, there, back in zip(
        epsilon, pair.delta(epsilon), pair.reverse(epsilon), strict=True
    ):
        ahead = np.trapezoid(np.maximum(p - math.exp(e) * q, 0), x)
        behind = np.trapezoid(np.maximum(q - math.exp(e) * p, 0), x)
        assert there == pytest.approx(ahead, abs=1e-7)
        assert back == pytest.approx(behind, abs=1e-7)


# -- bounds on hazards --------------------------------------------------------------


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["tails"], ids=ids)
def test_reference_tails(row):
    temperatures = TEMPERATURES if row.get("temperatures") else ()
    hazards = Hazards.of(means_of(row), temperatures)
    at = (hazards.row == row["row"]) & (hazards.position == row["position"])
    for name in ("add", "remove"):
        if name in row:
            found = hazards.tails(row["sigma"], row["chance"], name == "add")[at]
            expected = pytest.approx(row[name], rel=row.get("tolerance", 1e-9))
            assert found == expected


@pytest.mark.every_run
@pytest.mark.parametrize("noise, chance, printed", ORACLES["dropped_components"])
def test_the_reference_is_the_mixture_over_all_bins(noise, chance, printed):
    # Two bins, of which the first was at the first row, and the log of its density over
    # that of the second there, (x - 1/2) / noise²: how often it falls below a bound.
    def fails(bound):
        x = bound * noise**2 + 0.5
        return (ndtr(x / noise) + ndtr((x - 1) / noise)) / 2

    found = Hazards.of(np.eye(2)).tails(noise, chance, add=False)[0]
    assert fails(found) == pytest.approx(chance, rel=1e-6)
    assert fails(found) <= chance
    # without the bins before the position, as printed, it fails half as often again
    assert found < printed and fails(printed) > 1.4 * chance


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["hazards"], ids=lambda row: str(row["sigma"]))
def test_reference_hazards(row):
    hazards = Hazards.of(np.eye(5))
    for name in ("add", "remove"):
        weights = hazards.weights(row["sigma"], row["failure"] / 4, name == "add")
        found = [each[-1] for each in weights]
        assert found == pytest.approx(row[name], rel=1e-7)


def test_pasts_that_are_the_same_count_exactly():
    # of 100 bins 98 are still indistinguishable from the last at the third row; with
    # all of them left to the law psi, nothing would be known of it
    weights = Hazards.of(np.eye(100)).weights(2.0, 1e-8, add=False)
    assert weights[0][-1] == 1 / 100
    assert weights[2][-1] < 1 / 98


shapes = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))


def random_means(n_bins, n_rows, seed):
    rng = np.random.default_rng(seed)
    return np.round(rng.random((n_bins, n_rows)), 2) * (
        rng.random((n_bins, n_rows)) < 0.6
    )


@settings(max_examples=30, deadline=None)
@given(shapes, st.floats(0.4, 5), st.booleans())
def test_weights_are_laws(shape, noise, add):
    means = random_means(*shape)
    hazards = Hazards.of(means, (1.0,))
    few = hazards.weights(noise, 1e-3, add)
    many = hazards.weights(noise, 1e-6, add)
    for row, often, rarely in zip(hazards.rows, few, many, strict=True):
        assert often.sum() == pytest.approx(1, abs=1e-12) and often.min() >= 0
        assert np.all(np.diff(row.means) >= 0)
        # fewer failures put more weight on larger means, never less than the prior
        assert np.all(np.cumsum(rarely) <= np.cumsum(often) + 1e-9)
    # more laws to choose from never loosen a bound
    uniform = Hazards.of(means)
    assert np.all(
        uniform.tails(noise, 1e-3, add) <= hazards.tails(noise, 1e-3, add) + 1e-9
    )


@settings(max_examples=60)
@given(shapes)
def test_merging_keeps_inner_products(shape):
    means = random_means(*shape)
    again = np.column_stack([means, 2 * means, np.zeros(len(means))])
    found = merged(again)
    assert found.shape[1] <= means.shape[1]
    before, after = again @ again.T, found @ found.T
    assert after == pytest.approx(before, abs=1e-12)
    assert np.all(after >= before - 1e-13)


# -- how often the bounds fail ------------------------------------------------------


def true_hazards(means, noise, size, rng, add):
    """Posterior hazards at each row and position, of draws of the releases."""
    n_bins, n_rows = means.shape
    bins = rng.integers(n_bins, size=size)
    releases = noise * rng.standard_normal((size, n_rows))
    if not add:
        releases += means[bins]
    found = np.empty((size, n_rows, n_bins))
    logs = np.zeros((size, n_bins))
    for n in range(n_rows):
        order = np.argsort(means[:, n], kind="stable")
        ranked = logs[:, order]
        found[:, n] = np.exp(ranked - np.logaddexp.accumulate(ranked, axis=1))
        column = means[:, n]
        logs += (releases[:, n, np.newaxis] - column / 2) * column / noise**2
    return found


def needed(means):
    """Which positions add more than the least, by row."""
    ranked = np.sort(means, axis=0).T
    return ranked > ranked[:, :1]


@pytest.mark.slow
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("row", ORACLES["failures_of_the_printed_allocation"], ids=ids)
def test_all_bounds_hold_as_often_as_they_say(row, add):
    means, noise, failure = merged(means_of(row)), row["sigma"], 0.02
    hazards = Hazards.of(means, TEMPERATURES)
    tails = hazards.tails(noise, failure / len(hazards.row), add)
    bounds = np.ones((means.shape[1], len(means)))
    bounds[hazards.row, hazards.position] = np.exp(
        log_expit(-np.log(hazards.position) - tails)
    )
    found = true_hazards(means, noise, 100_000, np.random.default_rng(3), add)
    exceeded = (found > bounds + 1e-9) & needed(means)
    exceeded[:, 0] = False  # known exactly
    assert exceeded.any(axis=(1, 2)).mean() < failure


@pytest.mark.slow
@pytest.mark.parametrize("row", ORACLES["failures_of_the_printed_allocation"], ids=ids)
def test_the_largest_bound_of_an_epoch_would_fail_more_often(row):
    # the printed allocation, with the exact quantiles: each position's largest bound
    # over the second epoch, at the level of a single one
    means, noise, budget = means_of(row), row["sigma"], 0.02
    n_bins, rng = len(means), np.random.default_rng(4)
    second = slice(n_bins, None)
    draws = true_hazards(means, noise, 100_000, rng, False)[:, second]
    counted = needed(means)[second]
    bounds = np.quantile(draws, 1 - budget / (n_bins - 1), axis=0)
    bounds = np.where(counted, bounds, -1).max(axis=0)
    fresh = true_hazards(means, noise, 100_000, rng, False)[:, second]
    bad = ((fresh > bounds) & counted).any(axis=(1, 2)).mean()
    assert bad == pytest.approx(row["probability"], abs=0.004)
    assert bad > 1.3 * budget
    # a union over all of them holds
    bounds = np.quantile(draws, 1 - budget / counted.sum(), axis=0)
    assert ((fresh > bounds) & counted).any(axis=(1, 2)).mean() < budget


# -- epsilon and delta --------------------------------------------------------------


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["delta"], ids=ids)
def test_reference_deltas(row):
    for direction in ("remove", "add"):
        if direction in row:
            found = conditional_delta(
                means_of(row), row["sigma"], row["epsilon"], row["delta"], direction
            )
            assert found == pytest.approx(row[direction], rel=0.02)
            # what pays for failures is never less than its share
            assert found >= row["delta"] / 2


@pytest.mark.parametrize("row", ORACLES["calibrated"][:4], ids=ids)
def test_reference_noise(row):
    found = conditional_epsilon(means_of(row), row["sigma"], 1e-5)
    assert found == pytest.approx(row["epsilon"], rel=0.012)


@pytest.mark.slow
def test_reference_noise_of_banded_square_roots():
    row = ORACLES["calibrated"][4]
    found = conditional_epsilon(means_of(row), row["sigma"], 1e-5)
    # a finer family of laws than the reference's
    assert 0.96 * row["epsilon"] < found < 1.001 * row["epsilon"]


@pytest.mark.parametrize("row", ORACLES["exact"], ids=ids)
def test_no_epsilon_is_below_the_truth(row):
    assert conditional_epsilon(means_of(row), row["sigma"], 1e-5) > row["epsilon"]


@pytest.mark.parametrize("row", EXACT, ids=ids)
def test_no_delta_is_below_the_truth(row):
    means, gram = means_of(row), gram_of(row)
    for direction in ("remove", "add"):
        found = conditional_delta(means, row["sigma"], row["epsilon"], 0.01, direction)
        assert found >= row[direction]
        assert renyi_delta(gram, row["epsilon"], direction) >= row[direction]
    assert closed_add_delta(gram, row["epsilon"]) >= row["add"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ORACLES["sampled"], ids=ids)
def test_no_delta_is_below_what_samples_show(row):
    # the lower ends of 99 % intervals, of two million samples
    means, gram, epsilon = means_of(row), gram_of(row), row["epsilon"]
    for direction in ("remove", "add"):
        found = conditional_delta(
            means, row["sigma"], epsilon, 1e-3, direction, temperatures=()
        )
        assert found > row[direction]
        orders = np.arange(2, 13)
        assert renyi_delta(gram, epsilon, direction, orders) > row[direction]


def test_a_single_bin_is_the_gaussian():
    means = [[0.5, 0.0, 1.0, 0.25]]
    exact = GaussianCurve(np.linalg.norm(means) / 2)
    assert exact.epsilon(1e-5) <= conditional_epsilon(means, 2.0, 1e-5)
    assert conditional_epsilon(means, 2.0, 1e-5) == pytest.approx(
        exact.epsilon(1e-5), rel=2e-3
    )
    # nothing can fail, so nothing is paid for it
    assert conditional_delta(means, 2.0, 1.0, 0.1) == pytest.approx(
        exact.delta(1.0), rel=0.02
    )


def test_a_record_that_moves_nothing_costs_nothing():
    assert conditional_epsilon(np.zeros((3, 4)), 1.0, 1e-5) == 0
    assert conditional_delta(np.zeros((3, 4)), 1.0, 0.0, 1e-5) == 0


@settings(max_examples=6, deadline=None)
@given(shapes, st.floats(0.5, 4))
def test_invariances(shape, noise):
    means = random_means(*shape)
    found = conditional_epsilon(means, noise, 1e-3, temperatures=())
    # in any unit
    again = conditional_epsilon(3 * means, 3 * noise, 1e-3, temperatures=())
    assert again == pytest.approx(found, rel=1e-6, abs=1e-9)
    # rows in any proportion that leaves the inner products as they are
    split = np.column_stack([0.6 * means, 0.8 * means])
    again = conditional_epsilon(split, noise, 1e-3, temperatures=())
    assert again == pytest.approx(found, rel=1e-6, abs=1e-9)
    # both directions count
    each = [
        conditional_epsilon(means, noise, 1e-3, direction, temperatures=())
        for direction in ("remove", "add")
    ]
    assert found == max(each)
    # as epsilon and delta tell each other
    delta = conditional_delta(means, noise, found, 1e-3, temperatures=())
    assert delta <= 1e-3 * (1 + 1e-3)


def test_epochs_of_independent_noise_are_one_with_less_noise():
    five = conditional_epsilon(np.tile(np.eye(8), 5), 3.0, 1e-4)
    one = conditional_epsilon(math.sqrt(5) * np.eye(8), 3.0, 1e-4)
    assert five == pytest.approx(one, rel=1e-9)


def test_one_row_of_equal_odds_is_its_mixture():
    # a single row: nothing to learn from, so nothing to pay, and the mixture exactly
    means = np.array([[0.0], [0.5], [1.5]])
    pair = StepPair((1 / 3,) * 3, (0.0, 0.5, 1.5))
    found = conditional_delta(means, 1.0, 0.5, 0.1, "remove")
    assert found == pytest.approx(pair.delta(np.array([0.5]))[0], rel=1e-2)
    found = conditional_delta(means, 1.0, 0.5, 0.1, "add")
    assert found == pytest.approx(pair.reverse(np.array([0.5]))[0], rel=1e-2)


@pytest.mark.parametrize(
    "means, said",
    [
        ([1.0, 2.0], Statement("allocation.means_shape_wrong")),
        ([[1.0, -0.5]], Statement("allocation.means_negative")),
        ([[1.0, np.nan]], Statement("parameter.array_not_finite", name="means")),
        (np.zeros((0, 3)), Statement("allocation.means_shape_wrong")),
    ],
)
def test_what_are_no_means_is_refused(means, said):
    with refused(ValueError, said.code, **said.parameters):
        conditional_epsilon(means, 1.0, 1e-5)


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"noise": 0.0}, Statement("parameter.not_positive", name="noise")),
        ({"delta": 0.0}, Statement("parameter.probability_out_of_range", name="delta")),
        ({"epsilon": -1.0}, Statement("parameter.is_negative", name="epsilon")),
        (
            {"direction": "replace"},
            Statement("parameter.option_unknown", name="direction"),
        ),
        ({"share": 1.5}, Statement("parameter.probability_out_of_range", name="share")),
        (
            {"temperatures": (0.0,)},
            Statement("parameter.not_positive", name="temperatures"),
        ),
    ],
)
def test_refusals(changed, said):
    given_ = {"means": [[1.0], [0.0]], "noise": 1.0, "epsilon": 1.0, "delta": 1e-5}
    with refused(ValueError, said.code, **said.parameters):
        conditional_delta(**(given_ | changed))
