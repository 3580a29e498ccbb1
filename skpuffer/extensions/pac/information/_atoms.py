"""A finite prior: the outputs of a mechanism, their weights, and who is a member."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, log_expit

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, Indices, check_count, check_option
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
        Column i holds the value of secret i in each atom, as integers from zero on,
        such as 1 where record i is a member.

    Attributes
    ----------
    entropy, output_entropy : float
        H(X) and H(M(X)) in nats: only for the latter, equal outputs are merged.
    mean, covariance : ndarray of shape (d,) and (d, d)

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
            raise value_error("pac.points_shape_wrong", shape=points.shape)
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
        """Return the prior of the secret of one column, of shape (values,)."""
        return np.asarray(np.bincount(self._column(column), self.prior), dtype=float)

    def given_output(self, column: int) -> Floats:
        """Return P(secret = v | output) by distinct output, for a column's secret."""
        codes = self._column(column)
        table = np.zeros((len(self.distinct_points), int(codes.max()) + 1))
        np.add.at(table, (self.distinct_index, codes), self.prior)
        return np.asarray(table / self.distinct_weights[:, None])

    def _column(self, column: int) -> Indices:
        if self.memberships is None:
            raise value_error("pac.atoms_without_memberships")
        return np.asarray(self.memberships)[:, column]

    def between(self, column: int, first: int, second: int) -> "Atoms":
        """Return the prior of two equally likely values of a secret.

        The information of a release under this prior bounds how well the two values are
        told apart, by `posterior_success` at one half. It bounds no likelihood ratio.

        Parameters
        ----------
        column : int
            Column of the memberships.
        first, second : int
            Two of its values.

        Returns
        -------
        Atoms
            Those of either value, whose only membership is whether it is the second.
        """
        codes = self._column(column)
        chances = [float(self.prior @ (codes == value)) for value in (first, second)]
        if first == second or not min(chances):
            raise value_error("pac.secret_values_unknown", first=first, second=second)
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
            raise value_error("pac.memberships_not_independent_bits")
        where = np.empty(m, dtype=np.intp)
        where[codes] = np.arange(m)
        return bits, where[codes[:, None] ^ place]

    def projected_entropy(self, directions: Floats) -> float:
        """Return the entropy, in nats, of the outputs along directions (d, k)."""
        cells = cells_along(self.distinct_points, directions)
        return float(entr(np.bincount(cells, weights=self.distinct_weights)).sum())


def cells_along(
    points: Floats, directions: Floats, rounded: float = ROUNDED
) -> Indices:
    """Number the cells of points with equal coordinates along some directions.

    Coordinates are equal if they differ by at most the share `rounded` of the largest.
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
        raise value_error("pac.memberships_shape_wrong", n_atoms=m, shape=codes.shape)
    if codes.dtype.kind not in "biu" or np.any(codes < 0):
        raise value_error("pac.memberships_not_integers")
    codes = codes.astype(np.intp)
    # each value has a column of its own in what is computed
    if int(codes.max()) >= max(2, m):
        raise value_error("pac.memberships_not_consecutive", n_atoms=m, limit=max(2, m))
    return codes


# -- banks of draws --------------------------------------------------------------------
# Banks of draws: outputs of a channel, before it is known how much noise they get.


#: Nodes by the number of coordinates.
_NODES = {1: 401, 2: 61, 3: 31}

#: Standard deviations covered, beyond which less than 1e-17 of the mass lies.
_REACH = 8.6


def normal_rule(dim: int, nodes: int | None = None) -> tuple[Floats, Floats]:
    """Return nodes (nodes ** dim, dim) and masses of a rule for the standard normal.

    This is the trapezoid rule with the density as weight. Its error falls
    exponentially, and its nodes stay close in the tails, unlike those of Gauss and
    Hermite.
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
    """Return the information, in nats, of a bit seen through unit Gaussian noise.

    `distance`: between the two means in standard deviations; may be inf.
    `probability`: probability of the bit being one, in (0, 1).
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

    One bank compares laws of noise on common random numbers. Make it by :meth:`iid`,
    :meth:`stratified` or :meth:`quadrature`.

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
        """Return `n` independent draws, as certificates need them."""
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

        Use it for optimisation: rare atoms, whose log ratios are large, are met for
        sure.

        Parameters
        ----------
        atoms : Atoms
        n : int
            Number of draws, about; at least `per_atom` times the distinct outputs.
        rng : numpy.random.Generator
        per_atom : int, default=4
            For each distinct output; zero draws systematically by the prior alone.

        Returns
        -------
        Bank
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
        """Return the nodes of a rule around each atom, without randomness.

        Parameters
        ----------
        atoms : Atoms
            Atoms of at most three coordinates.
        nodes : int or None, default=None
            For each coordinate; None takes 401, 61 or 31 for one, two or three.

        Returns
        -------
        Bank
        """
        if atoms.dim > 3:
            raise value_error("pac.quadrature_dimension_too_large", dim=atoms.dim)
        return cls.from_rule(atoms, *normal_rule(atoms.dim, nodes))

    @classmethod
    def from_rule(cls, atoms: Atoms, grid: Floats, mass: Floats) -> "Bank":
        """Return the nodes of a rule around each atom.

        Parameters
        ----------
        atoms : Atoms
        grid : ndarray of shape (q, d)
            Standard normal numbers.
        mass : ndarray of shape (q,)
            They sum to one.

        Returns
        -------
        Bank
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
        """Return the standard error of a mean of values (n,), zero for a rule."""
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


