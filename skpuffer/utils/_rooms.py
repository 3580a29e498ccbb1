"""Load what a lazy room has not loaded yet."""

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

__all__ = ["load_room"]


# once is enough: to find the modules of a room takes milliseconds every time
@cache
def load_room(name: str) -> None:
    """Import every module of a package.

    Rooms load what they offer when it is asked for. Who looks for all classes of a
    kind, rather than for one by its name, must have them defined first.

    Parameters
    ----------
    name : str
        Of a package, such as ``'skpuffer.accountants'``.
    """
    room = import_module(name)
    for module in walk_packages(room.__path__, f"{name}."):
        import_module(module.name)
