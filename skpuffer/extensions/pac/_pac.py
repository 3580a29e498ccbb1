"""PAC privacy by the covariance of the outputs, in its several readings."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skpuffer.accountants import QUERY_FIELDS, Account, Accountant, Found, accounts_for
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    reason_of,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.draws import noise_generator, spawned
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_option,
    check_positive,
    check_probability,
)
from skpuffer.noise import Noise
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, OutputSamples

from ._outputs import Outputs
from .information._atoms import Bank
from .information._channel import MixtureChannel
from .information._corrections import donsker_varadhan_gap, sliced_gap
from .information._gaussian import (
    algorithm1,
    check_basis,
    closed_form,
    efficient,
    inflated_covariance,
    log_det,
    proportional,
    waterfill,
)

# -- base of accountants whose budget is a mutual information, in nats -----------------


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
        Information of the output with the secret in nats.
    table : float or None
        Information of the output with the whole table, where it differs.
    confidence : float
        Probability with which all of it holds.
    how, source : Statement
        Basis of the bound, and where it is proved.
    draws : tuple of (int, float) or None
        Seed of draws of its own, and their share of what may fail.
    """

    information: float = math.inf
    table: float | None = None
    certified: bool = True
    confidence: float = 1.0
    how: Statement
    source: Statement
    draws: tuple[int, float] | None = None


#: Noise, what it leaks, and what to warn of.
Setting = tuple[Noise, Bounded, tuple[Statement, ...]]


