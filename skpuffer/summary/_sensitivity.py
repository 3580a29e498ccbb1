"""Sensitivity of a sum of contributions: how far one record moves it, by norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skpuffer.releases import Sensitivity

__all__ = [
    "NORMS",
    "ContributionSensitivity",
    "grouped_sensitivity",
    "stacked_sensitivity",
]

#: Norms in which every sensitivity is known exactly or bounded directly.
NORMS = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class ContributionSensitivity:
    """Least upper bounds on what one record contributes, by norm.

    Parameters
    ----------
    alone : dict of {norm: float}
        Largest norm of one contribution: what adding or removing a record does.
    apart : dict of {norm: float}
        Largest norm of the difference of two: what replacing a record does.
    """

    alone: dict
    apart: dict

    def of_sum(self, factor: float) -> Sensitivity:
        """Sensitivity of `factor` times the sum of the contributions."""
        return Sensitivity(
            add_remove={norm: factor * v for norm, v in self.alone.items()},
            replace={norm: factor * v for norm, v in self.apart.items()},
        )


def stacked_sensitivity(
    sensitivities: Iterable[ContributionSensitivity],
) -> ContributionSensitivity:
    """Sensitivity of contributions put side by side.

    The norm of a stacked vector is the norm of the vector of its blocks' norms. It is
    attained if each block's supremum can be, independently of the others.

    Parameters
    ----------
    sensitivities : iterable of ContributionSensitivity

    Returns
    -------
    ContributionSensitivity
    """
    sensitivities = list(sensitivities)

    def side_by_side(kind):
        return {
            norm: float(
                np.linalg.norm([getattr(r, kind)[norm] for r in sensitivities], norm)
            )
            for norm in NORMS
        }

    return ContributionSensitivity(side_by_side("alone"), side_by_side("apart"))


def grouped_sensitivity(
    sensitivity: ContributionSensitivity,
) -> ContributionSensitivity:
    """Sensitivity of a block that stands in the one cell, of several, of its record.

    Disjoint cells compose in parallel: a record alone fills one block, so adding one
    moves no more than one cell's block. A replaced record may leave one cell for
    another, which moves both.

    Parameters
    ----------
    sensitivity : ContributionSensitivity
        Of the block within one cell.

    Returns
    -------
    ContributionSensitivity

    References
    ----------
    McSherry (2009), Privacy integrated queries, Theorem 4 (parallel composition).
    """
    across = stacked_sensitivity([sensitivity, sensitivity]).alone
    apart = {norm: max(sensitivity.apart[norm], across[norm]) for norm in NORMS}
    return ContributionSensitivity(dict(sensitivity.alone), apart)
