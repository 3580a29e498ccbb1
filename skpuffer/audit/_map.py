"""The best guess of the secret from what was released with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtr

from skpuffer.distributions import Gaussian
from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import check_count, check_probability

from ._accuracy import check_prior, largest_accuracy
from ._released import Outputs, Released, gaussian_noise, read_outputs
from ._scores import clopper_pearson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Calibration
    from skpuffer.kernel.numbers import Floats, Indices
    from skpuffer.noise import GaussianNoise, Noise
    from skpuffer.privacy import Certificate


#: Densities that are computed at once: bounds the memory.
_BLOCK = 2**22

#: Where nothing is left to guess.
_BARE = Statement("audit.direction_without_noise")

#: What rounding may add to an accuracy in closed form.
_DIGITS = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class MapAttack:
    """Say how often the likeliest secret is the true one; see :func:`map_attack`.

    Parameters
    ----------
    confusion : ndarray of shape (n_secrets, n_secrets)
        How often a secret (row) was true and another (column) guessed: counts of draws,
        or exact probabilities.
    prior : ndarray of shape (n_secrets,)
        How likely each secret is; the attacker knows it.
    secrets : tuple
    n_draws : int or None
        None if nothing was drawn.
    pairs : tuple of (int, int) or None
        Pairs of secrets that must look alike, by position; None is all.
    confidence : float
        Confidence of intervals.

    Examples
    --------
    >>> from skpuffer.audit import map_attack
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.privacy import Certificate
    >>> attack = map_attack([[0.0], [1.0]], GaussianNoise(1.0))
    >>> round(attack.accuracy, 3), attack.majority, round(attack.advantage, 3)
    (0.691, 0.5, 0.191)
    >>> promised = Certificate(notion="pure_dp", epsilon=0.5)
    >>> round(attack.allowed(promised), 3), attack.exceeds(promised)
    (0.622, True)
    """

    confusion: Floats
    prior: Floats
    secrets: tuple[Any, ...]
    n_draws: int | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    confidence: float = 0.95

    @property
    def accuracy(self) -> float:
        """Share of right guesses."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def majority(self) -> float:
        """Share of right guesses by the prior alone: the mass of the likeliest."""
        return float(self.prior.max())

    @property
    def advantage(self) -> float:
        """Share of right guesses beyond those by the prior alone."""
        return self.accuracy - self.majority

    def accuracy_interval(self) -> tuple[float, float]:
        """Two-sided Clopper-Pearson interval of the accuracy, exact at every size."""
        if self.n_draws is None:
            return self.accuracy, self.accuracy
        hits = round(float(np.trace(self.confusion)))
        return clopper_pearson(hits, self.n_draws, (1 - self.confidence) / 2)

    def advantage_interval(self) -> tuple[float, float]:
        """Two-sided confidence interval of the advantage, exact at every size."""
        low, high = self.accuracy_interval()
        return low - self.majority, high - self.majority

    def allowed(self, certificate: Certificate) -> float:
        """Return the accuracy that a promise allows; see :func:`largest_accuracy`."""
        return largest_accuracy(certificate, self.prior, pairs=self.pairs)

    def exceeds(self, certificate: Certificate) -> bool:
        """Return whether more was guessed than a certificate allows.

        Parameters
        ----------
        certificate : Certificate
            A promise, not an estimate, about these secrets.

        Returns
        -------
        bool
            Wrongly True with probability ``1 - confidence`` at most.
        """
        return self.accuracy_interval()[0] > self.allowed(certificate) + _DIGITS

    def __repr__(self) -> str:
        drawn = "exact" if self.n_draws is None else f"n_draws={self.n_draws}"
        return (
            f"MapAttack(n_secrets={len(self.secrets)}, {drawn}, "
            f"accuracy={self.accuracy:.4f}, majority={self.majority:.4f})"
        )


def map_attack(
    outputs: Any,
    noise: Noise | Calibration,
    *,
    prior: ArrayLike | None = None,
    n_draws: int = 100_000,
    confidence: float = 0.95,
    random_state: int = 0,
) -> MapAttack:
    """Guess the secret from an output with Gaussian noise, as well as anyone can.

    The attacker knows how likely each secret is, the distribution of the output given
    each, and the noise, and names the secret of largest posterior probability.

    Parameters
    ----------
    outputs : array-like, sequence of Distribution, OutputDistributions or OutputSamples
        The output given each secret, before noise: an array of shape (n_secrets, dim)
        where the secret determines it; distributions of it; or a scenario's fact, under
        one prior.
    noise : Noise or Calibration
        Gaussian, of any covariance, in the units of the output; or what an accountant's
        `calibrate` returned.
    prior : array-like of shape (n_secrets,), default=None
        How likely each secret is. None takes it from the fact, or equal masses.
    n_draws : int, default=100000
        Draws of secrets and outputs, where no closed form is known. One is known for
        two secrets whose outputs are points, or Gaussian of one covariance.
    confidence : float, default=0.95
        Confidence of intervals.
    random_state : int, default=0
        Public seed of what is drawn.

    Returns
    -------
    MapAttack

    Raises
    ------
    UnsupportedError
        If the noise is not Gaussian, the masses of a distribution are not known, or a
        fact is about one record's contribution, without the common part.

    See Also
    --------
    distinguishing_attack : By outputs of any mechanism.

    Notes
    -----
    For a distribution made of samples the attacker is best against these atoms only.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import map_attack
    >>> from skpuffer.noise import GaussianNoise
    >>> map_attack([[0.0, 0.0], [0.6, 0.8]], GaussianNoise(1.0))
    MapAttack(n_secrets=2, exact, accuracy=0.6915, majority=0.5000)
    >>> attack = map_attack(np.eye(3), GaussianNoise(0.5), prior=[0.5, 0.25, 0.25])
    >>> round(attack.advantage, 2)
    0.37
    """
    given = read_outputs(outputs)
    law, secrets = given.distributions, given.secrets
    k = len(law)
    check_probability(confidence=confidence)
    n_draws = check_count(n_draws=n_draws)
    seed = check_count(least=0, random_state=random_state)
    masses = given.prior if prior is None else check_prior(prior)
    if masses is None:
        masses = np.full(k, 1 / k)
    if len(masses) != k:
        raise value_error(
            "audit.prior_not_per_secret", n_secrets=k, n_masses=len(masses)
        )
    worlds = _worlds(given, gaussian_noise(noise))
    common: dict[str, Any] = {
        "prior": masses,
        "secrets": secrets,
        "pairs": given.pairs,
        "confidence": float(confidence),
    }
    if k == 2 and _is_one_shift(*worlds):
        (move,) = worlds[0].whitened(worlds[1].atoms - worlds[0].atoms)
        exact = _of_two(float(np.linalg.norm(move)), masses)
        return MapAttack(confusion=exact, **common)
    rng = np.random.default_rng(seed)
    return MapAttack(
        confusion=_simulated(worlds, masses, n_draws, rng), n_draws=n_draws, **common
    )


