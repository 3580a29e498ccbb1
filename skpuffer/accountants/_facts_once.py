"""Facts that are asked for several times of one release, found once."""

from typing import Any

from skpuffer.scenarios import BoundScenario
from skpuffer.scenarios._facts import Fact

__all__ = ["FactsOnce"]


class FactsOnce(BoundScenario):
    """A bound scenario that finds each fact once, however many ask for it."""

    def __init__(self, bound: BoundScenario) -> None:
        super().__init__(bound.scenario, bound.context)
        self._bound = bound
        self._found: dict[tuple[Any, ...], Any] = {}

    def provides(self, release: Any) -> frozenset[type[Fact]]:
        return self._bound.provides(release)

    def fact(self, kind: Any, release: Any, norm: float = 2) -> Any:
        # by identity, which the release that is kept here cannot lose to another
        key = kind, id(release), norm
        if key not in self._found:
            self._found[key] = release, self._bound.fact(kind, release, norm)
        return self._found[key][1]

    def describe(self) -> str:
        return self._bound.describe()
