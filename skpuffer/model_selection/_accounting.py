"""Noise of the trials of a search, by the budget of all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from skpuffer.accountants import (
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.accountants._base import budget_of, name_of
from skpuffer.base import proved
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.run import add_noise
from skpuffer.privacy._best_run import Trial, best_of_runs, every_trial_once, one_trial
from skpuffer.utils._listeners import unheard
from skpuffer.utils._silence import muted, silence

from ._candidates import held_out_context, innermost

if TYPE_CHECKING:
    from collections.abc import Callable

    from skpuffer._template._plan import FitPlan
    from skpuffer.accountants import Accountant
    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate
    from skpuffer.privacy_loss import RandomRuns
    from skpuffer.releases import QueryRelease

    from ._candidates import Reading
    from ._scores import Score


#: Accountants whose certificates hold a curve for any neighbouring tables.
_KINDS = (PrivacyLoss, RenyiDP, GroupPrivacy, OverlapAmplification)

#: How much of the budget the epsilon of a trial may leave: calibrating all candidates
#: takes its time.
_LEFT = 2e-3

#: Steps of the search for it.
_STEPS = 60


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """The release of a search, its noise and its promise.

    Parameters
    ----------
    certificate : Certificate
        Promise of all of the search.
    accountant : Accountant
        Accountant of one trial.
    plans : tuple of FitPlan
        One for each candidate.
    release : QueryRelease
        Release of a score.
    noise : Noise
        Noise of the sum of the score.
    """

    certificate: Certificate
    accountant: Accountant
    plans: tuple[FitPlan, ...]
    release: QueryRelease
    noise: Noise

    @property
    def noises(self) -> list[Noise]:
        """Noise of each candidate's fit, and of a score."""
        return [*(plan.calibration.noise for plan in self.plans), self.noise]


def check_accountant(accountant: Accountant) -> None:
    """Refuse an accountant from which no promise about a search follows."""
    accountant.check()
    # by exact type: what a subclass promises may be something else
    if type(accountant) not in _KINDS:
        raise unsupported_error(
            "search.accountant_unsupported",
            accountant=name_of(accountant),
            names=[kind.__name__ for kind in _KINDS],
        )


def _asked(accountant: Any) -> dict[str, float | None]:
    """Order or delta of what an accountant promises."""
    alpha, delta = getattr(accountant, "alpha", None), accountant.delta
    if type(accountant) is GroupPrivacy and alpha is None and delta is None:
        alpha = 2.0  # as documented there
    if alpha is not None:
        return {"alpha": float(alpha), "delta": None}
    return {"alpha": None, "delta": float(delta)}


def trial_accountant(accountant: Any, epsilon: float) -> Any:
    """Return the accountant of one trial's fit."""
    made = clone(accountant).set_params(epsilon=epsilon)
    if type(made) is OverlapAmplification:
        # how much the belief leaves of the whole search is seen to there
        made.set_params(if_belief_suffices="cap")
    return made


def _of_score(accountant: Any) -> Any:
    """Accountant of one trial's score: of noise as a fit has, unless it was chosen."""
    made = clone(accountant)
    # Of one number Laplace noise errs less at one (epsilon, delta), and costs more in
    # between: the search would pay for that at every order.
    if made.noise == "auto" and _asked(made)["alpha"] != math.inf:
        made.set_params(noise="gaussian")
    return made