class _World:
    """Mixture of Gaussians of one covariance."""

    def __init__(self, atoms: Floats, log_weights: Floats, factor: Floats | None):
        self.atoms, self.log_weights, self.factor = atoms, log_weights, factor
        # half of the log of the determinant
        self._log_volume = 0.0
        if factor is not None:
            self._log_volume = float(np.log(np.diag(factor)).sum())

    def whitened(self, points: Floats) -> Floats:
        """Return points, one a row, in standard deviations of a component."""
        if self.factor is None:
            return points
        solved: Floats = solve_triangular(self.factor, points.T, lower=True).T
        return solved

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw an array of shape (n, dim)."""
        at = rng.choice(len(self.atoms), size=n, p=np.exp(self.log_weights))
        noise = rng.standard_normal((n, self.atoms.shape[1]))
        if self.factor is not None:
            noise = noise @ self.factor.T
        drawn: Floats = self.atoms[at] + noise
        return drawn

    def log_density(self, points: Floats) -> Floats:
        """Log density at points, one a row, up to a constant of the dimension."""
        z, a = self.whitened(points), self.whitened(self.atoms)
        centre = a.mean(axis=0)
        z, a = z - centre, a - centre
        # |z - a|² without a table of differences
        squares = (z**2).sum(axis=1)[:, None] + (a**2).sum(axis=1) - 2 * z @ a.T
        logs: Floats = logsumexp(self.log_weights - squares / 2, axis=1)
        return logs - self._log_volume


def _worlds(given: Outputs, noise: GaussianNoise) -> list[_World]:
    """Worlds in coordinates about one of the outputs."""
    released = [Released.of(law, noise, given.scale) for law in given.distributions]
    origin = released[0].atoms[0]
    if not any(isinstance(law, Gaussian) for law in given.distributions):
        # by the noise itself: it may leave directions out that no output has a part in
        with np.errstate(divide="ignore", invalid="ignore"):
            moves = [noise.whitened(one.atoms - origin) for one in released]
        if not all(np.isfinite(move).all() for move in moves):
            raise ValueError(_BARE)
        return [
            _World(move, one.log_weights, None)
            for move, one in zip(moves, released, strict=True)
        ]
    try:
        factors = [np.linalg.cholesky(one.covariance) for one in released]
    except np.linalg.LinAlgError:
        raise ValueError(_BARE) from None
    return [
        _World(one.atoms - origin, one.log_weights, factor.astype(float))
        for one, factor in zip(released, factors, strict=True)
    ]


def _is_one_shift(first: _World, second: _World) -> bool:
    """Whether two worlds are Gaussians of one covariance."""
    if len(first.atoms) > 1 or len(second.atoms) > 1:
        return False
    if first.factor is None or second.factor is None:
        return first.factor is second.factor
    return np.array_equal(first.factor, second.factor)


def _of_two(distance: float, masses: Floats) -> Floats:
    """Masses of (true, guessed) for two unit Gaussians at a distance."""
    p, q = masses
    if distance == 0 or p == 0 or q == 0:
        return np.outer(masses, np.eye(2)[np.argmax(masses)])
    # log of the odds is linear in the output: the first is named below a threshold
    lean = math.log(p / q) / distance
    first = float(ndtr(distance / 2 + lean))
    second = float(ndtr(distance / 2 - lean))
    return np.array([[p * first, p * (1 - first)], [q * (1 - second), q * second]])


def _simulated(
    worlds: list[_World], masses: Floats, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Numbers of draws by (true, guessed)."""
    k = len(worlds)
    with np.errstate(divide="ignore"):
        log_masses = np.log(masses)
    confusion = np.zeros((k, k))
    widest = max(len(world.atoms) for world in worlds)
    step = max(1, _BLOCK // max(widest, worlds[0].atoms.shape[1]))
    for start in range(0, n_draws, step):
        counts = rng.multinomial(min(step, n_draws - start), masses)
        for true, (world, n) in enumerate(zip(worlds, counts, strict=True)):
            if n == 0:
                continue
            points = world.sample(int(n), rng)
            guessed = _likeliest(points, worlds, log_masses)
            confusion[true] += np.bincount(guessed, minlength=k)
    return confusion


def _likeliest(points: Floats, worlds: list[_World], log_masses: Floats) -> Indices:
    logs = np.column_stack([world.log_density(points) for world in worlds])
    at: Indices = np.argmax(logs + log_masses, axis=1)
    return at
