"""Certificate of the best of a random number of fits, each scored on its own rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import CompositionError, Statement
from skpuffer.kernel.composed_curves import WorstCurve
from skpuffer.privacy_loss import (
    BestRunCurve,
    GaussianCurve,
    RandomRuns,
    compose_curves,
)
from skpuffer.privacy_loss._overlap import OverlapCurve

from ._compose import promise_of
from ._robustness import arbitrary_count, is_of_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer.kernel.curves import PrivacyCurve

    from ._certificate import Certificate


SOURCE = Statement("source.best_of_random_runs")


@dataclass(frozen=True)
class Trial:
    """The releases of one candidate of a search, whenever it is tried.

    `fit`: certificate of the model, which reads one part of the table. `score`:
    certificate of its noisy score, which reads the rest of the table and the model.
    """

    fit: Certificate
    score: Certificate

    @property
    def parts(self) -> tuple[Certificate, Certificate]:
        """Both certificates."""
        return self.fit, self.score


def best_of_runs(
    trials: Sequence[Trial],
    runs: RandomRuns,
    alpha: float | None = None,
    delta: float | None = None,
) -> Certificate:
    """Return the certificate of the best of a random number of trials.

    Each run draws one of the trials uniformly. The trial with the highest score leaves:
    which it was, its model and its score. Give `alpha` or `delta`, for a Rényi or an
    (epsilon, delta) promise.
    """
    _refuse_unfit(trials)
    plain = BestRunCurve(_worst(_curves(trials)), runs)
    return _certificate(trials, plain, SOURCE, alpha, delta)


def every_trial_once(
    trials: Sequence[Trial], alpha: float | None = None, delta: float | None = None
) -> Certificate:
    """Return the certificate of all trials together, with every score and model.

    It is the cost of a plain search over the same grid, with the same noise.
    """
    _refuse_unfit(trials)
    sides = [[_plain(part) for part in side] for side in _sides(trials)]
    if _count(trials) == 1:
        # the record is in one of the two parts
        plain = _worst([compose_curves(side) for side in sides])
    else:
        plain = compose_curves([curve for side in sides for curve in side])
    return _certificate(
        trials, plain, Statement("source.every_trial_once"), alpha, delta
    )


def one_trial(
    trials: Sequence[Trial], alpha: float | None = None, delta: float | None = None
) -> Certificate:
    """Return the certificate of a single trial, whichever it is."""
    _refuse_unfit(trials)
    return _certificate(
        trials, _worst(_curves(trials)), Statement("source.one_trial"), alpha, delta
    )


def _sides(trials: Sequence[Trial]) -> tuple[list[Certificate], list[Certificate]]:
    """Certificates of all fits, and of all scores."""
    return [trial.fit for trial in trials], [trial.score for trial in trials]


def _curves(trials: Sequence[Trial]) -> list[PrivacyCurve]:
    """Return the curves of one run of each trial, whatever is believed, for any record.

    One record lies in one of the two parts. If that is the fitted one, the score is
    computed from the noisy model and equal rows; otherwise the model is the same. Of
    several records some may lie in each, and then the two are composed.
    """
    if _count(trials) == 1:
        return [_plain(part) for trial in trials for part in trial.parts]
    return [compose_curves([_plain(part) for part in trial.parts]) for trial in trials]


def _worst(curves: Sequence[PrivacyCurve]) -> PrivacyCurve:
    """Curve that is above all of some curves."""
    known = [curve.gaussian_mu for curve in curves if curve.gaussian_mu is not None]
    kept: list[PrivacyCurve] = [c for c in curves if c.gaussian_mu is None]
    if known:
        # of Gaussians the one farthest apart is above all others
        kept.append(GaussianCurve(max(known)))
    kept = list(dict.fromkeys(kept))
    return kept[0] if len(kept) == 1 else WorstCurve(tuple(kept))


def _plain(certificate: Certificate) -> PrivacyCurve:
    """Curve of a release for records that become any other."""
    curve = certificate.curve
    assert curve is not None  # as has been seen to
    return curve.curve if isinstance(curve, OverlapCurve) else curve


def _count(trials: Sequence[Trial]) -> int | None:
    """How many records neighbouring tables differ in, None of units of several."""
    return arbitrary_count(trials[0].fit)


def _belief(certificate: Certificate) -> tuple[object, ...] | None:
    """What a promise under a belief about one record rests on, None without."""
    curve = certificate.curve
    if not isinstance(curve, OverlapCurve):
        return None
    return (
        curve.overlap,
        curve.wider,
        certificate.record,
        certificate.event_delta,
        certificate.confidence,
    )


def _refuse_unfit(trials: Sequence[Trial]) -> None:
    """Refuse trials from which no promise about their best one follows."""
    if not trials:
        raise CompositionError(Statement("compose.best_run_empty"))
    every = [part for trial in trials for part in trial.parts]
    for part in every:
        if not part.certified or part.curve is None or part.notion.approximate is None:
            raise CompositionError(
                Statement(
                    "compose.best_run_estimate_or_curveless",
                    part=part,
                    release=part.release,
                )
            )
        part._refuse_sum()
        # In a part of the table may be any of the records that a coupling moves, and a
        # chain or a block with gaps is another table.
        known = arbitrary_count(part) is not None or is_of_units(part)
        if not (part.composable and known):
            raise CompositionError(
                Statement(
                    "compose.best_run_table_coupling", part=part, release=part.release
                )
            )
        # one that is about the tables would count once for each candidate
        if part.event_delta and _belief(part) is None:
            raise CompositionError(
                Statement(
                    "compose.best_run_prior_event", part=part, release=part.release
                )
            )
    if len({(part.coupling_id, part.relation) for part in every}) > 1:
        raise CompositionError(
            Statement(
                "compose.best_run_neighbours_differ",
                value=sorted({str(part.coupling_id) for part in every}),
            )
        )
    if any(_belief(part) != _belief(every[0]) for part in every):
        raise CompositionError(Statement("compose.best_run_beliefs_differ"))


def _certificate(
    trials: Sequence[Trial],
    plain: PrivacyCurve,
    source: Statement,
    alpha: float | None,
    delta: float | None,
) -> Certificate:
    """Certificate of a curve for any record, amplified once where there is a belief."""
    parts = [part for trial in trials for part in trial.parts]
    first = trials[0].fit
    curve = first.curve
    amplified = plain
    if isinstance(curve, OverlapCurve):
        amplified = OverlapCurve(plain, curve.overlap, curve.wider)
        source = Statement("source.amplified_once", source=source)
    total = replace(
        first,
        curve=amplified,
        # those of one fit, of which it is not made
        events=None,
        n_records=None
        if first.n_records is None or trials[0].score.n_records is None
        else first.n_records + trials[0].score.n_records,
        epsilon_lower=None,
        assumptions=tuple(dict.fromkeys(a for c in parts for a in c.assumptions)),
        sensitivity=None,
        norm=None,
        record_sensitivity=None,
        noise_gain=None,
        errors=(),
        source=Statement(
            "source.with_parts",
            source=source,
            parts=sorted({c.source for c in parts}, key=str),
        ),
        choice="",
        release=" | ".join(dict.fromkeys(c.release for c in parts)),
        n_releases=1,
    )
    return promise_of(total, parts, alpha, delta)
