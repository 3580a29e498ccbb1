"""Certificates of records in bins: added up, as plain data, and of noise in blocks."""

import json

import numpy as np
import pytest
from scipy.special import logsumexp

from skpuffer.accountants import RandomAllocation, RenyiDP
from skpuffer.exceptions import CompositionError, UnsupportedError
from skpuffer.kernel.plain import to_plain
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.noise.strategies import (
    BandedRows,
    BufferedToeplitz,
    InverseToeplitz,
    PrefixSumTree,
    Restarted,
    Toeplitz,
    banded_square_root,
)
from skpuffer.privacy import Certificate, compose
from skpuffer.privacy._written import from_plain
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from tests.refused import refused, says

STRATEGY, ADDED = banded_square_root(2), RecordScenario()


def run(**options):
    usual = {
        "n_records": 60,
        "batch_size": 10,
        "n_steps": 12,
        "sampling": "balls_in_bins",
        "noise_correlation": STRATEGY,
    }
    return GradientRelease(**usual | options)


def certified(method="blocks", scale=4.0, **options):
    accountant = RandomAllocation(1.0, 1e-3, method=method)
    return accountant.certify(GaussianNoise(scale), run(**options), ADDED)


# -- added up --------------------------------------------------------------------------


def attained(epsilon, scale, add, times=2, n=200_000):
    """Delta of several runs together, by samples, and its standard error."""
    rng, loss = np.random.default_rng(5), np.zeros(n)
    means = STRATEGY.means(6, 12) / scale
    for _ in range(times):
        seen = rng.standard_normal((n, 12))
        if not add:
            seen += means[rng.integers(6, size=n)]
        ratio = seen @ means.T - np.sum(means**2, axis=1) / 2
        ratio = logsumexp(ratio, axis=1) - np.log(6)
        loss += -ratio if add else ratio
    gained = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return gained.mean(), gained.std() / n**0.5


@pytest.mark.every_run
def test_two_runs_of_correlated_noise_add_up():
    one = certified()
    two = compose([one, one], delta=1e-3)
    assert two.certified
    assert one.epsilon < two.epsilon < 2 * one.epsilon
    for add in (False, True):
        found, error = attained(two.epsilon, 4.0, add)
        assert found - 4 * error <= 1e-3
    # the same samples tell of less noise, and of the promise of a single run
    found, error = attained(two.epsilon, 0.7 * 4.0, add=False)
    assert found - 4 * error > 1e-3
    found, error = attained(one.epsilon, 4.0, add=False)
    assert found - 4 * error > 1e-3


def test_two_runs_of_known_bins_are_one_gaussian():
    one = certified("unamplified")
    mu = STRATEGY.sensitivity(6, 12) / 4
    exact = GaussianCurve(np.sqrt(2) * mu).epsilon(1e-3)
    # bins that are cut short move less
    found = compose([one, one], delta=1e-3).epsilon
    assert 0.9 * exact < found <= exact * (1 + 1e-4)


def test_a_run_and_rényi_costs_add_up():
    costs = RenyiDP(1.0, 1e-3).certify(GaussianNoise(4.0), run(), ADDED)
    two = compose([costs, certified()], delta=1e-3)
    found, error = attained(two.epsilon, 4.0, add=False)
    assert found - 4 * error <= 1e-3


def test_failures_of_conditional_composition_add_up():
    one, least = certified("conditional", n_steps=6), certified(n_steps=6)
    # each may fail with half of its delta: where nothing is left beside that, Rényi
    # costs are added
    for delta in (1e-3, 3e-3):
        found = compose([one, one], delta=delta).epsilon
        assert compose([least, least], delta=delta).epsilon <= found < np.inf


def test_replaced_and_added_records_do_not_add_up():
    replaced = RandomAllocation(1.0, 1e-3, method="unamplified").certify(
        GaussianNoise(4.0), run(), RecordScenario(relation="replace")
    )
    with pytest.raises(CompositionError):
        compose([replaced, certified()])


