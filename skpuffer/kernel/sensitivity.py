"""How far one record moves an output, in several norms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skpuffer.kernel.numbers import check_extent, check_option

__all__ = [
    "NORMS",
    "Sensitivity",
    "convert_norm",
    "grouped_sensitivity",
    "stacked_sensitivity",
]

#: Norms in which sensitivities are put together.
NORMS = (1.0, 2.0, math.inf)


def convert_norm(
    value: float, from_norm: float, to_norm: float, dim: int | None
) -> float:
    """Bound a vector's norm by another norm of it.

    Parameters
    ----------
    value : float
        Bound of the norm of order `from_norm`.
    from_norm, to_norm : float
        Orders in [1, inf].
    dim : int or None
        Number of coordinates.

    Returns
    -------
    bound : float
        Bound of the norm of order `to_norm`; infinite if it depends on an unknown
        `dim`.

    Examples
    --------
    >>> from skpuffer.releases import convert_norm
    >>> convert_norm(1.0, from_norm=2, to_norm=1, dim=4)
    2.0
    """
    # norms do not grow with their order
    if value == 0 or to_norm >= from_norm or dim == 1:
        return value
    # no factor holds in every dimension
    if dim is None:
        return math.inf
    # ||x||_p <= d^(1/p - 1/q) ||x||_q for p < q, with equality where all entries are
    # equal
    inverse = 0.0 if math.isinf(from_norm) else 1 / from_norm
    factor: float = dim ** (1 / to_norm - inverse)
    return value * factor


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a query to one arbitrary record, by relation and norm.

    Parameters
    ----------
    add_remove : dict of {norm: float}
        Largest move when a record is added or removed and every public divisor stays.
    replace : dict of {norm: float}, default=None
        Largest move when a record is replaced. None means twice `add_remove`: the
        replaced record leaves and another comes.
    relabel : dict of {norm: float}, default=None
        Largest move when the target of a record changes and its features stay. None
        means `replace`.

    Examples
    --------
    >>> from skpuffer.releases import Sensitivity
    >>> Sensitivity(add_remove={2: 0.5}).value("replace", norm=2, dim=3)
    1.0
    """

    add_remove: dict[float, float]
    replace: dict[float, float] | None = None
    relabel: dict[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("add_remove", "replace", "relabel"):
            given = getattr(self, name)
            if given is not None:
                # by floats, so that 2 and 2.0 are one key and values hash alike
                held = {float(n): check_extent(sensitivity=v) for n, v in given.items()}
                object.__setattr__(self, name, held)

    def __hash__(self) -> int:
        # written out, as dicts have no hash; equal where the fields are equal
        return hash(
            tuple(
                None if held is None else tuple(sorted(held.items()))
                for held in (self.add_remove, self.replace, self.relabel)
            )
        )

    def value(self, relation: str, norm: float, dim: int | None) -> float:
        """Return the sensitivity in `norm` under `relation`."""
        # a relation that is misspelt must not be read as the cheaper one
        check_option(("add_remove", "replace", "relabel"), relation=relation)

        def best(held: dict[float, float]) -> float:
            # each norm that is held gives a bound in the one asked for; the least is
            # taken
            bounds = [convert_norm(v, n, float(norm), dim) for n, v in held.items()]
            return min(bounds, default=math.inf)

        added = best(self.add_remove)
        if relation == "add_remove":
            return added
        # removing one record and adding another: two steps by the triangle inequality
        replaced = min(2 * added, best(self.replace or {}))
        if relation == "replace":
            return replaced
        # a target that changes is a record that is replaced
        return min(replaced, best(self.relabel or {}))

    def times(self, factor: float) -> Sensitivity:
        """Return the sensitivity of `factor` times the query."""

        def scaled(held: dict[float, float]) -> dict[float, float]:
            return {norm: factor * value for norm, value in held.items()}

        # None stays None: twice the scaled move is the scaled double
        replace, relabel = (
            None if held is None else scaled(held)
            for held in (self.replace, self.relabel)
        )
        return Sensitivity(scaled(self.add_remove), replace, relabel)


def stacked_sensitivity(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Sensitivity of sums over records that are put side by side.

    The norm of a stacked vector is the norm of the vector of its blocks' norms. It is
    attained if each block's supremum can be, independently of the others.

    Parameters
    ----------
    sensitivities : iterable of Sensitivity
        For both relations, in each of `NORMS`.

    Returns
    -------
    Sensitivity
    """
    blocks = list(sensitivities)
    return Sensitivity(
        # one record moves all blocks at once, at worst each by its own largest move
        add_remove=_stacked_norms([block.add_remove for block in blocks]),
        replace=_stacked_norms([block.replace or {} for block in blocks]),
    )


def _stacked_norms(blocks: list[dict[float, float]]) -> dict[float, float]:
    return {
        norm: float(np.linalg.norm([held[norm] for held in blocks], norm))
        for norm in NORMS
    }


def grouped_sensitivity(block: Sensitivity) -> Sensitivity:
    """Sensitivity of a block that stands in the one cell, of several, of its record.

    Disjoint cells compose in parallel: a record alone fills one block, so adding one
    moves no more than one cell's block. A replaced record may leave one cell for
    another, which moves both.

    Parameters
    ----------
    block : Sensitivity
        Of the block within one cell.

    Returns
    -------
    Sensitivity

    References
    ----------
    McSherry (2009), Privacy integrated queries, Theorem 4 (parallel composition).
    """
    # a record that changes its cell leaves one block and joins another: two moves, side
    # by side, each as of a record that is removed or added
    within, across = block.replace or {}, _stacked_norms([block.add_remove] * 2)
    return Sensitivity(
        add_remove=dict(block.add_remove),
        replace={norm: max(within[norm], across[norm]) for norm in NORMS},
    )
