"""Load what a lazy room has not loaded yet."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import lazy_loader as lazy

__all__ = ["attach", "load_room"]

_Attached = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach(name: str, file: str) -> _Attached:
    """Return what loads the names of a stub when they are first used.

    As ``lazy_loader.attach_stub``, and the stub may also take names out of
    `skpuffer.extensions`. Only this door leads there: nothing else imports them.

    Parameters
    ----------
    name : str
        Of the package.
    file : str
        Path of its ``__init__.py``, beside which the stub is.

    Returns
    -------
    getattr, dir : callable
    all : list of str
    """
    own: dict[str, list[str]] = {}
    parts: set[str] = set()
    elsewhere: dict[str, str] = {}
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        names = [each.name for each in node.names]
        if not node.level:
            elsewhere |= dict.fromkeys(names, str(node.module))
        elif node.module:
            own.setdefault(node.module, []).extend(names)
        else:
            parts.update(names)
    of_own, _, all_own = lazy.attach(name, parts, own)
    everything = sorted([*all_own, *elsewhere])

    def get(attribute: str) -> Any:
        if attribute not in elsewhere:
            return of_own(attribute)
        found = getattr(import_module(elsewhere[attribute]), attribute)
        setattr(sys.modules[name], attribute, found)
        return found

    return get, everything.copy, everything


# once is enough: to find the modules of a room takes milliseconds every time
@cache
def load_room(name: str) -> None:
    """Import every module of a package, and all that it and its packages export.

    Rooms load what they offer when it is asked for. Who looks for all classes of a
    kind, rather than for one by its name, must have them defined first. Extensions
    define theirs elsewhere: their names in this package load them.

    Parameters
    ----------
    name : str
        Of a package, such as ``'skpuffer.accountants'``.
    """
    room = import_module(name)
    found = [room]
    found += [import_module(m.name) for m in walk_packages(room.__path__, f"{name}.")]
    for module in found:
        # modules without a stub have what they name
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
