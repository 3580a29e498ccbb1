"""Silence around code that runs on private rows: no callback, print, log or warning.

A loss that a solver prints, or a monitor logs, is exact. No noise hides it.
"""

import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from skpuffer.exceptions import Statement, value_error

from ._listeners import unheard


def muted(estimator: Any) -> Any:
    """Return a clone that prints nothing and that no callback listens to.

    It runs in this process alone. Nested estimators are muted too, except frozen ones.
    """
    # the user's own object keeps its callbacks and its verbosity
    fresh = clone(estimator)
    # by identity, each once: parameters may share an estimator, or hold each other
    for part in parts_of(fresh, set()):
        if hasattr(part, "_skl_callbacks"):
            del part._skl_callbacks  # the list, which clones share, is left alone
        if part.get_params(deep=False).get("verbose"):
            part.set_params(verbose=False)  # which is 0 as well
        # worker processes know of no silence here; one job also where a context of
        # joblib's asks for more
        if "n_jobs" in part.get_params(deep=False):
            part.set_params(n_jobs=1)
    return fresh


def parts_of(value: Any, seen: set[int], *, frozen: bool = False) -> Iterator[Any]:
    """Yield the estimators in a parameter, itself among them, each once."""
    if isinstance(value, type) or id(value) in seen:
        return
    if isinstance(value, FrozenEstimator) and not frozen:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from parts_of(item, seen, frozen=frozen)
    elif hasattr(value, "get_params"):
        seen.add(id(value))
        yield value
        for inner in value.get_params(deep=False).values():
            yield from parts_of(inner, seen, frozen=frozen)


@contextmanager
def silence() -> Iterator[None]:
    """Let no warning, log or printed text out, and no ledger hear of what is fitted."""
    token = object()
    # Twice, as an interrupt may come on the way out as well, and would leave the whole
    # process mute, for the warnings of all later fits too.
    try:
        try:
            _begin(token)
            with unheard():
                yield
        finally:
            _end(token)
    finally:
        _end(token)


def _begin(token: object) -> None:
    # counted by tokens, as a thread may begin its silence while another keeps its own
    with _LOCK:
        _SHARED.holders.add(token)
        if _SHARED.before is None:
            # noted before anything is changed, so that all can be undone at any point
            _SHARED.before = _Process()
            _SHARED.before.mute()


def _end(token: object) -> None:
    """End the silence that a token began; may be repeated."""
    with _LOCK:
        _SHARED.holders.discard(token)
        # what was printed in between by others is lost: that costs less than a value
        # let out
        if _SHARED.before is not None and not _SHARED.holders:
            _SHARED.before.restore()
            _SHARED.before = None


class _Process:
    """What the process lets out: its streams, the filter of warnings, its logs."""

    def __init__(self) -> None:
        self.streams = sys.stdout, sys.stderr
        self.warnings = warnings.catch_warnings()
        self.warnings.__enter__()
        self.disabled = logging.root.manager.disable
        self.nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def mute(self) -> None:
        sys.stdout = sys.stderr = self.nowhere
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)

    def restore(self) -> None:
        """Set all back to what it was; may be repeated."""
        sys.stdout, sys.stderr = self.streams
        self.warnings.__exit__(None, None, None)
        # to what was disabled before, and not to everything enabled
        logging.disable(self.disabled)
        self.nowhere.close()


class _Silence:
    """Who keeps silence, and what was let out before the first of them."""

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self.before: _Process | None = None


# Output and warnings belong to the process, so that threads share one silence: the
# first to need it begins it and the last ends it.
_LOCK = threading.Lock()
_SHARED = _Silence()


# -- calls of foreign code on private values, with its messages withheld ---------------


def unquoted(owner: object, call: Callable[..., Any], *args: Any) -> Any:
    """Call a function of private values and withhold its error messages.

    An error may quote a cell: its kind is passed on, its words and chained errors are
    not. Our own errors quote nothing and pass. Warnings, prints and logs are withheld.
    """
    raised = kind = None
    # warnings and prints may quote a cell as well as errors may
    with silence():
        try:
            returned = call(*args)
        except Exception as error:
            # the class alone: its text and its attributes may hold values
            kind = type(error).__name__
            if _is_ours(error):
                raised = error
    if raised is not None:
        # a chained error of foreign code would be printed with it
        raised.__cause__ = raised.__context__ = None
        raise raised
    if kind is not None:
        # outside of `except`, so that the error is not chained to this one
        raise value_error(
            "table.error_text_withheld",
            owner=owner,
            kind=kind,
            given=_given(args),
            withheld=_WITHHELD,
        )
    return returned


_WITHHELD = Statement("table.withheld_private_values")


def _given(args: tuple[Any, ...]) -> Statement | str:
    """Public description of the table that the call was given."""
    # the number of records and of features is public by assumption
    shape: tuple[int, ...] = getattr(args[0], "shape", ())
    if len(shape) != 2:
        return ""
    kind = "sparse" if sparse.issparse(args[0]) else "dense"
    return Statement(
        "table.error_on_data_shape", kind=kind, shape=shape[0], shape2=shape[1]
    )


def _is_ours(error: Exception) -> bool:
    if isinstance(error, NotFittedError):
        return True  # said before data is looked at
    # by where it was raised, the innermost frame, not by its class: any code may raise
    # a ValueError
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("skpuffer.")


# -- warnings that point at the line of whoever called ---------------------------------


#: Packages whose lines are not the user's.
_LIBRARIES = ("joblib", "skpuffer", "sklearn")


def warn(message: object, category: type[Warning]) -> None:
    """Warn at the first line up the stack that is outside of these libraries."""
    # a filter by module, and the line shown, must be the user's
    frame, level = sys._getframe(1), 2
    # the outermost frame is a fallback: there is always a line to point at
    while frame.f_back is not None and _package(frame) in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)


def _package(frame: FrameType) -> str:
    module: str = frame.f_globals.get("__name__", "")
    return module.partition(".")[0]
