"""Base of accountants whose budget is a mutual information, in nats."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skpuffer.accountants import Accountant
from skpuffer.accountants._base import Account, Found, accounts_for
from skpuffer.exceptions import Statement, UnsupportedError, reason_of
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.draws import noise_generator, spawned
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import check_positive
from skpuffer.kernel.sums import QUERY_FIELDS
from skpuffer.noise import Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, OutputSamples

from ._outputs import Outputs
from ._statement import meaning
from .information._banks import Bank
from .information._channel import MixtureChannel

__all__ = ["Bounded", "_InformationAccountant", "seed_of"]

#: How far below the budget, in parts of it, a bound may be and still be stated as it:
#: as much as a search may leave.
_BELOW = 1e-2

#: Draws by which the leakage of the most exposed secret is estimated, at least.
_LEAKAGE_DRAWS = 4000

#: Distinct outputs up to which it is.
_MOST = 6000

#: How many times the budget the most exposed secret may leak without a warning.
_EXPOSED = 10.0

_BY_COLUMN = {
    "record": Notion.RECORD_MUTUAL_INFORMATION,
    "groups": Notion.GROUP_MUTUAL_INFORMATION,
}


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A bound on mutual information, and what it rests on.

    Parameters
    ----------
    information : float, default=inf
        Of the output with what is secret, in nats.
    table : float or None
        Of the output with the whole table, where that is not the same.
    certified : bool
    confidence : float
        Probability with which all of it holds.
    how : Statement
        What the bound rests on, in a sentence.
    source : Statement
        Where it is proved.
    draws : tuple of (int, float) or None
        Seed of the draws it rests on, where it is not that of all, and the share of
        what may fail that they may fail with.
    """

    information: float = math.inf
    table: float | None = None
    certified: bool = True
    confidence: float = 1.0
    how: Statement
    source: Statement
    draws: tuple[int, float] | None = None


