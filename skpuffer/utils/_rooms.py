"""Rooms that load what they offer when it is asked for."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from skpuffer.exceptions import Statement


def attach_stub(
    name: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the names in the stub of a package load when they are asked for.

    As ``lazy_loader.attach_stub`` does, and of modules of other packages too. Names
    that ``__all__`` leaves out load as well, but are not exported.
    """
    homes: dict[str, tuple[str, str]] = {}
    exported: list[str] = []
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            exported = ast.literal_eval(node.value)
        if isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), name)
            for one in node.names:
                homes[one.asname or one.name] = home, one.name

    def get(asked: str) -> Any:
        if asked not in homes:
            raise AttributeError(Statement("room.no_such_name", room=name, name=asked))
        home, own = homes[asked]
        # a room within the package, or what another module holds
        found = (
            import_module(f"{name}.{own}")
            if home == name
            else getattr(import_module(home), own)
        )
        # found at once the next time
        setattr(sys.modules[name], asked, found)
        return found

    return get, lambda: sorted(exported), exported


# once is enough: to find the modules of a room takes milliseconds every time
@cache
def load_room(name: str) -> None:
    """Import every module of a package, and all that it and its packages export.

    A search for all classes of a kind must have them defined first.
    """
    room = import_module(name)
    found = [room]
    found += [import_module(m.name) for m in walk_packages(room.__path__, f"{name}.")]
    for module in found:
        # modules without a stub have what they name
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
