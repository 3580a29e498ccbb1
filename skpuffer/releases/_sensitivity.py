"""The sensitivity of a release to one arbitrary record."""

import math
from dataclasses import dataclass

from skpuffer.utils._checks import check_extent, check_option

__all__ = ["Sensitivity", "convert_norm"]


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
    if value == 0 or to_norm >= from_norm or dim == 1:
        return value
    if dim is None:
        return math.inf
    inverse = 0.0 if math.isinf(from_norm) else 1 / from_norm
    return value * dim ** (1 / to_norm - inverse)


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

    Examples
    --------
    >>> from skpuffer.releases import Sensitivity
    >>> Sensitivity(add_remove={2: 0.5}).value("replace", norm=2, dim=3)
    1.0
    """

    add_remove: dict[float, float]
    replace: dict[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("add_remove", "replace"):
            given = getattr(self, name)
            if given is not None:
                held = {float(n): check_extent(sensitivity=v) for n, v in given.items()}
                object.__setattr__(self, name, held)

    def __hash__(self) -> int:
        return hash(
            tuple(
                None if held is None else tuple(sorted(held.items()))
                for held in (self.add_remove, self.replace)
            )
        )

    def value(self, relation: str, norm: float, dim: int | None) -> float:
        """Return the sensitivity in `norm` under `relation`."""
        check_option(("add_remove", "replace"), relation=relation)

        def best(held: dict[float, float]) -> float:
            bounds = [convert_norm(v, n, float(norm), dim) for n, v in held.items()]
            return min(bounds, default=math.inf)

        added = best(self.add_remove)
        if relation == "add_remove":
            return added
        return min(2 * added, best(self.replace or {}))
