"""What is secret, and what follows for a query when the secret changes."""

from ._attribute import AttributeScenario
from ._base import BoundScenario, Scenario
from ._blocks import BlocksScenario
from ._dependence import DependenceScenario
from ._diffusion import DiffusionScenario
from ._explicit import LawsScenario
from ._facts import (
    Fact,
    Influence,
    OutputShift,
    PairedDraws,
    QueryCloud,
    QueryLaws,
    RecordShifts,
)
from ._gaussian import GaussianScenario
from ._joint import JointTableScenario
from ._laws import (
    Continuous,
    Discrete,
    Gaussian,
    Law,
    PointMass,
    Samples,
    Support,
    law_distance,
)
from ._markov import MarkovChainScenario
from ._network import BayesianNetworkScenario
from ._priors import ReferenceTable
from ._record import RecordScenario
from ._simulator import SimulatorScenario

__all__ = [
    "AttributeScenario",
    "BayesianNetworkScenario",
    "BlocksScenario",
    "BoundScenario",
    "Continuous",
    "DependenceScenario",
    "DiffusionScenario",
    "Discrete",
    "Fact",
    "Gaussian",
    "GaussianScenario",
    "Influence",
    "JointTableScenario",
    "Law",
    "LawsScenario",
    "MarkovChainScenario",
    "OutputShift",
    "PairedDraws",
    "PointMass",
    "QueryCloud",
    "QueryLaws",
    "RecordScenario",
    "RecordShifts",
    "ReferenceTable",
    "Samples",
    "Scenario",
    "SimulatorScenario",
    "Support",
    "law_distance",
]
