"""What a search of Gaussian noise is about: the cost, the budget, and how they meet."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import rel_entr

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats

from ._atoms import Atoms, Bank
from ._channel import MixtureChannel
from ._laws import GaussianLaw, NoiseLaw

#: A leakage in nats, and what finds its MMSE matrix where that is known.
Leaked = tuple[float, Callable[[], Floats] | None]


@dataclass(frozen=True)
class Leakage(ABC):
    """The largest leakage of a kind of secret over some priors, at any noise."""

    priors: Sequence[Atoms]
    banks: Sequence[Bank]

    def __call__(self, law: NoiseLaw) -> Leaked:
        """Return the leakage in nats, and a callable for the MMSE matrix E or None.

        The gradient of the leakage is -½ Σ⁻¹ E Σ⁻¹.
        """
        pairs = zip(self.priors, self.banks, strict=True)
        found = [self._of(MixtureChannel(a, law), bank) for a, bank in pairs]
        # the gradient of a largest one is that of the one that is largest
        return max(found, key=lambda pair: pair[0])

    @abstractmethod
    def _of(self, channel: MixtureChannel, bank: Bank) -> Leaked:
        """Leakage under one prior, and its MMSE matrix."""

    def bare(self) -> float:
        """Return the leakage without any noise, exactly."""
        return max(self._bare(atoms) for atoms in self.priors)

    def worst_bare(self) -> float:
        """Return the largest leakage of a single value without any noise."""
        return max(self._worst_bare(atoms) for atoms in self.priors)

    @staticmethod
    @abstractmethod
    def _bare(atoms: Atoms) -> float:
        """Leakage under one prior without noise."""

    @staticmethod
    @abstractmethod
    def _worst_bare(atoms: Atoms) -> float:
        """Largest leakage of a value under one prior without noise."""

    def worst_value(self, law: NoiseLaw) -> float:
        """Return the largest leakage of one value of the secret, not on average."""
        pairs = zip(self.priors, self.banks, strict=True)
        return max(self._worst(MixtureChannel(a, law), bank) for a, bank in pairs)

    @staticmethod
    @abstractmethod
    def _worst(channel: MixtureChannel, bank: Bank) -> float:
        """Largest leakage of a value under one prior."""


@dataclass(frozen=True)
class DatasetLeakage(Leakage):
    """MI(X; Y): everything of the drawn data set.

    With `sampled`, each atom is left out of the mixture that it is compared with.
    """

    sampled: bool = False

    def _of(self, channel: MixtureChannel, bank: Bank) -> Leaked:
        information, mmse = channel.information_and_mmse(bank)
        if self.sampled:
            information = channel.leave_one_out(bank)
        return information.value, lambda: mmse

    @staticmethod
    def _bare(atoms: Atoms) -> float:
        return atoms.output_entropy

    @staticmethod
    def _worst_bare(atoms: Atoms) -> float:
        return float(-np.log(atoms.distinct_weights.min()))

    @staticmethod
    def _worst(channel: MixtureChannel, bank: Bank) -> float:
        return float(channel.atom_leakage(bank).max())


@dataclass(frozen=True)
class SecretLeakage(Leakage):
    """The largest MI(S_i; Y) over the columns of the memberships."""

    def _of(self, channel: MixtureChannel, bank: Bank) -> Leaked:
        values = channel.secrets(bank).values
        worst = int(np.argmax(values))
        return float(values[worst]), lambda: channel.secret_mmse(bank, worst)

    @staticmethod
    def _bare(atoms: Atoms) -> float:
        return max(float(part.sum()) for part, _ in _bare_parts(atoms))

    @staticmethod
    def _worst_bare(atoms: Atoms) -> float:
        # an average over the outputs that go with a value
        return max(float((part / prior).max()) for part, prior in _bare_parts(atoms))

    @staticmethod
    def _worst(channel: MixtureChannel, bank: Bank) -> float:
        return float(channel.secrets(bank).worst_leakage.max())


@dataclass(frozen=True)
class GivenOthersLeakage(SecretLeakage):
    """The largest MI(U_i; Y | all other U_j) over the columns, which are bits."""

    def _of(self, channel: MixtureChannel, bank: Bank) -> Leaked:
        return float(channel.information_given_others().max()), None

    @staticmethod
    def _bare(atoms: Atoms) -> float:
        exact = MixtureChannel(atoms, np.zeros((atoms.dim, atoms.dim)))
        return float(exact.information_given_others().max())


def _bare_parts(atoms: Atoms) -> Iterator[tuple[Floats, Floats]]:
    """Each value's part of what each secret leaks without noise, and its prior."""
    for column in range(atoms.n_secrets):
        prior = atoms.secret_probabilities(column)
        table = atoms.given_output(column)
        held = prior > 0
        ratios = rel_entr(table[:, held], prior[held])
        yield atoms.distinct_weights @ ratios, prior[held]


