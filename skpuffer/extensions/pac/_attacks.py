"""Attacks on releases that bound a mutual information, under their own prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from skpuffer.accountants import Calibration
from skpuffer.audit import clopper_pearson
from skpuffer.audit._released import gaussian_noise
from skpuffer.exceptions import (
    Statement,
    UncertifiedError,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.information import fano_bound, posterior_success
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    Indices,
    check_count,
    check_probability,
)
from skpuffer.noise import GaussianNoise, Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.scenarios import OutputSamples

from .information._atoms import Atoms
from .information._channel import MixtureChannel

#: Posterior probabilities that are held at once: bounds the memory.
_BLOCK = 2**22

#: Least of each kind that a normal distribution is fitted to, for each coordinate.
_FEW = 3


@dataclass(frozen=True, eq=False, repr=False)
class InformationAttack:
    """How often each secret is guessed; see :func:`bayes_attack`.

    Parameters
    ----------
    n_draws : int
        Independent draws of table and noise, the same for all secrets.
    hits, priors : ndarray of shape (n_secrets,)
        Right guesses of each secret, and their share by the prior alone.
    secret : {'dataset', 'record', 'groups'}
        Object of the guess: the whole table, or functions of it one by one.
    confidence : float
        Confidence in the statements on all secrets together.

    Examples
    --------
    >>> from skpuffer.audit import InformationAttack
    >>> from skpuffer.privacy import Certificate
    >>> attack = InformationAttack(
    ...     hits=[800], n_draws=1000, priors=[0.5], secret="dataset", confidence=0.95
    ... )
    >>> claimed = Certificate(notion="mutual_information", mutual_information=0.1)
    >>> attack.exceeds(claimed)
    True
    """

    hits: Indices
    n_draws: int
    priors: Floats
    secret: str = "dataset"
    confidence: float = 0.95

    @property
    def accuracies(self) -> Floats:
        """Share of right guesses of each secret, of shape (n_secrets,)."""
        return np.asarray(self.hits / self.n_draws)

    @property
    def worst(self) -> int:
        """Position of the secret that is guessed best beyond its prior."""
        return int(np.argmax(self.accuracies - self.priors))

    def intervals(self) -> Floats:
        """Return exact simultaneous (Clopper-Pearson) intervals, one row a secret."""
        failure = (1 - self.confidence) / (2 * len(self.hits))
        bounds = [clopper_pearson(int(k), self.n_draws, failure) for k in self.hits]
        return np.array(bounds)

    def allowed(self, certificate: Certificate) -> Floats:
        """Return the largest shares of right guesses that a certificate allows."""
        budget = budget_of(certificate, self.secret)
        return np.array([posterior_success(budget, float(p)) for p in self.priors])

    def exceeds(self, certificate: Certificate) -> bool:
        """Whether a secret was guessed more often than a certificate allows.

        Parameters
        ----------
        certificate : Certificate
            A bound on a mutual information, under the prior that was attacked.

        Returns
        -------
        bool
            Wrongly True with probability ``(1 - confidence) / 2`` at most.

        Raises
        ------
        UncertifiedError
            If the certificate is an estimate, or bounds something else.
        """
        return bool(np.any(self.intervals()[:, 0] > self.allowed(certificate)))

    def __repr__(self) -> str:
        at = self.worst
        return (
            f"InformationAttack(secret={self.secret!r}, n_secrets={len(self.hits)}, "
            f"n_draws={self.n_draws}, worst={self.accuracies[at]:.4f} "
            f"of {self.priors[at]:.4f})"
        )


def bayes_attack(
    outputs: OutputSamples,
    noise: Noise | Calibration,
    *,
    n_draws: int = 20_000,
    confidence: float = 0.95,
    random_state: int = 0,
) -> InformationAttack:
    """Guess secrets of a finite prior from a noisy output, as well as anyone can.

    The attacker knows the prior, the outputs and the noise. He names the likeliest
    value of the whole table, of each record's membership, or of each group's.

    Parameters
    ----------
    outputs : OutputSamples
        A scenario's fact: outputs, their weights, and who was in which table.
    noise : Noise or Calibration
        Gaussian noise in every direction, or what an accountant's `calibrate` returned.
    n_draws, random_state : int
        Tables and noise that are drawn, 20000 by default, and their public seed, 0.
    confidence : float, default=0.95
        Confidence in the statements on all secrets together.

    Returns
    -------
    InformationAttack

    Raises
    ------
    UnsupportedError, ValueError
        If the noise is not Gaussian, or some direction has none.

    Notes
    -----
    No other rule is right more often. If the prior was sampled, the attack overstates
    what is known of a larger prior.

    References
    ----------
    Zhang and Vorobeychik, Residual-PAC privacy, section 6.2 and Appendix C.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import bayes_attack
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.scenarios import OutputSamples
    >>> outputs = OutputSamples(
    ...     draws=np.array([[-1.0], [1.0]]),
    ...     weights=np.array([0.5, 0.5]),
    ...     groups=np.array([0, 1]),
    ... )
    >>> attack = bayes_attack(outputs, GaussianNoise(1.0))
    >>> low, high = attack.intervals()[0]
    >>> bool(low < 0.8413 < high)
    True
    """
    points, weights = _read(outputs)
    law = _full_rank(noise, points.shape[1])
    n_draws = check_count(n_draws=n_draws)
    confidence = check_probability(confidence=confidence)
    rng = np.random.default_rng(check_count(least=0, random_state=random_state))
    channel = MixtureChannel(Atoms(points, weights), law)
    whole = outputs.secret == "dataset" or outputs.memberships is None
    secrets = np.arange(len(points))[:, None]
    tables: list[Floats | None] = [None]
    if not whole:
        secrets = np.asarray(outputs.memberships)
        tables = [np.eye(int(codes.max()) + 1)[codes] for codes in secrets.T]
    hits = np.zeros(len(tables), dtype=np.intp)
    step = max(1, _BLOCK // len(points))
    for start in range(0, n_draws, step):
        at = rng.choice(len(points), size=min(step, n_draws - start), p=weights)
        released = points[at] + law.sample((len(at), points.shape[1]), rng)
        posterior = channel.posterior(released)
        for i, table in enumerate(tables):
            chances = posterior if table is None else posterior @ table
            guessed = np.argmax(chances, axis=1)
            hits[i] += np.count_nonzero(guessed == secrets[at, i])
    priors = [(weights if table is None else weights @ table).max() for table in tables]
    return InformationAttack(
        hits=hits,
        n_draws=n_draws,
        priors=np.array(priors),
        secret="dataset" if whole else outputs.secret,
        confidence=confidence,
    )


def pool_attack(
    outputs: OutputSamples,
    noise: Noise | Calibration,
    *,
    n_draws: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> InformationAttack:
    """Guess each record's membership of a pool by a likelihood ratio.

    The attacker fits normal distributions to outputs of tables with a record and
    without it, and adds the noise. He simulates half of the tables and attacks the
    others, unless the prior is of these tables alone.

    Parameters
    ----------
    outputs : OutputSamples
        A scenario's fact under ``secret='record'``.
    noise : Noise or Calibration
        Gaussian, or what an accountant's `calibrate` returned.
    n_draws : int, default=None
        Tables that are attacked. None is 20000, and for a sampled prior as many as the
        attacker does not simulate.
    confidence : float, default=0.95
        Confidence in the statements on all records together.
    random_state : int, default=0
        Public seed of what is drawn.

    Returns
    -------
    InformationAttack
        Of the records that are neither in all of the tables nor in none.

    Raises
    ------
    UnsupportedError, ValueError
        If the noise is not Gaussian, or too few tables are with a record or without it.

    References
    ----------
    Carlini et al. (2022), Membership inference attacks from first principles.
    """
    points, weights = _read(outputs)
    law = gaussian_noise(noise)
    confidence = check_probability(confidence=confidence)
    rng = np.random.default_rng(check_count(least=0, random_state=random_state))
    if outputs.memberships is None or outputs.secret != "record":
        raise value_error("audit.outputs_without_single_records")
    members = np.asarray(outputs.memberships, dtype=bool)
    n, dim = points.shape
    simulated = np.ones(n, dtype=bool)
    if outputs.regime == "sampled":
        simulated[rng.permutation(n)[n // 2 :]] = False
        attacked = np.flatnonzero(~simulated)
        if n_draws is not None:
            attacked = attacked[: check_count(n_draws=n_draws)]
    else:
        n_draws = 20_000 if n_draws is None else check_count(n_draws=n_draws)
        attacked = rng.choice(n, size=n_draws, p=weights)
    released = points[attacked] + law.sample((len(attacked), dim), rng)
    spread = law.covariance_matrix(dim)
    hits, priors = [], []
    for member in members.T:
        share = float(weights @ member)
        odds = _log_density(points, weights, simulated & member, spread, released)
        odds -= _log_density(points, weights, simulated & ~member, spread, released)
        guessed = odds + np.log(share) - np.log1p(-share) > 0
        hits.append(np.count_nonzero(guessed == member[attacked]))
        priors.append(max(share, 1 - share))
    return InformationAttack(
        hits=np.array(hits),
        n_draws=len(attacked),
        priors=np.array(priors),
        secret="record",
        confidence=confidence,
    )


# -- what is read ----------------------------------------------------------------------


def _read(outputs: Any) -> tuple[Floats, Floats]:
    """Outputs of tables, and their weights."""
    if not isinstance(outputs, OutputSamples):
        raise type_error(
            "audit.outputs_not_output_samples", outputs_type=type(outputs).__name__
        )
    weights = np.asarray(outputs.weights, dtype=float)
    return np.asarray(outputs.draws, dtype=float), weights / weights.sum()


def _full_rank(noise: Noise | Calibration, dim: int) -> GaussianNoise:
    law = gaussian_noise(noise)
    if np.linalg.matrix_rank(law.covariance_matrix(dim)) < dim:
        raise unsupported_error("audit.noise_not_full_rank")
    return law


def budget_of(certificate: Certificate, secret: str) -> float:
    """Return the certified leakage of secrets of a kind in nats."""
    if not certificate.certified:
        raise UncertifiedError(Statement("audit.estimate_bounds_no_information"))
    kinds = {
        "dataset": Notion.MUTUAL_INFORMATION,
        "record": Notion.RECORD_MUTUAL_INFORMATION,
        "groups": Notion.GROUP_MUTUAL_INFORMATION,
    }
    known = certificate.mutual_information
    if known is None or not certificate.implies(kinds[secret]):
        # of single records, but beside it of the whole table, and so of everything
        known = certificate.table_information
    if known is None:
        raise UncertifiedError(
            Statement(
                "audit.secret_not_of_certificate",
                certificate=certificate,
                secret=secret,
            )
        )
    return known


def _log_density(
    points: Floats, weights: Floats, kept: Booleans, spread: Floats, released: Floats
) -> Floats:
    """Log density of noisy outputs by a normal distribution fitted to some points."""
    if np.count_nonzero(kept) < _FEW * points.shape[1]:
        raise value_error("audit.too_few_tables_with_record", shape=points.shape[1])
    mass = weights[kept] / weights[kept].sum()
    mean = mass @ points[kept]
    centred = points[kept] - mean
    covariance = (centred * mass[:, None]).T @ centred + spread
    found: Floats = multivariate_normal.logpdf(
        released, mean, covariance, allow_singular=True
    )
    return np.atleast_1d(found)


# -- right guesses of a label, against a certificate of mutual information -------------


@dataclass(frozen=True)
class FanoAudit:
    """Evidence of a classifier's accuracy about a release; see :func:`fano_audit`.

    Parameters
    ----------
    information : float
        Least mutual information, in nats, with which the accuracy is possible; a lower
        confidence bound.
    allowed : float
        Bound by the certificate.

    Examples
    --------
    >>> from skpuffer.audit import fano_audit
    >>> from skpuffer.privacy import Certificate
    >>> claimed = Certificate(notion="mutual_information", mutual_information=0.5)
    >>> audit = fano_audit(claimed, hits=450, n_guesses=1000, n_classes=10)
    >>> round(audit.information, 2), audit.allowed, audit.exceeds
    (0.35, 0.5, False)
    """

    information: float
    allowed: float

    @property
    def exceeds(self) -> bool:
        """Whether the accuracy is impossible under the certificate."""
        return self.information > self.allowed


def fano_audit(
    certificate: Certificate,
    hits: int,
    n_guesses: int,
    n_classes: int,
    *,
    confidence: float = 0.95,
) -> FanoAudit:
    """Compare right guesses of a label with what a mutual information allows.

    By Fano's inequality, any rule that is right that often shows how much was released.

    Parameters
    ----------
    certificate : Certificate
        A bound on the mutual information with the whole table. The label must be a
        function of the table.
    hits, n_guesses : int
        Right guesses, of independent ones, each of a release of its own.
    n_classes : int
        Equally likely labels.
    confidence : float, default=0.95
        Probability that an excess is not due to chance.

    Returns
    -------
    FanoAudit

    Raises
    ------
    UncertifiedError
        If the certificate is an estimate, or bounds something else.

    References
    ----------
    Cover and Thomas (2006), Elements of information theory, Theorem 2.10.1.

    Examples
    --------
    >>> from skpuffer.audit import fano_audit
    >>> from skpuffer.privacy import Certificate
    >>> claimed = Certificate(notion="mutual_information", mutual_information=0.5)
    >>> audit = fano_audit(claimed, 7910, 10_000, 10)
    >>> round(audit.information, 2), audit.exceeds
    (1.31, True)
    """
    n_guesses = check_count(n_guesses=n_guesses)
    hits = check_count(least=0, hits=hits)
    n_classes = check_count(least=2, n_classes=n_classes)
    if hits > n_guesses:
        raise value_error("audit.hits_above_guesses", hits=hits, n_guesses=n_guesses)
    confidence = check_probability(confidence=confidence)
    allowed = budget_of(certificate, "dataset")
    low, _ = clopper_pearson(hits, n_guesses, 1 - confidence)
    # worse than chance says nothing
    least = fano_bound(low, n_classes) if low > 1 / n_classes else 0.0
    return FanoAudit(information=least, allowed=allowed)
