from skpuffer.kernel.facts import Adjacency as Adjacency
from skpuffer.kernel.facts import CoupledSamples as CoupledSamples
from skpuffer.kernel.facts import Fact as Fact
from skpuffer.kernel.facts import OutputDistributions as OutputDistributions
from skpuffer.kernel.facts import OutputSensitivity as OutputSensitivity
from skpuffer.kernel.facts import RecordDistributions as RecordDistributions

from ._attribute import AttributeScenario
from ._base import BoundScenario, RecordScenario, Scenario, offers
from ._bayesian_network import BayesianNetworkScenario
from ._blocks import BlocksScenario
from ._facts import MaxInfluence as MaxInfluence
from ._facts import OutputSamples as OutputSamples
from ._facts import RecordBelief as RecordBelief
from ._gaussian import DiffusionScenario, GaussianScenario
from ._group import DependenceScenario, GroupScenario
from ._joint import JointTableScenario, LawsScenario
from ._markov import MarkovChainScenario
from ._prevalence import PrevalenceScenario
from ._priors import (
    BinnedLaw,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    ReferenceTable,
)
from ._simulator import SimulatorScenario
from ._subsample import SubsampleScenario

__all__ = [
    "Adjacency",
    "AttributeScenario",
    "BayesianNetworkScenario",
    "BinnedLaw",
    "BlocksScenario",
    "BoundScenario",
    "BoundedInference",
    "BoundedOdds",
    "CoupledSamples",
    "DeclaredOdds",
    "DependenceScenario",
    "DiffusionScenario",
    "Fact",
    "GaussianScenario",
    "GroupScenario",
    "JointTableScenario",
    "LawsScenario",
    "MarkovChainScenario",
    "MaxInfluence",
    "OutputDistributions",
    "OutputSamples",
    "OutputSensitivity",
    "PrevalenceScenario",
    "RecordBelief",
    "RecordDistributions",
    "RecordScenario",
    "ReferenceTable",
    "Scenario",
    "SimulatorScenario",
    "SubsampleScenario",
    "offers",
]
