"""Every scenario keeps the contract, and every one has a class here that says so."""

import inspect

import numpy as np
import pandas as pd
import pytest

from skpuffer import scenarios
from skpuffer.distributions import Discrete
from skpuffer.exceptions import EmpiricalPriorWarning, ScenarioError
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BayesianNetworkScenario,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    CoupledSamples,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    GroupScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    MaxInfluence,
    OutputDistributions,
    OutputSamples,
    OutputSensitivity,
    PrevalenceScenario,
    RecordBelief,
    RecordScenario,
    Scenario,
    SimulatorScenario,
    SubsampleScenario,
)
from skpuffer.scenarios._base import offers
from tests.refused import refused

from .contract import ScenarioContract, context_of, total


def test_every_scenario_has_its_contract():
    public = {
        value
        for _, value in inspect.getmembers(scenarios, inspect.isclass)
        if issubclass(value, Scenario) and value is not Scenario
    }
    tested = {
        value.kind
        for value in globals().values()
        if isinstance(value, type) and issubclass(value, ScenarioContract)
    }
    missing = public - tested
    assert not missing, f"Give each of {missing} a class in this module."


class TestRecordScenario(ScenarioContract):
    kind = RecordScenario
    offered = frozenset({Adjacency})
    growing = ({"k": 1}, {"k": 2}, {"k": 3}, {"k": 3, "relation": "replace"})
    bad = (
        ({"k": 0}, "k"),
        ({"k": 1.5}, "k"),
        ({"relation": "swap"}, "relation"),
        ({"relation": None}, "relation"),
    )


class TestPrevalenceScenario(ScenarioContract):
    kind = PrevalenceScenario
    offered = frozenset({Adjacency})
    growing = ({}, {"low": 0}, {"low": 0, "high": 3})
    bad = (
        ({"column": 0.5}, "column"),
        ({"low": 2}, "low"),
        ({"low": -1}, "low"),
        ({"low": 0.5}, "low"),
        ({"high": 2.0}, "high"),
        ({"high": True}, "high"),
        ({"relation": "add_remove"}, "relation"),
        ({"law": "normal"}, "law"),
        ({"law": "binomial"}, "law"),
        ({"event_delta": -1.0}, "event_delta"),
    )

    @staticmethod
    def params():
        return {"column": "x", "low": 1, "high": 2}

    def test_counts_are_of_the_table(self):
        with refused(ScenarioError, "prevalence.count_exceeds_records", high=4):
            self.bound(high=4)


class TestPrevalenceByChance(ScenarioContract):
    kind = PrevalenceScenario
    offered = frozenset({Adjacency})
    growing = ({}, {"low": 0.1}, {"low": 0.1, "high": 0.9}, {"event_delta": 0})
    bad = (({"low": 0.6}, "low"), ({"low": 1, "high": 2}, "low"))

    @staticmethod
    def params():
        return {"column": "x", "low": 0.4, "high": 0.5, "law": "binomial"}


PRIOR = pd.DataFrame({"secret": [0, 0, 0, 1, 1, 1], "x": [0.0, 1, 2, 1, 2, 4]})
WIDER = pd.DataFrame({"secret": [0, 0, 0, 1, 1, 1], "x": [0.0, 1, 2, 1, 2, 8]})


class TestDeclaredBelief(ScenarioContract):
    """An attribute scenario without a table."""

    kind = AttributeScenario
    names_table = True
    offered = frozenset({Adjacency, RecordBelief})
    growing = ({}, {"prior": BoundedOdds(9.0)}, {"prior": BoundedInference(0.9)})
    bad = (
        ({"prior": BoundedOdds(1.0)}, "w"),
        ({"prior": BoundedOdds(2.0, share=1.0)}, "share"),
        ({"prior": BoundedInference(0.5)}, "auc"),
        ({"prior": BoundedInference(0.7, rest="odds")}, "rest"),
        ({"prior": [BoundedOdds(2.0), PRIOR]}, "prior"),
        ({"level": "table"}, "level"),
        ({"column": -1}, "column"),
        ({"pairs": [(0, 1)]}, "pairs"),
        ({"target": "x"}, "target"),
        ({"prior_as": "law"}, "prior_as"),
    )

    def params(self):
        return {"column": "secret", "level": "record", "prior": BoundedOdds(4.0)}


