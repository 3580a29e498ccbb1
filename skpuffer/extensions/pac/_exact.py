"""What leaks of a prior that is known table by table, bounded by fresh draws."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, rel_entr

from .information._atoms import Atoms
from .information._banks import Bank
from .information._certification import InformationBound, entropy_bound, largest_bound
from .information._channel import MixtureChannel
from .information._laws import GaussianLaw, NoiseLaw

__all__ = ["ExactBound", "ExactPrior"]

#: Part of what may fail that goes to the whole table, beside single secrets.
_TABLE = 0.1

#: Draws by which a first scale is chosen, at most.
_PILOT = 5000

#: By how many of its own widths the first certificate is aimed below the budget: its
#: draws come out differently from those by which it is aimed.
_ROOM = 1.5

#: Least part of the budget that is aimed at.
_LEAST_AIM = 0.3

#: Most steps of that.
_STEPS = 30

#: Logarithm of the largest and the least scale that are tried.
_FARTHEST = 15.0


@dataclass(frozen=True)
class ExactBound:
    """Bound of what leaks through one noise.

    Parameters
    ----------
    secret : InformationBound
        Of the secret of the budget; of several, the one that leaks most.
    table : float or None
        Of the whole table, in nats, where that is not the same.
    certain : bool
        Whether it holds for certain.
    """

    secret: InformationBound
    table: float | None
    certain: bool = False


@dataclass(frozen=True)
class ExactPrior:
    """A finite prior through noise: what leaks, and how surely.

    Parameters
    ----------
    atoms : Atoms
    by_column : bool
        Whether the secrets are the columns of the memberships, each by itself.
    """

    atoms: Atoms
    by_column: bool

    def tells_all(self, law: NoiseLaw) -> bool:
        """Whether an output through a noise tells as much as without any."""
        return not law.covariance.any() or len(self.atoms.distinct_points) < 2

    def bare(self) -> float:
        """Return what leaks without noise, exactly."""
        atoms = self.atoms
        if not self.by_column:
            return atoms.output_entropy
        return max(self._bare(column) for column in range(atoms.n_secrets))

    def _bare(self, column: int) -> float:
        prior = self.atoms.secret_probabilities(column)
        held = prior > 0
        ratios = rel_entr(self.atoms.given_output(column)[:, held], prior[held])
        return float((self.atoms.distinct_weights @ ratios).sum())

    def by_covariance(self, law: NoiseLaw) -> float:
        """Bound what leaks of the whole table for certain.

        By Gaussian outputs of the same covariance, through Gaussian noise, and by what
        there is to know.
        """
        if not isinstance(law, GaussianLaw):
            return self.atoms.output_entropy
        gaussian = MixtureChannel(self.atoms, law).log_det
        return min(gaussian, self.atoms.output_entropy)

    def bound(
        self,
        law: NoiseLaw,
        gamma: float,
        n_draws: int,
        method: str,
        rng: np.random.Generator,
    ) -> ExactBound:
        """Bound what leaks through noise that was fixed beforehand, by fresh draws.

        Parameters
        ----------
        law : NoiseLaw
            Of the noise.
        gamma : float
            Probability with which anything in the bound may fail.
        n_draws : int
        method : {'betting', 'bernstein', 'asymptotic'}
        rng : numpy.random.Generator

        Returns
        -------
        ExactBound
        """
        channel = MixtureChannel(self.atoms, law)
        bank = Bank.iid(self.atoms, n_draws, rng)
        share = _TABLE * gamma if self.by_column else gamma
        certain = self.by_covariance(law)
        whole = entropy_bound(
            channel.information(bank).entropies,
            self.atoms.output_entropy,
            len(self.atoms.distinct_points),
            gamma=share,
            method=method,
        )
        least = replace(whole, upper=min(certain, whole.upper))
        if not self.by_column:
            return ExactBound(least, None, certain <= whole.upper)
        worst = self._of_secrets(channel, bank, gamma - share, method)
        # no part leaks more than the whole
        worst = replace(worst, upper=min(worst.upper, least.upper))
        return ExactBound(worst, least.upper)

    def _of_secrets(
        self, channel: MixtureChannel, bank: Bank, gamma: float, method: str
    ) -> InformationBound:
        """Bound of the secret that leaks most, each with its share of what may fail."""
        entropies = channel.secrets(bank).entropies
        found = []
        for column, draws in enumerate(entropies.T):
            prior = self.atoms.secret_probabilities(column)
            values = int(np.count_nonzero(prior))
            # of a secret that is certain nothing leaks
            if values < 2:
                continue
            bound = entropy_bound(
                draws,
                float(entr(prior).sum()),
                values,
                gamma=gamma / self.atoms.n_secrets,
                method=method,
            )
            found.append(bound)
        return largest_bound(found)

    def aimed(
        self,
        law: NoiseLaw,
        budget: float,
        gamma: float,
        n_draws: int,
        method: str,
        rng: np.random.Generator,
    ) -> float:
        """Return a scale of noise at which fresh draws are likely to certify a budget.

        Parameters
        ----------
        law : NoiseLaw
            Of noise that is about on the budget.
        budget : float
        gamma : float
        n_draws : int
            Of the certificate.
        method : {'betting', 'bernstein'}
        rng : numpy.random.Generator

        Returns
        -------
        scale : float
            Of the standard deviations. Nothing is certified by it.
        """
        n = min(n_draws, _PILOT)
        bound = self.bound(law, gamma / 2, n, method, rng).secret
        width = max(0.0, bound.upper - bound.estimate) * math.sqrt(n / n_draws)
        target = max(budget - _ROOM * width, _LEAST_AIM * budget)
        bank = Bank.stratified(self.atoms, n, rng)
        scale = 1.0
        for _ in range(_STEPS):
            leaks = self.estimate(law.scaled(scale), bank)
            if leaks <= target:
                break
            # small leakage falls with the square of the scale
            scale *= math.sqrt(leaks / target) * (1 + 1e-3)
        return scale

    def on_budget(
        self, law: NoiseLaw, budget: float, n_draws: int, rng: np.random.Generator
    ) -> float:
        """Return a scale of noise at which about so much leaks."""
        bank = Bank.stratified(self.atoms, min(n_draws, _PILOT), rng)

        def excess(log_scale: float) -> float:
            leaks = self.estimate(law.scaled(math.exp(log_scale)), bank)
            return math.log(max(leaks, 1e-12) / budget)

        low, high = -1.0, 1.0
        while excess(low) < 0 and low > -_FARTHEST:
            low -= 1.0
        while excess(high) > 0 and high < _FARTHEST:
            high += 1.0
        if excess(low) < 0:
            return math.exp(low)
        return math.exp(brentq(excess, low, high, xtol=1e-4))

    def estimate(self, law: NoiseLaw, bank: Bank) -> float:
        """Estimate what leaks on a bank of draws."""
        channel = MixtureChannel(self.atoms, law)
        if self.by_column:
            return float(channel.secrets(bank).values.max())
        return channel.information(bank).value

    def left_out(self, law: NoiseLaw, n_draws: int, rng: np.random.Generator) -> float:
        """Estimate what leaks of a larger prior, of which the atoms are a sample.

        Each draw's own atom is left out of the mixture it is compared with, where all
        are equally likely: that is too much on average, rather than too little.
        """
        channel = MixtureChannel(self.atoms, law)
        bank = Bank.stratified(self.atoms, n_draws, rng)
        equal = np.ptp(self.atoms.prior) <= 1e-9 * self.atoms.prior.max()
        if equal and len(self.atoms.points) > 1:
            return max(0.0, channel.leave_one_out(bank).value)
        return channel.information(bank).value
