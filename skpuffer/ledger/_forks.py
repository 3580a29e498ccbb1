"""No file of a ledger is open while a process forks.

SQLite keeps what is locked by process, in memory that a fork copies. A child would
believe that it holds the locks of its parent, and its parent would not see those of the
child: the last to close a file, as either believes to be, tidies up what the other
writes.
"""

import os
import weakref
from typing import Protocol

__all__ = ["ForkSafe", "watch"]


class ForkSafe(Protocol):
    """What holds a file open, and a lock."""

    def _before_fork(self) -> None:
        """Take the lock, and close the file."""

    def _after_fork(self, in_child: bool) -> None:
        """Give the lock back, or have a new one."""


_WATCHED: weakref.WeakSet[ForkSafe] = weakref.WeakSet()


def watch(thing: ForkSafe) -> None:
    """Have something told of every fork of this process.

    Parameters
    ----------
    thing : ForkSafe
        As long as anybody else refers to it.
    """
    _WATCHED.add(thing)


def _before() -> None:
    # in one order, whichever threads fork at once
    for thing in sorted(_WATCHED, key=id):
        thing._before_fork()


def _after_in_parent() -> None:
    for thing in tuple(_WATCHED):
        thing._after_fork(in_child=False)


def _after_in_child() -> None:
    for thing in tuple(_WATCHED):
        thing._after_fork(in_child=True)


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(
        before=_before,
        after_in_parent=_after_in_parent,
        after_in_child=_after_in_child,
    )
