"""The channel from a finite prior to a noisy output: everything its posterior tells."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from skpuffer.exceptions import value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import Floats, Indices, check_count, check_positive
from skpuffer.utils._types import RandomState

from ._atoms import Atoms, Bank, Information, SecretInformation, two_point_information
from ._laws import GaussianLaw, NoiseLike, noise_law

#: Entries of the largest arrays that are held at once.
_ENTRIES = 2**17

#: Logarithm that stands for no likelihood at all, as a share of the largest: zero times
#: -inf is NaN.
_NOTHING = -600.0

#: Stands for a probability of zero where its logarithm is taken.
_LEAST = 1e-300


@dataclass(frozen=True)
class _Chunk:
    """Posteriors of some draws; their logarithms are `logs` less `log_total`."""

    rows: slice
    index: Indices
    posterior: Floats
    logs: Floats
    log_total: Floats


class MixtureChannel:
    """The channel X -> M(X) + B with a finite prior and noise of known density.

    Its posterior has a closed form, so every attack is a mean over draws of the output.

    Parameters
    ----------
    atoms : Atoms
        Equal outputs are merged: the channel is the same.
    noise : array-like of shape (d, d), Gaussian noise of `skpuffer.noise`, or NoiseLaw
        An array is the covariance of Gaussian noise. Directions of zero variance are
        released exactly.

    Attributes
    ----------
    law : NoiseLaw

    Notes
    -----
    With atoms z_j of weight w_j the posterior is π_j(y) = w_j q(y-z_j) / Σ_k w_k
    q(y-z_k). Mutual information is the mean of log π_J - log w_J over the joint law of
    the atom J and y, of KL(π(y) || w), and of H(w) - H(π(y)). For Gaussian noise it is
    also that of the first less a control variate of mean zero. Gradients are by the
    identity of mutual information and MMSE.

    References
    ----------
    Guo, Shamai, Verdú (2005), Mutual information and minimum mean-square error.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> atoms = Atoms([[0.0], [1.0], [2.0], [3.0]])
    >>> channel = MixtureChannel(atoms, [[1.0]])
    >>> bank = Bank.quadrature(atoms)
    >>> round(channel.information(bank).value, 7), round(channel.bayes_success(bank), 3)
    (0.3996048, 0.537)
    """

    def __init__(self, atoms: Atoms, noise: NoiseLike) -> None:
        self.atoms = atoms
        self.law = noise_law(noise, atoms.dim)
        self._kernel = self.law.kernel(atoms.distinct_points, atoms.distinct_weights)

    # -- the posterior -----------------------------------------------------------------

    def _log_joint(self, bank: Bank) -> Iterator[tuple[slice, Indices, Floats]]:
        """Log likelihoods under the distinct outputs, so many draws as fit."""
        size = max(1, _ENTRIES // len(self._weights))
        for rows in gen_batches(len(bank), size):
            index = bank.index[rows]
            yield rows, index, self._kernel.log_likelihood(index, bank.normals[rows])

    def _posteriors(self, bank: Bank) -> Iterator[_Chunk]:
        """Posteriors over the distinct outputs, so many draws at a time as fit."""
        for rows, index, logs in self._log_joint(bank):
            logs += self._log_weights
            logs -= logs.max(axis=1, keepdims=True)
            if not self._kernel.positive:
                np.maximum(logs, _NOTHING, out=logs)
            posterior = np.exp(logs)
            total = posterior.sum(axis=1)
            posterior /= total[:, None]
            yield _Chunk(rows, index, posterior, logs, np.log(total))

    @property
    def _weights(self) -> Floats:
        return self.atoms.distinct_weights

    @cached_property
    def _log_weights(self) -> Floats:
        return np.log(self._weights)

    def posterior(self, outputs: ArrayLike) -> Floats:
        """Return the posterior over the atoms, (n, m), given outputs (n, d)."""
        law = self.law
        outputs = np.asarray(outputs, dtype=float)
        if not isinstance(law, GaussianLaw) or law.rank < law.dim:
            raise value_error("pac.posterior_noise_not_gaussian")
        if outputs.ndim != 2 or outputs.shape[1] != law.dim:
            raise value_error(
                "pac.channel_outputs_shape_wrong", dim=law.dim, shape=outputs.shape
            )
        # as draws around the first atom, whose noise is what is left
        normals = law.whitened(outputs - self.atoms.distinct_points[0])
        n = len(outputs)
        bank = Bank(np.zeros(n, dtype=np.intp), normals, np.full(n, 1 / n), "iid")
        found = np.vstack([chunk.posterior for chunk in self._posteriors(bank)])
        # atoms of equal outputs share in proportion to their prior
        shares = self.atoms.prior / self._weights[self.atoms.distinct_index]
        return np.asarray(found[:, self.atoms.distinct_index] * shares)

    # -- all of the input --------------------------------------------------------------

    def information(self, bank: Bank, estimator: str = "least") -> Information:
        """Return the mutual information of input and output.

        Parameters
        ----------
        bank : Bank
        estimator : {"least", "divergence", "log_ratio", "entropy", "gap"}
            "least" takes the one of the least standard error on the bank.

        Returns
        -------
        Information
        """
        return self._read(bank, estimator)[0]

    def estimate(
        self,
        random_state: RandomState = None,
        *,
        tolerance: float = 0.005,
        max_draws: int = 1_000_000,
    ) -> Information:
        """Return the mutual information to a relative precision, by enough draws.

        Parameters
        ----------
        random_state : int, RandomState, Generator or None, default=None
        tolerance : float, default=0.005
            Two standard errors, as a share of the value.
        max_draws : int, default=1000000
            Limit of the draws.

        Returns
        -------
        Information
        """
        tolerance = check_positive(tolerance=tolerance)
        most = check_count(max_draws=max_draws)
        source, _ = noise_generator(random_state)
        # a stream of its own: atoms drawn by the same seed are made of the same numbers
        rng = np.random.default_rng(source.integers(2**63, size=4))
        n = min(max(2000, len(self._weights)), most)
        while True:
            found = self.information(
                Bank.stratified(self.atoms, n, rng, per_atom=2 if n < most else 0)
            )
            excess = 2 * found.standard_error / max(tolerance * found.value, 1e-12)
            if excess <= 1 or n >= most:
                return found
            # the error falls like the root of the draws; a little more to be sure
            n = min(most, int(1.2 * n * min(excess**2, 16.0)) + 1)

    def information_and_mmse(self, bank: Bank) -> tuple[Information, Floats]:
        """Return the mutual information and the matrix of :meth:`mmse`."""
        return self._read(bank, "least", moments=True)

    def mmse(self, bank: Bank) -> Floats:
        """Return E[Cov(M(X) | Y)], the error of the best estimate of the output.

        Mutual information has the gradient -½ Σ⁻¹ E Σ⁻¹ in the covariance Σ of Gaussian
        noise.

        Parameters
        ----------
        bank : Bank

        Returns
        -------
        ndarray of shape (d, d)
        """
        return self._read(bank, "divergence", moments=True)[1]

    def _read(
        self, bank: Bank, estimator: str, moments: bool = False
    ) -> tuple[Information, Floats]:
        """Information and, if asked for, the MMSE matrix, in one pass."""
        n, log_weights = len(bank), self._log_weights
        centred = self.atoms.distinct_points - self.atoms.mean
        log_ratios, divergences, entropies = np.empty((3, n))
        masses, explained = np.zeros(len(centred)), np.zeros((self.law.dim,) * 2)
        for chunk in self._posteriors(bank):
            rows, posterior, logs = chunk.rows, chunk.posterior, chunk.logs
            own = logs[np.arange(len(logs)), chunk.index] - chunk.log_total
            log_ratios[rows] = own - log_weights[chunk.index]
            mean_logs = np.einsum("ij,ij->i", posterior, logs)
            entropies[rows] = chunk.log_total - mean_logs
            divergences[rows] = -entropies[rows] - posterior @ log_weights
            if moments:
                weights = bank.weights[rows]
                masses += weights @ posterior
                means = posterior @ centred
                explained += (means * weights[:, None]).T @ means
        control = self._kernel.control(bank.index, bank.normals)
        information = Information(
            bank,
            log_ratios,
            np.maximum(divergences, 0.0),  # rounding may take it below
            np.maximum(entropies, 0.0),
            None if control is None else log_ratios + control,
            self.atoms.output_entropy,
            estimator,
        )
        # the law of total covariance, all from the same draws
        second = (centred * masses[:, None]).T @ centred
        return information, second - explained

    def leave_one_out(self, bank: Bank) -> Information:
        """Return the information with each draw's own sample left out of the mixture.

        Use it for atoms that are a sample from a larger prior. There `information` is
        too small on average, and this is too large.

        Parameters
        ----------
        bank : Bank

        Returns
        -------
        Information
            Only the estimators "log_ratio" and "gap" are defined; the others repeat
            them.
        """
        m = len(self.atoms.points)
        if m < 2 or not np.allclose(self.atoms.prior, 1 / m, rtol=1e-9, atol=0):
            raise value_error("pac.leave_one_out_weights_unequal")
        # weight of the other samples of the same output, out of m - 1
        rest = np.round(self._weights * m) - 1
        with np.errstate(divide="ignore"):
            others = np.log(rest / (m - 1))
        each = np.log(self._weights * m / (m - 1))

        ratios = np.empty(len(bank))
        for rows, index, logs in self._log_joint(bank):
            draws = np.arange(len(logs))
            likelihood = logs[draws, index]
            logs += each
            logs[draws, index] = likelihood + others[index]
            ratios[rows] = likelihood - logsumexp(logs, axis=1)
        control = self._kernel.control(bank.index, bank.normals)
        gaps = ratios if control is None else ratios + control
        return Information(
            bank,
            ratios,
            ratios,
            self.atoms.output_entropy - ratios,
            gaps,
            self.atoms.output_entropy,
            "log_ratio" if control is None else "gap",
        )

    def atom_leakage(self, bank: Bank) -> Floats:
        """Return KL(P_{Y | x_i} || P_Y) of each atom, whose mean is the information.

        Parameters
        ----------
        bank : Bank
            With draws of every atom, as a stratified one has.

        Returns
        -------
        ndarray of shape (m,)
            In nats, in the order of the atoms as given; NaN for an atom without draws.
        """
        ratios = self.information(bank, "log_ratio").log_ratios
        k = len(self._weights)
        mass = np.bincount(bank.index, weights=bank.weights, minlength=k)
        total = np.bincount(bank.index, weights=bank.weights * ratios, minlength=k)
        with np.errstate(invalid="ignore"):
            return np.asarray((total / mass)[self.atoms.distinct_index])

    def bayes_success(self, bank: Bank) -> float:
        """Return the success, in (0, 1], of the best guess of the distinct output."""
        return sum(
            float(bank.weights[chunk.rows] @ chunk.posterior.max(axis=1))
            for chunk in self._posteriors(bank)
        )

    @cached_property
    def log_det(self) -> float:
        """Bound the information by that of a Gaussian input of the same covariance.

        For Gaussian noise only. Infinite where a direction that varies gets no noise.
        """
        law = self.law
        if not isinstance(law, GaussianLaw):
            raise value_error("pac.log_det_noise_not_gaussian")
        centred = self.atoms.distinct_points - self.atoms.mean
        if law.cells(self.atoms.distinct_points).any():
            return float("inf")
        scaled = law.whitened(centred) * np.sqrt(self._weights)[:, None]
        singular = np.linalg.svd(scaled, compute_uv=False)
        return float(np.log1p(singular**2).sum() / 2)

    # -- single secrets ----------------------------------------------------------------

    def secrets(self, bank: Bank) -> SecretInformation:
        """Return the information of each column of the memberships, in one pass."""
        tables, priors, ends = self._tables
        s, n = self.atoms.n_secrets, len(bank)
        values, entropies = np.empty((2, n, s))
        success = np.zeros(s)
        starts = np.concatenate([[0], ends[:-1]])
        leakage = np.zeros(len(priors))
        log_prior = np.log(priors)
        for chunk in self._posteriors(bank):
            rows = chunk.rows
            # one product: each secret's posterior is a sum over atoms
            posterior = np.clip(chunk.posterior @ tables, 0.0, 1.0)
            # zero times its logarithm is zero
            logs = np.log(np.maximum(posterior, _LEAST))
            entropies[rows] = -np.add.reduceat(posterior * logs, starts, axis=1)
            parts = posterior * (logs - log_prior)
            values[rows] = np.add.reduceat(parts, starts, axis=1)
            # mean over the draws of a value, by their share in each draw
            leakage += bank.weights[rows] @ parts
            peaks = np.maximum.reduceat(posterior, starts, axis=1)
            success += bank.weights[rows] @ peaks
        return SecretInformation(
            bank,
            np.maximum(values, 0.0),  # rounding may take either below
            np.maximum(entropies, 0.0),
            success,
            leakage / priors,
            priors,
            starts,
        )

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, Indices]:
        """P(value | output) of all values of all secrets, their priors, and ends."""
        tables = [self.atoms.given_output(i) for i in range(self.atoms.n_secrets)]
        if not tables:
            self.atoms.given_output(0)  # says what is missing
        # a value that no atom has is none
        tables = [table[:, table.any(axis=0)] for table in tables]
        joint = np.hstack(tables)
        ends = np.cumsum([table.shape[1] for table in tables])
        return joint, np.asarray(self._weights @ joint), ends

    def secret_mmse(self, bank: Bank, column: int) -> Floats:
        """Return E[Cov(M(X) | Y)] - E[Cov(M(X) | Y, S)] for the secret of a column."""
        table = self.atoms.given_output(column)
        centred = self.atoms.distinct_points - self.atoms.mean
        between = np.zeros((self.law.dim,) * 2)
        for chunk in self._posteriors(bank):
            weights = bank.weights[chunk.rows]
            means = chunk.posterior @ centred
            # covariance, over the posterior of S, of the mean given S
            for share in table.T:
                joint = chunk.posterior * share
                mass = joint.sum(axis=1)
                kept = mass > 0
                given = joint[kept] @ centred / mass[kept, None] - means[kept]
                between += (given * (weights[kept] * mass[kept])[:, None]).T @ given
        return between

    def information_given_others(self) -> Floats:
        """Return MI(U_i; Y | all other U_j) of each record, for Gaussian noise.

        This is what an attacker who knows all other memberships learns of one record.

        Returns
        -------
        ndarray of shape (s,)

        Raises
        ------
        ValueError
            If memberships are not independent bits with all their combinations
            enumerated, or the noise is not Gaussian.
        """
        law = self.law
        if not isinstance(law, GaussianLaw):
            raise value_error("pac.record_leakage_noise_not_gaussian")
        bits, others = self.atoms.independent_bits()
        points, prior = self.atoms.points, self.atoms.prior
        found = np.empty(bits.shape[1])
        for i, chance in enumerate(prior @ bits):
            members = np.flatnonzero(bits[:, i])
            moves = points[members] - points[others[members, i]]
            apart = np.linalg.norm(law.whitened(moves), axis=1)
            exact = np.abs(moves @ law.exact).max(axis=1, initial=0.0)
            apart[exact > 1e-12 * np.abs(moves).max(axis=1, initial=0.0)] = np.inf
            # the pair has the mass of both its members
            mass = prior[members] / chance
            found[i] = mass @ two_point_information(apart, float(chance))
        return found
