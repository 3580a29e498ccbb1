"""Accountants to choose from."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skpuffer.accountants._base import Accountant, known_accountants
from skpuffer.accountants._families import FAMILIES, TRIED
from skpuffer.releases import QueryRelease

__all__ = ["all_candidates", "is_valid", "usual_alpha"]


def all_candidates(
    kind: type, but: type[Accountant], counts: bool = False
) -> list[Accountant]:
    """Return every recommended accountant, in the noises to try for a kind of release.

    Parameters
    ----------
    kind : type
        Of the release.
    but : type
        Accountant that is none of them.
    counts : bool, default=False
        Whether the release consists of whole numbers.

    Returns
    -------
    list of Accountant
    """
    # Laplace noise hides moves in l1: gradients would be clipped in another norm, and
    # over many steps or votes it needs more than Gaussian noise
    vectors = issubclass(kind, QueryRelease)
    families = (
        [family for family in TRIED if counts or not FAMILIES[family].integer]
        if vectors
        else ["gaussian"]
    )
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
