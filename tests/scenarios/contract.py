"""What every scenario promises, as a class of tests."""

from skpuffer.testing._cases import context_of, total
from skpuffer.testing._scenario_checks import ScenarioSuite
from tests.contracts import OfSuite

__all__ = ["ScenarioContract", "context_of", "total"]


class ScenarioContract(OfSuite, ScenarioSuite):
    """Inherit, and set `kind`, `params` and `offered`."""
