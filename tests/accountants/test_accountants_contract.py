"""Every accountant keeps the contract; those of extensions have a module of theirs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skpuffer.accountants import (
    ApproximateWasserstein,
    AttributeGaussian,
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
    ShapedWasserstein,
)
from skpuffer.distributions import Discrete, Gaussian
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BoundedOdds,
    DependenceScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.testing._accountant_checks import MOVED_BY_ONE

from .contract import AccountantContract, N, query, unread


def told(n_records=N):
    """A query of which nothing is known but its distributions, from the scenario."""
    return QueryRelease(query=unread, n_records=n_records, dim=1)


def run(**options):
    return GradientRelease(
        **{"n_records": N, "n_steps": 6, "batch_size": 6, "dim": 1} | options
    )


def stages(n_records=N):
    """Sums in turn, each after the noisy ones before it."""
    one = Sensitivity(add_remove={1: 2.0, 2: 1.5}, replace={1: 4.0, 2: 2.0})
    parts = Stage("first", 4, one, 0.3), Stage("then", 3, one, 0.7, times=2)
    return AdaptiveRelease(n_records=n_records, stages=parts)


def full_batch(n_records, clip_norm):
    """A run in which every record takes part in every step."""
    # clipped in l1, which bounds any norm that a noise asks for
    return GradientRelease(
        n_records=n_records,
        n_steps=3,
        sampling="full_batch",
        clip_norm=clip_norm,
        clip_order=1,
        dim=1,
    )


class _OfRecords(AccountantContract):
    """Asked about queries whose records' moves are known."""

    def case(self, growth, size=1, unit=1.0):
        if growth == "records":
            return query(unit), RecordScenario(k=size)
        if growth == "replaced":
            return query(unit), RecordScenario(k=size, relation="replace")
        assert growth == "move"
        return query(unit * size), RecordScenario()


class TestGroupPrivacy(_OfRecords):
    kind = GroupPrivacy
    worlds = MOVED_BY_ONE
    modes = (
        {},
        {"alpha": math.inf, "noise": "laplace"},
        {"alpha": 4.0, "noise": "laplace"},
        {"delta": 1e-5},
        {"delta": 1e-3, "noise": "laplace"},
        {"alpha": 3.0, "noise": "generalized_gaussian", "beta": 1.5},
        {"alpha": math.inf, "noise": "generalized_cauchy"},
    )
    growths = ("records", "replaced", "move")
    measured = growths
    eventful = ("records", "replaced")


class TestGroupPrivacyOfIntegers(AccountantContract):
    """Noise on the integers has a unit of its own."""

    kind = GroupPrivacy
    modes = (
        {"alpha": math.inf, "noise": "discrete_laplace"},
        {"delta": 1e-3, "noise": "discrete_laplace"},
    )
    growths = ("records",)

    def case(self, growth, size=1, unit=1.0):
        return query(is_integer=True), RecordScenario(k=size)


class TestGroupPrivacyOfStages(AccountantContract):
    """Two families of noise keep their law where sums come in turn."""

    kind = GroupPrivacy
    modes = (
        {"delta": 1e-3},
        {"alpha": 4.0},
        {"alpha": math.inf, "noise": "laplace"},
    )
    growths = ("records",)

    def case(self, growth, size=1, unit=1.0):
        return stages(), RecordScenario(k=size, relation="replace")


class OfDistributions(AccountantContract):
    """Asked about queries whose distributions given each secret are known."""

    growths = ("distributions",)
    measured = ("distributions",)
    eventful = ("distributions",)

    def case(self, growth, size=1, unit=1.0):
        near = Discrete([0.0, unit, 2 * unit], [8, 9, 20])
        far = Discrete([0.0, 2 * size * unit, 5 * size * unit], [8, 28, 1])
        return told(), LawsScenario([(near, far)])


class _OfAnyFact(OfDistributions):
    growths = ("distributions", "dependence", "records")
    measured = growths

    def case(self, growth, size=1, unit=1.0):
        if growth == "distributions":
            return super().case(growth, size, unit)
        if growth == "records":
            return query(unit), RecordScenario(k=size)
        return query(unit), DependenceScenario(distance=unit * size)


class TestGeneralWasserstein(_OfAnyFact):
    kind = GeneralWasserstein
    modes = (
        {},
        {"alpha": math.inf, "noise": "laplace"},
        {"delta": 1e-5},
        {"alpha": 3.0, "noise": "generalized_cauchy"},
    )