def plan_search(
    accountant: Accountant,
    readings: Sequence[Reading],
    score: Score,
    n_scored: int,
    runs: RandomRuns | None,
    rng: np.random.Generator,
) -> SearchPlan:
    """Find the noise of trials with which a search keeps its promise.

    All candidates, and the score, are calibrated to one epsilon of a single trial, the
    largest one at which the whole search keeps within its budget. `runs` of None tries
    every candidate once, and releases all scores.
    """
    asked = _asked(accountant)
    budget = float(accountant.epsilon)
    release: Any = None

    def trials_at(
        epsilon: float,
    ) -> tuple[Any, list[FitPlan], Any, list[Trial]]:
        nonlocal release
        one = trial_accountant(accountant, epsilon)
        plans = [reading.plan(one) for reading in readings]
        context = held_out_context(plans[0], n_scored)
        if release is None:
            release = score.release(context)
        bound = plans[0].task.scenario.bind(context)
        calibration = proved(_of_score(one), release, bound, rng)
        trials = [Trial(plan.whole, calibration.certificate) for plan in plans]
        return one, plans, calibration, trials

    def together(trials: Sequence[Trial]) -> Certificate:
        if runs is None:
            return every_trial_once(trials, **asked)
        return best_of_runs(trials, runs, **asked)

    def spent(epsilon: float) -> float:
        certificate = together(trials_at(epsilon)[-1])
        assert certificate.epsilon is not None  # as of every promise here
        found = certificate.epsilon
        most = getattr(accountant, "max_fallback", None)
        if most is not None and certificate.fallback is not None:
            # in units of the budget, so that both are kept
            found = max(found, certificate.fallback / float(most) * budget)
        return found

    one = _largest_within(spent, budget)
    of_trial, plans, calibration, trials = trials_at(one)
    if getattr(accountant, "if_belief_suffices", None) == "raise":
        # where any noise would do it says so itself
        bound = plans[0].task.scenario.bind(release.context)
        accountant.calibrate(release, bound)
    whole = together(trials).as_asked(budget)
    # of the noise of the trials, found anew since it was last within the budget
    whole.refuse_above(budget_of(accountant), type(accountant).__name__)
    found = SearchPlan(
        certificate=replace(
            whole,
            accountant=name_of(accountant),
            choice=_compared(trials, runs, asked),
        ),
        accountant=of_trial,
        plans=tuple(plans),
        release=release,
        noise=calibration.noise,
    )
    if not isinstance(accountant, OverlapAmplification):
        return found
    anyone = accountant._plain(budget, float(accountant.delta))
    gain = _gain(plan_search(anyone, readings, score, n_scored, runs, rng), found)
    return replace(found, certificate=replace(found.certificate, noise_gain=gain))


def _gain(plain: SearchPlan, found: SearchPlan) -> float | None:
    """Noise that a search takes whatever is believed, over that of one by a belief.

    The least such ratio, of any candidate or of the score.
    """
    certificate = plain.certificate
    # of other records than the belief takes together
    if certificate.coupling_id != found.certificate.coupling_id:
        return None
    assert certificate.curve is not None and certificate.epsilon  # as of every search
    # What it leaves of the budget would have let its noise be less: at most in
    # proportion, as with Laplace noise, and of Gaussian noise by less than that.
    spent = certificate.curve.epsilon(certificate.delta) / certificate.epsilon
    ratios = [
        spent * np.max(more.scale) / np.max(less.scale)
        for more, less in zip(plain.noises, found.noises, strict=True)
        if not less.is_zero
    ]
    return float(min(ratios)) if ratios else None


def _compared(
    trials: Sequence[Trial], runs: RandomRuns | None, asked: dict[str, float | None]
) -> Statement:
    """What the noise of a trial would promise without a search, and of a plain one."""
    single = one_trial(trials, **asked).epsilon
    if runs is None:
        return Statement(
            "search.compared_every_candidate_once", n_trials=len(trials), single=single
        )
    plain = every_trial_once(trials, **asked).epsilon
    return Statement(
        "search.compared_best_of_trials",
        mean=runs.mean,
        n_trials=len(trials),
        single=single,
        plain=plain,
    )


def _largest_within(spent: Callable[[float], float], budget: float) -> float:
    """Return nearly the largest epsilon of a trial with which a search keeps a budget.

    What is spent grows with it, about in proportion. Whatever it does, an epsilon is
    taken only if what is spent there is within the budget.
    """
    epsilon, found = budget, 0.0
    for _ in range(_STEPS):
        total = spent(epsilon)
        if total <= budget:
            found = max(found, epsilon)
            # nothing is gained by more than the whole budget for one trial
            if total >= budget * (1 - _LEFT) or epsilon >= budget:
                break
        epsilon = min(epsilon * budget / max(total, 1e-300) * (1 - _LEFT / 4), budget)
        if epsilon <= found:
            break
    if not found:
        raise unsupported_error("search.no_noise_for_budget")
    return found


