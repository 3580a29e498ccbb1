"""Accountant that asks all others, and takes the one whose noise is least."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from skpuffer.accountants._composition import PrivacyLoss
from skpuffer.exceptions import (
    Statement,
    UnsupportedError,
    reason_of,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_count, check_positive
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.releases import GradientRelease, QueryRelease
from skpuffer.scenarios import BoundScenario, Scenario
from skpuffer.utils._checks import check_bool

from ._base import (
    DEFAULT_ORDER,
    ROUNDING,
    TRIED,
    Accountant,
    Calibration,
    bind,
    check_order_or_delta,
    compared,
    family_named,
    known_accountants,
    mean_square,
    name_of,
)

__all__ = ["Best"]


_ESTIMATES = Statement("best.candidate_would_estimate")


class Best(Accountant):
    """Choose the accountant with the least expected error for one promise.

    Every accountant that supports the release and the scenario proposes noise for the
    same target, and the noise of least mean square over all coordinates is taken, by
    public facts alone. Accountants that only estimate or are not recommended are left
    out.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise.
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one. Not together with `alpha`.
    candidates : list of Accountant, default=None
        Accountants to ask; their own targets are replaced. None is every recommended
        one, with Gaussian noise and for queries also (discrete) Laplace noise.
    composable : bool, default=False
        Whether to leave out those whose certificates do not add up with others.
    verbose : int, default=0
        Whether to show a progress bar of the candidates.

    Notes
    -----
    Errors within a thousandth of the least count as equal. Among equals a certificate
    that composes is preferred, then one of differential privacy, then one that rests on
    no event, then the one with the fewest assumptions. Noise without a finite variance,
    or of which its accountant warns, comes last.

    The certificate's `choice` names the accountant that was taken and the runners-up,
    with the ratio of their errors. Where several candidates read one public sample with
    a `confidence`, the certificate states the confidence left by the union bound.

    Examples
    --------
    >>> from skpuffer.accountants import Best
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    >>> infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    >>> scenario = LawsScenario([(healthy, infected)])
    >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
    >>> found = Best(epsilon=0.5, alpha=8).calibrate(release, scenario)
    >>> str(found.certificate.choice).partition("(")[0]
    'DistributionAwareWasserstein'
    """

    # the facts are those that its candidates need
    needs = ()
    # each of which says whether noise of dependent coordinates is for it
    _takes_joint_noise = True
    reads: ClassVar = PrivacyLoss.reads

    #: Noise that stands for its own, where one is asked for before the choice.
    noise: str = "gaussian"
    beta: None = None

    @property
    def unit_orders(self) -> tuple[float, ...]:
        """Orders of the norms in which noise may measure moves; see Accountant."""
        return 1.0, 2.0

    def __init__(
        self,
        epsilon: float = 1.0,
        alpha: float | None = None,
        *,
        delta: float | None = None,
        candidates: Sequence[Accountant] | None = None,
        composable: bool = False,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.candidates = candidates
        self.composable = composable
        self.verbose = verbose

    def _check_parameters(self, noise: Noise) -> None:
        check_positive(epsilon=self.epsilon)
        check_order_or_delta(self.alpha, self.delta)
        check_bool(composable=self.composable)
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_count(verbose=self.verbose, least=0)
        if self.candidates is None:
            return
        if not isinstance(self.candidates, (list, tuple)) or not self.candidates:
            raise value_error("best.candidates_not_a_list", candidates=self.candidates)
        for candidate in self.candidates:
            if not isinstance(candidate, Accountant) or isinstance(candidate, Best):
                raise type_error(
                    "best.candidate_not_an_accountant", candidate=candidate
                )
            # as it will be asked: what is wrong with it is said before any fit
            asked = self._at_target(candidate)
            if asked is not None:
                asked.check()

    @property
    def clip_order(self) -> float:
        """Return the order of the norm that clips gradients, one for all candidates."""
        orders = {
            candidate.clip_order
            for candidate in self._asked(GradientRelease)
            if GradientRelease in candidate.reads
        }
        if len(orders) > 1:
            norms = tuple(f"l{order:g}" for order in sorted(orders))
            raise value_error("best.candidates_clip_norms_differ", norms=norms)
        return orders.pop() if orders else 2.0

    def longest_step(self, release: GradientRelease) -> float:
        """Longest step of an optimiser that every candidate accounts for."""
        asked = self._asked(GradientRelease)
        return min((c.longest_step(release) for c in asked), default=math.inf)

    # -- the protocol -------------------------------------------------------------

    def _calibrated(
        self, release: Any, scenario: Scenario | BoundScenario, random_state: Any
    ) -> Calibration:
        """Find the least noise that any candidate keeps the promise with."""
        self.check()
        bound = bind(scenario, release)
        _refuse_empirical(bound)
        found = []
        reasons: list[tuple[Accountant, Statement]] = []
        for candidate in self._shown(self._asked_of(release)):
            try:
                # what those that are not taken would warn of is nobody's concern
                made = candidate._calibrated(release, bound, random_state)
                self._check_target(made.certificate)
            except ValueError as error:
                reasons.append((candidate, reason_of(error)))
                continue
            found.append((mean_square(made.noise, release.dim), candidate, made))
        if not found:
            raise self._none(release, bound, reasons)
        # what leans on single outputs is for those who ask for it by name
        sizes = [
            math.inf if made.warnings and self.candidates is None else error
            for error, _, made in found
        ]
        best = least_of(sizes, [m for *_, m in found])
        others = sorted(
            ((error, other) for i, (error, other, _) in enumerate(found) if i != best),
            key=lambda other: other[0],
        )
        least, winner, made = found[best]
        # the next best noise says enough of how close it was
        unlike = [pair for pair in others if pair[0] > least * (1 + ROUNDING)]
        runners = tuple(
            compared(name_of(other), error, least)
            for error, other in (unlike or others)[:1]
        )
        family = made.certificate.choice
        choice = Statement(
            "best.chosen_by_least_error",
            accountant=name_of(winner),
            family=Statement("best.choice_of_candidate", choice=family)
            if family
            else "",
            among=Statement("best.among_those_not_warning")
            if least > min(error for error, *_ in found)
            else "",
            against=Statement("best.against_runners_up", runners=runners)
            if runners
            else "",
        )
        made_by_all = [m.certificate for *_, m in found]
        stated = self._labelled(made.certificate, made_by_all, choice)
        return replace(made, certificate=stated, accountant=winner)

    def _certified_by_draws(
        self, found: Calibration, release: Any, bound: BoundScenario
    ) -> Certificate:
        """Certify a noise by the candidate that found it, if it is one of these."""
        winner = self._winner(found, release)
        if winner is None:
            return super()._certified_by_draws(found, release, bound)
        certificate = winner._certified_by_draws(found, release, bound)
        self._check_target(certificate, spent=False)
        return replace(certificate, accountant=name_of(self))

    def _by_sensitivity(
        self, found: Calibration, release: Any, bound: BoundScenario
    ) -> bool:
        winner = self._winner(found, release)
        return winner is not None and winner._by_sensitivity(found, release, bound)

    def _winner(self, found: Calibration, release: Any) -> Accountant | None:
        """Return who found a noise, if it is a candidate of this one."""
        winner = found.accountant
        known = {(type(asked), name_of(asked)) for asked in self._asked_of(release)}
        if winner is None or (type(winner), name_of(winner)) not in known:
            return None
        return winner

    def _certified(
        self, noise: Noise, release: Any, bound: BoundScenario
    ) -> Certificate:
        """Return the promise of the least epsilon that any candidate makes."""
        _refuse_empirical(bound)
        asked = list(self._asked_of(release))
        # those of the same noise, or all: an accountant certifies any that it knows
        family = [a for a in asked if _is_of(a, noise.family)]
        found = []
        reasons: list[tuple[Accountant, Statement]] = []
        for candidate in family or asked:
            try:
                certificate = candidate.certify(noise, release, bound)
                self._check_target(certificate, spent=False)
            except ValueError as error:
                reasons.append((candidate, reason_of(error)))
                continue
            found.append((candidate, certificate))
        if not found:
            raise self._none(release, bound, reasons)
        made = [Calibration(noise, certificate) for _, certificate in found]
        best = least_of([spent_by(certificate) for _, certificate in found], made)
        winner, certificate = found[best]
        choice = Statement("best.chosen_by_least_epsilon", accountant=name_of(winner))
        return self._labelled(certificate, [c for _, c in found], choice)

    def _check_support(self, release: Any, bound: BoundScenario) -> None:
        _refuse_empirical(bound)
        reasons = []
        for candidate in self._asked_of(release):
            try:
                candidate._check_support(release, bound)
                unit = candidate._chosen_noise()
                # no promise follows from what is only estimated
                if candidate._fact(release, bound, unit.norm).certified:
                    return
                reasons.append((candidate, _ESTIMATES))
            except ValueError as error:
                reasons.append((candidate, reason_of(error)))
        raise self._none(release, bound, reasons)

    def _need(self, release: Any, bound: BoundScenario) -> type:
        """Kind of the fact that the first candidate works from which can."""
        reasons = []
        for candidate in self._asked_of(release):
            try:
                candidate._check_support(release, bound)
                return candidate._need(release, bound)
            except ValueError as error:
                reasons.append((candidate, reason_of(error)))
        raise self._none(release, bound, reasons)

    # -- the parts ----------------------------------------------------------------

    def _asked_of(self, release: Any) -> Iterable[Accountant]:
        """Yield the candidates for a release, at the target."""
        return self._asked(type(release), counts=release.is_integer)

    def _asked(self, kind: type, *, counts: bool = False) -> Iterable[Accountant]:
        """Yield the candidates for a kind of release, at the target.

        Those that make no promise of this kind are not among them. Noise on the
        integers is for `counts` alone.
        """
        candidates = self.candidates
        if candidates is None:
            candidates = all_candidates(kind, Best, counts)
        for candidate in candidates:
            asked = self._at_target(candidate)
            # defaults are tried in every noise, of which some keep no such promise
            if asked is None or (self.candidates is None and not is_valid(asked)):
                continue
            yield asked

    def _at_target(self, candidate: Accountant) -> Accountant | None:
        """Return a candidate with this budget; None if it promises another thing."""
        if not candidate.recommended:
            return None
        names = candidate.get_params(deep=False)
        target: dict[str, Any] = {"epsilon": self.epsilon}
        if self.delta is not None:
            if "delta" not in names:
                return None
            target["delta"] = self.delta
            if "alpha" in names:
                # what goes with a delta: None, or the order of a class that needs one
                target["alpha"] = usual_alpha(type(candidate))
        else:
            # a class without the parameter may promise at one order alone
            if "alpha" in names:
                target["alpha"] = self._order
            elif getattr(candidate, "alpha", None) != self._order:
                return None
            if "delta" in names:
                target["delta"] = None
        asked: Accountant = clone(candidate).set_params(**target)
        return asked

    @property
    def _order(self) -> float:
        return DEFAULT_ORDER if self.alpha is None else float(self.alpha)

    def _check_target(self, certificate: Certificate, spent: bool = True) -> None:
        """Raise an UnsupportedError if a certificate is of another promise."""
        if not certificate.certified:
            raise UnsupportedError(_ESTIMATES)
        if self.composable and not certificate.composable:
            raise unsupported_error("best.certificate_does_not_compose")
        if self.delta is not None:
            same = (
                certificate.alpha is None
                and certificate.delta <= self.delta
                and certificate.notion.implies(Notion.APPROXIMATE_PUFFERFISH)
            )
        else:
            pure = math.isinf(self._order)
            notion = Notion.PURE_PUFFERFISH if pure else Notion.RENYI_PUFFERFISH
            same = (
                certificate.alpha == self._order
                and certificate.delta == 0
                and certificate.notion.implies(notion)
            )
        if not same:
            raise unsupported_error(
                "best.certificate_of_other_promise", title=certificate.notion.title
            )
        if spent and spent_by(certificate) > self.epsilon * (1 + ROUNDING):
            raise unsupported_error("best.noise_over_budget")

    def _labelled(
        self, certificate: Certificate, others: Sequence[Certificate], choice: Statement
    ) -> Certificate:
        """Certificate of a choice among several, from that of the one taken."""
        confidence = certificate.confidence
        if confidence < 1:
            # which one was taken is read off the sample on which any of them may fail
            confidence = max(0.0, 1 - sum(1 - c.confidence for c in others))
        return replace(
            certificate,
            accountant=name_of(self),
            choice=choice,
            confidence=confidence,
        )

    def _none(
        self,
        release: Any,
        bound: BoundScenario,
        reasons: list[tuple[Accountant, Statement]],
    ) -> UnsupportedError:
        """Say why no candidate will do: each reason once, with those who gave it."""
        names: dict[Statement, list[str]] = {}
        trust = getattr(bound.scenario, "trust", None)
        if trust == "sample" and any(reason == _ESTIMATES for _, reason in reasons):
            # the reasons of all others would hide the one that can be mended
            return unsupported_error("best.prior_only_a_sample", name=release.name)
        for candidate, reason in reasons:
            names.setdefault(reason, []).append(name_of(candidate))
        lines = tuple(
            Statement("best.candidate_with_reason", accountants=who, reason=reason)
            for reason, who in names.items()
        )
        none = Statement("best.no_candidate_makes_promise") if not lines else ""
        return UnsupportedError(
            Statement(
                "best.no_accountant_keeps_promise",
                name=release.name,
                scenario_type=type(bound.scenario).__name__,
                none=none,
                reasons=lines,
            )
        )

    def _shown(self, asked: Iterable[Accountant]) -> Iterable[Accountant]:
        """Candidates, with a progress bar if one is wanted."""
        if not self.verbose:
            return asked
        from tqdm.auto import tqdm  # a display, wanted by few: not at import

        bar: Iterable[Accountant] = tqdm(
            list(asked), desc="accountants", unit="accountant"
        )
        return bar


def _refuse_empirical(bound: BoundScenario) -> None:
    """Refuse to choose where private rows are the prior."""
    # before any candidate is asked: whom it would be, or why nobody, tells of the rows
    if bound.scenario.needs_empirical:
        raise unsupported_error("best.prior_is_empirical")


def _is_of(accountant: Accountant, family: str) -> bool:
    """Whether the noise of an accountant is, or may be, of a family."""
    if accountant._is_auto:
        return family in TRIED
    return accountant._chosen_noise().family == family


# -- accountants to choose from --------------------------------------------------------


def all_candidates(
    kind: type, but: type[Accountant], counts: bool = False
) -> list[Accountant]:
    """Return every recommended accountant, in the noises to try for a release."""
    # Laplace noise hides moves in l1: gradients would be clipped in another norm, and
    # over many steps or votes it needs more than Gaussian noise
    vectors = issubclass(kind, QueryRelease)
    families = (
        [family for family in TRIED if counts or not family_named(family).integer]
        if vectors
        else ["gaussian"]
    )
    found = []
    for known in known_accountants():
        if issubclass(known, but) or not known.recommended:
            continue
        if "noise" in known._get_param_names():
            make: Callable[..., Accountant] = known
            found += [make(noise=family) for family in families]
        else:
            found.append(known._candidate())
    return found


@lru_cache
def usual_alpha(kind: type[Accountant]) -> Any:
    """Return the default of the parameter `alpha` of a class."""
    return inspect.signature(kind).parameters["alpha"].default


def is_valid(accountant: Accountant) -> bool:
    """Whether the parameters of an accountant go together."""
    try:
        accountant.check()
    except ValueError:
        return False
    return True


# -- choice among calibrations that keep one promise: the least error, then the best ---


#: Errors that differ by no more than this share count as equal: scales are found to
#: about so many digits.
_SAME = 1e-3


def spent_by(certificate: Certificate) -> float:
    """Return the epsilon of a certificate, infinite if it states none."""
    return math.inf if certificate.epsilon is None else certificate.epsilon


def least_of(sizes: Sequence[float], made: Sequence[Calibration]) -> int:
    """Return where the least size is; of those about equal, the best certificate."""
    near = min(sizes) * (1 + _SAME)
    # all may be infinite, and then equal
    equal = [i for i, size in enumerate(sizes) if size <= near]
    return min(equal, key=lambda i: _preference(made[i].certificate))


def _preference(certificate: Certificate) -> tuple[Any, ...]:
    """Order in which certificates of one promise are preferred, the best first."""
    return (
        not certificate.composable,
        not certificate.notion.differential,
        certificate.event_delta,
        -certificate.confidence,
        len(certificate.assumptions),
    )
