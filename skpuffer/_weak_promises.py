"""Warnings of promises that are worth little, before anything is spent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from skpuffer._targets import declared_classes
from skpuffer.exceptions import WeakPromiseWarning
from skpuffer.utils._warn import warn

if TYPE_CHECKING:
    from skpuffer.privacy import Certificate

__all__ = ["announce_weakness"]

#: Above this an epsilon is hardly a promise by itself.
_LARGE_EPSILON = 10.0

#: More whole numbers than this are rather a count or an amount than names of classes.
_MANY_CLASSES = 50

# What was said in which fit of an outermost estimator. Few of them run at a time.
_SAID: OrderedDict[Any, None] = OrderedDict()
_MOST_SAID = 1000


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
        warn(f"{type(estimator).__name__}: {text}", WeakPromiseWarning)
        # only now: where warnings are errors, every fit is stopped by it
        _SAID[key] = None
        while len(_SAID) > _MOST_SAID:
            _SAID.popitem(last=False)


def _weaknesses(estimator: Any, c: Certificate) -> Iterator[tuple[str, str]]:
    """Kind and text of each weakness, from public facts."""
    n = c.n_records
    if n is not None and c.delta * n >= 1:
        yield (
            "delta",
            f"delta={c.delta:g} is not below one over the number of records "
            f"({n}): releasing the record of one person drawn at random would be "
            f"within it. Take a smaller delta, 1 / {n}**1.5, say.",
        )
    if c.epsilon is not None and c.epsilon > _LARGE_EPSILON:
        yield (
            "epsilon",
            f"epsilon={c.epsilon:g} is above {_LARGE_EPSILON:g}, where the promise "
            "says little by itself: odds may change by a factor of "
            f"{np.exp(min(c.epsilon, 700.0)):.2g}. See what an attacker gets by "
            "skpuffer.audit, or take a smaller one.",
        )
    if not is_classifier(estimator):
        return
    classes = declared_classes(estimator)
    if classes is not None and _are_many_numbers(classes):
        yield (
            "classes",
            f"its {len(classes)} declared classes are whole numbers. Is the target a "
            "number? Then a regressor with 'target_bounds' needs far less noise.",
        )


def _are_many_numbers(classes: Any) -> bool:
    """Whether class labels look like the values of a number."""
    if len(classes) <= _MANY_CLASSES or classes.dtype.kind not in "iuf":
        return False
    return bool(np.all(classes == np.trunc(classes)))