class TestApproximateWasserstein(_OfAnyFact):
    kind = ApproximateWasserstein
    modes = (
        {"alpha": 4.0, "event_delta": 0.01},
        {"alpha": math.inf, "noise": "laplace"},
        {"alpha": 4.0, "event_delta": 0.01, "bound": "paper"},
        {"delta": 1e-3},
        {"delta": 1e-3, "noise": "laplace"},
    )


class TestDistributionAwareWasserstein(_OfAnyFact):
    kind = DistributionAwareWasserstein
    modes = (
        {},
        {"alpha": 4.0, "noise": "gaussian"},
        {"delta": 1e-3},
        {"delta": 1e-3, "noise": "gaussian"},
    )


class TestDistributionAwareWassersteinOfGaussians(AccountantContract):
    """Distributions of unequal covariance, which no worst case covers."""

    kind = DistributionAwareWasserstein
    modes = ({"alpha": 3.0, "noise": "gaussian"},)
    growths = ("means", "deviations")
    measured = growths

    def case(self, growth, size=1, unit=1.0):
        mean, deviation = (size, 2) if growth == "means" else (1, 1 + size)
        pair = Gaussian(0.0, unit**2), Gaussian(mean * unit, (deviation * unit) ** 2)
        return told(), LawsScenario([pair])


class TestKantorovich(OfDistributions):
    kind = Kantorovich
    modes = (
        {},
        {"delta": 0.05},
        {"noise": "generalized_gaussian", "beta": 1.0},
        {"noise": "generalized_cauchy"},
    )


class TestShapedWasserstein(AccountantContract):
    kind = ShapedWasserstein
    modes = (
        {},
        {"alpha": 4.0, "floor": 0.01},
        {"floor": 0.0, "allow_degenerate": True},
        {"delta": 1e-3},
        {"delta": 1e-3, "event_delta": 1e-6},
    )
    growths = ("distributions",)
    measured = growths
    eventful = growths

    def case(self, growth, size=1, unit=1.0):
        near = Discrete(unit * np.array([[0, 0], [1, 0], [0, 2]]), [8, 9, 20])
        far = size * unit * np.array([[1, 1], [3, 2], [0, 5]])
        vector = QueryRelease(query=unread, n_records=N, dim=2)
        return vector, LawsScenario([(near, Discrete(far, [8, 28, 1]))])


class TestAttributeGaussian(AccountantContract):
    kind = AttributeGaussian
    modes = (
        {},
        {"alpha": 8.0, "use_prior_variance": True},
        {"delta": 1e-5},
        {"delta": 1e-5, "use_prior_variance": True},
    )
    growths = ("means",)
    measured = growths
    eventful = growths

    def case(self, growth, size=1, unit=1.0):
        variance = (0.1 * unit) ** 2
        pair = Gaussian(0.0, variance), Gaussian(size * unit, variance)
        return told(), LawsScenario([pair])


class _OfQuilts(AccountantContract):
    """Asked about chains and a network of dependent records."""

    kind = MarkovQuilt
    #: Records of the chains.
    length = 9
    # the scale is found by a search over quilts of different sizes
    precision = 1e-5

    def case(self, growth, size=1, unit=1.0):
        if growth == "network":
            scenario = BayesianNetworkScenario(
                parents={"mother": (), "child": ("mother",)},
                tables={"mother": [0.9, 0.1], "child": [[0.9, 0.1], [0.7, 0.3]]},
            )
            return query(unit * size, n_records=2), scenario
        if growth == "clip":
            chain = MarkovChainScenario([[0.7, 0.3], [0.3, 0.7]])
            return full_batch(self.length, unit * size), chain
        depends = growth in ("dependence", "stages")
        stay = 0.55 + 0.1 * size if depends else 0.7
        chain = MarkovChainScenario([[stay, 1 - stay], [1 - stay, stay]])
        if growth == "stages":
            return stages(self.length), chain
        move = unit * (size if growth == "move" else 1)
        return query(move, n_records=self.length), chain

    @property
    def cases(self):
        """Those of the growths, and a run, which takes longer to account for."""
        return [*super().cases, self.case("clip")]


class TestMarkovQuilt(_OfQuilts):
    modes = ({}, {"alpha": 4.0, "noise": "gaussian"}, {"max_distance": 6})
    growths = ("move", "dependence", "network", "stages")
    measured = ("move", "dependence", "network")


class TestMarkovQuiltApproximate(_OfQuilts):
    """Promises with a delta, which take many orders to find."""

    modes = ({"delta": 1e-3, "noise": "gaussian"},)
    growths = ("network",)
    measured = growths
    eventful = growths


