"""Results remembered in a bounded number of bytes, for as long as what they are about.

``functools.lru_cache`` counts entries, whatever their size, and keeps its arguments
alive: laws, quilts and public tables long after the scenario they belong to, and under
an empirical prior private rows after their fit.
"""

import sys
from collections import OrderedDict, deque
from functools import wraps
from threading import Lock
from weakref import WeakKeyDictionary, ref

import numpy as np

__all__ = ["MEMORY", "Memory", "life_of", "remembered_with", "share_life"]

# What an entry takes besides its value: its key, and the places that is kept at.
_OVERHEAD = 600

_NOTHING = object()


class Memory:
    """Values by owners and key, which go with any owner, or where bytes run out.

    Owners are told apart by identity and held weakly. Threads may use it at once.

    Parameters
    ----------
    max_bytes : int
        What all values may take together; those not asked for the longest go first.
    """

    def __init__(self, max_bytes):
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._entries = OrderedDict()  # (value, size) by (identities, key)
        self._owners = {}  # (weak reference, places in entries) by identity
        self._dead = deque()
        self._lock = Lock()

    def __len__(self):
        return len(self._entries)

    def held(self, owners, key, default=None):
        """Return a value that was kept, or a default.

        Parameters
        ----------
        owners : tuple of object
        key : hashable
        default : object, default=None

        Returns
        -------
        object
        """
        at = tuple(map(id, owners)), key
        value = default
        with self._lock:
            if at in self._entries and all(map(self._known, owners)):
                value, _ = self._entries[at]
                self._insert(at, value)  # as the latest, and it may have grown
        self._bury()
        return value

    def keep(self, owners, key, value):
        """Keep a value while its owners live, if there is room for it.

        Parameters
        ----------
        owners : tuple of object
        key : hashable
        value : object
            Must not refer to an owner, which it would keep alive.
        """
        identities = tuple(map(id, owners))
        with self._lock:
            for owner, identity in zip(owners, identities, strict=True):
                if not self._known(owner):
                    self._drop_owner(identity)  # a late one, of the same identity

                    def gone(_, identity=identity):
                        self._dead.append(identity)
                        self._bury()

                    self._owners[identity] = ref(owner, gone), set()
            self._insert((identities, key), value)
        self._bury()

    def clear(self, start=()):
        """Forget all values whose keys are tuples that start so."""
        with self._lock:
            for at in list(self._entries):
                if at[1][: len(start)] == start:
                    self._drop(at)

    def _known(self, owner):
        return id(owner) in self._owners and self._owners[id(owner)][0]() is owner

    def _insert(self, at, value):
        self._drop(at)
        size = _OVERHEAD + _size(value, set())
        if size > self.max_bytes:
            return
        self._entries[at] = value, size
        self.n_bytes += size
        for identity in at[0]:
            self._owners[identity][1].add(at)
        while self.n_bytes > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, at):
        if at in self._entries:
            self.n_bytes -= self._entries.pop(at)[1]
            for identity in at[0]:
                self._owners[identity][1].discard(at)

    def _drop_owner(self, identity):
        reference, places = self._owners.get(identity, (None, ()))
        if reference is not None and reference() is None:
            for at in list(places):
                self._drop(at)
            del self._owners[identity]

    def _bury(self):
        """Forget what belonged to owners that died; later, if the lock is taken.

        They may die wherever memory is allocated, in the midst of another method too.
        """
        while self._dead and self._lock.acquire(blocking=False):
            try:
                while self._dead:
                    self._drop_owner(self._dead.popleft())
            finally:
                self._lock.release()


def _size(value, seen):
    """Bytes that a value takes, each part of it once."""
    if isinstance(value, int | float | str | None) or id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes if value.base is None else _size(value.base, seen)
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    else:
        parts = [getattr(value, "__dict__", {})]
    return sys.getsizeof(value) + sum(_size(part, seen) for part in parts)


#: Of this process, for all scenarios.
MEMORY = Memory(max_bytes=2**27)


def remembered_with(n_owners):
    """Remember a function's results as long as its first arguments live.

    Parameters
    ----------
    n_owners : int
        How many of the first arguments are owners, compared by identity; with None
        for one, nothing is kept. The others must be hashable.

    Returns
    -------
    decorator
        The decorated function takes positional arguments only and has a method
        `cache_clear`.
    """

    def decorate(function):
        name = function.__module__, function.__qualname__

        @wraps(function)
        def remembered(*arguments):
            owners, rest = arguments[:n_owners], arguments[n_owners:]
            if any(owner is None for owner in owners):
                return function(*arguments)
            value = MEMORY.held(owners, (*name, rest), _NOTHING)
            if value is _NOTHING:
                value = function(*arguments)
                MEMORY.keep(owners, (*name, rest), value)
            return value

        remembered.cache_clear = lambda: MEMORY.clear(name)
        return remembered

    return decorate


class _Life:
    """What a scenario and all its clones share: it ends with the last of them."""


_LIVES = WeakKeyDictionary()
_LIVES_LOCK = Lock()


def life_of(scenario):
    """Return what lives as long as a scenario or one of its clones: an owner.

    A search over budgets clones the scenario at every candidate and every fold and asks
    for the same laws each time. Their key has to say what they depend on.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    object
    """
    with _LIVES_LOCK:
        return _LIVES.setdefault(scenario, _Life())


def share_life(scenario, clone):
    """Let a clone live the life of its scenario.

    Parameters
    ----------
    scenario, clone : Scenario
    """
    life = life_of(scenario)
    with _LIVES_LOCK:
        _LIVES[clone] = life
