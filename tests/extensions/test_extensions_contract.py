"""Accountants of extensions keep the contract of all accountants."""

import math
import sys

import numpy as np
import pytest

from skpuffer.accountants import (
    PAC,
    HistoryUniformCap,
    IterationAmplification,
    RandomAllocation,
    ResidualPAC,
    SampledAllocation,
    SinkhornWasserstein,
    SlicedWasserstein,
)
from skpuffer.accountants._base import known_accountants
from skpuffer.distributions import Discrete, Gaussian, PointMass
from skpuffer.noise.strategies import banded_square_root
from skpuffer.papers import SampledPrivacyLoss
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario, RecordScenario, SubsampleScenario
from tests.accountants import test_accountants_contract as of_the_library
from tests.accountants.contract import (
    AccountantContract,
    N,
    contracts_in,
    import_all,
    unread,
)
from tests.accountants.test_accountants_contract import (
    OfDistributions,
    OfManySteps,
    run,
)

from .last_iterate.last_iterates import last_iterate


@pytest.mark.every_run
def test_every_accountant_has_its_contract():
    import_all()
    here = sys.modules[__name__]
    tested = {test.kind for test in contracts_in(of_the_library, here)}
    missing = set(known_accountants()) - tested
    assert not missing, f"Give each of {missing} a class beside its kin."


class TestSinkhornWasserstein(OfDistributions):
    kind = SinkhornWasserstein
    # a price in units of the output: with a fixed one the noise follows no other unit
    measured = ()
    modes = (
        {"entropy": 1.0},
        {"alpha": math.inf, "noise": "laplace"},
        {"delta": 1e-5},
    )


class TestSlicedWasserstein(AccountantContract):
    """Vectors, by all profiles; of all directions also in closed form."""

    kind = SlicedWasserstein
    modes = (
        {},
        {"aggregation": "joint", "profile": "basis", "per_pair": False},
        {"alpha": 8.0, "aggregation": "joint", "method": "closed"},
        {"profile": "uniform", "confidence": 0.9, "n_slices": 100},
        {"aggregation": "joint", "profile": "uniform", "confidence": 0.9},
    )
    growths = ("points", "spread", "gaussians", "pairs")
    measured = ("points", "spread")

    def case(self, growth, size=1, unit=1.0):
        origin, far = np.zeros(2), unit * size * np.array([3.0, 4.0])
        pairs = {
            "points": [(PointMass(origin), PointMass(far))],
            "spread": [
                (
                    Discrete(unit * np.array([[0.0, 0.0], [1.0, 2.0]])),
                    Discrete(np.array([far, 2 * far]), [0.3, 0.7]),
                )
            ],
            "gaussians": [(Gaussian(origin, np.eye(2)), Gaussian(far, np.eye(2)))],
            "pairs": [(PointMass(origin), PointMass(k * far)) for k in range(3)],
        }[growth]
        return QueryRelease(query=unread, n_records=N, dim=2), LawsScenario(pairs)


class TestHistoryUniformCap(AccountantContract):
    """Asked about runs only, under every scheme that takes no more than its mode."""

    kind = HistoryUniformCap
    modes = (
        {},
        {"alpha": 8.0, "subsampling": "log_moment"},
        {"subsampling": "mean_square", "averaging": "averaged"},
        {"subsampling": "mean_square", "slices": ((1.0,),), "slice_weights": (1.0,)},
    )
    growths = ("group", "clip", "come_and_go", "steps", "fixed_size", "repeats")
    measured = ("clip",)

    def case(self, growth, size=1, unit=1.0):
        options, scenario = {
            "group": ({"sampling": "full_batch", "batch_size": None}, {"k": size}),
            "clip": ({"clip_norm": unit * size}, {}),
            "come_and_go": ({}, {"k": size, "relation": "add_remove"}),
            "steps": ({"n_steps": 3 * size}, {}),
            # caps are of as many as differ, whatever the batch
            "fixed_size": ({"sampling": "fixed_size"}, {"k": 2 * size}),
            "repeats": (
                {"sampling": "with_replacement", "batch_size": 3 * size},
                {},
            ),
        }[growth]
        return run(**options), RecordScenario(**{"relation": "replace"} | scenario)


