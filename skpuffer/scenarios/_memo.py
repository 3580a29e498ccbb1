"""Results remembered for as long as the laws they are about.

``functools.lru_cache`` would keep the laws alive; under an empirical prior they hold
private rows, which must go when their fit does.
"""

from functools import wraps
from weakref import WeakKeyDictionary

__all__ = ["remembered_with"]


def remembered_with(n_laws):
    """Remember a function's results as long as its first arguments live.

    Parameters
    ----------
    n_laws : int
        How many of the first arguments are laws, compared by identity; the others
        must be hashable.

    Returns
    -------
    decorator
        The decorated function takes positional arguments only and has a method
        `cache_clear`.
    """

    def decorate(function):
        memory = WeakKeyDictionary()

        @wraps(function)
        def remembered(*arguments):
            at = memory
            for law in arguments[: n_laws - 1]:
                at = at.setdefault(law, WeakKeyDictionary())
            at = at.setdefault(arguments[n_laws - 1], {})
            rest = arguments[n_laws:]
            if rest not in at:
                at[rest] = function(*arguments)
            return at[rest]

        remembered.cache_clear = memory.clear
        return remembered

    return decorate
