"""What is secret, and what follows for a query when the secret changes."""

from ._attribute import AttributeScenario
from ._base import BoundScenario, Scenario
from ._explicit import LawsScenario
from ._facts import Fact, PairedDraws, QueryCloud, QueryLaws, RecordShifts
from ._laws import Discrete, Gaussian, Law, PointMass, Samples, Support, law_distance
from ._priors import ReferenceTable
from ._record import RecordScenario
from ._simulator import SimulatorScenario

__all__ = [
    "AttributeScenario",
    "BoundScenario",
    "Discrete",
    "Fact",
    "Gaussian",
    "Law",
    "LawsScenario",
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