class TestAttributeScenario(ScenarioContract):
    kind = AttributeScenario
    names_table = True
    offered = frozenset({Adjacency, OutputDistributions, OutputSamples})
    growing = (
        {},
        {"prior_as": "support"},
        {"prior_as": "support", "level": "dataset"},
        {"prior_as": "support", "level": "dataset", "prior": WIDER},
    )
    bad = (
        ({"column": "sex"}, "column"),
        ({"column": ["secret", "x"]}, "column"),
        ({"level": "table"}, "level"),
        ({"prior": None}, "prior"),
        ({"prior": []}, "prior"),
        ({"prior": "public"}, "prior"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [(0, 2)]}, "pairs"),
        ({"prior_as": "truth"}, "prior_as"),
        ({"target": "wage"}, "target"),
        ({"confidence": 1.0}, "confidence"),
        ({"n_draws": 1}, "n_draws"),
        ({"random_state": -1}, "random_state"),
        ({"table": ""}, "table"),
    )

    @staticmethod
    def params():
        return {
            "column": "secret",
            "level": "record",
            "prior": PRIOR,
            "prior_as": "law",
        }

    def test_the_private_rows_as_a_prior_promise_nothing(self):
        rows = PRIOR[["x"]], None, PRIOR["secret"].to_numpy()
        scenario = self.make(prior="empirical")
        with refused(ScenarioError, "attribute.empirical_prior_outside_fit"):
            scenario.bind(context_of(6))
        with pytest.warns(EmpiricalPriorWarning):
            bound = scenario.bind(context_of(6, empirical=rows))
        for kind in bound.provides(total(6)):
            fact = bound.fact(kind, total(6), 2)
            assert fact.reads_private_rows and not fact.certified


class TestGroupScenario(ScenarioContract):
    kind = GroupScenario
    offered = frozenset({OutputDistributions})
    growing = ({}, {"prior": WIDER})
    bad = (
        ({"column": "sex"}, "column"),
        ({"column": ["secret", "x"]}, "column"),
        ({"prior": None}, "prior"),
        ({"prior": []}, "prior"),
        ({"prior": "empirical"}, "prior"),
        ({"prior": BoundedOdds(4.0)}, "prior"),
        ({"n_worlds": 1}, "n_worlds"),
        ({"n_worlds": 2.5}, "n_worlds"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [(0, 2)]}, "pairs"),
        ({"prior_as": "support"}, "prior_as"),
        ({"target": "wage"}, "target"),
        ({"random_state": -1}, "random_state"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"verbose": "yes"}, "verbose"),
    )

    @staticmethod
    def params():
        return {"column": "secret", "prior": PRIOR, "prior_as": "law"}


class TestGroupScenarioOfWorlds(TestGroupScenario):
    """Tables drawn from the rows of each group."""

    growing = ()

    @staticmethod
    def params():
        return {"column": "secret", "prior": PRIOR, "prior_as": "law", "n_worlds": 5}


class TestLawsScenario(ScenarioContract):
    kind = LawsScenario
    offered = frozenset({OutputDistributions})
    growing = tuple(
        {"laws": [(Discrete([0, 1]), Discrete([0, far]))]} for far in (1, 2, 5)
    )
    bad = (
        ({"laws": []}, "laws"),
        ({"laws": [(Discrete([0.0]),)]}, "laws"),
        ({"laws": [(0.0, 1.0)]}, "laws"),
        ({"laws": [(Discrete([0.0]), Discrete([[0.0, 1.0]]))]}, "laws"),
        ({"laws": 1.0}, "laws"),
    )

    @staticmethod
    def params():
        return {"laws": [(Discrete([0, 1]), Discrete([1, 3], [1, 2]))]}


class TestDependenceScenario(ScenarioContract):
    kind = DependenceScenario
    offered = frozenset({OutputSensitivity})
    growing = ({"distance": 0.0}, {"distance": 1.0}, {"distance": 1.0, "pairs": "all"})
    bad = (
        ({"distance": -1.0}, "distance"),
        ({"distance": float("inf")}, "distance"),
        ({"distance": "near"}, "distance"),
        ({"norm": 0.5}, "norm"),
        ({"pairs": "some"}, "pairs"),
    )

    @staticmethod
    def params():
        return {"distance": 0.5}


