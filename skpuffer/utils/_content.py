"""Keys by content: equal only where two computations are known to be the same.

A key that is equal by mistake would hand one query the distances of another, and with
them too little noise. So what is not understood has no key at all.
"""

import dis
import functools
import hashlib
import site
import sys
import sysconfig
import types
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement

__all__ = ["Content", "content_of"]

#: What is its own content.
_PLAIN = frozenset({bool, int, str, bytes, type(None), type(Ellipsis)})

#: What looks up globals by a text, or reads what is outside of the process.
_BY_TEXT = frozenset({"__import__", "eval", "exec", "globals", "import_module", "open"})

#: Members that every class has, or that its base class makes of others.
_MADE = frozenset(
    {
        "__abstractmethods__",
        "__annotations__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__doc__",
        "__firstlineno__",
        "__match_args__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__slots__",
        "__static_attributes__",
        "_abc_impl",
        "_parameter_constraints",
    }
)

#: Values met on one walk, beyond which nothing is said of them.
_MOST = 20_000

#: Whose code stays as it is while a process lives.
_INSTALLED = tuple(
    Path(path).resolve()
    for path in (
        *map(sysconfig.get_path, ("purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    )
)


class _Plainest:
    """Instance whose whole state is its attributes."""


class _UnknownError(Exception):
    """Of a value whose content is not understood."""


@dataclass(frozen=True)
class Content:
    """Content of some values.

    Parameters
    ----------
    key : hashable
        Equal for equal contents, except for what is in the notes.
    notes : dict
        Keys of what functions read beside their arguments (closures, globals,
        attributes of plain objects), by where it was found. A function may write there
        too.
    sizes : dict
        Of notes that may be a log: entries of a list or a set, the value of a counter.
    """

    key: Hashable
    notes: Mapping[Hashable, Hashable] = field(repr=False)
    sizes: Mapping[Hashable, int] = field(default_factory=dict, repr=False)

    def written(self, after: "Content | None") -> frozenset[Hashable] | None:
        """Return where a computation has written, given the content after it.

        Parameters
        ----------
        after : Content or None

        Returns
        -------
        frozenset or None
            None if more has changed than logs that grew: a setting that a computation
            has changed by itself may be what it reads.
        """
        if after is None or after.key != self.key:
            return None
        if after.notes.keys() != self.notes.keys():
            return None
        changed = {at for at, key in self.notes.items() if after.notes[at] != key}
        if not all(after._has_grown(self, at) for at in changed):
            return None
        return frozenset(changed)

    def _has_grown(self, before: "Content", at: Hashable) -> bool:
        """Whether a note is of a log, and longer than before."""
        sizes = before.sizes.get(at), self.sizes.get(at)
        return sizes[0] is not None and sizes[1] is not None and sizes[1] > sizes[0]

    def equals(self, other: "Content", except_for: frozenset[Hashable]) -> bool:
        """Whether contents are equal, except for some notes that have grown.

        Parameters
        ----------
        other : Content
            From before.
        except_for : frozenset

        Returns
        -------
        bool
        """
        return (
            self.key == other.key
            and self.notes.keys() == other.notes.keys()
            and all(
                other.notes[at] == key
                or (at in except_for and self._has_grown(other, at))
                for at, key in self.notes.items()
            )
        )


def content_of(*values: Any) -> Content | None:
    """Return the content of values, None if there is one that is not understood.

    Numbers, texts, arrays, frames and containers are read by value; functions and
    classes by their code and what it reads, unless they are an installed library's;
    other objects by their attributes, if these are their whole state. What has a method
    `content` is asked for the values that make it up.

    Parameters
    ----------
    *values : tuple

    Returns
    -------
    Content or None
    """
    walk = _Walk()
    try:
        key = tuple(walk.key(value, (i,)) for i, value in enumerate(values))
    except (_UnknownError, RecursionError):
        return None
    # digests, as a key outlives what it was read from
    notes = {at: _digest(k) for at, k in walk.notes.items()}
    return Content(_digest(key), notes, walk.sizes)


def _digest(key: Hashable) -> Hashable:
    """Return the hash of a key, with the classes and the code in it as they are."""
    text, kept = hashlib.sha256(), []

    def read(part: Any) -> None:
        if isinstance(part, tuple):
            text.update(b"(%d" % len(part))
            for one in part:
                read(one)
        elif isinstance(part, frozenset):
            # those of sets have no order
            one_by_one = [_digest(one) for one in part]
            text.update(b"{%d" % len(part))
            kept.append(frozenset(one_by_one))
        elif type(part) in (bool, int, str, bytes, type(None), type(Ellipsis)):
            found = repr(part).encode("utf-8", "surrogatepass")
            text.update(b"%d:" % len(found) + found)
        else:
            text.update(b"#")
            kept.append(part)

    read(key)
    return text.hexdigest(), tuple(kept)


class _Walk:
    """One walk through values, with where each was met first."""

    def __init__(self) -> None:
        self.notes: dict[Hashable, Hashable] = {}
        self.sizes: dict[Hashable, int] = {}
        self._met: dict[int, int] = {}
        # alive while the walk lasts, so that no identity is taken over
        self._alive: list[Any] = []

    def note(self, value: Any, at: tuple[Any, ...]) -> None:
        """Note the key of a value that is read, by where it was found."""
        if isinstance(value, types.ModuleType):
            # of its own what is read of it is noted, by name
            self.notes[at] = "module", value.__name__
            return
        self.notes[at] = self.key(value, at)
        if type(value) is int:
            self.sizes[at] = value
        elif type(value) in (list, set):
            self.sizes[at] = len(value)

    def key(self, value: Any, path: tuple[Any, ...]) -> Hashable:
        """Return the key of one value, which was reached by a path."""
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind in (float, complex):
            # as hexadecimal, so that NaN equals itself and zeros differ by sign
            return kind, (complex(value).real.hex(), complex(value).imag.hex())
        if id(value) in self._met:
            return "again", self._met[id(value)]
        if len(self._alive) > _MOST:
            raise _UnknownError
        self._met[id(value)] = len(self._alive)
        self._alive.append(value)
        return self._key(value, kind, path)

    def _key(self, value: Any, kind: type, path: tuple[Any, ...]) -> Hashable:
        if kind in (list, tuple):
            return kind, self._each(value, path)
        if kind is dict:
            return kind, self._dict(value, path)
        if kind in (set, frozenset):
            # the elements are hashable, yet their order says nothing
            return kind, frozenset(self.key(v, (*path, "in")) for v in value)
        if isinstance(value, np.dtype):
            return "dtype", repr(value)
        if isinstance(value, np.generic) or kind is np.ndarray:
            return kind, self._array(np.asarray(value), path)
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            return kind, self._frame(value, path)
        if isinstance(value, type):
            return self._class(value, path)
        if isinstance(value, types.ModuleType):
            # which of its names are read is not known here
            if not _is_library(value.__name__):
                raise _UnknownError
            return "module", value.__name__
        if isinstance(value, functools.partial) and kind is functools.partial:
            return kind, self._each([value.func, value.args, value.keywords], path)
        if isinstance(value, types.MethodType):
            return kind, self._each([value.__self__, value.__func__], path)
        if isinstance(value, types.FunctionType):
            return self._function(value, path)
        if isinstance(value, np.ufunc) or _is_imported(value):
            return "imported", value
        if kind is Statement:
            return kind, self._each([value.code, value.parameters], path)
        return self._object(value, kind, path)

    def _dict(self, value: Any, path: tuple[Any, ...]) -> Hashable:
        keys = tuple(self.key(name, (*path, i)) for i, name in enumerate(value))
        if not isinstance(path[-1], str):
            return keys, self._each(value.values(), path)
        # under a name that a function reads: one entry may be a log, another a setting
        for key, held in zip(keys, value.values(), strict=True):
            at = (*path, _digest(key), "entry")
            self.note(held, at)
        return keys

    def _each(self, values: Any, path: tuple[Any, ...]) -> Hashable:
        return tuple(self.key(value, (*path, i)) for i, value in enumerate(values))

    def _array(self, value: Any, path: tuple[Any, ...]) -> Hashable:
        if value.dtype.hasobject:
            return value.shape, self._each(value.ravel().tolist(), path)
        # with its type, shape and strides, by which sums round
        digest: str = joblib.hash(value, hash_name="sha1")
        return digest

    def _frame(self, value: Any, path: tuple[Any, ...]) -> Hashable:
        kind = type(value)
        # others may have a state beside their entries
        if not _is_library(kind.__module__):
            raise _UnknownError
        if isinstance(value, pd.DataFrame):
            columns = [value.iloc[:, j] for j in range(value.shape[1])]
            parts = [value.attrs, value.index, value.columns, *columns]
            return kind, self._each(parts, path)
        if isinstance(value.dtype, pd.CategoricalDtype):
            raise _UnknownError
        beside: list[Any] = [str(getattr(value, "freq", None))]
        if isinstance(value, pd.Series):
            beside = [value.attrs, value.index]
        names = list(getattr(value, "names", [value.name]))
        parts = [names, str(value.dtype), value.to_numpy(), *beside]
        return kind, self._each(parts, path)

    def _class(self, value: type, path: tuple[Any, ...]) -> Hashable:
        # those that a module or notebook may define anew, or whose code reads globals
        code = []
        for kind in value.__mro__:
            installed = _is_library(kind.__module__)
            for name, member in list(vars(kind).items()):
                at = (*path, kind.__qualname__, name)
                if installed and not _is_foreign(member):
                    continue
                parts = _parts(member)
                functions = [p for p in parts if isinstance(p, types.FunctionType)]
                code += [(name, self.key(function, at)) for function in functions]
                if len(functions) < len(parts) and not _is_special(name, member):
                    self.note(parts[0] if len(parts) == 1 else parts, at)
        return "class", value, tuple(code)

    def _function(self, value: Any, path: tuple[Any, ...]) -> Hashable:
        if _is_imported(value):
            return "imported", value
        read: dict[str, Any] = {}
        for name, cell in zip(
            value.__code__.co_freevars, value.__closure__ or (), strict=True
        ):
            try:
                read[f"closure {name}"] = cell.cell_contents
            except ValueError:  # not filled yet
                raise _UnknownError from None
        if not _is_installed(value):
            read |= _globals_read(value)
        read |= {f"attribute {name}": held for name, held in vars(value).items()}
        for name, held in read.items():
            self.note(held, (*path, name))
        # code objects are compared by value
        defaults = [value.__defaults__, value.__kwdefaults__]
        return "function", value.__code__, self._each(defaults, path)

    def _object(self, value: Any, kind: type, path: tuple[Any, ...]) -> Hashable:
        made_of = getattr(kind, "content", None)
        if made_of is not None and _top(kind.__module__) == _top(__name__):
            return self.key(kind, path), self._each(made_of(value), path)
        # nothing of its state is anywhere else, such as in C
        if kind.__basicsize__ > _Plainest.__basicsize__ or not hasattr(
            value, "__dict__"
        ):
            raise _UnknownError
        held = vars(value)
        if _is_library(kind.__module__) or hasattr(value, "get_params"):
            names = sorted(held)
            # in the key itself, by which a search over them finds each again
            return (
                self.key(kind, path),
                tuple(names),
                self._each([held[name] for name in names], path),
            )
        for name, part in held.items():
            self.note(part, (*path, f"attribute {name}"))
        return self.key(kind, path)


def _parts(member: Any) -> list[Any]:
    """What a member of a class is made of: the functions that it runs, if any."""
    if isinstance(member, staticmethod | classmethod):
        return [member.__func__]
    if isinstance(member, property):
        return [f for f in (member.fget, member.fset, member.fdel) if f is not None]
    if isinstance(member, functools.cached_property):
        return [member.func]
    if isinstance(member, functools.partialmethod):
        return [member.func, member.args, member.keywords]
    return [member]


def _is_foreign(member: Any) -> bool:
    """Whether a member of an installed class or module was put there by others."""
    return any(
        isinstance(part, types.FunctionType) and not _is_installed(part)
        for part in _parts(member)
    )


def _is_installed(function: Any) -> bool:
    """Whether the code of a function is an installed library's."""
    # where it was written: a decorator may have given it the name of another module
    return _is_library(function.__globals__.get("__name__"))


def _is_special(name: str, member: Any) -> bool:
    """Whether a member of a class is how Python, or scikit-learn, makes it."""
    slot = types.GetSetDescriptorType, types.MemberDescriptorType
    return name in _MADE or isinstance(member, slot)


def _globals_read(function: Any) -> dict[str, Any]:
    """Globals that a function reads, and what it reads of modules that may change."""
    held = function.__globals__
    names: set[str] = set()
    for code in _codes(function.__code__):
        names.update(code.co_names)
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME" and not _is_library(step.argval):
                raise _UnknownError
    if not _BY_TEXT.isdisjoint(names):
        raise _UnknownError
    read = {f"global {name}": held[name] for name in sorted(names) if name in held}
    modules = [m for m in read.values() if isinstance(m, types.ModuleType)]
    met: set[str] = set()
    while modules:
        module = modules.pop()
        if module.__name__ in met:
            continue
        met.add(module.__name__)
        installed = _is_library(module.__name__)
        # by text, any of its names
        if not installed and "getattr" in names:
            raise _UnknownError
        for name in sorted(names & vars(module).keys()):
            member = vars(module)[name]
            if installed and not _is_foreign(member):
                continue
            read[f"global {module.__name__}.{name}"] = member
            if isinstance(member, types.ModuleType):
                modules.append(member)
    return read


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_imported(value: Any) -> bool:
    """Whether a value is an installed library's own, found under its name."""
    module, name = (getattr(value, n, None) for n in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(name, str)):
        return False
    if not _is_library(module):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _top(module: str) -> str:
    return module.partition(".")[0]


@functools.lru_cache(maxsize=1024)
def _is_library(module: str | None) -> bool:
    """Whether a module belongs to the language, to this package or an installed one."""
    top = _top(module or "__main__")
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == _top(__name__):
        return True
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    path = Path(spec.origin).resolve()
    return any(path.is_relative_to(root) for root in _INSTALLED)