class _InformationAccountant(Accountant):
    """Base of accountants of mutual information, which have the parameter `budget`.

    A subclass sets noise by `_covariance` and bounds its leakage by `_bounded`.
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
            partial(self._calibrate, outputs),
            partial(self._certify, outputs),
        )

    def _calibrate(self, outputs: Outputs, unit: Noise, random_state: Any) -> Found:
        """Set noise, and bound what leaks through it."""
        # apart from the draws of the noise
        (child,) = spawned(noise_generator(random_state)[0], 1)
        seed = seed_of(child)
        rng = np.random.default_rng(seed)
        noise, bounded, warnings = self._found(outputs, rng)
        certificate = self._certificate(noise, bounded, outputs, rng)
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

    def _certify(self, outputs: Outputs, noise: Noise) -> Claim:
        """Find what a given noise promises."""
        # refused before anything is drawn
        self._check_noise(noise, outputs)
        # Fresh draws each time: a noise chosen by how these came out would not be
        # fixed. The noise of a search is certified by those that were fresh for it.
        rng = np.random.default_rng(None if self._draws is None else self._draws[0])
        bounded = self._bounded(noise, outputs, rng)
        return self._certificate(noise, bounded, outputs, rng)

    def _check_noise(self, noise: Noise, outputs: Outputs) -> None:
        """Refuse noise of which nothing is known here."""
        outputs.covariance_of(noise)

    # -- what a subclass supplies -------------------------------------------------

    @abstractmethod
    def _found(self, outputs: Outputs, rng: Generator) -> Setting:
        """Noise within the budget, what it leaks, and what to warn of."""

    @abstractmethod
    def _bounded(self, noise: Noise, outputs: Outputs, rng: Generator) -> Bounded:
        """Bound what leaks through a noise that was fixed beforehand."""

    # -- the parts ----------------------------------------------------------------

    def _certificate(
        self, noise: Noise, bounded: Bounded, outputs: Outputs, rng: Generator
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
        self, noise: Noise, outputs: Outputs, rng: Generator
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


def seed_of(rng: Generator) -> int:
    """Draw a seed by which some draws can be made again."""
    return int(rng.integers(2**63))


# -- pAC privacy by the covariance of the outputs, in its several readings -------------


#: Rules that need nothing but a covariance and a budget.
_RULES: dict[str, Callable[[ArrayLike, float], Floats]] = {
    "waterfill": waterfill,
    "closed_form": closed_form,
    "proportional": proportional,
}
_METHODS = (*_RULES, "efficient", "algorithm1", "confidence")

#: Defaults of the parameters that go with one method.
_CONFIDENCE, _SHARE, _SECURITY = 0.95, 0.8, 1e-4

_EXACT = Statement("assume.exact_covariance_for_certain")
#: Draws of the release by which a function is fitted and bounded.
_DRAWS = 20_000

_CORRECTIONS = ("sliced", "donsker_varadhan")


class PAC(_InformationAccountant):
    """Gaussian noise that bounds a mutual information by the outputs' covariance.

    PAC privacy bounds what anybody can infer, on average, about a table drawn of a
    known prior. It takes any query that can be run on tables of the prior, without a
    sensitivity. The scenario says which prior: see
    :class:`~skpuffer.scenarios.SubsampleScenario`. The budget is about the whole table,
    and so about each function of it, such as a single record's membership.

    Parameters
    ----------
    budget : float, default=0.5
        Mutual information of table and output in nats.
    method : {'waterfill', 'closed_form', 'proportional', 'efficient', 'confidence', \
            'algorithm1'}, default='waterfill'
        - 'waterfill': the least total variance that keeps the budget.
        - 'closed_form': standard deviations in proportion to the fourth roots of the
          variances along the principal axes; spends less than the budget.
        - 'proportional': noise in the shape of the outputs' own covariance.
        - 'efficient': as 'closed_form', along the axes of `basis`.
        - 'confidence': 'waterfill' for the largest covariance that the draws of a
          larger prior allow. The release needs a ball that holds its outputs.
        - 'algorithm1': as published. Always an estimate; the release needs a ball.
    correction : {'sliced', 'donsker_varadhan'}, default=None
        Correction to take off the bound for outputs that are not Gaussian, where all of
        the prior is known. The noise stays; the rest of the budget is left for other
        releases. 'sliced' holds for certain; 'donsker_varadhan' is larger and holds
        with the `confidence`.
    confidence : float, default=None
        Probability that the budget is kept with ``method='confidence'``, or that the
        'donsker_varadhan' correction holds. None is 0.95.
    basis : array-like of shape (dim, dim), default=None
        With ``method='efficient'``: public orthonormal columns, of the output in its
        units. None is the axes of the coordinates.
    n_tables : int, default=None
        With ``method='confidence'``: tables drawn to learn from. None is as many as the
        scenario has drawn.
    share : float, default=None
        With ``method='algorithm1'``: the part v of the budget. None is 0.8.
    security : float, default=None
        With ``method='algorithm1'``: the parameter c, a variance. None is 1e-4 of the
        largest.

    See Also
    --------
    ResidualPAC : Noise by the information itself: less, and for single records too.

    Notes
    -----
    The bound holds for certain by the covariance of all tables of a prior
    (`prior='design'` or 'enumerated' of
    :class:`~skpuffer.scenarios.SubsampleScenario`). By that of a sample it is an
    estimate, unless ``method='confidence'``.

    It is an average over one prior, and no differential privacy: outliers are protected
    least, see `worst_leakage` of the certificate. The attacker is assumed to know the
    pool of which tables are drawn. Noise is least in the units of the release.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy. Zhang and Vorobeychik (2025), Breaking the
    Gaussian barrier: Residual-PAC privacy for automatic privatization.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import PAC
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import SubsampleScenario
    >>> scenario = SubsampleScenario(np.arange(10.0)[:, None], 5, prior="enumerated")
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    >>> found = PAC(budget=0.1).calibrate(mean, scenario)
    >>> found.noise.variance(1).round(4)
    array([4.1403])
    >>> found.certificate
    Certificate(notion='mutual_information', mutual_information=0.1)
    """

    def __init__(
        self,
        budget: float = 0.5,
        method: str = "waterfill",
        *,
        correction: str | None = None,
        confidence: float | None = None,
        basis: ArrayLike | None = None,
        n_tables: int | None = None,
        share: float | None = None,
        security: float | None = None,
    ) -> None:
        self.budget = budget
        self.method = method
        self.correction = correction
        self.confidence = confidence
        self.basis = basis
        self.n_tables = n_tables
        self.share = share
        self.security = security

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_option(_METHODS, method=self.method)
        if self.method == "algorithm1" and self.confidence is not None:
            raise value_error("pac.confidence_with_algorithm1")
        check_option((None, *_CORRECTIONS), correction=self.correction)
        asked = self.method == "confidence" or self.correction == "donsker_varadhan"
        if self.confidence is not None and not asked:
            raise value_error("pac.confidence_without_its_method")
        for name, method in (
            ("n_tables", "confidence"),
            ("basis", "efficient"),
            ("share", "algorithm1"),
            ("security", "algorithm1"),
        ):
            if getattr(self, name) is not None and self.method != method:
                raise value_error(
                    "pac.parameter_of_other_method",
                    name=name,
                    method=method,
                    given=self.method,
                )
        if self.confidence is not None:
            check_probability(confidence=self.confidence)
        if self.n_tables is not None:
            check_count(n_tables=self.n_tables, least=2)
        if self.basis is not None:
            check_basis(self.basis)
        if self.share is not None:
            check_probability(share=self.share)
        if self.security is not None:
            check_positive(security=self.security)

    def _check_release(self, release: QueryRelease) -> None:
        if self.method == "algorithm1":
            check_ball(release, "PAC(method='algorithm1')")

    # -- what the base asks for ---------------------------------------------------

    def _found(self, outputs: Outputs, rng: Generator) -> Setting:
        self._check_correction(outputs)
        covariance, rests = self._spread(outputs, rng)
        noise = outputs.noise(self._rule(covariance, outputs))
        warnings: tuple[Statement, ...] = ()
        if self.method == "algorithm1":
            warnings = (Statement("pac.algorithm1_estimate_only"),)
        return noise, self._through(noise, covariance, rests, outputs, rng), warnings

    def _bounded(self, noise: Noise, outputs: Outputs, rng: Generator) -> Bounded:
        self._check_correction(outputs)
        return self._through(noise, *self._spread(outputs, rng), outputs, rng)

    # -- the parts ----------------------------------------------------------------

    def _through(
        self,
        noise: Noise,
        covariance: Floats,
        rests: Bounded,
        outputs: Outputs,
        rng: Generator,
    ) -> Bounded:
        """Bound what leaks, by Gaussian outputs of a covariance."""
        leaks = log_det(covariance, outputs.covariance_of(noise))
        bounded = replace(rests, information=leaks)
        if not outputs.exact:
            return bounded
        corrected = self._corrected(bounded, noise, outputs, rng)
        # without any noise there is no more to learn than the output; only then, as
        # what a correction is taken off is the Gaussian bound and nothing less
        least = min(corrected.information, outputs.atoms.output_entropy)
        return replace(corrected, information=max(0.0, least))

    def _check_correction(self, outputs: Outputs) -> None:
        if self.correction is not None and not outputs.exact:
            raise unsupported_error(
                "pac.correction_needs_exact_covariance",
                correction=self.correction,
                name=outputs.release.name,
            )

    def _corrected(
        self, bounded: Bounded, noise: Noise, outputs: Outputs, rng: Generator
    ) -> Bounded:
        """Take off what a release that is not Gaussian tells less than a Gaussian."""
        covariance = outputs.covariance_of(noise)
        noisy = np.diag(covariance) > 0
        if self.correction is None or not noisy.any():
            return bounded
        # what has no noise varies not at all, or the bound is infinite
        inside = covariance[np.ix_(noisy, noisy)]
        points, weights = outputs.atoms.points[:, noisy], outputs.atoms.prior
        if self.correction == "sliced":
            gap, confidence = sliced_gap(points, inside, weights), 1.0
            how = Statement("assume.corrected_by_projections", rests=bounded.how)
        else:
            confidence = self._confidence
            draws = points[rng.choice(len(points), _DRAWS, p=weights)]
            draws = draws + rng.multivariate_normal(
                np.zeros(len(inside)), inside, size=_DRAWS, method="cholesky"
            )
            gap = donsker_varadhan_gap(
                draws,
                outputs.atoms.mean[noisy],
                outputs.spread[np.ix_(noisy, noisy)] + inside,
                gamma=1 - confidence,
                rng=rng,
            )
            how = Statement(
                "assume.corrected_by_function", rests=bounded.how, confidence=confidence
            )
        return replace(
            bounded,
            information=bounded.information - gap,
            confidence=min(bounded.confidence, confidence),
            how=how,
        )

    @property
    def _confidence(self) -> float:
        return _CONFIDENCE if self.confidence is None else float(self.confidence)

    def _rule(self, covariance: Floats, outputs: Outputs) -> Floats:
        """Covariance of the noise by the method asked for, in units."""
        budget = float(self.budget)
        if self.method == "efficient":
            return efficient(covariance, budget, self.basis)
        if self.method != "algorithm1":
            # 'confidence' has raised the covariance already
            return _RULES.get(self.method, waterfill)(covariance, budget)
        center, radius = outputs.ball
        share = _SHARE if self.share is None else float(self.share)
        largest = float(np.diag(covariance).max())
        security = _SECURITY * largest if self.security is None else self.security
        return algorithm1(
            covariance,
            v=share * budget,
            beta_prime=(1 - share) * budget,
            c=security,
            # of the vectors themselves, wherever their ball is
            radius=radius + float(np.linalg.norm(center)),
        )

    def _spread(self, outputs: Outputs, rng: Generator) -> tuple[Floats, Bounded]:
        """Covariance of the outputs, and how far it may be relied on."""
        n = len(outputs.fact.draws)
        if self.method == "algorithm1":
            how = Statement("assume.confidence_unquantified", n_outputs=n)
            source = Statement("source.pac_algorithm1")
            rests = Bounded(certified=False, how=how, source=source)
            return outputs.spread, rests
        if outputs.exact:
            rests = Bounded(how=_EXACT, source=self._source)
            return outputs.spread, rests
        if self.method == "confidence":
            return self._inflated(outputs, rng)
        rests = Bounded(
            certified=False,
            how=Statement("assume.covariance_plugged_in", n_outputs=n),
            source=self._source,
        )
        return outputs.spread, rests

    @property
    def _source(self) -> Statement:
        return Statement("source.pac_privacy", method=self.method)

    def _inflated(self, outputs: Outputs, rng: Generator) -> tuple[Floats, Bounded]:
        """Largest covariance that fresh draws leave possible."""
        check_ball(outputs.release, "PAC(method='confidence')")
        n = len(outputs.fact.draws) if self.n_tables is None else int(self.n_tables)
        draws = fresh_draws(outputs, n, rng)
        confidence = self._confidence
        center, radius = outputs.ball
        away = draws - center
        # rounding may leave an output on the sphere outside of it
        covariance, _ = inflated_covariance(
            away.T @ away / n, n, radius=radius * (1 + 1e-9), gamma=1 - confidence
        )
        rests = Bounded(
            confidence=confidence,
            how=Statement(
                "assume.covariance_bounded_by_bernstein",
                confidence=confidence,
                n_tables=n,
            ),
            source=Statement("source.pac_matrix_bernstein"),
        )
        return covariance, rests


def check_ball(release: QueryRelease, who: str) -> None:
    """Refuse a release whose outputs nothing bounds; `who` is named in the message."""
    if release.ball is None:
        raise unsupported_error("pac.ball_missing", owner=who, name=release.name)


def fresh_draws(outputs: Outputs, n: int, rng: Any) -> Floats:
    """Return outputs of fresh tables of the prior in units, of shape (n, dim)."""
    release = outputs.release
    if outputs.fact.again is None:
        raise unsupported_error("pac.fresh_tables_not_drawn", name=release.name)
    found = np.asarray(outputs.fact.again(n, rng), dtype=float)
    good = found.shape == (n, len(outputs.units)) and np.all(np.isfinite(found))
    if not good or not release.ball.holds(found):
        raise unsupported_error("pac.fresh_outputs_malformed", name=release.name)
    return outputs.in_units(found)


# -- what a certificate of mutual information says in words ----------------------------


#: Of any budget; see section 5 of Zhang and Vorobeychik, and Xiao and Devadas.
_AVERAGE = Statement("assume.average_over_prior")
_NO_DP = Statement("assume.not_differential_privacy")

#: Of outputs that were simulated: chance in the query would be another input.
_DETERMINISTIC = Statement("assume.query_deterministic")

_OF_COLUMN = {
    "record": Statement("assume.record_seen_by_itself"),
    "groups": Statement("assume.group_secret_seen_by_itself"),
}


def meaning(outputs: Outputs) -> tuple[Statement, ...]:
    """Return what a bound on mutual information means, in sentences."""
    said = [_AVERAGE, _NO_DP, _DETERMINISTIC]
    if outputs.by_column:
        said.append(_OF_COLUMN[outputs.fact.secret])
    if outputs.exact and outputs.constant:
        count, dim = outputs.constant, outputs.atoms.dim
        said.append(
            Statement("assume.constant_coordinates_released", count=count, dim=dim)
        )
    if outputs.release.ball is not None:
        ball = outputs.release.ball
        said.append(Statement("assume.outputs_projected_to_ball", radius=ball.radius))
    return tuple(said)