class TestMarkovQuiltByMixing(_OfQuilts):
    """Influences bounded by the mixing time of a chain, which takes a long one."""

    modes = ({"method": "approximate"},)
    growths = ("move", "dependence")
    measured = growths
    length = 40


class OfManySteps(_OfRecords):
    growths = (
        "records",
        "group",
        "clip",
        "steps",
        "poisson",
        "fixed_size",
        "with_replacement",
        "epochs",
        "stages",
        "votes",
        "answers",
    )
    measured = ("records", "clip")

    def case(self, growth, size=1, unit=1.0):
        if growth == "records":
            return super().case(growth, size, unit)
        if growth == "stages":
            return stages(), RecordScenario(k=size)
        if growth == "votes":
            release = VoteRelease(
                n_records=N, n_teachers=9, n_classes=3, n_queries=4 * size
            )
            return release, RecordScenario()
        if growth == "answers":
            release = VoteRelease(
                n_records=N,
                n_teachers=9,
                n_classes=3,
                n_queries=8,
                threshold=5.0,
                max_answers=size,
            )
            return release, RecordScenario()
        full = {"sampling": "full_batch", "batch_size": None}
        if growth == "group":
            return run(**full), RecordScenario(k=size)
        options = {
            "clip": full | {"clip_norm": unit * size},
            "steps": {"n_steps": 3 * size},
            "poisson": {"batch_size": 6 * size},
            "fixed_size": {"sampling": "fixed_size", "batch_size": 6 * size},
            "with_replacement": {
                "sampling": "with_replacement",
                "batch_size": 3 * size,
            },
            "epochs": {"sampling": "shuffled_epochs", "n_steps": 10 * size},
        }[growth]
        return run(**options), RecordScenario()


class TestPrivacyLoss(OfManySteps):
    kind = PrivacyLoss
    worlds = MOVED_BY_ONE
    reads_correlations = True
    modes = ({"delta": 1e-3}, {"delta": 1e-2, "noise": "laplace"})


class TestOverlapAmplification(OfManySteps):
    """Asked about one record that is believed to be much the same."""

    kind = OverlapAmplification
    modes = ({"delta": 1e-3}, {"delta": 1e-2, "noise": "laplace"})
    # steps are composed as by the accountant above
    growths = ("odds", "records", "clip", "stages", "answers")
    eventful = ("odds", "clip")

    def case(self, growth, size=1, unit=1.0):
        # so wide that the belief alone is within none of the budgets asked for
        believed = AttributeScenario("secret", level="record", prior=BoundedOdds(50.0))
        if growth == "odds":
            return query(unit), believed.set_params(prior__w=50.0 * size)
        if growth == "records":
            return query(unit * size), believed
        if growth == "stages":
            believed.set_params(prior__w=50.0 * size)
        release, _ = super().case(growth, size, unit)
        return release, believed


class Forgetful(OverlapAmplification):
    """States what a noise would cost without an event."""

    def _certify(self, fact, *others):
        return super()._certify(replace(fact, delta=0.0), *others)


class _OfForgetful(TestOverlapAmplification):
    kind = Forgetful


def test_a_certificate_that_forgets_an_event_is_caught():
    with pytest.raises(AssertionError):
        _OfForgetful().check_a_certificate_pays_for_an_event_out_of_delta(
            {"delta": 1e-3}, "odds"
        )


class TestBest(AccountantContract):
    """Asked about releases of several kinds, of which each has another best one."""

    kind = Best
    reads_correlations = True
    modes = ({"delta": 1e-3},)
    growths = ("distributions", "records", "steps", "stages")
    measured = ("distributions", "records")

    def case(self, growth, size=1, unit=1.0):
        if growth == "distributions":
            return OfDistributions.case(self, growth, size, unit)
        if growth == "records":
            return query(unit), RecordScenario(k=size)
        if growth == "stages":
            return stages(), RecordScenario(k=size, relation="replace")
        release = run(sampling="full_batch", batch_size=None, n_steps=3 * size)
        return release, RecordScenario(relation="replace")


class TestRenyiDP(OfManySteps):
    kind = RenyiDP
    worlds = MOVED_BY_ONE
    reads_correlations = True
    growths = ("records", "group", "clip", "epochs", "stages", "votes", "answers")
    modes = (
        {"delta": 1e-3},
        {"delta": None, "alpha": 4.0, "noise": "laplace"},
    )


class TestRenyiDPWithReplacement(OfManySteps):
    """Draws that may repeat a record, of which high orders make much."""

    kind = RenyiDP
    reads_correlations = True
    modes = ({"delta": None, "alpha": 4.0},)
    growths = ("with_replacement",)
    measured = ()
