"""What every noise family promises, as a class of tests."""

from hypothesis import HealthCheck, settings

from skpuffer.testing._noise_checks import NoiseSuite
from skpuffer.testing._suite import at_most
from tests.contracts import OfSuite

__all__ = ["NoiseContract", "at_most", "examples"]

examples = settings(
    # the same property runs for every family, which is the point
    suppress_health_check=[HealthCheck.differing_executors],
)


class NoiseContract(OfSuite, NoiseSuite):
    """Inherit, and set `family` and `unit`; the rest has defaults."""

    #: The class under test, constructed by `make`.
    family = None

    def make(self, scale=1.0):
        return self.family(scale=scale)
