"""A finite prior: the outputs of a mechanism, their weights, and who is a member."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.utils._checks import check_masses, check_sizes

#: Up to which share of its largest entry a projection is rounded. Two atoms that
#: differ by less are one there.
ROUNDED = 2.0**-40


@dataclass(frozen=True, eq=False)
class Atoms:
    """Outputs z_j = M(x_j) of a deterministic mechanism, and the prior of the x_j.

    Parameters
    ----------
    points : array-like of shape (m, d)
        One output a row, finite.
    weights : array-like of shape (m,) or None, default=None
        Prior probabilities; integers are counts, None means equal ones. Atoms of weight
        zero are left out.
    memberships : array-like of int of shape (m, s) or None, default=None
        Column i holds the value of secret i in each atom, as integers from zero on:
        1 where record i is a member, or the label of a group.

    Attributes
    ----------
    entropy : float
        H(X) in nats, of the weights as given: equal outputs are not merged here.
    output_entropy : float
        H(M(X)) in nats: equal outputs are merged.
    mean : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)

    Raises
    ------
    ValueError
        If points are not finite or of varying length, or weights or memberships do not
        fit them.

    See Also
    --------
    MixtureChannel : What noise makes of them.

    Examples
    --------
    >>> from skpuffer.information import Atoms
    >>> atoms = Atoms([[0.0], [1.0], [1.0], [2.0]])
    >>> round(atoms.entropy, 4), round(atoms.output_entropy, 4)
    (1.3863, 1.0397)
    """

    points: Floats
    weights: ArrayLike | None = None
    memberships: ArrayLike | None = None

    def __post_init__(self) -> None:
        points = check_sizes(points=self.points)
        if points.ndim != 2 or not points.size:
            raise ValueError(Statement("pac.points_shape_wrong", shape=points.shape))
        weights = check_masses(len(points), weights=self.weights)
        memberships = _checked_memberships(self.memberships, len(points))
        kept = weights > 0
        if not np.all(kept):
            points, weights = points[kept], weights[kept]
            memberships = None if memberships is None else memberships[kept]
        fields = {"points": points, "weights": weights, "memberships": memberships}
        for name, value in fields.items():
            array = None if value is None else np.array(value)
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def dim(self) -> int:
        """Number of coordinates of an output."""
        return int(self.points.shape[1])

    @property
    def prior(self) -> Floats:
        """Weights as an array of shape (m,) that sums to one."""
        return np.asarray(self.weights)

    @cached_property
    def entropy(self) -> float:
        """H(X) in nats, of the atoms as given."""
        return float(entr(self.prior).sum())

    @cached_property
    def mean(self) -> Floats:
        """Mean of the outputs under the prior."""
        return np.asarray(self.prior @ self.points)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the outputs under the prior, exact: nothing is estimated."""
        centred = self.points - self.mean
        return np.asarray((centred * self.prior[:, None]).T @ centred)

    @cached_property
    def _merged(self) -> tuple[Floats, Indices]:
        """The distinct outputs, and which of them each atom has."""
        # minus zero is no other output than zero
        points, inverse = np.unique(self.points + 0.0, axis=0, return_inverse=True)
        return points, np.ravel(inverse)

    @property
    def distinct_points(self) -> Floats:
        """Outputs that differ, of shape (k, d)."""
        return self._merged[0]

    @property
    def distinct_index(self) -> Indices:
        """Row of `distinct_points` that each atom has, of shape (m,)."""
        return self._merged[1]

    @cached_property
    def distinct_weights(self) -> Floats:
        """Probabilities of the distinct outputs, of shape (k,)."""
        return np.asarray(np.bincount(self.distinct_index, self.prior), dtype=float)

    @cached_property
    def output_entropy(self) -> float:
        """H(M(X)) in nats: what a release without noise leaks."""
        return float(entr(self.distinct_weights).sum())

    @property
    def n_secrets(self) -> int:
        """Number of columns of the memberships."""
        return 0 if self.memberships is None else np.shape(self.memberships)[1]

    def secret_probabilities(self, column: int) -> Floats:
        """Return the prior of one secret, of shape (values,).

        Parameters
        ----------
        column : int
            Of the memberships.

        Returns
        -------
        ndarray of shape (values,)
        """
        return np.asarray(np.bincount(self._column(column), self.prior), dtype=float)

    def given_output(self, column: int) -> Floats:
        """Return P(secret = v | output), of shape (k, values).

        One row for each of the `distinct_points`: atoms of equal output may differ in
        the secret.

        Parameters
        ----------
        column : int
            Of the memberships.

        Returns
        -------
        ndarray of shape (k, values)
            Rows sum to one.
        """
        codes = self._column(column)
        table = np.zeros((len(self.distinct_points), int(codes.max()) + 1))
        np.add.at(table, (self.distinct_index, codes), self.prior)
        return np.asarray(table / self.distinct_weights[:, None])

    def _column(self, column: int) -> Indices:
        if self.memberships is None:
            raise ValueError(Statement("pac.atoms_without_memberships"))
        return np.asarray(self.memberships)[:, column]

    def between(self, column: int, first: int, second: int) -> "Atoms":
        """Return the prior of two values of a secret, each as likely as the other.

        Of a discriminative pair: which of the two values it is, is all that is secret.
        What a release tells of that under this prior bounds how well the two are told
        apart, by `posterior_success` at one half. It bounds no likelihood ratio.

        Parameters
        ----------
        column : int
            Of the memberships.
        first, second : int
            Two of its values.

        Returns
        -------
        Atoms
            Those of either value, whose only membership is whether it is the second.

        Raises
        ------
        ValueError
            If the values are equal, or no atom has one of them.
        """
        codes = self._column(column)
        chances = [float(self.prior @ (codes == value)) for value in (first, second)]
        if first == second or not min(chances):
            raise ValueError(
                Statement("pac.secret_values_unknown", first=first, second=second)
            )
        kept = (codes == first) | (codes == second)
        is_second = codes[kept] == second
        shares = np.where(is_second, chances[1], chances[0])
        weights = self.prior[kept] / shares / 2
        return Atoms(self.points[kept], weights, is_second[:, None].astype(np.intp))

    def independent_bits(self) -> tuple[Indices, Indices]:
        """Return the memberships, and which atom differs in one of them alone.

        Returns
        -------
        bits : ndarray of int of shape (m, s)
        others : ndarray of int of shape (m, s)
            Entry (j, i) is the atom that differs from atom j in the bit i alone.

        Raises
        ------
        ValueError
            If the memberships are not independent bits, all combinations enumerated.
        """
        self._column(0)
        bits = np.asarray(self.memberships)
        m, s = bits.shape
        enumerated = s < 31 and m == 2**s and bits.max() <= 1
        place = 2 ** np.arange(min(s, 31))
        codes = bits @ place if enumerated else np.zeros(m, dtype=np.intp)
        enumerated = enumerated and len(np.unique(codes)) == m
        chances = self.prior @ bits
        product = np.prod(np.where(bits == 1, chances, 1 - chances), axis=1)
        if not enumerated or not np.allclose(self.prior, product, rtol=1e-6, atol=0):
            raise ValueError(Statement("pac.memberships_not_independent_bits"))
        where = np.empty(m, dtype=np.intp)
        where[codes] = np.arange(m)
        return bits, where[codes[:, None] ^ place]

    def projected_entropy(self, directions: Floats) -> float:
        """Return the entropy of the outputs' coordinates along some directions.

        The cost, in nats, of releasing these coordinates without noise.

        Parameters
        ----------
        directions : ndarray of shape (d, k)

        Returns
        -------
        entropy : float
        """
        cells = cells_along(self.distinct_points, directions)
        return float(entr(np.bincount(cells, weights=self.distinct_weights)).sum())


