from ._base import BoundScenario, Scenario
from ._blocks import BlocksScenario
from ._dependence import DependenceScenario
from ._explicit import LawsScenario
from ._facts import (
    Adjacency,
    CoupledSamples,
    Fact,
    MaxInfluence,
    OutputDistributions,
    OutputSamples,
    OutputSensitivity,
    RecordBelief,
    RecordDistributions,
)
from ._group import GroupScenario
from ._joint import JointTableScenario
from ._record import RecordScenario
from ._simulator import SimulatorScenario
from .attribute import AttributeScenario
from .bayesian_network import BayesianNetworkScenario
from .gaussian import DiffusionScenario, GaussianScenario
from .markov import MarkovChainScenario
from .prevalence import PrevalenceScenario
from .priors import (
    BinnedLaw,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    ReferenceTable,
)
from .subsample import SubsampleScenario

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
]