class TestDiffusionScenario(ScenarioContract):
    kind = DiffusionScenario
    names_table = True
    one_size = True
    offered = frozenset({Adjacency, OutputSensitivity})
    growing = ({"diameter": 1.0}, {"diameter": 2.0}, {"diameter": 2, "curvature": 0.1})
    bad = (
        ({"curvature": float("inf")}, "curvature"),
        ({"curvature": "flat"}, "curvature"),
        ({"times": (1.0, 1.0, 2.0)}, "times"),
        ({"times": (-1.0, 1.0, 2.0)}, "times"),
        ({"times": ()}, "times"),
        ({"diameter": 0.0}, "diameter"),
        ({"table": 3}, "table"),
    )

    @staticmethod
    def params():
        return {"curvature": 0.5, "times": (1.0, 2.0, 3.0), "diameter": 2.0}


SERIES = 0.5 ** np.abs(np.arange(3)[:, None] - np.arange(3))


class TestGaussianScenario(ScenarioContract):
    kind = GaussianScenario
    names_table = True
    one_size = True
    offered = frozenset({Adjacency, OutputDistributions})
    growing = ({"domain": (0, 1)}, {"domain": (0, 2)}, {"domain": (-2, 2)})
    bad = (
        ({"covariance": None}, "covariance"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "covariance"),
        ({"mean": [0.0]}, "mean"),
        ({"shape": "disc"}, "shape"),
        ({"covariance_of": "rows"}, "covariance_of"),
        ({"level": "dataset"}, "level"),
        ({"table": ""}, "table"),
    )

    @staticmethod
    def params():
        return {"covariance": SERIES, "covariance_of": "records", "domain": (0, 1)}


class TestGaussianScenarioOfOneRecord(TestGaussianScenario):
    """Of independent records with a secret column."""

    one_size = False
    level = "record"
    bad = (({"secret": "age"}, "secret"),)

    @classmethod
    def params(cls):
        return {
            "covariance": pd.DataFrame(
                [[1.0, 0.8], [0.8, 2.0]], ["s", "x"], ["s", "x"]
            ),
            "secret": "s",
            "domain": (0, 1),
            "level": cls.level,
        }


class TestGaussianScenarioOfTheAverage(TestGaussianScenarioOfOneRecord):
    level = "dataset"


class TestMarkovChainScenario(ScenarioContract):
    kind = MarkovChainScenario
    names_table = True
    offered = frozenset({Adjacency, MaxInfluence, OutputDistributions})
    growing = ({}, {"states": [0.0, 2.0]}, {"states": [0.0, 5.0]})
    bad = (
        ({"transition": [[0.9, 0.2], [0.2, 0.8]]}, "transition"),
        ({"transition": [[1.0]]}, "transition"),
        ({"initial": "settled"}, "initial"),
        ({"initial": [0.5, 0.6]}, "initial"),
        ({"states": [0.0]}, "states"),
        ({"states": [1.0, 1.0]}, "states"),
        ({"pairs": "some"}, "pairs"),
        ({"protected": [-1]}, "protected"),
        ({"event_delta": 1.5}, "event_delta"),
        ({"table": ""}, "table"),
        ({"times": "t"}, "times"),
        ({"cuts": [0.5]}, "cuts"),
    )

    @staticmethod
    def params():
        return {"transition": [[0.9, 0.1], [0.2, 0.8]]}


class TestMarkovChainScenarioOfReadings(ScenarioContract):
    kind = MarkovChainScenario
    names_table = True
    offered = frozenset({Adjacency, MaxInfluence})
    bad = (
        ({"cuts": {"x": [0.5, 0.7]}}, "cuts"),
        ({"states": [0.0, 1.0]}, "states"),
        ({"times": "x"}, "times"),
    )

    @staticmethod
    def params():
        return {"transition": [[0.9, 0.1], [0.2, 0.8]], "cuts": {"x": [0.5]}}


class TestBayesianNetworkScenario(ScenarioContract):
    kind = BayesianNetworkScenario
    n_records = 2
    one_size = True
    offered = frozenset({Adjacency, MaxInfluence})
    bad = (
        ({"parents": {}}, "parents"),
        ({"parents": {"a": ("c",), "b": ("a",)}}, "parents"),
        ({"tables": {"a": [0.5, 0.5]}}, "tables"),
        ({"tables": {"a": [0.5, 0.6], "b": [[0.5, 0.5], [0.1, 0.9]]}}, "tables"),
        ({"level": "column"}, "level"),
        ({"protected": ["c"]}, "protected"),
        ({"moves": {"a": 1.0, "b": 1.0}}, "moves"),
        ({"max_quilt": 0}, "max_quilt"),
    )

    @staticmethod
    def params():
        return {
            "parents": {"a": (), "b": ("a",)},
            "tables": {"a": [0.9, 0.1], "b": [[0.9, 0.1], [0.7, 0.3]]},
        }