# -- plain data ------------------------------------------------------------------------

#: Strategies of numbers as NumPy has them.
NUMBERS = [
    Toeplitz((np.float64(1.0), np.float32(0.5))),
    Toeplitz(np.array([1.0, 0.5])),
    InverseToeplitz((np.float64(1.0), np.float64(-0.5))),
    BufferedToeplitz((np.float64(0.5),), (np.float32(0.5),)),
    BandedRows(np.ones((12, 1))),
    PrefixSumTree(np.int64(12)),
    Restarted(Toeplitz((1.0, np.float64(0.5))), np.int64(6)),
]


@pytest.mark.parametrize("strategy", NUMBERS, ids=lambda s: type(s).__name__)
def test_strategies_of_numpy_numbers_are_plain(strategy):
    twin = from_plain(json.loads(json.dumps(to_plain(strategy))))
    assert twin == strategy
    assert hash(twin) == hash(strategy)
    # in a run that was given as NumPy's numbers as well
    release = run(
        n_records=np.int64(60), n_steps=np.int64(12), noise_correlation=strategy
    )
    assert type(release.n_steps) is int
    accountant = RandomAllocation(np.float64(1.0), np.float64(1e-3), method="blocks")
    found = accountant.certify(GaussianNoise(np.float64(4.0)), release, ADDED)
    twin = Certificate.from_dict(json.loads(json.dumps(found.to_dict())))
    assert twin == found
    assert hash(twin.curve) == hash(found.curve)
    usual = run(noise_correlation=twin.curve.steps[0][0].strategy)
    again = RandomAllocation(1.0, 1e-3, method="blocks")
    again = again.certify(GaussianNoise(4.0), usual, ADDED)
    assert (again.curve, again.epsilon) == (found.curve, found.epsilon)


# -- noise in the proportions of blocks ------------------------------------------------


@pytest.mark.parametrize("proportions", [(1.0, 1.0), (1.0, 2.0)])
def test_noise_in_proportions_is_correlated_as_well(proportions):
    plain = RandomAllocation(1.0, 1e-3, method="blocks").calibrate(run(), ADDED)
    blocks = run(
        blocks=(1, 1),
        clip_norm=(1.0, 1.0),
        noise_proportions=proportions,
    )
    found = RandomAllocation(1.0, 1e-3, method="blocks").calibrate(blocks, ADDED)
    scales = np.array(found.noise.scale)
    assert scales / scales[0] == pytest.approx(np.array(proportions))
    # in units of its noise a record moves each block by one over its scale
    moved = np.sqrt(np.sum(scales**-2.0))
    assert 1 / moved == pytest.approx(plain.noise.scale, rel=1e-4)
    # which is what certificates say, and no more noise than that
    said = " ".join(map(str, found.certificate.assumptions))
    assert f"have scale {plain.noise.scale:.3g}"[:-1] in said
    assert f"scale {max(scales):.6g} " not in said


# -- other noise, and parts that draw anew ---------------------------------------------


@pytest.mark.parametrize("method", ["best", "chain", "unamplified"])
def test_other_noise_is_refused(method):
    release = run(noise_correlation=None, clip_order=1)
    accountant = RandomAllocation(1.0, 1e-3, method=method)
    with refused(
        UnsupportedError, "allocation.noise_not_gaussian", family="laplace"
    ) as said:
        accountant.certify(LaplaceNoise(1.0), release, ADDED)
    assert "correlated" not in str(said.value)


FOUND = ("unamplified (remove)", "unamplified (add)")


def test_winners_of_several_epochs_are_those_of_one():
    fresh = {"sampling": "fresh_bins", "noise_correlation": Restarted(STRATEGY, 6)}
    said = certified("unamplified", **fresh).assumptions
    assert says(said, "correlation.parts_composed_least", n_parts=2, found=FOUND)
    said = certified("unamplified").assumptions
    assert says(said, "correlation.upper_bound_each_direction", found=FOUND)