class TestHistoryUniformCapOfEpochs(TestHistoryUniformCap):
    """Batches that are dealt depend on each other, which log-moments do not take."""

    modes = ({}, {"subsampling": "mean_square"})
    growths = ("epochs",)
    measured = growths

    def case(self, growth, size=1, unit=1.0):
        dealt = run(sampling="shuffled_epochs", n_steps=10, clip_norm=unit)
        return dealt, RecordScenario(k=size, relation="replace")


class TestSampledPrivacyLoss(OfManySteps):
    kind = SampledPrivacyLoss
    modes = (
        {"delta": 1e-2, "n_samples": 2_000, "random_state": 0},
        {
            "delta": 1e-2,
            "n_samples": 2_000,
            "random_state": 0,
            "noise": "generalized_gaussian",
            "beta": 1.5,
        },
    )
    growths = ("clip", "steps")
    measured = ("clip",)
    certified = False
    # a root of a function that samples make a little rough
    above = left = 1e-3
    precision = 1e-4


class _OfBins(AccountantContract):
    """Asked about runs whose records draw one of several bins."""

    reads_correlations = True

    def case(self, growth, size=1, unit=1.0):
        if growth == "clip":
            return bins(clip_norm=unit * size), RecordScenario()
        if growth == "epochs":
            return bins(n_steps=6 * size), RecordScenario()
        if growth == "correlated":
            options = {"clip_norm": unit * size, "noise_correlation": _DECAYING}
            return bins(n_steps=12, **options), RecordScenario()
        assert growth == "replaced"
        run = bins(n_steps=6 * size, sampling="fresh_bins")
        return run, RecordScenario(relation="replace")


def bins(**options):
    return run(
        **{"sampling": "balls_in_bins", "batch_size": 10, "n_steps": 6} | options
    )


_DECAYING = banded_square_root(2)


class TestRandomAllocation(_OfBins):
    kind = RandomAllocation
    modes = (
        {"delta": 1e-4},
        {"delta": 1e-4, "method": "chain"},
        {"delta": 1e-4, "method": "unamplified"},
    )
    growths = ("clip", "epochs", "correlated")
    measured = ("clip", "correlated")


class TestSampledAllocation(_OfBins):
    kind = SampledAllocation
    modes = ({"delta": 1e-3, "n_samples": 2_000, "random_state": 0},)
    growths = ("clip", "epochs", "correlated")
    measured = ("clip", "correlated")
    certified = False
    above = left = 1e-3
    precision = 1e-4


class TestIterationAmplification(AccountantContract):
    kind = IterationAmplification
    modes = ({}, {"alpha": 4.0}, {"delta": 1e-5})
    growths = ("records", "replaced", "steps", "ball", "dealt")
    measured = ("records", "replaced", "dealt")

    def case(self, growth, size=1, unit=1.0):
        records = RecordScenario(k=size, relation="replace")
        if growth == "records":
            return last_iterate(clip_norm=unit, dim=1), RecordScenario(k=size)
        if growth == "replaced":
            return last_iterate(clip_norm=unit, l2=0.1, dim=1), records
        if growth == "steps":
            run = last_iterate(n_steps=4 * size, schedule="cosine", dim=1)
            return run, RecordScenario()
        if growth == "ball":
            run = last_iterate(n_steps=500, radius=float(size), dim=1)
            return run, RecordScenario()
        assert growth == "dealt"
        run = last_iterate(
            sampling="shuffled_epochs", batch_size=20, clip_norm=unit, dim=1
        )
        return run, records


class TestPAC(AccountantContract):
    kind = PAC
    budget, stated = "budget", "mutual_information"
    modes = ({"method": "waterfill"}, {"method": "proportional"})
    growths = measured = ("pool",)

    def case(self, growth, size=1, unit=1.0):
        """The mean of three of eight records of a public pool, spread further apart."""
        pool = size * unit * np.sqrt(np.arange(8.0))[:, None]
        scenario = SubsampleScenario(pool, 3, prior="enumerated")
        return QueryRelease(query=_mean, n_records=3, dim=1), scenario


class TestResidualPAC(TestPAC):
    kind = ResidualPAC
    modes = ({"n_draws": 4000}, {"interval": "bernstein", "n_draws": 4000})
    # what leaks is bounded by other draws each time
    left = above = 0.1
    precision = 0.03


def _mean(X, y):
    return X.mean(axis=0)