class TestJointTableScenario(ScenarioContract):
    kind = JointTableScenario
    n_records = 2
    one_size = True
    offered = frozenset({Adjacency, OutputDistributions, OutputSamples})
    growing = tuple(
        {"tables": [[0, 0], [0, far], [far, 0], [far, far]]} for far in (1, 2, 5)
    )
    bad = (
        ({"tables": []}, "tables"),
        ({"tables": "none"}, "tables"),
        ({"probabilities": [0.5, 0.5]}, "probabilities"),
        ({"probabilities": [0.5, 0.5, 0.5, 0.5]}, "probabilities"),
        ({"pairs": "some"}, "pairs"),
        ({"protected": [2]}, "protected"),
    )

    @staticmethod
    def params():
        return {
            "tables": [[0, 0], [0, 1], [1, 0], [1, 1]],
            "probabilities": [0.4, 0.1, 0.1, 0.4],
        }

    def test_several_beliefs_have_no_common_information(self):
        one = self.facts()[OutputSamples]
        assert one.regime == "enumerated" and one.certified
        assert np.allclose(one.weights, [0.4, 0.1, 0.1, 0.4])
        assert one.entropy == pytest.approx(
            -2 * (0.4 * np.log(0.4) + 0.1 * np.log(0.1))
        )
        assert np.array_equal(one.groups, [0, 1, 2, 3])
        shares = np.unique(one.again(4000, 0), return_counts=True)[1] / 4000
        assert np.allclose(shares, [0.4, 0.2, 0.4], atol=0.04)
        several = self.bound(probabilities=[[0.4, 0.1, 0.1, 0.4], [0.25] * 4])
        assert OutputSamples not in several.provides(self.release())

    def test_a_table_that_is_listed_twice_is_one(self):
        listed = {"tables": [[0, 0], [0, 0], [1, 0]], "probabilities": [1, 1, 2]}
        fact = self.facts(self.bound(**listed))[OutputSamples]
        assert fact.entropy == pytest.approx(np.log(2))
        assert np.array_equal(fact.groups, [0, 0, 1])


class TestBlocksScenario(ScenarioContract):
    kind = BlocksScenario
    n_records = 4
    one_size = True
    offered = frozenset({Adjacency, MaxInfluence, OutputDistributions})
    growing = ({"sizes": 1}, {"sizes": 2}, {"sizes": [1, 3]}, {"sizes": 4})
    bad = (
        ({"scenario": "a person"}, "scenario"),
        ({"sizes": []}, "sizes"),
        ({"sizes": 0}, "sizes"),
        ({"sizes": [1, -1]}, "sizes"),
    )

    @staticmethod
    def params():
        chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
        return {"scenario": chain, "sizes": 2}

    def check_another_number_of_records_is_refused(self):
        super().check_another_number_of_records_is_refused()
        with refused(ScenarioError, "blocks.sizes_sum_differs", sizes=5):
            self.bound(sizes=[2, 3])


def drawn(secret, rng):
    return pd.DataFrame({"x": rng.normal(secret, size=3)})


def drawn_together(secret, other, rng):
    base = pd.DataFrame({"x": rng.normal(size=3)})
    return base + secret, base + other


class TestSimulatorScenario(ScenarioContract):
    kind = SimulatorScenario
    one_size = True
    offered = frozenset({OutputDistributions, OutputSamples})
    bad = (
        ({"draw": None}, "draw"),
        ({"draw_pair": 1.0}, "draw_pair"),
        ({"secrets": [0.0, 0.0]}, "secrets"),
        ({"pairs": [(0.0, 9.0)]}, "pairs"),
        ({"n_draws": 1}, "n_draws"),
        ({"confidence": 0.9}, "confidence"),
        ({"random_state": -1}, "random_state"),
    )

    @staticmethod
    def params():
        return {"draw": drawn, "secrets": [0.0, 0.5], "n_draws": 8}

    def test_draws_are_no_promise(self):
        facts = self.facts()
        # true draws, which say so
        assert facts.pop(OutputSamples).regime == "sampled"
        assert not any(fact.certified for fact in facts.values())


