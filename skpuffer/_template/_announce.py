"""What a fit warns of before anything leaves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    NoGainWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    Statement,
    WeakPromiseWarning,
)
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._warn import warn

from ._classes import declares_classes

if TYPE_CHECKING:
    from skpuffer.accountants import Accountant, Calibration
    from skpuffer.privacy import Certificate
    from skpuffer.scenarios import BoundScenario

__all__ = ["announce", "announce_gain", "announce_weakness"]

#: A gain over differential privacy up to here is none: noise is found to about so many
#: digits.
_NO_GAIN = 1 + 1e-3

#: Above this an epsilon is hardly a promise by itself.
_LARGE_EPSILON = 10.0

#: More whole numbers than this are rather a count or an amount than names of classes.
_MANY_CLASSES = 50

# What was said in which fit of an outermost estimator. Few of them run at a time.
_SAID: OrderedDict[Any, None] = OrderedDict()
_MOST_SAID = 1000


def announce_gain(
    estimator: Any,
    calibration: Calibration,
    accountant: Accountant,
    release: Any,
    bound: BoundScenario,
) -> None:
    """Warn where differential privacy promises more for the same noise."""
    scenario = bound.scenario
    # it is differential privacy itself, if not of targets alone
    if isinstance(scenario, RecordScenario) and scenario.relation != "relabel":
        return
    # a mutual information is no promise at the epsilon of any other
    if calibration.certificate.epsilon is None:
        return
    # not at import, as most fits end above
    from skpuffer.accountants._gain import gain_over_records

    compared = gain_over_records(calibration, accountant.epsilon, release, bound)
    if compared is None or compared[0] > _NO_GAIN:
        return
    gain, count = compared
    warn(
        Statement(
            "scenario.gains_nothing_over_dp",
            estimator_type=type(estimator).__name__,
            count=count,
            gain=gain,
        ),
        NoGainWarning,
    )


def announce(
    estimator: Any,
    certificate: Certificate,
    seeded: bool,
    exact: bool,
    leaks: Iterable[Statement] = (),
) -> None:
    """Warn of what weakens a promise, before anything leaves."""
    name = type(estimator).__name__
    if seeded:
        warn(
            Statement("noise.drawn_from_seed", name=name),
            SeededNoiseWarning,
        )
    # where a mutual information allows for it, its accountant has warned already
    if exact and not certificate.mutual_information:
        why = Statement("scenario.no_pair_moves_release")
        # no noise, yet a cost: the output's own spread under the prior hides the secret
        if certificate.epsilon:
            why = Statement("scenario.promise_rests_on_prior_variance")
        warn(
            Statement("release.exact_without_noise", name=name, why=why),
            PrivacyWarning,
        )
    for leak in leaks:
        warn(Statement("pipeline.leak", name=name, leak=leak), PrivacyLeakWarning)
    # a leak is the better reason, and has just been given
    if not certificate.notion.certified and not leaks:
        warn(
            Statement("scenario.samples_only_estimate", name=name),
            EstimatedGuaranteeWarning,
        )


def announce_weakness(
    estimator: Any, certificate: Certificate, fit: Any = None
) -> None:
    """Warn of a weak promise, once in a search or pipeline (and worker process).

    Parameters
    ----------
    estimator : private estimator
    certificate : Certificate
        What is about to be promised.
    fit : hashable or None, default=None
        Names the fit of the outermost estimator, such as a search, that this one is
        part of. None warns in any case.
    """
    for kind, text in _weaknesses(estimator, certificate):
        # the numbers may differ from fold to fold, and the advice does not
        key = (fit, type(estimator).__name__, kind)
        if fit is not None and key in _SAID:
            continue
        warn(
            Statement("plain.subject", subject=type(estimator).__name__, text=text),
            WeakPromiseWarning,
        )
        # only now: where warnings are errors, every fit is stopped by it
        _SAID[key] = None
        while len(_SAID) > _MOST_SAID:
            _SAID.popitem(last=False)


def _weaknesses(estimator: Any, c: Certificate) -> Iterator[tuple[str, Statement]]:
    """Kind and text of each weakness, from public facts."""
    n = c.n_records
    if n is not None and c.delta * n >= 1:
        yield (
            "delta",
            Statement("parameter.delta_above_inverse_records", delta=c.delta, n=n),
        )
    if c.epsilon is not None and c.epsilon > _LARGE_EPSILON:
        yield (
            "epsilon",
            Statement(
                "parameter.epsilon_large",
                epsilon=c.epsilon,
                most=_LARGE_EPSILON,
                factor=np.exp(min(c.epsilon, 700.0)),
            ),
        )
    classes = getattr(estimator, "classes_", None)
    if classes is None or not declares_classes(estimator):
        return
    if _are_many_numbers(classes):
        yield (
            "classes",
            Statement("target.classes_are_whole_numbers", n_classes=len(classes)),
        )


def _are_many_numbers(classes: Any) -> bool:
    """Whether class labels look like the values of a number."""
    if len(classes) <= _MANY_CLASSES or classes.dtype.kind not in "iuf":
        return False
    return bool(np.all(classes == np.trunc(classes)))