#: Most steps of a root search. After some by Newton's method it halves its bracket, for
#: the leakage of a sample, whose slope is not known as well. Without one it strides.
_STEPS, _NEWTON = 100, 8

#: Logarithm of the largest scale tried.
_FARTHEST = 200.0

#: Longest step of the logarithm of the scale.
_STRIDE = 3.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """Noise on the budget.

    `mmse` gives the matrix of its gradient; `at_floor`: less noise would do as well.
    """

    covariance: Floats
    cost: float
    leakage: float
    mmse: Callable[[], Floats] | None
    at_floor: bool


@dataclass(frozen=True, eq=False)
class Objective:
    """Least tr(C Σ) with a leakage of at most a budget.

    `weight` (d, d): the cost C, positive definite. `least_variance`: added to every
    variance. `least_cost`: noise of lower cost is not tried.
    """

    leakage: Leakage
    budget: float
    weight: Floats
    least_variance: float = 0.0
    least_cost: float = 0.0

    def cost(self, covariance: Floats) -> float:
        """Return tr(C Σ)."""
        return float(np.sum(self.weight * covariance))

    def covariance(self, shape: Floats, log_scale: float = 0.0) -> Floats:
        """Return a multiple of a shape, with the least variance added."""
        return math.exp(log_scale) * shape + self.least_variance * np.eye(len(shape))

    def scaled(self, shape: Floats, tolerance: float) -> Candidate:
        """Return the multiple of a shape whose leakage is the budget, to `tolerance`
        below.

        Leakage falls as the noise is scaled up. Newton's method on logarithms,
        bracketed.
        """
        return self._at_budget(shape, tolerance, self._leak, self.budget)

    def limited(self, shape: Floats, most: float) -> Candidate:
        """Return the multiple of a shape at which no value of the secret leaks over
        `most`.
        """

        def worst(covariance: Floats) -> Leaked:
            return self.leakage.worst_value(GaussianLaw(covariance)), None

        found = self._at_budget(shape, 1e-4, worst, most)
        # what was searched is not what is reported
        value, mmse = self._leak(found.covariance)
        return replace(found, leakage=value, mmse=mmse)

    def _leak(self, covariance: Floats) -> Leaked:
        return self.leakage(GaussianLaw(covariance))

    def _at_budget(
        self,
        shape: Floats,
        tolerance: float,
        leakage: Callable[[Floats], Leaked],
        budget: float,
    ) -> Candidate:
        """The multiple of a shape at which some leakage is some budget."""
        lowest = -_FARTHEST
        if self.least_cost:
            lowest = math.log(self.least_cost / self.cost(shape))
        # what breaks the budget, and what keeps it
        low, high, here = -math.inf, math.inf, max(0.0, lowest)
        best: Candidate | None = None
        for count in range(_STEPS):
            covariance = self.covariance(shape, here)
            value, mmse = leakage(covariance)
            excess = math.log(max(value, 1e-300) / budget)
            if excess <= 0:
                high, floored = here, excess < -tolerance and here <= lowest
                cost = self.cost(covariance)
                best = Candidate(covariance, cost, value, mmse, floored)
                if excess >= -tolerance or floored:
                    break
            else:
                low = here
            # where the estimator changes, leakage may jump across the budget
            if high - low < tolerance or here > _FARTHEST:
                break
            # towards the middle of what is tolerated
            step = (excess + tolerance / 2) / self._slope(covariance, mmse, value)
            there = here + min(max(step, -_STRIDE), _STRIDE)
            bracketed = high - low < math.inf
            if bracketed and (count >= _NEWTON or not low < there < high):
                there = (low + high) / 2
            elif count >= _NEWTON or not low < there < high:
                # where leakage is flat, what it lacks says nothing of how far to go
                there = here + math.copysign(_STRIDE, excess)
            here = max(there, lowest)
        if best is None:
            raise value_error("pac.no_noise_keeps_budget")
        return best

    def _slope(
        self, covariance: Floats, mmse: Callable[[], Floats] | None, value: float
    ) -> float:
        """How fast the logarithm of the leakage falls with that of the scale."""
        # as fast as it can for small leakage, if nothing is known
        if mmse is None:
            return 1.0
        inverse = np.linalg.inv(covariance)
        scaled = covariance - self.least_variance * np.eye(len(covariance))
        trace = float(np.sum(inverse @ mmse() @ inverse * scaled))
        return max(trace / 2 / max(value, 1e-300), 1e-9)

    @cached_property
    def _roots(self) -> tuple[Floats, Floats]:
        """Square root of the cost matrix, and its inverse."""
        values, vectors = np.linalg.eigh(self.weight)
        roots = np.sqrt(values)
        return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T

    def stationary(self, mmse: Floats) -> Floats:
        """Return the best shape if the error E is `mmse`: C^-½ (C^½ E C^½)^½ C^-½."""
        root, inverse = self._roots
        values, vectors = np.linalg.eigh(root @ mmse @ root)
        middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(inverse @ middle @ inverse)
