"""The pair of a record in bins kept under correlated noise."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from skpuffer.extensions.random_allocation.loss import _chain as _chain_bound
from skpuffer.kernel.composed import worst_delta
from skpuffer.kernel.plain import to_plain
from skpuffer.noise import LaplaceNoise
from skpuffer.noise.strategies import (
    BufferedToeplitz,
    Toeplitz,
    banded_inverse_square_root,
    banded_square_root,
    identity,
)
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss.allocation import CorrelatedAllocationPair
from skpuffer.privacy_loss.allocation import unamplified_delta as known
from tests.allocation import divergence
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "allocation_chain.json").read_text("utf-8")
)
FAMILIES = {"bsr": banded_square_root, "bisr": banded_inverse_square_root}


def strategy_of(row, bandwidth):
    name = row.get("strategy", "bsr")
    if name == "identity":
        return identity()
    if name == "blt":
        return BufferedToeplitz((0.9, 0.5), (0.12, 0.25))
    return FAMILIES[name](row.get("bandwidth", bandwidth))


def pair_of(strategy, n_batches, n_steps, sigma, **kwargs):
    curve = GaussianCurve(1 / sigma)
    return CorrelatedAllocationPair(curve, strategy, n_batches, n_steps, **kwargs)


def at(epsilon):
    return np.array([epsilon])


# -- numbers found elsewhere -----------------------------------------------------------


def slow_after(rows, count):
    """The rows, of which all but the first are slow."""
    return [
        pytest.param(row, id=str(row), marks=() if i < count else pytest.mark.slow)
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("row", slow_after(ORACLES["calibrated"], 2))
def test_reference_noise_that_is_enough(row):
    strategy = strategy_of(row, 4)
    pair = pair_of(strategy, 100, row["n_steps"], row["sigma"], method="chain")
    assert pair.delta(at(row["epsilon"]))[0] <= 1e-5
    assert pair.reverse(at(row["epsilon"]))[0] <= 1e-5


@pytest.mark.parametrize("row", slow_after(ORACLES["sampled"], 2))
def test_reference_not_below_samples(row):
    pair = pair_of(banded_square_root(4), 100, row["n_steps"], row["sigma"])
    found = pair.delta(at(row["epsilon"]))[0]
    assert row["remove"] - 3 * row["error"] < found < 8 * row["remove"]


@pytest.mark.parametrize("row", ORACLES["sampled_small"], ids=str)
def test_reference_not_below_samples_of_ten_bins(row):
    strategy = strategy_of(row, 3)
    pair = pair_of(strategy, row["n_batches"], row["n_steps"], row["sigma"])
    for direction, found in (("remove", pair.delta), ("add", pair.reverse)):
        value = found(at(row["epsilon"]))[0]
        assert row[direction] < value < 4 * row[direction]


@pytest.mark.every_run
@pytest.mark.parametrize("row", ORACLES["independent"], ids=str)
def test_reference_independent_noise_from_above(row):
    n_batches = row["n_batches"]
    pair = pair_of(identity(), n_batches, n_batches, row["sigma"], method="chain")
    for direction, found in (("remove", pair.delta), ("add", pair.reverse)):
        value = found(at(row["epsilon"]))[0]
        assert row[direction] * (1 - 1e-5) < value < 1.02 * row[direction] + 1e-9


@pytest.mark.parametrize("row", ORACLES["replaced_two_bins"], ids=str)
def test_reference_replaced(row):
    strategy, n_steps = strategy_of(row, 2), 2 * row["epochs"]
    means = strategy.means(2, n_steps) / row["sigma"]
    exact = divergence(means @ means.T, row["epsilon"], "replace")
    assert exact == pytest.approx(row["value"], rel=1e-8)
    pair = pair_of(strategy, 2, n_steps, row["sigma"], replaced=True)
    found = pair.delta(at(row["epsilon"]))
    assert exact < found[0] < 1.15 * exact
    assert pair.reverse(at(row["epsilon"])) == found


@pytest.mark.parametrize("row", slow_after(ORACLES["directions"], 2))
def test_reference_noise_of_each_direction(row):
    # with fewer nodes for what is common to all bins than the reference has, so that
    # there may be a part more
    most = 1e-5 * (1 + row["tolerance"])
    for direction in ("remove", "add"):
        strategy, sigma = strategy_of(row, 4), row[direction]
        pair = pair_of(strategy, 100, row["n_steps"], sigma, method="chain")
        found = pair.delta if direction == "remove" else pair.reverse
        assert found(at(row["epsilon"]))[0] <= most


@pytest.mark.parametrize("row", slow_after(ORACLES["replaced_runs"], 1))
def test_reference_runs_of_replaced_records(row):
    # the scale that is enough on finer grids, with a tenth for ours, and one at which
    # samples say how much there is
    for sigma, low, high in (
        (row["sigma"], 0.0, 1.1 * row["delta"]),
        (row["sampled_sigma"], row["sampled"] - 3 * row["error"], math.inf),
    ):
        pair = pair_of(banded_square_root(4), 100, 100, sigma, replaced=True)
        assert low < pair.delta(at(row["epsilon"]))[0] <= high


# -- properties ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family",
    [
        banded_square_root,
        pytest.param(banded_inverse_square_root, marks=pytest.mark.slow),
    ],
)
def test_no_bound_is_below_a_quadrature(family):
    strategy, epsilon = family(2), np.array([0.3, 1.1])
    pair = pair_of(strategy, 3, 5, 1.6)
    means = strategy.means(3, 5) / 1.6
    for direction, found in (("remove", pair.delta), ("add", pair.reverse)):
        exact = [divergence(means @ means.T, e, direction, 301) for e in epsilon]
        assert np.all(found(epsilon) > exact)
        single = [found(at(e))[0] for e in epsilon]
        assert np.all(single > np.array(exact))


def test_one_bin_is_the_gaussian():
    strategy = banded_square_root(3)
    pair = pair_of(strategy, 1, 4, 2.0)
    mu = float(np.linalg.norm(strategy.means(1, 4))) / 2.0
    for found in (pair.delta, pair.reverse):
        assert found(at(0.7))[0] == pytest.approx(GaussianCurve(mu).delta(0.7))
    both = pair_of(strategy, 1, 4, 2.0, replaced=True)
    assert both.delta(at(0.7))[0] == pytest.approx(GaussianCurve(2 * mu).delta(0.7))


@pytest.mark.slow
def test_the_least_of_all_bounds_counts():
    strategy, epsilon = banded_inverse_square_root(3), np.linspace(0, 1.4, 5)
    pairs = {
        method: pair_of(strategy, 20, 40, 4.0, method=method)
        for method in ("best", "chain", "closed", "renyi", "unamplified")
    }
    for name in ("delta", "reverse"):
        found = {m: getattr(p, name)(epsilon) for m, p in pairs.items()}
        least = np.min([found[m] for m in found if m != "best"], axis=0)
        assert np.all(found["best"] <= 1e-7 + least)
        assert np.all(found["best"] >= least)
        winner = pairs["best"].winner(1.0)["remove" if name == "delta" else "add"]
        one = {m: getattr(p, name)(at(1.0))[0] for m, p in pairs.items()}
        assert one[winner] == one["best"]


def test_low_renyi_orders_count_where_bins_have_much_in_common():
    # at large epsilons chains are loose, and a product of matrices takes no time
    strategy, sigma, epsilon = banded_inverse_square_root(64), 0.71, 8.0
    means = strategy.means(100, 100) / sigma
    weights = np.exp(means @ means.T)
    third = (math.log(np.trace(weights @ weights @ weights)) - 3 * math.log(100)) / 2
    expected = math.exp(2 * (third - epsilon)) * (2 / 3) ** 3 / 2
    pair = pair_of(strategy, 100, 100, sigma)
    assert pair.delta(at(epsilon))[0] == pytest.approx(expected, rel=1e-9)
    assert pair.winner(epsilon)["remove"] == "renyi"
    chain = pair_of(strategy, 100, 100, sigma, method="chain")
    assert expected < 0.5 * chain.delta(at(epsilon))[0]


def test_scaling_matrix_and_noise_changes_nothing():
    few = pair_of(Toeplitz((1.0, 0.5)), 10, 10, 1.5)
    scaled = pair_of(Toeplitz((3.0, 1.5)), 10, 10, 4.5)
    for name in ("delta", "reverse"):
        found = [getattr(pair, name)(at(0.8))[0] for pair in (few, scaled)]
        # covers are chosen by coarse classes of noise: nearly the same
        assert found[0] == pytest.approx(found[1], rel=0.05)


def test_more_noise_is_more_private():
    for replaced in (False, True):
        found = [
            pair_of(banded_square_root(3), 9, 9, s, replaced=replaced).delta(at(0.8))
            for s in (1.0, 1.4, 2.0)
        ]
        assert found[0] > found[1] > found[2]


@pytest.mark.slow
def test_replaced_is_no_less_than_either_direction():
    one = pair_of(banded_square_root(3), 15, 15, 1.5)
    both = pair_of(banded_square_root(3), 15, 15, 1.5, replaced=True)
    epsilon = np.array([0.3, 0.7, 1.3])
    many = both.delta(epsilon)
    for i, each in enumerate(epsilon):
        single = both.delta(at(each))[0]
        # many are read off lines between fewer bounds
        assert many[i] >= 0.999 * single
        assert single > max(one.delta(at(each))[0], one.reverse(at(each))[0])


def test_costs_bound_the_pair():
    pair = pair_of(banded_square_root(3), 10, 20, 2.0)
    (cost,) = pair.renyi_costs((4.0,))
    # the mean of the ratio's fourth power, over all quadruples of bins
    gram = pair.strategy.means(10, 20) @ pair.strategy.means(10, 20).T / 2.0**2
    pairs = gram[:, :, np.newaxis, np.newaxis] + gram
    cross = pairs + gram[:, np.newaxis, :, np.newaxis]
    cross = cross + gram[:, np.newaxis, np.newaxis, :]
    cross = cross + gram[np.newaxis, :, :, np.newaxis]
    cross = cross + gram[np.newaxis, :, np.newaxis, :]
    exact = np.log(np.exp(cross).mean()) / 3
    known_bin = 4 * gram.diagonal().max() / 2
    assert exact * (1 - 1e-9) <= cost < 1.2 * exact
    assert cost < 0.5 * known_bin
    added = pair.directions[1].renyi_costs((4.0,))
    assert 0 < added[0] <= known_bin


@pytest.mark.slow
def test_composed_runs_cost_more():
    pair = pair_of(banded_square_root(2), 20, 20, 2.0)
    one = PrivacyLossCurve(((pair, 1),))
    two = PrivacyLossCurve(((pair, 2),))
    assert 0 < one.epsilon(1e-5) < two.epsilon(1e-5)
    assert one.delta(1.0) == max(pair.delta(at(1.0))[0], pair.reverse(at(1.0))[0])
    assert one.delta(one.epsilon(1e-5)) <= 1e-5 * (1 + 1e-9)
    # a record's bins are known
    gram = pair.strategy.means(20, 20) @ pair.strategy.means(20, 20).T / 2.0**2
    most = PrivacyLossCurve(((GaussianCurvePair(gram), 2),))
    assert two.epsilon(1e-5) < most.epsilon(1e-5)


class GaussianCurvePair:
    """The pair of known bins."""

    symmetric = True

    def __init__(self, gram):
        self.gram = gram

    def delta(self, epsilon):
        return known(self.gram, epsilon)

    reverse = delta


# -- plain data, and what is refused ---------------------------------------------------


def test_pair_is_written_and_read_back():
    pair = pair_of(banded_square_root(2), 4, 8, 1.5, replaced=True)
    assert from_plain(json.loads(json.dumps(to_plain(pair)))) == pair
    assert hash(pair) == hash(pair_of(banded_square_root(2), 4, 8, 1.5, replaced=True))


def test_no_noise_and_no_move():
    assert pair_of(banded_square_root(2), 4, 4, 1e-200).delta(at(1.0))[0] == 1.0
    pair = CorrelatedAllocationPair(GaussianCurve(0.0), banded_square_root(2), 4, 4)
    assert pair.delta(at(0.0))[0] == 0.0
    assert pair_of(banded_square_root(2), 4, 4, 0.02).delta(at(1.0))[0] == 1.0


def test_other_noise_is_refused():
    with refused(ValueError, "allocation.curve_not_gaussian"):
        CorrelatedAllocationPair(
            LaplaceNoise(1.0).curve(1.0), banded_square_root(2), 4, 4
        )


def test_unknown_methods_are_refused():
    with refused(ValueError, "allocation.method_unknown"):
        pair_of(banded_square_root(2), 4, 4, 1.0, method="sampled")


@pytest.mark.parametrize("replaced", [False, True])
def test_negative_epsilons_are_refused(replaced):
    pair = pair_of(banded_square_root(2), 4, 4, 1.0, replaced=replaced)
    with refused(ValueError, "allocation.epsilon_negative"):
        pair.delta(at(-0.1))


def test_nodes_reach_out_where_paths_outside_cost_much(monkeypatch):
    asked = []

    def law(cover, size, reach, adding, accuracy):
        asked.append(accuracy.reach)
        return _law(cover, size, reach, adding, accuracy)

    _law = _chain_bound.chain_law
    monkeypatch.setattr(_chain_bound, "chain_law", law)
    few = pair_of(banded_square_root(2), 30, 30, 1.0).reverse(at(2.5))[0]
    assert few < 1e-7
    assert max(asked) > 8
    assert math.isfinite(few)


def test_a_quick_bound_saves_the_other_direction(monkeypatch):
    asked = []
    pair = pair_of(banded_square_root(2), 12, 12, 1.0)
    slow = max(pair.delta(at(2.0))[0], pair.reverse(at(2.0))[0])
    monkeypatch.setattr(CorrelatedAllocationPair, "reverse", lambda *_: asked.append(1))
    assert worst_delta(pair, 2.0) == slow
    assert not asked
    # of other methods than the best nothing quick is known
    assert pair_of(banded_square_root(3), 9, 9, 1.0, method="chain").quick_reverse(
        at(2.0)
    ) == [1.0]


def test_quick_bounds_are_no_less_than_the_least():
    pair, epsilon = pair_of(banded_square_root(2), 12, 12, 1.5), np.array([0.2, 1.0])
    assert np.all(pair.quick_reverse(epsilon) >= pair.reverse(epsilon))