class _InformationAccountant(Accountant):
    """Base of accountants of mutual information.

    A subclass has the parameter `budget`. It sets noise for :class:`Outputs` by
    `_covariance`, and bounds what a noise of some covariance leaks by `_bounded`.
    """

    budget: float

    needs = (OutputSamples,)
    reads: ClassVar[dict[type, frozenset[str]]] = {QueryRelease: QUERY_FIELDS}

    #: One prior, on average: no substitute for a promise about every table.
    recommended = False
    _takes_joint_noise = True
    _states = ("budget", "mutual_information")

    #: The mechanism's own; not parameters.
    noise: str = "gaussian"
    beta: None = None

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(budget=self.budget)

    # -- the protocol -------------------------------------------------------------

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        super()._check_support(release, bound)
        self._check_release(release)

    def _fact(self, release: Any, bound: BoundScenario, norm: float) -> Any:
        self._need(release, bound)
        # before the query is run on any table of the prior
        self._check_release(release)
        return super()._fact(release, bound, norm)

    def _check_release(self, release: QueryRelease) -> None:
        """Refuse a release that lacks what the bound rests on."""

    def _refusal(
        self, release: Any, bound: BoundScenario, unread: Statement | None = None
    ) -> UnsupportedError:
        refused = super()._refusal(release, bound, unread)
        if type(release) is QueryRelease:
            return refused
        return UnsupportedError(
            Statement("pac.single_output_of_table", reason=reason_of(refused))
        )

    @accounts_for(QueryRelease)
    def _account_of_query(
        self, fact: OutputSamples, release: QueryRelease, bound: BoundScenario
    ) -> Account:
        outputs = Outputs(fact, release)
        return Account(
            partial(self._calibrate, outputs, bound),
            partial(self._certify, outputs, bound),
        )

    def _calibrate(
        self, outputs: Outputs, bound: BoundScenario, unit: Noise, random_state: Any
    ) -> Found:
        """Set noise, and bound what leaks through it."""
        seed = seed_of(_spawned(random_state))
        rng = np.random.default_rng(seed)
        noise, bounded, warnings = self._found(outputs, rng)
        certificate = self._certificate(noise, bounded, outputs, bound, rng)
        worst = certificate.worst_leakage
        if worst is not None and worst > _EXPOSED * float(self.budget):
            warnings += (
                Statement(
                    "pac.outlier_secret_leaks",
                    worst=worst,
                    name=outputs.release.name,
                    budget=float(self.budget),
                ),
            )
        draws = bounded.draws or (seed, 1.0)
        return Found(noise, certificate, warnings, draws=draws)

    def _certify(self, outputs: Outputs, bound: BoundScenario, noise: Noise) -> Claim:
        """Find what a given noise promises."""
        # refused before anything is drawn
        self._check_noise(noise, outputs)
        # Fresh draws each time: a noise chosen by how these came out would not be
        # fixed. The noise of a search is certified by those that were fresh for it.
        rng = np.random.default_rng(None if self._draws is None else self._draws[0])
        bounded = self._bounded(noise, outputs, rng)
        return self._certificate(noise, bounded, outputs, bound, rng)

    def _check_noise(self, noise: Noise, outputs: Outputs) -> None:
        """Refuse noise of which nothing is known here."""
        outputs.covariance_of(noise)

    # -- what a subclass supplies -------------------------------------------------

    @abstractmethod
    def _found(
        self, outputs: Outputs, rng: np.random.Generator
    ) -> tuple[Noise, Bounded, tuple[Statement, ...]]:
        """Noise within the budget, what it leaks, and what to warn of."""

    @abstractmethod
    def _bounded(
        self, noise: Noise, outputs: Outputs, rng: np.random.Generator
    ) -> Bounded:
        """Bound what leaks through a noise that was fixed beforehand."""

    # -- the parts ----------------------------------------------------------------

    def _certificate(
        self,
        noise: Noise,
        bounded: Bounded,
        outputs: Outputs,
        bound: BoundScenario,
        rng: np.random.Generator,
    ) -> Claim:
        fact, release = outputs.fact, outputs.release
        certified = bounded.certified and fact.certified
        notion = Notion.MUTUAL_INFORMATION
        if bounded.table is not None:
            notion = _BY_COLUMN[fact.secret]
        # both may fail
        confidence = max(0.0, fact.confidence - (1 - bounded.confidence))
        return Claim(
            notion=notion if certified else Notion.ESTIMATED,
            mutual_information=bounded.information,
            table_information=bounded.table,
            entropy=fact.entropy,
            prior_success=outputs.prior_success,
            worst_leakage=self._worst_leakage(noise, outputs, rng),
            confidence=confidence,
            # what is said of single ones says nothing of two releases
            composable=certified and notion is Notion.MUTUAL_INFORMATION,
            assumptions=(
                *meaning(outputs),
                bounded.how,
                *fact.assumptions,
                *release.assumptions,
            ),
            source=bounded.source,
        )

    def _worst_leakage(
        self, noise: Noise, outputs: Outputs, rng: np.random.Generator
    ) -> float | None:
        """Estimate what the most exposed secret leaks; None where it is not known."""
        atoms = outputs.atoms
        if not outputs.exact or not 2 <= len(atoms.distinct_points) <= _MOST:
            return None
        channel = MixtureChannel(atoms, outputs.law_of(noise))
        bank = Bank.stratified(atoms, _LEAKAGE_DRAWS, rng, per_atom=2)
        if outputs.by_column:
            return max(0.0, float(channel.secrets(bank).worst_leakage.max()))
        return max(0.0, float(np.max(channel.atom_leakage(bank))))


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed by which some draws can be made again."""
    return int(rng.integers(2**63))


def _spawned(random_state: Any) -> np.random.Generator:
    """Generator of the draws of an accountant, apart from that of the noise."""
    rng, _ = noise_generator(random_state)
    (child,) = spawned(rng, 1)
    return child
