"""Facts that several candidates ask for, found once."""

from typing import Any

from skpuffer.exceptions import UnsupportedError
from skpuffer.scenarios import BoundScenario
from skpuffer.scenarios._facts import Fact

__all__ = ["FactsOnce"]


class FactsOnce(BoundScenario):
    """A bound scenario that finds each fact once, however many ask for it.

    Raises
    ------
    UnsupportedError
        If its facts are read off the private rows.
    """

    def __init__(self, bound: BoundScenario) -> None:
        # before any candidate is asked: whom it would be, or why nobody, tells of the
        # rows
        if bound.scenario.needs_empirical:
            raise UnsupportedError(
                "Best does not choose by the private rows, which are the prior here, "
                "and every accountant would only estimate. Declare a prior, or name an "
                "accountant for an estimate, such as GeneralWasserstein()."
            )
        super().__init__(bound.scenario, bound.context)
        self._bound = bound
        self._found: dict[tuple[Any, ...], Any] = {}

    def provides(self, release: Any) -> frozenset[type[Fact]]:
        return self._bound.provides(release)

    def fact(self, kind: Any, release: Any, norm: float = 2) -> Any:
        # of one release: the one that all candidates are asked about
        key = kind, id(release), norm
        if key not in self._found:
            self._found[key] = self._bound.fact(kind, release, norm)
        return self._found[key]

    def describe(self) -> str:
        return self._bound.describe()