class TestSubsampleScenario(ScenarioContract):
    kind = SubsampleScenario
    one_size = True
    offered = frozenset({OutputSamples})
    growing = ({}, {"prior": "sampled"}, {"stratify": False})
    bad = (
        ({"pool": "all"}, "pool"),
        ({"pool": [1.0, 2.0]}, "pool"),
        ({"pool": (np.ones((6, 1)),)}, "pool"),
        ({"pool": (np.ones((6, 1)), [1, 2])}, "pool"),
        ({"size": 0}, "size"),
        ({"size": 0.0}, "size"),
        ({"size": 1.0}, "size"),
        ({"size": "half"}, "size"),
        ({"size": True}, "size"),
        ({"size": 6}, "size"),
        ({"size": 7}, "size"),
        ({"size": 0.01}, "size"),
        ({"secret": "row"}, "secret"),
        ({"secret": "groups"}, "groups"),
        ({"groups": [0, 0, 1, 1, 2, 2]}, "groups"),
        ({"prior": "all"}, "prior"),
        ({"prior": "design"}, "prior"),
        ({"n_subsets": 1}, "n_subsets"),
        ({"n_subsets": 2.5}, "n_subsets"),
        ({"independent": True}, "independent"),
        ({"independent": 1.5}, "independent"),
        ({"stratify": "y"}, "stratify"),
        ({"stratify": True}, "stratify"),
        ({"random_state": -1}, "random_state"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"verbose": 2}, "verbose"),
    )

    @staticmethod
    def params():
        pool = pd.DataFrame({"x": [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]})
        return {"pool": pool, "size": 3, "prior": "enumerated"}


class TestSimulatorScenarioOfPairs(TestSimulatorScenario):
    """Pairs of worlds drawn together, and what is then known with confidence."""

    offered = frozenset({CoupledSamples, OutputSamples})
    growing = tuple(
        {"secrets": [0.0, far], "confidence": None} for far in (0.5, 1.0, 3.0)
    )
    bad = (({"confidence": 1.0}, "confidence"),)

    @staticmethod
    def params():
        return {
            "draw": drawn,
            "draw_pair": drawn_together,
            "secrets": [0.0, 0.5],
            "n_draws": 8,
            "confidence": 0.9,
        }

    def test_draws_are_no_promise(self):
        certain = self.facts()[CoupledSamples]
        assert certain.certified and certain.confidence == 0.9 and certain.delta > 0
        unsure = self.facts(self.bound(confidence=None))[CoupledSamples]
        assert not unsure.certified and unsure.delta == 0


@pytest.mark.parametrize(
    "relation, words",
    [("add_remove", "added or removed"), ("replace", "replaced")],
)
@pytest.mark.parametrize("k, who", [(1, "one record is"), (3, "up to 3 records are")])
def test_neighbouring_tables_are_said_in_the_words_of_the_relation(
    relation, words, k, who
):
    release = total(9)
    bound = RecordScenario(k, relation=relation).bind(release.context)
    (said,) = bound.fact(Adjacency, release).assumptions
    assert f"neighbouring tables: {who} {words};" in str(said)


class _Near(scenarios.Scenario):
    """Of a small table more is known for certain, and a record moves further."""

    def check(self): ...

    def bind(self, context):
        return _BoundNear(self, context)


class _BoundNear(scenarios.BoundScenario):
    def provides(self, release):
        return frozenset({Adjacency})

    @offers(Adjacency)
    def _adjacency(self, release, norm):
        n = self.context.n_records
        return Adjacency(
            count=n,
            move=1 / n,
            relation="replace",
            coupling_id=None,
            certified=n < 5,
            delta=n / 100,
            confidence=1 - n / 100,
            count_is_certain=n < 5,
        )


@pytest.mark.parametrize("sizes", [[2, 8], [8, 2], [2, 3, 5]])
def test_blocks_move_as_far_as_the_worst_and_are_known_as_little(sizes):
    release = total(10)
    bound = BlocksScenario(_Near(), sizes=sizes).bind(release.context)
    fact = bound.fact(Adjacency, release)
    assert (fact.count, fact.move) == (max(sizes), 0.5)
    assert not fact.certified and not fact.count_is_certain
    assert fact.delta == max(sizes) / 100
    # each size has a sample of its own
    assert fact.confidence == pytest.approx(1 - sum(sizes) / 100)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("sizes", [2, 5, [2, 8], [8, 2], [2, 3, 5], [1] * 10])
def test_a_block_is_hidden_whole_or_refused(sizes, k, relation):
    release = total(10)
    blocks = BlocksScenario(RecordScenario(k, relation), sizes=sizes)
    if k < np.max(sizes):
        with refused(ScenarioError, "blocks.larger_than_k"):
            blocks.bind(release.context)
        return
    assert blocks.bind(release.context).fact(Adjacency, release).count == k
