"""Mutual information as a mean over draws, by the best of several estimators."""

from dataclasses import dataclass

import numpy as np

from skpuffer.kernel.numbers import Floats, Indices, check_option

from ._banks import Bank

#: All are unbiased; each is the best one somewhere.
ESTIMATORS = ("divergence", "log_ratio", "entropy", "gap")


@dataclass(frozen=True, eq=False)
class Information:
    """Mutual information of input and output, in nats, with what it was read from.

    Parameters
    ----------
    bank : Bank
    log_ratios : ndarray of shape (n,)
        log π(truth | y) - log prior(truth).
    divergences : ndarray of shape (n,)
        KL of the posterior from the prior: never negative.
    entropies : ndarray of shape (n,)
        Entropy of the posterior over the distinct outputs, in [0, log k]: what
        certificates read.
    gaps : ndarray of shape (n,) or None
        Log ratios less a control variate; Gaussian noise only.
    output_entropy : float
        H(M(X)).
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
        """Return the draws whose mean an estimator is, or None if it is not at hand.

        Parameters
        ----------
        estimator : {"divergence", "log_ratio", "entropy", "gap"}

        Returns
        -------
        ndarray of shape (n,) or None
        """
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
        """Return the standard error of one estimator.

        Parameters
        ----------
        estimator : {"divergence", "log_ratio", "entropy", "gap"}

        Returns
        -------
        float
        """
        return self.bank.standard_error(self._of(estimator))

    @property
    def value(self) -> float:
        """Mutual information, in nats."""
        return float(self.bank.mean(self._of(self.estimator)))

    @property
    def standard_error(self) -> float:
        """Standard error of the value; zero for a quadrature rule."""
        return self.standard_error_of(self.estimator)


@dataclass(frozen=True, eq=False)
class SecretInformation:
    """Mutual information of each of several secrets with the output, in nats.

    Parameters
    ----------
    bank : Bank
    divergences : ndarray of shape (n, s)
        KL of the posterior of each secret from its prior.
    entropies : ndarray of shape (n, s)
        Entropy of the posterior of each secret, in [0, log values].
    bayes_success : ndarray of shape (s,)
        Success of the best guess of each secret.
    value_leakage : ndarray
        KL(P_{Y | S = v} || P_Y) of all values of all secrets, one after the other.
    value_priors : ndarray
        P(S = v), likewise.
    starts : ndarray of int of shape (s,)
        Where the values of each secret begin.

    Examples
    --------
    The sum of two bits is released with unit noise, and either bit is a secret:

    >>> from skpuffer.information import Atoms, Bank, MixtureChannel
    >>> bits = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> atoms = Atoms([[0.0], [1.0], [1.0], [2.0]], memberships=bits)
    >>> found = MixtureChannel(atoms, [[1.0]]).secrets(Bank.quadrature(atoms))
    >>> found.values.round(4).tolist(), found.standard_errors.tolist()
    ([0.091, 0.091], [0.0, 0.0])
    >>> found.bayes_success.round(4).tolist(), found.prior_success.tolist()
    ([0.6707, 0.6707], [0.5, 0.5])
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
