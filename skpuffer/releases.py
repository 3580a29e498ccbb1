"""What is about to leave the building, described before it leaves.

An estimator makes a release and executes it from the same object, so that what is
accounted cannot differ from what is run. A release knows no scenario, no budget and
no noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skpuffer.utils._checks import check_count, check_non_negative, check_option

__all__ = ["PublicContext", "QueryRelease", "Sensitivity", "convert_norm"]

# Entries of contributions held at once while they are summed.
_BLOCK = 2**22


def convert_norm(value, from_norm, to_norm, dim):
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
    """How far one arbitrary record can move a query, by relation and norm.

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

    add_remove: dict
    replace: dict | None = None

    def __post_init__(self):
        for name in ("add_remove", "replace"):
            given = getattr(self, name)
            if given is not None:
                held = {
                    float(n): check_non_negative(sensitivity=v)
                    for n, v in given.items()
                }
                object.__setattr__(self, name, held)

    def __hash__(self):
        return hash(
            tuple(
                None if held is None else tuple(sorted(held.items()))
                for held in (self.add_remove, self.replace)
            )
        )

    def value(self, relation, norm, dim):
        """Return the largest move in `norm` under `relation`."""
        check_option(("add_remove", "replace"), relation=relation)

        def best(held):
            bounds = [convert_norm(v, n, float(norm), dim) for n, v in held.items()]
            return min(bounds, default=math.inf)

        added = best(self.add_remove)
        if relation == "add_remove":
            return added
        return min(2 * added, best(self.replace or {}))


@dataclass(frozen=True, kw_only=True)
class PublicContext:
    """All that a scenario may know of the table at hand: public facts, no rows.

    Parameters
    ----------
    n_records : int
        Number of records. Public by assumption.
    feature_names : tuple of str or None
        Columns of the model's input, before `feature_map`.
    n_features : int or None
    target_name : str or None
        Name of the target column, as the prior calls it.
    classes : tuple or None
        Class labels. Public by assumption.
    bounds : object or None
        Public bounds of the features, as the estimator was given them.
    feature_map : object or None
        Public preprocessing between raw columns and the model's input: a callable of
        a table, applied to data and prior alike.
    empirical : tuple or None
        The private rows ``(X, y, secret)``: only under ``prior='empirical'``.
    """

    n_records: int
    feature_names: tuple | None = None
    n_features: int | None = None
    target_name: str | None = None
    classes: tuple | None = None
    bounds: Any = None
    feature_map: Callable | None = None
    empirical: tuple | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryRelease:
    """One vector computed from a table.

    Parameters
    ----------
    query : callable of (X, y), default=None
        Returns the vector of shape (dim,). None if `contribution` is given.
    n_records : int
    dim : int or None
        Length of the vector; None if not known beforehand.
    name : str, default='query'
    contribution : callable of (X, y), default=None
        Maps records to an array of shape (n, m), each row from its own record alone
        and, if the query is a sum, in the units `units`. Hashable by value, so that
        distances under a prior are computed once.
    is_sum : bool, default=False
        Whether the vector is `factor` times the sum of the contributions.
    factor : float, default=1.0
        Public factor of the sum, such as one over the number of records.
    modulus : callable of float, default=None
        If the query is not a sum: how far the vector moves, in `modulus_norm`, when
        one record's contribution moves by at most so much in `modulus_norm`.
    modulus_norm : float, default=2
    shift_ceiling : float, default=inf
        A move of one contribution beyond which nothing is gained: the vector may then
        move as for an arbitrary record. Distances need not be computed past it.
    sensitivity : Sensitivity, default=None
        Move of the vector, in `units`, for an arbitrary record.
    units : tuple of float, default=None
        Public unit of each coordinate: the noise is proportional to it. None is one.
    slack : float, default=0.0
        Added once to every move, in `modulus_norm`: an optimiser's public tolerance.
    linear : ndarray of shape (dim, m), default=None
        The matrix of the query where it is linear in the stacked records.
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of str
        What is taken as public or true, in sentences; written in the certificate.
    """

    n_records: int
    query: Callable | None = None
    dim: int | None = None
    name: str = "query"
    contribution: Callable | None = None
    is_sum: bool = False
    factor: float = 1.0
    modulus: Callable | None = None
    modulus_norm: float = 2.0
    shift_ceiling: float = math.inf
    sensitivity: Sensitivity | None = None
    units: tuple | None = None
    slack: float = 0.0
    linear: np.ndarray | None = None
    context: PublicContext | None = None
    assumptions: tuple = ()

    def __post_init__(self):
        check_count(n_records=self.n_records)
        if self.is_sum and self.contribution is None:
            raise ValueError("A release that is a sum needs its 'contribution'.")
        if self.query is None and not self.is_sum:
            raise ValueError("A release that is not a sum needs its 'query'.")
        if self.units is not None:
            units = tuple(float(u) for u in self.units)
            if not all(0 < u < math.inf for u in units):
                raise ValueError("The 'units' must be positive and finite.")
            object.__setattr__(self, "units", units)
        if self.context is None:
            context = PublicContext(n_records=self.n_records)
            object.__setattr__(self, "context", context)
        if self.context.n_records != self.n_records:
            raise ValueError(
                f"The parameter 'n_records' is {self.n_records}, but the context is of "
                f"{self.context.n_records} records."
            )

    def run(self, X, y=None):
        """Compute the exact vector from a table. Its result must not leave unnoised.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,), default=None

        Returns
        -------
        ndarray of shape (dim,)
        """
        if not self.is_sum:
            return np.asarray(self.query(X, y), dtype=float).ravel()
        total = self.factor * self._sum_of_contributions(X, y)
        return total if self.units is None else total * np.asarray(self.units)

    def _sum_of_contributions(self, X, y):
        """Sum over records, block by block: contributions may be wider than rows."""
        n, step = len(X), max(1, _BLOCK // (self.dim or _BLOCK))
        if n <= step or not isinstance(X, np.ndarray):
            return self.contribution(X, y).sum(axis=0)
        return sum(
            self.contribution(
                X[i : i + step], None if y is None else y[i : i + step]
            ).sum(axis=0)
            for i in range(0, n, step)
        )

    def record_move(self, shift, norm, relation):
        """Bound the move of the vector, in `units`, when one record changes.

        Parameters
        ----------
        shift : float
            How far the record's contribution moves at most, in the norm that
            :meth:`shift_norm` names; infinity for an arbitrary record.
        norm : float
            Norm of the result.
        relation : {'add_remove', 'replace'}
            How the record changes if it is arbitrary.

        Returns
        -------
        float
            Without `slack`; infinite if nothing is known.
        """
        arbitrary = math.inf
        if self.sensitivity is not None:
            arbitrary = self.sensitivity.value(relation, norm, self.dim)
        if math.isinf(shift):
            return arbitrary
        if self.is_sum:
            moved = abs(self.factor) * shift
        elif self.modulus is not None:
            moved = self.modulus(shift)
            moved = convert_norm(moved, self.modulus_norm, norm, self.dim)
        else:
            moved = math.inf
        return min(arbitrary, moved)

    def shift_norm(self, norm):
        """Norm in which contributions must be compared for a result in `norm`."""
        return norm if self.is_sum else self.modulus_norm

    def total_slack(self, norm):
        """The optimiser's tolerance, in `norm`."""
        return convert_norm(self.slack, self.modulus_norm, norm, self.dim)