# -- trials of a search: one private fit and its noisy score each, in silence ----------


try:
    import cloudpickle
except ImportError:  # joblib brings it along, before 1.6 as a part of its own
    from joblib.externals import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate

    from ._scores import Score


@dataclass(frozen=True, kw_only=True)
class Trying:
    """One candidate, ready to be tried as often as it is drawn.

    Parameters
    ----------
    estimator : estimator
        With its parameters set, and the accountant of a trial once it is planned.
    X_fit, y_fit : rows
        Rows of the part that is fitted, after steps that change each by itself.
    X_score : rows
        Rows of the held-out part, likewise.
    y_score : ndarray
        Their targets, as the estimator reads them.
    planned : Certificate or None
        That of its fit, as it was accounted for.
    noise : Noise or None
        Noise of the sum of the score, as calibrated.
    """

    estimator: Any
    X_fit: Any
    y_fit: Any
    X_score: Any
    y_score: Any
    score: Score
    planned: Certificate | None = None
    noise: Noise | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one trial: private of the table, whichever candidate it is of.

    Parameters
    ----------
    candidate : int
        Its position.
    score : float
        Noisy; minus infinity where the fit or its score raised an error.
    coin : float
        That breaks ties.
    estimator : estimator or None
        Fitted.
    as_planned : bool
        Whether the fit released what was accounted for.
    """

    candidate: int
    score: float
    coin: float
    estimator: Any = None
    as_planned: bool = True


def try_once(trying: Trying, candidate: int, random_state: Any) -> Outcome:
    """Fit a candidate and score it, in silence."""
    planned, noise = trying.planned, trying.noise
    assert planned is not None and noise is not None  # since it is planned
    rng, _ = noise_generator(random_state)
    coin = float(rng.random())
    # nobody hears of the fit, not even that there was one: it is no release of its own
    with silence():
        try:
            model = muted(trying.estimator)
            innermost(model).set_params(random_state=random_state)
            model.fit(trying.X_fit, trying.y_fit)
            exact = trying.score.total(model, trying.X_score, trying.y_score)
            noisy = add_noise(
                exact,
                noise,
                rng,
                n_records=len(trying.y_score),
                integer=trying.score.is_integer,
            )
        # What an error says may tell of the rows. It counts as the lowest score; that
        # no one record decides whether there is one is an assumption of the
        # certificate.
        except Exception:
            return Outcome(candidate=candidate, score=-np.inf, coin=coin)
    return Outcome(
        candidate=candidate,
        score=float(noisy[0]),
        coin=coin,
        estimator=model,
        as_planned=model.certificate_.curve == planned.curve,
    )


def _try_packed(packed: bytes, candidate: int, random_state: Any) -> Outcome:
    return try_once(cloudpickle.loads(packed), candidate, random_state)


def run_trials(
    tryings: Sequence[Trying],
    drawn: Sequence[int],
    random_states: Sequence[Any],
    n_jobs: int | None,
) -> list[Outcome]:
    """Run the trials that were drawn."""
    jobs = list(zip(drawn, random_states, strict=True))
    # also where a context of joblib's asks for more than one
    if effective_n_jobs(n_jobs) == 1:
        return [try_once(tryings[i], i, state) for i, state in jobs]
    # packed here, where nobody hears of it: an estimator that is packed takes along who
    # would hear of its fits in another process
    with unheard():
        packed = {i: cloudpickle.dumps(tryings[i]) for i in set(drawn)}
    found: list[Outcome] = Parallel(n_jobs=n_jobs)(
        delayed(_try_packed)(packed[i], i, state) for i, state in jobs
    )
    return found


def best_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of the highest score, ties broken by coins."""
    return max(outcomes, key=lambda one: (one.score, one.coin))