# -- mutual information as a mean over draws, by the best of several estimators --------


#: All are unbiased; each is the best one somewhere.
ESTIMATORS = ("divergence", "log_ratio", "entropy", "gap")


@dataclass(frozen=True, eq=False)
class Information:
    """Mutual information of input and output, in nats, with what it was read from.

    Parameters
    ----------
    log_ratios : ndarray of shape (n,)
        log π(truth | y) - log prior(truth).
    divergences : ndarray of shape (n,)
        KL of the posterior from the prior: never negative.
    entropies : ndarray of shape (n,)
        Entropy of the posterior over the distinct outputs, which certificates read.
    gaps : ndarray of shape (n,) or None
        Log ratios less a control variate; Gaussian noise only.
    bank, output_entropy : Bank, float
        Draws, and H(M(X)).
    estimator : str
        Which one `value` and `standard_error` are of.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> atoms = Atoms([[-1.0], [1.0]])
    >>> channel = MixtureChannel(atoms, [[1.0]])
    >>> found = channel.information(Bank.quadrature(atoms))
    >>> round(found.value, 6), found.standard_error, found.estimator
    (0.336831, 0.0, 'divergence')
    >>> round(found.output_entropy, 6)
    0.693147
    """

    bank: Bank
    log_ratios: Floats
    divergences: Floats
    entropies: Floats
    gaps: Floats | None
    output_entropy: float
    estimator: str = "least"

    def __post_init__(self) -> None:
        check_option((*ESTIMATORS, "least"), estimator=self.estimator)
        if self.estimator == "least":
            found = [name for name in ESTIMATORS if self.draws(name) is not None]
            best = min(found, key=self.standard_error_of)
            object.__setattr__(self, "estimator", best)

    def draws(self, estimator: str) -> Floats | None:
        """Return the draws whose mean an estimator is, or None if it is not at hand."""
        if estimator == "entropy":
            return self.output_entropy - self.entropies
        if estimator == "gap":
            return self.gaps
        return self.divergences if estimator == "divergence" else self.log_ratios

    def _of(self, estimator: str) -> Floats:
        draws = self.draws(estimator)
        # noise that is not Gaussian has no gap
        return self.divergences if draws is None else draws

    def standard_error_of(self, estimator: str) -> float:
        """Return the standard error of one estimator."""
        return self.bank.standard_error(self._of(estimator))

    @property
    def value(self) -> float:
        """Mutual information in nats."""
        return float(self.bank.mean(self._of(self.estimator)))

    @property
    def standard_error(self) -> float:
        """Standard error of the value; zero for a quadrature rule."""
        return self.standard_error_of(self.estimator)


@dataclass(frozen=True, eq=False)
class SecretInformation:
    """Mutual information of each of several secrets with the output in nats.

    Parameters
    ----------
    bank : Bank
    divergences : ndarray of shape (n, s)
        KL of the posterior of each secret from its prior.
    entropies : ndarray of shape (n, s)
        Entropy of the posterior of each secret, in [0, log values].
    bayes_success : ndarray of shape (s,)
        Success of the best guess of each secret.
    value_leakage, value_priors : ndarray
        KL(P_{Y | S = v} || P_Y) and P(S = v) of all values, secret after secret.
    starts : ndarray of int of shape (s,)
        Where the values of each secret begin.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> bits = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> atoms = Atoms([[0.0], [1.0], [1.0], [2.0]], memberships=bits)
    >>> found = MixtureChannel(atoms, [[1.0]]).secrets(Bank.quadrature(atoms))
    >>> found.values.round(4).tolist(), found.bayes_success.round(4).tolist()
    ([0.091, 0.091], [0.6707, 0.6707])
    """

    bank: Bank
    divergences: Floats
    entropies: Floats
    bayes_success: Floats
    value_leakage: Floats
    value_priors: Floats
    starts: Indices

    @property
    def values(self) -> Floats:
        """MI(S_i; Y) of each secret, of shape (s,)."""
        return self.bank.mean(self.divergences)

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the values, of shape (s,)."""
        errors = [self.bank.standard_error(column) for column in self.divergences.T]
        return np.array(errors)

    @property
    def prior_success(self) -> Floats:
        """Success of the best guess of each secret without the output."""
        return np.asarray(np.maximum.reduceat(self.value_priors, self.starts))

    @property
    def worst_leakage(self) -> Floats:
        """Largest KL(P_{Y | S = v} || P_Y) of each secret, of shape (s,)."""
        return np.asarray(np.maximum.reduceat(self.value_leakage, self.starts))
