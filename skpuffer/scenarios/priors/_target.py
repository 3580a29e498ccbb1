"""The target among the columns of public rows."""

from collections.abc import Hashable
from typing import Any

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import PublicContext

__all__ = ["check_target", "target_of"]


def check_target(scenario: Any, context: PublicContext) -> None:
    """Refuse a target of another name than the one that is declared."""
    names = {scenario.target, context.target_name}
    if len(names) > 1 and all(isinstance(name, str) for name in names):
        raise ScenarioError(
            f"The parameter 'target' names {scenario.target!r}, but the data's target "
            f"is {context.target_name!r}: rename one if they are the same."
        )


def target_of(scenario: Any, context: PublicContext) -> Hashable | None:
    """Name of the target among the columns of public rows, or None."""
    # of several, one name says nothing
    if context.n_targets > 1:
        return None
    if scenario.target is not None:
        name: Hashable = scenario.target
        return name
    return context.target_name
