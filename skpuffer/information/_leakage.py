"""Leakage of a secret as a function of the noise alone, and what its gradient needs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from skpuffer.utils._types import Floats

from ._atoms import Atoms
from ._banks import Bank
from ._channel import MixtureChannel
from ._laws import NoiseLaw


@dataclass(frozen=True)
class Leakage(ABC):
    """The largest leakage of a kind of secret over some priors, at any noise.

    Parameters
    ----------
    priors : sequence of Atoms
        Each with its own bank of common random numbers.
    banks : sequence of Bank
    """

    priors: Sequence[Atoms]
    banks: Sequence[Bank]

    def __call__(self, law: NoiseLaw) -> tuple[float, Callable[[], Floats] | None]:
        """Return the leakage, and what the MMSE matrix of its gradient is made by.

        Parameters
        ----------
        law : NoiseLaw

        Returns
        -------
        leakage : float
            In nats.
        mmse : callable
            Without arguments; the gradient is -½ Σ⁻¹ E Σ⁻¹ for the matrix E it returns.
            None where it is not known.
        """
        pairs = zip(self.priors, self.banks, strict=True)
        found = [self._of(MixtureChannel(a, law), bank) for a, bank in pairs]
        # the gradient of a largest one is that of the one that is largest
        return max(found, key=lambda pair: pair[0])

    @abstractmethod
    def _of(
        self, channel: MixtureChannel, bank: Bank
    ) -> tuple[float, Callable[[], Floats] | None]:
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
        """Return the largest leakage of a single value of the secret, not on average.

        Parameters
        ----------
        law : NoiseLaw
        """
        pairs = zip(self.priors, self.banks, strict=True)
        return max(self._worst(MixtureChannel(a, law), bank) for a, bank in pairs)

    @staticmethod
    @abstractmethod
    def _worst(channel: MixtureChannel, bank: Bank) -> float:
        """Largest leakage of a value under one prior."""


@dataclass(frozen=True)
class DatasetLeakage(Leakage):
    """MI(X; Y): everything of the drawn data set.

    Parameters
    ----------
    priors : sequence of Atoms
    banks : sequence of Bank
    sampled : bool, default=False
        Whether the atoms are a sample of a larger prior: each is then left out of the
        mixture that it is compared with.
    """

    sampled: bool = False

    def _of(
        self, channel: MixtureChannel, bank: Bank
    ) -> tuple[float, Callable[[], Floats] | None]:
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

    def _of(
        self, channel: MixtureChannel, bank: Bank
    ) -> tuple[float, Callable[[], Floats] | None]:
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

    def _of(
        self, channel: MixtureChannel, bank: Bank
    ) -> tuple[float, Callable[[], Floats] | None]:
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
