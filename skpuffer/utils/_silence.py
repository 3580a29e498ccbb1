"""Silence around code that runs on private rows: no callback, print, log or warning.

A loss that a solver prints, or a monitor logs, is exact. No noise hides it.
"""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

__all__ = ["muted", "silence"]

# Output and warnings belong to the process, so that threads share one silence: the
# first to need it begins it and the last ends it.
_LOCK = threading.Lock()
_SHARED: dict[str, Any] = {"depth": 0, "stack": ExitStack()}


def muted(estimator: Any) -> Any:
    """Return a clone that prints nothing and that no callback listens to.

    Nested estimators are muted with it, wherever they are among the parameters. Those
    that are frozen are left alone: they are shared, and not fitted.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    estimator : estimator
        Unfitted.
    """
    # the user's own object keeps its callbacks and its verbosity
    fresh = clone(estimator)
    # by identity, each once: parameters may share an estimator, or hold each other
    for part in _parts(fresh, set()):
        if hasattr(part, "_skl_callbacks"):
            del part._skl_callbacks  # the list, which clones share, is left alone
        if part.get_params(deep=False).get("verbose"):
            part.set_params(verbose=False)  # which is 0 as well
    return fresh


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the estimators in a parameter, itself among them, each once."""
    if isinstance(value, type | FrozenEstimator) or id(value) in seen:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _parts(item, seen)
    elif hasattr(value, "get_params"):
        seen.add(id(value))
        yield value
        for inner in value.get_params(deep=False).values():
            yield from _parts(inner, seen)


@contextmanager
def silence() -> Iterator[None]:
    """Let no warning, log or printed text out."""
    # counted, as a thread may begin its silence while another one keeps its own
    with _LOCK:
        if not _SHARED["depth"]:
            _SHARED["stack"] = _silenced()
        _SHARED["depth"] += 1
    try:
        yield
    finally:
        with _LOCK:
            _SHARED["depth"] -= 1
            # what was printed in between by others is lost: that costs less than a
            # value let out
            if not _SHARED["depth"]:
                _SHARED["stack"].close()


def _silenced() -> ExitStack:
    """Silence the process until the stack that is returned is closed."""
    # closed on the way out if a step fails; handed over whole otherwise, by `pop_all`
    with ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # back to what was disabled before, and not to everything enabled
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        return stack.pop_all()
