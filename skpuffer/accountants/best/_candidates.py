"""Accountants to choose from."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skpuffer.accountants._base import Accountant, known_accountants
from skpuffer.releases import QueryRelease

__all__ = ["all_candidates", "is_valid", "name_of", "usual_alpha"]


def all_candidates(kind: type, but: type[Accountant]) -> list[Accountant]:
    """Return every recommended accountant, in the noises to try for a kind of release.

    Parameters
    ----------
    kind : type
        Of the release.
    but : type
        Accountant that is none of them.

    Returns
    -------
    list of Accountant
    """
    # Laplace noise hides moves in l1: gradients would be clipped in another norm, and
    # over many steps or votes it needs more than Gaussian noise
    vectors = issubclass(kind, QueryRelease)
    families = ("gaussian", "laplace") if vectors else ("gaussian",)
    found = []
    for known in known_accountants():
        if issubclass(known, but) or not known.recommended:
            continue
        if "noise" in known._get_param_names():
            make: Callable[..., Accountant] = known
            found += [make(noise=family) for family in families]
        else:
            found.append(known._candidate())
    return found


@lru_cache
def usual_alpha(kind: type[Accountant]) -> Any:
    """Return the default of the parameter `alpha` of a class."""
    return inspect.signature(kind).parameters["alpha"].default


def is_valid(accountant: Accountant) -> bool:
    """Whether the parameters of an accountant go together."""
    try:
        accountant.check()
    except ValueError:
        return False
    return True


def name_of(accountant: Accountant) -> str:
    """Return the text of an accountant in one line."""
    return " ".join(repr(accountant).split())
