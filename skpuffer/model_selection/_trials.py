"""Trials of a search: one private fit and its noisy score each, in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.rounding import add_noise
from skpuffer.utils._listeners import unheard
from skpuffer.utils._silence import muted, silence

from ._candidates import innermost

try:
    import cloudpickle
except ImportError:  # joblib brings it along, before 1.6 as a part of its own
    from joblib.externals import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer.noise import Noise
    from skpuffer.privacy import Certificate

    from ._scores import Score

__all__ = ["Outcome", "Trying", "best_outcome", "run_trials"]


@dataclass(frozen=True, kw_only=True)
class Trying:
    """One candidate, ready to be tried as often as it is drawn.

    Parameters
    ----------
    estimator : estimator
        With its parameters set, and the accountant of a trial once it is planned.
    X_fit, y_fit : rows
        Of the part that is fitted, after steps that change each by itself.
    X_score : rows
        Of the held-out part, likewise.
    y_score : ndarray
        Their targets, as the estimator reads them.
    score : Score
    planned : Certificate or None
        That of its fit, as it was accounted for.
    noise : Noise or None
        Of the sum of the score, as calibrated.
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
    """What one trial came to: private of the table, whichever candidate it is of.

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
    """Fit a candidate and score it, in silence.

    Parameters
    ----------
    trying : Trying
    candidate : int
    random_state : numpy.random.Generator or None
        None is the operating system's entropy.

    Returns
    -------
    Outcome
    """
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
    """Run the trials that were drawn.

    Parameters
    ----------
    tryings : sequence of Trying
        One for each candidate.
    drawn : sequence of int
        Positions of those that are tried, with repetition.
    random_states : sequence of Generator or None
        One for each trial.
    n_jobs : int or None

    Returns
    -------
    list of Outcome
    """
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
