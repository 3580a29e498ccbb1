"""Rényi divergences of random bins: exact where they say so, never too small."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpuffer.extensions.random_allocation.loss._bands import envelope
from skpuffer.privacy_loss import renyi_to_approximate, renyi_to_delta
from skpuffer.privacy_loss.allocation import (
    closed_add_delta,
    renyi_add,
    renyi_allocation,
    renyi_circulant,
    renyi_delta,
    renyi_epsilon,
    renyi_remove,
    unamplified_delta,
)
from tests.extensions.random_allocation.allocation_oracles import (
    enumerated,
    gram_of,
    ids,
    oracles,
)
from tests.refused import refused

ORACLES = oracles("allocation_renyi.json")


@pytest.mark.parametrize("row", ORACLES["renyi_remove"], ids=ids)
def test_reference_divergences(row):
    gram = gram_of(row)
    tolerance = row.get("tolerance", 1e-11)
    exact = renyi_remove(gram, row["order"])
    assert exact == pytest.approx(row["value"], rel=tolerance, abs=1e-11)
    # the recursion itself, where closed forms of small orders would answer first
    if row["strategy"] != "bisr":
        width = row.get("bandwidth", 1)
        passed = renyi_remove(gram, row["order"], bandwidth=width)
        assert passed == pytest.approx(row["value"], rel=tolerance, abs=1e-11)
    # rounded up
    assert exact >= row["value"] * (1 - tolerance)


def test_a_new_count_is_weighed_with_the_state_it_comes_from():
    # the printed recursion weighs it with the state it leads to: 0.4055
    found = renyi_remove(np.eye(2), 2, bandwidth=1)
    assert found == pytest.approx(math.log((1 + math.e) / 2), rel=1e-11)
    assert found > 0.62


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["double_counted"], ids=str)
def test_no_pair_of_bins_is_counted_from_both_sides(row):
    n_batches, epochs, bandwidth, sigma, order, twice = row
    gram = gram_of(
        {
            "strategy": "bsr",
            "n_batches": n_batches,
            "epochs": epochs,
            "bandwidth": bandwidth,
            "sigma": sigma,
        }
    )
    found = renyi_remove(gram, order, bandwidth=bandwidth)
    assert found == pytest.approx(enumerated(gram, order), rel=1e-11)
    assert found < twice


@pytest.mark.every_run
def test_truncated_bands_bound_from_above():
    row = ORACLES["truncated"]
    gram = gram_of(row)
    found = [renyi_remove(gram, row["order"], bandwidth=p) for p in (1, 2, 3, 4)]
    assert found == pytest.approx(row["bounds"], rel=1e-9)
    assert np.all(np.diff(found) < 0)
    assert found[-1] >= row["exact"]
    # half of a circle is all there is: no entry is bounded any more
    assert renyi_remove(gram, row["order"], bandwidth=5) == pytest.approx(
        row["exact"], rel=1e-9
    )


def test_between_whole_orders_from_above():
    # exact: 0.793308356507
    found = renyi_remove(np.eye(2), 2.5)
    assert found == pytest.approx(0.858191033251, rel=1e-11)
    # convexity: below order two the chord goes through zero at order one
    assert renyi_remove(np.eye(2), 1.3) == pytest.approx(math.log((1 + math.e) / 2))


def random_gram(seed, n_bins, scale, n_rows=4):
    means = np.random.default_rng(seed).random((n_bins, n_rows)) ** 3
    return scale * means @ means.T


grams = st.builds(
    random_gram, st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.01, 4)
)


@settings(max_examples=40)
@given(grams, st.integers(2, 4))
def test_divergences_are_those_of_all_tuples(gram, order):
    truth = enumerated(gram, order)
    found = renyi_remove(gram, order)
    assert found == pytest.approx(truth, rel=1e-10, abs=1e-12)
    bounds = [renyi_remove(gram, order, bandwidth=p) for p in range(1, len(gram) + 1)]
    assert bounds[-1] == pytest.approx(truth, rel=1e-10, abs=1e-11)
    assert np.all(np.diff(bounds) <= 1e-12)
    assert np.all(np.array(bounds) >= truth - 1e-15)


@settings(max_examples=25)
@given(grams, st.integers(0, 2**32 - 1))
def test_divergences_are_ordered(gram, seed):
    orders = np.array([1.5, 2, 2.5, 3, 4, 5, 7])
    remove, add = renyi_allocation(gram, orders)
    # the margin is that of rounding up
    assert np.all(np.diff(remove) >= -1e-11)
    assert np.all(np.diff(add) >= 0)
    assert np.all(renyi_allocation(1.2 * gram, orders).remove >= remove - 1e-11)
    # bins have no order, except that the recursion goes around in one
    mixed = np.random.default_rng(seed).permutation(len(gram))
    again = renyi_allocation(gram[np.ix_(mixed, mixed)], orders).remove
    assert again == pytest.approx(remove, rel=1e-9, abs=1e-10)
    # a bin twice over is the same bin
    doubled = np.repeat(np.repeat(gram, 2, axis=0), 2, axis=1)
    assert renyi_remove(doubled, [2, 3]) == pytest.approx(
        renyi_remove(gram, [2, 3]), rel=1e-9, abs=1e-10
    )


def test_epochs_of_independent_noise_are_one_with_less_noise():
    orders = np.arange(2, 12)
    five = renyi_remove(
        gram_of(dict(strategy="identity", n_batches=7, epochs=5, sigma=3)), orders
    )
    one = renyi_remove(np.eye(7) * 5 / 9, orders)
    assert five == pytest.approx(one, rel=1e-11)


@given(st.integers(2, 12), st.floats(0.3, 3), st.integers(2, 9))
def test_independent_noise_by_partitions(n_bins, sigma, order):
    def partitions(rest, most):
        if not rest:
            yield ()
        for part in range(min(rest, most), 0, -1):
            for others in partitions(rest - part, part):
                yield (part, *others)

    total = 0.0
    for parts in partitions(order, order):
        if len(parts) > n_bins:
            continue
        ways = math.factorial(order) * math.perm(n_bins, len(parts))
        for part in parts:
            ways /= math.factorial(part)
        for part in set(parts):
            ways /= math.factorial(parts.count(part))
        total += ways * math.exp(sum(x * (x - 1) for x in parts) / (2 * sigma**2))
    truth = (math.log(total) - order * math.log(n_bins)) / (order - 1)
    found = renyi_remove(np.eye(n_bins) / sigma**2, order)
    assert found == pytest.approx(truth, rel=1e-10, abs=1e-12)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["poisson"], ids=ids)
def test_random_bins_beat_poisson_batches_at_these_orders(row):
    found = renyi_remove(gram_of(row), row["order"])
    assert found == pytest.approx(row["value"], rel=1e-6)
    assert found < row["poisson"]


# -- renewal ------------------------------------------------------------------------


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["circulant"], ids=lambda row: str(row["lags"]))
def test_reference_renewals(row):
    lags = np.array(row["lags"]) / row["variance"]
    for cyclic in (True, False):
        found = renyi_circulant(lags, row["n_batches"], [2, 3, 4], cyclic)
        expected = row["cyclic" if cyclic else "linear"]
        assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.every_run
@pytest.mark.parametrize(
    "row", ORACLES["uncounted"], ids=lambda row: str(row["n_batches"])
)
def test_orders_that_renewals_would_undercount_are_refused(row):
    lags, n_batches, order = row["lags"], row["n_batches"], row["order"]
    with refused(ValueError, "allocation.orders_too_large_for_lags"):
        renyi_circulant(lags, n_batches, order)
    with refused(ValueError, "allocation.orders_too_large_for_lags"):
        renyi_circulant(lags, n_batches, order - 0.5)
    # what the recursion over all counts says, and the renewal must not undercut
    bins = np.arange(n_batches)
    distance = np.abs(bins - bins[:, np.newaxis])
    distance = np.minimum(distance, n_batches - distance)
    gram = np.where(distance < 3, np.array([*lags, 0.0])[np.minimum(distance, 3)], 0.0)
    truth = renyi_remove(gram, order)
    assert truth == pytest.approx(row["truth"], rel=1e-9)
    assert truth > row["formula"]
    assert renyi_allocation(gram, order).remove == pytest.approx(truth, rel=1e-9)


@settings(max_examples=20)
@given(
    st.lists(st.floats(0, 2), min_size=1, max_size=3), st.integers(7, 9), st.booleans()
)
def test_renewals_are_the_recursion_over_all_counts(lags, n_batches, cyclic):
    lags = sorted(lags, reverse=True)
    bins = np.arange(n_batches)
    distance = np.abs(bins - bins[:, np.newaxis])
    if cyclic:
        distance = np.minimum(distance, n_batches - distance)
    table = np.zeros(n_batches)
    table[: len(lags)] = lags
    gram, orders = table[distance], np.array([2, 3])
    found = renyi_circulant(lags, n_batches, orders, cyclic)
    passed = renyi_remove(gram, orders, bandwidth=len(lags))
    assert found == pytest.approx(passed, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("row", ORACLES["envelope"], ids=ids)
def test_reference_envelopes(row):
    gram, orders = gram_of(row), np.array(row["orders"])
    cyclic = row["epochs"] > 1
    lags, shared = envelope(gram, row["bandwidth"], True)
    assert shared == 0
    found = renyi_circulant(lags, len(gram), orders)
    assert found == pytest.approx(row["values"], rel=1e-7)
    best = renyi_allocation(gram, orders).remove
    assert np.all(best <= found * (1 + 1e-9))
    # the corners are zero in one epoch, and a line of bins is less than a circle
    assert (renyi_circulant(lags, len(gram), orders, False) < found).all()
    assert cyclic or np.all(best < found)


# -- epsilon and delta --------------------------------------------------------------


@pytest.mark.every_run
def test_reference_conversions():
    for rho, alpha, epsilon, delta in ORACLES["conversion"]["delta"]:
        assert renyi_to_delta(alpha, rho, epsilon) == pytest.approx(delta, rel=1e-9)
    for rho, alpha, delta, epsilon in ORACLES["conversion"]["epsilon"]:
        found = renyi_to_approximate(alpha, rho, delta)
        assert found == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["delta"], ids=ids)
def test_reference_deltas(row):
    gram, orders = gram_of(row), np.arange(2, 20)
    for direction in ("remove", "add"):
        if direction in row:
            found = renyi_delta(gram, row["epsilon"], direction, orders)
            assert found == pytest.approx(row[direction], rel=1e-4)
    both = renyi_delta(gram, row["epsilon"], orders=orders)
    assert both == pytest.approx(row["remove"], rel=1e-4)


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["exact_two_bins"], ids=ids)
def test_no_delta_is_below_the_truth(row):
    gram = gram_of(row)
    for direction in ("remove", "add"):
        assert renyi_delta(gram, row["epsilon"], direction) >= row[direction]


@settings(max_examples=10, deadline=None)
@given(grams, st.sampled_from([1e-9, 1e-5, 1e-2, 0.3]))
def test_epsilon_inverts_delta(gram, delta):
    orders = np.arange(2, 16)
    for direction in ("remove", "add", None):
        epsilon = renyi_epsilon(gram, delta, direction, orders)
        assert renyi_delta(gram, epsilon, direction, orders) <= delta * (1 + 1e-9)
        if epsilon > 1e-3:
            assert renyi_delta(gram, epsilon * 0.99, direction, orders) > delta * (
                1 - 1e-6
            )
        # never worse than the closed forms
        at = np.array([0.3, 2.0])
        assert np.all(
            renyi_delta(gram, at, direction, orders) <= unamplified_delta(gram, at)
        )
    assert np.all(renyi_delta(gram, at, "add") <= closed_add_delta(gram, at))


@pytest.mark.parametrize(
    "epsilon, sigma", [(0.25, 2.179), (0.5, 1.438), (1.0, 1.0738), (2.0, 0.8063)]
)
def test_reference_noise_of_independent_steps(epsilon, sigma):
    gram = np.eye(100) / sigma**2
    assert renyi_epsilon(gram, 1e-5) == pytest.approx(epsilon, rel=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon, sigma", [(0.5, 2.15), (1.0, 1.377), (2.0, 1.018)])
def test_reference_noise_of_banded_square_roots(epsilon, sigma):
    row = dict(strategy="bsr", n_batches=100, bandwidth=4, sigma=sigma)
    found = renyi_epsilon(
        gram_of(row), 1e-5, orders=np.arange(2, 33), max_operations=5e7
    )
    assert found == pytest.approx(epsilon, rel=5e-3)


# -- limits and refusals ------------------------------------------------------------


def test_a_record_that_moves_nothing_costs_nothing():
    zero = np.zeros((4, 4))
    assert renyi_remove(zero, [2, 3.5, 40]) == pytest.approx(0, abs=1e-12)
    assert renyi_epsilon(zero, 1e-5) == 0
    assert renyi_delta(zero, [0.0, 1.0]).tolist() == [0.0, 0.0]


def test_large_entries_and_orders_stay_bounds():
    gram = np.diag([900.0, 0, 0, 0, 0])
    orders = np.array([2, 5, 1000])
    found = renyi_remove(gram, orders)
    # tuples of the first bin alone, of which there is one in 5 ** order
    truth = 900 * orders / 2 - orders / (orders - 1) * np.log(5)
    assert found[:2] == pytest.approx(truth[:2], rel=1e-11)
    # beyond the largest order that is computed: as if the bin were known
    assert truth[2] < found[2] <= 900 * orders[2] / 2


def test_numbers_lost_below_the_smallest_float_are_charged():
    # tuples of different bins weigh exp(-0.1 * 128 * 127 / 2), below any float, and
    # there are enough of them to matter
    order, n_bins, entry = 128, 1000, mpmath.mpf("0.1")

    def times(first, second):
        return [
            mpmath.fsum(first[i] * second[n - i] for i in range(n + 1))
            for n in range(order + 1)
        ]

    factor = [
        mpmath.exp(entry * t * (t - 1) / 2) / mpmath.factorial(t)
        for t in range(order + 1)
    ]
    total, left = [1] + [0] * order, n_bins
    while left:
        if left % 2:
            total = times(total, factor)
        factor, left = times(factor, factor), left // 2
    log = mpmath.log(total[order] * mpmath.factorial(order))
    truth = float((log - order * mpmath.log(n_bins)) / (order - 1))
    assert renyi_circulant([0.1], n_bins, order) >= truth
    assert renyi_remove(0.1 * np.eye(n_bins), order) >= truth


def test_more_operations_than_allowed_are_refused_or_avoided():
    gram = gram_of(dict(strategy="bisr", n_batches=24, epochs=2, bandwidth=4, sigma=3))
    with refused(ValueError, "allocation.bandwidth_too_many_operations", bandwidth=6):
        renyi_remove(gram, 30, bandwidth=6)
    few = renyi_remove(gram, [2, 6, 12], max_operations=1e4)
    more = renyi_remove(gram, [2, 6, 12])
    assert np.all(np.isfinite(few)) and np.all(more <= few)
    assert more[1] < few[1]


@pytest.mark.parametrize("orders", [[], 1.0, [2, 0.5], [2, np.inf], [2, np.nan]])
def test_orders_must_be_finite_and_above_one(orders):
    for ask in (renyi_remove, renyi_allocation):
        with refused(
            ValueError,
            ("allocation.orders_empty_or_small", "parameter.array_not_finite"),
        ):
            ask([[1.0]], orders)
    with refused(
        ValueError, ("allocation.orders_empty_or_small", "parameter.array_not_finite")
    ):
        renyi_circulant([1.0], 3, orders)


@pytest.mark.parametrize("lags", [[], 1.0, [1, -0.1], [[1.0]], [np.nan]])
def test_lags_must_be_numbers_that_are_not_negative(lags):
    with refused(
        ValueError, ("allocation.lags_empty_or_negative", "parameter.array_not_finite")
    ):
        renyi_circulant(lags, 10, 2)


def test_other_refusals():
    with refused(ValueError, "allocation.gram_not_symmetric"):
        renyi_remove([[1, 0.5], [0.2, 1]], 2)
    with refused(ValueError, "parameter.count_too_small", name="bandwidth"):
        renyi_remove([[1.0]], 2, bandwidth=0)
    with refused(ValueError, "parameter.option_unknown", name="direction"):
        renyi_delta([[1.0]], 1.0, direction="replace")
    with refused(ValueError, "parameter.probability_out_of_range", name="delta"):
        renyi_epsilon([[1.0]], 0.0)
    with refused(ValueError, "parameter.count_too_small", name="n_batches"):
        renyi_circulant([1.0], 0, 2)


def test_reference_delta_of_the_lemma():
    # of ten bins, by the lemma for records that are added, at an order near the best
    orders = np.linspace(1.5, 60, 1171)
    costs = renyi_add(np.eye(10) / 1.5**2, orders)
    least = float(renyi_to_delta(orders, costs, 1.0))
    assert 2.18e-5 < least <= 2.1969e-5
    row = {"strategy": "identity", "n_batches": 10, "sigma": 1.5}
    assert float(closed_add_delta(gram_of(row), 1.0)) < least / 4


def test_the_direction_add_is_the_closed_bound():
    gram = random_gram(3, 5, 1.0)
    orders = [1.5, 2, 30]
    assert renyi_allocation(gram, orders).add == pytest.approx(renyi_add(gram, orders))