def cells_along(
    points: Floats, directions: Floats, rounded: float = ROUNDED
) -> Indices:
    """Number the cells of points with equal coordinates along some directions.

    Coordinates are equal if no more than rounding parts them.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    directions : ndarray of shape (d, k)
    rounded : float
        Share of the largest size of a coordinate up to which that is.

    Returns
    -------
    cells : ndarray of int of shape (m,)
    """
    coordinates = (points - points[0]) @ directions
    # of the points, not of their coordinates, which may be nothing but rounding
    sizes = np.abs(points) @ np.abs(directions)
    slack = rounded * sizes.max(axis=0)
    codes = np.empty(coordinates.shape, dtype=np.intp)
    for k, column in enumerate(coordinates.T):
        order = np.argsort(column)
        # neighbours within rounding are one value: the gaps between values are wide
        steps = np.diff(column[order]) > slack[k]
        codes[order, k] = np.concatenate([[0], np.cumsum(steps)])
    _, cells = np.unique(codes, axis=0, return_inverse=True)
    return np.ravel(cells)


def _checked_memberships(memberships: ArrayLike | None, m: int) -> Indices | None:
    """Codes of the secrets, of shape (m, s), or None."""
    if memberships is None:
        return None
    codes = np.asarray(memberships)
    if codes.ndim != 2 or len(codes) != m or not codes.shape[1]:
        raise ValueError(
            Statement("pac.memberships_shape_wrong", n_atoms=m, shape=codes.shape)
        )
    if codes.dtype.kind not in "biu" or np.any(codes < 0):
        raise ValueError(Statement("pac.memberships_not_integers"))
    codes = codes.astype(np.intp)
    # each value has a column of its own in what is computed
    if int(codes.max()) >= max(2, m):
        raise ValueError(
            Statement("pac.memberships_not_consecutive", n_atoms=m, limit=max(2, m))
        )
    return codes
