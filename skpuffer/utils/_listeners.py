"""Who hears of every release besides the callbacks of an estimator.

A callback hears of what scikit-learn passes it on to; a listener of this process, such
as a ledger in a ``with`` statement, of any release in any thread.
"""

import os
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from ._versions import with_version, without_version

_Class = TypeVar("_Class", bound=type)


class Listener(Protocol):
    """An object that hears of a release before its noise is drawn, and may raise."""

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None
    ) -> None:
        """Hear of a release."""


# A tuple each, replaced as a whole: whoever reads one needs no lock, and a forked
# process has it.
_lock = threading.Lock()
_of_process: tuple[Listener, ...] = ()
_of_thread: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_silent: ContextVar[bool] = ContextVar("silent", default=False)


def listeners() -> tuple[Listener, ...]:
    """Return who hears of a release that is made here, each once."""
    if _silent.get():
        return ()
    return tuple({id(one): one for one in (*_of_process, *_of_thread.get())}.values())


def tell(estimator: Any, metadata: dict[str, Any], context: Any = None) -> None:
    """Tell all who hear of a release that is made here, before its noise is drawn."""
    if context is None:
        context = SimpleNamespace(task_name="release", parent=None)
    for listener in listeners():
        listener.on_fit_task_begin(estimator, context, metadata=metadata)


def listen(listener: Listener) -> None:
    """Let a listener hear of every release of this process, once more."""
    global _of_process
    with _lock:
        _of_process = (*_of_process, listener)


def stop_listening(listener: Listener) -> None:
    """Undo one call of :func:`listen`."""
    global _of_process
    with _lock:
        _of_process = _without(_of_process, listener)


def listen_here(listener: Listener) -> None:
    """Let a listener hear of every release of this thread, once more."""
    _of_thread.set((*_of_thread.get(), listener))


def stop_listening_here(listener: Listener) -> None:
    """Undo one call of :func:`listen_here`."""
    _of_thread.set(_without(_of_thread.get(), listener))


def _without(present: tuple[Listener, ...], listener: Listener) -> tuple[Listener, ...]:
    """All but the last of a listener's places."""
    for at in reversed(range(len(present))):
        if present[at] is listener:
            return (*present[:at], *present[at + 1 :])
    return present


@contextmanager
def unheard() -> Iterator[None]:
    """Let nobody hear of what is fitted here: it does not leave as it is."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


class Carried:
    """Callback by which an estimator takes a listener along to another process.

    Parameters
    ----------
    listener : Listener
        That can be pickled.
    """

    def __init__(self, listener: Listener):
        self.listener = listener

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing before a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing after a fit."""

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None
    ) -> None:
        """Let the listener hear of it."""
        self.listener.on_fit_task_begin(estimator, context, metadata=metadata)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Do nothing after a task."""


class CarriedInFit(Carried):
    """The same for one fit: in the process of which it is silent once that is over.

    Fitted copies of an estimator keep the callbacks they were made with.

    Parameters
    ----------
    listener : Listener
        That can be pickled.
    fit : str
        Names the fit; it is over when it is not in `_going_on`.
    """

    def __init__(self, listener: Listener, fit: str):
        super().__init__(listener)
        self.fit, self.process = fit, _this_process()

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None
    ) -> None:
        """Let the listener hear of it, unless the fit is known to be over."""
        if self.process != _this_process() or self.fit in _going_on:
            super().on_fit_task_begin(estimator, context, metadata=metadata)


#: Fits of this process in which listeners are carried along.
_going_on: set[str] = set()

#: By which a process is told from those of other machines.
_IMPORT = uuid.uuid4().hex


def _this_process() -> tuple[str, int]:
    # a fork shares the first
    return _IMPORT, os.getpid()


def begin_carrying(parts: Iterable[Any], listener: Listener) -> str:
    """Let estimators take a listener along in a fit; return the fit's name.

    Code that fits copies in other threads and processes passes on neither callbacks nor
    what a thread listens to.
    """
    one = CarriedInFit(listener, uuid.uuid4().hex)
    _going_on.add(one.fit)
    for part in parts:
        # another list, as clones share theirs
        part._skl_callbacks = [*getattr(part, "_skl_callbacks", []), one]
    return one.fit


def end_carrying(parts: Iterable[Any], fit: str) -> None:
    """Undo :func:`begin_carrying`."""
    _going_on.discard(fit)
    for part in parts:
        kept = [
            one
            for one in getattr(part, "_skl_callbacks", [])
            if getattr(one, "fit", None) != fit
        ]
        if kept:
            part._skl_callbacks = kept
        else:
            vars(part).pop("_skl_callbacks", None)


def carries_listeners(cls: _Class) -> _Class:
    """Class decorator for estimators that release, about copies of them.

    Listeners of this process hear of copies in other processes too, and a clone draws
    noise from a stream of its own. A pickle says which version wrote it.
    """
    carrying: Any = cls
    carrying.__sklearn_clone__ = _clone
    carrying.__getstate__ = _state
    carrying.__setstate__ = _restore
    carrying._carries_listeners = True
    return cls


def is_carrying(estimator: Any) -> bool:
    """Whether copies of an estimator take listeners along."""
    return getattr(type(estimator), "_carries_listeners", False)


def _clone(self: Any) -> Any:
    copy: Any = BaseEstimator.__sklearn_clone__(self)
    # a copy of a generator would draw the same noise again, in each fold of a table
    copy.random_state = _own_stream(self.random_state)
    return copy


def _state(self: Any) -> dict[str, Any]:
    state: Any = dict(BaseEstimator.__getstate__(self))
    # a ledger that hears of all fits here hears of one in a worker process as well
    callbacks = carried(state.get("_skl_callbacks", []))
    return with_version({**state, "_skl_callbacks": callbacks} if callbacks else state)


def _restore(self: Any, state: dict[str, Any]) -> None:
    BaseEstimator.__setstate__(self, without_version(self, state))


def carried(callbacks: list[Any]) -> list[Any]:
    """Return the callbacks that a copy of an estimator takes to another process."""
    known = [getattr(one, "listener", one) for one in callbacks]
    new = [one for one in listeners() if not any(one is other for other in known)]
    return [*callbacks, *map(Carried, new)]


def _own_stream(random_state: Any) -> Any:
    """Return the `random_state` of a copy, which shares no stream with the original."""
    if isinstance(random_state, np.random.Generator):
        try:
            return random_state.spawn(1)[0]
        except TypeError:  # made without a seed sequence
            return np.random.default_rng(random_state.integers(2**63, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.RandomState(random_state.randint(2**31 - 1, size=4))
    return random_state
