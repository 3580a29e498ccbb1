"""Banks of draws: outputs of a channel, before it is known how much noise they get."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_expit

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, Indices, check_count

from ._atoms import Atoms

#: Nodes by the number of coordinates.
_NODES = {1: 401, 2: 61, 3: 31}

#: Standard deviations covered, beyond which less than 1e-17 of the mass lies.
_REACH = 8.6


def normal_rule(dim: int, nodes: int | None = None) -> tuple[Floats, Floats]:
    """Return nodes and masses of a rule for the standard normal law.

    The trapezoid rule with the density as weight: of the analytic functions met here
    its error falls exponentially in the number of nodes, and unlike Gauss-Hermite nodes
    its nodes are as close in the tails, where other atoms lie.

    Parameters
    ----------
    dim : int
    nodes : int or None, default=None
        For each coordinate.

    Returns
    -------
    grid : ndarray of shape (nodes ** dim, dim)
    mass : ndarray of shape (nodes ** dim,)
        Sums to one.
    """
    count = check_count(least=3, nodes=_NODES[dim] if nodes is None else nodes)
    line = np.linspace(-_REACH, _REACH, count)
    mass = np.exp(-(line**2) / 2)
    mass /= mass.sum()
    axes = np.meshgrid(*[line] * dim, indexing="ij")
    joint = mass
    for _ in range(dim - 1):
        joint = np.multiply.outer(joint, mass)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    mass = joint.ravel()
    # corners of the cube that no float would notice
    kept = mass > 1e-19
    return grid[kept], mass[kept] / mass[kept].sum()


def two_point_information(distance: Floats, probability: float) -> Floats:
    """Return the mutual information of a bit seen through unit Gaussian noise.

    Parameters
    ----------
    distance : ndarray
        Between the two means, in standard deviations; may be inf.
    probability : float
        Of the bit being one, in (0, 1).

    Returns
    -------
    information : ndarray
        In nats, of the shape of `distance`.
    """
    grid, mass = normal_rule(1)
    # beyond 80 standard deviations the bit is known to every digit
    apart = np.minimum(np.asarray(distance, dtype=float), 80.0)[..., None]
    total = np.zeros(apart.shape[:-1])
    odds = np.log(probability) - np.log1p(-probability)
    for share, sign in ((probability, 1.0), (1 - probability, -1.0)):
        # log odds of the truth, prior and likelihood ratio, at each node
        ratio = sign * odds + apart**2 / 2 + apart * grid[:, 0]
        total += share * ((log_expit(ratio) - np.log(share)) @ mass)
    return total


@dataclass(frozen=True, eq=False)
class Bank:
    """Weighted pairs of an atom and standard normal numbers.

    A bank knows nothing of the noise: one bank compares laws of noise on common random
    numbers. Made by :meth:`iid`, :meth:`stratified` or :meth:`quadrature`.

    Parameters
    ----------
    index : ndarray of int of shape (n,)
        Row of `Atoms.distinct_points` that each output comes from.
    normals : ndarray of shape (n, d)
    weights : ndarray of shape (n,)
        They sum to one.
    kind : {"iid", "stratified", "quadrature"}
        Only "iid" draws may enter a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> atoms = Atoms([[-1.0], [1.0]])
    >>> channel = MixtureChannel(atoms, [[1.0]])
    >>> round(channel.information(Bank.quadrature(atoms)).value, 7)
    0.3368308
    """

    index: Indices
    normals: Floats
    weights: Floats
    kind: str

    @classmethod
    def iid(cls, atoms: Atoms, n: int, rng: np.random.Generator) -> "Bank":
        """Return independent draws, as certificates need them.

        Parameters
        ----------
        atoms : Atoms
        n : int
            Number of draws.
        rng : numpy.random.Generator
        """
        n = check_count(n=n)
        prior = atoms.distinct_weights
        index = rng.choice(len(prior), size=n, p=prior)
        normals = rng.standard_normal((n, atoms.dim))
        return cls(index, normals, np.full(n, 1.0 / n), "iid")

    @classmethod
    def stratified(
        cls, atoms: Atoms, n: int, rng: np.random.Generator, *, per_atom: int = 4
    ) -> "Bank":
        """Return antithetic pairs, with a least number of draws for each atom.

        For optimisation: rare atoms, whose log ratios are large, are met for sure.

        Parameters
        ----------
        atoms : Atoms
        n : int
            Number of draws, about. No fewer than `per_atom` times the distinct outputs.
        rng : numpy.random.Generator
        per_atom : int, default=4
            For each distinct output; zero draws systematically by the prior alone.
        """
        n, per_atom = check_count(n=n), check_count(least=0, per_atom=per_atom)
        prior = atoms.distinct_weights
        if per_atom:
            pairs = np.ceil(np.maximum(n * prior, per_atom) / 2).astype(np.intp)
            half = np.repeat(np.arange(len(prior)), pairs)
            weights = (prior / pairs / 2)[half]
        else:
            n_pairs = (n + 1) // 2
            steps = (rng.random() + np.arange(n_pairs)) / n_pairs
            ends = np.cumsum(prior)
            half = np.minimum(np.searchsorted(ends, steps), len(prior) - 1)
            weights = np.full(n_pairs, 0.5 / n_pairs)
        normals = rng.standard_normal((len(half), atoms.dim))
        return cls(
            np.concatenate([half, half]),
            np.concatenate([normals, -normals]),
            np.concatenate([weights, weights]),
            "stratified",
        )

    @classmethod
    def quadrature(cls, atoms: Atoms, nodes: int | None = None) -> "Bank":
        """Return the nodes of a rule around each atom: no randomness at all.

        Parameters
        ----------
        atoms : Atoms
            Of at most three coordinates.
        nodes : int or None, default=None
            For each coordinate; None takes 401, 61 or 31 for one, two or three.

        Raises
        ------
        ValueError
            If the atoms have more than three coordinates.
        """
        if atoms.dim > 3:
            raise ValueError(
                Statement("pac.quadrature_dimension_too_large", dim=atoms.dim)
            )
        return cls.from_rule(atoms, *normal_rule(atoms.dim, nodes))

    @classmethod
    def from_rule(cls, atoms: Atoms, grid: Floats, mass: Floats) -> "Bank":
        """Return the nodes of a given rule around each atom.

        Parameters
        ----------
        atoms : Atoms
        grid : ndarray of shape (q, d)
            Standard normal numbers.
        mass : ndarray of shape (q,)
            They sum to one.
        """
        prior = atoms.distinct_weights
        index = np.repeat(np.arange(len(prior)), len(mass))
        normals = np.tile(grid, (len(prior), 1))
        return cls(index, normals, np.outer(prior, mass).ravel(), "quadrature")

    def __len__(self) -> int:
        return len(self.index)

    def mean(self, values: Floats) -> Floats:
        """Return means over the bank, along the first axis."""
        return np.asarray(self.weights @ values)

    def standard_error(self, values: Floats) -> float:
        """Return the standard error of a mean, zero for a quadrature rule.

        Antithetic pairs count as one draw each, and the spread between atoms does not
        count where several pairs of one atom were drawn.

        Parameters
        ----------
        values : ndarray of shape (n,)

        Returns
        -------
        float
        """
        if self.kind == "quadrature":
            return 0.0
        weights: Floats = self.weights
        strata: Indices = np.zeros(len(values), dtype=np.intp)
        if self.kind == "stratified":
            values = np.mean(np.reshape(values, (2, -1)), axis=0)
            weights = 2 * weights[: len(values)]
            strata = self._strata
        counts = np.bincount(strata)
        means = np.bincount(strata, weights=values) / np.maximum(counts, 1)
        squares = weights**2 * (values - means[strata]) ** 2
        # a stratum of size k has lost one of its k degrees of freedom
        sizes = counts[strata]
        return float(np.sqrt(np.sum(squares * sizes / np.maximum(sizes - 1, 1))))

    @cached_property
    def _strata(self) -> Indices:
        """Stratum of each pair: its atom, or one for all atoms met once."""
        half = self.index[: len(self) // 2]
        counts = np.bincount(half)
        strata = np.where(counts[half] > 1, half, len(counts))
        return np.asarray(strata)
