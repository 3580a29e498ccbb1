"""What suites ask about: releases of all kinds, and scenarios that say one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpuffer.kernel.releases import Release
from skpuffer.releases import PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import BoundScenario, Fact

#: Most that one record adds to the sum of :func:`total`.
MOST = 9.0


@dataclass(frozen=True, kw_only=True)
class Ballot(Release):
    """A kind of release of which nobody has heard."""

    n_records: int
    dim: int = 1
    name: str = "ballot"
    context: PublicContext | None = None
    assumptions: tuple[Any, ...] = ()
    sensitivity: Sensitivity | None = None
    is_integer: bool = True

    def __post_init__(self) -> None:
        self._meet_context()


@dataclass(frozen=True, kw_only=True)
class Rumour(Fact):
    """A kind of fact of which nobody has heard."""

    shift: float = 1.0


class Offering(BoundScenario):
    """A bound scenario that offers one kind of fact, made by a function of a norm."""

    def __init__(
        self, bound: BoundScenario, kind: type[Fact], make: Callable[..., Any] | None
    ) -> None:
        super().__init__(bound.scenario, bound.context)
        self.kind, self.make = kind, make

    def provides(self, release: Any) -> frozenset[type[Fact]]:
        """Return the one kind."""
        return frozenset({self.kind})

    def fact(self, kind: Any, release: Any, norm: float = 2) -> Any:
        """Return the fact as it is made."""
        assert kind is self.kind and self.make is not None
        return self.make(release, norm)


class Silent(BoundScenario):
    """A bound scenario that offers all that another does, and must not be asked."""

    def __init__(self, bound: BoundScenario) -> None:
        super().__init__(bound.scenario, bound.context)
        self.bound = bound

    def provides(self, release: Any) -> frozenset[type[Fact]]:
        """Return what the other provides."""
        return self.bound.provides(release)

    def fact(self, kind: Any, release: Any, norm: float = 2) -> Any:
        """Fail."""
        raise AssertionError("A fact was asked for before the release was refused.")


@dataclass(frozen=True)
class Itself:
    """The contribution of a record of one number: the number."""

    def __call__(self, X: Any, y: Any) -> Any:
        return np.asarray(X, dtype=float)

    def move(self, gaps: Any, norm: float) -> Any:
        """Return how far a gap between two records moves the sum."""
        return np.linalg.norm(gaps, ord=norm, axis=1)


def context_of(n: int, **options: Any) -> PublicContext:
    """Return what is known of a table of records of one number."""
    usual: dict[str, Any] = {"feature_names": ("x",), "n_features": 1}
    return PublicContext(n_records=n, **usual | options)


def total(n: int, **options: Any) -> QueryRelease:
    """Return the sum of `n` records of one number, with all that may be known of it."""
    usual: dict[str, Any] = {
        "contribution": Itself(),
        "is_sum": True,
        "linear": np.ones((1, n)),
        "sensitivity": Sensitivity(add_remove={1: MOST, 2: MOST}),
        "context": context_of(n),
    }
    return QueryRelease(n_records=n, dim=1, **usual | options)


def unread(X: Any, y: Any) -> Any:
    """Stand for a query that nothing may run."""
    raise AssertionError("The query was run on no table at all.")


def query(move: float = 1.0, n_records: int = 60, **options: Any) -> QueryRelease:
    """Return a query whose records move it by so much in every norm."""
    by_norm = dict.fromkeys((1.0, 2.0), move)
    return QueryRelease(
        query=unread,
        n_records=n_records,
        dim=1,
        sensitivity=Sensitivity(add_remove=by_norm, replace=by_norm),
        **options,
    )
