"""Norm and relation in which the shares of an adaptive release are best laid out."""

from typing import NamedTuple

from skpuffer.releases import AdaptiveRelease
from skpuffer.scenarios import RecordScenario, Scenario

from ._base import Accountant

__all__ = ["Layout", "stage_layout"]


class Layout(NamedTuple):
    """How to lay out shares: parameters of :class:`AdaptiveRelease`.

    Parameters
    ----------
    norm : float
        1 for Laplace noise, else 2.
    relation : {'add_remove', 'replace'}
    """

    norm: float
    relation: str


def stage_layout(accountant: Accountant, scenario: Scenario) -> Layout:
    """Return the layout that spends all of a budget as the shares say.

    Any layout keeps the promise. Under another norm or relation than that of the
    accountant's noise and of the scenario, stages whose sensitivities differ in other
    proportions get other shares, and of a budget nothing is lost.

    Parameters
    ----------
    accountant : Accountant
    scenario : Scenario

    Returns
    -------
    Layout
        A named tuple: ``AdaptiveRelease(..., **layout._asdict())``.
    """
    norms = {
        asked._chosen_noise().norm
        for asked in accountant._asked(AdaptiveRelease)
        if AdaptiveRelease in asked.reads
    }
    # blocks of records have the relation of their own scenario
    inner = getattr(scenario, "scenario", scenario)
    presence = isinstance(inner, RecordScenario) and inner.relation == "add_remove"
    return Layout(
        norm=1.0 if norms == {1.0} else 2.0,
        # a belief, and whatever bounds how many records differ, is about their values
        relation="add_remove" if presence else "replace",
    )
