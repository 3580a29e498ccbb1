"""Outputs of a query under a prior, in the units of its release, and noise for them."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import entr

from skpuffer.exceptions import (
    reason_of,
    scenario_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import Floats
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
)
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import OutputSamples

from .information._atoms import Atoms, Bank
from .information._certification import InformationBound, entropy_bound, largest_bound
from .information._channel import MixtureChannel
from .information._laws import GaussianLaw, LaplaceMarginal, NoiseLaw, ProductLaw
from .information._objective import DatasetLeakage, SecretLeakage

#: Least variance of the noise along any direction, as a share of the largest and for
#: each coordinate: more than the rounding of an output that only seems not to vary.
_LEAST = 4e-12

#: Variance that a sample which never varies is given, as a share of the largest.
_FLOOR = 1e-6

_REGIMES = ("sampled", "enumerated", "design")
_SECRETS = ("dataset", "record", "groups")


@dataclass(frozen=True, eq=False)
class Outputs:
    """Terms that accountants of mutual information read of a fact and a release."""

    fact: OutputSamples
    release: QueryRelease

    def __post_init__(self) -> None:
        fact, name = self.fact, self.release.name
        if fact.regime not in _REGIMES or fact.secret not in _SECRETS:
            raise unsupported_error(
                "pac.regime_or_secret_unknown",
                name=name,
                regime=fact.regime,
                secret=fact.secret,
            )
        if fact.delta:
            raise unsupported_error(
                "pac.outputs_outside_event", name=name, delta=fact.delta
            )
        shape = np.shape(fact.draws)
        if len(shape) != 2 or self.release.dim not in (None, shape[1]):
            dim = "dim" if self.release.dim is None else self.release.dim
            raise scenario_error(
                "pac.outputs_of_wrong_shape", name=name, dim=dim, shape=shape
            )
        if not shape[1]:
            raise scenario_error("pac.outputs_empty", name=name)
        ball = self.release.ball
        if ball is not None and not ball.holds(np.asarray(fact.draws)):
            raise scenario_error("pac.output_outside_ball", name=name)
        if self.by_column and fact.memberships is None:
            raise scenario_error(
                "pac.memberships_missing", name=name, secret=fact.secret
            )

    @property
    def exact(self) -> bool:
        """Whether the outputs are all that there are under the prior."""
        return self.fact.regime != "sampled"

    @property
    def by_column(self) -> bool:
        """Whether the budget is about single records or groups, one by one."""
        # of a sample nothing smaller than the whole table is certified
        return self.exact and self.fact.secret != "dataset"

    @property
    def units(self) -> Floats:
        """Unit of each coordinate."""
        dim = np.shape(self.fact.draws)[1]
        return np.array(np.broadcast_to(self.release.unit_array, (dim,)), dtype=float)

    @cached_property
    def atoms(self) -> Atoms:
        """The outputs in units, as a finite prior."""
        memberships = self.fact.memberships if self.by_column else None
        draws = np.asarray(self.fact.draws, dtype=float)
        varied = np.ptp(draws, axis=0) > 0
        if np.any(varied & (np.ptp(self.in_units(draws), axis=0) == 0)):
            # it would be taken for a constant, and be released as it is
            raise scenario_error("pac.coordinate_lost_in_units", name=self.release.name)
        try:
            return Atoms(self.in_units(self.fact.draws), self.fact.weights, memberships)
        except ValueError as error:
            raise scenario_error(
                "pac.outputs_no_finite_prior",
                name=self.release.name,
                reason=reason_of(error),
            ) from None

    def in_units(self, draws: Floats) -> Floats:
        """Return outputs, one a row, in units."""
        return np.asarray(draws, dtype=float) / self.units

    @property
    def ball(self) -> tuple[Floats, float]:
        """Centre and radius, in units, of a ball that holds every output."""
        ball = self.release.ball
        assert ball is not None  # looked for before any output was computed
        units = self.units
        center = np.broadcast_to(np.asarray(ball.center, dtype=float), units.shape)
        return center / units, float(ball.radius) / float(units.min())

    @property
    def constant(self) -> int:
        """How many coordinates are the same in all outputs."""
        return int(np.sum(np.ptp(self.atoms.points, axis=0) == 0))

    @cached_property
    def spread(self) -> Floats:
        """Covariance of the outputs in units, exact or of the sample."""
        covariance = self.atoms.covariance
        if self.exact:
            return covariance
        return covariance + self.floor * np.eye(len(covariance))

    @property
    def floor(self) -> float:
        """Variance that any direction has at least, of which there is but a sample."""
        largest = float(np.diag(self.atoms.covariance).max())
        if largest == 0:
            raise unsupported_error("pac.samples_do_not_vary", name=self.release.name)
        return _FLOOR * largest

    @property
    def prior_success(self) -> float | None:
        """Success of the best guess of the secret without the release."""
        if not self.exact:
            return None
        atoms = self.atoms
        likeliest = float(atoms.prior.max())
        if self.by_column:
            columns = range(atoms.n_secrets)
            likeliest = max(float(atoms.secret_probabilities(i).max()) for i in columns)
        # of what is certain nothing is left to guess; the rest is rounding of a sum
        likeliest = round(likeliest, 12)
        return likeliest if 0 < likeliest < 1 else None

    def noise(self, covariance: Floats) -> Noise:
        """Return the noise whose covariance in units is this one, or barely larger."""
        return gaussian_noise(covariance * np.outer(self.units, self.units))

    def law_of(self, noise: Noise) -> NoiseLaw:
        """Return the law of a noise in units."""
        # by exact type: another Laplace noise may have another law
        if type(noise) is not LaplaceNoise:
            return GaussianLaw(self.covariance_of(noise))
        scales = np.broadcast_to(np.asarray(noise.scale, dtype=float), self.units.shape)
        if np.any(scales <= 0):
            raise unsupported_error(
                "pac.laplace_scale_not_positive", name=self.release.name
            )
        return ProductLaw(LaplaceMarginal(), scales / self.units)

    def covariance_of(self, noise: Noise) -> Floats:
        """Return the covariance of a Gaussian noise, in units."""
        return covariance_of(noise, len(self.units)) / np.outer(self.units, self.units)


def gaussian_noise(covariance: Floats) -> Noise:
    """Return Gaussian noise of a covariance, exact in coordinates without variance.

    Directions with nearly no noise get a little more: more noise leaks no more.
    """
    variances = np.diag(covariance)
    noisy = variances > 0
    if not noisy.any():
        return GaussianNoise(0.0)
    if np.array_equal(covariance, np.diag(variances)):
        return GaussianNoise(tuple(np.sqrt(variances).tolist()))
    block = covariance[np.ix_(noisy, noisy)]
    values = np.linalg.eigvalsh(block)
    least = _LEAST * len(block) * values[-1]
    if values[0] < least:
        block = block + (least - min(values[0], 0.0)) * np.eye(len(block))
    if noisy.all():
        return CorrelatedGaussianNoise(covariance=block)  # type: ignore[arg-type] # made tuples
    factor = np.zeros((len(covariance), len(block)))
    factor[noisy] = np.linalg.cholesky(block)
    return DegenerateGaussianNoise(factor=factor)  # type: ignore[arg-type] # made tuples


def covariance_of(noise: Noise, dim: int) -> Floats:
    """Return the covariance of a noise in `dim` coordinates."""
    # by exact type: another Gaussian noise may have another law
    if type(noise) not in (
        GaussianNoise,
        CorrelatedGaussianNoise,
        DegenerateGaussianNoise,
    ):
        raise unsupported_error("pac.noise_not_gaussian", family=noise.family)
    assert isinstance(noise, GaussianNoise)  # and so has a covariance
    if noise.dim not in (None, dim):
        raise value_error("pac.noise_dimension_mismatch", dim=dim, noise_dim=noise.dim)
    found = noise.covariance_matrix(dim)
    if not math.isfinite(float(np.sum(found))):
        raise value_error("pac.noise_covariance_not_finite")
    return np.asarray(found)


# -- what leaks of a prior that is known table by table, bounded by fresh draws --------


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

    `secret`: bound for the secret of the budget, the one that leaks most. `table`:
    information of the whole table in nats, where it differs. `certain`: whether it
    holds for certain.
    """

    secret: InformationBound
    table: float | None
    certain: bool = False


@dataclass(frozen=True)
class ExactPrior:
    """A finite prior through noise: what leaks, and how surely.

    With `by_column`, each column of the memberships is a secret by itself.
    """

    atoms: Atoms
    by_column: bool

    def bare(self) -> float:
        """Return what leaks without noise, exactly."""
        kind = SecretLeakage if self.by_column else DatasetLeakage
        return kind([self.atoms], []).bare()

    def by_covariance(self, law: NoiseLaw) -> float:
        """Bound for certain what leaks of the whole table, by the covariance."""
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
        rng: Generator,
    ) -> ExactBound:
        """Bound what leaks through noise that was fixed beforehand, by fresh draws.

        Anything in the bound may fail with probability `gamma`.
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
        rng: Generator,
    ) -> float:
        """Return a scale of noise at which fresh draws are likely to certify a budget.

        `law` is noise about on the budget. The scale certifies nothing.
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
        self, law: NoiseLaw, budget: float, n_draws: int, rng: Generator
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

    def left_out(self, law: NoiseLaw, n_draws: int, rng: Generator) -> float:
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
