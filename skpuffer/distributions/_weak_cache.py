"""Weak cache: results kept within a number of bytes, while their subjects live.

Unlike ``functools.lru_cache`` it keeps no argument alive, such as private rows.
"""

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import wraps
from threading import Lock
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, ref

import numpy as np

# Bytes of an entry besides its value: its key, and the sets that hold the key.
_OVERHEAD = 600

_NOTHING = object()

# What holds nothing else.
_PLAIN = frozenset({bool, int, float, str, type(None)})

#: Where an entry is: the identities of its owners, and its key.
Place = tuple[tuple[int, ...], Any]

Result = TypeVar("Result", covariant=True)


class Remembered(Protocol[Result]):
    """A function whose results are cached."""

    def __call__(self, *arguments: Any) -> Result:
        """Return the result, from the cache if it is there."""

    def cache_clear(self) -> None:
        """Forget all results."""


class _Owner(ref[Any]):
    """Weak reference to an owner, with its identity and the places of its entries."""

    __slots__ = ("identity", "places")

    def __init__(self, owner: object, gone: Callable[["_Owner"], None]) -> None:
        super().__init__(owner, gone)  # type: ignore[call-arg] # as `ref` is made
        self.identity = id(owner)
        self.places: set[Place] = set()


class Memory:
    """Cache by owners and key, bounded in bytes. Safe for threads.

    An entry goes when any of its owners dies, or when bytes run out, the least recently
    used first. Owners are told apart by identity and held weakly.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        #: Value and size of each entry.
        self._entries: OrderedDict[Place, tuple[Any, int]] = OrderedDict()
        self._owners: dict[int, _Owner] = {}  # by identity
        self._dead: deque[int] = deque()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def held(
        self, owners: tuple[object, ...], key: Hashable, default: Any = None
    ) -> Any:
        """Return the value kept for owners and key, or a default."""
        at = tuple(map(id, owners)), key
        value = default
        with self._lock:
            # An identity may have been taken over by a new object after its owner died,
            # so that the weak reference has to confirm it.
            if at in self._entries and all(map(self._known, owners)):
                value, _ = self._entries[at]
                self._insert(at, value)  # as the latest, its size measured again
        self._bury()
        return value

    def keep(self, owners: tuple[object, ...], key: Hashable, value: Any) -> None:
        """Keep a value while its owners live, if there is room.

        It must not refer to an owner.
        """
        identities = tuple(map(id, owners))
        with self._lock:
            for owner, identity in zip(owners, identities, strict=True):
                if not self._known(owner):
                    self._drop_owner(identity)  # a dead one of this identity
                    self._owners[identity] = _Owner(owner, self._gone)
            self._insert((identities, key), value)
        self._bury()

    def found(
        self, owners: tuple[object, ...], key: Hashable, find: Callable[[], Any]
    ) -> Any:
        """Return the value kept for owners and key; if there is none, find and keep it.

        The value must not refer to an owner.
        """
        # Computed outside the lock: two threads may both do so, and either result is
        # right.
        value = self.held(owners, key, _NOTHING)
        if value is _NOTHING:
            value = find()
            self.keep(owners, key, value)
        return value

    def clear(self, start: tuple[Hashable, ...] = ()) -> None:
        """Forget all values, or those whose keys are tuples with this start."""
        with self._lock:
            for at in list(self._entries):
                key = at[1] if isinstance(at[1], tuple) else ()
                if key[: len(start)] == start:
                    self._drop(at)

    def _known(self, owner: object) -> bool:
        reference = self._owners.get(id(owner))
        return reference is not None and reference() is owner

    def _insert(self, at: Place, value: Any) -> None:
        self._drop(at)
        size = _OVERHEAD + _size(value)
        # Larger than everything together: keeping it would only push out the rest.
        if size > self.max_bytes:
            return
        self._entries[at] = value, size
        self.n_bytes += size
        for identity in at[0]:
            self._owners[identity].places.add(at)
        # The first entry is the least recently used, as `held` moves entries to the
        # end.
        while self.n_bytes > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, at: Place) -> None:
        if at in self._entries:
            self.n_bytes -= self._entries.pop(at)[1]
            for identity in at[0]:
                self._owners[identity].places.discard(at)

    def _drop_owner(self, identity: int) -> None:
        reference = self._owners.get(identity)
        if reference is not None and reference() is None:
            for at in list(reference.places):
                self._drop(at)
            del self._owners[identity]

    def _gone(self, reference: _Owner) -> None:
        self._dead.append(reference.identity)
        self._bury()

    def _bury(self) -> None:
        """Forget the entries of owners that died; later, if the lock is taken."""
        while self._dead and self._lock.acquire(blocking=False):
            try:
                while self._dead:
                    self._drop_owner(self._dead.popleft())
            finally:
                self._lock.release()


def _size(value: object) -> int:
    """Bytes of a value, each object within it counted once."""
    size, waiting, seen = 0, [value], set()
    while waiting:
        value = waiting.pop()
        # plain numbers and texts are counted by the size of what holds them
        if type(value) in _PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.base is None:
                size += value.nbytes
            else:
                waiting.append(value.base)  # a view keeps its whole base alive
            continue
        size += sys.getsizeof(value)
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        else:
            waiting.append(getattr(value, "__dict__", None))
    return size


#: Of this process, for all scenarios.
MEMORY = Memory(max_bytes=2**27)


def remembered_with(
    n_owners: int,
) -> Callable[[Callable[..., Result]], Remembered[Result]]:
    """Decorate a function to cache its results while its first arguments live.

    The first `n_owners` arguments are compared by identity; with None for one, nothing
    is kept. The others must be hashable, all are positional, and `cache_clear` empties
    it.
    """

    def decorate(function: Callable[..., Result]) -> Remembered[Result]:
        name = function.__module__, function.__qualname__

        @wraps(function)
        def remembered(*arguments: Any) -> Result:
            owners, rest = arguments[:n_owners], arguments[n_owners:]
            if any(owner is None for owner in owners):
                return function(*arguments)
            value: Result = MEMORY.found(
                owners, (*name, rest), lambda: function(*arguments)
            )
            return value

        result = cast(Remembered[Result], remembered)
        result.cache_clear = lambda: MEMORY.clear(name)  # type: ignore[method-assign] # added
        return result

    return decorate


def is_data(value: object) -> bool:
    """Whether a value is immutable data of this package, and equal ones are alike."""
    if type(value) in _PLAIN:
        return True
    if isinstance(value, tuple):
        return all(map(is_data, value))
    return (
        is_dataclass(value)
        and not isinstance(value, type)
        and type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
        # what a class works out itself follows from the others
        and all(is_data(getattr(value, f.name)) for f in fields(value) if f.init)
    )


class _Life:
    """Owner that a scenario and its clones share: it dies with the last of them."""


_LIVES: WeakKeyDictionary[Any, _Life] = WeakKeyDictionary()
_LIVES_LOCK = Lock()


def life_of(scenario: object) -> _Life:
    """Return a cache owner that lives as long as a scenario or one of its clones.

    Keys have to say what the distributions depend on.
    """
    with _LIVES_LOCK:
        return _LIVES.setdefault(scenario, _Life())


def share_life(scenario: object, clone: object) -> None:
    """Let a clone share the cache owner of its scenario."""
    life = life_of(scenario)
    with _LIVES_LOCK:
        _LIVES[clone] = life
